# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms of calls of known functions: by the part `batch` of the record, or entry by entry."""
import builtins
import inspect
import math
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Function, Let, Pack, Var, astray, operands, substituted
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.core.operations import as_array, both, either
from gradscribe.ast_transform.core.rule import SEQUENCE, ByExample
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.operations import aligned, op_as_array
from gradscribe.ast_transform.passes.vmap.state import Batch
from gradscribe.ast_transform.passes.vmap.varies import joined
from gradscribe.ast_transform.reader.operands import settle
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.source.diagnose import TransformError

ARRAYS = {                              # functions of Python numbers -> the equivalent functions of arrays
    operator.not_: np.logical_not, both: np.logical_and, either: np.logical_or,
    builtins.max: np.maximum, builtins.min: np.minimum,
    math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite,
}
OF_NUMBERS = {math.hypot: np.hypot}      # functions of math that share no record with NumPy's
CASTS = {float: float, int: int, complex: complex, bool: bool, operator.truth: bool}


def of_arrays(batch, value):
    """A call in which arrays replace lists that differ: the batch axis is first in arrays, second in lists."""
    env = {}
    for v in operands(value):
        if isinstance(v.fact, Listed) and batch.differs(v) and v not in env:
            env[v] = Var(v.hint, Array(np.dtype(v.fact.dtype), v.fact.dims))
            op_as_array(batch, Let((env[v],), None), Apply(as_array, (v,)))
            batch.varies.masks[env[v]] = True
    return substituted(value, env)


def by_rule(batch: Batch, step: Let, value: Any) -> None:
    function, first = value.function, step.targets[0]
    if isinstance(first.fact, Listed):
        raise ByExample(f"{spelled(function)} gives a list")
    value = of_arrays(batch, value)
    if isinstance(function, Function):
        raise ByExample(f"{function.label} is called for each" if function.custom.rule.mode == "each" else
                        f"{function.label} has a custom derivative")
    rule = rule_of(function)
    if function in CASTS and len(value.args) == 1:
        batch.define(first, batch.build.cast(batch.op(value.args[0]), np.dtype(CASTS[function]), first.hint))
        return
    part = None if rule is None else rule.parts.get("batch")
    if part is None and entrywise(function, rule):
        batch.define(first, entries(batch, function, rule, value, first.fact))
        return
    if rule is None or part is None:
        raise ByExample(f"{spelled(function)} has no form for a whole batch")
    given = given_to(batch, part, rule, value, first)
    try:
        made = settle(batch.reader, read_part(batch.reader, rule, "batch", given))
    except TransformError as error:                 # what the part cannot do, a loop can
        raise ByExample(str(error).splitlines()[0]) from None
    if len(step.targets) > 1:
        for target, item in zip(step.targets, made.items):
            batch.define(target, settle(batch.reader, item))
    elif isinstance(first.fact, Sequence):
        raise ByExample(f"{spelled(function)} gives several results")
    else:
        batch.define(first, made)


def given_to(batch, part, rule, value, first):
    """The arguments for a record's part `batch`, by name; first: the result of the call."""
    function, wanted = value.function, inspect.signature(part).parameters
    bound = dict(rule.signature.bind(*value.args, **dict(value.kwargs)).arguments)
    check_lists(batch, function, rule, bound)
    names = [n for n, node in bound.items() if any(map(batch.differs, atoms(node)))]
    given = {n: tuple(in_double(batch, function, batch.op(v)) for v in node) if isinstance(node, tuple) else
             in_double(batch, function, part_of(batch, node)) for n, node in bound.items()}
    given["first"] = next(iter(given.values()))
    if "shape" in bound and "shape" in wanted:
        given["shape"] = lengths_given(batch, bound["shape"], value, first)
    first_name = next(iter(bound))
    for n in bound:
        if n not in wanted and not (n == first_name and "first" in wanted):
            raise ByExample(f"{spelled(function)} with {n}= has no form for a whole batch")
    if "rank" in wanted:
        given["rank"] = Const(first.fact.rank)
    empty = inspect.Parameter.empty
    given.update((n, Const(p.default)) for n, p in rule.signature.parameters.items() if n not in given and
                 n in wanted and wanted[n].default is empty and p.default is not empty)
    if "count" in wanted:
        given["count"] = batch.count
    if "units" in wanted:
        given["units"] = tuple(Const(k) for k, d in enumerate(fact_of(value.args[0]).dims) if d.is_unit)
    given["flags"] = tuple(Const(batch.differs(v)) for node in bound.values() if isinstance(node, tuple) for v in node)
    given["batched"] = tuple(map(Const, names))
    return given


def check_lists(batch, function, rule, bound):
    """Raises ByExample where a list that differs between the examples is an argument that no array replaces."""
    if astray(bound, batch.differs):
        raise ByExample(f"a list inside a list differs in {spelled(function)}")
    if any(isinstance(node, Pack) and rule.takes(n) != SEQUENCE and n != "shape" and batch.differs(node)
           for n, node in bound.items()):
        raise ByExample(f"a list of places or counts differs in {spelled(function)}")


def lengths_given(batch, shape, value, target):
    """A shape as a tuple of lengths; computes a length of -1, which NumPy cannot if the batch is empty."""
    items = list(shape.items) if isinstance(shape, Pack) else [shape]
    if isinstance(shape, Const):
        items = [Const(n) for n in (shape.value if isinstance(shape.value, tuple) else (shape.value,))]
    if any(map(batch.differs, items)):
        raise ByExample("a shape differs")
    items = [batch.op(n) for n in items]
    for k, n in enumerate(items):
        if not isinstance(n, Const) or n.value != -1:
            continue
        known = batch.length_of(target.fact.dims[k])
        if known is None:
            known, given = Const(1), batch.op(value.args[0])
            for axis in range(1, fact_of(given).rank):
                known = batch.build.multiply(known, batch.build.length(given, axis))
            for other in [*items[:k], *items[k + 1:]]:
                if not isinstance(other, Const) or other.value != 1:
                    known = batch.build.apply(operator.floordiv, known, other)
        items[k] = known
    return tuple(items)


def part_of(batch, node):
    """An operand for a rule's part; either all parts of a list have the batch axis, or none."""
    if isinstance(node, (Pack, tuple)):
        mask = False
        for v in atoms(node):
            mask = joined(mask, batch.mask(v))
        return batch.whole(node, mask)
    return batch.op(node)


def entries(batch, function, rule, value, fact):
    """An elementwise call: operands of lower rank get the axes that they lack after the batch axis.

    Python bools are converted to ints, since True + True is 2 in Python, but True for arrays.
    """
    rank, numbers = fact.rank, [f for f in map(fact_of, value.args) if isinstance(f, Array)]
    function, called = ARRAYS.get(function, function), function
    if of_floats(function) and rule is not None:
        function = next((f for f in rule.functions if isinstance(f, np.ufunc)), OF_NUMBERS.get(function))
        if function is None:
            raise ByExample(f"{spelled(value.function)} is a function of one number")
    args = [aligned(batch, a, rank) for a in value.args]
    if fact.kind != "b" and len(numbers) == len(args) and all(f.kind == "b" and f.weak for f in numbers):
        args = [batch.build.cast(a, np.dtype(int)) if isinstance(a, Var) else a for a in args]
    args = [in_double(batch, called, a) for a in as_met(batch, called, rule, value.args, args)]
    words = {k: aligned(batch, a, rank) for k, a in value.kwargs}
    return batch.build.call(function, tuple(args), words)


def as_met(batch, function, rule, given, args):
    """The operands, with Python numbers that differ cast to the dtype that NumPy gives them beside the others: the
    batch of such a number is an array of doubles, which would widen float32.

    Source: NEP 50, promotion of Python numbers.
    """
    facts = [fact_of(a) for a in given]
    if of_floats(function) or not all(isinstance(f, Array) for f in facts) or not any(f.weak for f in facts) or all(
            f.weak or f.kind not in "fc" or np.finfo(f.dtype).bits == 64 for f in facts):
        return args
    kinds = [f.dtype if f.weak and f.kind != "b" else np.dtype(f.dtype) for f in facts]
    ufunc = function if isinstance(function, np.ufunc) else next(
        (f for f in getattr(rule, "functions", ()) if isinstance(f, np.ufunc)), None)
    taken = [np.result_type(*(k(1) if isinstance(k, type) else k for k in kinds))] * len(args) if (
        ufunc is None or ufunc.nin != len(args)) else ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
    return [batch.build.cast(a, t) if f.weak and t.kind in "fc" and t != np.dtype(f.dtype) and batch.differs(
        g) else a for a, f, t, g in zip(args, facts, taken, given)]


def in_double(batch, function, node):
    """An operand as a function of `math` takes it: as doubles."""
    fact = fact_of(node) if isinstance(node, Var) else None
    if not of_floats(function) or not isinstance(fact, Array) or fact.kind != "f" or fact.weak or \
            fact.dtype == np.float64:
        return node
    return batch.build.cast(node, np.dtype(float))


def entrywise(function, rule):
    if rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise")):
        return True
    return function in ARRAYS or isinstance(function, np.ufunc) and function.signature is None


def of_floats(function):
    return getattr(function, "__module__", None) == "math"


def atoms(node):
    if isinstance(node, tuple):
        for n in node:
            yield from atoms(n)
    else:
        yield from operands(node)
