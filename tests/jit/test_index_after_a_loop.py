# ruff: noqa: B007  (indices are read after their loops)
"""The index of a loop after it, compiled: loops are written out or joined, and then have no index."""
import numpy as np
import pytest

import gradscribe as gs


def short_loop(x):
    v = np.zeros(3)
    for i in range(3):
        v[i] = x[i] * 2
    return v[0] * v[1] + x[i] * 3



def two_loops(x):
    v, w = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        v[i] = x[i] * 2
    for j in range(len(x)):
        w[j] = v[j] * 2
    return np.sum(w) + x[i] * 3 + x[j - 1]



def from_one(x):
    s = 0.0
    for i in range(1, len(x)):
        s += x[i] * 2
    return s * x[i] * i



def written_at_the_last(x):
    v = np.zeros(len(x))
    for i in range(len(x)):
        v[i] = x[i] * 2
    v[i] += 1.0
    w = v * 2
    w[i - 1] = 3.0
    return np.sum(w * v)



def left_early(x):
    for i in range(len(x)):
        if x[i] > 2.5:
            break
    return x[i] * i



def left_early_or_not(x):
    v = x * 2
    for i in range(3):
        v[i] = x[i] * 2
        if x[i] > 100:
            break
    return x[i] * v[i - 1]



def counted_by_a_while(x):
    i = 0
    while i < 3:
        j = i
        i += 1
    return x[i] * x[j] if i < len(x) else x[j]



def nested(x):
    s = 0.0
    for i in range(3):
        for j in range(2):
            s += x[i] * x[j]
    return s * x[i] * x[j] * i



def with_a_row(x):
    for i, r in enumerate(x):
        s = r * 2
    return s * i * r



def going_down(x):
    for i in range(2, -1, -1):
        x = x * 1.5
    return x[i] * 2 + x[i + 1]



def a_number_of_passes(x):
    out = 0.0
    for i in range(3):
        k = i
        out += x[k]
    for i in range(k):
        out += x[i] * i
    return out * (i + k)



def sums_of_an_inner_loop(x):
    v = np.zeros(2)
    for i in range(2):
        for j in range(2):
            v[j] += x[i]
        v[j] *= i + 1.0
    return np.sum(v) * x[j] + i



def no_pass(x):
    i = 5
    for i in range(0):
        x = x * 2
    return x[0] * i



def one_name_twice(x):
    for i in range(3):
        y = x * i
    for i in range(2):
        y = y + x[i]
    return np.sum(y) * i


def set_anew_between(x, k):
    v, w = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        v[i] = x[i] * 2
    i = k
    for j in range(len(x)):
        w[j] = v[j] + i * x[j]
    return np.sum(w) * i



def set_before_and_after(x, k):
    i = k * 2
    s = i * x[0]
    v = np.zeros(len(x))
    for i in range(len(x)):
        v[i] = x[i] * s
    j = k
    w = v * j
    for j in range(len(x)):
        w[j] = w[j] * v[j]
    i = j * 2
    return np.sum(w) * i



def inner_count(x, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    for i in range(k):
        s += x[i] * i
        for j in range(i):
            s += x[j]
    return s * i * j



def last_of_two(x, k):
    v, w = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        v[i] = x[i] * 2
        last = i
    for i in range(len(x)):
        w[i] = v[i] * last
    return np.sum(w)



def of_the_largest(x, k):
    best, at = -1e9, 0
    for i in range(len(x)):
        if x[i] > best:
            best, at = x[i], i
    for i in range(at):
        best = best * x[i]
    return best * x[at] * i



def row_and_column(x, k):
    t = np.zeros((len(x), 3))
    for i in range(len(x)):
        for j in range(3):
            t[i, j] = x[i] * j
    u = t[i] * t[:, j].sum()
    for i in range(3):
        u[i] += x[i]
    return np.sum(u) * x[j] * i


OF_ARRAY = [short_loop, two_loops, from_one, written_at_the_last, left_early, left_early_or_not,
            counted_by_a_while, nested, with_a_row, going_down, a_number_of_passes, sums_of_an_inner_loop, no_pass,
            one_name_twice]
OF_BOTH = [set_anew_between, set_before_and_after, inner_count, last_of_two, of_the_largest, row_and_column]
X = np.array([1.0, 2.0, 9.0, 4.0, 5.0])
CALLS = [(f, (x,)) for f in OF_ARRAY for x in (X[:4], X)] + [(f, (X, k)) for f in OF_BOTH for k in (3, 4)]
IDS = [f"{f.__name__}-{a[1] if len(a) > 1 else len(a[0])}" for f, a in CALLS]


@pytest.mark.parametrize("f, args", CALLS, ids=IDS)
def test_values(f, args):
    x, *rest = args
    np.testing.assert_allclose(gs.jit(f)(x.copy(), *rest), f(x.copy(), *rest), rtol=1e-13)


@pytest.mark.parametrize("f, args", CALLS, ids=IDS)
def test_gradients(f, args):
    x, *rest = args
    expected = np.array([(f(x + 1e-5 * e, *rest) - f(x - 1e-5 * e, *rest)) / 2e-5 for e in np.eye(len(x))])
    eager = gs.grad(f)(x.copy(), *rest)
    np.testing.assert_allclose(eager, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x.copy(), *rest), eager, rtol=1e-12, atol=1e-12)
