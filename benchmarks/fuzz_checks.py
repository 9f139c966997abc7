"""How results of the random programs are compared."""
import contextlib
import copy
import sys

import numpy as np
from fuzz_reference import flat, leaves_of


class Wrong(Exception):
    """off: by how much, where results are numbers."""

    def __init__(self, text, off=np.inf):
        super().__init__(text)
        self.off = off


@contextlib.contextmanager
def largest_number():
    """A list that gets the largest number in the variables of the program and of emitted functions while they run.

    One in half or single precision counts for the larger one in double precision that is rounded by as much.
    """
    found, before = [0.0], sys.gettrace()

    def size(value):
        if isinstance(value, (list, tuple)):
            return max(map(size, value), default=0.0)
        if isinstance(value, (float, complex, np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "fc":
            coarse = np.finfo(np.asarray(value).dtype).eps / np.finfo(float).eps
            return float(np.max(np.abs(value), initial=0.0)) * float(coarse)
        return 0.0

    def look(frame, event, _):
        if frame.f_code.co_filename.startswith(("<gradscribe", "<program")):
            with np.errstate(all="ignore"):
                found[0] = max(found[0], *map(size, list(frame.f_locals.values())), 0.0)
            return look
        return None
    sys.settrace(look)
    try:
        yield found
    finally:
        sys.settrace(before)


def structure(tree):
    if isinstance(tree, dict):
        return {k: structure(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [structure(v) for v in tree]
    return np.shape(tree)


def expect(got, want, tolerance, what):
    got, want = flat(got), np.ravel(want)
    if got.shape != want.shape:
        raise Wrong(f"{what}: {got.size} numbers, expected {want.size}")
    if got.dtype.kind != "f":
        raise Wrong(f"{what}: dtype {got.dtype}")
    with np.errstate(all="ignore"):
        off = np.max(np.abs(got - want), initial=0) if np.all(np.isfinite(got)) else np.inf
    if not off <= tolerance:
        raise Wrong(f"{what}: off by {off:.2g} (tolerance {tolerance:.1g}), got {brief(got)}, expected {brief(want)}",
                    off)


def brief(v):
    with np.printoptions(precision=5, threshold=8, edgeitems=3):
        return np.array2string(np.asarray(v)).replace("\n", "")


def untouched(fn, args, extra, what):
    given = copy.deepcopy(args)
    got = fn(*given, **extra)
    if structure(given) != structure(args) or not all(np.array_equal(a, b) for a,
                                                      b in zip(leaves_of(given), leaves_of(args))):
        raise Wrong(f"{what}: the arguments were changed")
    return got


def same_structure(got, args, what):
    if structure(got) != structure(tuple(args)):
        raise Wrong(f"{what}: structure {structure(got)}, expected {structure(tuple(args))}")
