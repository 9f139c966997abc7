"""Arrays of other packages as arguments, and results that they take."""
import numpy as np
import pytest

import gradscribe as gs


class Tensor:
    """What another package's array shows of itself."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **words):
        return self.values.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnDevice(Tensor):
    def __dlpack__(self, **words):
        raise BufferError("it is on another device")


def f(x, w):
    return np.sum(np.sin(x) * w)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("made", [gs.grad(f), gs.jit(gs.grad(f)), gs.vmap(f, in_axes=(0, None))],
                         ids=["grad", "jit", "vmap"])
def test_arguments(made, dtype):
    x, w = np.arange(6.0).reshape(3, 2).astype(dtype), dtype(2.0)
    for _ in range(2):
        got = made(Tensor(x), w)
        np.testing.assert_array_equal(got, made(x, w))
        assert isinstance(got, np.ndarray) and got.dtype == dtype


def test_containers_keywords_and_text():
    def g(p, *, scale):
        return np.sum(p["w"] * scale) + p["b"][0]

    p = {"w": np.arange(3.0), "b": (2.0,)}
    made = gs.grad(g)
    got = made({"w": Tensor(p["w"]), "b": (2.0,)}, scale=Tensor(np.ones(3)))
    np.testing.assert_array_equal(got["w"], np.ones(3))
    assert got["b"] == (1.0,)
    assert gs.grad(f).source_for(Tensor(np.ones(3)), 2.0) == gs.grad(f).source_for(np.ones(3), 2.0)


def test_no_copy():
    x = np.ones(3)
    seen = gs.jit(lambda x: x[::1])(Tensor(x))
    assert gs.dlpack.as_numpy(Tensor(x)).ctypes.data == x.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(Tensor(seen)), x)


def test_what_numpy_does_not_take():
    with pytest.raises(gs.KindError, match="NumPy does not take this OnDevice: it is on another device"):
        gs.grad(f)(OnDevice(np.ones(3)), 2.0)
