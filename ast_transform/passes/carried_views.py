# SPDX-License-Identifier: Apache-2.0
"""Loops that change an array by a view of all its entries (x.reshape(n, m), x.T) carry the view.

A pass takes the view of the array, writes into it, and puts the entries back: two moves of the whole array for a few
entries.  The view is taken before the loop instead, and put back after it.

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
    """The function, whose loops carry the views by which they change arrays."""
    each = CarriedViews(function)
    each.visit(function.body)
    return function


class CarriedViews:
    """maker: the statement that sets a value; taken: the views that have been taken where a statement is reached."""

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
        """Whether a view of an array can be taken though no pass may take it: a shape that does not fit raises."""
        return axes_of_view(view) is not None or len(view.args) == 1 or any(
            v.function is view.function and len(v.args) == len(view.args) and
            all(map(same_operand, v.args[1:], view.args[1:])) and have_one_shape(v.args[0], array) for v in self.taken)

    def made(self, v):
        return operation_of(self.maker, v)

    def itself(self, v):
        """A value by its first name."""
        step = self.maker.get(v)
        return self.itself(step.value) if step is not None and isinstance(step.value, Var) else v

    def fold(self, step):
        """A view of what puts such a view back is what was put back."""
        if isinstance(step, Let) and is_view_of_all(step.value):
            back = self.made(step.value.args[0])
            if is_view_of_all(back) and undoes(step.value, step.targets[0], back):
                step.value = back.args[0]

    def loop(self, step, block):
        """Where each pass takes a view of an array and ends by putting it back, the loop carries the view."""
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
            if c.inner in asked:            # under a name of the head's own: no pass reads what a head makes
                array = c.inner.like()
                step.head, step.test = replaced(step.head, {c.inner: array}), substituted(step.test, {c.inner: array})
                step.head.insert(0, self.let(array, _of(back, inner, known), step.origin))
            step.carries[k] = Carry(inner, before, back.args[0], outer)
        for s in walk([step]):
            self.fold(s)

    def lengths(self, values, array):
        """Numbers of a pass, as operations on an array from before the loop: its lengths; None if some are not."""
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
    """Whether a value has all entries of an array, in the order of its rows or with its axes in another order."""
    return isinstance(value, Apply) and isinstance(value.args[0] if value.args else None, Var) and (
        memory_of(value) is CONTIGUOUS and len(value.args) < 3 and not value.kwargs or axes_of_view(value) is not None)


def undoes(view, seen, back):
    """Whether a view, whose value is `seen`, of what `back` makes is what `back` was given."""
    given, axes, other = back.args[0], axes_of_view(view), axes_of_view(back)
    if axes is not None or other is not None:
        return axes is not None and other is not None and all(other[k] == n for n, k in enumerate(axes))
    return have_one_shape(seen, given) and seen.fact.dtype == given.fact.dtype


def have_one_shape(a, b):
    """Whether two arrays certainly have one shape."""
    return all(isinstance(v.fact, Array) for v in (a, b)) and len(a.fact.dims) == len(b.fact.dims) and \
        all(m.same(n) for m, n in zip(a.fact.dims, b.fact.dims))


def _others(value):
    return [v for v in operands(value) if v is not value.args[0]]


def _of(value, array, known):
    return substituted(Apply(value.function, (array, *value.args[1:]), value.kwargs), known)
