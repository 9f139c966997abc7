"""The emitted source of the functions in targets.py: its text, its size, and what it computes."""
import math
from dataclasses import replace
from pathlib import Path

import legibility
import numpy as np
import pytest

import gradscribe as gs

EMITTED = Path(__file__).resolve().parent / "emitted"


@pytest.mark.golden
@pytest.mark.parametrize("name", legibility.CASES)
def test_text(name, golden):
    golden(f"{name}.py", legibility.emitted(name).rstrip() + "\n")


@pytest.mark.parametrize("name", legibility.CASES)
def test_runs(name):
    case, source = legibility.CASES[name], legibility.emitted(name)
    assert not legibility.helpers(source)
    assert legibility.is_right(case, source)


def test_size():
    ratios = {name: legibility.count(legibility.emitted(name)) / legibility.size_by_hand(case)
              for name, case in legibility.CASES.items()}
    assert max(ratios.values()) <= legibility.EACH, ratios
    assert math.exp(sum(map(math.log, ratios.values())) / len(ratios)) <= legibility.MEAN, ratios


@pytest.mark.parametrize("module", ["more_targets", "ten_targets"])
def test_size_of_other_pairs(module):
    each, mean = legibility.OTHERS[module]
    found = legibility.others(module)
    assert all(agree for _, _, agree, _ in found.values())
    ratios = {name: ours / hand for name, (ours, hand, _, _) in found.items()}
    assert max(ratios.values()) <= each, ratios
    assert math.exp(sum(map(math.log, ratios.values())) / len(ratios)) <= mean, ratios


def test_no_orphans():
    assert {p.stem for p in EMITTED.glob("*.py")} <= set(legibility.CASES)


@pytest.mark.parametrize("name", legibility.CASES)
def test_what_is_written_by_hand_is_right(name):
    """The yardstick itself."""
    case = legibility.CASES[name]
    text = "\n".join(legibility.inspect.getsource(getattr(legibility.targets, g)) for g in reversed(case.hand))
    if case.data:                   # what is written by hand takes its data as arguments, in the middle
        case = replace(case, function="mlp_loss", args=(*case.args, *dict(case.data).values()), data=())
    assert legibility.is_right(case, text)


def filled(x):
    z = np.zeros(len(x))
    for k in range(1, len(x)):
        z[k] = z[k - 1] * 0.5 + x[k] ** 2
    return np.sum(z)


def counted(x, a):
    s = 0.0
    for k in range(a, len(x), 2):
        s = s + np.sin(s) * x[k]
    return s


def test_numbers_of_passes_have_names_where_they_are_read():
    """range(1, n) says how often a loop goes round, both ways; what is saved in each pass asks for a number."""
    x = np.array([0.3, 0.8, 1.1, 0.6])
    assert "len(range(" not in gs.grad(filled).source_for(x)
    np.testing.assert_allclose(gs.grad(filled)(x), [0, 2 * 0.8 * 1.75, 2 * 1.1 * 1.5, 2 * 0.6], rtol=1e-15)
    assert gs.grad(counted).source_for(x, 1).count("len(range(") == 1
