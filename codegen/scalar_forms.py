# SPDX-License-Identifier: Apache-2.0
"""Operators and functions of each entry, as expressions of scalars that Numba compiles with NumPy's dtypes.

Here are those whose form depends on the dtypes of several operands; of another one the record says it (entry_forms.py).
A form takes the operands and the result's dtype and gives a node of the loop form.  Numba alone would make float64 of
`np.float32 * 2.0`; here every operand has the dtype of NumPy's loop before the operator sees it.
"""
import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gradscribe.ast_transform.core.kinds import promote
from gradscribe.ast_transform.core.operations import both, either
from gradscribe.codegen.llvm_inline import in_single
from gradscribe.codegen.loops.build import joined, node, quoted
from gradscribe.codegen.loops.form import Attribute, Call, Const, Expr, Length, Load, Name

FORMS: dict = {}
_WIDE = {np.dtype(t) for t in (np.int64, np.float64, np.complex128)}
_PLAIN_NAMES: dict[np.dtype, str]
_PLAIN_NAMES = {np.dtype(bool): "bool", np.dtype(np.int64): "int", np.dtype(np.float64): "float"}


class Operand:
    """A scalar expression, `node`; `dtype` as in facts, a Python type if weak; `literal`: its value if constant."""
    __slots__ = ("dtype", "literal", "node")

    def __init__(self, node, dtype, literal=None):
        self.node, self.dtype, self.literal = node, dtype, literal

    @property
    def exact(self):
        return np.dtype(self.dtype)

    @property
    def simple(self):
        return self.literal is not None or is_simple(self.node)


def is_simple(e):
    """Whether an expression is cheap enough to be computed twice: a name, or an entry at names and numbers."""
    if isinstance(e, Attribute):
        return is_simple(e.owner)
    return isinstance(e, (Name, Length)) or isinstance(e, Load) and is_simple(e.array) and all(
        isinstance(i, Const) or is_simple(i) for i in e.index)


def literal(value: Any, dtype: DTypeLike) -> Expr:
    """The expression of a number in a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return Const(bool(value))
    if dtype.kind in "iu":
        return narrowed(node(int(value)), dtype)
    if dtype.kind == "f":
        value = float(value.real if isinstance(value, complex) else value)
        made = node(value) if math.isfinite(value) else node("np.nan") if value != value else \
            node("np.inf") if value > 0 else quoted("-np.inf")
        return made if dtype == np.float64 else of_dtype(made, dtype)
    value = complex(value)
    made = quoted("complex({}, {})", literal(value.real, float), literal(value.imag, float))
    return made if dtype == np.complex128 else quoted("np.complex64({})", made)


def of_dtype(made: Expr, dtype: DTypeLike) -> Call:
    """np.dtype(made)"""
    return Call(f"np.{np.dtype(dtype).name}", (made,))


def cast(operand: Operand, dtype: DTypeLike) -> Expr:
    """An operand's expression, converted to a dtype."""
    dtype = np.dtype(dtype)
    if operand.literal is not None:
        return literal(operand.literal, dtype)
    if operand.exact == dtype:
        return operand.node
    if dtype.kind == "b":
        return quoted("{} != 0", operand.node)
    if operand.exact.kind == "c" and dtype.kind != "c":
        return cast(Operand(Attribute(operand.node, "real"), _real_of(operand)), dtype)
    if dtype == np.complex128 and operand.exact.kind != "c":
        return quoted("complex({}, 0.0)", cast(operand, np.float64))
    if dtype == np.complex64 and operand.exact.kind != "c":
        return quoted("np.complex64(complex({}, 0.0))", cast(operand, np.float64))
    if operand.exact.kind == "b":       # a select, not a conversion: eight times faster in a loop
        return quoted("{} if {} else {}", literal(1, dtype), operand.node, literal(0, dtype))
    # in Numba, float() of a float32 is a float32, and int() of an int32 an int32
    own = operand.exact
    short = own == np.float32 or dtype == np.int64 and (own.kind == "u" or own.kind == "i" and own.itemsize < 8)
    name = None if short else _PLAIN_NAMES.get(dtype)
    return quoted("{}({})", name or f"np.{dtype.name}", operand.node)


def _real_of(operand):
    """The dtype of the real and imaginary parts of a complex operand."""
    return np.float64 if operand.exact == np.complex128 else np.float32


def narrowed(made: Expr, dtype: DTypeLike) -> Expr:
    """An expression converted back to a small integer dtype, since Numba computes those in 64 bits."""
    dtype = np.dtype(dtype)
    return made if dtype in _WIDE or dtype.kind in "fcb" else of_dtype(made, dtype)


def result_of_call(made: Expr, dtype: DTypeLike) -> Expr:
    """What a function gives, as a number of a dtype."""
    return made if np.dtype(dtype) in _WIDE or np.dtype(dtype).kind == "b" else of_dtype(made, dtype)


def loose(operand, dtype):
    """As cast, but Numba converts an int64 to float64 by itself."""
    if np.dtype(dtype) == np.float64 and operand.exact == np.int64:
        return operand.node
    return cast(operand, dtype)


def enters(table: dict) -> Callable[..., Any]:
    """The decorator that enters forms in a table.

    If several functions share a form, each is entered with its own keyword arguments, with which the form is called.

    >>> table = {}
    >>> @enters(table)(np.cumsum, sign="+")
    ... @enters(table)(np.cumprod, sign="*")
    ... def scan(total, value, sign):
    ...     return f"{total} {sign} {value}"
    >>> table[np.cumprod]("total", "x[i]")
    'total * x[i]'
    """
    def entered(*functions, **differs):
        def declare(make):
            own = functools.update_wrapper(functools.partial(make, **differs), make) if differs else make
            table.update(dict.fromkeys(functions, own))
            return make
        return declare
    return entered


form = enters(FORMS)


def of_all(name: str, args: Iterable[Operand], dtype: DTypeLike) -> Call:
    """A call of a function with operands converted to a dtype."""
    return Call(name, tuple([cast(a, dtype) for a in args]))


def in_loops(name: str, plain: Any) -> Callable[..., Expr]:
    """Gives a form `plain` a variant for loops over entries that calls runtime/vmath.py, which LLVM vectorises.

    Scalars outside such loops use libm, which has the shorter latency.
    """
    def make(args, out):
        out = np.dtype(out)
        if out.kind != "f" or len(args) > 2:
            return plain(args, out)
        short = in_single(name)
        if out == np.float32 and short is not None:
            return of_all(short, args, out)
        made = of_all(name, args, np.float64)
        return made if out == np.float64 else of_dtype(made, out)
    plain.in_loops = make
    return plain


# --- operators --------------------------------------------------------------------------------------------------------

@form(operator.add, np.add, sign="+")
@form(operator.sub, np.subtract, sign="-")
@form(operator.mul, np.multiply, sign="*")
def _binary(args, out, sign):
    if np.dtype(out).kind == "b":
        return quoted("{} {} {}", args[0].node, "|" if sign == "+" else "&", args[1].node)
    return narrowed(quoted("{} {} {}", loose(args[0], out), sign, loose(args[1], out)), out)


def quotient(a, b, dtype):
    """The quotient of a complex number and an operand; Numba's own division raises an error for a divisor of 0."""
    if b.exact.kind == "c":
        made = quoted("complex_quotient({}, {})", a, cast(b, dtype))
    else:
        made = quoted("real_quotient({}, {})", a, cast(b, np.empty(0, dtype).real.dtype))
    return made if np.dtype(dtype) == np.complex128 else quoted("np.complex64({})", made)


@form(operator.truediv, np.divide)
def _divide(args, out):
    if np.dtype(out).kind == "c":
        return quotient(cast(args[0], out), args[1], out)
    return quoted("{} / {}", loose(args[0], out), cast(args[1], out))


@form(operator.floordiv, np.floor_divide)
def _floor_divide(args, out):
    a, b = (cast(x, out) for x in args)
    value = quoted("{} // {}", a, b)
    if np.dtype(out).kind == "i" and args[1].literal in (None, -1):     # min // -1 is min, as in NumPy
        value = quoted("-{a} if {b} == -1 else {}", value, a=a, b=b)
    return narrowed(cast(Operand(value, out), out), out)


def _of_loop(template, *functions):
    """Registers a template of operands in the result's dtype as a form."""
    @form(*functions)
    def make(args, out):
        return narrowed(quoted(template, *[cast(a, out) for a in args]), out)


_of_loop("{} % {}", operator.mod, np.remainder)
_of_loop("-{}", operator.neg, np.negative)
_of_loop("{} & {}", operator.and_, np.bitwise_and)
_of_loop("{} | {}", operator.or_, np.bitwise_or)
_of_loop("{} ^ {}", operator.xor, np.bitwise_xor)


def _any_power(args, out):
    made = quoted("{} ** {}", cast(args[0], out), cast(args[1], out))
    return made if out in _WIDE else of_dtype(made, out)


FORMS[np.float_power] = in_loops("power", _any_power)


def _power_in_loops(args, out):
    return _power(args, out, _any_power.in_loops)


@form(operator.pow, np.power, math.pow)
def _power(args, out, otherwise=_any_power):
    base, exponent = args
    n, out = exponent.literal, np.dtype(out)
    if n is not None and not isinstance(n, complex) and abs(n) <= 64 and n == int(n) and out.kind in "fc":
        n, made = int(n), cast(base, out)
        if n == 2:
            return _squared(made, base)
        if n == 1:
            return made
        if n == -1 and out.kind == "c":
            return quotient(literal(1, out), Operand(made, out), out)
        if n == -1:
            return quoted("{} / {}", literal(1, out), made)
        if out.kind == "f":
            made = quoted("{} ** {}", made, abs(n))
            made = made if n >= 0 else quoted("{} / {}", literal(1, out), made)         # Numba's own raises at 0
            return made if out == np.float64 else of_dtype(made, out)
    if n is not None and n == 0.5 and out.kind == "f":
        return quoted("np.sqrt({})", cast(base, out))
    if out.kind in "iu":
        return narrowed(quoted("integer_power({}, {})", cast(base, out), cast(exponent, np.int64)), out)
    return otherwise(args, out)


_power.in_loops = _power_in_loops


def _squared(made, base):
    return quoted("{0} * {0}", made) if base.simple else quoted("square({})", made)


@form(operator.invert, np.invert)
def _invert(args, out):
    if np.dtype(out).kind == "b":
        return quoted("not {}", args[0].node)
    return narrowed(quoted("~{}", cast(args[0], out)), out)


@form(operator.lshift, np.left_shift, sign="<<", helper="shifted_left")
@form(operator.rshift, np.right_shift, sign=">>", helper="shifted_right")
def _shift(args, out, sign, helper):
    first, by, bits = cast(args[0], out), args[1], 8 * np.dtype(out).itemsize
    if by.literal is not None and 0 <= by.literal < bits:
        return narrowed(quoted("{} {} {}", first, sign, cast(by, out)), out)
    return narrowed(quoted("{}({}, {}, {})", helper, first, cast(by, np.int64), bits), out)


_ORDERED = {"<": "complex_less", ">": "complex_less", "<=": "complex_at_most", ">=": "complex_at_most"}


def _compare(sign, *functions):
    @form(*functions)
    def make(args, out):
        loop = promote(args[0].dtype, args[1].dtype)
        if np.dtype(loop).kind == "c" and sign in _ORDERED:
            first, second = args if sign in ("<", "<=") else args[::-1]
            return quoted("{}({}, {})", _ORDERED[sign], cast(first, loop), cast(second, loop))
        kinds = [a.exact.kind for a in args]
        if set(kinds) <= {"i", "u"}:
            if any(isinstance(a.dtype, type) for a in args):       # Python integers are compared without conversion
                fixed = _beyond(args, sign)
                if fixed is not None:
                    return fixed
                if loop != np.dtype(np.uint64):
                    loop = np.dtype(np.int64)
            if kinds[0] != kinds[1] and np.dtype(np.uint64) in (args[0].exact, args[1].exact) and not any(
                    a.literal is not None for a in args):
                first, second = args if kinds[0] == "u" else args[::-1]
                made = quoted("order_of({}, {})", cast(first, np.uint64), cast(second, np.int64))
                return quoted("{} {} 0", made, sign) if kinds[0] == "u" else quoted("0 {} {}", sign, made)
        return quoted("{} {} {}", loose(args[0], loop), sign, loose(args[1], loop))


def _beyond(args, sign):
    """The constant result of a comparison with an integer outside the range of the other side's dtype; else None."""
    for k, a in enumerate(args):
        other = args[1 - k]
        if a.literal is None or isinstance(other.dtype, type):
            continue
        info = np.iinfo(other.exact)
        if info.min <= a.literal <= info.max:
            return None
        first, second = (a.literal, 0) if k == 0 else (0, a.literal)
        return Const(_SIGNS[sign](first, second))
    return None


_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
          "!=": operator.ne}

_function: Any
for _compared, _function in {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
                             "==": np.equal, "!=": np.not_equal}.items():
    _compare(_compared, _SIGNS[_compared], _function)


# --- truth ------------------------------------------------------------------------------------------------------------

def truth(operand: Operand) -> Expr:
    return operand.node if operand.exact.kind == "b" else quoted("{} != 0", operand.node)


@form(operator.not_, np.logical_not, template="not {}")
@form(operator.truth, bool, template="{}")
@form(np.logical_and, template="{} and {}")
@form(np.logical_or, template="{} or {}")
@form(np.logical_xor, template="{} != {}")
def _of_truths(args, out, template):
    return quoted(template, *map(truth, args))


@form(both, sign="and")
@form(either, sign="or")
def _one_of(args, out, sign):
    if np.dtype(out).kind == "b":
        return joined(sign, map(truth, args))
    first, second = args[::-1] if sign == "and" else args
    return quoted("{} if {} else {}", cast(first, out), truth(args[0]), cast(second, out))


@form(np.where)
def _where(args, out):
    return quoted("{} if {} else {}", cast(args[1], out), truth(args[0]), cast(args[2], out))


# --- numbers of other kinds ------------------------------------------------------------------------------------------

@form(math.log)
def _log(args, out):
    made = quoted("np.log({})", cast(args[0], out))
    return made if len(args) == 1 else quoted("{} / np.log({})", made, cast(args[1], out))


@form(math.floor, name="floor")
@form(math.ceil, name="ceil")
@form(math.trunc, name="trunc")
def _to_integer(args, out, name):
    return args[0].node if args[0].exact.kind in "iub" else quoted("int(math.{}({}))", name, cast(args[0], np.float64))


def _identity(args, out):
    return cast(args[0], out)


@form(complex)
def _complex(args, out):
    if len(args) == 1:
        return cast(args[0], out)
    return cast(Operand(of_all("complex", args, np.float64), np.complex128), out)


for _function in (int, float, operator.pos, np.positive, np.copy, np.ascontiguousarray, np.asarray, np.asanyarray):
    FORMS[_function] = _identity


@form(np.isnan, math.isnan, template="np.isnan({})")
@form(np.isinf, math.isinf, template="np.isinf({})")
@form(np.signbit, template="math.copysign(1.0, {}) < 0.0")
def _predicate(args, out, template):
    return quoted(template, cast(args[0], np.float64) if args[0].exact.kind in "iub" else args[0].node)


@form(np.isfinite, math.isfinite)
def _finite(args, out):
    """Compares with infinity: Numba's isfinite tests x - x for NaN, which fast math may fold to True."""
    x = args[0]
    if x.exact.kind in "iub":
        return Const(True) if x.literal is not None else quoted("{0} == {0}", x.node)
    parts = [Attribute(x.node, "real"), Attribute(x.node, "imag")] if x.exact.kind == "c" else [x.node]
    return joined("and", [quoted("abs({}) < np.inf", p) for p in parts])


# --- functions of our own, in runtime/compiled.py ---------------------------------------------------------------------

def of_two(name, a, b, out):
    """The maximum or minimum of two values."""
    return Call("complex_" * (np.dtype(out).kind == "c") + name, (a, b))


@form(np.maximum, name="maximum")
@form(np.minimum, name="minimum")
def _of_two(args, out, name):
    made = of_two(name, *of_all(name, args, out).args, out)
    return result_of_call(made, out)


@form(np.gcd, math.gcd, name="gcd")
@form(np.lcm, math.lcm, name="lcm")
def _of_divisors(args, out, name):
    """Computes in 64 bits: the absolute value of the smallest number of a narrow type does not fit in it."""
    kind = np.int64 if np.dtype(out).kind == "i" else out
    made = of_all(name, args, kind)
    return made if out in _WIDE else of_dtype(made, out)


@form(builtins.max, name="max")
@form(builtins.min, name="min")
def _extreme(args, out, name):
    return of_all(name, args, out)


@form(np.square)
def _square(args, out):
    return narrowed(_squared(cast(args[0], out), args[0]), out)


@form(np.abs, builtins.abs, operator.abs, np.fabs, math.fabs)
def _absolute(args, out):
    if args[0].exact.kind == "c":
        return cast(Operand(quoted("abs({})", args[0].node), _real_of(args[0])), out)
    return narrowed(quoted("abs({})", cast(args[0], out)), out) if np.dtype(out).kind != "b" else args[0].node


def _absolute_in_loops(args, out):
    if args[0].exact.kind == "c" and np.dtype(out).kind == "f":
        return cast(Operand(quoted("complex_size({})", args[0].node), np.float64), out)
    return _absolute(args, out)


_absolute.in_loops = _absolute_in_loops


@form(np.clip)
def _clip(args, out):
    x, low, high = args
    made = cast(x, out)
    if low is not None:
        made = of_two("maximum", made, cast(low, out), out)
    if high is not None:
        made = of_two("minimum", made, cast(high, out), out)
    return made


@form(np.ldexp, math.ldexp)
def _ldexp(args, out):
    return cast(Operand(quoted("math.ldexp({}, {})", cast(args[0], np.float64), args[1].node), np.float64), out)


@form(np.conjugate)
def _conjugate(args, out):
    return quoted("np.conj({})", args[0].node) if args[0].exact.kind == "c" else args[0].node


@form(builtins.round)
def _round(args, out):
    if np.dtype(out).kind == "f":
        return quoted("round_decimal({}, {})", cast(args[0], out), args[1].node)
    given = [a for a in args if a is not None]
    if len(given) > 1:
        return quoted("whole_round({}, {})", cast(args[0], np.int64), given[1].node)
    return quoted("round({})", given[0].node)
