"""What records say of lengths that no example can tell: of rows that only a run knows, and of an argument's."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import UNIT, Array, Length, Symbol, unknown
from gradscribe.ast_transform.passes.described import Unfit
from gradscribe.ast_transform.passes.types import infer
from gradscribe.ast_transform.rules.lengths import fact_of_delete

F32 = np.dtype(np.float32)
N, K = Length(Symbol("n")), Length(Symbol("k", True, 4))


def array(*dims):
    return Var("x", Array(F32, dims))


def number(length):
    return Var("n", Array(int, (), length))


def same(fact, *dims):
    return fact.dtype == F32 and len(fact.dims) == len(dims) and all(a.same(b) for a, b in zip(fact.dims, dims))


@pytest.mark.parametrize("shape, dims", [
    (Pack("tuple", (number(K), number(N))), (K, N)), (Pack("tuple", (number(N), Const(-1))), (N, K)),
    (Pack("list", (Const(-1), number(K), Const(1))), (N, K, UNIT)), (Pack("tuple", (Const(-1), number(K), number(N))),
                                                                     (UNIT, K, N))])
def test_reshape(shape, dims):
    assert same(infer(np.reshape, [array(N, K), shape]), *dims)
    assert same(infer(np.reshape, [array(N, K)], (("shape", shape),)), *dims)


def test_the_rest_of_numbers():
    three, eight = Length(None, 3), Length(None, 8)
    assert same(infer(np.reshape, [array(three, eight), Const((-1, 4))]), Length(None, 6), Length(None, 4))
    assert same(infer(np.reshape, [array(three, eight), Const(-1)]), Length(None, 24))
    rest = infer(np.reshape, [array(N, K), Const((-1, 2))]).dims[0]
    assert not rest.same(N) and not rest.same(K) and rest.size is None


def test_broadcast_to():
    m = unknown("m", True)
    found = infer(np.broadcast_to, [array(m), Pack("tuple", (number(N), number(K)))])
    assert same(found, N, K) and m.same(K)              # they must be equal, and so they are
    with pytest.raises(Unfit, match=r"does not broadcast to"):
        infer(np.broadcast_to, [array(K), Const((3, 5))])


def test_broadcast_arrays():
    a, b = infer(np.broadcast_arrays, [array(K), Var("y", Array(float, (N, UNIT)))]).elements
    assert same(a, N, K) and b.dtype == np.float64 and b.dims == a.dims


@pytest.mark.parametrize("by, function, more", [(-1, np.delete, ()), (1, np.insert, (Const(1.5),))],
                         ids=["delete", "insert"])
def test_one_entry_less_or_more(by, function, more):
    assert same(infer(function, [array(N.plus(2), K), number(unknown()), *more], (("axis", Const(0)),)),
                N.plus(2 + by), K)
    assert same(infer(function, [array(K.plus(1)), Const(1), *more]), K.plus(1 + by))
    several = infer(function, [array(K), Var("i", Array(np.dtype(int), (N,))), *more])
    assert not several.dims[0].same(K.plus(by))
    flat = infer(function, [array(K, N), Const(1), *more])
    assert flat.rank == 1 and not flat.dims[0].same(K.plus(by))


def test_split():
    parts = infer(np.split, [array(K, N), Const(3)], (("axis", Const(1)),)).elements
    assert len(parts) == 3 and all(same(p, K, parts[0].dims[1]) for p in parts)


@pytest.mark.parametrize("k", [0, 1])
def test_an_axis_that_is_an_argument(k):
    """It is not the same as no axis, where the result is flat."""
    def f(x, k):
        return np.sum(np.delete(x, 0, axis=k) ** 2) + np.sum(np.insert(x, 0, 2.0, axis=k) ** 3)

    x = np.arange(6.0).reshape(2, 3)
    want = [(f(x + h, k) - f(x - h, k)) / 2e-6 for h in 1e-6 * np.eye(6).reshape(6, 2, 3)]
    np.testing.assert_allclose(np.ravel(gs.grad(f)(x, k)), want, rtol=1e-6, atol=1e-7)


def test_an_axis_that_only_a_run_knows():
    def f(x, n):
        return sum(np.sum(np.delete(x, 0, axis=k) ** 2) for k in range(n))

    with pytest.raises(gs.TransformError, match="axis of np.delete must be known"):
        gs.grad(f)(np.ones((40, 3)), 2)
    assert fact_of_delete(array(N, K).fact, Array(int), Array(int, (), unknown())) is None
