# SPDX-License-Identifier: Apache-2.0
"""Prints normal forms: one statement on each line, a unique name for each value."""
import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Slice,
    Undefined,
    Var,
    While,
)
from gradscribe.ast_transform.passes.anf import spelled

_SIGNS = set("+ - * / // % ** @ < <= > >= == != & | ^ << >>".split())


def show(function: Function) -> str:
    """The text of a normal form."""
    return "\n".join(Shown().function(function))


class Shown:
    """A printer of normal forms.

    kind(fact): the text of a kind, to be printed with each name where it is defined; comments then enclose the
    statements of functions under jit or pmap
    """

    def __init__(self, kind=None):
        self.names, self.taken, self.kind, self.within = {}, set(), kind, ()

    def name(self, var):
        if var not in self.names:
            name, k = var.hint, 0
            while name in self.taken:
                k += 1
                name = f"{var.hint}_{k}"
            self.names[var] = name
            self.taken.add(name)
        return self.names[var]

    def function(self, function):
        params = ", ".join(self.defined(p.value) for p in function.params)
        yield f"{function.label}({params}):"
        yield from self.block(function.body, "    ")
        yield f"    return {self.value(function.result)}"

    def block(self, steps, pad):
        before = self.within
        for step in steps:
            if self.kind is not None:
                origin = getattr(step, "origin", None)
                yield from self.moved_to(origin.within if origin is not None else self.within, pad)
            yield from getattr(self, type(step).__name__)(step, pad)
        yield from self.moved_to(before, pad)
        if not steps:
            yield f"{pad}pass"

    def moved_to(self, within, pad):
        """The comments between statements of two places; within: functions under jit or pmap, from the outermost."""
        pairs = enumerate(zip(within, self.within))
        same = next((k for k, (a, b) in pairs if a != b), min(len(within), len(self.within)))
        yield from (f"{pad}# end of {name}" for name in reversed(self.within[same:]))
        yield from (f"{pad}# {name}" for name in within[same:])
        self.within = within

    def defined(self, node):
        """A name where it is defined."""
        typed = self.kind is not None and isinstance(node, Var)
        return f"{self.name(node)}: {self.kind(node.fact)}" if typed else self.value(node)

    def value(self, node):
        if isinstance(node, Var):
            return self.name(node)
        if isinstance(node, Const):
            return "undefined" if isinstance(node.value, Undefined) else _constant(node.value)
        if isinstance(node, Pack):
            items = ", ".join(map(self.value, node.items))
            return f"[{items}]" if node.kind == "list" else f"({items})"
        if isinstance(node, Slice):
            return ":".join("" if p is None else self.value(p) for p in (node.start, node.stop, node.step)).rstrip(":")
        if isinstance(node, Apply):
            label = node.function.label if isinstance(node.function, Function) else spelled(node.function)
            args = [self.value(a) for a in node.args]
            if label in _SIGNS and len(args) == 2:
                return f"{args[0]} {label} {args[1]}"
            if label == "[]":
                return f"{args[0]}[{args[1]}]"
            return f"{label}({', '.join([*args, *(f'{k}={self.value(a)}' for k, a in node.kwargs)])})"
        return repr(node)

    def Let(self, step: Let, pad):
        yield f"{pad}{', '.join(map(self.defined, step.targets))} = {self.value(step.value)}"

    def Effect(self, step: Effect, pad):
        yield f"{pad}do {self.value(step.value)}"

    def If(self, step: If, pad):
        yield f"{pad}if {self.value(step.test)}:"
        yield from self.block(step.then, pad + "    ")
        yield f"{pad}else:"
        yield from self.block(step.orelse, pad + "    ")
        for j in step.joins:
            yield f"{pad}join {self.name(j.var)} = {self.value(j.then)} | {self.value(j.orelse)}"

    def entered(self, step, pad):
        for c in step.carries:
            yield f"{pad}enter {self.defined(c.inner)} = {self.value(c.init)}"

    def left(self, step, pad):
        for c in step.carries:
            yield f"{pad}    next {self.name(c.inner)} = {self.value(c.next)}"
        for c in step.carries:
            yield f"{pad}leave {self.name(c.outer)} = {self.name(c.inner)}"

    def For(self, step: For, pad):
        yield from self.entered(step, pad)
        items = "".join(f", {self.name(v)} of {self.value(s)}" for v, s in step.items)
        order = "reversed " if step.reverse else ""
        yield f"{pad}for {self.name(step.index)} in {order}range({self.value(step.count)}){items}:"
        yield from self.block(step.body, pad + "    ")
        yield from self.left(step, pad)

    def While(self, step: While, pad):
        yield from self.entered(step, pad)
        yield f"{pad}while:"
        yield from self.block(step.head, pad + "    ")
        yield f"{pad}test {self.value(step.test)}:"
        yield from self.block(step.body, pad + "    ")
        yield from self.left(step, pad)


def _constant(value):
    return f"np.{value.name}" if isinstance(value, np.dtype) else repr(value)
