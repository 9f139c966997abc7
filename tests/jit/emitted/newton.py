def value_and_grad_newton(a):
    x_saved = []
    x = a
    while True:
        if not abs(x * x - a) > 1e-12:
            break
        x_saved.append(x)
        x = 0.5 * (x + a / x)
    dx = 1.0
    da = 0.0
    while True:
        if not len(x_saved) > 0:
            break
        dt = 0.5 * dx
        x_1 = x_saved.pop()
        t = dt / x_1
        da = t + da
        dx = dt - t * (a / x_1)
    return (x, dx + da)
