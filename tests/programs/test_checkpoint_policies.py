# SPDX-License-Identifier: Apache-2.0
"""Policies of gs.checkpoint: which values are stored; and budgets: how often loops are cut."""
import tracemalloc

import numpy as np
import pytest

import gradscribe as gs

P = gs.checkpoint_policies
A = np.random.default_rng(3).normal(size=(6, 6))
X = np.linspace(0.1, 1.0, 6)
U, W = np.linspace(0.1, 1.0, 50), np.linspace(1.0, 2.0, 50)


def layers(x):
    y = gs.checkpoint_name(A @ x, "y")
    z = gs.checkpoint_name(np.tanh(y), "z")
    return np.sum(np.exp(A @ z) * z)


def stepped(x, f):
    for _ in range(3):
        x = x + 0.1 * f(x)
    return np.sum(x)


POLICIES = [None, "all", "loops", P.everything_saveable, P.nothing_saveable, P.dots_saveable, P.checkpoint_dots,
            P.dots_with_no_batch_dims_saveable, P.save_only_these_names("y"), P.save_only_these_names("y", "z"),
            P.save_any_names_but_these("y"), P.save_anything_except_these_names("y"),
            P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("z"))]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_gradients_are_the_same_to_the_bit(policy):
    f = gs.checkpoint(layers, policy=policy)
    np.testing.assert_array_equal(gs.grad(f)(X), gs.grad(layers)(X))

    def whole(x):
        return stepped(x, f)
    np.testing.assert_array_equal(gs.grad(whole)(X), gs.grad(lambda x: stepped(x, layers))(X))
    np.testing.assert_allclose(gs.jit(gs.grad(whole))(X), gs.grad(whole)(X), rtol=1e-12)


def stored(policy):
    """The arrays that the backward sweep of a loop over `step` finds stored, by name."""
    def step(x):
        y = gs.checkpoint_name(A @ x, "y")
        z = gs.checkpoint_name(np.tanh(y), "z")
        return np.exp(-z * z)

    def whole(x):
        f = gs.checkpoint(step, policy=policy)
        for _ in range(4):
            x = f(x)
        return np.sum(x)
    source = gs.grad(whole).source_for(X)
    return {line.split("[")[0].strip() for line in source.splitlines() if "_saved[" in line.split("=")[0]}, source


@pytest.mark.parametrize("policy, names, products", [
    (P.nothing_saveable, ["x_saved"], 2),
    (P.save_only_these_names("y"), ["x_saved", "y_saved"], 1),
    (P.save_only_these_names("z"), ["x_saved", "z_saved"], 1),
    (P.dots_saveable, ["x_saved", "y_saved"], 1),
    (P.save_any_names_but_these("y"), ["x_saved", "z_saved"], 1),
], ids=str)
def test_what_is_stored(policy, names, products):
    found, source = stored(policy)
    assert found <= set(names), source
    assert sum(line.count("A @") for line in source.splitlines() if "#" not in line) == products, source


def simulate(u, w, steps):
    for _ in range(steps):
        u = u + 0.01 * np.sin(w * u) - 0.01 * u ** 3
    return np.sum(u ** 2)


def two_loops(u, w, steps):
    v = u * 1.0
    for k in range(steps):
        u = u + 0.01 * v * np.sin(w + k)
        for _ in range(3):
            v = v - 0.1 * u * v
    return np.sum(u * v)


def written(u, w, steps):
    u = u.copy()
    for k in range(steps):
        u[1:-1] += 0.1 * w[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        if k % 2:
            u[0] = u[1] * u[2]
    return np.sum(u ** 2)


@pytest.mark.parametrize("f", [simulate, two_loops, written], ids=lambda f: f.__name__)
@pytest.mark.parametrize("budget", ["1 MB", "60 kB", "40 KiB", 30_000])
def test_budgets_keep_gradients_to_the_bit(f, budget):
    both = (0, 1)
    plain, cut = gs.grad(f, both), gs.grad(gs.checkpoint(f, budget=budget), both)
    for steps in (400, 0, 1, 2, 5, 9, 63, 64, 65):
        for got, want in zip(cut(U, W, steps), plain(U, W, steps)):
            np.testing.assert_array_equal(got, want)
    for got, want in zip(gs.jit(cut)(U, W, 100), plain(U, W, 100)):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("budget, loops", [("1 MB", 2), ("24 kB", 5), ("15 kB", 8), ("13 kB", 11)])
def test_levels(budget, loops):
    """Two loops without segments; three for two levels and their inner loops; three more for each level."""
    source = gs.grad(gs.checkpoint(simulate, budget=budget), 1).source_for(U, W, 400)
    assert sum(line.strip().startswith("for ") for line in source.splitlines()) == loops


def peak(f, *args):
    f(*args)
    tracemalloc.start()
    f(*args)
    try:
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_budget_is_kept():
    u, w = np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000)
    for budget in (800_000, 400_000, 300_000):
        cut = gs.grad(gs.checkpoint(simulate, budget=budget), 1)
        assert peak(cut, u, w, 1000) < budget + 12 * u.nbytes         # beside the states: a few temporaries


def test_a_budget_that_is_too_small():
    with pytest.raises(gs.TransformError, match="too small: 400 passes with 400 bytes each need 12,000"):
        gs.grad(gs.checkpoint(simulate, budget=4000), 1)(U, W, 400)


@pytest.mark.parametrize("budget", ["much", "12 bits", -3, 0, 1.5, True, "MiB"])
def test_budgets_that_are_none(budget):
    with pytest.raises(gs.KindError, match="a budget is"):
        gs.checkpoint(simulate, budget=budget)


def test_policies_that_are_none():
    with pytest.raises(gs.KindError, match="policy must be"):
        gs.checkpoint(layers, policy="some")
    with pytest.raises(gs.KindError, match="JAX's primitives"):
        gs.checkpoint(layers, policy=lambda prim, *_, **__: True)

    def inside(x):
        return np.sum(gs.checkpoint(lambda y: y * y, policy="dots")(x))
    with pytest.raises(gs.KindError, match="policy must be"):
        gs.grad(inside)(X)


def test_a_policy_inside_a_function():
    def f(x):
        g = gs.checkpoint(layers, policy=gs.checkpoint_policies.save_only_these_names("z"))
        return g(x) * x[0]
    np.testing.assert_array_equal(gs.grad(f)(X), gs.grad(lambda x: layers(x) * x[0])(X))


def test_names_do_nothing_else():
    assert gs.checkpoint_name(X, "x") is X
    made = gs.grad(lambda x: gs.checkpoint_name((x * x, 2 * x), "pair")[0] * 3.0)
    assert made(2.0) == 12.0 and "pair" not in made.source
    assert repr(P.dots_saveable) == "gs.checkpoint_policies.dots_saveable"


@pytest.mark.parametrize("f", [simulate, two_loops, written], ids=lambda f: f.__name__)
def test_states_on_the_disk(f):
    both = (0, 1)
    plain, disk = gs.grad(f, both), gs.grad(gs.checkpoint(f, offload="disk"), both)
    for steps in (100, 0, 1, 5):
        for u, w in ((U, W), (U.astype(np.float32), W.astype(np.float32)), (U[:3], W[:3])):
            for got, want in zip(disk(u, w, steps), plain(u, w, steps)):
                np.testing.assert_array_equal(got, want)
                assert type(got) is np.ndarray
    assert "on_disk(" in disk.source


def test_memory_holds_one_segment():
    u, w = np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000)
    disk = gs.grad(gs.checkpoint(simulate, offload="disk"), 1)
    assert peak(disk, u, w, 2500) < (2 * 51 + 16) * u.nbytes          # the states of two segments, one to be replaced


def test_offload_that_is_none():
    with pytest.raises(gs.KindError, match="offload is 'disk' or None"):
        gs.checkpoint(simulate, offload="tape")
    with pytest.raises(gs.TransformError, match="Without gs.jit"):
        gs.jit(gs.grad(gs.checkpoint(simulate, offload="disk"), 1))(U, W, 9)
