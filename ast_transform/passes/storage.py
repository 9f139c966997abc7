"""Writes into arrays: which names show the array that is written, and what they show afterwards.

A write makes a new value (`x_1 = put(x, i, v)`).  Every name that shows the same storage is given its new value at
once: the array itself, or the same view of it.  What may or may not show it becomes a Conflict, an error where it is
read.  A loop that writes into an array from before it carries that array under a name of its own.
"""
import operator
from contextlib import contextmanager

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Function, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import VIEWS, put
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.facts import item
from gradscribe.ast_transform.passes.values import Conflict, FunctionValue, Held, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError

CERTAIN = {operator.getitem, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze}    # never copies


def gathers(index):
    """An index with an array in it: what it reads is a copy."""
    for p in _parts(index):
        fact = fact_of(p) if isinstance(p, (Var, Const)) and not _is_slice(p) else None
        if isinstance(fact, Array) and fact.dims or isinstance(p, Const) and isinstance(p.value, (np.ndarray, list)):
            return True
    return False


class NeedsStore(Exception):
    """A loop writes into an array from before it, which it does not carry yet."""

    def __init__(self, loop, root):
        super().__init__(root.hint)
        self.loop, self.root = loop, root


class Storage:
    # whose storage

    def storages(self, var) -> frozenset:
        """The storages that an array may be in; one that was made afresh is a storage of its own."""
        found = self.tokens.get(var)
        if found is None:
            made = self.made_as(var)
            if isinstance(made, Var):
                found = self.storages(made)
            elif isinstance(made, Apply) and isinstance(made.function, Function) and \
                    not made.function.notes.get("fresh"):
                found = frozenset().union(*(self.storages(a) for a in made.args if _is_array(a))) | {var}
            elif self.is_view(made):
                found = self.storages(made.args[0])
            else:
                found = frozenset({var})
            self.tokens[var] = found
        return found

    def made_as(self, var):
        return self.build.made.get(var) or self.walked.get(var)

    @staticmethod
    def is_view(made):
        return isinstance(made, Apply) and getattr(made.function, "__name__", "") in VIEWS and bool(made.args) and \
            isinstance(made.args[0], Var) and not (made.function is operator.getitem and gathers(made.args[1]))

    def base_path(self, var):
        """The array that a view is one of, and the operations that lead to the view."""
        path = []
        while self.is_view(self.made_as(var)):
            made = self.made_as(var)
            path.append((made, var))
            var = made.args[0]
        return var, path[::-1]

    def shown(self):
        """(holder, key, value) of every value that a name or a container shows."""
        frames, seen = list(self.stack), set()

        def visit(holder, key, value):
            if isinstance(value, Struct):
                if id(value) not in seen:
                    seen.add(id(value))
                    for k, item in enumerate(value.items):
                        yield from visit(value, k, item)
            elif isinstance(value, FunctionValue):
                if value.frame is not None and value.frame not in frames:
                    frames.append(value.frame)
            elif _is_array(value):
                yield holder, key, value

        for frame in frames:
            for name, value in list(frame.env.items()):
                yield from visit(frame.env, name, value)
        for held in self.pending:
            for k, value in held.env.items():
                yield from visit(held.env, k, value)

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
        if not _is_array(result) or not self.frame.plain or not any(result is o for o in operands):
            return result
        new = self.build.let(result.hint, result, result.fact)
        self.tokens[new] = frozenset({new})
        return new

    # writing

    def write(self, holder, index, value, node, function=put):
        """holder[index] = value, or += for put_add."""
        if not _is_array(holder):
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
        if not isinstance(base.fact, Array) or any(isinstance(t.fact, Sequence) for t in self.storages(holder)):
            self.fail(LanguageError, "writing into an array inside a container that is an argument is not "
                      "differentiated yet", node, "Copy the array first: x = items[0].copy().")
        if any(base is v for v, _ in self.captured.values()):
            self.fail(LanguageError, f"{base.hint} is an array from outside the function: writing into it cannot be "
                      "undone in the backward sweep", node, "Pass it as an argument, or copy it.")
        for loop in self.loops:
            if base in loop.entry:
                raise NeedsStore(loop, base)
            if base in loop.stores:
                self.fail(LanguageError, f"{base.hint} is written as it was before the loop, which changes it", node,
                          "Index the array itself.")
        if self.storages(base) & self.entry_tokens:
            self.writes_arguments = True

    def must_be_apart(self, arguments):
        """A function that writes into its arguments is given arrays of different storages."""
        known = [self.storages(v) for v in arguments if _is_array(v)]
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
        new = self.build.let(hint, Apply(function, (x, index, value)), x.fact, x.kind)
        self.tokens[new] = self.storages(x)
        return new

    def joined(self, path, index):
        """One index for a view made by integers and the index into it; None if they do not join."""
        if gathers(index):              # an integer beside an index array is one of its kind
            return None
        parts = []
        for made, _ in path:
            if made.function is not operator.getitem:
                return None
            for p in _parts(made.args[1]):
                fact = fact_of(p) if isinstance(p, (Var, Const)) and not _is_slice(p) else None
                if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
                    return None
                parts.append(p)
        last = _parts(index)
        if len(last) == 1 and isinstance(last[0], Const) and last[0].value is Ellipsis:
            last = []
        whole = (*parts, *last)
        if all(isinstance(p, Const) for p in whole):
            return Const(tuple(p.value for p in whole)) if len(whole) > 1 else whole[0]
        return Pack("tuple", whole) if len(whole) > 1 else whole[0]

    def put_back(self, path, new, node):
        """The array that a view is one of, after the view has become `new`."""
        for made, _ in reversed(path):
            parent, name = made.args[0], getattr(made.function, "__name__", "")
            words = dict(made.kwargs)
            if made.function is operator.getitem:
                new = self.build.let(parent.hint, Apply(put, (parent, made.args[1], new)), parent.fact, parent.kind)
            elif name == "transpose" and len(made.args) == 1 and not words:
                new = self.build.apply(np.transpose, new, hint=parent.hint, kind=parent.kind)
            elif name in ("swapaxes", "matrix_transpose"):
                new = self.build.apply(made.function, new, *made.args[1:], hint=parent.hint, kind=parent.kind)
            else:
                self.fail(LanguageError, f"writing through {name}, which may be a view or a copy", node,
                          "Copy first: .copy(); or index the array itself.")
            self.tokens[new] = self.storages(parent)
        return new

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
        written, line = self.storages(holder), getattr(node, "lineno", 0)
        self.tokens[root] = self.storages(base)
        memo = {}
        for place, key, value in list(self.shown()):
            if not self.storages(value) & written:
                continue
            if value not in memo:
                first, path = self.base_path(value)
                certain = first is base and all(made.function in CERTAIN for made, _ in path)
                memo[value] = self.again(path, root) if certain else Conflict(
                    f"an array that line {line} may have changed, or not")
            _set(place, key, memo[value])

    def again(self, path, root):
        """The same view of another array."""
        for made, view in path:
            root = self.build.let(view.hint, Apply(made.function, (root, *made.args[1:]), made.kwargs), view.fact,
                                  view.kind)
        return root

    def hand_over(self, old, new, but=()):
        """Names that show one array, or views of it, show another one."""
        memo = {}
        for place, key, value in list(self.shown()):
            if place is self.frame.env and key in but:
                continue
            first, path = self.base_path(value)
            if first is old:
                if value not in memo:
                    memo[value] = self.again(path, new)
                _set(place, key, memo[value])


class Loop:
    """A loop being read: the arrays from before it that it does not carry, and the arrays and containers it must."""

    def __init__(self):
        self.entry, self.stores, self.lost, self.containers, self.lost_items = set(), {}, [], [], []


def _set(place, key, value):
    if isinstance(place, Struct):
        place.items[key] = value
        place.version += 1
    else:
        place[key] = value


def _is_array(value):
    return isinstance(value, Var) and isinstance(value.fact, Array) and bool(value.fact.dims)


def _is_slice(p):
    return isinstance(p, Slice) or isinstance(p, Const) and isinstance(p.value, slice)


def _parts(index):
    if isinstance(index, Pack):
        return list(index.items)
    if isinstance(index, Const) and isinstance(index.value, tuple):
        return [Const(p) for p in index.value]
    return [index]

