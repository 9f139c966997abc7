# SPDX-License-Identifier: Apache-2.0
"""Transformations as records: grad, vjp and jvp, and jit, which transforms nothing.

Each says how the arguments of the transformed function split into primals and further arguments (tangents, adjoints),
which of them are differentiated, and how its normal form is made from that of the function.
"""
import inspect
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.form import ADJOINT, Const, Function, Pack, Param, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, holds_numbers, is_function, spell
from gradscribe.ast_transform.passes.described import AS_ARRAY, fact_of
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.passes.vjp.sweep import Sweep
from gradscribe.ast_transform.reader.derivatives import Call, _label, call_derived, enter
from gradscribe.ast_transform.reader.operands import as_operand, settle
from gradscribe.ast_transform.reader.outer_state import acts_once
from gradscribe.ast_transform.reader.states import Reader
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


def only_primals(reader, args):
    return args, []


@dataclass(frozen=True, eq=False)
class Transform:
    """A transformation: its settings, and the functions in which transformations differ.

    prefix: of the transformed function's name
    settings: a tuple, which the functions below are given
    reads(reader, transform, base, args, words): the value of a call, as `read`
    split(reader, args): the arguments of the function, and further ones: tangents or adjoints
    names(names): the parameter names of the transformed function, from those of the function
    wanted, derived: see `call_derived`
    """
    prefix: str
    settings: Any = ()
    reads: Callable = call_derived
    split: Callable = only_primals
    names: Callable = list
    wanted: Callable | None = None
    derived: Callable | None = None

    def read(self, reader, base, args, words):
        """The value of transform(base)(*args, **words) in the function that is being read."""
        return self.reads(reader, self, base, args, words)


def fresh(name: str, taken: Iterable) -> str:
    """A name that is not taken: nested transformations have, for instance, an adjoint of an adjoint."""
    free, k = name, 0
    while free in taken:
        k += 1
        free = f"{name}_{k}"
    return free


# grad

class Gradient(NamedTuple):
    """The settings of grad and of Jacobians."""
    argnums: Any = 0
    argnames: Any = None
    value: bool = False
    aux: bool = False
    holomorphic: bool = False
    explicit: bool = False              # argnums were given, not left at their default

    @property
    def many(self) -> bool:
        """Whether the result is a tuple, with one derivative for each argument."""
        return isinstance(self.argnums, (tuple, list)) and (self.argnames is None or self.explicit) or \
            self.argnames is not None and (not isinstance(self.argnames, str) or self.explicit)


def grad(*settings: Any, **more: Any) -> Transform:
    """The gradient of a scalar function, alone or with its value; the settings are those of `Gradient`."""
    made = Gradient(*settings, **more)
    return Transform("value_and_grad" if made.value else "grad", made, wanted=grad_places, derived=gradient)


def grad_places(reader: Reader | None, settings: Gradient, base: Any, args: list, words: dict[str, Any]) -> list:
    """The places of the arguments that argnums and argnames choose."""
    argnums, argnames, count = settings.argnums, settings.argnames, len(args)
    numbers = []
    if argnames is None or settings.explicit:
        numbers = list(argnums) if isinstance(argnums, (tuple, list)) else [argnums]
    out = []
    for k in numbers:
        if not -count <= k < count:
            raise KindError(
                f"argnums {k} is out of range: {count} positional argument{'s' * (count != 1)} given",
                place_of(base, None, caller_of(reader)),
                "Arguments passed by keyword are named by argnames.",
            )
        out.append(k % count)
    names = [] if argnames is None else [argnames] if isinstance(argnames, str) else argnames
    if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
        raise KindError(f"argnames must be a name or a sequence of names, not {argnames!r}")
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
    return out


def gradient(reader, settings, call):
    """The gradient of the function that is called."""
    function, caller = call.function, caller_of(reader.engine.reader)
    names = parameter_names(function.about, 1 + max((k for k in call.places if isinstance(k, int)), default=0))
    for value, k in zip(call.wrt, call.places):
        check_inputs(value, names[k] if isinstance(k, int) else k, "grad", settings.holomorphic, function.about, caller)
    result = function.result
    if settings.aux:
        check_pair(result, function, caller)
        result = result.items[0]
    check_scalar(result, function, settings.holomorphic, caller)
    label = f"{'value_and_grad' if settings.value else 'grad'}_{function.label}"
    return reader.engine.reverse(function, call.wrt, label, value=settings.value, aux=settings.aux,
                                 many=settings.many), list


# vjp and jvp

def refuse_objects(label, base, args, caller):
    """Raises KindError for an object among the arguments: it is static, so its attributes have no derivative."""
    for name, v in zip(parameter_names(base, len(args)), args):
        if isinstance(v, Const) and hasattr(v.value, "__dict__") and not isinstance(
                v.value, (type, types.ModuleType)) and (not callable(v.value) or not is_function(v.value) and
                                                        holds_numbers(v.value)):
            raise KindError(f"{label} needs floating-point arguments; {name} is {spell(fact_of(v))}",
                            place_of(base, name, caller), AS_ARRAY if isinstance(v.value, np.ndarray) else
                            f"{AS_PARTS} Or let the function read it from outside.")


def differentiated(label: str, reader: Reader, settings: Any, base: Any, args: list, words: dict) -> list:
    """The places of the arguments that have derivatives; KindError if a user gives numbers and none of them has one."""
    caller = caller_of(reader)
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


class Linear(NamedTuple):
    """The settings of vjp and jvp."""
    aux: bool = False
    again: bool = False                 # the function has been called, effects included
    valued: bool = False                # only the value, as the mode computes it
    tangent_only: bool = False          # jvp: without the value


def vjp(aux: bool = False, again: bool = False, valued: bool = False) -> Transform:
    """(dy, x, ...) -> the adjoints of x, ...; dy is the adjoint of the result."""
    return Transform("vjp", Linear(aux, again, valued), split=dy_apart, names=dy_first,
                     wanted=partial(differentiated, "vjp"), derived=pullback)


def dy_apart(reader, args):
    return args[1:], args[:1]


def dy_first(names):
    return [fresh("dy", names), *names]


def pullback(reader: Reader, settings: Linear, call: Call) -> tuple[Function, Callable[[], list]]:
    """The pullback of the function that is called."""
    leaves: list[Var] = []
    function, aux = call.function, settings.aux
    if aux:
        check_pair(function.result, function, caller_of(reader.engine.reader))
    seeds = seed_of(function.result.items[0] if aux else function.result, leaves)
    made = reader.engine.reverse(function, call.wrt, f"vjp_{function.label}", seed=seeds, many=True,
                                 value=settings.valued, aux=aux)
    made.params = [*made.params, *(Param(v.hint, v) for v in leaves)]
    if settings.valued:
        made.result = made.result.items[0].items[0] if aux else made.result.items[0]
    else:
        adjoints = dict(zip(call.places, (made.result.items[0] if aux else made.result).items))
        made.result = Pack("tuple", tuple(adjoints.get(k, Const(None)) for k in range(len(call.primals))))

    def operands():
        check_fit(fact_of_value(seeds), fact_of_value(call.extra[0]), "the result", "the adjoint",
                  place_of_result(function.about, caller_of(reader)))
        return list(adjoint_operands(reader, call.extra[0], seeds))
    return without_repeated_effects(made, "gs.vjp") if settings.valued or settings.again else made, operands


def seed_of(result, leaves):
    """The adjoint of a result, by its structure; `leaves` gets the variables in it."""
    if isinstance(result, Pack):
        return Pack(result.kind, tuple(seed_of(i, leaves) for i in result.items), result.keys, result.cls)
    fact = fact_of(result)
    if isinstance(fact, Sequence):
        var = Var("dy", fact, ADJOINT)
    elif isinstance(fact, Array) and fact.kind in "fc":
        var = Var("dy", Sweep.whole_fact(result) if isinstance(result, Var) else fact, ADJOINT)
    else:
        return None
    leaves.append(var)
    return var


def adjoint_operands(reader, value, seed):
    """The operands for the variables in the adjoint of a result, from the given adjoint."""
    value = settle(reader, value)
    if isinstance(seed, Pack):
        for v, s in zip(in_order(seed, value), seed.items):
            yield from adjoint_operands(reader, v, s)
    elif seed is not None:
        yield as_operand(reader, value)


def jvp(tangent_only: bool = False, aux: bool = False, again: bool = False, valued: bool = False) -> Transform:
    """(x, ..., x_dot, ...) -> (y, y_dot)"""
    return Transform("jvp", Linear(aux, again, valued, tangent_only),
                     split=partial(halves, "tangent", "tangents"), names=partial(with_second_half, "_dot"),
                     wanted=partial(differentiated, "jvp"), derived=pushforward)


def halves(one: str, many: str, reader: Any, args: list) -> tuple[list, list]:
    """The primals and what follows each of them, a tangent or a series."""
    half = len(args) // 2
    if len(args) != 2 * half:
        raise KindError(f"each primal needs a {one}; {len(args)} arguments are given", caller_of(reader),
                        f"Give the primals, then as many {many}.")
    return args[:half], args[half:]


def with_second_half(ending: str, names: list[str]) -> list[str]:
    """The names of the parameters, then each again with an ending."""
    out = list(names)
    for n in names:
        out.append(fresh(f"{n}{ending}", out))
    return out


def pushforward(reader, settings, call):
    """The tangent of the function that is called, with its value unless tangent_only."""
    function = call.function
    if settings.aux:
        check_pair(function.result, function, caller_of(reader.engine.reader))
        function = replace(function, result=function.result.items[0])
    function.body = drop_dead(function.body, function.result)       # dead code may have no tangent rule
    made = reader.engine.forward(function, leaves_of(call.wrt), f"jvp_{function.label}", not settings.tangent_only)
    if settings.valued:
        made.result = made.result.items[0]

    def operands():
        extra = [with_zeros(reader, p, t, call.env) for p, t in zip(call.primals, call.extra)]
        caller, names, out = caller_of(reader), parameter_names(function.about, len(extra)), []
        for primal, k in zip(call.wrt, call.places):
            check_fit(fact_of_value(primal), fact_of_value(extra[k]), names[k], "the tangent",
                      place_of(function.about, names[k], caller))
            out += tangent_operands(reader, primal, extra[k])
        return out
    return without_repeated_effects(made, "gs.linearize") if settings.again else made, operands


def with_zeros(reader, primal, tangent, env):
    """A tangent, with an array of zeros where a rule was given the number zero for an array without one."""
    if isinstance(primal, Struct) and isinstance(tangent, Struct) and primal.keys == tangent.keys and \
            len(primal.items) == len(tangent.items):
        items = [with_zeros(reader, p, t, env) for p, t in zip(primal.items, tangent.items)]
        same = all(a is b for a, b in zip(items, tangent.items))
        return tangent if same else Struct(tangent.kind, items, tangent.keys, tangent.cls)
    if isinstance(tangent, Const) and type(tangent.value) is float and tangent.value == 0.0 and \
            isinstance(primal, Var) and isinstance(primal.fact, Array) and primal.fact.dims:
        return reader.build.apply(np.zeros_like, env[primal])
    return tangent


def tangent_operands(reader, primal, tangent):
    """The operands for the tangents of the variables in a primal."""
    if isinstance(primal, Struct) and primal.whole is None:
        for p, t in zip(primal.items, in_order(primal, settle(reader, tangent))):
            yield from tangent_operands(reader, p, t)
    elif isinstance(primal, Struct) or isinstance(primal, Var) and primal.fact.differentiable:
        yield as_operand(reader, tangent)


# without a derivative

def value_only(prefix: str) -> Transform:
    """The value, as that transformation needs it: writes into arguments do not reach the caller's arrays."""
    return Transform(prefix, wanted=every_place, derived=unchanged)


def every_place(reader, settings, base, args, words):
    return [*range(len(args)), *words]


def unchanged(reader, settings, call):
    return call.function, list


def identity() -> Transform:
    """The function itself, as jit compiles it."""
    return Transform("jit", reads=read_plainly)


def read_plainly(reader: Reader, transform: Transform, base: Any, args: list, words: dict[str, Any]) -> Any:
    """The value of base(*args, **words)."""
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


def differentiable(value: Any) -> bool:
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

