"""Ten pairs from ten fields: a function, and the gradient that a careful person writes.

They were written before any of these functions was given to the compiler.  `python ten_targets.py` checks every pair
against central differences.
"""
import numpy as np

# --- pharmacokinetics: doses into one compartment -------------------------------------------------------------------

def dosing(clearance, volume, doses, observed, dt):
    amount = 0.0
    loss = 0.0
    for k in range(doses.shape[0]):
        amount = (amount + doses[k]) * np.exp(-clearance / volume * dt)
        loss += (amount / volume - observed[k]) ** 2
    return loss


def grad_dosing(clearance, volume, doses, observed, dt):
    n = doses.shape[0]
    decay = np.exp(-clearance / volume * dt)
    amount_saved = np.empty(n)
    amount = 0.0
    for k in range(n):
        amount = (amount + doses[k]) * decay
        amount_saved[k] = amount

    damount = 0.0
    ddecay = 0.0
    dvolume = 0.0
    for k in reversed(range(n)):
        amount = amount_saved[k]
        # loss += (amount / volume - observed[k]) ** 2
        dratio = 2 * (amount / volume - observed[k])
        damount += dratio / volume
        dvolume -= dratio * amount / volume ** 2
        # amount = (amount + doses[k]) * np.exp(-clearance / volume * dt)
        ddecay += damount * amount / decay
        damount = damount * decay
    drate = -ddecay * decay * dt
    dclearance = drate / volume
    dvolume -= drate * clearance / volume ** 2
    return dclearance, dvolume


# --- geodesy: the length of a route on a sphere ---------------------------------------------------------------------

def route(lat, lon):
    cosines = np.cos(lat[1:]) * np.cos(lat[:-1])
    a = np.sin((lat[1:] - lat[:-1]) / 2) ** 2 + cosines * np.sin((lon[1:] - lon[:-1]) / 2) ** 2
    return np.sum(2 * np.arcsin(np.sqrt(a)))


def grad_route(lat, lon):
    half_lat = (lat[1:] - lat[:-1]) / 2
    half_lon = (lon[1:] - lon[:-1]) / 2
    sin_lon = np.sin(half_lon)
    cos_1 = np.cos(lat[1:])
    cos_0 = np.cos(lat[:-1])
    a = np.sin(half_lat) ** 2 + cos_1 * cos_0 * sin_lon ** 2

    # return np.sum(2 * np.arcsin(np.sqrt(a)))
    da = 1 / (np.sqrt(1 - a) * np.sqrt(a))
    # a = np.sin((lat[1:] - lat[:-1]) / 2) ** 2 + cosines * np.sin((lon[1:] - lon[:-1]) / 2) ** 2
    dhalf_lat = da * np.sin(half_lat) * np.cos(half_lat)
    dhalf_lon = da * cos_1 * cos_0 * sin_lon * np.cos(half_lon)
    dcos = da * sin_lon ** 2
    dlat = np.zeros_like(lat)
    dlat[1:] += dhalf_lat - dcos * cos_0 * np.sin(lat[1:])
    dlat[:-1] -= dhalf_lat + dcos * cos_1 * np.sin(lat[:-1])
    dlon = np.zeros_like(lon)
    dlon[1:] += dhalf_lon
    dlon[:-1] -= dhalf_lon
    return dlat, dlon


# --- epidemiology of counts: a Poisson regression with exposures ----------------------------------------------------

def poisson(X, w, exposure, counts):
    eta = X @ w + np.log(exposure)
    return np.mean(np.exp(eta) - counts * eta) + 0.5 * np.sum(w ** 2)


def grad_poisson(X, w, exposure, counts):
    eta = X @ w + np.log(exposure)

    # return np.mean(np.exp(eta) - counts * eta) + 0.5 * np.sum(w ** 2)
    deta = (np.exp(eta) - counts) / eta.shape[0]
    # eta = X @ w + np.log(exposure)
    dw = X.T @ deta + w
    dexposure = deta / exposure
    return dw, dexposure


# --- chemistry: Lennard-Jones ----------------------------------------------------------------------------------------

def lennard_jones(x, eps, sigma):
    e = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            s6 = (sigma ** 2 / (d @ d)) ** 3
            e += 4 * eps * (s6 * s6 - s6)
    return e


def grad_lennard_jones(x, eps, sigma):
    dx = np.zeros_like(x)
    deps = 0.0
    dsigma = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            r2 = d @ d
            s6 = (sigma ** 2 / r2) ** 3
            # e += 4 * eps * (s6 * s6 - s6)
            deps += 4 * (s6 * s6 - s6)
            ds6 = 4 * eps * (2 * s6 - 1)
            # s6 = (sigma ** 2 / (d @ d)) ** 3
            dsigma += 6 * ds6 * s6 / sigma
            dd = -6 * ds6 * s6 / r2 * d
            # d = x[i] - x[j]
            dx[i] += dd
            dx[j] -= dd
    return dx, deps, dsigma


# --- audio: a filter with one pole ----------------------------------------------------------------------------------

def one_pole(a, b, x, target):
    y = 0.0
    loss = 0.0
    for n in range(x.shape[0]):
        y = b * x[n] - a * y
        loss += (y - target[n]) ** 2
    return loss / x.shape[0]


def grad_one_pole(a, b, x, target):
    N = x.shape[0]
    y_saved = np.empty(N)
    y = 0.0
    for n in range(N):
        y_saved[n] = y
        y = b * x[n] - a * y

    dloss = 1 / N
    dy = 0.0
    da = 0.0
    db = 0.0
    for n in reversed(range(N)):
        # loss += (y - target[n]) ** 2
        dy += 2 * dloss * (y - target[n])
        # y = b * x[n] - a * y
        y = y_saved[n]
        db += dy * x[n]
        da -= dy * y
        dy = -dy * a
    return da, db


# --- robotics: where the tip of a planar arm is ---------------------------------------------------------------------

def reach(angles, lengths, goal):
    heading = np.cumsum(angles)
    x = np.sum(lengths * np.cos(heading))
    y = np.sum(lengths * np.sin(heading))
    return (x - goal[0]) ** 2 + (y - goal[1]) ** 2


def grad_reach(angles, lengths, goal):
    heading = np.cumsum(angles)
    cos, sin = np.cos(heading), np.sin(heading)
    x = np.sum(lengths * cos)
    y = np.sum(lengths * sin)

    # return (x - goal[0]) ** 2 + (y - goal[1]) ** 2
    dx = 2 * (x - goal[0])
    dy = 2 * (y - goal[1])
    # y = np.sum(lengths * np.sin(heading))
    # x = np.sum(lengths * np.cos(heading))
    dlengths = dy * sin + dx * cos
    dheading = lengths * (dy * cos - dx * sin)
    # heading = np.cumsum(angles)
    dangles = np.cumsum(dheading[::-1])[::-1]
    return dangles, dlengths


# --- finance: the ratio of return to risk ---------------------------------------------------------------------------

def sharpe(w, mean, cov):
    return w @ mean / np.sqrt(w @ cov @ w)


def grad_sharpe(w, mean, cov):
    risk = np.sqrt(w @ cov @ w)

    # return w @ mean / np.sqrt(w @ cov @ w)
    drisk = -(w @ mean) / risk ** 2
    dvar = drisk / (2 * risk)
    dw = mean / risk + dvar * (cov @ w + cov.T @ w)
    dmean = w / risk
    return dw, dmean


# --- graphs: ranks of pages -----------------------------------------------------------------------------------------

def ranks(A, damping, target, passes):
    n = A.shape[0]
    P = A / np.sum(A, axis=0)
    r = np.ones(n) / n
    for _ in range(passes):
        r = damping * (P @ r) + (1 - damping) / n
    return np.sum((r - target) ** 2)


def grad_ranks(A, damping, target, passes):
    n = A.shape[0]
    sums = np.sum(A, axis=0)
    P = A / sums
    r_saved = np.empty((passes, n))
    r = np.ones(n) / n
    for k in range(passes):
        r_saved[k] = r
        r = damping * (P @ r) + (1 - damping) / n

    # return np.sum((r - target) ** 2)
    dr = 2 * (r - target)
    ddamping = 0.0
    dP = np.zeros_like(P)
    for k in reversed(range(passes)):
        # r = damping * (P @ r) + (1 - damping) / n
        r = r_saved[k]
        ddamping += dr @ (P @ r) - np.sum(dr) / n
        dz = damping * dr
        dP += np.outer(dz, r)
        dr = P.T @ dz
    # P = A / np.sum(A, axis=0)
    dA = (dP - np.sum(dP * P, axis=0)) / sums
    return dA, ddamping


# --- networks: a residual block with a gate -------------------------------------------------------------------------

def block(x, W, V, b):
    h = np.tanh(x @ W)
    g = 1 / (1 + np.exp(-(x @ V + b)))
    return np.sum((x + g * h) ** 2)


def grad_block(x, W, V, b):
    h = np.tanh(x @ W)
    g = 1 / (1 + np.exp(-(x @ V + b)))

    # return np.sum((x + g * h) ** 2)
    dy = 2 * (x + g * h)
    dg = dy * h
    dh = dy * g
    # g = 1 / (1 + np.exp(-(x @ V + b)))
    dz = dg * g * (1 - g)
    db = np.sum(dz, axis=0)
    dV = x.T @ dz
    # h = np.tanh(x @ W)
    da = dh * (1 - h * h)
    dW = x.T @ da
    dx = dy + dz @ V.T + da @ W.T
    return dx, dW, dV, db


# --- ecology: a population that is counted --------------------------------------------------------------------------

def ricker(r, K, N0, counts):
    N = N0
    nll = 0.0
    for t in range(counts.shape[0]):
        N = N * np.exp(r * (1 - N / K))
        nll += N - counts[t] * np.log(N)
    return nll


def grad_ricker(r, K, N0, counts):
    T = counts.shape[0]
    N_saved = np.empty(T)
    N = N0
    for t in range(T):
        N_saved[t] = N
        N = N * np.exp(r * (1 - N / K))

    dr = 0.0
    dK = 0.0
    dN = 0.0
    for t in reversed(range(T)):
        # nll += N - counts[t] * np.log(N)
        dN += 1 - counts[t] / N
        # N = N * np.exp(r * (1 - N / K))
        N0 = N_saved[t]
        dgrowth = dN * N
        dr += dgrowth * (1 - N0 / K)
        dK += dgrowth * r * N0 / K ** 2
        dN = dN * N / N0 - dgrowth * r / K
        N = N0
    return dr, dK, dN


def cases():
    rng = np.random.default_rng(0)
    normal, uniform = rng.standard_normal, rng.uniform
    A = normal((4, 4))
    return [
        (dosing, grad_dosing, (0.7, 2.0, uniform(0, 1, 6), uniform(0, 1, 6), 0.5), (0, 1)),
        (route, grad_route, (uniform(-1, 1, 5), uniform(-1, 1, 5)), (0, 1)),
        (poisson, grad_poisson, (normal((7, 3)), normal(3), uniform(0.5, 2, 7), rng.poisson(2.0, 7) * 1.0), (1, 2)),
        (lennard_jones, grad_lennard_jones, (normal((5, 3)), 0.8, 0.9), (0, 1, 2)),
        (one_pole, grad_one_pole, (0.4, 0.7, normal(8), normal(8)), (0, 1)),
        (reach, grad_reach, (normal(4), uniform(0.5, 1, 4), np.array([1.0, 0.5])), (0, 1)),
        (sharpe, grad_sharpe, (uniform(0, 1, 4), uniform(0, 1, 4), A @ A.T), (0, 1)),
        (ranks, grad_ranks, (uniform(0.1, 1, (4, 4)), 0.85, uniform(0, 1, 4), 5), (0, 1)),
        (block, grad_block, (normal((6, 3)), normal((3, 3)), normal((3, 3)), normal(3)), (0, 1, 2, 3)),
        (ricker, grad_ricker, (0.9, 5.0, 1.5, rng.poisson(4.0, 7) * 1.0), (0, 1, 2)),
    ]


def is_right(f, gradient, args, wrt, rng):
    """Whether a gradient agrees with central differences along a random direction."""
    steps = [np.asarray(rng.standard_normal(np.shape(args[k]))) for k in wrt]
    size = 1e-6

    def at(sign):
        moved = list(args)
        for k, s in zip(wrt, steps):
            moved[k] = args[k] + sign * size * (s if np.ndim(args[k]) else float(s))
        return f(*moved)
    want = (at(1) - at(-1)) / (2 * size)
    got = sum(np.sum(g * s) for g, s in zip(gradient(*args), steps))
    return bool(np.isclose(got, want, rtol=1e-6, atol=1e-7))


if __name__ == "__main__":
    generator = np.random.default_rng(1)
    for pair in cases():
        print(f"{pair[0].__name__:16}", "right" if is_right(*pair, generator) else "WRONG")
