# SPDX-License-Identifier: Apache-2.0
"""Which values may have one name: naming asks of no others whether they are alive together."""
from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import UNDEFINED, For, If, Let, Var, While, operands, walk


def kin(body, parameters):
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

    hints = {}
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


def defined(step):
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


def unset_values(body):
    """What a path may leave without a value: set in a loop or an arm, and not before.

    A loop or a branch hands such a value on under its own name; under another name it was read, and so it was there.
    """
    found, before = set(), -1

    def without(value, name):
        return value is UNDEFINED or isinstance(value, Var) and value in found and value.hint == name.hint and \
            value.kind == name.kind

    while len(found) > before:
        before = len(found)
        for step in walk(body):
            if isinstance(step, (For, While)):
                found.update(v for c in step.carries if without(c.init, c.inner) for v in (c.inner, c.outer))
            elif isinstance(step, If):
                found.update(j.var for j in step.joins if without(j.then, j.var) or without(j.orelse, j.var))
    return found
