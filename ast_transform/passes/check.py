# SPDX-License-Identifier: Apache-2.0
"""What must hold of a normal form between passes.

Every value has one definition, and every value that a statement reads is defined before it where it can be seen: an
argument, a statement above in the same block or a block around, or what a branch or a loop hands on.

>>> from gradscribe.ast_transform.examples import form
>>> f = form("def f(x): return np.sin(x) * 2", 1.0)
>>> check(f, "reading") is f
True
>>> f.body.reverse()
>>> check(f, "a wrong pass")  # doctest: +ELLIPSIS
Traceback (most recent call last):
gradscribe.ast_transform.passes.check.Broken: after a wrong pass: sin_x... is read in f where it is not defined ...
"""
from gradscribe.ast_transform.core.form import Effect, For, Function, If, Let, While, all_made, made, operands


class Broken(AssertionError):
    """A pass has left a normal form that is none."""


def check(function: Function, after: str) -> Function:
    """The function, if its normal form is in order; Broken, with the pass, if not."""
    defined = {}
    for v in all_made(function.body):
        if v in defined:
            raise Broken(f"after {after}: {v} has two definitions in {function.label}")
        defined[v] = None
    seen = {p.value for p in function.params}

    def read(node, scope, where):
        for v in operands(node):
            if v in defined and v not in scope:
                raise Broken(f"after {after}: {v} is read in {function.label} where it is not defined ({where})")

    def visit(block, scope):
        scope = set(scope)
        for step in block:
            if isinstance(step, (Let, Effect)):
                read(step.value, scope, step.origin and step.origin.statement)
            elif isinstance(step, For):
                read(step.count, scope, "a loop's count")
                for _, source in step.items:
                    read(source, scope, "a loop's source")
                inner = scope | {step.index, *(v for v, _ in step.items), *(c.inner for c in step.carries)}
                carried(step, scope, visit(step.body, inner))
            elif isinstance(step, While):
                head = visit(step.head, scope | {c.inner for c in step.carries})
                read(step.test, head, "a loop's test")
                carried(step, scope, visit(step.body, head))
            elif isinstance(step, If):
                read(step.test, scope, "a test")
                then, orelse = visit(step.then, scope), visit(step.orelse, scope)
                for j in step.joins:
                    read(j.then, then, "what a branch hands on")
                    read(j.orelse, orelse, "what a branch hands on")
            scope.update(made(step))
        return scope

    def carried(step, scope, end):
        for c in step.carries:
            read(c.init, scope, "what a loop is entered with")
            read(c.next, end, "what a pass hands on")

    read(function.result, visit(function.body, seen), "the result")
    return function
