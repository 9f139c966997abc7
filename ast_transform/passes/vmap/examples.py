# SPDX-License-Identifier: Apache-2.0
"""The loop over the examples, for statements without a whole-batch form and control flow that differs between them."""
import inspect
import keyword
import math
import operator
import textwrap
import types
from collections import Counter
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    USER,
    Apply,
    Carry,
    Const,
    Effect,
    For,
    Function,
    If,
    Join,
    Let,
    Pack,
    Var,
    While,
    all_made,
    all_reads,
    blocks,
    copied,
    is_application,
    made,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence, unknown
from gradscribe.ast_transform.core.operations import as_array, no_elements, push, put
from gradscribe.ast_transform.core.rule import ByExample
from gradscribe.ast_transform.passes.vmap.state import Batch
from gradscribe.ast_transform.passes.vmap.varies import differs, keys_of
from gradscribe.ast_transform.source.diagnose import LanguageError

ONE_BY_ONE = "one example at a time: "


def why_alone(batch: Batch, step: Let | For | While | If | Effect) -> str | None:
    """The reason why a statement needs a loop over the examples; None if it does not."""
    if isinstance(step, Effect):
        return "its effect differs" if any(map(batch.differs, all_reads(step))) else None
    if batch.strategy == "loop" and batch.is_batched(step) and not batch.is_over(step):
        return batch.reason
    if isinstance(step, Let):
        return "each draws numbers of its own" if is_draw(step.value) else None
    if isinstance(step, If) and batch.differs(step.test):
        return "each takes its own branch"
    if isinstance(step, (For, While)) and batch.differs(step.count if isinstance(step, For) else step.test):
        return "each makes its own number of passes"
    if batch.is_over(step):
        return None                 # its blocks are checked one by one
    reasons = (why_alone(batch, inner) for block in blocks(step) for inner in block)
    return next((reason for reason in reasons if reason is not None), None)


def whole_loop(batch: Batch, body: list, result: Any) -> bool:
    """If all that differs belongs in one loop, makes a loop of calls of the function; returns whether it has."""
    if any(map(batch.is_over, body)):
        return False
    reasons = [why_alone(batch, step) for step in body]
    places = [k for k, r in enumerate(reasons) if r is not None]
    if not places:
        return False
    outside = [s for k, s in enumerate(body) if not places[0] <= k <= places[-1] and batch.is_batched(s)]
    if not all(body.index(s) < places[0] and small(s) for s in outside):
        return False
    function, reason = batch.function, next(filter(None, reasons))
    if batch.reader.unroll or not isinstance(result, Var) or not isinstance(result.fact, Array) or any(
            isinstance(s, Effect) for s in walk(body)) or batch.reader.environment.captured:
        return False
    own = {*all_made(body), *(p.value for p in function.params)}
    if not own.issuperset(v for s in body for v in all_reads(s)):
        return False                # a closure, which reads variables of the outer function
    label = function.label
    label = label if label.isidentifier() and not keyword.iskeyword(label) else "function"
    plain = getattr(function.about, "__name__", "") == label    # not a derivative of it
    text = own_text(function.about) if plain and not batch.reader.memory.writes_arguments else None
    callee = Function(label, list(function.params), body, result, function.about,
                      {"fresh": True, "nests": True, "text": text})
    if any(isinstance(p.value, Var) and isinstance(p.value.fact, Sequence) and batch.differs(p.value)
           for p in function.params):
        return False
    target = Var("out", result.fact)
    batch.varies.masks[target] = True
    batch.reads[target] = 1
    call = Apply(callee, tuple(p.value for p in function.params))
    by_example(batch, [Let((target,), call, body[places[0]].origin)], reason)
    batch.varies.masks[result], batch.new[result] = True, batch.new[target]
    return True


def by_example(batch: Batch, group: list, reason: str) -> None:
    """Puts statements into a loop over the examples, which collects their results in arrays."""
    if batch.strategy == "rewrite":
        raise LanguageError(f"strategy='rewrite': no whole-batch form is known: {reason}", group[0].origin,
                            "Leave strategy out: a loop over the examples runs it.")
    counts, inside = Counter(v for step in group for v in all_reads(step)), set(all_made(group))
    results = results_of(batch, group, counts)
    origin, batch.build.origin = batch.build.origin, group[0].origin
    index = Var("b", Array(int), USER)
    same = [v for v in results if not batch.differs(v)]
    results = [v for v in results if v not in same]
    starts = [collector(batch, v) for v in results]
    with batch.new_block() as body:
        env = {v: input_of(batch, v, index) for v in counts if v not in inside}
        body += copied(group, env)
        carries = [collected(batch, v, env[v], start, index) for v, start in zip(results, starts)]
    for v in same:
        carries.append(Carry(v.like(), UNDEFINED, env[v], v.like()))
        batch.new[v] = carries[-1].outer
    batch.build.block.append(For(index, batch.count, (), carries, body, group[0].origin, note=ONE_BY_ONE + reason))
    for v, c, (_, _, listed) in zip(results, carries, starts):
        batch.varies.masks[v] = True
        out = c.outer
        if listed and not batch.reader.unroll:
            out = batch.build.let(v.hint, Apply(as_array, (out,)), batch.fact(v.fact))
        batch.new[v] = out
        batch.scope.append(out)
    batch.build.origin = origin


def results_of(batch, group, counts):
    """The values that statements make and others read; counts: how often the statements read each themselves."""
    results = [v for s in group for v in made(s) if batch.reads.get(v, 0) > counts[v]]
    if not all(isinstance(v.fact, Array) and not isinstance(v.fact, Listed) for v in results):
        if batch.strategy == "auto":
            raise ByExample("a value that is no array differs between the examples")
        raise LanguageError("a value that is no array differs between the examples", group[0].origin,
                            "Return arrays.")
    unset = next((v for v in results if v in batch.unset), None)
    if unset is not None and batch.strategy == "auto":       # unset in some examples, which then do not read it
        raise ByExample(f"{unset.hint} may have no value")
    return results


def input_of(batch, v, index):
    """The operand of one example for a value that the loop reads."""
    if batch.differs(v):
        return example(batch, v, batch.op(v), batch.mask(v), index)
    if is_application(batch.build.made.get(v), no_elements):          # each example fills its own list
        return batch.build.let(v.hint, Apply(no_elements, ()), v.fact, v.kind)
    return batch.op(v)


def collected(batch, v, value, start, index):
    """The carry that collects a value of each example; start: see `collector`."""
    init, inner, listed = start
    held = made_first(batch, v, value, inner, index) if listed and batch.reader.unroll else inner
    after = batch.build.let(v.hint, Apply(push, (inner, value)) if listed and not batch.reader.unroll else
                            Apply(put, (held, index, value)), inner.fact, v.kind)
    return Carry(inner, init, after, Var(v.hint, inner.fact, v.kind))


def example(batch, var, value, mask, index):
    """The part of a batched value that belongs to one example."""
    if isinstance(var.fact, Sequence):
        items = []
        for key, element, m in zip(keys_of(var.fact), var.fact.elements, mask):
            get = getattr if var.fact.kind == "record" else operator.getitem
            part = batch.build.let("item", Apply(get, (value, Const(key))), batch.fact(element, m))
            items.append(example(batch, Var("item", element), part, m, index) if differs(m) else part)
        return batch.build.let(var.hint, Pack(var.fact.kind, tuple(items), var.fact.keys, var.fact.cls), var.fact)
    if not isinstance(var.fact, Array) or isinstance(var.fact, Listed):
        if batch.strategy == "auto":
            raise ByExample("a list differs between the examples")
        raise LanguageError("a list differs between the examples", batch.build.origin, "Use an array.")
    if var.fact.weak and var.fact.kind in "ifc":            # a Python number, as in one example
        number = batch.build.let(var.hint, Apply(operator.getitem, (value, index)), Array(np.dtype(var.fact.dtype)))
        return batch.build.let(var.hint, Apply(var.fact.dtype, (number,)), var.fact)
    if var.fact.rank == 0:
        return batch.build.let(var.hint, Apply(operator.getitem, (value, index)), Array(np.dtype(var.fact.dtype)))
    return batch.build.item(value, index, var.hint)


def collector(batch, var):
    """(init, variable inside, whether it is a list) of the carry that collects a value of all examples."""
    dtype, sizes = np.dtype(var.fact.dtype), list(map(batch.length_of, var.fact.dims))
    if None in sizes and batch.strategy == "auto":
        raise ByExample("an array has a length of its own in each example")
    if None in sizes and batch.reader.unroll:
        fact = Array(dtype, (batch.length, *(unknown("?one") for _ in var.fact.dims)))
        none = batch.build.apply(np.empty, Pack("tuple", (Const(0),) * fact.rank), dtype=Const(dtype), fact=fact)
        return none, Var(var.hint, fact, var.kind), True
    if None in sizes:
        fact = Listed(dtype, (batch.length, *var.fact.dims))
        return batch.build.let(var.hint, Apply(no_elements, ()), fact, var.kind), Var(var.hint, fact, var.kind), True
    shape = Pack("tuple", (batch.count, *sizes)) if sizes else batch.count
    words = {} if dtype == np.float64 else {"dtype": Const(dtype)}
    fact = Array(dtype, (batch.length, *var.fact.dims))
    return (batch.build.apply(np.empty, shape, hint=var.hint, fact=fact, kind=var.kind, **words),
            Var(var.hint, fact, var.kind), False)


def made_first(batch, var, value, inner, index):
    """The array for all examples, which the first pass allocates, when it knows the shape."""
    with batch.new_block() as arm:
        shape = Pack("tuple", (batch.count, *(batch.build.length(value, k) for k in range(var.fact.rank))))
        made = batch.build.apply(np.empty, shape, dtype=Const(np.dtype(var.fact.dtype)), fact=inner.fact)
    first = batch.build.apply(operator.eq, index, Const(0))
    held = Var(var.hint, inner.fact, var.kind)
    batch.build.block.append(If(first, arm, [], [Join(held, made, inner)], batch.build.origin))
    return held


def small(step):
    """Whether a statement computes a number from numbers, so that each example may as well repeat it."""
    return isinstance(step, Let) and all(isinstance(v.fact, Array) and not v.fact.dims
                                         for v in (*step.targets, *all_reads(step)))


def own_text(function):
    """The source of a plain function that needs only NumPy and math; None for other functions."""
    if not isinstance(function, types.FunctionType) or function.__closure__ or function.__name__ == "<lambda>":
        return None
    names, queue = set(), [function.__code__]
    while queue:
        code = queue.pop()
        names |= set(code.co_names)
        queue += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    known = {"np": np, "math": math, function.__name__: function}
    if any(n in function.__globals__ and function.__globals__[n] is not known.get(n) for n in names):
        return None
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None
    return text if text.startswith(f"def {function.__name__}(") else None
