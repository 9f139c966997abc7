# SPDX-License-Identifier: Apache-2.0
"""Values whose precision depends on the path: a fact has one dtype, NumPy promotes anew on each path.

>>> from gradscribe.ast_transform.examples import form
>>> loop = "def f(s, n):\\n    y = 0.0\\n    for _ in range(n):\\n        y = y + s\\n    return {}"
>>> [has_paths(form(loop.format(end), np.float32(1), 2).body) for end in ("s * y", "s / np.cos(y)")]
[False, True]
"""
import operator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Var, While, is_application, operands, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import pop, pop_front, put, put_add
from gradscribe.ast_transform.passes.described import fact_of

YIELDING = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos}
STORING = {put, put_add}
SHORTENING = {pop, pop_front}


def is_narrow(fact: Any) -> bool:
    """Whether a value has less than double precision, which Python numbers keep and NumPy doubles widen."""
    return isinstance(fact, Array) and not fact.weak and fact.differentiable and np.dtype(fact.dtype).itemsize < (
        16 if fact.kind == "c" else 8)


def has_paths(body: list) -> bool:
    """Whether a value has different floating-point dtypes on different paths.

    A Python number on one path and a narrow one on another have the same effect in arithmetic with narrow numbers.  A
    function, however, makes a double of the Python number.
    """
    yielding: set[Var]
    yielding, before = set(), -1
    while len(yielding) > before:
        before = len(yielding)
        if any(_decides(step, yielding) for step in walk(body)):
            return True
    return False


def keeps_dtype(body: list, array: Var) -> bool:
    """Whether an array has the dtype of its fact on all paths: it was made like an argument, and written into.

    >>> from gradscribe.ast_transform.examples import form
    >>> loop = "    for i in range(3):\\n        y[i] = x[i]\\n"
    >>> text = f"def f(x):\\n    y = np.zeros_like(x)\\n{loop}    return y, x * x"
    >>> body = form(text, np.ones(3)).body
    >>> [loop] = [s for s in body if isinstance(s, For)]
    >>> keeps_dtype(body, loop.carries[-1].outer), keeps_dtype(body, body[-1].targets[0])
    (True, False)
    """
    made, seen = {}, set()
    for step in walk(body):
        made.update({v: (a, b) for v, a, b in _met(step)})
        if isinstance(step, Let):
            made.update(dict.fromkeys(step.targets, step.value))

    def sure(v):
        if v in seen:
            return True                 # a loop: its init is checked, too
        seen.add(v)
        value = made.get(v)
        if isinstance(value, tuple):
            return all(isinstance(n, Var) and sure(n) for n in value)
        if not isinstance(value, Apply) or not isinstance(value.args[0], Var):
            return False
        first = value.args[0]
        return sure(first) if value.function in STORING else \
            value.function in (np.zeros_like, np.empty_like) and not value.kwargs and first not in made
    return sure(array)


def complex_by_path(body: list) -> set[Var]:
    """Values that are complex on some paths and real on others, as would be zeros made like them."""
    found: set[Var]
    found, before = set(), -1
    while len(found) > before:
        before = len(found)
        for step in walk(body):
            for var, a, b in _met(step):
                if _is_complex(var) and any(n in found or not _is_complex(n) for n in (a, b)):
                    found.add(var)
            if isinstance(step, Let) and any(v in found for v in operands(step.value)):
                found.update(t for t in step.targets if _is_complex(t))
    return found


def _met(step):
    """[(value, the two that it may be)] where paths meet."""
    if isinstance(step, If):
        return [(j.var, j.then, j.orelse) for j in step.joins]
    if isinstance(step, (For, While)):
        return [(v, c.init, c.next) for c in step.carries for v in (c.inner, c.outer)]
    return []


def _is_complex(node):
    return isinstance(node, (Const, Var)) and isinstance(fact_of(node), Array) and fact_of(node).kind == "c"


def _decides(step, yielding):
    """Whether a statement makes a dtype that depends on the path; adds values that are Python numbers on some path to
    `yielding`.
    """
    for var, a, b in _met(step):
        if _floating(a) and _floating(b) and np.dtype(a.fact.dtype) != np.dtype(b.fact.dtype):
            return True
        if is_narrow(var.fact) and not var.fact.dims and any(_gives_way(n) or n in yielding for n in (a, b)):
            yielding.add(var)
    if isinstance(step, Let) and isinstance(step.value, Apply) and step.value.function in SHORTENING and any(
            is_narrow(v.fact) for v in step.targets):
        return True                     # NumPy makes an array of doubles from an empty list
    if not isinstance(step, Let) or not any(v in yielding for v in operands(step.value)):
        return False
    function = step.value.function if isinstance(step.value, Apply) else None
    narrow = any(is_narrow(v.fact) and v not in yielding for v in operands(step.value))
    if isinstance(step.value, Var) or function in YIELDING and not narrow or _square(step.value):
        yielding.update(step.targets)
        return False
    return function not in YIELDING and function not in STORING


def _gives_way(node):
    return isinstance(node, (Const, Var)) and isinstance(fact_of(node), Array) and fact_of(node).weak


def _square(value):
    return is_application(value, operator.pow) and isinstance(value.args[1], Const)


def _floating(node):
    return isinstance(node, Var) and isinstance(node.fact, Array) and node.fact.differentiable
