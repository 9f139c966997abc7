# SPDX-License-Identifier: Apache-2.0
"""Generators of random numbers that compiled code makes: NumPy's own, whose streams Numba draws from as NumPy does."""
import numpy as np


def generator_of(bits, seed):
    """np.random.Generator over the bits of this name, begun with a seed."""
    with objmode(rng="npy_rng"):  # noqa: F821    Numba's, which is there when this is compiled
        rng = np.random.Generator(getattr(np.random, bits)(seed))
    return rng
