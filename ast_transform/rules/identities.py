# SPDX-License-Identifier: Apache-2.0
"""Identities of factors: what a factor above the line and one below it are together.  One line each.

`a` stands for any matrix.  An identity holds where the primal is defined: log(det(a)) is not where det(a) is 0.
"""
import ast
import operator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.runtime.matrices import cofactors

TEXTS = """
    cofactors(a) / np.linalg.det(a) = np.linalg.inv(a).T
"""


class Pattern(NamedTuple):
    """A function of operands, each a pattern or the name of what is matched."""
    function: Any
    args: tuple


class Identity(NamedTuple):
    above: Pattern
    below: Pattern
    result: Pattern
    text: str


def read(text: str) -> Identity:
    """An identity that is written as `above / below = result`.

    >>> read("cofactors(a) / np.linalg.det(a) = np.linalg.inv(a).T").result.function.__name__
    'transpose'
    """
    left, right = text.split(" = ")
    quotient: Any = ast.parse(left, mode="eval").body
    return Identity(pattern(quotient.left), pattern(quotient.right), pattern(ast.parse(right, mode="eval").body),
                    text)


def pattern(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return Pattern(np.transpose, (pattern(node.value),))
    function = eval(ast.unparse(node.func), {"np": np, "operator": operator, "cofactors": cofactors})
    return Pattern(function, tuple(map(pattern, node.args)))


IDENTITIES = [read(line.strip()) for line in TEXTS.strip().splitlines()]
