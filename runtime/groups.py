# SPDX-License-Identifier: Apache-2.0
"""Collectives over named axes of devices: which axes are bound in a thread, and how the functions over them run.

A *group* is one device's view of an axis: its `size`, the device's `rank`, and five operations on arrays that all
devices of the group must call in the same order: `reduce`, `gather`, `scatter`, `exchange`, `permute`; `start` and
`done` are the two parts of a non-blocking sum.  Groups of threads are in teams.py, of GPUs in nccl.py, of processes in
gradscribe/mpi.py.
"""
import ctypes
import hashlib
import importlib
import itertools
import threading
import weakref
from contextlib import contextmanager

import numpy as np

LOCAL = threading.local()               # .axes: groups by name; .failure: the error that stopped compiled code
SITES: dict[int, tuple] = {}            # collectives in compiled code, by number: (function, names, options)
NUMBERS: dict[str, int] = {}            # these numbers, by the text of the collective
REPORTS: weakref.WeakValueDictionary = weakref.WeakValueDictionary()    # functions of a list of values by number, for
                                        # as long as the code is there
_COUNT = itertools.count()


class Lost(RuntimeError):
    """Another device has failed; `rank` is its number."""

    def __init__(self, message, rank=None):
        super().__init__(message)
        self.rank = rank


def bound():
    """This thread's groups, by axis name."""
    return getattr(LOCAL, "axes", {})


@contextmanager
def axes_bound(groups):
    """A context in which these axes are bound."""
    before = bound()
    LOCAL.axes = {**before, **groups}
    try:
        yield
    finally:
        LOCAL.axes = before


@contextmanager
def own_errors():
    """A context that raises the error that stopped compiled code instead of compiled code's own."""
    LOCAL.failure = None
    try:
        yield
    except RuntimeError:
        stopped = failure()
        if stopped is None:
            raise
        raise stopped from None


def failure():
    """The error that stopped compiled code in this thread, or None; it is cleared."""
    found, LOCAL.failure = getattr(LOCAL, "failure", None), None
    return found


# --- the collectives, on groups ---------------------------------------------------------------------------------------

def performed(function, x, names, options):
    """The value of a function of collectives.py over bound axes."""
    groups = [bound()[n] for n in names]
    if function in REDUCED:
        return reduced(function, x, groups)
    if function in HALVES:
        return half(function, arrayed(x), *groups)
    return FORMS[function](x, *groups, **options)


REDUCED = ("psum", "pmean", "pmax", "pmin")
HALVES = ("psum_start", "psum_done", "pmean_start", "pmean_done")
OPERATIONS = {"psum": "sum", "pmean": "sum", "pmax": "max", "pmin": "min"}


def package_of(x):
    """CuPy for a device array, NumPy for anything else."""
    return importlib.import_module("cupy") if hasattr(x, "__cuda_array_interface__") else np


def arrayed(x):
    """A device array unchanged, anything else as a NumPy array."""
    return x if package_of(x) is not np else np.asarray(x)


def reduced(function, x, groups):
    x = arrayed(x)
    if x.dtype == bool and function == "psum":
        x = x.astype(int)
    elif x.dtype.kind in "biu" and function == "pmean":
        x = x.astype(float)
    for group in groups:
        x = group.reduce(x, OPERATIONS[function], f"{function} over {group.name!r}")
    if function == "pmean":
        x = x / x.real.dtype.type(np.prod([g.size for g in groups]))
    return x[()]


def all_reduced(function, arrays, groups, outs=None):
    """The reductions of several arrays by one function, in one synchronisation."""
    outs = [package_of(x).empty_like(x, order="C") for x in arrays] if outs is None else outs
    for group in groups:
        group.reduce_all(arrays, outs, OPERATIONS[function], f"{function} over {group.name!r}")
        arrays = outs
    if function == "pmean":
        many = np.prod([g.size for g in groups])
        for out in outs:
            out /= out.real.dtype.type(many)
    return outs


def half(function, x, group, out=None):
    """Start a sum, into an array that must not be read before it is done; or wait for it."""
    whole, _, which = function.partition("_")
    label = f"{whole} over {group.name!r}"
    if which == "start":
        out = package_of(x).empty_like(x, order="C") if out is None else out
        group.start(x, label, out)
        return out
    group.done(x, label)
    if whole == "pmean":
        x /= x.real.dtype.type(group.size)
    return x


def gathered(x, group, axis=0, tiled=False):
    x = arrayed(x)
    return laid(group.gather(x, f"all_gather over {group.name!r}"), axis, tiled)


def laid(found, axis, tiled):
    """The contributions of all devices, stacked along a new axis or concatenated along an existing one."""
    xp = package_of(found)
    return xp.concatenate(list(found), axis) if tiled else xp.moveaxis(found, 0, axis)


def parts_of(x, group, axis, tiled):
    """The parts for each device, along a first axis."""
    xp = package_of(x)
    if tiled:
        return xp.stack(xp.split(x, group.size, axis))
    if x.shape[axis] != group.size:
        raise ValueError(f"axis {axis} of an array of shape {x.shape} is not as long as {group.name!r}, {group.size}")
    return xp.ascontiguousarray(xp.moveaxis(x, axis, 0))


def scattered(x, group, scatter_dimension=0, tiled=False):
    x = arrayed(x)
    if x.dtype == bool:
        x = x.astype(int)
    return group.scatter(parts_of(x, group, scatter_dimension, tiled), f"psum_scatter over {group.name!r}")[()]


def exchanged(x, group, split_axis, concat_axis, tiled=False):
    parts = parts_of(arrayed(x), group, split_axis, tiled)
    return laid(group.exchange(parts, f"all_to_all over {group.name!r}"), concat_axis, tiled)


def permuted(x, group, perm):
    return group.permute(arrayed(x), tuple(map(tuple, perm)), f"ppermute over {group.name!r}")[()]


def shuffled(x, group, perm):
    pairs = tuple((source, goal) for goal, source in enumerate(perm))
    return group.permute(arrayed(x), pairs, f"pshuffle over {group.name!r}")[()]


def place(x, group):
    return group.rank


def places(x, group):
    return group.size


FORMS = {"all_gather": gathered, "psum_scatter": scattered, "all_to_all": exchanged, "ppermute": permuted,
         "pshuffle": shuffled, "axis_index": place, "axis_size": places}
PLACES = {"axis_index", "axis_size"}    # these need no communication


# --- calls from compiled code -----------------------------------------------------------------------------------------

SUMMED = {"psum": 1, "pmax": 2, "pmin": 3, "pmean": 4}      # the last three bits of the number of such a site


def site_of(function, names, options):
    """The number of a collective in compiled code, the same in all processes; its last bits say which reduction."""
    what = function, tuple(names), dict(sorted(options.items()))
    number = int(hashlib.sha256(repr(what).encode()).hexdigest()[:15], 16) & ~7
    number |= SUMMED.get(function, 0) if len(names) == 1 else 0
    SITES[number], NUMBERS[spelled(function, names, options)] = what, number
    return number


def collected(x, what, shape, dtype, xp=np):
    """The result of a collective in a new array of the package xp; in code compiled for the processor,
    codegen/collectives.py replaces this.
    """
    function, names, options = SITES[NUMBERS[what]]
    found = performed(function, xp.asarray(x), names, options)
    if getattr(found, "shape", ()) != shape:
        raise ValueError(f"{function}: shape {found.shape} where {shape} was expected")
    return (xp.array if xp is np else xp.asarray)(found, dtype, order="C")


def collected_number(x, what, dtype, xp=np):
    """The same for a scalar; this device's rank is a number of the host."""
    function, names, options = SITES[NUMBERS[what]]
    if function in PLACES:
        return np.dtype(dtype).type(performed(function, x, names, options))
    return collected(x, what, (), dtype, xp)[()]


def collected_done(x, what, xp=np):
    """Waits for the sum that was started into x."""
    function, names, _ = SITES[NUMBERS[what]]
    return performed(function, x, names, {})


def collected_all(given, what, xp=np):
    """Sums of several arrays and numbers at once."""
    function, names, _ = SITES[NUMBERS[what]]
    found = all_reduced(function, [xp.asarray(x) for x in given], [bound()[n] for n in names])
    return tuple(y[()] for y in found)


def told(site, number, rank, shape, place, out_number, out_rank, out_shape, out_place):
    """Called from compiled code with arrays as addresses; returns 1 on failure, with the error in LOCAL.failure."""
    try:
        x, out = _array(number, rank, shape, place), _array(out_number, out_rank, out_shape, out_place)
        function, names, options = SITES[site]
        if function in ("psum", "pmax", "pmin") and len(names) == 1:
            group = bound()[names[0]]
            group.reduce(x, OPERATIONS[function], f"{function} over {group.name!r}", out)
        elif function in HALVES:
            half(function, x, bound()[names[0]], out)
        else:
            found = performed(function, x, names, options)
            if np.shape(found) != out.shape:
                raise ValueError(f"{function}: shape {np.shape(found)} where {out.shape} was expected")
            out[...] = found
    except BaseException as error:
        LOCAL.failure = error
        return 1
    return 0


def told_all(site, count, place):
    """Called from compiled code for several reductions at once, with a table of addresses."""
    try:
        table = np.frombuffer((ctypes.c_int64 * (5 * count)).from_address(place), np.int64).reshape(count, 5).tolist()
        arrays = [_array(number, rank, shape, data) for number, rank, shape, data, _ in table]
        outs = [_array(number, rank, shape, out) for number, rank, shape, _, out in table]
        function, names, _ = SITES[site]
        all_reduced(function, arrays, [bound()[n] for n in names], outs)
    except BaseException as error:
        LOCAL.failure = error
        return 1
    return 0


def number_of(report):
    """A number by which compiled code calls a Python function of a list of arrays; the compiler keeps the function."""
    number = next(_COUNT)
    REPORTS[number] = report
    return number


def reported(number, count, place):
    """Called from compiled code with a table of addresses: calls the Python function with this number."""
    try:
        table = np.frombuffer((ctypes.c_int64 * (5 * count)).from_address(place), np.int64).reshape(count, 5).tolist() \
            if count else []
        REPORTS[number]([_array(kind, rank, shape, data) for kind, rank, shape, data, _ in table])
    except BaseException as error:
        LOCAL.failure = error
        return 1
    return 0


_KINDS = {np.dtype(c).num: np.dtype(c) for c in "?bBhHiIlLqQfdFD"}


def _array(number, rank, shape, place):
    lengths = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))[:rank] if rank else []
    dtype, count = _KINDS[number], 1
    for n in lengths:
        count *= n
    if not count:
        return np.empty(lengths, dtype)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(place), dtype, count).reshape(lengths)


# --- text -------------------------------------------------------------------------------------------------------------

def spelled(function, names, options):
    """The text of a collective: psum(i), all_gather(i, axis=1)."""
    return f"{function}({', '.join([*map(str, names), *(f'{k}={v!r}' for k, v in options.items())])})"


