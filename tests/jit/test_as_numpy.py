# SPDX-License-Identifier: Apache-2.0
"""Compiled values and dtypes are those of plain Python where a text, a dtype or an order could make them others."""
import math

import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled

BYTES, SHORT = np.array([3, 1, 250], np.uint8), np.array([100000, -2**31, 7], np.int32)


def outlives_its_pass(x, m):
    z, s = np.empty(len(x)), 0.0
    for t in range(m):
        for i in range(len(x)):
            if t == 0:
                z[i] = x[i] * 2
            s += z[i] * (t + 1)
    return s


def outlives_a_loop_without_passes(x, m):
    z, s = np.empty(len(x)), 0.0
    for t in range(2):
        for i in range(len(x)):
            if x[i] > 3:
                for j in range(m - t):
                    z[i] = x[i] + j
            else:
                z[i] = 1.0
            s += z[i]
    return s


def filled_in_both_arms(x):
    z, s = np.empty(len(x)), 0.0
    for i in range(len(x)):
        if x[i] > 3:
            z[i] = x[i]
        else:
            z[i] = -x[i]
        s += z[i] * z[i] * x[i]
    return s


def signs(x):
    s = 0.0
    for k in range(4):
        s += (-1.0) ** k * x
    return s + (-2.0) ** int(x) + np.power(-2.0, int(x)) + (-x) ** 3


def index_by_itself(p):
    q = p.copy()
    q[q] = np.arange(len(q)) * 10
    return q


def index_by_what_is_written(x):
    y = x.copy()
    np.add.at(y, y.astype(np.int64), 1.0)
    y[y.astype(np.int64) % 4] += 2.0
    y[y.astype(np.int64) % 4] = np.array([7.0, 8.0, 9.0, 2.0])
    return y


def beyond_bytes(x, n):
    return (x < 300, x > -1, x == 300, x != 300, 300 > x, -1 < x, np.equal(x, 300), x <= 255, x >= 0, x < 250, x < n,
            x == n)


PERMUTED = np.array([3, 1, 0, 2, 7, 5, 4, 6, 11, 8, 9, 10])
CASES = {
    "outlives": (outlives_its_pass, np.arange(20.0), 3),
    "outlives_a_loop": (outlives_a_loop_without_passes, np.arange(20.0), 1),
    "both_arms": (filled_in_both_arms, np.arange(20.0)),
    "signs": (signs, 2.0),
    "power_of_math": (lambda k: math.pow(-2.0, k), 2.0),
    "power_of_inf": (lambda x: (x**np.inf, x**np.nan), np.array([0.5, 2.0])),
    "einsum_below": (lambda x, y: 1.0 / np.einsum("i,j->ij", x, y), np.array([1.0, 2.0]), np.array([3.0, 4.0])),
    "index_by_itself": (index_by_itself, np.array([2, 0, 3, 1])),
    "index_by_itself_long": (index_by_itself, PERMUTED),
    "index_by_what_is_written": (index_by_what_is_written, np.array([1.0, 0.0, 3.0, 2.0])),
    "beyond_bytes": (beyond_bytes, BYTES, 300),
    "beyond_32_bits": (lambda x: (x < 2**40, x == 2**32 + 1, x > -(2**40)), np.array([1, 2], np.int32)),
    "with_and_without_a_sign": (lambda a, b: (a == b, a < b, a > b, b < a, b >= a),
                                np.array([2**53 + 1, 5, 2**63 + 1], np.uint64), np.array([2**53, -1, 7])),
    "searched_among_whole_numbers": (lambda a: np.searchsorted(a, 2.5), np.array([1, 2, 3])),
    "searched_among_narrow_ones": (lambda a: np.searchsorted(a, 0.1, side="right"), np.array([0.1, 0.2], np.float32)),
    "narrow_differences": (lambda x: np.diff(x) / 2, BYTES),
    "narrow_sums": (lambda x: (np.diff(x) / 1.0, np.einsum("i,i->", x, x) * 1.0, np.einsum("i,i->i", x, x) / 2,
                               np.polyval(x, x) / 1.0), SHORT),
    "bytes": (lambda x: (np.einsum("i,i->", x, x) * 1.0, np.polyval(x, x) / 2), np.array([3, 200, 250], np.uint8)),
    "whole_reciprocals": (np.reciprocal, np.array([-2, 2, 1, -1])),
    "a_sign_by_casting": (lambda x: x.astype(np.int64) < 0, np.array([2**64 - 1], np.uint64)),
    "rounded_in_single": (lambda x: (np.round(x, 2), np.round(x, -1)), np.array([2.675, 25.0, 14.9], np.float32)),
    "parts_of_infinities": (np.modf, np.array([np.inf, -np.inf, -1.0, -0.0, 1.5, -2.5, np.nan])),
    "remainders": (lambda x: (math.remainder(x, math.inf), math.remainder(1e20 + x * 0, 3.0), math.remainder(x, 3.0),
                              math.remainder(-x, 3.0), math.remainder(x, 2.0), math.remainder(x + 2, -2.0)), 5.0),
    "exact_sum_of_inf": (lambda x: math.fsum(x), np.array([np.inf, 1.0])),
    "exact_sum": (lambda x: math.fsum(x), np.array([1e16, 1.0, -1e16])),
    "large_median": (lambda x: (np.median(x), np.median(x[:2])), np.array([1.5e308, 1.0, 2.0])),
    "norm_of_bytes": (lambda x: (np.linalg.norm(x, 1), np.linalg.norm(x, np.inf)), np.array([-128, 3], np.int8)),
    "far_shifts": (lambda x: (x << 64, x >> 64, x << 3, x >> 1), np.array([1, -1])),
    "shifts_by_arrays": (lambda x, n: (x << n, x >> n), np.array([1, -1, 5]), np.array([64, 70, 2])),
    "shifts_without_a_sign": (lambda x, n: (x << n, x >> n), np.array([200, 255, 3], np.uint8),
                              np.array([8, 3, 1], np.uint8)),
    "shifts_of_the_largest": (lambda x, n: x >> n, np.array([2**63 + 5], np.uint64), np.array([64], np.uint64)),
    "whole_numbers_to_tens": (lambda n: (round(n, -1), round(n, -2), round(n, 1), round(-n, -1)), 1250),
    "between_infinities": (lambda x: np.interp(x, np.array([1.0, 2.0]), np.array([np.inf, np.inf])), np.array([1.5])),
    "far_shifts_without_a_sign": (lambda x, n: (x << n, x >> n, np.fmod(x, x // 3 + 2), np.lcm(x, x), x ** 3),
                                  np.array([2**64 - 3, 3**40], np.uint64), np.array([1, 7], np.uint64)),
    "divisors_of_the_least": (lambda a, b: (np.gcd(a, b), np.lcm(a // 64, b // 64)), np.array([-7, -128], np.int8),
                              np.array([-128, -128], np.int8)),
    "powers_below_zero": (lambda x: (x ** -2, np.power(x, -3), x ** -2.0, x ** -1), np.array([0.0, 2.0, -3.0])),
    "narrow_powers_below_zero": (lambda x: (x ** -2, x ** -3), np.array([0.0, 2.0], np.float32)),
    "quantiles_beside_infinities": (lambda x: (np.percentile(x, 50), np.percentile(x, 75), np.quantile(x, 1.0)),
                                    np.array([3, -np.inf, 1, np.inf, 2.0])),
    "quantiles_from_the_nearer_end": (lambda x: np.quantile(x, np.array([0.0, 0.1, 0.3, 0.5, 0.77, 1.0])),
                                      np.random.default_rng(0).standard_normal(17)),
    "inverse_of_whole_numbers": (lambda a: (np.linalg.inv(a), np.linalg.solve(a, a[0] / 1)),
                                 np.array([[2, 1], [1, 3]])),
    "running_sums_without_a_dtype": (lambda x, n: (np.add.accumulate(x), np.cumulative_prod(x), np.nancumsum(x),
                                                   np.cumsum(n, dtype=None), np.mean(x, dtype=None)),
                                     np.array([1.5, 2.5], np.float32), np.array([2**53 + 1, 2])),
    "one_point": (lambda x: np.interp(x, np.array([1.0]), np.array([5.0])), np.array([np.nan])),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_dtypes(name):
    f, *args = CASES[name]
    with np.errstate(all="ignore"):
        wanted = f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        found = gs.jit(f)(*args)
    pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
    for want, got in pairs:
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=0)
        assert np.array_equal(np.signbit(np.real(got)), np.signbit(np.real(want))) or np.isnan(want).any()
