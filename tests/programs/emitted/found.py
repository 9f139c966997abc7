import numpy as np


def grad_found(x, n):
    t_saved = []
    passes_saved = []
    returned_saved = []
    returned = False
    k = 0
    while k < n:
        t = 1 + k
        t_saved_1 = []
        returned_1 = False
        passes = 0
        for j in range(n):
            passes += 1
            t_1 = x[j] > t
            t_saved_1.append(t_1)
            if t_1:
                returned_1 = True
                break
        returned_saved.append(returned_1)
        passes_saved.append(passes)
        t_saved.append(t_saved_1)
        if returned_1:
            returned = True
            k = k + 1
            break
        k = k + 1

    if returned:
        # for k in range(n):
        dx = np.zeros_like(x)
        dvalue = 1.0
    else:
        # return x[0] * x[1]
        dx = np.zeros_like(x)
        dx[1] = x[0]
        dx[0] = x[1]
        dvalue = 0.0
    dvalue_1 = 0.0
    while t_saved:
        returned = returned_saved.pop()
        # for j in range(n):
        if returned:
            dvalue_1 += dvalue
        k = k - 1
        passes = passes_saved.pop()
        t_saved_1 = t_saved.pop()
        for j in reversed(range(passes)):
            t_2 = t_saved_1.pop()
            if t_2:
                x_1 = x[j]
                # return x[j] ** 2 * x[k]
                dx[k] += dvalue_1 * x_1 ** 2
                dx[j] += dvalue_1 * x[k] * (2 * x_1)
                dvalue_1 = 0.0
        dvalue = 0.0
    return dx
