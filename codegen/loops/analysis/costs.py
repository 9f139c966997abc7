# SPDX-License-Identifier: Apache-2.0
"""The cost model: the time of expressions and statements, from their operations and the bytes that they move.

Passes use it to decide whether recomputing costs less than storing, and whether a loop is long enough for threads.
Times are nanoseconds for one pass of a vectorised loop in double precision.  `Machine` has all that is assumed of the
machine; the cost of an elementary function is that of its own definition in runtime/vmath.py.

>>> from gradscribe.codegen.loops.form import Load, Name, Op
>>> x, y = Load(Name("x"), (Name("i"),)), Load(Name("y"), (Name("i"),))
>>> arithmetic(Op("/", (x, Op("+", (x, y))))) == MACHINE.division + MACHINE.operation
True
>>> arithmetic(Call("sin", (x,))) > arithmetic(Call("exp", (x,))) > MACHINE.store
True

Sources: S. Williams, A. Waterman, D. Patterson, Roofline, 2009 (bytes and operations); the figures are what
benchmarks/machine.py prints on an AMD EPYC with AVX-512.
"""
import ast
import functools
import inspect
from typing import NamedTuple

from gradscribe.codegen.llvm_inline import STRAIGHT
from gradscribe.codegen.loops.form import (
    Call,
    Compare,
    Const,
    Expr,
    Let,
    Load,
    Logic,
    Method,
    Op,
    Select,
    Store,
    Update,
    expressions,
    sign_of,
    statements,
    walk,
)
from gradscribe.runtime import vmath


class Machine(NamedTuple):
    """Nanoseconds for an addition, product, comparison or selection; a division; a root; an entry of 8 bytes that is
    read or written in the second-level cache; a call that is not inlined; waking the threads.  hides: arithmetic runs
    while memory is accessed, as on a device with many threads.
    """
    operation: float = 0.025
    division: float = 0.13
    root: float = 0.35
    load: float = 0.1
    store: float = 0.25
    call: float = 60.0
    threads: float = 26000.0
    hides: bool = False


MACHINE = Machine()
DIVIDED = {"/", "//", "%"}
ROOTS = {"np.sqrt", "math.sqrt", "sqrt"}
ONE_OPERATION = {"abs", "min", "max", "maximum", "minimum", "fmin", "fmax", "square", "sign", "np.copysign"}
NOTHING = {"float", "np.float64", "np.float32", "np.float16", "int", "bool", "np.int64"}      # casts, almost free
LONGEST = 8                             # the largest exponent of a power that is computed by products


def arithmetic(e: Expr, machine: Machine | None = None) -> float:
    """The time to compute an expression, both arms of selections included, without its loads; by default on MACHINE."""
    return sum([alone(part, machine or MACHINE) for part in walk(e)])


def alone(e: Expr, machine: Machine) -> float:
    """The time of an expression without its subexpressions."""
    if isinstance(e, Op):
        sign = sign_of(e.op)
        if sign == "**":
            exponent = e.args[1]
            whole = isinstance(exponent, Const) and type(exponent.value) is int and 0 <= exponent.value <= LONGEST
            return exponent.value.bit_length() * machine.operation if whole else of_function("power", machine)
        if sign in ("+", "-") and any(isinstance(a, Op) and sign_of(a.op) == "*" for a in e.args):
            return 0.0                  # fused with the product
        return machine.division if sign in DIVIDED else machine.operation
    if isinstance(e, (Compare, Logic)):
        return (len(e.items) - 1) * machine.operation
    if isinstance(e, Select):
        return machine.operation
    if isinstance(e, Call):
        return of_function(e.function, machine)
    return machine.call if isinstance(e, Method) else 0.0


def of_function(name: str, machine: Machine | None = None) -> float:
    """The time of a call: that of the definition if it is inlined."""
    return _of_function(name, machine or MACHINE)


@functools.cache
def _of_function(name, machine):
    name = name.rpartition(".")[2] if name not in ROOTS and name.startswith(("np.", "math.")) else name
    if name in NOTHING or f"np.{name}" in NOTHING:
        return 0.0
    if name in ONE_OPERATION:
        return machine.operation
    if name in ROOTS:
        return machine.root
    if name in STRAIGHT:
        return _of_text(STRAIGHT[name][0], machine)
    return machine.call


@functools.cache
def _of_text(function, machine):
    total = 0.0
    for n in ast.walk(ast.parse(inspect.getsource(function)).body[0]):
        if isinstance(n, ast.BinOp):
            both = n.left, n.right
            if all(isinstance(a, ast.Constant) for a in both) or isinstance(n.op, (ast.Add, ast.Sub)) and any(
                    isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult) for a in both):
                continue                # folded; fused with the product
            total += machine.division if isinstance(n.op, ast.Div) else machine.operation
        elif isinstance(n, (ast.Compare, ast.IfExp)):
            total += machine.operation
        elif isinstance(n, ast.Call):
            called = ast.unparse(n.func)
            inner = function.__globals__.get(called, vars(vmath).get(called))
            total += _of_text(inner, machine) if inspect.isfunction(inner) else machine.root if called in ROOTS else 0.0
    return total


def of_pass(block: list) -> float:
    """The time of one pass of a block, counting all branches, and one pass of each nested loop."""
    total = 0.0
    for s in statements(block):
        total += MACHINE.store * isinstance(s, Store)
        total += (MACHINE.load + MACHINE.operation) * (isinstance(s, Store) and s.op is not None)
        total += MACHINE.operation * isinstance(s, Update)
        for e in expressions(s):
            if not (isinstance(s, Store) and e is s.entry):
                total += arithmetic(e) + MACHINE.load * sum(isinstance(n, Load) for n in walk(e))
    return total


def beside_memory(block: list, more: float, machine: Machine) -> float:
    """The time that more arithmetic adds to a pass, which takes as long as the longer of its memory and its arithmetic.

    Source: S. Williams, A. Waterman, D. Patterson, Roofline, 2009.
    """
    every = [s for s in statements(block) if isinstance(s, (Store, Update, Let))]
    computed = sum(arithmetic(e, machine) for s in every for e in expressions(s))
    moved = sum(machine.store * isinstance(s, Store) for s in every)
    return max(moved, computed + more) - max(moved, computed)
