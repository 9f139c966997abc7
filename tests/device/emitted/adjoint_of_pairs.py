from gradscribe.runtime.device import cuda, sqrt


@cuda.jit
def pairs_adjoint(x, out, dx, dout, d_saved):
    i = cuda.grid(1)
    for j in range(x.shape[0]):
        d = 0.1
        for c in range(3):
            d += (x[i, c] - x[j, c]) ** 2
        d_saved[j, i] = d
    for j in range(x.shape[0] - 1, -1, -1):
        d = d_saved[j, i]
        dd = 0.0
        for c in range(2, -1, -1):
            sqrt_d = sqrt(d)
            prod_d = d * sqrt_d
            # out[i, c] += (x[j, c] - x[i, c]) / (d * math.sqrt(d))
            dx_1 = dout[i, c] / prod_d
            prod_dx_1 = dx_1 * ((x[j, c] - x[i, c]) / prod_d)
            dd = dd - 0.5 * prod_dx_1 * d / sqrt_d - prod_dx_1 * sqrt_d
            cuda.atomic.add(dx, (i, c), -dx_1)
            cuda.atomic.add(dx, (j, c), dx_1)
        for c in range(2, -1, -1):
            # d += (x[i, c] - x[j, c]) ** 2
            dx_1 = 2 * dd * (x[i, c] - x[j, c])
            cuda.atomic.add(dx, (j, c), -dx_1)
            cuda.atomic.add(dx, (i, c), dx_1)
