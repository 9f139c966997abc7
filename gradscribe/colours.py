# SPDX-License-Identifier: Apache-2.0
"""Syntax colours for emitted text: as HTML, and printed to a terminal or a notebook.  Plain without Pygments.

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

ESCAPES = {"k": "\x1b[35m", "n": "\x1b[36m", "s": "\x1b[32m", "c": "\x1b[90m"}     # colours of the terminal's palette
PLAIN = "\x1b[0m"


class Source(str):
    """Emitted text: a str that `print(text)` shows in colours in a terminal or a notebook.

    Only that call is coloured: not `print(text, file=...)`, `str(text)` or formatting.  The environment variable
    NO_COLOR switches colours off.
    """
    __slots__ = ()

    def __str__(self) -> str:
        text = str.__str__(self)
        return in_colours(text) if _has_colours(sys.stdout) and _is_print(sys._getframe(1)) else text

    def __reduce__(self):
        return str, (str.__str__(self),)


def in_colours(text: str) -> str:
    """Text with a terminal's escape sequences for colours; unchanged without Pygments."""
    return "\n".join("".join(f"{ESCAPES[mark]}{part}{PLAIN}" if mark else part for mark, part in line)
                     for line in marked(text.split("\n")))


def spans(lines: list[str]) -> list[str]:
    """Lines as HTML: each token in a span of its class."""
    return ["".join(f'<span class="{mark}">{html.escape(part)}</span>' if mark else html.escape(part)
                    for mark, part in line) for line in marked(lines)]


def marked(lines: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Each line as (class, text) pairs; classes: "k" keyword, "n" number, "s" string, "c" comment, "" anything else."""
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
    if os.name == "nt" and "WT_SESSION" not in os.environ:          # a console that may not support escapes
        return False
    try:
        return stream.isatty() or type(stream).__module__ == "ipykernel.iostream"
    except (AttributeError, ValueError):            # no stream, or a closed one
        return False


def _is_print(frame: FrameType) -> bool:
    """Whether a frame is executing `print(...)` without keywords, which writes to sys.stdout.

    The current instruction is then a plain call, and its source begins with the builtin's name.
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
