# SPDX-License-Identifier: Apache-2.0
"""Which values may share a name: coalescing compares the live ranges of these only.  Also, which may be unset."""
from collections.abc import Iterable, Iterator

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import UNDEFINED, Apply, Effect, For, If, Let, Var, While, operands, walk
from gradscribe.ast_transform.core.operations import push, push_front


def kin(body: list, parameters: Iterable[Var]) -> dict[Var, set[Var]]:
    """{value: all values that may share a name with it}: its copies, the versions of its variable, and theirs."""
    families = _Families()
    for v in parameters:
        families.of(v)
    for step in walk(body):
        if isinstance(step, Let):
            for v in (*step.targets, *operands(step.value)):
                families.of(v)
        for v in defined(step):
            families.of(v)
        for a, b in _copies(step):
            if isinstance(b, Var):
                families.unite(a, b)
    return families.found


class _Families:
    """Union-find over values; those of one variable are in one family from the start."""

    def __init__(self):
        self.found: dict[Var, set[Var]] = {}
        self.first: dict[str, Var] = {}         # of each variable

    def of(self, var):
        if var not in self.found:
            self.found[var] = {var}
            self.unite(var, self.first.setdefault(var.hint, var))
        return self.found[var]

    def unite(self, a, b):
        large, small = self.of(a), self.of(b)
        if large is not small:
            if len(large) < len(small):
                large, small = small, large
            large |= small
            for v in small:
                self.found[v] = large


def _copies(step):
    """(value, what it is a copy or an update of) for each pair in a statement."""
    if isinstance(step, Let):
        yield step.targets[0], step.value.args[0] if updates(step.value) else step.value
    elif isinstance(step, If):
        yield from ((j.var, side) for j in step.joins for side in (j.then, j.orelse))
    elif isinstance(step, (For, While)):
        yield from ((c.inner, v) for c in step.carries for v in (c.outer, c.init, c.next))


def defined(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """The values that a loop or a branch defines itself, without those in its blocks."""
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
    """The values that are unset on some path: set in a loop or an arm, and not before.

    Loops and branches pass such a value along under its own name; a copy under another name has read it, so it is set
    there.  by_reads: a value that an operation has read on the way counts as set as well.
    """
    found: set[Var]
    found, before, places = set(), -1, list(_merges(body, set()))
    while len(found) > before:
        before = len(found)
        for var, others, value, read in places:
            if value is UNDEFINED or isinstance(value, Var) and value in found and not (
                    by_reads and value in read) and value.hint == var.hint and value.kind == var.kind:
                found.update((var, *others))
    return found


def _merges(block, read):
    """(variable, its other names, the value that it is set to, what has been read by then) of each carry and join."""
    for step in block:
        if isinstance(step, (For, While)):
            before = set(read)
            yield from ((c.inner, (c.outer,), c.init, before) for c in step.carries)
            yield from _merges([*getattr(step, "head", ()), *step.body], set(read))
        elif isinstance(step, If):
            for arm, side in ((step.then, "then"), (step.orelse, "orelse")):
                inside = set(read)
                yield from _merges(arm, inside)
                yield from ((j.var, (), getattr(j, side), inside) for j in step.joins)
        elif isinstance(step, (Let, Effect)) and isinstance(step.value, Apply) and step.value.function not in (
                push, push_front):
            read.update(operands(step.value))
