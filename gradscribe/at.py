# SPDX-License-Identifier: Apache-2.0
"""gs.at(x)[i].set(v): writes that leave the array as it was, for programs that were written so."""
from typing import Any

import numpy as np


class _At:
    """x.at of JAX: at(x)[index] has the methods."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return _Place(self.array, index)


class _Place:
    """An array and an index; each method gives a new array, or what stands there."""

    def __init__(self, array, index):
        self.array, self.index = array, index

    def get(self):
        """What stands there."""
        return self.array[self.index]

    def set(self, values):
        out = np.array(self.array)
        out[self.index] = values
        return out

    def add(self, values):
        """Adds; at an index that occurs twice, twice."""
        out = np.array(self.array)
        np.add.at(out, self.index, values)
        return out

    def subtract(self, values):
        out = np.array(self.array)
        np.subtract.at(out, self.index, values)
        return out

    def multiply(self, values):
        out = np.array(self.array)
        np.multiply.at(out, self.index, values)
        return out

    mul = multiply

    def divide(self, values):
        out = np.array(self.array)
        np.divide.at(out, self.index, values)
        return out

    def power(self, values):
        out = np.array(self.array)
        out[self.index] = out[self.index] ** values
        return out

    def min(self, values):
        out = np.array(self.array)
        np.minimum.at(out, self.index, values)
        return out

    def max(self, values):
        out = np.array(self.array)
        np.maximum.at(out, self.index, values)
        return out

    def apply(self, function):
        """function of what stands there."""
        out = np.array(self.array)
        out[self.index] = function(out[self.index])
        return out


def at(array: Any) -> _At:
    """at(x)[index].set(v), .add, .subtract, .multiply (mul), .divide, .power, .min, .max, .apply(f) and .get().

    Each gives a new array and leaves x as it was; new programs write x[index] = v.  The dtype is the array's.  Indices
    are NumPy's: one that is out of bounds raises an IndexError, where JAX leaves the write out.

    >>> import numpy as np, gradscribe as gs
    >>> gs.at(np.zeros(3))[[0, 0, 2]].add(1.0), gs.at(np.ones((2, 2)))[:, 1].set(5.0).tolist()
    (array([2., 0., 1.]), [[1.0, 5.0], [1.0, 5.0]])
    """
    return _At(array)
