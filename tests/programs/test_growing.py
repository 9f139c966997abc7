"""Programs with lists whose length is known only when running.

Each is checked against differences: gradient, jvp, second derivative; some compiled; the argument stays as it was.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from programs import checks
from programs.checks import POINTS

import gradscribe as gs


class Series:
    def __init__(self):
        self.items = []
        self.t = 0.0

    def put(self, v):
        self.items.append(v)


# filled


def appended(x):
    out = []
    for v in x:
        out.append(v * v)
    return np.sum(np.array(out) * x)


def appended_in_a_while_loop(x):
    out = []
    i = 0
    while i < len(x):
        out.append(x[i] ** 2)
        i += 1
    return np.sum(np.array(out))


def rows(x):
    rows = []
    for v in x:
        rows.append(v * x)
    A = np.array(rows)
    return np.sum(A * A)


def walked_over(x):
    hist = []
    s = x[0]
    for v in x:
        s = s * 0.5 + v
        hist.append(s)
    t = 0.0
    for h in hist:
        t += h * h
    return t


def indexed_from_both_ends(x):
    hist = [x[0]]
    for k in range(1, len(x)):
        hist.append(hist[-1] * x[k] + hist[k - 1])
    return hist[-1]


def appended_in_one_branch(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v * v)
    return np.sum(np.array(out)) + len(out)


def appended_through_an_alias(x):
    out = []
    b = out
    for v in x:
        out.append(v)
        b.append(v * 2)
    return np.sum(np.array(b) ** 2)


def small_arrays(x):
    out = []
    for v in x:
        buf = np.zeros(2)
        buf[0] = v
        buf[1] = v * v
        out.append(buf)
    return np.sum(np.stack(out) * np.arange(2.0))


def states(x):
    xs = [x]
    for k in range(len(x)):
        xs.append(np.sin(xs[-1]) * x[k])
    return np.sum(xs[-1]) + np.sum(xs[1])


def appended_by_a_helper(x):
    def push(values, v):
        values.append(v)

    out = []
    for v in x:
        push(out, v**3)
    return sum(out) + max(out)


def mean_of_a_list(x):
    out = []
    for v in x:
        if v > 100:
            break
        out.append(v)
        if len(out) > 2:
            break
    return np.mean(out)


def two_lists(x):
    a = []
    b = []
    for i in range(len(x)):
        a.append(x[i])
        b.append(a[i] * 2)
    return np.dot(a, b)


def nested_loops(x):
    ys = []
    zs = []
    for v in x:
        ys.append(v)
        for w in x:
            zs.append(v * w + ys[-1])
    return np.sum(np.array(zs) ** 2)


def list_of_a_list(x):
    out = []
    for v in x:
        tmp = []
        for w in x:
            tmp.append(v * w)
        out.append(sum(tmp))
    return np.sum(np.array(out) * x)


def whole_number_first(x):
    out = [1]
    for v in x:
        out.append(v)
    return np.sum(np.array(out) * 2)


def list_in_a_dictionary(x):
    d = {"values": []}
    for v in x:
        d["values"].append(v * 2)
    return np.sum(np.array(d["values"]) ** 2)


def path(x):
    path = [x[0]]
    while path[-1] < 5 and len(path) < 6:
        path.append(path[-1] * 1.5 + 0.3)
    return path[-1] + path[1]


def appended_in_both_branches(x):
    out = []
    for i, v in enumerate(x):
        if i % 2 == 0:
            out.append(v)
        else:
            out.append(-v * v)
    for o in out[::-1]:  # noqa: B007
        pass
    return np.array(out) @ np.arange(4.0) + o


def exits_and_reversed(x):
    out = []
    k = 0
    while k < 4:
        if x[k] < -100:
            break
        out.append(x[k] ** 2)
        k += 1
        if k == 3:
            continue
    for o in reversed(out):
        if o > 1:
            return o
    return sum(out)


def augmented(x):
    out = []
    for v in x:
        out += [v, v * 2]
    return np.sum(np.array(out) ** 2)


def element_taken_before_a_write(x):
    y = x * 2.0
    out = []
    for k in range(len(x)):
        out.append(y[k])
        y[k] = 0.0
    return np.sum(np.array(out) ** 2)


def no_passes(x):
    out = []
    for v in x[4:]:
        out.append(v)
    return np.sum(np.array(out)) + len(out) + x[0] ** 2


def nothing_appended(x):
    out = []
    for v in x:
        if v > 100:
            out.append(v)
    return sum(out) + x[0] ** 2


def one_pass(x):
    out = []
    for v in x[:1]:
        out.append(v**2)
    return np.array(out)[0] + out[-1] + sum(out)


def zeros_among_numbers(x):
    out = []
    for k in range(len(x)):
        if x[k] > 0:
            out.append(x[k])
        else:
            out.append(0)
    return np.sum(np.array(out) ** 2)


def whole_numbers(x):
    idx = []
    for k in range(len(x)):
        if x[k] > 0:
            idx.append(k)
    s = 0.0
    for k in idx:
        s = s + x[k] ** 2
    return s


def whole_numbers_as_an_index(x):
    idx = []
    for k in range(len(x)):
        if x[k] > 0:
            idx.append(k)
    return np.sum(x[idx] ** 3)


def truth_values(x):
    m = []
    for v in x:
        m.append(v > 0)
    return np.sum(x[np.array(m)] ** 2)


def truth_values_of_a_comprehension(x):
    m = [v > 0.5 for v in x]
    return np.sum(np.where(m, x**2, x))


def four_names_for_a_list(x):
    a = []
    b = a
    d = {"k": a}
    o = Series()
    o.items = a
    for v in x:
        a.append(v)
        b.append(v * v)
        d["k"].append(2 * v)
        o.put(v * 3)
    return np.sum(np.array(o.items) ** 2) * len(b)


def made_anew_in_each_pass(x):
    s = 0.0
    for v in x:
        values = []
        for w in x:
            if w > v:
                values.append(w * v)
        s = s + sum(values) * len(values)
    return s


def history(x):
    h = [x[0]]
    for k in range(1, len(x)):
        h.append(h[k - 1] * x[k] + h[-1])
        if len(h) > 2:
            h.append(h[-2])
    return h[-1] * h[0] + h[len(h) - 2]


def indices_from_the_end(x):
    h = [0.0, x[0]]
    for v in x:
        h.append(h[-1] + h[-2] * v)
    return h[-1] * h[-3]


def branches_of_two_lengths(x):
    h = []
    for v in x:
        if v > 0:
            h.append(v)
        elif v < -0.5:
            h.append(v * 2)
            h.append(v * 3)
        else:
            pass
    return np.sum(np.array(h) ** 2)


# taken from


def stack(x):
    st = []
    for v in x:
        st.append(v * v)
    t = 0.0
    while st:
        t = t * 0.5 + st.pop()
    return t


def stack_with_a_test(x):
    q = [x[0], x[1]]
    t = 0.0
    while len(q) > 0 and t < 50:
        v = q.pop()
        t += v
        if v * v > 0.5:
            q.append(v * 0.5)
    return t * x[0]


def stack_of_arrays(x):
    st = []
    for v in x:
        st.append(v * x)
    t = 0.0
    while st:
        r = st.pop()
        t = t * 0.5 + np.sum(r * r)
    return t


def stack_that_grows_again(x):
    st = []
    for v in x:
        st.append(v)
    s = 0.0
    n = 0
    while st:
        v = st.pop()
        s = s + v * v
        if v > 0.5 and n < 5:
            st.append(v * 0.5)
            st.append(v * 0.25)
            n += 1
    return s


def stack_with_exits(x):
    st = [x[0]]
    s = 0.0
    n = 0
    while st:
        n += 1
        v = st.pop()
        s = s + v * v
        if n > 6:
            break
        if v < -5:
            return s * 2
        st.append(v * 0.9)
        if n == 3:
            continue
        st.append(v * 0.3)
    return s + sum(st)


def stack_in_an_attribute(x):
    o = Series()
    for v in x:
        o.put(v)
        o.t = o.t + o.items[-1]
    while o.items:
        o.t = o.t * 0.9 + o.items.pop()
    return o.t


# read


def rows_walked_over(x):
    rows = []
    for v in x:
        rows.append(v * x)
    rows[0]
    s = 0.0
    for r in rows:
        s += np.sum(r) * r[0]
    return s


def largest_and_smallest(x):
    return max(v * v for v in x) + min([v for v in x]) + sum([v * v for v in x if v > 0], 0.5)


def layers(x):
    ws = [np.sin(v) * x for v in x]
    h = x
    for w in ws:
        h = np.tanh(h * w)
    return np.sum(h)


def counted(x):
    out = []
    for v in x:
        out.append(v * v)
    s = 0.0
    for k, v in enumerate(out):
        s = s + k * v
    for a, b in zip(out, x):
        s = s + a * b
    return s


def side_by_side(x):
    a = []
    b = []
    for v in x:
        a.append(v)
        b.append(v * v)
    return sum(p * q for p, q in zip(a, b))


def backwards(x):
    out = []
    for v in x:
        out.append(v * v)
    s = 0.0
    for v in reversed(out):
        s = s * 0.5 + v
    for v in out[::-1]:
        s = s * 0.5 + v
    for v in out[1:]:
        s = s + v
    return s


def stacked_and_joined(x):
    rows = []
    for k in range(len(x)):
        rows.append(np.sin(x * x[k]))
    M = np.stack(rows)
    return np.trace(M @ M) + np.sum(np.vstack(rows)[0]) + np.sum(np.concatenate(rows))


def copies(x):
    a = []
    for v in x:
        a.append(v)
    b = a.copy()
    c = list(a)
    d = a[:]
    a.append(x[0] ** 2)
    b.append(x[1])
    return sum(a) * sum(b) + sum(c) * len(c) + np.sum(d)


def truth(x):
    a = []
    for v in x:
        a.append(v)
    return x[0] ** 2 if a else x[1]


def two_lists_in_a_dictionary(x):
    d = {"a": [], "b": []}
    for v in x:
        d["a"].append(v)
        d["b"].append(v * v)
    return np.dot(d["a"], d["b"])


def two_breaks(x):
    out = []
    for v in x:
        for w in x:
            if w * v > 0.5:
                break
            out.append(v * w)
        if len(out) > 5:
            break
    return np.sum(np.array(out) ** 2)


def return_from_the_loop(x):
    out = []
    for v in x:
        out.append(v * v)
        if v > 0.75:
            return sum(out) * v
    return np.sum(out)


def gradient_inside(x):
    def g(v):
        values = []
        for w in x:
            values.append(w * v * v)
        return sum(values)

    return gs.grad(g)(x[0]) * x[1]


def list_outside_a_gradient(x):
    values = []
    for w in x:
        values.append(w * w)

    def g(v):
        return v * v * values[0] * len(values)

    return gs.grad(g)(x[1])


def rows_of_a_convolution(x):
    out = []
    for v in x:
        out.append(np.convolve(x, np.array([v, 1.0]))[::2])
    return np.sum(np.array(out) ** 2)


def sums_of_halves(x):
    out = []
    h = len(x) // 2
    for v in x:
        out.append(v * x[:h] + x[h:])
    return np.sum(np.stack(out) ** 2)


def filled_rows(x):
    out = []
    for v in x:
        b = np.zeros(3)
        for k in range(3):
            b[k] = v * k
        out.append(b)
    return np.sum(np.stack(out) ** 2)


def differences_of_states(x):
    out = []
    y = x
    for v in x:
        y = np.tanh(y) * v
        out.append(np.diff(y))
    return np.sum(np.stack(out) ** 2)


# comprehensions


def comprehension(x):
    return np.sum(np.array([v * v for v in x]))


def comprehension_with_a_test(x):
    ys = [v * v for v in x if v > 0]
    return np.sum(np.array(ys)) * len(ys)


def matrix_of_products(x):
    A = np.array([[a * b for a in x] for b in x])
    return np.sum(A[0] * A[1])


def two_generators(x):
    s = np.array([a * b for a in x[:2] for b in x[2:]])
    return np.sum(s)


def stacked_comprehension(x):
    return np.sum(np.stack([x * v for v in x], axis=0)[1])


def squares_of_some(x):
    return np.sum(np.array([v * v for v in x if v > 0]))


def rows_with_a_test(x):
    A = np.array([[v * w for w in x] for v in x])
    B = np.array([[v + w for w in x if w > 0] for v in x])
    return np.sum(A * A) + np.sum(B**2)


def comprehension_in_a_loop(x):
    s = 0.0
    for v in x:
        ys = [w * v for w in x if w * v > 0]
        s = s + sum(ys) ** 2
    return s


def comprehension_of_calls(x):
    fs = np.array([(lambda u: u * v)(v) for v in x])
    return np.sum(fs)


def generators(x):
    return max(v * v for v in x) + sum(v for v in x if v > 0) * min(v for v in x)


def any_of_them(x):
    return x[0] ** 2 if any(v > 1 for v in x) else x[1] ** 2


def all_of_them(x):
    return x[0] ** 2 if all(v > 1 for v in x) else x[1] ** 2


def length_of_a_comprehension(x):
    pos = [v for v in x if v > 0]
    return np.sum(np.array(pos) ** 2) / len(pos)


def method_of_a_list_in_an_attribute(x):
    a = Series()
    add = a.items.append
    for v in x:
        add(v)
    return sum(a.items) ** 2


def method_of_a_list(x):
    values = []
    ap = values.append
    for v in x:
        if v > 0:
            ap(v)
        else:
            values.append(v * v)
    return np.sum(np.array(values) ** 2)


def append_by_a_name(x):
    out = []
    ap = out.append
    for v in x:
        ap(v * v)
    return np.sum(np.array(out))


HELPERS = ()
PROGRAMS = [
    f
    for f in list(globals().values())
    if getattr(f, "__module__", "") == __name__ and hasattr(f, "__code__") and f.__name__ not in HELPERS
]
COMPILED = [
    appended,
    appended_in_a_while_loop,
    walked_over,
    indexed_from_both_ends,
    appended_in_one_branch,
    nested_loops,
    stack_that_grows_again,
    stack_with_exits,
    history,
    comprehension_in_a_loop,
    counted,
    return_from_the_loop,
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


# lists of tuples


class Point(NamedTuple):
    at: float
    height: float


def unzipped(x):
    rows = []
    for v in x:
        rows.append((v, v * v))
    a, b = zip(*rows)
    return np.sum(np.array(b) * np.array(a))


def tuples_of_tuples(x):
    rows = []
    s = 1.0
    for v in x:
        s = s * v
        rows.append((v, (s, v * x)))
    return rows[-1][1][0] + np.sum(rows[1][1][1]) * len(rows)


def tuples_gone_through(x):
    rows = [(x[0], x[1])]
    for v in x:
        rows.append((v, rows[-1][1] * v))
    total = 0.0
    for a, b in rows:
        total = total + a * b
    return total


def tuples_in_one_branch(x):
    rows = []
    for v in x:
        if v > 0:
            rows.append((v, v * v))
    m = np.array(rows)
    return np.sum(m[:, 0] * m[:, 1])


def tuples_from_two_loops(x):
    rows = []
    for v in x:
        for w in x:
            rows.append((v * w, v))
    return sum([a * b for a, b in rows])


def tuples_after_unzipping(x):
    rows = []
    for v in x:
        rows.append((v, v * v))
    a, b = zip(*rows)
    rows.append((10 * x[0], x[1]))
    return np.sum(np.array(b)) * len(a) + len(rows) * rows[-1][0]


def tuples_taken_off(x):
    rows = []
    i = 0
    while i < len(x):
        rows.append((x[i], x[i] ** 3))
        i += 1
    a, b = rows.pop()
    return np.sum(np.array(rows)) + a * b


def named_tuples(x):
    rows = []
    alias = rows
    for v in x:
        alias.append(Point(v, v * v))
    return sum([p.at * p.height for p in rows])


def slices_of_tuples(x):
    rows = []
    for v in x:
        rows.append((v, v * x))
    return sum([a * np.sum(b) for a, b in rows[1:]])


ROWS = [unzipped, tuples_of_tuples, tuples_gone_through, tuples_in_one_branch, tuples_from_two_loops,
        tuples_after_unzipping, tuples_taken_off, named_tuples, slices_of_tuples]


@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.__name__)
def test_tuples(f):
    checks.derivatives(f, POINTS[0])
    checks.second_derivative(f, POINTS[1])


@pytest.mark.slow
@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.__name__)
def test_tuples_compiled(f):
    checks.compiled(f)
    checks.float32(f)


def test_a_list_filled_by_a_counted_loop_is_an_array_when_compiled():
    compiled = gs.jit(gs.grad(unzipped))
    compiled(np.ones(3))
    assert "concatenate" not in compiled.lowered and "append" not in compiled.lowered


# such a list as a result

def norms(rows):
    out = []
    for row in rows:
        out.append(np.sqrt(np.sum(row * row)))
    return out


def positive(x):
    return {"of": [v * v for v in x if v > 0.0], "x": x}


def doubled(rows):
    out = []
    for row in rows:
        out.append(2.0 * row)
    return out, len(out)


def halves(n):
    out = []
    for k in range(n):
        out.append(0.5 * k)
    return out


def running(x):
    out, t = [], 0.0
    for v in x:
        t = t + v * v
        out.append(t)
    return t, out


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for v, w in zip(a, b):
            same(v, w)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    else:
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("f, x", [
    (norms, np.arange(6.0).reshape(3, 2)), (norms, np.ones((0, 2))), (positive, np.array([1.0, -2.0, 3.0])),
    (positive, np.array([-1.0, -2.0])), (positive, np.array([1.0, 2.0], np.float32)),
    (doubled, np.arange(6.0).reshape(3, 2)), (halves, 3), (halves, 0), (running, np.array([1.0, 2.0]))])
def test_a_list_is_a_result(f, x):
    same(gs.jit(f)(x), f(x))


@pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_a_list_comes_with_the_value(wrap):
    x = np.array([1.0, -2.0, 3.0])
    (value, out), d = wrap(gs.value_and_grad(running, has_aux=True))(x)
    assert value == 14.0 and type(out) is list and out == [1.0, 5.0, 14.0] and d.tolist() == [2.0, -4.0, 6.0]
    d, out = wrap(gs.grad(running, has_aux=True))(x)
    assert out == [1.0, 5.0, 14.0] and d.tolist() == [2.0, -4.0, 6.0]

    def again(x):
        (value, out), d = gs.value_and_grad(running, has_aux=True)(x)
        out.append(value)
        return np.sum(np.array(out)) + out[0] + np.sum(d)
    assert wrap(again)(x) == 14.0 + 20.0 + 1.0 + 4.0
    assert wrap(gs.grad(again))(x).tolist() == [12.0, -10.0, 14.0]
    assert gs.eval_shape(norms, np.ones((3, 2))) == [gs.ShapeDtypeStruct((), float)] * 3


def test_a_list_that_is_emptied_does_not_show_the_shape_of_its_elements():
    def last(a, c):
        e = [a]
        while np.sum(c) > 0.21:
            e += [c]
            c = c * 0.5
        q = e.pop()
        return np.sum(q * q)

    def all_of_them(a, c):
        e = [a]
        while np.sum(c) > 0.21:
            e += [c]
            c = c * 0.5
        total = np.zeros(3)
        while e:
            total = total * 0.5 + np.sin(e.pop()[:3])
        return np.sum(total)

    a, c = np.arange(3.0), np.arange(5.0)
    for function in (last, all_of_them):
        for given in ((a, c - 9), (a, c[:3])):
            da, dc = gs.grad(function, (0, 1))(*given)
            for k, found in ((0, da), (1, dc)):
                for i in range(len(given[k])):
                    step = np.eye(len(given[k]))[i] * 1e-6
                    up, down = ([v if n != k else v + sign * step for n, v in enumerate(given)] for sign in (1, -1))
                    np.testing.assert_allclose(found[i], (function(*up) - function(*down)) / 2e-6, rtol=1e-6, atol=1e-9)


def multiples(x, n):
    rows = []
    for k in range(n):
        rows.append(x * k)
    return rows


def two_readers_of_the_array(x, n):
    t = np.array(multiples(x, n))
    return np.sum(t ** 2) + np.sum(t) + np.sum(x)


def array_and_more_rows(x, n):
    rows = multiples(x, n)
    t = np.array(rows)
    s = np.sum(t * np.sin(t))
    rows.append(x)
    return s + np.sum(rows[-1] ** 2) * np.sum(np.exp(t))


def array_and_a_row_before(x, n):
    rows = multiples(x, n)
    t = np.array(rows)
    rows.insert(0, x * 2)
    return np.sum(np.where(t > 0, t, 2 * t)) + np.sum(np.array(rows) ** 2) + np.mean(np.array(rows))


def array_and_rows_taken_off(x, n):
    rows = multiples(x, n)
    t = np.array(rows)
    while len(rows) > 1:
        x = x + rows.pop(0)
    return np.sum(t ** 2) + np.sum(x ** 2) + np.sum(np.abs(t))


@pytest.mark.parametrize("f", [two_readers_of_the_array, array_and_more_rows, array_and_a_row_before,
                               array_and_rows_taken_off], ids=lambda f: f.__name__)
def test_the_array_of_a_list_that_may_be_empty(f):
    """np.array([]) has one axis, whatever the list would hold."""
    x = POINTS[0]
    for n in (3, 0, 1):
        want = checks.differences(partial(f, n=n), x)
        for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
            np.testing.assert_allclose(gradient(x, n), want, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(gs.jvp(partial(f, n=n), (x,), (x,))[1], want @ x, rtol=1e-6, atol=1e-8)


def grown_in_an_inner_loop_or_returned(x, c):
    out, s = [x * 2], 0.0
    for v in c:
        if v > 5:
            return s + np.sum(out)
        s = s + v * np.sum(np.array(out) ** 2) * np.prod(np.array(out))
        if v > 0:
            k = 0
            while k < 3:
                out += [np.tanh(v * x + np.sum(out[-1]))]
                k = k + 1
    return s + np.sum(out[-1]) * np.sum(out)


def grown_in_an_inner_loop(x, c):
    out, s = [x * 2], 0.0
    for v in c:
        s = s + v * np.sum(np.array(out) ** 2) * np.prod(np.array(out))
        for _ in range(2):
            out.append(np.tanh(v * x + np.sum(out[-1])))
    return s + np.sum(out[-1]) * np.sum(out)


def numbers_grown_in_an_inner_loop(x, c):
    out, s = [x[0]], 0.0
    for v in c:
        s = s + v * np.sum(np.array(out) ** 2) * out[-1]
        if v > 0:
            for _ in range(2):
                out.append(np.tanh(v * x[1] + np.sum(out[-1])))
    return s + out[-1] * sum(out)


@pytest.mark.parametrize("c", [(1.0, 2.0), (1.0, -1.0, 2.0, 6.0), (-1.0,)])
@pytest.mark.parametrize("f", [grown_in_an_inner_loop_or_returned, grown_in_an_inner_loop,
                               numbers_grown_in_an_inner_loop], ids=lambda f: f.__name__)
def test_a_list_that_is_saved_and_grows_in_an_inner_loop(f, c):
    """What is saved for the backward sweep is a list of its own."""
    x, c = np.array([0.5, 0.4, 0.3]), np.array(c)
    want = checks.differences(partial(f, c=c), x)
    for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(gradient(x, c), want, rtol=1e-6, atol=1e-6)


def tables_taken_from_the_front(x, y):
    queue = [x[:, None] * np.zeros(1)]
    for _ in range(2):
        queue.append(np.sin(y)[:, None] * y[0])
    s = x
    while len(queue) > 0:
        s = s + np.sin(queue.pop(0))[:, 0]
    if np.sum(s) > 100.0:
        return np.sum(s)
    return np.sum(s * s) + np.sum(queue)


def test_tables_of_which_none_is_left():
    """The adjoint of a list without elements has no shape of theirs."""
    x, y = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.6, 0.1])
    dx, dy = gs.grad(tables_taken_from_the_front, (0, 1))(x, y)
    np.testing.assert_allclose(dx, checks.differences(lambda x: tables_taken_from_the_front(x, y), x), rtol=1e-6)
    np.testing.assert_allclose(dy, checks.differences(lambda y: tables_taken_from_the_front(x, y), y), rtol=1e-6)


def test_a_dict_of_lists_that_a_loop_updates():
    def f(b, params):
        y = dict(params)
        while np.sum(b) > 0.35:
            y.update(scale=b[0])
            y["layers"].append(b * 2)
            b = b * 0.5
        return y["scale"] + sum(np.sum(v) for v in params["layers"])
    db, dp = gs.grad(f, (0, 1))(np.ones(2), {"layers": [np.ones(2), np.ones(2)], "scale": 3.0})
    assert db.tolist() == [3.75, 3.5] and dp["scale"] == 0.0 and [v.tolist() for v in dp["layers"]] == [[1.0, 1.0]] * 2


def test_the_tangent_of_the_sum_of_no_arrays():
    def f(a, b):
        rows = []
        for item in b:
            if item > 0:
                rows = rows + [np.log1p(a ** 2)]
        x = sum(rows)
        return 0.3 * np.sum(x ** 2) + np.sum(a * b[0])

    a = np.array([0.5, 1.5])
    for b in (np.array([-1.0, -2.0]), np.array([1.0, 2.0])):
        value, dot = gs.jvp(f, (a, b), (a, b))
        h = 1e-6
        assert value == f(a, b)
        assert abs(dot - (f(a * (1 + h), b * (1 + h)) - f(a * (1 - h), b * (1 - h))) / (2 * h)) < 1e-8
