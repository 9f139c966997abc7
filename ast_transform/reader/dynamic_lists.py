# SPDX-License-Identifier: Apache-2.0
"""Lists of dynamic length, which loops grow or shrink: list methods come in, operations on a `Grown` come out.

All elements of such a list are of one kind, as in an array.  It is a list in emitted code, and is converted to an array
for NumPy.  A list of known structure becomes dynamic when a loop that cannot be unrolled changes its length.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    out = []\\n    for v in x:\\n        out.append(v * v)\\n    return np.array(out)"
>>> print(show(form(text, np.ones(3))))
f(x):
    n_0 = shape_of(x, 0)
    out = no_elements()
    enter out_1 = out
    for i in range(n_0), v of x:
        t = v * v
        out_2 = push(out_1, t)
        next out_1 = out_2
    leave out_3 = out_1
    t_1 = as_array(out_3)
    return t_1
"""
import builtins
import copy
import functools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import gast
import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, USER, Apply, Const, Pack, Slice, Var, same_operand
from gradscribe.ast_transform.core.kinds import (
    Array,
    Length,
    Listed,
    Mismatch,
    certainly_differ,
    join,
    same_dtype,
    spelled_shape,
    unknown,
)
from gradscribe.ast_transform.core.operations import (
    as_array,
    as_list,
    no_elements,
    nonempty,
    pop,
    push,
    push_front,
    put,
)
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import places_of_variables, restore, snapshot
from gradscribe.ast_transform.reader.dispatch import evaluates, late
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.iterators import lists_in, marks_of_lists_read
from gradscribe.ast_transform.reader.list_of_tuples import array_of_rows, element_of_rows, grown_rows, is_row
from gradscribe.ast_transform.reader.memory import storages
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import loaded
from gradscribe.ast_transform.reader.values import (
    SPENT,
    Conflict,
    Frame,
    FunctionValue,
    Grown,
    Rows,
    Struct,
    held_by,
    holding,
)
from gradscribe.ast_transform.reader.views import is_array, may_be_cell
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError
from gradscribe.ast_transform.source.trees import name_at

KEPT = {len, list, tuple, type, isinstance, hasattr, getattr, callable, print, copy.copy, copy.deepcopy, np.fromiter,
        np.iterable, np.isscalar}               # functions that take the list itself, besides records


class Given(gast.expr):
    """A tree node whose value has already been read."""
    _fields = ()

    def __init__(self, value):
        super().__init__()
        self.value = value


def _is_number(value):
    return isinstance(value, (Const, Var)) and isinstance(fact_of(value), Array) and not fact_of(value).dims


@evaluates("Given")
def evaluate_given(reader: Reader, node):
    return node.value


@late
def element_of(reader: Reader, items: list, node: gast.AST | None) -> Any:
    """The fact that covers all elements; None if there are none."""
    fact, items = None, [settle(reader, item) for item in items]
    if items and is_row(items[0]):
        return element_of_rows(reader, items, node)
    for item in items:
        found = fact_of(item) if isinstance(item, (Var, Const)) else None
        if isinstance(item, Grown) and reader.context.for_array:      # a list of lists, which becomes an array
            found = item.value.fact
        if not isinstance(found, Array):
            fail(reader, LanguageError, f"a list of unknown length that holds {spelled_value(reader, item)}", node,
                 "Keep numbers or arrays of one shape in it, or tuples of them.")
        found = Array(found.dtype, found.dims)
        fact = found if fact is None else joined_fact(reader, fact, found, node)
    return fact


def joined_fact(reader: Reader, a, b, node):
    """The fact that covers two kinds of elements; refused where NumPy would not make one array of them."""
    try:
        fact = cast(Array, join(a, b, "?item"))
    except Mismatch as error:
        fail(reader, ShapeError, f"a list of unknown length that holds {error}", node,
             "Make all its elements of one kind, or keep two lists.")
    if any(certainly_differ(m, n) for m, n in zip(a.dims, b.dims)):
        fail(reader, ShapeError, f"a list of unknown length that holds arrays of shapes {spelled_shape(a.dims)} and "
             f"{spelled_shape(b.dims)}", node, "Keep arrays of one shape in it, or keep two lists.")
    dtypes = {np.dtype(a.dtype), np.dtype(b.dtype)}
    if len(dtypes) > 1 and not dtypes <= {np.dtype(int), np.dtype(float)}:
        fail(reader, ShapeError, f"a list of unknown length that holds {' and '.join(sorted(map(str, dtypes)))}", node,
             "Make all its elements of one dtype.")
    return Array(a.dtype if same_dtype(a.dtype, b.dtype) else np.result_type(*dtypes), fact.dims)


def grow(reader: Reader, struct: Any, element: Any, name: str) -> Any:
    """Turn a list of known structure into one of dynamic length, wherever it is held."""
    name = name.strip()
    if is_row(element):
        made = grown_rows(reader, struct, element, name)
    elif struct.items and not element.dims:
        items, dtype = list(map(partial(settle, reader), struct.items)), np.dtype(element.dtype)
        items = [Const(dtype.type(i.value).item()) if isinstance(i, Const) else i for i in items]
        array = dispatch.array_of(reader, Struct("list", items), None)
        array = array if same_dtype(array.fact.dtype, dtype) else dispatch.converted(reader, array, dtype, None)
        made = list_of(reader, array, name)
        made.mark, made.element = struct.mark, element
    else:
        made = grown_list(reader, element, name, struct.mark)
        for item in struct.items:
            append_to(reader, made, settle(reader, item))

    def visit(value):
        if isinstance(value, Struct):
            value.items[:] = [made if isinstance(i, Struct) and i.mark is struct.mark else visit(i)
                              for i in value.items]
        elif held_by(value):
            return holding(value, [visit(v) for v in held_by(value)])
        return made if isinstance(value, Struct) and value.mark is struct.mark else value

    for place in places_of_variables(reader):
        place.env.update({n: visit(v) for n, v in dict(place.env.items()).items()})


@late
def grown_list(reader: Reader, element, name, mark=None):
    """An empty list of dynamic length."""
    made = Grown(None, element, mark)
    fact = Listed(np.dtype(element.dtype), (Length(None, 0), *element.dims))
    if reader.unroll:
        lengths = [length_known(reader, d) for d in element.dims]
        if None in lengths:
            fail(reader, LanguageError, "a list of unknown length that holds arrays whose shape is known only in the "
                 "loop is not compiled yet", None, "Write into an array that is made before the loop.")
        shape = Pack("tuple", (Const(0), *lengths)) if lengths else Const(0)
        made.value = reader.build.apply(np.zeros, shape, hint=name, dtype=Const(fact.dtype))
    else:
        made.value = reader.build.let(name, Apply(no_elements, ()), fact, USER)
    return made


def length_known(reader: Reader, length):
    """A length of the elements, computed from arrays that exist before the loop."""
    n = length.normal()
    if n.symbol is None:
        return Const(n.offset)
    for place in places_of_variables(reader):
        for _, value in place.env.items():
            if isinstance(value, Var) and isinstance(value.fact, Array):
                for k, d in enumerate(value.fact.dims):
                    if d.same(length):
                        return reader.build.length(value, k)
    return None


def unrolled_or_loop(reader: Reader, node: gast.AST, finish: Callable) -> Any:
    """The value of a comprehension: `finish(elements)` if they are known, otherwise a list that a loop fills."""
    before, block = snapshot(reader), list(reader.build.block)
    try:
        return finish(
            dispatch.comprehension(reader, node.generators, lambda: dispatch.evaluate(reader, node.elt), node)
        )
    except (LanguageError, Demand) as error:
        if len(node.generators) > 1 and isinstance(node, gast.GeneratorExp):
            raise
        refused = error
    restore(before)
    reader.build.block[:] = block
    env, at, held = reader.environment.frame.env, functools.partial(gast.copy_location, old_node=node), "items "
    while held in env:
        held += " "
    name = at(gast.Name(held, gast.Load(), None, None))
    body = [at(gast.Expr(at(gast.Call(at(gast.Attribute(name, "append", gast.Load())), [node.elt], []))))]
    for g in reversed(node.generators):
        for test in reversed(g.ifs):
            body = [at(gast.If(test, body, []))]
        body = [at(gast.For(g.target, g.iter, body, [], None))]
    must, reader.loops.must_stay = reader.loops.must_stay, True
    try:
        body[0].iter = gast.copy_location(Given(dispatch.evaluate(reader, body[0].iter)), body[0].iter)
        env[held] = Struct("list", [])
        reader.containers.own_lists.add(env[held].mark)
        with comprehension_scope(reader, node.generators, node):
            dispatch.execute_for(reader, body[0])
        made = env[held]
    except (LanguageError, ShapeError):
        raise refused from None
    finally:
        reader.loops.must_stay = must
        env.pop(held, None)
    return made


def repeated_list(reader: Reader, held: Struct, times: Any, node: gast.AST) -> Any:
    """A list repeated as often as only running tells, read as [item for _ in range(times) for item in held]."""
    env, at = reader.environment.frame.env, functools.partial(gast.copy_location, old_node=node)
    name = functools.partial(name_at, node)
    env.update({"held  ": held, "times  ": times})
    passes = at(gast.Call(at(Given(Const(range))), [name("times  ", gast.Load)], []))
    loops = [gast.comprehension(name("_", gast.Store), passes, [], 0),
             gast.comprehension(name("item  ", gast.Store), name("held  ", gast.Load), [], 0)]
    try:
        return dispatch.evaluate(reader, at(gast.ListComp(name("item  ", gast.Load), loops)))
    finally:
        del env["held  "], env["times  "]


@contextmanager
def comprehension_scope(reader: Reader, generators: list, node: gast.AST | None) -> Iterator[Any]:
    """A scope for a comprehension's names; refused if an inner function reads an outer variable of the same name."""
    env, kept = reader.environment.frame.env, {}
    names = {n.id for g in generators for n in gast.walk(g.target) if isinstance(n, gast.Name)}
    for frame in places_of_variables(reader) if names & set(env) else ():
        for value in frame.env.values():
            hidden = names & set(env) & set(loaded(value.node)) if isinstance(value, FunctionValue) and \
                value.frame is reader.environment.frame else ()
            if hidden:
                fail(reader, LanguageError, f"a comprehension has its own {min(hidden)}, and a function reads another",
                     node, "Give the comprehension's variable another name.")
    for n in [n for n in names if n in env]:
        kept[n] = f"{n} "
        while kept[n] in env:
            kept[n] += " "
        env[kept[n]] = env.pop(n)
    try:
        yield
    finally:
        for n in names:
            env.pop(n, None)
        env.update({n: env.pop(hidden) for n, hidden in kept.items() if hidden in env})


def comprehended(reader: Reader, node: gast.AST, function: Any) -> Any:
    """sum(f(v) for v in x if ...): if the length is not known, a loop."""
    if not (isinstance(function, Const) and function.value in (builtins.sum, np.sum) and len(node.args) == 1 and
            not node.keywords and isinstance(node.args[0], (gast.ListComp, gast.GeneratorExp))):
        return None
    comp = node.args[0]
    if len(comp.generators) != 1:
        return None
    generator = comp.generators[0]
    of_all = function.value is np.sum and isinstance(comp, gast.ListComp)   # a generator goes to Python's sum
    before, held = snapshot(reader), list(reader.build.block)
    try:
        items = dispatch.comprehension(reader, comp.generators, lambda: dispatch.evaluate(reader, comp.elt), node)
    except LanguageError:
        restore(before)
        reader.build.block[:] = held
    else:
        items = [settle(reader, item) for item in items]
        if of_all and not all(map(_is_number, items)):
            return dispatch.rule_call(reader, np.sum, [Struct("list", items)], {}, node)
        return dispatch.python_sum(reader, items, node)
    total, env = "total ", reader.environment.frame.env
    while total in env:
        total += " "
    add = gast.copy_location(gast.Assign([name_at(node, total, gast.Store)], gast.copy_location(
        gast.BinOp(name_at(node, total), gast.Add(), comp.elt), node), None), node)
    body = [add]
    for test in generator.ifs:
        body = [gast.copy_location(gast.If(test, body, []), node)]
    over = gast.copy_location(Given(dispatch.evaluate(reader, generator.iter)), generator.iter)
    env[total] = Const(0)
    try:
        with comprehension_scope(reader, comp.generators, node):
            dispatch.execute_for(reader, gast.copy_location(gast.For(generator.target, over, body, [], None), node))
    except LanguageError:
        if not of_all:
            raise
        restore(before)
        reader.build.block[:] = held
        return None                         # treated as any function of a list
    found = settle(reader, env.pop(total))
    return dispatch.rule_call(reader, np.sum, [found], {}, node) if of_all and not _is_number(found) else found


@late
def append_to(reader: Reader, holder, value, node=None, front=False):
    fact, before = holder.value.fact, holder.value
    if reader.unroll:
        name, one = holder.value.hint, reader.build.item(value, Const(None)) if fact_of(value).dims else \
            reader.build.apply(np.array, Pack("list", (value,)), hint="t")
        both = [one, holder.value] if front else [holder.value, one]
        holder.value = dispatch.rule_call(reader, np.concatenate, [Struct("tuple", both)], {}, node)
        holder.value.hint, holder.value.kind = name, USER
    else:
        value = as_operand(reader, value)
        new = Listed(fact.dtype, (fact.dims[0].plus(1), *fact.dims[1:]))
        holder.value = reader.build.let(before.hint, Apply(push_front if front else push, (before, value)), new,
                                        USER)
    note_shared_element(reader, holder, before, value)


def note_shared_element(reader: Reader, holder, before, value):
    """Record that a list also refers to the array that was put into it."""
    shown = storages(reader, value) if is_array(value) or may_be_cell(reader, value) else frozenset()
    reader.lists.put_in |= shown
    reader.memory.tokens[holder.value] = storages(reader, before) | shown | {holder.value}
    holder.version += 1


@late
def grown_method(reader: Reader, holder: Any, name: str, args: list, words: dict[str, Any],
                 node: gast.AST | None) -> Any:
    refuse_stale_list(reader, holder, node)
    if name != "copy":
        about_to_change(reader, holder, node)
    reader.memory.writes += holder.mark not in reader.containers.own_lists
    reader.memory.written.append({holder.mark})
    front = name == "insert" and len(args) == 2 and isinstance(args[0], Const) and args[0].value == 0
    if (name == "append" and len(args) == 1 or front) and not words:
        item = args[-1]
        if isinstance(item, Grown) and reader.context.for_array:
            item = array_of_grown(reader, item)
        same_kind(reader, holder, element_of(reader, [item], node), node)
        append_to(reader, holder, settle(reader, item), node, front)
        return Const(None)
    if name == "extend" and len(args) == 1 and not words:
        for item in dispatch.elements_of(reader, args[0], node):
            grown_method(reader, holder, "append", [item], {}, node)
        return Const(None)
    if name == "pop" and (not args or isinstance(args[0], Const) and args[0].value == -1) and not words:
        return pop_from(reader, holder)
    if name == "pop" and isinstance(args[0], Const) and args[0].value == 0 and len(args) == 1 and not words:
        item = grown_item(reader, holder, Const(0), node)
        keep_slice(reader, holder, Const(slice(1, None)), node)
        return item
    if name == "reverse" and not args and not words:
        return keep_slice(reader, holder, Const(slice(None, None, -1)), node)
    if name == "copy" and not args:
        return copied_list(reader, holder)
    fail(reader, LanguageError, f"the method {name} of a list whose length is known only when running", node,
         "append, insert(0, v), extend, reverse, pop() and pop(0) are understood.")


def same_kind(reader: Reader, holder, element, node):
    fact = joined_fact(reader, holder.element, element, node)
    if np.dtype(fact.dtype) != holder.value.fact.dtype:
        fail(reader, ShapeError, f"a list of unknown length that holds {holder.value.fact.dtype} and "
             f"{np.dtype(element.dtype)}", node, "Make all its elements of one dtype.")
    holder.element = fact


@late
def pop_from(reader: Reader, holder):
    before, fact = holder.value, holder.value.fact
    shorter = (fact.dims[0].plus(-1), *fact.dims[1:])
    if reader.unroll:
        value = reader.build.item(before, Const(-1))
        holder.value = reader.build.item(before, Const(slice(None, -1)), before.hint)
    else:
        holder.value, value = reader.build.several([before.hint, "item"], Apply(pop, (before,)),
                                                   [Listed(fact.dtype, shorter), holder.element], USER)
        reader.memory.tokens[holder.value] = storages(reader, before) | {holder.value}
    holder.version += 1
    return taken_from(reader, before, value)


def taken_from(reader: Reader, items, value):
    """An element of a list, which may share memory with an array that was put into the list."""
    shown = storages(reader, items)
    if isinstance(value, Var) and (value.fact.dims or not shown.isdisjoint(reader.lists.put_in)):
        reader.memory.tokens[value] = shown | {value}
        if not fact_of(value).dims:
            reader.views.cells.add(value)
    return value


def keep_slice(reader: Reader, holder, index, node):
    """Replace a list's contents by a slice of them."""
    part = grown_item(reader, holder, index, node)
    holder.value, holder.version = part.value, holder.version + 1
    return Const(None)


@late
def copied_list(reader: Reader, holder: Any) -> Any:
    value = holder.value if reader.unroll else reader.build.let(holder.value.hint, Apply(as_list, (holder.value,)),
                                                                holder.value.fact, USER)
    return Grown(value, holder.element)


def list_of(reader: Reader, array: Any, name: str | None = None) -> Any:
    """list(array): a list of its rows."""
    fact = array.fact
    element = Array(np.dtype(fact.dtype), fact.dims[1:])
    if reader.unroll:
        return Grown(array, element) if fact.rank == 1 else None
    value = reader.build.let(name or array.hint, Apply(as_list, (array,)), Listed(np.dtype(fact.dtype), fact.dims),
                             USER if name else TEMPORARY)
    if fact.rank > 1:
        reader.memory.tokens[value] = storages(reader, array) | {value}
    return Grown(value, element)


@contextmanager
def while_iterated(reader: Reader, value: Any, walk: Any) -> Iterator[Any]:
    """A context for a loop: the lists that it iterates over are recorded while its body is read."""
    walk.lists = [[mark, None, in_order] for mark, in_order in lists_in(reader, value).items()]
    reader.lists.iterated += walk.lists
    yield
    del reader.lists.iterated[len(reader.lists.iterated) - len(walk.lists):]


@late
def about_to_change(reader: Reader, holder, node, place=None):
    """Refuse to change a list that a loop iterates over, except at the element that was just read."""
    for mark, here, in_order in reader.lists.iterated:
        just_read = in_order and here is not None and same_operand(place, here)
        if mark is holder.mark and not just_read:
            fail(reader, LanguageError, "a list changes while a loop goes through it", node,
                 "Go through a copy: list(items).")
    for frame in [*reader.environment.stack, *reader.environment.enclosing] if reader.containers.shown_lists else ():
        for name, value in frame.env.items():
            if holder.mark in marks_of_lists_read(reader, value):
                fail(reader, LanguageError, f"a list changes before {name.strip()} is gone through, which reads it",
                     node, "Make a list of the iterator where it stands: list(...).")


def as_generator(reader: Reader, made: Any) -> Any:
    """Mark a list of unknown length that represents a generator: it may be iterated over only once."""
    if isinstance(made, Grown):
        made.once = len(reader.loops.reading)
    return made


def exhaust_generator(reader: Reader, holder: Any, node: gast.AST | None) -> None:
    """Refuse a second iteration over a generator, and mark it as exhausted, even if a loop may leave it early."""
    if holder.once is None:
        return
    if holder.once is SPENT or holder.once < len(reader.loops.reading):
        fail(reader, LanguageError, "an iterator is read a second time, when nothing is left in it", node,
             "Make a list of it first.")
    holder.once = SPENT


def refuse_stale_list(reader: Reader, holder: Any, node: gast.AST | None) -> None:
    """Refuse a list if one of its arrays may have changed since it was put in."""
    if isinstance(holder.value, Conflict):
        dispatch.unroll_for_conflict(reader, holder.value, node)
        fail(reader, LanguageError, f"a list holds {holder.value.reason}", node,
             "Put a copy into the list: items.append(x.copy()).")


@late
def grown_item(reader: Reader, holder: Any, index: Any, node: gast.AST | None) -> Any:
    refuse_stale_list(reader, holder, node)
    if isinstance(index, Slice) or isinstance(index, Const) and isinstance(index.value, slice):
        whole = holder.value.fact
        part = type(whole)(whole.dtype, (unknown(f"?{holder.value.hint}"), *whole.dims[1:]))
        part = reader.build.let(holder.value.hint, Apply(operator.getitem, (holder.value, index)), part, USER)
        reader.memory.tokens[part] = storages(reader, holder.value) | {part}
        return Grown(part, holder.element)
    fact = fact_of(index) if isinstance(index, (Var, Const)) else None
    if reader.unroll or not (isinstance(fact, Array) and not fact.dims and fact.kind in "iu"):
        return taken_from(reader, holder.value, reader.build.item(array_of_grown(reader, holder), index))
    item = reader.build.let("item", Apply(operator.getitem, (holder.value, index)), holder.element)
    return taken_from(reader, holder.value, item)


@late
def array_of_grown(reader: Reader, holder: Any) -> Any:
    """np.array(list)"""
    refuse_stale_list(reader, holder, None)
    fact = holder.value.fact
    if reader.unroll:
        return holder.value
    made = reader.build.made.get(holder.value)        # for a copy of a list, the list
    items = made.args[0] if isinstance(made, Apply) and made.function is as_list else holder.value
    return reader.build.let("t", Apply(as_array, (items,)), Array(fact.dtype, fact.dims))


def elements_of_grown(reader: Reader, holder: Any) -> Any:
    """The elements as an array that shares their memory, for a Python function that passes the elements on."""
    array = array_of_grown(reader, holder)
    reader.memory.tokens[array] = storages(reader, holder.value) | {array}
    return array


def grown_result(reader: Reader, holder: Any) -> Any:
    """The list as a result: emitted code returns it; compiled code returns an array, from which a list is made."""
    refuse_stale_list(reader, holder, None)
    return Pack("grown", (holder.value,), (), holder.element) if reader.unroll else holder.value


def no_open_list(reader: Reader, result: Any, label: str) -> None:
    """Refuse a list of unknown length in a result whose number of values a transformation must know."""
    if isinstance(result, Pack) and result.kind != "grown":
        for item in result.items:
            no_open_list(reader, item, label)
    elif isinstance(result, Pack) or isinstance(result, Var) and isinstance(result.fact, Listed):
        raise LanguageError(f"{label} of a function that returns a list whose length is known only when running",
                            reader.build.origin or reader.environment.returned_at, "Return an array: np.array(items).")


def stacked(reader: Reader, function: Callable, holder: Any, args: list, words: dict[str, Any],
            node: gast.AST | None) -> Any:
    """np.stack(list) and np.concatenate(list), along the first axis."""
    if args or set(words) - {"axis"} or "axis" in words and known_value(reader, words["axis"], "the axis", node) != 0:
        fail(reader, LanguageError, f"np.{function.__name__} of a list whose length is known only when running takes "
             "no more arguments", node, "Make an array of it first: np.array(items).")
    array = array_of_rows(reader, holder, node) if isinstance(holder, Rows) else array_of_grown(reader, holder)
    rank = fact_of(array).rank - 1
    if function is np.stack or function is np.vstack and rank == 1:
        return array
    if function in (np.concatenate, np.hstack) and rank == 1:
        return dispatch.rule_call(reader, np.reshape, [array, Const(-1)], {}, node)
    fail(reader, LanguageError, f"np.{function.__name__} of a list whose length is known only when running", node,
         "Make an array of it first: np.array(items).")


def uneven(reader: Reader, before: dict, error: Any, reading: Any, own: set) -> bool:
    """Give lists that a branch in a loop leaves in two lengths unknown length from before the loop; whether any."""
    found = False
    for mark, (holder, _, items, _, places) in before.items():
        if mark in reader.lists.uneven and isinstance(holder, Struct) and can_grow(reader, holder, places, own):
            held = reader.lists.uneven.pop(mark)
            if held or items:
                reading.items.grown.append((places[0], element_of(reader, [*items, *held], None)))
                found = True
    return found


def grow_uneven(reader: Reader, uneven: dict) -> bool:
    """Give lists that a branch leaves in two lengths unknown length from before the branch; return whether any."""
    found = False
    for mark, (holder, _, items, _, places) in dispatch.containers_held(reader).items():
        if mark in uneven and isinstance(holder, Struct) and is_own_list(reader, holder) and (items or uneven[mark]):
            grow(reader, holder, element_of(reader, [*items, *uneven[mark]], None), places[0][1])
            found = True
    return found


def is_own_list(reader: Reader, holder: Any) -> bool:
    return (
        holder.kind == "list"
        and holder.cls is None
        and holder.whole is None
        and holder not in reader.containers.outside
    )


def may_grow(value: Any) -> bool:
    """Whether a value is a list that += extends in place."""
    return isinstance(value, (Grown, Rows)) or isinstance(value, Struct) and value.kind == "list"


def can_grow(reader: Reader, holder: Any, places: list, own: set) -> bool:
    return reader.loops.must_stay and is_own_list(reader, holder) and not any(p[:2] in own for p in places) and \
        isinstance(places[0][0], Frame)


def length_of_grown(reader: Reader, holder: Any) -> Any:
    refuse_stale_list(reader, holder, None)
    return reader.build.length(holder.value, 0)


def has_elements(reader: Reader, holder: Any) -> Any:
    refuse_stale_list(reader, holder, None)
    if reader.unroll:
        return reader.build.apply(operator.gt, length_of_grown(reader, holder), Const(0))
    return reader.build.let("t", Apply(nonempty, (holder.value,)), Array(bool))


def set_grown(reader: Reader, holder: Any, index: Any, value: Any, node: gast.AST | None) -> None:
    """items[index] = value"""
    refuse_stale_list(reader, holder, node)
    about_to_change(reader, holder, node, index)
    reader.memory.writes += holder.mark not in reader.containers.own_lists
    reader.memory.written.append({holder.mark})
    fact = fact_of(index) if isinstance(index, (Var, Const)) and not (
        isinstance(index, Const) and isinstance(index.value, slice)) else None
    if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
        fail(reader, LanguageError, "a part of a list whose length is known only when running is replaced", node,
             "Replace its elements one by one.")
    same_kind(reader, holder, element_of(reader, [value], node), node)
    before, value = holder.value, as_operand(reader, settle(reader, value))
    holder.value = reader.build.let(before.hint, Apply(put, (before, index, value)), before.fact, USER)
    note_shared_element(reader, holder, before, value)


def entered_list(reader: Reader, holder: Any, fact: Any, name: str) -> Any:
    """A variable for the list at the beginning of a pass."""
    kind = Listed if isinstance(fact, Listed) else Array
    var = Var(name, kind(fact.dtype, (unknown(f"?{name}"), *fact.dims[1:])), USER)
    reader.lists.carried.add(var)
    return var
