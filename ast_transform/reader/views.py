# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: an operation comes in; whether its result is a view, and of which array, comes out.

This file also does the reverse: it computes the new value of an array from a view that was written.  Whether a result
is a view often depends on the memory layout, which is not always known: an argument may be strided or in Fortran order,
and arithmetic keeps the order of its operands.  A result that may or may not share memory is treated as an array of
its own; a write into it or into its source turns the other one into a Conflict.
"""
import inspect
import operator
import types
from collections.abc import Iterable
from typing import Any, cast

import gast

from gradscribe.ast_transform.core import alias
from gradscribe.ast_transform.core.alias import aliased, memory_of, parts_of, updates, viewed
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, is_application, operands, substituted
from gradscribe.ast_transform.core.kinds import Array, Length
from gradscribe.ast_transform.core.memory import ALIASES, CONTIGUOUS, FRESH, HOLDS, LOCKED, PART, VIEW
from gradscribe.ast_transform.core.operations import put, put_add
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import LanguageError

COPIED_FIRST = "Copy first, x = x.copy(), or index the array itself."


def made_as(reader: Reader, var: Any) -> Any:
    return reader.build.made.get(var) or reader.views.walked.get(var)


def is_view(reader: Reader, var: Any) -> bool:
    """Whether an array is certainly a view of an operand of the operation that made it."""
    made = made_as(reader, var)
    if not isinstance(made, Apply) or not made.args:
        return False
    parent = viewed(made)
    if parent is None or reader.views.flats.get(parent) or is_plain_number(reader, parent) or \
            is_plain_number(reader, var):
        return False
    memory = memory_of(made)
    if memory is CONTIGUOUS and isinstance(parent.fact, Array):
        return var in reader.views.flats or copies_nothing(reader, made, parent)
    if memory is ALIASES and parent is made.args[0] and is_array(parent) and is_array(var):
        return own_view(reader, made) is not None
    return memory.certain and not (memory is HOLDS and isinstance(parent.fact, Array))


def own_view(reader: Reader, made: Any) -> list | None:
    """The operations that make the view which a user's function with a rule returns; None if it may return another.

    The rule is only its derivative, so the view can be made again after its array has changed.
    """
    if not isinstance(made.function, types.FunctionType) or reader.engine is None:
        return None
    if made not in reader.views.own_views:
        reader.views.own_views[made] = reader.engine.view_by(made)
    return reader.views.own_views[made]


def copies_nothing(reader: Reader, made, parent):
    """Whether a flatten or reshape certainly returns a view: the array is C-contiguous, or it has only one axis.

    A single axis with any stride can be split into several.
    """
    if any(not isinstance(v, Const) or v.value not in ("C",) for k, v in made.kwargs if k == "order") or \
            len(made.args) > 2 or len(made.args) > 1 and _word(made, 1) == "order":
        return False
    cut = "shape" in RULES[made.function].signature.parameters
    return cut and parent.fact.rank == 1 or rowwise(reader, parent)


def possible_sources(reader: Reader, made: Any) -> list:
    """The arrays that an operation's result may or may not share memory with."""
    if is_application(made, operator.getitem) and reader.views.flats.get(made.args[0]):
        return []                   # a slice of x.flat is a copy
    shown = [v for v in aliased(made) if is_array(v)] or [
        v for v in operands(made) if memory_of(made).shares and may_be_cell(reader, v)]
    own = isinstance(made.function, types.FunctionType) and reader.engine is not None
    return [] if shown and own and reader.engine.makes_anew(made) else shown


def base_path(reader: Reader, var: Any) -> tuple:
    """(array that a view belongs to, operations that lead from it to the view)."""
    path = []
    while is_view(reader, var):
        made = made_as(reader, var)
        path.append((made, var))
        var = viewed(made)
    return var, path[::-1]


def same_view_again(reader: Reader, path: list, root: Any) -> Any:
    """The same view of another array."""
    for made, view in path:
        root = reader.build.let(view.hint, substituted(made, {cast(Var, viewed(made)): root}), view.fact, view.kind)
        if view in reader.views.flats:
            reader.views.flats[root] = reader.views.flats[view]
        elif memory_of(made) is CONTIGUOUS:
            reader.views.flats[root] = False
    return root


def rowwise(reader: Reader, var: Any) -> bool:
    """Whether an array is certainly C-contiguous."""
    if alias.is_number(var):
        return True
    found = reader.views.layouts.get(var)
    if found is None:
        made = made_as(reader, var)
        if isinstance(made, Var):
            found = rowwise(reader, made)
        else:
            found = isinstance(made, Apply) and isinstance(var.fact, Array) and made_rowwise(reader, made, var)
        reader.views.layouts[var] = found
    return found


def made_rowwise(reader: Reader, made, var):
    """Whether an operation's result is C-contiguous, by the entry `order=` of its rule record."""
    if updates(made):
        return rowwise(reader, made.args[0])
    memory, rank = memory_of(made), var.fact.rank
    arrays = [a for a in [*made.args, *(v for _, v in made.kwargs)] if is_array(a)]
    if is_application(made, operator.getitem):
        return is_array(made.args[0]) and _leading(made.args[1]) and rowwise(reader, made.args[0])
    rule = RULES.get(made.function) if _hashable(made.function) else None
    if rule is None:
        return False
    order = rule.options.get("order", "operands" if rule.kind == "elementwise" and memory is FRESH else None)
    if order == "rows":
        return True
    if order == "matrices":
        return all(a.fact.rank <= 2 for a in arrays)
    if order == "operands":
        return rank == 1 or all(a.fact.rank <= 1 or rowwise(reader, a) for a in arrays)
    if order == "first":
        return is_array(made.args[0]) and rowwise(reader, made.args[0]) or rank == 1 and memory is FRESH
    return order == "vector" and rank == 1


def one_entry(reader: Reader, new: Any, parent: Any) -> Any:
    """A 0-d array with the entry of an array that has one entry."""
    first = Const(0 if new.fact.rank == 1 else (0,) * new.fact.rank)
    entry = reader.build.item(new, first, parent.hint, parent.kind)
    reader.views.cells.add(entry)
    return entry


def locked_by(reader: Reader, var: Any) -> Any:
    """The operation that made an array's view read-only in NumPy, or None."""
    while isinstance(var, Var) and isinstance(made := made_as(reader, var), Apply) and \
            memory_of(made).shares == "first":
        if memory_of(made) is LOCKED:
            return made
        var = viewed(made)
    return None


def refuse_if_locked(reader: Reader, made: Any, node: gast.AST | None) -> None:
    name = getattr(made.function, "__name__", "")
    fail(reader, LanguageError, f"np.{name} gives a view that NumPy does not let be written", node,
         "Copy first: .copy(); or index the array itself.")


def moved_back(reader: Reader, made: Any, new: Any, parent: Any, node: gast.AST | None) -> Any:
    """The array from which a rearranging operation gives `new`."""
    name, memory, rule = getattr(made.function, "__name__", ""), memory_of(made), RULES.get(made.function)
    if memory is LOCKED:
        refuse_if_locked(reader, made, node)
    part = memory is PART and rule is not None and "written" in rule.parts
    if part:
        place = place_written(reader, made, new, parent)
        if place is not None:
            return place
    if not part and (memory not in (VIEW, CONTIGUOUS) or rule is None):
        fail(reader, LanguageError, f"writing through {name}, which shows a part of an array, is not differentiated",
             node, "Copy first: .copy(); or write into the array itself.")
    given = {"y" if part else "dy": new, **rule.signature.bind(*made.args, **dict(made.kwargs)).arguments}
    if rule.signature.parameters[rule.active[0]].kind is inspect.Parameter.VAR_POSITIONAL:
        given["k"] = Const(0)       # the position of the operand among several
    back = read_part(reader, rule, "written" if part else f"vjp_{rule.active[0]}", given)
    return reader.build.let(parent.hint, back, parent.fact, parent.kind) if back.fact is not parent.fact else back


def place_written(reader: Reader, made, new, parent):
    """The array after a write into an elementwise view of it, such as x.real: only the written entries change."""
    step, rule = made_as(reader, new), RULES[made.function]
    if not rule.options.get("elementwise") or not isinstance(step, Apply) or step.function not in (put, put_add) \
            or made_as(reader, step.args[0]) is not made or gathers(step.args[1]):
        return None
    _, index, value = step.args
    whole = isinstance(index, Const) and index.value is Ellipsis
    old = parent if whole else reader.build.item(parent, index)
    if fact_of(value).rank > fact_of(old).rank:
        return None
    if step.function is put_add:
        value = reader.build.apply(operator.add, reader.build.apply(made.function, old), value)
    value = read_part(reader, rule, "written", {"x": old, "y": value})
    return reader.build.let(parent.hint, Apply(put, (parent, index, value)), parent.fact, parent.kind)


def may_be_cell(reader: Reader, var: Any) -> bool:
    """Whether a value may be a 0-d array, which can be written in place, rather than a number."""
    if not isinstance(var, Var) or not isinstance(var.fact, Array) or var.fact.dims or var.fact.weak:
        return False
    if var in reader.views.cells:
        return True
    made = made_as(reader, var)
    if made is None:
        return var in reader.memory.entry_tokens
    if not isinstance(made, Apply):
        return False
    if is_application(made, operator.getitem):
        return any(isinstance(p, Const) and p.value is Ellipsis for p in parts_of(made.args[1]))
    rule = RULES.get(made.function) if _hashable(made.function) else None
    return rule is not None and bool(rule.options.get("cell"))


def is_plain_number(reader: Reader, var: Any) -> bool:
    """Whether a value is certainly a number without an alias: reading an entry copies it."""
    return alias.is_number(var) and not may_be_cell(reader, var)


def as_cell(reader: Reader, value: Any) -> Any:
    """A number as a 0-d array that the function has made."""
    fact = fact_of(value) if isinstance(value, (Var, Const)) else None
    if not isinstance(fact, Array) or fact.dims or isinstance(value, Const) or fact.weak or may_be_cell(reader, value):
        return value
    cell = alias_of(reader, value)
    reader.views.cells.add(cell)
    return cell


def copied_cell(reader: Reader, value: Any, made: Any) -> Any:
    """The result of an operation on a 0-d array: a new 0-d array, even if it is the same number."""
    if not may_be_cell(reader, value):
        return made
    return as_cell(reader, alias_of(reader, made) if made is value else made)


def alias_of(reader: Reader, value: Any, tokens: Any = None) -> Any:
    """A new variable with the same value, as an array of its own or in given storages."""
    new = reader.build.let(value.hint, value, value.fact)
    reader.memory.tokens[new] = frozenset({new}) if tokens is None else tokens
    reader.views.layouts[new] = rowwise(reader, value)
    return new


def gathers(index: Any) -> bool:
    """Whether an index contains an array, so that the result is a copy."""
    return alias.gathers(alias.told(index))


def is_array(value: Any) -> bool:
    return isinstance(value, Var) and isinstance(value.fact, Array) and bool(value.fact.dims)


def is_slice(p: Any) -> bool:
    return isinstance(p, Slice) or isinstance(p, Const) and isinstance(p.value, slice)


def is_number(part: Any) -> bool:
    """Whether a part of an index is an integer, which removes its axis."""
    if isinstance(part, Const) and isinstance(part.value, (slice, bool)) or not isinstance(part, (Var, Const)):
        return False
    fact = fact_of(part)
    return isinstance(fact, Array) and not fact.dims and fact.kind in "iu"


def is_whole(part: Any) -> bool:
    """Whether a part of an index is `:`, a whole axis."""
    return isinstance(part, Const) and isinstance(part.value, slice) and part.value == slice(None)


def is_turned(index: Any) -> bool:
    """Whether an index only reverses axes, so that it is its own inverse."""
    return all(isinstance(p, Const) and isinstance(p.value, slice) and p.value in (slice(None), slice(None, None, -1))
               for p in parts_of(index))


def axes_undone(index: Any, dims: Iterable[Length]) -> tuple | None:
    """The inverse of an index that only adds axes of length one, x[:, None], or removes them, x[:, 0].

    None for any other index.  Trailing axes without an index stay unchanged.
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
    """The parts of the one index that combines an index with an index into its result; None if not possible.

    x[i][k] is x[i, k], and x[:, i][k] is x[k, i].
    """
    if not all(is_number(p) or is_whole(p) for p in outer):
        return None
    if any(map(is_whole, outer)) and not all(is_number(p) or is_slice(p) for p in inner):
        return None
    inner = iter(inner)
    return [*(next(inner, p) if is_whole(p) else p for p in outer), *inner]


def index_of(parts: list) -> Any:
    """An index with these parts, as an operand."""
    if all(isinstance(p, Const) for p in parts):
        return Const(tuple(p.value for p in parts)) if len(parts) > 1 else parts[0]
    return Pack("tuple", tuple(parts)) if len(parts) > 1 else parts[0]


def _word(made, place):
    """The name of an operation's parameter at a position."""
    return list(RULES[made.function].signature.parameters)[place]


def _leading(index):
    """Whether an index is integers, then at most one slice of step one, so that its result is contiguous."""
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
