# SPDX-License-Identifier: Apache-2.0
"""itertools, and multi-dimensional indices such as np.ndindex: a call comes in; an iterator or a walk comes out.

The elements are values of the reader, so Python's own itertools run on lists of them.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, y):\\n    import itertools\\n    return sum(a * b for a, b in itertools.product([x, y], repeat=2))"
>>> print(show(form(text, 1.0, 2.0)))
f(x, y):
    t = x * x
    t_1 = x * y
    t_2 = y * x
    t_3 = y * y
    t_4 = t + t_1
    t_5 = t_4 + t_2
    t_6 = t_5 + t_3
    return t_6
"""
import functools
import itertools
import operator
from functools import partial
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.branches import UNROLLED, as_number, truth_value
from gradscribe.ast_transform.reader.calls import call_value
from gradscribe.ast_transform.reader.comparisons import place_of
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.expressions import binary
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.iteration import elements_of
from gradscribe.ast_transform.reader.iterators import is_named_iterator, iterator
from gradscribe.ast_transform.reader.loops import entry_of_pass
from gradscribe.ast_transform.reader.memory import pending_values
from gradscribe.ast_transform.reader.methods import array_of
from gradscribe.ast_transform.reader.operands import known_value, pack, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import STATELESS, Endless, RangeValue, Struct, Walk
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


def call_itertools(reader: Reader, function, args, words, node):
    """itertools functions that only rearrange values: Python's own are called."""
    name = function.__name__
    if name == "product" and not words and all(isinstance(a, RangeValue) for a in args) and args:
        counted = product_of_ranges(reader, args, node)
        if counted is not None:
            return counted
    sequences, numbers = ITERTOOLS[name]
    given = args if sequences is None else args[:sequences]
    rest = [
        known_value(reader, as_number(reader, a), f"what itertools.{name} is given", node) for a in args[len(given) :]
    ]
    words = {k: v if k == "fillvalue" else known_value(reader, v, f"{k} of {name}", node) for k, v in words.items()}
    if len(rest) > numbers or sequences is not None and len(given) < sequences:
        fail(reader, LanguageError, f"itertools.{name}: these arguments are not understood", node)
    if name == "islice" and isinstance(given[0], Endless):
        places = tried(reader, lambda: list(range(*slice(*rest).indices(slice(*rest).stop))), node=node)
        at = elements_at(reader, given[0], node)
        return iterator(reader, [at(Const(k)) for k in places])
    if name == "islice" and is_named_iterator(reader, given[0]):
        fail(reader, LanguageError, "islice of an iterator leaves the rest of it", node, "Slice a list.")
    lists = [elements_of(reader, a, node) for a in given]
    if name == "zip_longest":
        words.setdefault("fillvalue", Const(None))
    if name == "from_iterable":
        lists = [[elements_of(reader, inner, node) for inner in lists[0]]]
    found = list(itertools.islice(tried(reader, lambda: function(*lists, *rest, **words), node=node), MOST + 1))
    if len(found) > MOST:
        fail(reader, LanguageError, f"itertools.{name} gives more than {MOST} elements", node, "Write a loop.")
    return iterator(reader, [Struct("tuple", row) if isinstance(row, tuple) else row for row in found], *given)


def call_accumulate(reader: Reader, function, args, words, node):
    values, *step = args
    step = step[0] if step else words.get("func", Const(operator.add))
    if isinstance(step, Const) and step.value is None:
        step = Const(operator.add)
    items = [settle(reader, v) for v in elements_of(reader, values, node)]
    first = words.get("initial")
    if first is not None and not (isinstance(first, Const) and first.value is None):
        items = [first, *items]
    with pending_values(reader, []) as out:
        for item in items:
            out.append(call_value(reader, step, [out[-1], item], {}, node) if out else item)
    return iterator(reader, out, values, late=step)


def call_starmap(reader: Reader, function, args, words, node):
    with pending_values(reader, []) as out:
        for row in elements_of(reader, args[1], node):
            out.append(
                call_value(reader, args[0], [settle(reader, v) for v in elements_of(reader, row, node)], {}, node)
            )
    return iterator(reader, out, args[1], late=args[0])


def call_while(reader: Reader, function, args, words, node):
    """takewhile, dropwhile"""
    items = elements_of(reader, args[1], node)
    n = next((k for k, v in enumerate(items) if not filter_keeps(reader, args[0], settle(reader, v), node)), len(items))
    return iterator(reader, items[:n] if function is itertools.takewhile else items[n:], args[1], late=args[0])


def call_groupby(reader: Reader, function, args, words, node):
    values, *key = args
    key = key[0] if key else words.get("key", Const(None))
    plain = isinstance(key, Const) and key.value is None
    groups: list[tuple[Any, list]] = []
    for item in map(partial(settle, reader), elements_of(reader, values, node)):
        label = item if plain else call_value(reader, key, [item], {}, node)
        if groups and place_of(reader, [groups[-1][0]], label, node, "whether a group ends here") == 0:
            groups[-1][1].append(item)
        else:
            groups.append((label, [item]))
    return iterator(reader, [Struct("tuple", [label, iterator(reader, items)]) for label, items in groups], values,
                    late=key)


def call_endless(reader: Reader, function, args, words, node):
    """count, cycle, repeat"""
    if function is itertools.count:
        start, step = [*args, *[Const(k) for k in (0, 1)][len(args):]]  # type: ignore[misc]  # mypy counts the parts
        start, step = words.get("start", start), words.get("step", step)
        return Endless(
            lambda k: (
                binary(reader, operator.add, start, binary(reader, operator.mul, k, step, node), node)
                if not _is_one(step)
                else binary(reader, operator.add, start, k, node)
            ),
            tuple(reader.loops.reading),
        )
    if function is itertools.cycle:
        items = elements_of(reader, args[0], node)
        return Endless(lambda k: items[known_value(reader, k, "the place in a cycle", node) % len(items)],
                       tuple(reader.loops.reading))
    times = args[1] if len(args) > 1 else words.get("times")
    if times is None:
        return Endless(lambda k: args[0], STATELESS)
    return iterator(reader, [args[0]] * known_value(reader, times, "the times of repeat", node))


@late
def elements_at(reader: Reader, endless, node):
    """The function that gives an endless iterator's elements; a second use, which would continue it, is refused."""
    if endless.loops is not STATELESS:
        if endless.loops is None or endless.loops != tuple(reader.loops.reading):
            fail(reader, LanguageError, "an iterator without an end is read from again, and goes on where it stopped",
                 node, "Count in a variable: k = k + 1.")
        endless.loops = None
    return endless.at


def counter_digits(reader: Reader, index, lengths):
    """The multi-dimensional index that corresponds to a flat index; the last one varies fastest."""
    out = []
    for k, n in enumerate(lengths):
        after = functools.reduce(lambda a, b: reader.build.apply(operator.mul, a, b), lengths[k + 1:], Const(1))
        place = index if _is_one(after) else reader.build.apply(operator.floordiv, index, after)
        out.append(place if not k else reader.build.apply(operator.mod, place, n))
    return out


def walk_counters(reader: Reader, lengths, bind, known=True):
    """A walk over all multi-dimensional indices of a shape."""
    count = functools.reduce(lambda a, b: reader.build.apply(operator.mul, a, b), lengths, Const(1))
    static = None
    if known and isinstance(count, Const) and count.value <= UNROLLED:
        rows = itertools.product(*(range(n.value) for n in lengths)) if count.value else []
        static = [bind([Const(k) for k in row]) for row in rows]
    return Walk(static, count, (), lambda index, items: bind(counter_digits(reader, index, lengths)))


def call_ndindex(reader: Reader, function, args, words, node):
    if len(args) == 1 and isinstance(settle(reader, args[0]), Struct):
        args = elements_of(reader, args[0], node)
    lengths = [settle(reader, a) for a in args]
    for n in lengths:
        fact = fact_of(n) if isinstance(n, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.kind not in "iu" or fact.dims:
            fail(reader, ShapeError, f"np.ndindex needs integers, {spelled_value(reader, n)} is given", node)
    return walk_counters(reader, lengths, lambda places: Struct("tuple", places))


def call_ndenumerate(reader: Reader, function, args, words, node):
    x = settle(reader, args[0])
    x = array_of(reader, x, node) if isinstance(x, Struct) else x
    if not isinstance(x, Var) or not isinstance(x.fact, Array) or not x.fact.dims:
        fail(reader, ShapeError, f"np.ndenumerate needs an array, {spelled_value(reader, x)} is given", node)

    def bind(places):
        held = entry_of_pass(reader, x) if reader.loops.reading else x
        whole = places[0] if len(places) == 1 else pack(reader, Struct("tuple", places))
        if all(isinstance(p, Const) for p in places):
            whole = Const(tuple(p.value for p in places)) if len(places) > 1 else places[0]
        return Struct("tuple", [Struct("tuple", places), reader.build.item(held, whole)])
    return walk_counters(reader, [reader.build.length(x, k) for k in range(x.fact.rank)], bind, False)


def product_of_ranges(reader: Reader, ranges, node):
    """itertools.product of ranges whose lengths are known only at run time."""
    if not all(isinstance(r.step, Const) and r.step.value == 1 and isinstance(r.start, Const) and not r.start.value
               for r in ranges):
        return None
    return walk_counters(reader, [r.stop for r in ranges], lambda places: Struct("tuple", places))


def _is_one(value):
    return isinstance(value, Const) and value.value == 1


MOST = 4096                             # the most elements of an itertools call
ITERTOOLS = {                           # {name: (leading sequences (None: all), integers after them)}
    "product": (None, 0),
    "permutations": (1, 1),
    "combinations": (1, 1),
    "combinations_with_replacement": (1, 1),
    "chain": (None, 0),
    "from_iterable": (1, 0),
    "zip_longest": (None, 0),
    "islice": (1, 3),
    "pairwise": (1, 0),
}


@late
def filter_keeps(reader: Reader, test, value, node):
    """Whether a filter keeps a value, which must be known while reading."""
    none = isinstance(test, Const) and test.value is None
    found = truth_value(reader, value if none else call_value(reader, test, [value], {}, node), node)
    if not isinstance(found, Const):
        fail(reader, LanguageError, "which elements are kept is known only when running", node,
             "Use np.where, or a loop with if.")
    return found.value


SPECIAL.update({
    itertools.accumulate: call_accumulate,
    itertools.starmap: call_starmap,
    itertools.takewhile: call_while,
    itertools.dropwhile: call_while,
    itertools.groupby: call_groupby,
    itertools.count: call_endless,
    itertools.cycle: call_endless,
    itertools.repeat: call_endless,
    itertools.chain.from_iterable: call_itertools,
    **{getattr(itertools, name): call_itertools for name in ITERTOOLS if hasattr(itertools, name)},
    np.ndindex: call_ndindex,
    np.ndenumerate: call_ndenumerate,
})
