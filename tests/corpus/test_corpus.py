"""Functions as people write them: most have a gradient, the rest are refused, and none is silently wrong."""
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent.parent / "benchmarks"


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def outcomes(tool_name, seconds):
    """How each case ended, and of those that are wrong or never ended, the details."""
    check = load(HERE / "check.py", "corpus_check")
    tool = load(BENCHMARKS / f"{tool_name}.py", tool_name)
    _, trusted = check.load_corpus("_reference")
    (module,), cases = check.load_corpus("")
    module.grad = tool.grad
    results = [(case.name, *check.check(tool, case, other, seconds)[:2]) for case, other in zip(cases, trusted)]
    bad = [f"{name}: {status}, {detail}" for name, status, detail in results if status in ("wrong", "badref")]
    return Counter(status for _, status, _ in results), bad


def test_eager():
    counts, bad = outcomes("corpus_tool", seconds=60)
    assert not bad, "\n".join(bad)
    assert counts["pass"] >= 70, dict(counts)


@pytest.mark.slow
def test_compiled():
    counts, bad = outcomes("corpus_tool_jit", seconds=180)
    assert not bad, "\n".join(bad)
    assert counts["pass"] >= 60, dict(counts)
