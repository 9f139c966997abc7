# SPDX-License-Identifier: Apache-2.0
"""Arrays that are one of two, by a test: how a write into one changes the others (path-sensitive alias analysis).

y = a[1:] if test else b is a choice: y is a view of a if the test is true, and an alias of b otherwise.  A write into y
is a write into a under the test, and into b otherwise; a write into a changes y under the test.  So each array keeps
a value of its own, and the writes stay as the user wrote them.  Where no test decides (a pass of a loop, an operation
whose result may or may not share memory), the alias becomes a Conflict, see memory.py.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, t):\\n    a = x * 2\\n    b = a if t > 0 else x * 3\\n    b[0] = 5.0\\n    return a.sum()"
>>> print(show(form(text, np.ones(3), 1.0)))
f(x, t):
    a = x * 2
    t_1 = t > 0
    if t_1:
        pass
    else:
        z = x * 3
    join value = a | z
    value_1 = put(value, 0, 5.0)
    if t_1:
        pass
    else:
        pass
    join a_1 = value_1 | a
    join z_1 = undefined | value_1
    sum_a = np.sum(a_1)
    return sum_a
"""
from collections import namedtuple
from contextlib import contextmanager
from functools import partial
from typing import Any

from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
    For,
    If,
    Join,
    Let,
    Var,
    While,
    operands,
    substituted,
    walk,
)
from gradscribe.ast_transform.reader.container_aliases import join_paths
from gradscribe.ast_transform.reader.dispatch import late
from gradscribe.ast_transform.reader.memory import can_write, put_back, storages
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.views import base_path, is_array, rowwise, same_view_again

MOST = 8                # the most paths of a choice: each test may double them, and a write is made on each
# The If, and a side for each arm: (array, path of views from it), a Choice if the arm leaves one, or ().
Choice = namedtuple("Choice", "step then orelse")


def leaves(*sides):
    """(array, path) of each array that these sides may be a view of."""
    for side in sides:
        if isinstance(side, Choice):
            yield from leaves(*side[1:])
        elif side:
            yield side


def mapped(side, change):
    """A side with each (array, path) in it replaced by change(array, path)."""
    if isinstance(side, Choice):
        return Choice(side.step, *(mapped(s, change) for s in side[1:]))
    return change(*side) if side else ()


def chosen(reader: Reader, var: Any, a: Any, b: Any, branch: Any, kind: Any, memo: dict) -> None:
    """Record which of two arrays `var` is, depending on the branch's test; two versions of one array are no choice."""
    if not is_array(var) or reader.unroll and not all(     # compiled code knows one length for each axis
            m.same(n) for v in (a, b) if is_array(v) for m, n in zip(v.fact.dims, var.fact.dims)):
        return
    first, second = (reader.choices.sides.get(v) if isinstance(v, Var) else None for v in (a, b))
    if first is not None and second is not None and first.step is second.step:
        find_closed(reader, a)
        find_closed(reader, b)
        sides = [one_side(reader, p, q, branch, kind, memo) for p, q in zip(first[1:], second[1:])]
        if None not in sides:
            reader.choices.sides[var] = Choice(first.step, *sides)
            return
    sides = [base_path(reader, v) if is_array(v) else () for v in (a, b)]
    if not all(sides) or sides[0][1] or sides[1][1] or storages(reader, a) != storages(reader, b):
        choice = Choice(branch, *exported_sides(reader, branch, sides))
        if count_ways(reader, choice) <= MOST:
            reader.choices.sides[var] = choice


def count_ways(reader: Reader, choice) -> int:
    """The number of paths through the tests of a choice."""
    return sum(
        count_ways(reader, reader.choices.sides[v]) if v in reader.choices.sides else 1 for v, _ in leaves(*choice[1:])
    )


def exported_sides(reader: Reader, branch, sides):
    """The sides of a choice as seen after its branch, which joins the tests and indices that they read in its arms."""
    return [seen_from_outside(reader, branch, arm, {v for s in arm for v in _set_by(s)}, {}, side)
            for side, arm in zip(sides, (branch.then, branch.orelse))]


def seen_from_outside(reader: Reader, branch, arm, inside, known, side):
    """A side as seen outside an arm; inside: the variables that the arm sets, known: their names outside."""
    def outside(v):
        if v not in known:
            known[v] = v.like()
            branch.joins.append(Join(known[v], *((v, UNDEFINED) if arm is branch.then else (UNDEFINED, v))))
            reader.choices.partly.add(known[v])
        return known[v]

    if isinstance(side, Choice):
        step = side.step
        if step.test in inside:
            step = If(outside(step.test), step.then, step.orelse, [], step.origin)
        return Choice(step, *(seen_from_outside(reader, branch, arm, inside, known, s) for s in side[1:]))
    if not side:
        return ()
    array, path = side
    if array in inside and array in reader.choices.sides:
        return seen_from_outside(
            reader, branch, arm, inside, known, mapped(reader.choices.sides[array], lambda a, p: (a, [*p, *path]))
        )
    views = {v for _, v in path} | {array}
    read = [v for v in dict.fromkeys(v for made, _ in path for v in operands(made))
            if v in inside and v not in views]
    names = {v: outside(v) for v in read}
    return array, [(substituted(made, names), view) for made, view in path]


def one_side(reader: Reader, p, q, branch, kind, memo):
    """The join of two versions of a side that two arms leave; None if they are not versions of one array."""
    if not p and not q:
        return ()
    if isinstance(p, Choice) and isinstance(q, Choice) and p.step is q.step:
        sides = [one_side(reader, a, b, branch, kind, memo) for a, b in zip(p[1:], q[1:])]
        return None if None in sides else Choice(p.step, *sides)
    if not p or not q or isinstance(p, Choice) or isinstance(q, Choice) or not same_path(p[1], q[1]):
        return None
    (a, path), (b, _) = p, q
    if a is b:
        return p
    if storages(reader, a) != storages(reader, b) or {a, b} & reader.choices.arm_only:
        return None
    whole = join_paths(reader, a, b, a.hint, branch, kind, memo)
    return (whole, path) if is_array(whole) else None


def left_by(reader: Reader, branch: Any) -> Any:
    """Replace the arrays in this branch's choices by their versions after the branch."""
    def left(arm, array):
        return next(
            (
                k.var
                for k in branch.joins
                if getattr(k, arm) is array
                and k.var not in reader.choices.sides
                and all(is_array(v) and storages(reader, v) == storages(reader, array) for v in (k.then, k.orelse))
            ),
            array,
        )

    for j in branch.joins:
        choice = reader.choices.sides.get(j.var)
        if choice is not None and choice.step is branch:
            reader.choices.sides[j.var] = Choice(branch, *(
                mapped(side, lambda array, path, arm=arm: (left(arm, array), path))
                for arm, side in zip(("then", "orelse"), choice[1:])))


def shown_by(reader: Reader, base):
    """(array, path) of each array that a choice may be a view of."""
    return leaves(*reader.choices.sides.get(base, ())[1:])


def reached(reader: Reader, base) -> frozenset:
    """The arrays that a value may be, through all its choices."""
    if base not in reader.choices.sides:
        return frozenset({base})
    return frozenset().union(*(reached(reader, array) for array, _ in shown_by(reader, base)))


def others_written(reader: Reader, base, shown) -> list:
    """The other arrays of `shown` that a write into `base` changes under a test."""
    mine = reached(reader, base)
    group = [v for v in shown if v is not base and mine & reached(reader, v)]
    if not group or unclear(reader, mine, mine):
        return []
    for v in (base, *group):
        find_closed(reader, v)
    unseen = hidden_arrays(reader, base, True)
    return [v for v in group if not unclear(reader, mine, reached(reader, v))
            and not mine & reached(reader, v) & (unseen | hidden_arrays(reader, v, False))]


def find_closed(reader: Reader, base):
    """Record which arrays of a choice were made in an arm, so that no name outside the arm refers to them."""
    for array, _ in shown_by(reader, base):
        if maker(reader, array):
            reader.choices.arm_only.add(array)
        find_closed(reader, array)


def hidden_arrays(reader: Reader, base, through) -> frozenset:
    """The arrays that a choice reaches through something local to an arm: a test there, or an array viewed in part."""
    return frozenset().union(*(
        reached(reader, array) if is_hidden(reader, array, path, through) else hidden_arrays(reader, array, through)
        for array, path in shown_by(reader, base)))


def is_hidden(reader: Reader, array, path, through) -> bool:
    """Whether a side is local to an arm, so that writes cannot be followed through it; `through`: from the view up."""
    return maker(reader, array) is not None and (array in reader.choices.sides or through and bool(path))


def unclear(reader: Reader, these, those) -> bool:
    """Whether two arrays may share memory for a reason other than the tests."""
    return any(a is not b and storages(reader, a) & storages(reader, b) for a in these for b in those)


@late
def updated_arrays(reader: Reader, base, root, shown, node) -> dict:
    """{array: its new value} after a write that has turned `base` into `root`, following the tests of choices.

    If no other array is affected, `root` is no longer a choice.
    """
    changed, group = {base: root}, others_written(reader, base, shown)
    if group:
        changed = {**values_of_choice(reader, base, root, node), base: root}
        for v in group:
            current_value(reader, v, changed, node)
        if base in reader.choices.sides:
            reader.choices.sides[root] = mapped(reader.choices.sides[base],
                                                lambda array, path: (current_value(reader, array, changed, node), path))
    return changed


def values_of_choice(reader: Reader, base, new, node) -> dict:
    """{array: its new value} for the arrays that `base` may be, after `base` has become `new`."""
    can_write(reader, base, node)
    return (
        values_of_side(reader, reader.choices.sides[base], new, node) if base in reader.choices.sides else {base: new}
    )


def values_of_side(reader: Reader, side: Choice | tuple[Any, Any] | tuple[()], new, node) -> dict:
    """{array: its new value} for the arrays of a side, after the view that the side describes has become `new`."""
    if not side:
        return {}
    if not isinstance(side, Choice):
        return {} if is_hidden(reader, *side, True) else \
            values_of_choice(reader, side[0], through_choice(reader, *side, new, node), node)
    arms = []
    for inner in side[1:]:
        with own_block(reader) as block:
            arms.append((block, values_of_side(reader, inner, new, node)))
    (then, first), (orelse, second) = arms
    return repeat_branch(reader, side, then, orelse, {array: tuple(
        changed.get(array) or unchanged(reader, array, side.step, k) for k, changed in enumerate((first, second)))
        for array in dict.fromkeys([*first, *second])})


def maker(reader: Reader, array):
    """The outermost finished branch that made this array in an arm, or None."""
    while reader.choices.ended:
        branch = reader.choices.ended.pop(0)
        for arm in (branch.then, branch.orelse):
            for step in walk(arm):
                reader.choices.made_in.update((v, branch) for v in _set_by(step))
    return reader.choices.made_in.get(array)


def unchanged(reader: Reader, array, test, k):
    """An array's value if arm `k` of a branch with this test does not change it; undefined if it does not exist."""
    branch = maker(reader, array)
    if branch is None:
        return array
    arms = branch.then, branch.orelse
    elsewhere = not any(array in _set_by(s) for s in walk(arms[k]))
    return UNDEFINED if test.then is branch.then and elsewhere else named_outside(reader, array, branch)


def named_outside(reader: Reader, array, branch):
    """The name outside the branch of an array that an arm of it has made; any other array unchanged."""
    for arm, sides in ((branch.then, lambda v: (v, UNDEFINED)), (branch.orelse, lambda v: (UNDEFINED, v))):
        if any(array in _set_by(s) for s in walk(arm)):
            for step in arm:
                if isinstance(step, If):
                    array = named_outside(reader, array, step)
            then, orelse = sides(array)
            name = next((j.var for j in branch.joins if j.then is then and j.orelse is orelse), None)
            if name is None:
                name = array.like()
                branch.joins.append(Join(name, then, orelse))
                reader.memory.tokens[name], reader.views.layouts[name] = storages(reader, array), rowwise(reader, array)
                reader.choices.partly.add(name)
            return name
    return array


def through_choice(reader: Reader, base, path, new, node):
    """The new value of an array after its view by `path` has become `new`."""
    if not path:
        same = all(m.same(n) for m, n in zip(new.fact.dims, base.fact.dims))
        return new if same else reader.build.let(base.hint, new, base.fact, base.kind)
    return put_back(reader, base_path(reader, same_view_again(reader, path, base))[1], new, node)


def current_value(reader: Reader, base, changed, node):
    """The current value of a choice after arrays that it may be have changed; of another array, itself."""
    choice = reader.choices.sides.get(base)
    if base in changed or choice is None:
        return changed.get(base, base)
    now = mapped(choice, lambda array, path: (
        array if is_hidden(reader, array, path, False) else current_value(reader, array, changed, node), path))
    if all(a is b for (a, _), (b, _) in zip(leaves(choice), leaves(now))):
        return base
    can_write(reader, base, node)
    new = changed[base] = current_side(reader, base, choice, now)
    reader.choices.sides[new] = now
    return new


def current_side(reader: Reader, base, side, now):
    """The current value of a side if its array has changed; `base` otherwise."""
    if not side:
        return UNDEFINED
    if all(a is b for (a, _), (b, _) in zip(leaves(side), leaves(now))):
        return base
    if not isinstance(side, Choice):
        return same_view_again(reader, side[1], now[0])
    arms = []
    for inner, after in zip(side[1:], now[1:]):
        with own_block(reader) as block:
            arms.append((block, current_side(reader, base, inner, after)))
    (then, first), (orelse, second) = arms
    return repeat_branch(reader, side, then, orelse, {base: (first, second)})[base]


def repeat_branch(reader: Reader, choice, then, orelse, ends) -> dict:
    """Add another branch with a choice's test; `ends`: {array: (its value after each arm)}."""
    made, branch = {}, If(choice.step.test, then, orelse, [], reader.build.origin)
    for old, values in ends.items():
        new = made[old] = Var(old.hint, old.fact, old.kind)
        if old in reader.choices.arm_only:
            reader.choices.arm_only.add(new)
        branch.joins.append(Join(new, *values))
        reader.memory.tokens[new], reader.views.layouts[new] = storages(reader, old), rowwise(reader, old)
        if old in reader.choices.partly:
            reader.choices.partly.add(new)
    reader.build.block.append(branch)
    reader.choices.ended.append(branch)
    return made


@contextmanager
def own_block(reader: Reader):
    """A context that collects statements in a separate block."""
    outer, reader.build.block = reader.build.block, []
    try:
        yield reader.build.block
    finally:
        reader.build.block = outer


def carried_with(reader: Reader, base: Any, entry: set) -> list:
    """The other arrays that a loop must carry with `base`, because a write into one of them changes the others."""
    found, more = [], [v for v in others_written(reader, base, entry)]
    while more:
        found += more
        roots = frozenset().union(*map(partial(reached, reader), [base, *found]))
        more = [v for v in [*entry, *roots] if v is not base and v not in found and roots & reached(reader, v)]
    return [] if any(map(partial(made_in_arm, reader), [base, *found])) else found


def made_in_arm(reader: Reader, base) -> bool:
    """Whether a choice involves an array that exists only in one arm."""
    find_closed(reader, base)
    return bool(reached(reader, base) & reader.choices.arm_only)


@late
def renamed_choices(reader: Reader, mapping):
    """Update the choices after arrays were renamed."""
    for old, new in mapping.items():
        if old in reader.choices.sides and new is not old and not made_in_arm(reader, old):
            reader.choices.sides[new] = mapped(
                reader.choices.sides[old], lambda array, path: (mapping.get(array, array), path)
            )


def same_path(path: list[tuple[Apply, Any]], other: list[tuple[Apply, Any]]) -> bool:
    """Whether two paths of views are the same operations with the same operands."""
    return len(path) == len(other) and all(
        m.function is n.function and len(m.args) == len(n.args) and m.kwargs == n.kwargs and
        all(x is y for x, y in zip(m.args[1:], n.args[1:])) for (m, _), (n, _) in zip(path, other))


def _set_by(step):
    if isinstance(step, Let):
        return step.targets
    if isinstance(step, If):
        return [j.var for j in step.joins]
    return [c.outer for c in step.carries] if isinstance(step, (For, While)) else []
