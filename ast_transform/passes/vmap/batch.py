# SPDX-License-Identifier: Apache-2.0
"""vmap: values that differ between examples get a batch axis in front, operations on them their whole-batch form.

Values that are the same for all examples are computed once.  Calls without a whole-batch form, and control flow that
differs between examples, become a loop over the examples (examples.py).

>>> from gradscribe.ast_transform.examples import batched, show
>>> print(show(batched("def f(W, x): return np.tanh(W @ x)", np.ones((2, 3)), np.ones((5, 3)), axes=(None, 0))))
vmap_f(W, x):
    n_0 = shape_of(x, 0)
    transpose_W = np.transpose(W)
    z = x @ transpose_W
    tanh_z = np.tanh(z)
    return tanh_z
"""
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
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
    Param,
    Var,
    While,
    all_made,
    all_reads,
    copied,
    is_application,
    made,
    operands,
    rebuilt,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Sequence, Stack
from gradscribe.ast_transform.core.operations import no_elements
from gradscribe.ast_transform.core.rule import ByExample
from gradscribe.ast_transform.passes.callees import (
    are_its_own,
    called,
    in_place_of_calls,
    inlined,
    is_call,
    stands_alone,
    without_calls,
)
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.examples import by_example, whole_loop, why_alone
from gradscribe.ast_transform.passes.vmap.operations import SPECIAL
from gradscribe.ast_transform.passes.vmap.over import over_axis
from gradscribe.ast_transform.passes.vmap.own import by_own_rule, masks_by_own_rule
from gradscribe.ast_transform.passes.vmap.rules import by_rule
from gradscribe.ast_transform.passes.vmap.state import Batch
from gradscribe.ast_transform.passes.vmap.varies import Varies, all_of, brings_batch, differs, is_over, keys_of
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import LanguageError, TransformError

SHORT = 16                              # entries at most of an array that compiled code holds in registers


def batched(reader: Reader, function: Function, mapped: dict, length: Length, label: str, outputs: Callable[..., Any],
            axis: Hashable = None, strategy: str = "auto") -> Function:
    """The function over a batch.

    mapped: {variable of a parameter that differs: its mask} (varies.py); length: the number of examples;
    outputs(result, place): gives the batched result, by place(leaf, axis) for each leaf
    """
    try:
        return attempt(Batch(reader, label, function, length, axis, strategy), mapped, outputs)
    except ByExample as reason:
        return attempt(Batch(reader, label, function, length, axis, "loop", str(reason)), mapped, outputs)


def attempt(batch, mapped, outputs):
    env, function, build = {}, batch.function, batch.build
    own = partial(masks_by_own_rule, batch)
    body = without_calls(copied(function.body, env), plain=batch.strategy == "loop")
    again = any(map(is_call, walk(body)))
    while again:                    # a callee that is inlined may call others
        batch.varies = Varies(body, mapped, batch.axis, own)
        body, again = with_batches(batch, body)
    body = rules_over(batch, body)
    result = substituted(function.result, env)
    build.made.update((s.targets[0], s.value) for s in body if isinstance(s, Let) and len(s.targets) == 1)
    if batch.strategy == "auto" and batch.reader.unroll and few_numbers(body) and not any(map(batch.is_over, body)):
        raise ByExample("each is a few numbers")
    batch.unset, batch.varies = unset_values(body), Varies(body, mapped, batch.axis, own)
    params = [Param(p.name, batch.like(p.value) if batch.differs(p.value) else p.value, p.keyword)
              for p in function.params]
    build.block = out = []
    batch.count = number_of_examples(batch, params)
    batch.scope += [v for v in (*(p.value for p in params), batch.count) if isinstance(v, Var)]
    batch.reads = Counter(v for part in (*map(all_reads, body), operands(result)) for v in part)
    if not whole_loop(batch, body, result):
        statements(batch, body)
    whole = outputs(result, partial(placed, batch))
    build.block, build.origin = out, None
    return Function(batch.label, params, out, whole, function.about, dict(function.notes))


def with_batches(batch, body):
    """The body with callees inlined that have no batched form."""
    def instead(step, callee):
        differing = () if callee.custom else places_that_differ(batch, step)
        return inlined(step) if differing and batch_of(batch, callee, differing) is None else None
    return in_place_of_calls(body, instead)


def places_that_differ(batch, step):
    return tuple(k for k, a in enumerate(step.value.args) if batch.differs(a))


def batch_of(batch, callee, differing):
    """The batched form of a callee, for arguments that differ by number; None if it is to be inlined."""
    key = callee, differing
    if key not in batch.forms:
        batch.forms[key] = None
        batch.forms[key] = made_batch(batch, callee, differing) if stands_alone(
            callee) and not calls_over(callee, batch.axis) else None
    return batch.forms[key]


def made_batch(batch, callee, differing):
    inner = Batch(batch.reader, f"vmap_{callee.label}", callee, batch.length, batch.axis)
    several, block, origin = isinstance(callee.result, Pack), batch.build.block, batch.build.origin

    def outputs(result, place):
        found = tuple(inner.whole(r, True) for r in (result.items if several else (result,)))
        return Pack("tuple", found) if several else found[0]
    try:
        made = attempt(inner, {callee.params[k].value: True for k in differing}, outputs)
    except (ByExample, TransformError):
        return None                 # inlined, parts of it may have a whole-batch form
    finally:
        batch.build.block, batch.build.origin = block, origin
    results = made.result.items if several else (made.result,)
    if not are_its_own(results, made.params):
        return None
    made.notes = {"fresh": True, "owns": True, "nests": not several}
    return made


def call(batch, step):
    """Calls the batched form of a user's function."""
    differing = places_that_differ(batch, step)
    given = [batch.whole(a, True) if k in differing else batch.op(a) for k, a in enumerate(step.value.args)]
    made, facts = batch_of(batch, step.value.function, differing), [batch.fact(t.fact) for t in step.targets]
    found = batch.build.several([t.hint for t in step.targets], Apply(made, tuple(given)), facts)
    for target, value in zip(step.targets, found):
        batch.define(target, value)
        value.kind = target.kind


def rules_over(batch, body):
    """The body with functions inlined that have a custom derivative and communicate between examples: their rule
    is for one example, not for the batch.  Others with a custom derivative are called for each example.
    """
    out = []
    for step in body:
        step = rebuilt(step, {}, partial(rules_over, batch))
        callee = called(step)
        if callee and callee.custom and callee.custom.rule.mode in ("vjp", "jvp") and calls_over(callee, batch.axis):
            batch.reader.context.without_rule = callee.label, batch.axis, step.origin
            plain = Function(callee.label, callee.params, callee.body, callee.result)
            out += rules_over(batch, without_calls(inlined(Let(step.targets, Apply(plain, step.value.args),
                                                               step.origin))))
        else:
            out.append(step)
    return out


def number_of_examples(batch, params):
    """The number of examples as an operand."""
    n = batch.length.normal()
    if n.symbol is None:
        return Const(n.offset)

    def found(var, mask):
        if isinstance(var.fact, Sequence):
            for key, element, m in zip(keys_of(var.fact), var.fact.elements, mask):
                if differs(m):
                    get = getattr if var.fact.kind == "record" else operator.getitem
                    return found(batch.build.let("item", Apply(get, (var, Const(key))), element), m)
        return batch.build.length(var, 0)
    for p, q in zip(batch.function.params, params):
        if batch.differs(p.value):
            return found(q.value, batch.mask(p.value))
    raise AssertionError("nothing differs")


def placed(batch, leaf, axis):
    """(whether a result differs, its operand with the batch along an axis); axis None: the operand as it is."""
    mask, fact = batch.mask(leaf), fact_of(leaf)
    if not isinstance(fact, (Array, Sequence)) or axis is None:
        return differs(mask), batch.op(leaf)
    if isinstance(fact, (Sequence, Listed)):
        return differs(mask), batch.whole(leaf, all_of(fact))
    value = batch.whole(leaf, True)
    if axis % (fact.rank + 1):
        value = batch.build.apply(np.moveaxis, value, Const(0), Const(axis))
    return True, value


def statements(batch, body):
    """Batches a block; statements that need a loop over the examples share one."""
    k, alone = 0, [why_alone(batch, step) for step in body]
    lists = used_up(batch, body, alone)
    while k < len(body):
        if alone[k] is None:
            statement(batch, body[k])
            k += 1
            continue
        end = next((n for n in range(k, len(body)) if batch.is_over(body[n])), len(body))
        last = max((n for n in range(k, end) if alone[n] is not None), default=None)
        if last is None:
            what = "a function with a custom batching rule" if any(
                isinstance(s, Let) and brings_batch(s.value) for s in walk([body[k]])) else \
                f"a function over the axis {batch.axis!r}"
            raise LanguageError(f"{what} in control flow that differs between the examples: {alone[k]}",
                                body[k].origin, "Call it outside.")
        group, inside = [], set()
        for step in body[k:last + 1]:
            if step in lists or batch.is_batched(step) or any(v in inside for v in all_reads(step)):
                group.append(step)
                inside.update(all_made([step]))
            else:
                statement(batch, step)
        by_example(batch, group, alone[k])
        k = last + 1


def used_up(batch, body, alone):
    """The statements that make a list which is the same for all examples, but which a loop over them changes.  Each
    example needs a copy of it, so these statements belong in that loop, and are marked in `alone`.
    """
    maker = {v: k for k, s in enumerate(body) for v in all_made([s])}
    lists: set = set()
    while True:
        first = next((k for k, reason in enumerate(alone) if reason is not None), len(body))
        inside, found = set(), set()
        for step in body[first:]:
            if step in lists or batch.is_batched(step) and not batch.is_over(step) or any(
                    v in inside for v in all_reads(step)):
                inside.update(all_made([step]))
                found.update(maker[v] for v in all_reads(step) if isinstance(v.fact, Stack) and v in maker and
                             not is_application(batch.build.made.get(v), no_elements) and
                             not batch.is_batched(body[maker[v]]))
        found = {k for k in found if body[k] not in lists}
        if not found:
            return lists
        for k in found:
            alone[k] = alone[k] or alone[first]
            lists.add(body[k])


def statement(batch, step):
    with batch.build.made_for(step, step.origin):
        STATEMENTS[type(step)](batch, step)


def step_Effect(batch, step):
    if any(map(batch.differs, operands(step.value))):
        raise ByExample("an effect differs between the examples")
    value = substituted(step.value, batch.new)
    batch.build.block.append(step if value is step.value else Effect(value, step.origin, step.note))


def step_Let(batch, step):
    value = step.value
    if brings_batch(value) and any(map(batch.differs, operands(value))):
        by_own_rule(batch, step, value)
        return
    if is_over(value, batch.axis) and not brings_batch(value):
        over_axis(batch, step, value)
        return
    if not any(map(batch.differs, operands(value))):
        new = substituted(value, batch.new)
        batch.build.block.append(step if new is value else Let(step.targets, new, step.origin))
        batch.scope += step.targets
        return
    try:
        rewritten(batch, step, value)
    except ByExample as reason:
        by_example(batch, [step], str(reason))


def rewritten(batch, step, value):
    first = step.targets[0]
    if isinstance(value, Var):
        batch.new[first] = batch.op(value)
    elif isinstance(value, Pack):
        batch.let(first, batch.whole(value, batch.mask(first)))
    elif is_call(step):
        call(batch, step)
    elif value.function in SPECIAL:
        SPECIAL[value.function](batch, step, value)
    else:
        by_rule(batch, step, value)


def step_If(batch, step):
    arms = []
    for body, side in ((step.then, "then"), (step.orelse, "orelse")):
        with batch.new_block() as block:
            statements(batch, body)
            arms.append((block, [batch.whole(getattr(j, side), batch.mask(j.var)) for j in step.joins]))
    joins = [Join(batch.like(j.var) if batch.differs(j.var) else j.var, a, b)
             for j, a, b in zip(step.joins, arms[0][1], arms[1][1])]
    batch.build.block.append(If(batch.op(step.test), arms[0][0], arms[1][0], joins, step.origin))
    batch.scope += [j.var for j, old in zip(joins, step.joins) if old.var not in batch.unset]


def carried(batch, step, body):
    """(batched carries of a loop, block of its passes, result of `body`, a function that batches a pass)."""
    entered = []
    for c in step.carries:
        mask = batch.mask(c.inner)
        listed = isinstance(c.inner.fact, Stack) and isinstance(c.init, Pack)
        init = batch.whole(c.init, (mask,) * len(c.init.items) if listed else mask,
                           c.inner.fact if isinstance(c.init, Const) else None)
        entered.append((c, init, batch.like(c.inner) if differs(mask) else c.inner))
    with batch.new_block() as block:
        batch.scope += [v for c, _, v in entered if c.inner not in batch.unset]
        made = body()
        carries = [Carry(inner, init, batch.whole(
            c.next, batch.mask(c.inner), c.inner.fact if isinstance(c.next, Const) else None), c.outer)
            for c, init, inner in entered]
    for c in carries:
        certain = c.outer not in batch.unset
        if batch.differs(c.outer):
            c.outer = batch.like(c.outer)
        if certain:
            batch.scope.append(c.outer)
    return carries, block, made


def step_For(batch, step):
    items = [walked(batch, v, source) for v, source in step.items]

    def body():
        batch.scope += [v for v, _ in items] + [step.index]
        statements(batch, step.body)
    carries, block, _ = carried(batch, step, body)
    batch.build.block.append(For(step.index, batch.op(step.count), tuple(items), carries, block, step.origin,
                                 step.reverse, step.policy))


def walked(batch, var, source):
    """(variable, operand) of an item of a loop; the batch axis of the operand is not first."""
    mask = batch.mask(var)
    if not differs(mask):
        return var, batch.op(source)
    fact = source.fact if isinstance(source, Var) else None
    if isinstance(source, Pack) or isinstance(fact, Sequence):
        many = len(source.items) if isinstance(source, Pack) else len(fact.elements)
        return batch.like(var), batch.whole(source, (mask,) * many)
    given = batch.op(source)
    if not isinstance(fact, (Listed, Stack)):
        given = batch.build.apply(np.moveaxis, given, Const(0), Const(1), hint=source.hint)
    return batch.like(var), given


def step_While(batch, step):
    def body():
        with batch.new_block() as head:
            statements(batch, step.head)
            test = batch.op(step.test)
        statements(batch, step.body)
        return head, test
    carries, block, (head, test) = carried(batch, step, body)
    batch.build.block.append(While(carries, head, test, block, step.origin, step.policy))


STATEMENTS = {Effect: step_Effect, Let: step_Let, If: step_If, For: step_For, While: step_While}


def calls_over(function, axis):
    """Whether a callee has an operation over the axis of that name, or calls a function that has."""
    values = [s.value for s in walk(function.body) if isinstance(s, Let)]
    return any(is_over(v, axis) or isinstance(v, Apply) and isinstance(v.function, Function) and
               calls_over(v.function, axis) for v in values)


def few_numbers(body):
    """Whether an example is straight-line code on short vectors, which compiled code keeps in registers.

    Not if all values are numbers: whole-batch code vectorises these.
    """
    facts = [v.fact for step in body for v in made(step)]
    if not all(isinstance(step, Let) for step in body) or not all(isinstance(f, Array) for f in facts):
        return False
    lengths = [[d.normal() for d in f.dims] for f in facts]
    return any(lengths) and all(n.symbol is None for dims in lengths for n in dims) and \
        all(math.prod(n.offset for n in dims) <= SHORT for dims in lengths) and \
        not any(str(getattr(getattr(s.value, "function", None), "__module__", "")).startswith(("numpy.linalg", "scipy"))
                for s in body)
