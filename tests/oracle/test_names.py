"""docs/jax_names.md has every public name of the installed JAX."""
import re
from pathlib import Path
from types import ModuleType

import jax
import jax.lax
import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "jax_names.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `([\w.]+)`$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("module", [jax, jax.lax], ids=lambda m: m.__name__)
def test_every_name(module):
    if not jax.__version__.startswith("0.10."):
        pytest.skip("the page is for another version")
    named = set(re.findall(r"`(\w+)`", SECTIONS[module.__name__]))
    public = {n for n, value in vars(module).items() if not n.startswith("_") and not n.endswith("_p")
              and not isinstance(value, ModuleType)}       # a part is there once somebody has imported it
    assert public - named == set()
