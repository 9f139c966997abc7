# SPDX-License-Identifier: Apache-2.0
"""Broadcasting and its adjoint at run time, where ranks or unit axes are not known when transforming."""
import numpy as np


def unbroadcast(dy, x):
    """The adjoint of x from that of the value it was broadcast to: sums over the axes along which x was repeated.

    >>> unbroadcast(np.ones((2, 3)), np.ones((1, 3)))
    array([[2., 2., 2.]])
    """
    shape = np.shape(x)
    dy = np.asarray(dy)
    lead = dy.ndim - len(shape)
    if lead > 0:
        dy = np.sum(dy, axis=tuple(range(lead)))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and dy.shape[k] != 1)
    if axes:
        dy = np.sum(dy, axis=axes, keepdims=True)
    return dy if dy.shape else dy[()]


def broadcast_like(x, y):
    """x repeated to the shape of y.

    >>> broadcast_like(2.0, np.zeros(2))
    array([2., 2.])
    """
    return np.broadcast_to(x, np.shape(y))
