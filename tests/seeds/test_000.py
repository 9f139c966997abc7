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


@pytest.mark.parametrize("wrap", [lambda f: f, pytest.param(gs.jit, marks=pytest.mark.xfail(
    strict=True, raises=gs.TransformError, reason="compiled, two attributes of one name are two parameters of it"))],
    ids=["plain", "jit"])
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


@WRAPS
def test_s10_layers_and_an_optimizer(wrap):
    """Flax, Haiku, stax and Optax: parameters made from a key, a network applied, steps of an optimizer."""
    init, network = gs.nn.serial(gs.nn.Dense(8), gs.nn.Tanh, gs.nn.Dense(1))
    _, params = init(gs.random.PRNGKey(0), (-1, 2))
    opt = gs.optim.chain(gs.optim.clip_by_global_norm(1.0), gs.optim.adam(0.05))
    x = gs.random.normal(gs.random.PRNGKey(1), (32, 2))
    y = np.sin(x[:, :1]) * x[:, 1:]

    def loss(params, x, y):
        return np.mean(gs.nn.squared_error(network(params, x), y))

    @wrap
    def step(params, state, x, y):
        value, grads = gs.value_and_grad(loss)(params, x, y)
        updates, state = opt.update(grads, state, params)
        return gs.optim.apply_updates(params, updates), state, value
    state, values = opt.init(params), []
    for _ in range(80):
        params, state, value = step(params, state, x, y)
        values.append(value)
    assert values[0] > 0.3 and values[-1] < 0.1 * values[0]
    assert loss(params, x, y) < values[0] / 10


def test_s10_solvers():
    """jaxopt: a root with its derivative by the implicit function theorem, and a minimiser."""
    found = gs.optim.root(lambda x, c: np.array([x[0] ** 2 + x[1] - c, x[0] - x[1]]), np.ones(2), (6.0,))
    np.testing.assert_allclose(found.x, [2.0, 2.0], rtol=1e-12)

    def at(c):
        return gs.optim.root(lambda x, c: np.array([x[0] ** 2 + x[1] - c, x[0] - x[1]]), np.ones(2), (c,)).x[0]
    assert gs.grad(at)(6.0) == pytest.approx(1 / 5, rel=1e-12)
    a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    ridge = gs.optim.lbfgs(lambda x: 0.5 * x @ a @ x - b @ x, np.zeros(2), gtol=1e-10)
    np.testing.assert_allclose(ridge.x, np.linalg.solve(a, b), rtol=1e-8)


def test_s10_checks_of_derivatives():
    """Chex: derivatives held against differences; a wrong rule is found."""
    @gs.custom_jvp
    def wrong(x):
        return np.sin(x)
    wrong.defjvp(lambda primals, tangents: (np.sin(primals[0]), np.sin(primals[0]) * tangents[0]))
    gs.testing.check_grads(np.sin, (0.4,), order=2)
    with pytest.raises(AssertionError, match="the tangent"):
        gs.testing.check_grads(wrong, (0.4,), order=1)


LENGTH = 6                              # a corridor: from its left end to its right, where the reward is


def episode(logits, chances):
    """The sum of log-probabilities of what was done, and the return: 1, less 0.02 for each step."""
    score, place = 0.0, 0
    for t in range(len(chances)):
        p = gs.nn.softmax(logits[place])
        if chances[t] < p[1]:
            score += np.log(p[1])
            place += 1
        else:
            score += np.log(p[0])
            place = max(place - 1, 0)
        if place == LENGTH:
            return score, 1.0 - 0.02 * t
    return score, 0.0


def surrogate(logits, chances, baseline):
    """Its gradient is an estimate of that of the expected return.  R. Williams (1992), REINFORCE."""
    total, gain = 0.0, 0.0
    for row in chances:
        score, value = episode(logits, row)
        total += score * (value - baseline)
        gain += value
    return total / len(chances), gain / len(chances)


def test_s10_reinforcement_learning():
    """Episodes end when they end; the estimate of the gradient, compiled, teaches to go right."""
    step = gs.jit(gs.grad(surrogate, has_aux=True))
    logits, key, gains, baseline = np.zeros((LENGTH, 2)), gs.random.PRNGKey(0), [], 0.0
    chances = gs.random.uniform(key, (8, 60))
    d, gain = gs.grad(surrogate, has_aux=True)(logits, chances, 0.1)
    again = step(logits, chances, 0.1)
    np.testing.assert_allclose(again[0], d, rtol=1e-12, atol=1e-15)
    assert again[1] == pytest.approx(gain, rel=1e-14)
    gs.testing.check_grads(lambda logits: surrogate(logits, chances, 0.1)[0], (logits,), order=1)
    for _ in range(40):
        key, sub = gs.random.split(key)
        d, gain = step(logits, gs.random.uniform(sub, (32, 60)), baseline)
        logits += 10.0 * d
        baseline = gain
        gains.append(gain)
    assert gains[0] < 0.6 and gains[-1] > 0.85          # 0.9 where every step is to the right
    assert np.all(logits[:, 1] > logits[:, 0])


REWARDS = np.array([0.1, 0.9, 0.4])


def pulled(logits, u):
    """One arm of a bandit, chosen by a uniform number; the reward stands still in the score function's product."""
    p = gs.nn.softmax(logits)
    arm = np.searchsorted(np.cumsum(p), u)
    return np.log(p[arm]) * REWARDS[arm]


def test_s10_score_function_has_the_right_mean():
    """Over all of the unit interval, the estimates sum to the gradient of the expected reward."""
    logits = np.array([0.2, -0.5, 0.3])
    us = (np.arange(40_000) + 0.5) / 40_000
    found = np.mean(gs.jit(gs.vmap(gs.grad(pulled), in_axes=(None, 0)))(logits, us), axis=0)
    want = gs.grad(lambda logits: gs.nn.softmax(logits) @ REWARDS)(logits)
    np.testing.assert_allclose(found, want, atol=1e-4)


class Graphs(NamedTuple):
    """Several graphs as one: the edges between all nodes, and the graph that each node is of."""
    nodes: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    owners: np.ndarray


def graph_network(params, graphs):
    """Two rounds of messages: each node hears the sum of what its neighbours say."""
    nodes = graphs.nodes
    for W_own, W_said in params[:-1]:
        said = (nodes @ W_said)[graphs.senders]
        nodes = np.tanh(nodes @ W_own + gs.lax.segment_sum(said, graphs.receivers, nodes.shape[0]))
    return gs.lax.segment_sum(nodes, graphs.owners, 6) @ params[-1]


def rings_and_stars(rng):
    """Six graphs of six nodes: rings and stars, their nodes in any order."""
    senders, receivers = [], []
    for k in range(6):
        order = rng.permutation(6) + 6 * k
        a, b = (order, np.roll(order, 1)) if k % 2 else (order[1:], np.full(5, order[0]))
        senders += [a, b]
        receivers += [b, a]
    return Graphs(np.ones((36, 2)), np.concatenate(senders), np.concatenate(receivers), np.arange(36) // 6)


def test_s10_graph_network():
    """Jraph: segment sums over edges and over graphs; it learns to tell rings from stars."""
    rng = np.random.default_rng(5)
    params = [(0.5 * rng.standard_normal((m, 4)), 0.5 * rng.standard_normal((m, 4))) for m in (2, 4)]
    params.append(0.5 * rng.standard_normal(4))
    graphs, targets = rings_and_stars(rng), np.arange(6) % 2
    nodes = rng.standard_normal((36, 2))
    order = rng.permutation(36)                         # with nodes renamed, the graphs are the same
    place = np.argsort(order)
    renamed = Graphs(nodes[order], place[graphs.senders], place[graphs.receivers], graphs.owners[order])
    np.testing.assert_allclose(graph_network(params, renamed), graph_network(params, graphs._replace(nodes=nodes)),
                               rtol=1e-12)
    gs.testing.check_grads(lambda p, x: graph_network(p, graphs._replace(nodes=x)), (params, nodes), order=1)
    opt = gs.optim.adam(0.03)

    def loss(params, graphs, targets):
        return np.mean((graph_network(params, graphs) - targets) ** 2)
    step, state, values = gs.jit(gs.value_and_grad(loss)), opt.init(params), []
    for _ in range(200):
        value, grads = step(params, graphs, targets)
        updates, state = opt.update(grads, state)
        params = gs.optim.apply_updates(params, updates)
        values.append(value)
    assert values[-1] < 1e-2 < values[0]
    np.testing.assert_allclose(graph_network(params, graphs), targets, atol=0.2)


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
