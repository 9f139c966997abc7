"""Loops over few rows whose passes differ in kind, structure or in what shares memory: they are written out.

The version of the function then holds for this number of passes; more passes than a reader may be shown are refused.
"""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, 0.7, 1.1])
GIVEN = [X, np.array([0.2, 0.9, 0.45, 0.65]), X[::-1] * 1.3]           # the second has another number of passes
noted = []


class Counter:
    def __init__(self, t):
        self.t = t


def pairs_in_lists(x):
    pairs = []
    for v in x:
        pairs.append(list((v, v * v)))
    return pairs[0][0] + pairs[-1][1]


def two_dtypes(x):
    out = []
    for v in x:
        out.append(v)
        out.append(np.float32(1.0))
    return out[0] * out[1] + out[4]


def one_row_shown_by_all(x):
    rows, row = [], np.zeros(2)
    for v in x:
        row[0] = v
        rows.append(row)
    return np.sum(np.array(rows))


def kept_in_order(x):
    out = []
    for v in x:
        out.append(v * v + v)
        out.sort()
    return out[0] - 3 * out[1]


def ranks_that_grow(x):
    y = x
    for _ in range(len(x)):
        y = y[:, None] * x
    return np.sum(y)


def list_that_another_name_shows(x):
    h = [0.0]
    for v in x:
        g = h
        h = h + [v * g[0] + v]
    return np.sum(np.array(h))


def numbers_and_arrays(x):
    rows = []
    for v in x:
        rows.append(v)
        rows.append(x)
    return rows[0] + rows[3][1]


def objects_handed_on(x):
    a, b, s = Counter(x[0]), Counter(x[1]), 0.0
    for v in x:
        b.t = b.t + v
        s = s + a.t * v
        b = a
    return s


def identity(x):
    a, s = Counter(x[0]), 0.0
    b = a
    for v in x:
        if a is b:
            s = s + v
        a = Counter(v)
    return s + a.t * x[0]


def taken_off_and_written(x):
    b = x * 2.0
    rows = [b]
    for v in x:
        rows.append(v * x)
    for _ in range(len(x)):
        rows.pop()
    c = rows.pop()
    c[0] = 7.0
    return np.sum(b)


def tuples_of_two_forms(x):
    rows = []
    for v in x:
        rows.append((v, v))
        rows.append((v, v, v))
    return rows[0][0] + rows[3][2] * rows[2][1]


def lengths_in_one_list(x):
    held = [x[1:], x]
    for _ in range(len(x)):
        held.insert(0, x)
    return np.sum(held[0]) + np.sum(held[-2])


def row_of_the_last_pass(x):
    y = np.outer(x, x)
    g, s = y[0], 0.0
    for i in range(len(y)):
        s = 0.7 * np.sum(np.sin(g)) + 0.1 * s
        g = y[i]
    y *= y[1] * 0.5
    return s + np.sum(g * x)


def row_kept_by_a_test(x):
    y = np.outer(x, x)
    p = y[-1]
    for i, row in enumerate(y):
        if i % 2 == 1:
            p = row
        row += p * 0.5
    p *= 2.0
    return np.sum(y * y)


def entries_that_a_pass_writes(x):
    y = x * 1.0
    kept = x[:1]
    for i, v in enumerate(y):
        y[-1] += v
        kept = np.concatenate([kept, y[i:i + 1]])
    return np.sum(kept * kept) + np.sum(y)


def left_early(x):
    kept = x[:1]
    for v in x:
        if v > 0.68:
            break
        kept = np.concatenate([kept, [v * v]])
    return np.sum(kept * 2.0)


def table_of_products(x):
    y = x * 1.0
    for i in range(len(x)):
        y = np.append(y, y[i] * x)
    return np.sum(y * y)


PROGRAMS = [pairs_in_lists, two_dtypes, one_row_shown_by_all, kept_in_order, ranks_that_grow,
            list_that_another_name_shows, numbers_and_arrays, objects_handed_on, identity, taken_off_and_written,
            tuples_of_two_forms, lengths_in_one_list, row_of_the_last_pass, row_kept_by_a_test,
            entries_that_a_pass_writes, left_early, table_of_products]


def differences(f, x):
    """The gradient by central differences: 8 digits."""
    return np.array([(f(x + e) - f(x - e)) / 2e-6 for e in np.eye(len(x)) * 1e-6])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(f):
    df = gs.value_and_grad(f)
    for x in GIVEN:
        value, slope = df(x.copy())
        assert abs(value - f(x)) <= 1e-13 * abs(f(x))
        assert np.max(np.abs(slope - differences(f, x))) < 2e-8 * (1 + np.max(np.abs(slope)))
        v = np.sin(np.arange(len(x)) + 1.0)
        assert abs(gs.jvp(f, (x.copy(),), (v,))[1] - slope @ v) < 1e-13 * (1 + np.sum(np.abs(slope)))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_batch_is_a_loop_over_examples(f):
    rows = np.stack([X, X[::-1] * 1.3, X * 0.5 + 0.03])
    slopes = gs.vmap(gs.grad(f))(rows)
    for k in range(3):
        assert np.max(np.abs(slopes[k] - gs.grad(f)(rows[k]))) < 1e-14 * (1 + np.max(np.abs(slopes[k])))


@pytest.mark.slow
@pytest.mark.parametrize("f", [two_dtypes, one_row_shown_by_all, ranks_that_grow, objects_handed_on,
                               row_kept_by_a_test, entries_that_a_pass_writes, left_early],
                         ids=lambda f: f.__name__)
def test_compiled(f):
    df = gs.jit(gs.value_and_grad(f))
    for x in GIVEN:
        value, slope = df(x.copy())
        assert abs(value - f(x)) <= 1e-13 * abs(f(x))
        assert np.max(np.abs(slope - gs.grad(f)(x))) < 1e-13 * (1 + np.max(np.abs(slope)))


def test_a_side_effect_of_each_pass():
    def f(x):
        for v in x:
            noted.append(v)
        return np.sum(x * x)

    noted.clear()
    assert gs.grad(f)(X).tolist() == (2 * X).tolist() and noted == X.tolist()


def test_nothing_is_gone_over():
    def f(x, y):
        kept = y[:1]
        for v in x:
            kept = np.concatenate([kept, [v * v]])
        return np.sum(kept * 3.0)

    dx, dy = gs.grad(f, (0, 1))(np.zeros(0), X)
    assert dx.shape == (0,) and dy.tolist() == [3.0, 0.0, 0.0]
    dx, dy = gs.grad(f, (0, 1))(X, X)
    assert np.max(np.abs(dx - 6.0 * X)) < 1e-15 and dy.tolist() == [3.0, 0.0, 0.0]


def test_more_passes_than_a_reader_may_be_shown():
    x = np.linspace(0.1, 0.5, 40)
    with pytest.raises(gs.TransformError, match="changes from pass to pass"):
        gs.grad(ranks_that_grow)(x)


def test_loops_in_loops_are_written_out_up_to_a_number_of_copies():
    def f(x):
        y = x
        for _ in range(len(x)):
            for _ in range(len(x)):
                y = y[..., None] * x[:1]
        return np.sum(y)

    assert np.max(np.abs(gs.grad(f)(X) - differences(f, X))) < 1e-8
    with pytest.raises(gs.TransformError):
        gs.grad(f)(np.ones(7))


@pytest.mark.parametrize("x", [np.array([10, 250], np.uint8), np.array([100, -100], np.int8),
                               np.array([True, False])], ids=lambda x: x.dtype.name)
def test_whole_numbers_that_wrap_around_in_the_first_pass(x):
    """The first pass computes with few bits, or with truth values, the others with floating-point numbers."""
    def f(w, x):
        for _ in range(3):
            x = (x + x) * w
        return np.sum(x)

    def by_while(w, x):
        i = 0
        while i < 3:
            x = (x + x) * w
            i += 1
        return np.sum(x)
    value = f(1.5, x)
    assert gs.jit(f)(1.5, x) == value
    assert gs.value_and_grad(f)(1.5, x) == (value, 3 * value / 1.5)
    with pytest.raises(gs.TransformError, match="changes from pass to pass"):
        gs.grad(by_while)(1.5, x)
