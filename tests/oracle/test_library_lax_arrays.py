# SPDX-License-Identifier: Apache-2.0
"""gs.lax beside jax.lax: convolutions, windows, slices, sorts, elementwise functions; values, both modes, vmap."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradscribe as gs

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(11)
CLOSE = {"rtol": 1e-11, "atol": 1e-12}
LAST = ("NHWC", "HWIO", "NHWC")


def draw(*shape):
    return rng.standard_normal(shape)


def parts(result):
    return [np.asarray(part) for part in (result if isinstance(result, (tuple, list)) else (result,))]


def agree(ours, theirs, dtypes=False):
    ours, theirs = parts(ours), parts(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape
        assert not dtypes or a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **CLOSE)


def compare(ours, theirs, *args, forward=True):
    """Values, the gradient under random weights and the derivative in a random direction, in all arguments."""
    agree(ours(*args), theirs(*args), dtypes=True)
    weights = rng.standard_normal(np.shape(theirs(*args)))
    every = tuple(range(len(args)))
    agree(gs.grad(lambda *v: np.sum(weights * ours(*v)), argnums=every)(*args),
          jax.grad(lambda *v: jnp.sum(weights * theirs(*v)), argnums=every)(*args))
    if forward:
        directions = tuple(rng.standard_normal(np.shape(a)) for a in args)
        agree(gs.jvp(ours, args, directions)[1], jax.jvp(theirs, args, directions)[1])


CONVOLUTIONS = [
    ("valid", ((1, 1), "VALID"), {"dimension_numbers": LAST}, (2, 6, 7, 3), (3, 2, 3, 4)),
    ("same", ((1, 1), "SAME"), {"dimension_numbers": LAST}, (2, 6, 7, 3), (3, 2, 3, 4)),
    ("strides", ((2, 3), "SAME"), {"dimension_numbers": LAST}, (2, 6, 7, 3), (3, 2, 3, 4)),
    ("lower", ((2, 1), "SAME_LOWER"), {"dimension_numbers": LAST}, (2, 6, 7, 3), (3, 2, 3, 4)),
    ("unit kernel", ((1, 1), "VALID"), {"dimension_numbers": LAST}, (2, 4, 3, 3), (1, 1, 3, 4)),
    ("pairs", ((2, 1), [(1, 2), (-1, 3)]), {"rhs_dilation": (2, 1)}, (2, 3, 6, 7), (4, 3, 3, 2)),
    ("both dilations", ((2, 1), [(1, 2), (-1, 3)]), {"lhs_dilation": (2, 3), "rhs_dilation": (1, 2)}, (2, 3, 6, 7),
     (4, 3, 3, 2)),
    ("groups", ((2, 1), "SAME"), {"dimension_numbers": LAST, "feature_group_count": 3}, (2, 6, 7, 6), (3, 2, 2, 9)),
    ("depthwise", ((1, 1), "SAME"), {"dimension_numbers": LAST, "feature_group_count": 6}, (2, 4, 5, 6), (3, 2, 1, 12)),
    ("groups of the batch", ((1, 1), "SAME"), {"dimension_numbers": LAST, "batch_group_count": 2}, (4, 6, 7, 3),
     (3, 2, 3, 4)),
    ("one axis", ((2,), "SAME"), {}, (2, 3, 7), (4, 3, 3)),
    ("three axes", ((2, 1, 1), "SAME"), {}, (2, 3, 5, 4, 4), (4, 3, 3, 2, 2)),
    ("no axis", ((), "VALID"), {}, (2, 3), (4, 3)),
    ("odd layout", ((2, 1), "SAME"), {"dimension_numbers": ("CWNH", "OHIW", "HNWC")}, (3, 7, 2, 6), (4, 3, 3, 2)),
]


@pytest.mark.parametrize("name, args, words, lhs, rhs", CONVOLUTIONS, ids=[case[0] for case in CONVOLUTIONS])
def test_convolutions(name, args, words, lhs, rhs):
    compare(lambda x, w: gs.lax.conv_general_dilated(x, w, *args, **words),
            lambda x, w: jax.lax.conv_general_dilated(x, w, *args, **words), draw(*lhs), draw(*rhs))


@pytest.mark.parametrize("dtype, wanted", [(np.float32, None), (np.int8, np.int32), (np.float32, np.float64)])
def test_dtypes_of_convolutions(dtype, wanted):
    x, w = (3 * draw(2, 3, 5, 5)).astype(dtype), (3 * draw(4, 3, 2, 2)).astype(dtype)
    ours = gs.lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=wanted)
    theirs = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=wanted)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)    # sums of float32 up to 100


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("strides", [(4, 1), (2, 3)])
@pytest.mark.parametrize("padding, consistent", [("SAME", False), ("VALID", False), ([(2, 1), (0, 3)], False),
                                                 ([(2, 1), (0, 3)], True), ([(2, 3), (0, 0)], True)])
def test_transposed_convolutions(padding, consistent, strides, flipped):
    x, w = draw(2, 4, 5, 3), draw(3, 2, 4, 3) if flipped else draw(3, 2, 3, 4)
    words = {"transpose_kernel": flipped, "use_consistent_padding": consistent}
    for dilation in (None, (2, 1)):
        agree(gs.lax.conv_transpose(x, w, strides, padding, dilation, **words),
              jax.lax.conv_transpose(x, w, strides, padding, dilation, **words))
    if strides == (2, 3):
        compare(lambda x, w: gs.lax.conv_transpose(x, w, strides, padding, **words),
                lambda x, w: jax.lax.conv_transpose(x, w, strides, padding, **words), x, w)


def test_convolutions_of_batches():
    x, w = draw(3, 2, 5, 6, 2), draw(3, 3, 2, 2, 4)

    def ours(x, w):
        return gs.lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=LAST)

    def theirs(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=LAST)

    agree(gs.vmap(ours)(x, w), jax.vmap(theirs)(x, w))
    agree(gs.vmap(ours, in_axes=(0, None))(x, w[0]), jax.vmap(theirs, in_axes=(0, None))(x, w[0]))
    agree(gs.vmap(ours, in_axes=(None, 0))(x[0], w), jax.vmap(theirs, in_axes=(None, 0))(x[0], w))


def test_shapes_that_are_told():
    for args in [((8, 3, 32, 32), (16, 3, 5, 5), (2, 2), "SAME"), ((8, 3, 32), (16, 3, 5), (3,), [(1, 2)])]:
        assert gs.lax.conv_shape_tuple(*args) == tuple(jax.lax.conv_shape_tuple(*args))
    for padding in ("SAME", "SAME_LOWER", "VALID"):
        args = (7, 8), (3, 2), (2, 3), padding
        assert gs.lax.padtype_to_pads(*args) == jax.lax.padtype_to_pads(*args)
    ours = gs.lax.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NWHC", "HWIO", "NCHW"))
    assert tuple(ours) == tuple(jax.lax.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NWHC", "HWIO", "NCHW")))


WINDOWS = [
    ((1, 2, 3, 1), (1, 2, 2, 1), "SAME", {}),
    ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", {}),
    ((1, 3, 2, 1), (1, 2, 1, 1), "SAME_LOWER", {}),
    ((2, 3, 2, 2), (1, 2, 1, 1), ((0, 0), (1, 2), (0, 1), (0, 0)), {}),
    ((1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (1, -2), (-1, 1), (0, 0)), {}),
    ((1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (1, 2), (0, 1), (0, 0)), {"window_dilation": (1, 2, 1, 1)}),
    ((1, 3, 2, 1), None, "VALID", {}),
]


@pytest.mark.parametrize("window, strides, padding, words", WINDOWS)
@pytest.mark.parametrize("ours, theirs, init", [(np.add, jax.lax.add, 0.0), (np.maximum, jax.lax.max, -np.inf),
                                                (np.minimum, jax.lax.min, np.inf)])
def test_windows(ours, theirs, init, window, strides, padding, words):
    if init != 0.0 and (words or padding[1] == (1, -2)):    # JAX has no gradient there
        x, direction = draw(2, 7, 8, 3), draw(2, 7, 8, 3)
        out, change = gs.jvp(lambda x: gs.lax.reduce_window(x, init, ours, window, strides, padding, **words),
                             (x,), (direction,))
        agree(out, jax.lax.reduce_window(x, init, theirs, window, strides, padding, **words))
        slope = gs.grad(lambda x: np.sum(gs.lax.reduce_window(x, init, ours, window, strides, padding, **words)))(x)
        np.testing.assert_allclose(np.sum(slope * direction), np.sum(change), **CLOSE)
        return
    for ties in (False, True):
        x = draw(2, 7, 8, 3)
        compare(lambda x: gs.lax.reduce_window(x, init, ours, window, strides, padding, **words),
                lambda x: jax.lax.reduce_window(x, init, theirs, window, strides, padding, **words),
                np.floor(3 * x) if ties else x, forward=not ties)


def test_windows_of_dilated_arrays_of_whole_numbers_and_of_what_starts_elsewhere():
    def both(x, init, kind, theirs, *args, **words):
        agree(gs.lax.reduce_window(x, init, kind, *args, **words),
              jax.lax.reduce_window(x, init, theirs, *args, **words), dtypes=True)

    x, whole = draw(7, 8), rng.integers(-9, 9, (5, 6))
    both(x, 0.0, np.add, jax.lax.add, (3, 2), (2, 1), "VALID", base_dilation=(2, 3))
    both(x, 5.0, np.add, jax.lax.add, (2, 3), (2, 2), "SAME")
    both(x, 1.5, np.maximum, jax.lax.max, (2, 3), (2, 2), "SAME")
    both(x, 1.0, np.multiply, jax.lax.mul, (2, 3), (2, 2), "SAME")
    both(whole, 0, np.add, jax.lax.add, (2, 2), (1, 1), "SAME")
    both(whole, np.iinfo(np.int64).min, np.maximum, jax.lax.max, (2, 2), (1, 1), "SAME")
    x[3, 3] = np.nan
    both(x, -np.inf, np.maximum, jax.lax.max, (2, 3), (2, 2), "SAME")


X, S = draw(4, 5), draw(2, 3, 4)
PAIRS = {
    "slice": lambda lax: lambda x: lax.slice(x, (1, 0), (3, 5), (1, 2)),
    "slice_in_dim": lambda lax: lambda x: lax.slice_in_dim(x, 1, -1, 2, 1),
    "index_in_dim": lambda lax: lambda x: lax.index_in_dim(x, -1, 1),
    "index_take": lambda lax: lambda x: lax.index_take(x, (np.array([0, 3]), np.array([2, 0])), (0, 1)),
    "rev": lambda lax: lambda x: lax.rev(x, (0, 1)),
    "pad": lambda lax: lambda x: lax.pad(x, 1.5, ((1, -1, 1), (2, 0, 0))),
    "pad cut": lambda lax: lambda x: lax.pad(x, 1.5, ((-1, -1, 2), (-2, 0, 0))),
    "broadcast": lambda lax: lambda x: lax.broadcast(x, (2, 3)),
    "broadcast_in_dim": lambda lax: lambda x: lax.broadcast_in_dim(x, (4, 2, 5), (0, 2)),
    "collapse": lambda lax: lambda x: lax.collapse(x, 0, 2),
    "collapse all": lambda lax: lambda x: lax.collapse(x, 0),
    "expand_dims": lambda lax: lambda x: lax.expand_dims(x, (0, 2)),
    "squeeze": lambda lax: lambda x: lax.squeeze(lax.expand_dims(x, (1,)), (1,)),
    "concatenate": lambda lax: lambda x: lax.concatenate([x, x], 1),
    "transpose": lambda lax: lambda x: lax.transpose(x, (1, 0)),
    "reshape": lambda lax: lambda x: lax.reshape(x, (20,), (1, 0)),
    "split": lambda lax: lambda x: lax.split(x, (2, 3), 1)[1],
    "sort": lambda lax: lambda x: lax.sort(x, 0),
    "sort together": lambda lax: lambda x: lax.sort((x, x * x), 1)[1],
    "sort_key_val": lambda lax: lambda x: lax.sort_key_val(x, x * x, 0)[1],
    "top_k": lambda lax: lambda x: lax.top_k(x, 3)[0],
    "top_k rows": lambda lax: lambda x: lax.top_k(x, 3, axis=0)[0],
    "cumsum": lambda lax: lambda x: lax.cumsum(x, 1),
    "cumsum back": lambda lax: lambda x: lax.cumsum(x, 0, reverse=True),
    "cumprod": lambda lax: lambda x: lax.cumprod(x, 1, True),
    "cummax": lambda lax: lambda x: lax.cummax(x, 0),
    "cummin": lambda lax: lambda x: lax.cummin(x, 1, True),
    "cumlogsumexp": lambda lax: lambda x: lax.cumlogsumexp(x, 1),
    "cumlogsumexp back": lambda lax: lambda x: lax.cumlogsumexp(x, 0, True),
    "reciprocal": lambda lax: lambda x: lax.reciprocal(x),
    "rsqrt": lambda lax: lambda x: lax.rsqrt(x * x + 1.0),
    "integer_pow": lambda lax: lambda x: lax.integer_pow(x, 3) + lax.integer_pow(x, -2),
    "div": lambda lax: lambda x: lax.div(x, x * x + 1.0),
    "clamp": lambda lax: lambda x: lax.clamp(-0.5, x, 0.7),
    "select": lambda lax: lambda x: lax.select(x > 0, x * x, x),
    "select_n": lambda lax: lambda x: lax.select_n(x > 0, x * x, x),
    "convert": lambda lax: lambda x: lax.convert_element_type(x, np.float64),
    "reduce_sum": lambda lax: lambda x: lax.reduce_sum(x, (0,)),
    "reduce_prod": lambda lax: lambda x: lax.reduce_prod(x, (0, 1)),
    "reduce_max": lambda lax: lambda x: lax.reduce_max(x, (1,)),
    "reduce_min": lambda lax: lambda x: lax.reduce_min(x, (0,)),
    "dot": lambda lax: lambda x: lax.dot(x, lax.transpose(x, (1, 0))),
    "batch_matmul": lambda lax: lambda x: lax.batch_matmul(lax.broadcast(x, (2,)), lax.broadcast(x.T, (2,))),
    "dot_general": lambda lax: lambda x: lax.dot_general(x, lax.broadcast(x, (3,)), (((1,), (2,)), ((0,), (1,)))),
    "names": lambda lax: lambda x: lax.sin(x) * lax.tanh(x) + lax.exp(x) - lax.mul(lax.logistic(x), lax.erf(x)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_one_array(name):
    ours, theirs = PAIRS[name](gs.lax), PAIRS[name](jax.lax)
    compare(ours, theirs, X, forward="cum" in name or "sort" in name)
    batch = np.stack([X, 2 * X, X - 1])
    agree(gs.vmap(ours)(batch), jax.vmap(theirs)(batch))


@pytest.mark.parametrize("place", [(-1, 2), (9, -2), (-9, 4)])
def test_places_are_moved_inside(place):
    i, j = np.int64(place[0]), np.int64(place[1])
    compare(lambda x: gs.lax.dynamic_slice(x, (i, j), (2, 3)), lambda x: jax.lax.dynamic_slice(x, (i, j), (2, 3)), X)
    compare(lambda x: gs.lax.dynamic_slice_in_dim(x, j, 2, 1), lambda x: jax.lax.dynamic_slice_in_dim(x, j, 2, 1), X)
    compare(lambda x: gs.lax.dynamic_index_in_dim(x, j, 1), lambda x: jax.lax.dynamic_index_in_dim(x, j, 1), X)
    compare(lambda x: gs.lax.dynamic_index_in_dim(x, i, 0, False),
            lambda x: jax.lax.dynamic_index_in_dim(x, i, 0, False), X)
    compare(lambda x, u: gs.lax.dynamic_update_slice(x, u, (i, j)),
            lambda x, u: jax.lax.dynamic_update_slice(x, u, (i, j)), X, draw(2, 3))
    compare(lambda x, u: gs.lax.dynamic_update_index_in_dim(x, u, j, 1),
            lambda x, u: jax.lax.dynamic_update_index_in_dim(x, u, j, 1), X, draw(4))
    compare(lambda x, u: gs.lax.dynamic_update_slice_in_dim(x, u, j, -1),
            lambda x, u: jax.lax.dynamic_update_slice_in_dim(x, u, j, -1), X, draw(4, 2))


def test_places_that_differ_in_a_batch():
    places = np.array([[1, 2], [-1, 9], [7, -2]])
    agree(gs.vmap(lambda i: gs.lax.dynamic_slice(X, i, (2, 3)))(places),
          jax.vmap(lambda i: jax.lax.dynamic_slice(X, i, (2, 3)))(places))


def test_orders_with_equals_and_nan():
    ties, others = np.floor(2 * X), np.floor(2 * draw(4, 5))
    agree(gs.lax.sort((ties, others, X), 0, num_keys=2), jax.lax.sort((ties, others, X), 0, num_keys=2))
    agree(gs.lax.sort_key_val(ties, X, 0), jax.lax.sort_key_val(ties, X, 0))
    agree(gs.lax.top_k(ties, 3), jax.lax.top_k(ties, 3))
    agree(gs.lax.approx_max_k(X, 2), jax.lax.approx_max_k(X, 2, recall_target=1.0))
    agree(gs.lax.approx_min_k(X, 2), jax.lax.approx_min_k(X, 2, recall_target=1.0))
    agree(gs.lax.argmax(ties, 1, np.int32), jax.lax.argmax(ties, 1, np.int32), dtypes=True)
    agree(gs.lax.argmin(ties, 0, np.int64), jax.lax.argmin(ties, 0, np.int64), dtypes=True)
    with_nan = X.copy()
    with_nan[0, 2] = np.nan
    agree(gs.lax.top_k(with_nan, 3), jax.lax.top_k(with_nan, 3))
    agree(gs.lax.cummax(with_nan, 1), jax.lax.cummax(with_nan, 1))


def test_whole_numbers():
    x, y = np.array([-7, -6, -1, 0, 1, 6, 7, 8]), np.array([2, 3, -2, 5, -2, -4, 3, -3])
    for name in ("div", "rem", "shift_right_logical", "bitwise_xor", "max"):
        second = np.abs(y) if name == "shift_right_logical" else y
        agree(getattr(gs.lax, name)(x, second), getattr(jax.lax, name)(x, second), dtypes=True)
    agree(gs.lax.population_count(x), jax.lax.population_count(x), dtypes=True)
    for name in ("reduce_and", "reduce_or", "reduce_xor", "reduce_max"):
        agree(getattr(gs.lax, name)(x, (0,)), getattr(jax.lax, name)(x, (0,)), dtypes=True)
    small = x.astype(np.int32)
    agree(gs.lax.cumsum(small), jax.lax.cumsum(small), dtypes=True)
    agree(gs.lax.reduce_sum(small, (0,)), jax.lax.reduce_sum(small, (0,)), dtypes=True)
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, -2.3, 2.7, np.nan, np.inf])
    agree(gs.lax.round(halves), jax.lax.round(halves))
    agree(gs.lax.round(halves, 1), jax.lax.round(halves, jax.lax.RoundingMethod.TO_NEAREST_EVEN))
    agree(gs.lax.clamp(1.0, halves, -1.0), jax.lax.clamp(1.0, halves, -1.0))
    which = np.array([0, 2, 1, 1], np.int32)
    agree(gs.lax.select_n(which, X[:, 0], X[:, 1], X[:, 2]), jax.lax.select_n(which, X[:, 0], X[:, 1], X[:, 2]))
    agree(gs.lax.reduce(S, 1.0, np.multiply, (0, 2)), jax.lax.reduce(S, 1.0, jax.lax.mul, (0, 2)))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_segments(kind):
    ours, theirs = getattr(gs.lax, f"segment_{kind}"), getattr(jax.ops, f"segment_{kind}")
    data = draw(5, 3)
    for ids in (np.array([0, 2, 1, 2, 0]), np.array([0, 7, 1, -1, 0])):
        agree(ours(data, ids, 4), theirs(data, ids, 4))
        if kind != "prod":      # JAX has no derivative there
            compare(lambda d, ids=ids: ours(d, ids, 4), lambda d, ids=ids: theirs(d, ids, 4), data)
    agree(ours(data, np.array([0, 2, 1, 2, 0])), theirs(data, np.array([0, 2, 1, 2, 0])))
    agree(ours(np.arange(5), np.array([0, 2, 1, 2, 0]), 4), theirs(np.arange(5), np.array([0, 2, 1, 2, 0]), 4), True)


PLACES = np.array([[[1, 0], [4, 2], [-1, 1]], [[0, 3], [2, 2], [3, 9]]])
BLOCKS = [((2,), (0, 1), (0, 1), (1, 1, 3)), ((0, 3), (2,), (0, 1), (2, 2, 1)), ((1, 2, 4), (), (1, 0), (2, 3, 2))]


@pytest.mark.parametrize("offset, gone, starts, sizes", BLOCKS)
def test_gather(offset, gone, starts, sizes):
    numbers = [lax.GatherDimensionNumbers(offset, gone, starts) for lax in (gs.lax, jax.lax)]
    x = draw(5, 4, 3)
    for words in ({"mode": "clip"}, {"mode": "fill", "fill_value": 2.5}):
        compare(lambda x, words=words: gs.lax.gather(x, PLACES, numbers[0], sizes, **words),
                lambda x, words=words: jax.lax.gather(x, PLACES, numbers[1], sizes, **words), x)
    for dtype in (np.float64, np.int32, np.uint8):
        y = np.abs(9 * x).astype(dtype)
        agree(gs.lax.gather(y, PLACES, numbers[0], sizes, mode="fill"),
              jax.lax.gather(y, PLACES, numbers[1], sizes, mode="fill"), dtypes=True)
    several = np.stack([PLACES, PLACES - 1])
    agree(gs.vmap(lambda i: gs.lax.gather(x, i, numbers[0], sizes, mode="clip"))(several),
          jax.vmap(lambda i: jax.lax.gather(x, i, numbers[1], sizes, mode="clip"))(several))


@pytest.mark.parametrize("offset, gone, starts, sizes", BLOCKS)
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"])
def test_scatter(name, offset, gone, starts, sizes):
    numbers = [lax.ScatterDimensionNumbers(offset, gone, starts) for lax in (gs.lax, jax.lax)]
    alone = name in ("scatter", "scatter_mul")      # JAX has no derivative where entries meet
    places = PLACES[:1, :1] if alone else PLACES
    shape = np.shape(jax.lax.gather(draw(5, 4, 3), places, jax.lax.GatherDimensionNumbers(offset, gone, starts), sizes))
    # with mode="clip" JAX's gradients of scatter_min and scatter_max are infinite at indices outside
    for mode in ("drop",) if name in ("scatter_min", "scatter_max") else ("drop", "clip"):
        compare(lambda x, u, mode=mode: getattr(gs.lax, name)(x, places, u, numbers[0], mode=mode),
                lambda x, u, mode=mode: getattr(jax.lax, name)(x, places, u, numbers[1], mode=mode,
                                                               unique_indices=alone), draw(5, 4, 3), draw(*shape))


def test_gather_and_scatter_with_axes_in_common():
    x, places = draw(5, 4, 3), np.array([[[1], [2]], [[0], [3]], [[9], [1]], [[0], [0]], [[1], [1]]])
    axes = (2,), (1,), (1,), (0,), (0,)
    compare(lambda x: gs.lax.gather(x, places, gs.lax.GatherDimensionNumbers(*axes), (1, 1, 3), mode="clip"),
            lambda x: jax.lax.gather(x, places, jax.lax.GatherDimensionNumbers(*axes), (1, 1, 3), mode="clip"), x)
    compare(lambda x, u: gs.lax.scatter_add(x, places, u, gs.lax.ScatterDimensionNumbers(*axes)),
            lambda x, u: jax.lax.scatter_add(x, places, u, jax.lax.ScatterDimensionNumbers(*axes)), x, draw(5, 2, 3))
