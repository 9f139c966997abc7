# SPDX-License-Identifier: Apache-2.0
"""Matrix products that accumulate into an array; in compiled code, each is one call of BLAS (primitives.py)."""
import numpy as np


def add_dot(a, b, out):
    """Add the product of two matrices to `out`, which shares no memory with them.

    >>> out = np.ones((2, 2))
    >>> add_dot(np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]), out)
    >>> out
    array([[4., 5.],
           [7., 9.]])
    """
    out += np.dot(a, b)


def subtract_dot(a, b, out):
    """Subtract the product of two matrices from `out`, which shares no memory with them."""
    out -= np.dot(a, b)


def all_finite(a):
    """Whether no entry of a matrix is NaN or infinite.

    >>> [bool(all_finite(np.array([[1.0, x]]))) for x in (2.0, np.nan)]
    [True, False]
    """
    found = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            found += a[i, j] - a[i, j] != 0         # for NaN and infinity the difference is NaN
    return found == 0
