# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.signal."""
from gradscribe.ast_transform.rules.samples import complexes, normal

SHAPES = (((5,), (3,)), ((3,), (4,)), ((1,), (3,)), ((4, 5), (3, 2)), ((2, 3, 3), (2, 1, 2)))
MODES = ("full", "same", "valid")


def _calls(rng, words):
    """Either array may be the shorter one; in mode "valid" one array is shorter along all axes."""
    return [((normal(rng, a), normal(rng, b)), {**words, "mode": mode}) for a, b in SHAPES for mode in MODES]


def convolutions(rng):
    return [*_calls(rng, {}), *_calls(rng, {"method": "fft"}), *_calls(rng, {"method": "direct"})[:9],
            ((complexes(rng, (4,)), complexes(rng, (2,))), {})]


def transforms(rng):
    return [*_calls(rng, {}), ((complexes(rng, (4, 2)), normal(rng, (2, 2))), {"mode": "same"})]
