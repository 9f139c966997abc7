def value_and_grad_heat(u, steps):
    n_1 = u.shape[0]
    n_1_less_2 = max(n_1 - 2, 0)
    u_1_1 = np.empty((n_1,), np.float64)
    for j in range(n_1):
        u_1_1[j] = u[j]
    u_1 = u_1_1
    t_9 = np.empty((n_1_less_2,), np.float64)
    for i in range(steps):
        t_2 = np.empty((n_1,), np.float64)
        for j in range(n_1):
            t_2[j] = u_1[j]
        for j in range(n_1_less_2):
            t_9[j] = 0.1 * (t_2[j + 2] - 2 * t_2[j + 1] + t_2[j])
        for j in range(n_1_less_2):
            t_2[j + 1] += t_9[j]
        u_1 = t_2
    sum_12 = 0.0
    for j in range(n_1):
        sum_12 += u_1[j] * u_1[j]
    sum_z = sum_12
    du_2 = np.empty((n_1,), np.float64)
    for j in range(n_1):
        du_2[j] = 2 * u_1[j]
    du = du_2
    for i in range(steps - 1, -1, -1):
        dz = du[1:-1]
        du_1 = np.empty((dz.shape[0],), np.float64)
        for j in range(dz.shape[0]):
            du_1[j] = 0.1 * dz[j]
        t_15 = np.empty((n_1,), np.float64)
        for j in range(n_1):
            t_15[j] = du[j]
        for j in range(n_1_less_2):
            t_15[j] += du_1[j]
        t_18 = np.empty((dz.shape[0],), np.float64)
        for j in range(dz.shape[0]):
            t_18[j] = -(0.2 * dz[j])
        for j in range(n_1_less_2):
            t_15[j + 1] += t_18[j]
        for j in range(n_1_less_2):
            t_15[j + 2] += du_1[j]
        du = t_15
    return (sum_z, du)
