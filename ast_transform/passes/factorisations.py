# SPDX-License-Identifier: Apache-2.0
"""One LU factorisation for everything that is solved with a matrix, in compiled code.

`x = solve(A, b)` and the gradient's `solve(A.T, dx)` each factor A, and so do determinants and each iteration of a loop
that solves with A.  This pass factors A once, where it is defined; its readers become two triangular solves, with A or
with its transpose.  It is common subexpression elimination and loop-invariant code motion for a part of the operations.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(A, b):\\n    x = np.linalg.solve(A, b)\\n    return x + np.linalg.solve(A.T, x)"
>>> print(show(factored_once(form(text, np.eye(9), np.ones(9)))))
f(A, b):
    factors_A, order_A = factors(A)
    x = solved_by(A, factors_A, order_A, b)
    transpose_A = np.transpose(A)
    solve_transpose_A = solved_across(A, factors_A, order_A, x)
    z = x + solve_transpose_A
    return z

Source: G. H. Golub and C. F. Van Loan, Matrix Computations (2013), 3.4.9.
"""
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Var,
    While,
    blocks,
    made,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.runtime.matrices import factors


def factored_once(function: Function) -> Function:
    """The function, changed in place: matrices that several statements, or iterations, solve with are factored once."""
    finder = Finder()
    finder.block(function.body, (), [p.value for p in function.params])
    for matrix, uses in finder.uses.items():
        if sum(use.times for use in uses) < 2:
            continue
        block, first = finder.home[matrix], min(uses, key=lambda use: use.position).within
        lu = Var(f"factors_{matrix.hint}", Array(matrix.fact.dtype, matrix.fact.dims), TEMPORARY)
        order = Var(f"order_{matrix.hint}", Array(np.dtype(np.int32), matrix.fact.dims[:1]), TEMPORARY)
        made = Let((lu, order), Apply(factors, (matrix,)), first.origin and first.origin.made_by(0))
        block.insert(next(k for k, s in enumerate(block) if s is first), made)
        for use in uses:
            value = use.step.value
            given = (matrix, lu, order, *value.args[1:])
            use.step.value = Apply(by_factors(value)[use.across], given, (), value.origin)
    return function


class Use(NamedTuple):
    """A statement that solves with a matrix, or takes its inverse or determinant."""
    step: Let
    across: bool                    # whether with its transpose
    times: int                      # how often it certainly runs: 2 in a loop, 0 in an arm of a branch
    within: Any                     # the statement of the block where the matrix is defined that it is, or is inside of
    position: int                   # the place of that statement in the block


class Finder:
    """uses: {matrix: the statements that solve with it}; home: {value: the block where it is defined}."""

    def __init__(self):
        self.home, self.uses, self.turned = {}, {}, {}

    def block(self, block, path, entered):
        for v in entered:
            if isinstance(v, Var):
                self.home[v] = block
        for position, step in enumerate(block):
            here = (*path, (block, position, step))
            if isinstance(step, Let):
                self.statement(step, here)
            for inner in blocks(step):
                loop = [c.inner for c in step.carries] if isinstance(step, (For, While)) else []
                if isinstance(step, For):
                    loop += [step.index, *(v for v, _ in step.items)]
                self.block(inner, here, loop)
            for v in made(step):
                self.home[v] = block

    def statement(self, step, path):
        value = step.value
        if not isinstance(value, Apply) or value.kwargs or not value.args:
            return
        matrix = value.args[0]
        if not isinstance(matrix, Var) or not isinstance(matrix.fact, Array):
            return
        if is_transposition(value):
            self.turned[step.targets[0]] = matrix
            return
        if by_factors(value) is None or matrix.fact.rank != 2 or not all(map(is_real, value.args)) or len(
                {np.dtype(v.fact.dtype) for v in value.args}) > 1:
            return
        across = matrix in self.turned and by_factors(value)[1] is not None
        matrix = self.turned[matrix] if across else matrix
        home = self.home.get(matrix)
        at = next((k for k, (block, _, _) in enumerate(path) if block is home), None)
        if at is None:
            return
        around = [s for _, _, s in path[at:-1]]
        times = 0 if any(isinstance(s, If) for s in around) else 2 if around else 1
        _, position, within = path[at]
        self.uses.setdefault(matrix, []).append(Use(step, across, times, within, position))


def is_real(v: Any) -> bool:
    """Whether an operand is a matrix or a vector of float32 or float64, which LAPACK takes without a copy."""
    return isinstance(v, Var) and type(v.fact) is Array and v.fact.rank in (1, 2) and np.dtype(v.fact.dtype) in (
        np.float32, np.float64)


def by_factors(value):
    """(the function that computes an operation from the factors of its matrix, the one for its transpose), or None."""
    record = record_of(value.function)
    return record.options.get("by_factors") if record is not None else None


def is_transposition(value: Apply) -> bool:
    """Whether an operation is the transpose of a matrix."""
    record, matrix = record_of(value.function), np.empty((2, 3))
    if record is None or record.options.get("full_rank") != "moves" or value.args[0].fact.rank != 2 or not all(
            isinstance(a, Const) for a in value.args[1:]):
        return False
    shown = value.function(matrix, *(a.value for a in value.args[1:]))
    return shown.shape == (3, 2) and shown.strides == matrix.strides[::-1]
