# SPDX-License-Identifier: Apache-2.0
"""Methods of ufuncs along an axis: reduce, accumulate, reduceat.  The reader handles `outer` and `at` itself."""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, general, linear, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.masked import converted, needs_initial
from gradscribe.ast_transform.rules.reductions import positions, positive, restore, with_one
from gradscribe.ast_transform.rules.shapes import open_grid
from gradscribe.runtime.indexing import scatter_add


def chosen(x, where, otherwise):
    if where is None:
        return x
    return np.where(where, x, otherwise)


# --- reduce -----------------------------------------------------------------------------------------------------------

@general(np.add.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class add_reduce:
    def primal(array, axis=0, dtype=None, *, keepdims=False, initial=None, where=None):
        total = converted(np.sum(chosen(converted(array, dtype), where, 0), axis=axis, keepdims=keepdims), dtype)
        return total if initial is None else total + initial


@general(np.multiply.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class multiply_reduce:
    def primal(array, axis=0, dtype=None, *, keepdims=False, initial=None, where=None):
        total = converted(np.prod(chosen(converted(array, dtype), where, 1), axis=axis, keepdims=keepdims), dtype)
        return total if initial is None else total * initial


@general(np.maximum.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class maximum_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        if initial is None and where is None:
            return np.max(array, axis=axis, keepdims=keepdims)
        needs_initial(False, initial, "np.maximum.reduce")
        return np.max(chosen(array, where, initial), axis=axis, keepdims=keepdims, initial=initial)


@general(np.minimum.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class minimum_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        if initial is None and where is None:
            return np.min(array, axis=axis, keepdims=keepdims)
        needs_initial(False, initial, "np.minimum.reduce")
        return np.min(chosen(array, where, initial), axis=axis, keepdims=keepdims, initial=initial)


@general(np.fmax.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class fmax_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        if initial is None and where is None:
            return np.nanmax(array, axis=axis, keepdims=keepdims)
        needs_initial(False, initial, "np.fmax.reduce")
        array = with_one(chosen(array, where, initial), axis, initial)
        return np.fmax(np.nanmax(array, axis=axis, keepdims=keepdims), initial)


@general(np.fmin.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class fmin_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        if initial is None and where is None:
            return np.nanmin(array, axis=axis, keepdims=keepdims)
        needs_initial(False, initial, "np.fmin.reduce")
        array = with_one(chosen(array, where, initial), axis, initial)
        return np.fmin(np.nanmin(array, axis=axis, keepdims=keepdims), initial)


@general(np.logical_and.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class logical_and_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        found = np.all(chosen(array, where, True), axis=axis, keepdims=keepdims)
        return found if initial is None else np.logical_and(found, initial)


@general(np.logical_or.reduce, samples=samples.first_axes, rewrite=True, arrays=("array",), memory=FRESH)
class logical_or_reduce:
    def primal(array, axis=0, *, keepdims=False, initial=None, where=None):
        found = np.any(chosen(array, where, False), axis=axis, keepdims=keepdims)
        return found if initial is None else np.logical_or(found, initial)


@static
def first_axis(x, axis, what):
    if x.ndim != 1 or axis in ((), []):
        raise ValueError(f"{what} of several axes has no derivative rule", "Write it out: x[0] and what follows.")


@general(np.subtract.reduce, samples=samples.vectors, rewrite=True, arrays=("array",), memory=FRESH)
class subtract_reduce:
    def primal(array, axis=0):
        first_axis(array, axis, "np.subtract.reduce")
        return array[0] - np.sum(array[1:])


@general(np.divide.reduce, samples=samples.vectors, rewrite=True, arrays=("array",), memory=FRESH)
class divide_reduce:
    def primal(array, axis=0):
        first_axis(array, axis, "np.divide.reduce")
        return array[0] / np.prod(array[1:])


def falls(x, y):
    """exp(x - y); 1 where both are infinite."""
    return np.exp(np.where(x == y, 0, x - y))


@general(np.logaddexp.reduce, "array", samples=samples.first_axes, memory=FRESH)
class logaddexp_reduce:
    def primal(array, axis=0, *, keepdims=False):
        return np.logaddexp.reduce(array, axis=axis, keepdims=keepdims)

    def wider(array, axis=0, *, keepdims=False, initial=None, where=None):
        total = np.logaddexp.reduce(chosen(array, where, -np.inf), axis=axis, keepdims=keepdims)
        return total if initial is None else np.logaddexp(total, initial)

    def vjp_array(dy, y, array, axis=0, keepdims=False):
        return restore(dy, array, axis, keepdims) * falls(array, restore(y, array, axis, keepdims))

    def jvp_array(array_dot, y, array, axis=0, keepdims=False):
        return np.sum(falls(array, restore(y, array, axis, keepdims)) * array_dot, axis=axis, keepdims=keepdims)


@general(np.logaddexp2.reduce, "array", samples=samples.first_axes, memory=FRESH)
class logaddexp2_reduce:
    def primal(array, axis=0, *, keepdims=False):
        return np.logaddexp2.reduce(array, axis=axis, keepdims=keepdims)

    def wider(array, axis=0, *, keepdims=False, initial=None, where=None):
        total = np.logaddexp2.reduce(chosen(array, where, -np.inf), axis=axis, keepdims=keepdims)
        return total if initial is None else np.logaddexp2(total, initial)

    def vjp_array(dy, y, array, axis=0, keepdims=False):
        gap = array - restore(y, array, axis, keepdims)
        return restore(dy, array, axis, keepdims) * np.exp2(gap)

    def jvp_array(array_dot, y, array, axis=0, keepdims=False):
        gap = array - restore(y, array, axis, keepdims)
        return np.sum(np.exp2(gap) * array_dot, axis=axis, keepdims=keepdims)


@general(np.hypot.reduce, "array", samples=samples.first_axes, memory=FRESH)
class hypot_reduce:
    def primal(array, axis=0, *, keepdims=False):
        return np.hypot.reduce(array, axis=axis, keepdims=keepdims)

    def wider(array, axis=0, *, keepdims=False, initial=None, where=None):
        total = np.hypot.reduce(chosen(array, where, 0), axis=axis, keepdims=keepdims)
        return total if initial is None else np.hypot(total, initial)

    def vjp_array(dy, y, array, axis=0, keepdims=False):
        return restore(dy / y, array, axis, keepdims) * array

    def jvp_array(array_dot, y, array, axis=0, keepdims=False):
        return np.sum(array * array_dot, axis=axis, keepdims=keepdims) / y


def _of_truth_or_bits(ufunc):
    @constant(ufunc.reduce, samples=samples.whole_numbers, memory=FRESH)
    class reduced:
        def primal(array, axis=0, *, keepdims=False):
            return ufunc.reduce(array, axis=axis, keepdims=keepdims)


_of_truth_or_bits(np.bitwise_and)
_of_truth_or_bits(np.bitwise_or)
_of_truth_or_bits(np.bitwise_xor)
_of_truth_or_bits(np.logical_xor)


# --- accumulate -------------------------------------------------------------------------------------------------------

@general(np.add.accumulate, samples=samples.running_first, rewrite=True, arrays=("array",), memory=FRESH)
class add_accumulate:
    def primal(array, axis=0, dtype=None):
        return np.cumsum(array, axis=axis, dtype=dtype)


@general(np.multiply.accumulate, samples=samples.running_first, rewrite=True, arrays=("array",), memory=FRESH)
class multiply_accumulate:
    def primal(array, axis=0, dtype=None):
        return np.cumprod(array, axis=axis, dtype=dtype)


def latest(y, x, axis):
    """The last position so far at which the running extreme occurred."""
    return np.maximum.accumulate(np.where(x == y, positions(x, axis), 0), axis=axis)


def picked(x, place, axis):
    if x.ndim == 1:
        return x[place]
    return np.take_along_axis(x, place, axis=axis)


def given_back(dy, x, place, axis):
    if x.ndim == 1:
        return scatter_add(x, place, dy)
    return scatter_add(x, open_grid(x, place, positive(axis, x.ndim), 0), dy)


@general(np.maximum.accumulate, "array", samples=samples.running_first, expand=True, memory=FRESH)
class maximum_accumulate:
    def primal(array, axis=0):
        return np.maximum.accumulate(array, axis=axis)

    def vjp_array(dy, y, array, axis=0):
        return given_back(dy, array, latest(y, array, axis), axis)

    def jvp_array(array_dot, y, array, axis=0):
        return picked(array_dot, latest(y, array, axis), axis)


@general(np.minimum.accumulate, "array", samples=samples.running_first, expand=True, memory=FRESH)
class minimum_accumulate:
    def primal(array, axis=0):
        return np.minimum.accumulate(array, axis=axis)

    def vjp_array(dy, y, array, axis=0):
        return given_back(dy, array, latest(y, array, axis), axis)

    def jvp_array(array_dot, y, array, axis=0):
        return picked(array_dot, latest(y, array, axis), axis)


# --- reduceat ---------------------------------------------------------------------------------------------------------

def members(indices, length):
    """A mask of the entries in each sum: from its index to the next one, or just the entry at its index."""
    stop = np.maximum(np.concatenate((indices[1:], np.full(1, length))), indices + 1)
    place = np.arange(length)
    return (place >= indices[:, None]) & (place < stop[:, None])


@linear(np.add.reduceat, "array", samples=samples.stretches, expand=True, arrays=("indices",), memory=FRESH,
        raises=True)
class add_reduceat:
    def primal(array, indices, axis=0):
        return np.add.reduceat(array, indices, axis=axis)

    def vjp_array(dy, array, indices, axis=0):
        member = members(indices, array.shape[axis]).astype(array.dtype)
        if array.ndim == 1:
            return dy @ member
        return np.moveaxis(np.moveaxis(dy, axis, -1) @ member, -1, axis)

