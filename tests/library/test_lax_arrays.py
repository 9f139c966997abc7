# SPDX-License-Identifier: Apache-2.0
"""The array functions of gs.lax against loops, differences and NumPy: eager, compiled, differentiated, batched."""
import doctest
import importlib
import itertools

import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(3)
LAST = ("NHWC", "HWIO", "NHWC")
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("name", ["convolution", "windows", "slicing", "ordering", "operators", "segments",
                                  "scattering", "linalg"])
def test_examples_in_the_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(f"gradscribe.lax.{name}"))
    assert outcome.attempted and not outcome.failed


def by_loops(x, w, strides, dilation):
    """The definition: one number of the kernel and one of the image at a time; nothing is padded."""
    n, height, width, _ = x.shape
    rows, columns, c, o = w.shape
    high = (height - (rows - 1) * dilation[0] - 1) // strides[0] + 1
    wide = (width - (columns - 1) * dilation[1] - 1) // strides[1] + 1
    out = np.zeros((n, high, wide, o))
    for b, p, q, f, i, j, k in itertools.product(*map(range, (n, high, wide, o, rows, columns, c))):
        place = b, p * strides[0] + i * dilation[0], q * strides[1] + j * dilation[1], k
        out[b, p, q, f] += x[place] * w[i, j, k, f]
    return out


@pytest.mark.parametrize("strides, dilation", [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 2), (2, 1))])
def test_convolutions_are_their_definition(strides, dilation):
    x, w = rng.standard_normal((2, 6, 7, 3)), rng.standard_normal((2, 3, 3, 2))
    out = gs.lax.conv_general_dilated(x, w, strides, "VALID", rhs_dilation=dilation, dimension_numbers=LAST)
    np.testing.assert_allclose(out, by_loops(x, w, strides, dilation), **CLOSE)
    first = gs.lax.conv_general_dilated(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), strides, [(1, 0), (0, 2)],
                                        rhs_dilation=dilation)
    padded = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)))
    np.testing.assert_allclose(first.transpose(0, 2, 3, 1), by_loops(padded, w, strides, dilation), **CLOSE)


def test_transposed_convolution_is_the_derivative_of_the_convolution():
    x, w, y = rng.standard_normal((2, 7, 9, 3)), rng.standard_normal((3, 2, 3, 4)), rng.standard_normal((2, 3, 4, 4))
    dx = gs.grad(lambda x: np.sum(y * gs.lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=LAST)))(x)
    back = gs.lax.conv_transpose(y, w, (2, 2), "VALID", transpose_kernel=True)
    np.testing.assert_allclose(back, dx[:, :7, :8], **CLOSE)
    assert np.all(dx[:, :, 8] == 0.0)       # the column that no window reaches


def loss(x, w):
    return np.sum(np.tanh(gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAST)))


def test_gradient_of_a_convolution_by_differences_and_compiled():
    x, w = rng.standard_normal((2, 5, 4, 2)), rng.standard_normal((3, 2, 2, 3))
    dx, dw = gs.grad(loss, argnums=(0, 1))(x, w)
    step = 1e-6
    for value, derivative in ((x, dx), (w, dw)):
        for at in itertools.islice(np.ndindex(*value.shape), 0, None, 7):
            kept = value[at]
            value[at] = kept + step
            above = loss(x, w)
            value[at] = kept - step
            below = loss(x, w)
            value[at] = kept
            assert abs((above - below) / (2 * step) - derivative[at]) < 1e-8
    for one, other in zip(gs.jit(gs.grad(loss, argnums=(0, 1)))(x, w), (dx, dw)):
        np.testing.assert_allclose(one, other, **CLOSE)


def test_gradient_of_a_convolution_is_two_products_for_each_position():
    def valid(x, w):
        return np.sum(gs.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=LAST) ** 2)

    x, w = rng.standard_normal((2, 5, 4, 2)), rng.standard_normal((3, 2, 2, 3))
    text = gs.grad(valid, argnums=(0, 1)).source_for(x, w)
    assert text.count("@") - text.count("# out += x[:, rows, columns].reshape(pixels, c) @ w[i, j]") == 3
    assert "unbroadcast" not in text and "_saved" not in text


@pytest.mark.parametrize("kind, init, reduce", [(np.add, 0.0, np.sum), (np.maximum, -np.inf, np.max),
                                                (np.minimum, np.inf, np.min), (np.multiply, 1.0, np.prod)])
def test_windows_are_their_definition(kind, init, reduce):
    x = rng.standard_normal((5, 7))
    out = gs.lax.reduce_window(x, init, kind, (2, 3), (1, 2))
    wanted = [[reduce(x[i:i + 2, j:j + 3]) for j in range(0, 5, 2)] for i in range(4)]
    np.testing.assert_allclose(out, wanted, **CLOSE)
    surrounded = gs.lax.reduce_window(x, init, kind, (2, 3), (1, 2), [(1, 0), (0, 2)])
    np.testing.assert_allclose(surrounded[1:, :3], wanted, **CLOSE)


def test_windows_with_functions_of_ones_own():
    x = rng.uniform(0.5, 1.5, (4, 6))
    out = gs.lax.reduce_window(x, 0.0, lambda a, b: np.sqrt(a * a + b * b), (2, 2), (2, 2))
    np.testing.assert_allclose(out, np.sqrt(gs.lax.reduce_window(x * x, 0.0, np.add, (2, 2), (2, 2))), **CLOSE)

    def norm(x):
        return np.sum(gs.lax.reduce_window(x, 0.0, lambda a, b: np.sqrt(a * a + b * b), (2, 2), (2, 2)))

    np.testing.assert_allclose(gs.grad(norm)(x), x / np.kron(out, np.ones((2, 2))), **CLOSE)


def test_pools():
    x = rng.standard_normal((2, 4, 6, 3))
    blocks = x.reshape(2, 2, 2, 3, 2, 3)
    np.testing.assert_array_equal(gs.lax.max_pool(x, (2, 2), (2, 2)), blocks.max(axis=(2, 4)))
    np.testing.assert_array_equal(gs.lax.min_pool(x, (2, 2), (2, 2)), blocks.min(axis=(2, 4)))
    np.testing.assert_allclose(gs.lax.avg_pool(x, (2, 2), (2, 2)), blocks.mean(axis=(2, 4)), **CLOSE)
    ones = np.ones((1, 3, 1))
    assert gs.lax.avg_pool(ones, (3,), (1,), "SAME")[0, :, 0].tolist() == [2 / 3, 1.0, 2 / 3]
    assert gs.lax.avg_pool(ones, (3,), (1,), "SAME", count_include_pad=False)[0, :, 0].tolist() == [1.0, 1.0, 1.0]
    assert gs.lax.max_pool(np.array([[[3], [-4]]], np.int8), (2,), (1,), "SAME").tolist() == [[[3], [-4]]]


def test_the_first_of_equal_extremes_has_the_derivative():
    x = np.array([[1.0, 1.0], [1.0, 0.0]])
    largest = gs.grad(lambda x: np.sum(gs.lax.reduce_window(x, -np.inf, np.maximum, (2, 2))))
    assert largest(x).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def pooled(x):
    return np.sum(gs.lax.max_pool(x, (2, 2), (2, 2)) ** 2)


def test_gradient_of_a_pool_compiled_and_batched():
    x = rng.standard_normal((3, 2, 4, 4, 2))
    wanted = np.stack([gs.grad(pooled)(image) for image in x])
    np.testing.assert_allclose(gs.jit(gs.grad(pooled))(x[0]), wanted[0], **CLOSE)
    np.testing.assert_allclose(gs.vmap(gs.grad(pooled))(x), wanted, **CLOSE)


def walk(x, starts):
    total = 0.0
    for i in range(len(starts)):
        part = gs.lax.dynamic_slice(x, (starts[i], 0), (2, 3))
        x = gs.lax.dynamic_update_slice(x, part * 2.0, (starts[i] - 1, 1))
        total += np.sum(np.sin(part))
    return total + np.sum(x)


def test_slices_in_a_loop_compiled():
    x, starts = rng.standard_normal((5, 4)), np.array([3, -2, 0, 9])
    gradient = gs.grad(walk)
    derivative = gradient(x, starts)
    np.testing.assert_allclose(gs.jit(gradient)(x, starts), derivative, **CLOSE)
    direction = rng.standard_normal(x.shape)
    slope = (walk(x + 1e-6 * direction, starts) - walk(x - 1e-6 * direction, starts)) / 2e-6
    assert abs(slope - np.sum(direction * derivative)) < 1e-7


def test_orders():
    x = rng.standard_normal((4, 6))
    values, places = gs.lax.top_k(x, 2)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    chosen = gs.grad(lambda x: np.sum(gs.lax.top_k(x, 2)[0]))
    np.testing.assert_array_equal(chosen(x), (x >= values[:, 1:]).astype(float))
    np.testing.assert_array_equal(gs.jit(chosen)(x), chosen(x))
    np.testing.assert_allclose(gs.lax.cumlogsumexp(x, 1), np.log(np.cumsum(np.exp(x), axis=1)), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(gs.lax.cummin(x, 0, reverse=True), np.minimum.accumulate(x[::-1], axis=0)[::-1])
    far = np.array([-800.0, 0.0, 800.0, 0.0])
    assert gs.lax.cumlogsumexp(far).tolist() == [-800.0, 0.0, 800.0, 800.0]


def test_names_of_numpy_are_read_as_numpys():
    text = gs.grad(lambda x: gs.lax.sin(x)).source_for(0.7)
    assert "return np.cos(x)" in text and "lax" not in text


def test_products_of_segments_have_a_derivative():
    x, ids = rng.uniform(0.5, 2.0, 6), np.array([0, 1, 0, 2, 1, 0])
    weights = np.array([1.0, -2.0, 3.0])
    out = gs.lax.segment_prod(x, ids, 3)
    dx = gs.grad(lambda x: np.sum(weights * gs.lax.segment_prod(x, ids, 3)))(x)
    np.testing.assert_allclose(dx, (weights * out)[ids] / x, **CLOSE)


REFUSED = [
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1,), "SAME"), "window_strides has 1 numbers"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), "FULL"), "padding must be"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 0), "SAME"), "at least one"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), [(0, 0)]), "padding has 1 pairs"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", (2, 2)), "not defined where lhs_dilation"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2, batch_group_count=2),
     "cannot both"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHC", "HWIO", "NHWC")), "axes"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w[:, :1], (1, 1), "SAME"), "matmul"),
    (lambda x, w: gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2), "reshape"),
    (lambda x, w: gs.lax.conv_transpose(x, w, (1, 1), "FULL"), "padding must be"),
    (lambda x, w: gs.lax.reduce_window(x, 0.0, np.add, (2, 2)), "window_dimensions has 2 numbers"),
    (lambda x, w: gs.lax.max_pool(x, (2,)), "a window of 1 lengths"),
    (lambda x, w: gs.lax.dynamic_slice(x, (0, 0), (1, 1)), "as many start indices"),
    (lambda x, w: gs.lax.slice(x, (-1, 0, 0, 0), x.shape), "must not be negative"),
    (lambda x, w: gs.lax.top_k(x, 99), "top_k of 99"),
    (lambda x, w: gs.lax.sort((x, x), num_keys=3), "num_keys"),
    (lambda x, w: gs.lax.pad(x, 0.0, [(0, 0, 0)]), "padding_config has 1 triples"),
    (lambda x, w: gs.lax.split(x, (1, 2)), "not the length"),
    (lambda x, w: gs.lax.approx_max_k(x, 2, aggregate_to_topk=False), "exact"),
]


@pytest.mark.parametrize("call, message", REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((2, 3, 5, 5)), np.ones((4, 3, 2, 2)))


@pytest.mark.parametrize("name", ["scatter_mul", "scatter_min", "scatter_max"])
def test_blocks_that_meet_by_differences_and_compiled(name):
    function, numbers = getattr(gs.lax, name), gs.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    x, updates = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    places, weights = np.array([[1], [1], [7], [3]]), rng.standard_normal((4, 3))

    def scattered(x, updates):
        return np.sum(weights * function(x, places, updates, numbers, mode="clip"))

    gradient = gs.grad(scattered, argnums=(0, 1))
    dx, du = gradient(x, updates)
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    slope = (scattered(x + 1e-6 * a, updates + 1e-6 * b) - scattered(x - 1e-6 * a, updates - 1e-6 * b)) / 2e-6
    assert abs(slope - np.sum(a * dx) - np.sum(b * du)) < 1e-7
    if name == "scatter_max":
        for one, other in zip(gs.jit(gradient)(x, updates), (dx, du)):
            np.testing.assert_allclose(one, other, **CLOSE)
