# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while Numba compiles: it stops at once where that is safe, else a moment later.

The function being compiled can be thrown away.  But a module that is half imported, tables that Numba has half read,
or LLVM memory without an owner would stay broken for the rest of the process, and an exception raised in a callback
from LLVM is lost.
"""
import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.05                        # seconds until an interruption is tried again
WHOLE = ("llvmlite", "importlib._bootstrap", "numba.core.codegen", "numba.core.runtime", "gradscribe.codegen.foreign")
TABLES = {"refresh", "install_registry", "load_additional_registries", "_load_builtins", "helpers"}


def can_stop(frame: FrameType | None, outer: FrameType | None = None) -> bool:
    """Whether none of the frames up to `outer` is inside an operation that must not be interrupted."""
    while frame is not None and frame is not outer:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(WHOLE) or frame.f_code.co_name in TABLES and module.startswith(("numba", "gradscribe")):
            return False
        frame = frame.f_back
    return True


@contextmanager
def stopped_cleanly() -> Iterator[None]:
    """Inside, Ctrl-C takes effect only where `can_stop` holds, or at the end."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    waiting: list[threading.Timer]
    outer, waiting = sys._getframe(2), []

    def later(number, frame):
        waiting.clear()
        if can_stop(frame, outer):
            handler(number, frame)
            return
        waiting.append(threading.Timer(AGAIN, _thread.interrupt_main))
        waiting[0].daemon = True
        waiting[0].start()
    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            waiting[0].cancel()
            handler(signal.SIGINT, sys._getframe())
