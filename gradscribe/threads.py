# SPDX-License-Identifier: Apache-2.0
"""BLAS with one thread for each device: libraries that have threads of their own do not use them meanwhile."""
import functools
import threading
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_depth = [0]
_held: list = []


@functools.cache
def _controller():
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread_each():
    """Inside, a product of matrices takes one thread."""
    with _lock:
        _depth[0] += 1
        if _depth[0] == 1:
            _held.append(_controller().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _depth[0] -= 1
            if not _depth[0]:
                _held.pop().restore_original_limits()
