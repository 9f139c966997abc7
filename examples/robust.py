# SPDX-License-Identifier: Apache-2.0
"""A regression that outliers do not spoil, as an estimator with scikit-learn's methods: fit, predict, score.

    python examples/robust.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

Errors follow Student's t.  The loss is ten lines of NumPy; its gradient goes to a quasi-Newton method, and the inverse
of its Hessian gives standard errors, which few estimators have.  The data are 434 children's test scores, to which some
false ones are added.  The estimator takes arrays and pandas' frames.  With scikit-learn installed it goes into
pipelines and cross-validation; without it, it works the same.
"""
import inspect
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shown

import gradscribe as gs

try:
    from sklearn.base import BaseEstimator, RegressorMixin
except ImportError:
    class BaseEstimator:                # type: ignore[no-redef]
        """What scikit-learn asks of an estimator: parameters that can be read and set."""

        def get_params(self, deep=True):
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def set_params(self, **params):
            for name, value in params.items():
                if name not in self.get_params():
                    raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
                setattr(self, name, value)
            return self

    class RegressorMixin:               # type: ignore[no-redef]
        """The coefficient of determination as score."""

        def score(self, X, y):
            y = np.asarray(y, float)
            return 1.0 - np.sum((y - self.predict(X)) ** 2) / np.sum((y - y.mean()) ** 2)

DATA = Path(__file__).resolve().parent / "data" / "posteriors.json"
NAMES = ("mom_hs", "mom_iq")


# --- the model: what a user writes -----------------------------------------------

def loss(params, X, y, nu, alpha):
    """Minus the log likelihood of y = X coef + intercept + scale t, with a ridge; params: (coef, intercept, log scale).

    K. Lange, R. Little, J. Taylor, Robust statistical modeling using the t distribution (1989).
    """
    coef, intercept, log_scale = params[:-2], params[-2], params[-1]
    squares = ((y - X @ coef - intercept) / np.exp(log_scale)) ** 2
    return 0.5 * (nu + 1) * np.sum(np.log1p(squares / nu)) + len(y) * log_scale + 0.5 * alpha * np.sum(coef ** 2)


def lowest(start, X, y, nu, alpha):
    """The parameters at which the loss is smallest, and the norm of its gradient there."""
    found = gs.optim.minimize(loss, start, (X, y, nu, alpha), method="BFGS", tol=1e-8 * len(y))
    return found.x, np.linalg.norm(gs.grad(loss)(found.x, X, y, nu, alpha))


lowest_compiled = gs.jit(lowest)
curvature = gs.hessian(loss)


class RobustRegressor(RegressorMixin, BaseEstimator):
    """Linear regression with errors of Student's t with nu degrees of freedom.

    alpha: a ridge, on coefficients of features that are scaled to unit variance.  jit: whether the fit is compiled.
    After fit: coef_, intercept_, scale_, their standard errors coef_error_, and n_features_in_, feature_names_in_.
    """

    def __init__(self, nu=4.0, alpha=0.0, jit=True):
        self.nu, self.alpha, self.jit = nu, alpha, jit

    def fit(self, X, y):
        """Fit to X (samples, features) and y (samples,)."""
        names = getattr(X, "columns", None)
        X = _matrix(X)
        y = _vector(y, len(X))
        centre, width = X.mean(axis=0), X.std(axis=0)
        width[width == 0] = 1.0
        scaled = (X - centre) / width
        start = np.concatenate([np.zeros(X.shape[1]), [np.median(y), np.log(np.std(y) or 1.0)]])
        with np.errstate(all="ignore"):
            run = lowest_compiled if self.jit else lowest
            params, slope = run(start, scaled, y, float(self.nu), float(self.alpha))
        if not slope <= 1e-4 * len(y):
            raise ValueError("the fit did not converge: where most of y fits exactly, the errors have no scale")
        covariance = np.linalg.pinv(curvature(params, scaled, y, float(self.nu), float(self.alpha)))
        self.coef_, self.scale_ = params[:-2] / width, float(np.exp(params[-1]))
        self.intercept_ = float(params[-2] - self.coef_ @ centre)
        self.coef_error_ = np.sqrt(np.diag(covariance)[:-2]) / width
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, object)
        return self

    def predict(self, X):
        """The median of y for each row of X."""
        if not hasattr(self, "coef_"):
            raise _not_fitted()("fit comes before predict")
        names, known = getattr(X, "columns", None), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(f"the columns are {list(names)}; those of fit were {list(known)}")
        X = _matrix(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")
        return X @ self.coef_ + self.intercept_


def _matrix(X):
    if hasattr(X, "tocsr"):
        raise TypeError("sparse input is not supported: give X.toarray()")
    made = _real(X)
    if made.ndim != 2:
        raise ValueError(f"X has shape {made.shape}, not (samples, features).  Reshape your data")
    if not made.size:
        raise ValueError(f"{made.shape[1]} feature(s) (shape={made.shape}) while a minimum of 1 is required, "
                         "and of samples")
    if not np.all(np.isfinite(made)):
        raise ValueError("Input X contains NaN or infinity")
    return made


def _real(values):
    made = np.asarray(values)
    if made.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return made.astype(float)


def _vector(y, count):
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    y = _real(y)
    if y.shape != (count,) or not np.all(np.isfinite(y)):
        raise ValueError(f"y must hold {count} finite numbers, one for each row of X, not an array of shape {y.shape}; "
                         "NaN and infinity are none")
    if count < 2:
        raise ValueError("n_samples = 1: two are needed at least")
    return y


def _not_fitted():
    try:
        from sklearn.exceptions import NotFittedError
        return NotFittedError
    except ImportError:
        return AttributeError


# --- what the user sees ----------------------------------------------------------

class Result(NamedTuple):
    clean: RobustRegressor              # fitted to the scores as they are
    spoiled: RobustRegressor            # to those with false ones
    squares: np.ndarray                 # least squares for the spoiled ones: slopes, then intercept
    scores: np.ndarray                  # of cross-validation


def read():
    data = json.loads(DATA.read_text(encoding="utf-8"))["kidiq-kidscore_momhsiq"]["data"]
    return np.stack([np.array(data[name], float) for name in NAMES], axis=1), np.array(data["kid_score"], float)


def spoil(y, rng, share=0.1):
    """Scores of which a share got a digit too many."""
    y = y.copy()
    y[rng.permutation(len(y))[:int(share * len(y))]] *= 10.0
    return y


def least_squares(X, y):
    return np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]


def cross_validated(model, X, y, rng, folds=5):
    """The score of a model on each fold, when fitted to the others."""
    scores = []
    for part in np.array_split(rng.permutation(len(y)), folds):
        rest = np.setdiff1d(np.arange(len(y)), part)
        scores.append(type(model)(**model.get_params()).fit(X[rest], y[rest]).score(X[part], y[part]))
    return np.array(scores)


def draw(X, y, result, folder):
    drawn = shown.figure(7, 4)
    if drawn is None:
        return
    axes = drawn.subplots()
    axes.plot(X[:, 1], y, ".", color="0.7", markersize=3)
    iq = np.array([X[:, 1].min(), X[:, 1].max()])
    for label, slopes, intercept in (("t, clean data", result.clean.coef_, result.clean.intercept_),
                                     ("t, spoiled data", result.spoiled.coef_, result.spoiled.intercept_),
                                     ("least squares, spoiled data", result.squares[:2], result.squares[2])):
        axes.plot(iq, intercept + slopes[0] + slopes[1] * iq, label=label)
    axes.set(xlabel="IQ of the mother, who finished high school", ylabel="score of the child", ylim=(0, 250))
    axes.legend()
    shown.save(drawn, folder, "robust.png")


def main(words: Any = None):
    given = shown.options(__doc__).parse_args(words)
    X, y = read()
    if given.quick:
        X, y = X[::2], y[::2]
    rng = np.random.default_rng(given.seed)
    false = spoil(y, rng)
    model = RobustRegressor(jit=not given.no_jit)
    clean, spoiled = (type(model)(**model.get_params()).fit(X, values) for values in (y, false))
    squares = least_squares(X, false)
    result = Result(clean, spoiled, squares, cross_validated(model, X, y, rng))
    shown.title(f"{len(y)} scores, and the same with {int(np.sum(false != y))} false ones")
    print(f"{'':12}{'t, clean':>20}{'t, spoiled':>20}{'squares, clean':>17}{'squares, spoiled':>18}")
    of_clean = least_squares(X, y)
    for k, name in enumerate(NAMES):
        print(f"{name:12}{clean.coef_[k]:11.3f} ±{clean.coef_error_[k]:7.3f}{spoiled.coef_[k]:11.3f} ±"
              f"{spoiled.coef_error_[k]:7.3f}{of_clean[k]:17.3f}{squares[k]:18.3f}")
    print(f"{'intercept':12}{clean.intercept_:11.3f}{spoiled.intercept_:20.3f}{of_clean[2]:26.3f}{squares[2]:18.3f}")
    print(f"Cross-validated score on clean data: {result.scores.mean():.3f}")
    draw(X, y, result, given.out)
    return result


if __name__ == "__main__":
    main()
