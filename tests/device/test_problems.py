"""The benchmark problems, small, by kernels run as plain Python, against the gradient that is not compiled."""
import numpy as np
import pytest
from simulated import allowed, error_of, variants

from gradscribe.runtime import device


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "variant"), variants())
def test_value_and_gradient(name, variant, dtype):
    with device.using("plain"):
        assert error_of(name, variant, dtype) <= allowed(dtype)
