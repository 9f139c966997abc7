# SPDX-License-Identifier: Apache-2.0
"""Locking and stack space for the compiler.

Only one thread transforms at a time, since the compiler unifies lengths in place and caches trees.  Calls of existing
versions take no lock.

The compiler is recursive, and Python's recursion limit is reached by expressions of a hundred terms or so.  The work is
then repeated in a thread with a larger stack and a higher limit.  An expression that is too deep for that is an error.

>>> import gradscribe as gs
>>> f = gs.grad(lambda x: x * x)
>>> from concurrent.futures import ThreadPoolExecutor
>>> with ThreadPoolExecutor(4) as pool:
...     print(list(pool.map(f, [1.0, 2.0, 3.0, 4.0])))
[2.0, 4.0, 6.0, 8.0]
"""
import contextvars
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable

from gradscribe.ast_transform.source.diagnose import LanguageError, TooDeep
from gradscribe.codegen.interrupts import AGAIN, can_stop

STACK = 256 << 20                   # bytes of address space; a call uses about 5 kB of memory
DEPTH = 50_000                      # recursion limit


class _Here(threading.local):
    making = False                  # whether this thread is transforming now


_here = _Here()
_lock = threading.Lock()


def _forget():
    """Replace the lock after a fork, since the thread that held it does not exist in the child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def alone(function: Callable) -> Callable:
    """A decorator for functions that transform: one thread at a time runs any of these."""
    @functools.wraps(function)
    def made(*args, **kwargs):
        if _here.making:
            return function(*args, **kwargs)
        try:
            return _turn(function, args, kwargs)
        except (RecursionError, TooDeep):
            pass
        return _with_room(function, args, kwargs)
    return made


def _turn(function, args, kwargs):
    with _lock:
        try:
            _here.making = True
            return function(*args, **kwargs)
        finally:
            _here.making = False


def _with_room(function, args, kwargs):
    """A call in a new thread with a large stack."""
    outcome, context = [], contextvars.copy_context()

    def work():
        before = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(before, DEPTH))
            outcome.append((context.run(_turn, function, args, kwargs), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            sys.setrecursionlimit(before)
    usual = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=work, name="gradscribe")
        thread.start()
    finally:
        threading.stack_size(usual)
    try:
        thread.join()
    except BaseException as interrupted:        # Ctrl-C: stop the thread, so that the lock is released
        while thread.is_alive() and not can_stop(sys._current_frames().get(thread.ident)):
            thread.join(AGAIN)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(type(interrupted)))
        thread.join()
        raise
    (made, error), = outcome
    if isinstance(error, RecursionError):
        raise LanguageError("an expression is nested too deeply to be transformed", None, "Give its parts names.")
    if error is not None:
        raise error
    return made
