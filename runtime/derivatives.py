# SPDX-License-Identifier: Apache-2.0
"""stop_gradient, closure_convert, and the arguments of custom rules with symbolic zeros."""
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SymbolicZero:
    """A tangent or an adjoint that is known to be zero when transforming; it has a shape and a dtype but no entries.

    >>> SymbolicZero((2, 3), float).ndim
    2
    """
    shape: tuple
    dtype: Any

    @property
    def ndim(self):
        return len(self.shape)


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of the forward function of a rule with symbolic zeros; perturbed: whether its adjoint is needed."""
    value: Any
    perturbed: bool


def stop_gradient(x):
    """x, treated as a constant by derivatives.

    >>> stop_gradient(2.0)
    2.0
    """
    return x


def closure_convert(fun, *example_args):
    """A function whose closure has become arguments: (converted, values), with converted(*args, *values) == fun(*args).

    For functions with custom rules, which differentiate in arguments only: inside a function that is transformed,
    `values` are the floating-point arrays and numbers that fun reads from enclosing functions; a rule takes them as an
    argument and returns their adjoint.  Outside there is nothing to differentiate, and `values` is empty.
    example_args: accepted for compatibility with JAX, without effect.

    >>> converted, values = closure_convert(lambda x: 2 * x, 1.0)
    >>> converted(3.0, *values)
    6.0
    """
    return fun, []
