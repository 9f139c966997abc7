def value_and_grad_logistic_regression(w, b, x, y):
    n_1 = w.shape[0]
    n_2 = x.shape[0]
    if x.shape[1] != n_1 or y.shape[0] != n_2:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    product_3 = np.dot(x, w)
    sum_4 = 0.0
    dz = product_3
    sum_5 = 0.0
    for i in range(n_2):
        z = product_3[i] + b
        logaddexp_z = logaddexp(0.0, z)
        sum_4 += logaddexp_z - y[i] * z
        dz[i] = (exp(0.0 if z == logaddexp_z else z - logaddexp_z) - y[i]) / float(n_2)
        sum_5 += dz[i]
    mean_z = sum_4 / float(n_2)
    db = sum_5
    dw = np.dot(x.T, dz)
    return (mean_z, dw, db)
