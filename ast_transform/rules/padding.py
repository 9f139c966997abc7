# SPDX-License-Identifier: Apache-2.0
"""np.pad: an array surrounded by constants, copies of its entries, or numbers computed from them."""
import numpy as np

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.batching import only
from gradscribe.ast_transform.rules.shapes import along, is_sequence, written_out
from gradscribe.runtime.indexing import scatter_add


@static
def pad_pairs(pad_width, ndim):
    """The pairs (before, after) of all axes."""
    if not is_sequence(pad_width):
        return ((pad_width, pad_width),) * ndim
    if all(not is_sequence(p) for p in pad_width):
        return (tuple(pad_width) * (2 // len(pad_width)),) * ndim
    pairs = tuple(tuple(p) * (2 // len(p)) for p in pad_width)
    return pairs * ndim if len(pairs) == 1 else pairs


@static
def unpadded(pad_width, ndim):
    """The index of the original array in the padded one: `[1:-1]`."""
    def inside(before, after):
        return slice(before or None, -after or None)

    pairs = pad_pairs(pad_width, ndim)
    written_out((n for pair in pairs for n in pair), "the widths of np.pad")
    index = [inside(*pair) for pair in pairs]
    while len(index) > 1 and index[-1] == slice(None):
        index.pop()
    return index[0] if len(index) == 1 else tuple(index)


@static
def gathers(mode):
    """Whether in this mode each entry of the result is an entry of x."""
    return mode in ("edge", "reflect", "symmetric", "wrap")


@static
def known_mode(mode, reflect_type="even"):
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"np.pad in mode {mode!r} has no derivative rule", "Join pieces with np.concatenate.")


def sources(array, pairs, mode, axis):
    """An open grid of indices: which entry of the array each entry of the result is."""
    if axis == array.ndim:
        return ()
    line = np.pad(np.arange(array.shape[axis]), pairs[axis], mode=mode)
    if array.ndim == 1:
        return (line,)
    return (line[open_axis(array.ndim, axis)],) + sources(array, pairs, mode, axis + 1)


@static
def open_axis(ndim, axis):
    return tuple(slice(None) if i == axis else None for i in range(ndim))


@static
def by_pieces(bound):
    """Whether np.pad in this mode is written in terms of other functions."""
    mode = getattr(bound.get("mode"), "value", "constant")
    return mode in ("linear_ramp", "maximum", "mean", "median", "minimum")


def side(values, axis, end):
    """The number for one end of one axis, from an argument of np.pad for all ends."""
    if not is_sequence(values):
        return values
    if not is_sequence(values[0]):
        return values[end] if len(values) == 2 else values[0]
    pair = values[axis] if len(values) > 1 else values[0]
    return pair[end] if len(pair) == 2 else pair[0]


def statistic(part, mode, axis):
    if mode == "maximum":
        return np.max(part, axis=axis, keepdims=True)
    if mode == "minimum":
        return np.min(part, axis=axis, keepdims=True)
    if mode == "median":
        return np.median(part, axis=axis, keepdims=True)
    return np.mean(part, axis=axis, keepdims=True)


def piece(x, width, end, mode, axis, values):
    """The padding before (end 0) or after the array along an axis."""
    if mode == "linear_ramp":
        edge = x[along(axis, slice(0, 1) if end == 0 else slice(-1, None))]
        ramp = np.arange(width) / width if end == 0 else np.arange(width)[::-1] / width
        return values + (edge - values) * ramp[open_axis(x.ndim, axis)]
    part = x if values is None else x[along(axis, slice(0, values) if end == 0 else slice(-values, None))]
    return np.repeat(statistic(part, mode, axis), width, axis=axis)


def padded(x, pairs, mode, axis, values):
    """The array padded one axis after the other, as in NumPy."""
    if axis == x.ndim:
        return x
    before, after = pairs[axis]
    whole = x
    if before > 0 and after > 0:
        whole = np.concatenate((piece(x, before, 0, mode, axis, side(values, axis, 0)), x,
                                piece(x, after, 1, mode, axis, side(values, axis, 1))), axis=axis)
    elif before > 0:
        whole = np.concatenate((piece(x, before, 0, mode, axis, side(values, axis, 0)), x), axis=axis)
    elif after > 0:
        whole = np.concatenate((x, piece(x, after, 1, mode, axis, side(values, axis, 1))), axis=axis)
    return padded(whole, pairs, mode, axis + 1, values)


@static
def floating_only(x, mode):
    if x.dtype.kind not in "fc":
        raise ValueError(f"np.pad of whole numbers in mode {mode!r} rounds, which has no form here",
                         "Convert before: x.astype(float).")


@static
def paddings(pad_width, rank):
    """The pairs of all axes, with no padding of the batch axis."""
    width = np.asarray(pad_width)
    pairs = np.broadcast_to(width, (rank - 1, 2)).tolist()
    return ((0, 0), *map(tuple, pairs))


@general(np.pad, "array", "constant_values", samples=samples.pads, wider_for=by_pieces, memory=FRESH, cell=True)
class pad:
    def primal(array, pad_width, mode="constant", *, constant_values=0):
        if mode == "constant":
            return np.pad(array, pad_width, constant_values=constant_values)
        return np.pad(array, pad_width, mode=mode)

    def vjp_array(dy, array, pad_width, mode="constant"):
        known_mode(mode)
        if gathers(mode):
            index = sources(array, pad_pairs(pad_width, array.ndim), mode, 0)
            return scatter_add(array, index[0] if array.ndim == 1 else index, dy)
        return dy[unpadded(pad_width, array.ndim)]

    def jvp_array(array_dot, pad_width, mode="constant"):
        known_mode(mode)
        if gathers(mode):
            return np.pad(array_dot, pad_width, mode=mode)
        return np.pad(array_dot, pad_width)

    def vjp_constant_values(dy, array, pad_width, constant_values):
        one_number(constant_values)
        return np.sum(dy) - np.sum(dy[unpadded(pad_width, array.ndim)])

    def jvp_constant_values(constant_values_dot, array, pad_width, constant_values):
        one_number(constant_values)
        return np.pad(np.zeros_like(array), pad_width, constant_values=constant_values_dot)

    def wider(array, pad_width, mode="constant", *, stat_length=None, end_values=0):
        floating_only(array, mode)
        pairs = pad_pairs(pad_width, array.ndim)
        return padded(array, pairs, mode, 0, end_values if mode == "linear_ramp" else stat_length)

    def batch(array, pad_width, batched, mode="constant", constant_values=0):
        only(batched, "array")
        if mode != "constant":
            return np.pad(array, paddings(pad_width, array.ndim), mode=mode)
        return np.pad(array, paddings(pad_width, array.ndim), constant_values=constant_values)


@static
def one_number(values):
    if is_sequence(values) or getattr(values, "ndim", 0) > 0:
        raise ValueError("np.pad has a derivative rule in one number for constant_values", "Pad axis by axis.")
