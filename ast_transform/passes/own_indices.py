# SPDX-License-Identifier: Apache-2.0
"""Values that a loop saves are stored at its own index, instead of at a separate count of its iterations.

A loop over range(1, n) saves into n entries, of which the first is not used; no line counts the iterations.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(x, c):
...     y = 1.0
...     for t in range(1, len(c)):
...         y = np.sin(y) * x * c[t]
...     return y
>>> print(gs.grad(f).source_for(0.5, np.ones(4)))
import numpy as np
<BLANKLINE>
<BLANKLINE>
def grad_f(x, c):
    y_saved = np.empty(c.shape[0])
    y = 1.0
    for t in range(1, c.shape[0]):
        y_saved[t] = y
        y = np.sin(y) * x * c[t]
<BLANKLINE>
    dy = 1.0
    dx = 0.0
    for t in reversed(range(1, c.shape[0])):
        # y = np.sin(y) * x * c[t]
        prod_dy = dy * c[t]
        y = y_saved[t]
        dx += prod_dy * np.sin(y)
        dy = prod_dy * x * np.cos(y)
    return dx
<BLANKLINE>

Source: induction variable substitution, Aho, Lam, Sethi and Ullman, Compilers (2006), section 9.1.
"""
import builtins

from gradscribe.ast_transform.core.alias import parts_of, reads, record_of, role
from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Var,
    While,
    all_reads,
    blocks,
    is_application,
    operands,
    read_counts,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put, run_length
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.passes.simplify import drop_dead

UNUSED = 16                         # the most entries at the beginning that no iteration uses


def by_own_index(function: Function) -> Function:
    """The function, changed in place: arrays of saved values have an entry for each index, not for each iteration."""
    counts = {s.targets[0]: s.value.args for s in walk(function.body) if isinstance(s, Let) and is_application(
        s.value, run_length)}
    if not counts:
        return function
    own = {}                            # iteration count -> (the index of the range, the range's ends, the loop)
    for step in walk(function.body):
        if isinstance(step, For) and step.count in counts:
            ends = counts[step.count]
            index = next((v for v, source in step.items if is_application(source, range) and source.args == ends), None)
            own[step.index] = index or step.index.like(), ends, step
    naturals, changed = Naturals(function.body), False

    def visit(block):
        nonlocal changed
        for k in reversed(range(len(block))):
            for inner in blocks(block[k]):
                visit(inner)
            changed |= _widened(block, k, counts, own, naturals, function)

    visit(function.body)
    if changed:
        times = read_counts(function)
        for index, (_, _, loop) in own.items():
            if not times.get(index):
                loop.index = Var("number", index.fact, index.kind)      # its name is free for the index that is read
        function.body = drop_dead(function.body, function.result)
    return function


def _widened(block, k, counts, own, naturals, function):
    """Whether an allocation got an entry for each index of a loop; then all uses of the array were changed with it."""
    step = block[k]
    if not isinstance(step, Let) or len(step.targets) != 1 or step.targets[0].kind != SAVED or not isinstance(
            step.value, Apply) or not _allocates(step.value):
        return False
    lengths = list(step.value.args[0].items) if isinstance(step.value.args[0], Pack) else [step.value.args[0]]
    axes = [a for a, n in enumerate(lengths) if n in counts]
    places = _places(step.targets[0], function) if axes else None
    if places is None:
        return False
    made, moved = [], []
    for a in axes:
        found = [own.get(parts[a]) if len(parts := parts_of(p.args[1])) > a and isinstance(parts[a], Var) else None
                 for _, p in places]
        ends = counts[lengths[a]]
        if not all(f is not None and f[1] == ends for f in found):
            continue
        length = _entries(ends, naturals, made)
        if length is not None:
            lengths[a] = length
            moved.append(a)
    for place, value in places if moved else ():
        parts = list(parts_of(value.args[1]))
        for a in moved:
            parts[a], ends, loop = own[parts[a]]
            if not any(v is parts[a] for v, _ in loop.items):       # the user's loop has no such index
                loop.items = (*loop.items, (parts[a], Apply(range, ends)))
        index = Pack("tuple", tuple(parts)) if isinstance(value.args[1], Pack) else parts[0]
        place.value = Apply(value.function, (value.args[0], index, *value.args[2:]), value.kwargs, value.origin)
    if moved:
        shape = Pack("tuple", tuple(lengths)) if isinstance(step.value.args[0], Pack) else lengths[0]
        step.value = Apply(step.value.function, (shape, *step.value.args[1:]), step.value.kwargs, step.value.origin)
        block[k:k] = [Let((v,), value, step.origin) for v, value in made]
    return bool(moved)


def _allocates(value):
    record = record_of(value.function)
    return record is not None and record.options.get("allocates") == "filled" and value.args and not any(
        name == "order" for name, _ in value.kwargs)


def _places(array, function):
    """[(statement, operation)] that store into an array, or read an entry; None where there is any other use."""
    family = _versions(array, function)
    if not family.isdisjoint(operands(function.result)):
        return None
    found = []
    for step in walk(function.body):
        if isinstance(step, Let) and isinstance(step.value, Apply):
            inside = [v for v in operands(step.value) if v in family]
            if not inside:
                continue
            if inside != [step.value.args[0]] or step.value.function is not put and reads(step.value) != "part":
                return None
            found.append((step, step.value))
        elif not _only_carries(step, family):
            return None
    return found


def _versions(array, function):
    """An array with all its versions: those that writes into it make, and that loops carry."""
    family, before = {array}, 0
    while len(family) > before:
        before = len(family)
        for step in walk(function.body):
            if isinstance(step, Let) and is_application(step.value, put) and step.value.args[0] in family:
                family.add(step.targets[0])
            for c in step.carries if isinstance(step, (For, While)) else ():
                if c.init in family or c.inner in family:
                    family.update((c.inner, c.outer))
    return family


def _only_carries(step, family):
    """Whether a statement that is no operation uses versions of an array only to carry them through a loop."""
    if isinstance(step, (For, While)):
        if any({c.init in family, c.inner in family, c.outer in family, c.next in family} != {c.inner in family}
               for c in step.carries):
            return False
        asked = [step.test] if isinstance(step, While) else [source for _, source in step.items]
    elif isinstance(step, If):
        asked = [step.test, *(side for j in step.joins for side in (j.then, j.orelse))]
    else:
        return not any(v in family for v in all_reads(step))
    return not any(v in family for node in asked for v in operands(node))


def _entries(ends, naturals, made):
    """The number of entries for the indices of range(*ends), from 0 on; None if an index may be negative, or the step
    is not 1 or -1.  made: gets (value, operation) for what must be computed.
    """
    start, stop, step = ends
    if not isinstance(step, Const) or abs(step.value) != 1:
        return None
    if step.value < 0:
        if not isinstance(stop, Const) or not -1 <= stop.value < UNUSED:
            return None
        value = naturals.made.get(start)
        if role(value) == "difference" and isinstance(value.args[1], Const) and value.args[1].value == 1:
            stop = value.args[0]
        else:
            return None
    elif not _begins_early(start, naturals):
        return None
    if naturals.holds(stop):
        return stop
    length = Var("length", Array(int), TEMPORARY)
    made.append((length, Apply(builtins.max, (stop, Const(0)))))
    return length


def _begins_early(start, naturals):
    """Whether a range begins at a small integer, or at such an offset from the index of an enclosing loop."""
    if isinstance(start, Const):
        return type(start.value) is int and 0 <= start.value <= UNUSED
    made = naturals.made.get(start)
    if role(made) == "sum" and isinstance(made.args[1], Const) and _begins_early(made.args[1], naturals):
        start = made.args[0]
    return start in naturals.indices
