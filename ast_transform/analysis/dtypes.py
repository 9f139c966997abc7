# SPDX-License-Identifier: Apache-2.0
"""Type analysis: values whose dtype is known only when running, since it depends on the path.

Their facts have the dtype that the dtypes of all paths promote to; NumPy keeps the dtype of the path that was taken.
"""
from collections.abc import Iterable

import numpy as np

from gradscribe.ast_transform.core.form import Apply, For, If, Let, Var, While, operands, walk
from gradscribe.ast_transform.core.kinds import Array


def of_several_dtypes(body: Iterable) -> set[Var]:
    """Values that have different dtypes on different paths, and values computed from them.

    >>> from gradscribe.ast_transform.examples import form
    >>> made = form("def f(x, w):\\n    b = x if x[0] > 0 else w\\n    c = b * x\\n    return c, x + 1",
    ...             np.ones(2, np.float32), np.ones(2))
    >>> print(*sorted(v.hint for v in of_several_dtypes(made.body)))
    c value
    """
    found: set[Var] = set()

    def met(var, *sides):
        sides = [s for s in sides if isinstance(s, Var)]
        kinds = {np.dtype(v.fact.dtype) for v in (var, *sides) if is_strong(v.fact)}
        if is_strong(var.fact) and (len(kinds) > 1 or not found.isdisjoint(sides)):
            found.add(var)
    steps, before = list(walk(body)), -1
    while len(found) > before:
        before = len(found)
        for step in steps:
            if isinstance(step, If):
                for j in step.joins:
                    met(j.var, j.then, j.orelse)
            elif isinstance(step, (For, While)):
                for c in step.carries:
                    met(c.inner, c.init, c.next)
                    met(c.outer, c.init, c.next)
                if isinstance(step, For):
                    found.update(v for v, source in step.items if source in found)
            elif isinstance(step, Let) and isinstance(step.value, (Apply, Var)):
                kinds = {np.dtype(v.fact.dtype) for v in operands(step.value) if v in found and is_strong(v.fact)}
                found.update(t for t in step.targets if is_strong(t.fact) and np.dtype(t.fact.dtype) in kinds)
    return found


def is_strong(fact):
    return isinstance(fact, Array) and not fact.weak and fact.kind in "fc"
