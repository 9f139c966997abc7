# SPDX-License-Identifier: Apache-2.0
"""Whole-batch forms of products and of linear algebra; rules/batched.py says what they are given."""
import numpy as np

from gradscribe.ast_transform.core.rule import ByExample, static
from gradscribe.ast_transform.rules.batching import batch, batch_each, by_example, reduced, rows
from gradscribe.runtime.matrices import cofactors, cofactors_along

# --- products -----------------------------------------------------------------------------------------------

@batch(np.matmul, np.dot)
def matmul(a, b, batched):
    if "b" not in batched:
        if a.ndim > 3 or b.ndim > 2:
            by_example("more than two axes")
        return a @ b
    if "a" not in batched:
        if a.ndim > 2 or b.ndim > 3:
            by_example("more than two axes")
        if b.ndim == 2 and a.ndim == 2:
            return b @ np.transpose(a)
        if b.ndim == 2:
            return b @ a
        return a @ b
    if a.ndim > 3 or b.ndim > 3:
        by_example("more than two axes")
    if a.ndim == 2 and b.ndim == 2:
        return np.sum(a * b, axis=1)
    if a.ndim == 2:
        return (a[:, None, :] @ b)[:, 0, :]
    if b.ndim == 2:
        return (a @ b[:, :, None])[:, :, 0]
    return a @ b


@batch(np.inner)
def inner(a, b, batched):
    if "a" in batched and "b" in batched:
        if a.ndim != 2 or b.ndim != 2:
            by_example("more than one axis")
        return np.sum(a * b, axis=1)
    if "a" in batched:
        if a.ndim != 2 or b.ndim != 1:
            by_example("more than one axis")
        return a @ b
    if b.ndim != 2 or a.ndim != 1:
        by_example("more than one axis")
    return b @ a


@batch(np.outer)
def outer(a, b, batched):
    if "a" not in batched:
        if a.ndim != 1 or b.ndim != 2:
            by_example("np.outer of more than one axis")
        return a[:, None] * b[:, None, :]
    if "b" not in batched:
        if a.ndim != 2 or b.ndim != 1:
            by_example("np.outer of more than one axis")
        return a[:, :, None] * b
    if a.ndim != 2 or b.ndim != 2:
        by_example("np.outer of more than one axis")
    return a[:, :, None] * b[:, None, :]


@batch(np.cross)
def cross(a, b, batched):
    if "a" in batched and "b" in batched and a.ndim != b.ndim:
        by_example("ranks that differ")
    return np.cross(a, b)


@static
def with_batch(subscripts, flags):
    """The subscripts with one more letter in the operands that have the batch, and in the result."""
    if not isinstance(subscripts, str):
        raise ByExample("subscripts that are no text")
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    letter = next(c for c in "nbzyxwvutsrqponmlkjihgfedcaABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text)
    if not arrow:
        if "..." in inputs:
            raise ByExample("an ellipsis without an arrow")
        letters = inputs.replace(",", "")
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = inputs.split(",")
    return ",".join(letter + t if f else t for t, f in zip(terms, flags)) + "->" + letter + output


@batch(np.einsum)
def einsum(subscripts, *operands, batched, flags, optimize=False):
    if optimize:
        return np.einsum(with_batch(subscripts, flags), *operands, optimize=optimize)
    return np.einsum(with_batch(subscripts, flags), *operands)


# --- linear algebra -----------------------------------------------------------------------------------------

@batch_each(np.linalg.inv, np.linalg.pinv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh,
            np.linalg.eigvalsh, np.linalg.eig, np.linalg.eigvals, np.linalg.svdvals, cofactors)
def of_matrices(function):
    def part(first, batched):
        return function(first)
    return part


@batch(cofactors_along)
def cofactors_along_(a, b, batched):
    return cofactors_along(a, b)


@batch(np.linalg.svd)
def svd(a, batched, full_matrices=True, compute_uv=True):
    return np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


@batch(np.linalg.qr)
def qr(a, batched, mode="reduced"):
    if mode != "reduced":
        by_example("a mode other than reduced")
    return np.linalg.qr(a)


@batch(np.linalg.solve)
def solve(a, b, batched):
    if "b" not in batched:
        if b.ndim > 2 or a.ndim > 3:
            by_example("more than two axes")
        return np.linalg.solve(a, b)
    if "a" not in batched:
        if b.ndim > 3 or a.ndim > 2:
            by_example("more than two axes")
        if b.ndim == 2:
            return np.transpose(np.linalg.solve(a, np.transpose(b)))
        return np.linalg.solve(a, b)
    if b.ndim > 3 or a.ndim > 3:
        by_example("more than two axes")
    if b.ndim == 2:
        return np.linalg.solve(a, b[:, :, None])[:, :, 0]
    return np.linalg.solve(a, b)


@batch(np.linalg.norm)
def norm(x, batched, ord=None, axis=None, keepdims=False):
    if axis is None and x.ndim > 3:
        if ord is not None or keepdims:
            by_example("more than two axes")
        return np.linalg.norm(rows(x), axis=1)
    return np.linalg.norm(x, ord=ord, axis=reduced(axis, x.ndim), keepdims=keepdims)
