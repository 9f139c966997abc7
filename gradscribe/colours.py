# SPDX-License-Identifier: Apache-2.0
"""Emitted text in colours, by Pygments where it is installed: as HTML, and printed to a terminal or a notebook.

>>> from gradscribe.colours import Source
>>> text = Source("return 2 * x")
>>> text == "return 2 * x", f"{text}", str(text)        # a str like any other
(True, 'return 2 * x', 'return 2 * x')
"""
import builtins
import dis
import html
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

ESCAPES = {"k": "\x1b[35m", "n": "\x1b[36m", "s": "\x1b[32m", "c": "\x1b[90m"}     # of the terminal's own palette
PLAIN = "\x1b[0m"


class Source(str):
    """Emitted text: a str, which `print(text)` shows in colours where the output is a terminal or a notebook.

    Nothing else is coloured: not `print(text, file=...)`, which may be a file, nor `str(text)` or a format.  The
    environment variable NO_COLOR leaves the colours out everywhere.
    """
    __slots__ = ()

    def __str__(self) -> str:
        text = str.__str__(self)
        return in_colours(text) if _has_colours(sys.stdout) and _is_print(sys._getframe(1)) else text

    def __reduce__(self):
        return str, (str.__str__(self),)


def in_colours(text: str) -> str:
    """Text with a terminal's escapes for colours; as it is where Pygments is not installed."""
    return "\n".join("".join(f"{ESCAPES[mark]}{part}{PLAIN}" if mark else part for mark, part in line)
                     for line in marked(text.split("\n")))


def spans(lines: list[str]) -> list[str]:
    """Lines as HTML: each token in a span of its class."""
    return ["".join(f'<span class="{mark}">{html.escape(part)}</span>' if mark else html.escape(part)
                    for mark, part in line) for line in marked(lines)]


def marked(lines: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Each line as (class, text) of its parts: "k" of keywords, "n" of numbers, "s" of strings, "c" of comments, ""."""
    try:
        from pygments.lexers import PythonLexer
        from pygments.token import Comment, Keyword, Number, Operator, String
    except ImportError:
        yield from ([("", line)] for line in lines)
        return
    marks = ((Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Operator.Word, "k"))
    line: list[tuple[str, str]] = []
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        mark = next((m for t, m in marks if kind in t), "")
        for k, part in enumerate(text.split("\n")):
            if k:
                yield line
                line = []
            if part:
                line.append((mark, part))
    yield line


def _has_colours(stream) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if os.name == "nt" and "WT_SESSION" not in os.environ:          # a console that may not know escapes
        return False
    try:
        return stream.isatty() or type(stream).__module__ == "ipykernel.iostream"
    except (AttributeError, ValueError):            # there is none, or it is closed
        return False


def _is_print(frame: FrameType) -> bool:
    """Whether a frame is at `print(...)` without keywords, so that what is made into a str goes to sys.stdout.

    The instruction that runs is a plain call, and its text begins with the builtin's name.
    """
    steps: list[Any] = [step for step in dis.get_instructions(frame.f_code) if step.opname not in ("CACHE", "PRECALL")]
    at = next((k for k, step in enumerate(steps) if step.offset == frame.f_lasti), 0)
    if steps[at].opname != "CALL" or steps[at - 1].opname == "KW_NAMES" or steps[at].positions.lineno is None:
        return False
    start = steps[at].positions
    return any(step.argval == "print" and step.opname in ("LOAD_NAME", "LOAD_GLOBAL")
               and step.positions.lineno == start.lineno and step.positions.col_offset == start.col_offset
               for step in steps[:at]) and _meant(frame, "print") is builtins.print


def _meant(frame, name):
    scopes = (frame.f_locals, frame.f_globals, vars(builtins))
    return next((scope[name] for scope in scopes if name in scope), None)
