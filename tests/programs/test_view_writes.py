"""Writes through views and aliases: values, gradients, tangents and batches, plain and compiled, against NumPy."""
import numpy as np
import pytest
from programs.checks import differences_by_entry

import gradscribe as gs

X = np.arange(6.0).reshape(2, 3) / 4 + 0.2
W = np.arange(6.0).reshape(2, 3)


def einsum_view(x):
    y = x * 1.0
    v = np.einsum("ij->ji", y)
    v[0] = v[1] * 2
    w = v.T
    w[0] = w[0] ** 2
    return np.sum(y * W)


def differences_of_order_zero(x):
    y = x * 1.0
    v = np.diff(y, n=0)
    v[0] = v[1] * 2
    return np.sum(y * W)


def flattened_and_cut_again(x):
    y = np.ravel(x * 1.0)
    z = y.reshape(3, 2)
    z[1] = z[0] * z[2]
    y[0] = 3.0
    return np.sum(z ** 2)


def every_second_backwards(x):
    y = x * 1.0
    v = y[::-1][:, ::2]
    v *= v
    y[0] = v[1, 0]
    return np.sum(v) + np.sum(y)


def unpacked_rows(x):
    y = x * 1.0
    a, b = y
    a[0] = b[1] * a[1]
    b += a
    return np.sum(y ** 2)


def rows_of_a_loop(x):
    y = x * 1.0
    for row in y:
        row *= row[0]
    return np.sum(y)


def deep_in_containers(x):
    y = x * 1.0
    t = (y, [y, {"k": y}])
    t[1][1]["k"][0, 1] = 5.0
    return np.sum(t[0] ** 2)


def real_part_of_real(x):
    y = np.squeeze(x[None] * 1.0)
    y[1] = np.real(y)[0]
    return np.sum(y ** 3)


def broadcast_and_base(x):
    y = x * 1.0
    z = np.broadcast_to(y[0], (2, 3))
    y[0] = y[1]
    return np.sum(z * y)


def asarray_is_the_array(x):
    y = x * 1.0
    z = np.asarray(y)
    z += 1
    return np.sum(y ** 2)


def empty_part(x):
    z = np.concatenate([np.zeros((0, 3)), x])
    z[:0] = 1.0
    return np.sum(z ** 2)


def axes_moved_twice(x):
    y = x * 1.0
    u = np.swapaxes(y, 0, 1)
    u[2, 1] = u[0, 0]
    q = np.moveaxis(u, 0, 1)
    q[0] *= 3
    return np.sum(y ** 2) + np.sum(u)


def by_a_helper_that_returns_it(x):
    y = x * 1.0

    def changed(a):
        a[0] = a[1] * 2
        return a
    z = changed(y)
    z[1] = 1.0
    return np.sum(y ** 2)


def view_made_in_each_pass(x):
    y, s = x * 1.0, 0.0
    for i in range(2):
        v = y[i]
        v[0] = v[1] * v[2]
        s += np.sum(y)
    return s


def bound_anew(x):
    y = x * 1.0
    z = y
    y = y + 1
    z[0] = 2.0
    return np.sum(y * z)


def three_axes_and_turned(x):
    y = np.atleast_3d(x * 1.0)
    y[:, :, 0] *= 2
    z = np.rot90(y)
    z[0] = 0
    return np.sum(y)


def expanded_and_transposed(x):
    y = np.expand_dims(x * 1.0, 1)
    z = y.transpose(2, 0, 1)
    z[1, 1] = z[0, 0] ** 2
    return np.sum(y ** 2)


def flipped_both_ways(x):
    y = x * 1.0
    z = np.flip(y)
    z[0] = z[1]
    w = np.fliplr(y)
    w[:, 0] *= 2
    return np.sum(y * z)


def returned_or_a_copy(x):
    def kept(v, c):
        if c > 0.5:
            return v
        return v * 1.0
    y = x * 1.0
    b = kept(y, np.sum(x))
    b[0] = y[1]
    return np.sum(y * W) + np.sum(b ** 2)


FUNCTIONS = [f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__]


def differences(f, x):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = 1e-6
        out[i] = (f(x + e) - f(x - e)) / 2e-6
    return out


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_all_modes(f):
    given = X.copy()
    value, want, both = f(X.copy()), differences(f, X), np.stack([X, X / 2])
    for g in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
        got, found = g(given)
        np.testing.assert_allclose(got, value, rtol=1e-13)
        np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gs.jvp(f, (given,), (W,))[1], np.sum(want * W), rtol=1e-7)
    np.testing.assert_allclose(gs.vmap(f)(both), [f(both[0].copy()), f(both[1].copy())], rtol=1e-13)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(both)[0], want, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(given, X)


# --- functions that bring their own derivative ------------------------------------------------------------------------

@gs.custom_vjp
def same(x):
    return x


same.defvjp(lambda x: (x, None), lambda kept, dy: (dy,))


@gs.custom_jvp
def first(x):
    return x[:1]


first.defjvp(lambda p, t: (p[0][:1], t[0][:1]))


@gs.custom_vjp
def doubled(x):
    return x * 2.0


doubled.defvjp(lambda x: (x * 2.0, None), lambda kept, dy: (2.0 * dy,))


def rest(x):
    return x[1:]


@gs.rule.linear(rest, "x")
class rest_rule:
    def vjp_x(dy):
        return np.concatenate((np.zeros(1), dy))


@pytest.mark.parametrize("own", [same, first])
def test_what_may_be_the_argument_is_not_written_unseen(own):
    def written(x):
        z = x[0] * 1.0
        own(z)[:] = 0.0
        y = own(z)
        y[0] = 0.0
        return np.sum(z)

    def base_written(x):
        z = x[0] * 1.0
        y = own(z)
        z[1] = 0.0
        return np.sum(y)
    for f in (written, base_written):
        for transform in (gs.grad, gs.jit, gs.vmap):
            with pytest.raises(gs.TransformError, match="may have changed"):
                transform(f)(X[None] if transform is gs.vmap else X)


def test_a_rules_function_that_gives_a_view_is_written_through():
    def written(x):
        z = x[0] * 1.0
        rest(z)[:] = 0.0
        y = rest(z)
        y[0] = 3.0 * z[0]
        return np.sum(z)

    def base_written(x):
        z = x[0] * 1.0
        y = rest(z)
        z[1] = 0.0
        return np.sum(y)
    for f, want in ((written, [4, 0, 0]), (base_written, [0, 0, 1])):
        assert gs.jit(f)(X) == pytest.approx(f(X), rel=1e-14)
        np.testing.assert_allclose(gs.vmap(f)(X[None]), [f(X)], rtol=1e-14)
        np.testing.assert_allclose(gs.grad(f)(X)[0], want, rtol=1e-14)


def test_what_is_certainly_new_is_written():
    def f(x):
        z = x[0] * 1.0
        y = doubled(z)
        y[0] = 0.0
        return np.sum(z) + np.sum(y ** 2)
    value, found = gs.value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(gs.jit(f)(X), value, rtol=1e-14)
    np.testing.assert_allclose(found[0], 1 + 8 * X[0] * [0, 1, 1], rtol=1e-14)


@pytest.mark.parametrize("shape", [(1, 3), (1, 1), (1, 1, 3), (1,), (3,)])
@pytest.mark.parametrize("index", [slice(None), Ellipsis, np.array([0, 1, 2]), slice(None, None, -1)])
def test_a_value_with_axes_of_length_one_before_the_others(shape, index):
    weights = np.array([1.0, 2.0, 3.0])

    def f(m):
        a = np.zeros((2, 3))
        a[1] = m * 2
        b = a[0]
        b[index] = m
        return np.sum(a * weights)
    m = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    want = np.zeros(shape)
    for place in np.ndindex(shape):
        step = np.zeros(shape)
        step[place] = 0.5
        want[place] = f(m + step) - f(m - step)
    for found in (gs.grad(f)(m), gs.jit(gs.grad(f))(m)):
        assert found.shape == shape
        np.testing.assert_allclose(found, want, rtol=1e-13)
    np.testing.assert_allclose(gs.jvp(f, (m,), (m,))[1], np.sum(want * m), rtol=1e-13)


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
def test_trim_zeros_gives_a_view(trim):
    def f(x):
        y = x * 1
        s = np.trim_zeros(y, trim)
        s *= 2
        y[1] += 1
        return np.sum(y**2) + np.sum(s)

    x = np.array([0.0, 1.0, 2.0, 0.0])
    def plain(v):
        return f(np.where(x == 0, 0, v))

    want = differences(plain, x)
    for wrap in (lambda g: g, gs.jit):
        value, got = wrap(gs.value_and_grad(f))(x)
        assert value == f(x)
        np.testing.assert_allclose(got[x != 0], want[x != 0], rtol=1e-6)


def turned_under_a_test(b, n):
    while n > 0.5 and np.sum(b) < 100.0:
        y = b.T
        y[1] = 0.7 * y[0]
        if np.sum(y) > 0.21:
            y /= 1.5
        n = n - 1
    return np.sum(b ** 3)


@pytest.mark.parametrize("x", [X[0], X, X[None]], ids=["one axis", "two axes", "three axes"])
def test_a_while_loop_carries_a_view_through_two_derivatives(x):
    f = turned_under_a_test if x.ndim > 1 else lambda b, n: turned_under_a_test(np.stack([b, b]), n)

    def h(x):
        return np.sum(np.sin(gs.grad(f)(x, 2.0)))

    np.testing.assert_allclose(gs.grad(h)(x.copy()), differences_by_entry(lambda x: h(x.copy()), x), atol=1e-7)
    dot = gs.jvp(gs.grad(f), (x.copy(), 2.0), (x.copy(), 0.0))[1]
    step = 1e-6 * x
    np.testing.assert_allclose(dot, (gs.grad(f)(x + step, 2.0) - gs.grad(f)(x - step, 2.0)) / 2e-6, atol=1e-7)
