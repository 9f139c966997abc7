# SPDX-License-Identifier: Apache-2.0
"""Arrays that are one of two by a test, lists that a branch makes longer, expressions that write and may be skipped.

Gradients and tangents against differences, plain and compiled, for tests that hold and that do not.
"""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, 0.6, 0.9, 1.2])


# -- which array, by a test ----------------------------------------------------------------------------------

def a_view_or_a_new_array(x, t):
    a = x * 2
    b = a[1:] if t > 0 else x[1:] * 3
    b[0] = 5.0 * t
    return np.sum(a * x) + np.sum(b)


def a_view_of_an_argument_or_of_a_copy(x, t):
    if t > 0:
        b = x[1:]
    else:
        b = x.copy()[:-1]
    b *= b
    x[1] += 1
    return np.sum(x * np.arange(4)) + np.sum(b * b)


def two_names_of_two_arrays_in_a_loop(x, t):
    a = x * 2
    c = x * 3
    if t > 0:
        y = a
        z = a[::-1]
    else:
        y = c[1:]
        z = a
    for k in range(3):
        y[k] = y[k] * t
        z[k] += x[k]
        c[0] = c[0] * z[1]
    return np.sum(a * x) + np.sum(c * x * x) + np.sum(y) + np.sum(z * z)


def kept(v, c):
    if c > 0:
        return v
    return v * 1.0


def a_helper_gives_its_argument_or_not(x, t):
    a = x * x
    b = kept(a, t)
    c = kept(x[::-1], t + 0.1)
    b[0] = t
    a[1] *= 2
    c[2] += b[3]
    return np.sum(a * x) + np.sum(b * c)


def a_view_of_what_a_helper_has_made_or_not(x, t):
    a = x * x
    b = kept(a, t)
    c = kept(b[::-1], t + 0.1)          # of an array that one arm of another branch has made
    c[0] = t
    a[1] *= 2
    return np.sum(a * x) + np.sum(b * c)


def one_of_three(x, t):
    a, b, c = x * 1.0, x * 2.0, x * 3.0
    y = a if t > 0.5 else b
    z = y if t > -0.5 else c
    z[:2] = z[2:] * t
    y[3] = z[0]
    c *= b
    return np.sum(a * b + b * c) + np.sum(y * z * a)


def both_arms_show_one_array(x, t):
    a = x * t
    y = a[::2] if t > 0 else a[1::2]
    a[0] = t * y[1]
    y[0] = a[1] * a[2]
    return np.sum(a * x) + np.sum(y * y)


def written_in_a_branch(x, t):
    a, b = x * 2.0, x * 3.0
    y = a if t > 0 else b
    if x[0] > 0.1:
        y[1] = t * a[0]
    else:
        a[2] = t
    y[2:] *= y[0]
    return np.sum(a * x) - np.sum(b * b * y)


def written_in_a_while_loop(x, t):
    a, b = x * 1.0, x + 1.0
    y = a[1:] if t > 0 else b[:-1]
    k = 0
    while k < 3 and np.sum(a) < 50:
        y[k] = a[k] * b[k]
        a[3] += y[0]
        k += 1
    return np.sum(a * b) * y[2]


def made_in_one_arm(x, t):
    a = x * 2.0
    if t > 0:
        c = x * x
        y, z = c, c[1:]
    else:
        y, z = a, x * 1.0
    y[1] = t * 3
    z[0] *= y[0]
    return np.sum(a * x) + np.sum(y * y) + np.sum(z)


def one_of_many_rows(x, t):
    y = np.outer(x, x) * t
    if t > 0.5:
        p = y[1]
    elif t > 0:
        p = y[2]
    elif t > -0.5:
        p = y[:, 0]
    else:
        p = x * 2.0
    p *= t * x
    y[2] += p
    return np.sum(y * y) + np.sum(p * x)


def chosen_in_arms_of_arms(x, t):
    a, b, y = x * 2.0, x * 3.0, np.outer(x, x)
    p = y[-1]
    y[0] += t
    if t > -0.5:
        p = y[1]
        y[1] *= p
        if t > 0:
            y[2] += p * a
            if t > 0.5:
                p = a
                a[1] = t
            else:
                p = b[::-1]
    p *= 2 * t
    b[0] += p[0]
    return np.sum(y * y) + np.sum(a * b * p)


def parts_of_what_is_chosen(x, t):
    a, b, c = x * 2.0, x * 3.0, x * t
    if t > 0:
        p = a if t > 0.5 else b[::-1]
        q = p[1:]
    else:
        p = c[:] if t > -0.5 else a
        q = c[1:]
    q[0] = t * t
    p[-1] *= 3.0
    q *= a[:3]
    return np.sum(a * b) + np.sum(c * p * x) + np.sum(q)


def two_names_of_what_is_chosen(x, t):
    a, b = x * 2.0, x * x
    if t > 0:
        if t > 0.5:
            p, q = a, b
        else:
            p, q = b, a[::-1]
    else:
        p, q = a[::-1], a
    p[0] = q[1] * t
    q[2] += p[3]
    p += q
    return np.sum(a * x) + np.sum(b * b * p) + np.sum(q)


def places_that_an_arm_makes(x, t):
    y = np.outer(x, x + t)
    p = y[3]
    if t > 0:
        k = 1 if t > 0.5 else 2
        if x[0] > 0.1:
            j = k - 1
            p = y[j, ::k]
    p[0] *= t
    y[0] += 1.0
    p[1] = y[0, 0] * p[0]
    return np.sum(y * y) + np.sum(p)


def chosen_in_arms_in_a_loop(x, t):
    a, b = x * 2.0, x + 1.0
    s = 0.0
    for k in range(3):
        if t > 0:
            p = a if b[k] > 1.4 else b
        else:
            p = x * t
        p[k] = t * b[3 - k]
        s = s + np.sum(a * p)
    return s + np.sum(b)


def chosen_before_a_loop_that_writes(x, t):
    a, b, c = x * 2.0, x + 1.0, x * x
    if t > 0.5:
        p = a
    elif t > 0:
        p = b[::-1]
    else:
        p = c
    for k in range(3):
        p[k] = p[k + 1] * t
        b[k] += a[k]
    return np.sum(a * b) + np.sum(c * p)


def left_in_an_arm(x, t):
    a, b = x * 2.0, x * 3.0
    p = b
    if t > 0:
        p = a
        if t > 0.5:
            p = x * 1.0
            p[0] = t
            return np.sum(p * a)
    p[1] *= t
    return np.sum(a * b * p)


# -- expressions that may be skipped -------------------------------------------------------------------------

def bumped(v, c):
    v[0] = c * c
    return np.sum(v)


def a_conditional_expression_writes(x, t):
    a = x * 2
    b = x + a * (bumped(a, t) if t > 0 else 2.0)
    return np.sum(a * b)


def a_part_of_a_test_writes(x, t):
    a = x * 2
    if t > 0 and bumped(a, t) > 1.0:
        return np.sum(a) * t
    return np.sum(a * a) * t


def a_name_is_set_on_one_side(x, t):
    y = 1.0
    z = (y := t * t) if t > 0 else t * 3
    return z * y * np.sum(x)


def a_name_is_set_in_a_part_of_a_test(x, t):
    if x[0] > 0.2 and (m := x[1] * t) > 0.1:
        return m * t
    return np.sum(x) * t


def names_are_set_in_the_test_of_a_loop(x, t):
    k, s = 0, 0.0
    while (k := k + 1) < 4 and (m := np.sum(x * x)) < 3.9:
        x = x * 1.3
        s = s + m
    return s + np.sum(x) * t


def a_list_is_shorter_on_one_side(x, t):
    items = [x[0], x[1]]
    last = items.pop() if t > 0 else items[0] * 3
    return sum(items) * last


def a_report_of_what_is_written(x, t):
    y = x * t
    y.fill(2.0 * t) if t > 0 else None
    return np.sum(y * x)


# -- lists of two lengths ------------------------------------------------------------------------------------

def longer_in_one_arm(x, t):
    e = []
    if t > 0:
        e.append(x[0])
    else:
        e.append(x[1])
        e.append(x[2] * t)
    e += [t * 3]
    e.reverse()
    return e[0] * sum(e) + len(e) * t


def branches_in_branches(x, t):
    p = [x[0] * t]
    if t > 0:
        if x[0] > 5:
            p.append(t)
        p.append(x[1] * p[-1])
    if x[2] > 0.1:
        p.append(t * t)
    q = p.pop(0)
    return np.sum(np.array(p) ** 2) * q


def rows_in_a_loop_and_a_branch(x, t):
    rows = []
    for k in range(3):
        if x[k] > 0.5:
            rows.append(x * t)
    if t > 0:
        rows.append(x)
    return np.sum(np.array(rows)) * t


def a_list_and_another_made_of_it(x, t):
    h = [x[0]]
    for _ in range(3):
        g = h
        h = h + [t * g[-1]]
    return sum(h) * sum(g) * len(g)


def a_list_that_holds_the_list_before(x, t):
    h = [x[0]]
    h = h + [h]
    return h[0] * h[1][0] * t + len(h[1]) * x[1]


def a_list_that_a_function_gives_back(x, t):
    def same(v):
        return v
    h = [x[0]]
    h = h + [same(h)]
    return h[0] * h[1][0] * t + len(h[1]) * x[1]


def a_list_that_an_iterator_shows(x, t):
    items = [x[0], x[1]]
    pairs = zip(items, [t, 2 * t])
    items = items + [t]
    return sum(a * b for a, b in pairs) + sum(items)


def a_list_that_a_loop_goes_through(x, t):
    items = [x[0], x[1]]
    for v in items:
        items = items + [v * t]
    return sum(items) * len(items)


def only_made_longer(x, t):
    h = []
    for v in x:
        h = h + [v * t]
    h = h + [t]
    return np.sum(np.array(h) ** 2)


def stars(x, t):
    rows = [*x, t]
    return rows[0] * rows[-1] * rows[2]


def a_part_and_a_new_value(x, t):
    p = {"w": x, "b": t}
    if t > 0:
        p = {"w": p["w"] * 2, "b": p["b"]}
    return np.sum(p["w"] ** 2) * p["b"]


def a_list_that_may_stay_empty(x, t):
    rows = []
    if t > 0:
        rows.append(x * t)
    a = np.array(rows)
    return np.sum(np.sin(np.sum(a[::1], axis=0))) + np.sum(a) * t


def a_list_that_is_emptied(x, t):
    p = {"w": x, "b": t}
    rows = [p["w"]]
    if t > 0:
        rows = rows + [p["w"] * t]
    first = rows.pop(0)
    return np.sum(rows) * p["b"] + np.sum(first)


# -- names that are dead -------------------------------------------------------------------------------------

def another_kind_in_each_pass(x, t):
    g, s = x, 0.0
    for k in range(x.shape[0]):
        g = x[:, None] * x * t
        s += np.sum(g) * (k + 1)
        g = np.sum(g)
    return s


def another_kind_that_is_read_where_it_was_set(x, t):
    tmp, s, k = 1.0, 0.0, 0
    while k < 3:
        if s > 1.0:
            tmp = [x, t]
            s += tmp[1] * np.sum(tmp[0])
        else:
            tmp = x * t
            s += np.sum(tmp * tmp) + 1
        k += 1
    return s


def an_arm_keeps_what_an_arm_in_it_gives_away(x, t):
    m = x * 3
    if t > -0.5:
        a = x * 2
        b = m if t > 0 else a
    else:
        a, b = x * t, m[::-1]
    b -= x * t
    return np.sum(a * a) + np.sum(m * b)


def made_in_an_arm_and_written_twice(x, t):
    a, b = x * 1.0, x + 1.0
    if t > -0.5:
        c = x * t
        if t > 0:
            a = c
    else:
        c = b
        if t > -0.6:
            a = b[::-1]
    c *= x
    a[1:] = t
    b[0] = c[1] * a[2]
    return np.sum(a * a) + np.sum(c * x) + np.sum(a * b)


def a_test_is_asked_twice(x, t):
    a, d = x * 1.0, x + 1.0
    c = a[::-1] if t > 0 else d * x
    if t > 0:
        d = c
        a[1:] = 3.0
    d += a
    d *= t
    return np.sum(c * a) + np.sum(d * d)


def set_in_one_arm_and_handed_on(x, t):
    b = x * 2
    if t > 0:
        c = x * x
    if t > 0:
        d = c
    else:
        d = x * 3
        c = b[::-1]
    d += b
    b[0] = t
    return np.sum(c * c * x) + np.sum(d * b)


PROGRAMS = [a_view_or_a_new_array, a_view_of_an_argument_or_of_a_copy,
            a_view_of_what_a_helper_has_made_or_not, an_arm_keeps_what_an_arm_in_it_gives_away,
            made_in_an_arm_and_written_twice, a_test_is_asked_twice, set_in_one_arm_and_handed_on,
            two_names_of_two_arrays_in_a_loop,
            a_helper_gives_its_argument_or_not, one_of_three, both_arms_show_one_array,
            written_in_a_branch, written_in_a_while_loop, made_in_one_arm, one_of_many_rows, chosen_in_arms_of_arms,
            parts_of_what_is_chosen, two_names_of_what_is_chosen, places_that_an_arm_makes,
            chosen_in_arms_in_a_loop, chosen_before_a_loop_that_writes, left_in_an_arm, a_conditional_expression_writes,
            a_part_of_a_test_writes, a_name_is_set_on_one_side, a_name_is_set_in_a_part_of_a_test,
            names_are_set_in_the_test_of_a_loop, a_list_is_shorter_on_one_side,
            a_report_of_what_is_written, longer_in_one_arm, branches_in_branches,
            rows_in_a_loop_and_a_branch, a_list_and_another_made_of_it, a_list_that_holds_the_list_before,
            a_list_that_a_function_gives_back, a_list_that_an_iterator_shows,
            a_list_that_a_loop_goes_through, only_made_longer, stars, a_part_and_a_new_value,
            a_list_that_may_stay_empty, a_list_that_is_emptied, another_kind_in_each_pass,
            another_kind_that_is_read_where_it_was_set]


def differences(f, t):
    steps = 1e-6 * np.eye(4)
    return ([(f(X + e, t) - f(X - e, t)) / 2e-6 for e in steps],
            (f(X.copy(), t + 1e-6) - f(X.copy(), t - 1e-6)) / 2e-6)


@pytest.mark.parametrize("t", [0.7, 0.2, -0.3, -0.7])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_and_tangents(f, t):
    want = differences(f, t)
    given = X.copy()
    value, found = gs.value_and_grad(f, (0, 1))(given, t)
    np.testing.assert_allclose(value, f(X.copy(), t), rtol=1e-13)
    np.testing.assert_array_equal(given, X)
    for one, other in zip(found, want):
        np.testing.assert_allclose(one, other, rtol=2e-7, atol=2e-7)
    v = np.array([0.4, -0.1, 0.7, 0.2])
    value, dot = gs.jvp(f, (X.copy(), t), (v, 1.3))
    np.testing.assert_allclose(value, f(X.copy(), t), rtol=1e-13)
    np.testing.assert_allclose(dot, v @ found[0] + 1.3 * found[1], rtol=1e-12)


@pytest.mark.parametrize("f", [a_view_or_a_new_array, one_of_three, a_conditional_expression_writes,
                               longer_in_one_arm, another_kind_in_each_pass])
def test_compiled(f):
    compiled, value = gs.jit(gs.grad(f, (0, 1))), gs.jit(f)
    for t in (0.7, -0.3):
        plain = gs.grad(f, (0, 1))(X, t)
        for one, other in zip(compiled(X, t), plain):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        np.testing.assert_allclose(value(X.copy(), t), f(X.copy(), t), rtol=1e-13)


@pytest.mark.parametrize("f", [a_view_or_a_new_array, a_view_of_an_argument_or_of_a_copy, one_of_three,
                               both_arms_show_one_array, a_conditional_expression_writes])
def test_batches(f):
    xs, ts = np.stack([X, X[::-1], 2 * X]), np.array([0.7, -0.3, 0.2])
    found = gs.vmap(f)(xs, ts)
    np.testing.assert_allclose(found, [f(x.copy(), t) for x, t in zip(xs, ts)], rtol=1e-13)


def test_an_argument_is_written_under_a_test():
    f = gs.jit(a_view_of_an_argument_or_of_a_copy)
    for t in (0.7, -0.7):
        given, want = X.copy(), X.copy()
        assert f(given, t) == pytest.approx(a_view_of_an_argument_or_of_a_copy(want, t), rel=1e-14)
        np.testing.assert_array_equal(given, want)


# -- containers that are arguments ---------------------------------------------------------------------------

def test_a_container_that_is_an_argument_is_changed():
    def f(params, t):
        params["s"] = params["s"] * t
        params.update(w=params["w"] + params["s"])
        layers = params["layers"]
        layers[0] = layers[0] * params["s"]
        layers.append(t * layers[0])
        return np.sum(params["w"] ** 2) * params["s"] + sum(np.sum(v) for v in params["layers"])

    def given(s=0.3, w=(1.0, 2.0), layer=(3.0, 4.0)):
        return {"s": s, "w": np.array(w), "layers": [np.array(layer)]}

    p = given()
    found = gs.grad(f)(p, 0.7)
    assert p["s"] == 0.3 and len(p["layers"]) == 1
    np.testing.assert_allclose(found["s"], (f(given(0.3 + 1e-6), 0.7) - f(given(0.3 - 1e-6), 0.7)) / 2e-6, rtol=1e-8)
    np.testing.assert_allclose(found["w"], [(f(given(w=(1 + d, 2 + e)), 0.7) - f(given(w=(1 - d, 2 - e)), 0.7)) / 2e-6
                                            for d, e in 1e-6 * np.eye(2)], rtol=1e-8)
    np.testing.assert_allclose(found["layers"][0], [0.3 * 0.7 * 1.7] * 2, rtol=1e-14)
    compiled = gs.jit(gs.grad(f))(given(), 0.7)
    np.testing.assert_allclose(compiled["w"], found["w"], rtol=1e-13)
    with pytest.raises(gs.TransformError, match="changing a container that is an argument is not compiled"):
        gs.jit(f)(given(), 0.7)


def test_words_are_the_functions_own():
    def f(*xs, **named):
        named["b"] = 3.0 * xs[0]
        return sum(xs) * named["b"] * named["a"]
    assert gs.grad(f)(1.0, 2.0, a=3.0) == pytest.approx(36.0, rel=1e-14)
    assert gs.jit(f)(1.0, 2.0, a=3.0) == pytest.approx(27.0, rel=1e-14)


# -- a function of the user's with a rule --------------------------------------------------------------------

def first_two_turned(v):
    return v[:2][::-1]


@gs.rule.linear(first_two_turned, "v")
class first_two_turned_rule:
    def vjp_v(dy, v):
        return np.concatenate((dy[::-1], np.zeros_like(v[2:])))


def a_rule_gives_a_view(x, t):
    a = x * 2
    c = first_two_turned(a)
    a[1:] = (t, c[0], t)
    c[0] *= 3 * t
    return np.sum(a * x) + np.sum(c * c)


def a_rule_gives_a_view_in_a_loop(x, t):
    c = first_two_turned(x)
    for k in range(2):
        c[k] = c[k] * t
        x[0] += x[1]
    return np.sum(x * x) * c[1]


@pytest.mark.parametrize("f", [a_rule_gives_a_view, a_rule_gives_a_view_in_a_loop])
def test_writes_through_a_rule_that_gives_a_view(f):
    want = differences(f, 0.7)
    for found in (gs.grad(f, (0, 1))(X.copy(), 0.7), gs.jit(gs.grad(f, (0, 1)))(X.copy(), 0.7)):
        for one, other in zip(found, want):
            np.testing.assert_allclose(one, other, rtol=2e-7, atol=2e-7)


def test_arms_that_say_the_same_are_no_branch():
    def f(x, t):
        buffer = x if t > 1 else x.copy()
        buffer[0] = t
        return np.sum(buffer * x)
    for t in (0.5, 1.5):
        text = gs.grad(f).source_for(X, t)
        assert text.count("return") == 1 and "if test_t:" in text
        steps = 1e-6 * np.eye(4)
        want = [(f(X + e, t) - f(X - e, t)) / 2e-6 for e in steps]
        np.testing.assert_allclose(gs.grad(f)(X, t), want, rtol=1e-8, atol=1e-8)


def swapped_in_an_arm_and_after(x, s):
    b, last = x, x
    while s > 0.2:
        if s > 0.21:
            for _ in range(2):
                b, last = last, b
        if s < 0.8:
            last, b = b, last
        s = s * 0.5
    return np.sum(b) + 0.7 * np.sum(last)


def test_arrays_that_change_places_in_an_arm_and_after_it():
    np.testing.assert_allclose(gs.grad(swapped_in_an_arm_and_after)(X, 1.7), np.full(4, 1.7), rtol=1e-14)
    np.testing.assert_allclose(gs.jit(gs.grad(swapped_in_an_arm_and_after))(X, 1.7), np.full(4, 1.7), rtol=1e-14)
