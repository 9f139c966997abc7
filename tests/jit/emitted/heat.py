def value_and_grad_heat(u, steps):
    n_1 = u.shape[0]
    n_1_less_2 = max(n_1 - 2, 0)
    t_2 = np.empty((n_1,), np.float64)
    for j in range(n_1):
        t_2[j] = u[j]
    u_1 = t_2
    t_7 = np.empty((n_1_less_2,), np.float64)
    for i in range(steps):
        t_3 = np.empty((n_1,), np.float64)
        for j in range(n_1):
            t_3[j] = u_1[j]
        for j in range(n_1_less_2):
            t_7[j] = 0.1 * (t_3[j + 2] - 2 * t_3[j + 1] + t_3[j])
        for j in range(n_1_less_2):
            t_3[j + 1] += t_7[j]
        u_1 = t_3
    sum_9 = 0.0
    for j in range(n_1):
        sum_9 += u_1[j] * u_1[j]
    sum_z = sum_9
    du_2 = np.empty((n_1,), np.float64)
    for j in range(n_1):
        du_2[j] = 2 * u_1[j]
    du = du_2
    du_1 = np.empty((n_1_less_2,), np.float64)
    for i in range(steps - 1, -1, -1):
        dz = du[1:-1]
        for j in range(n_1_less_2):
            du_1[j] = 0.1 * dz[j]
        t_11 = np.empty((n_1,), np.float64)
        for j in range(n_1):
            t_11[j] = du[j]
        for j in range(n_1_less_2):
            t_11[j] += du_1[j]
        for j in range(n_1_less_2):
            t_11[j + 1] += -(0.2 * dz[j])
        for j in range(n_1_less_2):
            t_11[j + 2] += du_1[j]
        du = t_11
    return (sum_z, du)
