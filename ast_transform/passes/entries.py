# SPDX-License-Identifier: Apache-2.0
"""Views without axes are read as numbers at once, where arrays are written in place.

`x[..., k]` of an array with one axis is a view, as `x[k:k + 1].reshape(())` is: a write into x changes it.  Values of
the normal form are immutable, so the number is read where the view is taken: `x[k]`, `x[k:k + 1].reshape(())[()]`.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, k):\\n    x = x.copy()\\n    y = x[..., k]\\n    x[k] = np.sin(y)\\n    return x * y"
>>> print(show(entries(form(text, np.ones(3), 1))))
f(x, k):
    x_1 = np.copy(x)
    y = x_1[k]
    sin_y = np.sin(y)
    x_2 = put(x_1, k, sin_y)
    y_1 = x_2[k]
    z = x_2 * y_1
    return z
"""
import operator
from typing import Any

from gradscribe.ast_transform.core.alias import aliased, may_give_a_cell, parts_of, updates
from gradscribe.ast_transform.core.form import Apply, Const, Function, Let, Pack, Var, blocks, is_application, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.reader.views import index_of, is_number


def entries(function: Function) -> Function:
    """The function, changed in place so that no value is a view without axes of another array."""
    def visit(block):
        for k in reversed(range(len(block))):
            step = block[k]
            for inner in blocks(step):
                visit(inner)
            if is_cell(step):
                parts = [p for p in parts_of(step.value.args[1]) if not is_ellipsis(p)] \
                    if is_application(step.value, operator.getitem) else ()
                if parts and all(map(is_number, parts)):
                    step.value = Apply(operator.getitem, (step.value.args[0], index_of(parts)))
                    continue
                (target,) = step.targets
                cell = Var(target.hint, target.fact, target.kind)
                step.targets = (cell,)
                block.insert(k + 1, Let((target,), Apply(operator.getitem, (cell, Pack("tuple", ()))), step.origin))

    if any(isinstance(s, Let) and updates(s.value) for s in walk(function.body)):
        visit(function.body)
    return function


def is_cell(step: Any) -> bool:
    """Whether the result of a statement may be a view without axes of another array."""
    fact = step.targets[0].fact if isinstance(step, Let) and len(step.targets) == 1 else None
    return isinstance(fact, Array) and not fact.dims and not fact.weak and isinstance(step.value, Apply) and bool(
        may_give_a_cell(step.value)) and bool(aliased(step.value))


def is_ellipsis(part):
    return isinstance(part, Const) and part.value is Ellipsis
