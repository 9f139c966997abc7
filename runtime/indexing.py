# SPDX-License-Identifier: Apache-2.0
"""Reading and writing at indices."""
import numpy as np


def scatter_add(like, index, value):
    """Zeros of the shape of `like`, with `value` added at `index`; repeated indices accumulate.

    >>> scatter_add(np.zeros(3), np.array([0, 0, 2]), np.array([1.0, 2.0, 3.0]))
    array([3., 0., 3.])
    """
    out = np.zeros(np.shape(like), np.asarray(value).dtype)
    np.add.at(out, index, value)
    return out
