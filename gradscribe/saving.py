# SPDX-License-Identifier: Apache-2.0
"""gs.distributed.save and restore: atomic checkpoints of a training run on disk."""
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from gradscribe.machine import RUN
from gradscribe.tree_util import tree_flatten, tree_unflatten

__all__ = ["restore", "save"]


def save(folder: str | os.PathLike, step: int, tree: Any, keep: int = 2) -> None:
    """Write a tree of arrays and numbers to folder/step_000000042.npz; in an MPI run, only the first process writes.

    The write is atomic: the data go to a temporary file, which is synced and then renamed.  Only the `keep` newest
    files are kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder, 42, {"w": np.ones(2), "count": 3})
    ...     restore(folder, {"w": np.zeros(2), "count": 0})
    (42, {'count': 3, 'w': array([1., 1.])})
    """
    if RUN and RUN["world"].rank:
        return
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    leaves, _ = tree_flatten(tree)
    content = io.BytesIO()
    np.savez(content, *[np.asarray(leaf) for leaf in leaves])
    data = content.getvalue()
    goal, beside = folder / f"step_{step:09d}.npz", folder / f".step_{step:09d}.{os.getpid()}"
    with open(beside, "wb") as file:
        file.write(hashlib.sha256(data).digest() + data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, goal)
    _to_disk(folder)
    for old in sorted(folder.glob("step_*.npz"))[:-keep]:
        old.unlink(missing_ok=True)
    for left in folder.glob(".step_*"):
        if left != beside and not left.name.endswith(f".{os.getpid()}"):
            left.unlink(missing_ok=True)


def restore(folder: str | os.PathLike, like: Any) -> tuple[int, Any] | None:
    """The newest intact (step, tree), with the structure of `like`; None if there is none.

    In an MPI run, all processes restore the same step: the minimum of the newest intact steps that they find.

    Raises ValueError if the file does not have as many leaves as `like`.
    """
    leaves, structure = tree_flatten(like)
    found = {step: path for step, path in _steps(Path(folder)) if _read(path) is not None}
    step = max(found, default=-1)
    if RUN:
        world = RUN["world"].whole
        step = int(world.reduce(np.array([step]), "min", "the step to go on from")[0])
    if step < 0:
        return None
    data = _read(found[step])
    with np.load(io.BytesIO(data)) as held:
        arrays = [held[f"arr_{k}"] for k in range(len(held.files))]
    if len(arrays) != len(leaves):
        raise ValueError(f"{found[step].name} has {len(arrays)} leaves, and {len(leaves)} are wanted")
    return step, tree_unflatten(structure, [_like(array, leaf) for array, leaf in zip(arrays, leaves)])


def _like(array, leaf):
    """An array as a Python number or NumPy scalar, if the leaf is one."""
    if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        return type(leaf)(array[()])
    return array if isinstance(leaf, np.ndarray) else array[()]


def _steps(folder):
    for path in folder.glob("step_*.npz") if folder.is_dir() else ():
        yield int(path.stem.split("_")[1]), path


def _read(path):
    """The content of a file; None if it cannot be read or its hash does not match."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None


def _to_disk(folder):
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
