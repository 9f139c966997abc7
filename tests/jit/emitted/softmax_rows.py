def value_and_grad_softmax_rows(x, y):
    n_1 = x.shape[0]
    n_2 = x.shape[1]
    if y.shape[0] != n_1 or y.shape[1] != n_2:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    if n_2 == 0:
        raise ValueError('zero-size array to reduction operation which has no identity')
    max_x = np.empty((n_1,), np.float64)
    for i in range(n_1):
        max_3 = ranked(x[i, 0])
        for j in range(n_2):
            max_3 = max(max_3, ranked(x[i, j]))
        max_x[i] = unranked(max_3)
    exp_z = np.empty((n_1, n_2), np.float64)
    exp_z_1 = np.empty((n_1, n_2), np.float64)
    sum_exp_z = np.empty((n_1,), np.float64)
    p = np.empty((n_1, n_2), np.float64)
    sum_z = np.empty((n_1,), np.float64)
    for i in range(n_1):
        sum_6 = 0.0
        for j in range(n_2):
            z = x[i, j] - max_x[i]
            exp_z[i, j] = exp(z)
            exp_z_1[i, j] = exp(z)
            sum_6 += exp_z_1[i, j]
        sum_exp_z[i] = sum_6
        sum_8 = 0.0
        for j in range(n_2):
            p[i, j] = exp_z[i, j] / sum_exp_z[i]
            sum_8 += p[i, j] * y[i, j]
        sum_z[i] = sum_8
    sum_10 = 0.0
    t_11 = 1 / float(n_1)
    t_12 = sum_z
    for i in range(n_1):
        sum_10 += log(sum_z[i])
        t_12[i] = -(t_11 / sum_z[i])
    t = -(sum_10 / float(n_1))
    dexp_z = np.empty((n_2,), np.float64)
    dz = np.empty((n_2,), np.float64)
    z_1 = np.empty((n_2,), np.float64)
    dx = exp_z
    for i in range(n_1):
        sum_13 = 0.0
        for j in range(n_2):
            dp = t_12[i] * y[i, j]
            dexp_z[j] = dp / sum_exp_z[i]
            sum_13 += dexp_z[j] * p[i, j]
        sum_14 = sum_13
        sum_15 = 0.0
        sum_17 = 0.0
        for j in range(n_2):
            dz[j] = dexp_z[j] * exp_z[i, j] - sum_14 * exp_z_1[i, j]
            z_1[j] = 1.0 if x[i, j] == max_x[i] else 0.0
            sum_15 += dz[j]
            sum_17 += z_1[j]
        sum_16 = sum_15
        sum_18 = sum_17
        for j in range(n_2):
            dx[i, j] = dz[j] - sum_16 / sum_18 * z_1[j]
    return (t, dx)
