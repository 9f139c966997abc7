# SPDX-License-Identifier: Apache-2.0
"""How whole-batch forms are declared, and the axes they speak of."""
import numpy as np

from gradscribe.ast_transform.core.rule import RULES, ByExample, static
from gradscribe.ast_transform.rules import records  # noqa: F401  (they get parts)


def batch(*functions):
    """Give the records of functions a whole-batch form; one with `of` makes a part for each."""
    def add(part):
        for f in functions:
            RULES[f].parts["batch"] = part
        return part
    return add


def batch_each(*functions):
    def add(make):
        for f in functions:
            RULES[f].parts["batch"] = make(f)
        return make
    return add


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
def several(axis):
    return axis is None or isinstance(axis, tuple) and len(axis) != 1


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
