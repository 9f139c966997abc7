# SPDX-License-Identifier: Apache-2.0
"""The transformed callable.  A call makes a key of its arguments, finds or makes the version for it, and runs that."""
import collections
import functools
import inspect
import keyword
import logging
import math
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, MutableSequence, MutableSet
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from gradscribe.annotations import in_words, simplest
from gradscribe.ast_transform.core.draw import STREAMS
from gradscribe.ast_transform.core.form import Var
from gradscribe.ast_transform.core.kinds import Array, Opaque, Sequence, key_of, told_apart
from gradscribe.ast_transform.passes.described import constant_fact, describe, fact_of
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.reader.frames import inside
from gradscribe.ast_transform.reader.operands import root_arguments
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import (
    KNOWN,
    Demand,
    KindError,
    LanguageError,
    TransformError,
)
from gradscribe.ast_transform.source.read import Scope
from gradscribe.ast_transform.transforms import Transform, parameter_names
from gradscribe.codegen.build import build
from gradscribe.codegen.emit import emit
from gradscribe.colours import Source
from gradscribe.containers import container_of
from gradscribe.explained import explain
from gradscribe.frames import leaving, public
from gradscribe.given import Foreign, as_numpy, giving_objects, is_foreign
from gradscribe.in_kind import called_in_kind, holds_objects
from gradscribe.kinds import by_name, of_facts, spelled
from gradscribe.lengths import Lengths, agree, lengths_of
from gradscribe.making import alone
from gradscribe.named import bound, reduced, take_name
from gradscribe.progress import telling
from gradscribe.recorded import record, recording
from gradscribe.sharing import Known, known_for

log = logging.getLogger("gradscribe")
_MISSING = object()
VALUE = math.inf                    # the requirement on an integer whose value a version depends on
_KEPT = 512                         # the most exact keys that a function remembers


class Version:
    """One specialisation: the emitted text, its function, and what these depend on."""
    __slots__ = ("_text", "compiled", "convert", "emitted", "function", "guards", "halves", "key", "kinds", "leaves",
                 "lengths", "normal_form", "outside", "seen", "writes")

    def __init__(self, key, normal_form, emitted, text, function, guards, convert, writes=None):
        """writes: the arguments of `apart`, for a function that writes into an argument."""
        if writes is not None:
            function = apart(function, *writes)
        function = giving_objects(function, fact_of(normal_form.result))
        self.key, self.normal_form, self.emitted, self._text = key, normal_form, emitted, text
        self.function, self.guards, self.convert, self.lengths = function, guards, convert, ()
        self.compiled = None            # the machine code of a compiled version
        self.leaves = None              # facts and words of its arguments, if it reads nothing else and writes nothing
        self.halves = None              # the two functions of a linear map's derivative
        self.outside = ()               # values that it reads from outside
        if recording():
            record(normal_form.label, self.text, "lowered" if emitted is None else "emitted")
        self.kinds, self.seen = None, ()        # kinds of the arguments as text; all reads from outside
        self.writes = False             # whether a call changes arguments or objects from outside

    @property
    def text(self) -> str:
        """The text that was compiled, or the emitted text with all that it needs."""
        return self._text if self.emitted is None else self.emitted.source()


class Made(NamedTuple):
    """A record of a specialisation: its function, the kinds of arguments, and why it was made."""
    function: str
    kinds: str
    why: str


class Transformed:
    """A transformed function, as gs.grad and the other transformations return it.

    A call makes a specialisation for new kinds of arguments, and runs it.  Attributes: `source`, the emitted text of
    the last call's specialisation (before any call, of one for annotations or the simplest arguments); `versions`, the
    specialisations that were made, and why.  `inspect.getsource` shows the emitted function, `inspect.signature` the
    user's signature.
    """

    __name__: str
    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, base, transform: Any, compiler: Any = None, made_by: str | None = None):
        """compiler: makes versions, instead of emitted Python; made_by: make_ir's name for it inside a function."""
        self.base, self.transform, self.compiler, self.made_by = base, transform, compiler, made_by
        self.given_static: tuple[int | str, ...] = ()           # arguments whose values are compile-time constants
        self._begin()
        take_name(self, base, f"{transform.prefix}_{_name(base)}")

    def _begin(self):
        """Set the state of an object without versions of its own."""
        self._known = known_for(self.base, self.transform) if self.made_by is None else Known()
        self._known.static.update(self.given_static)
        self._lengths = None if self.compiler is None else Lengths()
        self._exact, self._versions, self._static = self._known.exact, self._known.versions, self._known.static
        self._last = self._reader = None

    _least = property(lambda self: self._known.least)
    _tied = property(lambda self: self._known.tied)

    # copies and pickles have no versions; they make them when needed

    _made_later: tuple[str, ...] = ("_known", "_exact", "_versions", "_static", "_lengths", "_last", "_reader")

    def __getstate__(self):
        return {k: v for k, v in vars(self).items() if k not in self._made_later}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()

    # calls

    def __call__(self, *args, **kwargs):
        """Run the emitted function for these arguments; it is made at the first call for arguments of such kinds."""
        try:
            try:
                version = self.version_for(args, kwargs)
            except Foreign:
                return self.for_foreign(args, kwargs)
            if version.convert:
                args = [float(a) if k in version.convert else a for k, a in enumerate(args)]
            return version.function(*args, *kwargs.values()) if kwargs else version.function(*args)
        except Exception as error:
            try:
                explain(error, self.base, args, kwargs)
            except TransformError as refusal:
                leaving(refusal)
                raise
            leaving(error)
            raise

    def for_foreign(self, args, kwargs):
        """A call with arrays of other packages, or with objects."""
        try:
            labelled = any(holds_objects(v) for k, v in [*enumerate(args), *kwargs.items()] if k not in self._static)
        except RecursionError:
            raise self._endless() from None
        if labelled:
            return called_in_kind(self, args, kwargs)
        args, kwargs = self.given(args, kwargs)
        return self(*args, **kwargs)

    def run(self, version, args):
        """Call a version that was found for such arguments."""
        try:
            return version.function(*[float(a) if k in version.convert else a for k, a in enumerate(args)])
        except Exception as error:
            explain(error, self.base, args, {})
            raise

    def version_for(self, args, kwargs) -> Version:
        """The specialisation for these arguments, made if there is none."""
        try:
            key = tuple(map(_exact, args))
            if kwargs:
                key = (key, tuple(kwargs), tuple(map(_exact, kwargs.values())))
            if self._static:
                key = (key, tuple(map(_frozen, self._static_values(args, kwargs))))
            if self._least or self._tied:
                key = (key, self._enough(args, kwargs), tuple(_number_at(args, kwargs, path) for path in self._tied))
            version = self._exact.get(key)
        except TypeError:
            key, version = None, None
        except Foreign:
            if not self._static:
                raise
            key, version = None, None       # it may be static
        except RecursionError:
            raise self._endless() from None
        if version is not None:
            for guard in version.guards:
                if not guard():
                    break
            else:
                self._last = version            # perhaps made by another object
                return version
            self._exact.clear()
            self._versions.clear()
        least = self._least
        version = self._specialise(args, kwargs)
        if key is not None and least is self._least:
            if len(self._exact) > _KEPT:
                self._exact.clear()
            if not self._static:
                self._exact[key] = version
        self._last = version
        return version

    def given(self, args, kwargs):
        """The arguments, converted for emitted code; static ones are unchanged."""
        try:
            return (tuple([v if k in self._static else as_numpy(v) for k, v in enumerate(args)]),
                    {k: v if k in self._static else as_numpy(v) for k, v in kwargs.items()})
        except RecursionError:
            raise self._endless() from None

    def _endless(self):
        return KindError("an argument is nested too deeply, or holds itself", place_of(self.base),
                         "Give the arrays in a flat list.")

    def _static_values(self, args, kwargs):
        for place in sorted(self._static, key=str):
            value = kwargs.get(place) if isinstance(place, str) else args[place] if place < len(args) else None
            if self.compiler is not None and isinstance(value, (list, dict, set, np.ndarray)):
                raise KindError(f"a static argument is a {type(value).__name__}, which can change afterwards",
                                place_of(self.base), "Give a tuple, or an argument that is not static.")
            yield value

    @alone
    def _specialise(self, args, kwargs):
        if recording() and self.compiler is not None and is_transformed(self.base):
            with suppress(TransformError, Foreign):     # the readable text is recorded before the lowered one
                self.base.version_for(args, kwargs)
        if any(is_foreign(v) for k, v in [*enumerate(args), *kwargs.items()] if k not in self._static):
            raise Foreign
        for word in kwargs:
            if not word.isidentifier() or keyword.iskeyword(word):
                raise KindError(f"an argument is named {word!r}", place_of(self.base), "Give it in a dictionary.")
        for _ in range(8):
            names = self.parameter_names(len(args))
            facts, words = self._described(args, kwargs, names)
            convert = self._converted(facts, words)
            numbers = dict(_whole_numbers({**dict(enumerate(facts)), **words}))
            for length in numbers.values():
                length.symbol.ask()
            key = (tuple(map(key_of, facts)), tuple((k, key_of(f)) for k, f in words.items()),
                   tuple(map(_frozen, self._static_values(args, kwargs))),
                   () if self._lengths is None else self._lengths.taken_as(facts, words), self._enough(args, kwargs))
            known = self._versions.get(key)
            if (
                known is not None
                and all(g() for g in known.guards)
                and agree(known.lengths, lengths_of([*facts, *words.values(), *map(constant_fact, known.outside)]))
            ):
                self._last = known
                return known
            start, told = time.perf_counter(), None
            if recording():
                self._record_function()
            try:
                told = by_name([*zip(names, facts), *words.items()])
                version = self._made(key, names, facts, words, convert)
            except Demand as demand:
                self._ask_for(demand, args, kwargs)
                continue
            if log.isEnabledFor(logging.DEBUG):
                log.debug("%s for (%s): %.3f s", self.__name__, ", ".join(told.values()), time.perf_counter() - start)
            captured = list(self._reader.environment.captured.values())
            version.outside = [value for _, value in captured]
            version.lengths = lengths_of([*facts, *words.values(), *(v.fact for v, _ in captured)])
            version.seen, outer = self._reader.environment.guards, self._reader.outer
            version.writes = bool(outer.stateful or outer.outputs or outer.appended or outer.argument_outputs
                                  or self._reader.containers.given_changed)
            self._known.learn(self.base, self._reader)
            try:
                version.kinds = spelled(args, kwargs, self._static)
            except KindError:
                pass
            self._known.history.append(Made(self.__name__, ", ".join(f"{n}: {k}" for n, k in told.items()),
                                            self._why(told, version)))
            if self._asks_more(numbers, version.lengths):
                key = (*key[:-1], self._enough(args, kwargs))
            self._versions[key] = version
            return version
        raise LanguageError("too many values must be known when transforming")

    def _described(self, args, kwargs, names):
        """The facts of arguments."""
        facts = [Opaque(a) if k in self._static else describe(a, n) for k, (a, n) in enumerate(zip(args, names))]
        words = {k: Opaque(v) if k in self._static else describe(v, k) for k, v in kwargs.items()}
        return (facts, words) if self._lengths is None else self._lengths.described(facts, words)

    def _asks_more(self, numbers, lengths):
        """Whether a version has new requirements on an integer: a lower bound, a value, equality with a length.  From
        then on, keys include them.
        """
        new, uses = {}, collections.Counter(n.normal().symbol for n in lengths)
        for path, length in numbers.items():
            n = length.normal()
            least = VALUE if n.symbol is None else n.symbol.least + n.offset
            if least > self._least.get(path, -math.inf):
                new[path] = least
        del uses[None]
        tied = {path for path, length in numbers.items() if uses[length.normal().symbol] > 1} - set(self._tied)
        if new or tied:
            self._known.least, self._known.tied = {**self._least, **new}, (*self._tied, *sorted(tied, key=str))
            self._exact.clear()
            self._versions.clear()
        return bool(new or tied)

    def _enough(self, args, kwargs):
        """For each integer with requirements: whether it reaches the lower bound, or its value."""
        out = []
        for path, least in self._least.items():
            value = _number_at(args, kwargs, path)
            out.append(value if least == VALUE else value is not None and value >= least)
        return tuple(out)

    def _converted(self, facts, words):
        """Promote Python ints that are differentiated to float; returns their positions."""
        if self.transform.prefix not in ("grad", "value_and_grad"):
            return ()
        out = []
        for k in self.transform.wanted(None, self.transform.settings, self.base, facts, words):
            if isinstance(k, int) and isinstance(facts[k], Array) and facts[k].dtype is int:
                facts[k] = Array(float)
                out.append(k)
        return tuple(out)

    def _ask_for(self, demand, args, kwargs):
        """Make an argument static, since its value must be known while transforming; lengths are unified already."""
        if demand.variable is None:
            return
        names = self.parameter_names(len(args))
        roots = root_arguments(self._reader, demand.variable)
        places = []
        for v in roots:
            place = v.hint if v.hint in kwargs else names.index(v.hint) if v.hint in names else None
            value = kwargs.get(place) if isinstance(place, str) else args[place] if place is not None else _MISSING
            if place is None or not isinstance(value, (bool, int, str, float, np.integer)) or place in self._static:
                raise LanguageError(demand.reason, demand.origin, KNOWN)
            places.append(place)
        if not places:
            raise LanguageError(demand.reason, demand.origin, KNOWN)
        self._static.update(places)
        self._exact.clear()

    def _made(self, key, names, facts, words, convert):
        if self.compiler is not None:
            return self.compiler.version(self, key, names, facts, words, convert)
        with telling("transforming", self.__name__, self._count):
            normal_form, pipeline = self.normal_form(names, facts, words)
            emitted = emit(
                normal_form, normal_form.label, pipeline.reader.environment.captured, pipeline.reader.context.errstate
            )
            emitted.home = home_of(self)
            function = build(emitted.running(), normal_form.label, emitted.namespace)
        return Version(
            key,
            normal_form,
            emitted,
            None,
            function,
            guards_of(pipeline.reader),
            convert,
            (self, len(names), pipeline.reader.environment.captured)
            if pipeline.reader.memory.writes_arguments
            else None,
        )

    def _why(self, kinds: dict[str, str], version) -> str:
        """Why no earlier version serves arguments of these kinds, in words."""
        before = [(known, kinds_) for known, kinds_ in self._known.made]
        self._known.made.append((version, kinds))
        if not before:
            return "the first call"
        for known, theirs in reversed(before):
            if theirs == kinds:
                for holder, name, value in may_change(known.seen):
                    if not _guard(holder, name, value)():
                        return f"{name} is not what it was"
                if not all(g() for g in known.guards):
                    return "something that it reads is not what it was"
                return "other values of what must be known, or lengths that were equal and are not"

        def others(theirs):
            return [f"{n}: {kinds.get(n, 'not given')} instead of {theirs.get(n, 'not given')}"
                    for n in {**theirs, **kinds} if theirs.get(n) != kinds.get(n)]
        return ", ".join(min((others(theirs) for _, theirs in reversed(before)), key=cast(Any, len)))

    @property
    def versions(self) -> tuple[Made, ...]:
        """The specialisations that were made, in order: the kinds of arguments, with constant lengths, and why.

        >>> import numpy as np, gradscribe as gs
        >>> g = gs.grad(lambda w, x: np.sum(w * x))
        >>> _ = g(2.0, np.ones(5)), g(2.0, np.ones(6)), g(2.0, np.ones((5, 2)))
        >>> for made in g.versions:
        ...     print(made.kinds, "|", made.why)
        w: float, x: float64[n] | the first call
        w: float, x: float64[n, m] | x: float64[n, m] instead of float64[n]
        """
        return tuple(self._known.history)

    def _record_function(self):
        """Record the source of the user's function, under GRADSCRIBE_DUMP."""
        fn = self
        while is_transformed(fn) or isinstance(fn, functools.partial):
            fn = fn.base if is_transformed(fn) else fn.func
        try:
            record(_name(fn), textwrap.dedent(inspect.getsource(getattr(fn, "py_func", fn))), "function")
        except (OSError, TypeError):        # no source
            pass

    @property
    def __wrapped__(self):
        """The emitted function for the last call, or for the simplest arguments: what `inspect.getsource` shows."""
        if self._last is None:
            try:
                emitted = self._emitted_before(simplest(self, self._attempt)[0])
                return build(emitted.running(), emitted.label, emitted.namespace)
            except TransformError:
                return self.base
        return self._last.function if self._last.emitted is not None else self.base

    @property
    def __signature__(self):
        try:
            return inspect.signature(self.base)
        except (TypeError, ValueError) as error:
            raise AttributeError("__signature__") from error

    @alone
    def normal_form(self, names, facts, words, unroll=False, nested=True, platform="cpu", half="float16",
                    given_away=True):
        """The finished normal form for arguments with these facts, and its pipeline.

        given_away: whether results go to a user, so that they must not share memory
        """
        pipeline = Pipeline(unroll, platform, half)
        self._reader = pipeline.reader
        with telling("transforming", self.__name__, self._count):
            made = pipeline.normal_form(self, names, facts, words, self.__name__)
            label = pipeline.reader.context.label or self.__name__
            made.label = "function" if keyword.iskeyword(label) or not label.isidentifier() else label
            return pipeline.finished(made, nested, given_away), pipeline

    def _count(self):
        """The number of statements so far."""
        return 0 if self._reader is None else len(self._reader.build.made)

    def parameter_names(self, count):
        """The names of `count` positional arguments."""
        try:
            inner = self.transform.split(None, list(range(count)))[0]
            return self.transform.names(parameter_names(self.base, len(inner)))[:count]
        except Exception:
            return [f"x{k}" for k in range(count)]

    def normal_form_(self, reader, args, words, node):
        """The statements of this function inside another one that is being transformed."""
        if self.made_by is None:
            return self.transform.read(reader, self.base, args, words)
        with inside(reader, f"{self.made_by} of {getattr(self.base, '__name__', 'a function')}"):
            return self.transform.read(reader, self.base, args, words)

    # reading

    @public
    def source_for(self, *args, **kwargs) -> str:
        """The emitted text for such arguments; the function is not run.

        >>> import gradscribe as gs
        >>> print(gs.grad(lambda x: x ** 3).source_for(2.0))
        import numpy as np
        <BLANKLINE>
        <BLANKLINE>
        def grad_lambda(x):
            return 3 * x ** 2
        <BLANKLINE>
        """
        return Source(self.version_for(*self.given(args, kwargs)).text)

    @public
    def emitted_for(self, *args, **kwargs):
        """The emitted Python function for such arguments."""
        return self.version_for(*self.given(args, kwargs)).function

    @property
    @public
    def source(self) -> str:
        """The emitted text for the last call; before any call, for annotations or the simplest arguments that fit.

        >>> import gradscribe as gs
        >>> print(gs.grad(lambda x: x ** 3).source)
        # x: float
        import numpy as np
        <BLANKLINE>
        <BLANKLINE>
        def grad_lambda(x):
            return 3 * x ** 2
        <BLANKLINE>
        """
        if self._last is not None:
            return Source(self._last.text)

        facts, text = simplest(self, self._attempt)
        return Source(f"# {in_words(facts)}\n{text}")

    def _attempt(self, facts):
        return self._emitted_before(facts).source()

    def _emitted_before(self, facts):
        normal_form, pipeline = self.normal_form([n for n, _ in facts], [f for _, f in facts], {})
        emitted = emit(
            normal_form, normal_form.label, pipeline.reader.environment.captured, pipeline.reader.context.errstate
        )
        emitted.home = home_of(self)
        return emitted

    @public
    def simplest_kinds(self) -> str:
        """The kinds of arguments from annotations, or the simplest that fit, in the syntax of `gradscribe dump --args`.

        >>> import gradscribe as gs
        >>> gs.grad(lambda A, x: x @ A @ x).simplest_kinds()
        'float64[n, n], float64[n]'
        """
        return of_facts(simplest(self, self._attempt)[0])

    def __repr__(self):
        last = "" if self._last is None else f", {len(self._versions)} version{'s' * (len(self._versions) != 1)}"
        signature = inspect.signature(self.base) if callable(self.base) and _has_signature(self.base) else ""
        return f"<{self.__name__}{signature}{last}>"

    def _repr_html_(self):
        """The HTML for a notebook: the function and its transformation side by side."""
        from gradscribe.display import side_by_side  # imported when it is shown
        if self._last is None or self._last.emitted is None:
            return None
        return side_by_side(self)


def is_transformed(value: Any) -> bool:
    """Whether a value is a function that a transformation has made; it has a `base`."""
    return isinstance(getattr(value, "transform", None), Transform)


def apart(function: Callable, base: Any, count: int, captured: Mapping[int, tuple[Var, Any]]) -> Callable:
    """The function with a check that its array arguments share no memory: it writes into one of them.

    base: the transformed function; only arguments of the user's function below it are compared
    count: the number of positional arguments
    captured: {identity: (operand, object)} of values that it reads from outside
    """
    outside = list(_arrays([value for _, value in captured.values()]))

    @functools.wraps(function)
    def checked(*args):
        arrays = list(_arrays([*primals(base, args[:count]), *args[count:]]))
        if any(np.may_share_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k]):
            raise LanguageError("two arguments share memory, and the function writes into one of its arguments",
                                place_of(base), "Pass a copy.")
        if any(np.may_share_memory(a, b) for a in arrays for b in outside):
            raise LanguageError("an argument is an array that the function reads from outside, and it writes into an "
                                "argument", place_of(base), "Pass a copy.")
        return function(*args)
    return checked


def primals(made, args):
    """The arguments of the user's function: those of a transformed function without its tangents and cotangents."""
    while is_transformed(made):
        made, args = made.base, made.transform.split(None, args)[0]
    return args


def _arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _arrays(v)
    elif isinstance(value, dict):
        yield from _arrays(tuple(value.values()))


def home_of(fn: Any) -> str:
    """The module of the user's function."""
    while is_transformed(fn) or isinstance(fn, functools.partial):
        fn = fn.base if is_transformed(fn) else fn.func
    return getattr(fn, "__module__", None) or ""


def _name(base):
    if isinstance(base, functools.partial):
        return _name(base.func)
    name = getattr(base, "__name__", None) or type(base).__name__
    return "lambda" if name == "<lambda>" else name


def _has_signature(base):
    try:
        inspect.signature(base)
    except (TypeError, ValueError):
        return False
    return True


def _exact(value) -> Any:
    """A key of an argument, equal for two calls only if one version serves both."""
    kind = type(value)
    if kind is np.ndarray:
        return (value.dtype, value.shape)
    if kind is float or kind is int or kind is complex:
        return kind
    if kind is tuple or kind is list:
        return (kind, *map(_exact, value))
    if kind is dict:
        return (kind, tuple([k if type(k) is str else told_apart(k) for k in value]), *map(_exact, value.values()))
    if isinstance(value, np.generic):
        return value.dtype
    if kind is bool or kind in STREAMS:
        return kind
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (kind, *map(_exact, value))
    if hasattr(kind, "__dataclass_fields__"):
        return (kind, *(_exact(getattr(value, f)) for f in kind.__dataclass_fields__))
    if container_of(kind) is not None:
        raise Foreign
    return (kind, _frozen(value))


def kinds_of(args: Iterable) -> tuple:
    """The exact keys of arguments."""
    return tuple(map(_exact, args))


def _frozen(value):
    try:
        hash(value)
    except (TypeError, ValueError):             # ValueError: a writable memoryview
        return _Same(value)
    return told_apart(value)


class _Same:
    """A value compared by identity; it is kept alive, so that its id is not reused."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value


def _number_at(args, kwargs, path):
    """The integer at a path in the arguments; None if there is none."""
    place, *keys = path
    try:
        value = args[place] if isinstance(place, int) else kwargs[place]
        for key in keys:
            value = getattr(value, key) if isinstance(key, str) and not isinstance(value, dict) else value[key]
    except (LookupError, AttributeError, TypeError):            # arguments of another structure
        return None
    return value if isinstance(value, (int, np.integer)) else None


def _whole_numbers(facts, path=()):
    """(path, value as a length) of each integer in the arguments."""
    for key, fact in facts.items():
        if isinstance(fact, Sequence):
            keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
            yield from _whole_numbers(dict(zip(keys, fact.elements)), (*path, key))
        elif isinstance(fact, Array) and not fact.dims and fact.length is not None:
            yield (*path, key), fact.length


def guards_of(reader: Reader) -> tuple[Callable[[], bool], ...]:
    """Checks that what was read from outside is unchanged: the same objects, contents of containers, and functions."""
    checks = [_guard(*read) for read in may_change(reader.environment.guards)]
    names = reader.environment
    return (*checks, *_name_guards(names.guards), *_function_guards(names.functions), *names.kind_guards)


def may_change(seen):
    """(holder, name, value) of each read from outside that may give another value later, without duplicates."""
    known = set()
    for holder, name, value in seen:
        key = (id(_source(holder, name)), name)
        if key not in known and not of_library(name, value):
            known.add(key)
            yield holder, name, value


def _source(holder, name):
    """What holds a name: each reading of a function has a scope of its own, over the same cells and the same module."""
    return holder.cells.get(name, holder.namespace) if isinstance(holder, Scope) else holder


def of_library(name, value):
    """Whether a value is a module, or a library's function or class under its own name (from numpy import sin)."""
    if inspect.ismodule(value):
        return True
    module = (getattr(value, "__module__", "") or "").split(".")[0]
    library = inspect.isbuiltin(value) or isinstance(value, (np.ufunc, type)) or \
        callable(value) and module in ("numpy", "math", "functools", "builtins", "gradscribe")
    return library and not is_transformed(value) and getattr(value, "__name__", "") == name


def _name_guards(seen):
    """Checks that names still refer to library functions; one check for each module, since it runs at every call."""
    names = {}
    for holder, name, value in seen:
        if isinstance(holder, Scope) and name not in holder.cells and of_library(name, value):
            names.setdefault(id(holder.namespace), (holder.namespace, {}))[1][name] = value
    for namespace, values in names.values():
        tests = [f"get({name!r}) is v{k}" if name in namespace else f"{name!r} not in namespace"
                 for k, name in enumerate(values)]
        yield eval(f"lambda: {' and '.join(tests)}", {"namespace": namespace, "get": namespace.get, **{
            f"v{k}": value for k, value in enumerate(values.values())}})


def _function_guards(functions):
    """Checks that functions that were read have the same code and defaults."""
    own = [(f, *parts) for f, parts in functions.items()
           if (f.__module__ or "").split(".")[0] not in ("gradscribe", "numpy", "scipy")]
    if not own:
        return
    if len(own) == 1:                   # the usual case, made fast
        (f, code, defaults, words), = own
        yield lambda: f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ is words
    else:
        yield lambda: all([f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ is words
                           for f, code, defaults, words in own])
    for _, _, *held in own:
        for value in held:              # a list as a default value may change in place
            if isinstance(value, dict) or value is not None and any(map(_holds, value)):
                contents = _contents(value)
                yield functools.partial(contents.held_by, value)


def _holds(value):
    return isinstance(value, (list, tuple, dict, set))


def _guard(holder, name, value):
    value = _contents(value)
    if not isinstance(holder, Scope):
        return lambda: _same(getattr(holder, name, _MISSING), value)
    if name in holder.cells:
        cell = holder.cells[name]
        return lambda: _same(cell.cell_contents, value)
    namespace = holder.namespace
    if name not in namespace:
        return lambda: name not in namespace
    return lambda: _same(namespace.get(name, _MISSING), value)


def _same(now, then):
    if type(then) in (_Contents, _Kind):
        return then.held_by(now)
    return now is then or type(now) is type(then) and isinstance(then, (bool, int, float, str)) and now == then and (
        type(then) is not float or math.copysign(1.0, now) == math.copysign(1.0, then))


class _Contents:
    """A snapshot of a container from outside, which may change in place between calls."""
    __slots__ = ("items", "keys", "value")

    def __init__(self, value, within):
        self.value, self.keys = value, list(value) if isinstance(value, (Mapping, MutableSet)) else None
        items = value.values() if isinstance(value, Mapping) else () if isinstance(value, MutableSet) else value
        self.items = [_contents(item, (*within, value)) for item in items]

    def held_by(self, now):
        if now is not self.value or len(now) != len(self.items if self.keys is None else self.keys):
            return False
        if self.keys is not None and not all(map(_same, now, self.keys)):
            return False
        return all(map(_same, now.values() if isinstance(now, Mapping) else now, self.items)) if self.items else True


def _contents(value, within=()):
    if isinstance(value, np.ndarray):
        return _Kind(value)
    if not isinstance(value, (tuple, Mapping, MutableSequence, MutableSet)) or any(value is outer for outer in within):
        return value
    made = _Contents(value, within)
    fixed = isinstance(value, tuple) and not any(type(item) in (_Contents, _Kind) for item in made.items)
    return value if fixed else made     # the items of a tuple stay the same objects


class _Kind:
    """The shape and dtype of an array from outside, which may change in place; its entries are read in each call."""
    __slots__ = ("kind", "value")

    def __init__(self, value):
        self.value, self.kind = value, (value.shape, value.dtype)

    def held_by(self, now):
        return now is self.value and (now.shape, now.dtype) == self.kind


