# SPDX-License-Identifier: Apache-2.0
"""A tangent has the dtype that its value has on the path that was taken, and is set where its value is."""
import numpy as np
import pytest

import gradscribe as gs

F = np.float32


def number_in_a_loop(x, t):
    s = np.sum(x)
    for _ in range(int(t)):
        s = 5
    return s + 0.7


def number_in_an_arm(x, t):
    s = x[0] * F(2)
    if t > 1:
        s = 3
    return s / 7


def number_before_a_loop(x, t):
    s = 1
    for v in x[:int(t)]:
        s = s * v
    return s * 0.1


@pytest.mark.parametrize("f", [number_in_a_loop, number_in_an_arm, number_before_a_loop])
@pytest.mark.parametrize("t", [0, 2])
def test_a_python_number_on_one_path_has_a_tangent_like_it(f, t):
    x = np.array([0.5, 1.5, -0.25], F)
    direction = np.array([1.0, -2.0, 0.5], F)
    value, dot = gs.jvp(lambda x: f(x, t), (x,), (direction,))
    assert np.asarray(value).dtype == np.asarray(dot).dtype == np.asarray(f(x, t)).dtype
    wide = x.astype(float)
    slope = (f(wide + 1e-6 * direction, t) - f(wide - 1e-6 * direction, t)) / 2e-6
    assert dot == pytest.approx(slope, rel=1e-6, abs=1e-8)
