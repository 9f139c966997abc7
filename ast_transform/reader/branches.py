# SPDX-License-Identifier: Apache-2.0
"""Branches: a test and two arms come in; an `If` comes out, with a join (phi) for each value that an arm sets.

This file also decides how a `for` loop iterates over a value (`walk_over_value`).

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, n):\\n    while x < n:\\n        x = x * 2 if x > 1 else x + 1\\n    return x"
>>> print(show(form(text, 1.0, 5.0)))
f(x, n):
    enter x_1 = x
    while:
        t = x_1 < n
    test t:
        t_1 = x_1 > 1
        if t_1:
            t_2 = x_1 * 2
        else:
            t_3 = x_1 + 1
        join value = t_2 | t_3
        next x_1 = value
    leave x_2 = x_1
    return x_2
"""
import copy
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import gast
import numpy as np

from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    UNDEFINED,
    USER,
    Apply,
    Const,
    If,
    Join,
    Var,
    is_application,
)
from gradscribe.ast_transform.core.kinds import (
    Array,
    Length,
    Mismatch,
    Sequence,
    Stack,
    Stream,
    join,
    one_dtype,
    told_apart,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.operations import both, either, run_length, shape_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.carries import _undefined, as_floats, has_alias
from gradscribe.ast_transform.reader.choices import chosen, left_by, same_path
from gradscribe.ast_transform.reader.container_aliases import join_path_structs, join_paths, restore, snapshot
from gradscribe.ast_transform.reader.dispatch import executes, late
from gradscribe.ast_transform.reader.dynamic_lists import (
    exhaust_generator,
    grow_uneven,
    grown_item,
    has_elements,
    refuse_stale_list,
)
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.length_tests import by_lengths
from gradscribe.ast_transform.reader.list_of_tuples import row_from
from gradscribe.ast_transform.reader.memory import NotSetYet, record_cell, storages
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import dunder, guard_object
from gradscribe.ast_transform.reader.operands import as_struct, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import (
    Conflict,
    Grown,
    Part,
    RangeValue,
    Rows,
    Struct,
    Walk,
    alike,
    held_by,
    holding,
    with_keys,
)
from gradscribe.ast_transform.reader.views import base_path, is_array, same_view_again
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError, TransformError

RAISED = object()


class Raises(Exception):
    """A call that certainly raises; `block` holds the statement that does."""

    def __init__(self, block):
        super().__init__()
        self.block = block


UNROLLED = 64                       # a loop that cannot stay a loop is unrolled up to this many passes
FEW = 33                            # below this, a version may be specialised to a length, or a loop unrolled


class Returned:
    def __init__(self, value):
        self.value = value


@late
def truth_value(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    """The truth of a value: a constant if it is known, otherwise an operand."""
    value = settle(reader, value)
    if isinstance(value, Const):
        guard_object(reader, value, bool)
        return Const(bool(value.value))
    if isinstance(value, (Grown, Rows)):
        return has_elements(reader, value if isinstance(value, Grown) else value.columns[0])
    method = dunder(reader, value, "__bool__") or dunder(reader, value, "__len__")
    if method is not None:
        return truth_value(reader, dispatch.call_known(reader, method, [value], {}, node), node)
    if isinstance(value, Struct):
        return Const(value.kind == "object" or bool(value.items))
    if isinstance(value, RangeValue):
        return truth_value(reader, dispatch.call_known(reader, len, [value], {}, node), node)
    if not isinstance(value, Var) or not isinstance(value.fact, Array):
        fail(
            reader,
            LanguageError,
            f"{spelled_value(reader, value)} is no truth value that is known when transforming",
            node,
            "Compare it with something.",
        )
    if any(not d.is_unit for d in value.fact.dims):
        fail(reader,
            ShapeError, "the truth of an array of several elements is ambiguous", node, "Use np.any or np.all."
        )
    if value.fact.kind == "b":
        return value
    return reader.build.apply(operator.ne, value, Const(0))


@late
def negated(reader: Reader, test: Any) -> Any:
    if isinstance(test, Const):
        return Const(not test.value)
    made = reader.build.definition(test)
    if is_application(made, operator.not_):
        return made.args[0]
    return reader.build.apply(operator.not_, test, fact=Array(bool))


def logical_and(reader: Reader, value: Any, other: Callable, node: gast.AST | None) -> Any:
    """value and other(), where other is evaluated only if value is true."""
    return short_circuit(reader, value, other, node, True)


def logical_or(reader: Reader, value: Any, other: Callable, node: gast.AST | None) -> Any:
    return short_circuit(reader, value, other, node, False)


def short_circuit(reader: Reader, value: Any, other: Callable, node: gast.AST | None, conjunction: bool) -> Any:
    test = truth_value(reader, value, node)
    if isinstance(test, Const):
        return other() if test.value == conjunction else value
    before, writes = snapshot(reader), (reader.memory.writes, reader.environment.bound_names)
    outer, reader.build.block = reader.build.block, []
    try:
        right = settle(reader, other())
    finally:
        steps, reader.build.block = reader.build.block, outer
    if (reader.memory.writes, reader.environment.bound_names) != writes:   # read again as an arm
        restore(before)
        then, orelse = (other, lambda: value) if conjunction else (lambda: value, other)
        return choose_by_branch(reader, test, then, orelse, node)
    right_is_test = isinstance(right, (Var, Const)) and getattr(fact_of(right), "kind", "") == "b"
    left_is_test = isinstance(value, Var) and value.fact.kind == "b"
    if right_is_test and left_is_test and all(_harmless(s) for s in steps):
        reader.build.block += steps
        if isinstance(right, Const):
            reader.kinds.of_either_kind.add(test)
            return test if right.value == conjunction else right
        return reader.build.apply(both if conjunction else either, test, right, fact=Array(bool))
    if not isinstance(right, (Var, Const)):
        fail(reader, LanguageError, f"{spelled_value(reader, right)} is not a truth value or a number", node,
             "Write it with if and else.")
    return joined_value(reader, test, steps if conjunction else [], right if conjunction else value,
                        [] if conjunction else steps, value if conjunction else right, node)


def choose(reader: Reader, test: Any, then: Callable, orelse: Callable, node: gast.AST | None) -> Any:
    """The value of `then() if test else orelse()`."""
    return by_lengths(reader, test, partial(chosen_value, reader, test, then, orelse, node), (then, orelse))


def chosen_value(reader: Reader, test: Any, then: Callable, orelse: Callable, node: gast.AST | None) -> Any:
    before, writes = snapshot(reader), (reader.memory.writes, reader.environment.bound_names)
    outer, arms, later = reader.build.block, [], None
    for evaluate in (then, orelse):
        reader.build.block = []
        try:
            value = settle(reader, evaluate())
            arms.append((reader.build.block, value))
        except NotSetYet as raised:         # as in `read_arm`
            later = raised
            restore(before)
        finally:
            reader.build.block = outer
        if (reader.memory.writes, reader.environment.bound_names) != writes:
            restore(before)
            return choose_by_branch(reader, test, then, orelse, node)
    if later is not None:
        later.loop.unset.left_out = later
        if not arms:
            raise later
        reader.build.block += arms[0][0]
        return arms[0][1]
    (a, x), (b, y) = arms
    return joined_value(reader, test, a, x, b, y, node)


def choose_by_branch(reader: Reader, test, then, orelse, node):
    """The same, read as a statement: an arm writes into arrays or containers, or sets names."""
    first, second = (lambda arm=arm: Returned(settle(reader, arm())) for arm in (then, orelse))
    return read_branch(reader, test, first, second, node, "value").value


def joined_value(reader: Reader, test, then, x, orelse, y, node):
    branch = If(test, then, orelse, [], reader.build.origin)
    reader.build.block.append(branch)
    value = join_paths(reader, x, y, "value", branch, TEMPORARY)
    reader.choices.ended.append(branch)
    if isinstance(value, Conflict):
        fail(reader, ShapeError, f"the result is {value.reason}", node)
    return value


@executes("If")
def execute_if(reader: Reader, node):
    test = truth_value(reader, dispatch.evaluate(reader, node.test), node.test)
    if isinstance(test, Const):
        return dispatch.read_block(reader, node.body if test.value else node.orelse)
    return read_branch(
        reader,
        test,
        lambda: dispatch.read_block(reader, node.body),
        lambda: dispatch.read_block(reader, node.orelse),
        node,
    )


def read_branch(reader: Reader, test: Any, first: Callable, second: Callable, node: gast.AST | None = None,
                hint: Any = None) -> Any:
    """A branch whose arms are read by calling `first` and `second`.

    If the arms leave a list in two lengths, the branch is read again with a list of unknown length, where possible.
    """
    reader.lists.uneven, noted = {}, reader.lists.uneven
    held, before = list(reader.build.block), snapshot(reader)
    outcome = by_lengths(reader, test, partial(branch_of, reader, test, before, first, second, node, hint),
                         (first, second))
    uneven, reader.lists.uneven = reader.lists.uneven, {**noted, **reader.lists.uneven}
    if uneven:
        after, made = snapshot(reader), list(reader.build.block)
        restore(before)
        reader.build.block[:] = held
        try:
            if grow_uneven(reader, uneven):
                outcome = branch_of(reader, test, snapshot(reader), first, second, node, hint)
                for mark in uneven:
                    reader.lists.uneven.pop(mark, None)
                return outcome
        except TransformError:
            pass                    # keep the first reading: reading the list is an error
        restore(after)
        reader.build.block[:] = made
    return outcome


def branch_of(reader: Reader, test, before, first, second, node, hint):
    origin = reader.build.origin
    (then, outcome_1, state_1), (orelse, outcome_2, state_2) = (
        read_arm(reader, before, arm) for arm in (first, second)
    )
    branch = If(test, then, orelse, [], origin)
    reader.build.block.append(branch)
    if outcome_1 is RAISED and outcome_2 is RAISED:
        return RAISED
    memo: dict[Any, Any] = {}
    merge_arms(reader, before, (state_1, outcome_1), (state_2, outcome_2), branch, memo)
    result = join_results(reader, outcome_1, outcome_2, branch, node, memo, hint or result_name(reader))
    left_by(reader, branch)
    reader.choices.ended.append(branch)
    return result


def join_results(reader: Reader, outcome_1, outcome_2, branch, node, memo, hint):
    """What a branch returns; None if execution continues after it."""
    returned = [o for o in (outcome_1, outcome_2) if isinstance(o, Returned)]
    if len(returned) == 2:
        value = join_paths(reader, outcome_1.value, outcome_2.value, hint, branch, USER, memo)
        if isinstance(value, Conflict):
            fail(reader,
                ShapeError, f"the function returns {value.reason}", node, "Return one kind of value on every path."
            )
        return Returned(value)
    if returned:
        raised = RAISED in (outcome_1, outcome_2)
        if not raised:
            missing = Returned(Const(None))
            first = outcome_1 if outcome_1 in returned else missing
            second = outcome_2 if outcome_2 in returned else missing
            value = join_paths(reader, first.value, second.value, hint, branch, USER, memo)
            if isinstance(value, Const) and value.value is None:
                return Returned(value)
            fail(reader, ShapeError, f"the function returns {getattr(value, 'reason', 'nothing on one path')}", node,
                 "Return a value on every path.")
        value = returned[0].value
        sides: tuple[Any, Any] = (value, UNDEFINED) if returned[0] is outcome_1 else (UNDEFINED, value)
        return Returned(join_paths(reader, *sides, hint, branch, USER, memo))
    return None


@late
def one_fact(reader: Reader, a, b, label):
    """The fact of a value that may be either of two."""
    fact = join(a, b, label)
    reader.kinds.dtypes_by_path |= not one_dtype(a, b)
    return fact


def result_name(reader: Reader):
    return "result"


def read_arm(reader: Reader, before, read):
    outer, reader.build.block = reader.build.block, []
    restore(before)
    before[:] = snapshot(reader)
    try:
        try:
            outcome = read()
        except Raises as raised:
            outcome = raised_by_call(reader, raised)
        except NotSetYet as later:          # not reached in the first pass: read once later passes are known
            later.loop.unset.left_out, outcome = later, RAISED
        return reader.build.block, outcome, snapshot(reader)
    finally:
        reader.build.block = outer


def raised_by_call(reader: Reader, raised: Any, node: gast.AST | None = None) -> Any:
    if raised.block is not reader.build.block:
        fail(reader, LanguageError, "this raises for certain, but not wherever it is read", node,
             "Call it in a statement of its own.")
    return RAISED


def merge_arms(reader: Reader, before, first, second, branch, memo):
    """Join the values that the two arms leave in each variable."""
    (state_1, outcome_1), (state_2, outcome_2) = first, second
    others = {id(frame): env for frame, env in state_2}
    for frame, env_1 in state_1:
        env_2 = others.get(id(frame), env_1)            # a frame of a function that only one arm called
        if outcome_1 is RAISED:
            env_1 = {}
        if outcome_2 is RAISED:
            env_2 = {}
        env = {}
        for name in dict.fromkeys([*env_1, *env_2]):
            a, b = env_1.get(name, UNDEFINED), env_2.get(name, UNDEFINED)
            if outcome_1 is RAISED:
                a = unchanged_value(before, frame, name, b)
            if outcome_2 is RAISED:
                b = unchanged_value(before, frame, name, a)
            env[name] = join_paths(reader, a, b, name, branch, USER, memo)
        frame.env.clear()
        frame.env.update(env)


def unchanged_value(before, frame, name, value):
    """A name's value in an arm that raises: those parts of the other arm's value that the branch did not change."""
    old = next((env.get(name, UNDEFINED) for f, env in before if f is frame), UNDEFINED)
    return _kept(old, value, {})


@late
def join_values(reader: Reader, a, b, hint, branch, kind, memo=None):
    """One value that represents both of two values after a branch."""
    memo = {} if memo is None else memo
    if a is b:
        return a
    if isinstance(a, Conflict) or isinstance(b, Conflict):
        return a if isinstance(a, Conflict) else b
    if isinstance(a, Part) or isinstance(b, Part):
        if isinstance(a, Part) and isinstance(b, Part) and a.parent is b.parent and a.key.value == b.key.value:
            return a
        a, b = read_at_end(reader, branch.then, a), read_at_end(reader, branch.orelse, b)
    if isinstance(a, Struct) or isinstance(b, Struct):
        return join_path_structs(reader, a, b, hint, branch, kind, memo)
    if isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and _equal(a.value, b.value):
        return a
    key = (id(a), id(b))
    if key in memo:
        return memo[key]
    fact = joined_kind(reader, a, b, hint)
    if isinstance(fact, Conflict):
        return fact
    joined = same_view(reader, a, b, hint, branch, kind, memo)
    if joined is None:
        joined = join_operands(reader, a, b, Var(hint.strip(), fact, kind), branch, memo)
    memo[key] = joined
    return joined


def joined_kind(reader: Reader, a, b, hint):
    """The common kind of two values from two paths; a Conflict if they have none."""
    unset = Conflict("set in one branch only", "Set it on every path.")
    first, second = _undefined(a), _undefined(b)

    def different():
        return Conflict(f"{spelled_value(reader, a)} in one branch and {spelled_value(reader, b)} in the other")
    if not (isinstance(a, (Var, Const)) and isinstance(b, (Var, Const))):
        return unset if first or second else different()
    try:
        fact = fact_of(b) if first else fact_of(a) if second else \
            one_fact(reader, fact_of(a), fact_of(b), f"?{hint}")
    except Mismatch as error:
        return unset if first or second else Conflict(str(error).replace("place", "branch"))
    if isinstance(fact, (Array, Sequence, Stack, Stream)):
        return fact
    return unset if first or second else different()


def join_operands(reader: Reader, a, b, var, branch, memo):
    """Add a phi: `var` is one operand or the other, depending on the path."""
    shown = [storages(reader, v) if isinstance(v, Var) else frozenset() for v in (a, b)]
    versions = is_array(a) and is_array(b) and shown[0] == shown[1]            # two versions of one storage
    reader.memory.tokens[var] = shown[0] if versions else shown[0] | shown[1] | {var}
    branch.joins.append(Join(var, as_floats(reader, a, var, branch.then), as_floats(reader, b, var, branch.orelse)))
    record_cell(reader, var, (a, b))
    chosen(reader, var, a, b, branch, var.kind, memo)
    if any(_undefined(v) or v in reader.choices.partly for v in (a, b)):
        reader.choices.partly.add(var)
    if all(isinstance(v, Const) or not has_alias(reader, v) for v in (a, b)):
        reader.memory.owned.add(var)
    return var


def read_at_end(reader: Reader, block, value):
    """Read a part of a container at the end of an arm."""
    outer, reader.build.block = reader.build.block, block
    try:
        return settle(reader, value)
    finally:
        reader.build.block = outer


def same_view(reader: Reader, a, b, hint, branch, kind, memo):
    """Join the same view of two versions of an array: it is that view of the joined array."""
    if not (isinstance(a, Var) and isinstance(b, Var)):
        return None
    (first, path_1), (second, path_2) = base_path(reader, a), base_path(reader, b)
    if not path_1 or not same_path(path_1, path_2):
        return None
    base = join_paths(reader, first, second, first.hint, branch, kind, memo)
    return same_view_again(reader, path_1, base) if isinstance(base, Var) else None


@late
def join_containers(reader: Reader, a, b, hint, branch, kind, memo):
    if isinstance(a, Struct) and isinstance(b, Struct) and (a.kind, told_apart(a.keys), a.cls, len(a.items)) == \
            (b.kind, told_apart(b.keys), b.cls, len(b.items)):
        key = (id(a), id(b))
        if key not in memo:
            whole = a.whole if a.whole is b.whole and a.version == b.version == 0 else None
            memo[key] = new = Struct(a.kind, [], a.keys, a.cls, whole)
            new.version = max(a.version, b.version)
            if whole is not None:
                new.items = list(a.items)
            else:
                new.items = [join_paths(reader, x, y, hint, branch, kind, memo) for x, y in zip(a.items, b.items)]
        return memo[key]
    if _undefined(a) or _undefined(b):
        held = b if _undefined(a) else a
        sides = [(UNDEFINED, i) if _undefined(a) else (i, UNDEFINED) for i in held.items]
        return Struct(
            held.kind, [join_paths(reader, x, y, hint, branch, kind, memo) for x, y in sides], held.keys, held.cls
        )
    first, second = with_keys(a, spelled_value(reader, a)), with_keys(b, spelled_value(reader, b))
    if isinstance(a, Struct) and isinstance(b, Struct) and a.kind == b.kind == "dict":
        return Conflict(f"{first} in one branch and {second} in the other",
                        "Give it the same keys on every path, in one order.")
    return Conflict(f"{first} in one branch and {second} in the other")


def are_numbers(value: Any) -> bool:
    """Whether a value is a tuple or list of numbers, such as a shape; some may be known only at run time."""
    return isinstance(value, Struct) and value.kind in ("tuple", "list") and value.cls is None and all(
        isinstance(i, Const) and isinstance(i.value, (int, float)) or
        isinstance(i, Var) and isinstance(i.fact, Array) and not i.fact.dims for i in value.items)


def same_numbers(reader: Reader, left: Any, right: Any, positive: bool, node: gast.AST | None) -> Any:
    """left == right, or left != right, for two sequences of numbers."""
    if left.kind != right.kind or len(left.items) != len(right.items):
        return Const(not positive)
    out = Const(True)
    for a, b in zip(left.items, right.items):
        out = logical_and(reader, out, lambda a=a, b=b: dispatch.compare(reader, gast.Eq(), a, b, node), node)
    return out if positive else negated(reader, truth_value(reader, out, node))


def walk_over_value(reader: Reader, value: Any, node: gast.AST | None) -> Walk:
    """How a for loop or a comprehension iterates over a value."""
    if isinstance(value, Walk):
        return value
    if isinstance(value, RangeValue):
        return range_walk(reader, value, node)
    value = settle(reader, value)
    if isinstance(value, Grown):
        refuse_stale_list(reader, value, node)
        exhaust_generator(reader, value, node)
        value = value.value
    if isinstance(value, Rows):
        walks = [dispatch.walk_over(reader, column, node) for column in value.columns]
        return Walk(None, walks[0].count, tuple(item for walk in walks for item in walk.items),
                    lambda index, items: row_from(reader, value, items))
    if isinstance(value, Struct):
        if value.kind == "dict":
            return Walk([Const(k) for k in value.keys])
        walk = Walk(list(value.items))
        if value.whole is not None and value.version == 0 and value.items and not reader.unroll:
            sequence_walk(reader, walk, value)
        return walk
    if isinstance(value, Const) and not isinstance(value.value, np.ndarray):
        if hasattr(value.value, "__next__"):
            fail(reader, LanguageError, "an iterator from outside the function: reading it here would change it", node,
                 "Make a list of it outside the function.")
        guard_object(reader, value, _elements)
        try:
            return Walk([lift(reader, v, "item") for v in value.value])
        except TypeError:
            fail(reader, LanguageError, f"{spelled_value(reader, value)} is not iterated over", node)
    if isinstance(value, Var) and isinstance(value.fact, Array):
        if not value.fact.dims:
            fail(reader, ShapeError, "a scalar is not iterated over", node)
        fact = Array(
            np.dtype(value.fact.dtype),
            value.fact.dims[1:],
            unknown("?int") if value.fact.rank == 1 and value.fact.kind in "iu" else None,
        )
        return Walk(None, reader.build.length(value, 0), (("row", fact, value),),
                    lambda index, items: items[0])
    fail(reader, LanguageError, f"{spelled_value(reader, value)} is not iterated over", node)


def sequence_walk(reader: Reader, walk, value):
    """Keep a loop over a container of the emitted code as a loop, if its elements are of one kind."""
    facts = [i.fact if isinstance(i, Part) else None for i in value.items]
    if any(f is None for f in facts):
        return
    try:
        fact = facts[0]
        for other in facts[1:]:
            fact = one_fact(reader, fact, other, "?item")
    except Mismatch:
        return
    source = value.whole
    walk.count, walk.items = Const(len(value.items)), (("item", fact, source),)
    walk.bind = lambda index, items: as_struct(reader, items[0]) if isinstance(items[0].fact, Sequence) else items[0]


def range_walk(reader: Reader, value, node):
    parts = [value.start, value.stop, value.step]
    start, stop, step = parts
    if isinstance(step, Const) and step.value == 1 and isinstance(start, Const) and start.value == 0:
        static = (
            [Const(k) for k in range(stop.value)] if isinstance(stop, Const) and stop.value <= UNROLLED else None
        )
        return Walk(static, stop, (), lambda index, items: index, True)
    static = None
    if all(isinstance(p, Const) for p in parts):
        values = range(*(p.value for p in parts))
        static = [Const(k) for k in values] if len(values) <= UNROLLED else None
    count = length_of_range(reader, value)
    source = Apply(range, tuple(parts))
    return Walk(static, count, (("k", Array(int, (), unknown("?int")), source),), lambda index, items: items[0])


def length_of_range(reader: Reader, value: Any) -> Any:
    parts = [value.start, value.stop, value.step]
    if all(isinstance(p, Const) for p in parts):
        return Const(len(range(*(p.value for p in parts))))
    return reader.build.apply(run_length, *parts, fact=Array(int, (), unknown("?count")))


def listed_walk(reader: Reader, walk: Any, node: gast.AST | None, fixed: bool = False) -> Walk:
    """A walk over an array of known length, element by element.

    fixed: the version may be specialised to the length, or the array is a captured one whose length cannot change
    """
    return Walk([walk.bind(Const(k), [reader.build.item(s, Const(k)) for _, _, s in walk.items])
                 for k in range(number_of_passes(reader, walk, node, fixed))])


def as_number(reader: Reader, value: Any) -> Any:
    """A small length as a constant, to which the version is then specialised; any other value unchanged."""
    length: Any = fact_of(value).length if isinstance(value, Var) and isinstance(value.fact, Array) else None
    few = length is not None and length.size is not None and length.size < FEW
    return Const(length.size) if few and unify(length, Length(None, length.size)) else value


def number_of_passes(reader: Reader, walk, node, fixed):
    count = as_number(reader, walk.count) if fixed else walk.count
    if isinstance(count, Const) and count.value <= UNROLLED:
        return count.value
    fail(reader, LanguageError, "this takes an array apart, and its length is not known when transforming", node,
         "Write it as a loop over range(len(x)), or as array operations such as np.max(x) or np.sort(x).")


def elements_of_value(reader: Reader, value: Any, node: gast.AST | None, fixed: bool = True) -> list:
    """The elements of a value of known length; fixed: the version may be specialised to the length."""
    if isinstance(value, Part):
        value = settle(reader, value)
    if isinstance(value, Struct) and value.kind != "dict":
        return list(value.items)
    if isinstance(value, RangeValue) and fixed:
        value = RangeValue(*map(partial(as_number, reader), (value.start, value.stop, value.step)))
    walk = dispatch.walk_over(reader, value, node)
    if isinstance(value, Grown):
        return [grown_item(reader, value, Const(k), node) for k in range(number_of_passes(reader, walk, node, fixed))]
    if walk.static is None and isinstance(value, Var):
        size = value.fact.dims[0].normal()
        if size.symbol is None:
            return [reader.build.item(value, Const(k)) for k in range(size.offset)]
    return cast(list, (walk if walk.static is not None else listed_walk(reader, walk, node, fixed)).static)


def _equal(a, b):
    try:
        return a is b or bool(a == b)
    except Exception:                   # arrays and other objects without a truth value
        return False


def _harmless(step):
    """Whether a step cannot fail, so that it may run on a path where the user's code would not run it."""
    function = getattr(getattr(step, "value", None), "function", None)
    return function in (
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
        operator.add,
        operator.sub,
        operator.mul,
        operator.neg,
        operator.not_,
        abs,
        both,
        either,
        shape_of,
    ) or isinstance(function, np.ufunc)


def _kept(old, value, memo):
    """The parts of a value that are unchanged in another one; the rest is undefined."""
    if old is value or isinstance(value, Struct) and id(value) in memo:
        return memo.get(id(value), old)
    if isinstance(value, Rows) and alike(old, value):
        parts = [_kept(x, y, memo) for x, y in zip(held_by(old), held_by(value))]
        return UNDEFINED if UNDEFINED in parts else holding(old, parts)
    if type(old) is not type(value) or not isinstance(value, (Struct, Grown)) or old.mark is not value.mark:
        return UNDEFINED
    new = copy.copy(old)
    if isinstance(value, Grown):
        new.value = _kept(old.value, value.value, memo)
    elif (old.keys, len(old.items)) == (value.keys, len(value.items)):
        memo[id(value)] = new
        new.items = [_kept(x, y, memo) for x, y in zip(old.items, value.items)]
    else:
        return UNDEFINED
    return new


def _elements(held):
    return list(held)
