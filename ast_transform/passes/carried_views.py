# SPDX-License-Identifier: Apache-2.0
"""Loops that change an array through a view of all its entries (x.reshape(n, m), x.T) carry the view instead.

In the normal form, each iteration takes the view, writes into it, and turns the result back into the array: two
reshapes or transposes for a few entries.  This pass takes the view before the loop, and turns it back after the loop.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import form, show
>>> text = '''def f(x):
...     y = x.reshape(2, 3)
...     for i in range(3):
...         y[0, i] = 2.0
...     return x.sum()'''
>>> print(show(carried_views(form(text, np.ones(6)))))
f(x):
    y = np.reshape(x, (2, 3))
    n_0 = shape_of(x, 0)
    y_1 = np.reshape(x, (2, 3))
    enter y_2 = y_1
    for i in range(3):
        x_1 = np.reshape(y_2, (n_0))
        y_3 = y_2
        y_4 = put(y_3, (0, i), 2.0)
        n_0_1 = shape_of(x_1, 0)
        reshape_y = np.reshape(y_4, (n_0_1))
        x_2 = reshape_y
        x_3 = x_2
        y_5 = y_4
        next y_2 = y_4
    leave y_6 = y_2
    x_4 = np.reshape(y_6, (n_0))
    y_7 = y_6
    sum_x = np.sum(x_4)
    return sum_x
"""
from gradscribe.ast_transform.core.alias import memory_of, reads
from gradscribe.ast_transform.core.form import (
    Apply,
    Carry,
    Const,
    For,
    Function,
    Let,
    Var,
    While,
    all_made,
    all_reads,
    blocks,
    operands,
    replaced,
    same_operand,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import CONTIGUOUS
from gradscribe.ast_transform.passes.through_views import axes_of_view, operation_of


def carried_views(function: Function) -> Function:
    """The function, changed in place so that loops carry the views through which they change arrays."""
    each = CarriedViews(function)
    each.visit(function.body)
    return function


class CarriedViews:
    """maker: {value: the statement that sets it}; taken: the views that are certainly taken before a statement."""

    def __init__(self, function):
        self.maker = {t: step for step in walk(function.body) if isinstance(step, Let) for t in step.targets}
        self.taken = []

    def visit(self, block):
        number = len(self.taken)
        for step in list(block):
            for inner in blocks(step):
                self.visit(inner)
            if isinstance(step, (For, While)):
                self.loop(step, block)
            else:
                self.fold(step)
            if isinstance(step, Let) and is_view_of_all(step.value):
                self.taken.append(step.value)
        del self.taken[number:]

    def may_be_taken(self, view, array):
        """Whether taking a view before the loop cannot raise: a reshape may not fit, and there may be no iteration."""
        return axes_of_view(view) is not None or len(view.args) == 1 or any(
            v.function is view.function and len(v.args) == len(view.args) and
            all(map(same_operand, v.args[1:], view.args[1:])) and have_one_shape(v.args[0], array) for v in self.taken)

    def made(self, v):
        return operation_of(self.maker, v)

    def itself(self, v):
        """The value of which one is a copy."""
        step = self.maker.get(v)
        return self.itself(step.value) if step is not None and isinstance(step.value, Var) else v

    def fold(self, step):
        """Replaces a view of what turns such a view back by a copy of the view itself."""
        if isinstance(step, Let) and is_view_of_all(step.value):
            back = self.made(step.value.args[0])
            if is_view_of_all(back) and undoes(step.value, step.targets[0], back):
                step.value = back.args[0]

    def loop(self, step, block):
        """Carries the view where each iteration takes one of a carried array and ends by turning it back."""
        inside = {*all_made(step.body), *(c.inner for c in step.carries)}
        asked = {v for s in step.head for v in all_reads(s)} | {*operands(step.test)} if isinstance(step, While) else ()
        for k, c in enumerate(step.carries):
            back = self.made(c.next)
            view = is_view_of_all(back) and isinstance(c.init, Var) and next((
                s for s in walk(step.body) if isinstance(s, Let) and is_view_of_all(s.value)
                and self.itself(s.value.args[0]) is c.inner and undoes(s.value, s.targets[0], back)), None)
            if not view or not self.may_be_taken(view.value, c.init):
                continue
            lengths = self.lengths(inside & {*_others(view.value), *_others(back)}, c.init)
            if lengths is None:
                continue
            known = {v: Var(v.hint, v.fact, v.kind) for v in lengths}
            before, inner, outer = (view.targets[0].like() for _ in range(3))
            at = next(n for n, s in enumerate(block) if s is step)
            block.insert(at + 1, self.let(c.outer, _of(back, outer, known), step.origin))
            block[at:at] = [self.let(known[v], value, step.origin) for v, value in lengths.items()] + [
                self.let(before, _of(view.value, c.init, known), step.origin)]
            step.body.insert(0, self.let(c.inner, _of(back, inner, known), step.origin))
            if c.inner in asked:            # as a value of the head: the body reads nothing that a head defines
                array = c.inner.like()
                step.head, step.test = replaced(step.head, {c.inner: array}), substituted(step.test, {c.inner: array})
                step.head.insert(0, self.let(array, _of(back, inner, known), step.origin))
            step.carries[k] = Carry(inner, before, back.args[0], outer)
        for s in walk([step]):
            self.fold(s)

    def lengths(self, values, array):
        """{value: the operation that reads it as a length of an array before the loop}; None if one is no length."""
        found = {}
        for v in values:
            made = self.made(v)
            if not isinstance(made, Apply) or reads(made) != "shape" or len(made.args) != 2:
                return None
            length = made.args[0].fact.dims[made.args[1].value]
            axis = next((k for k, n in enumerate(array.fact.dims) if n.same(length)), None)
            if axis is None:
                return None
            found[v] = Apply(made.function, (array, Const(axis)))
        return found

    def let(self, v, value, origin):
        self.maker[v] = made = Let((v,), value, origin)
        return made


def is_view_of_all(value):
    """Whether a value is a reshape or a transpose of an array."""
    return isinstance(value, Apply) and isinstance(value.args[0] if value.args else None, Var) and (
        memory_of(value) is CONTIGUOUS and len(value.args) < 3 and not value.kwargs or axes_of_view(value) is not None)


def undoes(view, seen, back):
    """Whether a view of the result of `back` is the operand of `back` again; seen: the value of the view."""
    given, axes, other = back.args[0], axes_of_view(view), axes_of_view(back)
    if axes is not None or other is not None:
        return axes is not None and other is not None and all(other[k] == n for n, k in enumerate(axes))
    return have_one_shape(seen, given) and seen.fact.dtype == given.fact.dtype


def have_one_shape(a, b):
    """Whether two arrays certainly have the same shape."""
    return all(isinstance(v.fact, Array) for v in (a, b)) and len(a.fact.dims) == len(b.fact.dims) and \
        all(m.same(n) for m, n in zip(a.fact.dims, b.fact.dims))


def _others(value):
    return [v for v in operands(value) if v is not value.args[0]]


def _of(value, array, known):
    return substituted(Apply(value.function, (array, *value.args[1:]), value.kwargs), known)
