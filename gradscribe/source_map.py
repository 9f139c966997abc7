# SPDX-License-Identifier: Apache-2.0
"""gs.source_map: from lines of emitted text to the user's lines, and back."""
import ast
import functools
import inspect
import linecache
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public

if TYPE_CHECKING:
    from gradscribe.transformed import Version


class Place(NamedTuple):
    """A line of the user's: the file, the line from 1, the function."""
    file: str
    line: int
    function: str


class SourceMap:
    """Lines of an emitted text, from 1, and the places that they came from.

    lines: {emitted line: [Place, ...]}, its own statement first, then those that were merged into it; rules,
    identities: {emitted line: [text, ...]}, the rules and identities that made it; `emitted(line, file)`: the emitted
    lines that came from one of the user's.
    """

    def __init__(self, lines: dict[int, list[Place]], rules: dict[int, list[str]], identities: dict[int, list[str]]):
        self.lines, self.rules, self.identities = lines, rules, identities

    def reasons(self, line: int) -> list[str]:
        """The rules and identities that made an emitted line, in words."""
        return [f"rule of {part}" for part in self.rules.get(line, ())] + self.identities.get(line, [])

    def emitted(self, line: int, file: str | None = None) -> list[int]:
        """The emitted lines that a line of the user's files produced."""
        return [k for k, places in sorted(self.lines.items())
                if any(p.line == line and file in (None, p.file) for p in places)]

    def __getitem__(self, line: int) -> list[Place]:
        return self.lines.get(line, [])


@public
def source_map(fn: Any, *args: Any, **kwargs: Any) -> SourceMap:
    """The places in the user's files that the lines of an emitted text came from.

    fn: a transformed function; args: arguments that choose the specialisation; without them, the last call's is used,
    and KindError is raised before any call.  Lines that belong to no statement (imports, headings) are left out.

    >>> import gradscribe as gs
    >>> def cube(x):
    ...     y = x * x
    ...     return y * x
    >>> found = source_map(gs.grad(cube), 2.0)
    >>> gs.grad(cube).source_for(2.0).splitlines()[4], found[5][0].function, found[5][0].line
    ('    y = x * x', 'cube', 2)
    >>> found.emitted(2)
    [5, 6]
    >>> def spread(x):
    ...     top = np.max(x)
    ...     return top + np.log(np.sum(np.exp(x - top)))
    >>> import numpy as np
    >>> source_map(gs.grad(spread), np.ones(3)).reasons(5)
    ['the adjoint of top is zero: its terms sum to 0']
    """
    version = version_of(fn, args, kwargs)
    origins = version.emitted.origins()


    def of_each(told):
        """{line: the texts of all its origins}"""
        return {k: list(dict.fromkeys(t for o in found for t in told(o))) for k, found in origins.items()}
    return SourceMap(of_each(lambda o: [Place(o.file, o.line, o.function)]), of_each(lambda o: o.rules),
                     of_each(lambda o: o.identities))


def version_of(fn: Any, args: tuple, kwargs: dict[str, Any]) -> "Version":
    """The specialisation for arguments, or that of the last call."""
    make = getattr(fn, "version_for", None)
    if make is None:
        raise KindError(f"{getattr(fn, '__name__', repr(fn))} is not a transformed function", None,
                        "Transform it first: gs.grad(f).")
    version = make(args, kwargs) if args or kwargs else fn._last
    if version is None:
        raise KindError(f"{fn.__name__} has not been called", None, "Give example arguments.")
    if version.emitted is None:
        raise KindError("a compiled function has no readable text of its own", None,
                        "Give the function that was given to jit.")
    return version


class Block(NamedTuple):
    """A function of the user's: its file, its first line, its lines."""
    file: str
    start: int
    lines: list[str]


def blocks(function: Any, places: Iterable[Place]) -> list[Block]:
    """The source of a function, and of the functions around the other places."""
    found = []
    try:
        lines, start = inspect.getsourcelines(getattr(function, "fun", getattr(function, "py_func", function)))
        found.append(Block(inspect.getsourcefile(function) or function.__code__.co_filename, start or 1,
                           [line.rstrip("\n") for line in lines]))
    except (OSError, TypeError):
        pass
    for place in dict.fromkeys(places):
        if not any(b.file == place.file and b.start <= place.line < b.start + len(b.lines) for b in found):
            extent = extent_of(place.file, place.line)
            if extent is not None:
                first, last = extent
                text = linecache.getlines(place.file)[first - 1:last]
                found.append(Block(place.file, first, [line.rstrip("\n") for line in text]))
    return found


def extent_of(file, line):
    """First and last line of the innermost function around a line."""
    inside = [(a, b) for a, b in functions_in(file) if a <= line <= b]
    return min(inside, key=lambda e: e[1] - e[0], default=None)


@functools.lru_cache(64)
def functions_in(file):
    """The first and last lines of all functions in a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    return tuple((n.lineno, n.end_lineno) for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda)))
