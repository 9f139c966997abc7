# SPDX-License-Identifier: Apache-2.0
"""Index-set splitting: the first and last passes of a loop are peeled off if its indices wrap around an axis.

`x[(i + 1) % n]` is `x[i + 1]` in all passes but the last.  That one is peeled off, so that no pass of the loop divides,
and accesses are contiguous.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     for i in range(n):
...         y[i] = x[place((i + 1) % n, n)] - x[place((i - 1) % n, n)]''').body[0]
>>> function = from_tree(tree, {"x": ("float64", 1), "y": ("float64", 1)})
>>> split(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    if n >= 2:
        y[0] = x[1] - x[n - 1]
        for i in range(n - 2):
            y[i + 1] = x[i + 2] - x[i]
        y[n - 1] = x[0] - x[n - 2]
    else:
        for i in range(n):
            y[i] = x[place((i + 1) % n, n)] - x[place((i - 1) % n, n)]

Source: M. Wolfe, High Performance Compilers for Parallel Computing, 1996, section 9.4 (index-set splitting, peeling).
"""
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    Break,
    Call,
    Compare,
    Const,
    Continue,
    For,
    Function,
    If,
    Let,
    Name,
    Op,
    Unpack,
    While,
    all_blocks,
    all_names,
    change,
    copied,
    expressions,
    names_in,
    names_of,
    rebuilt,
    renamed,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.shapes import replace_in

MOST, FAR = 2, 3                        # passes to peel at an end, at most; a distance that no neighbour has


def split(function: Function) -> None:
    """Change the innermost loops of a function in place."""
    for block in list(all_blocks(function)):
        for loop in [s for s in block if isinstance(s, For)]:
            ends = ends_of(loop)
            if ends is not None:
                replace_in(block, loop, written(function, loop, *ends))


def ends_of(loop):
    """(first, last): the numbers of passes at both ends whose neighbours wrap around; None if there are none."""
    count, inner = loop.count, list(statements(loop.block))
    if loop.kind != "range" or count is None or not isinstance(count, (Name, Const)) or any(
            isinstance(s, (For, While, Break, Continue, Unpack)) for s in inner) or not (
            names_in(count) | {loop.index}).isdisjoint(set_in(loop.block)):
        return None
    shifts = {shift for s in inner for e in expressions(s) for n in walk(e)
              if (shift := around_axis(n, loop)) is not None}
    first, last = max((-c for c in shifts), default=0), max(shifts, default=0)
    first, last = max(first, 0), max(last, 0)
    return (first, last) if 0 < first + last and max(first, last) <= MOST and not (
        isinstance(count, Const) and count.value <= first + last) else None


def around_axis(e, loop):
    """The distance in (index + distance) % count, of the index and the number of passes of a loop; or None."""
    if not isinstance(e, Op) or e.op != "%" or e.args[1] != loop.count or not isinstance(e.args[0], Op):
        return None
    op, args = e.args[0].op, e.args[0].args
    if op not in ("+", "-") or len(args) != 2:
        return None
    index, distance = args if isinstance(args[1], Const) else args[::-1] if op == "+" else (None, None)
    if index != Name(loop.index) or not isinstance(distance, Const) or type(distance.value) is not int:
        return None
    return distance.value if op == "+" else -distance.value


def written(function, loop, first, last):
    """The statements that replace a loop; first, last: the numbers of passes to peel at both ends."""
    count, index = loop.count, Name(loop.index)

    def at(start, offset):
        """start + offset; start is an index, a length, or None for 0."""
        if start is None or offset == 0:
            return Const(offset) if start is None else start
        if isinstance(start, Const):
            return Const(start.value + offset)
        return Op("+" if offset > 0 else "-", (start, Const(abs(offset))))

    def a_pass(start, offset, low, high, alone=True):
        """The pass with index start + offset: neighbours at distances below `low` are before the beginning of the axis,
        those from `high` on after its end.
        """
        def new(e):
            if isinstance(e, Call) and e.function == "place" and e.args[1] == count and around_axis(
                    e.args[0], loop) is not None:
                return new(e.args[0])
            shift = around_axis(e, loop)
            if shift is not None:
                if shift < low:
                    return at(count, offset + shift)
                return Const(offset + shift) if shift >= high else at(start, offset + shift)
            if isinstance(e, Op) and e.op in ("+", "-") and len(e.args) == 2 and e.args[0] == index and isinstance(
                    e.args[1], Const) and type(e.args[1].value) is int:
                return at(start, offset + (e.args[1].value if e.op == "+" else -e.args[1].value))
            return at(start, offset) if e == index else rebuilt(e, new)
        made = list(map(copied, loop.block))
        names = {n: unused(n, taken) for n in sorted(set_in(made) - outside)} if alone else {}
        for s in statements(made):
            change(s, lambda e: renamed(new(e), names))
            if getattr(s, "name", None) in names:
                s.name = names[s.name]
        function.types.update({new: function.types[n] for n, new in names.items() if n in function.types})
        return made
    taken, inside = all_names(function), set(statements([loop]))
    outside = {n for s in statements(function.block) if s not in inside for n in names_of(s)} | read_first(loop)
    begin = [a_pass(None, k, -k, FAR) for k in range(first)]
    end = [a_pass(count, k - last, -FAR, last - k) for k in range(last)]
    rest = at(count, -first - last)
    middle = a_pass(index, first, -FAR, FAR, alone=False)
    steps = (rest,) if len(loop.range) == 1 else (at(rest, -1), *loop.range[1:])
    main = For(loop.index, steps, middle, loop.kind, loop.origin)
    if len(loop.range) == 1:
        made = [s for part in begin for s in part] + [main] + [s for part in end for s in part]
    else:
        made = [s for part in end[::-1] for s in part] + [main] + [s for part in begin[::-1] for s in part]
    if isinstance(count, Const) or Ranges(function).at_least(count, first + last, loop):
        return made
    return [If(Compare((">=",), (count, Const(first + last))), made, [loop], loop.origin)]


def read_first(loop):
    """Names that a pass may read before it sets them: they come from the previous pass."""
    read, sets = set(), set()
    for s in statements(loop.block):
        read |= names_of(s) - sets
        if isinstance(s, Let) and s in loop.block:
            sets.add(s.name)
    return read
