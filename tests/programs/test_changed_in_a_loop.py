# SPDX-License-Identifier: Apache-2.0
"""What no loop can carry, None, a text, a class, the kind of a container, and is something else after a pass."""
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])


class A:
    def __init__(self, v):
        self.v = v

    def act(self):
        return self.v * 2


class C:
    def __init__(self, v):
        self.v = v

    def act(self):
        return self.v * 7


def none_before(x):
    r = None
    s = 0.0
    for v in x:
        if r is not None:
            s += v
        r = 1.0
    return s


def a_pair_for_none(x):
    pair = None
    for v in x:
        pair = (v, 1)
    return x[0] if pair is None else pair[0]


def a_number_for_a_function(x):
    f = np.sin
    s = 0.0
    for v in x:
        s += f(v) if callable(f) else v * f
        f = 2.0
    return s


def a_bound_for_none(x):
    k = None
    s = 0.0
    for v in x:
        s += np.sum(x[k:]) * v
        k = 2
    return s


def set_by_an_expression(x):
    k = None
    items = [(k := 2.0) * v for v in x]
    return items[1] * (5.0 if k is None else 3.0)


def an_object_of_another_class(x):
    o = A(x[0])
    for v in x:
        o = C(v)
    return o.act()


def keys_in_another_order(x):
    d = {"a": x[0], "b": x[1]}
    for v in x:
        d = {"b": d["b"] * v, "a": d["a"]}
    return list(d.values())[0]


def a_list_for_a_tuple(x):
    o = (x[0], x[1])
    for v in x:
        o = [v, v]
    return o[0] * (2.0 if isinstance(o, list) else 3.0)


def a_linked_list(x):
    node = None
    for v in x:
        node = (v, node)
    s = 0.0
    while node is not None:
        s += node[0]
        node = node[1]
    return s


def class_of_an_object(x):
    o = A(x[0])
    o.__class__ = C
    return o.act()


def while_none(x):
    r = None
    s = 0.0
    k = 0
    while k < len(x):
        if r is None:
            s += x[k] * 3
        else:
            s += r * x[k]
        r = x[k]
        k += 1
    return s


def a_text(x):
    m = ""
    s = 0.0
    for v in x:
        s += v * (2.0 if m == "" else 3.0)
        m = "a"
    return s


def the_one_before(x):
    prev = None
    s = 0.0
    for v in x:
        if prev is not None:
            s += (v - prev) ** 2
        prev = v
    return s


def best_so_far(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best * best


def none_in_a_tuple(x):
    t = (None, x[0])
    for v in x:
        t = ((v, 1), v)
    return t[1] * (2.0 if t[0] is None else 3.0)


def an_empty_tuple(x):
    e = ()
    for v in x:
        e = (v, 2.0)
    return x[0] if e == () else e[0] * e[1]


def an_empty_dict(x):
    e = {}
    for v in x:
        e = {"a": v}
    return x[0] if "a" not in e else e["a"] ** 2


def an_empty_list(x):
    e = []
    for v in x:
        e = [v]
    return x[0] if not e else e[0] ** 2


def none_in_each_outer_pass(x):
    s = 0.0
    for i in range(len(x)):
        prev = None
        for j in range(i):
            if prev is not None:
                s += prev * x[j]
            prev = x[j]
    return s


def another_function(x):
    def f(v):
        return v * 2
    s = 0.0
    for v in x:
        s += f(v)

        def f(v):
            return v * 3
    return s


def an_ellipsis(x):
    w = ...
    s = 0.0
    for v in x:
        s += np.sum(x[w]) * v
        w = 2
    return s


def an_axis(x):
    ax = None
    matrix = np.outer(x, x)
    s = 0.0
    for v in x:
        s += np.sum(np.sum(matrix, axis=ax) * v)
        ax = 0
    return s


MAY_BE_REFUSED = {a_linked_list, class_of_an_object, while_none, none_in_each_outer_pass, another_function}
ALL = [none_before, a_pair_for_none, a_number_for_a_function, a_bound_for_none, set_by_an_expression,
       an_object_of_another_class, keys_in_another_order, a_list_for_a_tuple, a_linked_list, class_of_an_object,
       while_none, a_text, the_one_before, best_so_far, none_in_a_tuple, an_empty_tuple, an_empty_dict,
       an_empty_list, none_in_each_outer_pass, another_function, an_ellipsis, an_axis]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_right_or_refused(f, wrap):
    want = differences(f, X)
    try:
        np.testing.assert_allclose(wrap(gs.grad(f))(X), want, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(gs.jvp(f, (X,), (X,))[1], want @ X, rtol=1e-6)
    except gs.TransformError:
        assert f in MAY_BE_REFUSED
