def value_and_grad_triangle(x, icf):
    n_1 = x.shape[0]
    n_2 = icf.shape[0]
    s = 0.0
    p = 0
    for i in range(n_1):
        t = i + 1
        n_3 = len(range(t, n_1, 1))
        for i_1 in range(n_3):
            j = t + i_1
            s = s + icf[place(p, n_2)] * x[i] * x[j]
            p = p + 1
    dx = np.empty((n_1,), np.float64)
    for k in range(n_1):
        dx[k] = 0.0
    dicf = np.empty((n_2,), np.float64)
    for k in range(n_2):
        dicf[k] = 0.0
    for i in range(n_1 - 1, -1, -1):
        t_1 = i + 1
        run_length = len(range(t_1, n_1, 1))
        p_1 = p
        for i_1 in range(run_length - 1, -1, -1):
            j_1 = t_1 + i_1
            x_1_ = x[j_1]
            x_1__1 = x[i]
            p_1 = p_1 - 1
            icf_1_ = icf[place(p_1, n_2)]
            t_4 = icf_1_ * x_1__1
            dx[j_1] += t_4
            t_5 = x_1_ * icf_1_
            dx[i] += t_5
            t_6 = x_1_ * x_1__1
            dicf[place(p_1, n_2)] += t_6
        p = p - run_length
    return (s, dx, dicf)
