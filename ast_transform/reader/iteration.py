# SPDX-License-Identifier: Apache-2.0
"""Iteration: calls of zip, map, sorted, and of operator and collections come in; walks and values come out.

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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Effect, Var
from gradscribe.ast_transform.core.kinds import Array, same_dtype, unknown
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.branches import (
    choose,
    elements_of_value,
    negated,
    read_branch,
    truth_value,
    walk_over_value,
)
from gradscribe.ast_transform.reader.comparisons import contains, sorted_items, sorted_places
from gradscribe.ast_transform.reader.containers import (
    SPECIAL_KINDS,
    count_into,
    dict_fromkeys,
    drop_beyond_maxlen,
    made_of,
)
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.dynamic_lists import as_generator
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.items import entry_as_it_was, item_of
from gradscribe.ast_transform.reader.iterators import (
    as_it_was,
    iterator,
    iterator_moves,
    pending_reads,
    read_later,
    remaining_elements,
)
from gradscribe.ast_transform.reader.memory import pending_values, record_cell
from gradscribe.ast_transform.reader.methods import array_of, call_float, is_vector
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import iterated_value
from gradscribe.ast_transform.reader.operands import known_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import SPENT, Endless, Grown, Struct, View, Walk
from gradscribe.ast_transform.reader.views import may_be_cell
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError
from gradscribe.ast_transform.source.trees import name_at


@late
def walk_over(reader: Reader, value: Any, node: gast.AST | None) -> Walk:
    """How a loop iterates over a value; a container is recorded as a source of the walk."""
    value = iterated_value(reader, value, node)
    if isinstance(value, Struct) and value.kind == "iterator":
        return Walk(remaining_elements(reader, value, node), reads=value.cls[1])
    if isinstance(value, Endless):
        fail(reader, LanguageError, "an iterator without an end is not gone through", node,
             "Bound it: zip(items, itertools.count()), or itertools.islice(it, n).")
    source = value.value if isinstance(value, View) else value
    walk = walk_over_value(reader, value, node)
    walk.reads = (*walk.reads, *pending_reads(reader, value))
    if walk.static is not None and isinstance(source, Struct) and source.whole is None:
        keys = source.kind == "dict" and (not isinstance(value, View) or value.name == "keys")
        walk.sources = ((source, "keys" if keys else "rest"),)
    return walk


@late
def elements_of(reader: Reader, value: Any, node: gast.AST | None, fixed: bool = True) -> list:
    value = iterated_value(reader, value, node)
    if isinstance(value, (Endless, View)) or isinstance(value, Struct) and value.kind == "iterator":
        return list(cast(list, walk_over(reader, value, node).static))
    return elements_of_value(reader, value, node, fixed)


@contextmanager
def walking(reader: Reader, walk: Any, node: gast.AST | None) -> Iterator[Any]:
    """A context whose check refuses a pass if a container that the loop iterates over has changed."""
    keys, sizes = [s.keys for s, _ in walk.sources], [len(s.items) for s, _ in walk.sources]
    with pending_values(reader, [s for s, _ in walk.sources]) as now, \
            pending_values(reader, [i for s, _ in walk.sources for i in s.items]) as items:
        def stays(k):
            if k < len(walk.static or ()):
                as_it_was(reader, walk.reads, node.iter)
            start = 0
            for struct, names, size, (_, what) in zip(now, keys, sizes, walk.sources):
                before, first = items[start:start + size], {"keys": size, "rest": k, "all": 0}[what]
                start += size
                if not isinstance(struct, Struct) or len(struct.items) != size or struct.keys != names or any(
                        a is not b and not (isinstance(a, Struct) and isinstance(b, Struct) and a.mark is b.mark)
                        for a, b in zip(struct.items[first:], before[first:])):
                    fail(reader, LanguageError, "a container changes while a loop goes through it", node.iter,
                         "Go through a copy: list(items); or count: for k in range(len(items)).")
        yield stays


def unroll_with_exits(reader: Reader, node: gast.AST | None, walk: Any) -> Any:
    """Unroll a loop with an early exit: each pass is in a branch of the one before, taken if that did not exit."""
    with dispatch.unrolled_loop(reader, walk, node) as (number, enter):
        return later_passes(reader, node, number, enter, 0)


def later_passes(reader: Reader, node, number, enter, k):
    if k == number:
        return None
    enter(k)
    dispatch.read_block(reader, node.body)
    stop = settle(reader, reader.environment.frame.env[node.exits.stop])
    if isinstance(stop, Const):
        return None if stop.value else later_passes(reader, node, number, enter, k + 1)
    if k + 1 < number:
        read_branch(reader, stop, lambda: None, lambda: later_passes(reader, node, number, enter, k + 1))
    return None


def call_iter(reader: Reader, function, args, words, node):
    value, = args
    if isinstance(value, Endless) or isinstance(value, Struct) and value.kind == "iterator":
        return value
    return iterator(reader, elements_of(reader, value, node), value)


def call_next(reader: Reader, function, args, words, node):
    value, *default = args
    if isinstance(value, Walk) and value.static is not None:
        value = iterator(reader, value.static)
    if isinstance(value, Endless):
        fail(reader, LanguageError, "next of an iterator without an end is not differentiated", node,
             "Count in a variable: k = k + 1.")
    if not isinstance(value, Struct) or value.kind != "iterator":
        fail(reader, LanguageError, f"{spelled_value(reader, value)} is no iterator", node, "Make one with iter.")
    if not value.items:
        if default and value.keys != SPENT:         # an earlier loop over it may have exited early
            return default[0]
        fail(reader, LanguageError, "next of an iterator that has come to its end", node,
             "Give a default: next(it, None).")
    iterator_moves(reader, value, node)
    return settle(reader, value.items.pop(0))


def call_enumerate(reader: Reader, function, args, words, node):
    start = settle(reader, args[1] if len(args) > 1 else words.get("start", Const(0)))
    inner = walk_over(reader, args[0], node)
    def numbered(index):
        return (
            index if isinstance(start, Const) and start.value == 0 else reader.build.apply(operator.add, index, start)
        )

    static = None if inner.static is None else [
        Struct("tuple", [reader.build.apply(operator.add, start, Const(k)), v]) for k, v in enumerate(inner.static)]
    if inner.count is None:
        return Walk(static, sources=inner.sources, reads=inner.reads)
    return Walk(static, inner.count, inner.items,
                lambda index, items: Struct("tuple", [numbered(index), inner.bind(index, items)]),
                reads=inner.reads)


def call_zip(reader: Reader, function, args, words, node):
    if set(words) - {"strict"}:
        fail(reader, RuleError, f"zip: {sorted(words)[0]} is not understood", node)
    strict = "strict" in words and bool(known_value(reader, words["strict"], "strict of zip", node))
    endless = {k: dispatch.elements_at(reader, a, node) for k, a in enumerate(args) if isinstance(a, Endless)}
    given = [a for a in args if not isinstance(a, Endless)]
    walks = [walk_over(reader, a, node) for a in given]
    if not walks:
        if args:
            walk_over(reader, args[0], node)
        return Walk([])
    if endless and strict:
        fail(reader, LanguageError, "zip(strict=True) of an iterator without an end", node, "Leave strict out.")

    def row(values, index):
        values = list(values)
        for k, e in endless.items():
            values.insert(k, e(index))
        return Struct("tuple", values)

    sources, reads = (tuple(s for w in walks for s in getattr(w, of)) for of in ("sources", "reads"))
    if any(w.static is None for w in walks):
        walks = [walk_of_numbers(reader, w, a, node) for w, a in zip(walks, given)]
    static = zipped_now(reader, given, walks, row, strict, node)
    if static is not None and any(w.static is None for w in walks) or any(w.count is None for w in walks):
        return Walk(static, sources=sources, reads=reads)

    def bind(index, items):
        out, k = [], 0
        for w in walks:
            out.append(w.bind(index, items[k:k + len(w.items)]))
            k += len(w.items)
        return row(out, index)
    return Walk(static, shortest(reader, walks, strict), tuple(i for w in walks for i in w.items), bind, reads=reads)


def zipped_now(reader: Reader, given, walks, row, strict, node):
    """The rows of zip if the elements of at least one walk are known; otherwise None."""
    dynamic = [w.static is None for w in walks]
    if all(dynamic):
        return None
    lists = [elements_of(reader, a, node, fixed=True) if d else w.static for a, w, d in zip(given, walks, dynamic)]
    if strict and len({*map(len, lists)}) > 1:
        fail(reader, ShapeError, f"zip(strict=True) of {' and '.join(str(len(v)) for v in lists)} elements", node)
    return [row(values, Const(k)) for k, values in enumerate(zip(*lists))]


def shortest(reader: Reader, walks, strict):
    """The number of passes of zip: the smallest length of its walks; strict: all must be equal."""
    count = walks[0].count
    for w in walks[1:]:
        a, b = fact_of(count).length, fact_of(w.count).length
        if a is not None and b is not None and a.same(b):
            continue
        if strict:
            asserted(reader, "a == b", {"a": count, "b": w.count})
        if isinstance(count, Const) and isinstance(w.count, Const):
            count = Const(min(count.value, w.count.value))
        else:
            count = reader.build.apply(builtins.min, count, w.count, fact=Array(int, (), unknown("?count")))
    return count


def walk_of_numbers(reader: Reader, walk, value, node):
    """A walk over a list of numbers of one dtype as an array, for zip with a value of unknown length."""
    facts: list = [fact_of(v) if isinstance(v, (Var, Const)) else None for v in walk.static or ()]
    numbers = [f for f in facts if isinstance(f, Array) and not f.dims and f.kind in "iufc"]
    if (
        not facts
        or len(numbers) < len(facts)
        or any(not same_dtype(f.dtype, facts[0].dtype) for f in facts)
        or any(map(partial(may_be_cell, reader), walk.static))
    ):
        return walk
    made = walk_over(reader, array_of(reader, Struct("list", walk.static), node), node)
    entry = made.bind
    made.bind = lambda index, items: entry_as_it_was(reader, entry(index, items), facts[0], node)
    return made


def asserted(reader: Reader, text, values):
    """Add `assert text` to the emitted function."""
    tree = gast.parse(f"assert {text}").body[0]
    reader.build.block.append(Effect(Apply(Quoted(tree, tuple(values), None), tuple(values.values())),
                                     reader.build.origin))


def call_map(reader: Reader, function, args, words, node):
    function, *given = args
    if any(isinstance(a, Grown) or isinstance(a, Var) and isinstance(a.fact, Array) and a.fact.dims and
           a.fact.dims[0].normal().symbol is not None for a in map(partial(settle, reader), given)):
        return read_later(
            reader, mapped_over(reader, function, given, node), map(partial(settle, reader), given), function
        )
    over = [
        dispatch.elements_at(reader, a, node) if isinstance(a, Endless) else elements_of(reader, a, node) for a in given
    ]
    lengths = [len(a) for a in over if isinstance(a, list)]
    if not lengths:
        fail(reader, LanguageError, "map over iterators without an end", node, "Write a loop.")
    with pending_values(reader, []) as out:
        for k in range(min(lengths)):
            row = [a[k] if isinstance(a, list) else a(Const(k)) for a in over]
            out.append(dispatch.call_value(reader, function, [settle(reader, v) for v in row], {}, node))
    return iterator(reader, out, *given, late=function)


def mapped_over(reader: Reader, function, given, node):
    """map over arrays of unknown length, read as a comprehension."""
    env, at = reader.environment.frame.env, functools.partial(gast.copy_location, old_node=node)
    name = functools.partial(name_at, node)
    names = ["function  ", *(f"values{' ' * (k + 2)}" for k in range(len(given)))]
    env.update(zip(names, [function, *given]))
    items = [f"item{' ' * (k + 2)}" for k in range(len(given))]
    target = name(items[0], gast.Store) if len(given) == 1 else at(gast.Tuple(
        [name(n, gast.Store) for n in items], gast.Store()))
    over = name(names[1], gast.Load) if len(given) == 1 else at(gast.Call(
        name("zip", gast.Load), [name(n, gast.Load) for n in names[1:]], []))
    call = at(gast.Call(name(names[0], gast.Load), [name(n, gast.Load) for n in items], []))
    try:
        return as_generator(
            reader, dispatch.evaluate(reader, at(gast.ListComp(call, [gast.comprehension(target, over, [], 0)])))
        )
    finally:
        for n in names:
            env.pop(n, None)


def call_filter(reader: Reader, function, args, words, node):
    test, over = args
    wanted = function is not itertools.filterfalse
    return iterator(
        reader,
        [
            v
            for v in elements_of(reader, over, node)
            if dispatch.filter_keeps(reader, test, settle(reader, v), node) == wanted
        ],
        over,
        late=test,
    )


def call_extreme(reader: Reader, function, args, words, node):
    words = dict(words)
    key, default = words.pop("key", Const(None)), words.pop("default", None)
    if words:
        fail(reader, RuleError, f"{function.__name__}: {next(iter(words))} is not understood", node)
    plain = isinstance(key, Const) and key.value is None
    if len(args) == 1 and is_vector(reader, args[0]) and plain and default is None:
        return dispatch.rule_call(reader, {max: np.max, min: np.min}[function], [settle(reader, args[0])], {}, node)
    items = [settle(reader, i) for i in (elements_of(reader, args[0], node) if len(args) == 1 else args)]
    if not items:
        if default is None:
            fail(reader, ShapeError, f"{function.__name__} of no values", node)
        return default
    if not plain:
        return extreme_by(reader, function, items, key, node)
    if all(isinstance(i, Const) for i in items):
        return Const(tried(reader, function, [i.value for i in items], node=node))
    if any(isinstance(i, Struct) for i in items):
        return extreme_by(reader, function, items, None, node)
    result = items[0]
    rule = function if function in RULES else {max: np.maximum, min: np.minimum}[function]
    for item in items[1:]:
        if fact_of(item).rank or fact_of(result).rank:
            fail(reader,
                ShapeError, f"{function.__name__} of arrays is ambiguous", node, f"Use np.{function.__name__}imum."
            )
    if any(promote_differently(fact_of(result), fact_of(item)) for item in items[1:]):
        result = chosen_by(reader, function, items, items, node)
    else:
        for item in items[1:]:
            result = dispatch.rule_call(reader, rule, [result, item], {}, node)
    record_cell(reader, result, items)             # the result is one of the items
    return result


def extreme_by(reader: Reader, function, items, key, node):
    """The first item with the largest or smallest key."""
    keys = [i if key is None else settle(reader, dispatch.call_value(reader, key, [i], {}, node)) for i in items]
    if all(isinstance(k, Var) and isinstance(k.fact, Array) or isinstance(k, Const) and isinstance(
            fact_of(k), Array) for k in keys) and any(isinstance(k, Var) for k in keys):
        return chosen_by(reader, function, items, keys, node)
    order = sorted_places(reader, keys, function is max)
    if order is None:
        fail(reader, LanguageError, "the order of these values is known only when running", node,
             "Use an array: values[np.argmax(keys)].")
    return items[order]


def chosen_by(reader: Reader, function, items, keys, node):
    """The same for keys that are known only at run time: a branch for each."""
    if any(_changeable(i) for i in items):
        fail(reader, LanguageError, "which of these containers is chosen is known only when running", node,
             "Choose tuples or numbers.")
    compare = operator.gt if function is max else operator.lt
    best, highest = items[0], keys[0]
    for item, k in zip(items[1:], keys[1:]):
        test = truth_value(reader, dispatch.operation(reader, compare, [k, highest], node), node)
        both = Struct("tuple", [best, highest])
        both = choose(reader, test, lambda i=item, k=k: Struct("tuple", [i, k]), lambda b=both: b, node) \
            if not isinstance(test, Const) else Struct("tuple", [item, k]) if test.value else both
        best, highest = both.items
    return best


def call_sorted(reader: Reader, function, args, words, node):
    if len(args) != 1 or set(words) - {"key", "reverse"}:
        fail(reader, LanguageError, "sorted: only key and reverse are understood", node,
             "Sort by a key: sorted(items, key=...).")
    key = words.get("key", Const(None))
    key = None if isinstance(key, Const) and key.value is None else key
    reverse = bool(known_value(reader, words["reverse"], "reverse of sorted", node)) if "reverse" in words else False
    return Struct("list", sorted_items(reader, elements_of(reader, args[0], node), key, reverse, node))


def call_divmod(reader: Reader, function, args, words, node):
    return Struct("tuple", [dispatch.binary(reader, f, *args, node) for f in (operator.floordiv, operator.mod)])


def call_pow(reader: Reader, function, args, words, node):
    if len(args) + len(words) == 3:
        return dispatch.call_now(reader, pow, args, words, node)
    return dispatch.binary(reader, operator.pow, *args, *(words[n] for n in ("base", "exp") if n in words), node)


def call_round(reader: Reader, function, args, words, node):
    value, *digits = [settle(reader, a) for a in [*args, *words.values()]]
    if isinstance(value, Const):
        return dispatch.call_now(reader, round, args, words, node)
    if digits and isinstance(digits[0], Const) and digits[0].value is None:
        digits = []
    if digits and fact_of(value).weak:          # Python rounds the number itself, NumPy a multiple of it
        return dispatch.rule_call(reader, builtins.round, [value, *digits], {}, node)
    if digits or fact_of(value).kind in "iub":
        return dispatch.rule_call(reader, np.round, [value, *digits], {}, node)
    return call_float(reader, int, [dispatch.rule_call(reader, np.round, [value], {}, node)], {}, node)


def call_operator(reader: Reader, function, args, words, node):
    """operator.add and the like, as the corresponding operators."""
    args = [settle(reader, a) for a in args]
    if function in COMPARISONS:
        return dispatch.compare(reader, COMPARISONS[function](), *args, node)
    if function in (operator.not_, operator.truth):
        test = truth_value(reader, args[0], node)
        return negated(reader, test) if function is operator.not_ else call_float(reader, bool, [test], {}, node)
    if function is operator.contains:
        return contains(reader, *args, node)       # type: ignore[call-arg]  # mypy counts the parts
    if function is operator.getitem:
        return item_of(reader, args[0], args[1], node)
    if function in (operator.neg, operator.pos, operator.invert):
        return dispatch.operation(reader, function, args, node)
    return dispatch.binary(reader, function, *args, node)


def call_getter(reader: Reader, function, args, words, node):
    """operator.itemgetter("a"), made while reading."""
    if words or function is operator.methodcaller and len(args) > 1:
        fail(reader, LanguageError, "methodcaller: only a name is understood", node, "Write a lambda.")
    return Const(function(*(known_value(reader, a, f"what {function.__name__} gets", node) for a in args)))


def get_by_getter(reader: Reader, getter: Any, args: list, node: gast.AST | None) -> Any:
    """getter(value) for an itemgetter, attrgetter or methodcaller."""
    value, = args
    made, given = getter.__reduce__()
    if made is operator.methodcaller:
        name, *rest = given
        return dispatch.call_value(
            reader,
            dispatch.read_attribute(reader, settle(reader, value), name, node),
            [lift(reader, a, "given") for a in rest],
            {},
            node,
        )
    if made is operator.itemgetter:
        out = [settle(reader, item_of(reader, value, Const(k), node)) for k in given]
    elif made is operator.attrgetter:
        out = [
            functools.reduce(
                lambda v, part: dispatch.read_attribute(reader, settle(reader, v), part, node), k.split("."), value
            )
            for k in given
        ]
    else:
        fail(reader, LanguageError, "methodcaller: words are not understood", node, "Write a lambda.")
    return out[0] if len(out) == 1 else Struct("tuple", out)


def call_collection(reader: Reader, function, args, words, node):
    if function == dict.fromkeys:
        return dict_fromkeys(reader, args[0], node, *args[1:])
    if function is collections.defaultdict:
        factory, *args = args or [Const(None)]
        kind = type("defaultdict", (collections.defaultdict,), {"factory": factory, "mark_rows_as_elements": function})
        return Struct("dict", *made_of(reader, args, words, node), kind)
    if function is collections.OrderedDict:
        return Struct("dict", *made_of(reader, args, words, node), function)
    if function is collections.Counter:
        new = Struct("dict", [], (), function)
        count_into(reader, new, args[0] if args else None, words, node)
        return new
    given = {**dict(zip(("iterable", "maxlen"), args)), **words}
    most = known_value(reader, given.get("maxlen", Const(None)), "the maxlen of a deque", node)
    items = elements_of(reader, given["iterable"], node) if "iterable" in given else []
    return drop_beyond_maxlen(Struct("list", items, (), collections.deque if most is None else bounded(most)))


@functools.cache
def bounded(most):
    """The class of deques with this maxlen."""
    made = type("deque", (collections.deque,), {"most": most, "mark_rows_as_elements": collections.deque})
    SPECIAL_KINDS[made] = "deque"
    return made


def promote_differently(a, b):
    """Whether using one of two numbers in an operation may give another dtype than using the other."""
    return isinstance(a, Array) and isinstance(b, Array) and (a.dtype, a.weak) != (b.dtype, b.weak) and any(
        not n.weak and n.dtype.itemsize < 8 * (1 + (n.kind == "c")) for n in (a, b))


def _changeable(value):
    return isinstance(value, Struct) and (value.kind not in ("tuple", "record") or any(map(_changeable, value.items)))


COMPARISONS = {operator.eq: gast.Eq, operator.ne: gast.NotEq, operator.lt: gast.Lt, operator.le: gast.LtE,
               operator.gt: gast.Gt, operator.ge: gast.GtE, operator.is_: gast.Is, operator.is_not: gast.IsNot}
OPERATORS = [getattr(operator, name) for name in (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift neg pos invert not_ truth contains getitem "
    "eq ne lt le gt ge is_ is_not").split()]
NOW = (chr, ord, repr, ascii, bin, hex, oct, format, str, collections.namedtuple, str.join)


SPECIAL.update({
    enumerate: call_enumerate,
    zip: call_zip,
    map: call_map,
    filter: call_filter,
    itertools.filterfalse: call_filter,
    iter: call_iter,
    next: call_next,
    max: call_extreme,
    min: call_extreme,
    sorted: call_sorted,
    divmod: call_divmod,
    pow: call_pow,
    round: call_round,
    operator.itemgetter: call_getter,
    operator.attrgetter: call_getter,
    operator.methodcaller: call_getter,
    collections.OrderedDict: call_collection,
    collections.defaultdict: call_collection,
    collections.Counter: call_collection,
    collections.deque: call_collection,
    dict.fromkeys: call_collection,
    **dict.fromkeys(OPERATORS, call_operator),
})
