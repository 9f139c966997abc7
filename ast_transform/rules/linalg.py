# SPDX-License-Identifier: Apache-2.0
"""Linear algebra.  Matrices are on the last two axes; the axes before them are stacks.

Source: M. B. Giles, Collected matrix derivative results for forward and reverse mode (2008).
"""
import numpy as np

from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.memory import ALIAS, FRESH
from gradscribe.ast_transform.core.rule import general, operation, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules import linalg_samples
from gradscribe.ast_transform.rules.batching import by_example, same_call
from gradscribe.ast_transform.rules.products import transposed
from gradscribe.ast_transform.source.diagnose import KNOWN
from gradscribe.runtime.matrices import (
    cofactors,
    cofactors_along,
    determined_by,
    factors,
    inverted_by,
    log_determined_by,
    solved_across,
    solved_by,
    solved_by_triangle,
)


def square(b=None, **others):
    """Matrices are square, with as many rows as the second operand, if there is one."""
    a = next(iter(others.values()))
    if isinstance(a, Array) and a.rank >= 2:
        yield a.dims[-1], a.dims[-2]
        if isinstance(b, Array) and b.rank:
            yield a.dims[-1], b.dims[0 if b.rank == 1 else -2]


def trace_of(m):
    if m.ndim == 2:
        return np.trace(m)
    return np.trace(m, axis1=-2, axis2=-1)


def on_matrices(s, a):
    """One number for each matrix of a stack, with axes added so that it broadcasts with the stack."""
    if a.ndim == 2:
        return s
    return s[..., None, None]


def conjugated(m):
    """The conjugate of m, which is m itself if it is real."""
    if m.dtype.kind == "c":
        return np.conj(m)
    return m


def adjugated(m):
    """The conjugate transpose."""
    return conjugated(transposed(m))


def folded(m):
    """The lower triangle of a Hermitian m, with the entries below the diagonal counted twice."""
    return np.tril(m) + np.tril(m, -1)


def lower_half(m):
    """The lower triangle with half of the diagonal."""
    return folded(m) / 2


def from_lower(m):
    """The Hermitian matrix with this lower triangle; only the real part of the diagonal is read."""
    if m.dtype.kind == "c":
        half = lower_half(m)
        return half + adjugated(half)
    return np.tril(m) + transposed(np.tril(m, -1))


def from_triangle(m, lower):
    """The Hermitian matrix with this triangle; the other one is not read."""
    if lower:
        return from_lower(m)
    return from_lower(adjugated(m))


def onto_triangle(m, lower):
    """The adjoint of the triangle that is read, from the Hermitian adjoint m of the full matrix."""
    if lower:
        return folded(m)
    return adjugated(folded(m))


def diagonal_of(m):
    """The real part of the diagonal."""
    if m.dtype.kind == "c":
        return np.real(np.diagonal(m, axis1=-2, axis2=-1))
    return np.diagonal(m, axis1=-2, axis2=-1)


def scaled_columns(m, s):
    """m @ diag(s)"""
    if m.ndim == 2:
        return m * s
    return m * s[..., None, :]


# --- inverse, solution, determinant -----------------------------------------------------------------------------------

@static
def like_the_matrices(a, *others):
    """The fact of square matrices, or of the operand stack with the most axes, if LAPACK takes their dtype without
    conversion.
    """
    given = (a, *others)
    dtype = np.result_type(*(np.dtype(m.dtype) for m in given))
    longest = max(given, key=lambda m: m.rank)
    shape, shapes = _normal(longest), map(_normal, given)
    return Array(dtype, longest.dims) if dtype.char in "fdFD" and all(
        len(s) >= 2 and s == shape[len(shape) - len(s):] for s in shapes) else None


def _normal(array):
    return tuple(d.normal() for d in array.dims)


operation(factors, solved_by, solved_across, solved_by_triangle, inverted_by, determined_by, log_determined_by,
          memory=FRESH)


@general(np.linalg.inv, "a", samples=samples.regular, lengths=square, fact=like_the_matrices, memory=FRESH,
         raises=True, by_factors=(inverted_by, None))
class inv:
    def vjp_a(dy, y):
        return -(transposed(y) @ dy @ transposed(y))

    def jvp_a(a_dot, y):
        return -(y @ a_dot @ y)

    batch = same_call(np.linalg.inv)


@general(np.linalg.solve, "a", "b", samples=samples.systems, unbroadcast="own", lengths=square, memory=FRESH,
         raises=True, by_factors=(solved_by, solved_across), by_triangle=solved_by_triangle, solves=("b", "a"))
class solve:
    def vjp_a(dy, y, a, b):
        if a.ndim == 2 and b.ndim == 1:
            return -np.outer(np.linalg.solve(a.T, dy), y)
        if b.ndim == 1:                 # (..., m, m) with (m,)
            return -(np.linalg.solve(transposed(a), dy[..., None]) * y[..., None, :])
        return -(np.linalg.solve(transposed(a), dy) @ transposed(y))

    def vjp_b(dy, a, b):
        if a.ndim > 2 and b.ndim == 1:
            return np.linalg.solve(transposed(a), dy[..., None])[..., 0]
        return np.linalg.solve(transposed(a), dy)

    def jvp_a(a_dot, y, a, b):
        if a.ndim > 2 and b.ndim == 1:
            return -np.linalg.solve(a, a_dot @ y[..., None])[..., 0]
        return -np.linalg.solve(a, a_dot @ y)

    def jvp_b(b_dot, a):
        return np.linalg.solve(a, b_dot)

    def times(y, a, b):
        if a.ndim > 2 and b.ndim == 1:
            return (a @ y[..., None])[..., 0]
        return a @ y

    def batch(a, b, batched):
        if "b" not in batched:
            if b.ndim > 2 or a.ndim > 3:
                by_example("more than two axes")
            return np.linalg.solve(a, b)
        if "a" not in batched:
            if b.ndim > 3 or a.ndim > 2:
                by_example("more than two axes")
            if b.ndim == 2:
                return np.transpose(np.linalg.solve(a, np.transpose(b)))
            return np.linalg.solve(a, b)
        if b.ndim > 3 or a.ndim > 3:
            by_example("more than two axes")
        if b.ndim == 2:
            return np.linalg.solve(a, b[:, :, None])[:, :, 0]
        return np.linalg.solve(a, b)


@general(np.linalg.det, "a", samples=samples.regular_and_singular, lengths=square, memory=FRESH,
         raises=True, by_factors=(determined_by, determined_by))
class det:
    def vjp_a(dy, a):
        return on_matrices(dy, a) * cofactors(a)

    def jvp_a(a_dot, a):
        return np.sum(cofactors(a) * a_dot, axis=(-2, -1))

    batch = same_call(np.linalg.det)


@general(cofactors, "a", samples=samples.regular, lengths=square, fact=like_the_matrices, memory=FRESH)
class cofactors_:
    def vjp_a(dy, a):
        return cofactors_along(a, dy)

    def jvp_a(a_dot, a):
        return cofactors_along(a, a_dot)

    batch = same_call(cofactors)


@general(cofactors_along, "a", "b", samples=samples.two_regular, lengths=square, fact=like_the_matrices, memory=FRESH,
         raises=True)
class cofactors_along_:
    def vjp_a(dy, a, b):
        return third_of_det(np.linalg.det(a), np.linalg.inv(a), b, dy)

    def vjp_b(dy, a):
        return cofactors_along(a, dy)

    def jvp_a(a_dot, a, b):
        return third_of_det(np.linalg.det(a), np.linalg.inv(a), b, a_dot)

    def jvp_b(b_dot, a):
        return cofactors_along(a, b_dot)

    def batch(a, b, batched):
        return cofactors_along(a, b)


def third_of_det(det, inverse, b, c):
    """The third derivative of det along b and c, for a regular matrix."""
    p, q = inverse @ b, inverse @ c
    both = on_matrices(trace_of(p) * trace_of(q) - trace_of(p @ q), b) * inverse
    one = on_matrices(trace_of(p), b) * (q @ inverse) + on_matrices(trace_of(q), b) * (p @ inverse)
    return on_matrices(det, b) * transposed(both - one + p @ q @ inverse + q @ p @ inverse)


@general(np.linalg.slogdet, "a", samples=samples.regular, lengths=square, memory=FRESH, raises=True,
         by_factors=(log_determined_by, log_determined_by))
class slogdet:
    def vjp_a(dy, y, a):
        if a.dtype.kind == "c":         # the sign turns by the imaginary part of what the logarithm grows by
            return on_matrices(dy[1] + 1j * np.imag(dy[0] * y[0]), a) * transposed(np.linalg.inv(a))
        return on_matrices(dy[1], a) * transposed(np.linalg.inv(a))

    def jvp_a(a_dot, y, a):
        growth = trace_of(np.linalg.solve(a, a_dot))
        if a.dtype.kind == "c":
            return 1j * np.imag(growth) * y[0], np.real(growth)
        return np.zeros_like(y[0]), growth

    batch = same_call(np.linalg.slogdet)


@general(np.linalg.matrix_power, samples=samples.powers, rewrite=True, lengths=square, raises=True)
class matrix_power:
    def memory(n):
        return ALIAS if n == 1 else FRESH

    def primal(a, n):
        whole_power(n)
        if n < 0:
            return power(np.linalg.inv(a), -n)
        if n == 0:
            return np.zeros_like(a) + np.eye(a.shape[-1], dtype=a.dtype)
        return power(a, n)


@static
def whole_power(n):
    if not isinstance(n, int):
        raise ValueError("np.linalg.matrix_power needs an integer that is known when transforming", KNOWN)


def power(a, n):
    """The n-th power, by repeated squaring."""
    if n == 1:
        return a
    half = power(a, n // 2)
    if n % 2 == 0:
        return half @ half
    return half @ half @ a


def as_read(m, hermitian):
    """The full matrix, or its tangent: with hermitian=True NumPy reads only the lower triangle."""
    if hermitian:
        return from_lower(m)
    return m


def as_given(dm, hermitian):
    """The adjoint of the given matrix from the adjoint of the full matrix."""
    if hermitian:
        return lower_half(dm + adjugated(dm))
    return dm


@general(np.linalg.pinv, "a", samples=linalg_samples.full_ranks, memory=FRESH, raises=True)
class pinv:
    """The derivative along matrices of the same rank: the pseudo-inverse is discontinuous where the rank changes."""
    def primal(a, rcond=None, hermitian=False):
        return np.linalg.pinv(a, rcond, hermitian)

    def vjp_a(dy, y, a, rcond=None, hermitian=False):
        yt = transposed(y)
        dyt = transposed(dy)
        yh = adjugated(y)
        left = dyt @ y @ yh
        right = yh @ y @ dyt
        m = as_read(a, hermitian)
        return as_given(conjugated(left - m @ (y @ left) + right - (right @ y) @ m) - yt @ dy @ yt, hermitian)

    def jvp_a(a_dot, y, a, rcond=None, hermitian=False):
        moved = as_read(a_dot, hermitian)
        yh = adjugated(y)
        movedh = adjugated(moved)
        left = y @ yh @ movedh
        right = movedh @ yh @ y
        m = as_read(a, hermitian)
        return left - (left @ m) @ y + right - y @ (m @ right) - y @ moved @ y

    batch = same_call(np.linalg.pinv)


@general(np.linalg.multi_dot, samples=samples.chains, rewrite=True, sequence=("arrays",), memory=FRESH, raises=True)
class multi_dot:
    def primal(arrays):
        return chain(arrays)


def chain(arrays):
    if len(arrays) == 1:
        return arrays[0]
    return chain(arrays[:-1]) @ arrays[-1]
