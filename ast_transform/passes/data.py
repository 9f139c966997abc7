# SPDX-License-Identifier: Apache-2.0
"""Python's containers: what their methods and operators do to values of known structure.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    d = {'a': x}\\n    d.update(b=2 * x)\\n    del d['a']\\n    return d.popitem()[1]"
>>> print(show(form(text, 1.0)))
f(x):
    t = 2 * x
    return t
"""
import collections
import operator
from dataclasses import dataclass
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.list_of_tuples import filled, is_row, leaves_of
from gradscribe.ast_transform.passes.values import RangeValue, Struct, View
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError

UNDECIDED = object()                    # whether two values are equal is known only when running
NOTHING, ZERO, ONE, LAST, FALSE, TRUE = (Const(v) for v in (None, 0, 1, -1, False, True))     # what is left out
TEXTS = (str, bytes, type(None))


class Unordered(Exception):
    """Values whose order is known only when running."""


def is_place(index: Any) -> bool:
    """A whole number that is known only when running."""
    return isinstance(index, Var) and isinstance(index.fact, Array) and not index.fact.dims and index.fact.kind in "iu"


@dataclass(eq=False, slots=True)
class Ordered:
    """A value of the reader that Python's sorts and searches compare, as far as it is known."""
    holder: Any
    value: Any

    def __lt__(self, other):
        return self.holder.less(self.value, other.value)

    def __gt__(self, other):
        return other < self


class Data:
    # equality and order

    def equal(self, a, b):
        """Whether two values are equal, or UNDECIDED; one value is equal to itself."""
        a, b = self.settle(a), self.settle(b)
        if a is b:
            return True
        if isinstance(a, Const) and isinstance(b, Const):
            same = a.value is b.value or a.value == b.value
            return bool(same) if isinstance(same, (bool, np.bool_)) else UNDECIDED
        if isinstance(a, Struct) and isinstance(b, Struct):
            if "iterator" in (a.kind, b.kind):
                return UNDECIDED
            if a.cls is not None and a.kind in ("object", "record") or b.cls is not None and \
                    b.kind in ("object", "record"):
                same = self.equal_objects(a, b)
                return UNDECIDED if same is None else same
            queues = [s.cls is not None and issubclass(s.cls, collections.deque) for s in (a, b)]
            if a.kind != b.kind or queues[0] != queues[1] or len(a.items) != len(b.items):
                return False
            ordered = [s.cls is not None and issubclass(s.cls, collections.OrderedDict) for s in (a, b)]
            if all(ordered) and tuple(a.keys) != tuple(b.keys):
                return False
            if a.kind == "dict":
                if set(a.keys) != set(b.keys):
                    return False
                b = Struct("dict", [b.items[b.keys.index(k)] for k in a.keys], a.keys)
            found = [self.equal(x, y) for x, y in zip(a.items, b.items)]
            return False if False in found else True if all(f is True for f in found) else UNDECIDED
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Struct) and x.cls is not None and x.kind in ("object", "record") and isinstance(y, Const):
                same = self.equal_to_outside(x, y)
                return UNDECIDED if same is None else same
        if any(isinstance(v, Const) and isinstance(v.value, TEXTS) or isinstance(v, Struct) for v in (a, b)):
            others = [v for v in (a, b) if isinstance(v, Var)]
            return False if all(isinstance(v.fact, Array) and not v.fact.dims for v in others) else UNDECIDED
        return UNDECIDED

    def less(self, a, b):
        a, b = self.settle(a), self.settle(b)
        if isinstance(a, Struct) and isinstance(b, Struct) and a.kind == b.kind and a.kind in ("tuple", "list"):
            for x, y in zip(a.items, b.items):
                same = self.equal(x, y)
                if same is UNDECIDED:
                    raise Unordered
                if not same:
                    return self.less(x, y)
            return len(a.items) < len(b.items)
        if isinstance(a, Const) and isinstance(b, Const) and not isinstance(a.value, np.ndarray):
            return bool(a.value < b.value)
        raise Unordered

    def sorted_items(self, items, key, reverse, node):
        """Items in the order of their keys."""
        values = [self.settle(i if key is None else self.call(key, [i], {}, node)) for i in items]
        keys = [Ordered(self, v) for v in values]
        try:
            order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        except Unordered:
            return self.sorted_when_running([self.settle(i) for i in items], values, reverse, node)
        return [items[k] for k in order]

    def sorted_when_running(self, items, keys, reverse, node):
        """Items in the order of numbers, or of tuples of numbers, that are known when running."""
        rows = all(map(is_row, keys))
        for key in keys[1:] if rows else ():
            self.one_form(keys[0], key, node)
        columns = [[self.settle(v) for v in c] for c in zip(*map(leaves_of, keys))] if rows else [keys]
        if not all(self.is_real_number(v) for column in columns for v in column):
            self.fail(LanguageError, "the order of these values is known only when running", node,
                      "Sort an array: np.sort(np.array(values)), or values[np.argsort(keys)].")
        step = -1 if reverse else 1         # equal ones stay in their order, in reverse too
        columns = [self.array_of(Struct("list", list(column)[::step]), node) for column in columns]
        if len(columns) == 1:
            order = self.rule_call(np.argsort, columns, {"kind": Const("stable")}, node)
        else:
            order = self.rule_call(np.lexsort, [Struct("tuple", columns[::-1])], {}, node)
        return self.in_order(items[::step], order, node)[::step]

    def in_order(self, items, order, node):
        """The elements of a list, which are alike, in an order that is known only when running."""
        if all(map(is_row, items)):
            for row in items[1:]:
                self.one_form(items[0], row, node)
            columns = [self.in_order(list(c), order, node) for c in zip(*map(leaves_of, items))]
            return [filled(items[0], iter(row)) for row in zip(*columns)]
        facts = self.facts_alike(items)
        if facts is None:
            self.fail(LanguageError, "values of several kinds in an order that is known only when running", node,
                      "Make all of them arrays, or numbers, of one dtype and shape.")
        rows = self.build.item(self.array_of(Struct("list", items), node), order)
        self.stands_for(rows, items)
        return [self.entry_as_it_was(self.build.item(rows, Const(k)), facts[0], node) for k in range(len(items))]

    def is_real_number(self, value):
        if isinstance(value, Const):
            return isinstance(value.value, (bool, int, float, np.bool_, np.integer, np.floating))
        return isinstance(value, Var) and isinstance(value.fact, Array) and not value.fact.dims and \
            value.fact.kind in "biuf"

    def place_of(self, items, value, node, known="the place of this value"):
        """The first place where a value stands, or None."""
        for k, item in enumerate(items):
            same = self.equal(item, value)
            if same is UNDECIDED:
                self.fail(LanguageError, f"{known} is known only when running", node,
                          "Use an array: np.argmax(items == value), or np.any(items == value).")
            if same:
                return k
        return None

    def contains(self, holder, value, node):
        if self.dunder(holder, "__contains__") is not None:
            return self.truth(self.call_known(self.dunder(holder, "__contains__"), [holder, value], {}, node), node)
        if isinstance(holder, RangeValue):
            return self.in_progression(holder, value, node)
        if isinstance(holder, Struct) and holder.kind == "iterator":
            holder = Struct("list", self.drained(holder, node))
        if isinstance(holder, Struct):
            if holder.kind == "dict":
                return Const(self.hashed(value, node) in holder.keys)
            found = [self.equal(i, value) for i in holder.items]
            if True in found or UNDECIDED not in found:
                return Const(True in found)
            return self.any_equal([i for i, f in zip(holder.items, found) if f is UNDECIDED], value, node)
        if isinstance(holder, Const):
            wanted = self.static(value, "what is looked for", node)
            self.stays_as_it_is(holder, lambda held: wanted in held)
            return Const(self.tried(operator.contains, holder.value, wanted, node=node))
        self.fail(LanguageError, "membership in an array is not differentiated", node, "Use np.any(x == value).")

    def any_equal(self, items, value, node):
        """value in items, for numbers that are known when running."""
        result = Const(False)
        for item in map(self.settle, [value, *items]):
            fact = fact_of(item) if isinstance(item, (Var, Const)) else None
            if not isinstance(fact, Array) or fact.dims:
                self.fail(LanguageError, "whether a container holds this value is known only when running", node,
                          "Compare numbers, or use np.any(array == value).")
        for item in items:
            result = self.either(
                result, lambda i=item: self.operation(operator.eq, [value, self.settle(i)], node), node)
        return result

    def in_progression(self, values, value, node):
        parts = [values.start, values.stop, values.step]
        if all(isinstance(p, Const) for p in [*parts, value]):
            return Const(value.value in range(*(p.value for p in parts)))
        fact = fact_of(value) if isinstance(value, (Var, Const)) else None
        if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu" or not (
                isinstance(values.step, Const) and values.step.value == 1):
            self.fail(LanguageError, "membership in this range is known only when running", node,
                      "Compare: start <= value < stop.")
        return self.both(self.operation(operator.ge, [value, values.start], node),
                         lambda: self.operation(operator.lt, [value, values.stop], node), node)

    def compared(self, function, left, right, node):
        """== and < of containers and of values known now; with an array, a list of numbers is one."""
        known = isinstance(left, Const) and isinstance(right, Const)
        for v in (left, right):
            if isinstance(v, Const):
                self.stays_as_it_is(v, (lambda _: function(left.value, right.value)) if known else None)
        made = self.entry_by_entry(function, left, right, node)
        if made is not None:
            return made
        if function in (operator.eq, operator.ne) and isinstance(left, Struct) and isinstance(right, Struct):
            same = self.equal(left, right)
            if same is not UNDECIDED:
                return Const(same == (function is operator.eq))
        elif isinstance(left, Struct) and isinstance(right, Struct) and function in (operator.lt, operator.gt):
            try:
                return Const(self.less(left, right) if function is operator.lt else self.less(right, left))
            except Unordered:
                pass
        return Const(self.tried(function, self.python(left, node), self.python(right, node), node=node))

    def hashed(self, key, node):
        """The key of a dictionary."""
        value = self.static(key, "the key of a dictionary", node)
        try:
            hash(value)
        except TypeError as error:
            self.fail(LanguageError, str(error), node)
        return value

    # operators

    def binary_on_containers(self, function, left, right, node):
        if isinstance(left, Const) and isinstance(left.value, (str, bytes)):
            return Const(self.tried(function, left.value, self.known_part(right, str, node), node=node))
        if not any(isinstance(v, Struct) and v.kind == "iterator" for v in (left, right)):
            if isinstance(left, Struct) and isinstance(right, Struct) and left.kind == right.kind:
                if function is operator.add and left.kind in ("list", "tuple"):
                    return Struct(left.kind, [*left.items, *right.items])
                if function is operator.or_ and left.kind == "dict":
                    new = Struct("dict", left.items, left.keys, left.cls)
                    self.put_all(new, zip(right.keys, right.items))
                    return new
            held, times = (left, right) if isinstance(left, Struct) else (right, left)
            if function is operator.mul and held.kind in ("list", "tuple") and self.is_count(times):
                times = Const(self.static(times, "how often a list is repeated", node))
            if function is operator.mul and held.kind in ("list", "tuple") and isinstance(times, Const) and \
                    isinstance(times.value, (int, np.integer)):
                return Struct(held.kind, held.items * times.value)
            made = self.entry_by_entry(function, left, right, node)
            if made is not None:
                return made
        both = f"{self.spell(left)} and {self.spell(right)}"
        self.fail(LanguageError, f"{spelled(function)}: {both} are not combined", node,
                  "Make arrays of lists of numbers: np.array(items).")

    def changed_in_place(self, function, old, value, node):
        """old += value and the like, where old is a list or a dictionary; False where a new value is made."""
        value = self.settle(value) if not isinstance(value, RangeValue) else value
        if old.kind == "list" and function is operator.add:
            self.extend(old, value, node)
        elif old.kind == "list" and function is operator.mul:
            times = self.static(value, "how often a list is repeated", node)
            self.changing(old, node).items *= times
        elif old.kind == "dict" and function is operator.or_:
            self.dict_update(self.changing(old, node), node, value)
        else:
            return False
        return True

    # changes

    def changing(self, value, node):
        """A container that is about to change: ours, and not in an expression that may be skipped."""
        self.own(value, node)
        self.must_be_certain(value, node)
        value.version += 1
        self.writes += value.mark not in self.own_lists
        self.written.append({value.mark})
        return value

    def extend(self, old, value, node):
        items = self.listed(value, node)
        self.changing(old, node).items += items

    @staticmethod
    def put_all(holder, pairs):
        for key, value in pairs:
            if key in holder.keys:
                holder.items[holder.keys.index(key)] = value
            else:
                holder.keys += (key,)
                holder.items.append(value)

    def put_element(self, holder, key, value, node):
        """holder[key] = value"""
        if holder.kind not in ("list", "dict"):
            self.refuse_write(node)
        if is_place(key) and holder.items and self.is_own_list(holder):
            return self.put_at_place(holder, key, value, node)
        key = self.hashed(key, node) if holder.kind == "dict" else self.static(key, "the index of a container", node)
        if holder.kind == "dict":
            self.put_all(self.changing(holder, node), [(key, value)])
            return
        value = self.listed(value, node) if isinstance(key, slice) else value
        self.changing(holder, node)
        try:
            holder.items[key] = value
        except (IndexError, TypeError, ValueError) as error:
            self.fail(ShapeError, str(error), node)

    def put_at_place(self, holder, place, value, node):
        """holder[place] = value where the place is known only when running: a list of elements that are alike."""
        self.changing(holder, node)
        shown = self.containers().get(holder.mark)
        with self.waiting([holder]) as held:
            self.grow(holder, self.element_of([*holder.items, value], node), shown[-1][0][1] if shown else "items")
            self.set_grown(held[0], place, value, node)

    def exec_Delete(self, node):
        for target in node.targets:
            if isinstance(target, gast.Name):
                self.read_name(target.id, target)
                self.frame.env.pop(target.id, None)
                continue
            holder = self.settle(self.eval(target.value))
            if not isinstance(target, gast.Subscript) or not isinstance(holder, Struct) or \
                    holder.kind not in ("list", "dict"):
                self.fail(LanguageError, "only names and elements of lists and dictionaries are deleted", target,
                          "Make a new value without it: np.delete(x, k).")
            self.taken(holder, self.index(target.slice), target)

    def taken(self, holder, index, node):
        """Take an element or a slice out of a container."""
        if holder.kind == "dict":
            key = self.hashed(index, node)
            if key not in holder.keys:
                self.fail(ShapeError, f"the dictionary has no key {key!r}", node)
            self.changing(holder, node)
            k = holder.keys.index(key)
            holder.keys = holder.keys[:k] + holder.keys[k + 1:]
            return holder.items.pop(k)
        key = self.static(index, "the index of a container", node)
        self.changing(holder, node)
        try:
            found = holder.items[key]
            del holder.items[key]
        except (IndexError, TypeError) as error:
            self.fail(ShapeError, str(error), node)
        return found

    # methods

    def container_method(self, value, name, args, words, node):
        kind = SPECIAL_KINDS.get(value.cls, value.kind)
        handler, least, most, known = METHODS_OF.get((kind, name)) or METHODS_OF.get((value.kind, name)) or [None] * 4
        if handler is None or kind == "deque" and name in NOT_OF_A_DEQUE:
            self.fail(LanguageError, f"the method {name} of {self.spell(value)} is not differentiated yet", node,
                      "Make a list of it first: list(items)." if kind == "deque" else "Write it with other methods.")
        if not least <= len(args) <= most or known is not None and set(words) - set(known):
            self.fail(LanguageError, f"{name}: these arguments are not understood", node)
        result = getattr(self, handler)(value, node, *args, **words)
        return Const(None) if result is None else result

    def any_index(self, value, node, item, start=ZERO, stop=NOTHING):
        first, last = (self.static(v, "a bound of index", node) for v in (start, stop))
        first = slice(first, last).indices(len(value.items))[0]
        k = self.place_of(value.items[first:last], item, node)
        if k is None:
            self.fail(ShapeError, "the value is not in the container", node)
        return Const(first + k)

    def any_count(self, value, node, item):
        return Const(sum(self.place_of([i], item, node, "how often this value occurs") == 0 for i in value.items))

    def any_item(self, value, node, key):
        return self.settle(self.item_of(value, key, node))

    def any_copy(self, value, node):
        return Struct(value.kind, value.items, value.keys, value.cls)

    def any_clear(self, value, node):
        self.changing(value, node)
        value.items.clear()
        value.keys = ()

    def list_append(self, value, node, item):
        self.changing(value, node).items.append(self.settle(item))

    def list_extend(self, value, node, items):
        self.extend(value, items, node)

    def list_insert(self, value, node, place, item):
        k = self.static(place, "the place of insert", node)
        self.changing(value, node).items.insert(k, self.settle(item))

    def list_pop(self, value, node, place=LAST):
        if not value.items:
            self.fail(ShapeError, f"pop from an empty {value.kind}", node)
        return self.settle(self.taken(value, place, node))

    def list_remove(self, value, node, item):
        k = self.place_of(value.items, item, node)
        if k is None:
            self.fail(ShapeError, "the value is not in the list", node)
        self.taken(value, Const(k), node)

    def list_reverse(self, value, node):
        self.changing(value, node).items.reverse()

    def list_sort(self, value, node, key=NOTHING, reverse=FALSE):
        key = None if isinstance(key, Const) and key.value is None else key
        new = self.sorted_items(value.items, key, bool(self.static(reverse, "reverse of sort", node)), node)
        self.changing(value, node).items[:] = new

    def deque_appendleft(self, value, node, item):
        self.changing(value, node).items.insert(0, self.settle(item))

    def deque_popleft(self, value, node):
        return self.list_pop(value, node, Const(0))

    def deque_extendleft(self, value, node, items):
        self.changing(value, node).items[:0] = self.listed(items, node)[::-1]

    def deque_rotate(self, value, node, steps=ONE):
        line = collections.deque(value.items)
        line.rotate(self.static(steps, "the steps of rotate", node))
        self.changing(value, node).items[:] = line

    def viewed(self, view):
        """What a view of a dictionary shows now."""
        keys, items = [Const(k) for k in view.value.keys], view.value.items
        shown = {"keys": keys, "values": items}.get(view.name)
        return Struct("list", [Struct("tuple", pair) for pair in zip(keys, items)] if shown is None else shown)

    def dict_keys(self, value, node):
        return View(value, "keys")

    def dict_values(self, value, node):
        return View(value, "values")

    def dict_items(self, value, node):
        return View(value, "items")

    def dict_get(self, value, node, key, default=NOTHING):
        key = self.hashed(key, node)
        return self.settle(value.items[value.keys.index(key)]) if key in value.keys else default

    def dict_setdefault(self, value, node, key, default=NOTHING):
        if self.hashed(key, node) not in value.keys:
            self.put_element(value, key, default, node)
        return self.dict_get(value, node, key)

    def dict_update(self, value, node, other=None, /, **words):
        if value.cls is collections.Counter:
            self.counted(value, other, words, node)
            return
        pairs = [*self.pairs_of(other, node), *words.items()]
        if pairs:
            self.put_all(self.changing(value, node), pairs)

    def pairs_of(self, other, node):
        """(key, value) of a dictionary or of a sequence of pairs."""
        if other is None:
            return []
        other = self.settle(other)
        if isinstance(other, Struct) and other.kind == "dict":
            return list(zip(other.keys, other.items))
        rows = [self.listed(row, node) for row in self.listed(other, node)]
        if any(len(row) != 2 for row in rows):
            self.fail(ShapeError, "a dictionary is made of pairs of a key and a value", node)
        return [(self.hashed(k, node), self.settle(v)) for k, v in rows]

    def dict_pop(self, value, node, key, default=None):
        if default is not None and self.hashed(key, node) not in value.keys:
            return default
        return self.settle(self.taken(value, key, node))

    def dict_popitem(self, value, node, last=TRUE):
        if not value.keys:
            self.fail(ShapeError, "popitem from an empty dictionary", node)
        key = Const(value.keys[-1 if self.static(last, "last of popitem", node) else 0])
        return Struct("tuple", [key, self.settle(self.taken(value, key, node))])

    def dict_move_to_end(self, value, node, key, last=TRUE):
        item, name = self.taken(value, key, node), self.hashed(key, node)
        k = len(value.items) if self.static(last, "last of move_to_end", node) else 0
        value.keys, value.items[k:k] = (*value.keys[:k], name, *value.keys[k:]), [item]

    def dict_fromkeys(self, keys, node, value=NOTHING):
        keys = tuple(dict.fromkeys(self.hashed(k, node) for k in self.listed(keys, node)))
        return Struct("dict", [value] * len(keys), keys)

    def counter_most_common(self, value, node, n=NOTHING):
        pairs = [Struct("tuple", [Const(k), v]) for k, v in zip(value.keys, value.items)]
        ordered = self.sorted_items(pairs, Const(operator.itemgetter(1)), True, node)
        return Struct("list", ordered[:self.static(n, "n of most_common", node)])

    def counter_total(self, value, node):
        return self.total(value.items, node)

    def counted(self, value, items, words, node):
        """Counter.update: counts are added."""
        given = {}
        if items is not None:
            items = self.settle(items)
            if isinstance(items, Struct) and items.kind == "dict":
                given = dict(zip(items.keys, items.items))
            else:
                given = {k: Const(n) for k, n in collections.Counter(
                    self.hashed(i, node) for i in self.listed(items, node)).items()}
        for key, n in {**given, **words}.items():
            held = dict(zip(value.keys, value.items))
            new = self.binary(operator.add, held[key], n, node) if key in held else n
            self.put_all(self.changing(value, node), [(key, new)])

    def missing(self, holder, key, node):
        """What a dictionary with a default gives for a key that it lacks; None for a plain one."""
        if holder.cls is collections.Counter:
            return Const(0)
        factory = getattr(holder.cls, "factory", None)
        if factory is None or isinstance(factory, Const) and factory.value is None:
            return None
        value = self.settle(self.call(factory, [], {}, node))
        self.put_all(self.changing(holder, node), [(key, value)])
        return value


SPECIAL_KINDS = {collections.deque: "deque", collections.OrderedDict: "ordered", collections.Counter: "counter"}
NOT_OF_A_DEQUE = ("sort",)
METHODS_OF = {                          # (kind, name) -> handler, least and most arguments, words (None: any)
    ("list", "append"): ("list_append", 1, 1, ()), ("list", "extend"): ("list_extend", 1, 1, ()),
    ("list", "insert"): ("list_insert", 2, 2, ()), ("list", "pop"): ("list_pop", 0, 1, ()),
    ("list", "remove"): ("list_remove", 1, 1, ()), ("list", "reverse"): ("list_reverse", 0, 0, ()),
    ("list", "sort"): ("list_sort", 0, 0, ("key", "reverse")),
    ("list", "copy"): ("any_copy", 0, 0, ()), ("list", "clear"): ("any_clear", 0, 0, ()),
    ("list", "index"): ("any_index", 1, 3, ()),
    ("list", "count"): ("any_count", 1, 1, ()),
    ("tuple", "index"): ("any_index", 1, 3, ()),
    ("tuple", "count"): ("any_count", 1, 1, ()),
    **dict.fromkeys([("list", "__getitem__"), ("dict", "__getitem__")], ("any_item", 1, 1, ())),
    ("record", "index"): ("any_index", 1, 3, ()),
    ("record", "count"): ("any_count", 1, 1, ()),
    ("record", "_replace"): ("record_replace", 0, 0, None),
    ("record", "_asdict"): ("record_asdict", 0, 0, ()),
    ("deque", "appendleft"): ("deque_appendleft", 1, 1, ()),
    ("deque", "popleft"): ("deque_popleft", 0, 0, ()),
    ("deque", "pop"): ("list_pop", 0, 0, ()),
    ("deque", "extendleft"): ("deque_extendleft", 1, 1, ()),
    ("deque", "rotate"): ("deque_rotate", 0, 1, ()),
    ("dict", "keys"): ("dict_keys", 0, 0, ()),
    ("dict", "values"): ("dict_values", 0, 0, ()),
    ("dict", "items"): ("dict_items", 0, 0, ()),
    ("dict", "get"): ("dict_get", 1, 2, ()),
    ("dict", "setdefault"): ("dict_setdefault", 1, 2, ()),
    ("dict", "update"): ("dict_update", 0, 1, None),
    ("dict", "pop"): ("dict_pop", 1, 2, ()),
    ("dict", "popitem"): ("dict_popitem", 0, 0, ()),
    ("ordered", "popitem"): ("dict_popitem", 0, 1, ("last",)),
    ("dict", "copy"): ("any_copy", 0, 0, ()), ("dict", "clear"): ("any_clear", 0, 0, ()),
    ("ordered", "move_to_end"): ("dict_move_to_end", 1, 2, ("last",)),
    ("counter", "most_common"): ("counter_most_common", 0, 1, ("n",)),
    ("counter", "total"): ("counter_total", 0, 0, ()),
}
