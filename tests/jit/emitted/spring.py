def value_and_grad_spring(y, k, steps):
    if y.shape[0] != 2:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    t = -k
    y_saved = np.empty((steps,), np.float64)
    t_2_0 = y[0]
    t_2_1 = y[1]
    y_1_0 = t_2_0
    y_1_1 = t_2_1
    for i in range(steps):
        y_1_ = y_1_0
        y_saved[i] = y_1_
        stacked_3_0 = y_1_1
        stacked_3_1 = t * y_1_
        t_4_0 = y_1_0 + 0.01 * stacked_3_0
        t_4_1 = y_1_1 + 0.01 * stacked_3_1
        y_1_0 = t_4_0
        y_1_1 = t_4_1
    y_1__1 = y_1_0
    dy = np.empty((2,), np.float64)
    for j in range(2):
        dy[j] = 0.0
    t_5 = 2 * y_1__1
    dy[0] = t_5
    dt = 0.0
    for i in range(steps - 1, -1, -1):
        darray_0 = 0.01 * dy[0]
        darray_1 = 0.01 * dy[1]
        dt_1 = darray_1
        dt = dt_1 * y_saved[i] + dt
        t_6 = -(dt_1 * k)
        dy[0] += t_6
        dy[1] += darray_0
    dk = -dt
    return (y_1__1 * y_1__1, dy, dk)
