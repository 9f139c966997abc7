# SPDX-License-Identifier: Apache-2.0
"""The sum of a product's rows is the sum of the rows of its first factor, times the second: a matrix product less.

The adjoint of what was added to every row, `m` in `(x - m) @ Q.T`, is such a sum.  Only statements that a
transformation made are rewritten, where nothing else reads the product.

>>> from gradscribe.ast_transform.examples import gradient, show
>>> text = "def f(m, x, Q):\\n    return np.sum(np.sin((x - m) @ Q))"
>>> made = gradient(text, np.ones(3), np.ones((4, 3)), np.ones((3, 2)))
>>> made.body = rows_first(made)
>>> print("\\n".join(show(made).splitlines()[-4:]))
    t = np.sum(dz, axis=0)
    t_1 = t @ transpose_Q
    dm = -(t_1)
    return dm
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, Apply, Const, Let, Var, all_reads, operands, rebuilt, walk
from gradscribe.ast_transform.core.kinds import Array

PRODUCTS = {operator.matmul, np.matmul, np.dot}
NEGATIVES = {operator.neg, np.negative}


def rows_first(function):
    """The body of a function with such sums taken before the products."""
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

    def block(body):
        out = []
        for s in body:
            if isinstance(s, Let) and s.targets[0] in made and _sums_rows(s.value):
                v, negative = s.value.args[0], False
                if once(v, NEGATIVES):
                    v, negative = made[v].args[0], True
                product = once(v, PRODUCTS)
                if product is not None and all(_is_matrix(a) for a in product.args) and len(product.args) == 2:
                    a, b = product.args
                    fact = s.targets[0].fact
                    rows = Var("t", Array(a.fact.dtype, a.fact.dims[1:]), TEMPORARY)
                    out.append(Let((rows,), Apply(np.sum, (a,), (("axis", Const(0)),)), s.origin))
                    value = Apply(operator.matmul, (rows, b))
                    if negative:
                        t = Var("t", Array(fact.dtype, fact.dims), TEMPORARY)
                        out.append(Let((t,), value, s.origin))
                        value = Apply(operator.neg, (t,))
                    s = Let(s.targets, value, s.origin)
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
