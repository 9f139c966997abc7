# SPDX-License-Identifier: Apache-2.0
"""Records of the normal form's own operations: places, stores, conversions."""
import numpy as np

from gradscribe.ast_transform.core.operations import (
    add_at,
    astype,
    both,
    either,
    nonempty,
    put,
    put_add,
    run_length,
    shape_of,
    size_of,
)
from gradscribe.ast_transform.core.rule import constant, linear
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast
from gradscribe.runtime.derivatives import stop_gradient
from gradscribe.runtime.indexing import scatter_add


@linear(np.array, "arrays", expand=True, sequence=("arrays",))
class array:
    def primal(arrays):
        return np.array(arrays)

    def vjp_arrays(dy, arrays, k=None):
        return dy if k is None else dy[k]           # of one number there is no k


@linear(np.asarray, "a", alias=(np.asanyarray,), full_rank="moves")
class asarray:
    def primal(a, dtype=None, *, copy=None):
        return np.asarray(a, dtype=dtype, copy=copy)

    def vjp_a(dy):
        return dy


@linear(put, "x", "value", expand=True)
class put_:
    def primal(x, index, value):
        return put(x, index, value)

    def vjp_x(dy, index):
        return put(dy, index, 0)

    def vjp_value(dy, index):
        return dy[index]

    def last_written(slot, x, index):
        """Of the entries of a value that an index array sends to one place, the last is there."""
        number = np.reshape(np.arange(slot.size), slot.shape)
        last = put(np.zeros(x.shape, dtype=int), index, number)
        return np.where(last[index] == number, slot, 0)


@linear(put_add, "x", "value", expand=True, alias=(add_at,))
class put_add_:
    def primal(x, index, value):
        return put_add(x, index, value)

    def vjp_x(dy):
        return dy

    def vjp_value(dy, index):
        return dy[index]


@linear(scatter_add, "value", rewrite=True)
class scatter_add_:
    def primal(like, index, value):
        return add_at(np.zeros(like.shape, dtype=value.dtype), index, value)


@linear(unbroadcast, "value", expand=True)
class unbroadcast_:
    def primal(value, like):
        return unbroadcast(value, like)

    def vjp_value(dy, value):
        return broadcast_like(dy, value)


@linear(broadcast_like, "value", expand=True)
class broadcast_like_:
    def primal(value, like):
        return broadcast_like(value, like)

    def vjp_value(dy, value):
        return unbroadcast(dy, value)


for _function in (float, complex):
    @linear(_function, "x", expand=True)
    class number:
        def primal(x):
            return float(x)

        def vjp_x(dy):
            return dy


@linear(astype, "x")
class astype_:
    def primal(x, dtype, number=False):
        return astype(x, dtype)

    def vjp_x(dy):
        return dy


for _function in (shape_of, size_of, both, either, nonempty, run_length, range):
    @constant(_function)
    class known:
        def primal(*args):
            return args


@constant(stop_gradient)
class stop_gradient_:
    def primal(x):
        return stop_gradient(x)
