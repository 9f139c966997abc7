# SPDX-License-Identifier: Apache-2.0
"""The examples in a small size: what they find is right."""
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import allconv  # noqa: E402
import hmc  # noqa: E402
import shown  # noqa: E402
import springs  # noqa: E402


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_convolutions_read_digits(tmp_path, capsys):
    found = allconv.main(["--quick", "--out", str(tmp_path)])
    assert found.accuracy > 0.95
    assert found.losses[-1] < 0.1 * found.losses[0]
    assert found.errors[-1] == pytest.approx(1.0 - found.accuracy)
    assert f"Test accuracy: {100 * found.accuracy:.2f}%" in capsys.readouterr().out
    assert is_picture(tmp_path / "allconv.png")
    again = allconv.main(["--epochs", "6", "--no-jit", "--out", str(tmp_path)])
    np.testing.assert_allclose(again.losses, found.losses, rtol=1e-6)


@pytest.mark.slow
def test_convolutions_go_on_where_they_were_stopped(tmp_path, capsys):
    """From the last state that is whole, to the same bits."""
    words = ["--epochs", "3", "--out", str(tmp_path), "--folder", str(tmp_path / "states")]
    whole = allconv.main(words)
    first, last = sorted((tmp_path / "states").glob("step_*"))
    last.write_bytes(last.read_bytes()[:-1])            # it was stopped while it wrote
    again = allconv.main(words)
    assert "Goes on after epoch 2." in capsys.readouterr().out
    assert again.losses == whole.losses and again.errors == whole.errors and again.accuracy == whole.accuracy


def test_gradient_of_the_convolutions():
    images, labels, _, _ = allconv.read_digits()
    shape, params = allconv.init_network(gs.random.key(1), (-1, 8, 8, 1))
    assert shape == (-1, 2, 2, 10)
    flat, together = gs.tree_util.ravel_pytree(params)
    _, gradient = gs.value_and_grad(allconv.loss)(params, images[:4], labels[:4])
    along = np.random.default_rng(0).standard_normal(flat.size)

    def loss(t):
        return allconv.loss(together(flat + t * along), images[:4], labels[:4])
    expected = (loss(1e-7) - loss(-1e-7)) / 2e-7                # relu's kinks are further away
    assert gs.tree_util.ravel_pytree(gradient)[0] @ along == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_draws_have_the_posterior(tmp_path, capsys):
    found = hmc.main(["--quick", "--out", str(tmp_path)])
    assert found.draws == 2000 and np.all(found.effective > 200) and np.all(found.r_hat < 1.02)
    assert found.divergences == 0 and min(found.per_gradient) > 0.02
    assert np.all(np.abs(found.mean - found.exact_mean) < 4 * found.error)
    np.testing.assert_allclose(found.sd, found.exact_sd, rtol=0.15)
    assert np.all(np.abs(found.mean - found.mle) < found.exact_sd)
    assert 0.75 < found.acceptance < 0.97
    assert "Probability of distress at 31 °F: 98" in capsys.readouterr().out
    assert is_picture(tmp_path / "hmc.png")


def test_most_likely_parameters():
    """Of the O-rings as published: log-odds of 15.0429 - 0.2322 t at t °F."""
    found = hmc.highest(hmc.log_likelihood, hmc.predictors(hmc.TEMPERATURE), hmc.DISTRESS)
    np.testing.assert_allclose([found[0] - 7.0 * found[1], found[1] / 10.0], [15.0429, -0.2322], atol=5e-5)


@pytest.mark.slow
def test_springs_are_found(tmp_path, capsys):
    found = springs.main(["--quick", "--out", str(tmp_path)])
    assert np.all(np.abs(found.fitted - springs.TRUE) < 3 * found.errors)
    assert np.all((0.6 < found.spread / found.errors) & (found.spread / found.errors < 1.6))
    freedom = found.readings - len(springs.TRUE)
    assert abs(found.chi2 - freedom) < 4 * np.sqrt(2 * freedom)
    said = capsys.readouterr().out
    rows = re.findall(r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+)", said, re.M)
    assert [row[0] for row in rows if row[0] in springs.NAMES] == list(springs.NAMES)
    assert is_picture(tmp_path / "springs.png")


def test_jacobian_of_the_springs():
    data = np.zeros((10, 3))
    J = gs.jacfwd(springs.residual)(springs.TRUE, data)
    for k, along in enumerate(np.eye(4)):
        step = 1e-6 * along
        expected = (springs.residual(springs.TRUE + step, data) - springs.residual(springs.TRUE - step, data)) / 2e-6
        np.testing.assert_allclose(J[:, k], expected, rtol=1e-6, atol=1e-6)


def test_without_matplotlib_and_tqdm(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(shown, "Figure", None)
    monkeypatch.setattr(shown, "tqdm", None)
    springs.draw(np.zeros((2, 3)), springs.TRUE, tmp_path)
    assert list(shown.progress(range(7), "step")) == list(range(7))
    said = capsys.readouterr().out
    assert "Matplotlib is not installed" in said and said.endswith("step 7/7\n") and said.count("step") == 5
    assert not list(tmp_path.iterdir())
