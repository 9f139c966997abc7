# SPDX-License-Identifier: Apache-2.0
"""What the part `batch` of a record is written with: axes of a batch, and forms that several records share.

The part says what a call becomes where operands have an axis of examples in front.  Its parameters are arguments of the
record's signature, and what these names mean: `first` the first argument; `batched` the names of the arguments that
have the axis (a list of arrays has it in all of them, or in none); `flags` the same for each of several positional
arguments; `rank` the rank of one example's result; `count` the number of examples; `units` the axes of one example of
length 1.  Arrays that have the axis have it as axis 0, and their rank counts it.  A function of each entry needs no
part.  Where there is no such form, the part calls `by_example`: a loop calls the function for each example.

>>> from gradscribe.ast_transform.core.rule import RULES
>>> RULES[np.sum].parts["batch"](np.ones((4, 2, 3)), ("x",)).shape
(4,)
"""
import numpy as np

from gradscribe.ast_transform.core.rule import ByExample, static

# --- axes ---------------------------------------------------------------------------------------------------

@static
def shifted(axis):
    """An axis of one example as an axis of the batch."""
    if isinstance(axis, tuple):
        return tuple(a + 1 if a >= 0 else a for a in axis)
    return axis + 1 if axis >= 0 else axis


@static
def reduced(axis, rank):
    """The axes of the batch that a reduction of one example goes over."""
    if axis is None:
        return 1 if rank == 2 else tuple(range(1, rank))
    return shifted(axis)


@static
def everything(axis, rank):
    """Whether a reduction goes over all axes of an example."""
    return axis is None or isinstance(axis, tuple) and len(axis) == rank - 1


@static
def over_several(axis):
    return axis is None or isinstance(axis, tuple) and len(axis) != 1


@static
def all_axes(rank):
    return tuple(range(1, rank))


@static
def only(batched, *names):
    if set(batched) - set(names):
        raise ByExample("an argument differs that is the same for a whole batch otherwise")


@static
def by_example(reason):
    raise ByExample(reason)


@static
def wide(missing):
    """An index that puts axes after the batch's."""
    return (slice(None), *[None] * missing)


def aligned(x, rank):
    """One value for each example against results of a rank: its own axes last."""
    if x.ndim >= rank + 1:
        return x
    return x[wide(rank + 1 - x.ndim)]


def size_after(x, k):
    """The product of the lengths from axis k on."""
    if k == x.ndim:
        return 1
    if k == x.ndim - 1:
        return x.shape[k]
    return x.shape[k] * size_after(x, k + 1)


def rows(x):
    """Every example's entries in one row."""
    if x.ndim == 2:
        return x
    return np.reshape(x, (x.shape[0], size_after(x, 1)))


# --- forms that several records share --------------------------------------------------------------------------------

def batched_reduction(function):
    """Of functions with an axis and keepdims."""
    def part(first, batched, axis=None, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), keepdims=keepdims)
        return function(first, axis=reduced(axis, first.ndim))
    return part


def batched_turn(function):
    """Of functions of some axes, or of all."""
    def part(first, batched, axes=None, axis=None):
        if axes is None and axis is None:
            return function(first, all_axes(first.ndim))
        if axes is None:
            return function(first, shifted(axis))
        return function(first, shifted(axes))
    return part


def batched_diagonal(function):
    """Of functions of a diagonal."""
    def part(first, batched, offset=0, axis1=0, axis2=1):
        return function(first, offset=offset, axis1=shifted(axis1), axis2=shifted(axis2))
    return part


def unchanged(first, batched):
    """Of functions that return their first argument."""
    return first


def same_call(function):
    """Of functions that take stacks: the call with the whole batch."""
    def part(first, batched):
        return function(first)
    return part


def batched_partition(function):
    """Of functions that arrange entries around the k-th."""
    def part(a, kth, batched, axis=-1):
        only(batched, "a")
        if axis is None:
            return function(rows(a), kth, axis=1)
        return function(a, kth, axis=shifted(axis))
    return part
