"""Arrays and functions from outside, under names that the function has for something else."""
import numpy as np
import pytest

import gradscribe as gs

x = np.array([1.0, 2.0, 3.0])
grad_doubled = np.array([2.0, 5.0, 7.0])
P = np.array([0.1, 0.2, 0.3])


def weigh(q):
    return np.sum(x * q ** 2)


def renamed(x):
    return weigh(x)


def doubled(v):
    return np.sum(grad_doubled * v ** 2)


def weights(x):
    return lambda q: np.sum(x * q ** 2)


first, second = weights(np.array([1.0, 2.0, 3.0])), weights(np.array([5.0, 7.0, 9.0]))


def two_of_one_name(p):
    x_1 = np.exp(p)
    return first(x_1) + second(x_1) + np.sum(x_1)


def half(f):
    return lambda v: 0.5 * f(v)


def called_twice(v):
    return half(first)(v) * half(second)(v) + weigh(v)


@pytest.mark.parametrize("f", [renamed, doubled, two_of_one_name, called_twice], ids=lambda f: f.__name__)
def test_names_inside_and_outside(f):
    h = 1e-6
    numeric = np.array([(f(P + h * e) - f(P - h * e)) / (2 * h) for e in np.eye(3)])
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(g(P), numeric, rtol=1e-7)
    assert gs.jvp(f, (P,), (x,))[1] == pytest.approx(numeric @ x, rel=1e-7)
    points = np.stack([P, 2 * P, x])
    np.testing.assert_allclose(gs.vmap(f)(points), [f(p) for p in points], rtol=1e-13)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(points), [gs.grad(f)(p) for p in points], rtol=1e-13)
    assert gs.jit(f)(P) == pytest.approx(f(P), rel=1e-14)


def test_functions_of_one_name():
    def made(scale):
        @gs.custom_vjp
        def twist(v):
            return scale * v
        twist.defvjp(lambda v: (scale * v, ()), lambda kept, dy: (scale * dy,))
        return twist
    one, two = made(3.0), made(5.0)
    assert gs.grad(lambda v: one(v) * two(v))(2.0) == 60.0
    assert gs.jit(gs.grad(lambda v: one(v) * two(v)))(2.0) == 60.0


noted = []


def notes_arrays(x):
    y = x * 2
    noted.append(y)
    y[0] = 5.0
    z = y + 1
    noted.append(np.sum(z))
    return np.sum(np.sin(y) * z)


def notes_in_passes(x):
    s = 0.0
    for k in range(3):
        noted.append(x[k])
        s += x[k] ** 2
    return s


def notes_in_a_callee(x):
    def inner(v):
        noted.append(v)
        return np.log(v)
    return inner(x[0]) * x[1] + x[2]


@pytest.mark.parametrize("f", [notes_arrays, notes_in_passes, notes_in_a_callee], ids=lambda f: f.__name__)
def test_a_list_is_appended_to(f):
    """Once a call, in Python's order, with the values that Python has."""
    x = np.array([0.3, 0.7, 1.1])
    noted.clear()
    f(x)
    expected = list(noted)
    derivative = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    for wrap in (gs.grad, gs.value_and_grad, gs.jit, lambda f: lambda x: gs.jvp(f, (x,), (x,))):
        g = wrap(f)
        for _ in range(2):
            noted.clear()
            found = g(x)
            assert len(noted) == len(expected)
            for a, b in zip(noted, expected):
                np.testing.assert_allclose(a, b, rtol=1e-15)
    np.testing.assert_allclose(found[1], derivative @ x, rtol=1e-8)
    np.testing.assert_allclose(gs.grad(f)(x), derivative, rtol=1e-8)


def test_a_name_that_means_another_list():
    first, second = [], []
    notes = first

    def f(x):
        notes.append(x)
        return x * x
    g = gs.grad(f)
    assert g(3.0) == 6.0
    notes = second
    assert g(4.0) == 8.0
    assert (first, second) == ([3.0], [4.0])


ORDER, BACK = np.array([2, 0, 1]), np.array([1, 2, 0])


def permuted(values):
    values = [values[k] for k in ORDER]
    values = values[:1] + [np.sin(v) for v in values[1:]]
    return [values[k] for k in BACK]


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_lists_in_the_order_that_an_array_from_outside_gives(wrap):
    """They have its length, so they are lists of known length, and can be returned."""
    values = [1.0, 2.0, 3.0]
    np.testing.assert_allclose(wrap(permuted)(values), [np.sin(1.0), np.sin(2.0), 3.0])
    tangent = wrap(lambda v: gs.jvp(permuted, (v,), (v,)))(values)[1]
    np.testing.assert_allclose(tangent, [np.cos(1.0), 2.0 * np.cos(2.0), 3.0])
    pulled = gs.vjp(permuted, values)[1]([1.0, 10.0, 100.0])[0]
    np.testing.assert_allclose(pulled, [np.cos(1.0), 10.0 * np.cos(2.0), 100.0])
    np.testing.assert_allclose(wrap(gs.jacrev(permuted))(values)[1], [0.0, np.cos(2.0), 0.0])


class Grid:
    def __init__(self):
        self.cells, self.step = np.arange(3.0), 0.5


GRID = Grid()


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_an_object_with_an_attribute_that_is_called_cells(wrap):
    f = wrap(gs.grad(lambda x: np.sum(GRID.cells * x ** 2) * GRID.step))
    np.testing.assert_allclose(f(np.ones(3)), [0.0, 1.0, 2.0])
    GRID.step = 2.0
    np.testing.assert_allclose(f(np.ones(3)), [0.0, 4.0, 8.0])
    GRID.step = 0.5


PLACES, SHAPE = np.array([1, 0]), np.array([2, 3])


def of_two_shapes(x):
    parts = [x, np.array([np.sum(x)])]
    a, b = [parts[k] for k in PLACES]
    return np.sum(a ** 2) + 10.0 * np.sum(b) + np.sum(np.reshape(x, (SHAPE[0], SHAPE[1]))[0])


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_an_entry_of_an_array_of_integers_from_outside_is_known(wrap):
    """What needs it known holds to it: it is read again when the array has changed."""
    x, row = np.arange(1.0, 7.0), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    df = wrap(gs.grad(of_two_shapes))
    np.testing.assert_allclose(df(x), 2.0 * np.sum(x) + 10.0 + row)
    try:
        PLACES[:] = [0, 1]
        np.testing.assert_allclose(df(x), 2.0 * x + 10.0 + row)
        SHAPE[:] = [3, 2]
        np.testing.assert_allclose(df(x), 2.0 * x + 10.0 + np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    finally:
        PLACES[:], SHAPE[:] = [1, 0], [2, 3]
    np.testing.assert_allclose(df(x), 2.0 * np.sum(x) + 10.0 + row)
