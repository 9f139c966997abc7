# SPDX-License-Identifier: Apache-2.0
"""Reverse mode through branches and loops.

A branch becomes a branch with the same test.  A loop is run backwards; it carries the adjoints of the forward carries,
and sums for the adjoints of values from outside.  tape.py restores or recomputes the forward values that it reads.
"""
import operator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gradscribe.ast_transform.analysis.dtypes import of_several_dtypes
from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    SAVED,
    TEMPORARY,
    UNDEFINED,
    Apply,
    Carry,
    Const,
    For,
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
    operands,
    walk,
    without_effects,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Sequence, Stack, key_of, unknown
from gradscribe.ast_transform.core.operations import no_elements, push, push_front, put_add
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vjp.containers import (
    Pieces,
    Taken,
    finished,
    give_element,
    materialised,
    read_piece,
    settle_elements,
    unpack_pack,
    zero_like_path,
)
from gradscribe.ast_transform.passes.vjp.expansion import created, expanded, in_its_dtype, is_whole, typed, zero_adjoint
from gradscribe.ast_transform.passes.vjp.first_pass import first_apart, leaving, left_with, with_known
from gradscribe.ast_transform.passes.vjp.segments import counted, uncounted
from gradscribe.ast_transform.passes.vjp.tape import Restore
from gradscribe.ast_transform.reader.closures import substituted_value
from gradscribe.ast_transform.reader.values import Pullback
from gradscribe.ast_transform.source.diagnose import LanguageError

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.vjp.sweep import Sweep

# -- branches

def reverse_branch(sweep: "Sweep", step: If) -> None:
    joined = {j.var: sweep.adjoint.pop(j.var, None) for j in step.joins}
    if all(d is None for d in joined.values()):
        return
    before, groups, outer = dict(sweep.adjoint), sweep.groups, sweep.build.block
    arms = []
    for arm in ("then", "orelse"):
        sweep.adjoint = {v: _copied(h) for v, h in before.items()}
        sweep.groups, sweep.build.block = {}, []
        for j in step.joins:
            source = getattr(j, arm)
            if joined[j.var] is not None and isinstance(source, Var):
                sweep.add(source, with_lengths_of_arm(sweep, joined[j.var], j.var, source))
            elif joined[j.var] is not None and isinstance(source, Pack):
                unpack_pack(sweep, source, joined[j.var])
        sweep.block(getattr(step, arm))
        sweep.mirror[id(getattr(step, arm))] = sweep.build.block
        arms.append((sweep.build.block, sweep.adjoint))
    sweep.adjoint, sweep.groups, sweep.build.block = before, groups, outer
    local = set(all_made(step.then)) | set(all_made(step.orelse))
    names = [v for v in dict.fromkeys([*arms[0][1], *arms[1][1]]) if v not in local and any(
        a.get(v) is not before.get(v) for _, a in arms)]
    branch = If(step.test, arms[0][0], arms[1][0], [], sweep.build.origin)
    for v in names:
        if isinstance(v.fact, Sequence):
            joined_container(sweep, v, branch, arms, before)
            continue
        values = [in_arm(sweep, v, step.test, arm, is_then) for arm, is_then in zip(arms, (True, False))]
        fact = v.fact if isinstance(v.fact, Stack) else joined_fact(sweep, v, values)
        for k, (block, _) in enumerate(arms):
            sweep.build.block = block
            if isinstance(v.fact, Array) and values[k] is not UNDEFINED:
                values[k] = in_its_dtype(sweep, values[k], fact)
        sweep.build.block = outer
        var = Var(f"d{v.hint}", fact, ADJOINT if v.kind != TEMPORARY else TEMPORARY)
        branch.joins.append(Join(var, *values))
        sweep.adjoint[v] = var
        sweep.groups.pop(v, None)
    outer.append(branch)


def in_arm(sweep, v, test, arm, is_then):
    """The adjoint of a value at the end of a backward arm, (block, adjoints), for a join."""
    block, adjoint = arm
    if not sweep.engine.analyses.partial.exists(v, test, is_then):
        return UNDEFINED                # the value itself exists in the other arm only
    value = adjoint.get(v)
    if value is None:
        value = sweep.current(v)
    sweep.build.block = block
    if value is None:
        value = empty_stack(sweep, v) if isinstance(v.fact, Stack) else zero_adjoint(sweep, v)
    return expanded(sweep, value, v) if isinstance(v.fact, Array) else value


def with_lengths_of_arm(sweep, dy, joined, source):
    """The adjoint of a joined array with the lengths in this arm, which may differ from the other arm's.

    Axes that the adjoint is, or may be, constant along stay as they are.
    """
    mine, theirs = fact_of(dy) if isinstance(dy, Var) else None, source.fact
    if not (isinstance(mine, Array) and isinstance(theirs, Array) and mine.rank == theirs.rank):
        return dy
    whole = joined.fact.dims
    dims = tuple(b if not a.is_unit and is_whole(mine.shaped((a,)), (j,)) else a
                 for a, j, b in zip(mine.dims, whole, theirs.dims))
    if all(a.same(b) for a, b in zip(mine.dims, dims)):
        return dy
    return sweep.build.let(dy.hint, dy, Array(mine.dtype, dims))


def joined_fact(sweep, v, values):
    """The fact of the join of an adjoint; that of a Python number is a NumPy float if both arms made one."""
    fact = sweep.whole_fact(v)
    numpys = Array(np.dtype(np.float64))
    return numpys if fact.weak and not fact.dims and all(
        value is UNDEFINED or key_of(fact_of(value)) == key_of(numpys) for value in values) else fact


def joined_container(sweep, v, branch, arms, before):
    """Joins a container's adjoint element by element."""
    held = [a.get(v) or Pieces(v.fact) for _, a in arms]
    outer = sweep.build.block

    def visit(first, second, fact, path):
        if isinstance(fact, Sequence) and not (first is None and second is None):
            sides = []
            for side, (block, _) in zip((first, second), arms):
                sweep.build.block = block
                if isinstance(side, Taken):
                    side = read_piece(sweep, side)
                if isinstance(side, Var):
                    side = Pieces(fact, [Taken(side, k) for k in range(len(fact.elements))])
                sides.append(side or Pieces(fact))
            sweep.build.block = outer
            keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
            return Pieces(fact, [visit(a, b, f, (path, key, fact)) for a, b, f, key in
                                 zip(sides[0].elements, sides[1].elements, fact.elements, keys)])
        if first is second:
            return first
        values = []
        for side, (block, _), is_then in zip((first, second), arms, (True, False)):
            sweep.build.block = block
            if isinstance(side, Taken):
                side = read_piece(sweep, side)
            if side is None and not sweep.engine.analyses.partial.exists(v, branch.test, is_then):
                values.append(UNDEFINED)        # the container itself exists in the other arm only
                continue
            values.append(
                typed(zero_like_path(sweep, fact, path) if side is None else finished(sweep, side, fact, path), fact,
                      sweep.engine.analyses.narrow)
            )
        sweep.build.block = outer
        known = next(value for value in values if value is not UNDEFINED)
        var = Var(f"d{v.hint}", Array(fact_of(known).dtype, fact.dims) if fact.dims else Array(float), ADJOINT)
        branch.joins.append(Join(var, *values))
        return var

    sweep.adjoint[v] = visit(held[0], held[1], v.fact, v)
    sweep.build.block = outer


def empty_stack(sweep, var):
    return sweep.build.let(f"d{var.hint}", Apply(no_elements, ()), var.fact, ADJOINT)


# -- loops

def step_For(sweep, step):
    reverse_loop(sweep, step)


def step_While(sweep, step):
    reverse_loop(sweep, step)


def run_again(sweep, step):
    """Reverses a checkpointed loop: runs it again, saving its values, and reverses that."""
    if not useful_carries(sweep, step, {c.outer: sweep.adjoint.get(c.outer) for c in step.carries}):
        for c in step.carries:
            sweep.adjoint.pop(c.outer, None)
        return
    env = {}
    (copy,) = copied([step], env)
    rename_marks(copy, env)
    levels, copy.policy, copy.body = len(step.policy.split()), "", without_effects(copy.body)
    engine = sweep.engine
    _only_needed(copy, {env[c.outer] for c in step.carries if sweep.adjoint.get(c.outer) is not None})
    passes = copy.carries
    if isinstance(copy, For):
        engine.analyses.naturals.known[copy.count] = True
    first, copy = cut(copy, levels)
    engine.analyses.naturals.visit([*first, copy])
    sweep.build.block += [*first, copy]
    engine.copies.append(sweep.build.block)
    sweep.active.update(env[v] for v in env if v in sweep.active)
    for c, ends in zip(passes, copy.carries):
        if not sweep.active.isdisjoint((c.inner, c.outer)):
            sweep.active.update(operands(Pack("tuple", (ends.inner, ends.next, ends.outer))))
    engine.several.update(env[v] for v in env if v in engine.several)
    engine.several |= of_several_dtypes([copy])
    engine.analyses.unset.update(env[v] for v in env if v in engine.analyses.unset)
    engine.analyses.ranges.joined.update((env[v], (v,)) for v in env)
    engine.analyses.partial.visit([*first, copy])
    made = {t: s.value for s in walk([*first, copy]) if isinstance(s, Let) for t in s.targets}
    sweep.made_by.update(made)
    sweep.build.made.update(made)
    for v in all_made([*first, copy]):
        sweep.note(v)
    for c in step.carries:
        sweep.groups.pop(c.outer, None)
        held = sweep.adjoint.pop(c.outer, None)
        if held is not None:
            sweep.adjoint[env[c.outer]] = held
    reverse_loop(sweep, copy)
    if sweep.inside is not None and isinstance(copy, For):
        engine.filled += filled_anew(sweep, copy)


def filled_anew(sweep, copy):
    """[(statements that make an array of saved values, carry that fills it)] of a loop that runs again in each pass of
    a backward loop, for arrays that all these passes can use: as long as the longest of them asks for.
    """
    block, found = sweep.build.block, []
    here = {*all_made(block), *sweep.inside}
    maker = {t: s for s in block if isinstance(s, Let) for t in s.targets}

    def known_before(n):
        """A length, or a bound on it, as an operand from outside the passes, and the statements that make it."""
        value = maker[n].value if n in maker else sweep.made_by.get(n)
        if n not in here:
            return n, []
        if is_application(value, min):
            return next((b for b in value.args if b not in here), None), []
        if not isinstance(value, Apply) or not here.isdisjoint(operands(value)):
            return None, []
        new = n.like()
        return new, [Let((new,), value, sweep.build.origin)]

    for c in copy.carries:
        s = maker.get(c.init) if isinstance(c.init, Var) and c.init.kind == SAVED else None
        record = record_of(s.value.function) if s is not None and type(c.init.fact) is Array else None
        if s is None or record is None or record.options.get("allocates") != "filled":
            continue
        shape, *rest = s.value.args
        lengths, lets = zip(*map(known_before, shape.items if isinstance(shape, Pack) else (shape,)))
        if None not in lengths:
            block.remove(s)
            rows, shape = lengths[0], Pack("tuple", lengths) if len(lengths) > 1 else lengths[0]
            longest = Length(None, rows.value) if isinstance(rows, Const) else rows.fact.length or unknown("?rows")
            old, fact = c.init.fact, replace(c.init.fact, dims=(longest, *c.init.fact.dims[1:]))
            for v in (c.init, *all_made([copy]), *(k.inner for k in copy.carries)):
                v.fact = fact if v.fact is old else v.fact
            made = Let(s.targets, Apply(s.value.function, (shape, *rest), s.value.kwargs), s.origin)
            found.append(([*(n for each in lets for n in each), made], c))
    return found


def cut(loop, levels):
    """(statements, loop): the loop that runs again, cut into segments once more if levels are left."""
    if levels == 1:
        return [], loop
    if isinstance(loop, While):
        return [], *uncounted(loop, levels)
    *first, outer = counted(loop, loop.count, levels)
    return first, outer


def rename_marks(loop, env):
    """Makes the marks of custom derivatives in a copied loop read the values of the copy."""
    for step in walk([loop]):
        mark = step.value.function if isinstance(step, Let) and isinstance(step.value, Apply) else None
        if isinstance(mark, Pullback):
            residuals = None if mark.residuals is None else substituted_value(mark.residuals, env)
            args = [substituted_value(a, env) for a in mark.args]
            step.value = Apply(Pullback(mark.callee, residuals, args), step.value.args, step.value.kwargs)


def reverse_loop(sweep: "Sweep", step: For | While) -> None:
    if step.policy.startswith("again"):
        return run_again(sweep, step)
    known = {c.outer: sweep.adjoint.pop(c.outer, None) for c in step.carries}
    wanted = useful_carries(sweep, step, known)
    if wanted:
        BackwardLoop(sweep, step, wanted, known).run()


class BackwardLoop:
    """Builds the backward form of a loop.

    wanted: the carries that have adjoints; known: the adjoints of what the loop leaves, None where nothing reads it
    """

    def __init__(self, sweep, step, wanted, known):
        self.sweep, self.step, self.wanted, self.known = sweep, step, wanted, known
        self.child = child_sweep(sweep, step)
        self.carried = {c: Var(f"d{c.inner.hint}", self.carried_fact(c), ADJOINT) for c in wanted}

    def run(self):
        sweep, step, child = self.sweep, self.step, self.child
        origin, outer_block = sweep.build.origin, sweep.build.block
        sweep.build.block = body = []
        before, sweep.engine.filled = sweep.engine.filled, []
        self.reverse_body()
        filled, sweep.engine.filled = sweep.engine.filled, before
        items = adjoints_of_items(sweep, step, child, outer_block)
        left = {c: self.left_by_a_pass(c) for c in self.wanted}
        leaves = None if sweep.reader.unroll else leaving(step)
        if leaves is not None:
            first = Var("first", Array(bool), TEMPORARY)
            first_apart(body, *leaves, first, *left_with(sweep, step, *leaves))
        sums = {v: self.sum_after_a_pass(v, inner) for v, inner in child.accumulated.items()}
        sweep.build.block = outer_block
        made = [self.carry_of(c, left[c]) for c in self.wanted]
        outers = [carry.outer for carry in made]
        made += [self.carry_of_sum(v, child.accumulated[v], value) for v, value in sums.items()]
        made += [carry for carry, _ in items]
        made += self.handed_on(filled)
        if leaves is not None and any(v is first for s in body for v in all_reads(s)):
            with_known(body, first, made)
            made.append(Carry(first, Const(True), Const(False), first.like()))
        restore = Restore(sweep, step, child, body, made, origin)
        restore.run()
        if leaves is not None and isinstance(restore.backward.loop, While):
            restore.backward.loop.policy = "entered"     # the forward loop is left from inside a pass, so it has one
        for c, outer in zip(self.wanted, outers):
            sweep.build.origin = origin
            if isinstance(c.init, Var):
                sweep.add(c.init, outer)
            elif isinstance(c.init, Pack):
                unpack_pack(sweep, c.init, outer)
        for carry, finish in items:
            finish(carry.outer)
        settle_elements(sweep, list(sums))

    def handed_on(self, filled):
        """Makes the arrays that each pass fills anew before the loop; its carries hand them on."""
        made = []
        for steps, c in filled:
            first, c.init = c.init, c.init.like()
            self.sweep.build.block += steps
            for v in all_made(steps):
                self.sweep.note(v)
            made.append(Carry(c.init, first, c.outer, first.like()))
        return made

    def carried_fact(self, c):
        fact = c.inner.fact
        if isinstance(fact, Stack):
            return fact
        dims = (c.next if isinstance(c.next, Var) else c.inner).fact.dims
        if c.init is UNDEFINED and not all(a.same(b) for a, b in zip(dims, c.inner.fact.dims)):
            dims = tuple(unknown("?pass") for _ in dims)        # whole after the last pass only
        return Array(self.sweep.whole_fact(c.inner).dtype, dims)

    def reverse_body(self):
        for c in self.wanted:
            if isinstance(c.next, Var):
                self.child.add(c.next, self.carried[c])
        self.child.groups.clear()
        self.child.block(self.step.body)
        self.sweep.mirror[id(self.step.body)] = self.sweep.build.block

    def left_by_a_pass(self, c):
        """The adjoint of a carry at the end of a backward pass."""
        value = self.child.adjoint.get(c.inner)
        if isinstance(c.inner.fact, Stack):
            value = empty_stack(self.child, c.inner) if value is None else value
        elif value is None:
            value = zeros_again(self.child, c, self.carried[c])
        else:
            value = expanded(self.child, value, c.inner)
        return value if isinstance(c.inner.fact, Stack) else in_its_dtype(self.sweep, value, self.carried[c].fact)

    def sum_after_a_pass(self, v, inner):
        """The adjoint of a value from outside the loop at the end of a backward pass."""
        value = self.child.adjoint[v]
        return in_its_dtype(self.child, expanded(self.child, value, v), inner.fact) if isinstance(
            v.fact, Array) else value

    def carry_of(self, c, left):
        """The backward carry of a forward one."""
        sweep, inner, held = self.sweep, self.carried[c], self.known[c.outer]
        if isinstance(c.outer.fact, Sequence):
            held = materialised(sweep, held, c.outer.fact, c.outer)
        else:
            held = self.whole(c.inner if isinstance(c.inner.fact, Stack) else c.outer, held)
        if isinstance(c.init, Pack):            # what a list starts with is left in its adjoint
            fact = Sequence("list", tuple(_adjoint_fact(fact_of(i)) for i in c.init.items))
        else:
            fact = inner.fact if isinstance(inner.fact, Stack) else sweep.whole_fact(c.inner)
            if isinstance(fact, Array) and isinstance(c.init, Var) and not isinstance(fact, Listed):
                fact = replace(fact, dims=c.init.fact.dims)     # the first pass begins with that
        return Carry(inner, in_its_dtype(sweep, held, inner.fact), left, Var(inner.hint, fact, ADJOINT))

    def carry_of_sum(self, v, inner, value):
        """The carry that adds up the adjoint of a value from outside the loop."""
        sweep, outer = self.sweep, inner.like()
        held = self.whole(v, sweep.current(v))
        sweep.adjoint[v] = outer
        sweep.groups.pop(v, None)
        return Carry(inner, in_its_dtype(sweep, held, inner.fact), value, outer)

    def whole(self, v, held):
        """The adjoint of a value with all its axes; zeros, or an empty list, where there is none."""
        if isinstance(v.fact, Stack):
            return empty_stack(self.sweep, v) if held is None else held
        return expanded(self.sweep, zero_adjoint(self.sweep, v) if held is None else held, v)


def child_sweep(sweep, step):
    """A sweep for the body of a loop."""
    child = type(sweep)(sweep.reader, sweep.active, sweep.made_by, sweep.label, sweep, sweep.engine)
    child.loop_step = step
    child.inside = {*all_made(step.body), *(c.inner for c in step.carries)}
    if isinstance(step, For):
        child.inside |= {step.index, *(v for v, _ in step.items)}
    else:
        child.inside |= set(all_made(step.head))
    return child


def zeros_again(sweep, carry, held):
    """The zero adjoint at the end of a backward pass, for a carry that the forward pass does not read."""
    fact = held.fact
    if not isinstance(fact, Array) or not fact.dims:
        return Const(0.0)
    if all(a.same(b) for a, b in zip(fact.dims, carry.inner.fact.dims)):
        return sweep.build.apply(np.zeros_like, held, hint=held.hint, fact=fact)
    if carry.init is UNDEFINED:         # not read by any pass: any zero that broadcasts will do
        ones = Pack("tuple", (Const(1),) * fact.rank)
        return created(sweep, np.zeros, (ones,), np.dtype(fact.dtype), fact, held.hint)
    if carry.inner in sweep.engine.analyses.unset:
        raise LanguageError(
            f"{carry.inner.hint} may have no value before the loop, and its shape changes from pass to pass",
            sweep.build.origin, "Set it before the loop.")
    return zero_adjoint(sweep, carry.inner)


def useful_carries(sweep, step, done):
    """The active carries that, in this pass or a later one, reach a carry with an adjoint after the loop."""
    active = [c for c in step.carries if c.inner in sweep.active or c.outer in sweep.active]
    wanted = [c for c in active if done[c.outer] is not None]
    sources = _sources(step.body)
    while True:
        reached, queue = set(), [v for c in wanted for v in operands(c.next)]
        while queue:
            v = queue.pop()
            if v not in reached:
                reached.add(v)
                queue += sources.get(v, ())
        more = [c for c in active if c not in wanted and c.inner in reached]
        if not more:
            return [c for c in step.carries if c in wanted]
        wanted += more


def adjoints_of_items(sweep, step, child, outer_block):
    """Adds the adjoints of a loop's items to those of the arrays they come from.

    -> [(carry, function to call with its outer variable)] for lists of adjoints
    """
    found = []
    if not isinstance(step, For):
        return found
    for v, source in step.items:
        dv = child.adjoint.pop(v, None)
        if not isinstance(source, Var) or source not in sweep.active:
            continue
        if isinstance(source.fact, Sequence):
            found.append(listed_adjoint(sweep, step, child, v, source, dv, outer_block))
        elif dv is not None:
            if source in child.inside:
                raise AssertionError("a loop iterates over what it makes")
            held = child.current(source)
            dv = expanded(child, dv, v)
            index = step.index
            child.adjoint[source] = child.build.apply(
                put_add,
                held,
                index,
                dv,
                hint=f"d{source.hint}",
                kind=ADJOINT,
                fact=Array(fact_of(held).dtype, source.fact.dims),
            )
    return [f for f in found if f is not None]


def listed_adjoint(sweep, step, child, v, source, dv, outer_block):
    """The carry of a list of adjoints, which the backward loop fills from the front, and what to do after the loop."""
    element = v.fact
    item = materialised(child, dv, element, v)
    place, after, base = slice_of(sweep, source, step.count)
    inner = Var(f"d{base.hint}", Stack(fact_of(item)), ADJOINT)
    value = child.build.let(
        f"d{base.hint}", Apply(push if step.reverse else push_front, (inner, item)), inner.fact, ADJOINT
    )
    body, sweep.build.block = sweep.build.block, outer_block
    known, tail = sweep.adjoint.get(base), None
    if after and isinstance(known, Pieces) and not step.reverse and all(
            known.elements[k] is not None and not isinstance(known.elements[k], Taken) for k in after):
        tail = [materialised(sweep, known.elements[k], base.fact.elements[k], (base, k, base.fact)) for k in after]
        for k in after:                 # they are part of the list now
            known.elements[k] = None
    init = sweep.build.let(f"d{base.hint}", Apply(no_elements, ()), inner.fact, ADJOINT) if tail is None else \
        Pack("list", tuple(tail))
    sweep.build.block = body
    elements = [_adjoint_fact(base.fact.elements[k]) for k in [*place, *(after if tail is not None else ())]]
    outer = Var(f"d{base.hint}", Sequence("list", tuple(elements)), ADJOINT)

    def finish(outer):
        for j, k in enumerate(place):
            give_element(sweep, base, k, Taken(outer, j))
        if tail is not None:
            for j, k in enumerate(after):
                give_element(sweep, base, k, Taken(outer, len(place) + j))
    return Carry(inner, init, value, outer), finish


def slice_of(sweep, source, count):
    """(places of the elements that a loop iterates over, places after them, container).

    count: the number of passes, which a shorter list or a range in the loop's zip may limit
    """
    made, n = sweep.made_by.get(source), count.value if isinstance(count, Const) else len(source.fact.elements)
    if is_application(made, operator.getitem) and isinstance(made.args[0], Var) and \
            isinstance(made.args[1], Const) and isinstance(made.args[1].value, slice) and \
            (sweep.inside is None or made.args[0] not in sweep.inside):
        container = made.args[0]
        whole = len(container.fact.elements)
        place = list(range(whole)[made.args[1].value])[:n]
        after = list(range(place[-1] + 1, whole)) if place and place == list(range(place[0], place[-1] + 1)) else []
        return place, after, container
    whole = len(source.fact.elements)
    return list(range(whole))[:n], list(range(n, whole)), source


def _only_needed(loop, wanted):
    """Removes the carries of a loop that neither its passes read nor `wanted` has; unread ones lose their init."""
    kept = []
    while True:
        read = {v for block in blocks(loop) for s in block for v in all_reads(s)}
        read.update(v for c in kept for v in operands(c.next))
        if isinstance(loop, While):
            read.update(operands(loop.test))
        more = [c for c in loop.carries if c not in kept and (c.inner in read or c.outer in wanted)]
        if not more:
            break
        kept += more
    loop.carries = [c for c in loop.carries if c in kept]
    for c in loop.carries:
        if c.inner not in read:
            c.init = UNDEFINED


def _adjoint_fact(fact):
    """The fact of an element's adjoint."""
    if isinstance(fact, Sequence):
        return Sequence(fact.kind, tuple(map(_adjoint_fact, fact.elements)), fact.keys, fact.cls)
    if isinstance(fact, Array):
        return Array(float if fact.weak and fact.kind != "c" else fact.dtype, fact.dims)
    return fact


def _copied(held):
    if isinstance(held, Pieces):
        return Pieces(held.fact, [_copied(e) for e in held.elements])
    return held


def _sources(body):
    """{value: the values it is made from} for a block, inner loops and branches included."""
    found = {}
    def visit(block):
        for step in block:
            if isinstance(step, Let):
                for t in step.targets:
                    found.setdefault(t, []).extend(operands(step.value))
            elif isinstance(step, (For, While)):
                for c in step.carries:
                    found.setdefault(c.inner, []).extend([*operands(c.init), *operands(c.next)])
                    found.setdefault(c.outer, []).extend([*operands(c.init), *operands(c.next), c.inner])
                if isinstance(step, For):
                    for v, s in step.items:
                        found.setdefault(v, []).extend(operands(s))
                visit(step.body)
            elif isinstance(step, If):
                visit(step.then)
                visit(step.orelse)
                for j in step.joins:
                    found.setdefault(j.var, []).extend([*operands(j.then), *operands(j.orelse)])
    visit(body)
    return found
