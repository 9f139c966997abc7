"""What a backward loop makes again rather than saves, by the records."""
import math
import operator

import numpy as np
import pytest

from gradscribe.ast_transform.core.alias import is_cheap
from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array, unknown
from gradscribe.ast_transform.passes.vjp.tape import decides

X, Y = (Var(n, Array(np.dtype(float), (unknown(),))) for n in "xy")
A, B = (Var(n, Array(np.dtype(float))) for n in "ab")
N = Var("n", Array(int))


@pytest.mark.parametrize("function, args", [
    (operator.add, (X, Y)), (np.add, (X, Y)), (np.transpose, (X,)), (np.swapaxes, (X, Const(0), Const(0))),
    (operator.getitem, (X, Const(1))), (np.zeros, (Const(3),)), (np.full, (Const(3), Const(1.0))),
    (operator.pow, (X, Const(2))), (np.power, (X, Const(2))), (np.maximum, (X, Y)),
])
def test_cheap(function, args):
    assert is_cheap(Apply(function, args))


@pytest.mark.parametrize("function, args", [
    (operator.pow, (X, Y)), (np.exp, (X,)), (operator.matmul, (X, Y)), (np.sum, (X,)), (np.copy, (X,)),
    (lambda x: x, (X,)), (np.sort, (X,)),
])
def test_dear(function, args):
    assert not is_cheap(Apply(function, args))


@pytest.mark.parametrize("function, args, expected", [
    (operator.lt, (A, B), True), (np.less, (A, B), True), (operator.lt, (A, Const(0)), False),
    (operator.eq, (A, Const(0)), True), (operator.lt, (N, N), False), (operator.floordiv, (A, B), True),
    (np.floor, (A,), True), (math.floor, (A,), True), (np.fix, (A,), True), (np.around, (A,), True),
    (operator.mul, (A, B), False), (operator.floordiv, (N, N), False),
])
def test_the_last_bit_decides(function, args, expected):
    assert decides(Apply(function, args)) is expected
