# SPDX-License-Identifier: Apache-2.0
"""gs.dump and gs.check: write emitted functions to files that need no Gradscribe, and check that they still match."""
import ast
import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradscribe import recipes
from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.codegen.standing import over_devices
from gradscribe.frames import public
from gradscribe.kinds import example
from gradscribe.source_map import version_of
from gradscribe.transformed import Version
from gradscribe.trial import UNFINISHED, copied, differ, outcome, run_apart
from gradscribe.version import __version__

GIVEN, EXAMPLE = "the arguments given", "an example of these kinds"
NOT_COMPARED = ("versions: ", "verified: ")
LONGEST = 10                            # time limit in seconds for an example in the fresh interpreter


@public
def dump(fn: Any, path: str | os.PathLike, *args: Any, **kwargs: Any) -> Path:
    """Write the emitted source of a transformed function to a module that runs without Gradscribe.

    The file imports numpy (and math or scipy where used) and contains everything else that it reads: helpers,
    constants, and the user's own functions and classes.  Before it is written, it is run in a fresh interpreter without
    Gradscribe, and must return the same result there as here.

    path: a file ending in .py, or a folder, in which the file is named after the function.  args: example arguments,
    which choose the specialisation and on which the file is run; without them, the last call's specialisation is
    written and run on an example of its kinds.  Returns the file's path.
    The file's heading names the function, the transformation, the kinds of arguments, how the file was verified, and a
    hash of all source that was read; `check` makes the file again from it.
    Raises KindError if the function was neither called nor given arguments, if it reads an array too large to be
    written out or an object without source, or if the results differ.

    >>> import tempfile, gradscribe as gs
    >>> folder = tempfile.mkdtemp()
    >>> gs.dump(gs.grad(lambda x: x ** 3), folder, 2.0).name
    'grad_lambda.py'
    """
    if hasattr(fn, "given"):
        args, kwargs = fn.given(args, kwargs)
    version = version_of(fn, args, kwargs)
    if args or kwargs:
        return written(fn, version, path, args, kwargs, GIVEN)
    if version.kinds is None:
        raise KindError(f"the last call's arguments of {fn.__name__} have no example to run the file on", None,
                        "Give arguments like them: gs.dump(fn, path, *args).")
    return written(fn, version, path, *example(version.kinds), EXAMPLE)


def written(fn: Any, version: Version, path: str | os.PathLike, args: tuple, words: dict[str, Any], on: str) -> Path:
    """Run a file in a fresh interpreter and write it; on: a description of its arguments, for the heading."""
    path = Path(path)
    file = path if path.suffix == ".py" else path / f"{version.emitted.label}.py"
    alone = not needs_devices(version)
    if on == EXAMPLE and alone:         # a loop may not end for arbitrary numbers
        ended, = run_apart([job(standalone(fn, version, ""), version, args, words)], seconds=LONGEST)
        if ended[0] == UNFINISHED:
            raise KindError(f"{version.emitted.label} has not ended after {LONGEST} s on an example of its kinds", None,
                            "Give arguments like those of a call: gs.dump(fn, path, *args).")
    wanted = here(version, args, words) if alone else None
    text = standalone(fn, version, verified(wanted, on))
    found, = run_apart([job(text, version, args, words)], ("gradscribe",) * alone)
    wrong = differ(found, wanted or ("gave", []))
    if wrong:
        raise KindError(f"{version.emitted.label} as a file is not what it is here: {wrong}", None,
                        "What it reads must be there without Gradscribe: keep it in a module that does not import\n"
                        "Gradscribe, or pass it as an argument.")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".py.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
    return file


def needs_devices(version) -> bool:
    """Whether a version runs on several devices."""
    return any(map(over_devices, version.emitted.namespace.values()))


def here(version, args, words):
    """The outcome of the emitted function in this process, on copies of all that it may change."""
    space = {"np": np, "__name__": "gradscribe.trial", **{k: copied(v) for k, v in version.emitted.namespace.items()}}
    exec(compile(version.emitted.running(), f"<gradscribe {version.emitted.label}>", "exec"), space)
    return outcome(space[version.emitted.label], tuple(map(copied, in_places(version, args, words))))


def in_places(version, args, words):
    """The arguments of a call as positional arguments of the emitted function."""
    return [*(float(a) if k in version.convert else a for k, a in enumerate(args)), *words.values()]


def job(text, version, args, words):
    """A job for `run_apart`; a file that needs devices is only imported."""
    if needs_devices(version):
        return text, None, ()
    return text, version.emitted.label, tuple(in_places(version, args, words))


def verified(wanted, on):
    """How a file was verified, in words."""
    if wanted is None:
        return "imported in a fresh interpreter with Gradscribe; not run, which needs its devices"
    same = "the same numbers" if wanted[0] == "gave" else f"the same {wanted[1].partition(':')[0]}"
    return f"{same} in a fresh interpreter without Gradscribe, for {on}"


class Checked(NamedTuple):
    """The result of a check: state is "same", "differs" or "unchecked"; detail is a unified diff or a reason."""
    path: Path
    state: str
    detail: str = ""


@public
def check(path: str | os.PathLike) -> list[Checked]:
    """Check that files written by gs.dump still match their functions; path: a file or a folder.

    A file differs if a change of its function, a helper, a constant or the transformation would now write another text,
    if it was edited, or if it fails or returns other numbers in a fresh interpreter without Gradscribe, on an example
    of its kinds.  It is unchecked, with the reason, if its heading names no function that can be imported.  Versions of
    packages and comments in the functions are not compared.  Files that Gradscribe did not write are left out.

    >>> import colorsys, tempfile, gradscribe as gs
    >>> file = gs.dump(gs.vjp_of(colorsys.rgb_to_yiq), tempfile.mkdtemp(), (1.0, 0.0, 0.0), 0.2, 0.4, 0.6)
    >>> [c.state for c in check(file)]
    ['same']
    """
    return checked(files_in(path))


def files_in(path: str | os.PathLike) -> list[Path]:
    """The file itself, or the Python files of a folder."""
    path = Path(path)
    if not path.exists():
        raise KindError(f"{path} does not exist")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def checked(files: Iterable[Path]) -> list[Checked]:
    """The results for files that Gradscribe wrote: texts are compared one by one, then all run in one interpreter."""
    found = [each for each in map(compared, files) if each is not None]
    runs = [(k, run) for k, (_, run) in enumerate(found) if run is not None]
    out = [c for c, _ in found]
    for (k, (_, wanted)), outcome_ in zip(runs, run_apart([run[0] for _, run in runs])):
        wrong = differ(outcome_, wanted)
        if wrong:
            out[k] = out[k]._replace(state="differs", detail=f"in a fresh interpreter without Gradscribe {wrong}")
    return out


def compared(file: Path):
    """(result of comparing a file's text, its job and the outcome to expect); None if Gradscribe did not write it."""
    text = file.read_text(encoding="utf-8")
    told = heading_of(text)
    if told is None:
        return None
    if "function" not in told or "arguments" not in told or "transformation" not in told:
        return Checked(file, "unchecked", "its heading names no function that can be imported: "
                       f"{told.get('from', 'unknown')}"), None
    try:
        fn = recipes.cooked(told["transformation"], recipes.found(told["function"]))
        args, words = example(told["arguments"])
        version = fn.version_for(*fn.given(args, words))
        now = standalone(fn, version, "")
    except TransformError as error:
        gone = isinstance(error.__cause__, recipes.NotImported)
        return Checked(file, "unchecked" if gone else "differs", f"it cannot be made again: {error}"), None
    before, after = ([line for line in t.splitlines() if not line.startswith(NOT_COMPARED)] for t in (text, now))
    if before == after:
        args, words = fn.given(args, words)
        return Checked(file, "same"), (job(text, version, args, words), here(version, args, words))
    diff = difflib.unified_diff(before, after, str(file), f"{told['function']} today", lineterm="")
    return Checked(file, "differs", "\n".join(diff)), None


def heading_of(text: str) -> dict[str, str] | None:
    """The entries of a file's heading; None if Gradscribe did not write it."""
    if "written by Gradscribe" not in text[:400]:
        return None
    try:
        doc = ast.get_docstring(ast.parse(text)) or ""
    except SyntaxError:
        doc = text
    return dict(line.split(": ", 1) for line in doc.splitlines()[1:] if ": " in line)


def heading(fn, version, how: str) -> str:
    """The docstring of a file; how: the way in which it was verified."""
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
              f"versions: gradscribe {__version__}, numpy {np.__version__}", f"verified: {how}"]
    last = "Its functions over axes of devices are Gradscribe's." if needs_devices(version) else \
        "This module runs without Gradscribe."
    return "\n".join([f'"""{version.emitted.label}, written by Gradscribe.', "", *lines, "", last, '"""'])


def standalone(fn, version, how: str) -> str:
    """The text of a module with all that an emitted function needs; how: the way in which it was verified."""
    return version.emitted.standalone(heading(fn, version, how))


def _origin(fn):
    base = fn
    while hasattr(base, "base"):
        base = base.base
    return getattr(base, "__qualname__", None) or repr(base)
