# SPDX-License-Identifier: Apache-2.0
"""Physics, chemistry, numerics."""
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

R = np.random.default_rng(7)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept

G_NEWTON = 6.674e-3
KB = 1.0


@add(R.normal(size=(4, 3)), R.normal(size=(4, 3)) * 0.1, np.array([1.0, 2.0, 0.5, 1.5]), 0.01, 5)
def nbody_leapfrog(pos, vel, mass, dt, steps):
    n = len(mass)
    pos = pos.copy()
    vel = vel.copy()
    def accelerations(p):
        acc = np.zeros_like(p)
        for i in range(n):
            for j in range(i + 1, n):
                d = p[j] - p[i]
                r3 = (d @ d + 0.05) ** 1.5
                acc[i] += mass[j] * d / r3
                acc[j] -= mass[i] * d / r3
        return acc
    acc = accelerations(pos)
    for _ in range(steps):
        vel += 0.5 * dt * acc
        pos += dt * vel
        acc = accelerations(pos)
        vel += 0.5 * dt * acc
    kinetic = 0.5 * np.sum(mass[:, None] * vel ** 2)
    potential = 0.0
    for i in range(n):
        for j in range(i):
            potential -= mass[i] * mass[j] / np.linalg.norm(pos[i] - pos[j])
    return kinetic + potential


@add(R.uniform(0.5, 1.5, size=(6, 6)), 0.1, 4)
def heat_2d_adi(u, r, steps):
    n = u.shape[0]
    A = np.diag((1 + 2 * r) * np.ones(n)) + np.diag(-r * np.ones(n - 1), 1) + np.diag(-r * np.ones(n - 1), -1)
    for _ in range(steps):
        half = np.linalg.solve(A, u)
        u = np.linalg.solve(A, half.T).T
    return np.sum(u ** 2) / u.size


@add(np.array([0.5, 0.2, 0.0, 1.0]), 9.81, 1.0, 0.02, 10)
def double_pendulum_rk4(state, g, l, dt, n):
    def deriv(s):
        t1, t2, w1, w2 = s
        d = t1 - t2
        den = 3 - np.cos(2 * d)
        a1 = (-3 * g * np.sin(t1) - g * np.sin(t1 - 2 * t2) - 2 * np.sin(d) * (w2 ** 2 * l + w1 ** 2 * l * np.cos(d))) / (l * den)
        a2 = (2 * np.sin(d) * (2 * w1 ** 2 * l + 2 * g * np.cos(t1) + w2 ** 2 * l * np.cos(d))) / (l * den)
        return np.array([w1, w2, a1, a2])
    trajectory = [state]
    for _ in range(n):
        y = trajectory[-1]
        k1 = deriv(y)
        k2 = deriv(y + dt / 2 * k1)
        k3 = deriv(y + dt / 2 * k2)
        k4 = deriv(y + dt * k3)
        trajectory.append(y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    path = np.array(trajectory)
    return np.sum(path[:, 0] ** 2) + path[-1, 1]


@add(R.uniform(-1, 1, size=(5, 5)), 0.4)
def ising_mean_field(J, beta):
    J = (J + J.T) / 2
    np.fill_diagonal(J, 0.0)
    m = np.full(J.shape[0], 0.5)
    for sweep in range(20):
        m_new = np.tanh(beta * (J @ m + 0.1))
        if np.max(np.abs(m_new - m)) < 1e-12:
            break
        m = m_new
    return -0.5 * m @ J @ m - 0.1 * m.sum()


@add(R.normal(size=(5, 3)) * 2.0, 1.0, 1.2)
def lennard_jones_cutoff(xyz, eps, sigma):
    rc = 2.5 * sigma
    energy = 0.0
    for i, a in enumerate(xyz):
        for b in xyz[i + 1:]:
            r2 = np.sum((a - b) ** 2)
            if r2 > rc ** 2:
                continue
            s6 = (sigma ** 2 / r2) ** 3
            energy += 4 * eps * (s6 ** 2 - s6)
    return energy


@add(np.array([1.0, 0.0, 0.0]), np.array([0.04, 3e1, 1e2]), 0.01, 8)
def robertson_backward_euler(y0, k, dt, steps):
    y = y0
    for _ in range(steps):
        z = y
        for it in range(6):
            f = np.array([-k[0] * z[0] + k[2] * z[1] * z[2],
                          k[0] * z[0] - k[2] * z[1] * z[2] - k[1] * z[1] ** 2,
                          k[1] * z[1] ** 2])
            J = np.array([[-k[0], k[2] * z[2], k[2] * z[1]],
                          [k[0], -k[2] * z[2] - 2 * k[1] * z[1], -k[2] * z[1]],
                          [0.0, 2 * k[1] * z[1], 0.0]])
            res = z - y - dt * f
            z = z - np.linalg.solve(np.eye(3) - dt * J, res)
        y = z
    return y[2] + 0.1 * y[0] ** 2


@add(R.normal(size=16), 0.3)
def split_step_schrodinger(v, dt):
    n = v.size
    x = np.linspace(-4, 4, n, endpoint=False)
    psi = np.exp(-x ** 2 + 1j * x)
    psi /= np.sqrt(np.sum(np.abs(psi) ** 2))
    k = 2 * np.pi * np.fft.fftfreq(n, d=x[1] - x[0])
    half = np.exp(-0.5j * dt * v)
    for step in range(3):
        psi = half * psi
        psi = np.fft.ifft(np.exp(-0.5j * dt * k ** 2) * np.fft.fft(psi))
        psi = half * psi
    return np.sum(x * np.abs(psi) ** 2)


@add(R.uniform(0.5, 2, size=6), R.uniform(0.5, 2, size=5))
def tridiagonal_thomas(d, rhs_seed):
    n = len(d)
    a = np.full(n - 1, -0.2)
    c = rhs_seed * 0.1
    b = d + 1.0
    rhs = np.arange(n) * 1.0
    cp = np.zeros(n - 1)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = rhs[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i - 1] * cp[i - 1]
        if i < n - 1:
            cp[i] = c[i] / m
        dp[i] = (rhs[i] - a[i - 1] * dp[i - 1]) / m
    x = np.empty(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x @ x


@add(R.uniform(0.1, 1, size=8), 0.5)
def burgers_godunov(u, cfl):
    u = np.array(u)
    def flux(ul, ur):
        fl, fr = 0.5 * ul ** 2, 0.5 * ur ** 2
        s = 0.5 * (ul + ur)
        if ul > ur:
            return fl if s > 0 else fr
        if ul > 0:
            return fl
        elif ur < 0:
            return fr
        return 0.0
    for t in range(3):
        f = np.zeros(len(u) + 1)
        for i in range(1, len(u)):
            f[i] = flux(u[i - 1], u[i])
        f[0] = flux(u[-1], u[0])
        f[-1] = f[0]
        u = u - cfl * (f[1:] - f[:-1])
    return (u ** 2).mean()


@add(R.uniform(1, 2, size=(5, 7)))
def poisson_red_black(f):
    u = np.zeros((f.shape[0] + 2, f.shape[1] + 2))
    for sweep in range(4):
        for colour in (0, 1):
            for i in range(1, u.shape[0] - 1):
                for j in range(1 + (i + colour) % 2, u.shape[1] - 1, 2):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i - 1, j - 1])
    return np.sum(u)


@add(R.uniform(1, 2, size=(6, 6)))
def poisson_red_black_slices(f):
    u = np.zeros((8, 8))
    for sweep in range(5):
        u[1:-1:2, 1:-1:2] = 0.25 * (u[0:-2:2, 1:-1:2] + u[2::2, 1:-1:2] + u[1:-1:2, 0:-2:2] + u[1:-1:2, 2::2] + f[::2, ::2])
        u[2:-1:2, 2:-1:2] = 0.25 * (u[1:-2:2, 2:-1:2] + u[3::2, 2:-1:2] + u[2:-1:2, 1:-2:2] + u[2:-1:2, 3::2] + f[1::2, 1::2])
        u[1:-1:2, 2:-1:2] = 0.25 * (u[0:-2:2, 2:-1:2] + u[2::2, 2:-1:2] + u[1:-1:2, 1:-2:2] + u[1:-1:2, 3::2] + f[::2, 1::2])
        u[2:-1:2, 1:-1:2] = 0.25 * (u[1:-2:2, 1:-1:2] + u[3::2, 1:-1:2] + u[2:-1:2, 0:-2:2] + u[2:-1:2, 2::2] + f[1::2, ::2])
    return np.sum(u[1:-1, 1:-1] * f)


@add(300.0, np.array([1.0, 2.0, 3.5]), np.array([1, 3, 5]))
def partition_function(T, levels, degeneracy):
    beta = 100.0 / T
    weights = degeneracy * np.exp(-beta * levels)
    Z = weights.sum()
    p = weights / Z
    U = np.dot(p, levels)
    var = np.dot(p, (levels - U) ** 2)
    entropy = -np.sum(p * np.log(p / degeneracy))
    return U + T * entropy / 300 + var * beta ** 2


@dataclass
class Particle:
    x: float
    v: float
    m: float = 1.0
    history: list = field(default_factory=list)
    def kick(self, f, dt):
        self.v += f / self.m * dt
    def drift(self, dt):
        self.x += self.v * dt
        self.history.append(self.x)
    @property
    def kinetic(self):
        return 0.5 * self.m * self.v ** 2


@add(0.5, -0.2, 2.0, 0.05)
def duffing_particle(x0, v0, k, dt):
    p = Particle(x0, v0, m=1.5)
    t = 0.0
    while t < 0.42:
        p.kick(-k * p.x - 0.3 * p.x ** 3 + 0.2 * math.cos(1.2 * t), dt)
        p.drift(dt)
        t += dt
    return p.kinetic + sum(h ** 2 for h in p.history) / len(p.history)


@add(R.normal(size=(4, 4)), np.array([0.3, 0.7]))
def hueckel_energy(H, alpha):
    S = H + H.T
    S[np.diag_indices(4)] += alpha[0] * np.arange(1, 5)
    w, C = np.linalg.eigh(S)
    occ = w[:2]
    dens = 2 * C[:, :2] @ C[:, :2].T
    return 2 * occ.sum() + alpha[1] * np.trace(dens @ dens * np.arange(4)[:, None])


@add(np.array([0.3, 0.4, 0.3]), np.array([1.1, 0.8, 2.0]), 0.5)
def rachford_rice(z, K, guess):
    V = guess
    for _ in range(30):
        den = 1 + V * (K - 1)
        g = np.sum(z * (K - 1) / den)
        dg = -np.sum(z * (K - 1) ** 2 / den ** 2)
        step = g / dg
        V -= step
        if abs(step) < 1e-13:
            break
    x = z / (1 + V * (K - 1))
    return V + np.sum(x * np.log(x))


@add(np.array([0.1, 0.05, 0.2]), np.array([1.8e-2, 6.2e-3]))
def acid_base_ph(conc, ka):
    h = 1e-2
    for i in range(50):
        charge = h + conc[0] - conc[1] * ka[0] / (ka[0] + h) - conc[2] * ka[1] / (ka[1] + h) - 1e-4 / h
        d = 1 + conc[1] * ka[0] / (ka[0] + h) ** 2 + conc[2] * ka[1] / (ka[1] + h) ** 2 + 1e-4 / h ** 2
        h_new = h - charge / d
        if h_new <= 0:
            h_new = h / 2
        if abs(h_new - h) < 1e-15:
            h = h_new
            break
        h = h_new
    return -np.log10(h)


@add(R.uniform(0.2, 1.0, size=7), 1.4)
def euler_hll(rho, gamma):
    n = rho.size
    mom = 0.1 * np.sin(np.arange(n)) * rho
    E = 1.0 + 0.5 * mom ** 2 / rho
    U = np.stack([rho, mom, E])
    for _ in range(2):
        p = (gamma - 1) * (U[2] - 0.5 * U[1] ** 2 / U[0])
        c = np.sqrt(gamma * p / U[0])
        v = U[1] / U[0]
        F = np.array([U[1], U[1] * v + p, (U[2] + p) * v])
        sl = np.minimum(v[:-1] - c[:-1], v[1:] - c[1:])
        sr = np.maximum(v[:-1] + c[:-1], v[1:] + c[1:])
        Fh = (sr * F[:, :-1] - sl * F[:, 1:] + sl * sr * (U[:, 1:] - U[:, :-1])) / (sr - sl)
        flux = np.where(sl >= 0, F[:, :-1], np.where(sr <= 0, F[:, 1:], Fh))
        U[:, 1:-1] -= 0.05 * np.diff(flux, axis=1)
    return np.sum(U[2]) + U[0, 3] ** 2


@add(R.normal(size=(3, 3)))
def polar_stretch(F):
    F = F + 3 * np.eye(3)
    C = F.T @ F
    lam2, N = np.linalg.eigh(C)
    U = (N * np.sqrt(lam2)) @ N.T
    Rm = F @ np.linalg.inv(U)
    E = 0.5 * (C - np.eye(3))
    return np.einsum('ij,ij->', E, E) + np.trace(Rm) + np.log(np.linalg.det(F))


@add(R.uniform(0.5, 1.5, size=3), R.normal(size=3))
def kepler_orbit(params, v):
    a, e, M = params[0], 0.3 * params[1], params[2]
    E = M
    it = 0
    while True:
        delta = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E = E - delta
        it += 1
        if abs(delta) < 1e-14 or it >= 50:
            break
    else:
        raise RuntimeError("no")
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
    r = a * (1 - e * np.cos(E))
    return np.array([r * np.cos(nu), r * np.sin(nu), 0.1 * r]) @ v


@add(R.uniform(0.2, 1, size=(3, 4)), 0.7)
def radiative_transfer(tau, mu):
    I = np.zeros(tau.shape[1])
    source = np.linspace(1, 2, tau.shape[0])
    for layer in range(tau.shape[0] - 1, -1, -1):
        t = np.exp(-tau[layer] / mu)
        I *= t
        I += source[layer] * (1 - t)
    return I.sum()


@add(np.array([1.0, 2.0, 3.0]), np.array([0.1, -0.2, 0.3]))
def biot_savart(p, q):
    theta = np.linspace(0, 2 * np.pi, 13)[:-1]
    loop = np.stack([np.cos(theta), np.sin(theta), np.zeros_like(theta)], axis=-1)
    dl = np.roll(loop, -1, axis=0) - loop
    r = p - 0.5 * (loop + np.roll(loop, -1, axis=0)) + q
    dist = np.sqrt((r * r).sum(-1, keepdims=True))
    B = np.cross(dl, r) / dist ** 3
    return np.linalg.norm(B.sum(axis=0))


@add(R.normal(size=5), 3)
def legendre_recurrence(c, order):
    x = np.tanh(c)
    P = [np.ones_like(x), x]
    for n in range(1, order):
        P.append(((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1))
    return sum((k + 1) * np.sum(p ** 2) for k, p in enumerate(P))


@add(R.uniform(0.5, 1.5, size=9))
def simpson_and_romberg(y):
    h = 0.25
    simpson = h / 3 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum() + y[-1])
    table = [[(y[0] + y[-1]) * 4 * h]]
    n = 1
    for k in range(1, 4):
        n *= 2
        step = 8 // n
        trap = 0.5 * table[-1][0] + 8 * h / n * sum(y[step::2 * step])
        row = [trap]
        for m in range(1, k + 1):
            row.append(row[m - 1] + (row[m - 1] - table[-1][m - 1]) / (4 ** m - 1))
        table.append(row)
    return simpson * table[-1][-1]


@add(R.normal(size=6), R.normal(size=6))
def newton_divided_differences(xs, ys):
    x = np.sort(xs) + np.arange(6)
    coef = ys.copy()
    n = len(x)
    for j in range(1, n):
        coef[j:n] = (coef[j:n] - coef[j - 1:n - 1]) / (x[j:n] - x[:n - j])
    z = 2.3
    p = coef[-1]
    for k in range(2, n + 1):
        p = coef[n - k] + (z - x[n - k]) * p
    return p ** 2


@add(R.normal(size=7))
def natural_cubic_spline(y):
    n = len(y)
    x = np.linspace(0, 3, n)
    h = np.diff(x)
    A = np.eye(n)
    rhs = np.zeros(n)
    for i in range(1, n - 1):
        A[i, i - 1:i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    M = np.linalg.solve(A, rhs)
    q = np.array([0.2, 1.3, 2.9])
    k = np.clip(np.searchsorted(x, q) - 1, 0, n - 2)
    a, b = x[k + 1] - q, q - x[k]
    s = (M[k] * a ** 3 + M[k + 1] * b ** 3) / (6 * h[k]) + (y[k] / h[k] - M[k] * h[k] / 6) * a + (y[k + 1] / h[k] - M[k + 1] * h[k] / 6) * b
    return np.sum(s ** 3)


@add(R.normal(size=(4, 4)), R.normal(size=4))
def conjugate_gradient(A, b):
    S = A @ A.T + 4 * np.eye(4)
    x = np.zeros_like(b)
    r = b - S @ x
    p = r.copy()
    rs = r @ r
    for i in range(len(b)):
        Ap = S @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        if np.sqrt(rs_new) < 1e-14:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x.sum()


@add(R.normal(size=(5, 3)))
def gram_schmidt_modified(A):
    m, n = A.shape
    Q = A.copy()
    Rr = np.zeros((n, n))
    for k in range(n):
        Rr[k, k] = np.linalg.norm(Q[:, k])
        Q[:, k] /= Rr[k, k]
        for j in range(k + 1, n):
            Rr[k, j] = Q[:, k] @ Q[:, j]
            Q[:, j] -= Rr[k, j] * Q[:, k]
    return np.sum(np.triu(Rr) ** 3) + Q[0].sum()


@add(R.normal(size=(4, 4)))
def lu_with_pivoting(A):
    LU = A.copy()
    n = len(LU)
    piv = list(range(n))
    sign = 1
    for k in range(n - 1):
        p = k + np.argmax(np.abs(LU[k:, k]))
        if p != k:
            LU[[k, p]] = LU[[p, k]]
            piv[k], piv[p] = piv[p], piv[k]
            sign = -sign
        LU[k + 1:, k] /= LU[k, k]
        LU[k + 1:, k + 1:] -= np.outer(LU[k + 1:, k], LU[k, k + 1:])
    return sign * np.prod(np.diag(LU))


@add(R.normal(size=(4, 3)))
def householder_qr(A):
    Rm = A.copy()
    m, n = Rm.shape
    Q = np.eye(m)
    for k in range(n):
        x = Rm[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.linalg.norm(x)
        v /= np.linalg.norm(v)
        Rm[k:, k:] -= 2 * np.outer(v, v @ Rm[k:, k:])
        Q[:, k:] -= 2 * np.outer(Q[:, k:] @ v, v)
    return np.abs(np.diag(Rm)).prod() + Q[0, 1] * Rm[0, 2]


@add(R.normal(size=(3, 3)))
def power_iteration(A):
    S = A @ A.T
    v = np.ones(3) / np.sqrt(3)
    lam = 0.0
    for _ in range(12):
        w = S @ v
        lam_old, lam = lam, v @ w
        v = w / np.linalg.norm(w)
        if abs(lam - lam_old) < 1e-6 * lam:
            break
    return lam + v[0]


@add(R.normal(size=(3, 3)))
def jacobi_eigen_sweep(M):
    A = M + M.T
    n = A.shape[0]
    for p, q in itertools.combinations(range(n), 2):
        if abs(A[p, q]) < 1e-14:
            continue
        theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
        t = np.sign(theta) / (abs(theta) + math.sqrt(theta ** 2 + 1))
        c = 1 / math.sqrt(1 + t ** 2)
        s = t * c
        J = np.eye(n)
        J[p, p] = J[q, q] = c
        J[p, q], J[q, p] = s, -s
        A = J.T @ A @ J
    return np.sum(np.diag(A) ** 2)


@add(R.normal(size=8))
def fft_radix2_recursive(x):
    def fft(a):
        n = len(a)
        if n == 1:
            return a
        even, odd = fft(a[::2]), fft(a[1::2])
        tw = np.exp(-2j * np.pi * np.arange(n // 2) / n)
        return np.concatenate([even + tw * odd, even - tw * odd])
    X = fft(x.astype(complex))
    return np.sum(np.abs(X[:4]) ** 2 * np.arange(4))


@add(R.normal(size=(3, 4)))
def matrix_chain_strassen(A):
    B = A @ A.T
    B = np.pad(B, ((0, 1), (0, 1)))
    def strassen(x, y):
        n = x.shape[0]
        if n <= 1:
            return x * y
        h = n // 2
        a, b, c, d = x[:h, :h], x[:h, h:], x[h:, :h], x[h:, h:]
        e, f, g, k = y[:h, :h], y[:h, h:], y[h:, :h], y[h:, h:]
        p1 = strassen(a, f - k)
        p2 = strassen(a + b, k)
        p3 = strassen(c + d, e)
        p4 = strassen(d, g - e)
        p5 = strassen(a + d, e + k)
        p6 = strassen(b - d, g + k)
        p7 = strassen(a - c, e + f)
        return np.block([[p5 + p4 - p2 + p6, p1 + p2], [p3 + p4, p1 + p5 - p3 - p7]])
    return np.trace(strassen(B, B))


@add(R.uniform(1, 2, size=5), "midpoint")
def quadrature_switch(c, rule):
    nodes = {"left": 0.0, "midpoint": 0.5, "right": 1.0}[rule]
    total = 0.0
    n = 10
    for i in range(n):
        t = (i + nodes) / n
        total += np.polyval(c, t) / n
    assert rule in ("left", "midpoint", "right"), f"unknown {rule}"
    return total


@add(R.normal(size=(2, 5)), 4)
def string_wave(u, nsteps):
    prev, cur = u.copy()
    for _ in range(nsteps):
        nxt = np.zeros_like(cur)
        nxt[1:-1] = 2 * cur[1:-1] - prev[1:-1] + 0.3 * (cur[2:] - 2 * cur[1:-1] + cur[:-2])
        prev, cur = cur, nxt
    return np.dot(cur, prev)


@add(R.uniform(0.5, 1, size=(4, 4)), R.uniform(0.5, 1, size=(4, 4)), R.uniform(size=(4, 4)))
def fdtd_yee(ez, eps, sigma):
    hx = np.zeros((4, 3)); hy = np.zeros((3, 4))
    ca = (1 - sigma / (2 * eps)) / (1 + sigma / (2 * eps))
    cb = 0.5 / eps / (1 + sigma / (2 * eps))
    ez = ez * 1.0
    for n in range(4):
        hx -= 0.5 * (ez[:, 1:] - ez[:, :-1])
        hy += 0.5 * (ez[1:, :] - ez[:-1, :])
        ez[1:-1, 1:-1] = ca[1:-1, 1:-1] * ez[1:-1, 1:-1] + cb[1:-1, 1:-1] * (
            (hy[1:, 1:-1] - hy[:-1, 1:-1]) - (hx[1:-1, 1:] - hx[1:-1, :-1]))
        ez[2, 2] += np.sin(0.3 * n)
        ez[0, :] = 0; ez[-1, :] = 0
    return (ez ** 2).sum() + (hx ** 2).sum()
