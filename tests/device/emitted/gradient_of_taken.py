from gradscribe.runtime.device import check_places, cp, cuda, grid, np, one_block, place_in


# return np.sum(t[i] ** 2)
@cuda.jit
def grad_taken_1(n_1, t, i, t_2, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    j = row
    while j < n_1:
        k = column
        while k < 5:
            t_2[j, k] = 2 * t[place_in(i[j], 6, wrong), k]
            k += columns
        j += rows


# return np.sum(t[i] ** 2)
@cuda.jit
def grad_taken_2(dt):
    for j in range(6):
        for k in range(5):
            dt[j, k] = 0.0


# return np.sum(t[i] ** 2)
@cuda.jit
def grad_taken_3(n_1, i, t_2, dt, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    j = row
    while j < n_1:
        k = column
        while k < 5:
            cuda.atomic.add(dt, (place_in(i[j], 6, wrong), k), t_2[j, k])
            k += columns
        j += rows


# grad_taken_1 moves 88 * n_1 bytes, or more
# grad_taken_3 moves 128 * n_1 bytes, or more
def grad_taken(t, i):
    wrong = cp.zeros(1, np.int64)
    n_1 = i.shape[0]
    if t.shape[0] != 6 or t.shape[1] != 5:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    dt = cp.empty((6, 5), np.float64)
    t_2 = cp.empty((n_1, 5), np.float64)
    grad_taken_1[grid(n_1, 5)](n_1, t, i, t_2, wrong)
    grad_taken_2[one_block(1)](dt)
    grad_taken_3[grid(n_1, 5)](n_1, i, t_2, dt, wrong)
    check_places(wrong)
    return (dt,)
