# SPDX-License-Identifier: Apache-2.0
"""SSA destruction: a name for each value; the user's names first, and as few others as possible.

Values share a name if they are copies of each other (phis of loops and branches, an array before and after
an update) or versions of one variable, and are never live together.  A shared name belongs to one variable of the
user's; values and adjoints never share one.  An update is made in place if its old value is dead afterwards and no
other live name may alias the array; otherwise the base is copied first.

>>> from gradscribe.ast_transform.examples import form, show
>>> from gradscribe.ast_transform.passes.simplify import simplify
>>> f = simplify(form("def f(x, n):\\n    for _ in range(n):\\n        x = np.sin(x)\\n    return x", 1.0, 3))
>>> print(show(f))
f(x, n):
    enter x_1 = x
    for i in range(n):
        x_2 = np.sin(x_1)
        next x_1 = x_2
    leave x_3 = x_1
    return x_3
>>> sorted(set(coalesce(f).names.values()))
['i', 'n', 'x']
"""
import builtins
import keyword
import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gradscribe.ast_transform.core.alias import aliased, is_fresh, is_number, memory_of, reads, role, updates
from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    USER,
    Apply,
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
    all_reads,
    blocks,
    entry_reads,
    is_application,
    made,
    operands,
    read_counts,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Stack
from gradscribe.ast_transform.core.memory import HOLDS, UPDATES
from gradscribe.ast_transform.core.operations import pop, push, push_front, put, unpacked
from gradscribe.ast_transform.passes.coalescing import defined, kin
from gradscribe.ast_transform.passes.words import is_plain, word

RESERVED = set(dir(builtins)) | set(keyword.kwlist) | {"np", "math", "scipy"}


@dataclass
class Naming:
    """The names of a function's values, and the updates that must copy their base first."""
    names: dict = field(default_factory=dict)
    copies: set = field(default_factory=set)
    copied_in: set = field(default_factory=set)
    in_place: set = field(default_factory=set)          # sums that may update their first operand in place

    def __getitem__(self, var):
        return self.names[var]


def coalesce(function: Function, taken: Iterable[str] = (), indices_apart: bool = False,
             words: bool = False) -> Naming:
    """The names of a function's values.

    indices_apart: a loop's index shares no name with values that are read after the loop, which may be unrolled; words:
    temporaries get descriptive names.
    """
    parameters = [p.value for p in function.params if isinstance(p.value, Var)]
    graph = _Graph(function, parameters)
    for step in walk(function.body) if indices_apart else ():
        for c in step.carries if isinstance(step, For) else ():
            graph.interfere(step.index, c.inner)
            graph.interfere(step.index, c.outer)
    return _named(graph, function, parameters, set(taken) | RESERVED, words)


def changes(function: Function) -> tuple[set, set]:
    """({(id(carry), "init" or "next") that must be copied}, all values that are changed in place)."""
    graph = _Graph(function, [p.value for p in function.params if isinstance(p.value, Var)])
    return graph.copied_in, graph.updated


class Sums(NamedTuple):
    """of_owned: {(id of a sum, an operand that is an owned array): the sum}; not_in_place: those that copy it."""
    of_owned: dict
    not_in_place: set


class _Graph:
    """The interference graph, with alias and ownership analysis: which values are live together, which are copies, and
    which updates must copy their base because something else may alias it.
    """

    def __init__(self, function, parameters):
        self.apart, self.pairs, self.order = {}, [], {}
        self.kin = kin(function.body, parameters)
        self.root, self.shared = {}, set()
        self.escaped, self.kept = set(), set()      # never changed in place; those that a loop has put into a list
        self.parameters = set(parameters)
        self.sums = Sums({}, set())
        self.shown_arrays = None
        for v in parameters:
            self.see(v)
        self.roots(function.body)
        self.made, self.copied_in, self.updated, self.in_pass = {}, set(), set(), {}
        self.ownership(function.body)
        self.put_away(function)
        put_away = set(self.escaped)
        self.escaped = set().union(*map(self.bases, put_away))
        self.kept_by_passes(function.body)
        self.copied_first(function.body, put_away)
        live = self.block(function.body, set(operands(function.result)))
        for p in parameters:
            self.define(p, live.union(parameters))
        for step in walk(function.body):
            if isinstance(step, Let):
                for v in step.targets:
                    self.see(v)
            for v in defined(step):
                self.see(v)

    def see(self, var):
        self.order.setdefault(var, len(self.order))

    def roots(self, body):
        """Fills `root`, {view or container: the array that it shows or holds}, and `escaped`."""
        for step in walk(body):
            if isinstance(step, Let):
                value = step.value
                for v in operands(value):
                    self.order.setdefault(v, len(self.order))
                for t in step.targets:
                    self.order.setdefault(t, len(self.order))
                shows = aliased(value) if isinstance(value, Apply) else ()
                if isinstance(value, Var):
                    self.root[step.targets[0]] = value
                elif shows and (len(shows) == 1 or memory_of(value) is HOLDS):
                    self.root.update((t, shows[0]) for t in step.targets
                                     if not isinstance(t.fact, Array) or t.fact.dims)
                elif shows and not isinstance(value.function, Function):        # it may be any of them
                    self.escaped.update(shows)
                if isinstance(value, Apply) and isinstance(value.function, Function) and not value.function.notes.get(
                        "fresh"):       # it may store or return its arguments
                    self.escaped.update(v for a, p in zip(value.args, value.function.params)
                                        if not is_number(p.value) for v in operands(a))
                elif isinstance(value, Pack):
                    self.escaped.update(operands(value))
            for v in defined(step):
                self.order.setdefault(v, len(self.order))

    def put_away(self, function):
        """Marks arrays that lists hold as escaped, unless every update of them comes before they are put there."""
        times = Counter(read_counts(function))
        shown = {}
        for v in self.order:
            for b in self.bases(v):
                shown.setdefault(b, []).append(v)

        def visit(block):
            for k, step in enumerate(block):
                for inner in blocks(step):
                    visit(inner)
                for v in _held(step.value.args[1]) if _puts_away(step) else ():
                    if isinstance(v.fact, Array) and v.fact.dims and not complete(v, block[:k + 1]):
                        self.escaped.add(v)

        def complete(v, before):
            """Whether an array is new in this block, and nothing after these statements aliases it."""
            makers = {t: s for s in before for t in made(s)}
            array = v
            while isinstance(step := makers.get(v), (For, While)) or isinstance(step, Let) and updates(step.value):
                v = step.value.args[0] if isinstance(step, Let) else next(c for c in step.carries if c.outer is v).init
            if step is None or not isinstance(step, Let) or not is_fresh(step.value):
                return False
            here = Counter(u for s in before for u in all_reads(s))
            return all(here[u] == times[u] for b in self.bases(array) for u in shown[b])
        visit(function.body)

    def ownership(self, body):
        """Finds which loops must copy the arrays that they carry, because they change them in place."""
        self.updated = self.changed_by_statements(body)
        loops = [(s, c) for s in walk(body) if isinstance(s, (For, While)) for c in s.carries
                 if isinstance(c.inner.fact, Array) and c.inner.fact.dims]
        inside: dict = {}               # the values that an iteration defines
        for step, c in loops:
            self.made[c.inner] = self.made[c.outer] = ("carry", c)
            if step not in inside:
                inside[step] = {v for s in walk(step.body) for v in (
                    *(s.targets if isinstance(s, Let) else ()), *defined(s))}
            self.in_pass[c] = inside[step]
        self.changed_by_loops(body, loops)
        for step in walk(body):             # a list of the caller's that a loop takes from, or puts into
            for c in step.carries if isinstance(step, (For, While)) else ():
                if _is_stack(c.inner) and isinstance(c.init, Var) and self.given(c.init):
                    self.copied_in.add((id(c), "init"))
        for _, c in loops:
            if c.inner in self.updated or c.outer in self.updated:
                for side, source in (("init", c.init), ("next", c.next)):
                    if isinstance(source, Var) and not self.owned(source, {c.inner, c.outer}):
                        self.copied_in.add((id(c), side))

    def changed_by_statements(self, body):
        """The values that statements update in place, by all their names; fills `made`, and the rows in `root`."""
        updated = {step.value.args[0] for step in walk(body) if isinstance(step, Let) and updates(step.value)
                   and isinstance(step.value.args[0], Var)}
        for step in walk(body):
            if isinstance(step, Let):
                for t in step.targets:
                    self.made[t] = step.value
            elif isinstance(step, If):
                for j in step.joins:
                    self.made[j.var] = j
            elif isinstance(step, For):
                self.root.update((v, shown) for v, s in step.items if isinstance(v.fact, Array) and v.fact.dims
                                 for shown in _held(s))
        for v in list(updated):
            while isinstance(v := self.made.get(v), Var):       # changed under another name
                updated.add(v)
        return updated

    def changed_by_loops(self, body, loops):
        """Adds to `updated` the carried arrays that inner loops or later names change in place, to a fixpoint."""
        updated, carried = self.updated, {c.inner for _, c in loops}
        while True:
            more = {
                c.inner for _, c in loops if c.inner not in updated and (c.outer in updated or c.next in updated)
            } | {
                v
                for source in [*updated, *(c.init for _, c in loops if c.inner in updated)]
                for v in self.joined(source)
                if v in carried and v not in updated
            } | self.exchanged(body, updated)
            if not more:
                break
            updated |= more

    def joined(self, value):
        """A value, with those that it may be a copy of through joins."""
        found = [value] if isinstance(value, Var) else []
        for v in found:
            made = self.made.get(v)
            sides = (made.then, made.orelse) if isinstance(made, Join) else (made,)
            found += [o for o in sides if isinstance(o, Var) and o not in found]
        return found

    def exchanged(self, body, updated):
        """Carried arrays that become, after an iteration, one that it has changed under another name: a, b = b, a."""
        found = set()
        for step in walk(body):
            for c in step.carries if isinstance(step, (For, While)) else ():
                if c.inner in updated or not isinstance(c.next, Var) or _is_stack(c.inner) or not c.inner.fact.dims:
                    continue
                here = self.in_iteration(c.next)
                if any(d is not c and d.inner in updated and d.inner in here and isinstance(d.next, Var)
                       and d.inner not in self.in_iteration(d.next) for d in step.carries):
                    found.add(c.inner)
        return found

    def given(self, var):
        """Whether a value is an argument or a part of one."""
        made = self.made.get(var)
        if isinstance(made, Apply) and made.function in (operator.getitem, getattr, unpacked) and made.args:
            made = made.args[0]
        return var in self.parameters or isinstance(made, Var) and self.given(made)

    def owned(self, var, known=()):
        """Whether an array belongs to this function alone on every path, so that it may be changed in place.

        known: arrays that are assumed to belong to it
        """
        queue = [var]
        for v in queue:
            sources = () if v in known else self.owned_if(v)
            if sources is None:
                return False
            queue += [o for o in sources if isinstance(o, Var) and o not in queue]
        return True

    def owned_if(self, var):
        """The values that must be owned for this one to be owned; None if it is not owned."""
        made = self.made.get(var)
        if var in self.parameters or made is None:
            return None
        if isinstance(made, tuple):
            c = made[1]
            return [v for side, v in (("init", c.init), ("next", c.next)) if (id(c), side) not in self.copied_in]
        if isinstance(made, Var):
            return [made]
        if hasattr(made, "then"):
            return [made.then, made.orelse]
        if not isinstance(made, Apply):
            return None
        if is_application(made, operator.getitem) and isinstance(made.args[1], Const) and isinstance(
                made.args[1].value, slice) and isinstance(made.args[0], Var):
            return [made.args[0]]           # a part of an array
        own = memory_of(made) is UPDATES or updates(made) and isinstance(var.fact, Listed) or is_fresh(made)
        return [] if own else None

    def base(self, var):
        seen = 0
        while var in self.root and seen < 1000:
            var, seen = self.root[var], seen + 1
        return var

    def bases(self, var, passes=False):
        """The arrays that a value may alias: the base of a view, and both sources of a join or a carried value.

        A carried array that is changed in place belongs to the loop, in each iteration and after the last.  passes: an
        array that each iteration makes differs from that of the iteration before, which is ("before", array).
        """
        found, queue = set(), [var]
        for v in queue:
            v = self.base(v)
            made = self.made.get(v)
            if isinstance(made, Join):
                queue += [o for o in (made.then, made.orelse) if isinstance(o, Var) and o not in queue]
            elif isinstance(made, tuple):
                c, handed = made[1], [made[1].init, made[1].next]
                if c.inner in self.updated:
                    v = c.inner
                else:
                    if passes and isinstance(c.next, Var) and self.made_in_pass(c):
                        found.update(("before", b) for b in self.bases(handed.pop()))
                    queue += [o for o in handed if isinstance(o, Var) and o not in queue]
            found.add(v)
        return found

    def made_in_pass(self, carry):
        """Whether the next value of a carried array is one that the iteration itself has made."""
        inside, queue = self.in_pass[carry], [carry.next]
        for v in queue:
            v = self.base(v)
            made = self.made.get(v)
            if v not in inside:
                return False
            if isinstance(made, (Join, tuple)):
                sides = (made.then, made.orelse) if isinstance(made, Join) else (made[1].init, made[1].next)
                queue += [o for o in sides if isinstance(o, Var) and o not in queue]
            elif not is_fresh(made):
                return False
        return True

    def kept_by_passes(self, body):
        """Marks carried arrays that an iteration puts into a list as escaped in later iterations and after the loop."""
        for step in walk(body):
            if isinstance(step, (For, While)):
                kept, inside = set(), {c for s in walk(step.body) for c in getattr(s, "carries", ())}
                for inner in walk(step.body):
                    if _puts_away(inner):
                        kept.update(b for v in _held(inner.value.args[1]) for b in self.in_iteration(v, inside))
                again = True
                while again:            # the values that the next iterations get of these
                    lost = {v for c in step.carries if isinstance(c.next, Var) and not kept.isdisjoint(
                        self.in_iteration(c.next)) for v in (c.inner, c.outer)}
                    again = not lost <= kept
                    kept |= lost
                    self.kept |= lost
                    self.escaped |= lost
        for step in walk(body):
            if isinstance(step, (For, While)):
                self.copied_in.update((id(c), "init") for c in step.carries if c.inner in self.updated and isinstance(
                    c.init, Var) and isinstance(c.init.fact, Array) and not self.escaped.isdisjoint(
                        [*self.in_iteration(c.init), *self.bases(c.init)]))

    def copied_first(self, body, put_away):
        """Marks updates of arrays that are not owned, or that a list holds: they copy first, and make new arrays."""
        for step in walk(body):
            base = step.value.args[0] if isinstance(step, Let) and updates(step.value) else None
            if isinstance(base, Var) and (not self.bases(base).isdisjoint(self.escaped) or
                                          not _is_stack(base) and not self.owned(base)):
                self.shared.add(id(step))
                if not _is_stack(base) and self.root.pop(step.targets[0], None) is not None:
                    self.escaped = self.kept.union(*map(self.bases, put_away))

    def in_iteration(self, var, inside=()):
        """The arrays of the same iteration that a value may alias; inside: the carries of loops inside it."""
        found, queue = [], [var]
        for v in queue:
            v = self.base(v)
            made = self.made.get(v)
            sides = ()
            if isinstance(made, Join):
                sides = (made.then, made.orelse)
            elif isinstance(made, tuple) and (v is made[1].outer or made[1] in inside):
                sides = (made[1].init, made[1].next)
            queue += [o for o in sides if isinstance(o, Var) and o not in queue]
            found.append(v)
        return found

    def shown_by(self, var, others):
        """Whether one of the other values may alias the same array."""
        mine = self.bases(var, True)
        return any(not mine.isdisjoint(self.bases(v, True)) for v in others)

    def interfere(self, a, b):
        if a is not b:
            self.apart.setdefault(a, set()).add(b)
            self.apart.setdefault(b, set()).add(a)

    def define(self, var, live, source=None):
        for other in live & self.kin[var]:
            if other is not var and other is not source:
                self.interfere(var, other)

    def block(self, block, live):
        for step in reversed(block):
            live = getattr(self, "live_" + type(step).__name__)(step, live)
        return live

    def live_Let(self, step, live):
        targets, value = step.targets, step.value
        source = value if isinstance(value, Var) else None
        update = updates(value)
        if update:
            base = value.args[0]
            for other in value.args[1:]:        # the base may have to be copied before they are read
                for v in operands(other):
                    if v is not base:
                        self.interfere(targets[0], v)
            if isinstance(base, Var):
                self.pairs.append((targets[0], base))
                if self.shown_by(base, [v for v in live if v not in targets]):
                    self.shared.add(id(step))
        elif source is not None:
            self.pairs.append((targets[0], source))
        else:
            self.sum(step, live)
        for t in targets:
            self.define(t, live | set(targets), source)
        return (live - set(targets)) | set(operands(value))

    def sum(self, step, live):
        """Notes whether dx = dx + v may be in place: dx is owned, and nothing that is live afterwards aliases it."""
        for base in summed_up(step):
            if self.bases(base).isdisjoint(self.escaped) and self.owned(base):
                self.sums.of_owned[id(step), base] = step
                showing = set().union(*(self.showing(b) for b in self.bases(base, True)))
                if not showing.isdisjoint(live - set(step.targets)):
                    self.sums.not_in_place.add((id(step), base))

    def showing(self, array):
        """The values that may alias an array."""
        if self.shown_arrays is None:
            self.shown_arrays = {}
            for v in self.order:
                for b in self.bases(v, True):
                    self.shown_arrays.setdefault(b, set()).add(v)
        return self.shown_arrays.get(array, set())

    def live_Effect(self, step, live):
        return live | set(operands(step.value))

    def live_If(self, step, live):
        joined = {j.var for j in step.joins}
        after = live - joined
        for arm in ("then", "orelse"):
            for j in step.joins:
                source = getattr(j, arm)
                self.define(j.var, live | joined, source if isinstance(source, Var) else None)
        ends = []
        for arm in ("then", "orelse"):
            out = set(after)
            for j in step.joins:
                source = getattr(j, arm)
                out |= set(operands(source))
                if isinstance(source, Var):
                    self.pairs.append((j.var, source))
            ends.append(self.block(getattr(step, arm), out))
        return ends[0] | ends[1] | set(operands(step.test)) | after

    def live_For(self, step, live):
        outers, inners = {c.outer for c in step.carries}, {c.inner for c in step.carries}
        leaving = (live - outers) | {c.inner for c in step.carries if c.outer in live}
        items = {step.index, *(v for v, _ in step.items)}
        head = set(leaving).union(*(operands(s) for _, s in step.items))
        while True:
            end = (head - inners).union(*(operands(c.next) for c in step.carries))
            start = self.block(step.body, end)
            new = head | (start - items)
            if new == head:
                break
            head = new
        for v in items:                 # a carried value that becomes this item is dead when the item is set
            replaced = {c.inner for c in step.carries if c.next is v and c.inner not in start}
            self.define(v, (start | items | head) - replaced)
        for inner in walk(step.body):   # one name for the indices of nested loops would be hard to read
            if isinstance(inner, For) and USER not in (inner.index.kind, step.index.kind):
                self.interfere(step.index, inner.index)
        entered = {*operands(step.count), *(v for _, s in step.items for v in operands(s))}
        return self.around(step, live, leaving, head, entered)

    def live_While(self, step, live):
        outers, inners = {c.outer for c in step.carries}, {c.inner for c in step.carries}
        leaving = (live - outers) | {c.inner for c in step.carries if c.outer in live}
        head = set(leaving)
        while True:
            end = (head - inners).union(*(operands(c.next) for c in step.carries))
            start = self.block(step.body, end)
            new = head | self.block(step.head, start | leaving | set(operands(step.test)))
            if new == head:
                break
            head = new
        return self.around(step, live, leaving, head)

    def beside(self, carries, k, kept=False):
        """The carries that must not alias the array of carry k: of two that are changed in place, one is a copy.

        kept: without those that an iteration leaves as they were
        """
        return [*carries[:k], *(d for d in carries[k + 1:]
                                if d.inner not in self.updated or kept and d.next is d.inner)]

    def around(self, step, live, leaving, head, entered=frozenset()):
        """Adds the copies and interferences of a loop's entry, back edge and exit; returns what is live before it.

        entered: the values that its first line reads once, after the copies at the entry
        """
        inners, outers = {c.inner for c in step.carries}, {c.outer for c in step.carries}
        for k, c in enumerate(step.carries):        # entered with an array that something else may alias
            if (c.inner in self.updated or isinstance(c.inner.fact, Listed)) and isinstance(c.init, Var) and \
                    isinstance(c.init.fact, Array):
                others = [d.init for d in self.beside(step.carries, k) if isinstance(d.init, Var)]
                if self.shown_by(c.init, [*others, *(head - inners), *(live - outers)]):
                    self.copied_in.add((id(c), "init"))
            if c.inner in self.updated and isinstance(c.next, Var) and not _is_stack(c.next):
                own = self.bases(c.next) == {c.inner}   # its aliases are examined at each update
                others = [d.next for d in self.beside(step.carries, k, True) if isinstance(d.next, Var) and not (
                    own and d.inner not in self.updated)]
                if c.next is not c.inner and self.shown_by(c.next, [*others, *(head - inners)]):
                    self.copied_in.add((id(c), "next"))
        for c in step.carries:
            self.define(c.inner, head | inners, c.next if isinstance(c.next, Var) else None)
            self.define(c.inner, head | inners | entered, c.init if isinstance(c.init, Var) else None)
            self.define(c.outer, live | outers)
            for v in leaving:
                if v is not c.inner and v not in outers and c.outer in live:
                    self.interfere(c.outer, v) if v not in inners or any(
                        d.inner is v and d.outer in live for d in step.carries) else None
            self.pairs.append((c.outer, c.inner))
            if isinstance(c.next, Var):
                self.pairs.append((c.inner, c.next))
            if isinstance(c.init, Var):
                self.pairs.append((c.inner, c.init))
        return (head - inners).union(entered, *(operands(c.init) for c in step.carries))


def summed_up(step: Let) -> list[Var]:
    """The operands of a sum of arrays that have its dtype and shape, so that it may be made in them: one that a
    transformation made, or x += v.
    """
    value, target = step.value, step.targets[0].fact
    if role(value) not in ("sum", "difference") or step.origin is None or \
            not (step.origin.generated or step.origin.augments) or type(target) is not Array or \
            not target.dims or target.kind not in "fc":
        return []
    return [a for a in value.args[:2 if role(value) == "sum" else 1] if isinstance(a, Var) and type(
        a.fact) is Array and a.fact.dtype == target.dtype and a.fact.rank == target.rank and all(
            m.same(n) for m, n in zip(a.fact.dims, target.dims))]


def _held(node):
    """The values that a container holds once an operand is put into it: the operand, or what it is a view of."""
    if isinstance(node, Var):
        yield node
    elif isinstance(node, Pack):
        for item in node.items:
            yield from _held(item)
    elif isinstance(node, Apply):
        yield from aliased(node)


def _puts_away(step):
    """Whether a statement puts a value that may be an array into a list."""
    if not isinstance(step, Let) or not isinstance(step.value, Apply) or step.value.function not in (push, push_front):
        return False
    fact = step.targets[0].fact
    element = fact.element if isinstance(fact, Stack) else None
    return not (isinstance(fact, Listed) and fact.rank == 1 or isinstance(element, Array) and not element.dims)


def _is_stack(var):
    return not isinstance(var.fact, Array) or isinstance(var.fact, Listed)


class Group:
    """Values that share a name, with the union of their interference sets."""

    def __init__(self, var, graph, written):
        self.members, self.apart = [var], set(graph.apart.get(var, ()))
        self.written, self.given = var in written, var in graph.parameters
        self.variables = set() if var.kind == TEMPORARY else {(var.hint, var.kind)}
        self.kinds = {var.kind}

    def may_take(self, other):
        variables = self.variables | other.variables
        if self.given or other.given:       # the tangent that a loop carries is a parameter when the loop is entered
            variables = {hint for hint, _ in variables}
        if other is self or len(variables) > 1:
            return False
        if self.kinds | other.kinds == {SAVED, TEMPORARY}:
            return False
        return self.apart.isdisjoint(other.members)

    def take(self, other):
        self.members.extend(other.members)
        self.apart |= other.apart
        self.written, self.given = self.written or other.written, self.given or other.given
        self.variables |= other.variables
        self.kinds |= other.kinds


def _named(graph, function, parameters, taken, words=False):
    written = _written(function)
    groups = {v: Group(v, graph, written) for v in graph.order}

    def merge(a, b):
        first, second = groups[a], groups[b]
        if first.may_take(second):
            first.take(second)
            for v in second.members:
                groups[v] = first

    for a, b in graph.pairs:
        if a in groups and b in groups:
            merge(a, b)
    families = {}
    for v in sorted(graph.order, key=graph.order.get):
        if v.kind != TEMPORARY:
            families.setdefault((v.hint, v.kind), []).append(v)
    for members in families.values():
        for j, last in enumerate(members):
            asked = set()               # a group that does not take a value takes no group that has it
            for v in members[:j]:
                if groups[v] not in asked:
                    asked.add(groups[v])
                    merge(v, last)
    return _chosen({v: group.members for v, group in groups.items()}, graph, function, taken, words)


def _written(function):
    """The values that updates make."""
    return {step.targets[0] for step in walk(function.body)
            if isinstance(step, Let) and updates(step.value)}


def _lifetimes(function):
    """{value: (first statement, last statement) of its life, in the order of the text}, for values that only operations
    of their own block read.  Loops and branches, which are printed in several ways, may read others anywhere.
    """
    found, count = {}, 0

    def read(block, node):
        for v in operands(node):
            if v in found:
                found[v] = (found[v][0], count, id(block)) if found[v][2] == id(block) else NotImplemented
            if found.get(v) is NotImplemented:
                del found[v]

    def visit(block):
        nonlocal count
        for step in block:
            count += 1
            if isinstance(step, (Let, Effect)):
                read(block, step.value)
                count += 1
                if isinstance(step, Let):
                    found.update((t, (count, count, id(block))) for t in step.targets)
                continue
            for inner in blocks(step):
                visit(inner)
            for v in entry_reads(step):
                read(None, v)
            for c in getattr(step, "carries", ()):
                read(None, c.next)
            for j in getattr(step, "joins", ()):
                read(None, j.then)
                read(None, j.orelse)
            if isinstance(step, While):
                read(None, step.test)

    visit(function.body)
    read(None, function.result)
    return {v: life[:2] for v, life in found.items()}


def _life(group, lives):
    """(first statement, last statement, rank, dtype) of a group of values; None if the life of one is not known."""
    if not all(m in lives and type(m.fact) is Array for m in group):
        return None
    fact = group[0].fact
    return min(lives[m][0] for m in group), max(lives[m][1] for m in group), fact.rank, fact.dtype


def _disjoint(one, other):
    """Whether two lifetimes are disjoint and of one rank and dtype; else they share no name."""
    return one[2:] == other[2:] and (one[1] < other[0] or other[1] < one[0])


def _word(group, graph, stored, naming):
    """A descriptive name for a group that would be called t, z, x_1 or t_saved; or None."""
    for m in group:                     # a store is named after what it stores
        if m.kind == SAVED and is_plain(of := m.hint.removesuffix("_saved")) and isinstance(
                v := stored.get(m), Var | Apply):
            made, number = (graph.made.get(v), is_number(v)) if isinstance(v, Var) else (v, False)
            found = word(made, naming.names, of, number)
            return found and f"{found}_saved"
    m = min(group, key=graph.order.get)
    made = graph.made.get(m)
    if is_application(made, pop) and is_plain(m.hint) and (of := naming.names.get(made.args[0], "")).endswith("_saved"):
        return of.removesuffix("_saved")
    if not is_plain(m.hint) and not (isinstance(made, Apply) and reads(made) == "part"):
        return None
    return word(made, naming.names, m.hint, not getattr(m.fact, "dims", ()))


def _chosen(classes, graph, function, taken, words):
    """A name for each class: first the parameters', then the user's variables, then others in order of appearance."""
    naming = Naming(copied_in=graph.copied_in)
    naming.in_place = graph.sums.of_owned.keys() - graph.sums.not_in_place
    used = set(taken)
    groups = list({id(c): c for c in classes.values()}.values())
    fixed = {}
    for p in function.params:
        used.add(p.name)
        if isinstance(p.value, Var):
            fixed[id(classes[p.value])] = p.name
    def first(group):
        return min(graph.order[m] for m in group)
    def best(group):
        return min(group, key=lambda m: (m.kind, graph.order[m]))
    stored = {s.targets[0]: s.value.args[-1] for s in walk(function.body) if isinstance(s, Let) and (
        is_application(s.value, put) or is_application(s.value, push))} if words else {}
    lives, shared = _lifetimes(function) if words else {}, {}
    for group in sorted(groups, key=lambda g: (best(g).kind, first(g))):
        name = fixed.get(id(group))
        if name is None:
            hint = best(group).hint
            if words and best(group).kind in (TEMPORARY, SAVED) and not any(m in graph.parameters for m in group):
                free = hint == "dz" and hint not in used        # the first of them keeps the field's name
                hint = hint if free else _word(group, graph, stored, naming) or hint
            hint = hint if hint.isidentifier() else "value"
            name, k = hint, 0
            life = _life(group, lives) if best(group).kind == TEMPORARY else None
            while name in used and not (life is not None and name in shared and all(
                    _disjoint(life, other) for other in shared[name])):
                k += 1
                name = f"{hint}_{k}"
            used.add(name)
            if life is not None:
                shared.setdefault(name, []).append(life)
        for m in group:
            naming.names[m] = name
    for step in walk(function.body):
        if isinstance(step, Let) and updates(step.value):
            base = step.value.args[0]
            if (
                not isinstance(base, Var)
                or naming.names.get(base) != naming.names[step.targets[0]]
                or id(step) in graph.shared
            ):
                naming.copies.add(id(step))
    return naming
