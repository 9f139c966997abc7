# SPDX-License-Identifier: Apache-2.0
"""vmap of control flow that is the same for all examples: the statements stay, their blocks are batched."""

import numpy as np

from gradscribe.ast_transform.core.form import (
    Carry,
    Const,
    For,
    If,
    Join,
    Pack,
    Var,
    While,
)
from gradscribe.ast_transform.core.kinds import Listed, Sequence, Stack
from gradscribe.ast_transform.passes.vmap.varies import differs


class Control:
    def inner(self, body):
        outer, self.build.block = self.build.block, []
        mark = self.block(body)
        made, self.build.block = self.build.block, outer
        return made, mark

    def step_If(self, step):
        arms = []
        for body, side in ((step.then, "then"), (step.orelse, "orelse")):
            outer, self.build.block = self.build.block, []
            mark = self.block(body)
            results = [self.whole(getattr(j, side), self.varies.of(j.var)) for j in step.joins]
            arms.append((self.build.block, results))
            del self.scope[mark:]
            self.build.block = outer
        joins = [Join(self.like(j.var) if differs(self.varies.of(j.var)) else j.var, a, b)
                 for j, a, b in zip(step.joins, arms[0][1], arms[1][1])]
        self.build.block.append(If(self.op(step.test), arms[0][0], arms[1][0], joins, step.origin))
        self.scope += [j.var for j, old in zip(joins, step.joins) if old.var not in self.unset]

    def carried(self, step, body):
        """(batched carries of a loop, block of its passes, result of `body`, a function that batches a pass)."""
        entered = []
        for c in step.carries:
            mask = self.varies.of(c.inner)
            listed = isinstance(c.inner.fact, Stack) and isinstance(c.init, Pack)
            init = self.whole(c.init, (mask,) * len(c.init.items) if listed else mask,
                              c.inner.fact if isinstance(c.init, Const) else None)
            entered.append((c, init, self.like(c.inner) if differs(mask) else c.inner))
        outer, self.build.block = self.build.block, []
        mark = len(self.scope)
        self.scope += [v for c, _, v in entered if c.inner not in self.unset]
        made = body()
        carries = []
        for c, init, inner in entered:
            after = self.whole(c.next, self.varies.of(c.inner), c.inner.fact if isinstance(c.next, Const) else None)
            carries.append(Carry(inner, init, after, c.outer))
        block, self.build.block = self.build.block, outer
        del self.scope[mark:]
        for c in carries:
            certain = c.outer not in self.unset
            if differs(self.varies.of(c.outer)):
                c.outer = self.like(c.outer)
            if certain:
                self.scope.append(c.outer)
        return carries, block, made

    def step_For(self, step):
        items = [self.walked(v, source) for v, source in step.items]

        def body():
            self.scope += [v for v, _ in items] + [step.index]
            self.block(step.body)
        carries, block, _ = self.carried(step, body)
        self.build.block.append(For(step.index, self.op(step.count), tuple(items), carries, block, step.origin,
                                    step.reverse, step.policy))

    def walked(self, var, source):
        """(variable, operand) of an item of a loop; the batch axis of the operand is not first."""
        mask = self.varies.of(var)
        if not differs(mask):
            return var, self.op(source)
        fact = source.fact if isinstance(source, Var) else None
        if isinstance(source, Pack) or isinstance(fact, Sequence):
            many = len(source.items) if isinstance(source, Pack) else len(fact.elements)
            return self.like(var), self.whole(source, (mask,) * many)
        given = self.op(source)
        if not isinstance(fact, (Listed, Stack)):
            given = self.build.apply(np.moveaxis, given, Const(0), Const(1), hint=source.hint)
        return self.like(var), given

    def step_While(self, step):
        def body():
            outer, self.build.block = self.build.block, []
            mark = self.block(step.head)
            head, test = self.build.block, self.op(step.test)
            del self.scope[mark:]
            self.build.block = outer
            self.block(step.body)
            return head, test
        carries, block, (head, test) = self.carried(step, body)
        self.build.block.append(While(carries, head, test, block, step.origin, step.policy))
