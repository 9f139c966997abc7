"""The last column of docs/kinks.md is what JAX returns."""
import numpy as np
import pytest
from kinks import rows

jax = pytest.importorskip("jax")
special = pytest.importorskip("jax.scipy.special")
jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("row", rows(), ids=str)
def test_as_in_jax(row):
    f = eval(f"lambda x: {row.expression}", {"np": jax.numpy, "special": special})
    found = jax.grad(f)(row.point)
    np.testing.assert_allclose(found, row.jax, rtol=1e-12)
