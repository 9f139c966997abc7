from gradscribe.runtime.device import cuda


@cuda.jit
def product_adjoint(a, b, out, da, db, dout):
    r, c = cuda.grid(2)
    if r < out.shape[0] and c < out.shape[1]:
        # out[r, c] = t
        dt = dout[r, c]
        dout[r, c] = 0.0
        for k in range(a.shape[1] - 1, -1, -1):
            # t += a[r, k] * b[k, c]
            cuda.atomic.add(db, (k, c), dt * a[r, k])
            cuda.atomic.add(da, (r, k), dt * b[k, c])
