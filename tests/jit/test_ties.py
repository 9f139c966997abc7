"""Entries equal to the largest, where a backward loop computes again what they were looked for in.

Compiled code divides by a number that is used twice as a product with its reciprocal, so what is computed again may
differ in its last bit: the largest must be looked for again too, or none is found (a gradient of NaN).
"""
import inspect

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))


def bent(x):
    return np.tanh(x) * x / (1 + x**2)


def shares(x):
    y = bent(x)
    return y / np.sum(y)


REDUCED = {
    "max": np.max, "min": np.min, "ptp": np.ptp, "median": np.median, "nanmax": np.nanmax, "nanmin": np.nanmin,
    "norm": lambda v: np.linalg.norm(v, ord=np.inf), "maximum.reduce": np.maximum.reduce,
    "columns": lambda v: np.linalg.norm(np.outer(v, v), ord=1),
    "rows": lambda v: np.linalg.norm(np.outer(v, v), np.inf),
    "some": lambda v: np.max(v, where=v > 0, initial=-5.0), "of Python": lambda v: max(v[0], v[1], v[2]),
    "softmax": lambda v: np.sum((np.exp(v - np.max(v)) / np.sum(np.exp(v - np.max(v))))**2),
    "three largest": lambda v: np.sum(np.where(v >= np.sort(v)[-3], v * v, 0.0)),
    "the largest": lambda v: np.sum((v == np.sort(v)[-1]) * v * v),
}


def counted(reduced):
    def loss(x):
        total = 0.0
        for i in range(x.shape[0]):
            total = total + reduced(shares(x[i])) * (i + 1)
        return total
    return loss


def until(reduced):
    def loss(x):
        total, i = 0.0, 0
        while i < x.shape[0]:
            total = total + reduced(shares(x[i])) * (i + 1)
            i += 1
        return total
    return loss


def either(reduced):
    def loss(x):
        total = 0.0
        for i in range(x.shape[0]):
            y = bent(x[i])
            if y[0] > 0.2:
                z = y / np.sum(y)
            else:
                z = y / np.sum(y * y)
            total = total + reduced(z) * (i + 1)
        return total
    return loss


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REDUCED)
def test_loops(name, dtype):
    for form in (counted, until, either):
        loss = form(REDUCED[name])
        expected = gs.grad(loss)(X.astype(dtype).astype(np.float64))
        found = gs.jit(gs.grad(loss))(X.astype(dtype))
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(found, expected, rtol=0, atol=(1e-11 if dtype is np.float64 else 1e-4) * scale)


@pytest.mark.parametrize("name", ["max", "min", "norm"])
def test_other_transformations(name):
    loss, v = counted(REDUCED[name]), RNG.standard_normal(X.shape)
    expected = gs.grad(loss)(X)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(gs.jit(lambda x: gs.jvp(loss, (x,), (v,))[1])(X), np.sum(expected * v), rtol=1e-9)
    for found in (gs.jit(gs.vmap(gs.grad(loss)))(np.stack([X, X]))[1], gs.jit(gs.grad(loss), parallel=True)(X),
                  gs.jit(gs.grad(loss), fastmath=False)(X), gs.jit(gs.grad(gs.checkpoint(loss)))(X)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)
    products = gs.jit(lambda x: gs.jvp(gs.grad(loss), (x,), (v,))[1])(X)
    wanted = gs.jvp(gs.grad(loss), (X,), (v,))[1]
    np.testing.assert_allclose(products, wanted, rtol=0, atol=1e-10 * np.max(np.abs(wanted)))


def mixed(s, x):
    """Single precision in one pass, double in the next."""
    total = 0.0
    for i in range(3):
        y = s if i % 2 else x[i]
        total = total + np.min((1.5 + np.sin(np.full(4, y)))**np.array([0.9, 0.8, 1.1, 0.3]) * (y / (2.0 + np.cos(y))))
    return total


def test_two_precisions():
    x = np.array([0.7, 0.4, 0.9])
    expected = gs.grad(mixed, (0, 1))(0.3, x)
    for derived in (gs.grad(mixed, (0, 1)), gs.jit(gs.grad(mixed, (0, 1)))):
        for s, y in ((np.float32(0.3), x), (np.float32(0.3), x.astype(np.float32)), (0.3, x.astype(np.float32))):
            for found, wanted in zip(derived(s, y), expected):
                np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_rules_say_that_they_look_for_equal_entries():
    asked = 0
    for function, rule in RULES.items():
        parts = [f for name, f in rule.parts.items() if name.startswith(("vjp", "jvp")) and inspect.isfunction(f)]
        if any("_ties" in name for f in parts for name in f.__code__.co_names):
            asked += 1
            assert rule.options.get("ties"), function
    assert asked >= 4


A, B = RNG.standard_normal(1000), RNG.standard_normal(1000)
STRAIGHT = {
    "fused": lambda x: np.max(A * x + B) + np.min(A * x * x - B * x),
    "shared": lambda x: np.max(x / np.sum(x * x)) * np.sum(x / np.sum(x * x)),
    "rows": lambda x: np.sum(np.max((A * x + B).reshape(50, 20), axis=1) * np.min(
        x.reshape(50, 20) / (1 + B.reshape(50, 20)**2), axis=1)),
    "norm": lambda x: np.linalg.norm(A * x + B, np.inf) + np.ptp(A * x + B),
    "logsumexp": lambda x: np.sum(np.log(np.sum(np.exp((A * x + B).reshape(50, 20) - np.max(
        (A * x + B).reshape(50, 20), axis=1, keepdims=True)), axis=1))),
    "equal": lambda x: np.sum((A * x + B == np.max(A * x + B)) * x * x),
    "five largest": lambda x: np.sum(np.where(A * x + B >= np.sort(A * x + B)[-5], x * x, 0.0)),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_straight(name):
    gradient = gs.grad(STRAIGHT[name])
    compiled = gs.jit(gradient)
    for k in range(5):
        x = np.random.default_rng(k).standard_normal(1000)
        expected = gradient(x)
        np.testing.assert_allclose(compiled(x), expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))
