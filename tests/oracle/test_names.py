"""Every public name of the installed JAX is ours too, or gradscribe/jax_names.py says what stands in its place."""
import importlib
import re
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradscribe as gs
from gradscribe import jax_names

pytestmark = pytest.mark.skipif(not jax.__version__.startswith("0.10."), reason="the table is for another version")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "jax_names.md"
MODULES = [name for name in jax_names.TABLE if name != "jax.Array"]


def ours(module):
    return importlib.import_module("gradscribe" + module.removeprefix("jax"))


def rows(module):
    return {name for row in jax_names.TABLE[module] for name in row.names.split()}


@pytest.mark.parametrize("module", MODULES)
def test_every_name(module):
    theirs = importlib.import_module(module)
    public = {n for n, value in vars(theirs).items() if not n.startswith("_") and not n.endswith("_p")
              and not isinstance(value, ModuleType)}       # a part is there once somebody has imported it
    if "example_libraries" in module:                      # what it imports for itself
        public -= {"annotations", "map", "namedtuple", "partial", "safe_map", "safe_zip", "unzip2", "zip", "Any",
                   "Callable", "NamedTuple"}
    assert {n for n in public - rows(module) if not hasattr(ours(module), n)} == set()
    assert rows(module) & set(ours(module).__all__) == set()


def test_every_attribute_of_an_array():
    theirs = {n for n in dir(jnp.ones(2)) if not n.startswith("_")}
    assert theirs - set(dir(np.ones(2))) == rows("jax.Array") & theirs
    assert rows("jax.Array") - theirs == set()


def test_the_page():
    assert PAGE.read_text(encoding="utf-8") == jax_names.page()
    named = re.findall(r"`gs\.([\w.]+)", jax_names.page())
    for name in named:
        if name.split(".")[-1] != "py" and name != "block_until_ready":
            value = gs
            for part in name.split("."):
                value = getattr(value, part)
