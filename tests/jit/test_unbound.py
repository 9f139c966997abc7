"""What is compiled, run as plain Python: an entry beyond the end is an error there; machine code finds any number."""
import linecache
import re

import fuzz
import numpy as np
import pytest
from fuzz_lowered import plain

import gradscribe as gs
from gradscribe.codegen import jit_cpu

COUNT, STEP, FIRST = 200, 5, 30060
FAMILIES = ("plain", "wide", "full")            # of the programs that failed, in turn


@pytest.fixture
def not_compiled(monkeypatch):
    monkeypatch.setattr(jit_cpu, "compiled_text", plain)


@pytest.mark.parametrize("start", [k if k == FIRST else pytest.param(k, marks=pytest.mark.slow)
                                   for k in range(FIRST, FIRST + COUNT, STEP)])
def test_random_programs(start, not_compiled):
    outcomes = {seed: fuzz.check(fuzz.make(seed, "mixed"), jit=True, what="jit") for seed in range(start, start + STEP)}
    faults = [f"seed {seed}: {o.kind}: {o.detail}" for seed, o in outcomes.items() if o.kind in ("wrong", "failed")]
    assert not faults, "\n".join(faults)
    assert any(o.kind == "right" for o in outcomes.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [30094, 30200, 30363, 102470, 104588])
def test_programs_that_failed(seed, not_compiled):
    outcome = fuzz.check(fuzz.make(seed, FAMILIES[seed % 3]), jit=True)
    assert outcome.kind == "right", outcome.detail


def emptied(a, n):
    kept = []
    for _ in range(n):
        kept.extend([np.tanh(a), np.sin(a)])
    kept.append(a)
    total = a[0]
    while len(kept) > 0:
        total = 0.7 * total + 0.3 * np.sum(kept.pop())
    return total + np.sum(kept)


def test_a_list_that_shrinks(not_compiled):
    a = np.array([0.3, 0.8, 1.1])
    for n in (1, 2, 4):
        np.testing.assert_allclose(gs.jit(gs.grad(emptied))(a, n), gs.grad(emptied)(a, n), rtol=1e-12)


@pytest.mark.slow
def test_a_list_that_shrinks_compiled():
    test_a_list_that_shrinks(None)


MOVED = ["np.pad(z, 1)", "np.roll(z, 1)", "z[::-1]", "np.concatenate([z, z])", "np.repeat(z, 2)", "np.delete(z, 1)",
         "np.tile(z, 2)", "np.take(z, np.array([2, 0]))", "np.diff(z)", "z[1:]", "np.flip(z)", "np.insert(z, 1, 7.0)",
         "np.append(z, z)", "np.rot90(np.outer(z, z))", "np.diag(z, 1)", "np.hstack([z, z])",
         "np.pad(z, 2, mode='wrap')", "np.pad(z, 1, mode='reflect')",
         "np.stack([z, z])", "np.resize(z, 7)", "np.ravel(np.outer(z, z))"]


@pytest.mark.parametrize("source", ["np.arange(4) * 0.2", "np.linspace(0.0, 1.0, 4) ** 2", "2 * np.arange(1, 5)",
                                    "np.fft.fftfreq(4) * 3.0", "1 / (1 + np.arange(4))"])
def test_entries_of_moved_expressions(source, not_compiled):
    """An index that is a sum stands in the middle of a product."""
    for moved in MOVED:
        entry = re.sub(r"\bz\b", f"({source})", moved)
        text = f"def f(x):\n    return x * {entry}\n"
        file = f"<moved {source} {moved}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        space = {"np": np, "__name__": "moved"}
        exec(compile(text, file, "exec"), space)
        np.testing.assert_allclose(gs.jit(space["f"])(1.5), space["f"](1.5), rtol=1e-12, err_msg=text)
