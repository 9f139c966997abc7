"""What people write first: grids, histograms, Numba's functions, loops over what has few elements."""
import numba
import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])
PLACES = np.array([2, 0, 1])


@numba.vectorize
def cubed(v):
    return v * v * v


@numba.vectorize
def shrunk(a, b):
    if a > b:
        return a - b
    elif a < -b:
        return a + b
    return 0.0


@numba.vectorize(["float64(float64)", "float32(float32)"])
def halved(v):
    return v // 2 + v / 4


@numba.njit(parallel=True)
def spread(x):
    s = 0.0
    for i in numba.prange(1, x.shape[0]):
        s += x[i] ** 2
    for i in numba.prange(x.shape[0]):
        s += x[i] ** 3
    return s


class Pair:
    def __new__(cls, x, y=2.0):
        self = super().__new__(cls)
        self.x = x
        return self

    def __init__(self, x, y=2.0):
        self.y = y


class Sine:
    def __new__(cls, x):
        return np.sin(x)


def grid(x):
    n = x.shape[0]
    i, j = np.mgrid[0:n, 0:n]
    return np.sum(np.sin(x[i] * x[j]))


def open_grid(x):
    n = x.shape[0]
    i, j = np.ogrid[0:n, :n:2]
    return np.sum(np.sin(x[i] * x[j]))


def grid_of_numbers(x):
    n = x.shape[0]
    a, b, c = np.mgrid[0:n, 0:1:3j, 1:n - 1:0.5]
    return np.sum(np.sin(x[0] * a + b) * c)


def grids_with_one_axis(x):
    n = x.shape[0]
    a, b = np.mgrid[0:n], np.mgrid[0:n, ]
    return np.sum(x * a) + np.sum(b * x * x) + np.sum(np.ogrid[:n] * x) + np.sum(np.ogrid[:n, ][0] * x)


def ranges_in_brackets(x):
    n = len(x)
    return np.sum(np.r_[0:n, x, 1:n:0.25, 3:0:-1] ** 2) + np.sum(np.c_[0:n, x, x] ** 3)


def an_array_to_be_filled(x):
    y = np.ndarray(x.shape, dtype=x.dtype)
    z = np.ndarray(3)
    y[:] = x ** 2
    z[:] = x[:3]
    return np.sum(y) * np.sum(z)


def places_from_outside(x):
    return sum(v * k for v, k in zip([[x[0], x[1], x[2]][i] for i in PLACES], (1.0, 2.0, 3.0)))


def beside_few_numbers(x):
    kept = [v for v in x if v > 0]
    return sum(v * k for v, k in zip(x, (1.0, 2.0, 3.0))) + sum(k * v * v for k, v in zip([2, 3, 4, 5], kept))


def of_numbers(x):
    return np.sum(cubed(x)) + np.sum(shrunk(x, 0.4)) * cubed(x[0])


def of_numbers_for_two_arrays(x):
    return np.sum(shrunk(x, x[::-1] * 0.5) * x) + np.sum(shrunk(x[:, None], x * 0.5) ** 2)


def of_no_numbers(x):
    return np.sum(cubed(x[:0])) + np.sum(cubed(np.array([1, 2])) * x[:2])


def in_parallel(x):
    return spread(x) * x[0]


def made_by_new(x):
    return Pair(x[0]).x * Pair(x[1], x[2]).y ** 2 + Pair(x[1]).y * np.sum(Sine(x))


def tuples_as_places(x):
    i = (0, 1)
    return np.sum(x[(0, 1), ] ** 2) + np.sum(np.outer(x, x)[(0, 1), (2, 3)]) + np.outer(x, x)[i]


def element_at_a_place(x):
    a = [x[0], x[1], x[2]]
    i = int(np.argmax(x[:3]))
    a[i] = a[i] * x[3]
    return a[0] * a[1] + a[2]


def array_at_a_place(x):
    a = [x, x * 2, x * 3]
    i = int(np.argmax(x[:3]))
    a[i] = a[i] * x[3]
    return np.sum(a[0] * a[1] + a[2])


def places_in_a_loop(x):
    a = [x[0], x[1], x[2]]
    for k in range(len(x)):
        a[k % 3] = a[(k + 1) % 3] * x[k]
    return a[0] * a[1] + a[2]


def place_in_a_branch(x):
    a = [x[0], x[1], x[2]]
    b = a
    if x[0] > 0:
        a[int(np.argmin(x[:3]))] = x[3] * 2
    return a[0] * b[1] + a[2] * len(b)


def place_from_the_end(x):
    a = [x[0], x[1], x[2]]
    i = int(np.argmin(x[:3])) - 3
    a[i] = x[3] * 2
    a[i] += x[0]
    return a[0] * a[1] + a[2] * x[0]


def sorted_by_hand(x):
    a = [x[0], x[1], x[2], x[3]]
    n = len(x)
    for _ in range(n):
        for j in range(n - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a[0] + 2 * a[1] * a[2]


def sums_by_place(x):
    a = [0] * 3
    for v in x:
        a[int(v > 0.5)] += v * v
    return a[0] * a[1]


def counts_by_place(x):
    a = [0, 0]
    for v in x:
        a[int(v > 0.5)] += 1
    return a[0] * x[0] + a[1] * x[1]


@pytest.mark.parametrize("f", [
    tuples_as_places, element_at_a_place, array_at_a_place, places_in_a_loop, place_in_a_branch, place_from_the_end,
    sorted_by_hand, sums_by_place, counts_by_place,
    grid, open_grid, grid_of_numbers, grids_with_one_axis, ranges_in_brackets, an_array_to_be_filled,
    places_from_outside, beside_few_numbers, of_numbers, of_numbers_for_two_arrays, of_no_numbers, in_parallel,
    made_by_new], ids=lambda f: f.__name__)
def test_derivatives(f):
    want = differences(f, X)
    for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(gradient(X), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gs.jvp(f, (X,), (np.linspace(1, 2, 4),)), (f(X), want @ np.linspace(1, 2, 4)), rtol=1e-6)
    xs = np.stack([X, 0.5 * X])
    np.testing.assert_allclose(gs.vmap(f)(xs), [f(x) for x in xs], rtol=1e-12)


def test_the_number_of_bins_is_an_argument():
    def f(weights, values, n):
        return np.sum(np.histogram(values, n, weights=weights)[0] ** 2)
    values = np.linspace(0, 1, 4)
    for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(gradient(X, values, 2), [-0.4, -0.4, 3.6, 3.6], rtol=1e-12)
        np.testing.assert_allclose(gradient(X, values, 3), [0.6, -1.0, 3.6, 3.6], rtol=1e-12)


def test_functions_of_numbers_themselves():
    assert gs.grad(cubed)(0.3) == pytest.approx(0.27, rel=1e-14)
    assert gs.grad(shrunk, (0, 1))(0.3, 0.2) == (1.0, -1.0)
    np.testing.assert_array_equal(gs.vmap(gs.grad(shrunk, 1))(X, np.full(4, 0.4)), [0.0, 1.0, -1.0, -1.0])
    np.testing.assert_allclose(gs.jit(cubed)(X), X ** 3, rtol=1e-14)
    assert gs.grad(cubed)(np.float32(0.5)).dtype == np.float32


def test_a_whole_array_is_one_line():
    assert "x * x" in gs.grad(lambda x: np.sum(cubed(x))).source_for(X)
    assert "for" not in gs.grad(lambda x: np.sum(cubed(x))).source_for(X)


def test_a_place_that_is_not_there_raises():
    def f(x):
        a = [x[0], x[1]]
        a[int(np.sum(x > 0))] = 1.0
        return a[0] * a[1]
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        with pytest.raises(IndexError):
            g(X)
        np.testing.assert_array_equal(g(-np.abs(X)), [0.0, 1.0, 0.0, 0.0])


def test_a_list_that_is_written_into_is_printed_as_one():
    source = gs.grad(places_in_a_loop).source_for(X)
    assert "    a = [x[0], x[1], x[2]]\n" in source and "copy" not in source


def weights_from_numbers(x):
    return sum(v * k for v, k in zip(x, (1.0, 2.0, 3.0, 4.0)))


def number_at_a_place(x):
    a = [1.0, 2.0]
    return x[0] * a[int(np.argmax(x[:2]))] * x[1]


def whole_numbers_beside(x):
    return sum(v * k for v, k in zip(x[np.array([0, 0, 2])], (1, 2, 3)))


@pytest.mark.parametrize("f", [weights_from_numbers, number_at_a_place, whole_numbers_beside], ids=lambda f: f.__name__)
def test_numbers_of_pythons_do_not_widen(f):
    x = X.astype(np.float32)
    for made in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
        value, slope = made(x)
        assert value.dtype == f(x).dtype and slope.dtype == np.float32
        np.testing.assert_allclose(slope, differences(f, X), rtol=1e-5)
    assert gs.jvp(f, (x,), (x,))[1].dtype == f(x).dtype


def test_a_loop_that_is_there_is_taken():
    """Whole numbers, and numbers in single precision, go into the first loop that takes them: that of doubles."""
    def f(x):
        return np.sum(halved(np.array([3, 10 ** 17])) * x[:2]) + np.sum(halved(x))
    for g in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
        value, slope = g(X)
        assert value == pytest.approx(f(X), rel=1e-14)
        np.testing.assert_allclose(slope, [1.75 + 0.25, 7.5e16 + 0.25, 0.25, 0.25], rtol=1e-14)
    x = X.astype(np.float32)
    assert gs.jvp(halved, (x,), (x,))[0].dtype == halved(x).dtype == np.float64


def test_what_a_backward_loop_walks_over_is_made_once():
    source = gs.grad(weights_from_numbers).source_for(X)
    assert source.index("np.array([1.0, 2.0, 3.0, 4.0])") < source.index("for i in reversed")
