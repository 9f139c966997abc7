from gradscribe.runtime.device import cuda


@cuda.jit
def axpy_adjoint(a, x, y, out, da, dx, dy, dout):
    i = cuda.grid(1)
    if i < x.shape[0]:
        # out[i] = a * x[i] + y[i]
        dout_i = dout[i]
        dout[i] = 0.0
        dy[i] += dout_i
        cuda.atomic.add(da, 0, dout_i * x[i])
        dx[i] += dout_i * a
