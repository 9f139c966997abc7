# SPDX-License-Identifier: Apache-2.0
"""Functions of each entry, as expressions of scalars that Numba compiles with NumPy's dtypes.

A form takes the operands and the result's dtype and gives text.  Numba alone would make float64 of `np.float32 * 2.0`;
here every operand has the dtype of NumPy's loop before the operator sees it.
"""
import builtins
import functools
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.kinds import promote
from gradscribe.ast_transform.core.operations import both, either
from gradscribe.codegen.straight import ELEMENTARY

FORMS = {}
_WIDE = {np.dtype(t) for t in (np.int64, np.float64, np.complex128)}
_PLAIN_NAMES = {np.dtype(bool): "bool", np.dtype(np.int64): "int", np.dtype(np.float64): "float"}


class Operand:
    """The text of a scalar; `dtype` as facts hold it, `literal` the number where it is one."""
    __slots__ = ("dtype", "literal", "text")

    def __init__(self, text, dtype, literal=None):
        self.text, self.dtype, self.literal = text, dtype, literal

    @property
    def exact(self):
        return np.dtype(self.dtype)

    @property
    def simple(self):
        return (
            self.literal is not None
            or self.text.replace("[", "").replace("]", "").replace(", ", "").replace(".", "").isidentifier()
        )


def literal(value, dtype):
    """A number written with its dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind in "iu":
        text = repr(int(value))
        return text if dtype == np.int64 else f"np.{dtype.name}({text})"
    if dtype.kind == "f":
        value = float(value.real if isinstance(value, complex) else value)
        text = (
            repr(value)
            if math.isfinite(value)
            else "np.nan"
            if value != value
            else "np.inf"
            if value > 0
            else "-np.inf"
        )
        return text if dtype == np.float64 else f"np.{dtype.name}({text})"
    value = complex(value)
    text = f"complex({literal(value.real, float)}, {literal(value.imag, float)})"
    return text if dtype == np.complex128 else f"np.complex64({text})"


def cast(operand, dtype):
    """The text of an operand in a dtype."""
    dtype = np.dtype(dtype)
    if operand.literal is not None:
        return literal(operand.literal, dtype)
    if operand.exact == dtype:
        return operand.text
    if dtype.kind == "b":
        return f"({operand.text} != 0)"
    if operand.exact.kind == "c" and dtype.kind != "c":
        return cast(
            Operand(f"({operand.text}).real", np.float64 if operand.exact == np.complex128 else np.float32), dtype
        )
    if dtype == np.complex128 and operand.exact.kind != "c":
        return f"complex({cast(operand, np.float64)}, 0.0)"
    if dtype == np.complex64 and operand.exact.kind != "c":
        return f"np.complex64(complex({cast(operand, np.float64)}, 0.0))"
    if operand.exact.kind == "b":       # chosen, not converted: eight times faster in a loop
        return f"({literal(1, dtype)} if {operand.text} else {literal(0, dtype)})"
    # Numba's float of a float32 is a float32, its int of an int32 an int32
    own = operand.exact
    short = own == np.float32 or dtype == np.int64 and (own.kind == "u" or own.kind == "i" and own.itemsize < 8)
    name = None if short else _PLAIN_NAMES.get(dtype)
    return f"{name or 'np.' + dtype.name}({operand.text})"


def narrowed(text, dtype):
    """Numba computes small integers in 64 bits."""
    dtype = np.dtype(dtype)
    return text if dtype in _WIDE or dtype.kind in "fcb" else f"np.{dtype.name}({text})"


def loose(operand, dtype):
    """As cast, but an integer that meets a float64 is left to Numba."""
    if np.dtype(dtype) == np.float64 and operand.exact == np.int64:
        return operand.text
    return cast(operand, dtype)


def enters(table):
    """The decorator that enters forms in a table.

    Where several functions share a form, each is entered with keywords that say in what it differs from the others: the
    form is called with them.

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


OF_FLOAT32 = {"exp": "exp32", "expm1": "expm1_32", "log": "log32", "log1p": "log1p_32", "tanh": "tanh32",
              "logistic": "logistic32"}


def in_loops(name, plain):
    """A form that calls runtime/vmath.py in a loop over entries, where that is vectorised.

    A number by itself is left to libm, which is faster where each result waits for the one before.
    """
    def make(args, out):
        out = np.dtype(out)
        if out.kind != "f" or len(args) > 2:
            return plain(args, out)
        if out == np.float32 and name in OF_FLOAT32:
            return f"{OF_FLOAT32[name]}({', '.join(cast(a, out) for a in args)})"
        text = f"{name}({', '.join(cast(a, np.float64) for a in args)})"
        return text if out == np.float64 else f"np.{out.name}({text})"
    plain.in_loops = make
    return plain


# --- operators --------------------------------------------------------------------------------------------------------

def _binary(sign, *functions):
    @form(*functions)
    def make(args, out):
        if np.dtype(out).kind == "b":
            return f"({args[0].text} {'|' if sign == '+' else '&'} {args[1].text})"
        return narrowed(f"({loose(args[0], out)} {sign} {loose(args[1], out)})", out)


_binary("+", operator.add, np.add)
_binary("-", operator.sub, np.subtract)
_binary("*", operator.mul, np.multiply)


def quotient(a, b, dtype):
    """Of complex numbers: Numba's own raises an error where a divisor is 0."""
    text = f"complex_quotient({a}, {b})"
    return text if np.dtype(dtype) == np.complex128 else f"np.complex64({text})"


@form(operator.truediv, np.divide)
def _divide(args, out):
    if np.dtype(out).kind == "c":
        return quotient(cast(args[0], out), cast(args[1], out), out)
    return f"({loose(args[0], out)} / {cast(args[1], out)})"


@form(operator.floordiv, np.floor_divide)
def _floor_divide(args, out):
    return narrowed(cast(Operand(f"({cast(args[0], out)} // {cast(args[1], out)})", out), out), out)


@form(operator.mod, np.remainder)
def _remainder(args, out):
    return narrowed(f"({cast(args[0], out)} % {cast(args[1], out)})", out)


def _any_power(args, out):
    text = f"({base_of(cast(args[0], out))} ** {cast(args[1], out)})"
    return text if out in _WIDE else f"np.{out.name}{text}"


def base_of(text):
    """The text of a base: -2.0 ** k is -(2.0 ** k)."""
    return f"({text})" if text.startswith("-") else text


FORMS[np.float_power] = in_loops("power", _any_power)


def _power_in_loops(args, out):
    return _power(args, out, _any_power.in_loops)


@form(operator.pow, np.power, math.pow)
def _power(args, out, otherwise=_any_power):
    base, exponent = args
    n, out = exponent.literal, np.dtype(out)
    if n is not None and not isinstance(n, complex) and abs(n) <= 64 and n == int(n) and out.kind in "fc":
        n, text = int(n), base_of(cast(base, out))
        if n == 2:
            return f"({text} * {text})" if base.simple else f"square({text})"
        if n == 1:
            return text
        if n == -1 and out.kind == "c":
            return quotient(literal(1, out), text, out)
        if n == -1:
            return f"({literal(1, out)} / {text})"
        if out.kind == "f":
            text = f"{text} ** {abs(n)}"
            text = f"({text})" if n >= 0 else f"({literal(1, out)} / ({text}))"         # Numba's raises at 0
            return text if out == np.float64 else f"np.{out.name}{text}"
    if n is not None and n == 0.5 and out.kind == "f":
        return f"np.sqrt({cast(base, out)})"
    if out.kind in "iu":
        return narrowed(f"integer_power({cast(base, out)}, {cast(exponent, np.int64)})", out)
    return otherwise(args, out)


_power.in_loops = _power_in_loops


@form(operator.neg, np.negative)
def _negative(args, out):
    return narrowed(f"(-{cast(args[0], out)})", out)


@form(operator.invert, np.invert)
def _invert(args, out):
    return f"(not {args[0].text})" if np.dtype(out).kind == "b" else narrowed(f"(~{cast(args[0], out)})", out)


def _bitwise(sign, *functions):
    @form(*functions)
    def make(args, out):
        return narrowed(f"({cast(args[0], out)} {sign} {cast(args[1], out)})", out)


_bitwise("&", operator.and_, np.bitwise_and)
_bitwise("|", operator.or_, np.bitwise_or)
_bitwise("^", operator.xor, np.bitwise_xor)


def _shift(sign, helper, *functions):
    @form(*functions)
    def make(args, out):
        first, by, bits = cast(args[0], out), args[1], 8 * np.dtype(out).itemsize
        if by.literal is not None and 0 <= by.literal < bits:
            return narrowed(f"({first} {sign} {cast(by, out)})", out)
        return narrowed(f"{helper}({first}, {cast(by, np.int64)}, {bits})", out)


_shift("<<", "shifted_left", operator.lshift, np.left_shift)
_shift(">>", "shifted_right", operator.rshift, np.right_shift)


_ORDERED = {"<": "complex_less", ">": "complex_less", "<=": "complex_at_most", ">=": "complex_at_most"}


def _compare(sign, *functions):
    @form(*functions)
    def make(args, out):
        loop = promote(args[0].dtype, args[1].dtype)
        if np.dtype(loop).kind == "c" and sign in _ORDERED:
            first, second = args if sign in ("<", "<=") else args[::-1]
            return f"{_ORDERED[sign]}({cast(first, loop)}, {cast(second, loop)})"
        kinds = [a.exact.kind for a in args]
        if set(kinds) <= {"i", "u"}:
            if any(isinstance(a.dtype, type) for a in args):       # Python's numbers are compared as they are
                fixed = _beyond(args, sign)
                if fixed is not None:
                    return fixed
                if loop != np.dtype(np.uint64):
                    loop = np.dtype(np.int64)
            if kinds[0] != kinds[1] and np.dtype(np.uint64) in (args[0].exact, args[1].exact) and not any(
                    a.literal is not None for a in args):
                first, second = args if kinds[0] == "u" else args[::-1]
                text = f"order_of({cast(first, np.uint64)}, {cast(second, np.int64)})"
                return f"({text} {sign} 0)" if kinds[0] == "u" else f"(0 {sign} {text})"
        return f"({loose(args[0], loop)} {sign} {loose(args[1], loop)})"


def _beyond(args, sign):
    """What a comparison with a whole number is that the other side's dtype does not hold; None where it does."""
    for k, a in enumerate(args):
        other = args[1 - k]
        if a.literal is None or isinstance(other.dtype, type):
            continue
        info = np.iinfo(other.exact)
        if info.min <= a.literal <= info.max:
            return None
        first, second = (a.literal, 0) if k == 0 else (0, a.literal)
        return str(_SIGNS[sign](first, second))
    return None


_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
          "!=": operator.ne}

for _sign, _functions in {
    "<": (operator.lt, np.less),
    "<=": (operator.le, np.less_equal),
    ">": (operator.gt, np.greater),
    ">=": (operator.ge, np.greater_equal),
    "==": (operator.eq, np.equal),
    "!=": (operator.ne, np.not_equal),
}.items():
    _compare(_sign, *_functions)


# --- truth ------------------------------------------------------------------------------------------------------------

def truth(operand):
    return operand.text if operand.exact.kind == "b" else f"({operand.text} != 0)"


@form(operator.not_, np.logical_not)
def _not(args, out):
    return f"(not {truth(args[0])})"


@form(operator.truth, bool)
def _truth(args, out):
    return truth(args[0])


@form(np.logical_and)
def _and(args, out):
    return f"({truth(args[0])} and {truth(args[1])})"


@form(np.logical_or)
def _or(args, out):
    return f"({truth(args[0])} or {truth(args[1])})"


@form(np.logical_xor)
def _xor(args, out):
    return f"({truth(args[0])} != {truth(args[1])})"


@form(both)
def _both(args, out):
    if np.dtype(out).kind == "b":
        return _and(args, out)
    return f"({cast(args[1], out)} if {truth(args[0])} else {cast(args[0], out)})"


@form(either)
def _either(args, out):
    if np.dtype(out).kind == "b":
        return _or(args, out)
    return f"({cast(args[0], out)} if {truth(args[0])} else {cast(args[1], out)})"


@form(np.where)
def _where(args, out):
    return f"({cast(args[1], out)} if {truth(args[0])} else {cast(args[2], out)})"


# --- functions that Numba has for scalars -----------------------------------------------------------------------------

_SAME = """exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
arctanh arctan2 hypot logaddexp logaddexp2 copysign fmod floor ceil trunc rint""".split()
_OF_MATH = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}


def _plain(name):
    def make(args, out):
        if np.dtype(out).kind in "iub":             # floor of an integer
            return cast(args[0], out)
        text = f"np.{name}({', '.join(cast(a, out) for a in args)})"
        return text if np.dtype(out) in _WIDE else f"np.{np.dtype(out).name}({text})"
    return in_loops(name, make) if name in ELEMENTARY else make


for _name in _SAME:
    FORMS[getattr(np, _name)] = _plain(_name)
for _name in dir(math):
    if _OF_MATH.get(_name, _name) in _SAME and _name not in ("floor", "ceil", "trunc", "log"):
        FORMS[getattr(math, _name)] = _plain(_OF_MATH.get(_name, _name))
_float_fmod = FORMS[np.fmod]


@form(np.fmod, math.fmod)
def _fmod(args, out):
    if np.dtype(out).kind in "iu":
        return narrowed(f"whole_fmod({cast(args[0], out)}, {cast(args[1], out)})", out)
    return _float_fmod(args, out)


FORMS[np.fix] = _plain("trunc")


@form(math.log)
def _log(args, out):
    text = f"np.log({cast(args[0], out)})"
    return text if len(args) == 1 else f"({text} / np.log({cast(args[1], out)}))"


def _of_math(name):
    def make(args, out):
        return f"math.{name}({cast(args[0], out)})"
    return in_loops(name, make) if name in ELEMENTARY else make


for _name in ("erf", "erfc", "gamma", "lgamma"):
    FORMS[getattr(math, _name)] = _of_math(_name)


@form(math.floor, name="floor")
@form(math.ceil, name="ceil")
@form(math.trunc, name="trunc")
def _to_integer(args, out, name):
    return args[0].text if args[0].exact.kind in "iub" else f"int(math.{name}({cast(args[0], np.float64)}))"


@form(int)
def _integer(args, out):
    return cast(args[0], out)


def _identity(args, out):
    return cast(args[0], out)


@form(complex)
def _complex(args, out):
    if len(args) == 1:
        return cast(args[0], out)
    return cast(Operand(f"complex({', '.join(cast(a, np.float64) for a in args)})", np.complex128), out)


for _function in (float, operator.pos, np.positive, np.copy, np.ascontiguousarray, np.asarray,
                  np.asanyarray):
    FORMS[_function] = _identity


def _predicate(text, *functions):
    @form(*functions)
    def make(args, out):
        x = args[0]
        if x.exact.kind in "iub":
            x = Operand(cast(x, np.float64), np.dtype(float))
        return text.format(x=x.text)


_predicate("np.isnan({x})", np.isnan, math.isnan)
_predicate("np.isinf({x})", np.isinf, math.isinf)
_predicate("({x} == np.inf)", np.isposinf)
_predicate("({x} == -np.inf)", np.isneginf)
_predicate("(math.copysign(1.0, {x}) < 0.0)", np.signbit)


@form(np.isfinite, math.isfinite)
def _finite(args, out):
    """Numba's own asks whether x - x is a number, which is always so for the fast mathematics of x = a + b."""
    x = args[0]
    if x.exact.kind in "iub":
        return "True" if x.literal is not None else f"(({x.text}) == ({x.text}))"
    parts = [f"({x.text}).real", f"({x.text}).imag"] if x.exact.kind == "c" else [x.text]
    return f"({' and '.join(f'abs({p}) < np.inf' for p in parts)})"


@form(np.iscomplex, real=False)
@form(np.isreal, real=True)
def _complexness(args, out, real):
    if args[0].exact.kind != "c":
        return repr(real)
    return f"(({args[0].text}).imag {'==' if real else '!='} 0)"


# --- functions of our own, in runtime/compiled.py ---------------------------------------------------------------------

def of_two(name, a, b, out):
    """The larger, or the smaller, of two values."""
    return f"{'complex_' * (np.dtype(out).kind == 'c')}{name}({a}, {b})"


def _own(name, *functions):
    @form(*functions)
    def make(args, out):
        texts = [cast(a, out) for a in args]
        text = of_two(name, *texts, out) if name in ("maximum", "minimum") else f"{name}({', '.join(texts)})"
        return text if np.dtype(out) in _WIDE or np.dtype(out).kind == "b" else f"np.{np.dtype(out).name}({text})"


_own("maximum", np.maximum)
_own("minimum", np.minimum)
_own("fmax", np.fmax)
_own("fmin", np.fmin)
_own("heaviside", np.heaviside)
_own("sinc", np.sinc)


@form(np.gcd, math.gcd, name="gcd")
@form(np.lcm, math.lcm, name="lcm")
def _of_divisors(args, out, name):
    """The size of the least number of a narrow type is not one of it."""
    kind = np.int64 if np.dtype(out).kind == "i" else out
    text = f"{name}({', '.join(cast(a, kind) for a in args)})"
    return text if out in _WIDE else f"np.{np.dtype(out).name}({text})"


@form(builtins.max)
def _max(args, out):
    return f"max({cast(args[0], out)}, {cast(args[1], out)})"


@form(builtins.min)
def _min(args, out):
    return f"min({cast(args[0], out)}, {cast(args[1], out)})"


@form(np.square)
def _square(args, out):
    text = cast(args[0], out)
    return narrowed(f"({text} * {text})" if args[0].simple else f"square({text})", out)


@form(np.reciprocal)
def _reciprocal(args, out):
    if np.dtype(out).kind in "iu":
        return narrowed(f"whole_reciprocal({cast(args[0], out)})", out)
    if np.dtype(out).kind == "c":
        return quotient(literal(1, out), cast(args[0], out), out)
    return f"({literal(1, out)} / {cast(args[0], out)})"


@form(np.sign)
def _sign(args, out):
    if np.dtype(out).kind == "c":
        return None
    if np.dtype(out).kind in "iu":
        return narrowed(f"whole_sign({cast(args[0], out)})", out)
    text = f"sign({cast(args[0], out)})"                # a float64, whatever it is given
    return f"np.float32({text})" if np.dtype(out) == np.float32 else text


@form(np.abs, builtins.abs, operator.abs, np.fabs, math.fabs)
def _absolute(args, out):
    if args[0].exact.kind == "c":
        return cast(Operand(f"abs({args[0].text})", np.float64 if args[0].exact == np.complex128 else np.float32), out)
    return narrowed(f"abs({cast(args[0], out)})", out) if np.dtype(out).kind != "b" else args[0].text


@form(np.clip)
def _clip(args, out):
    x, low, high = args
    text = cast(x, out)
    if low is not None:
        text = of_two("maximum", text, cast(low, out), out)
    if high is not None:
        text = of_two("minimum", text, cast(high, out), out)
    return text


@form(np.deg2rad, np.radians, math.radians)
def _deg2rad(args, out):
    return f"({cast(args[0], out)} * {literal(math.pi / 180, out)})"


@form(np.rad2deg, np.degrees, math.degrees)
def _rad2deg(args, out):
    return f"({cast(args[0], out)} * {literal(180 / math.pi, out)})"


@form(np.ldexp, math.ldexp)
def _ldexp(args, out):
    return cast(Operand(f"math.ldexp({cast(args[0], np.float64)}, {args[1].text})", np.float64), out)


@form(np.real)
def _real(args, out):
    return f"({args[0].text}).real" if args[0].exact.kind == "c" else args[0].text


@form(np.imag)
def _imag(args, out):
    return f"({args[0].text}).imag" if args[0].exact.kind == "c" else literal(0, out)


@form(np.conjugate)
def _conjugate(args, out):
    return f"np.conj({args[0].text})" if args[0].exact.kind == "c" else args[0].text


@form(builtins.round)
def _round(args, out):
    if np.dtype(out).kind == "f":
        return f"round_decimal({cast(args[0], out)}, {args[1].text})"
    given = [a for a in args if a is not None]
    if len(given) > 1:
        return f"whole_round({cast(args[0], np.int64)}, {given[1].text})"
    return f"round({given[0].text})"
