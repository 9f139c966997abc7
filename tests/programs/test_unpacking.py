"""Arrays and lists that are unpacked: stars, lengths that the names fix, lengths known only when running."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])


def first_and_rest(x):
    a, *b = x
    return a * sum(v * v for v in b)


def rest_and_last_two(x):
    *a, b, c = x * 2
    a.append(b)
    return c * sum(v * v for v in a)


def ends_of_what_is_chosen(x):
    a, *m, b = x[x > 0]
    return a * b + len(m) * a


def two_that_are_chosen(x):
    a, b = x[x > 0]
    return a * b


def rows_in_rows(x):
    (a, *_), *b = np.outer(x, x)
    return a * np.sum(b[0]) * len(b)


def a_list_of_its_own(x):
    a, *b = x
    c = b[1:]
    b[1] = b[1] * 2
    c.append(a)
    return a * sum(b) + sum(v * v for v in c)


@pytest.mark.parametrize("f, x", [
    (first_and_rest, X), (first_and_rest, X[:1]), (rest_and_last_two, X), (rest_and_last_two, X[:2]),
    (ends_of_what_is_chosen, X), (ends_of_what_is_chosen, np.array([0.3, 0.4, -1.0])),
    (two_that_are_chosen, np.array([0.3, 0.4, -1.0])), (rows_in_rows, X), (rows_in_rows, X[:2]),
    (a_list_of_its_own, X)])
def test_derivatives(f, x):
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(g(x), differences(f, x), rtol=1e-6, atol=1e-8)
    v = np.linspace(0.5, 1.0, x.size)
    np.testing.assert_allclose(gs.jvp(f, (x,), (v,))[1], differences(f, x) @ v, rtol=1e-6)


def test_a_list_between_is_printed_as_one():
    assert "    b = list(x[1:])\n" in gs.grad(first_and_rest).source_for(X)


def test_the_number_of_values_is_asked_at_every_call():
    def pair(x):
        a, b = x
        return a * b
    for g in (gs.grad(pair), gs.jit(gs.grad(pair))):
        np.testing.assert_array_equal(g(np.array([2.0, 3.0])), [3.0, 2.0])
        with pytest.raises(gs.ShapeError, match="3 rows for 2 names"):
            g(np.ones(3))
    for f, what in ((two_that_are_chosen, "expected 2 values"), (ends_of_what_is_chosen, "expected at least 2")):
        with pytest.raises(ValueError, match=what):
            gs.grad(f)(np.array([0.3, -1.0]))
        with pytest.raises(ValueError):
            gs.jit(gs.grad(f))(np.array([0.3, -1.0]))
    with pytest.raises(ValueError, match="expected 2 values"):
        gs.grad(two_that_are_chosen)(X)
    with pytest.raises(gs.ShapeError, match="1 rows for 3 names"):
        gs.grad(rest_and_last_two)(X[:1])


def test_batches():
    xs = np.stack([X, 0.5 * X])
    for f in (first_and_rest, rest_and_last_two, rows_in_rows, a_list_of_its_own):
        np.testing.assert_allclose(gs.vmap(f)(xs), [f(x) for x in xs], rtol=1e-12)
        np.testing.assert_allclose(gs.vmap(gs.grad(f))(xs), [gs.grad(f)(x) for x in xs], rtol=1e-12)
