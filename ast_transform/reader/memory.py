# SPDX-License-Identifier: Apache-2.0
"""Writes into arrays (alias analysis): a write comes in; new values of the array and of its aliases come out.

A write makes a new value (`x_1 = put(x, i, v)`).  Each alias, a name whose array is in the same storage, gets its new
value at once: the array itself, or the same view of it.  A name that may or may not be an alias becomes a Conflict,
which is an error where it is read.  A loop that writes into an earlier array carries it under a separate name.
"""
import operator
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import gast

from gradscribe.ast_transform.core.alias import parts_of, viewed
from gradscribe.ast_transform.core.form import Apply, Const, Var, is_application, operands, substituted
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.core.operations import astype, put
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.types import item
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import as_operand, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Conflict, FunctionValue, Grown, Held, Struct, held_by, hold
from gradscribe.ast_transform.reader.views import (
    COPIED_FIRST,
    alias_of,
    base_path,
    gathers,
    index_of,
    is_array,
    is_number,
    is_plain_number,
    is_view,
    is_whole,
    joined,
    locked_by,
    made_as,
    may_be_cell,
    moved_back,
    one_entry,
    own_view,
    possible_sources,
    refuse_if_locked,
    rowwise,
    same_view_again,
)
from gradscribe.ast_transform.source.diagnose import OF_OBJECTS, LanguageError, ShapeError


class NeedsParts(Exception):
    """Raised if an array inside a container argument is written: the container must be read part by part."""


class NeedsPasses(Exception):
    """Raised if aliases depend on the pass of a loop: the function is read again with that loop unrolled."""

    def __init__(self, origin):
        super().__init__(str(origin))
        self.origin = origin


class NeedsStore(Exception):
    """Raised if a loop writes into an array from before it that it does not carry yet."""

    def __init__(self, loop, root):
        super().__init__(root.hint)
        self.loop, self.root = loop, root


class NotSetYet(Exception):
    """Raised for a name that an earlier pass may have set; `error` is the error if none does."""

    def __init__(self, loop, name, error):
        super().__init__(str(error))
        self.loop, self.name, self.error = loop, name, error


def storages(reader: Reader, var: Any) -> frozenset:
    """The storages that an array may be in; a newly made array has a storage of its own."""
    found = reader.memory.tokens.get(var)
    if found is None:
        made = made_as(reader, var)
        if isinstance(made, Var):
            found = storages(reader, made)
        elif is_view(reader, var):
            found = storages(reader, viewed(made))
        else:
            found = frozenset({var})
            if isinstance(made, Apply) and not is_plain_number(reader, var):
                found = found.union(*map(partial(storages, reader), possible_sources(reader, made)))
        reader.memory.tokens[var] = found
    return found


def distinct_storages(reader: Reader, left: list) -> None:
    """Set the storages of values after a loop: (value, its storages at the beginning of a pass, at its end).

    Arrays that a loop swaps are in each other's storages after it, but no two in the same one: values that share
    nothing at the beginning and the end of a pass share nothing.  A storage that other values use is kept.
    """
    mine = {value for value, _, _ in left}
    for value, first, last in left:
        reader.memory.tokens[value] = frozenset({value}) | first | last
    elsewhere = frozenset().union(*(storages(reader, v) for _, _, v in held_arrays(reader) if v not in mine))
    for k, (value, first, last) in enumerate(left):
        meets = [v for v, before, after in left[:k] if first & before or last & after]
        reader.memory.possible_storages[value] = first | last
        reader.memory.tokens[value] = (first | last) & elsewhere | {value, *meets}


def may_be_in(reader: Reader, var: Any) -> frozenset:
    """The storages of an array, including those that it may be in because a loop swaps arrays."""
    return with_possible_storages(reader, storages(reader, var))


def with_possible_storages(reader: Reader, tokens):
    """These storages, and for a value after a loop all storages from before the loop that it may be in."""
    found = list(tokens)
    for t in found:
        found += [u for u in reader.memory.possible_storages.get(t, ()) if u not in found]
    return frozenset(found)


def held_arrays(reader: Reader) -> Any:
    """(holder, key, value) of each array that a name or container holds, including values that may be 0-d arrays."""
    frames, seen = list(reader.environment.stack), set()

    def visit(holder, key, value):
        if isinstance(value, Struct):
            if id(value) not in seen:
                seen.add(id(value))
                for k, item in enumerate(value.items):
                    yield from visit(value, k, item)
        elif held_by(value) or isinstance(value, FunctionValue):
            if isinstance(value, FunctionValue) and value.frame is not None and value.frame not in frames:
                frames.append(value.frame)
            for k, item in enumerate(held_by(value)):
                yield from visit(value, k, item)
        elif isinstance(value, Grown):
            if id(value) not in seen and isinstance(value.value, Var):
                seen.add(id(value))
                yield value, "value", value.value
        elif is_array(value) or may_be_cell(reader, value):
            yield holder, key, value

    for frame in frames:
        for name, value in list(frame.env.items()):
            yield from visit(frame.env, name, value)
    for held in reader.memory.pending:
        for k, value in held.env.items():
            yield from visit(held.env, k, value)


def has_cell_alias(reader: Reader, old: Any) -> bool:
    """Whether a zero-dimensional array that an augmented assignment changes may have an alias."""
    shown, mine = [v for _, _, v in held_arrays(reader)], storages(reader, old)
    return sum(v is old for v in shown) > 1 or any(v is not old and storages(reader, v) & mine for v in shown)


@contextmanager
def pending_values(reader: Reader, values: list) -> Iterator[Any]:
    """A context that keeps values up to date if a write happens before they are used."""
    reader.memory.pending.append(Held(values))
    try:
        yield values
    finally:
        reader.memory.pending.pop()


def fresh_result(reader: Reader, result: Any, operands: list) -> Any:
    """The result of a user's operation as a new array, also if it was simplified to one of the operands."""
    if not is_array(result) or not reader.environment.frame.plain or not any(result is o for o in operands):
        return result
    new = reader.build.let(result.hint, result, result.fact)
    reader.memory.tokens[new] = frozenset({new})
    return new


def write_entry(reader: Reader, holder: Any, index: Any, value: Any, node: gast.AST | None,
                function: Callable = put) -> None:
    """holder[index] = value, or += for put_add."""
    if not is_array(holder):
        fail(reader, ShapeError, f"{spelled_value(reader, holder)} is not written into", node)
    fact = fact_of(value)
    if not isinstance(fact, Array):
        fail(reader, ShapeError, f"{spelled_value(reader, value)} cannot be an element of an array", node)
    if fact.kind == "c" and holder.fact.kind != "c":
        fail(reader, ShapeError, "a complex number cannot be written into a real array", node, "Use np.real.")
    can_write(reader, holder, node)
    base, path = base_path(reader, holder)
    if path and joined_index(reader, path, index) is not None:
        root = put_entry(reader, base, joined_index(reader, path, index), value, function, node)
    else:
        new = put_entry(reader, holder, index, value, function, node)
        root = put_back(reader, path, new, node) if path else new
    update_names(reader, holder, base, root, node)


def replace_all(reader: Reader, old: Any, new: Any, node: gast.AST | None) -> None:
    """x[...] = new, where new is x's next value (augmented assignment)."""
    can_write(reader, old, node)
    base, path = base_path(reader, old)
    root = put_back(reader, path, new, node) if path else new
    if not path:
        reader.memory.tokens[new] = storages(reader, old)
    update_names(reader, old, base, root, node)


def can_write(reader: Reader, holder: Any, node: gast.AST | None) -> None:
    base, _ = base_path(reader, holder)
    if holder.fact.of_objects:
        fail(reader, LanguageError, OF_OBJECTS, node, "Use a list.")
    if base in reader.lists.chosen_rows:
        fail(reader, LanguageError, "writing into an element of a list that is chosen when running", node,
             "Stack the elements first: rows = np.stack(items); rows[k] = ...")
    if not isinstance(base.fact, Array) or any(isinstance(t.fact, Sequence) for t in may_be_in(reader, holder)):
        if not reader.containers.apart:
            raise NeedsParts
        fail(reader, LanguageError, "writing into an array inside a container that is an argument is not "
             "differentiated yet", node, "Copy the array first: x = items[0].copy().")
    if isinstance(base.fact, Listed):
        fail(reader, LanguageError, "writing into an array that a list of unknown length holds", node,
             "Put a new array into another list, or write into an array of them all: np.array(items).")
    locked = locked_by(reader, base)
    if locked is not None:
        refuse_if_locked(reader, locked, node)
    if not of_one_dtype(reader, base):
        fail(reader, ShapeError, f"{base.hint} holds whole numbers on one path and {base.fact.dtype} on another: "
             "what is written may be cut off", node, "Create it with the dtype that holds both.")
    writes_storages(reader, storages(reader, base), node)
    if not base.fact.dims:
        fail(reader, LanguageError, f"writing into {base.hint}, which is a number or an array without axes", node,
             "Give the array an axis of length one.")
    for loop in reader.loops.reading:
        if base in loop.entry:
            raise NeedsStore(loop, base)
        if base in loop.stores:
            fail(reader, LanguageError, f"{base.hint} is written as it was before the loop, which changes it", node,
                 "Index the array itself.")
    for loop in reader.loops.reading:
        loop.written |= storages(reader, base)


def writes_storages(reader: Reader, written: frozenset, node: gast.AST | None) -> None:
    """Record that arguments are written; refuse a write into an array from outside the function."""
    written = with_possible_storages(reader, written)
    for outside, _ in reader.environment.captured.values():
        if written & storages(reader, outside):
            fail(reader, LanguageError, f"{outside.hint} is an array from outside the function: writing into it "
                 "cannot be undone in the backward sweep", node, "Pass it as an argument, or copy it.")
    if written & reader.memory.entry_tokens:
        reader.memory.writes_arguments = True


def require_distinct_storages(reader: Reader, arguments: list) -> None:
    """Require that the arrays given to a function that writes into them have different storages."""
    known = [storages(reader, v) for v in arguments if is_array(v)]
    if any(a & b for k, a in enumerate(known) for b in known[:k]):
        raise LanguageError("two arguments share memory, and the function writes into one of its arguments",
                            reader.build.origin, "Pass a copy.")


def put_entry(reader: Reader, x, index, value, function, node):
    hint = x.hint
    try:
        slot = item(x.fact, index)
    except (Unfit, IndexError) as error:
        fail(reader, ShapeError, f"indexing: {error}", node)
    given = fact_of(value)
    if given.rank > slot.rank and not all(d.is_unit for d in given.dims[:given.rank - slot.rank]):
        fail(
            reader,
            ShapeError,
            f"{spelled_value(reader, value)} does not fit into x[index], which has {slot.rank} axes",
            node,
        )
    if given.rank > slot.rank:      # NumPy drops leading axes of length one
        lead = (0,) * (given.rank - slot.rank)
        value = reader.build.item(as_operand(reader, value), Const(lead if len(lead) > 1 else 0), value.hint)
    new = reader.build.let(hint, Apply(function, (x, index, value)), x.fact, x.kind)
    reader.memory.tokens[new] = storages(reader, x)
    return new


def joined_index(reader: Reader, path, index):
    """One index that combines a view by integers and whole axes with an index into it; None if not possible."""
    if gathers(index):              # beside an index array, an integer is broadcast with it
        return None
    parts: Any = []
    for made, _ in path:
        parts = joined(parts, parts_of(made.args[1])) if is_application(made, operator.getitem) else None
        if parts is None or not all(is_number(p) or is_whole(p) for p in parts):
            return None
    last = parts_of(index)
    if len(last) == 1 and isinstance(last[0], Const) and last[0].value is Ellipsis:
        last = []
    parts = joined(parts, last)
    return index_of(parts) if parts else None


@contextmanager
def no_writes(reader: Reader, where: str, node: gast.AST | None) -> Iterator[Any]:
    """A context that refuses writes in an expression that may be skipped, or evaluated more often than a loop body."""
    before = reader.memory.writes
    yield
    if reader.memory.writes != before:
        fail(reader, LanguageError, f"{where} writes into an array", node, "Write it as a statement of its own.")


def update_names(reader: Reader, holder, base, root, node):
    """Update all aliases of a storage after a write into it."""
    reader.memory.writes += 1
    reader.memory.written.append(storages(reader, holder))
    written, line = storages(reader, holder), getattr(node, "lineno", 0)
    reader.memory.tokens[root], reader.views.layouts[root] = storages(reader, base), rowwise(reader, base)
    shown = [(p, k, v) for p, k, v in held_arrays(reader) if storages(reader, v) & written]
    changed = dispatch.updated_arrays(reader, base, root, {base_path(reader, v)[0] for _, _, v in shown}, node)
    memo = {}
    for place, key, value in shown:
        if value not in memo:
            first, path = base_path(reader, value)
            memo[value] = same_view_again(reader, path, changed[first]) if first in changed else Conflict(
                f"an array that line {line} may have changed, or not", COPIED_FIRST, True)
        _set(place, key, memo[value])


def update_aliases(reader: Reader, mapping: dict, but: Collection[Any] = ()) -> None:
    """Update the names of arrays, and of views of them, to the arrays' new values."""
    memo = {}
    for old, new in mapping.items():
        reader.views.layouts[new] = rowwise(reader, old)
    dispatch.renamed_choices(reader, mapping)
    for place, key, value in list(held_arrays(reader)):
        if place is reader.environment.frame.env and key in but:
            continue
        first, path = base_path(reader, value)
        if first in mapping:
            if value not in memo:
                memo[value] = same_view_again(reader, path, mapping[first])
            _set(place, key, memo[value])


class Items:
    """Places of containers whose items a loop being read must carry."""

    def __init__(self):
        self.containers = []                # containers whose items change
        self.lost = []                      # items that a pass may or may not have changed
        self.grown = []                     # lists that a pass makes longer or shorter, with their new elements


class Unset:
    """Names that may have no value in a pass of a loop being read."""

    def __init__(self):
        self.read = set()                   # (frame, name) that is read where the pass may not have set it
        self.first_set = set()              # (frame, name) without a value before the first pass
        self.left_out = False               # whether an arm that reads one of these was skipped


class Loop:
    """A loop being read: the earlier arrays that it does not carry, and what it must carry."""

    def __init__(self, since):
        self.since = since                  # length symbols created later belong to the loop
        self.entry, self.stores, self.lost = set(), {}, []
        self.items, self.unset = Items(), Unset()
        self.longer = set()                 # names of lists that a pass makes longer by items = items + [...]
        self.cells = set()                  # names whose value may be a 0-d array at the end of a pass
        self.shared = {}                    # {place: containers that it may be at the end of a pass}
        self.before = frozenset()           # storages that names use at the beginning of a pass
        self.around = frozenset()           # those of them whose arrays the loop does not carry
        self.maybe_aliased = set()          # names whose array may have an alias at the end of a pass
        self.written = frozenset()          # the storages that a pass writes into
        self.carried = {}                   # {place: storage of the carried array}, kept between readings

    def token(self, key, var):
        """The storage of a carried array, which is the same in each reading of the body."""
        return frozenset({self.carried.setdefault(key, var)})


def _set(place, key, value):
    if isinstance(place, Grown):
        place.value = value
    elif isinstance(place, Struct):
        place.items[key] = value
        place.version += 1
    elif held_by(place):
        hold(place, key, value)
    else:
        place[key] = value


def refuse_write(reader: Reader, target: gast.AST | None, holder: Any = None) -> None:
    if isinstance(holder, Grown):
        fail(reader, LanguageError, "writing into a list whose length is known only when running", target,
             "Make an array of it first: items = np.array(items).")
    if isinstance(target, gast.Subscript):
        fail(reader, LanguageError, "only an array, a list or a dictionary is written into", target,
             "Make a list of it: list(values).")
    if isinstance(target, gast.Attribute):
        fail(reader, LanguageError, "writing an attribute is not differentiated yet", target,
             "Keep the value in a variable.")
    fail(reader, LanguageError, "this assignment is not in the accepted language", target)


def of_one_dtype(reader: Reader, var, known=None):
    """Whether an array certainly has the same dtype on every path."""
    if not reader.kinds.ints_or_floats:
        return True
    known = dict.fromkeys(reader.kinds.ints_or_floats, False) if known is None else known
    if var in known:
        return known[var]
    made, known[var] = made_as(reader, var), True
    if isinstance(made, Apply) and made.function is not astype:
        either = [o for o in operands(made) if is_array(o) and not of_one_dtype(reader, o, known)]
        known[var] = not either or any(isinstance(fact := fact_of(a), Array) and fact.kind in "fc"
                                       for a in made.args if a not in either)
    return known[var]


def put_back(reader: Reader, path: list, new: Any, node: gast.AST | None) -> Any:
    """The new value of the array of a view, after the view has become `new`.

    A view of all entries rearranges them; the adjoint in its rule record gives the inverse.
    """
    for made, _ in reversed(path):
        parent, own = cast(Var, viewed(made)), own_view(reader, made)
        if own is not None:
            plain, root = [], parent
            for step, view in own:
                again = substituted(step, {cast(Var, viewed(step)): root})
                root = reader.build.let(view.hint, again, view.fact, view.kind)
                plain.append((again, root))
            new = put_back(reader, plain, new, node)
        elif is_application(made, operator.getitem):
            new = reader.build.let(parent.hint, Apply(put, (parent, made.args[1], new)), parent.fact, parent.kind) \
                if parent.fact.dims else one_entry(reader, new, parent)
        else:
            new = alias_of(reader, moved_back(reader, made, new, parent, node))   # an array of its own
        reader.memory.tokens[new], reader.views.layouts[new] = storages(reader, parent), rowwise(reader, parent)
    return new


def record_cell(reader: Reader, var: Any, values: list | tuple) -> None:
    """Record that a value may be one of several 0-d arrays, and its storages."""
    found = [v for v in values if may_be_cell(reader, v)]
    if found and isinstance(var, Var) and isinstance(var.fact, Array) and not var.fact.dims and not var.fact.weak:
        reader.views.cells.add(var)
        reader.memory.tokens[var] = reader.memory.tokens.get(var, frozenset({var})).union(
            *map(partial(storages, reader), found)
        )
