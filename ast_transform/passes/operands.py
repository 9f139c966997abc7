# SPDX-License-Identifier: Apache-2.0
"""Values of the reader as operands of the normal form, and what is known of them now."""
import operator

import numpy as np

from gradscribe.ast_transform.core.children import name_of
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Sequence, spell, with_article
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import (
    SPELLED,
    Bound,
    Conflict,
    FunctionValue,
    Grown,
    Method,
    Part,
    RangeValue,
    Rows,
    Struct,
    View,
    Walk,
)
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError


class Operands:
    def settle(self, value):
        """Read a part that is an array; containers stay apart."""
        if isinstance(value, Part):
            return self.whole(value) if isinstance(value.fact, Sequence) else self.operand_of_part(value)
        if isinstance(value, View):
            return self.viewed(value)
        if isinstance(value, Conflict):         # a write in the same expression has left it one
            self.write_out(value, None)
            self.fail(ShapeError, f"what is read here is {value.reason}", None, value.advice)
        return value

    def passed(self, value):
        """A value on its way to a name, where a view stays one."""
        return value if isinstance(value, View) else self.settle(value)

    def operand_of_part(self, part):
        if not isinstance(part, Part):
            return part
        parent = self.operand_of_part(part.parent)
        if isinstance(part.fact, Sequence) and part.parent.fact.kind == "record" or \
                isinstance(part.parent.fact, Sequence) and part.parent.fact.kind == "record":
            value = Apply(getattr, (parent, part.key))
        else:
            value = Apply(operator.getitem, (parent, part.key))
        hint = str(part.key.value) if isinstance(part.key.value, str) else parent.hint
        return self.build.let(hint if hint.isidentifier() else "item", value, part.fact)

    def operand(self, value):
        """A value as an operand of the normal form."""
        value = self.settle(value) if not (isinstance(value, Part) and isinstance(value.fact, Sequence)) else value
        if isinstance(value, (Var, Const, Pack, Slice)):
            return value
        self.certain(value, None)
        if isinstance(value, Part):
            return self.operand_of_part(value)
        if isinstance(value, Struct):
            if value.whole is not None and value.version == 0:
                return self.operand_of_part(value.whole)
            return self.packed(value)
        if isinstance(value, Rows):
            self.fail(LanguageError, "a list of tuples whose length is known only when running is no value here", None,
                      "Take it apart first: a, b = zip(*rows); or keep several lists.")
        if isinstance(value, Grown):
            self.fail(LanguageError, "a list whose length is known only when running is no value here", None,
                      "Make an array of it: np.array(items).")
        if isinstance(value, (FunctionValue, Method, Bound, RangeValue, Walk)):
            self.fail(LanguageError, f"{self.spell(value)} is not a value here", None,
                      "Call it, or make a list of it.")
        return Const(value)

    def must_be_plain(self, value, node):
        """Emitted code is given lists, tuples, dictionaries and records; it makes no iterators and no subclasses."""
        if isinstance(value, Struct):
            if value.kind == "object":
                self.fail(LanguageError, f"an object of class {value.cls.__name__} is no value that can be returned or "
                          "handed on", node, "Use its attributes; named tuples and dataclasses can be returned.")
            if value.kind == "iterator" or value.kind != "record" and value.cls is not None:
                self.fail(LanguageError, f"{self.spell(value)} is not a value here", node,
                          "Make a list or a dict of it.")
            for item in value.items:
                self.must_be_plain(item, node)

    def packed(self, value):
        self.must_be_plain(value, None)
        return Pack(value.kind, tuple(self.operand(i) for i in value.items), value.keys, value.cls)

    def static(self, value, what, node):
        """A value that must be known when transforming; an argument that is not is asked for."""
        try:
            return self.python(value, node)
        except LanguageError as error:
            variable = getattr(error, "variable", None)
            if variable is None:
                raise
        self.demand(variable, what, node)

    def demand(self, var, what, node):
        raise Demand(
            var, f"{what} must be known when transforming", self.here(node) if self.frame.plain else self.build.origin
        )

    def python(self, value, node):
        value = self.settle(value)
        if isinstance(value, Const):
            return value.value
        if isinstance(value, (Struct, Pack)) and value.kind in ("tuple", "list"):
            return (tuple if value.kind == "tuple" else list)(self.python(i, node) for i in value.items)
        if isinstance(value, Struct) and value.kind == "dict":
            return dict(zip(value.keys, (self.python(i, node) for i in value.items)))
        if isinstance(value, Slice):
            return slice(*(None if p is None else self.python(p, node) for p in (value.start, value.stop, value.step)))
        if isinstance(value, Var):
            n = value.fact.length.normal() if isinstance(value.fact, Array) and value.fact.length is not None else None
            if n is not None and n.symbol is None:
                return n.offset
            known = self.entry_from_outside(value)
            if known is not None:
                array, place, entry = known
                self.kind_guards.append(lambda: array[place] == entry)
                return entry
            error = LanguageError("this depends on a value that is not known when transforming",
                                  self.here(node) if node is not None and self.frame.plain else self.build.origin,
                                  "Use a literal, or an operation on arrays.")
            error.variable = value
            raise error
        self.fail(LanguageError, f"{self.spell(value)} is no value that is known when transforming", node,
                  "Use a literal, or an operation on arrays.")

    def entry_from_outside(self, value):
        """(array, place, value) of an entry of an array of integers from outside; what needs it known holds to it."""
        made = self.build.made.get(value) if isinstance(value, Var) else None
        if not is_application(made, operator.getitem) or not isinstance(made.args[1], Const):
            return None
        array = next((array for var, array in self.captured.values() if var is made.args[0]), None)
        if array is None or array.dtype.kind not in "iu":
            return None
        entry = array[made.args[1].value]
        return (array, made.args[1].value, int(entry)) if np.ndim(entry) == 0 else None

    def spell(self, value):
        if isinstance(value, Struct):
            kind = name_of(value.cls) if isinstance(value.cls, type) else value.kind
            return f"an object of class {kind}" if value.kind == "object" else \
                f"{with_article(kind)} of {len(value.items)}"
        if isinstance(value, (Var, Const)):
            return spell(fact_of(value))
        return SPELLED.get(type(value)) or with_article(type(value).__name__)
