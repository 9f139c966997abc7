# SPDX-License-Identifier: Apache-2.0
"""What a user's function may call about its own derivative, and what a rule with symbolic zeros is given."""
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SymbolicZero:
    """The tangent, or the adjoint, of what nothing depends on: zero, known when transforming; it has no entries.

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
    """An argument as the forward half of a rule with symbolic zeros sees it, and whether its adjoint is asked for."""
    value: Any
    perturbed: bool


def stop_gradient(x):
    """x itself; no derivative passes through it.

    >>> stop_gradient(2.0)
    2.0
    """
    return x


def closure_convert(fun, *example_args):
    """A function whose closure has become arguments: (converted, values), with converted(*args, *values) == fun(*args).

    For functions with a rule of their own, which know of their arguments only: inside a function that is transformed,
    `values` are the floating-point arrays and numbers that fun reads of the functions around it; the rule takes them as
    an argument and gives their derivative.  Outside there is nothing to differentiate, and `values` is empty.
    example_args: arguments as fun takes them; JAX's function has them, and nothing is asked of them here.

    >>> converted, values = closure_convert(lambda x: 2 * x, 1.0)
    >>> converted(3.0, *values)
    6.0
    """
    return fun, []
