import numpy as np


def grad_network_loss(params, x, y):
    x_saved = []
    for W, b in params[:-1]:
        x_saved.append(x)
        x = np.tanh(x @ W + b)
    W, b = params[-1]

    # return np.sum((x @ W + b - y) ** 2)
    dz = 2 * (x @ W + b - y)
    db = np.sum(dz, axis=0)
    dx = dz @ W.T
    dW = x.T @ dz
    dparams = [(dW, db)]
    for W, b in reversed(params[:-1]):
        # x = np.tanh(x @ W + b)
        prod_dx = dx * (1 - x * x)
        db = np.sum(prod_dx, axis=0)
        x = x_saved.pop()
        dW = x.T @ prod_dx
        dx = prod_dx @ W.T
        # for W, b in params[:-1]:
        dparams.insert(0, (dW, db))
    return dparams
