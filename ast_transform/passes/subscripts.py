# SPDX-License-Identifier: Apache-2.0
"""The forms in which np.einsum is called, as one: a text, and the operands.  What np.r_, np.c_, np.mgrid and np.ogrid
make of what stands in their brackets."""
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Struct
from gradscribe.ast_transform.rules.products import LETTERS
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError

JOINS, GRIDS = type(np.r_).__base__, type(np.mgrid).__base__       # of np.r_ and np.c_, of np.mgrid and np.ogrid


class Subscripts:
    def call_einsum(self, function, args, words, node):
        optimize = words.get("optimize")
        if not args or len(words) > (optimize is not None):
            self.fail(RuleError, "np.einsum: only subscripts, operands and optimize are understood", node,
                      "Leave the others out.")
        words = {} if optimize is None else {"optimize": self.path(optimize, node)}
        first = self.settle(args[0])
        if isinstance(first, Struct) or isinstance(fact_of(first), Array):
            args = self.subscripted(args, node)
        subscripts = Const(self.static(args[0], "the subscripts of np.einsum", node).replace(" ", ""))
        return self.rule_call(np.einsum, [subscripts, *args[1:]], words, node)

    def path(self, optimize, node):
        """An order of contraction that has been chosen is np.einsum's business: any will do for adjoints."""
        value = self.settle(optimize)
        if isinstance(value, Struct):
            return Const(True)
        return Const(self.static(value, "optimize of np.einsum", node))

    def subscripted(self, args, node):
        """np.einsum(x, [0, 1], y, [1, 2], [0, 2]) is np.einsum("ab,bc->ac", x, y)."""
        operands, lists = list(args[:len(args) // 2 * 2:2]), list(args[1::2])
        if len(args) % 2:
            lists.append(args[-1])
        lists = [[self.static(i, "an axis label of np.einsum", node) for i in self.listed(self.settle(each), node)]
                 for each in lists]
        used = sorted({i for each in lists for i in each if i is not Ellipsis})
        letters = sorted(LETTERS)[:len(used)] if len(used) > 26 else LETTERS
        names = {Ellipsis: "...", **dict(zip(used, letters))}
        terms = ["".join(names[i] for i in each) for each in lists]
        inputs = ",".join(terms[:len(operands)])
        return [Const(inputs if len(args) % 2 == 0 else f"{inputs}->{terms[-1]}"), *operands]

    # np.r_[0.0, x, 1.0], np.c_[x, y], np.mgrid[0:n, 0:m], np.ogrid[0:n]

    def in_brackets(self, which, index, node):
        """What NumPy's objects for brackets make of an index."""
        given = index.items if isinstance(index, Pack) else tuple(map(Const, index.value)) if isinstance(
            index, Const) and isinstance(index.value, tuple) else None
        items = [index] if given is None else list(given)
        if isinstance(which, JOINS):
            return self.joined_in_brackets(which, items, node)
        return self.grid_in_brackets(which, items, given is None, node)

    def joined_in_brackets(self, which, items, node):
        """What stands in the brackets, joined: along the first axis, or as columns along the last."""
        items = [self.array_of(self.as_given(i), node) if isinstance(i, (Pack, Struct)) else i for i in items]
        given = [self.part_in_brackets(which, i, node) for i in items]
        arrays = [self.array_of(Struct("list", [a]), node) if not fact_of(a).dims else a for a in given]
        dtype = np.result_type(*[fact_of(a).dtype(1) if fact_of(a).weak else np.dtype(fact_of(a).dtype) for a in given])
        arrays = [a if same_dtype(fact_of(a).dtype, dtype) else self.converted(a, dtype, node) for a in arrays]
        if which.ndmin > 1:
            arrays = [self.build.item(a, Const((slice(None), None))) if fact_of(a).rank == 1 else a for a in arrays]
        if len({fact_of(a).rank for a in arrays}) > 1:
            self.fail(ShapeError, f"{spelled_brackets(which)}: the arrays have different numbers of axes", node)
        axis = {"axis": Const(which.axis)} if which.axis else {}
        return self.rule_call(np.concatenate, [Struct("list", arrays)], axis, node)

    def part_in_brackets(self, which, value, node):
        """One of them: a number, an array, or a range of numbers."""
        if isinstance(value, Slice) or isinstance(value, Const) and isinstance(value.value, slice):
            return self.range_in_brackets(value, node)
        if not isinstance(fact_of(value), Array):
            self.fail(RuleError, f"{spelled_brackets(which)} takes numbers, arrays and ranges", node,
                      "Write np.concatenate([a, np.arange(n)]).")
        return value

    def range_in_brackets(self, value, node):
        """start:stop:step; an imaginary step says how many numbers there are, with both ends."""
        start, stop, step = ends_of(value)
        if isinstance(step, Const) and isinstance(step.value, complex):
            return self.call_known(np.linspace, [start, stop, Const(int(abs(step.value)))], {}, node)
        if not is_value(start, 0) or not is_value(step, 1):
            return self.call_known(np.arange, [start, stop, *([] if is_value(step, 1) else [step])], {}, node)
        return self.call_known(np.arange, [stop], {}, node)

    def grid_in_brackets(self, which, items, alone, node):
        """The coordinates of a grid: np.mgrid gives each as an array of all axes, np.ogrid along its own axis."""
        if not all(isinstance(i, Slice) or isinstance(i, Const) and isinstance(i.value, slice) for i in items):
            self.fail(RuleError, "np.mgrid and np.ogrid take ranges", node, "Write np.meshgrid(a, b, indexing='ij').")
        ends = [ends_of(i) for i in items]
        if not which.sparse and not alone and all(
                is_value(a, 0) and is_value(step, 1) and fact_of(b).kind == "i" for a, b, step in ends):
            return self.call_known(np.indices, [Struct("tuple", [b for _, b, _ in ends])], {}, node)
        axes = [self.range_in_brackets(i, node) for i in items]
        dtype = np.result_type(*[fact_of(a).dtype for a in axes])
        axes = [a if same_dtype(fact_of(a).dtype, dtype) else self.converted(a, dtype, node) for a in axes]
        if alone:
            return axes[0]
        if not which.sparse:
            return self.array_of(self.call_known(np.meshgrid, axes, {"indexing": Const("ij")}, node), node)
        return Struct("tuple", [a if len(axes) == 1 else self.build.item(a, Const(tuple(
            slice(None) if i == k else None for i in range(len(axes))))) for k, a in enumerate(axes)])


def spelled_brackets(which):
    return f"np.{type(which).__name__[0].lower()}_"


def ends_of(value):
    """start, stop and step of a range in brackets."""
    given = value.value if isinstance(value, Const) else value
    start, stop, step = (p if isinstance(p, Var | Const) else Const(p) for p in (given.start, given.stop, given.step))
    return Const(0) if is_value(start, None) else start, stop, Const(1) if is_value(step, None) else step


def is_value(node, value):
    return isinstance(node, Const) and type(node.value) is type(value) and node.value == value
