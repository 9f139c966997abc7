# SPDX-License-Identifier: Apache-2.0
"""Rules' parts read with operands for their parameters."""
import inspect

from gradscribe.ast_transform.core.form import Const, Pack
from gradscribe.ast_transform.passes.values import Struct


def read_part(reader, rule, name, given):
    """The value that a part of a rule gives; `given` holds values by parameter name."""
    part = rule.parts[name]
    args, words = [], {}
    for p in inspect.signature(part).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [as_value(v) for v in given.get(p.name, ())]
            continue
        if p.name in given:
            value = as_value(given[p.name])
        elif p.default is not p.empty:
            value = reader.lift(p.default, p.name)
        else:
            value = Const(rule.signature.parameters[p.name].default)
        if p.kind is p.KEYWORD_ONLY:
            words[p.name] = value
        else:
            args.append(value)
    return reader.inline_part(part, args, words)


def as_value(node):
    """An operand, or a tuple of them, as a value of the reader."""
    if isinstance(node, Pack):
        return Struct(node.kind, [as_value(i) for i in node.items], node.keys, node.cls)
    if isinstance(node, tuple):
        return Struct("tuple", [as_value(i) for i in node])
    return node
