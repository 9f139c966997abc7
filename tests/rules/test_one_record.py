"""All that a new rule needs stands in one record: derivatives, the form for a batch, the form in compiled code."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES, elementwise
from gradscribe.runtime import compiled

rng = np.random.default_rng(0)


def softplus(x):
    return np.logaddexp(0, x)


@gs.rule.elementwise(softplus, fresh=True, raises=False,
                     samples=lambda rng: [((rng.normal(size=3),), {}), ((0.5,), {})])
class softplus_rule:
    def partial_x(x):
        return 1 / (1 + np.exp(-x))

    def batch(x, batched):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def scalar(x):
        if isinstance(x, np.float32):
            return compiled.maximum(x, 0) + np.log(1 + np.exp(-np.abs(x)))
        return compiled.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def spread(x, axis=None):
    """The largest less the smallest."""
    return np.max(x, axis=axis) - np.min(x, axis=axis)


@gs.rule.general(spread, "x", fresh=True, samples=lambda rng: [((rng.normal(size=(3, 4)),), {"axis": 1})])
class spread_rule:
    def primal(x, axis=None):
        return spread(x, axis=axis)

    def vjp_x(dy, x, axis=None):
        if axis is None:
            return dy * ((x == np.max(x)) * 1.0 - (x == np.min(x)))
        high, low = np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True)
        return np.expand_dims(dy, axis) * ((x == high) * 1.0 - (x == low))

    def jvp_x(x_dot, x, axis=None):
        if axis is None:
            return np.sum(x_dot * ((x == np.max(x)) * 1.0 - (x == np.min(x))))
        high, low = np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True)
        return np.sum(x_dot * ((x == high) * 1.0 - (x == low)), axis=axis)

    def batch(x, batched, axis=None):
        if axis is None:
            return np.ptp(np.reshape(x, (x.shape[0], -1)), axis=1)
        return np.ptp(x, axis=axis + 1)

    def compiled(x, axis=None):
        return -(np.min(x, axis=axis) - np.max(x, axis=axis))


def energy(x, w):
    return np.sum(w * softplus(x))


X, W = rng.normal(size=5) * 3, rng.normal(size=5)
SIGMOID = 1 / (1 + np.exp(-X))


def test_values_of_a_function_of_each_entry():
    value = np.sum(W * np.log1p(np.exp(X)))
    for f in (energy, gs.jit(energy)):
        assert np.isclose(f(X, W), value, rtol=1e-13)
    for g in (gs.grad(energy), gs.jit(gs.grad(energy))):
        assert np.allclose(g(X, W), W * SIGMOID, rtol=1e-13)
    found, tangent = gs.jvp(energy, (X, W), (np.ones(5), np.zeros(5)))
    assert np.isclose(found, value) and np.isclose(tangent, np.sum(W * SIGMOID))
    rows = np.stack([X, 2 * X])
    for f in (gs.vmap(energy, in_axes=(0, None)), gs.jit(gs.vmap(energy, in_axes=(0, None)))):
        assert np.allclose(f(rows, W), [energy(row, W) for row in rows])


def test_parts_in_emitted_text():
    assert "w / (1 + np.exp(-x))" in gs.grad(energy).source_for(X, W)
    batched = gs.vmap(energy, in_axes=(0, None)).source_for(np.stack([X, X]), W)
    assert "np.log1p(np.exp(-np.absolute(x)))" in batched and "softplus" not in batched


def test_scalar_form_in_compiled_text():
    made = gs.jit(energy)
    made(X, W)
    assert "maximum(x[i], 0.0) + log1p(exp(-abs(x[i])))" in made.lowered
    small = gs.jit(lambda x: softplus(x))
    assert small(np.float32(1.5)).dtype == np.float32
    assert "np.log(" in small.lowered


def test_values_of_a_reduction():
    x = rng.normal(size=(3, 4))
    for axis in (None, 1):
        def f(x, axis=axis):
            return np.sum(spread(x, axis=axis) ** 2)
        wanted = np.sum(np.ptp(x, axis=axis) ** 2)
        assert np.isclose(f(x), wanted) and np.isclose(gs.jit(f)(x), wanted)
        gradient = gs.grad(f)(x)
        assert np.allclose(gs.jit(gs.grad(f))(x), gradient)
        assert np.isclose(gs.jvp(f, (x,), (x,))[1], np.sum(gradient * x))
        stack = np.stack([x, 2 * x])
        assert np.allclose(gs.vmap(f)(stack), [f(x), f(2 * x)])
        assert np.allclose(gs.jit(gs.vmap(gs.grad(f)))(stack), [gradient, gs.grad(f)(2 * x)])
    assert "np.ptp" not in gs.vmap(lambda x: spread(x, axis=0)).source_for(stack)      # which is rewritten


def test_compiled_part_in_compiled_text():
    def f(x):
        return spread(x)
    x = rng.normal(size=6)
    made = gs.jit(f)
    assert np.isclose(made(x), np.ptp(x))
    assert "min" in made.lowered and " - max" in made.lowered


@pytest.mark.parametrize("function", [softplus, spread])
def test_rule_holds(function):
    assert gs.rule.check(function, compiled=True) > 10


def test_record_in_a_table():
    """The table's own decorator takes the same parts."""
    halves = np.frompyfunc(lambda x: x / 2, 1, 1)

    @elementwise(halves)
    class halved:
        def partial_x():
            return 0.5

        def scalar(x):
            return x / 2
    try:
        assert RULES[halves].parts["scalar"](3.0) == 1.5
    finally:
        del RULES[halves]
