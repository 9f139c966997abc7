# SPDX-License-Identifier: Apache-2.0
"""gs.insert_grad_of: change a gradient at a point in the user's code."""
import sys
from typing import Any


class insert_grad_of:
    """`with gs.insert_grad_of(x) as dx:` runs its body in the backward sweep, once the adjoint of x is complete.

    The body sees the adjoint as `dx`, and the variables of the function.  The value of `dx` at its end is propagated
    backward: clip it, scale it, print it, or assert something about it.  x is a variable that holds a number or an
    array.  A plain call of the function and forward mode skip the body.

    The idea is Tangent's (B. van Merriënboer, D. Moldovan, A. Wiltschko, Tangent: automatic differentiation using
    source code transformation in Python, NeurIPS 2018).

    Raises TransformError, under differentiation, if x is not a variable that holds a number or an array.

    >>> import numpy as np, gradscribe as gs
    >>> def f(x):
    ...     y = x * x
    ...     with gs.insert_grad_of(y) as dy:
    ...         dy = np.clip(dy, -1.0, 1.0)
    ...     return 100.0 * y
    >>> f(3.0), float(gs.grad(f)(3.0))
    (900.0, 6.0)
    """

    def __init__(self, x: Any):
        self.x = x

    def __enter__(self):
        """Skip the body in a plain call: a trace function raises at its first line, and __exit__ catches that."""
        frame = sys._getframe(1)
        self.frame, self.traced, self.inner = frame, sys.gettrace(), frame.f_trace
        sys.settrace(lambda *_: None)
        frame.f_trace = self.leave
        return self.x

    def leave(self, frame, event, arg):
        """Leave the block, without running it."""
        raise _PassedBy

    def __exit__(self, kind, error, place):
        sys.settrace(self.traced)
        self.frame.f_trace = self.inner
        return kind is _PassedBy


class _PassedBy(Exception):
    """Leaves the body of a with."""
