"""np.clip with one limit: None is one that there is not, however it is given."""
import numpy as np
import pytest

import gradscribe as gs

LIMITED = {
    "words of old": lambda x: np.clip(x, a_min=0.3, a_max=None),
    "the other": lambda x: np.clip(x, a_min=None, a_max=1.5),
    "one in its place": lambda x: np.clip(x, 0.3, a_max=None), "new words": lambda x: np.clip(x, min=0.3),
    "a method": lambda x: x.clip(0.3), "a method's words": lambda x: x.clip(min=0.3, max=None),
    "a method's other word": lambda x: x.clip(max=1.5), "both": lambda x: x.clip(0.3, 1.5)}


@pytest.mark.parametrize("name", LIMITED)
def test_one_limit(name):
    x = np.array([-1.0, 0.3, 0.7, 2.0])
    inside = (LIMITED[name](x) == x).astype(float)
    inside[1] = 0.5 if inside[1] and LIMITED[name](x)[0] != x[0] else inside[1]
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(LIMITED[name](x)))(x), inside)
    np.testing.assert_array_equal(gs.jit(LIMITED[name])(x), LIMITED[name](x))
