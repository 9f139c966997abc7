"""What is taken for certain of a result's shape and dtype is so, for every sample and for others of the same kinds."""
import numpy as np
import pytest
from rule_calls import call_of, leaves, samples_of

from gradscribe.ast_transform.core.form import Pack
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import describe, fact_of
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.source.diagnose import TransformError

CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in dict.fromkeys(RULES.values()) if r.samples is not None
         for k in range(len(samples_of(r)))]


def facts_in(node):
    if isinstance(node, Pack):
        for item in node.items:
            yield from facts_in(item)
    else:
        yield from arrays_in(fact_of(node))


def arrays_in(fact):
    if isinstance(fact, Sequence):
        for element in fact.elements:
            yield from arrays_in(element)
    else:
        yield fact


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule, k", CASES)
def test_facts_hold(rule, k):
    function, given = call_of(rule.function, *samples_of(rule)[k])
    names = [f"a{n}" for n in range(len(given))]
    try:
        made = Pipeline().normal_form(function, names, [describe(v, n) for v, n in zip(given, names)], {}, "call")
    except TransformError as error:
        pytest.skip(str(error).splitlines()[0])
    facts = list(facts_in(made.result))
    for seed in range(3):
        args = given if not seed else call_of(rule.function, *samples_of(rule, seed)[k])[1]
        if any(np.shape(a) != np.shape(b) for a, b in zip(args, given)):
            continue
        values = list(leaves(function(*args)))
        assert len(values) == len(facts)
        for value, fact in zip(values, facts):
            if not isinstance(fact, Array):
                continue
            assert np.ndim(value) == fact.rank
            for n, d in zip(np.shape(value), fact.dims):
                assert d.size in (None, n) or d.size == -1, f"{fact.dims} for {np.shape(value)}"    # np.diff of none
                assert not d.many or n != 1
            if not fact.weak and fact.dims:
                assert value.dtype == fact.dtype or rule.options.get("complex_result") and fact.kind == "c"
