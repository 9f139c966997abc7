# SPDX-License-Identifier: Apache-2.0
"""The control flow functions of jax.lax, written with Python's if, for and while.

They are for programs that come from JAX; new programs can use `if`, `for` and `while` directly.  Emitted source has
the branch or the loop itself, without a call of these functions.
"""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradscribe.shapes import eval_shape
from gradscribe.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten


def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any) -> Any:
    """true_fun(*operands) if pred holds, else false_fun(*operands); the other is not called.

    pred: a scalar; TypeError for anything else.

    >>> cond(True, lambda x: 2 * x, lambda x: -x, 3.0)
    6.0
    """
    if pred is None or isinstance(pred, (str, list, tuple, dict)):
        raise TypeError("the predicate of cond must be a number or a truth value")
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """branches[index](*operands); an index out of bounds selects the first or the last branch.

    Raises ValueError if there are no branches.

    >>> switch(1, [lambda x: x, lambda x: x ** 2, lambda x: x ** 3], 3.0), switch(7, [abs, float], -1)
    (9.0, -1.0)
    """
    if len(branches) == 0:
        raise ValueError("switch needs a branch at least")
    return _one_of(index, list(branches), operands, 0)


def _one_of(index, branches, operands, k):
    if k == len(branches) - 1:
        return branches[k](*operands)
    if index <= k:
        return branches[k](*operands)
    return _one_of(index, branches, operands, k + 1)


def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """val = body_fun(val) while cond_fun(val) holds, starting from init_val.

    val may be a tree.  Reverse mode differentiates the loop for any number of passes.

    >>> while_loop(lambda v: v < 100, lambda v: 2 * v, 3)
    192
    """
    val = init_val
    while cond_fun(val):
        val = body_fun(val)
    return val


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None) -> Any:
    """val = body_fun(i, val) for i from lower to upper - 1, starting from init_val.

    The bounds may be run-time values, in reverse mode too.  unroll has no effect: the compiler decides.

    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    10
    """
    val = init_val
    for i in range(lower, upper):
        val = body_fun(i, val)
    return val


def _passes(leaves, length):
    """The number of passes of a scan."""
    for leaf in leaves:
        if np.ndim(leaf) == 0:
            raise ValueError("a scan goes over the first axis of arrays, and a number has none")
    lengths = [len(leaf) for leaf in leaves]
    if length is None and len(lengths) == 0:
        raise ValueError("a scan over nothing needs its length")
    if length is None:
        return lengths[0]
    return length


def _agree(leaves, n):
    for leaf in leaves:
        if len(leaf) != n:
            raise ValueError(f"what a scan goes over has {len(leaf)} rows in one place and {n} in another")


def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: int | bool = 1) -> tuple[Any, Any]:
    """A loop that carries a value and makes a row in each pass: carry, y = f(carry, x).

    xs: a tree of arrays with first axes of equal length; pass k gets their rows k.  Without xs, `length` is the number
    of passes.  reverse: from the last row to the first; row k of ys still belongs to row k of xs.  Returns the last
    carry, and the tree of the ys stacked along a new first axis.  unroll has no effect.

    Raises ValueError if the lengths do not agree, or if there is no first axis.

    >>> scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 1., 3.]))
    """
    inputs = tree_leaves(xs)
    n = _passes(inputs, length)
    _agree(inputs, n)
    carry, rows = init, []
    for k in range(n):
        i = n - 1 - k if reverse else k
        carry, y = f(carry, tree_map(lambda leaf, i=i: leaf[i], xs))
        leaves, structure = tree_flatten(y)
        rows.append(tuple(leaves))
    try:
        ys = tree_unflatten(structure, [np.stack(column) for column in zip(*rows)])
    except NameError:                   # the loop had no passes
        ys = _no_rows(f, init, xs)
    if reverse:
        ys = tree_map(lambda leaf: leaf[::-1], ys)
    return carry, ys


def _no_rows(f, init, xs):
    """The ys of a scan over no rows."""
    row = tree_map(lambda leaf: np.zeros(leaf.shape[1:], leaf.dtype)[()], xs)
    return tree_map(lambda y: np.zeros((0, *y.shape), y.dtype), eval_shape(f, init, row)[1])


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """f of each row of a tree of arrays, one after another; results are stacked.

    batch_size has no effect; gs.vmap(f) computes all rows at once.

    >>> map(lambda x: x ** 2, np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    """
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of an associative operation along an axis, in a logarithmic number of steps.

    fn(a, b) combines two trees of arrays elementwise; elems is such a tree.  reverse: suffixes, with calls as
    fn(later, earlier).  Raises ValueError if the lengths along the axis do not agree.

    Spans of 1, 2, 4 ... values are combined: W. D. Hillis, G. L. Steele, Data Parallel Algorithms, CACM 29 (1986).

    >>> associative_scan(np.add, np.array([1, 2, 3, 4]))
    array([ 1,  3,  6, 10])
    """
    leaves, structure = tree_flatten(elems)
    rows = [leaf if axis == 0 else np.moveaxis(leaf, axis, 0) for leaf in leaves]
    if reverse:
        rows = [row[::-1] for row in rows]
    n = len(rows[0])
    _agree(rows, n)
    span = 1
    while span < n:
        joined = tree_leaves(fn(tree_unflatten(structure, [_along(row[:-span], axis) for row in rows]),
                                tree_unflatten(structure, [_along(row[span:], axis) for row in rows])))
        rows = [np.concatenate([row[:span], new if axis == 0 else np.moveaxis(new, axis, 0)])
                for row, new in zip(rows, joined)]
        span = 2 * span
    if reverse:
        rows = [row[::-1] for row in rows]
    return tree_unflatten(structure, [_along(row, axis) for row in rows])


def _along(row, axis):
    return row if axis == 0 else np.moveaxis(row, 0, axis)
