# SPDX-License-Identifier: Apache-2.0
"""Jacobians: jacfwd and jacrev as vmap of a derivative in one direction over all directions.

Forward mode takes one direction for each entry of the argument, reverse mode one for each entry of the result.
"""
import functools
from dataclasses import replace
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack
from gradscribe.ast_transform.core.kinds import Array, spell
from gradscribe.ast_transform.mapping import vmap
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.derivatives import call_derived
from gradscribe.ast_transform.reader.draws import drawn_once
from gradscribe.ast_transform.reader.operands import as_operand, settle, spelled_value
from gradscribe.ast_transform.reader.outer_state import acts_once
from gradscribe.ast_transform.reader.registered import as_children, as_seen_by_caller
from gradscribe.ast_transform.reader.values import Derived, Section, Struct
from gradscribe.ast_transform.requirements import caller_of, check_inputs, place_of_result
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import (
    Gradient,
    Transform,
    grad_places,
    jvp,
    label_of,
    leaves_of,
    parameter_names,
    value_only,
    vjp,
)


def jacobian(argnums: Any = 0, forward: bool = True, aux: bool = False, holomorphic: bool = False) -> Transform:
    """The derivative of every entry of the result by every entry of the argument: result axes first."""
    return Transform("jacfwd" if forward else "jacrev", Gradient(argnums, None, False, aux, holomorphic, True),
                     reads=read_jacobian)


def read_jacobian(reader, transform, base, args, words):
    """The Jacobian of base(*args, **words)."""
    settings, prefix = transform.settings, transform.prefix
    args, before = [settle(reader, as_children(reader, a)) for a in args], reader.draws.drawn
    words = {k: as_children(reader, v) for k, v in words.items()}
    since = len(reader.build.block)
    y = as_children(reader, settle(reader, value_only(prefix).read(reader, base, args, words)))
    drawn_once(reader, before, "a Jacobian")
    acts_once(reader.build.block[since:], "a Jacobian")
    aux = None
    if settings.aux:
        y, aux = settle(reader, y.items[0]), y.items[1]
    places = grad_places(reader, settings, base, args, words)
    names = parameter_names(base, len(args))
    for k in places:
        check_inputs(args[k], names[k], prefix, settings.holomorphic, base, caller_of(reader))

    front = (0,) if settings.aux else ()

    def by_argument(place, value, result):
        """The derivatives of one leaf of the result with respect to each leaf of an argument."""
        return each_leaf(reader, args[place], lambda x, path: x if _is_none(x) else by_leaf(
            reader, transform, Section(base, args, words, place, path, front + result), x, value))

    if settings.many:
        out = each_leaf(reader, y, lambda value, result: Struct(
            "tuple", [by_argument(p, value, result) for p in places]))
    else:
        out = each_leaf(reader, y, lambda value, result: by_argument(places[0], value, result))
    reader.context.label = f"{prefix}_{label_of(base)}"
    return as_seen_by_caller(reader, Struct("tuple", [out, aux]) if settings.aux else out)


def by_leaf(reader, transform, section, x, y):
    """The derivative of a leaf of the result by a leaf of an argument."""
    fx, fy, forward = fact_of(x), fact_of(y), transform.prefix == "jacfwd"
    if not isinstance(fy, Array):
        raise KindError(
            f"{transform.prefix} needs a function that returns arrays, not {spelled_value(reader, y)}",
            place_of_result(section.base, caller_of(reader)),
            "Return numbers, arrays or containers of them.",
        )
    if fy.kind == "c" and not transform.settings.holomorphic:
        raise KindError(
            f"{transform.prefix} needs a real result, not {spell(fy)}",
            place_of_result(section.base, caller_of(reader)),
            "Pass holomorphic=True, or take np.real.",
        )
    if fy.kind in "iub":
        shape = [reader.build.length(v, k) for v, fact in ((y, fy), (x, fx)) for k in range(fact.rank)]
        return reader.build.apply(np.zeros, Pack("tuple", tuple(shape)))
    derivative = Derived(jvp(tangent_only=True, again=True) if forward else first_adjoint(), section)
    size, basis = directions(reader, x if forward else y, args_of(section))
    if size is None:
        return derivative.transform.read(reader, section, [x, basis] if forward else [basis, x], {})
    if forward:
        columns = as_operand(reader, vmap((None, 0)).read(reader, derivative, [x, basis], {}))
        out = reader.build.apply(np.transpose, columns) if fy.rank == 1 else reader.build.apply(
            np.moveaxis, columns, Const(0), Const(-1)) if fy.rank else columns
    else:
        out = vmap((0, None)).read(reader, derivative, [basis, x], {})
    if (fx if forward else fy).rank > 1:
        lengths = [n for v in (y, x) for n in lengths_of(reader, v, args_of(section))]
        out = reader.build.apply(np.reshape, as_operand(reader, out), Pack("tuple", tuple(lengths)))
    dtype = np.result_type(np.dtype(fx.dtype), np.dtype(fy.dtype))
    return reader.build.cast(out, dtype) if fact_of(out).dtype != dtype else out


def first_adjoint() -> Transform:
    """The adjoint of the only argument of a function that has been called."""
    return replace(vjp(again=True), reads=read_first_adjoint)


def read_first_adjoint(reader, transform, base, args, words):
    return settle(reader, call_derived(reader, transform, base, args, words).items[0])


def directions(reader, value, arguments):
    """(number of entries of a value, a basis of unit directions for them); (None, 1) for a number."""
    fact = fact_of(value)
    if not fact.rank:
        return None, Const(1.0)
    lengths = lengths_of(reader, value, arguments)
    size = functools.reduce(reader.build.multiply, lengths)
    words = {} if fact.dtype == np.float64 else {"dtype": Const(np.dtype(fact.dtype))}
    basis = reader.build.apply(np.eye, size, **words)
    if fact.rank > 1:
        basis = reader.build.apply(np.reshape, basis, Pack("tuple", (size, *lengths)))
    return size, basis


def each_leaf(reader, value, leaf, path=()):
    """A container like `value` with leaf(part, path) in place of each part; None inside a container stays None."""
    value = settle(reader, value)
    if path and _is_none(value):
        return value
    if isinstance(value, Struct):
        items = [each_leaf(reader, part, leaf, (*path, k)) for k, part in enumerate(value.items)]
        return Struct(value.kind, items, value.keys, value.cls)
    return leaf(value, path)


def args_of(section):
    return leaves_of([*section.args, *section.words.values()])


def lengths_of(reader, value, arguments):
    """The lengths of a value, read from an argument of the same length where there is one: a result whose lengths are
    known from arguments need not be computed.
    """
    def one(k, length):
        for v in arguments:
            for n, d in enumerate(v.fact.dims if isinstance(v.fact, Array) else ()):
                if d.same(length):
                    return reader.build.length(v, n)
        return reader.build.length(value, k)
    return [one(k, d) for k, d in enumerate(fact_of(value).dims)]


def _is_none(value):
    """Whether a value is None, which has no derivative: the result has None in its place, as trees have in JAX."""
    return isinstance(value, Const) and value.value is None
