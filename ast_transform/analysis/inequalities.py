# SPDX-License-Identifier: Apache-2.0
"""Linear inequalities between integers: decides whether a system of them has no solution.

An inequality is a `Linear` that is at least zero.

>>> i, j, n = map(Linear.of, "ijn")
>>> impossible([i, n - i - 1, j - i - 1, i - j])            # 0 <= i < n, j > i, j <= i
True
>>> impossible([i, n - i - 1, j - i - 1])
False
>>> impossible([2 * i - 1, 1 - 2 * i])                      # i = 1/2
True

Source: W. Pugh, The Omega test, CACM 35 (1992): Fourier-Motzkin elimination, with inequalities tightened to integers.
"Impossible" is always right; a system that is not found impossible may have no solution either.
"""
import math
from collections import Counter
from collections.abc import Iterable

MOST = 400              # give up with more inequalities: each elimination may square their number


class Linear:
    """A linear sum of unknowns with integer coefficients, plus an integer constant."""
    __slots__ = ("constant", "terms")

    def __init__(self, terms, constant=0):
        self.terms, self.constant = terms, constant

    @staticmethod
    def of(unknown):
        return Linear({unknown: 1})

    def __add__(self, other):
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for v, k in other.terms.items():
            terms[v] = terms.get(v, 0) + k
        return Linear({v: k for v, k in terms.items() if k}, self.constant + other.constant)

    def __mul__(self, factor):
        return Linear({v: factor * k for v, k in self.terms.items()} if factor else {}, factor * self.constant)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, number):
        return -self + number

    __rmul__ = __mul__

    def __repr__(self):
        return " + ".join([*(f"{k} {v}" for v, k in self.terms.items()), str(self.constant)])


def impossible(inequalities: Iterable[Linear]) -> bool:
    """Whether certainly no integers make all of these at least zero."""
    rows = _tight(inequalities)
    ups: Counter
    downs: Counter
    above: list
    below: list
    rest: list
    while rows:
        ups, downs = Counter(), Counter()
        for terms in rows:
            for v, k in terms:
                (ups if k > 0 else downs)[v] += 1
        if not ups and not downs:
            break
        v = min({**ups, **downs}, key=lambda v: ups[v] * downs[v])
        above, below, rest = [], [], []
        for terms, constant in rows.items():
            row, k = Linear(dict(terms), constant), next((k for u, k in terms if u is v or u == v), 0)
            (above if k > 0 else below if k < 0 else rest).append((row, k))
        rows = _tight([row for row, _ in rest] + [a * -m + b * k for a, k in above for b, m in below])
        if rows is not None and len(rows) > MOST:
            return False
    return rows is None


def _tight(inequalities):
    """The strongest inequality for each sum of unknowns, {terms: constant}; None if one is false."""
    rows = {}
    for row in inequalities:
        if not row.terms:
            if row.constant < 0:
                return None
            continue
        factor = math.gcd(*row.terms.values())
        terms = frozenset((v, k // factor) for v, k in row.terms.items())
        constant = row.constant // factor
        rows[terms] = min(constant, rows.get(terms, constant))
    return rows
