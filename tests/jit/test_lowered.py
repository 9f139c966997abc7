"""The loops that are compiled, as text: ten gradients, each run as plain Python as well, where bounds are checked."""
import numpy as np
import pytest
from jit.test_unbound import plain

import gradscribe as gs
from gradscribe.codegen import jit_cpu


def logistic_regression(w, b, x, y):
    z = x @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z)


def mlp_loss(W1, b1, W2, b2, x, y):
    h = np.tanh(x @ W1 + b1)
    p = h @ W2 + b2
    return np.sum((p - y) ** 2)


def standardised(x, g):
    mean = x.mean(axis=1, keepdims=True)
    return np.sum(((x - mean) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * g) ** 3)


def logsumexp(x):
    a = np.max(x)
    return a + np.log(np.sum(np.exp(x - a)))


def heat(u, steps):
    for _ in range(steps):
        u = u.copy()
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u ** 2)


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def spring(y, k, steps):
    for _ in range(steps):
        y = y + 0.01 * np.array([y[1], -k * y[0]])
    return y[0] ** 2


def triangle(x, icf):
    s, p = 0.0, 0
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            s += icf[p] * x[i] * x[j]
            p += 1
    return s


def chosen(x, where):
    return np.sum(x[where] ** 2) + np.sum(np.where(x > 0, x, 0.1 * x))


def softmax_rows(x, y):
    z = x - np.max(x, axis=1, keepdims=True)
    p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)
    return -np.mean(np.log(np.sum(p * y, axis=1)))


RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape)


CASES = {
    "logistic_regression": (logistic_regression, (normal(20), 0.1, normal(40, 20), np.ones(40)), (0, 1)),
    "mlp_loss": (mlp_loss, (normal(20, 30), normal(30), normal(30, 20), normal(20), normal(40, 20), normal(40, 20)),
                 (0, 1, 2, 3)),
    "standardised": (standardised, (normal(20, 30), normal(30)), (0, 1)),
    "logsumexp": (logsumexp, (normal(30),), 0),
    "heat": (heat, (normal(30), 4), 0),
    "newton": (newton, (2.0,), 0),
    "spring": (spring, (np.array([1.0, 0.0]), 2.0, 5), (0, 1)),
    "triangle": (triangle, (normal(20), normal(190)), (0, 1)),
    "chosen": (chosen, (normal(30), np.arange(20)), 0),
    "softmax_rows": (softmax_rows, (normal(20, 30), np.abs(normal(20, 30))), 0),
}


@pytest.fixture
def not_compiled(monkeypatch):
    monkeypatch.setattr(jit_cpu, "compiled_text", plain)


@pytest.mark.golden
@pytest.mark.parametrize("name", CASES)
def test_text(name, golden, not_compiled):
    function, args, argnums = CASES[name]
    df = gs.value_and_grad(function, argnums)
    compiled = gs.jit(df)
    value, gradient = compiled(*args)
    wanted, expected = df(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    found = zip(gradient, expected) if isinstance(argnums, tuple) else [(gradient, expected)]
    for a, b in found:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    golden(f"{name}.py", compiled.lowered)
