# SPDX-License-Identifier: Apache-2.0
"""Helpers for reductions with where= and dtype=, used by reductions.py."""
import numpy as np

from gradscribe.ast_transform.core.rule import static


def converted(x, dtype):
    if dtype is None:
        return x
    return x.astype(dtype)


def in_double(x):
    """Numbers converted to double precision; None stays None."""
    if x is None or x.dtype == float:
        return x
    return x.astype(float)


def selected(x, where, rest, dtype=None):
    """x with a neutral value for the entries that `where` excludes."""
    x = converted(x, dtype)
    return x if everywhere(where) else np.where(where, x, rest)


@static
def everywhere(where):
    return where is True


@static
def same_rank(x, where):
    if where is not True and getattr(where, "ndim", 0) > x.ndim:
        raise ValueError("where= has more axes than the array", "Broadcast the array before.")


@static
def lowest(dtype):
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else int(np.iinfo(dtype).min)


@static
def highest(dtype):
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else int(np.iinfo(dtype).max)


@static
def needs_initial(where, initial, what):
    if where is not True and initial is None:
        raise ValueError(f"{what} with where= needs initial=", "Give a number that is never chosen: initial=-np.inf.")
    return initial is not None


def chosen_count(x, axis, keepdims, where):
    """The number of entries that `where` selects."""
    return np.sum(np.broadcast_to(where, x.shape), axis=axis, keepdims=keepdims)


def selected_mean(x, axis, keepdims, where):
    return np.sum(np.where(where, x, 0), axis=axis, keepdims=keepdims) / chosen_count(x, axis, keepdims, where)


def selected_var(x, axis, ddof, keepdims, where, mean):
    middle = selected_mean(x, axis, True, where) if mean is None else mean
    gap = np.where(where, x - middle, 0)
    return np.sum(squared_size(gap), axis=axis, keepdims=keepdims) / (chosen_count(x, axis, keepdims, where) - ddof)


def squared_size(x):
    if x.dtype.kind == "c":
        return np.real(x * np.conj(x))
    return x * x
