"""The tables of SciPy's functions are read when a program has imported SciPy, and no table imports it."""
import subprocess
import sys

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
