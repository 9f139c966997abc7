# SPDX-License-Identifier: Apache-2.0
"""The tape: restores the forward values that a backward loop reads: saves them, or recomputes them.

The values to save are a minimum vertex cut through the operations of the loop's body, between values that cannot be
recomputed (carries, expensive operations, results of branches and inner loops) and values that the backward body reads.
A saved value is stored in an array with a row for each pass, or pushed on a list if its shape may change.
"""
import operator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.alias import aliased, is_cheap, memory_of, reads, record_of, repeatable, updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    AGAIN,
    AS_USUAL,
    ON_DISK,
    SAVED,
    TEMPORARY,
    UNDEFINED,
    Apply,
    Carry,
    Const,
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
    made,
    operands,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, Stack, unknown
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.operations import (
    Quoted,
    no_elements,
    nonempty,
    pop,
    push,
    put,
    shape_of,
)
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.activity import has_ties
from gradscribe.ast_transform.passes.simplify import key_of
from gradscribe.ast_transform.passes.vjp.cut import minimum_cut
from gradscribe.ast_transform.passes.vjp.expansion import length_beside
from gradscribe.ast_transform.passes.vjp.induction import is_one, is_steady
from gradscribe.ast_transform.passes.vjp.invertible import MANY, Counted, Undo, cost_of, is_length, writes_a_part
from gradscribe.ast_transform.passes.vjp.rematerialise import assembled, compute_again
from gradscribe.ast_transform.passes.vjp.same_order import carried_along
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.runtime.offload import on_disk

NEVER = 10**8                           # a cost that a cut avoids


def is_whole(fact):
    return isinstance(fact, Array) and fact.kind in "iu"


def decides(value):
    """Whether a rounding error of an operand may change a value by more than rounding, as in comparisons and floor.

    Compiled code may round differently when it recomputes a number.
    """
    record = record_of(value.function)
    jumps = record.options.get("jumps") if record is not None else None
    if not jumps:
        return False
    inexact = [v for v in operands(value) if isinstance(v.fact, Array) and v.fact.kind not in "biu"]
    sign = jumps == "order" and any(isinstance(a, Const) and a.value == 0 for a in value.args)
    return len(inexact) > sign


def zeros(fact, shape):
    """Zeros of the dtype of a fact; shape: the lengths as operands."""
    dtype = np.dtype(fact.dtype)
    if not shape:
        return Const(fact.dtype(0) if fact.weak else dtype.type(0))
    return Apply(np.zeros, (Pack("tuple", tuple(shape)) if len(shape) > 1 else shape[0],),
                 () if dtype == np.float64 else (("dtype", Const(dtype)),))


def made_of(v, sources):
    """The values that a value is computed from, itself included."""
    found = {v: None}
    for u in (queue := [v]):
        for o in sources.get(u) or ():
            if o not in found:
                found[o] = None
                queue.append(o)
    return found


class ShapesOfAdjoints:
    """Reads the shape of a value, where nothing else of it is read, from an adjoint of that shape: it is not saved.

    The adjoint is read as it is at that place, after the writes before: a read of an older version would make a write
    copy.  So `now` maps each adjoint that the backward loop carries to its latest version.
    """

    def __init__(self, restore):
        self.restore = restore
        self.held = [c.inner for c in restore.carries if type(c.inner.fact) is Array and c.inner.fact.dims]

    def visit(self):
        self.visit_block(self.restore.body, {d: d for d in self.held})

    def visit_block(self, block, now):
        for s in list(block):
            if isinstance(s, (For, While)):
                self.visit_loop(s, now)
            elif isinstance(s, If):
                ends = [self.visit_block(s.then, dict(now)), self.visit_block(s.orelse, dict(now))]
                for d in self.held:
                    joined = (k.var for k in s.joins if k.then is ends[0][d] and k.orelse is ends[1][d])
                    now[d] = next(joined, now[d])
            elif isinstance(s, Let):
                self.read_from_adjoint(s, block, now)
                if updates(s.value):
                    now.update({d: s.targets[0] for d, v in now.items() if v is s.value.args[0]})
        return now

    def visit_loop(self, s, now):
        within = {d: next((c.inner for c in s.carries if c.init is v), v) for d, v in now.items()}
        for inner in blocks(s):
            self.visit_block(inner, dict(within))
        now.update({d: next(c.outer for c in s.carries if c.init is v) for d, v in now.items() if within[d] is not v})

    def read_from_adjoint(self, s, block, now):
        value = s.value
        if not isinstance(value, Apply) or reads(value) != "shape" or not isinstance(v := value.args[0], Var):
            return
        made, other = self.restore.maker.get(v), self.adjoint_like(v, now)
        if other is None and isinstance(made, Let) and isinstance(made.value, Apply) and \
                reads(made.value) == "part" and isinstance(made.value.args[0], Var):
            base = self.adjoint_like(made.value.args[0], now)
            if base is not None:
                other = v.like()
                block.insert(next(k for k, t in enumerate(block) if t is s), Let(
                    (other,), Apply(made.value.function, (base, *made.value.args[1:])), s.origin))
        if other is not None:
            s.value = Apply(value.function, (other, *value.args[1:]), value.kwargs, value.origin)

    def adjoint_like(self, v, now):
        """An adjoint of the same shape and dtype as a value of the pass; None if there is none."""
        if v not in self.restore.child.inside or type(v.fact) is not Array:
            return None
        return next((now[d] for d in self.held if d.fact.rank == v.fact.rank and d.fact.dtype == v.fact.dtype and all(
            a.same(b) for a, b in zip(d.fact.dims, v.fact.dims))), None)


class Backward(NamedTuple):
    """A backward loop; at: its index; env: {value: what it is in the loop}; renamed: the same for items of sources."""
    loop: Any
    at: Var | None
    env: dict
    renamed: dict


class Restore:
    """Adds the statements that save values to a forward loop, and builds its backward form."""

    def __init__(self, sweep, step, child, body, carries, origin):
        self.sweep, self.step, self.child = sweep, step, child
        self.body, self.carries, self.origin = body, carries, origin
        self.read_once()
        self.counted, self.most = None, None
        self.home = {}                  # value -> the forward block that it is made in
        self.maker = {}                 # value -> the statement that makes it
        self.index_blocks(step.body)
        for c in step.carries:
            self.home[c.inner] = step.body
        # values at the end of a pass, which the next pass, or the statements after the loop, read by their carry
        set_before = [c for c in step.carries if not self.may_be_unset(c)]
        self.left = {c.next: c for c in set_before if isinstance(c.next, Var) and c.next in self.maker}
        self.undo = self.numbers = Undo(self, set_before)       # `chosen` decides if undoing restores arrays, too
        self.writes = self.numbers.with_arrays(set_before)

    def may_be_unset(self, carry):
        return carry.init is UNDEFINED or carry.inner in self.sweep.engine.analyses.unset

    def index_blocks(self, block):
        for s in block:
            if isinstance(s, Let):
                for t in s.targets:
                    self.home[t], self.maker[t] = block, s
            elif isinstance(s, (For, While)):
                for c in s.carries:
                    self.home[c.outer], self.maker[c.outer] = block, s
            elif isinstance(s, If):
                for inner in blocks(s):
                    self.index_blocks(inner)
                for j in s.joins:
                    self.home[j.var], self.maker[j.var] = block, s

    def read_once(self):
        """Merges equal computations of a pass: the backward pass reads only the first, so that one value is saved.

        Values that loops and branches read stay, since those have been reversed already.
        """
        first, same = {}, {}
        inside = {v for s in self.body if not isinstance(s, Let) for v in all_reads(s)}
        for s in self.step.body:
            if isinstance(s, Let) and len(s.targets) == 1 and s.targets[0] not in inside:
                key = key_of(substituted(s.value, same))
                if key is not None and first.setdefault(key, s.targets[0]) is not s.targets[0]:
                    same[s.targets[0]] = first[key]
        if same:
            self.body[:] = [replaced([s], same)[0] if isinstance(s, Let) else s for s in self.body]
            for c in self.carries:
                c.next = substituted(c.next, same)

    def needed(self):
        """The values made inside the forward loop that the backward loop reads."""
        step = self.step
        free = {step.index, *(v for v, _ in step.items)} if isinstance(step, For) else set()
        made = set(all_made(self.body))
        found = {}
        for s in self.body:
            for v in all_reads(s):
                found[v] = None
        for c in self.carries:
            for v in operands(c.next):
                found[v] = None
        return [v for v in found if v in self.child.inside and v not in free and v not in made]

    def cheap(self, var):
        """Whether recomputing a value costs less than saving it."""
        made = self.maker.get(var)
        if var in self.undo.written:
            return True
        if var in self.undo.late or self.undo.leaves(var):
            return False
        if not isinstance(made, Let) or not isinstance(made.value, (Apply, Pack, Var)):
            return False
        if isinstance(made.value, (Pack, Var)):
            return True
        value = made.value
        if var.saving == AGAIN and not is_draw(value) and not isinstance(value.function, (Function, Quoted)):
            return True
        if has_ties(made):
            return True
        if self.decides(value):
            return False
        if value.function is put:
            return self.fresh(value.args[0])
        if is_cheap(value):
            return True
        kind = getattr(record_of(value.function), "kind", None)
        facts = [v.fact for v in operands(value)]
        if kind is None or any(isinstance(f, Array) and f.dims for f in facts):
            return False
        if is_whole(var.fact) and all(map(is_whole, facts)) and memory_of(value) is FRESH and not is_draw(value):
            return True                 # an index array of numbers: [i, j]
        return kind == "constant" or kind == "elementwise" and not any(
            v in self.child.inside for v in operands(value))       # loop-invariant

    def found_by_the_next(self, carry, saved):
        """Whether a value at the end of a pass is available going backward, since the next pass saves it as its carry.

        Compiled code recomputes it, in registers.
        """
        return not self.sweep.engine.reader.unroll and carry.inner in saved and type(carry.inner.fact) is Array

    def decides(self, value):
        """Whether a value must be saved, since its operands may be rounded differently when they are recomputed."""
        return decides(value) and (self.sweep.engine.reader.unroll or not self.same_to_the_last_bit(operands(value)))

    def same_to_the_last_bit(self, values):
        """Whether NumPy recomputes these values bit by bit, as it does for elementwise operations.

        A reduction or a matrix product depends on the memory layout of its operand, which may be another for a saved
        array; new arrays of one axis have only one layout.
        """
        queue = [(v, False) for v in values]                    # (value, whether its layout matters)
        for v, lies in queue:
            if v not in self.child.inside or type(v.fact) is not Array:
                continue                                        # from outside the loop: the same array
            made = self.maker.get(v)
            value = made.value if isinstance(made, Let) else None
            if lies and (v.fact.rank > 1 or v.fact.rank and not isinstance(value, Apply)):
                return False
            if not isinstance(value, Apply):
                continue                                        # restored exactly
            by_entries = getattr(record_of(value.function), "kind", None) == "elementwise" or is_cheap(value)
            inner = not by_entries or lies and memory_of(value) is not FRESH
            queue += [state for o in operands(value) if (state := (o, inner)) not in queue]
        return True

    def price(self, v):
        """The cost of recomputing a value that is not cheap, in printed source; None if it must not be recomputed.

        Two operations cost less than saving, three more.
        """
        made = self.maker.get(v)
        if self.sweep.engine.reader.unroll or not isinstance(made, Let) or len(made.targets) > 1 or \
                not isinstance(made.value, Apply) or type(v.fact) is not Array or self.undo.leaves(v) or \
                v in self.undo.late:
            return None
        value = made.value
        rule = RULES.get(value.function) if not isinstance(value.function, (Function, Quoted)) else None
        if rule is None or rule.is_of_a_user() or memory_of(value) is not FRESH or self.decides(value) or \
                not repeatable(value) or not all(type(o.fact) is Array for o in operands(value)):
            return None
        return 9 * cost_of(v.fact) // 20

    def value_of(self, v):
        """The operation that makes a value in the backward pass."""
        if v in self.undo.written:
            return self.undo.written[v]
        value = self.maker[v].value
        if is_length(value) and value.args[0] in self.undo:
            return Apply(shape_of, (self.undo.last(value.args[0]), *value.args[1:]))
        return value

    def fresh(self, array):
        """Whether an array is made in the pass that fills it."""
        step = self.maker.get(array) or next((s for s in self.step.body if array in made(s)), None)
        if not isinstance(step, Let) or not isinstance(step.value, Apply):
            return False
        return step.value.function in (np.empty, np.empty_like) or step.value.function is put and self.fresh(
            step.value.args[0])

    def chosen(self, needed):
        """(values that the backward pass needs, values to save); undoes writes if that costs less than saving."""
        saved, cost, again = self.least(needed)
        if len(self.writes.links) > len(self.numbers.links):
            undo = self.writes
            undo.straight_back(self.read_again(needed))
            self.undo = undo
            other, least, others = self.with_undo(needed)
            if least < cost:
                loops = [v for v in other if v in undo.promised]
                if loops:                       # undoing their writes reads more values of this pass
                    for v in loops:
                        undo.fulfil(v)
                    needed = self.needed()
                    undo.straight_back(self.read_again(needed))
                    other, _, others = self.with_undo(needed)
                for v in other:
                    undo.save(v)
                self.left = {v: c for v, c in self.left.items() if v not in others}
                return needed, other
            self.undo = self.numbers
        self.left = {v: c for v, c in self.left.items() if v not in again}
        return needed, saved

    def with_undo(self, needed):
        """(values to save, their cost, values that are recomputed though the next pass has them) if writes are undone.

        A value that is written into an array is read back from there if that costs less.
        """
        undo, written, found = self.undo, self.undo.written, []
        for undo.written in ({}, written):
            undo.weigh(set(self.read_again(needed)))
            found.append((*self.least(needed), undo.written, undo.free))
        saved, cost, again, undo.written, undo.free = min(found, key=operator.itemgetter(1))
        return saved, cost, again

    def read_again(self, needed):
        """The values that are needed, and those that the cheap ones are recomputed from."""
        found = dict.fromkeys(needed)
        queue = list(found)
        for v in queue:
            if self.cheap(v):
                more = [o for o in operands(self.value_of(v)) if o not in found]
                found.update(dict.fromkeys(more))
                queue += more
        return found

    def least(self, needed):
        """(values to save, their cost, values that are recomputed though the next pass has them)."""
        found = self.least_with(needed, self.left)
        again = {v for v in self.left if not self.cheap(v) and self.price(v) is not None}
        other = self.least_with(needed, {v: c for v, c in self.left.items() if v not in again}) if again else found
        return (*other, again) if other[1] < found[1] else (*found, set())

    def least_with(self, needed, left):
        free = {self.step.index, *(v for v, _ in self.step.items)} if isinstance(self.step, For) else set()
        carried = {c.inner for c in self.step.carries}
        after = {v: c.inner for v, c in left.items()}
        replaced = {*self.undo.replaced(), *self.undo.promised}     # no statement reads these yet

        def from_outside(v):
            return v not in self.child.inside and v not in replaced or v in free
        relevant, queue, sources, prices = [], list(needed), {}, {}
        while queue:
            v = queue.pop()
            if v in sources:
                continue
            relevant.append(v)
            if v in self.undo:
                sources[v] = [o for o in self.undo.sources(v) if not from_outside(o)]
            elif v in carried or v in replaced:
                sources[v] = None
            elif self.cheap(v):
                sources[v] = [o for o in operands(self.value_of(v)) if not from_outside(o)]
            elif v in after:
                sources[v] = [after[v]]
            elif (price := self.price(v)) is not None:
                prices[v] = price
                sources[v] = [o for o in operands(self.value_of(v)) if not from_outside(o)]
            else:
                sources[v] = None
            queue += sources[v] or []
        for v in [v for v in sources if v in self.undo]:
            for o in self.undo.index_operands(v):
                self.cut_cycle(v, o, sources)
        saved, cost = minimum_cut(relevant, sources, needed, self.cost, prices)

        def exact(v):
            return v in saved or from_outside(v)
        return [v for v in saved if not (isinstance(made := self.maker.get(v), Let) and isinstance(
            made.value, Apply) and decides(made.value) and all(map(exact, operands(made.value))))], cost

    def cut_cycle(self, version, v, sources):
        """Cuts a cycle: the index of a write, or the amount of a step, must not be recomputed from the version that is
        restored with it.  Saves the first numbers on the way, or `v` itself.
        """
        if v is version:
            sources[v] = None
        if version not in made_of(v, sources) or sources[version] is None:
            return
        numbers = [o for o in sources[v] if version in made_of(o, sources) and isinstance(o.fact, Array) and
                   not o.fact.dims and self.cost(o) < NEVER]
        for o in numbers:
            self.cut_cycle(version, o, sources)
        if version in made_of(v, sources) and sources[version] is not None:
            sources[v] = None


    def cost(self, v):
        fact = v.fact
        if v in self.undo.promised:
            return self.undo.cost_of(v)
        if v in self.undo.free:
            return 0
        if has_ties(self.maker.get(v)):
            return NEVER                # its entries are compared with others that may have been recomputed
        cost = cost_of(fact)
        if isinstance(fact, Array) and fact.kind == "b":
            cost //= 2
        made = self.maker.get(v)
        whole = made.value.args[0] if isinstance(made, Let) and reads(made.value) == "part" else None
        if isinstance(whole, Var) and isinstance(whole.fact, Array) and isinstance(fact, Array):
            lengths = {d.normal().symbol for d in whole.fact.dims}
            if any(d.normal().symbol not in lengths for d in fact.dims):        # maybe much shorter
                cost -= 5
        return cost + (0 if v.kind != TEMPORARY else 1)

    def run(self):
        step, renamed = self.step, {}
        ShapesOfAdjoints(self).visit()
        needed = self.needed()
        along = carried_along(self, needed) if self.least(needed)[0] else []
        if along:
            carried = {c.inner for c in along}
            saved, needed = [], [v for v in (*needed, *(c.next for c in along)) if v not in carried]
        else:
            needed, saved = self.chosen(needed)
        env, prefix = {}, {}
        forward_carries, backward_carries, stacks = [], list(self.carries), []
        for c in along:
            env[c.inner] = held = c.inner.like()
            backward_carries.append(Carry(held, c.init, c.next, c.outer.like()))
        index = step.index.like() if isinstance(step, For) else None
        if index is not None:
            env[step.index] = index
        for v in saved:
            self.store(v, env, prefix, forward_carries, backward_carries, stacks, index)
        compute_again(self, needed, saved, env, prefix, {} if along else self.left, backward_carries)
        begun = {c.inner: c for c in step.carries if c.inner in self.undo and c.inner not in saved}
        ends = [(begun[c.next], c.outer) for c in backward_carries if c.next in begun]
        body = assembled(self, self.body, env, prefix)
        for c in backward_carries:
            c.next = substituted(c.next, env)
        step.carries.extend(forward_carries)
        if isinstance(step, For):
            items = []
            used = {v for s in body for v in all_reads(s)} | {v for c in backward_carries for v in operands(c.next)}
            for v, source in step.items:
                if v in used:
                    items.append((v, source))
            renamed = {v: v.like() for v, _ in items}
            body = replaced(body, renamed)
            for c in backward_carries:
                c.next = substituted(c.next, renamed)
            loop = For(
                index,
                step.count,
                tuple((renamed[v], s) for v, s in items),
                backward_carries,
                body,
                self.origin,
                step.reverse if along else not step.reverse,
            )
        else:
            loop = self.backward_while(body, backward_carries, stacks)
        self.sweep.build.block.append(loop)
        self.backward = Backward(loop, index, env, renamed)
        self.sweep.engine.ends.update(ends)
        self.sweep.engine.restored.update((c, self) for c in step.carries)

    # saving

    def needs_list(self, v):
        """Whether a carry may be unset when a pass begins, so that a list is needed to save it.

        Compiled code begins with zeros instead, which no pass reads.
        """
        if not any(c.inner is v and self.may_be_unset(c) for c in self.step.carries) and \
                v not in self.sweep.engine.analyses.unset:
            return False
        if self.sweep.engine.reader.unroll:
            begun = self.unset_carries(v)
            for c, loop in begun or ():
                shape = self.lengths(v.fact, loop) if isinstance(v.fact, Array) else None
                if shape is None:
                    begun = None
                    break
                c.init = v.like()
                self.before(Let((c.init,), zeros(v.fact, shape), self.origin_forward()), loop)
            if begun is None:
                raise LanguageError(f"{v.hint} may have no value when the loop begins, and the backward sweep needs it",
                                    self.origin, "Set it before the loop.")
            return False
        return True

    def unset_carries(self, v):
        """[(carry by which a value may be unset, the loop before which to set it)], of this loop and those inside and
        around it; None if it may be unset otherwise.
        """
        found, queue, seen, given = [], [v], set(), {}
        inside = {id(s) for s in walk(self.step.body)}
        for s in [s for block in [self.sweep.engine.function.body, *self.sweep.engine.copies] for s in walk(block)]:
            if isinstance(s, If):
                given.update((j.var, (j.then, j.orelse)) for j in s.joins)
            for c in getattr(s, "carries", ()):
                given[c.inner] = ((c, self.step if id(s) in inside else s),)
                given[c.outer] = (*given[c.inner], c.next)
        for v in queue:
            if v in seen or v is not UNDEFINED and v not in self.sweep.engine.analyses.unset:
                continue
            seen.add(v)
            if v not in given:
                return None
            for source in given[v]:
                if not isinstance(source, tuple):
                    queue.append(source)
                elif source[0].init is not UNDEFINED:
                    queue.append(source[0].init)
                elif source not in found:
                    found.append(source)
        return found

    def store(self, v, env, prefix, forward, backward, stacks, index):
        """Saves a value in the forward loop, in an array or on a list, and reads it in the backward loop."""
        hint = f"{v.hint}_saved" if not v.hint.endswith("_saved") else v.hint
        home, (place, source) = self.home[v], self.source_of(v)
        unset = self.needs_list(source)
        shape = self.shape(v) if isinstance(self.step, For) and not unset else None
        restored = Var(v.hint, v.fact, v.kind)
        env[v] = restored
        if shape is not None:
            dtype = np.dtype(v.fact.dtype)
            fact = Array(dtype, (self.count_length(), *v.fact.dims))
            words = () if dtype == np.float64 else (("dtype", Const(dtype)),)
            empty = Var(hint, fact, SAVED)
            pack = Pack("tuple", tuple(shape)) if len(shape) > 1 else shape[0]
            saving = ON_DISK if v.fact.dims and ON_DISK in (self.step.policy, v.saving) else AS_USUAL
            make = on_disk if saving == ON_DISK else np.empty
            self.before(Let((empty,), Apply(make, (pack,), words), self.origin_forward()))
            inner, outer, new = (Var(hint, fact, SAVED, saving) for _ in range(3))
            if not self.filled_in_place(v, home, inner, new):
                put_step = Let((new,), Apply(put, (inner, self.step.index, source)), self.origin_forward())
                new = self.insert(place, source, put_step, inner, new)
            forward.append(Carry(inner, empty, new, outer))
            found = restored
            if v.fact.weak and dtype.kind in "ifc" and self.sweep.engine.analyses.narrow:    # a Python number again
                found = Var(v.hint, Array(dtype, (), v.fact.length), TEMPORARY)
            else:
                restored.fact = Array(dtype, v.fact.dims, v.fact.length)
            prefix.setdefault(id(home), []).append(Let((found,), Apply(operator.getitem, (outer, index))))
            if found is not restored:
                prefix[id(home)].append(Let((restored,), Apply(v.fact.dtype, (found,))))
        else:
            fact = Stack(v.fact)
            empty, inner, outer, new = (Var(hint, fact, SAVED) for _ in range(4))
            self.before(Let((empty,), Apply(no_elements, ()), self.origin_forward()))
            kept = self.variable_to_save(source)
            step = Let((new,), Apply(push, (inner, kept)), self.origin_forward())
            forward.append(Carry(inner, empty, self.insert(place, source, step, inner, new, home), outer))
            if kept is not source:      # before the push, right after what makes it
                place.insert(next(k for k, s in enumerate(place) if s is step), Let(
                    (kept,), Apply(np.copy, (source,)), self.origin_forward()))
                self.sweep.note(kept)
            back, rest, end = (Var(hint, fact, SAVED) for _ in range(3))
            prefix.setdefault(id(home), []).append(Let((rest, restored), Apply(pop, (back,))))
            carry = Carry(back, outer, rest, end)
            if home is self.step.body:
                stacks.append(carry)
            else:
                carry.next = self.through_arms(home, back, rest)
            backward.append(carry)
        self.sweep.note(outer)

    def filled_in_place(self, v, home, inner, new):
        """Whether the array of saved values of an inner loop can be a row of this loop's; then makes it one, which the
        inner loop fills in place.

        v: the inner loop's array of saved values; inner, new: this loop's, before and after the inner loop
        """
        loop = self.maker.get(v)
        if v.kind != SAVED or not isinstance(loop, For) or home is not self.step.body:
            return False
        read = [o for s in self.step.body for o in all_reads(s)]
        read += [o for c in self.step.carries for o in operands(c.next)]
        chain, filled, before = [], v, None
        while isinstance(loop, For):            # from loop to loop inside, down to the statement that fills it
            carry = next((c for c in loop.carries if c.outer is filled), None)
            if carry is None or (before is not None and carry.init is not before) or read.count(carry.next) > 1 or \
                    read.count(carry.inner) > 1:
                return False            # in second derivatives, the loop reads its saved values itself
            chain.append((loop, carry))
            before, filled = carry.inner, carry.next
            step = next((s for s in loop.body if filled in made(s)), None)
            loop = step
        first = chain[0][1]
        if v in read or not isinstance(first.init, Var) or not self.fresh(first.init) or not writes_a_part(step) or \
                step.value.args[0] is not before:
            return False
        _, index, value = step.value.args
        places = index.items if isinstance(index, Pack) else (index,)
        entered, left = inner, new
        for loop, carry in chain:
            held, filled = inner.like(), inner.like()
            loop.carries[loop.carries.index(carry)] = Carry(held, entered, filled, left)
            entered, left = held, filled
        step.targets = (left,)
        step.value = Apply(put, (entered, Pack("tuple", (self.step.index, *places)), value))
        return True

    def variable_to_save(self, v):
        """The variable to save: for a view a new one, to hold a copy, since its array may be written later."""
        made = self.maker.get(v)
        if isinstance(made, Let) and isinstance(made.value, Apply) and isinstance(v.fact, Array) and v.fact.dims and \
                not updates(made.value) and aliased(made.value):
            return Var(v.hint, v.fact, TEMPORARY)
        return v

    def origin_forward(self):
        return self.origin.made_by(0) if self.origin is not None else None

    def before(self, let, loop=None):
        """Inserts a statement before the forward loop, or before another one."""
        self.sweep.engine.insert_before(loop or self.step, let)
        for t in let.targets:
            self.sweep.note(t)

    def passes(self):
        """The number of passes as an operand, not negative (a range may end before its start)."""
        count = self.step.count
        if not self.sweep.engine.analyses.naturals.holds(count):
            if self.counted is None:
                self.counted = Var("passes", Array(int, (), unknown("?count")), TEMPORARY)
                self.before(Let((self.counted,), Apply(max, (count, Const(0))), self.origin_forward()))
            count = self.counted
        return count

    def room(self):
        """The rows of an array of saved values: the number of passes, or a bound on it if a loop around changes it."""
        step, engine = self.step, self.sweep.engine
        if isinstance(step.count, Var) and step.count in (self.sweep.inside or ()) and step.index in \
                engine.analyses.regions.loops and engine.length_of(step.count.fact.length) is None:
            if most := engine.analyses.regions.passes_at_most(step, MANY):
                return Const(most)
            longest = engine.analyses.regions.longest(step)
            if longest is not None and (shown := engine.length_of(longest)) is not None:
                if isinstance(shown, Var):
                    return shown
                if self.most is None:
                    self.most = Var("n", Array(int, (), longest))
                    self.before(Let((self.most,), shown, self.origin_forward()))
                return self.most
        return self.passes()

    def count_length(self):
        count = self.room()
        return Length(None, count.value) if isinstance(count, Const) else count.fact.length or unknown("?count")

    def shape(self, v):
        """The shape of an array of saved values, as operands known before the loop; None if the shape may change.

        None also for values whose dtype depends on the path: a list keeps the dtype of each pass, so that the pass
        rounds alike when it runs again.  And for Python integers that may outgrow the 64 bits of an array.  In compiled
        code each variable has one dtype, and integers have 64 bits.
        """
        if not isinstance(v.fact, Array) or any(isinstance(item.fact, Sequence) for item, _ in self.step.items):
            return None
        if v in self.sweep.engine.several and not self.sweep.engine.reader.unroll:
            return None
        if v.fact.weak and v.fact.kind == "i" and not self.sweep.engine.reader.unroll and not \
                self.sweep.engine.analyses.ranges.fits(v):
            return None
        passes, lengths = self.room(), self.lengths(v.fact)
        return lengths if lengths is None else [passes, *lengths]

    def lengths(self, fact, loop=None):
        """The lengths of an array, as operands known before the loop, or before another; None if they may change."""
        shape = []
        for d in fact.dims:
            n = d.normal()
            if n.symbol is None:
                shape.append(Const(n.offset))
                continue
            found = self.sweep.engine.length_of(d)
            if found is None and loop in (None, self.step):
                found = self.length_of_init(d) or self.count_of(d)
            beside = length_beside(self.sweep.engine.function, d) if found is None else None
            if found is None and beside is None:
                return None
            if beside is not None:
                shown = Var("n", Array(int, (), d.plus(-beside[1])))
                self.before(Let((shown,), beside[0], self.origin_forward()), loop)
                found = Apply(operator.add if beside[1] > 0 else operator.sub, (shown, Const(abs(beside[1]))))
            if isinstance(found, Apply):
                var = Var("n", Array(int, (), d))
                self.before(Let((var,), found, self.origin_forward()), loop)
                found = var
            shape.append(found)
        return shape

    def length_of_init(self, d):
        unset = self.sweep.engine.analyses.unset
        for c in self.step.carries:
            if isinstance(c.init, Var) and type(c.init.fact) is Array and c.init not in unset:
                first = c.init.fact.dims[:1]
                for k, e in enumerate(c.init.fact.dims):        # an array made of an empty list has one axis
                    if e.same(d) and not (k and first[0].normal().symbol and first[0].normal().symbol.size is None):
                        return Apply(shape_of, (c.init, Const(k)))
        return None

    def count_of(self, d):
        """The number of passes of an inner loop that is this length and is known before this loop; None without one."""
        counts = (s.count for s in walk(self.step.body) if isinstance(s, For) and isinstance(s.count, Var))
        return next((c for c in counts if c not in self.child.inside and c.fact.length is not None and
                     c.fact.length.same(d)), None)

    def source_of(self, v):
        """(block, value): where a value is set, inside arms if it exists in one arm only."""
        block, branch = self.home[v], self.maker.get(v)
        while isinstance(branch, If):
            j = next(j for j in branch.joins if j.var is v)
            if (j.then is UNDEFINED) == (j.orelse is UNDEFINED):
                break
            block, v = (branch.orelse, j.orelse) if j.then is UNDEFINED else (branch.then, j.then)
            branch = self.maker.get(v) if self.home.get(v) is block else None
        return block, v

    def nothing(self, v):
        """A placeholder to push on a list of saved values in a pass in which `v` is unset."""
        if type(v.fact) is Array:
            return zeros(v.fact, [Const(0) for _ in v.fact.dims])
        return Apply(no_elements, ()) if isinstance(v.fact, (Array, Stack)) else Const(None)

    def insert(self, home, v, step, inner, new, until=None):
        """Inserts the statement that saves a value after the one that makes it, and joins up to the loop's body.

        until: a block around it in which the list is popped in every pass, so that each path must push an item
        """
        maker = self.maker.get(v)
        home.insert(0 if maker is None else next(k for k, s in enumerate(home) if s is maker) + 1, step)
        return new if home is self.step.body else self.joined(home, inner, new, step, until)

    def joined(self, home, inner, new, step, until):
        """Adds joins for saved values at the end of the arms in which a value is saved."""
        value, block, filled = new, home, until in (None, home)
        while block is not self.step.body:
            branch, parent = self.parent_of(block)
            var, other = inner.like(), inner
            if not filled:
                other, nothing = inner.like(), step.value.args[1].like()
                (branch.orelse if branch.then is block else branch.then).extend([
                    Let((nothing,), self.nothing(nothing), self.origin_forward()),
                    Let((other,), Apply(push, (inner, nothing)), self.origin_forward())])
                filled = parent is until
            then, orelse = (value, other) if branch.then is block else (other, value)
            branch.joins.append(Join(var, then, orelse))
            value, block = var, parent
        return value

    def parent_of(self, block):
        def search(body):
            for s in body:
                if isinstance(s, If):
                    for arm in blocks(s):
                        if arm is block:
                            return s, body
                        found = search(arm)
                        if found:
                            return found
            return None
        return search(self.step.body)

    def through_arms(self, home, back, rest):
        """The same for the backward arms, in which a list is popped."""
        value, block = rest, home
        while block is not self.step.body:
            branch, parent = self.parent_of(block)
            mirrored = self.sweep.mirror.get(id(block))
            backward = next(
                s for s in walk(self.body) if isinstance(s, If) and (s.then is mirrored or s.orelse is mirrored)
            )
            var = back.like()
            first = backward.then is mirrored
            backward.joins.append(Join(var, value if first else back, back if first else value))
            value, block = var, parent
        return value

    def backward_while(self, body, carries, stacks):
        """The backward form of a while loop: runs until a list of saved values is empty; if there is none, or an index
        counts the passes, a for loop.
        """
        held, taken_back = self.index_taken_back(body, carries)
        if stacks and (held is None or not all(map(is_steady, carries))):
            lead = stacks[0].inner
            test = Var("t", Array(bool))
            return While(carries, [Let((test,), Apply(nonempty, (lead,)))], test, body, self.origin)
        count, inner, new = (Var("passes", Array(int, (), unknown("?count")), SAVED) for _ in range(3))
        self.step.body.append(Let((new,), Apply(operator.add, (inner, Const(1))), self.origin_forward()))
        self.step.carries.append(Carry(inner, Const(0), new, count))
        self.sweep.note(count)
        if held is None:
            return For(Var("i", Array(int, (), unknown("?index"))), count, (), carries, body, self.origin)
        carries, body = [c for c in carries if c is not held], [s for s in body if s is not taken_back]
        return For(taken_back.targets[0], count, (), carries, body, self.origin, True)

    def index_taken_back(self, body, carries):
        """(backward carry, its statement) of a variable that counts the passes from 0 and can be the loop's index."""
        for c in self.step.carries:
            counted = self.undo.links.get(c.inner)
            held = next((b for b in carries if b.init is c.outer), None) if isinstance(counted, Counted) else None
            if held is None or not (isinstance(c.init, Const) and c.init.value == 0):
                continue
            back = next((s for s in body if isinstance(s, Let) and held.next in s.targets), None)
            if back is None or not is_one(counted.steps):
                continue
            read = [v for s in body if s is not back for v in all_reads(s)] + [
                v for b in carries if b is not held for v in operands(b.next)]
            if held.inner not in read and held.next in read:
                return held, back
        return None, None
