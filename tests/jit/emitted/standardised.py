def value_and_grad_standardised(x, g):
    n_1 = x.shape[0]
    n_2 = x.shape[1]
    if g.shape[0] != n_2:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    z = np.empty((n_2,), np.float64)
    sum_11 = 0.0
    dg = np.zeros((n_2,), np.float64)
    dz_1 = np.empty((n_2,), np.float64)
    dx = np.empty((n_2,), np.float64)
    t_18 = np.empty((n_1, n_2), np.float64)
    for i in range(n_1):
        sum_3 = 0.0
        sum_5 = 0.0
        for j in range(n_2):
            sum_3 += x[i, j]
            sum_5 += x[i, j]
        sum_4 = sum_3
        mean = sum_4 / float(n_2)
        sum_6 = sum_5
        t_7 = sum_6 / float(n_2)
        sum_8 = 0.0
        for j in range(n_2):
            sum_8 += square(x[i, j] - t_7)
        sum_9 = sum_8
        sqrt_z = np.sqrt(sum_9 / float(n_2) + 1e-05)
        sum_14 = 0.0
        for j in range(n_2):
            z[j] = (x[i, j] - mean) / sqrt_z
            z_1 = z[j] * g[j]
            sum_11 += z_1 ** 3
            dz = 3 * (z_1 * z_1)
            dg[j] += dz * z[j]
            dz_1[j] = dz * g[j] / sqrt_z
            sum_14 += dz_1[j] * z[j]
        sum_15 = sum_14
        sum_16 = 0.0
        for j in range(n_2):
            dx[j] = dz_1[j] - sum_15 / float(n_2) * z[j]
            sum_16 += dz_1[j]
        sum_17 = sum_16
        for j in range(n_2):
            t_18[i, j] = dx[j] - sum_17 / float(n_2)
    sum_z = sum_11
    return (sum_z, t_18, dg)
