# SPDX-License-Identifier: Apache-2.0
"""Queries of dtypes and shapes, such as np.result_type: a call comes in, and its result, a constant, comes out."""
from functools import partial

import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.bfloat16 import check_finfo
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.methods import array_of, decide_by_types, method_astype
from gradscribe.ast_transform.reader.operands import as_operand, python_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Grown, RangeValue, Struct, Walk
from gradscribe.ast_transform.source.diagnose import ShapeError


def call_dtypes(reader: Reader, function, args, words, node):
    """np.result_type, np.can_cast and similar: an array is replaced by its dtype, a Python number by its type."""
    def seen(value):
        value = settle(reader, value)
        value = array_of(reader, value, node) if isinstance(value, Struct) and holds_arrays(value) else value
        if isinstance(value, Const) and not isinstance(value.value, np.ndarray):
            return value.value
        fact = fact_of(value) if isinstance(value, (Var, Const)) else None
        if isinstance(fact, Array):
            return fact.dtype(1) if fact.weak else np.dtype(fact.dtype)
        return python_value(reader, value, node)
    args = [seen(a) for a in args]
    if function is np.finfo and args and isinstance(args[0], (np.dtype, type, np.generic)):
        check_finfo(reader, args[0] if isinstance(args[0], (np.dtype, type)) else args[0].dtype, node)
    return Const(tried(reader, lambda: function(*args, **{k: seen(v) for k, v in words.items()}), node=node))


def holds_arrays(value):
    return any(isinstance(i, Var) for i in value.items)


def call_isscalar(reader: Reader, function, args, words, node):
    value = settle(reader, args[0])
    if isinstance(value, Const):
        return Const(function(value.value))
    if isinstance(value, Var) and isinstance(value.fact, Array):
        return decide_by_types(reader, value, lambda cls: not issubclass(cls, (np.ndarray, list)), node)
    return Const(False)


def call_iscomplexobj(reader: Reader, function, args, words, node):
    """np.iscomplexobj and np.isrealobj, which depend on the dtype only."""
    value = settle(reader, args[0])
    value = array_of(reader, value, node) if isinstance(value, Struct) else value
    if not isinstance(fact_of(value), Array):
        return Const(tried(reader, lambda: function(python_value(reader, value, node)), node=node))
    return Const((np.dtype(fact_of(value).dtype).kind == "c") == (function is np.iscomplexobj))


def call_iterable(reader: Reader, function, args, words, node):
    value = args[0] if isinstance(args[0], (RangeValue, Walk)) else settle(reader, args[0])
    if isinstance(value, Const):
        return Const(function(value.value))
    if isinstance(value, Var) and isinstance(value.fact, Array):
        return Const(bool(value.fact.dims))
    return Const(isinstance(value, (Struct, Grown, RangeValue, Walk)))


def call_broadcast_shapes(reader: Reader, function, args, words, node):
    """np.broadcast_shapes; equal lengths that are unknown are represented by one of them."""
    shapes = []
    for a in map(partial(settle, reader), args):
        items = a.items if isinstance(a, Struct) else a.value if isinstance(a, Const) else [a]
        items = items if isinstance(items, (tuple, list)) else [items]
        shapes.append([settle(reader, i) if not isinstance(i, int) else Const(i) for i in items])
    rank, out = max(map(len, shapes), default=0), []
    for k in range(-rank, 0):
        met = [s[k] for s in shapes if len(s) >= -k]
        rest = [n for n in met if not (isinstance(n, Const) and n.value == 1)]
        lengths = [fact_of(n).length for n in rest]
        if any(n is None for n in lengths) or any(not n.same(lengths[0]) for n in lengths[1:]) and not all(
                isinstance(n, Const) for n in rest):
            fail(reader, ShapeError, "np.broadcast_shapes: whether these lengths are equal is not known when "
                 "transforming", node, "Use the shape of what is broadcast: np.broadcast_arrays(a, b).")
        if len({n.value for n in rest if isinstance(n, Const)}) > 1:
            fail(reader, ShapeError, "np.broadcast_shapes: these shapes do not broadcast", node, python=ValueError)
        out.append(rest[0] if rest else Const(1))
    return Struct("tuple", out)


def call_astype(reader: Reader, function, args, words, node):
    words = {k: v for k, v in words.items() if k != "device"}
    return method_astype(reader, as_operand(reader, settle(reader, args[0])), args[1:], words, node)


SPECIAL.update({
    np.result_type: call_dtypes,
    np.promote_types: call_dtypes,
    np.can_cast: call_dtypes,
    np.issubdtype: call_dtypes,
    np.isdtype: call_dtypes,
    np.finfo: call_dtypes,
    np.iinfo: call_dtypes,
    np.dtype: call_dtypes,
    np.isscalar: call_isscalar,
    np.iterable: call_iterable,
    np.iscomplexobj: call_iscomplexobj,
    np.isrealobj: call_iscomplexobj,
    np.broadcast_shapes: call_broadcast_shapes,
    np.astype: call_astype,
})
