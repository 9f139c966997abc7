# SPDX-License-Identifier: Apache-2.0
"""What was made for which arguments and why, what LLVM made of it, and what inspect shows."""
import inspect
import re

import numpy as np
import pytest

import gradscribe as gs

FACTOR = 2.0


def scaled(x):
    return np.sum(FACTOR * x * x)


def total(n):
    s = 0
    for i in range(n):
        s += i
    return s


def raised(x, k):
    return np.sum(x ** k)


@pytest.mark.parametrize("make", [gs.grad, lambda f: gs.jit(gs.grad(f))], ids=["emitted", "compiled"])
def test_kinds_and_reasons(make, monkeypatch):
    fn = make(scaled)
    assert fn.versions == ()
    fn(np.ones(30))
    fn(np.ones(31))
    fn(np.ones((30, 4), np.float32))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_array_equal(fn(np.ones(30)), 6.0 * np.ones(30))
    said = [(made.kinds.split(": ")[1], made.why) for made in fn.versions]
    wide = "float32[n, m]" if make is gs.grad else "float32[n, 4]"
    assert said == [("float64[n]", "the first call"), (wide, f"x: {wide} instead of float64[n]"),
                    ("float64[n]", "FACTOR is not what it was")]
    assert {made.function for made in fn.versions} == {"grad_scaled"}


def test_lengths_that_are_known_and_static_values():
    fn = gs.jit(raised, static_argnums=1)
    for x, k in ((np.ones(3), 2), (np.ones(4), 2), (np.ones(40), 3)):
        fn(x, k)
    assert [made.why for made in fn.versions] == [
        "the first call", "x: float64[n] instead of float64[3]", "k: 3 instead of 2"]


def test_containers_have_kinds():
    fn = gs.grad(lambda p: np.sum(p["w"]) * p["b"][0])
    fn({"w": np.ones(3), "b": (2.0, None)})
    assert fn.versions[0].kinds == "p: {w: float64[n], b: (float, None)}"


def test_a_loop_that_llvm_has_summed():
    fn = gs.jit(total)
    assert fn.llvm == "; not called yet"
    assert fn(100) == 4950
    body = fn.llvm.split("ret i32")[0]
    assert " mul " in body
    label = re.search(r"^(\w+):\s*; preds = .*%\1\b", body, re.M)
    assert label is None                # no block goes back to itself
    again = gs.jit(total)               # from the disk, where the IR is not kept
    again(100)
    assert " mul " in again.llvm


def test_inspect_shows_the_emitted_function():
    fn = gs.grad(scaled)
    before = inspect.getsource(fn)
    assert before.startswith("def grad_scaled(x):\n")
    fn(np.ones((2, 2)))
    assert inspect.getsource(fn) in fn.source
    assert inspect.getsource(gs.jit(fn)) == inspect.getsource(fn)
    assert inspect.getsource(gs.jit(scaled)) == inspect.getsource(scaled)
    assert str(inspect.signature(fn)) == "(x)" and fn.__name__ == "grad_scaled"


def test_jax_s_arguments_of_initialize(monkeypatch):
    from gradscribe import distributed, machine

    class World:
        size, rank, deadline = 2, 1, None
    monkeypatch.setitem(machine.RUN, "world", World())
    gs.distributed.initialize(coordinator_address="10.0.0.1:1234", num_processes=2, process_id=1, deadline=7)
    assert distributed.RUN["world"].deadline == 7
    gs.distributed.initialize("10.0.0.1:1234", 2, 1)
    with pytest.raises(ValueError, match="num_processes is 4, and MPI says 2"):
        gs.distributed.initialize(num_processes=4)
    with pytest.raises(TypeError, match="deadline="):
        gs.distributed.initialize(60)
