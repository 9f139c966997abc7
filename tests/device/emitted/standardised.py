from gradscribe.runtime.device import cp, cuda, grid, np, sqrt


# centred = x - np.mean(x, axis=1, keepdims=True)
# return centred / np.sqrt(np.mean(centred ** 2, axis=1, keepdims=True) + np.float32(1e-5))
@cuda.jit
def standardised_1(x, t_6):
    i = cuda.grid(1)
    while i < 6:
        sum_1 = 0.0
        for j in range(5):
            sum_1 += x[i, j]
        sum_2 = sum_1
        sum_3 = 0.0
        for j in range(5):
            centred = x[i, j] - sum_2 / float(5)
            sum_3 += centred * centred
        sum_4 = sum_3
        t_5 = sqrt(sum_4 / float(5) + 9.999999747378752e-06)
        for j in range(5):
            centred_1 = x[i, j] - sum_2 / float(5)
            t_6[i, j] = centred_1 / t_5
        i += cuda.gridsize(1)


# standardised_1 moves 480 bytes, or more
def standardised(x):
    if x.shape[0] != 6 or x.shape[1] != 5:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    t_6 = cp.empty((6, 5), np.float64)
    standardised_1[grid(6)](x, t_6)
    return (t_6,)
