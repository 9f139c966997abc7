"""Small programs that press on the joints: names, loops, branches, calls, shapes, dtypes.

Each is checked four ways against numerical derivatives: gradient, jvp, jvp of the gradient, arguments left alone.
"""
import collections
import copy
import functools
import inspect
import itertools
import math

import fuzz
import fuzz_reference
import numpy as np
import numpy as xp
import pytest
from fuzz_checks import expect, structure
from fuzz_programs import register
from fuzz_reference import difference, flat, leaves_of, like, unflat
from numpy import tanh as squash
from programs import checks

import gradscribe as gs

rng = np.random.default_rng(3)
A, v, c = rng.standard_normal((4, 3)), rng.standard_normal(3), rng.standard_normal((4, 1))
SCALE, WEIGHTS = 0.7, np.array([0.3, -0.2, 0.9])
CASES = {}
COUNTER = itertools.count()


def case(*args, argnums=0, name=None):
    """Check the function at these arguments, for these argnums; what follows them is not differentiated."""
    def add(f):
        key, n = name or f.__name__, 1
        while key in CASES:
            n += 1
            key = f"{f.__name__}_{n}"
        CASES[key] = (f, args, argnums)
        return f
    return add


def layers(*widths):
    return [(rng.standard_normal((m, n)), rng.standard_normal(n)) for m, n in zip(widths, widths[1:], strict=False)]


# --- choices that guard a side --------------------------------------------------------------------------------

GUARDED = np.array([-1.0, 0.0, 0.5, 2.0])


def test_what_is_not_chosen_has_no_derivative():
    """Infinite and undefined derivatives of the side that is not chosen are chosen away."""
    def root(x):
        return np.sum(np.where(x > 0, np.sqrt(2 * x) * x, 0.0))

    def nested(x):
        return np.sum(np.where(x > 0, np.where(x > 1, np.log(x - 1), x), -np.exp(x)))

    def norm(x):
        s = np.sum(x * x)
        return np.where(s > 0, np.sqrt(s), 0.0)

    def spread(x, c):
        return np.sum(np.where(c > 0, 1 / (x + c * 0), x[:, None]))

    with np.errstate(all="ignore"):
        np.testing.assert_allclose(gs.grad(root)(GUARDED), [0, 0, 3 / 2 * np.sqrt(2 * 0.5), 3 / 2 * np.sqrt(4)])
        np.testing.assert_allclose(gs.grad(nested)(GUARDED), [-np.exp(-1), -1, 1, 1])
        np.testing.assert_allclose(gs.grad(norm)(np.zeros(2)), 0)
        np.testing.assert_allclose(gs.grad(norm)(np.array([3.0, 4.0])), [0.6, 0.8])
        np.testing.assert_allclose(np.diag(gs.hessian(root)(GUARDED)), [0, 0, 3 / 4 * np.sqrt(2 / 0.5), 0.75])
        got = gs.grad(spread)(np.array([0.0, 2.0]), np.array([[-1.0, -2.0], [-3.0, -4.0]]))
        np.testing.assert_allclose(got, [2, 2])


@case(A)
@case(A[:1])
def first_pass_apart(x):
    s, k = 0.0, 0
    for i, row in enumerate(x):
        s = s * np.sin(row) + row * (i + 1)
        k += 1
    return np.sum(s * s) * k


@case(v)
def ranks_meet(x):
    y = x
    for _ in range(len(x)):
        y = np.outer(y, x)
    return np.sum(np.sin(y))


def test_a_loop_that_does_not_run_keeps_what_it_was_given():
    def f(x):
        s = 0.5
        for row in x:
            s = s + row
        return np.sum(np.cos(s))

    df = gs.value_and_grad(f)
    for n in (2, 0, 1, 3, 0):
        value, dx = df(np.full((n, 3), 0.1))
        assert value == f(np.full((n, 3), 0.1)) and dx.shape == (n, 3)
        np.testing.assert_allclose(dx, -np.sin(0.5 + 0.1 * n))


@case(np.linspace(0.1, 0.9, 7))
def uneven_pieces(x):
    a, b, c = np.array_split(x, 3)
    return np.sum(a[:2] * b * np.sin(c))


@case(np.linspace(0.1, 0.9, 12).reshape(2, 6))
def even_and_uneven_pieces(x):
    a, b = np.array_split(x, 2, axis=1)
    return np.sum(np.sin(a) * b)


# --- lists from outside a loop --------------------------------------------------------------------------------

@case(v, [v * 2, v + 1], argnums=(0, 1))
def list_walked_in_a_loop(x, p):
    s = 0.0
    for a in x:
        for y in p:
            s = s + np.sum(np.sin(y * a))
    return s + np.sum(p[0])


@case(v, [v * 2, v + 1], argnums=(0, 1))
def list_walked_in_two_loops(x, p):
    s = 0.0
    for a in x:
        for y in p:
            s = s * np.sum(np.sin(y * a))
    for b in x:
        for y in p[1:]:
            s = s + np.sum(np.cos(y) * b)
    return s


@case(v, layers(3, 3, 3), argnums=(0, 1))
def layers_walked_in_a_loop(x, params):
    for k in range(4):
        if k % 2 == 0:
            for W, b in params:
                x = np.tanh(x @ W + b)
        else:
            for W, b in params[:-1]:
                x = np.sin(x @ W - b)
    return np.sum(x)


@case(v, {"w": v, "pair": (v + 1, 0.5)}, argnums=(0, 1))
def dictionary_in_a_loop(x, p):
    s = 0.0
    for a in x:
        for b in x:
            w, (u, t) = p["w"], p["pair"]
            s = s + np.sum(np.sin(w * a + u * b)) * t
    return s


@case(v, [v * 2, v + 1], argnums=(0, 1))
def list_element_after_loops(x, p):
    for a in x:                       # noqa: B007
        for y in p:                   # noqa: B007
            pass
    return np.sum(y * a)


# --- shapes and broadcasting --------------------------------------------------------------------------------

@case(A, v, argnums=(0, 1))
@case(A, 0.5, argnums=(0, 1))
@case(v, A, argnums=(0, 1))
@case(A[:1], A, argnums=(0, 1))
@case(A, A[:1, :1], argnums=(0, 1))
@case(np.array(0.3), v, argnums=(0, 1))
@case(v[:1], 0.3, argnums=(0, 1))
@case(np.zeros((0, 3)), v, argnums=(0, 1))
def bias_sum(x, b):
    return np.sum(np.sin(x + b))


@case(A, c, argnums=(0, 1))
@case(A[:, :1], A, argnums=(0, 1))
@case(c, v, argnums=(0, 1))
@case(c, v[None, :], argnums=(0, 1))
@case(np.ones((1, 1)), A, argnums=(0, 1))
def column(x, s):
    return np.sum(np.tanh(x * s) ** 2)


@case(A)
@case(A[:, :1])
@case(A[:1])
def rows(x):
    n = np.sum(x * x, axis=1, keepdims=True)
    return np.sum(np.exp(x / (1 + n)))


@case(A)
def rows_flat(x):
    return np.sum(np.sin(np.sum(x, axis=1)) * np.sum(x * x, axis=1))


@case(A)
@case(A[:1])
def standardise(x):
    mean = np.mean(x, axis=0)
    spread = np.sqrt(np.mean((x - mean) ** 2, axis=0) + 0.1)
    return np.sum(np.tanh((x - mean) / spread) ** 3)


@case(A, v, argnums=(0, 1))
def softmax(x, w):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    return np.sum(p * w)


@case(v, c, argnums=(0, 1))
def grid(a, b):
    d = b - a
    return np.sum(np.exp(-d * d) * a[None, :])


@case(rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 3, 2)), argnums=(0, 1))
@case(rng.standard_normal((2, 4, 3)), rng.standard_normal((3, 2)), argnums=(0, 1))
@case(A, rng.standard_normal((2, 3, 2)), argnums=(0, 1))
@case(v, rng.standard_normal((2, 3, 2)), argnums=(0, 1))
@case(rng.standard_normal((2, 4, 3)), v, argnums=(0, 1))
@case(rng.standard_normal((1, 4, 3)), rng.standard_normal((5, 3, 2)), argnums=(0, 1))
@case(v, v[::-1].copy(), argnums=(0, 1))
def products(a, b):
    return np.sum(np.sin(a @ b))


@case(A)
def same_axis_twice(x):
    return np.sum(x[:, 0] * x[:, -1]) + np.sum(x[1:] * x[:-1]) + np.sum(x[::2, 1:])


@case(v)
def repeated_index(x):
    picked = x[np.array([0, 2, 0, -1, 0])]
    return np.sum(np.sin(picked) * np.arange(5))


@case(v)
def masked(x):
    return np.sum(np.exp(x[x > 0])) + np.sum(np.where(x > 0, np.sqrt(np.abs(x)), x * 0.1))


@case(v, 0.0, argnums=(0, 1))
@case(v, 2.0, argnums=(0, 1))
def unit_result(x, s):
    y = x[:1] * s
    return np.sum(y * x)


@case(A)
def many_views(x):
    y = x.T.reshape(-1)[::-1].reshape(3, 4)
    z = np.concatenate([y, y[:1] * 2.0])
    return np.sum(np.stack([z, z * z], axis=1)[:, 1].sum(axis=0) * np.squeeze(y[None, 0]))


# --- names ----------------------------------------------------------------------------------------------------------

@case(v, v * 0.3, argnums=(0, 1))
def hostile_names(dx, x_saved):
    x_dot = dx * x_saved
    dy = np.tanh(x_dot)
    y = dy * dx
    ddx = y + x_saved
    grad_hostile_names = np.sum(ddx * dy)
    return grad_hostile_names


@case(0.7, 0.3, 3, argnums=(0, 1))
def hostile_loop_names(x, dx, n):
    x_saved = 1.0
    for i in range(n):
        dx_saved = x * dx
        x = np.sin(dx_saved) + x_saved
        x_saved = x_saved * x
        dx = dx + 0.1 * x * i
    return x * x_saved * dx


@case(v)
def other_name_of_numpy(x):
    return xp.sum(xp.tanh(x) ** 2) + xp.sum(squash(x))


@case(v)
def numpy_name_taken(x):
    np = 0.5
    return xp.sum(xp.sin(x) * np)


@case(v)
def shadowed_builtins(x):
    sum = x * x
    len = xp.tanh(sum)
    max = len * sum
    return xp.sum(max)


@case(v)
def shadowed_globals(x):
    SCALE = np.cos(x)
    v = SCALE * x
    A = v + SCALE
    return np.sum(A * v)


@case(v)
def argument_overwritten(x):
    x = np.tanh(x)
    x = x * x
    x = x.sum()
    return x * x


@case(0.4)
def names_swapped_in_helpers(a):
    return helper(helper(a, 0.3), helper(0.2, a))


def helper(a, b):
    t = np.exp(a)
    u = t * b
    return np.sin(u) * t


@case(0.3, 0.4, argnums=(0, 1))
def name_of_the_function(helper, b):
    helper = helper * b
    return np.sin(helper)


@case(0.3, 0.9, argnums=(0, 1))
def underscores(_, __):
    _ = _ * __
    return _ * __


@case(v)
def one_statement_two_uses(x):
    y = x
    z = y
    y = y * z
    return np.sum(y * z * x)


# --- scalars and straight lines -----------------------------------------------------------------------------

@case(2, 3, argnums=(0, 1))
def integers(a, b):
    return a * a * b + a / b


@case(0.7, 0.2, argnums=(0, 1))
def swapped(a, b):
    a, b = b, a
    a, b = a + b, a - b
    return a * a * b


@case(1.2)
def augmented(x):
    total = x
    total += x * 3.0
    total *= x
    total -= 1.0 / x
    total /= 2.0
    total **= 2
    return total


@case(v)
def constant(x):
    return 3.0


@case(v, 0.3, argnums=(0, 1))
def only_shape(x, s):
    return s * x.shape[0] + len(x) * x.ndim


@case(A, v, argnums=(0, 1))
def unused_argument(x, y):
    z = np.exp(y)       # noqa: F841 (unused on purpose)
    return np.sum(x * 3.0)


@case(v, argnums=0)
def unused_tail(x):
    y = np.sin(x)
    z = y * x
    w = np.exp(z)       # noqa: F841 (unused on purpose)
    return np.sum(y)


@case(v)
def identity_sum(x):
    return np.sum(x)


@case(0.8)
def identity(x):
    return x


@case(0.8)
def powers(x):
    return x ** 3 + 2.0 ** x + x ** -1 + x ** 0.5 + x ** 0 + (-x) ** 2 + x ** x


@case(0.8)
def mathematics(x):
    return math.sin(x) * math.exp(x) + math.sqrt(x) + math.pi * math.atan2(x, 2.0) + math.log(x) + math.hypot(x, 1.0)


@case(v)
def constants_of_the_module(x):
    return np.sum(WEIGHTS * x * SCALE) + math.e * x[0] ** 2


@case(0.0)
@case(0.3)
def zero_times(x):
    return 0.0 * np.exp(x) + 0 * x + x * 1.0 + 1 * x - 0 + x / 1


@case(v)
def sum_of_methods(x):
    return x.sum() + x.mean() * x.max() + x.dot(x) + x.reshape(1, -1).T.sum(axis=0)[0] + x.prod() + x.copy().clip(-0.5,
                                                                                                                  0.5).var()


# --- loops --------------------------------------------------------------------------------------------------

@case(0.7, 4)
@case(0.7, 0)
@case(0.7, 1)
def count_up(x, n):
    s = 0.0
    for i in range(n):
        s = s + x ** 2 * i
    return s


@case(0.7, 0)
@case(0.7, 3)
def zero_trips(x, n):
    y = x * x
    for _ in range(n):
        y = np.sin(y * x)
    return y * x


@case(0.7, 1.2, 4, argnums=(0, 1))
@case(0.7, 1.2, 0, argnums=(0, 1))
def nested(x, w, n):
    for _ in range(n):
        for _ in range(3):
            x = np.sin(x * w)
    return x


@case(0.6, 4)
def triangle(x, n):
    total = 0.0
    for i in range(n):
        for j in range(i):
            x = np.cos(x) * (1 + 0.1 * j)
            total = total + x * i
    return total


@case(A, rng.standard_normal((3, 3)), 3, argnums=(0, 1))
@case(A, rng.standard_normal((3, 3)), 0, argnums=(0, 1))
def array_loop(x, w, n):
    for _ in range(n):
        x = np.tanh(x @ w)
    return np.sum(x)


@case(0.7, 0.9, 4, argnums=(0, 1))
def swap_by_hand(a, b, n):
    for _ in range(n):
        t = a
        a = b * 1.1
        b = t * a
    return a * b


@case(0.7, 0.9, 3, argnums=(0, 1))
def swap_in_a_loop(a, b, n):
    for _ in range(n):
        a, b = b, a * b
    return a * a + 3 * b


@case(0.7, 0.9, 0.4, 5, argnums=(0, 1, 2))
def rotation(a, b, d, n):
    for _ in range(n):
        a, b, d = b, d, np.sin(a)
    return a + 2 * b * d


def step_pair(a, b):
    return np.sin(a) * b, a + b * b * 0.1


@case(0.7, 0.9, 4, argnums=(0, 1))
def carried_pair(a, b, n):
    for _ in range(n):
        a, b = step_pair(a, b)
    return a * b


@case(rng.standard_normal(5), 3)
def growing_rank(x, n):
    y = x[:1]
    for _ in range(n):
        y = y + x[1:]
    return np.sum(y * y)


@case(A)
def accumulator_from_zero(x):
    s = 0.0
    for row in x:
        s = s + row * row
    return np.sum(np.sin(s))


@case(A)
def accumulator_augmented(x):
    s = 0.0
    for row in x:
        s += np.sum(row) ** 2
    return s


@case(0.7, 4)
def augmented_in_a_loop(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
        x *= 0.9
    return s * x


@case(0.7, 3)
def first_set_inside(x, n):
    for i in range(n):
        y = x * (i + 1)
        x = np.sin(y)
    return x * y


@case(A)
def loop_names_after(x):
    for i, row in enumerate(x):
        z = row * i
    return np.sum(row * z) * i


@case(A, argnums=0)
def source_and_body(x):
    s = 0.0
    for row in x:
        s = s + np.sum(row * x[0]) * np.sum(x * x)
    return s


@case(A)
def source_overwritten(x):
    for row in x:
        x = x * np.sum(row) * 0.5
    return np.sum(x)


@case(v)
def scalars_of_an_array(x):
    p = 1.0
    for e in x:
        p = p * (1.0 + e * e)
    return p


@case(rng.standard_normal(6))
def steps_of_range(x):
    s = 0.0
    for i in range(4, -1, -2):
        s = s * 0.5 + x[i] * x[i + 1]
    for i in reversed(range(1, 6, 2)):
        s = s + np.sin(s) * x[i]
    return s


@case(A, v, argnums=(0, 1))
def zipped(x, y):
    s = 0.0
    for row, k in zip(x.T, y, strict=True):
        s = s + k * np.sum(row ** 2)
    return s


@case(v, A[0], argnums=(0, 1))
def zipped_and_counted(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y)):
        s = s * a + b * i
    return s


@case([v, v * 2.0, v - 1.0])
@case([v])
def over_a_list(xs):
    t = np.ones(3)
    for x in xs:
        t = np.tanh(t * x)
    for x in reversed(xs):
        t = t + x * x
    return np.sum(t)


@case(0.3, 0.4, argnums=(0, 1))
def over_a_literal(a, b):
    s = 1.0
    for t in (a, b, a * b):
        s = s * np.sin(t) + t
    return s


@case(0.5, 12)
def carried_past_a_branch(x, n):
    old = x
    for i in range(n):
        new = np.sin(x) + 0.1 * old
        if i % 3 == 0:
            old = x
        x = new
    return x * old


@case(0.7, 3)
def two_loops_one_name(x, n):
    for _ in range(n):
        x = np.sin(x) * 1.1
    y = x
    for _ in range(n + 1):
        x = x * y
    return x


@case(0.9, 5)
def step_by_i(x, n):
    for i in range(n):
        x = x * np.cos(x * i) / (i + 1) + 0.2
    return x


# --- while --------------------------------------------------------------------------------------------------

@case(2.0)
def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@case(0.7)
@case(11.0)
def two_whiles(x):
    while x < 10.0:
        while x < 3.0:
            x = x * 1.5
        x = x * 2.0
    return x


@case(0.7)
def while_saves_nothing(x):
    s = x
    k = 0
    while k < 4:
        s = s + x * 0.5
        k += 1
    return s * x


@case(0.7)
def while_only_counts(x):
    y = 8.0
    while y > 1.0:
        x = x * 2.0
        y = y * 0.5
    return x * x


@case(0.6, 3)
def everything_nested(x, n):
    s = 0.0
    for i in range(n):
        y = x + i
        while y < 4.0:
            if y > 2.0:
                z = y * y * 0.3
                y = y + z
            elif i % 2 == 0:
                y = y * 1.7
            else:
                y = y + 0.9 * x
        s = s + np.sin(y)
    return s * x


@case(v)
def while_over_an_array(x):
    n = 0
    while np.sum(x * x) > 0.1:
        x = np.sin(x) * 0.8
        n += 1
    return np.sum(x) * n


@case(rng.standard_normal(5) * 0.2)
def view_stored_by_while(x):
    k = 0
    s = 0.0
    while k < 3:
        y = x[k:k + 2]
        s = s + np.sum(y * y * y)
        x = x * 1.1
        k = k + 1
    return s


# --- branches -----------------------------------------------------------------------------------------------

@case(0.7, 6)
@case(1.7, 6)
def branch_in_loop(x, n):
    for _ in range(n):
        if x > 1.0:
            x = x * 0.5
        else:
            x = x * x + 0.3
    return x


@case(0.4, 5)
@case(1.4, 5)
def dear_branch(x, n):
    for _ in range(n):
        if x < 1.0:
            e = np.exp(x)
            x = e * 0.3
        else:
            x = np.sin(x) * x
    return x


@case(0.7)
@case(-0.7)
def guarded(x):
    if x > 0:
        s = np.exp(x)
        t = s * x
    else:
        t = x
    return t * t


@case(0.7)
@case(-0.7)
@case(5.0)
def early_returns(x):
    if x < 0:
        return x * x
    y = np.sin(x)
    if x > 3:
        return y * x
    else:
        y = y * y
    return y * x


@case(0.7)
@case(-0.7)
def branch_on_its_own_name(x):
    if x > 0:
        x = -x * x
    if x > 0:
        x = np.sin(x)
    else:
        x = np.exp(x)
    return x


@case(0.2)
@case(0.6)
@case(1.6)
def ternaries(x):
    y = x * x if x > 0.5 else np.sin(x)
    return (y if x < 1 else -y * x) * (2.0 if y > 0.1 else x)


@case(0.3, True)
@case(0.3, False)
@case(0.3, None)
@case(0.3, "square")
def static_flags(x, how):
    if how is None:
        return np.sin(x)
    if how == "square":
        return x * x
    return np.exp(x) if how else -x


@case(0.3, 1.2, argnums=(0, 1))
@case(1.3, 0.2, argnums=(0, 1))
def logic(a, b):
    if a > 1 and not b > 1 or a < 0:
        return a * b
    if 0 < a < b:
        return a + b * b
    return b


@case(0.7)
def dead_arm(x):
    if False:
        x = x * 100.0
    return x * x


# --- calls --------------------------------------------------------------------------------------------------

@case(0.4 * A, 0.3 - 0.2 * A, argnums=(0, 1))
def calls(a, b):
    return np.sum(helper(a, b) * helper(b, a))


@case(v)
def same_array_twice(x):
    return np.sum(helper(x, x)) * np.sum(x @ x)


def scaled(x, factor=0.5, *, shift=0.1, power=2):
    return (x * factor + shift) ** power


@case(v, 0.3, argnums=(0, 1))
def defaults_and_keywords(x, s):
    return np.sum(scaled(x)) + np.sum(scaled(x, s)) + np.sum(scaled(x, shift=s, power=3)) + scaled(factor=s, x=s)


@case(v, 0.4, argnums=(0, 1))
def closures(x, s):
    def outer(t):
        def inner(u):
            return u * s + t
        return inner(t) * inner(x)
    return np.sum(outer(np.sin(x)))


@case(0.4, argnums=0)
def lambdas(x):
    f = lambda t: t * x             # noqa: E731
    g = lambda t, k=2: f(t) ** k    # noqa: E731
    return f(3.0) + g(x) + g(x, k=3) + (lambda t: np.sin(t))(x)


@case(0.4)
def closure_sees_the_last_value(x):
    s = 1.0
    f = lambda t: t * s             # noqa: E731
    s = x * x
    return f(x)


@case(0.4)
def function_as_argument(x):
    return twice(np.sin, x) + twice(lambda t: t * t, x) + twice(helper_of_one, x)


def twice(f, x):
    return f(f(x))


def helper_of_one(t, scale=1.3):
    return np.tanh(t) * scale


def power(x, n):
    return x * power(x, n - 1) if n > 0 else 1.0


@case(0.8)
def recursion(x):
    return power(x, 4) + power(np.sin(x), 2)


@case(v, 0.3, argnums=(0, 1))
def starred(x, s):
    pair = (x, s)
    named = {"factor": s, "shift": 0.2}
    return np.sum(helper(*pair)) + np.sum(scaled(x, **named))


def gather(*parts, **named):
    return parts[0] * parts[1] + named["bias"]


@case(v, 0.3, argnums=(0, 1))
def variadic(x, s):
    return np.sum(gather(x, s, bias=s * s))


def stats(x):
    m = np.mean(x)
    return {"mean": m, "spread": np.mean((x - m) ** 2)}


@case(v)
def returned_dict(x):
    s = stats(x)
    return s["mean"] / (1 + s["spread"])


@case(v, 0.3, argnums=(0, 1))
def returned_and_ignored(x, s):
    y, _ = split_result(x, s)
    return np.sum(y)


def split_result(x, s):
    return x * s, np.exp(x)


def make_layer(w):
    def layer(x):
        return np.tanh(x * w)
    return layer


@case(v, argnums=0)
def returned_function(x):
    layer = make_layer(x)
    return np.sum(layer(0.5) * layer(x))


made = make_layer(WEIGHTS)


@case(v)
def closure_of_the_module(x):
    return np.sum(made(x))


# --- containers ---------------------------------------------------------------------------------------------

@case(layers(3, 5, 4, 2), A, rng.standard_normal((4, 2)))
@case(layers(3, 5, 4, 1), A, rng.standard_normal((4, 1)), argnums=(0, 1, 2))
@case(layers(3, 1, 4, 2), A, rng.standard_normal((4, 2)))
@case(layers(3, 2), A, rng.standard_normal((4, 2)), argnums=(0, 1))
def network(params, x, y):
    for W, b in params[:-1]:
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    return np.sum((x @ W + b - y) ** 2)


@case(layers(3, 5, 3), A, argnums=(0, 1))
def whole_list(params, x):
    for W, b in params:
        x = np.tanh(x @ W + b)
    return np.sum(x)


@case({"w": v, "b": 0.3, "nested": {"k": (v, 0.2)}})
def dictionary(p):
    w, (k, s) = p["w"], p["nested"]["k"]
    return np.sum(np.sin(w * k) * s + p["b"])


Point = collections.namedtuple("Point", "x y")


@case(Point(v, 0.4))
def named_tuple(p):
    q = Point(p.y * 2.0, p.x)
    return np.sum(p.x * p.y) + np.sum(q.y ** 2) * q.x


@case([v, v * 2.0])
def item_used_twice(xs):
    a = xs[0]
    xs = [a * xs[1], a]
    return np.sum(xs[0] * xs[1] * xs[-1])


@case((0.3, 0.4), 4)
def carried_tuple(state, n):
    for _ in range(n):
        x, y = state
        state = (y, np.sin(x) + 0.1 * y)
    return state[0] * state[1]


@case({"x": 0.3, "v": v}, 3)
def carried_dict(state, n):
    for i in range(n):
        state = {"x": np.sin(state["x"]) + i, "v": state["v"] * state["x"]}
    return np.sum(state["v"]) * state["x"]


@case((v, v, 0.5))
def partly_used(t):
    return np.sum(t[1]) * 2.0


@case(v, 0.3, argnums=(0, 1))
def nested_unpacking(x, s):
    (a, b), [d, e] = (x, s), (s * s, x * s)
    return np.sum(a * b + d * e)


# --- found by the fuzzer, made small ---------------------------------------------------------------------------

@case(A[0] * 2, 0.3, argnums=(0, 1))
def counting_while_in_a_for(a, s):
    for e in a:
        while np.sum(a * a) > 0.4:
            a = a * 0.7
            s = np.arctan(e)
    return s


@case(np.ones((3, 2)), v, argnums=(0, 1))
def reversed_rows(b, x):
    for y in reversed(x):
        b = y * b
    return np.sum(b)


@case(rng.standard_normal((2, 1)), 0.4, argnums=(0, 1))
def views_of_views(a, b):
    for g, _ in zip(a, a, strict=True):
        for p in reversed(g):         # noqa: B007
            pass
    for h in g:                     # noqa: B007
        pass
    return p + np.cos(h) * b


@case(rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), argnums=(0, 1))
def arrays_swapped_in_a_loop(a, b):
    for j, e in enumerate(a):
        a = np.stack((e, e, e)) ** j
        a, b = b, a
    return np.sum(np.sin(b))


@case(0.7, 0.3, argnums=(0, 1))
@case(0.2, 0.3, argnums=(0, 1))
def made_in_one_arm(a, b):
    y = 0.4
    if a > 0.37:
        y = np.cos(a) * a
    return np.sin(y) * b


@case([v * 2.0], 2)
def item_of_a_list_in_a_loop(p, n):
    for _ in range(n):
        a = p[0] * 1.0
    return np.sum(a * a)


@case(0.3, ((0.1, 0.2), (0.3, 0.4)), argnums=(0, 1))
def tuple_built_anew(s, p):
    for _ in range(3):
        p = ((s, 0.9), (p[0][0], 0.5))
    return p[0][1] * p[0][0] * p[1][0]


@case(0.3)
def broadcast_of_a_scalar(s):
    return np.sum(np.broadcast_to(s, (3,))) * s


@case(v)
def inner_of_a_broadcast(a):
    return np.inner(a, np.broadcast_to(a, (2, 3)).sum(axis=-2))


@case(0.7, 0.3, argnums=(0, 1))
@case(0.1, 0.3, argnums=(0, 1))
def arm_by_arm(s, c):
    for j in range(2):
        if j == 1:
            pass
        elif s > 0.6:
            pass
        else:
            c = s
    return c * c


@case(np.ones((2, 1)), rng.standard_normal((2, 4)), argnums=(0, 1))
def mean_and_rows(a, b):
    k, s = 0, 0.1
    while k < 2:
        s = s + np.sum(b[k]) ** 2
        k += 1
    return s + np.mean(b * a + b)


def third_item(a):
    a = np.where(a > 0.2, a, a)
    return a[2]


def item_of_a_product(b):
    return third_item(b * np.ones(3))


@case(0.3)
def helper_in_a_helper(s):
    return item_of_a_product(s)


@case(v, v, argnums=(0, 1))
def two_operand_einsum(a, b):
    return np.einsum("i,i->", a, b) ** 2


@case(rng.standard_normal((3, 3)) * 0.3)
def nested_reversed_source_overwritten(c):
    for _ in c:
        for p in reversed(c):
            c = np.tanh(c @ (p * np.ones((3, 3)))) + 0.2 * c
    return np.sum(c)


# --- the checks ---------------------------------------------------------------------------------------------

def bound(f, args, positions):
    """The function of the arguments at `positions` alone."""
    names = list(inspect.signature(f).parameters)
    rest = {names[k]: a for k, a in enumerate(args) if k not in positions}
    return functools.partial(f, **rest) if rest else f


@pytest.mark.parametrize("name", checks.some_fast(CASES, 4))
def test_derivatives(name):
    f, args, argnums = CASES[name]
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    active = [args[k] for k in positions]
    active = [float(a) if isinstance(a, int) else a for a in active]
    x, seed = flat(active), np.random.default_rng(len(name))
    direction = seed.standard_normal(x.size)
    tangents = unflat(active, direction)

    def scalar(vector):
        full = list(copy.deepcopy(args))
        for k, a in zip(positions, unflat(active, vector), strict=True):
            full[k] = a
        return f(*full)

    want, tolerance = fuzz_reference.gradient(scalar, x, [flat(a).size for a in active], seed)

    df, given = gs.grad(f, argnums), copy.deepcopy(args)
    got = df(*given)
    got = got if isinstance(argnums, tuple) else (got,)
    for a, b in zip(leaves_of(given), leaves_of(args), strict=True):
        assert np.array_equal(a, b), "the arguments were changed"
    assert structure(got) == structure(tuple(active))
    expect(got, want, tolerance, "grad")

    h = bound(f, args, positions)
    value, dot = gs.jvp(h, tuple(copy.deepcopy(active)), tuple(tangents))
    expect(value, scalar(x), 1e-12 * (1 + abs(scalar(x))), "value")
    expect(dot, want @ direction, tolerance * (1 + np.sum(np.abs(direction))), "jvp")

    every = tuple(range(len(active)))

    def gradient(vector):
        return flat(gs.grad(h, every)(*unflat(active, vector)))

    second, error = difference(gradient, x, direction)
    _, dot = gs.jvp(gs.grad(h, every), tuple(copy.deepcopy(active)), tuple(tangents))
    expect(dot, second, 1e-6 * (1 + np.max(np.abs(second), initial=0)) + 20 * error, "jvp of grad")


def along(df, args, tangents):
    """A function of the same arguments: their gradient times a vector, as a user would write it."""
    parts = [f"np.sum({path} * v[{k}])" for k, path in
             enumerate(p for n, a in enumerate(args) for p in fuzz.spelled(a, f"d[{n}]"))]
    names = ", ".join(f"x{k}" for k in range(len(args)))
    text = f"def dotted({names}):\n    d = df({names})\n    return {' + '.join(parts)}\n"
    space = {"np": np, "df": df, "v": tuple(leaves_of(tangents))}
    exec(register(text, f"<along {next(COUNTER)}>"), space)
    return space["dotted"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("named_tuple",)])
def test_gradient_of_the_gradient(name):
    """Reverse over reverse gives what forward over reverse gives."""
    f, args, argnums = CASES[name]
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    active = [float(args[k]) if isinstance(args[k], int) else args[k] for k in positions]
    h, every = bound(f, args, positions), tuple(range(len(active)))
    tangents = unflat(active, np.random.default_rng(len(name)).standard_normal(flat(active).size))
    df = gs.grad(h, every)
    _, want = gs.jvp(df, tuple(copy.deepcopy(active)), tuple(tangents))
    got = gs.grad(along(df, active, tangents), every)(*copy.deepcopy(active))
    want = flat(want)
    expect(got, want, 1e-8 * (1 + np.max(np.abs(want), initial=0)), "grad of grad")


SINGLE = [name for name, (_, args, _) in CASES.items()
          if all(isinstance(leaf, np.ndarray) and leaf.dtype == float for a in args for leaf in leaves_of(a))]


@pytest.mark.parametrize("name", SINGLE)
def test_float32(name):
    """float32 in, float32 out, near the float64 gradient; and with one argument of each kind, each keeps its own."""
    f, args, argnums = CASES[name]
    exact = flat(gs.grad(f, argnums)(*args))
    single = [like(a, iter([leaf.astype(np.float32) for leaf in leaves_of(a)])) for a in args]
    for given in (single, [*single[:1], *args[1:]]):
        got = gs.grad(f, argnums)(*given)
        positions = argnums if isinstance(argnums, tuple) else (argnums,)
        want = [leaf.dtype for k in positions for leaf in leaves_of(given[k])]
        assert [np.asarray(leaf).dtype for leaf in leaves_of(got)] == want
        np.testing.assert_allclose(flat(got), exact, rtol=1e-3, atol=1e-3 * (1 + np.max(np.abs(exact), initial=0)))


@pytest.mark.slow
@pytest.mark.parametrize("name",
                         [n for n in CASES
                          if n in ("network", "nested", "everything_nested", "carried_pair", "two_whiles", "rows",
                                                            "accumulator_from_zero", "closures", "dear_branch",
                                   "softmax", "first_set_inside")])
def test_compiled(name):
    f, args, argnums = CASES[name]
    want = gs.grad(f, argnums)(*args)
    given = copy.deepcopy(args)
    got = gs.jit(gs.grad(f, argnums))(*given)
    assert structure(got) == structure(want)
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-10, atol=1e-10)
    assert all(np.array_equal(a, b) for a, b in zip(leaves_of(given), leaves_of(args), strict=True))


def test_writes_to_an_argument_never_reach_the_caller():
    """Either refused or right on a copy: `u += 1` writes into the array that was passed."""
    def own_argument(u):
        u += np.sin(u)
        return np.sum(u * u)

    u = v.copy()
    try:
        got = gs.grad(own_argument)(u)
    except gs.TransformError:
        return
    assert np.array_equal(u, v)
    np.testing.assert_allclose(got, 2 * (v + np.sin(v)) * (1 + np.cos(v)), rtol=1e-12)


def test_an_alias_sees_a_write():
    def alias(x):
        y = x * 1.0
        z = y
        y += np.sin(x)
        return np.sum(z * x)

    try:
        got = gs.grad(alias)(v)
    except gs.TransformError:
        return
    np.testing.assert_allclose(got, 2 * v + np.sin(v) + v * np.cos(v), rtol=1e-12)
