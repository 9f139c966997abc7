"""Every block of Python in the documentation runs, and every doctest of the compiler holds.

The blocks of one page run in order in one module, so that a page may build on what it said.  A block after
`<!-- not run -->` is left out, and one after `<!-- printed -->` is among what the page prints.
"""
import doctest
import importlib
import linecache
import re
import sys
from pathlib import Path

import pytest
import scipy.linalg  # noqa: F401  (its table is read now, not in a test)
import scipy.special  # noqa: F401

from gradscribe.ast_transform.core.rule import RULES

pytestmark = pytest.mark.compiled

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONAL = {"pandas", "pint", "xarray"}      # packages that a page may need
BLOCK = re.compile(r"(<!-- (?:not run|printed) -->\n+)?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"<!-- printed -->\n+^```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if not match[1]:
            yield text[:match.start(2)].count("\n"), match[2]


@pytest.fixture(autouse=True)
def rules_as_before():
    """What an example adds to the table is its own."""
    RULES.complete()
    before = set(RULES)
    yield
    for function in set(RULES) - before:
        del RULES[function]


@pytest.mark.parametrize("page", PAGES, ids=[p.relative_to(ROOT).as_posix() for p in PAGES])
def test_blocks_run(page, tmp_path, monkeypatch, capsys):
    """The blocks are written to a file, since the compiler reads sources; what a page says of its output is so."""
    lines = []
    for line, block in blocks(page):
        lines += [""] * (line - len(lines)) + block.splitlines()        # the page's own line numbers
    name = "page_" + re.sub(r"\W", "_", page.stem)
    (tmp_path / f"{name}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
    sys.modules.pop(name)
    out = placeless(capsys.readouterr().out)
    for printed in PRINTED.findall(page.read_text(encoding="utf-8")):
        assert placeless(printed) in out


def placeless(text):
    """A page's blocks stand in a file of another name, on other lines, than a reader's."""
    return re.sub(r"from line \d+ of", "from line 1 of", re.sub(r"\S+\.py:\d+", "model.py:1", text))


# Modules whose examples need a package that is installed for no test.
OPTIONAL = {"gradscribe.torch": "torch"}


def modules():
    """The dotted names of all files of the four packages, three of which are installed under the first."""
    found = []
    for folder in ("gradscribe", "codegen", "ast_transform", "runtime"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found.append(".".join(parts if folder == "gradscribe" else ("gradscribe", *parts)))
    return found


@pytest.mark.parametrize("name", modules())
def test_doctests(name, monkeypatch):
    """Each example makes a debugger, which looks on the disk for every text that was ever emitted in this process."""
    checked = linecache.checkcache
    monkeypatch.setattr(linecache, "checkcache", lambda filename=None: filename and checked(filename))
    if name.endswith("__main__"):
        return
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed
