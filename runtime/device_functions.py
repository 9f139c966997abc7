# SPDX-License-Identifier: Apache-2.0
"""Functions that emitted kernels call, as plain Python, and those that the host function calls.

A kernel can call the functions of compiled code (compiled.py, vmath.py and others) under the same names, NumPy's scalar
functions under NumPy's names, those for complex numbers with the prefix `complex_`, and a few functions of a block.
"""
import ast
import contextlib
import functools
import importlib
import inspect
import math
import textwrap

import numpy as np
import scipy.special

from gradscribe.runtime import (
    arranging,
    compiled,
    fourier,
    francis,
    numeric,
    ranks,
    solvers,
    special,
    spectra,
    systems,
    vmath,
    vmath32,
    vmath_gamma,
    vmath_roots,
)

_later: list[list] = []
RUNTIME = (compiled, ranks, arranging, numeric, solvers, systems, francis, fourier, special, spectra, vmath,
           vmath_roots, vmath_gamma, vmath32)
UFUNCS = {n: f for n, f in vars(np).items() if isinstance(f, np.ufunc) and f.signature is None}


# --- in kernels -------------------------------------------------------------------------------------------------------

def place_in(k, n, wrong):
    """Index k on an axis of length n as a nonnegative one; out of bounds it sets `wrong` and returns the nearest."""
    if k < 0:
        k += n
    if k < 0 or k >= n:
        wrong[0] = 1
        k = 0 if k < 0 else n - 1
    return k


def place_of(k, n):
    """Index k on an axis of length n as a nonnegative one, without a check."""
    return k + n if k < 0 else k


RAISED: list = [None, IndexError("index is out of bounds for its axis")]        # exceptions by the number in `wrong`


class _Noted(ast.NodeTransformer):
    """Replaces `raise` by a store of the exception's number in `wrong`."""

    def visit_FunctionDef(self, node):
        self.given = node.args.args[0].arg if any(isinstance(n, ast.Return) for n in ast.walk(node)) else ""
        self.generic_visit(node)
        node.args.args.append(ast.arg("wrong"))
        node.name = f"{node.name}_in"
        return node

    def visit_Raise(self, node):
        error = eval(compile(ast.Expression(node.exc), "<raised>", "eval"), {"np": np, "Unsaid": compiled.Unsaid})
        error = error() if isinstance(error, type) else error
        known = [repr(e) for e in RAISED]
        if repr(error) not in known:
            RAISED.append(error)
            known.append(repr(error))
        return ast.parse(f"wrong[0] = {known.index(repr(error))}\nreturn {self.given}").body


def _noting(function):
    """A runtime function for threads, which cannot raise: it stores the exception's number for the host to raise."""
    tree = ast.fix_missing_locations(_Noted().visit(ast.parse(textwrap.dedent(inspect.getsource(function)))))
    space: dict = {}
    exec(compile(tree, f"<{function.__name__}_in>", "exec"), vars(inspect.getmodule(function)) | {}, space)
    made = space[f"{function.__name__}_in"]
    made.__doc__ = None
    return made


def sum_of(parts):
    """The sum of the parts of all blocks."""
    total = parts[0]
    for k in range(1, parts.size):
        total += parts[k]
    return total


def prod_of(parts):
    total = parts[0]
    for k in range(1, parts.size):
        total *= parts[k]
    return total


def short(x):
    """A number as bfloat16, on a device as its bits: rounded to nearest, ties to even.

    >>> float(short(1.00390625)), float(short(1.01171875))      # halfway between neighbours
    (1.0, 1.015625)
    """
    return type_of_bfloat16()(x)


@functools.cache
def type_of_bfloat16():
    """The bfloat16 dtype of NumPy arrays, from ml_dtypes."""
    return importlib.import_module("ml_dtypes").bfloat16


def own(value):
    """The sum over a block of one thread."""
    return value


def _choice(name):
    space: dict = {"max": max, "min": min, **{n: getattr(compiled, n) for n in ("maximum", "minimum", "fmax", "fmin")}}
    text = f"def {name}_of(parts):\n    best = parts[0]\n    for k in range(1, parts.size):\n        best = {name}(" \
           f"best, parts[k])\n    return best\n"
    exec(text, space)
    return space[f"{name}_of"]


def _of_any(name, function):
    """A function of doubles for numbers of any dtype; the caller rounds to single precision."""
    given = function.__code__.co_varnames[:function.__code__.co_argcount]
    doubles = ", ".join(f"np.float64({a})" for a in given)
    text = f"def {name}({', '.join(given)}):\n    return double_{name}({doubles})\n"
    space: dict = {"np": np, f"double_{name}": function}
    exec(text, space)
    return space[name]


DOUBLE = [n for n in UFUNCS if any(n in vars(m) for m in (vmath, vmath_roots, vmath_gamma))]
PLAIN = {n: v for module in RUNTIME for n, v in vars(module).items() if not n.startswith("__")}
PLAIN |= {n: f for n, f in UFUNCS.items() if n not in PLAIN}
PLAIN |= {f"double_{n}": PLAIN[n] for n in DOUBLE} | {n: _of_any(n, PLAIN[n]) for n in DOUBLE}
PLAIN |= {f"complex_{n}": f for n, f in UFUNCS.items()}
PLAIN |= {f"{n}_of": _choice(n) for n in ("max", "min", "maximum", "minimum", "fmax", "fmin")}
PLAIN |= {f.__name__: f for f in (place_in, place_of, sum_of, prod_of, short)}
NOTING = ("fits", "integer_power", "ieee_remainder", "meet", "multigammaln", "not_one", "reaches", "round_decimal",
          "same", "scale_of", "whole_comb", "whole_factorial", "whole_isqrt", "whole_perm", "whole_round")
PLAIN |= {f"{n}_in": _noting(PLAIN[n]) for n in NOTING}
SCIPY = """erf erfc erfcinv erfcx erfinv boxcox boxcox1p gamma gammaln j0 j1 log_ndtr ndtr ndtri psi xlog1py xlogy y0
    y1""".split()                       # of scipy.special, what kernels have
PLAIN |= {f"scipy_{n}": getattr(scipy.special, n) for n in SCIPY}
REDUCED = ("sum", "prod", "max", "min", "maximum", "minimum", "fmax", "fmin")
ROWS = {f"row_{n}_{dtype}": (n, dtype) for n in REDUCED for dtype in ("float64", "float32", "int64", "int32")}
PLAIN |= {n: own for n in ROWS}         # a twin has blocks of one thread
KERNEL = {f"block_{n}" for n in REDUCED} | {"column_sum"}


# --- on the host ------------------------------------------------------------------------------------------------------

def as_one(xp, value):
    """A scalar as an array of one entry of the package xp.

    >>> as_one(np, 2.0)
    array([2.])
    """
    return xp.asarray(value).reshape(1)


def check_places(wrong):
    """Raise the error that a kernel has recorded, such as an index out of bounds.

    >>> check_places(np.zeros(1, np.int64))
    """
    if _later:
        _later[-1].append(wrong)
    elif wrong.item():
        error = RAISED[wrong.item()]
        raise type(error)(*error.args)


@contextlib.contextmanager
def later():
    """A list that collects what `check_places` will check, since that waits for the device."""
    _later.append([])
    try:
        yield _later[-1]
    finally:
        _later.pop()


HOST = {"check_places": check_places, "math": math}
