# SPDX-License-Identifier: Apache-2.0
"""Derivatives inside a function: a call such as `grad(f)(x)` comes in; the statements of its normal form come out.

The statements replace the call in the current block.  A function with a custom rule becomes a separate callee.
"""
import functools
import inspect
import keyword
import operator
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import gast
import numpy as np

from gradscribe.ast_transform.core.form import (
    USER,
    Apply,
    Const,
    Function,
    Let,
    Pack,
    Param,
    Var,
    all_reads,
    copied,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Opaque, Sequence, spell, unify
from gradscribe.ast_transform.passes import language
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vjp.precision import is_narrow
from gradscribe.ast_transform.reader.branches import Raises, raised_by_call
from gradscribe.ast_transform.reader.calls import bound_arguments, call_value
from gradscribe.ast_transform.reader.closures import substituted_value, with_parameters
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.draws import as_parameter
from gradscribe.ast_transform.reader.dynamic_lists import grown_result, no_open_list
from gradscribe.ast_transform.reader.entry import run
from gradscribe.ast_transform.reader.expressions import may_be_of_either_kind
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.inlining import bound, looped
from gradscribe.ast_transform.reader.memory import may_be_in, require_distinct_storages, storages
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.operands import as_operand, as_struct, must_be_plain, parameter, settle
from gradscribe.ast_transform.reader.outer_state import state_items
from gradscribe.ast_transform.reader.registered import as_children, as_objects, as_seen_by_caller
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import (
    Bound,
    Derived,
    Frame,
    FunctionValue,
    Grown,
    Method,
    Part,
    Rows,
    Section,
    Struct,
    is_function,
    with_keys,
)
from gradscribe.ast_transform.reader.vectorize import function_of_numbers
from gradscribe.ast_transform.reader.views import may_be_cell
from gradscribe.ast_transform.source.diagnose import Demand, KindError, LanguageError
from gradscribe.ast_transform.source.read import defined, read, unwrap


def entry(reader: Reader, callee: Any, names: list, facts: list, words: dict[str, Any], label: str) -> Function:
    """The normal form of a callable for arguments with these facts; `words`: {keyword: fact}."""
    params, values, given = [], [], {}
    for name, fact in zip(names, facts):
        made, value = parameter(reader, name, fact)
        params += made
        values.append(value)
    for name, fact in words.items():
        made, given[name] = parameter(reader, name, fact)
        params += made
    reader.memory.entry_tokens = frozenset(p.value for p in params if isinstance(p.value, Var))
    try:
        result = result_operand(reader, enter(reader, callee, values, given))
    except Raises as raised:
        raised_by_call(reader, raised)
        result = Const(None)
    back = [now for _, now in reader.outer.argument_outputs] + [now for _, _, now in reader.outer.outputs]
    if back:                        # compiled code returns the values to write back beside its result
        result = Pack("tuple", (result, *map(partial(as_operand, reader), back)))
    params += [Param(f"{name}_{k}", v) for k, (_, name, v) in enumerate(reader.outer.inputs)]
    return Function(label, params, reader.build.block, result, callee,
                    {"arguments": values, "words": given})


def result_operand(reader: Reader, result: Any) -> Any:
    before = reader.build.origin
    reader.build.origin = before or reader.environment.returned_at
    try:
        return result_of_call(reader, result)
    finally:
        reader.build.origin = before


def result_of_call(reader: Reader, result):
    result = as_children(reader, result) if reader.environment.stack else result
    if isinstance(result, Grown):
        return grown_result(reader, result)
    return packed_whole(reader, result) if isinstance(result, Struct) else as_operand(reader, result)


def packed_whole(reader: Reader, value):
    must_be_plain(reader, value, None)
    if isinstance(value, Struct) and not (value.whole is not None and value.version == 0):
        return Pack(value.kind, tuple(result_operand(reader, i) for i in value.items), value.keys, value.cls)
    return as_operand(reader, value)


def enter(reader: Reader, callee: Any, args: list, words: dict[str, Any]) -> Any:
    """The value of a call that no function being read makes."""
    while True:
        known = isinstance(callee, types.FunctionType) and rule_of(callee) is not None and \
            callee is not reader.context.from_source
        callee = unwrap(callee) if not known and not isinstance(callee, (FunctionValue, Bound)) else callee
        if isinstance(callee, functools.partial):
            given, named = bound_arguments(reader, callee)
            args, words, callee = [*given, *args], {**named, **words}, callee.func
        elif isinstance(callee, types.MethodType):
            args, callee = [Const(callee.__self__), *args], callee.__func__
        else:
            break
    if isinstance(callee, Derived):
        return callee.transform.read(reader, callee.base, args, words)
    if isinstance(callee, Section):
        return call_section(reader, callee, args[0])
    if hasattr(callee, "normal_form_"):
        return callee.normal_form_(reader, args, words, None)
    if known or not isinstance(callee, types.FunctionType):
        if isinstance(callee, FunctionValue):
            source = looped(reader, callee.source)
            return run(reader, Frame(source, bound(reader, source, args, words, None, callee), callee.frame,
                                     reader.build.origin, not reader.context.rule_depth), True)
        call = type(callee).__call__ if callable(callee) else None
        if isinstance(call, types.FunctionType) and function_of_numbers(callee) is None:
            args, callee = [Const(callee), *args], call
        elif reader.environment.stack:
            return call_value(
                reader,
                callee if isinstance(callee, (Bound, Method)) else Const(callee),
                list(map(partial(as_objects, reader), args)),
                {k: as_objects(reader, v) for k, v in words.items()},
                None,
            )
        else:
            callee = wrapped_in_function(reader, callee, args, words)
    source = looped(reader, read(callee))
    language.check(source)
    return run(
        reader,
        Frame(
            source,
            bound(reader, source, args, words, None),
            None,
            reader.build.origin if reader.environment.stack else None,
        ),
        True,
    )


def wrapped_in_function(reader: Reader, function, args, words):
    """A Python function that calls a function with a rule."""
    if not callable(function) or rule_of(function) is None and function_of_numbers(function) is None:
        read(function)              # raises an error that says why it cannot be read
    names = [a.hint if isinstance(a, Var) else f"x_{k}" for k, a in enumerate(args)]
    if len(set(names)) < len(names) or not all(n.isidentifier() for n in names):
        names = [f"x_{k}" for k in range(len(args))]
    return defined(spelled(function), function, names, list(words))


def call_section(reader: Reader, section, leaf):
    """One leaf of the result of a call of the base with one leaf of its arguments replaced."""
    def put_in(value, path):
        if not path:
            return leaf
        value = settle(reader, value)
        items = list(value.items)
        items[path[0]] = put_in(items[path[0]], path[1:])
        return Struct(value.kind, items, value.keys, value.cls)
    args, words = list(section.args), dict(section.words)
    holder = args if isinstance(section.place, int) else words
    holder[section.place] = put_in(holder[section.place], section.path)
    value = as_children(reader, enter(reader, section.base, args, words))
    for k in section.result:
        value = settle(reader, settle(reader, value).items[k])
    return value


class Call(NamedTuple):
    """A call of a derivative: the function in normal form, and the arguments of the call."""
    function: Function
    places: list                        # of the arguments that are differentiated: numbers, or names of keywords
    wrt: list                           # these arguments, in terms of the function's parameters
    primals: list                       # all positional arguments of the function, so
    extra: list                         # further arguments: tangents, adjoints
    env: dict[Any, Any]                 # parameter -> operand of the caller


def call_derived(reader: Reader, transform: Any, base: Any, args: list, words: dict[str, Any]) -> Any:
    """The value of transform(base)(*args, **words); its statements are added to the current block.

    transform.wanted(reader, settings, base, primals, words): the places of the arguments that are differentiated
    transform.derived(reader, settings, call): the derivative in normal form, and a function that makes the operands
    for its further parameters, in the caller's block
    """
    outer = reader.build.block
    env: dict[Any, Any] = {}
    if reader.outer.stateful and reader.unroll:
        fail(reader, LanguageError, "a compiled derivative of a function that sets attributes of an object from "
             "outside", None, "Compile the function itself, or return the new values.")
    args, words = list(map(partial(as_children, reader), args)), {k: as_children(reader, v) for k, v in words.items()}
    primals, extra = transform.split(reader, args)
    places = transform.wanted(reader, transform.settings, base, primals, words)
    inner_args = [as_parameter(reader, v, k in places, env) for k, v in enumerate(primals)]
    inner_words = {k: as_parameter(reader, v, k in places, env) for k, v in words.items()}
    wrt = [_as_given(inner_args[k] if isinstance(k, int) else inner_words[k]) for k in places]
    origin = reader.build.origin
    numbers = {v for v, given in env.items() if isinstance(v, Var) and not may_be_cell(reader, given)}
    try:
        body, result = apart_block(reader, base, inner_args, inner_words, env, numbers)
    except Raises as raised:
        outer += copied(raised.block, env)
        raise Raises(outer) from None
    if reader.outer.appended and reader.unroll:
        raise LanguageError(
            "a compiled derivative of a function that appends to a list from outside",
            reader.outer.appended[0][-1],
            "Compile the function itself, or return what is to be appended.",
        )
    params = _parameters(env)
    if not getattr(transform.settings, "aux", False):
        no_open_list(reader, result, transform.prefix)
    call = Call(Function(_label(base), params, body, result, base, {}), places, wrt, inner_args, extra, env)
    reader.build.block = []
    try:
        made, further = transform.derived(reader, transform.settings, call)
    finally:
        reader.build.block, reader.build.origin = outer, origin
    further = further()
    mixed = any(is_narrow(v.fact) for s in body for v in all_reads(s))
    for param, operand in zip(made.params[len(params):], further):
        env[param.value] = of_kind(reader, operand, param.value.fact, mixed)
    body = copied(made.body, env)
    reader.build.made.update({t: s.value for s in body if hasattr(s, "targets") for t in s.targets})
    outer += body
    reader.context.label = made.label
    return as_seen_by_caller(reader, to_value(reader, substituted(made.result, env)))


def of_kind(reader: Reader, operand, fact, mixed=False):
    """A given tangent or adjoint, converted to the kind of its primal: 1 to a float, a real number to a complex one.

    mixed: some arrays are narrower, and a plain Python number would take their dtype
    """
    given = fact_of(operand)
    if isinstance(fact, Sequence) and isinstance(operand, Var) and not _alike(given, fact):
        take = getattr if fact.kind == "record" else operator.getitem
        items = [reader.build.let(operand.hint, Apply(take, (operand, Const(k))), given.elements[
            given.keys.index(k) if given.keys else k]) for k in fact.keys or range(len(fact.elements))]
        parts = tuple(of_kind(reader, i, f, mixed) for i, f in zip(items, fact.elements))
        return reader.build.let(operand.hint, Pack(fact.kind, parts, fact.keys, fact.cls), fact)
    if not isinstance(fact, Array) or not isinstance(given, Array):
        return operand
    if given.kind == fact.kind:
        return reader.build.cast(operand, np.dtype(fact.dtype), operand.hint) if (
            mixed and given.weak and not fact.weak and isinstance(operand, Var)) else operand
    if isinstance(operand, Const):
        return Const((complex if fact.kind == "c" else float)(operand.value))
    if fact.weak:
        return reader.build.let(operand.hint, Apply(complex if fact.kind == "c" else float, (operand,)), fact)
    return reader.build.cast(operand, np.dtype(fact.dtype), operand.hint)


def apart_block(reader: Reader, base: Any, args: list, words: dict[str, Any], env: dict,
                numbers: set | frozenset = frozenset()) -> tuple:
    """(statements, result) of a call read in a separate block; `env` maps its parameters to operands.

    `numbers`: the parameters that are certainly not arrays.
    """
    outer = reader.build.block
    reader.build.block = []
    entry = (reader.memory.entry_tokens, reader.memory.writes_arguments, reader.context.within_derivative)
    held = {v for v in env if isinstance(v, Var)} - {
        v for v in numbers if isinstance(v.fact, Array) and not v.fact.dims}
    reader.memory.entry_tokens, reader.memory.writes_arguments, reader.context.within_derivative = (
        entry[0] | held,
        False,
        True,
    )
    reader.kinds.of_one_kind |= {v for v, given in env.items() if not may_be_of_either_kind(reader, given)}
    state = state_items(reader)
    try:
        result = result_operand(reader, enter(reader, base, args, words))
        body = reader.build.block
        reader.outer.argument_outputs = []
        if reader.environment.stack and state != state_items(reader):
            fail(reader, LanguageError, "an attribute of an object from outside is set in a function that is "
                 "differentiated inside another", None, "Return the new value.")
        if reader.memory.writes_arguments:
            require_distinct_storages(reader, list(env.values()))
    except Demand as demand:
        given = env.get(demand.variable)
        if isinstance(given, Var):
            raise Demand(given, demand.reason, demand.origin) from None
        raise
    except Raises as raised:
        raised_by_call(reader, raised)
        raise
    finally:
        reader.build.block = outer
        reader.memory.entry_tokens, reader.memory.writes_arguments = (
            entry[0],
            reader.memory.writes_arguments or entry[1],
        )
        reader.context.within_derivative = entry[2]
    return body, result


def call_custom(reader: Reader, rule: Any, function: Callable, args: list, words: dict[str, Any]) -> Any:
    """The value of a call of a function with a custom derivative, which becomes a callee with its rule attached."""
    outer = reader.build.block
    env: dict[Any, Any] = {}
    args = [leafwise(reader, as_children(reader, a)) for a in positional_arguments(reader, function, args, words)]
    fixed: dict[Any, Any] = {}          # parameters that are not passed to the rule
    memo: dict[Any, Any] = {}
    inner_args = []
    for k, v in enumerate(args):
        apart = k in rule.nondiff_argnums or is_function(v)
        inner_args.append(with_parameters(reader, v, fixed, memo) if apart else as_parameter(reader, v, True, env))
    env.update(fixed)
    reader.build.block = []
    try:
        result = result_operand(reader, enter(reader, function, inner_args, {}))
        body = reader.build.block
    finally:
        reader.build.block = outer
    label = _own_label(function)
    no_open_list(reader, result, f"the derivative of {label}")
    leaves = list(_leaves(result))
    whole = leaves[0] if len(leaves) == 1 else Pack("tuple", tuple(leaves))
    callee = Function(label, _parameters(env), body, whole, function, {},
                      Custom(rule, inner_args, frozenset(fixed), result))
    facts = [leaf.fact if isinstance(leaf, Var) else fact_of(leaf) if type(leaf.value) in (int, float, complex) else
             Array(float) for leaf in leaves]
    targets = reader.build.several([label] * len(leaves), Apply(callee, tuple(env.values())), facts)
    for t, leaf in zip(targets, leaves):
        reader.build.made.pop(t, None)
        reader.memory.tokens[t] = frozenset({t}).union(outside_of(reader, leaf, env) if isinstance(leaf, Var) else ())
    parts = [leaf if isinstance(leaf, Const) and leaf.value is None else t for t, leaf in zip(targets, leaves)]
    return as_seen_by_caller(reader, to_value(reader, refilled(result, iter(parts))))


def positional_arguments(reader: Reader, function, args, words):
    """All arguments in the order of the parameters, with defaults: a custom rule takes them by position only."""
    try:
        parameters: Collection[inspect.Parameter] = inspect.signature(function).parameters.values()
        given = inspect.signature(function).bind(*args, **words).arguments
    except (TypeError, ValueError):
        parameters, given = (), {}          # the call itself fails, or takes positional arguments only
    places, others = [], [] if parameters else list(words)
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            places += given.get(p.name, ())
        elif p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            others += [p.name] if p.name in given else []
        else:
            places.append(given[p.name] if p.name in given else lift(reader, p.default, p.name))
    if others:
        raise KindError(f"a function with a custom derivative takes positional arguments, and {others[0]} has no "
                        "place", reader.build.origin, "Give its parameter a place, or call it without it.")
    return places if parameters else args


def outside_of(reader: Reader, leaf, env):
    """The storages that a callee's result may be in; `env` maps parameters to operands."""
    for t in may_be_in(reader, leaf):
        yield from storages(reader, env[t]) if isinstance(env.get(t), Var) else (t,)


def leafwise(reader: Reader, value):
    """A value with its containers split into their items, since a custom rule gives an adjoint for each array."""
    value = settle(reader, value)
    if isinstance(value, (Grown, Rows)):
        fail(reader, LanguageError, "a list whose length is known only when running, given to a function that brings "
             "its own derivative", None, "Give it an array: np.array(items).")
    if not isinstance(value, Struct) or value.kind == "iterator":
        return value
    return Struct(value.kind, [leafwise(reader, i) for i in value.items], value.keys, value.cls)


def to_value(reader: Reader, node: gast.AST | None) -> Any:
    """An operand as a value of the reader."""
    if isinstance(node, Pack) and node.kind == "grown":
        return Grown(node.items[0], node.cls)
    if isinstance(node, Var) and isinstance(node.fact, Listed):
        return Grown(node, Array(node.fact.dtype, node.fact.dims[1:]))
    if isinstance(node, Pack):
        return Struct(node.kind, [to_value(reader, i) for i in node.items], node.keys, node.cls)
    if isinstance(node, Var) and isinstance(node.fact, Sequence):
        return as_struct(reader, node)
    return node


@late
def operands_as_parameters(reader: Reader, value, wanted, env):
    """A value with a fresh parameter for each of its operands; `env` maps the parameter to the operand."""
    if isinstance(value, Part) or isinstance(value, Struct) and value.whole is not None and value.version == 0:
        operand = as_operand(reader, value)
        if isinstance(operand, Var) and isinstance(operand.fact, Sequence):
            var = Var(operand.hint, operand.fact, USER)
            env[var] = operand
            return as_struct(reader, var)
        value = settle(reader, value)
    if isinstance(value, Var):
        if not isinstance(value.fact, Array):
            return value
        fact = value.fact
        var = Var(value.hint, fact, USER)
        env[var] = value
        return var
    if isinstance(value, Const) and wanted and (
            type(value.value) in (float, complex) or isinstance(value.value, np.inexact)):
        var = Var("x", fact_of(value), USER)
        env[var] = value
        return var
    if isinstance(value, Struct):
        return Struct(value.kind, [as_parameter(reader, i, wanted, env) for i in value.items], value.keys, value.cls)
    return value


@dataclass(eq=False)
class Custom:
    """The derivative or the batching rule that the user has given for a function, as `Function.custom`."""
    rule: Any
    tree: list                          # the function's arguments in terms of its parameters
    fixed: frozenset                    # parameters that the rule gives no adjoint for
    like: object                        # the result of the function itself


def leaves_by_rule(callee: Function, result: Any, what: str, origin: Any, shapes: bool = True) -> list:
    """The leaves of the rule's result, in the order of the function's leaves; shapes: require equal shapes."""
    like = callee.custom.like

    def refusal(same):
        return KindError(
            f"{what} of {callee.label} gives {with_keys(result, spell(fact_of(result)))}, the function itself "
            f"{with_keys(like, spell(fact_of(like)))}", origin, f"Give both the same {same}.")
    found = list(_leaves_like(like, result, lambda: refusal("structure")))
    if shapes and not all(map(may_fit, found, _leaves(like))):
        raise refusal("shape")
    return found


def given_to_rule(step: Let, active: Collection) -> list:
    """The arguments of a call of a function with a custom rule, as the rule takes them."""
    callee = step.value.function
    env = dict(zip([p.value for p in callee.params], step.value.args))
    for p in callee.custom.fixed:
        if env[p] in active:
            raise LanguageError(
                f"{callee.label} brings its own derivative, which says nothing of {p.hint}: a function that is given "
                "to it reads it, or it is in nondiff_argnums", step.origin,
                f"Make {p.hint} an argument: fun, values = gs.closure_convert(fun, x), and give it the values.")
    return [substituted_value(v, env) for v in callee.custom.tree]


def _as_given(value):
    """A copy of a container's current state; the function may write into its arrays."""
    if isinstance(value, Struct):
        return Struct(value.kind, [_as_given(i) for i in value.items], value.keys, value.cls, value.whole)
    return value


def _parameters(variables: Iterable[Var]) -> list[Param]:
    """Parameters with distinct names."""
    out, taken = [], set()
    for v in variables:
        name, k = v.hint, 0
        while name in taken:
            k += 1
            name = f"{v.hint}_{k}"
        taken.add(name)
        out.append(Param(name, v))
    return out


def _leaves(node: Any) -> Iterator:
    if isinstance(node, Pack):
        for i in node.items:
            yield from _leaves(i)
    else:
        yield node


def _leaves_like(like, node, refusal):
    if not isinstance(like, Pack):
        if isinstance(node, Pack):
            raise refusal()
        yield node
        return
    if not isinstance(node, Pack) or len(node.items) != len(like.items) or set(node.keys) != set(like.keys):
        raise refusal()
    for k, item in enumerate(like.items):
        yield from _leaves_like(item, node.items[node.keys.index(like.keys[k]) if like.keys else k], refusal)


def may_fit(given: Any, own: Any) -> bool:
    """Whether an operand may have the shape of another: a literal number or None represents zeros of any shape."""
    if isinstance(given, Const) and not isinstance(given.value, np.ndarray):
        return True
    given, own = fact_of(given), fact_of(own)
    return not isinstance(given, Array) or not isinstance(own, Array) or len(given.dims) == len(own.dims) and \
        all(map(unify, given.dims, own.dims))


def refilled(node: Any, leaves: Iterator) -> Any:
    if isinstance(node, Pack):
        return Pack(node.kind, tuple(refilled(i, leaves) for i in node.items), node.keys, node.cls)
    return next(leaves)


def _alike(given, fact):
    if isinstance(fact, Sequence) and isinstance(given, Sequence):
        return all(map(_alike, given.elements, fact.elements))
    return not isinstance(fact, Array) or not isinstance(given, Array) or given.kind == fact.kind


def _label(base: Any) -> str:
    if isinstance(base, FunctionValue):
        return base.source.name
    if isinstance(base, (Section, Derived)):
        return _label(base.base)
    if isinstance(base, (functools.partial,)):
        return _label(base.func)
    name = getattr(base, "__name__", None) or type(base).__name__
    return "lambda" if name == "<lambda>" else name.strip("_") or "f"


def _own_label(base):
    """The name of a function in emitted source; the name of a lambda would be a keyword."""
    label = _label(base)
    return "function" if keyword.iskeyword(label) or not label.isidentifier() else label


_ = (Length, Opaque)
