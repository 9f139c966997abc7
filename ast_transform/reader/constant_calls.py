# SPDX-License-Identifier: Apache-2.0
"""Constant folding of calls: a Python function whose arguments are all known comes in, and its result comes out."""
from collections.abc import Callable
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.reader.comparisons import hashed
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.frames import fail, tried
from gradscribe.ast_transform.reader.iteration import NOW
from gradscribe.ast_transform.reader.iterators import remaining_elements
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.objects import guard_object
from gradscribe.ast_transform.reader.operands import demand, python_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import RangeValue, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


@late
def call_now(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """Call a function of strings and numbers that are known while reading."""
    given = [known_part(reader, a, function, node) for a in args]
    named = {k: known_part(reader, v, function, node) for k, v in words.items()}
    for part in [*args, *words.values()]:
        if isinstance(part, Const):
            guard_object(reader, part, lambda _: function(*given, **named))
    made = tried(reader, lambda: function(*given, **named), node=node)
    return lift(reader, made, "item") if not isinstance(made, (list, tuple)) else as_own_value(reader, made)


def found_in(reader: Reader, held: Any, key: Any, default: Any = None) -> Any:
    """held.get(key, default) for a captured dict whose keys are classes, dtypes and the like."""
    key = hashed(reader, key, None)
    return lift(reader, held[key], "item") if key in held else Const(None) if default is None else default


@late
def known_part(reader: Reader, value, function, node):
    if isinstance(value, RangeValue):
        return range(*(python_value(reader, p, node) for p in (value.start, value.stop, value.step)))
    value = settle(reader, value)
    if isinstance(value, Struct) and value.kind == "iterator":
        value = Struct("list", remaining_elements(reader, value, node))
    try:
        return python_value(reader, value, node)
    except LanguageError as error:
        number: Any = getattr(error, "variable", None)
        whole = isinstance(number, Var) and isinstance(number.fact, Array) and number.fact.kind in "biu"
        if whole and not number.fact.dims:
            demand(reader, number, f"what {function.__name__} takes", node)
        fail(reader, LanguageError, f"{function.__name__} takes what is known when transforming", node,
             "Print with print, or make the text of literals.")


def as_own_value(reader: Reader, made):
    """A value that a call has just made; lists in it belong to the function, not to the caller."""
    if isinstance(made, (list, tuple)):
        return Struct("list" if isinstance(made, list) else "tuple", [as_own_value(reader, m) for m in made])
    return Const(made)


SPECIAL.update({
    **dict.fromkeys(NOW, call_now),
})
