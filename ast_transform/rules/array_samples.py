# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of rules for arrays: each function takes a generator and returns a list of (args, kwargs).

They include axes of length 0 and 1 wherever the function is defined for them.
"""
import numpy as np


def _call(*args, **kwargs):
    return args, kwargs


def _complex(rng, shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


# --- reductions -------------------------------------------------------------------------------------------------------

def filled_reductions(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(1)), _call(x((3, 4))), _call(x((3, 4)), 0), _call(x((3, 4)), axis=1),
            _call(x((3, 4)), axis=-1, keepdims=True), _call(x((3, 3)), axis=0, keepdims=True),
            _call(x((2, 3, 4)), axis=(0, 2)), _call(x((2, 3, 4)), axis=(0, 1)), _call(x((2, 3, 4)), axis=1),
            _call(x((2, 1, 4)), axis=(1, 2)), _call(x((1, 4)), axis=0), _call(x((3, 1)), axis=1),
            _call(x((2, 3)), axis=()),
            _call(x((0, 4)), axis=1), _call(x((3, 4)), keepdims=True), _call(x((2, 3, 4)), axis=(-1, 0), keepdims=True)]


def reductions(rng):
    x = rng.standard_normal
    return [*filled_reductions(rng), _call(x(0)), _call(x((3, 0)), axis=1), _call(x((0, 3)), axis=0),
            _call(_complex(rng, (2, 3)), axis=1)]


def variances(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(5), ddof=1), _call(x((3, 4)), 0), _call(x((3, 4)), axis=1),
            _call(x((3, 4)), axis=-1, ddof=1), _call(x((3, 4)), axis=1, keepdims=True),
            _call(x((2, 3, 4)), axis=(0, 2)), _call(x((2, 3, 4)), axis=(1, 2), ddof=1), _call(x((3, 4)), keepdims=True),
            _call(x((0, 4)), axis=1), _call(_complex(rng, 5)), _call(_complex(rng, (3, 4)), axis=1, ddof=1)]


def averages(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x((3, 4)), 1), _call(x((3, 4)), weights=1 + rng.random((3, 4))),
            _call(x((3, 4)), axis=0, weights=1 + rng.random(3)), _call(x((3, 4)), axis=1, weights=1 + rng.random(4)),
            _call(x(4), weights=1 + rng.random(4)), _call(x((3, 4)), axis=0, weights=1 + rng.random((3, 4))),
            _call(x((3, 4, 2)), axis=(0, 1), weights=1 + rng.random((3, 4)))]


def scans(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(1)), _call(x(0)), _call(x((3, 4))), _call(x((3, 4)), axis=0),
            _call(x((3, 4)), axis=-1), _call(x((2, 3, 4)), 1), _call(x((2, 0, 4)), axis=1), _call(_complex(rng, 3))]


def diffs(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(5), n=2), _call(x(1)), _call(x(0)), _call(x(1), n=2), _call(x((3, 4))),
            _call(x((3, 4)), axis=0), _call(x((3, 4)), 2, 1), _call(x((2, 3, 4)), axis=1), _call(x((2, 3, 4)), n=3),
            _call(x(4), n=0)]


def traces(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((3, 4))), _call(x((4, 3)), offset=1), _call(x((4, 3)), offset=-2),
            _call(x((0, 0))), _call(x((3, 4)), 1, 1, 0), _call(x((2, 3, 4))), _call(x((2, 3, 4)), axis1=1, axis2=2),
            _call(x((2, 3, 4)), 1, -1, 0), _call(x((1, 1)))]


def extremes(rng):
    """With ties, which share the derivative: the central difference is the mean of both sides."""
    two = np.array([[1.0, 3.0, 3.0, 1.0], [-2.0, 0.5, -2.0, 0.5]])
    return [*filled_reductions(rng), _call(two[0]), _call(two, axis=1), _call(two, axis=1, keepdims=True)]


def products(rng):
    x = rng.standard_normal
    one, two = x(5), x((3, 4))
    one[2] = 0.0
    two[1, 1:3] = 0.0
    return [*filled_reductions(rng), _call(one), _call(two), _call(two, axis=1), _call(two, axis=0), _call(x(0)),
            _call(x((3, 0)), axis=1), _call(two[1]), _call(np.asarray(x()))]


def scan_products(rng):
    x = rng.standard_normal
    one, two = x(5), x((3, 4))
    one[2] = 0.0
    two[1, 1:3] = 0.0
    return [*scans(rng), _call(one), _call(two, axis=1), _call(two, axis=0), _call(two)]


def sorts(rng):
    x = rng.standard_normal
    return [_call(x(6)), _call(x(1)), _call(x(0)), _call(x((3, 4))), _call(x((3, 4)), axis=0),
            _call(x((3, 4)), axis=None), _call(x((2, 3, 4)), 1), _call(x((2, 0)))]


def medians(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(6)), _call(x(1)), _call(x((3, 4))), _call(x((3, 4)), axis=0), _call(x((3, 4)), axis=1),
            _call(x((2, 3, 4)), axis=1, keepdims=True), _call(x((3, 3)), keepdims=True), _call(x((0, 3)), axis=1)]


# --- products ---------------------------------------------------------------------------------------------------------

def _pairs(rng, shapes):
    return [_call(rng.standard_normal(a), rng.standard_normal(b)) for a, b in shapes]


_UP_TO_MATRICES = [((3,), (3,)), ((0,), (0,)), ((1,), (1,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)),
                   ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 3), (3, 1)), ((3, 3), (3, 3)), ((2, 1), (1,))]


def matmul_ranks(rng):
    stacks = [((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
              ((1, 2, 3), (5, 3, 4)), ((6, 5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
              ((6, 5, 2, 3), (3,)), ((3,), (6, 5, 3, 4)), ((0, 2, 3), (3, 4)),
              ((6, 5, 2, 3), (3, 4)), ((2, 3), (6, 5, 3, 4)), ((6, 1, 2, 3), (1, 5, 3, 4))]
    return [*_pairs(rng, _UP_TO_MATRICES + stacks), _call(_complex(rng, (2, 3)), _complex(rng, (3, 2)))]


def dot_ranks(rng):
    more = [((), (3,)), ((2, 3), ()), ((), ()), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((5, 2, 3), (3, 4)),
            ((2, 3), (5, 3, 4)), ((5, 2, 3), (6, 3, 4))]
    return [*_pairs(rng, _UP_TO_MATRICES + more), _call(_complex(rng, (2, 3)), _complex(rng, 3))]


def inner_ranks(rng):
    return _pairs(rng, [((3,), (3,)), ((0,), (0,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (4, 3)), ((), (3,)),
                        ((2, 3), ()), ((5, 2, 3), (3,)), ((3,), (5, 2, 3)), ((5, 2, 3), (4, 3)),
                        ((2, 3), (5, 4, 3)), ((1, 1), (1, 1))])


def outer_ranks(rng):
    return [*_pairs(rng, [((3,), (4,)), ((1,), (4,)), ((0,), (4,)), ((2, 3), (4,)), ((3,), (2, 2)), ((), (3,))]),
            _call(_complex(rng, 2), _complex(rng, 3))]


def vdot_ranks(rng):
    return _pairs(rng, [((3,), (3,)), ((2, 3), (2, 3)), ((0,), (0,))])


def tensordots(rng):
    x = rng.standard_normal
    return [_call(x((2, 3, 4)), x((3, 4, 5))), _call(x((2, 3)), x((3, 4)), 1), _call(x((2, 3)), x((4, 5)), axes=0),
            _call(x((2, 3, 4)), x((4, 5, 2)), ([0, 2], [2, 0])),
            _call(x((2, 3, 4)), x((4, 5, 2)), axes=([2, 0], [0, 2])),
            _call(x((3, 4, 2)), x((4, 3)), axes=((0, 1), (1, 0))), _call(x((2, 3)), x((2, 3)), axes=2),
            _call(x((2, 3)), x((5, 3)), (1, 1)), _call(x((2, 3)), x((5, 3)), axes=(-1, -1)),
            _call(x((2, 0)), x((0, 3)), 1)]


def einsums(rng):
    x = rng.standard_normal
    return [_call("ij,jk->ik", x((2, 3)), x((3, 4))), _call("ij,jk", x((2, 3)), x((3, 4))), _call("ii->", x((3, 3))),
            _call("ii", x((3, 3))), _call("ii->i", x((3, 3))), _call("ij->", x((2, 3))), _call("ij->j", x((2, 3))),
            _call("ij->ji", x((2, 3))), _call("ba", x((2, 3))), _call("i,j->", x(2), x(3)), _call("i,i->", x(3), x(3)),
            _call("bij,bjk->bik", x((5, 2, 3)), x((5, 3, 4))), _call("...ij,...jk->...ik", x((5, 2, 3)), x((3, 4))),
            _call("...ij,jk", x((6, 5, 2, 3)), x((3, 4))), _call("i,ij,j->", x(2), x((2, 3)), x(3)), _call("i->", x(3)),
            _call("kij,kj->ki", x((4, 2, 3)), x((4, 3))), _call("iij->j", x((2, 2, 3))), _call("iii->i", x((2, 2, 2))),
            _call("iijj->ij", x((2, 2, 3, 3))), _call("iij,jk->ik", x((2, 2, 3)), x((3, 4))),
            _call("ij,ij->i", x((2, 3)), x((1, 3))),
            _call("ij,jk,kl->il", x((2, 3)), x((3, 4)), x((4, 2)), optimize=True), _call("ij->i", x((0, 3))),
            _call("i,i->i", _complex(rng, 3), _complex(rng, 3)), _call("...->...", x((2, 3))),
            _call("ij,->ij", x((2, 3)), x(())), _call("...i->...", x((2, 3))), _call("...ii->...i", x((2, 3, 3)))]


def krons(rng):
    return _pairs(rng, [((2,), (3,)), ((2, 3), (4, 5)), ((1,), (3,)), ((1, 2), (3, 1)), ((0,), (3,)),
                        ((), (3,)), ((2, 3), ()), ((2,), (3, 2)), ((2, 3), (2,))])


def crosses(rng):
    return _pairs(rng, [((3,), (3,)), ((4, 3), (3,)), ((3,), (4, 3)), ((4, 3), (4, 3)),
                        ((4, 3), (1, 3)), ((0, 3), (3,)), ((2,), (2,)), ((4, 2), (4, 2)), ((2,), (3,))]) + [
        _call(rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), 0, 0, 0),
        _call(rng.standard_normal((3, 2)), rng.standard_normal((2, 3)), 0, 1, 0)]


def convolutions(rng):
    x = rng.standard_normal
    lengths = [(5, 3), (3, 5), (4, 2), (2, 4), (3, 3), (1, 4), (4, 1), (1, 1)]
    return [*(_call(x(n), x(m), mode) for mode in ("full", "same", "valid") for n, m in lengths),
            _call(_complex(rng, 4), _complex(rng, 2))]


def correlations(rng):
    x = rng.standard_normal
    return [_call(x(5), x(3)), _call(x(3), x(5)), _call(x(5), x(3), "full"), _call(x(3), x(5), mode="full"),
            _call(x(3), x(3))]


# --- shapes -----------------------------------------------------------------------------------------------------------

def reshapes(rng):
    x = rng.standard_normal
    return [_call(x((2, 3)), (3, 2)), _call(x((2, 3)), -1), _call(x(6), (2, -1)), _call(x((2, 3)), (6,), order="F"),
            _call(x((0, 3)), (3, 0)), _call(x(1), ()), _call(x(()), (1, 1)), _call(x((2, 3, 4)), shape=(4, 6))]


def ravels(rng):
    x = rng.standard_normal
    return [_call(x((2, 3))), _call(x((2, 3)), "F"), _call(x(3)), _call(x((0, 3))), _call(x(()))]


def expansions(rng):
    x = rng.standard_normal
    return [_call(x(3), 0), _call(x(3), 1), _call(x(3), axis=-1), _call(x((2, 3)), 1), _call(x((2, 3)), (0, -1)),
            _call(x(0), 0)]


def squeezes(rng):
    x = rng.standard_normal
    return [_call(x((1, 3))), _call(x((3, 1)), 1), _call(x((1, 3, 1)), axis=0), _call(x((1, 3, 1)), axis=(0, 2)),
            _call(x((1, 3, 1))), _call(x((2, 3))), _call(x((1, 1))), _call(x((0, 1)), axis=-1)]


def any_ranks(rng):
    return [_call(rng.standard_normal(s)) for s in [(), (3,), (2, 3), (2, 3, 4), (1,), (0,), (0, 2)]]


def matrices(rng):
    shapes = [(2, 3), (3, 3), (1, 3), (0, 3), (3, 2, 4)]
    return [*(_call(rng.standard_normal(s)) for s in shapes), _call(_complex(rng, (2, 3)))]


def permutations(rng):
    x = rng.standard_normal
    return [_call(x((2, 3))), _call(x(3)), _call(x((2, 3, 4))), _call(x((2, 3, 4)), (1, 2, 0)),
            _call(x((2, 3, 4)), axes=(0, -1, 1)), _call(x((2, 3)), (1, 0)), _call(x((0, 3))), _call(x((2, 3)), (0, 1)),
            _call(_complex(rng, (2, 3)))]


def swaps(rng):
    x = rng.standard_normal
    return [_call(x((2, 3)), 0, 1), _call(x((2, 3, 4)), 0, -1), _call(x((2, 3, 4)), 1, 1), _call(x((0, 3)), 0, 1)]


def moves(rng):
    x = rng.standard_normal
    return [_call(x((2, 3, 4)), 0, -1), _call(x((2, 3, 4)), 2, 0), _call(x((2, 3, 4)), (0, 1), (2, 0)),
            _call(x((2, 3)), 0, 0)]


def flips(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x((2, 3))), _call(x((2, 3)), 0), _call(x((2, 3)), axis=-1),
            _call(x((2, 3, 4)), axis=(0, 2)), _call(x(0)), _call(x(1))]


def rotations(rng):
    x = rng.standard_normal
    return [_call(x((2, 3))), _call(x((2, 3)), 2), _call(x((2, 3)), k=-1), _call(x((2, 3, 4)), 1, (1, 2)),
            _call(x((2, 3)), 0)]


def rolls(rng):
    x = rng.standard_normal
    return [_call(x(5), 2), _call(x(5), -1), _call(x((2, 3)), 1), _call(x((2, 3)), 1, axis=1),
            _call(x((2, 3)), (1, 2), (0, 1)), _call(x(0), 1), _call(x((2, 3)), shift=4, axis=0), _call(x(1), 3)]


def joins(rng):
    x = rng.standard_normal
    return [_call((x(3), x(2))), _call((x(3), x(0), x(1))), _call((x(2), x(3), x(1))), _call((x(3),)),
            _call((x((2, 3)), x((2, 1)), x((2, 2))), 1),
            _call((x((2, 3)), x((4, 3)))), _call((x((2, 3)), x((2, 4))), axis=-1),
            _call((x((2, 3, 4)), x((2, 3, 1)), x((2, 3, 2))), axis=2),
            _call((x((2, 3, 4, 1)), x((2, 3, 5, 1)), x((2, 3, 1, 1))), axis=2),
            _call((x((2, 3)), x(2), x((1, 2))), axis=None), _call((x((2, 3)), x((0, 3)))),
            _call((_complex(rng, 2), _complex(rng, 3)))]


def stacks(rng):
    x = rng.standard_normal
    return [_call((x(3), x(3))), _call((x(3), x(3), x(3)), 1), _call((x(()), x(()))),
            _call((x((2, 3)), x((2, 3))), axis=-1), _call((x(0), x(0))), _call((x(3),)),
            _call((x((2, 3)), x((2, 3))), axis=1)]


def vectors_and_matrices(rng):
    x = rng.standard_normal
    return [_call((x(3), x(3))), _call((x((2, 3)), x((1, 3)))), _call((x((2, 3)), x(3))), _call((x(()), x(()))),
            _call((x((2, 3, 4)), x((1, 3, 4))))]


def equal_ranks(rng):
    x = rng.standard_normal
    return [_call((x(3), x(3))), _call((x((2, 3)), x((2, 3)))), _call((x(()), x(()))),
            _call((x((2, 3, 1)), x((2, 3, 1))))]


def columns(rng):
    x = rng.standard_normal
    return [_call((x(3), x(3))), _call((x((2, 3)), x(2))), _call((x((2, 3)), x((2, 1)))), _call((x(0), x(0)))]


def appended(rng):
    x = rng.standard_normal
    return [_call(x(3), x(2)), _call(x((2, 3)), x(2)), _call(x((2, 3)), x((1, 3)), axis=0),
            _call(x((2, 3)), x((2, 1)), 1)]


def splits(rng):
    x = rng.standard_normal
    return [_call(x(6), 3), _call(x(6), [2, 3]), _call(x((2, 6)), 2, 1), _call(x((2, 6)), (1, 4), axis=-1),
            _call(x((4, 3)), 2), _call(x(0), 2), _call(x(3), 1), _call(x(5), [0, 7])]


def uneven_splits(rng):
    x = rng.standard_normal
    return [*splits(rng), _call(x(7), 3), _call(x((2, 5)), 3, axis=1)]


def matrix_splits(rng):
    x = rng.standard_normal
    return [_call(x((4, 6)), 2), _call(x((4, 6)), [1, 3])]


def broadcasts(rng):
    x = rng.standard_normal
    return [_call(x(3), (2, 3)), _call(x(()), (2, 3)), _call(x((2, 1)), (2, 3)), _call(x((1, 3)), (4, 2, 3)),
            _call(x(1), (0,)), _call(x(3), shape=(3,))]


def repeats(rng):
    x = rng.standard_normal
    return [_call(x(3), 2), _call(x((2, 3)), 2), _call(x((2, 3)), 2, 0), _call(x((2, 3)), 3, axis=1),
            _call(x((2, 3)), repeats=1, axis=-1), _call(x(3), 0), _call(x(0), 2), _call(x((2, 3, 4)), 2, axis=1),
            _call(x(3), np.array([1, 0, 2])), _call(x((2, 3)), np.array([2, 1]), axis=0),
            _call(x((2, 3)), np.array([0, 2, 1]), axis=-1)]


def tiles(rng):
    x = rng.standard_normal
    return [_call(x(3), 2), _call(x(3), (2, 2)), _call(x((2, 3)), 2), _call(x((2, 3)), (2, 1)),
            _call(x((2, 3)), (3, 1, 2)), _call(x(3), 1), _call(x(()), 3), _call(x((2, 3)), reps=(1, 1)), _call(x(0), 2),
            _call(x(3), 0)]


def pads(rng):
    x = rng.standard_normal
    return [_call(x(3), 1), _call(x(3), (1, 2)), _call(x(3), (0, 2)), _call(x((2, 3)), 1),
            _call(x((2, 3)), ((0, 1), (2, 0))), _call(x((2, 3)), (1, 2)), _call(x(0), 1), _call(x((2, 3)), ((1, 1),)),
            _call(x(3), 1, mode="constant", constant_values=2.0), _call(x((2, 3)), ((0, 0), (1, 1))),
            _call(x((2, 3)), ((1, 1), (0, 0)), "constant"), _call(x(3), 0),
            *(_call(x((3, 4)), ((1, 2), (0, 1)), mode=mode) for mode in PADDINGS), _call(x(4), 2, mode="edge")]


PADDINGS = ("edge", "reflect", "symmetric", "wrap")


def triangles(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((3, 4)), 1), _call(x((4, 3)), k=-1), _call(x((2, 3, 3))), _call(x((0, 0))),
            _call(x(3)), _call(x((1, 3)))]


def diagonals(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x(3), 1), _call(x(3), k=-2), _call(x((3, 3))), _call(x((3, 4)), 1),
            _call(x((4, 3)), k=-1), _call(x((4, 3))), _call(x(0)), _call(x((2, 5)), 1), _call(x((0, 0)))]


def planes(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((3, 4)), 1), _call(x((4, 3)), -1), _call(x((3, 4)), offset=1, axis1=1, axis2=0),
            _call(x((2, 3, 4))), _call(x((2, 3, 4)), 0, 1, 2), _call(x((2, 3, 4)), offset=1, axis1=-1, axis2=0),
            _call(x((0, 2)))]


def windows(rng):
    x = rng.standard_normal
    return [_call(x(5), 2), _call(x(4), 4), _call(x((3, 4)), (2, 3)), _call(x((3, 4)), 2, axis=0),
            _call(x((3, 4)), 3, axis=-1), _call(x((3, 4)), (2, 2), axis=(1, 0)), _call(x((2, 5, 3)), (2, 3), (-1, 1)),
            _call(x((5, 2)), (2, 3), axis=(0, 0)), _call(x(3), 1), _call(x((0, 3)), 2, axis=1)]


def picks(rng):
    x = rng.standard_normal
    index = np.array([2, 0, 2])
    return [_call(x(4), index), _call(x(4), np.array([[0, 1], [-1, 1]])), _call(x((3, 4)), index),
            _call(x((3, 4)), index, axis=0), _call(x((3, 4)), index, 1), _call(x((3, 4, 2)), index, axis=1),
            _call(x((2, 4, 3)), np.array([[0, 1], [2, 2]]), axis=-1), _call(x(4), 1), _call(x((3, 4)), 1, axis=1),
            _call(x(3), np.array([], dtype=int))]


def picks_along(rng):
    x = rng.standard_normal
    return [_call(x(4), np.array([2, 0, 2]), 0), _call(x((2, 3)), np.array([[0, 2], [1, 1]]), 1),
            _call(x((2, 3)), np.array([[0, 1, 1]]), axis=0), _call(x((2, 3, 2)), rng.integers(0, 3, (2, 4, 2)), axis=1),
            _call(x((2, 3)), np.array([1, 5]), axis=None), _call(x((2, 3)), np.zeros((2, 0), dtype=int), 1),
            _call(x((2, 3)), np.array([[0, 2, 1]]), axis=1), _call(x((1, 3)), np.array([[0, 2], [1, 1]]), axis=1)]


def grids(rng):
    x = rng.standard_normal
    return [_call(x(2), x(3)), _call(x(2), x(3), indexing="ij"), _call(x(2), x(3), x(4)),
            _call(x(2), x(3), x(4), indexing="ij"), _call(x(3)), _call(x(0), x(2)), _call(x(1), x(1))]


def selections(rng):
    x = rng.standard_normal(5)
    return [_call([x < 0, x < 0.5], [x * x, 2 * x]), _call([x < 0, x < 0.5], [x * x, 2 * x], 3.0),
            _call([x < 0], [x], default=1.0)]


# --- linear algebra ---------------------------------------------------------------------------------------------------

def _regular(rng, *shape):
    return rng.standard_normal(shape) + 3 * np.eye(shape[-1])


def regular_real(rng):
    return [_call(_regular(rng, *s)) for s in [(3, 3), (1, 1), (4, 3, 3), (2, 4, 2, 2), (0, 2, 2)]]


def regular(rng):
    return [*regular_real(rng), _call(_regular(rng, 3, 3) + 1j * rng.standard_normal((3, 3)))]


def regular_and_singular(rng):
    """Matrices that are exactly singular, of every rank, and stacks with some of them."""
    one = np.array([[1.0, 2.0], [2.0, 4.0]])
    return [*regular(rng), *[_call(np.array(m)) for m in (
        one, np.zeros((1, 1)), np.zeros((2, 2)), np.diag([2.0, 0.0, 3.0]), np.diag([0.0, 0.0, 3.0]), np.ones((3, 3)),
        [one, one + np.eye(2)], one + 1j * one)]]


def two_regular(rng):
    return [_call(*pair) for pair in zip((a for (a,), _ in regular(rng)), (b for (b,), _ in regular(rng)))]


def systems(rng):
    x = rng.standard_normal
    return [_call(_regular(rng, 3, 3), x(3)), _call(_regular(rng, 3, 3), x((3, 2))),
            _call(_regular(rng, 5, 3, 3), x((5, 3, 2))), _call(_regular(rng, 5, 3, 3), x(3)),
            _call(_regular(rng, 5, 3, 3), x((3, 2))), _call(_regular(rng, 3, 3), x((5, 3, 2))),
            _call(_regular(rng, 1, 3, 3), x((5, 3, 2))), _call(_regular(rng, 1, 1), x(1)),
            _call(_regular(rng, 3, 3), x((3, 0))), _call(_regular(rng, 2, 2) + 1j * x((2, 2)), _complex(rng, 2)),
            _call(_regular(rng, 6, 5, 3, 3), x((5, 3, 1)))]


def powers(rng):
    a = rng.standard_normal
    return [_call(a((3, 3)), n) for n in (0, 1, 2, 3, 5)] + [_call(_regular(rng, 3, 3), -2), _call(a((4, 2, 2)), 3)]


def chains(rng):
    x = rng.standard_normal
    return [_call((x((2, 3)), x((3, 4)), x((4, 2)))), _call((x(3), x((3, 4)), x(4))), _call((x((2, 3)), x((3, 4))))]


def spread_spectra(rng):
    x = rng.standard_normal
    return [_call(x((3, 3)) + np.diag([0.0, 5.0, 10.0])), _call(np.array([[1.0, -2.0], [3.0, 1.5]])),
            _call(x((2, 3, 3)) + np.diag([0.0, 9.0, 18.0])), _call(_complex(rng, (3, 3)))]


# --- Fourier transforms -----------------------------------------------------------------------------------------------

def transforms(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(_complex(rng, 4)), _call(_complex(rng, (3, 4)), axis=0), _call(x((3, 4)), norm="ortho"),
            _call(_complex(rng, 5), 7), _call(x(5), 3), _call(_complex(rng, (4, 3)), 6, 0, "forward"),
            _call(x((2, 4, 3)), n=2, axis=1), _call(x(1))]


def real_transforms(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(6)), _call(x((3, 4)), axis=0), _call(x((3, 4)), norm="ortho"), _call(x(5), 8),
            _call(x(5), 3), _call(x((3, 4)), n=6, axis=1), _call(x((4, 3)), 2, 0, "forward"), _call(x(1))]


def half_spectra(rng):
    return [_call(_complex(rng, 4)), _call(_complex(rng, 4), 7), _call(_complex(rng, 4), 6),
            _call(_complex(rng, (3, 4)), axis=0), _call(_complex(rng, (3, 4)), norm="ortho"),
            _call(_complex(rng, 4), 12), _call(_complex(rng, 6), 5), _call(_complex(rng, (4, 3)), 9, 0, "forward"),
            _call(rng.standard_normal(4)), _call(_complex(rng, 5), 1)]


def plane_transforms(rng):
    x = rng.standard_normal
    return [_call(x((3, 4))), _call(_complex(rng, (3, 4))), _call(_complex(rng, (2, 3, 4)), axes=(0, 2)),
            _call(x((2, 3, 4)), norm="ortho"), _call(x((3, 4)), (5, 2), (0, 1)),
            _call(_complex(rng, (3, 4)), (2, 6), (1, 0)),
            _call(_complex(rng, (3, 4)), s=(-1, 3), axes=(0, 1), norm="forward")]


def real_planes(rng):
    x = rng.standard_normal
    return [_call(x((3, 4))), _call(x((4, 5))), _call(x((2, 3, 4)), axes=(0, 2)), _call(x((2, 3, 4)), norm="ortho"),
            _call(x((3, 4)), (5, 3), (0, 1)), _call(x((3, 4)), s=(2, 6), axes=(1, 0), norm="forward"),
            _call(x((2, 3, 4)), axes=(1,)), _call(x((3, 4)), s=(-1, 5), axes=(0, 1))]


def half_planes(rng):
    return [_call(_complex(rng, (3, 4))), _call(_complex(rng, (4, 3))), _call(_complex(rng, (2, 3, 4)), axes=(0, 2)),
            _call(_complex(rng, (2, 3, 4)), norm="ortho"), _call(_complex(rng, (3, 4)), (5, 5), (0, 1)),
            _call(_complex(rng, (3, 4)), s=(2, 6), axes=(1, 0), norm="forward"),
            _call(rng.standard_normal((3, 4)), axes=(1,)), _call(_complex(rng, (3, 4)), s=(4, -1), axes=(0, 1))]


def shifts(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x((3, 4))), _call(x((3, 4)), axes=0), _call(x((3, 4)), (0, 1)), _call(x(0)),
            _call(_complex(rng, 3))]
