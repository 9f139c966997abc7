"""Whole numbers among others: Python's max and min give one of their operands as it is, 2 ** -k is no whole number."""
import itertools
import math
import operator

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs
from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array, unknown
from gradscribe.ast_transform.passes.described import Unfit
from gradscribe.ast_transform.passes.probing import _cache
from gradscribe.ast_transform.passes.types import infer

X = np.array([0.3, 0.42, 0.57, 0.9])


def halves(p):
    s = 0.0
    for k in range(3):
        s += p[k] * 2 ** (-k)
    return s


def sign_changes(p):
    s = 0.0
    for k in range(3):
        s += p[k] * 2 ** (1 - k)
    return s


def negative_constants(p):
    k = -2
    return p[0] * 3 ** k + p[1] * (-2) ** 3


def of_a_length(p):
    n = len(p)
    return p[0] * n ** (-1) + p[1] * (n - 5) ** 2


def largest_from_zero(p):
    s = 0
    for v in p:
        s = max(s, v)
    return s * min(p)


def sums_of_relu(p):
    s = 0
    for v in p:
        s += max(0, v - 0.4)
    return s


def several_and_lists(p):
    return sum((max(0, v - 0.4) for v in p)) + max(p[0], 1, p[1]) * min(1, p[2]) + max([0, p[1]]) * max(0, *p)


def product_from_one(p):
    s = 1
    for v in p:
        s *= v
    return s


def chosen_by_path(p):
    s = 0
    for v in p:
        s = v if v > 0.4 else s
    return s


def list_of_zeros(p):
    a = [0] * 3
    for i in range(3):
        a[i] = a[i - 1] + p[i]
    return a[0] * a[1] + a[2]


def added_into_zeros(p):
    a = [0, 0, 0]
    for i in range(3):
        a[i] += p[i] ** 2
    return sum(a)


def best_and_where(p):
    best = 0
    arg = 0
    for i, v in enumerate(p):
        if v * v > best:
            best, arg = (v * v, i)
    return best * (arg + 1)


def written_into_an_array(p):
    x = np.zeros(3)
    x[0] = max(0, p[0] - 0.2)
    x[1] = min(0, p[1] - 1)
    x[2] = abs(-1) * p[2]
    return np.sum(x * p)


def clamped(p):
    f = lambda v, lo=0, hi=1: min(max(v, lo), hi)      # noqa: E731 (the program's own form)
    return f(p[0]) * f(p[1] + 1) + f(p[2])


def in_a_dict(p):
    d = {'t': 0}
    for v in p:
        d['t'] += v * v
    return d['t']


def in_a_tuple(p):
    t = (0, 1)
    for v in p:
        t = (t[0] + v, t[1] * v)
    return t[0] * t[1]


def nonlocal_number(p):
    x = 0

    def f(v):
        nonlocal x
        x = x * 0.5 + v
    for v in p:
        f(v)
    return x


def truth_values(p):
    return (p[0] > 0) * p[1] + True * p[2] + int(p[0] > 0) * p[0] + (not p[0] > 0) * 5


def in_place(p):
    x = 3
    x /= 2
    x -= p[0]
    x //= 0.5
    return x * p[1]


def two_kinds_in_turn(p):
    s = 0
    for i in range(3):
        s = s + p[i] if i % 2 else s - 1
    return s * s


def rows_from_zero(p):
    acc = 0
    for row in np.outer(p, p):
        acc = acc + row
    return np.sum(acc * acc)


def rows_from_none(p):
    acc = None
    for row in np.outer(p, p):
        acc = row if acc is None else np.maximum(acc, row)
    return np.sum(acc * p)


def functions_of_math(p):
    sums = math.fsum([p[0], 1, p[1]]) + math.prod([1, p[0], 2]) + sum([1, p[0]], 2)
    return sums + math.floor(p[0]) * p[1] + round(p[1]) * p[2]


def arrays_of_whole_numbers(p):
    a = np.array([1, 2, 3])
    b = a * p
    a = a + 1
    return np.sum(b * a) + np.sum(a / 2 * p) + np.dot(a, p)


def whole_numbers_in_arrays(p):
    a = np.array([0, p[0], 1])
    b = np.array([[1, 2], [3, p[1]]])
    return np.sum(a * p) + np.linalg.det(b) + np.sum(np.where(p > 0.4, 0, p))


def filled_with_whole_numbers(p):
    a = np.full(3, 0)
    b = np.full(3, p[0])
    c = np.full_like(p, 2)
    a = a + b
    return np.sum(a * c * p)


def ranges_and_ones(p):
    a = np.arange(3) / 2
    a[1] = p[0]
    z = np.ones(3, int)
    return np.sum(a * p) + np.sum(z * p) + np.cumsum(z) @ p


def numpys_own(p):
    largest = np.sum(np.clip(p, 0, 1) * np.maximum(0, p - 0.4))
    return largest + np.where(p[0] > 0.1, 1, p[0]) * p[1] + np.minimum(p, 1).sum()


def strides(p):
    n = len(p)
    x = p * 1.0
    for k in range(2):
        m = 2 ** k
        for i in range(0, n - m, 2 * m):
            x[i] += x[i + m]
    return np.sum(x * p)


def carried_exponent(p):
    s = 0.0
    k = 0
    while k < 3:
        s += p[k] * 2 ** k
        k += 1
    return s


def indices(p):
    s = 0.0
    for k in range(1, 3):
        s += p[2 ** k // 2] * 2 ** k * 3 ** (k + 1)
    return s


def falling_exponent(p):
    s = 0.0
    for k in range(2, -1, -1):
        s += p[k] * 2 ** k
    return s


def signs(p):
    s = 0.0
    for k, v in enumerate(p):
        s += v * (-1) ** k
    return s


def table_of_signs(p):
    s = 0.0
    for i in range(3):
        for j in range(3):
            s += p[i] * p[j] * (-1) ** (i + j) * 10 ** (i - j)
    return s


def series(p):
    return sum(((-1) ** k * v ** (2 * k + 1) / (2 * k + 1) for k, v in enumerate(p)))


FUNCTIONS = [halves, sign_changes, negative_constants, of_a_length, largest_from_zero, sums_of_relu,
             several_and_lists, product_from_one, chosen_by_path, list_of_zeros, added_into_zeros, best_and_where,
             written_into_an_array, clamped, in_a_dict, in_a_tuple, nonlocal_number, truth_values, in_place,
             two_kinds_in_turn, rows_from_zero, rows_from_none, functions_of_math, arrays_of_whole_numbers,
             whole_numbers_in_arrays, filled_with_whole_numbers, ranges_and_ones, numpys_own, strides,
             carried_exponent, indices, falling_exponent, signs, table_of_signs, series]


def test_what_was_asked_before_decides_no_dtype():
    """max(0, 0.5) is asked for the kind of its result; max(0, s) has another answer."""
    gs.grad(lambda s: max(0, 2 ** -1, s) * s)(0.3)
    gs.grad(lambda s: max(2, 0.5, s) * s)(0.3)
    assert gs.grad(lambda s: max(0, s) ** 2)(0.3) == 0.6
    assert gs.grad(lambda s: max(2, s) ** 2)(3.0) == 6.0


OPERANDS = {"0": Const(0), "1": Const(1), "-1": Const(-1), "3": Const(3), "0.5": Const(0.5), "2.5": Const(2.5),
            "True": Const(True), "k": Var("k", Array(int)), "s": Var("s", Array(float)),
            "x": Var("x", Array(np.dtype(float), (unknown("n"),))), "y": Var("y", Array(np.dtype(np.float32)))}


@pytest.mark.parametrize("function", [max, min, operator.add, operator.mul, operator.truediv, operator.pow, np.power,
                                      np.maximum, np.add], ids=lambda f: f.__name__)
def test_a_dtype_depends_on_the_operands_alone(function):
    def dtype_of(pair):
        try:
            return infer(function, pair).dtype
        except Unfit:
            return None
    pairs = list(itertools.product(OPERANDS.values(), repeat=2))
    alone = []
    for pair in pairs:
        _cache.clear()
        alone.append(dtype_of(pair))
    for order in (pairs, pairs[::-1]):
        _cache.clear()
        found = {pair: dtype_of(pair) for pair in order}
        assert [found[pair] for pair in pairs] == alone


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_values_and_gradients(f, wrap):
    x = X if f in (strides, indices) else X[:3]
    value, gradient = wrap(gs.value_and_grad(f))(x.copy())
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-13)
    want = differences(f, x)
    np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-7)
    value, tangent = gs.jvp(f, (x.copy(),), (np.ones_like(x),))
    np.testing.assert_allclose(tangent, np.sum(want), rtol=1e-6, atol=1e-7)


def test_a_negative_power_of_a_length():
    made = gs.jit(gs.grad(of_a_length))
    for n in (3, 4, 2):
        np.testing.assert_allclose(made(X[:n].copy()), gs.grad(of_a_length)(X[:n].copy()), rtol=1e-14)


def test_places_where_a_condition_holds():
    def f(x):
        i, j = np.where(np.outer(x, x) > 0.1)
        return np.sum(x[i] * x[j]) + np.sum(x[np.where(x > 0.35)[0]] ** 2)

    for made in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(made(X[:3].copy()), [1.98, 2.58 + 0.84, 2.58 + 1.14], rtol=1e-12)


def relu(x):
    return max(0, x)


def relu_of_the_other(x):
    return max(x, 0)


def at_most_one(x):
    return min(1, x)


def at_least_five(x):
    return max(5, x)


def between(x):
    return min(7, max(x, -1000))


@pytest.mark.parametrize("f", [relu, relu_of_the_other, at_most_one, at_least_five, between])
@pytest.mark.parametrize("x", [0.5, -0.5, 1.5, 6.0, np.float32(0.5), np.float64(1.5), np.float64(80.0)])
def test_of_a_number(f, x):
    slope = (f(float(x) + 1e-3) - f(float(x) - 1e-3)) / 2e-3
    for made in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
        value, gradient = made(x)
        assert value == f(x)
        np.testing.assert_allclose(gradient, slope, atol=1e-3)
        assert np.asarray(gradient).dtype == np.asarray(x).dtype
