"""Mixed second derivatives do not depend on the order: of every record of two numbers or more, at all its samples.

First derivatives that are right everywhere may differ from what their text says at one point, as `x / where(x == 0, 1,
y)` does: its derivative in x is not 1 / y where x is 0.
"""
import itertools

import numpy as np
import pytest
from rule_calls import call_of, from_text
from rules.test_standalone import TABLE

import gradscribe as gs

BINARY = [r for r in TABLE if r.has_derivative() and len(r.signature.parameters) > 1]
CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in BINARY
         for k in range(len(r.samples(np.random.default_rng(0))))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule, case", CASES)
def test_order_does_not_matter(rule, case):
    args, kwargs = rule.samples(np.random.default_rng(7))[case]
    call, given = call_of(rule.function, args, kwargs)
    moving = [k for k, v in enumerate(given) if np.asarray(v).dtype == np.float64]
    rng = np.random.default_rng(1)
    names = ", ".join(f"a{k}" for k in range(len(given)))
    for i, j in itertools.combinations(moving, 2):
        found = []
        dots = {k: rng.standard_normal(np.shape(given[k]))[()] for k in (i, j)}
        try:
            for first, second in ((i, j), (j, i)):
                along = from_text(
                    f"def along({names}):\n    def one(a{first}):\n        return call({names})\n"
                    f"    return gs.jvp(one, (a{first},), (dx,))[1]\n",
                    "along", {"call": call, "gs": gs, "dx": dots[first]})
                fixed = from_text(
                    f"def fixed(a{second}):\n    return along({names})\n", "fixed",
                    {"along": along, **{f"a{k}": v for k, v in enumerate(given) if k != second}})
                found.append(gs.jvp(fixed, (given[second],), (dots[second],))[1])
        except gs.TransformError as error:
            pytest.skip(str(error).splitlines()[0])
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
