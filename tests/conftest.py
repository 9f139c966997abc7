"""Golden files.

`golden(name, text)` compares text with the file `emitted/<name>` beside the test; `make golden` rewrites it.
"""
import difflib
from pathlib import Path

import pytest


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
