# SPDX-License-Identifier: Apache-2.0
"""Names in keywords of a call (`rng.normal(loc=m, scale=s)`) are read like those in its arguments."""
import numpy as np

import gradscribe as gs
from gradscribe.codegen.loops.form import names_in, renamed
from gradscribe.codegen.loops.trees import block_of


def test_names_of_keywords():
    (s,) = block_of("y = rng.normal(loc=m, scale=abs(s) + 1, size=(n, 2))")
    assert names_in(s.value) == {"rng", "m", "s", "n"}
    (other,) = block_of("y = rng.normal(loc=k, scale=abs(s) + 1, size=(n, 2))")
    assert renamed(s.value, {"m": "k"}) == other.value


def test_what_draws_are_made_of_is_set_again():
    def f(s):
        rng = np.random.default_rng(3)
        total = 0.0
        for _ in range(4):
            s = rng.normal(loc=s, scale=abs(s) + 1.0)
            total += s
            s = s * 0.5
            total += rng.normal(loc=0.0, scale=s * s + 0.1)
        return total
    np.testing.assert_allclose(gs.jit(f)(0.7), f(0.7), rtol=1e-14)


def test_a_number_that_only_keywords_read():
    def f(x):
        rng = np.random.default_rng(96)
        a, i = 0.4, 0
        while i < 3:
            a = np.tanh(rng.normal(loc=0.3, scale=abs(a) + 1)) * 0.4
            i = i + 1
        return np.sum(x * x) + 0.0 * a
    x = np.arange(3.0)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), 2 * x)
