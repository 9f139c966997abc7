# SPDX-License-Identifier: Apache-2.0
"""The passes over a function's loops for a device: loops are fused if their passes stay independent.

Passes that only make one processor fast (rows in one pass, SIMD lanes, reuse of memory) are left out: a device has many
threads, which wait for memory.

>>> import ast
>>> from gradscribe.codegen.loops.pipeline import optimised
>>> from gradscribe.codegen.loops.trees import from_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n, 9), np.float64)
...     for i in range(n):
...         for j in range(9):
...             z[i, j] = x[i, j] * y[i, j]
...     column = np.zeros((9,), np.float64)
...     for i in range(n):
...         for j in range(9):
...             column[j] += z[i, j]
...     total = 0.0
...     for i in range(n):
...         for j in range(9):
...             total += z[i, j]
...     return (column, total)
... ''').body[0]
>>> print(optimised(from_tree(tree, {"x": ("float64", 2), "y": ("float64", 2)}), for_threads)[0])
def f(x, y):
    n = x.shape[0]
    column = np.zeros((9,), np.float64)
    for i in range(n):
        for j in range(9):
            column[j] += x[i, j] * y[i, j]
    total = 0.0
    for i in range(n):
        for j in range(9):
            total += x[i, j] * y[i, j]
    return (column, total)
<BLANKLINE>
"""
import functools

from gradscribe.codegen.loops.accumulate import accumulate
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.analysis.costs import Machine
from gradscribe.codegen.loops.analysis.parallelism import Order
from gradscribe.codegen.loops.bounds import without_checks
from gradscribe.codegen.loops.contraction import contract
from gradscribe.codegen.loops.copies import propagate_copies
from gradscribe.codegen.loops.direction import counts_down, upward
from gradscribe.codegen.loops.flat_lists import flatten_lists
from gradscribe.codegen.loops.form import For, Function, statements
from gradscribe.codegen.loops.fusion import Fusion
from gradscribe.codegen.loops.piecewise import in_one_step, write_out_tables
from gradscribe.codegen.loops.rematerialise import rematerialise
from gradscribe.codegen.loops.row_values import compute_in_each_loop
from gradscribe.codegen.loops.scalar_replacement import replace_short_arrays
from gradscribe.codegen.loops.shapes import is_counted
from gradscribe.codegen.loops.versions import named_apart
from gradscribe.codegen.loops.view_elimination import eliminate_views, fill_in_place
from gradscribe.codegen.targets.cuda.placement import is_short

# picoseconds of an H200 for an entry in single precision: 4.8e12 bytes and 31e12 instructions of a lane a second; a
# division or a root is ten instructions; NVIDIA H200 data sheet, CUDA C++ Programming Guide (instruction throughput)
DEVICE = Machine(operation=0.032, division=0.32, root=0.32, load=0.83, store=0.83, call=5.0, hides=True)


def for_threads(function: Function) -> None:
    """Runs the passes over a function's loops for a device, in place."""
    named_apart(function)
    propagate_copies(function)
    eliminate_views(function)
    propagate_copies(function)
    accumulate(function)
    flatten_lists(function)
    replace_short_arrays(function, in_passes=True)
    fill_in_place(function)
    if write_out_tables(function):
        without_checks(function)
    in_one_step(function)
    upward(function, Arrays(function).own)
    upward_where_added(function)
    while rematerialise(function, DEVICE, repeated=True):
        pass
    free = fuse(function)
    if rematerialise(function, DEVICE):
        free = fuse(function)
    compute_in_each_loop(function, DEVICE)
    contract(function, functools.partial(may_shrink, free))


def upward_where_added(function):
    """Reverses loops that count down to count up, also if several passes add to one entry."""
    for loop in list(statements(function.block)):
        if isinstance(loop, For) and counts_down(loop):
            before, loop.range = loop.range, (loop.count,)
            if loop not in free_loops(function)[1]:
                loop.range = before


def free_loops(function):
    """(Order of a function, {loop: how its passes are combined} of loops whose passes may run in any order)."""
    order = Order(function)
    found = ((s, order.free(s)) for s in statements(function.block) if is_counted(s))
    return order, {loop: free for loop, free in found if free is not None}


def as_wide(first: For, second: For) -> bool:
    """Whether as many passes may run in parallel after two loops are fused; the passes of one inner loop do not count,
    since the threads of a block share them (rows.py).
    """
    ranges = [[loop.range for loop in wide_loops(s, s is first)] for s in (first, second)]
    common = next((k for k, (a, b) in enumerate(zip(*ranges)) if a != b), min(map(len, ranges)))
    return common + 1 >= max(map(len, ranges))


def wide_loops(loop: For, last: bool) -> list:
    """A loop and the loops inside that would be fused next, without short ones, which one thread runs; last: whether
    these are the last statements of their blocks, else the first.
    """
    found = [loop]
    while is_counted(s := found[-1].block[-1 if last else 0]) and not is_short(s):
        found.append(s)
    return found


def fuse(function: Function) -> dict:
    """Fuses loops and keeps their passes independent; returns `free` of free_loops."""
    order, free = free_loops(function)

    def allowed(first, second):
        """Whether both loops and their fusion have passes that may run in any order, or neither of the loops has."""
        one, other = free.get(first), free.get(second)
        if one is None or other is None:
            return one is other and not any(s in free for s in statements([*first.block, *second.block]))
        if one.atomic or other.atomic or not as_wide(first, second):
            return False
        return order.entries(For(first.index, first.range, [*first.block, *second.block])) == set()
    Fusion(function, allowed).run()
    return free


def may_shrink(free, made, uses, axes, loops):
    """An array that independent passes make is contracted to a scalar or stays whole: passes run in any order."""
    return len(axes) == len(made.shape) or not any(free.get(loop) for loop in loops)
