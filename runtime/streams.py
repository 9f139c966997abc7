# SPDX-License-Identifier: Apache-2.0
"""Random generators in compiled code: NumPy's own, from which Numba draws the same streams."""
import numpy as np


class objmode:
    """The plain Python replacement of Numba's objmode: it runs its block."""

    def __init__(self, **kinds):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def generator_of(bits, seed):
    """np.random.Generator over the bit generator of this name, with a seed."""
    with objmode(rng="npy_rng"):
        rng = np.random.Generator(getattr(np.random, bits)(seed))
    return rng


generator_of.calls_python = True  # type: ignore[attr-defined]  # set on a function: it holds the GIL
