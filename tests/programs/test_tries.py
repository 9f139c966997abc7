# SPDX-License-Identifier: Apache-2.0
"""try with handlers that go on: what raises is known only when running."""
import math

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

A, B = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1.0, 2.0])


def two_that_may_raise(A, b):
    try:
        L = np.linalg.cholesky(A)
        y = np.linalg.solve(L, b)
    except np.linalg.LinAlgError:
        y = b * 2.0
    return np.sum(y * y)


def several_handlers(A, b, k=2):
    n = 6
    try:
        n //= k
        np.linalg.inv(A)
        y = n * np.linalg.solve(A, b)
    except ZeroDivisionError:
        y = 3 * b
    except (np.linalg.LinAlgError, ValueError):
        y = b * b
    else:
        y = y * y
    finally:
        b = b + 1
    return np.sum(y * b)


def without_a_quotient(A, b):
    return several_handlers(A, b, 0)


def changed_before_it_raises(A, b):
    y, n = b.copy(), 1.0
    try:
        y[0] = b[1] ** 2
        n = 2.0
        A = np.linalg.inv(A)
        n = 3.0
    except np.linalg.LinAlgError:
        A = A * 0.5 + y[0] * n
    return np.sum(A @ y) * n


def tries_in_a_loop(A, b):
    total = 0.0
    for k in range(3):
        try:
            total += np.sum(np.linalg.solve(A * (k - 1), b))
            total *= np.linalg.cholesky(A)[0, 0]
        except np.linalg.LinAlgError:
            total = total * 2 + b[0]
    return total


@pytest.mark.parametrize("f", [two_that_may_raise, several_handlers, without_a_quotient, changed_before_it_raises,
                               tries_in_a_loop])
@pytest.mark.parametrize("A", [A, -A, np.ones((2, 2))], ids=["positive", "negative", "singular"])
def test_gradient_on_each_path(f, A):
    dA, db = gs.grad(f, (0, 1))(A, B)
    assert gs.value_and_grad(f)(A, B)[0] == f(A, B)
    rng = np.random.default_rng(0)
    if np.linalg.matrix_rank(A) == 2:               # a singular matrix is not singular beside itself
        S = rng.normal(size=(2, 2))
        d = (f(A + 1e-6 * S, B) - f(A - 1e-6 * S, B)) / 2e-6
        np.testing.assert_allclose(np.sum(dA * S), d, rtol=1e-7, atol=1e-7)
    v = rng.normal(size=2)
    d = (f(A, B + 1e-6 * v) - f(A, B - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(db @ v, d, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(gs.jvp(lambda b: f(A, b), (B,), (v,))[1], d, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(gs.vmap(lambda b: f(A, b))(np.stack([B, v])), [f(A, B), f(A, v)], rtol=1e-12)


@pytest.mark.parametrize("x", [[1.2, 3.0, 2.0], [5.2, 3.0, 2.0], [-4.0, 1.0, 2.0]])
def test_store_at_an_index_that_may_be_out_of_range(x):
    def f(x):
        y = x.copy()
        try:
            y[math.floor(x[0])] = x[1] ** 2
        except IndexError:
            y = -y
        return np.sum(y * y)
    x = np.array(x)
    eye = np.eye(3) * 1e-6
    d = [(f(x + e) - f(x - e)) / 2e-6 for e in eye]
    np.testing.assert_allclose(gs.grad(f)(x), d, rtol=1e-7)


# --- one try inside another ------------------------------------------------------------------------------------------

def finally_of_a_try_inside(x):
    s = x[0]
    try:
        try:
            raise ValueError
        finally:
            s = s + x[1]
    except ValueError:
        s = s * 2
    return s


def a_handler_that_raises_again(x):
    s = x[0]
    try:
        try:
            {}['k']
        except KeyError:
            s = s * 2
            raise
    except LookupError:
        s = s * 3
    return s


def finally_when_running(x):
    s = 0.0
    for i in range(2):
        try:
            try:
                s += x[i] * (1 // i)
            finally:
                s += x[2]
        except ZeroDivisionError:
            pass
    return s


def counted_and_raised_again(x):
    n = 0
    for i in range(2):
        try:
            try:
                1 // i
            except ZeroDivisionError:
                n += 1
                raise
        except ArithmeticError:
            pass
    return n * x[0]


def another_exception_when_running(x):
    try:
        try:
            s = x[9]
        except IndexError:
            raise KeyError
    except KeyError:
        s = x[0]
    return s


def scaled_back(a):
    try:
        a[0] *= 10
        raise ValueError
    finally:
        a[0] /= 10


def finally_of_a_helper(x):
    a = x.copy()
    try:
        scaled_back(a)
    except ValueError:
        pass
    return a[0] * a[1]


def three_of_them(x):
    done = []
    s = x[0]
    try:
        try:
            try:
                raise KeyError
            finally:
                s = s * x[1]
                done.append(1)
        finally:
            s = s + x[2]
            done.append(2)
    except KeyError:
        s = s * 2
    return s * len(done)


def raised_in_else(x):
    s = x[0]
    try:
        try:
            s = s * 2
        except ValueError:
            s = s * 3
        else:
            raise KeyError('a')
        finally:
            s = s + x[1]
    except KeyError:
        s = s * 5
    return s


def another_exception(x):
    s = x[0]
    try:
        try:
            raise ValueError
        except ValueError:
            s = s + 1
            raise KeyError from None
        finally:
            s = s * x[1]
    except KeyError:
        s = s * 5
    return s


def a_message(x):
    try:
        d = {'a': x[0]}
        v = d['a']
    except KeyError:
        raise ValueError('no')
    return v * x[1]


def nothing_raises(x):
    s = 0.0
    for i in range(3):
        try:
            v = x[i]
        finally:
            s = s + v * v
    return s


def looked_up(x, k):
    try:
        return {0: x[0], 1: x[1]}[k]
    except KeyError:
        raise ValueError


def a_helper_that_raises_another(x):
    try:
        a = looked_up(x, 0)
    except ValueError:
        a = x[2]
    try:
        b = looked_up(x, 5)
    except ValueError:
        b = x[2]
    return a * b


def contexts_between(x):
    s = x[0]
    with np.errstate(all='ignore'):
        try:
            with np.errstate(divide='ignore'):
                try:
                    raise IndexError
                finally:
                    s = s * x[1]
        except IndexError:
            s = s + 1
    return s


def typed(x):
    try:
        if x.ndim == 1:
            raise TypeError
        return x[0]
    finally:
        pass


def returned_and_finally(x):
    try:
        a = typed(x)
    except TypeError:
        a = x[1]
    return a * x[0]


def misses_counted(x):
    miss = 0
    cache = {}

    def get(k):
        nonlocal miss
        try:
            return cache[k]
        except KeyError:
            miss += 1
            raise
    try:
        v = get('a')
    except KeyError:
        v = x[0]
    cache['a'] = v
    try:
        v = get('a')
    except KeyError:
        v = x[1]
    return v * miss


MAY_BE_REFUSED = {finally_when_running, counted_and_raised_again, another_exception_when_running, returned_and_finally,
                  a_helper_that_raises_another}


@pytest.mark.parametrize("f", [finally_of_a_try_inside, a_handler_that_raises_again, finally_when_running,
                           counted_and_raised_again, another_exception_when_running,
                           finally_of_a_helper, three_of_them, raised_in_else,
                           another_exception, a_message, nothing_raises,
                           a_helper_that_raises_another, contexts_between,
                           returned_and_finally, misses_counted])
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_a_try_inside_another(f, wrap):
    """What handlers and finally do before an exception goes on to a try around them is done."""
    x = np.array([2.0, 3.0, 5.0])
    want = differences(f, x)
    try:
        value, dx = wrap(gs.value_and_grad(f))(x)
    except gs.TransformError:
        assert f in MAY_BE_REFUSED
        return
    assert value == f(x)
    np.testing.assert_allclose(dx, want, rtol=1e-7)
    np.testing.assert_allclose(wrap(gs.vmap(f))(np.array([x, x + 1])), [f(x), f(x + 1)])


@pytest.mark.golden
def test_source(golden):
    fn = gs.grad(two_that_may_raise, (0, 1))
    fn(A, B)
    golden("two_that_may_raise.py", fn.source)
