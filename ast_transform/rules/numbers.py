# SPDX-License-Identifier: Apache-2.0
"""Python's mathematical functions of numbers, parts of floating-point numbers, products of vectors."""
import math
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, elementwise, general, linear, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.batching import same_call
from gradscribe.ast_transform.rules.masked import in_double

# --- products of vectors ----------------------------------------------------------------------------------------------

@static
def is_complex(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "c"


def conjugate(x):
    if is_complex(x):
        return np.conj(x)
    return x


@static
def last(x1, x2, axis):
    return axis == -1 or x1.ndim == x2.ndim == 1


@general(np.vecdot, samples=samples.vectors_in_pairs, rewrite=True, arrays=("x1", "x2"))
class vecdot:
    def primal(x1, x2, *, axis=-1):
        if x1.ndim == 1 and x2.ndim == 1:
            return conjugate(x1) @ x2
        if last(x1, x2, axis):
            return np.sum(conjugate(x1) * x2, axis=-1)
        return np.sum(np.moveaxis(conjugate(x1), axis, -1) * np.moveaxis(x2, axis, -1), axis=-1)


@general(np.matvec, samples=samples.matrices_and_vectors, rewrite=True, arrays=("x1", "x2"))
class matvec:
    def primal(x1, x2):
        if x2.ndim == 1:
            return x1 @ x2
        return np.squeeze(x1 @ np.expand_dims(x2, -1), -1)


@general(np.vecmat, samples=samples.vectors_and_matrices, rewrite=True, arrays=("x1", "x2"))
class vecmat:
    def primal(x1, x2):
        if x1.ndim == 1:
            return conjugate(x1) @ x2
        return np.squeeze(np.expand_dims(conjugate(x1), -2) @ x2, -2)


# --- floating-point numbers -------------------------------------------------------------------------------------------

@general(np.modf, "x", samples=samples.any_reals)
class modf:
    def vjp_x(dy):
        return dy[0]

    def jvp_x(x_dot, y):
        return x_dot, np.zeros_like(y[1])

    batch = same_call(np.modf)


@general(np.frexp, "x", samples=samples.any_reals)
class frexp:                        # the exponent is constant
    def vjp_x(dy, y):
        return np.ldexp(dy[0], -y[1])

    def jvp_x(x_dot, y):
        return np.ldexp(x_dot, -y[1]), np.zeros_like(y[1])

    batch = same_call(np.frexp)


@elementwise(np.nextafter, "a", "b", alias=(math.nextafter,), samples=samples.pairs_of_reals)
class nextafter:
    def partial_a():
        return 1

    def partial_b():
        return 0


@constant(np.spacing, elementwise=True, samples=samples.any_reals)
class spacing:
    def primal(x):
        return np.spacing(x)


@constant(math.ulp, samples=samples.numbers, memory=FRESH)
class ulp:
    def primal(x):
        return math.ulp(x)


@general(math.modf, samples=samples.numbers, rewrite=True, memory=FRESH)
class math_modf:
    def primal(x):
        fraction, whole = np.modf(x)
        return float(fraction), float(whole)


@general(math.frexp, samples=samples.numbers, rewrite=True, memory=FRESH)
class math_frexp:
    def primal(x):
        mantissa, exponent = np.frexp(x)
        return float(mantissa), int(exponent)


@elementwise(math.remainder, samples=samples.pairs_of_numbers, memory=FRESH)
class remainder:
    def partial_a():
        return 1

    def partial_b(a, b):
        return -np.rint(a / b)


@elementwise(math.hypot, "a", "b", samples=samples.sides, rewrite=("more",), memory=FRESH)
class math_hypot:
    def primal(a, b, *more):
        return math.hypot(a, b, *more)

    def rewritten(a, b, *more):
        return math.hypot(math.hypot(a, b), *more)

    def partial_a(y, a):
        return a / y

    def partial_b(y, b):
        return b / y

    def scalar(a, b):
        return np.hypot(a, b)


# --- integers ---------------------------------------------------------------------------------------------------------

_function: Any
for _function in (math.factorial, math.isqrt):
    constant(_function, "n", samples=samples.counting_numbers, memory=FRESH)(type(_function.__name__, (), {}))
for _function in (math.comb, math.perm):
    constant(_function, "n", "k", samples=samples.pairs_of_counting_numbers, memory=FRESH)(
        type(_function.__name__, (), {}))


# --- sums and products ------------------------------------------------------------------------------------------------

@linear(math.fsum, "seq", samples=samples.sequences, arrays=("seq",), memory=FRESH)
class fsum:
    def primal(seq):
        return math.fsum(seq)

    def vjp_seq(dy):
        return dy


@static
def is_array(x):
    return hasattr(x, "dtype")


@static
def only_a_vector(x):
    if x.ndim > 1:
        raise ValueError("math.prod of an array with several axes multiplies its rows",
                         "Say so: np.prod(x, axis=0).")


@general(math.prod, samples=samples.vectors, rewrite=True, sequence=("iterable",), memory=FRESH)
class math_prod:
    def primal(iterable, *, start=1):
        if is_array(iterable):
            only_a_vector(iterable)
            return start * np.prod(iterable)
        total = start
        for factor in iterable:
            total = total * factor
        return total


@general(math.dist, samples=samples.pairs_of_sequences, rewrite=True, arrays=("p", "q"), memory=FRESH)
class dist:
    def primal(p, q):
        gap = in_double(p) - in_double(q)
        return math.sqrt(gap @ gap)
