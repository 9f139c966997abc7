import numpy as np


def layer(x, W, b):
    return np.tanh(x @ W + b)


def vjp_layer(dy, y, x, W):
    # return np.tanh(x @ W + b)
    dz = dy * (1 - y * y)
    db = np.sum(dz, axis=0)
    dx = dz @ W.T
    dW = x.T @ dz
    return dx, dW, db


def grad_two_layers(x, W, b):
    layer_1 = layer(x, W, b)
    layer_2 = layer(layer_1, W, b)

    # return np.sum(layer(layer(x, W, b), W, b))
    dlayer, dW, db = vjp_layer(np.ones_like(layer_2), layer_2, layer_1, W)
    dx, dW_1, db_1 = vjp_layer(dlayer, layer_1, x, W)
    return dx, dW_1 + dW, db_1 + db
