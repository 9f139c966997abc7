# SPDX-License-Identifier: Apache-2.0
"""Programs by loops, entry by entry, beside what a user of JAX writes: values and gradients, in float64, on one core.

    python benchmarks/by_loops.py [NAME ...] [--rounds 40]

Layers of a network, attention, recurrences, dynamic programmes, finite differences, sums over pairs: as they stand in
books, with a loop for each index.  The JAX version has products of matrices, rolls and `lax.scan`, since loops over
entries cannot be compiled there in reasonable time.  The table is that of everyday.py.
"""
import numpy as np
from everyday import jax, jnp, main, normal, rng


def two_layers(W, b, V, c, X, Y):
    n, d = X.shape
    m = W.shape[0]
    q = V.shape[0]
    loss = 0.0
    for i in range(n):
        h = np.zeros(m)
        for j in range(m):
            s = b[j]
            for k in range(d):
                s += W[j, k] * X[i, k]
            h[j] = np.tanh(s)
        for o in range(q):
            s = c[o]
            for j in range(m):
                s += V[o, j] * h[j]
            loss += (s - Y[i, o]) ** 2
    return loss / n


def two_layers_jax(W, b, V, c, X, Y):
    h = jnp.tanh(X @ W.T + b)
    o = h @ V.T + c
    return jnp.sum((o - Y) ** 2) / X.shape[0]


def kernel_sum(X, y):
    n, d = X.shape
    t = 0.0
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(d):
                s += (X[i, k] - X[j, k]) ** 2
            t += y[i] * y[j] * np.exp(-0.1 * s)
    return t


def kernel_sum_jax(X, y):
    d = jnp.sum((X[:, None] - X[None]) ** 2, -1)
    K = jnp.exp(-0.1 * d)
    return y @ K @ y


def attention(Q, K, V):
    n, d = Q.shape
    out = np.zeros((n, d))
    for i in range(n):
        s = np.zeros(n)
        for j in range(n):
            for k in range(d):
                s[j] += Q[i, k] * K[j, k]
            s[j] = s[j] / 4.0
        top = np.max(s)
        z = 0.0
        for j in range(n):
            s[j] = np.exp(s[j] - top)
            z += s[j]
        for j in range(n):
            for k in range(d):
                out[i, k] += s[j] / z * V[j, k]
    return np.sum(np.sin(out))


def attention_jax(Q, K, V):
    S = Q @ K.T / 4.0
    P = jax.nn.softmax(S, axis=1)
    return jnp.sum(jnp.sin(P @ V))


def convolution(x, w):
    c, h, wd = x.shape
    o = w.shape[0]
    y = np.zeros((o, h - 2, wd - 2))
    for p in range(o):
        for i in range(h - 2):
            for j in range(wd - 2):
                s = 0.0
                for q in range(c):
                    for a in range(3):
                        for b in range(3):
                            s += w[p, q, a, b] * x[q, i + a, j + b]
                y[p, i, j] = max(s, 0.0)
    return np.sum(y * y)


def convolution_jax(x, w):
    y = jax.lax.conv_general_dilated(x[None], w, (1, 1), 'VALID')[0]
    return jnp.sum(jax.nn.relu(y) ** 2)


def recurrent(W, U, b, X):
    T, d = X.shape
    n = W.shape[0]
    h = np.zeros(n)
    loss = 0.0
    for t in range(T):
        g = np.zeros(n)
        for i in range(n):
            s = b[i]
            for j in range(n):
                s += W[i, j] * h[j]
            for k in range(d):
                s += U[i, k] * X[t, k]
            g[i] = np.tanh(s)
        h = g
        for i in range(n):
            loss += h[i] * h[i]
    return loss


def recurrent_jax(W, U, b, X):

    def step(h, x):
        h = jnp.tanh(W @ h + U @ x + b)
        return (h, jnp.sum(h * h))
    _, losses = jax.lax.scan(step, jnp.zeros(30), X)
    return jnp.sum(losses)


def factorisation(U, V, R, M):
    n, k = U.shape
    m = V.shape[0]
    t = 0.0
    for i in range(n):
        for j in range(m):
            if M[i, j]:
                s = 0.0
                for q in range(k):
                    s += U[i, q] * V[j, q]
                t += (R[i, j] - s) ** 2
    for i in range(n):
        for q in range(k):
            t += 0.1 * U[i, q] ** 2
    for j in range(m):
        for q in range(k):
            t += 0.1 * V[j, q] ** 2
    return t


def factorisation_jax(U, V, R, M):
    return jnp.sum(M * (R - U @ V.T) ** 2) + 0.1 * (jnp.sum(U * U) + jnp.sum(V * V))


def mixture(X, mu, ls, lw):
    n, d = X.shape
    K = mu.shape[0]
    zw = 0.0
    for k in range(K):
        zw += np.exp(lw[k])
    t = 0.0
    a = np.zeros(K)
    for i in range(n):
        for k in range(K):
            s = lw[k] - np.log(zw)
            for j in range(d):
                z = (X[i, j] - mu[k, j]) * np.exp(-ls[k, j])
                s -= ls[k, j] + 0.5 * z * z
            a[k] = s
        top = np.max(a)
        q = 0.0
        for k in range(K):
            q += np.exp(a[k] - top)
        t += top + np.log(q)
    return t


def mixture_jax(X, mu, ls, lw):
    z = (X[:, None] - mu) * jnp.exp(-ls)
    a = jax.nn.log_softmax(lw) - jnp.sum(ls, 1) - 0.5 * jnp.sum(z * z, -1)
    return jnp.sum(jax.nn.logsumexp(a, axis=1))


def distances(X, m, L):
    n, d = X.shape
    t = 0.0
    for i in range(n):
        q = 0.0
        for a in range(d):
            s = 0.0
            for b in range(d):
                s += L[a, b] * (X[i, b] - m[b])
            q += s * s
        t += np.log1p(q)
    return t


def distances_jax(X, m, L):
    Z = (X - m) @ L.T
    return jnp.sum(jnp.log1p(jnp.sum(Z * Z, 1)))


def power_iteration(A, x):
    n = A.shape[0]
    v = x.copy()
    for _ in range(30):
        y = np.zeros(n)
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += A[i, j] * v[j]
            for j in range(n):
                y[j] += A[i, j] * s
        z = 0.0
        for i in range(n):
            z += y[i] * y[i]
        for i in range(n):
            v[i] = y[i] / np.sqrt(z)
    t = 0.0
    for i in range(n):
        for j in range(n):
            t += v[i] * A[i, j] * v[j]
    return t


def power_iteration_jax(A, x):

    def b(x, _):
        y = A.T @ (A @ x)
        return (y / jnp.sqrt(y @ y), None)
    x, _ = jax.lax.scan(b, x, None, length=30)
    return x @ (A @ x)


def implicit_heat(u, k):
    n = u.shape[0]
    v = u.copy()
    cp = np.zeros(n)
    dp = np.zeros(n)
    for _ in range(10):
        c = 0.0
        d = 0.0
        for i in range(n):
            a = -0.1 * np.exp(0.1 * k[i])
            b = 1 + 0.2 * np.exp(0.1 * k[i])
            m = b - a * c
            d = (v[i] - a * d) / m
            c = a / m
            cp[i] = c
            dp[i] = d
        x = 0.0
        for i in range(n - 1, -1, -1):
            x = dp[i] - cp[i] * x
            v[i] = x
    return np.sum(v * v)


def implicit_heat_jax(u, k):
    kk = jnp.exp(0.1 * k)

    def step(u, _):
        a = -0.1 * kk
        b = 1 + 0.2 * kk

        def fw(c, x):
            cp, dp = c
            ai, bi, di = x
            m = bi - ai * cp
            return ((ai / m, (di - ai * dp) / m), (ai / m, (di - ai * dp) / m))
        _, (cp, dp) = jax.lax.scan(fw, (0.0, 0.0), (a, b, u))

        def bw(x, c):
            cp, dp = c
            v = dp - cp * x
            return (v, v)
        _, v = jax.lax.scan(bw, 0.0, (cp, dp), reverse=True)
        return (v, None)
    u, _ = jax.lax.scan(step, u, None, length=10)
    return jnp.sum(u * u)


def softmax_regression(W, b, X, y):
    n, d = X.shape
    c = W.shape[0]
    t = 0.0
    for i in range(n):
        z = np.zeros(c)
        for k in range(c):
            z[k] = b[k]
            for j in range(d):
                z[k] += W[k, j] * X[i, j]
        top = np.max(z)
        s = 0.0
        for k in range(c):
            s += np.exp(z[k] - top)
        t -= z[y[i]] - top - np.log(s)
    return t / n


def softmax_regression_jax(W, b, X, y):
    z = X @ W.T + b
    return -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(150), y])


def lstm(W, U, b, X):
    T, d = X.shape
    n = 16
    h = np.zeros(n)
    s = np.zeros(n)
    g = np.zeros(4 * n)
    for t in range(T):
        for i in range(4 * n):
            z = b[i]
            for k in range(d):
                z += W[i, k] * X[t, k]
            for j in range(n):
                z += U[i, j] * h[j]
            g[i] = z
        for j in range(n):
            s[j] = s[j] / (1 + np.exp(-g[n + j])) + np.tanh(g[3 * n + j]) / (1 + np.exp(-g[j]))
            h[j] = np.tanh(s[j]) / (1 + np.exp(-g[2 * n + j]))
    return np.sum(h * h)


def lstm_jax(W, U, b, X):

    def step(c, x):
        h, s = c
        g = W @ x + U @ h + b
        i, f_, o, u = jnp.split(g, 4)
        s = jax.nn.sigmoid(f_) * s + jax.nn.sigmoid(i) * jnp.tanh(u)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return ((h, s), None)
    (h, s), _ = jax.lax.scan(step, (jnp.zeros(16), jnp.zeros(16)), X)
    return jnp.sum(h * h)


def best_path(T, E):
    n, k = E.shape
    v = E[0].copy()
    for t in range(1, n):
        w = np.zeros(k)
        for j in range(k):
            m = -np.inf
            for i in range(k):
                m = max(m, v[i] + T[i, j])
            w[j] = m + E[t, j]
        v = w
    return np.max(v)


def best_path_jax(T, E):

    def st(v, e):
        return (jnp.max(v[:, None] + T, axis=0) + e, None)
    v, _ = jax.lax.scan(st, E[0], E[1:])
    return jnp.max(v)


def upwind(u, c):
    n = u.shape[0]
    v = u.copy()
    w = np.zeros(n)
    for _ in range(50):
        for i in range(n):
            w[i] = v[i] - 0.3 * (c[i] * v[i] - c[i - 1] * v[i - 1])
        for i in range(n):
            v[i] = w[i]
    s = 0.0
    for i in range(n):
        s += v[i] ** 2
    return s


def upwind_jax(u, c):

    def step(u, _):
        fl = c * u
        up = u - 0.3 * (fl - jnp.roll(fl, 1))
        return (up, None)
    u, _ = jax.lax.scan(step, u, None, length=50)
    return jnp.sum(u ** 2)


def bodies(x, v, m):
    n = x.shape[0]
    p = x.copy()
    w = v.copy()
    for _ in range(10):
        a = np.zeros((n, 3))
        for i in range(n):
            for j in range(n):
                if i != j:
                    r2 = 0.01
                    for k in range(3):
                        r2 += (p[j, k] - p[i, k]) ** 2
                    c = m[j] * r2 ** (-1.5)
                    for k in range(3):
                        a[i, k] += c * (p[j, k] - p[i, k])
        for i in range(n):
            for k in range(3):
                w[i, k] += 0.01 * a[i, k]
                p[i, k] += 0.01 * w[i, k]
    e = 0.0
    for i in range(n):
        for k in range(3):
            e += p[i, k] ** 2 + m[i] * w[i, k] ** 2
    return e


def bodies_jax(x, v, m):

    def acc(x):
        d = x[None] - x[:, None]
        r2 = jnp.sum(d * d, -1) + 0.01
        return jnp.einsum('ijk,ij,j->ik', d, r2 ** (-1.5), m)

    def st(c, _):
        x, v = c
        v = v + 0.01 * acc(x)
        x = x + 0.01 * v
        return ((x, v), None)
    (x, v), _ = jax.lax.scan(st, (x, v), None, length=10)
    return jnp.sum(x * x) + jnp.sum(m[:, None] * v * v)


def diffusion(u, k):
    n, m = u.shape
    v = u.copy()
    for _ in range(20):
        w = v.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                bend = v[i + 1, j] + v[i - 1, j] + v[i, j + 1] + v[i, j - 1] - 4 * v[i, j]
                w[i, j] = v[i, j] + 0.1 * np.exp(0.1 * k[i, j]) * bend
        v = w
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += v[i, j] ** 2
    return s


def diffusion_jax(u, k):

    def st(u, _):
        c = jnp.exp(0.1 * k[1:-1, 1:-1])
        bend = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return (u.at[1:-1, 1:-1].add(0.1 * c * bend), None)
    u, _ = jax.lax.scan(st, u, None, length=20)
    return jnp.sum(u * u)


def factor(B):
    n = B.shape[0]
    A = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += B[i, k] * B[j, k]
            A[i, j] = s
        A[i, i] += 1.0
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    t = 0.0
    for i in range(n):
        t += np.log(L[i, i])
        for j in range(i + 1):
            t += L[i, j]
    return t


def factor_jax(B):
    A = B @ B.T + jnp.eye(24)
    L = jnp.linalg.cholesky(A)
    return jnp.sum(jnp.log(jnp.diag(L))) + jnp.sum(L)


def bisection(x, y, q):
    n = x.shape[0]
    s = 0.0
    for i in range(q.shape[0]):
        lo = 0
        hi = n - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            if x[mid] < q[i]:
                lo = mid
            else:
                hi = mid
        t = (q[i] - x[lo]) / (x[lo + 1] - x[lo])
        v = (1 - t) * y[lo] + t * y[lo + 1]
        s += np.sin(v) ** 2
    return s


def bisection_jax(x, y, q):
    k = jnp.clip(jnp.searchsorted(x, q) - 1, 0, 28)
    h = x[k + 1] - x[k]
    t = (q - x[k]) / h
    v = (1 - t) * y[k] + t * y[k + 1]
    return jnp.sum(jnp.sin(v) ** 2)


def lattice(sig, S):
    n = 64
    t = 0.0
    for q in range(sig.shape[0]):
        dt = 1.0 / n
        u = np.exp(sig[q] * np.sqrt(dt))
        d = 1 / u
        p = (np.exp(0.05 * dt) - d) / (u - d)
        disc = np.exp(-0.05 * dt)
        v = np.zeros(n + 1)
        for j in range(n + 1):
            v[j] = max(S[q] * u ** (2 * j - n) - 100.0, 0.0)
        for k in range(n):
            for j in range(n - k):
                v[j] = disc * (p * v[j + 1] + (1 - p) * v[j])
        t += v[0]
    return t


def lattice_jax(sig, S):
    n = 64
    dt = 1.0 / n
    u = jnp.exp(sig * jnp.sqrt(dt))
    d = 1 / u
    p = (jnp.exp(0.05 * dt) - d) / (u - d)
    disc = jnp.exp(-0.05 * dt)
    j = jnp.arange(n + 1)
    v = jnp.maximum(S[:, None] * u[:, None] ** (2 * j - n) - 100.0, 0)
    for _ in range(n):
        v = disc * (p[:, None] * v[:, 1:] + (1 - p)[:, None] * v[:, :-1])
    return jnp.sum(v)


def training(W, X, Y):
    n, d = X.shape
    m = W.shape[1]
    V = W.copy()
    for _ in range(10):
        G = np.zeros((d, m))
        for i in range(n):
            for j in range(m):
                s = 0.0
                for k in range(d):
                    s += X[i, k] * V[k, j]
                h = np.tanh(s)
                g = 2 * (h - Y[i, j]) * (1 - h * h) / (n * m)
                for k in range(d):
                    G[k, j] += g * X[i, k]
        for k in range(d):
            for j in range(m):
                V[k, j] -= 0.1 * G[k, j]
    loss = 0.0
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(d):
                s += X[i, k] * V[k, j]
            loss += (np.tanh(s) - Y[i, j]) ** 2
    return loss / (n * m)


def training_jax(W, X, Y):

    def loss(W):
        return jnp.mean((jnp.tanh(X @ W) - Y) ** 2)
    for _ in range(10):
        W = W - 0.1 * jax.grad(loss)(W)
    return loss(W)


def mean_field(h):
    n, k = h.shape
    m = np.zeros((n, k))
    for _ in range(30):
        g = np.zeros((n, k))
        for i in range(n):
            for j in range(k):
                nb = m[(i + 1) % n, j] + m[(i - 1) % n, j] + m[i, (j + 1) % k] + m[i, (j - 1) % k]
                g[i, j] = np.tanh(0.3 * nb + h[i, j])
        m = g
    s = 0.0
    for i in range(n):
        for j in range(k):
            s += m[i, j] * h[i, j]
    return s


def mean_field_jax(h):

    def st(m, _):
        nb = jnp.roll(m, 1, 0) + jnp.roll(m, -1, 0) + jnp.roll(m, 1, 1) + jnp.roll(m, -1, 1)
        return (jnp.tanh(0.3 * nb + h), None)
    m, _ = jax.lax.scan(st, jnp.zeros((24, 24)), None, length=30)
    return jnp.sum(m * h)


def string(u0, c):
    n = u0.shape[0]
    u = u0.copy()
    v = u0.copy()
    for _ in range(60):
        w = np.zeros(n)
        for i in range(n):
            bend = u[i - 1] + u[(i + 1) % n] - 2 * u[i]
            w[i] = 2 * u[i] - v[i] + 0.1 * np.exp(-c[i] * c[i]) * bend
        v = u
        u = w
    s = 0.0
    for i in range(n):
        s += u[i] ** 2
    return s


def string_jax(u0, c):

    def st(s, _):
        u, v = s
        bend = jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u
        return ((2 * u - v + 0.1 * jnp.exp(-c * c) * bend, u), None)
    (u, v), _ = jax.lax.scan(st, (u0, u0), None, length=60)
    return jnp.sum(u * u)


PROGRAMS = {
    two_layers: lambda: (normal(size=(60, 40)) * 0.2, normal(size=60), normal(size=(10, 60)) * 0.2,
                         normal(size=10), normal(size=(80, 40)), normal(size=(80, 10))),
    kernel_sum: lambda: (normal(size=(120, 12)), normal(size=120)),
    attention: lambda: (normal(size=(48, 16)), normal(size=(48, 16)), normal(size=(48, 16))),
    convolution: lambda: (normal(size=(4, 20, 20)), normal(size=(6, 4, 3, 3))),
    recurrent: lambda: (normal(size=(30, 30)) * 0.2, normal(size=(30, 8)) * 0.3, normal(size=30),
                        normal(size=(50, 8))),
    factorisation: lambda: (normal(size=(60, 8)), normal(size=(50, 8)), normal(size=(60, 50)),
                            rng.random((60, 50)) < 0.3),
    mixture: lambda: (normal(size=(200, 5)), normal(size=(8, 5)), normal(size=(8, 5)), normal(size=8)),
    distances: lambda: (normal(size=(150, 10)), normal(size=10), normal(size=(10, 10))),
    power_iteration: lambda: (normal(size=(40, 40)), normal(size=40)),
    implicit_heat: lambda: (normal(size=100), normal(size=100)),
    softmax_regression: lambda: (normal(size=(12, 20)) * 0.3, normal(size=12), normal(size=(150, 20)),
                                 rng.integers(0, 12, 150)),
    lstm: lambda: (normal(size=(64, 24)) * 0.2, normal(size=(64, 16)) * 0.2, normal(size=64) * 0.1,
                   normal(size=(30, 24))),
    best_path: lambda: (normal(size=(12, 12)), normal(size=(60, 12))),
    upwind: lambda: (rng.uniform(0, 1, 200), rng.uniform(0.5, 1.0, 200)),
    bodies: lambda: (normal(size=(30, 3)), normal(size=(30, 3)) * 0.1, rng.uniform(0.5, 1.5, 30)),
    diffusion: lambda: (normal(size=(40, 40)), normal(size=(40, 40))),
    factor: lambda: (normal(size=(24, 24)) * 0.1,),
    bisection: lambda: (np.sort(rng.uniform(0, 1, 30)), normal(size=30), rng.uniform(0.1, 0.9, 400)),
    lattice: lambda: (rng.uniform(0.1, 0.4, 64), rng.uniform(80, 120, 64)),
    training: lambda: (normal(size=(20, 20)) * 0.2, normal(size=(64, 20)), normal(size=(64, 20))),
    mean_field: lambda: (normal(size=(24, 24)),),
    string: lambda: (normal(size=128), normal(size=128)),
}

if __name__ == "__main__":
    main(PROGRAMS)
