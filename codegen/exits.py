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

from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
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


def is_flag(node: Any, flag: Any) -> bool:
    return node is flag.inner or isinstance(node, Const) and node.value is False


def is_set(node: Any) -> bool:
    return isinstance(node, Const) and node.value is True


def branch_of(block, value):
    """(position, branch, join) of the branch whose join defines a value, or None."""
    for k, step in enumerate(block):
        for j in step.joins if isinstance(step, If) else ():
            if j.var is value:
                return k, step, j
    return None


def exit_of(loop: Any, counts: Any, lengths: Any, names: Any) -> Any:
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
