# SPDX-License-Identifier: Apache-2.0
"""Polynomials as vectors of coefficients, the highest power first."""
import numpy as np

from gradscribe.ast_transform.core.kinds import Array, unknown
from gradscribe.ast_transform.core.memory import ALIAS, FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.batching import only
from gradscribe.ast_transform.rules.linalg import adjugated

# --- helpers that run while transforming ------------------------------------------------------------------------------

@static
def rank(x):
    return np.ndim(x)


@static
def whole_number(n, what, least=0):
    if not isinstance(n, int) or isinstance(n, bool) or n < least:
        raise ValueError(f"{what} is a whole number from {least} on that is known when transforming",
                         "Write a literal.")
    return n


@static
def only_vectors(what, *given):
    if any(np.ndim(a) != 1 for a in given):
        raise ValueError(f"{what} takes polynomials as vectors of coefficients", "Ravel them: p.ravel().")


@static
def all_constants(k, m):
    """The constants of integration, one for each repetition."""
    if k is None:
        return (0,) * m
    if np.ndim(k) == 0 or not isinstance(k, (tuple, list)):
        raise ValueError("np.polyint takes its constants as a list", "Write k=[c], with one for each integration.")
    if len(k) not in (1, m):
        raise ValueError(f"np.polyint takes {m} constants, {len(k)} are given", "Give one for each integration.")
    return None


# --- values -----------------------------------------------------------------------------------------------------------

def powers(x, n):
    """x to the powers n - 1, ..., 0 along a new last axis."""
    if rank(x) == 0:
        return x ** np.arange(n)[::-1]
    return np.expand_dims(x, -1) ** np.arange(n)[::-1]


@general(np.polyval, "p", "x", samples=samples.polynomials_at, expand=True, arrays=("p", "x"), memory=FRESH)
class polyval:
    def primal(p, x):
        return np.polyval(p, x)

    def vjp_p(dy, y, p, x):
        only_vectors("np.polyval", p)
        if rank(x) == 0:
            return dy * powers(x, p.shape[0]).astype(y.dtype)
        if rank(x) == 1:
            return dy @ powers(x, p.shape[0]).astype(y.dtype)
        return np.tensordot(dy, powers(x, p.shape[0]).astype(y.dtype), rank(x))

    def vjp_x(dy, y, p, x):
        only_vectors("np.polyval", p)
        slope = np.polyval(np.polyder(p), x)
        return dy * slope.astype(y.dtype)

    def jvp_p(p_dot, p, x):
        only_vectors("np.polyval", p)
        return np.polyval(p_dot, x)

    def jvp_x(x_dot, y, p, x):
        only_vectors("np.polyval", p)
        slope = np.polyval(np.polyder(p), x)
        return x_dot * slope.astype(y.dtype)

    def batch(p, x, batched):
        only(batched, "x")
        return np.polyval(p, x)


@general(np.vander, samples=samples.vanders, rewrite=True, arrays=("x",), memory=FRESH)
class vander:
    def primal(x, N=None, increasing=False):
        only_vectors("np.vander", x)
        n = x.shape[0] if N is None else N
        if increasing:
            return np.expand_dims(x, 1) ** np.arange(n)
        return powers(x, n)


# --- arithmetic -------------------------------------------------------------------------------------------------------

@general(np.polyadd, "a1", "a2", samples=samples.pairs_of_polynomials, expand=True, arrays=("a1", "a2"), memory=FRESH)
class polyadd:
    def primal(a1, a2):
        return np.polyadd(a1, a2)

    def vjp_a1(dy, a1, a2):
        only_vectors("np.polyadd", a1, a2)
        return dy[dy.shape[0] - a1.shape[0]:]

    def vjp_a2(dy, a1, a2):
        only_vectors("np.polyadd", a1, a2)
        return dy[dy.shape[0] - a2.shape[0]:]

    def jvp_a1(a1_dot, a1, a2):
        only_vectors("np.polyadd", a1, a2)
        return np.polyadd(a1_dot, np.zeros_like(a2))

    def jvp_a2(a2_dot, a1, a2):
        only_vectors("np.polyadd", a1, a2)
        return np.polyadd(np.zeros_like(a1), a2_dot)


@general(np.polysub, samples=samples.pairs_of_polynomials, rewrite=True, arrays=("a1", "a2"), memory=FRESH)
class polysub:
    def primal(a1, a2):
        return np.polyadd(a1, -a2)


@general(np.polymul, samples=samples.pairs_of_polynomials, rewrite=True, arrays=("a1", "a2"), memory=FRESH)
class polymul:
    def primal(a1, a2):
        only_vectors("np.polymul", a1, a2)
        return np.convolve(a1, a2)


@general(np.polyder, samples=samples.derived_polynomials, rewrite=True, arrays=("p",))
class polyder:
    def memory(m=1):
        return ALIAS if m == 0 else FRESH

    def primal(p, m=1):
        only_vectors("np.polyder", p)
        if whole_number(m, "m of np.polyder") == 0:
            return p
        once = p[:-1] * np.arange(p.shape[0] - 1, 0, -1)
        if m == 1:
            return once
        return np.polyder(once, m - 1)


@general(np.polyint, samples=samples.integrated_polynomials, rewrite=True, arrays=("p",))
class polyint:
    def memory(m=1):
        return ALIAS if m == 0 else FRESH

    def primal(p, m=1, k=None):
        only_vectors("np.polyint", p)
        if whole_number(m, "m of np.polyint") == 0:
            return p
        missing = all_constants(k, m)
        constants = missing if missing is not None else k
        end = np.reshape(constants[0], (1,)) if missing is None else np.zeros(1, dtype=(p / 1).dtype)
        once = np.concatenate((p / np.arange(p.shape[0], 0, -1), end))
        if m == 1:
            return once
        return np.polyint(once, m - 1, constants if len(constants) == 1 else constants[1:])


# --- roots and fits ---------------------------------------------------------------------------------------------------

def without_root(y, z):
    """Rows of coefficients of the polynomial y divided by each of its root factors."""
    above = difference(y.shape[0] - 1)
    grown = np.where(above >= 0, z[:, None, None] ** np.maximum(above, 0), 0)
    return grown.astype(y.dtype) @ y[:-1]


def difference(n):
    place = np.arange(n)
    return place[:, None] - place


@static
def facts_of_poly(seq_of_zeros):
    """The fact for complex roots; NumPy returns real coefficients if they are conjugate pairs."""
    dtype = np.dtype(seq_of_zeros.dtype) if seq_of_zeros.kind in "fc" else np.dtype(float)
    return Array(dtype, (seq_of_zeros.dims[0].plus(1),)) if seq_of_zeros.rank else None


@general(np.poly, "seq_of_zeros", samples=samples.sets_of_roots, expand=True, arrays=("seq_of_zeros",), memory=FRESH,
         fact=facts_of_poly, complex_result=True)
class poly:
    def primal(seq_of_zeros):
        return np.poly(seq_of_zeros)

    def vjp_seq_of_zeros(dy, y, seq_of_zeros):
        only_vectors("np.poly", seq_of_zeros)
        return -(without_root(y, seq_of_zeros) @ dy[1:])

    def jvp_seq_of_zeros(seq_of_zeros_dot, y, seq_of_zeros):
        only_vectors("np.poly", seq_of_zeros)
        return np.append(np.zeros_like(y[:1]), -(seq_of_zeros_dot @ without_root(y, seq_of_zeros)))


@static
def complex_roots(p):
    """Complex roots of unknown number: leading zeros, and whether all roots are real, are known only at run time."""
    numbers = p.dtype if p.kind in "fc" else np.float64
    return Array(np.result_type(numbers, np.complex64), (unknown("?roots"),))


@general(np.roots, "p", samples=samples.with_roots, expand=True, fact=complex_roots, complex_result=True,
         arrays=("p",), memory=FRESH, raises=True)
class roots:
    def primal(p):
        return np.roots(p)

    def vjp_p(dy, y, p):
        only_vectors("np.roots", p)
        slope = np.polyval(np.polyder(p), y)
        return -((dy / slope.astype(y.dtype)) @ powers(y, p.shape[0]).astype(y.dtype))

    def jvp_p(p_dot, y, p):
        only_vectors("np.roots", p)
        slope = np.polyval(np.polyder(p), y)
        return -np.polyval(p_dot, y) / slope.astype(y.dtype)


@static
def plain_fit(rcond, full, cov):
    if full or cov:
        raise ValueError("np.polyfit with full= or cov= has no derivative rule",
                         "Take the coefficients, and compute the rest from them.")
    if rcond is not None:
        raise ValueError("np.polyfit with rcond= has no derivative rule: it drops directions as numbers say",
                         "Leave it out, or lower the degree.")


@general(np.polyfit, samples=samples.fits, rewrite=True, arrays=("x", "y", "w"), memory=FRESH)
class polyfit:
    def primal(x, y, deg, rcond=None, full=False, w=None, cov=False):
        plain_fit(rcond, full, cov)
        only_vectors("np.polyfit", x)
        columns = powers(x, whole_number(deg, "deg of np.polyfit") + 1)
        if w is None:
            q, r = np.linalg.qr(columns)
            return np.linalg.solve(r, adjugated(q) @ y)
        q, r = np.linalg.qr(columns * w[:, None])
        if y.ndim == 1:
            return np.linalg.solve(r, adjugated(q) @ (w * y))
        return np.linalg.solve(r, adjugated(q) @ (w[:, None] * y))
