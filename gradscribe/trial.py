# SPDX-License-Identifier: Apache-2.0
"""Runs written modules in a fresh interpreter without Gradscribe.

This file is also the program of that interpreter, so it imports nothing from Gradscribe.
"""
import collections
import contextlib
import copy
import io
import os
import pickle
import random
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.generic, np.dtype)
DIGITS = 64                             # allowed difference of two runs, in ulps of the largest entry


def outcome(function: Callable, args: tuple) -> tuple[str, Any]:
    """("gave", the leaves of the result), or ("raised", the error in words); output is suppressed.

    >>> outcome(lambda x, y: {"a": (x, y)}, (1.0, 2))
    ('gave', [1.0, 2])
    >>> outcome(lambda x: 1 // x, (0,))[1].partition(":")[0]
    'ZeroDivisionError'
    """
    before = random.getstate(), np.random.get_state()
    random.seed(0)
    np.random.seed(0)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return "gave", leaves(function(*args))
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def leaves(value: Any) -> list:
    """The numbers and arrays of a result, in order; anything else is replaced by its type."""
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in leaves(v)]
    if isinstance(value, dict):
        return [x for v in value.values() for x in leaves(v)]
    if hasattr(type(value), "__dataclass_fields__"):
        return [x for name in type(value).__dataclass_fields__ for x in leaves(getattr(value, name))]
    return [value if isinstance(value, (*PLAIN, np.ndarray)) else type(value).__name__]


def differ(found: tuple[str, Any], wanted: tuple[str, Any]) -> str:
    """How an outcome differs from another, in words; "" if they are the same.

    >>> differ(("gave", [1.0]), ("gave", [1.0])), differ(("gave", [2.0]), ("gave", [1.0]))
    ('', 'it gives 2.0 instead of 1.0')
    """
    if found[0] != wanted[0] or found[0] == "raised":
        said = ["gives a result" if kind == "gave" else f"raises {what}" for kind, what in (found, wanted)]
        return "" if said[0].partition(":")[0] == said[1].partition(":")[0] else f"it {said[0]}, and here it {said[1]}"
    if len(found[1]) != len(wanted[1]):
        return f"it gives {len(found[1])} values instead of {len(wanted[1])}"
    for a, b in zip(found[1], wanted[1]):
        if not alike(a, b):
            return f"it gives {a!r} instead of {b!r}"
    return ""


def alike(a: Any, b: Any) -> bool:
    """Whether two leaves are the same up to their last digits, which BLAS may round differently in two runs."""
    if isinstance(a, PLAIN) and not isinstance(a, (int, float, complex, np.generic)):
        return type(a) is type(b) and a == b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    finite = np.abs(b[np.isfinite(b)])
    room = DIGITS * np.finfo(a.dtype).eps * max(finite, default=0)
    with np.errstate(invalid="ignore"):
        return bool(np.all((a == b) | np.isnan(a) & np.isnan(b) | (np.abs(a - b) <= room)))


# --- serialisation of arguments ---------------------------------------------------------------------------------------

def packed(value: Any) -> tuple:
    """A value in a form that can be read back without the user's classes; parts without numbers are dropped."""
    kind = type(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "named", kind.__name__, value._fields, [*map(packed, value)]
    if kind in (list, tuple):
        return kind.__name__, [*map(packed, value)]
    if kind is dict:
        return "dict", [(k, packed(v)) for k, v in value.items()]
    if hasattr(kind, "__dataclass_fields__"):
        names = [n for n in kind.__dataclass_fields__ if hasattr(value, n)]
        return "object", kind.__name__, names, [packed(getattr(value, n)) for n in names]
    if isinstance(value, (*PLAIN, np.ndarray, np.random.Generator, np.random.RandomState, random.Random)):
        return "plain", value
    return "plain", None


def unpacked(value: tuple, names: dict[str, Any]) -> Any:
    """The packed value; objects have the classes in `names`, or a class with nothing but their attributes."""
    kind, *rest = value
    if kind == "plain":
        return rest[0]
    if kind == "dict":
        return {k: unpacked(v, names) for k, v in rest[0]}
    items = [unpacked(v, names) for v in rest[-1]]
    if kind in ("list", "tuple"):
        return items if kind == "list" else tuple(items)
    label, fields = rest[:2]
    cls = names.get(label)
    if kind == "named":
        return cast(Any, cls if hasattr(cls, "_fields") else collections.namedtuple(label, fields))._make(items)
    if cls is None:
        return types.SimpleNamespace(**dict(zip(fields, items)))
    made = object.__new__(cls)
    for name, item in zip(fields, items):
        object.__setattr__(made, name, item)
    return made


# --- the fresh interpreter --------------------------------------------------------------------------------------------

UNFINISHED = "unfinished"               # the outcome, beside "gave" and "raised", of a job that ran out of time


def run_apart(jobs: list[tuple], without: tuple[str, ...] = ("gradscribe",),
              seconds: float | None = None) -> list[tuple[str, Any]]:
    """The outcomes of jobs in one fresh interpreter; a job is (text of a module, function or None, arguments).

    Without a function the module is only imported.  without: packages that the interpreter cannot import; seconds: a
    time limit.  Raises OSError if no interpreter can be started.

    >>> run_apart([("def f(x): return 2 * x", "f", (2.5,)), ("import gradscribe", None, ())])
    [('gave', [5.0]), ('raised', 'ImportError: gradscribe is not there')]
    """
    if not jobs:
        return []
    with tempfile.TemporaryDirectory() as folder:
        there, back = Path(folder) / "jobs", Path(folder) / "outcomes"
        told = [(text, label, [*map(packed, args)]) for text, label, args in jobs]
        there.write_bytes(pickle.dumps((sys.path, without, told)))
        try:
            done = subprocess.run([sys.executable or "python", "-P", __file__, str(there), str(back)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return [(UNFINISHED, f"it has not ended after {seconds} s")] * len(jobs)
        if back.exists():
            return pickle.loads(back.read_bytes())
    last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
    return [("raised", f"the interpreter: {last}")] * len(jobs)


class Absent:
    """An import hook that makes packages unavailable."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        """Raise ImportError for a package that is to be unavailable."""
        if name.partition(".")[0] in self.names:
            raise ImportError(f"{name.partition('.')[0]} is not there")


def run_one(number, text, label, args):
    """The outcome of one function in a text, for its arguments."""
    module = types.ModuleType(f"written_{number}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, f"<written {number}>", "exec"), vars(module))
        given = [unpacked(a, vars(module)) for a in args]
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"
    return ("gave", []) if label is None else outcome(vars(module)[label], tuple(given))


def main(there, back):
    """Run the jobs in a file, and write their outcomes to another."""
    path, without, jobs = pickle.loads(Path(there).read_bytes())
    sys.path[:] = path
    sys.meta_path.insert(0, Absent(without))
    found = [run_one(k, *job) for k, job in enumerate(jobs)]
    Path(f"{back}.part").write_bytes(pickle.dumps(found))
    os.replace(f"{back}.part", back)


def copied(value: Any) -> Any:
    """A copy of arrays and containers; everything else as it is."""
    return copy.deepcopy(value) if isinstance(value, (list, dict, set, tuple, np.ndarray, np.random.Generator,
                                                      np.random.RandomState)) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
