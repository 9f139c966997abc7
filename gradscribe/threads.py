# SPDX-License-Identifier: Apache-2.0
"""BLAS with one thread for each device, while gs.pmap runs on threads."""
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_depth = [0]
_known: dict[str, object] = {}          # "libraries": the BLAS libraries found, "modules": the number of modules then
_before: list = []


def _libraries():
    """The BLAS libraries of the process; searched again after imports."""
    if _known.get("modules") != len(sys.modules):
        _known["libraries"] = ThreadpoolController().select(user_api="blas").lib_controllers
        _known["modules"] = len(sys.modules)
    return _known["libraries"]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """A context in which BLAS uses one thread."""
    with _lock:
        _depth[0] += 1
        if _depth[0] == 1:
            for library in _libraries():
                count = library.get_num_threads()
                if count != 1:
                    library.set_num_threads(1)
                    _before.append((library, count))
    try:
        yield
    finally:
        with _lock:
            _depth[0] -= 1
            while not _depth[0] and _before:
                library, count = _before.pop()
                library.set_num_threads(count)
