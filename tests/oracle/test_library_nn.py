# SPDX-License-Identifier: Apache-2.0
"""gs.nn against jax.nn, jax.nn.initializers and jax.example_libraries.stax: values and gradients."""
import functools
import inspect

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import nn
from gradscribe.nn import attention, functions, initializers, layers

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
tree_leaves, tree_structure = jax.tree_util.tree_leaves, jax.tree_util.tree_structure
stax = pytest.importorskip("jax.example_libraries.stax")
theirs = jax.nn.initializers

rng = np.random.default_rng(5)
GRID = np.concatenate([rng.uniform(-9, 9, 2000), [-1000.0, -700, -100, -40, 0.0, 40, 100, 700, 1000],
                       [-6.0, -3, -1, 1, 3, 6, 1e-20, -1e-20]])
X = rng.standard_normal((4, 5))
SEEN = rng.random((4, 5)) > 0.4
SEEN[:, 0] = True
KEYS = [0, 17]


@pytest.fixture(scope="module", autouse=True)
def compiled_once():
    """What JAX compiles here runs once: time spent to make it fast is lost."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def agree(got, want, tolerance=1e-12):
    """Equal structures, shapes, dtypes and numbers."""
    assert tree_structure(got) == tree_structure(want)
    for g, w in zip(tree_leaves(got), tree_leaves(want)):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def by_sum(f, of, np=np, **words):
    return of(lambda x: np.sum(np.sin(f(x, **words))))


# --- jax.nn -------------------------------------------------------------------------------------------------

ACTIVATIONS = ["celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
               "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
               "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    f, g = getattr(nn, name), getattr(jax.nn, name)
    agree(f(GRID), jax.jit(g)(GRID))
    agree(gs.grad(lambda x: np.sum(f(x)))(GRID), jax.jit(jax.grad(lambda x: jnp.sum(g(x))))(GRID))
    # where x is 0 the second derivatives of |x| differ: docs/kinks.md
    smooth = GRID[GRID != 0] if name == "soft_sign" else GRID
    agree(gs.grad(lambda x: np.sum(gs.grad(lambda x: np.sum(f(x)))(x)))(smooth),
          jax.jit(jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(g(x)))(x))))(smooth))
    agree(f(GRID.astype(np.float32)), jax.jit(g)(GRID.astype(np.float32)), 1e-6)


def test_activations_with_arguments():
    alpha = np.array([0.3, 1.5, 2.0, 0.5, 1.0])
    for name, words in [("celu", {"alpha": alpha}), ("elu", {"alpha": alpha}),
                        ("leaky_relu", {"negative_slope": alpha}), ("squareplus", {"b": alpha}),
                        ("gelu", {"approximate": False}), ("glu", {"axis": 0})]:
        f, g = getattr(nn, name), getattr(jax.nn, name)
        agree(f(X, **words), g(X, **words))
        agree(by_sum(f, gs.grad, **words)(X), jax.jit(by_sum(g, jax.grad, jnp, **words))(X))
    x = GRID[GRID > 0]
    agree(nn.log1mexp(x), jax.nn.log1mexp(x))
    agree(by_sum(nn.log1mexp, gs.grad)(x[x > 1e-3]), by_sum(jax.nn.log1mexp, jax.grad, jnp)(x[x > 1e-3]))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"])
@pytest.mark.parametrize("words", [{}, {"axis": 0}, {"axis": (0, 1)}, {"axis": None}, {"axis": 1, "where": SEEN}])
def test_functions_along_axes(name, words):
    f, g = getattr(nn, name), getattr(jax.nn, name)

    def loss(x):
        y = f(x, **words)
        return np.sum(np.where(y > -1e3, y, 0)**3)

    def their_loss(x):
        y = g(x, **words)
        return jnp.sum(jnp.where(y > -1e3, y, 0)**3)
    there = jax.jit(lambda x: g(x, **words))
    agree(np.asarray(f(X, **words)), there(X))
    agree(gs.grad(loss)(X), jax.jit(jax.grad(their_loss))(X), 1e-10)
    agree(np.asarray(f(X.astype(np.float32), **words)), there(X.astype(np.float32)), 1e-4)


def test_rows_that_are_left_out():
    seen = SEEN.copy()
    seen[2] = False
    for name in "softmax", "log_softmax":
        agree(getattr(nn, name)(X, where=seen), getattr(jax.nn, name)(X, where=seen))
    agree(gs.grad(lambda x: np.sum(nn.softmax(x, where=seen)**2))(X),
          jax.grad(lambda x: jnp.sum(jax.nn.softmax(x, where=seen)**2))(X))


def test_logsumexp_with_factors():
    b = rng.standard_normal((4, 5))
    agree(nn.logsumexp(X, axis=0, b=b, return_sign=True), jax.nn.logsumexp(X, axis=0, b=b, return_sign=True))
    agree(nn.logsumexp(X, axis=0, b=np.abs(b), keepdims=True), jax.nn.logsumexp(X, axis=0, b=np.abs(b), keepdims=True))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis):
    words = np.array([[0, 3, -1], [2, 1, 7]])
    for dtype in np.float64, np.int32, bool:
        agree(nn.one_hot(words, 4, dtype=dtype, axis=axis), jax.nn.one_hot(words, 4, dtype=dtype, axis=axis))


@pytest.mark.parametrize("name", [n for n in functions.__all__ + attention.__all__ if hasattr(jax.nn, n)])
def test_parameters_are_jax_s(name):
    if name == "tanh":
        return
    ours, given = inspect.signature(getattr(nn, name)), inspect.signature(getattr(jax.nn, name))
    assert [(p.name, p.kind) for p in ours.parameters.values()] == [(p.name, p.kind) for p in given.parameters.values()]
    for p in ours.parameters.values():
        if (name, p.name) != ("standardize", "algorithm"):
            assert p.default == given.parameters[p.name].default


# --- attention ----------------------------------------------------------------------------------------------

Q, K, V = (rng.standard_normal(s) for s in [(2, 5, 4, 3), (2, 6, 2, 3), (2, 6, 2, 3)])
BIAS, MASK = rng.standard_normal((2, 4, 5, 6)), rng.random((2, 4, 5, 6)) > 0.3
LENGTHS = {"query_seq_lengths": np.array([2, 5], np.int32), "key_value_seq_lengths": np.array([3, 6], np.int32)}
ATTENTIONS = [{}, {"is_causal": True}, {"bias": BIAS}, {"mask": MASK},
              {"mask": MASK[:, :1], "is_causal": True, "scale": 0.7},
              {"local_window_size": (1, 2)}, {"local_window_size": 1, "bias": BIAS[:1]}, LENGTHS]


@pytest.mark.parametrize("words", ATTENTIONS, ids=[" ".join(words) or "plain" for words in ATTENTIONS])
def test_attention(words):
    """jax.nn's softmax is float32's here, which is what the tolerance is for."""
    def loss(np, attend, q, k, v):
        y = attend(q, k, v, **words)
        return np.sum(y**2), y
    ours, other = functools.partial(loss, np, nn.dot_product_attention), jax.nn.dot_product_attention
    want = jax.jit(jax.grad(functools.partial(loss, jnp, other), argnums=(0, 1, 2), has_aux=True))(Q, K, V)
    agree(gs.grad(ours, argnums=(0, 1, 2), has_aux=True)(Q, K, V), want, 1e-5)


def test_attention_in_double_precision():
    def plain(q, k, v):
        logits = jnp.einsum("btnh,bsnh->bnts", q, jnp.repeat(k, 2, axis=2)) / jnp.sqrt(3.0) + BIAS
        weights = jax.nn.softmax(jnp.where(MASK, logits, -jnp.inf))
        return jnp.einsum("bnts,bsnh->btnh", weights, jnp.repeat(v, 2, axis=2))
    agree(nn.dot_product_attention(Q, K, V, BIAS, MASK), jax.jit(plain)(Q, K, V))
    agree(gs.grad(lambda q, k, v: np.sum(nn.dot_product_attention(q, k, v, BIAS, MASK)**2), argnums=(0, 1, 2))(Q, K, V),
          jax.jit(jax.grad(lambda q, k, v: jnp.sum(plain(q, k, v)**2), argnums=(0, 1, 2)))(Q, K, V))
    one = nn.dot_product_attention(Q[0], K[0], V[0], return_residual=True)
    agree(one, jax.nn.dot_product_attention(Q[0], K[0], V[0], return_residual=True), 2e-6)


# --- initialisers -------------------------------------------------------------------------------------------

SCALINGS = [(m, d) for m in initializers.MODES for d in initializers.DISTRIBUTIONS]


def drawn(ours, other, shape, *rest, tolerance=1e-12):
    for seed in KEYS:
        agree(ours(gs.random.key(seed), shape, *rest), other(jax.random.key(seed), shape, *rest), tolerance)


@pytest.mark.parametrize("mode, distribution", SCALINGS)
def test_variance_scaling(mode, distribution):
    ours, other = (m.variance_scaling(1.7, mode, distribution) for m in (initializers, theirs))
    drawn(ours, other, (3, 2, 5, 7))
    if mode == "fan_in":
        drawn(ours, other, (3, 2, 5, 7), np.float32, tolerance=1e-5)
    axes = {"in_axis": (0, 1), "out_axis": 3, "batch_axis": 2}
    drawn(*(m.variance_scaling(0.5, mode, distribution, **axes) for m in (initializers, theirs)), (3, 2, 5, 7))


@pytest.mark.parametrize("distribution", ["truncated_normal", "uniform"])
def test_complex_variance_scaling(distribution):
    ours, other = (m.variance_scaling(1.0, "fan_in", distribution, dtype=np.complex128) for m in (initializers, theirs))
    drawn(ours, other, (4, 5))


@pytest.mark.parametrize("name", [n for n in initializers.__all__ if n[-6:] in ("normal", "niform")])
def test_normal_and_uniform(name):
    drawn(getattr(initializers, name)(), getattr(theirs, name)(), (20, 30))     # 1,200 numbers


def test_other_initializers():
    drawn(initializers.constant(2.5), theirs.constant(2.5), (2, 3))
    drawn(initializers.zeros, theirs.zeros, (2, 3), np.float32)
    drawn(initializers.ones, theirs.ones, (2, 3))
    drawn(*(m.truncated_normal(2.0, lower=-0.5, upper=3.0) for m in (initializers, theirs)), (50,))
    for shape, axis in [((4, 6), -1), ((2, 3, 4), 1), ((5, 3, 2), 0)]:
        drawn(initializers.orthogonal(1.5, axis), theirs.orthogonal(1.5, axis), shape)
    for shape in (3, 4, 6), (3, 4, 4, 6), (2, 3, 3, 4, 6):
        drawn(initializers.delta_orthogonal(), theirs.delta_orthogonal(), shape)


# --- stax ---------------------------------------------------------------------------------------------------

IMAGES, ROWS = rng.standard_normal((3, 9, 8, 2)), rng.standard_normal((4, 6))
FIRST = ("NCHW", "OIHW", "NCHW")
NETWORKS = {
    "mlp": (lambda m: m.serial(m.Dense(7), m.Relu, m.Dense(5), m.Tanh, m.Dense(3), m.LogSoftmax), ROWS),
    "elementwise": (lambda m: m.serial(m.Dense(4), m.Softplus, m.Elu, m.LeakyRelu, m.Dense(4), m.Gelu, m.Selu,
                                       m.Sigmoid, m.Exp, m.Softmax), ROWS),
    "branches": (lambda m: m.serial(m.Dense(4), m.FanOut(3), m.parallel(
        m.Identity, m.serial(m.Dense(5), m.Tanh, m.Dense(4)), m.Dense(4)), m.FanInSum, m.Relu), ROWS),
    "joined": (lambda m: m.serial(m.FanOut(2), m.parallel(m.Dense(2), m.Dense(3)), m.FanInConcat()), ROWS),
    "shape_dependent": (lambda m: m.shape_dependent(lambda s: m.serial(m.Dense(s[-1]), m.Tanh)), ROWS),
    "rows normalised": (lambda m: m.serial(m.Dense(4), m.BatchNorm(axis=0), m.Relu), ROWS),
    "convolutions": (lambda m: m.serial(m.Conv(4, (3, 3), padding="SAME"), m.BatchNorm(), m.Relu,
                                        m.MaxPool((2, 2), (2, 2)), m.Conv(3, (2, 2), (2, 1)),
                                        m.AvgPool((2, 2), padding="SAME"), m.Flatten, m.Dense(3)), IMAGES),
    "pools": (lambda m: m.serial(m.SumPool((3, 2), (2, 1)), m.AvgPool((2, 2), (2, 2), "SAME"), m.MaxPool((2, 1))),
              IMAGES),
    "padded by pairs": (lambda m: m.serial(m.Conv(3, (3, 3), (2, 2), [(1, 2), (0, 1)]),
                                           m.BatchNorm(center=False), m.BatchNorm(scale=False)), IMAGES),
    "channels first": (lambda m: m.serial(m.GeneralConv(FIRST, 3, (2, 3), padding="SAME"), m.BatchNorm((0, 2, 3)),
                                          m.MaxPool((2, 2), (1, 2), "SAME", "NCHW"),
                                          m.AvgPool((1, 2), spec="NCHW")), IMAGES),
    "a line": (lambda m: m.serial(m.GeneralConv(("NHC", "HIO", "NHC"), 3, (3,)),
                                  m.Conv1DTranspose(2, (3,), (2,), "SAME")), IMAGES[0]),
    "enlarged": (lambda m: m.serial(m.ConvTranspose(3, (3, 2), (2, 3), "SAME"), m.Relu,
                                    m.ConvTranspose(2, (2, 2), (1, 3))), IMAGES),
    "dropped": (lambda m: m.serial(m.Dense(5), m.Dropout(0.7), m.Tanh, m.Dropout(0.6), m.Dense(2)), ROWS),
    "dropped in use": (lambda m: m.serial(m.Dense(5), m.Dropout(0.7, "test"), m.Tanh), ROWS),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    make, x = NETWORKS[name]
    (init, apply), (their_init, their_apply) = make(nn), make(stax)
    shape, params = init(gs.random.key(3), (-1, *x.shape[1:]))
    described = jax.eval_shape(lambda key: their_init(key, x.shape)[1], jax.random.key(3))
    assert tree_structure(params) == tree_structure(described)
    assert [p.shape for p in tree_leaves(params)] == [p.shape for p in tree_leaves(described)]
    if name in ("branches", "convolutions", "enlarged"):            # of the others JAX only takes long to compile it
        their_shape, their_params = their_init(jax.random.key(3), x.shape)
        assert tuple(shape) == (-1, *their_shape[1:])
        agree(params, their_params)
    words, their_words = ({"rng": gs.random.key(8)}, {"rng": jax.random.key(8)}) if "dropped" in name else ({}, {})
    if name == "dropped in use":
        words = {}

    def loss(params, x):
        y = apply(params, x, **words)
        return np.sum(np.sin(y)), y

    def their_loss(params, x):
        y = their_apply(params, x, **their_words)
        return jnp.sum(jnp.sin(y)), y
    got = gs.grad(loss, argnums=(0, 1), has_aux=True)(params, x)
    agree(got, jax.jit(jax.grad(their_loss, argnums=(0, 1), has_aux=True))(params, x), 1e-11)


def test_examples_by_themselves():
    """vmap(grad) of a classifier's loss, as there."""
    (init, apply), (_, their_apply) = NETWORKS["mlp"][0](nn), NETWORKS["mlp"][0](stax)
    params, labels = init(gs.random.key(0), (-1, 6))[1], np.array([0, 2, 1, 1])

    def loss(params, x, label):
        return nn.softmax_cross_entropy_with_integer_labels(apply(params, x), label)

    def their_loss(params, x, label):
        p = their_apply(params, x)
        return jax.nn.logsumexp(p) - p[label]
    agree(gs.vmap(gs.grad(loss), in_axes=(None, 0, 0))(params, ROWS, labels),
          jax.jit(jax.vmap(jax.grad(their_loss), in_axes=(None, 0, 0)))(params, ROWS, labels))


def test_stax_names_are_here():
    missing = {n for n in vars(stax) if n[0] != "_" and callable(getattr(stax, n)) or n in ("Relu", "Tanh", "Flatten")}
    missing -= {n for n in vars(nn)} | {n for n in vars(initializers)}
    assert missing <= {"glorot", "randn", "logsoftmax", "partial"}
    assert {n for n in layers.__all__} <= set(vars(nn))


# --- recurrent layers ---------------------------------------------------------------------------------------

def their_lstm(params, state, x):
    W, U, b = params
    h, c = state
    i, f, g, o = jnp.split(x @ W + h @ U + b, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def their_gru(params, h, x):
    W, U, b, b_n = params
    (xr, xz, xn), (hr, hz, hn) = jnp.split(x @ W + b, 3, axis=-1), jnp.split(h @ U, 3, axis=-1)
    z = jax.nn.sigmoid(xz + hz)
    h = (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * (hn + b_n)) + z * h
    return h, h


def their_rnn(params, h, x):
    h = jnp.tanh(x @ params[0] + h @ params[1] + params[2])
    return h, h


@pytest.mark.parametrize("layer, cell, start", [
    (nn.LSTM(5), their_lstm, (np.full((3, 5), 0.1), np.full((3, 5), -0.2))),
    (nn.GRU(5), their_gru, np.full((3, 5), 0.1)), (nn.RNN(5), their_rnn, np.full((3, 5), 0.1))],
    ids=["LSTM", "GRU", "RNN"])
def test_recurrent(layer, cell, start):
    init, apply = layer
    x = rng.standard_normal((3, 7, 4))
    params = jax.tree_util.tree_map(lambda p: p + 0.1, init(gs.random.key(1), x.shape)[1])

    def scanned(params, x):
        return jnp.swapaxes(jax.lax.scan(functools.partial(cell, params), start, jnp.swapaxes(x, 0, 1))[1], 0, 1)
    agree(apply(params, x, state=start), scanned(params, x))
    agree(gs.grad(lambda params, x: np.sum(np.sin(apply(params, x, state=start))), argnums=(0, 1))(params, x),
          jax.jit(jax.grad(lambda params, x: jnp.sum(jnp.sin(scanned(params, x))), argnums=(0, 1)))(params, x))
