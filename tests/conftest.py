"""Golden files.

`golden(name, text)` compares text with the file `emitted/<name>` beside the test; `make golden` rewrites it.
"""
import difflib
import gc
import os
from pathlib import Path

import pytest

os.environ.setdefault("GRADSCRIBE_VERIFY", "1")             # each emitted text is checked against its normal form
gc.set_threshold(20_000, 20, 50)        # a compiler makes many small objects: by default a tenth of the time goes here


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture
def golden(request):
    folder = Path(request.path).parent / "emitted"

    def compare(name, text):
        path = folder / name
        if request.config.getoption("--rewrite-golden"):
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no golden file {name}: run `make golden` and look at what it shows"
        expected = path.read_text(encoding="utf-8")
        change = "\n".join(difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
        assert text == expected, f"{name} is not what it was:\n{change}"

    return compare


def pytest_collection_modifyitems(items):
    """Of each rule's samples `make check` takes one in five, `make test` all."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        sample = next((v for n, v in params.items() if n in ("index", "case", "k") and isinstance(v, int)), 0)
        if "rule" in params and sample % 5:
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter):
    """How many tests were made from the table of rules."""
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ())]
    plain = sum(n.startswith("tests/rules/") for n in passed)
    lowered = [n for n in passed if n.startswith("tests/jit/test_rules.py")]
    texts = sum("every_sample" in n for n in lowered)           # several samples each
    if plain or lowered:
        terminalreporter.write_line(f"made from the rule table and passed: {plain} with NumPy, {texts} on the text for "
                                    f"Numba, {len(lowered) - texts} with Numba")
