# SPDX-License-Identifier: Apache-2.0
"""Methods of values, and Python's builtins: what they mean for operands, containers and walks."""
import functools
import operator
import types

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Opaque, Sequence, same_dtype, unknown
from gradscribe.ast_transform.core.operations import Quoted, as_array
from gradscribe.ast_transform.passes.described import fact_of, is_of_a_library
from gradscribe.ast_transform.passes.filling import IN_PLACE, Filling
from gradscribe.ast_transform.passes.subscripts import Subscripts
from gradscribe.ast_transform.passes.values import (
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
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.source.diagnose import OF_OBJECTS, LanguageError, RuleError, ShapeError

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
OWN_METHODS = {"clip", "astype", "item", "tolist", "compress", "view", "to_device"}


class Methods(Filling, Subscripts):
    # methods

    def method(self, value, name, args, words, node):
        if isinstance(value, Grown):
            return self.grown_method(value, name, args, words, node)
        if isinstance(value, Rows):
            return self.rows_method(value, name, args, words, node)
        if isinstance(value, Derived):
            return value.transform.method(self, value, name, args, words, node)
        if isinstance(value, Struct):
            handler = self.bounded_method if hasattr(value.cls, "most") else self.container_method
            return self.understood(handler, name, value, name, args, words, node)
        if name in ("conj", "conjugate") and value.fact.kind != "c" and not args and not words:
            return value
        if name in METHODS:
            order = "C"
            if name == "copy" and "order" in words:
                order = self.static(words.pop("order"), "order of copy", node)
            result = self.call_known(METHODS[name], [value, *args], words, node)
            if name == "flatten":
                return self.alias(result)               # an array of its own, ravel's may be none
            if name == "copy" and isinstance(result, Var) and order == "C":
                self.layouts[result] = True             # np.copy keeps the operand's order, the method does not
            return result
        if name in CALLED_WITH_SHAPE:
            order = words
            if len(args) == 1:
                shape = args[0]
            else:
                shape = Struct("tuple", args)
            if name == "transpose" and (not args or isinstance(shape, Const) and shape.value is None):
                return self.call_known(np.transpose, [value], order, node)
            return self.call_known(CALLED_WITH_SHAPE[name], [value, shape], order, node)
        if name in IN_PLACE:
            return self.method_in_place(value, name, args, words, node)
        if name == "astype":
            return self.method_astype(value, args, words, node)
        if name == "item" and not words:
            return self.taken_item(value, args, node) if args else self.scalar(value, node)
        if name == "compress":
            return self.call_known(np.compress, [args[0], value, *args[1:]], words, node)
        if name == "clip":              # x.clip(low) has no upper limit
            given = dict(zip(("min", "max", "out"), args))
            if len(args) > 3 or given.keys() & words:
                return self.call_known(np.clip, [value, *args], words, node)
            words = {**given, **words}
            limits = [words.pop(n, Const(None)) for n in ("min", "max")]
            return self.call_known(np.clip, [value, *limits], words, node)
        if name == "view":
            return self.method_view(value, args, words, node)
        if name == "to_device" and [getattr(self.settle(a), "value", None) for a in args] == ["cpu"]:
            return value
        self.fail(LanguageError, f"the method {name} is not differentiated", node,
                  "Index the array." if name == "item" else "Use a function of NumPy.")

    def scalar(self, value, node):
        fact = fact_of(value)
        if any(not d.is_unit for d in fact.dims):
            self.fail(ShapeError, "item() needs an array of one element", node)
        if fact.dims:
            value = self.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
        return self.call_known({"b": bool, "i": int, "u": int, "f": float, "c": complex}[fact.kind], [value], {}, node)

    def converted(self, value, dtype, node, shares=False):
        """A value of a dtype; shares: where it has that already, the array itself, which may be so on one path only."""
        if not isinstance(value, (Var, Const)) or not isinstance(fact_of(value), Array):
            if isinstance(value, Struct):
                value = self.array_of(value, node)
            else:
                self.fail(LanguageError, f"{self.spell(value)} is not converted to {np.dtype(dtype)}", node,
                          "Give a number or an array.")
        fact = fact_of(value)
        if same_dtype(fact.dtype, dtype) and not (self.dtypes_by_path and isinstance(value, Var)):
            return value
        if fact.kind == "c" and dtype.kind != "c":
            self.fail(RuleError, "a conversion from complex to real drops the imaginary part", node, "Use np.real.")
        if isinstance(value, Const) and type(value.value) in (int, float) and np.dtype(dtype).kind == "f" and not (
                self.in_bfloat16 and np.dtype(dtype) == np.float16):
            return Const(np.dtype(dtype).type(value.value))
        hint = value.hint if isinstance(value, Var) else "converted"
        made = self.build.cast(value, dtype, hint, length=fact.length if dtype.kind in "iu" else None)
        if shares and self.dtypes_by_path and is_array(made) and is_array(value):
            self.tokens[made] = frozenset({made}) | self.storages(value)
        return made

    # builtins and functions about structure

    def call_len(self, function, args, words, node):
        value = args[0] if isinstance(args[0], RangeValue) else self.settle(args[0])
        if isinstance(value, RangeValue):
            return self.length_of_range(value)
        if isinstance(value, Grown):
            return self.length_of_grown(value)
        if isinstance(value, Rows):
            return self.length_of_grown(value.columns[0])
        if isinstance(value, Struct) and value.kind != "iterator":
            return Const(len(value.items))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            if not value.fact.rank:
                self.fail(ShapeError, "a scalar has no length", node)
            return self.build.length(value, 0)
        if isinstance(value, Const):
            self.stays_as_it_is(value, len)
            return Const(len(value.value))
        if isinstance(value, Var) and isinstance(value.fact, Opaque):
            quoted = Quoted(gast.parse("len(text)", mode="eval").body, ("text",), None)
            return self.build.let("n", Apply(quoted, (value,)), Array(int, (), unknown("?len")))
        self.fail(LanguageError, f"{self.spell(value)} has no length", node,
                  "" if isinstance(value, Var) else "Make a list of it first.")

    def call_range(self, function, args, words, node):
        args = [self.settle(a) for a in args]
        for a in args:
            fact = fact_of(a) if isinstance(a, (Var, Const)) else None
            if not isinstance(fact, Array) or fact.kind not in "iu":
                self.fail(ShapeError, f"range needs integers, {self.spell(a)} is given", node)
        if len(args) == 3 and isinstance(args[2], Const) and args[2].value == 0:
            self.fail(ShapeError, "range in steps of 0 has no end", node)
        if len(args) == 1:
            return RangeValue(Const(0), args[0], Const(1))
        return RangeValue(args[0], args[1], args[2] if len(args) > 2 else Const(1))

    def call_reversed(self, function, args, words, node):
        value = self.settle(args[0])
        if isinstance(value, RangeValue) and all(isinstance(p, Const) for p in (value.start, value.stop, value.step)):
            r = range(value.start.value, value.stop.value, value.step.value)[::-1]
            return RangeValue(Const(r.start), Const(r.stop), Const(r.step))
        if isinstance(value, RangeValue) and isinstance(value.step, Const) and value.step.value == 1:
            last = self.build.apply(operator.sub, value.stop, Const(1))
            before = self.build.apply(operator.sub, value.start, Const(1))
            return RangeValue(last, before, Const(-1))
        value = self.settle(value)
        if isinstance(value, Struct):
            if value.whole is not None and value.version == 0 and not self.unroll and value.kind in ("list", "tuple"):
                whole = Part(
                    value.whole,
                    Const(slice(None, None, -1)),
                    Sequence(value.kind, tuple(value.whole.fact.elements[::-1])),
                )
                return Struct(value.kind, value.items[::-1], whole=whole)
            if value.kind == "iterator":
                self.fail(LanguageError, "an iterator is not reversed", node, "Make a list of it first.")
            items = [Const(k) for k in value.keys[::-1]] if value.kind == "dict" else value.items[::-1]
            return Walk(items, sources=((args[0].value if isinstance(args[0], View) else value, "all"),))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.walk(self.build.item(value, Const(slice(None, None, -1))), node)
        walk = self.walk(value, node)
        if walk.static is not None:
            return Walk(walk.static[::-1])
        self.fail(
            LanguageError,
            "reversed of a length that is not known when transforming",
            node,
            "Count downwards with range.",
        )

    def call_sum(self, function, args, words, node):
        value = args[0]
        if isinstance(value, Var) and isinstance(value.fact, Array):
            total = self.rule_call(np.sum, [value], {"axis": Const(0)}, node)
            if value.fact.kind in "iu" and np.dtype(fact_of(total).dtype) != np.dtype(value.fact.dtype):
                total = self.build.cast(total, value.fact.dtype, "total")       # Python adds short numbers as they are
            start = args[1:] or [words[n] for n in words]
            return self.binary(operator.add, start[0], total, node) if start else total
        start = args[1:] or ([words["start"]] if "start" in words else [])
        return self.total(self.listed(value, node), node, *start)

    def total(self, items, node, start=None):
        """Python's sum, which begins with 0: one array alone is a new one, and truth values become numbers."""
        total, items = start, [self.settle(item) for item in items]
        if total is None and items and isinstance(items[0], (Const, Var)):
            first = fact_of(items[0])
            if isinstance(first, Array) and (first.kind == "b" or len(items) == 1 and not first.weak):
                total = Const(0)
        for item in items:
            total = item if total is None else self.binary(operator.add, total, item, node)
        return Const(0) if total is None else total

    def is_vector(self, value):
        return isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.rank == 1

    def call_container(self, function, args, words, node):
        if function is dict:
            return Struct("dict", *self.made_of(args, words, node))
        if not args:
            return Struct(function.__name__, [])
        value = self.settle(args[0]) if not isinstance(args[0], (RangeValue, Walk)) else args[0]
        if isinstance(value, Struct) and value.kind == "dict":
            return Struct(function.__name__, [Const(k) for k in value.keys])
        if function is list and isinstance(value, Grown):
            self.gone_through_once(value, node)
            return self.copied_list(value)
        if function is list and isinstance(value, Rows):
            return self.copied_rows(value)
        if function is list and isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.dims and \
                value.fact.dims[0].normal().symbol is not None:
            made = self.list_of(value)
            if made is not None:
                return made
        return Struct(function.__name__, self.listed(value, node))

    def call_reduce(self, function, args, words, node):
        items = self.reduced_items(args[1], node)
        if items is None:
            return self.reduce_loop(args, node)
        total = args[2] if len(args) > 2 else None
        for item in items:
            total = item if total is None else self.call(args[0], [total, self.settle(item)], {}, node)
        return total

    def reduced_items(self, value, node):
        try:
            return self.listed(value, node)
        except LanguageError:
            return None

    def reduce_loop(self, args, node):
        """reduce over an array of unknown length: a loop from its first row."""
        env = self.frame.env
        x = self.settle(args[1])
        if len(args) > 2:
            env[".total"], rest = args[2], x
        else:
            env[".total"] = self.build.item(x, Const(0))
            rest = self.build.item(x, Const(slice(1, None)))
        env[".function"], env[".rest"] = args[0], rest
        name = lambda n, ctx: gast.copy_location(gast.Name(n, ctx, None, None), node)     # noqa: E731 (a one-line shorthand)
        step = gast.copy_location(
            gast.Assign(
                [name(".total", gast.Store())],
                gast.copy_location(
                    gast.Call(
                        name(".function", gast.Load()), [name(".total", gast.Load()), name(".item", gast.Load())], []
                    ),
                    node,
                ),
                None,
            ),
            node,
        )
        self.exec_For(
            gast.copy_location(
                gast.For(name(".item", gast.Store()), name(".rest", gast.Load()), [step], [], None), node
            )
        )
        result = env[".total"]
        for n in (".total", ".function", ".rest", ".item"):
            env.pop(n, None)
        if isinstance(result, Var):
            result.hint = "total"
        return result

    def call_partial(self, function, args, words, node):
        return Bound(args[0], args[1:], words)

    def call_isinstance(self, function, args, words, node):
        view = args[0] if isinstance(args[0], View) else None
        value, classes = self.settle(args[0]), self.python(args[1], node)
        classes = classes if isinstance(classes, tuple) else (classes,)
        if view is not None:
            return Const(isinstance(getattr({}, view.name)(), classes))
        if isinstance(value, Const):
            return Const(isinstance(value.value, classes))
        if isinstance(value, (Struct, Grown, Rows)) and not (isinstance(value, Struct) and value.kind == "iterator"):
            return Const(issubclass(self.class_of(value), classes))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.asked_of_types(value, lambda cls: issubclass(cls, classes), node)
        if isinstance(value, (FunctionValue, Bound, Method)):
            kinds = (types.FunctionType,) if isinstance(value, FunctionValue) else (
                functools.partial, types.MethodType) if isinstance(value, Bound) else (
                types.MethodType, types.BuiltinMethodType)
            answers = {issubclass(kind, classes) for kind in kinds}
            if len(answers) == 1:
                return Const(answers.pop())
        self.fail(LanguageError, f"isinstance of {self.spell(value)} is not known when transforming", node,
                  "Test the types of arguments, and of literals.")

    def asked_of_types(self, value, answer, node):
        """What is asked of the type of an array or a number, where all types that it may have agree."""
        fact = value.fact
        classes = [list if isinstance(fact, Listed) else fact.dtype if fact.weak else np.ndarray if fact.dims else
                   fact.dtype.type]
        if value not in self.entry_tokens and self.may_be_cell(value):
            classes.append(np.ndarray)
        answers = list(map(answer, classes))
        if any(a is not answers[0] for a in answers):
            self.fail(LanguageError, f"{self.spell(value)} may be a number, or an array without axes",
                      node, "Ask for np.ndim(x), or make a number of it: x[()].")
        return Const(answers[0])

    def call_callable(self, function, args, words, node):
        return Const(
            isinstance(args[0], (FunctionValue, Bound, Method))
            or isinstance(args[0], Const)
            and callable(args[0].value)
            or self.dunder(self.settle(args[0]), "__call__") is not None
        )

    def call_getattr(self, function, args, words, node):
        name = self.static(args[1], "the name of an attribute", node)
        value = self.settle(args[0])
        if function is hasattr:
            if isinstance(value, Const):
                return Const(self.has_now(value.value, name))
            if isinstance(value, Var) and isinstance(value.fact, Array):
                return self.asked_of_types(value, lambda cls: hasattr(cls, name), node)
            if isinstance(value, (Struct, Grown)):
                return Const(self.has_attribute(value, name))
            self.fail(LanguageError, f"hasattr of {self.spell(value)} is not known when transforming", node,
                      "Test the attributes of objects and of arrays.")
        if len(args) > 2 and (isinstance(value, (Struct, Grown)) and not self.has_attribute(value, name) or
                              isinstance(value, Const) and not self.has_now(value.value, name)):
            return args[2]
        return self.attribute(value, name, node)

    def has_now(self, value, name):
        """Whether an object from outside has an attribute; the version holds as long as that stays so."""
        found = hasattr(value, name)
        if hasattr(value, "__dict__") and not is_of_a_library(value):
            self.kind_guards.append(lambda: hasattr(value, name) is found)
        return found

    def call_setattr(self, function, args, words, node):
        holder, name, value = args
        name = self.static(name, "the name of an attribute", node)
        if function is object.__setattr__:
            self.put_attribute(self.changing(self.settle(holder), node), name, value)
            return Const(None)
        self.assign_attribute(gast.copy_location(gast.Attribute(None, name, gast.Store()), node), value,
                              self.settle(holder))
        return Const(None)

    def call_issubclass(self, function, args, words, node):
        return Const(self.tried(issubclass, *[self.python(a, node) for a in args], node=node))

    def call_ndarray(self, function, args, words, node):
        """np.ndarray(shape, dtype): an array in which nothing is yet."""
        given = {**dict(zip(("shape", "dtype"), args)), **words}
        if len(args) > 2 or set(given) - {"shape", "dtype", "order"}:
            self.fail(RuleError, "np.ndarray: shape, dtype and order are understood", node,
                      "Make the array outside, and pass it as an argument.")
        return self.rule_call(np.empty, [], given, node)

    def call_shape(self, function, args, words, node):
        value = self.settle(args[0])
        if isinstance(value, Struct):
            value = self.array_of(value, node)
        fact = fact_of(value)
        if not isinstance(fact, Array):
            self.fail(ShapeError, f"{self.spell(value)} has no shape", node)
        if function is np.ndim:
            return Const(fact.rank)
        if function is np.size:
            if len(args) > 1 or words:
                self.fail(RuleError, "np.size: axis is not understood", node, "Write x.shape[axis].")
            return self.size(value)
        return Struct("tuple", [self.build.length(value, k) for k in range(fact.rank)])

    def call_array(self, function, args, words, node):
        words = dict(words)
        dtype = words.pop("dtype", args[1] if len(args) > 1 else None)
        options = {k: self.static(words.pop(k), f"{k}= of an array", node) for k in ("copy", "order", "ndmin", "subok",
                                                                                     "device") if k in words}
        copied = options.get("copy", function is np.array) or False
        if words or len(args) > 2 or options.get("order") not in (None, "K", "A") and not copied or \
                "ndmin" in options and function is not np.array:
            self.fail(RuleError, f"np.{function.__name__}: these arguments are not understood", node,
                      "Its dtype and copy= are, and of np.array also ndmin= and order=.")
        value = (
            self.settle(args[0])
            if not isinstance(args[0], (RangeValue, Walk))
            else Struct("list", self.listed(args[0], node))
        )
        if isinstance(value, Struct):
            value = self.array_of(value, node)
        elif isinstance(fact_of(value), Array):
            if isinstance(value, Const) or fact_of(value).weak:
                value = self.build.apply(np.array, value, fact=Array(np.dtype(fact_of(value).dtype)))
            elif copied and getattr(self.build.made.get(value), "function", None) is not as_array:
                value = self.rule_call(np.copy, [value], {}, node)
            elif self.flats.get(value):
                self.fail(LanguageError, "the array of x.flat may be a view or a copy", node, "Write x.ravel().")
        else:
            self.fail(LanguageError, f"an array of {self.spell(value)} is not differentiated", node,
                      "Make it of numbers, arrays or lists of them.")
        if dtype is not None and not (isinstance(dtype, Const) and dtype.value is None):
            value = self.converted(value, np.dtype(self.static(dtype, "the dtype of an array", node)), node, not copied)
        missing = options.get("ndmin", 0) - fact_of(value).rank
        return self.rule_call(np.expand_dims, [value, Const(tuple(range(missing)))], {}, node) if missing > 0 else \
            self.as_cell(value)

    def array_of(self, value, node):
        """The array of a list of numbers or arrays."""
        items = [self.array_of_grown(i) if isinstance(i, Grown) else self.settle(i) for i in value.items]
        if value.kind not in ("list", "tuple"):
            self.fail(LanguageError, f"an array of {self.spell(value)} is not differentiated", node,
                      "Make it of a list: list(d.values()), or of the attributes.")
        if _literal(value):
            literal = self.packed(value)
            array = np.array(_python_list(value))
            fact = Array(array.dtype, tuple(Length(None, n) for n in array.shape))
            if fact.of_objects:
                self.fail(LanguageError, OF_OBJECTS, node, "Use a list.")
            return self.build.let("array", Apply(np.array, (literal,)), fact)
        items = [self.array_of(i, node) if isinstance(i, Struct) else i for i in items]
        for i in items:
            if not isinstance(fact_of(i), Array):
                self.fail(LanguageError, f"an array that holds {self.spell(i)} is not differentiated", node,
                          "Use a list.")
        if any(fact_of(i).rank for i in items):
            stacked = self.rule_call(np.stack, [Struct("list", items)], {}, node)
            self.layouts[stacked] = True
            return stacked
        return self.build.apply(np.array, Pack("list", tuple(items)))

    def call_float(self, function, args, words, node):
        if not args:
            return self.call_complex(function, [], words, node) if words else Const(function())
        value, *others = (self.settle(a) for a in args)
        if not words and all(isinstance(v, Const) for v in (value, *others)):
            self.stays_as_it_is(value, function)
            try:
                return Const(function(*(v.value for v in (value, *others))))
            except (ValueError, TypeError) as error:
                self.fail(ShapeError, str(error), node, python=type(error))
        if others or words:
            return self.call_complex(function, [value, *others], words, node)
        value = self.one_number(function, value, node)
        fact = fact_of(value)
        if fact.kind == "c" and function is not complex:
            self.fail(RuleError, "a complex number is not converted to a real one", node, "Use np.real.")
        if fact.dtype is function:
            return value
        length = fact.length if fact.kind in "iu" else unknown("?int")
        return self.build.let(
            value.hint, Apply(function, (value,)), Array(function, (), length if function is int else None)
        )

    def call_complex(self, function, args, words, node):
        """complex(a, b)"""
        bound = dict(zip(("real", "imag"), args)) | {k: self.settle(w) for k, w in words.items()}
        if function is not complex or len(bound) != len(args) + len(words) or not bound.keys() <= {"real", "imag"}:
            self.fail(LanguageError, f"{function.__name__} with these arguments is not read", node)
        real, imag = (self.one_number(function, bound.get(k, Const(0)), node) for k in ("real", "imag"))
        if "c" in (fact_of(real).kind, fact_of(imag).kind):
            self.fail(RuleError, "a part of a complex number is complex itself", node, "Write a + 1j * b.")
        return self.build.let("z", Apply(complex, (real, imag)), Array(complex))

    def one_number(self, function, value, node):
        fact = fact_of(value)
        if not isinstance(fact, Array):
            self.fail(LanguageError, f"{function.__name__} needs one number, {self.spell(value)} is given", node)
        if any(not d.is_unit for d in fact.dims):
            self.fail(ShapeError, f"{function.__name__} needs one number, {self.spell(value)} is given", node)
        if fact.dims:
            value = self.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
        return value

    def call_print(self, function, args, words, node):
        self.effect(node)
        return Const(None)

    def call_slice(self, function, args, words, node):
        parts = [self.settle(a) for a in args]
        if all(isinstance(p, Const) for p in parts):
            return Const(slice(*(p.value for p in parts)))
        parts = [None, parts[0], None] if len(parts) == 1 else [*parts, None][:3]
        return Slice(*(None if p is None or isinstance(p, Const) and p.value is None else p for p in parts))

    def call_type(self, function, args, words, node):
        value = self.settle(args[0])
        if isinstance(value, Const):
            return Const(type(value.value))
        if isinstance(value, (Struct, Grown, Rows)):
            return Const(self.class_of(value))
        if not isinstance(fact_of(value), Array):
            self.fail(LanguageError, f"the type of {self.spell(value)} is not known when transforming", node,
                      "Test the types of arguments, and of literals.")
        return self.asked_of_types(value, lambda cls: cls, node)

    def call_all(self, function, args, words, node):
        value = self.settle(args[0]) if not isinstance(args[0], Walk) else args[0]
        if isinstance(value, Var) and isinstance(value.fact, Array):
            found = self.rule_call(np.all if function is all else np.any, [value], {}, node)
            return self.call_float(bool, [found], {}, node)
        result = Const(function is all)
        for item in self.listed(value, node):
            result = self.short(result, lambda i=item: self.truth(i, node), node, function is all)
        return result


def _literal(value):
    return all(_literal(i) if isinstance(i, Struct) else isinstance(i, Const) for i in value.items)


def _python_list(value):
    return [_python_list(i) if isinstance(i, Struct) else i.value for i in value.items]
