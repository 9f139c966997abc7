# SPDX-License-Identifier: Apache-2.0
"""Policies of gs.checkpoint: which values are stored; and budgets: how often loops are cut."""
import os
import pickle
import re
import tempfile
import threading
import tracemalloc

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.form import Let, walk
from gradscribe.ast_transform.examples import form

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


def moved(saved, offloaded, goal):
    return P.save_and_offload_only_these_names(names_which_can_be_saved=saved, names_which_can_be_offloaded=offloaded,
                                               offload_src="device", offload_dst=goal)


POLICIES = [None, "all", "loops", P.everything_saveable, P.nothing_saveable, P.dots_saveable, P.checkpoint_dots,
            P.dots_with_no_batch_dims_saveable, P.save_only_these_names("y"), P.save_only_these_names("y", "z"),
            P.save_any_names_but_these("y"), P.save_anything_except_these_names("y"),
            P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("z")),
            P.offload_dot_with_no_batch_dims("device", "disk"),
            P.offload_dot_with_no_batch_dims("device", "pinned_host"), moved(["z"], ["y"], "disk"),
            moved([], ["y", "z"], "pinned_host")]


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
    (P.dots_with_no_batch_dims_saveable, ["x_saved", "y_saved"], 1),
    (P.save_any_names_but_these("y"), ["x_saved", "z_saved"], 1),
    (P.offload_dot_with_no_batch_dims("device", "pinned_host"), ["x_saved", "y_saved"], 1),
    (moved(["z"], ["y"], "disk"), ["x_saved", "y_saved", "z_saved"], 1),
], ids=str)
def test_what_is_stored(policy, names, products):
    found, source = stored(policy)
    assert found <= set(names), source
    assert sum(line.count("A @") for line in source.splitlines() if "#" not in line) == products, source


def test_named_values_on_the_disk():
    def stored_by(policy):
        def step(x):
            y = gs.checkpoint_name(np.cumsum(np.cumsum(np.cumsum(x))), "y")
            return np.exp(-y * y)

        def whole(x):
            f = gs.checkpoint(step, policy=policy)
            for _ in range(4):
                x = f(x)
            return np.sum(x)
        return re.findall(r"(\w+)_saved = ([\w.]+)\(", gs.grad(whole).source_for(X))

    assert stored_by(moved([], ["y"], "disk")) == [("y", "on_disk")]
    assert stored_by(moved([], ["y"], "pinned_host")) == stored_by(moved(["y"], [], "disk")) == [("y", "np.empty")]
    assert stored_by(moved([], ["z"], "disk")) == [("x", "np.empty")]


M, S, V = np.ones((3, 3)), np.ones((2, 3, 3)), np.ones(3)
PRODUCTS = [                            # what JAX makes of them: tests/oracle/test_policies.py
    ("a @ b", M, M, False), ("a @ b", S, M, False), ("a @ b", M, S, False), ("a @ b", S, S, True),
    ("np.matmul(a, b)", S, S, True), ("np.matmul(a, b)", M, V, False), ("np.dot(a, b)", M, S, False),
    ("np.dot(a, b)", S, S, False), ("np.inner(a, b)", M, M, False), ("np.tensordot(a, b)", M, M, False),
    ("np.tensordot(a, b, 1)", M, M, False), ("np.outer(a, b)", V, V, None), ("np.kron(a, b)", M, M, None),
    ("np.cross(a, b)", V, V, None), ("np.convolve(a, b)", V, V, True), ("np.vdot(a, b)", V, V, False),
    ("np.einsum('ij,jk->ik', a, b)", M, M, False), ("np.einsum('ij,ij->i', a, b)", M, M, True),
    ("np.einsum('bij,jb->bi', a, b)", S, M[:, :2], True), ("np.einsum('i,j', a, b)", V, V, False),
    ("np.einsum('...ij,...jk->...ik', a, b)", S, S, True), ("np.einsum('...ij,jk->...ik', a, b)", S, M, False),
    ("np.einsum('ij->i', a) * b", M, V, None), ("np.exp(a) * b", M, M, None)]


@pytest.mark.parametrize("call, a, b, stacks", PRODUCTS)
def test_products_and_stacks_of_them(call, a, b, stacks):
    """By the axes that both operands and the result have, whatever the function is called."""
    values = [s.value for s in walk(form(f"def f(a, b):\n    return {call}", a, b).body) if isinstance(s, Let)]
    found = [said for value in values if (said := P.stacks(value)) is not None]
    assert found == ([] if stacks is None else [stacks])
    assert [P.dots_with_no_batch_dims_saveable.of_value(v) for v in values].count("") == (stacks is False)


def test_marks_go_with_derivatives_and_batches():
    """A batch, a tangent and Taylor coefficients of a checkpointed step are computed again as the step is."""
    def step(x):
        return np.tanh(np.cumsum(np.cumsum(np.cumsum(x))) ** 2)

    def run(f):
        def whole(x):
            for _ in range(9):
                x = f(x)
            return np.sum(x)
        return whole

    made = [lambda f: lambda x: np.sum(gs.vmap(run(f))(np.stack([x, x * x]))),
            lambda f: lambda x: gs.jvp(run(f), (x,), (np.cos(x),))[1],
            lambda f: lambda x: gs.jet(run(f), (x,), ((np.cos(x), x),))[1][1]]
    for make in made:
        plain, cut = gs.grad(make(step)), gs.grad(make(gs.checkpoint(step)))
        np.testing.assert_allclose(cut(X), plain(X), rtol=1e-12)
        names = re.findall(r"^ +(\w+)_saved = np.empty", cut.source_for(X), re.MULTILINE)
        assert names and all(name.split("_")[0] in ("x", "series") for name in names), cut.source
        assert re.search(r"^ +(z|cumsum\w*)_saved = ", plain.source_for(X), re.MULTILINE), plain.source


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


def until(u, w, steps):
    k = 0
    while k < steps:
        u = u + 0.01 * np.sin(w * u) - 0.01 * u ** 3
        k += 1
    return np.sum(u ** 2)


def until_halved(u, w, steps):
    k, v = 0, u * 0.5
    while np.sum(u * u) > 0.3 and k < steps:
        v, u = v - 0.01 * u * w, u * np.cos(0.1 * v)
        if k % 7 == 3:
            v = v * 1.1
        k += 1
    return np.sum(u * v) * k


@pytest.mark.parametrize("f", [simulate, two_loops, written, until, until_halved], ids=lambda f: f.__name__)
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_levels_that_are_asked_for(f, levels):
    both = (0, 1)
    plain, cut = gs.grad(f, both), gs.grad(gs.checkpoint(f, levels=levels), both)
    for steps in (0, 1, 2, 3, 9, 30, 101, 200):
        for got, want in zip(cut(U, W, steps), plain(U, W, steps)):
            np.testing.assert_array_equal(got, want)
    for got, want in zip(gs.jit(cut)(U, W, 60), plain(U, W, 60)):
        np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_memory_of_a_while_loop(levels):
    """k segments of 1, 2^(r - 1), 3^(r - 1), ... passes: about (r n)^(1/r) states a level."""
    u, w = np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000)
    cut = gs.grad(gs.checkpoint(until, levels=levels), 1)
    assert peak(cut, u, w, 1500) < (levels + 1) * (levels * 1500) ** (1 / levels) * u.nbytes + 14 * u.nbytes


def test_one_array_serves_all_segments():
    source = gs.grad(gs.checkpoint(simulate), 1).source_for(U, W, 400)
    assert source.index("u_saved_1 = np.empty((size, u.shape[0]))") < source.index("in reversed(range(segments))")
    u, w = np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000)
    assert peak(gs.grad(gs.checkpoint(simulate), 1), u, w, 2500) < (2 * 51 + 12) * u.nbytes


@pytest.mark.parametrize("budget, longest", [("1 MB", 2500), ("24 kB", 899), ("15 kB", 511)])
def test_a_later_call_that_exceeds_the_budget(budget, longest):
    """The levels are those of the first call: one that needs more states than the budget has room for is refused."""
    cut, plain = gs.grad(gs.checkpoint(simulate, budget=budget), 1), gs.grad(simulate, 1)
    for g in (cut, gs.jit(cut)):
        g(U, W, 400)
        with pytest.raises(MemoryError, match=r"too small for a loop of this length: give levels=\d"):
            g(U, W, 40 * longest)
        with pytest.raises(MemoryError):
            g(np.ones(5000), np.ones(5000), 400)
        np.testing.assert_allclose(g(U, W, 100), plain(U, W, 100), rtol=1e-12)
        np.testing.assert_allclose(g(U, W, longest), plain(U, W, longest), rtol=1e-12)
    more = gs.grad(gs.checkpoint(simulate, budget="100 kB", levels=4), 1)
    np.testing.assert_array_equal(more(U, W, 40), plain(U, W, 40))
    np.testing.assert_array_equal(more(U, W, 4000), plain(U, W, 4000))


def test_tests_of_a_budget_do_not_disturb_other_derivatives():
    f = gs.checkpoint(simulate, budget="20 kB")
    value, back = gs.vjp(lambda u: f(u, W, 200), U)
    np.testing.assert_array_equal(back(1.0)[0], gs.grad(simulate)(U, W, 200))
    assert value == simulate(U, W, 200)
    v = np.cos(U)
    got = gs.hvp(lambda u: f(u, W, 50), (U,), (v,))
    np.testing.assert_allclose(got, gs.hvp(lambda u: simulate(u, W, 50), (U,), (v,)), rtol=1e-10)
    us = np.stack([U, 0.5 * U])
    np.testing.assert_allclose(gs.vmap(gs.grad(f), (0, None, None))(us, W, 50), np.stack(
        [gs.grad(simulate)(u, W, 50) for u in us]), rtol=1e-12)


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
    with pytest.raises(gs.TransformError, match="too small: 400 passes with 400 bytes each need 11,200"):
        gs.grad(gs.checkpoint(simulate, budget=4000), 1)(U, W, 400)


@pytest.mark.parametrize("budget", ["much", "12 bits", -3, 0, 1.5, True, "MiB"])
def test_budgets_that_are_none(budget):
    with pytest.raises(gs.KindError, match="a budget is"):
        gs.checkpoint(simulate, budget=budget)


@pytest.mark.parametrize("levels", [1, 0, -2, 2.0, True, "two"])
def test_levels_that_are_none(levels):
    with pytest.raises(gs.KindError, match="levels is a whole number from 2 on"):
        gs.checkpoint(simulate, levels=levels)


def test_policies_that_are_none():
    with pytest.raises(gs.KindError, match="policy must be"):
        gs.checkpoint(layers, policy="some")
    with pytest.raises(gs.KindError, match="y can be saved or offloaded, not both"):
        moved(["y", "z"], ["y"], "disk")
    with pytest.raises(gs.KindError, match="offload_dst is disk, or one of device, pinned_host"):
        P.offload_dot_with_no_batch_dims("device", "tape")
    with pytest.raises(gs.KindError, match="names are texts in a sequence, not 'yz'"):
        moved("yz", [], "disk")
    with pytest.raises(gs.KindError, match="names are texts in a sequence, not 1"):
        P.save_only_these_names("y", 1)
    with pytest.raises(gs.KindError, match="offload_src is one of"):
        P.offload_dot_with_no_batch_dims("disk", "disk")
    with pytest.raises(gs.KindError, match="offloads"):
        P.save_from_both_policies(moved([], ["y"], "disk"), P.dots_saveable)
    with pytest.raises(gs.KindError, match="takes two of gs.checkpoint_policies"):
        P.save_from_both_policies("all", P.dots_saveable)
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
    for policy in POLICIES[3:]:
        assert repr(pickle.loads(pickle.dumps(policy))) == repr(policy)
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
    compiled = gs.jit(disk)
    for steps in (0, 1, 100):
        for got, want in zip(compiled(U, W, steps), plain(U, W, steps)):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    assert "entries_on_disk(" in compiled.lowered


def test_files_are_closed():
    """Compiled code frees the arrays in files, as Python does, also after an error."""
    disk = gs.jit(gs.grad(gs.checkpoint(simulate, offload="disk"), 1))
    want, was = disk(U, W, 50), tempfile.tempdir
    tempfile.tempdir = "/no such folder"
    try:
        with pytest.raises(FileNotFoundError):
            disk(U, W, 50)
    finally:
        tempfile.tempdir = was
    threads = [threading.Thread(target=lambda: [disk(U, W, 50) for _ in range(9)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(disk(U, W, 50), want)
    if os.path.exists("/proc/self/maps"):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            ours = [line for line in maps if line.endswith("(deleted)\n") and tempfile.gettempdir() + os.sep in line]
        assert not ours


def test_memory_holds_one_segment():
    u, w = np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000)
    disk = gs.grad(gs.checkpoint(simulate, offload="disk"), 1)
    assert peak(disk, u, w, 2500) < (51 + 12) * u.nbytes


def test_offload_that_is_none():
    with pytest.raises(gs.KindError, match="offload is 'disk' or None"):
        gs.checkpoint(simulate, offload="tape")
    with pytest.raises(gs.RuleError, match="a device has no files"):
        gs.jit(gs.grad(gs.checkpoint(simulate, offload="disk"), 1), target="cuda").source_for(U, W, 9)
