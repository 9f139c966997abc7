# SPDX-License-Identifier: Apache-2.0
"""The layers of gs.nn against plain NumPy and differences; networks: their gradients' text, batches, compiled code."""
import math

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import nn
from gradscribe.tree_util import ravel_pytree, tree_leaves, tree_map, tree_structure

rng = np.random.default_rng(7)
KEY = gs.random.key(3)
X2, X3, X4 = rng.standard_normal((5, 6)), rng.standard_normal((2, 5, 4)), rng.standard_normal((2, 5, 6, 3))
P, LABELS = rng.standard_normal((5, 3)), np.array([0, 2, 1, 1, 0])


def sigma(x):
    return 1 / (1 + np.exp(-x))


def agree(got, want, tolerance=1e-12):
    assert tree_structure(got) == tree_structure(want)
    for g, w in zip(tree_leaves(got), tree_leaves(want), strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def slope(f, x, step=1e-6):
    """The gradient of f by central differences, over a tree of arrays."""
    flat, together = ravel_pytree(x)
    out = np.empty_like(flat)
    for i in range(flat.size):
        there, back = flat.copy(), flat.copy()
        there[i] += step
        back[i] -= step
        out[i] = (f(together(there)) - f(together(back))) / (2 * step)
    return together(out)


# --- layers -------------------------------------------------------------------------------------------------

def correlated(x, w, stride):
    """A convolution of one axis, entry by entry."""
    count = (x.shape[1] - w.shape[0]) // stride + 1
    return np.stack([sum(x[:, stride * i + k] @ w[k] for k in range(w.shape[0])) for i in range(count)], axis=1)


def heads(x, W, b):
    return np.moveaxis((x @ W + b).reshape(*x.shape[:2], 2, -1), 2, 1)


def attended(params, x):
    q, k, v = [heads(x, W, b) for W, b in params[:3]]
    weights = np.exp(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    weights = np.tril(weights) / np.sum(np.tril(weights), axis=-1, keepdims=True)
    return np.moveaxis(weights @ v, 1, 2).reshape(x.shape) @ params[3][0] + params[3][1]


def normal(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def lstm(params, x):
    W, U, b = params
    h, c, out = 0.0 * x[:, 0, :3], 0.0, []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ W + h @ U + b, 4, axis=-1)
        c = sigma(f) * c + sigma(i) * np.tanh(g)
        h = sigma(o) * np.tanh(c)
        out.append(h)
    return np.stack(out, axis=1)


def gru(params, x):
    W, U, b, b_n = params
    h, out = 0.0 * x[:, 0, :3], []
    for t in range(x.shape[1]):
        (xr, xz, xn), (hr, hz, hn) = np.split(x[:, t] @ W + b, 3, axis=-1), np.split(h @ U, 3, axis=-1)
        z = sigma(xz + hz)
        h = (1 - z) * np.tanh(xn + sigma(xr + hr) * (hn + b_n)) + z * h
        out.append(h)
    return np.stack(out, axis=1)


LAYERS = {
    "Dense": (nn.Dense(3), X3, lambda p, x: x @ p[0] + p[1]),
    "Flatten": (nn.Flatten, X4, lambda p, x: x.reshape(2, -1)),
    "residual": (nn.residual(nn.Tanh), X2, lambda p, x: x + np.tanh(x)),
    "fans": (nn.serial(nn.FanOut(2), nn.parallel(nn.Dense(2), nn.Dense(2)), nn.FanInSum), X2,
             lambda p, x: x @ p[1][0][0] + p[1][0][1] + x @ p[1][1][0] + p[1][1][1]),
    "FanInConcat": (nn.serial(nn.FanOut(2), nn.parallel(nn.Sigmoid, nn.Identity), nn.FanInConcat(0)), X2,
                    lambda p, x: np.concatenate([sigma(x), x])),
    "shape_dependent": (nn.shape_dependent(lambda shape: nn.Dense(shape[-1])), X2, lambda p, x: x @ p[0] + p[1]),
    "Conv1D": (nn.Conv1D(3, (2,), (2,)), X3, lambda p, x: correlated(x, p[0], 2) + p[1]),
    "Conv": (nn.Conv(2, (1, 3)), X4,
             lambda p, x: correlated(x.reshape(10, 6, 3), p[0][0], 1).reshape(2, 5, 4, 2) + p[1]),
    "Conv3D": (nn.Conv3D(2, (1, 1, 2)), X4[:, :, None],
               lambda p, x: correlated(x.reshape(10, 6, 3), p[0][0, 0], 1).reshape(2, 5, 1, 5, 2) + p[1]),
    "ConvTranspose": (nn.ConvTranspose(2, (2, 2), (2, 2)), X4, lambda p, x: np.einsum(
        "nijc,klco->nikjlo", x, p[0][::-1, ::-1]).reshape(2, 10, 12, 2) + p[1]),
    "MaxPool": (nn.MaxPool((1, 2), (1, 2)), X4, lambda p, x: x.reshape(2, 5, 3, 2, 3).max(axis=3)),
    "SumPool": (nn.SumPool((5, 1)), X4, lambda p, x: x.sum(axis=1, keepdims=True)),
    "AvgPool": (nn.AvgPool((2, 1), (2, 1), "SAME"), X4, lambda p, x: np.stack(
        [x[:, :2].mean(1), x[:, 2:4].mean(1), x[:, 4]], axis=1)),
    "BatchNorm": (nn.BatchNorm(), X4, lambda p, x: p[1] * normal(x, (0, 1, 2)) + p[0]),
    "BatchNorm of columns": (nn.BatchNorm(0, center=False), X2, lambda p, x: p[1] * normal(x, 0)),
    "BatchNorm, channels first": (nn.BatchNorm((0, 2), scale=False), X3,
                                  lambda p, x: normal(x, (0, 2)) + p[0][:, None]),
    "LayerNorm": (nn.LayerNorm(), X3, lambda p, x: p[1] * normal(x, -1) + p[0]),
    "LayerNorm of planes": (nn.LayerNorm((1, 2)), X4,
                            lambda p, x: p[1][..., None] * normal(x, (1, 2)) + p[0][..., None]),
    "RMSNorm": (nn.RMSNorm(1), X3,
                lambda p, x: p[0][:, None] * x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-6)),
    "GroupNorm": (nn.GroupNorm(2), X3,
                  lambda p, x: p[1] * normal(x.reshape(2, 5, 2, 2), (1, 3)).reshape(x.shape) + p[0]),
    "RNN": (nn.RNN(3, return_sequences=False), X3[:, :2], lambda p, x: np.tanh(
        x[:, 1] @ p[0] + np.tanh(x[:, 0] @ p[0] + p[2]) @ p[1] + p[2])),
    "LSTM": (nn.LSTM(3), X3, lstm),
    "LSTM, last": (nn.LSTM(3, return_sequences=False), X3, lambda p, x: lstm(p, x)[:, -1]),
    "GRU": (nn.GRU(3), X3, gru),
    "MultiHeadAttention": (nn.MultiHeadAttention(2, is_causal=True), X3, attended),
}


def made(layer, x):
    """The output shape, and parameters with nothing in them that is 0 or 1."""
    shape, params = layer[0](KEY, x.shape)
    draw = np.random.default_rng(1)
    return shape, tree_map(lambda p: p + 0.3 * draw.standard_normal(p.shape), params)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    layer, x, again = LAYERS[name]
    shape, params = made(layer, x)
    apply_fun = layer[1]
    value = apply_fun(params, x)
    assert value.shape == tuple(shape)
    agree(value, again(params, x))

    def loss(params, x):
        return np.sum(np.sin(apply_fun(params, x)))
    agree(gs.grad(loss, argnums=(0, 1))(params, x), slope(lambda both: loss(*both), (params, x)), 1e-7)
    xs = np.stack([x, x[::-1]])
    each = [gs.grad(loss)(params, one) for one in xs]
    agree(gs.vmap(gs.grad(loss), in_axes=(None, 0))(params, xs), tree_map(lambda *parts: np.stack(parts), *each))


def test_single_precision_stays():
    x = X3.astype(np.float32)
    for layer in (nn.Dense(2), nn.LSTM(2), nn.GRU(2), nn.LayerNorm(), nn.MultiHeadAttention(2), nn.Conv1D(2, (2,)),
                  nn.AvgPool((2,))):
        params = tree_map(lambda p: p.astype(np.float32), layer[0](KEY, x.shape)[1])
        assert layer[1](params, x).dtype == np.float32


def test_embedding():
    init_fun, apply_fun = nn.Embedding(10, 4)
    shape, params = init_fun(KEY, (-1, 3))
    words = np.array([[1, 2, 1], [9, 0, 1]])
    assert shape == (-1, 3, 4)
    assert np.array_equal(apply_fun(params, words), params[0][words])
    got = gs.grad(lambda params: np.sum(apply_fun(params, words)**2))(params)
    agree(got, (2 * params[0] * np.array([1, 3, 1, 0, 0, 0, 0, 0, 0, 1])[:, None],))


def test_dropout():
    init_fun, apply_fun = nn.serial(nn.Dropout(0.8), nn.Tanh)
    x = np.full((50, 40), 0.5)
    y = apply_fun(init_fun(KEY, x.shape)[1], x, rng=KEY)
    kept = y != 0
    assert abs(np.mean(kept) - 0.8) < 0.03
    agree(y[kept], np.full(kept.sum(), np.tanh(0.625)))
    agree(apply_fun([(), ()], x, mode="test"), np.tanh(x))
    params = [(), ()]
    agree(gs.grad(lambda x: np.sum(apply_fun(params, x, rng=KEY)))(x),
          np.where(kept, 1.25 * (1 - np.tanh(0.625)**2), 0))
    with pytest.raises(ValueError, match="draws in train mode"):
        apply_fun([(), ()], x)
    for wrong in lambda: nn.Dropout(0.5, "eval"), lambda: apply_fun([(), ()], x, mode="eval"):
        with pytest.raises(ValueError, match="mode is"):
            wrong()


def test_running_statistics():
    init_fun, init_state, apply_fun = nn.serial_with_state(nn.Dense(3), nn.BatchNormWithState(0, 0.9), nn.Relu)
    shape, params = init_fun(KEY, (-1, 6))
    state = init_state((-1, 6))
    assert shape == (-1, 3)
    z = X2 @ params[0][0] + params[0][1]

    def loss(params, state, x):
        y, state = apply_fun(params, state, x)
        return np.sum(y**2), state
    (value, after), dparams = gs.value_and_grad(loss, has_aux=True)(params, state, X2)
    agree(after[1], (0.1 * z.mean(0), 0.9 + 0.1 * z.var(0)))
    agree(value, np.sum(np.maximum(normal(z, 0), 0)**2))
    agree(dparams, slope(lambda p: loss(p, state, X2)[0], params), 1e-7)
    y, unchanged = apply_fun(params, after, X2, mode="test")
    agree(y, np.maximum((z - after[1][0]) / np.sqrt(after[1][1] + 1e-5), 0))
    agree(unchanged, after)


def test_errors_of_layers():
    for make, words in [(lambda: nn.residual(nn.Dense(2))[0](KEY, (1, 3)), "keeps the shape"),
                        (lambda: nn.GroupNorm(2)[0](KEY, (1, 3)), "not a multiple"),
                        (lambda: nn.MultiHeadAttention(2)[0](KEY, (1, 2, 3)), "not a multiple"),
                        (lambda: nn.MaxPool((2,), padding="FULL"), "padding is"),
                        (lambda: nn.dot_product_attention(X4, X4, X4, implementation="cudnn"), "implementation is"),
                        (lambda: nn.dot_product_attention(X2, X2, X2), "3 or 4 axes"),
                        (lambda: nn.dot_product_attention(X4, X4, X4[:, 1:]), "as many sources"),
                        (lambda: nn.serial(nn.Tanh)[1]([(), ()], X2), "zip")]:
        with pytest.raises(ValueError, match=words):
            make()


# --- networks -----------------------------------------------------------------------------------------------

init_mlp, mlp = nn.serial(nn.Dense(4), nn.Relu, nn.Dense(3))
MLP = init_mlp(KEY, (-1, 6))[1]


def mlp_loss(params, x, y):
    return np.sum((mlp(params, x) - y) ** 2)


def test_gradient_reads_as_if_written_by_hand():
    """The text of the gradient; by hand it has as many statements."""
    assert gs.grad(mlp_loss).source_for(MLP, X2, P) == '''import numpy as np


def grad_mlp_loss(params, x, y):
    W, b = params[0]
    inputs = x @ W + b
    mask_inputs = inputs <= 0
    where_inputs = np.where(mask_inputs, 0, inputs)
    W, b = params[2]
    inputs = where_inputs @ W + b

    # return np.sum((mlp(params, x) - y) ** 2)
    dinputs = 2 * (inputs - y)
    # return inputs @ W + b
    db = np.sum(dinputs, axis=0)
    dW = where_inputs.T @ dinputs
    dinputs = dinputs @ W.T
    dz = np.where(mask_inputs, 0, dinputs)
    db_1 = np.sum(dz, axis=0)
    dW_1 = x.T @ dz
    return [(dW_1, db_1), (), (dW, db)]
'''


def test_examples_by_themselves():
    each = gs.vmap(gs.grad(mlp_loss), in_axes=(None, 0, 0))(MLP, X2, P)
    for i in range(5):
        agree(tree_map(lambda d, i=i: d[i], each), gs.grad(mlp_loss)(MLP, X2[i], P[i]))
    agree(tree_map(lambda d: d.sum(axis=0), each), gs.grad(mlp_loss)(MLP, X2, P))


NETWORKS = {
    "mlp": (nn.serial(nn.Dense(4), nn.Relu, nn.Dense(3)), X2[:2]),
    "convolutions": (nn.serial(nn.Conv(2, (3, 3), padding="SAME"), nn.BatchNorm(), nn.Relu, nn.MaxPool((2, 2), (2, 2)),
                               nn.Flatten, nn.Dense(3)), X4),
    "lstm": (nn.LSTM(3, return_sequences=False), X3),
    "attention": (nn.MultiHeadAttention(2), X3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_compiled(name):
    layer, x = NETWORKS[name]
    params, apply_fun = made(layer, x)[1], layer[1]

    def loss(params, x, labels):
        outputs = apply_fun(params, x)
        if outputs.ndim == 2:
            return np.mean(nn.softmax_cross_entropy_with_integer_labels(outputs, labels))
        return np.mean(nn.l2_loss(outputs))
    step = gs.value_and_grad(loss)
    agree(gs.jit(step)(params, x, LABELS[:2]), step(params, x, LABELS[:2]))
    agree(step(params, x, LABELS[:2])[1], slope(lambda p: loss(p, x, LABELS[:2]), params), 1e-7)
