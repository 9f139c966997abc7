# SPDX-License-Identifier: Apache-2.0
"""Losses, one for each entry or each row, with optax's names and arguments; reduce them yourself, with np.mean say.

Predictions and targets that are compared entry by entry must have the same number of axes (else ValueError), since a
column against a row would silently broadcast to a matrix.
"""
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from gradscribe.nn.functions import Axis, log_softmax, logsumexp, one_hot, softmax

__all__ = ["convex_kl_divergence", "cosine_distance", "cosine_similarity", "hinge_loss", "huber_loss", "kl_divergence",
           "kl_divergence_with_log_targets", "l2_loss", "log_cosh", "multiclass_hinge_loss",
           "multiclass_perceptron_loss", "perceptron_loss", "poly_loss_cross_entropy", "safe_softmax_cross_entropy",
           "sigmoid_binary_cross_entropy", "sigmoid_focal_loss", "smooth_labels", "softmax_cross_entropy",
           "softmax_cross_entropy_with_integer_labels", "squared_error"]


def _check_axes(predictions, targets):
    if np.ndim(predictions) != np.ndim(targets):
        raise ValueError(f"predictions with {np.ndim(predictions)} axes, targets with {np.ndim(targets)}")


def _errors(predictions, targets):
    if targets is None:
        return predictions
    _check_axes(predictions, targets)
    return predictions - targets


def squared_error(predictions: np.ndarray, targets: np.ndarray | None = None) -> np.ndarray:
    """(predictions - targets)² for each entry; targets are 0 by default.

    >>> squared_error(np.array([1.0, 3.0]), np.array([1.0, 1.0])).tolist()
    [0.0, 4.0]
    """
    return _errors(predictions, targets=targets)**2


def l2_loss(predictions: np.ndarray, targets: np.ndarray | None = None) -> np.ndarray:
    """Half of (predictions - targets)² for each entry; targets are 0 by default.

    >>> l2_loss(np.array([1.0, 3.0]), np.array([1.0, 1.0])).tolist()
    [0.0, 2.0]
    """
    return 0.5 * _errors(predictions, targets=targets)**2


def huber_loss(predictions: np.ndarray, targets: np.ndarray | None = None, delta: float = 1.0) -> np.ndarray:
    """Half of the squared error up to delta, linear beyond.

    P. J. Huber, Robust estimation of a location parameter (1964), page 73.

    >>> huber_loss(np.array([0.5, -3.0])).tolist()
    [0.125, 2.5]
    """
    errors = _errors(predictions, targets=targets)
    size = np.abs(errors)
    return np.where(size <= delta, 0.5 * errors**2, delta * (size - 0.5 * delta))


def log_cosh(predictions: np.ndarray, targets: np.ndarray | None = None) -> np.ndarray:
    """log(cosh(error)) for each entry: quadratic near 0, linear far from it.

    >>> log_cosh(np.array([0.0, 1000.0])).round(6).tolist()
    [0.0, 999.306853]
    """
    errors = _errors(predictions, targets=targets)
    return np.logaddexp(errors, -errors) - math.log(2.0)


def _unit(x, epsilon, axis):
    """x divided by its norm, or by epsilon if that is larger."""
    short = np.sum(x * x, axis=axis, keepdims=True) <= epsilon**2
    return x / np.where(short, epsilon, np.sqrt(np.sum(np.where(short, 1.0, x)**2, axis=axis, keepdims=True)))


def cosine_similarity(predictions: np.ndarray, targets: np.ndarray, epsilon: float = 0.0, axis: int = -1) -> np.ndarray:
    """The cosine of the angle between the vectors along the axis; norms count as at least epsilon.

    >>> cosine_similarity(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]])).tolist()
    [0.8]
    """
    _check_axes(predictions, targets)
    return np.sum(_unit(predictions, epsilon, axis) * _unit(targets, epsilon, axis), axis=axis)


def cosine_distance(predictions: np.ndarray, targets: np.ndarray, epsilon: float = 0.0, axis: int = -1) -> np.ndarray:
    """1 minus the cosine of the angle between the vectors along the axis.

    >>> cosine_distance(np.array([[3.0, 4.0]]), np.array([[4.0, -3.0]])).tolist()
    [1.0]
    """
    return 1.0 - cosine_similarity(predictions, targets, epsilon, axis)


def sigmoid_binary_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """-labels log σ(logits) - (1 - labels) log σ(-logits) for each entry; labels between 0 and 1.

    >>> sigmoid_binary_cross_entropy(np.array([0.0, 1000.0]), np.array([1.0, 0.0])).round(6).tolist()
    [0.693147, 1000.0]
    """
    _check_axes(logits, labels)
    return -labels * special.log_expit(logits) - (1 - labels) * special.log_expit(-logits)


def sigmoid_focal_loss(logits: np.ndarray, labels: np.ndarray, alpha: float | None = None,
                       gamma: float = 2.0) -> np.ndarray:
    """The binary cross entropy times (1 - p)^gamma, where p is the probability of the label.

    With alpha, losses are also multiplied by alpha where the label is 1, and by 1 - alpha where it is 0.

    T.-Y. Lin et al., Focal loss for dense object detection (2017), equations 4 and 5.

    >>> sigmoid_focal_loss(np.array([0.0]), np.array([1.0])).round(6).tolist()
    [0.173287]
    """
    missed = labels * special.expit(-logits) + (1 - labels) * special.expit(logits)
    loss = sigmoid_binary_cross_entropy(logits, labels) * missed**gamma
    if alpha is None:
        return loss
    return (alpha * labels + (1 - alpha) * (1 - labels)) * loss


def softmax_cross_entropy(logits: np.ndarray, labels: np.ndarray, axis: Axis = -1,
                          where: ArrayLike | None = None) -> np.ndarray:
    """-Σ labels log softmax(logits) along the axis, over the classes where `where` is true; labels are probabilities.

    >>> softmax_cross_entropy(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])).round(6).tolist()
    [0.693147]
    """
    _check_axes(logits, labels)
    terms = labels * log_softmax(logits, axis, where)
    return -np.sum(terms if where is None else np.where(where, terms, 0), axis=axis)


def softmax_cross_entropy_with_integer_labels(logits: np.ndarray, labels: ArrayLike, axis: int = -1,
                                              where: ArrayLike | None = None) -> np.ndarray:
    """-log softmax(logits) at the class of each label, an integer.  IndexError for a label that is too large.

    >>> softmax_cross_entropy_with_integer_labels(np.array([[0.0, 0.0]]), np.array([1])).round(6).tolist()
    [0.693147]
    """
    at_label = np.take_along_axis(logits, np.expand_dims(labels, axis), axis=axis)
    return logsumexp(logits, axis=axis, where=where) - np.sum(at_label, axis=axis)


def safe_softmax_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """softmax_cross_entropy in which a class with label 0 contributes 0 even if its logit is -inf.

    >>> safe_softmax_cross_entropy(np.array([[-np.inf, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [-0.0]
    """
    _check_axes(logits, labels)
    return -np.sum(labels * np.where(labels == 0, 0.0, log_softmax(logits)), axis=-1)


def poly_loss_cross_entropy(logits: np.ndarray, labels: np.ndarray, epsilon: float = 2.0, axis: Axis = -1,
                            where: ArrayLike | None = None) -> np.ndarray:
    """The cross entropy plus epsilon (1 - p), where p is the probability of the label.

    Z. Leng et al., PolyLoss (2022), equation 6.

    >>> poly_loss_cross_entropy(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])).round(6).tolist()
    [1.693147]
    """
    right = np.sum(labels * softmax(logits, axis, where), axis=axis)
    return softmax_cross_entropy(logits, labels, axis, where) + epsilon * (1 - right)


def kl_divergence(log_predictions: np.ndarray, targets: np.ndarray, axis: Axis = -1) -> np.ndarray:
    """Σ targets (log targets - log_predictions) along the axis; a target of 0 contributes 0.

    >>> kl_divergence(np.log(np.array([[0.5, 0.5]])), np.array([[1.0, 0.0]])).round(6).tolist()
    [0.693147]
    """
    _check_axes(log_predictions, targets)
    return np.sum(special.xlogy(targets, targets) - targets * log_predictions, axis=axis)


def kl_divergence_with_log_targets(log_predictions: np.ndarray, log_targets: np.ndarray, axis: Axis = -1) -> np.ndarray:
    """kl_divergence from the logarithms of the targets.

    >>> kl_divergence_with_log_targets(np.log(np.array([[0.5, 0.5]])), np.log(np.array([[0.5, 0.5]]))).tolist()
    [0.0]
    """
    _check_axes(log_predictions, log_targets)
    return np.sum(np.exp(log_targets) * (log_targets - log_predictions), axis=axis)


def convex_kl_divergence(log_predictions: np.ndarray, targets: np.ndarray, axis: Axis = -1) -> np.ndarray:
    """kl_divergence plus Σ (predictions - targets): convex in both even if they do not sum to 1.

    >>> convex_kl_divergence(np.log(np.array([[0.5, 0.5]])), np.array([[0.5, 0.5]])).tolist()
    [0.0]
    """
    return kl_divergence(log_predictions, targets, axis) + np.sum(np.exp(log_predictions) - targets, axis=axis)


def hinge_loss(predictor_outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """max(0, 1 - targets predictor_outputs); targets are -1 or 1.

    >>> hinge_loss(np.array([0.5, 3.0]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.0]
    """
    _check_axes(predictor_outputs, targets)
    return np.maximum(0.0, 1.0 - predictor_outputs * targets)


def perceptron_loss(predictor_outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """max(0, -targets predictor_outputs); targets are -1 or 1.

    >>> perceptron_loss(np.array([-0.5, 3.0]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.0]
    """
    _check_axes(predictor_outputs, targets)
    return np.maximum(0.0, -predictor_outputs * targets)


def multiclass_hinge_loss(scores: np.ndarray, labels: ArrayLike) -> np.ndarray:
    """The largest score, with 1 added to all but the label's, minus the label's score.

    K. Crammer, Y. Singer, On the algorithmic implementation of multiclass kernel-based vector machines (2001).

    >>> multiclass_hinge_loss(np.array([2.0, 1.5]), 0).tolist()
    0.5
    """
    chosen = one_hot(labels, scores.shape[-1])
    return np.max(scores + 1.0 - chosen, axis=-1) - np.sum(scores * chosen, axis=-1)


def multiclass_perceptron_loss(scores: np.ndarray, labels: ArrayLike) -> np.ndarray:
    """The largest score minus the label's score.

    >>> multiclass_perceptron_loss(np.array([2.0, 1.5]), 1).tolist()
    0.5
    """
    return np.max(scores, axis=-1) - np.sum(scores * one_hot(labels, scores.shape[-1]), axis=-1)


def smooth_labels(labels: np.ndarray, alpha: float) -> np.ndarray:
    """(1 - alpha) labels + alpha / number of classes, with the classes along the last axis.

    R. Müller, S. Kornblith, G. Hinton, When does label smoothing help? (2019), section 1.1.

    >>> smooth_labels(np.array([1.0, 0.0]), 0.5).tolist()
    [0.75, 0.25]
    """
    return (1.0 - alpha) * labels + alpha / labels.shape[-1]
