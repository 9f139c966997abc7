# SPDX-License-Identifier: Apache-2.0
"""Editing a gradient at a place of the user's code."""
import sys
from typing import Any


class insert_grad_of:
    """`with gs.insert_grad_of(x) as dx:` runs its body in the backward sweep, where the adjoint of x is complete.

    The body sees the adjoint as `dx` and the variables of the function; what it leaves in `dx` goes on backward: clip
    it, scale it, print it, assert something of it.  x is a name that holds a number or an array.  A call of the
    function itself, and forward mode, pass the body by.

    The idea is Tangent's (B. van Merriënboer, D. Moldovan, A. Wiltschko, Tangent: automatic differentiation using
    source code transformation in Python, NeurIPS 2018).

    Raises TransformError, where the function is differentiated, for what is no name of a number or an array.

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
        """In a plain call the body is passed by: its first line is left by an exception that __exit__ takes."""
        frame = sys._getframe(1)
        self.frame, self.traced, self.inner = frame, sys.gettrace(), frame.f_trace
        sys.settrace(lambda *_: None)
        frame.f_trace = self.leave
        return self.x

    def leave(self, frame, event, arg):
        raise _PassedBy

    def __exit__(self, kind, error, place):
        sys.settrace(self.traced)
        self.frame.f_trace = self.inner
        return kind is _PassedBy


class _PassedBy(Exception):
    """Leaves the body of a with."""
