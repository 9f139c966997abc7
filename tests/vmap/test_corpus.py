"""vmap of small functions as people write them, of their gradients, and gradients of it."""
import sys
from pathlib import Path

import corpus_vmap
import pytest

import gradscribe as gs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "corpus"))
import check as corpus  # noqa: E402  (its folder is no package)

(MODULE,), CASES = corpus.load_corpus("_vmap")
MODULE.grad = lambda f, argnums=0: gs.grad(f, argnums)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_eager(case):
    found = corpus_vmap.check(case, False)
    assert all(kind == "right" for kind, _ in found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[::6], ids=lambda c: c.name)
def test_compiled(case):
    found = corpus_vmap.check(case, True)
    assert all(kind in ("right", "refused") for kind, _ in found.values()), found
