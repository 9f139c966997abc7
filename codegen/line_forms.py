# SPDX-License-Identifier: Apache-2.0
"""Lowering of functions that work on the lines along one axis: sorting, quantiles and Fourier transforms."""
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import DTypeLike

from gradscribe.ast_transform.core.form import Pack
from gradscribe.ast_transform.rules.fft import is_whole, transformed_axes
from gradscribe.codegen.array_forms import axes_of, flat, shaped
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, quoted
from gradscribe.codegen.lowered import ONE, Dim, Lazy, Lowering, is_none, lazily, product_of
from gradscribe.codegen.product_forms import grouped
from gradscribe.codegen.shape_forms import inserted, permuted

# --- sorting ----------------------------------------------------------------------------------------------------------

def lines(lowering: Lowering, x: Lazy, axis: int) -> tuple[Lazy, Callable[..., Lazy]]:
    """(x as a matrix of its lines along one axis, the function that moves a result's lines back to that axis)."""
    order = [k for k in range(x.rank) if k != axis] + [axis]
    moved = permuted(x, order)
    rest = moved.dims[:-1]
    matrix = lowering.array(inserted(x, {0}) if x.rank == 1 else grouped(lowering, lowering.array(moved), x.rank - 1))

    def back(name, dtype, last=None):
        line = [last] if last is not None else []
        out = lowering.made(name, [matrix.dims[0], *line], dtype)
        if x.rank == 1:
            return Lazy(line, dtype, lambda index: entry(name, ZERO, *index), 0)
        if x.rank > 2:
            out = shaped(lowering, out, [*rest, *line])
        return permuted(out, [order.index(k) for k in range(x.rank)]) if line else out

    return matrix, back


@lazily(np.sort, places=False)
@lazily(np.argsort, places=True)
def _sort(lowering, node, places):
    b = lowering.bound(node)
    x, axis = lowering.lazy(b.get("x", b.get("a"))), lowering.static(b["axis"])
    if axis is None:
        x, axis = flat(lowering, x), 0
    if not x.rank:
        return Lazy([ONE], np.dtype(int), ZERO, 0) if places else x
    matrix, back = lines(lowering, x, axis % x.rank)
    if x.exact.kind == "c":
        return complex_lines(lowering, places, matrix, back, x.dims[axis % x.rank])
    helper = "argsort_lines" if places else "sort_lines"
    name = lowering.result("sorted", "{}({})", helper, matrix.name)
    return back(name, np.dtype(np.int64) if places else x.exact, x.dims[axis % x.rank])


def complex_lines(lowering: Lowering, places: bool, matrix: Lazy, back: Callable[..., Lazy], dim: Dim) -> Lazy:
    """Sorted lines, or the permutations that sort them."""
    order, name = lowering.fresh("order"), lowering.fresh("sorted")
    lowering.say("{} = complex_order({})", order, matrix.name)
    if places:
        return back(order, np.dtype(np.int64), dim)
    lowering.say("{} = taken_lines({}, {})", name, matrix.name, order)
    return back(name, matrix.exact, dim)


def reduce_lines(lowering: Lowering, x: Lazy, axes: Sequence[int], keepdims: bool, dtype: DTypeLike,
                 call: Callable[[str], loops.Expr], leading: Dim | None = None) -> Lazy:
    """`call` on x as lines, which gives one number for each line, or several along a first axis `leading`."""
    rest = [k for k in range(x.rank) if k not in axes]
    moved = lowering.array(permuted(x, [*rest, *axes]) if x.rank else inserted(x, {0}), dtype)
    matrix, out = lowering.fresh("lines"), lowering.fresh("reduced")
    sizes = [product_of([x.dims[k] for k in group]) for group in (rest, axes)]
    lowering.say("{} = {}.reshape({})", matrix, moved.name, sizes)
    lowering.set(out, call(matrix))
    dims = [ONE if k in axes else x.dims[k] for k in range(x.rank)] if keepdims else [x.dims[k] for k in rest]
    dims = dims if leading is None else [leading, *dims]
    if not dims:
        return Lazy([], dtype, entry(out, ZERO), 0)
    return shaped(lowering, lowering.made(out, [ONE], dtype), dims)


@lazily(np.median)
def _median(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = lowering.lazy(b["x"])
    axes = axes_of(lowering, lowering.static(b["axis"]), x.rank)
    return reduce_lines(lowering, x, axes, lowering.static(b["keepdims"]), dtype,
                        lambda lines: quoted("median_lines({})", lines))


@lazily(np.searchsorted)
def _searchsorted(lowering, node):
    b = lowering.bound(node)
    if lowering.static(b["sorter"]) is not None:
        lowering.no_form(np.searchsorted, " with a sorter")
    a, v = lowering.as_it_lies(b["a"]), lowering.lazy(b["v"])
    right = lowering.static(b["side"]) == "right"
    dtype = np.result_type(a.exact, np.dtype(v.dtype))         # NumPy first makes arrays of Python's scalars
    return Lazy(v.dims, np.dtype(np.int64), lambda index: quoted(
        "search_sorted({}, {}, {})", a.name, v.cast(index, dtype), right), v.cost + 2)


# --- Fourier transforms -----------------------------------------------------------------------------------------------

def transform(lowering, x, axis, sign, n=None, norm=None):
    """The Fourier transform along one axis, as complex128."""
    x = resized(lowering, x, axis, n, np.dtype(complex))
    d = x.dims[axis]
    matrix, back = lines(lowering, x, axis)
    name = lowering.result("spectrum", "transform_lines({}, {})", lowering.array(matrix, complex).name, sign)
    return scaled(lowering, back(name, np.dtype(complex), d), d, sign, norm)


def resized(lowering, x, axis, n, dtype):
    """x cut or padded with zeros to n entries on an axis; unchanged if n is None."""
    wanted = None if n is None else lowering.length(n)
    if wanted is None or wanted.key == x.dims[axis].key:
        return x
    limit, zero = x.dims[axis].length, 0j if dtype.kind == "c" else 0.0

    def read(index):
        own = [ZERO if e.kind == "one" else i for i, e in zip(index, x.dims)]
        return quoted("{} if {} < {} else {}", x.cast(own, dtype), index[axis], limit, zero)
    return Lazy([wanted if k == axis else e for k, e in enumerate(x.dims)], dtype, read, x.cost + 1)


def scaled(lowering, out, d, sign, norm):
    """A transform along an axis, scaled as its norm requires."""
    forward = sign < 0
    scale = {None: not forward, "backward": not forward, "forward": forward}.get(norm, "ortho")
    if scale == "ortho":
        factor = lowering.atom(quoted("1.0 / math.sqrt({})", d.length))
    elif scale:
        factor = lowering.atom(quoted("1.0 / {}", d.length))
    else:
        return out
    return Lazy(out.dims, out.dtype, lambda index: quoted("{} * {}", out.read(index), factor), out.cost + 1)


def given(node):
    """An argument's node, or None for a constant None."""
    return None if is_none(node) else node


@lazily(np.fft.fft, sign=-1)
@lazily(np.fft.ifft, sign=1)
def _fft(lowering, node, sign):
    b = lowering.bound(node)
    x = lowering.lazy(b["x"])
    out = transform(lowering, x, lowering.static(b["axis"]) % x.rank, sign, given(b["n"]), lowering.static(b["norm"]))
    return _in_dtype(out, lowering.fact(node).dtype)


def _in_dtype(x, dtype):
    return x if x.exact == np.dtype(dtype) else Lazy(x.dims, dtype, lambda index: x.cast(index, dtype), x.cost + 1)


@lazily(np.fft.rfft)
def _rfft(lowering, node):
    b = lowering.bound(node)
    x = lowering.lazy(b["x"])
    axis = lowering.static(b["axis"]) % x.rank
    x = resized(lowering, x, axis, given(b["n"]), np.dtype(float))
    matrix, back = lines(lowering, x, axis)
    name = lowering.result("spectrum", "half_transform_lines({})", lowering.array(matrix, float).name)
    out = back(name, np.dtype(complex), lowering.computed(quoted("{} // 2 + 1", x.dims[axis].length)))
    return _in_dtype(scaled(lowering, out, x.dims[axis], -1, lowering.static(b["norm"])), lowering.fact(node).dtype)


@lazily(np.fft.irfft)
def _irfft(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    x = lowering.lazy(b["x"])
    x = lowering.array(x) if x.cost else x
    axis = lowering.static(b["axis"]) % x.rank
    d = x.dims[axis]
    whole = lowering.computed(quoted("2 * ({} - 1)", d.length) if is_none(b["n"]) else lowering.scalar(b["n"]))
    n = whole.length
    def entry(index, place):
        own = [ZERO if e.kind == "one" else place if k == axis else i for k, (i, e) in enumerate(zip(index, x.dims))]
        return quoted("{} if {} < {} else 0j", x.cast(own, complex), place, d.length)
    def read(index):
        i = index[axis]
        first, second = entry(index, i), quoted("np.conj({})", entry(index, quoted("{} - {}", n, i)))
        return quoted("complex({first}.real, 0.0) if {i} == 0 or 2 * {i} == {n} else {first} if 2 * {i} < {n} else {}",
                      second, first=first, i=i, n=n)
    full = Lazy([whole if k == axis else e for k, e in enumerate(x.dims)], np.dtype(complex), read, 4)
    out = transform(lowering, full, axis, 1, None, lowering.static(b["norm"]))
    return Lazy(out.dims, dtype, lambda index: loops.Attribute(out.read(index), "real"), out.cost + 1)


@lazily(np.fft.fftn, np.fft.fft2, sign=-1)
@lazily(np.fft.ifftn, np.fft.ifft2, sign=1)
def _fftn(lowering, node, sign):
    b = lowering.bound(node)
    x, s = lowering.lazy(b["x"]), b["s"]
    lengths = s.items if isinstance(s, Pack) else s.value
    for k, axis in enumerate(transformed_axes(lengths, lowering.static(b["axes"]), x.rank)):
        n = None if lengths is None or is_whole(getattr(lengths[k], "value", lengths[k])) else lengths[k]
        x = transform(lowering, x, axis % x.rank, sign, n, lowering.static(b["norm"]))
    return _in_dtype(x, lowering.fact(node).dtype)


@lazily(np.fft.fftshift, shift="({} + 1) // 2")
@lazily(np.fft.ifftshift, shift="{} // 2")
def _fftshift(lowering, node, shift):
    b = lowering.bound(node)
    x = lowering.lazy(b["x"])
    axes = axes_of(lowering, lowering.static(b["axes"]), x.rank)
    def read(index):
        places = []
        for k, (i, d) in enumerate(zip(index, x.dims)):
            moved = k in axes and d.kind != "one"
            places.append(quoted("({} + {}) % {}", i, quoted(shift, d.length), d.length) if moved else i)
        return x.read(places)
    return Lazy(x.dims, x.dtype, read, x.cost)


@lazily(np.fft.fftfreq, real=False)
@lazily(np.fft.rfftfreq, real=True)
def _fftfreq(lowering, node, real):
    b = lowering.bound(node)
    n, d = lowering.length(b["n"]), lowering.atom(lowering.scalar(b["d"], float))
    if real:
        half = lowering.computed(quoted("{} // 2 + 1", n.length))
        return Lazy([half], np.dtype(float), lambda index: quoted("{} / ({} * {})", index[0], n.length, d), 1)
    return Lazy([n], np.dtype(float), lambda index: quoted(
        "(({i} + {n} // 2) % {n} - {n} // 2) / ({n} * {d})", i=index[0], n=n.length, d=d), 2)
