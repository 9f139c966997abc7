# SPDX-License-Identifier: Apache-2.0
"""Line breaking: a statement that is too wide continues in the next line.

The break is the outermost one that fits: before an operator of the lowest precedence, or after a comma; of several, the
last.  The next line is aligned with the start of the enclosing bracket.  Comments and strings are not broken.

>>> print(broken("    total = 0.25 * (alpha[1:] - alpha[:-1]) + 0.5 * (beta[1:] - beta[:-1]) + gamma", 60))
    total = (0.25 * (alpha[1:] - alpha[:-1])
             + 0.5 * (beta[1:] - beta[:-1]) + gamma)

Source: outermost breaks first, as in Oppen, Prettyprinting, ACM TOPLAS 2(4), 1980.
"""
import io
import tokenize
from typing import NamedTuple

WIDTH = 100
HANGING = 8                         # columns that the next line is indented if a bracket opens far to the right
FAR = 0.6                           # of the width
PRECEDENCE = {"for": 1, "if": 1, "else": 1, "or": 2, "and": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
              "|": 5, "^": 5, "&": 6, "+": 7, "-": 7, "*": 8, "/": 8, "@": 8, "//": 8, "%": 8}
INDEX = 9                           # a comma in an index
LEVELS = 10                         # levels in each bracket
WORDS = {"and", "or", "not", "in", "is", "if", "else", "return", "lambda"}
ASSIGNING = {"=", "+=", "-=", "*=", "/=", "@=", "//=", "%=", "**=", "|=", "&=", "^="}


class Break(NamedTuple):
    """A place where a line may be broken: its level, its column, and the column where the bracket around it begins."""
    level: int
    column: int
    under: int


def broken(line: str, width: int = WIDTH) -> str:
    """A line of a program, broken into several if it is too wide and can be broken."""
    if len(line) <= width or line.lstrip().startswith(("#", '"', "'", "@")):
        return line
    value, breaks = places(line)
    first = [b for b in breaks if b.column <= width]
    if value is not None and min((b.level for b in first), default=LEVELS) < LEVELS:
        start, end = value
        line = f"{line[:start]}({line[start:end]}){line[end:]}"
        breaks = [Break(b.level, b.column + 1, b.under + 1) for b in breaks]
    else:
        breaks = [b for b in breaks if b.level >= LEVELS]
    indent = len(line) - len(line.lstrip())
    lines = [(0, 0)]                # (column where its text begins, columns that it is moved to the left) of each
    while len(line) - lines[-1][1] > width and (left := [b for b in breaks if b.column > lines[-1][0]]):
        start, moved = lines[-1]
        fit = [b for b in left if b.column - moved <= width + 1] or left[:1]
        at = max(fit, key=lambda b: (-b.level, b.column))
        under = at.under - next(m for s, m in reversed(lines) if s <= at.under)
        if under > FAR * width or line.lstrip().startswith("def "):     # a function's name may still change
            under = indent + HANGING
        lines.append((at.column, at.column - under))
    ends = [start for start, _ in lines[1:]] + [len(line)]
    return "\n".join(" " * (start - moved) + line[start:end].rstrip() if start else line[:end].rstrip()
                     for (start, moved), end in zip(lines, ends))


def places(line):
    """((start, end) of the part that may be put into brackets, or None; the possible breaks) of a line."""
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(line.lstrip() + "\n").readline) if t.string.strip()]
    if any(tokenize.tok_name[t.type].startswith("FSTRING") for t in tokens):
        return None, []                 # an f-string is not broken
    indent, opened, found, value, before = len(line) - len(line.lstrip()), [], [], None, None
    head = tokens[0].string
    if head in ("return", "if", "elif", "while"):
        value = indent + len(head) + 1
    for t in tokens:
        column, depth = indent + t.start[1], len(opened)
        under = opened[-1][1] if opened else value
        if t.string in ("(", "[", "{"):
            opened.append((t.string == "[" and _ends_operand(before), column + 1))
        elif t.string in (")", "]", "}"):
            opened.pop()
        elif t.string == "," and under is not None:
            level = INDEX if opened and opened[-1][0] else 0
            found.append(Break(LEVELS * depth + level, column + 2, under))
        elif t.string in ASSIGNING and not opened and head not in ("def", "for", "with"):
            value, found = column + len(t.string) + 1, []
        elif t.string in PRECEDENCE and under is not None and column > under and _ends_operand(before):
            found.append(Break(LEVELS * depth + PRECEDENCE[t.string], column, under))
        before = t
    return None if value is None else (value, len(line) - line.endswith(":")), found


def _ends_operand(token):
    """Whether the token before an operator ends an operand, so that the operator is binary."""
    return token is not None and (token.type in (tokenize.NUMBER, tokenize.STRING) or token.string in (")", "]", "}") or
                                  token.type == tokenize.NAME and token.string not in WORDS)
