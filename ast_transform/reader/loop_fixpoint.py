# SPDX-License-Identifier: Apache-2.0
"""Fixpoint iteration of a loop: a body comes in as a tree; the carries and the statements of the body come out.

The body is read until the facts of the carried values are stable.  When a reading finds something else that must be
carried (a storage that is written, a list that grows, a wider dtype, a name without a value), it is added to the
carries, and the body is read again.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import gast

from gradscribe.ast_transform.core.alias import viewed
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    UNDEFINED,
    USER,
    Carry,
    Const,
    Var,
    all_made,
    all_reads,
    operands,
    replaced,
    substituted,
)
from gradscribe.ast_transform.core.kinds import (
    Afresh,
    Array,
    Mismatch,
    Stack,
    Symbol,
    join,
    settled,
)
from gradscribe.ast_transform.passes.check import Broken
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.branches import RAISED, truth_value
from gradscribe.ast_transform.reader.carries import (
    NotALoop,
    _loose,
    _undefined,
    after_struct,
    as_floats,
    changed_containers,
    changed_items,
    container_at,
    containers_held,
    enter_container,
    entered_value,
    has_alias,
    has_stable_aliases,
    has_stable_facts,
    is_steady,
    kept_from_before,
    leaf_of,
    leave_container,
    left_unset,
    may_share,
    not_kept,
    operand_paths,
    pair_with_ends,
    replaced_leaves,
    same_precision,
)
from gradscribe.ast_transform.reader.choices import carried_with
from gradscribe.ast_transform.reader.container_aliases import has_stable_sharing, related_containers, restore, snapshot
from gradscribe.ast_transform.reader.dynamic_lists import grow, may_grow, uneven
from gradscribe.ast_transform.reader.expressions import evaluate
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.list_of_tuples import set_lengths_after
from gradscribe.ast_transform.reader.memory import (
    Loop,
    NeedsStore,
    NotSetYet,
    distinct_storages,
    held_arrays,
    no_writes,
    record_cell,
    storages,
    update_aliases,
    writes_storages,
)
from gradscribe.ast_transform.reader.statements import read_block
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import (
    assigned,
    assigned_plainly,
    augmented,
    loaded,
    only_made_longer,
)
from gradscribe.ast_transform.reader.values import (
    SET_BEFORE,
    Conflict,
    Grown,
    Rows,
    Struct,
    Walk,
    held_by,
    variables_in,
)
from gradscribe.ast_transform.reader.views import (
    COPIED_FIRST,
    base_path,
    is_array,
    is_number,
    may_be_cell,
    same_view_again,
)
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError
from gradscribe.ast_transform.source.trees import nodes

READINGS = 24           # facts widen a few times at most, and each storage, list and name is added once


class Carried:
    """What a loop carries, as far as the readings of its body have found."""

    def __init__(self, reader, node, targets, test, since):
        frame = reader.environment.frame
        live = getattr(node, "live", None)
        self.node, self.frame, self.reading, self.since = node, frame, Loop(since), since
        self.names = assigned(node.body) | targets          # names that a pass sets
        if test is not None:
            self.names |= {n.target.id: None for n in nodes(test) if isinstance(n, gast.NamedExpr)}
        self.dead = [n for n in self.names if live is not None and n.strip() == n and n not in live]
        self.slots = {n: operand_paths(reader, n, frame.env[n]) for n in self.names  # {name: paths to carried operands}
                      if n in frame.env and not _undefined(frame.env[n]) and n not in self.dead}
        self.kept = {}          # {name that the loop sets first and the next pass reads: its fact}
        self.known = {}         # {(name, path): fact at the beginning of a pass}
        self.aliases = {}       # {(name, path): other values' storages that it may be in}
        self.start, self.block = snapshot(reader), reader.build.block
        self.read_outside = loaded(frame.source.tree) - loaded(node)        # names read outside the loop
        self.unsteady = []      # names of non-operands that change from pass to pass
        self.in_place = {}      # names whose array has aliases: the array is carried, not the name
        plain = assigned_plainly(node.body) | set(targets)
        for n in augmented(node.body):
            value = frame.env.get(n)
            if n not in plain and isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.dims and \
                    has_alias(reader, value) or n not in plain and may_grow(value):
                self.names.pop(n)
                self.in_place[n] = self.slots.pop(n, None)
        for n in only_made_longer(node.body) - set(self.dead) - set(targets):
            if may_grow(frame.env.get(n)):
                self.names.pop(n)
                self.slots.pop(n, None)
                self.reading.longer.add(n)

    def set_first(self):
        """The names without a value before the first pass."""
        return [n for n in self.names if n not in self.slots]

    def entered(self):
        """The values of the frame's names when a pass begins."""
        return next(env for f, env in self.start if f is self.frame)


class Pass:
    """The results of one reading of a body."""

    def __init__(self):
        self.inner = {}         # {name: {path: variable at the beginning of the pass}}
        self.held = {}          # the same for items of containers
        self.holders = {}       # {place: container that the pass changes}
        self.before = {}        # the containers that names hold at its beginning
        self.stores = {}        # {array: hidden name that carries its storage, into which the pass writes}
        self.items = {}         # carried items of containers, and their values at the end of the pass
        self.facts = {}         # {(name, path): fact that covers beginning and end}
        self.head = None        # (statements of the test, test)
        self.body, self.outcome = [], None


def read_until_stable(reader: Reader, node: Any, enter: Callable[[], None] | None, test: Any, runs: bool = False,
                      since: Any = None, certain: Callable = lambda: None, some: Callable = lambda: False) -> tuple:
    """(carries, body, head) of a loop, whose body is read until the facts of its carries reach a fixpoint.

    certain: returns the index and items with which each pass begins, if the loop certainly has a pass
    some: returns whether there is a pass, and specialises the version to it
    """
    since = next(Symbol.births) if since is None else since
    targets = assigned([node.target], True) if enter else {}        # set anew in each pass
    loop = Carried(reader, node, targets, test, since)
    for _ in range(READINGS):
        this = begin_pass(reader, loop)
        if read_pass(reader, loop, this, enter, test) and is_stable(reader, loop, this):
            break
    else:
        raise NotALoop("the kinds of what the loop carries do not come to rest")
    reading = loop.reading
    all_carried(reader, loop.start, loop.names, loop.slots, reading, node)
    writes_storages(reader, reading.written, node)
    if this.head is not None and isinstance(this.head[1], Const):
        fail(reader, LanguageError, "the test of this loop never changes", test,
             "Put the condition that ends it there.")
    same_precision(reader, loop.slots, loop.entered(), this.facts, this.body)
    made = close_carries(reader, loop, this, runs, certain, some)
    for place, name in reading.lost:
        place.env[name] = Conflict("an array that the loop may have changed, or not", COPIED_FIRST, True)
    reader.loops.written_in_loop = {
        root: loop.frame.env.pop(hidden) for root, hidden in reading.stores.items()}, loop.slots
    return made


def begin_pass(reader: Reader, loop):
    """Set names and containers to their values at the beginning of a pass."""
    frame, reading, this = loop.frame, loop.reading, Pass()
    restore(loop.start)
    while reading.items.grown:
        place, element = reading.items.grown.pop()
        holder, reader.build.block = container_at(reader, place), loop.block
        grow(reader, holder, element, place[1] if len(place) == 2 else "items")
    for root, hidden in reading.stores.items():
        frame.env[hidden] = root
        loop.names[hidden], loop.slots[hidden] = None, {(): None}
    loop.start = snapshot(reader)
    for n in loop.slots:
        enter_name(reader, loop, this, n)
    for n in loop.set_first():
        frame.env[n] = kept_from_before(reader, n, loop.kept, this.inner, reading, loop.aliases)
    reading.unset.first_set = {(frame, n) for n in loop.set_first() if n not in loop.kept}
    reading.unset.left_out = False
    reader.build.block = []
    update_aliases(reader, {root: frame.env[hidden] for root, hidden in reading.stores.items()}, loop.slots)
    for place, name in reading.lost:
        place.env[name] = Conflict("an array that an earlier pass of the loop may have changed, or not", COPIED_FIRST,
                                   True)
    places = containers_held(reader)
    this.stores = {frame.env[hidden]: hidden for hidden in reading.stores.values()}
    this.holders = {p: enter_container(reader, p, loop.known, this.held, loop.aliases, places, this.stores, reading)
                    for p in reading.items.containers}
    this.before = containers_held(reader)
    carried = {v for made in (*this.inner.values(), *this.held.values()) for v in made.values()}
    shown = [v for _, _, v in held_arrays(reader)]
    reading.entry = {base_path(reader, v)[0] for v in shown} - carried
    reading.around = frozenset().union(*map(partial(storages, reader), reading.entry))
    reading.before = frozenset().union(*map(partial(storages, reader), shown))
    return this


def enter_name(reader: Reader, loop, this, n):
    """Make the variables of a carried name at the beginning of a pass, and record their possible storages."""
    reading, before = loop.reading, loop.frame.env[n]
    value = entered_value(reader, n, before, loop.slots[n], loop.known, this.inner)
    loop.frame.env[n] = related_containers(reader, value, [before], reading.shared, (n,))
    for path, var in this.inner[n].items():
        value = leaf_of(reader, before, path)
        reader.memory.tokens[var] = reading.token((n, path), var) | loop.aliases.get((n, path), frozenset()) | (
            storages(reader, value) if isinstance(value, Var) else frozenset())
        if (n, path) in reading.cells or may_be_cell(reader, value):
            reader.views.cells.add(var)
        if (n, path) in reading.maybe_aliased:
            reader.memory.owned.discard(var)


def read_pass(reader: Reader, loop, this, enter, test):
    """Read the test and body once; False if more must be carried."""
    reading, names = loop.reading, {(loop.frame, n) for n in loop.slots}
    reader.loops.reading.append(reading)
    try:
        if test is not None:
            with no_writes(reader, "the test of a loop", test):
                tested = truth_value(reader, evaluate(reader, test), test)
            this.head = (reader.build.block, tested)
            reader.build.block = []
            own = {v: v for v in map(loop.frame.env.get, reading.stores.values())}
            update_aliases(reader, own, loop.slots)         # aliases become views of these
        if enter:
            enter()
        this.outcome = read_block(reader, loop.node.body)
        this.body = reader.build.block
    except NeedsStore as need:
        if need.loop is not reading:
            raise
        carry_storage(reader, loop, need.root)
        return False
    except NotSetYet as later:
        if later.loop is not reading:
            raise
        raise for_around(reader, later, reading) from None
    except (ShapeError, LanguageError) as error:
        if uneven(reader, this.before, error, reading, names):
            return False
        if loop.unsteady or getattr(error, "shared", False):
            raise NotALoop(error.reason) from None
        raise
    finally:
        reader.loops.reading.pop()
        reader.build.block = loop.block
    return not uneven(reader, this.before, None, reading, names)


def carry_storage(reader: Reader, loop, written):
    """Carry a storage from before the loop, into which a pass writes, under a hidden name."""
    reading = loop.reading
    for root in [written, *carried_with(reader, written, reading.entry)]:
        around = next((each for each in reader.loops.reading if each is not reading and root in each.entry), None)
        if around is not None:      # each enclosing loop carries it too, if it may be written there
            raise NeedsStore(around, root) from None
        hidden = f"{root.hint} "
        while hidden in loop.frame.env or hidden in reading.stores.values():
            hidden += " "
        reading.stores.setdefault(root, hidden)


def is_stable(reader: Reader, loop, this):
    """Whether a pass ends with the facts that it began with; if not, the loop's facts are widened."""
    frame, reading = loop.frame, loop.reading
    if reading.unset.left_out:
        for n in loop.set_first():
            if n not in loop.dead:
                keeps_value(reader, n, frame.env.get(n, UNDEFINED), loop.kept, reading)
        if this.outcome is RAISED or reading.unset.left_out.name not in loop.kept:
            raise for_around(reader, reading.unset.left_out, reading)
        return False
    if this.outcome is RAISED:
        fail(reader, LanguageError, "every pass of this loop raises", loop.node,
             "Raise under a condition, or before the loop.")
    if carries_more_names(reader, loop) or changed_containers(reader, this.before, loop.slots, reading, this.stores):
        return False
    this.items = changed_items(reader, this.holders, this.held, this.stores, reading.items.lost)
    if this.items is None:
        return False
    ends = [(key, var, value) for key, (var, value) in this.items.items()]
    rest = all([has_stable_facts(reader, key, var, value, var.hint, this.facts, reading, loop.aliases)
                for key, var, value in ends])
    if drops_unsteady_names(reader, loop):
        return False
    named = ends_of_names(reader, loop, this)
    rest = all([has_stable_facts(reader, key, var, value, key[0], this.facts, reading, loop.aliases)
                for key, var, value in named]) and rest
    ends += named
    ends += [((n, ()), this.inner[n][()], frame.env[n]) for n in loop.kept
             if n in this.inner and is_array(frame.env.get(n))]
    rest = has_stable_aliases(reader, ends, reading, loop.aliases) and rest
    for key, _, value in ends:          # its storages at the end of a pass are those at the beginning of the next
        if key in reading.carried and isinstance(value, Var):
            token, possible_storages = reading.carried[key], reader.memory.possible_storages
            possible_storages[token] = possible_storages.get(token, frozenset()) | storages(reader, value)
    rest = keeps_what_is_read(reader, loop) and rest
    rest = has_stable_names(loop) and rest
    rest = has_stable_sharing(reader, {(frame, n) for n in loop.names}, reading.shared) and rest
    if not rest:
        loop.known = {**loop.known, **this.facts}
    return rest


def carries_more_names(reader: Reader, loop):
    """Whether an array written in place has lost its other aliases, so that its name is carried from now on."""
    entered, env = loop.entered(), loop.frame.env
    alone = [n for n in loop.in_place if is_array(entered[n]) and env.get(n) is not entered[n]
             and base_path(reader, entered[n])[0] not in loop.reading.stores]
    for n in alone:
        loop.names[n], loop.slots[n] = None, loop.in_place.pop(n) or operand_paths(reader, n, entered[n])
    return bool(alone)


def drops_unsteady_names(reader: Reader, loop):
    """Whether names were removed from the carries, because non-operands in them change from pass to pass."""
    entered, env = loop.entered(), loop.frame.env
    other = [n for n in loop.slots if not is_steady(reader, entered[n], env.get(n))]
    if any(n in loop.read_outside for n in other):
        raise NotALoop(f"{other[0]} changes from pass to pass")
    if other:
        loop.unsteady += other
        loop.slots = {n: paths for n, paths in loop.slots.items() if n not in other}
        loop.kept.update(dict.fromkeys(other))
    return bool(other)


def ends_of_names(reader: Reader, loop, this):
    """[((name, path), value at the beginning of a pass, value at its end)] of all carried names."""
    found, entered, env = [], loop.entered(), loop.frame.env
    for n in loop.slots:
        if isinstance(entered[n], (Grown, Rows)) and entered[n].mark is not getattr(env.get(n), "mark", None):
            raise NotALoop(f"{n} is another list from pass to pass")
        found += [((n, path), var, value)
                  for path, (var, value) in pair_with_ends(reader, n, this.inner.get(n, {}), env.get(n)).items()]
    return found


def keeps_what_is_read(reader: Reader, loop):
    """Whether later reads of names that the loop sets first, in the next pass or after the loop, have known values."""
    at_last = getattr(loop.node, "left_with", None)         # a returned value is set in the last pass only
    rest = True
    for n in loop.set_first():
        if n not in loop.dead and n != at_last and (n in loop.read_outside or n in reader.environment.partly_read):
            rest = keeps_value(reader, n, loop.frame.env.get(n, UNDEFINED), loop.kept, loop.reading) and rest
    return rest


def has_stable_names(loop):
    """Whether a pass makes no further names uncertain; those it does stay so in the next pass and after the loop."""
    reading, rest = loop.reading, True
    for f, env in loop.start:
        lost = [(f, k) for k, v in f.env.items() if isinstance(v, Conflict) and isinstance(env.get(k), (Var, Walk))
                and (f is not loop.frame or k not in loop.names)]
        rest = rest and all(place in reading.lost for place in lost)
        reading.lost += [place for place in lost if place not in reading.lost]
    return rest


def for_around(reader: Reader, later, reading):
    """The error for a name without a value in a loop, or NotSetYet for an enclosing loop that may set it."""
    place = reader.environment.frame, later.name
    around = next(
        (loop for loop in reversed(reader.loops.reading) if loop is not reading and place in loop.unset.first_set), None
    )
    if around is None:
        return later.error
    around.unset.read.add(place)
    return NotSetYet(around, later.name, later.error)


def all_carried(reader: Reader, start, names, slots, reading, node):
    """Refuse a loop if a pass replaces an array from before it that it does not carry: the write would be lost."""
    carried = {*reading.stores, *(base_path(reader, env[n])[0] for f, env in start if f is reader.environment.frame
                                  for n in slots if is_array(env.get(n)))}
    for f, env in start:
        for n, before in env.items():
            value = f.env.get(n)
            if (
                value is before
                or not is_array(before)
                or not is_array(value)
                or f is reader.environment.frame
                and n in names
            ):
                continue
            base = base_path(reader, before)[0]
            if base not in carried and base_path(reader, value)[0] is not base:
                fail(reader, LanguageError, f"the loop writes into {before.hint}, which it may show by another name",
                     node, "Copy the array first: .copy().")


def place_loop(reader: Reader, loop: Any) -> Any:
    """Append the loop to the block, and read views of the arrays that it writes again after it."""
    written, reader.loops.written_in_loop = reader.loops.written_in_loop, None
    loop.policy = reader.build.segments
    set_lengths_after(reader, loop)
    reader.build.block.append(loop)
    update_aliases(reader, *written)
    for env, n, held, path, base in reader.views.views_after:
        if env.get(n) is held:
            env[n] = same_view_again(reader, path, base)
    reader.views.views_after = []


def left_as_views(reader: Reader, after, names, slots, inner, held, kept, body, head, since, certain):
    """{name: (array, path)} of names that hold a view of an unchanged or carried array at the end of a pass.

    Such a view is read again after the loop: its indices are carried, not its entries.  Also returned: the variables
    that a pass makes.
    """
    found, items = {}, {value for _, value in held[2].values()}
    ends: dict[Any, list] = {}
    items.update(v for m in names if m not in slots and m in after for v in held_variables(after[m]))
    for n in slots:
        for var, new in pair_with_ends(reader, n, inner.get(n, {}), after.get(n, UNDEFINED)).values():
            ends.setdefault(new, []).append((n, var))
    inside = {*all_made([*body, *(head[0] if head else ())]),
              *(v for of in (*inner.values(), *held[1].values()) for v in of.values())}
    for n in names:
        value = after.get(n, UNDEFINED)
        if not is_array(value) or n in kept or n in slots and set(inner[n]) != {()}:
            continue
        base, path = base_path(reader, value)
        if not all(type(v.fact) is Array for v in (base, *(v for _, v in path))):
            continue                # an element of a container must be known when transforming
        lengths = {d.normal().symbol for _, v in path for d in v.fact.dims} - {None}
        if path and (base in ends or base not in inside) and all(s.born < since for s in lengths) and all(
                is_number(v) for made, _ in path for v in operands(made) if v is not viewed(made)) and \
                (n not in slots or inner[n][()] not in items and not begins_with(
                    inner[n][()], n, ends, body, head)):
            found[n] = base, path
    begun = certain() if found else None
    if not begun:
        return {}, inside
    found = {n: (base, path) for n, (base, path) in found.items() if base in ends or base not in begun}
    return found, inside | begun


def begins_with(var, n, ends, body, head):
    """Whether a pass reads a name's value from the beginning of the pass."""
    read = {v for s in [*body, *(head[0] if head else ())] for v in all_reads(s)}.union(
        operands(head[1]) if head else ())
    return var in read or any(m != n for m, _ in ends.get(var, ()))


def left_as_view(reader: Reader, frame, n, base, path, ends, inside, indices, carries, last):
    """Record that a name is a view of an array after the loop, at the indices of the last pass."""
    for v in dict.fromkeys(v for made, _ in path for v in operands(made) if v is not viewed(made) and v in inside):
        if v not in indices:
            indices[v] = Var(v.hint, last.fact(v.fact), TEMPORARY)
            carries.append(Carry(v.like(), UNDEFINED, v, indices[v]))
    frame.env[n] = held = Conflict("set inside a loop only", SET_BEFORE)
    reader.views.views_after.append((frame.env, n, held, [(substituted(made, indices), v) for made, v in path],
                                     ends.get(base, base)))


def keeps_value(reader: Reader, n, value, kept, reading):
    """Whether the fact of a name is stable that a pass may read before it has set it."""
    if n in kept and not isinstance(kept[n], Array):
        return True
    read = (reader.environment.frame, n) in reading.unset.read
    of_parts = not isinstance(value, (Var, Const)) and (
        read or any(v in reader.choices.partly for v in variables_in(value))
    )
    if of_parts or isinstance(value, Conflict):
        fact: Any = value if isinstance(value, Conflict) and value.memory else None
    elif isinstance(value, (Var, Const)) and (n in kept or read or value in reader.choices.partly) and \
            not _undefined(value):
        fact = fact_of(value)
        try:
            fact = join(kept[n], fact, f"?{n}") if n in kept else _loose(fact)
        except Mismatch:
            fact = None
    else:
        return n not in kept
    rest = n in kept and isinstance(fact, Array) and settled(kept[n], fact, reading.since)
    if is_array(value):
        shows, more = kept.get((n, "shows"), frozenset()), {t for t in storages(reader, value) if t in reading.around}
        rest = rest and more <= shows
        kept[n, "shows"] = shows | more
    kept[n] = fact
    return rest


def close_carries(reader: Reader, loop, this, runs, certain, some):
    """The carries of a loop; sets its names to their values after it.  Lengths made in a pass differ between passes."""
    frame, shared, since = loop.frame, loop.reading.shared, loop.since
    after, made = dict(frame.env), Closed(since, runs)
    held = this.holders, this.held, this.items, loop.reading.items.lost
    views, inside = left_as_views(reader, after, loop.names, loop.slots, this.inner, held, loop.kept, this.body,
                                  this.head, since, certain)
    restore(loop.start)
    for n in loop.names:
        if n in views:
            continue
        value = after.get(n, UNDEFINED)
        if n in loop.slots:
            outers = {path: close_name(reader, loop, this, made, n, path, var, new)
                      for path, (var, new) in pair_with_ends(reader, n, this.inner.get(n, {}), value).items()}
            before = frame.env[n]
            frame.env[n] = related_containers(
                reader, replaced_leaves(reader, before, value, outers), [before, value], shared, (n,))
        elif n in loop.dead:
            frame.env[n] = Conflict("set inside a loop only", SET_BEFORE)
        else:
            frame.env[n] = close_first_set(reader, loop, this, made, n, value)
    leave_container(reader, *held, this.facts, made.carries, made.unchanged, runs, some)
    distinct_storages(reader, made.leaving)
    indices: dict = {}
    for n, (base, path) in views.items():
        left_as_view(reader, frame, n, base, path, made.ends, inside, indices, made.carries, made.last)
    body, head = without_unchanged(made, this.body, this.head)
    all_closed(this, made, body, head)
    return made.carries, body, head


class Closed:
    """The carries of a loop whose facts are stable."""

    def __init__(self, since, runs):
        self.runs = runs                # whether the loop certainly has a pass
        self.carries = []
        self.unchanged = {}             # {variable that no pass changes: its value before the loop}
        self.leaving = []               # (value after the loop, its storages at the beginning of a pass, at its end)
        self.ends = {}                  # {value at the end of a pass: value after the loop}
        self.earlier, self.last = (
            Afresh(lambda symbol: symbol.born >= since, label) for label in ("?earlier", "?last"))


def close_name(reader: Reader, loop, this, made, n, path, var, new):
    """The value after a loop at a path of a carried name; `var`, `new`: at the beginning and end of a pass."""
    init = leaf_of(reader, loop.frame.env[n], path)
    if new is var:
        made.unchanged[var] = made.ends[new] = init
        return init
    outer = made.ends[new] = Var(n.strip(), this.facts[n, path], USER)
    made.leaving.append(
        (outer, reader.memory.tokens[var], storages(reader, new) if isinstance(new, Var) else frozenset()))
    record_cell(reader, outer, [var, new])
    if var in reader.memory.owned:
        reader.memory.owned.add(outer)
    init, new = as_floats(reader, init, var, reader.build.block), as_floats(reader, new, var, this.body)
    made.carries.append(Carry(var, init, new, outer))
    if var in reader.kinds.ints_or_floats:
        reader.kinds.ints_or_floats.add(outer)
    left_unset(reader, outer, init, new, made.runs)
    return outer


def close_first_set(reader: Reader, loop, this, made, n, value):
    """The value after a loop of a name that had no value before it."""
    kept = loop.kept
    if n in kept and not isinstance(kept[n], Array):
        return not_kept(kept[n])
    if isinstance(value, Var) and isinstance(value.fact, (Array, Stack)):
        outer = Var(n.strip(), kept.get(n) or made.last.fact(value.fact), USER)
        before = this.inner[n][()] if n in kept else value.like(fact=made.earlier.fact(value.fact))
        made.leaving.append((outer, storages(reader, before) if n in kept else frozenset(), storages(reader, value)))
        record_cell(reader, outer, [value])
        made.carries.append(Carry(before, UNDEFINED, value, outer))
        left_unset(reader, outer, UNDEFINED, value, made.runs)
        if not may_share(reader, value):
            reader.memory.owned.add(outer)
        return outer
    if isinstance(value, Struct):
        left = after_struct(reader, n, value, made.carries, made.earlier, made.last, made.runs)
        return related_containers(reader, left, [value], loop.reading.shared, (n,))
    return value if isinstance(value, Conflict) else Conflict("set inside a loop only", SET_BEFORE)


def without_unchanged(made, body, head):
    """A loop's statements, with variables that no pass changes replaced by their values before the loop."""
    unchanged = made.unchanged
    if unchanged:
        body = replaced(body, unchanged)
        if head is not None:
            head = (replaced(head[0], unchanged), unchanged.get(head[1], head[1]))
        for c in made.carries:
            c.next = unchanged.get(c.next, c.next) if isinstance(c.next, Var) else c.next
    return body, head


def all_closed(this, made, body, head):
    """Assert that everything a loop reads from the beginning of a pass is carried: an internal check."""
    begun = {v for of in (*this.inner.values(), *this.held.values()) for v in of.values()}
    lost = begun - {c.inner for c in made.carries} - set(made.unchanged)
    if lost:
        read = {v for c in made.carries for v in operands(c.next)}.union(operands(head[1]) if head else (), *(
            all_reads(s) for s in [*body, *(head[0] if head else ())]))
        if not read.isdisjoint(lost):
            raise Broken(f"after reading a loop: {sorted(map(str, read & lost))} are read and not carried")


def held_variables(value):
    """The variables of a value and of the values in it."""
    yield from variables_in(value)
    for held in held_by(value):
        yield from held_variables(held)
