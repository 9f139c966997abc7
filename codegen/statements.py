# SPDX-License-Identifier: Apache-2.0
"""Prints the statements of the normal form as Python statements (gast trees).

Statements that the backward sweep adds are printed in groups, each below a comment with the user's statement that it
belongs to.
"""
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import gast

from gradscribe.ast_transform.core.alias import raised, reads
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    SAVED,
    TANGENT,
    USER,
    Apply,
    Const,
    Let,
    Undefined,
    Var,
    is_application,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import (
    Quoted,
    add_at,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    shape_of,
)
from gradscribe.ast_transform.passes.out_of_ssa import summed_up
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.codegen.came_from import parts_of
from gradscribe.codegen.expressions import expression, hashable, quoted
from gradscribe.codegen.trees import as_index, as_test, assign, const, dotted, method_call, name

MARK = "__note__"


class _Part(NamedTuple):
    """A statement that takes an entry of a value, which may be part of an unpacking."""
    whole: gast.AST                 # the value
    place: int
    number: int                     # of its entries
    together: Any                   # equal for statements to be joined: the user's statement, or the array of a shape

    def is_with(self, other):
        same = getattr(self.together, "same_statement", self.together.__eq__)
        return type(self.together) is type(other.together) and same(other.together)


def statements_of(writer: Any, steps: list) -> list:
    """The printed statements of a block, with comments that show the user's."""
    out, heading, around_it = [], writer.heading, writer.heading
    for step in steps:
        if step.origin is not None and step.origin.generated == 1 and of_one_statement(step):
            if heading is None or not heading.same_statement(step.origin):
                heading = step.origin
                if heading.statement:
                    out.append(comment(heading.statement))
                    out[-1].came_from = [heading.heading()]
        elif step.origin is not None:
            heading = None
        if getattr(step, "note", ""):
            out.append(comment(step.note))
        errors, around = errors_in(step), writer.errors
        writer.errors, writer.heading = errors or around, heading
        made = STEPS[type(step).__name__](writer, step)
        writer.errors, writer.heading = around, around_it
        for node in made:
            if not hasattr(node, "came_from"):
                node.came_from = [step.origin, *parts_of(step)]
        if errors and errors != around and made:
            made = raising(errors, made, out)
        elif made and step.origin is not None and step.origin.raised() and not errors and \
                getattr(out[-1] if out else None, "errors", None) == step.origin.raised():
            made = raising(step.origin.raised(), made, out)
        out += made
        exchange(writer, out)
        unpack(writer, step, out)
    return out


def unpack(writer, step, out):
    """n, d = x.shape for n = x.shape[0]; d = x.shape[1], and likewise a, b = x in one statement of the user's."""
    value = step.value if isinstance(step, Let) and len(step.targets) == 1 and step.targets[0].kind in (
        USER, TANGENT) else None
    of_shape = is_application(value, shape_of)
    taken = isinstance(value, Apply) and len(value.args) == 2 and (of_shape or reads(value) == "part")
    asked, place = value.args if taken else (None, None)
    if not isinstance(asked, Var) or type(asked.fact) is not Array or not asked.fact.dims or not isinstance(
            place, Const) or type(place.value) is not int or not out or step.origin is None:
        return
    whole, first = expression(writer, asked), asked.fact.dims[0].normal()
    if of_shape:
        whole, number = gast.Attribute(whole, "shape", gast.Load()), asked.fact.rank
    else:
        number = first.offset if first.symbol is None else 1
    wanted = gast.Subscript(whole, const(place.value), gast.Load())
    if number < 2 or not isinstance(out[-1], gast.Assign) or not isinstance(out[-1].targets[0], gast.Name) or \
            gast.dump(out[-1].value) != gast.dump(wanted):
        return
    out[-1].part = _Part(whole, place.value, number, gast.dump(whole) if of_shape else step.origin)
    if place.value == number - 1:
        together(out)


def together(out):
    """Joins the last statements, which unpack values in one statement of the user's, into one for each value."""
    last = out[-1].part
    run = list(itertools.takewhile(lambda s: hasattr(s, "part") and s.part.is_with(last), reversed(out)))[::-1]
    values, names = {}, {s.targets[0].id for s in run}
    for s in run:
        values.setdefault(gast.dump(s.part.whole), []).append(s)
    if not all([s.part.place for s in found] == list(range(found[0].part.number)) for found in values.values()) or \
            any(isinstance(n, gast.Name) and n.id in names for s in run for n in nodes(s.part.whole)):
        return
    out[len(out) - len(run):] = made = [
        assign(gast.Tuple([s.targets[0] for s in found], gast.Store()), found[0].part.whole)
        for found in values.values()]
    for node, found in zip(made, values.values()):
        node.came_from = [o for s in found for o in s.came_from]


def exchange(writer, out):
    """a, b = b, a for t = a; a = b; b = t, where a and b are scalar entries and t is not read elsewhere."""
    if len(out) < 3 or not all(isinstance(s, gast.Assign) and len(s.targets) == 1 for s in out[-3:]):
        return
    (kept, first, second), places = out[-3:], [s.targets[0] for s in out[-2:]]
    if not isinstance(kept.targets[0], gast.Name) or not isinstance(second.value, gast.Name) or \
            second.value.id != kept.targets[0].id or second.value.id not in writer.numbers_read_once or not all(
                isinstance(p, gast.Subscript) for p in places):
        return
    if gast.dump(_loaded(places[0])) == gast.dump(kept.value) and gast.dump(_loaded(places[1])) == gast.dump(
            first.value):
        node = assign(gast.Tuple(places, gast.Store()), gast.Tuple([first.value, kept.value], gast.Load()))
        node.came_from = [o for s in out[-3:] for o in s.came_from]
        out[-3:] = [node]


def errors_in(step: Any) -> Any:
    """The floating-point errors that raise in a statement and in all statements inside it."""
    found = {raised(s) for s in walk([step]) if not isinstance(s, Let) or raised(s) or not
             s.origin or not s.origin.raised()}
    return found.pop() if len(found) == 1 else ()


def raising(errors, made, out):
    """Puts statements into a `with np.errstate`, or into the one before if that has the same errors."""
    if out and getattr(out[-1], "errors", None) == errors:
        out[-1].body += made
        return []
    modes = ["all"] if len(errors) == 4 else errors
    call = gast.Call(dotted("np.errstate"), [], [gast.keyword(k, const("raise")) for k in modes])
    block = gast.With([gast.withitem(call, None)], made, None)
    block.errors, block.came_from = errors, made[0].came_from
    return [block]


def target_of(writer: Any, var: Any) -> Any:
    return name(writer.naming[var], gast.Store())


def _let(writer, step):
    value = step.value
    if isinstance(value, Apply):
        special = UPDATES.get(value.function) if hashable(value.function) else None
        if special is not None:
            return special(writer, step)
        if isinstance(value.function, Quoted) and isinstance(value.function.tree, gast.stmt):
            return [quoted(writer, value, writer.naming[step.targets[0]])]
    node = expression(writer, value)
    if step.origin is not None and step.origin.generated:
        node = minus_first(node, writer.signed)
    if is_draw(value) and not any(writer.counts.get(t) for t in step.targets) and step.targets[0].kind != USER:
        return [gast.Expr(node)]
    if step.targets[0] in writer.passes.numbers and step.targets[0].kind != USER:
        writer.passes.assignments.append(assign(target_of(writer, step.targets[0]), node))
        return writer.passes.assignments[-1:]
    if len(step.targets) == 1:
        target = writer.naming[step.targets[0]]
        if isinstance(node, gast.Name) and node.id == target:
            return []
        return [augmented(writer, step, target, node)]
    return [assign(gast.Tuple([target_of(writer, t) for t in step.targets], gast.Store()), node)]


def augmented(writer, step, target, node):
    """Prints dx = dx + v as dx += v, and x = x + v where the user writes x += v, unless it may be a 0-d array that
    aliases another.
    """
    fact = step.targets[0].fact
    if isinstance(step.value, Apply) and any(v in writer.without_axes for v in operands(step.value)):
        return assign(name(target, gast.Store()), node)
    ours = step.origin is not None and (
        step.origin.generated or step.origin.augments or step.targets[0].kind == SAVED)
    if isinstance(fact, Array) and fact.dims:
        ours = any(writer.naming.names.get(v) == target for v in summed_up(step) if (id(step), v) in
                   writer.naming.in_place)
    operators = (gast.Add, gast.Sub)
    if isinstance(fact, Array) and not fact.dims and step.origin is not None and step.origin.augments:
        operators = (gast.Add, gast.Sub, gast.Mult, gast.Div)
    made = update_of(name(target, gast.Store()), node, operators) if ours and isinstance(fact, Array) else None
    return made or assign(name(target, gast.Store()), node)


def base_of(writer, step):
    """(statements that copy the base of an update if others read it, its name)."""
    base, target = step.value.args[0], writer.naming[step.targets[0]]
    if id(step) not in writer.naming.copies:
        return [], target
    node = expression(writer, base)
    if isinstance(base, Var) and isinstance(base.fact, Array):
        node = gast.Call(gast.Attribute(node, "copy", gast.Load()), [], [])
    elif isinstance(base, Var):
        node = gast.Call(name("list"), [node], [])
    return [assign(name(target, gast.Store()), node)], target


def _put(writer, step):
    before, target = base_of(writer, step)
    _, index, value = step.value.args
    place = gast.Subscript(name(target), expression(writer, index), gast.Store())
    value = expression(writer, value)
    if step.origin is not None and step.origin.generated:
        value = minus_first(value, writer.signed)
    if step.value.function is put:
        fact = step.targets[0].fact         # in a list, += would change the list's elements in place
        numbers = type(fact) is Array and fact.kind in "fc"     # NumPy refuses /= on integers
        made = update_of(place, value, (gast.Add, gast.Sub, gast.Mult, gast.Div)) if numbers else None
        return [*before, made or assign(place, value)]
    flip, value = sign_of(value)
    return [*before, gast.AugAssign(place, gast.Sub() if flip else gast.Add(), value)]


def _add_at(writer, step):
    before, target = base_of(writer, step)
    _, index, value = step.value.args
    index = expression(writer, index)
    if isinstance(index, gast.Tuple):
        index.elts = [as_index(e) for e in index.elts]
    call = gast.Call(dotted("np.add.at"), [name(target), as_index(index), expression(writer, value)], [])
    return [*before, gast.Expr(call)]


def _push(writer, step):
    before, target = base_of(writer, step)
    return [*before, gast.Expr(method_call(target, "append", expression(writer, step.value.args[1])))]


def _push_front(writer, step):
    before, target = base_of(writer, step)
    return [*before, gast.Expr(method_call(target, "insert", const(0), expression(writer, step.value.args[1])))]


def _pop(writer, step):
    before, target = base_of(writer, step)
    return [*before, assign(target_of(writer, step.targets[1]), method_call(target, "pop"))]


def _pop_front(writer, step):
    before, target = base_of(writer, step)
    return [*before, assign(target_of(writer, step.targets[1]), method_call(target, "pop", const(0)))]


def _effect(writer, step):
    node = quoted(writer, step.value)
    return [node if isinstance(node, gast.stmt) else gast.Expr(node)]


def _if(writer, step):
    then = statements_of(writer, step.then) + copies(writer, [(j.var, j.then) for j in step.joins])
    orelse = statements_of(writer, step.orelse) + copies(writer, [(j.var, j.orelse) for j in step.joins])
    if says_the_same(then, orelse):
        return [] if all(map(is_comment, then)) else then
    then, orelse = ([] if all(map(is_comment, arm)) else arm for arm in (then, orelse))
    if not then and not orelse:
        return []
    ternary = conditional(writer, then, orelse, step.test)
    if ternary is not None:
        ternary.came_from = [step.origin, *(o for s in (*then, *orelse) for o in getattr(s, "came_from", ()))]
        return [ternary]
    if not then:
        return [gast.If(negation(writer, step.test), orelse, [])]
    return [gast.If(test_of(writer, step.test), then, orelse)]


def conditional(writer, then, orelse, test):
    both = [*then, *orelse]
    if len(then) == len(orelse) == 1 and all(isinstance(s, gast.Assign) and isinstance(
            s.targets[0], gast.Name) for s in both) and then[0].targets[0].id == orelse[0].targets[0].id and sum(
            1 for s in both for _ in gast.walk(s.value)) <= 16:
        return assign(then[0].targets[0], gast.IfExp(test_of(writer, test), then[0].value, orelse[0].value))
    return None


def test_of(writer: Any, test: Any) -> Any:
    return as_test(expression(writer, test))


def negation(writer: Any, test: Any) -> Any:
    node = test_of(writer, test)
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        return node.operand
    return gast.UnaryOp(gast.Not(), node)


def copies(writer: Any, pairs: Any) -> list:
    """Parallel assignments, in order: a tuple where one would overwrite what another reads."""
    moves: list = []
    for var, value, *copied in pairs:
        target = writer.naming.names.get(var)
        if isinstance(value, Const) and isinstance(value.value, Undefined) and target not in writer.unset.names:
            continue
        node = expression(writer, value)
        if copied and copied[0]:
            copy = gast.Call(gast.Attribute(node, "copy", gast.Load()), [], [])
            node = gast.IfExp(gast.Compare(node, [gast.Is()], [const(None)]), const(None), copy) \
                if var in writer.unset.values else copy
        if target is None or isinstance(node, gast.Name) and node.id == target:
            continue
        if target in [t for t, _ in moves]:
            continue
        moves.append((target, node))
    out = []
    while moves:
        free = next((k for k, (t, _) in enumerate(moves) if not any(
            _reads(n, t) for j, (_, n) in enumerate(moves) if j != k)), None)
        if free is None:
            out.append(assign(gast.Tuple([name(t, gast.Store()) for t, _ in moves], gast.Store()),
                              gast.Tuple([n for _, n in moves], gast.Load())))
            break
        target, node = moves.pop(free)
        out.append(assign(name(target, gast.Store()), node))
    return out


def update_of(place, value, operators):
    """place += v for place = place + v, and so on; None if the value is no update of the place."""
    if not isinstance(value, gast.BinOp) or not isinstance(value.op, operators):
        return None
    here = gast.dump(gast.Subscript(place.value, place.slice, gast.Load()) if isinstance(
        place, gast.Subscript) else name(place.id))
    if gast.dump(value.left) == here:
        flip, right = sign_of(value.right) if isinstance(value.op, (gast.Add, gast.Sub)) else (False, value.right)
        turned = {gast.Add: gast.Sub, gast.Sub: gast.Add}
        return gast.AugAssign(place, turned[type(value.op)]() if flip else value.op, right)
    if isinstance(value.op, (gast.Add, gast.Mult)) and gast.dump(value.right) == here:
        return gast.AugAssign(place, value.op, value.left)
    return None


def minus_first(node, signed):
    """-a * b for the equal -(a * b), in every part of an expression.

    signed: the names that may be negated: NumPy refuses that for booleans.
    """
    for n in nodes(node):
        for field, value in gast.iter_fields(n):
            if isinstance(value, gast.AST):
                setattr(n, field, _moved_in(value, signed))
            elif isinstance(value, list):
                value[:] = [_moved_in(v, signed) if isinstance(v, gast.AST) else v for v in value]
    return _moved_in(node, signed)


def _moved_in(node, signed):
    """A negated product with the minus at its first factor, if that is a number, a name, or an entry of a name."""
    if not (isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub) and isinstance(
            node.operand, gast.BinOp) and isinstance(node.operand.op, (gast.Mult, gast.Div))):
        return node
    product = last = node.operand
    while isinstance(last.left, gast.BinOp) and isinstance(last.left.op, (gast.Mult, gast.Div)):
        last = last.left
    first = last.left
    while isinstance(first, gast.Subscript):
        first = first.value
    if not (isinstance(first, gast.Name) and first.id in signed or isinstance(first, gast.Constant) and type(
            first.value) in (int, float)):
        return node
    last.left = gast.UnaryOp(gast.USub(), last.left)
    return product


def sign_of(node):
    """(whether an expression begins with a minus, the expression without it)."""
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        return True, node.operand
    if isinstance(node, gast.BinOp) and isinstance(node.op, (gast.Mult, gast.Div)):
        flip, left = sign_of(node.left)
        return flip, gast.BinOp(left, node.op, node.right) if flip else node
    return False, node


def _loaded(place):
    return gast.Subscript(place.value, place.slice, gast.Load())


def _reads(node, identifier):
    return any(isinstance(n, gast.Name) and n.id == identifier for n in nodes(node))


def says_the_same(one: Any, other: Any) -> bool:
    """Whether two blocks of printed statements are equal, apart from comments."""
    return [gast.dump(s) for s in one if not is_comment(s)] == [gast.dump(s) for s in other if not is_comment(s)]


def of_one_statement(step) -> bool:
    """Whether all statements in a step come from one statement of the user's, as in the loop of a rule."""
    return all(s.origin is not None and s.origin.generated == 1 and s.origin.same_statement(step.origin)
               for s in walk([step]))


def is_comment(statement: Any) -> bool:
    return isinstance(statement, gast.Assign) and getattr(statement.targets[0], "id", None) == MARK


def comment(words: Any) -> Any:
    return assign(name(MARK, gast.Store()), const(words))

UPDATES = {put: _put, put_add: _put, add_at: _add_at, push: _push, push_front: _push_front, pop: _pop,
           pop_front: _pop_front}
STEPS: dict[str, Callable[..., list]] = {"Let": _let, "Effect": _effect, "If": _if}     # loop_statements.py adds loops
