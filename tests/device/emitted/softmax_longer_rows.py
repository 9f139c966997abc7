from gradscribe.runtime.device import cp, cuda, exp, np, ranked, row_grid, row_max_int64, row_sum_float64, unranked


# e = np.exp(x - np.max(x, axis=1, keepdims=True))
# return e / np.sum(e, axis=1, keepdims=True)
@cuda.jit
def softmax_1(n_1, x, n_2, e, t_8):
    i = cuda.blockIdx.x
    while i < n_1:
        max_3 = ranked(x[i, 0])
        j = cuda.threadIdx.x
        while j < n_2:
            max_3 = max(max_3, ranked(x[i, j]))
            j += cuda.blockDim.x
        max_3 = row_max_int64(max_3)
        max_5 = unranked(max_3)
        sum_6 = 0.0
        j = cuda.threadIdx.x
        while j < n_2:
            e[i, j] = exp(x[i, j] - max_5)
            sum_6 += e[i, j]
            j += cuda.blockDim.x
        sum_6 = row_sum_float64(sum_6)
        cuda.syncthreads()
        sum_7 = sum_6
        j = cuda.threadIdx.x
        while j < n_2:
            t_8[i, j] = e[i, j] / sum_7
            j += cuda.blockDim.x
        cuda.syncthreads()
        i += cuda.gridDim.x


# softmax_1 moves 24 * n_1 * n_2 bytes, or more
def softmax(x):
    n_1 = x.shape[0]
    n_2 = x.shape[1]
    if n_2 == 0:
        raise ValueError('zero-size array to reduction operation which has no identity')
    e = cp.empty((n_1, n_2), np.float64)
    t_8 = cp.empty((n_1, n_2), np.float64)
    softmax_1[row_grid(n_1, n_2)](n_1, x, n_2, e, t_8)
    return (t_8,)
