"""GMM: Gaussian mixture log-posterior (ADBench objective 1; sign/prior as corrected by GradBench).

Parameters: alphas (k,), means (k,d), icf (k, d + d(d-1)/2) -- first d entries of a row are log-diagonals q,
the rest are the strictly lower triangle l of Q, column by column.  Data x (n,d).
  beta_ik = alpha_k + sum_j q_kj - 0.5 ||Q_k (x_i - mu_k)||^2
  f = -n d/2 log 2pi + sum_i lse_k beta_ik - n lse(alpha) + log Wishart prior(gamma, m)
"""
import math
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SOURCE = "ADBench data/gmm/1k (n=1000)"
argnums = (0, 1, 2)
static_argnums = (4, 5)
sizes = {"S": dict(d=2, k=5), "M": dict(d=10, k=25), "L": dict(d=32, k=25), "XL": dict(d=64, k=50)}


def make_inputs(size, seed=0):
    s = sizes[size]
    z = np.load(f"{DATA}/gmm_d{s['d']}_K{s['k']}.npz")
    out = [z["alphas"], z["means"], z["icf"], z["x"]]
    if seed:
        rng = np.random.default_rng(seed)
        out = [v + 0.05 * rng.normal(size=v.shape) for v in out]
    return (*out, float(z["gamma"]), int(z["m"]))


# ---------------------------------------------------------------- plain NumPy
def log_wishart_const(d, m, gamma):
    n = d + m + 1
    c = n * d * (math.log(gamma) - 0.5 * math.log(2.0)) - 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        c -= math.lgamma(0.5 * n + 0.5 * (1 - j))
    return c


def objective_numpy(alphas, means, icf, x, gamma, m):
    n, d = x.shape
    k = alphas.shape[0]
    beta = np.zeros((n, k))
    prior = k * log_wishart_const(d, m, gamma)
    for j in range(k):
        Q = np.zeros((d, d))
        p = d
        for c in range(d):
            Q[c, c] = np.exp(icf[j, c])
            for r in range(c + 1, d):
                Q[r, c] = icf[j, p]
                p += 1
        sum_q = np.sum(icf[j, :d])
        y = (x - means[j]) @ Q.T
        beta[:, j] = alphas[j] + sum_q - 0.5 * np.sum(y ** 2, axis=1)
        prior += m * sum_q - 0.5 * gamma ** 2 * np.sum(Q ** 2)
    slse = 0.0
    for i in range(n):
        top = np.max(beta[i])
        slse += top + np.log(np.sum(np.exp(beta[i] - top)))
    top = np.max(alphas)
    lse_alpha = top + np.log(np.sum(np.exp(alphas - top)))
    return -0.5 * n * d * math.log(2 * math.pi) + slse - n * lse_alpha + prior


def objective_loops(alphas, means, icf, x, gamma, m):
    """The same thing as a C programmer would write it."""
    n, d = x.shape
    k = alphas.shape[0]
    diag = np.exp(icf[:, :d])
    sum_q = np.zeros(k)
    frob = 0.0
    for j in range(k):
        for c in range(d):
            sum_q[j] += icf[j, c]
            frob += diag[j, c] * diag[j, c]
        for c in range(d, icf.shape[1]):
            frob += icf[j, c] * icf[j, c]
    xc = np.zeros(d)
    y = np.zeros(d)
    beta = np.zeros(k)
    slse = 0.0
    for i in range(n):
        for j in range(k):
            for c in range(d):
                xc[c] = x[i, c] - means[j, c]
                y[c] = diag[j, c] * xc[c]
            p = d
            for c in range(d):
                for r in range(c + 1, d):
                    y[r] += icf[j, p] * xc[c]
                    p += 1
            s = 0.0
            for c in range(d):
                s += y[c] * y[c]
            beta[j] = alphas[j] + sum_q[j] - 0.5 * s
        top = beta[0]
        for j in range(1, k):
            if beta[j] > top:
                top = beta[j]
        s = 0.0
        for j in range(k):
            s += math.exp(beta[j] - top)
        slse += top + math.log(s)
    top = alphas[0]
    for j in range(1, k):
        top = max(top, alphas[j])
    s = 0.0
    for j in range(k):
        s += math.exp(alphas[j] - top)
    lse_alpha = top + math.log(s)
    prior = k * log_wishart_const(d, m, gamma) - 0.5 * gamma * gamma * frob
    for j in range(k):
        prior += m * sum_q[j]
    return -0.5 * n * d * math.log(2 * math.pi) + slse - n * lse_alpha + prior


variants = {"numpy": objective_numpy, "loops": objective_loops}


# ---------------------------------------------------------------- JAX (expert)
def objective_jax(alphas, means, icf, x, gamma, m):
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp
    n, d = x.shape
    k = alphas.shape[0]
    cols, rows = np.triu_indices(d, 1)          # column-by-column order of the strict lower triangle
    q = icf[:, :d]
    eye = np.arange(d)
    Q = jnp.zeros((k, d, d), x.dtype).at[:, rows, cols].set(icf[:, d:]).at[:, eye, eye].set(jnp.exp(q))
    # Q_k (x - mu_k) = Q_k x - Q_k mu_k : one big GEMM instead of k*n small mat-vecs
    y = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - jnp.einsum("kij,kj->ki", Q, means)
    sum_q = q.sum(1)
    beta = alphas + sum_q - 0.5 * jnp.sum(y * y, axis=2)
    prior = k * log_wishart_const(d, m, gamma) + m * sum_q.sum() - 0.5 * gamma ** 2 * jnp.sum(Q * Q)
    return (-0.5 * n * d * math.log(2 * math.pi) + logsumexp(beta, axis=1).sum()
            - n * logsumexp(alphas) + prior)


def objective_jax_chunk(alphas, means, icf, x, gamma, m):
    """blocks of 125 points with recomputation, so that the (n,k,d) intermediates stay in cache"""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp
    n, d = x.shape
    k = alphas.shape[0]
    cols, rows = np.triu_indices(d, 1)
    q = icf[:, :d]
    eye = np.arange(d)
    Q = jnp.zeros((k, d, d), x.dtype).at[:, rows, cols].set(icf[:, d:]).at[:, eye, eye].set(jnp.exp(q))
    QT = Q.reshape(k * d, d).T
    Qmu = jnp.einsum("kij,kj->ki", Q, means)
    sum_q = q.sum(1)
    w = alphas + sum_q

    @jax.checkpoint
    def block(acc, xb):
        y = (xb @ QT).reshape(xb.shape[0], k, d) - Qmu
        return acc + logsumexp(w - 0.5 * jnp.sum(y * y, axis=2), axis=1).sum(), None
    slse, _ = jax.lax.scan(block, jnp.zeros((), x.dtype), x.reshape(n // 125, 125, d))
    prior = k * log_wishart_const(d, m, gamma) + m * sum_q.sum() - 0.5 * gamma ** 2 * jnp.sum(Q * Q)
    return -0.5 * n * d * math.log(2 * math.pi) + slse - n * logsumexp(alphas) + prior


# ---------------------------------------------------------------- autograd / torch
def objective_autograd(alphas, means, icf, x, gamma, m):
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp
    n, d = x.shape
    k = alphas.shape[0]
    cols, rows = np.triu_indices(d, 1)
    P = np.zeros((d * (d - 1) // 2, d * d))
    P[np.arange(len(rows)), rows * d + cols] = 1.0       # scatter as a constant matrix (autograd: no in-place)
    D = np.zeros((d, d * d))
    D[np.arange(d), np.arange(d) * d + np.arange(d)] = 1.0
    q = icf[:, :d]
    Q = anp.reshape(anp.dot(icf[:, d:], P) + anp.dot(anp.exp(q), D), (k, d, d))
    y = anp.reshape(anp.dot(x, anp.reshape(Q, (k * d, d)).T), (n, k, d)) - anp.einsum("kij,kj->ki", Q, means)
    sum_q = anp.sum(q, axis=1)
    beta = alphas + sum_q - 0.5 * anp.sum(y * y, axis=2)
    prior = k * log_wishart_const(d, m, gamma) + m * anp.sum(sum_q) - 0.5 * gamma ** 2 * anp.sum(Q * Q)
    return (-0.5 * n * d * math.log(2 * math.pi) + anp.sum(logsumexp(beta, axis=1))
            - n * logsumexp(alphas) + prior)


def objective_torch(alphas, means, icf, x, gamma, m):
    import torch
    n, d = x.shape
    k = alphas.shape[0]
    cols, rows = np.triu_indices(d, 1)
    q = icf[:, :d]
    Q = torch.diag_embed(torch.exp(q))
    Q = Q.index_put((slice(None) if False else torch.arange(k)[:, None], torch.as_tensor(rows)[None], torch.as_tensor(cols)[None]), icf[:, d:])
    y = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - torch.einsum("kij,kj->ki", Q, means)
    sum_q = q.sum(1)
    beta = alphas + sum_q - 0.5 * (y * y).sum(2)
    prior = k * log_wishart_const(d, m, gamma) + m * sum_q.sum() - 0.5 * gamma ** 2 * (Q * Q).sum()
    return (-0.5 * n * d * math.log(2 * math.pi) + torch.logsumexp(beta, 1).sum()
            - n * torch.logsumexp(alphas, 0) + prior)
