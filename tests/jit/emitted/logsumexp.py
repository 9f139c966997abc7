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
    dx = exp_z
    for i in range(n_1):
        dx[i] = exp_z[i] / sum_exp_z
    return (t, dx)
