# SPDX-License-Identifier: Apache-2.0
"""Functions and arguments that gs.error_bound refuses.  Add new cases at the end, then `make golden`."""

import numpy as np
from errors.cases import A, X, Z, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, RuleError


@refused(RuleError)
def error_of_a_determinant():
    def f(x):
        return np.linalg.det(x[:2, :2])
    gs.error_bound(f)(A)


@refused(RuleError)
def error_of_a_transform():
    def f(x):
        return np.real(np.fft.fft(x))
    gs.error_bound(f)(X)


@refused(KindError)
def error_of_complex_numbers():
    def f(x):
        return 2 * x
    gs.error_bound(f)(Z)


@refused(RuleError)
def error_of_a_window():
    def f(x):
        return x[:2] * np.hamming(2)
    gs.error_bound(f)(X)


@refused(RuleError)
def error_of_another_norm():
    def f(x):
        return np.linalg.norm(x, 1)
    gs.error_bound(f)(X)


@refused(RuleError)
def error_of_the_upper_factor():
    def f(x):
        return np.linalg.cholesky(x @ x.T, upper=True)
    gs.error_bound(f)(A)


@refused(RuleError)
def error_of_three_operands():
    def f(x):
        return np.einsum("i,i,i->", x, x, x)
    gs.error_bound(f)(X)


@refused(KindError)
def errors_of_more_arguments():
    def f(x):
        return 2 * x
    gs.error_bound(f, inputs=(1e-3, None))(X)


@refused(KindError)
def error_bound_of_a_number():
    gs.error_bound(3.0)


@refused(KindError)
def inputs_below_zero():
    gs.error_bound(np.sin, inputs=-1e-3)


@refused(RuleError)
def error_of_a_neighbour():
    def f(x):
        return np.nextafter(x * x, 2.0)
    gs.error_bound(f)(X)


@refused(RuleError)
def error_of_a_determinant_of_what_has_errors():
    def f(x):
        return np.linalg.det(x[:2, :2] * x[:2, :2])
    gs.error_bound(f)(A)


@refused(RuleError)
def error_of_eigenvectors():
    def f(x):
        values, vectors = np.linalg.eigh(x @ x.T)
        return values, vectors
    gs.error_bound(f)(A)


@refused(RuleError)
def error_of_a_bessel_function():
    def f(x):
        return np.i0(0.1 * x)
    gs.error_bound(f)(X)


@refused(RuleError)
def error_of_an_orthogonal_factor():
    def f(x):
        return np.linalg.qr(x)[1]
    gs.error_bound(f)(A)
