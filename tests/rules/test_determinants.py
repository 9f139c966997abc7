"""The determinant's derivatives, of singular matrices too, against sums over permutations in whole numbers."""
import itertools

import numpy as np
import pytest

import gradscribe as gs


def sign(order):
    return (-1) ** sum(a > b for a, b in itertools.combinations(order, 2))


def mixed(*matrices):
    """The derivative of det at the first matrix along the others: a sum over which rows come from which."""
    a, *others = matrices
    n = len(a)
    total = 0
    for places in itertools.permutations(range(n), len(others)):
        rows = [a[i] for i in range(n)]
        for place, other in zip(places, others):
            rows[place] = other[place]
        total += sum(sign(p) * np.prod([rows[i][p[i]] for i in range(n)]) for p in itertools.permutations(range(n)))
    return total


def basis(n):
    for i in range(n * n):
        e = np.zeros((n, n))
        e.flat[i] = 1
        yield e


MATRICES = {
    "rank 1": np.array([[1.0, 2.0], [2.0, 4.0]]), "zero": np.zeros((3, 3)), "one by one": np.zeros((1, 1)),
    "identity": np.eye(3), "ones": np.ones((3, 3)), "singular but for rounding": np.arange(1.0, 10).reshape(3, 3),
    "a row of zeros": np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 7.0]]), "turned": np.eye(3)[[1, 0, 2]],
    "equal singular values, singular": np.diag([2.0, 2.0, 0.0, 2.0]), "regular": np.array([[2.0, 1.0], [-1.0, 3.0]]),
    "scaled": np.diag([1e8, 1.0, 1e-8]), "no rows": np.zeros((0, 0)),
}


@pytest.mark.parametrize("a", MATRICES.values(), ids=MATRICES)
def test_two_derivatives(a):
    n, direction = len(a), np.random.default_rng(1).integers(-3, 4, a.shape).astype(float)
    first = np.array([mixed(a, e) for e in basis(n)]).reshape(a.shape)
    np.testing.assert_allclose(gs.grad(np_det)(a), first, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gs.jvp(np_det, (a,), (direction,))[1], mixed(a, direction) if n else 0, atol=1e-9,
                               rtol=1e-9)
    second = np.array([mixed(a, direction, e) for e in basis(n)]).reshape(a.shape)
    size = 1 + np.max(np.abs(second), initial=0)
    for found in (gs.jvp(gs.grad(np_det), (a,), (direction,))[1], gs.grad(along)(a, direction)):
        np.testing.assert_allclose(found, second, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.slow
@pytest.mark.parametrize("a", MATRICES.values(), ids=MATRICES)
def test_compiled(a):
    direction = np.cos(np.arange(a.size)).reshape(a.shape)
    first, second = gs.grad(np_det)(a), gs.grad(along)(a, direction)
    size = 1 + np.max(np.abs(second), initial=0)
    np.testing.assert_allclose(gs.jit(gs.grad(np_det))(a), first, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gs.jit(gs.grad(along))(a, direction), second, rtol=1e-9, atol=1e-9 * size)


def np_det(a):
    return np.linalg.det(a)


def along(a, direction):
    return np.sum(gs.grad(np_det)(a) * direction)


def test_three_derivatives():
    a, b, c = (np.random.default_rng(k).standard_normal((4, 4)) for k in range(3))
    found = gs.grad(lambda a: np.sum(gs.grad(along)(a, b) * c))(a)
    want = np.array([mixed(a, b, c, e) for e in basis(4)]).reshape(a.shape)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
    singular = np.diag([1.0, 2.0, 3.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError):
        gs.grad(lambda a: np.sum(gs.grad(along)(a, b) * c))(singular)


def test_stacks_and_batches():
    stack = np.stack([np.ones((2, 2)), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])])
    want = np.array([[[1, -1], [-1, 1]], [[1, 0], [0, 1]], [[4, -3], [-2, 1]]])
    np.testing.assert_allclose(gs.grad(lambda a: np.sum(np.linalg.det(a)))(stack), want, atol=1e-14)
    np.testing.assert_allclose(gs.vmap(gs.grad(np_det))(stack), want, atol=1e-14)
    second = gs.vmap(gs.grad(along), in_axes=(0, None))(stack, stack[2])
    np.testing.assert_allclose(second, np.broadcast_to([[4, -3], [-2, 1]], (3, 2, 2)), atol=1e-13)
    single = stack.astype(np.float32)
    assert gs.grad(np_det)(single[0]).dtype == np.float32
    assert gs.jvp(gs.grad(np_det), (single[0],), (single[1],))[1].dtype == np.float32


@pytest.mark.slow
def test_stacks_compiled():
    stack = np.stack([np.ones((2, 2)), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])])
    want = np.array([[[1, -1], [-1, 1]], [[1, 0], [0, 1]], [[4, -3], [-2, 1]]])
    np.testing.assert_allclose(gs.jit(gs.vmap(gs.grad(np_det)))(stack), want, atol=1e-14)


def test_complex():
    a = np.array([[1 + 1j, 2.0], [1 + 1j, 2.0]])
    np.testing.assert_allclose(gs.grad(np_det, holomorphic=True)(a), [[2, -1 - 1j], [-2, 1 + 1j]], atol=1e-14)
