# SPDX-License-Identifier: Apache-2.0
"""Rules for functions of scipy.special along axes or with two results, loaded if the program has imported it."""
import numpy as np
from scipy import special

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, general, static
from gradscribe.ast_transform.rules import special_axes_samples as samples
from gradscribe.ast_transform.rules.batching import (
    by_example,
    everything,
    over_several,
    reduced,
    rows,
    same_call,
    shifted,
)
from gradscribe.ast_transform.rules.elementwise import is_complex
from gradscribe.ast_transform.rules.reductions import restore

# --- adjoints that may be literal numbers -----------------------------------------------------------------------------

@static
def is_zero(dy):
    return isinstance(dy, (int, float)) and dy == 0


def times(dy, t):
    if is_zero(dy):
        return 0
    return dy * t


def both(s, t):
    """The sum of two contributions, without those that are a literal zero."""
    if is_zero(s):
        return t
    if is_zero(t):
        return s
    return s + t


def spread(dy, x, axis, keepdims):
    if np.ndim(dy) == 0:
        return dy
    return restore(dy, x, axis, keepdims)


# --- exponentials along axes -----------------------------------------------------------------------------------------

@static
def refuse_sign(return_sign, *numbers):
    if return_sign and any(is_complex(x) for x in numbers if x is not None):
        raise ValueError("scipy.special.logsumexp of complex numbers with return_sign=True has no derivative rule",
                         "Leave return_sign out.")


def logarithm(y, return_sign):
    if return_sign:
        return y[0]
    return y


def wider(a, b):
    """The operand with the axes of both."""
    if b is None:
        return a
    if np.ndim(b) > np.ndim(a):
        return b
    return a


def weights(y, a, axis, b, keepdims, return_sign):
    """The share of each exponential in the sum, without its factor b."""
    t = np.exp(a - restore(logarithm(y, return_sign), wider(a, b), axis, keepdims))
    if return_sign:
        return t * restore(y[1], wider(a, b), axis, keepdims)
    return t


def shares(y, a, axis, b, keepdims, return_sign):
    if b is None:
        return weights(y, a, axis, b, keepdims, return_sign)
    return b * weights(y, a, axis, b, keepdims, return_sign)


def tangent_of(t, y, return_sign):
    if return_sign:
        return t, np.zeros_like(y[1])
    return t


@general(special.logsumexp, "a", "b", samples=samples.log_sums, unbroadcast="own", full_rank="or number", memory=FRESH,
         raises=True)
class logsumexp:
    def primal(a, axis=None, b=None, keepdims=False, return_sign=False):
        return special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)

    def vjp_a(dy, y, a, axis=None, b=None, keepdims=False, return_sign=False):
        refuse_sign(return_sign, a, b)
        t = spread(logarithm(dy, return_sign), wider(a, b), axis, keepdims)
        return times(t, shares(y, a, axis, b, keepdims, return_sign))

    def vjp_b(dy, y, a, axis=None, b=None, keepdims=False, return_sign=False):
        refuse_sign(return_sign, a, b)
        t = spread(logarithm(dy, return_sign), wider(a, b), axis, keepdims)
        return times(t, weights(y, a, axis, b, keepdims, return_sign))

    def jvp_a(a_dot, y, a, axis=None, b=None, keepdims=False, return_sign=False):
        refuse_sign(return_sign, a, b)
        t = np.sum(a_dot * shares(y, a, axis, b, keepdims, return_sign), axis=axis, keepdims=keepdims)
        return tangent_of(t, y, return_sign)

    def jvp_b(b_dot, y, a, axis=None, b=None, keepdims=False, return_sign=False):
        refuse_sign(return_sign, a, b)
        t = np.sum(b_dot * weights(y, a, axis, b, keepdims, return_sign), axis=axis, keepdims=keepdims)
        return tangent_of(t, y, return_sign)

    def batch(a, batched, axis=None, keepdims=False):
        if over_several(axis):
            if keepdims or not everything(axis, a.ndim):
                by_example("several axes, which SciPy cannot take of no example")
            return special.logsumexp(rows(a), axis=1)
        return special.logsumexp(a, axis=shifted(axis), keepdims=keepdims)


def batched_weights(function):
    def part(x, batched, axis=None):
        return function(x, axis=reduced(axis, x.ndim))
    return part


@general(special.softmax, samples=samples.along_axes, memory=FRESH, raises=True)
class softmax:
    def primal(x, axis=None):
        return special.softmax(x, axis=axis)

    def vjp_x(dy, y, axis=None):
        return y * (dy - np.sum(y * dy, axis=axis, keepdims=True))

    def jvp_x(x_dot, y, axis=None):
        return y * (x_dot - np.sum(y * x_dot, axis=axis, keepdims=True))

    batch = batched_weights(special.softmax)


@general(special.log_softmax, samples=samples.along_axes, memory=FRESH, raises=True)
class log_softmax:
    def primal(x, axis=None):
        return special.log_softmax(x, axis=axis)

    def vjp_x(dy, y, axis=None):
        return dy - np.exp(y) * np.sum(dy, axis=axis, keepdims=True)

    def jvp_x(x_dot, y, axis=None):
        return x_dot - np.sum(np.exp(y) * x_dot, axis=axis, keepdims=True)

    batch = batched_weights(special.log_softmax)


# --- two results -----------------------------------------------------------------------------------------------------

def sine_over(x):
    """sin(x) / x, also at 0."""
    if is_complex(x):
        return np.sin(x) / x
    return np.sinc(x / np.pi)


@general(special.sici, samples=samples.positives, full_rank="or number")
class sici:
    def vjp_x(dy, x):
        return both(times(dy[0], sine_over(x)), times(dy[1], np.cos(x) / x))

    def jvp_x(x_dot, x):
        return x_dot * sine_over(x), x_dot * (np.cos(x) / x)

    batch = same_call(special.sici)


@general(special.fresnel, samples=samples.analytic, full_rank="or number")
class fresnel:
    def vjp_x(dy, x):
        return both(times(dy[0], np.sin(np.pi / 2 * x * x)), times(dy[1], np.cos(np.pi / 2 * x * x)))

    def jvp_x(x_dot, x):
        return x_dot * np.sin(np.pi / 2 * x * x), x_dot * np.cos(np.pi / 2 * x * x)

    batch = same_call(special.fresnel)


# --- tables ----------------------------------------------------------------------------------------------------------

@constant(special.bernoulli, samples=samples.counts, memory=FRESH)
class bernoulli:
    def primal(n):
        return special.bernoulli(n)
