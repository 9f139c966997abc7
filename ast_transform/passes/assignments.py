# SPDX-License-Identifier: Apache-2.0
"""Assignments: to names, to elements of containers and arrays, augmented ones, unpacking."""
import functools
import inspect
import operator

import gast
import numpy as np

from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    USER,
    Apply,
    Const,
    Var,
    operands,
)
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, spell, unify
from gradscribe.ast_transform.core.operations import put_add, unpacked
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.flow import RAISED
from gradscribe.ast_transform.passes.objects import OPERATORS
from gradscribe.ast_transform.passes.storage import NeedsParts
from gradscribe.ast_transform.passes.targets import makes_longer, spoken
from gradscribe.ast_transform.passes.values import (
    Conflict,
    Grown,
    Part,
    RangeValue,
    Rows,
    Struct,
    View,
    Walk,
    held_by,
)
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError
from gradscribe.ast_transform.source.nonlocals import is_box

BINARY = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.Div: operator.truediv,
    gast.FloorDiv: operator.floordiv,
    gast.Mod: operator.mod,
    gast.Pow: operator.pow,
    gast.MatMult: operator.matmul,
    gast.BitAnd: operator.and_,
    gast.BitOr: operator.or_,
    gast.BitXor: operator.xor,
    gast.LShift: operator.lshift,
    gast.RShift: operator.rshift,
}


class Assignments:
    def exec_Assign(self, node):
        name = makes_longer(node)
        if name is not None and self.may_grow(self.frame.env.get(name)):
            return self.joined_list(name, node)
        writes = self.writes
        value = self.eval(node.value)
        if isinstance(value, Struct) and value.kind == "iterator" and self.writes != writes:
            self.fail(LanguageError, "an iterator that changes something when it is gone through", node.value,
                      "Make a list of it where it stands.")
        with self.waiting([value]) as held:         # a target before may write into it
            for target in node.targets:
                self.assign(target, held[0])

    def joined_list(self, name, node):
        """items = items + [...]: where nothing else shows the list, it is made longer in its place."""
        target, old = node.targets[0], self.frame.env[name]
        with self.waiting([old]) as held:
            value = self.eval(node.value.right)
        if old.mark is held[0].mark and self.only_shown_by(name, held[0]) and not holds(value, held[0].mark):
            return self.augmented(operator.add, held[0], value, node, lambda new: self.assign(target, new))
        if any(name in loop.longer for loop in self.loops):
            self.fail(LanguageError, f"{name} is a list that another name shows, and changes from pass to pass", node,
                      f"Copy the list first: {name} = list({name}).")
        return self.assign(target, self.binary(operator.add, held[0], value, node))

    def only_shown_by(self, name, held):
        """Whether a list is this function's own, and no other name, container or iterator shows it."""
        if isinstance(held, Struct) and (not self.is_own_list(held) or held.mark in self.given_marks or
                                         held in self.lent):
            return False
        found = self.containers().get(held.mark)
        return found is not None and found[-1] == [(self.frame, name)]

    def exec_AugAssign(self, node):
        target, function = node.target, BINARY[type(node.op)]
        if isinstance(target, gast.Name):
            with self.waiting([self.read_name(target.id, target)]) as held:     # what is read meanwhile may change it
                value = self.eval(node.value)
            old = held[0]
            if isinstance(old, (Struct, Grown, Rows, Conflict)):
                old = self.read_name(target.id, target)
            return self.augmented(function, old, value, node, lambda new: self.assign(target, new))
        if isinstance(target, gast.Attribute):
            holder = self.settle(self.eval(target.value))
            read, write = (lambda h: self.attribute(h, target.attr, target)), self.assign_attribute
        elif isinstance(target, gast.Subscript):
            holder = self.settle(self.eval(target.value))
            if not isinstance(holder, (Struct, Grown)):
                return self.augment_item(holder, node)
            index = self.index(target.slice)
            read = functools.partial(self.item_of, index=index, node=target)
            def write(t, new, h):
                if is_box(t.value):
                    self.takes_name(t.value.id, new)
                self.assign_item(h, index, new, t)
        else:
            self.refuse_write(target)
        with self.waiting([holder]) as held:
            held.append(self.settle(read(held[0])))
            value = self.eval(node.value)
            return self.augmented(function, held[1], value, node, lambda new: write(target, new, held[0]),
                                  self.is_told(held[0], target))

    def is_told(self, holder, target):
        """Whether a method of the user's class is given what is set: a property's setter, or __setitem__."""
        if not isinstance(holder, Struct) or holder.cls is None:
            return False
        if isinstance(target, gast.Subscript):
            return self.dunder(holder, "__setitem__") is not None
        return hasattr(type(inspect.getattr_static(holder.cls, target.attr, None)), "__set__")

    def augmented(self, function, old, value, node, write, told=False):
        """old op= value: in place for what can be changed; `write` puts a new value where the old one was.

        told: what is changed in place is put there as well, since a method of the user's is given it
        """
        if isinstance(old, Struct):
            in_place = self.dunder(old, f"__i{OPERATORS[function]}__")
            if in_place is not None:
                return write(self.call_known(in_place, [old, value], {}, node))
            if self.changed_in_place(function, old, value, node):
                self.kept_within(old)
                return write(old) if told else None
        if isinstance(old, (Grown, Rows)) and function is operator.add:
            extend = self.grown_method if isinstance(old, Grown) else self.rows_method
            extend(old, "extend", [value], {}, node)
            return write(old) if told else None
        if is_array(old):
            self.can_write(old, node)
        result = self.binary(function, old, value, node)
        if is_array(old):
            self.check_augmented(old, value, result, node)
            result = self.as_stored(old, result)
        return None if self.changes_in_place(old, value, result, node) and not told else write(result)

    def changes_in_place(self, old, value, result, node):
        """x += v where other names or containers show x: each of them shows the result."""
        if not is_array(old):
            if self.may_be_cell(old) and (self.is_view(old) or self.shows_a_cell(old)):
                self.fail(LanguageError, f"{old.hint} may be an array without axes, which something else shows, or a "
                          "number", node, "Write x = x + v to make a new number.")
            self.one_cell_of(result, [old])
            return False
        if not self.has_alias(old):
            return False
        self.replace_all(old, result, node)
        return True

    def as_stored(self, old, result):
        """What x op= v leaves in x, in x's dtype."""
        fact = fact_of(result)
        if not isinstance(fact, Array) or np.dtype(fact.dtype) == np.dtype(old.fact.dtype):
            return result
        return self.build.cast(result, old.fact.dtype, old.hint)

    def augment_item(self, holder, node):
        """x[i] += v reads and writes one place; entries that an index array names twice are written once."""
        if not is_array(holder):
            self.refuse_write(node.target, holder)
        index, before = self.index(node.target.slice), holder
        with self.waiting([holder]) as held:
            value = self.settle(self.eval(node.value))
        holder = held[0]
        value = self.operand(self.array_of(value, node) if isinstance(value, Struct) else value)
        if holder is not before:            # a number was read before what is added has changed the array
            shown = self.item_of(before, index, node.target)
            old = self.item_of(holder, index, node.target) if is_array(shown) and self.is_view(shown) else shown
            return self.write(holder, index, self.operand(self.binary(BINARY[type(node.op)], old, value, node)),
                              node.target)
        basic = not any(is_array(p) for p in operands(index))
        if isinstance(node.op, gast.Add) and basic and isinstance(holder, Var) and \
                "biufc".index(fact_of(value).kind) <= "biufc".index(holder.fact.kind):
            return self.write(holder, index, value, node.target, put_add)
        if isinstance(node.op, gast.Sub) and basic and isinstance(holder, Var) and holder.fact.kind in "fc" and \
                "biufc".index(fact_of(value).kind) <= "biufc".index(holder.fact.kind) and fact_of(value).kind in "ifc":
            less = self.operand(self.operation(operator.neg, [value], node))
            return self.write(holder, index, less, node.target, put_add)
        old = self.item_of(holder, index, node.target)
        new = self.operand(self.binary(BINARY[type(node.op)], old, value, node))
        if "biufc".index(fact_of(new).kind) > "biufc".index(holder.fact.kind):
            self.fail(ShapeError, f"{self.spell(new)} cannot be written back into {self.spell(holder)}", node,
                      "Create it with a dtype that holds both.")
        return self.write(holder, index, new, node.target)

    def check_augmented(self, old, value, result, node):
        """x += v on an array is done in place: the dtype and shape stay x's."""
        fact, kinds = fact_of(value) if isinstance(value, (Var, Const)) else None, "biufc"
        fits = np.can_cast(np.dtype(fact_of(result).dtype), np.dtype(old.fact.dtype), "same_kind")
        wider = isinstance(fact, Array) and (kinds.index(fact.kind) > kinds.index(old.fact.kind) or
                                             fact.rank > old.fact.rank)
        if wider or not fits:
            self.fail(ShapeError, f"{spell(fact if wider else fact_of(result))} cannot be added to {spell(old.fact)} "
                      "in place", node, "Write x = x + v to make a new array.")

    def refuse_write(self, target, holder=None):
        if isinstance(holder, Grown):
            self.fail(LanguageError, "writing into a list whose length is known only when running", target,
                      "Make an array of it first: items = np.array(items).")
        if isinstance(target, gast.Subscript):
            self.fail(LanguageError, "only an array, a list or a dictionary is written into", target,
                      "Make a list of it: list(values).")
        if isinstance(target, gast.Attribute):
            self.fail(LanguageError, "writing an attribute is not differentiated yet", target,
                      "Keep the value in a variable.")
        self.fail(LanguageError, "this assignment is not in the accepted language", target)

    def assign(self, target, value):
        if isinstance(target, gast.Name):
            self.bind(target.id, value)
        elif isinstance(target, (gast.Tuple, gast.List)):
            self.unpack(target, value)
        elif isinstance(target, gast.Subscript):
            holder = self.settle(self.eval(target.value))
            if is_box(target.value):
                self.takes_name(target.value.id, value)
            self.assign_item(holder, self.index(target.slice), value, target)
        elif isinstance(target, gast.Attribute):
            self.assign_attribute(target, value)
        else:
            self.refuse_write(target)

    def assign_item(self, holder, index, value, target):
        method = self.dunder(holder, "__setitem__")
        if method is not None:
            self.call_known(method, [holder, self.as_given(index), value], {}, target)
        elif isinstance(holder, Var) and isinstance(holder.fact, Array):
            value = self.settle(value)
            value = self.array_of(value, target) if isinstance(value, Struct) else value
            self.write(holder, index, self.operand(value), target)
        elif isinstance(holder, Struct):
            self.put_element(holder, index, value, target)
        elif isinstance(holder, Grown):
            self.set_grown(holder, index, value, target)
        else:
            self.refuse_write(target, holder)

    def own(self, holder, node):
        """A container that came in as an argument is the caller's."""
        advice = f"Make a new one: {'{**items}' if holder.kind == 'dict' else '[*items]'}."
        if holder in self.lent:
            self.fail(LanguageError, f"changing {'an' if holder.kind == 'object' else 'a'} {holder.kind} that an "
                      "iterator shows", node,
                      f"{advice} Or make the iterator a list.")
        if holder in self.row_lists:
            self.fail(LanguageError, "changing a list that stands in a list of unknown length", node, advice)
        if holder.whole is not None and not self.apart:
            raise NeedsParts
        if holder.mark in self.given_marks:
            self.given_changed = self.given_changed or self.here(node)
        elif holder.whole is not None or holder.mark in self.callers:
            self.fail(LanguageError, "changing a container that is an argument is not differentiated yet", node, advice)
        if holder in self.outside:
            self.fail(
                LanguageError,
                "changing a container from outside the function cannot be undone in the backward sweep",
                node,
                advice,
            )

    def bind(self, name, value):
        """Name a value; one that the statement has just made takes the name."""
        self.takes_name(name, value)
        if isinstance(value, Walk) and value.static is not None:
            reads = value.reads
            value = self.iterator(value.static, *(s for s, _ in value.sources))
            value.cls = (value.cls[0], (*value.cls[1], *reads), value.cls[2])
        if isinstance(value, Struct) and value.kind == "iterator":
            self.lend(value.cls[0])
        self.frame.env[name] = value

    def takes_name(self, name, value):
        """What the statement has just made takes the name that it is given."""
        made = value.value if isinstance(value, Grown) else value
        if isinstance(made, Var) and made.kind == TEMPORARY and self.frame.plain and made in self.build.made:
            made.hint, made.kind = spoken(name), USER

    def unpack(self, target, value):
        elements, value = target.elts, self.gone_through(value, target)
        star = next((k for k, e in enumerate(elements) if isinstance(e, gast.Starred)), None)
        if isinstance(value, Var) and isinstance(value.fact, Array):
            value = Struct("tuple", self.rows(value, len(elements), star, target))
            elements, star = [e.value if k == star else e for k, e in enumerate(elements)], None
        if isinstance(value, Part) and isinstance(value.fact, Sequence):
            value = self.whole(value)
        if isinstance(value, (View, Walk, RangeValue)) or \
                isinstance(value, Const) and isinstance(value.value, (str, tuple)):
            value = Struct("tuple", self.listed(value, target))
        if not isinstance(value, Struct):
            self.fail(ShapeError, f"{self.spell(value)} cannot be unpacked", target)
        if value.kind == "iterator":
            value = Struct("tuple", self.drained(value, target))
        if value.kind == "dict":
            value = Struct("tuple", [Const(k) for k in value.keys])
        items = value.items
        if star is None and len(items) != len(elements) or star is not None and len(items) < len(elements) - 1:
            self.fail(ShapeError, f"{len(items)} values for {len(elements)} names", target)
        if star is not None:
            after = len(elements) - star - 1
            middle = Struct("list", items[star:len(items) - after])
            items = [*items[:star], middle, *items[len(items) - after:]]
            elements = [*elements[:star], elements[star].value, *elements[star + 1:]]
        elif (
            value.whole is not None
            and not self.unroll
            and all(isinstance(i, Part) and isinstance(i.fact, Array) for i in items)
            and all(isinstance(e, gast.Name) for e in elements)
            and value.kind != "record"
            and len(items) > 1          # of one it is an item
        ):
            whole = self.operand_of_part(value.whole)
            named = self.build.several(
                [e.id for e in elements], Apply(unpacked, (whole,)), [i.fact for i in items], USER
            )
            for k, (e, v) in enumerate(zip(elements, named)):
                self.frame.env[e.id] = v
                self.walked[v] = Apply(operator.getitem, (whole, Const(k)))     # an array of the container
            return
        with self.waiting([self.passed(i) for i in items]) as held:
            for k, e in enumerate(elements):
                self.assign(e, held[k])

    def rows(self, array, n, star, node):
        """The rows of an array, as unpacking into n names sees them: at a star it is the list of all that are left."""
        if not array.fact.dims:
            self.fail(ShapeError, "a scalar cannot be unpacked", node)
        length, least = array.fact.dims[0], n if star is None else n - 1
        size = length.size
        if size is not None and (size < least or star is None and size > least):
            self.fail(ShapeError, f"an array of {size} rows for {n} names", node)
        if size is None:
            self.raise_where(operator.ne if star is None else operator.lt, self.build.length(array, 0), least,
                             f"expected {'' if star is None else 'at least '}{least} values to unpack", node)
        if star is None:
            unify(length, Length(None, n))
            return [self.build.item(array, Const(k)) for k in range(n)]
        length.demand(least)
        after = n - 1 - star
        between = self.item_of(array, Const(slice(star or None, -after or None)), node)
        return [*(self.build.item(array, Const(k)) for k in range(star)), self.call(Const(list), [between], {}, node),
                *(self.build.item(array, Const(k - after)) for k in range(after))]

    def raise_where(self, compare, value, number, why, node):
        """if compare(value, number): raise ValueError(why), as Python does where values are unpacked."""
        def fails():
            self.effect(gast.parse(f"raise ValueError({why!r})").body[0])
            return RAISED
        test = self.truth(self.operation(compare, [value, Const(number)], node), node)
        self.branch(test, fails, lambda: None, node)


def holds(value, mark):
    """Whether a container is a value, or is in it."""
    inner = value.items if isinstance(value, Struct) else held_by(value)
    return getattr(value, "mark", None) is mark or any(holds(v, mark) for v in inner)
