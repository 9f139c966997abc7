"""Every notebook runs from top to bottom; cells are compiled as notebooks do, each a file of its own in linecache."""
import json
import linecache
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_runs(path):
    namespace = {"__name__": "__main__"}
    for k, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "notebooks are kept without outputs"
        text = "".join(cell["source"])
        file = f"<cell {path.stem} {k}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), namespace)


def test_there_are_notebooks():
    assert NOTEBOOKS
