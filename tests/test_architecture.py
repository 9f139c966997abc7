"""ARCHITECTURE.md: its forms are what the compiler prints now, its files exist, its search terms find their files."""
import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
TEXT = PAGE.read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "docs"))
architecture_forms = importlib.import_module("architecture_forms")

PARAGRAPHS = re.findall(r"^- .*(?:\n  .*)*", TEXT, re.MULTILINE)
CELL = re.compile(r"(?<=\| )([^|`]+) \| `([^`|]+)`(?= \|)")
TERMS = CELL.findall(TEXT.partition("## Where to find what")[2])


@pytest.mark.golden
def test_forms(request):
    now = architecture_forms.with_forms(TEXT)
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(now, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == now


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_the_files_of_a_paragraph_are_in_its_folders():
    assert len(PARAGRAPHS) > 15
    for paragraph in PARAGRAPHS:
        folders = re.findall(r"\*\*`([^`]+/)`\*\*", paragraph)
        for name in re.findall(r"`([^`*]+\.py)`", paragraph):
            places = [ROOT / f / name for f in folders] + [ROOT / folders[0] / ".." / name]
            assert any(p.exists() for p in places), f"{name} is in none of {folders}"


def docstrings(place):
    """Module docstrings of a file, or of all files in a folder."""
    for path in place.rglob("*.py") if place.is_dir() else [place]:
        yield ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


@pytest.mark.parametrize("term, place", TERMS, ids=[term for term, _ in TERMS])
def test_a_search_for_a_term_finds_its_file(term, place):
    lines = [line.lower() for text in docstrings(ROOT / place) for line in text.splitlines()]
    assert any(term.lower() in line for line in lines), f"no docstring in {place} says {term!r}"


def test_the_table_is_read_whole():
    assert len(TERMS) >= 20 and {"alias analysis", "translation validation"} <= {term for term, _ in TERMS}
