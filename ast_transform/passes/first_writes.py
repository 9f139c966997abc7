# SPDX-License-Identifier: Apache-2.0
"""What is added to zeros is set: the first sum into entries of a new array needs no entry of it.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(L, b):
...     x = np.zeros_like(b)
...     for i in range(len(b)):
...         x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
...     return np.sum(x)
>>> print(gs.grad(f, 1).source_for(np.eye(3), np.ones(3)).split("db = ")[1])
np.zeros_like(b)
    for i in reversed(range(b.shape[0])):
        # x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
        db_1 = dx[i] / L[i, i]
        dx[:i] -= db_1 * L[i, :i]
        db[i] = db_1
    return db
<BLANKLINE>
"""
import numpy as np

from gradscribe.ast_transform.analysis.regions import Regions
from gradscribe.ast_transform.core.form import Apply, If, Let, blocks, walk
from gradscribe.ast_transform.core.operations import put, put_add
from gradscribe.ast_transform.passes.dead_writes import is_view, own_write
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.inner_writes import is_zeros


def first_writes(function):
    """The function with such sums as writes; the statements are changed."""
    if not any(own_write(step) is put_add for step in walk(function.body)):
        return function
    regions = Regions(function.body, function.result, [p.value for p in function.params])

    def is_first(step, loops):
        array, index, value = step.value.args
        names = regions.first_names(array, index, loops)
        return names is not None and all(map(is_zero, names)) and not is_view(value, regions) and np.can_cast(
            fact_of(value).dtype, array.fact.dtype, "same_kind")

    def is_zero(v):
        made = regions.maker.get(v)
        return isinstance(made, Let) and isinstance(made.value, Apply) and is_zeros(made.value)

    def visit(block, loops):
        for step in block:
            for inner in blocks(step):
                visit(inner, loops if isinstance(step, If) else (*loops, step))
            if own_write(step) is put_add and is_first(step, loops):
                step.value = Apply(put, step.value.args)

    visit(function.body, ())
    return function
