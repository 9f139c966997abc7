# SPDX-License-Identifier: Apache-2.0
"""Calls beyond plain arguments: lists for arrays, lengths that must be equal, a ufunc's outer, dtype= and where=."""
import operator
from inspect import Parameter

import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, same_dtype
from gradscribe.ast_transform.core.rule import ARRAY, AS_GIVEN, SEQUENCE
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.types import equal_lengths
from gradscribe.ast_transform.passes.values import Grown, Part, RangeValue, Struct
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError


class Ufuncs:
    def as_taken(self, rule, bound, args, words, node):
        """The arguments of a call; lists are the arrays, or the sequences of arrays, that the rule takes them for."""
        positional, keywords, parameters = [], dict(words), bound.signature.parameters
        for name, value in bound.arguments.items():
            takes, kind = rule.takes(name), parameters[name].kind
            if kind is Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(self.taken_for(takes or ARRAY, v, node) for v in value)
                positional += bound.arguments[name]
            elif kind is not Parameter.VAR_KEYWORD:
                bound.arguments[name] = new = self.taken_for(takes, value, node)
                if name in words:
                    keywords[name] = new
                else:
                    positional.append(new)
        return positional, keywords

    def taken_for(self, takes, value, node):
        """A list as what an argument is taken for; where a record does not say, an array if a derivative may go through
        it: lists of whole numbers may be lengths, axes or places."""
        if isinstance(value, RangeValue) and takes == ARRAY:
            return self.call_known(np.arange, [value.start, value.stop, value.step], {}, node)
        if takes == AS_GIVEN or isinstance(value, Part) and not isinstance(value.fact, Sequence):
            return value
        held = self.settle(value)
        if not isinstance(held, Struct) or held.kind not in ("list", "tuple"):
            return value
        if takes == SEQUENCE:
            items = [self.taken_for(ARRAY, i, node) for i in held.items]
            items = [self.array_of_grown(i) if isinstance(i, Grown) else i for i in items]
            same = all(new is old for new, old in zip(items, held.items))
            return value if same else Struct(held.kind, items, held.keys, held.cls)
        return self.array_of(held, node) if takes == ARRAY or self.holds_entries(held) else value

    def holds_entries(self, value):
        """Whether a list holds, at any depth, a number or an array that a derivative may go through."""
        return any(
            isinstance(item, Grown) or isinstance(item, Struct) and self.holds_entries(item) or
            isinstance(item, (Var, Part)) and item.fact.differentiable for item in value.items)

    def entry_by_entry(self, function, left, right, node):
        """An operator on an array and a list of numbers; None where Python asks the list, or neither of them."""
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Struct) and other.kind in ("list", "tuple") and self.of_numpy(one) and (
                    one.fact.dims or function is not operator.mul):             # a number repeats the list
                left, right = (self.array_of(v, node) if isinstance(v, Struct) else v for v in (left, right))
                return self.operation(function, [left, right], node)
        return None

    @staticmethod
    def of_numpy(value):
        """Whether a value takes lists for arrays: an array does, and a number of NumPy's; Python's numbers do not."""
        return isinstance(value, Var) and isinstance(value.fact, Array) and not value.fact.weak

    @staticmethod
    def is_count(value):
        """Whether a value is a whole number of Python's that is not known when transforming."""
        return isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.weak and value.fact.dtype is int

    def equal_lengths(self, rule, bound, node):
        """Of a call that is read as others: what the record says of the lengths of its operands."""
        try:
            equal_lengths(rule, {k: tuple(map(self.settle, v)) if isinstance(v, (tuple, list)) else self.settle(v)
                                 for k, v in bound.arguments.items()})
        except Unfit as error:
            self.fail(ShapeError, f"{spelled(rule.function)}: {error}", node, error.advice)

    def call_outer(self, function, args, words, node):
        """ufunc.outer(a, b): each entry of one with each entry of the other."""
        ufunc = function.__self__
        if len(args) != 2:
            self.fail(RuleError, f"np.{ufunc.__name__}.outer: only (a, b) is understood", node)
        a, b = (self.array_of(v, node) if isinstance(v, Struct) else v for v in map(self.settle, args))
        for v in (a, b):
            if not isinstance(fact_of(v), Array):
                self.fail(ShapeError, f"np.{ufunc.__name__}.outer: an array is needed, {self.spell(v)} is given", node)
        if fact_of(a).rank and fact_of(b).rank:
            a = self.build.item(a, Const((Ellipsis,) + (None,) * fact_of(b).rank))
        return self.call_known(ufunc, [a, b], words, node)

    def call_ufunc(self, ufunc, args, words, node):
        """dtype= converts the operands; where= without out= leaves entries unset."""
        words, label = dict(words), f"np.{ufunc.__name__}"
        mask = self.settle(words.pop("where", Const(True)))
        if not (isinstance(mask, Const) and mask.value is True):
            self.fail(RuleError, f"{label} with where= and without out= leaves the other entries unset", node,
                      f"Write np.where(mask, {label}(...), 0), or give out=.")
        dtype = self.static(words.pop("dtype", Const(None)), f"the dtype of {label}", node)
        if dtype is None:
            return self.call_known(ufunc, args, words, node)
        dtype, operands = self.tried(np.dtype, dtype, node=node), []
        for value in map(self.settle, args):
            fact = fact_of(self.array_of(value, node) if isinstance(value, Struct) else value)
            if isinstance(fact, Array) and not np.can_cast(np.dtype(fact.dtype), dtype, "same_kind"):
                self.fail(ShapeError, f"{label}: {self.spell(value)} is not converted to {dtype}", node,
                          "NumPy refuses it as well; convert it with astype.")
            operands.append(self.converted(value, dtype, node))
        value = self.operand(self.settle(self.call_known(ufunc, operands, words, node)))
        if not same_dtype(np.dtype(fact_of(value).dtype), dtype):
            self.fail(RuleError, f"{label} with dtype={dtype} gives {np.dtype(fact_of(value).dtype)}", node,
                      "Leave dtype= out, and convert the result with astype.")
        return value


OUTER = {u.outer: "call_outer" for u in vars(np).values() if isinstance(u, np.ufunc) and u.nin == 2 and u.nout == 1}
