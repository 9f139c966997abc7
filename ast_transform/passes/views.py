# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: which operations certainly give one, and how the array is made anew from a written view.

What NumPy's memory layout decides is certain only where the layout is.  An argument may be strided or in Fortran's
order, and arithmetic keeps the order of its operands.  What is not certain may share memory or not: such an array is
one of its own here, and a write into it, or into what it was made from, leaves the other a Conflict.
"""
import inspect
import operator
import types
from collections.abc import Iterable
from typing import Any

from gradscribe.ast_transform.core import alias
from gradscribe.ast_transform.core.alias import aliased, memory_of, parts_of, updates, viewed
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, is_application, operands, substituted
from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.memory import ALIASES, CONTIGUOUS, FRESH, HOLDS, LOCKED, PART, VIEW
from gradscribe.ast_transform.core.operations import put, put_add
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.rule_inlining import read_part
from gradscribe.ast_transform.source.diagnose import LanguageError

COPIED_FIRST = "Copy first, x = x.copy(), or index the array itself."

class Views:
    build: Any
    layouts: dict

    def made_as(self, var):
        return self.build.made.get(var) or self.walked.get(var)

    def is_view(self, var):
        """Whether an array is certainly a view of the first operand of what made it."""
        made = self.made_as(var)
        if not isinstance(made, Apply) or not made.args:
            return False
        parent = viewed(made)
        if parent is None or self.flats.get(parent) or self.shows_nothing(parent) or self.shows_nothing(var):
            return False
        memory = memory_of(made)
        if memory is CONTIGUOUS and isinstance(parent.fact, Array):
            return var in self.flats or self.copies_nothing(made, parent)
        if memory is ALIASES and parent is made.args[0] and is_array(parent) and is_array(var):
            return self.own_view(made) is not None
        return memory.certain and not (memory is HOLDS and isinstance(parent.fact, Array))

    def own_view(self, made):
        """The operations by which a function of the user's that has a rule gives a view; None if it may give another.

        Its rule is its derivative, so it may be called again where what it shows has changed.
        """
        if not isinstance(made.function, types.FunctionType) or self.engine is None:
            return None
        if made not in self.own_views:
            self.own_views[made] = self.engine.view_by(made)
        return self.own_views[made]

    def copies_nothing(self, made, parent):
        """Whether a result in the order of rows is a view: its entries lie side by side already, or one axis is cut.

        One axis can be cut into several whatever its stride is; what is flattened has its entries side by side.
        """
        if any(not isinstance(v, Const) or v.value not in ("C",) for k, v in made.kwargs if k == "order") or \
                len(made.args) > 2 or len(made.args) > 1 and _word(made, 1) == "order":
            return False
        cut = "shape" in RULES[made.function].signature.parameters
        return cut and parent.fact.rank == 1 or self.rowwise(parent)

    def may_show(self, made):
        """The arrays that an operation's result may share memory with, where that is not certain."""
        if is_application(made, operator.getitem) and self.flats.get(made.args[0]):
            return []                   # a slice of x.flat is a copy
        shown = [v for v in aliased(made) if is_array(v)] or [
            v for v in operands(made) if memory_of(made).shares and self.may_be_cell(v)]
        own = isinstance(made.function, types.FunctionType) and self.engine is not None
        return [] if shown and own and self.engine.makes_anew(made) else shown

    def base_path(self, var):
        """The array that a view is one of, and the operations that lead to the view."""
        path = []
        while self.is_view(var):
            made = self.made_as(var)
            path.append((made, var))
            var = viewed(made)
        return var, path[::-1]

    def again(self, path, root):
        """The same view of another array."""
        for made, view in path:
            root = self.build.let(view.hint, substituted(made, {viewed(made): root}), view.fact, view.kind)
            if view in self.flats:
                self.flats[root] = self.flats[view]
            elif memory_of(made) is CONTIGUOUS:
                self.flats[root] = False
        return root

    # layout

    def rowwise(self, var):
        """Whether an array certainly lies in memory row by row, without gaps (C's order)."""
        if alias.is_number(var):
            return True
        found = self.layouts.get(var)
        if found is None:
            made = self.made_as(var)
            if isinstance(made, Var):
                found = self.rowwise(made)
            else:
                found = isinstance(made, Apply) and isinstance(var.fact, Array) and self.made_rowwise(made, var)
            self.layouts[var] = found
        return found

    def made_rowwise(self, made, var):
        """By what the record says of the order of entries that NumPy gives a result (`order=`)."""
        if updates(made):
            return self.rowwise(made.args[0])
        memory, rank = memory_of(made), var.fact.rank
        arrays = [a for a in [*made.args, *(v for _, v in made.kwargs)] if is_array(a)]
        if is_application(made, operator.getitem):
            return is_array(made.args[0]) and _leading(made.args[1]) and self.rowwise(made.args[0])
        rule = RULES.get(made.function) if _hashable(made.function) else None
        if rule is None:
            return False
        order = rule.options.get("order", "operands" if rule.kind == "elementwise" and memory is FRESH else None)
        if order == "rows":
            return True
        if order == "matrices":
            return all(a.fact.rank <= 2 for a in arrays)
        if order == "operands":
            return rank == 1 or all(a.fact.rank <= 1 or self.rowwise(a) for a in arrays)
        if order == "first":
            return is_array(made.args[0]) and self.rowwise(made.args[0]) or rank == 1 and memory is FRESH
        return order == "vector" and rank == 1

    # back to the array

    def put_back(self, path, new, node):
        """The array that a view is one of, after the view has become `new`.

        A view of all entries moves them; the adjoint of that, which the record has, moves them back.
        """
        for made, _ in reversed(path):
            parent = viewed(made)
            if self.own_view(made) is not None:
                plain, root = [], parent
                for step, view in self.own_view(made):
                    again = substituted(step, {viewed(step): root})
                    root = self.build.let(view.hint, again, view.fact, view.kind)
                    plain.append((again, root))
                new = self.put_back(plain, new, node)
            elif is_application(made, operator.getitem):
                new = self.build.let(parent.hint, Apply(put, (parent, made.args[1], new)), parent.fact, parent.kind) \
                    if parent.fact.dims else self.one_entry(new, parent)
            else:
                new = self.alias(self.moved_back(made, new, parent, node))      # an array, no view of the view
            self.tokens[new], self.layouts[new] = self.storages(parent), self.rowwise(parent)
        return new

    def one_entry(self, new, parent):
        """An array without axes, whose one entry an array with axes shows."""
        first = Const(0 if new.fact.rank == 1 else (0,) * new.fact.rank)
        entry = self.build.item(new, first, parent.hint, parent.kind)
        self.cells.add(entry)
        return entry

    def locked(self, var):
        """The operation by which an array may show one that NumPy does not let be written, or None."""
        while isinstance(var, Var) and isinstance(made := self.made_as(var), Apply) and \
                memory_of(made).shares == "first":
            if memory_of(made) is LOCKED:
                return made
            var = viewed(made)
        return None

    def not_let(self, made, node):
        name = getattr(made.function, "__name__", "")
        self.fail(LanguageError, f"np.{name} gives a view that NumPy does not let be written", node,
                  "Copy first: .copy(); or index the array itself.")

    def moved_back(self, made, new, parent, node):
        """The array whose entries, moved by an operation, are `new`."""
        name, memory, rule = getattr(made.function, "__name__", ""), memory_of(made), RULES.get(made.function)
        if memory is LOCKED:
            self.not_let(made, node)
        part = memory is PART and rule is not None and "written" in rule.parts
        if part:
            place = self.place_written(made, new, parent)
            if place is not None:
                return place
        if not part and (memory not in (VIEW, CONTIGUOUS) or rule is None):
            self.fail(LanguageError, f"writing through {name}, which shows a part of an array, is not differentiated",
                      node, "Copy first: .copy(); or write into the array itself.")
        given = {"y" if part else "dy": new, **rule.signature.bind(*made.args, **dict(made.kwargs)).arguments}
        if rule.signature.parameters[rule.active[0]].kind is inspect.Parameter.VAR_POSITIONAL:
            given["k"] = Const(0)       # the place of the operand among several
        back = read_part(self, rule, "written" if part else f"vjp_{rule.active[0]}", given)
        return self.build.let(parent.hint, back, parent.fact, parent.kind) if back.fact is not parent.fact else back

    def place_written(self, made, new, parent):
        """The array after a write into a place of an elementwise part of it: that place is written, and no other."""
        step, rule = self.made_as(new), RULES[made.function]
        if not rule.options.get("elementwise") or not isinstance(step, Apply) or step.function not in (put, put_add) \
                or self.made_as(step.args[0]) is not made or gathers(step.args[1]):
            return None
        _, index, value = step.args
        whole = isinstance(index, Const) and index.value is Ellipsis
        old = parent if whole else self.build.item(parent, index)
        if fact_of(value).rank > fact_of(old).rank:
            return None
        if step.function is put_add:
            value = self.build.apply(operator.add, self.build.apply(made.function, old), value)
        value = read_part(self, rule, "written", {"x": old, "y": value})
        return self.build.let(parent.hint, Apply(put, (parent, index, value)), parent.fact, parent.kind)

    def may_be_cell(self, var):
        """An array without axes, which is written in place, is no number: so made, or an argument."""
        if not isinstance(var, Var) or not isinstance(var.fact, Array) or var.fact.dims or var.fact.weak:
            return False
        if var in self.cells:
            return True
        made = self.made_as(var)
        if made is None:
            return var in self.entry_tokens
        if not isinstance(made, Apply):
            return False
        if is_application(made, operator.getitem):
            return any(isinstance(p, Const) and p.value is Ellipsis for p in parts_of(made.args[1]))
        rule = RULES.get(made.function) if _hashable(made.function) else None
        return rule is not None and bool(rule.options.get("cell"))

    def shows_nothing(self, var):
        """Whether a value is a number for certain: an entry that was read is a copy, and an array of it has its own."""
        return alias.is_number(var) and not self.may_be_cell(var)

    def as_cell(self, value):
        """A number that a function has put into an array without axes of its own."""
        fact = fact_of(value) if isinstance(value, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.dims or isinstance(value, Const) or fact.weak or self.may_be_cell(value):
            return value
        cell = self.alias(value)
        self.cells.add(cell)
        return cell

    def copied_cell(self, value, made):
        """What an operation makes of an array without axes: another such array, also where it is the same number."""
        if not self.may_be_cell(value):
            return made
        return self.as_cell(self.alias(made) if made is value else made)

    def one_cell_of(self, var, values):
        """Notes that a value is one of others, where these may be arrays without axes."""
        found = [v for v in values if self.may_be_cell(v)]
        if found and isinstance(var, Var) and isinstance(var.fact, Array) and not var.fact.dims and not var.fact.weak:
            self.cells.add(var)
            self.tokens[var] = self.tokens.get(var, frozenset({var})).union(*map(self.storages, found))

    def alias(self, value, tokens=None):
        """Another name for a value, as an array of its own or of given storages."""
        new = self.build.let(value.hint, value, value.fact)
        self.tokens[new] = frozenset({new}) if tokens is None else tokens
        self.layouts[new] = self.rowwise(value)
        return new


def gathers(index: Any) -> bool:
    """An index with an array in it: what it reads is a copy."""
    return alias.gathers(alias.told(index))


def is_array(value: Any) -> bool:
    return isinstance(value, Var) and isinstance(value.fact, Array) and bool(value.fact.dims)


def is_slice(p: Any) -> bool:
    return isinstance(p, Slice) or isinstance(p, Const) and isinstance(p.value, slice)


def is_number(part: Any) -> bool:
    """Whether a part of an index is a whole number: it takes its axis away."""
    if isinstance(part, Const) and isinstance(part.value, (slice, bool)) or not isinstance(part, (Var, Const)):
        return False
    fact = fact_of(part)
    return isinstance(fact, Array) and not fact.dims and fact.kind in "iu"


def is_whole(part: Any) -> bool:
    """Whether a part of an index is `:`, an axis as it is."""
    return isinstance(part, Const) and isinstance(part.value, slice) and part.value == slice(None)


def is_turned(index: Any) -> bool:
    """Whether an index has every entry of an array once and turns axes round: it is its own inverse."""
    return all(isinstance(p, Const) and isinstance(p.value, slice) and p.value in (slice(None), slice(None, None, -1))
               for p in parts_of(index))


def axes_undone(index: Any, dims: Iterable[Length]) -> tuple | None:
    """The index that undoes one which only adds axes of length one, x[:, None], or takes them away, x[:, 0].

    None for any other index.  What is left of the index's axes at the end stays as it is.
    """
    undone: list
    undone, lengths = [], iter(dims)
    for p in parts_of(index):
        if isinstance(p, Const) and p.value is None:
            undone.append(0)
            continue
        length = next(lengths, None)
        if length is not None and is_whole(p):
            undone.append(slice(None))
        elif length is not None and length.is_unit and isinstance(p, Const) and type(p.value) is int and \
                p.value in (0, -1):
            undone.append(None)
        else:
            return None
    while undone and undone[-1] == slice(None):
        undone.pop()
    return tuple(undone)


def joined(outer: list, inner: Iterable) -> list | None:
    """The parts of one index for an index into what another one shows; None if they do not join.

    x[i][k] is x[i, k], and x[:, i][k] is x[k, i].
    """
    if not all(is_number(p) or is_whole(p) for p in outer):
        return None
    if any(map(is_whole, outer)) and not all(is_number(p) or is_slice(p) for p in inner):
        return None
    inner = iter(inner)
    return [*(next(inner, p) if is_whole(p) else p for p in outer), *inner]


def index_of(parts: list) -> Any:
    """An index of these parts, as an operand."""
    if all(isinstance(p, Const) for p in parts):
        return Const(tuple(p.value for p in parts)) if len(parts) > 1 else parts[0]
    return Pack("tuple", tuple(parts)) if len(parts) > 1 else parts[0]


def _word(made, place):
    """The name of an operation's parameter at a place."""
    return list(RULES[made.function].signature.parameters)[place]


def _leading(index):
    """Integers, then at most one slice in steps of one: what is left of it lies side by side."""
    parts = parts_of(index)
    while parts and not is_slice(parts[0]):
        fact = fact_of(parts[0])
        if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
            return False
        parts = parts[1:]
    steps = [p.step if isinstance(p, Slice) else p.value.step for p in parts[:1]]
    return len(parts) <= 1 and all(s is None or s == 1 or isinstance(s, Const) and s.value == 1 for s in steps)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True
