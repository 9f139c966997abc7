"""The tables of SciPy's functions are read when a program has imported SciPy, and no table imports it."""
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import gradscribe as gs

PROGRAM = """
import sys
import numpy as np
import gradscribe as gs

gs.grad(lambda x: np.sum(x * x))(np.ones(3))
assert "scipy" not in sys.modules
import scipy.linalg

x = np.array([[2.0, 1.0], [0.5, 3.0]])
print(gs.grad(lambda x: scipy.linalg.det(x))(x).tolist())
"""


def test_scipy_is_not_imported_for_its_rules(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    out = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("function", [scipy.linalg.expm, scipy.linalg.inv, scipy.linalg.det, scipy.linalg.sqrtm])
def test_a_function_of_scipys_is_transformed_by_its_rule(function):
    """Not read: it may be written in Python, under decorators of SciPy's."""
    a, v, step = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[0.3, -1.0], [0.7, 0.2]]), 1e-6
    wanted = (function(a + step * v) - function(a - step * v)) / (2 * step)
    np.testing.assert_allclose(gs.jvp(function, (a,), (v,))[1], wanted, rtol=1e-8)
    dy = np.ones_like(wanted)
    if function is not scipy.linalg.sqrtm:
        (da,) = gs.vjp(function, a)[1](dy)
        np.testing.assert_allclose(np.sum(da * v), np.sum(wanted * dy), rtol=1e-8)
    np.testing.assert_allclose(gs.jit(function)(a), function(a), rtol=1e-12)
