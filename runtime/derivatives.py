# SPDX-License-Identifier: Apache-2.0
"""What a user's function may call about its own derivative."""


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
