from gradscribe.runtime.device import cuda, exp


@cuda.jit
def strides_adjoint(x, out, dx, dout):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        c = 2.0 * x[0]
        exp_x = exp(x[i])
        # out[i] += math.exp(x[i]) * c
        dc = dout[i] * exp_x
        cuda.atomic.add(dx, i, dout[i] * c * exp_x)
        # c = 2.0 * x[0]
        cuda.atomic.add(dx, 0, 2.0 * dc)
