def value_and_grad_chosen(x, where):
    n_1 = x.shape[0]
    n_2 = where.shape[0]
    x_1 = np.empty((n_2,), np.float64)
    for i in range(n_2):
        x_1[i] = x[place(where[i], n_1)]
    sum_3 = 0.0
    for i in range(n_2):
        sum_3 += x_1[i] * x_1[i]
    sum_4 = 0.0
    dx = np.empty((n_1,), np.float64)
    for i in range(n_1):
        sum_4 += x[i] if x[i] > 0 else 0.1 * x[i]
        dx[i] = 1.0 if x[i] > 0 else 0.1
    t = sum_3 + sum_4
    for i in range(n_2):
        dx[place(where[i], n_1)] += 2 * x_1[i]
    return (t, dx)
