# SPDX-License-Identifier: Apache-2.0
"""Systems with a triangular matrix are solved by substitution instead of elimination, in compiled code.

`np.linalg.solve(L, y)` factors L, even if it is a Cholesky factor.  Rule records declare which results are triangular;
a solve with one of these, or with its transpose, becomes a substitution.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(K, y):\\n    L = np.linalg.cholesky(K)\\n    return np.linalg.solve(L.T, np.linalg.solve(L, y))"
>>> print(show(by_substitution(form(text, np.eye(9), np.ones(9)))))
f(K, y):
    L = np.linalg.cholesky(K)
    transpose_L = np.transpose(L)
    solve_L = solved_by_triangle(L, y, True, False)
    solve_transpose_L = solved_by_triangle(L, solve_L, True, True)
    return solve_transpose_L

Source: G. H. Golub and C. F. Van Loan, Matrix Computations (2013), 3.1.
"""
import numpy as np

from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import Apply, Const, Function, Let, Var, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.factorisations import is_real, is_transposition


def by_substitution(function: Function) -> Function:
    """The function, changed in place, with solves by substitution where the records say that a matrix is triangular."""
    known: dict[Var, str]
    known, turned = {}, {}              # {matrix: "lower" or "upper"}, {transpose: its matrix}
    for step in walk(function.body):
        if not isinstance(step, Let) or not isinstance(step.value, Apply) or not step.value.args:
            continue
        value, matrix = step.value, step.value.args[0]
        if isinstance(matrix, Var) and isinstance(matrix.fact, Array) and not value.kwargs and is_transposition(value):
            turned[step.targets[0]] = matrix
            continue
        known.update((v, side) for v, side in zip(step.targets, triangles_of(value)) if side is not None)
        across = matrix in turned
        matrix = turned[matrix] if across else matrix
        made_by = option(value, "by_triangle")
        if made_by is None or matrix not in known or len(value.args) != 2 or value.kwargs:
            continue
        right = value.args[1]
        if matrix.fact.rank == 2 and is_real(matrix) and is_real(right) and \
                np.dtype(matrix.fact.dtype) == np.dtype(right.fact.dtype):
            given = (matrix, right, Const(known[matrix] == "lower"), Const(across))
            step.value = Apply(made_by, given, (), value.origin)
    return function


def triangles_of(value):
    """For each result of an operation, the triangle of it that is not 0: "lower", "upper", or None if not known."""
    of = option(value, "triangle")
    if of is None or not all(isinstance(a, Const) for a in (*value.args[1:], *dict(value.kwargs).values())):
        return ()
    said = of(*(a.value for a in value.args[1:]), **{k: a.value for k, a in value.kwargs})
    return said if isinstance(said, tuple) else (said,)


def option(value, name):
    """An option of the record of an operation, or None."""
    record = record_of(value.function)
    return record.options.get(name) if record is not None else None
