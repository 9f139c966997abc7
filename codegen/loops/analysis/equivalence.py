# SPDX-License-Identifier: Apache-2.0
"""Loop nests that are equal but for their names: alpha-equivalence.

Source: H. P. Barendregt, The Lambda Calculus, 1984, section 2.1, of terms; here of statements, whose free names are
numbered with the bound ones, in the order of the text.
"""
from collections.abc import Iterator
from typing import NamedTuple

from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.form import Expr, Length, Name, Statement

SET = "name", "index"                   # fields of statements that are names
ASIDE = "origin", "line"                # fields to ignore: where a statement comes from


class Shape(NamedTuple):
    """key: equal for statements that are equal but for their names; names: in the order of the text."""
    key: tuple
    names: tuple


def shape_of(block: list) -> Shape:
    """The shape of a sequence of statements, nested ones included.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import from_tree
    >>> tree = ast.parse('''def f(x, y):
    ...     for i in range(x.shape[0]):
    ...         x[i] = 2 * y[i]
    ...     for k in range(y.shape[0]):
    ...         y[k] = 2 * x[k]
    ...     for k in range(y.shape[0]):
    ...         y[k] = 2 * y[k]''')
    >>> one, other, third = (shape_of([s]) for s in from_tree(tree.body[0], {}).block)
    >>> one.names, other.names, one.key == other.key, one.key == third.key
    (('i', 'x', 'y'), ('k', 'y', 'x'), True, False)
    """
    numbers: dict = {}

    def number(name):
        return numbers.setdefault(name, len(numbers))

    def of(part):
        if isinstance(part, Name):
            return Name, number(part.id)
        if isinstance(part, Length):
            return Length, number(part.array), part.axis
        if isinstance(part, Expr):
            return type(part), *map(of, part.key())
        if isinstance(part, Statement):
            return type(part), *[number(value) if field in SET else of(value) for field in part.__match_args__
                                 if field not in ASIDE for value in [getattr(part, field)]]
        return tuple(map(of, part)) if isinstance(part, (list, tuple)) else part
    key = of(block)
    return Shape(key, tuple(numbers))


def parts_in_order(block: list) -> Iterator[Expr]:
    """The expressions of statements, nested ones included, in the same order for all of one shape."""
    for inner in form.statements(block):
        for e in form.expressions(inner):
            yield from form.walk(e)
