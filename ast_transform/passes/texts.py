# SPDX-License-Identifier: Apache-2.0
"""Texts, and other values that Python computes now from what is known.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    return {'a_1': x}[f'a_{1}'] * 2"
>>> print(show(form(text, 1.0)))
f(x):
    t = x * 2
    return t
"""
import gast

from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array, Opaque
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.passes.values import RangeValue, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


class Texts:
    def eval_JoinedStr(self, node):
        self.refuse_drawing_text(node)
        known = self.text_now(node)
        if known is not None:
            return Const(known)
        names = list(
            dict.fromkeys(n.id for n in gast.walk(node) if isinstance(n, gast.Name) and self.in_scope(n.id) is not None)
        )
        operands = tuple(self.operand(self.read_name(n)) for n in names)
        return self.build.let(
            "text", Apply(Quoted(node, tuple(names), self.frame.source.scope.lookup), operands), Opaque(str)
        )

    def text_now(self, node):
        """An f-string whose parts are all known; None for another one, which then has done nothing."""
        before, held, writes = self.snapshot(), list(self.build.block), self.writes
        try:
            return self.formatted(node)
        except LanguageError:
            self.restore(before)
            self.build.block[:] = held
            if self.writes != writes:
                self.fail(LanguageError, "a text that is made when running changes a container", node,
                          "Change it in a statement of its own.")
            return None

    def formatted(self, node):
        if isinstance(node, gast.Constant):
            return node.value
        if isinstance(node, gast.JoinedStr):
            return "".join(self.formatted(part) for part in node.values)
        value = self.eval(node.value)
        if isinstance(value, Const):
            self.stays_as_it_is(value, str)
        value = self.python(value, node)
        value = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}[node.conversion](value)
        spec = "" if node.format_spec is None else self.formatted(node.format_spec)
        return self.tried(format, value, spec, node=node)

    def call_now(self, function, args, words, node):
        """A function of texts and numbers that are known now."""
        given = [self.known_part(a, function, node) for a in args]
        named = {k: self.known_part(v, function, node) for k, v in words.items()}
        for part in [*args, *words.values()]:
            if isinstance(part, Const):
                self.stays_as_it_is(part, lambda _: function(*given, **named))
        made = self.tried(lambda: function(*given, **named), node=node)
        return self.lift(made, "item") if not isinstance(made, (list, tuple)) else self.unlifted(made)

    def found_in(self, held, key, default=None):
        """held.get(key, default) of a dict from outside whose keys are classes, dtypes and the like."""
        key = self.hashed(key, None)
        return self.lift(held[key], "item") if key in held else Const(None) if default is None else default

    def known_part(self, value, function, node):
        if isinstance(value, RangeValue):
            return range(*(self.python(p, node) for p in (value.start, value.stop, value.step)))
        value = self.settle(value)
        if isinstance(value, Struct) and value.kind == "iterator":
            value = Struct("list", self.drained(value, node))
        try:
            return self.python(value, node)
        except LanguageError as error:
            number = getattr(error, "variable", None)
            whole = isinstance(number, Var) and isinstance(number.fact, Array) and number.fact.kind in "biu"
            if whole and not number.fact.dims:
                self.demand(number, f"what {function.__name__} takes", node)
            self.fail(LanguageError, f"{function.__name__} takes what is known when transforming", node,
                      "Print with print, or make the text of literals.")

    def unlifted(self, made):
        """Lists that a call has just made belong to the function."""
        if isinstance(made, (list, tuple)):
            return Struct("list" if isinstance(made, list) else "tuple", [self.unlifted(m) for m in made])
        return Const(made)
