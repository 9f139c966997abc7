"""Bad inputs of linear algebra, SciPy's too."""
import numpy as np
import scipy.linalg
from errors.cases import A, X, emitted, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import RuleError


@refused(RuleError)
def fourier_transform_along_one_axis_twice():
    def f(x):
        return np.sum(np.abs(np.fft.fft2(x, s=(2, 2), axes=(0, 0))))
    emitted(f, A)


@refused(RuleError)
def hankel_matrix_of_a_matrix():
    def f(x):
        whole = scipy.linalg.hankel(x)
        return np.sum(whole)
    emitted(f, A[:, :2])


@refused(RuleError)
def outer_product_of_matrices():
    def f(x):
        return np.sum(np.linalg.outer(x, x))
    emitted(f, A)


@refused(RuleError)
def toeplitz_matrix_of_a_matrix():
    def f(x):
        return np.sum(scipy.linalg.toeplitz(x))
    emitted(f, A)


@refused(RuleError)
def block_diagonal_of_stacks():
    def f(x, W):
        return np.sum(scipy.linalg.block_diag(x, W))
    emitted(f, X, A[None])


@refused(RuleError)
def compiled_eigenvectors_of_the_upper_triangle():
    def f(x):
        return np.linalg.eigh(x, "U")[1]
    gs.jit(f).source_for(np.ones((2, 2)))


@refused(RuleError)
def triangular_solution_of_a_stack():
    def f(x):
        return np.sum(scipy.linalg.solve_triangular(x[None, None] * np.eye(3), x))
    emitted(f, X)


@refused(RuleError)
def eigenvalues_with_a_second_matrix():
    def f(x):
        return np.sum(scipy.linalg.eigh(x, x @ x, eigvals_only=True))
    emitted(f, A[:, :2])


@refused(RuleError)
def full_scipy_qr():
    def f(x):
        q, r = scipy.linalg.qr(x.T)
        return np.sum(r)
    emitted(f, A)


@refused(RuleError)
def cholesky_solution_of_an_unknown_triangle():
    def f(x):
        return np.sum(scipy.linalg.cho_solve((np.outer(x, x), x[0]), x))
    emitted(f, X)


@refused(RuleError)
def solution_of_a_banded_system():
    def f(x):
        return np.sum(scipy.linalg.solve(np.diag(x), x, assume_a="banded"))
    emitted(f, X)


@refused(RuleError)
def lu_with_rows_in_order():
    def f(x):
        low, up = scipy.linalg.lu(np.diag(x), permute_l=True)
        return np.sum(low)
    emitted(f, X)
