# SPDX-License-Identifier: Apache-2.0
"""The time that each line of an emitted function takes, measured by a clock that is read between its statements.

The emitted text is compiled again with a call before each statement.  A call reads the clock when it begins and when it
ends, so that its own time counts for no line; what remains of it, some tens of nanoseconds, is measured and subtracted.
A line that calls a function includes the time of that function, and a loop's head the time in which it takes its next
element.

Source of the idea: R. Kern, line_profiler, which reads the clock in a hook of the interpreter instead.
"""
import ast
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradscribe.transformed import Version

START, CHECK = "__started__", "__at__"


class LineTime(NamedTuple):
    """What a line takes in one call: seconds, and how often control reaches it."""
    seconds: float
    passes: int


class Times(NamedTuple):
    """{line of the emitted text, from 1: its time}; the seconds of a whole call without the clock; the calls made."""
    lines: dict[int, LineTime]
    seconds: float
    calls: int


class TooLong(Exception):
    """One call takes longer than the limit."""


def line_times(version: Version, args: tuple, words: dict[str, Any], budget: float = 0.4, limit: float = 10.0,
               most: int = 50) -> Times:
    """The times of the lines of a version's text in calls with such arguments, medians over the calls.

    version: what `version_for` returns for them; a compiled one has no lines of its own, so only its whole call is
    timed.  The arguments are copied for each call.  budget: seconds after which no other call begins; most: the most
    calls.  Raises TooLong if a call takes longer than `limit` seconds, and what the function itself raises.

    >>> import gradscribe as gs
    >>> def power(x, n):
    ...     y = 1.0
    ...     for _ in range(n):
    ...         y = y * x
    ...     return y
    >>> fn = gs.grad(power)
    >>> times = line_times(fn.version_for((1.5, 7), {}), (1.5, 7), {})
    >>> for line, text in enumerate(fn.source_for(1.5, 7).splitlines(), 1):
    ...     if line in times.lines:
    ...         print(times.lines[line].passes, text)
    1     y_saved = np.empty(n)
    1     y = 1.0
    8     for i in range(n):
    7         y_saved[i] = y
    7         y = y * x
    1     dy = 1.0
    1     dx = 0.0
    8     for i in reversed(range(n)):
    7         dx += dy * y_saved[i]
    7         dy = dy * x
    1     return dx
    """
    clocks = Clocks(limit, len(version.text.splitlines()))
    timed = None if version.emitted is None else with_clock(version, clocks)
    wholes: list[float] = []
    found: list[dict[int, tuple[float, int]]] = []
    begun = time.perf_counter()
    while len(wholes) < most and (not wholes or time.perf_counter() - begun < budget):
        given = _given(version, args, words)
        start = time.perf_counter()
        if timed is None:
            version.function(*given)
            wholes.append(time.perf_counter() - start)
            continue
        clocks.begin()
        timed(*given)
        found.append(clocks.lines)
        given = _given(version, args, words)
        start = time.perf_counter()
        version.function(*given)
        wholes.append(time.perf_counter() - start)
    return Times(_medians(found[len(found) > 1:]), statistics.median(wholes[len(wholes) > 1:]), len(wholes))


def _given(version, args, words):
    """Copies of the arguments, in order, as a version's function takes them."""
    args = copy.deepcopy(args)
    return [*(float(a) if k in version.convert else a for k, a in enumerate(args)), *copy.deepcopy(words).values()]


def _medians(found):
    """{line: its median time} over several calls."""
    return {line: LineTime(statistics.median(f[line][0] if line in f else 0.0 for f in found),
                           int(statistics.median_low(f[line][1] if line in f else 0 for f in found)))
            for line in sorted({line for f in found for line in f})}


# --- the clock --------------------------------------------------------------------------------------------------------

class Clocks:
    """Collects the times of a call, in nanoseconds, and the passes, by line."""

    def __init__(self, limit: float, lines: int = 1):
        """limit: the most seconds of a call; lines: how many the text has."""
        self.limit, self.end, self.length = limit, 0, lines + 1
        self.total: list[int] = []
        self.count: list[int] = []
        self.cost = self._measured()    # what reading the clock adds to each pass

    def begin(self) -> None:
        """Forget what was collected; a call begins."""
        self.total, self.count = [0] * self.length, [0] * self.length
        self.end = time.perf_counter_ns() + int(self.limit * 1e9)

    @property
    def lines(self) -> dict[int, tuple[float, int]]:
        """{line: (seconds, passes)} of what was collected, without what the clock costs."""
        return {k: (max(self.total[k] - self.cost * n, 0) * 1e-9, n) for k, n in enumerate(self.count) if k and n}

    def started(self) -> Callable[[int], None]:
        """The clock of one call of one function: `at(line)` ends the line before and begins this one; 0 ends all."""
        total, count, end, now = self.total, self.count, self.end, time.perf_counter_ns
        last, since = 0, now()

        def at(line):
            nonlocal last, since
            until = now()
            total[last] += until - since
            count[last] += 1
            last = line
            if until > end:
                raise TooLong
            since = now()
        return at

    def _measured(self):
        found = []
        for _ in range(500):
            self.begin()
            at = self.started()
            at(1)
            at(0)
            found.append(self.total[1])
        return min(found)


def with_clock(version: Version, clocks: Clocks) -> Callable:
    """The function of a version, with a call of the clock before each statement; lines are those of `version.text`."""
    emitted = version.emitted
    text = emitted.running()
    tree = ast.parse(text)
    shift = len(emitted.source().splitlines()) - len(text.splitlines())        # both end with the functions
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        if not any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(node)):
            _watch(node, shift)
    space = {"np": np, **emitted.namespace, START: clocks.started}
    exec(compile(ast.fix_missing_locations(tree), f"<timed {emitted.label}>", "exec"), space)
    return space[emitted.label]


def _watch(function, shift):
    begin = ast.parse(f"{CHECK} = {START}()").body
    end = ast.parse(f"{CHECK}(0)").body
    function.body = [*begin, ast.Try(_watched(function.body, shift), [], [], end)]


def _watched(body, shift):
    """A block with a call before each statement, and for a loop's head also where a pass ends."""
    out = []
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):           # functions are watched for themselves
            for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                for name in ("body", "orelse", "finalbody"):
                    if getattr(part, name, None):
                        setattr(part, name, _watched(getattr(part, name), shift))
        if isinstance(node, (ast.For, ast.While)):
            node.body.append(_mark(node, shift))
        out += [node] if isinstance(node, (ast.Global, ast.Nonlocal)) else [_mark(node, shift), node]
    return out


def _mark(node, shift):
    return ast.parse(f"{CHECK}({node.lineno + shift})").body[0]
