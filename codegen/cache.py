# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code on disk.

An entry is one file: a digest, then Numba's pickle of a compiled function.  Its key is a hash of everything that the
code depends on: the text, the arguments' types, the runtime, the versions and the processor.  Since entries are
pickles, the folder must belong to the user alone (mode 0700, owner checked).  It is GRADSCRIBE_CACHE, or `gradscribe`
in XDG_CACHE_HOME or ~/.cache.  GRADSCRIBE_CACHE=off turns the cache off.
"""
import hashlib
import inspect
import linecache
import os
import pickle
import platform
import stat
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

try:
    import fcntl
except ImportError:                     # a system without file locks
    fcntl = None  # type: ignore[assignment]  # a module on other systems

from gradscribe.codegen import exact, internal_functions, llvm_inline, numba_memory, primitives, region_forms
from gradscribe.codegen.loops import allocation, decisions, outline, scalar_regions, trees, uniform
from gradscribe.codegen.loops import types as loop_types
from gradscribe.codegen.loops.analysis import equivalence
from gradscribe.runtime.modules import RUNTIME

FORMAT = 5
MOST = 2000                         # entries
LONGEST = 120.0                     # seconds that a process waits for another to compile a text
_stamp: list[str] = []


def stamp() -> str:
    """The part of the key that all entries of this installation share: versions, processor, sources."""
    if not _stamp:
        import llvmlite
        import numba
        from llvmlite import binding

        parts = [
            str(FORMAT),
            platform.python_version(),
            np.__version__,
            numba.__version__,
            llvmlite.__version__,
            sys.platform,
            binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(),
            *map(inspect.getsource, (
                *RUNTIME, primitives, internal_functions, llvm_inline, region_forms, exact, allocation, decisions,
                numba_memory, scalar_regions, equivalence, outline, trees, loop_types, uniform)),
        ]
        _stamp.append("\n".join(parts))
    return _stamp[0]


def key_of(text: str, label: str, kinds: Iterable[tuple], flags: Iterable[str]) -> str:
    arguments = repr([(getattr(d, "str", d), r) for d, r in kinds])
    content = "\0".join([stamp(), text, label, arguments, repr(sorted(flags))])
    return hashlib.sha256(content.encode()).hexdigest()[:40]


def module_for(key: str) -> types.ModuleType:
    """The module of a text's function: importable by name, as Numba's pickles require."""
    name = f"gradscribe_compiled_{key}"
    module = sys.modules.get(name)
    if module is None:
        module = sys.modules[name] = types.ModuleType(name)
        module.__file__ = f"<gradscribe compiled {key[:8]}>"
    return module


def show(file: str, text: str) -> None:
    """Shows a text in tracebacks and in Numba's messages."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)


def keep_with(module: types.ModuleType, user: object) -> None:
    """Removes the module of a text, and the text, when the last function that was compiled of it is gone."""
    users = module.__dict__.setdefault("__users__", set())
    users.add(id(user))

    def gone(name, file, key):
        users.discard(key)
        if not users and getattr(sys.modules.get(name), "__users__", None) is users:
            del sys.modules[name]
            linecache.cache.pop(file, None)
    weakref.finalize(user, gone, module.__name__, module.__file__, id(user)).atexit = False


def folder() -> Path | None:
    """The cache's folder, created if need be; None if there is none that only the user can write to."""
    wanted = os.environ.get("GRADSCRIBE_CACHE", "")
    if wanted.lower() in ("off", "0", "no"):
        return None
    try:
        base = Path(wanted) if wanted else \
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradscribe"
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = base.lstat()
    except (OSError, RuntimeError):     # there is no home folder, or it is not writable
        return None
    if not stat.S_ISDIR(about.st_mode):
        return None
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077):
        return None
    return base


def entry_of(key: str) -> bytes | None:
    """The content of an entry, or None if it is missing or damaged."""
    base = folder()
    try:
        content = b"" if base is None else (base / f"{key}.bin").read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[32:]).digest() == content[:32]:
        return content[32:]
    if content:
        forget(key)
    return None


def forget(key) -> None:
    base = folder()
    if base is not None:
        with suppress(OSError):
            (base / f"{key}.bin").unlink()


def keep(key: str, payload: bytes) -> None:
    """Writes an entry to the disk, atomically."""
    base = folder()
    if base is None:
        return
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=base, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(name, base / f"{key}.bin")
        except BaseException:           # the disk is full, or Ctrl-C
            with suppress(OSError):
                os.unlink(name)
            raise
        prune(base)


def load(key: str, dispatcher: Any, addressed: Callable[[str, tuple], Any]) -> bool:
    """Gives a dispatcher its compiled code from the disk; returns False if that is missing or damaged.

    addressed(name, types) is called for each runtime function that the code calls by symbol.
    """
    payload = entry_of(key)
    if payload is None:
        return False
    try:
        from numba.core.compiler import CompileResult
        from numba.core.registry import cpu_target
        from numba.core.runtime import rtsys
        context = cpu_target.target_context
        rtsys.initialize(context)       # does not read Numba's tables (0.25 s), which only compiling needs
        needed, parts = pickle.loads(payload)
        for name, types_ in needed:
            addressed(name, types_)
        result = CompileResult._rebuild(context, *parts)
        dispatcher.add_overload(result)
    except Exception:
        forget(key)
        return False
    return True


@contextmanager
def one_at_a_time(key: str) -> Iterator[None]:
    """Holds the lock of a key, so that processes that need one text at the same time, as in an MPI run, compile it
    once: the others wait, and find it on the disk.  None waits longer than LONGEST, or for a process that has ended.
    """
    base, file = folder(), None
    try:
        file = open(base / f"{key}.lock", "w") if base is not None and fcntl is not None else None
    except OSError:
        pass                            # each process compiles
    if file is None:
        yield
        return
    limit = time.monotonic() + LONGEST
    with file:
        while time.monotonic() < limit:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
        try:
            yield
        finally:
            with suppress(OSError):
                Path(file.name).unlink(missing_ok=True)


def save(key: str, dispatcher: Any, signature: tuple, needed: list) -> None:
    """Stores compiled code and the names that it calls by symbol; what cannot be stored is compiled again next time."""
    if folder() is None:
        return
    from numba.core.serialize import dumps
    with suppress(Exception):
        result = dispatcher.overloads[signature]
        if not result.lifted and not result.library.has_dynamic_globals:
            keep(key, dumps((needed, result._reduce())))


def files(base: Path, pattern: str = "*") -> Iterator[tuple[Path, os.stat_result]]:
    """Each file of the folder with its os.stat_result, without those that another process deletes meanwhile."""
    for path in base.glob(pattern):
        try:
            about = path.stat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(about.st_mode):
            yield path, about


def prune(base, most=MOST):
    """Deletes the oldest entries when there are too many."""
    entries = sorted(files(base, "*.bin"), key=lambda entry: entry[1].st_mtime)
    if len(entries) > most:
        for path, _ in entries[:len(entries) - most * 3 // 4]:
            path.unlink(missing_ok=True)
