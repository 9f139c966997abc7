"""A cubic B-spline with free knots through scattered data: squared residuals, by de Boor's recurrence."""
import numpy as np

SOURCE = "C. de Boor, A Practical Guide to Splines (1978), chapter X"
argnums = (0, 1)
static_argnums = ()
sizes = {"S": dict(points=200, knots=8), "M": dict(points=10_000, knots=40)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(109 + seed)
    inner = np.linspace(0.0, 1.0, s["knots"] + 2)[1:-1] + 0.2 / s["knots"] * rng.uniform(-1, 1, s["knots"])
    x = rng.uniform(0.0, 0.999, s["points"])
    return inner, rng.normal(size=s["knots"] + 4), x, np.sin(9.0 * x) + 0.1 * rng.normal(size=s["points"])


def objective_numpy(inner, coefficients, x, y):
    p = 3
    t = np.concatenate((np.zeros(p + 1), inner, np.ones(p + 1)))
    d = np.zeros(p + 1)
    loss = 0.0
    for i in range(len(x)):
        k = np.searchsorted(t[p + 1:len(t) - p - 1], x[i], side="right") + p
        for j in range(p + 1):
            d[j] = coefficients[k - p + j]
        for r in range(1, p + 1):
            for j in range(p, r - 1, -1):
                low, high = t[k - p + j], t[k + 1 + j - r]
                a = (x[i] - low) / (high - low)
                d[j] = (1.0 - a) * d[j - 1] + a * d[j]
        loss += (d[p] - y[i]) ** 2
    return loss / len(x)


def objective_vec(inner, coefficients, x, y):
    p = 3
    t = np.concatenate((np.zeros(p + 1), inner, np.ones(p + 1)))
    k = np.searchsorted(inner, x, side="right") + p
    d = [coefficients[k - p + j] for j in range(p + 1)]
    for r in range(1, p + 1):
        for j in range(p, r - 1, -1):
            low, high = t[k - p + j], t[k + 1 + j - r]
            a = (x - low) / (high - low)
            d[j] = (1.0 - a) * d[j - 1] + a * d[j]
    return np.mean((d[p] - y) ** 2)


variants = {"numpy": objective_numpy, "vec": objective_vec}


def objective_jax(inner, coefficients, x, y):
    import jax.numpy as jnp
    p = 3
    t = jnp.concatenate((jnp.zeros(p + 1, x.dtype), inner, jnp.ones(p + 1, x.dtype)))
    k = jnp.searchsorted(inner, x, side="right") + p
    d = [coefficients[k - p + j] for j in range(p + 1)]
    for r in range(1, p + 1):
        for j in range(p, r - 1, -1):
            low, high = t[k - p + j], t[k + 1 + j - r]
            a = (x - low) / (high - low)
            d[j] = (1.0 - a) * d[j - 1] + a * d[j]
    return ((d[p] - y) ** 2).mean()
