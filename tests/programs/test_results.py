"""What a user gets back is his: results share memory with no argument, no global, no seed and not with each other."""
import numpy as np
import pytest

import gradscribe as gs

OUTSIDE = np.array([1.0, 2.0, 3.0, 4.0])
X = np.array([0.3, -0.5, 0.7, 1.1])


def times_outside(x):
    return np.sum(x * OUTSIDE)


def of_two(a, b):
    return np.sum((a + b) ** 2)


def same(x):
    return x


def turned(x):
    y = x[::-1]
    return {"y": y, "z": [y, y * 2.0]}


def either(x):
    y = x if x[0] > 0 else x * 2.0
    return y, x


def carried(x):
    y = x
    for i in range(3):
        y = y if x[i] > 9 else x
    return y


def looked_up(x):
    return OUTSIDE[1:], x.reshape(2, 2).T


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [v for part in value for v in leaves(part)]
    return [value] if isinstance(value, np.ndarray) else []


def apart(result, *given):
    found = leaves(result)
    for k, a in enumerate(found):
        assert a.flags.writeable
        assert not any(np.shares_memory(a, b) for b in [*found[:k], *given])
    return found


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_gradients_are_arrays_of_their_own(wrap):
    g = wrap(gs.grad(times_outside))
    for _ in range(2):                  # changed by its owner, it comes out the same again
        (found,) = apart(g(X), OUTSIDE, X)
        np.testing.assert_array_equal(found, [1.0, 2.0, 3.0, 4.0])
        found *= 10
    a, b = apart(wrap(gs.grad(of_two, (0, 1)))(np.ones(2), np.ones(2)))
    a *= 0.1
    np.testing.assert_array_equal(b, [4.0, 4.0])
    apart(wrap(gs.value_and_grad(lambda x: (np.sum(x), x), has_aux=True))(X), X)


@pytest.mark.parametrize("f", [same, turned, either, carried, looked_up])
def test_values_are_arrays_of_their_own(f):
    for given in (X, np.abs(X)):
        want = leaves(f(given))
        for got in (gs.jit(f)(given), gs.jvp(f, (given,), (np.ones(4),))[0], gs.vjp(f, given)[0]):
            for a, b in zip(apart(got, given, OUTSIDE), want, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", [same, either, carried])
def test_tangents_and_adjoints_are_no_views_of_what_was_given(f):
    dot, bar = np.arange(4.0), np.arange(4.0) + 1
    apart(gs.jvp(f, (X,), (dot,)), X, dot)
    y, pull = gs.vjp(f, X)
    seed = (bar, bar.copy()) if isinstance(y, tuple) else bar
    first = [v.copy() for v in apart(pull(seed), *leaves(seed), X)]
    for a, b in zip(apart(pull(seed), *leaves(seed), X), first, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
@pytest.mark.parametrize("f", [lambda m: np.sum(m * np.arange(3)), lambda m: np.sum(np.array_split(m, 2)[0]),
                               lambda m: np.sum(m), lambda m: np.mean(m, axis=0)[1]])
def test_constant_gradients_may_be_written_into(f, wrap):
    m = np.array([[0.2, -0.4, 0.6], [0.1, 0.8, -0.5]])
    (found,) = apart(wrap(gs.grad(f))(m), m)
    want = found.copy()
    found += 1.0
    np.testing.assert_array_equal(gs.grad(f)(m), want)
