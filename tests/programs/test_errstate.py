"""np.errstate that makes floating-point errors raise: the user's lines raise where they did, and no other line does."""
import numpy as np
import pytest
from programs import checks

import gradscribe as gs

GOOD, BAD = np.array([0.4, 0.9, 1.3, 0.2]), np.array([0.4, -0.9, 1.3, 0.2])


def a_line(x):
    with np.errstate(invalid="raise"):
        y = np.sqrt(x)
    z = np.where(x > 1, np.log(x - 1), x)
    return np.sum(y * y * z)


def in_a_loop(x):
    s = 0.0
    for k in range(4):
        with np.errstate(all="raise"):
            t = np.log(x[k]) * 2
            s = s + t * x[k]
        s = s * 0.5
    return s


def around_a_loop(x):
    s = x[0] * 1.0
    with np.errstate(invalid="raise", divide="print"):
        for v in x:
            s = s * np.sqrt(v) + v
    return s


def a_branch_that_returns(x):
    with np.errstate(invalid="raise"):
        if x[0] > 0.3:
            return np.sum(np.sqrt(x) * x)
    return np.sum(x)


def helper(v):
    w = np.sqrt(v)
    with np.errstate(invalid="ignore"):
        u = np.log(v - 1)
    return w * np.where(v > 1, u, v)


def in_a_function(x):
    with np.errstate(divide="log", invalid="raise"):
        return np.sum(helper(x) * x)


def in_one_expression(x):
    with np.errstate(invalid="raise"):
        return np.sqrt(x) @ x


def in_a_while_loop(x):
    k, s = 0, x[0] * 1.0
    with np.errstate(invalid="raise"):
        while k < 3 and np.sqrt(x[k + 1]) < 5:
            s = s + np.sqrt(x[k + 1]) * s
            k += 1
    return s


FOUND = [a_line, in_a_loop, around_a_loop, a_branch_that_returns, in_a_function, in_one_expression, in_a_while_loop]


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    with np.errstate(all="ignore"):
        checks.derivatives(f, GOOD)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_what_raises(f):
    calls = [f, gs.grad(f), gs.value_and_grad(f), lambda x: gs.jvp(f, (x,), (np.ones(4),)),
             lambda x: gs.vmap(f)(np.stack([GOOD, x])), gs.grad(gs.checkpoint(f))]
    with np.errstate(all="ignore"):
        for call in calls:
            call(GOOD)
            with pytest.raises(FloatingPointError):
                call(BAD)


def test_lines_that_a_with_reads_do_not_raise():
    def f(x):
        z = np.sum(np.where(x > 2, np.log(x - 1), x))
        w = np.log(x - 1)[1:]
        with np.errstate(invalid="raise"):
            y = z * np.sqrt(x[1:]) * np.where(x[1:] > 2, w, 2.0)
        return np.sum(y)

    with np.errstate(all="ignore"):
        checks.derivatives(f, np.array([0.5, 3.0, 0.25]))


def test_second_derivatives():
    with np.errstate(all="ignore"):
        for f in FOUND:
            checks.second_derivative(f, GOOD)


def test_what_is_not_the_users_does_not_raise():
    def f(x):
        with np.errstate(all="raise"):
            y = np.sqrt(x)
        return np.sum(y)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gs.grad(f)(np.array([0.0, 4.0])), [np.inf, 0.25])
        assert gs.jvp(f, (np.array([0.0, 4.0]),), (np.array([1.0, 1.0]),))[1] == np.inf


def test_lines_outside_do_not_raise():
    def f(x):
        with np.errstate(invalid="raise"):
            y = x * x
        a = np.log(-x)
        with np.errstate(invalid="warn"):
            b = np.log(-x)
        return np.sum(y) + np.sum(np.where(np.isnan(a), x, a)) + np.sum(np.where(np.isnan(b), 0.0, b))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gs.grad(f)(np.array([1.0, 4.0])), [3.0, 9.0])


def test_the_emitted_with():
    df = gs.grad(a_line)
    with np.errstate(all="ignore"):
        df(GOOD)
    assert "    with np.errstate(invalid='raise'):\n        y = np.sqrt(x)\n" in df.source


def test_compiled_code_is_refused():
    with pytest.raises(gs.TransformError, match="has no Numba form"):
        gs.jit(gs.grad(a_line))(GOOD)
