"""What one arm of a branch sets, an index too, and later lines read or save under the same test."""
import numpy as np
import pytest

import gradscribe as gs


def row_by_an_index_of_the_arm(x, t):
    y = x * t
    if t > 0:
        k = int(np.floor(t * 4))
        e = y[k]
    else:
        e = y[0]
    y[1] = 5.0 * t
    return np.sum(e * e) + np.sum(y)


def row_or_column(x, t):
    y = x * t
    if t > 0:
        k = int(np.floor(t * 4))
        e = y[k]
    else:
        k = int(np.floor(t * 7)) + 1
        e = y[:, k]
    y[1] = 5.0 * t
    e[0] += 3 * t
    return np.sum(e * e * e) + np.sum(y * y)


def rows_of_an_inner_loop(x, t):
    y = x * t
    for i in range(3):
        if t > 0.2:
            for e in y:
                t = t + np.sum(e) * 0.1
        y[i] = 0.9 * t
    return t


def part_of_a_part(x, t):
    y = x * t
    for j in range(2):
        if t > 0.1:
            k = int(np.floor(t * 2))
            e = y[k:]
            q = e[:, j]
        else:
            q = y[0]
        y[1] += 5.0 * t
        t = t + q[0] * q[1] * 0.01
        q *= t
    return np.sum(q * q) + np.sum(y * y)


def saved_numbers(x, t):
    for _ in range(3):
        if t > 0.1:
            q = np.sin(t * x)
            k = int(np.floor(x[0, 0] * 10)) % 2
        x = x * t
        if t > 0.1:
            x = x * q ** (k + 1)
    return np.sum(x)


def saved_arrays(x, t):
    s = t
    for i in range(3):
        if t > 0.1:
            q = x[i] * s
            r = np.sin(s)
        s = s * 1.1
        if t > 0.1:
            s = s + np.sum(np.sin(q) * q) * r * s
    return s


def an_arm_within_an_arm(x, t):
    s = t
    for i in range(3):
        if t > -1:
            if s > 0.1:
                q = x[i] * s
                k = int(s) % 2
        s = s * 1.1
        if t > -1 and s > 0.11:
            s = s + np.sum(np.sin(q) * q)
        if t > -1:
            if s > 0.12:
                s = s + x[k, 0] * s
    return s


FUNCTIONS = [row_by_an_index_of_the_arm, row_or_column, rows_of_an_inner_loop, part_of_a_part, saved_numbers,
             saved_arrays, an_arm_within_an_arm]


@pytest.mark.parametrize("t", [0.55, -0.2])
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives(f, t, compiled):
    x = np.array([[0.73, -0.4, 1.2], [0.33, 0.8, -0.6], [0.9, 0.2, 0.51]])
    along = np.array([[0.3, -1.1, 0.7], [0.2, 0.6, -0.4], [1.3, 0.1, -0.8]])
    by_x, by_t = ((f(x + a, t + b) - f(x - a, t - b)) / 2e-5 for a, b in ((along * 1e-5, 0), (0 * along, 1e-5)))
    wrap = gs.jit if compiled else lambda f: f
    try:
        dx, dt = wrap(gs.grad(f, (0, 1)))(x, t)
    except gs.TransformError as error:
        assert compiled and f is part_of_a_part and "may have changed" in str(error)
        return
    np.testing.assert_allclose([np.sum(dx * along), dt], [by_x, by_t], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(wrap(lambda x, t: gs.jvp(f, (x, t), (along, 1.0)))(x, t)[1], by_x + by_t, rtol=1e-7)
    dx, dt = gs.jvp(gs.grad(f, (0, 1)), (x, t), (along, 1.0))[1]
    ends = [gs.grad(f, (0, 1))(x + s * along, t + s) for s in (1e-5, -1e-5)]
    for d, a, b in zip((dx, dt), *ends):
        np.testing.assert_allclose(d, (a - b) / 2e-5, rtol=1e-6, atol=1e-7)


def shape_of_what_an_inner_loop_sets(x, t):
    for _ in range(2):
        for row in x:
            y = x * row[0]
        if y.shape[0] > 3:
            continue
        return np.sum(y) * t
    return t


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_length_is_asked_of_what_has_one(rows):
    x = np.arange(1.0, 2 * rows + 1).reshape(rows, 2)
    dx, dt = gs.grad(shape_of_what_an_inner_loop_sets, (0, 1))(x, 2.0)
    if rows < 4:
        expected = 2.0 * np.full_like(x, x[-1, 0])
        expected[-1, 0] += 2.0 * np.sum(x)
        np.testing.assert_allclose(dx, expected)
        assert dt == np.sum(x) * x[-1, 0]
    else:
        assert dt == 1.0 and not dx.any()
