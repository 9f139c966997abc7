# SPDX-License-Identifier: Apache-2.0
"""itertools, and many counters in one: np.ndindex and its like.

What is walked over are values of the reader, so Python's own itertools run on lists of them.

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

import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.flow import UNROLLED
from gradscribe.ast_transform.passes.values import STATELESS, Endless, RangeValue, Struct, Walk
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


class Series:
    # itertools

    def call_itertools(self, function, args, words, node):
        """Functions that only move values around run as they are."""
        name = function.__name__
        if name == "product" and not words and all(isinstance(a, RangeValue) for a in args) and args:
            counted = self.product_of_ranges(args, node)
            if counted is not None:
                return counted
        sequences, numbers = ITERTOOLS[name]
        given = args if sequences is None else args[:sequences]
        rest = [self.static(self.as_number(a), f"what itertools.{name} is given", node) for a in args[len(given):]]
        words = {k: v if k == "fillvalue" else self.static(v, f"{k} of {name}", node) for k, v in words.items()}
        if len(rest) > numbers or sequences is not None and len(given) < sequences:
            self.fail(LanguageError, f"itertools.{name}: these arguments are not understood", node)
        if name == "islice" and isinstance(given[0], Endless):
            places = self.tried(lambda: list(range(*slice(*rest).indices(slice(*rest).stop))), node=node)
            at = self.elements_at(given[0], node)
            return self.iterator([at(Const(k)) for k in places])
        if name == "islice" and self.named(given[0]):
            self.fail(LanguageError, "islice of an iterator leaves the rest of it", node, "Slice a list.")
        lists = [self.listed(a, node) for a in given]
        if name == "zip_longest":
            words.setdefault("fillvalue", Const(None))
        if name == "from_iterable":
            lists = [[self.listed(inner, node) for inner in lists[0]]]
        found = list(itertools.islice(self.tried(lambda: function(*lists, *rest, **words), node=node), MOST + 1))
        if len(found) > MOST:
            self.fail(LanguageError, f"itertools.{name} gives more than {MOST} elements", node, "Write a loop.")
        return self.iterator([Struct("tuple", row) if isinstance(row, tuple) else row for row in found], *given)

    def call_accumulate(self, function, args, words, node):
        values, *step = args
        step = step[0] if step else words.get("func", Const(operator.add))
        if isinstance(step, Const) and step.value is None:
            step = Const(operator.add)
        items = [self.settle(v) for v in self.listed(values, node)]
        first = words.get("initial")
        if first is not None and not (isinstance(first, Const) and first.value is None):
            items = [first, *items]
        with self.waiting([]) as out:
            for item in items:
                out.append(self.call(step, [out[-1], item], {}, node) if out else item)
        return self.iterator(out, values, late=step)

    def call_starmap(self, function, args, words, node):
        with self.waiting([]) as out:
            for row in self.listed(args[1], node):
                out.append(self.call(args[0], [self.settle(v) for v in self.listed(row, node)], {}, node))
        return self.iterator(out, args[1], late=args[0])

    def call_while(self, function, args, words, node):
        """takewhile, dropwhile"""
        items = self.listed(args[1], node)
        n = next((k for k, v in enumerate(items) if not self.kept(args[0], self.settle(v), node)), len(items))
        return self.iterator(items[:n] if function is itertools.takewhile else items[n:], args[1], late=args[0])

    def call_groupby(self, function, args, words, node):
        values, *key = args
        key = key[0] if key else words.get("key", Const(None))
        plain = isinstance(key, Const) and key.value is None
        groups = []
        for item in map(self.settle, self.listed(values, node)):
            label = item if plain else self.call(key, [item], {}, node)
            if groups and self.place_of([groups[-1][0]], label, node, "whether a group ends here") == 0:
                groups[-1][1].append(item)
            else:
                groups.append((label, [item]))
        return self.iterator([Struct("tuple", [label, self.iterator(items)]) for label, items in groups], values,
                             late=key)

    def call_endless(self, function, args, words, node):
        """count, cycle, repeat"""
        if function is itertools.count:
            start, step = [*args, *[Const(k) for k in (0, 1)][len(args):]]  # type: ignore[misc]  # mypy counts the parts
            start, step = words.get("start", start), words.get("step", step)
            return Endless(lambda k: self.binary(operator.add, start, self.binary(operator.mul, k, step, node), node)
                           if not _is_one(step) else self.binary(operator.add, start, k, node), tuple(self.loops))
        if function is itertools.cycle:
            items = self.listed(args[0], node)
            return Endless(lambda k: items[self.static(k, "the place in a cycle", node) % len(items)],
                           tuple(self.loops))
        times = args[1] if len(args) > 1 else words.get("times")
        if times is None:
            return Endless(lambda k: args[0], STATELESS)
        return self.iterator([args[0]] * self.static(times, "the times of repeat", node))

    def elements_at(self, endless, node):
        """What gives the elements of an iterator without an end.  A second reader would go on from there: refused."""
        if endless.loops is not STATELESS:
            if endless.loops is None or endless.loops != tuple(self.loops):
                self.fail(LanguageError, "an iterator without an end is read from again, and goes on where it stopped",
                          node, "Count in a variable: k = k + 1.")
            endless.loops = None
        return endless.at

    # many counters in one

    def digits(self, index, lengths):
        """The counters that a single counter stands for, the last one running fastest."""
        out = []
        for k, n in enumerate(lengths):
            after = functools.reduce(lambda a, b: self.build.apply(operator.mul, a, b), lengths[k + 1:], Const(1))
            place = index if _is_one(after) else self.build.apply(operator.floordiv, index, after)
            out.append(place if not k else self.build.apply(operator.mod, place, n))
        return out

    def counters(self, lengths, bind, known=True):
        """A walk over the product of lengths."""
        count = functools.reduce(lambda a, b: self.build.apply(operator.mul, a, b), lengths, Const(1))
        static = None
        if known and isinstance(count, Const) and count.value <= UNROLLED:
            rows = itertools.product(*(range(n.value) for n in lengths)) if count.value else []
            static = [bind([Const(k) for k in row]) for row in rows]
        return Walk(static, count, (), lambda index, items: bind(self.digits(index, lengths)))

    def call_ndindex(self, function, args, words, node):
        if len(args) == 1 and isinstance(self.settle(args[0]), Struct):
            args = self.listed(args[0], node)
        lengths = [self.settle(a) for a in args]
        for n in lengths:
            fact = fact_of(n) if isinstance(n, (Var, Const)) else None
            if not isinstance(fact, Array) or fact.kind not in "iu" or fact.dims:
                self.fail(ShapeError, f"np.ndindex needs integers, {self.spell(n)} is given", node)
        return self.counters(lengths, lambda places: Struct("tuple", places))

    def call_ndenumerate(self, function, args, words, node):
        x = self.settle(args[0])
        x = self.array_of(x, node) if isinstance(x, Struct) else x
        if not isinstance(x, Var) or not isinstance(x.fact, Array) or not x.fact.dims:
            self.fail(ShapeError, f"np.ndenumerate needs an array, {self.spell(x)} is given", node)

        def bind(places):
            held = self.now(x) if self.loops else x
            whole = places[0] if len(places) == 1 else self.packed(Struct("tuple", places))
            if all(isinstance(p, Const) for p in places):
                whole = Const(tuple(p.value for p in places)) if len(places) > 1 else places[0]
            return Struct("tuple", [Struct("tuple", places), self.build.item(held, whole)])
        return self.counters([self.build.length(x, k) for k in range(x.fact.rank)], bind, False)

    def product_of_ranges(self, ranges, node):
        """itertools.product of ranges whose lengths are known only when running."""
        if not all(isinstance(r.step, Const) and r.step.value == 1 and isinstance(r.start, Const) and not r.start.value
                   for r in ranges):
            return None
        return self.counters([r.stop for r in ranges], lambda places: Struct("tuple", places))


def _is_one(value):
    return isinstance(value, Const) and value.value == 1


MOST = 4096                             # elements that itertools may give
ITERTOOLS = {                           # name -> how many sequences come first (None: all), numbers after them
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
SERIES = {
    itertools.accumulate: "call_accumulate",
    itertools.starmap: "call_starmap",
    itertools.takewhile: "call_while",
    itertools.dropwhile: "call_while",
    itertools.groupby: "call_groupby",
    itertools.count: "call_endless",
    itertools.cycle: "call_endless",
    itertools.repeat: "call_endless",
    itertools.chain.from_iterable: "call_itertools",
    np.ndindex: "call_ndindex",
    np.ndenumerate: "call_ndenumerate",
    **{getattr(itertools, name): "call_itertools" for name in ITERTOOLS if hasattr(itertools, name)},
}
