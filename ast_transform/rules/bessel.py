# SPDX-License-Identifier: Apache-2.0
"""scipy.special, elementwise: exponential integrals, Bessel and hypergeometric functions, spherical harmonics.

The derivative of a Bessel function is a combination of functions of neighbouring order, without a quotient, which
would fail at 0.
"""
import math

import numpy as np
from scipy import special

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import elementwise, static
from gradscribe.ast_transform.rules import special_samples as samples
from gradscribe.ast_transform.rules.elementwise import is_number
from gradscribe.ast_transform.rules.special_refusals import no_derivative, only_real

# --- helpers ---------------------------------------------------------------------------------------------------------

@static
def is_unsigned(x):
    return np.dtype(getattr(x, "dtype", type(x))).kind == "u"


@static
def root(number):
    return math.sqrt(number)


def below(v):
    """v - 1, the previous order."""
    if is_unsigned(v):              # 0 - 1 would be the largest of them
        return v - 1.0
    return v - 1


# --- integrals of exponentials ---------------------------------------------------------------------------------------

@elementwise(special.exp1, samples=samples.analytic_positives, special=[(0.0, -np.inf)])
class exp1:
    def partial_x(x):
        return -np.exp(-x) / x


@elementwise(special.expi, samples=samples.analytic_numbers)
class expi:
    def partial_x(x):
        return np.exp(x) / x


@elementwise(special.expn, "n", "x", samples=samples.exponents)
class expn:
    def partial_n():
        return no_derivative("expn", "the order n")

    def partial_x(y, n, x):
        if is_number(n):
            if n >= 1:
                return -special.expn(n - 1, x)
            return -(np.exp(-x) + y) / x
        return -np.where(n == 0, (np.exp(-x) + y) / x, special.expn(np.maximum(n, 1) - 1, x))


@elementwise(special.spence, samples=samples.analytic_positives, special=[
    (1.0, -1.0), (0.0, -np.inf), (1.0099, -0.9950824293307255), (0.9901, -1.0049829145119276)])
class spence:
    def partial_x(x):               # log(x) / (1 - x), at 1 too
        gap = 1 - x
        near = np.abs(gap) < 0.01
        t = np.where(near, gap, 0)
        series = -1 - t * (1 / 2 + t * (1 / 3 + t * (1 / 4 + t * (1 / 5 + t * (1 / 6 + t * (1 / 7 + t / 8))))))
        return np.where(near, series, np.log(x) / np.where(near, 1, gap))

    def taylor_x(x):                # the same by more terms: as many derivatives of this are right, too
        gap = 1 - x
        near = np.abs(gap) < 0.3
        t = np.where(near, gap, 0)
        series = 0.0
        for n in range(60, 0, -1):
            series = series * t - 1 / n
        return np.where(near, series, np.log(x) / np.where(near, 1, gap))


# --- Bessel functions ------------------------------------------------------------------------------------------------

@elementwise(special.j0, samples=samples.reals)
class j0:
    def partial_x(x):
        return -special.j1(x)


@elementwise(special.j1, samples=samples.reals, special=[(0.0, 0.5)])
class j1:
    def partial_x(x):
        return (special.j0(x) - special.jv(2, x)) / 2


@elementwise(special.jv, samples=samples.analytic_orders)
class jv:
    def partial_v():
        return no_derivative("jv", "the order v")

    def partial_x(v, x):
        return (special.jv(below(v), x) - special.jv(v + 1, x)) / 2


@elementwise(special.y0, samples=samples.positives)
class y0:
    def partial_x(x):
        return -special.y1(x)


@elementwise(special.y1, samples=samples.positives)
class y1:
    def partial_x(x):
        return (special.y0(x) - special.yv(2, x)) / 2


@elementwise(special.yn, samples=samples.whole_orders)
class yn:
    def partial_n():
        return no_derivative("yn", "the order n")

    def partial_x(n, x):
        return (special.yn(below(n), x) - special.yn(n + 1, x)) / 2


@elementwise(special.yv, samples=samples.analytic_orders)
class yv:
    def partial_v():
        return no_derivative("yv", "the order v")

    def partial_x(v, x):
        return (special.yv(below(v), x) - special.yv(v + 1, x)) / 2


@elementwise(special.i0, samples=samples.reals)
class i0:
    def partial_x(x):
        return special.i1(x)


@elementwise(special.i0e, samples=samples.reals, special=[(0.0, 0.0)])
class i0e:
    def partial_x(y, x):
        return special.i1e(x) - np.sign(x) * y


@elementwise(special.i1, samples=samples.reals, special=[(0.0, 0.5)])
class i1:
    def partial_x(x):
        return (special.i0(x) + special.iv(2, x)) / 2


@elementwise(special.i1e, samples=samples.reals, special=[(0.0, 0.5)])
class i1e:
    def partial_x(y, x):
        return (special.i0e(x) + special.ive(2, x)) / 2 - np.sign(x) * y


@elementwise(special.iv, samples=samples.analytic_orders)
class iv:
    def partial_v():
        return no_derivative("iv", "the order v")

    def partial_x(v, x):
        return (special.iv(below(v), x) + special.iv(v + 1, x)) / 2


@elementwise(special.ive, samples=samples.orders)
class ive:
    def partial_v():
        return no_derivative("ive", "the order v")

    def partial_x(y, v, x):
        only_real(x, "ive")
        return (special.ive(below(v), x) + special.ive(v + 1, x)) / 2 - np.sign(x) * y


@elementwise(special.k0, samples=samples.positives)
class k0:
    def partial_x(x):
        return -special.k1(x)


@elementwise(special.k1, samples=samples.positives)
class k1:
    def partial_x(x):
        return -(special.k0(x) + special.kv(2, x)) / 2


@elementwise(special.kv, samples=samples.analytic_orders)
class kv:
    def partial_v():
        return no_derivative("kv", "the order v")

    def partial_x(v, x):
        return -(special.kv(below(v), x) + special.kv(v + 1, x)) / 2


# --- hypergeometric functions, spherical harmonics -------------------------------------------------------------------

@elementwise(special.hyp1f1, samples=samples.confluent)
class hyp1f1:
    def partial_a():
        return no_derivative("hyp1f1", "the parameter a")

    def partial_b():
        return no_derivative("hyp1f1", "the parameter b")

    def partial_x(a, b, x):
        return a / b * special.hyp1f1(a + 1, b + 1, x)


@elementwise(special.hyp2f1, samples=samples.hypergeometric)
class hyp2f1:
    def partial_a():
        return no_derivative("hyp2f1", "the parameter a")

    def partial_b():
        return no_derivative("hyp2f1", "the parameter b")

    def partial_c():
        return no_derivative("hyp2f1", "the parameter c")

    def partial_x(a, b, c, x):
        return a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, x)


@elementwise(special.sph_harm_y, "theta", "phi", samples=samples.harmonics, memory=FRESH, cell=True)
class sph_harm_y:
    def primal(n, m, theta, phi):
        return special.sph_harm_y(n, m, theta, phi)

    def partial_theta(n, m, theta, phi):    # by the ladder operators, which have no pole where the axis is
        up = ladder(n, m) * np.exp(-1j * phi) * special.sph_harm_y(n, m + 1, theta, phi)
        down = ladder(n, -m) * np.exp(1j * phi) * special.sph_harm_y(n, m - 1, theta, phi)
        return (up - down) / 2

    def partial_phi(y, m):
        return 1j * m * y


def ladder(n, m):
    if is_number(n) and is_number(m):
        return root((n - m) * (n + m + 1))
    return np.sqrt((n - m) * (n + m + 1))
