# SPDX-License-Identifier: Apache-2.0
"""Adjoints of containers: gathered element by element, lists of them filled in loops."""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import ADJOINT, Apply, Const, Let, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence, same_dtype
from gradscribe.ast_transform.core.operations import push
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.facts import static_key


class Pieces:
    """The adjoint of a container so far: for each element an operand, Pieces, a Taken or None."""
    __slots__ = ("elements", "fact")

    def __init__(self, fact, elements=None):
        self.fact, self.elements = fact, elements or [None] * len(fact.elements)


class Taken:
    """Element k of a list that holds adjoints."""
    __slots__ = ("k", "source")

    def __init__(self, source, k):
        self.source, self.k = source, k


def element_of(held, k):
    """Element k of a container's adjoint, given as Pieces, a Pack or a variable."""
    return held.elements[k] if isinstance(held, Pieces) else held.items[k] if isinstance(held, Pack) else Taken(held, k)


class Containers:
    # lists of unknown length: their adjoints are arrays

    def appended(self, step, dy):
        """The adjoint of a list after append, whose last entry is the element's, or after insert at the front."""
        (before, v), after = step.value.args, step.targets[0]
        dy = self.expanded(dy, after)
        place, rest = (-1, slice(None, -1)) if step.value.function is push else (0, slice(1, None))
        if isinstance(v, Var) and v in self.active:
            self.add(v, self.in_python(self.build.item(dy, Const(place), f"d{v.hint}"), v.fact))
        if before in self.active:
            self.add(before, self.build.item(dy, Const(rest), f"d{before.hint}"))

    def taken_off(self, before, rest, value, dys):
        """The adjoint of a list before pop."""
        drest = self.left_of_list(rest, value, dys[0])
        dy = self.expanded(self.zero(value) if dys[1] is None else dys[1], value)
        whole = self.whole_fact(before)
        words = {} if isinstance(dy, Var) or whole.dtype == np.float64 else {"dtype": Const(np.dtype(whole.dtype))}
        last = self.build.item(dy, Const(None)) if value.fact.dims else \
            self.build.apply(np.array, Pack("list", (dy,)), **words)
        self.add(before, self.build.apply(np.concatenate, Pack("tuple", (drest, last)), hint=f"d{before.hint}",
                                          fact=whole))

    def left_of_list(self, rest, value, drest):
        """The whole adjoint of what is left of a list; an empty one does not show the shape that its elements had."""
        if not value.fact.dims or self.shape_of_listed(rest) is not None:
            return self.expanded(self.zero(rest) if drest is None else drest, rest)
        shape = Pack("tuple", (self.build.length(rest, 0), *(
            self.build.length(value, k) for k in range(value.fact.rank))))
        if drest is None:
            return self.created(np.zeros, (shape,), np.dtype(rest.fact.dtype), self.whole_fact(rest), f"d{rest.hint}")
        return self.build.apply(np.reshape, self.expanded(drest, rest), shape, fact=self.whole_fact(rest))

    def taken(self, var):
        """The adjoint of a container, which is done with."""
        return self.adjoint.pop(var, None)

    def add_to_container(self, var, value):
        if not self.is_outside(var):
            self.merge(self.own(var), value)
            return
        for k in range(len(var.fact.elements)):
            self.give(var, k, element_of(value, k))

    def own(self, container):
        """The pieces of a container's adjoint."""
        if self.is_outside(container):
            raise AssertionError("a loop adds to the adjoint of a container from outside")
        held = self.adjoint.get(container)
        if not isinstance(held, Pieces):
            held = self.adjoint[container] = self.in_pieces(held, container.fact)
        return held

    def in_pieces(self, held, fact):
        if held is None:
            return Pieces(fact)
        held = self.read(held) if isinstance(held, Taken) else held
        return Pieces(fact, [element_of(held, k) for k in range(len(fact.elements))])

    def give(self, container, k, part):
        """One more contribution to the adjoint of element k of a container."""
        fact = container.fact.elements[k]
        if not self.is_outside(container):
            self.merge_element(self.own(container), k, part, fact)
        elif part is not None:
            self.give_outside(container, (k,), part, fact)

    def give_outside(self, container, path, part, fact):
        """The same in a loop, for a container from outside: the loop carries a sum for each array in it."""
        if not fact.differentiable:
            return
        part = self.read(part) if isinstance(part, Taken) else part
        if isinstance(fact, Sequence):
            for k, f in enumerate(fact.elements):
                if element_of(part, k) is not None:
                    self.give_outside(container, (*path, k), element_of(part, k), f)
            return
        self.add(self.element_outside(container, path), part)

    def element_outside(self, container, path):
        """A name for an element of a container, set before the outermost loop that the container is outside of."""
        sweep, step = self, None
        while sweep.outer is not None and sweep.is_outside(container):
            sweep, step = sweep.outer, sweep.loop_step
        known = self.engine.elements.get((container, path, id(step)))
        if known is not None:
            return known
        value, fact = container, container.fact
        for k in path:
            key = fact.keys[k] if fact.kind in ("dict", "record") else k
            function = getattr if fact.kind == "record" else operator.getitem
            fact = fact.elements[k]
            made = Var(f"{container.hint}_{'_'.join(map(str, path))}", fact)
            self.engine.insert_before(step, Let((made,), Apply(function, (value, Const(key))), step.origin))
            sweep.note(made)
            self.made_by[made] = Apply(function, (value, Const(key)))
            value = made
        self.active.add(value)
        self.engine.elements[container, path, id(step)] = value
        self.engine.places[value] = (container, path)
        return value

    def settle_elements(self, variables):
        """Sums for elements of containers, once no loop is around them that the container is outside of."""
        for v in variables:
            container, path = self.engine.places.get(v, (None, ()))
            if container is None or self.is_outside(container):
                continue
            held, fact = self.own(container), container.fact
            for k in path[:-1]:
                fact = fact.elements[k]
                if not isinstance(held.elements[k], Pieces):
                    held.elements[k] = self.in_pieces(held.elements[k], fact)
                held = held.elements[k]
            self.merge_element(held, path[-1], self.adjoint.pop(v), fact.elements[path[-1]])

    def merge(self, held, value):
        """Add a container's adjoint, given as Pieces, a Pack or a variable, to what is held."""
        for k, fact in enumerate(held.fact.elements):
            self.merge_element(held, k, element_of(value, k), fact)

    def merge_element(self, held, k, part, fact):
        if part is None or not fact.differentiable:
            return
        earlier = held.elements[k]
        if earlier is None:
            if isinstance(fact, Sequence) and not isinstance(part, Taken):
                earlier = held.elements[k] = Pieces(fact)
                self.merge(earlier, part)
            else:
                held.elements[k] = part
            return
        if isinstance(fact, Sequence):
            if isinstance(earlier, Taken):
                source = self.read(earlier)
                earlier = held.elements[k] = Pieces(fact)
                self.merge(earlier, source)
            self.merge(earlier, self.read(part) if isinstance(part, Taken) else part)
            return
        held.elements[k] = self.build.add(self.whole_piece(part, fact), self.whole_piece(earlier, fact))

    def whole_piece(self, part, fact):
        return self.read(part) if isinstance(part, Taken) else part

    def read(self, part):
        """An element of a list of adjoints, as a variable."""
        fact = part.source.fact
        element = fact.elements[part.k] if isinstance(fact, Sequence) else fact.element
        return self.build.let(part.source.hint, Apply(operator.getitem, (part.source, Const(part.k))), element, ADJOINT)

    # statements on containers

    def item_of_container(self, container, index, dy):
        if dy is None or container not in self.active:
            return
        key = static_key(index)
        if container.fact.kind in ("dict",):
            key = container.fact.keys.index(key)
        if isinstance(key, slice):
            for j, k in enumerate(range(len(container.fact.elements))[key]):
                self.give(container, k, element_of(dy, j))
            return
        self.give(container, key % len(container.fact.elements), dy)

    def field(self, step, dys):
        container, key = step.value.args
        if container in self.active and dys[0] is not None:
            self.give(container, container.fact.keys.index(key.value), dys[0])

    def unpack_statement(self, step, dys):
        """a, b = container"""
        (container,) = step.value.args
        if container not in self.active:
            return
        for k, (d, t) in enumerate(zip(dys, step.targets)):
            self.give(container, k, d if d is None or isinstance(t.fact, Sequence) else self.expanded(d, t))

    def unpack_pack(self, pack, dy):
        """The adjoint of (a, b) goes to a and b."""
        for k, item in enumerate(pack.items):
            part = element_of(dy, k)
            if part is None:
                continue
            part = self.read(part) if isinstance(part, Taken) else part
            if isinstance(item, Pack):
                self.unpack_pack(item, part)
            elif isinstance(item, Var) and item in self.active:
                self.add(item, part)

    # whole containers

    def materialised(self, value, fact, path=None):
        """The adjoint of a container as an operand with every element."""
        if isinstance(value, Taken):
            value = self.read(value)
        if not isinstance(fact, Sequence):
            if value is None:
                return self.zero_like_path(fact, path)
            return self.finished(value, fact, path)
        if isinstance(value, Var) and isinstance(value.fact, Sequence):
            return value
        if value is None:
            value = Pieces(fact)
        if isinstance(value, Pack):
            value = Pieces(fact, list(value.items))
        whole = self.whole_run(value)
        if whole is not None:
            return whole
        keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
        items = tuple(self.materialised(v, f, self.part_path(path, key, fact)) for v, f, key in
                      zip(value.elements, fact.elements, keys))
        return Pack(fact.kind, items, fact.keys, fact.cls)

    @staticmethod
    def whole_run(value):
        """The list itself, where every element is taken from it in order."""
        elements = value.elements
        if elements and all(
            isinstance(e, Taken) and e.source is elements[0].source and e.k == k for k, e in enumerate(elements)
        ):
            source = elements[0].source
            if (
                isinstance(source.fact, Sequence)
                and len(source.fact.elements) == len(elements)
                and source.fact.kind == value.fact.kind
            ):
                return source
        return None

    def part_path(self, path, key, fact):
        return None if path is None else (path, key, fact)

    def value_at(self, path):
        """A statement that reads the primal container at a path."""
        if isinstance(path, Var):
            return path
        parent, key, fact = path
        k = fact.keys.index(key) if fact.kind in ("dict", "record") else key
        function = getattr if fact.kind == "record" else operator.getitem
        source = self.value_at(parent)
        return self.build.let(source.hint, Apply(function, (source, Const(key))), fact.elements[k])

    def zero_like_path(self, fact, path):
        if not isinstance(fact, Array):
            return Const(None)
        if not fact.differentiable:
            return Const(None) if path is None else self.value_at(path)
        if not fact.dims:
            return self.finished(Const(0.0), fact, path)
        if path is None:
            raise AssertionError("no array to make zeros of")
        return self.build.apply(
            np.zeros_like, self.value_at(path), fact=Array(np.dtype(fact.dtype), fact.dims), hint="d"
        )

    def finished(self, value, fact, path):
        """An adjoint as a result: whole, and a float even where it is a literal."""
        if not isinstance(fact, Array):
            return value
        found = fact_of(value)
        if isinstance(value, Const) and not fact.dims:
            value = Const(float(value.value)) if type(value.value) is int else value
            if fact.weak:
                return Const(complex(value.value)) if fact.kind == "c" else value
            return value if fact.dtype == np.float64 else Const(fact.dtype.type(value.value))
        if fact.dims and (
            found.rank != fact.rank or not all(a.same(b) or a.many or b.is_unit for a, b in zip(found.dims, fact.dims))
        ):
            var = path if isinstance(path, Var) else self.value_at(path)
            return self.fixed(self.expanded(value, var), fact)
        value = self.floating(value)
        found = fact_of(value)
        if fact.weak and fact.kind == "c" and found.kind == "f" and not fact.dims:
            return self.build.let("t", Apply(complex, (value,)), fact)
        if fact.weak and not found.weak and found.kind == "f" and found.dtype != np.float64 and not fact.dims:
            return self.build.let("t", Apply(float, (value,)), fact)
        if self.engine.mixed and fact.kind == "f" and isinstance(value, Var):   # each path may have its own precision
            return self.build.let("t", Apply(float, (value,)), fact) if fact.weak else self.converted(value, fact.dtype)
        if not fact.weak and not same_dtype(found.dtype, fact.dtype) and not (
                found.weak and fact.dtype == np.float64):
            value = self.converted(value, fact.dtype)
        return value

    def zero_of(self, fact):
        if isinstance(fact, Sequence):
            return Pack(fact.kind, tuple(map(self.zero_of, fact.elements)), fact.keys, fact.cls)
        return Const(0.0)
