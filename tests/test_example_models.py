# SPDX-License-Identifier: Apache-2.0
"""The examples that fit and sample models: what they find agrees with what is published, and with closed forms."""
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import posteriors  # noqa: E402
import robust  # noqa: E402


@pytest.mark.slow
def test_means_of_three_posteriors(tmp_path, capsys):
    """Of 34 means and mean squares, none is off by four combined standard errors of our draws and the reference's."""
    found = posteriors.main(["--quick", "--out", str(tmp_path)])
    assert list(found) == list(posteriors.MODELS)
    off = np.concatenate([result.off.ravel() for result in found.values()])
    assert len(off) == 34 and np.max(np.abs(off)) < 4.0
    assert np.sqrt(np.mean(off ** 2)) < 1.6                 # about 1 for right ones
    for result in found.values():
        assert 0.6 < result.acceptance < 0.97
        assert np.all(result.effective > 50)
    assert (tmp_path / "posteriors.png").read_bytes().startswith(b"\x89PNG")
    assert "No mean is off by more than" in capsys.readouterr().out


@pytest.mark.parametrize("name", posteriors.MODELS)
def test_densities_against_differences(name):
    density, _, start = posteriors.MODELS[name]
    data = {k: np.array(v, float) for k, v in json.loads(posteriors.DATA.read_text())[name]["data"].items()}
    q = start + np.random.default_rng(0).normal(size=start.shape) * 0.01
    gs.testing.check_grads(lambda q: density(q, data), (q,), order=2, rtol=1e-5, atol=1e-3)


@pytest.mark.compiled
def test_a_chain_is_the_same_when_compiled():
    sample = posteriors.sampler(lambda q, data: -0.5 * np.sum((q - data["m"]) ** 2))
    given = (gs.random.key(3), np.zeros(2), np.ones(2), np.array([[1.0, 0.0], [0.5, 2.0]]), 10, 20,
             {"m": np.array([1.0, 2.0])})
    for plain, compiled in zip(sample(*given), gs.jit(sample)(*given), strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-7)


@pytest.mark.compiled
def test_a_normal_density_has_its_mean_and_covariance():
    covariance = np.array([[4.0, 1.2], [1.2, 1.0]])
    precision, mean = np.linalg.inv(covariance), np.array([1.0, -2.0])
    sample = gs.jit(posteriors.sampler(lambda q, data: -0.5 * (q - data["m"]) @ data["P"] @ (q - data["m"])))
    draws, accepted = sample(gs.random.key(0), np.zeros(2), np.zeros(2), np.eye(2), 500, 20000,
                             {"m": mean, "P": precision})
    error = np.sqrt(np.diag(covariance) / [posteriors.effective_size(draws[:, k].reshape(2, -1)) for k in range(2)])
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * error)
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.1, atol=0.1)
    assert 0.7 < accepted < 0.95


def test_many_degrees_of_freedom_are_least_squares():
    X, y = robust.read()
    made = robust.RobustRegressor(nu=1e8, jit=False).fit(X, y)
    exact = robust.least_squares(X, y)
    np.testing.assert_allclose([*made.coef_, made.intercept_], exact, rtol=1e-5)
    design = np.column_stack([X, np.ones(len(X))])
    squares = np.sum((y - design @ exact) ** 2)
    assert made.scale_ == pytest.approx(np.sqrt(squares / len(y)), rel=1e-6)
    errors = made.scale_ * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))[:2]
    np.testing.assert_allclose(made.coef_error_, errors, rtol=1e-5)
    assert made.score(X, y) == pytest.approx(1 - squares / np.sum((y - y.mean()) ** 2), rel=1e-6)


def test_false_scores_hardly_matter(tmp_path, capsys):
    found = robust.main(["--no-jit", "--out", str(tmp_path)])
    assert np.all(np.abs(found.spoiled.coef_ - found.clean.coef_) < found.clean.coef_error_)
    assert found.squares[0] < 0 < found.clean.coef_[0] and found.squares[1] > 3.0
    assert 0.1 < found.scores.mean() < 0.3
    assert "false ones" in capsys.readouterr().out
    assert (tmp_path / "robust.png").exists()


@pytest.mark.compiled
def test_compiled_fit_is_the_same():
    X, y = robust.read()
    plain, compiled = (robust.RobustRegressor(jit=jit).fit(X, y) for jit in (False, True))
    np.testing.assert_allclose(compiled.coef_, plain.coef_, rtol=1e-6)
    assert compiled.scale_ == pytest.approx(plain.scale_, rel=1e-6)


def test_the_gradient_of_the_loss():
    X, y = robust.read()
    start = np.array([5.0, 0.5, 25.0, 2.9])
    gs.testing.check_grads(lambda p: robust.loss(p, X, y, 4.0, 0.1), (start,), order=1, rtol=1e-5, atol=1e-2)


def test_a_frame_and_its_columns():
    pd = pytest.importorskip("pandas")
    X, y = robust.read()
    frame = pd.DataFrame(X, columns=robust.NAMES)
    made = robust.RobustRegressor(jit=False).fit(frame, pd.Series(y))
    assert list(made.feature_names_in_) == list(robust.NAMES)
    np.testing.assert_array_equal(made.predict(frame), made.predict(X))
    with pytest.raises(ValueError, match="the columns are"):
        made.predict(frame[["mom_iq", "mom_hs"]])


@pytest.mark.parametrize("X, y, told", [
    ([[1.0], [2.0]], [1.0], "one for each row"), ([[1.0], [np.nan]], [1.0, 2.0], "NaN"),
    ([1.0, 2.0], [1.0, 2.0], "shape"), ([[1.0], [2.0]], [1.0, np.inf], "finite"),
    ([[1j], [2.0]], [1.0, 2.0], "Complex"),
    ([[1.0]], [1.0], "n_samples"),
    (np.ones((3, 0)), [1.0, 2.0, 3.0], "0 feature"), ([[1.0], [2.0]], None, "requires y"),
    ([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], "did not converge")])
def test_what_is_not_fitted(X, y, told):
    with pytest.raises(ValueError, match=told):
        robust.RobustRegressor(jit=False).fit(X, y)


def test_parameters_and_states():
    made = robust.RobustRegressor(nu=3.0)
    assert made.get_params() == {"nu": 3.0, "alpha": 0.0, "jit": True}
    assert made.set_params(alpha=2.0) is made and made.alpha == 2.0
    with pytest.raises(ValueError):
        made.set_params(beta=1.0)
    with pytest.raises((AttributeError, ValueError), match="fit comes before"):
        made.predict([[1.0]])
    fitted = robust.RobustRegressor(jit=False).fit(*robust.read())
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.predict(np.ones((2, 3)))


def test_in_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    X, y = robust.read()
    order = np.random.default_rng(0).permutation(len(y))
    scores = cross_val_score(make_pipeline(StandardScaler(), robust.RobustRegressor(jit=False)), X[order], y[order])
    assert 0.1 < scores.mean() < 0.3
    assert clone(robust.RobustRegressor(nu=7.0)).nu == 7.0
