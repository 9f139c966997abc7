"""Bad inputs of SciPy's statistics, convolutions, distances and solvers."""
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.signal
from errors.cases import A, X, emitted, refused
from scipy import stats
from scipy.spatial import distance

from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError


@refused(RuleError)
def scipys_solver_of_differential_equations():
    def f(x):
        return np.sum(scipy.integrate.odeint(lambda y, t: -y * y, x, np.linspace(0.0, 1.0, 3)))
    emitted(f, X)


@refused(RuleError)
def scipys_initial_value_problem():
    def f(x):
        return np.sum(scipy.integrate.solve_ivp(lambda t, y: -t * y, (0.0, 1.0), x).y[:, -1])
    emitted(f, X)


@refused(RuleError)
def degrees_of_freedom_in_a_distribution_function():
    def f(x):
        return np.sum(stats.t.cdf(1.0, x))
    emitted(f, X)


@refused(RuleError)
def normal_vectors_of_a_singular_covariance():
    def f(x):
        return stats.multivariate_normal.logpdf(x, x * x, x, allow_singular=True)
    emitted(f, X)


@refused(RuleError)
def normal_vectors_with_three_axes():
    def f(x):
        return np.sum(stats.multivariate_normal.logpdf(x.reshape(3, 1, 1), np.zeros(1), np.eye(1)))
    emitted(f, X)


@refused(ShapeError)
def weights_for_more_components():
    def f(x):
        return stats.dirichlet.logpdf(x[:1] / 4, np.array([1.5, 2.0]))
    emitted(f, X)


@refused(RuleError)
def weights_of_a_stack():
    def f(x):
        return np.sum(stats.dirichlet.logpdf(x[None, None] / 4.5, np.array([1.5])))
    emitted(f, X)


@refused(RuleError)
def convolution_of_a_vector_and_a_matrix():
    def f(x):
        return np.sum(scipy.signal.convolve(np.outer(x, x), x))
    emitted(f, X)


@refused(RuleError)
def convolution_that_goes_round():
    def f(x):
        return np.sum(scipy.signal.convolve(x, x, "wrap"))
    emitted(f, X)


@refused(RuleError)
def convolution_along_some_axes():
    def f(x):
        return np.sum(scipy.signal.fftconvolve(x, x, axes=1) ** 2)
    emitted(f, A)


@refused(RuleError)
def transforms_of_whole_numbers():
    def f(x):
        return np.sum(x * scipy.signal.fftconvolve(np.arange(3), np.arange(3), "same"))
    emitted(f, X)


@refused(RuleError)
def distances_of_another_metric():
    def f(x):
        return np.sum(distance.pdist(x, "canberra"))
    emitted(f, A)


@refused(RuleError)
def distances_with_weights():
    def f(x):
        return np.sum(distance.pdist(x, "cosine", w=np.ones(3)))
    emitted(f, A)


@refused(RuleError)
def distances_of_a_vector():
    def f(x):
        return np.sum(distance.cdist(x, x))
    emitted(f, X)


@refused(RuleError)
def square_form_of_a_stack():
    def f(x):
        return np.sum(distance.squareform(x[None]))
    emitted(f, A)


@refused(RuleError)
def banded_systems_in_a_stack():
    def f(x):
        return np.sum(scipy.linalg.solve_banded((0, 0), x[None, None], x[None]))
    emitted(f, X)


@refused(RuleError)
def diagonals_that_are_known_when_running():
    def f(x, k):
        return np.sum(scipy.linalg.solve_banded((np.argmax(x) * k, 0), x[None], x))
    emitted(f, X, 0)


@refused(RuleError)
def a_sylvester_equation_of_real_and_complex_matrices():
    def f(a):
        return np.sum(np.abs(scipy.linalg.solve_sylvester(a, a, np.array([[1j, 2.0], [0.5, 1.0]]))))
    emitted(f, np.array([[1.0, 2.0], [-2.0, 1.5]]))


@refused(ShapeError)
def a_sylvester_equation_of_a_stack_and_a_matrix():
    def f(a):
        return np.sum(scipy.linalg.solve_sylvester(a, np.eye(2), np.ones((2, 2))))
    emitted(f, np.ones((3, 2, 2)))
