"""Functions over a named axis: what they are written as, and where they may stand; tests/oracle compares with JAX."""
import warnings

import numpy as np
import pytest

import gradscribe as gs

X = np.random.default_rng(3).standard_normal((4, 3))


def source(f, *args):
    f(*args)
    return f.source[f.source.index("def "):]


def standardised(x):
    return (x - gs.lax.pmean(x, "batch")) / gs.lax.psum(x * x, "batch")


def test_written_along_the_batch():
    assert source(gs.vmap(standardised, axis_name="batch"), X) == """\
def vmap_standardised(x):
    return (x - np.mean(x, axis=0)) / np.sum(x * x, axis=0)
"""


def shifted(x):
    return gs.lax.ppermute(x ** 2, "i", [(0, 1), (1, 2)]) - x


def test_who_gets_nothing_gets_zeros():
    f = gs.vmap(shifted, axis_name="i")
    want = np.vstack([np.zeros(3), X[0] ** 2, X[1] ** 2, np.zeros(3)]) - X
    np.testing.assert_allclose(f(X), want, rtol=1e-15)
    got = gs.grad(lambda x: np.sum(f(x) * np.arange(12.0).reshape(4, 3)))(X)
    weights = np.arange(12.0).reshape(4, 3)
    sent = np.vstack([weights[1], weights[2], np.zeros(3), np.zeros(3)])
    np.testing.assert_allclose(got, sent * 2 * X - weights, rtol=1e-14)


def own_branch(x):
    y = x * x if x > 0 else -x
    mean = gs.lax.pmean(y, "i")
    return y - mean if x < mean else y * mean


def own_branch_by_hand(x):
    y = np.where(x > 0, x * x, -x)
    return np.where(x < y.mean(), y - y.mean(), y * y.mean())


@pytest.mark.parametrize("strategy", ["auto", "loop"])
def test_between_loops_over_the_examples(strategy):
    """What differs is a loop over the examples; what is over all of them stands between two."""
    f = gs.vmap(own_branch, axis_name="i", strategy=strategy)
    for x in (X[:, 0], X[:1, 1], np.array([-1.9, -0.7, 0.4, 1.3, 2.2, -0.1, 0.05])):
        np.testing.assert_allclose(f(x), own_branch_by_hand(x), rtol=1e-14)
        want = [(np.sum(own_branch_by_hand(x + h)) - np.sum(own_branch_by_hand(x - h))) / 2e-6
                for h in 1e-6 * np.eye(len(x))]
        np.testing.assert_allclose(gs.grad(lambda x: np.sum(f(x)))(x), want, atol=1e-8)


def in_a_loop_of_its_own(x):
    n = 0
    while x < 10.0:
        x = 2 * x + gs.lax.psum(1.0, "i")
        n += 1
    return x + n


def test_not_in_control_flow_that_differs():
    with pytest.raises(gs.LanguageError, match="over the axis 'i' in control flow that differs"):
        gs.vmap(in_a_loop_of_its_own, axis_name="i")(X[:, 0])


def test_in_control_flow_that_is_the_same():
    def repeated(x, n):
        for _ in range(n):
            x = np.sin(x + gs.lax.pmean(x, "i"))
        return x
    want = X
    for _ in range(3):
        want = np.sin(want + want.mean(axis=0))
    for strategy in ("auto", "loop"):
        f = gs.vmap(repeated, in_axes=(0, None), axis_name="i", strategy=strategy)
        np.testing.assert_allclose(f(X, 3), want, rtol=1e-14)


def helper(x):
    return gs.lax.psum(np.sum(x), "i")


def calls(x):
    return helper(x) * helper(2 * x)


def test_in_a_function_that_is_called():
    want = np.full(4, X.sum() * 2 * X.sum())
    np.testing.assert_allclose(gs.vmap(calls, axis_name="i")(X), want, rtol=1e-14)


def test_twice_differentiated():
    f = gs.vmap(standardised, axis_name="batch")
    g, d = gs.grad(lambda x: np.sum(f(x) ** 2)), np.cos(X)
    want = (g(X + 1e-6 * d) - g(X - 1e-6 * d)) / 2e-6
    np.testing.assert_allclose(gs.jvp(g, (X,), (d,))[1], want, atol=1e-7)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(g(x) * d))(X), want, atol=1e-7)


def test_one_example_and_none():
    f = gs.vmap(standardised, axis_name="batch")
    np.testing.assert_array_equal(f(X[:1]), np.zeros((1, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(X[:0]).shape == (0, 3)


def test_single_precision():
    f = gs.vmap(standardised, axis_name="batch")
    assert f(X.astype(np.float32)).dtype == np.float32
    assert gs.vmap(lambda n: gs.lax.psum(n, "i"), axis_name="i")(np.arange(4)).tolist() == [6] * 4
    assert gs.vmap(lambda n: gs.lax.psum(n > 1, "i"), axis_name="i")(np.arange(4)).tolist() == [2] * 4
    assert gs.vmap(lambda n: gs.lax.pmean(n, "i"), axis_name="i")(np.arange(4)).tolist() == [1.5] * 4


def test_alone_there_is_no_axis():
    with pytest.raises(NameError, match="no axis is named 'i'"):
        gs.lax.psum(1.0, "i")


def test_the_nearest_axis_of_a_name_counts():
    def inner(x):
        return gs.lax.psum(x, "i")

    def outer(x):
        return gs.vmap(inner, axis_name="i")(x) + gs.lax.psum(x, "i")
    np.testing.assert_allclose(gs.vmap(outer, axis_name="i")(X), X.sum(1, keepdims=True) + X.sum(0), rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("f, x", [(shifted, X), (own_branch, X[:, 0]), (own_branch, X[:1, 1]), (calls, X)])
@pytest.mark.parametrize("strategy", ["auto", "loop"])
def test_compiled(f, x, strategy):
    f = gs.vmap(f, axis_name="i", strategy=strategy)
    np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(gs.lax.all_gather(x, "i"), 0) * x,
    lambda x: np.sum(gs.lax.all_to_all(np.outer(np.arange(1.0, 3.0), x), "i", 0, 1), 0),
    lambda x: np.sum(gs.lax.psum_scatter(np.outer(np.arange(2.0), x), "i")) * x],
    ids=["all_gather", "all_to_all", "psum_scatter"])
@pytest.mark.parametrize("length", [2, 3])
def test_adjoints_that_are_the_same_along_an_axis(f, length):
    """The adjoint of a sum has fewer axes than what was summed; what is sent back has all of them."""
    x = np.arange(1.0, 1.0 + 2 * length).reshape(2, length)
    inside = gs.vmap(gs.grad(lambda x: np.sum(f(x))), axis_name="i")(x)
    outside = gs.grad(lambda x: np.sum(gs.vmap(f, axis_name="i")(x)))(x)
    np.testing.assert_allclose(inside, outside, rtol=1e-14)
    tangent = gs.vmap(lambda x, dx: gs.jvp(f, (x,), (dx,))[1], axis_name="i")(x, x + 1)
    assert np.sum(tangent) == pytest.approx(np.sum(outside * (x + 1)), rel=1e-14)
