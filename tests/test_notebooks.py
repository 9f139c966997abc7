"""Every notebook runs from top to bottom, as it is and with its exercises solved; its cells are files in linecache."""
import ast
import json
import linecache
import re
import time
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
LONGEST = 120                       # seconds


def run(path, solved):
    """The names that a notebook leaves, and how many exercises it has."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    namespace, exercises = {"__name__": "__main__"}, 0
    for k, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "notebooks are kept without outputs"
        text = "".join(cell["source"])
        if "solution" in cell["metadata"]:
            exercises += 1
            text = cell["metadata"]["solution"] if solved else text
        file = f"<cell {path.stem} {k} {solved}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), namespace)
    plt.close("all")
    return namespace, exercises


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_runs(path, capsys):
    start = time.perf_counter()
    _, exercises = run(path, solved=False)
    assert time.perf_counter() - start < LONGEST
    assert capsys.readouterr().out.count("no answer yet") == exercises > 1


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_exercises(path, capsys):
    _, exercises = run(path, solved=True)
    assert len(re.findall("^right$", capsys.readouterr().out, re.M)) == exercises


def test_in_order():
    assert [p.stem[:2] for p in NOTEBOOKS] == sorted({p.stem[:2] for p in NOTEBOOKS})


CELL = """import numpy as np
import gradscribe as gs

def f(x):
    return np.sum(np.sin(x) ** 2)

g = lambda x: np.cos(x[0])
slopes = gs.grad(f)(np.ones(2)), gs.grad(g)(np.ones(2))
"""


def run_cell(text, file, space):
    """As IPython does it: each statement of a cell is compiled by itself."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    for node in ast.parse(text).body:
        exec(compile(ast.Module([node], []), file, "exec"), space)


def test_a_cell_that_imports_numpy_itself():
    """CPython compiles np.sin(x) otherwise where the import stands in the same text."""
    space = {}
    run_cell(CELL, "<cell that imports numpy>", space)
    np.testing.assert_allclose(space["slopes"][0], np.sin(2 * np.ones(2)), rtol=1e-14)
    np.testing.assert_allclose(space["slopes"][1], [-np.sin(1.0), 0.0], rtol=1e-14)


@pytest.mark.parametrize("other", ["np.sin(x) * 2", "np.sin(x) ** 3", "np.cos(x) ** 2"])
def test_a_cell_that_says_something_else_by_now(other):
    space, file = {}, f"<cell that becomes {other}>"
    run_cell(CELL.split("slopes")[0], file, space)
    changed = CELL.replace("np.sin(x) ** 2", other)
    linecache.cache[file] = (len(changed), None, changed.splitlines(True), file)
    with pytest.raises(gs.TransformError, match="the source of f does not match the running function"):
        gs.grad(space["f"])(np.ones(2))
