"""Fourier-Motzkin elimination against all numbers of a small box."""
import itertools
import random

import pytest

from gradscribe.ast_transform.analysis.inequalities import Linear, impossible

N = "xyz"


def fulfilled(rows, point):
    at = dict(zip(N, point))
    return all(row.constant + sum(k * at[v] for v, k in row.terms.items()) >= 0 for row in rows)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_impossible_has_no_solution(seed):
    r = random.Random(seed)
    box = [row for v in N for row in (Linear.of(v) + 4, 4 - Linear.of(v))]
    found = []
    for _ in range(40):
        rows = [Linear({v: k for v in N if (k := r.randint(-3, 3))}, r.randint(-6, 6)) for _ in range(r.randint(1, 5))]
        some = any(fulfilled(rows, p) for p in itertools.product(range(-4, 5), repeat=3))
        if impossible(rows + box):
            assert not some
        found.append((some, impossible(rows + box)))
    assert sum(not some for some, _ in found) - sum(no for _, no in found) <= 8        # what only whole numbers exclude


def test_sums_of_unknowns():
    i, n = Linear.of("i"), Linear.of("n")
    made = 2 * (i - n) + 3 - i
    assert (made.terms, made.constant) == ({"i": 1, "n": -2}, 3)
    assert (i - i).terms == {}
    assert not impossible([])
    assert impossible([Linear({}, -1)])
    assert not impossible([Linear({}, 0)])
