# SPDX-License-Identifier: Apache-2.0
"""Short programs as they are written every day, beside JAX: values and gradients, in float64, on one core.

    python benchmarks/everyday.py [NAME ...] [--rounds 40]

Each is what a person would write in a few lines: attention, a Kalman filter, a Gaussian process, k-means, bilinear
interpolation, dynamic time warping.  JAX runs the same lines where it can, with jax.numpy for numpy; where the program
has loops or writes into arrays, the lines that a user of JAX would write, with jax.lax.scan and library functions.

The table: the largest difference of a gradient, beside JAX's, as a part of its largest entry; milliseconds in the
median, in turns; seconds of the first call.
"""
import argparse
import time
import types

import numpy as np

import gradscribe as gs

try:
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = jnp = None

rng = np.random.default_rng(0)
normal = rng.normal


def attention(x, wq, wk, wv):
    q = x @ wq
    k = x @ wk
    v = x @ wv
    s = q @ k.T / np.sqrt(64.0)
    s = s - np.max(s, axis=1, keepdims=True)
    e = np.exp(s)
    p = e / np.sum(e, axis=1, keepdims=True)
    return np.sum((p @ v) ** 2)


def attention_heads(q, k, v):
    s = q @ np.swapaxes(k, 1, 2) / 4.0
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    return np.sum((p @ v) ** 2)


def layernorm(x, g, b):
    m = np.mean(x, axis=1, keepdims=True)
    v = np.var(x, axis=1, keepdims=True)
    y = (x - m) / np.sqrt(v + 1e-05) * g + b
    return np.sum(np.tanh(y) ** 2)


def embedding(y, p):
    d = np.sum((y[:, None, :] - y[None, :, :]) ** 2, axis=-1)
    q = 1.0 / (1.0 + d)
    q = q * (1.0 - np.eye(150))
    q = q / np.sum(q)
    return np.sum(p * np.log((p + 1e-09) / (q + 1e-09)))


def kmeans(x, c):
    d = np.sum(x * x, axis=1)[:, None] - 2 * x @ c.T + np.sum(c * c, axis=1)
    return np.sum(np.min(d, axis=1))


def factorisation(u, v, i, j, y):
    e = np.sum(u[i] * v[j], axis=1) - y
    return np.sum(e * e) + 0.1 * np.sum(u * u) + 0.1 * np.sum(v * v)


def option(s0, sigma, rate, z):
    dt = 1.0 / 50
    paths = s0 * np.exp(np.cumsum((rate - 0.5 * sigma ** 2) * dt + sigma * np.sqrt(dt) * z, axis=1))
    pay = np.maximum(np.mean(paths, axis=1) - 100.0, 0.0)
    return np.exp(-rate) * np.mean(pay)


def spectral_filter(x, h):
    y = np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h))
    return np.sum(np.tanh(y))


def convolve(x, h):
    y = np.convolve(x, h, mode='same')
    return np.sum(y * y)


def robot_arm(q, lengths):
    a = np.cumsum(q, axis=1)
    x = np.sum(lengths * np.cos(a), axis=1)
    y = np.sum(lengths * np.sin(a), axis=1)
    return np.sum((x - 1.0) ** 2 + (y - 0.5) ** 2)


def graph(h, w, s, t):
    m = np.tanh(h[s] @ w)
    a = np.zeros_like(h)
    np.add.at(a, t, m)
    return np.sum(a * a)


def graph_jax(h, w, s, t):
    m = jnp.tanh(h[s] @ w)
    a = jnp.zeros_like(h)
    a = a.at[t].add(m)
    return jnp.sum(a * a)


def quantile(x, w):
    s = np.sort(x)
    return np.sum(s * w) + np.median(x)


def einsum(a, b, c):
    y = np.einsum('ij,jki,k->i', a, b, c)
    return np.sum(np.sin(y))


def polynomial(x, c):
    y = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
    return np.sum(np.log(np.cosh(y)))


def cross_entropy(x, w, y):
    z = x @ w
    z = z - np.max(z, axis=1, keepdims=True)
    lp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.mean(lp[np.arange(256), y])


def autoencoder(x, w, v, eps):
    h = x @ w
    mu = h[:, :10]
    lv = h[:, 10:]
    z = mu + np.exp(0.5 * lv) * eps
    y = 1 / (1 + np.exp(-(np.concatenate([z, z * z], axis=1) @ v)))
    kl = -0.5 * np.sum(1 + lv - mu ** 2 - np.exp(lv))
    return kl + np.sum((y - x) ** 2)


def wave(u, c):
    v = np.zeros(400)
    u = u.copy()
    for _ in range(100):
        lap = np.zeros(400)
        lap[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        v = v + c * c * lap
        u = u + v
    return np.sum(u * u)


def wave_jax(u, c):

    def step(s, _):
        u, v = s
        lap = jnp.zeros(400).at[1:-1].set(u[2:] - 2 * u[1:-1] + u[:-2])
        v = v + c * c * lap
        return ((u + v, v), None)
    (u, v), _ = jax.lax.scan(step, (u, jnp.zeros(400)), None, length=100)
    return jnp.sum(u * u)


def kalman(ys, F, H, q):
    Q = q * np.eye(4)
    R = np.eye(2)
    x = np.zeros(4)
    P = np.eye(4)
    ll = 0.0
    for y in ys:
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        e = y - H @ x
        K = P @ H.T @ np.linalg.inv(S)
        ll = ll - 0.5 * (e @ np.linalg.solve(S, e) + np.log(np.linalg.det(S)))
        x = x + K @ e
        P = P - K @ H @ P
    return ll


def kalman_jax(ys, F, H, q):
    Q = q * jnp.eye(4)
    R = jnp.eye(2)

    def step(s, y):
        x, P, ll = s
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        e = y - H @ x
        K = P @ H.T @ jnp.linalg.inv(S)
        ll = ll - 0.5 * (e @ jnp.linalg.solve(S, e) + jnp.log(jnp.linalg.det(S)))
        return ((x + K @ e, P - K @ H @ P, ll), None)
    (x, P, ll), _ = jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4), 0.0), ys)
    return ll


def gated_network(xs, W, U, b):
    h = np.zeros(16)
    for x in xs:
        z = 1 / (1 + np.exp(-(U[:16] @ np.concatenate([x, h]) + b[:16])))
        r = 1 / (1 + np.exp(-(U[16:32] @ np.concatenate([x, h]) + b[16:32])))
        c = np.tanh(U[32:] @ np.concatenate([x, r * h]) + b[32:])
        h = (1 - z) * h + z * c
    return np.sum(h * h) + np.sum(W * W)


def gated_network_jax(xs, W, U, b):
    def step(h, x):
        a = U[:16] @ jnp.concatenate([x, h]) + b[:16]
        z = 1 / (1 + jnp.exp(-a))
        a2 = U[16:32] @ jnp.concatenate([x, h]) + b[16:32]
        rr = 1 / (1 + jnp.exp(-a2))
        c = jnp.tanh(U[32:] @ jnp.concatenate([x, rr * h]) + b[32:])
        return ((1 - z) * h + z * c, None)
    h, _ = jax.lax.scan(step, jnp.zeros(16), xs)
    return jnp.sum(h * h) + jnp.sum(W * W)


def conjugate_gradient(A, b):
    K = A @ A.T + 60 * np.eye(60)
    x = np.zeros(60)
    r = b
    p = b
    for _ in range(20):
        Kp = K @ p
        rr = r @ r
        a = rr / (p @ Kp)
        x = x + a * p
        r = r - a * Kp
        p = r + r @ r / rr * p
    return np.sum(x * x)


def conjugate_gradient_jax(A, b):
    K = A @ A.T + 60 * jnp.eye(60)

    def step(s, _):
        x, r, p = s
        Kp = K @ p
        rr = r @ r
        a = rr / (p @ Kp)
        x = x + a * p
        r = r - a * Kp
        p = r + r @ r / rr * p
        return ((x, r, p), None)
    (x, r, p), _ = jax.lax.scan(step, (jnp.zeros(60), b, b), None, length=20)
    return jnp.sum(x * x)


def conv2d(x, k, k2):
    y = np.zeros((24, 24))
    for i in range(5):
        for j in range(5):
            y += k[i, j] * x[i:i + 24, j:j + 24]
    y = np.maximum(y, 0)
    z = np.zeros((22, 22))
    for i in range(3):
        for j in range(3):
            z += k2[i, j] * y[i:i + 22, j:j + 22]
    return np.sum(z * z)


def conv2d_jax(x, k, k2):
    y = jax.lax.conv_general_dilated(x[None, None], k[None, None], (1, 1), 'VALID')
    y = jnp.maximum(y, 0)
    y = jax.lax.conv_general_dilated(y, k2[None, None], (1, 1), 'VALID')
    return jnp.sum(y * y)


def tridiagonal(d, lower, u, b):
    n = d.shape[0]
    c = np.zeros(n)
    e = np.zeros(n)
    c[0] = u[0] / d[0]
    e[0] = b[0] / d[0]
    for i in range(1, n):
        m = d[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = u[i] / m
        e[i] = (b[i] - lower[i - 1] * e[i - 1]) / m
    x = np.zeros(n)
    x[n - 1] = e[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = e[i] - c[i] * x[i + 1]
    return np.sum(x * x)


def tridiagonal_jax(d, lower, u, b):

    def fw(s, x):
        cp, dp = s
        di, li, ui, bi = x
        m = di - li * cp
        c = ui / m
        e = (bi - li * dp) / m
        return ((c, e), (c, e))
    u0 = jnp.concatenate([u, jnp.zeros(1)])
    l0 = jnp.concatenate([jnp.zeros(1), lower])
    _, (c, e) = jax.lax.scan(fw, (0.0, 0.0), (d, l0, u0, b))

    def bw(x, ce):
        c, e = ce
        x = e - c * x
        return (x, x)
    _, x = jax.lax.scan(bw, 0.0, (c, e), reverse=True)
    return jnp.sum(x * x)


def recurrent_network(xs, W, U, V):
    h = np.zeros((20, 32))
    loss = 0.0
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] @ W + h @ U)
        loss += np.sum((h @ V) ** 2)
    return loss


def recurrent_network_jax(xs, W, U, V):

    def step(h, x):
        h = jnp.tanh(x @ W + h @ U)
        return (h, jnp.sum((h @ V) ** 2))
    h, loss = jax.lax.scan(step, jnp.zeros((20, 32)), xs)
    return jnp.sum(loss)


def principal_axes(x, w):
    x = x - np.mean(x, axis=0)
    p = x @ w @ w.T
    return np.sum((x - p) ** 2) + np.sum((w.T @ w - np.eye(5)) ** 2)


def image_spectrum(x, m):
    k = np.fft.fft2(x) * m
    return np.sum(np.abs(k) ** 2)


def log_determinant(a):
    k = a @ a.T + 30 * np.eye(30)
    return np.linalg.slogdet(k)[1] + np.trace(np.linalg.inv(k))


def survival(s, x):
    c = np.cumprod(s, axis=1)
    return np.sum(np.where(x > 0, c * x, c * x * 0.1))


def spline(c, t):
    u = t * 196.0
    i = np.floor(u).astype(np.int64)
    w = u - i
    first, last = (1 - w) ** 3 / 6, w ** 3 / 6
    second, third = (3 * w ** 3 - 6 * w ** 2 + 4) / 6, (-3 * w ** 3 + 3 * w ** 2 + 3 * w + 1) / 6
    y = c[i] * first + c[i + 1] * second + c[i + 2] * third + c[i + 3] * last
    return np.sum(y * y)


def ising(s, j):
    m = np.tanh(s)
    e = -j * np.sum(m * np.roll(m, 1, axis=0) + m * np.roll(m, 1, axis=1))
    p = (1 + m) / 2
    return e + np.sum(p * np.log(p) + (1 - p) * np.log(1 - p))


def sparse_product(v, c, p, x):
    y = np.zeros(300)
    for i in range(300):
        s = 0.0
        for k in range(p[i], p[i + 1]):
            s += v[k] * x[c[k]]
        y[i] = np.tanh(s)
    return np.sum(y * y)


def sparse_product_jax(v, c, p, x):
    y = jnp.zeros(300).at[jnp.repeat(jnp.arange(300), 5)].add(v * x[c])
    return jnp.sum(jnp.tanh(y) ** 2)


def bilinear(im, px, py):
    t = 0.0
    for k in range(px.shape[0]):
        i = int(px[k])
        j = int(py[k])
        a = px[k] - i
        b = py[k] - j
        left = (1 - b) * im[i, j] + b * im[i, j + 1]
        right = (1 - b) * im[i + 1, j] + b * im[i + 1, j + 1]
        v = (1 - a) * left + a * right
        t += v * v
    return t


def bilinear_jax(im, px, py):
    i = jnp.floor(px).astype(int)
    j = jnp.floor(py).astype(int)
    a = px - i
    b = py - j
    left = (1 - b) * im[i, j] + b * im[i, j + 1]
    right = (1 - b) * im[i + 1, j] + b * im[i + 1, j + 1]
    v = (1 - a) * left + a * right
    return jnp.sum(v * v)


def alignment(a, b):
    n = a.shape[0]
    m = b.shape[0]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            c = (a[i] - b[j]) ** 2
            D[i + 1, j + 1] = c + min(D[i, j + 1], D[i + 1, j], D[i, j])
    return D[n, m]


def alignment_jax(a, b):
    d = (a[:, None] - b[None]) ** 2

    def row(prev, di):

        def cell(left, x):
            dij, up, diag = x
            m = jnp.minimum(jnp.minimum(left, up), diag)
            v = dij + m
            return (v, v)
        _, cur = jax.lax.scan(cell, jnp.inf, (di, prev[1:], prev[:-1]))
        cur = jnp.concatenate([jnp.array([jnp.inf]), cur])
        return (cur, None)
    init = jnp.concatenate([jnp.zeros(1), jnp.full(60, jnp.inf)])
    last, _ = jax.lax.scan(row, init, d)
    return last[-1]


def lorenz_rate(x, p):
    return np.array([p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]])


def lorenz(x, p):
    h = 0.01
    for _ in range(200):
        k1 = lorenz_rate(x, p)
        k2 = lorenz_rate(x + h / 2 * k1, p)
        k3 = lorenz_rate(x + h / 2 * k2, p)
        k4 = lorenz_rate(x + h * k3, p)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(x * x)


def lorenz_jax(x, p):

    def g(x):
        return jnp.array([p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]])

    def step(x, _):
        h = 0.01
        k1 = g(x)
        k2 = g(x + h / 2 * k1)
        k3 = g(x + h / 2 * k2)
        k4 = g(x + h * k3)
        return (x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None)
    x, _ = jax.lax.scan(step, x, None, length=200)
    return jnp.sum(x * x)


def double_well(x, k, noise):
    for t in range(noise.shape[0]):
        x = x - 0.01 * (4 * x * (x * x - 1) + k * x) + 0.1 * noise[t]
    return np.mean(x ** 2)


def double_well_jax(x, k, noise):

    def step(x, z):
        return (x - 0.01 * (4 * x * (x * x - 1) + k * x) + 0.1 * z, None)
    x, _ = jax.lax.scan(step, x, noise)
    return jnp.mean(x ** 2)


def three_layers(x, w1, w2, w3, b1, b2):
    h = np.maximum(x @ w1 + b1, 0.0)
    h = np.maximum(h @ w2 + b2, 0.0)
    return np.mean((h @ w3) ** 2)


def gauss_mix(x, mu, w, s):
    d = (x[:, None, :] - mu) / s
    lp = -0.5 * np.sum(d * d, axis=2) - np.sum(np.log(s), axis=1) + w
    m = np.max(lp, axis=1)
    return np.sum(m + np.log(np.sum(np.exp(lp - m[:, None]), axis=1)))


def batchnorm_conv1d(x, w):
    y = np.zeros((16, 8, 60))
    for k in range(5):
        y += np.einsum('bct,oc->bot', x[:, :, k:k + 60], w[:, :, k])
    y = (y - np.mean(y, axis=(0, 2), keepdims=True)) / np.sqrt(np.var(y, axis=(0, 2), keepdims=True) + 1e-05)
    return np.sum(np.tanh(y) ** 3)


def batchnorm_conv1d_jax(x, w):
    y = jax.lax.conv_general_dilated(x, w, (1,), 'VALID')
    y = (y - jnp.mean(y, axis=(0, 2), keepdims=True)) / jnp.sqrt(jnp.var(y, axis=(0, 2), keepdims=True) + 1e-05)
    return jnp.sum(jnp.tanh(y) ** 3)


def sinkhorn(C):
    K = np.exp(-C / 0.5)
    u = np.ones(60)
    v = np.ones(60)
    for _ in range(30):
        u = 1 / 60 / (K @ v)
        v = 1 / 60 / (K.T @ u)
    return np.sum(u[:, None] * K * v * C)


def sinkhorn_jax(C):
    K = jnp.exp(-C / 0.5)

    def step(uv, _):
        u, v = uv
        u = 1 / 60 / (K @ v)
        v = 1 / 60 / (K.T @ u)
        return ((u, v), None)
    (u, v), _ = jax.lax.scan(step, (jnp.ones(60), jnp.ones(60)), None, length=30)
    return jnp.sum(u[:, None] * K * v * C)


def pendulums(s, length):
    s = s.copy()
    for _ in range(100):
        for i in range(s.shape[0]):
            s[i, 1] -= 0.02 * 9.81 / length * np.sin(s[i, 0])
            s[i, 0] += 0.02 * s[i, 1]
    return np.sum(s * s)


def pendulums_jax(s, length):

    def step(s, _):
        th, om = (s[:, 0], s[:, 1])
        om = om - 0.02 * 9.81 / length * jnp.sin(th)
        th = th + 0.02 * om
        return (jnp.stack([th, om], 1), None)
    s, _ = jax.lax.scan(step, s, None, length=100)
    return jnp.sum(s * s)


def mapped_distances(x, q):

    def one(a):
        d = np.sqrt(np.sum((q - a) ** 2, axis=1) + 1e-06)
        return np.sum(np.exp(-d) / d)
    return np.sum(gs.vmap(one)(x))


def mapped_distances_jax(x, q):

    def one(a):
        d = jnp.sqrt(jnp.sum((q - a) ** 2, axis=1) + 1e-06)
        return jnp.sum(jnp.exp(-d) / d)
    return jnp.sum(jax.vmap(one)(x))


def autoregression(y, a, s):
    t = 0.0
    for i in range(3, y.shape[0]):
        m = 0.0
        for k in range(3):
            m += a[k] * y[i - 1 - k]
        t += (y[i] - m) ** 2 / s + np.log(s)
    return t


def autoregression_jax(y, a, s):
    e = y[3:] - a[0] * y[2:-1] - a[1] * y[1:-2] - a[2] * y[:-3]
    return jnp.sum(e * e) / s + 1997 * jnp.log(s)


def garch(r, p):
    h = 1.0
    t = 0.0
    for i in range(r.shape[0]):
        h = p[0] + p[1] * r[i] * r[i] + p[2] * h
        t += np.log(h) + r[i] * r[i] / h
    return t


def garch_jax(r, p):

    def step(h, x):
        h = p[0] + p[1] * x * x + p[2] * h
        return (h, jnp.log(h) + x * x / h)
    _, loss = jax.lax.scan(step, 1.0, r)
    return jnp.sum(loss)


def markov(T, E, obs):
    T = T / np.sum(T, axis=1, keepdims=True)
    E = E / np.sum(E, axis=1, keepdims=True)
    a = np.full(5, 0.2)
    loss = 0.0
    for o in obs:
        a = a @ T * E[:, o]
        s = np.sum(a)
        a = a / s
        loss += np.log(s)
    return loss


def markov_jax(T, E, obs):
    T = T / jnp.sum(T, 1, keepdims=True)
    E = E / jnp.sum(E, 1, keepdims=True)

    def step(a, o):
        a = a @ T * E[:, o]
        s = jnp.sum(a)
        return (a / s, jnp.log(s))
    _, loss = jax.lax.scan(step, jnp.full(5, 0.2), obs)
    return jnp.sum(loss)


def gaussian_process(x, y, length, scale):
    d = (x[:, None] - x[None, :]) ** 2
    K = scale * np.exp(-0.5 * d / length ** 2) + 0.1 * np.eye(x.shape[0])
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y @ a + np.sum(np.log(np.diag(L)))


def gaussian_process_jax(x, y, length, scale):
    d = (x[:, None] - x[None, :]) ** 2
    K = scale * jnp.exp(-0.5 * d / length ** 2) + 0.1 * jnp.eye(x.shape[0])
    L = jnp.linalg.cholesky(K)
    a = jax.scipy.linalg.cho_solve((L, True), y)
    return 0.5 * y @ a + jnp.sum(jnp.log(jnp.diag(L)))


def filter_by_loops(x, h):
    n, taps = (x.shape[0], h.shape[0])
    y = np.zeros(n)
    for i in range(taps - 1, n):
        s = 0.0
        for k in range(taps):
            s += h[k] * x[i - k]
        y[i] = s
    return np.sum(y * y)


def filter_by_loops_jax(x, h):
    y = jnp.convolve(x, h, mode='valid')
    return jnp.sum(y * y)


def filter_taps_outside(x, h):
    n, taps = (x.shape[0], h.shape[0])
    y = np.zeros(n)
    for k in range(taps):
        for i in range(taps - 1, n):
            y[i] += h[k] * x[i - k]
    return np.sum(y * y)


def filter_taps_outside_jax(x, h):
    y = jnp.convolve(x, h, mode='valid')
    return jnp.sum(y * y)


def pieces(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] < -1.0:
            y[i] = np.tanh(x[i])
        elif x[i] < 1.0:
            y[i] = np.sin(x[i]) * x[i]
        else:
            y[i] = np.sqrt(x[i])
    return np.sum(y * y)


def pieces_jax(x):
    y = jnp.where(x < 1, jnp.sin(x) * x, jnp.sqrt(jnp.maximum(x, 1.0)))
    return jnp.sum(jnp.where(x < -1, jnp.tanh(x), y) ** 2)


def nearest(p, q):
    t = 0.0
    for i in range(p.shape[0]):
        best = 1e+30
        for j in range(q.shape[0]):
            d = (p[i, 0] - q[j, 0]) ** 2 + (p[i, 1] - q[j, 1]) ** 2
            if d < best:
                best = d
        t += np.sqrt(best)
    return t


def nearest_jax(p, q):
    d = ((p[:, None, :] - q[None]) ** 2).sum(-1)
    return jnp.sum(jnp.sqrt(d.min(1)))


PROGRAMS = {
    attention: lambda: (normal(size=(32, 64)), normal(size=(64, 64)), normal(size=(64, 64)), normal(size=(64, 64))),
    attention_heads: lambda: (normal(size=(4, 32, 16)), normal(size=(4, 32, 16)), normal(size=(4, 32, 16))),
    layernorm: lambda: (normal(size=(128, 256)), normal(size=256), normal(size=256)),
    embedding: lambda: (normal(size=(150, 2)), np.abs(normal(size=(150, 150)))),
    kmeans: lambda: (normal(size=(500, 8)), normal(size=(10, 8))),
    factorisation: lambda: (normal(size=(200, 16)), normal(size=(300, 16)), rng.integers(0, 200, 2000),
                            rng.integers(0, 300, 2000), normal(size=2000)),
    option: lambda: (np.float64(100.0), np.float64(0.2), np.float64(0.03), normal(size=(1000, 50))),
    spectral_filter: lambda: (normal(size=512), normal(size=512)),
    convolve: lambda: (normal(size=1000), normal(size=21)),
    robot_arm: lambda: (normal(size=(64, 7)), normal(size=7)),
    graph: lambda: (normal(size=(300, 8)), normal(size=(8, 8)), rng.integers(0, 300, 1500), rng.integers(0, 300, 1500)),
    quantile: lambda: (normal(size=1001), normal(size=1001)),
    einsum: lambda: (normal(size=(20, 30)), normal(size=(30, 40, 20)), normal(size=(40,))),
    polynomial: lambda: (normal(size=2000), 0.1 * normal(size=6)),
    cross_entropy: lambda: (normal(size=(256, 50)), normal(size=(50, 10)), rng.integers(0, 10, 256)),
    autoencoder: lambda: (normal(size=(32, 100)), 0.1 * normal(size=(100, 20)), normal(size=(20, 100)),
                          normal(size=(32, 10))),
    wave: lambda: (normal(size=400), np.float64(0.3)),
    kalman: lambda: (normal(size=(200, 2)), np.eye(4) + 0.1 * normal(size=(4, 4)), normal(size=(2, 4)),
                     np.float64(0.5)),
    gated_network: lambda: (normal(size=(50, 16)), 0.3 * normal(size=(48, 16)), 0.3 * normal(size=(48, 32)),
                            normal(size=48)),
    conjugate_gradient: lambda: (normal(size=(60, 60)), normal(size=60)),
    conv2d: lambda: (normal(size=(28, 28)), normal(size=(5, 5)), normal(size=(3, 3))),
    tridiagonal: lambda: (np.abs(normal(size=500)) + 4, normal(size=499), normal(size=499), normal(size=500)),
    recurrent_network: lambda: (normal(size=(30, 20, 8)), 0.3 * normal(size=(8, 32)), 0.3 * normal(size=(32, 32)),
                                normal(size=(32, 4))),
    principal_axes: lambda: (normal(size=(100, 30)), normal(size=(30, 5))),
    image_spectrum: lambda: (normal(size=(64, 64)), normal(size=(64, 64))),
    log_determinant: lambda: (normal(size=(30, 30)),),
    survival: lambda: (rng.uniform(0.5, 1.5, (200, 50)), normal(size=(200, 50))),
    spline: lambda: (normal(size=200), np.sort(rng.uniform(0, 1, 2000))),
    ising: lambda: (normal(size=(64, 64)), np.float64(0.4)),
    sparse_product: lambda: (normal(size=1500), rng.integers(0, 300, 1500), np.arange(0, 1501, 5), normal(size=300)),
    bilinear: lambda: (normal(size=(50, 50)), rng.uniform(0, 48, 800), rng.uniform(0, 48, 800)),
    alignment: lambda: (normal(size=60), normal(size=60)),
    lorenz: lambda: (np.array([1.0, 1.0, 1.0]), np.array([10.0, 28.0, 8 / 3])),
    double_well: lambda: (normal(size=1000), np.float64(0.5), normal(size=(100, 1000))),
    three_layers: lambda: (normal(size=(64, 20)), 0.3 * normal(size=(20, 50)), 0.3 * normal(size=(50, 50)),
                           0.3 * normal(size=(50, 1)), normal(size=50), normal(size=50)),
    gauss_mix: lambda: (normal(size=(400, 3)), normal(size=(6, 3)), normal(size=6), np.abs(normal(size=(6, 3))) + 0.5),
    batchnorm_conv1d: lambda: (normal(size=(16, 4, 64)), normal(size=(8, 4, 5))),
    sinkhorn: lambda: (np.abs(normal(size=(60, 60))),),
    pendulums: lambda: (normal(size=(50, 2)), np.float64(1.3)),
    mapped_distances: lambda: (normal(size=(100, 3)), normal(size=(20, 3))),
    autoregression: lambda: (normal(size=2000), np.array([0.5, -0.3, 0.1]), np.float64(0.1)),
    garch: lambda: (normal(size=1000), np.array([0.1, 0.2, 0.6])),
    markov: lambda: (np.abs(normal(size=(5, 5))) + 0.1, np.abs(normal(size=(5, 8))) + 0.1, rng.integers(0, 8, 200)),
    gaussian_process: lambda: (normal(size=200), normal(size=200), np.float64(0.7), np.float64(1.3)),
    filter_by_loops: lambda: (normal(size=2000), normal(size=21)),
    filter_taps_outside: lambda: (normal(size=2000), normal(size=21)),
    pieces: lambda: (2.0 * normal(size=10000),),
    nearest: lambda: (normal(size=(300, 2)), normal(size=(400, 2))),
}


def twin(function):
    """The JAX version: one of its own, or the same lines with jax.numpy."""
    own = function.__globals__.get(f"{function.__name__}_jax")
    return own or types.FunctionType(function.__code__, {**globals(), "np": jnp})


def measured(function, args, rounds):
    """A row of the table."""
    wrt = tuple(k for k, a in enumerate(args) if np.asarray(a).dtype.kind == "f")
    ours, theirs = gs.jit(gs.value_and_grad(function, wrt)), jax.jit(jax.value_and_grad(twin(function), wrt))
    given = tuple(map(jnp.asarray, args))
    first = []
    for call, a in ((ours, args), (theirs, given)):
        start = time.perf_counter()
        found = jax.block_until_ready(call(*a))
        first.append((time.perf_counter() - start, found[1]))
    (first_ours, got), (first_theirs, want) = first
    error = max(float(np.max(np.abs(a - np.asarray(b))) / (np.max(np.abs(np.asarray(b))) or 1.0))
                for a, b in zip(got, want))
    times: tuple = [], []
    for _ in range(rounds):
        for call, a, spent in ((ours, args, times[0]), (theirs, given, times[1])):
            start = time.perf_counter()
            jax.block_until_ready(call(*a))
            spent.append(time.perf_counter() - start)
    return error, *(1e3 * float(np.median(t)) for t in times), first_ours, first_theirs


def main(programs):
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    print(f"{'program':22}{'error':>8}{'ours ms':>10}{'JAX ms':>9}{'JAX/ours':>10}{'first s':>9}{'JAX':>7}")
    ratios, firsts = [], []
    for function, args in programs.items():
        if options.names and function.__name__ not in options.names:
            continue
        error, ours, theirs, first, first_theirs = measured(function, args(), options.rounds)
        ratios.append(theirs / ours)
        firsts.append(first / first_theirs)
        print(f"{function.__name__:22}{error:8.0e}{ours:10.4f}{theirs:9.4f}{theirs / ours:10.2f}{first:9.2f}"
              f"{first_theirs:7.2f}", flush=True)
    print(f"{len(ratios)} programs: JAX/ours {np.exp(np.mean(np.log(ratios))):.2f} (geometric mean), at least 1 in "
          f"{sum(r >= 1 for r in ratios)}; first calls {np.exp(np.mean(np.log(firsts))):.2f} times JAX's")


if __name__ == "__main__":
    main(PROGRAMS)
