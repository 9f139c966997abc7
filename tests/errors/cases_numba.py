"""Functions of Numba's that are refused."""
import logging

import numba
import numpy as np
from errors.cases import emitted, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, RuleError

X = np.array([0.5, 1.5, 2.5])


@numba.vectorize
def cubed(v):
    return v * v * v


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->()")
def summed(x, out):
    out[0] = x.sum()


@refused(RuleError)
def a_function_of_numbers_into_an_array():
    emitted(lambda x: np.sum(cubed(x, np.zeros(3))), X)


@refused(RuleError)
def a_generalized_ufunc():
    emitted(lambda x: summed(x), X)


@numba.vectorize(["float64(float64)"])
def doubled(v):
    return v * 2


@refused(RuleError)
def a_function_of_numbers_without_a_loop_for_them():
    emitted(lambda x: np.sum(np.real(doubled(x * 1j))), X)


@refused(RuleError)
def a_log_in_code_for_a_device():
    def f(x):
        logging.info("the sum is %s", np.sum(x))
        return np.sum(x * x)
    gs.jit(f, target="cuda")(X)


@refused(KindError)
def a_function_that_reports_is_exported():
    def f(x):
        print(f"x is {x}")
        return x * x
    gs.export(f, 1.0, path="never", name="never")
