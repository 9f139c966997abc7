# SPDX-License-Identifier: Apache-2.0
"""Calls and attributes: a call's tree comes in, and the value of its result comes out.

What a call means depends on the callee: a table, a rule record, or the user's source decides.
"""
import ast
import difflib
import functools
import inspect
import operator
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import aliased
from gradscribe.ast_transform.core.form import TEMPORARY, Apply, Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import one_of_several
from gradscribe.ast_transform.core.rule import AS_GIVEN, RULES, STATIC, STATIC_ARGUMENTS
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of, is_of_a_library, unsaid
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.bfloat16 import of_dtype
from gradscribe.ast_transform.reader.closures import call_converted
from gradscribe.ast_transform.reader.constant_calls import call_now, found_in
from gradscribe.ast_transform.reader.dispatch import SPECIAL, evaluates, late
from gradscribe.ast_transform.reader.dynamic_lists import (
    KEPT,
    array_of_grown,
    comprehended,
    elements_of_grown,
    exhaust_generator,
    stacked,
)
from gradscribe.ast_transform.reader.filling import IN_PLACE, UNKNOWN_METHODS, call_into, flat_entries
from gradscribe.ast_transform.reader.frames import fail, locate
from gradscribe.ast_transform.reader.inlining import inline, inline_part, user_call
from gradscribe.ast_transform.reader.iteration import elements_of, get_by_getter
from gradscribe.ast_transform.reader.iterators import (
    IN_ORDER,
    checked_iterator,
    consumed_at_once,
    is_lazy,
    prepared_arguments,
    read_later,
    record_lists_read,
)
from gradscribe.ast_transform.reader.list_of_tuples import array_of_rows, unzipped
from gradscribe.ast_transform.reader.memory import fresh_result, pending_values
from gradscribe.ast_transform.reader.methods import CALLED_WITH_SHAPE, METHODS, OWN_METHODS, array_of, guarded_hasattr
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import (
    ASKED,
    Super,
    construct,
    dunder,
    guard_class_attribute,
    object_attribute,
    of_class,
    super_attribute,
)
from gradscribe.ast_transform.reader.operands import entry_count, known_value, settle, spelled_value
from gradscribe.ast_transform.reader.outer_state import stateful_attribute
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.ufuncs import as_taken, call_ufunc, with_equal_lengths
from gradscribe.ast_transform.reader.values import (
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
from gradscribe.ast_transform.reader.vectorize import of_numba, of_numbers, of_vectorize
from gradscribe.ast_transform.reader.views import as_cell
from gradscribe.ast_transform.rules.shapes import one_array
from gradscribe.ast_transform.source.diagnose import KNOWN, Demand, LanguageError, RuleError, ShapeError, TransformError
from gradscribe.ast_transform.source.read import unwrap

PLAIN = (str, bytes, int, float, complex)       # types whose methods are evaluated while reading
WRITTEN_OUT = (gast.List, gast.ListComp)        # lists that have no alias
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def names_of_results(function, count):
    """The field names of a function's result, such as those of np.linalg.eigh; found by calling it on a sample."""
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


def bound_arguments(reader: Reader, function: functools.partial) -> tuple:
    """The arguments stored in a functools.partial, guarded because they may be changed between calls."""
    reader.environment.guards += [(function, "args", function.args), (function, "keywords", function.keywords)]
    return [lift(reader, a, "given") for a in function.args], {
        k: lift(reader, v, k) for k, v in function.keywords.items()}


def attribute_of_value(reader: Reader, value: Any, name: str, node: gast.AST | None) -> Any:
    """value.name, for an array, a container, a derived function, or a captured value."""
    if isinstance(value, Var) and isinstance(value.fact, Array):
        return array_attribute(reader, value, name, node)
    if isinstance(value, Struct):
        names = names_of_results(value.given_by, len(value.items)) if value.given_by is not None else ()
        if name in names:
            return settle(reader, value.items[names.index(name)])
        return object_attribute(reader, value, name, node) if value.kind in ("record", "object") else \
            Method(value, name)
    if isinstance(value, Super):
        return super_attribute(reader, value, name, node)
    if isinstance(value, Const):
        return number_attribute(reader, value, name, node) if isinstance(fact_of(value), Array) else \
            attribute_from_outside(reader, value, name, node)
    if isinstance(value, Bound) and name == "func":
        return value.function
    if isinstance(value, (Grown, Rows)) or isinstance(value, Derived) and name in getattr(
            value.transform, "methods", ()):
        return Method(value, name)
    fail(reader, LanguageError, f"{spelled_value(reader, value)} has no attribute {name} that is understood", node,
         "Keep what it holds in a variable or a dictionary.")


def attribute_from_outside(reader: Reader, value, name, node):
    """An attribute of a module, class or object from outside; a guard checks that it stays the same."""
    state = stateful_attribute(reader, value.value)
    if state is not None and name in state.keys:
        return settle(reader, state.items[state.keys.index(name)])
    if state is not None:
        return of_class(reader, value, type(value.value), type(value.value).__mro__, name, node)
    try:
        found = getattr(value.value, name)
    except AttributeError as error:
        guarded_hasattr(reader, value.value, name)
        close = difflib.get_close_matches(name, dir(value.value), 1) if error.name and isinstance(
            value.value, types.ModuleType) else ()      # an error without a name has its own advice
        fail(reader, LanguageError, str(error), node, f"Is {close[0]} meant?" if close else "", AttributeError)
    if isinstance(value.value, np.dtype) and of_dtype(reader, value.value, name, node) == "type":
        return Const(found)
    if not reader.context.rule_depth:
        guard_attribute(reader, value.value, name, found)
    return lift(reader, found, name)


def guard_attribute(reader: Reader, holder, name, found):
    """Guard an attribute of a value from outside: the version is valid while the attribute is unchanged."""
    if is_of_a_library(holder):
        reader.environment.guards.append((holder, name, holder))    # recorded as read; calls do not check it
    elif not isinstance(holder, (np.dtype, np.finfo, np.iinfo)) and \
            not isinstance(found, types.BuiltinMethodType | types.MethodType):
        reader.environment.guards.append((holder, name, found))
    elif isinstance(found, types.MethodType):   # it may be replaced by another method or an attribute
        reader.environment.kind_guards.append(lambda: getattr(holder, name, None) == found)


@late
def array_attribute(reader: Reader, value, name, node):
    fact = value.fact
    if name == "T":
        return value if fact.rank < 2 else rule_call(reader, np.transpose, [value], {}, node)
    if name == "shape":
        return Struct("tuple", [reader.build.length(value, k) for k in range(fact.rank)])
    if name == "ndim":
        return Const(fact.rank)
    if name == "size":
        return entry_count(reader, value)
    if name == "dtype":
        return Const(np.dtype(fact.dtype))
    if name in ("real", "imag"):
        return rule_call(reader, getattr(np, name), [value], {}, node)
    if name == "mT":
        return rule_call(reader, np.matrix_transpose, [value], {}, node)
    if name == "itemsize":
        return Const(np.dtype(fact.dtype).itemsize)
    if name == "nbytes":
        return dispatch.binary(
            reader, operator.mul, entry_count(reader, value), Const(np.dtype(fact.dtype).itemsize), node
        )
    if name == "device":
        return Const("cpu")
    if name in METHODS or name in CALLED_WITH_SHAPE or name in OWN_METHODS or name in IN_PLACE:
        return Method(value, name)
    if name == "flat":
        return flat_entries(reader, value)
    if name in UNKNOWN_METHODS:
        fail(reader, LanguageError, f"the method {name} writes into its array, which is not differentiated yet", node,
             "Make a new array instead.")
    if not hasattr(np.ndarray, name):
        fail(reader, LanguageError, f"an array has no attribute {name}", node, "Arrays are NumPy's; docs/jax_names.md "
             "says what stands for the attributes of JAX's.", AttributeError)
    fail(reader, RuleError, f"an array's attribute {name} has no rule", node, "docs/rules.md says how to add one.")


def number_attribute(reader: Reader, value, name, node):
    if name in ("real", "imag"):
        return rule_call(reader, getattr(np, name), [value], {}, node)
    if name in ("shape", "ndim", "size", "dtype") and (
        reader.context.rule_depth or isinstance(value.value, np.generic)
    ):
        return as_value(getattr(np.asarray(value.value), name))
    if name == "conjugate":
        return Method(value, name)
    if name in METHODS and isinstance(value.value, np.generic):
        return Method(value, name)
    fail(reader, LanguageError, f"a number has no attribute {name} that is understood", node,
         "Use a function of math or NumPy.")


@evaluates("Call")
def evaluate_call(reader: Reader, node):
    return call_node(reader, node, dispatch.evaluate(reader, node.func))


def call_node(reader: Reader, node: gast.AST | None, function: Any) -> Any:
    special = comprehended(reader, node, function)
    if special is not None:
        return special
    outer, reader.context.for_array = (
        reader.context.for_array,
        reader.context.for_array
        and isinstance(function, Method)
        or isinstance(function, Const)
        and function.value in (np.array, np.asarray, np.stack, np.vstack),
    )
    try:
        return called(reader, node, function)
    finally:
        reader.context.for_array = outer


def called(reader: Reader, node, function):
    words: dict[Any, Any] = {}
    owner = [function] if isinstance(function, Struct) or held_by(function) else []
    with pending_values(reader, owner), pending_values(reader, []) as args, pending_values(reader, []) as named:
        for a in node.args:
            args += starred(reader, function, a) if isinstance(a, gast.Starred) else [dispatch.evaluate(reader, a)]
        for k in node.keywords:
            if k.arg is None:
                other = settle(reader, dispatch.evaluate(reader, k.value))
                if not isinstance(other, Struct) or other.kind != "dict":
                    fail(
                        reader,
                        LanguageError,
                        f"** needs a dictionary, {spelled_value(reader, other)} is given",
                        k.value,
                    )
                words.update(zip(other.keys, range(len(named), len(named) + len(other.keys))))
                named += other.items
            else:
                words[k.arg] = len(named)
                named.append(dispatch.evaluate(reader, k.value))
        words = {k: named[place] for k, place in words.items()}
    function = owner[0] if owner else function
    if isinstance(function, Method) and function.name == "append" and args and isinstance(args[0], Struct):
        args[0].alone = isinstance(node.args[0], WRITTEN_OUT)
    locate(reader, node)
    if len(args) == 1 and isinstance(args[0], Rows) and isinstance(node.args[0], gast.Starred):
        return Walk(unzipped(reader, args[0]))
    args, writes = prepared_arguments(reader, function, args), reader.memory.writes
    found = checked_iterator(reader, call_value(reader, function, args, words, node), writes, node, function)
    if isinstance(found, Struct) and found.kind == "tuple" and isinstance(function, Const):
        found.given_by = function.value
    return read_later(reader, found, [s for _, _, s in found.items]) if isinstance(found, Walk) else found


def starred(reader: Reader, function, node):
    """f(*values)"""
    value = consumed_at_once(reader, dispatch.evaluate(reader, node.value))
    if isinstance(value, Rows) and isinstance(function, Const) and function.value is zip:
        return [value]
    return elements_of(reader, value, node)


@late
def call_value(reader: Reader, function: Any, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    if isinstance(function, FunctionValue):
        return inline(reader, function.source, args, words, node, function)
    if isinstance(function, Method):
        return dispatch.call_method(reader, function.value, function.name, args, words, node)
    if isinstance(function, Derived):
        return function.transform.read(reader, function.base, args, words)
    if isinstance(function, Converted):
        return call_converted(reader, function, args, words, node)
    if isinstance(function, Bound):
        return call_value(reader, function.function, [*function.args, *args], {**function.kwargs, **words}, node)
    method = dunder(reader, settle(reader, function), "__call__")
    if method is not None:
        return dispatch.call_known(reader, method, [settle(reader, function), *args], words, node)
    if not isinstance(function, Const):
        fail(reader, LanguageError, f"{spelled_value(reader, function)} is not called", node)
    return dispatch.call_known(reader, function.value, args, words, node)


def call_known_function(reader: Reader, function: Callable, args: list, words: dict[str, Any],
                        node: gast.AST | None) -> Any:
    found = known_call(reader, function, args, words, node)
    if _hashable(function) and is_lazy(function):
        record_lists_read(reader, found, args, function in IN_ORDER)
    return found


def known_call(reader: Reader, function, args, words, node):
    """The value of a call of a known function: looked up in the tables, then by the kind of callable."""
    other = reader.context.instead.get(function) if _hashable(function) else None
    if other is not None and len(args) <= other.nin and any(getattr(fact_of(a), "kind", "") == "f" for a in args):
        function = other
    if not _hashable(function):
        return call_by_kind(reader, function, args, words, node)
    if any(isinstance(a, (Rows, Grown)) for a in args) and (
            function in SPECIAL or function in RULES) and not takes_lists(function):
        rule = RULES.get(function)
        if rule is not None and rule.options.get("joins") and isinstance(args[0], (Rows, Grown)):
            return stacked(reader, function, args[0], args[1:], words, node)
        args = lists_as_arrays(reader, function, args, node)
    method = dunder(reader, args[0], ASKED.get(function)) if len(args) == 1 else None
    if method is not None:
        return dispatch.call_known(reader, method, args, words, node)
    into = call_into(reader, function, args, words, node)
    if into is not None:
        return into
    if isinstance(function, np.ufunc) and ("dtype" in words or "where" in words):
        return call_ufunc(reader, function, args, words, node)
    if function in SPECIAL:
        return understood(reader, partial(SPECIAL[function], reader), spelled(function), function, args, words, node)
    if function in STATIC:
        return static_call(reader, function, args, words, node)
    if function in RULES:
        return rule_call(reader, function, args, words, node)
    return call_by_kind(reader, function, args, words, node)


def lists_as_arrays(reader: Reader, function, args, node):
    """The arguments of a function that takes arrays, with lists of unknown length converted to arrays."""
    for a in args:
        if isinstance(a, Grown):
            exhaust_generator(reader, a, node)
    array_of = array_of_grown if is_of_numpy(function) else elements_of_grown
    return [array_of_rows(reader, a, node) if isinstance(a, Rows) else
            array_of(reader, a) if isinstance(a, Grown) else a for a in args]


def call_by_kind(reader: Reader, function, args, words, node):
    """The value of a call of a function that is in no table."""
    if isinstance(function, np.vectorize):
        return of_vectorize(reader, function, args, words, node)
    if of_numba(function):
        return of_numbers(reader, function, args, words, node)
    derive = getattr(function, "normal_form_", None)
    if derive is not None and not isinstance(function, type):
        return derive(reader, args, words, node)
    if isinstance(function, functools.partial):
        given, named = bound_arguments(reader, function)
        return dispatch.call_known(reader, function.func, [*given, *args], {**named, **words}, node)
    if isinstance(function, GETTERS):
        return get_by_getter(reader, function, args, node)
    if isinstance(function, (types.BuiltinMethodType, types.MethodDescriptorType, types.MethodType)):
        return call_of_method(reader, function, args, words, node)
    function = unwrap(function)
    if isinstance(function, types.FunctionType):
        home = function.__module__ or ""
        if home.split(".")[0] in ("numpy", "scipy", "math") or \
                reader.context.rule_depth and home.startswith("gradscribe.runtime"):
            no_rule(reader, function, args, words, node)
        return user_call(reader, function, args, words, node)
    if isinstance(function, type):
        return function.made_inside_(reader, args, words, node) if hasattr(function, "made_inside_") else \
            construct(reader, function, args, words, node)
    if callable(function) and isinstance(type(function).__call__, types.FunctionType):
        guard_class_attribute(reader, type(function), "__call__")
        return dispatch.call_known(reader, types.MethodType(type(function).__call__, function), args, words, node)
    return no_rule(reader, function, args, words, node)


def call_of_method(reader: Reader, function, args, words, node):
    """The value of a call of a method object: `"-".join`, `list.append`, `model.forward`."""
    if isinstance(function, types.MethodType):
        return dispatch.call_known(reader, function.__func__, [Const(function.__self__), *args], words, node)
    holder = getattr(function, "__self__", None)
    if isinstance(holder, PLAIN):
        return call_now(reader, function, args, words, node)
    if isinstance(holder, dict) and function.__name__ == "get":
        return found_in(reader, holder, *args)
    if isinstance(function, types.MethodDescriptorType) and args:
        method = dispatch.read_attribute(reader, settle(reader, args[0]), function.__name__, node)
        return call_value(reader, method, args[1:], words, node)
    return no_rule(reader, function, args, words, node)


@late
def understood(reader: Reader, handler: Callable, label: str, *given: Any) -> Any:
    """Call the handler of a builtin or a method; refuse arguments that Python would not accept."""
    try:
        return handler(*given)
    except TransformError:
        raise
    except (TypeError, ValueError, IndexError, KeyError) as error:
        reason = "these arguments are not understood" if isinstance(error, IndexError | KeyError) else str(error)
        fail(reader, LanguageError, f"{label}: {reason}", given[-1])


def no_rule(reader: Reader, function, args, words, node):
    label = spelled(function)
    if not callable(function):
        fail(reader, LanguageError, f"{label} is not a function", node)
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and reader.environment.frame.plain and \
            node.func.attr == getattr(function, "__name__", None):
        label = ast.unparse(gast.gast_to_ast(node.func))            # as the user wrote it
    if (getattr(function, "__module__", None) or "").startswith("numpy.random"):
        fail(reader,
            RuleError,
            f"{label} has no derivative rule",
            node,
            "Draw outside the function and pass the numbers as an argument.",
        )
    fail(reader, RuleError, f"{label} has no derivative rule", node, "To add a rule: docs/rules.md")


def static_call(reader: Reader, function, args, words, node):
    """Run a static helper of a rule while reading; a value that it needs is demanded."""
    args = list(map(partial(settle, reader), args))
    try:
        value = function(*map(known, args), **{k: known(settle(reader, v)) for k, v in words.items()})
    except (ValueError, TypeError, IndexError) as error:
        reason, advice = error.args if len(error.args) == 2 else (str(error), "")
        for variable in (a for a in args if advice is KNOWN and isinstance(a, Var)):
            raise Demand(variable, reason, reader.build.origin) from None
        raise RuleError(reason, reader.build.origin, advice) from None
    return as_value(value)


@late
def rule_call(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    rule = RULES[function]
    try:
        bound = rule.signature.bind(*args, **words)
    except TypeError:
        bound = None
    wanted = rule.options.get("wider_for", one_array if rule.options.get("joins") else _never)
    if "wider" in rule.parts and (bound is None or wanted(bound.arguments)):
        wider = bound_to(reader, function, inspect.signature(rule.parts["wider"]), args, words, node)
        return inline_part(reader, rule.parts["wider"], *as_taken(reader, rule, wider, args, words, node))
    bound = bound or bound_to(reader, function, rule.signature, args, words, node)
    args, words = as_taken(reader, rule, bound, args, words, node)
    rewrite = rule.options.get("rewrite")
    if rewrite and "lengths" in rule.options:
        with_equal_lengths(reader, rule, bound, node)
    if rewrite is True:
        value = inline_part(reader, rule.parts["primal"], args, words)
        return as_cell(reader, value) if rule.options.get("cell") else value
    if rewrite and any(name in bound.arguments and not _is_none(bound.arguments[name]) for name in rewrite):
        return inline_part(reader, rule.parts["rewritten"], args, words)
    parameters = rule.signature.parameters
    positional, keywords, said = [], {}, rule.options.get("said", ())     # parameters without a default in older NumPy
    words = {**{n: Const(parameters[n].default) for n in said if n not in bound.arguments}, **words}
    bound.arguments |= {n: v for n, v in words.items() if n in said}
    for name, value in bound.arguments.items():
        kind, default = parameters[name].kind, parameters[name].default
        if name in words and name not in said and isinstance(value, Const) and type(default) is type(value.value) \
                and type(default) in (bool, type(None), int, str) and default == value.value and not (
                default is None and name in unsaid(function)):
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [argument(reader, v, rule, name, node) for v in value]
        elif name in words or kind is inspect.Parameter.KEYWORD_ONLY:
            keywords[name] = argument(reader, value, rule, name, node)
        else:
            positional.append(argument(reader, value, rule, name, node))
    if reader.context.rule_depth and function in _FOLDED:
        return fresh_result(reader, reader.build.arithmetic(function, positional), positional)
    shorter = reader.build.by_identity(function, *positional) if reader.context.rule_depth and not keywords else None
    if shorter is not None:
        return shorter
    if rule.kind == "constant" and function in (np.shape, np.ndim, np.size, len):
        raise AssertionError("handled before")
    out = reader.build.call(function, tuple(positional), keywords)
    return several(reader, out, function, positional, keywords)


def bound_to(reader: Reader, function: Callable, signature: Any, args: list, words: dict[str, Any],
             node: gast.AST | None) -> Any:
    try:
        return signature.bind(*args, **words)
    except TypeError as error:
        reason = str(error).replace("'", "")
        fail(reader, RuleError, f"{spelled(function)}: {reason}", node,
             f"Its rule understands ({', '.join(signature.parameters)}). To add to it: docs/rules.md")


def several(reader: Reader, out: Any, function: Callable, positional: list, keywords: dict) -> Any:
    """The result of a call; if the function has several results, a tuple of variables."""
    if not isinstance(out, Var) or not isinstance(out.fact, Sequence):
        return out
    value = reader.build.made.pop(out)
    step = reader.build.block.pop()
    assert step.targets[0] is out
    rule = RULES[function]
    given = rule.signature.bind(*positional, **dict(keywords)).arguments
    if len(out.fact.elements) == 1:
        if function is np.meshgrid and out.fact.elements[0].rank == fact_of(positional[0]).rank:
            return Struct("tuple", [rule_call(reader, np.copy, positional, {}, None)])
        if function in (np.meshgrid, np.broadcast_arrays) and not fact_of(positional[0]).rank:
            axes = Pack("tuple", (Const(1),) * out.fact.elements[0].rank)
            return Struct(out.fact.kind, [rule_call(reader, np.full, [axes, positional[0]], {}, None)
                                          if axes.items else as_cell(reader, positional[0])])
        whole = aliased(value) == tuple(positional[:1]) and \
            out.fact.elements[0].rank == positional[0].fact.rank            # np.split(x, 1) is [x[:]]
        value, index = (positional[0], slice(None)) if whole else (value, 0)
        return Struct(out.fact.kind, [reader.build.let(
            out.hint, Apply(operator.getitem, (value, Const(index))), out.fact.elements[0])])
    parts = reader.build.several(
        [f"{out.hint}_{k}" for k in range(len(out.fact.elements))], value, out.fact.elements, TEMPORARY
    )
    for k, p in enumerate(parts):
        reader.build.made[p] = value if aliased(value) else Apply(one_of_several, (Const(k),))
        if "shown" in rule.parts:                   # each result is a view of an argument
            view = read_part(reader, rule, "shown", {"k": Const(k), "y": p, **given})
            reader.build.made[p] = reader.build.made[view]
            if len(set(out.fact.elements)) > 1:     # the views have the exact lengths
                p.fact = view.fact
    return Struct(out.fact.kind, list(parts))


def argument(reader: Reader, value, rule, name, node):
    """An argument of a NumPy function: an array, or a value that must be known when transforming."""
    value = settle(reader, value)
    if name in STATIC_ARGUMENTS:
        if isinstance(value, Struct):
            return Pack(value.kind, tuple(argument(reader, v, rule, name, node) for v in value.items))
        return Const(known_value(reader, value, f"{name} of {spelled(rule.function)}", node))
    if isinstance(value, Struct):
        if value.kind not in ("list", "tuple"):
            fail(
                reader,
                ShapeError,
                f"{spelled(rule.function)}: an array is needed, {spelled_value(reader, value)} is given",
                node,
            )
        return Pack(value.kind, tuple(argument(reader, v, rule, name, node) for v in value.items))
    if isinstance(value, (FunctionValue, Method, Bound, RangeValue, Walk)):
        if isinstance(value, RangeValue):
            return array_of(reader, Struct("list", elements_of(reader, value, node)), node)
        fail(
            reader,
            RuleError,
            f"{spelled(rule.function)}: an array is needed, {spelled_value(reader, value)} is given",
            node,
        )
    return value


def is_of_numpy(function):
    """Whether a function belongs to NumPy or SciPy, which convert their arguments to arrays."""
    return isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").split(".")[0] in (
        "numpy", "scipy")


def takes_lists(function):
    """Whether a function takes a list of dynamic length itself; others are given an array of its elements."""
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
