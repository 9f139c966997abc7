# SPDX-License-Identifier: Apache-2.0
"""When two indices are the same for certain: then one write is undone instead of two."""
import numpy as np
import pytest

from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var, same_operand

INDEX, LONG = Var("i", None), np.arange(5000)
PLACES = [None, INDEX, Var("i", None), Const(0), Const(False), Const(0.0), Const(-0.0), Const((0, 1)),
          Const((0, 2)), Const(slice(1, None)), Const(slice(1, 3)), Const((LONG, 0)), Const((LONG.copy(), 0)),
          Const(LONG), Pack("tuple", (INDEX, Const(0))), Pack("tuple", (INDEX, Const(1))), Slice(INDEX, None, None),
          Slice(None, INDEX, None)]


@pytest.mark.parametrize("k", range(len(PLACES)))
def test_each_is_the_same_as_itself_alone(k):
    assert [same_operand(PLACES[k], other) for other in PLACES] == [j == k for j in range(len(PLACES))]


def test_equal_ones_made_twice():
    assert same_operand(Const((slice(1, None), 2)), Const((slice(1, None), 2)))
    first, second = (Pack("tuple", (INDEX, Slice(Const(1), INDEX, None))) for _ in range(2))
    assert same_operand(first, second)
    assert not same_operand(Const((np.arange(5000), 0)), Const((np.arange(5000)[::-1], 0)))
