# SPDX-License-Identifier: Apache-2.0
"""Iterators and what goes through values: zip, map, sorted, and functions of operator and collections.

>>> from gradscribe.ast_transform.examples import form, show
>>> print(show(form("def f(x, y):\\n    return sum(map(lambda a, b: a * b, [x, 2], [y, x]))", 1.0, 2.0)))
f(x, y):
    t = x * y
    t_1 = 2 * x
    t_2 = t + t_1
    return t_2
"""
import builtins
import collections
import functools
import itertools
import operator
from contextlib import contextmanager

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Effect, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype, unknown
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.data import SPECIAL_KINDS, Ordered, Unordered
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.iterators import Iterators
from gradscribe.ast_transform.passes.series import SERIES, Series
from gradscribe.ast_transform.passes.values import SPENT, Endless, Grown, Struct, View, Walk
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError


class Iteration(Iterators, Series):
    def walk(self, value, node):
        """How a loop goes through a value; of a container it is known which."""
        value = self.gone_through(value, node)
        if isinstance(value, Struct) and value.kind == "iterator":
            return Walk(self.drained(value, node), reads=value.cls[1])
        if isinstance(value, Endless):
            self.fail(LanguageError, "an iterator without an end is not gone through", node,
                      "Bound it: zip(items, itertools.count()), or itertools.islice(it, n).")
        source = value.value if isinstance(value, View) else value
        walk = super().walk(value, node)
        walk.reads = (*walk.reads, *self.read_by(value))
        if walk.static is not None and isinstance(source, Struct) and source.whole is None:
            keys = source.kind == "dict" and (not isinstance(value, View) or value.name == "keys")
            walk.sources = ((source, "keys" if keys else "rest"),)
        return walk

    def listed(self, value, node, fixed=True):
        value = self.gone_through(value, node)
        if isinstance(value, (Endless, View)) or isinstance(value, Struct) and value.kind == "iterator":
            return list(self.walk(value, node).static)
        return super().listed(value, node, fixed)

    @contextmanager
    def walking(self, walk, node):
        """A container that a loop goes through must show at each pass what it held when the loop began."""
        keys, sizes = [s.keys for s, _ in walk.sources], [len(s.items) for s, _ in walk.sources]
        with self.waiting([s for s, _ in walk.sources]) as now, \
                self.waiting([i for s, _ in walk.sources for i in s.items]) as items:
            def stays(k):
                if k < len(walk.static or ()):
                    self.as_it_was(walk.reads, node.iter)
                start = 0
                for struct, names, size, (_, what) in zip(now, keys, sizes, walk.sources):
                    before, first = items[start:start + size], {"keys": size, "rest": k, "all": 0}[what]
                    start += size
                    if not isinstance(struct, Struct) or len(struct.items) != size or struct.keys != names or any(
                            a is not b and not (isinstance(a, Struct) and isinstance(b, Struct) and a.mark is b.mark)
                            for a, b in zip(struct.items[first:], before[first:])):
                        self.fail(LanguageError, "a container changes while a loop goes through it", node.iter,
                                  "Go through a copy: list(items); or count: for k in range(len(items)).")
            yield stays

    def pass_by_pass(self, node, walk):
        """Over values of different kinds: each pass stands in the branch where the one before has not left."""
        with self.passes(walk, node) as (number, enter):
            return self.later_passes(node, number, enter, 0)

    def later_passes(self, node, number, enter, k):
        if k == number:
            return None
        enter(k)
        self.block(node.body)
        stop = self.settle(self.frame.env[node.exits.stop])
        if isinstance(stop, Const):
            return None if stop.value else self.later_passes(node, number, enter, k + 1)
        if k + 1 < number:
            self.branch(stop, lambda: None, lambda: self.later_passes(node, number, enter, k + 1))
        return None

    def call_iter(self, function, args, words, node):
        value, = args
        if isinstance(value, Endless) or isinstance(value, Struct) and value.kind == "iterator":
            return value
        return self.iterator(self.listed(value, node), value)

    def call_next(self, function, args, words, node):
        value, *default = args
        if isinstance(value, Walk) and value.static is not None:
            value = self.iterator(value.static)
        if isinstance(value, Endless):
            self.fail(LanguageError, "next of an iterator without an end is not differentiated", node,
                      "Count in a variable: k = k + 1.")
        if not isinstance(value, Struct) or value.kind != "iterator":
            self.fail(LanguageError, f"{self.spell(value)} is no iterator", node, "Make one with iter.")
        if not value.items:
            if default and value.keys != SPENT:         # a loop that goes through it may have left it early
                return default[0]
            self.fail(LanguageError, "next of an iterator that has come to its end", node,
                      "Give a default: next(it, None).")
        self.moved(value, node)
        return self.settle(value.items.pop(0))

    # zip, enumerate, reversed, map, filter

    def call_enumerate(self, function, args, words, node):
        start = self.settle(args[1] if len(args) > 1 else words.get("start", Const(0)))
        inner = self.walk(args[0], node)
        def numbered(index):
            return (
                index if isinstance(start, Const) and start.value == 0 else self.build.apply(operator.add, index, start)
            )

        static = None if inner.static is None else [
            Struct("tuple", [self.build.apply(operator.add, start, Const(k)), v]) for k, v in enumerate(inner.static)]
        if inner.count is None:
            return Walk(static, sources=inner.sources, reads=inner.reads)
        return Walk(static, inner.count, inner.items,
                    lambda index, items: Struct("tuple", [numbered(index), inner.bind(index, items)]),
                    reads=inner.reads)

    def call_zip(self, function, args, words, node):
        if set(words) - {"strict"}:
            self.fail(RuleError, f"zip: {sorted(words)[0]} is not understood", node)
        strict = "strict" in words and bool(self.static(words["strict"], "strict of zip", node))
        endless = {k: self.elements_at(a, node) for k, a in enumerate(args) if isinstance(a, Endless)}
        walks = [self.walk(a, node) for a in args if not isinstance(a, Endless)]
        if not walks:
            if args:
                self.walk(args[0], node)
            return Walk([])
        if endless and strict:
            self.fail(LanguageError, "zip(strict=True) of an iterator without an end", node, "Leave strict out.")

        def row(values, index):
            values = list(values)
            for k, e in endless.items():
                values.insert(k, e(index))
            return Struct("tuple", values)

        sources, reads = (tuple(s for w in walks for s in getattr(w, of)) for of in ("sources", "reads"))
        given = [a for a in args if not isinstance(a, Endless)]
        if any(w.static is None for w in walks):
            walks = [self.walk_of_numbers(w, a, node) for w, a in zip(walks, given)]
        dynamic = [w.static is None for w in walks]
        static = None
        if not all(dynamic):
            lists = [self.listed(a, node, fixed=True) if d else w.static for a, w, d in zip(given, walks, dynamic)]
            if strict and len({*map(len, lists)}) > 1:
                self.fail(ShapeError, f"zip(strict=True) of {' and '.join(str(len(v)) for v in lists)} elements", node)
            static = [row(values, Const(k)) for k, values in enumerate(zip(*lists))]
            if any(dynamic):
                return Walk(static, sources=sources, reads=reads)
        if any(w.count is None for w in walks):
            return Walk(static, sources=sources, reads=reads)
        count = walks[0].count
        for w in walks[1:]:
            a, b = fact_of(count).length, fact_of(w.count).length
            if a is None or b is None or not a.same(b):
                if strict:
                    self.asserted("a == b", {"a": count, "b": w.count})
                count = (
                    self.build.apply(builtins.min, count, w.count, fact=Array(int, (), unknown("?count")))
                    if not (isinstance(count, Const) and isinstance(w.count, Const))
                    else Const(min(count.value, w.count.value))
                )

        def bind(index, items):
            out, k = [], 0
            for w in walks:
                out.append(w.bind(index, items[k:k + len(w.items)]))
                k += len(w.items)
            return row(out, index)
        return Walk(static, count, tuple(i for w in walks for i in w.items), bind, reads=reads)

    def walk_of_numbers(self, walk, value, node):
        """A list of numbers of one dtype as an array, beside what has as many elements as are known when running."""
        facts = [fact_of(v) if isinstance(v, (Var, Const)) else None for v in walk.static or ()]
        numbers = [f for f in facts if isinstance(f, Array) and not f.dims and f.kind in "iufc"]
        if not facts or len(numbers) < len(facts) or any(
                not same_dtype(f.dtype, facts[0].dtype) for f in facts) or any(map(self.may_be_cell, walk.static)):
            return walk
        made = self.walk(self.array_of(Struct("list", walk.static), node), node)
        entry = made.bind
        made.bind = lambda index, items: self.entry_as_it_was(entry(index, items), facts[0], node)
        return made

    def asserted(self, text, values):
        """assert text, where the function is emitted."""
        tree = gast.parse(f"assert {text}").body[0]
        self.build.block.append(Effect(Apply(Quoted(tree, tuple(values), None), tuple(values.values())),
                                       self.build.origin))

    def call_map(self, function, args, words, node):
        function, *given = args
        if any(isinstance(a, Grown) or isinstance(a, Var) and isinstance(a.fact, Array) and a.fact.dims and
               a.fact.dims[0].normal().symbol is not None for a in map(self.settle, given)):
            return self.read_later(self.mapped(function, given, node), map(self.settle, given), function)
        over = [self.elements_at(a, node) if isinstance(a, Endless) else self.listed(a, node) for a in given]
        lengths = [len(a) for a in over if isinstance(a, list)]
        if not lengths:
            self.fail(LanguageError, "map over iterators without an end", node, "Write a loop.")
        with self.waiting([]) as out:
            for k in range(min(lengths)):
                row = [a[k] if isinstance(a, list) else a(Const(k)) for a in over]
                out.append(self.call(function, [self.settle(v) for v in row], {}, node))
        return self.iterator(out, *given, late=function)

    def mapped(self, function, given, node):
        """map over arrays of unknown length, as a comprehension."""
        env, at = self.frame.env, functools.partial(gast.copy_location, old_node=node)
        name = lambda n, context: at(gast.Name(n, context(), None, None))        # noqa: E731 (a one-line shorthand)
        names = ["function  ", *(f"values{' ' * (k + 2)}" for k in range(len(given)))]
        env.update(zip(names, [function, *given]))
        items = [f"item{' ' * (k + 2)}" for k in range(len(given))]
        target = name(items[0], gast.Store) if len(given) == 1 else at(gast.Tuple(
            [name(n, gast.Store) for n in items], gast.Store()))
        over = name(names[1], gast.Load) if len(given) == 1 else at(gast.Call(
            name("zip", gast.Load), [name(n, gast.Load) for n in names[1:]], []))
        call = at(gast.Call(name(names[0], gast.Load), [name(n, gast.Load) for n in items], []))
        try:
            return self.a_generator(self.eval(at(gast.ListComp(call, [gast.comprehension(target, over, [], 0)]))))
        finally:
            for n in names:
                env.pop(n, None)

    def kept(self, test, value, node):
        """Whether a filter lets a value through, which must be known now."""
        none = isinstance(test, Const) and test.value is None
        found = self.truth(value if none else self.call(test, [value], {}, node), node)
        if not isinstance(found, Const):
            self.fail(LanguageError, "which elements are kept is known only when running", node,
                      "Use np.where, or a loop with if.")
        return found.value

    def call_filter(self, function, args, words, node):
        test, over = args
        wanted = function is not itertools.filterfalse
        return self.iterator([v for v in self.listed(over, node) if self.kept(test, self.settle(v), node) == wanted],
                             over, late=test)

    # sums and extremes

    def call_extreme(self, function, args, words, node):
        words = dict(words)
        key, default = words.pop("key", Const(None)), words.pop("default", None)
        if words:
            self.fail(RuleError, f"{function.__name__}: {next(iter(words))} is not understood", node)
        plain = isinstance(key, Const) and key.value is None
        if len(args) == 1 and self.is_vector(args[0]) and plain and default is None:
            return self.rule_call({max: np.max, min: np.min}[function], [self.settle(args[0])], {}, node)
        items = [self.settle(i) for i in (self.listed(args[0], node) if len(args) == 1 else args)]
        if not items:
            if default is None:
                self.fail(ShapeError, f"{function.__name__} of no values", node)
            return default
        if not plain:
            return self.extreme_by(function, items, key, node)
        if all(isinstance(i, Const) for i in items):
            return Const(self.tried(function, [i.value for i in items], node=node))
        if any(isinstance(i, Struct) for i in items):
            return self.extreme_by(function, items, None, node)
        result = items[0]
        rule = function if function in RULES else {max: np.maximum, min: np.minimum}[function]
        for item in items[1:]:
            if fact_of(item).rank or fact_of(result).rank:
                self.fail(
                    ShapeError, f"{function.__name__} of arrays is ambiguous", node, f"Use np.{function.__name__}imum."
                )
        if any(of_kinds_apart(fact_of(result), fact_of(item)) for item in items[1:]):
            result = self.chosen_by(function, items, items, node)
        else:
            for item in items[1:]:
                result = self.rule_call(rule, [result, item], {}, node)
        self.one_cell_of(result, items)             # it is one of them
        return result

    def extreme_by(self, function, items, key, node):
        """The item whose key is the largest or smallest, the first of equal ones."""
        keys = [i if key is None else self.settle(self.call(key, [i], {}, node)) for i in items]
        if all(isinstance(k, Var) and isinstance(k.fact, Array) or isinstance(k, Const) and isinstance(
                fact_of(k), Array) for k in keys) and any(isinstance(k, Var) for k in keys):
            return self.chosen_by(function, items, keys, node)
        order = sorted_places(self, keys, function is max)
        if order is None:
            self.fail(LanguageError, "the order of these values is known only when running", node,
                      "Use an array: values[np.argmax(keys)].")
        return items[order]

    def chosen_by(self, function, items, keys, node):
        """The same for numbers that are known when running: a branch for each."""
        if any(_changeable(i) for i in items):
            self.fail(LanguageError, "which of these containers is chosen is known only when running", node,
                      "Choose tuples or numbers.")
        compare = operator.gt if function is max else operator.lt
        best, highest = items[0], keys[0]
        for item, k in zip(items[1:], keys[1:]):
            test = self.truth(self.operation(compare, [k, highest], node), node)
            both = Struct("tuple", [best, highest])
            both = self.choose(test, lambda i=item, k=k: Struct("tuple", [i, k]), lambda b=both: b, node) \
                if not isinstance(test, Const) else Struct("tuple", [item, k]) if test.value else both
            best, highest = both.items
        return best

    def call_sorted(self, function, args, words, node):
        if len(args) != 1 or set(words) - {"key", "reverse"}:
            self.fail(LanguageError, "sorted: only key and reverse are understood", node,
                      "Sort by a key: sorted(items, key=...).")
        key = words.get("key", Const(None))
        key = None if isinstance(key, Const) and key.value is None else key
        reverse = bool(self.static(words["reverse"], "reverse of sorted", node)) if "reverse" in words else False
        return Struct("list", self.sorted_items(self.listed(args[0], node), key, reverse, node))

    # arithmetic of builtins and of operator

    def call_divmod(self, function, args, words, node):
        return Struct("tuple", [self.binary(f, *args, node) for f in (operator.floordiv, operator.mod)])

    def call_pow(self, function, args, words, node):
        if len(args) + len(words) == 3:
            return self.call_now(pow, args, words, node)
        return self.binary(operator.pow, *args, *(words[n] for n in ("base", "exp") if n in words), node)

    def call_round(self, function, args, words, node):
        value, *digits = [self.settle(a) for a in [*args, *words.values()]]
        if isinstance(value, Const):
            return self.call_now(round, args, words, node)
        if digits and isinstance(digits[0], Const) and digits[0].value is None:
            digits = []
        if digits and fact_of(value).weak:          # Python's rounds the number itself, NumPy's a multiple of it
            return self.rule_call(builtins.round, [value, *digits], {}, node)
        if digits or fact_of(value).kind in "iub":
            return self.rule_call(np.round, [value, *digits], {}, node)
        return self.call_float(int, [self.rule_call(np.round, [value], {}, node)], {}, node)

    def call_operator(self, function, args, words, node):
        """operator.add and the like, as the operators they stand for."""
        args = [self.settle(a) for a in args]
        if function in COMPARISONS:
            return self.compare(COMPARISONS[function](), *args, node)
        if function in (operator.not_, operator.truth):
            test = self.truth(args[0], node)
            return self.negated(test) if function is operator.not_ else self.call_float(bool, [test], {}, node)
        if function is operator.contains:
            return self.contains(*args, node)
        if function is operator.getitem:
            return self.item_of(args[0], args[1], node)
        if function in (operator.neg, operator.pos, operator.invert):
            return self.operation(function, args, node)
        return self.binary(function, *args, node)

    def call_getter(self, function, args, words, node):
        """operator.itemgetter("a"), made now."""
        if words or function is operator.methodcaller and len(args) > 1:
            self.fail(LanguageError, "methodcaller: only a name is understood", node, "Write a lambda.")
        return Const(function(*(self.static(a, f"what {function.__name__} gets", node) for a in args)))

    def got(self, getter, args, node):
        """getter(value), for itemgetter, attrgetter and methodcaller."""
        value, = args
        made, given = getter.__reduce__()
        if made is operator.methodcaller:
            name, *rest = given
            return self.call(self.attribute(self.settle(value), name, node), [self.lift(a, "given") for a in rest], {},
                             node)
        if made is operator.itemgetter:
            out = [self.settle(self.item_of(value, Const(k), node)) for k in given]
        elif made is operator.attrgetter:
            out = [functools.reduce(lambda v, part: self.attribute(self.settle(v), part, node), k.split("."), value)
                   for k in given]
        else:
            self.fail(LanguageError, "methodcaller: words are not understood", node, "Write a lambda.")
        return out[0] if len(out) == 1 else Struct("tuple", out)

    # collections

    def call_collection(self, function, args, words, node):
        if function == dict.fromkeys:
            return self.dict_fromkeys(args[0], node, *args[1:])
        if function is collections.defaultdict:
            factory, *args = args or [Const(None)]
            kind = type("defaultdict", (collections.defaultdict,), {"factory": factory, "stands_for": function})
            return Struct("dict", *self.made_of(args, words, node), kind)
        if function is collections.OrderedDict:
            return Struct("dict", *self.made_of(args, words, node), function)
        if function is collections.Counter:
            new = Struct("dict", [], (), function)
            self.counted(new, args[0] if args else None, words, node)
            return new
        given = {**dict(zip(("iterable", "maxlen"), args)), **words}
        most = self.static(given.get("maxlen", Const(None)), "the maxlen of a deque", node)
        items = self.listed(given["iterable"], node) if "iterable" in given else []
        return self.kept_within(Struct("list", items, (), collections.deque if most is None else bounded(most)))

    @staticmethod
    def kept_within(held, at_left=True):
        """A deque with a maxlen drops elements from one end when it is longer."""
        most = getattr(held.cls, "most", None)
        if most is not None and len(held.items) > most:
            del held.items[slice(len(held.items) - most) if at_left else slice(most, None)]
        return held

    def bounded_method(self, value, name, args, words, node):
        """A method of a deque with a maxlen: what is put in at one end drops out at the other."""
        if name == "insert" and len(value.items) == value.cls.most:
            self.fail(ShapeError, "deque already at its maximum size", node, "Pop an element before.")
        result = self.container_method(value, name, args, words, node)
        self.kept_within(value, name not in ("appendleft", "extendleft"))
        return result

    def made_of(self, args, words, node):
        """The items and keys of dict(*args, **words)."""
        new = Struct("dict", [])
        self.put_all(new, [*self.pairs_of(args[0] if args else None, node), *words.items()])
        return new.items, new.keys


@functools.cache
def bounded(most):
    """The class of the deques that have this maxlen."""
    made = type("deque", (collections.deque,), {"most": most, "stands_for": collections.deque})
    SPECIAL_KINDS[made] = "deque"
    return made


def of_kinds_apart(a, b):
    """Whether the dtype of what is computed with one of two numbers depends on which one it is."""
    return isinstance(a, Array) and isinstance(b, Array) and (a.dtype, a.weak) != (b.dtype, b.weak) and any(
        not n.weak and n.dtype.itemsize < 8 * (1 + (n.kind == "c")) for n in (a, b))


def sorted_places(holder, keys, largest):
    """The place of the first largest or smallest key; None if that is known only when running."""
    held = [Ordered(holder, k) for k in keys]
    try:
        return (max if largest else min)(range(len(keys)), key=held.__getitem__)
    except Unordered:
        return None


def _changeable(value):
    return isinstance(value, Struct) and (value.kind not in ("tuple", "record") or any(map(_changeable, value.items)))


COMPARISONS = {operator.eq: gast.Eq, operator.ne: gast.NotEq, operator.lt: gast.Lt, operator.le: gast.LtE,
               operator.gt: gast.Gt, operator.ge: gast.GtE, operator.is_: gast.Is, operator.is_not: gast.IsNot}
OPERATORS = [getattr(operator, name) for name in (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift neg pos invert not_ truth contains getitem "
    "eq ne lt le gt ge is_ is_not").split()]
NOW = (chr, ord, repr, ascii, bin, hex, oct, format, str, collections.namedtuple, str.join)
ITERATION = {
    enumerate: "call_enumerate",
    zip: "call_zip",
    map: "call_map",
    filter: "call_filter",
    iter: "call_iter",
    next: "call_next",
    max: "call_extreme",
    min: "call_extreme",
    sorted: "call_sorted",
    divmod: "call_divmod",
    pow: "call_pow",
    round: "call_round",
    operator.itemgetter: "call_getter",
    operator.attrgetter: "call_getter",
    operator.methodcaller: "call_getter",
    collections.OrderedDict: "call_collection",
    collections.defaultdict: "call_collection",
    collections.Counter: "call_collection",
    collections.deque: "call_collection",
    dict.fromkeys: "call_collection",
    itertools.filterfalse: "call_filter",
    **SERIES,
    **dict.fromkeys(OPERATORS, "call_operator"),
    **dict.fromkeys(NOW, "call_now"),
}
