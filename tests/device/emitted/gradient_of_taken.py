from gradscribe.runtime.device import check_places, cp, cuda, grid, np, place_in


@cuda.jit
def grad_taken_1(dt):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    for j in range(row, 6, rows):
        for k in range(column, 5, columns):
            dt[j, k] = 0.0


@cuda.jit
def grad_taken_2(t, i, t_1, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    for j in range(row, 4, rows):
        for k in range(column, 5, columns):
            t_1[j, k] = 2 * t[place_in(i[j], 6, wrong), k]


@cuda.jit
def grad_taken_3(i, t_1, dt, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    for j in range(row, 4, rows):
        for k in range(column, 5, columns):
            cuda.atomic.add(dt, (place_in(i[j], 6, wrong), k), t_1[j, k])


def grad_taken(t, i):
    wrong = cp.zeros(1, np.int64)
    if t.shape[0] != 6 or t.shape[1] != 5 or i.shape[0] != 4:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    dt = cp.empty((6, 5), np.float64)
    grad_taken_1[grid(6, 5)](dt)
    t_1 = cp.empty((4, 5), np.float64)
    grad_taken_2[grid(4, 5)](t, i, t_1, wrong)
    grad_taken_3[grid(4, 5)](i, t_1, dt, wrong)
    check_places(wrong)
    return (dt,)
