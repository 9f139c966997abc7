# SPDX-License-Identifier: Apache-2.0
"""Types of the loop form: the dtype and the rank of each expression, as Numba has them.

Numba gives a name one type, into which all its values fit.  So the types of a function are the least fixpoint of its
assignments.  A dtype that Numba may choose differently on another machine or in another version stays unknown (None).

>>> from gradscribe.codegen.loops.form import Call, Const, Name, Op, Type
>>> types = {"x": Type("float32", 1), "k": Type("int64", 0)}
>>> type_of(Op("*", (Name("k"), Const(2))), types), type_of(Call("exp", (Const(1.0),)), types)
(Type(dtype='int64', rank=0), Type(dtype='float64', rank=0))

Source: L. Damas, R. Milner, Principal type-schemes for functional programs, 1982, without their
polymorphism; the promotions are those of Numba's arithmetic on scalars.
"""
import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.codegen.llvm_inline import CALLED, STRAIGHT
from gradscribe.codegen.loops.analysis.effects import CHECKS, ELEMENTARY, PURE
from gradscribe.codegen.loops.analysis.summaries import text_of
from gradscribe.codegen.loops.form import (
    UNKNOWN,
    Alloc,
    Attribute,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Method,
    Name,
    Op,
    Return,
    Select,
    Slice,
    Type,
    Unpack,
    Update,
    flat,
    names_in,
    set_by,
    sign_of,
    statements,
)

OPEN = Type("open", None)               # of a name whose assignments have not been looked at yet
NEW_AXIS = Const(None)
OF_CONSTANTS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
WORDS = {"bool_": "bool"}
REAL = "float64", "float32"             # real dtypes that loops compute with
DTYPES = (*REAL, "float16", "bool_", "complex128", "complex64", *SIGNED, *UNSIGNED)
RESULTS = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128", "len": "int64",
           "place": "int64", "meet": "int64", "same": "int64", "ranked": "int64", "ranked_low": "int64",
           "unranked": "float64", "ranked32": "int32", "ranked_low32": "int32", "unranked32": "float32",
           "single": "float32",
           "np.isnan": "bool",
           **{f"np.{n}": WORDS.get(n, n) for n in DTYPES}}
OF_NUMBERS = PURE | CHECKS | CALLED | set(STRAIGHT) | {
    "sinc", "integer_power", "round_to", "squared_size", "finite_or", "complex_less", "complex_at_most",
    "complex_maximum", "complex_minimum"}
ALIKE = {"min", "max", "maximum", "minimum", "fmax", "fmin", "square", "sign", "np.copysign"}   # the operands' dtype
CHOICES = ALIKE - {"square", "sign", "np.copysign"}             # their result is one of the operands
ROUNDED = {"np.floor", "np.ceil", "np.trunc", "np.sqrt", "math.sqrt"}
REAL_PART = {"complex128": "float64", "complex64": "float32"}


def inferred(function: Function, given: dict) -> dict:
    """{name: Type} of all names; given: the types of the parameters, and of names whose type cannot be inferred."""
    return _Inference(function, given).types


class _Inference:
    """types: {name: Type}, that grow until all assignments fit; values: {name: the values that it is given, or their
    Types}; readers: {name: the names of which a value reads it}.
    """

    def __init__(self, function, given):
        self.types = {p: given.get(p, UNKNOWN) for p in function.params}
        self.values: dict = {}
        self.readers: dict = {}
        for s in statements(function.block):
            for name, value in self.assigned(s):
                self.values.setdefault(name, []).append(value)
        for name, found in self.values.items():
            self.types.setdefault(name, OPEN)
            for v in found:
                if not isinstance(v, Type):
                    for other in names_in(v):
                        self.readers.setdefault(other, set()).add(name)
        self.solve(given)

    def assigned(self, s):
        """(name, value or Type) of each name that a statement sets."""
        if isinstance(s, Update):
            yield s.name, Op(s.op, (Name(s.name), s.value))
        elif isinstance(s, Let):
            yield s.name, s.value
        elif isinstance(s, Alloc):
            yield s.name, Type(WORDS.get(s.dtype, s.dtype), len(s.shape))
        elif isinstance(s, For):
            yield s.index, Type("int64", 0)
        elif isinstance(s, Unpack) and isinstance(s.value, Items) and len(s.value.items) == len(s.targets.items):
            for t, v in zip(s.targets.items, s.value.items):
                if isinstance(t, Name):
                    yield t.id, v
                else:
                    yield from ((n.id, UNKNOWN) for n in (flat(t) if isinstance(t, Items) else ()))
        else:
            names = set_by(s)
            parts = [Load(s.value, (Const(k),)) for k in range(len(names))] if _parts_of(
                getattr(s, "value", None), self.types) else []
            yield from itertools.zip_longest(names, parts, fillvalue=UNKNOWN)

    def solve(self, given):
        """Join the types of each name's values until nothing changes: a worklist over the names."""
        waiting = list(self.values)
        while waiting:
            name = waiting.pop(0)
            found = functools.reduce(joined, [self.of(v) for v in self.values[name]], self.types[name])
            new = completed(found, given.get(name))
            if new != self.types[name]:
                self.types[name] = new
                waiting += [n for n in self.readers.get(name, ()) if n not in waiting and n in self.values]
        self.types = {n: UNKNOWN if t is OPEN else t for n, t in self.types.items()}

    def of(self, value):
        if isinstance(value, Type):
            return value
        return OPEN if any(self.types.get(n) is OPEN for n in names_in(value)) and _open(value, self.types) else \
            type_of(value, self.types)


def _open(e, types):
    """Whether the type of an expression depends on a name that is open: on one in an index it does not."""
    if isinstance(e, Name):
        return types.get(e.id) is OPEN
    if isinstance(e, Load):
        return _open(e.array, types)
    if isinstance(e, Call):
        return e.function not in RESULTS and any(_open(a, types) for a in e.args)
    if isinstance(e, (Compare, Length, Const)):
        return False
    if isinstance(e, Select):
        return _open(e.then, types) and _open(e.orelse, types)
    if isinstance(e, Method):
        return _open(e.owner, types)
    if isinstance(e, Attribute):
        return _open(e.owner, types)
    return any(_open(part, types) for part in getattr(e, "args", getattr(e, "items", ())))


def completed(found: Type, given: Type | None) -> Type:
    """A type, completed by the given one where it is unknown."""
    if given is None or found is OPEN or None not in found:
        return found
    return given if found == UNKNOWN or found.rank == given.rank and found.dtype is None or \
        found.dtype == given.dtype and found.rank is None else found


def joined(a: Type, b: Type) -> Type:
    """The type of a name that is given values of two types."""
    if a is OPEN or a == b:
        return b
    if b is OPEN:
        return a
    rank = a.rank if a.rank == b.rank else None
    if a.dtype == b.dtype:
        return Type(a.dtype, rank)
    return Type("float64" if {a.dtype, b.dtype} == {"int64", "float64"} and rank == 0 else None, rank)


def type_of(e: Expr, types: dict) -> Type:
    """The type of an expression, from the types of its names."""
    return RULES.get(type(e), _unknown)(e, types)


def is_double(e: Expr, types: dict) -> bool:
    """Whether an expression is certainly a number, or entries, in double precision."""
    return type_of(e, types).dtype == "float64"


def is_single(e: Expr, types: dict) -> bool:
    return type_of(e, types).dtype == "float32"


def _unknown(e, types):
    return UNKNOWN


def _op(e, types):
    found = [type_of(a, types) for a in e.args]
    op = sign_of(e.op)
    if op == "not":
        return Type("bool", 0)
    ranks = {t.rank for t in found}
    rank = 0 if ranks == {0} else None
    if len(found) == 1:
        dtype = found[0].dtype
        return Type("int64" if dtype == "bool" or dtype in SIGNED else dtype if dtype not in UNSIGNED else None, rank)
    return Type(ARITHMETIC.get(op, arithmetic)(found[0].dtype, found[1].dtype), rank)


def arithmetic(a, b):
    """The dtype of a sum, difference or product of two numbers."""
    if a is None or b is None:
        return None
    if a == b and a in ("float64", "float32", "complex128", "complex64"):
        return a
    pair = {a, b}
    whole = pair <= {"bool", *SIGNED}
    if whole or pair <= {"bool", *UNSIGNED}:
        return "int64" if whole else "uint64"
    if "complex128" in pair or "complex64" in pair:
        return "complex64" if pair == {"complex64", "float32"} else "complex128" if "float16" not in pair else None
    if "float64" in pair:
        return "float64"
    return "float64" if "float32" in pair and pair & {"int32", "int64", "uint32", "uint64"} else None


def _quotient(a, b):
    whole = {"bool", *SIGNED, *UNSIGNED}
    return "float64" if a in whole and b in whole else arithmetic(a, b)


def _power(a, b):
    return "float64" if arithmetic(a, b) == "float64" else "complex128" if a == "complex128" else None


def _bits(a, b):
    return "bool" if a == b == "bool" else arithmetic(a, b) if arithmetic(a, b) in ("int64", "uint64") else None


ARITHMETIC = {"/": _quotient, "**": _power, "&": _bits, "|": _bits, "^": _bits, "<<": _bits, ">>": _bits,
              "@": lambda a, b: a if a == b else None}


def _call(e, types):
    name = e.function
    if name in RESULTS:
        return Type(RESULTS[name], 0)
    found = [type_of(a, types) for a in e.args]
    if name == "np.dot" and len(found) == 2:
        ranks = [t.rank for t in found]
        dtype = found[0].dtype if found[0].dtype == found[1].dtype else None
        return Type(dtype, None if None in ranks else sum(ranks) - 2 if min(ranks) > 0 else None)
    if any(t.rank != 0 for t in found):
        return UNKNOWN
    if name in ELEMENTARY:
        return Type(STRAIGHT[name][2], 0)
    dtypes = [t.dtype for t in found]
    if name in ("abs", "np.abs"):
        return Type(REAL_PART.get(dtypes[0], dtypes[0]), 0)
    if name in ALIKE:
        if name in CHOICES and len(set(dtypes)) == 1:
            return Type(dtypes[0], 0)
        dtype = functools.reduce(arithmetic, dtypes) if dtypes else None
        return Type(dtype if len(set(dtypes)) == 1 or dtype in ("float64", "int64") else None, 0)
    head, _, last = name.rpartition(".")
    if head and (last in ELEMENTARY or name in ROUNDED):
        common = functools.reduce(arithmetic, dtypes) if dtypes else None
        of_whole = common in ("int64", "uint64") and last not in ("floor", "ceil", "trunc")
        known = ("float64", "complex128", "float32") if head == "np" else ("float64", "complex128")
        return Type("float64" if of_whole else common if common in known else None, 0)
    if head == "np" and dtypes and set(dtypes) <= {*REAL, *REAL_PART}:
        return Type(_of_ufunc(last, functools.reduce(arithmetic, dtypes), len(dtypes)), 0)
    if head == "math":
        made = _of_math(last, tuple(dtypes))
        return Type(made[0], 0) if len(made) == 1 else UNKNOWN
    if name.startswith("scipy_"):       # complex arguments give complex results
        return Type("float64" if set(dtypes) <= {*REAL, "bool", *SIGNED, *UNSIGNED} else None, 0)
    made = _result_of(name, tuple(found))
    return made if made != UNKNOWN or not is_of_numbers(name) else Type(None, 0)


_read: list = []                        # makes the loop form of a definition: from trees.py, which imports this module
_asked: list = []                       # the functions whose results are being inferred: no recursion


def read_definitions_by(read: Callable[..., Any]) -> None:
    """Set the function that reads definitions: the types of the runtime's functions are inferred from these."""
    _read[:] = [read]


@functools.cache
def _result_of(name, given):
    """The type of the result of a runtime function for arguments of these types, from its definition."""
    text = text_of(name)
    if text is None or name in _asked or len(text.args.args) != len(given) or any(t.dtype is None for t in given):
        return UNKNOWN
    if text.returns is not None:
        return Type(RESULTS[text.returns.id], 0)
    _asked.append(name)
    try:
        function = _read[0](text, {a.arg: t for a, t in zip(text.args.args, given)})
        results = [type_of(s.value, function.types) for s in statements(function.block) if isinstance(s, Return)]
        made = functools.reduce(joined, results, OPEN)
        return made if made.rank == 0 else UNKNOWN
    except (KeyError, AttributeError):  # its definition does not fit the loop form
        return UNKNOWN
    finally:
        _asked.remove(name)


@functools.cache
def _of_ufunc(name, dtype, count):
    """The dtype of a ufunc's result for floating-point operands of one dtype, from its list of loops."""
    if dtype is None:
        return None
    given = np.dtype(dtype).char * count
    loops = [t for t in getattr(getattr(np, name, None), "types", ()) if t.startswith(f"{given}->")]
    return np.dtype(loops[0][-1]).name if loops and len(loops[0]) == count + 3 else None


@functools.cache
def _of_math(name, dtypes):
    """The dtypes of the result, or of each part of it, of a function of Python's module math, found by calling it.

    Unknown for arguments below double precision, for which Numba's result is in theirs.
    """
    wide = set(dtypes) <= {"float64", "bool", *SIGNED, *UNSIGNED}
    for given in ((0.5,) * len(dtypes), (0.5, 1)):
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            made = getattr(math, name)(*given)
            found = (OF_CONSTANTS.get(type(part)) for part in (made if isinstance(made, tuple) else (made,)))
            return tuple(d if wide or d != "float64" else None for d in found)
    return (None,)


def _parts_of(e, types):
    """The types of the parts of a call's result, if it is one of module math."""
    if isinstance(e, Call) and e.function.startswith("math."):
        dtypes = tuple(type_of(a, types).dtype for a in e.args)
        return [Type(dtype, 0) for dtype in _of_math(e.function.removeprefix("math."), dtypes)]
    return []


def is_of_numbers(function: str) -> bool:
    """Whether a function of this name maps numbers to a number."""
    head, _, name = function.rpartition(".")
    if head == "np":
        return name in DTYPES or name == "conj" or isinstance(getattr(np, name, None), np.ufunc)
    return head == "math" or not head and name in OF_NUMBERS


def _load(e, types):
    parts = _parts_of(e.array, types)
    if parts and isinstance(e.index[0], Const):
        return parts[e.index[0].value] if e.index[0].value < len(parts) else UNKNOWN
    array = type_of(e.array, types)
    if array.rank is None:
        return Type(array.dtype)
    lost = added = 0
    for part in e.index:
        if isinstance(part, Slice):
            continue
        if part == NEW_AXIS:
            added += 1
        elif isinstance(part, Const) and type(part.value) is not int or type_of(part, types).rank not in (0, None):
            return Type(array.dtype)
        else:
            lost += 1
    return Type(array.dtype, array.rank - lost + added if array.rank >= len(e.index) - added else None)


def _method(e, types):
    owner = type_of(e.owner, types)
    if e.name == "reshape" and len(e.args) == 1 and isinstance(e.args[0], Items):
        return Type(owner.dtype, len(e.args[0].items))
    return owner if e.name == "copy" else UNKNOWN


def _attribute(e, types):
    if isinstance(e.owner, Name) and e.owner.id in ("np", "math"):
        return Type("float64", 0) if e.name in ("inf", "nan", "pi", "e") else UNKNOWN
    owner = type_of(e.owner, types)
    if e.name == "T":
        return owner
    if e.name in ("real", "imag"):
        return Type(REAL_PART.get(owner.dtype, owner.dtype), owner.rank)
    return Type("int64", 0) if e.name == "size" else UNKNOWN


def _logic(e, types):
    return functools.reduce(joined, [type_of(part, types) for part in e.items])


RULES = {
    Name: lambda e, types: types.get(e.id, UNKNOWN),
    Const: lambda e, types: Type(OF_CONSTANTS[type(e.value)], 0) if type(e.value) in OF_CONSTANTS else UNKNOWN,
    Op: _op,
    Compare: lambda e, types: Type("bool", 0),
    Logic: _logic,
    Select: lambda e, types: joined(type_of(e.then, types), type_of(e.orelse, types)),
    Load: _load,
    Length: lambda e, types: Type("int64", 0),
    Call: _call,
    Method: _method,
    Attribute: _attribute,
}
