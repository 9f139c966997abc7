# SPDX-License-Identifier: Apache-2.0
"""Helpers for the part `batch` of a record: axes of a batch, and forms that several records share.

The part defines a call whose operands have a leading axis of examples (a batch axis).  Its parameters are arguments of
the record's signature, or these names: `first` is the first argument; `batched` the names of the arguments that have
the batch axis (in a list of arrays, all have it or none); `flags` the same for each of several positional arguments;
`rank` the rank of one example's result; `count` the number of examples; `units` the axes of length 1 of one example.
The batch axis is axis 0, and the rank of an array includes it.  An elementwise function needs no part.  If a function
has no batched form, the part calls `by_example`: a loop then calls the function for each example.

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
    """The axes of the batch that a reduction of one example reduces."""
    if axis is None:
        return 1 if rank == 2 else tuple(range(1, rank))
    return shifted(axis)


@static
def everything(axis, rank):
    """Whether a reduction reduces all axes of an example."""
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
    """An index that adds axes after the batch axis."""
    return (slice(None), *[None] * missing)


def aligned(x, rank):
    """A batched value with axes added after the batch axis, so that it broadcasts with batched arrays of a rank."""
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
    """Each example flattened to a row."""
    if x.ndim == 2:
        return x
    return np.reshape(x, (x.shape[0], size_after(x, 1)))


# --- forms that several records share --------------------------------------------------------------------------------

def batched_reduction(function):
    """The part `batch` of a reduction with axis and keepdims."""
    def part(first, batched, axis=None, keepdims=False):
        if keepdims:
            return function(first, axis=reduced(axis, first.ndim), keepdims=keepdims)
        return function(first, axis=reduced(axis, first.ndim))
    return part


def batched_turn(function):
    """The part `batch` of a function that acts on some axes, or on all."""
    def part(first, batched, axes=None, axis=None):
        if axes is None and axis is None:
            return function(first, all_axes(first.ndim))
        if axes is None:
            return function(first, shifted(axis))
        return function(first, shifted(axes))
    return part


def batched_diagonal(function):
    """The part `batch` of a function of a diagonal."""
    def part(first, batched, offset=0, axis1=0, axis2=1):
        return function(first, offset=offset, axis1=shifted(axis1), axis2=shifted(axis2))
    return part


def unchanged(first, batched):
    """The part `batch` of a function that returns its first argument."""
    return first


def same_call(function):
    """The part `batch` of a function that accepts stacks: a call with the whole batch."""
    def part(first, batched):
        return function(first)
    return part


def batched_partition(function):
    """The part `batch` of a function that partitions entries around the k-th."""
    def part(a, kth, batched, axis=-1):
        only(batched, "a")
        if axis is None:
            return function(rows(a), kth, axis=1)
        return function(a, kth, axis=shifted(axis))
    return part
