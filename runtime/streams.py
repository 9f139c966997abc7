# SPDX-License-Identifier: Apache-2.0
"""Generators of random numbers that compiled code makes: NumPy's own, whose streams Numba draws from as NumPy does."""
import numpy as np


class objmode:
    """Python in the middle of compiled code, where Numba's own stands here; run plainly, what it is around."""

    def __init__(self, **kinds):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def generator_of(bits, seed):
    """np.random.Generator over the bits of this name, begun with a seed."""
    with objmode(rng="npy_rng"):
        rng = np.random.Generator(getattr(np.random, bits)(seed))
    return rng


generator_of.calls_python = True  # type: ignore[attr-defined]  # set on a function: it keeps the interpreter's lock
