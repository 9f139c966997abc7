"""Which writes a later pass reads, and which entries have been read before: in the order in which loops reach them."""
import numpy as np
import pytest

from gradscribe.ast_transform.analysis.regions import Regions
from gradscribe.ast_transform.core.form import For, If, Let, Var, While, blocks
from gradscribe.ast_transform.core.operations import put, put_add
from gradscribe.ast_transform.examples import form

HEAD = "def f(A, b, k):\n    A = A.copy()\n    n = len(b)\n    s = 0.0\n"
ARGUMENTS = np.ones((5, 5)), np.ones(5), 2


def writes(body):
    """For each write of a program, whether what it leaves is read later, whether what it finds was read before."""
    made = form(HEAD + body + "    return s\n", *ARGUMENTS)
    regions = Regions(made.body, made.result, [p.value for p in made.params if isinstance(p.value, Var)])
    found = []

    def visit(block, loops):
        for step in block:
            if isinstance(step, Let) and getattr(step.value, "function", None) in (put, put_add):
                base, index, _ = step.value.args
                found.append((regions.read_later(step.targets[0], index, loops),
                              regions.read_before(base, index, loops, lambda use: True)))
            for inner in blocks(step):
                visit(inner, (*loops, step) if isinstance(step, (For, While)) else loops)
            assert isinstance(step, (Let, For, While, If))

    visit(made.body, ())
    return found


def loop(head, *lines):
    return "".join([f"    for {head}:\n", *(f"        {line}\n" for line in lines)])


# (program, (read later, read before) of each write); nothing is known of a remainder
CASES = [
    (loop("i in range(n)", "s += np.sum(A[i, :i])", "A[i, i] = b[i]"), [(False, False)]),
    (loop("i in range(n)", "s += np.sum(A[:i, i])", "A[i, i] = b[i]"), [(False, False)]),
    (loop("i in range(n)", "s += np.sum(A[:i, 0])", "A[i, 0] = b[i]"), [(True, False)]),
    (loop("i in range(n)", "s += np.sum(A[i:, 0])", "A[i, 0] = b[i]"), [(False, True)]),
    (loop("i in range(n - 1, -1, -1)", "s += np.sum(A[:i, 0])", "A[i, 0] = b[i]"), [(False, True)]),
    (loop("i in range(n - 1, -1, -1)", "s += np.sum(A[i + 1:, 0])", "A[i, 0] = b[i]"), [(True, False)]),
    (loop("i in reversed(range(n))", "s += A[i, 0]", "A[i, 0] = b[i]"), [(False, True)]),
    (loop("i in range(1, n)", "s += A[i - 1, 0]", "A[i, 0] = b[i]"), [(True, False)]),
    (loop("i in range(n)", "s += A[i - 1, 0]", "A[i, 0] = b[i]"), [(True, True)]),      # A[-1, 0] is read first
    (loop("i in range(n)", "s += A[0, i]", "A[0, -1] = s"), [(True, True)]),
    (loop("i in range(n - 1)", "s += A[0, i]", "A[0, -1] = s"), [(True, True)]),         # A may be wider than b is long
    (loop("i in range(A.shape[1] - 1)", "s += A[0, i]", "A[0, -1] = s"), [(False, False)]),
    (loop("i in range(n)", "A[i, 0] = b[i]", "s += A[i, 0]"), [(True, False)]),
    (loop("i in range(n)", "A[i, 0] = b[i]", "s += A[i, 1]"), [(False, False)]),
    (loop("i in range(0, n, 2)", "A[i, 0] = b[i]", "s += A[i + 1, 0]"), [(False, False)]),
    (loop("i in range(n)", "A[i, 0] = b[i]", "s += A[k, 0]"), [(True, True)]),
    (loop("i in range(n)", "A[i % 2, 0] = b[i]", "s += A[2, 0]"), [(True, True)]),
    (loop("i in range(n)", "A[i] = b", "s += np.sum(A)"), [(True, True)]),
    (loop("i in range(n)", "s += A.shape[0]", "A[i] = b"), [(False, False)]),
    (loop("i in range(n)", "s += np.sum(np.zeros_like(A))", "A[i] = b"), [(False, False)]),
    (loop("i in range(n)", "A[:i] = 1.0", "s += np.sum(A[i:])"), [(False, True)]),
    (loop("i in range(n)", "A[:i:2] = 1.0", "s += np.sum(A[i:])"), [(False, True)]),
    (loop("i in range(n)", "A[i::-1] = 1.0", "s += np.sum(A[i + 1:])"), [(True, True)]),
    (loop("i in range(n)", "A[[i, 0]] = 1.0", "s += np.sum(A[1:])"), [(True, True)]),
    (loop("i in range(n)", "A[[i, 0], 0] = 1.0", "s += np.sum(A[:, 1])"), [(False, False)]),
    (loop("i in range(n)", "for j in range(i):", "    A[i, j] = b[j]", "s += np.sum(A[i, i:])"), [(False, False)]),
    (loop("i in range(n)", "for j in range(i):", "    A[i, j] = b[j] - A[i, :j] @ A[:j, j]"), [(True, False)]),
    (loop("i in range(n)", "for j in range(i, n):", "    A[i, j] = b[j] + A[j, i]"), [(False, True)]),
    (loop("i in range(n)", "for j in range(i):", "    A[i, j] = b[j] + A[j, i]"), [(False, False)]),
    (loop("i in range(n)", "if b[i] > 0:", "    A[i, 0] = b[i]", "s += A[0, i]"), [(True, False)]),
    (loop("i in range(1, n)", "if b[i] > 0:", "    A[i, 0] = b[i]", "else:", "    s += A[0, i]"), [(False, False)]),
    ("    i = 0\n    while i < n:\n        s += A[i, 0]\n        A[i, 1] = s\n        i += 1\n", [(False, False)]),
    ("    i = 0\n    while i < n:\n        s += A[i, 0]\n        A[i, 0] = s\n        i += 1\n", [(True, True)]),
    ("    A[0, 1] = 2.0\n    s = A[0, 1]\n    A[0, 1] = s\n", [(True, False), (False, True)]),
    ("    A[k, 1] = 2.0\n    A[k, 1] = 3.0\n    s = A[k, 1]\n", [(False, False), (True, False)]),
    ("    A[:k] = 2.0\n    s = np.sum(A[k:])\n", [(True, False)]),          # k may be negative
    ("    A[:2] = 2.0\n    s = np.sum(A[2:])\n", [(False, False)]),
    ("    A[-2:] = 2.0\n    s = np.sum(A[:-2])\n", [(False, False)]),
    ("    A[0] = 2.0\n    s = np.sum(A[-1])\n", [(True, False)]),           # of one row, the first is the last
]


@pytest.mark.parametrize("body, want", CASES)
def test_writes_and_reads(body, want):
    assert writes(body) == want


def indices_of(*parts):
    """The regions of a program that writes to these places of a vector in turn, and its writes."""
    lines = "".join(f"    a[{part}] = s\n" for part in parts)
    made = form(f"def f(a, b, s):\n    a = a.copy()\n{lines}    return a\n", np.ones(9), np.ones(3), 2.0)
    regions = Regions(made.body, made.result, [p.value for p in made.params])
    writes = [s for s in made.body if isinstance(s, Let) and getattr(s.value, "function", None) is put]
    return regions, [s.value.args[1] for s in writes], writes[0].targets[0].fact


def reached(part, n):
    marks = np.zeros(n, int)
    exec(f"a[{part}] = 1", {"a": marks, "b": np.ones(3)})
    return marks


@pytest.mark.parametrize("first, second, expected", [
    ("0", "1:", True), (":-1", "-1", True), (":2", "2:", True), ("0", "1", True), (":2", "-2:", False),
    ("0", "-1", False), ("0:3", "2:5", False), (":2", "5:1", True), ("::2", "1", False), ("-2", "-1", True),
    ("2", "2", False), (":len(b)", "len(b):", True), (":len(b)", "len(b) - 1:", False), ("len(b)", "len(b) + 1", True),
])
def test_indices_apart(first, second, expected):
    regions, (a, b), fact = indices_of(first, second)
    assert regions.apart(a, (), b, (), None, fact) is expected
    for n in range(1, 9):
        try:
            assert not expected or max(reached(first, n) + reached(second, n)) < 2
        except IndexError:
            continue


@pytest.mark.parametrize("parts, expected", [
    ([":"], True), (["..."], False), (["0", "1:-1", "-1"], True), ([":2", "3:"], False), (["1:", "0"], True),
    ([":2", "2:-1", "-1"], True), (["0", "2", "1", "3:"], True), (["0", "2:"], False), (["::2", "1::2"], False),
    ([":len(b)", "len(b):"], True), ([":len(b)", "len(b) + 1:"], False), ([":3", "len(b):"], False),
    (["5:", ":4", "2:9"], True), (["-3:", ":-3"], True), (["-3:", ":-4"], False), (["b > 1.0", "1:"], False),
])
def test_indices_that_cover(parts, expected):
    regions, found, fact = indices_of(*parts)
    assert regions.cover(found, (), fact) is expected
    for n in range(4, 9) if "b > 1.0" not in parts else ():
        assert not expected or min(sum(reached(part, n) for part in parts)) > 0
