"""What a function has more than once, by other names, is compiled once: the numbers are those of the plain function."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen import jit_cpu

RNG = np.random.default_rng(3)


def functions_of(monkeypatch, function, *args):
    """What a function gives, and how many of its rows, and of its loop nests, become functions."""
    found = []
    outline, with_repeated = jit_cpu.outline, jit_cpu.with_repeated

    def kept(*given):
        found.append(len(made := outline(*given, least=4)))
        return made

    def shared(*given):
        made = with_repeated(*given)
        found.append(len(made[0].repeated) if made else 0)
        return made
    monkeypatch.setattr(jit_cpu, "outline", kept)
    monkeypatch.setattr(jit_cpu, "with_repeated", shared)
    monkeypatch.setenv("GRADSCRIBE_CACHE", "off")
    return gs.jit(function)(*args), found


def dense(W, b, x):
    z = np.tanh(x @ W + b)
    z = z / (1.0 + np.sum(z * z, axis=1, keepdims=True))
    top = np.max(z, axis=1, keepdims=True)
    return np.exp(z - top)


def layers(Ws, bs, x):
    for W, b in zip(Ws, bs):
        x = dense(W, b, x)
    return np.sum(x * x)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layers(dtype, monkeypatch):
    Ws = [RNG.normal(size=(20, 20)).astype(dtype) for _ in range(4)]
    bs = [RNG.normal(size=20).astype(dtype) for _ in range(4)]
    x = RNG.normal(size=(30, 20)).astype(dtype)
    expected, wanted = gs.value_and_grad(layers, (0, 1, 2))(Ws, bs, x)
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    function = gs.value_and_grad(layers, (0, 1, 2))
    outlined, (rows, _) = functions_of(monkeypatch, function, Ws, bs, x)
    assert rows > 0
    for value, gradient in (gs.jit(function)(Ws, bs, x), outlined):
        np.testing.assert_allclose(value, expected, rtol=tolerance)
        for a, b in zip(gs.tree.leaves(gradient), gs.tree.leaves(wanted)):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.max(np.abs(b)))


def handed_on(x):
    """One loop for several arrays, of which each is what another was before."""
    a = np.empty(12)
    b = np.empty(12)
    c = np.empty(12)
    for i in range(12):
        a[i] = x[i] * 2.0
    for i in range(11):
        b[i + 1] = np.sin(a[i] + 0.7 * a[i + 1])
    b[0] = a[1]
    for i in range(11):
        c[i + 1] = np.sin(b[i] + 0.7 * b[i + 1])
    c[0] = b[1]
    for i in range(11):
        a[i + 1] = np.sin(c[i] + 0.7 * c[i + 1])
    a[0] = c[1]
    for i in range(11):
        b[i + 1] = np.sin(a[i] + 0.7 * a[i + 1])
    b[0] = a[1]
    return np.sum(b * a)


def sums(x, y):
    """Nests that give numbers back."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * y[j]
    other = 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            other += x[i, j] * y[j]
    more = total
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            more += x[i, j] * y[j]
    return total * other + more


def counted_down(x):
    """Equal but for what a number is known to be: the second index may be negative."""
    n = x.shape[0]
    k = -3
    out = 0.0
    for i in range(n):
        for j in range(3):
            out += x[i, j + 3] * 2.0
    for i in range(n):
        for j in range(3):
            out += x[i, j + k] * 2.0
    return out


def signs_of_zeros(x):
    """Equal but for the sign of a zero."""
    a, b = np.zeros(x.shape), np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            a[i, j] = np.arctan2(0.0, -np.abs(x[i, j]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            b[i, j] = np.arctan2(-0.0, -np.abs(x[i, j]))
    return np.sum(a * x) + 2.0 * np.sum(b * x)


def raises(x, y):
    """An error inside a row that is there twice."""
    a = np.zeros(9)
    b = np.zeros(9)
    for i in range(9):
        for j in range(2):
            a[i] += x[i] * y[j + 1]
    for i in range(9):
        for j in range(2):
            b[i] += y[i] * x[j + 1]
    return np.sum(a * b)


@pytest.mark.parametrize("f, args", [
    (handed_on, (RNG.normal(size=12),)), (sums, (RNG.normal(size=(9, 10)), RNG.normal(size=10))),
    (signs_of_zeros, (RNG.normal(size=(9, 11)),)),
    (counted_down, (RNG.normal(size=(9, 6)),)), (raises, (RNG.normal(size=9), RNG.normal(size=9)))])
def test_as_plain(f, args):
    assert gs.jit(f)(*args) == pytest.approx(f(*args), rel=1e-13)
    numbers = tuple(range(len(args)))
    for a, b in zip(gs.jit(gs.grad(f, numbers))(*args), gs.grad(f, numbers)(*args)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_an_error_in_what_is_compiled_once():
    with pytest.raises(IndexError):
        gs.jit(raises)(RNG.normal(size=9), RNG.normal(size=2))
    with pytest.raises(IndexError):
        gs.jit(raises)(RNG.normal(size=2), RNG.normal(size=9))


def test_layers_of_other_lengths():
    compiled = gs.jit(gs.grad(layers, 2))
    for n, m in [(9, 10), (1, 10), (12, 1), (30, 17)]:
        Ws, bs = [RNG.normal(size=(m, m)) for _ in range(4)], [RNG.normal(size=m) for _ in range(4)]
        x = RNG.normal(size=(n, m))
        np.testing.assert_allclose(compiled(Ws, bs, x), gs.grad(layers, 2)(Ws, bs, x), rtol=1e-9, atol=1e-12)
