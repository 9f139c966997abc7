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
    assert gs.given.as_numpy(Tensor(x)).ctypes.data == x.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(Tensor(seen)), x)


def test_what_numpy_does_not_take():
    with pytest.raises(gs.KindError, match="NumPy does not take this OnDevice: it is on another device"):
        gs.grad(f)(OnDevice(np.ones(3)), 2.0)


class Image:
    """What shows itself by NumPy's older protocol, as a class says it."""

    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Frame:
    """The same, as an object says it."""

    def __init__(self, values):
        self.__array_struct__, self.held = values.__array_struct__, values


@pytest.mark.parametrize("kind", [Tensor, Image, Frame])
def test_each_transformation(kind):
    x = np.arange(3.0)

    def g(x):
        return np.sum(np.sin(x))
    there = kind(x)
    for wrap in (lambda f: f, gs.jit):
        for _ in range(2):
            np.testing.assert_array_equal(wrap(gs.grad(g))(there), np.cos(x))
            np.testing.assert_array_equal(wrap(gs.vmap(lambda v: 2.0 * v))(there), 2.0 * x)
    assert gs.jit(g)(there) == g(x)
    y, tangent = gs.jvp(g, (there,), (there,))
    assert y == g(x) and tangent == pytest.approx(np.sum(np.cos(x) * x), rel=1e-15)
    y, pull = gs.vjp(g, there)
    np.testing.assert_array_equal(pull(1.0)[0], np.cos(x))
    y, push = gs.linearize(lambda x: np.sin(x), there)
    np.testing.assert_array_equal(push(there), np.cos(x) * x)
    assert gs.eval_shape(g, {"k": there}["k"]).shape == ()
    np.testing.assert_array_equal(gs.grad(lambda p: np.sum(p["k"][0] ** 2))({"k": [there]})["k"][0], 2.0 * x)


def test_the_interface_is_no_copy():
    x = np.zeros(3)

    def write(x):
        x[1] = 2.0
    gs.jit(write)(Image(x))
    assert x.tolist() == [0.0, 2.0, 0.0]


def test_an_interface_that_describes_no_numbers():
    class Wrong:
        __array_interface__ = {"version": 3, "shape": (2,), "typestr": "<f8", "data": None}
    with pytest.raises(gs.KindError, match="NumPy does not take this Wrong"):
        gs.grad(f)(Wrong(), 2.0)


class Series:
    """A class that makes an array of itself, and has another meaning of operators."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __mul__(self, other):
        return Series(10.0 * self.values)


@pytest.mark.parametrize("given", [Series(np.ones(3)), memoryview(np.ones(3)), memoryview(b"12345678")])
@pytest.mark.parametrize("made", [gs.grad(f), gs.jit(f), gs.vmap(f, in_axes=(None, 0))], ids=["grad", "jit", "vmap"])
def test_what_only_becomes_an_array_is_not_taken(made, given):
    with pytest.raises(gs.TransformError, match="an array is needed, a (Series|memoryview) is given") as error:
        made(given, np.ones(3))
    assert "np.asarray(x)" in str(error.value)
