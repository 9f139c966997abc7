# SPDX-License-Identifier: Apache-2.0
"""Lowering of loops and branches, with the values that they carry and join, to the loop form."""
import numpy as np

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import Apply, Const, Let, Undefined, Var, all_made
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, node, quoted
from gradscribe.codegen.loops.form import names_in
from gradscribe.codegen.lowered import ROW, Core, Lazy
from gradscribe.codegen.phi_types import owned
from gradscribe.codegen.scalar_forms import literal, truth


class Loops(Core):
    """The lowering of statements that hold blocks; `block` and simple statements are in lowering.py."""

    def empty_list(self, fact):
        """An empty list with a definite element type."""
        if not isinstance(fact, Stack) or not isinstance(fact.element, (Array, Stack)):
            self.refuse("a list of containers has no Numba form")
        return quoted("[{} for _ in range(0)]", self.nothing(fact.element))

    def nothing(self, fact):
        """A placeholder value for a variable that is not set yet."""
        if isinstance(fact, Stack):
            return self.empty_list(fact)
        if not fact.dims:
            return literal(0, fact.dtype)
        lengths = [self.known_length(d) for d in fact.dims]
        lengths = [ZERO] * fact.rank if None in lengths else lengths        # it may be copied, but is never read
        return quoted("np.empty({}, {})", lengths, fact.dtype)

    def known_length(self, length):
        """A length that is a constant or known from the arguments; else None."""
        n = length.normal()
        if n.symbol is None:
            return node(n.offset)
        if n.symbol not in self.named_lengths:
            return None
        name, offset = self.named_lengths[n.symbol]
        return name if n.offset == offset else quoted("{} + {}", name, n.offset - offset)

    def copies(self, pairs):
        """Parallel assignments, in an order in which none overwrites what another reads."""
        moves = []
        for var, value in pairs:
            name = self.naming.names.get(var)
            if name is None or name in [t for t, _ in moves]:
                continue
            new = node(self.copied_value(var, value))
            if new != node(name):
                moves.append((name, new))
        while moves:
            free = next((k for k, (t, _) in enumerate(moves) if not any(
                t in names_in(n) for j, (_, n) in enumerate(moves) if j != k)), None)
            if free is None:
                self.set([t for t, _ in moves], [n for _, n in moves])
                return
            self.set(*moves.pop(free))

    def copied_value(self, var, value):
        fact = var.fact
        if isinstance(value, Const) and isinstance(value.value, Undefined):
            return self.nothing(fact) if isinstance(fact, (Array, Stack)) else ZERO
        if isinstance(fact, Stack):
            if not isinstance(value, Var):
                self.refuse("a list that is a constant has no Numba form")
            return self.naming[value]
        if not isinstance(fact, Array):
            return ZERO if isinstance(value, Const) else self.refuse(
                "a value that a loop or a branch sets here is no number and no array, so it has no Numba form")
        if not fact.dims:
            return self.scalar(value, fact.dtype)
        lazy = self.lazy(value)
        if not lazy.rank:
            self.refuse("a number in one pass of a loop and an array in another has no Numba form")
        if lazy.view == ROW and var not in self.function.notes["updated"] and lazy.exact == np.dtype(fact.dtype):
            return lazy.name                    # an alias is enough: nothing is written through it
        return self.array(lazy, fact.dtype).name

    def step_If(self, step):
        test = self.truth(step.test)
        arms = []
        for arm in ("then", "orelse"):
            with self.into([]) as block:
                self.block(getattr(step, arm))
                self.origin = step.origin or self.origin
                self.copies([(j.var, getattr(j, arm)) for j in step.joins])
            arms.append(block)
        for j in step.joins:
            sides = [self.known.keys.get(v) for v in (j.then, j.orelse) if isinstance(v, Var)]
            if len(sides) == 2 and None not in sides and isinstance(j.var.fact, Array) and j.var.fact.dims:
                self.known.keys[j.var] = [a if a == b else (j.var, k) for k, (a, b) in enumerate(zip(*sides))]
                extents = [self.known.extents.get(v) or [None] * j.var.fact.rank for v in (j.then, j.orelse)]
                self.known.extents[j.var] = [a if a == b else None for a, b in zip(*extents)]
        then, orelse = arms
        if then:
            self.add(loops.If(test, then, orelse))
        elif orelse:
            self.add(loops.If(quoted("not {}", test), orelse, []))

    def truth(self, test):
        """The test of a branch or a loop."""
        if isinstance(getattr(test, "fact", None), Stack):
            return quoted("len({}) > 0", self.naming[test])
        return truth(self.lazy(test).operand())

    def enter(self, step):
        """The copies into a loop; a carried array of which only entries are written keeps its lengths."""
        self.copies([(c.inner, c.init) for c in step.carries])
        for c in step.carries:
            if not isinstance(c.init, Var) or not isinstance(c.inner.fact, Array) or not c.inner.fact.dims:
                continue
            keys = self.known.keys.get(c.init) or [(c.init, k) for k in range(c.inner.fact.rank)]
            if self.kept(c.next, c.inner):
                self.known.keys[c.inner] = self.known.keys[c.outer] = keys
                self.known.extents[c.inner] = self.known.extents[c.outer] = self.known.extents.get(c.init)
                continue
            # if the value is set before the loop, facts say which lengths stay; `again` checks them after each pass
            stay = [m.same(n) and not m.is_unit and c.inner not in self.unset
                    for m, n in zip(c.init.fact.dims, c.inner.fact.dims)]
            extents = self.known.extents.get(c.init) or [None] * len(keys)
            self.known.keys[c.inner] = [key if same else (c.inner, k) for k, (key, same) in enumerate(zip(keys, stay))]
            self.known.extents[c.inner] = [length if same else None for length, same in zip(extents, stay)]

    def again(self, step):
        """The copies at the end of a pass."""
        for c in step.carries:
            keys = self.known.keys.get(c.inner)
            if keys is None or not isinstance(c.next, Var) or c.next is c.inner or not isinstance(
                    c.inner.fact, Array) or self.kept(c.next, c.inner):
                continue
            later = self.lazy(c.next).dims
            for k, (key, d) in enumerate(zip(keys, later)):
                if key != (c.inner, k) and key != d.key and d.kind != "one":
                    kept = (self.known.extents.get(c.inner) or {k: None})[k] or loops.Length(self.naming[c.inner], k)
                    self.say("same({}, {})", kept, d.length)
            if c.outer in self.naming.names:
                self.known.keys[c.outer] = [key if key != (c.inner, k) else (c.outer, k) for k, key in enumerate(keys)]
                self.known.extents[c.outer] = self.known.extents.get(c.inner)
        self.copies([(c.inner, c.next) for c in step.carries])

    def kept(self, value, base):
        """Whether a value is `base` after writes to its entries."""
        for _ in range(200):
            if value is base:
                return True
            made = self.maker.get(value) if isinstance(value, Var) else None
            if isinstance(made, Let) and isinstance(made.value, Apply) and (
                    updates(made.value) or made.value.function is owned):
                value = made.value.args[0]
            elif made is not None and hasattr(made, "inner"):
                if not self.kept(made.next, made.inner):
                    return False
                value = made.init
            elif made is not None and hasattr(made, "then"):
                return self.kept(made.then, base) and self.kept(made.orelse, base)
            else:
                return False
        return False

    def step_For(self, step):
        changed = [*all_made(step.body), *(c.inner for c in step.carries)]
        changed = {self.naming[v] for v in changed if v in self.naming.names}
        sources = []
        for v, source in step.items:
            if isinstance(source, Apply) and source.function is range:
                sources.append((v, [self.steady(self.scalar(a), changed) for a in source.args]))
                continue
            array = self.lazy(source)
            array = array if array.name else self.array(array)
            if changed & names_in(array.name):
                array = self.array(Lazy(array.dims, array.dtype, array.read, 1))
            sources.append((v, array))
        key = self.length_key(step.count)
        count = self.atom(self.scalar(step.count), "n")
        self.enter(step)
        index = self.naming.names.get(step.index) or self.fresh("at")
        self.bounds[step.index] = key
        head = "for {} in range({} - 1, -1, -1):" if step.reverse else "for {} in range({}):"
        with self.inside(head, index, count) as block:
            for v, source in sources:
                if v in self.naming.names:
                    self.item(v, source, node(index))
            self.block(step.body)
            self.origin = step.origin or self.origin
            self.again(step)
            if not block:
                self.add(loops.Nothing())
        self.copies([(c.outer, c.inner) for c in step.carries])

    def item(self, v, source, index):
        """Sets the item of a pass: an element of a range or of an array."""
        name = self.naming[v]
        if isinstance(source, list):
            start, _, by = source
            sign, by = ("-", by.args[0]) if is_less(by) and start != ZERO else ("+", by)
            value = index if by == loops.ONE else quoted("{} * {}", index, by)
            self.set(name, value if start == ZERO else quoted("{} {} {}", start, sign, value))
        elif source.rank == 1:
            self.set(name, source.read([index]))
        else:
            self.set(name, entry(source.name, index))
            self.views[v] = True
            self.keep(v, source.dims[1:])

    def steady(self, value, changed):
        """A scalar as a loop invariant: under a new name if the body changes what it reads."""
        if is_less(value) and isinstance(value.args[0], loops.Const):
            return value
        if not changed & names_in(value):
            return self.atom(value)
        return node(self.result("t", "{}", value))

    def step_While(self, step):
        self.enter(step)
        with self.inside("while True:"):
            self.block(step.head)
            self.origin = step.origin or self.origin
            with self.inside("if not {}:", self.truth(step.test)):
                self.say("break")
            self.block(step.body)
            self.origin = step.origin or self.origin
            self.again(step)
        self.copies([(c.outer, c.inner) for c in step.carries])


def is_less(e):
    """Whether an expression is a negation."""
    return getattr(e, "op", "") == "neg"
