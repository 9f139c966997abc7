"""The emitted source of the functions in targets.py: its text, its size, and what it computes."""
import math
from dataclasses import replace
from pathlib import Path

import legibility
import pytest

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
