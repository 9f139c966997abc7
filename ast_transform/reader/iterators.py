# SPDX-License-Identifier: Apache-2.0
"""Iterators: map, zip or a generator comes in; its elements come out, read in the order in which Python computes them.

Python computes an iterator's elements one at a time, on demand.  A loop over map, or over a generator, computes each in
its pass.  Elsewhere the elements are computed where the iterator is created.  An iterator is refused if an element
would have another value later, or if computing it would have an effect between two passes of a loop.

>>> from gradscribe.ast_transform.examples import form
>>> from gradscribe.ast_transform.source.diagnose import TransformError
>>> try:
...     form("def f(x):\\n    seen = []\\n    for v, w in zip((seen.append(x) or x for k in range(3)), (1, 2, 3)):\\n"
...          "        seen.append(v * w)\\n    return sum(seen)", 1.0)
... except TransformError as error:
...     print(str(error).splitlines()[0])
an iterator that changes something when it is gone through
"""
import functools
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.memory import storages
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import loaded
from gradscribe.ast_transform.reader.values import SPENT, FunctionValue, Grown, Rows, Struct, Walk, held_by
from gradscribe.ast_transform.reader.views import is_array
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.ast_transform.source.trees import name_at

AT_ONCE = (sum, list, tuple, sorted, min, max, dict, set, frozenset)     # functions that consume an iterator at once
WRITTEN_OUT = "Write it as a loop, or make a list of it where it stands: [... for ...]."
IN_ORDER = (enumerate, zip, map)        # element k depends only on the elements k of the arguments
MAY_SHOW = (Walk, Var, Struct, Grown, Rows)


def is_lazy(function: Any) -> bool:
    """Whether a function returns an iterator, whose elements Python computes on demand."""
    return function is iter or isinstance(function, type) and issubclass(function, Iterator)


def made_in_passes(reader: Reader, node: gast.AST) -> gast.AST:
    """for h in map(f, xs)  ->  for x in xs: h = f(x): each pass computes its own element, as in Python.

    The same for a generator, and with enumerate around either.
    """
    at = functools.partial(gast.copy_location, old_node=node.iter)
    name = functools.partial(name_at, node.iter)
    over, target, numbered, word = node.iter, node.target, False, "item"
    if (
        calls_function(reader, over, enumerate)
        and over.args
        and isinstance(target, gast.Tuple)
        and len(target.elts) == 2
    ):
        over, target, numbered = over.args[0], target.elts[1], True
    if calls_function(reader, over, map) and len(over.args) > 1 and not over.keywords and not any(
            isinstance(a, gast.Starred) for a in over.args):
        made, sources = over.args[0], over.args[1:]
        if isinstance(made, gast.Lambda) and len(made.args.args) == 1:
            word = made.args.args[0].id
    elif isinstance(over, gast.GeneratorExp) and len(over.generators) == 1 and not over.generators[0].ifs and \
            isinstance(over.generators[0].target, gast.Name) and not any(
                isinstance(n, gast.NamedExpr) for n in gast.walk(over)):
        (generator,) = over.generators
        parameter = gast.Name(generator.target.id, gast.Param(), None, None)
        made = at(gast.Lambda(gast.arguments([at(parameter)], [], None, [], [], None, []), over.elt))
        sources, word = [generator.iter], generator.target.id
    else:
        return node
    item, function, row = (f"{n}.{node.lineno}.{node.col_offset}" for n in (word, "function", "zip"))
    reader.environment.frame.env.update({function: dispatch.evaluate(reader, made), row: Const(zip)})
    source = sources[0] if len(sources) == 1 else at(gast.Call(name(row, gast.Load), sources, []))
    given = name(item, gast.Load) if len(sources) == 1 else at(gast.Starred(name(item, gast.Load), gast.Load()))
    first = at(gast.Assign([target], at(gast.Call(name(function, gast.Load), [given], [])), None))
    new_target = name(item, gast.Store)
    if numbered:
        source = at(gast.Call(node.iter.func, [source, *node.iter.args[1:]], node.iter.keywords))
        new_target = at(gast.Tuple([node.target.elts[0], new_target], gast.Store()))
    new = gast.copy_location(gast.For(new_target, source, [first, *node.body], node.orelse, None), node)
    new.exits, new.live = getattr(node, "exits", None), getattr(node, "live", None)
    return new


def calls_function(reader: Reader, node, function):
    """Whether an expression calls a Python builtin by its name."""
    if not isinstance(node, gast.Call) or not isinstance(node.func, gast.Name) or node.func.id != function.__name__:
        return False
    found = dispatch.evaluate(reader, node.func)
    return isinstance(found, Const) and found.value is function


def must_be_unwritten(reader: Reader, reads: tuple, node: gast.AST | None) -> None:
    """Refuse an iterator if an array or a container that Python reads later has been written since."""
    for frame, since, held in reads:
        if frame is None and any(not held.isdisjoint(changed) for changed in reader.memory.written[since:]):
            fail(reader, LanguageError, "an iterator is gone through after what its elements are made of has changed",
                 node, "Make a list of it where it stands: list(...).")


def iterator(reader: Reader, items: list, *sources: Any, late: Any = None) -> Any:
    """An iterator over these items.

    The reader computes its elements now, Python later: so `sources` may not change while a name holds the iterator,
    and the names that the function or generator `late` reads must keep their values.
    """
    reads, held = names_read(reader, late)
    lists = [*sources, *(v for _, _, v in reads)]
    sources = (*sources, *held)
    sources = (*sources, *(v for _, _, v in reads))
    reads += alias_names(reader, sources)
    reads = tuple((f, n, v) for f, n, v in reads if not isinstance(v, Struct))
    reads += tuple(r for s in lists for r in pending_reads(reader, s))
    if late is not None:            # elements that are only passed on may change before they are used
        reads += storages_read_later(reader, sources)
    return record_lists_read(reader, Struct("iterator", items, (), (tuple(sources_of(sources)), reads, False)), lists)


def pending_reads(reader: Reader, value: Any) -> tuple:
    """What an iterator reads later, if another iterator is made from it."""
    if isinstance(value, Struct):
        return value.cls[1] if value.kind == "iterator" else ()
    return reader.containers.late.get(getattr(value, "mark", value), ()) if isinstance(value, MAY_SHOW) else ()


def names_read(reader: Reader, late: Any) -> tuple:
    """([(frame, name, value)] that a function or an expression reads by name, [values inside other callables])."""
    reads, held, later = [], [], [late]
    for late in later:
        frame, tree = (late.frame, late.node) if isinstance(late, FunctionValue) else (reader.environment.frame, late)
        if isinstance(tree, gast.AST):
            new = [(frame, n, frame.env[n]) for n in dict.fromkeys(loaded(tree)) if n in frame.env]
            reads += new
            later += [v for _, _, v in new if isinstance(v, FunctionValue) and v not in later]
        else:
            held += held_by(late)
    return reads, held


def lists_in(reader: Reader, value: Any) -> dict:
    """The lists of unknown length that Python reads when it iterates over a value.

    {mark: whether pass k reads element k}
    """
    own = dict.fromkeys((c.mark for c in getattr(value, "columns", [value])), True) if isinstance(
        value, (Grown, Rows)) else {}
    return {**own, **reader.containers.shown_lists.get(value, {})} if isinstance(value, MAY_SHOW) else {}


def record_lists_read(reader: Reader, value: Any, read: list, in_order: bool = False) -> Any:
    """Record which lists an iterator over these values will read; return the iterator."""
    found: dict[Any, bool] = {}
    for v in read:
        for mark, so_far in lists_in(reader, v).items():
            found[mark] = found.get(mark, in_order) and so_far
    if found and isinstance(value, MAY_SHOW):
        reader.containers.shown_lists[value] = found
    return value


def marks_of_lists_read(reader: Reader, value: Any) -> Collection[Any]:
    """The marks of the lists that an iterator, or the iterators in a container, will read."""
    if isinstance(value, Struct):
        own = reader.containers.shown_lists.get(value, {}) if value.keys != SPENT else {}
        return {*own, *(mark for item in value.items for mark in marks_of_lists_read(reader, item))}
    return reader.containers.shown_lists.get(value, {}) if isinstance(value, MAY_SHOW) else {}


def storages_read_later(reader: Reader, values):
    """The arrays and containers that must not be written from now on: those that the values are, alias or hold.

    Captured objects that the function writes are included, since computing an element may read them.
    """
    found: set = set()
    values, seen = [*values, *(reader.outer.now.held if reader.outer.places else ())], set()
    for v in values:
        if id(v) in seen:
            continue
        seen.add(id(v))
        values += held_by(v)
        if is_array(v):
            found |= storages(reader, v)
        elif isinstance(v, (Struct, Grown)):
            found.add(v.mark)
            values += v.items if isinstance(v, Struct) else [v.value]
        elif isinstance(v, Walk):
            values += [*(v.static or ()), *(s for s, _ in v.sources), *(s for _, _, s in v.items)]
    return ((None, len(reader.memory.written), frozenset(found)),)


def alias_names(reader: Reader, values):
    """(frame, name, value) of all aliases of these arrays: a write gives each of them another value."""
    stores = frozenset().union(*map(partial(storages, reader), filter(is_array, values)))
    return (
        [
            (f, n, v)
            for f in reader.environment.stack
            for n, v in f.env.items()
            if is_array(v) and not stores.isdisjoint(storages(reader, v))
        ]
        if stores
        else []
    )


def as_it_was(reader: Reader, reads: tuple, node: gast.AST | None) -> None:
    """Refuse an iterator if a value that Python reads later has changed since it was made."""
    for frame, name, held in reads:
        if frame is not None and frame.env.get(name) is not held:
            name = name.strip()
            fail(reader, LanguageError, f"an iterator that reads {name} was made before {name} changed", node,
                 "Make a list of it where it stands.")
    must_be_unwritten(reader, reads, node)


def read_later(reader: Reader, value: Any, arrays: Iterable[Any], late: gast.AST | None = None) -> Any:
    """A value that Python iterates over later (enumerate, zip, map or a generator over arrays), with its reads.

    late: the function or generator that computes the elements; without one they are rows, which may change
    """
    reads, held = names_read(reader, late)
    arrays = [*arrays, *held, *(v for _, _, v in reads)]
    made = () if late is None else storages_read_later(reader, arrays)
    reader.containers.late[getattr(value, "mark", value)] = [
        *((f, n, v) for f, n, v in reads if not isinstance(v, Struct)), *alias_names(reader, arrays), *made,
        *(r for a in arrays for r in pending_reads(reader, a))]
    return value


def prepared_arguments(reader: Reader, function: Any, args: list) -> list:
    """The arguments of a function; some functions consume a whole iterator before anything else happens."""
    return list(map(partial(consumed_at_once, reader), args)) if isinstance(function, Const) and any(
        function.value is f for f in AT_ONCE) else args


def checked_iterator(reader: Reader, value: Any, writes: Any, node: gast.AST | None, by: Any = None) -> Any:
    """The value of an expression; if computing an iterator's elements wrote, it must be consumed at once.

    by: the function that was called; a user's function may write for other reasons
    """
    if by is not None and not isinstance(by, Const):
        return value
    if reader.memory.writes != writes and isinstance(value, Struct) and value.kind == "iterator":
        value.cls = (*value.cls[:2], True)
    elif reader.memory.writes != writes and isinstance(node, gast.GeneratorExp):
        fail(reader, LanguageError, "an iterator that changes something when it is gone through", node, WRITTEN_OUT)
    return value


def consumed_at_once(reader: Reader, value: Any) -> Any:
    """Mark an iterator without a name as consumed from beginning to end with no effects in between."""
    if isinstance(value, Struct) and value.kind == "iterator" and value.cls[2] and not is_named_iterator(reader, value):
        value.cls = (*value.cls[:2], False)
    return value


def sources_of(values):
    found, seen = list(values), set()
    for v in found:
        found += held_by(v)
        if isinstance(v, Struct) and id(v) not in seen:
            seen.add(id(v))
            found += v.items
    return (v for v in found if isinstance(v, Struct) and v.kind in ("list", "dict", "object", "record"))


def remaining_elements(reader: Reader, value: Any, node: gast.AST | None) -> list:
    """The remaining elements of an iterator, which exhausts it."""
    if value.keys == SPENT:
        fail(reader, LanguageError, "an iterator is read a second time, when nothing is left in it", node,
             "Make a list of it first.")
    iterator_moves(reader, value, node)
    items, value.items, value.keys = value.items, [], SPENT
    return items


def iterator_moves(reader: Reader, value: Any, node: gast.AST | None) -> None:
    """Check that an iterator may be advanced."""
    if value.cls[2]:
        fail(reader, LanguageError, "an iterator that changes something when it is gone through", node, WRITTEN_OUT)
    as_it_was(reader, value.cls[1], node)
    value.version += 1
    if is_named_iterator(reader, value):
        reader.memory.writes += 1


def is_named_iterator(reader: Reader, value: Any) -> bool:
    """Whether a name holds an iterator."""
    return isinstance(value, Struct) and value.kind == "iterator" and any(
        _holds(v, value) for f in [*reader.environment.stack, *reader.environment.enclosing] for v in f.env.values())


def _holds(value, wanted):
    return value is wanted or isinstance(value, Struct) and any(_holds(i, wanted) for i in value.items)
