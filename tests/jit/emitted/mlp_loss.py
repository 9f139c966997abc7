def value_and_grad_mlp_loss(W1, b1, W2, b2, x, y):
    n_1 = W1.shape[0]
    n_2 = W1.shape[1]
    n_3 = W2.shape[1]
    n_4 = x.shape[0]
    if b1.shape[0] != n_2 or W2.shape[0] != n_2 or b2.shape[0] != n_3 or (x.shape[1] != n_1) or (y.shape[0] != n_4) or (y.shape[1] != n_3):
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    product_5 = np.dot(x, W1)
    h = product_5
    for i in range(n_4):
        for j in range(n_2):
            h[i, j] = tanh(product_5[i, j] + b1[j])
    product_6 = np.dot(h, W2)
    sum_7 = 0.0
    dp = product_6
    db2 = np.zeros((n_3,), np.float64)
    for i in range(n_4):
        for j in range(n_3):
            p = product_6[i, j] + b2[j]
            z = p - y[i, j]
            sum_7 += z * z
            dp[i, j] = 2 * z
            db2[j] += dp[i, j]
    sum_z = sum_7
    dh = np.dot(dp, W2.T)
    dW2 = np.dot(h.T, dp)
    dz = h
    db1 = np.zeros((n_2,), np.float64)
    for i in range(n_4):
        for j in range(n_2):
            dz[i, j] = dh[i, j] * (1 - h[i, j] * h[i, j])
            db1[j] += dz[i, j]
    dW1 = np.dot(x.T, dz)
    return (sum_z, dW1, db1, dW2, db2)
