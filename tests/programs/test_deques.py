"""Deques with a maxlen: what is put in at one end drops out at the other.

Each is checked against differences: gradient, jvp, value, compiled.
"""
import collections

import pytest
from programs import checks

import gradscribe as gs


def a_window(x):
    d, s = collections.deque(maxlen=2), 0.0
    for k in range(4):
        d.append(x[k] ** 2)
        s = s + d[0] * d[-1] + len(d)
    return s


def both_ends(x):
    d = collections.deque([v * v for v in (x[0], x[1], x[2], x[3])], 3)
    d.appendleft(x[0])
    d.extend([x[1], x[2] * x[3]])
    d.extendleft([2 * x[0]])
    d += [x[3]]
    return d[0] * d[1] ** 2 + d[2] * len(d) ** 2 * x[0]


def made_of_others(x):
    d = collections.deque([x[0], x[1]], maxlen=3)
    e, g, h = d + d, d.copy(), d * 2
    g.append(x[2])
    g.append(x[3])
    plain = list(g) + [x[0]]
    free = collections.deque(g, None)
    free.append(x[1] * x[2])
    return e[0] ** 2 * e[2] + g[0] * g[-1] * len(h) + len(plain) * plain[0] * free[-1] + len(free)


def rotated_and_left_empty(x):
    d, none = collections.deque((x[0], x[1], x[2]), maxlen=3), collections.deque([x[0]], maxlen=0)
    d.rotate(1)
    none.append(x[1])
    d.popleft()
    d.insert(1, x[3])
    return d[0] * d[1] ** 2 - d[2] + len(none)


def in_a_loop_that_stays(x):
    d = collections.deque([x[0], x[1]], maxlen=2)
    s = x[0] * 0.0
    for v in x:
        d.append(d[0] * v)
        s = s + d[1] ** 2
    return s * d[0]


def in_a_branch(x):
    d = collections.deque([x[0], x[1]], maxlen=2)
    if x[2] > 0:
        d.append(x[2] ** 2)
    else:
        d.appendleft(x[3])
    return d[0] * d[1] ** 2


FOUND = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__]


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_derivatives(f):
    for x in checks.POINTS:
        checks.derivatives(f, x)


@pytest.mark.parametrize("f", checks.some_fast(FOUND, 4), ids=lambda f: f.__name__)
def test_compiled(f):
    checks.compiled(f)


def test_insertion_and_results_are_refused():
    def as_a_result(x):
        return collections.deque([x, x * 2], maxlen=2)

    with pytest.raises(gs.TransformError):
        gs.jvp(as_a_result, (2.0,), (1.0,))
