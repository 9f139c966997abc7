"""What the texts of the runtime's functions say of memory, against what they do."""
import ast

import numpy as np
import pytest
from device.test_libraries import SAMPLES

from gradscribe.codegen.helpers import HELPERS
from gradscribe.codegen.loops.analysis import summaries
from gradscribe.codegen.loops.analysis.summaries import NONE, Summary, leaves_arguments, summary_of


def arrays(value):
    return [a for v in (value if isinstance(value, (tuple, list)) else (value,)) for a in (
        arrays(v) if isinstance(v, (tuple, list)) else [v] if isinstance(v, np.ndarray) else [])]


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if leaves_arguments(n)))
def test_arguments_are_left_alone(name):
    for args in SAMPLES[name]:
        given = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
        results = arrays(HELPERS[name](*given))
        for was, a in zip(args, given, strict=True):
            np.testing.assert_array_equal(a, was)
            assert not any(np.shares_memory(a, r) for r in results if isinstance(a, np.ndarray))


def test_most_of_those_with_samples_do():
    assert sum(leaves_arguments(n) for n in SAMPLES) > 25


def of(text):
    found = {t.name: t for t in ast.parse(text).body}
    known = dict.fromkeys(found, Summary(NONE, False))
    for _ in range(4):
        known = {n: summaries._Function(t, known).summary() for n, t in found.items()}
    return known["f"]


@pytest.mark.parametrize(("body", "written", "shown"), [
    ("return x + 1", (), False),
    ("x[0] = 1", (0,), False),
    ("v = x[1:]\n    v[0] += 1", (0,), False),
    ("v = x.reshape(-1)\n    w = v\n    w[0] = 1", (0,), False),
    ("v = x.copy()\n    v[0] = 1\n    return v", (), False),
    ("for row in x:\n        row[0] = 1", (0,), False),
    ("a, b = x, y\n    b[0] = a[0]", (1,), False),
    ("a, b = np.empty(3), x\n    a[0] = 1\n    return a", (), False),
    ("x += 1", (0,), False),
    ("return x.T", (), True),
    ("return (np.zeros(3), x[0])", (), True),
    ("return np.asarray(x)", (), True),
    ("return np.sqrt(x)", (), False),
    ("np.dot(x, y, np.empty(3))", (), False),
    ("np.dot(x, x, y)", (1,), False),
    ("np.add(x, 1, out=y)", (1,), False),
    ("np.copyto(x, y)", (0, 1), False),
    ("np.add.at(x, 1, 2)", (0,), False),
    ("return np.linalg.inv(x)", (), False),
    ("x.sort()", (0,), False),
    ("unheard_of(y)", (1,), False),
    ("g(y)", (1,), False),
    ("return h(x)", (), True),
    ("return x if y is None else x + 1", (), True),
    ("raise NotImplementedError", tuple(range(100)), True),
])
def test_of_a_text(body, written, shown):
    found = of(f"def f(x, y):\n    {body}\ndef g(a):\n    a[0] = 1\ndef h(a):\n    return a[0]")
    assert (found.written | found.added, found.shown) == (frozenset(written), shown)


def test_what_is_not_there():
    assert summary_of("no_such_function") is None and not leaves_arguments("no_such_function")
