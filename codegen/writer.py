# SPDX-License-Identifier: Apache-2.0
"""What is known of a function while it is printed: the names of its variables, and what its text needs."""
from collections import Counter
from typing import Any, NamedTuple

from gradscribe.ast_transform.core.alias import may_give_a_cell
from gradscribe.ast_transform.core.form import UNDEFINED, Apply, Const, Let, Var, read_counts, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import push, run_length
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.out_of_ssa import coalesce
from gradscribe.ast_transform.passes.verify import verified


class _Unset(NamedTuple):
    """values: those that may be unset when they are read; names: those that are set to None at the beginning."""
    values: set
    names: set


class _Passes(NamedTuple):
    """numbers: {variable: how a number of passes is computed}; assignments: those that the text sets such variables by,
    which are not needed where a loop is over range(start, stop).
    """
    numbers: dict
    assignments: list


class Writer:
    """What the functions that print one function know, and what they change."""

    def __init__(self, function, callees, out):
        self.function, self.callees, self.out = function, callees, out
        self.exits, self.leaving = {}, []       # {id of a For: its Exit}; the Exits of the loops being printed
        self.naming = verified(function, coalesce(function, {*callees.values(), *out.namespace}, words=True))
        self.naming.names.update(out.outside)
        self.errors = ()                # floating-point errors that raise at the current statement
        self.heading = None             # the statement that the current comment shows
        self.counts, self.without_axes = read_counts(function), arrays_without_axes(function)
        times: Counter = Counter()
        for v, n in self.counts.items():
            times[self.naming.names.get(v)] += n
        arrays = {n for v, n in self.naming.names.items() if not isinstance(v.fact, Array) or v.fact.dims}
        self.numbers_read_once = {n for n, k in times.items() if k == 1} - arrays
        kinds = {}
        for v, n in self.naming.names.items():
            kinds.setdefault(n, set()).add(v.fact.kind if type(v.fact) is Array else "")
        self.signed = {n for n, found in kinds.items() if found <= set("ifc")}
        unset = unset_values(function.body, by_reads=True)
        self.unset = _Unset(unset, copied_unset(function, self.naming, unset))
        self.passes = _Passes({s.targets[0]: s.value for s in walk(function.body) if isinstance(s, Let) and isinstance(
            s.value, Apply) and s.value.function in (run_length, min)}, [])


def arrays_without_axes(function):
    """Values that may be 0-d arrays that alias others, such as arguments: += would change these in place."""
    steps = list(walk(function.body))
    lets = [s for s in steps if isinstance(s, Let) and isinstance(s.targets[0].fact, Array)
            and not s.targets[0].fact.dims]
    found = {p.value for p in function.params if isinstance(p.value, Var) and isinstance(p.value.fact, Array)
             and not (p.value.fact.dims or p.value.fact.weak)}
    found.update(s.targets[0] for s in lets if isinstance(s.value, Apply) and may_give_a_cell(s.value))
    pairs = [(s.targets[0], s.value) for s in lets] + [pair for s in steps for pair in _moves(s)]
    before = -1
    while len(found) > before:
        before = len(found)
        found.update(var for var, value in pairs if value in found)
    return found


def copied_unset(function, naming, maybe_unset):
    """Names that the text copies where they may be unbound; they are set to None, so that the copy cannot fail."""
    unset, found = {UNDEFINED}, True
    pairs = [pair for step in walk(function.body) for pair in _moves(step)]
    while found:
        found = {var for var, value in pairs if value in unset and var not in unset}
        unset |= found
    names = naming.names
    kept = {names[v] for step in walk(function.body) if isinstance(step, Let) and isinstance(step.value, Apply)
            and step.value.function is push for v in step.value.args[1:] if v in unset and v in names}
    kept |= {names[c.init] for step in walk(function.body) for c in getattr(step, "carries", ())
             if (id(c), "init") in naming.copied_in and c.inner in maybe_unset}
    return kept | {names[v] for var, v in pairs if isinstance(v, Var) and v in unset and v in names and var in names
                   and names[v] != names[var]}


def _moves(step):
    """(variable, value) of the joins and carries of a statement."""
    for j in getattr(step, "joins", ()):
        yield from ((j.var, j.then), (j.var, j.orelse))
    for c in getattr(step, "carries", ()):
        yield from ((c.inner, c.init), (c.inner, c.next), (c.outer, c.inner))


def provided(out: Any, hint: str, value: Any, taken: Any) -> str:
    """A name for a global object, the same in all functions of a text; `taken`: names of locals."""
    identifier, k = hint, 0
    while identifier in taken or identifier in out.namespace and out.namespace[identifier] is not value:
        k += 1
        identifier = f"{hint}_{k}"
    out.namespace[identifier] = value
    return identifier


def provide(writer: Any, hint: str, value: Any) -> Any:
    """A name for a global object."""
    taken = {n for v, n in writer.naming.names.items() if v not in writer.out.outside}
    same = {p.name for p in writer.function.params if isinstance(p.value, Const) and p.value.value is value}
    return provided(writer.out, hint, value, {*taken, *writer.out.parameters, *writer.callees.values()} - same)
