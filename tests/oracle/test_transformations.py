"""The transformations against JAX's of the same name: values, structure, dtypes."""
import numpy as np
import pytest

import gradscribe as gs

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)


def in_jax(f):
    """The same text, with jax.numpy under the name np."""
    return type(f)(f.__code__, {**f.__globals__, "np": jnp}, f.__name__, f.__defaults__, f.__closure__)


def same(ours, theirs, tolerance=1e-10):
    """Equal structure, and equal leaves; a tuple stands for a tuple, a list for a list."""
    mine, structure = jax.tree_util.tree_flatten(ours)
    others, expected = jax.tree_util.tree_flatten(theirs)
    assert structure == expected
    for a, b in zip(mine, others, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# --- functions ------------------------------------------------------------------

def scalar(x):
    return np.sin(x) * x**2 + np.exp(-x)


def network(params, x, y):
    for W, b in params[:-1]:
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    scores = x @ W + b
    log_p = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(np.sum(y * log_p, axis=1))


def logistic(w, b, x, y):
    z = x @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z)


def rollout(x, w, n):
    for _ in range(n):
        x = x * np.tanh(w) + 0.1
    return x


def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def branch(x, k):
    if k > 2:
        return np.sum(x**3)
    return np.prod(x) + x[0]


def vector(x):
    return np.stack([x[0] * x[1], np.sin(x[2]), x[1] ** 2 / x[2], np.sum(x)])


def in_a_dict(p):
    return np.sum(p["a"] ** 2) * p["b"][0] + np.sum(p["b"][1])


def with_aux(x):
    y = np.sin(x)
    return np.sum(y), {"y": y, "n": 2}


def analytic(z):
    return np.exp(z) * z**2


def of_complex(z):
    return np.real(z * np.conj(z)) + np.real(np.exp(z))


rng = np.random.default_rng(3)


def normal(*shape):
    return rng.standard_normal(shape)


LAYERS = [(normal(3, 4), normal(4)), (normal(4, 4), normal(4)), (normal(4, 2), normal(2))]
X, Y = normal(6, 3), normal(6, 2)

CASES = [
    (scalar, (0.7,), 0), (network, (LAYERS, X, Y), 0), (network, (LAYERS, X, Y), (0, 1)), (network, (LAYERS, X, Y), -1),
    (logistic, (normal(3), 0.3, X, np.arange(6) % 2 * 1.0), (0, 1)), (rollout, (0.4, 1.2, 7), (0, 1)),
    (newton_sqrt, (2.0,), 0), (branch, (normal(4), 1), 0), (branch, (normal(4), 5), 0),
    (in_a_dict, ({"a": normal(3), "b": (2.0, normal(2, 2))},), 0),
]
NAMES = [f"{f.__name__}-{i}" for i, (f, _, _) in enumerate(CASES)]


@pytest.mark.parametrize("f, args, argnums", CASES, ids=NAMES)
def test_value_and_grad(f, args, argnums):
    value, gradient = gs.value_and_grad(f, argnums)(*args)
    theirs = jax.value_and_grad(in_jax(f), argnums)(*args)
    same((value, gradient), theirs)
    same(gs.grad(f, argnums)(*args), theirs[1])


@pytest.mark.slow
@pytest.mark.parametrize("f, args, argnums", CASES, ids=NAMES)
def test_compiled(f, args, argnums):
    same(gs.jit(gs.grad(f, argnums))(*args), jax.grad(in_jax(f), argnums)(*args))


def test_float32_stays():
    layers = [(W.astype(np.float32), b.astype(np.float32)) for W, b in LAYERS]
    x, y = X.astype(np.float32), Y.astype(np.float32)
    ours = gs.grad(network)(layers, x, y)
    assert all(a.dtype == np.float32 for pair in ours for a in pair)
    same(ours, jax.grad(in_jax(network))(layers, x, y), 1e-5)


def test_jvp():
    x, x_dot = normal(3), normal(3)
    same(gs.jvp(vector, (x,), (x_dot,)), jax.jvp(in_jax(vector), (x,), (x_dot,)))


def test_linearize():
    x, x_dot = normal(3), normal(3)
    value, tangent = gs.linearize(vector, x)
    expected, their_tangent = jax.linearize(in_jax(vector), x)
    same((value, tangent(x_dot)), (expected, their_tangent(x_dot)))


def test_vjp():
    x, dy = normal(3), normal(4)
    value, pull = gs.vjp(vector, x)
    expected, their_pull = jax.vjp(in_jax(vector), x)
    same((value, pull(dy)), (expected, their_pull(dy)))


@pytest.mark.parametrize("name", ["jacfwd", "jacrev"])
def test_jacobian(name):
    x = normal(3)
    same(getattr(gs, name)(vector)(x), getattr(jax, name)(in_jax(vector))(x))


def test_hessian():
    x = normal(4)
    same(gs.hessian(branch)(x, 1), jax.hessian(in_jax(branch))(x, 1))


def test_higher_derivatives():
    ours, theirs = scalar, in_jax(scalar)
    for _ in range(4):
        ours, theirs = gs.grad(ours), jax.grad(theirs)
        same(ours(0.7), theirs(0.7))


def test_hessian_vector_product():
    x, v = normal(4), normal(4)
    same(gs.jvp(gs.grad(lambda q: branch(q, 1)), (x,), (v,))[1], jax.hessian(in_jax(branch))(x, 1) @ v)


def test_has_aux():
    x = normal(3)
    ours, theirs = gs.grad(with_aux, has_aux=True)(x), jax.grad(in_jax(with_aux), has_aux=True)(x)
    same(ours, theirs)


def test_complex():
    z = 0.3 + 0.7j
    same(gs.grad(analytic, holomorphic=True)(z), jax.grad(in_jax(analytic), holomorphic=True)(z))
    same(gs.grad(of_complex)(z), jax.grad(in_jax(of_complex))(z))
