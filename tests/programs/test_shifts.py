"""The shift in log-sum-exp and in softmax has no adjoint and no tangent: its terms sum to zero, which is proved."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(3)
X = rng.normal(size=(4, 5))
W = rng.normal(size=(4, 5))


def log_sum_exp(x):
    top = np.max(x, axis=1, keepdims=True)
    return np.sum(top[:, 0] + np.log(np.sum(np.exp(x - top), axis=1)))


def along_the_first(x):
    top = np.max(x, axis=0)
    return np.sum(np.sin(top + np.log(np.sum(np.exp(x - top), axis=0))))


def of_all(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def with_a_new_axis(x):
    top = np.max(x, axis=1)
    return np.sum((top + np.log(np.sum(np.exp(x - top[:, None]), axis=1))) ** 2)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum(W * (e / np.sum(e, axis=1, keepdims=True)))


def cross_entropy(x):
    z = x - np.max(x, axis=1, keepdims=True)
    return -np.mean(np.sum(W * (z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))), axis=1))


def twice(x):
    """The same shift in two places."""
    top = np.max(x)
    return (top + np.log(np.sum(np.exp(x - top)))) * 2 + np.log(np.sum(np.exp(x - top))) + top


def scaled(x):
    n = x.shape[0]
    top = np.max(x)
    return -n * (top + np.log(np.sum(np.exp(x - top))))


def in_a_loop(x):
    s = 0.0
    for i in range(x.shape[0]):
        top = np.max(x[i])
        s += top + np.log(np.sum(np.exp(x[i] - top)))
    return s


SHIFTED = [log_sum_exp, along_the_first, of_all, with_a_new_axis, softmax, cross_entropy, twice, scaled, in_a_loop]


def smaller_shift(x):
    """Not the maximum of what it is taken from: that the terms sum to zero does not ask what the shift is."""
    shift = np.mean(x ** 2)
    return shift + np.log(np.sum(np.exp(x - shift)))


def half_a_shift(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - 0.5 * top)))


def other_weights(x):
    top = np.max(x)
    return top + np.log(np.sum(W * W * np.exp(x - top)))


def not_the_sum(x):
    """The logarithm of another number than the sum."""
    top = np.max(x)
    e = np.exp(x - top)
    return top + np.sum(e) / (1.0 + np.sum(e))


def differences(f, x):
    out = np.empty_like(x)
    for k in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[k] = 1e-6
        out[k] = (f(x + e) - f(x - e)) / 2e-6
    return out


@pytest.mark.parametrize("f", [*SHIFTED, smaller_shift, half_a_shift, other_weights, not_the_sum])
def test_values(f):
    want = differences(f, X)
    found = gs.grad(f)(X)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)
    v = np.cos(np.arange(20.0)).reshape(4, 5)
    np.testing.assert_allclose(gs.jvp(f, (X,), (v,))[1], np.sum(found * v), rtol=1e-10)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(np.stack([X, 2 * X]))[1], gs.grad(f)(2 * X), rtol=1e-12)
    second = gs.jvp(gs.grad(f), (X,), (v,))[1]
    moved = (gs.grad(f)(X + 1e-6 * v) - gs.grad(f)(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(second, moved, rtol=1e-5, atol=1e-6)
    single = gs.grad(f)(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("f", [log_sum_exp, softmax, cross_entropy, with_a_new_axis, in_a_loop, half_a_shift])
def test_compiled(f):
    np.testing.assert_allclose(gs.jit(gs.grad(f))(X), gs.grad(f)(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", SHIFTED)
def test_sources(f):
    """No maximum is looked for among the entries, where its adjoint would go."""
    assert "==" not in gs.grad(f).source_for(X)


@pytest.mark.parametrize("f", [log_sum_exp, of_all, twice])
def test_tangents(f):
    assert "top_dot" not in gs.jvp_of(f).source_for(X, X)


def test_what_keeps_its_shift():
    assert "==" in gs.grad(half_a_shift).source_for(X) and "==" in gs.grad(not_the_sum).source_for(X)


def test_ties():
    x = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
    soft = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    np.testing.assert_allclose(gs.grad(log_sum_exp)(x), soft, rtol=1e-14)


def test_what_is_no_number():
    x = np.array([[0.0, -np.inf, 1.0], [np.nan, 0.0, 1.0], [np.inf, 0.0, 1.0]])
    with np.errstate(all="ignore"):
        found = gs.grad(log_sum_exp)(x)
    np.testing.assert_allclose(found[0], [1 / (1 + np.e), 0, np.e / (1 + np.e)], rtol=1e-14)
    assert np.all(np.isnan(found[1])) and np.isnan(found[2]).any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 4)])
def test_axes_of_length_one(shape):
    x = rng.normal(size=shape)
    np.testing.assert_allclose(gs.grad(log_sum_exp)(x), differences(log_sum_exp, x), rtol=1e-6, atol=1e-8)
