"""Random programs about what shares memory with what: a sample of `make fuzz`, against NumPy and differences."""
import fuzz
import numpy as np
import pytest
from fuzz_memory import Memory
from fuzz_oracles import Program, owned
from fuzz_programs import Case

COUNT, STEP, COMPILED = 60, 10, 4


@pytest.mark.parametrize("start", range(0, COUNT, STEP))
def test_random_programs_that_share_memory(start):
    outcomes = {seed: fuzz.check(fuzz.make(seed, "memory")) for seed in range(start, start + STEP)}
    faults = [f"seed {seed}: {o.kind}: {o.detail}" for seed, o in outcomes.items() if o.kind in ("wrong", "failed")]
    assert not faults, "\n".join(faults)
    assert sum(o.kind == "right" for o in outcomes.values()) >= STEP // 3, [o.detail for o in outcomes.values()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT, COUNT + COMPILED))
def test_random_programs_that_share_memory_compiled(seed):
    outcome = fuzz.check(fuzz.make(seed, "memory"), what="jit")
    assert outcome.kind not in ("wrong", "failed"), outcome.detail


def test_a_program_runs_as_it_was_written():
    """Every line was kept because NumPy ran it, so nearly every program runs with other numbers of the same shapes."""
    import random
    runs = 0
    for seed in range(40):
        source, tree, _ = Memory(random.Random(seed)).program()
        space = fuzz.compiled(Case(seed, source, [], (), {}, "float64", "memory"))
        try:
            with np.errstate(all="ignore"):
                space["f"](*[np.full(shape, 0.3) if shape else 0.3 for shape in tree.values()])
            runs += 1
        except (IndexError, ValueError, UnboundLocalError):
            pass
    assert runs >= 30


def sample(source):
    return Program(Case(0, source, [np.array([0.5, -0.2, 0.8])], (0,), {}, "float64", "memory"))


def test_the_oracle_of_ownership_is_not_blind():
    p = sample("W = np.ones(3)\n\n\ndef f(x):\n    return np.sum(x * W)\n")
    owned(p, lambda x: p.space["W"].copy(), "a copy", True)
    with pytest.raises(fuzz.Wrong, match="a constant of the program"):
        owned(p, lambda x: p.space["W"], "a constant", True)
    with pytest.raises(fuzz.Wrong, match="is an argument"):
        owned(p, lambda x: x[:1], "a view", True)
    with pytest.raises(fuzz.Wrong, match="share memory"):
        owned(p, lambda x: (lambda a: (a, a[::-1]))(np.ones(3)), "twice the same", True)
    with pytest.raises(fuzz.Wrong, match="may not be written into"):
        owned(p, lambda x: np.broadcast_to(1.0, (3,)), "a broadcast", True)
    with pytest.raises(fuzz.Wrong, match="called again"):
        state = np.zeros(3)
        owned(p, lambda x: state, "an array that is kept", True)


def test_the_reference_is_the_gradient_of_what_numpy_does():
    """A write through a view, after the array was read."""
    p = sample("def f(x):\n    a = x * 2.0\n    s = np.sum(a ** 2)\n    a[::-1][0] = 0.0\n    return s + np.sum(a)\n")
    np.testing.assert_allclose(p.want, 8 * np.array([0.5, -0.2, 0.8]) + [2.0, 2.0, 0.0], rtol=1e-7)
