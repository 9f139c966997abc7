"""Attributes set on objects from outside, and arrays written that are arguments: they take effect on every call."""
import copy

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, 0.4, 0.5])


class Cell:
    def __init__(self, w):
        self.w, self.count, self.h, self.name = w, 0, np.zeros(3), "cell"

    def step(self, x):
        self.count += 1
        self.h = np.tanh(self.w * x + self.h)
        return np.sum(self.h**2) * self.count

    @property
    def doubled(self):
        return 2 * self.count

    @doubled.setter
    def doubled(self, value):
        self.count = value // 2


def loss(x, cell):
    t = 0.0
    for k in range(3):
        t += cell.step(x * k)
    cell.last = t
    return t


def cells():
    return Cell(np.array([1.0, 2.0, 3.0])), Cell(np.array([1.0, 2.0, 3.0]))


def same(a, b):
    assert a.count == b.count and type(a.count) is int
    np.testing.assert_allclose(a.h, b.h, rtol=1e-14)
    np.testing.assert_allclose(a.last, b.last, rtol=1e-14)


def test_gradient():
    ours, plain = cells()
    df = gs.grad(loss)
    for _ in range(3):
        want = [(loss(X + 1e-6 * e, copy.deepcopy(plain)) - loss(X - 1e-6 * e, copy.deepcopy(plain))) / 2e-6
                for e in np.eye(3)]
        np.testing.assert_allclose(df(X, ours), want, atol=1e-6)
        loss(X, plain)
        same(ours, plain)
    assert len(df._versions) == 1       # a changed attribute is no new kind


def test_value_tangent_and_second_derivative():
    ours, plain = cells()
    value, _ = gs.value_and_grad(loss)(X, ours)
    assert value == loss(X, plain)
    same(ours, plain)
    value, _ = gs.jvp(lambda x: loss(x, ours), (X,), (X,))
    np.testing.assert_allclose(value, loss(X, plain), rtol=1e-15)
    same(ours, plain)
    gs.hvp(lambda x: loss(x, ours), (X,), (X,))
    loss(X, plain)
    same(ours, plain)


def test_compiled():
    ours, plain = cells()
    ours.last = plain.last = 0.0
    compiled = gs.jit(loss)
    for _ in range(3):
        np.testing.assert_allclose(compiled(X, ours), loss(X, plain), rtol=1e-14)
        same(ours, plain)
    with pytest.raises(gs.TransformError, match="sets attributes of an object from outside"):
        gs.jit(gs.grad(loss))(X, ours)


def test_bound_methods():
    ours, plain = cells()
    df = gs.grad(ours.step)
    df(X)
    df(X)
    plain.step(X)
    plain.step(X)
    assert ours.count == plain.count == 2
    np.testing.assert_array_equal(ours.h, plain.h)


def test_branches_properties_and_other_kinds():
    cell, _ = cells()

    def f(x):
        if x > 1:
            cell.count = cell.count + 10
        cell.doubled = 2 * cell.count + 2
        return x * x

    df = gs.grad(f)
    assert df(2.0) == 4.0 and cell.count == 11
    assert df(0.5) == 1.0 and cell.count == 12
    cell.count = 1.5                    # another kind: another version
    assert df(2.0) == 4.0 and cell.count == 12.0


def test_jit_writes_into_its_arguments():
    def fill(x, out, params):
        out[:] = x * 2
        out[0] += 1
        params["w"] -= 0.1 * x
        return np.sum(out)

    ours, plain = (np.zeros(3), {"w": np.ones(3)}), (np.zeros(3), {"w": np.ones(3)})
    compiled = gs.jit(fill)
    for _ in range(2):
        assert compiled(X, *ours) == fill(X, *plain)
        np.testing.assert_array_equal(ours[0], plain[0])
        np.testing.assert_array_equal(ours[1]["w"], plain[1]["w"])


def test_a_compiled_gradient_leaves_its_arguments():
    def f(x):
        x[0] = x[1] * 2
        return np.sum(x * x)

    x = X.copy()
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), [0.0, 10 * X[1], 2 * X[2]])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(gs.jit(f)(x), f(X.copy()), rtol=1e-15)      # a sum in another order
    assert x[0] == X[1] * 2


def test_the_emitted_source():
    source = gs.grad(loss).source_for(X, cells()[0])
    for line in ("    count = cell.count\n", "    cell.count = count\n", "    cell.last = t\n"):
        assert line in source


def written(v):
    v[0] = 2 * v[1]
    return v * v


def pulled(y):
    value, pull = gs.vjp(written, y)
    return value + pull(np.ones(3))[0]


def pushed(y):
    value, push = gs.linearize(written, y)
    return value + push(np.ones(3))


INNER = {"jacfwd": lambda y: gs.jacfwd(written)(y).sum(axis=0), "jacrev": lambda y: gs.jacrev(written)(y).sum(axis=0),
         "hessian": lambda y: gs.hessian(lambda v: np.sum(written(v) * v))(y).sum(axis=0),
         "vjp": pulled, "linearize": pushed}


@pytest.mark.parametrize("name", INNER)
def test_a_derivative_inside_leaves_its_arguments_as_they_are(name):
    """The function writes into its argument, which is read afterwards."""
    inner = INNER[name]

    def f(x):
        y = x * 1.0
        return np.sum(inner(y)) * np.sum(y) + y[0]
    value, slope = gs.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    want = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(slope, want, atol=1e-7)
    np.testing.assert_allclose(gs.jit(f)(X), f(X), rtol=1e-14)


KEPT = []


def told(x):
    print("told")
    return np.sum(x**3)


def kept(x):
    KEPT.append(np.sum(x))
    return x * x


def counted(x):
    CELL.count = CELL.count + 1
    return x * CELL.count


CELL = Cell(X)


@pytest.mark.parametrize("transform", [gs.jacfwd, gs.jacrev, gs.hessian])
def test_a_jacobian_tells_once(transform, capsys):
    transform(told)(X)
    assert capsys.readouterr().out == "told\n"


@pytest.mark.parametrize("f", [kept, counted])
@pytest.mark.parametrize("again", [
    lambda f: gs.jacfwd(f)(X), lambda f: gs.jacrev(f)(X), lambda f: gs.vjp(f, X)[1](X),
    lambda f: gs.linearize(f, X)[1](X)])
def test_what_is_evaluated_twice_changes_nothing_outside(f, again):
    """The second time would find what the first has left."""
    with pytest.raises(gs.LanguageError, match="more than once"):
        again(f)


def twice_as_many(x):
    return counted(x) + counted(x)


def test_functions_that_change_an_object_are_called_twice():
    """Reading them took no end."""
    CELL.count = 0
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(twice_as_many(x)))(X), [3.0, 3.0, 3.0])
    assert CELL.count == 2
