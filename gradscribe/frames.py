# SPDX-License-Identifier: Apache-2.0
"""Tracebacks of errors that leave Gradscribe: they keep the user's frames and drop those of the compiler.

A TransformError points at a line of the user's; the compiler's frames add nothing to that.  So the public functions
remove them and keep the frames of the user and of emitted code.  Errors of another class that arise while
transforming keep all frames: they are bugs of the compiler.
GRADSCRIBE_TRACEBACK=full keeps every frame of every error.

>>> import traceback, gradscribe as gs
>>> try:
...     gs.grad(lambda x: open(x))(1.0)
... except gs.TransformError as error:
...     print([frame.name for frame in traceback.extract_tb(error.__traceback__)])
['<module>']
"""
import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar, cast

from gradscribe.ast_transform.source.diagnose import TransformError

# libraries that the compiler calls: their frames are dropped as well
LIBRARIES = sys.stdlib_module_names | {"gradscribe", "numpy", "scipy", "numba", "llvmlite", "gast", "astor"}
COMPILER = ("gradscribe.ast_transform", "gradscribe.codegen")
Function = TypeVar("Function", bound=Callable)


def leaving(error: BaseException) -> None:
    """Reduce an error's traceback to the user's frames.  A bare `raise` must follow, which adds no frame."""
    if os.environ.get("GRADSCRIBE_TRACEBACK") == "full":
        return
    if isinstance(error, TransformError):
        _shorten(error)
    else:
        error.__traceback__ = _after_the_call(error.__traceback__)


def public(function: Function) -> Function:
    """A public function, whose errors have no frames of the compiler."""
    @functools.wraps(function)
    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            leaving(error)
            raise
    return cast(Function, called)


def _shorten(error):
    """Reduce the tracebacks of an error and its causes, and drop those that are internal."""
    error.__traceback__ = _users(error.__traceback__)
    if error.__cause__ is not None and _ours_alone(error.__cause__):
        error.__cause__, error.__suppress_context__ = None, False
    while error.__context__ is not None and _ours_alone(error.__context__):
        error.__context__ = error.__context__.__context__


def _ours_alone(error):
    """Whether an error was raised and caught inside the compiler; if not, its traceback is reduced."""
    if error.__traceback__ is not None:
        if not _is_ours(error.__traceback__):
            return False
        _shorten(error)
    return error.__traceback__ is None


def _users(traceback):
    """A traceback without the frames of the compiler and of what it calls."""
    kept = [entry for entry in _entries(traceback) if not _is_ours(entry)]
    below = None
    for entry in reversed(kept):
        below = TracebackType(below, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return below


def _after_the_call(traceback):
    """The part of a traceback from emitted code on; the whole if it does not reach emitted code."""
    first = traceback
    while first is not None and _is_ours(first) and not _module(first).startswith(COMPILER):
        first = first.tb_next
    return traceback if first is None or _is_ours(first) else first


def _entries(traceback):
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(entry):
    """Whether a frame is of the compiler or of a library; emitted code is the user's."""
    module = _module(entry)
    return module.partition(".")[0] in LIBRARIES and not module.startswith("gradscribe.emitted.")


def _module(entry):
    return entry.tb_frame.f_globals.get("__name__") or ""
