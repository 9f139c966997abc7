"""The gallery's twenty functions: the page is as the compiler is, and each derivative is right."""
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
sys.path.insert(0, str(GALLERY))
twenty, twenty_page = map(importlib.import_module, ("twenty", "twenty_page"))

GRADIENTS = {f.__name__: rest for f, *rest in twenty.programs() if f is not twenty.predict}


@pytest.mark.golden
def test_page(request):
    path, now = GALLERY / "sources.md", twenty_page.page()
    if request.config.getoption("--rewrite-golden"):
        path.write_text(now, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == now


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name):
    """Against central differences in the direction of each entry, eager and compiled."""
    f, (transformed, args, wrt) = getattr(twenty, name), GRADIENTS[name]
    places = (wrt,) if isinstance(wrt, int) else tuple(wrt)
    for gradient in (transformed, gs.jit(transformed)):
        found = gradient(*args)
        found = (found,) if isinstance(wrt, int) else found
        for k, d in zip(places, found, strict=True):
            assert np.shape(d) == np.shape(args[k])
            np.testing.assert_allclose(d, by_differences(f, args, k), rtol=2e-5, atol=1e-7)


def by_differences(f, args, k):
    def at(entry, step):
        moved = np.array(args[k], dtype=float)
        moved[entry] += step
        return f(*args[:k], moved if moved.ndim else float(moved), *args[k + 1:])
    total = np.zeros(np.shape(args[k]))
    for entry in np.ndindex(total.shape):
        h = 1e-6 * max(1.0, abs(np.asarray(args[k])[entry]))
        total[entry] = (at(entry, h) - at(entry, -h)) / (2 * h)
    return total


def test_batch():
    weights, x = twenty.programs()[-1][2]
    np.testing.assert_allclose(gs.vmap(twenty.predict, in_axes=(None, 0))(weights, x), [
        twenty.predict(weights, row) for row in x], rtol=1e-14)
