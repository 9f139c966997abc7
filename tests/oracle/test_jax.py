"""Every form of call against JAX's: values, structures, which calls are errors.

The function's text is one; `np` is NumPy here and jax.numpy there.
"""
import collections
import copy
import functools

import numpy as np
import pytest

import gradscribe as gs

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(11)
X, Y, W, U = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 2)), rng.standard_normal((4, 3))


def theirs(f):
    """The same function over jax.numpy."""
    if isinstance(f, functools.partial):
        return functools.partial(theirs(f.func), *f.args, **f.keywords)
    space = {**f.__globals__, "np": jax.numpy, "gs": jax}
    for name in f.__code__.co_names:
        if callable(helper := f.__globals__.get(name)) and getattr(helper, "__module__",
                                                                   "") == __name__ and hasattr(helper, "__code__"):
            space[name] = theirs(helper)
    g = type(f)(f.__code__, space, f.__name__, f.__defaults__, f.__closure__)
    g.__kwdefaults__ = f.__kwdefaults__
    return g


def same(got, want, tolerance=1e-9):
    """Equal trees: the same containers, keys, shapes, dtypes' kinds and values."""
    if isinstance(want, dict):
        assert isinstance(got, dict)
        assert set(got) == set(want)
        for k in want:
            same(got[k], want[k], tolerance)
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, tolerance)
    elif want is None:
        assert got is None
    else:
        assert np.shape(got) == np.shape(want)
        assert np.asarray(got).dtype.kind == np.asarray(want).dtype.kind
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# --- functions ----------------------------------------------------------------------------------------------

def three(x, y, z):
    return np.sum(np.sin(x) * y) * z


def vector(x):
    return np.sin(x) * np.sum(x) + x**2


def matrix(w):
    return np.tanh(w.T @ w)[:, 0] * np.sum(w)


def mlp(params, x):
    h = x
    for W, b in params:
        h = np.tanh(h @ W + b)
    return np.mean(h**2)


def tree(p):
    return {"u": p["x"] * p["s"], "v": (np.sum(p["x"]), [p["s"] * 2.0])}


def with_aux(x, y):
    z = np.sin(x) * y
    return np.sum(z), {"z": z, "n": (x, 2.0)}


def vector_with_aux(x):
    return vector(x), x * 2.0


def cubic(x):
    return np.sum(x) ** 3 + np.sum(np.sin(x) * x**2)


def softmax_cross_entropy(w, x):
    z = x @ w
    z = z - np.max(z, axis=1, keepdims=True)
    return -np.sum(z[:, 0] - np.log(np.sum(np.exp(z), axis=1)))


def pieces(x):
    smooth = np.sum(np.where(x > 0, np.sqrt(np.abs(x) + 0.1), x**3))
    return smooth + np.sum(np.maximum(x, 0.3)) + np.sum(np.clip(x, -0.5, 0.5) * x)


def joined(x, y):
    z = np.concatenate([x, y[::-1], x[1:]]).reshape(2, -1)
    return np.sum(np.cumsum(z, axis=1)[:, ::2] * np.stack([z[0], z[1] * 2.0])[:, 1::1][:, :2])


def statistics(w):
    return np.var(w,
                  axis=0)[0] * np.std(w) + np.sum(np.mean(w, axis=1) ** 2) + np.prod(w + 2.0) + np.max(w) * np.min(w,
                                                                                                                   axis=0)[1]


def stopped(x):
    return np.sum(x * gs.lax.stop_gradient(x))


def keyword(x, *, scale, shift=0.5):
    return np.sum(np.sin(x * scale)) + shift


def defaults(x, y=2.0):
    return np.sum(x**2 * y)


def of_a_complex(z):
    return np.sum(np.real(z * np.conj(z)) ** 2) + np.imag(np.sum(z**3))


def holomorphic(z):
    return np.sin(z) * z**2


SCALARS = {"three": (three, (X, Y, 0.7)), "mlp": (mlp, ([(W, X[:2]), (W.T, X)], U)), "cubic": (cubic, (X,)),
           "pieces": (pieces, (X,)),
           "softmax": (softmax_cross_entropy, (W, U)), "joined": (joined, (X, Y)), "statistics": (statistics, (W,)),
           "defaults": (defaults, (X,)), "given": (defaults, (X, 3.0)),
           "partial": (functools.partial(three, z=0.3), (X, Y))}


def given(args):
    return copy.deepcopy(args)


@pytest.mark.parametrize("name", SCALARS)
def test_grad(name):
    f, args = SCALARS[name]
    every = tuple(range(len(args)))
    for argnums in [0, every, -1, (0,), [0], every[::-1]]:
        same(gs.grad(f, argnums)(*given(args)), jax.grad(theirs(f), argnums)(*args))
        same(gs.value_and_grad(f, argnums)(*given(args)), jax.value_and_grad(theirs(f), argnums)(*args))


@pytest.mark.parametrize("name", SCALARS)
def test_higher_orders(name):
    f, args = SCALARS[name]
    same(gs.hessian(f)(*given(args)), jax.hessian(theirs(f))(*args))
    same(gs.jacfwd(gs.grad(f))(*given(args)), jax.jacfwd(jax.grad(theirs(f)))(*args))
    same(gs.jacrev(gs.jacfwd(f))(*given(args)), jax.jacrev(jax.jacfwd(theirs(f)))(*args))
    other = jax.tree_util.tree_map(lambda leaf: rng.standard_normal(np.shape(leaf)) if np.ndim(leaf) else 0.7, args)
    ours = gs.jvp(gs.grad(f), given(args), other)
    want = jax.jvp(jax.grad(theirs(f)), args, other)
    same(ours, want)
    every = tuple(range(len(args))) if len(args) > 1 else 0
    same(gs.hvp(f, given(args), other), jax.jvp(jax.grad(theirs(f), every), args, other)[1])


@pytest.mark.parametrize("name", SCALARS)
def test_float32(name):
    f, args = SCALARS[name]
    single = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf, np.float32) if np.ndim(leaf) else leaf, args)
    got, want = gs.grad(f)(*given(single)), jax.grad(theirs(f))(*single)
    same(got, want, 2e-4)
    kinds = [[np.asarray(leaf).dtype for leaf in jax.tree_util.tree_leaves(t)] for t in (got, want)]
    assert kinds[0] == kinds[1]


FUNCTIONS = {"vector": (vector, (X,)), "matrix": (matrix, (W,)), "tree": (tree, ({"x": X, "s": 0.5},)),
             "three": (three, (X, Y, 0.7))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name):
    f, args = FUNCTIONS[name]
    every = tuple(range(len(args)))
    for argnums in [0, every]:
        want = jax.jacrev(theirs(f), argnums)(*args)
        same(gs.jacrev(f, argnums)(*given(args)), want)
        same(gs.jacfwd(f, argnums)(*given(args)), want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_maps(name):
    f, args = FUNCTIONS[name]
    tangents = jax.tree_util.tree_map(lambda leaf: np.cos(leaf) if np.ndim(leaf) else 0.7, args)
    same(gs.jvp(f, given(args), tangents), jax.jvp(theirs(f), args, tangents))
    value, push = gs.linearize(f, *given(args))
    want, jax_push = jax.linearize(theirs(f), *args)
    same(value, want)
    same(push(*tangents), jax_push(*tangents))
    value, pull = gs.vjp(f, *given(args))
    want, jax_pull = jax.vjp(theirs(f), *args)
    same(value, want)
    ct = jax.tree_util.tree_map(lambda leaf: np.cos(np.asarray(leaf)), want)
    same(pull(ct), jax_pull(jax.tree_util.tree_map(jax.numpy.asarray, ct)))


def test_aux():
    for argnums in [0, (0, 1)]:
        same(gs.grad(with_aux, argnums, has_aux=True)(X, Y), jax.grad(theirs(with_aux), argnums, has_aux=True)(X, Y))
        same(gs.value_and_grad(with_aux, argnums, has_aux=True)(X, Y),
             jax.value_and_grad(theirs(with_aux), argnums, has_aux=True)(X, Y))
    same(gs.jvp(with_aux, (X, Y), (Y, X), has_aux=True), jax.jvp(theirs(with_aux), (X, Y), (Y, X), has_aux=True))
    for ours, other in [(gs.jacfwd, jax.jacfwd), (gs.jacrev, jax.jacrev)]:
        same(ours(vector_with_aux, has_aux=True)(X), other(theirs(vector_with_aux), has_aux=True)(X))


def test_keywords():
    same(gs.grad(keyword)(X, scale=2.0), jax.grad(theirs(keyword))(X, scale=2.0))
    same(gs.grad(three)(X, z=0.7, y=Y), jax.grad(theirs(three))(X, z=0.7, y=Y))


def test_stop_gradient():
    same(gs.grad(stopped)(X), jax.grad(lambda x: jax.numpy.sum(x * jax.lax.stop_gradient(x)))(X))


def test_complex():
    z = X + 1j * Y
    same(gs.grad(of_a_complex)(z), jax.grad(theirs(of_a_complex))(z))
    same(gs.grad(holomorphic, holomorphic=True)(z[0]), jax.grad(theirs(holomorphic), holomorphic=True)(z[0]))
    for ours, other in [(gs.jacfwd, jax.jacfwd), (gs.jacrev, jax.jacrev)]:
        same(ours(holomorphic, holomorphic=True)(z), other(theirs(holomorphic), holomorphic=True)(z))
    dot = np.cos(z)
    same(gs.jvp(holomorphic, (z,), (dot,)), jax.jvp(theirs(holomorphic), (z,), (dot,)))


# --- custom rules: the same definitions under both ----------------------------------------------------------

def rules(lib, np):
    @lib.custom_vjp
    def clipped(x, bound):
        return np.sin(x)

    clipped.defvjp(lambda x, bound: (np.sin(x), (x, bound)), lambda res,
                   g: (np.clip(g, -res[1], res[1]) * np.cos(res[0]), None))

    @lib.custom_jvp
    def softplus(x):
        return np.log1p(np.exp(x))

    @softplus.defjvp
    def softplus_jvp(primals, tangents):
        x, = primals
        return softplus(x), tangents[0] / (1 + np.exp(-x))

    @functools.partial(lib.custom_vjp, nondiff_argnums=(0,))
    def applied(f, x):
        return f(x)

    applied.defvjp(lambda f, x: (f(x), x), lambda f, x, g: (g * 2.0 * x,))

    def loss(x):
        return np.sum(clipped(x, 0.5) ** 2) + np.sum(softplus(x) * x) + np.sum(applied(np.sin, x))

    return loss


def test_custom_rules():
    ours, other = rules(gs, np), rules(jax, jax.numpy)
    same(ours(X), other(X))
    same(gs.grad(ours)(X), jax.grad(other)(X))
    same(gs.jacrev(gs.grad(ours))(X), jax.jacrev(jax.grad(other))(X))


Pair = collections.namedtuple("Pair", "first second")


def paired(p):
    return np.sum(p.first * p.second[0]) * p.second[1]["k"]


def test_named_tuples_and_none():
    p = Pair(X, (Y, {"k": 0.5, "none": None}))
    same(gs.grad(paired)(p), jax.grad(theirs(paired))(p))


# --- what is an error there is an error here ----------------------------------------------------------------

ERRORS = {
    "vector result": lambda lib, np: lib.grad(lambda x: x * 2.0)(X),
    "length-one result": lambda lib, np: lib.grad(lambda x: x[:1])(X),
    "tuple result": lambda lib, np: lib.grad(lambda x: (np.sum(x), np.sum(x)))(X),
    "integer array": lambda lib, np: lib.grad(lambda x: np.sum(x * 1.0))(np.array([1, 2, 3])),
    "boolean": lambda lib, np: lib.grad(lambda x: np.sum(x * 1.0))(np.array([True])),
    "string": lambda lib, np: lib.grad(lambda x: 1.0)("text"),
    "integer result": lambda lib, np: lib.grad(lambda x: 3)(X),
    "complex result": lambda lib, np: lib.grad(lambda z: z * z)(1.0 + 2.0j),
    "holomorphic of a real": lambda lib, np: lib.grad(lambda z: z * z, holomorphic=True)(1.0),
    "no argnums": lambda lib, np: lib.grad(lambda x: np.sum(x), argnums=())(X),
    "argnums too large": lambda lib, np: lib.grad(lambda x: np.sum(x), argnums=1)(X),
    "argnums too negative": lambda lib, np: lib.grad(lambda x: np.sum(x), argnums=-2)(X),
    "argnums of a wrong type": lambda lib, np: lib.grad(lambda x: np.sum(x), argnums="x")(X),
    "aux without a pair": lambda lib, np: lib.grad(lambda x: np.sum(x), has_aux=True)(X),
    "not a function": lambda lib, np: lib.grad(3.0)(X),
    "too few tangents": lambda lib, np: lib.jvp(lambda x, y: x * y, (X, Y), (X,)),
    "primals not a tuple": lambda lib, np: lib.jvp(lambda x: x, X, X),
    "tangent of another shape": lambda lib, np: lib.jvp(lambda x: x * 2.0, (X,), (W,)),
    "tangent of another structure": lambda lib, np: lib.jvp(lambda p: p[0] * 2.0, ((X,),), ([X],)),
    "cotangent of another structure": lambda lib, np: lib.vjp(lambda x: (x, x), X)[1](X),
    "cotangent of another shape": lambda lib, np: lib.vjp(lambda x: x * 2.0, X)[1](W),
    "shapes that do not broadcast": lambda lib, np: lib.grad(lambda x: np.sum(x + np.ones(4)))(X),
    "missing argument": lambda lib, np: lib.grad(lambda x, y: np.sum(x * y))(X),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    if name not in ("shapes that do not broadcast", "boolean", "integer array"):
        with pytest.raises((TypeError, ValueError)):
            ERRORS[name](jax, jax.numpy)
    with pytest.raises((TypeError, ValueError, gs.TransformError)):
        ERRORS[name](gs, np)


TYPE_ERRORS = ["vector result", "length-one result", "tuple result", "integer array", "boolean", "string",
               "integer result", "complex result",
               "holomorphic of a real", "argnums of a wrong type", "not a function", "missing argument"]


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_these_are_type_errors(name):
    with pytest.raises(TypeError):
        ERRORS[name](gs, np)
