from gradscribe.runtime.device import cp, cuda, np, one_block, ranked, unranked


# return np.max(x), np.min(x, axis=0), np.max(x, axis=1), np.argmax(x), np.argmin(x, axis=0)
@cuda.jit
def extremes_1(min_x, x, max_x, argmin_x, max_13, places_17):
    for i in range(5):
        min_x[i] = x[0, i]
    for i in range(6):
        for j in range(5):
            v_2 = x[i, j]
            if v_2 < min_x[j] or v_2 != v_2:
                min_x[j] = v_2
    for i in range(6):
        max_4 = ranked(x[i, 0])
        for j in range(5):
            max_4 = max(max_4, ranked(x[i, j]))
        max_x[i] = unranked(max_4)
    for i in range(5):
        best_7 = x[0, i]
        at_8 = 0
        for j in range(6):
            v_9 = x[j, i]
            if v_9 < best_7 or (v_9 != v_9 and best_7 == best_7):
                best_7 = v_9
                at_8 = j
        argmin_x[i] = at_8
    max_11 = ranked(x[0, 0])
    for i in range(6):
        for j in range(5):
            max_11 = max(max_11, ranked(x[i, j]))
    max_13[0] = unranked(max_11)
    best_14 = x[0, 0]
    at_15 = 0
    for i in range(6):
        for j in range(5):
            v_16 = x[i, j]
            if v_16 > best_14 or (v_16 != v_16 and best_14 == best_14):
                best_14 = v_16
                at_15 = i * 5 + j
    places_17[0] = at_15


def extremes(x):
    max_13 = cp.empty(1, np.float64)
    places_17 = cp.empty(1, np.int64)
    if x.shape[0] != 6 or x.shape[1] != 5:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    min_x = cp.empty((5,), np.float64)
    max_x = cp.empty((6,), np.float64)
    argmin_x = cp.empty((5,), np.int64)
    extremes_1[one_block(1)](min_x, x, max_x, argmin_x, max_13, places_17)
    return (max_13[0], min_x, max_x, places_17[0], argmin_x)
