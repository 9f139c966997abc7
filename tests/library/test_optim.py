# SPDX-License-Identifier: Apache-2.0
"""gs.optim's update rules against closed forms in plain NumPy, eagerly and inside compiled steps."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe import optim
from gradscribe.tree_util import tree_leaves, tree_map

STEPS = 100
RNG = np.random.default_rng(0)
START = RNG.normal(size=6)
GRADS = [RNG.normal(size=6) for _ in range(STEPS)]


def packed(x):
    """Six numbers as a tree of lists, tuples and dicts."""
    return {"layers": [(x[:4].reshape(2, 2), x[4:5])], "scale": x[5]}


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in tree_leaves(tree)])


def followed(opt):
    """The parameters after each step."""
    params = packed(START)
    state = opt.init(params)
    path = []
    for grads in GRADS:
        updates, state = opt.update(packed(grads), state, params)
        params = optim.apply_updates(params, updates)
        path.append(flat(params))
    return np.array(path)


def references(name):
    """The path of a rule, written out for one vector."""
    x, path = START.copy(), []
    m, v, s = np.zeros(6), np.zeros(6), np.zeros(6)
    largest, lr = np.zeros(6), 0.1
    for t, g in enumerate(GRADS, start=1):
        c1, c2 = 1 - 0.9 ** t, 1 - 0.999 ** t
        if name == "sgd":
            x = x - lr * g
        elif name == "momentum":
            m = 0.9 * m + g
            x = x - lr * m
        elif name == "nesterov":
            m = 0.9 * m + g
            x = x - lr * (g + 0.9 * m)
        elif name == "sign_sgd":
            x = x - lr * np.sign(g)
        elif name == "adagrad":
            s = s + g ** 2
            x = x - lr * g / np.sqrt(0.1 + s + 1e-7)
        elif name == "rmsprop":
            v = 0.9 * v + 0.1 * g ** 2
            x = x - lr * g / np.sqrt(v + 1e-8)
        elif name == "rmsprop_outside":
            v = 0.9 * v + 0.1 * g ** 2
            x = x - lr * g / (np.sqrt(v) + 1e-8)
        elif name == "rmsprop_centered":
            m, v = 0.9 * m + 0.1 * g, 0.9 * v + 0.1 * g ** 2
            s = 0.5 * s - lr * g / np.sqrt(v - m ** 2 + 1e-8)
            x = x + s
        elif name in ("adam", "adamw", "nadam", "radam", "amsgrad"):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g ** 2
            first, second = m / c1, v / c2
            if name == "nadam":
                first = 0.9 * m / (1 - 0.9 ** (t + 1)) + 0.1 * g / c1
            if name == "amsgrad":
                second = largest = np.maximum(largest, second)
            u = first / (np.sqrt(second) + 1e-8)
            if name == "adamw":
                u = u + 1e-2 * x
            if name == "radam":
                last = 2 / (1 - 0.999) - 1
                rho = last - 2 * t * 0.999 ** t / c2
                u = first if rho < 5 else u * np.sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho))
            x = x - lr * u
        elif name == "adamax":
            m, v = 0.9 * m + 0.1 * g, np.maximum(np.abs(g) + 1e-8, 0.999 * v)
            x = x - lr * m / c1 / v
        elif name == "adabelief":
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * (g - m) ** 2 + 1e-16
            x = x - lr * (m / c1) / (np.sqrt(v / c2) + 1e-16)
        elif name == "yogi":
            v = 1e-6 + v if t == 1 else v
            m = 1e-6 + m if t == 1 else m
            m, v = 0.9 * m + 0.1 * g, v - 0.001 * np.sign(v - g ** 2) * g ** 2
            x = x - lr * (m / c1) / (np.sqrt(v / c2) + 1e-3)
        elif name == "adadelta":
            v = 0.9 * v + 0.1 * g ** 2
            u = np.sqrt(s + 1e-6) / np.sqrt(v + 1e-6) * g
            s = 0.9 * s + 0.1 * u ** 2
            x = x - u
        elif name == "lion":
            x = x - lr * (np.sign(0.9 * m + 0.1 * g) + 1e-3 * x)
            m = 0.99 * m + 0.01 * g
        elif name == "lamb":
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g ** 2
            u = m / c1 / (np.sqrt(v / c2) + 1e-6) + 0.01 * x
            for part in (slice(0, 4), slice(4, 5), slice(5, 6)):
                u[part] *= np.linalg.norm(x[part]) / np.linalg.norm(u[part])
            x = x - lr * u
        path.append(x)
    return np.array(path)


OPTIMIZERS = {
    "sgd": optim.sgd(0.1), "momentum": optim.momentum(0.1), "nesterov": optim.nesterov(0.1),
    "sign_sgd": optim.sign_sgd(0.1), "adagrad": optim.adagrad(0.1), "rmsprop": optim.rmsprop(0.1),
    "rmsprop_outside": optim.rmsprop(0.1, eps_in_sqrt=False),
    "rmsprop_centered": optim.rmsprop(0.1, centered=True, momentum=0.5),
    "adam": optim.adam(0.1), "adamw": optim.adamw(0.1, weight_decay=1e-2), "nadam": optim.nadam(0.1),
    "radam": optim.radam(0.1), "amsgrad": optim.amsgrad(0.1), "adamax": optim.adamax(0.1),
    "adabelief": optim.adabelief(0.1), "yogi": optim.yogi(0.1), "adadelta": optim.adadelta(), "lion": optim.lion(0.1),
    "lamb": optim.lamb(0.1, weight_decay=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rules(name):
    np.testing.assert_allclose(followed(OPTIMIZERS[name]), references(name), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dtypes_stay(name):
    opt = OPTIMIZERS[name]
    params, grads = (tree_map(np.float32, packed(x)) for x in (START, GRADS[0]))
    state = opt.init(params)
    for _ in range(2):
        updates, state = opt.update(grads, state, params)
    params = optim.apply_updates(params, updates)
    assert {leaf.dtype for leaf in tree_leaves((params, updates, state)) if hasattr(leaf, "dtype")} == {np.dtype("f4")}


def test_complex_parameters():
    z, g = np.array([1.0 + 2.0j]), np.array([3.0 - 4.0j])
    opt = optim.adam(0.1)
    updates, state = opt.update([g], opt.init([z]), [z])
    np.testing.assert_allclose(updates[0], -0.1 * g / 5.0, rtol=1e-8)
    np.testing.assert_allclose(state[0].nu[0], 0.001 * 25.0)


def test_clipping():
    grads = {"a": np.array([3.0, 0.0]), "b": np.array([[4.0]])}
    assert optim.global_norm(grads) == 5.0
    for opt, expected in [(optim.clip(1.0), [1.0, 0.0, 1.0]), (optim.clip_by_global_norm(1.0), [0.6, 0.0, 0.8]),
                          (optim.clip_by_global_norm(9.0), [3.0, 0.0, 4.0]),
                          (optim.clip_by_block_rms(2.0), [2 * np.sqrt(2), 0.0, 2.0])]:
        np.testing.assert_allclose(flat(opt.update(grads, opt.init(grads))[0]), expected, rtol=1e-15)


def test_ema():
    opt = optim.ema(0.5)
    state = opt.init(np.zeros(1))
    for expected, average in [(2.0, 1.0), (2 / 3, 0.5)]:
        u, state = opt.update(np.array([2.0 if expected == 2.0 else 0.0]), state)
        np.testing.assert_allclose([u[0], state.ema[0]], [expected, average])
    opt = optim.ema(0.5, debias=False)
    assert opt.update(np.array([2.0]), opt.init(np.zeros(1)))[0] == 1.0


def test_masked_and_labelled():
    params = {"w": np.ones(2), "b": (np.ones(1), np.ones(1))}
    opt = optim.masked(optim.adam(0.1), {"w": True, "b": False})
    updates, state = opt.update(params, opt.init(params), params)
    np.testing.assert_allclose(updates["w"], -0.1)
    assert updates["b"] == params["b"] and len(tree_leaves(state)) == 3             # count and two moments of w
    opt = optim.adamw(0.0 * 1 + 1.0, weight_decay=0.5, mask=lambda p: tree_map(lambda leaf: leaf.shape[0] > 1, p))
    zeros = tree_map(np.zeros_like, params)
    updates, _ = opt.update(zeros, opt.init(params), params)
    assert updates["w"].tolist() == [-0.5, -0.5] and updates["b"][0] == 0.0
    opt = optim.multi_transform({"fast": optim.sgd(1.0), "slow": optim.sgd(0.1, 0.9)}, {"w": "slow", "b": "fast"})
    updates, state = opt.update(params, opt.init(params), params)
    updates, _ = opt.update(params, state, params)
    np.testing.assert_allclose(updates["w"], -0.19)
    assert updates["b"][1] == -1.0
    with pytest.raises(ValueError, match="no transformation for the label 'slow'"):
        optim.multi_transform({"fast": optim.sgd(1.0)}, {"w": "slow", "b": "fast"}).init(params)


def test_apply_if_finite():
    opt = optim.apply_if_finite(optim.sgd(1.0, 0.5), 2)
    state, seen = opt.init(np.zeros(1)), []
    for g in [1.0, np.nan, np.inf, 1.0, np.nan, np.nan, np.nan]:
        u, state = opt.update(np.array([g]), state)
        seen.append(u[0])
    np.testing.assert_array_equal(seen, [-1.0, 0.0, 0.0, -1.5, 0.0, 0.0, np.nan])
    assert state[:3] == (3, False, 5)


def test_schedules():
    counts = range(0, 30)
    t = np.arange(30.0)
    cases = [
        (optim.constant_schedule(0.3), np.full(30, 0.3)),
        (optim.linear_schedule(1.0, 0.1, 10, 4), 1.0 - 0.9 * np.clip((t - 4) / 10, 0, 1)),
        (optim.polynomial_schedule(1.0, 0.1, 3, 10), 0.1 + 0.9 * (1 - np.minimum(t / 10, 1)) ** 3),
        (optim.piecewise_constant_schedule(1.0, {3: 0.5, 7: 0.1}), np.where(t < 3, 1.0, np.where(t < 7, 0.5, 0.05))),
        (optim.exponential_decay(1.0, 5, 0.5), 0.5 ** (t / 5)),
        (optim.exponential_decay(1.0, 5, 0.5, 2, True, 0.2), np.maximum(0.5 ** np.maximum((t - 2) // 5, 0), 0.2)),
        (optim.exponential_decay(1.0, 5, 2.0, end_value=3.0), np.minimum(2 ** (t / 5), 3.0)),
        (optim.cosine_decay_schedule(2.0, 10, 0.1), 0.2 + 0.9 * (1 + np.cos(np.pi * np.minimum(t / 10, 1)))),
        (optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 25, 0.2),
         np.where(t < 5, t / 5, 0.2 + 0.4 * (1 + np.cos(np.pi * np.clip((t - 5) / 20, 0, 1))))),
        (optim.warmup_constant_schedule(0.0, 1.0, 5), np.minimum(t / 5, 1)),
        (optim.warmup_exponential_decay_schedule(0.0, 1.0, 5, 2, 0.5), np.where(t < 5, t / 5, 0.5 ** ((t - 5) / 2))),
        (optim.join_schedules([optim.constant_schedule(1.0), optim.linear_schedule(0.5, 0.0, 4)], [10]),
         np.where(t < 10, 1.0, 0.5 * (1 - np.clip((t - 10) / 4, 0, 1)))),
    ]
    for schedule, expected in cases:
        np.testing.assert_allclose([schedule(count) for count in counts], expected, rtol=1e-13, atol=1e-15)


def test_schedule_as_rate():
    opt = optim.sgd(optim.linear_schedule(1.0, 0.0, 4))
    state, seen = opt.init([0.0]), []
    for _ in range(6):
        updates, state = opt.update([1.0], state)
        seen.append(updates[0])
    assert seen == [-1.0, -0.75, -0.5, -0.25, 0.0, 0.0]


def test_refusals():
    params = [np.ones(2)]
    for opt in (optim.adamw(0.1), optim.lamb(0.1), optim.lion(0.1), optim.add_decayed_weights(0.1)):
        with pytest.raises(ValueError, match="needs the parameters"):
            opt.update(params, opt.init(params))
    with pytest.raises(ValueError, match="a chain of 2"):
        optim.adam(0.1).update(params, ())
    for make in (lambda: optim.linear_schedule(1.0, 0.0, 0), lambda: optim.cosine_decay_schedule(1.0, -1),
                 lambda: optim.exponential_decay(1.0, 5, 0.5, -1), lambda: optim.exponential_decay(1.0, 5, 0.0),
                 lambda: optim.piecewise_constant_schedule(1.0, {1: -1.0}), lambda: optim.join_schedules([], [1])):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(ValueError, match="the trees differ"):
        optim.sgd(0.1, 0.9).update([np.ones(2), np.ones(2)], optim.sgd(0.1, 0.9).init(params))


def network(params, batch):
    h, y = batch
    for w, b in params["layers"]:
        h = np.tanh(h @ w + b)
    return np.mean((h @ params["out"] - y) ** 2)


def training(dtype=np.float64):
    rng = np.random.default_rng(1)
    layers = [(rng.normal(size=(20, 30)).astype(dtype), np.zeros(30, dtype)),
              (rng.normal(size=(30, 20)).astype(dtype), np.zeros(20, dtype))]
    batch = rng.normal(size=(50, 20)).astype(dtype), rng.normal(size=50).astype(dtype)
    return {"layers": layers, "out": rng.normal(size=20).astype(dtype)}, batch


def stepping(opt):
    def step(params, state, batch):
        loss, grads = gs.value_and_grad(network)(params, batch)
        updates, state = opt.update(grads, state, params)
        return optim.apply_updates(params, updates), state, loss
    return step


COMPILED = {
    "adam": optim.adam(0.01),
    "clipped": optim.chain(optim.clip_by_global_norm(0.5),
                           optim.adamw(optim.warmup_cosine_decay_schedule(0.0, 0.1, 2, 8), weight_decay=0.01)),
    "masked": optim.apply_if_finite(optim.masked(optim.sgd(0.1, 0.9, nesterov=True), {"layers": [(True, False)] * 2,
                                                                                      "out": True}), 3),
    "lamb": optim.lamb(0.01),
    "radam": optim.radam(0.01, b2=0.5, threshold=2.5),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_steps(name):
    opt = COMPILED[name]
    params, batch = training()
    eager, compiled = stepping(opt), gs.jit(stepping(opt))
    here = there = (params, opt.init(params), 0.0)
    for _ in range(6):
        here, there = eager(*here[:2], batch), compiled(*there[:2], batch)
    assert here[2] < network(params, batch)
    a, b = tree_leaves(here), tree_leaves(there)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_compiled_single():
    opt = optim.adamw(optim.exponential_decay(0.1, 2, 0.5))
    params, batch = training(np.float32)
    _, state, loss = step = gs.jit(stepping(opt))(params, opt.init(params), batch)
    assert {leaf.dtype for leaf in tree_leaves(step) if hasattr(leaf, "dtype")} == {np.dtype("f4")}
    assert state[0].count == 1


def test_step_reads_well():
    """The emitted step is arithmetic: no trees, no functions, one sweep for both moments and their quotient."""
    opt = optim.adam(0.01)

    def step(w, dw, state):
        updates, state = opt.update({"w": dw}, state)
        return optim.apply_updates({"w": w}, updates), state
    compiled = gs.jit(step)
    w = np.ones(50)
    compiled(w, w, opt.init({"w": w}))
    text = compiled.lowered
    assert "mu[i] = 0.9 * state_0_mu_w[i] + 0.09999999999999998 * dw[i]" in text
    assert text.count("for ") == 1 and text.count("np.empty") == 3          # the new parameters and two moments
    for name in ("tree", "leaf", "zip", "np.zeros"):
        assert name not in text


def test_gradient_through_steps():
    """What the loss after three steps has to do with the learning rate and the decay."""
    def after(rate, decay, w):
        opt = optim.chain(optim.trace(decay), optim.scale(-rate))
        state = opt.init(w)
        for _ in range(3):
            grads = 2 * w * np.array([1.0, 3.0])
            updates, state = opt.update(grads, state)
            w = optim.apply_updates(w, updates)
        return np.sum(w * w)

    w, h = np.array([1.0, -2.0]), 1e-6
    d_rate, d_decay = gs.grad(after, argnums=(0, 1))(0.05, 0.9, w)
    np.testing.assert_allclose(d_rate, (after(0.05 + h, 0.9, w) - after(0.05 - h, 0.9, w)) / (2 * h), rtol=1e-8)
    np.testing.assert_allclose(d_decay, (after(0.05, 0.9 + h, w) - after(0.05, 0.9 - h, w)) / (2 * h), rtol=1e-8)


def test_batch_of_optimizers():
    opt = optim.adam(0.1)

    def steps(w):
        state = opt.init(w)
        for _ in range(4):
            updates, state = opt.update(2 * w, state, w)
            w = optim.apply_updates(w, updates)
        return w
    w = np.random.default_rng(2).normal(size=(5, 3))
    np.testing.assert_allclose(gs.vmap(steps)(w), [steps(row) for row in w], rtol=1e-13)
