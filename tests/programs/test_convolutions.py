"""scipy.signal in programs: values are SciPy's, derivatives those of differences and of formulas."""
import numpy as np
import pytest
import scipy.signal
from jit import support
from rule_calls import call_of

import gradscribe as gs

FUNCTIONS = ("convolve", "correlate", "fftconvolve")
SHAPES = [((5,), (3,)), ((3,), (4,)), ((4,), (1,)), ((4, 5), (3, 2)), ((2, 3), (3, 4)), ((2, 3, 3), (2, 1, 2))]


def as_read(function, *args):
    return gs.vmap(function, (None,) * len(args), None, axis_size=1)(*args)


def pair(shapes, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in shapes]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name, shapes, mode):
    found, (a, b) = getattr(scipy.signal, name), pair(shapes)

    def f(a, b):
        return found(a, b, mode)
    wanted = f(a, b)
    got = as_read(f, a, b)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, atol=1e-13)
    single = as_read(f, a.astype(np.float32), b.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, atol=1e-5)
    dy = np.random.default_rng(1).normal(size=wanted.shape)
    da, db = gs.vjp(f, a, b)[1](dy)
    for x, dx, change in ((a, da, lambda e: f(e, b)), (b, db, lambda e: f(a, e))):
        e = np.random.default_rng(2).normal(size=x.shape)
        np.testing.assert_allclose(np.sum(dx * e), np.sum(dy * change(e)), rtol=1e-10, atol=1e-12)      # it is bilinear
        assert dx.shape == x.shape
    np.testing.assert_allclose(gs.jvp(f, (a, b), (a, b))[1], 2 * wanted, atol=1e-12)


@pytest.mark.parametrize("name, shapes, mode", [("convolve", SHAPES[0], "same"), ("correlate", SHAPES[3], "valid"),
                                                ("fftconvolve", SHAPES[3], "same"), ("fftconvolve", SHAPES[0], "full")])
def test_batches_and_compiled(name, shapes, mode):
    function, given = call_of(getattr(scipy.signal, name), pair(shapes), {"mode": mode})
    wanted = function(*given)
    found = gs.vmap(function)(*[np.stack([g, 2 * g]) for g in given])
    np.testing.assert_allclose(found, [wanted, 4 * wanted], atol=1e-12)
    assert not support.same(support.run(support.compiled(function, *given), *given), wanted)
    back = gs.vjp_of(function)
    made = support.transformed(back, wanted, *given)
    assert not support.same(support.run(made, wanted, *given), back(wanted, *given))


def test_complex_and_whole_numbers():
    a, b = pair(((4, 3), (2, 2)))
    z = a + 1j * a[::-1]
    for name in FUNCTIONS:
        found = getattr(scipy.signal, name)
        got = as_read(lambda x, y, f=found: f(y, x, "same"), z, b)
        np.testing.assert_allclose(got, found(b, z, "same"), atol=1e-13)
    n, m = np.array([1, 2, 3]), np.array([4, 5])
    assert as_read(lambda n, m: scipy.signal.convolve(n, m), n, m).tolist() == [4, 13, 22, 15]
    with pytest.raises(gs.TransformError, match="whole numbers by transforms"):
        as_read(lambda n, m: scipy.signal.fftconvolve(n, m), n, m)


def test_formula():
    """The slope of a sum over the whole convolution is the sum of the other array."""
    a, b = np.array([1.0, -2.0, 4.0]), np.array([0.5, 3.0])
    da, db = gs.grad(lambda a, b: np.sum(scipy.signal.convolve(a, b)), argnums=(0, 1))(a, b)
    assert da.tolist() == [3.5, 3.5, 3.5] and db.tolist() == [3.0, 3.0]
    assert gs.grad(lambda a: scipy.signal.correlate(a, b, "valid")[0])(a).tolist() == [0.5, 3.0, 0.0]
