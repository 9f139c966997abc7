# SPDX-License-Identifier: Apache-2.0
"""What a function makes of lengths, found by asking it.

It runs on two sets of small arrays whose lengths differ, and on a third where these leave more than one explanation; a
length of the result is certain where all answers are explained by the same length of an argument
(docs/decisions/0002-facts-by-probing.md).

>>> from gradscribe.ast_transform.core.form import Var
>>> from gradscribe.ast_transform.core.kinds import Symbol
>>> n, m = Length(Symbol("n")), Length(Symbol("m"))
>>> probe(np.diff, (Var("x", Array(np.dtype(float), (n, m))),)).dims
(n, m-1)
"""
import itertools
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import (
    Array,
    Length,
    Opaque,
    Sequence,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import Unfit, fact_of, no_array
from gradscribe.ast_transform.rules.lengths import NUMBERS

# Of any two lengths the shorter in one set is the longer in the other: the minimum of two is neither.
FIRST, SECOND = (5, 7, 11, 16, 23, 31, 37, 43), (28, 21, 17, 14, 10, 8, 6, 4)
FEW = (0, 2, 3)                             # where a number that is claimed of a length may be too large
THIRD = (29, 19, 9, 6, 3, 4, 10, 12)        # where two lengths leave more than one explanation
NEAR = 4                                    # what a result's length may differ by from one of an argument
SIZES = {np.size, np.ndim, np.shape}        # whole numbers made of lengths, whatever an array holds
_cache: dict = {}


class _Probe:
    """One run of a function on small arrays: symbols become numbers, the shortest length of each one of the sizes."""

    def __init__(self, sizes=(), symbols=(), shortest=()):
        self.chosen = {s: n - more for s, n, more in zip(symbols, sizes, shortest)}
        self.regular = False
        if len(self.chosen) < len(symbols):
            raise Unfit("too many lengths at once")

    def length(self, length):
        n = length.normal()
        if n.symbol is None:
            return n.offset
        return self.chosen[n.symbol] + n.offset

    def value(self, node):
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Pack):
            items = [self.value(i) for i in node.items]
            return tuple(items) if node.kind == "tuple" else items
        if isinstance(node, Slice):
            return slice(*(None if p is None else self.value(p) for p in (node.start, node.stop, node.step)))
        return self.sample(fact_of(node))

    def sample(self, fact):
        if isinstance(fact, Array):
            if not fact.dims:
                if fact.length is not None:
                    n = self.length(fact.length)
                    return n if fact.weak else fact.dtype.type(n % 100)
                if fact.weak:
                    return {bool: True, int: 2, float: 0.5, complex: 0.5 + 0.5j}[fact.dtype]
                return fact.dtype.type(1) if fact.kind in "biu" else fact.dtype.type(0.5)
            shape = tuple(self.length(d) for d in fact.dims)
            if any(n < 0 for n in shape):
                raise Unfit("a length would be negative")
            return _filled(shape, fact.dtype, self.regular)
        if isinstance(fact, Sequence):
            items = [self.sample(e) for e in fact.elements]
            if fact.kind == "dict":
                return dict(zip(fact.keys, items))
            return tuple(items) if fact.kind == "tuple" else items if fact.kind == "list" else fact.cls(*items)
        if isinstance(fact, Opaque):
            return fact.value
        raise no_array(fact)


def _value(function, args, kwargs, run):
    """What the function gives; matrices of whole numbers have an inverse where it asks for one."""
    try:
        return function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs})
    except np.linalg.LinAlgError:
        run.regular = True
        return function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs})


def _filled(shape, dtype, regular):
    if dtype.kind in "biu" and regular and len(shape) >= 2 and shape[-1] == shape[-2]:
        return np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape).copy()
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return np.zeros(shape, dtype)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        square = 2.0 * np.eye(shape[-1]) + 0.1 + 0.5 * np.diag(np.arange(shape[-1]) / max(1, shape[-1]))
        return np.broadcast_to(square, shape).astype(dtype)
    return np.full(shape, 0.5, dtype)


def _asked(function, args, kwargs=()):
    """Ask the function itself, twice, with different lengths."""
    facts = [_facts_in(a) for a in [*args, *(a for _, a in kwargs)]]
    symbols = list(
        dict.fromkeys(n.symbol for f in itertools.chain(*facts) for n in _lengths(f) if n.symbol is not None)
    )
    number = {s: k for k, s in enumerate(symbols)}
    try:
        key = (function, tuple(_key(a, number) for a in args), tuple((k, _key(a, number)) for k, a in kwargs))
        known = _cache.get(key)
    except TypeError:
        key = known = None
    if known is None:
        known = _ask(function, args, kwargs, symbols)
        if key is not None and not isinstance(known, _Again):
            _cache[key] = known
    found = _decode(known, symbols)
    return _in_the_example(found, function, args, kwargs, symbols) if any(map(_none_left, _lengths(found))) else found


def _none_left(length):
    """Whether the example has fewer entries than are taken away: all probes may have had more."""
    return length.offset < 0 and length.symbol is not None and length.symbol.size is not None and \
        length.symbol.size + length.offset <= 0


def _in_the_example(found, function, args, kwargs, symbols):
    """Nothing is claimed of lengths that the example's own lengths do not give (np.convolve swaps its arguments)."""
    run = _Probe()
    run.chosen = {s: s.size for s in symbols}
    if not isinstance(found, Array) or None in run.chosen.values():
        return found
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shape = np.shape(function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs}))
        except Exception:               # left to fail where the user wrote it
            return found
    dims = [d if not _none_left(d.normal()) or n == d.normal().symbol.size + d.normal().offset else unknown("?")
            for d, n in zip(found.dims, shape)]
    return Array(found.dtype, tuple(dims))


def _facts_in(node):
    if isinstance(node, (Pack,)):
        return list(itertools.chain(*map(_facts_in, node.items)))
    if isinstance(node, Slice):
        return list(itertools.chain(*(_facts_in(p) for p in (node.start, node.stop, node.step) if p is not None)))
    if isinstance(node, Const) and not isinstance(node.value, np.ndarray):
        return []
    return [fact_of(node)]


def _lengths(fact):
    if isinstance(fact, Array):
        for d in fact.dims:
            yield d.normal()
        if fact.length is not None:
            yield fact.length.normal()
    elif isinstance(fact, Sequence):
        for e in fact.elements:
            yield from _lengths(e)


def _key(node, number):
    if isinstance(node, Const):
        if isinstance(node.value, np.ndarray):
            raise TypeError
        hash(node.value)
        return ("=", type(node.value), node.value, repr(node.value) if isinstance(node.value, tuple) else "")
    if isinstance(node, Pack):
        return (node.kind, tuple(_key(i, number) for i in node.items))
    if isinstance(node, Slice):
        return ("slice", tuple(p is None or _key(p, number) for p in (node.start, node.stop, node.step)))
    return _fact_key(fact_of(node), number)


def _fact_key(fact, number):
    if isinstance(fact, Array):
        def at(length):
            n = length.normal()
            return (number.get(n.symbol), n.offset, n.many)
        return (fact.weak, fact.dtype, tuple(map(at, fact.dims)), None if fact.length is None else at(fact.length))
    if isinstance(fact, Sequence):
        return (fact.kind, fact.keys, fact.cls, tuple(_fact_key(e, number) for e in fact.elements))
    hash(getattr(fact, "value", None))
    return repr(fact)


def _ask(function, args, kwargs, symbols):
    answers, shortest = [], _shortest(args, kwargs, symbols)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sizes in (FIRST, SECOND):
            run = _Probe(sizes, symbols, shortest)
            try:
                value = _value(function, args, kwargs, run)
            except Unfit:
                raise
            except Exception as error:
                return _by_example(function, args, kwargs, symbols, error)
            answers.append((_structure(value), run.chosen))
        known = _explain(*zip(*answers), symbols, shortest)
        if not _same_lengths(known):
            run = _Probe(THIRD, symbols, shortest)
            try:
                value = _value(function, args, kwargs, run)
                answers.append((_structure(value), run.chosen))
            except Exception as error:
                raise Unfit(f"the result's shape is not certain: {error}") from None
            known = _explain(*zip(*answers), symbols, shortest)
        known = _from_least(known, lambda n: _few(function, args, kwargs, symbols, n), shortest)
        one = _few(function, args, kwargs, symbols, 1)
        if one is not None and _ranks(one) != _ranks(known):
            known = ("above one", shortest, known)
    return known if _of_lengths(function, args, kwargs) else _uncounted(known)


def _ranks(known):
    """The ranks of all arrays of a result: np.squeeze leaves out axes of length one."""
    kind, _, detail = known
    return tuple(map(_ranks, detail)) if kind == "several" else len(detail) if kind == "array" else 0


def _shortest(args, kwargs, symbols):
    """For each symbol what its shortest length adds to it: n-1 is shorter than n."""
    given = [n for a in [*args, *(a for _, a in kwargs)] for f in _facts_in(a) for n in _lengths(f)]
    return tuple(min((n.offset for n in given if n.symbol is s), default=0) for s in symbols)


def _few(function, args, kwargs, symbols, n):
    """What the function says when all lengths are n, or the shortest of each symbol is; None where it raises."""
    run = _Probe([n] * len(symbols), symbols, _shortest(args, kwargs, symbols))
    try:
        return _structure(_value(function, args, kwargs, run))
    except Exception:
        return None


def _from_least(known, few, shortest):
    """What is claimed of a length holds from the least lengths on from which it is so: v[:2] is shorter where v is."""
    def holds(n):
        return _holds(known, few(n), tuple(n - more for more in shortest))
    if all(map(holds, FEW)):
        return known
    longest = max(FIRST + SECOND)
    least = next(n for n in range(longest, -1, -1) if n != 1 and not holds(n)) + 1
    return _held_to(known, tuple(least - more for more in shortest))


def _holds(known, found, sizes):
    """Whether what is claimed of the lengths of a result is so in an answer that is like it; sizes: of the symbols."""
    if found is None or known[0] != found[0]:
        return True
    if known[0] == "several":
        return len(known[2]) != len(found[2]) or all(_holds(k, f, sizes) for k, f in zip(known[2], found[2]))
    return known[0] != "array" or len(known[2]) != len(found[2]) or all(
        _claims(d, sizes) in (None, n) for d, n in zip(known[2], found[2]))


def _claims(length, sizes):
    """The number that is claimed of a length where the symbols have these sizes; None where none is."""
    if isinstance(length, tuple) and length[0] != "product":
        claimed = sizes[length[0]] + length[1]
        return claimed if claimed >= 0 else None        # n-1 of none
    return length if isinstance(length, int) else None


def _held_to(known, least):
    """Every claim of a length, with what it asks of the symbols."""
    kind, dtype, detail = known
    if kind == "several":
        return (kind, dtype, tuple(_held_to(d, least) for d in detail))
    if kind == "array":
        return (kind, dtype, tuple(d if d == "unknown" or isinstance(d, tuple) and d[0] == "product" else
                                   ("from", least, d) for d in detail))
    return known


def _of_lengths(function, args, kwargs):
    """Whether whole numbers in the result are made of lengths alone, and not of the values in a probe."""
    return function in SIZES or all(
        isinstance(f, Array) and not f.dims and f.length is not None for a in [*args, *(a for _, a in kwargs)]
        for f in _facts_in(a))


def _uncounted(known):
    """What is known of a result when its numbers are those of a probe."""
    kind, dtype, detail = known
    if kind == "above one":
        return (kind, dtype, _uncounted(detail))
    if kind == "several":
        return (kind, dtype, tuple(map(_uncounted, detail)))
    return (kind, dtype, None if detail is None else "unknown") if kind == "scalar" else known


def _by_example(function, args, kwargs, symbols, error):
    """Lengths that must agree make a probe fail; those that agree in the example are made one: it is asked again."""
    sizes = {}
    for s in symbols:
        if s.size is None:
            raise Unfit(str(error))
        sizes.setdefault(s.size, []).append(s)
    run = _Probe()
    run.chosen = {s: s.size for s in symbols}
    try:
        _value(function, args, kwargs, run)
    except Exception as own:
        raise Unfit(str(own)) from None
    joined = False
    for group in sizes.values():
        for other in group[1:]:
            joined = True
            unify(Length(group[0]), Length(other))
    if not joined:                      # the function asks for these very lengths (np.cross for 3): they become numbers
        if not symbols:
            raise Unfit(str(error))
        for s in symbols:
            unify(Length(s), Length(None, s.size))
    return _Again()


class _Again(Exception):
    pass


def _structure(value):
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape)
    if type(value) in (bool, int, float, complex):
        return ("scalar", type(value), value if type(value) is int else None)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return ("scalar", value.dtype, int(value) if value.dtype.kind in "iu" else None)
    if isinstance(value, (tuple, list)):
        return ("several", "tuple" if isinstance(value, tuple) else "list", tuple(map(_structure, value)))
    return ("opaque", value, None)


def _explain(results, sizes, symbols, shortest):
    """What the results of all probes have in common."""
    kind, dtype, detail = results[0]
    if any(r[0] != kind for r in results):
        raise Unfit("the kind of the result depends on lengths", NUMBERS)
    details = [r[2] for r in results]
    if kind == "several":
        if any(len(d) != len(detail) for d in details):
            raise Unfit("the number of results depends on lengths", NUMBERS)
        return ("several", dtype, tuple(_explain(parts, sizes, symbols, shortest) for parts in zip(*details)))
    if kind == "array":
        if any(len(d) != len(detail) for d in details):
            raise Unfit("the rank of the result depends on lengths", NUMBERS)
        return ("array", dtype, tuple(_length(found, sizes, symbols, shortest) for found in zip(*details)))
    if kind == "scalar":
        return (kind, dtype, None if detail is None else _length(details, sizes, symbols, shortest))
    return results[0]


def _length(found, sizes, symbols, shortest):
    """(position of the symbol, offset), a number, or what is known of a length that nothing explains."""
    for k, s in enumerate(symbols):
        if all(n == chosen[s] for n, chosen in zip(found, sizes)):
            return (k, 0)
    if len(set(found)) == 1:
        return found[0]
    for k, s in enumerate(symbols):
        offset = found[0] - sizes[0][s]
        near = min(abs(offset), abs(offset - shortest[k])) <= NEAR
        if near and all(n - chosen[s] == offset for n, chosen in zip(found, sizes)):
            return (k, offset)
    for (i, s), (j, t) in itertools.combinations(enumerate(symbols), 2):
        if all(n == chosen[s] * chosen[t] for n, chosen in zip(found, sizes)):
            return ("product", i, j)
    return "unknown"


def _same_lengths(known):
    """Every length of a result is that of an argument, or nothing is claimed of it."""
    kind, _, detail = known
    if kind == "several":
        return all(map(_same_lengths, detail))
    if kind == "array":
        return all(d == "unknown" or isinstance(d, tuple) and d[1] == 0 and d[0] != "product" for d in detail)
    return True


def _decode(known, symbols):
    if isinstance(known, _Again):
        raise known
    kind, dtype, detail = known
    if kind == "above one":
        if not all(Length(s, more).demand(2) for s, more in zip(symbols, dtype)):
            raise Unfit("the rank of the result depends on lengths", "Name the axis: axis=0.")
        return _decode(detail, symbols)
    if kind == "several":
        return Sequence(dtype, tuple(_decode(d, symbols) for d in detail))
    def length(d):
        if isinstance(d, tuple) and d[0] == "product":
            return unknown("?product", symbols[d[1]].many or symbols[d[2]].many)
        if isinstance(d, tuple) and d[0] == "from":
            return length(d[2]) if all(Length(s).demand(n) for s, n in zip(symbols, d[1])) else unknown("?")
        if isinstance(d, tuple):
            return Length(symbols[d[0]], d[1])
        return unknown("?") if d == "unknown" else Length(None, d)
    if kind == "array":
        return Array(dtype, tuple(map(length, detail)))
    if kind == "scalar":
        return Array(dtype, (), None if detail is None else length(detail))
    return Opaque(dtype)


def _only_entries(node):
    """Whole numbers that are joined to an array are its entries: what lengths they are says nothing of its shape."""
    if isinstance(node, Pack):
        return Pack(node.kind, tuple(map(_only_entries, node.items)), node.keys, node.cls)
    whole = isinstance(node, Var) and isinstance(node.fact, Array) and node.fact.length is not None
    return node.like(Array(node.fact.dtype, node.fact.dims)) if whole else node


def probe(function: Any, args: Any, kwargs: Iterable[tuple[str, Any]] = ()) -> Any:
    """What the function says; asked again once lengths were made one."""
    if function in RULES:
        options = RULES[function].options
        entries = {*options.get("arrays", ()), *options.get("sequence", ())}
        args = [_only_entries(a) if name in entries else a for name, a in itertools.zip_longest(
            RULES[function].arguments[:len(args)], args)] if entries else args
    for _ in range(3):
        try:
            return _asked(function, args, kwargs)
        except _Again:
            continue
    raise Unfit("the result's shape is not certain")
