from gradscribe.runtime.device import cuda, np, sqrt


@cuda.jit
def norms_adjoint(x, out, dx, dout):
    i = cuda.grid(1)
    v = cuda.local.array(3, np.float64)
    dv = cuda.local.array(3, np.float64)
    for k in range(3):
        v[k] = x[i, k] + k
    n = 0.0
    for k in range(3):
        n += v[k] * v[k]
    # out[i] = math.sqrt(n)
    dout_i = dout[i]
    dout[i] = 0.0
    dn = dout_i / (2 * sqrt(n))
    # for k in range(3):
    for j in range(3):
        dv[j] = 0.0
    for k in range(2, -1, -1):
        # n += v[k] * v[k]
        dv[k] += 2 * dn * v[k]
    for k in range(2, -1, -1):
        # v[k] = x[i, k] + k
        dx[i, k] += dv[k]
