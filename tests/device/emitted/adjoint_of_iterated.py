from gradscribe.runtime.device import cos, cuda, sin


@cuda.jit
def iterated_adjoint(x, out, dx, dout, v_saved):
    i = cuda.grid(1)
    v = x[i]
    for i_1 in range(x.shape[0]):
        v_saved[i_1, i] = v
        v = sin(v) * v + 0.1
    # out[i] = v
    dv = dout[i]
    dout[i] = 0.0
    for i_1 in range(x.shape[0] - 1, -1, -1):
        v = v_saved[i_1, i]
        # v = math.sin(v) * v + 0.1
        dv = dv * v * cos(v) + dv * sin(v)
    # v = x[i]
    dx[i] += dv
