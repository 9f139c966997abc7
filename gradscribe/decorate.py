# SPDX-License-Identifier: Apache-2.0
"""gs.function: a decorator that adds the transformations of a function as attributes."""
import functools

from gradscribe.api import grad, jvp_of, value_and_grad, vjp_of
from gradscribe.ast_transform.reader.derivatives import enter
from gradscribe.jit import jit
from gradscribe.named import bound, reduced


class function:
    """The function with the attributes .grad, .value_and_grad, .jvp, .vjp and .jit.

    >>> import gradscribe as gs
    >>> @gs.function
    ... def cube(x):
    ...     return x ** 3
    >>> cube(2.0), cube.grad(2.0)
    (8.0, 12.0)
    """

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, fun):
        self.fun = fun
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        """Call the function unchanged."""
        return self.fun(*args, **kwargs)

    def normal_form_(self, reader, args, words, node):
        """The result, in normal form, of a call inside a function that is being transformed."""
        return enter(reader, self.fun, args, words)

    @functools.cached_property
    def grad(self):
        """The gradient: gs.grad of the function."""
        return grad(self.fun)

    @functools.cached_property
    def value_and_grad(self):
        """The value and the gradient: gs.value_and_grad of the function."""
        return value_and_grad(self.fun)

    @functools.cached_property
    def jvp(self):
        """The forward derivative: gs.jvp_of of the function."""
        return jvp_of(self.fun)

    @functools.cached_property
    def vjp(self):
        """The reverse derivative: gs.vjp_of of the function."""
        return vjp_of(self.fun)

    @functools.cached_property
    def jit(self):
        """The compiled function: gs.jit of the function."""
        return jit(self.fun)
