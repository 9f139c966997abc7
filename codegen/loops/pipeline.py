# SPDX-License-Identifier: Apache-2.0
"""The pass pipeline: the optimisations of lowered loops, in their order, before the loops are printed as Python.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = x[i] * y[i]
...     total = 0.0
...     for i in range(n):
...         total += exp(z[i])
...     return (total,)
... ''').body[0]
>>> print(optimised(from_tree(tree, {"x": ("float64", 1), "y": ("float64", 1)}))[0])
def f(x, y):
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        z = x[i] * y[i]
        total += exp(z)
    return (total,)
<BLANKLINE>
"""
from collections.abc import Callable
from typing import Any

from gradscribe.codegen.loops.allocation import hoist_allocations
from gradscribe.codegen.loops.analysis.arrays import Arrays
from gradscribe.codegen.loops.bounds import without_checks
from gradscribe.codegen.loops.buffer_reuse import reuse_buffers, update_in_place
from gradscribe.codegen.loops.contraction import contract
from gradscribe.codegen.loops.copies import propagate_copies
from gradscribe.codegen.loops.dead_stores import without_dead_fills
from gradscribe.codegen.loops.direction import upward
from gradscribe.codegen.loops.form import Function
from gradscribe.codegen.loops.fusion import Fusion
from gradscribe.codegen.loops.gather import gather
from gradscribe.codegen.loops.interchange import interchange
from gradscribe.codegen.loops.invariant_nests import hoist_nests
from gradscribe.codegen.loops.invariants import move_invariants
from gradscribe.codegen.loops.layout import lay_out
from gradscribe.codegen.loops.matrix_products import find_products
from gradscribe.codegen.loops.peephole import by_identities
from gradscribe.codegen.loops.piecewise import write_out_tables
from gradscribe.codegen.loops.powers import reduce_powers
from gradscribe.codegen.loops.products import place_products
from gradscribe.codegen.loops.reciprocals import reciprocals
from gradscribe.codegen.loops.reductions import sums_of_numbers
from gradscribe.codegen.loops.rematerialise import rematerialise
from gradscribe.codegen.loops.scalar_replacement import replace_short_arrays
from gradscribe.codegen.loops.simd_while import in_lanes
from gradscribe.codegen.loops.simplify import simplify
from gradscribe.codegen.loops.splitting import split
from gradscribe.codegen.loops.tables import tabulate
from gradscribe.codegen.loops.threads import spread
from gradscribe.codegen.loops.trees import printed, to_tree
from gradscribe.codegen.loops.vector_math import in_loops
from gradscribe.codegen.loops.verify import verify
from gradscribe.codegen.loops.versions import named_apart
from gradscribe.codegen.loops.view_elimination import eliminate_views, fill_in_place
from gradscribe.codegen.loops.webs import webs_apart


def optimised(function: Function, passes: Callable[..., Any] | None = None) -> tuple:
    """The text of a function after the passes, and for each of its lines the place in the user's source.

    passes: the passes to run on the function, by default for_cpu.
    """
    optimise(function, passes or for_cpu)
    lines: list = []
    printed(to_tree(function).body, 1, lines)
    head = f"def {function.name}({', '.join(function.params)}):"
    return "\n".join([head, *(line for line, _ in lines)]) + "\n", [None, *(origin for _, origin in lines)]


def optimise(function: Function, passes: Callable[[Function], None]) -> None:
    """Run passes on a function as lowering leaves it, and verify it before and after."""
    verify(function, "lowering")
    webs_apart(function)
    without_checks(function)
    by_identities(function)
    passes(function)
    verify(function, "the last pass")


def for_cpu(function: Function, parallel: bool = False, any_order: bool = True,
            looked_at: Callable[[Function], object] = id) -> None:
    """The passes for the CPU.

    parallel: whether to run loops on several cores; any_order: whether sums may be reassociated; looked_at: is called
    with the function once it has no views; it may raise.
    """
    named_apart(function)
    propagate_copies(function)
    eliminate_views(function)
    propagate_copies(function)
    simplify(function)
    looked_at(function)
    if write_out_tables(function):
        without_checks(function)
    split(function)
    replace_short_arrays(function)
    fill_in_place(function)
    without_dead_fills(function)
    upward(function, Arrays(function).own)
    gather(function)
    Fusion(function).run()
    if rematerialise(function):
        Fusion(function).run()
    contract(function)
    if simplify(function):
        Fusion(function).run()
        contract(function)
    hoist_nests(function)
    if any_order:
        find_products(function)
    tabulate(function)
    lay_out(function)
    interchange(function)
    if any_order:
        sums_of_numbers(function)
        reciprocals(function)
    if not parallel:
        in_lanes(function)
    if any_order:
        reduce_powers(function)
    move_invariants(function)
    in_loops(function)
    if parallel:
        spread(function, any_order)
    update_in_place(function)
    propagate_copies(function)
    place_products(function, any_order)
    reuse_buffers(function)
    hoist_allocations(function)
