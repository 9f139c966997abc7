# SPDX-License-Identifier: Apache-2.0
"""Partial evaluation: a derivative becomes one function that runs once, and one that runs for each tangent.

`gs.vjp` and `gs.linearize` return linear functions that are called many times at one point.  The statements of the
derivative that read no tangent (or cotangent) go into the first function, which returns the values that the others
read: the residuals.  The second function has the other statements, with the residuals as parameters.  A loop that
carries a tangent is left to the second function as a whole.

- A branch whose test reads no tangent is in both functions; what is computed in one of its arms is a residual too.
- A residual of an arm that is not taken, or of a loop without passes, is None, or an empty list.  The statements that
  would read it are in a branch or a loop of the same kind, and do not run.
- Residuals are parameters, so the second function copies one before it updates it.  It copies a list that it takes
  from or puts into.

There is no split where a residual would be a generator, or a list of lists that are taken from.

Source: R. Frostig, M. Johnson, D. Maclaurin, A. Paszke and A. Radul, Decomposing reverse-mode automatic
differentiation (2021): linearisation as partial evaluation.
"""
from collections.abc import Collection
from typing import NamedTuple

from gradscribe.ast_transform.core.alias import record_of, updates
from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
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
    made,
    operands,
    rebuilt,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Opaque, Sequence, Stack
from gradscribe.ast_transform.core.operations import as_list
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.out_of_ssa import RESERVED
from gradscribe.ast_transform.passes.simplify import simplify


class Halves(NamedTuple):
    """A derivative in two functions."""
    once: Function          # the primals to the residuals
    each: Function          # the tangents, the primals that it reads and the residuals, to the result
    passed: list[int]       # which primals those are


def split(form: Function, tangents: Collection[int], outside: Collection[Var]) -> Halves | None:
    """The halves of a form whose parameters numbered `tangents` differ from call to call; None if there are none.

    outside: the arrays that the form reads from outside
    """
    first, second = partition(form.body, late_values(form, tangents))
    primals = [p for k, p in enumerate(form.params) if k not in tangents]
    early = {*outside, *(v for s in first for v in made(s))}
    residuals = tuple(v for v in read_by(second, form.result) if v in early)
    if not residuals:
        return None
    once = Function(f"{form.label}_once", primals, first, Pack("tuple", residuals), form.about, dict(form.notes))
    once = simplify(simplify(once))                 # branches that are joined have more in common
    same = dict(zip(residuals, once.result.items))  # some are equal now, or are arguments
    second, result = replaced(second, same), substituted(form.result, same)
    read = read_by(second, result)
    residuals = tuple(v for v in dict.fromkeys(same.values()) if v in read and v not in arguments(primals))
    passed = [p for p in primals if any(v in read for v in operands(p.value))]
    if not residuals or not all(can_be_kept(fact_of(v)) for v in [*residuals, *(p.value for p in passed)]):
        return None
    once.body, once.result = with_defaults(once.body, residuals), Pack("tuple", residuals)
    each = second_half(form, second, result, [*(form.params[k] for k in tangents), *passed], residuals)
    return None if each is None else Halves(once, each, [primals.index(p) for p in passed])


def second_half(form, block, result, params, residuals):
    """The function that runs for each tangent, with the residuals as further parameters; None where a list is in the
    way.
    """
    own = {v: v.like() for v in residuals}
    block, result = replaced(block, own), substituted(result, own)
    callees = [s.value.function.label for s in walk(block) if isinstance(s, Let) and isinstance(s.value, Apply)
               and isinstance(s.value.function, Function)]
    names = names_of(residuals, [*(p.name for p in form.params), *callees])
    params = [*params, *(Param(name, own[v]) for name, v in zip(names, residuals))]
    lists = own_lists(block, [p.value for p in params])
    if lists is None:
        return None
    block = [*(Let((mine,), Apply(as_list, (v,))) for v, mine in lists.items()), *replaced(block, lists)]
    return Function(form.label, params, block, substituted(result, lists), form.about, dict(form.notes))


def read_by(block, result):
    """The values that a block or its result reads, in order."""
    return dict.fromkeys([*(v for s in block for v in all_reads(s)), *operands(result)])


def arguments(params):
    return {v for p in params for v in operands(p.value)}


def late_values(form, tangents):
    """The values that each call computes: those that depend on a tangent, and the arrays of the result."""
    late = arguments(form.params[k] for k in tangents)
    returned = set(operands(form.result))           # every call returns new arrays
    for step in reversed([*walk(form.body)]):
        for j in step.joins if isinstance(step, If) else ():
            if j.var in returned:
                returned.update(operands(j.then))
                returned.update(operands(j.orelse))
    late |= returned.intersection(all_made(form.body))
    mark_late(form.body, late)
    return late


def mark_late(block, late):
    """Add to the late values whatever a block computes from one."""
    for s in block:
        if is_in_both(s, late):
            mark_late(s.then, late)
            mark_late(s.orelse, late)
            late.update(j.var for j in s.joins if not late.isdisjoint([*operands(j.then), *operands(j.orelse)]))
        elif is_late(s, late):
            late.update(made(s))


def is_late(step, late):
    return any(v in late for v in all_reads(step)) or any(v in late for v in made(step))


def is_in_both(step, late):
    """Whether a step is a branch whose test reads no tangent, so that both halves have it."""
    return isinstance(step, If) and late.isdisjoint(operands(step.test))


def partition(block, late):
    """The statements of a block that run once, and those that run in each call."""
    first, second, cheap = [], [], {}
    for s in block:
        if is_in_both(s, late) and is_late(s, late):
            once, each = split_branch(s, late)
            first.insert(place_for(once, first), once)
            add_late(each, second, cheap)
        elif is_late(s, late):
            add_late(s, second, cheap)
        else:
            first.append(s)
            if is_cheap(s):
                cheap[s.targets[0]] = s
    return first, second


def place_for(branch, block):
    """Where a branch goes into a block: after one with the same test, to be joined with it, else at the end."""
    needed = {*all_reads(branch)}
    if draws([branch]) or any(isinstance(s, Effect) for s in walk([branch])):
        return len(block)
    for k in reversed(range(len(block))):
        if isinstance(block[k], If) and block[k].test is branch.test:
            return k + 1
        if not needed.isdisjoint(made(block[k])):
            break
    return len(block)


def is_cheap(step):
    """Whether a step only allocates an array or reads a length: each call does so again."""
    record = record_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return record is not None and (record.options.get("allocates") == "filled" or bool(record.options.get("of_shape")))


def add_late(step, block, cheap):
    """Add a statement to a block, after copies of the cheap ones that it reads."""
    env = {}
    for v in dict.fromkeys(all_reads(step)):
        if v in cheap:
            env[v] = v.like()
            add_late(Let((env[v],), cheap[v].value, cheap[v].origin), block, cheap)
    block += replaced([step], env)


def split_branch(branch, late):
    """A branch as two.  The first returns what an arm of the second reads from the same arm of the first."""
    joins = [[j for j in branch.joins if (j.var in late) == half] for half in (False, True)]
    halves = {side: partition(getattr(branch, side), late) for side in ("then", "orelse")}
    later = {}
    for side, (first, second) in halves.items():
        here = {v for s in first for v in made(s)}
        read = dict.fromkeys([*(v for s in second for v in all_reads(s)),
                              *(v for j in joins[1] for v in operands(getattr(j, side)))])
        env = {v: v.like() for v in read if v in here}
        joins[0] += [Join(w, v, UNDEFINED) if side == "then" else Join(w, UNDEFINED, v) for v, w in env.items()]
        later[side] = replaced(second, env), [substituted(getattr(j, side), env) for j in joins[1]]
    (then, thens), (orelse, orelses) = later["then"], later["orelse"]
    return (If(branch.test, halves["then"][0], halves["orelse"][0], joins[0], branch.origin),
            If(branch.test, then, orelse, [Join(j.var, *values) for j, *values in zip(joins[1], thens, orelses)],
               branch.origin))


def can_be_kept(fact):
    """Whether a value is an array, or a container of arrays: no generator."""
    if isinstance(fact, Stack):
        return can_be_kept(fact.element)
    return isinstance(fact, (Array, Opaque)) or isinstance(fact, Sequence) and all(map(can_be_kept, fact.elements))


def is_fixed(fact):
    """Whether a value is an array, or a container without lists of unknown length: nothing changes it in place."""
    return isinstance(fact, Array) and not isinstance(fact, Listed) or isinstance(fact, Opaque) or \
        isinstance(fact, Sequence) and all(map(is_fixed, fact.elements))


def with_defaults(block, residuals):
    """A block that sets residuals of a path that is not taken to None, or to an empty list."""
    sources = {}
    for step in walk(block):
        for var, value in incoming(step):
            sources.setdefault(var, []).append(value)
    found, queue = set(), list(residuals)
    for v in queue:
        if v not in found:
            found.add(v)
            queue += [w for value in sources.get(v, ()) for w in operands(value)]

    def visit(block):
        return [with_none(s) for s in block]

    def with_none(step):
        step = rebuilt(step, {}, visit)
        for part in getattr(step, "joins", getattr(step, "carries", ())):
            var = getattr(part, "var", getattr(part, "inner", None))
            for side in part.__slots__:
                if getattr(part, side) is UNDEFINED and var in found:
                    setattr(part, side, Const(None) if is_fixed(var.fact) else Pack("list", ()))
        return step
    return visit(block)


def incoming(step):
    """(variable, incoming value) of the joins of a branch, and of what a loop carries: at entry, next pass, exit."""
    for j in step.joins if isinstance(step, If) else ():
        yield from ((j.var, j.then), (j.var, j.orelse))
    for c in step.carries if isinstance(step, (For, While)) else ():
        yield from ((c.inner, c.init), (c.inner, c.next), (c.outer, c.inner))


def own_lists(block, given):
    """{list: its copy} for those of the given lists that a block takes from or puts into.

    None where the block changes a list inside one of these.
    """
    same, parts, changed = {}, {}, []               # {list: what it may be}, {list: what it is made of or part of}
    for step in walk(block):
        for var, value in incoming(step):
            same.setdefault(var, []).extend(operands(value))
        for var, source in step.items if isinstance(step, For) else ():
            parts.setdefault(var, []).extend(operands(source))
        if isinstance(step, Let):
            base = step.value
            if updates(base):
                base = base.args[0]
                changed += operands(base)
            if isinstance(base, Var):
                same.setdefault(step.targets[0], []).append(base)
            for v in step.targets:
                parts.setdefault(v, []).extend(w for w in operands(step.value) if w not in same.get(v, ()))
    found = reached(changed, same)
    within = reached([w for v in found for w in parts.get(v, ())], {v: [*same.get(v, ()), *parts.get(v, ())]
                                                                    for v in (*same, *parts)})
    return None if not within.isdisjoint(given) else {v: v.like() for v in given if v in found}


def reached(start, sources):
    """The lists, and containers of lists, among some values and among the sources of these."""
    found, queue = {}, [*start]
    for v in queue:
        if v not in found and not is_fixed(v.fact):
            found[v] = None
            queue += sources.get(v, ())
    return found.keys()


def names_of(values, taken):
    """Names for parameters, by their values' hints; numbered where a name is taken."""
    out, taken = [], {*taken, *RESERVED}
    for v in values:
        hint = v.hint if v.hint.isidentifier() else "value"
        k, name = 1, hint
        while name in taken:
            name, k = f"{hint}_{k}", k + 1
        taken.add(name)
        out.append(name)
    return out
