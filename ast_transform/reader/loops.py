# SPDX-License-Identifier: Apache-2.0
"""Loops of the user's function: what they carry, found by reading their bodies until the facts come to rest."""
import functools
import math
import operator
from contextlib import contextmanager
from functools import partial

import gast

from gradscribe.ast_transform.core.alias import viewed
from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    UNDEFINED,
    USER,
    Apply,
    Carry,
    Const,
    For,
    Slice,
    Var,
    While,
    all_made,
    all_reads,
    operands,
    replaced,
    substituted,
)
from gradscribe.ast_transform.core.kinds import (
    Afresh,
    Array,
    Length,
    Mismatch,
    Stack,
    Symbol,
    join,
    settled,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.operations import entry_of_range
from gradscribe.ast_transform.passes.check import Broken
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import from_zero
from gradscribe.ast_transform.reader.assignments import assign
from gradscribe.ast_transform.reader.branches import FEW, RAISED, truth_value
from gradscribe.ast_transform.reader.carries import (
    NotALoop,
    _loose,
    _undefined,
    after_struct,
    as_floats,
    at_rest,
    changed_containers,
    changed_items,
    container_at,
    containers_held,
    enter_container,
    entered_value,
    has_alias,
    is_steady,
    kept_from_before,
    leaf_of,
    leave_container,
    left_unset,
    may_share,
    meet_no_more,
    not_kept,
    operand_paths,
    paired,
    replaced_leaves,
    same_precision,
)
from gradscribe.ast_transform.reader.choices import carried_with
from gradscribe.ast_transform.reader.container_aliases import related_containers, restore, shares_no_more, snapshot
from gradscribe.ast_transform.reader.derivatives import root_arguments
from gradscribe.ast_transform.reader.dispatch import executes, late
from gradscribe.ast_transform.reader.dynamic_lists import going_over, grow, may_grow, uneven
from gradscribe.ast_transform.reader.expressions import evaluate
from gradscribe.ast_transform.reader.frames import fail, here
from gradscribe.ast_transform.reader.iteration import pass_by_pass, walk_over, walking
from gradscribe.ast_transform.reader.iterators import made_in_passes, must_be_unwritten
from gradscribe.ast_transform.reader.list_of_tuples import lengths_after
from gradscribe.ast_transform.reader.memory import (
    Loop,
    NeedsPasses,
    NeedsStore,
    NotSetYet,
    distinct_storages,
    hand_over,
    no_writes,
    one_cell_of,
    pending_values,
    places_that_show,
    storages,
    writes_storages,
)
from gradscribe.ast_transform.reader.operands import demand, operand_of_part, passed_value
from gradscribe.ast_transform.reader.statements import read_block
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import (
    assigned,
    assigned_plainly,
    augmented,
    loaded,
    name_after,
    only_made_longer,
    spoken,
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
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError
from gradscribe.ast_transform.source.trees import nodes


class Bind(gast.stmt):
    """Gives a loop's target its value in a pass."""
    _fields = ("target",)

    def __init__(self, target, run):
        super().__init__()
        self.target, self.run = target, run


@late
@executes("For")
def execute_for(reader: Reader, node):
    node = made_in_passes(reader, node)
    value = evaluate(reader, node.iter)
    walk = walk_over(reader, value, node.iter)
    with pending_values(reader, [source for _, _, source in walk.items]) as held, going_over(reader, value, walk):
        walk.held = held
        outcome = walked_over(reader, node, walk)
        if walk.static is None:         # a pass may have written what the next one's element is made of
            must_be_unwritten(reader, walk.reads, node.iter)
        return outcome


def walked_over(reader: Reader, node, walk):
    if getattr(node, "exits", None) is not None:
        return left_early(reader, node, walk)
    if walk.static is not None and not walk.static:
        return None
    with within_loop(reader, node, walk) as written_out:
        return write_out_passes(reader, node, walk) if written_out else stays_a_loop(reader, node, walk)


@contextmanager
def within_loop(reader: Reader, node, walk):
    """Notes a loop that may be written out, with the loops around it; gives whether it is."""
    place, number = here(reader, node), passes_now(reader, walk)
    if number is not None:
        reader.loops.countable[place] = number, tuple(reader.loops.around)
    reader.loops.around.append(place)
    try:
        yield place in reader.loops.unrolled and number is not None and fixed_number(reader, walk)
    finally:
        reader.loops.around.pop()


def passes_now(reader: Reader, walk):
    """How many passes a loop has, as it is written or in the example; None if only running tells."""
    if walk.static is not None:
        return len(walk.static)
    length = fact_of(walk.count).length if isinstance(walk.count, Var) else None
    return walk.count.value if isinstance(walk.count, Const) else None if length is None else length.size


def fixed_number(reader: Reader, walk):
    """Whether the number of passes is certain; the version holds to that of the example."""
    if walk.static is not None or isinstance(walk.count, Const):
        return True
    length = fact_of(walk.count).length
    return unify(length, Length(None, length.size))


def stays_a_loop(reader: Reader, node, walk):
    """A loop stays one where it can."""
    can_stay = walk.count is not None
    must = walk.static is None
    if not can_stay:
        return write_out_passes(reader, node, walk)
    before, held, outer = snapshot(reader), list(reader.build.block), reader.loops.must_stay
    reader.loops.must_stay = must
    try:
        for_loop(reader, node, walk)
        must_be_unwritten(reader, walk.reads, node.iter)
    except Demand as demand:
        if must or reader.memory.entry_tokens.intersection(root_arguments(reader, demand.variable)):
            raise
        restore(before)
        reader.build.block[:] = held
        return write_out_passes(reader, node, walk)
    except (NotALoop, ShapeError, LanguageError) as error:
        if must:
            if isinstance(error, NotALoop):
                passes = certain_passes(reader, walk)
                if passes is not None:
                    restore(before)
                    reader.build.block[:] = held
                    return first_apart(reader, node, walk, error) if passes else None
                fail_in_passes(reader, error, node)
            write_out_loop(reader, here(reader, node))
            raise
        restore(before)
        reader.build.block[:] = held
        return write_out_passes(reader, node, walk)
    finally:
        reader.loops.must_stay = outer


def still_shown(reader: Reader, walk, node):
    """What a loop walks over is known in each pass."""
    if any(isinstance(s, Conflict) for s in walk.held):
        fail(reader, LanguageError, "this may be a view or a copy of an array that the loop changes",
             getattr(node, "iter", node), "Loop over a copy: .copy().")


def certain_passes(reader: Reader, walk):
    """Whether a loop over an argument's axis runs at all, which the version then holds to; None if not certain."""
    if isinstance(walk.count, Const):
        return walk.count.value > 0
    fact = fact_of(walk.count)
    length = fact.length.normal() if fact.length is not None else None
    if length is None or length.symbol is None or not length.symbol.many or length.size is None:
        return None
    if not length.size:
        return False if unify(length, Length(None, 0)) else None
    length.symbol.least = max(length.symbol.least, 1 - length.offset)
    return True


def first_apart(reader: Reader, node, walk, reason):
    """The first pass before the loop, where it gives what is carried another kind."""
    try:
        assign(reader, node.target, walk.at(Const(0), [reader.build.item(s, Const(0), h) for h, _, s in walk.items]))
        outcome = read_block(reader, node.body)
        if outcome is not None:
            return outcome
        if isinstance(walk.count, Const) and walk.count.value == 1:
            return None
        still_shown(reader, walk, node)
        rest = tuple((h, f, reader.build.item(s, Slice(Const(1), None, None)))
                     for (h, f, _), s in zip(walk.items, walk.held))
        later = reader.build.apply(operator.sub, walk.count, Const(1))
        with pending_values(reader, [source for _, _, source in rest]) as held:
            return for_loop(reader, node, Walk(None, later, rest, lambda index, items: walk.bind(
                reader.build.apply(operator.add, index, Const(1)), items), held=held))
    except NotALoop:
        fail_in_passes(reader, reason, node)
    except (ShapeError, LanguageError):
        write_out_loop(reader, here(reader, node))
        raise


def fail_in_passes(reader: Reader, reason, node):
    """What a loop carries changes from pass to pass: it is written out, or refused where it is too long."""
    write_out_loop(reader, here(reader, node))
    fail(reader, LanguageError, str(reason), node, "Use a loop whose number of passes is a literal.")


def left_early(reader: Reader, node, walk):
    """A for loop with a break or a return."""
    exits = node.exits
    for flag in (exits.stop, exits.returned):
        reader.environment.frame.env[flag] = Const(False)
    with within_loop(reader, node, walk) as written_out:
        return pass_by_pass(reader, node, walk) if written_out else left_by_a_flag(reader, node, walk)


def left_by_a_flag(reader: Reader, node, walk):
    """A loop that is left early stays one where it can."""
    if walk.count is None or not all(is_array(s) or _is_range(s) for _, _, s in walk.items):
        if walk.static is None:
            fail(reader, LanguageError, "a loop over this cannot be left early", node, "Loop over range(len(...)).")
        return pass_by_pass(reader, node, walk)
    before, held = snapshot(reader), list(reader.build.block)
    try:
        return by_index(reader, node, walk)
    except (ShapeError, LanguageError, Demand) as error:
        if walk.static is None:
            if not isinstance(error, Demand):
                write_out_loop(reader, here(reader, node))
            raise
        restore(before)
        reader.build.block[:] = held
        return pass_by_pass(reader, node, walk)


def by_index(reader: Reader, node, walk):
    """A loop that is left early, as a while loop over an index."""
    exits = node.exits
    target = getattr(node.target, "id", "_") if walk.plain else "_"
    index, count = "i" if target == "_" else target, " n"           # no name of the user's begins with a blank
    index, count = index + exits.stop[4:], count + exits.stop[4:]
    reader.environment.frame.env[index], reader.environment.frame.env[count] = Const(0), walk.count
    name = functools.partial(gast.Name, annotation=None, type_comment=None)
    more = gast.Compare(name(index, gast.Load()), [gast.Lt()], [name(count, gast.Load())])
    step = gast.Assign([name(index, gast.Store())],
                       gast.BinOp(name(index, gast.Load()), gast.Add(), gast.Constant(1, None)), None)

    def bind():
        place = reader.environment.frame.env[index]
        still_shown(reader, walk, node)
        values = [reader.build.item(entry_of_pass(reader, s), place, h) if not _is_range(s) else
                  entry_of_range(s.args, place, reader.build.apply, Const) for h, _, s in walk.items]
        assign(reader, node.target, walk.at(place, values))

    loop = gast.While(more, [Bind(node.target, bind), *node.body, step], [])
    for part in nodes(loop):
        if not hasattr(part, "lineno"):
            gast.copy_location(part, node)
    loop.exits, loop.live = exits, getattr(node, "live", None)
    execute_while(reader, loop)
    for n in (index, count):
        reader.environment.frame.env.pop(n, None)
    return None


@executes("Bind")
def execute_bind(reader: Reader, node):
    node.run()


def write_out_passes(reader: Reader, node, walk):
    with written_out_passes(reader, walk, node) as (number, enter):
        for k in range(number):
            enter(k)
            outcome = read_block(reader, node.body)
            if outcome is not None:
                return outcome
        enter(number)
    return None


@late
@contextmanager
def written_out_passes(reader: Reader, walk, node):
    """(number, enter) of a loop that is written out: enter(k) gives its target what the pass k walks over."""
    number = passes_now(reader, walk)
    with pending_values(reader, list(walk.static or ())) as values, walking(reader, walk, node) as stays:
        def enter(k):
            stays(k)
            if k == number:
                return
            if walk.static is not None:
                return assign(reader, node.target, passed_value(reader, values[k]))
            still_shown(reader, walk, node)
            place = Const(k)
            values_now = [entry_of_range(s.args, place, reader.build.apply, Const) if _is_range(s)
                          else reader.build.item(s, place, h) for (h, _, _), s in zip(walk.items, walk.held)]
            assign(reader, node.target, walk.at(place, values_now))

        yield number, enter


def for_loop(reader: Reader, node, walk):
    origin = reader.build.origin
    target = spoken(node.target.id) if isinstance(node.target, gast.Name) else "i"
    index = Var(
        target if walk.plain and target != "_" else "i",
        Array(int, (), unknown("?index")),
        USER if walk.plain and target != "_" else SAVED,
    )
    simple = isinstance(node.target, gast.Name)
    items, since = [], next(Symbol.births)
    each = Afresh(lambda symbol: symbol.label == "?item", "?item")
    for hint, fact, source in walk.items:
        fact = each.fact(fact)
        named = simple and len(walk.items) == 1 and hint != "item" or simple and isinstance(fact, Array)
        items.append((Var(target if named and target != "_" else hint, fact, USER if named else TEMPORARY),
                      operand_of_part(reader, source)))
    reader.loops.natural_indices |= {index, *(v for v, source in items if from_zero(source))}

    def enter():
        still_shown(reader, walk, node)
        bound = walk.at(index, [row_of_pass(reader, v, source, index) for v, source in items])
        name_after(node.target, bound, {index, *(v for v, _ in items)})
        assign(reader, node.target, bound)

    runs = isinstance(walk.count, Const) and walk.count.value > 0
    reader.loops.counted += [walk.count] if isinstance(walk.count, Var) else []
    own = {index, *(v for v, _ in items)}
    carries, body, _ = read_until_stable(
        reader,
        node,
        enter,
        None,
        runs,
        since,
        lambda: certain_passes(reader, walk) and own,
        lambda: runs or has_passes(walk.count),
    )
    loop = For(index, walk.count, tuple(items), carries, body, origin)
    place_loop(reader, loop)


@late
def write_out(reader: Reader, conflict, node):
    """What shares memory may depend on the pass: loops of few passes, as many as an argument says, are written out.

    Then each array is known by itself; the version holds for this number of passes.
    """
    if not conflict.memory:
        return
    for place in reader.loops.countable:
        write_out_loop(reader, place)
    for count in reader.loops.counted:
        lengths = [r.fact.length for r in root_arguments(reader, count) if isinstance(r.fact, Array)]
        if lengths and all(n is not None and n.normal().size in range(FEW) for n in lengths):
            demand(reader, root_arguments(reader, count)[0], "the number of passes", node)


def write_out_loop(reader: Reader, place):
    """Reads all once more with this loop written out, where a body stands few times for all loops around it."""
    chosen = {*reader.loops.unrolled, place}

    def copies(loop):
        number, around = reader.loops.countable.get(loop, (FEW if loop == place else 1, ()))
        return number * math.prod(reader.loops.countable.get(p, (1,))[0] for p in around if p in chosen)

    if place not in reader.loops.unrolled and all(copies(loop) < FEW for loop in chosen):
        raise NeedsPasses(place)


def row_of_pass(reader: Reader, var, source, index):
    """What a loop walks over in a pass: a row of an array that the loop changes is read anew."""
    current = entry_of_pass(reader, source)
    if current is not source:
        return reader.build.item(current, index, var.hint, var.kind)
    reader.views.walked[var] = Apply(operator.getitem, (source, index))
    return var


def entry_of_pass(reader: Reader, source):
    """What a loop walks over, as it is in this pass."""
    if not is_array(source):
        return source
    base, path = base_path(reader, source)
    hidden = reader.loops.reading[-1].stores.get(base)
    return source if hidden is None else same_view_again(reader, path, reader.environment.frame.env[hidden])


@executes("While")
def execute_while(reader: Reader, node):
    exits = getattr(node, "exits", None)
    if exits is not None:
        if not hasattr(node.body[0], "run"):
            for flag in (exits.stop, exits.returned):
                reader.environment.frame.env[flag] = Const(False)
        flag = gast.copy_location(gast.Name(exits.stop, gast.Load(), None, None), node)
        going = gast.copy_location(gast.UnaryOp(gast.Not(), flag), node)
        test = gast.copy_location(gast.BoolOp(gast.And(), [going, node.test]), node)
        live, node = getattr(node, "live", None), gast.copy_location(gast.While(test, node.body, []), node)
        node.live, node.left_with = live, exits.value
    origin = reader.build.origin
    before = snapshot(reader)
    probe = reader.build.block
    reader.build.block = []
    test = truth_value(reader, evaluate(reader, node.test), node.test)
    reader.build.block = probe
    restore(before)
    if isinstance(test, Const) and not test.value:
        return None
    try:
        carries, body, head = read_until_stable(reader, node, None, node.test)
    except NotALoop as error:
        fail(reader,
            LanguageError, str(error), node, "What a while loop carries must keep its kind and its structure."
        )
    steps, test = head
    place_loop(reader, While(carries, steps, test, body, origin))
    return None


def read_until_stable(
    reader: Reader, node, enter, test, runs=False, since=None, certain=lambda: None, some=lambda: False
):
    """Read a body until the facts of what it carries come to rest.

    certain: gives what each pass of a loop that certainly has one begins with, its index and items.
    some: says whether there is a pass, which the version then holds to.
    """
    frame, since = reader.environment.frame, next(Symbol.births) if since is None else since
    targets = assigned([node.target], True) if enter else {}        # each pass gives them another value
    names = assigned(node.body) | targets
    if test is not None:
        names |= {n.target.id: None for n in nodes(test) if isinstance(n, gast.NamedExpr)}
    at_last = getattr(node, "left_with", None)      # what is returned is set in the last pass alone
    dead = [n for n in names if getattr(node, "live", None) is not None and n.strip() == n and n not in node.live]
    slots = {n: operand_paths(reader, n, frame.env[n]) for n in names if n in frame.env and not _undefined(frame.env[n])
             and n not in dead}
    start, outer_block = snapshot(reader), reader.build.block
    plain, shared = assigned_plainly(node.body) | set(targets), {}
    for n in augmented(node.body):
        value = frame.env.get(n)
        if n not in plain and isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.dims and \
                has_alias(reader, value) or n not in plain and may_grow(value):
            names.pop(n)            # written in place: what shows the array is carried, not the name
            shared[n] = slots.pop(n, None)
    known, reading, aliases, kept = {}, Loop(since), {}, {}
    for n in only_made_longer(node.body) - set(dead) - set(targets):
        if may_grow(frame.env.get(n)):
            names.pop(n)
            slots.pop(n, None)
            reading.longer.add(n)
    outside = loaded(frame.source.tree) - loaded(node)
    for _ in range(24):
        restore(start)
        while reading.grown:
            place, element = reading.grown.pop()
            holder, reader.build.block = container_at(reader, place), outer_block
            grow(reader, holder, element, place[1] if len(place) == 2 else "items")
        for root, hidden in reading.stores.items():
            frame.env[hidden] = root
            names[hidden], slots[hidden] = None, {(): None}
        start = snapshot(reader)
        inner = {}
        for n, leaves in slots.items():
            before_value = frame.env[n]
            frame.env[n] = related_containers(
                reader,
                entered_value(reader, n, before_value, leaves, known, inner),
                [before_value],
                reading.shared,
                (n,),
            )
            for path, var in inner[n].items():
                value = leaf_of(reader, before_value, path)
                reader.memory.tokens[var] = reading.token((n, path), var) | aliases.get((n, path), frozenset()) | (
                    storages(reader, value) if isinstance(value, Var) else frozenset())
                if (n, path) in reading.cells or may_be_cell(reader, value):
                    reader.views.cells.add(var)
                if (n, path) in reading.lent:
                    reader.memory.owned.discard(var)
        for n in names:
            if n not in slots:
                frame.env[n] = kept_from_before(reader, n, kept, inner, reading, aliases)
        reading.first_set = {(frame, n) for n in names if n not in slots and n not in kept}
        reading.incomplete = False
        head = None
        reader.build.block = []
        hand_over(reader, {root: frame.env[hidden] for root, hidden in reading.stores.items()}, slots)
        for place, name in reading.lost:
            place.env[name] = Conflict(
                "an array that an earlier pass of the loop may have changed, or not", COPIED_FIRST, True)
        held, places = {}, containers_held(reader)
        stores = {frame.env[hidden]: hidden for hidden in reading.stores.values()}
        holders = {p: enter_container(reader, p, known, held, aliases, places, stores, reading)
                   for p in reading.containers}
        before = containers_held(reader)
        carried = {v for made in (*inner.values(), *held.values()) for v in made.values()}
        shown = [v for _, _, v in places_that_show(reader)]
        reading.entry = {base_path(reader, v)[0] for v in shown} - carried
        reading.around = frozenset().union(*map(partial(storages, reader), reading.entry))
        reading.before = frozenset().union(*map(partial(storages, reader), shown))
        reader.loops.reading.append(reading)
        try:
            if test is not None:
                with no_writes(reader, "the test of a loop", test):
                    tested = truth_value(reader, evaluate(reader, test), test)
                head = (reader.build.block, tested)
                reader.build.block = []
                hand_over(reader, {v: v for v in map(frame.env.get, reading.stores.values())}, slots)  # its own views
            if enter:
                enter()
            outcome = read_block(reader, node.body)
            body = reader.build.block
        except NeedsStore as need:
            if need.loop is not reading:
                raise
            for root in [need.root, *carried_with(reader, need.root, reading.entry)]:
                around = next(
                    (loop for loop in reader.loops.reading if loop is not reading and root in loop.entry), None
                )
                if around is not None:      # what may be written in it too is carried by each loop around
                    raise NeedsStore(around, root) from None
                hidden = f"{root.hint} "
                while hidden in frame.env or hidden in reading.stores.values():
                    hidden += " "
                reading.stores.setdefault(root, hidden)
            continue
        except NotSetYet as later:
            if later.loop is not reading:
                raise
            raise for_around(reader, later, reading) from None
        except (ShapeError, LanguageError) as error:
            if not uneven(reader, before, error, reading, {(frame, n) for n in slots}):
                if reading.unsteady or getattr(error, "shared", False):
                    raise NotALoop(error.reason) from None
                raise
            continue
        finally:
            reader.loops.reading.pop()
            reader.build.block = outer_block
        if uneven(reader, before, None, reading, {(frame, n) for n in slots}):
            continue
        if reading.incomplete:
            for n in names:
                if n not in slots and n not in dead:
                    keeps_value(reader, n, frame.env.get(n, UNDEFINED), kept, reading)
            if outcome is RAISED or reading.incomplete.name not in kept:
                raise for_around(reader, reading.incomplete, reading)
            continue
        if outcome is RAISED:
            fail(reader, LanguageError, "every pass of this loop raises", node,
                 "Raise under a condition, or before the loop.")
        entered = next(env for f, env in start if f is frame)
        alone = [n for n in shared if is_array(entered[n]) and frame.env.get(n) is not entered[n]
                 and base_path(reader, entered[n])[0] not in reading.stores]
        if alone:                   # nothing else showed the array any more where it was written
            for n in alone:
                names[n], slots[n] = None, shared.pop(n) or operand_paths(reader, n, entered[n])
            continue
        rest, new = not changed_containers(reader, before, slots, reading, stores), {}
        if not rest:
            continue
        inside = changed_items(reader, holders, held, stores, reading.lost_items)
        if inside is None:
            continue
        ends = [(key, var, value) for key, (var, value) in inside.items()]
        for key, var, value in ends:
            rest = at_rest(reader, key, var, value, var.hint, new, reading, aliases) and rest
        other = [n for n in slots if not is_steady(reader, entered[n], frame.env.get(n))]
        if any(n in outside for n in other):
            raise NotALoop(f"{other[0]} changes from pass to pass")
        if other:
            reading.unsteady += other
            slots = {n: paths for n, paths in slots.items() if n not in other}
            kept.update(dict.fromkeys(other))
            continue
        for n in slots:
            if isinstance(entered[n], (Grown, Rows)) and entered[n].mark is not getattr(
                    frame.env.get(n), "mark", None):
                raise NotALoop(f"{n} is another list from pass to pass")
            for path, (var, value) in paired(reader, n, inner.get(n, {}), frame.env.get(n)).items():
                ends.append(((n, path), var, value))
                rest = at_rest(reader, (n, path), var, value, n, new, reading, aliases) and rest
        ends += [((n, ()), inner[n][()], frame.env[n]) for n in kept if n in inner and is_array(frame.env.get(n))]
        rest = meet_no_more(reader, ends, reading, aliases) and rest
        for key, _, value in ends:          # what a name shows when a pass ends, it shows when the next begins
            if key in reading.carried and isinstance(value, Var):
                token = reading.carried[key]
                reader.memory.stood_for[token] = reader.memory.stood_for.get(token, frozenset()) | storages(
                    reader, value
                )
        for n in names:
            if (
                n not in slots
                and n not in dead
                and n != at_last
                and (n in outside or n in reader.environment.partly_read)
            ):
                rest = keeps_value(reader, n, frame.env.get(n, UNDEFINED), kept, reading) and rest
        for f, env in start:        # what a write has made uncertain is so in the next pass, and after the loop
            lost = [(f, k) for k, v in f.env.items() if isinstance(v, Conflict) and
                    isinstance(env.get(k), (Var, Walk)) and (f is not frame or k not in names)]
            rest = rest and all(place in reading.lost for place in lost)
            reading.lost += [place for place in lost if place not in reading.lost]
        rest = shares_no_more(reader, {(frame, n) for n in names}, reading.shared) and rest
        if rest:
            all_carried(reader, start, names, slots, reading, node)
            writes_storages(reader, reading.written, node)
            if head is not None and isinstance(head[1], Const):
                fail(reader, LanguageError, "the test of this loop never changes", test,
                     "Put the condition that ends it there.")
            same_precision(reader, slots, next(env for f, env in start if f is frame), new, body)
            break
        known = {**known, **new}
    else:
        raise NotALoop("the kinds of what the loop carries do not come to rest")
    made = close_carries(reader, frame, names, slots, inner, start, body, head, new, kept, runs, since,
                         (holders, held, inside, reading.lost_items), reading.shared, dead, certain, some)
    for place, name in reading.lost:
        place.env[name] = Conflict("an array that the loop may have changed, or not", COPIED_FIRST, True)
    reader.loops.written_in_loop = {root: frame.env.pop(hidden) for root, hidden in reading.stores.items()}, slots
    return made


def for_around(reader: Reader, later, reading):
    """What is raised where a loop has no value of a name: a loop around it may have."""
    place = reader.environment.frame, later.name
    around = next(
        (loop for loop in reversed(reader.loops.reading) if loop is not reading and place in loop.first_set), None
    )
    if around is None:
        return later.error
    around.read_partly.add(place)
    return NotSetYet(around, later.name, later.error)


def all_carried(reader: Reader, start, names, slots, reading, node):
    """No array from before the loop is another after a pass unless the loop carries it: it would be forgotten."""
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


def place_loop(reader: Reader, loop):
    """The loop stands; what shows an array that it has written into is read anew after it."""
    written, reader.loops.written_in_loop = reader.loops.written_in_loop, None
    loop.policy = "segments" if reader.build.segments else ""
    lengths_after(reader, loop)
    reader.build.block.append(loop)
    hand_over(reader, *written)
    for env, n, held, path, base in reader.views.views_after:
        if env.get(n) is held:
            env[n] = same_view_again(reader, path, base)
    reader.views.views_after = []


def left_as_views(reader: Reader, after, names, slots, inner, held, kept, body, head, since, certain):
    """{name: (array, path)} of names that show what no pass changes, or what is carried, when a pass ends.

    The last pass leaves the view of what the array is then.  Its indices are carried, and no copy of its entries.
    Given with it: what a pass makes.
    """
    found, ends, items = {}, {}, {value for _, value in held[2].values()}
    items.update(v for m in names if m not in slots and m in after for v in held_variables(after[m]))
    for n in slots:
        for var, new in paired(reader, n, inner.get(n, {}), after.get(n, UNDEFINED)).values():
            ends.setdefault(new, []).append((n, var))
    inside = {*all_made([*body, *(head[0] if head else ())]),
              *(v for of in (*inner.values(), *held[1].values()) for v in of.values())}
    for n in names:
        value = after.get(n, UNDEFINED)
        if not is_array(value) or n in kept or n in slots and set(inner[n]) != {()}:
            continue
        base, path = base_path(reader, value)
        if not all(type(v.fact) is Array for v in (base, *(v for _, v in path))):
            continue                # an element of a container is chosen when transforming
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
    """Whether a pass reads what a name holds when it begins."""
    read = {v for s in [*body, *(head[0] if head else ())] for v in all_reads(s)}.union(
        operands(head[1]) if head else ())
    return var in read or any(m != n for m, _ in ends.get(var, ()))


def left_as_view(reader: Reader, frame, n, base, path, ends, inside, indices, carries, last):
    """Notes that a name shows a view of what the loop leaves: at the indices that its last pass ended with."""
    for v in dict.fromkeys(v for made, _ in path for v in operands(made) if v is not viewed(made) and v in inside):
        if v not in indices:
            indices[v] = Var(v.hint, last.fact(v.fact), TEMPORARY)
            carries.append(Carry(v.like(), UNDEFINED, v, indices[v]))
    frame.env[n] = held = Conflict("set inside a loop only", SET_BEFORE)
    reader.views.views_after.append((frame.env, n, held, [(substituted(made, indices), v) for made, v in path],
                                     ends.get(base, base)))


def keeps_value(reader: Reader, n, value, kept, reading):
    """Whether it is known what a pass finds in a name that it may not have set itself, when it reads it."""
    if n in kept and not isinstance(kept[n], Array):
        return True
    read = (reader.environment.frame, n) in reading.read_partly
    of_parts = not isinstance(value, (Var, Const)) and (
        read or any(v in reader.choices.partly for v in variables_in(value))
    )
    if of_parts or isinstance(value, Conflict):
        fact = value if isinstance(value, Conflict) and value.memory else None
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


def close_carries(
    reader: Reader,
    frame,
    names,
    slots,
    inner,
    start,
    body,
    head,
    facts,
    kept,
    runs,
    since,
    held,
    shared,
    dead,
    certain,
    some,
):
    """The carries of a loop, and what its names hold afterwards.  A pass's own lengths are no other pass's."""
    after, carries, unchanged, leaving = dict(frame.env), [], {}, []
    earlier, last = (Afresh(lambda symbol: symbol.born >= since, label) for label in ("?earlier", "?last"))
    views, inside = left_as_views(reader, after, names, slots, inner, held, kept, body, head, since, certain)
    restore(start)
    ends, indices = {}, {}
    for n in names:
        value = after.get(n, UNDEFINED)
        if n in views:
            continue
        if n in dead:
            frame.env[n] = Conflict("set inside a loop only", SET_BEFORE)
        elif n not in slots:
            if n in kept and not isinstance(kept[n], Array):
                frame.env[n] = not_kept(kept[n])
            elif isinstance(value, Var) and isinstance(value.fact, (Array, Stack)):
                outer = Var(n.strip(), kept.get(n) or last.fact(value.fact), USER)
                before = inner[n][()] if n in kept else value.like(fact=earlier.fact(value.fact))
                leaving.append((outer, storages(reader, before) if n in kept else frozenset(), storages(reader, value)))
                one_cell_of(reader, outer, [value])
                carries.append(Carry(before, UNDEFINED, value, outer))
                left_unset(reader, outer, UNDEFINED, value, runs)
                if not may_share(reader, value):
                    reader.memory.owned.add(outer)
                frame.env[n] = outer
            elif isinstance(value, Struct):
                left = after_struct(reader, n, value, carries, earlier, last, runs)
                frame.env[n] = related_containers(reader, left, [value], shared, (n,))
            else:
                frame.env[n] = value if isinstance(value, Conflict) else Conflict(
                    "set inside a loop only", SET_BEFORE)
        if n not in slots:
            continue
        outers = {}
        for path, (var, new) in paired(reader, n, inner.get(n, {}), value).items():
            init = leaf_of(reader, frame.env[n], path)
            if new is var:
                unchanged[var] = init
                outers[path] = ends[new] = init
                continue
            outer = ends[new] = Var(n.strip(), facts[n, path], USER)
            leaving.append(
                (outer, reader.memory.tokens[var], storages(reader, new) if isinstance(new, Var) else frozenset())
            )
            one_cell_of(reader, outer, [var, new])
            if var in reader.memory.owned:
                reader.memory.owned.add(outer)
            init, new = as_floats(reader, init, var, reader.build.block), as_floats(reader, new, var, body)
            carries.append(Carry(var, init, new, outer))
            if var in reader.kinds.ints_or_floats:
                reader.kinds.ints_or_floats.add(outer)
            left_unset(reader, outer, init, new, runs)
            outers[path] = outer
        frame.env[n] = related_containers(
            reader, replaced_leaves(reader, frame.env[n], value, outers), [frame.env[n], value], shared, (n,)
        )
    leave_container(reader, *held, facts, carries, unchanged, runs, some)
    distinct_storages(reader, leaving)
    for n, (base, path) in views.items():
        left_as_view(reader, frame, n, base, path, ends, inside, indices, carries, last)
    if unchanged:
        body = replaced(body, unchanged)
        if head is not None:
            head = (replaced(head[0], unchanged), unchanged.get(head[1], head[1]))
        for c in carries:
            c.next = unchanged.get(c.next, c.next) if isinstance(c.next, Var) else c.next
    begun = {v for of in (*inner.values(), *held[1].values()) for v in of.values()}
    lost = begun - {c.inner for c in carries} - set(unchanged)
    if lost:
        read = {v for c in carries for v in operands(c.next)}.union(operands(head[1]) if head else (), *(
            all_reads(s) for s in [*body, *(head[0] if head else ())]))
        if not read.isdisjoint(lost):
            raise Broken(f"after reading a loop: {sorted(map(str, read & lost))} are read and not carried")
    return carries, body, head


def has_passes(count):
    """Whether a loop has a pass for certain: for the lengths and whole numbers that the version is made for."""
    length = fact_of(count).length
    return length is not None and length.demand(1)


def held_variables(value):
    """The variables of a value, and of what it holds."""
    yield from variables_in(value)
    for held in held_by(value):
        yield from held_variables(held)


def _is_range(source):
    return isinstance(source, Apply) and source.function is range
