"""Annotations as a checker of types reads them: how Gradscribe is used, and the examples."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
USE = '''
import numpy as np
import gradscribe as gs


def loss(w: np.ndarray, x: np.ndarray) -> float:
    return float(np.sum(w * x))


d = gs.grad(loss)
print(d.source, d.source_for(np.ones(3), np.ones(3)))
g: np.ndarray = d(np.ones(3), np.ones(3))


@gs.jit
@gs.value_and_grad
def f(x: np.ndarray) -> float:
    return np.sum(x**2)


value, gradient = f(np.ones(3))
print(f.lowered)


@gs.grad(argnums=1)
def h(a, b):
    return a * b


print(h(1.0, 2.0), h.source)
batched = gs.vmap(loss, in_axes=(None, 0))
print(batched(np.ones(3), np.ones((2, 3))), batched.source)
y, pull = gs.vjp(loss, np.ones(3), np.ones(3))
print(pull(1.0), pull.source)
y, pull, aux = gs.vjp(lambda x: (x, x), 1.0, has_aux=True)
y, push = gs.linearize(loss, np.ones(3), np.ones(3))
print(push(np.ones(3), np.ones(3)), push.source)
fast = gs.jit(gs.vmap(gs.grad(loss), in_axes=(None, 0)), parallel=True)
print(fast(np.ones(3), np.ones((2, 3))))


@gs.custom_jvp
def c(x):
    return x


@c.defjvp
def c_jvp(primals, tangents):
    return primals[0], tangents[0]


print(gs.grad(c)(1.0), gs.hessian(f)(np.ones(2)), gs.jacfwd(f)(np.ones(2)))
'''
MISUSE = ["gs.grad(3)", "gs.grad(abs, arguments=1)", "gs.vmap(abs, strategy=1)", "gs.jit(abs, parallel='yes')",
          "y, pull, aux = gs.vjp(abs, 1.0)"]


def told(*paths):
    done = subprocess.run(["pyright", "--pythonpath", sys.executable, *map(str, paths)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright(tmp_path):
    file = tmp_path / "use.py"
    file.write_text(USE, encoding="utf-8")
    code, text = told(file, ROOT / "examples")
    assert code == 0, text
    file.write_text("import gradscribe as gs\n" + "\n".join(MISUSE) + "\n", encoding="utf-8")
    _, text = told(file)
    assert all(f"use.py:{k}:" in text for k in range(2, len(MISUSE) + 2)), text


def test_what_is_checked_runs(tmp_path, monkeypatch, capsys):
    (tmp_path / "use_of_types.py").write_text(USE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("use_of_types")
    assert "def grad_loss" in capsys.readouterr().out
