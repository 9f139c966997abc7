"""docs/errors.md: each block that is not run raises what stands below it; the tables name what the compiler refuses."""
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.passes.language import REFUSED

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"<!-- not run -->\n```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block, message", SHOWN, ids=[m.split("\n")[0][:60] for _, m in SHOWN])
def test_message(block, message, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(block, encoding="utf-8")
    with pytest.raises(gs.TransformError) as caught:
        runpy.run_path(str(path), {"np": np, "gs": gs, "x": np.array([0.5, 1.5, 2.5])})
    assert f"{type(caught.value).__name__}: {caught.value}\n" == message


def test_every_block_has_its_message():
    assert PAGE.count("<!-- not run -->") == len(SHOWN) > 10


@pytest.mark.parametrize("name", REFUSED)
def test_the_table_names(name):
    assert REFUSED[name][0].removesuffix(" cannot be undone in the backward sweep") in PAGE


@pytest.mark.parametrize("name", ["LanguageError", "RuleError", "ShapeError", "KindError"])
def test_each_class_has_a_section(name):
    assert f"\n## {name}\n" in PAGE
