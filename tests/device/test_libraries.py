"""What the host calls of a device's libraries against what compiled code calls: NumPy stands for CuPy."""
import numpy as np
import pytest

from gradscribe.codegen.collectives import ASKED
from gradscribe.runtime.device_functions import PLAIN
from gradscribe.runtime.libraries import FUNCTIONS

RNG = np.random.default_rng(5)
SQUARE = RNG.standard_normal((3, 4, 4)) + 4 * np.eye(4)
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1)
LONG = RNG.standard_normal((2, 5, 3))
LINES = RNG.standard_normal((3, 7))
WHOLE = RNG.integers(-4, 5, (2, 3, 4))
MATRICES = [(SQUARE[0], POSITIVE[0]), (SQUARE[0], LINES[0, :4]), (LINES[0, :4], SQUARE[0]), (LINES[0], LINES[1]),
            (SQUARE[0].T, LONG[0, :4].astype(np.float32)), (SQUARE[0], POSITIVE[0], np.empty((4, 4)))]
SAMPLES = {
    "dot": MATRICES, "dot_tf32": MATRICES,
    "product": [(SQUARE, POSITIVE), (SQUARE[:1], POSITIVE), (SQUARE, POSITIVE[:1]), (SQUARE[:0], POSITIVE[:1]),
                (SQUARE.astype(np.float32), SQUARE.astype(np.float32)), (SQUARE + 1j, SQUARE - 2j)],
    "integer_product": [(WHOLE, WHOLE.transpose(0, 2, 1))],
    "solution": [(SQUARE, SQUARE[:, :, :2]), (SQUARE[:1], SQUARE), (SQUARE, SQUARE[:1]), (SQUARE[:0], SQUARE[:1])],
    "solution_of_real": [(SQUARE, SQUARE[:, :, :2]), (SQUARE[:1], SQUARE)],
    "inverse": [(SQUARE,)], "inverse_of_real": [(SQUARE,)],
    "determinant": [(SQUARE + 1j,)], "determinant_of_real": [(SQUARE,)],
    "log_determinant": [(SQUARE + 1j,)], "log_determinant_of_real": [(-SQUARE,)],
    "cholesky": [(POSITIVE,)], "cholesky_of_real": [(POSITIVE,), (POSITIVE[:0],)],
    "eigh": [(POSITIVE,)], "symmetric_values": [(POSITIVE,), (POSITIVE.astype(np.float32),)],
    "qr": [(LONG,), (SQUARE,)], "svd_thin": [(LONG,)], "svd_full": [(LONG,)],
    "pseudo_inverse": [(LONG, 1e-15), (LONG, 0.5)],
    "transform_lines": [(LINES + 0j, -1), (LINES + 0j, 1), (LINES[:, :1] + 0j, -1), (LINES[:0] + 0j, 1)],
    "half_transform_lines": [(LINES,), (LINES[:, :4],), (LINES[:, :1],), (LINES[:0],)],
    "sort_lines": [(LINES,), (LINES[:, :0],)],
    "argsort_lines": [(LINES,), (np.round(LINES),), (LINES[:0],)],
    "median_lines": [(LINES,), (LINES[:, :6].astype(np.float32),)],
    "nonzero_flat": [(np.array([0, 1, 0, 3]),), (np.zeros(3),)],
    "taken_lines": [(LINES, np.argsort(LINES, axis=1))],
    "product_tf32": [(SQUARE, POSITIVE), (SQUARE[:1], POSITIVE)],
} | {n: [(LINES[0],), (LINES[0].astype(np.float32),), (LINES[0, :0],), (WHOLE[0, 0],)] for n in (
    "running_sum", "running_sum_back", "running_product")}


def test_all_have_samples():
    """But for questions to other devices, which test_gpus.py asks."""
    assert SAMPLES.keys() == FUNCTIONS.keys() - set(ASKED)


@pytest.mark.parametrize("name", SAMPLES)
def test_as_compiled_code_has_it(name):
    for args in SAMPLES[name]:
        plain = np.dot if name.startswith("dot") else PLAIN[name.removesuffix("_tf32")]
        found, expected = FUNCTIONS[name](np, *args), plain(*args)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-5 if a.dtype.itemsize < 8 else 1e-12,
                                       atol=1e-5 if a.dtype.itemsize < 8 else 1e-13)


def test_cupy_is_told_to_look_for_singular_matrices(monkeypatch):
    """CuPy by itself gives what comes out."""
    import contextlib
    import sys
    import types

    from gradscribe.runtime.libraries import call
    asked = []

    @contextlib.contextmanager
    def errstate(linalg):
        asked.append(linalg)
        yield
    monkeypatch.setitem(sys.modules, "cupyx", types.SimpleNamespace(errstate=errstate))
    package = types.SimpleNamespace(__name__="cupy", linalg=np.linalg, sort=np.sort)
    np.testing.assert_allclose(call("inverse", package, SQUARE), np.linalg.inv(SQUARE))
    call("sort_lines", package, LINES)
    assert asked == ["raise"]
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        call("inverse", np, np.zeros((1, 2, 2)))
    assert asked == ["raise"]
