# SPDX-License-Identifier: Apache-2.0
"""Sparsity: which entries of a function's results may depend on which entries of an argument.

An abstract interpretation of the normal form.  Every entry of a value has an index set: the entries of the argument
that its derivative may depend on.  A set is a node of a graph of unions; only the sets of the results are computed, at
the end (`Unions.rows`).  The pattern holds for all numbers that the argument may have:

- A branch whose test depends on an argument with a fraction takes both arms; each entry has the union of its two sets.
- A loop on numbers whose passes do not depend on each other runs at once (sparse_nests.py).
- A loop whose number of passes depends on one repeats until the sets no longer grow.
- Whole numbers, booleans and arrays from outside have the values that they have now.  A factor that is zero now is no
  dependence.

What an operation does comes from its record:

- An elementwise one joins the sets of its operands, entry by entry.
- A linear one that only moves entries moves their sets.  Whether it does is found out by a run on labels.
- Others run on arrays of `Token`s, where NumPy has a loop over objects: sums, products of matrices, differences.
- One with an `axis` joins the sets along it.
- In every other one, and in a function with a custom derivative, which may differ from what it computes, each result
  depends on every entry of its operands.

>>> from gradscribe.ast_transform.examples import form
>>> f = form("def f(x):\\n    y = x * 2.0\\n    y[1:] += x[:-1] ** 2\\n    return y", np.ones(3))
>>> indptr, indices = sparsity(f, {f.params[0].value: np.ones(3)}, f.params[0].value)
>>> indptr.tolist(), indices.tolist()
([0, 1, 3, 5], [0, 0, 1, 1, 2])

Sources: A. Griewank and A. Walther, Evaluating Derivatives (2008), section 7.4, for sparsity patterns by propagation of
index sets; A. Walther, Getting started with ADOL-C (2009), for sets of several control flows.
"""
import copy
import functools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradscribe.ast_transform.analysis.index_sets import Unions
from gradscribe.ast_transform.analysis.sparse_nests import Nest, Sequential
from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Slice,
    Undefined,
    Var,
    While,
)
from gradscribe.ast_transform.core.memory import PART, VIEW
from gradscribe.ast_transform.core.operations import Quoted, add_at, put, put_add
from gradscribe.ast_transform.core.rule import PACKAGES, Operation, Rule
from gradscribe.ast_transform.source.diagnose import LanguageError

PASSES = 16                 # of a loop with an unknown number of passes, before all its sets become one
ADVICE = "Give the pattern: sparsity=."


class Traced:
    """A value that may be another one in a later call: its value now, and the sets of its entries (None: no set)."""
    __slots__ = ("sets", "value")

    def __init__(self, value, sets=None):
        self.value, self.sets = value, sets


class Refused(Exception):
    """Why no pattern is found."""


def sparsity(function: Function, values: Mapping[Var, Any], argument: Var,
             outside: Mapping[Var, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices) of the boolean matrix of a normal form, in compressed rows: a row for each entry of the result,
    a column for each entry of the argument.

    values: of the parameters; outside: the arrays from outside, whose entries count as constants.  Raises LanguageError
    where no pattern is found.
    """
    unions = Unions(np.size(values[argument]))
    run = Interpreter(unions)
    for var, value in values.items():
        run.env[var] = traced(value)
    run.env.update(outside or {})
    run.env[argument] = Traced(values[argument], unions.leaves(np.shape(values[argument])))
    with np.errstate(all="ignore"):
        try:
            run.block(function.body)
            result = run.value(function.result)
        except Refused as why:
            place = getattr(run.step, "origin", None)
            raise LanguageError(f"no sparsity pattern of {function.label} is found: {why}", place, ADVICE) from None
    return unions.rows(np.concatenate([np.ravel(sets_in(leaf)) for leaf in leaves(result)] or [np.zeros(0, int)]))


def traced(value):
    """A value at entry: what has fractions may be another number in a later call."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(traced, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {k: traced(v) for k, v in value.items()}
    return Traced(value) if has_fractions(value) else value


def has_fractions(value):
    return isinstance(value, (np.ndarray, np.generic, float, complex)) and np.asarray(value).dtype.kind in "fc"


def leaves(value):
    """The arrays and numbers in nested containers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def sets_in(value):
    """The sets of a value's entries; 0 is the empty one."""
    if isinstance(value, Traced):
        if value.sets is not None:
            return value.sets
        value = value.value
    shape = np.shape(value)
    return np.zeros(shape, np.int64) if shape else 0


def plain(value):
    """A value without its sets, at any depth."""
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, Traced) for leaf in leaves(value)):
        items = map(plain, value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return value


def is_traced(value):
    return any(isinstance(leaf, Traced) for leaf in parts_of(value))


def parts_of(value):
    return leaves((value.start, value.stop, value.step) if isinstance(value, slice) else value)


def filled(value, number):
    """A value whose numbers that are not known are this number (2: 0, 1, 0, ...)."""
    if isinstance(value, Traced):
        out = np.empty_like(value.value)
        out[...] = number if number < 2 else np.arange(out.size).reshape(out.shape) % 2
        return out.item() if isinstance(value.value, (bool, int, float, complex)) else out[()]
    if isinstance(value, (list, tuple)):
        return type(value)(filled(v, number) for v in value)
    if isinstance(value, slice):
        return slice(*(filled(p, number) for p in (value.start, value.stop, value.step)))
    return value


def marked(value, sets=None):
    """A result as Traced values, at any depth; sets: of all its entries."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Traced):
        items = [marked(v, sets) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if value is None or isinstance(value, (str, type, np.dtype)):
        return value
    if not isinstance(value, (np.ndarray, np.generic, float, complex, int)):
        raise Refused(f"a {type(value).__name__} depends on numbers")
    if sets is None or not has_fractions(value):
        return Traced(value)
    return Traced(value, np.full(np.shape(value), sets, np.int64))


class Interpreter:
    """Runs a normal form on values with sets."""

    def __init__(self, unions):
        self.unions, self.env, self.step = unions, {}, None

    # values

    def value(self, node):
        kind = type(node)
        if kind is Var:
            if node not in self.env:
                raise Refused("a value from outside is read")
            return self.env[node]
        if kind is Const:
            return node.value
        if kind is Pack:
            items = [self.value(i) for i in node.items]
            if node.kind in ("dict", "record"):
                return dict(zip(node.keys, items))
            return tuple(items) if node.kind == "tuple" else items
        if kind is Slice:
            return slice(*(None if p is None else self.value(p) for p in (node.start, node.stop, node.step)))
        if kind is Apply:
            words = {k: self.value(a) for k, a in node.kwargs}
            return self.apply(node.function, [self.value(a) for a in node.args], words)
        raise Refused(f"it holds a {kind.__name__}")

    def apply(self, function, args, words):
        if isinstance(function, Function):
            return self.call(function, args, words)
        given = [*args, *words.values()]
        if not any(map(is_traced, given)):
            return self.run(function, args, words)
        if isinstance(function, Quoted):
            raise Refused(f"{function.__name__} is kept as it is written")
        if self.keeps_containers(function, args):
            return self.run(function, args, words)
        value = self.run(function, [plain(a) for a in args], {k: plain(a) for k, a in words.items()})
        if getattr(record_of(function), "options", {}).get("of_shape"):
            return value
        self.check_shape(function, args, words, value)
        if all(not isinstance(leaf, Traced) or leaf.sets is None for a in given for leaf in leaves(a)):
            return marked(value)
        return Dependence(self.unions, function, args, words, value).result()

    def run(self, function, args, words):
        if any(isinstance(a, np.random.Generator) for a in args):
            args = copy.deepcopy(args)
        try:
            return function(*args, **words)
        except Exception as error:
            raise Refused(f"{getattr(function, '__name__', function)}: {error}") from None

    def check_shape(self, function, args, words, value):
        """Refuses an operation whose result has another shape for other numbers: it runs on some."""
        record = record_of(function)
        kind, by_value = getattr(record, "kind", ""), "by_value" in getattr(record, "options", {})
        whole = any(isinstance(leaf, Traced) and not has_fractions(leaf.value) for a in [*args, *words.values()]
                    for leaf in parts_of(a))
        if kind == "elementwise" or not whole and not by_value and (kind or function in BY_INDEX):
            return
        shapes, runs = list(map(np.shape, leaves(value))), 0
        for number in (0, 1, 2):
            given = {k: filled(a, number) for k, a in words.items()}
            try:
                other = function(*(filled(a, number) for a in args), **given)
            except Exception:                   # these numbers are not allowed: others may be
                continue
            runs += 1
            if list(map(np.shape, leaves(other))) != shapes:
                raise Refused("the shape of a result depends on numbers")
        if not runs:
            raise Refused("whether the shape of a result depends on numbers is not known")

    def keeps_containers(self, function, args):
        """Whether an operation only rearranges the elements of a list."""
        record = record_of(function)
        if not args or not isinstance(args[0], (list, tuple, dict)) or isinstance(record, Rule) and \
                function is not operator.getitem:
            return False
        return function not in (put, put_add, add_at) and not is_traced(args[1:2]) and \
            getattr(function, "__name__", "") != "as_array"

    def call(self, function, args, words):
        """A call of a function that has a normal form of its own."""
        inner = Interpreter(self.unions)
        given = iter(args)
        for p in function.params:
            if isinstance(p.value, Var):
                inner.env[p.value] = words[p.name] if p.keyword or p.name in words else next(given)
            elif not p.keyword:
                next(given, None)
        inner.env = {**self.env, **inner.env}
        inner.block(function.body)
        value = inner.value(function.result)
        if function.custom is None or function.custom.rule.mode == "vmap":
            return value
        every = [s for a in [*args, *words.values()] for leaf in leaves(a) for s in np.ravel(sets_in(leaf))]
        return marked(plain(value), self.unions.all_of(every))

    # statements

    def block(self, block):
        for step in block:
            kind = type(step)
            if kind is Let:
                self.step = step
                self.let(step)
            elif kind is not Effect:
                getattr(self, kind.__name__)(step)

    def let(self, step):
        value = self.value(step.value)
        if len(step.targets) == 1:
            self.env[step.targets[0]] = value
            return
        if isinstance(value, Traced):
            value = [Traced(v, None if value.sets is None else s) for v, s in zip(value.value, sets_in(value))]
        for target, v in zip(step.targets, value):
            self.env[target] = v

    def If(self, step: If):
        test = self.value(step.test)
        if not is_traced(test):
            self.block(step.then if test else step.orelse)
            for j in step.joins:
                self.env[j.var] = self.value(j.then if test else j.orelse)
            return
        self.block(step.then)
        self.block(step.orelse)
        for j in step.joins:
            arms = [self.value(j.then), self.value(j.orelse)]
            self.env[j.var] = self.joined(*(arms if plain(test) else reversed(arms)))

    def joined(self, a, b):
        """A value that is one of two; its value now is the first."""
        if isinstance(a, Undefined) or a is None:
            return b
        if isinstance(b, Undefined) or b is None:
            return a
        if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
            return {k: self.joined(a[k], b[k]) for k in a}
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b):
                raise Refused("a branch changes the length of a list")
            return type(a)(self.joined(x, y) for x, y in zip(a, b))
        if not isinstance(a, Traced) and not isinstance(b, Traced) and not isinstance(a, np.ndarray) and \
                type(a) is type(b) and a == b:
            return a
        if np.shape(plain(a)) != np.shape(plain(b)):
            raise Refused("a branch changes the shape of an array")
        return Traced(plain(a), self.unions.join(sets_in(a), sets_in(b)))

    def For(self, step: For):
        try:
            Nest(self).run(step)
            return
        except (Sequential, Refused):
            pass
        count = self.value(step.count)
        sources = [self.source(source) for _, source in step.items]
        for c in step.carries:
            self.env[c.inner] = self.value(c.init)
        if is_traced(count):
            self.repeated(step, lambda: self.pass_of_for(step, sources, 0, True))
        else:
            places = range(count - 1, -1, -1) if step.reverse else range(count)
            for k in places:
                self.pass_of_for(step, sources, k)
                self.carry(step)
        for c in step.carries:
            self.env[c.outer] = self.env[c.inner]

    def source(self, node):
        """What a loop goes over; of a range that depends on numbers, the one now: its entries are not known."""
        if isinstance(node, Apply) and node.function is range:
            return range(*(plain(self.value(a)) for a in node.args))
        return self.value(node)

    def pass_of_for(self, step, sources, k, unknown=False):
        self.env[step.index] = Traced(k) if unknown else k
        for (var, _), source in zip(step.items, sources):
            self.env[var] = self.item(source, k, unknown)
        self.block(step.body)

    def item(self, source, k, unknown):
        if isinstance(source, Traced):
            sets = source.sets
            if unknown and sets is not None:
                return Traced(source.value[k], self.unions.reduce(sets, (0,)))
            return Traced(source.value[k], None if sets is None else sets[k])
        return Traced(plain(source[k])) if unknown else source[k]

    def carry(self, step):
        new = [self.value(c.next) for c in step.carries]
        for c, v in zip(step.carries, new):
            self.env[c.inner] = v

    def While(self, step: While):
        for c in step.carries:
            self.env[c.inner] = self.value(c.init)
        while True:
            self.block(step.head)
            test = self.value(step.test)
            if is_traced(test):
                self.repeated(step, lambda: self.block([*step.head, *step.body]))
                self.block(step.head)
                break
            if not test:
                break
            self.block(step.body)
            self.carry(step)
        for c in step.carries:
            self.env[c.outer] = self.env[c.inner]

    def repeated(self, step, one_pass):
        """A loop with an unknown number of passes, none included: the sets grow until they are a fixpoint."""
        before = None
        for k in range(PASSES + 2):
            one_pass()
            for c, v in [(c, self.value(c.next)) for c in step.carries]:
                self.env[c.inner] = self.joined(self.env[c.inner], v)
            if k >= PASSES:
                self.all_as_one(step)
            now = [self.unions.evaluated(sets_in(leaf)) for c in step.carries for leaf in leaves(self.env[c.inner])]
            if now == before:
                return
            before = now

    def all_as_one(self, step):
        """Every carry gets the union of all of their sets."""
        every = 0
        for c in step.carries:
            for leaf in leaves(self.env[c.inner]):
                every = self.unions.all_of([every, *np.ravel(sets_in(leaf))])
        for c in step.carries:
            self.env[c.inner] = marked(plain(self.env[c.inner]), every)


class Token:
    """An entry of an array of objects: a number that is not known, with its set.  Every operation joins the sets.

    Comparing it raises TypeError, since a choice by its value would lose a set.
    """
    __slots__ = ("set", "unions")

    def __init__(self, set_, unions):
        self.set, self.unions = set_, unions

    def __mul__(self, other):
        return 0 if not isinstance(other, Token) and other == 0 else self.joined(other)

    __rmul__ = __mul__

    def joined(self, other=None, *_):
        if not isinstance(other, Token) or other.set == self.set:
            return self
        return Token(int(self.unions.join(self.set, other.set)), self.unions)

    def itself(self, *_):
        return self

    def refused(self, *_):
        raise TypeError("a number that is not known is compared")

    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = joined
    __neg__ = __pos__ = __abs__ = itself
    conjugate = sqrt = exp = log = sin = cos = tan = tanh = itself
    __bool__ = __float__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = refused
    __hash__ = None  # type: ignore[assignment]  # it has no equality


class Dependence:
    """The sets of one operation's result."""

    def __init__(self, unions, function, args, words, value):
        self.unions, self.function, self.args, self.words, self.value = unions, function, args, words, value
        self.record = record_of(function)

    def result(self):
        if isinstance(self.value, (np.ndarray, np.generic, float, int)) and not has_fractions(self.value) or \
                getattr(self.record, "kind", "") == "constant":
            return marked(self.value)
        if self.function in BY_INDEX and is_traced(self.args[1]):
            return self.dense()
        for way in (self.elementwise, self.moved, self.by_tokens, self.along_an_axis):
            found = way()
            if found is not None:
                return found
        return self.dense()

    def dense(self):
        """Every entry depends on all entries of the operands."""
        every = [s for a in [*self.args, *self.words.values()] for leaf in leaves(a) for s in np.ravel(sets_in(leaf))]
        return marked(self.value, self.unions.all_of(every))

    @functools.cached_property
    def bound(self):
        """{argument: value}, or None for an operation without a rule."""
        if not isinstance(self.record, Rule):
            return None
        if not self.words and len(self.args) <= len(self.record.arguments):
            return dict(zip(self.record.arguments, self.args))
        try:
            return self.record.signature.bind(*self.args, **self.words).arguments
        except TypeError:
            return None

    def is_of_a_user(self):
        return isinstance(self.record, Rule) and self.record.is_of_a_user()

    def elementwise(self):
        record = self.record
        if not (isinstance(record, Rule) and (record.kind == "elementwise" or record.options.get("elementwise"))
                or isinstance(self.function, np.ufunc) and self.function.signature is None) or self.is_of_a_user():
            return None
        if self.bound is None or not isinstance(self.value, (np.ndarray, np.generic, float, complex)):
            return None
        active = [a for name, a in self.bound.items() if name in record.active]
        if any(isinstance(a, (list, tuple)) for a in active):
            return None
        sets = [sets_in(a) for a in active]
        if record.options.get("algebra") == "product" and len(active) == 2:
            sets = [own if is_traced(other) else np.where(np.equal(other, 0), 0, own)
                    for own, other in zip(sets, reversed(active))]
        joined = functools.reduce(self.unions.join, sets)
        shape = np.shape(self.value)
        return Traced(self.value, joined if np.shape(joined) == shape else np.broadcast_to(joined, shape))

    def moved(self):
        """The sets of a linear operation that only moves entries, or None.

        Labels take the place of numbers.  An entry of the result that has the same label in three runs is that entry.
        """
        if self.is_of_a_user() or not isinstance(self.value, (np.ndarray, np.generic, float, complex)):
            return None
        if not (isinstance(self.record, Operation) or getattr(self.record, "kind", "") == "linear"):
            return None
        if self.function in BY_INDEX or self.record.memory in (VIEW, PART):
            sets = self.function(*map(in_place_of, self.args), **{k: in_place_of(a) for k, a in self.words.items()})
            return Traced(self.value, sets)
        own = np.concatenate([[0], *(np.ravel(sets_in(leaf)) for a in [*self.args, *self.words.values()]
                                     for leaf in leaves(a) if isinstance(leaf, Traced))])
        runs = [self.labelled(seed, own.size) for seed in range(3)]
        if any(r is None for r in runs):
            return None
        places = [place for place, _ in runs]
        fixed = np.logical_and(*(runs[0][1] == out for _, out in runs[1:]))
        same = np.logical_and(*(places[0] == p for p in places[1:])) & (places[0] > 0)
        if not np.all(fixed | same):
            return None
        return Traced(self.value, own[np.where(fixed, 0, places[0])])

    def labelled(self, seed, count):
        """(places of the labels in a run's result, the result): 0 where it is no label; None if the run fails."""
        if count > LABELS:
            return None
        chosen = np.random.default_rng(seed).choice(LABELS, count - 1, replace=False)
        labels = np.concatenate([[0.0], 1 + chosen / LABELS])
        given = iter(labels[1:])

        def with_labels(value):
            if isinstance(value, Traced):
                shape = np.shape(value.value)
                out = np.fromiter(given, float, int(np.prod(shape))).reshape(shape)
                return out * (1 + 1j) if np.asarray(value.value).dtype.kind == "c" else out[()]
            if isinstance(value, (list, tuple)):
                return type(value)(map(with_labels, value))
            return value
        try:
            args, words = [with_labels(a) for a in self.args], {k: with_labels(a) for k, a in self.words.items()}
            out = np.asarray(self.function(*args, **words))
        except Exception:                       # not with labels: another way is tried, the last of which is sound
            return None
        if out.shape != np.shape(self.value):
            return None
        real = np.where(out.imag == out.real, out.real, np.nan) if out.dtype.kind == "c" else out
        order = np.argsort(labels)
        place = np.minimum(np.searchsorted(labels[order], real), count - 1)
        found = order[place]
        return np.where(labels[found] == real, found, 0), out

    def by_tokens(self):
        """The sets by a run on objects; None if NumPy has no loop over objects for it."""
        if self.is_of_a_user() or self.record is None and own_package(self.function) not in PACKAGES:
            return None
        try:
            words = {k: self.as_tokens(a) for k, a in self.words.items()}
            sets = as_sets(self.function(*map(self.as_tokens, self.args), **words))
        except Exception:                       # NumPy has no loop over objects, or a token is compared
            return None
        return Traced(self.value, sets) if np.shape(sets) == np.shape(self.value) else None

    def as_tokens(self, value):
        if isinstance(value, Traced) and has_fractions(value.value):
            sets = sets_in(value)
            made = np.empty(np.shape(sets), object)
            made[...] = np.frompyfunc(lambda s: Token(int(s), self.unions), 1, 1)(sets)
            return made if made.ndim else made[()]
        if isinstance(value, Traced):
            raise TypeError("a whole number that is not known")
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.as_tokens, value))
        return value

    def along_an_axis(self):
        """The sets of an operation on one-dimensional slices along its axis, as NumPy's argument `axis` means."""
        if self.bound is None or "axis" not in self.record.signature.parameters or self.is_of_a_user():
            return None
        operands = [a for a in self.bound.values() if isinstance(a, Traced) and a.sets is not None and np.ndim(a.sets)]
        others = [leaf for n, a in self.bound.items() for leaf in leaves(a) if isinstance(leaf, Traced)]
        axis = self.bound.get("axis", self.record.signature.parameters["axis"].default)
        if len(operands) != 1 or len(others) != 1 or axis is None or not isinstance(axis, (int, tuple)):
            return None
        sets, shape = operands[0].sets, np.shape(self.value)
        axes = tuple(a % sets.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
        joined = self.unions.reduce(sets, axes, keepdims=len(shape) == sets.ndim)
        lengths = [n for k, n in enumerate(shape) if len(shape) != sets.ndim or k not in axes]
        if lengths != [n for k, n in enumerate(sets.shape) if k not in axes] or not has_fractions(self.value):
            return None
        return Traced(self.value, np.broadcast_to(joined, shape))


def own_package(function):
    return str(getattr(function, "__module__", "")).split(".")[0]


def in_place_of(value):
    """The sets of a value's entries, for a function that only moves entries; what is no number is itself."""
    return sets_in(value) if isinstance(value, (Traced, np.ndarray, float, complex)) and has_fractions(plain(value)) \
        else value


BY_INDEX = operator.getitem, put
LABELS = 1 << 22            # labels are multiples of 2 ** -22 between 1 and 2: exact in single precision


def as_sets(value):
    """The sets of an array of objects; what is no Token has none."""
    found = np.frompyfunc(lambda e: e.set if isinstance(e, Token) else 0, 1, 1)(np.asarray(value, object))
    return np.asarray(found, np.int64)[()]
