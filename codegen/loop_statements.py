# SPDX-License-Identifier: Apache-2.0
"""Prints loops as Python statements, those that exits.py has found to be left early with a `break`."""
import operator

import gast

from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Var, is_application
from gradscribe.ast_transform.core.kinds import Sequence
from gradscribe.ast_transform.core.operations import shape_of, unpacked
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.types import nested
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.codegen.came_from import parts_of
from gradscribe.codegen.exits import exit_of, is_flag, is_set
from gradscribe.codegen.expressions import expression
from gradscribe.codegen.statements import STEPS, copies, is_comment, negation, statements_of, target_of, test_of
from gradscribe.codegen.trees import assign, const, name


def for_loop(writer, step):
    used = index_used(writer, step)
    before = into_loop(writer, step.carries)
    steps, start, targets, sources = list(step.body), [], [], [source for _, source in step.items]
    for v, _ in step.items:
        value = steps[0].value if steps and isinstance(steps[0], Let) else None
        if isinstance(v.fact, Sequence) and is_application(value, unpacked) and value.args[0] is v and \
                writer.counts.get(v, 0) == 1:
            targets.append(gast.Tuple([target_of(writer, t) for t in steps.pop(0).targets], gast.Store()))
        else:
            targets.append(target_of(writer, v))
    count = writer.passes.numbers.get(step.count, step.count) if isinstance(step.count, Var) else step.count
    whole = all(_covers(s, step.count) for s in sources) or len(step.items) > 1 and not step.reverse and \
        _ends_with_shortest(sources, count)
    listed = bool(sources) and whole and all(_is_listed(s) for s in sources)
    index = name(writer.naming.names.get(step.index, "_"), gast.Store())
    if not sources or not whole or step.reverse and (used or not listed) or not listed and used and len(sources) > 1:
        place = name(index.id)
        iterator = gast.Call(name("range"), [expression(writer, step.count)], [])
        start = [assign(target, element(writer, source, place)) for source, target in zip(sources, targets)]
        target = index if used or sources else name("_", gast.Store())
    else:
        nodes = [expression(writer, s) for s in sources]
        iterator = nodes[0] if len(nodes) == 1 else gast.Call(name("zip"), nodes, [])
        target = targets[0] if len(targets) == 1 else gast.Tuple(targets, gast.Store())
        if used:
            iterator = gast.Call(name("enumerate"), [iterator], [])
            target = gast.Tuple([index, target], gast.Store())
        if step.reverse and len(nodes) > 1:
            iterator = gast.Call(name("zip"), [gast.Call(name("reversed"), [n], []) for n in nodes], [])
    if step.reverse and not (isinstance(iterator, gast.Call) and getattr(iterator.func, "id", "") == "zip"):
        iterator = gast.Call(name("reversed"), [iterator], [])
    if id(step) in writer.exits:
        body = left_pass(writer, writer.exits[id(step)], step.carries, start)
    else:
        body = start + statements_of(writer, steps) + next_pass(writer, step.carries)
    loop = gast.For(target, iterator, _with_a_statement(body), [], None)
    return [*before, loop, *out_of_loop(writer, step.carries)]


def element(writer, source, index):
    if isinstance(source, Apply) and source.function is range:
        start, _, step = source.args
        back = isinstance(step, Const) and step.value < 0
        by = Const(-step.value) if back else step
        one = isinstance(by, Const) and by.value == 1
        moved = index if one else gast.BinOp(expression(writer, by), gast.Mult(), index)
        if isinstance(start, Const) and start.value == 0:
            return gast.UnaryOp(gast.USub(), moved) if back else moved
        return gast.BinOp(expression(writer, start), gast.Sub() if back else gast.Add(), moved)
    return gast.Subscript(expression(writer, source), index, gast.Load())


def index_used(writer, step):
    found = writer.exits.get(id(step))
    return index_used_in(writer, found) if found is not None else writer.counts.get(step.index, 0) > 0


def index_used_in(writer, found):
    """Whether a pass reads its index, other than in the test, its increment and the loop's items."""
    return writer.counts.get(found.counter.inner, 0) > 2 + len(found.items)


def while_loop(writer, step):
    found = exit_of(step, writer.counts, writer.passes.numbers, writer.naming.names)
    if found is None or not keep_their_names(writer, found):
        return plain_while_loop(writer, step)
    flag, told = found.flag, writer.counts.get(found.flag.outer, 0) > 0
    carries = [c for c in step.carries if c is not found.counter and (c is not flag or told)]
    if found.counter is not None:
        loop = For(found.counter.inner, found.rest.args[1], found.items, carries, [], step.origin)
        writer.exits[id(loop)] = found
        return for_loop(writer, loop)
    before = into_loop(writer, carries)
    body = left_pass(writer, found, carries, [])
    loop = gast.While(gast.Constant(True, None) if found.rest is None else test_of(writer, found.rest), body, [])
    return [*before, loop, *out_of_loop(writer, carries)]


def keep_their_names(writer, found):
    """Whether each counter that is incremented elsewhere keeps one name."""
    names = writer.naming.names
    return all(names.get(s.targets[0]) == names.get(s.value.args[0]) for s in found.first)


def left_pass(writer, found, carries, start):
    """The statements of a pass of a loop that is left early; `start` sets its items."""
    wanted = [c for c in carries if writer.counts.get(c.outer, 0) and c is not found.flag]
    writer.leaving.append((found, wanted))
    body = [*statements_of(writer, found.first), *start, *until(writer, found.body, found.flag.next, [])]
    writer.leaving.pop()
    return [*body, *statements_of(writer, found.last), *next_pass(writer, [c for c in carries if c is not found.flag])]


def into_loop(writer, carries):
    return copies(writer, [(c.inner, c.init, (id(c), "init") in writer.naming.copied_in) for c in carries])


def out_of_loop(writer, carries):
    return copies(writer, [(c.outer, c.inner) for c in carries])


def next_pass(writer, carries):
    return copies(writer, [(c.inner, c.next, (id(c), "next") in writer.naming.copied_in) for c in carries])


def until(writer, block, value, pending):
    """A block whose last branch may leave the loop; `pending`: the copies of the enclosing branches."""
    *front, branch = block
    join = next(j for j in branch.joins if j.var is value)
    out, arms = statements_of(writer, front), []
    for side in ("then", "orelse"):
        pairs = [(j.var, getattr(j, side)) for j in branch.joins if j is not join]
        arms.append(arm(writer, getattr(branch, side), getattr(join, side), pairs, pending))
    then, orelse = arms
    if is_set(join.then):                   # what follows a break needs no else
        node, rest = gast.If(test_of(writer, branch.test), then, []), orelse
    elif is_set(join.orelse):
        node, rest = gast.If(negation(writer, branch.test), orelse, []), then
    elif not then:
        node, rest = gast.If(negation(writer, branch.test), orelse, []), []
    else:
        node, rest = gast.If(test_of(writer, branch.test), then, orelse), []
    node.came_from = [branch.origin, *parts_of(branch)]
    return [*out, node, *rest]


def arm(writer, block, value, pairs, pending):
    found, wanted = writer.leaving[-1]
    if is_set(value):
        out = [*statements_of(writer, block), *copies(writer, pairs)]
        for outer in reversed(pending):
            out += copies(writer, outer)
        if writer.counts.get(found.flag.outer, 0):
            out += copies(writer, [(found.flag.inner, Const(True))])
        needed = [s for s in found.last if any(c.next is s.targets[0] for c in wanted)]
        return [*out, *statements_of(writer, needed), *next_pass(writer, wanted), gast.Break()]
    if is_flag(value, found.flag):
        return [*statements_of(writer, block), *copies(writer, pairs)]
    return [*until(writer, block, value, [*pending, pairs]), *copies(writer, pairs)]


def plain_while_loop(writer, step):
    """A while loop that tests before each pass."""
    before = into_loop(writer, step.carries)
    head = statements_of(writer, step.head)
    flag = first_pass_apart(step, writer.counts) if not head else None
    if flag is not None:
        return peeled_loop(writer, step, flag, before)
    body = statements_of(writer, step.body) + next_pass(writer, step.carries)
    if head:
        stop = gast.If(negation(writer, step.test), [gast.Break()], [])
        loop = gast.While(const(True), [*head, stop, *body], [])
    else:
        loop = gast.While(test_of(writer, step.test), _with_a_statement(body), [])
    return [*before, loop, *out_of_loop(writer, step.carries)]


def peeled_loop(writer, step, flag, before):
    """A while loop that begins with one arm of a branch in its first pass, and with the other in later passes.

    The first arm is printed before the loop, which tests before the other one.
    """
    carries = [c for c in step.carries if c is not flag]
    at = next(k for k, s in enumerate(step.body) if isinstance(s, If))
    branch, rest = step.body[at], [*statements_of(writer, step.body[at + 1:]), *next_pass(writer, carries)]
    first, later = ([*statements_of(writer, step.body[:at]), *statements_of(writer, getattr(branch, side)), *copies(
        writer, [(j.var, getattr(j, side)) for j in branch.joins])] for side in ("then", "orelse"))
    if rest:
        loop = gast.While(const(True), [*rest, gast.If(negation(writer, step.test), [gast.Break()], []), *later], [])
    else:
        loop = gast.While(test_of(writer, step.test), _with_a_statement(later), [])
    gone = writer.naming[flag.inner]
    before = [s for s in before if getattr(s.targets[0], "id", None) != gone and not is_set_first(s, first)]
    return [*before, *first, loop, *out_of_loop(writer, carries)]


def first_pass_apart(loop, counts):
    """The carry that says whether a pass is the first, if a loop begins with a branch on it; else None.

    At most one statement may precede the branch, since it is printed twice.
    """
    branch = next((s for s in loop.body[:2] if isinstance(s, If)), None) if loop.policy == "entered" else None
    return next((c for c in loop.carries if branch is not None and branch.test is c.inner and counts.get(
        c.inner) == 1 and not counts.get(c.outer) and isinstance(c.init, Const) and isinstance(c.next, Const) and
        c.init.value is True and c.next.value is False), None)


def is_set_first(statement, block):
    """Whether a block overwrites the name that a statement sets to a constant, before reading it."""
    if not isinstance(statement.value, gast.Constant) or not isinstance(statement.targets[0], gast.Name):
        return False
    wanted = statement.targets[0].id
    for s in block:
        simple = isinstance(s, gast.Assign)
        if not simple or any(isinstance(n, gast.Name) and n.id == wanted for n in nodes(s.value)):
            return False
        if any(isinstance(t, gast.Name) and t.id == wanted for t in s.targets):
            return True
    return False


def _is_listed(source):
    """Whether a source is a container or a range, which reversed() takes."""
    return isinstance(fact_of(source), Sequence) if isinstance(source, Var) else \
        is_application(source, range) or isinstance(_place_in(source)[1], slice)


def _place_in(node):
    """(container, place) of container[place] where the place is a constant, an index or a slice; else (None, None)."""
    known = is_application(node, operator.getitem) and isinstance(node.args[1], Const)
    return (node.args[0], node.args[1].value) if known else (None, None)


def _elements(source):
    """The number of elements of a container, a slice of one or a container inside one; None for any other value."""
    def held(node):
        if isinstance(node, Var):
            return node.fact
        container, key = _place_in(node)
        whole = held(container) if container is not None else None
        if not isinstance(whole, Sequence):
            return None
        if isinstance(key, slice):
            return Sequence(whole.kind, whole.elements[key])
        return whole.elements[whole.keys.index(key) if whole.kind == "dict" else key]
    found = held(source)
    return len(found.elements) if isinstance(found, Sequence) else None


def _covers(source, count):
    """Whether a loop of `count` passes iterates over the whole of its source."""
    if is_application(source, range):
        return not is_application(count, min) and not (isinstance(count, Var) and count.hint.startswith("min"))
    held = _elements(source)
    if held is not None:
        return isinstance(count, Const) and count.value == held
    length = fact_of(count).length if isinstance(count, (Var, Const)) else None
    if isinstance(count, Apply) and count.function is shape_of and isinstance(count.args[0], Var):
        length = count.args[0].fact.dims[count.args[1].value]
    return length is not None and length.same(nested(source).dims[0])


def _ends_with_shortest(sources, count):
    """Whether zip of sources, none of them shorter than the loop, ends with the loop."""
    lengths = count.args if is_application(count, min) else (count,)
    return all(any(_covers(s, n) for s in sources) for n in lengths)


def _with_a_statement(body) -> list:
    """The body of a loop, with a `pass` if it has only comments."""
    return [*body, gast.Pass()] if all(map(is_comment, body)) else body


STEPS.update(For=for_loop, While=while_loop)
