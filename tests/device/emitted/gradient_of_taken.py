from gradscribe.runtime.device import check_places, cp, cuda, np, place_in


@cuda.jit
def grad_taken_1(dt, t_1, t, i, wrong):
    for j in range(6):
        for k in range(5):
            dt[j, k] = 0.0
    for j in range(4):
        for k in range(5):
            t_1[j, k] = 2 * t[place_in(i[j], 6, wrong), k]
    for j in range(4):
        for k in range(5):
            dt[place_in(i[j], 6, wrong), k] += t_1[j, k]


def grad_taken(t, i):
    wrong = cp.zeros(1, np.int64)
    if t.shape[0] != 6 or t.shape[1] != 5 or i.shape[0] != 4:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    dt = cp.empty((6, 5), np.float64)
    t_1 = cp.empty((4, 5), np.float64)
    grad_taken_1[1, 1](dt, t_1, t, i, wrong)
    check_places(wrong)
    return (dt,)
