"""Lists whose length is known only when running, with insert(0, v) and pop(-1).

Each is checked against differences: gradient, jvp, value, examples, compiled.
"""
import numpy as np
import pytest
from programs import checks


def numbers_at_the_front(x):
    out = []
    for v in x:
        out.insert(0, v * v)
    a = np.array(out)
    return np.sum(a * x) + out[0] * out[-1]


def some_at_either_end(x):
    out = [x[0]]
    for v in x:
        if v > 0.25:
            out.insert(0, v * v)
        else:
            out.append(2 * v)
    s = 0.0
    for k, v in enumerate(out):
        s = s + (k + 1) * v
    return s * out[0]


def rows_at_the_front(x):
    rows = []
    for v in x:
        rows.insert(0, x * v)
    return np.sum(np.array(rows) * np.outer(x, x * x)) + np.sum(rows[0] * x)


def put_in_and_taken_out(x):
    out = []
    for v in x:
        out.insert(0, v * x[0])
        if v > 0.5:
            out.append(out.pop(-1) * v)
    last = out.pop(-1)
    return np.sum(np.array(out) ** 2) * last


FOUND = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__]


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    for x in checks.POINTS:
        checks.derivatives(f, x)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    checks.second_derivative(f, checks.POINTS[0])


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_examples(f):
    checks.examples(f)


@pytest.mark.parametrize("f", checks.some_fast(FOUND, 2), ids=lambda f: f.__name__)
def test_compiled(f):
    checks.compiled(f)
