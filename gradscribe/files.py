"""Emitted functions as files that run by themselves."""
import inspect
import os
import types
from pathlib import Path

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError

_WRITTEN_OUT = 4096                 # captured arrays up to this many entries are written into the file


def dump(fn, path: str | os.PathLike, *args, **kwargs) -> Path:
    """Write the emitted source of a transformed function to a module that imports only numpy (and math where used).

    path: a file ending in .py, or a folder, in which the file is named after the function.  args: arguments like those
    of a call, which choose the specialisation; without them that of the last call is written.  Returns the file's path.
    Raises KindError if the function was neither called nor given arguments, or reads an array too large to be written
    out.

    >>> import tempfile, gradscribe as gs
    >>> folder = tempfile.mkdtemp()
    >>> gs.dump(gs.grad(lambda x: x ** 3), folder, 2.0).name
    'grad_lambda.py'
    """
    version_of = getattr(fn, "version_for", None)
    if version_of is None:
        raise KindError(f"{getattr(fn, '__name__', repr(fn))} is not a transformed function", None,
                        "Transform it first: gs.dump(gs.grad(f), path).")
    version = version_of(args, kwargs) if args or kwargs else fn._last
    if version is None:
        raise KindError(f"{fn.__name__} has not been called", None, "Give example arguments: gs.dump(fn, path, *args).")
    if version.emitted is None:
        raise KindError(
            "a compiled function has no readable text of its own", None, "Dump the function that was given to jit."
        )
    path = Path(path)
    file = path if path.suffix == ".py" else path / f"{version.emitted.label}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".py.part")
    temporary.write_text(standalone(version.emitted, fn))
    os.replace(temporary, file)
    return file


def standalone(emitted, fn) -> str:
    """The text of a module with everything that an emitted function needs."""
    lines = [
        f'"""{emitted.label}, written by Gradscribe from {_origin(fn)}.',
        "",
        "This module runs without Gradscribe.",
        '"""',
    ]
    imports, helpers = ["import numpy as np"], []
    for name, value in emitted.namespace.items():
        if isinstance(value, types.ModuleType):
            if name != "scipy":         # import scipy.linalg has it too
                imports.insert(0, f"import {name}")
        elif isinstance(value, np.ndarray):
            helpers.append(_array(name, value))
        elif inspect.isfunction(value) and (value.__module__ or "").startswith("gradscribe.runtime"):
            helpers.append(_bare(value))
        elif inspect.isclass(value) or inspect.isfunction(value):
            imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
        else:
            helpers.append(f"{name} = {value!r}\n")
    lines += [*imports, ""]
    for h in helpers:
        lines += ["", h]
    return "\n".join(lines) + "\n\n" + emitted.body()


def _origin(fn):
    base = fn
    while hasattr(base, "base"):
        base = base.base
    return getattr(base, "__qualname__", None) or repr(base)


def _array(name, value):
    if value.size > _WRITTEN_OUT:
        raise KindError(
            f"{name} has {value.size} entries, too many to be written into a file", None, "Pass it as an argument."
        )
    with np.printoptions(threshold=_WRITTEN_OUT + 1, floatmode="unique", linewidth=110):
        text = np.array2string(value, separator=", ", prefix=f"{name} = np.array(")
    return f"{name} = np.array({text}, dtype=np.{value.dtype.name})\n"


def _bare(function):
    """A helper's text without its doctest."""
    source = inspect.getsource(function)
    head, mark, rest = source.partition('    """')
    doc, mark, body = rest.partition('"""\n')
    return f'{head}    """{doc.strip().splitlines()[0]}"""\n{body}' if mark else source
