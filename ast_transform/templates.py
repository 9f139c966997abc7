"""Jacobians in plain Python: read by the compiler like a user's code.

`push(x_dot)` is the derivative in a direction, `pull(dy)` the adjoint of x; `put` gives a copy with one row set.
"""
import numpy as np

from gradscribe.ast_transform.core.operations import put


def forward_jacobian(push, x, y, dtype):
    """One column for each entry of x."""
    size = np.size(x)
    columns = np.zeros((size,) + np.shape(y), dtype=dtype)
    for k in range(size):
        x_dot = np.reshape(put(np.zeros(size, dtype=x.dtype), k, 1.0), np.shape(x))
        columns = put(columns, k, push(x_dot))
    return np.reshape(np.moveaxis(columns, 0, -1), np.shape(y) + np.shape(x))


def reverse_jacobian(pull, x, y, dtype):
    """One row for each entry of y."""
    size = np.size(y)
    rows = np.zeros((size,) + np.shape(x), dtype=dtype)
    for k in range(size):
        dy = np.reshape(put(np.zeros(size, dtype=y.dtype), k, 1.0), np.shape(y))
        rows = put(rows, k, pull(dy))
    return np.reshape(rows, np.shape(y) + np.shape(x))
