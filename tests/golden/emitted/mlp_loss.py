import numpy as np


def grad_mlp_loss(W1, b1, W2, b2, x, y):
    h = np.tanh(x @ W1 + b1)
    p = h @ W2 + b2

    # return np.sum((p - y) ** 2)
    dp = 2 * (p - y)
    # p = h @ W2 + b2
    db2 = np.sum(dp, axis=0)
    dh = dp @ W2.T
    dW2 = h.T @ dp
    # h = np.tanh(x @ W1 + b1)
    dz = dh * (1 - h * h)
    db1 = np.sum(dz, axis=0)
    dW1 = x.T @ dz
    return dW1, db1, dW2, db2
