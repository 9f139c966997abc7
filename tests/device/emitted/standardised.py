from gradscribe.runtime.device import cp, cuda, grid, np, sqrt


@cuda.jit
def standardised_1(x, t_5, centred, t_7):
    i = cuda.grid(1)
    while i < 6:
        sum_1 = 0.0
        for j in range(5):
            sum_1 += x[i, j]
        sum_2 = sum_1
        sum_3 = 0.0
        for j in range(5):
            centred[i, j] = x[i, j] - sum_2 / float(5)
            sum_3 += centred[i, j] * centred[i, j]
        sum_4 = sum_3
        t_6 = sqrt(sum_4 / float(5) + np.float64(t_5))
        for j in range(5):
            t_7[i, j] = centred[i, j] / t_6
        i += cuda.gridsize(1)


def standardised(x):
    if x.shape[0] != 6 or x.shape[1] != 5:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    centred = cp.empty((6, 5), np.float64)
    t_5 = np.float32(1e-05)
    t_7 = cp.empty((6, 5), np.float64)
    standardised_1[grid(6)](x, t_5, centred, t_7)
    return (t_7,)
