"""Adjoints written by hand for Numba, of three of the problems: what a compiler should come close to."""
import numba
import numpy as np

@numba.njit
def nbody_vg(x, mass, eps):
    n = x.shape[0]
    gx = np.zeros_like(x); gm = np.zeros_like(mass); gt = np.zeros((3, n))
    X = x[:, 0].copy(); Y = x[:, 1].copy(); Z = x[:, 2].copy()
    e = 0.0
    for i in range(n):
        ax = 0.0; ay = 0.0; az = 0.0; am = 0.0
        for j in range(i + 1, n):
            dx = X[i] - X[j]; dy = Y[i] - Y[j]; dz = Z[i] - Z[j]
            r2 = dx * dx + dy * dy + dz * dz + eps
            inv2 = 1.0 / r2
            inv6 = inv2 * inv2 * inv2
            ir = np.sqrt(inv2)
            e += 4.0 * (inv6 * inv6 - inv6) - mass[i] * mass[j] * ir
            b = -24.0 * (2.0 * inv6 * inv6 - inv6) * inv2 + mass[i] * mass[j] * ir * inv2     # dE/dr2 * 2
            ax += b * dx; ay += b * dy; az += b * dz
            gt[0, j] -= b * dx; gt[1, j] -= b * dy; gt[2, j] -= b * dz
            am -= mass[j] * ir
            gm[j] -= mass[i] * ir
        gt[0, i] += ax; gt[1, i] += ay; gt[2, i] += az
        gm[i] += am
    for i in range(n):
        for c in range(3):
            gx[i, c] = gt[c, i]
    return e, (gx, gm)


@numba.njit
def heat_vg(u0, kappa, target, dt, steps):
    n, m = u0.shape
    tape = np.empty((steps + 1, n, m))
    tape[0] = u0
    for t in range(steps):
        u = tape[t]; v = tape[t + 1]
        v[0] = u[0]; v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i, 0] = u[i, 0]; v[i, m - 1] = u[i, m - 1]
            for j in range(1, m - 1):
                v[i, j] = u[i, j] + dt * kappa[i, j] * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j])
    b = tape[steps] - target
    f = 0.5 * np.sum(b * b)
    gk = np.zeros_like(kappa); nb = np.empty_like(b); w = np.zeros_like(b)
    for t in range(steps - 1, -1, -1):
        u = tape[t]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                gk[i, j] += dt * b[i, j] * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j])
                w[i, j] = dt * kappa[i, j] * b[i, j]
        for i in range(n):
            for j in range(m):
                nb[i, j] = b[i, j]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                nb[i, j] += w[i + 1, j] + w[i - 1, j] + w[i, j + 1] + w[i, j - 1] - 4.0 * w[i, j]
        for j in range(1, m - 1):
            nb[0, j] += w[1, j]; nb[n - 1, j] += w[n - 2, j]
        for i in range(1, n - 1):
            nb[i, 0] += w[i, 1]; nb[i, m - 1] += w[i, m - 2]
        b, nb = nb, b
    return f, (b, gk)


@numba.njit
def lstm_vg(main, extra, state, seq):
    L = main.shape[0] // 2
    c, b = seq.shape
    T = c - 1
    H = np.empty((T + 1, L, b)); Cc = np.empty((T + 1, L, b)); G = np.empty((T, L, 5, b)); E = np.empty((T, b)); S = np.empty(T)
    for i in range(L):
        for k in range(b):
            H[0, i, k] = state[2 * i, k]; Cc[0, i, k] = state[2 * i + 1, k]
    loss = 0.0
    x = np.empty(b)
    for t in range(T):
        for k in range(b):
            x[k] = seq[t, k] * extra[0, k]
        for i in range(L):
            W = main[2 * i]; B = main[2 * i + 1]
            for k in range(b):
                h = H[t, i, k]
                fo = 1.0 / (1.0 + np.exp(-(x[k] * W[k] + B[k])))
                ig = 1.0 / (1.0 + np.exp(-(h * W[b + k] + B[b + k])))
                og = 1.0 / (1.0 + np.exp(-(x[k] * W[2 * b + k] + B[2 * b + k])))
                ch = np.tanh(h * W[3 * b + k] + B[3 * b + k])
                cc = Cc[t, i, k] * fo + ig * ch
                tc = np.tanh(cc)
                Cc[t + 1, i, k] = cc
                x[k] = og * tc
                H[t + 1, i, k] = x[k]
                G[t, i, 0, k] = fo; G[t, i, 1, k] = ig; G[t, i, 2, k] = og; G[t, i, 3, k] = ch; G[t, i, 4, k] = tc
        s = 2.0
        for k in range(b):
            E[t, k] = np.exp(x[k] * extra[1, k] + extra[2, k])
            s += E[t, k]
        S[t] = s
        lse = np.log(s)
        for k in range(b):
            loss += seq[t + 1, k] * (x[k] * extra[1, k] + extra[2, k] - lse)
    sc = -1.0 / (T * b)
    gm = np.zeros_like(main); ge = np.zeros_like(extra)
    bh = np.zeros((L, b)); bc = np.zeros((L, b)); bx = np.empty(b)
    for t in range(T - 1, -1, -1):
        tot = 0.0
        for k in range(b):
            tot += seq[t + 1, k]
        for k in range(b):
            by = sc * (seq[t + 1, k] - tot * E[t, k] / S[t])
            ge[1, k] += by * H[t + 1, L - 1, k]
            ge[2, k] += by
            bx[k] = by * extra[1, k]
        for i in range(L - 1, -1, -1):
            W = main[2 * i]
            for k in range(b):
                xin = H[t + 1, i - 1, k] if i > 0 else seq[t, k] * extra[0, k]
                fo = G[t, i, 0, k]; ig = G[t, i, 1, k]; og = G[t, i, 2, k]; ch = G[t, i, 3, k]; tc = G[t, i, 4, k]
                d = bh[i, k] + bx[k]
                dc = bc[i, k] + d * og * (1.0 - tc * tc)
                zo = d * tc * og * (1.0 - og)
                zf = dc * Cc[t, i, k] * fo * (1.0 - fo)
                zi = dc * ch * ig * (1.0 - ig)
                zc = dc * ig * (1.0 - ch * ch)
                h = H[t, i, k]
                gm[2 * i, k] += zf * xin; gm[2 * i + 1, k] += zf
                gm[2 * i, b + k] += zi * h; gm[2 * i + 1, b + k] += zi
                gm[2 * i, 2 * b + k] += zo * xin; gm[2 * i + 1, 2 * b + k] += zo
                gm[2 * i, 3 * b + k] += zc * h; gm[2 * i + 1, 3 * b + k] += zc
                bx[k] = zf * W[k] + zo * W[2 * b + k]
                bh[i, k] = zi * W[b + k] + zc * W[3 * b + k]
                bc[i, k] = dc * fo
        for k in range(b):
            ge[0, k] += bx[k] * seq[t, k]
    return loss * sc, (gm, ge)


VALUE_AND_GRAD = {"nbody": nbody_vg, "heat2d": heat_vg, "lstm": lstm_vg}
