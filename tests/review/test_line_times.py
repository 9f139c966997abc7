"""Times of the lines of an emitted function: what is counted, what is measured, and that nothing else changes."""
import time

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.transforms import identity
from gradscribe.line_times import Clocks, TooLong, line_times, with_clock
from gradscribe.transformed import Transformed


def timed(fn, *args, **words):
    """{text of a line: its time}; of equal lines, the last."""
    version = fn.version_for(args, words)
    found, lines = line_times(version, args, words, budget=0.05), version.text.splitlines()
    return {lines[k - 1].strip(): t for k, t in found.lines.items()}


def test_passes_of_nested_loops():
    def f(x, n, m):
        for _ in range(n):
            for _ in range(m):
                x = np.sin(x)
            x = x * 2.0
        return x
    found = timed(Transformed(f, identity()), 0.3, 3, 4)
    assert found["x = np.sin(x)"].passes == 12
    assert found["x = x * 2.0"].passes == 3
    assert found["for _ in range(m):"].passes == 15         # each entry, and each element
    assert found["for _ in range(n):"].passes == 4


def test_passes_of_while_and_break():
    def f(x, n):
        k, s = 0, 0.0
        while k < n:
            k += 1
            if k % 2:
                continue
            if k > 6:
                break
            s = s + x * k
        return s
    found = timed(Transformed(f, identity()), 0.5, 20)
    assert [found[text].passes for text in ("while k < n:", "k += 1", "if k > 6:", "break", "s = s + x * k")] == [
        8, 8, 4, 1, 3]


def test_the_slow_line_is_the_slow_line():
    def f(a, b):
        c = np.exp(a)
        d = np.exp(b)
        for _ in range(2):
            c = c * c
            d = d * d
        return np.sum(c) + np.sum(d)
    found = timed(Transformed(f, identity()), np.zeros(300_000), np.zeros(3))
    assert found["c = np.exp(a)"].seconds > 5 * found["d = np.exp(b)"].seconds
    assert found["c = c * c"].seconds > 5 * found["d = d * d"].seconds


CASES = {
    "loop": (lambda x, n: sum(np.sum(x ** k) for k in range(1, n)), (np.array([0.3, 0.5]), 4)),
    "branch": (lambda x: np.sum(x) if x[0] > 0 else np.prod(x), (np.array([0.3, 0.5]),)),
    "tuple": (lambda p: p[0] * p[1] ** 2, ((0.3, 0.5),)),
    "empty": (lambda x: np.sum(x * x), (np.zeros(0),)),
    "one": (lambda x: np.sum(np.exp(x)), (np.ones(1, np.float32),)),
    "complex": (lambda x: np.sum(np.abs(x) ** 2), (np.array([1.0 + 2.0j]),)),
    "integer": (lambda x: x ** 3, (2,)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("again", [False, True])
def test_the_clock_changes_no_result(name, again):
    f, args = CASES[name]
    fn = gs.vmap(gs.grad(f), in_axes=(0, None)[:len(args)] if len(args) > 1 else 0) if again else gs.grad(f)
    if again and name in ("tuple", "integer"):
        args = (tuple(np.full(3, v) for v in args[0]),) if name == "tuple" else (np.full(3, 2.0),)
    elif again:
        args = (np.stack([args[0]] * 3), *args[1:])
    version = fn.version_for(args, {})
    clocks = Clocks(60.0, len(version.text.splitlines()))
    clocks.begin()
    given = [float(a) if k in version.convert else a for k, a in enumerate(args)]
    found, plain = with_clock(version, clocks)(*given), fn(*args)
    np.testing.assert_equal(found, plain)
    lines = version.text.splitlines()
    assert clocks.lines and all(lines[k - 1].strip() and not lines[k - 1].lstrip().startswith(("#", "import", "def"))
                                for k in clocks.lines)


def test_functions_of_an_emitted_text():
    """A function that is called in a loop stands beside the main one; its lines are timed too."""
    @gs.checkpoint
    def step(x, w):
        return np.sin(w * x)

    def f(x, w, n):
        for _ in range(n):
            x = step(x, w)
        return np.sum(x)
    fn = gs.grad(f, argnums=1)
    args = np.ones(3), 0.7, 6
    version = fn.version_for(args, {})
    found = line_times(version, args, {}, budget=0.05)
    assert len(found.lines) > 4 and all(t.seconds >= 0 for t in found.lines.values())


def test_arguments_are_not_changed():
    def f(x):
        x[0] = 2.0
        return np.sum(x ** 2)
    x = np.array([1.0, 3.0])
    line_times(gs.vmap(f).version_for((np.stack([x, x]),), {}), (np.stack([x, x]),), {}, budget=0.02)
    assert x.tolist() == [1.0, 3.0]


def test_a_call_that_takes_too_long():
    def f(x, n):
        for _ in range(n):
            x = np.sin(x)
        return x
    begun = time.perf_counter()
    with pytest.raises(TooLong):
        line_times(gs.grad(f).version_for((0.3, 10 ** 7), {}), (0.3, 10 ** 7), {}, limit=0.2)
    assert time.perf_counter() - begun < 5


def test_what_the_function_raises():
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x * x
    with pytest.raises(ValueError, match="negative"):
        line_times(gs.grad(f).version_for((-1.0,), {}), (-1.0,), {})


@pytest.mark.compiled
def test_a_compiled_function_is_timed_as_a_whole():
    fn = gs.jit(gs.grad(lambda x: np.sum(x * x)))
    found = line_times(fn.version_for((np.ones(3),), {}), (np.ones(3),), {}, budget=0.02)
    assert not found.lines and 0 < found.seconds < 1
