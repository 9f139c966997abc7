# SPDX-License-Identifier: Apache-2.0
"""Templates for pieces of the loop form: text with holes, which is parsed once and filled with nodes.

>>> quoted("max({n} - {}, 0)", 2, n="rows")
Call(function='max', args=(Op(op='-', args=(Name(id='rows'), Const(value=2))), Const(value=0)), keywords=())
>>> quoted("{}[{*}] {} 1", "x", ["i", "j"], "<")
Compare(ops=('<',), items=(Load(array=Name(id='x'), index=(Name(id='i'), Name(id='j'))), Const(value=1)))
>>> statement("{} = np.zeros({}, {})", "z", ["n"], float)
Alloc(name='z', how='zeros', shape=(Name(id='n'),), rest=(Attribute(owner=Name(id='np'), name='float64'),), \
origin=None, line=0)

A hole {} takes the next positional argument, {name} the keyword argument of that name; {*} and {*name} splice several
arguments, or parts of an index or a tuple.  An argument may be a node, a name (also of a function or an attribute), a
number, a dtype, a tuple of these, or the sign of an operation, a comparison or an assignment (=, +=).  A template is a
literal: what varies goes into holes, never into the text, since parsed templates are cached.
"""
import ast
import functools
import re
import string
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Call,
    Const,
    Expr,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Statement,
    Store,
    Unpack,
    Update,
    blocks,
)
from gradscribe.codegen.loops.trees import MADE, SIGNS, block_of, read

SIGNS_TO_READ = {"=", *SIGNS, *(f"{sign}=" for sign in SIGNS)}         # they are filled in before a template is parsed
HOLE = re.compile(r"_hole_(\d+)_")
ZERO = Const(0)


def quoted(template: str, *given: Any, **named: Any) -> Expr:
    """The expression of a template."""
    return _filled(template, False, given, named)


def statement(template: str, *given: Any, **named: Any) -> Statement:
    """The statement of a template; one that ends in a colon gets an empty block."""
    return _filled(template, True, given, named)


def node(value: Any) -> Expr:
    """The expression for an argument of a template."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        head, *rest = value.split(".")
        owner: Any = Name(head)
        return functools.reduce(Attribute, rest, owner)
    if isinstance(value, (tuple, list)):
        return Items(tuple(map(node, value)))
    if isinstance(value, (np.dtype, type)):
        name = np.dtype(value).name
        return Attribute(Name("np"), "bool_" if name == "bool" else name)
    value = value.item() if isinstance(value, np.generic) else value
    return Op("neg", (Const(-value),)) if repr(value).startswith("-") else Const(value)


def entry(array: Any, *index: Any) -> Load:
    """array[index, ...]"""
    return Load(node(array), tuple(map(node, index)))


def joined(sign: str, parts: Iterable[Any]) -> Expr:
    """Several expressions joined by an operation."""
    first, *rest = map(node, parts)
    if not rest:
        return first
    return Logic(sign, (first, *rest)) if sign in ("and", "or") else functools.reduce(
        lambda left, right: Op(sign, (left, right)), rest, first)


def let(target: Any, value: Expr) -> Statement:
    """target = value; the target is a name, an entry, or a tuple of these."""
    target = node(target)
    if isinstance(target, Load):
        return Store(target, value)
    if isinstance(target, Items):
        return Unpack(target, value)
    call: Any = value
    how = MADE.get(call.function) if isinstance(value, Call) and not value.keywords else None
    if how is not None and call.args and isinstance(call.args[0], Items):
        return Alloc(target.id, how, call.args[0].items, call.args[1:])
    return Let(target.id, value)


# --- templates --------------------------------------------------------------------------------------------------------

def _filled(template, is_statement, given, named):
    signs = tuple([(k, v) for k, v in (*enumerate(given), *named.items()) if type(v) is str and v in SIGNS_TO_READ])
    make, names = _template(template, is_statement, len(given), signs)
    return make([*given, *[named[name] for name in names]])


@functools.cache
def _template(template, is_statement, count, signs):
    """(a function from the arguments to the template's node, the names of the holes that have one)."""
    text, names, several, order, signs = "", [], set(), iter(range(count)), dict(signs)
    for words, field, _, _ in string.Formatter().parse(template):
        text += words
        if field is None:
            continue
        word = field.removeprefix("*")
        known = word if word and not word.isdigit() else int(word or next(order))
        if known in signs:
            text += signs[known]
            continue
        if known is word and word not in names:
            names.append(word)
        number = count + names.index(word) if known is word else known
        if word is not field:
            several.add(number)
        text += f"_hole_{number}_"
    if not is_statement:
        return _maker(read(ast.parse(text, mode="eval").body), several), names
    (made,) = block_of(f"{text} pass" if text.endswith(":") else text)
    for block in blocks(made):
        block.clear()
    return _maker(made, several), names


def _maker(part, several):
    """A function from the arguments to a part of a template: an expression, a statement, a tuple, a word."""
    if isinstance(part, str):
        return _word(part)
    if isinstance(part, list):
        return lambda given: []
    if isinstance(part, tuple):
        makers = [_maker(p, several) for p in part]
        many = [isinstance(p, Name) and (m := HOLE.fullmatch(p.id)) is not None and int(m[1]) in several for p in part]
        if not any(many):
            return lambda given: tuple([make(given) for make in makers])
        return lambda given: tuple([
            e for make, splat in zip(makers, many) for e in (make(given).items if splat else (make(given),))])
    if isinstance(part, Name) and (hole := HOLE.fullmatch(part.id)):
        number = int(hole[1])
        return lambda given: node(given[number])
    if not isinstance(part, (Expr, Statement)) or isinstance(part, Expr) and "_hole_" not in repr(part):
        return lambda given: part
    makers = [_maker(getattr(part, name), several) for name in part.__match_args__]
    kind = FINISHED.get(type(part), type(part))
    return lambda given: kind(*[make(given) for make in makers])


def _word(word):
    """A function from the arguments to a word: the name of a function, an attribute, or a variable."""
    before, *hole = HOLE.split(word)
    if not hole:
        return lambda given: word
    number, after = int(hole[0]), hole[1]
    if before or after:
        return lambda given: f"{before}{given[number]}{after}"
    return lambda given: getattr(given[number], "id", given[number])


def _load(array, index):
    """A Load, or a Length where it is array.shape[axis]."""
    if isinstance(array, Attribute) and array.name == "shape" and isinstance(array.owner, Name) and \
            isinstance(index[0], Const):
        return Length(array.owner.id, index[0].value)
    return Load(array, index)


FINISHED = {
    Load: _load,
    Length: lambda array, axis: Length(array, axis) if isinstance(array, str) else entry(
        Attribute(array, "shape"), axis),
    Let: lambda name, value, *_: let(name, value),
    Alloc: lambda name, how, shape, rest, *_: let(name, Call(f"np.{how}", (Items(shape), *rest))),
    Update: lambda target, op, value, *_: Store(target, value, op) if isinstance(target, Load) else Update(
        cast(str, getattr(target, "id", target)), op, value),
}
