from gradscribe.runtime.device import cos, cuda, math


@cuda.jit
def iterated_adjoint(x, out, dx, dout, sin_v_saved, v_saved):
    i = cuda.grid(1)
    v = x[i]
    for i_1 in range(x.shape[0]):
        v_saved[i_1, i] = v
        sin_v = math.sin(v)
        sin_v_saved[i_1, i] = sin_v
        v = sin_v * v + 0.1
    # out[i] = v
    dv = dout[i]
    dout[i] = 0.0
    for i_1 in range(x.shape[0] - 1, -1, -1):
        v = v_saved[i_1, i]
        # v = math.sin(v) * v + 0.1
        dv = dv * v * cos(v) + dv * sin_v_saved[i_1, i]
    # v = x[i]
    dx[i] += dv
