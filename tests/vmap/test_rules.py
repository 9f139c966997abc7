"""Whole-batch forms of every rule against a loop over the examples: batches of several sizes, batches of batches."""
import batches
import pytest
from rule_calls import call_of, samples_of

from gradscribe.ast_transform.core.rule import RULES

RECORDS = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None]
CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in RECORDS for k in range(len(samples_of(r)))]
pytestmark = pytest.mark.filterwarnings("ignore")


def faults(rule, k, sizes, twice):
    count = len(call_of(rule.function, *samples_of(rule)[k])[1])
    for axes in batches.ways(count):
        for n in sizes:
            kind, detail = batches.check(rule, k, axes, n, twice)
            if kind == "wrong":
                yield f"{axes}, {n}{' of 2' if twice else ''}: {detail}"


@pytest.mark.parametrize("rule", [pytest.param(r, id=r.label) for r in RECORDS])
def test_batch(rule):
    assert not list(faults(rule, 0, (3,), False))


@pytest.mark.slow
@pytest.mark.parametrize("rule, k", CASES)
def test_batch_of_each_size(rule, k):
    """By one transformation, and by one for each number of examples that needs its own."""
    assert not list(faults(rule, k, (3, 0, 1, 7), False))


@pytest.mark.slow
@pytest.mark.parametrize("rule, k", CASES)
def test_batch_of_batches(rule, k):
    assert not list(faults(rule, k, (3,), True))
