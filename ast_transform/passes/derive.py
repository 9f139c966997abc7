# SPDX-License-Identifier: Apache-2.0
"""Transformed functions inside the functions that are read: their normal forms take the place of the call."""

import functools
import inspect
import keyword
import operator
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    USER,
    Apply,
    Const,
    Function,
    Pack,
    Param,
    Var,
    all_reads,
    copied,
    operands,
    substituted,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Opaque, Sequence, spell, unify
from gradscribe.ast_transform.passes import language
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.applied import function_of_numbers
from gradscribe.ast_transform.passes.closures import Closures, substituted_value
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.flow import Raises
from gradscribe.ast_transform.passes.values import (
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
from gradscribe.ast_transform.passes.vjp.precision import is_narrow
from gradscribe.ast_transform.source.diagnose import Demand, KindError, LanguageError
from gradscribe.ast_transform.source.read import defined, read, unwrap


class Derive(Closures):
    def entry(self, callee, names, facts, words, label):
        """The normal form of a callable for arguments with these facts; `words` are facts by keyword."""
        params, values, given = [], [], {}
        for name, fact in zip(names, facts):
            made, value = self.parameter(name, fact)
            params += made
            values.append(value)
        for name, fact in words.items():
            made, given[name] = self.parameter(name, fact)
            params += made
        self.entry_values = [*values, *given.values()]
        self.entry_tokens = frozenset(p.value for p in params if isinstance(p.value, Var))
        try:
            result = self.result_operand(self.enter(callee, values, given))
        except Raises as raised:
            self.raised_by_call(raised)
            result = Const(None)
        back = [now for _, now in self.argument_outputs] + [now for _, _, now in self.state_outputs]
        if back:                        # compiled code gives what is to be written back beside its result
            result = Pack("tuple", (result, *map(self.operand, back)))
        params += [Param(f"{name}_{k}", v) for k, (_, name, v) in enumerate(self.state_inputs)]
        return Function(label, params, self.build.block, result, callee,
                        {"arguments": values, "words": given})

    def result_operand(self, result):
        before = self.build.origin
        self.build.origin = before or self.returned_at
        try:
            return self.result_of_call(result)
        finally:
            self.build.origin = before

    def result_of_call(self, result):
        result = self.children(result) if self.stack else result
        if isinstance(result, Grown):
            return self.grown_result(result)
        return self.packed_whole(result) if isinstance(result, Struct) else self.operand(result)

    def packed_whole(self, value):
        self.must_be_plain(value, None)
        if isinstance(value, Struct) and not (value.whole is not None and value.version == 0):
            return Pack(value.kind, tuple(self.result_operand(i) for i in value.items), value.keys, value.cls)
        return self.operand(value)

    def enter(self, callee, args, words):
        """The value of a call made from outside any function."""
        while True:
            known = isinstance(callee, types.FunctionType) and rule_of(callee) is not None and \
                callee is not self.from_source
            callee = unwrap(callee) if not known and not isinstance(callee, (FunctionValue, Bound)) else callee
            if isinstance(callee, functools.partial):
                given, named = self.given_beforehand(callee)
                args, words, callee = [*given, *args], {**named, **words}, callee.func
            elif isinstance(callee, types.MethodType):
                args, callee = [Const(callee.__self__), *args], callee.__func__
            else:
                break
        if isinstance(callee, Derived):
            return callee.transform.read(self, callee.base, args, words)
        if isinstance(callee, Section):
            return self.sectioned(callee, args[0])
        if hasattr(callee, "normal_form_"):
            return callee.normal_form_(self, args, words, None)
        if known or not isinstance(callee, types.FunctionType):
            if isinstance(callee, FunctionValue):
                source = self.looped(callee.source)
                return self.run(Frame(source, self.bound(source, args, words, None, callee), callee.frame,
                                      self.build.origin, not self.rule_depth), True)
            call = type(callee).__call__ if callable(callee) else None
            if isinstance(call, types.FunctionType) and function_of_numbers(callee) is None:
                args, callee = [Const(callee), *args], call
            elif self.stack:
                return self.call(callee if isinstance(callee, (Bound, Method)) else Const(callee),
                                 list(map(self.objects, args)), {k: self.objects(v) for k, v in words.items()}, None)
            else:
                callee = self.written_out(callee, args, words)
        source = self.looped(read(callee))
        language.check(source)
        return self.run(
            Frame(source, self.bound(source, args, words, None), None, self.build.origin if self.stack else None), True
        )

    def written_out(self, function, args, words):
        """A function with a rule, as a Python function that calls it."""
        if not callable(function) or rule_of(function) is None and function_of_numbers(function) is None:
            read(function)              # tells why it cannot be read
        names = [a.hint if isinstance(a, Var) else f"x_{k}" for k, a in enumerate(args)]
        if len(set(names)) < len(names) or not all(n.isidentifier() for n in names):
            names = [f"x_{k}" for k in range(len(args))]
        return defined(spelled(function), function, names, list(words))

    def sectioned(self, section, leaf):
        """Call the base with one leaf replaced, and take one leaf of its result."""
        def put_in(value, path):
            if not path:
                return leaf
            value = self.settle(value)
            items = list(value.items)
            items[path[0]] = put_in(items[path[0]], path[1:])
            return Struct(value.kind, items, value.keys, value.cls)
        args, words = list(section.args), dict(section.words)
        holder = args if isinstance(section.place, int) else words
        holder[section.place] = put_in(holder[section.place], section.path)
        value = self.children(self.enter(section.base, args, words))
        for k in section.result:
            value = self.settle(self.settle(value).items[k])
        return value

    def roots(self, var):
        """The arguments that a value is computed from."""
        found, queue, seen = [], [var], set()
        while queue:
            v = queue.pop()
            if v in seen:
                continue
            seen.add(v)
            made = self.build.made.get(v)
            if made is None:
                found.append(v)
            else:
                queue += list(operands(made))
        return found

    # transformed functions

    def derived(self, transform, base, args, words):
        """The value of transform(base)(*args, **words), its statements put in the current block."""
        outer, env = self.build.block, {}
        if self.stateful and self.unroll:
            self.fail(LanguageError, "a compiled derivative of a function that sets attributes of an object from "
                      "outside", None, "Compile the function itself, or return the new values.")
        args, words = list(map(self.children, args)), {k: self.children(v) for k, v in words.items()}
        primals, extra = transform.split(self, args)
        wrt = transform.wanted(self, base, primals, words)
        inner_args = [self.as_parameter(v, k in wrt, env) for k, v in enumerate(primals)]
        inner_words = {k: self.as_parameter(v, k in wrt, env) for k, v in words.items()}
        given = [_as_given(inner_args[k] if isinstance(k, int) else inner_words[k]) for k in wrt]
        origin = self.build.origin
        numbers = {v for v, given in env.items() if isinstance(v, Var) and not self.may_be_cell(given)}
        try:
            body, result = self.apart_block(base, inner_args, inner_words, env, numbers)
        except Raises as raised:
            outer += copied(raised.block, env)
            raise Raises(outer) from None
        if self.appended and self.unroll:
            raise LanguageError("a compiled derivative of a function that appends to a list from outside",
                                self.appended[0][-1], "Compile the function itself, or return what is to be appended.")
        params = _parameters(env)
        if not getattr(transform, "aux", False):
            self.no_open_list(result, transform.prefix)
        function = Function(_label(base), params, body, result, base, {})
        self.build.block = []
        try:
            made = transform.apply(self.engine, function, given)
        finally:
            self.build.block, self.build.origin = outer, origin
        operands_ = transform.extra_operands(self, made, [transform.with_zeros(self, inner_args, env, k, extra)
                                                          for k in range(len(extra))], wrt)
        mixed = any(is_narrow(v.fact) for s in body for v in all_reads(s))
        for param, operand in zip(made.params[len(params):], operands_):
            env[param.value] = self.of_kind(operand, param.value.fact, mixed)
        body = copied(made.body, env)
        self.build.made.update({t: s.value for s in body if hasattr(s, "targets") for t in s.targets})
        outer += body
        self.label = made.label
        return self.seen(self.to_value(substituted(made.result, env)))

    def of_kind(self, operand, fact, mixed=False):
        """A tangent or an adjoint that is given, in the kind of its value: a float for 1, complex for a real one.

        mixed: there are arrays of narrower dtypes, which one of Python's numbers would be taken for
        """
        given = fact_of(operand)
        if isinstance(fact, Sequence) and isinstance(operand, Var) and not _alike(given, fact):
            take = getattr if fact.kind == "record" else operator.getitem
            items = [self.build.let(operand.hint, Apply(take, (operand, Const(k))), given.elements[
                given.keys.index(k) if given.keys else k]) for k in fact.keys or range(len(fact.elements))]
            items = tuple(self.of_kind(i, f, mixed) for i, f in zip(items, fact.elements))
            return self.build.let(operand.hint, Pack(fact.kind, items, fact.keys, fact.cls), fact)
        if not isinstance(fact, Array) or not isinstance(given, Array):
            return operand
        if given.kind == fact.kind:
            return self.build.cast(operand, np.dtype(fact.dtype), operand.hint) if (
                mixed and given.weak and not fact.weak and isinstance(operand, Var)) else operand
        if isinstance(operand, Const):
            return Const((complex if fact.kind == "c" else float)(operand.value))
        if fact.weak:
            return self.build.let(operand.hint, Apply(complex if fact.kind == "c" else float, (operand,)), fact)
        return self.build.cast(operand, np.dtype(fact.dtype), operand.hint)

    def apart_block(self, base, args, words, env, numbers=frozenset()):
        """(statements, result) of a call read in a block of its own; `env`: what its parameters stand for.

        `numbers`: those that are certainly no arrays.
        """
        outer = self.build.block
        self.build.block = []
        entry = (self.entry_tokens, self.writes_arguments, self.within_derivative)
        held = {v for v in env if isinstance(v, Var)} - {
            v for v in numbers if isinstance(v.fact, Array) and not v.fact.dims}
        self.entry_tokens, self.writes_arguments, self.within_derivative = entry[0] | held, False, True
        self.of_one_kind |= {v for v, given in env.items() if not self.may_be_of_either_kind(given)}
        state = self.state_items()
        try:
            result = self.result_operand(self.enter(base, args, words))
            body = self.build.block
            self.argument_outputs = []
            if self.stack and state != self.state_items():
                self.fail(LanguageError, "an attribute of an object from outside is set in a function that is "
                          "differentiated inside another", None, "Return the new value.")
            if self.writes_arguments:
                self.must_be_apart(list(env.values()))
        except Demand as demand:
            held = env.get(demand.variable)
            if isinstance(held, Var):
                raise Demand(held, demand.reason, demand.origin) from None
            raise
        except Raises as raised:
            self.raised_by_call(raised)
            raise
        finally:
            self.build.block = outer
            self.entry_tokens, self.writes_arguments = entry[0], self.writes_arguments or entry[1]
            self.within_derivative = entry[2]
        return body, result

    def custom(self, rule, function, args, words):
        """A call of a function that brings its own derivative: a callee of its own, with the rule beside it."""
        outer, env = self.build.block, {}
        args = [self.leafwise(self.children(a)) for a in self.in_places(function, args, words)]
        fixed, memo, inner_args = {}, {}, []         # fixed: parameters that the rule knows nothing of
        for k, v in enumerate(args):
            apart = k in rule.nondiff_argnums or is_function(v)
            inner_args.append(self.alone(v, fixed, memo) if apart else self.as_parameter(v, True, env))
        env.update(fixed)
        self.build.block = []
        try:
            result = self.result_operand(self.enter(function, inner_args, {}))
            body = self.build.block
        finally:
            self.build.block = outer
        label = _own_label(function)
        self.no_open_list(result, f"the derivative of {label}")
        leaves = list(_leaves(result))
        whole = leaves[0] if len(leaves) == 1 else Pack("tuple", tuple(leaves))
        callee = CustomFunction(label, _parameters(env), body, whole, function, {}, rule, inner_args,
                                frozenset(fixed), result)
        facts = [leaf.fact if isinstance(leaf, Var) else fact_of(leaf) if type(leaf.value) in (int, float, complex) else
                 Array(float) for leaf in leaves]
        targets = self.build.several([label] * len(leaves), Apply(callee, tuple(env.values())), facts)
        for t, leaf in zip(targets, leaves):
            self.build.made.pop(t, None)
            self.tokens[t] = frozenset({t}).union(self.outside_of(leaf, env) if isinstance(leaf, Var) else ())
        parts = [leaf if isinstance(leaf, Const) and leaf.value is None else t for t, leaf in zip(targets, leaves)]
        return self.seen(self.to_value(refilled(result, iter(parts))))

    def in_places(self, function, args, words):
        """Arguments, and defaults of those left out, in the order of the parameters: a rule of the user's own has no
        other names for them."""
        try:
            parameters = inspect.signature(function).parameters.values()
            given = inspect.signature(function).bind(*args, **words).arguments
        except (TypeError, ValueError):
            parameters, given = (), {}          # it refuses the call itself, or takes places only
        places, others = [], [] if parameters else list(words)
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                places += given.get(p.name, ())
            elif p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
                others += [p.name] if p.name in given else []
            else:
                places.append(given[p.name] if p.name in given else self.lift(p.default, p.name))
        if others:
            raise KindError(f"a function with a custom derivative takes positional arguments, and {others[0]} has no "
                            "place", self.build.origin, "Give its parameter a place, or call it without it.")
        return places if parameters else args

    def outside_of(self, leaf, env):
        """The storages that what a callee returns may be in: `env` says which operand each parameter stands for."""
        for t in self.may_be_in(leaf):
            yield from self.storages(env[t]) if isinstance(env.get(t), Var) else (t,)

    def leafwise(self, value):
        """A value whose containers are taken apart: a rule of the user's own gives an adjoint for each array."""
        value = self.settle(value)
        if isinstance(value, (Grown, Rows)):
            self.fail(LanguageError, "a list whose length is known only when running, given to a function that brings "
                      "its own derivative", None, "Give it an array: np.array(items).")
        if not isinstance(value, Struct) or value.kind == "iterator":
            return value
        return Struct(value.kind, [self.leafwise(i) for i in value.items], value.keys, value.cls)

    def to_value(self, node):
        """An operand as a value of the reader."""
        if isinstance(node, Pack) and node.kind == "grown":
            return Grown(node.items[0], node.cls)
        if isinstance(node, Var) and isinstance(node.fact, Listed):
            return Grown(node, Array(node.fact.dtype, node.fact.dims[1:]))
        if isinstance(node, Pack):
            return Struct(node.kind, [self.to_value(i) for i in node.items], node.keys, node.cls)
        if isinstance(node, Var) and isinstance(node.fact, Sequence):
            return self.whole(node)
        return node

    def as_parameter(self, value, wanted, env):
        """A fresh parameter for each operand of a value; `env` says which operand each stands for."""
        if isinstance(value, Part) or isinstance(value, Struct) and value.whole is not None and value.version == 0:
            operand = self.operand(value)
            if isinstance(operand, Var) and isinstance(operand.fact, Sequence):
                var = Var(operand.hint, operand.fact, USER)
                env[var] = operand
                return self.whole(var)
            value = self.settle(value)
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
            return Struct(value.kind, [self.as_parameter(i, wanted, env) for i in value.items], value.keys, value.cls)
        return value


@dataclass(eq=False)
class CustomFunction(Function):
    """A callee with a derivative of its own; `tree` holds its arguments in terms of its parameters."""
    rule: Any = None
    tree: list | None = None
    fixed: frozenset = frozenset()      # parameters that the rule gives no adjoint for
    like: object = None                 # the result of the function itself

    def leaves(self, result, what, origin, shapes=True):
        """The leaves of a result that the rule gives, in the order of the function's own; shapes: they have its own."""
        def refusal(same):
            return KindError(
                f"{what} of {self.label} gives {with_keys(result, spell(fact_of(result)))}, the function itself "
                f"{with_keys(self.like, spell(fact_of(self.like)))}", origin, f"Give both the same {same}.")
        found = list(_leaves_like(self.like, result, lambda: refusal("structure")))
        if shapes and not all(map(may_fit, found, _leaves(self.like))):
            raise refusal("shape")
        return found

    def given(self, step, active):
        """The arguments of a call, as the rule takes them."""
        env = dict(zip([p.value for p in self.params], step.value.args))
        for p in self.fixed:
            if env[p] in active:
                raise LanguageError(
                    f"{self.label} brings its own derivative, which says nothing of {p.hint}: a function that is given "
                    "to it reads it, or it is in nondiff_argnums", step.origin,
                    f"Make {p.hint} an argument: fun, values = gs.closure_convert(fun, x), and give it the values.")
        return [substituted_value(v, env) for v in self.tree]


def _as_given(value):
    """A container as it is now; the function may write into its arrays."""
    if isinstance(value, Struct):
        return Struct(value.kind, [_as_given(i) for i in value.items], value.keys, value.cls, value.whole)
    return value


def _parameters(variables: Iterable[Var]) -> list[Param]:
    """Parameters with names of their own."""
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
    """Whether an operand may have the shape of another: a literal number, 0.0, and None stand for zeros of any."""
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
    """The name of a function in emitted source; a lambda's alone is a keyword."""
    label = _label(base)
    return "function" if keyword.iskeyword(label) or not label.isidentifier() else label


_ = (Length, Opaque)
