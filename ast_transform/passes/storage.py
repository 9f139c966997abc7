# SPDX-License-Identifier: Apache-2.0
"""Writes into arrays: which names show the array that is written, and what they show afterwards.

A write makes a new value (`x_1 = put(x, i, v)`).  Every name that shows the same storage is given its new value at
once: the array itself, or the same view of it.  What may or may not show it becomes a Conflict, an error where it is
read.  A loop that writes into an array from before it carries that array under a name of its own.
"""
import operator
from contextlib import contextmanager

from gradscribe.ast_transform.core.alias import parts_of, viewed
from gradscribe.ast_transform.core.form import Apply, Const, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.core.operations import put
from gradscribe.ast_transform.passes.choices import Choices
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.types import item
from gradscribe.ast_transform.passes.values import Conflict, FunctionValue, Grown, Held, Struct, held_by, hold
from gradscribe.ast_transform.passes.views import (
    COPIED_FIRST,
    gathers,
    index_of,
    is_array,
    is_number,
    is_whole,
    joined,
)
from gradscribe.ast_transform.source.diagnose import OF_OBJECTS, LanguageError, ShapeError


class NeedsParts(Exception):
    """An array inside a container that is an argument is written: the container's parts must be values of their own."""


class NeedsPasses(Exception):
    """What shares memory depends on the pass: a loop of few passes is written out."""

    def __init__(self, origin):
        super().__init__(str(origin))
        self.origin = origin


class NeedsStore(Exception):
    """A loop writes into an array from before it, which it does not carry yet."""

    def __init__(self, loop, root):
        super().__init__(root.hint)
        self.loop, self.root = loop, root


class NotSetYet(Exception):
    """A name that an earlier pass of a loop may have set, whose value there is not known yet; and the error if not."""

    def __init__(self, loop, name, error):
        super().__init__(str(error))
        self.loop, self.name, self.error = loop, name, error


class Storage(Choices):
    # whose storage

    def storages(self, var) -> frozenset:
        """The storages that an array may be in; one that was made afresh is a storage of its own."""
        found = self.tokens.get(var)
        if found is None:
            made = self.made_as(var)
            if isinstance(made, Var):
                found = self.storages(made)
            elif self.is_view(var):
                found = self.storages(viewed(made))
            else:
                found = frozenset({var})
                if isinstance(made, Apply) and not self.shows_nothing(var):
                    found = found.union(*map(self.storages, self.may_show(made)))
            self.tokens[var] = found
        return found

    def told_apart(self, left):
        """The storages of what a loop leaves: (value, where it was when a pass began, where it is when one ends).

        Arrays that a loop exchanges are in one another's storages after it, but no two in one: what shares nothing when
        a pass begins and nothing when it ends shares nothing.  A storage that something else shows stays named.
        """
        mine = {value for value, _, _ in left}
        for value, first, last in left:
            self.tokens[value] = frozenset({value}) | first | last
        elsewhere = frozenset().union(*(self.storages(v) for _, _, v in self.shown() if v not in mine))
        for k, (value, first, last) in enumerate(left):
            meets = [v for v, before, after in left[:k] if first & before or last & after]
            self.stood_for[value] = first | last
            self.tokens[value] = (first | last) & elsewhere | {value, *meets}

    def may_be_in(self, var):
        """The storages of an array, and those of which it is one of several that a loop exchanges."""
        return self.stood_for_by(self.storages(var))

    def stood_for_by(self, tokens):
        """These storages, and those that each may be one of: what a loop leaves is in one of those from before it."""
        found = list(tokens)
        for t in found:
            found += [u for u in self.stood_for.get(t, ()) if u not in found]
        return frozenset(found)

    def shown(self):
        """(holder, key, value) of every array that a name or a container shows, and what may be one without axes."""
        frames, seen = list(self.stack), set()

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
            elif is_array(value) or self.may_be_cell(value):
                yield holder, key, value

        for frame in frames:
            for name, value in list(frame.env.items()):
                yield from visit(frame.env, name, value)
        for held in self.pending:
            for k, value in held.env.items():
                yield from visit(held.env, k, value)

    def shows_a_cell(self, old) -> bool:
        """Whether something else shows what may be this array without axes, which an augmented assignment changes."""
        shown, mine = [v for _, _, v in self.shown()], self.storages(old)
        return sum(v is old for v in shown) > 1 or any(v is not old and self.storages(v) & mine for v in shown)

    @contextmanager
    def waiting(self, values):
        """Values that are used once more has been read: a write meanwhile is seen in them too."""
        self.pending.append(Held(values))
        try:
            yield values
        finally:
            self.pending.pop()

    def fresh(self, result, operands):
        """What an operation of the user's makes is an array of its own, also where it is known to be an operand's."""
        if not is_array(result) or not self.frame.plain or not any(result is o for o in operands):
            return result
        new = self.build.let(result.hint, result, result.fact)
        self.tokens[new] = frozenset({new})
        return new

    # writing

    def write(self, holder, index, value, node, function=put):
        """holder[index] = value, or += for put_add."""
        if not is_array(holder):
            self.fail(ShapeError, f"{self.spell(holder)} is not written into", node)
        fact = fact_of(value)
        if not isinstance(fact, Array):
            self.fail(ShapeError, f"{self.spell(value)} cannot be an element of an array", node)
        if fact.kind == "c" and holder.fact.kind != "c":
            self.fail(ShapeError, "a complex number cannot be written into a real array", node, "Use np.real.")
        self.can_write(holder, node)
        base, path = self.base_path(holder)
        if path and self.joined(path, index) is not None:
            root = self.put(base, self.joined(path, index), value, function, node)
        else:
            new = self.put(holder, index, value, function, node)
            root = self.put_back(path, new, node) if path else new
        self.shows(holder, base, root, node)

    def replace_all(self, old, new, node):
        """x[...] = new, where new is x's next value (augmented assignment)."""
        self.can_write(old, node)
        base, path = self.base_path(old)
        root = self.put_back(path, new, node) if path else new
        if not path:
            self.tokens[new] = self.storages(old)
        self.shows(old, base, root, node)

    def can_write(self, holder, node):
        base, _ = self.base_path(holder)
        if holder.fact.of_objects:
            self.fail(LanguageError, OF_OBJECTS, node, "Use a list.")
        if base in self.chosen_rows:
            self.fail(LanguageError, "writing into an element of a list that is chosen when running", node,
                      "Stack the elements first: rows = np.stack(items); rows[k] = ...")
        if not isinstance(base.fact, Array) or any(isinstance(t.fact, Sequence) for t in self.may_be_in(holder)):
            if not self.apart:
                raise NeedsParts
            self.fail(LanguageError, "writing into an array inside a container that is an argument is not "
                      "differentiated yet", node, "Copy the array first: x = items[0].copy().")
        if isinstance(base.fact, Listed):
            self.fail(LanguageError, "writing into an array that a list of unknown length holds", node,
                      "Put a new array into another list, or write into an array of them all: np.array(items).")
        locked = self.locked(base)
        if locked is not None:
            self.not_let(locked, node)
        if not self.of_one_dtype(base):
            self.fail(ShapeError, f"{base.hint} holds whole numbers on one path and {base.fact.dtype} on another: "
                      "what is written may be cut off", node, "Create it with the dtype that holds both.")
        self.writes_storages(self.storages(base), node)
        if not base.fact.dims:
            self.fail(LanguageError, f"writing into {base.hint}, which is a number or an array without axes", node,
                      "Give the array an axis of length one.")
        for loop in self.loops:
            if base in loop.entry:
                raise NeedsStore(loop, base)
            if base in loop.stores:
                self.fail(LanguageError, f"{base.hint} is written as it was before the loop, which changes it", node,
                          "Index the array itself.")
        for loop in self.loops:
            loop.written |= self.storages(base)

    def writes_storages(self, written, node):
        """What is written may be an argument, and must be no array from outside the function."""
        written = self.stood_for_by(written)
        for outside, _ in self.captured.values():
            if written & self.storages(outside):
                self.fail(LanguageError, f"{outside.hint} is an array from outside the function: writing into it "
                          "cannot be undone in the backward sweep", node, "Pass it as an argument, or copy it.")
        if written & self.entry_tokens:
            self.writes_arguments = True

    def must_be_apart(self, arguments):
        """A function that writes into its arguments is given arrays of different storages."""
        known = [self.storages(v) for v in arguments if is_array(v)]
        if any(a & b for k, a in enumerate(known) for b in known[:k]):
            raise LanguageError("two arguments share memory, and the function writes into one of its arguments",
                                self.build.origin, "Pass a copy.")

    def put(self, x, index, value, function, node):
        hint = x.hint
        try:
            slot = item(x.fact, index)
        except (Unfit, IndexError) as error:
            self.fail(ShapeError, f"indexing: {error}", node)
        given = fact_of(value)
        if given.rank > slot.rank and not all(d.is_unit for d in given.dims[:given.rank - slot.rank]):
            self.fail(ShapeError, f"{self.spell(value)} does not fit into x[index], which has {slot.rank} axes", node)
        if given.rank > slot.rank:      # NumPy leaves out axes of length one before the others
            lead = (0,) * (given.rank - slot.rank)
            value = self.build.item(self.operand(value), Const(lead if len(lead) > 1 else 0), value.hint)
        new = self.build.let(hint, Apply(function, (x, index, value)), x.fact, x.kind)
        self.tokens[new] = self.storages(x)
        return new

    def joined(self, path, index):
        """One index for a view made by numbers and whole axes and the index into it; None if they do not join."""
        if gathers(index):              # an integer beside an index array is one of its kind
            return None
        parts = []
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
    def no_writes(self, where, node):
        """An expression that may be skipped, or is asked once more than a body runs, writes nothing."""
        before = self.writes
        yield
        if self.writes != before:
            self.fail(LanguageError, f"{where} writes into an array", node, "Write it as a statement of its own.")

    def shows(self, holder, base, root, node):
        """Every name that shows the storage shows what is in it now."""
        self.writes += 1
        self.written.append(self.storages(holder))
        written, line = self.storages(holder), getattr(node, "lineno", 0)
        self.tokens[root], self.layouts[root] = self.storages(base), self.rowwise(base)
        shown = [(p, k, v) for p, k, v in self.shown() if self.storages(v) & written]
        changed = self.changed_too(base, root, {self.base_path(v)[0] for _, _, v in shown}, node)
        memo = {}
        for place, key, value in shown:
            if value not in memo:
                first, path = self.base_path(value)
                memo[value] = self.again(path, changed[first]) if first in changed else Conflict(
                    f"an array that line {line} may have changed, or not", COPIED_FIRST, True)
            _set(place, key, memo[value])

    def hand_over(self, mapping, but=()):
        """Names that show arrays, or views of them, show those that these have become."""
        memo = {}
        for old, new in mapping.items():
            self.layouts[new] = self.rowwise(old)
        self.handed_over(mapping)
        for place, key, value in list(self.shown()):
            if place is self.frame.env and key in but:
                continue
            first, path = self.base_path(value)
            if first in mapping:
                if value not in memo:
                    memo[value] = self.again(path, mapping[first])
                _set(place, key, memo[value])


class Loop:
    """A loop being read: the arrays from before it that it does not carry, and the arrays and containers it must."""

    def __init__(self, since):
        self.since = since                  # lengths that are born later belong to the loop
        self.entry, self.stores, self.lost, self.containers, self.lost_items, self.grown = set(), {}, [], [], [], []
        self.unsteady = []                  # names of what is no operand and changes from pass to pass
        self.longer = set()                 # names of lists that a pass makes longer by items = items + [...]
        self.cells = set()                  # names whose value may be an array without axes when a pass ends
        self.read_partly = set()            # (frame, name) of what is read where the pass may not have set it
        self.first_set = set()              # (frame, name) of what no one has set when the first pass begins
        self.incomplete = False             # whether an arm was left out that reads one of these
        self.shared = {}                    # by name and place in it: the containers that it may be when a pass ends
        self.before = frozenset()           # what names show when a pass begins: the storages
        self.around = frozenset()           # of them those of what the loop does not carry
        self.lent = set()                   # names whose array may be another's when a pass ends
        self.written = frozenset()          # the storages that a pass writes into
        self.carried = {}                   # by name and place in it: the storage of what it carries, in each reading

    def token(self, key, var):
        """The storage of a carried array: the same each time that the body is read."""
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
