# SPDX-License-Identifier: Apache-2.0
"""Functions that apply a function to entries (np.vectorize, np.piecewise), and what is asked about dtypes.

np.vectorize is a loop over the entries, np.piecewise a write of each piece: what they do is what is emitted.
"""
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import may_raise
from gradscribe.ast_transform.core.form import Apply, Const, Let, Var, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.flow import Returned
from gradscribe.ast_transform.passes.values import (
    Bound,
    Derived,
    FunctionValue,
    Grown,
    Method,
    RangeValue,
    Struct,
    Walk,
)
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.rules.applying import entry_by_entry
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError


def vectorized(function, *args):
    """Stands for what np.vectorize(function) is."""


def function_of_numbers(function: Any) -> Callable[..., Any] | None:
    """The Python function that numba.vectorize was given, of a ufunc of Numba's; None of anything else."""
    if not of_numba(function) or hasattr(function, "gufunc_builder"):
        return None
    return getattr(getattr(function, "_dispatcher", None), "py_func", None)


def of_numba(function: Any) -> bool:
    return type(function).__module__.startswith("numba.np.ufunc")


def raises_for_none(value):
    """Whether an operation may raise where its operands have no entries."""
    rule = rule_of(value.function)
    by_entry = rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise"))
    return may_raise(value) and not by_entry and value.function not in (operator.getitem, put)


class Applied:
    # np.vectorize

    def make_vectorized(self, function, args, words, node):
        """np.vectorize(f, ...) in the function that is read."""
        given = {**dict(zip(("pyfunc", "otypes", "doc", "excluded", "cache", "signature"), args)), **words}
        if "pyfunc" not in given:
            self.fail(LanguageError, "np.vectorize is given a function here", node, "Write np.vectorize(f).")
        options = {k: self.static(given[k], f"{k} of np.vectorize", node) for k in ("otypes", "excluded", "signature")
                   if k in given}
        self.plain_vectorize(options, node)
        return Bound(Const(vectorized), [given["pyfunc"], Const(options.get("otypes"))], {})

    def of_vectorize(self, made, args, words, node):
        """An np.vectorize object from outside."""
        self.plain_vectorize({"excluded": made.excluded, "signature": made.signature}, node)
        return self.call_vectorized(vectorized, [self.lift(made.pyfunc, "pyfunc"), Const(made.otypes), *args], words,
                                    node)

    def plain_vectorize(self, options, node):
        for name in ("signature", "excluded"):
            if options.get(name):
                self.fail(RuleError, f"np.vectorize with {name}= is not differentiated", node,
                          "Write the loop over the entries.")

    def call_vectorized(self, function, args, words, node):
        each, otypes, *args = args
        if words or not args:
            self.fail(RuleError, "np.vectorize: a vectorized function takes arrays by position", node,
                      "Leave the names of the arguments out.")
        args = [self.array_of(a, node) if isinstance(a, Struct) else self.operand(a) for a in map(self.settle, args)]
        for a in args:
            if not isinstance(fact_of(a), Array):
                self.fail(ShapeError, f"np.vectorize: an array is needed, {self.spell(a)} is given", node)
        wide = [a for a in args if fact_of(a).dims]
        if not wide:
            value = self.call(each, [self.python_number(a, node) for a in args], {}, node)
            return self.call_array(np.asarray, [value], {}, node)
        dtype = self.dtype_of_entries(each, otypes.value, args, node)
        args = [self.widened(a, node) for a in args]        # NumPy hands Python's numbers over: float32 becomes double
        wide = [a for a in args if fact_of(a).dims]
        if len(wide) > 1 and not self.equally_long(wide):
            wide = list(self.rule_call(np.broadcast_arrays, wide, {}, node).items)
        lengths = [self.build.length(wide[0], k) for k in range(wide[0].fact.rank)]
        rows = iter([self.rule_call(np.ravel, [a], {}, node) if a.fact.rank > 1 else a for a in wide])
        rows = [next(rows) if fact_of(a).dims else a for a in args]
        first = next(a for a in rows if fact_of(a).dims)
        out = self.inline_part(entry_by_entry, [each, Const(dtype), first, *rows])
        return self.rule_call(np.reshape, [out, Struct("tuple", lengths)], {}, node) if len(lengths) > 1 else out

    def of_numbers(self, function, args, words, node):
        """A ufunc of Numba's: the function of numbers that it was made of, for each entry."""
        each, label = function_of_numbers(function), function.__name__
        if each is None:
            self.fail(RuleError, f"{label} is a generalized ufunc: what it writes into an argument is not followed",
                      node, "Write its loops as a function under numba.njit that returns an array.")
        if words or len(args) != function.nin:
            self.fail(RuleError, f"{label}: of a numba.vectorize function only calls with its arrays are understood",
                      node, "Leave out=, where= and dtype= out.")
        args = [self.array_of(a, node) if isinstance(a, Struct) else self.operand(a) for a in map(self.settle, args)]
        args, dtype = self.by_loop(function, args, node)
        wide = [a for a in args if is_array(a)]
        if not wide or self.engine is None:
            return self.in_dtype(self.call(Const(each), args, {}, node), dtype, node)
        if len(wide) > 1 and not self.equally_long(wide):
            wide = list(self.rule_call(np.broadcast_arrays, wide, {}, node).items)
        rank, lengths = fact_of(wide[0]).rank, [self.build.length(wide[0], k) for k in range(fact_of(wide[0]).rank)]
        rows = iter([self.rule_call(np.ravel, [a], {}, node) if rank > 1 else a for a in wide])
        out = self.in_dtype(self.engine.entry_by_entry(self, each, [next(rows) if is_array(a) else a for a in args]),
                            dtype, node)
        return self.rule_call(np.reshape, [out, Struct("tuple", lengths)], {}, node) if rank > 1 else out

    def by_loop(self, function, args, node):
        """Arguments in the dtypes of the first loop that takes them, as ufuncs choose, and the dtype that it gives."""
        given = [np.dtype(fact_of(a).dtype) for a in args]
        for loop in function.types:
            taken, dtype = loop.split("->")
            if all(np.can_cast(have, want, "safe") for have, want in zip(given, taken)):
                return [self.in_dtype(a, np.dtype(want), node) for a, want in zip(args, taken)], np.dtype(dtype)
        if function._frozen:
            self.fail(RuleError, f"{function.__name__} has no loop for {' and '.join(map(str, given))}", node,
                      "Add the signature to numba.vectorize, or leave all of them out.")
        return args, None               # one is compiled for them

    def in_dtype(self, a, dtype, node):
        return a if dtype is None or np.dtype(fact_of(a).dtype) == dtype else self.converted(a, dtype, node)

    def widened(self, a, node):
        wide = {"f": np.dtype(float), "c": np.dtype(complex), "i": np.dtype(int)}.get(fact_of(a).kind)
        return a if not fact_of(a).dims or wide is None else self.converted(a, wide, node)

    def python_number(self, a, node):
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[fact_of(a).kind]
        return self.call_known(kind, [a], {}, node)

    @staticmethod
    def equally_long(arrays):
        return all(a.fact.rank == arrays[0].fact.rank and all(
            d.same(e) for d, e in zip(a.fact.dims, arrays[0].fact.dims)) for a in arrays[1:])

    def dtype_of_entries(self, each, otypes, args, node):
        """What the function gives for one entry, found without keeping what is read."""
        if otypes:
            return np.dtype(otypes[0])
        block, self.build.block = self.build.block, []
        try:
            entries = [Var("v", Array(a.fact.dtype, ())) if fact_of(a).dims else a for a in args]
            fact = fact_of(self.operand(self.settle(self.call(each, entries, {}, node))))
        finally:
            self.build.block = block
        if not isinstance(fact, Array) or fact.dims:
            self.fail(RuleError, "np.vectorize of a function that does not give one number is not differentiated", node,
                      "Write the loop over the entries.")
        return np.dtype(fact.dtype)

    # np.piecewise

    def call_piecewise(self, function, args, words, node):
        if len(args) < 3:
            self.fail(RuleError, "np.piecewise: (x, condlist, funclist) is understood", node)
        x, conditions, functions, *more = args
        x = self.settle(x)
        x = self.array_of(x, node) if isinstance(x, Struct) else self.operand(x)
        conditions, functions = self.settle(conditions), self.listed(self.settle(functions), node)
        if not isinstance(conditions, Struct) or fact_of(x).dims and not any(
                isinstance(c, Struct) or is_array(c) for c in map(self.settle, conditions.items)):
            conditions = Struct("list", [conditions])
        tests = [self.test_of(c, node) for c in conditions.items]
        if len(functions) not in (len(tests), len(tests) + 1):
            self.fail(ShapeError, f"np.piecewise: {len(tests)} conditions and {len(functions)} functions", node,
                      "Give as many, or one more for the rest.")
        scalar = not fact_of(x).dims
        if scalar:
            x = self.array_of(Struct("list", [x]), node)
            tests = [self.array_of(Struct("list", [t]), node) for t in tests]
        if len(functions) > len(tests):
            seen = tests[0]
            for t in tests[1:]:
                seen = self.rule_call(np.logical_or, [seen, t], {}, node)
            tests.append(self.rule_call(np.logical_not, [seen], {}, node))
        y = self.rule_call(np.zeros_like, [x], {}, node)
        for test, each in zip(tests, functions):
            def written(y=y, test=test, each=each):
                value = each if self.is_number(each) else self.call(
                    each, [self.build.item(x, test), *more], words, node)
                value = self.settle(value)
                value = self.operand(self.array_of(value, node) if isinstance(value, Struct) else value)
                if isinstance(fact_of(value), Array) and not (isinstance(value, Const) and fact_of(value).weak) and \
                        not np.can_cast(np.dtype(fact_of(value).dtype), x.fact.dtype, "same_kind"):
                    self.fail(RuleError, f"np.piecewise gives the dtype of x, {x.fact.dtype}: {self.spell(value)} is "
                              "cut", node, "Convert x before: x.astype(float).")
                return self.written_into(y, test, value, node)
            y = self.where_there_are(test, written, y, node)
        return self.as_cell(self.build.item(y, Const(0))) if scalar else y

    def where_there_are(self, test, written, y, node):
        """What a piece writes; under a test where it may raise for no entries: NumPy does not call it for none."""
        before, held = self.snapshot(), list(self.build.block)
        made = written()
        added = self.build.block[len(held):]
        if not any(raises_for_none(s.value) for s in walk(added) if isinstance(s, Let) and isinstance(s.value, Apply)):
            return made
        self.restore(before)
        self.build.block[:] = held
        some = self.truth(self.rule_call(np.any, [test], {}, node), node)
        return self.branch(some, lambda: Returned(written()), lambda: Returned(y), node, "y").value

    def test_of(self, value, node):
        value = self.settle(value)
        value = self.array_of(value, node) if isinstance(value, Struct) else self.operand(value)
        if not isinstance(fact_of(value), Array):
            self.fail(ShapeError, f"np.piecewise: {self.spell(value)} is no condition", node)
        return value if fact_of(value).kind == "b" else self.rule_call(np.not_equal, [value, Const(0)], {}, node)

    def is_number(self, value):
        return not isinstance(value, (FunctionValue, Bound, Method, Derived)) and not (
            isinstance(value, Const) and callable(value.value))

    # arrays of what is iterated over

    def call_fromiter(self, function, args, words, node):
        given = {**dict(zip(("iter", "dtype", "count"), args)), **words}
        count = given.pop("count", Const(-1))
        if set(given) != {"iter", "dtype"} or not (isinstance(count, Const) and count.value == -1):
            self.fail(RuleError, "np.fromiter: (iterable, dtype) is understood", node, "Leave the others out.")
        value = given["iter"]
        if not isinstance(value, Grown):
            value = Struct("list", self.listed(value, node))
        return self.call_known(np.array, [value], {"dtype": given["dtype"]}, node)

    def call_block(self, function, args, words, node):
        """np.block of a list whose length is not known would be read as one array."""
        def grown(value):
            return isinstance(value, Grown) or isinstance(value, Struct) and any(map(grown, value.items))
        if args and grown(args[0]):
            self.fail(RuleError, "np.block of a list whose length is known only when running is not differentiated",
                      node, "Use np.concatenate.")
        return self.rule_call(np.block, args, words, node)

    def call_places(self, function, args, words, node):
        """np.where of a condition alone gives the places where it holds."""
        return self.rule_call(np.nonzero if len(args) == 1 and not words else function, args, words, node)

    def call_objects(self, function, args, words, node):
        self.fail(RuleError, "np.frompyfunc gives arrays of objects, which are not differentiated", node,
                  "Use np.vectorize.")

    def call_text(self, function, args, words, node):
        self.fail(LanguageError, f"np.{function.__name__}: what an array holds is not known when transforming", node,
                  "Print with print.")

    # dtypes and shapes, known now

    def call_dtypes(self, function, args, words, node):
        """np.result_type, np.can_cast and their kin: of an array its dtype, of Python's numbers their type counts."""
        def seen(value):
            value = self.settle(value)
            value = self.array_of(value, node) if isinstance(value, Struct) and self.holds_arrays(value) else value
            if isinstance(value, Const) and not isinstance(value.value, np.ndarray):
                return value.value
            fact = fact_of(value) if isinstance(value, (Var, Const)) else None
            if isinstance(fact, Array):
                return fact.dtype(1) if fact.weak else np.dtype(fact.dtype)
            return self.python(value, node)
        args = [seen(a) for a in args]
        if function is np.finfo and args and isinstance(args[0], (np.dtype, type, np.generic)):
            self.reach_of(args[0] if isinstance(args[0], (np.dtype, type)) else args[0].dtype, node)
        return Const(self.tried(lambda: function(*args, **{k: seen(v) for k, v in words.items()}), node=node))

    @staticmethod
    def holds_arrays(value):
        return any(isinstance(i, Var) for i in value.items)

    def call_isscalar(self, function, args, words, node):
        value = self.settle(args[0])
        if isinstance(value, Const):
            return Const(function(value.value))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.asked_of_types(value, lambda cls: not issubclass(cls, (np.ndarray, list)), node)
        return Const(False)

    def call_iscomplexobj(self, function, args, words, node):
        """np.iscomplexobj and np.isrealobj: a dtype is known when transforming."""
        value = self.settle(args[0])
        value = self.array_of(value, node) if isinstance(value, Struct) else value
        if not isinstance(fact_of(value), Array):
            return Const(self.tried(lambda: function(self.python(value, node)), node=node))
        return Const((np.dtype(fact_of(value).dtype).kind == "c") == (function is np.iscomplexobj))

    def call_iterable(self, function, args, words, node):
        value = args[0] if isinstance(args[0], (RangeValue, Walk)) else self.settle(args[0])
        if isinstance(value, Const):
            return Const(function(value.value))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return Const(bool(value.fact.dims))
        return Const(isinstance(value, (Struct, Grown, RangeValue, Walk)))

    def call_broadcast_shapes(self, function, args, words, node):
        """The axes of shapes that meet; of lengths that are not known, one stands for all that are equal."""
        shapes = []
        for a in map(self.settle, args):
            items = a.items if isinstance(a, Struct) else a.value if isinstance(a, Const) else [a]
            items = items if isinstance(items, (tuple, list)) else [items]
            shapes.append([self.settle(i) if not isinstance(i, int) else Const(i) for i in items])
        rank, out = max(map(len, shapes), default=0), []
        for k in range(-rank, 0):
            met = [s[k] for s in shapes if len(s) >= -k]
            rest = [n for n in met if not (isinstance(n, Const) and n.value == 1)]
            lengths = [fact_of(n).length for n in rest]
            if any(n is None for n in lengths) or any(not n.same(lengths[0]) for n in lengths[1:]) and not all(
                    isinstance(n, Const) for n in rest):
                self.fail(ShapeError, "np.broadcast_shapes: whether these lengths are equal is not known when "
                          "transforming", node, "Use the shape of what is broadcast: np.broadcast_arrays(a, b).")
            if len({n.value for n in rest if isinstance(n, Const)}) > 1:
                self.fail(ShapeError, "np.broadcast_shapes: these shapes do not broadcast", node, python=ValueError)
            out.append(rest[0] if rest else Const(1))
        return Struct("tuple", out)

    # arrays from arrays

    def call_astype(self, function, args, words, node):
        words = {k: v for k, v in words.items() if k != "device"}
        return self.method_astype(self.operand(self.settle(args[0])), args[1:], words, node)

    def method_astype(self, value, args, words, node):
        given = {**dict(zip(("dtype", "order", "casting", "subok", "copy"), args)), **words}
        if len(args) > 5 or "dtype" not in given or set(given) - {"dtype", "order", "casting", "subok", "copy"}:
            self.fail(RuleError, "astype: only (dtype, order, casting, subok, copy) are understood", node,
                      "Leave the others out.")
        dtype = self.tried(np.dtype, self.static(given.pop("dtype"), "the dtype of astype", node), node=node)
        options = {k: self.static(v, f"{k} of astype", node) for k, v in given.items()}
        casting = options.get("casting", "unsafe")
        if not self.tried(np.can_cast, np.dtype(fact_of(value).dtype), dtype, casting, node=node):
            self.fail(RuleError, f"astype: {np.dtype(fact_of(value).dtype)} is not cast to {dtype} by the rule "
                      f"{casting!r}", node, "NumPy refuses it as well.", TypeError)
        shares = options.get("copy", True) in (False, None)
        made = self.converted(value, dtype, node, shares)
        if shares:
            return made
        return self.fresh(made, [value]) if fact_of(value).dims else self.copied_cell(value, made)

    def taken_item(self, value, args, node):
        """x.item(k) counts through all entries, x.item(i, j) indexes."""
        if len(args) == 1 and isinstance(self.settle(args[0]), Struct):
            args = self.settle(args[0]).items
        if len(args) == 1 and value.fact.rank != 1:
            value = self.rule_call(np.ravel, [value], {}, node)
        if len(args) != value.fact.rank:
            self.fail(ShapeError, f"item: {len(args)} indices for an array of rank {value.fact.rank}", node)
        index = [self.static(a, "the index of item", node) if isinstance(self.settle(a), Const) else self.settle(a)
                 for a in args]
        index = [i if isinstance(i, Var) else Const(i) for i in index]
        from_here = index[0]
        if len(index) > 1:
            from_here = self.operand(Struct("tuple", index))
        return self.scalar(self.build.item(value, from_here), node)

    def method_view(self, value, args, words, node):
        """x.view(): the same entries; bits that are read as another dtype have no derivative."""
        dtype = args[0] if args else words.get("dtype")
        known = None if dtype is None else self.static(dtype, "the dtype of view", node)
        if len(args) + len(words) > 1 or known is not None and not (
                isinstance(known, (np.dtype, type, str)) and not (isinstance(known, type) and issubclass(
                    known, np.ndarray)) and np.dtype(known) == value.fact.dtype):
            self.fail(RuleError, "view: bits that are read as another dtype have no derivative", node,
                      "Convert the numbers: x.astype(dtype).")
        return value                    # it shows the same entries


APPLIED = {
    np.vectorize: "make_vectorized",
    vectorized: "call_vectorized",
    np.piecewise: "call_piecewise",
    np.fromiter: "call_fromiter",
    np.frompyfunc: "call_objects",
    np.block: "call_block",
    np.where: "call_places",
    np.array_repr: "call_text",
    np.array_str: "call_text",
    np.result_type: "call_dtypes",
    np.promote_types: "call_dtypes",
    np.can_cast: "call_dtypes",
    np.issubdtype: "call_dtypes",
    np.isdtype: "call_dtypes",
    np.isscalar: "call_isscalar",
    np.iterable: "call_iterable",
    np.iscomplexobj: "call_iscomplexobj",
    np.isrealobj: "call_iscomplexobj",
    np.broadcast_shapes: "call_broadcast_shapes",
    np.finfo: "call_dtypes",
    np.iinfo: "call_dtypes",
    np.dtype: "call_dtypes",
    np.astype: "call_astype",
}
