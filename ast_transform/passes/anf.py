# SPDX-License-Identifier: Apache-2.0
"""The builder of the normal form: one operation per statement, with constant folding that is exact for every array.

>>> from gradscribe.ast_transform.core.form import Var, Const
>>> from gradscribe.ast_transform.core.kinds import Array
>>> build, x = Builder(), Var("x", Array(float))
>>> build.multiply(Const(1), x) is x
True
"""
import math
import operator
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    AGAIN,
    AS_USUAL,
    ON_DISK,
    TEMPORARY,
    Apply,
    Const,
    Let,
    Var,
    is_application,
    operands,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import astype, shape_of
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.words import shortened
from gradscribe.ast_transform.rules.identities import bindings, identities_of, written
from gradscribe.ast_transform.source.diagnose import OF_OBJECTS, LanguageError, ShapeError

_COMPARED = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}
_PYTHON = {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.floordiv, operator.mod,
           operator.truediv, operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
           operator.not_, operator.and_, operator.or_, operator.xor, operator.invert, abs}
_SCALARS = (bool, int, float, complex)


def strictest(said: list[str]) -> str:
    """How the backward sweep has a value, if checkpoints inside each other say these."""
    return next((how for how in (AGAIN, ON_DISK) if how in said), AS_USUAL)


class Builder:
    """Appends statements to the current block."""

    def __init__(self, origin=None, block=None):
        self.block, self.origin, self.made = [] if block is None else block, origin, {}
        self.fold = True
        self.policies, self.segments = (), ""   # inside checkpoints: their policies, and what For.policy says
        self.saving = AS_USUAL          # how the backward sweep has what is made for the statement at hand
        self.to_read = False            # whether the source is for reading: 1 / 3 stays, not 0.3333333333333333

    def let(self, hint, value, fact, kind=TEMPORARY):
        """A new variable that is set to a value."""
        var = Var(hint, fact, kind, strictest([self.saving, *(p.of_value(value) for p in self.policies)]))
        self.block.append(Let((var,), value, self.origin))
        self.made[var] = value
        return var

    @contextmanager
    def made_for(self, step, origin):
        """Gives new statements an origin, and their values the mark that checkpoints have set on those of `step`."""
        before, saving = self.origin, self.saving
        self.origin = origin
        self.saving = strictest([t.saving for t in step.targets]) if isinstance(step, Let) else AS_USUAL
        try:
            yield
            self.origin = before
        finally:
            self.saving = saving

    def several(self, hints, value, fact_list, kind=TEMPORARY):
        """New variables that are set to the results of one operation."""
        targets = tuple(Var(h, f, kind) for h, f in zip(hints, fact_list))
        self.block.append(Let(targets, value, self.origin))
        return targets

    def definition(self, node):
        """The operation that makes a variable, or None."""
        value = self.made.get(node) if isinstance(node, Var) else None
        return value if isinstance(value, Apply) else None

    def apply(self, function, *args, hint=None, kind=TEMPORARY, fact=None, **kwargs):
        """The result of an operation on operands; a constant where it can be computed exactly now."""
        return self.call(function, args, kwargs, hint, kind, fact)

    def call(self, function, args, kwargs, hint=None, kind=TEMPORARY, fact=None):
        """The same for a function whose keywords may be called `hint`, `kind` or `fact` themselves."""
        words = tuple(kwargs.items())
        if not words and function in _PYTHON and all(isinstance(a, Const) and type(a.value) in _SCALARS for a in args):
            known = self.computed(function, args)
            if known is not None:
                return known
        if function in _COMPARED and len(args) == 2 and not words:
            known = self.lengths_compared(function, *args)
            if known is not None:
                return known
        if function is np.zeros_like and len(args) == 1 and not words:
            again = self.definition(args[0])
            if again is not None and is_application(again, np.zeros_like) and len(again.args) == 1 and not again.kwargs:
                args = again.args
        value = Apply(function, args, words)
        if fact is None:
            try:
                fact = types.infer(function, args, words)
            except Unfit as error:
                raise ShapeError(f"{spelled(function)}: {error}", self.origin, error.advice) from None
        self.follows(value, fact)
        return self.let(hint or describe(function, args), value, fact, kind)

    def follows(self, value, fact):
        """Rejects an operation that puts numbers into an array of objects, through which no derivative is taken."""
        if isinstance(fact, Array) and fact.of_objects and any(
                isinstance(v.fact, Array) and v.fact.differentiable for v in operands(value)):
            raise LanguageError(OF_OBJECTS, self.origin, "Use a list.")

    def lengths_compared(self, function, a, b):
        """The constant result of comparing two lengths that differ by a known number; None for other operands."""
        lengths = [fact_of(v).length.normal() if isinstance(v, Var) and getattr(self.made.get(v), "function", None) is
                   shape_of else None for v in (a, b)]
        if None in lengths or lengths[0].symbol is not lengths[1].symbol:
            return None
        return Const(function(lengths[0].offset, lengths[1].offset))

    @staticmethod
    def computed(function, args):
        try:
            value = function(*(a.value for a in args))
        except Exception:               # it fails when the user's line runs
            return None
        return Const(value) if type(value) in _SCALARS else None

    # arithmetic with exact foldings

    def negative(self, a):
        if isinstance(a, Const) and type(a.value) in (int, float, complex):
            return Const(-a.value)
        found = self.by_identity(operator.neg, a)
        return self.apply(operator.neg, a) if found is None else found

    def by_identity(self, function, *args, number=None):
        """What the first line of rules/identities.py that fits makes of a call; None where none does.

        A negative number is the negation of another one; number: one that is not.
        """
        def taken_apart(node, of):
            if of is operator.neg and node is not number and isinstance(node, Const) and type(
                    node.value) in (int, float) and node.value < 0:
                return (Const(-node.value),)
            made = self.definition(node)
            return made.args if is_application(made, of) and not made.kwargs else None

        for identity in identities_of(function):
            bound: dict = {}
            if not identity.is_of_factors and len(args) == len(identity.left.args) and all(
                    bindings(p, a, taken_apart, bound) is not None for p, a in zip(identity.left.args, args)):
                facts = [fact_of(v) for v in bound.values()]
                if not identity.words or all(isinstance(f, Array) and identity.holds_for(f.kind, f.rank)
                                             for f in facts):
                    return written(identity.right, bound, lambda f, *given: self.arithmetic(f, given))
        return None

    def alike(self, a, b):
        """Whether two operands are one value, or are computed by the same arithmetic."""
        if a is b:
            return True
        if isinstance(a, Const) and isinstance(b, Const):
            return type(a.value) is type(b.value) and type(a.value) in (int, float) and a.value == b.value
        x, y = self.definition(a), self.definition(b)
        return x is not None and y is not None and x.function is y.function and x.function in _PYTHON and \
            len(x.args) == len(y.args) and all(map(self.alike, x.args, y.args))

    def sign_of(self, a):
        """(whether an operand is negated or a negative constant, the operand without its sign)."""
        if isinstance(a, Const) and type(a.value) in (int, float) and a.value < 0:
            return True, Const(-a.value)
        made = self.definition(a)
        return (True, made.args[0]) if is_application(made, operator.neg) else (False, a)

    def multiply(self, a, b):
        found = self.by_identity(operator.mul, a, b)
        return self._multiply(a, b) if found is None else found

    def _multiply(self, a, b):
        if _number(b) and not _number(a):
            a, b = b, a
        if _number(a) and _number(b):
            return b if a.value == 1 else a if b.value == 1 else Const(a.value * b.value)
        if _number(a) and a.value == 1 and self.keeps(a, b):
            return b
        made = self.definition(b)
        if is_application(made, operator.truediv) and _number(made.args[0]) and made.args[0].value == 1:
            return self.divide(a, made.args[1])
        if _number(a) and is_application(made, operator.mul) and _number(made.args[0]):
            c = made.args[0].value
            if _exact(a.value, c):
                return self._multiply(Const(a.value * c), made.args[1])
        if _number(a) and a.value == 1 and fact_of(b).kind in "biu":
            a = Const(1.0)
        return self.apply(operator.mul, a, b)

    @staticmethod
    def keeps(one, b):
        """Whether 1 * b has the dtype of b."""
        kind = fact_of(b).kind
        return (
            kind in "fc"
            and not (isinstance(one.value, complex) and kind == "f")
            or kind in "iu"
            and type(one.value) is int
        )

    def divide(self, a, b):
        found = self.by_identity(operator.truediv, a, b)
        if found is not None:
            return found
        if _number(b) and b.value == 1 and fact_of(a).kind in "fc":
            return a
        if _number(b) and type(b.value) is float and b.value == 0.5 and not _number(a):
            return self.multiply(Const(2), a)
        if self.to_read and _number(a) and a.value == 1 and _number(b) and b.value and not isinstance(
                b.value, complex) and math.frexp(b.value)[0] not in (0.5, -0.5):    # dy * (1 / 3) is dy / 3
            return self.let("t", Apply(operator.truediv, (a, b)), Array(float))
        return self.apply(operator.truediv, a, b)

    def add(self, a, b):
        if not _number(a) and self.alike(a, b):
            return self.multiply(Const(2), a)
        if _number(a) and _number(b):
            return Const(a.value + b.value)
        found = self.by_identity(operator.add, a, b, number=a)
        return self.apply(operator.add, a, b) if found is None else found

    def subtract(self, a, b):
        found = self.by_identity(operator.sub, a, b)
        if found is not None:
            return found
        if _number(a) and _number(b):
            return Const(a.value - b.value)
        return self.apply(operator.sub, a, b)

    def arithmetic(self, function, args):
        """An operation of a rule or of a mode, folded where that is exact."""
        fold = {operator.mul: self.multiply, operator.add: self.add, operator.sub: self.subtract,
                operator.truediv: self.divide}.get(function)
        if fold and all(isinstance(fact_of(a), Array) for a in args):
            return fold(*args)
        if function is operator.neg:
            return self.negative(args[0])
        if function is operator.pow and _number(args[1]) and args[1].value == 1 and fact_of(args[0]).kind in "fc":
            return args[0]
        return self.apply(function, *args)

    # indexing, dtypes and lengths

    def item(self, x, index, hint=None, kind=TEMPORARY):
        """x[index]"""
        fact = fact_of(x)
        try:
            found = types.item(fact, index)
        except Unfit as error:
            raise ShapeError(f"indexing: {error}", self.origin, error.advice) from None
        except IndexError:
            raise ShapeError("the index is out of range", self.origin) from None
        return self.let(
            hint or (x.hint if isinstance(x, Var) else "item"), Apply(operator.getitem, (x, index)), found, kind
        )

    def cast(self, x, dtype, hint="t", kind=TEMPORARY, length=None):
        """x in another dtype."""
        dims = fact_of(x).dims
        args = (x, Const(dtype)) if dims else (x, Const(dtype), Const(True))
        value, fact = Apply(astype, args), Array(dtype, dims, length)
        self.follows(value, fact)
        return self.let(hint, value, fact, kind)

    def length(self, x, k):
        """x.shape[k] as an operand."""
        d = fact_of(x).dims[k].normal()
        if d.symbol is None:
            return Const(d.offset)
        return self.let(f"n_{k}", Apply(shape_of, (x, Const(k))), Array(int, (), d))


def _number(node):
    return isinstance(node, Const) and type(node.value) in (int, float, complex)


def _exact(a, b):
    """Whether multiplying by a and then by b is exactly multiplying by a * b: one of them is a power of two."""
    def whole(v):
        return (
            isinstance(v, int) or isinstance(v, float) and v == int(v) and abs(v) < 2**53
            if not isinstance(v, complex) and math.isfinite(v)
            else False
        )
    def power_of_two(v):
        return not isinstance(v, complex) and v != 0 and math.isfinite(v) and math.frexp(abs(v))[0] == 0.5
    return power_of_two(a) or power_of_two(b)


_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.pow: "**",
          operator.matmul: "@", operator.getitem: "[]", operator.neg: "-", operator.lt: "<", operator.gt: ">"}


PACKAGES = ("scipy.linalg", "scipy.special")        # looked up only if the program has imported them
OBJECTS = "scipy.stats"                             # its functions are objects, or methods of objects


def _of_object(function):
    """The spelling of an object of scipy.stats, or of a method of one; None for other functions."""
    held = vars(sys.modules.get(OBJECTS, object))
    owner = getattr(function, "__self__", function)
    if not type(owner).__module__.startswith(OBJECTS):
        return None
    name = next((n for n, v in held.items() if v is owner), None)
    if name is None:
        return None
    return f"{OBJECTS}.{name}" if owner is function else f"{OBJECTS}.{name}.{function.__name__}"


def spelled(function: Any) -> str:
    """The spelling of a function in messages: np.sin, scipy.linalg.expm, +."""
    if function in _SIGNS:
        return _SIGNS[function]
    name = getattr(function, "__name__", None) or _of_object(function) or repr(function)
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return f"np.{function.__self__.__name__}.{name}"
    if vars(np).get(name) is function:
        return f"np.{name}"
    for package in PACKAGES:
        if getattr(sys.modules.get(package), name, None) is function:
            return f"{package}.{name}"
    if isinstance(function, np.ufunc):
        return f"np.{name}"
    module = getattr(function, "__module__", "") or ""
    if module.startswith(OBJECTS):
        return _of_object(function) or name
    if module.startswith("numpy.linalg"):
        return f"np.linalg.{name}"
    if module.startswith("numpy.fft"):
        return f"np.fft.{name}"
    if module == "numpy":
        return f"np.{name}"
    if module in ("math", "functools"):
        return f"{module}.{name}"
    return name


def describe(function: Any, args: Iterable) -> str:
    """A descriptive name for a temporary: sin_x for np.sin(x)."""
    names = [a.hint for a in args if isinstance(a, Var) and not _is_unnamed_length(a)]
    label = getattr(function, "__name__", "value")
    if function in _PYTHON or function is operator.matmul or label.startswith("_"):
        return "z" if any(isinstance(a, Var) and getattr(a.fact, "rank", 0) for a in args) else "t"
    if label == "getitem":
        return names[0] if names else "item"
    return shortened(f"{label}_{names[0]}") if names else label


def _is_unnamed_length(v):
    return v.kind == TEMPORARY and type(v.fact) is Array and not v.fact.dims and v.fact.length is not None
