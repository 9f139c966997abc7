# SPDX-License-Identifier: Apache-2.0
"""Which values may have one name: naming asks of no others whether they are alive together."""
from collections.abc import Iterable, Iterator

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import UNDEFINED, Apply, Effect, For, If, Let, Var, While, operands, walk
from gradscribe.ast_transform.core.operations import push, push_front


def kin(body: list, parameters: Iterable[Var]) -> dict[Var, set[Var]]:
    """{value: all that may have one name with it}: copies of each other, versions of one variable, and so on."""
    found = {}

    def of(var):
        if var not in found:
            found[var] = {var}
            unite(var, hints.setdefault(var.hint, var))
        return found[var]

    def unite(a, b):
        first, second = of(a), of(b)
        if first is not second:
            if len(first) < len(second):
                first, second = second, first
            first |= second
            for v in second:
                found[v] = first

    hints: dict[str, Var] = {}
    for v in parameters:
        of(v)
    for step in walk(body):
        if isinstance(step, Let):
            value = step.value
            for v in (*step.targets, *operands(value)):
                of(v)
            source = value.args[0] if updates(value) else value
            if isinstance(source, Var):
                unite(step.targets[0], source)
        for v in defined(step):
            of(v)
        for j in step.joins if isinstance(step, If) else ():
            for v in (j.then, j.orelse):
                if isinstance(v, Var):
                    unite(j.var, v)
        for c in step.carries if isinstance(step, (For, While)) else ():
            for v in (c.outer, c.init, c.next):
                if isinstance(v, Var):
                    unite(c.inner, v)
    return found


def defined(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """What a loop or a branch makes."""
    if isinstance(step, (For, While)):
        if isinstance(step, For):
            yield step.index
            for v, _ in step.items:
                yield v
        for c in step.carries:
            yield c.inner
            yield c.outer
    elif isinstance(step, If):
        for j in step.joins:
            yield j.var


def unset_values(body: list, by_reads: bool = False) -> set[Var]:
    """What a path may leave without a value: set in a loop or an arm, and not before.

    A loop or a branch hands such a value on under its own name; under another name it was read, and so it was there.
    by_reads: so it was where an operation has read it on the way.
    """
    found: set[Var]
    found, before, places = set(), -1, list(_handed_on(body, set()))
    while len(found) > before:
        before = len(found)
        for var, others, value, read in places:
            if value is UNDEFINED or isinstance(value, Var) and value in found and not (
                    by_reads and value in read) and value.hint == var.hint and value.kind == var.kind:
                found.update((var, *others))
    return found


def _handed_on(block, read):
    """(variable, its other names, what it is set to, what has been read by then) where passes and branches meet."""
    for step in block:
        if isinstance(step, (For, While)):
            before = set(read)
            yield from ((c.inner, (c.outer,), c.init, before) for c in step.carries)
            yield from _handed_on([*getattr(step, "head", ()), *step.body], set(read))
        elif isinstance(step, If):
            for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
                inside = set(read)
                yield from _handed_on(arm, inside)
                yield from ((j.var, (), getattr(j, side), inside) for j in step.joins)
        elif isinstance(step, (Let, Effect)) and isinstance(step.value, Apply) and step.value.function not in (
                push, push_front):
            read.update(operands(step.value))
