"""One factorisation for all that is solved with a matrix: the same values and errors, and as few factorisations."""
import numpy as np
import pytest

import gradscribe as gs


def matrix(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)) + np.diag(np.linspace(-3.0, 3.0 + n, n))


def likelihood(A, b):
    return 0.5 * np.linalg.slogdet(A)[1] + 0.5 * b @ np.linalg.solve(A, b)


def compliance(A, b):
    return b @ np.linalg.solve(A, b)


def both_sides(A, b):
    x = np.linalg.solve(A, b)
    return np.sum(np.sin(x) * np.linalg.solve(A.T, x))


def steps(A, b):
    for _ in range(3):
        b = np.linalg.solve(A, b) + 1.0
    return np.sum(b * b)


def in_an_arm(A, b):
    x = np.linalg.solve(A, b)
    if x[0] > 0:
        x = np.linalg.solve(A.T, x)
    return np.sum(x ** 3)


def many_sides(A, b):
    return np.sum(np.linalg.solve(A, np.outer(b, np.cos(b))) ** 2) + np.linalg.solve(A, b)[0]


def all_of_them(A, b):
    return np.linalg.det(A) * 1e-3 + np.sum(np.linalg.inv(A) * np.linalg.solve(A, b)) + np.linalg.slogdet(A)[0]


def of_a_part(A, b):
    return b[1:] @ np.linalg.solve(A[1:, 1:], b[1:])


def changed_between(A, b):
    """The second system is not the first one's."""
    A = A.copy()
    x = np.linalg.solve(A, b)
    A[0, 0] += 1.0
    return np.sum(np.linalg.solve(A, x))


# (program, factorisations in its compiled gradient)
PROGRAMS = [(likelihood, 1), (compliance, 1), (both_sides, 1), (steps, 1), (in_an_arm, 1), (many_sides, 1),
            (all_of_them, None), (of_a_part, 1), (changed_between, 2)]


@pytest.mark.compiled
@pytest.mark.parametrize("f, count", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients(f, count, dtype):
    df = gs.jit(gs.grad(f, (0, 1)))
    for n in (1, 2, 5, 24, 25, 60):
        if f is of_a_part and n == 1:
            continue
        A, b = matrix(n).astype(dtype), np.linspace(0.5, 1.5, n).astype(dtype)
        for got, want in zip(df(A, b), gs.grad(f, (0, 1))(A, b)):
            assert got.dtype == dtype
            scale = np.max(np.abs(want))
            np.testing.assert_allclose(got, want, rtol=0, atol=scale * n * (1e-13 if dtype == np.float64 else 2e-4))
    if count is not None:
        assert df.lowered.count("factors_of_matrix(") == count


@pytest.mark.parametrize("f", [f for f, _ in PROGRAMS])
def test_batches_and_tangents(f):
    A, b = np.stack([matrix(5), matrix(5, 1)]), np.linspace(0.5, 1.5, 10).reshape(2, 5)
    for got, want in zip(gs.jit(gs.vmap(gs.grad(f, (0, 1))))(A, b), gs.vmap(gs.grad(f, (0, 1)))(A, b)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    got, want = (w(lambda A, b: gs.jvp(f, (A, b), (A + 1.0, b * b)))(A[0], b[0]) for w in (gs.jit, lambda g: g))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_singular_matrix_raises_where_it_is_solved_with():
    def f(A, b, n):
        for _ in range(n):
            b = np.linalg.solve(A, b)
        return b

    singular, b = np.ones((3, 3)), np.ones(3)
    np.testing.assert_array_equal(gs.jit(f)(singular, b, 0), b)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        gs.jit(f)(singular, b, 1)

    def g(A, b):
        return np.linalg.slogdet(A)[1], np.linalg.det(A), np.sum(b)

    assert gs.jit(g)(singular, b)[:2] == (-np.inf, 0.0)


def test_what_is_no_number_is_none():
    A = matrix(4)
    A[2, 1] = np.nan
    assert np.isnan(gs.jit(lambda A, b: np.linalg.solve(A, b))(A, np.ones(4))).any()
    assert np.isnan(gs.jit(lambda A: np.linalg.det(A))(A))


def test_lengths_that_differ():
    with pytest.raises((ValueError, gs.TransformError)):
        gs.jit(lambda A, b: np.linalg.solve(A, b))(np.ones((3, 3)), np.ones(4))
    with pytest.raises((ValueError, np.linalg.LinAlgError, gs.TransformError)):
        gs.jit(lambda A, b: np.linalg.solve(A, b))(np.ones((3, 4)), np.ones(3))


@pytest.mark.compiled
def test_views_and_other_orders():
    A, b = matrix(9), np.linspace(0.5, 1.5, 9)

    def f(A, b):
        return np.linalg.solve(A[::2, ::2], b[::2])[:4] @ np.linalg.solve(A.T[1::2, 1::2], b[1::2])

    np.testing.assert_allclose(gs.jit(f)(A, b), f(A, b), rtol=1e-10)
    g = gs.jit(lambda A, b: np.linalg.solve(A, b) + np.linalg.solve(A.T, b))
    F = np.asfortranarray(A)
    np.testing.assert_allclose(g(F, b), np.linalg.solve(A, b) + np.linalg.solve(A.T, b), rtol=1e-10)


# --- triangular matrices ----------------------------------------------------------------------------------------------

def definite(A):
    return A @ A.T / len(A) + np.eye(len(A), dtype=A.dtype)


def cholesky_solve(A, b):
    L = np.linalg.cholesky(definite(A))
    return b @ np.linalg.solve(L.T, np.linalg.solve(L, b)) + np.sum(np.log(np.diag(L)))


def upper_cholesky(A, b):
    U = np.linalg.cholesky(definite(A), upper=True)
    return np.sum(np.linalg.solve(U, np.outer(b, np.cos(b))) ** 2) + np.sum(np.linalg.solve(U.T, b))


def least_squares(A, b):
    q, r = np.linalg.qr(A)
    return np.sum(np.linalg.solve(r, q.T @ b) ** 2)


def lower_part(A, b):
    L = np.tril(A, -1) + np.eye(len(A))             # not known to be one: a sum
    T = np.tril(A)
    return np.sum(np.linalg.solve(L, b)) + np.sum(np.linalg.solve(T.T, np.outer(np.sin(b), b)) ** 2)


def upper_part(A, b):
    total = 0.0
    U = np.triu(A)
    for _ in range(2):
        total += np.sum(np.linalg.solve(U, b))
        b = np.linalg.solve(U.T, b)
    return total + np.sum(b)


def written_to(A, b):
    L = np.tril(A)
    x = np.linalg.solve(L, b)
    row = L[0]
    row[-1] = 0.7                                   # triangular no longer
    return np.sum(np.linalg.solve(L, x) ** 2)


def off_diagonal(A, b):
    return np.sum(np.linalg.solve(np.triu(A, -1), b) ** 2)


# (program, substitutions and factorisations in its compiled gradient)
TRIANGULAR = [(cholesky_solve, 4, 0), (upper_cholesky, 6, 0), (least_squares, 3, 0), (lower_part, 2, 1),
              (upper_part, 4, 0), (written_to, 2, 1), (off_diagonal, 0, 1)]


@pytest.mark.compiled
@pytest.mark.parametrize("f, substitutions, factorisations", TRIANGULAR)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_triangular_matrices(f, substitutions, factorisations, dtype):
    df = gs.jit(gs.grad(f, (0, 1)))
    for n in (1, 2, 5, 8, 9, 33):
        A, b = matrix(n).astype(dtype), np.linspace(0.5, 1.5, n).astype(dtype)
        A = (A / n + 2 * np.eye(n)).astype(dtype)
        for got, want in zip(df(A, b), gs.grad(f, (0, 1))(A, b)):
            assert got.dtype == dtype
            scale = np.max(np.abs(want))
            np.testing.assert_allclose(got, want, rtol=0, atol=scale * n * (1e-13 if dtype == np.float64 else 2e-4))
    assert df.lowered.count("triangle_solution(") == substitutions
    assert df.lowered.count("factors_of_matrix(") == factorisations
    np.testing.assert_allclose(gs.jit(f)(A, b), f(A, b), rtol=1e-12 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("f", [f for f, *_ in TRIANGULAR])
def test_triangular_matrices_in_batches_and_of_complex_numbers(f):
    A, b = np.stack([matrix(5), matrix(5, 1)]) / 5 + 2 * np.eye(5), np.linspace(0.5, 1.5, 10).reshape(2, 5)
    for got, want in zip(gs.jit(gs.vmap(gs.grad(f, (0, 1))))(A, b), gs.vmap(gs.grad(f, (0, 1)))(A, b)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    got, want = (w(lambda A, b: gs.jvp(f, (A, b), (A + 1.0, b * b)))(A[0], b[0]) for w in (gs.jit, lambda g: g))
    np.testing.assert_allclose(got, want, rtol=1e-9)
    if f is not written_to:
        z = A[0] + 0.3j * A[1]
        np.testing.assert_allclose(gs.jit(f)(z, b[0] + 0j), f(z, b[0] + 0j), rtol=1e-10)


@pytest.mark.compiled
@pytest.mark.parametrize("columns", [(), (0,), (1,), (3,), (4,), (7,)])
@pytest.mark.parametrize("n", [0, 1, 8, 9, 40])
def test_right_sides(n, columns):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)) / (n + 1) + 2 * np.eye(n), rng.normal(size=(n, *columns))
    for turn in (np.tril, np.triu):
        solved = gs.jit(lambda A, b, turn=turn: np.linalg.solve(turn(A), b))(A, b)
        across = gs.jit(lambda A, b, turn=turn: np.linalg.solve(turn(A).T, b))(A, b)
        np.testing.assert_allclose(solved, np.linalg.solve(turn(A), b), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(across, np.linalg.solve(turn(A).T, b), rtol=1e-11, atol=1e-13)
    both = gs.jit(lambda A, b: (np.linalg.solve(A, b), np.linalg.solve(A.T, b)))
    for got, want in zip(both(A, b), (np.linalg.solve(A, b), np.linalg.solve(A.T, b))):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_a_singular_triangle_raises():
    A = np.tril(matrix(12))
    A[7, 7] = 0.0
    for b in (np.ones(12), np.ones((12, 6))):
        for solve in (lambda A, b: np.linalg.solve(np.tril(A), b), lambda A, b: np.linalg.solve(np.tril(A).T, b)):
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                gs.jit(solve)(A, b)


def test_records_say_what_is_triangular():
    """Each record that says so, on its own samples."""
    from gradscribe.ast_transform.core.rule import RULES
    found = 0
    for function, record in RULES.items():
        if "triangle" in record.options:
            for args, kwargs in record.samples(np.random.default_rng(0)):
                said = record.options["triangle"](*args[1:], **kwargs)
                made = function(*args, **kwargs)
                for value, side in zip(made if isinstance(said, tuple) else [made],
                                       said if isinstance(said, tuple) else [said]):
                    if side is not None:
                        other = np.triu(value, 1) if side == "lower" else np.tril(value, -1)
                        assert not other.any()
                        found += 1
    assert found > 12
