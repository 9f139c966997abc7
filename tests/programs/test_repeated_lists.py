# SPDX-License-Identifier: Apache-2.0
"""[value] * n where n is the length of an array, and ranges as indices."""
import numpy as np
import pytest
from programs.checks import POINTS, compiled, derivatives, examples, float32, second_derivative

import gradscribe as gs


def prefix_and_suffix(x):
    n = len(x)
    left, right = [1.0] * n, [1.0, 2.0] * n
    for i in range(1, n):
        left[i] = left[i - 1] * x[i - 1]
        right[i] += left[i] * x[0]
    for i in range(n - 2, -1, -1):
        right[i] = right[i + 1] * x[i + 1]
    return sum(a * b for a, b in zip(left, right)) + right[-1] * len(right)


def shortest(x):
    cost = [np.inf] * len(x)
    cost[0] = 0.0
    for i in range(1, len(x)):
        for j in range(i):
            if cost[j] + x[i] * x[j] < cost[i]:
                cost[i] = cost[j] + x[i] * x[j]
    return cost[-1]


def of_an_array(x):
    rows, made = [x] * len(x), [0.0] * x.shape[0]
    for i in range(len(x)):
        made[i] = np.sum(rows[i] * x[i])
    return sum(made) ** 2


def diagonal_by_ranges(x):
    n = len(x)
    A = np.outer(x, x)
    A[range(n), range(n)] = 0.0
    A[range(n - 1), range(1, n)] *= x[1:]
    return np.sum(A[range(n - 1, 0, -1)] ** 2) + A[0, range(0, n, 2)] @ x[range(2)]


FUNCTIONS = [prefix_and_suffix, shortest, of_an_array, diagonal_by_ranges]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_derivatives(f):
    for x in POINTS:
        derivatives(f, x)
    second_derivative(f, POINTS[0])
    examples(f)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_compiled(f):
    compiled(f)


def test_single_precision():
    float32(diagonal_by_ranges)


def test_nothing_is_repeated():
    def f(x, n):
        return x * len([x] * n) + sum([2.0] * (len(np.zeros(n)) - 1))
    assert gs.value_and_grad(f)(3.0, 0) == (0.0, 0.0)
    assert gs.value_and_grad(f)(3.0, 3) == (13.0, 3.0)
