# SPDX-License-Identifier: Apache-2.0
"""Inlining of rules: a part of a rule record, such as `partial_x`, and operands come in; its value comes out."""
import ast
import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Let, Pack, operands, substituted
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.rule import Rule, signature_of
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.inlining import inline_part
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.read import read

if TYPE_CHECKING:
    from gradscribe.ast_transform.passes.anf import Builder
    from gradscribe.ast_transform.reader.states import Reader

GROWING = {operator.mul, operator.pow, np.square}      # operations that may overflow 64-bit integers


@contextmanager
def derivative_of(build: "Builder", rule: Rule, name: str) -> Iterator[None]:
    """A context in which the origin of new statements names a part of a rule."""
    before = build.origin
    if before is not None:
        build.origin = before.by_rule(words_of(rule, name))
    try:
        yield
    finally:
        build.origin = before


@functools.cache
def words_of(rule, name):
    """A part of a rule as text: "np.tanh: partial_x = 1 - y * y"; only its name if it is more than a return."""
    text = f"{spelled(rule.function)}: {name}"
    tree = read(rule.parts[name]).tree if name in rule.parts else None
    body = tree.body if isinstance(tree, gast.FunctionDef) else [tree]
    if len(body) > 1 or not isinstance(body[0], gast.Return):
        return text
    return f"{text} = {ast.unparse(gast.gast_to_ast(body[0].value))}"


def read_derivative(reader: "Reader", rule: Rule, name: str, given: dict[str, Any]) -> Any:
    """The value of a derivative part; integer operands that might overflow in it are cast to a wider dtype.

    NumPy converts an int8 k in np.arctan2(k, x) to a float, but would compute the k * k of its derivative in 8 bits.
    """
    block, start = reader.build.block, len(reader.build.block)
    value = read_part(reader, rule, name, given)
    entries = rule.kind == "elementwise"        # others may be indices, which must stay integers
    wider = overflowing([v for a in given.values() for v in _variables(a)], block[start:], GROWING if entries else ())
    if not wider:
        return value
    del block[start:]
    env = {v: reader.build.cast(v, np.dtype(np.int64 if v.fact.dtype.itemsize < 8 else np.float64), v.hint)
           for v in wider}
    return read_part(reader, rule, name, {k: _replaced(a, env) for k, a in given.items()})


def overflowing(given, block, growing):
    """The integer operands of a part whose arithmetic may overflow.

    growing: the operations that may overflow even in 64 bits
    """
    source, found = {v: v for v in given if _is_whole(v.fact)}, {}
    for step in block if source else ():
        target = step.targets[0] if isinstance(step, Let) and isinstance(step.value, Apply) else None
        if target is None or not isinstance(target.fact, Array):
            continue
        function, rule = step.value.function, rule_of(step.value.function)
        read = [source[v] for v in operands(step.value) if v in source]
        if target.fact.dtype == np.float16 or _is_whole(target.fact) and _is_short(target.fact) and \
                rule is not None and rule.kind == "elementwise":
            found.update((v, None) for v in given if _is_whole(v.fact) and _is_short(v.fact))
        if _is_whole(target.fact) and function in growing:
            found.update((v, None) for v in read)
        elif _is_whole(target.fact) and read:
            source[target] = read[0]
    return list(found)


def _is_whole(fact):
    return isinstance(fact, Array) and not fact.weak and fact.kind in "iu"


def _is_short(fact):
    """Whether an integer dtype is so narrow that even sums, differences and negations may overflow."""
    return fact.dtype.itemsize < 8 or fact.kind == "u"


def _variables(value):
    if isinstance(value, (Struct, tuple)):
        for v in value.items if isinstance(value, Struct) else value:
            yield from _variables(v)
    else:
        yield from operands(value)


def _replaced(value, env):
    if isinstance(value, tuple):
        return tuple(_replaced(v, env) for v in value)
    return substituted(value, env)


def read_part(reader: "Reader", rule: Rule, name: str, given: dict[str, Any]) -> Any:
    """The value of a part of a rule; given: {parameter name: value}."""
    part = rule.parts[name]
    args, words = [], {}
    for p in signature_of(part).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [as_value(v) for v in given.get(p.name, ())]
            continue
        if p.name in given:
            value = as_value(given[p.name])
        elif p.default is not p.empty:
            value = dispatch.lift(reader, p.default, p.name)
        else:
            value = Const(rule.signature.parameters[p.name].default)
        if p.kind is p.KEYWORD_ONLY:
            words[p.name] = value
        else:
            args.append(value)
    return inline_part(reader, part, args, words)


def as_value(node):
    """An operand, or a tuple of them, as a value of the reader."""
    if isinstance(node, Pack):
        return Struct(node.kind, [as_value(i) for i in node.items], node.keys, node.cls)
    if isinstance(node, tuple):
        return Struct("tuple", [as_value(i) for i in node])
    return node
