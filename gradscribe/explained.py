# SPDX-License-Identifier: Apache-2.0
"""Errors that emitted code raises and the user's function does not: they are replaced by an error that explains them.

A list that stays empty has neither shape nor dtype: `np.array([])` has one axis, however many it would have with
elements, and what is computed from it may have fewer axes than the derivative was written for.  The adjoint of a list
of arrays is one array, so its elements must have one shape.

>>> import numpy as np, gradscribe as gs
>>> def f(x):
...     rows = [x * v for v in x if v > 1]
...     total = np.sum(np.array(rows) ** 2, axis=0)
...     return np.sum(total * np.ones(3))
>>> gs.grad(f)(np.array([0.5, 2.0, 0.3]))
array([ 4.  , 33.36,  2.4 ])
"""
import copy
from collections.abc import Callable

import numpy as np

from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import ShapeError


def explain(error: Exception, function: Callable, args: tuple, words: dict) -> None:
    """Raise the error that explains an error of emitted code, if the function itself does not raise that.

    function: the one that was transformed; args, words: those of the call.
    """
    if not isinstance(error, (IndexError, ValueError)):
        return
    empty, uneven, entry = set(), set(), error.__traceback__
    while entry is not None:
        frame = entry.tb_frame
        if frame.f_code.co_filename.startswith("<gradscribe"):
            lists = {name: value for name, value in frame.f_locals.items() if isinstance(value, list)}
            empty |= {name for name, value in lists.items() if not value}
            uneven |= {name for name, value in lists.items()
                       if len({v.shape for v in value if isinstance(v, np.ndarray)}) > 1}
        entry = entry.tb_next
    uneven &= set(getattr(getattr(function, "__code__", None), "co_varnames", ()))
    if not empty and not uneven:
        return
    try:
        function(*copy.deepcopy(args), **copy.deepcopy(words))
    except Exception:
        return
    if uneven:
        raise ShapeError(f"the list {min(uneven)} holds arrays of several shapes, and its adjoint is one array",
                         place_of(function), "Write them into an array that is made before the loop, or keep a list "
                         "for each shape.") from None
    named = sorted(empty & set(getattr(getattr(function, "__code__", None), "co_varnames", ())))
    which = f"the list {named[0]}" if named else "a list"
    raise ShapeError(f"{which} is empty, and an array of it has one axis: the derivative was written for the axes that "
                     "it has with elements", place_of(function),
                     "Take the path without elements apart: if len(...) > 0.") from None
