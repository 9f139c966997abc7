# SPDX-License-Identifier: Apache-2.0
"""Aliases of containers: snapshots of all variables before a branch or loop is read, and joins of containers after it.

A copy of a container for an arm keeps its mark, so that one list in both arms differs from two lists.  A container that
may be either of two cannot be changed while another name refers to one of them.
"""
import copy
from collections.abc import Iterable
from functools import partial
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import SPENT, Conflict, Grown, Struct, alike, held_by, holding
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


def freeze(reader: Reader, containers: Iterable[Any]) -> None:
    containers = list(containers)
    reader.containers.frozen.update(containers)
    reader.containers.outside.update(containers)


def snapshot(reader: Reader) -> list:
    """A copy of all reachable variables and their containers; aliases stay aliases."""
    memo = {}
    def again(value):
        if isinstance(value, Struct) and value not in reader.containers.outside:
            if id(value) not in memo:
                memo[id(value)] = new = copy.copy(value)
                new.items = [again(i) for i in value.items]
            return memo[id(value)]
        if isinstance(value, Grown):
            if id(value) not in memo:
                memo[id(value)] = copy.copy(value)
            return memo[id(value)]
        return holding(value, [again(v) for v in held_by(value)])
    return [(f, {k: again(v) for k, v in f.env.items()}) for f in places_of_variables(reader)]


def places_of_variables(reader: Reader) -> list:
    """All holders of variables: frames being read, enclosing frames of inner functions, pending expressions."""
    return [
        *reader.environment.stack,
        *(f for f in reader.environment.enclosing if f not in reader.environment.stack),
        *reader.memory.pending,
    ]


def restore(state: list) -> None:
    for frame, env in state:
        frame.env.clear()
        frame.env.update(env)


def join_paths(reader: Reader, a: Any, b: Any, hint: str, branch: Any, kind: Any, memo: dict | None = None) -> Any:
    """The join of two values; methods and views of a list are bound to the joined list."""
    memo = {} if memo is None else memo
    if isinstance(a, Grown) and isinstance(b, Grown) and a.mark is b.mark:
        key = (id(a), id(b))
        if key not in memo:
            named = b if isinstance(a.value, Const) else a
            whole = next((v.value for v in (a, b) if isinstance(v.value, Conflict)), None) or dispatch.join_values(
                reader, a.value, b.value, named.value.hint, branch, kind, memo
            )
            memo[key] = whole if isinstance(whole, Conflict) else Grown(
                whole, a.element, a.mark, SPENT if b.once is SPENT else a.once)
        return memo[key]
    if {type(a), type(b)} == {Grown, Struct} and a.mark is b.mark:
        struct, grown = (a, b) if isinstance(a, Struct) else (b, a)
        reader.lists.uneven[a.mark] = [*struct.items, Var("item", grown.element)]
    if a is not b and alike(a, b):
        parts = [join_paths(reader, x, y, hint, branch, kind, memo) for x, y in zip(held_by(a), held_by(b))]
        return next((v for v in parts if isinstance(v, Conflict)), None) or holding(a, parts)
    return dispatch.join_values(reader, a, b, hint, branch, kind, memo)


def join_path_structs(reader: Reader, a: Any, b: Any, hint: str, branch: Any, kind: Any, memo: dict) -> Any:
    made = dispatch.join_containers(reader, a, b, hint, branch, kind, memo)
    given = [v for v in (a, b) if isinstance(v, Struct)]
    if len(given) == 2 and a.mark is b.mark and len(a.items) != len(b.items):
        reader.lists.uneven[a.mark] = [*a.items, *b.items]
    if isinstance(made, Struct) and not any(made is v for v in given):
        if len(given) == 2 and a.mark is b.mark:
            made.mark = a.mark
        else:
            reader.containers.origins[made.mark] = frozenset().union(*map(partial(marks_of, reader), given))
    return made


def marks_of(reader: Reader, container):
    """The marks of all containers that this one may be."""
    return reader.containers.origins.get(container.mark) or frozenset({container.mark})


def same_object(reader: Reader, a: Any, b: Any) -> bool | None:
    """Whether two values are the same container; None if that is not known."""
    if any(isinstance(v, Struct) and (v.whole is not None or v in reader.containers.outside or v.kind == "tuple")
           for v in (a, b)):
        return None
    if isinstance(a, (Struct, Grown)) and isinstance(b, (Struct, Grown)):
        first, second = (marks_of(reader, v) if isinstance(v, Struct) else {v.mark} for v in (a, b))
        return True if a.mark is b.mark else None if first & second else False
    return False if isinstance(a, (Struct, Grown)) or isinstance(b, (Struct, Grown)) else None


def related_containers(reader: Reader, made: Any, olds: list, shared: dict, path: tuple) -> Any:
    """Record that a carried container may be its initial container, or another one that a pass leaves there."""
    olds = [o for o in olds if isinstance(o, Struct)]
    if isinstance(made, Struct) and not any(made is o for o in olds):
        if _changes(made):
            reader.containers.origins[made.mark] = frozenset({made.mark}).union(
                shared.get(path, ()), *map(partial(marks_of, reader), olds)
            )
        for k, item in enumerate(made.items):
            related_containers(reader, item, [o.items[k] for o in olds if k < len(o.items)], shared, (*path, k))
    return made


def has_stable_sharing(reader: Reader, own: set, shared: dict) -> bool:
    """Record which containers the names of a loop share at the end of a pass; return whether nothing was new."""
    found: dict[Any, list] = {}
    rest = True

    def visit(value, place, above):
        if isinstance(value, Struct) and value.mark not in above:
            if _changes(value):
                found.setdefault(value.mark, []).append(place)
            for k, item in enumerate(value.items):
                visit(item, (*place, k), {*above, value.mark})
        for k, item in enumerate(held_by(value)):
            visit(item, (*place, k), above)

    for frame in places_of_variables(reader):
        for n, value in frame.env.items():
            visit(value, (frame, n), frozenset())
    for mark, places in found.items():
        ours = [p[1:] for p in places if p[:2] in own]
        token = mark if len(ours) < len(places) else tuple(ours)
        for path in ours if len(places) > 1 else ():
            rest = rest and token in shared.get(path, ())
            shared[path] = shared.get(path, frozenset()) | {token}
    return rest


def must_be_certain(reader: Reader, holder: Any, node: gast.AST | None) -> Any:
    """Refuse to change a container that another name may or may not refer to."""
    if not reader.containers.origins:
        return
    marks, seen = marks_of(reader, holder), set()

    def visit(value):
        if not isinstance(value, Struct) or id(value) in seen:
            return any(map(visit, held_by(value)))
        seen.add(id(value))
        return value.mark is not holder.mark and bool(marks_of(reader, value) & marks) or any(map(visit, value.items))

    if any(visit(v) for place in places_of_variables(reader) for v in place.env.values()):
        article = "an" if holder.kind[0] in "aeiou" else "a"
        try:
            fail(reader, LanguageError, f"changing {article} {holder.kind} that another name shows in one branch or "
                 "pass only", node, "Change it inside the branch, or copy it there.")
        except LanguageError as error:
            error.shared = True
            raise


def certain_value(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    """A container whose contents are certain; refused otherwise."""
    if isinstance(value, Conflict):
        dispatch.unroll_for_conflict(reader, value, node)
        fail(reader, ShapeError, f"what is held here is {value.reason}", node, value.advice)
    return value


def _changes(value):
    return value.kind in ("list", "dict", "object") or value.kind == "record" and not issubclass(value.cls, tuple)
