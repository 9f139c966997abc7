# SPDX-License-Identifier: Apache-2.0
"""The linear functions that `gs.vjp` and `gs.linearize` return.

They are called many times at one point.  ast_transform/passes/partial_eval.py splits a derivative into a function that
runs once, when the derivative is taken, and one that runs in each call; here they are built, run and kept.

The result of the first, the residuals, stays what it was in every call, and so does what the function reads from
outside:
- Residuals are kept as views that are not writable.
- An array that the function reads from outside belongs to the caller, and so does a view of it: a copy is kept.

Where a derivative cannot be split, each call runs it as a whole.
"""
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.draw import STREAMS, draws_elsewhere
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.nesting import renest
from gradscribe.ast_transform.passes.partial_eval import split
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
    """The two functions of a derivative that was split: `once` and `each`, built, and what was emitted for them.

    passed: the numbers of the primals that `each` takes; outside: the arrays that they read from outside.
    """

    def __init__(self, halves, reader, outside):
        (self.once, *first), (self.each, *second) = built(halves.once, reader), built(halves.each, reader)
        self.passed, self.outside, self.emitted = halves.passed, outside, first + second

    def source(self, home):
        """Both texts, with what they read; home: the module of the user's function."""
        return source_of(self.emitted, home)


def built(form, reader):
    """The function that runs a normal form, and its emitted text."""
    emitted = emit(check(renest(form), "renest"), form.label, reader.environment.captured, reader.context.errstate)
    return build(emitted.running(), form.label, emitted.namespace), emitted


class LinearMap:
    """A linear function, as gs.vjp and gs.linearize return it.

    source: the text of what ran once and of what each call runs; of the whole derivative where it was not split.
    """

    def __init__(self, again, made, first, count, primals):
        self.again, self.made, self.first, self.count, self.primals = again, made, first, count, primals
        self.like = ()                  # tangents of the kinds of the first call
        self.__name__ = made.__name__

    def parameter_names(self, count):
        """The names of the tangents, or of the adjoint of the result."""
        names = self.made.parameter_names(1 + len(self.made.parameter_names(self.count)) if self.first else 2 * count)
        return names[:count] if self.first else names[-count:]

    def normal_form_(self, reader, args, words, node):
        """Inside another function, and under a transformation: the whole derivative, with the primals as constants."""
        if self.made in self.again.linear:
            self.again.linear[self.made].unchanged()
        primals = [from_outside(reader, p, f"primal_{k}") for k, p in enumerate(self.primals)]
        before = reader.draws.drawn
        value = self.made.normal_form_(reader, [*args, *primals] if self.first else [*primals, *args], words, node)
        drawn_once(reader, before, "a linear function")
        return value

    @public
    def __call__(self, *tangents):
        """The derivative's value for these tangents, or for the adjoint of the result."""
        if len(tangents) != self.count:
            arguments = f"{self.count} argument{'s' * (self.count != 1)}"
            raise KindError(f"the derivative takes {arguments}, {len(tangents)} given", None,
                            "Give the adjoint of the result." if self.first else "Give a tangent for each primal.")
        tangents = [in_kind_of(t, u) for t, u in zip(as_numpy(tangents), self.like)]
        return with_objects(self.again(self.made, *tangents, first=self.first))

    def begun(self, value, valued, *like):
        """The value to return with this function; the first half runs now.

        like: tangents of the kinds to expect; valued: the derivative with its value, which custom rules may change
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
        """The text of what each call runs; that of the whole derivative where it was not split."""
        linear = self.again.linear.get(self.made)
        last = None if linear is None else linear.last
        if last is None:
            return self.made.source
        return Source(last.source(home_of(self.made)))


def from_outside(reader, value, name):
    """A primal as a value of the function that is read: a float is a run-time value, as an array is."""
    if type(value) in (float, complex) or isinstance(value, np.inexact):
        return capture(reader, value, name)
    return lift(reader, value, name)


def called(fun: Callable, primals: tuple) -> tuple["Again", Any]:
    """What calls derivatives at these primals, and the value of fun; a generator advances once.

    The primals are copied: the caller may change the arrays later, and the function may write into them.
    """
    memo: dict[int, Any]
    memo, primals = {}, as_numpy(primals)
    kept = copy.deepcopy(primals, memo)
    streams = [held for held in memo.get(id(memo), ()) if type(held) in STREAMS]    # copied objects are held there
    value = fun(*with_objects(copy.deepcopy(primals, {id(s): s for s in streams})))
    return Again(fun, kept, bool(streams)), of_its_own(value)


def of_its_own(value: Any) -> Any:
    """A copy of what the user's function returned, which shares no memory with its globals or within itself."""
    return value.copy() if isinstance(value, np.ndarray) else mapped(of_its_own, value)


def in_kind_of(value: Any, like: Any) -> Any:
    """A tangent whose numbers have the type of their primals: 1 and np.ones(()) are accepted for 1.0."""
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
    """Calls derivatives at fixed primals, with what the function reads from outside as it was when they were taken."""

    def __init__(self, fun, primals, streams):
        self.fun, self.primals, self.streams, self.linear = fun, primals, streams, {}

    def own_primals(self):
        """A copy of the primals for a run, which may advance generators and write into arrays."""
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

    def __reduce__(self):               # a copy runs the first half again
        return Again, (self.fun, self.primals, self.streams)


class Served(NamedTuple):
    """A version, its halves, and the residuals; without halves each call runs the version as a whole."""
    version: Any
    halves: Any = None
    kept: Any = ()


class Linear:
    """A derivative at fixed primals: each call runs its second half."""

    def __init__(self, again, made, first):
        """first: whether the tangents come before the primals."""
        self.again, self.made, self.first, self.known = again, made, first, {}
        self.last = self.version = None         # the halves of the last call, and the version of the first
        self.primals, self.fixed = again.primals, [kept_as_is(p) for p in again.primals]

    def given(self, tangents, primals):
        """The arguments of the whole derivative, in order."""
        return [*tangents, *primals] if self.first else [*primals, *tangents]

    def served(self, tangents):
        """The version for tangents of these kinds; what it reads from outside must be what it was for the first one."""
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
        """Raise KindError if what the function reads from outside has changed since the first version."""
        if self.version is not None and not all(guard() for guard in self.version.guards):
            raise KindError("what the function reads from outside has changed since its derivative was taken",
                            place_of(self.again.fun), "Take the derivative again, after the change.")

    def __call__(self, *tangents):
        """The derivative's value; the second half runs, with what the first half kept."""
        version, halves, kept = self.served(tangents)
        self.last = halves
        if halves is None:
            return self.made.run(version, self.given(tangents, self.again.own_primals()))
        try:
            return writable(halves.each(*tangents, *(self.fixed[k] for k in halves.passed), *kept))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            self.known[kinds_of(tangents)], self.last = Served(version), None
            return self(*tangents)

    @alone
    def start(self, version, given, count):
        """The halves and the residuals; (None, ()) where each call runs the derivative as a whole."""
        if version.convert or self.again.streams:
            return None, ()
        if version.halves is None:
            version.halves = self.halves_of(given, count)
        halves, once = version.halves
        if halves is None:
            return None, ()
        return halves, [kept_as_is(v, halves.outside) for v in once(*self.primals)]

    def halves_of(self, given, count):
        """The halves for tangents and primals of these kinds, and the first one with its checks; None, None without."""
        n = len(self.primals)
        places = range(count) if self.first else range(n, n + count)
        names = self.made.parameter_names(len(given))
        facts, words = self.made._described(given, {}, names)
        form, pipeline = self.made.normal_form(names, facts, words, nested=False)
        reader = pipeline.reader
        outside = {v: value for v, value in reader.environment.captured.values() if isinstance(value, np.ndarray)}
        found = split(form, places, outside)
        if found is None:
            return None, None
        halves = Halves(found, reader, [*outside.values()])
        if reader.memory.writes_arguments:
            return halves, apart(halves.once, self.made.base, n, reader.environment.captured)
        return halves, halves.once


def kept_as_is(value: Any, outside=()) -> Any:
    """A value with its arrays as views that are not writable; as copies where they may share memory with `outside`."""
    if not isinstance(value, np.ndarray):
        return mapped(lambda part: kept_as_is(part, outside), value)
    value = value.copy() if any(np.may_share_memory(value, other) for other in outside) else value.view()
    value.flags.writeable = False
    return value


def writable(value: Any) -> Any:
    """A result with its arrays that are not writable, which may be residuals, replaced by copies."""
    if not isinstance(value, np.ndarray):
        return mapped(writable, value)
    return value if value.flags.writeable else value.copy()
