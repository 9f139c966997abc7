"""What Numba does not compile is an error at the user's line."""
import subprocess
import sys

import numpy as np
import pytest
from jit import support

import gradscribe as gs
from gradscribe.codegen import jit_cpu


def test_no_form():
    def f(a):
        place = np.digitize(a, np.array([0.0, 1.0]))
        return np.sum(a * place)
    with pytest.raises(gs.RuleError, match="np.digitize has no Numba form") as caught:
        support.transformed(gs.grad(f), np.ones(3))
    assert "np.digitize(a" in str(caught.value)


def test_no_float16():
    def f(a):
        return a * a
    with pytest.raises(gs.RuleError):
        support.compiled(f, np.ones(3, np.float16))


@pytest.mark.compiled
def test_numba_complains_at_the_line(monkeypatch):
    def f(a):
        print("at", a)
        return a * a
    monkeypatch.setattr(jit_cpu, "functions", lambda: {"reported": None})
    with pytest.raises(gs.TransformError, match="Numba") as caught:
        support.compiled(f, 2.0)
    assert "print(" in str(caught.value)


def test_errors_when_run():
    def f(a, k):
        if k > 5:
            raise ValueError("too large")
        return a[k] ** 2
    made = support.compiled(f, np.ones(3), 1)
    with pytest.raises(ValueError, match="too large"):
        made(np.ones(3), 9)
    with pytest.raises(IndexError):
        made(np.ones(3), 4)
    assert made(np.array([1.0, 2.0, 3.0]), -1)[0] == 9.0


def test_numba_is_imported_late():
    code = "import sys, gradscribe, gradscribe.codegen.jit_cpu; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def worded(x, *, k=1.0):
    if x < 0:
        raise ValueError("negative: {}".format(x))
    assert x < 5, f"too large: {x}"
    return x * np.log(x) * k


def test_messages_made_when_running():
    """Compiled code cannot make the text; the plain function is called for it."""
    made = gs.jit(gs.grad(worded))
    assert abs(made(2.0, k=2.0) - 2 * (np.log(2.0) + 1)) < 1e-12
    with pytest.raises(ValueError, match="^negative: -1.0$"):
        made(-1.0, k=2.0)
    with pytest.raises(AssertionError, match="^too large: 7.0$"):
        made(7.0)


class Unfit(Exception):
    pass


def of_ones_own(x):
    if x > 3:
        raise Unfit("too large")
    if x < 0:
        raise ValueError("negative") from None
    return x * x


def test_exceptions_of_the_users():
    made = gs.jit(gs.grad(of_ones_own))
    assert made(2.0) == 4.0
    with pytest.raises(Unfit, match="^too large$"):
        made(5.0)
    with pytest.raises(ValueError, match="^negative$"):
        made(-1.0)


def labelled(x):
    label = f"shape {x.shape}"
    return np.sum(x) * len(label)


def test_a_text_made_when_running_is_refused():
    with pytest.raises(gs.TransformError, match="label.* is no array"):
        gs.jit(gs.grad(labelled))(np.ones(30))
