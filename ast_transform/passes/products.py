# SPDX-License-Identifier: Apache-2.0
"""Products that take less work.  Only statements that a transformation made, and that have one reader, are rewritten.

The sum of the rows of a matrix product is the sum of the rows of its first factor, times the second: a product of a
vector and a matrix instead.  The adjoint of a vector that is added to each row, `m` in `(x - m) @ Q`, is such a sum.

>>> from gradscribe.ast_transform.examples import gradient, show
>>> from gradscribe.ast_transform.passes.simplify import drop_dead
>>> text = "def f(m, x, Q):\\n    return np.sum(np.sin((x - m) @ Q))"
>>> made = gradient(text, np.ones(3), np.ones((4, 3)), np.ones((3, 2)))
>>> made.body = drop_dead(made.body, made.result)
>>> made.body = rows_first(made)
>>> print("\\n".join(show(made).splitlines()[-4:]))
    t = np.sum(dz, axis=0)
    t_1 = t @ transpose_Q
    dm = -(t_1)
    return dm

A product with a quotient, `dy * (y / b)`, has one division less if `dy / b` is computed anyway, as in the adjoints of a
division.

>>> text = "def f(a, b):\\n    y = a / b\\n    return np.sum(np.sin(y))"
>>> made = gradient(text, np.ones(3), np.ones(3), wrt=(0, 1))
>>> made.body = drop_dead(made.body, made.result)
>>> made.body = divided_once(made)
>>> print("\\n".join(show(made).splitlines()[-3:]))
    z_1 = da * y
    db = -(z_1)
    return (da, db)
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.alias import parts_of, updates
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    Function,
    Let,
    Var,
    all_reads,
    operands,
    rebuilt,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.described import Unfit

PRODUCTS = {operator.matmul, np.matmul, np.dot}
MULTIPLIED, QUOTIENTS = {operator.mul, np.multiply}, {operator.truediv, np.divide}


def generated(function):
    """({value: operation} that a transformation made, a function `once`).

    once(value, functions): such an operation, if the value has one reader and the operation is one of these
    """
    counts, made = {}, {}
    for v in [*(v for s in function.body for v in all_reads(s)), *operands(function.result)]:
        counts[v] = counts.get(v, 0) + 1
    for s in walk(function.body):
        if isinstance(s, Let) and len(s.targets) == 1 and isinstance(s.value, Apply) and s.origin is not None and \
                s.origin.generated:
            made[s.targets[0]] = s.value

    def once(v, functions):
        value = made.get(v)
        return value if value is not None and counts.get(v) == 1 and _of(value, functions) else None

    return made, once


def divided_once(function: Function) -> list:
    """The body of a function with `(a / q) * p` for `a * (p / q)`, if a / q is computed in the same block."""
    made, once = generated(function)

    def block(body):
        body = [s if isinstance(s, Let) else rebuilt(s, {}, block) for s in body]
        quotients = {s.value.args: s for s in body if isinstance(s, Let) and s.targets[0] in made and
                     _of(s.value, QUOTIENTS) and all(isinstance(a, Var) for a in s.value.args)}
        for s in [s for s in body if quotients and isinstance(s, Let) and s.targets[0] in made and
                  _of(s.value, MULTIPLIED)]:
            for a, v in (s.value.args, s.value.args[::-1]):
                quotient = once(v, QUOTIENTS)
                shared = quotients.get((a, quotient.args[1])) if quotient is not None and isinstance(a, Var) and \
                    isinstance(quotient.args[1], Var) else None
                if shared is None or shared.targets[0] is v or not _same_dtype(shared, quotient.args[0], s):
                    continue
                at, there = body.index(s), body.index(shared)
                if there < at and any(shared.targets[0] in all_reads(t) and (not isinstance(t, Let) or updates(t.value))
                                      for t in body[there:at]):
                    continue                # it is updated before, so it would have to be copied
                if there > at:
                    body.insert(at, body.pop(there))
                s.value = Apply(operator.mul, (shared.targets[0], quotient.args[0]))
                break
        return body
    return block(function.body)


def _same_dtype(shared, factor, product):
    try:
        return types.infer(operator.mul, (shared.targets[0], factor), ()).dtype == product.targets[0].fact.dtype
    except Unfit:
        return False


def numbers_to_rows(function: Function) -> list:
    """The body of a function with `(2 * w)[:, None] * x` for `w[:, None] * (2 * x)`: a scalar is multiplied by the
    smaller array, where it may be combined with other scalars.

    >>> from gradscribe.ast_transform.examples import gradient, show
    >>> made = gradient("def f(x):\\n    return np.sum(np.sqrt(np.sum(x ** 2, axis=1)))", np.ones((3, 2)))
    >>> made.body = numbers_to_rows(made)
    >>> print("\\n".join(show(made).splitlines()[-6:]))
        dsum_z = 1 / z_1
        dsum_z_1 = 2 * dsum_z
        dz = dsum_z_1[(slice(None, None, None), None)]
        z_2 = 2 * x
        dx = dz * x
        return dx
    """
    made, once = generated(function)

    def block(body):
        out = [s if isinstance(s, Let) else rebuilt(s, {}, block) for s in body]
        place = {s.targets[0]: s for s in out if isinstance(s, Let)}
        for s in [s for s in out if isinstance(s, Let) and s.targets[0] in made and _of(s.value, MULTIPLIED)]:
            for view, product in (s.value.args, s.value.args[::-1]):
                shown, scaled = once(view, {operator.getitem}), once(product, MULTIPLIED)
                if shown is None or scaled is None or view not in place or once(
                        shown.args[0], MULTIPLIED | QUOTIENTS) is None or not _adds_axes(shown.args[1]):
                    continue
                number, array = sorted(scaled.args, key=lambda a: not isinstance(a, Const))
                if not isinstance(array, Var) or type(getattr(number, "value", None)) not in (int, float):
                    continue
                small = shown.args[0].like()
                at = out.index(place[view])
                place[view].value = Apply(operator.getitem, (small, shown.args[1]))
                out.insert(at, Let((small,), Apply(operator.mul, (number, shown.args[0])), s.origin))
                s.value = Apply(operator.mul, (view, array))
                break
        return out
    return block(function.body)


def _adds_axes(index):
    """Whether an index selects all of an array, and adds axes."""
    parts = parts_of(index)
    return all(isinstance(p, Const) and (p.value is None or p.value == slice(None)) for p in parts) and any(
        p.value is None for p in parts)


def rows_first(function: Function) -> list:
    """The body of a function with such sums taken before the products."""
    made, once = generated(function)

    def block(body):
        out = []
        for s in body:
            if isinstance(s, Let) and s.targets[0] in made and _sums_rows(s.value):
                product = once(s.value.args[0], PRODUCTS)
                if product is not None and all(_is_matrix(a) for a in product.args) and len(product.args) == 2:
                    a, b = product.args
                    rows = Var("t", Array(a.fact.dtype, a.fact.dims[1:]), TEMPORARY)
                    out.append(Let((rows,), Apply(np.sum, (a,), (("axis", Const(0)),)), s.origin))
                    s = Let(s.targets, Apply(operator.matmul, (rows, b)), s.origin)
            out.append(s if isinstance(s, Let) else rebuilt(s, {}, block))
        return out
    return block(function.body)


def _of(value, functions):
    try:
        return value.function in functions
    except TypeError:
        return False


def _sums_rows(value):
    return _of(value, {np.sum}) and len(value.args) == 1 and [(k, getattr(v, "value", None)) for k, v in value.kwargs] \
        == [("axis", 0)]


def _is_matrix(a):
    return isinstance(a, Var) and type(a.fact) is Array and a.fact.rank == 2 and a.fact.kind in "fc"
