# SPDX-License-Identifier: Apache-2.0
"""Devices that run one mapped function side by side: the axes that have names where a program runs, and what its
functions over them do there.

A *group* is an axis of devices as one of them sees it: its `size`, its own `rank`, and five operations on arrays, which
all devices of the group call in one order: `reduce`, `gather`, `scatter`, `exchange`, `permute`; `start` and `done` are
the halves of a sum.  What threads of this process do is in teams.py; gradscribe/mpi.py has groups of processes.
"""
import ctypes
import hashlib
import importlib
import itertools
import threading
import weakref
from contextlib import contextmanager

import numpy as np

LOCAL = threading.local()               # .axes: groups by name; .failure: what compiled code was stopped by
SITES: dict[int, tuple] = {}            # what compiled code asks for, by number: (function, names, options)
NUMBERS: dict[str, int] = {}            # those numbers, by the text of what is asked
REPORTS: weakref.WeakValueDictionary = weakref.WeakValueDictionary()    # functions of a list of values by number, for
                                        # as long as the code is there
_COUNT = itertools.count()


class Lost(RuntimeError):
    """Another device has failed; `rank` is which."""

    def __init__(self, message, rank=None):
        super().__init__(message)
        self.rank = rank


def bound():
    """The groups by the names of their axes, for this thread."""
    return getattr(LOCAL, "axes", {})


@contextmanager
def axes_bound(groups):
    """Inside, the functions over these axes have their meaning."""
    before = bound()
    LOCAL.axes = {**before, **groups}
    try:
        yield
    finally:
        LOCAL.axes = before


@contextmanager
def own_errors():
    """What stopped compiled code is raised, not that something did."""
    LOCAL.failure = None
    try:
        yield
    except RuntimeError:
        stopped = failure()
        if stopped is None:
            raise
        raise stopped from None


def failure():
    """What stopped compiled code in this thread, if something did; it is told once."""
    found, LOCAL.failure = getattr(LOCAL, "failure", None), None
    return found


# --- the functions, on groups -----------------------------------------------------------------------------------------

def performed(function, x, names, options):
    """The value of a function of collectives.py over axes that are bound."""
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
    """CuPy for an array of a device, NumPy for all else."""
    return importlib.import_module("cupy") if hasattr(x, "__cuda_array_interface__") else np


def arrayed(x):
    """An array of a device as it is, all else as NumPy's."""
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
    """The sums of several arrays, of one function, in one meeting."""
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
    """A sum begins, in an array that is not to be read before the other half has been here; or is waited for."""
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
    """What all have given, along an axis of its own or one after the other along one that is there."""
    xp = package_of(found)
    return xp.concatenate(list(found), axis) if tiled else xp.moveaxis(found, 0, axis)


def parts_of(x, group, axis, tiled):
    """What each device is to have, along a first axis."""
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
PLACES = {"axis_index", "axis_size"}    # numbers that are known without a question


# --- asked for by compiled code ---------------------------------------------------------------------------------------

SUMMED = {"psum": 1, "pmax": 2, "pmin": 3, "pmean": 4}      # the last three bits of the number of such a place


def site_of(function, names, options):
    """A number for what a place in a program asks for, the same in all processes; it says which sum it is over an axis.
    """
    what = function, tuple(names), dict(sorted(options.items()))
    number = int(hashlib.sha256(repr(what).encode()).hexdigest()[:15], 16) & ~7
    number |= SUMMED.get(function, 0) if len(names) == 1 else 0
    SITES[number], NUMBERS[spelled(function, names, options)] = what, number
    return number


def collected(x, what, shape, dtype, xp=np):
    """What a function over an axis gives, in an array of its own of the package xp; in code compiled for the processor
    this is codegen/collectives.py's.
    """
    function, names, options = SITES[NUMBERS[what]]
    found = performed(function, xp.asarray(x), names, options)
    if getattr(found, "shape", ()) != shape:
        raise ValueError(f"{function}: shape {found.shape} where {shape} was expected")
    return (xp.array if xp is np else xp.asarray)(found, dtype, order="C")


def collected_number(x, what, dtype, xp=np):
    """The same of a number; the place of this device is the host's number."""
    function, names, options = SITES[NUMBERS[what]]
    if function in PLACES:
        return np.dtype(dtype).type(performed(function, x, names, options))
    return collected(x, what, (), dtype, xp)[()]


def collected_done(x, what, xp=np):
    """A sum that was begun in x, once it is there."""
    function, names, _ = SITES[NUMBERS[what]]
    return performed(function, x, names, {})


def collected_all(given, what, xp=np):
    """Sums of several arrays and numbers at once."""
    function, names, _ = SITES[NUMBERS[what]]
    found = all_reduced(function, [xp.asarray(x) for x in given], [bound()[n] for n in names])
    return tuple(y[()] for y in found)


def told(site, number, rank, shape, place, out_number, out_rank, out_shape, out_place):
    """Called from compiled code with arrays as addresses; 1 where it failed, with the reason in LOCAL.failure."""
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
    """Called from compiled code for several sums at once: a table of addresses."""
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
    """A number by which compiled code has a function of a list of arrays called; who compiles keeps the function."""
    number = next(_COUNT)
    REPORTS[number] = report
    return number


def reported(number, count, place):
    """Called from compiled code with a table of addresses: what it tells."""
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


# --- written down and read --------------------------------------------------------------------------------------------

def spelled(function, names, options):
    """The text of what a place asks for: psum(i), all_gather(i, axis=1)."""
    return f"{function}({', '.join([*map(str, names), *(f'{k}={v!r}' for k, v in options.items())])})"


