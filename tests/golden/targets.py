"""What emitted source should read like.

Each pair is a function as a user writes it and the derivative as a careful
person would write it by hand.  These are marks to aim at, not texts to match
letter by letter; where the compiler finds something shorter or clearer, better.
`python targets.py` checks every pair against central differences.

Conventions shown here
  dx        adjoint of x (reverse mode): same shape and dtype as x
  x_dot     tangent of x (forward mode)
  xs_saved  values of x that the backward sweep reads and the forward sweep overwrites
  Every group of backward lines stands under the user's statement it belongs to.
  No helper is called where ranks and unit axes are known.
"""
import numpy as np

# --- straight line, scalar ---------------------------------------------------

def poly(x):
    return x**3 - 2 * x**2 + 3 * x - 1


def grad_poly(x):
    return 3 * x**2 - 4 * x + 3


# --- straight line, arrays: W1 (d, h), b1 (h,), x (n, d), y (n, k) ------------

def mlp_loss(W1, b1, W2, b2, x, y):
    h = np.tanh(x @ W1 + b1)
    p = h @ W2 + b2
    return np.sum((p - y) ** 2)


def grad_mlp_loss(W1, b1, W2, b2, x, y):
    h = np.tanh(x @ W1 + b1)
    p = h @ W2 + b2

    # return np.sum((p - y) ** 2)
    dp = 2 * (p - y)
    # p = h @ W2 + b2
    dh = dp @ W2.T
    dW2 = h.T @ dp
    db2 = np.sum(dp, axis=0)
    # h = np.tanh(x @ W1 + b1)
    dz = dh * (1 - h * h)
    dW1 = x.T @ dz
    db1 = np.sum(dz, axis=0)
    return dW1, db1, dW2, db2


# --- forward mode, in the weights; the data come from outside --------------------

def mlp_loss_on(x, y):
    def mlp_loss(W1, b1, W2, b2):
        h = np.tanh(x @ W1 + b1)
        p = h @ W2 + b2
        return np.sum((p - y) ** 2)
    return mlp_loss


def jvp_mlp_loss(W1, b1, W2, b2, x, y, W1_dot, b1_dot, W2_dot, b2_dot):
    h = np.tanh(x @ W1 + b1)
    h_dot = (1 - h * h) * (x @ W1_dot + b1_dot)
    p = h @ W2 + b2
    p_dot = h_dot @ W2 + h @ W2_dot + b2_dot
    loss = np.sum((p - y) ** 2)
    loss_dot = np.sum(2 * (p - y) * p_dot)
    return loss, loss_dot


# --- counted loop: the overwritten value is saved, the invariant one is not ----

def rollout(x, w, n):
    for _ in range(n):
        x = x * np.tanh(w)
    return x


def grad_rollout(x, w, n):
    t = np.tanh(w)
    x_saved = np.empty(n)
    for i in range(n):
        x_saved[i] = x
        x = x * t

    dx = 1.0
    dt = 0.0
    for i in reversed(range(n)):
        # x = x * np.tanh(w)
        dt += dx * x_saved[i]
        dx = dx * t
    dw = dt * (1 - t * t)
    return dx, dw


# --- while loop: the trip count is not known beforehand ----------------------

def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def grad_newton_sqrt(a):
    x = a
    x_saved = []
    while abs(x * x - a) > 1e-12:
        x_saved.append(x)
        x = 0.5 * (x + a / x)

    dx = 1.0
    da = 0.0
    while x_saved:
        x = x_saved.pop()
        # x = 0.5 * (x + a / x)
        da += 0.5 * dx / x
        dx = 0.5 * dx * (1 - a / x**2)
    # x = a
    da += dx
    return da


# --- branches: the taken one is asked again, not taped -------------------------

def huber(r, delta):
    if abs(r) <= delta:
        loss = 0.5 * r * r
    else:
        loss = delta * (abs(r) - 0.5 * delta)
    return loss


def grad_huber(r, delta):
    if abs(r) <= delta:
        dr = r
    else:
        dr = delta * np.sign(r)
    return dr


# --- the same with an early return -----------------------------------------------

def huber_early(r, delta):
    if abs(r) <= delta:
        return 0.5 * r * r
    return delta * (abs(r) - 0.5 * delta)


def grad_huber_early(r, delta):
    if abs(r) <= delta:
        return r
    return delta * np.sign(r)


# --- writing into an array ---------------------------------------------------

def heat_energy(u, kappa, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def grad_heat_energy(u, kappa, steps):
    u = u.copy()
    laps_saved = np.empty((steps, u.size - 2))
    for i in range(steps):
        lap = u[2:] - 2 * u[1:-1] + u[:-2]
        laps_saved[i] = lap
        u[1:-1] += kappa * lap

    # return np.sum(u**2)
    du = 2 * u
    dkappa = 0.0
    for i in reversed(range(steps)):
        # u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])
        dinner = du[1:-1].copy()
        dkappa += np.sum(dinner * laps_saved[i])
        dlap = kappa * dinner
        du[2:] += dlap
        du[1:-1] -= 2 * dlap
        du[:-2] += dlap
    return du, dkappa


# --- a helper: it gets a derivative of its own, and saves only what that needs --

def layer(x, W, b):
    return np.tanh(x @ W + b)


def two_layers(x, W, b):
    return np.sum(layer(layer(x, W, b), W, b))


def vjp_layer(dy, y, x, W):
    dz = dy * (1 - y * y)
    return dz @ W.T, x.T @ dz, np.sum(dz, axis=0)


def grad_two_layers(x, W, b):
    h = layer(x, W, b)
    y = layer(h, W, b)

    # return np.sum(layer(layer(x, W, b), W, b))
    dh, dW, db = vjp_layer(np.ones_like(y), y, h, W)
    dx, dW_1, db_1 = vjp_layer(dh, h, x, W)
    return dx, dW + dW_1, db + db_1


# --- vectorization: ranks are known, so the batched axis is placed, not guessed --

def predict(W, b, x):
    """W (k, d), b (k,), x (d,)"""
    return np.tanh(W @ x + b)


def vmap_predict(W, b, x):
    """Batched over axis 0 of x (n, d)."""
    return np.tanh(x @ W.T + b)


# --- vectorization of control flow: a loop over the batch, not both branches ----

def escape_time(c, limit):
    z = 0j
    for i in range(limit):
        if abs(z) > 2:
            return i
        z = z * z + c
    return limit


def vmap_escape_time(c, limit):
    out = np.empty(c.shape[0], dtype=np.int64)
    for b in range(c.shape[0]):
        out[b] = escape_time(c[b], limit)
    return out


# --- parameters in a list of tuples: the loop stays a loop ---------------------

def network_loss(params, x, y):
    for W, b in params[:-1]:
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    return np.sum((x @ W + b - y) ** 2)


def grad_network_loss(params, x, y):
    x_saved = []
    for W, b in params[:-1]:
        x_saved.append(x)
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    p = x @ W + b

    # return np.sum((x @ W + b - y) ** 2)
    dp = 2 * (p - y)
    dx = dp @ W.T
    dparams = [(x.T @ dp, np.sum(dp, axis=0))]
    for W, b in reversed(params[:-1]):
        # x = np.tanh(x @ W + b)
        dz = dx * (1 - x * x)
        x = x_saved.pop()
        dx = dz @ W.T
        dparams.insert(0, (x.T @ dz, np.sum(dz, axis=0)))
    return dparams


# --- the checks --------------------------------------------------------------

def _directional(f, args, wrt, rng, eps=1e-6):
    """Central difference of f along a random direction, and that direction."""
    steps = [np.asarray(rng.standard_normal(np.shape(args[i]))) for i in wrt]
    def at(sign):
        moved = list(args)
        for i, s in zip(wrt, steps):
            moved[i] = args[i] + sign * eps * s
        return f(*moved)
    return (at(1) - at(-1)) / (2 * eps), steps


def _check(name, f, g, args, wrt, rng):
    expected, steps = _directional(f, args, wrt, rng)
    got = g(*args)
    got = got if isinstance(got, tuple) else (got,)
    found = sum(np.sum(d * s) for d, s in zip(got, steps))
    ok = np.allclose(found, expected, rtol=1e-6, atol=1e-8)
    print(f"{'ok  ' if ok else 'FAIL'} {name}")
    return ok


def main():
    rng = np.random.default_rng(0)
    n, d, h, k = 5, 3, 4, 2
    W1, b1, W2, b2 = (rng.standard_normal(s) for s in [(d, h), h, (h, k), k])
    x, y = rng.standard_normal((n, d)), rng.standard_normal((n, k))
    W, b = rng.standard_normal((d, d)), rng.standard_normal(d)
    u = rng.standard_normal(16)
    results = [
        _check("poly", poly, grad_poly, (1.3,), (0,), rng),
        _check("mlp_loss", mlp_loss, grad_mlp_loss, (W1, b1, W2, b2, x, y), (0, 1, 2, 3), rng),
        _check("rollout", rollout, grad_rollout, (0.9, 1.1, 20), (0, 1), rng),
        _check("newton_sqrt", newton_sqrt, grad_newton_sqrt, (2.0,), (0,), rng),
        _check("huber inside", huber, lambda r, q: (grad_huber(r, q),), (0.4, 1.0), (0,), rng),
        _check("huber outside", huber, lambda r, q: (grad_huber(r, q),), (-3.0, 1.0), (0,), rng),
        _check("huber early", huber_early, lambda r, q: (grad_huber_early(r, q),), (0.4, 1.0), (0,), rng),
        _check("huber early", huber_early, lambda r, q: (grad_huber_early(r, q),), (-3.0, 1.0), (0,), rng),
        _check("heat_energy", heat_energy, grad_heat_energy, (u, 0.2, 9), (0, 1), rng),
        _check("two_layers", two_layers, grad_two_layers, (x, W, b), (0, 1, 2), rng),
    ]
    dots = [rng.standard_normal(a.shape) for a in (W1, b1, W2, b2)]
    eps = 1e-6
    def move(s):
        return mlp_loss(*(a + s * eps * v for a, v in zip((W1, b1, W2, b2), dots)), x, y)
    results.append(np.allclose(jvp_mlp_loss(W1, b1, W2, b2, x, y, *dots)[1], (move(1) - move(-1)) / (2 * eps)))
    results.append(np.allclose(vmap_predict(W, b, x), np.stack([predict(W, b, r) for r in x])))
    c = np.array([0.1 + 0.1j, 1 + 1j, -1 + 0j])
    results.append(list(vmap_escape_time(c, 50)) == [escape_time(v, 50) for v in c])
    params = [(W1, b1), (W2, b2)]
    def flat(W1, b1, W2, b2):
        return network_loss([(W1, b1), (W2, b2)], x, y)
    results.append(_check("network_loss", flat,
                          lambda *_: tuple(a for pair in grad_network_loss(params, x, y) for a in pair),
                          (W1, b1, W2, b2), (0, 1, 2, 3), rng))
    print(f"{sum(map(bool, results))} passed, {len(results) - sum(map(bool, results))} failed")


if __name__ == "__main__":
    main()
