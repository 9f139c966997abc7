# SPDX-License-Identifier: Apache-2.0
"""The forms in which np.einsum is called, as one: a text, and the operands."""
import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Struct
from gradscribe.ast_transform.rules.products import LETTERS
from gradscribe.ast_transform.source.diagnose import RuleError


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
