# SPDX-License-Identifier: Apache-2.0
"""Python's round gives the decimal number nearest to a float, NumPy's rounds a multiple of it: each is what it is."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.runtime.compiled import Unsaid
from gradscribe.runtime.numeric import round_decimal


def test_round_decimal_is_that_of_python():
    rng = np.random.default_rng(0)
    for digits in (0, 1, 2, 3, 5, 9, 15, 22, -1, -2, -3, -15):
        near = 10.0 ** -digits * (rng.integers(-10**6, 10**6, 300) + 0.5)
        numbers = [*near, *rng.uniform(-10, 10, 200), *np.ldexp(rng.integers(-10**6, 10**6, 200) * 1.0, -7),
                   *10.0 ** rng.uniform(-10, 17, 200), 0.0, -0.0, np.inf, 2.675, 0.35, -0.05, 4503599627370497.5]
        for x in map(float, numbers):
            if digits < 0 and 2.0**53 <= abs(x) < np.inf:
                with pytest.raises(Unsaid):
                    round_decimal(x, digits)
                continue
            got, want = round_decimal(x, digits), round(x, digits)
            assert got == want and np.signbit(got) == np.signbit(want), (x, digits, got, want)
    assert np.isnan(round_decimal(np.nan, 2))


def of_a_number(p):
    return round(p, 2) * p


def of_an_entry(x):
    return round(float(x[0]), 2) * x[1]


def of_numpy(x):
    return round(x[0], 2) * x[1] + np.round(x[1], 1) * x[0]


@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_programs(wrap):
    for p in (2.675, 0.145, 1.005, -2.675):
        assert wrap(of_a_number)(p) == of_a_number(p) and wrap(gs.grad(of_a_number))(p) == round(p, 2)
        x = np.array([p, 0.35])
        assert wrap(of_an_entry)(x) == of_an_entry(x) and wrap(of_numpy)(x) == of_numpy(x)
        assert wrap(gs.grad(of_an_entry))(x).tolist() == [0, round(p, 2)]
        batch = np.array([x, x + 0.01])
        for f in (of_an_entry, of_numpy):
            assert wrap(gs.vmap(f))(batch).tolist() == [f(row) for row in batch]
    assert wrap(gs.value_and_grad(of_an_entry))(x.astype(np.float32))[0].dtype == np.float32


def test_digits_beyond_what_a_float_holds():
    def f(x):
        return round(float(x), -23) + round(float(x), 25) * x + round(float(x) + 2.0**54, -1)

    assert gs.jit(f)(1.5) == f(1.5) and gs.jit(gs.grad(f))(1.5) == 1.5
