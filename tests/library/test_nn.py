# SPDX-License-Identifier: Apache-2.0
"""gs.nn against closed forms, plain NumPy and differences: values, gradients, batches, compiled code, errors."""
import math
import warnings

import numpy as np
import pytest
from scipy import special

import gradscribe as gs
from gradscribe import nn
from gradscribe.tree_util import ravel_pytree, tree_leaves, tree_structure

rng = np.random.default_rng(7)
KEY = gs.random.key(3)
X2, X3, X4 = rng.standard_normal((5, 6)), rng.standard_normal((2, 5, 4)), rng.standard_normal((2, 5, 6, 3))
SIDES = np.array([-1000.0, -700.0, -40.0, -2.5, -0.4, 0.3, 1.7, 40.0, 700.0, 1000.0])


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


# --- functions ----------------------------------------------------------------------------------------------

def sigma(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def plus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def below(x):
    return np.minimum(x, 0)


# name: the function again, written otherwise, and its derivative
FORMS = {
    "relu": (lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0)),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda x: 1.0 * ((x > 0) & (x < 6))),
    "leaky_relu": (lambda x: np.maximum(x, 0.01 * x), lambda x: np.where(x > 0, 1, 0.01)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(below(x))), lambda x: np.exp(below(x))),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(below(x))), lambda x: np.exp(below(x))),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(below(x))),
             lambda x: 1.0507009873554805 * np.where(x > 0, 1, 1.6732632423543772 * np.exp(below(x)))),
    "sigmoid": (sigma, lambda x: sigma(x) * sigma(-x)),
    "log_sigmoid": (lambda x: -plus(-x), lambda x: sigma(-x)),
    "silu": (lambda x: x * sigma(x), lambda x: sigma(x) + x * sigma(x) * sigma(-x)),
    "mish": (lambda x: x * np.tanh(plus(x)),
             lambda x: np.tanh(plus(x)) + x * sigma(x) * (1 - np.tanh(plus(x))**2)),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), lambda x: 1.0 * (np.abs(x) <= 1)),
    "hard_sigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, lambda x: np.where(np.abs(x) < 3, 1 / 6, 0)),
    "hard_silu": (lambda x: x * np.clip(x + 3, 0, 6) / 6,
                  lambda x: np.where(np.abs(x) < 3, (2 * x + 3) / 6, 1.0 * (x > 0))),
    "softplus": (plus, sigma),
    "soft_sign": (lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + np.abs(x))**2),
    "squareplus": (lambda x: (x + np.hypot(x, 2)) / 2, lambda x: (1 + x / np.hypot(x, 2)) / 2),
    "sparse_plus": (lambda x: np.where(np.abs(x) < 1, (x + 1)**2 / 4, np.maximum(x, 0)),
                    lambda x: np.clip((x + 1) / 2, 0, 1)),
    "sparse_sigmoid": (lambda x: np.clip((x + 1) / 2, 0, 1), lambda x: np.where(np.abs(x) < 1, 0.5, 0)),
    "identity": (lambda x: x, np.ones_like),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x)**2),
}


@pytest.mark.parametrize("name", FORMS)
def test_activations(name):
    f, (again, derivative) = getattr(nn, name), FORMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, df = f(SIDES), gs.grad(lambda x: np.sum(f(x)))(SIDES)
        second = gs.grad(lambda x: np.sum(gs.grad(lambda x: np.sum(f(x)))(x)))(SIDES)
    agree(value, again(SIDES))
    agree(df, derivative(SIDES))
    assert np.all(np.isfinite(second))
    assert f(SIDES.astype(np.float32)).dtype == np.float32
    agree(gs.vmap(gs.grad(lambda x: np.sum(f(x))))(X2), derivative(X2))


# name, the derivative at each kink: jax.nn's
KINKS = [("relu", {0.0: 0.0}), ("relu6", {0.0: 0.0, 6.0: 0.0}), ("leaky_relu", {0.0: 1.0}), ("elu", {0.0: 1.0}),
         ("celu", {0.0: 1.0}), ("selu", {0.0: 1.0507009873554805 * 1.6732632423543772}), ("soft_sign", {0.0: 1.0}),
         ("hard_tanh", {-1.0: 1.0, 1.0: 1.0}), ("hard_sigmoid", {-3.0: 0.0, 3.0: 0.0}),
         ("hard_silu", {-3.0: 0.0, 3.0: 1.0}), ("sparse_plus", {-1.0: 0.0, 1.0: 1.0}),
         ("sparse_sigmoid", {-1.0: 0.25, 1.0: 0.25}), ("sigmoid", {0.0: 0.25}), ("softplus", {0.0: 0.5})]


@pytest.mark.parametrize("name, slopes", KINKS)
def test_derivatives_at_kinks(name, slopes):
    f = getattr(nn, name)
    got = gs.grad(lambda x: np.sum(f(x)))(np.array(list(slopes)))
    agree(got, np.array(list(slopes.values())))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_not_a_number_stays_one():
    for name in FORMS:
        assert np.isnan(getattr(nn, name)(np.array([np.nan])))[0], name


def test_gelu():
    x = SIDES[3:7]
    agree(nn.gelu(x, approximate=False), x * special.ndtr(x))
    agree(nn.gelu(x), 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    agree(gs.grad(lambda x: np.sum(nn.gelu(x, approximate=False)))(x),
          special.ndtr(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
    agree(gs.grad(lambda x: np.sum(nn.gelu(x)))(x), slope(lambda x: np.sum(nn.gelu(x)), x), 1e-8)
    agree(gs.grad(lambda x: np.sum(nn.gelu(x)))(SIDES[[0, -1]]), np.array([0.0, 1.0]))
    assert nn.gelu(x.astype(np.float32)).dtype == nn.gelu(x.astype(np.float32), approximate=False).dtype == np.float32


def test_log1mexp():
    x = np.array([1e-20, 1e-5, 0.5, math.log(2.0), 3.0, 50.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, df = nn.log1mexp(x), gs.grad(lambda x: np.sum(nn.log1mexp(x)))(x)
    assert value[0] == math.log(1e-20)
    agree(value[2:], np.log(1 - np.exp(-x[2:])))
    agree(df, 1 / np.expm1(x))


def test_alpha_and_slope_of_arrays():
    alpha = np.array([0.5, 2.0])
    x = np.array([[-1.0, -2.0], [3.0, -0.5]])
    agree(nn.elu(x, alpha), np.where(x > 0, x, alpha * np.expm1(below(x))))
    agree(nn.celu(x, alpha), np.where(x > 0, x, alpha * np.expm1(below(x) / alpha)))
    agree(nn.leaky_relu(x, alpha), np.where(x > 0, x, alpha * x))
    agree(gs.grad(lambda a: np.sum(nn.celu(x, a)))(alpha), slope(lambda a: np.sum(nn.celu(x, a)), alpha), 1e-8)


MASK = np.array([[True] * 6, [True, False, True, True, False, True], [False] * 6, [True] * 5 + [False],
                 [False] * 5 + [True]])


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
def test_softmax_and_logarithms(axis):
    e = np.exp(X2)
    agree(nn.softmax(X2, axis), e / np.sum(e, axis=axis, keepdims=True))
    agree(nn.log_softmax(X2, axis), np.log(e / np.sum(e, axis=axis, keepdims=True)))
    agree(nn.logsumexp(X2, axis), np.log(np.sum(e, axis=axis)))
    agree(nn.logmeanexp(X2, axis), np.log(np.mean(e, axis=axis)))
    for f in nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp:
        def loss(x, f=f):
            return np.sum(f(x, axis)**3)
        agree(gs.grad(loss)(X2), slope(loss, X2), 1e-7)
        assert f(X2.astype(np.float32), axis).dtype == np.float32


def test_softmax_where():
    e = np.where(MASK, np.exp(X2), 0)
    kept = np.any(MASK, axis=1)
    total = np.sum(e, axis=1, keepdims=True)[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p, logp = nn.softmax(X2, where=MASK), nn.log_softmax(X2, where=MASK)
    agree(p[kept], e[kept] / total)
    assert np.all(p[2] == 0)
    agree(np.exp(logp[kept]), e[kept] / total)
    assert np.all(logp[2] == -np.inf)
    agree(nn.logsumexp(X2, axis=1, where=MASK)[kept], np.log(total[:, 0]))
    agree(nn.logmeanexp(X2[kept], axis=1, where=MASK[kept]), np.log(total[:, 0] / np.sum(MASK[kept], axis=1)))

    def loss(x):
        return np.sum(nn.softmax(x, where=MASK)**3) + np.sum(np.where(MASK, nn.log_softmax(x, where=MASK), 0)**3)
    agree(gs.grad(loss)(X2), slope(loss, X2), 1e-7)
    far = np.array([1000.0, 0.0, -1000.0])
    agree(nn.softmax(far), np.array([1.0, 0.0, 0.0]))
    agree(nn.log_softmax(far), np.array([0.0, -1000.0, -2000.0]))


def test_logsumexp_with_factors():
    b = np.array([[1.0], [2.0], [-1.0], [0.5], [0.0]])
    value, sign = nn.logsumexp(X2, axis=0, b=b, return_sign=True)
    agree(sign * np.exp(value), np.sum(b * np.exp(X2), axis=0))
    agree(nn.logsumexp(X2, axis=1, keepdims=True), np.log(np.sum(np.exp(X2), axis=1, keepdims=True)))


def test_standardize():
    centred = X2 - X2.mean(axis=0)
    for algorithm in "stable", "fast":
        agree(nn.standardize(X2, 0, algorithm=algorithm), centred / np.sqrt(X2.var(axis=0) + 1e-5))
    agree(nn.standardize(X2, 0, mean=1.0, variance=4.0, epsilon=0.0), (X2 - 1) / 2)
    agree(nn.standardize(X2, 0, mean=1.0, epsilon=0.0), (X2 - 1) / np.sqrt(np.mean((X2 - 1)**2, axis=0)))
    seen = X2 > -1
    mean = np.mean(X2, axis=1, keepdims=True, where=seen)
    agree(nn.standardize(X2, 1, where=seen, epsilon=0.0),
          (X2 - mean) / np.sqrt(np.mean((X2 - mean)**2, axis=1, keepdims=True, where=seen)))
    agree(nn.standardize(X2 + 1e9, 0), nn.standardize(X2, 0), 1e-6)
    with pytest.raises(ValueError, match="'fast' or 'stable'"):
        nn.standardize(X2, algorithm="slow")


def test_one_hot_and_glu():
    agree(nn.one_hot(np.array([[1, 0], [2, 5]]), 3), np.eye(6)[:, :3][np.array([[1, 0], [2, 5]])])
    assert nn.one_hot(np.array([1, 2]), 3, axis=0, dtype=np.int8).tolist() == [[0, 0], [1, 0], [0, 1]]
    assert nn.one_hot(np.array([1]), 3, dtype=bool).dtype == bool
    assert nn.one_hot(2, 3).tolist() == [0.0, 0.0, 1.0]
    agree(nn.glu(X2), X2[:, :3] * sigma(X2[:, 3:]))
    agree(nn.glu(X4, axis=2), X4[:, :, :3] * sigma(X4[:, :, 3:]))
    agree(gs.grad(lambda x: np.sum(nn.glu(x)))(X2), slope(lambda x: np.sum(nn.glu(x)), X2), 1e-8)
    with pytest.raises(ValueError, match="even length"):
        nn.glu(X2, axis=0)


# --- initialisers -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode, n", [("fan_in", 3 * 40), ("fan_out", 3 * 60), ("fan_avg", 150.0),
                                     ("fan_geo_avg", 3 * math.sqrt(2400))])
@pytest.mark.parametrize("distribution", ["truncated_normal", "normal", "uniform"])
def test_variance_scaling(mode, n, distribution):
    w = nn.initializers.variance_scaling(2.0, mode, distribution)(KEY, (3, 40, 60))
    assert w.shape == (3, 40, 60)
    assert w.dtype == np.float64
    assert abs(np.mean(w)) < 4 * math.sqrt(2 / n / w.size)
    assert abs(np.var(w) * n / 2 - 1) < 0.06
    limit = {"truncated_normal": 2 / 0.87962566103423978, "normal": 6.0, "uniform": math.sqrt(3)}[distribution]
    assert np.max(np.abs(w)) <= limit * math.sqrt(2 / n)


def test_initializers():
    init = nn.initializers
    assert init.zeros(KEY, (2, 3), np.float32).dtype == np.float32
    assert init.constant(4)(KEY, (2,)).tolist() == [4.0, 4.0]
    assert init.ones(KEY, (2,)).tolist() == [1.0, 1.0]
    assert np.array_equal(init.normal(2.0)(KEY, (4,)), 2.0 * gs.random.normal(KEY, (4,)))
    assert np.array_equal(init.uniform(2.0)(KEY, (4,)), 2.0 * gs.random.uniform(KEY, (4,)))
    assert np.all(np.abs(init.truncated_normal(3.0, lower=-1.0, upper=0.5)(KEY, (99,)) - -0.75) <= 2.25)
    assert init.glorot_uniform(dtype=np.float32)(KEY, (3, 4)).dtype == np.float32
    assert init.xavier_normal is init.glorot_normal
    assert init.kaiming_uniform is init.he_uniform
    w = init.glorot_normal(in_axis=(0, 1), out_axis=2, batch_axis=3)(KEY, (2, 3, 6, 50))
    assert abs(np.var(w) * 6 - 1) < 0.15
    z = init.variance_scaling(1.0, "fan_in", "uniform", dtype=np.complex128)(KEY, (50, 60))
    assert z.dtype == np.complex128
    assert abs(np.mean(np.abs(z)**2) * 50 - 1) < 0.05
    z = init.variance_scaling(1.0, "fan_in", "truncated_normal", dtype=np.complex64)(KEY, (50, 60))
    assert z.dtype == np.complex64
    assert abs(np.mean(np.abs(z)**2) * 50 - 1) < 0.05


@pytest.mark.parametrize("shape, axis", [((4, 6), -1), ((6, 4), -1), ((2, 3, 4), -1), ((4, 2, 3), 0)])
def test_orthogonal(shape, axis):
    w = np.moveaxis(nn.initializers.orthogonal(3.0, axis)(KEY, shape), axis, -1).reshape(-1, shape[axis])
    small = min(w.shape)
    agree(w @ w.T if w.shape[0] == small else w.T @ w, 9 * np.eye(small))
    kernel = nn.initializers.delta_orthogonal()(KEY, (3, 4, *sorted(shape[-2:])))
    agree(kernel[1, 1] @ kernel[1, 1].T, np.eye(sorted(shape[-2:])[0]))
    assert np.count_nonzero(kernel) == kernel[1, 1].size


def test_errors_of_initializers():
    init = nn.initializers
    for make, words in [(lambda: init.variance_scaling(1.0, "fan", "normal"), "mode is one of"),
                        (lambda: init.variance_scaling(1.0, "fan_in", "cauchy"), "distribution is one of"),
                        (lambda: init.he_normal()(KEY, (3,)), "no axis -2"),
                        (lambda: init.orthogonal()(KEY, (3,)), "two axes"),
                        (lambda: init.delta_orthogonal()(KEY, (3, 3)), "three to five"),
                        (lambda: init.delta_orthogonal()(KEY, (3, 4, 3)), "no more inputs")]:
        with pytest.raises(ValueError, match=words):
            make()


# --- losses -------------------------------------------------------------------------------------------------

P, T = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
SHARES = rng.dirichlet(np.ones(3), 5)
LABELS = np.array([0, 2, 1, 1, 0])
SIGNS = np.where(T > 0, 1.0, -1.0)
LOGP = P - np.log(np.sum(np.exp(P), axis=1, keepdims=True))
AT_LABEL = LOGP[np.arange(5), LABELS]
ONES = (LABELS[:, None] == np.arange(3)) * 1.0
LOSSES = {
    "squared_error": (lambda p: nn.squared_error(p, T), (P - T)**2),
    "l2_loss": (lambda p: nn.l2_loss(p, T), (P - T)**2 / 2),
    "huber_loss": (lambda p: nn.huber_loss(p, T, 0.7),
                   np.where(np.abs(P - T) < 0.7, (P - T)**2 / 2, 0.7 * np.abs(P - T) - 0.245)),
    "log_cosh": (lambda p: nn.log_cosh(p, T), np.log(np.cosh(P - T))),
    "cosine_similarity": (lambda p: nn.cosine_similarity(p, T), np.sum(P * T, axis=1)
                          / np.sqrt(np.sum(P**2, axis=1) * np.sum(T**2, axis=1))),
    "cosine_distance": (lambda p: nn.cosine_distance(p, T, axis=0), 1 - np.sum(P * T, axis=0)
                        / np.sqrt(np.sum(P**2, axis=0) * np.sum(T**2, axis=0))),
    "sigmoid_binary_cross_entropy": (lambda p: nn.sigmoid_binary_cross_entropy(p, SHARES), plus(P) - SHARES * P),
    "sigmoid_focal_loss": (lambda p: nn.sigmoid_focal_loss(p, ONES, 0.3, 1.5),
                           np.where(ONES == 1, 0.3, 0.7) * plus(np.where(ONES == 1, -P, P))
                           * sigma(np.where(ONES == 1, -P, P))**1.5),
    "softmax_cross_entropy": (lambda p: nn.softmax_cross_entropy(p, SHARES), -np.sum(SHARES * LOGP, axis=1)),
    "softmax_cross_entropy_with_integer_labels": (
        lambda p: nn.softmax_cross_entropy_with_integer_labels(p, LABELS), -AT_LABEL),
    "safe_softmax_cross_entropy": (lambda p: nn.safe_softmax_cross_entropy(p, ONES), -AT_LABEL),
    "poly_loss_cross_entropy": (lambda p: nn.poly_loss_cross_entropy(p, ONES, 0.5),
                                -AT_LABEL + 0.5 * (1 - np.exp(AT_LABEL))),
    "kl_divergence": (lambda p: nn.kl_divergence(p, SHARES), np.sum(SHARES * (np.log(SHARES) - P), axis=1)),
    "kl_divergence_with_log_targets": (lambda p: nn.kl_divergence_with_log_targets(p, LOGP),
                                       np.sum(np.exp(LOGP) * (LOGP - P), axis=1)),
    "convex_kl_divergence": (lambda p: nn.convex_kl_divergence(p, SHARES),
                             np.sum(SHARES * (np.log(SHARES) - P) + np.exp(P) - SHARES, axis=1)),
    "hinge_loss": (lambda p: nn.hinge_loss(p, SIGNS), np.maximum(0, 1 - P * SIGNS)),
    "perceptron_loss": (lambda p: nn.perceptron_loss(p, SIGNS), np.maximum(0, -P * SIGNS)),
    "multiclass_hinge_loss": (lambda p: nn.multiclass_hinge_loss(p, LABELS),
                              np.max(P + 1 - ONES, axis=1) - P[np.arange(5), LABELS]),
    "multiclass_perceptron_loss": (lambda p: nn.multiclass_perceptron_loss(p, LABELS),
                                   np.max(P, axis=1) - P[np.arange(5), LABELS]),
    "smooth_labels": (lambda p: nn.smooth_labels(p, 0.3), 0.7 * P + 0.1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    f, want = LOSSES[name]
    agree(f(P), want)

    def loss(p):
        return np.sum(f(p)**2)
    agree(gs.grad(loss)(P), slope(loss, P), 1e-7)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")        # 0 times -inf, then left out
def test_losses_far_away():
    far = np.array([[1000.0, 0.0, -1000.0]])
    agree(nn.softmax_cross_entropy(far, np.array([[0.0, 0.0, 1.0]])), np.array([2000.0]))
    agree(nn.softmax_cross_entropy_with_integer_labels(far, np.array([2])), np.array([2000.0]))
    agree(nn.sigmoid_binary_cross_entropy(far, np.ones((1, 3))), np.array([[0.0, math.log(2), 1000.0]]))
    agree(gs.grad(lambda p: np.sum(nn.sigmoid_binary_cross_entropy(p, np.ones((1, 3)))))(far),
          np.array([[0.0, -0.5, -1.0]]))
    seen = np.array([[True, False, True]])
    agree(nn.softmax_cross_entropy(far, np.array([[0.5, 0.0, 0.5]]), where=seen), np.array([1000.0]))
    agree(nn.softmax_cross_entropy_with_integer_labels(far.T, np.array([1]), axis=0, where=~seen.T), np.array([0.0]))
    zero = np.zeros((1, 2))
    agree(nn.cosine_similarity(zero, np.ones((1, 2)), epsilon=1e-3), np.zeros(1))
    agree(gs.grad(lambda p: np.sum(nn.cosine_similarity(p, np.ones((1, 2)), 0.1)))(zero), zero + 10 / math.sqrt(2))


def test_errors_of_losses():
    with pytest.raises(ValueError, match="2 axes, targets with 1"):
        nn.l2_loss(P, T[:, 0])
    with pytest.raises(IndexError):
        nn.softmax_cross_entropy_with_integer_labels(P, LABELS + 5)
