"""Custom derivatives: whole numbers, checkpoints, rules of functions that are transformed themselves; what is kept."""
import dataclasses

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 1.5, 2.5])
A = np.arange(9.0).reshape(3, 3)
factor = 2.0


# -- checkpoints ---------------------------------------------------------------------------------------------

@gs.custom_vjp
def twice(x):
    return x * 2.0


twice.defvjp(lambda x: (x * 2.0, ()), lambda kept, dy: (2.0 * dy,))


@gs.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, dy: (2.0 * x * dy,))


@gs.custom_jvp
def wave(x):
    return np.sin(x)


wave.defjvp(lambda p, t: (np.sin(p[0]), np.cos(p[0]) * t[0]))


def loop_of(f):
    def loss(x):
        for _ in range(9):
            x = f(x) * 0.6
        return np.sum(x)
    return loss


def while_loop(x):
    while np.sum(x) < 10:
        x = twice(x) * 0.8
    return np.sum(x)


@pytest.mark.parametrize("loss", [loop_of(twice), loop_of(squared), loop_of(wave), while_loop])
def test_checkpoints_of_loops(loss):
    np.testing.assert_allclose(gs.grad(gs.checkpoint(loss))(X), gs.grad(loss)(X), rtol=1e-14)


# -- whole numbers -------------------------------------------------------------------------------------------

@gs.custom_vjp
def pick(x, n):
    return x[n] * 2.0


def pick_backward(kept, dy):
    x, n = kept
    dx = np.zeros_like(x)
    dx[n] = 2.0 * dy
    return dx, None


pick.defvjp(lambda x, n: (x[n] * 2.0, (x, n)), pick_backward)


def test_a_whole_number_stays_one():
    assert gs.grad(pick)(X, 1).tolist() == [0.0, 2.0, 0.0]
    assert gs.grad(lambda x: sum(pick(x, i) for i in range(3)))(X).tolist() == [2.0, 2.0, 2.0]
    assert gs.jit(gs.grad(pick))(X, 1).tolist() == [0.0, 2.0, 0.0]

    @gs.custom_vjp
    def kind(x, n):
        return x * 2.0 if isinstance(n, int) else x * 3.0

    kind.defvjp(lambda x, n: (x * 2.0 if isinstance(n, int) else x * 3.0, n),
                lambda n, dy: (dy * (2.0 if isinstance(n, int) else 3.0), None))
    assert kind(1.0, 2) == 2.0 and gs.value_and_grad(kind)(1.0, 2) == (2.0, 2.0)


def test_a_whole_number_that_is_returned_is_an_index():
    @gs.custom_vjp
    def both(x):
        return x ** 2, 2

    both.defvjp(lambda x: ((x ** 2, 2), x), lambda x, dy: (dy[0] * 2 * x,))

    def f(x):
        y, k = both(x)
        return y[k]

    assert gs.grad(f)(X).tolist() == [0.0, 0.0, 5.0]


# -- rules of one's own --------------------------------------------------------------------------------------

def softplus(x):
    return np.log(1 + np.exp(x))


@gs.rule.elementwise(softplus)
class softplus_rule:
    def partial_x(x):
        return 1 / (1 + np.exp(-x))


@pytest.mark.filterwarnings("ignore:overflow")
def test_the_rule_of_what_is_transformed():
    """The source of softplus gives nan here: inf / inf."""
    assert gs.grad(softplus)(1000.0) == gs.jacfwd(softplus)(1000.0) == gs.jit(gs.grad(softplus))(1000.0) == 1.0
    assert gs.jvp(softplus, (1000.0,), (1.0,))[1] == gs.vjp(softplus, 1000.0)[1](1.0)[0] == 1.0
    assert gs.vmap(gs.grad(softplus))(np.array([1000.0, 0.0])).tolist() == [1.0, 0.5]
    np.testing.assert_allclose(gs.jit(softplus)(2.0), softplus(2.0), rtol=1e-15)


def scaled(x):
    return factor * x


@gs.rule.elementwise(scaled)
class scaled_rule:
    def partial_x(x):
        return factor


def test_what_a_rule_reads_may_change(monkeypatch):
    g = gs.value_and_grad(lambda x: scaled(x))
    assert g(1.0) == (2.0, 2.0)
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert g(1.0) == (3.0, 3.0)


@gs.custom_jvp
def affine(x, y):
    return A @ x + y


affine.defjvp(lambda p, t: (A @ p[0] + p[1], A @ t[0] + t[1]))


def test_tangents_of_what_is_fixed_are_arrays():
    assert gs.grad(lambda y: np.sum(affine(X, y)))(X).tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(affine(x, X)))(X), A.sum(axis=0), rtol=1e-15)


# -- what is kept between calls ------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Layer:
    name: str
    w: np.ndarray = dataclasses.field(compare=False)

    def __call__(self, x):
        return np.sum(self.w * x)


def test_equal_callables_are_different_functions():
    a, b = Layer("layer", np.ones(3)), Layer("layer", 5 * np.ones(3))
    assert gs.linear_transpose(a, X)(1.0)[0].tolist() == [1.0] * 3
    assert gs.linear_transpose(b, X)(1.0)[0].tolist() == [5.0] * 3
    assert gs.jvp(a, (X,), (X,)) == (4.5, 4.5) and gs.jvp(b, (X,), (X,)) == (22.5, 22.5)


def test_an_array_from_outside_that_is_given_another_shape():
    w = np.ones(3)

    def f(x):
        return np.sum(w * x)

    df, compiled = gs.grad(f), gs.jit(f)
    assert df(X).tolist() == [1.0] * 3 and compiled(X) == 4.5
    w.shape = (3, 1)
    assert df(X).tolist() == [3.0] * 3 and compiled(X) == 13.5


def test_none_in_arguments_and_results_of_jacobians():
    given = {"b": X, "z": None}
    for jacobian in (gs.jacrev, gs.jacfwd):
        found = jacobian(lambda p: p["b"] * 2)(given)
        assert found["z"] is None and found["b"].tolist() == (2 * np.eye(3)).tolist()
    found = gs.hessian(lambda p: np.sum(p["b"] ** 2))(given)
    assert found["z"] is None and found["b"]["z"] is None and found["b"]["b"].tolist() == (2 * np.eye(3)).tolist()


@pytest.mark.parametrize("y", [2.0, 2, np.float32(2.0), np.arange(3.0), np.arange(3)], ids=repr)
def test_what_is_known_has_a_tangent_of_zero(y):
    f = gs.custom_jvp(lambda x, y: np.sum(x * y))
    f.defjvp(lambda primals, tangents: (np.sum(primals[0] * primals[1]), np.sum(
        3 * primals[0] * tangents[1] + tangents[0] * primals[1] ** 2)))

    def g(x):
        return f(x, y)

    want = np.broadcast_to(np.square(y), 3).astype(float)
    for found in (gs.grad(g)(X), gs.jit(gs.grad(g))(X), gs.vmap(gs.grad(g))(X[None])[0]):
        np.testing.assert_array_equal(found, want)
    assert gs.jvp(g, (X,), (np.ones(3),))[1] == want.sum()
