"""Twenty functions from as many fields, as people write them; docs/gallery/sources.md shows what is made of each."""
import math

import numpy as np

import gradscribe as gs


def ridge(w, X, y, strength):
    residual = X @ w - y
    return 0.5 * np.mean(residual ** 2) + 0.5 * strength * np.sum(w ** 2)


def cross_entropy(W, X, labels):
    scores = X @ W
    top = np.max(scores, axis=1, keepdims=True)
    norm = np.log(np.sum(np.exp(scores - top), axis=1)) + top[:, 0]
    return np.mean(norm - scores[np.arange(len(labels)), labels])


def attention(Q, K, V):
    scores = Q @ K.T / math.sqrt(Q.shape[1])
    weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    weights = weights / np.sum(weights, axis=1, keepdims=True)
    return np.sum((weights @ V) ** 2)


def root_mean_square_norm(x, gain, target):
    scale = np.sqrt(np.mean(x ** 2, axis=1, keepdims=True) + 1e-6)
    return np.sum((gain * x / scale - target) ** 2)


def local_level(observed, noise, drift):
    """A Kalman filter of one number: minus the log likelihood."""
    mean, variance, total = observed[0], noise, 0.0
    for t in range(1, len(observed)):
        variance = variance + drift
        error = observed[t] - mean
        spread = variance + noise
        total += 0.5 * (np.log(spread) + error ** 2 / spread)
        gain = variance / spread
        mean = mean + gain * error
        variance = (1 - gain) * variance
    return total


def marginal_likelihood(x, y, scale, noise):
    """Of a Gaussian process."""
    distance = (x[:, None] - x[None, :]) / scale
    K = np.exp(-0.5 * distance ** 2) + noise * np.eye(len(x))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(K, y)
    return 0.5 * y @ alpha + np.sum(np.log(np.diag(L)))


def heat(u, rate, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u ** 2)


def growth(state, rates):
    hares, foxes = state
    a, b, c, d = rates
    return np.array([a * hares - b * hares * foxes, c * hares * foxes - d * foxes])


def lotka_volterra(state, rates, dt, steps):
    for _ in range(steps):
        k1 = growth(state, rates)
        k2 = growth(state + 0.5 * dt * k1, rates)
        state = state + dt * k2
    return np.sum(state)


def pendulum(angle, speed, length, dt, steps):
    for _ in range(steps):
        speed = speed - dt * 9.81 / length * np.sin(angle)
        angle = angle + dt * speed
    return angle


def forward_algorithm(start, move, emit, observed):
    belief = start * emit[:, observed[0]]
    total = 0.0
    for t in range(1, len(observed)):
        norm = np.sum(belief)
        total += np.log(norm)
        belief = (belief / norm) @ move * emit[:, observed[t]]
    return total + np.log(np.sum(belief))


def call_price(spot, strike, rate, volatility, years):
    root = volatility * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility ** 2) * years) / root
    d2 = d1 - root
    below = 0.5 * (1 + math.erf(d1 / math.sqrt(2)))
    above = 0.5 * (1 + math.erf(d2 / math.sqrt(2)))
    return spot * below - strike * math.exp(-rate * years) * above


def american_put(spot, strike, up, discount, steps):
    price = np.zeros(steps + 1)
    for j in range(steps + 1):
        price[j] = max(strike - spot * up ** (2 * j - steps), 0.0)
    for n in range(steps - 1, -1, -1):
        for j in range(n + 1):
            hold = discount * 0.5 * (price[j] + price[j + 1])
            price[j] = max(hold, strike - spot * up ** (2 * j - n))
    return price[0]


def soft_alignment(cost, gap):
    n, m = cost.shape
    D = np.zeros((n + 1, m + 1))
    for i in range(n):
        for j in range(m):
            a, b, c = D[i, j] + cost[i, j], D[i, j + 1] + gap, D[i + 1, j] + gap
            D[i + 1, j + 1] = -np.log(np.exp(-a) + np.exp(-b) + np.exp(-c))
    return D[n, m]


def page_rank(links, damping, tolerance):
    n = len(links)
    rank = np.full(n, 1 / n)
    change = 1.0
    while change > tolerance:
        following = damping * links @ rank + (1 - damping) / n
        change = np.sum(np.abs(following - rank))
        rank = following
    return rank[0]


def kepler(mean_anomaly, eccentricity):
    E = mean_anomaly
    for _ in range(20):
        step = (E - eccentricity * np.sin(E) - mean_anomaly) / (1 - eccentricity * np.cos(E))
        E = E - step
        if abs(step) < 1e-12:
            break
    return E


def smoothing(signal, kernel):
    n, k = len(signal), len(kernel)
    out = np.zeros(n - k + 1)
    for i in range(n - k + 1):
        for j in range(k):
            out[i] += signal[i + j] * kernel[j]
    return np.sum(out ** 2)


def partial_likelihood(beta, X, died):
    """Of Cox's model; the rows of X are sorted by time, the last to leave first."""
    risk = X @ beta
    at_risk = np.log(np.cumsum(np.exp(risk)))
    return -np.sum(died * (risk - at_risk))


def ratings(U, V, users, items, given):
    error = np.sum(U[users] * V[items], axis=1) - given
    return np.sum(error ** 2) + 0.1 * (np.sum(U ** 2) + np.sum(V ** 2))


def springs(position, first, second, rest):
    apart = position[first] - position[second]
    length = np.sqrt(np.sum(apart ** 2, axis=1))
    return 0.5 * np.sum((length - rest) ** 2)


def predict(weights, x):
    hidden = np.tanh(weights[0] @ x)
    return weights[1] @ hidden


def programs():
    """(function, transformed function, arguments, which of them it is differentiated by)"""
    rng = np.random.default_rng(0)
    normal, uniform = rng.standard_normal, rng.random

    def gradient(f, wrt, *args):
        return f, gs.grad(f, argnums=wrt), args, wrt
    stochastic = uniform((4, 4))
    return [
        gradient(ridge, 0, normal(3), normal((5, 3)), normal(5), 0.1),
        gradient(cross_entropy, 0, normal((3, 4)), normal((5, 3)), np.array([0, 2, 1, 3, 0])),
        gradient(attention, (0, 1, 2), normal((4, 3)), normal((5, 3)), normal((5, 2))),
        gradient(root_mean_square_norm, (0, 1), normal((4, 3)), normal(3), normal((4, 3))),
        gradient(local_level, (1, 2), normal(6), 0.5, 0.1),
        gradient(marginal_likelihood, (2, 3), normal(4), normal(4), 1.5, 0.1),
        gradient(heat, (0, 1), normal(8), 0.2, 3),
        gradient(lotka_volterra, (0, 1), np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.9]), 0.1, 4),
        gradient(pendulum, (0, 2), 0.3, 0.0, 1.2, 0.01, 5),
        gradient(forward_algorithm, (0, 1, 2), uniform(3), uniform((3, 3)), uniform((3, 4)), np.array([0, 3, 1, 2])),
        gradient(call_price, (0, 3), 100.0, 95.0, 0.02, 0.3, 0.5),
        gradient(american_put, (0, 2), 100.0, 110.0, 1.1, 0.99, 4),
        gradient(soft_alignment, (0, 1), uniform((3, 4)), 0.5),
        gradient(page_rank, 1, stochastic / stochastic.sum(axis=0), 0.85, 1e-6),
        gradient(kepler, (0, 1), 0.7, 0.3),
        gradient(smoothing, (0, 1), normal(7), normal(3)),
        gradient(partial_likelihood, 0, normal(3), normal((6, 3)), np.array([1.0, 0, 1, 1, 0, 1])),
        gradient(ratings, (0, 1), normal((3, 2)), normal((4, 2)), np.array([0, 1, 2, 1]), np.array([3, 0, 1, 1]),
                 normal(4)),
        gradient(springs, 0, normal((4, 2)), np.array([0, 1, 2]), np.array([1, 2, 3]), np.ones(3)),
        (predict, gs.vmap(predict, in_axes=(None, 0)), ([normal((4, 3)), normal((2, 4))], normal((5, 3))), None),
    ]
