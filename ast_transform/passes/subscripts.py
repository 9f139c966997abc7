# SPDX-License-Identifier: Apache-2.0
"""The forms in which np.einsum is called, as one: a text, and the operands.  np.r_ and np.c_ as np.concatenate."""
import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice
from gradscribe.ast_transform.core.kinds import Array, same_dtype
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Struct
from gradscribe.ast_transform.rules.products import LETTERS
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError


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

    # np.r_[0.0, x, 1.0] and np.c_[x, y]

    def joined_in_brackets(self, which, index, node):
        """What stands in the brackets, joined: along the first axis, or as columns along the last."""
        items = list(index.items) if isinstance(index, Pack) else [index]
        items = [self.array_of(self.as_given(i), node) if isinstance(i, (Pack, Struct)) else i for i in items]
        given = [self.in_brackets(which, i, node) for i in items]
        arrays = [self.array_of(Struct("list", [a]), node) if not fact_of(a).dims else a for a in given]
        dtype = np.result_type(*[fact_of(a).dtype(1) if fact_of(a).weak else np.dtype(fact_of(a).dtype) for a in given])
        arrays = [a if same_dtype(fact_of(a).dtype, dtype) else self.converted(a, dtype, node) for a in arrays]
        if which is np.c_:
            arrays = [self.build.item(a, Const((slice(None), None))) if fact_of(a).rank == 1 else a for a in arrays]
        if len({fact_of(a).rank for a in arrays}) > 1:
            self.fail(ShapeError, f"np.{'r' if which is np.r_ else 'c'}_: the arrays have different numbers of axes",
                      node)
        axis = {} if which is np.r_ else {"axis": Const(-1)}
        return self.rule_call(np.concatenate, [Struct("list", arrays)], axis, node)

    def in_brackets(self, which, value, node):
        """One of them: a number, an array, or a range of numbers that are known."""
        known = value.value if isinstance(value, Const) else None
        if isinstance(known, slice):
            return self.array_of(Struct("list", list(map(Const, which[known].ravel().tolist()))), node)
        if isinstance(value, Slice) or not isinstance(fact_of(value), Array):
            self.fail(RuleError, f"np.{'r' if which is np.r_ else 'c'}_ takes numbers, arrays and ranges that are "
                      "known when transforming", node, "Write np.concatenate([a, np.arange(n)]).")
        return value
