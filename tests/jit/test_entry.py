"""Calls of compiled functions: the short way in gives what the general way gives, for arguments of every kind."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(0)
SCALE, SHIFT = 3.0, np.ones(3)


def same(got, want):
    got, want = ((t if isinstance(t, tuple) else (t,)) for t in (got, want))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4 if a.dtype in (np.float32, np.complex64) else 1e-12, atol=1e-6 if
                                   a.dtype in (np.float32, np.complex64) else 1e-14)


def line(x, y=2.0, *, k=1.5):
    return x * y + k


KINDS = [1.5, np.float64(1.5), np.float32(1.5), 2, True, np.arange(3.0), np.arange(3), np.arange(6.0).reshape(2, 3).T,
         np.arange(6.0)[::2], np.array(2.5), np.zeros((0, 3)), 1 + 2j]


@pytest.mark.slow
def test_kinds_of_arguments_in_turn():
    f = gs.jit(line)
    for _ in range(3):
        for x in KINDS:
            for words in ({}, {"k": 2.0}, {"y": 3.0}, {"k": 2.0, "y": np.float32(1)}):
                same(f(x, **words), line(x, **words))
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    same(f(fixed), line(fixed))
    for wrong in [(), (1.0, 2.0, 3.0)]:
        with pytest.raises(TypeError):
            f(*wrong)
    with pytest.raises(TypeError):
        f(1.0, z=3)
    same(f(1.0), line(1.0))


def held(p):
    return np.sum(p["a"] * p["b"][0]) + p["b"][1]


@pytest.mark.slow
def test_containers_in_turn():
    f = gs.jit(held)
    given = [{"a": np.ones(3), "b": (np.ones(3), 2.0)}, {"b": (np.ones(3), 2.0), "a": np.ones(3)},
             {"a": np.ones(4), "b": [np.ones(4), 2.0]}, {"a": np.ones(3), "b": (np.ones(3), 2)}]
    for _ in range(2):
        for p in given:
            same(f(p), held(p))


def scaled(x):
    return x * SCALE + SHIFT


@pytest.mark.slow
def test_globals_that_change():
    global SCALE, SHIFT
    f, x = gs.jit(scaled), np.arange(3.0)
    same(f(x), scaled(x))
    same(f(x), scaled(x))
    SCALE = 5.0
    same(f(x), scaled(x))
    SHIFT = SHIFT * 2
    same(f(x), scaled(x))
    SHIFT[0] = 7.0
    same(f(x), scaled(x))


def repeated(x, n, mode):
    for _ in range(n):
        x = x * 2 if mode == "double" else x + 1
    return x


@pytest.mark.slow
def test_static_arguments_in_turn():
    f = gs.jit(repeated, static_argnums=(1, 2))
    for n, mode in [(1, "double"), (2, "double"), (2, "add"), (1, "double"), (2, "double")]:
        same(f(1.5, n, mode), repeated(1.5, n, mode))


def products(a, b):
    return a @ b


@pytest.mark.slow
def test_products_of_every_size():
    f = gs.jit(products)
    for m, k, n in [(3, 4, 5), (0, 4, 5), (3, 0, 5), (3, 4, 0), (1, 4, 1), (1, 1, 1), (2, 1, 3), (1, 5, 2),
                    (17, 18, 19)]:
        for dtype in (np.float64, np.float32, np.complex128, np.complex64):
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
            if dtype in (np.complex128, np.complex64):
                a = a + a.dtype.type(1j) * a[::-1]
            same(f(a, b), a @ b)
            if k:
                same(f(a, b[:, 0].copy()) if n else 0, a @ b[:, 0] if n else 0)
                same(f(a[0].copy(), b) if m else 0, a[0] @ b if m else 0)


def stepped(w, x, n):
    for _ in range(n):
        x = np.tanh(w @ x)
    return np.sum(x)


@pytest.mark.slow
def test_products_into_buffers():
    f, plain = gs.jit(gs.value_and_grad(stepped, (0, 1))), gs.value_and_grad(stepped, (0, 1))
    for n in (0, 1, 3):
        for k in (1, 3, 20):
            w, x = rng.normal(size=(k, k)) / k, rng.normal(size=k)
            (value, grads), (value_2, grads_2) = f(w, x, n), plain(w, x, n)
            same((value, *grads), (value_2, *grads_2))
