"""Calls, attributes and methods: what they mean, decided by what they are called on."""
import ast
import builtins
import difflib
import functools
import inspect
import math
import operator
import types

import gast
import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, UNDEFINED, USER, Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import UNIT, Array, Length, Opaque, Sequence, Stack, same_dtype, unknown
from gradscribe.ast_transform.core.operations import Quoted, astype, size_of
from gradscribe.ast_transform.core.rule import RULES, STATIC
from gradscribe.ast_transform.passes import language
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.facts import fact_of
from gradscribe.ast_transform.passes.values import (
    Bound,
    Derived,
    Frame,
    FunctionValue,
    Known,
    Method,
    Part,
    RangeValue,
    Struct,
    Walk,
    as_value,
    known,
)
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError, TransformError
from gradscribe.ast_transform.source.read import Source, read, unwrap

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
    "clip": np.clip,
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
}
CALLED_WITH_SHAPE = {"reshape": np.reshape, "transpose": np.transpose}
DEEP = 60
ENDLESS = (
    "is too deep, or has no end that is known when transforming",
    "Let it end by a literal or a plain number, or write it as a loop.",
)


class Calls:
    # attributes

    def attribute(self, value, name, node):
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.array_attribute(value, name, node)
        if isinstance(value, Struct):
            if value.kind == "record" and name in value.keys:
                return self.settle(value.items[value.keys.index(name)])
            return Method(value, name)
        if isinstance(value, Const):
            if isinstance(fact_of(value), Array):
                return self.number_attribute(value, name, node)
            try:
                found = getattr(value.value, name)
            except AttributeError as error:
                close = (
                    difflib.get_close_matches(name, dir(value.value), 1)
                    if isinstance(value.value, types.ModuleType)
                    else ()
                )
                self.fail(LanguageError, str(error), node, f"Is {close[0]} meant?" if close else "")
            if (
                not isinstance(value.value, types.ModuleType)
                and not self.rule_depth
                and not isinstance(value.value, type)
            ):
                self.guards.append((value.value, name, found))
            return self.lift(found, name)
        if isinstance(value, Bound) and name == "func":
            return value.function
        self.fail(LanguageError, f"{self.spell(value)} has no attribute {name} that is understood", node)

    def array_attribute(self, value, name, node):
        fact = value.fact
        if name == "T":
            return value if fact.rank < 2 else self.rule_call(np.transpose, [value], {}, node)
        if name == "shape":
            return Struct("tuple", [self.build.length(value, k) for k in range(fact.rank)])
        if name == "ndim":
            return Const(fact.rank)
        if name == "size":
            return self.size(value)
        if name == "dtype":
            return Const(np.dtype(fact.dtype))
        if name in ("real", "imag"):
            return self.rule_call(getattr(np, name), [value], {}, node)
        if name in METHODS or name in CALLED_WITH_SHAPE or name in ("astype", "item", "tolist"):
            return Method(value, name)
        if name in ("sort", "fill", "partition", "put", "resize", "itemset", "setflags", "setfield", "byteswap"):
            self.fail(LanguageError, f"the method {name} writes into its array, which is not differentiated yet", node,
                      "Make a new array instead.")
        self.fail(RuleError, f"an array's attribute {name} has no rule", node, "docs/rules.md says how to add one.")

    def number_attribute(self, value, name, node):
        if name in ("real", "imag"):
            return self.rule_call(getattr(np, name), [value], {}, node)
        if name in ("shape", "ndim", "size", "dtype") and isinstance(value.value, np.generic):
            return as_value(getattr(value.value, name))
        if name == "conjugate":
            return Method(value, name)
        if name in METHODS and isinstance(value.value, np.generic):
            return Method(value, name)
        self.fail(LanguageError, f"a number has no attribute {name} that is understood", node)

    def size(self, value):
        fact = fact_of(value)
        if not fact.rank:
            return Const(1)
        if fact.rank == 1:
            return self.build.length(value, 0)
        rest = [d for d in fact.dims if not d.is_unit]
        if all(d.normal().symbol is None for d in rest):
            return Const(int(np.prod([d.normal().offset for d in rest], dtype=int)))
        length = rest[0] if len(rest) == 1 else unknown("?size", any(d.many for d in rest))
        return self.build.let("size", Apply(size_of, (value,)), Array(int, (), length))

    # calls

    def eval_Call(self, node):
        return self.call_node(node, self.eval(node.func))

    def call_node(self, node, function):
        special = self.comprehended(node, function)
        if special is not None:
            return special
        args = []
        for a in node.args:
            if isinstance(a, gast.Starred):
                args += self.listed(self.eval(a.value), a)
            else:
                args.append(self.eval(a))
        words = {}
        for k in node.keywords:
            if k.arg is None:
                other = self.settle(self.eval(k.value))
                if not isinstance(other, Struct) or other.kind != "dict":
                    self.fail(LanguageError, "** needs a dictionary of known structure", k.value)
                words.update(zip(other.keys, other.items))
            else:
                words[k.arg] = self.eval(k.value)
        self.locate(node)
        return self.call(function, args, words, node)

    def comprehended(self, node, function):
        """sum(f(v) for v in x if ...) over a length that is not known is a loop."""
        if not (isinstance(function, Const) and function.value in (builtins.sum, np.sum) and len(node.args) == 1 and
                not node.keywords and isinstance(node.args[0], (gast.ListComp, gast.GeneratorExp))):
            return None
        comp = node.args[0]
        if len(comp.generators) != 1:
            return None
        generator = comp.generators[0]
        before, held = self.snapshot(), list(self.build.block)
        try:
            items = self.comprehension(comp.generators, lambda: self.eval(comp.elt), node)
        except LanguageError:
            self.restore(before)
            self.build.block[:] = held
        else:
            return self.total(items, node)
        name = lambda ctx: gast.copy_location(gast.Name("total", ctx, None, None), node)      # noqa: E731
        add = gast.copy_location(gast.Assign([name(gast.Store())], gast.copy_location(
            gast.BinOp(name(gast.Load()), gast.Add(), comp.elt), node), None), node)
        body = [add]
        for test in generator.ifs:
            body = [gast.copy_location(gast.If(test, body, []), node)]
        env = self.frame.env
        names = {"total", *(n.id for n in gast.walk(generator.target) if isinstance(n, gast.Name))}
        kept = {n: env[n] for n in names if n in env}
        if "total" in kept and any(isinstance(n, gast.Name) and n.id == "total" for n in gast.walk(comp)):
            self.fail(LanguageError, "a comprehension that reads a variable named total", node, "Write it as a loop.")
        env["total"] = Const(0)
        for n in names - {"total"}:
            env.pop(n, None)
        loop = gast.copy_location(gast.For(generator.target, generator.iter, body, [], None), node)
        self.exec_For(loop)
        result = env["total"]
        for n in names:
            env.pop(n, None)
        env.update(kept)
        return result

    def call(self, function, args, words, node):
        if isinstance(function, FunctionValue):
            return self.inline(function.source, args, words, node, function)
        if isinstance(function, Method):
            return self.method(function.value, function.name, args, words, node)
        if isinstance(function, Derived):
            return function.transform.read(self, function.base, args, words)
        if isinstance(function, Bound):
            return self.call(function.function, [*function.args, *args], {**function.kwargs, **words}, node)
        if not isinstance(function, Const):
            self.fail(LanguageError, f"{self.spell(function)} is not called", node)
        return self.call_known(function.value, args, words, node)

    def call_known(self, function, args, words, node):
        handler = SPECIAL.get(function) if _hashable(function) else None
        if handler is not None:
            return self.understood(getattr(self, handler), spelled(function), function, args, words, node)
        if _hashable(function) and function in STATIC:
            return self.static_call(function, args, words, node)
        if _hashable(function) and function in RULES:
            return self.rule_call(function, args, words, node)
        derive = getattr(function, "normal_form_", None)
        if derive is not None:
            return derive(self, args, words, node)
        if isinstance(function, functools.partial):
            given = [self.lift(a, "given") for a in function.args]
            return self.call_known(function.func, [*given, *args],
                                   {**{k: self.lift(v, k) for k, v in function.keywords.items()}, **words}, node)
        if isinstance(function, types.MethodType):
            return self.call_known(function.__func__, [Const(function.__self__), *args], words, node)
        function = unwrap(function)
        if isinstance(function, types.FunctionType):
            if (function.__module__ or "").split(".")[0] in ("numpy", "scipy", "math") :
                self.no_rule(function, args, words, node)
            if self.rule_depth and (function.__module__ or "").startswith("gradscribe.runtime"):
                self.no_rule(function, args, words, node)
            return self.user_call(function, args, words, node)
        if isinstance(function, type):
            return self.construct(function, args, words, node)
        if callable(function) and isinstance(type(function).__call__, types.FunctionType):
            return self.call_known(types.MethodType(type(function).__call__, function), args, words, node)
        self.no_rule(function, args, words, node)

    def understood(self, handler, label, *given):
        """What a builtin or a method means; arguments that Python would not take are refused."""
        try:
            return handler(*given)
        except TransformError:
            raise
        except (TypeError, ValueError, IndexError, KeyError) as error:
            reason = "these arguments are not understood" if isinstance(error, IndexError | KeyError) else str(error)
            self.fail(LanguageError, f"{label}: {reason}", given[-1])

    def no_rule(self, function, args, words, node):
        label = spelled(function)
        if isinstance(function, np.ufunc):
            label = f"np.{function.__name__}"
        if not callable(function):
            self.fail(LanguageError, f"{label} is not a function", node)
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and self.frame.plain and \
                node.func.attr == getattr(function, "__name__", None):
            label = ast.unparse(gast.gast_to_ast(node.func))            # as the user calls it
        if (getattr(function, "__module__", None) or "").startswith("numpy.random"):
            self.fail(
                RuleError,
                f"{label} has no derivative rule",
                node,
                "Draw outside the function and pass the numbers as an argument.",
            )
        self.fail(RuleError, f"{label} has no derivative rule", node, "To add a rule: docs/rules.md")

    def static_call(self, function, args, words, node):
        """A helper of a rule, run now."""
        try:
            value = function(
                *[known(self.settle(a)) for a in args], **{k: known(self.settle(v)) for k, v in words.items()}
            )
        except (ValueError, TypeError, IndexError) as error:
            raise RuleError(str(error), self.build.origin) from None
        return as_value(value)

    # functions with a rule

    def rule_call(self, function, args, words, node):
        rule = RULES[function]
        try:
            bound = rule.signature.bind(*args, **words)
        except TypeError as error:
            reason = str(error).replace("'", "")
            self.fail(RuleError, f"{spelled(function)}: {reason}", node,
                      f"Its rule understands ({', '.join(rule.arguments)}). To add to it: docs/rules.md")
        if rule.options.get("rewrite"):
            return self.inline_part(rule.parts["primal"], args, words)
        parameters = rule.signature.parameters
        positional, keywords = [], {}
        for name, value in bound.arguments.items():
            kind, default = parameters[name].kind, parameters[name].default
            if name in words and isinstance(value, Const) and type(value.value) in (bool, type(None), int, str) and \
                    type(default) is type(value.value) and default == value.value:
                continue
            if kind is inspect.Parameter.VAR_POSITIONAL:
                positional += [self.argument(v, rule, name, node) for v in value]
            elif name in words or kind is inspect.Parameter.KEYWORD_ONLY:
                keywords[name] = self.argument(value, rule, name, node)
            else:
                positional.append(self.argument(value, rule, name, node))
        if self.rule_depth and function in _FOLDED:
            return self.build.arithmetic(function, positional)
        if rule.kind == "constant" and function in (np.shape, np.ndim, np.size, len):
            raise AssertionError("handled before")
        fact = rule.options.get("fact")
        out = self.build.apply(function, *positional, **keywords) if fact is None else \
            self.build.apply(function, *positional, fact=fact(*map(fact_of, positional)), **keywords)
        return self.several(out, function, positional, keywords)

    def several(self, out, function, positional, keywords):
        """A function with several results gives a tuple of names."""
        if not isinstance(out, Var) or not isinstance(out.fact, Sequence):
            return out
        value = self.build.made.pop(out)
        step = self.build.block.pop()
        assert step.targets[0] is out
        if len(out.fact.elements) == 1:
            return Struct(
                out.fact.kind,
                [self.build.let(out.hint, Apply(operator.getitem, (value, Const(0))), out.fact.elements[0])],
            )
        parts = self.build.several(
            [f"{out.hint}_{k}" for k in range(len(out.fact.elements))], value, out.fact.elements, TEMPORARY
        )
        for p in parts:
            self.build.made[p] = Apply(_result_of, (Const(0),))
        return Struct(out.fact.kind, list(parts))

    def argument(self, value, rule, name, node):
        """An argument of a NumPy function: an array, or what must be known when transforming."""
        value = self.settle(value)
        if name in STATIC_ARGUMENTS:
            if isinstance(value, Struct):
                return Pack(value.kind, tuple(self.argument(v, rule, name, node) for v in value.items))
            return Const(self.static(value, f"{name} of {spelled(rule.function)}", node))
        if isinstance(value, Struct) and name in rule.active and rule.parts.get(f"vjp_{name}") is not None and \
                value.kind in ("list", "tuple") and not _variadic(rule, name):
            return self.array_of(value, node)
        if isinstance(value, Struct) and rule.kind in ("elementwise", "linear", "bilinear") and name in rule.active \
                and not _variadic(rule, name):
            return self.array_of(value, node)
        if isinstance(value, Struct):
            if value.kind not in ("list", "tuple"):
                self.fail(
                    ShapeError, f"{spelled(rule.function)}: an array is needed, {self.spell(value)} is given", node
                )
            return Pack(value.kind, tuple(self.argument(v, rule, name, node) for v in value.items))
        if isinstance(value, (FunctionValue, Method, Bound, RangeValue, Walk)):
            if isinstance(value, RangeValue):
                return self.array_of(Struct("list", self.listed(value, node)), node)
            self.fail(RuleError, f"{spelled(rule.function)}: an array is needed, {self.spell(value)} is given", node)
        return value

    # functions written in Python

    def user_call(self, function, args, words, node):
        args = [self.settle(a) for a in args]
        words = {k: self.settle(v) for k, v in words.items()}
        source = read(function, self.here(node) if self.frame.plain else self.build.origin)
        if self.keeps_call(function, args, words):
            kept = self.engine.kept_call(self, function, args, node)
            if kept is not None:
                return kept
        return self.inline(source, args, words, node)

    def keeps_call(self, function, args, words):
        """A plain helper called on arrays stays a function of its own."""
        return self.engine is not None and not self.unroll and not self.rule_depth and not words and args and \
            not function.__closure__ and function.__name__ != "<lambda>" and \
            all(isinstance(a, Var) and isinstance(a.fact, Array) and a.fact.kind in "fc" for a in args) and \
            function not in [f.source.function for f in self.stack]

    def inline(self, source, args, words, node, inner=None):
        """Read a callee in place of its call."""
        if self.depth(source) > DEEP:
            self.fail(LanguageError, f"the recursion of {source.name} {ENDLESS[0]}", node, ENDLESS[1])
        from_here = self.here(node) if self.frame.plain else self.build.origin
        source = Source(
            source.tree,
            source.scope,
            source.file,
            source.name,
            source.function,
            source.defaults,
            source.keyword_defaults,
        )
        if not self.rule_depth:
            language.check(source, from_here)
        env = self.bound(source, args, words, node, inner)
        return self.run(Frame(source, env, inner.frame if inner else None, from_here, not self.rule_depth))

    def inline_part(self, part, args, words=None):
        """Read a rule's part with operands for its parameters."""
        source = read(part)
        env = self.bound(source, args, words or {}, None)
        self.rule_depth += 1
        try:
            return self.run(Frame(source, env, None, None, False))
        finally:
            self.rule_depth -= 1

    def bound(self, source, args, words, node, inner=None):
        """Python's binding of arguments to parameters."""
        spec = source.tree.args
        names = [a.id for a in [*spec.posonlyargs, *spec.args]]
        env, words = {}, dict(words)

        def refuse(reason):
            place = self.here(node) if node is not None and self.frame.plain else source.header(self.build.origin)
            raise ShapeError(f"{source.name} {reason}", place,
                             f"Its parameters are ({ast.unparse(gast.gast_to_ast(source.tree).args)}).")
        if len(args) > len(names) and not spec.vararg:
            refuse(f"takes {len(names)} argument{'s' * (len(names) != 1)}, {len(args)} are given")
        env.update(zip(names, args))
        if spec.vararg:
            env[spec.vararg.id] = Struct("tuple", args[len(names):])
        keyword_only = [a.id for a in spec.kwonlyargs]
        for k in list(words):
            if k in names or k in keyword_only:
                if k in env:
                    refuse(f"is given two values for {k}")
                env[k] = words.pop(k)
        if words and not spec.kwarg:
            refuse(f"has no parameter named {next(iter(words))}")
        if spec.kwarg:
            env[spec.kwarg.id] = Struct("dict", list(words.values()), tuple(words))
        if inner is not None:
            for name, value in zip(names[len(names) - len(inner.defaults):], inner.defaults):
                env.setdefault(name, value)
            for name, value in inner.keyword_defaults.items():
                env.setdefault(name, value)
        else:
            for name, value in zip(names[len(names) - len(source.defaults):], source.defaults):
                if name not in env:
                    env[name] = self.lift(value, name)
            for name, value in source.keyword_defaults.items():
                if name not in env:
                    env[name] = self.lift(value, name)
        missing = [n for n in [*names, *keyword_only] if n not in env]
        if missing:
            refuse(f"needs a value for {missing[0]}")
        return env

    def construct(self, cls, args, words, node):
        """Named tuples and dataclasses are containers; NumPy's scalar types convert."""
        if issubclass(cls, np.generic) and len(args) == 1:
            return self.converted(self.settle(args[0]), np.dtype(cls), node)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            fields, defaults = cls._fields, cls._field_defaults
        elif hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "__post_init__"):
            fields = tuple(cls.__dataclass_fields__)
            defaults = {
                k: f.default for k, f in cls.__dataclass_fields__.items() if type(f.default).__name__ != "_MISSING_TYPE"
            }
        elif issubclass(cls, BaseException):
            return Const(cls)
        else:
            self.fail(LanguageError, f"objects of class {cls.__name__} are not differentiated yet", node,
                      "Named tuples and dataclasses are; so are dictionaries.")
        given = {**dict(zip(fields, args)), **words}
        if len(args) > len(fields) or set(given) - set(fields):
            self.fail(ShapeError, f"{cls.__name__} has the fields {', '.join(fields)}", node)
        for k in fields:
            if k not in given:
                if k not in defaults:
                    self.fail(ShapeError, f"{cls.__name__} needs a value for {k}", node)
                given[k] = self.lift(defaults[k], k)
        return Struct("record", [given[k] for k in fields], fields, cls)

    # methods

    def method(self, value, name, args, words, node):
        if isinstance(value, Struct):
            return self.understood(self.container_method, name, value, name, args, words, node)
        if name in METHODS:
            return self.call_known(METHODS[name], [value, *args], words, node)
        if name in CALLED_WITH_SHAPE:
            order = words
            if len(args) == 1:
                shape = args[0]
            else:
                shape = Struct("tuple", args)
            if name == "transpose" and (not args or isinstance(shape, Const) and shape.value is None):
                return self.call_known(np.transpose, [value], order, node)
            return self.call_known(CALLED_WITH_SHAPE[name], [value, shape], order, node)
        if name == "astype":
            if len(args) != 1 or words:
                self.fail(RuleError, "astype: only the dtype is understood", node)
            return self.converted(
                value, self.tried(np.dtype, self.static(args[0], "the dtype of astype", node), node=node), node
            )
        if name == "item" and not args:
            return self.scalar(value, node)
        self.fail(LanguageError, f"the method {name} is not differentiated", node)

    def scalar(self, value, node):
        fact = fact_of(value)
        if any(not d.is_unit for d in fact.dims):
            self.fail(ShapeError, "item() needs an array of one element", node)
        if fact.dims:
            value = self.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
        return self.call_known({"b": bool, "i": int, "u": int, "f": float, "c": complex}[fact.kind], [value], {}, node)

    def converted(self, value, dtype, node):
        if not isinstance(value, (Var, Const)) or not isinstance(fact_of(value), Array):
            if isinstance(value, Struct):
                value = self.array_of(value, node)
            else:
                self.fail(LanguageError, f"{self.spell(value)} has no dtype", node)
        fact = fact_of(value)
        if same_dtype(fact.dtype, dtype):
            return value
        if fact.kind == "c" and dtype.kind != "c":
            self.fail(RuleError, "a conversion from complex to real drops the imaginary part", node, "Use np.real.")
        return self.build.let(
            "converted" if not isinstance(value, Var) else value.hint,
            Apply(astype, (value, Const(dtype))),
            Array(dtype, fact.dims, fact.length if dtype.kind in "iu" else None),
        )

    def container_method(self, value, name, args, words, node):
        if value.kind == "dict":
            if name == "items":
                return Struct("list", [Struct("tuple", [Const(k), v]) for k, v in zip(value.keys, value.items)])
            if name == "keys":
                return Struct("list", [Const(k) for k in value.keys])
            if name == "values":
                return Struct("list", value.items)
            if name == "get":
                key = self.static(args[0], "the key of a dictionary", node)
                return (
                    self.settle(value.items[value.keys.index(key)])
                    if key in value.keys
                    else args[1]
                    if len(args) > 1
                    else Const(None)
                )
            if name == "copy":
                return Struct("dict", value.items, value.keys)
        if name == "_replace" and value.kind == "record":
            return Struct("record", [words.get(k, v) for k, v in zip(value.keys, value.items)], value.keys, value.cls)
        if value.kind == "list":
            if name in ("append", "extend", "insert", "pop", "reverse"):
                self.own(value, node)
                value.version += 1
            if name == "append":
                value.items.append(self.settle(args[0]))
                return Const(None)
            if name == "extend":
                value.items += self.listed(args[0], node)
                return Const(None)
            if name == "insert":
                value.items.insert(self.static(args[0], "the place of insert", node), self.settle(args[1]))
                return Const(None)
            if name == "pop":
                k = self.static(args[0], "the place of pop", node) if args else -1
                if not value.items:
                    self.fail(ShapeError, "pop from an empty list", node)
                return value.items.pop(k)
            if name == "reverse":
                value.items.reverse()
                return Const(None)
            if name == "copy":
                return Struct("list", value.items)
        if name in ("index", "count"):
            items = [self.python(i, node) for i in value.items]
            return Const(getattr(items, name)(self.python(args[0], node)))
        self.fail(LanguageError, f"the method {name} of {self.spell(value)} is not differentiated yet", node)

    def extend(self, old, value, node):
        self.own(old, node)
        old.items += self.listed(value, node)
        old.version += 1

    # builtins and functions about structure

    def call_len(self, function, args, words, node):
        value = args[0] if isinstance(args[0], RangeValue) else self.settle(args[0])
        if isinstance(value, Struct):
            return Const(len(value.items))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            if not value.fact.rank:
                self.fail(ShapeError, "a scalar has no length", node)
            return self.build.length(value, 0)
        if isinstance(value, Const):
            return Const(len(value.value))
        if isinstance(value, Var) and isinstance(value.fact, Opaque):
            quoted = Quoted(gast.parse("len(text)", mode="eval").body, ("text",), None)
            return self.build.let("n", Apply(quoted, (value,)), Array(int, (), unknown("?len")))
        self.fail(LanguageError, f"len of {self.spell(value)}", node)

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

    def call_enumerate(self, function, args, words, node):
        start = self.settle(args[1] if len(args) > 1 else words.get("start", Const(0)))
        inner = self.walk(args[0], node)
        def numbered(index):
            return (
                index if isinstance(start, Const) and start.value == 0 else self.build.apply(operator.add, index, start)
            )

        static = None if inner.static is None else [
            Struct("tuple", [self.build.apply(operator.add, start, Const(k)), v]) for k, v in enumerate(inner.static)]
        if inner.count is None:
            return Walk(static)
        return Walk(static, inner.count, inner.items,
                    lambda index, items: Struct("tuple", [numbered(index), inner.bind(index, items)]))

    def call_zip(self, function, args, words, node):
        if set(words) - {"strict"}:
            self.fail(RuleError, f"zip: {sorted(words)[0]} is not understood", node)
        walks = [self.walk(a, node) for a in args]
        if not walks:
            return Walk([])
        dynamic = [w.static is None for w in walks]
        static = None
        if not any(dynamic):
            static = [Struct("tuple", list(row)) for row in zip(*(w.static for w in walks))]
        elif not all(dynamic):
            lists = [self.listed(a, node) if d else w.static for a, w, d in zip(args, walks, dynamic)]
            return Walk([Struct("tuple", list(row)) for row in zip(*lists)])
        if any(w.count is None for w in walks):
            return Walk(static)
        count = walks[0].count
        for w in walks[1:]:
            a, b = fact_of(count).length, fact_of(w.count).length
            if a is None or b is None or not a.same(b):
                count = (
                    self.build.apply(builtins.min, count, w.count, fact=Array(int, (), unknown("?count")))
                    if not (isinstance(count, Const) and isinstance(w.count, Const))
                    else Const(min(count.value, w.count.value))
                )

        def bind(index, items):
            out, k = [], 0
            for w in walks:
                out.append(w.bind(index, items[k:k + len(w.items)]))
                k += len(w.items)
            return Struct("tuple", out)
        return Walk(static, count, tuple(i for w in walks for i in w.items), bind)

    def call_reversed(self, function, args, words, node):
        value = args[0]
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
            return Struct("list", value.items[::-1])
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.build.item(value, Const(slice(None, None, -1)))
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
            return total if len(args) == 1 else self.binary(operator.add, args[1], total, node)
        start = args[1:] or ([words["start"]] if "start" in words else [])
        return self.total(self.listed(value, node), node, *start)

    def total(self, items, node, start=None):
        total = start
        for item in map(self.settle, items):
            total = item if total is None else self.binary(operator.add, total, item, node)
        return Const(0) if total is None else total

    def call_extreme(self, function, args, words, node):
        if words:
            self.fail(RuleError, f"{function.__name__}: key and default are not understood", node)
        items = self.listed(args[0], node) if len(args) == 1 and not self.is_vector(args[0]) else args
        if len(args) == 1 and self.is_vector(args[0]):
            return self.rule_call({max: np.max, min: np.min}[function], [self.settle(args[0])], {}, node)
        items = [self.settle(i) for i in items]
        if all(isinstance(i, Const) for i in items):
            return Const(function(i.value for i in items))
        result = items[0]
        rule = function if function in RULES else {max: np.maximum, min: np.minimum}[function]
        for item in items[1:]:
            if fact_of(item).rank or fact_of(result).rank:
                self.fail(
                    ShapeError, f"{function.__name__} of arrays is ambiguous", node, f"Use np.{function.__name__}imum."
                )
            result = self.rule_call(rule, [result, item], {}, node)
        return result

    def is_vector(self, value):
        return isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.rank == 1

    def call_container(self, function, args, words, node):
        if function is dict:
            pairs = (
                []
                if not args
                else [self.listed(p, node) for p in self.listed(args[0], node)]
                if not (isinstance(args[0], Struct) and args[0].kind == "dict")
                else list(zip(map(Const, args[0].keys), args[0].items))
            )
            keys = tuple(self.static(k, "the key of a dictionary", node) for k, _ in pairs)
            return Struct("dict", [*(v for _, v in pairs), *words.values()], (*keys, *words))
        if not args:
            return Struct(function.__name__, [])
        value = self.settle(args[0]) if not isinstance(args[0], (RangeValue, Walk)) else args[0]
        if isinstance(value, Struct) and value.kind == "dict":
            return Struct(function.__name__, [Const(k) for k in value.keys])
        return Struct(function.__name__, self.listed(value, node))

    def call_map(self, function, args, words, node):
        rows = zip(*(self.listed(a, node) for a in args[1:]))
        return Struct("list", [self.call(args[0], list(row), {}, node) for row in rows])

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
        name = lambda n, ctx: gast.copy_location(gast.Name(n, ctx, None, None), node)     # noqa: E731
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
        value, classes = self.settle(args[0]), self.python(args[1], node)
        classes = classes if isinstance(classes, tuple) else (classes,)
        if isinstance(value, Const):
            return Const(isinstance(value.value, classes))
        if isinstance(value, Struct):
            cls = value.cls or {"list": list, "tuple": tuple, "dict": dict}[value.kind]
            return Const(issubclass(cls, classes))
        if isinstance(value, Var) and isinstance(value.fact, Array):
            fact = value.fact
            cls = fact.dtype if fact.weak else np.ndarray if fact.dims else fact.dtype.type
            return Const(issubclass(cls, classes))
        if isinstance(value, (FunctionValue, Bound, Method)):
            return Const(types.FunctionType in classes)
        self.fail(LanguageError, "isinstance of this value is not known when transforming", node)

    def call_callable(self, function, args, words, node):
        return Const(
            isinstance(args[0], (FunctionValue, Bound, Method))
            or isinstance(args[0], Const)
            and callable(args[0].value)
        )

    def call_getattr(self, function, args, words, node):
        name = self.static(args[1], "the name of an attribute", node)
        value = self.settle(args[0])
        if function is hasattr:
            if isinstance(value, Const):
                return Const(hasattr(value.value, name))
            if isinstance(value, Var) and isinstance(value.fact, Array):
                return Const(hasattr(np.ndarray, name) if not value.fact.weak else hasattr(value.fact.dtype, name))
            return Const(isinstance(value, Struct) and name in value.keys)
        return self.attribute(value, name, node)

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
                self.fail(RuleError, "np.size: axis is not understood", node)
            return self.size(value)
        return Struct("tuple", [self.build.length(value, k) for k in range(fact.rank)])

    def call_array(self, function, args, words, node):
        words = dict(words)
        dtype = words.pop("dtype", args[1] if len(args) > 1 else None)
        words.pop("copy", None)
        if words or len(args) > 2:
            self.fail(RuleError, f"np.{function.__name__}: only the dtype is understood", node)
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
            elif function is not np.asarray:
                value = self.rule_call(np.copy, [value], {}, node)
        else:
            self.fail(LanguageError, f"an array of {self.spell(value)} is not differentiated", node)
        if dtype is not None and not (isinstance(dtype, Const) and dtype.value is None):
            value = self.converted(value, np.dtype(self.static(dtype, "the dtype of an array", node)), node)
        return value

    def array_of(self, value, node):
        """The array of a list of numbers or arrays."""
        items = [self.settle(i) for i in value.items]
        if value.kind not in ("list", "tuple"):
            self.fail(LanguageError, f"an array of {self.spell(value)} is not differentiated", node)
        if _literal(value):
            literal = self.packed(value)
            array = np.array(_python_list(value))
            fact = Array(array.dtype, tuple(Length(None, n) for n in array.shape))
            if array.dtype.kind not in "biufc":
                self.fail(LanguageError, "an array of these values is not differentiated", node)
            return self.build.let("array", Apply(np.array, (literal,)), fact)
        items = [self.array_of(i, node) if isinstance(i, Struct) else i for i in items]
        if any(not isinstance(fact_of(i), Array) for i in items):
            self.fail(LanguageError, "an array of these values is not differentiated", node)
        if any(fact_of(i).rank for i in items):
            return self.rule_call(np.stack, [Struct("list", items)], {}, node)
        return self.build.apply(np.array, Pack("list", tuple(items)))

    def call_float(self, function, args, words, node):
        if not args:
            return Const(function())
        value = self.settle(args[0])
        if isinstance(value, Const):
            try:
                return Const(function(value.value))
            except (ValueError, TypeError) as error:
                self.fail(ShapeError, str(error), node)
        fact = fact_of(value)
        if not isinstance(fact, Array):
            self.fail(LanguageError, f"{function.__name__} of {self.spell(value)}", node)
        if any(not d.is_unit for d in fact.dims):
            self.fail(ShapeError, f"{function.__name__} needs one number, {self.spell(value)} is given", node)
        if fact.dims:
            value = self.build.item(value, Const((0,) * fact.rank) if fact.rank > 1 else Const(0))
            fact = value.fact
        if fact.kind == "c" and function is not complex:
            self.fail(RuleError, "a complex number is not converted to a real one", node, "Use np.real.")
        if fact.dtype is function:
            return value
        length = fact.length if fact.kind in "iu" else unknown("?int")
        return self.build.let(
            value.hint, Apply(function, (value,)), Array(function, (), length if function is int else None)
        )

    def call_print(self, function, args, words, node):
        self.effect(node)
        return Const(None)

    def call_sorted(self, function, args, words, node):
        value = self.settle(args[0]) if not isinstance(args[0], Walk) else args[0]
        keys = (
            self.python(value, node) if not (isinstance(value, Struct) and value.kind == "dict") else list(value.keys)
        )
        reverse = bool(self.python(words["reverse"], node)) if "reverse" in words else False
        if "key" in words:
            self.fail(LanguageError, "sorted with a key is not differentiated", node)
        return Struct("list", [Const(k) for k in sorted(keys, reverse=reverse)])

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
        if isinstance(value, Struct):
            return Const(value.cls or {"list": list, "tuple": tuple, "dict": dict}[value.kind])
        fact = fact_of(value)
        return Const(fact.dtype if fact.weak else np.ndarray if fact.dims else fact.dtype.type)

    def call_all(self, function, args, words, node):
        value = self.settle(args[0]) if not isinstance(args[0], Walk) else args[0]
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.rule_call(np.all if function is all else np.any, [value], {}, node)
        result = Const(function is all)
        for item in self.listed(value, node):
            result = self.short(result, lambda i=item: i, node, function is all)
        return result

    def call_einsum(self, function, args, words, node):
        if not args or words:
            self.fail(RuleError, "np.einsum: only subscripts and operands are understood", node)
        if np.einsum not in RULES:
            self.no_rule(function, args, words, node)
        subscripts = Const(self.static(args[0], "the subscripts of np.einsum", node).replace(" ", ""))
        return self.rule_call(np.einsum, [subscripts, *args[1:]], {}, node)


def _result_of(k):
    return k


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _variadic(rule, name):
    return rule.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL or name == "arrays"


def _literal(value):
    return all(_literal(i) if isinstance(i, Struct) else isinstance(i, Const) for i in value.items)


def _python_list(value):
    return [_python_list(i) if isinstance(i, Struct) else i.value for i in value.items]


_FOLDED = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow, np.add, np.subtract,
           np.multiply, np.divide, np.negative, np.power} & {operator.add, operator.sub, operator.mul, operator.truediv,
                                                             operator.neg, operator.pow}
STATIC_ARGUMENTS = {
    "axis",
    "axes",
    "keepdims",
    "ddof",
    "dtype",
    "axisa",
    "axisb",
    "axisc",
    "axis1",
    "axis2",
    "offset",
    "mode",
    "source",
    "destination",
    "order",
    "subscripts",
    "k",
    "full_matrices",
    "UPLO",
    "norm",
    "ord",
    "endpoint",
    "indexing",
    "side",
    "kind",
    "compute_uv",
    "hermitian",
    "decimals",
} - {"k"}
SPECIAL = {
    len: "call_len",
    range: "call_range",
    enumerate: "call_enumerate",
    zip: "call_zip",
    reversed: "call_reversed",
    sum: "call_sum",
    max: "call_extreme",
    min: "call_extreme",
    list: "call_container",
    tuple: "call_container",
    dict: "call_container",
    map: "call_map",
    functools.reduce: "call_reduce",
    functools.partial: "call_partial",
    isinstance: "call_isinstance",
    callable: "call_callable",
    getattr: "call_getattr",
    hasattr: "call_getattr",
    np.shape: "call_shape",
    np.ndim: "call_shape",
    np.size: "call_shape",
    np.array: "call_array",
    np.asarray: "call_array",
    float: "call_float",
    int: "call_float",
    bool: "call_float",
    complex: "call_float",
    print: "call_print",
    sorted: "call_sorted",
    slice: "call_slice",
    type: "call_type",
    all: "call_all",
    any: "call_all",
    np.einsum: "call_einsum",
}
_ = (Known, Opaque, Stack, UNDEFINED, UNIT, USER, TransformError, math)
