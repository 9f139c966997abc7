"""Bad inputs of statistics, calculus, polynomials and of ufuncs' methods."""

import numpy as np
from errors.cases import A, X, emitted, refused

from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError


@refused(RuleError)
def quantile_by_an_unknown_method():
    def f(x):
        return np.quantile(x, 0.3, method="hazen")
    emitted(f, X)


@refused(ShapeError)
def outer_of_no_array():
    def f(x):
        return np.sum(np.multiply.outer(x, "a"))
    emitted(f, X)


@refused(RuleError)
def outer_of_one():
    def f(x):
        return np.sum(np.multiply.outer(x))
    emitted(f, X)


@refused(RuleError)
def ufunc_in_another_dtype():
    def f(x):
        return np.sum(np.less(x, 2.0, dtype=float))
    emitted(f, X)


@refused(RuleError)
def ufunc_with_where_alone():
    def f(x):
        return np.sum(np.exp(x, where=x > 1))
    emitted(f, X)


@refused(ShapeError)
def ufunc_in_whole_numbers():
    def f(x):
        return np.sum(np.add(x, x, dtype=int))
    emitted(f, X)


@refused(ShapeError)
def interpolation_between_unequal_nodes():
    def f(x):
        return np.sum(np.interp(x, np.array([0.0, 1.0]), x))
    emitted(f, X)


@refused(RuleError)
def cumulative_sum_without_an_axis():
    def f(x):
        return np.sum(np.cumulative_sum(x))
    emitted(f, A)


@refused(RuleError)
def gradient_of_third_order():
    def f(x):
        return np.sum(np.gradient(x, edge_order=3))
    emitted(f, X)


@refused(RuleError)
def gradient_of_too_few_spacings():
    def f(x):
        return np.sum(np.gradient(x, 1.0, 2.0, 3.0)[0])
    emitted(f, A)


@refused(RuleError)
def gradient_of_a_matrix_of_nodes():
    def f(x):
        return np.sum(np.gradient(x, x, axis=0))
    emitted(f, A)


@refused(RuleError)
def linspace_in_whole_numbers():
    def f(x):
        return np.sum(np.linspace(x[0], x[1], 5, dtype=int))
    emitted(f, X)


@refused(RuleError)
def constant_of_integration_alone():
    def f(x):
        return np.sum(np.polyint(x, 1, 2.0))
    emitted(f, X)


@refused(RuleError)
def constants_of_integration_left_over():
    def f(x):
        return np.sum(np.polyint(x, 1, [1.0, 2.0]))
    emitted(f, X)


@refused(RuleError)
def polynomial_of_a_matrix():
    def f(x):
        return np.sum(np.polymul(x, x))
    emitted(f, A)


@refused(RuleError)
def fit_in_full():
    def f(x):
        return np.sum(np.polyfit(x, x, 1, full=True)[0])
    emitted(f, X)


@refused(RuleError)
def fit_with_a_bound():
    def f(x):
        return np.sum(np.polyfit(x, x, 1, rcond=1e-3))
    emitted(f, X)


@refused(RuleError)
def derivative_of_broken_order():
    def f(x):
        return np.sum(np.polyder(x, 1.5))
    emitted(f, X)


@refused(RuleError)
def variance_corrected_twice():
    def f(x):
        return np.var(x, ddof=1, correction=1)
    emitted(f, X)


@refused(RuleError)
def maximum_of_chosen_entries():
    def f(x):
        return np.max(x, where=x > 1)
    emitted(f, X)


@refused(RuleError)
def quantiles_in_a_matrix():
    def f(x):
        return np.sum(np.quantile(x, np.array([[0.2], [0.4]])))
    emitted(f, X)


@refused(RuleError)
def histogram_of_a_matrix_of_columns():
    def f(x):
        return np.sum(np.histogramdd(x, 2)[1][0])
    emitted(f, A)


@refused(RuleError)
def covariance_with_broken_degrees():
    def f(x):
        return np.cov(x, ddof=0.5)
    emitted(f, X)


@refused(RuleError)
def histogram_with_bins_by_name():
    def f(x):
        return np.sum(np.histogram(x, 'auto')[1])
    emitted(f, X)


@refused(RuleError)
def covariance_of_a_cube():
    def f(x):
        return np.sum(np.cov(x))
    emitted(f, A[None])


@refused(RuleError)
def quantile_that_jumps():
    def f(x):
        return np.quantile(np.arange(4.0), x[0] / 9, method="lower")
    emitted(f, X)


@refused(RuleError)
def difference_of_all_rows():
    def f(x):
        return np.sum(np.subtract.reduce(x))
    emitted(f, A)
