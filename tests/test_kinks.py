"""docs/kinks.md says what is returned where a function has no derivative."""
import importlib
import warnings

import numpy as np
import pytest
from kinks import rows

import gradscribe as gs

ROWS = rows()


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A module with a function for each row, since the compiler reads sources."""
    folder = tmp_path_factory.mktemp("kinks")
    text = "import numpy as np\nfrom scipy import special\n" + "".join(
        f"\n\ndef f{i}(x):\n    return {row.expression}\n" for i, row in enumerate(ROWS))
    (folder / "functions_with_kinks.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("functions_with_kinks")


@pytest.mark.parametrize("i", range(len(ROWS)), ids=[str(r) for r in ROWS])
def test_derivative(functions, i):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = gs.grad(getattr(functions, f"f{i}"))(ROWS[i].point)
    np.testing.assert_allclose(found, ROWS[i].derivative, rtol=1e-12)


def test_the_table_is_read():
    assert len(ROWS) > 30
