# SPDX-License-Identifier: Apache-2.0
"""gs.custom_vjp and gs.custom_jvp inside a function that is being transformed, as closures over its variables.

The inner function and its rules become the first two arguments of a call, which are not differentiated; the rules
below, which the compiler gets, call them.

>>> import numpy as np, gradscribe as gs
>>> def f(x, limit):
...     @gs.custom_vjp
...     def clipped(x):
...         return x
...     clipped.defvjp(lambda x: (x, ()), lambda res, dy: (np.minimum(dy, limit),))
...     return 10.0 * clipped(x)
>>> float(gs.grad(f)(2.0, 3.0))
3.0
"""
import ast
import types
from collections.abc import Iterable
from typing import Any

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader.derivatives import call_custom
from gradscribe.ast_transform.reader.frames import here
from gradscribe.ast_transform.reader.operands import known_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Bound, Derived, FunctionValue, Struct
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.named import number_of


def value_of(fun, rules, *args):
    """The value of the function, for a call that is not differentiated."""
    return fun(*args)


def forward(fun, rules, *args):
    """The value and the residuals, from the user's fwd."""
    return rules[0](*args)


def backward(fun, rules, *args):
    """The adjoints of the arguments, from the user's bwd."""
    return rules[1](*args)


def tangent_by_argument(fun, rules, primals, tangents):
    """The value and the tangent, as the sum over the rules of the arguments."""
    y = fun(*primals)
    y_dot = 0.0
    for rule, x_dot in zip(rules, tangents):
        if rule is not None:
            y_dot = y_dot + rule(x_dot, y, *primals)
    return y, y_dot


RULES = {"defvjp": ("fwd", "bwd"), "defjvp": ("jvp",)}


class Inside:
    """A gs.custom_vjp or gs.custom_jvp object that the function makes; its inner functions are kept elsewhere."""

    def __init__(self, cls, label, nondiff):
        self.cls, self.nondiff, self.rule = cls, nondiff, None
        self.called = types.FunctionType(value_of.__code__, value_of.__globals__, label)
        self.methods = ("defvjp",) if cls.mode == "vjp" else ("defjvp", "defjvps")

    def read(self, reader, base, args, words):
        """Read a call of the object inside the function that makes it."""
        if self.rule is None:
            raise KindError(f"{self.called.__name__} has no rule yet", reader.build.origin,
                            "Call its defvjp(fwd, bwd)." if self.cls.mode == "vjp" else "Call its defjvp(rule).")
        return call_custom(
            reader, self.rule, self.called, [*base.args, *_placed(base.args[0], args, words, reader)], {}
        )

    def method(self, reader, value, name, args, words, node):
        """Set the rules, which `value` then holds beside the function."""
        label, names = self.called.__name__, RULES.get(name, ())
        if self.rule is not None:
            raise KindError(f"{label} is given a rule twice", here(reader, node), "Give it one rule.")
        given = {**dict(zip((*names, "symbolic_zeros", "optimize_remat"), args)), **words} if names else words
        symbolic = bool(known_value(reader, given.pop("symbolic_zeros", Const(False)), "symbolic_zeros", node))
        given.pop("optimize_remat", None)
        if set(given) != set(names):
            raise KindError(f"{name} of {label} is called with wrong arguments", here(reader, node),
                            f"Write {label}.{name}({', '.join(names or ('rule', '...'))}).")
        rules = [given[n] for n in names] if names else list(args)
        self.rule = self.cls(self.called, (0, 1, *(n + 2 for n in self.nondiff)))
        if name == "defvjp":
            self.rule.defvjp(forward, backward, symbolic)
        else:
            self.rule.defjvp(forward if names else tangent_by_argument, symbolic)
        value.base = Bound(value.base.function, [value.base.args[0], Struct("tuple", rules)], {})
        return rules[0] if name == "defjvp" else Const(None)


def _places(fun):
    """The names of the positional parameters of an inner function."""
    if not isinstance(fun, FunctionValue):
        return []
    return [a.id for a in [*fun.node.args.posonlyargs, *fun.node.args.args]]


def _placed(fun, args, words, reader):
    """Keyword arguments as positional ones."""
    if not words:
        return args
    names = _places(fun)
    defaults = dict(zip(names[len(names) - len(fun.defaults):], fun.defaults)) if names else {}
    out, rest = list(args), dict(words)
    for name in names[len(args):]:
        if rest and (name in rest or name in defaults):
            out.append(rest.pop(name) if name in rest else defaults[name])
    if rest:
        raise KindError(f"a function with a custom derivative takes positional arguments, and {next(iter(rest))} has "
                        "no place", reader.build.origin, "Give its parameter a place, or call it without it.")
    return out


def inside(cls: type[Any], reader: Reader, args: Iterable, words: dict[str, Any], node: ast.AST) -> Derived:
    """The value of cls(fun, nondiff_argnums, nondiff_argnames), called inside a function that is being transformed."""
    given = {**dict(zip(("fun", "nondiff_argnums", "nondiff_argnames"), args)), **words}
    if "fun" not in given or set(given) - {"fun", "nondiff_argnums", "nondiff_argnames"}:
        raise KindError(f"{cls.__name__} is called with wrong arguments", here(reader, node),
                        f"Write gs.{cls.__name__}(fun, nondiff_argnums=(...)).")
    fun = given.pop("fun")
    numbers, names = (known_value(reader, given.get(word, Const(())), word, node)
                      for word in ("nondiff_argnums", "nondiff_argnames"))
    numbers = {numbers} if isinstance(numbers, int) else set(numbers)
    plain, label = fun.value if isinstance(fun, Const) else None, "function"
    if isinstance(fun, FunctionValue):
        label = getattr(fun.node, "name", label)
    elif plain is not None:
        label = getattr(plain, "__name__", label)
    for name in [names] if isinstance(names, str) else names:
        places = _places(fun)
        if name not in places and plain is None:
            raise KindError(f"nondiff_argnames: {label} has no positional parameter {name!r}", here(reader, node),
                            f"Its parameters are {', '.join(places) or 'none'}.")
        numbers.add(number_of(plain, name, "nondiff_argnames") if plain is not None else places.index(name))
    return Derived(Inside(cls, label, tuple(sorted(numbers))), Bound(Const(value_of), [fun], {}))
