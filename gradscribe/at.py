# SPDX-License-Identifier: Apache-2.0
"""gs.at(x)[i].set(v): updates that return a new array, for programs that were written with JAX's x.at."""
from typing import Any

import numpy as np

from gradscribe.bounds import filling_of, inside, mode_of


class _At:
    """x.at of JAX: at(x)[index] has the methods."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return _Place(self.array, index)


class _Place:
    """An array and an index.  `get` returns the entries there; each other method returns a new array.

    mode and wrap_negative_indices are JAX's; indices_are_sorted has no effect.  multiply, divide, min and max depend on
    how often an index names an entry: at arrays of indices they have a derivative with unique_indices only.
    """

    def __init__(self, array, index):
        self.array, self.index = array, index

    def get(self, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None,
            wrap_negative_indices=True):
        """The entries at the index; with mode="fill", fill_value (NaN) where it is out of bounds."""
        if _as_numpy(mode, wrap_negative_indices):
            return self.array[self.index]
        array = np.asarray(self.array)
        index, more = inside(array.shape, self.index, mode_of(mode), wrap_negative_indices)
        if mode_of(mode) == "clip":
            return array[index]
        value = filling_of(array.dtype) if fill_value is None else fill_value
        return np.pad(array, more, constant_values=value)[index]

    def set(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap_negative_indices=True):
        out, index = _copied(self.array, self.index, mode, wrap_negative_indices)
        out[index] = values
        return _cut(out, self.array, mode)

    def add(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap_negative_indices=True):
        """Add the values; twice at an index that occurs twice."""
        return self.changed(np.add, values, False, mode, wrap_negative_indices)

    def subtract(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None,
                 wrap_negative_indices=True):
        return self.changed(np.subtract, values, False, mode, wrap_negative_indices)

    def multiply(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None,
                 wrap_negative_indices=True):
        return self.changed(np.multiply, values, unique_indices, mode, wrap_negative_indices)

    mul = multiply

    def divide(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None,
               wrap_negative_indices=True):
        return self.changed(np.divide, values, unique_indices, mode, wrap_negative_indices)

    def changed(self, operation, values, unique, mode, wrap):
        """A ufunc of the entries and the values; applied one after another where an index may occur twice."""
        out, index = _copied(self.array, self.index, mode, wrap)
        if unique:
            out[index] = operation(out[index], values)
        else:
            operation.at(out, index, values)
        return _cut(out, self.array, mode)

    def power(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None,
              wrap_negative_indices=True):
        out, index = _copied(self.array, self.index, mode, wrap_negative_indices)
        out[index] = out[index] ** values
        return _cut(out, self.array, mode)

    def min(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap_negative_indices=True):
        return self.changed(np.minimum, values, unique_indices, mode, wrap_negative_indices)

    def max(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap_negative_indices=True):
        return self.changed(np.maximum, values, unique_indices, mode, wrap_negative_indices)

    def apply(self, function, *, indices_are_sorted=False, unique_indices=False, mode=None,
              wrap_negative_indices=True):
        """The function of the entries; applied twice at an index that occurs twice."""
        out, index = _copied(self.array, self.index, mode, wrap_negative_indices)
        if unique_indices or not _may_repeat(index):
            out[index] = function(out[index])
            return _cut(out, self.array, mode)
        flat, places = np.ravel(out), np.reshape(np.arange(out.size), out.shape)[index]
        for place in np.ravel(places):
            flat[place] = function(flat[place])
        return _cut(np.reshape(flat, out.shape), self.array, mode)


def _may_repeat(index):
    """Whether an index may name an entry twice: one of its parts is an array of integers."""
    parts = index if isinstance(index, tuple) else (index,)
    return any([isinstance(part, (list, np.ndarray)) and np.ndim(part) > 0 and np.asarray(part).dtype != bool
                for part in parts])


def _as_numpy(mode, wrap):
    """Whether an index follows NumPy: it must be in bounds."""
    if mode is None and not wrap:
        raise ValueError("wrap_negative_indices=False needs a mode: 'drop', 'fill' or 'clip'")
    return mode is None or mode_of(mode) == "promise"


def _copied(array, index, mode, wrap):
    """A copy to write into, and the index into it; it has an additional entry for writes that are out of bounds."""
    if _as_numpy(mode, wrap):
        return np.array(array), index
    place, more = inside(np.shape(array), index, mode_of(mode), wrap)
    return (np.pad(array, more) if mode_of(mode) == "fill" else np.array(array)), place


def _cut(out, array, mode):
    """The copy without the additional entries, in the shape of the array."""
    if mode is None or mode_of(mode) != "fill":
        return out
    return out[tuple([slice(n) for n in np.shape(array)])]


def at(array: Any) -> _At:
    """Functional updates of an array at an index, and reads of it.

    They are at(x)[index].set(v), .add, .subtract, .multiply (mul), .divide, .power, .min, .max, .apply(f) and .get().
    Each returns a new array of x's dtype and does not change x; new programs can write x[index] = v instead.  Indices
    are NumPy's: one that is out of bounds raises an IndexError.  mode is JAX's: with "drop" or "fill" a write out of
    bounds is ignored, and .get() returns fill_value there, by default NaN, the lowest signed or the highest unsigned
    number; "clip" moves the index to the nearest end; "promise_in_bounds" is NumPy's indexing.  With
    wrap_negative_indices=False a negative index is out of bounds.  unique_indices=True promises that no entry is named
    twice: only then are .multiply, .divide, .min and .max differentiable at an array of indices, as in JAX, and .apply
    calls f once for all entries.

    Raises ValueError for an unknown mode, and for wrap_negative_indices=False without a mode.

    >>> import numpy as np, gradscribe as gs
    >>> gs.at(np.zeros(3))[[0, 0, 2]].add(1.0), gs.at(np.ones((2, 2)))[:, 1].set(5.0).tolist()
    (array([2., 0., 1.]), [[1.0, 5.0], [1.0, 5.0]])
    >>> gs.at(np.zeros(3))[np.array([1, 7])].set(1.0, mode="drop"), gs.at(np.zeros(3))[7].get(mode="fill", fill_value=9)
    (array([0., 1., 0.]), np.float64(9.0))
    """
    return _At(array)
