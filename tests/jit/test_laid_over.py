"""Lengths that are one in one call and longer in the next: stretched and refused where NumPy does."""
import itertools

import numpy as np
import pytest
from fuzz_lowered import plain

import gradscribe as gs
from gradscribe.codegen.jit_cpu import compiled_text
from gradscribe.runtime import compiled


def subtracted(k, u):
    u = u.copy()
    u[1:] -= k
    return np.sum(u ** 3)


def written(k, u):
    u = u.copy()
    u[1:] = k
    return np.sum(u ** 3)


def added(k, u):
    u = u.copy()
    u[1:] += k * u[1:]
    return np.sum(u ** 3)


def stretched(k, u):
    return np.sum(np.broadcast_to(k, (u.shape[0],)) * u)


def rows(k, u):
    a = np.zeros((u.shape[0], 3))
    a[1:] = k[:, None]
    a[:, 1:] += k[:2]
    return np.sum(a * a)


def columns(k, u):
    a = np.zeros((2, u.shape[0]))
    a[:, 1:] = k
    return np.sum(a * a)


def met(k, u):
    return np.sum(u[1:] * k)


PROGRAMS = [subtracted, written, added, stretched, rows, columns, met]
LENGTHS = [(9, 10), (1, 10), (1, 2), (9, 2), (3, 10), (1, 1), (2, 1), (2, 3), (4, 4), (1, 3)]
REFUSED = "refused"


def outcome(f, *args):
    try:
        return np.asarray(f(*args))
    except (ValueError, gs.TransformError):
        return REFUSED


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_function_for_all_lengths(function, monkeypatch):
    monkeypatch.setattr("gradscribe.codegen.jit_cpu.compiled_text", plain)
    eager, fast = gs.grad(function, (0, 1)), gs.jit(function)
    for n, m in LENGTHS:
        k, u = np.linspace(0.5, 1.5, n), np.linspace(1.2, 0.4, m)
        want, got = outcome(function, k, u), outcome(fast, k, u)
        assert (want is REFUSED) == (got is REFUSED), (n, m, want, got)
        assert want is REFUSED or np.allclose(got, want, rtol=1e-14), (n, m)
        if want is not REFUSED:
            for place, d in enumerate(eager(k, u)):
                np.testing.assert_allclose(d, differences(function, (k, u), place), rtol=1e-6, atol=1e-6)


def differences(f, args, place, step=1e-6):
    out = np.zeros_like(args[place])
    for i in range(out.shape[0]):
        ends = []
        for sign in (1, -1):
            moved = [np.copy(a) for a in args]
            moved[place][i] += sign * step
            ends.append(f(*moved))
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("function", [subtracted, met], ids=lambda f: f.__name__)
def test_compiled(function):
    fast = gs.jit(gs.grad(function, (0, 1)))
    for n, m in LENGTHS:
        k, u = np.linspace(0.5, 1.5, n), np.linspace(1.2, 0.4, m)
        want, got = outcome(lambda k, u: function(k, u), k, u), REFUSED
        try:
            got = fast(k, u)
        except (ValueError, gs.TransformError):
            pass
        assert (want is REFUSED) == (got is REFUSED), (n, m)
        for place in (0, 1) if want is not REFUSED else ():
            np.testing.assert_allclose(got[place], differences(function, (k, u), place), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name, count", [("meet", 2), ("same", 2), ("fits", 2), ("place", 2), ("not_one", 1),
                                         ("reaches", 3)])
def test_checks_as_machine_code(name, count):
    """They are written as LLVM's instructions: the same numbers and the same refusals as their Python text."""
    args = ", ".join("abc"[:count])
    body = f"{name}({args})\n    return (a,)" if name in ("not_one", "reaches", "fits") else f"return ({name}({args}),)"
    text = f"def check({args}):\n    {body}\n"
    machine = compiled_text(text, "check", [(np.dtype(np.int64), 0)] * count, frozenset())
    for given in itertools.product((-2, 0, 1, 2, 5), repeat=count):
        results = []
        for call in (getattr(compiled, name), machine):
            try:
                value = call(*given)
                results.append(value[0] if isinstance(value, tuple) else given[0] if value is None else value)
            except (ValueError, IndexError) as error:
                results.append(type(error))
        assert results[0] == results[1], (given, results)
