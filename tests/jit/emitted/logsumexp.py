def value_and_grad_logsumexp(x):
    n_1 = x.shape[0]
    if n_1 == 0:
        raise ValueError('zero-size array to reduction operation which has no identity')
    max_2 = ranked(x[0])
    for i in range(n_1):
        max_2 = max(max_2, ranked(x[i]))
    a = unranked(max_2)
    exp_z = np.empty((n_1,), np.float64)
    sum_5 = 0.0
    for i in range(n_1):
        exp_z[i] = exp(x[i] - a)
        sum_5 += exp_z[i]
    sum_exp_z = sum_5
    t = a + np.log(sum_exp_z)
    t_6 = 1 / sum_exp_z
    sum_7 = 0.0
    sum_8 = 0.0
    for i in range(n_1):
        dx = t_6 * exp_z[i]
        sum_7 += dx
        z = 1.0 if x[i] == a else 0.0
        sum_8 += z
    da = 1 - sum_7
    t_9 = da / sum_8
    t_10 = exp_z
    for i in range(n_1):
        t_10[i] = t_9 * (1.0 if x[i] == a else 0.0) + t_6 * exp_z[i]
    return (t, t_10)
