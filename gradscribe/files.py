# SPDX-License-Identifier: Apache-2.0
"""Emitted functions as files that run by themselves, and whether such files still match their functions."""
import ast
import difflib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gradscribe import recipes
from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.frames import public
from gradscribe.kinds import example
from gradscribe.source_map import version_of
from gradscribe.standing import Module, over_devices
from gradscribe.version import __version__


@public
def dump(fn, path: str | os.PathLike, *args, **kwargs) -> Path:
    """Write the emitted source of a transformed function to a module that imports only numpy (and math where used).

    path: a file ending in .py, or a folder, in which the file is named after the function.  args: arguments like those
    of a call, which choose the specialisation; without them that of the last call is written.  Returns the file's path.
    The file's heading names the function, the transformation, the kinds of arguments and a hash of all that was read,
    from which `check` makes it again.
    Raises KindError if the function was neither called nor given arguments, or reads an array too large to be written
    out.

    >>> import tempfile, gradscribe as gs
    >>> folder = tempfile.mkdtemp()
    >>> gs.dump(gs.grad(lambda x: x ** 3), folder, 2.0).name
    'grad_lambda.py'
    """
    version = version_of(fn, args, kwargs)
    path = Path(path)
    file = path if path.suffix == ".py" else path / f"{version.emitted.label}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".py.part")
    temporary.write_text(standalone(fn, version))
    os.replace(temporary, file)
    return file


class Checked(NamedTuple):
    """What became of a file: state is "same", "differs" or "unchecked"; detail is a unified diff or a reason."""
    path: Path
    state: str
    detail: str = ""


@public
def check(path: str | os.PathLike) -> list[Checked]:
    """Compare written files with what their functions give today; path: a file or a folder.

    A file differs where its function, a helper, a constant or the transformation has changed what would be written, or
    where somebody has edited it.  Versions of packages are not compared, nor comments.  Files that Gradscribe did not
    write are left out.

    >>> import colorsys, tempfile, gradscribe as gs
    >>> file = gs.dump(gs.vjp_of(colorsys.rgb_to_yiq), tempfile.mkdtemp(), (1.0, 0.0, 0.0), 0.2, 0.4, 0.6)
    >>> [c.state for c in check(file)]
    ['same']
    """
    return [c for c in map(checked, files_in(path)) if c is not None]


def files_in(path: str | os.PathLike) -> list[Path]:
    """A file, or the files of a folder."""
    path = Path(path)
    if not path.exists():
        raise KindError(f"{path} does not exist")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def checked(file: Path) -> "Checked | None":
    """What `check` says of one file; None if Gradscribe did not write it."""
    text = file.read_text(encoding="utf-8")
    told = heading_of(text)
    return None if told is None else Checked(file, *_compared(text, told, file))


def _compared(text, told, file):
    if "function" not in told or "arguments" not in told or "transformation" not in told:
        return "unchecked", f"its heading names no function that can be imported: {told.get('from', 'unknown')}"
    try:
        fn = recipes.cooked(told["transformation"], recipes.found(told["function"]))
        args, words = example(told["arguments"])
        now = standalone(fn, fn.version_for(args, words))
    except TransformError as error:
        return "differs", f"it cannot be made again: {error}"
    before, after = ([line for line in t.splitlines() if not line.startswith("versions: ")] for t in (text, now))
    if before == after:
        return "same", ""
    diff = difflib.unified_diff(before, after, str(file), f"{told['function']} today", lineterm="")
    return "differs", "\n".join(diff)


def heading_of(text: str) -> dict[str, str] | None:
    """What a file's heading tells; None for one that Gradscribe did not write."""
    if "written by Gradscribe" not in text[:400]:
        return None
    try:
        doc = ast.get_docstring(ast.parse(text)) or ""
    except SyntaxError:
        doc = text
    return dict(line.split(": ", 1) for line in doc.splitlines()[1:] if ": " in line)


def heading(fn, version) -> str:
    """The docstring of a file."""
    function, lines = recipes.users_function(fn), []
    name = recipes.named(function)
    try:
        recipe = recipes.recipe(fn)
    except KindError:
        recipe = None
    if name is not None and recipe is not None and version.kinds is not None:
        lines += [f"function: {name}", f"transformation: {recipe}", f"arguments: {version.kinds}"]
    else:
        lines.append(f"from: {_origin(fn)}")
    lines += [f"source: {recipes.fingerprint(function, version.seen)}",
              f"versions: gradscribe {__version__}, numpy {np.__version__}"]
    last = "Its functions over axes of devices are Gradscribe's." if any(
        map(over_devices, version.emitted.namespace.values())) else "This module runs without Gradscribe."
    return "\n".join([f'"""{version.emitted.label}, written by Gradscribe.', "", *lines, "", last, '"""'])


def standalone(fn, version) -> str:
    """The text of a module with everything that an emitted function needs."""
    module = Module()
    for name, value in version.emitted.namespace.items():
        module.add(name, value)
    return module.text(heading(fn, version), version.emitted.body())


def _origin(fn):
    base = fn
    while hasattr(base, "base"):
        base = base.base
    return getattr(base, "__qualname__", None) or repr(base)
