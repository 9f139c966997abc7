# SPDX-License-Identifier: Apache-2.0
"""Simplification: dead code, common subexpressions, loop invariants, and branches on one test.

It takes a function in normal form and returns one that computes the same with less.  Only statements that a
transformation made are merged with others; the user's lines stay as they are.

>>> from gradscribe.ast_transform.examples import gradient, show
>>> made = gradient("def f(x):\\n    return np.exp(x) * x", 1.0)
>>> print(show(made))
grad_f(x):
    exp_x = np.exp(x)
    t = exp_x * x
    t_1 = x * exp_x
    dx = t_1 + exp_x
    return dx
>>> print(show(simplify(made)))
grad_f(x):
    exp_x = np.exp(x)
    t = x * exp_x
    dx = t + exp_x
    return dx
"""
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import (
    is_number,
    may_raise,
    raised,
    reads,
    record_of,
    repeatable,
    role,
    updates,
)
from gradscribe.ast_transform.core.draw import draws, is_draw
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    UNDEFINED,
    Apply,
    Carry,
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
    as_slice,
    blocks,
    is_application,
    made,
    operands,
    rebuilt,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, same_dtype
from gradscribe.ast_transform.core.operations import (
    is_report,
    shape_of,
    size_of,
    unpacked,
)
from gradscribe.ast_transform.passes.algebra import (
    axes_kept,
    constant_carries,
    in_normal_form,
    live_values,
    turned_products,
    without_zeros,
)
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.peephole import by_identities
from gradscribe.ast_transform.passes.products import divided_once, numbers_to_rows, rows_first
from gradscribe.ast_transform.passes.words import says


def simplify(function: Function, numbers: bool = True) -> Function:
    """A function that computes the same with less; it is changed in place.

    numbers: whether scalars that the user's lines compute are moved out of loops
    """
    function.body = drop_dead(function.body, function.result)
    function.body = constant_carries(function)
    ask_entered(function.body)
    function.body, env = merge_common(function.body)
    function.result = substituted(function.result, env)
    function.body, function.result = without_zeros(function)
    function.body = drop_dead(function.body, function.result)
    function.body = divided_once(function)
    function.body = axes_kept(function)
    function.body = turned_products(function)
    function.body = by_identities(function)
    function.body = numbers_to_rows(function)
    function.body = drop_dead(function.body, function.result)
    function.body = in_normal_form(function)
    if function.notes.pop("factored"):
        function.body = drop_dead(function.body, function.result)
        function.body = in_normal_form(function)
        function.notes.pop("factored")
    function.body = axes_kept(function)
    function.body, env = merge_common(function.body)
    function.result = substituted(function.result, env)
    function.body = rows_first(function)
    function.body = hoist(function.body, numbers=numbers)
    function.body = merge_branches(function.body)
    ask_named_values(function)
    function.body = drop_dead(function.body, function.result)
    return function


# --- dead statements --------------------------------------------------------------------------------------------------

def drop_dead(body: list, *results: Any, again: bool = False) -> list:
    """The body without statements that no result, no effect and no draw depends on.

    again: the body runs a second time, so reports are not repeated, and only draws that a result needs are kept.
    """
    live = _Live(body)
    for r in results:
        live.want(r)
    for step in walk(body):
        if isinstance(step, Effect) and not (again and is_report(step.value)) or \
                isinstance(step, Let) and is_draw(step.value) and not again:
            live.keep(step)
            live.want(step.value)
    live.spread()
    return live.rest(body)


class _Live:
    """Mark and sweep: from what is needed, back to the statements that make it.

    maker: {value: (the statement that makes it, its carry, join or source there, or None)}; parents: {id of a
    statement: the statement around it}; needed: values; kept: ids of statements.
    """

    def __init__(self, body):
        self.maker, self.parents = {}, {}
        self.needed, self.kept, self.queue = set(), set(), []
        self.index(body, None)

    def index(self, block, parent):
        for step in block:
            self.parents[id(step)] = parent
            if isinstance(step, Let):
                self.maker.update((t, (step, None)) for t in step.targets)
            elif isinstance(step, (For, While)):
                self.maker.update((v, (step, c)) for c in step.carries for v in (c.inner, c.outer))
                if isinstance(step, For):
                    self.maker[step.index] = (step, None)
                    self.maker.update((v, (step, source)) for v, source in step.items)
            elif isinstance(step, If):
                self.maker.update((j.var, (step, j)) for j in step.joins)
            for inner in blocks(step):
                self.index(inner, step)

    def want(self, node):
        for v in operands(node):
            if v not in self.needed:
                self.needed.add(v)
                self.queue.append(v)

    def keep(self, step):
        """Keeps a statement and those around it, with what decides whether, and how often, they run."""
        while step is not None and id(step) not in self.kept:
            self.kept.add(id(step))
            if isinstance(step, For):
                self.want(step.count)
                for _, source in step.items if len(step.items) > 1 else ():
                    self.want(source)
            elif isinstance(step, (While, If)):
                self.want(step.test)
            step = self.parents[id(step)]

    def spread(self):
        """Marks what the needed values are made of, until nothing is new."""
        while self.queue:
            v = self.queue.pop()
            if v not in self.maker:
                continue
            step, part = self.maker[v]
            self.keep(step)
            if isinstance(step, Let):
                self.want(step.value)
            elif isinstance(step, If):
                self.want(part.then)
                self.want(part.orelse)
            elif isinstance(part, Carry):
                self.needed.add(part.inner)
                self.want(part.init)
                self.want(part.next)
            elif part is not None:
                self.want(part)

    def rest(self, block):
        """The statements of a block that are kept, without the carries, items and joins that nothing needs."""
        out = []
        for step in block:
            if id(step) not in self.kept:
                continue
            new = rebuilt(step, {}, self.rest)
            if isinstance(new, (For, While)):
                new.carries = [c for c in new.carries if c.inner in self.needed or c.outer in self.needed]
            if isinstance(new, For):
                needed = tuple((v, s) for v, s in new.items if v in self.needed)
                if len(new.items) == 1 or not needed:   # of several sources the shortest ends the loop: all stay
                    new.items = needed
            elif isinstance(new, If):
                new.joins = [j for j in new.joins if j.var in self.needed]
                if not new.joins and not new.then and not new.orelse:
                    continue
            out.append(new)
        return out


# --- common subexpressions --------------------------------------------------------------------------------------------

def merge_common(body: list) -> tuple[list, dict[Var, Any]]:
    """(the body with one statement for what is computed twice, {value: the one in its place})."""
    env: dict[Var, Any] = {}

    def visit(block, table):
        out = []
        for step in block:
            step = rebuilt(step, env, lambda b: b)
            if isinstance(step, Let) and len(step.targets) == 1:
                if isinstance(step.value, (Var,)):
                    env[step.targets[0]] = step.value
                    continue
                key = key_of(step.value)
                if key is not None:
                    key = (key, raised(step))
                    earlier = table.get(key)
                    if earlier is not None and (_generated(step) or _generated(earlier) or _plain(step.value)):
                        env[step.targets[0]] = earlier.targets[0]
                        _name_after(earlier.targets[0], step.targets[0])
                        continue
                    table.setdefault(key, step)
            elif isinstance(step, (For, While)):
                if isinstance(step, While):
                    inner = dict(table)
                    step.head = visit(step.head, inner)
                    step.test = substituted(step.test, env)
                    step.body = visit(step.body, dict(inner))
                else:
                    step.body = visit(step.body, dict(table))
                for c in step.carries:
                    c.next = substituted(c.next, env)
            elif isinstance(step, If):
                step.then, step.orelse = visit(step.then, dict(table)), visit(step.orelse, dict(table))
                for j in step.joins:
                    j.then, j.orelse = substituted(j.then, env), substituted(j.orelse, env)
                _merge_joins(step, env)
            out.append(step)
        return out

    body = visit(body, {})
    return body, env


def _merge_joins(step, env):
    """Merges joins of one branch that have the same value in the arm that sets them."""
    kept = []
    for j in sorted(step.joins, key=lambda j: (j.then is UNDEFINED) + (j.orelse is UNDEFINED)):
        if isinstance(j.then, Var) and j.then is j.orelse:
            env[j.var] = j.then
            continue
        alone = j.then if j.orelse is UNDEFINED else j.orelse if j.then is UNDEFINED else None
        if isinstance(alone, Var):
            side = "then" if j.orelse is UNDEFINED else "orelse"
            same = next((k.var for k in kept if getattr(k, side) is alone), None)
            if same is not None:
                env[j.var] = same
                continue
        kept.append(j)
    step.joins = [j for j in step.joins if j in kept]


def _generated(step):
    """Whether a transformation made a statement; without an origin, all but reads of entries, which are printed where
    they are used.
    """
    return step.origin.generated if step.origin is not None else reads(step.value) != "part"


def _plain(value):
    """Whether a value is x.shape[0] or x.size, which may be read wherever it is used."""
    return getattr(value.function, "__name__", "") in ("shape_of", "size_of")


def _name_after(kept, gone):
    if (kept.kind, -says(kept.hint)) > (gone.kind, -says(gone.hint)):
        kept.hint, kept.kind = gone.hint, gone.kind


def key_of(value: Any) -> tuple | None:
    """A key that is equal for operations that compute one value; None if another run may give another value."""
    if not isinstance(value, Apply) or not repeatable(value):
        return None
    if is_draw(value):
        return None
    try:
        return (
            value.function,
            tuple(map(_operand_key, value.args)),
            tuple((k, _operand_key(a)) for k, a in value.kwargs),
        )
    except TypeError:
        return None


def _operand_key(node):
    if isinstance(node, Var):
        return node
    if isinstance(node, Const) and isinstance(node.value, slice):
        return _operand_key(as_slice(node))
    if isinstance(node, Const) and type(node.value) is tuple:
        return ("tuple", tuple(_operand_key(Const(v)) for v in node.value))
    if isinstance(node, Const):
        hash(node.value)
        return ("=", type(node.value), repr(node.value) if isinstance(node.value, float) else node.value)
    if isinstance(node, Pack):
        return (node.kind, tuple(map(_operand_key, node.items)))
    if isinstance(node, Slice):
        return ("slice", tuple(p if p is None else _operand_key(p) for p in (node.start, node.stop, node.step)))
    if isinstance(node, Apply):
        return key_of(node)
    raise TypeError


# --- lengths ----------------------------------------------------------------------------------------------------------

def ask_entered(body: list) -> None:
    """Reads lengths that a loop does not change from the value before the loop, so that they can be hoisted."""
    carried = {v: c for s in walk(body) if isinstance(s, (For, While)) for c in s.carries
               for v in (c.inner, c.outer) if isinstance(c.init, Var) and isinstance(c.next, Var)}
    unset = unset_values(body) if carried else ()       # these may have no value to read a length from
    for step in walk(body) if carried else ():
        if not isinstance(step, Let) or not isinstance(step.value, Apply) or step.value.function is not shape_of:
            continue
        asked, axis = step.value.args
        while (c := carried.get(asked)) is not None and c.init not in unset and all(
                _keeps_length(v, c.init, axis.value) for v in (asked, c.next)):
            asked = c.init
        if asked is not step.value.args[0]:
            step.value = Apply(shape_of, (asked, axis))


def ask_latest(function: Function) -> Function:
    """Reads lengths, and the shape of np.zeros_like(x), from the latest version of an array: an earlier one would have
    to be copied to stay alive.
    """
    if not any(isinstance(s, Let) and reads(s.value) == "shape" for s in walk(function.body)):
        return function
    unset, given, again = unset_values(function.body), {p.value for p in function.params}, set()

    def visit(block, latest):
        for step in block:
            if isinstance(step, Let) and isinstance(step.value, Apply):
                if reads(step.value) == "shape" and isinstance(step.value.args[0], Var):
                    asked, *rest = step.value.args
                    while (asked not in given or asked in again) and (
                            now := latest.get(asked)) is not None and _keeps_what_is_read(step.value, now, asked):
                        asked = now
                    if asked is not step.value.args[0]:
                        step.value = replace(step.value, args=(asked, *rest))
                elif updates(step.value) and isinstance(step.value.args[0], Var):
                    latest[step.value.args[0]] = step.targets[0]
                elif _copies(step.value) and step.value.args[0] in given and step.targets[
                        0].hint == step.value.args[0].hint:     # x = x.copy(): the argument has no name any more
                    latest[step.value.args[0]] = step.targets[0]
                    again.add(step.value.args[0])
            elif isinstance(step, (For, While)):
                carried = [c for c in step.carries if isinstance(c.init, Var) and unset.isdisjoint(
                    (c.inner, c.outer, c.init))]
                for inner in blocks(step):
                    visit(inner, {**latest, **{c.init: c.inner for c in carried}})
                latest.update({c.init: c.outer for c in carried})
            elif isinstance(step, If):
                for inner in blocks(step):
                    visit(inner, dict(latest))

    visit(function.body, {})
    return function


def _keeps_what_is_read(value, now, before):
    """Whether an operation that reads only the shape of an array makes the same from another one."""
    if value.function is shape_of:
        return _keeps_length(now, before, value.args[1].value)
    return _is_alike(now, before)


def _is_alike(now, before):
    """Whether two arrays certainly have one dtype and one shape."""
    a, b = now.fact, before.fact
    return type(a) is type(b) is Array and bool(a.dims) and a.rank == b.rank and same_dtype(a.dtype, b.dtype) and all(
        m.same(n) for m, n in zip(a.dims, b.dims)) and (a.rank == 1 or _has_axes(a) and _has_axes(b))


def _keeps_length(now, before, axis):
    """Whether an axis certainly has the same length in both; an array of a list that may be empty may have one axis."""
    facts = now.fact, before.fact
    if not all(type(f) is Array and f.rank > axis for f in facts) or not facts[0].dims[axis].same(facts[1].dims[axis]):
        return False
    return not axis or _has_axes(facts[1])


def ask_named_values(function: Function) -> None:
    """(p - y).shape[0]  ->  p.shape[0]: reads a length from a named value that has the same one.

    A value that is live for other reasons is preferred: then nothing is computed for its length alone.  Likewise
    np.zeros_like(p - y) becomes np.zeros_like(p), and np.ones_like(p @ V), whose shape no other array has,
    np.ones((p.shape[0], V.shape[1])).
    """
    maker = {t: s.value for s in walk(function.body) if isinstance(s, Let) for t in s.targets}
    asking = [s for s in walk(function.body) if isinstance(s, Let) and reads(s.value) == "shape" and isinstance(
        s.value.args[0], Var)]
    lengths = [s for s in asking if s.value.function in (shape_of, size_of)]
    if len(lengths) < len(asking):
        there = live_values(function.body, function.result, asking).union(p.value for p in function.params)
        function.body = _filled_like_what_is_there(function.body, maker, there)
        lengths = [s for s in walk(function.body) if isinstance(s, Let) and (is_application(
            s.value, shape_of) or is_application(s.value, size_of)) and isinstance(s.value.args[0], Var)]
    there = live_values(function.body, function.result, lengths) if lengths else set()
    for step in lengths:
        value = step.value
        source = maker.get(value.args[0])
        if not _generated(step) and value.args[0] in there and not (isinstance(source, Apply) and _copies(source)):
            continue                    # as the user writes it
        asked, *axis = _shown_by(value.args[0], [a.value for a in value.args[1:]], maker, there)
        if asked is not value.args[0]:
            step.value = Apply(value.function, (asked, *map(Const, axis)), (), value.origin)


def _filled_like_what_is_there(body, maker, there):
    """The body in which no array is computed only for the shape of np.zeros_like(x) and its kin."""
    out = []
    for step in body:
        step = rebuilt(step, {}, lambda block: _filled_like_what_is_there(block, maker, there))
        asked = step.value.args[0] if isinstance(step, Let) and _generated(step) and reads(
            step.value) == "shape" and step.value.function not in (shape_of, size_of) else None
        if isinstance(asked, Var) and asked not in there and isinstance(maker.get(asked), Apply):
            like = next((v for v in _computed_from(asked, maker) if v in there and _is_alike(v, asked)), None)
            if like is not None:
                step.value = replace(step.value, args=(like, *step.value.args[1:]))
            else:
                out += _by_shape(step, asked, maker, there)
        out.append(step)
    return out


def _by_shape(step, asked, maker, there):
    """The statements that read the lengths of arrays that are there, for a new array of another's shape; changes the
    statement that makes it.
    """
    plain, fact = record_of(step.value.function).options.get("by_shape"), asked.fact
    sources = [_shown_by(asked, [k], maker, there) for k in range(fact.rank)]
    if plain is None or step.value.kwargs or not all(v in there for v, _ in sources):
        return []
    lengths = [Var("n", Array(int, (), d)) for d in fact.dims]
    rest = [Const(float(a.value)) if isinstance(a, Const) and fact.kind == "f" else a for a in step.value.args[1:]]
    of_floats = all(np.dtype(fact_of(a).dtype) == np.float64 for a in rest)     # the fill value
    words = () if fact.dtype == np.float64 and of_floats else (("dtype", Const(np.dtype(fact.dtype))),)
    step.value = replace(step.value, function=plain, kwargs=words, args=(
        Pack("tuple", tuple(lengths)), *rest))
    return [Let((n,), Apply(shape_of, (v, Const(axis))), step.origin) for n, (v, axis) in zip(lengths, sources)]


def _computed_from(var, maker):
    """The values that one is computed from, the nearest first."""
    queue = [var]
    for v in queue:
        queue += [o for o in operands(maker.get(v)) if o not in queue]
    return queue[1:]


def _shown_by(var, axis, maker, there):
    """(value, axis) from which to read the length of an axis, or (value,) from which to read the size of an array.

    The nearest live value, one with a name if there is any; else the nearest with a name, or the first of all.
    """
    if type(var.fact) is not Array or any(var.fact.rank <= k for k in axis):
        return var, *axis
    found, queue, wanted, last = {}, [var], var.fact.dims, (var, *axis)
    for v in queue:
        dims = v.fact.dims if type(v.fact) is Array else ()
        alike = len(dims) == len(wanted)
        if not axis:
            shown = () if alike and all(a.same(b) for a, b in zip(dims, wanted)) else None
        else:
            same = [k for k, d in enumerate(dims) if d.same(wanted[axis[0]])]
            shown = axis if alike and axis[0] in same else same[:1] or None
        if shown is not None and (v is var or not any(shown) or _has_axes(v.fact)):
            last = v, *shown
            found.setdefault((v.kind != TEMPORARY, v in there), last)
        made = maker.get(v)
        if isinstance(made, Apply):
            queue += [o for o in operands(made) if o not in queue]
    return next((found[k] for k in ((True, True), (False, True), (True, False)) if k in found), last)


def _has_axes(fact):
    """Whether an array has all its axes: one that is made of a list that may be empty may have a single axis."""
    first = fact.dims[0].normal().symbol
    return first is None or first.size is not None


# --- invariant statements ---------------------------------------------------------------------------------------------

def hoist(body: list, transposes: bool = True, numbers: bool = True) -> list:
    """Loop-invariant code motion: the body with what a loop computes from values that it does not change before it.

    A scalar that is computed there already is not computed twice.  transposes: whether they are moved; before reverse
    mode they are not, so that each iteration adds to the adjoint of the matrix itself.  numbers: whether scalars of the
    user's lines are moved; in source for reading they are not, because each would need a name.
    """
    known: dict[Any, Var]
    out, known = [], {}
    for step in body:
        step = rebuilt(step, {}, lambda block: hoist(block, transposes, numbers))
        if isinstance(step, Let) and not raised(step) and _makes_a_number(step):
            known.setdefault(key_of(step.value), step.targets[0])
        if isinstance(step, (For, While)):
            inside = set(all_made([step])) - {c.outer for c in step.carries}
            env: dict[Var, Any]
            kept, env = [], {}
            for inner in step.body:
                if isinstance(inner, Let) and _movable(inner) and not inside & set(operands(inner.value)) and (
                        transposes or role(inner.value) != "transpose") and (
                            numbers or not _is_read_where_it_is_used(inner)):
                    inside -= set(inner.targets)
                    value = substituted(inner.value, env)
                    target, key = inner.targets[0], key_of(value) if _makes_a_number(inner) else None
                    if key in known and key is not None and target.kind == TEMPORARY:
                        env[target] = known[key]
                        continue
                    known.setdefault(key, target)
                    out.append(Let(inner.targets, value, inner.origin))
                else:
                    kept.append(inner)
            step.body = kept
            (step,) = replaced([step], env) if env else (step,)
        out.append(step)
    return out


def _is_read_where_it_is_used(step):
    """Whether a number would only get a name by being moved: one of the user's lines, and 2 * dx."""
    if not _makes_a_number(step) or step.targets[0].kind != TEMPORARY:
        return False
    if step.origin is not None and step.origin.generated:
        return role(step.value) == "product" and any(isinstance(a, Const) for a in step.value.args)
    return getattr(record_of(step.value.function), "kind", None) == "elementwise"


def _copies(value):
    record = record_of(value.function)
    return record is not None and record.options.get("allocates") == "copied" and isinstance(value.args[0], Var)


def _makes_a_number(step):
    return len(step.targets) == 1 and is_number(step.targets[0])


def parts_first(body: list) -> list:
    """The body with reads of containers that a loop does not change before the loop.

    Otherwise each iteration would add to the adjoint of the whole container.
    """
    out = []
    for step in body:
        step = rebuilt(step, {}, parts_first)
        if isinstance(step, (For, While)):
            inside = set(all_made([step])) - {c.outer for c in step.carries}
            lifted: list = []
            for block in blocks(step):
                _lift(block, inside, lifted)
            out += lifted
        out.append(step)
    return out


def _lift(block, inside, lifted):
    for step in list(block):
        if (
            isinstance(step, Let)
            and isinstance(step.value, Apply)
            and step.value.function in (operator.getitem, getattr, unpacked)
            and isinstance(step.value.args[0], Var)
            and isinstance(step.value.args[0].fact, Sequence)
            and not inside & set(operands(step.value))
        ):
            block.remove(step)
            inside -= set(step.targets)
            lifted.append(step)
        for inner in blocks(step):
            _lift(inner, inside, lifted)


def _movable(step):
    value = step.value
    return isinstance(value, Apply) and repeatable(value) and not is_draw(value) and not may_raise(value) and \
        not raised(step)


# --- branches ---------------------------------------------------------------------------------------------------------

def merge_branches(body: list) -> list:
    """if c: a; (others) if c: b  ->  (others) if c: a; b"""
    out: list = []
    for step in body:
        step = rebuilt(step, {}, merge_branches)
        if isinstance(step, If):
            for k in range(len(out) - 1, -1, -1):
                earlier = out[k]
                if isinstance(earlier, If) and _same_test(earlier.test, step.test) and _can_join(out[k:], step):
                    del out[k]
                    step = _joined(earlier, step)
                    break
        out.append(step)
    return out


def _same_test(a, b):
    return a is b


def _can_join(between, step):
    """Whether an earlier branch may move down to the later one: nothing between reads what it makes."""
    earlier, *others = between
    gives = set(made(earlier)) | set(all_made([earlier]))
    if draws([earlier]) and draws(others):
        return False
    return not any(gives & set(all_reads(o)) for o in others) and not any(
        isinstance(s, Effect) for s in walk([earlier, *others])
    )


def _joined(earlier, later):
    then_env = {j.var: j.then for j in earlier.joins}
    else_env = {j.var: j.orelse for j in earlier.joins}
    new = If(
        later.test,
        earlier.then + replaced(later.then, then_env),
        earlier.orelse + replaced(later.orelse, else_env),
        list(earlier.joins),
        later.origin,
    )
    for j in later.joins:
        j.then, j.orelse = substituted(j.then, then_env), substituted(j.orelse, else_env)
        new.joins.append(j)
    new.then, new.orelse = merge_branches(new.then), merge_branches(new.orelse)
    return new

