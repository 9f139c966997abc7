# SPDX-License-Identifier: Apache-2.0
"""Elementary functions that are called at many places: calls of one function of vectors."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.uniform import PLACES

pytestmark = pytest.mark.compiled

FUNCTIONS = ["sin", "exp", "tanh", "log1p", "arctan", "expm1", "cosh", "cbrt"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_at_many_places(name, dtype):
    f = unrolled(name)
    fast = gs.jit(f)
    for n in (0, 1, 2, 3, 7, 8, 9, 31, 1000):
        x = np.linspace(-0.2, 0.9, n).astype(dtype)
        got = fast(x)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, f(x), rtol=1e-14 * PLACES if dtype == np.float64 else 2e-6)
    assert f"gradscribe.shared.{name}" in fast.llvm or f"{name}32" in fast.lowered or "np.float32(" in fast.lowered


def unrolled(name):
    """A text, since loops of a known number of passes stay loops."""
    space = {"np": np}
    lines = ["def f(x):", "    y = x"]
    lines += [f"    y = np.{name}(y * {0.1 + 0.01 * k} + x)" for k in range(PLACES + 3)]
    return made("\n".join([*lines, "    return y", ""]), space)


def made(text, space):
    import linecache
    name = f"<test {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)
    return space["f"]


def test_nan_and_infinities():
    f = unrolled("sin")
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e8, 1e-300, 3.0, -2.0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-12)


def test_few_places_are_written_out():
    fast = gs.jit(lambda x: np.sin(x) + np.sin(2.0 * x))
    fast(np.ones(5))
    assert "shared" not in fast.llvm


def test_a_gradient_of_many_statements():
    f = unrolled("tanh")
    x = np.linspace(-1.0, 1.0, 37)

    def total(x):
        return np.sum(f(x))
    got, want = gs.jit(gs.grad(total))(x), gs.grad(total)(x)
    np.testing.assert_allclose(got, want, rtol=1e-12)
