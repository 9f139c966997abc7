# SPDX-License-Identifier: Apache-2.0
"""The fast path of gs.pmap: arguments like those of an earlier call go straight to the threads.

The general path flattens the arguments, finds the version, and has each device call it.  Here one generated Python
function does it for all devices: it reads the leaves of the arguments by their paths, passes each device its entries,
and stacks the results; codegen/launching.py runs the compiled code.
"""
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gradscribe.ast_transform.core.form import Pack
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.jit import _rebuilt, _results, taken_apart
from gradscribe.transformed import Version
from gradscribe.tree_util import tree_flatten


class Place:
    """A placeholder for a leaf of the result."""

    def __init__(self, number):
        self.number = number


def step_of(version: Version, axes: list, size: int, launcher: Any, collected: Callable, axes_of_result: Callable,
            deadline: Callable) -> Callable | None:
    """A function of a call's arguments that runs a version on `size` devices; None if there is no fast path.

    axes: for each argument a tree of the axes of its leaves, -1 for one that is not mapped; launcher: see
    launching.Launcher; collected(trees): the result from those of all devices; axes_of_result(tree): the axis of each
    leaf of a result; deadline(): seconds.
    """
    compiled, result = version.compiled, version.normal_form.result
    if any(kind == "literal" for kind, _ in compiled.results) or grows(result):
        return None
    space = {"run": launcher.run, "collected": collected, "laid": laid, "deadline": deadline, "__name__": __name__}
    parameters, paths = taken_apart(*cast(tuple[Any, Any], version.leaves), space)
    named = dict(zip(parameters, axes))
    given: list[list[str]]
    taken, given = [], [[] for _ in range(size)]
    for k, path in enumerate(paths):
        taken.append(f"    v{k} = {path}\n")
        axis = eval(path, dict(space), named)
        for rank, leaves in enumerate(given):
            leaves.append(f"v{k}" if axis < 0 else f"v{k}[{':, ' * axis}{rank}]")
    space |= {f"e{k}": value for k, value in enumerate(compiled.extra)}
    rows = ", ".join(f"({''.join(f'{leaf}, ' for leaf in [*leaves, *(f'e{k}' for k in range(len(compiled.extra)))])})"
                     for leaves in given)
    laid_out = where(result, len(compiled.results), axes_of_result)
    if laid_out is None:
        return None
    of_ranks = [_results(compiled, space, f"r{rank}") for rank in range(size)]
    places = [of_ranks[0][k] if axis is None else f"laid({axis}, ({''.join(f'{r[k]}, ' for r in of_ranks)}))"
              for k, axis in enumerate(laid_out)]
    text = (f"def step({', '.join(parameters)}):\n{''.join(taken)}"
            f"    found = run(({rows},), ({''.join(f'{p}, ' for p in parameters)}), deadline())\n"
            f"    if type(found) is list:\n"
            f"        return collected([value if r0 is None else tree(r0) for r0, value in found])\n"
            f"    {''.join(f'r{rank}, ' for rank in range(size))}= found\n"
            f"    return {_rebuilt(result, iter(places), space)}\n\n"
            f"def tree(r0):\n    return {_rebuilt(result, iter(of_ranks[0]), space)}\n")
    exec(text, space)
    return space["step"]


def grows(node):
    """Whether a result contains lists whose lengths are known only at run time."""
    return isinstance(node, Pack) and (node.kind == "grown" or any(map(grows, node.items)))


def where(result, count, axes_of_result):
    """The axis of each leaf of a result, in the order of compiled code; None if its tree has other leaves."""
    space = {f"leaf_{k}": Place(k) for k in range(count)}
    tree = eval(_rebuilt(result, iter(list(space)), space), space)
    leaves, _ = tree_flatten(tree)
    if not all(isinstance(leaf, Place) for leaf in leaves) or len(leaves) != count:
        return None
    try:
        axes = axes_of_result(tree)
    except KindError:                   # the general path raises it
        return None
    out = [None] * count
    for leaf, axis in zip(leaves, axes):
        out[leaf.number] = axis
    return out


def laid(axis, parts):
    """np.stack, but faster: np.stack takes longer than a short step."""
    first = parts[0]
    if axis != 0 or isinstance(first, np.ndarray) and any(x.shape != first.shape for x in parts):
        return np.stack(parts, axis)
    if not isinstance(first, np.ndarray):
        return np.array(parts)
    out = np.empty((len(parts), *first.shape), first.dtype)
    for k, x in enumerate(parts):
        out[k] = x
    return out
