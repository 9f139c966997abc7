# SPDX-License-Identifier: Apache-2.0
"""Functions and methods that write into an array they are given: out=, ufunc.at, np.copyto, np.putmask and their kin.

Each computes what is in the array afterwards; the names that show it are `storage.py`'s matter.
"""
import functools
import inspect
import operator
from collections.abc import Callable

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype, unify
from gradscribe.ast_transform.core.operations import add_at, put
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Struct
from gradscribe.ast_transform.passes.views import gathers, is_array
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError

IN_PLACE = ("sort", "partition", "fill", "put")
UNKNOWN_METHODS = ("resize", "itemset", "setflags", "setfield", "byteswap")


class Filling:
    # out=

    def call_into(self, function, args, words, node):
        """The value that a function writes into out=; None where it has no such argument.

        The target may be an operand too: operands are values, as they were before the call.
        """
        place = _place_of_out(function) if "out" in words or len(args) > 2 or isinstance(function, np.ufunc) else None
        if place is None or "out" not in words and len(args) <= place:
            return None
        words = dict(words)
        target = self.settle(words.pop("out") if "out" in words else args[place])
        label = spelled(function)
        if len(args) > place + 1:
            self.fail(RuleError, f"{label}: too many positional arguments", node)
        args = args[:place] if len(args) > place else args
        if isinstance(target, Struct) and target.kind == "tuple" and len(target.items) == 1:
            target = self.settle(target.items[0])
        if isinstance(target, Const) and target.value is None:
            return self.call_known(function, args, words, node)
        if not is_array(target):
            self.fail(LanguageError, f"out= of {label} is an array with axes here, {self.spell(target)} is given", node,
                      f"Write y = {label}(...).")
        any_kind = isinstance(function, np.ufunc) or function is np.clip
        mask = self.settle(words.pop("where", Const(True))) if any_kind else Const(True)
        if not (isinstance(mask, Const) and mask.value is True):
            return self.call_where(function, args, words, target, mask, node)
        value = self.operand(self.settle(self.call_known(function, args, words, node)))
        self.must_fit(value, target, label, node)
        fact, rank = fact_of(value), target.fact.rank
        if not same_dtype(np.dtype(fact.dtype), target.fact.dtype) and not any_kind:
            self.fail(LanguageError, f"{label} of dtype {np.dtype(fact.dtype)} with out= of dtype {target.fact.dtype}: "
                      "NumPy may compute in either", node, f"Write y[...] = {label}(...).")
        if fact.rank > rank or fact.rank < rank and not any_kind or any(
                d.is_unit and not e.is_unit for d, e in zip(target.fact.dims[rank - fact.rank:], fact.dims)) or \
                not any_kind and any(e.is_unit and not d.is_unit for d, e in zip(target.fact.dims, fact.dims)):
            self.fail(ShapeError, f"{label} gives {self.spell(value)}, out= is {self.spell(target)}", node)
        if fact.rank == rank and isinstance(value, Var) and all(
                d.same(e) for d, e in zip(fact.dims, target.fact.dims)):
            return self.replace_whole(target, value, node)
        return self.written_into(target, Const(Ellipsis), value, node)

    def call_where(self, function, args, words, target, mask, node):
        """A ufunc with out= and where=: computed at the entries that the mask selects, and at no other."""
        mask = self.array_of(mask, node) if isinstance(mask, Struct) else mask
        if not isinstance(fact_of(mask), Array) or fact_of(mask).kind != "b":
            self.fail(ShapeError, f"where= is an array of truth values, {self.spell(mask)} is given", node,
                      "Compare: where=x != 0.")
        lengths = [self.build.length(target, k) for k in range(target.fact.rank)]

        def spread(value):
            dims = fact_of(value).dims
            if len(dims) == len(lengths) and all(d.same(e) for d, e in zip(dims, target.fact.dims)):
                return value
            return self.rule_call(np.broadcast_to, [value, Struct("tuple", lengths)], {}, node)

        mask, chosen = spread(mask), []
        for value in map(self.settle, args):
            value = self.array_of(value, node) if isinstance(value, Struct) else value
            if fact_of(value).dims:
                value = self.build.item(spread(value), mask)
                for other in chosen:
                    if fact_of(other).dims:
                        unify(fact_of(other).dims[0], value.fact.dims[0])
            chosen.append(value)
        value = self.operand(self.settle(self.call_known(function, chosen, words, node)))
        self.must_fit(value, target, spelled(function), node)
        return self.written_into(target, mask, value, node)

    def written_into(self, target, index, value, node):
        """target[index] = value; the array as it is then."""
        with self.waiting([target]) as held:
            self.write(target, index, value, node)
        return held[0]

    def replace_whole(self, target, value, node):
        """target[...] = value, of the same shape; the array as it is then."""
        if not same_dtype(value.fact.dtype, target.fact.dtype):
            value = self.build.cast(value, target.fact.dtype, target.hint)
        elif value is target or self.is_view(value) or value not in self.build.made or value in self.tokens:
            value = self.alias(value)
        with self.waiting([target]) as held:
            self.replace_all(target, value, node)
        return held[0]

    def must_fit(self, value, target, label, node):
        """NumPy's casting="same_kind"."""
        fact = fact_of(value)
        if not isinstance(fact, Array):
            self.fail(ShapeError, f"{self.spell(value)} cannot be an element of an array", node)
        if isinstance(value, Const) and fact.weak and fact.kind in "biu" and target.fact.kind in "iufc":
            return                      # a Python integer takes the array's dtype
        if not np.can_cast(np.dtype(fact.dtype), np.dtype(target.fact.dtype), "same_kind"):
            self.fail(ShapeError, f"{label}: {self.spell(value)} is not written into {self.spell(target)}", node,
                      "NumPy refuses it as well; convert it with astype.")

    # ufunc.at

    def call_at(self, function, args, words, node):
        ufunc, label = function.__self__, f"np.{function.__self__.__name__}.at"
        if len(args) != ufunc.nin + 1 or words:
            self.fail(RuleError, f"{label}: only (a, indices{', b' * (ufunc.nin > 1)}) is understood", node)
        holder, index = self.settle(args[0]), self.index_of(args[1], node)
        if not is_array(holder):
            self.fail(ShapeError, f"{self.spell(holder)} is not written into", node)
        value = self.settle(args[2]) if ufunc.nin > 1 else None
        value = self.array_of(value, node) if isinstance(value, Struct) else value
        if ufunc in (np.add, np.subtract):
            self.must_fit(value, holder, label, node)
            if ufunc is np.subtract:
                if fact_of(value).kind in "bu":
                    self.fail(LanguageError, f"{label} of {self.spell(value)} is not differentiated", node,
                              "Convert it with astype.")
                value = self.build.apply(operator.neg, value)
            self.write(holder, index, self.operand(value), node, add_at)
            return Const(None)
        if gathers(index) and not (isinstance(index, Var) and index.fact.kind == "b"):
            self.fail(LanguageError, f"{label} with an index array, which may name an entry twice, is not "
                      "differentiated", node, f"Where no entry is named twice, write a[i] = np.{ufunc.__name__}(a[i]"
                      f"{', b' * (ufunc.nin > 1)}); otherwise a loop.")
        old = self.build.item(holder, index)
        new = self.operand(self.settle(self.call_known(ufunc, [old] if value is None else [old, value], {}, node)))
        self.must_fit(new, holder, label, node)
        self.write(holder, index, new, node)
        return Const(None)

    # functions that fill

    def method_in_place(self, value, name, args, words, node):
        """x.sort(axis), x.partition(kth), x.fill(v), x.put(i, v)"""
        if name in ("sort", "partition"):
            function = np.sort if name == "sort" else np.partition
            self.replace_all(value, self.rule_call(function, [value, *args], words, node), node)
            return Const(None)
        if name == "put":
            return self.call_put(np.put, [value, *args], {{"indices": "ind", "values": "v"}.get(k, k): v
                                                          for k, v in words.items()}, node)
        if len(args) != 1 or words:
            self.fail(RuleError, f"{name}: these arguments are not understood", node)
        self.write(value, Const(Ellipsis), self.operand(self.settle(args[0])), node)
        return Const(None)

    def call_copyto(self, function, args, words, node):
        words = dict(words)
        mask = words.pop("where", args[3] if len(args) > 3 else Const(True))
        if len(args) not in (2, 4) or words:
            self.fail(RuleError, "np.copyto: only (dst, src, where=mask) is understood", node,
                      "Convert with astype, and leave the others out.")
        target, value = (self.settle(a) for a in args[:2])
        if isinstance(mask, Const) and mask.value is True:
            return self.write_call(target, Const(Ellipsis), value, node, put)
        return self.fill_where(target, mask, value, "np.copyto", node)

    def call_putmask(self, function, args, words, node):
        """np.putmask: an entry takes the value of its place, row by row; values that are fewer begin anew."""
        target, mask, value = self.masked(function, ("a", "mask", "values"), args, words, node)
        return self.fill_where(target, mask, self.filling_all(value, target, node), spelled(function), node)

    def call_place(self, function, args, words, node):
        """np.place: the entries that the mask selects take the values in turn."""
        target, mask, value = self.masked(function, ("arr", "mask", "vals"), args, words, node)
        if fact_of(value).dims:
            mask = mask if fact_of(mask).kind == "b" else self.build.apply(operator.ne, mask, Const(0))
            place = self.binary(operator.sub, self.rule_call(np.cumsum, [mask], {}, node), Const(1), node)
            value = self.picked_in_turn(value, place, target, node)
        return self.fill_where(target, mask, value, spelled(function), node)

    def masked(self, function, names, args, words, node):
        """What is filled, with a mask of its axes and values."""
        target, mask, value = self.given(spelled(function), names, args, words, node)
        if not is_array(target) or fact_of(mask).rank != fact_of(target).rank:
            self.fail(LanguageError, f"{spelled(function)}: a mask with the axes of the array is needed", node,
                      "Write a[mask] = values, or np.where(mask, values, a).")
        return target, mask, self.one_of(value)

    def filling_all(self, value, target, node):
        """A value for each entry of an array, as NumPy fills it: row by row, beginning anew where the values end."""
        dims, rows = fact_of(value).dims, target.fact.dims[target.fact.rank - fact_of(value).rank:]
        if len(dims) == len(rows) and all(d.same(e) for d, e in zip(dims, rows)):
            return value
        place = self.rule_call(np.arange, [self.size(target)], {}, node)
        return self.picked_in_turn(value, place, target, node)

    def picked_in_turn(self, value, place, target, node):
        """For each entry of an array the one at a place of another, which begins anew where it ends."""
        if fact_of(value).rank > 1:
            value = self.rule_call(np.ravel, [value], {}, node)
        place = self.binary(operator.mod, place, self.build.length(value, 0), node)
        if target.fact.rank > 1:
            place = self.rule_call(np.reshape, [place, self.array_attribute(target, "shape", node)], {}, node)
        return self.build.item(value, place)

    def given(self, label, names, args, words, node):
        """The arguments of a function that fills, by their places and names; lists are arrays."""
        found = {**dict(zip(names, args)), **words}
        if set(found) != set(names) or len(args) + len(words) != len(names):
            self.fail(RuleError, f"{label}: only ({', '.join(names)}) is understood", node)
        values = [self.settle(found[n]) for n in names]
        values = [self.array_of(v, node) if isinstance(v, Struct) else v for v in values]
        for v in values:
            if not isinstance(fact_of(v), Array):
                self.fail(ShapeError, f"{label} needs arrays, {self.spell(v)} is given", node)
        return values

    def one_of(self, value):
        """The number that an array of one entry holds; any other array as it is."""
        dims = fact_of(value).dims
        if not dims or not all(d.is_unit for d in dims):
            return value
        return self.build.item(value, Const((0,) * len(dims)) if len(dims) > 1 else Const(0))

    def in_turn(self, value, count, node, length=None):
        """So many of an array's entries, row by row and again from the first: what NumPy fills places with.

        length: `count` as the length of an axis.
        """
        if fact_of(value).rank > 1:
            value = self.rule_call(np.ravel, [value], {}, node)
        if length is not None and value.fact.dims[0].same(length):
            return value
        size = self.build.length(value, 0)
        if isinstance(size, Const) and isinstance(count, Const) and size.value >= count.value:
            return value if size.value == count.value else self.build.item(value, Const(slice(count.value)))
        place = self.rule_call(np.arange, [count], {}, node)
        return self.build.item(value, self.binary(operator.mod, place, size, node))

    def fill_where(self, target, mask, value, label, node):
        """The entries of an array that a mask selects become the value's."""
        if not is_array(target):
            self.fail(ShapeError, f"{self.spell(target)} is not written into", node)
        mask, value = (self.operand(self.array_of(v, node) if isinstance(v, Struct) else v)
                       for v in map(self.settle, (mask, value)))
        self.must_fit(value, target, label, node)
        if not isinstance(fact_of(mask), Array):
            self.fail(ShapeError, f"{label}: {self.spell(mask)} is no mask", node)
        if fact_of(mask).kind != "b":
            mask = self.build.apply(operator.ne, mask, Const(0))
        if isinstance(value, Var) and not same_dtype(value.fact.dtype, target.fact.dtype):
            value = self.build.cast(value, target.fact.dtype, value.hint)
        new = self.rule_call(np.where, [mask, value, target], {}, node)
        dims = new.fact.dims
        if len(dims) != target.fact.rank or any(e.is_unit and not d.is_unit for d, e in zip(dims, target.fact.dims)):
            self.fail(ShapeError, f"{label}: {self.spell(mask)} and {self.spell(value)} do not fit into "
                      f"{self.spell(target)}", node)
        self.replace_whole(target, new, node)
        return Const(None)

    def call_fill_diagonal(self, function, args, words, node):
        words = dict(words)
        wrap = self.static(args[2] if len(args) > 2 else words.pop("wrap", Const(False)), "wrap of np.fill_diagonal",
                           node)
        target, value = self.given("np.fill_diagonal", ("a", "val"), args[:2], words, node)
        dims = fact_of(target).dims
        if len(dims) < 2 or len(dims) > 2 and not all(unify(dims[0], d) for d in dims[1:]):
            self.fail(ShapeError, "np.fill_diagonal: a matrix is needed, or an array whose axes have one length", node)
        value, rank = self.one_of(value), target.fact.rank
        rows, columns = (self.build.length(target, k) for k in range(2))
        if wrap and rank == 2:          # the diagonals of tall matrices go on below the square
            step = self.binary(operator.add, columns, Const(1), node)
            place = self.rule_call(np.arange, [Const(0), self.size(target), step], {}, node)
            if fact_of(value).dims:
                value = self.in_turn(value, self.build.length(place, 0), node, place.fact.dims[0])
            return self.write_call(target, self.places_of(place, target, node), value, node, put)
        square = target.fact.dims[0].same(target.fact.dims[1])
        count = rows if square else self.call_known(min, [rows, columns], {}, node)
        if fact_of(value).dims:
            value = self.in_turn(value, count, node, target.fact.dims[0] if square else None)
        if rank == 2 and (square or not fact_of(value).dims):
            mask = self.rule_call(np.eye, [rows, columns], {"dtype": Const(bool)}, node)
            return self.fill_where(target, mask, value, "np.fill_diagonal", node)
        place = self.rule_call(np.arange, [count], {}, node)
        return self.write_call(target, Pack("tuple", (place,) * rank), value, node, put)

    def call_put_along_axis(self, function, args, words, node):
        given = {**dict(zip(("arr", "indices", "values", "axis"), args)), **words}
        target, indices = self.settle(given.get("arr")), self.settle(given.get("indices"))
        indices = self.array_of(indices, node) if isinstance(indices, Struct) else indices
        axis = self.static(given.get("axis", Const(None)), "the axis of np.put_along_axis", node)
        if len(args) + len(words) != len(given) or set(given) - {"arr", "indices", "values", "axis"} or \
                "values" not in given or axis is None or not is_array(target) or not is_array(indices) or \
                indices.fact.rank != target.fact.rank:
            self.fail(RuleError, "np.put_along_axis: only (arr, indices, values, axis) of arrays with the same axes "
                      "is understood", node)
        rank, places = target.fact.rank, []
        for k in range(rank):
            if k == axis % rank:
                places.append(indices)
                continue
            along = self.rule_call(np.arange, [self.build.length(target, k)], {}, node)
            shape = tuple(slice(None) if j == k else None for j in range(rank))
            places.append(self.build.item(along, Const(shape)))
        index = Pack("tuple", tuple(places)) if rank > 1 else places[0]
        return self.write_call(target, index, given["values"], node, put)

    def call_put(self, function, args, words, node):
        words = dict(words)
        mode = self.static(args[3] if len(args) > 3 else words.pop("mode", Const("raise")), "the mode of np.put", node)
        holder, index, value = self.given("np.put", ("a", "ind", "v"), args[:3], words, node)
        if not is_array(holder) or mode not in ("raise", "wrap", "clip"):
            self.fail(RuleError, f"np.put: {self.spell(holder)} and the mode {mode!r} are not understood", node,
                      "Give an array, and one of the modes raise, wrap and clip.")
        if fact_of(index).rank > 1:
            index = self.rule_call(np.ravel, [index], {}, node)
        value, size = self.one_of(value), self.size(holder)
        if mode == "wrap":
            index = self.binary(operator.mod, index, size, node)
        elif mode == "clip":
            last = self.binary(operator.sub, size, Const(1), node)
            index = self.rule_call(np.clip, [index, Const(0), last], {}, node)
        if fact_of(value).dims and fact_of(index).dims:
            value = self.in_turn(value, self.build.length(index, 0), node, fact_of(index).dims[0])
        elif fact_of(value).dims:
            value = self.build.item(value, Const((0,) * fact_of(value).rank))
        return self.write_call(holder, self.places_of(index, holder, node), value, node, put)

    def places_of(self, index, target, node):
        """The index along each axis of an entry's place when the array is read row by row; -1 is the last."""
        places = []
        for axis in reversed(range(1, target.fact.rank)):
            length = self.build.length(target, axis)
            places.append(self.binary(operator.mod, index, length, node))
            index = self.binary(operator.floordiv, index, length, node)
        return Pack("tuple", (index, *places[::-1])) if places else index

    def call_nan_to_num(self, function, args, words, node):
        """copy=False writes into the array that is given, and gives it."""
        words = {**dict(zip(("x", "copy", "nan", "posinf", "neginf"), args)), **words}
        copied = self.static(words.pop("copy", Const(True)), "copy= of np.nan_to_num", node)
        target = self.settle(words["x"]) if "x" in words else None
        words = {k: v for k, v in words.items() if k != "x"}
        if copied:
            return self.rule_call(function, [] if target is None else [target], words, node)
        if not is_array(target):
            self.fail(LanguageError, f"np.nan_to_num with copy=False writes into an array with axes, "
                      f"{self.spell(target)} is given", node, "Leave copy=False out.")
        if target.fact.kind not in "fc":
            return target               # whole numbers are what they are
        return self.replace_whole(target, self.rule_call(function, [target], words, node), node)

    def write_call(self, holder, index, value, node, function):
        """A function that writes into its first argument."""
        value = self.settle(value)
        value = self.array_of(value, node) if isinstance(value, Struct) else value
        holder = self.settle(holder)
        if is_array(holder):
            self.must_fit(value, holder, "the write", node)
        self.write(holder, self.index_of(index, node), self.operand(value), node, function)
        return Const(None)

    def index_of(self, index, node):
        index = self.settle(index)
        if isinstance(index, Struct) and index.kind == "tuple":
            return Pack("tuple", tuple([self.list_as_index(i, node) if isinstance(i, Struct) else i
                                        for i in index.items]))
        return self.list_as_index(index, node) if isinstance(index, Struct) else index

    # attributes

    def set_entries(self, holder, name, value, node):
        """x.real = value, x.imag = value, x.flat = value: what the attribute shows is written, from end to end."""
        if name not in ("real", "imag", "flat") or name == "imag" and holder.fact.kind != "c":
            self.refuse_write(node)
        value = self.settle(value)
        value = self.array_of(value, node) if isinstance(value, Struct) else value
        if name == "flat" and fact_of(value).dims:
            value = self.filling_all(self.one_of(value), holder, node)
        return self.write_call(holder if name == "flat" else self.attribute(holder, name, node), Const(Ellipsis), value,
                               node, put)

    def flat(self, value):
        """x.flat: the entries row by row, whatever the layout is; a slice of it is a copy."""
        view = self.build.apply(np.ravel, value)
        self.flats[view] = True
        return view


FILLING: dict[Callable, str] = {
    np.copyto: "call_copyto",
    np.put: "call_put",
    np.nan_to_num: "call_nan_to_num",
    np.putmask: "call_putmask",
    np.place: "call_place",
    np.fill_diagonal: "call_fill_diagonal",
    np.put_along_axis: "call_put_along_axis",
    **{u.at: "call_at" for u in vars(np).values() if isinstance(u, np.ufunc)},
}


@functools.cache
def _place_of_out(function):
    """Where among the positional arguments a NumPy function takes out=, or None."""
    if isinstance(function, np.ufunc):
        return function.nin if function.nout == 1 else None
    if isinstance(getattr(function, "__self__", None), np.ufunc):       # of outer it reaches the ufunc itself
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
