"""Gradients compiled: loops, branches, stores, containers, writes; equal to what runs uncompiled."""
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from jit import support

import gradscribe as gs

TARGETS = Path(__file__).resolve().parent.parent / "golden" / "targets.py"
rng = np.random.default_rng(0)
n, d, h, k = 5, 3, 4, 2
W1, b1, W2, b2 = (rng.standard_normal(s) for s in [(d, h), h, (h, k), k])
x, y = rng.standard_normal((n, d)), rng.standard_normal((n, k))
W, b = rng.standard_normal((d, d)), rng.standard_normal(d)
GOLDEN = {"poly": ((1.3,), 0), "mlp_loss": ((W1, b1, W2, b2, x, y), (0, 1, 2, 3)), "rollout": ((0.9, 1.1, 20), (0, 1)),
          "newton_sqrt": ((4.0,), 0), "huber": ((0.4, 1.0), 0), "two_layers": ((x, W, b), (0, 1, 2)),
          "network_loss": (([(W1, b1), (W2, b2)], x, y), 0)}


@pytest.fixture(scope="module")
def targets():
    spec = importlib.util.spec_from_file_location("jit_targets", TARGETS)
    module = importlib.util.module_from_spec(spec)
    sys.modules["jit_targets"] = module
    spec.loader.exec_module(module)
    return module


def agree(function, *args):
    """A transformed function and its compiled form."""
    made = support.transformed(function, *args)
    found = support.same(support.run(made, *args), function(*args))
    assert not found, f"{found}\n{made.source}"
    return made


def single(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(single, value))
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(np.float32)
    return np.float32(value) if isinstance(value, float) else value


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("convert", [lambda a: a, single], ids=["float64", "float32"])
def test_golden(targets, name, convert):
    args, argnums = GOLDEN[name]
    agree(gs.grad(getattr(targets, name), argnums), *convert(args))


def test_lengths_are_free():
    """One version serves other lengths; lengths that do not fit are an error, not a read beyond the end."""
    def f(a, c):
        return np.sum(np.sin(a) * c)
    made = support.transformed(gs.grad(f), np.ones(3), np.ones(3))
    for length in (5, 0):
        a, c = rng.standard_normal((2, length))
        assert not support.same(made(a, c), np.cos(a) * c)
    with pytest.raises(ValueError, match="broadcast"):
        made(np.ones(3), np.ones(4))


def test_layouts():
    """Arguments in any layout, read-only ones too, are taken and left as they are."""
    def f(a):
        return np.sum(np.sin(a) * a[0])
    g = gs.grad(f)
    a = rng.standard_normal((4, 3))
    made = support.transformed(g, a)
    fixed = a.copy()
    fixed.flags.writeable = False
    for each in (a, np.asfortranarray(a), rng.standard_normal((8, 6))[::2, ::2], fixed, a[::-1]):
        before = each.copy()
        assert not support.same(made(each), g(each))
        assert np.array_equal(before, each)


def loop_of_arrays(v, m):
    for _ in range(3):
        v = np.tanh(m @ v) + v[::-1]
    return np.sum(v * v)


def nested_while(s):
    total, i = s * 0.0, 0
    while i < 3:
        t = s
        while t < 4.0:
            t = t * 1.7 + i
        total = total + np.log(t)
        i += 1
    return total * s


def branches(a, s):
    out = s
    for row in a:
        if np.sum(row) > 0:
            out = out + np.dot(row, row) if s > 0 else out * 2.0
        else:
            u = row * s
            out = out - u[0] * u[-1]
    return out


def nested_loops(a):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            total += a[i, j] * math.sin(a[j, i])
    return total


def many_axes(a):
    z = (a - np.mean(a, axis=(0, 2), keepdims=True)) / (1 + np.std(a, axis=1)[:, None, :])
    return np.sum(np.max(z, axis=2) * np.prod(z, axis=-1)) + np.var(a)


def indexing(a, i):
    return np.sum(a[i, 1:] * a[None, :, :][0, -1, :-1]) + np.sum(a[a > 0] ** 2) + a[-1, 0] * a[..., 1].sum()


def joined(a, c):
    z = np.concatenate([a, np.stack([c, 2 * c])], axis=0)
    return np.sum(np.tile(np.roll(np.pad(z, 1), 1, axis=0), 2) * 1.5) + np.sum(np.where(z > 0, z, 0.1 * z)) * np.sum(
        np.clip(c, -0.5, 0.5)
    )


def contractions(a, c, m):
    return np.einsum("bij,jk,bik->", a, m, c) + np.sum(a @ m) + np.sum(np.tensordot(a, c, axes=((0, 1), (0, 1))) ** 2)


def solved(m, v):
    s = m @ m.T + 4 * np.eye(3)
    return v @ np.linalg.solve(s, v) + np.linalg.slogdet(s)[1] + np.sum(np.linalg.inv(s))


def mixed_numbers(s, count):
    total = 0
    for i in range(count):
        total = total + i * s ** i / (i + 1)
    return total if count > 2 else total * 2.0


SQUARE = rng.standard_normal((3, 3))
PROGRAMS = {
    loop_of_arrays: (rng.standard_normal(3), SQUARE),
    nested_while: (0.7,),
    branches: (rng.standard_normal((4, 3)), 0.8),
    nested_loops: (SQUARE,),
    many_axes: (rng.standard_normal((2, 3, 4)),),
    indexing: (rng.standard_normal((4, 3)), np.array([0, 2, 0, -1])),
    joined: (rng.standard_normal((2, 3)), rng.standard_normal(3)),
    contractions: (rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 5)), rng.standard_normal((4, 5))),
    solved: (SQUARE, rng.standard_normal(3)),
    mixed_numbers: (0.6, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function):
    args = PROGRAMS[function]
    agree(gs.grad(function), *args)


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program_in_float32(function):
    agree(gs.grad(function), *single(PROGRAMS[function]))


@pytest.mark.slow
@pytest.mark.parametrize("function", [loop_of_arrays, nested_while, branches, nested_loops], ids=lambda f: f.__name__)
def test_second_derivative(function):
    args = PROGRAMS[function]
    dots = tuple(np.ones_like(a) if isinstance(a, np.ndarray) else 1.0 for a in args)
    agree(gs.jvp_of(gs.grad(function)), *args, *dots)


def test_captured_array():
    """An array from outside is an argument of the compiled code: a change in place is seen."""
    table = np.array([1.0, 2.0, 3.0])

    def f(v):
        return np.sum(v * v * table)
    made = agree(gs.grad(f), np.ones(3))
    table[0] = 5.0
    assert made(np.ones(3))[0][0] == 10.0


def test_arguments_are_not_results():
    """A result that is an argument is a copy of it."""
    def f(a, c):
        return np.sum(a * c)
    made = support.transformed(gs.grad(f), np.ones(2), np.ones(2))
    c = np.array([3.0, 4.0])
    (da,) = made(np.ones(2), c)
    assert np.array_equal(da, c) and not np.shares_memory(da, c)


def eigenvalues(a):
    return np.linalg.eigvals(a)


@pytest.mark.parametrize("a", [
    np.random.default_rng(0).standard_normal((3, 3)), np.array([[0.0, -1.0], [1.0, 0.0]]), np.eye(3), np.ones((1, 1)),
    np.zeros((0, 0)), np.zeros((0, 3, 3)), np.random.default_rng(1).standard_normal((2, 4, 3, 3)),
    np.eye(2, dtype=np.float32), np.triu(np.ones((4, 4)))], ids=lambda a: f"{a.dtype}{a.shape}")
def test_eigenvalues_alone(a):
    """LAPACK's routine for real matrices, called without vectors: what NumPy gives, in its order."""
    got = gs.jit(eigenvalues)(a)
    np.testing.assert_allclose(got, np.linalg.eigvals(a), rtol=1e-12, atol=1e-14)
    assert got.dtype == np.result_type(a.dtype, np.complex64)


def squared_first(a):
    w = np.linalg.eigvals(a)
    return np.abs(w[0]) ** 2 + np.real(w[1] * 2j)


@pytest.mark.slow
def test_eigenvalues_of_two_rows():
    """In NumPy's order, with the vectors of the same order: matrices of complex numbers, zeros and all sizes."""
    rng = np.random.default_rng(0)
    values, pairs = gs.jit(lambda a: np.linalg.eigvals(a)), gs.jit(lambda a: np.linalg.eig(a))
    gradient = gs.jit(gs.grad(squared_first))
    for k in range(300):
        m = rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))
        m *= 10.0 ** rng.integers(-6, 7, size=(2, 2)) if k % 2 else 1
        if k % 7 == 0:
            m[rng.integers(2), rng.integers(2)] = 0
        m = m.real + 0j if k % 13 == 0 else m
        w, size = np.linalg.eigvals(m), np.linalg.norm(m)
        if abs(w[0] - w[1]) < 1e-6 * size:
            continue
        np.testing.assert_allclose(values(m), w, rtol=1e-12, atol=1e-9 * size)
        found, v = pairs(m)
        np.testing.assert_allclose(found, values(m), rtol=1e-12, atol=1e-9 * size)        # last bits may differ
        np.testing.assert_allclose(v, np.linalg.eig(m)[1], rtol=1e-7, atol=1e-9)
        wanted = gs.grad(squared_first)(m)
        np.testing.assert_allclose(gradient(m), wanted, rtol=1e-6, atol=1e-6 * np.max(np.abs(wanted)))
    with pytest.raises(np.linalg.LinAlgError):
        values(np.array([[np.nan, 1], [1, 1]], complex))


@pytest.mark.slow
def test_largest_and_smallest():
    """Of numbers of every kind, NaN of either sign first."""
    found = gs.jit(lambda x: (np.max(x), np.min(x), np.max(x, axis=-1), np.min(x, axis=1), np.max(x, axis=0)))
    kinds = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1e308]
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30):
        for _ in range(50):
            x = rng.choice(kinds + list(rng.standard_normal(8)), size=(n, 3))
            wanted = np.max(x), np.min(x), np.max(x, axis=-1), np.min(x, axis=1), np.max(x, axis=0)
            for a, b in zip(found(x), wanted):
                np.testing.assert_array_equal(a, b)


def test_eigenvalues_of_nothing_finite():
    with pytest.raises(np.linalg.LinAlgError, match="infs or NaNs"):
        gs.jit(eigenvalues)(np.array([[1.0, np.nan], [0.0, 1.0]]))


Z = np.array([1 + 1j, -1 + 2j, 1j, -1j, 0j, np.nan + 1j, complex(0, np.nan), 2.0, 1 + 2j])
V = np.array([1 + 1j, 1 - 1j, 0j, 0j, 0j, 0j, 0j, 2 + 0j, 1 + 1j])


@pytest.mark.parametrize("f", [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.maximum, np.minimum],
                         ids=lambda f: f.__name__)
def test_complex_numbers_are_ordered_as_by_numpy(f):
    np.testing.assert_array_equal(gs.jit(lambda a, b: f(a, b))(Z, V), f(Z, V))
    np.testing.assert_array_equal(gs.jit(lambda a: np.where(a <= 0, 0, a))(Z), np.where(Z <= 0, 0, Z))


def test_a_loop_that_only_shows_a_row():
    """Its text is taken out: what is left of the loop is a loop of nothing."""
    def f(x):
        a = x * 0.9
        box = {"k": a[-1]}
        for _ in range(12):
            box["k"] = a[1]
        return np.sum(box["k"] * 0.9) + np.sum(a)

    x = np.arange(6.0).reshape(3, 2)
    want = np.full((3, 2), 0.9) + np.array([[0.0], [0.81], [0.0]])
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x), want, rtol=1e-14)
    np.testing.assert_allclose(gs.jit(f)(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("low, high", [(-0.5, 0.5), (0.5j, 1 + 1j), (None, 1j), (0.0, None)])
def test_complex_numbers_are_clipped_as_by_numpy(low, high):
    np.testing.assert_array_equal(gs.jit(lambda a: np.clip(a, low, high))(Z), np.clip(Z, low, high))
