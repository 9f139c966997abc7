"""Every notebook runs from top to bottom, as it is and with its exercises solved; its cells are files in linecache."""
import ast
import contextlib
import io
import json
import linecache
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
LONGEST = 120                       # seconds


def printed(cell):
    """What a cell printed when it was stored, without colours."""
    text = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
    return re.sub(r"\x1b\[\d*m", "", text)


def masked(text):
    """Text without its numbers, which are times and last digits (those differ from machine to machine), and places."""
    text = re.sub(r"Cell In\[\d+\], line \d+|<cell [^>]*>:\d+", "place", text)
    return re.sub(r"-?\d[\d.,]*(e[-+]?\d+)?", "#", text)


def run(path, solved):
    """The names that a notebook leaves, and how many exercises it has."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    namespace, exercises = {"__name__": "__main__"}, 0
    for k, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        text = "".join(cell["source"])
        if "solution" in cell["metadata"]:
            exercises += 1
            text = cell["metadata"]["solution"] if solved else text
        file = f"<cell {path.stem} {k} {solved}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, file, "exec"), namespace)
        print(out.getvalue(), end="")
        if not solved:
            assert masked(out.getvalue()) == masked(printed(cell)), "`make notebooks` writes what a cell prints now"
    plt.close("all")
    return namespace, exercises


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_runs(path, capsys):
    start = time.perf_counter()
    _, exercises = run(path, solved=False)
    assert time.perf_counter() - start < LONGEST
    assert capsys.readouterr().out.count("no answer yet") == exercises > 1


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_exercises(path, capsys):
    _, exercises = run(path, solved=True)
    assert len(re.findall("^right$", capsys.readouterr().out, re.M)) == exercises


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_outputs_are_stored(path):
    """A reader sees them without running anything: from top to bottom, no errors, nothing that was warned of."""
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    outputs = [o for c in cells for o in c["outputs"]]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    assert outputs and {o["output_type"] for o in outputs} <= {"stream", "execute_result", "display_data"}
    assert all(o["name"] == "stdout" for o in outputs if o["output_type"] == "stream")
    assert any("data-from" in str(o) or "image/png" in str(o) for o in outputs)


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


class Kernel:
    """A kernel of Jupyter's, by its protocol: what it says of each cell."""

    def __init__(self, client):
        self.client = client

    def run(self, cell):
        said = []
        self.client.execute_interactive(cell, timeout=120, output_hook=lambda m: said.append(
            (m["header"]["msg_type"], m["content"])))
        return [(kind, content) for kind, content in said if kind not in ("status", "execute_input")]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    pytest.importorskip("ipykernel")
    manager = pytest.importorskip("jupyter_client.manager").KernelManager()
    root = Path(__file__).resolve().parent.parent
    manager.start_kernel(cwd=str(tmp_path_factory.mktemp("kernel")), env={
        **os.environ, "PYTHONPATH": str(root), "GRADSCRIBE_CACHE": str(tmp_path_factory.mktemp("cache"))})
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=120)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


FIRST = """import numpy as np
import gradscribe as gs

def f(x):
    return np.sum(np.sin(x) ** 2)

gs.grad(f)(np.ones(2))
"""
REFUSED = """def g(x):

    return np.sum(np.median(x, overwrite_input=True))

def outer(x):
    return gs.grad(g)(x)

outer(np.ones(2))
"""


def test_a_kernel_runs_the_first_cell(kernel):
    (kind, shown), = kernel.run(FIRST)
    assert kind == "execute_result"
    assert shown["data"]["text/plain"] == "array([0.90929743, 0.90929743])"         # sin(2)
    (kind, shown), = kernel.run(FIRST.replace("** 2", "** 3"))                      # f is another function by now
    assert shown["data"]["text/plain"] == "array([1.1477211, 1.1477211])"           # 3 sin(1)^2 cos(1)
    (kind, shown), = kernel.run("gs.jit(gs.grad(f))(np.ones(2)).round(8)")
    assert shown["data"]["text/plain"] == "array([1.1477211, 1.1477211])"


def test_a_kernel_shows_both_texts(kernel):
    kernel.run(FIRST)
    assert kernel.run("%load_ext gradscribe") == []
    (kind, shown), = kernel.run("%%gradscribe --grad w --args 'float64[3], float64[n, 3]'\n"
                                "def h(w, x):\n    return np.sum((x @ w) ** 2)\n")
    assert kind == "execute_result"
    assert "def grad_h(w, x):" in shown["data"]["text/plain"]
    assert "<h4>h</h4>" in shown["data"]["text/html"]
    assert "<h4>grad_h</h4>" in shown["data"]["text/html"]
    (kind, shown), = kernel.run("gs.grad(h)(np.ones(3), np.ones((1, 3)))")
    assert shown["data"]["text/plain"] == "array([6., 6., 6.])"


def test_a_kernel_shows_a_refusal(kernel):
    kernel.run(FIRST)
    (kind, shown), = kernel.run(REFUSED)
    assert kind == "error"
    assert shown["ename"] == "RuleError"
    lines = "\n".join(shown["traceback"])
    text = re.sub(r"\x1b\[\d*m", "", lines)
    cell = re.search(r"In\[\d+\]", text)[0]
    assert text == f"""Cell {cell}, line 8
    outer(np.ones(2))
Cell {cell}, line 6, in outer
    return gs.grad(g)(x)

RuleError: np.median: got an unexpected keyword argument overwrite_input
  Cell {cell}, line 3, in g
    return np.sum(np.median(x, overwrite_input=True))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  Its rule understands (x, axis, keepdims). To add to it: docs/rules.md"""
    assert "\x1b[31m                  ^^^^" in lines


def test_a_kernel_shows_no_control_characters(kernel):
    """A terminal and a page would obey them; what is marked up is Jupyter's to escape."""
    kernel.run(FIRST)
    (kind, shown), = kernel.run("def k(x):\n    return np.sum(x) + open('<b>\x1b[2J</b>')\n\ngs.grad(k)(np.ones(2))")
    assert kind == "error"
    lines = "\n".join(shown["traceback"])
    assert "open('<b>\\x1b[2J</b>')" in lines
    assert "\x1b[2J" not in lines


def test_a_kernel_shows_what_was_handled(kernel):
    kernel.run(FIRST)
    (kind, shown), = kernel.run("try:\n    {}['a']\nexcept KeyError:\n    gs.grad(1)")
    text = "\n".join(shown["traceback"])
    assert kind == "error"
    assert "KeyError: 'a'" in text
    assert "During handling of the above exception" in text
    assert "KindError" in text
