"""Programs with with, try, match, reports and decorated functions.

Each is checked against differences: gradient, jvp, second derivative; some compiled; the argument stays as it was.
"""

import contextlib
import functools
import logging
import warnings

import numpy as np
import pytest
from programs import checks
from programs.checks import POINTS


class Total:
    def __init__(self, t=0.0):
        self.t = t
        self.n = 0

    def add(self, v):
        self.t = self.t + v * v
        self.n += 1
        return self

    @property
    def mean(self):
        return self.t / self.n


class Bad:
    def __init__(self, x):
        self.x = x
        raise ValueError("no")


def deco(g):
    @functools.wraps(g)
    def inner(*a, **k):
        return g(*a, **k) * 2

    return inner


# with


def warnings_of_numpy(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(x > 0, np.log(x), x)
    return np.sum(y * y)


def warnings_in_a_loop(x):
    s = 0.0
    for v in x:
        with np.errstate(all="ignore"):
            if v > 0.5:
                s = s + np.sqrt(v)
                continue
        s = s + v
    return s


def warnings_caught(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.sum(x**2)
    return y


def null_context(x):
    with contextlib.nullcontext(x * 2) as y, contextlib.nullcontext():
        return np.sum(y * y)


def return_from_a_with(x):
    with np.errstate(all="ignore"):
        for v in x:
            if v > 0.75:
                return v * v
    return x[0]


# try


def key_that_is_missing(x):
    d = {"a": x[0]}
    try:
        y = d["b"]
    except KeyError:
        y = x[1] ** 2
    else:
        y = y * 100
    finally:
        y = y * 3
    return y


def list_before_the_exception(x):
    held = [x[0]]
    try:
        held.append(x[1])
        z = held[7]  # noqa: F841
    except IndexError:
        held.append(x[2] ** 2)
    return np.sum(np.array(held) ** 2)


def object_before_the_exception(x):
    a = Total()
    d = {}
    try:
        a.add(x[0])
        y = d["k"]
    except KeyError:
        y = x[1]
    return a.t * y


def array_before_the_exception(x):
    u = x * 1.0
    d = {}
    try:
        u[0] = x[1] * x[2]
        y = d["k"]
    except KeyError:
        y = x[1]
    return np.sum(u * u) * y


def name_before_the_exception(x):
    d = {}
    q = x[0]
    try:
        q = x[1]
        y = d["k"]
    except KeyError:
        y = q
    return y * y


def handler_that_raises(x):
    try:
        y = x[0] / x[1]
    except ZeroDivisionError:
        raise ValueError("bad")
    return y * y


def exception_in_an_init(x):
    try:
        v = Bad(x[0])
    except ValueError:
        v = None
    return x[1] ** 2 if v is None else x[0]


def attribute_that_is_missing(x):
    a = Total()
    try:
        y = a.nothing
    except AttributeError:
        y = x[0] ** 2
    return y


def named_exception(x):
    try:
        y = {}["a"]
    except (KeyError, IndexError) as _:
        y = x[0] * 2
    return y * y


def nested_tries(x):
    try:
        try:
            y = [x[0]][3]
        except KeyError:
            y = x[1]
    except IndexError:
        y = x[2] ** 2
    return y


def keys_in_a_loop(x):
    s = 0.0
    d = {0: 2.0, 2: 3.0}
    for k in range(4):
        try:
            s = s + d[k] * x[k] ** 2
        except KeyError:
            s = s - x[k]
    return s


def raise_that_is_caught(x):
    try:
        if x.ndim == 1:
            raise ValueError("a")
        y = x[0]
    except ValueError:
        y = x[1] ** 2
    return y


def return_from_a_try(x):
    def get(d, k):
        try:
            return d[k]
        except KeyError:
            return x[0]

    return get({}, "a") * get({"b": x[1]}, "b")


def handler_of_a_helper(x):
    def get(d, k):
        try:
            v = d[k]
        except KeyError:
            v = x[0]
        return v

    return get({}, "a") * get({"b": x[1]}, "b")


def cache(x):
    cache = {}
    s = 0.0
    for k in [0, 1, 0, 2, 1]:
        try:
            v = cache[k]
        except KeyError:
            v = x[k] ** 2
            cache[k] = v
        s = s * 0.5 + v
    return s


def continue_from_a_handler(x):
    d = {0: 2.0, 2: 3.0}
    s = 0.0
    for k in range(4):
        try:
            w = d[k]
        except KeyError:
            continue
        s = s + w * x[k] ** 2
    return s


def return_from_a_handler(x):
    held = [x[0]]
    for k in range(3):
        try:
            v = held[k]  # noqa: F841
        except IndexError:
            return x[1] ** 2 * k
        else:
            held[0] = held[0] * 2
    return held[0]


def try_in_a_branch(x):
    def get(d, k):
        if k != "z":
            try:
                return d[k]
            except KeyError:
                return x[0]
        return x[2]

    return get({}, "a") * get({"b": x[1]}, "b") * get({}, "z")


def exception_before_an_assignment(x):
    a = b = x[0]
    try:
        a, b = x[1], [x[2]][4]
    except IndexError:
        pass
    return a * b


def exception_in_a_comprehension(x):
    k = x[0]
    d = {0: x[1]}
    try:
        q = [d[k] for k in (0, 1)]
    except KeyError:
        q = [k]
    return q[0] ** 2


def raise_in_a_helper(x):
    def check(v):
        if v.ndim != 2:
            raise TypeError("bad")
        return v

    try:
        y = check(x)
    except (TypeError, ValueError):
        y = x * 2
    return np.sum(y**2)


def finally_after_a_handler(x):
    held = []
    try:
        held.append(x[0])
        {}["q"]
    except KeyError:
        held.append(x[1])
    finally:
        held.append(x[2])
    return held[0] * held[1] * held[2] * len(held)


# match


def pattern_that_does_not_fit(x):
    y = x[0]
    p = (x[1], x[2])
    match p:
        case (5.0, y):
            r = y
        case _:
            r = y * y
    return r


def guards(x):
    match (x[0], x[1]):
        case (a, b) if a > b:
            r = a * a
        case (a, b):
            r = b**3
    return r


def mapping_pattern(x):
    d = {"kind": "a", "v": x[0], "w": x[1]}
    match d:
        case {"kind": "b"}:
            return x[0]
        case {"kind": "a", "v": v, **rest}:
            return v * v * rest["w"]


def class_pattern(x):
    a = Total()
    a.add(x[0])
    match a:
        case Total(t=t):
            return t * t


def value_patterns(x):
    s = 0.0
    for k in range(4):
        match k:
            case 0 | 1:
                s = s + x[k]
            case 2 if x[0] > 0.5:
                s = s + x[k] ** 2
            case _:
                s = s + x[k] ** 3
    return s


def match_in_a_loop(x):
    s = 0.0
    for k in range(len(x)):
        match k % 3:
            case 0:
                continue
            case 1:
                s = s + x[k] ** 2
            case _ as q:
                s = s + q * x[k]
    return s


def nested_patterns(x):
    match ((x[0], x[1]), [x[2], x[3]]):
        case ((a, b), [c, *r]) if a > 5:  # noqa: F841
            return a
        case ((a, b), [c, d]):
            return a * b * c * d


def guard_that_fails(x):
    match x[0]:
        case y if y > 0.5:
            r = y * 2
        case y:
            r = y * y
    return r


def name_of_a_pattern_that_did_not_fit(x):
    y = x[2]
    match (x[0], x[1]):
        case (a, b) if a > 100:
            y = a
        case (5.0, b):
            y = b
    return y**2


# reports


def assertion_on_an_object(x):
    a = Total(x[0])
    a.add(x[1])
    assert a.t > -100, f"bad {a.t}"
    assert np.isfinite(a.mean)
    return a.mean


def raise_with_an_object(x):
    a = Total(x[0])
    if a.t > 100:
        raise ValueError(f"too large: {a.t}")
    return a.t**2


def reports_on_an_object(x):
    a = Total()
    a.add(x[0] * x[1])
    held = []
    for v in x:
        held.append(v * a.t)
        logging.debug("%s %d", a.mean, len(held))
    print("", a.t, f"{a.n} {a.mean:.2f}", held[-1], sep="", end="\r")
    return a.t + sum(held)


# names


def walrus_in_a_while(x):
    s = 0.0
    k = 0
    while (v := x[k]) < 1 and k < 3:
        s = s + v * v
        k += 1
    else:
        s = s * 2
    return s + v


def walrus_and_exits(x):
    s = 0.0
    k = 0
    while (v := x[k]) < 100:
        k += 1
        if v > 0.75:
            break
        if k == 2:
            continue
        s = s + v * v
    else:
        s = s + 100
    return s * v


def square_decorated(x):
    @deco
    def g(v, p=2):
        return v**p

    return g(x[0], p=3) + g(x[1])


def decorated_function_with_a_list(x):
    calls = []

    def log(g):
        def inner(v):
            calls.append(v)
            return g(v)

        return inner

    @log
    def g(v):
        return v * v

    s = 0.0
    for v in x:
        s = s + g(v)
    return s * sum(calls)


def variable_named_total(x):
    total = x[0]

    def g(v):
        return total * v

    return sum(g(v) for v in x)


def comprehension_over_its_own_name(y):
    return sum(y * y for y in y)


def list_over_its_own_name(y):
    return np.sum(np.array([y * y for y in y])) + np.sum(y)


def nested_comprehensions(y):
    return sum(y * y for y in y if y > 0) + sum([z for z in [y[0] for y in [y]]])


def names_of_comprehensions(x):
    v = x[0]
    w = x[1]
    s = sum(v * w for v in x)
    t = np.sum(np.array([[v * w for w in x] for v in x]))
    return s * v + t * w


HELPERS = ("deco",)
PROGRAMS = [
    f
    for f in list(globals().values())
    if getattr(f, "__module__", "") == __name__ and hasattr(f, "__code__") and f.__name__ not in HELPERS
]
COMPILED = [
    warnings_in_a_loop,
    return_from_a_with,
    object_before_the_exception,
    cache,
    guards,
    match_in_a_loop,
    walrus_and_exits,
    square_decorated,
    comprehension_over_its_own_name,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("point", checks.some_fast(range(2)))
def test_derivatives(f, point):
    checks.derivatives(f, POINTS[point])


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivative(f):
    checks.second_derivative(f, POINTS[0])


@pytest.mark.slow
@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_compiled(f):
    checks.compiled(f)


@pytest.mark.slow
@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_float32(f):
    checks.float32(f)
