# SPDX-License-Identifier: Apache-2.0
"""Loops that are left early: where a while loop tests a generated flag, a `break` is printed instead.

    stop = False                              for v in x:
    i = 0                                         if v < 0:
    while not stop and i < x.shape[0]:                break
        v = x[i]                       is         s = s + v
        if v < 0:
            stop = True
        else:
            s = s + v
        i = i + 1

Only the printed text changes.  A loop whose counter is not read after it becomes a `for`.  A counter that only counts
the passes that have begun is incremented before the loop can be left.  The other statements at the end of a pass are
printed on both ways out; if they do more than count, the flag stays.

>>> import numpy as np, gradscribe as gs
>>> def f(x):
...     s = 0.0
...     for v in x:
...         if v < 0:
...             break
...         s += v * v
...     return s
>>> print(gs.grad(f).source_for(np.ones(3)).split("# for")[0])
import numpy as np
<BLANKLINE>
<BLANKLINE>
def grad_f(x):
    passes = 0
    for v in x:
        passes += 1
        if v < 0:
            break
<BLANKLINE>
<BLANKLINE>
"""
import operator
from dataclasses import dataclass, field
from typing import Any

import gast

from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    If,
    Let,
    Var,
    all_made,
    all_reads,
    is_application,
    made,
    negated,
    operands,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import both, entry_of_range, run_length, shape_of
from gradscribe.codegen.came_from import parts_of


@dataclass(eq=False, slots=True)
class Exit:
    """How a loop is left: by branches that set a flag, by the rest of its test, or by the end of a counter."""
    flag: Carry
    rest: Any                                   # the test without the flag, None if nothing else ends the loop
    first: list = field(default_factory=list)   # counters incremented before the loop can be left
    body: list = field(default_factory=list)    # ends with the branch that may leave
    last: list = field(default_factory=list)    # counters incremented after it
    counter: Carry | None = None                # the index of a loop that is printed as a for
    items: tuple = ()                           # (target, source) of that for


def is_flag(node, flag):
    return node is flag.inner or isinstance(node, Const) and node.value is False


def is_set(node):
    return isinstance(node, Const) and node.value is True


def branch_of(block, value):
    """(position, branch, join) of the branch whose join defines a value, or None."""
    for k, step in enumerate(block):
        for j in step.joins if isinstance(step, If) else ():
            if j.var is value:
                return k, step, j
    return None


def exit_of(loop, counts, lengths, names):
    """The Exit of a while loop, or None; counts: how often each variable is read; lengths: {variable: passes}."""
    asked, rest = split_test(loop, counts)
    if negated(asked) is None:
        return None
    flag = next((c for c in loop.carries if c.inner is negated(asked)), None)
    if flag is None or not (isinstance(flag.init, Const) and flag.init.value is False):
        return None
    found = branch_of(loop.body, flag.next)
    if found is None:
        return None
    k, branch, join = found
    out = Exit(flag, rest, [], loop.body[:k + 1], loop.body[k + 1:])
    reads = [1]                                 # in the test
    if not leaves_only(branch, join, flag, counts, reads) or counts.get(flag.inner, 0) != reads[0]:
        return None
    ends = {c.next: c for c in loop.carries if isinstance(c.next, Var)}
    if not all(isinstance(s, Let) and s.targets[0] in ends and is_count(s, ends[s.targets[0]]) for s in out.last):
        return None
    out.first = [s for s in out.last if counts.get(ends[s.targets[0]].inner, 0) == 1 and counts[s.targets[0]] == 1]
    out.last = [s for s in out.last if s not in out.first]
    counted(out, loop, counts, ends, lengths, names)
    return out


def split_test(loop, counts):
    """The test of a while loop as (first condition, condition evaluated if that holds); (None, None) if it is other."""
    test = loop.test
    if not loop.head:
        return test.args if isinstance(test, Apply) and test.function is both else (test, None)
    *before, branch = loop.head
    if not isinstance(branch, If) or branch.orelse or len(branch.joins) > 1 or len(before) > 1 or \
            branch.joins[0].var is not test:
        return None, None
    join, asked = branch.joins[0], branch.test
    if before:
        if not isinstance(before[0], Let) or before[0].targets != (asked,) or join.orelse is not asked:
            return None, None
        asked = before[0].value
    if len(branch.then) == 1 and isinstance(branch.then[0], Let) and branch.then[0].targets == (join.then,) and \
            counts[join.then] == 1:
        return asked, branch.then[0].value
    return (asked, join.then) if not branch.then else (None, None)


def is_count(step, carry):
    value = step.value
    return len(step.targets) == 1 and is_application(value, operator.add) and value.args[0] is carry.inner and \
        isinstance(value.args[1], Const)


def leaves_only(branch, join, flag, counts, reads):
    """Whether a join is the flag, set by some arms and unchanged by others; `reads` sums how often it is read."""
    if counts.get(join.var, 0) != 1:
        return False
    for value, arm in (join.then, branch.then), (join.orelse, branch.orelse):
        if is_flag(value, flag):
            reads[0] += value is flag.inner
        elif not is_set(value):
            found = branch_of(arm[-1:], value)
            if found is None or not leaves_only(*found[1:], flag, counts, reads):
                return False
    return not (is_set(join.then) and is_set(join.orelse))


def counted(out, loop, counts, ends, lengths, names):
    """Finds the loop's counter and the items that it iterates over."""
    rest = out.rest
    if not (is_application(rest, operator.lt) and isinstance(rest.args[0], Var)) or \
            loop.origin is None or not loop.origin.statement.startswith("for "):
        return
    index, count = rest.args
    step = next((s for s in out.last if ends[s.targets[0]].inner is index), None)
    carry = ends[step.targets[0]] if step is not None else None
    inside = {*all_made(loop.body), *(c.inner for c in loop.carries)}
    if carry is None or counts.get(carry.outer, 0) or counts[carry.next] != 1 or inside & set(operands(count)) or \
            not (isinstance(carry.init, Const) and carry.init.value == 0 and step.value.args[1].value == 1):
        return
    out.counter, out.last = carry, [s for s in out.last if s is not step]
    walked_over(out, loop, index, count, lengths.get(count) if isinstance(count, Var) else count, inside,
                names)


def walked_over(out, loop, index, count, length, inside, names):
    """Moves the loop's items into its head: whole arrays, several of them side by side, or a range."""
    items, others, touched = [], [], set()
    for step in out.body:
        value = step.value if isinstance(step, Let) and len(step.targets) == 1 and step.origin is not None and \
            step.origin.same_statement(loop.origin) and names.get(step.targets[0]) not in touched else None
        if is_application(value, operator.getitem) and value.args[1] is index and isinstance(value.args[0], Var) and \
                isinstance(value.args[0].fact, Array) and value.args[0] not in inside:
            items.append((step.targets[0], value.args[0]))
        elif is_application(length, run_length) and not items and same(value, entry_of_range(
                length.args, index, lambda function, *args: Apply(function, args), Const)):
            items.append((step.targets[0], Apply(range, length.args)))
            length = None
        elif not items and (ends := known_ends(value, index, count)) is not None:
            items.append((step.targets[0], Apply(range, tuple(map(Const, ends)))))
        else:
            others.append(step)
            touched.update(names.get(v) for v in (*all_reads(step), *made(step), *all_made([step])))
    shortest = length.args if is_application(length, min) else (length if length is not None else count,)
    sources = [s for _, s in items]
    if is_application(sources[0] if sources else None, range) or sources and len(shortest) == len(sources) and all(
            spans(s, n) for s, n in zip(sources, shortest)):
        out.items, out.body = tuple(items), others


def known_ends(value, index, count):
    """The arguments of a range of known length, with step 1 or -1, if a value is its entry; else None."""
    if not isinstance(count, Const) or not isinstance(value, Apply) or len(value.args) != 2:
        return None
    start, other = value.args
    if other is not index or not isinstance(start, Const) or value.function not in (operator.add, operator.sub):
        return None
    by = 1 if value.function is operator.add else -1
    return start.value, start.value + by * count.value, by


def same(a, b):
    if isinstance(a, Apply) and isinstance(b, Apply):
        return a.function is b.function and len(a.args) == len(b.args) and all(map(same, a.args, b.args))
    return a is b or isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and \
        a.value == b.value


def spans(array, length):
    """Whether a number of passes is the length of an array's first axis."""
    if is_application(length, shape_of):
        return length.args[0] is array and length.args[1].value == 0
    known = getattr(getattr(length, "fact", None), "length", None)
    return known is not None and known.same(array.fact.dims[0])


class Exits:
    """The part of emit.py's writer that prints loops that are left early."""

    def step_While(self, step):
        found = exit_of(step, self.counts, self.passes.numbers, self.naming.names)
        if found is None or not self.keep_their_names(found):
            return self.while_loop(step)
        flag, told = found.flag, self.counts.get(found.flag.outer, 0) > 0
        carries = [c for c in step.carries if c is not found.counter and (c is not flag or told)]
        if found.counter is not None:
            loop = For(found.counter.inner, found.rest.args[1], found.items, carries, [], step.origin)
            self.exits[id(loop)] = found
            return self.step_For(loop)
        before = self.copies([(c.inner, c.init, (id(c), "init") in self.naming.copied_in) for c in carries])
        body = self.left_pass(found, carries, [])
        loop = gast.While(gast.Constant(True, None) if found.rest is None else self.test(found.rest), body, [])
        return [*before, loop, *self.copies([(c.outer, c.inner) for c in carries])]

    def keep_their_names(self, found):
        """Whether each counter that is incremented elsewhere keeps one name."""
        names = self.naming.names
        return all(names.get(s.targets[0]) == names.get(s.value.args[0]) for s in found.first)

    def index_used_in(self, found):
        """Whether a pass reads its index, other than in the test, its increment and the loop's items."""
        return self.counts.get(found.counter.inner, 0) > 2 + len(found.items)

    def left_pass(self, found, carries, start):
        """The statements of a pass of a loop that is left early; `start` sets its items."""
        wanted = [c for c in carries if self.counts.get(c.outer, 0) and c is not found.flag]
        self.leaving.append((found, wanted))
        body = [*self.block(found.first), *start, *self.until(found.body, found.flag.next, [])]
        self.leaving.pop()
        return [*body, *self.block(found.last), *self.next_pass([c for c in carries if c is not found.flag])]

    def next_pass(self, carries):
        return self.copies([(c.inner, c.next, (id(c), "next") in self.naming.copied_in) for c in carries])

    def until(self, block, value, pending):
        """A block whose last branch may leave the loop; `pending`: the copies of the enclosing branches."""
        *front, branch = block
        join = next(j for j in branch.joins if j.var is value)
        out, arms = self.block(front), []
        for side in ("then", "orelse"):
            pairs = [(j.var, getattr(j, side)) for j in branch.joins if j is not join]
            arms.append(self.arm(getattr(branch, side), getattr(join, side), pairs, pending))
        then, orelse = arms
        if is_set(join.then):                   # what follows a break needs no else
            node, rest = gast.If(self.test(branch.test), then, []), orelse
        elif is_set(join.orelse):
            node, rest = gast.If(self.negation(branch.test), orelse, []), then
        elif not then:
            node, rest = gast.If(self.negation(branch.test), orelse, []), []
        else:
            node, rest = gast.If(self.test(branch.test), then, orelse), []
        node.came_from = [branch.origin, *parts_of(branch)]
        return [*out, node, *rest]

    def arm(self, block, value, pairs, pending):
        found, wanted = self.leaving[-1]
        if is_set(value):
            out = [*self.block(block), *self.copies(pairs)]
            for outer in reversed(pending):
                out += self.copies(outer)
            if self.counts.get(found.flag.outer, 0):
                out += self.copies([(found.flag.inner, Const(True))])
            needed = [s for s in found.last if any(c.next is s.targets[0] for c in wanted)]
            return [*out, *self.block(needed), *self.next_pass(wanted), gast.Break()]
        if is_flag(value, found.flag):
            return [*self.block(block), *self.copies(pairs)]
        return [*self.until(block, value, [*pending, pairs]), *self.copies(pairs)]
