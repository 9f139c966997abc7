# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of arranging.py: each function takes a generator and returns a list of (args, kwargs)."""
import numpy as np

from gradscribe.ast_transform.rules.array_samples import _call, _complex


def rolled_axes(rng):
    x = rng.standard_normal
    return [_call(x((2, 3, 4)), 2), _call(x((2, 3, 4)), 0, 3), _call(x((2, 3, 4)), -1, 1), _call(x((2, 3)), 1, 1),
            _call(x((2, 3, 4)), 1, start=-1), _call(x((0, 3)), 1)]


def requirements(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x((2, 3)), None, "C"), _call(x((2, 3)).T, requirements=["C", "A"]),
            _call(x((0, 2)), float)]


def depth_splits(rng):
    x = rng.standard_normal
    return [_call(x((2, 1, 4)), 2), _call(x((1, 2, 4)), [1, 3]), _call(x((2, 3, 6)), 3), _call(x((2, 3, 4, 2)), 2),
            _call(x((2, 0, 4)), (2,))]


def unstacked(rng):
    x = rng.standard_normal
    return [_call(x((1, 3))), _call(x((2, 1)), axis=1), _call(x((3, 1, 2)), axis=-2), _call(x(1)),
            _call(_complex(rng, (1, 2)))]


def diagonals_of_all(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x((2, 2))), _call(x((2, 2)), 1), _call(x(2), k=-2), _call(x(())), _call(x(0))]


def that_meet(rng):
    x = rng.standard_normal
    return [_call(x(3), x((2, 3))), _call(x((2, 1)), x((1, 3))), _call(x(()), x(3), x((2, 1))), _call(x(3)),
            _call(x((0, 1)), x(3)), _call(_complex(rng, (2, 1)), x(3))]


def blocks(rng):
    x = rng.standard_normal
    return [_call([[x((2, 2)), x((2, 3))], [x((1, 2)), x((1, 3))]]), _call([x(2), x(3)]), _call([[x(2)], [x(2)]]),
            _call([[x((2, 2)), 0.0 * x((2, 1))]]), _call(x((2, 3))), _call([x(()), x(2)]),
            _call([[[x((2, 2))]], [[x((2, 2))]]]), _call([[x((2, 0)), x((2, 2))]]), _call([x((3, 2, 2)), x((3, 2, 1))])]


def deletions(rng):
    x = rng.standard_normal
    return [_call(x(5), 1), _call(x(5), -1), _call(x(5), [0, 3]), _call(x(5), slice(1, 4, 2)),
            _call(x(4), np.array([True, False, True, False])), _call(x((3, 4)), 2, 1), _call(x((3, 4)), [0, 2], axis=0),
            _call(x((3, 4)), 5), _call(x((2, 3, 4)), [1, 1], axis=-1), _call(x(3), []), _call(x(1), 0),
            _call(_complex(rng, 3), 1), _call(x((0, 3)), 1, axis=1)]


def insertions(rng):
    x = rng.standard_normal
    return [_call(x(4), 1, 2.5), _call(x(4), 1, x(3)), _call(x(4), [3, 0], x(2)), _call(x(4), [1, 1, 4], x(3)),
            _call(x((2, 3)), 1, x(2), axis=1), _call(x((2, 3)), [1], x((2, 1)), axis=1), _call(x((2, 3)), 0, x(3), 0),
            _call(x((2, 3)), 1, x(())), _call(x((2, 3)), [0, 2], x((2, 3)), axis=0), _call(x((2, 3)), -1, 0.5, axis=-1),
            _call(x((2, 3)), 1, x((2, 2)), axis=1), _call(x(0), 0, x(2)), _call(x((2, 3)), [0, 2], x(3), axis=0),
            _call(x((2, 3, 4)), 2, x((2, 4)), axis=1), _call(_complex(rng, 3), 1, x(2)),
            _call(x(4), np.array([2, 0]), x(())), _call(x(4), np.array(-2), x(())), _call(x((2, 3)), -2, x(2), axis=1)]


def resized(rng):
    x = rng.standard_normal
    return [_call(x(3), 5), _call(x(3), (2, 2)), _call(x((2, 3)), (3, 4)), _call(x((2, 3)), 4), _call(x(2), (0, 3)),
            _call(x(1), new_shape=(3,)), _call(_complex(rng, 2), 3)]


def flat_differences(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x((2, 3))), _call(x(4), 1.5), _call(x(4), to_begin=x(2)), _call(x(3), x(1), x((2, 2))),
            _call(x(1)), _call(_complex(rng, 3))]


def trimmed(rng):
    x = rng.standard_normal
    inside = np.concatenate((np.zeros(2), x(2), np.zeros(1), x(1), np.zeros(3)))
    return [_call(inside), _call(inside, "f"), _call(inside, trim="b"), _call(x(3)), _call(np.zeros(3)), _call(x(0)),
            _call(_complex(rng, 2))]


def choices(rng):
    x = rng.standard_normal
    outside = np.array([-1, 5, 1])
    return [_call(np.array([0, 2, 1]), [x(3), x(3), x(3)]), _call(np.array([[0], [1]]), [x(3), x((2, 1))]),
            _call(outside, [x(3), x(3)], mode="clip"), _call(outside, (x(3), x(1)), mode="wrap"),
            _call(np.array([1, 0]), [x((3, 2)), x(2)]), _call(np.zeros(0, int), [x(0), x(1)]),
            _call(np.array([0, 1]), [_complex(rng, 2), _complex(rng, 2)])]


def compressed(rng):
    x = rng.standard_normal
    test = np.array([True, False, True])
    return [_call(test, x(3)), _call(test, x((3, 2)), axis=0), _call(test, x((2, 4)), 1), _call(test, x((2, 3))),
            _call(test, x((2, 3, 4)), axis=-2), _call(np.zeros(2, bool), x(3)), _call([0, 1], x(3)),
            _call(test, _complex(rng, 3))]


def extracted(rng):
    x = rng.standard_normal
    y = x((2, 3))
    return [_call(y > 0, y), _call(x(4) > 0, x(4)), _call(np.array([1, 0, 2]), x(3)), _call(x(3) > 9, x(3)),
            _call(x((2, 3)) > 0, _complex(rng, (2, 3)))]


def keys(rng):
    x = rng.standard_normal
    first = np.array([2, 1, 2, 1])
    return [_call((x(4), first)), _call((first, x(4))), _call((x((2, 3)), rng.integers(0, 2, (2, 3)))),
            _call((x((2, 3)), rng.integers(0, 2, (2, 3))), axis=0), _call((x(1),)), _call((x(4), first, first))]


def partitions(rng):
    x = rng.standard_normal
    return [_call(x(2), 0), _call(x(4), (0, 1, 2, 3)), _call(x((3, 2)), 1), _call(x((2, 3)), 0, axis=0),
            _call(x((2, 2)), (0, 1, 2, 3), axis=None), _call(x((2, 3, 2)), [0, 1, 2], 1), _call(x(1), 0)]


def to_be_sorted(rng):
    x = rng.standard_normal
    return [_call(_complex(rng, 4)), _call(x(4)), _call(_complex(rng, (2, 3))), _call(x(1)), _call(x(0))]


def all_different(rng):
    x = rng.standard_normal
    return [_call(x(6)), _call(x(6), True), _call(x(5), return_inverse=True), _call(x(5), return_counts=True),
            _call(x(5), True, True, True), _call(x(5), True, True), _call(x((3, 2))), _call(x((3, 2)), axis=0),
            _call(x((3, 2)), axis=-1, return_index=True), _call(x(1)), _call(x(0)), _call(x(4), equal_nan=False),
            _call(x((2, 3)), return_inverse=True), _call(x((3, 2)), axis=1, return_counts=True),
            _call(x((2, 3)), True, True, True), _call(x((2, 3)), True, True)]


def sets(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x(1)), _call(x((2, 3))), _call(x(0)), _call(x(7))]


def two_sets(rng):
    x = rng.standard_normal
    return [_call(x(4), x(2)), _call(x(3), x(0)), _call(x((2, 2)), x(1)), _call(x(1), x(1)), _call(x(2), x(5))]


def shared_sets(rng):
    x = rng.standard_normal
    return [*two_sets(rng), _call(x(3), x(3), return_indices=True), _call(x(3), x(2), True, True)]


def quotients(rng):
    return [_call(7.5, 2.0), _call(rng.uniform(1, 9, 4), 2.3), _call(rng.uniform(-9, -1, (2, 3)), rng.uniform(1, 3, 3)),
            _call(np.array([7, -7]), 3), _call(rng.uniform(1, 9, 0), 2.0)]


def whole_numbers(rng):
    return [_call(np.array([0, 1, -3, 1023])), _call(np.array([[7, 8]], np.uint8)), _call(np.zeros(0, int)),
            _call(np.array([-128, 127], np.int8)), _call(np.array([2**62, -1]))]


def bits(rng):
    x = rng.integers(0, 2, (3, 11), dtype=np.uint8)
    return [_call(x), _call(x, axis=1), _call(x, axis=0), _call(x[0], bitorder="little"), _call(x[0, :8]),
            _call(x[0] > 0), _call(x[:, :1], axis=-1)]


def octets(rng):
    x = rng.integers(0, 256, (2, 3), dtype=np.uint8)
    return [_call(x), _call(x, axis=1), _call(x, axis=0), _call(x[0], bitorder="little"), _call(x[0], count=11),
            _call(x[0], count=-3), _call(x, axis=1, count=30)]


def compared(rng):
    x = rng.standard_normal((2, 3))
    return [_call(x, x), _call(x, x[0]), _call(x[:1], np.stack((x[0], x[0]))), _call(x, x[:, :2]), _call(x, x + 1)]


def squares(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((2, 2, 2))), _call(x((1, 1))), _call(x((0, 0))), _call(x((4, 4)))]


def offset_matrices(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((2, 4))), _call(x((4, 2)), 1), _call(x((3, 3)), k=-1), _call(x((1, 3)))]


def crossed(rng):
    a, b = np.array([2, 0]), np.array([1, 1, 0])
    return [_call(a, b), _call(a), _call(np.array([True, False, True]), b), _call(a, b, np.array([0])),
            _call(np.zeros(0, int), a)]


# --- functions that are given functions -------------------------------------------------------------------------------

def scaled(row):
    return row[0] * row


def spread(row, factor=2.0):
    return np.outer(row, factor * row)


def masks(rng):
    return [_call(3, np.triu), _call(3, np.tril), _call(4, np.triu, 1), _call(2, np.tril, k=-1), _call(1, np.triu)]


def over_axes(rng):
    x = rng.standard_normal
    return [_call(np.sum, x((2, 3)), [0, 1]), _call(np.max, x((2, 3, 4)), (0, 2)), _call(np.mean, x((2, 3)), 1),
            _call(np.cumsum, x((2, 3)), [0, 1]), _call(np.sum, x((2, 3)), [])]


def along_axes(rng):
    x = rng.standard_normal
    return [_call(np.sum, 1, x((2, 3))), _call(np.sum, 0, x((2, 3))), _call(scaled, -1, x((2, 3))),
            _call(scaled, 0, x((3, 2))), _call(spread, 0, x((2, 3))), _call(spread, 1, x((2, 2)), 3.0),
            _call(np.max, 1, x((2, 3, 4))), _call(scaled, 1, x((2, 3, 2))), _call(scaled, 0, x(3))]


def products(i, j):
    return np.sin(i) * j


def from_functions(rng):
    return [_call(products, (3, 4)), _call(np.sqrt, (5,)), _call(products, (1, 3), dtype=np.float32),
            _call(products, (0, 2)), _call(products, (2, 2), dtype=int)]
