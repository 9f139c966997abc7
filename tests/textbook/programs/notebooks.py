# SPDX-License-Identifier: Apache-2.0
"""More programs: classes, simulation, tables, geometry, chemistry, economics, with scipy; as in notebooks."""
import math

import numpy as np
import scipy.special as sp
from scipy.integrate import cumulative_trapezoid, simpson, trapezoid
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student_t

R = np.random.default_rng(37)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


class Layer:
    def __init__(self, W, b, act="relu"):
        self.W, self.b, self.act = W, b, act
    def forward(self, x):
        self.x = x
        self.z = x @ self.W + self.b
        if self.act == "relu":
            return np.maximum(self.z, 0)
        elif self.act == "tanh":
            return np.tanh(self.z)
        return self.z
    def penalty(self):
        return np.sum(self.W ** 2)


class MLP:
    def __init__(self, layers):
        self.layers = layers
    def __call__(self, x):
        for l in self.layers:
            x = l.forward(x)
        return x
    @property
    def reg(self):
        return sum(l.penalty() for l in self.layers)
    @staticmethod
    def mse(a, b):
        return ((a - b) ** 2).mean()


@add(R.normal(size=(3, 4)), np.zeros(4), R.normal(size=(4, 2)), R.normal(size=2), R.normal(size=(5, 3)), R.normal(size=(5, 2)))
def class_based_mlp(W1, b1, W2, b2, X, Y):
    net = MLP([Layer(W1, b1, act="tanh"), Layer(W2, b2, act="linear")])
    pred = net(X)
    return MLP.mse(pred, Y) + 1e-2 * net.reg + 0.1 * np.abs(net.layers[0].z).mean()


@add(R.normal(size=(4, 3)), R.normal(size=3))
def manual_backprop_step(X, w):
    y = np.array([1.0, 0, 1, 0])
    for epoch in range(3):
        p = 1 / (1 + np.exp(-(X @ w)))
        grad = X.T @ (p - y) / len(y)
        w = w - 0.5 * grad
    p = 1 / (1 + np.exp(-(X @ w)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


@add(np.array([2.0, 1.5]), R.uniform(0.5, 3, size=8))
def gamma_mle(theta, x):
    k, s = theta
    return -np.sum((k - 1) * np.log(x) - x / s - k * np.log(s) - sp.gammaln(k))


@add(R.normal(size=5), 1.2, 4.0)
def scipy_stats_logpdf(x, scale, df):
    return (norm.logpdf(x, loc=0.3, scale=scale).sum() + student_t.logpdf(x, df).sum() + norm.cdf(x / scale).prod()
            + norm.ppf(0.3) * scale + norm.sf(x[0]))


@add(R.normal(size=2), R.normal(size=(2, 2)))
def mvn_logpdf(x, L):
    S = L @ L.T + np.eye(2)
    return multivariate_normal.logpdf(x, np.array([0.1, 0.2]), S)


@add(R.uniform(0.5, 2, size=8))
def scipy_integrate_rules(y):
    x = np.linspace(0, 2, 8) ** 1.5
    return trapezoid(y, x) * simpson(y, x=x) + cumulative_trapezoid(y, x, initial=0)[3]


@add(np.array([0.8, 0.4, 0.3]))
def cubic_cardano_roots(c):
    a, b, d = c
    p, q = b - a ** 2 / 3, 2 * a ** 3 / 27 - a * b / 3 + d
    disc = (q / 2) ** 2 + (p / 3) ** 3
    if disc >= 0:
        s = np.sqrt(disc)
        u, v = np.cbrt(-q / 2 + s), np.cbrt(-q / 2 - s)
        root = u + v - a / 3
    else:
        r = np.sqrt(-(p / 3) ** 3)
        root = 2 * np.cbrt(r) * np.cos(np.arccos(-q / (2 * r)) / 3) - a / 3
    w = np.roots(np.array([1.0, a, b, d])) if False else np.array([root])
    return root ** 2 + np.abs(w).sum()


@add(np.array([-0.6, 0.3]), 12)
def mandelbrot_smooth(c, maxit):
    z = 0j
    cc = c[0] + 1j * c[1]
    n = 0
    while abs(z) < 4 and n < maxit:
        z = z * z + cc
        n += 1
    return abs(z) ** 2 + z.real * n


@add(np.array([300.0, 2.0]), R.uniform(0.1, 0.5, size=3))
def peng_robinson_fugacity(TV, x):
    T, V = TV
    Tc, Pc, w = np.array([190.6, 305.3, 369.8]), np.array([4.6, 4.9, 4.2]), np.array([0.011, 0.099, 0.152])
    Rg = 8.314e-3
    x = x / x.sum()
    kappa = 0.37464 + 1.54226 * w - 0.26992 * w ** 2
    alpha = (1 + kappa * (1 - np.sqrt(T / Tc))) ** 2
    a = 0.45724 * Rg ** 2 * Tc ** 2 / Pc * alpha
    b = 0.0778 * Rg * Tc / Pc
    amix = sum(x[i] * x[j] * np.sqrt(a[i] * a[j]) * (1 - 0.02 * (i != j)) for i in range(3) for j in range(3))
    bmix = x @ b
    P = Rg * T / (V - bmix) - amix / (V * (V + bmix) + bmix * (V - bmix))
    A, B = amix * P / (Rg * T) ** 2, bmix * P / (Rg * T)
    Z = P * V / (Rg * T)
    return Z - 1 - np.log(Z - B) - A / (2 * np.sqrt(2) * B) * np.log((Z + (1 + np.sqrt(2)) * B) / (Z + (1 - np.sqrt(2)) * B))


@add(R.uniform(0.1, 1, size=4), R.uniform(0.1, 1, size=(3, 4)))
def reaction_network_stoichiometry(c0, k):
    S = np.array([[-1, 1, 0], [1, -1, -2], [0, 0, 1], [0, 0, 1]])
    c = c0.copy()
    hist = np.empty((6, 4))
    for t in range(6):
        hist[t] = c
        r = np.array([k[0, 0] * c[0], k[1, 1] * c[1], k[2, 2] * c[1] ** 2 / (1 + c[3])])
        c += 0.05 * S @ r
        np.clip(c, 1e-8, None, out=c)
    return hist[-1] @ k[0] + np.mean(np.diff(hist, axis=0) ** 2)


@add(R.uniform(0.5, 1.5, size=(4,)), 0.96, 0.33)
def ramsey_growth_path(k0, beta, alpha):
    total = 0.0
    for k in k0:
        v, disc = 0.0, 1.0
        for t in range(5):
            y = k ** alpha
            s = alpha * beta
            c = (1 - s) * y
            v += disc * np.log(c)
            k = s * y
            disc *= beta
        total += v
    return total / len(k0)


@add(R.uniform(0.2, 1, size=(3, 3)), R.uniform(1, 2, size=3))
def leontief_input_output(A, d):
    A = 0.5 * A / A.sum(axis=0)
    x = np.linalg.solve(np.eye(3) - A, d)
    mult = np.ones(3) @ np.linalg.inv(np.eye(3) - A)
    linkage = x / x.mean()
    return x @ mult + np.prod(linkage)


@add(R.uniform(1, 2, size=(3, 2)), R.uniform(0.5, 1, size=3), R.uniform(1, 2, size=2))
def ces_demand_equilibrium(shares, incomes, p0):
    p = p0.copy()
    supply = np.array([3.0, 2.5])
    sigma = 0.8
    for it in range(15):
        w = shares * p ** (1 - sigma)
        w /= w.sum(axis=1, keepdims=True)
        demand = (w * incomes[:, None] / p).sum(axis=0)
        excess = demand - supply
        if np.max(np.abs(excess)) < 1e-13:
            break
        p *= 1 + 0.3 * excess / supply
    return np.log(p).sum() + excess @ excess


@add(R.normal(size=(12, 2)))
def var1_impulse_response(Y):
    X, Z = Y[1:], np.c_[np.ones(len(Y) - 1), Y[:-1]]
    B = np.linalg.solve(Z.T @ Z, Z.T @ X)
    A = B[1:].T
    U = X - Z @ B
    P = np.linalg.cholesky(U.T @ U / len(U))
    irf = np.eye(2)
    out = []
    for h in range(4):
        out.append(irf @ P)
        irf = A @ irf
    fevd = np.cumsum(np.array(out) ** 2, axis=0)
    return (fevd[-1] / fevd[-1].sum(1, keepdims=True))[0, 1] + np.linalg.norm(out[-1])


@add(R.normal(size=(6, 2)), R.normal(size=6))
def two_stage_least_squares(Z, y):
    x = Z @ np.array([0.5, -0.2]) + 0.3 * y
    X = np.column_stack((np.ones_like(x), x))
    Zc = np.hstack((np.ones((6, 1)), Z))
    Pz = Zc @ np.linalg.pinv(Zc)
    b = np.linalg.inv(X.T @ Pz @ X) @ X.T @ Pz @ y
    e = y - X @ b
    sargan = (e @ Pz @ e) / (e @ e / 6)
    return b[1] + sargan


@add(R.uniform(0, 1, size=(3, 10)))
def probit_tobit_loglik(u):
    x = u[0] * 2 - 1
    y = (u[1] > 0.4).astype(float)
    b = np.array([u[2, 0], u[2, 1]])
    z = b[0] + b[1] * x
    q = 2 * y - 1
    probit = np.sum(np.log(norm.cdf(q * z)))
    ystar = np.maximum(0, x + 0.2)
    tob = np.where(ystar > 0, norm.logpdf(ystar - z), np.log(1 - norm.cdf(z)))
    return probit + tob.sum()


@add(R.uniform(0.1, 0.9, size=4), 3)
def ewens_and_wright_fisher(p, gens):
    N = 6
    T = np.zeros((N + 1, N + 1))
    for i in range(N + 1):
        q = i / N * (1 + p[0]) / (1 + p[0] * i / N) * (1 - p[1] * 0.1) + (1 - i / N) * 0.05 * p[2]
        for j in range(N + 1):
            T[i, j] = sp.comb(N, j) * q ** j * (1 - q) ** (N - j)
    dist = np.zeros(N + 1)
    dist[2] = 1.0
    for _ in range(gens):
        dist = dist @ T
    return dist @ np.arange(N + 1) * p[3]


@add(R.normal(size=(5, 3)), np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]]), R.normal(size=(3, 3)))
def graph_convolution_edges(H, edges, W):
    n = len(H)
    deg = np.bincount(edges.ravel(), minlength=n)
    agg = np.zeros_like(H)
    for i, j in edges:
        agg[i] += H[j] / np.sqrt(deg[i] * deg[j])
        agg[j] += H[i] / np.sqrt(deg[i] * deg[j])
    msg = np.zeros_like(H)
    np.add.at(msg, edges[:, 0], H[edges[:, 1]])
    np.add.at(msg, edges[:, 1], H[edges[:, 0]])
    Z = np.maximum((agg + H) @ W, 0)
    score = np.zeros(n)
    mx = np.array([msg[edges[:, 0] == k].max() if np.any(edges[:, 0] == k) else 0.0 for k in range(n)])
    return Z.sum() + np.sum(msg ** 2) * 0.1 + mx.sum() + score.sum()


@add(R.normal(size=(4, 4)), R.normal(size=4))
def crf_logpartition(trans, unary):
    alpha = unary
    for t in range(3):
        m = alpha[:, None] + trans + 0.1 * t * unary[None, :]
        mx = m.max(axis=0)
        alpha = mx + np.log(np.exp(m - mx).sum(axis=0))
    return np.logaddexp.reduce(alpha)


@add(R.normal(size=(5, 4)), np.array([1, 2, 1]))
def ctc_forward(logits, labels):
    p = np.exp(logits - logits.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    ext = np.zeros(2 * len(labels) + 1, dtype=int)
    ext[1::2] = labels
    S, T = len(ext), len(p)
    a = np.zeros((T, S))
    a[0, 0] = p[0, ext[0]]
    a[0, 1] = p[0, ext[1]]
    for t in range(1, T):
        for s in range(S):
            v = a[t - 1, s]
            if s > 0:
                v = v + a[t - 1, s - 1]
            if s > 1 and ext[s] != 0 and ext[s] != ext[s - 2]:
                v += a[t - 1, s - 2]
            a[t, s] = v * p[t, ext[s]]
    return -np.log(a[-1, -1] + a[-1, -2])


@add(R.normal(size=(4, 6)), R.normal(size=(6, 3)), R.normal(size=(6, 3)))
def gru_and_layernorm(X, Wz, Wh):
    def layernorm(v, eps=1e-5):
        return (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + eps)
    h = np.zeros(3)
    outs = []
    for x in X:
        xh = np.concatenate([x[:3], h])
        z = 1 / (1 + np.exp(-xh @ Wz))
        cand = np.tanh(np.r_[x[3:], z * h] @ Wh)
        h = (1 - z) * h + z * cand
        outs.append(layernorm(h))
    return np.square(np.vstack(outs)).sum(axis=0) @ np.arange(3) + h.sum()


@add(R.normal(size=(3, 5)), R.normal(size=(4, 5)), 0.5)
def contrastive_infonce(A, B, tau):
    a = A / np.linalg.norm(A, axis=1, keepdims=True)
    b = B / np.linalg.norm(B, axis=1, keepdims=True)
    sim = a @ b.T / tau
    pos = np.diagonal(sim)
    neg = sp.logsumexp(sim, axis=1)
    hard = np.sort(sim, axis=1)[:, -2:].mean()
    return np.mean(neg - pos) + 0.1 * hard


@add(R.normal(size=(6, 3)), R.normal(size=(3, 2)), R.normal(size=2))
def vae_elbo(X, W, logvar):
    rng = np.random.default_rng(0)
    mu = X @ W
    eps = rng.standard_normal(mu.shape)
    z = mu + np.exp(0.5 * logvar) * eps
    recon = z @ W.T
    kl = -0.5 * np.sum(1 + logvar - mu ** 2 - np.exp(logvar), axis=1)
    return np.mean(np.sum((recon - X) ** 2, axis=1) + kl)


@add(R.normal(size=(5, 2)), R.uniform(0.1, 1, size=5))
def weighted_huber_irls(X, w):
    y = X[:, 0] * 2 + np.array([0.1, -3.0, 0.2, 5.0, 0.3])
    beta = np.zeros(2)
    for it in range(6):
        r = y - X @ beta
        s = np.median(np.abs(r - np.median(r))) / 0.6745
        u = np.abs(r) / (1.345 * s)
        wt = w * np.where(u <= 1, 1.0, 1 / u)
        beta = np.linalg.solve(X.T @ (X * wt[:, None]), X.T @ (wt * y))
    return beta @ beta


@add(R.normal(size=9))
def lowpass_resample_zeropad(x):
    n = len(x)
    X = np.fft.fft(x)
    Y = np.zeros(2 * n, dtype=complex)
    half = n // 2 + 1
    Y[:half] = X[:half]
    Y[-(n - half):] = X[half:]
    up = np.real(np.fft.ifft(Y)) * 2
    X2 = np.fft.rfft(up)
    X2[np.abs(X2) < 0.5] = 0
    return np.sum(np.fft.irfft(X2, 2 * n)[::3] ** 2) + np.sum(np.abs(np.fft.fftshift(X))[1:3])


@add(R.normal(size=(4, 4)))
def dct_blocks_quantised(B):
    n = 4
    k = np.arange(n)
    C = np.sqrt(2 / n) * np.cos(np.pi * (2 * k[None] + 1) * k[:, None] / (2 * n))
    C[0] /= np.sqrt(2)
    D = C @ B @ C.T
    Q = 0.1 + np.add.outer(k, k) * 0.05
    soft = D - np.sin(2 * np.pi * D / Q) * Q / (2 * np.pi)
    zz = np.concatenate([np.diagonal(soft[::-1], i)[::(2 * (i % 2) - 1)] for i in range(1 - n, n)])
    return np.sum((C.T @ soft @ C - B) ** 2) + zz[:8] @ np.arange(8)


@add(R.uniform(0, 1, size=(5, 5)), np.array([1.5, 2.5]))
def active_contour_energy(img, centre):
    th = np.linspace(0, 2 * np.pi, 9)[:-1]
    pts = centre[:, None] + 1.2 * np.array([np.cos(th), np.sin(th)])
    gy, gx = np.gradient(img)
    mag = np.sqrt(gx ** 2 + gy ** 2 + 1e-6)
    def sample(a, r, c):
        r = np.clip(r, 0, 3.999)
        c = np.clip(c, 0, 3.999)
        i, j = r.astype(int), c.astype(int)
        u, v = r - i, c - j
        return (1 - u) * (1 - v) * a[i, j] + u * (1 - v) * a[i + 1, j] + (1 - u) * v * a[i, j + 1] + u * v * a[i + 1, j + 1]
    d1 = np.roll(pts, -1, 1) - pts
    d2 = np.roll(pts, -1, 1) - 2 * pts + np.roll(pts, 1, 1)
    return (d1 ** 2).sum() + 0.5 * (d2 ** 2).sum() - sample(mag, *pts).sum()


@add(R.uniform(0.2, 1, size=(4, 3)), np.array([0.5, 0.5, 0.7]))
def phong_shading_normals(normals, light):
    N = normals / np.linalg.norm(normals, axis=1)[:, None]
    L = light / np.linalg.norm(light)
    V = np.array([0, 0, 1.0])
    ndotl = N @ L
    Rv = 2 * ndotl[:, None] * N - L
    spec = np.where(ndotl > 0, np.maximum(Rv @ V, 0) ** 8, 0)
    col = 0.1 + 0.7 * np.maximum(ndotl, 0) + 0.4 * spec
    return np.mean(np.clip(col, 0, 1) ** (1 / 2.2))


@add(np.array([0.9, 0.1]), np.array([45.0, 50.0]), np.array([7.0, 9.0]))
def geodetic_to_ecef_enu(h, lat, lon):
    a, e2 = 6378.137, 6.69437999014e-3
    la, lo = np.radians(lat), np.radians(lon)
    N = a / np.sqrt(1 - e2 * np.sin(la) ** 2)
    xyz = np.array([(N + h) * np.cos(la) * np.cos(lo), (N + h) * np.cos(la) * np.sin(lo), (N * (1 - e2) + h) * np.sin(la)])
    d = xyz[:, 1] - xyz[:, 0]
    s, c, sl, cl = np.sin(la[0]), np.cos(la[0]), np.sin(lo[0]), np.cos(lo[0])
    M = np.array([[-sl, cl, 0], [-s * cl, -s * sl, c], [c * cl, c * sl, s]])
    e, n, u = M @ d
    return np.hypot(e, n) + np.arctan2(e, n) + u


@add(R.uniform(0.1, 0.9, size=6), 2451545.0)
def orbit_elements_to_state(el, jd):
    a, e, i, Om, w, M = 1 + el[0], el[1] * 0.5, *el[2:]
    E = M
    for _ in range(8):
        E -= (E - e * math.sin(E) - M) / (1 - e * math.cos(E))
    x, y = a * (math.cos(E) - e), a * math.sqrt(1 - e ** 2) * math.sin(E)
    cO, sO, cw, sw, ci, si = map(lambda f, v: f(v), (math.cos, math.sin) * 3, (Om, Om, w, w, i, i))
    Pm = [[cO * cw - sO * sw * ci, -cO * sw - sO * cw * ci], [sO * cw + cO * sw * ci, -sO * sw + cO * cw * ci], [sw * si, cw * si]]
    pos = [p[0] * x + p[1] * y for p in Pm]
    return pos[0] * pos[1] + pos[2] + jd * 1e-7 * a
