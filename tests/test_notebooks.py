"""Every notebook runs from top to bottom, as it is and with its exercises solved; its cells are files in linecache."""
import json
import linecache
import re
import time
from pathlib import Path

import pytest

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
