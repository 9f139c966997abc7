# SPDX-License-Identifier: Apache-2.0
"""Liveness of names: what is live where a pass of a loop begins, for each way that control may go."""
import gast
import pytest

from gradscribe.ast_transform.source.live import mark_live

CASES = {
    "set on one path only": ("""
        for k in range(n):
            if k > 1:
                y = x
            s = y
        return s""", "x y s"),
    "set before a break": ("""
        for k in range(n):
            y = x
            if k > 1:
                break
            z = y
        else:
            return z
        return y""", "x y z"),
    "continue skips what sets it": ("""
        for k in range(n):
            if k > 1:
                continue
            y = x
        return y""", "x y"),
    "read by a lambda": ("""
        for k in range(n):
            y = x
            g = lambda: y
        return x""", "x y"),
    "read by an inner loop only": ("""
        for k in range(n):
            y = x
            for j in range(k):
                y = y * x
        return x""", "x"),
    "in the test of a while": ("""
        while t < n:
            t = x + y
            y = 1.0
        return x""", "t n x y"),
    "an augmented assignment reads": ("""
        for k in range(n):
            y += x
        return x""", "x y"),
    "a handler may find it": ("""
        for k in range(n):
            try:
                y = x / k
            except ZeroDivisionError:
                s = y
        return s""", "x y s ZeroDivisionError"),
    "set in a with, which may end early": ("""
        for k in range(n):
            with suppress(KeyError):
                y = x[k]
            s = y
        return s""", "x y s suppress KeyError"),
    "deleted": ("""
        for k in range(n):
            y = x
            del y
        return x""", "x"),
    "the index of a target": ("""
        for k in range(n):
            y[k] = x
        return x""", "x y"),
    "a target that is read after the loop": ("""
        for k in range(n):
            s = x
        return k""", "x k"),
    "a target of an inner loop hides no name before it": ("""
        for k in range(n):
            for j in range(m):
                s = j
            s = j
        return x""", "x m j"),
    "a return in the loop": ("""
        for k in range(n):
            y = x * k
            if y > z:
                return y
        return z""", "x z"),
    "finally": ("""
        for k in range(n):
            try:
                y = x
            finally:
                s = y
        return s""", "x y s"),
    "a pattern of a match": ("""
        for k in range(n):
            match x:
                case [a, b]:
                    y = a
            s = y
        return s""", "x y s a"),        # a is set by a pattern that may not fit
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_live_where_a_pass_begins(name):
    text, live = CASES[name]
    lines = [line[4:] for line in text.splitlines()]
    tree = gast.parse("def f(x, n):" + "\n".join(lines)).body[0]
    mark_live(tree)
    assert set(tree.body[0].live) - {"range"} == set(live.split())
