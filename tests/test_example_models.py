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
import samplers  # noqa: E402


def read(name):
    return posteriors.read(json.loads(posteriors.DATA.read_text())[name])


@pytest.mark.slow
def test_means_of_posteriors(tmp_path, capsys):
    """Of 36 means and mean squares, none is off by four combined standard errors of our draws and the reference's."""
    found = posteriors.main(["--quick", "--out", str(tmp_path)])
    assert tuple(found) == posteriors.QUICK
    off = np.concatenate([result.off.ravel() for result in found.values()])
    assert len(off) == 36 and np.max(np.abs(off)) < 4.0
    assert np.sqrt(np.mean(off ** 2)) < 1.6                 # about 1 for right ones
    for result in found.values():
        assert 0.7 < result.chain.chances.mean() < 0.97
        assert np.all(result.effective > 100) and np.all(result.r_hat < 1.05)
        assert np.sum(result.chain.diverged) < 10
    assert (tmp_path / "posteriors.png").read_bytes().startswith(b"\x89PNG")
    assert "No mean is off by more than" in capsys.readouterr().out


@pytest.mark.parametrize("name", posteriors.MODELS)
def test_densities_against_differences(name):
    density, _, start = posteriors.MODELS[name]
    data = read(name)
    q = start + np.random.default_rng(0).normal(size=start.shape) * 0.01
    if density is posteriors.gaussian_process:
        q[0] = 1.0                      # at longer lengths the covariance is so near to singular that differences fail
    gs.testing.check_grads(lambda q: density(q, data), (q,), order=2, rtol=1e-5, atol=1e-3)


def test_published_parameters():
    """Those of the Gaussian process and of the hares, at one draw, by their definitions."""
    q, data = np.linspace(-0.5, 1.5, 13), read("gp_pois_regr-gp_pois_regr")
    found = posteriors.process_parameters(np.stack([q, q])[None], data)
    x = data["x"]
    covariance = np.exp(2 * q[1]) * np.exp(-(x[:, None] - x) ** 2 / (2 * np.exp(q[0]) ** 2)) + 1e-10 * np.eye(11)
    assert found.shape == (1, 2, 13)
    np.testing.assert_allclose(found[0, 1], [*np.exp(q[:2]), *np.linalg.cholesky(covariance) @ q[2:]], rtol=1e-12)


def test_no_probability_where_the_covariance_is_singular():
    data, far = read("gp_pois_regr-gp_pois_regr"), np.zeros(13)
    for far[0], far[1] in ((9.0, 0.0), (0.0, 9.0), (np.nan, 0.0)):
        height, slope = gs.value_and_grad(posteriors.gaussian_process)(far, data)
        assert height == -np.inf and not slope.any()


def test_the_solver_of_the_hares(monkeypatch):
    """With steps half as long the density is the same to a thousandth."""
    q, data = posteriors.MODELS["hudson_lynx_hare-lotka_volterra"][2], read("hudson_lynx_hare-lotka_volterra")
    found = []
    for steps in (8, 16, 32):
        monkeypatch.setattr(posteriors, "STEPS", steps)
        found.append(posteriors.lotka_volterra(q, data))
    assert abs(found[0] - found[2]) < 1e-2 and abs(found[1] - found[2]) < 1e-3


def normal(q, mean, precision):
    return -0.5 * (q - mean) @ precision @ (q - mean)


COVARIANCE = np.array([[4.0, 1.2, 0.0], [1.2, 1.0, 0.0], [0.0, 0.0, 1e4]])
MEAN = np.array([1.0, -2.0, 30.0])


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("transition", [samplers.no_u_turn, samplers.fixed_length])
def test_a_normal_density_has_its_mean_and_covariance(transition):
    data = MEAN, np.linalg.inv(COVARIANCE)
    sample = samplers.sampler(normal, transition)
    keys = gs.random.split(gs.random.key(0), 4)
    chain = samplers.together([sample(key, np.zeros(3), 500, 4000, *data) for key in keys])
    values = chain.draws.reshape(-1, 3)
    sizes = np.array([samplers.effective_size(chain.draws[:, :, k]) for k in range(3)])
    assert np.all(np.abs(values.mean(axis=0) - MEAN) < 4 * np.sqrt(np.diag(COVARIANCE) / sizes))
    scale = np.sqrt(np.diag(COVARIANCE))
    np.testing.assert_allclose(np.cov((values / scale).T), COVARIANCE / np.outer(scale, scale), atol=0.06)
    np.testing.assert_allclose(chain.scale / scale, 1.0, atol=0.5)
    assert np.all([samplers.r_hat(chain.draws[:, :, k]) < 1.01 for k in range(3)])
    assert 0.75 < chain.chances.mean() < 0.97 and not chain.diverged.any()
    plain = samplers.sampler(normal, transition, jit=False)(gs.random.key(3), np.zeros(3), 10, 10, *data)
    for a, b in zip(plain, sample(gs.random.key(3), np.zeros(3), 10, 10, *data), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def by_recursion(momenta, variance):
    """Whether a stretch has turned, by the definition: it, or a half of it, or where its halves meet."""
    if len(momenta) == 1:
        return False
    a, b = np.split(momenta, 2)
    turned = samplers.turned_joined(a[0], a[-1], a.sum(axis=0), b[0], b[-1], b.sum(axis=0), variance)
    return bool(turned) or by_recursion(a, variance) or by_recursion(b, variance)


def test_turns_of_all_parts():
    rng, variance, found = np.random.default_rng(0), np.array([2.0, 0.5]), set()
    for _ in range(60):
        momenta = np.zeros((2 ** samplers.DEPTH // 2, 2))
        angle = np.cumsum(rng.uniform(0.0, 0.3, size=16))
        momenta[:16] = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(16, 2))
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(momenta, axis=0)])
        turned = any(samplers.has_turned(momenta, sums, n, variance) for n in range(16))
        assert turned == by_recursion(momenta[:16], variance)
        found.add(turned)
    assert found == {True, False}


def test_windows_are_those_of_stan():
    """1,000 draws of warm-up: 75, then 25, 50, 100, 200 and 500 with variances, then 50."""
    assert samplers.windows(1000) == [(75, 100), (100, 150), (150, 250), (250, 450), (450, 950)]
    assert samplers.windows(150) == [(75, 100)] and samplers.windows(100) == [(15, 90)] and samplers.windows(0) == []


def test_a_trajectory_that_is_lost_diverges():
    chain = samplers.sampler(lambda q: -np.sum(q ** 4), jit=False)(gs.random.key(0), np.array([0.5]), 0, 3)
    assert not chain.diverged.any()
    f = gs.value_and_grad(lambda q: -np.sum(q ** 4))
    q = np.array([0.5])
    for transition in (samplers.no_u_turn, samplers.fixed_length):
        found = transition(f, gs.random.key(1), q, *f(q), 50.0, np.ones(1), ())
        assert found[-1] and found[0] == q and found[4] == 1 and found[3] == 0.0


def test_effective_sizes_and_r_hat():
    noise = np.random.default_rng(0).standard_normal((4, 20000))
    chains = noise.copy()
    for i in range(1, 20000):
        chains[:, i] += 0.5 * chains[:, i - 1]
    for size in (samplers.effective_size, samplers.bulk_size):
        assert size(noise) == pytest.approx(80000, rel=0.1)
        assert size(chains) == pytest.approx(80000 / 3, rel=0.1)            # (1 - 0.5) / (1 + 0.5) of them
    assert samplers.bulk_size(np.exp(3 * chains)) == pytest.approx(samplers.bulk_size(chains))      # ranks
    assert 1.0 - 1e-3 < samplers.r_hat(noise) < 1.001
    apart = noise + np.array([[0.0], [0.0], [0.0], [1.0]])
    # of standard normal chains, one of four moved by 1: the variance between them is 3/16 * 4/3
    assert samplers.spread_ratio(apart) == pytest.approx(np.sqrt(1.25), rel=0.01) and samplers.r_hat(apart) > 1.08
    assert samplers.r_hat(noise * np.array([[1.0], [1.0], [1.0], [3.0]])) > 1.05                    # by their spread
    assert samplers.r_hat(np.linspace(0.0, 1.0, 1000)[None] + 0.01 * noise[:, :1000]) > 1.5         # by their halves
    ranks = samplers.rank_normalised(np.array([[3.0, 1.0, 1.0, 2.0]]))
    np.testing.assert_allclose(ranks[0, 1], ranks[0, 2])
    np.testing.assert_allclose(ranks[0, 0], 1.0491, atol=1e-3)          # of (4 - 3/8) / (4 + 1/4)


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
