# SPDX-License-Identifier: Apache-2.0
"""A derivative in two halves: what the primals settle, done once, and what is left for each tangent or cotangent.

`gs.vjp` and `gs.linearize` give linear functions that are called many times at one point.  The statements of the
derivative that read no tangent are run at once, and their values kept: these are the residuals.  A call runs
the other statements alone.  Of a loop that carries a tangent along, all is left for each call.

A residual is what it was when the derivative was taken, in every call; so is what the function reads from outside:
- A value of a branch that was not taken, or of a loop without passes, is None; a list is empty.  The statements that
  would read it are in a branch or a loop of the same kind, and do not run.
- What is computed in an arm of a branch is kept too: both halves have the branch.
- Arrays are kept as views that are not writable.  The second half has them as parameters, so what it updates it copies
  first.  Of a list that it takes from or puts into, it makes a list of its own.
- An array that the function reads from outside belongs to the caller, and so does a view of it: a copy is kept.

Where a residual would be a generator, or a list of lists that are taken from, each call runs the derivative as a whole.

Source: R. Frostig, M. Johnson, D. Maclaurin, A. Paszke and A. Radul, Decomposing reverse-mode automatic
differentiation (2021): linearisation as partial evaluation.
"""
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.alias import record_of, updates
from gradscribe.ast_transform.core.draw import STREAMS, draws, draws_elsewhere
from gradscribe.ast_transform.core.form import (
    UNDEFINED,
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Join,
    Let,
    Pack,
    Param,
    Var,
    While,
    all_made,
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
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.nesting import renest
from gradscribe.ast_transform.passes.out_of_ssa import RESERVED
from gradscribe.ast_transform.passes.simplify import simplify
from gradscribe.ast_transform.reader.draws import drawn_once
from gradscribe.ast_transform.reader.names import capture, lift
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.codegen.build import build
from gradscribe.codegen.emit import emit, source_of
from gradscribe.colours import Source
from gradscribe.custom import custom_jvp, custom_vjp
from gradscribe.frames import public
from gradscribe.given import as_numpy, mapped, with_objects
from gradscribe.making import alone
from gradscribe.transformed import apart, home_of, kinds_of


class Halves:
    """The two halves of a normal form; `tangents`: which of its parameters differ from call to call.

    Attributes: once (the primals to what is kept), each (the tangents, the primals that it reads, then what is kept,
    to the result), and what was emitted for them.  `found` is False where there is nothing to do once.
    """

    def __init__(self, form, reader, tangents):
        first, second = parted(form.body, late_values(form, tangents))
        self.outside = [value for _, value in reader.environment.captured.values() if isinstance(value, np.ndarray)]
        outside = {v for v, value in reader.environment.captured.values() if isinstance(value, np.ndarray)}
        early = outside.union(v for s in first for v in made(s))
        wanted = dict.fromkeys([*(v for s in second for v in all_reads(s)), *operands(form.result)])
        kept = tuple(v for v in wanted if v in early)
        primals = [p for k, p in enumerate(form.params) if k not in tangents]
        self.found = bool(kept)
        if not self.found:
            return
        once = Function(f"{form.label}_once", primals, first, Pack("tuple", kept), form.about, dict(form.notes))
        once = simplify(simplify(once))                 # branches that are joined have more in common
        same = dict(zip(kept, once.result.items))       # what has turned out to be one value, or an argument
        second, result = replaced(second, same), substituted(form.result, same)
        wanted = {v for s in second for v in all_reads(s)}.union(operands(result))
        kept = tuple(v for v in dict.fromkeys(same.values()) if v in wanted and v not in arguments(primals))
        passed = [p for p in primals if not wanted.isdisjoint(operands(p.value))]
        self.found = bool(kept) and all(can_be_kept(fact_of(v)) for v in [*kept, *(p.value for p in passed)])
        if not self.found:
            return
        once.body, once.result = defined(once.body, kept), Pack("tuple", kept)
        own = {v: v.like() for v in kept}
        second, result = replaced(second, own), substituted(result, own)
        given = [*(form.params[k] for k in tangents), *passed]
        callees = [s.value.function.label for s in walk(second) if isinstance(s, Let) and isinstance(s.value, Apply)
                   and isinstance(s.value.function, Function)]
        names = names_of(kept, [*(p.name for p in form.params), *callees])
        given += [Param(name, own[v]) for name, v in zip(names, kept)]
        lists = own_lists(second, [p.value for p in given])
        self.found = lists is not None
        if not self.found:
            return
        second = [*(Let((mine,), Apply(as_list, (v,))) for v, mine in lists.items()), *replaced(second, lists)]
        each = Function(form.label, given, second, substituted(result, lists), form.about, dict(form.notes))
        self.passed = [primals.index(p) for p in passed]
        (self.once, *first), (self.each, *second) = built(once, reader), built(each, reader)
        self.emitted = first + second

    def source(self, home):
        """Both texts, with what they read; home: the module of the user's function."""
        return source_of(self.emitted, home)


def arguments(params):
    return {v for p in params for v in operands(p.value)}


def late_values(form, tangents):
    """The values that each call makes: those that depend on a tangent, and what the result consists of."""
    late = arguments(form.params[k] for k in tangents)
    given_back = set(operands(form.result))         # each call gives arrays of its own
    for step in reversed([*walk(form.body)]):
        for j in step.joins if isinstance(step, If) else ():
            if j.var in given_back:
                given_back.update(operands(j.then))
                given_back.update(operands(j.orelse))
    late |= given_back.intersection(all_made(form.body))
    spread(form.body, late)
    return late


def spread(block, late):
    """Adds to the late values of a block what reads one."""
    for s in block:
        if is_open(s, late):
            spread(s.then, late)
            spread(s.orelse, late)
            late.update(j.var for j in s.joins if not late.isdisjoint([*operands(j.then), *operands(j.orelse)]))
        elif is_late(s, late):
            late.update(made(s))


def is_late(step, late):
    return any(v in late for v in all_reads(step)) or any(v in late for v in made(step))


def is_open(step, late):
    """A branch that both halves have: which arm is taken is known beforehand."""
    return isinstance(step, If) and late.isdisjoint(operands(step.test))


def parted(block, late):
    """The statements of a block that are done once, and those that each call does."""
    first, second, cheap = [], [], {}
    for s in block:
        if is_open(s, late) and is_late(s, late):
            once, each = both_arms(s, late)
            first.insert(place_for(once, first), once)
            again(each, second, cheap)
        elif is_late(s, late):
            again(s, second, cheap)
        else:
            first.append(s)
            if is_cheap(s):
                cheap[s.targets[0]] = s
    return first, second


def place_for(branch, block):
    """Where a branch goes into a block: next to one with the same test, which it can be joined with, or to the end."""
    needed = {*all_reads(branch)}
    if draws([branch]) or any(isinstance(s, Effect) for s in walk([branch])):
        return len(block)
    for k in reversed(range(len(block))):
        if isinstance(block[k], If) and block[k].test is branch.test:
            return k + 1
        if not needed.isdisjoint(made(block[k])):
            break
    return len(block)


def is_cheap(step):
    """An array that is only allocated, or the length of one, is made by each call that reads it."""
    record = record_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return record is not None and (record.options.get("allocates") == "filled" or bool(record.options.get("of_shape")))


def again(step, block, cheap):
    """Adds a statement to a block, with copies before it of the cheap ones that it reads."""
    env = {}
    for v in dict.fromkeys(all_reads(step)):
        if v in cheap:
            env[v] = v.like()
            again(Let((env[v],), cheap[v].value, cheap[v].origin), block, cheap)
    block += replaced([step], env)


def both_arms(branch, late):
    """A branch as two: what an arm of the second one reads of the same arm of the first is handed on."""
    joins = [[j for j in branch.joins if (j.var in late) == half] for half in (False, True)]
    halves = {side: parted(getattr(branch, side), late) for side in ("then", "orelse")}
    later = {}
    for side, (first, second) in halves.items():
        here = {v for s in first for v in made(s)}
        read = dict.fromkeys([*(v for s in second for v in all_reads(s)),
                              *(v for j in joins[1] for v in operands(getattr(j, side)))])
        env = {v: v.like() for v in read if v in here}
        joins[0] += [Join(w, v, UNDEFINED) if side == "then" else Join(w, UNDEFINED, v) for v, w in env.items()]
        later[side] = replaced(second, env), [substituted(getattr(j, side), env) for j in joins[1]]
    (then, thens), (orelse, orelses) = later["then"], later["orelse"]
    return (If(branch.test, halves["then"][0], halves["orelse"][0], joins[0], branch.origin),
            If(branch.test, then, orelse, [Join(j.var, *values) for j, *values in zip(joins[1], thens, orelses)],
               branch.origin))


def can_be_kept(fact):
    """Whether a value is an array, or a container of such: no generator."""
    if isinstance(fact, Stack):
        return can_be_kept(fact.element)
    return isinstance(fact, (Array, Opaque)) or isinstance(fact, Sequence) and all(map(can_be_kept, fact.elements))


def is_fixed(fact):
    """An array, or a container of such that is no list of unknown length: no statement changes it in place."""
    return isinstance(fact, Array) and not isinstance(fact, Listed) or isinstance(fact, Opaque) or \
        isinstance(fact, Sequence) and all(map(is_fixed, fact.elements))


def defined(block, kept):
    """A block that hands on None for those of the kept values that it may not define."""
    sources = {}
    for step in walk(block):
        for var, value in meetings(step):
            sources.setdefault(var, []).append(value)
    found, queue = set(), list(kept)
    for v in queue:
        if v not in found:
            found.add(v)
            queue += [w for value in sources.get(v, ()) for w in operands(value)]

    def visit(block):
        return [with_none(s) for s in block]

    def with_none(step):
        step = rebuilt(step, {}, visit)
        for part in getattr(step, "joins", getattr(step, "carries", ())):
            var = getattr(part, "var", getattr(part, "inner", None))
            for side in part.__slots__:
                if getattr(part, side) is UNDEFINED and var in found:
                    setattr(part, side, Const(None) if is_fixed(var.fact) else Pack("list", ()))
        return step
    return visit(block)


def meetings(step):
    """(variable, what it is set to) where branches join, and where a loop is entered, goes on and is left."""
    for j in step.joins if isinstance(step, If) else ():
        yield from ((j.var, j.then), (j.var, j.orelse))
    for c in step.carries if isinstance(step, (For, While)) else ():
        yield from ((c.inner, c.init), (c.inner, c.next), (c.outer, c.inner))


def own_lists(block, given):
    """{list: a list of the call's own} for those of the given lists that a block takes from or puts into.

    None where what it changes is a list within one of these.
    """
    same, parts, changed = {}, {}, []               # {list: what it may be}, {list: what it is made of or part of}
    for step in walk(block):
        for var, value in meetings(step):
            same.setdefault(var, []).extend(operands(value))
        for var, source in step.items if isinstance(step, For) else ():
            parts.setdefault(var, []).extend(operands(source))
        if isinstance(step, Let):
            base = step.value
            if updates(base):
                base = base.args[0]
                changed += operands(base)
            if isinstance(base, Var):
                same.setdefault(step.targets[0], []).append(base)
            for v in step.targets:
                parts.setdefault(v, []).extend(w for w in operands(step.value) if w not in same.get(v, ()))
    found = reached(changed, same)
    within = reached([w for v in found for w in parts.get(v, ())], {v: [*same.get(v, ()), *parts.get(v, ())]
                                                                    for v in (*same, *parts)})
    return None if not within.isdisjoint(given) else {v: v.like() for v in given if v in found}


def reached(start, sources):
    """The lists, and containers of such, that are among some values or that these come from."""
    found, queue = {}, [*start]
    for v in queue:
        if v not in found and not is_fixed(v.fact):
            found[v] = None
            queue += sources.get(v, ())
    return found.keys()


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
    emitted = emit(check(renest(form), "renest"), form.label, reader.environment.captured, reader.context.errstate)
    return build(emitted.running(), form.label, emitted.namespace), emitted


class LinearMap:
    """What gs.vjp and gs.linearize give: a linear function with its `source`.

    source: what was done once, and what each call does; where nothing can be done once, the derivative as a whole.
    """

    def __init__(self, again, made, first, count, primals):
        self.again, self.made, self.first, self.count, self.primals = again, made, first, count, primals
        self.like = ()                  # tangents of the kinds that it was begun with
        self.__name__ = made.__name__

    def parameter_names(self, count):
        names = self.made.parameter_names(1 + len(self.made.parameter_names(self.count)) if self.first else 2 * count)
        return names[:count] if self.first else names[-count:]

    def normal_form_(self, reader, args, words, node):
        """Read inside another function, or by a transformation: the derivative as a whole, at primals from outside."""
        if self.made in self.again.linear:
            self.again.linear[self.made].unchanged()
        primals = [from_outside(reader, p, f"primal_{k}") for k, p in enumerate(self.primals)]
        before = reader.draws.drawn
        value = self.made.normal_form_(reader, [*args, *primals] if self.first else [*primals, *args], words, node)
        drawn_once(reader, before, "a linear function")
        return value

    @public
    def __call__(self, *tangents):
        if len(tangents) != self.count:
            arguments = f"{self.count} argument{'s' * (self.count != 1)}"
            raise KindError(f"the derivative takes {arguments}, {len(tangents)} given", None,
                            "Give the adjoint of the result." if self.first else "Give a tangent for each primal.")
        tangents = [in_kind_of(t, u) for t, u in zip(as_numpy(tangents), self.like)]
        return with_objects(self.again(self.made, *tangents, first=self.first))

    def begun(self, value, valued, *like):
        """The value to give beside this function; what the primals settle is done now.

        like: the tangents' kinds; valued: the same derivative with its value, which a rule of the user's own decides
        """
        self.like = as_numpy(like)
        version = self.again.begun(self.made, self.like, self.first)
        if not any(isinstance(holder, (custom_jvp, custom_vjp)) for holder, _, _ in version.seen):
            return value
        given = [*self.like, *self.again.own_primals()] if self.first else [*self.again.own_primals(), *self.like]
        return of_its_own(with_objects(valued(*given)))

    @property
    @public
    def source(self) -> str:
        linear = self.again.linear.get(self.made)
        last = None if linear is None else linear.last
        if last is None:
            return self.made.source
        return Source(last.source(home_of(self.made)))


def from_outside(reader, value, name):
    """A primal as a value of the function that is read: its numbers are values of the run, as arrays are."""
    if type(value) in (float, complex) or isinstance(value, np.inexact):
        return capture(reader, value, name)
    return lift(reader, value, name)


def called(fun: Callable, primals: tuple) -> tuple["Again", Any]:
    """A call of `made` with the primals of now, as often as wanted, and fun's value; generators go on from it once.

    The caller's arrays may change later, and the function may write into them.
    """
    memo: dict[int, Any]
    memo, primals = {}, as_numpy(primals)
    kept = copy.deepcopy(primals, memo)
    streams = [held for held in memo.get(id(memo), ()) if type(held) in STREAMS]    # copied objects are held there
    value = fun(*with_objects(copy.deepcopy(primals, {id(s): s for s in streams})))
    return Again(fun, kept, bool(streams)), of_its_own(value)


def of_its_own(value: Any) -> Any:
    """What the user's function returned, in memory that nothing else shows: neither its globals nor another part."""
    return value.copy() if isinstance(value, np.ndarray) else mapped(of_its_own, value)


def in_kind_of(value: Any, like: Any) -> Any:
    """A tangent whose numbers are of the kind of those that they belong to: 1 and np.ones(()) may stand for 1.0."""
    if isinstance(like, (list, tuple)) and type(value) is type(like) in (list, tuple) and len(value) == len(like):
        return type(like)(map(in_kind_of, value, like))
    if type(value) is type(like) is dict and value.keys() == like.keys():
        return {k: in_kind_of(v, like[k]) for k, v in value.items()}
    if isinstance(value, np.ndarray) and value.shape or not np.isscalar(value) and not isinstance(value, np.ndarray):
        return value
    made = np.asarray(value)
    if type(like) in (float, complex) and made.dtype.kind in ("iuf" if type(like) is float else "iufc"):
        return type(like)(made)
    if isinstance(like, np.inexact) and made.dtype.kind in "iufc" and np.can_cast(made.dtype, like.dtype, "same_kind"):
        return made.astype(like.dtype)[()]
    return value


class Again:
    """Calls derivatives at primals that were given once, of what the function reads from outside as it was then."""

    def __init__(self, fun, primals, streams):
        self.fun, self.primals, self.streams, self.linear = fun, primals, streams, {}

    def own_primals(self):
        """The primals for a run that may change them: generators go on, arrays may be written into."""
        return copy.deepcopy(self.primals)

    def begun(self, made, tangents, first):
        """The version that serves these tangents."""
        if made not in self.linear:
            self.linear[made] = Linear(self, made, first)
        return self.linear[made].served(tangents).version

    def __call__(self, made, *tangents, first):
        """first: whether the tangents come before the primals."""
        self.begun(made, tangents, first)
        return self.linear[made](*tangents)

    def __reduce__(self):               # what was done once is done again where it is needed
        return Again, (self.fun, self.primals, self.streams)


class Served(NamedTuple):
    """A version, its halves, and what the first one gives; without halves the version is run as a whole."""
    version: Any
    halves: Any = None
    kept: Any = ()


class Linear:
    """A derivative at fixed primals, of which each call runs the second half."""

    def __init__(self, again, made, first):
        """first: whether the tangents come before the primals."""
        self.again, self.made, self.first, self.known = again, made, first, {}
        self.last = self.version = None         # the halves of the last call, and the version of the first
        self.primals, self.fixed = again.primals, [kept_as_is(p) for p in again.primals]

    def given(self, tangents, primals):
        return [*tangents, *primals] if self.first else [*primals, *tangents]

    def served(self, tangents):
        """The version for tangents of these kinds: what it reads from outside stays what it was at first."""
        key = kinds_of(tangents)
        if key not in self.known:
            self.unchanged()
            given = self.given(tangents, self.primals)
            version = self.made.version_for(given, {})
            name = draws_elsewhere(version.normal_form)
            if name:
                raise LanguageError(
                    f"the function is evaluated again, and {name} would not give the numbers that it gave before",
                    place_of(self.again.fun), "Pass the generator as an argument, or draw outside the function.")
            same = next((s for s in self.known.values() if s.version is version), None)
            self.known[key] = same or Served(version, *self.start(version, given, len(tangents)))
            if self.version is None:
                self.version, self.last = version, self.known[key].halves
        return self.known[key]

    def unchanged(self):
        """Another version is made of what the function reads now: it must be what it was."""
        if self.version is not None and not all(guard() for guard in self.version.guards):
            raise KindError("what the function reads from outside has changed since its derivative was taken",
                            place_of(self.again.fun), "Take the derivative again, after the change.")

    def __call__(self, *tangents):
        version, halves, kept = self.served(tangents)
        self.last = halves
        if halves is None:
            return self.made.run(version, self.given(tangents, self.again.own_primals()))
        try:
            return given_away(halves.each(*tangents, *(self.fixed[k] for k in halves.passed), *kept))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            self.known[kinds_of(tangents)], self.last = Served(version), None
            return self(*tangents)

    @alone
    def start(self, version, given, count):
        """The halves and what is kept; None where the derivative is run as a whole."""
        if version.convert or self.again.streams:
            return None, ()
        if version.halves is None:
            version.halves = self.halves_of(given, count)
        halves, once = version.halves
        if not halves.found:
            return None, ()
        return halves, [kept_as_is(v, halves.outside) for v in once(*self.primals)]

    def halves_of(self, given, count):
        """The halves for tangents and primals of these kinds, and the first half as it may be called."""
        n = len(self.primals)
        places = range(count) if self.first else range(n, n + count)
        names = self.made.parameter_names(len(given))
        facts, words = self.made._described(given, {}, names)
        form, pipeline = self.made.normal_form(names, facts, words, nested=False)
        halves = Halves(form, pipeline.reader, list(places))
        if halves.found and pipeline.reader.memory.writes_arguments:
            return halves, apart(halves.once, self.made.base, n, pipeline.reader.environment.captured)
        return halves, halves.once if halves.found else None


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
