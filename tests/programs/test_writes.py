"""Programs that write into arrays, keep views and leave loops early.

Each is checked against differences: gradient, jvp, second derivative, compiled; the argument stays as it was.
"""

import copy
import math

import numpy as np
import pytest
from programs import checks

import gradscribe as gs

POINTS = [np.array([0.9, 0.3, 0.7]), np.array([0.3, 0.7, 0.9])]


def setter(buf, k, v):
    buf[k] = v
    return buf


def write_element(x):
    y = x * 2
    y[0] = x[1] ** 2
    return np.sum(y * x)


def write_into_zeros_in_a_loop(x):
    y = np.zeros(5)
    for i in range(3):
        y[i] = np.sin(x[i]) * (i + 1)
        y[i + 1] += x[i]
    return np.sum(y**2)


def write_through_a_view(x):
    y = x * 1.0
    v = y[1:]
    v[0] = 3 * x[0]
    w = y.T
    return np.sum(y * x) + np.sum(v**2) + np.sum(w)


def write_recurrence(x):
    y = x * 1.0
    for i in range(1, len(y)):
        y[i] = y[i - 1] * y[i] + 0.1
    return y[-1]


def write_into_the_argument(x):
    x[0] = 0.5
    return np.sum(x**2)


def write_rows_columns_masks_gathers(x):
    y = np.zeros((3, 3))
    y[0] = x
    y[:, 1] += x * x
    y[x > 0.5] = 0.0
    y[np.array([0, 0, 2]), np.array([1, 1, 2])] = x * 3
    return np.sum(y * np.arange(9.0).reshape(3, 3))


def write_in_one_arm(x):
    y = x * 1.0
    if x[0] > 0:
        y[1] = x[0] * 5
    else:
        y = y * 2
    y[0] *= x[2]
    return np.sum(y**2)


def write_rows_walked(x):
    A = np.outer(x, x)
    for row in A:
        row[0] = row[1] * 2
    return np.sum(A * A)


def write_through_an_alias(x):
    y = x * 1.0
    z = y
    for i in range(2):
        z[i] = z[i] * x[2]
    y += x
    return np.sum(y * y) + np.sum(z)


def write_in_a_while_loop(x):
    s = 0.0
    buf = np.empty(3)
    while s < 2:
        buf[:] = x * s
        s = s + np.sum(buf) + 0.3
    return s


def write_by_a_helper(x):
    buf = np.zeros(4)
    for k in range(3):
        setter(buf, k, x[k] ** 2)
    q = setter(buf, 3, x[0])
    return np.sum(q * buf)


def more_nested_loops_and_aliases(x):
    A = np.outer(x, x) + np.eye(3)
    B = A
    for i in range(3):
        for j in range(3):
            A[i, j] = A[i, j] * x[j]
        for k in range(2):
            B[k] += A[i]
    return np.sum(A * B)


def more_rows_of_rows_and_break(x):
    A = np.outer(x, x)
    for row in A:
        for i in range(3):
            row[i] *= 1.1
        if row[0] > 0.3:
            break
    return np.sum(A**2)


def more_stencil(x):
    u = np.zeros(5)
    u[1:4] = x
    for _ in range(4):
        new = u.copy()
        for i in range(1, 4):
            new[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return np.sum(u**2)


def more_two_buffers(x):
    u = np.zeros(5)
    u[1:4] = x
    v = np.empty(5)
    for _ in range(4):
        v[:] = u
        v[1:-1] = u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u, v = v, u
    return np.sum(u**2)


def more_view_in_one_arm(x):
    u = np.zeros(3)
    if x[0] > 0.2:
        v = u[1:]
        v[0] = x[1] ** 2
        u[0] = v[0] * x[2]
    else:
        u[2] = x[0]
    return np.sum(u) * u[1]


def more_copies_in_a_list(x):
    out = []
    buf = np.zeros(3)
    for i in range(3):
        buf[i] = x[i] ** 2
        out.append(buf.copy())
    return np.sum(out[0] * out[2])


def more_one_buffer_in_a_list(x):
    out = []
    buf = np.zeros(3)
    for i in range(3):
        buf[i] = x[i] ** 2
        out.append(buf)
    return np.sum(out[0] * out[2])


def more_swapped_rows(x):
    p = np.array([2, 0, 1])
    A = np.outer(x, x)
    A[[0, 1]] = A[[1, 0]]
    y = A[p]
    y[0] = 5.0
    return np.sum(A * np.arange(9.0).reshape(3, 3)) + np.sum(y * A)


def more_bubble_sort(x):
    y = x.copy()
    for i in range(3):
        for j in range(2 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return np.sum(y * np.array([1.0, 2.0, 4.0]))


def more_in_a_dictionary(x):
    d = {"a": np.zeros(3)}
    d["a"][1] = x[0] ** 2
    e = d["a"]
    e[2] = x[1] ** 3
    return np.sum(d["a"] * x)


def exit_continue(x):
    s = 0.0
    for v in x:
        if v < 0.5:
            continue
        s = s + v * v
    return s


def exit_break(x):
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] ** 2
        if s > 0.4:
            break
        s = s * 1.1
    return s * x[i]


def exit_return(x):
    for v in x:
        if v > 0.6:
            return v**3
    return np.sum(x)


def exit_break_of_while_true(x):
    s = x[0]
    while True:
        s = s * 1.5
        if s > 3:
            break
    return s


def exit_break_and_else(x):
    s = 0.0
    for v in x:
        for w in x:
            if w > v:
                break
            s = s + v * w
        else:
            s = s + 10 * v
    return s


def exit_return_from_two_loops(x):
    for i, v in enumerate(x):
        for w in x[::-1]:
            if v * w > 0.6:
                return v * w * (i + 1)
        if v > 100:
            return v
    return -np.sum(x)


def exit_continue_return_else(x):
    s = x[0]
    n = 0
    while s < 10:
        n += 1
        if n == 2:
            continue
        if n > 5:
            return s * 2
        s = s * (1 + x[1])
    else:
        s = s + 1
    return s


def exit_break_of_a_list(x):
    L = [x[0], x * 2, x[:2]]
    t = 0.0
    for q in L:
        t = t + np.sum(q)
        if t > 1.0:
            break
    return t * t


def exit_break_and_writes(x):
    u = np.zeros(4)
    for i in range(3):
        if x[i] > 0.8:
            break
        u[i + 1] = u[i] + x[i] ** 2
    return np.sum(u)


def last_set_in_some_passes(x):
    for v in x:
        if v > 0.5:
            last = v * v
    return last


def more_sorted_in_place(x):
    y = x.copy()
    y.sort()
    A = np.outer(x, y)
    A.sort(axis=0)
    return np.sum(A * np.arange(9.0).reshape(3, 3)) + np.sum(y * np.array([1.0, 2.0, 4.0]))


def more_filled(x):
    y = np.zeros(3)
    np.copyto(y, x)
    z = y[1:]
    z.fill(x[0] ** 2)
    return np.sum(y * x)


def more_added_at(x):
    y = np.zeros(3)
    np.add.at(y, [0, 0, 1], x**2)
    return np.sum(y * y)


def more_put(x):
    y = np.zeros(3)
    y.put([2, 0], x[:2])
    np.put(y, np.array([1, 1]), x[1:] * 2)
    return np.sum(y * y)


def write_while_a_call_waits(x):
    def helper(v, a):
        if v[0] > 0.5:
            a[0] = 0.7
        return 0.7

    t = 0.0
    y = np.outer(x, x)
    for w in y:
        t = t + np.vdot(w, helper(x, a=y) * x)
    return t * np.sum(y)


def write_in_a_loop_that_may_return(x):
    x[x > 0.8] = 0.7
    y = x * 1.0
    for k in range(2):
        if x[2] > 100:
            return np.sum(x)
        y[k] = 0.5
    return np.sum(y * y) + np.sum(np.sin(x))


def write_through_a_reversed_view_in_a_loop(x):
    a = np.outer(x, x)
    k = 0
    while k < 3:
        k += 1
        for row in a:           # noqa: B007
            pass
        a[::-1][0] = np.sin(row) * k
    return np.sum(a)


def write_behind_an_ellipsis(x):
    a = np.stack([np.outer(x, x), np.outer(x, x * x)])
    for z in a:
        z[..., 1] -= 2 * z[..., 0]
    return np.sum(a * a)


def exit_name_set_in_a_loop_that_may_not_run(x):
    a = np.outer(x, x)
    while 100 < np.sum(a):
        for row in a:
            val = np.zeros_like(row)
    for _, val in enumerate(a):           # noqa: B007
        pass
    return np.sum(val)


def write_whole_array_while_walking_over_it(x):
    y = x * 1.0
    y[0] = 0.5
    for i, v in enumerate(y):
        g = y
        y *= v + i
    return np.sum(g * x)


def write_ahead_of_a_loop_whose_first_pass_is_apart(x):
    y = x * 1.0
    t = 0.0
    for v in y:
        y[1:] *= v
        t += np.ones(3) * v
    return np.sum(t)


def write_ahead_in_branches_of_nested_loops(x):
    y = x * 1.0
    step = 0
    while step < 3:
        t = 0.0
        for v in y:
            if step > 0:
                q = y[:-1]
                y[1:] /= 2.0 + np.cos(q)
            t += np.ones(3) * v
        step += 1
    return np.sum(y) + np.sum(t)


def write_at_a_mask_in_passes_that_are_saved(x):
    y = x * 1.0
    picked = y[np.array([0, 0, 1])]
    k = 0
    while True:
        if k >= 2:
            break
        k += 1
        y[~(y > 0.5)] -= x[0] ** 2
        picked += np.sin(np.logaddexp(y, 1.1))
    return np.sum(np.sin(picked))


PROGRAMS = {name: f for name, f in globals().items() if name.startswith(("write_", "more_", "exit_", "last_"))}


def differences(f, x):
    """Central differences of a number or an array."""
    columns = [(np.asarray(f(x + 1e-6 * v)) - np.asarray(f(x - 1e-6 * v))) / 2e-6 for v in np.eye(x.size)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("point", checks.some_fast(range(len(POINTS)), len(POINTS)))
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name, point):
    f, x = PROGRAMS[name], POINTS[point]
    kept, t = x.copy(), np.array([0.1, 0.2, 0.5])
    want = differences(lambda z: f(z.copy()), x)
    df = gs.grad(f)
    np.testing.assert_allclose(df(x), want, atol=2e-6)
    value, dot = gs.jvp(f, (x,), (t,))
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-13)
    np.testing.assert_allclose(dot, want @ t, atol=5e-6)
    np.testing.assert_allclose(gs.hessian(f)(x), differences(df, x), atol=1e-4)
    assert np.array_equal(x, kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name):
    f = PROGRAMS[name]
    for x in POINTS:
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x.copy()), gs.grad(f)(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_float32(name):
    f, x = PROGRAMS[name], POINTS[0]
    got = gs.grad(f)(x.astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, gs.grad(f)(x), rtol=1e-3, atol=1e-3)


def test_the_last_of_repeated_indices_wins():
    def f(x, i):
        y = np.zeros(3)
        y[i] = x
        return np.sum(y * y)

    x = np.array([1.0, 2.0, 3.0])
    assert gs.grad(f)(x, np.array([1, 1, 0])).tolist() == [0.0, 4.0, 6.0]
    assert gs.grad(f)(x, np.array([2, 2, 2])).tolist() == [0.0, 0.0, 6.0]


def test_a_write_casts_as_numpy_does():
    def f(x):
        y = np.zeros(3, dtype=np.float32)
        y[:] = x
        k = np.zeros(3, dtype=int)
        k[:] = x
        return np.sum(y) + np.sum(k)

    assert gs.grad(f)(np.array([0.5, 1.5, 2.5])).tolist() == [1.0, 1.0, 1.0]


def test_arguments_that_share_memory_are_refused_where_one_is_written():
    def f(x, y):
        x[0] = 0.5
        return np.sum(x**2 * y)

    x = np.array([0.3, 0.7])
    df = gs.grad(f)
    np.testing.assert_allclose(df(x, x.copy()), [0.0, 2 * 0.7 * 0.7])
    for other in (x, x[::-1], x[:1]):
        with pytest.raises(gs.TransformError, match="share memory"):
            df(x, other)


def test_length_zero_and_one():
    def f(x):
        y = np.zeros(len(x) + 1)
        for i in range(len(x)):
            y[i + 1] = y[i] + x[i] ** 2
        y[1:] *= 2
        return np.sum(y)

    for n in (0, 1, 4):
        x = np.linspace(0.1, 0.9, n)
        np.testing.assert_allclose(gs.grad(f)(x), 4 * x * np.arange(n, 0, -1))


def test_copies_are_arrays_of_their_own():
    def f(x):
        a, b, c, d = x.astype(float), np.array(x), x.copy(), +x
        a[0], b[0], c[0], d[0] = 2.0, 3.0, 4.0, 5.0
        return np.sum(x) + np.sum(a * b * c * d)

    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(gs.grad(f)(x), [1, 1 + 4 * 1.5**3])
    np.testing.assert_allclose(gs.hessian(f)(x), [[0, 0], [0, 12 * 1.5**2]])
    np.testing.assert_allclose(gs.jacfwd(gs.grad(f))(x), gs.jacrev(gs.grad(f))(x))


def test_pullbacks_hold_the_values_they_were_made_from():
    def f(x):
        x[0] = 3.0
        return np.sum(x * x)

    x = np.array([0.5, 1.5])
    y, pull = gs.vjp(f, x)
    z, linear = gs.linearize(f, x)
    assert x.tolist() == [0.5, 1.5] and y == z == 9 + 1.5**2
    x[1] = 7.0
    assert pull(1.0)[0].tolist() == [0.0, 3.0] and linear(np.ones(2)) == 3.0


def test_a_row_left_by_a_loop_is_a_view():
    def f(m):
        for r in m:  # noqa: B007
            pass
        r *= 0.5
        return np.sum(m)

    assert gs.grad(f)(np.ones((2, 2))).tolist() == [[1.0, 1.0], [0.5, 0.5]]


def test_a_helper_that_writes_and_returns():
    def half(y):
        y[0] *= 0.5
        return np.sum(y)

    def f(x):
        s = half(x)
        return s + 10 * np.sum(x[::2])

    def g(x):
        y = x * 1.0
        q = y[::2]
        q *= 0.5
        return np.sum(q) + np.sum(y)

    assert gs.grad(f)(np.ones(3)).tolist() == [5.5, 1.0, 11.0]
    assert gs.grad(g)(np.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_second_derivatives_where_a_branch_walks_over_a_list():
    def f(a, b, params):
        if b < 0.6:
            for p in reversed(params):
                a = params[-1][:, None] * p
        return np.sum(a**2)

    df = gs.grad(f, (0, 2))

    def dotted(a, b, params):
        da, dp = df(a, b, params)
        return np.sum(np.sin(da)) + np.sum(np.sin(dp[0]))

    a, p = np.ones((5, 1)), [np.array([0.3])]
    da, dp = gs.grad(dotted, (0, 2))(a, 0.7, p)
    np.testing.assert_allclose(da, np.cos(2 * a) * 2)
    np.testing.assert_array_equal(dp[0], [0.0])
    da, dp = gs.grad(dotted, (0, 2))(a, 0.5, p)
    np.testing.assert_array_equal(da, 0 * a)
    np.testing.assert_allclose(dp[0], 12 * 0.3**2 * np.cos(4 * 0.3**3))     # of sin(4 p**3)


def test_arrays_inside_arguments():
    def shift(params, x):
        for _ in range(2):
            q = params["w"]
            q -= 0.1 * x
        params["b"][0] = x[0] * 2
        return np.sum(params["w"] * x) + np.sum(params["b"] ** 2)

    def scale(params, x):
        for w, b in params:
            w *= 2.0
            b[1] = x[0]
            x = np.tanh(w * x + b)
        return np.sum(x)

    def unpacked(params, x):
        a, b = params
        a[0] = b[0] * 3
        return np.sum(params[0] * b * x)

    x = np.array([0.3, 0.4, 0.5])
    for f, params in ((shift, {"w": np.ones(3), "b": np.arange(3.0)}), (unpacked, (x * 1.0, x * 2.0)),
                      (scale, [(np.ones(3), np.arange(3.0)), (np.ones(3) / 2, np.arange(3.0) / 3)])):
        before = copy.deepcopy(params)
        for df in (gs.grad(f, (0, 1)), gs.jit(gs.grad(f, (0, 1)))):
            got = df(params, x)
            for path, leaf in leaves(params):
                want = np.zeros(3)
                for i in range(3):
                    for sign in (1, -1):
                        moved = copy.deepcopy(params)
                        dict(leaves(moved))[path][i] += sign * 1e-6
                        want[i] += sign * f(moved, x.copy()) / 2e-6
                np.testing.assert_allclose(dict(leaves(got[0]))[path], want, atol=1e-7)
                np.testing.assert_array_equal(leaf, dict(leaves(before))[path])
            np.testing.assert_allclose(got[1], [
                (f(copy.deepcopy(params), x + 1e-6 * e) - f(copy.deepcopy(params), x - 1e-6 * e)) / 2e-6
                for e in np.eye(3)], atol=1e-7)


def leaves(value, path=()):
    if isinstance(value, np.ndarray):
        return [(path, value)]
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for k, v in pairs for found in leaves(v, (*path, k))]


def test_python_numbers_that_loops_save_stay_python_numbers():
    def f(x, c):
        y = x * 1.0
        for i in range(len(y)):
            t = math.tanh(c) * (i + 1)
            y[i] = t * t
        return np.sum(y)

    x, c = np.array([1, 2], np.float32), np.float32(0.5)
    dx, dc = gs.grad(f, (0, 1))(x, c)
    assert dx.dtype == np.float32 and dc.dtype == np.float32
    t = math.tanh(0.5)
    np.testing.assert_allclose(dc, 2 * t * (1 - t * t) * 5, rtol=1e-6)


def test_arrays_saved_in_a_loop_are_kept_after_it():
    def f(x):
        g = np.outer(x, x)
        g[:, -1] = 0.5 * np.sin(x[0])
        x[1] = np.sum(g[:, 1])
        k = 0
        while k < 3:
            k += 1
            g = g - 0.1 * (1.5 + np.sin(x[0])) ** (x[0] * np.ones((3, 3)))
        return np.sum(g * g) + np.sum(np.sin(x))

    df, x, v = gs.grad(f), np.array([0.9, 0.3, 0.7]), np.array([0.3, -0.7, 0.2])
    want = [(df(x + 1e-6 * e) - df(x - 1e-6 * e)) @ v / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(df(x) * v))(x), want, rtol=1e-6)


def test_tangents_of_saved_arrays_are_kept():
    f = write_at_a_mask_in_passes_that_are_saved
    df, x, v = gs.grad(f), np.array([0.9, 0.3, 0.7]), np.array([0.3, -0.7, 0.2])
    want = (df(x + 1e-6 * v) - df(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(gs.jvp(df, (x,), (v,))[1], want, rtol=1e-6)
