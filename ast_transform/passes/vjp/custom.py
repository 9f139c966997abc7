# SPDX-License-Identifier: Apache-2.0
"""Backwards through functions that bring their own derivative.

What a rule of the user's own gives is held against the argument, or the result, that it belongs to: the same keys in
any order, the same shapes.
"""
import numpy as np

from gradscribe.ast_transform.core.form import USER, Const, Function, Pack, Param, Var, replaced, substituted
from gradscribe.ast_transform.core.kinds import Array, unify
from gradscribe.ast_transform.passes.derive import refilled, with_keys
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.symbolic import is_array, is_zero, pair_of, without_zeros, zero_of
from gradscribe.ast_transform.passes.values import Struct
from gradscribe.ast_transform.source.diagnose import KindError


class CustomRules:
    def own_rule(self, step, dys):
        mark = step.value.function
        if mark.rule.mode == "jvp":
            dy = [self.zero(t) if d is None else self.expanded(d, t) for d, t in zip(dys, step.targets)]
            return self.transposed_rule(step, mark, dy)
        absent = zero_of if mark.rule.symbolic_zeros else lambda reader, t: self.zero(t)
        dy = [absent(self.reader, t) if d is None else self.expanded(d, t) for d, t in zip(dys, step.targets)]
        value = self.reader.to_value(refilled(mark.callee.like, iter(dy)))
        fixed = [mark.args[k] for k in mark.rule.nondiff_argnums]
        found = self.reader.children(self.reader.enter(mark.rule.bwd, [*fixed, mark.residuals, value], {}))
        wanted = [a for k, a in enumerate(mark.args) if k not in mark.rule.nondiff_argnums]
        if not isinstance(found, Struct) or len(found.items) != len(wanted):
            adjoints = f"{len(wanted)} adjoint{'s' * (len(wanted) != 1)}"
            raise KindError(f"the backward half of {mark.rule.__name__} must return a tuple of {adjoints}", step.origin,
                            "One for each argument, None for zero.")
        for argument, part in zip(wanted, found.items):
            self.add_tree(argument, part, mark.rule.__name__, step.origin)

    def add_tree(self, argument, part, label, origin):
        """An adjoint that a rule of the user's own gives: None is zero, a container has the argument's structure."""
        part = self.reader.settle(part)
        if is_zero(part) or isinstance(part, Const) and part.value is None:
            return
        if isinstance(argument, Struct):
            same = isinstance(part, Struct) and len(part.items) == len(argument.items) and \
                set(part.keys) == set(argument.keys)
            if not same:
                raise KindError(f"the backward half of {label} gives "
                                f"{with_keys(part, self.reader.spell(part))} as the adjoint of "
                                f"{with_keys(argument, self.reader.spell(argument))}", origin,
                                "Give it the structure of the argument.")
            for k, a in enumerate(argument.items):
                at = part.keys.index(argument.keys[k]) if argument.keys else k
                self.add_tree(a, part.items[at], label, origin)
        elif isinstance(argument, Var) and argument in self.active:
            whole, given = argument.fact.dims, fact_of(part)
            if not isinstance(given, Array) or given.rank == len(whole) and not all(
                    d.is_unit or unify(d, mine) for d, mine in zip(given.dims, whole)):
                raise KindError(f"the backward half of {label} gives {self.reader.spell(part)} as the adjoint of "
                                f"{self.reader.spell(argument)}", origin, "Give it the shape of the argument.")
            self.add(
                argument,
                self.unbroadcast(part, fact_of(part).dims if fact_of(part).rank > len(whole) else whole, argument, ()),
            )

    def transposed_rule(self, step, mark, dy):
        """Reverse mode of a rule for forward mode: it is linear in the tangents, so their adjoints are the answer."""
        from_args = [a for k, a in enumerate(mark.args) if k not in mark.rule.nondiff_argnums]
        fixed = [mark.args[k] for k in mark.rule.nondiff_argnums]
        given, dots = [], []            # an operand may be given twice: a tangent for each place
        def dot_of(value):
            if isinstance(value, Struct):
                return Struct(value.kind, [dot_of(self.reader.settle(i)) for i in value.items], value.keys, value.cls)
            if isinstance(value, Var) and value in self.active:
                given.append(value)
                dots.append(Var(f"{value.hint}_dot", self.whole_fact(value), USER))
                return dots[-1]
            return zero_of(self.reader, value) if mark.rule.symbolic_zeros and is_array(value) else Const(0.0)

        outer, self.build.block = self.build.block, []
        tangents = Struct("tuple", [dot_of(a) for a in from_args])
        y_dot = pair_of(self.reader, mark.rule, mark.callee, [*fixed, Struct("tuple", from_args), tangents], step)[1]
        y_dot = self.reader.result_operand(without_zeros(self.reader, y_dot))
        y_dot = Pack("tuple", tuple(mark.callee.leaves(y_dot, "the rule", step.origin)))
        body, self.build.block = self.build.block, outer
        function = Function(self.label, [Param(v.hint, v) for v in dots], body, y_dot)
        inner = self.engine.again()
        inner.many = inner.linear = True
        origin = self.build.origin
        made = inner.run(function, dots, Pack("tuple", tuple(dy)))
        self.build.block, self.build.origin = outer, origin
        zeros = {v: self.build.apply(np.zeros_like, k) if k.fact.dims else Const(0.0) for k, v in zip(given, dots)}
        outer += replaced(made.body, zeros)
        for argument, part in zip(given, made.result.items):
            self.add(argument, substituted(part, zeros))
