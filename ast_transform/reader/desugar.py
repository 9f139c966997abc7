# SPDX-License-Identifier: Apache-2.0
"""Desugaring of the user's syntax tree: one spelling for each meaning.

Statements after an early return, a break or a continue move into the branch that does not take it.  A break sets a flag
that the loop tests; a return inside a loop sets another, which is tested after the loop.  A loop's else follows the
loop, an annotated assignment becomes an assignment, and a match becomes a chain of branches.

>>> print(show("def f(x):\\n    if x > 0:\\n        return x\\n    return -x"))
if x > 0:
    return x
else:
    return -x
"""
import ast
from typing import Any

import gast

from gradscribe.ast_transform.source.exits import endless, ends, gives, leaves
from gradscribe.ast_transform.source.trees import nodes

RETURNED = "value"          # followed by blanks: the variable that a return inside a loop sets


class Exits:
    """The flags for the early exits of one loop: their names, and which of them are needed.

    The names end in blanks, so that they cannot clash with the user's names; printing removes the blanks.
    """

    def __init__(self, depth):
        blanks = " " * (depth + 1)
        self.stop, self.returned, self.value = f"stop{blanks}", f"returned{blanks}", RETURNED + blanks
        self.stops = self.returns = self.breaks = self.valued = False


def spelled_name(name: str) -> str:
    """A name for messages; the variable of a return inside a loop has no name in the source."""
    return "what is returned" if name.rstrip() == RETURNED and name != RETURNED else name


class Context(gast.stmt):
    """The items of a with statement; its body follows as plain statements."""
    _fields = ("items",)

    def __init__(self, items, body):
        super().__init__()
        self.items, self.lines = items, range(body[0].lineno, body[-1].end_lineno + 1)


class EditGradient(gast.stmt):
    """with gs.insert_grad_of(x) as dx, whose body belongs to the backward sweep."""
    _fields = ("call",)

    def __init__(self, call, target, body):
        super().__init__()
        self.call, self.target, self.body = call, target, body


class Matches(gast.expr):
    """A test of whether a value matches a pattern."""
    _fields = ("subject", "targets")

    def __init__(self, subject, pattern, targets):
        super().__init__()
        self.subject, self.pattern, self.targets = subject, pattern, targets


class Outermost(gast.stmt):
    """Marks a try that is left early and whose handlers only raise: valid only outside any other try."""


class Tried(gast.stmt):
    """The names that a pattern binds, after its test: in the branch where it matched (fitted), or in the other one."""
    _fields = ("targets",)

    def __init__(self, targets, fitted, guarded):
        super().__init__()
        self.targets, self.fitted, self.guarded = targets, fitted, guarded


def desugar(body: list[gast.stmt], loop: Any = None, depth: int = 0) -> list[gast.stmt]:
    """A body in which every return ends its path; `loop` (Exits) records how the body leaves the loop around it."""
    out: list[gast.stmt] = []
    for k, node in enumerate(body):
        rewrite = REWRITES.get(type(node))
        made, ended = ([node], False) if rewrite is None else rewrite(node, body[k + 1:], loop, depth)
        out += made
        if ended:
            break
    return out


# Each function of REWRITES takes a statement, the statements after it, the Exits of the loop around it, and the number
# of loops around it.  It returns the statements that replace it, and whether they end the block because they include
# the statements after it, or because those are never reached.

def _annotated(node, rest, loop, depth):
    if node.value is None:
        return [], False
    return [gast.copy_location(gast.Assign([node.target], node.value, None), node)], False


def _loop(node, rest, loop, depth):
    if isinstance(node, gast.While) and any(isinstance(n, gast.NamedExpr) for n in nodes(node.test)):
        if any(map(_exits, node.orelse)):
            return desugar([*_with_failed_flag(node, depth), *rest], loop, depth), True
        node = _tested_inside(node, node.orelse)
    new = type(node)(**{f: getattr(node, f, None) for f in node._fields})
    if isinstance(node, gast.While) and isinstance(node.test, (gast.Name, gast.Attribute, gast.Subscript)):
        new.test = _not(node.test, _not(node.test, node.test))
    if endless(node):
        new.test = _at(node.test, gast.Constant(True, None))
    gast.copy_location(new, node)
    new.live = getattr(node, "live", None)
    exits = Exits(depth)
    exits.valued = any(map(gives, node.body))
    new.body, new.orelse = desugar(node.body, exits, depth + 1), []
    new.exits = exits if exits.stops else None
    value = _name(exits.value, node) if exits.valued else None
    after = [_at(node, gast.Return(value))] if exits.returns else []
    if endless(node) and not exits.breaks:      # the statements after it are never reached
        return [new, *desugar(after, loop, depth)], True
    if after:
        after = [_if(node, _name(exits.returned, node), after)]
    if node.orelse and exits.stops:
        after.append(_if(node, _not(node, _name(exits.stop, node)), node.orelse))
    else:
        after += node.orelse
    return ([new, *desugar(after + rest, loop, depth)], True) if after else ([new], False)


def _branch(node, rest, loop, depth):
    new = gast.copy_location(gast.If(node.test, node.body, node.orelse), node)
    if leaves(node, loop is not None):
        new.body = desugar(node.body if ends(node.body) else node.body + rest, loop, depth)
        new.orelse = desugar(node.orelse if ends(node.orelse) else node.orelse + rest, loop, depth)
        return [new], True
    new.body, new.orelse = desugar(node.body, loop, depth), desugar(node.orelse, loop, depth)
    return [new], False


def _with(node, rest, loop, depth):
    if _edits(node):
        item = node.items[0]
        return [_at(node, EditGradient(item.context_expr, item.optional_vars, desugar(node.body)))], False
    return desugar([_at(node, Context(node.items, node.body)), *node.body, *rest], loop, depth), True


def _try(node, rest, loop, depth):
    exits = _exits(node)
    if exits and not node.finalbody and not any(map(_exits, node.body[:-1])) and (
            not _exits(node.body[-1]) or ends(node.body)):
        return [_left(node, rest, loop, depth)], True
    only_raises = all(map(_only_raises, node.handlers)) and not _imports(node.body)
    if exits and not node.finalbody and only_raises:
        return [_at(node, Outermost()), *desugar([*node.body, *node.orelse, *rest], loop, depth)], True
    parts = (node.body, node.handlers, node.orelse, node.finalbody) if exits else (
        desugar(node.body), [_handler(h) for h in node.handlers], desugar(node.orelse), desugar(node.finalbody))
    new = gast.copy_location(gast.Try(*parts), node)
    new.leaves, new.only_raises = exits, only_raises
    return [new], False


def _match(node, rest, loop, depth):
    subject = f"subject{' ' * (depth + 1)}"
    cases: list = []
    for case in reversed(node.cases):
        bound, guarded = _captures(case.pattern, node), case.guard is not None
        test = _at(node, Matches(_name(subject, node), case.pattern, bound))
        if guarded:
            test = _at(node, gast.BoolOp(gast.And(), [test, case.guard]))
        fitted, other = (_at(node, Tried(bound, fits, guarded)) for fits in (True, False))
        cases = [_at(node, gast.If(test, [fitted, *case.body] if bound else case.body,
                                   [other, *cases] if bound else cases))]
    taken = _at(node, gast.Assign([_name(subject, node, gast.Store())], node.subject, None))
    return desugar([taken, *cases, *rest], loop, depth + 1), True


def _break(node, rest, loop, depth):
    loop.stops = loop.breaks = True
    return [_set(loop.stop, node)], True


def _return(node, rest, loop, depth):
    if loop is None:
        return [node], True
    loop.stops = loop.returns = True
    value = node.value if node.value is not None else _at(node, gast.Constant(None, None))
    kept = [_at(node, gast.Assign([_name(loop.value, node, gast.Store())], value, None))] if loop.valued else []
    return [*kept, _set(loop.returned, node), _set(loop.stop, node)], True


REWRITES = {gast.AnnAssign: _annotated, gast.For: _loop, gast.While: _loop, gast.If: _branch, gast.With: _with,
            gast.Try: _try, gast.Match: _match, gast.Continue: lambda node, rest, loop, depth: ([], True),
            gast.Break: _break, gast.Return: _return, gast.Raise: lambda node, rest, loop, depth: ([node], True)}


def _at(place, node):
    return gast.copy_location(node, place)


def _name(name, place, context=None):
    return _at(place, gast.Name(name, context or gast.Load(), None, None))


def _set(name, place):
    return _at(place, gast.Assign([_name(name, place, gast.Store())], _at(place, gast.Constant(True, None)), None))


def _not(place, test):
    return _at(place, gast.UnaryOp(gast.Not(), test))


def _if(place, test, body):
    return _at(place, gast.If(test, body, []))


def _tested_inside(loop, last):
    """A while whose test has `:=` as an endless loop with a break where the test fails."""
    leave = _at(loop.test, gast.If(_not(loop.test, loop.test), [*last, _at(loop.test, gast.Break())], []))
    asked = _at(loop, gast.While(_at(loop, gast.Constant(True, None)), [leave, *loop.body], []))
    asked.live = getattr(loop, "live", None)
    return asked


def _with_failed_flag(loop, depth):
    """The same for an else that exits an outer loop: it follows the loop, under a flag that the test has failed."""
    failed = f"failed{' ' * (depth + 1)}"
    before = _at(loop, gast.Assign([_name(failed, loop, gast.Store())], _at(loop, gast.Constant(False, None)), None))
    return [before, _tested_inside(loop, [_set(failed, loop.test)]), _if(loop, _name(failed, loop), loop.orelse)]


def _edits(node):
    """Whether a with statement is an insert_grad_of, whose body runs in the backward sweep."""
    call = node.items[0].context_expr
    name = call.func if isinstance(call, gast.Call) else None
    return len(node.items) == 1 and (isinstance(name, gast.Attribute) and name.attr == "insert_grad_of" or
                                     isinstance(name, gast.Name) and name.id == "insert_grad_of")


def _only_raises(handler):
    return isinstance(handler.body[-1], gast.Raise) and not any(map(_exits, handler.body))


def _exits(node):
    return any(isinstance(n, (gast.Return, gast.Break, gast.Continue)) for n in nodes(node))


def _left(node, rest, loop, depth):
    """A try that is left early: the statements after it are copied into each of its paths."""
    body, after = node.body, node.orelse
    if _exits(body[-1]):
        last, kept = body[-1], []
        if isinstance(last, gast.Return) and last.value is not None:
            result = f"result{' ' * (depth + 1)}"
            kept = [_at(last, gast.Assign([_name(result, last, gast.Store())], last.value, None))]
            last = _at(last, gast.Return(_name(result, last)))
        body, after = [*body[:-1], *kept], [last]
    handlers = [gast.copy_location(gast.ExceptHandler(h.type, h.name, desugar([*h.body, *rest], loop, depth)), h)
                for h in node.handlers]
    new = _at(node, gast.Try(desugar(body), handlers, desugar([*after, *rest], loop, depth), []))
    new.leaves, new.only_raises = False, all(map(_only_raises, node.handlers))
    return new


def _imports(body):
    return all(isinstance(n, (gast.Import, gast.ImportFrom)) for n in body)


def _handler(handler):
    return gast.copy_location(gast.ExceptHandler(handler.type, handler.name, desugar(handler.body)), handler)


def _captures(pattern, place):
    """The names that a pattern binds, as targets."""
    names = [n for p in nodes(pattern) for n in (getattr(p, "name", None), getattr(p, "rest", None)) if n]
    return [_name(n, place, gast.Store()) for n in names]


def show(text):
    """The desugared body of a function given as text."""
    tree = gast.parse(text).body[0]
    module = gast.Module(desugar(tree.body), [])
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(module)))
