# SPDX-License-Identifier: Apache-2.0
"""Calls, attributes and methods: what they mean, decided by what they are called on."""
import ast
import copy
import difflib
import functools
import inspect
import logging
import operator
import types
import warnings
from dataclasses import replace

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import aliased
from gradscribe.ast_transform.core.form import TEMPORARY, Apply, Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, unknown
from gradscribe.ast_transform.core.operations import one_of_several, size_of
from gradscribe.ast_transform.core.rule import AS_GIVEN, RULES, STATIC, STATIC_ARGUMENTS
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.applied import APPLIED, of_numba
from gradscribe.ast_transform.passes.collectives import COLLECTIVE
from gradscribe.ast_transform.passes.described import fact_of, is_of_a_library, unsaid
from gradscribe.ast_transform.passes.dynamic_lists import KEPT
from gradscribe.ast_transform.passes.filling import FILLING, IN_PLACE, UNKNOWN_METHODS
from gradscribe.ast_transform.passes.inlining import Inlining
from gradscribe.ast_transform.passes.iteration import ITERATION
from gradscribe.ast_transform.passes.iterators import IN_ORDER, made_late
from gradscribe.ast_transform.passes.methods import CALLED_WITH_SHAPE, METHODS, OWN_METHODS
from gradscribe.ast_transform.passes.objects import ASKED, Super, _filled, _nothing, _same
from gradscribe.ast_transform.passes.rule_inlining import read_part
from gradscribe.ast_transform.passes.ufuncs import OUTER, Ufuncs
from gradscribe.ast_transform.passes.values import (
    Bound,
    Converted,
    Derived,
    FunctionValue,
    Grown,
    Method,
    RangeValue,
    Rows,
    Struct,
    Walk,
    as_value,
    held_by,
    known,
)
from gradscribe.ast_transform.rules.shapes import one_array
from gradscribe.ast_transform.source.diagnose import (
    KNOWN,
    Demand,
    LanguageError,
    RuleError,
    ShapeError,
    TransformError,
)
from gradscribe.ast_transform.source.read import unwrap
from gradscribe.runtime.derivatives import closure_convert

PLAIN = (str, bytes, int, float, complex)       # what methods of are run now
WRITTEN_OUT = (gast.List, gast.ListComp)        # lists that nothing else shows
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def names_of_results(function, count):
    """The names that a function gives to its results, as NumPy's eigh does: those that it gives for a sample."""
    rule = rule_of(function)
    return () if rule is None or rule.samples is None else _names_of_results(rule, count)


@functools.cache
def _names_of_results(rule, count):
    for args, words in rule.samples(np.random.default_rng(0)):
        with np.errstate(all="ignore"):
            found = rule.function(*args, **words)
        if isinstance(found, tuple) and len(found) == count:
            return getattr(found, "_fields", ())
    return ()


class Calls(Inlining, Ufuncs):
    def given_beforehand(self, function):
        """The arguments that functools.partial has been given; a list among them may be changed between calls."""
        self.guards += [(function, "args", function.args), (function, "keywords", function.keywords)]
        return [self.lift(a, "given") for a in function.args], {
            k: self.lift(v, k) for k, v in function.keywords.items()}

    # attributes

    def attribute(self, value, name, node):
        if isinstance(value, Var) and isinstance(value.fact, Array):
            return self.array_attribute(value, name, node)
        if isinstance(value, Struct):
            names = names_of_results(value.given_by, len(value.items)) if value.given_by is not None else ()
            if name in names:
                return self.settle(value.items[names.index(name)])
            return self.object_attribute(value, name, node) if value.kind in ("record", "object") else \
                Method(value, name)
        if isinstance(value, (Grown, Rows)):
            return Method(value, name)
        if isinstance(value, Super):
            return self.super_attribute(value, name, node)
        if isinstance(value, Const):
            if isinstance(fact_of(value), Array):
                return self.number_attribute(value, name, node)
            state = self.stateful_attribute(value.value)
            if state is not None and name in state.keys:
                return self.settle(state.items[state.keys.index(name)])
            if state is not None:
                return self.of_class(value, type(value.value), type(value.value).__mro__, name, node)
            try:
                found = getattr(value.value, name)
            except AttributeError as error:
                self.has_now(value.value, name)
                close = difflib.get_close_matches(name, dir(value.value), 1) if error.name and isinstance(
                    value.value, types.ModuleType) else ()      # without the name, it says itself what to do
                self.fail(LanguageError, str(error), node, f"Is {close[0]} meant?" if close else "", AttributeError)
            if isinstance(value.value, np.dtype) and self.of_dtype(value.value, name, node) == "type":
                return Const(found)
            if not self.rule_depth and is_of_a_library(value.value):
                self.guards.append((value.value, name, value.value))        # it is read; calls do not ask for it
            elif not self.rule_depth and not isinstance(value.value, (np.dtype, np.finfo, np.iinfo)) and not isinstance(
                    found, types.BuiltinMethodType | types.MethodType):
                self.guards.append((value.value, name, found))
            elif isinstance(found, types.MethodType) and not self.rule_depth:
                holder = value.value            # a method of its class, another class's, or an attribute of its own
                self.kind_guards.append(lambda: getattr(holder, name, None) == found)
            return self.lift(found, name)
        if isinstance(value, Bound) and name == "func":
            return value.function
        if isinstance(value, Derived) and name in getattr(value.transform, "methods", ()):
            return Method(value, name)
        self.fail(LanguageError, f"{self.spell(value)} has no attribute {name} that is understood", node,
                  "Keep what it holds in a variable or a dictionary.")

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
        if name == "mT":
            return self.rule_call(np.matrix_transpose, [value], {}, node)
        if name == "itemsize":
            return Const(np.dtype(fact.dtype).itemsize)
        if name == "nbytes":
            return self.binary(operator.mul, self.size(value), Const(np.dtype(fact.dtype).itemsize), node)
        if name == "device":
            return Const("cpu")
        if name in METHODS or name in CALLED_WITH_SHAPE or name in OWN_METHODS or name in IN_PLACE:
            return Method(value, name)
        if name == "flat":
            return self.flat(value)
        if name in UNKNOWN_METHODS:
            self.fail(LanguageError, f"the method {name} writes into its array, which is not differentiated yet", node,
                      "Make a new array instead.")
        if not hasattr(np.ndarray, name):
            self.fail(LanguageError, f"an array has no attribute {name}", node, "Arrays are NumPy's; docs/jax_names.md "
                      "says what stands for the attributes of JAX's.", AttributeError)
        self.fail(RuleError, f"an array's attribute {name} has no rule", node, "docs/rules.md says how to add one.")

    def number_attribute(self, value, name, node):
        if name in ("real", "imag"):
            return self.rule_call(getattr(np, name), [value], {}, node)
        if name in ("shape", "ndim", "size", "dtype") and (self.rule_depth or isinstance(value.value, np.generic)):
            return as_value(getattr(np.asarray(value.value), name))
        if name == "conjugate":
            return Method(value, name)
        if name in METHODS and isinstance(value.value, np.generic):
            return Method(value, name)
        self.fail(LanguageError, f"a number has no attribute {name} that is understood", node,
                  "Use a function of math or NumPy.")

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
        outer, self.for_array = self.for_array, self.for_array and isinstance(function, Method) or isinstance(
            function, Const) and function.value in (np.array, np.asarray, np.stack, np.vstack)
        try:
            return self.called(node, function)
        finally:
            self.for_array = outer

    def called(self, node, function):
        words, owner = {}, [function] if isinstance(function, Struct) or held_by(function) else []
        with self.waiting(owner), self.waiting([]) as args, self.waiting([]) as named:
            for a in node.args:
                args += self.starred(function, a) if isinstance(a, gast.Starred) else [self.eval(a)]
            for k in node.keywords:
                if k.arg is None:
                    other = self.settle(self.eval(k.value))
                    if not isinstance(other, Struct) or other.kind != "dict":
                        self.fail(LanguageError, f"** needs a dictionary, {self.spell(other)} is given", k.value)
                    words.update(zip(other.keys, range(len(named), len(named) + len(other.keys))))
                    named += other.items
                else:
                    words[k.arg] = len(named)
                    named.append(self.eval(k.value))
            words = {k: named[place] for k, place in words.items()}
        function = owner[0] if owner else function
        if isinstance(function, Method) and function.name == "append" and args and isinstance(args[0], Struct):
            args[0].alone = isinstance(node.args[0], WRITTEN_OUT)
        self.locate(node)
        if len(args) == 1 and isinstance(args[0], Rows) and isinstance(node.args[0], gast.Starred):
            return Walk(self.unzipped(args[0]))
        args, writes = self.given_to(function, args), self.writes
        found = self.made_since(self.call(function, args, words, node), writes, node, function)
        if isinstance(found, Struct) and found.kind == "tuple" and isinstance(function, Const):
            found.given_by = function.value
        return self.read_later(found, [s for _, _, s in found.items]) if isinstance(found, Walk) else found

    def starred(self, function, node):
        """f(*values)"""
        value = self.at_once(self.eval(node.value))
        if isinstance(value, Rows) and isinstance(function, Const) and function.value is zip:
            return [value]
        return self.listed(value, node)

    def call(self, function, args, words, node):
        if isinstance(function, FunctionValue):
            return self.inline(function.source, args, words, node, function)
        if isinstance(function, Method):
            return self.method(function.value, function.name, args, words, node)
        if isinstance(function, Derived):
            return function.transform.read(self, function.base, args, words)
        if isinstance(function, Converted):
            return self.call_converted(function, args, words, node)
        if isinstance(function, Bound):
            return self.call(function.function, [*function.args, *args], {**function.kwargs, **words}, node)
        method = self.dunder(self.settle(function), "__call__")
        if method is not None:
            return self.call_known(method, [self.settle(function), *args], words, node)
        if not isinstance(function, Const):
            self.fail(LanguageError, f"{self.spell(function)} is not called", node)
        return self.call_known(function.value, args, words, node)

    def call_known(self, function, args, words, node):
        found = self.known_call(function, args, words, node)
        if _hashable(function) and made_late(function):
            self.shows_lists(found, args, function in IN_ORDER)
        return found

    def known_call(self, function, args, words, node):
        other = self.instead.get(function) if _hashable(function) else None
        if other is not None and len(args) <= other.nin and any(getattr(fact_of(a), "kind", "") == "f" for a in args):
            function = other
        if any(isinstance(a, (Rows, Grown)) for a in args) and _hashable(function) and (
                function in SPECIAL or function in RULES) and not takes_lists(function):
            rule = RULES.get(function)
            if rule is not None and rule.options.get("joins") and isinstance(args[0], (Rows, Grown)):
                return self.stacked(function, args[0], args[1:], words, node)
            for a in args:
                if isinstance(a, Grown):
                    self.gone_through_once(a, node)
            array_of = self.array_of_grown if is_of_numpy(function) else self.elements_of_grown
            args = [self.array_of_rows(a, node) if isinstance(a, Rows) else
                    array_of(a) if isinstance(a, Grown) else a for a in args]
        method = self.dunder(args[0], ASKED.get(function)) if len(args) == 1 and _hashable(function) else None
        if method is not None:
            return self.call_known(method, args, words, node)
        into = self.call_into(function, args, words, node) if _hashable(function) else None
        if into is not None:
            return into
        if isinstance(function, np.ufunc) and ("dtype" in words or "where" in words):
            return self.call_ufunc(function, args, words, node)
        handler = SPECIAL.get(function) if _hashable(function) else None
        if handler is not None:
            return self.understood(getattr(self, handler), spelled(function), function, args, words, node)
        if _hashable(function) and function in STATIC:
            return self.static_call(function, args, words, node)
        if _hashable(function) and function in RULES:
            return self.rule_call(function, args, words, node)
        if isinstance(function, np.vectorize):
            return self.of_vectorize(function, args, words, node)
        if of_numba(function):
            return self.of_numbers(function, args, words, node)
        derive = getattr(function, "normal_form_", None)
        if derive is not None and not isinstance(function, type):
            return derive(self, args, words, node)
        if isinstance(function, functools.partial):
            given, named = self.given_beforehand(function)
            return self.call_known(function.func, [*given, *args], {**named, **words}, node)
        if isinstance(function, types.BuiltinMethodType) and isinstance(function.__self__, PLAIN):
            return self.call_now(function, args, words, node)
        if isinstance(getattr(function, "__self__", None), dict) and function.__name__ == "get":
            return self.found_in(function.__self__, *args)
        if isinstance(function, types.MethodDescriptorType) and args:
            return self.call(self.attribute(self.settle(args[0]), function.__name__, node), args[1:], words, node)
        if isinstance(function, GETTERS):
            return self.got(function, args, node)
        if isinstance(function, types.MethodType):
            return self.call_known(function.__func__, [Const(function.__self__), *args], words, node)
        function = unwrap(function)
        if isinstance(function, types.FunctionType):
            if (function.__module__ or "").split(".")[0] in ("numpy", "scipy", "math") :
                self.no_rule(function, args, words, node)
            if self.rule_depth and (function.__module__ or "").startswith("gradscribe.runtime"):
                self.no_rule(function, args, words, node)
            return self.user_call(function, args, words, node)
        if isinstance(function, type) and hasattr(function, "made_inside_"):
            return function.made_inside_(self, args, words, node)
        if isinstance(function, type):
            return self.construct(function, args, words, node)
        if callable(function) and isinstance(type(function).__call__, types.FunctionType):
            self.stays_of_class(type(function), "__call__")
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
        """A helper of a rule, run now; a value that it says must be known is asked for."""
        args = list(map(self.settle, args))
        try:
            value = function(*map(known, args), **{k: known(self.settle(v)) for k, v in words.items()})
        except (ValueError, TypeError, IndexError) as error:
            reason, advice = error.args if len(error.args) == 2 else (str(error), "")
            for variable in (a for a in args if advice is KNOWN and isinstance(a, Var)):
                raise Demand(variable, reason, self.build.origin) from None
            raise RuleError(reason, self.build.origin, advice) from None
        return as_value(value)

    # functions with a rule

    def rule_call(self, function, args, words, node):
        rule = RULES[function]
        try:
            bound = rule.signature.bind(*args, **words)
        except TypeError:
            bound = None
        wanted = rule.options.get("wider_for", one_array if rule.options.get("joins") else _never)
        if "wider" in rule.parts and (bound is None or wanted(bound.arguments)):
            wider = self.bound_to(function, inspect.signature(rule.parts["wider"]), args, words, node)
            return self.inline_part(rule.parts["wider"], *self.as_taken(rule, wider, args, words, node))
        bound = bound or self.bound_to(function, rule.signature, args, words, node)
        args, words = self.as_taken(rule, bound, args, words, node)
        rewrite = rule.options.get("rewrite")
        if rewrite and "lengths" in rule.options:
            self.equal_lengths(rule, bound, node)
        if rewrite is True:
            value = self.inline_part(rule.parts["primal"], args, words)
            return self.as_cell(value) if rule.options.get("cell") else value
        if rewrite and any(name in bound.arguments and not _is_none(bound.arguments[name]) for name in rewrite):
            return self.inline_part(rule.parts["rewritten"], args, words)
        parameters = rule.signature.parameters
        positional, keywords, said = [], {}, rule.options.get("said", ())     # said: what older NumPy has no default of
        words = {**{n: Const(parameters[n].default) for n in said if n not in bound.arguments}, **words}
        bound.arguments |= {n: v for n, v in words.items() if n in said}
        for name, value in bound.arguments.items():
            kind, default = parameters[name].kind, parameters[name].default
            if name in words and name not in said and isinstance(value, Const) and type(default) is type(value.value) \
                    and type(default) in (bool, type(None), int, str) and default == value.value and not (
                    default is None and name in unsaid(function)):
                continue
            if kind is inspect.Parameter.VAR_POSITIONAL:
                positional += [self.argument(v, rule, name, node) for v in value]
            elif name in words or kind is inspect.Parameter.KEYWORD_ONLY:
                keywords[name] = self.argument(value, rule, name, node)
            else:
                positional.append(self.argument(value, rule, name, node))
        if self.rule_depth and function in _FOLDED:
            return self.fresh(self.build.arithmetic(function, positional), positional)
        shorter = self.build.by_identity(function, *positional) if self.rule_depth and not keywords else None
        if shorter is not None:
            return shorter
        if rule.kind == "constant" and function in (np.shape, np.ndim, np.size, len):
            raise AssertionError("handled before")
        out = self.build.call(function, tuple(positional), keywords)
        return self.several(out, function, positional, keywords)

    def bound_to(self, function, signature, args, words, node):
        try:
            return signature.bind(*args, **words)
        except TypeError as error:
            reason = str(error).replace("'", "")
            self.fail(RuleError, f"{spelled(function)}: {reason}", node,
                      f"Its rule understands ({', '.join(signature.parameters)}). To add to it: docs/rules.md")

    def several(self, out, function, positional, keywords):
        """A function with several results gives a tuple of names."""
        if not isinstance(out, Var) or not isinstance(out.fact, Sequence):
            return out
        value = self.build.made.pop(out)
        step = self.build.block.pop()
        assert step.targets[0] is out
        rule = RULES[function]
        given = rule.signature.bind(*positional, **dict(keywords)).arguments
        if len(out.fact.elements) == 1:
            if function is np.meshgrid and out.fact.elements[0].rank == fact_of(positional[0]).rank:
                return Struct("tuple", [self.rule_call(np.copy, positional, {}, None)])
            if function in (np.meshgrid, np.broadcast_arrays) and not fact_of(positional[0]).rank:
                axes = Pack("tuple", (Const(1),) * out.fact.elements[0].rank)
                return Struct(out.fact.kind, [self.rule_call(np.full, [axes, positional[0]], {}, None)
                                              if axes.items else self.as_cell(positional[0])])
            whole = aliased(value) == tuple(positional[:1]) and \
                out.fact.elements[0].rank == positional[0].fact.rank            # np.split(x, 1) is [x[:]]
            value, index = (positional[0], slice(None)) if whole else (value, 0)
            return Struct(out.fact.kind, [self.build.let(
                out.hint, Apply(operator.getitem, (value, Const(index))), out.fact.elements[0])])
        parts = self.build.several(
            [f"{out.hint}_{k}" for k in range(len(out.fact.elements))], value, out.fact.elements, TEMPORARY
        )
        for k, p in enumerate(parts):
            self.build.made[p] = value if aliased(value) else Apply(one_of_several, (Const(k),))
            if "shown" in rule.parts:                   # a view of an argument, by itself
                view = read_part(self, rule, "shown", {"k": Const(k), "y": p, **given})
                self.build.made[p] = self.build.made[view]
                if len(set(out.fact.elements)) > 1:     # lengths that differ: the views say how
                    p.fact = view.fact
        return Struct(out.fact.kind, list(parts))

    def argument(self, value, rule, name, node):
        """An argument of a NumPy function: an array, or what must be known when transforming."""
        value = self.settle(value)
        if name in STATIC_ARGUMENTS:
            if isinstance(value, Struct):
                return Pack(value.kind, tuple(self.argument(v, rule, name, node) for v in value.items))
            return Const(self.static(value, f"{name} of {spelled(rule.function)}", node))
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


def is_of_numpy(function):
    """Whether a function computes with the entries of what it is given, which is an array for it."""
    return isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").split(".")[0] in (
        "numpy", "scipy")


def takes_lists(function):
    """Whether a function is given a list of unknown length itself: any other is given the array of its elements."""
    rule = RULES.get(function)
    return function in KEPT or rule is not None and rule.arguments[:1] == rule.options.get(AS_GIVEN, ())[:1] != ()


def _never(bound):
    return False


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_none(value):
    return isinstance(value, Const) and value.value is None


_FOLDED = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow}
SPECIAL = {
    closure_convert: "call_closure_convert",
    len: "call_len",
    range: "call_range",
    reversed: "call_reversed",
    sum: "call_sum",
    list: "call_container",
    tuple: "call_container",
    dict: "call_container",
    functools.reduce: "call_reduce",
    functools.partial: "call_partial",
    isinstance: "call_isinstance",
    callable: "call_callable",
    getattr: "call_getattr",
    hasattr: "call_getattr",
    setattr: "call_setattr",
    object.__setattr__: "call_setattr",
    object.__new__: "call_new",
    issubclass: "call_issubclass",
    copy.copy: "call_copy",
    copy.deepcopy: "call_copy",
    _filled: "call_filled",
    np.ndarray: "call_ndarray",
    np.shape: "call_shape",
    np.ndim: "call_shape",
    np.size: "call_shape",
    np.array: "call_array",
    np.asarray: "call_array",
    np.asanyarray: "call_array",
    float: "call_float",
    int: "call_float",
    bool: "call_float",
    complex: "call_float",
    print: "call_print",
    super: "call_super",
    _nothing: "call_nothing",
    replace: "call_replace",
    functools.wraps: "call_wraps",
    _same: "call_same",
    logging.getLogger: "call_logger",
    warnings.simplefilter: "call_quiet",
    warnings.filterwarnings: "call_quiet",
    slice: "call_slice",
    type: "call_type",
    all: "call_all",
    any: "call_all",
    np.einsum: "call_einsum",
    **FILLING,
    **ITERATION,
    **APPLIED,
    **OUTER,
    **COLLECTIVE,
}
