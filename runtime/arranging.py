# SPDX-License-Identifier: Apache-2.0
"""Functions for compiled code that rearrange entries: sets, insertions, repetitions, bits.

As in compiled.py, each function is also plain Python; those for lines take two axes, with the lines along the last.
"""
import numpy as np

from gradscribe.runtime.compiled import argsort_lines, whole

# --- order and sets ---------------------------------------------------------------------------------------------------

def ordered_after(order, x):
    """An order of each line, sorted further by x; the sort is stable."""
    moved = np.empty_like(x)
    for line in range(x.shape[0]):
        for i in range(x.shape[1]):
            moved[line, i] = x[line, order[line, i]]
    later, out = argsort_lines(moved), np.empty_like(order)
    for line in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[line, i] = order[line, later[line, i]]
    return out


@whole
def complex_order(x):
    """The order of each line of complex numbers: by real part, then by imaginary part; those with NaN last."""
    real, imag, missing = np.empty(x.shape), np.empty(x.shape), np.empty(x.shape)
    for line in range(x.shape[0]):
        for i in range(x.shape[1]):
            real[line, i], imag[line, i] = x[line, i].real, x[line, i].imag
            missing[line, i] = 2 * (real[line, i] != real[line, i]) + (imag[line, i] != imag[line, i])
    return ordered_after(ordered_after(argsort_lines(imag), real), missing)


@whole
def taken_lines(x, order):
    out = np.empty_like(x)
    for line in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[line, i] = x[line, order[line, i]]
    return out


@whole
def row_order(x):
    """The lexicographic order of the rows of a matrix."""
    n, column = x.shape[0], np.empty((1, x.shape[0]), x.dtype)
    order = np.empty((1, n), np.int64)
    for i in range(n):
        order[0, i] = i
    for k in range(x.shape[1] - 1, -1, -1):
        for i in range(n):
            column[0, i] = x[i, k]
        order = ordered_after(order, column)
    return order


@whole
def distinct_rows(x, order):
    """As distinct, for the rows of a matrix."""
    n = x.shape[0]
    first, inverse, counts, k = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64), -1
    for i in range(n):
        equal = i > 0
        for j in range(x.shape[1]):
            if i > 0 and x[order[0, i], j] != x[order[0, i - 1], j]:
                equal = False
        if not equal:
            k += 1
            first[k] = order[0, i]
        inverse[order[0, i]] = k
        counts[k] += 1
    return first[:k + 1].copy(), inverse, counts[:k + 1].copy()


@whole
def distinct(x, order, equal_nan):
    """For a vector: the first index of each distinct entry, the number of each entry among these, and their counts."""
    n = x.shape[0]
    first, inverse, counts, k = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64), -1
    for i in range(n):
        here = x[order[0, i]]
        last = x[order[0, i - 1]] if i > 0 else here
        if i == 0 or not (here == last or (equal_nan and here != here and last != last)):
            k += 1
            first[k] = order[0, i]
        inverse[order[0, i]] = k
        counts[k] += 1
    return first[:k + 1].copy(), inverse, counts[:k + 1].copy()


# --- indices ----------------------------------------------------------------------------------------------------------

@whole
def inserted_places(n, where, count):
    """The entries after `count` insertions into n: an old one by its index, a new one by n plus its number."""
    out, order = np.full(n + count, -1), argsort_lines(where.reshape((1, where.shape[0])))
    single = where.shape[0] == 1
    for k in range(count):
        j = 0 if single else order[0, k]
        place = where[j] + n if where[j] < 0 else where[j]
        if place < 0 or place > n:
            raise IndexError("index is out of bounds for its axis")
        out[place + k] = n + (k if single else j)
    old = 0
    for i in range(n + count):
        if out[i] < 0:
            out[i] = old
            old += 1
    return out


@whole
def repeated_places(counts, n):
    """Each index of an axis repeated by its count; a single count is for all."""
    if counts.shape[0] != 1 and counts.shape[0] != n:
        raise ValueError("operands could not be broadcast together")
    total = 0
    for i in range(n):
        count = counts[i if counts.shape[0] > 1 else 0]
        if count < 0:
            raise ValueError("repeats may not contain negative values.")
        total += count
    out, k = np.empty(total, np.int64), 0
    for i in range(n):
        for _ in range(counts[i if counts.shape[0] > 1 else 0]):
            out[k] = i
            k += 1
    return out


def reflected(k, n):
    """The index that k is reflected to, without repeating the ends of the axis."""
    if n == 1:
        return 0
    k %= 2 * n - 2
    return k if k < n else 2 * n - 2 - k


def mirrored(k, n):
    """The same, with the ends repeated."""
    k %= 2 * n
    return k if k < n else 2 * n - 1 - k


# --- bits -------------------------------------------------------------------------------------------------------------

def bit_count(x):
    count, x = 0, abs(x)
    while x != 0:
        count += x & 1
        x >>= 1
        if count > 64:
            return 1                    # the lowest number, whose absolute value overflows
    return count


@whole
def pack_lines(x, big):
    lines, n = x.shape
    out = np.zeros((lines, (n + 7) // 8), np.uint8)
    for line in range(lines):
        for i in range(n):
            if x[line, i]:
                out[line, i // 8] |= np.uint8(1 << (7 - i % 8 if big else i % 8))
    return out


@whole
def unpack_lines(x, count, big):
    lines, n = x.shape
    out = np.zeros((lines, count), np.uint8)
    for line in range(lines):
        for i in range(min(count, 8 * n)):
            out[line, i] = (x[line, i // 8] >> (7 - i % 8 if big else i % 8)) & 1
    return out


# --- running sums -----------------------------------------------------------------------------------------------------

@whole
def running_sum(terms):
    """The cumulative sums of terms, in order.

    >>> running_sum(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 7.])
    """
    out = np.empty_like(terms)
    for i in range(terms.size):
        out[i] = terms[i] if i == 0 else out[i - 1] + terms[i]
    return out


@whole
def running_sum_back(terms):
    """The cumulative sums from the end: of each term and those after it.

    >>> running_sum_back(np.array([1.0, 2.0, 4.0]))
    array([7., 6., 4.])
    """
    out = np.empty_like(terms)
    for i in range(terms.size - 1, -1, -1):
        out[i] = terms[i] if i == terms.size - 1 else out[i + 1] + terms[i]
    return out


@whole
def running_product(terms):
    out = np.empty_like(terms)
    for i in range(terms.size):
        out[i] = terms[i] if i == 0 else out[i - 1] * terms[i]
    return out
