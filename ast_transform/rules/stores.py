# SPDX-License-Identifier: Apache-2.0
"""Records of the normal form's own operations: stores, conversions, broadcasts."""
import operator

import numpy as np

from gradscribe.ast_transform.core.alias import gathers
from gradscribe.ast_transform.core.kinds import Array, Listed
from gradscribe.ast_transform.core.memory import ALIAS, FRESH, HOLDS, LOCKED, PART, UPDATES, VIEW
from gradscribe.ast_transform.core.operations import (
    add_at,
    as_array,
    as_list,
    astype,
    both,
    either,
    held,
    no_elements,
    nonempty,
    one_of_several,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    run_length,
    shape_of,
    size_of,
    unpacked,
    zeros_in_list,
)
from gradscribe.ast_transform.core.rule import constant, linear, operation, static
from gradscribe.ast_transform.rules.batching import aligned, by_example, unchanged
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast
from gradscribe.runtime.derivatives import stop_gradient
from gradscribe.runtime.indexing import scatter_add


@linear(np.array, "arrays", expand=True, sequence=("arrays",), memory=FRESH, order="vector", cell=True,
        allocates="copied")
class array:
    def primal(arrays):
        return np.array(arrays)

    def vjp_arrays(dy, arrays, k=None):
        return dy if k is None else dy[k]           # a single number has no k

    def batch(arrays, batched, rank):
        if rank != arrays[0].ndim:
            by_example("a list of lists")
        return np.stack(arrays, axis=1)


@linear(np.asarray, "a", alias=(np.asanyarray,), full_rank="moves", memory=ALIAS)
class asarray:
    def primal(a, dtype=None, *, copy=None):
        return np.asarray(a, dtype=dtype, copy=copy)

    def vjp_a(dy):
        return dy


@static
def like_the_first(x, *others):
    return Array(np.dtype(x.dtype), x.dims)


@static
def with_the_shape(value, like):
    return Array(np.dtype(value.dtype), like.dims)


@linear(put, "x", "value", expand=True, memory=UPDATES, fact=like_the_first, raises=True)
class put_:
    def primal(x, index, value):
        return put(x, index, value)

    def vjp_x(dy, index):
        return put(dy, index, 0)

    def vjp_value(dy, index):
        return dy[index]

    def last_written(slot, x, index):
        """`slot` with zeros for those entries of a value that another one overwrites, where indices are repeated."""
        number = np.reshape(np.arange(slot.size), slot.shape)
        last = put(np.zeros(x.shape, dtype=int), index, number)
        return np.where(last[index] == number, slot, 0)

    def last_rows_written(slot, x, index):
        """The same for one index array that selects rows."""
        number = np.arange(index.size)
        last = put(np.zeros(x.shape[0], dtype=int), index, number)
        return np.where(last[index] == number, slot.T, 0).T


@linear(put_add, "x", "value", expand=True, alias=(add_at,), memory=UPDATES, fact=like_the_first, raises=True)
class put_add_:
    def primal(x, index, value):
        return put_add(x, index, value)

    def vjp_x(dy):
        return dy

    def vjp_value(dy, index):
        return dy[index]


@linear(scatter_add, "value", rewrite=True, memory=FRESH)
class scatter_add_:
    def primal(like, index, value):
        return add_at(np.zeros(like.shape, dtype=value.dtype), index, value)


@linear(unbroadcast, "value", expand=True, memory=ALIAS, fact=with_the_shape)
class unbroadcast_:
    def primal(value, like):
        return unbroadcast(value, like)

    def vjp_value(dy, value):
        return broadcast_like(dy, value)


@linear(broadcast_like, "value", expand=True, memory=LOCKED, fact=with_the_shape)
class broadcast_like_:
    def primal(value, like):
        return broadcast_like(value, like)

    def vjp_value(dy, value):
        return unbroadcast(dy, value)

    def batch(value, like, batched, rank, count):
        if "value" not in batched:
            return broadcast_like(value, like)
        if "like" in batched:
            return broadcast_like(aligned(value, rank), like)
        return np.broadcast_to(aligned(value, rank), (count, *like.shape))


@linear(float, "x", expand=True, memory=FRESH, raises=True, cheap=True)
class number:
    def primal(x):
        return float(x)

    def vjp_x(dy):
        return dy


@linear(complex, "real", "imag", expand=True, memory=FRESH, raises=True)
class complex_:
    def primal(real, imag=0):
        return complex(real, imag)

    def vjp_real(dy):
        return dy

    def vjp_imag(dy):
        return -np.imag(dy)


@linear(astype, "x", memory=FRESH, order="first")
class astype_:
    def primal(x, dtype, number=False):
        return astype(x, dtype)

    def vjp_x(dy):
        return dy


for _function in (shape_of, size_of, both, either, nonempty, run_length, range):
    @constant(_function, memory=ALIAS if _function in (both, either) else FRESH,   # `a and b` is one operand
              of_shape=_function in (shape_of, size_of), reads="shape" if _function in (shape_of, size_of) else "all")
    class known:
        def primal(*args):
            return args


@constant(stop_gradient, memory=ALIAS)
class stop_gradient_:
    def primal(x):
        return stop_gradient(x)

    batch = unchanged


# --- operations that the passes differentiate themselves --------------------------------------------------------------

def _element(container, index):
    """The memory of x[i]: an index array copies, and a list of numbers gives a new list."""
    return FRESH if gathers(index) or isinstance(container, Listed) and container.rank == 1 else PART


def _list(items):
    """The memory of list(items): a new list of the same arrays."""
    return FRESH if isinstance(items, Array) and items.rank == 1 else ALIAS


operation(operator.getitem, memory=_element, cheap=True, reads="part")
operation(held, memory=VIEW, raises=False, cheap=False)     # occurs in forward statements only
operation(getattr, unpacked, memory=PART)
operation(as_list, memory=_list, allocates="copied")
operation(push, push_front, pop, pop_front, memory=HOLDS, changes=True)
operation(as_array, zeros_in_list, one_of_several, memory=FRESH)
operation(no_elements, memory=FRESH, allocates="filled")
