# SPDX-License-Identifier: Apache-2.0
"""Nesting: temporaries that are read once become subexpressions of their reader.

A statement moves down to its only reader in the same block, unless a statement in between assigns to a variable among
its operands, or changes one in place.  It undoes the splitting into one operation per statement, for printing.

>>> from gradscribe.ast_transform.examples import form, show
>>> print(show(renest(form("def f(x):\\n    z = x * x\\n    return np.sin(2 * z) + z", 1.0))))
f(x):
    z = x * x
    return np.sin(2 * z) + z
"""
import operator
from collections import Counter
from dataclasses import replace

from gradscribe.ast_transform.core.alias import aliased, parts_of, raised, reads, repeatable, role, shows, updates
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
    all_made,
    all_reads,
    blocks,
    entry_reads,
    is_application,
    made,
    operands,
    read_counts,
    rebuilt,
    replaced,
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
from gradscribe.ast_transform.passes.algebra import updated_in
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.reader.named_axes import is_collective

ENTRY = 5                           # nodes of A[i, j], the longest expression that is read at a glance
LINE = 2                            # nodes of an assignment besides its value
NAME = 8                            # the same, with the cost of a name that tells nothing
LIMIT = 26                          # the most nodes in a nested expression
DEEP = 40                           # the deepest nesting of operations: Python parses 200 brackets, each may take a few


def renest(function: Function, to_read: bool = True) -> Function:
    """The function, changed in place.  to_read: whether the text is for reading; else each value keeps its place."""
    if to_read:
        function.body = _named_lengths(function)
    function.body, function.result = _plain_reads(function)
    function.body = _patterns_first(function.body)
    if to_read:
        function.body = read_again(function)
    counts, shown = read_counts(function), _shown(function)
    function.body = _block(function.body, counts, shown, _Result(function, to_read))
    return function


class _Result:
    """The result of a function as a place for values, and whether the user's expressions may move into it."""

    def __init__(self, function, to_read):
        self.function, self.to_read = function, to_read

    @property
    def result(self):
        return self.function.result

    @result.setter
    def result(self, value):
        self.function.result = value


def _named_lengths(function):
    """The body with a length that the user has named read by that name in generated lines: n for x.shape[0]."""
    used = Counter(v.hint for v in all_made(function.body) if v.kind == USER)
    used.update(p.name for p in function.params)
    named, env = [], {}
    for step in function.body:
        for s in walk([step]) if named else ():
            if isinstance(s, Let) and is_application(s.value, shape_of) and s.targets[0].kind == TEMPORARY:
                asked, axis = s.value.args
                length = asked.fact.dims[axis.value] if type(asked.fact) is Array else None
                known = next((n for n in named if length is not None and n.fact.length.same(length)), None)
                if known is not None:
                    env[s.targets[0]] = known
        if isinstance(step, Let) and len(step.targets) == 1 and (var := step.targets[0]).kind == USER and _is_index(
                var) and var.fact.length is not None and used[var.hint] == 1:
            named.append(var)
    if not env:
        return function.body
    function.result = substituted(function.result, env)
    return drop_dead(replaced(function.body, env), function.result)


def _plain_reads(function):
    """(the body, the result), with x.shape[0] of arguments and slices of containers repeated where they are used."""
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
                (target, *_), value = step.targets, step.value
                if value.function in (shape_of, size_of) and target.kind != USER or is_application(
                        value, operator.getitem) and isinstance(target.fact, Sequence) and isinstance(
                            value.args[1], Const) and isinstance(value.args[1].value, slice):
                    env[step.targets[0]] = step.value
                    continue
            out.append(step)
        return out
    body = visit(function.body)
    return body, substituted(function.result, env)


def read_again(function):
    """The body with short values repeated where they are used: x[i], x.T, i + 1, where naming them would be longer.

    Values that the user has named stay, and so do those whose operands change before a reader.
    """
    counts, shown = read_counts(function), _shown(function)

    def block(steps, around=frozenset()):
        """around: the indices of the enclosing loops, whose names are fixed there."""
        out = list(steps)
        for k, step in enumerate(steps):
            if _is_short(step, counts) and _readable(steps, k, shown, counts, around):
                out[k] = None
                env[step.targets[0]] = step.value
        found = []
        for s in out:
            if s is not None:
                within = around | {s.index} if isinstance(s, For) else around
                found.append(rebuilt(s, {}, lambda inner, within=within: block(inner, within)) if blocks(s) else s)
        return found

    env = {}
    body = block(function.body)
    while env:
        values = {v: _composed(substituted(value, env)) for v, value in env.items()}
        if all(values[v] is env[v] for v in env):
            break
        env = values
    return [_composed_in(s) for s in replaced(body, env)] if env else body


def _is_short(step, counts):
    """Whether repeating the value of a temporary is no longer to read than a line that names it."""
    if not isinstance(step, Let) or len(step.targets) != 1 or not isinstance(step.value, Apply) or raised(step):
        return False
    (var,), value = step.targets, step.value
    times = counts.get(var, 0)
    if var.kind != TEMPORARY and not (var.kind == SAVED and _from_store(value)) or not times or value.kwargs or not all(
            isinstance(a, (Var, Const, Pack, Slice)) for a in value.args):
        return False
    length = size(value)
    worth = NAME if length <= ENTRY or _from_store(value) else LINE
    if times * length > length + worth + times:
        return False
    if all(isinstance(a, Const) and type(a.value) in (int, float) for a in value.args):
        return type(var.fact) is Array and not var.fact.dims and repeatable(value)      # math.sqrt(2)
    if value.function in (operator.add, operator.sub, operator.mul):
        return all(isinstance(a, Const) and type(a.value) is int or isinstance(a, Var) and _is_index(a) and
                   a.kind != TEMPORARY for a in value.args)
    if reads(value) == "part":
        base, index = value.args
        parts = index.items if isinstance(index, Pack) else (index,)
        return isinstance(base, Var) and type(base.fact) is Array and all(map(_is_place, parts))
    return role(value) == "transpose" and len(value.args) == 1


def _is_index(v):
    return type(v.fact) is Array and not v.fact.dims and v.fact.kind == "i"


def _is_place(part):
    """Whether a part of an index is an integer, or a slice of integers."""
    if isinstance(part, Slice):
        return all(p is None or _is_place(p) for p in (part.start, part.stop, part.step))
    return isinstance(part, Var) and _is_index(part) or isinstance(part, Const) and type(part.value) in (
        int, slice, tuple, type(None))


def _readable(steps, k, shown, counts, around):
    """Whether all readers of a statement's value are operations after it, in its block or inner ones, and no operand
    of it changes before them.
    """
    (var,), value = steps[k].targets, steps[k].value
    family = {(v.hint, v.kind) for v in operands(value) if v not in around}
    wanted = _shown_by(value, shown)
    left = counts[var]
    for step in steps[k + 1:]:
        found = sum(v is var for s in walk([step]) for v in _operation_reads(s))
        if found != sum(v is var for v in all_reads(step)):
            return False
        left -= found
        last = not left and not blocks(step)
        if not last and (not wanted.isdisjoint(_updated(step)) or any(
                (v.hint, v.kind) in family and v.kind != TEMPORARY for v in all_made([step]))):
            return False
        if not left:
            return True
    return False


def _operation_reads(step):
    """The values that a statement reads as operands; not those that it updates, that loops carry, or branches join."""
    if isinstance(step, Let) and updates(step.value):
        for a in step.value.args[1:]:
            yield from operands(a)
    elif isinstance(step, Let) and isinstance(step.value, Apply) and step.value.function is not unpacked or isinstance(
            step, Effect):
        yield from operands(step.value)
    elif isinstance(step, If):
        yield from operands(step.test)
    elif isinstance(step, For):         # integers only: range(1, n - 1)
        for node in (step.count, *(source for _, source in step.items if is_application(source, range))):
            yield from (v for v in operands(node) if _is_index(v))


def _composed(value):
    """x[i][j] is x[i, j]."""
    if not isinstance(value, Apply) or reads(value) != "part" or not isinstance(
            value.args[0], Apply) or reads(value.args[0]) != "part":
        return value
    (base, first), second = value.args[0].args, value.args[1]
    if not isinstance(first, (Var, Const)) or isinstance(first, Const) and type(first.value) is not int or isinstance(
            first, Var) and not _is_index(first) or type(fact_of(base)) is not Array:
        return value
    rest = parts_of(second)
    if not all(_is_place(p) or isinstance(p, Const) and p.value is None for p in rest):
        return value                    # an array among the parts moves axes: x[i][:, k] is not x[i, :, k]
    return Apply(operator.getitem, (base, Pack("tuple", (first, *rest))), origin=value.origin)


def _composed_in(step):
    def inner(node):
        if isinstance(node, Apply):
            args = tuple(map(inner, node.args))
            kwargs = tuple((k, inner(a)) for k, a in node.kwargs)
            return _composed(Apply(node.function, args, kwargs, node.origin))
        return Pack(node.kind, tuple(map(inner, node.items)), node.keys, node.cls) if isinstance(node, Pack) else node
    if isinstance(step, (Let, Effect)):
        step.value = inner(step.value)
    elif isinstance(step, If):
        step.test = inner(step.test)
    for block in blocks(step):
        block[:] = map(_composed_in, block)
    return step


def _shown(function):
    """{value: the operands that it may be a view of}."""
    return {t: aliased(s.value) for s in walk(function.body) if isinstance(s, Let) and isinstance(s.value, Apply)
            and not updates(s.value) for t in s.targets if isinstance(t.fact, Array) and t.fact.dims}


def _shown_by(value, shown):
    """The operands of a value, and what they are views of."""
    wanted = list(dict.fromkeys(operands(value)))
    for v in wanted:
        wanted += [o for o in shown.get(v, ()) if o not in wanted]
    return set(wanted)


def _patterns_first(block):
    """The block with the unpacking of loop items at the start of the loops."""
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
    """The approximate number of nodes of a value in Python's syntax tree."""
    if isinstance(node, Apply):
        if not node.kwargs and (role(node) == "transpose" or reads(node) == "part"):
            return 1 + sum(map(size, node.args))
        return 2 + sum(map(size, node.args)) + sum(1 + size(a) for _, a in node.kwargs)
    if isinstance(node, Pack):
        return 1 + sum(map(size, node.items))
    if isinstance(node, Slice):
        return 1 + sum(size(p) for p in (node.start, node.stop, node.step) if p is not None)
    if isinstance(node, Const) and isinstance(node.value, (slice, tuple)):
        parts = node.value if isinstance(node.value, tuple) else (node.value.start, node.value.stop, node.value.step)
        return 1 + sum(size(Const(p)) for p in parts if p is not None)
    if isinstance(node, Const) and type(node.value) in (int, float) and node.value < 0:
        return 2
    return 1


def to_read(node):
    """The nodes of a value read at once: a sum is read term by term, so all but its longest term count half."""
    if isinstance(node, Apply) and updates(node):
        return 2 + sum(map(size, node.args[:-1])) + to_read(node.args[-1])
    terms = sorted(map(size, _terms(node)))
    return 2 * (len(terms) > 1) + terms[-1] + sum(terms[:-1]) / 2


def _terms(node):
    if role(node) not in ("sum", "difference") or node.kwargs:
        return [node]
    left, right = node.args
    return [*_terms(left), *(_terms(right) if role(node) == "sum" else [right])]


def depth(node):
    """The nesting depth of the operations in a value."""
    if isinstance(node, Apply):
        return 1 + max(map(depth, [*node.args, *(a for _, a in node.kwargs)]), default=0)
    return max(map(depth, operands_of(node)), default=0) if isinstance(node, (Pack, Slice)) else 0


def operands_of(node):
    """The items of a tuple or list, or the parts of a slice."""
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
    to_read = False

    def __init__(self, test):
        self.result = test


def _while(step, counts, shown):
    head = _Head(step.test)
    steps = _block(step.head, counts, shown, head)
    return While(step.carries, steps, head.result, _block(step.body, counts, shown), step.origin, step.policy)


def _movable(step, counts):
    if not isinstance(step, Let) or len(step.targets) != 1 or not isinstance(step.value, Apply):
        return False
    var = step.targets[0]
    if counts.get(var) != 1 or var.kind in (USER, SAVED, TANGENT) and not _from_store(step.value):
        return False
    function = step.value.function
    if isinstance(function, Quoted) or isinstance(function, Function) and not function.notes.get("nests") or \
            is_draw(step.value) or is_collective(step.value):
        return False                    # their order is the order of lines
    return not updates(step.value) and function is not no_elements


def _from_store(value):
    return is_application(value, operator.getitem) and isinstance(value.args[0], Var) and value.args[0].kind == SAVED


def _destination(steps, k, shown, function):
    """Where a value can move: the place of its reader, the number of steps for the result, or None."""
    step = steps[k]
    var, family = step.targets[0], {(v.hint, v.kind) for v in operands(step.value)}
    wanted = _shown_by(step.value, shown)
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
        of_the_user = function.to_read and step.origin is not None and step.origin.generated == 0 and \
            var.kind == TEMPORARY
        if of_the_user or not isinstance(function.result, Pack):
            limit = 3 * LIMIT if of_the_user else LIMIT
            return len(steps) if size(step.value) + size(function.result) <= limit else None
        # among several results: only what is short
        return len(steps) if size(step.value) <= 4 and var.kind == TEMPORARY or _sum_of_names(step.value) else None
    return None


def _sum_of_names(value):
    return len(value.args) == 2 and size(value) <= 4 and all(isinstance(a, (Var, Const)) for a in value.args) and \
        getattr(value.function, "__name__", "") in ("add", "sub")


def _fits(step, later):
    """Whether a value may stand inside the statement that reads it."""
    var, value = step.targets[0], step.value
    if raised(step) != raised(later) and not shows(value) or raised(step) and not isinstance(later, (Let, Effect)):
        return False
    if isinstance(later, (For, While)) and any(c.init is var for c in later.carries):
        return False
    if value.function is unpacked:
        return False
    if isinstance(later, Let):
        return _fits_operation(step, later)
    if isinstance(later, If):
        return size(later.test) + size(value) <= LIMIT
    if isinstance(later, For):          # a reversed loop reads the rows by index: what has them is made once
        by_index = later.reverse and any(s is var for _, s in later.items) and not shows(value)
        return var.kind == TEMPORARY and not by_index
    return isinstance(later, Effect)


def _fits_operation(step, later):
    """Whether it may stand inside a reader that is an assignment."""
    var, value = step.targets[0], step.value
    if updates(later.value) and later.value.args and later.value.args[0] is var:
        return False
    if isinstance(later.value, Apply) and later.value.function in (shape_of, size_of):
        return False
    if isinstance(later.value, Pack) and var.kind != TEMPORARY:
        return False
    if var.kind == ADJOINT and not _completes(step, later):
        return False
    if _one_line_of_the_user(step, later):
        return True
    if step.origin is None and later.origin is None and var.kind == TEMPORARY:     # parts of a line, made again
        return size(later.value) + size(value) <= 3 * LIMIT
    if _adds_to_a_sum(later):
        return to_read(value) <= LIMIT
    return to_read(substituted(later.value, {var: value})) < LIMIT


def _one_line_of_the_user(step, later):
    """Whether two steps are parts of one statement of the user's, which stays whole unless it is very deep."""
    return step.origin is not None and later.origin is not None and step.origin.generated == 0 and \
        later.origin.generated == 0 and step.origin.same_statement(later.origin) and depth(step.value) < DEEP


def _adds_to_a_sum(step):
    """Whether a statement is printed as `dx += value`."""
    value = step.value
    return role(value) == "sum" and step.targets[0].kind == ADJOINT and any(
        isinstance(a, Var) and a.hint == step.targets[0].hint and a.kind == ADJOINT for a in value.args)


def _completes(step, later):
    """Whether a statement is a partial sum of an adjoint, and a later one of the same group completes it."""
    return later.targets[0].hint == step.targets[0].hint and later.origin is not None and \
        later.origin.same_statement(step.origin)


def _all_made(step):
    yield from made(step)
    for block in blocks(step):
        for inner in block:
            yield from _all_made(inner)


def _updated(step):
    """Values that a statement, or one inside it, may change in place, among them the initial values of loops."""
    yield from updated_in(step)
    for s in walk([step]):
        yield from (c.init for c in getattr(s, "carries", ()) if isinstance(c.init, Var))
