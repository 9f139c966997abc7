# SPDX-License-Identifier: Apache-2.0
"""Temporaries read once go back into their expression.

A statement moves down to its only reader in the same block, unless a statement on the way gives one of its operands'
variables a new value, or changes one in place.

>>> from gradscribe.ast_transform.examples import form, show
>>> print(show(renest(form("def f(x):\\n    z = x * x\\n    return np.sin(2 * z) + z", 1.0))))
f(x):
    z = x * x
    return np.sin(2 * z) + z
"""
import operator
from dataclasses import replace

from gradscribe.ast_transform.core.alias import aliased, raised, shows, updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    SAVED,
    TANGENT,
    TEMPORARY,
    USER,
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Slice,
    Var,
    While,
    all_reads,
    blocks,
    entry_reads,
    is_application,
    made,
    operands,
    rebuilt,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import (
    Quoted,
    no_elements,
    shape_of,
    size_of,
    unpacked,
)
from gradscribe.ast_transform.passes.collectives import is_collective

LIMIT = 26                          # nodes in a nested expression
DEEP = 40                           # operations inside one another: Python reads 200 brackets, each may need a few


def renest(function: Function) -> Function:
    function.body, function.result = _plain_reads(function)
    function.body = _patterns_first(function.body)
    counts = {}
    for step in function.body:
        for v in all_reads(step):
            counts[v] = counts.get(v, 0) + 1
    for v in operands(function.result):
        counts[v] = counts.get(v, 0) + 1
    shown = {t: aliased(s.value) for s in walk(function.body) if isinstance(s, Let) and isinstance(s.value, Apply)
             and not updates(s.value) for t in s.targets if isinstance(t.fact, Array) and t.fact.dims}
    function.body = _block(function.body, counts, shown, function)
    return function


def _plain_reads(function):
    """x.shape[0] of an argument, and slices of a container, are read wherever they are wanted."""
    parameters = {p.value for p in function.params}
    env = {}
    def visit(block):
        out = []
        for step in block:
            step = rebuilt(step, env, visit)
            if isinstance(step, (For, While)):
                for c in step.carries:
                    c.next = substituted(c.next, env)
                if isinstance(step, While):
                    step.test = substituted(step.test, env)
            elif isinstance(step, If):
                for j in step.joins:
                    j.then, j.orelse = substituted(j.then, env), substituted(j.orelse, env)
            if (
                isinstance(step, Let)
                and isinstance(step.value, Apply)
                and step.value.args
                and step.value.args[0] in parameters
            ):
                if step.value.function in (shape_of, size_of) or is_application(step.value, operator.getitem) and \
                        isinstance(step.targets[0].fact, Sequence) and isinstance(step.value.args[1], Const) and \
                        isinstance(step.value.args[1].value, slice):
                    env[step.targets[0]] = step.value
                    continue
            out.append(step)
        return out
    body = visit(function.body)
    return body, substituted(function.result, env)


def _patterns_first(block):
    """The unpacking of what a loop walks over opens its body."""
    out = []
    for step in block:
        step = rebuilt(step, {}, _patterns_first)
        if isinstance(step, For):
            items = {v for v, _ in step.items}
            first = [s for s in step.body if isinstance(s, Let) and isinstance(s.value, Apply) and
                     s.value.function is unpacked and s.value.args[0] in items]
            step.body = first + [s for s in step.body if s not in first]
        out.append(step)
    return out


def size(node):
    """About how many nodes of Python's tree a value takes."""
    if isinstance(node, Apply):
        return 2 + sum(map(size, node.args)) + sum(1 + size(a) for _, a in node.kwargs)
    if isinstance(node, Pack):
        return 1 + sum(map(size, node.items))
    if isinstance(node, Slice):
        return 1 + sum(size(p) for p in (node.start, node.stop, node.step) if p is not None)
    return 1


def depth(node):
    """How many operations are inside one another."""
    if isinstance(node, Apply):
        return 1 + max(map(depth, [*node.args, *(a for _, a in node.kwargs)]), default=0)
    return max(map(depth, operands_of(node)), default=0) if isinstance(node, (Pack, Slice)) else 0


def operands_of(node):
    return node.items if isinstance(node, Pack) else [p for p in (node.start, node.stop, node.step) if p is not None]


def _block(block, counts, shown, function=None):
    steps = [_while(s, counts, shown) if isinstance(s, While) else rebuilt(s, {}, lambda b: _block(b, counts, shown))
             for s in block]
    k = 0
    while k < len(steps):
        step = steps[k]
        if _movable(step, counts):
            place = _destination(steps, k, shown, function)
            if place is not None and not (place == len(steps) and raised(step)):
                value = step.value
                if isinstance(value, Apply) and value.origin is None:
                    value = replace(value, origin=step.origin)
                env = {step.targets[0]: value}
                if place == len(steps):
                    function.result = substituted(function.result, env)
                else:
                    steps[place] = rebuilt(steps[place], env, lambda b: b)
                del steps[k]
                k = max(0, k - 1)
                continue
        k += 1
    return steps


class _Head:
    """The head of a while loop: its result is the test."""

    def __init__(self, test):
        self.result = test


def _while(step, counts, shown):
    head = _Head(step.test)
    steps = _block(step.head, counts, shown, head)
    return While(step.carries, steps, head.result, _block(step.body, counts, shown), step.origin)


def _movable(step, counts):
    if not isinstance(step, Let) or len(step.targets) != 1 or not isinstance(step.value, Apply):
        return False
    var = step.targets[0]
    if counts.get(var) != 1 or var.kind in (USER, SAVED, TANGENT) and not _from_store(step.value):
        return False
    function = step.value.function
    if isinstance(function, Quoted) or isinstance(function, Function) and not function.notes.get("nests") or \
            is_draw(step.value) or is_collective(step.value):
        return False                    # these keep their lines: the order of draws is the order of lines
    return not updates(step.value) and function is not no_elements


def _from_store(value):
    return is_application(value, operator.getitem) and isinstance(value.args[0], Var) and value.args[0].kind == SAVED


def _destination(steps, k, shown, function):
    """Where the value can go: the place of its reader, the number of steps for the result, None for nowhere."""
    step = steps[k]
    var, family = step.targets[0], {(v.hint, v.kind) for v in operands(step.value)}
    wanted = list(dict.fromkeys(operands(step.value)))
    for v in wanted:                    # and what they are views of
        wanted += [o for o in shown.get(v, ()) if o not in wanted]
    wanted = set(wanted)
    for place in range(k + 1, len(steps)):
        later = steps[place]
        if any(v is var for v in entry_reads(later)):
            return place if _fits(step, later) else None
        if any(v is var for v in all_reads(later)):
            return None
        if any((v.hint, v.kind) in family and v.kind != TEMPORARY for v in _all_made(later)) or wanted & set(
            _updated(later)
        ):
            return None
    if function is not None and any(v is var for v in operands(function.result)):
        if not isinstance(function.result, Pack):
            return len(steps) if size(step.value) + size(function.result) <= LIMIT else None
        # beside other results: only what is short
        return len(steps) if size(step.value) <= 4 and var.kind == TEMPORARY or _sum_of_names(step.value) else None
    return None


def _sum_of_names(value):
    return len(value.args) == 2 and size(value) <= 4 and all(isinstance(a, (Var, Const)) for a in value.args) and \
        getattr(value.function, "__name__", "") in ("add", "sub")


def _fits(step, later):
    var, value = step.targets[0], step.value
    if raised(step) != raised(later) and not shows(value) or raised(step) and not isinstance(later, (Let, Effect)):
        return False
    if isinstance(later, (For, While)) and any(c.init is var for c in later.carries):
        return False
    if value.function is unpacked:
        return False
    if isinstance(later, For) and later.reverse and any(s is var for _, s in later.items) and not shows(value):
        return False                    # it is made once; its rows are read by index
    if isinstance(later, Let):
        if (
            updates(later.value)
            and later.value.args
            and later.value.args[0] is var
        ):
            return False
        if isinstance(later.value, Apply) and later.value.function in (shape_of, size_of):
            return False
        if isinstance(later.value, Pack) and var.kind != TEMPORARY:
            return False
        if var.kind == ADJOINT and not _completes(step, later):
            return False
        if _one_line_of_the_user(step, later):
            return True
        if _adds_to_a_sum(later):
            return size(value) <= LIMIT
        return size(later.value) + size(value) <= LIMIT
    if isinstance(later, Effect):
        return True
    if isinstance(later, If):
        return size(later.test) + size(value) <= LIMIT
    if isinstance(later, For):
        return var.kind == TEMPORARY
    return False


def _one_line_of_the_user(step, later):
    """Parts of one statement that the user wrote are not taken apart, if it is not very deep."""
    return step.origin is not None and later.origin is not None and step.origin.generated == 0 and \
        later.origin.generated == 0 and step.origin.same_statement(later.origin) and depth(step.value) < DEEP


def _adds_to_a_sum(step):
    """`dx += value`, on a line of its own."""
    value = step.value
    return is_application(value, operator.add) and step.targets[0].kind == ADJOINT and any(
        isinstance(a, Var) and a.hint == step.targets[0].hint and a.kind == ADJOINT for a in value.args)


def _completes(step, later):
    """A partial sum of an adjoint that the next statement of the same group completes."""
    return later.targets[0].hint == step.targets[0].hint and later.origin is not None and \
        later.origin.same_statement(step.origin)


def _all_made(step):
    yield from made(step)
    for block in blocks(step):
        for inner in block:
            yield from _all_made(inner)


def _updated(step):
    """Values that a statement, or one inside it, is likely to change in place."""
    if isinstance(step, Let) and updates(step.value):
        yield from operands(step.value.args[0])
    for block in blocks(step):
        for inner in block:
            yield from _updated(inner)
    if isinstance(step, (For, While)):
        for c in step.carries:
            if isinstance(c.init, Var):
                yield c.init
