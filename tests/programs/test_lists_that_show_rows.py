# SPDX-License-Identifier: Apache-2.0
"""What Python makes of a list of rows holds the same rows: a write into their matrix is seen in it, or refused."""
import collections
import copy
import functools
import itertools

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])


def rows_of(matrix):
    rows = []
    for row in matrix:
        rows.append(row)
    return rows


def sorted_by_first(rows):
    return sorted(rows, key=lambda row: row[0])[0]


def turned(rows):
    return list(reversed(rows))[-1]


def repeated(rows):
    return [*rows][0]


def sliced(rows):
    return rows[::-1][-1]


def least(rows):
    return max(rows, key=lambda row: -row[0])


def copied(rows):
    return copy.copy(rows)[0]


def copied_by_itself(rows):
    return rows.copy()[0]


def a_tuple(rows):
    return tuple(rows)[0]


def a_deque(rows):
    return collections.deque(rows)[0]


def first_argument(rows):
    def first(*given):
        return given[0]
    return first(*rows)


def chained(rows):
    return list(itertools.chain(rows, rows))[0]


def numbered(rows):
    return dict(enumerate(rows))[0]


def paired(rows):
    return list(zip(rows, rows))[0][0]


def reduced(rows):
    return functools.reduce(lambda a, b: a, rows)


def an_array(rows):
    return np.array(rows)[0]


ALL = [sorted_by_first, turned, repeated, sliced, least, copied, copied_by_itself, a_tuple, a_deque, first_argument,
       chained, numbered, paired, reduced, an_array]


@pytest.mark.parametrize("first_of", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_a_write_into_the_matrix(first_of, wrap):
    def f(x):
        matrix = np.outer(x, x)
        first = first_of(rows_of(matrix))
        matrix[0] = matrix[1] * 3
        return np.sum(first) * x[2]

    want = differences(f, X)
    try:
        np.testing.assert_allclose(wrap(gs.grad(f))(X), want, rtol=1e-6, atol=1e-8)
    except gs.TransformError as error:
        assert "may have changed, or not" in str(error)
        assert first_of is not an_array         # it has a copy of what the rows were


@pytest.mark.parametrize("first_of", ALL, ids=lambda f: f.__name__)
def test_without_a_write(first_of):
    def f(x):
        first = first_of(rows_of(np.outer(x, x)))
        return np.sum(first * first) * x[2]

    np.testing.assert_allclose(gs.grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-8)
