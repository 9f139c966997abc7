"""The rows of the checklist that the first document asks for."""
import fusion
import numpy as np
import pytest


@pytest.mark.parametrize("kind, apart, joined", [("instruction", (5, 4), (2, 1)), ("merger", (4, 2), (4, 1)),
                                                 ("sibling", (4, 0), (2, 0)), ("producer-consumer", (3, 1), (2, 1))])
def test_s16_kinds_of_fusion(kind, apart, joined):
    """Arrays read and written from end to end, without and with loops joined; the same values."""
    rng = np.random.default_rng(0)
    args = rng.uniform(0.5, 1.5, 100), rng.uniform(0.5, 1.5, 100)
    function = fusion.KINDS[kind]
    found = fusion.compiled(function, args)
    assert [fusion.sweeps(f.lowered) for f in reversed(found)] == [apart, joined]
    want = function(*args)
    for f in found:
        for value, expected in zip(results(f(*args)), results(want), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-14)


def results(found):
    return found if isinstance(found, tuple) else (found,)
