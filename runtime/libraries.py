# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that CuPy and NumPy have under one name, as compiled code calls them: stacks of matrices, lines.

The first argument is the package.
"""


def _solution(xp, a, b):
    return xp.linalg.solve(a, b)


def _sorted(xp, lines):
    return xp.sort(lines, axis=-1)


def _order(xp, lines):
    return xp.argsort(lines, axis=-1, kind="stable") if xp.__name__ == "numpy" else xp.argsort(lines, axis=-1)


FUNCTIONS = {
    "solution": _solution,
    "solution_of_real": _solution,
    "inverse": lambda xp, a: xp.linalg.inv(a),
    "inverse_of_real": lambda xp, a: xp.linalg.inv(a),
    "determinant": lambda xp, a: xp.linalg.det(a),
    "determinant_of_real": lambda xp, a: xp.linalg.det(a),
    "cholesky": lambda xp, a: xp.linalg.cholesky(a),
    "cholesky_of_real": lambda xp, a: xp.linalg.cholesky(a),
    "sort_lines": _sorted,
    "argsort_lines": _order,
}
