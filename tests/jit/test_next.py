"""np.nextafter and np.spacing, compiled: NumPy's numbers bit by bit, in both precisions."""
import numpy as np
import pytest

import gradscribe as gs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_bits(dtype):
    info, bits = np.finfo(dtype), np.uint32 if dtype == np.float32 else np.uint64
    some = np.array([0.0, 1.0, 2.0, 3.5, 0.1, 1024.0, info.tiny, info.tiny / 2, info.smallest_subnormal, info.max,
                     np.inf], dtype)
    drawn = np.random.default_rng(0).integers(0, np.iinfo(bits).max, 2000, dtype=bits).view(dtype)
    x = np.concatenate([some, -some, np.array([np.nan], dtype), drawn])
    after, spacing = gs.jit(lambda x, y: np.nextafter(x, y)), gs.jit(lambda x: np.spacing(x))
    with np.errstate(all="ignore"):
        for y in (x[::-1], *(np.full_like(x, v) for v in (np.inf, -np.inf, 0.0, np.nan)), x):
            got, want = after(x, np.ascontiguousarray(y)), np.nextafter(x, y)
            assert got.dtype == dtype
            same = (got.view(bits) == want.view(bits)) | np.isnan(got) & np.isnan(want)
            assert same.all(), x[~same]
        np.testing.assert_array_equal(spacing(x), np.spacing(x))
    assert after(dtype(1.0), 2.0) == np.nextafter(dtype(1.0), dtype(2.0))
