"""Golden files, and which tests run.

`golden(name, text)` compares text with the file `emitted/<name>` beside the test; `make golden` rewrites it.  With
`--sample N` part of the tests runs, see `sampling.py`; `--costs FILE` writes what each test takes.
"""
import difflib
import gc
import os
from pathlib import Path

import pytest
import sampling

os.environ.setdefault("GRADSCRIBE_VERIFY", "1")             # each emitted text is checked against its normal form
gc.set_threshold(20_000, 20, 50)        # a compiler makes many small objects: by default a tenth of the time goes here


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden files instead of comparing")
    parser.addoption("--sample", type=int, help="run part of the tests, another part for each number")
    parser.addoption("--part", type=float, default=1.0, help="with --sample: which part of it")
    parser.addoption("--plain", action="store_true", help="what is lowered for Numba runs as plain Python")
    parser.addoption("--costs", help="write the processor time of each test into COSTS.<worker>")


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


def pytest_collection_modifyitems(config, items):
    """Of each rule's samples `make check` takes one in five, `make test` all."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        sample = next((v for n, v in params.items() if n in ("index", "case", "k") and isinstance(v, int)), 0)
        if "rule" in params and sample % 5:
            item.add_marker(pytest.mark.slow)
    if config.getoption("--sample") is not None:
        items[:], left = sampling.chosen(items, config.getoption("--sample"), config.getoption("--part"))
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    begin = sum(os.times()[:4])         # of this process and of those that it has started
    if getattr(item, "plain", item.config.getoption("--plain") and item.get_closest_marker("compiled") is None):
        with sampling.lowered_text_runs_as_python():
            done = yield
    else:
        done = yield
    if item.config.getoption("--costs"):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        with open(f"{item.config.getoption('--costs')}.{worker}", "a", encoding="utf-8") as file:
            file.write(f"{sum(os.times()[:4]) - begin:.3f} {item.nodeid}\n")
    return done


def pytest_terminal_summary(terminalreporter):
    """How many tests were made from the table of rules."""
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ())]
    plain = sum(n.startswith("tests/rules/") for n in passed)
    lowered = [n for n in passed if n.startswith("tests/jit/test_rules.py")]
    texts = sum("every_sample" in n for n in lowered)           # several samples each
    if plain or lowered:
        terminalreporter.write_line(f"made from the rule table and passed: {plain} with NumPy, {texts} on the text for "
                                    f"Numba, {len(lowered) - texts} with Numba")
