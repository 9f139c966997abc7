# SPDX-License-Identifier: Apache-2.0
"""What the libraries are for that the first document names: networks, solvers, reinforcement learning, graphs."""
from typing import NamedTuple

import numpy as np
import pytest

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


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


def last_differs(params, x):
    for w in params[:-1]:
        x = x * w
    return x * params[-1]


def test_s10_pullbacks_leave_their_arguments():
    """What second derivatives of networks with a list of layers need."""
    _, pullback = gs.vjp(gs.grad(last_differs), [2.0, 3.0, 4.0], 5.0)
    dy = [1.0, 1.0, 1.0]
    first = pullback(dy)
    assert dy == [1.0, 1.0, 1.0] and pullback(dy) == first == ([35.0, 30.0, 25.0], 26.0)
