"""Random programs: a sample of `benchmarks/fuzz.py`, which runs them by the thousand."""
import os
import re
import subprocess
import sys

import fuzz
import fuzz_calls
import fuzz_layers
import pytest

COUNT, COMPILED, STEP = 100, 6, 5
FAST = 30

chunks = pytest.mark.parametrize("start", [k if k == FAST else pytest.param(k, marks=pytest.mark.slow)
                                           for k in range(0, COUNT, STEP)])


def run(start, family):
    outcomes = {seed: fuzz.check(fuzz.make(seed, family)) for seed in range(start, start + STEP)}
    faults = [f"seed {seed}: {o.kind}: {o.detail}" for seed, o in outcomes.items() if o.kind in ("wrong", "failed")]
    assert not faults, "\n".join(faults)
    return outcomes


@chunks
def test_random_programs(start):
    outcomes = run(start, "plain")
    assert sum(o.kind == "right" for o in outcomes.values()) >= STEP // 3, [o.detail for o in outcomes.values()]


@chunks
def test_random_programs_that_write(start):
    outcomes = run(start, "wide")
    assert any(o.kind == "right" for o in outcomes.values()), [o.detail for o in outcomes.values()]


@chunks
def test_random_programs_of_the_whole_language(start):
    outcomes = run(start, "full")
    assert any(o.kind == "right" for o in outcomes.values()), [o.detail for o in outcomes.values()]


@chunks
def test_random_programs_of_loops_over_rows(start):
    outcomes = run(start, "loops")
    assert any(o.kind == "right" for o in outcomes.values()), [o.detail for o in outcomes.values()]


@chunks
def test_random_programs_that_write_regions(start):
    outcomes = run(start, "regions")
    assert any(o.kind == "right" for o in outcomes.values()), [o.detail for o in outcomes.values()]


@chunks
def test_batches_of_random_programs(start):
    """A batch of a program, and of its gradient, is what a loop over the examples gives."""
    outcomes = {seed: fuzz.check(fuzz.make(seed, "mixed"), what="vmap") for seed in range(start, start + STEP)}
    faults = [f"seed {seed}: {o.kind}: {o.detail}" for seed, o in outcomes.items() if o.kind in ("wrong", "failed")]
    assert not faults, "\n".join(faults)
    assert any(o.kind == "right" for o in outcomes.values()), [o.detail for o in outcomes.values()]


@pytest.mark.slow
def test_random_programs_over_lists_of_layers():
    outcomes = {seed: fuzz_layers.check(seed, jit=2) for seed in range(200)}
    assert not {seed: o for seed, o in outcomes.items() if o[0] in ("wrong", "failed")}
    assert sum(kind == "right" for kind, _ in outcomes.values()) > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 200 + COMPILED))
def test_random_programs_compiled(seed):
    outcome = fuzz.check(fuzz.make(seed), jit=True)
    assert outcome.kind not in ("wrong", "failed"), outcome.detail


@pytest.mark.parametrize("family", ["plain", "wide", "full", "loops", "mixed"])
def test_the_same_seed_gives_the_same_program(family):
    here = "".join(fuzz.make(seed, family).source for seed in range(10))
    code = f"import sys, fuzz; sys.stdout.write(''.join(fuzz.make(seed, {family!r}).source for seed in range(10)))"
    there = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
                           capture_output=True, text=True, check=True)
    assert there.stdout == here


def test_the_reference_knows_a_wrong_gradient():
    """The check is not blind: a gradient off in one term is reported."""
    case = fuzz.make(1)
    with pytest.raises(fuzz.Wrong):
        fuzz.expect([1.0, 2.0, 3.0 + 1e-5], [1.0, 2.0, 3.0], 1e-6, "grad")
    with pytest.raises(fuzz.Wrong):
        fuzz.same_structure(case.args[:-1], case.args, "grad")


@pytest.mark.slow
def test_random_calls_of_single_functions():
    """In a process of its own: rules that other tests have added are not drawn from."""
    ran = subprocess.run([sys.executable, fuzz_calls.__file__, "--count", "200"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert int(re.search(r"(\d+) right", ran.stdout)[1]) > 500
