# SPDX-License-Identifier: Apache-2.0
"""Functions applied to entries: np.vectorize, np.piecewise, np.frompyfunc, and ufuncs of Numba.

A call comes in; a loop over the entries, or an operation on whole arrays, comes out.
"""
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import may_raise
from gradscribe.ast_transform.core.form import Apply, Const, Let, Var, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import Returned, read_branch, truth_value
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.filling import written_into
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.inlining import inline_part
from gradscribe.ast_transform.reader.methods import array_of, call_array, converted
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Bound, Derived, FunctionValue, Grown, Method, Struct
from gradscribe.ast_transform.reader.views import as_cell, is_array
from gradscribe.ast_transform.rules.applying import entry_by_entry
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError


def vectorized(function, *args):
    """A marker for np.vectorize(function)."""


def function_of_numbers(function: Any) -> Callable[..., Any] | None:
    """The Python function of a ufunc that numba.vectorize made; None for anything else."""
    if not of_numba(function) or hasattr(function, "gufunc_builder"):
        return None
    return getattr(getattr(function, "_dispatcher", None), "py_func", None)


def of_numba(function: Any) -> bool:
    return type(function).__module__.startswith("numba.np.ufunc")


def raises_for_none(value):
    """Whether an operation may raise if its operands have no entries."""
    rule = rule_of(value.function)
    by_entry = rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise"))
    return may_raise(value) and not by_entry and value.function not in (operator.getitem, put)


def make_vectorized(reader: Reader, function, args, words, node):
    """np.vectorize(f, ...) in the function being read."""
    given = {**dict(zip(("pyfunc", "otypes", "doc", "excluded", "cache", "signature"), args)), **words}
    if "pyfunc" not in given:
        fail(reader, LanguageError, "np.vectorize is given a function here", node, "Write np.vectorize(f).")
    options = {
        k: known_value(reader, given[k], f"{k} of np.vectorize", node)
        for k in ("otypes", "excluded", "signature")
        if k in given
    }
    plain_vectorize(reader, options, node)
    return Bound(Const(vectorized), [given["pyfunc"], Const(options.get("otypes"))], {})


def of_vectorize(reader: Reader, made: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """The value of a call of a captured np.vectorize object."""
    plain_vectorize(reader, {"excluded": made.excluded, "signature": made.signature}, node)
    return call_vectorized(reader, vectorized, [lift(reader, made.pyfunc, "pyfunc"), Const(made.otypes), *args], words,
                           node)


def plain_vectorize(reader: Reader, options, node):
    for name in ("signature", "excluded"):
        if options.get(name):
            fail(reader, RuleError, f"np.vectorize with {name}= is not differentiated", node,
                 "Write the loop over the entries.")


def call_vectorized(reader: Reader, function, args, words, node):
    each, otypes, *args = args
    if words or not args:
        fail(reader, RuleError, "np.vectorize: a vectorized function takes arrays by position", node,
             "Leave the names of the arguments out.")
    args = [
        array_of(reader, a, node) if isinstance(a, Struct) else as_operand(reader, a)
        for a in map(partial(settle, reader), args)
    ]
    for a in args:
        if not isinstance(fact_of(a), Array):
            fail(reader, ShapeError, f"np.vectorize: an array is needed, {spelled_value(reader, a)} is given", node)
    wide = [a for a in args if fact_of(a).dims]
    if not wide:
        value = dispatch.call_value(reader, each, [python_number(reader, a, node) for a in args], {}, node)
        return call_array(reader, np.asarray, [value], {}, node)
    dtype = dtype_of_entries(reader, each, otypes.value, args, node)
    args = [widened(reader, a, node) for a in args]        # NumPy calls f with Python numbers: float32 becomes double
    wide = [a for a in args if fact_of(a).dims]
    if len(wide) > 1 and not equally_long(wide):
        wide = list(dispatch.rule_call(reader, np.broadcast_arrays, wide, {}, node).items)
    lengths = [reader.build.length(wide[0], k) for k in range(wide[0].fact.rank)]
    flat = iter([dispatch.rule_call(reader, np.ravel, [a], {}, node) if a.fact.rank > 1 else a for a in wide])
    rows = [next(flat) if fact_of(a).dims else a for a in args]
    first = next(a for a in rows if fact_of(a).dims)
    out = inline_part(reader, entry_by_entry, [each, Const(dtype), first, *rows])
    return (
        dispatch.rule_call(reader, np.reshape, [out, Struct("tuple", lengths)], {}, node) if len(lengths) > 1 else out
    )


def of_numbers(reader: Reader, function: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """The value of a call of a Numba ufunc: its scalar function is applied to each entry."""
    each, label = function_of_numbers(function), function.__name__
    if each is None:
        fail(reader, RuleError, f"{label} is a generalized ufunc: what it writes into an argument is not followed",
             node, "Write its loops as a function under numba.njit that returns an array.")
    if words or len(args) != function.nin:
        fail(reader, RuleError, f"{label}: of a numba.vectorize function only calls with its arrays are understood",
             node, "Leave out=, where= and dtype= out.")
    args = [
        array_of(reader, a, node) if isinstance(a, Struct) else as_operand(reader, a)
        for a in map(partial(settle, reader), args)
    ]
    args, dtype = by_loop(reader, function, args, node)
    wide = [a for a in args if is_array(a)]
    if not wide or reader.engine is None:
        return in_dtype(reader, dispatch.call_value(reader, Const(each), args, {}, node), dtype, node)
    if len(wide) > 1 and not equally_long(wide):
        wide = list(dispatch.rule_call(reader, np.broadcast_arrays, wide, {}, node).items)
    rank, lengths = fact_of(wide[0]).rank, [reader.build.length(wide[0], k) for k in range(fact_of(wide[0]).rank)]
    rows = iter([dispatch.rule_call(reader, np.ravel, [a], {}, node) if rank > 1 else a for a in wide])
    out = in_dtype(reader, reader.engine.entry_by_entry(reader, each, [next(rows) if is_array(a) else a for a in args]),
                   dtype, node)
    return dispatch.rule_call(reader, np.reshape, [out, Struct("tuple", lengths)], {}, node) if rank > 1 else out


def by_loop(reader: Reader, function, args, node):
    """(arguments converted to the types of the first ufunc loop that accepts them, its result dtype)."""
    given = [np.dtype(fact_of(a).dtype) for a in args]
    for loop in function.types:
        taken, dtype = loop.split("->")
        if all(np.can_cast(have, want, "safe") for have, want in zip(given, taken)):
            return [in_dtype(reader, a, np.dtype(want), node) for a, want in zip(args, taken)], np.dtype(dtype)
    if function._frozen:
        fail(reader, RuleError, f"{function.__name__} has no loop for {' and '.join(map(str, given))}", node,
             "Add the signature to numba.vectorize, or leave all of them out.")
    return args, None               # Numba compiles a new loop for them


def in_dtype(reader: Reader, a, dtype, node):
    return a if dtype is None or np.dtype(fact_of(a).dtype) == dtype else converted(reader, a, dtype, node)


def widened(reader: Reader, a, node):
    wide = {"f": np.dtype(float), "c": np.dtype(complex), "i": np.dtype(int)}.get(fact_of(a).kind)
    return a if not fact_of(a).dims or wide is None else converted(reader, a, wide, node)


def python_number(reader: Reader, a, node):
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[fact_of(a).kind]
    return dispatch.call_known(reader, kind, [a], {}, node)


def equally_long(arrays):
    return all(a.fact.rank == arrays[0].fact.rank and all(
        d.same(e) for d, e in zip(a.fact.dims, arrays[0].fact.dims)) for a in arrays[1:])


def dtype_of_entries(reader: Reader, each, otypes, args, node):
    """The dtype of the function's result for one entry; the statements that are read for it are discarded."""
    if otypes:
        return np.dtype(otypes[0])
    block, reader.build.block = reader.build.block, []
    try:
        entries = [Var("v", Array(a.fact.dtype, ())) if fact_of(a).dims else a for a in args]
        fact = fact_of(as_operand(reader, settle(reader, dispatch.call_value(reader, each, entries, {}, node))))
    finally:
        reader.build.block = block
    if not isinstance(fact, Array) or fact.dims:
        fail(reader, RuleError, "np.vectorize of a function that does not give one number is not differentiated", node,
             "Write the loop over the entries.")
    return np.dtype(fact.dtype)


def call_piecewise(reader: Reader, function, args, words, node):
    if len(args) < 3:
        fail(reader, RuleError, "np.piecewise: (x, condlist, funclist) is understood", node)
    x, conditions, functions, *more = args
    x = settle(reader, x)
    x = array_of(reader, x, node) if isinstance(x, Struct) else as_operand(reader, x)
    conditions, functions = settle(reader, conditions), dispatch.elements_of(reader, settle(reader, functions), node)
    if not isinstance(conditions, Struct) or fact_of(x).dims and not any(
            isinstance(c, Struct) or is_array(c) for c in map(partial(settle, reader), conditions.items)):
        conditions = Struct("list", [conditions])
    tests = [test_of_piece(reader, c, node) for c in conditions.items]
    if len(functions) not in (len(tests), len(tests) + 1):
        fail(reader, ShapeError, f"np.piecewise: {len(tests)} conditions and {len(functions)} functions", node,
             "Give as many, or one more for the rest.")
    scalar = not fact_of(x).dims
    if scalar:
        x = array_of(reader, Struct("list", [x]), node)
        tests = [array_of(reader, Struct("list", [t]), node) for t in tests]
    if len(functions) > len(tests):
        seen = tests[0]
        for t in tests[1:]:
            seen = dispatch.rule_call(reader, np.logical_or, [seen, t], {}, node)
        tests.append(dispatch.rule_call(reader, np.logical_not, [seen], {}, node))
    y = dispatch.rule_call(reader, np.zeros_like, [x], {}, node)
    for test, each in zip(tests, functions):
        def written(y=y, test=test, each=each):
            value = each if is_a_number(reader, each) else dispatch.call_value(reader,
                each, [reader.build.item(x, test), *more], words, node)
            value = settle(reader, value)
            value = as_operand(reader, array_of(reader, value, node) if isinstance(value, Struct) else value)
            if isinstance(fact_of(value), Array) and not (isinstance(value, Const) and fact_of(value).weak) and \
                    not np.can_cast(np.dtype(fact_of(value).dtype), x.fact.dtype, "same_kind"):
                fail(
                    reader,
                    RuleError,
                    f"np.piecewise gives the dtype of x, {x.fact.dtype}: {spelled_value(reader, value)} is cut",
                    node,
                    "Convert x before: x.astype(float).",
                )
            return written_into(reader, y, test, value, node)
        y = written_if_any(reader, test, written, y, node)
    return as_cell(reader, reader.build.item(y, Const(0))) if scalar else y


def written_if_any(reader: Reader, test, written, y, node):
    """The value that a piece writes; under a test if it may raise without entries, for which NumPy does not call it."""
    before, held = snapshot(reader), list(reader.build.block)
    made = written()
    added = reader.build.block[len(held):]
    if not any(raises_for_none(s.value) for s in walk(added) if isinstance(s, Let) and isinstance(s.value, Apply)):
        return made
    restore(before)
    reader.build.block[:] = held
    some = truth_value(reader, dispatch.rule_call(reader, np.any, [test], {}, node), node)
    return read_branch(reader, some, lambda: Returned(written()), lambda: Returned(y), node, "y").value


def test_of_piece(reader: Reader, value, node):
    value = settle(reader, value)
    value = array_of(reader, value, node) if isinstance(value, Struct) else as_operand(reader, value)
    if not isinstance(fact_of(value), Array):
        fail(reader, ShapeError, f"np.piecewise: {spelled_value(reader, value)} is no condition", node)
    return (
        value if fact_of(value).kind == "b" else dispatch.rule_call(reader, np.not_equal, [value, Const(0)], {}, node)
    )


def is_a_number(reader: Reader, value):
    return not isinstance(value, (FunctionValue, Bound, Method, Derived)) and not (
        isinstance(value, Const) and callable(value.value))


def call_fromiter(reader: Reader, function, args, words, node):
    given = {**dict(zip(("iter", "dtype", "count"), args)), **words}
    count = given.pop("count", Const(-1))
    if set(given) != {"iter", "dtype"} or not (isinstance(count, Const) and count.value == -1):
        fail(reader, RuleError, "np.fromiter: (iterable, dtype) is understood", node, "Leave the others out.")
    value = given["iter"]
    if not isinstance(value, Grown):
        value = Struct("list", dispatch.elements_of(reader, value, node))
    return dispatch.call_known(reader, np.array, [value], {"dtype": given["dtype"]}, node)


def call_block(reader: Reader, function, args, words, node):
    """np.block; a list of unknown length in it is refused, since it would be read as one array."""
    def grown(value):
        return isinstance(value, Grown) or isinstance(value, Struct) and any(map(grown, value.items))
    if args and grown(args[0]):
        fail(reader, RuleError, "np.block of a list whose length is known only when running is not differentiated",
             node, "Use np.concatenate.")
    return dispatch.rule_call(reader, np.block, args, words, node)


def call_places(reader: Reader, function, args, words, node):
    """np.where(condition): the indices at which the condition is true."""
    return dispatch.rule_call(reader, np.nonzero if len(args) == 1 and not words else function, args, words, node)


def call_objects(reader: Reader, function, args, words, node):
    fail(reader, RuleError, "np.frompyfunc gives arrays of objects, which are not differentiated", node,
         "Use np.vectorize.")


def call_text(reader: Reader, function, args, words, node):
    fail(reader, LanguageError, f"np.{function.__name__}: what an array holds is not known when transforming", node,
         "Print with print.")


SPECIAL[np.vectorize] = make_vectorized
SPECIAL.update({
    vectorized: call_vectorized,
    np.piecewise: call_piecewise,
    np.fromiter: call_fromiter,
    np.frompyfunc: call_objects,
    np.block: call_block,
    np.where: call_places,
    np.array_repr: call_text,
    np.array_str: call_text,
})
