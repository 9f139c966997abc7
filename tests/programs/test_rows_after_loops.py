"""Names that show a row, a column or an entry's neighbours when the last pass of a loop ends, and are used after it."""
import numpy as np
import pytest
from programs.checks import differences_by_entry

import gradscribe as gs


def row_and_array(x):
    for row in x:
        s = row[0]
    row[1] *= 2.0
    x[-1] *= 3.0
    return np.sum(x * x) + np.sum(row) * s


def a_name_from_before(x):
    h = x[0] * 2
    for i, h in enumerate(x):      # noqa: B007  (it is read after the loop)
        x[i] *= 0.5
    x[:, 0] += h
    h[0] = 4.0
    return np.sum(x * x) + np.sum(h ** 3)


def column_of_an_inner_loop(x):
    for i in range(len(x)):
        for j in range(x.shape[1]):
            c = x[:, j]
        w = x[i]
        w[0] = c[1] * w[1]
    c += w
    x[0, 0] = w[1]
    return np.sum(x ** 3) + np.sum(c * w)


def indices_that_are_computed(x):
    y = x * 1.0
    for i in range(40):
        k = i % 3
        a, b = y[k], y[k - 1]
        a -= b * 0.3
    y[1] *= 2.0
    a[0] = 2.0
    return np.sum(y ** 2) + np.sum(a * b)


def arrays_exchanged(x):
    y, z = x * 1.0, x * 2.0
    for i in range(40):
        k = i % 3
        a = y[k]
        z[k] = np.sin(z[k] + a)
        y, z = z, y
    a[0] = 2.0
    return np.sum(y ** 2) + np.sum(a * z)


def in_a_list_before_it_is_set(x):
    box, row = [x, x], x[2]
    for _ in x:
        box[1] = row
        row = x[0]
    return np.sum(box[1]) * row[1]


def two_rows(x):
    for i, (g, w) in enumerate(zip(x, x[::-1])):
        g = g * 0.5 + w
        x[i] = g
    w[0] *= 2.0
    return np.sum(g * x) + np.sum(w * w)


def of_a_transpose(x):
    t = x.T
    for i in range(len(x)):
        h = t[i]
        t[i] *= 0.5
    h[0] = 3.0
    return np.sum(x ** 2) + np.sum(h)


def changed_by_an_inner_loop(x):
    for i in range(len(x)):
        for h in x:
            h *= 0.9
        h[i] = 2.0 * h[1]
    x[0] += h
    return np.sum(x ** 2) + np.sum(h ** 3)


def of_two_loops(x):
    for h in x[1:]:
        h *= 0.5
    for g in x[:-1]:
        g += h
    x[1] *= g
    return np.sum(x ** 2) + np.sum(h * g)


def passes_cut_short(x):
    for i in range(len(x)):
        h = x[i]
        if h[0] > 0.5:
            continue
        h *= 0.5
    h[0] = 2.0
    return np.sum(x ** 2) + np.sum(h ** 3)


def halved(x):
    for r in x:
        r *= 0.5
    return r


def by_a_helper(x):
    y = x * 2
    h = halved(y)
    h[0] = 3.0
    return np.sum(y ** 2) + np.sum(h * x)


def of_an_array_of_before(x):
    z = x * 1.0
    for i in range(len(x)):
        h = z[i]
        z = z * 0.5
        h[0] = 7.0
    return np.sum(z ** 2) + np.sum(h * x)


FUNCTIONS = [row_and_array, a_name_from_before, column_of_an_inner_loop, indices_that_are_computed, arrays_exchanged,
             two_rows, in_a_list_before_it_is_set,
             of_a_transpose, changed_by_an_inner_loop, of_two_loops, passes_cut_short, by_a_helper,
             of_an_array_of_before]
X = np.array([[1.1, 0.4, -0.3], [0.7, 0.9, 0.2], [-0.4, 0.6, 0.8]])


def by_complex_step(f, x):
    return np.array([f(x + 1e-30j * e.reshape(x.shape)).imag * 1e30 for e in np.eye(x.size)]).reshape(x.shape)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients(f):
    expected = by_complex_step(f, X)
    np.testing.assert_allclose(gs.grad(f)(X.copy()), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X.copy()), expected, rtol=1e-12, atol=1e-13)
    v = np.cos(np.arange(9.0)).reshape(3, 3)
    np.testing.assert_allclose(gs.jvp(f, (X.copy(),), (v,))[1], np.sum(expected * v), rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(f)(np.stack([X, X[::-1]])), [f(X.copy()), f(X[::-1].copy())], rtol=1e-12)


def test_a_longer_call_and_one_without_passes():
    d = gs.grad(row_and_array)
    d(X.copy())
    longer = np.concatenate([X, X * 0.7])
    np.testing.assert_allclose(d(longer.copy()), by_complex_step(row_and_array, longer), rtol=1e-12)
    with pytest.raises((gs.TransformError, UnboundLocalError)):
        d(np.zeros((0, 3)))


def item_of_a_list(x):
    box = [x[0]]
    for i in range(len(x)):
        box[0] = x[i]
        box[0][:] *= 2.0
    box[0][1] = 5.0
    return np.sum(x ** 2) + np.sum(box[0])


def item_of_a_dict(x):
    box = {"h": x[0]}
    for i in range(len(x)):
        box["h"] = x[i]
        g = box["h"]
        g *= 2.0
    g[1] = 5.0
    return np.sum(x ** 2) + np.sum(box["h"] * g)


@pytest.mark.parametrize("f", [item_of_a_list, item_of_a_dict])
def test_an_item_that_shows_another_row_in_each_pass(f):
    """It was taken for the row that it showed before the loop, since that is one of the same array."""
    np.testing.assert_allclose(gs.grad(f)(X.copy()), by_complex_step(f, X), rtol=1e-12)
    with pytest.raises(gs.TransformError, match="changes its kind"):            # too many passes to be written out
        gs.grad(f)(np.ones((40, 3)))


def test_an_array_of_a_list_after_the_loop():
    def f(x, params):
        for p in params:
            x = x * p
        return np.sum(p * x)
    x, params = np.array([1.0, 2.0]), [np.array([3.0, 4.0]), np.array([5.0, 6.0])]
    dx, (first, last) = gs.grad(f, (0, 1))(x, params)
    np.testing.assert_allclose(dx, [75.0, 144.0])
    np.testing.assert_allclose(first, [25.0, 72.0])
    np.testing.assert_allclose(last, [30.0, 96.0])


def the_row_before(x):
    a = x[0] * 2.0
    for row in x:
        before = a
        a = row
    return np.sum(before ** 2)


def the_row_before_exchanged(x):
    a = x[-1] * 2.0
    for u in x:
        u, a = a, u             # noqa: PLW2901  (the loop's target is what is tested)
    return np.sum(u ** 2)


def the_row_before_by_an_index(x):
    a = x[-1] * 2.0
    for i in range(len(x)):
        u, v = a, [a]
        a = x[i]
    return np.sum(u ** 2 * v[0])


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("f", [the_row_before, the_row_before_exchanged, the_row_before_by_an_index])
def test_what_a_name_held_when_the_last_pass_began(f, rows):
    """Another name has it after the loop: it is no view of what the loop leaves."""
    expected = by_complex_step(f, X[:rows])
    np.testing.assert_allclose(gs.grad(f)(X[:rows]), expected, rtol=1e-12)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X[:rows]), expected, rtol=1e-12)
    np.testing.assert_allclose(gs.jvp(f, (X[:rows],), (X[:rows],))[1], np.sum(expected * X[:rows]), rtol=1e-12)


def kept_in_one_arm(b):
    for row in b:
        if b[0, 0] > 0.02:
            row[0] = 0.7
            return np.sum(np.sin(b))
        row *= 2.0
    return 0.7 * np.sum(b)


@pytest.mark.parametrize("first", [-0.2, 0.3, 0.015])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_one_arm_has_put_away_is_not_written_in_another(first, compiled):
    b = np.array([[first, 0.4], [0.6, -0.3], [0.1, 0.9]])
    made = gs.grad(kept_in_one_arm)
    got = (gs.jit(made) if compiled else made)(b.copy())
    want = differences_by_entry(kept_in_one_arm, b)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
