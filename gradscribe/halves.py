# SPDX-License-Identifier: Apache-2.0
"""A derivative in two halves: what the primals settle, done once, and what is left for each tangent or cotangent.

`gs.vjp` and `gs.linearize` give linear functions that are called many times at one point.  The statements of the
derivative that read no tangent are run at the first call, and their values kept: these are the residuals.  A call runs
the other statements alone.  Of a loop that carries a tangent along, all is left for each call.

A residual is what it was at the first call, in every call:
- A value of a branch that was not taken, or of a loop without passes, is None.  The statements that would read it are
  in a branch or a loop of the same kind, and do not run.
- Arrays are kept as views that are not writable.  The second half has them as parameters, so what it updates it copies
  first.  Of a list that it takes from or puts into, it makes a list of its own.
- An array that the function reads from outside belongs to the caller, and so does a view of it: a copy is kept.

Where a residual is something else (a list of lists, a generator), the derivative is run as a whole in each call.

Source: R. Frostig, M. Johnson, D. Maclaurin, A. Paszke and A. Radul, Decomposing reverse-mode automatic
differentiation (2021): linearisation as partial evaluation.
"""
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Param,
    While,
    all_reads,
    made,
    operands,
    rebuilt,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Opaque, Sequence, Stack
from gradscribe.ast_transform.core.operations import as_list
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.coalesce import RESERVED, UPDATES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.renest import renest
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.codegen.build import build
from gradscribe.codegen.emit import emit
from gradscribe.given import as_numpy, mapped, with_objects

ALLOCATIONS = (np.zeros, np.zeros_like, np.empty, np.empty_like, np.full, np.full_like, np.ones, np.ones_like, np.copy)


class Halves:
    """The two halves of a normal form; `tangents`: which of its parameters differ from call to call.

    Attributes: once (the primals to what is kept), each (the tangents, the primals that it reads, then what is kept,
    to the result), and their texts, once_source and each_source.  `found` is False where there is nothing to do once.
    """

    def __init__(self, form, reader, tangents):
        late = {v for k in tangents for v in operands(form.params[k].value)}
        given_back = set(operands(form.result))         # each call gives arrays of its own
        body = [[s, any(v in late for v in all_reads(s)) or any(v in given_back for v in made(s))] for s in form.body]
        self.spread(body, late)
        first, second = ([s for s, is_late in body if is_late == half] for half in (False, True))
        self.outside = [value for _, value in reader.captured.values() if isinstance(value, np.ndarray)]
        outside = {v for v, value in reader.captured.values() if isinstance(value, np.ndarray)}
        early = outside.union(v for s in first for v in made(s))
        wanted = dict.fromkeys([*(v for s in second for v in all_reads(s)), *operands(form.result)])
        kept = [v for v in wanted if v in early]
        primals = [p for k, p in enumerate(form.params) if k not in tangents]
        passed = [p for p in primals if any(v in wanted for v in operands(p.value))]
        self.found = bool(kept) and not reader.writes_arguments and all(
            can_be_kept(fact_of(v)) for v in [*kept, *(p.value for p in passed)])
        if not self.found:
            return
        once = Function(f"{form.label}_once", primals, defined(first, kept), Pack("tuple", tuple(kept)), form.about,
                        dict(form.notes))
        given = [*(form.params[k] for k in tangents), *passed]
        callees = [s.value.function.label for s in walk(second) if isinstance(s, Let) and isinstance(s.value, Apply)
                   and isinstance(s.value.function, Function)]
        names = names_of(kept, [*(p.name for p in form.params), *callees])
        own = {v: v.like() for v in kept}
        given += [Param(name, own[v]) for name, v in zip(names, kept)]
        lists = own_lists(second := replaced(second, own), [p.value for p in given])
        second = [*(Let((mine,), Apply(as_list, (v,))) for v, mine in lists.items()), *replaced(second, lists)]
        result = substituted(substituted(form.result, own), lists)
        each = Function(form.label, given, second, result, form.about, dict(form.notes))
        self.passed = [primals.index(p) for p in passed]
        self.once, self.once_source = built(once, reader)
        self.each, self.each_source = built(each, reader)

    def spread(self, body, late):
        """Marks what reads a tangent, however far; and allocations that such a statement goes on with."""
        again = True
        while again:
            again = False
            continued = set()
            for entry in body:
                s, is_late = entry
                if not is_late and any(v in late for v in all_reads(s)):
                    entry[1] = is_late = again = True
                if is_late:
                    late.update(made(s))
                    continued.update(all_reads(s))
            for entry in body:
                s, is_late = entry
                if not is_late and isinstance(s, Let) and isinstance(s.value, Apply) and \
                        s.value.function in ALLOCATIONS and continued & set(s.targets):
                    entry[1] = again = True
                    late.update(s.targets)


def can_be_kept(fact):
    """Whether a value stays what it is: an array, a container of such that no statement changes, or a list of these."""
    return is_fixed(fact) or isinstance(fact, Listed) or isinstance(fact, Stack) and is_fixed(fact.element)


def is_fixed(fact):
    return isinstance(fact, Array) and not isinstance(fact, Listed) or isinstance(fact, Opaque) or \
        isinstance(fact, Sequence) and all(map(is_fixed, fact.elements))


def defined(block, kept):
    """A block that hands on None for those of the kept values that it may not define."""
    sources = {}
    for step in walk(block):
        for var, value in meetings(step):
            sources.setdefault(var, []).append(value)
    reached, queue = set(), list(kept)
    for v in queue:
        if v not in reached:
            reached.add(v)
            queue += [w for value in sources.get(v, ()) for w in operands(value)]

    def visit(block):
        return [with_none(s) for s in block]

    def with_none(step):
        step = rebuilt(step, {}, visit)
        for part in getattr(step, "joins", getattr(step, "carries", ())):
            for side in part.__slots__:
                if getattr(part, side) is UNDEFINED and getattr(part, "var", getattr(part, "inner", None)) in reached:
                    setattr(part, side, Const(None))
        return step
    return visit(block)


def meetings(step):
    """(variable, what it is set to) where branches join, and where a loop is entered, goes on and is left."""
    for j in step.joins if isinstance(step, If) else ():
        yield from ((j.var, j.then), (j.var, j.orelse))
    for c in step.carries if isinstance(step, (For, While)) else ():
        yield from ((c.inner, c.init), (c.inner, c.next), (c.outer, c.inner))


def own_lists(block, given):
    """{list: a list of the call's own} for those of the given lists that a block takes from or puts into."""
    sources, queue = {}, []
    for step in walk(block):
        for var, value in meetings(step):
            sources.setdefault(var, []).extend(operands(value))
        if isinstance(step, Let):
            for v in step.targets:
                sources.setdefault(v, []).extend(operands(step.value))
            if isinstance(step.value, Apply) and step.value.function in UPDATES:
                queue += operands(step.value.args[0])
    reached = set()
    for v in queue:
        if v not in reached and not is_fixed(v.fact):
            reached.add(v)
            queue += sources.get(v, ())
    return {v: v.like() for v in given if v in reached}


def names_of(kept, taken):
    """Names for parameters: what they would like to be called, numbered where that is taken."""
    out, taken = [], {*taken, *RESERVED}
    for v in kept:
        hint = v.hint if v.hint.isidentifier() else "value"
        k, name = 1, hint
        while name in taken:
            name, k = f"{hint}_{k}", k + 1
        taken.add(name)
        out.append(name)
    return out


def built(form, reader):
    emitted = emit(check(renest(form), "renest"), form.label, reader.captured, reader.errstate)
    text = emitted.source()
    return build(text, form.label, emitted.namespace), text


class LinearMap:
    """What gs.vjp and gs.linearize give: a linear function with its `source`.

    source: what was done once, and what each call does; where nothing can be done once, the derivative as a whole.
    """

    def __init__(self, again, made, first, count):
        self.again, self.made, self.first, self.count = again, made, first, count

    def __call__(self, *tangents):
        if len(tangents) != self.count:
            arguments = f"{self.count} argument{'s' * (self.count != 1)}"
            raise KindError(f"the derivative takes {arguments}, {len(tangents)} given", None,
                            "Give the adjoint of the result." if self.first else "Give a tangent for each primal.")
        return with_objects(self.again(self.made, *as_numpy(tangents), first=self.first))

    @property
    def source(self) -> str:
        linear = self.again.linear.get(self.made)
        if linear is None:
            return "# not called yet"
        last = linear.last
        if last is None:
            return self.made.source
        return last.once_source + "\n\n" + last.each_source.removeprefix("import numpy as np\n\n\n")


class Linear:
    """A derivative at fixed primals, of which each call runs the second half."""

    def __init__(self, made, primals, first):
        """first: whether the tangents come before the primals."""
        self.made, self.first, self.halves = made, first, {}
        self.last = None                        # the halves of the last call
        self.primals, self.fixed = primals, [kept_as_is(p) for p in primals]

    def __call__(self, *tangents):
        given = [*tangents, *self.primals] if self.first else [*self.primals, *tangents]
        version = self.made.version_for(given, {})
        found = self.halves.get(version)
        if found is None:
            found = self.halves[version] = self.start(version, given, len(tangents))
        halves, kept = found
        self.last = halves
        if halves is None:
            return self.made(*given)
        try:
            return given_away(halves.each(*tangents, *(self.fixed[k] for k in halves.passed), *kept))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            self.halves[version], self.last = (None, ()), None
            return self.made(*given)

    def start(self, version, given, count):
        """The halves and what is kept; None where the derivative is run as a whole."""
        if version.convert:
            return None, ()
        n = len(self.primals)
        places = range(count) if self.first else range(n, n + count)
        names = self.made.parameter_names(len(given))
        facts, words = self.made._described(given, {}, names)
        form, pipeline = self.made.normal_form(names, facts, words, nested=False)
        halves = Halves(form, pipeline.reader, list(places))
        if not halves.found:
            return None, ()
        return halves, [kept_as_is(v, halves.outside) for v in halves.once(*self.primals)]


def kept_as_is(value: Any, outside=()) -> Any:
    """A value that stays what it is: arrays as views that are not writable, as copies where they may show others."""
    if not isinstance(value, np.ndarray):
        return mapped(lambda part: kept_as_is(part, outside), value)
    value = value.copy() if any(np.may_share_memory(value, other) for other in outside) else value.view()
    value.flags.writeable = False
    return value


def given_away(value: Any) -> Any:
    """A result that is the caller's to write into, though it may show what is kept."""
    if not isinstance(value, np.ndarray):
        return mapped(given_away, value)
    return value if value.flags.writeable else value.copy()
