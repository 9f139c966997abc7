# SPDX-License-Identifier: Apache-2.0
"""Running error analysis: each statement is followed by a bound of the error of its value.

A value that rounds passes on the errors of its operands, times a bound of the derivative between the number and the
exact one, and adds its own, in units of u, half the distance from 1 to the next number:

    e_z = |dz/dx| e_x + |dz/dy| e_y + u |z|

A result that may underflow has `tiny` more, the smallest normal number (Higham, section 2.8).  The errors are computed
with rounding as well, so u is rounded up by more than their relative errors.

A number that decides something may do so otherwise in exact arithmetic, if its error is as large as its distance from
the border.  `unsure` has the line of the last such decision, and makes the bound infinite.

J. Wilkinson, Rounding Errors in Algebraic Processes, 1963; N. Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, section 3.3.  What an operation does to errors is in rules/rounding.py.  Loops, branches, containers and
writes are those of forward mode: `Errors` gives it other rules.

>>> from gradscribe.ast_transform.examples import bound, show
>>> print(show(bound("def f(x): return x * x + 1.0", 2.0)))
error_bound_f(x):
    t = x * x
    t_1 = abs(t)
    t_2 = 1.12e-16 * t_1
    prod_x_err = t_2 + 2.3e-308
    t_3 = t + 1.0
    t_4 = abs(t_3)
    t_5 = 1.12e-16 * t_4
    total_err = prod_x_err + t_5
    return (t_3, total_err)
"""
import decimal
import inspect
import math
import operator
import warnings
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import (
    TANGENT,
    Apply,
    Const,
    Effect,
    Function,
    If,
    Join,
    Let,
    Pack,
    Var,
    While,
    all_made,
    copied,
    is_application,
    operands,
    placed,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import Quoted, add_at, held, put, put_add
from gradscribe.ast_transform.core.rule import OPERATIONS
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.callees import EVERY, without_calls
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.jvp import Forward
from gradscribe.ast_transform.passes.tangents import expanded
from gradscribe.ast_transform.reader.gradient_edits import Edit
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.rules import rounding_decisions, rounding_functions  # noqa: F401  (parts of records)
from gradscribe.ast_transform.rules.rounding import ELEMENTARY, coefficients
from gradscribe.ast_transform.source.diagnose import RuleError

AS_OPERATIONS = "Write it with operations that have one, or take the error bounds of the parts before and after it."
STORES = (put, put_add, add_at)
WARNING = gast.parse('warnings.warn(f"line {unsure}: rounding errors may change what is decided here, so the bound is "'
                     '"infinite", RuntimeWarning)', mode="eval")


def unit(dtype: Any) -> float:
    """The unit roundoff of a dtype, rounded up: by half a percent at least, and to three digits.

    >>> unit(np.float64), 2.0 ** -53, unit(np.float32), 2.0 ** -24
    (1.12e-16, 1.1102230246251565e-16, 6e-08, 5.960464477539063e-08)
    """
    return upwards(1.005 * float(np.finfo(np.dtype(dtype)).eps) / 2, 3)


def tiny(dtype: Any) -> float:
    """The smallest normal number of a dtype, rounded up to two digits: results below it may be wrong as a whole.

    >>> tiny(np.float64), tiny(np.float32)
    (2.3e-308, 1.2e-38)
    """
    return upwards(float(np.finfo(np.dtype(dtype)).tiny), 2)


def upwards(number, digits):
    """A positive number, rounded up to this many decimal digits."""
    return float(decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING).create_decimal(number))


class Errors:
    """The rules of running error analysis, which take the place of those for tangents in forward mode.

    inputs: {a parameter's value: the relative error that it has}
    """

    def __init__(self, reader, label, inputs):
        self.reader, self.build, self.inputs = reader, reader.build, inputs
        self.values = set()             # those of the function, not their errors
        self.forward = Forward(reader, label, self)
        self.forward.state = Const(0)   # the line of the last decision that may be taken otherwise

    def run(self, function: Function) -> Function:
        """The function that also returns a bound of the error of its result."""
        function.body = with_tests(without_calls(function.body, EVERY))
        made = self.forward.run(function, list(self.inputs))
        self.end(made)
        made.params = made.params[:len(function.params)]
        self.build.block = []
        for value, relative in self.inputs.items():
            error = self.forward.tangent[value]
            self.build.block.append(Let((error,), self.given(value, relative)))
            error.hint = f"{value.hint}_dot"
        made.body = [*self.build.block, *made.body]
        for v in all_made(made.body):
            if v not in self.values and v.hint.endswith("_dot"):
                v.hint = f"{v.hint.removesuffix('_dot')}_err"
        return made

    def end(self, made):
        """Makes the errors infinite, with a warning, where a decision was not certain."""
        unsure, self.build.block = self.forward.state, []
        if isinstance(unsure, Const):
            return
        self.build.block.append(Effect(Apply(Quoted(WARNING.body, ("unsure",), named), (unsure,))))
        joins = []

        def infinite(error, value):
            if isinstance(value, Pack) and isinstance(error, Pack):
                return Pack(error.kind, tuple(map(infinite, error.items, value.items)), error.keys, error.cls)
            fact = fact_of(error)
            if type(fact) is not Array or fact.kind != "f":
                return error
            whole = self.build.apply(np.full_like, error, Const(math.inf)) if fact.dims else Const(math.inf)
            name = f"{value.hint}_err" if isinstance(value, Var) else "err"
            joins.append(Join(Var(name, fact, TANGENT), whole, error))
            return joins[-1].var
        value, error = made.result.items
        made.result = Pack("tuple", (value, infinite(error, value)))
        then, self.build.block = self.build.block, made.body
        test = self.build.apply(operator.ne, unsure, Const(0))
        made.body.append(If(test, then, [], joins))

    def given(self, value, relative):
        """The error of an argument, from its relative error: a number, or a function of the dtype."""
        fact = value.fact
        if not isinstance(fact, Sequence):
            part = relative(np.float64 if fact.weak else fact.dtype) if callable(relative) else relative
            return Apply(operator.mul, (Const(part), self.size(value)))
        take, items = getattr if fact.kind == "record" else operator.getitem, []
        for key, element in zip(fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements)),
                                fact.elements):
            if isinstance(element, Sequence) or isinstance(element, Array) and element.differentiable:
                item = self.build.let("item", Apply(take, (value, Const(key))), element)
                error = self.given(item, relative)
                items.append(error if isinstance(error, Pack) else self.build.let("item_dot", error, element))
            else:
                items.append(Const(0.0))
        return Pack(fact.kind, tuple(items), fact.keys, fact.cls)

    # which values have errors

    def seeds(self, body):
        """The values with an error of their own."""
        self.values.update(all_made(body))
        return [t for step in walk(body) if isinstance(step, Let) and self.has_own(step)
                for t in step.targets if t.fact.differentiable]

    def has_own(self, step):
        """Whether a statement adds an error of its own, or one of a kind that is not known."""
        if self.rule(step) is not None:
            return self.rounds(step)
        return is_identity(step.value) or not is_structural(step.value)

    @staticmethod
    def call(step):
        """(operation, whether the statement takes one of its several results)"""
        value = step.value
        several = isinstance(value, Apply) and bool(value.args) and isinstance(value.args[0], Apply)
        return (value.args[0] if several else value), several

    def rule(self, step):
        call, _ = self.call(step)
        return rule_of(call.function) if isinstance(call, Apply) else None

    def rounds(self, step):
        rule = self.rule(step)
        if any(n in rule.parts for n in ("rounding", "total")) or rule.kind == "constant" and "error" in rule.parts:
            return True
        if "rounding" in rule.options:
            bound = self.bound(rule, self.call(step)[0])
            return self.units(rule, bound) != 0 or self.underflows(rule, bound)
        if step.value is not None and self.call(step)[0].function in STORES:
            return self.call(step)[0].function is not put or self.narrows(step)
        return rule.kind not in ("constant", "linear") or rule.kind == "linear" and coefficients(rule) != "moves" and \
            rule.options.get("errors") != "as values"

    def narrows(self, step):
        """Whether a value that is written is in a wider dtype than the array."""
        dtype = step.targets[0].fact.dtype
        return self.conversion(step.value.args[2], dtype) is not None

    # statements

    def decide(self, step, rule):
        """Enters a decision that exact arithmetic may take otherwise."""
        bound = self.bound(rule, self.call(step)[0])
        errors = self.errors(rule, bound, step.targets[0])
        dtypes = [v.fact.dtype for v in bound.values() if isinstance(v, Var) and v in self.forward.tangent]
        rounds = "u" in inspect.signature(rule.parts["certain"]).parameters and step.targets[0].fact.kind == "f"
        if not dtypes and not rounds:
            return
        dtype = dtypes[0] if dtypes else step.targets[0].fact.dtype
        given = {"u": Const(unit(dtype)), "least": Const(upwards(tiny(dtype) / unit(dtype), 1))}
        certain = self.part(rule, "certain", {"y": step.targets[0], **given, **errors, **bound})
        if isinstance(certain, Const):
            return
        if certain.fact.dims:
            certain = self.build.apply(np.all, certain)
        new = self.forward.new_state()
        line = Const(step.origin.line if step.origin else -1)
        self.build.block.append(If(certain, [], [], [Join(new, self.forward.state, line)], self.build.origin))
        self.forward.state = new

    def take(self, step):
        """Adds the error of the targets of a statement, which is in the block; whether there is anything to add."""
        rule = self.rule(step)
        if rule is not None and "certain" in rule.parts:
            self.decide(step, rule)
        if not any(t in self.forward.active for t in step.targets):
            return False
        if rule is None and is_identity(step.value):
            self.forward.tangent[step.targets[0]] = self.forward.of(step.value.args[0])
            return True
        if rule is None:
            return False if is_structural(step.value) else self.refuse(step.value.function, step)
        call, several = self.call(step)
        if not self.rounds(step) and not any(v in self.forward.active for v in operands(call)):
            return True
        for v in [*operands(call), *step.targets]:
            if isinstance(v.fact, Array) and v.fact.kind == "c":
                raise RuleError("error bounds of complex numbers are not known", step.origin,
                                "Write the real and imaginary parts out.")
        bound = self.bound(rule, call)
        if len(step.targets) > 1 or several or isinstance(step.targets[0].fact, Sequence):
            if coefficients(rule) != "moves":
                self.refuse(rule.function, step)
            self.forward.by_rule(step if several else Let(step.targets, call, step.origin))
            return True
        try:
            terms = [*self.carried(step, rule, call, bound), *self.own(step, rule, bound)]
        except ValueError as error:
            raise RuleError(str(error.args[0]), step.origin, *error.args[1:]) from None
        total = None
        for term in terms:
            if term is not None and not (isinstance(term, Const) and term.value == 0):
                total = term if total is None else self.build.add(total, term)
        if total is not None:
            self.forward.define(step.targets[0], total)
        return True

    def carried(self, step, rule, call, bound):
        """The terms for the errors of the operands."""
        y = step.targets[0]
        if call.function in STORES:
            return [self.stored(step, rule, bound)]
        if "total" in rule.parts:
            return []
        if not any(v in self.forward.tangent for v in operands(call)) and not self.converted(rule, bound, y):
            return []
        if "error" in rule.parts:
            return [self.part(rule, "error", {"y": y, **self.errors(rule, bound, y), **bound})]
        if rule.kind == "elementwise":
            return [self.slope(rule, a, bound, y) for a in rule.arguments if a in bound]
        if rule.options.get("errors") == "as tangents":
            return [t for a, _, v in placed(bound) if isinstance(v, Var) and v in self.forward.tangent
                    for t in self.forward.term(rule, a, bound, y, step)]
        if rule.kind == "linear" and (rule.options.get("errors") == "as values" or coefficients(rule)):
            active = {a for a, _, v in placed(bound) if isinstance(v, Var) and v in self.forward.tangent}
            return [self.forward.same_call(step, bound, active, rule)]
        if rule.kind == "bilinear" and coefficients(rule):
            return self.products(step, rule, bound)
        return self.refuse(rule.function, step)

    def products(self, step, rule, bound):
        """|A| e_B + e_A (|B| + e_B); an argument may be a sequence of arrays."""
        sizes = {a: self.sizes(v) if a in rule.active else v for a, v in bound.items()}
        out = []
        for a, k, v in [p for p in placed(bound) if p[0] in rule.active]:
            if isinstance(v, Var) and v in self.forward.tangent:
                error = expanded(self.build, self.forward.tangent[v], v)
                out.append(self.forward.call_with(step, rule, sizes, {a: instead(sizes[a], k, error)}))
                size = sizes[a] if k is None else sizes[a][k]
                sizes = {**sizes, a: instead(sizes[a], k, self.build.add(size, error))}
        return out

    def errors(self, rule, bound, y):
        """The errors of all arguments, by name; 0 for one that has none."""
        return {f"{a}_err": self.error_of(bound.get(a), y) for a in rule.signature.parameters}

    def slope(self, rule, a, bound, y):
        """|partial_a| times the error of an argument, if it is the same everywhere; None if there is no error."""
        error = self.error_of(bound[a], y)
        if isinstance(error, Const) and error.value == 0:
            return None
        part = rule.parts.get(f"partial_{a}") if a in rule.active else None
        if part is None or inspect.signature(part).parameters:
            raise ValueError(f"{spelled(rule.function)} has no bound for the error of {a}", AS_OPERATIONS)
        return self.build.multiply(error, self.size(self.forward.part(rule, f"partial_{a}", {"y": y, **bound})))

    def stored(self, step, rule, bound):
        """The errors of x with those of the values that are written into it, or added, rounding included."""
        call, y = step.value, step.targets[0]
        x, index, value = call.args
        error = self.error_of(value, y)
        u = Const(unit(y.fact.dtype))
        if call.function is put_add:
            own = self.build.multiply(u, self.size(self.build.item(y, index)))
            error = own if isinstance(error, Const) and error.value == 0 else self.build.add(error, own)
        whole = partial(self.forward.call_with, step, rule, bound)
        held = self.forward.whole_tangent(x)
        total = whole({"x": held, "value": error})
        if call.function is add_at:                     # each addition rounds, and an index may occur often
            zeros = expanded(self.build, Const(0.0), y)
            count = whole({"x": zeros, "value": Const(1.0)})
            most = whole({"x": self.size(x), "value": self.size(value)})
            total = self.build.add(total, self.build.multiply(self.build.multiply(u, count), most))
        return total

    def own(self, step, rule, bound):
        """The terms for the rounding of the operation itself."""
        y = step.targets[0]
        if step.value.function in STORES:
            return []
        u, least = unit(y.fact.dtype), tiny(y.fact.dtype)
        given = {"y": y, "u": Const(u), "tiny": Const(least), **bound}
        if "total" in rule.parts:
            return [self.part(rule, "total", {**given, **self.errors(rule, bound, y)})]
        terms = [self.part(rule, "underflow", given)] if "underflow" in rule.parts else \
            [Const(least)] if self.underflows(rule, bound) else []
        if "rounding" in rule.parts:
            return [self.build.multiply(Const(u), self.part(rule, "rounding", given)), *terms]
        k = self.units(rule, bound)
        if k is None:
            self.refuse(rule.function, step)
        return [self.build.multiply(Const(k * u), self.size(y)), *terms] if k else terms

    def underflows(self, rule, bound):
        """Whether a subnormal result may be wrong: by the option `underflow`, or if it rounds."""
        if "underflow" in rule.options:
            known = rule.options["underflow"]
            return known(*map(described, bound.values())) if callable(known) else known
        return "rounding" in rule.parts or bool(self.units(rule, bound))

    def units(self, rule, bound):
        """The option `rounding` of a record for these arguments, or what stands for it; None: not known."""
        if "rounding" in rule.options:
            units = rule.options["rounding"]
            if not callable(units):
                return units
            return units(*map(described, bound.values()))
        if rule.options.get("errors") or rule.kind == "constant":
            return 0
        if rule.kind == "elementwise":
            return ELEMENTARY if elementary(rule) else None
        return 0 if rule.kind == "linear" and coefficients(rule) == "moves" else None

    # operands

    @staticmethod
    def bound(rule, call):
        return dict(rule.signature.bind(*call.args, **dict(call.kwargs)).arguments)

    def converted(self, rule, bound, y):
        return rule.kind == "elementwise" and any(self.conversion(a, y.fact.dtype) is not None for a in bound.values())

    @staticmethod
    def conversion(operand, dtype):
        """The error of an operand in a narrower dtype: a number, True for one that depends on the operand, or None."""
        fact = fact_of(operand) if isinstance(operand, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.kind != "f" or np.dtype(dtype).kind != "f":
            return None
        if np.dtype(fact.dtype).itemsize <= np.dtype(dtype).itemsize:
            return None
        if isinstance(operand, Var):
            return True
        lost = abs(operand.value - float(np.dtype(dtype).type(operand.value)))
        return lost if lost and math.isfinite(lost) else None

    def error_of(self, operand, y):
        """The error of an operand of an operation whose result is y; the number 0 if it has none."""
        if not isinstance(operand, (Var, Const)):
            return Const(0.0)
        error = self.forward.tangent.get(operand, Const(0.0)) if isinstance(operand, Var) else Const(0.0)
        lost = self.conversion(operand, y.fact.dtype) if isinstance(y.fact, Array) else None
        if lost is None:
            return error
        if lost is not True:
            return Const(lost)
        own = self.build.multiply(Const(unit(y.fact.dtype)), self.size(operand))
        own = self.build.add(own, Const(tiny(y.fact.dtype)))
        return own if isinstance(error, Const) else self.build.add(error, own)

    def size(self, operand):
        """|operand|"""
        _, operand = self.build.sign_of(operand)
        if isinstance(operand, Const):
            return Const(abs(operand.value)) if isinstance(operand.value, (int, float)) else operand
        made = self.build.definition(operand)
        rule = None if made is None else rule_of(made.function)
        options = {} if rule is None else rule.options
        if fact_of(operand).kind in "bu" or options.get("nonnegative"):
            return operand
        return self.build.apply(abs, operand)

    def sizes(self, operand):
        if isinstance(operand, Pack):
            return tuple(map(self.size, operand.items))
        return tuple(map(self.size, operand)) if isinstance(operand, tuple) else self.size(operand)

    def part(self, rule, name, given):
        return read_part(self.reader, rule, name, given)

    def refuse(self, function, step):
        raise RuleError(f"{spelled(function)} has no bound for rounding errors", step.origin, AS_OPERATIONS)


def named(name):
    """What the names in WARNING stand for; the others are built in."""
    if name == "warnings":
        return warnings
    raise NameError(name)


def described(operand):
    """What is known of an operand: the number of a constant, the fact of a variable."""
    return operand.value if isinstance(operand, Const) else getattr(operand, "fact", operand)


def with_tests(body):
    """A block in which the head of each while loop is computed in its body as well, and after it.

    What the head computes for the test has errors like any other value, and decides whether there is another pass.
    """
    out = []
    for step in body:
        for name in ("then", "orelse", "head", "body"):
            if hasattr(step, name):
                setattr(step, name, with_tests(getattr(step, name)))
        out.append(step)
        if isinstance(step, While) and all(isinstance(s, (If, Let)) for s in walk(step.head)):
            step.body = [*copied(step.head, {}), *step.body]
            out += copied(step.head, {c.inner: c.outer for c in step.carries})
    return out


def instead(items, k, new):
    """An operand with another one at place k of a sequence; `new` itself where it is none."""
    return new if k is None else (*items[:k], new, *items[k + 1:])


def is_identity(value):
    """Whether a value is an operand that custom derivatives do not pass through."""
    return is_application(value, held)


def is_structural(value):
    """Whether a value only takes numbers from one place to another, or draws them."""
    return not isinstance(value, Apply) or isinstance(value.function, (Edit, Draw)) or value.function in OPERATIONS


def elementary(rule):
    """Whether a record is for functions of NumPy or of Python's math, which are accurate to a few last digits."""
    f = rule.function
    name = getattr(f, "__name__", "")
    return any(getattr(module, name, None) is f for module in (np, math, operator))
