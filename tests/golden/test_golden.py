"""The emitted source of the functions in targets.py: its text, its size, and what it computes."""
import math
from dataclasses import replace
from pathlib import Path

import legibility
import numpy as np
import pytest

import gradscribe as gs

EMITTED = Path(__file__).resolve().parent / "emitted"


@pytest.mark.golden
@pytest.mark.parametrize("name", legibility.CASES)
def test_text(name, golden):
    golden(f"{name}.py", legibility.emitted(name).rstrip() + "\n")


@pytest.mark.parametrize("name", legibility.CASES)
def test_runs(name):
    case, source = legibility.CASES[name], legibility.emitted(name)
    assert not legibility.helpers(source)
    assert legibility.is_right(case, source)


def test_size():
    ratios = {name: legibility.count(legibility.emitted(name)) / legibility.size_by_hand(case)
              for name, case in legibility.CASES.items()}
    assert max(ratios.values()) <= legibility.EACH, ratios
    assert math.exp(sum(map(math.log, ratios.values())) / len(ratios)) <= legibility.MEAN, ratios


@pytest.mark.parametrize("module", ["more_targets", "ten_targets"])
def test_size_of_other_pairs(module):
    each, mean = legibility.OTHERS[module]
    found = legibility.others(module)
    assert all(agree for _, _, agree, _ in found.values())
    ratios = {name: ours / hand for name, (ours, hand, _, _) in found.items()}
    assert max(ratios.values()) <= each, ratios
    assert math.exp(sum(map(math.log, ratios.values())) / len(ratios)) <= mean, ratios


def test_no_orphans():
    assert {p.stem for p in EMITTED.glob("*.py")} <= set(legibility.CASES)


@pytest.mark.parametrize("name", legibility.CASES)
def test_what_is_written_by_hand_is_right(name):
    """The yardstick itself."""
    case = legibility.CASES[name]
    text = "\n".join(legibility.inspect.getsource(getattr(legibility.targets, g)) for g in reversed(case.hand))
    if case.data:                   # what is written by hand takes its data as arguments, in the middle
        case = replace(case, function="mlp_loss", args=(*case.args, *dict(case.data).values()), data=())
    assert legibility.is_right(case, text)


def filled(x):
    z = np.zeros(len(x))
    for k in range(1, len(x)):
        z[k] = z[k - 1] * 0.5 + x[k] ** 2
    return np.sum(z)


def counted(x, a):
    s = 0.0
    for k in range(a, len(x), 2):
        s = s + np.sin(s) * x[k]
    return s


def test_numbers_of_passes_have_names_where_they_are_read():
    """range(1, n) says how often a loop goes round, both ways; what is saved in each pass asks for a number."""
    x = np.array([0.3, 0.8, 1.1, 0.6])
    assert "len(range(" not in gs.grad(filled).source_for(x)
    np.testing.assert_allclose(gs.grad(filled)(x), [0, 2 * 0.8 * 1.75, 2 * 1.1 * 1.5, 2 * 0.6], rtol=1e-15)
    assert gs.grad(counted).source_for(x, 1).count("len(range(") == 1


def rotated(p, V):
    return np.sum(p @ V)


def smoothed(x, lam):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = lam * x[i] + (1 - lam) * y[i - 1]
    return y


def jumps(img):
    return np.sum(np.abs(img[1:] - img[:-1]))


def test_no_array_is_made_for_its_shape():
    """np.ones_like(p @ V) and the Hessian's np.zeros_like(dimg) ask arrays that are there for their shape."""
    p, V = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    text = gs.grad(rotated, argnums=(0, 1)).source_for(p, V)
    assert "= p @ V" not in text and "like(" not in text and "np.ones((p.shape[0], V.shape[1]))" in text
    dp, dV = gs.grad(rotated, argnums=(0, 1))(p, V)
    np.testing.assert_array_equal(dp, np.tile(V.sum(axis=1), (2, 1)))
    np.testing.assert_array_equal(dV, np.tile(p.sum(axis=0)[:, None], (1, 4)))
    assert "np.sign" not in gs.hessian(jumps).source_for(p)
    np.testing.assert_array_equal(gs.hessian(jumps)(p), np.zeros((2, 3, 2, 3)))


def test_a_tangent_of_zeros_makes_no_copy():
    """The shape of y_dot is that of y after its first write: y need not be kept as it was before."""
    x, lam, dots = np.array([0.3, 0.8, -1.1]), 0.4, (np.array([1.0, -2.0, 0.5]), 0.7)
    assert ".copy()" not in gs.jvp_of(smoothed).source_for(x, lam, *dots)
    y, y_dot = gs.jvp(smoothed, (x, lam), dots)
    first = 0.4 * -2.0 + 0.6 * 1.0 + 0.7 * (0.8 - 0.3)
    np.testing.assert_allclose(y_dot, [1.0, first, 0.4 * 0.5 + 0.6 * first + 0.7 * (-1.1 - y[1])], rtol=1e-14)


def grown(x, rate, n):
    total = 0.0
    for _ in range(n):
        x = x * rate
        total += x
        total *= 0.5
    return total


def test_tangents_have_the_names_of_their_values():
    """A loop carries x_dot under its own name; the user's += and *= stay; t_dot names nothing."""
    text = gs.jvp_of(grown).source_for(0.5, 1.1, 3, 1.0, 0.2, 0)
    assert "x_dot = rate_dot * x + x_dot * rate" in text or "x_dot = x_dot * rate + rate_dot * x" in text
    assert "total += x" in text and "total *= 0.5" in text and "t_dot" not in text and "x_dot_1" not in text
    _, dot = gs.jvp(lambda x, rate: grown(x, rate, 3), (0.5, 1.1), (1.0, 0.2))
    terms = [0.5 ** (3 - k + 1) * (1.1 ** k + 0.5 * k * 1.1 ** (k - 1) * 0.2) for k in (1, 2, 3)]
    np.testing.assert_allclose(dot, sum(terms), rtol=1e-14)


def pinball(e, tau):
    return np.sum(np.where(e > 0, tau * e, (tau - 1) * e))


def test_two_halves_of_a_choice_are_one():
    e = np.array([0.5, -2.0, 3.0])
    assert gs.grad(pinball).source_for(e, 0.7).count("np.where") == 1
    np.testing.assert_array_equal(gs.grad(pinball)(e, 0.7), [0.7, 0.7 - 1, 0.7])


def searched(a, b, tol):
    while abs(b - a) > tol:
        m = 0.5 * (a + b)
        if m * m > 2.0:
            b = m
        else:
            a = m
    return 0.5 * (a + b)


def test_a_saved_decision_is_named_after_its_test():
    text = gs.grad(searched).source_for(1.0, 2.0, 1e-3)
    assert "t_saved" not in text.replace("test_m_saved", "") and "_saved.append(" in text
    np.testing.assert_allclose(gs.grad(searched, argnums=(0, 1))(1.0, 2.0, 0.3), gs.jvp(
        lambda a, b: searched(a, b, 0.3), (1.0, 2.0), (1.0, 0.0))[1:] + gs.jvp(
        lambda a, b: searched(a, b, 0.3), (1.0, 2.0), (0.0, 1.0))[1:], rtol=1e-14)
