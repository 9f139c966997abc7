# SPDX-License-Identifier: Apache-2.0
"""The rows of the checklist from the first document: transformations, and programs without side effects."""
import bdb
import dataclasses
import inspect
import linecache
import sys
from typing import NamedTuple

import numpy as np
import pytest

import gradscribe as gs

RNG = np.random.default_rng(0)
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def normalised(x):
    return (x - x.mean(1)) / x.std(1)


@WRAPS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_s01_normalised(wrap, dtype):
    """As it is written there: the means of rows, along columns."""
    x = RNG.random((200, 200)).astype(dtype)
    m = np.array([np.sum(row.astype(np.float64)) / 200 for row in x])
    s = np.array([np.sqrt(np.sum((row - a) ** 2) / 200) for row, a in zip(x.astype(np.float64), m)])
    got = wrap(normalised)(x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, (x - m) / s, rtol=0, atol=1e-13 if dtype == np.float64 else 1e-5)


def test_s02_square():
    def f(x):
        return x ** 2
    g = gs.grad(f)
    compiled = gs.jit(g)
    assert (g(3.0), compiled(3.0)) == (6.0, 6.0)
    assert g.source.rstrip().endswith("return 2 * x")


def neuron(w, x):
    return gs.nn.sigmoid(w * x)


def error(w, x, y):
    return (neuron(w, x) - y) ** 2


@WRAPS
def test_s03_batched_gradients(wrap):
    grad = gs.grad(error)
    batched = gs.vmap(grad, in_axes=(None, 0, 0))
    w, x, y = 0.7, RNG.standard_normal(9), RNG.random(9)
    s = 1 / (1 + np.exp(-w * x))
    np.testing.assert_allclose(wrap(batched)(w, x, y), 2 * (s - y) * s * (1 - s) * x, rtol=1e-13)
    assert "for" not in batched.source
    assert batched(w, x[:4], y[:4]).shape == (4,)


def written(x):
    y = x.copy()
    y[1, :] = 1.0
    y[:, -1] *= -3
    y[0, 0] += 2
    return y


def functional(x):
    y = gs.at(x)[1, :].set(1.0)
    y = gs.at(y)[:, -1].multiply(-3)
    return gs.at(y)[0, 0].add(2)


@WRAPS
@pytest.mark.parametrize("f", [written, functional])
def test_s04_writes(f, wrap):
    x = RNG.standard_normal((3, 2))
    before = x.copy()
    np.testing.assert_array_equal(wrap(f)(x), [[x[0, 0] + 2, -3 * x[0, 1]], [1.0, -3.0], [x[2, 0], -3 * x[2, 1]]])
    dx = wrap(gs.grad(lambda x: np.sum(f(x))))(x)
    np.testing.assert_array_equal(dx, [[1, -3], [0, 0], [1, -3]])
    np.testing.assert_array_equal(x, before)


class Weights(NamedTuple):
    w_x: float
    w_h: float
    w_o: float


def rnn(params, x, h):
    h = np.tanh(params.w_x * x + params.w_h * h)
    y = np.tanh(params.w_o * h)
    return y, h


class RNN:
    def __init__(self, w_x, w_h, w_o, h):
        self.w_x, self.w_h, self.w_o, self.h = w_x, w_h, w_o, h

    def forward(self, x):
        self.h = np.tanh(self.w_x * x + self.w_h * self.h)
        y = np.tanh(self.w_o * self.h)
        return y


def unrolled(params, xs):
    h, total = 0.0, 0.0
    for x in xs:
        y, h = rnn(params, x, h)
        total += y * y
    return total


WEIGHTS, XS = Weights(0.4, -0.9, 1.3), np.array([0.3, -1.2, 0.8, 0.1])


def central(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


@WRAPS
def test_s05_pure_step(wrap):
    y, h = wrap(rnn)(WEIGHTS, 0.5, 0.2)
    assert h == pytest.approx(np.tanh(0.4 * 0.5 - 0.9 * 0.2), rel=1e-15)
    assert y == pytest.approx(np.tanh(1.3 * h), rel=1e-15)
    d = wrap(gs.grad(unrolled))(WEIGHTS, XS)
    assert isinstance(d, Weights)
    for name in Weights._fields:
        want = central(lambda v, name=name: unrolled(WEIGHTS._replace(**{name: v}), XS), getattr(WEIGHTS, name))
        assert getattr(d, name) == pytest.approx(want, rel=1e-8)


@WRAPS
def test_s05_class_that_keeps_its_state(wrap):
    """self.h moves on with each call, compiled too, as the h that the pure form hands on."""
    cell = RNN(*WEIGHTS, 0.0)
    step = wrap(lambda x, cell: cell.forward(x))
    h = 0.0
    for x in XS:
        y = step(x, cell)
        want, h = rnn(WEIGHTS, x, h)
        assert (y, cell.h) == pytest.approx((want, h), rel=1e-15)


def test_s05_gradient_of_a_class_that_keeps_its_state():
    """Once a call here too; compiled, it is refused, which is said."""
    def forward(x, cell):
        return cell.forward(x)
    cell, h = RNN(*WEIGHTS, 0.0), 0.0
    step = gs.value_and_grad(forward)
    for x in XS:
        y, dy = step(x, cell)
        dwant = central(lambda x, h=h: rnn(WEIGHTS, x, h)[0], x)
        want, h = rnn(WEIGHTS, x, h)
        assert (y, cell.h) == pytest.approx((want, h), rel=1e-15)
        assert dy == pytest.approx(dwant, rel=1e-8)
    with pytest.raises(gs.LanguageError, match="Compile the function itself, or return the new values"):
        gs.jit(step)(0.5, cell)
    assert cell.h == h


def impure_loss(w, xs):
    cell = RNN(w[0], w[1], w[2], 0.0)
    total = 0.0
    for x in xs:
        total += cell.forward(x) ** 2
    return total


@WRAPS
def test_s05_class_inside_a_loss(wrap):
    got = wrap(gs.grad(impure_loss))(np.array(WEIGHTS), XS)
    np.testing.assert_allclose(got, gs.grad(unrolled)(WEIGHTS, XS), rtol=1e-14)


def attention(q, k, v):
    score = gs.nn.softmax(q @ k.T / np.sqrt(q.shape[1]))
    y = score @ v
    return np.sum(y * y), score


@WRAPS
def test_s06_auxiliary_results(wrap):
    q, k, v = (RNG.standard_normal((4, 3)) for _ in range(3))
    dq, score = wrap(gs.grad(attention, has_aux=True))(q, k, v)
    (y, again), (dq_too, dv) = wrap(gs.value_and_grad(attention, argnums=(0, 2), has_aux=True))(q, k, v)
    e = np.exp(q @ k.T / np.sqrt(3))
    want = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(score, want, rtol=1e-14)
    np.testing.assert_allclose(again, want, rtol=1e-14)
    assert y == pytest.approx(np.sum((want @ v) ** 2), rel=1e-14)
    np.testing.assert_allclose(dq, dq_too, rtol=1e-13)
    np.testing.assert_allclose(dv, 2 * want.T @ want @ v, rtol=1e-13)
    gs.testing.check_grads(lambda *a: attention(*a)[0], (q, k, v), order=2)


def drawn(key):
    key, subkey = gs.random.split(key)
    x = gs.random.normal(subkey)
    return x


@WRAPS
def test_s07_keys(wrap):
    """Same key, same number; jax.random's, in double precision."""
    f = wrap(drawn)
    key = gs.random.PRNGKey(0)
    assert key.tolist() == [0, 0]
    assert f(key) == f(key) == pytest.approx(drawn(key), rel=1e-14)
    assert f(key) == pytest.approx(KNOWN[0], rel=1e-14)
    assert f(gs.random.PRNGKey(1)) == pytest.approx(KNOWN[1], rel=1e-14)
    assert gs.random.split(key).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    np.testing.assert_array_equal(key, [0, 0])


KNOWN = (-1.400884102827668, 0.7158846030601348)


def test_s08_functorch():
    x = RNG.standard_normal(())
    cos_f = gs.grad(np.sin)
    neg_sin_f = gs.grad(gs.grad(np.sin))
    assert cos_f(x) == pytest.approx(np.cos(x), rel=1e-15)
    assert neg_sin_f(x) == pytest.approx(-np.sin(x), rel=1e-15)
    w = RNG.standard_normal(3)

    def model(feature_vec):
        return gs.nn.relu(feature_vec.dot(w))
    examples = RNG.standard_normal((5, 3))
    result = gs.vmap(model)(examples)
    np.testing.assert_allclose(result, np.maximum(examples @ w, 0), rtol=1e-14)
    np.testing.assert_allclose(gs.jit(gs.vmap(model))(examples), result, rtol=1e-14)


class Linear:
    def __init__(self, n, m, rng):
        self.weight, self.bias = rng.standard_normal((m, n)), rng.standard_normal(m)

    def __call__(self, x):
        return self.weight @ x + self.bias


class Module:
    def __init__(self, n, m, rng):
        self.weight = rng.random((n, m))
        self.linear = Linear(n, m, rng)

    def forward(self, x):
        output = self.weight @ x
        return self.linear(output)


@gs.tree_util.register_dataclass
@dataclasses.dataclass
class Affine:
    weight: np.ndarray
    bias: np.ndarray

    def forward(self, x):
        return self.weight @ x + self.bias


@WRAPS
def test_s09_module(wrap):
    """Methods transform; what the object holds is read at each call."""
    module, x = Module(2, 3, np.random.default_rng(3)), RNG.standard_normal(3)
    script = wrap(module.forward)
    for _ in range(2):
        want = module.linear.weight @ (module.weight @ x) + module.linear.bias
        np.testing.assert_allclose(script(x), want, rtol=1e-14)
        module.weight = module.weight + 1.0
    J = wrap(gs.jacrev(module.forward))(x)
    np.testing.assert_allclose(J, module.linear.weight @ module.weight, rtol=1e-14)
    batch = RNG.standard_normal((4, 3))
    np.testing.assert_allclose(wrap(gs.vmap(module.forward))(batch), [module.forward(x) for x in batch], rtol=1e-13)


@WRAPS
def test_s09_module_as_a_tree(wrap):
    """With respect to the module itself: the gradient is one like it."""
    module, x = Affine(RNG.standard_normal((2, 3)), np.zeros(2)), RNG.standard_normal(3)
    d = wrap(gs.grad(lambda module, x: np.sum(module.forward(x) ** 2)))(module, x)
    assert isinstance(d, Affine)
    y = module.forward(x)
    np.testing.assert_allclose(d.weight, 2 * np.outer(y, x), rtol=1e-14)
    np.testing.assert_allclose(d.bias, 2 * y, rtol=1e-14)
    moved = gs.tree_util.tree_map(lambda p, g: p - 0.01 * g, module, d)
    assert isinstance(moved, Affine) and np.sum(moved.forward(x) ** 2) < np.sum(y * y)


def test_s43_emitted_lines_are_seen_by_profilers():
    """A tracing tool is told the lines of the emitted text, of which the source is at hand."""
    def f(x):
        for _ in range(3):
            x = np.sin(x) * x
        return x
    df = gs.grad(f)
    df(0.3)
    function, lines, text = df.emitted_for(0.3), {}, df.source.splitlines()

    def tracer(frame, event, arg):
        if frame.f_code is not function.__code__:
            return None
        if event == "line":
            lines[frame.f_lineno] = lines.get(frame.f_lineno, 0) + 1
        return tracer
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        df(0.3)
    finally:
        sys.settrace(before)
    assert inspect.getsource(function).splitlines()[0] == text[function.__code__.co_firstlineno - 1]
    inside = [n for n, count in lines.items() if count == 3]
    assert inside and any("np.cos(x)" in text[n - 1] for n in inside)


def test_s43_debuggers_stop_in_emitted_lines():
    def f(x):
        y = np.exp(x)
        return y * y
    df = gs.grad(f)
    df(0.5)
    code, seen = df.emitted_for(0.5).__code__, []

    class Stops(bdb.Bdb):
        def user_line(self, frame):
            if frame.f_code is code:
                seen.append((linecache.getline(code.co_filename, frame.f_lineno), dict(frame.f_locals)))
    before = sys.gettrace()
    debugger = Stops()
    try:
        debugger.runcall(df, 0.5)
    finally:
        sys.settrace(before)
    assert [line.split()[0] for line, _ in seen] == ["y", "return"]
    assert seen[1][1] == {"x": 0.5, "y": np.exp(0.5)}
