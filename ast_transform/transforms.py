# SPDX-License-Identifier: Apache-2.0
"""The transformations grad, vjp, jvp and jit as objects.

Each says how the arguments of the transformed function split into primals and further arguments (tangents, adjoints),
which of them are differentiated, and how its normal form is made from that of the function.
"""
import dataclasses
import inspect
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import ADJOINT, Const, Pack, Param, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, holds_numbers, is_function, spell
from gradscribe.ast_transform.passes.described import AS_ARRAY, fact_of
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.passes.vjp.sweep import Sweep
from gradscribe.ast_transform.reader.derivatives import _label, call_derived, enter
from gradscribe.ast_transform.reader.operands import as_operand, settle
from gradscribe.ast_transform.reader.outer_state import acts_once
from gradscribe.ast_transform.reader.values import FunctionValue, Struct
from gradscribe.ast_transform.requirements import (
    AS_PARTS,
    caller_of,
    check_fit,
    check_inputs,
    check_pair,
    check_scalar,
    fact_of_value,
    in_order,
    place_of,
    place_of_result,
)
from gradscribe.ast_transform.source.diagnose import KindError


class Transform:
    """The defaults: the transformed function takes the arguments of the function."""

    def split(self, reader, args):
        """(arguments of the function, further arguments)"""
        return args, []

    def with_zeros(self, reader, primals, env, k, extra):
        """Further argument number k."""
        return extra[k]

    def extra_operands(self, reader, made, extra, wrt):
        return []

    def read(self, reader, base, args, words):
        """The value of transform(base)(*args, **words) in the function that is being read."""
        return call_derived(reader, self, base, args, words)

    def names(self, names):
        """The parameter names of the transformed function, from those of the function."""
        return names


def fresh(name: str, taken: Iterable) -> str:
    """A name that is not taken: nested transformations have, for instance, an adjoint of an adjoint."""
    free, k = name, 0
    while free in taken:
        k += 1
        free = f"{name}_{k}"
    return free


class Grad(Transform):
    """The gradient of a scalar function, alone or with its value."""

    def __init__(self, argnums=0, argnames=None, value=False, aux=False, holomorphic=False, explicit=False):
        self.argnums, self.argnames, self.value, self.aux, self.holomorphic = argnums, argnames, value, aux, holomorphic
        self.explicit = explicit        # argnums were given, not left at their default
        self.prefix = "value_and_grad" if value else "grad"

    def wanted(self, reader, base, args, words):
        numbers = []
        if self.argnames is None or self.explicit:
            numbers = list(self.argnums) if isinstance(self.argnums, (tuple, list)) else [self.argnums]
        count = len(args)
        out = []
        for k in numbers:
            if not -count <= k < count:
                raise KindError(
                    f"argnums {k} is out of range: {count} positional argument{'s' * (count != 1)} given",
                    place_of(base, None, caller_of(reader)),
                    "Arguments passed by keyword are named by argnames.",
                )
            out.append(k % count)
        names = [] if self.argnames is None else [self.argnames] if isinstance(self.argnames, str) else self.argnames
        if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
            raise KindError(f"argnames must be a name or a sequence of names, not {self.argnames!r}")
        for name in names:
            if name in words:
                out.append(name)
                continue
            known = parameter_names(base, count)
            if name not in known[:count]:
                raise KindError(
                    f"argnames: no argument named {name!r} is given",
                    place_of(base, None, caller_of(reader)),
                    f"Given are {', '.join([*known[:count], *words])}.",
                )
            out.append(known.index(name))
        if len(set(out)) != len(out):
            raise KindError(
                "argnums and argnames name one argument twice",
                place_of(base, None, caller_of(reader)),
                "Name each once.",
            )
        self.places = out
        self.many = isinstance(self.argnums, (tuple, list)) and (self.argnames is None or self.explicit) or \
            self.argnames is not None and (not isinstance(self.argnames, str) or self.explicit)
        return out

    def apply(self, engine, function, wrt):
        label = f"{'value_and_grad' if self.value else 'grad'}_{function.label}"
        caller = caller_of(engine.reader)
        names = parameter_names(function.about, 1 + max((k for k in self.places if isinstance(k, int)), default=0))
        for value, k in zip(wrt, self.places):
            check_inputs(value, names[k] if isinstance(k, int) else k, "grad", self.holomorphic, function.about, caller)
        result = function.result
        if self.aux:
            check_pair(result, function, caller)
            result = result.items[0]
        check_scalar(result, function, self.holomorphic, caller)
        made = engine.reverse(function, wrt, label, value=self.value, aux=self.aux, many=self.many)
        return made


def refuse_objects(label, base, args, caller):
    """Raises KindError for an object among the arguments: it is static, so its attributes have no derivative."""
    for name, v in zip(parameter_names(base, len(args)), args):
        if isinstance(v, Const) and hasattr(v.value, "__dict__") and not isinstance(
                v.value, (type, types.ModuleType)) and (not callable(v.value) or not is_function(v.value) and
                                                        holds_numbers(v.value)):
            raise KindError(f"{label} needs floating-point arguments; {name} is {spell(fact_of(v))}",
                            place_of(base, name, caller), AS_ARRAY if isinstance(v.value, np.ndarray) else
                            f"{AS_PARTS} Or let the function read it from outside.")


def differentiated(label: str, base: Any, args: list, caller: Any) -> list:
    """The places of the arguments that have derivatives; KindError if a user gives numbers and none of them has one."""
    refuse_objects(label, base, args, caller)
    found = [k for k, v in enumerate(args) if differentiable(v)]
    if not found and caller is None:
        for name, v in zip(parameter_names(base, len(args)), args):
            fact = fact_of_value(v)
            if isinstance(fact, Array):
                raise KindError(f"{label} needs floating-point arguments; {name} is {spell(fact)}",
                                place_of(base, name, caller), f"Convert it: {name}.astype(float)." if fact.dims else
                                "Convert it to float.")
    return found


def without_repeated_effects(function, what):
    """A derivative without the effects of the function, which has been called at the same primals already."""
    acts_once(function.body, what)
    function.body = drop_dead(function.body, function.result, again=True)
    return function


class Vjp(Transform):
    """(dy, x, ...) -> the adjoints of x, ...; dy is the adjoint of the result."""

    prefix = "vjp"

    def __init__(self, aux=False, again=False, valued=False):
        self.aux, self.again = aux, again       # again: the function has been called, effects included
        self.valued = valued                    # only the value, as reverse mode computes it

    def names(self, names):
        return [fresh("dy", names), *names]

    def split(self, reader, args):
        return args[1:], args[:1]

    def wanted(self, reader, base, args, words):
        self.places, self.primals = differentiated("vjp", base, args, caller_of(reader)), len(args)
        return self.places

    def apply(self, engine, function, wrt):
        self.about = function.about
        if self.aux:
            check_pair(function.result, function, caller_of(engine.reader))
        result = function.result.items[0] if self.aux else function.result
        self.leaves = []
        seed = self.seeds = self.seed(result)
        made = engine.reverse(function, wrt, f"vjp_{function.label}", seed=seed, many=True, value=self.valued,
                              aux=self.aux)
        made.params = [*made.params, *(Param(v.hint, v) for v in self.leaves)]
        if self.valued:
            made.result = made.result.items[0].items[0] if self.aux else made.result.items[0]
            return without_repeated_effects(made, "gs.vjp")
        adjoints = dict(zip(self.places, (made.result.items[0] if self.aux else made.result).items))
        made.result = Pack("tuple", tuple(adjoints.get(k, Const(None)) for k in range(self.primals)))
        return without_repeated_effects(made, "gs.vjp") if self.again else made

    def seed(self, result):
        if isinstance(result, Pack):
            return Pack(result.kind, tuple(self.seed(i) for i in result.items), result.keys, result.cls)
        fact = fact_of(result)
        if isinstance(fact, Sequence):
            var = Var("dy", fact, ADJOINT)
        elif isinstance(fact, Array) and fact.kind in "fc":
            var = Var("dy", Sweep.whole_fact(result) if isinstance(result, Var) else fact, ADJOINT)
        else:
            return None
        self.leaves.append(var)
        return var

    def extra_operands(self, reader, made, extra, wrt):
        found = []

        def visit(value, seed):
            value = settle(reader, value)
            if isinstance(seed, Pack):
                for v, s in zip(in_order(seed, value), seed.items):
                    visit(v, s)
            elif seed is not None:
                found.append(as_operand(reader, value))
        check_fit(fact_of_value(self.seeds), fact_of_value(extra[0]), "the result", "the adjoint",
                  place_of_result(self.about, caller_of(reader)))
        visit(extra[0], self.seeds)
        return found


class Jvp(Transform):
    """(x, ..., x_dot, ...) -> (y, y_dot)"""

    prefix = "jvp"

    def __init__(self, tangent_only=False, aux=False, again=False, valued=False):
        self.tangent_only, self.aux, self.again = tangent_only, aux, again
        self.valued = valued                    # only the value, as forward mode computes it

    def names(self, names):
        out = list(names)
        for n in names:
            out.append(fresh(f"{n}_dot", out))
        return out

    def split(self, reader, args):
        half = len(args) // 2
        if len(args) != 2 * half:
            raise KindError(f"each primal needs a tangent; {len(args)} arguments are given", caller_of(reader),
                            "Give the primals, then as many tangents.")
        return args[:half], args[half:]

    def wanted(self, reader, base, args, words):
        return differentiated("jvp", base, args, caller_of(reader))

    def apply(self, engine, function, wrt):
        self.kept, self.about = wrt, function.about
        if self.aux:
            check_pair(function.result, function, caller_of(engine.reader))
            function = dataclasses.replace(function, result=function.result.items[0])
        function.body = drop_dead(function.body, function.result)       # dead code may have no tangent rule
        made = engine.forward(function, leaves_of(wrt), f"jvp_{function.label}", not self.tangent_only)
        if self.valued:
            made.result = made.result.items[0]
        return without_repeated_effects(made, "gs.linearize") if self.again else made

    def with_zeros(self, reader, primals, env, k, extra):
        """Tangent number k, with an array of zeros where a rule was given the number zero for an array without one."""
        def visit(primal, tangent):
            if isinstance(primal, Struct) and isinstance(tangent, Struct) and primal.keys == tangent.keys and \
                    len(primal.items) == len(tangent.items):
                items = [visit(p, t) for p, t in zip(primal.items, tangent.items)]
                same = all(a is b for a, b in zip(items, tangent.items))
                return tangent if same else Struct(tangent.kind, items, tangent.keys, tangent.cls)
            if isinstance(tangent, Const) and type(tangent.value) is float and tangent.value == 0.0 and \
                    isinstance(primal, Var) and isinstance(primal.fact, Array) and primal.fact.dims:
                return reader.build.apply(np.zeros_like, env[primal])
            return tangent
        return visit(primals[k], extra[k])

    def extra_operands(self, reader, made, extra, wrt):
        out = []

        def visit(primal, tangent):
            if isinstance(primal, Struct) and primal.whole is None:
                for p, t in zip(primal.items, in_order(primal, settle(reader, tangent))):
                    visit(p, t)
            elif isinstance(primal, Struct) or isinstance(primal, Var) and primal.fact.differentiable:
                out.append(as_operand(reader, tangent))
        caller, names = caller_of(reader), parameter_names(self.about, len(extra))
        for primal, k in zip(self.kept, wrt):
            if isinstance(k, int):
                check_fit(fact_of_value(primal), fact_of_value(extra[k]), names[k], "the tangent",
                          place_of(self.about, names[k], caller))
            visit(primal, extra[k])
        return out


class Value(Transform):
    """The value of the function, whose writes into its arguments do not reach the caller's arrays."""

    def __init__(self, prefix):
        self.prefix = prefix            # the transformation that needs the value

    def wanted(self, reader, base, args, words):
        return [*range(len(args)), *words]

    def apply(self, engine, function, wrt):
        return function


class Identity(Transform):
    """The function itself, as jit compiles it."""

    prefix = "jit"

    def read(self, reader, base, args, words):
        value = enter(reader, base, args, words)
        plain = isinstance(base, types.FunctionType)        # a derivative that it calls sets reader.label, too
        reader.context.label = label_of(base) if plain else reader.context.label or label_of(base)
        return value


def label_of(base: Any) -> str:
    return _label(base)


def leaves_of(values: Iterable) -> list:
    """The differentiable variables in arguments; a container that is held in one variable counts as one."""
    out = []
    for v in values:
        if isinstance(v, Struct):
            if v.whole is not None:
                out.append(v.whole)
            else:
                out += leaves_of(v.items)
        elif isinstance(v, Var) and v.fact.differentiable:
            out.append(v)
    return out


def differentiable(value):
    if isinstance(value, Struct):
        return any(differentiable(i) for i in value.items)
    fact = getattr(value, "fact", None)
    if fact is None and isinstance(value, Const):
        fact = fact_of(value)
    return bool(getattr(fact, "differentiable", False))


def parameter_names(base: Any, count: int) -> list[str]:
    """Names for `count` positional arguments of a callable."""
    if isinstance(base, FunctionValue):
        args = base.node.args
        names = [a.id for a in [*args.posonlyargs, *args.args]]
        vararg = args.vararg.id if args.vararg else "arg"
    else:
        own = getattr(base, "parameter_names", None)
        if own is not None:
            return own(count)
        try:
            parameters = list(inspect.signature(base).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        vararg = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "arg")
    return [*names[:count], *(f"{vararg}_{k}" for k in range(count - len(names)))]

