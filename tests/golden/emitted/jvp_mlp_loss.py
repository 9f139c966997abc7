import numpy as np


def jvp_mlp_loss(W1, b1, W2, b2, W1_dot, b1_dot, W2_dot, b2_dot):
    h = np.tanh(x @ W1 + b1)
    h_dot = (x @ W1_dot + b1_dot) * (1 - h * h)
    p = h @ W2 + b2
    p_dot = h_dot @ W2 + h @ W2_dot + b2_dot
    z = p - y
    sum_z = np.sum(z ** 2)
    sum_z_dot = np.sum(p_dot * (2 * z))
    return sum_z, sum_z_dot
