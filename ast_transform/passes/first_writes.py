# SPDX-License-Identifier: Apache-2.0
"""The first sum into entries of a new array of zeros becomes a write: `d[i] += v` is `d[i] = v`.

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
from gradscribe.ast_transform.core.form import Apply, Const, Function, If, Let, Pack, blocks, read_counts, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put, put_add
from gradscribe.ast_transform.passes.dead_writes import is_view, own_write
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.inner_writes import is_zeros
from gradscribe.ast_transform.passes.simplify import drop_dead


def first_writes(function: Function) -> Function:
    """The function with such sums as writes; it is changed in place."""
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


def listed(function: Function) -> Function:
    """The function, changed in place: an array of zeros of which each entry is set becomes np.array of a list.

    >>> from gradscribe.ast_transform.examples import gradient, show
    >>> text = "def f(x):\\n    a, b = x\\n    return a * a * b"
    >>> print(show(listed(first_writes(gradient(text, np.ones(2))))))
    grad_f(x):
        a = x[0]
        b = x[1]
        t = a * a
        t_1 = b * a
        da = 2 * t_1
        dx = np.array([da, t])
        return dx
    """
    counts = read_counts(function)

    def visit(block):
        made = {s.targets[0]: s for s in block if isinstance(s, Let) and len(s.targets) == 1}
        for step in block:
            for inner in blocks(step):
                visit(inner)
            found = entries_set(step, made, counts) if own_write(step) in (put, put_add) else None
            if found is not None:
                step.value = Apply(np.array, (Pack("list", found),))

    visit(function.body)
    function.body = drop_dead(function.body, function.result)
    return function


def entries_set(step, made, counts):
    """All entries of an array with one axis after a write, or None if some are not known."""
    fact = step.targets[0].fact
    length = fact.dims[0].normal() if type(fact) is Array and fact.rank == 1 else None
    found = {}
    while length is not None and length.symbol is None and own_write(step) is put:
        array, index, value = step.value.args
        if not isinstance(index, Const) or type(index.value) is not int or fact_of(value).rank:
            return None
        found.setdefault(index.value % length.offset, value)
        if counts.get(array) != 1 or array not in made:
            return None
        step = made[array]
    if not found or len(found) < length.offset or not isinstance(step.value, Apply) or not is_zeros(step.value) or \
            np.result_type(*(fact_of(v).dtype for v in found.values())) != fact.dtype:
        return None
    return tuple(found[k] for k in range(length.offset))
