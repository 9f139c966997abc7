# SPDX-License-Identifier: Apache-2.0
"""Functions and methods that write into an argument: out=, ufunc.at, np.copyto, np.putmask and similar.

A call comes in; the new contents of the array come out as a value.  `memory.py` then updates the aliases of the array.
"""
import functools
import inspect
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype, unify
from gradscribe.ast_transform.core.operations import add_at, put
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.memory import pending_values, refuse_write, replace_all, write_entry
from gradscribe.ast_transform.reader.operands import as_operand, entry_count, known_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.reader.views import alias_of, gathers, is_array, is_view
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError

IN_PLACE = ("sort", "partition", "fill", "put")
UNKNOWN_METHODS = ("resize", "itemset", "setflags", "setfield", "byteswap")


def call_into(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """The value that a function writes into out=; None if it has no such argument.

    The target may also be an operand: operands are values from before the call.
    """
    place = _place_of_out(function) if "out" in words or len(args) > 2 or isinstance(function, np.ufunc) else None
    if place is None or "out" not in words and len(args) <= place:
        return None
    words = dict(words)
    target = settle(reader, words.pop("out") if "out" in words else args[place])
    label = spelled(function)
    if len(args) > place + 1:
        fail(reader, RuleError, f"{label}: too many positional arguments", node)
    args = args[:place] if len(args) > place else args
    if isinstance(target, Struct) and target.kind == "tuple" and len(target.items) == 1:
        target = settle(reader, target.items[0])
    if isinstance(target, Const) and target.value is None:
        return dispatch.call_known(reader, function, args, words, node)
    if not is_array(target):
        fail(
            reader,
            LanguageError,
            f"out= of {label} is an array with axes here, {spelled_value(reader, target)} is given",
            node,
            f"Write y = {label}(...).",
        )
    any_kind = isinstance(function, np.ufunc) or function is np.clip
    mask = settle(reader, words.pop("where", Const(True))) if any_kind else Const(True)
    if not (isinstance(mask, Const) and mask.value is True):
        return call_where(reader, function, args, words, target, mask, node)
    value = as_operand(reader, settle(reader, dispatch.call_known(reader, function, args, words, node)))
    must_fit(reader, value, target, label, node)
    fact, rank = fact_of(value), target.fact.rank
    if not same_dtype(np.dtype(fact.dtype), target.fact.dtype) and not any_kind:
        fail(reader, LanguageError, f"{label} of dtype {np.dtype(fact.dtype)} with out= of dtype {target.fact.dtype}: "
             "NumPy may compute in either", node, f"Write y[...] = {label}(...).")
    if fact.rank > rank or fact.rank < rank and not any_kind or any(
            d.is_unit and not e.is_unit for d, e in zip(target.fact.dims[rank - fact.rank:], fact.dims)) or \
            not any_kind and any(e.is_unit and not d.is_unit for d, e in zip(target.fact.dims, fact.dims)):
        fail(
            reader,
            ShapeError,
            f"{label} gives {spelled_value(reader, value)}, out= is {spelled_value(reader, target)}",
            node,
        )
    if fact.rank == rank and isinstance(value, Var) and all(
            d.same(e) for d, e in zip(fact.dims, target.fact.dims)):
        return replace_whole(reader, target, value, node)
    return written_into(reader, target, Const(Ellipsis), value, node)


def call_where(reader: Reader, function, args, words, target, mask, node):
    """A ufunc with out= and where=, computed only at the entries that the mask selects."""
    mask = dispatch.array_of(reader, mask, node) if isinstance(mask, Struct) else mask
    if not isinstance(fact_of(mask), Array) or fact_of(mask).kind != "b":
        fail(reader, ShapeError, f"where= is an array of truth values, {spelled_value(reader, mask)} is given", node,
             "Compare: where=x != 0.")
    lengths = [reader.build.length(target, k) for k in range(target.fact.rank)]

    def spread(value):
        dims = fact_of(value).dims
        if len(dims) == len(lengths) and all(d.same(e) for d, e in zip(dims, target.fact.dims)):
            return value
        return dispatch.rule_call(reader, np.broadcast_to, [value, Struct("tuple", lengths)], {}, node)

    mask = spread(mask)
    chosen: list = []
    for value in map(partial(settle, reader), args):
        value = dispatch.array_of(reader, value, node) if isinstance(value, Struct) else value
        if fact_of(value).dims:
            value = reader.build.item(spread(value), mask)
            for other in chosen:
                if fact_of(other).dims:
                    unify(fact_of(other).dims[0], value.fact.dims[0])
        chosen.append(value)
    value = as_operand(reader, settle(reader, dispatch.call_known(reader, function, chosen, words, node)))
    must_fit(reader, value, target, spelled(function), node)
    return written_into(reader, target, mask, value, node)


def written_into(reader: Reader, target: Any, index: Any, value: Any, node: gast.AST | None) -> Any:
    """The target after target[index] = value."""
    with pending_values(reader, [target]) as held:
        write_entry(reader, target, index, value, node)
    return held[0]


def replace_whole(reader: Reader, target, value, node):
    """The target after target[...] = value, where value has the same shape."""
    if not same_dtype(value.fact.dtype, target.fact.dtype):
        value = reader.build.cast(value, target.fact.dtype, target.hint)
    elif value is target or is_view(reader, value) or value not in reader.build.made or value in reader.memory.tokens:
        value = alias_of(reader, value)
    with pending_values(reader, [target]) as held:
        replace_all(reader, target, value, node)
    return held[0]


def must_fit(reader: Reader, value, target, label, node):
    """Refuse a value that NumPy's casting="same_kind" does not allow."""
    fact = fact_of(value)
    if not isinstance(fact, Array):
        fail(reader, ShapeError, f"{spelled_value(reader, value)} cannot be an element of an array", node)
    if isinstance(value, Const) and fact.weak and fact.kind in "biu" and target.fact.kind in "iufc":
        return                      # a Python integer takes the array's dtype
    if not np.can_cast(np.dtype(fact.dtype), np.dtype(target.fact.dtype), "same_kind"):
        fail(
            reader,
            ShapeError,
            f"{label}: {spelled_value(reader, value)} is not written into {spelled_value(reader, target)}",
            node,
            "NumPy refuses it as well; convert it with astype.",
        )


def call_at(reader: Reader, function, args, words, node):
    ufunc, label = function.__self__, f"np.{function.__self__.__name__}.at"
    if len(args) != ufunc.nin + 1 or words:
        fail(reader, RuleError, f"{label}: only (a, indices{', b' * (ufunc.nin > 1)}) is understood", node)
    holder, index = settle(reader, args[0]), index_of_write(reader, args[1], node)
    if not is_array(holder):
        fail(reader, ShapeError, f"{spelled_value(reader, holder)} is not written into", node)
    value = settle(reader, args[2]) if ufunc.nin > 1 else None
    value = dispatch.array_of(reader, value, node) if isinstance(value, Struct) else value
    if ufunc in (np.add, np.subtract):
        must_fit(reader, value, holder, label, node)
        if ufunc is np.subtract:
            if fact_of(value).kind in "bu":
                fail(reader, LanguageError, f"{label} of {spelled_value(reader, value)} is not differentiated", node,
                     "Convert it with astype.")
            value = reader.build.apply(operator.neg, value)
        write_entry(reader, holder, index, as_operand(reader, value), node, add_at)
        return Const(None)
    if gathers(index) and not (isinstance(index, Var) and index.fact.kind == "b"):
        fail(reader, LanguageError, f"{label} with an index array, which may name an entry twice, is not "
             "differentiated", node, f"Where no entry is named twice, write a[i] = np.{ufunc.__name__}(a[i]"
             f"{', b' * (ufunc.nin > 1)}); otherwise a loop.")
    old = reader.build.item(holder, index)
    new = as_operand(
        reader, settle(reader, dispatch.call_known(reader, ufunc, [old] if value is None else [old, value], {}, node))
    )
    must_fit(reader, new, holder, label, node)
    write_entry(reader, holder, index, new, node)
    return Const(None)


def method_in_place(reader: Reader, value: Any, name: str, args: list, words: dict[str, Any],
                    node: gast.AST | None) -> Any:
    """x.sort(axis), x.partition(kth), x.fill(v), x.put(i, v)"""
    if name in ("sort", "partition"):
        function = np.sort if name == "sort" else np.partition
        replace_all(reader, value, dispatch.rule_call(reader, function, [value, *args], words, node), node)
        return Const(None)
    if name == "put":
        return call_put(reader, np.put, [value, *args], {{"indices": "ind", "values": "v"}.get(k, k): v
                                                         for k, v in words.items()}, node)
    if len(args) != 1 or words:
        fail(reader, RuleError, f"{name}: these arguments are not understood", node)
    write_entry(reader, value, Const(Ellipsis), as_operand(reader, settle(reader, args[0])), node)
    return Const(None)


def call_copyto(reader: Reader, function, args, words, node):
    words = dict(words)
    mask = words.pop("where", args[3] if len(args) > 3 else Const(True))
    if len(args) not in (2, 4) or words:
        fail(reader, RuleError, "np.copyto: only (dst, src, where=mask) is understood", node,
             "Convert with astype, and leave the others out.")
    target, value = (settle(reader, a) for a in args[:2])
    if isinstance(mask, Const) and mask.value is True:
        return write_call(reader, target, Const(Ellipsis), value, node, put)
    return fill_where(reader, target, mask, value, "np.copyto", node)


def call_putmask(reader: Reader, function, args, words, node):
    """np.putmask: an entry takes the value at its own position, row by row; fewer values are repeated."""
    target, mask, value = masked_entries(reader, function, ("a", "mask", "values"), args, words, node)
    return fill_where(reader, target, mask, filling_all(reader, value, target, node), spelled(function), node)


def call_place(reader: Reader, function, args, words, node):
    """np.place: the entries that the mask selects take the values in sequence."""
    target, mask, value = masked_entries(reader, function, ("arr", "mask", "vals"), args, words, node)
    if fact_of(value).dims:
        mask = mask if fact_of(mask).kind == "b" else reader.build.apply(operator.ne, mask, Const(0))
        place = dispatch.binary(
            reader, operator.sub, dispatch.rule_call(reader, np.cumsum, [mask], {}, node), Const(1), node
        )
        value = picked_in_turn(reader, value, place, target, node)
    return fill_where(reader, target, mask, value, spelled(function), node)


def masked_entries(reader: Reader, function, names, args, words, node):
    """The array to fill, a mask of the same rank, and the values."""
    target, mask, value = arguments_of_filling(reader, spelled(function), names, args, words, node)
    if not is_array(target) or fact_of(mask).rank != fact_of(target).rank:
        fail(reader, LanguageError, f"{spelled(function)}: a mask with the axes of the array is needed", node,
             "Write a[mask] = values, or np.where(mask, values, a).")
    return target, mask, one_of(reader, value)


def filling_all(reader: Reader, value, target, node):
    """A value for each entry of an array, as NumPy fills it: row by row, with the values repeated."""
    dims, rows = fact_of(value).dims, target.fact.dims[target.fact.rank - fact_of(value).rank:]
    if len(dims) == len(rows) and all(d.same(e) for d, e in zip(dims, rows)):
        return value
    place = dispatch.rule_call(reader, np.arange, [entry_count(reader, target)], {}, node)
    return picked_in_turn(reader, value, place, target, node)


def picked_in_turn(reader: Reader, value, place, target, node):
    """The entries of an array at the given places, where a place beyond its end wraps around."""
    if fact_of(value).rank > 1:
        value = dispatch.rule_call(reader, np.ravel, [value], {}, node)
    place = dispatch.binary(reader, operator.mod, place, reader.build.length(value, 0), node)
    if target.fact.rank > 1:
        place = dispatch.rule_call(
            reader, np.reshape, [place, dispatch.array_attribute(reader, target, "shape", node)], {}, node
        )
    return reader.build.item(value, place)


def arguments_of_filling(reader: Reader, label, names, args, words, node):
    """The arguments of a filling function, bound by position and name; lists are converted to arrays."""
    found = {**dict(zip(names, args)), **words}
    if set(found) != set(names) or len(args) + len(words) != len(names):
        fail(reader, RuleError, f"{label}: only ({', '.join(names)}) is understood", node)
    values = [settle(reader, found[n]) for n in names]
    values = [dispatch.array_of(reader, v, node) if isinstance(v, Struct) else v for v in values]
    for v in values:
        if not isinstance(fact_of(v), Array):
            fail(reader, ShapeError, f"{label} needs arrays, {spelled_value(reader, v)} is given", node)
    return values


def one_of(reader: Reader, value):
    """The number in an array of one entry; any other value unchanged."""
    dims = fact_of(value).dims
    if not dims or not all(d.is_unit for d in dims):
        return value
    return reader.build.item(value, Const((0,) * len(dims)) if len(dims) > 1 else Const(0))


def in_turn(reader: Reader, value, count, node, length=None):
    """`count` entries of an array, row by row and repeated from the first, as NumPy uses them to fill places.

    length: `count` as a Length.
    """
    if fact_of(value).rank > 1:
        value = dispatch.rule_call(reader, np.ravel, [value], {}, node)
    if length is not None and value.fact.dims[0].same(length):
        return value
    size = reader.build.length(value, 0)
    if isinstance(size, Const) and isinstance(count, Const) and size.value >= count.value:
        return value if size.value == count.value else reader.build.item(value, Const(slice(count.value)))
    place = dispatch.rule_call(reader, np.arange, [count], {}, node)
    return reader.build.item(value, dispatch.binary(reader, operator.mod, place, size, node))


def fill_where(reader: Reader, target, mask, value, label, node):
    """Write a value's entries where a mask selects them."""
    if not is_array(target):
        fail(reader, ShapeError, f"{spelled_value(reader, target)} is not written into", node)
    mask, value = (as_operand(reader, dispatch.array_of(reader, v, node) if isinstance(v, Struct) else v)
                   for v in map(partial(settle, reader), (mask, value)))
    must_fit(reader, value, target, label, node)
    if not isinstance(fact_of(mask), Array):
        fail(reader, ShapeError, f"{label}: {spelled_value(reader, mask)} is no mask", node)
    if fact_of(mask).kind != "b":
        mask = reader.build.apply(operator.ne, mask, Const(0))
    if isinstance(value, Var) and not same_dtype(value.fact.dtype, target.fact.dtype):
        value = reader.build.cast(value, target.fact.dtype, value.hint)
    new = dispatch.rule_call(reader, np.where, [mask, value, target], {}, node)
    dims = new.fact.dims
    if len(dims) != target.fact.rank or any(e.is_unit and not d.is_unit for d, e in zip(dims, target.fact.dims)):
        fail(
            reader,
            ShapeError,
            f"{label}: {spelled_value(reader, mask)} and {spelled_value(reader, value)} do not fit into "
            f"{spelled_value(reader, target)}",
            node,
        )
    replace_whole(reader, target, new, node)
    return Const(None)


def call_fill_diagonal(reader: Reader, function, args, words, node):
    words = dict(words)
    wrap = known_value(
        reader, args[2] if len(args) > 2 else words.pop("wrap", Const(False)), "wrap of np.fill_diagonal", node
    )
    target, value = arguments_of_filling(reader, "np.fill_diagonal", ("a", "val"), args[:2], words, node)
    dims = fact_of(target).dims
    if len(dims) < 2 or len(dims) > 2 and not all(unify(dims[0], d) for d in dims[1:]):
        fail(reader, ShapeError, "np.fill_diagonal: a matrix is needed, or an array whose axes have one length", node)
    value, rank = one_of(reader, value), target.fact.rank
    rows, columns = (reader.build.length(target, k) for k in range(2))
    if wrap and rank == 2:          # the diagonal of a tall matrix continues below the square
        step = dispatch.binary(reader, operator.add, columns, Const(1), node)
        place = dispatch.rule_call(reader, np.arange, [Const(0), entry_count(reader, target), step], {}, node)
        if fact_of(value).dims:
            value = in_turn(reader, value, reader.build.length(place, 0), node, place.fact.dims[0])
        return write_call(reader, target, places_of(reader, place, target, node), value, node, put)
    square = target.fact.dims[0].same(target.fact.dims[1])
    count = rows if square else dispatch.call_known(reader, min, [rows, columns], {}, node)
    if fact_of(value).dims:
        value = in_turn(reader, value, count, node, target.fact.dims[0] if square else None)
    if rank == 2 and (square or not fact_of(value).dims):
        mask = dispatch.rule_call(reader, np.eye, [rows, columns], {"dtype": Const(bool)}, node)
        return fill_where(reader, target, mask, value, "np.fill_diagonal", node)
    place = dispatch.rule_call(reader, np.arange, [count], {}, node)
    return write_call(reader, target, Pack("tuple", (place,) * rank), value, node, put)


def call_put_along_axis(reader: Reader, function, args, words, node):
    given = {**dict(zip(("arr", "indices", "values", "axis"), args)), **words}
    target, indices = settle(reader, given.get("arr")), settle(reader, given.get("indices"))
    indices = dispatch.array_of(reader, indices, node) if isinstance(indices, Struct) else indices
    axis = known_value(reader, given.get("axis", Const(None)), "the axis of np.put_along_axis", node)
    if len(args) + len(words) != len(given) or set(given) - {"arr", "indices", "values", "axis"} or \
            "values" not in given or axis is None or not is_array(target) or not is_array(indices) or \
            indices.fact.rank != target.fact.rank:
        fail(reader, RuleError, "np.put_along_axis: only (arr, indices, values, axis) of arrays with the same axes "
             "is understood", node)
    rank, places = target.fact.rank, []
    for k in range(rank):
        if k == axis % rank:
            places.append(indices)
            continue
        along = dispatch.rule_call(reader, np.arange, [reader.build.length(target, k)], {}, node)
        shape = tuple(slice(None) if j == k else None for j in range(rank))
        places.append(reader.build.item(along, Const(shape)))
    index = Pack("tuple", tuple(places)) if rank > 1 else places[0]
    return write_call(reader, target, index, given["values"], node, put)


def call_put(reader: Reader, function, args, words, node):
    words = dict(words)
    mode = known_value(
        reader, args[3] if len(args) > 3 else words.pop("mode", Const("raise")), "the mode of np.put", node
    )
    holder, index, value = arguments_of_filling(reader, "np.put", ("a", "ind", "v"), args[:3], words, node)
    if not is_array(holder) or mode not in ("raise", "wrap", "clip"):
        fail(
            reader,
            RuleError,
            f"np.put: {spelled_value(reader, holder)} and the mode {mode!r} are not understood",
            node,
            "Give an array, and one of the modes raise, wrap and clip.",
        )
    if fact_of(index).rank > 1:
        index = dispatch.rule_call(reader, np.ravel, [index], {}, node)
    value, size = one_of(reader, value), entry_count(reader, holder)
    if mode == "wrap":
        index = dispatch.binary(reader, operator.mod, index, size, node)
    elif mode == "clip":
        last = dispatch.binary(reader, operator.sub, size, Const(1), node)
        index = dispatch.rule_call(reader, np.clip, [index, Const(0), last], {}, node)
    if fact_of(value).dims and fact_of(index).dims:
        value = in_turn(reader, value, reader.build.length(index, 0), node, fact_of(index).dims[0])
    elif fact_of(value).dims:
        value = reader.build.item(value, Const((0,) * fact_of(value).rank))
    return write_call(reader, holder, places_of(reader, index, holder, node), value, node, put)


def places_of(reader: Reader, index, target, node):
    """The index along each axis for positions in row-major order; -1 is the last."""
    places = []
    for axis in reversed(range(1, target.fact.rank)):
        length = reader.build.length(target, axis)
        places.append(dispatch.binary(reader, operator.mod, index, length, node))
        index = dispatch.binary(reader, operator.floordiv, index, length, node)
    return Pack("tuple", (index, *places[::-1])) if places else index


def call_nan_to_num(reader: Reader, function, args, words, node):
    """np.nan_to_num; copy=False writes into its argument and returns it."""
    words = {**dict(zip(("x", "copy", "nan", "posinf", "neginf"), args)), **words}
    copied = known_value(reader, words.pop("copy", Const(True)), "copy= of np.nan_to_num", node)
    target: Any = settle(reader, words["x"]) if "x" in words else None
    words = {k: v for k, v in words.items() if k != "x"}
    if copied:
        return dispatch.rule_call(reader, function, [] if target is None else [target], words, node)
    if not is_array(target):
        fail(reader, LanguageError, f"np.nan_to_num with copy=False writes into an array with axes, "
             f"{spelled_value(reader, target)} is given", node, "Leave copy=False out.")
    if target.fact.kind not in "fc":
        return target               # integers stay unchanged
    return replace_whole(reader, target, dispatch.rule_call(reader, function, [target], words, node), node)


def write_call(reader: Reader, holder, index, value, node, function):
    """The value of a call of a function that writes into its first argument."""
    value = settle(reader, value)
    value = dispatch.array_of(reader, value, node) if isinstance(value, Struct) else value
    holder = settle(reader, holder)
    if is_array(holder):
        must_fit(reader, value, holder, "the write", node)
    write_entry(reader, holder, index_of_write(reader, index, node), as_operand(reader, value), node, function)
    return Const(None)


def index_of_write(reader: Reader, index, node):
    index = settle(reader, index)
    if isinstance(index, Struct) and index.kind == "tuple":
        return Pack("tuple", tuple([dispatch.list_as_index(reader, i, node) if isinstance(i, Struct) else i
                                    for i in index.items]))
    return dispatch.list_as_index(reader, index, node) if isinstance(index, Struct) else index


def set_entries(reader: Reader, holder: Any, name: str, value: Any, node: gast.AST | None) -> Any:
    """x.real = value, x.imag = value, x.flat = value: write all entries of the attribute."""
    if name not in ("real", "imag", "flat") or name == "imag" and holder.fact.kind != "c":
        refuse_write(reader, node)
    value = settle(reader, value)
    value = dispatch.array_of(reader, value, node) if isinstance(value, Struct) else value
    if name == "flat" and fact_of(value).dims:
        value = filling_all(reader, one_of(reader, value), holder, node)
    return write_call(
        reader,
        holder if name == "flat" else dispatch.read_attribute(reader, holder, name, node),
        Const(Ellipsis),
        value,
        node,
        put,
    )


def flat_entries(reader: Reader, value: Any) -> Any:
    """x.flat: the entries row by row, for any memory layout; a slice of it is a copy."""
    view = reader.build.apply(np.ravel, value)
    reader.views.flats[view] = True
    return view


@functools.cache
def _place_of_out(function):
    """The position at which a NumPy function takes out= as a positional argument, or None."""
    if isinstance(function, np.ufunc):
        return function.nin if function.nout == 1 else None
    if isinstance(getattr(function, "__self__", None), np.ufunc):       # ufunc.outer passes it on to the ufunc
        return {"reduce": 3, "accumulate": 3, "reduceat": 4}.get(function.__name__)
    if not (getattr(function, "__module__", None) or "").startswith("numpy") or inspect.isclass(function):
        return None
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if "out" not in parameters:
        return None
    keyword = parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY
    return 10**6 if keyword else list(parameters).index("out")


SPECIAL.update({
    np.copyto: call_copyto,
    np.put: call_put,
    np.nan_to_num: call_nan_to_num,
    np.putmask: call_putmask,
    np.place: call_place,
    np.fill_diagonal: call_fill_diagonal,
    np.put_along_axis: call_put_along_axis,
})
SPECIAL.update({u.at: call_at for u in vars(np).values() if isinstance(u, np.ufunc)})
