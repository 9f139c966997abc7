# SPDX-License-Identifier: Apache-2.0
"""Finance, biology, machine learning, statistics."""
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import erf, expit, gammaln, logsumexp

R = np.random.default_rng(11)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


@add(100.0, 95.0, 0.03, 0.25, 1.5, "call")
def black_scholes(S, K, r, sigma, T, kind="call"):
    d1 = (np.log(S / K) + (r + sigma ** 2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    N = lambda z: 0.5 * (1 + erf(z / np.sqrt(2)))
    if kind == "call":
        return S * N(d1) - K * np.exp(-r * T) * N(d2)
    elif kind == "put":
        return K * np.exp(-r * T) * N(-d2) - S * N(-d1)
    raise ValueError(f"unknown kind {kind!r}")


@add(100.0, 105.0, 0.03, 0.25, 1.0)
def american_put_binomial(S, K, r, sigma, T):
    n = 12
    dt = T / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(r * dt) - d) / (u - d)
    disc = math.exp(-r * dt)
    j = np.arange(n + 1)
    prices = S * u ** (n - j) * d ** j
    v = np.maximum(K - prices, 0)
    for i in range(n - 1, -1, -1):
        prices = prices[:-1] * d
        v = disc * (p * v[:-1] + (1 - p) * v[1:])
        v = np.maximum(v, K - prices)
    return v[0]


@add(0.04, 0.3, 0.05, 0.02, 100.0)
def vasicek_monte_carlo(r0, a, b, sigma, face):
    rng = np.random.default_rng(42)
    n_paths, n_steps, dt = 6, 8, 0.25
    r = np.full(n_paths, r0)
    integral = np.zeros(n_paths)
    for t in range(n_steps):
        integral += r * dt
        r += a * (b - r) * dt + sigma * np.sqrt(dt) * rng.standard_normal(n_paths)
    return face * np.exp(-integral).mean()


@add(np.array([0.02, 0.025, 0.03, 0.032]), np.array([1.0, 2.0, 3.0, 5.0]))
def bootstrap_curve(par, mat):
    df = {}
    for rate, T in zip(par, mat):
        years = int(T)
        annuity = 0.0
        for y in range(1, years):
            if y in df:
                annuity += df[y]
            else:
                lo, hi = max(k for k in df if k < y), y
                annuity += df[lo] * math.exp(-0.03 * (hi - lo))
        df[years] = (1 - rate * annuity) / (1 + rate)
    return sum(df.values())


@add(R.normal(size=(20, 4)) * 0.01, 2.5)
def markowitz(returns, lam):
    mu = returns.mean(axis=0)
    cov = np.cov(returns, rowvar=False) + 1e-4 * np.eye(4)
    ones = np.ones(4)
    inv1 = np.linalg.solve(cov, ones)
    invmu = np.linalg.solve(cov, mu)
    w = invmu / lam + (1 - ones @ invmu / lam) / (ones @ inv1) * inv1
    return w @ mu - lam / 2 * w @ cov @ w


@add(np.array([0.05, 0.1, 0.85]), R.normal(size=15))
def garch_loglik(theta, eps):
    omega, alpha, beta = theta
    h = np.empty_like(eps)
    h[0] = np.var(eps)
    for t in range(1, len(eps)):
        h[t] = omega + alpha * eps[t - 1] ** 2 + beta * h[t - 1]
    return 0.5 * np.sum(np.log(2 * np.pi * h) + eps ** 2 / h)


@add(R.uniform(90, 110, size=12), 3, 0.5)
def ema_crossover(prices, window, k):
    sma = np.convolve(prices, np.ones(window) / window, mode="valid")
    ema = [prices[0]]
    for p in prices[1:]:
        ema.append(k * p + (1 - k) * ema[-1])
    ema = np.array(ema)[window - 1:]
    signal = np.where(ema > sma, 1.0, -1.0)
    ret = np.diff(prices[window - 1:]) / prices[window - 1:-1]
    pnl = signal[:-1] * ret
    return np.sum(pnl) + np.mean(np.abs(ema - sma))


@add(R.normal(size=30), 0.88)
def var_and_es(losses, level):
    s = np.sort(losses)[::-1]
    k = int(np.ceil((1 - level) * len(s)))
    return s[k - 1] + s[:k].mean()


@add(np.array([5.0, 3.0]), np.array([0.6, 0.02, 0.5, 0.01]))
def lotka_volterra_heun(n0, p):
    state = {"prey": n0[0], "pred": n0[1]}
    a, b, c, d = p
    dt = 0.1
    for _ in range(10):
        x, y = state["prey"], state["pred"]
        fx, fy = a * x - b * x * y, -c * y + d * x * y
        xe, ye = x + dt * fx, y + dt * fy
        state["prey"] += dt / 2 * (fx + a * xe - b * xe * ye)
        state["pred"] += dt / 2 * (fy - c * ye + d * xe * ye)
    return state["prey"] * state["pred"]


class SIR:
    def __init__(self, beta, gamma, N=100.0):
        self.beta, self.gamma, self.N = beta, gamma, N
        self.reset()
    def reset(self):
        self.S, self.I, self.R = self.N - 1.0, 1.0, 0.0
    def step(self, dt=0.1):
        new = self.beta * self.S * self.I / self.N * dt
        rec = self.gamma * self.I * dt
        self.S -= new
        self.I += new - rec
        self.R += rec
        return self
    def run(self, n):
        peak = self.I
        for _ in range(n):
            self.step()
            peak = max(peak, self.I)
        return peak


@add(2.0, 0.3)
def sir_peak(beta, gamma):
    model = SIR(beta, gamma)
    peak = model.run(30)
    return peak + model.step().R


@add(R.uniform(0.1, 1, size=(3, 3)), R.uniform(0.5, 1, size=(3, 4)), np.array([0.2, 0.3, 0.5]), np.array([0, 1, 3, 2, 1, 0]))
def hmm_forward_scaled(Araw, Braw, pi, obs):
    A = Araw / Araw.sum(axis=1, keepdims=True)
    B = Braw / Braw.sum(1)[:, np.newaxis]
    alpha = pi * B[:, obs[0]]
    ll = 0.0
    for o in obs[1:]:
        c = alpha.sum()
        ll += np.log(c)
        alpha = (alpha / c) @ A * B[:, o]
    return ll + np.log(alpha.sum())


@add(R.normal(size=(3, 3)), R.normal(size=(3, 4)), np.array([0, 1, 3, 2, 1, 0]))
def viterbi_score(logA, logB, obs):
    T, n = len(obs), logA.shape[0]
    delta = np.zeros((T, n))
    psi = np.zeros((T, n), dtype=int)
    delta[0] = logB[:, obs[0]]
    for t in range(1, T):
        for j in range(n):
            scores = delta[t - 1] + logA[:, j]
            psi[t, j] = np.argmax(scores)
            delta[t, j] = scores[psi[t, j]] + logB[j, obs[t]]
    path = [int(np.argmax(delta[-1]))]
    for t in range(T - 1, 0, -1):
        path.insert(0, psi[t, path[0]])
    return delta[-1, path[-1]] ** 2


@add(R.normal(size=(4, 4)), "GATC", "GCAT", 1.2)
def needleman_wunsch(sub, a, b, gap):
    idx = {c: i for i, c in enumerate("ACGT")}
    n, m = len(a), len(b)
    F = np.zeros((n + 1, m + 1))
    F[:, 0] = -gap * np.arange(n + 1)
    F[0, :] = -gap * np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            match = F[i - 1, j - 1] + sub[idx[a[i - 1]], idx[b[j - 1]]]
            F[i, j] = max(match, F[i - 1, j] - gap, F[i, j - 1] - gap)
    return F[n, m]


@add(R.uniform(0.1, 0.5, size=4), R.uniform(0.1, 1, size=(5, 4)))
def felsenstein_pruning(lengths, leafprob):
    tree = ((0, 1), (2, (3, 4)))
    Q = np.ones((4, 4)) * 0.25 - np.eye(4)
    count = itertools.count()
    def transition(t):
        return 0.25 + np.exp(-t) * (np.eye(4) - 0.25)
    def partial(node):
        if isinstance(node, int):
            return leafprob[node]
        left, right = node
        k = depth(node)
        P = transition(lengths[k])
        return (P @ partial(left)) * (P @ partial(right))
    def depth(node):
        if isinstance(node, int):
            return 0
        return 1 + max(depth(c) for c in node)
    return np.log(0.25 * partial(tree).sum())


@add(R.normal(size=(8, 3)), R.normal(size=(3, 5)), R.normal(size=(5, 2)), np.array([0, 1, 1, 0, 1, 0, 0, 1]))
def mlp_crossentropy(X, W1, W2, y):
    h = np.maximum(0, X @ W1)
    logits = h @ W2
    logits -= logits.max(axis=1, keepdims=True)
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -logp[np.arange(len(y)), y].mean() + 0.01 * (np.sum(W1 ** 2) + np.sum(W2 ** 2))


@add(R.normal(size=(6, 2)), R.normal(size=(2, 2)))
def kmeans_inertia(X, centers):
    centers = centers.copy()
    for it in range(3):
        d = ((X[:, None, :] - centers[None]) ** 2).sum(-1)
        label = d.argmin(1)
        for k in range(len(centers)):
            members = X[label == k]
            if len(members):
                centers[k] = members.mean(axis=0)
    return sum(np.sum((X[label == k] - centers[k]) ** 2) for k in range(2))


@add(R.normal(size=(10, 2)), R.uniform(0.3, 0.7, size=2), R.normal(size=(2, 2)), R.normal(size=(2, 2, 2)))
def gaussian_mixture(X, w, mu, L):
    w = w / w.sum()
    K = len(w)
    lp = np.empty((len(X), K))
    for k in range(K):
        S = L[k] @ L[k].T + np.eye(2)
        d = X - mu[k]
        sol = np.linalg.solve(S, d.T).T
        sign, logdet = np.linalg.slogdet(S)
        lp[:, k] = np.log(w[k]) - 0.5 * (np.sum(d * sol, axis=1) + logdet + 2 * np.log(2 * np.pi))
    return -logsumexp(lp, axis=1).sum()


@add(R.normal(size=(4, 3)), R.normal(size=(5, 3)), R.normal(size=5), 0.1)
def gp_marginal(Xs, X, y, noise):
    def k(a, b):
        d2 = np.sum(a ** 2, 1)[:, None] + np.sum(b ** 2, 1) - 2 * a @ b.T
        return np.exp(-0.5 * d2)
    K = k(X, X) + noise * np.eye(len(X))
    Lc = np.linalg.cholesky(K)
    alpha = np.linalg.solve(Lc.T, np.linalg.solve(Lc, y))
    mean = k(Xs, X) @ alpha
    return -0.5 * y @ alpha - np.log(np.diag(Lc)).sum() + np.sum(mean)


@add(R.normal(size=(4, 3)), R.normal(size=(8, 3)), R.normal(size=(8, 2)), R.normal(size=8))
def lstm_cell_unrolled(xs, Wx, Wh, b):
    h, c = np.zeros(2), np.zeros(2)
    for x in xs:
        z = Wx @ x + Wh @ h + b
        i, f, o, g = np.split(z, 4)
        sig = lambda v: 1 / (1 + np.exp(-v))
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
    return h.sum() + (c ** 2).sum()


@add(R.normal(size=(3, 4)), R.normal(size=(4, 12)))
def attention_heads(x, Wqkv):
    T, D = x.shape
    q, k, v = np.split(x @ Wqkv, 3, axis=-1)
    heads = 2
    q, k, v = (t.reshape(T, heads, D // heads).transpose(1, 0, 2) for t in (q, k, v))
    att = q @ k.transpose(0, 2, 1) / np.sqrt(D // heads)
    mask = np.tril(np.ones((T, T)))
    att = np.where(mask == 0, -1e9, att)
    e = np.exp(att - att.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    y = (p @ v).transpose(1, 0, 2).reshape(T, D)
    return np.sum(y ** 2)


@add(R.normal(size=(1, 6, 6)), R.normal(size=(2, 1, 3, 3)), R.normal(size=2))
def conv_pool_layer(img, kernels, bias):
    C, H, W = img.shape
    F, _, kh, kw = kernels.shape
    out = np.zeros((F, H - kh + 1, W - kw + 1))
    for f in range(F):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[f, i, j] = np.sum(img[:, i:i + kh, j:j + kw] * kernels[f]) + bias[f]
    out[out < 0] = 0
    pooled = out.reshape(F, 2, 2, 2, 2).max(axis=(2, 4))
    return np.sum(pooled ** 2)


@add({"W": R.normal(size=(3, 2)), "b": R.normal(size=2)}, R.normal(size=(5, 3)), R.normal(size=(5, 2)))
def adam_steps_meta(params, X, Y):
    lr, b1, b2 = 0.1, 0.9, 0.999
    m = {k: np.zeros_like(v) for k, v in params.items()}
    s = {k: np.zeros_like(v) for k, v in params.items()}
    p = dict(params)
    for t in range(1, 4):
        err = X @ p["W"] + p["b"] - Y
        g = {"W": X.T @ err / len(X), "b": err.mean(0)}
        for name in p:
            m[name] = b1 * m[name] + (1 - b1) * g[name]
            s[name] = b2 * s[name] + (1 - b2) * g[name] ** 2
            mh = m[name] / (1 - b1 ** t)
            sh = s[name] / (1 - b2 ** t)
            p[name] = p[name] - lr * mh / (np.sqrt(sh) + 1e-8)
    return np.mean((X @ p["W"] + p["b"] - Y) ** 2)


@add(R.normal(size=(12, 3)), R.normal(size=12))
def ridge_gcv(X, y):
    best = np.inf
    for lam in (0.1, 1.0, 10.0):
        H = X @ np.linalg.inv(X.T @ X + lam * np.eye(3)) @ X.T
        r = y - H @ y
        score = np.mean(r ** 2) / (1 - np.trace(H) / len(y)) ** 2
        if score < best:
            best = score
    return best


@add(R.normal(size=(10, 3)), np.array([0, 1, 0, 1, 1, 0, 1, 0, 1, 1]), R.normal(size=3))
def logistic_irls(X, y, b0):
    beta = b0 * 0.1
    for it in range(4):
        p = expit(X @ beta)
        Wd = p * (1 - p)
        H = X.T @ (Wd[:, None] * X) + 0.1 * np.eye(3)
        g = X.T @ (y - p) - 0.1 * beta
        beta = beta + np.linalg.solve(H, g)
    return np.linalg.norm(beta)


@add(R.normal(size=(8, 2)), np.array([1, -1, 1, 1, -1, -1, 1, -1]), np.array([0.3, -0.2]), 0.1)
def svm_pegasos(X, y, w, lam):
    w = w.copy()
    for t, (xi, yi) in enumerate(zip(X, y), start=1):
        eta = 1 / (lam * (t + 10))
        if yi * (w @ xi) < 1:
            w = (1 - eta * lam) * w + eta * yi * xi
        else:
            w *= 1 - eta * lam
    hinge = np.maximum(0, 1 - y * (X @ w))
    return lam / 2 * w @ w + hinge.mean()


class Node(NamedTuple):
    feature: int
    threshold: float
    left: object
    right: object


@add(R.normal(size=(6, 2)), np.array([0.5, -0.3, 0.8]))
def soft_decision_tree(X, leaf):
    tree = Node(0, 0.1, Node(1, -0.2, 0, 1), 2)
    def predict(node, x):
        if isinstance(node, int):
            return leaf[node]
        s = 1 / (1 + np.exp(-3 * (x[node.feature] - node.threshold)))
        return (1 - s) * predict(node.left, x) + s * predict(node.right, x)
    return sum(predict(tree, row) ** 2 for row in X)


@add(R.normal(size=(5, 4)), R.normal(size=(3, 4)))
def batchnorm_dropout(x, W):
    rng = np.random.RandomState(0)
    z = x @ W.T
    mu, var = z.mean(0), z.var(0)
    zn = (z - mu) / np.sqrt(var + 1e-5)
    mask = (rng.rand(*zn.shape) > 0.3) / 0.7
    h = np.tanh(zn * mask)
    return np.sum(h[h > 0]) - np.sum(h[h <= 0] ** 3)


@add(R.normal(size=(7, 3)))
def pca_explained(X):
    Xc = X - X.mean(0)
    U, s, Vt = np.linalg.svd(Xc, full_matrices=False)
    scores = U[:, :2] * s[:2]
    ratio = s ** 2 / np.sum(s ** 2)
    recon = scores @ Vt[:2]
    return ratio[0] + np.sum((Xc - recon) ** 2) + np.abs(Vt[0]).sum()


@add(R.normal(size=(6, 2)), 1.0)
def tsne_kl(Y, perplexity):
    n = len(Y)
    X = np.random.default_rng(3).normal(size=(n, 4))
    def pairwise(Z):
        s = (Z ** 2).sum(1)
        return s[:, None] - 2 * Z @ Z.T + s[None, :]
    P = np.exp(-pairwise(X) / perplexity)
    np.fill_diagonal(P, 0)
    P /= P.sum()
    num = 1 / (1 + pairwise(Y))
    num[range(n), range(n)] = 0.0
    Q = np.maximum(num / num.sum(), 1e-12)
    P = np.maximum(P, 1e-12)
    return np.sum(P * np.log(P / Q))


@add(R.normal(size=(4, 3)), R.normal(size=(3, 4)))
def rbm_free_energy(v, W):
    wx = v @ W
    F = -np.log1p(np.exp(wx)).sum(axis=1)
    return F.mean() - np.mean(v, axis=0) @ W @ np.ones(4)


@add(R.uniform(0.1, 0.9, size=(4, 2)), np.array([0.5, 1.0]))
def q_learning(Q, r):
    Q = Q.copy()
    transitions = [(0, 1, 1), (1, 0, 2), (2, 1, 3), (3, 0, 0), (0, 0, 2)]
    for s, a, s2 in transitions:
        Q[s, a] += 0.5 * (r[a] + 0.9 * Q[s2].max() - Q[s, a])
    return np.sum(Q ** 2)


@add(R.uniform(0.1, 1, size=(4, 4)), R.normal(size=4))
def value_iteration(P, r):
    P = P / P.sum(1, keepdims=True)
    V = np.zeros(4)
    k = 0
    while (k := k + 1) < 15:
        V_new = r + 0.8 * P @ V
        if np.abs(V_new - V).max() < 1e-10: break
        V = V_new
    return V @ V


@add(R.uniform(0.1, 1, size=(4, 4)))
def pagerank(A):
    M = A / A.sum(axis=0)
    n = M.shape[0]
    rank = np.ones(n) / n
    for _ in range(10):
        rank = 0.85 * M.dot(rank) + 0.15 / n
        rank /= rank.sum()
    return -np.sum(rank * np.log(rank))


@add(R.normal(size=15), np.array([0.5, -0.3]), np.array([0.4]))
def arma_css(x, phi, theta):
    p, q = len(phi), len(theta)
    e = np.zeros_like(x)
    for t in range(max(p, q), len(x)):
        ar = np.dot(phi, x[t - p:t][::-1])
        ma = np.dot(theta, e[t - q:t][::-1])
        e[t] = x[t] - ar - ma
    s2 = np.mean(e[max(p, q):] ** 2)
    return 0.5 * len(x) * (np.log(2 * np.pi * s2) + 1)


@add(R.normal(size=10), 0.2, 0.5, 1.0)
def kalman_local_level(y, q, r, p0):
    a, P, ll = 0.0, p0, 0.0
    filtered = []
    for obs in y:
        P = P + q
        v = obs - a
        F = P + r
        K = P / F
        a, P = a + K * v, P * (1 - K)
        filtered.append((a, P))
        ll -= 0.5 * (np.log(2 * np.pi * F) + v * v / F)
    # RTS smoother
    s = filtered[-1][0]
    for a, P in reversed(filtered[:-1]):
        s = a + P / (P + q) * (s - a)
    return ll + s ** 2


@add(R.gamma(2.0, size=10), 1.5, 0.7)
def weibull_censored(t, shape, scale):
    cens = np.arange(10) % 3 == 0
    z = t / scale
    logf = np.log(shape / scale) + (shape - 1) * np.log(z) - z ** shape
    logS = -z ** shape
    return -np.sum(logf[~cens]) - np.sum(logS[cens])


@add(R.normal(size=8), R.normal(size=8) + 0.5)
def welch_and_mannwhitney(a, b):
    t = (a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    soft = np.mean(1 / (1 + np.exp(-np.subtract.outer(a, b) / 0.1)))
    return t ** 2 + soft


@add(R.normal(size=(9, 2)))
def kde_silverman(X):
    n, d = X.shape
    total = 0.0
    for j in range(d):
        col = X[:, j]
        q75, q25 = np.percentile(col, [75, 25])
        sigma = min(np.std(col, ddof=1), (q75 - q25) / 1.34)
        h = 0.9 * sigma * n ** (-0.2)
        K = np.exp(-0.5 * ((col[:, None] - col) / h) ** 2) / (h * np.sqrt(2 * np.pi))
        total += np.log(K.mean(axis=1)).sum()
    return total


@add(np.array([3.0, 1.0, 2.0, 5.0]), np.array([2, 0, 3, 4]))
def dirichlet_multinomial(alpha, counts):
    n, A = counts.sum(), alpha.sum()
    return gammaln(A) - gammaln(n + A) + np.sum(gammaln(counts + alpha) - gammaln(alpha)) + gammaln(n + 1) - sum(math.lgamma(c + 1) for c in counts)


@add(R.normal(size=(12,)), R.normal(size=(12, 2)))
def newey_west_se(y, X):
    b, *_ = np.linalg.lstsq(X, y, rcond=None)
    u = y - X @ b
    n = len(y)
    S = (X * u[:, None] ** 2).T @ X / n
    L = 2
    for l in range(1, L + 1):
        w = 1 - l / (L + 1)
        G = (X[l:] * u[l:, None]).T @ (X[:-l] * u[:-l, None]) / n
        S += w * (G + G.T)
    bread = np.linalg.inv(X.T @ X / n)
    V = bread @ S @ bread / n
    return np.sqrt(np.diag(V)).sum()


@add(R.uniform(0.5, 2, size=6))
def lorenz_gini(income):
    s = np.sort(income)
    n = s.size
    cum = np.cumsum(s) / np.sum(s)
    lorenz = np.insert(cum, 0, 0)
    area = np.trapezoid(lorenz, dx=1 / n) if hasattr(np, "trapezoid") else np.trapz(lorenz, dx=1 / n)
    theil = np.mean(s / s.mean() * np.log(s / s.mean()))
    return 1 - 2 * area + theil
