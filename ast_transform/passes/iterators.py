# SPDX-License-Identifier: Apache-2.0
"""Iterators: what is gone through once, and when.

Python makes an iterator's elements one at a time, as they are asked for; here they are made where the iterator is.
What would be another value by then, or would change something between two of a loop's passes, is refused.

>>> from gradscribe.ast_transform.examples import form
>>> from gradscribe.ast_transform.source.diagnose import TransformError
>>> try:
...     form("def f(x):\\n    seen = []\\n    for v in (seen.append(x) or x for k in range(3)):\\n"
...          "        seen.append(v)\\n    return sum(seen)", 1.0)
... except TransformError as error:
...     print(str(error).splitlines()[0])
an iterator that changes something when it is gone through
"""

from collections.abc import Iterator

import gast

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.passes.targets import loaded
from gradscribe.ast_transform.passes.values import FunctionValue, Grown, Rows, Struct, Walk, held_by
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.source.diagnose import LanguageError

AT_ONCE = (sum, list, tuple, sorted, min, max, dict, set, frozenset)     # go through all of it
WRITTEN_OUT = "Write it as a loop, or make a list of it where it stands: [... for ...]."
IN_ORDER = (enumerate, zip, map)        # element k is made of elements k
MAY_SHOW = (Walk, Var, Struct, Grown, Rows)
SPENT = ("spent",)                      # the keys of an iterator that has been read to its end


def made_late(function):
    """Whether a function gives an iterator, whose elements Python makes when they are asked for."""
    return function is iter or isinstance(function, type) and issubclass(function, Iterator)


class Iterators:
    def iterator(self, items, *sources, late=None):
        """What is gone through once.

        Its elements are made now, and by Python later: `sources` may not change while a name holds it, and what
        the function `late`, or the generator, reads by name must then be what it is now.
        """
        reads, held = self.names_read(late)
        lists = [*sources, *(v for _, _, v in reads)]
        sources = (*sources, *held)
        sources = (*sources, *(v for _, _, v in reads))
        reads += self.names_that_show(sources)
        reads = tuple((f, n, v) for f, n, v in reads if not isinstance(v, Struct))
        return self.shows_lists(Struct("iterator", items, (), (tuple(self.sources_of(sources)), reads, False)), lists)

    def names_read(self, late):
        """-> what a function or an expression reads by name: [(frame, name, value)]; and what other values hold."""
        reads, held, later = [], [], [late]
        for late in later:
            frame, tree = (late.frame, late.node) if isinstance(late, FunctionValue) else (self.frame, late)
            if isinstance(tree, gast.AST):
                new = [(frame, n, frame.env[n]) for n in dict.fromkeys(loaded(tree)) if n in frame.env]
                reads += new
                later += [v for _, _, v in new if isinstance(v, FunctionValue) and v not in later]
            else:
                held += held_by(late)
        return reads, held

    def lists_in(self, value):
        """The lists of unknown length that Python reads when it goes through a value.

        By mark: whether pass k reads element k.
        """
        own = dict.fromkeys((c.mark for c in getattr(value, "columns", [value])), True) if isinstance(
            value, (Grown, Rows)) else {}
        return {**own, **self.shown_lists.get(value, {})} if isinstance(value, MAY_SHOW) else {}

    def shows_lists(self, value, read, in_order=False):
        """An iterator that has been made of these values."""
        found = {}
        for v in read:
            for mark, so_far in self.lists_in(v).items():
                found[mark] = found.get(mark, in_order) and so_far
        if found and isinstance(value, MAY_SHOW):
            self.shown_lists[value] = found
        return value

    def lists_shown(self, value):
        """The lists that an iterator will read, or those in a container."""
        if isinstance(value, Struct):
            own = self.shown_lists.get(value, {}) if value.keys != SPENT else {}
            return {*own, *(mark for item in value.items for mark in self.lists_shown(item))}
        return self.shown_lists.get(value, {}) if isinstance(value, MAY_SHOW) else {}

    def names_that_show(self, values):
        """(frame, name, value) of the names that show these arrays: a write gives each of them another value."""
        stores = frozenset().union(*map(self.storages, filter(is_array, values)))
        return [(f, n, v) for f in self.stack for n, v in f.env.items() if is_array(v) and not stores.isdisjoint(
            self.storages(v))] if stores else []

    def as_it_was(self, reads, node):
        """What Python reads later than we do is what it was."""
        for frame, name, held in reads:
            if frame.env.get(name) is not held:
                name = name.strip()
                self.fail(LanguageError, f"an iterator that reads {name} was made before {name} changed", node,
                          "Make a list of it where it stands.")

    def read_later(self, value, arrays):
        """What a name may hold that Python goes through later: enumerate, zip, map or a generator over arrays."""
        reads = self.names_that_show(arrays)
        if reads:
            self.late[value] = reads
        return value

    def given_to(self, function, args):
        """What a function is given; some go through all of an iterator before anything else is done."""
        return list(map(self.at_once, args)) if isinstance(function, Const) and any(
            function.value is f for f in AT_ONCE) else args

    def made_since(self, value, writes, node, by=None):
        """What an expression has made; an iterator whose elements changed something is gone through at once, or never.

        by: the function that has made it; those of the user's do more than iterators' elements.
        """
        if by is not None and not isinstance(by, Const):
            return value
        if self.writes != writes and isinstance(value, Struct) and value.kind == "iterator":
            value.cls = (*value.cls[:2], True)
        elif self.writes != writes and isinstance(node, gast.GeneratorExp):
            self.fail(LanguageError, "an iterator that changes something when it is gone through", node, WRITTEN_OUT)
        return value

    def at_once(self, value):
        """An iterator is gone through from its beginning to its end, with nothing done in between."""
        if isinstance(value, Struct) and value.kind == "iterator" and value.cls[2] and not self.named(value):
            value.cls = (*value.cls[:2], False)
        return value

    @staticmethod
    def sources_of(values):
        found, seen = list(values), set()
        for v in found:
            found += held_by(v)
            if isinstance(v, Struct) and id(v) not in seen:
                seen.add(id(v))
                found += v.items
        return (v for v in found if isinstance(v, Struct) and v.kind in ("list", "dict", "object", "record"))

    def drained(self, value, node):
        """What is left in an iterator, which is read once."""
        if value.keys == SPENT:
            self.fail(LanguageError, "an iterator is read a second time, when nothing is left in it", node,
                      "Make a list of it first.")
        self.moved(value, node)
        items, value.items, value.keys = value.items, [], SPENT
        return items

    def moved(self, value, node):
        """An iterator is about to give elements."""
        self.as_it_was(value.cls[1], node)
        if value.cls[2]:
            self.fail(LanguageError, "an iterator that changes something when it is gone through", node, WRITTEN_OUT)
        value.version += 1
        if self.named(value):
            self.writes += 1

    def named(self, value):
        """Whether a name holds an iterator."""
        return isinstance(value, Struct) and value.kind == "iterator" and any(
            _holds(v, value) for f in [*self.stack, *self.enclosing] for v in f.env.values())


def _holds(value, wanted):
    return value is wanted or isinstance(value, Struct) and any(_holds(i, wanted) for i in value.items)
