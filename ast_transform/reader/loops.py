# SPDX-License-Identifier: Apache-2.0
"""Loops: a `for` or a `while` comes in; a loop with its carries, or its unrolled passes, comes out."""
import functools
import math
import operator
from contextlib import contextmanager
from typing import Any

import gast

from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    USER,
    Apply,
    Const,
    For,
    Slice,
    Var,
    While,
)
from gradscribe.ast_transform.core.kinds import (
    Afresh,
    Array,
    Length,
    Symbol,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.operations import entry_of_range
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import from_zero
from gradscribe.ast_transform.reader.assignments import assign
from gradscribe.ast_transform.reader.branches import FEW, truth_value
from gradscribe.ast_transform.reader.carries import (
    NotALoop,
)
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.dispatch import executes, late
from gradscribe.ast_transform.reader.dynamic_lists import while_iterated
from gradscribe.ast_transform.reader.expressions import evaluate
from gradscribe.ast_transform.reader.frames import fail, here
from gradscribe.ast_transform.reader.iteration import unroll_with_exits, walk_over, walking
from gradscribe.ast_transform.reader.iterators import made_in_passes, must_be_unwritten
from gradscribe.ast_transform.reader.loop_fixpoint import place_loop, read_until_stable
from gradscribe.ast_transform.reader.memory import (
    NeedsPasses,
    pending_values,
)
from gradscribe.ast_transform.reader.operands import demand, operand_of_part, passed_value, root_arguments
from gradscribe.ast_transform.reader.statements import read_block
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import (
    name_after,
    spoken,
)
from gradscribe.ast_transform.reader.values import (
    Conflict,
    Walk,
)
from gradscribe.ast_transform.reader.views import (
    base_path,
    is_array,
    same_view_again,
)
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError
from gradscribe.ast_transform.source.trees import nodes


class Bind(gast.stmt):
    """Binds a loop's target to its value in a pass."""
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
    with pending_values(reader, [source for _, _, source in walk.items]) as held, while_iterated(reader, value, walk):
        walk.held = held
        outcome = read_for_loop(reader, node, walk)
        if walk.static is None:         # a pass may have written what the next element is computed from
            must_be_unwritten(reader, walk.reads, node.iter)
        return outcome


def read_for_loop(reader: Reader, node, walk):
    if getattr(node, "exits", None) is not None:
        return read_for_with_exit(reader, node, walk)
    if walk.static is not None and not walk.static:
        return None
    with within_loop(reader, node, walk) as unrolled:
        return unroll_passes(reader, node, walk) if unrolled else read_as_loop(reader, node, walk)


@contextmanager
def within_loop(reader: Reader, node, walk):
    """A context that records a loop that may be unrolled, with its enclosing loops; its value: whether it is."""
    place, number = here(reader, node), pass_count(reader, walk)
    if number is not None:
        reader.loops.countable[place] = number, tuple(reader.loops.around)
    reader.loops.around.append(place)
    try:
        yield place in reader.loops.unrolled and number is not None and fixed_number(reader, walk)
    finally:
        reader.loops.around.pop()


def pass_count(reader: Reader, walk):
    """The number of passes of a loop, from the source or the example arguments; None if known only at run time."""
    if walk.static is not None:
        return len(walk.static)
    length = fact_of(walk.count).length if isinstance(walk.count, Var) else None
    return walk.count.value if isinstance(walk.count, Const) else None if length is None else length.size


def fixed_number(reader: Reader, walk):
    """Whether the number of passes is fixed; the version is then specialised to it."""
    if walk.static is not None or isinstance(walk.count, Const):
        return True
    length = fact_of(walk.count).length
    return unify(length, Length(None, length.size))


def read_as_loop(reader: Reader, node, walk):
    """Read a loop as a loop if possible; otherwise unroll it."""
    can_stay = walk.count is not None
    must = walk.static is None
    if not can_stay:
        return unroll_passes(reader, node, walk)
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
        return unroll_passes(reader, node, walk)
    except (NotALoop, ShapeError, LanguageError) as error:
        if must:
            if isinstance(error, NotALoop):
                passes = certain_passes(reader, walk)
                if passes is not None:
                    restore(before)
                    reader.build.block[:] = held
                    return peel_first_pass(reader, node, walk, error) if passes else None
                unroll_or_fail(reader, error, node)
            request_unrolling(reader, here(reader, node))
            raise
        restore(before)
        reader.build.block[:] = held
        return unroll_passes(reader, node, walk)
    finally:
        reader.loops.must_stay = outer


def refuse_stale_walk(reader: Reader, walk, node):
    """Refuse a loop if the body may change the array that it iterates over."""
    if any(isinstance(s, Conflict) for s in walk.held):
        fail(reader, LanguageError, "this may be a view or a copy of an array that the loop changes",
             getattr(node, "iter", node), "Loop over a copy: .copy().")


def certain_passes(reader: Reader, walk):
    """Whether a loop over an argument's axis has a pass, to which the version is specialised; None if not known."""
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


def peel_first_pass(reader: Reader, node, walk, reason):
    """Read the first pass before the loop (loop peeling), because it changes the kind of a carried value."""
    try:
        assign(reader, node.target, walk.at(Const(0), [reader.build.item(s, Const(0), h) for h, _, s in walk.items]))
        outcome = read_block(reader, node.body)
        if outcome is not None:
            return outcome
        if isinstance(walk.count, Const) and walk.count.value == 1:
            return None
        refuse_stale_walk(reader, walk, node)
        rest = tuple((h, f, reader.build.item(s, Slice(Const(1), None, None)))
                     for (h, f, _), s in zip(walk.items, walk.held))
        later = reader.build.apply(operator.sub, walk.count, Const(1))
        with pending_values(reader, [source for _, _, source in rest]) as held:
            return for_loop(reader, node, Walk(None, later, rest, lambda index, items: walk.bind(
                reader.build.apply(operator.add, index, Const(1)), items), held=held))
    except NotALoop:
        unroll_or_fail(reader, reason, node)
    except (ShapeError, LanguageError):
        request_unrolling(reader, here(reader, node))
        raise


def unroll_or_fail(reader: Reader, reason, node):
    """Unroll a loop whose carries change from pass to pass, or refuse it if it is too long."""
    request_unrolling(reader, here(reader, node))
    fail(reader, LanguageError, str(reason), node, "Use a loop whose number of passes is a literal.")


def read_for_with_exit(reader: Reader, node, walk):
    """Read a for loop with a break or a return."""
    exits = node.exits
    for flag in (exits.stop, exits.returned):
        reader.environment.frame.env[flag] = Const(False)
    with within_loop(reader, node, walk) as unrolled:
        return unroll_with_exits(reader, node, walk) if unrolled else read_with_flag(reader, node, walk)


def read_with_flag(reader: Reader, node, walk):
    """Read a loop with an early exit as a loop if possible; otherwise unroll it."""
    if walk.count is None or not all(is_array(s) or _is_range(s) for _, _, s in walk.items):
        if walk.static is None:
            fail(reader, LanguageError, "a loop over this cannot be left early", node, "Loop over range(len(...)).")
        return unroll_with_exits(reader, node, walk)
    before, held = snapshot(reader), list(reader.build.block)
    try:
        return read_as_while(reader, node, walk)
    except (ShapeError, LanguageError, Demand) as error:
        if walk.static is None:
            if not isinstance(error, Demand):
                request_unrolling(reader, here(reader, node))
            raise
        restore(before)
        reader.build.block[:] = held
        return unroll_with_exits(reader, node, walk)


def read_as_while(reader: Reader, node, walk):
    """Read a for loop that is left early as a while loop over an index."""
    exits = node.exits
    target = getattr(node.target, "id", "_") if walk.plain else "_"
    index, count = "i" if target == "_" else target, " n"           # no name in the source begins with a blank
    index, count = index + exits.stop[4:], count + exits.stop[4:]
    reader.environment.frame.env[index], reader.environment.frame.env[count] = Const(0), walk.count
    name = functools.partial(gast.Name, annotation=None, type_comment=None)
    more = gast.Compare(name(index, gast.Load()), [gast.Lt()], [name(count, gast.Load())])
    step = gast.Assign([name(index, gast.Store())],
                       gast.BinOp(name(index, gast.Load()), gast.Add(), gast.Constant(1, None)), None)

    def bind():
        place = reader.environment.frame.env[index]
        refuse_stale_walk(reader, walk, node)
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


def unroll_passes(reader: Reader, node, walk):
    with unrolled_loop(reader, walk, node) as (number, enter):
        for k in range(number):
            enter(k)
            outcome = read_block(reader, node.body)
            if outcome is not None:
                return outcome
        enter(number)
    return None


@late
@contextmanager
def unrolled_loop(reader: Reader, walk, node):
    """A context for an unrolled loop: (number of passes, enter), where enter(k) binds the target for pass k."""
    number = pass_count(reader, walk)
    with pending_values(reader, list(walk.static or ())) as values, walking(reader, walk, node) as stays:
        def enter(k):
            stays(k)
            if k == number:
                return
            if walk.static is not None:
                return assign(reader, node.target, passed_value(reader, values[k]))
            refuse_stale_walk(reader, walk, node)
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
        refuse_stale_walk(reader, walk, node)
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
def unroll_for_conflict(reader: Reader, conflict, node):
    """Unroll the short loops around a memory conflict, because which arrays share memory may depend on the pass.

    After unrolling, the aliases of each array are known; the version is specialised to the number of passes.
    """
    if not conflict.memory:
        return
    for place in reader.loops.countable:
        request_unrolling(reader, place)
    for count in reader.loops.counted:
        lengths = [r.fact.length for r in root_arguments(reader, count) if isinstance(r.fact, Array)]
        if lengths and all(n is not None and n.normal().size in range(FEW) for n in lengths):
            demand(reader, root_arguments(reader, count)[0], "the number of passes", node)


def request_unrolling(reader: Reader, place):
    """Restart the reading with this loop unrolled, if that makes few copies of its body."""
    chosen = {*reader.loops.unrolled, place}

    def copies(loop):
        number, around = reader.loops.countable.get(loop, (FEW if loop == place else 1, ()))
        return number * math.prod(reader.loops.countable.get(p, (1,))[0] for p in around if p in chosen)

    if place not in reader.loops.unrolled and all(copies(loop) < FEW for loop in chosen):
        raise NeedsPasses(place)


def row_of_pass(reader: Reader, var, source, index):
    """The element of a pass; a row of an array that the loop changes is read from its current value."""
    current = entry_of_pass(reader, source)
    if current is not source:
        return reader.build.item(current, index, var.hint, var.kind)
    reader.views.walked[var] = Apply(operator.getitem, (source, index))
    return var


def entry_of_pass(reader: Reader, source: Any) -> Any:
    """The current value, in this pass, of an array that a loop iterates over."""
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


def has_passes(count):
    """Whether a loop certainly has a pass, for the lengths and integers to which the version is specialised."""
    length = fact_of(count).length
    return length is not None and length.demand(1)


def _is_range(source):
    return isinstance(source, Apply) and source.function is range
