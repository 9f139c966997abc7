"""Systems of equations and eigenvalues in compiled code: the blocks of runtime/systems.py, and where LAPACK goes on."""
import itertools

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.runtime import francis, systems

pytestmark = pytest.mark.compiled

# On either side of the lengths where the way changes, and stacks that fill no block, one, and one and a bit.
ROWS = [0, 1, 2, 3, 5, systems.SMALL_OF_FEW, systems.SMALL_OF_FEW + 1, systems.SMALL_VALUES, systems.SMALL_VALUES + 1,
        systems.SMALL, systems.SMALL + 1, systems.SMALL_MATRIX, systems.SMALL_MATRIX + 1, francis.SMALL,
        francis.SMALL + 1]
STACKS = [(), (0,), (1,), (systems.FEW,), (systems.FEW + 1,), (systems.LANES,), (2, systems.LANES + 3)]


def definite(a):
    return a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1], dtype=a.dtype)


FUNCTIONS = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(0.1 * a),
    "slogdet": lambda a, b: np.linalg.slogdet(a),
    "cholesky": lambda a, b: np.linalg.cholesky(definite(a)),
    "upper": lambda a, b: np.linalg.cholesky(definite(a), upper=True),
    "eigvalsh": lambda a, b: np.linalg.eigvalsh(a),
    "eigvalsh_upper": lambda a, b: np.linalg.eigvalsh(a, "U"),
    "eigvals": lambda a, b: np.linalg.eigvals(a),
}


def matrices(shape, n, dtype, seed=0):
    """Random ones far from singular, whose eigenvalues are apart."""
    rng = np.random.default_rng(seed + n)
    return (rng.normal(size=(*shape, n, n)) / max(n, 1) ** 0.5 + np.diag(3.0 + np.arange(n))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, dtype):
    if name == "eigvals" and dtype == np.float32:
        pytest.skip("NumPy's own are of half the digits, and pairs may part")
    f = FUNCTIONS[name]
    compiled = {rank: gs.jit(f) for rank in (0, 1, 2)}
    for n, stack in itertools.product(ROWS, STACKS):
        a = matrices(stack, n, dtype)
        b = np.random.default_rng(n).normal(size=(*stack, n, 2)).astype(dtype)
        got, want = compiled[len(stack)](a, b), f(a, b)
        for x, y in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            assert np.shape(x) == np.shape(y) and (name == "eigvals" or np.asarray(x).dtype == np.asarray(y).dtype)
            if name == "eigvals":
                x, y = np.sort_complex(x), np.sort_complex(y)           # rounding decides the order of some
            scale = np.max(np.abs(y), initial=1e-300)
            np.testing.assert_allclose(x, y, rtol=0, atol=scale * n * (1e-14 if dtype == np.float64 else 4e-6))


def test_rows_are_exchanged():
    rng = np.random.default_rng(0)
    solve, det = gs.jit(FUNCTIONS["solve"]), gs.jit(lambda a, b: np.linalg.det(a))
    a = np.stack([np.eye(5)[rng.permutation(5)] * rng.normal(size=(5, 1)) for _ in range(40)])
    b = rng.normal(size=(40, 5, 1))
    np.testing.assert_allclose(solve(a, b), np.linalg.solve(a, b), rtol=1e-14)
    np.testing.assert_allclose(det(a, b), np.linalg.det(a), rtol=1e-14)


def test_one_matrix_and_many_right_sides():
    solve = gs.jit(FUNCTIONS["solve"])
    a, b = matrices((), 4, float), np.random.default_rng(1).normal(size=(40, 4, 3))
    np.testing.assert_allclose(solve(a, b), np.linalg.solve(a, b), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("count", [1, 9])
def test_what_has_no_solution(n, count):
    a = np.stack([np.eye(n)] * count)
    a[-1, 1, 1] = 0
    b = np.ones((count, n, 1))
    for name, message in (("solve", "Singular matrix"), ("inv", "Singular matrix")):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            gs.jit(FUNCTIONS[name])(a, b)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        gs.jit(lambda a, b: np.linalg.cholesky(a))(a, b)
    assert gs.jit(lambda a, b: np.linalg.det(a))(a, b).tolist() == [1.0] * (count - 1) + [0.0]
    sign, log = gs.jit(FUNCTIONS["slogdet"])(a, b)
    assert (sign[-1], log[-1]) == (0.0, -np.inf) and np.all(sign[:-1] == 1) and np.all(log[:-1] == 0)


def test_not_a_number():
    a, b = np.full((9, 3, 3), np.nan), np.ones((9, 3, 1))
    assert np.all(np.isnan(gs.jit(FUNCTIONS["det"])(a, b)))
    for name in ("eigvals", "eigvalsh"):
        with pytest.raises(np.linalg.LinAlgError):
            gs.jit(FUNCTIONS[name])(a, b)
    with pytest.raises(np.linalg.LinAlgError):
        gs.jit(lambda a, b: np.linalg.cholesky(a))(a, b)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_far_from_one(size):
    a, b = matrices((9,), 4, float), np.ones((9, 4, 1))
    values = gs.jit(FUNCTIONS["eigvalsh"])(a * size, b)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a * size), rtol=1e-13)
    np.testing.assert_allclose(gs.jit(FUNCTIONS["solve"])(a * size, b), np.linalg.solve(a * size, b), rtol=1e-13)
    many = matrices((2,), 40, float) * size
    for f in (lambda a: np.sort_complex(np.linalg.eigvals(a)), lambda a: np.linalg.eig(a)[0]):
        for given in (a[:2] * size, many, many + 1j * a[0, 0, 0]):
            np.testing.assert_allclose(np.sort_complex(gs.jit(f)(given)), np.sort_complex(f(given)), rtol=1e-12)


STRUCTURES = {
    "any": lambda r, n: r.normal(size=(n, n)),
    "triangle": lambda r, n: np.triu(r.normal(size=(n, n)), int(r.integers(-1, 2))),
    "whole numbers": lambda r, n: r.integers(-2, 3, (n, n)).astype(float),
    "many zeros": lambda r, n: r.normal(size=(n, n)) * (r.random((n, n)) < 0.4),
    "rows of all sizes": lambda r, n: r.normal(size=(n, n)) * 10.0 ** r.integers(-4, 5, (n, 1)),
    "symmetric": lambda r, n: (lambda a: a + a.T)(r.normal(size=(n, n))),
    "antisymmetric": lambda r, n: (lambda a: a - a.T)(r.normal(size=(n, n))),
    "permutation": lambda r, n: np.eye(n)[r.permutation(n)],
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_eigenvalues_solve_their_equation(name):
    """The characteristic polynomial at each eigenvalue is zero, as far as it is for NumPy's; their sum is the trace."""
    rng, values = np.random.default_rng(len(name)), gs.jit(lambda a: np.linalg.eigvals(a))
    for _ in range(200):
        n = int(rng.integers(1, 9))
        a = STRUCTURES[name](rng, n)
        got, want = values(a), np.linalg.eigvals(a)
        scale = max(np.linalg.norm(a), 1e-300)
        np.testing.assert_allclose(np.sum(got), np.trace(a), rtol=0, atol=1e-13 * scale * n)
        least = [np.linalg.svd(a - w * np.eye(n), compute_uv=False)[-1] for w in got]
        assert max(least) <= 1e-13 * scale * n
        if name in ("any", "triangle"):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale)       # in the same order


def test_gradients():
    rng = np.random.default_rng(0)
    a, b = matrices((7,), 3, float), rng.normal(size=(7, 3, 1))
    for name in ("solve", "inv", "det", "cholesky", "eigvalsh"):
        def loss(a, b, f=FUNCTIONS[name]):
            return np.sum(np.sin(f(a, b)))

        got, want = gs.jit(gs.grad(loss))(a, b), gs.grad(loss)(a, b)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
