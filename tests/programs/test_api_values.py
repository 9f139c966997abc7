"""What each transformation returns, for every form of call: argnums, aux, pytrees, nesting, custom rules."""
import collections
import dataclasses
import functools
import typing

import numba
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(7)
X, Y, W = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 2))


def close(got, want, tolerance=1e-10):
    """Same structure, same numbers."""
    if isinstance(want, dict):
        assert isinstance(got, dict)
        assert set(got) == set(want)
        for k in want:
            close(got[k], want[k], tolerance)
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tolerance)
    elif want is None:
        assert got is None
    elif dataclasses.is_dataclass(want):
        assert type(got) is type(want)
        close(vars(got), vars(want), tolerance)
    else:
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def differences(f, x, h=1e-4):
    """Jacobian of a function of one array or number: shape of the result, then of x. Fourth order."""
    x = np.asarray(x, float)
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = h
        e = e.reshape(x.shape)
        columns.append((f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * h))
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + x.shape)


def three(x, y, z):
    return np.sum(np.sin(x) * y) * z


THREE = (X, Y, 0.7)
DX, DY, DZ = np.cos(X) * Y * 0.7, np.sin(X) * 0.7, np.sum(np.sin(X) * Y)


def vector(x):
    return np.sin(x) * np.sum(x)


VECTOR = np.diag(np.cos(X) * np.sum(X)) + np.sin(X)[:, None]


# --- argnums ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("argnums", "want"), [(0, DX), (1, DY), (2, DZ), (-1, DZ), (-3, DX), ((0,), (DX,)),
                                               ((0, 2), (DX, DZ)),
                                               ((2, 0), (DZ, DX)), ((0, -1), (DX, DZ)), ([0, 1], (DX, DY))])
def test_argnums(argnums, want):
    close(gs.grad(three, argnums)(*THREE), want)
    close(gs.grad(three, argnums=argnums)(*THREE), want)
    value, got = gs.value_and_grad(three, argnums)(*THREE)
    close(value, three(*THREE))
    close(got, want)


@pytest.mark.parametrize("transformation", [gs.jacfwd, gs.jacrev])
def test_argnums_of_jacobians(transformation):
    def f(x, y):
        return np.sin(x) * np.sum(y)

    dx, dy = np.diag(np.cos(X) * np.sum(Y)), np.repeat(np.sin(X)[:, None], 3, axis=1)
    close(transformation(f)(X, Y), dx)
    close(transformation(f, 1)(X, Y), dy)
    close(transformation(f, -2)(X, Y), dx)
    close(transformation(f, (1, 0))(X, Y), (dy, dx))


def test_argnames():
    def f(x, *, scale, shift=0.5):
        return np.sum(x * scale) + shift**2

    close(gs.grad(f)(X, scale=2.0), np.full(3, 2.0))
    close(gs.grad(f, argnames="scale")(X, scale=2.0), np.sum(X))
    close(gs.grad(three, argnames="y")(X, Y, 0.7), DY)              # one name: as one number
    close(gs.grad(three, argnames="y")(X, z=0.7, y=Y), DY)
    close(gs.grad(three, argnames=("z", "x"))(X, Y, z=0.7), (DZ, DX))


def test_wrt_arguments_given_by_keyword():
    close(gs.grad(three)(X, y=Y, z=0.7), DX)
    close(gs.grad(three)(X, z=0.7, y=Y), DX)
    close(gs.value_and_grad(three)(X, Y, z=0.7)[1], DX)


def test_defaults_are_used():
    def f(x, factor=3.0, power=2):
        return np.sum((x * factor) ** power)

    close(gs.grad(f)(X), 18 * X)
    close(gs.grad(f)(X, 1.0), 2 * X)
    close(gs.grad(f)(X, power=1), np.full(3, 3.0))
    close(gs.grad(f, (0, 1))(X, 3.0), (18 * X, np.sum(6 * X * X)))


# --- aux ----------------------------------------------------------------------------------------------------

def with_aux(x, y):
    z = np.sin(x) * y
    return np.sum(z), {"z": z, "n": 3, "name": "loss"}


def test_has_aux():
    got, aux = gs.grad(with_aux, has_aux=True)(X, Y)
    close(got, np.cos(X) * Y)
    close(aux["z"], np.sin(X) * Y)
    assert (aux["n"], aux["name"]) == (3, "loss")
    (value, aux), (dx, dy) = gs.value_and_grad(with_aux, (0, 1), has_aux=True)(X, Y)
    close((value, dx, dy), (np.sum(np.sin(X) * Y), np.cos(X) * Y, np.sin(X)))
    close(aux["z"], np.sin(X) * Y)


def test_has_aux_elsewhere():
    value, pull, aux = gs.vjp(with_aux, X, Y, has_aux=True)
    close(value, np.sum(np.sin(X) * Y))
    close(pull(2.0), (2 * np.cos(X) * Y, 2 * np.sin(X)))
    close(aux["z"], np.sin(X) * Y)
    value, dot, aux = gs.jvp(with_aux, (X, Y), (Y, X), has_aux=True)
    close(dot, np.sum(np.cos(X) * Y * Y + np.sin(X) * X))
    close(aux["n"], 3)

    def pair(x):
        return vector(x), x * 2.0

    for jacobian in (gs.jacfwd, gs.jacrev):
        J, aux = jacobian(pair, has_aux=True)(X)
        close(J, VECTOR)
        close(aux, X * 2)


# --- vjp, jvp, linearize ------------------------------------------------------------------------------------

def test_vjp():
    value, pull = gs.vjp(vector, X)
    close(value, vector(X))
    for k in range(3):
        close(pull(np.eye(3)[k]), (VECTOR[k],))
    value, pull = gs.vjp(three, *THREE)
    close(pull(1.0), (DX, DY, DZ))


def test_vjp_of_a_tree():
    def f(p, s):
        return {"a": p[0] * s, "b": (np.sum(p[1]), s)}

    value, pull = gs.vjp(f, [X, Y], 0.5)
    close(value, {"a": X * 0.5, "b": (np.sum(Y), 0.5)})
    close(pull({"a": Y, "b": (2.0, 3.0)}), ([Y * 0.5, np.full(3, 2.0)], np.sum(X * Y) + 3.0))


def test_jvp():
    value, dot = gs.jvp(vector, (X,), (Y,))
    close((value, dot), (vector(X), VECTOR @ Y))
    value, dot = gs.jvp(three, THREE, (Y, X, 2.0))
    close(dot, DX @ Y + DY @ X + DZ * 2)
    value, dot = gs.jvp(lambda p: {"s": p["x"] * p["y"][0]}, ({"x": X, "y": (Y,)},), ({"x": Y, "y": (X,)},))
    close((value, dot), ({"s": X * Y}, {"s": Y * Y + X * X}))


def test_linearize():
    value, push = gs.linearize(vector, X)
    close(value, vector(X))
    close(push(Y), VECTOR @ Y)
    close(push(X), VECTOR @ X)
    value, push = gs.linearize(three, *THREE)
    close(push(Y, X, 2.0), DX @ Y + DY @ X + DZ * 2)


# --- Jacobians, Hessians ------------------------------------------------------------------------------------

@pytest.mark.parametrize("jacobian", [gs.jacfwd, gs.jacrev])
def test_jacobian(jacobian):
    close(jacobian(vector)(X), VECTOR)
    close(jacobian(lambda x: np.sum(x * x))(X), 2 * X)
    close(jacobian(lambda s: s * X)(0.5), X)
    close(jacobian(lambda s: s * s)(0.5), 1.0)
    close(jacobian(lambda w: w.T @ w)(W), differences(lambda w: w.T @ w, W), 1e-8)
    close(jacobian(lambda w: np.sin(w)[:, :1])(W), differences(lambda w: np.sin(w)[:, :1], W), 1e-8)


@pytest.mark.parametrize("jacobian", [gs.jacfwd, gs.jacrev])
def test_jacobian_of_trees(jacobian):
    def f(p):
        return {"u": p["x"] * p["s"], "v": (np.sum(p["x"]), p["s"] * 2.0)}

    close(jacobian(f)({"x": X, "s": 0.5}),
          {"u": {"x": 0.5 * np.eye(3), "s": X}, "v": ({"x": np.ones(3), "s": 0.0}, {"x": np.zeros(3), "s": 2.0})})


def cubic(x):
    return np.sum(x) ** 3 + np.sum(x**2 * Y)


CUBIC = 6 * np.sum(X) * np.ones((3, 3)) + 2 * np.diag(Y)


def test_hessian():
    close(gs.hessian(cubic)(X), CUBIC)
    close(gs.hessian(lambda s: s**4)(0.5), 3.0)
    close(gs.hessian(lambda w: np.sum(np.sin(w) ** 2))(W), np.diag(2 * np.cos(2 * W).ravel()).reshape(3, 2, 3, 2))
    (xx, xy), (yx, yy) = gs.hessian(lambda x, y: np.sum(x * x * y), (0, 1))(X, Y)
    close([xx, xy, yx, yy], [np.diag(2 * Y), np.diag(2 * X), np.diag(2 * X), np.zeros((3, 3))])


def test_hvp():
    close(gs.hvp(cubic, (X,), (Y,)), CUBIC @ Y)
    f = lambda p: np.sum(p["a"] ** 2 * p["b"])      # noqa: E731
    close(gs.hvp(f, ({"a": X, "b": 0.5},), ({"a": Y, "b": 2.0},)), {"a": Y + 4 * X, "b": 2 * np.sum(X * Y)})


@pytest.mark.parametrize("outer", [gs.jacfwd, gs.jacrev])
@pytest.mark.parametrize("inner", [gs.jacfwd, gs.jacrev, gs.grad])
def test_second_order_by_any_mix(outer, inner):
    close(outer(inner(cubic))(X), CUBIC)


# --- order three, every mix ---------------------------------------------------------------------------------

def forward(f):
    """df/dx by jvp: a transformation written by the user, transformed again."""
    def df(x):
        return gs.jvp(f, (x,), (1.0,))[1]
    return df


def backward(f):
    def df(x):
        _, pull = gs.vjp(f, x)
        return pull(1.0)[0]
    return df


def by_value(f):
    def df(x):
        return gs.value_and_grad(f)(x)[1]
    return df


MODES = {"grad": gs.grad, "jacfwd": gs.jacfwd, "jacrev": gs.jacrev, "jvp": forward, "vjp": backward,
         "value_and_grad": by_value}


def loop(x):
    s = x
    for k in range(3):
        if s > 0.2:
            s = np.sin(s) * x + 0.1 * k
        else:
            s = s * s + x
    return s


def loop_difference(order, x, h=2e-2):
    """Central differences, sharpened three times."""
    step = {2: lambda h: (loop(x + h) - 2 * loop(x) + loop(x - h)) / h**2,
            3: lambda h: (loop(x + 2 * h) - 2 * loop(x + h) + 2 * loop(x - h) - loop(x - 2 * h)) / (2 * h**3)}[order]
    row = [step(h / 2**k) for k in range(4)]
    for j in range(1, 4):
        row = [(4**j * b - a) / (4**j - 1) for a, b in zip(row, row[1:], strict=False)]
    return row[0]


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
def test_order_two(first, second):
    f = MODES[second](MODES[first](loop))
    close(f(0.7), loop_difference(2, 0.7), 1e-6)


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
@pytest.mark.parametrize("third", MODES)
@pytest.mark.slow
def test_order_three(first, second, third):
    f = MODES[third](MODES[second](MODES[first](loop)))
    close(f(0.7), loop_difference(3, 0.7), 1e-5)


def test_order_four_of_a_polynomial():
    f = gs.grad(gs.grad(gs.grad(gs.grad(lambda x: x**5 + np.sin(x)))))
    close(f(0.3), 120 * 0.3 + np.sin(0.3))


def test_grad_inside_the_function():
    def energy(x):
        return np.sum(x**4)

    def penalised(x):
        g = gs.grad(energy)(x)
        return np.sum(g * g) + energy(x)

    close(gs.grad(penalised)(X), 96 * X**5 + 4 * X**3)


def test_perturbations_are_kept_apart():
    """d/dx of x * d/dy (x + y) is 1, not 2."""
    close(gs.grad(lambda x: x * gs.grad(lambda y: x + y)(1.0))(1.0), 1.0)
    close(gs.grad(lambda x: x * gs.jvp(lambda y: x * y * y, (x,), (1.0,))[1])(2.0), 3 * 2 * 2.0**2)


# --- forms of the call --------------------------------------------------------------------------------------

def test_decorators():
    @gs.grad
    def plain(x):
        return np.sum(x * x)

    @gs.grad(argnums=1)
    def second(x, y):
        return np.sum(x * y * y)

    @gs.value_and_grad(argnums=(0, 1), has_aux=True)
    def both(x, y):
        return np.sum(x * y), x

    @gs.jacfwd(argnums=0)
    def jacobian(x):
        return x * x

    close(plain(X), 2 * X)
    close(second(X, Y), 2 * X * Y)
    (value, aux), grads = both(X, Y)
    close((value, aux, grads), (np.sum(X * Y), X, (Y, X)))
    close(jacobian(X), np.diag(2 * X))


def test_partial():
    f = functools.partial(three, y=Y, z=0.7)
    close(gs.grad(f)(X), DX)
    g = functools.partial(three, X)
    close(gs.grad(g)(Y, 0.7), DY)
    close(gs.grad(functools.partial(three, X, z=0.7))(Y), DY)
    close(functools.partial(gs.grad(three), z=0.7)(X, Y), DX)
    close(gs.grad(functools.partial(functools.partial(three, z=0.1), z=0.7))(X, Y), DX)


class Model:
    def __init__(self, w):
        self.w = w

    def loss(self, x):
        return np.sum(np.sin(x) * self.w)

    def __call__(self, x):
        return self.loss(x) * 2.0

    @staticmethod
    def fixed(x):
        return np.sum(x**3)


def test_bound_methods():
    model = Model(Y)
    close(gs.grad(model.loss)(X), np.cos(X) * Y)
    model.w = X
    close(gs.grad(model.loss)(X), np.cos(X) * X)
    close(gs.grad(Model.fixed)(X), 3 * X**2)


def test_njit_functions():
    @numba.njit
    def inner(x):
        return np.sin(x) * x

    @numba.njit
    def f(x):
        total = 0.0
        for k in range(x.shape[0]):
            total += inner(x[k])
        return total

    want = np.cos(X) * X + np.sin(X)
    close(gs.grad(f)(X), want)
    close(gs.jvp(f, (X,), (Y,))[1], want @ Y)
    close(gs.vjp(f, X)[1](1.0)[0], want)


def test_lambdas_and_closures():
    close(gs.grad(lambda x: np.sum(x * x * Y))(X), 2 * X * Y)
    scale = np.array([1.0, 2.0, 3.0])

    def f(x):
        return np.sum(x * scale)

    df = gs.grad(f)
    close(df(X), scale)
    scale = np.array([3.0, 2.0, 1.0])
    close(df(X), scale)                 # as Python: the value now, not the one at the time of grad


FACTOR = 2.0


def reads_a_global(x):
    return np.sum(x * FACTOR)


def test_globals_are_read_at_the_call(monkeypatch):
    df = gs.grad(reads_a_global)
    close(df(X), np.full(3, 2.0))
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    close(df(X), np.full(3, 5.0))


def test_two_lambdas_on_one_line():
    f, g = (lambda x: np.sum(x * x)), (lambda x: np.sum(x**3))
    try:
        close(gs.grad(f)(X), 2 * X)
        close(gs.grad(g)(X), 3 * X**2)
    except gs.TransformError:
        pytest.skip("refused, with a message: the two cannot be told apart")


def test_one_function_many_signatures():
    df = gs.grad(lambda x, y: np.sum(x * y))
    for x, y in [(X, Y), (0.5, 2.0), (X, 2.0), (W, 1.0), (W, np.ones(2)), (np.ones((1, 3)), np.ones((2, 1))), (X, Y)]:
        want = (np.broadcast_to(y, np.broadcast_shapes(np.shape(x), np.shape(y))))
        want = np.sum(want, axis=tuple(range(want.ndim - np.ndim(x))))
        for k, n in enumerate(np.shape(x)):
            want = np.sum(want, axis=k, keepdims=True) if n == 1 else want
        close(df(x, y), want)
    close(df(np.ones(5), np.ones(5)), np.ones(5))       # another length, the same version


@pytest.mark.parametrize("given", [np.float32(0.5), np.float64(0.5), 0.5, np.array(0.5), np.array(0.5, np.float32)])
def test_scalar_kinds(given):
    got = gs.grad(lambda x: x * x * 3.0)(given)
    close(got, 3.0, 1e-6)
    assert np.asarray(got).dtype == np.asarray(given).dtype


def test_integers_as_arguments():
    close(gs.grad(lambda x: x * x)(3), 6.0)
    close(gs.grad(lambda x, n: x**n)(2.0, 3), 12.0)
    assert np.asarray(gs.grad(lambda x: x * 2)(3)).dtype.kind == "f"
    for bad in (np.array([1, 2]), np.int64(3), True, np.array([True])):
        with pytest.raises(TypeError):
            gs.grad(lambda x: np.sum(x * 1.0))(bad)
    with pytest.raises(TypeError):
        gs.grad(lambda x: 1.0)("x")


def test_result_must_be_a_scalar():
    functions = [
        lambda x: x * x,
        lambda x: (np.sum(x), 1.0),
        lambda x: {"a": np.sum(x)},
        lambda x: None,
        lambda x: 3,
    ]
    for f in functions:
        with pytest.raises(TypeError):
            gs.grad(f)(X)


def test_results_of_length_one_are_not_scalars():
    with pytest.raises(TypeError):
        gs.grad(lambda x: x[:1])(X)


# --- pytrees ------------------------------------------------------------------------------------------------

class Layer(typing.NamedTuple):
    w: np.ndarray
    b: float


Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class State:
    x: np.ndarray
    s: float


def test_pytrees():
    def f(p):
        (a, [b, c]), d = p
        return np.sum(a * b * c) * d["k"]

    close(gs.grad(f)(((X, [Y, 2.0]), {"k": 0.5, "unused": X})),
          ((Y, [X, 0.5 * np.sum(X * Y)]), {"k": 2 * np.sum(X * Y), "unused": np.zeros(3)}))


def test_named_tuples():
    def f(layer, pair):
        return np.sum(layer.w * pair.first) * layer.b + pair.second

    close(gs.grad(f, (0, 1))(Layer(X, 0.5), Pair(Y, 2.0)), (Layer(0.5 * Y, np.sum(X * Y)), Pair(0.5 * X, 1.0)))


def test_dataclasses():
    def f(state):
        return np.sum(state.x * state.x) * state.s

    got = gs.grad(f)(State(X, 0.5))
    assert isinstance(got, State)
    close((got.x, got.s), (X, np.sum(X * X)))


def test_none_in_a_tree():
    def f(p):
        w, b = p
        y = X @ w
        if b is not None:
            y = y + b
        return np.sum(y)

    close(gs.grad(f)((W, None)), (np.repeat(X[:, None], 2, axis=1), None))
    close(gs.grad(f)((W, np.ones(2))), (np.repeat(X[:, None], 2, axis=1), np.ones(2)))


def test_empty_containers():
    close(gs.grad(lambda p, x: np.sum(x * x), (0, 1))([], X), ([], 2 * X))
    close(gs.grad(lambda p: 1.0)({}), {})


def test_the_same_leaf_twice():
    close(gs.grad(lambda p: np.sum(p[0] * p[1]))([X, X]), [X, X])


def test_results_are_not_shared():
    """A caller may write into a gradient without changing another, or an argument."""
    a, b = gs.grad(lambda x, y: np.sum(x + y), (0, 1))(X, Y)
    a[0] = 9.0
    assert b[0] == 1.0
    kept = Y.copy()
    g = gs.grad(lambda x, y: np.sum(x * y))(X, Y)
    g[0] = 9.0
    np.testing.assert_array_equal(Y, kept)


# --- stop_gradient, custom rules ----------------------------------------------------------------------------

def test_stop_gradient():
    close(gs.grad(lambda x: np.sum(x * gs.stop_gradient(x)))(X), X)
    close(gs.grad(lambda x: np.sum(gs.stop_gradient(x) ** 2))(X), np.zeros(3))
    close(gs.jvp(lambda x: x * gs.stop_gradient(np.sin(x)), (X,), (Y,)), (X * np.sin(X), np.sin(X) * Y))
    close(gs.stop_gradient(X), X)
    close(gs.stop_gradient({"a": X})["a"], X)
    close(gs.hessian(lambda x: x**3 * gs.stop_gradient(x))(2.0), 24.0)


@gs.custom_vjp
def clipped(x, bound):
    return x


def clipped_fwd(x, bound):
    return x, bound


def clipped_bwd(bound, g):
    return np.clip(g, -bound, bound), None


clipped.defvjp(clipped_fwd, clipped_bwd)


@gs.custom_vjp
def doubled(x, y):
    return np.sin(x) * y


doubled.defvjp(lambda x, y: (doubled(x, y), (np.cos(x), np.sin(x), y)), lambda res,
               g: (2 * res[0] * g * res[2], res[1] * g))


def test_custom_vjp():
    close(clipped(X, 0.5), X)
    close(doubled(0.3, 2.0), np.sin(0.3) * 2)
    close(gs.grad(doubled, (0, 1))(0.3, 2.0), (4 * np.cos(0.3), np.sin(0.3)))
    close(gs.grad(lambda x: np.sum(doubled(x, Y) * 3.0))(X), 6 * np.cos(X) * Y)
    close(gs.grad(lambda x: np.sum(clipped(x, 0.5) ** 2))(X), np.clip(2 * X, -0.5, 0.5))
    close(gs.grad(gs.grad(lambda x: doubled(x, 1.0)))(0.3), -2 * np.sin(0.3))


def test_custom_vjp_inside_a_loop():
    def f(x):
        for _ in range(3):
            x = doubled(x, 1.1)
        return x

    x, want = 0.4, 1.0
    for _ in range(3):
        want *= 2 * np.cos(x) * 1.1
        x = np.sin(x) * 1.1
    close(gs.grad(f)(0.4), want)


@gs.custom_jvp
def softplus(x):
    return np.log1p(np.exp(x))


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return softplus(x), x_dot / (1 + np.exp(-x))


@gs.custom_jvp
def product(x, y):
    return x * y


product.defjvps(lambda x_dot, out, x, y: 3 * x_dot * y, lambda y_dot, out, x, y: x * y_dot)


def test_custom_jvp():
    s = 1 / (1 + np.exp(-X))
    close(softplus(X), np.log1p(np.exp(X)))
    close(gs.jvp(softplus, (X,), (Y,)), (np.log1p(np.exp(X)), s * Y))
    close(gs.grad(lambda x: np.sum(softplus(x)))(X), s)
    close(gs.grad(gs.grad(softplus))(0.3), (1 / (1 + np.exp(-0.3))) * (1 - 1 / (1 + np.exp(-0.3))))
    close(gs.grad(lambda x, y: np.sum(product(x, y)), (0, 1))(X, Y), (3 * Y, X))


@functools.partial(gs.custom_vjp, nondiff_argnums=(0, 2))
def applied(f, x, n):
    return f(x) * n


def applied_fwd(f, x, n):
    return f(x) * n, x


def applied_bwd(f, n, x, g):
    return (g * n * 10.0 * x,)


applied.defvjp(applied_fwd, applied_bwd)


@functools.partial(gs.custom_jvp, nondiff_argnums=(1,))
def scaled(x, n):
    return x * n


@scaled.defjvp
def scaled_jvp(n, primals, tangents):
    return primals[0] * n, tangents[0] * n * 7.0


def test_nondiff_argnums():
    close(applied(np.sin, 0.3, 2), np.sin(0.3) * 2)
    close(gs.grad(lambda x: applied(np.sin, x, 2))(0.3), 2 * 10.0 * 0.3)
    close(gs.jvp(lambda x: scaled(x, 3), (X,), (Y,)), (3 * X, 21 * Y))
    close(gs.grad(lambda x: np.sum(scaled(x, 3)))(X), np.full(3, 21.0))


# --- complex ------------------------------------------------------------------------------------------------

def test_holomorphic():
    z = 0.3 + 0.4j
    close(gs.grad(lambda z: np.sin(z) * z, holomorphic=True)(z), np.cos(z) * z + np.sin(z))
    close(gs.jacfwd(lambda z: z * z, holomorphic=True)(np.array([z, 2 * z])), np.diag([2 * z, 4 * z]))
    with pytest.raises(TypeError):
        gs.grad(lambda z: z * z)(z)
    with pytest.raises(TypeError):
        gs.grad(lambda x: x * x, holomorphic=True)(0.5)


def test_real_functions_of_complex_numbers():
    """As in JAX: df/dx - i df/dy."""
    z = np.array([0.3 + 0.4j, -0.2 + 1.1j])
    close(gs.grad(lambda z: np.sum(np.real(z * np.conj(z))))(z), 2 * np.conj(z))
    close(gs.grad(lambda z: np.sum(np.imag(z)))(z), np.full(2, -1j))
    close(gs.grad(lambda z: np.sum(np.real(z) ** 2 * np.imag(z)))(z), 2 * z.real * z.imag - 1j * z.real**2)


def test_complex_inside_a_real_function():
    def f(x):
        z = x * (1.0 + 2.0j)
        return np.sum(np.real(z * z))

    close(gs.grad(f)(X), -6 * X)


# --- jit in the mix -----------------------------------------------------------------------------------------

@pytest.mark.slow
def test_jit():
    close(gs.jit(gs.grad(three, (0, 1, 2)))(*THREE), (DX, DY, DZ))
    close(gs.jit(gs.value_and_grad(three))(*THREE)[1], DX)
    close(gs.jit(three)(*THREE), three(*THREE))
    close(gs.grad(gs.jit(three))(*THREE), DX)
    close(gs.jit(gs.grad(lambda p: np.sum(p[0][0] * p[1])))([(X, Y), 2.0]), [(np.full(3, 2.0), np.zeros(3)), np.sum(X)])
    close(gs.jit(gs.grad(gs.grad(loop)))(0.7), loop_difference(2, 0.7), 1e-6)


# --- before a call, and functions of NumPy ----------------------------------------------------------------------------

def affine(W, x, b):
    return np.sum(np.tanh(W @ x + b) ** 2)


def repeated(x, n):
    for _ in range(n):
        x = np.sin(x)
    return x


def annotated(x: float, y: "float"):
    return x * y * y


def test_source_before_a_call():
    assert gs.grad(affine).source.startswith("# W: float64[m, n], x: float64[m], b: float\nimport numpy as np\n")
    assert gs.grad(repeated).source.startswith("# x: float, n: int\n")
    assert gs.grad(annotated, 1).source.startswith("# x: float, y: float\n")
    df = gs.grad(affine)
    df(np.eye(2), np.ones(2), np.ones(2))
    assert not df.source.startswith("#")


def test_functions_with_rules_are_transformed_directly():
    close(gs.grad(np.tanh)(0.3), 1 - np.tanh(0.3) ** 2)
    close(gs.grad(np.linalg.det)(3 * np.eye(2)), 3 * np.eye(2))
    close(gs.jvp(np.cumsum, (X,), (Y,))[1], np.cumsum(Y))
    close(gs.jacrev(np.sort)(np.array([2.0, 1.0])), np.array([[0.0, 1.0], [1.0, 0.0]]))
    close(gs.grad(gs.grad(np.sin))(0.4), -np.sin(0.4))


def test_argnums_of_any_integer_type():
    def f(x, y):
        return x * x * y
    close(gs.grad(f, np.int64(1))(3.0, 2.0), 9)
    close(gs.grad(f, (np.int32(0), 1))(3.0, 2.0), (12, 9))
    for wrong in ((), True, 1.0, "x", [0.5]):
        with pytest.raises(TypeError):
            gs.grad(f, wrong)
