# SPDX-License-Identifier: Apache-2.0
"""Collectives over several named axes at once, built from those over one; the first axis varies slowest.

They are ordinary Python, inlined in place of a call.
"""
import numpy as np

from gradscribe.runtime import collectives as named


def split_at(x, axis, lengths):
    """x with an axis split into axes of these lengths."""
    return np.reshape(x, (*x.shape[:axis], *lengths, *x.shape[axis + 1:]))


def merged_at(x, axis, count):
    """x with `count` axes merged into one."""
    length = 1
    for k in range(axis, axis + count):
        length = length * x.shape[k]
    return np.reshape(x, (*x.shape[:axis], length, *x.shape[axis + count:]))


def all_gather(x, names, axis, tiled):
    for name in names[::-1]:
        x = named.all_gather(x, name, axis=axis, tiled=tiled)
    return x if tiled else merged_at(x, axis, len(names))


def psum_scatter(x, names, axis, tiled):
    if not tiled:
        x = split_at(x, axis, [named.axis_size(name) for name in names])
    for name in names:
        x = named.psum_scatter(x, name, scatter_dimension=axis, tiled=tiled)
    return x


def all_to_all(x, names, split, concat, tiled):
    sizes = [named.axis_size(name) for name in names]
    if tiled:
        count = 1
        for size in sizes:
            count = count * size
        parts = split_at(x, split, [count, x.shape[split] // count])
        return merged_at(np.moveaxis(all_to_all(parts, names, split, 0, False), 0, concat), concat, 2)
    x = split_at(x, split, sizes)
    for k, name in enumerate(names):
        x = named.all_to_all(x, name, split + k, split + k)
    return np.moveaxis(merged_at(x, split, len(names)), split, concat)


SEVERAL = {
    named.all_gather: (all_gather, ("axis", "tiled")),
    named.psum_scatter: (psum_scatter, ("scatter_dimension", "tiled")),
    named.all_to_all: (all_to_all, ("split_axis", "concat_axis", "tiled")),
}
