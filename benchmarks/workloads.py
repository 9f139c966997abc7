"""Workloads from plain NumPy source, and how much faster than JAX each got when it was written by hand for Numba.

Each is a class with the fields of a module in problems/ (`sizes`, `argnums`, `make_inputs`, `variants`,
`objective_jax`) and `by_hand`: JAX's time over the hand-written kernel's, in float64 and float32, measured before the
compiler was written.  `plain`: the function itself is timed, not its value and gradient.
"""
import math

import numpy as np
from scipy.special import erf


def given(seed):
    return np.random.default_rng(20 + seed)


class recurrence:
    """1000 steps of the logistic map."""
    by_hand, argnums, static_argnums, sizes = (4.9, 4.6), (0, 1), (), {"M": None}

    def make_inputs(size, seed=0):
        return 0.3 + 0.01 * seed, 2.6

    def objective_numpy(x, r):
        for _ in range(1000):
            x = r * x * (1 - x)
        return x

    def objective_jax(x, r):
        import jax
        return jax.lax.scan(lambda c, _: (r * c * (1 - c), None), x, None, length=1000)[0]

    def objective_jax_unrolled(x, r):
        import jax
        return jax.lax.scan(lambda c, _: (r * c * (1 - c), None), x, None, length=1000, unroll=20)[0]


class branches:
    """1000 steps of a Newton iteration with two branches."""
    by_hand, argnums, static_argnums, sizes = (1.75, 1.7), (0, 1), (), {"M": None}

    def make_inputs(size, seed=0):
        return 0.7 + 0.01 * seed, 2.2

    def objective_numpy(x, a):
        for _ in range(1000):
            if x > 1.0:
                x = x - (x * x * x - a) / (3 * x * x)
            else:
                x = x + 0.1 * np.sin(a * x)
            if abs(x * x * x - a) < 1e-3:
                x = 0.5 * x
        return x

    def objective_jax(x, a):
        import jax
        import jax.numpy as jnp

        def body(c, _):
            c = jax.lax.cond(c > 1.0, lambda c: c - (c * c * c - a) / (3 * c * c),
                             lambda c: c + 0.1 * jnp.sin(a * c), c)
            return jax.lax.cond(jnp.abs(c * c * c - a) < 1e-3, lambda c: 0.5 * c, lambda c: c, c), None
        return jax.lax.scan(body, x, None, length=1000)[0]

    def objective_jax_where(x, a):
        import jax
        import jax.numpy as jnp

        def body(c, _):
            c = jnp.where(c > 1.0, c - (c * c * c - a) / (3 * c * c), c + 0.1 * jnp.sin(a * c))
            return jnp.where(jnp.abs(c * c * c - a) < 1e-3, 0.5 * c, c), None
        return jax.lax.scan(body, x, None, length=1000)[0]


class square_root:
    """A while loop, forward: JAX has no reverse mode of it."""
    by_hand, argnums, static_argnums, sizes, plain = (17, 28), (0,), (), {"M": None}, True

    def make_inputs(size, seed=0):
        return (1e10 + seed,)

    def objective_numpy(a):
        x = a
        while abs(x * x - a) > 1e-6 * a:
            x = 0.5 * (x + a / x)
        return x

    def objective_jax(a):
        import jax
        import jax.numpy as jnp
        return jax.lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-6 * a, lambda x: 0.5 * (x + a / x), a)


class logistic:
    """Logistic regression, value and gradient."""
    by_hand, argnums, static_argnums = {"S": (10, 11), "L": (1.6, 1.7)}, (0, 1), ()
    sizes = {"S": (200, 10), "L": (10_000, 100)}

    def make_inputs(size, seed=0):
        rng, (n, d) = given(seed), logistic.sizes[size]
        return rng.normal(size=d) / 9, 0.1, rng.normal(size=(n, d)), np.sign(rng.normal(size=n))

    def objective_numpy(w, b, X, y):
        z = X @ w + b
        return np.mean(np.logaddexp(0.0, -y * z)) + 0.05 * np.sum(w * w)

    def objective_jax(w, b, X, y):
        import jax.numpy as jnp
        return jnp.mean(jnp.logaddexp(0.0, -y * (X @ w + b))) + 0.05 * jnp.sum(w * w)


def layers(rng, widths):
    return [(rng.normal(size=(a, b)) / math.sqrt(a), 0.1 * rng.normal(size=b)) for a, b in zip(widths, widths[1:])]


class network:
    """784-512-512-10, tanh, cross entropy, batch 128."""
    by_hand, argnums, static_argnums, sizes = (1.4, 1.04), (0,), (), {"L": None}

    def make_inputs(size, seed=0):
        rng = given(seed)
        return layers(rng, [784, 512, 512, 10]), rng.normal(size=(128, 784)), np.eye(10)[rng.integers(0, 10, 128)]

    def objective_numpy(params, X, Y):
        h = X
        for W, b in params[:-1]:
            h = np.tanh(h @ W + b)
        W, b = params[-1]
        o = h @ W + b
        o = o - np.max(o, axis=1, keepdims=True)
        return -np.mean(np.sum((o - np.log(np.sum(np.exp(o), axis=1, keepdims=True))) * Y, axis=1))

    def objective_jax(params, X, Y):
        import jax
        import jax.numpy as jnp
        h = X
        for W, b in params[:-1]:
            h = jnp.tanh(h @ W + b)
        W, b = params[-1]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(h @ W + b) * Y, 1))


class small_network:
    """4-64-64-64-1, relu, mean squares, batch 64."""
    by_hand, argnums, static_argnums, sizes = (2.1, 2.5), (0,), (), {"S": None}

    def make_inputs(size, seed=0):
        rng = given(seed)
        return layers(rng, [4, 64, 64, 64, 1]), rng.normal(size=(64, 4)), rng.normal(size=(64, 1))

    def objective_numpy(params, X, Y):
        h = X
        for W, b in params[:-1]:
            h = np.maximum(h @ W + b, 0.0)
        W, b = params[-1]
        return np.mean((h @ W + b - Y) ** 2)

    def objective_jax(params, X, Y):
        import jax
        import jax.numpy as jnp
        h = X
        for W, b in params[:-1]:
            h = jax.nn.relu(h @ W + b)
        W, b = params[-1]
        return jnp.mean((h @ W + b - Y) ** 2)


class recurrent:
    """A recurrent network, 100 steps, 64 wide, batch 32."""
    by_hand, argnums, static_argnums, sizes = (1.8, 1.9), (0,), (), {"M": None}

    def make_inputs(size, seed=0):
        rng, h = given(seed), 64
        params = rng.normal(size=(32, h)) / 6, rng.normal(size=(h, h)) / 9, 0.1 * rng.normal(size=h)
        return params, rng.normal(size=(100, 32, 32)), np.zeros((32, h))

    def objective_numpy(params, xs, h):
        Wx, Wh, b = params
        for t in range(xs.shape[0]):
            h = np.tanh(xs[t] @ Wx + h @ Wh + b)
        return np.mean(h * h)

    def objective_jax(params, xs, h):
        import jax
        import jax.numpy as jnp
        Wx, Wh, b = params
        h, _ = jax.lax.scan(lambda h, x: (jnp.tanh(x @ Wx + h @ Wh + b), None), h, xs)
        return jnp.mean(h * h)

    def objective_jax_hoisted(params, xs, h):
        import jax
        import jax.numpy as jnp
        Wx, Wh, b = params
        h, _ = jax.lax.scan(lambda h, z: (jnp.tanh(z + h @ Wh), None), h, xs @ Wx + b)
        return jnp.mean(h * h)


class lstm_cell:
    """A long short-term memory, 50 steps, 64 wide, batch 32."""
    by_hand, argnums, static_argnums, sizes = (1.65, 1.7), (0,), (), {"M": None}

    def make_inputs(size, seed=0):
        rng, h = given(seed), 64
        params = rng.normal(size=(32, 4 * h)) / 6, rng.normal(size=(h, 4 * h)) / 9, 0.1 * rng.normal(size=4 * h)
        return params, rng.normal(size=(50, 32, 32)), np.zeros((32, h)), np.zeros((32, h))

    def objective_numpy(params, xs, h, c):
        Wx, Wh, b = params
        n = h.shape[1]
        for t in range(xs.shape[0]):
            z = xs[t] @ Wx + h @ Wh + b
            i, f = 1 / (1 + np.exp(-z[:, :n])), 1 / (1 + np.exp(-z[:, n:2 * n]))
            g, o = np.tanh(z[:, 2 * n:3 * n]), 1 / (1 + np.exp(-z[:, 3 * n:]))
            c = f * c + i * g
            h = o * np.tanh(c)
        return np.mean(h * h)

    def objective_jax(params, xs, h, c):
        import jax
        import jax.numpy as jnp
        Wx, Wh, b = params

        def step(hc, x):
            h, c = hc
            i, f, g, o = jnp.split(x @ Wx + h @ Wh + b, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
        (h, _), _ = jax.lax.scan(step, (h, c), xs)
        return jnp.mean(h * h)


class standardise:
    """Rows to mean 0 and deviation 1, forward."""
    by_hand, argnums, static_argnums, sizes, plain = (2.2, 1.9), (0,), (), {"L": None}, True

    def make_inputs(size, seed=0):
        return (given(seed).normal(size=(2000, 2000)),)

    def objective_numpy(x):
        return (x - np.mean(x, axis=1, keepdims=True)) / np.std(x, axis=1, keepdims=True)

    def objective_jax(x):
        return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)


class standardise_gradient:
    by_hand, argnums, static_argnums, sizes = (4.5, 3.7), (0,), (), {"L": None}

    def make_inputs(size, seed=0):
        return given(seed).normal(size=(2000, 2000)), given(seed + 9).normal(size=(2000, 2000))

    def objective_numpy(x, w):
        return np.sum(w * ((x - np.mean(x, axis=1, keepdims=True)) / np.std(x, axis=1, keepdims=True)))

    def objective_jax(x, w):
        import jax.numpy as jnp
        return jnp.sum(w * ((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)))


class option_prices:
    """Black and Scholes' formula for a million options, forward."""
    by_hand, argnums, static_argnums, sizes, plain = (5.5, 1.7), (0,), (), {"L": None}, True

    def make_inputs(size, seed=0):
        rng, n = given(seed), 1_000_000
        return rng.uniform(50, 150, n), rng.uniform(50, 150, n), rng.uniform(0.1, 2, n), rng.uniform(0.1, 0.5, n), 0.03

    def objective_numpy(S, K, T, v, r):
        root = v * np.sqrt(T)
        d1 = (np.log(S / K) + (r + 0.5 * v * v) * T) / root
        d2 = d1 - root
        return S * 0.5 * (1 + erf(d1 / np.sqrt(2))) - K * np.exp(-r * T) * 0.5 * (1 + erf(d2 / np.sqrt(2)))

    def objective_jax(S, K, T, v, r):
        import jax.numpy as jnp
        from jax.scipy.special import erf
        root = v * jnp.sqrt(T)
        d1 = (jnp.log(S / K) + (r + 0.5 * v * v) * T) / root
        d2 = d1 - root
        return S * 0.5 * (1 + erf(d1 / np.sqrt(2))) - K * jnp.exp(-r * T) * 0.5 * (1 + erf(d2 / np.sqrt(2)))


class option_sensitivities:
    by_hand, argnums, static_argnums, sizes = (10.5, 4.3), (0, 1, 2, 3), (), {"L": None}
    make_inputs = option_prices.make_inputs

    def objective_numpy(S, K, T, v, r):
        root = v * np.sqrt(T)
        d1 = (np.log(S / K) + (r + 0.5 * v * v) * T) / root
        d2 = d1 - root
        price = S * 0.5 * (1 + erf(d1 / np.sqrt(2))) - K * np.exp(-r * T) * 0.5 * (1 + erf(d2 / np.sqrt(2)))
        return np.sum(price)

    def objective_jax(S, K, T, v, r):
        import jax.numpy as jnp
        return jnp.sum(option_prices.objective_jax(S, K, T, v, r))


class sum_of_exponentials:
    by_hand, argnums, static_argnums = {"S": (3.8, 8.2), "L": (1.45, 2.7)}, (0,), ()
    sizes = {"S": 10_000, "L": 1_000_000}

    def make_inputs(size, seed=0):
        return (given(seed).normal(size=sum_of_exponentials.sizes[size]),)

    def objective_numpy(x):
        return np.sum(np.exp(x))

    def objective_jax(x):
        import jax.numpy as jnp
        return jnp.sum(jnp.exp(x))


class sum_of_a_range:
    by_hand, argnums, static_argnums, sizes, plain = (40, 40), (0,), (0,), {"L": None}, True

    def make_inputs(size, seed=0):
        return (1_000_000 + seed,)

    def objective_numpy(n):
        return np.sum(np.arange(n))

    def objective_jax(n):
        import jax.numpy as jnp
        return jnp.arange(n).sum()


class spectral_radii:
    """The largest eigenvalue in size of 128 matrices."""
    by_hand, argnums, static_argnums, plain = {"S": (3.5, 2.8), "M": (2.2, 1.7)}, (0,), (), True
    sizes = {"S": 3, "M": 10}

    def make_inputs(size, seed=0):
        n = spectral_radii.sizes[size]
        return (given(seed).normal(size=(128, n, n)),)

    def objective_numpy(A):
        out = np.empty(A.shape[0])
        for i in range(A.shape[0]):
            out[i] = np.max(np.abs(np.linalg.eigvals(A[i])))
        return out

    def objective_jax(A):
        import jax
        import jax.numpy as jnp
        return jax.vmap(lambda a: jnp.max(jnp.abs(jnp.linalg.eigvals(a))))(A)


ALL = {name: value for name, value in vars().items() if isinstance(value, type)}
for _workload in ALL.values():
    _workload.variants = {"numpy": _workload.objective_numpy}
