# SPDX-License-Identifier: Apache-2.0
"""Notebooks: names of cells in messages, and the rendering of errors in a cell.

Nothing is imported: if IPython runs, it is in sys.modules.
"""
import linecache
import os
import re
import sys
import traceback

RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
SHELLS = ("IPython", "ipykernel")


def shell():
    """The running IPython shell; None without one."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return found() if found is not None else None


def place(file: str, line: int) -> str:
    """A line in messages: model.py:14, or for a cell, as in IPython, Cell In[3], line 2."""
    name = getattr(getattr(shell(), "compile", None), "format_code_name", lambda file: None)(file)
    if name is not None:
        return f"{' '.join(name)}, line {line}"
    return f"{file if file.startswith('<') else os.path.basename(file)}:{line}"


def printable(text: str) -> str:
    """A text in which control characters of terminals are escaped.

    >>> print(printable("a = '\\x1b[2J'"))
    a = '\\x1b[2J'
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: ascii(found[0])[1:-1], text)


def rendered(error: BaseException) -> list[str]:
    """The lines that a cell shows for an error: the calls, the class and the message, its carets in red."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None or os.environ.get("GRADSCRIBE_TRACEBACK") == "full":
        lines = "".join(traceback.format_exception(error)).splitlines()
    else:
        lines = []
        for frame, line in traceback.walk_tb(error.__traceback__):
            if (frame.f_globals.get("__name__") or "").partition(".")[0] not in SHELLS:
                file, name = frame.f_code.co_filename, frame.f_code.co_name
                lines.append(place(file, line) + ("" if name.startswith("<") else f", in {name}"))
                lines.append("    " + linecache.getline(file, line, frame.f_globals).strip())
        lines += ["", *f"{type(error).__name__}: {error}".split("\n")]
    lines = list(map(printable, lines))
    if str(getattr(shell(), "colors", "")).lower() == "nocolor":
        return lines
    return [_coloured(line, type(error).__name__) for line in lines]


def _coloured(line, name):
    if re.fullmatch(r" +[~^]+", line) or line.startswith(f"{name}: "):
        return f"{RED}{line}{PLAIN}"
    return f"{GREEN}{line}{PLAIN}" if re.match(r" *(Cell In\[\d+\], line \d+|\S+:\d+, in \S+)", line) else line
