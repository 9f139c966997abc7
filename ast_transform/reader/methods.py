# SPDX-License-Identifier: Apache-2.0
"""Methods and Python's builtins: a call on an operand, a container or a walk comes in; its result comes out."""
import functools
import operator
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Opaque, Sequence, same_dtype, unknown
from gradscribe.ast_transform.core.operations import Quoted, as_array
from gradscribe.ast_transform.passes.described import fact_of, is_of_a_library
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.bfloat16 import in_bfloat16
from gradscribe.ast_transform.reader.branches import length_of_range, short_circuit, truth_value
from gradscribe.ast_transform.reader.containers import bounded_method, changing, container_method, made_of
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.dynamic_lists import (
    array_of_grown,
    copied_list,
    exhaust_generator,
    grown_method,
    length_of_grown,
    list_of,
)
from gradscribe.ast_transform.reader.filling import IN_PLACE, method_in_place
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.list_of_tuples import copied_rows, rows_method
from gradscribe.ast_transform.reader.memory import fresh_result, storages
from gradscribe.ast_transform.reader.objects import (
    assign_attribute,
    class_of,
    dunder,
    guard_object,
    has_attribute,
    put_attribute,
)
from gradscribe.ast_transform.reader.operands import (
    as_operand,
    entry_count,
    known_value,
    pack,
    python_value,
    settle,
    spelled_value,
)
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import (
    Bound,
    Derived,
    FunctionValue,
    Grown,
    Method,
    Part,
    RangeValue,
    Rows,
    Struct,
    View,
    Walk,
)
from gradscribe.ast_transform.reader.views import alias_of, as_cell, copied_cell, is_array, may_be_cell
from gradscribe.ast_transform.source.diagnose import OF_OBJECTS, LanguageError, RuleError, ShapeError
from gradscribe.ast_transform.source.trees import name_at

METHODS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "var": np.var,
    "std": np.std,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "any": np.any,
    "all": np.all,
    "dot": np.dot,
    "ravel": np.ravel,
    "flatten": np.ravel,
    "copy": np.copy,
    "squeeze": np.squeeze,
    "repeat": np.repeat,
    "swapaxes": np.swapaxes,
    "take": np.take,
    "diagonal": np.diagonal,
    "trace": np.trace,
    "conj": np.conj,
    "conjugate": np.conj,
    "argsort": np.argsort,
    "searchsorted": np.searchsorted,
    "nonzero": np.nonzero,
    "round": np.round,
    "ptp": np.ptp,
    "choose": np.choose,
    "argpartition": np.argpartition,
}
CALLED_WITH_SHAPE = {"reshape": np.reshape, "transpose": np.transpose}


def method_of_value(reader: Reader, value: Any, name: str, args: list, words: dict[str, Any],
                    node: gast.AST | None) -> Any:
    """value.name(*args, **words)"""
    if isinstance(value, Grown):
        return grown_method(reader, value, name, args, words, node)
    if isinstance(value, Rows):
        return rows_method(reader, value, name, args, words, node)
    if isinstance(value, Derived):
        return value.transform.method(reader, value, name, args, words, node)
    if isinstance(value, Struct):
        handler = bounded_method if hasattr(value.cls, "most") else container_method
        return dispatch.understood(reader, partial(handler, reader), name, value, name, args, words, node)
    if name in ("conj", "conjugate") and value.fact.kind != "c" and not args and not words:
        return value
    if name in METHODS:
        return method_as_function(reader, value, name, args, words, node)
    if name in CALLED_WITH_SHAPE:
        shape = args[0] if len(args) == 1 else Struct("tuple", args)
        if name == "transpose" and (not args or isinstance(shape, Const) and shape.value is None):
            return dispatch.call_known(reader, np.transpose, [value], words, node)
        return dispatch.call_known(reader, CALLED_WITH_SHAPE[name], [value, shape], words, node)
    if name in IN_PLACE:
        return method_in_place(reader, value, name, args, words, node)
    own = OWN_METHODS.get(name)
    made = own(reader, value, args, words, node) if own is not None else None
    return made if made is not None else unknown_method(reader, name, node)


def unknown_method(reader: Reader, name, node):
    fail(reader, LanguageError, f"the method {name} is not differentiated", node,
         "Index the array." if name == "item" else "Use a function of NumPy.")


def method_as_function(reader: Reader, value, name, args, words, node):
    """The value of a method for which NumPy has a function with the array as its first argument."""
    order = "C"
    if name == "copy" and "order" in words:
        order = known_value(reader, words.pop("order"), "order of copy", node)
    result = dispatch.call_known(reader, METHODS[name], [value, *args], words, node)
    if name == "flatten":
        return alias_of(reader, result)         # flatten always copies, np.ravel may not
    if name == "copy" and isinstance(result, Var) and order == "C":
        reader.views.layouts[result] = True     # np.copy keeps the operand's order, the method does not
    return result


def method_item(reader: Reader, value, args, words, node):
    if words:
        return None
    return taken_item(reader, value, args, node) if args else scalar_of(reader, value, node)


def method_compress(reader: Reader, value, args, words, node):
    return dispatch.call_known(reader, np.compress, [args[0], value, *args[1:]], words, node)


def method_to_device(reader: Reader, value, args, words, node):
    return value if [getattr(settle(reader, a), "value", None) for a in args] == ["cpu"] else None


def method_clip(reader: Reader, value, args, words, node):
    """x.clip(low) has no upper limit."""
    given = dict(zip(("min", "max", "out"), args))
    if len(args) > 3 or given.keys() & words:
        return dispatch.call_known(reader, np.clip, [value, *args], words, node)
    words = {**given, **words}
    limits = [words.pop(n, Const(None)) for n in ("min", "max")]
    return dispatch.call_known(reader, np.clip, [value, *limits], words, node)


def scalar_of(reader: Reader, value, node):
    fact = fact_of(value)
    if any(not d.is_unit for d in fact.dims):
        fail(reader, ShapeError, "item() needs an array of one element", node)
    if fact.dims:
        value = reader.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
    return dispatch.call_known(
        reader, {"b": bool, "i": int, "u": int, "f": float, "c": complex}[fact.kind], [value], {}, node
    )


@late
def converted(reader: Reader, value: Any, dtype: Any, node: gast.AST | None, shares: bool = False) -> Any:
    """A value converted to a dtype; shares: as with copy=False, the result may be the array itself on some path."""
    if not isinstance(value, (Var, Const)) or not isinstance(fact_of(value), Array):
        if isinstance(value, Struct):
            value = array_of(reader, value, node)
        else:
            fail(reader, LanguageError, f"{spelled_value(reader, value)} is not converted to {np.dtype(dtype)}", node,
                 "Give a number or an array.")
    fact = fact_of(value)
    if same_dtype(fact.dtype, dtype) and not (reader.kinds.dtypes_by_path and isinstance(value, Var)):
        return value
    if fact.kind == "c" and dtype.kind != "c":
        fail(reader, RuleError, "a conversion from complex to real drops the imaginary part", node, "Use np.real.")
    if isinstance(value, Const) and type(value.value) in (int, float) and np.dtype(dtype).kind == "f" and not (
            in_bfloat16(reader) and np.dtype(dtype) == np.float16):
        return Const(np.dtype(dtype).type(value.value))
    hint = value.hint if isinstance(value, Var) else "converted"
    made = reader.build.cast(value, dtype, hint, length=fact.length if dtype.kind in "iu" else None)
    if shares and reader.kinds.dtypes_by_path and is_array(made) and is_array(value):
        reader.memory.tokens[made] = frozenset({made}) | storages(reader, value)
    return made


def call_len(reader: Reader, function, args, words, node):
    value = args[0] if isinstance(args[0], RangeValue) else settle(reader, args[0])
    if isinstance(value, RangeValue):
        return length_of_range(reader, value)
    if isinstance(value, Grown):
        return length_of_grown(reader, value)
    if isinstance(value, Rows):
        return length_of_grown(reader, value.columns[0])
    if isinstance(value, Struct) and value.kind != "iterator":
        return Const(len(value.items))
    if isinstance(value, Var) and isinstance(value.fact, Array):
        if not value.fact.rank:
            fail(reader, ShapeError, "a scalar has no length", node)
        return reader.build.length(value, 0)
    if isinstance(value, Const):
        guard_object(reader, value, len)
        return Const(len(value.value))
    if isinstance(value, Var) and isinstance(value.fact, Opaque):
        quoted = Quoted(gast.parse("len(text)", mode="eval").body, ("text",), None)
        return reader.build.let("n", Apply(quoted, (value,)), Array(int, (), unknown("?len")))
    fail(reader, LanguageError, f"{spelled_value(reader, value)} has no length", node,
         "" if isinstance(value, Var) else "Make a list of it first.")


def call_range(reader: Reader, function, args, words, node):
    args = [settle(reader, a) for a in args]
    for a in args:
        fact = fact_of(a) if isinstance(a, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.kind not in "iu":
            fail(reader, ShapeError, f"range needs integers, {spelled_value(reader, a)} is given", node)
    if len(args) == 3 and isinstance(args[2], Const) and args[2].value == 0:
        fail(reader, ShapeError, "range in steps of 0 has no end", node)
    if len(args) == 1:
        return RangeValue(Const(0), args[0], Const(1))
    return RangeValue(args[0], args[1], args[2] if len(args) > 2 else Const(1))


def call_reversed(reader: Reader, function, args, words, node):
    value = settle(reader, args[0])
    if isinstance(value, RangeValue) and all(isinstance(p, Const) for p in (value.start, value.stop, value.step)):
        r = range(value.start.value, value.stop.value, value.step.value)[::-1]
        return RangeValue(Const(r.start), Const(r.stop), Const(r.step))
    if isinstance(value, RangeValue) and isinstance(value.step, Const) and value.step.value == 1:
        last = reader.build.apply(operator.sub, value.stop, Const(1))
        before = reader.build.apply(operator.sub, value.start, Const(1))
        return RangeValue(last, before, Const(-1))
    value = settle(reader, value)
    if isinstance(value, Struct):
        if value.whole is not None and value.version == 0 and not reader.unroll and value.kind in ("list", "tuple"):
            whole = Part(
                value.whole,
                Const(slice(None, None, -1)),
                Sequence(value.kind, tuple(value.whole.fact.elements[::-1])),
            )
            return Struct(value.kind, value.items[::-1], whole=whole)
        if value.kind == "iterator":
            fail(reader, LanguageError, "an iterator is not reversed", node, "Make a list of it first.")
        items = [Const(k) for k in value.keys[::-1]] if value.kind == "dict" else value.items[::-1]
        return Walk(items, sources=((args[0].value if isinstance(args[0], View) else value, "all"),))
    if isinstance(value, Var) and isinstance(value.fact, Array):
        return dispatch.walk_over(reader, reader.build.item(value, Const(slice(None, None, -1))), node)
    walk = dispatch.walk_over(reader, value, node)
    if walk.static is not None:
        return Walk(walk.static[::-1])
    fail(reader,
        LanguageError,
        "reversed of a length that is not known when transforming",
        node,
        "Count downwards with range.",
    )


def call_sum(reader: Reader, function, args, words, node):
    value = args[0]
    if isinstance(value, Var) and isinstance(value.fact, Array):
        total = dispatch.rule_call(reader, np.sum, [value], {"axis": Const(0)}, node)
        if value.fact.kind in "iu" and np.dtype(fact_of(total).dtype) != np.dtype(value.fact.dtype):
            total = reader.build.cast(total, value.fact.dtype, "total")       # Python does not widen narrow integers
        start = args[1:] or [words[n] for n in words]
        return dispatch.binary(reader, operator.add, start[0], total, node) if start else total
    start = args[1:] or ([words["start"]] if "start" in words else [])
    return python_sum(reader, dispatch.elements_of(reader, value, node), node, *start)


@late
def python_sum(reader: Reader, items, node, start=None):
    """Python's sum, which starts with 0: so a single array is copied, and booleans become integers."""
    total, items = start, [settle(reader, item) for item in items]
    if total is None and items and isinstance(items[0], (Const, Var)):
        first = fact_of(items[0])
        if isinstance(first, Array) and (first.kind == "b" or len(items) == 1 and not first.weak):
            total = Const(0)
    for item in items:
        total = item if total is None else dispatch.binary(reader, operator.add, total, item, node)
    return Const(0) if total is None else total


def is_vector(reader: Reader, value: Any) -> bool:
    return isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.rank == 1


def call_container(reader: Reader, function, args, words, node):
    if function is dict:
        return Struct("dict", *made_of(reader, args, words, node))
    if not args:
        return Struct(function.__name__, [])
    value = settle(reader, args[0]) if not isinstance(args[0], (RangeValue, Walk)) else args[0]
    if isinstance(value, Struct) and value.kind == "dict":
        return Struct(function.__name__, [Const(k) for k in value.keys])
    if function is list and isinstance(value, Grown):
        exhaust_generator(reader, value, node)
        return copied_list(reader, value)
    if function is list and isinstance(value, Rows):
        return copied_rows(reader, value)
    if function is list and isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.dims and \
            value.fact.dims[0].normal().symbol is not None:
        made = list_of(reader, value)
        if made is not None:
            return made
    return Struct(function.__name__, dispatch.elements_of(reader, value, node))


def call_reduce(reader: Reader, function, args, words, node):
    items = reduced_items(reader, args[1], node)
    if items is None:
        return reduce_loop(reader, args, node)
    total = args[2] if len(args) > 2 else None
    for item in items:
        total = item if total is None else dispatch.call_value(reader, args[0], [total, settle(reader, item)], {}, node)
    return total


def reduced_items(reader: Reader, value, node):
    try:
        return dispatch.elements_of(reader, value, node)
    except LanguageError:
        return None


def reduce_loop(reader: Reader, args, node):
    """functools.reduce over an array of unknown length: a loop that starts with the first row."""
    env = reader.environment.frame.env
    x = settle(reader, args[1])
    if len(args) > 2:
        env[".total"], rest = args[2], x
    else:
        env[".total"] = reader.build.item(x, Const(0))
        rest = reader.build.item(x, Const(slice(1, None)))
    env[".function"], env[".rest"] = args[0], rest
    name = partial(name_at, node)
    step = gast.copy_location(
        gast.Assign(
            [name(".total", gast.Store)],
            gast.copy_location(
                gast.Call(
                    name(".function", gast.Load), [name(".total", gast.Load), name(".item", gast.Load)], []
                ),
                node,
            ),
            None,
        ),
        node,
    )
    dispatch.execute_for(reader,
        gast.copy_location(
            gast.For(name(".item", gast.Store), name(".rest", gast.Load), [step], [], None), node
        )
    )
    result = env[".total"]
    for n in (".total", ".function", ".rest", ".item"):
        env.pop(n, None)
    if isinstance(result, Var):
        result.hint = "total"
    return result


@late
def call_partial(reader: Reader, function, args, words, node):
    return Bound(args[0], args[1:], words)


def isinstance_of_value(reader: Reader, function: Callable, args: list, words: dict[str, Any],
                        node: gast.AST | None) -> Any:
    view = args[0] if isinstance(args[0], View) else None
    value, classes = settle(reader, args[0]), python_value(reader, args[1], node)
    classes = classes if isinstance(classes, tuple) else (classes,)
    if view is not None:
        return Const(isinstance(getattr({}, view.name)(), classes))
    if isinstance(value, Const):
        return Const(isinstance(value.value, classes))
    if isinstance(value, (Struct, Grown, Rows)) and not (isinstance(value, Struct) and value.kind == "iterator"):
        return Const(issubclass(class_of(reader, value), classes))
    if isinstance(value, Var) and isinstance(value.fact, Array):
        return decide_by_types(reader, value, lambda cls: issubclass(cls, classes), node)
    if isinstance(value, (FunctionValue, Bound, Method)):
        kinds = (types.FunctionType,) if isinstance(value, FunctionValue) else (
            functools.partial, types.MethodType) if isinstance(value, Bound) else (
            types.MethodType, types.BuiltinMethodType)
        answers = {issubclass(kind, classes) for kind in kinds}
        if len(answers) == 1:
            return Const(answers.pop())
    fail(reader, LanguageError, f"isinstance of {spelled_value(reader, value)} is not known when transforming", node,
         "Test the types of arguments, and of literals.")


def decide_by_types(reader: Reader, value: Any, answer: Callable, node: gast.AST | None) -> Any:
    """answer(type of a number or an array), if all types that the value may have give the same answer."""
    fact = value.fact
    classes = [list if isinstance(fact, Listed) else fact.dtype if fact.weak else np.ndarray if fact.dims else
               fact.dtype.type]
    if value not in reader.memory.entry_tokens and may_be_cell(reader, value):
        classes.append(np.ndarray)
    answers = list(map(answer, classes))
    if any(a is not answers[0] for a in answers):
        fail(reader, LanguageError, f"{spelled_value(reader, value)} may be a number, or an array without axes",
             node, "Ask for np.ndim(x), or make a number of it: x[()].")
    return Const(answers[0])


def call_callable(reader: Reader, function, args, words, node):
    return Const(
        isinstance(args[0], (FunctionValue, Bound, Method))
        or isinstance(args[0], Const)
        and callable(args[0].value)
        or dunder(reader, settle(reader, args[0]), "__call__") is not None
    )


def call_getattr(reader: Reader, function, args, words, node):
    name = known_value(reader, args[1], "the name of an attribute", node)
    value = settle(reader, args[0])
    if function is hasattr:
        if isinstance(value, Const):
            return Const(guarded_hasattr(reader, value.value, name))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return decide_by_types(reader, value, lambda cls: hasattr(cls, name), node)
        if isinstance(value, (Struct, Grown)):
            return Const(has_attribute(reader, value, name))
        fail(reader, LanguageError, f"hasattr of {spelled_value(reader, value)} is not known when transforming", node,
             "Test the attributes of objects and of arrays.")
    if len(args) > 2 and (isinstance(value, (Struct, Grown)) and not has_attribute(reader, value, name) or
                          isinstance(value, Const) and not guarded_hasattr(reader, value.value, name)):
        return args[2]
    return dispatch.read_attribute(reader, value, name, node)


def guarded_hasattr(reader: Reader, value: Any, name: str) -> bool:
    """Whether an object from outside has an attribute; guarded, so that the version is valid while that holds."""
    found = hasattr(value, name)
    if hasattr(value, "__dict__") and not is_of_a_library(value):
        reader.environment.kind_guards.append(lambda: hasattr(value, name) is found)
    return found


def call_setattr(reader: Reader, function, args, words, node):
    holder, name, value = args
    name = known_value(reader, name, "the name of an attribute", node)
    if function is object.__setattr__:
        put_attribute(changing(reader, settle(reader, holder), node), name, value)
        return Const(None)
    assign_attribute(reader, gast.copy_location(gast.Attribute(None, name, gast.Store()), node), value,
                     settle(reader, holder))
    return Const(None)


def call_issubclass(reader: Reader, function, args, words, node):
    return Const(tried(reader, issubclass, *[python_value(reader, a, node) for a in args], node=node))


def call_ndarray(reader: Reader, function, args, words, node):
    """np.ndarray(shape, dtype): an uninitialised array."""
    given = {**dict(zip(("shape", "dtype"), args)), **words}
    if len(args) > 2 or set(given) - {"shape", "dtype", "order"}:
        fail(reader, RuleError, "np.ndarray: shape, dtype and order are understood", node,
             "Make the array outside, and pass it as an argument.")
    return dispatch.rule_call(reader, np.empty, [], given, node)


def call_shape(reader: Reader, function, args, words, node):
    value = settle(reader, args[0])
    if isinstance(value, Struct):
        value = array_of(reader, value, node)
    fact = fact_of(value)
    if not isinstance(fact, Array):
        fail(reader, ShapeError, f"{spelled_value(reader, value)} has no shape", node)
    if function is np.ndim:
        return Const(fact.rank)
    if function is np.size:
        if len(args) > 1 or words:
            fail(reader, RuleError, "np.size: axis is not understood", node, "Write x.shape[axis].")
        return entry_count(reader, value)
    return Struct("tuple", [reader.build.length(value, k) for k in range(fact.rank)])


def call_array(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    words = dict(words)
    dtype = words.pop("dtype", args[1] if len(args) > 1 else None)
    options = {
        k: known_value(reader, words.pop(k), f"{k}= of an array", node)
        for k in ("copy", "order", "ndmin", "subok", "device")
        if k in words
    }
    copied = options.get("copy", function is np.array) or False
    if words or len(args) > 2 or options.get("order") not in (None, "K", "A") and not copied or \
            "ndmin" in options and function is not np.array:
        fail(reader, RuleError, f"np.{function.__name__}: these arguments are not understood", node,
             "Its dtype and copy= are, and of np.array also ndmin= and order=.")
    value = (
        settle(reader, args[0])
        if not isinstance(args[0], (RangeValue, Walk))
        else Struct("list", dispatch.elements_of(reader, args[0], node))
    )
    if isinstance(value, Struct):
        value = array_of(reader, value, node)
    elif isinstance(fact_of(value), Array):
        if isinstance(value, Const) or fact_of(value).weak:
            value = reader.build.apply(np.array, value, fact=Array(np.dtype(fact_of(value).dtype)))
        elif copied and getattr(reader.build.made.get(value), "function", None) is not as_array:
            value = dispatch.rule_call(reader, np.copy, [value], {}, node)
        elif reader.views.flats.get(value):
            fail(reader, LanguageError, "the array of x.flat may be a view or a copy", node, "Write x.ravel().")
    else:
        fail(reader, LanguageError, f"an array of {spelled_value(reader, value)} is not differentiated", node,
             "Make it of numbers, arrays or lists of them.")
    if dtype is not None and not (isinstance(dtype, Const) and dtype.value is None):
        value = converted(
            reader, value, np.dtype(known_value(reader, dtype, "the dtype of an array", node)), node, not copied
        )
    missing = options.get("ndmin", 0) - fact_of(value).rank
    return (
        dispatch.rule_call(reader, np.expand_dims, [value, Const(tuple(range(missing)))], {}, node)
        if missing > 0
        else as_cell(reader, value)
    )


@late
def array_of(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    """A list of numbers or arrays as an array."""
    items = [array_of_grown(reader, i) if isinstance(i, Grown) else settle(reader, i) for i in value.items]
    if value.kind not in ("list", "tuple"):
        fail(reader, LanguageError, f"an array of {spelled_value(reader, value)} is not differentiated", node,
             "Make it of a list: list(d.values()), or of the attributes.")
    if _literal(value):
        literal = pack(reader, value)
        array = np.array(_python_list(value))
        fact = Array(array.dtype, tuple(Length(None, n) for n in array.shape))
        if fact.of_objects:
            fail(reader, LanguageError, OF_OBJECTS, node, "Use a list.")
        return reader.build.let("array", Apply(np.array, (literal,)), fact)
    items = [array_of(reader, i, node) if isinstance(i, Struct) else i for i in items]
    for i in items:
        if not isinstance(fact_of(i), Array):
            fail(reader, LanguageError, f"an array that holds {spelled_value(reader, i)} is not differentiated", node,
                 "Use a list.")
    if any(fact_of(i).rank for i in items):
        stacked = dispatch.rule_call(reader, np.stack, [Struct("list", items)], {}, node)
        reader.views.layouts[stacked] = True
        return stacked
    return reader.build.apply(np.array, Pack("list", tuple(items)))


def call_float(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    if not args:
        return call_complex(reader, function, [], words, node) if words else Const(function())
    value, *others = (settle(reader, a) for a in args)
    if not words and all(isinstance(v, Const) for v in (value, *others)):
        guard_object(reader, value, function)
        try:
            return Const(function(*(v.value for v in (value, *others))))
        except (ValueError, TypeError) as error:
            fail(reader, ShapeError, str(error), node, python=type(error))
    if others or words:
        return call_complex(reader, function, [value, *others], words, node)
    value = one_number(reader, function, value, node)
    fact = fact_of(value)
    if fact.kind == "c" and function is not complex:
        fail(reader, RuleError, "a complex number is not converted to a real one", node, "Use np.real.")
    if fact.dtype is function:
        return value
    length = fact.length if fact.kind in "iu" else unknown("?int")
    return reader.build.let(
        value.hint, Apply(function, (value,)), Array(function, (), length if function is int else None)
    )


def call_complex(reader: Reader, function, args, words, node):
    """complex(a, b)"""
    bound = dict(zip(("real", "imag"), args)) | {k: settle(reader, w) for k, w in words.items()}
    if function is not complex or len(bound) != len(args) + len(words) or not bound.keys() <= {"real", "imag"}:
        fail(reader, LanguageError, f"{function.__name__} with these arguments is not read", node)
    real, imag = (one_number(reader, function, bound.get(k, Const(0)), node) for k in ("real", "imag"))
    if "c" in (fact_of(real).kind, fact_of(imag).kind):
        fail(reader, RuleError, "a part of a complex number is complex itself", node, "Write a + 1j * b.")
    return reader.build.let("z", Apply(complex, (real, imag)), Array(complex))


def one_number(reader: Reader, function, value, node):
    fact = fact_of(value)
    if not isinstance(fact, Array):
        fail(
            reader,
            LanguageError,
            f"{function.__name__} needs one number, {spelled_value(reader, value)} is given",
            node,
        )
    if any(not d.is_unit for d in fact.dims):
        fail(reader, ShapeError, f"{function.__name__} needs one number, {spelled_value(reader, value)} is given", node)
    if fact.dims:
        value = reader.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
    return value


def print_effect(reader: Reader, function: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    dispatch.effect(reader, node)
    return Const(None)


def call_slice(reader: Reader, function, args, words, node):
    parts = [settle(reader, a) for a in args]
    if all(isinstance(p, Const) for p in parts):
        return Const(slice(*(p.value for p in parts)))
    parts = [None, parts[0], None] if len(parts) == 1 else [*parts, None][:3]
    return Slice(*(None if p is None or isinstance(p, Const) and p.value is None else p for p in parts))


def call_type(reader: Reader, function, args, words, node):
    value = settle(reader, args[0])
    if isinstance(value, Const):
        return Const(type(value.value))
    if isinstance(value, (Struct, Grown, Rows)):
        return Const(class_of(reader, value))
    if not isinstance(fact_of(value), Array):
        fail(reader, LanguageError, f"the type of {spelled_value(reader, value)} is not known when transforming", node,
             "Test the types of arguments, and of literals.")
    return decide_by_types(reader, value, lambda cls: cls, node)


def call_all(reader: Reader, function, args, words, node):
    value = settle(reader, args[0]) if not isinstance(args[0], Walk) else args[0]
    if isinstance(value, Var) and isinstance(value.fact, Array):
        found = dispatch.rule_call(reader, np.all if function is all else np.any, [value], {}, node)
        return call_float(reader, bool, [found], {}, node)
    result = Const(function is all)
    for item in dispatch.elements_of(reader, value, node):
        result = short_circuit(reader, result, lambda i=item: truth_value(reader, i, node), node, function is all)
    return result


def _literal(value):
    return all(_literal(i) if isinstance(i, Struct) else isinstance(i, Const) for i in value.items)


def _python_list(value):
    return [_python_list(i) if isinstance(i, Struct) else i.value for i in value.items]


def method_astype(reader: Reader, value: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    given = {**dict(zip(("dtype", "order", "casting", "subok", "copy"), args)), **words}
    if len(args) > 5 or "dtype" not in given or set(given) - {"dtype", "order", "casting", "subok", "copy"}:
        fail(reader, RuleError, "astype: only (dtype, order, casting, subok, copy) are understood", node,
             "Leave the others out.")
    dtype = tried(reader, np.dtype, known_value(reader, given.pop("dtype"), "the dtype of astype", node), node=node)
    options = {k: known_value(reader, v, f"{k} of astype", node) for k, v in given.items()}
    casting = options.get("casting", "unsafe")
    if not tried(reader, np.can_cast, np.dtype(fact_of(value).dtype), dtype, casting, node=node):
        fail(reader, RuleError, f"astype: {np.dtype(fact_of(value).dtype)} is not cast to {dtype} by the rule "
             f"{casting!r}", node, "NumPy refuses it as well.", TypeError)
    shares = options.get("copy", True) in (False, None)
    made = converted(reader, value, dtype, node, shares)
    if shares:
        return made
    return fresh_result(reader, made, [value]) if fact_of(value).dims else copied_cell(reader, value, made)


def taken_item(reader: Reader, value, args, node):
    """x.item(k) with a flat index, or x.item(i, j)."""
    if len(args) == 1 and isinstance(settle(reader, args[0]), Struct):
        args = settle(reader, args[0]).items
    if len(args) == 1 and value.fact.rank != 1:
        value = dispatch.rule_call(reader, np.ravel, [value], {}, node)
    if len(args) != value.fact.rank:
        fail(reader, ShapeError, f"item: {len(args)} indices for an array of rank {value.fact.rank}", node)
    index = [
        known_value(reader, a, "the index of item", node) if isinstance(settle(reader, a), Const) else settle(reader, a)
        for a in args
    ]
    index = [i if isinstance(i, Var) else Const(i) for i in index]
    from_here = index[0]
    if len(index) > 1:
        from_here = as_operand(reader, Struct("tuple", index))
    return scalar_of(reader, reader.build.item(value, from_here), node)


def method_view(reader: Reader, value, args, words, node):
    """x.view(): the same entries; reinterpreting them as another dtype has no derivative and is refused."""
    dtype = args[0] if args else words.get("dtype")
    known = None if dtype is None else known_value(reader, dtype, "the dtype of view", node)
    if len(args) + len(words) > 1 or known is not None and not (
            isinstance(known, (np.dtype, type, str)) and not (isinstance(known, type) and issubclass(
                known, np.ndarray)) and np.dtype(known) == value.fact.dtype):
        fail(reader, RuleError, "view: bits that are read as another dtype have no derivative", node,
             "Convert the numbers: x.astype(dtype).")
    return value                    # a view of the same entries


OWN_METHODS: dict[str, Callable[..., Any] | None] = {                         # methods without a NumPy function
    "astype": method_astype,
    "clip": method_clip,
    "compress": method_compress,
    "item": method_item,
    "to_device": method_to_device,
    "tolist": None,
    "view": method_view,
}
SPECIAL.update({
    len: call_len,
    range: call_range,
    reversed: call_reversed,
    sum: call_sum,
    list: call_container,
    tuple: call_container,
    dict: call_container,
    functools.reduce: call_reduce,
    functools.partial: call_partial,
    callable: call_callable,
    getattr: call_getattr,
    hasattr: call_getattr,
    setattr: call_setattr,
    object.__setattr__: call_setattr,
    issubclass: call_issubclass,
    np.ndarray: call_ndarray,
    np.shape: call_shape,
    np.ndim: call_shape,
    np.size: call_shape,
    np.array: call_array,
    np.asarray: call_array,
    np.asanyarray: call_array,
    float: call_float,
    int: call_float,
    bool: call_float,
    complex: call_float,
    slice: call_slice,
    type: call_type,
    all: call_all,
    any: call_all,
})
