# SPDX-License-Identifier: Apache-2.0
"""Writes through views become writes into the array that the view shows.

In the normal form, `b = a[1:]`, `b[i] = v` makes a new part, and a new array with that part.  If the index is certainly
inside the part, this pass makes it one write, `a[1 + i] = v`.  It costs one entry instead of the part, and reverse mode
does not slice the adjoint of the array in each iteration.  Reads of views of such an array become reads of the array.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import form, show
>>> text = '''def f(a):
...     b = a[1:]
...     for i in range(1, b.shape[0]):
...         b[i] = b[i - 1] * 2
...     return a.sum()'''
>>> print(show(through_views(form(text, np.ones(4)))))
f(a):
    b = a[slice(1, None, None)]
    n_0 = shape_of(b, 0)
    run_length = run_length(1, n_0, 1)
    enter a_1 = a
    for i_1 in range(run_length), i of range(1, n_0, 1):
        b_1 = a_1[slice(1, None, None)]
        t = i - 1
        b_2 = a_1[i]
        t_1 = b_2 * 2
        t_2 = i + 1
        a_2 = put(a_1, t_2, t_1)
        b_3 = a_2[slice(1, None, None)]
        next a_1 = a_2
    leave a_3 = a_1
    b_4 = a_3[slice(1, None, None)]
    sum_a = np.sum(a_3)
    return sum_a
"""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.analysis.inequalities import impossible
from gradscribe.ast_transform.analysis.regions import Regions, Side, whole
from gradscribe.ast_transform.core.alias import memory_of, parts_of, reads, updates
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Slice,
    Var,
    While,
    as_slice,
    blocks,
    same_operand,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import VIEW
from gradscribe.ast_transform.core.operations import put, put_add, shape_of
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.passes.types import sliced
from gradscribe.ast_transform.reader.values import as_python
from gradscribe.ast_transform.reader.views import index_of, is_number, is_slice, is_whole


def through_views(function: Function) -> Function:
    """The function, changed in place so that writes into views are writes into the arrays that the views show."""
    each = ThroughViews(function)
    each.visit(function.body, (), each.write)
    if each.written:
        each.visit(function.body, (), each.read)
    return function


def operation_of(maker: dict[Var, Any], v: Var) -> Any:
    """The operation that makes a value, through copies; None of other values.

    maker: {value: the statement that sets it}
    """
    step = maker.get(v)
    value = step.value if isinstance(step, Let) and len(step.targets) == 1 else None
    return operation_of(maker, value) if isinstance(value, Var) else value


class ThroughViews:
    """group: {version of an array: another of the same one}, a union-find forest; written: arrays that are written
    through views; known: {(block, operation): the statement that computes a place}.
    """

    def __init__(self, function):
        self.regions = Regions(function.body, function.result, [p.value for p in function.params])
        self.naturals, self.group, self.written, self.known = Naturals(function.body), {}, set(), {}
        for step in walk(function.body):
            if isinstance(step, If):
                for j in step.joins:
                    self.are_one(j.var, j.then, j.orelse)
            elif isinstance(step, (For, While)):
                for c in step.carries:
                    self.are_one(c.inner, c.init, c.next, c.outer)
            elif isinstance(step, Let) and (isinstance(step.value, Var) or updates(step.value)):
                self.are_one(step.targets[0], step.value if isinstance(step.value, Var) else step.value.args[0])

    def are_one(self, *versions):
        """Notes that values are versions of one array."""
        first, *others = {self.first(v) for v in versions if isinstance(v, Var)}
        self.group.update((v, first) for v in others)

    def first(self, v):
        """The version that represents an array."""
        while v in self.group:
            v = self.group[v]
        return v

    def visit(self, block, loops, change):
        """Calls `change` for each statement, inner ones too, with its block and the loops around it."""
        for step in list(block):
            if isinstance(step, Let):
                change(step, block, loops)
            for inner in blocks(step):
                self.visit(inner, (*loops, step) if isinstance(step, (For, While)) else loops, change)

    def write(self, step, block, loops):
        """Rewrites a statement that puts a part, or a transpose, back into an array after a write into its entries."""
        value = step.value
        if updates(value) and value.function is put:
            part = value.args[2]
        elif (back := axes_of_view(value)) is not None:
            part = value.args[0]
        else:
            return
        made = self.made(part)
        if not updates(made) or made.function not in (put, put_add) or len(self.regions.uses[part]) != 1:
            return
        seen, own = self.made(made.args[0]), next((s for s in block if isinstance(s, Let) and part in s.targets), None)
        if own is None or not (axes_of_view(seen) == _inverse(back) if value.function is not put else is_part(
                seen) and seen.args[0] is value.args[0] and same_operand(seen.args[1], value.args[1])):
            return
        place = self.place(seen, made.args[0], made.args[1], step, block, loops)
        if place is not None:
            block.remove(own)
            step.value = Apply(made.function, (seen.args[0], place, made.args[2]))
            self.are_one(seen.args[0], step.targets[0])
            self.written.add(seen.args[0])

    def read(self, step, block, loops):
        """Rewrites a read of a view of an array that is written through views."""
        while is_part(step.value):
            view, index = step.value.args
            if self.shown(view) not in map(self.first, self.written):
                return
            seen = self.made(view)
            place = self.place(seen, view, index, step, block, loops)
            if place is None:
                return
            step.value = Apply(step.value.function, (seen.args[0], place), origin=step.value.origin)

    def shown(self, v):
        """The version that represents the array which a view, or a view of a view, shows."""
        seen = self.made(v)
        while is_part(seen) or axes_of_view(seen) is not None:
            v = seen.args[0]
            seen = self.made(v)
        return self.first(v)

    def made(self, v):
        return operation_of(self.regions.maker, v)

    def place(self, seen, view, index, step, block, loops):
        """The index into an array that selects the same entries as one into a view of it; None if that is not certain.

        seen: the operation that makes the view; new places are computed before `step`, in its block
        """
        inner = parts_of(index)
        if not all(is_number(p) or is_slice(p) for p in inner):
            return None
        axes = axes_of_view(seen)
        if axes is not None:
            parts = dict(zip(axes, [*inner, *[WHOLE] * len(axes)]))
            left = [axis for axis in axes if is_slice(parts[axis])]
            return index_of([parts[axis] for axis in sorted(parts)]) if left == sorted(left) else None
        outer, plans = parts_of(seen.args[1]) if is_part(seen) else [None], []
        if not all(p is not None and (is_number(p) or is_slice(p)) for p in outer):
            return None
        dims, asked = iter(view.fact.dims), iter(inner)
        for axis, part in enumerate(outer):
            if is_number(part):
                plans.append(part)
                continue
            dim, within = next(dims), next(asked, WHOLE)
            if is_whole(part):
                plans.append(within)
            elif is_whole(within):
                plans.append(part)
            elif self.is_inside(within, as_slice(part), dim, loops):
                plans.append((as_slice(part), within, axis, dim))
            else:
                return None
        found = [self.moved(*p, seen.args[0], step, block) if isinstance(p, tuple) else p for p in plans]
        return None if any(p is None for p in found) else index_of([*found, *asked])

    def is_inside(self, within, part, dim, loops):
        """Whether an index into a part of an axis certainly counts from its front, and stays inside it."""
        if is_number(within):
            return self.is_there(within, dim, loops)
        within = as_slice(within)
        ends = [within.start, *([] if is_from_the_end(within.stop) and (
            not given(part.stop) or is_from_the_end(part.stop)) else [within.stop])]
        return not given(part.step) and not given(within.step) and all(
            self.is_there(end, dim, loops, given(part.stop)) for end in ends if given(end))

    def is_there(self, place, dim, loops, last=None):
        """Whether an integer is certainly a place on an axis, counted from its front.

        last: None for the place of an entry; for the end of a slice, whether it must not be beyond the axis
        """
        if not whole(place):
            return False
        here = Side(self.regions, loops, loops, 0, by_axis=True)
        at, length, facts = here.value(place), here.length(dim.normal()), here.bounds()
        facts += here.lengths()
        if not at.terms and at.constant >= 0 and (last is False or dim.demand(at.constant + (0 if last else 1))):
            return True
        return impossible([*facts, -at - 1]) and (
            last is False or impossible([*facts, at - length - (1 if last else 0)]))

    def moved(self, ends, place, axis, dim, array, step, block):
        """The index into an array for one into a part of it; None if the part may start at a negative place."""
        if is_slice(place):
            inner = as_slice(place)
            start, stop = (self.moved(ends, end, axis, dim, array, step, block) if given(end) else outer
                           for end, outer in ((inner.start, ends.start), (inner.stop, ends.stop)))
            if is_from_the_end(inner.stop):
                stop = Const(inner.stop.value + (ends.stop.value if given(ends.stop) else 0))
            if any(given(end) and now is None for end, now in ((inner.start, start), (inner.stop, stop))):
                return None
            part = Slice(start, stop, None)
            if not any(isinstance(end, Var) for end in (start, stop)):
                part = Const(slice(*(end.value if given(end) else None for end in (start, stop))))
            sliced(array.fact.dims[axis], part, sliced(dim, inner))         # notes that its length is the same
            return part
        start, stop, by = ends.start, ends.stop, ends.step if given(ends.step) else Const(1)
        if not isinstance(by, Const):
            return None

        def let(function, *args, length=None):
            """The value of an operation, computed once in this block, before its first use."""
            key = id(block), function, *(a.value if isinstance(a, Const) else a for a in args)
            if key not in self.known:
                self.known[key] = Let((Var("t", Array(int, (), length)),), Apply(function, args), step.origin)
                block.insert(block.index(step), self.known[key])
            elif block.index(self.known[key]) > block.index(step):
                block.remove(self.known[key])
                block.insert(block.index(step), self.known[key])
            return self.known[key].targets[0]

        def plus(v, number):
            if isinstance(v, Const):
                return Const(v.value + number)
            if number == 0:
                return v
            length = v.fact.length.plus(number) if v.fact.length else None
            return let(operator.add if number > 0 else operator.sub, v, Const(abs(number)), length=length)

        rest, number = self.split(place)
        if by.value == -1 and not given(start) and not given(stop):
            last = plus(let(shape_of, array, Const(axis)), -1 - number)
            return last if rest is None else let(operator.sub, last, rest)
        start = start if given(start) else Const(0)
        if by.value < 1 or isinstance(place, Const) and place.value < 0 or not self.naturals.holds(start):
            return None
        first, more = self.split(start)
        rest = rest if by.value == 1 or rest is None else let(operator.mul, rest, by)
        terms = [t for t in (rest, first) if t is not None]
        number = more + by.value * number
        return Const(number) if not terms else plus(terms[0] if len(terms) == 1 else let(operator.add, *terms), number)

    def split(self, node):
        """(an unknown summand or None, a known number): an integer as their sum."""
        if isinstance(node, Const):
            return None, node.value
        made, here = self.made(node), Side(self.regions, (), (), 0, by_axis=True)
        for arg in made.args if isinstance(made, Apply) else ():
            if isinstance(arg, Var) and whole(arg):
                more = here.value(node) - here.value(arg)
                if not more.terms:
                    rest, number = self.split(arg)
                    return rest, number + more.constant
        return node, 0


WHOLE = Const(slice(None))


def given(end):
    """Whether an end, or the step, of a slice is given."""
    return end is not None and not (isinstance(end, Const) and end.value is None)


def is_from_the_end(end):
    """Whether the end of a slice is counted from the end of the axis."""
    return given(end) and isinstance(end, Const) and end.value < 0


def is_part(value):
    """Whether a value is a part of an array by an index."""
    return isinstance(value, Apply) and reads(value) == "part" and len(value.args) == 2 and \
        isinstance(value.args[0], Var)


def axes_of_view(value: Any) -> tuple | None:
    """The axes of an array in the order of a transposing view, (1, 0) for x.T; None for other values."""
    if not isinstance(value, Apply) or memory_of(value) is not VIEW or not isinstance(fact_of(value.args[0]), Array):
        return None
    dims = fact_of(value.args[0]).dims
    array = np.empty(range(2, 2 + len(dims)))[tuple(slice(1 if d.is_unit else None) for d in dims)]
    try:
        view = value.function(array, *map(as_python, value.args[1:]), **{k: as_python(a) for k, a in value.kwargs})
    except ValueError:                  # some arguments are not constants, or an axis must be of length one
        return None
    axes = tuple(array.strides.index(n) if n in array.strides else None for n in view.strides)
    return axes if sorted(view.shape) == sorted(array.shape) and None not in axes else None


def _inverse(axes):
    return tuple(axes.index(k) for k in range(len(axes)))
