# SPDX-License-Identifier: Apache-2.0
"""Typing of functions whose result lengths depend on the values of arguments.

Each is the option `fact=` of a record: it takes the facts of the operands and returns the fact of the result, or None
if a call on an example determines it.  It raises ValueError, with advice, if the function refuses its arguments.
"""
import numpy as np

from gradscribe.ast_transform.core.kinds import (
    UNIT,
    Array,
    Length,
    Opaque,
    Sequence,
    broadcast,
    spelled_shape,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.rule import static

NUMBERS = "Pass literals, or arguments that are plain numbers."


def given_shape(shape, what):
    """The lengths in a shape, which is a number, a tuple, or numbers that are known only at run time."""
    if isinstance(shape, Opaque):
        parts = shape.value if isinstance(shape.value, (tuple, list)) else (shape.value,)
        parts = [Array(int, (), Length(None, int(n))) if isinstance(n, (int, np.integer)) else None for n in parts]
    else:
        parts = shape.elements if isinstance(shape, Sequence) else (shape,)
    if any(not isinstance(n, Array) or n.length is None for n in parts):
        raise ValueError(f"a {what} to a shape that is not known when transforming", NUMBERS)
    return [n.length.normal() for n in parts]


def number_of(fact, default=None):
    """The integer value of an operand if it is known; `default` if the operand is omitted or None."""
    if isinstance(fact, Opaque) and fact.value is None:
        return default
    n = fact.length.normal() if isinstance(fact, Array) and fact.length is not None else None
    return n.offset if n is not None and n.symbol is None else None


NONE = Opaque(None)


@static
def fact_of_reshape(a, shape=NONE, order=None, *, newshape=NONE, **others):
    """Lengths given as numbers are certain; -1 is the remaining one, certain if one length can be divided out."""
    if not isinstance(a, Array):
        return None
    dims = given_shape(newshape if shape is NONE else shape, "reshape")
    rest = [n for n in dims if n.symbol is None and n.offset == -1]
    return Array(np.dtype(a.dtype), tuple(
        _rest(a.dims, [m for m in dims if m not in rest]) if n in rest else n for n in dims))


def _rest(whole, given):
    """The length for -1."""
    whole = [d.normal() for d in whole if not d.is_unit]
    given = [d for d in given if not d.is_unit]
    if all(d.symbol is None for d in [*whole, *given]):
        return Length(None, int(np.prod([d.offset for d in whole]) // max(1, np.prod([d.offset for d in given]))))
    for d in given:
        match = next((k for k, e in enumerate(whole) if e.same(d)), None)
        if match is None:
            return unknown("?reshape")
        del whole[match]
    return UNIT if not whole else whole[0] if len(whole) == 1 else unknown("?reshape", any(d.many for d in whole))


@static
def fact_of_broadcast_to(array, shape, subok=None):
    """All axes have the lengths of the shape, or NumPy raises."""
    if not isinstance(array, Array):
        return None
    dims = tuple(given_shape(shape, "broadcast"))
    if len(dims) < array.rank:
        return None
    for d, e in zip(reversed(array.dims), reversed(dims)):
        if not d.is_unit and d.many and not unify(d, e):
            raise ValueError(f"shape {spelled_shape(array.dims)} does not broadcast to {spelled_shape(dims)}")
    return Array(np.dtype(array.dtype), dims)


@static
def fact_of_broadcast_arrays(*args, subok=None):
    """All results have the same shape; each keeps its dtype."""
    if not all(isinstance(a, Array) for a in args):
        return None
    dims = broadcast([a.dims for a in args])
    return Sequence("tuple", tuple(Array(np.dtype(a.dtype), dims) for a in args))


@static
def fact_of_split(ary, indices_or_sections, axis=NONE):
    """For an axis of unknown length: parts of equal length, or NumPy raises."""
    sections, axis = number_of(indices_or_sections), number_of(axis, 0)
    if not isinstance(ary, Array) or sections is None or sections < 2 or axis is None or \
            not -ary.rank <= axis < ary.rank:
        return None
    n, dims = ary.dims[axis].normal(), list(ary.dims)
    if n.symbol is None or n.size is not None:
        return None
    dims[axis] = unknown("?part")
    return Sequence("list", (Array(np.dtype(ary.dtype), tuple(dims)),) * sections)


@static
def fact_of_delete(arr, obj, axis=NONE):
    """A single index deletes one entry; what several delete depends on their values."""
    return _edited(arr, obj, axis, -1)


@static
def fact_of_insert(arr, obj, values, axis=NONE):
    """One entry (or line) at a single index makes an axis one longer; other cases depend on values."""
    return _edited(arr, obj, axis, 1, values.rank) if isinstance(values, Array) else None


def _edited(arr, obj, axis, by, rank=0):
    """The fact of arr with `by` more entries along an axis, or in total, at obj; rank: that of inserted values."""
    if not isinstance(arr, Array):
        return None
    if isinstance(obj, Array) and obj.kind not in "biu":
        raise ValueError("an index is an integer, a slice or an array of integers")
    place = number_of(axis)
    if place is None and axis != NONE:
        return None
    if place is not None and not -arr.rank <= place < arr.rank:
        raise ValueError(f"axis {place} is out of bounds for an array of rank {arr.rank}")
    single = isinstance(obj, Array) and not obj.dims and obj.kind != "b"
    dims = list(arr.dims)
    if place is None:
        dims, place = dims if arr.rank == 1 else [unknown("?size")], 0
        single = single and arr.rank == 1
    n = dims[place].normal()
    single = single and (not rank or arr.rank > rank) and n.offset + by >= 0
    dims[place] = n.plus(by) if single else unknown("?edited")
    return Array(np.dtype(arr.dtype), tuple(dims))
