import numpy as np


def grad_found(x, n):
    passes_saved = []
    returned_saved = []
    returned = False
    passes = 0
    for k in range(n):
        passes += 1
        returned_1 = False
        passes_1 = 0
        for j in range(n):
            passes_1 += 1
            if x[j] > 1 + k:
                returned_1 = True
                break
        returned_saved.append(returned_1)
        passes_saved.append(passes_1)
        if returned_1:
            returned = True
            break

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
    for k in reversed(range(passes)):
        returned = returned_saved.pop()
        # for j in range(n):
        if returned:
            dvalue_1 += dvalue
        passes = passes_saved.pop()
        for j in reversed(range(passes)):
            if x[j] > 1 + k:
                # return x[j] ** 2 * x[k]
                dx[k] += dvalue_1 * x[j] ** 2
                dx[j] += 2 * dvalue_1 * x[k] * x[j]
                dvalue_1 = 0.0
        dvalue = 0.0
    return dx
