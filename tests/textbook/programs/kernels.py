# SPDX-License-Identifier: Apache-2.0
"""In-place kernels, index arithmetic, views with steps, masks, loops with exits; more fields."""
import functools

import numpy as np

R = np.random.default_rng(29)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


@add(R.normal(size=(5, 6)))
def seidel_2d(A):
    n, m = A.shape
    for t in range(2):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = (A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j]
                           + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]) / 9.0
    return np.sum(A ** 2)


@add(R.normal(size=(4, 5)), R.normal(size=(4, 5)), R.normal(size=(4, 5)))
def adi_inplace_sweep(X, A, B):
    B = 2.0 + B ** 2
    X = X.copy()
    for t in range(2):
        for i in range(1, X.shape[1]):
            X[:, i] -= X[:, i - 1] * A[:, i] / B[:, i - 1]
            B[:, i] -= 0.1 * A[:, i] ** 2 / B[:, i - 1]
        X[:, -1] /= B[:, -1]
        for i in range(X.shape[1] - 2, -1, -1):
            X[:, i] = (X[:, i] - X[:, i + 1] * A[:, i]) / B[:, i]
    return np.sum(X ** 2)


@add(R.normal(size=(4, 4)))
def cholesky_banachiewicz(M):
    A = M @ M.T + 4 * np.eye(4)
    n = A.shape[0]
    for j in range(n):
        A[j, j] = np.sqrt(A[j, j] - A[j, :j] @ A[j, :j])
        for i in range(j + 1, n):
            A[i, j] = (A[i, j] - A[i, :j] @ A[j, :j]) / A[j, j]
        A[j, j + 1:] = 0.0
    return np.log(np.diag(A)).sum() + A[3, 0]


@add(R.normal(size=(4, 4)))
def gauss_jordan_inverse(M):
    n = len(M)
    aug = np.hstack((M + 3 * np.eye(n), np.eye(n)))
    for c in range(n):
        p = c
        for r in range(c + 1, n):
            if abs(aug[r, c]) > abs(aug[p, c]):
                p = r
        if p != c:
            tmp = aug[c].copy()
            aug[c] = aug[p]
            aug[p] = tmp
        aug[c] /= aug[c, c]
        for r in range(n):
            if r != c:
                aug[r] -= aug[r, c] * aug[c]
    return np.sum(aug[:, n:] ** 2)


@add(R.normal(size=10))
def negative_steps(x):
    a = x[::-2]
    b = x[8:2:-3]
    y = x.copy()
    y[::-1][1:4] = a[:3]
    y[-1:-6:-2] += b[0] * x[:3]
    y[6::-3] *= y[::3][:3]
    return y @ x[::-1] + a @ a + y[::-1][::2].sum()


@add(R.normal(size=8))
def overlapping_shift_writes(x):
    x = x * 1.0
    x[1:] = x[:-1] * 0.5 + x[1:]
    x[:-1] = x[1:]
    x[2:6] += x[0:4]
    x[::2] -= x[1::2]
    x[3:] = x[2:-1][::-1]
    return np.sum(x * np.arange(8) ** 2)


@add(R.normal(size=8))
def self_referencing_fancy(x):
    x = x * 1.0
    x[[0, 1, 2]] = x[[2, 0, 1]]
    x[np.array([3, 4])] += x[np.array([4, 3])]
    x[x > 0] = x[x > 0][::-1]
    m = np.flatnonzero(x < 0)
    x[m] = x[m[::-1]] ** 2
    return x @ np.arange(8)


@add(R.normal(size=(6, 6)))
def summed_area_table(img):
    S = np.zeros((7, 7))
    S[1:, 1:] = img.cumsum(0).cumsum(1)
    out = 0.0
    k = 2
    for i in range(0, 6 - k + 1):
        for j in range(0, 6 - k + 1, 2):
            box = S[i + k, j + k] - S[i, j + k] - S[i + k, j] + S[i, j]
            out += box ** 2 / k ** 2
    return out


@add(R.normal(size=12), np.array([0.2, 0.3]))
def exponential_filter_with_reset(x, a):
    y = np.zeros_like(x)
    s = 0.0
    count = 0
    for i, v in enumerate(x):
        if abs(v) > 1.2:
            s, count = v, 0
            y[i] = s
            continue
        s = a[0] * v + (1 - a[0]) * s if count < 3 else a[1] * v + (1 - a[1]) * s
        count += 1
        y[i] = s
        if count == 6:
            break
    return np.sum(y ** 2) + count * s


@add(R.uniform(0.5, 1.5, size=6))
def bisection_implicit(c):
    def f(t):
        return np.polyval(c, t) - 5.0
    lo, hi = 0.0, 3.0
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if f(mid) > 0:
            hi = mid
        else:
            lo = mid
    t = 0.5 * (lo + hi)
    # one Newton step carries the derivative
    return t - f(t) / np.polyval(np.polyder(c), t)


@add(np.array([0.4, 1.2]), 1e-12)
def newton_2d_with_jacobian(p, tol):
    z = np.array([1.0, 1.0])
    it = 0
    while it < 50:
        F = np.array([z[0] ** 2 + z[1] - p[1], z[0] * z[1] - p[0]])
        if np.linalg.norm(F) < 1e-12:
            break
        J = np.array([[2 * z[0], 1.0], [z[1], z[0]]])
        dz = np.linalg.solve(J, -F)
        z = z + dz
        it += 1
    return z[0] * 3 + z[1] ** 2


@add(R.normal(size=5), R.normal(size=(5, 5)))
def gradient_descent_momentum_line_search(x, Q):
    A = Q @ Q.T + np.eye(5)
    def obj(z):
        return 0.5 * z @ A @ z - z.sum()
    v = np.zeros(5)
    for k in range(4):
        g = A @ x - 1
        v = 0.5 * v - 0.05 * g
        step = 1.0
        while obj(x + step * v) > obj(x) + 1.0 and step > 1e-3:
            step *= 0.5
        x = x + step * v
    return obj(x)


@add(R.uniform(0.2, 1, size=(3, 3)), R.uniform(0.2, 1, size=3))
def markov_absorbing(Q, r):
    Q = 0.8 * Q / Q.sum(1, keepdims=True)
    N = np.linalg.inv(np.eye(3) - Q)
    t = N @ np.ones(3)
    B = N * r
    var = (2 * N - np.eye(3)) @ t - t ** 2
    return t.sum() + B[0].sum() + np.sqrt(var).sum()


@add(np.array([0.3, 0.5, 0.2]), R.uniform(0, 1, size=(6,)))
def hawkes_intensity(p, gaps):
    mu, alpha, beta = p[0], p[1], 1 + p[2]
    times = np.cumsum(gaps)
    ll, A, last = 0.0, 0.0, None
    for i in range(len(times)):
        if i > 0:
            A = np.exp(-beta * (times[i] - times[i - 1])) * (1 + A)
        ll += np.log(mu + alpha * A)
    T = times[-1]
    comp = mu * T + alpha / beta * np.sum(1 - np.exp(-beta * (T - times)))
    return ll - comp


@add(R.uniform(0.1, 1, size=(3, 4)), R.uniform(0.1, 1, size=(4, 3)), R.uniform(1, 2, size=(3, 3)))
def nmf_multiplicative(W, H, V):
    W, H = W.copy(), H.copy()
    for _ in range(3):
        H *= (W.T @ V) / (W.T @ W @ H + 1e-9)
        W *= (V @ H.T) / (W @ H @ H.T + 1e-9)
    return np.sum((V - W @ H) ** 2)


@add(R.normal(size=(6, 3)))
def fastica_step(X):
    Xc = X - X.mean(0)
    C = Xc.T @ Xc / len(X)
    d, E = np.linalg.eigh(C)
    Z = Xc @ E / np.sqrt(d) @ E.T
    w = np.array([1.0, 0.5, -0.3])
    w /= np.sqrt(w @ w)
    for _ in range(3):
        g = np.tanh(Z @ w)
        w_new = (Z * g[:, None]).mean(0) - (1 - g ** 2).mean() * w
        w = w_new / np.linalg.norm(w_new)
    return np.mean(np.log(np.cosh(Z @ w))) + w[0]


@add(R.normal(size=(6, 2)), R.normal(size=(6,)))
def locally_weighted_regression(X, y):
    A = np.column_stack([np.ones(6), X])
    pred = np.zeros(6)
    for i in range(6):
        w = np.exp(-np.sum((X - X[i]) ** 2, axis=1) / 2)
        W = np.diag(w)
        beta = np.linalg.pinv(A.T @ W @ A) @ A.T @ W @ y
        pred[i] = A[i] @ beta
    return np.sum((pred - y) ** 2)


@add(R.normal(size=8), R.normal(size=8))
def lagged_cross_correlation(x, y):
    x = (x - np.mean(x)) / np.std(x)
    y = (y - np.mean(y)) / np.std(y)
    lags = range(-2, 3)
    r = []
    for k in lags:
        if k < 0:
            r.append(np.mean(x[:k] * y[-k:]))
        elif k == 0:
            r.append(np.mean(x * y))
        else:
            r.append(np.mean(x[k:] * y[:-k]))
    r = np.array(r)
    return r[np.argmax(np.abs(r))] + r @ r + np.corrcoef(x, y)[0, 1]


@add(R.normal(size=10))
def detrend_and_periodogram(x):
    t = np.arange(x.size)
    slope, icpt = np.polyfit(t, x, 1)
    r = x - (slope * t + icpt)
    f = np.fft.rfftfreq(x.size)
    P = np.abs(np.fft.rfft(r * np.hanning(x.size))) ** 2
    centroid = np.sum(f * P) / np.sum(P)
    flat = np.exp(np.mean(np.log(P[1:] + 1e-9))) / np.mean(P[1:])
    return centroid + flat + slope


@add(R.normal(size=(2, 3)), R.normal(size=4))
def savgol_and_hilbert(A, x):
    x = np.concatenate([x, A.ravel()])
    n = len(x)
    k = np.arange(-2, 3)
    C = np.linalg.pinv(np.vander(k, 3, increasing=True))
    pad = np.r_[2 * x[0] - x[2:0:-1], x, 2 * x[-1] - x[-2:-4:-1]]
    sm = np.array([C[0] @ pad[i:i + 5] for i in range(n)])
    X = np.fft.fft(sm)
    h = np.zeros(n)
    h[0] = h[n // 2] = 1
    h[1:n // 2] = 2
    env = np.abs(np.fft.ifft(X * h))
    return env.sum() + sm @ sm


@add(R.uniform(0.5, 1.5, size=5), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
def cashflow_irr_newton(cf, t):
    flows = cf - np.array([5.0, 0, 0, 0, 0])
    r = 0.05
    for _ in range(25):
        disc = (1 + r) ** -t
        f = np.sum(flows * disc)
        df = -np.sum(t * flows * (1 + r) ** (-t - 1))
        r_new = r - f / df
        if abs(r_new - r) < 1e-14:
            r = r_new
            break
        r = r_new
    return r


@add(100.0, 0.2, 0.05, np.array([0.3, -0.2, 0.5, 0.1, -0.4]))
def barrier_option_path(S0, sigma, r, z):
    S, alive, avg = S0, True, 0.0
    dt = 0.1
    for k, zk in enumerate(z):
        S *= np.exp((r - 0.5 * sigma ** 2) * dt + sigma * np.sqrt(dt) * zk)
        if S > 130:
            alive = False
        avg += (S - avg) / (k + 1)
    payoff = max(avg - 95.0, 0.0) if alive else 0.0
    return np.exp(-r * 0.5) * payoff


@add(R.normal(size=(3, 5)), R.normal(size=(3, 3)))
def cholesky_correlated_paths(Z, L0):
    Sig = L0 @ L0.T + np.eye(3)
    D = np.sqrt(np.diag(Sig))
    corr = Sig / D[:, None] / D
    L = np.linalg.cholesky(corr)
    paths = 100 * np.exp(np.cumsum(0.01 * L @ Z, axis=1))
    basket = paths.mean(0)
    return np.maximum(basket[-1] - 99.9, 0) + basket.min() * 0.01


@add(np.array([0.2, -0.1, 0.4]), np.array([1.0, 2.0, 0.5]))
def euler_angles_rotation(ang, v):
    def Rx(a): return np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    def Ry(a): return np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    def Rz(a): return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    M = functools.reduce(np.matmul, [f(a) for f, a in zip((Rx, Ry, Rz), ang)])
    axis = np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    angle = np.arccos((np.trace(M) - 1) / 2)
    return (M @ v)[0] + angle * (axis / np.linalg.norm(axis))[2]


@add(R.normal(size=(5, 3)), R.normal(size=3))
def rodrigues_cross_matrix(P, w):
    th = np.linalg.norm(w)
    k = w / th
    K = np.zeros((3, 3))
    K[0, 1], K[0, 2], K[1, 2] = -k[2], k[1], -k[0]
    K -= K.T
    Rm = np.eye(3) + np.sin(th) * K + (1 - np.cos(th)) * K @ K
    Q = P @ Rm.T
    n = np.cross(Q[1:] - Q[0], Q[2] - Q[0])
    return np.sum(Q[:, 0] ** 3) + np.sum(n ** 2)


@add(R.uniform(0, 1, size=(4, 2)), R.normal(size=4))
def rbf_interpolation_tps(P, f):
    d2 = np.sum((P[:, None] - P[None]) ** 2, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        phi = 0.5 * d2 * np.log(np.where(d2 > 0, d2, 1.0))
    ones = np.ones((4, 1))
    Pm = np.concatenate([ones, P], axis=1)
    K = np.block([[phi + 0.1 * np.eye(4), Pm], [Pm.T, np.zeros((3, 3))]])
    sol = np.linalg.solve(K, np.concatenate([f, np.zeros(3)]))
    q = np.array([0.4, 0.6])
    r = np.linalg.norm(P - q, axis=1)
    return sol[:4] @ (r ** 2 * np.log(r)) + sol[4] + sol[5:] @ q


@add(R.uniform(0.5, 1.5, size=(4,)), R.uniform(0.5, 1.5, size=(5,)))
def fem_1d_assembly(k, f):
    n = len(k)
    K = np.zeros((n + 1, n + 1))
    F = np.zeros(n + 1)
    h = 1.0 / n
    for e in range(n):
        ke = k[e] / h * np.array([[1, -1], [-1, 1]])
        K[e:e + 2, e:e + 2] += ke
        F[e:e + 2] += h / 6 * np.array([[2, 1], [1, 2]]) @ f[e:e + 2]
    K[0, :] = 0
    K[0, 0] = 1
    F[0] = 0.1
    u = np.linalg.solve(K, F)
    return u @ F + u[-1] ** 2


@add(R.uniform(0.5, 1.5, size=(3, 3)), R.normal(size=(3, 2)))
def fem_triangle_2d(rho, disp):
    nodes = np.array([[0, 0], [1, 0], [0, 1], [1, 1.2], [0.5, 2]])
    tri = np.array([[0, 1, 2], [1, 3, 2], [2, 3, 4]])
    K = np.zeros((5, 5))
    for t, ids in enumerate(tri):
        p = nodes[ids]
        M = np.vstack([np.ones(3), p.T])
        area = 0.5 * abs(np.linalg.det(M))
        grad = np.linalg.inv(M)[:, 1:]
        K[np.ix_(ids, ids)] += area * rho[t].mean() * grad @ grad.T
        for a in range(3):
            for b in range(3):
                K[ids[a], ids[b]] += area / 12 * (1 + (a == b)) * rho[t, a]
    return np.linalg.slogdet(K)[1] + np.sum(K[1] * disp.ravel()[:5])


@add(R.normal(size=9), R.uniform(0.5, 1.5, size=3))
def spectral_poisson_chebyshev(f, bc):
    N = 8
    x = np.cos(np.pi * np.arange(N + 1) / N)
    c = np.r_[2, np.ones(N - 1), 2] * (-1) ** np.arange(N + 1)
    X = np.tile(x, (N + 1, 1)).T
    dX = X - X.T
    D = np.outer(c, 1 / c) / (dX + np.eye(N + 1))
    D = D - np.diag(D.sum(axis=1))
    D2 = bc[0] * D @ D + bc[1] * D
    u = np.zeros(N + 1)
    u[1:-1] = np.linalg.solve(D2[1:-1, 1:-1], f[1:-1])
    return u @ u + bc[2] * u[3]


@add(R.uniform(0.5, 1.5, size=(2, 8)))
def lattice_boltzmann_d1q3(f0):
    f = np.stack([f0[0], f0[1], f0[0] * 0.5 + f0[1] * 0.2])
    w = np.array([4 / 6, 1 / 6, 1 / 6])
    c = np.array([0, 1, -1])
    for _ in range(3):
        rho = f.sum(0)
        u = (c @ f) / rho
        cu = np.outer(c, u)
        feq = w[:, None] * rho * (1 + 3 * cu + 4.5 * cu ** 2 - 1.5 * u ** 2)
        f += 0.8 * (feq - f)
        f[1] = np.roll(f[1], 1)
        f[2] = np.roll(f[2], -1)
        f[1, 0], f[2, -1] = f[2, 0], f[1, -1]
    return (f[1] - f[2]) @ f.sum(0)


@add(R.normal(size=20), 0.5)
def metropolis_reparam(z, s):
    x, acc = 0.3, 0
    chain = []
    for k in range(0, 20, 2):
        prop = x + s * z[k]
        logr = 0.5 * (x ** 2 - prop ** 2)
        u = 1 / (1 + np.exp(-z[k + 1]))
        if np.log(u) < logr:
            x = prop
            acc += 1
        chain.append(x)
    return np.mean(chain) + np.var(chain) + acc / 10


@add(R.normal(size=(2, 4)), R.normal(size=4))
def hmc_trajectory(qp, mu):
    q, p = qp
    U = lambda q: 0.5 * np.sum((q - mu) ** 2) + 0.1 * np.sum(q ** 4)
    dU = lambda q: (q - mu) + 0.4 * q ** 3
    eps = 0.1
    p = p - eps * dU(q) / 2
    for i in range(4):
        q = q + eps * p
        if i != 3:
            p = p - eps * dU(q)
    p = -(p - eps * dU(q) / 2)
    return U(q) + 0.5 * p @ p - U(qp[0]) + q[0]


@add(R.uniform(0.5, 1.5, size=(3,)), R.normal(size=(6, 3)))
def relaxed_loss_switches(w, X):
    total = 0.0
    for loss in ("huber", "logcosh", "pinball", "hinge"):
        r = X @ w - 0.3
        if loss == "huber":
            val = np.where(np.abs(r) < 1, 0.5 * r ** 2, np.abs(r) - 0.5)
        elif loss == "logcosh":
            val = np.log(np.cosh(r))
        elif loss.startswith("pin"):
            val = np.maximum(0.3 * r, -0.7 * r)
        else:
            val = np.clip(1 - r, 0, None)
        total += val.mean() / (1 + len(loss))
    return total
