# SPDX-License-Identifier: Apache-2.0
"""Expands compact adjoints to the shape of their value, and sums adjoints over the axes of broadcast operands."""
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Function,
    Let,
    Pack,
    Var,
)
from gradscribe.ast_transform.core.kinds import UNIT, Array, Length, Listed, Sequence
from gradscribe.ast_transform.core.operations import as_array, shape_of
from gradscribe.ast_transform.core.rule import Rule
from gradscribe.ast_transform.passes.anf import Builder
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.runtime.broadcasting import unbroadcast

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep

# -- whole adjoints

def expanded(sweep: "Sweep", value: Var | Const | Pack, var: Var, hint: str | None = None) -> Var | Const | Pack:
    """An adjoint broadcast to the shape of its value."""
    fact, want = fact_of(value), var.fact
    if not want.dims:
        return value
    if is_whole(fact, want.dims) or isinstance(want, Listed) and fact.rank == want.rank and \
            not fact.dims[0].is_unit and is_whole(fact.shaped(fact.dims[1:]), want.dims[1:]):
        return value                # the adjoint of a list has its length
    dtype = np.dtype(sweep.whole_fact(var).dtype)
    hint = hint or adjoint_hint(var)
    if fact.rank == 0:
        shape = shape_operand(sweep, want, var in sweep.engine.analyses.unset) or shape_of_listed(sweep, var)
        whole = Array(dtype, want.dims)
        if isinstance(value, Const) and value.value in (0, 1):
            like, plain = (np.zeros_like, np.zeros) if value.value == 0 else (np.ones_like, np.ones)
            if shape is None:
                return sweep.build.apply(like, var, hint=hint, fact=whole)
            return created(sweep, plain, (shape,), dtype, whole, hint)
        if shape is None:
            return sweep.build.apply(np.full_like, var, value, hint=hint, fact=whole)
        return created(sweep, np.full, (shape, value), dtype, whole, hint)
    shape = shape_operand(sweep, want, var in sweep.engine.analyses.unset) or \
        Pack("tuple", tuple(length_of_axis(sweep, var, k) for k in range(want.rank)))
    return sweep.build.apply(np.broadcast_to, value, shape, hint=hint, fact=Array(fact.dtype, want.dims))


def length_of_axis(sweep, var, k):
    """The length of an axis; an array made of an empty list has only the first axis."""
    first, length = var.fact.dims[0].normal().symbol, var.fact.dims[k]
    found = sweep.engine.length_of(length, True) if k and first is not None and first.size is None else None
    if found is None:
        return sweep.build.length(var, k)
    return sweep.build.let("n", found, Array(int, (), length)) if isinstance(found, Apply) else found


def created(sweep: "Sweep", function: Callable, args: tuple, dtype: np.dtype, fact: Array, hint: str) -> Var:
    of_floats = len(args) == 1 or fact_of(args[1]).kind == "f"         # the fill value decides the dtype
    words = {} if dtype == np.float64 and of_floats else {"dtype": Const(dtype)}
    return sweep.build.apply(function, *args, hint=hint, fact=fact, **words)


def zero_adjoint(sweep: "Sweep", var: Var, loose: bool = False) -> Var | Const | Pack:
    """A zero adjoint of the shape of its value; loose: it may be a number."""
    fact = var.fact
    if isinstance(fact, Sequence):
        return Pack(fact.kind, tuple(zero_of(e) for e in fact.elements), fact.keys, fact.cls)
    if not fact.dims or loose:
        return Const(0.0)
    if var in sweep.engine.analyses.unset:
        return zero_of_unset(sweep, var)
    shape = shape_of_listed(sweep, var)
    if shape is not None:
        return created(sweep, np.zeros, (shape,), np.dtype(fact.dtype), sweep.whole_fact(var), adjoint_hint(var))
    words = {"dtype": Const(np.dtype(fact.dtype))} if var in sweep.engine.analyses.complex_by_path else {}
    return sweep.build.apply(np.zeros_like, var, hint=adjoint_hint(var), fact=sweep.whole_fact(var), **words)


def shape_of_listed(sweep: "Sweep", var: Var) -> Var | Const | Pack | None:
    """The shape of a list's adjoint, since an empty list has no shape or dtype of elements; None for other values."""
    fact = var.fact
    if not isinstance(fact, Listed):
        made = sweep.made_by.get(var)
        if fact.rank == 1 or getattr(made, "function", None) is not as_array:
            return None
    if fact.rank == 1:
        return None if fact.dtype == np.float64 else sweep.build.length(var, 0)
    rest = shape_operand(sweep, fact.shaped(fact.dims[1:]), True)
    return None if rest is None else Pack("tuple", (sweep.build.length(var, 0), *rest.items))


def zero_of_unset(sweep, var):
    """The zero adjoint of a value that may be unset: made from its shape, without reading it."""
    zero = zero_by_shape(sweep.engine.function, sweep.build, sweep.whole_fact(var), adjoint_hint(var))
    if zero is None:
        raise LanguageError(f"{var.hint} may have no value here, and its gradient needs the shape of one",
                            sweep.build.origin, f"Set {var.hint} on every path, or before the loop.")
    return zero


def shape_operand(sweep, fact, unset=False):
    """The shape of a value inside loops, from the lengths of arguments; None if it is to be read from the value."""
    if sweep.inside is None and not unset:
        return None
    lengths = []
    for d in fact.dims:
        n = d.normal()
        if n.symbol is None:
            lengths.append(Const(n.offset))
            continue
        found = sweep.engine.length_of(d, unset)
        if found is None:
            return None
        lengths.append(sweep.build.let("n", found, Array(int, (), d)) if isinstance(found, Apply) else found)
    return Pack("tuple", tuple(lengths))


def one_adjoint(sweep: "Sweep", rule: Rule, dy: Var | Const | Pack | None, target: Var) -> Var | Const | Pack:
    """The adjoint of one of several results: expanded, or a number if the rule accepts one."""
    if dy is None and rule.options.get("partial"):
        return Const(None)              # the rule handles results that are not used
    if not rule.options.get("full_rank"):
        return zero_adjoint(sweep, target) if dy is None else expanded(sweep, dy, target)
    if dy is None or isinstance(dy, Const):
        return Const(0.0 if dy is None else float(dy.value))
    return full_rank(sweep, dy, target.fact) if fact_of(dy).rank else dy


def full_rank(sweep: "Sweep", value: Var | Const | Pack, whole: Array) -> Var | Const | Pack:
    """An adjoint with as many axes as its value; added axes have length one."""
    fact = fact_of(value)
    if fact.rank == whole.rank:
        return value
    if fact.rank == 0:
        shape = Pack("tuple", (Const(1),) * whole.rank)
        dtype = np.dtype(float_dtype(whole))
        return created(sweep, np.full, (shape, value), dtype, Array(dtype, (UNIT,) * whole.rank), "t")
    index = (None,) * (whole.rank - fact.rank)
    return sweep.build.item(value, Const(index if len(index) > 1 else None), "t")




def float_dtype(fact):
    return float if fact.weak and fact.kind != "c" else fact.dtype


def unbroadcast_adjoint(sweep: "Sweep", value: Var | Const, whole: tuple, var: Var,
                        args: Iterable = ()) -> Var | Const:
    """The adjoint of a broadcast operand: summed over the axes along which it was repeated, then negated if need be."""
    flip, bare = sweep.build.sign_of(value)
    summed = summed_as(sweep, bare, whole, var, args)
    return value if summed is bare else sweep.build.negative(summed) if flip else summed


def summed_as(sweep, value, whole, var, args):
    fact, want = fact_of(value), var.fact
    whole = (UNIT,) * (want.rank - len(whole)) + tuple(whole)
    lead = len(whole) - want.rank
    held = (UNIT,) * (len(whole) - fact.rank) + fact.dims
    axes = list(range(lead))
    for k in range(lead, len(whole)):
        mine, all_ = want.dims[k - lead], whole[k]
        if mine.is_unit:
            if not all_.is_unit:
                axes.append(k)
        elif not (mine.same(all_) or mine.many or all_.is_unit):
            value = spread_to(sweep, value, whole, args)
            return sweep.build.apply(
                unbroadcast, value, var, hint=adjoint_hint(var), fact=Array(fact_of(value).dtype, want.dims)
            )
    if any(not (held[k].is_unit or held[k].many or held[k].same(whole[k])) for k in axes):
        value = spread_to(sweep, value, whole, args)
        fact, held = fact_of(value), tuple(whole)
    for k in axes:
        if held[k].is_unit and not whole[k].is_unit:            # n equal terms
            value = times_length(sweep, value, length_operand(sweep, whole[k], k - len(whole), args))
    summed = [k for k in axes if not held[k].is_unit]
    missing = len(whole) - fact.rank
    if not summed:
        return value
    if len(summed) == fact.rank and want.rank == 0:
        return sweep.build.apply(np.sum, value, hint="t")
    leading = [k - missing for k in summed if k < lead]
    if leading:
        value = sweep.build.apply(
            np.sum, value, axis=Const(leading[0] if len(leading) == 1 else tuple(leading)), hint="t"
        )
    inner = tuple(k - lead for k in summed if k >= lead)
    if inner:
        shift = want.rank - fact_of(value).rank
        inner = tuple(k - shift for k in inner)
        value = sweep.build.apply(
            np.sum, value, axis=Const(inner[0] if len(inner) == 1 else inner), keepdims=Const(True), hint="t"
        )
    return value


def times_length(sweep, value, length):
    if isinstance(value, Const) and isinstance(length, Const):
        return Const(float(value.value) * length.value)
    if isinstance(value, Const):
        value = Const(float(value.value)) if not isinstance(value.value, complex) else value
        return sweep.build.apply(operator.mul, value, length)
    return sweep.build.apply(operator.mul, value, length)


def spread_to(sweep, value, whole, args):
    """A compact value broadcast to the shape of a result, if it is not certain which axes an operand has."""
    fact = fact_of(value)
    if is_whole(fact, whole):
        return value
    shape = Pack("tuple", tuple(length_operand(sweep, d, k - len(whole), args) for k, d in enumerate(whole)))
    return sweep.build.apply(
        np.broadcast_to, value, shape, hint="t", fact=Array(np.dtype(float_dtype(fact)), tuple(whole))
    )


def length_operand(sweep, length, axis, args):
    """The length of a result's axis, read from an operand that has the same length."""
    n = length.normal()
    if n.symbol is None:
        return Const(n.offset)
    for a in args:
        if (
            isinstance(a, Var)
            and isinstance(a.fact, Array)
            and a.fact.rank >= -axis
            and a.fact.dims[axis].same(length)
        ):
            return sweep.build.length(a, a.fact.rank + axis)
    raise AssertionError("no operand has this length")


def is_whole(fact: Array, dims: tuple) -> bool:
    """Whether a value certainly has these lengths on all axes."""
    return fact.rank == len(dims) and all(a.same(b) or a.many or b.is_unit for a, b in zip(fact.dims, dims))


def adjoint_hint(var: Var) -> str:
    return f"d{var.hint}"


def length_of(function: Function, length: Length, late: bool = False) -> Var | Apply | None:
    """An operand or operation that gives a length, from the arguments of a function; None if there is none.

    late: at the end of the function, so that values that it makes on every path serve as well
    """
    made = (t for s in function.body if isinstance(s, Let) for t in s.targets if type(t.fact) is Array) if late else ()
    for v in [*(p.value for p in function.params), *made]:
        if isinstance(v, Var) and isinstance(v.fact, Array):
            if v.fact.length is not None and not v.fact.dims and v.fact.length.same(length):
                return v
            first = v.fact.dims[0].normal().symbol if v.fact.dims else None
            for k, d in enumerate(v.fact.dims):         # an array made of an empty list has one axis
                if d.same(length) and not (k and first is not None and first.size is None):
                    return Apply(shape_of, (v, Const(k)))
    return None


def length_beside(function: Function, length: Length) -> tuple[Apply, int] | None:
    """(operation, number): a length of an argument and how much longer this one is; None if there is none."""
    n = length.normal()
    if n.symbol is None:
        return None
    found = (d.normal() for p in function.params if isinstance(p.value, Var) and type(p.value.fact) is Array
             for d in p.value.fact.dims)
    base: Any = next((d for d in found if d.symbol is n.symbol), None)
    shown = None if base is None else length_of(function, base)
    return (shown, n.offset - base.offset) if isinstance(shown, Apply) else None


def zero_by_shape(function: Function, build: Builder, fact: Array, hint: str) -> Var | None:
    """An array of zeros whose shape comes from arguments; None if they do not have its lengths."""
    for p in function.params:
        twin = p.value
        if isinstance(twin, Var) and isinstance(twin.fact, Array) and twin.fact.dtype == fact.dtype and \
                twin.fact.rank == fact.rank and all(a.same(b) for a, b in zip(twin.fact.dims, fact.dims)):
            return build.apply(np.zeros_like, twin, hint=hint, fact=fact)
    lengths = [length_of(function, d, True) if d.normal().symbol else Const(d.normal().offset) for d in fact.dims]
    if None in lengths:
        return None
    lengths = [build.let("n", n, Array(int, (), d)) if isinstance(n, Apply) else n for n, d in zip(lengths, fact.dims)]
    words = {} if fact.dtype == np.float64 else {"dtype": Const(np.dtype(fact.dtype))}
    return build.apply(np.zeros, Pack("tuple", tuple(lengths)), hint=hint, fact=fact, **words)


def zero_of(fact):
    if isinstance(fact, Sequence):
        return Pack(fact.kind, tuple(zero_of(e) for e in fact.elements), fact.keys, fact.cls)
    return Const(0.0)


def in_its_dtype(sweep: "Sweep", value: Var | Const | Pack, fact: Any) -> Var | Const | Pack:
    """An adjoint in the dtype of its value, as carries, joins and writes need it."""
    if isinstance(value, Var) and isinstance(fact, Array) and isinstance(value.fact, Array):
        if fact.dims:
            return value if np.dtype(value.fact.dtype) == np.dtype(fact.dtype) else \
                sweep.converted(value, fact.dtype)
        if fact.weak:
            return sweep.in_python(value, fact)
        if fact.dtype != np.float64 and value.fact.weak:
            return sweep.converted(value, fact.dtype)
    return typed(value, fact, sweep.engine.analyses.narrow)


def typed(value: Var | Const | Pack, fact: Any, narrow: bool = False) -> Var | Const | Pack:
    """A literal in the dtype of its fact; narrow: doubles as np.float64, since they meet narrower numbers."""
    if isinstance(value, Const) and type(value.value) in (int, float) and isinstance(fact, Array) and not fact.dims:
        if fact.weak and fact.kind == "c":
            return Const(complex(value.value))
        plain = fact.weak or fact.dtype == np.float64 and not narrow
        return Const(float(value.value)) if plain else Const(fact.dtype.type(value.value))
    return value
