"""Single operations of NumPy with arguments that are not understood."""
import numpy as np
from errors.cases import emitted, refused

import gradscribe as gs
from gradscribe import LanguageError, RuleError, ShapeError

X = np.array([1.0, 2.0, 3.0])


@refused(RuleError)
def require_that_may_copy():
    def f(x):
        y = np.require(x, requirements=["O", "W"])
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def windows_of_too_many_axes():
    def f(x):
        return np.sum(np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=0))
    emitted(f, X)


@refused(RuleError)
def errstate_that_raises_in_compiled_code():
    def f(x):
        with np.errstate(invalid="raise"):
            return np.sum(np.sqrt(x))
    gs.jit(gs.grad(f))(X)


@refused(LanguageError)
def truth_values_of_python_and_of_numpy():
    def f(x):
        return ((x[0] > 0 and True) + True) * x[0]
    emitted(f, X)
