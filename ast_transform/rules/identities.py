# SPDX-License-Identifier: Apache-2.0
"""Algebraic identities, one line each, for the simplification of emitted source and compiled code.

A line is `left = right`, in Python; a one-letter name matches any operand, the same one at each occurrence, a number
itself.  A suffix restricts the operands: `for floats` (and complex numbers), `for matrices`.  Without one the identity
holds for all numbers, to the last bit except for the signs of zeros and NaNs.

All lines are applied, in this order, where derivatives are built (passes/anf.py); so signs move outward, where another
line may match them.  Lines with fewer operations on the right are also applied to generated statements
(passes/peephole.py) and to compiled loops (codegen/loops/peephole.py).  A quotient of two functions is also matched
among the factors of a product (passes/algebra.py).  Such an identity holds where the primal is defined: log(det(a)) is
not defined where det(a) is 0.
"""
import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.runtime.matrices import cofactors

TEXTS = """
    -(-a) = a
    (-a) * (-b) = a * b
    (-a) * b = -(a * b)
    a * (-b) = -(a * b)
    (-a) / (-b) = a / b  for floats
    (-a) / b = -(a / b)
    a + (-b) = a - b
    (-a) + b = b - a
    a - (-b) = a + b
    np.where(c, a, 0) + np.where(c, 0, b) = np.where(c, a, b)
    np.where(c, 0, a) + np.where(c, b, 0) = np.where(c, b, a)
    np.abs(-a) = np.abs(a)  for floats
    np.abs(np.abs(a)) = np.abs(a)
    np.square(-a) = np.square(a)
    np.conj(np.conj(a)) = a
    np.transpose(np.transpose(a)) = a
    cofactors(a) / np.linalg.det(a) = np.linalg.inv(a).T  for matrices
"""
OPERATORS = {ast.USub: operator.neg, ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv, ast.Pow: operator.pow, ast.MatMult: operator.matmul}


class Pattern(NamedTuple):
    """A call of a function; each operand is a pattern, a name or a number."""
    function: Any
    args: tuple


class Identity(NamedTuple):
    """`left` and `right` are patterns or names; words: the restriction on operands."""
    left: Pattern
    right: Pattern | str
    words: str
    text: str

    @property
    def is_shorter(self) -> bool:
        """Whether the right side has fewer operations."""
        return size(self.right) < size(self.left)

    @property
    def is_of_factors(self) -> bool:
        """Whether its left side is a quotient of two function calls."""
        return self.left.function is operator.truediv and all(
            isinstance(side, Pattern) and side.function is not operator.neg for side in self.left.args)

    def holds_for(self, kind: str, rank: int) -> bool:
        """Whether it holds for operands of this kind of numbers and this rank."""
        return {"": True, "floats": kind in "fc", "matrices": rank == 2}[self.words]


def read(text: str) -> Identity:
    """The identity of a line: `left = right` with an optional suffix.

    >>> read("(-a) * (-b) = a * b  for floats")[1:3]
    (Pattern(function=<built-in function mul>, args=('a', 'b')), 'floats')
    """
    formula, _, words = text.partition("  for ")
    left, right = (pattern(ast.parse(side.strip(), mode="eval").body) for side in formula.split(" = "))
    return Identity(left, right, words, formula)


def pattern(node: Any) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return Pattern(np.transpose, (pattern(node.value),))
    if isinstance(node, ast.UnaryOp):
        return Pattern(OPERATORS[type(node.op)], (pattern(node.operand),))
    if isinstance(node, ast.BinOp):
        return Pattern(OPERATORS[type(node.op)], (pattern(node.left), pattern(node.right)))
    function = eval(ast.unparse(node.func), {"np": np, "cofactors": cofactors})
    return Pattern(function, tuple(map(pattern, node.args)))


def size(part: Pattern | str | int) -> int:
    """The number of operations on a side of an identity."""
    return 1 + sum(map(size, part.args)) if isinstance(part, Pattern) else 0


def bindings(part: Pattern | str | int, node: Any, taken_apart: Callable[[Any, Any], Iterable | None], bound: dict,
             same: Callable[[Any, Any], bool] = operator.is_) -> dict | None:
    """The operands that match the names of a pattern in a value; None if the value does not match.

    taken_apart(node, function): the operands of a value if it is a call of the function, or None; same: whether two
    operands are the same.
    """
    if isinstance(part, str):
        return bound if same(bound.setdefault(part, node), node) else None
    if isinstance(part, int):
        number = getattr(node, "value", None)
        return bound if type(number) in (int, float) and number == part else None
    args = taken_apart(node, part.function)
    if args is None or len(args := tuple(args)) != len(part.args):
        return None
    for inner, arg in zip(part.args, args):
        if bindings(inner, arg, taken_apart, bound, same) is None:
            return None
    return bound


def written(part: Pattern | str | int, bound: dict, make: Callable[..., Any]) -> Any:
    """A side of an identity with values for its names; make(function, *operands) makes a call."""
    if isinstance(part, Pattern):
        return make(part.function, *[written(inner, bound, make) for inner in part.args])
    return bound[part] if isinstance(part, str) else part


def identities_of(function: Any) -> Iterator[Identity]:
    """The identities whose left side is a call of a function, or of the alias of it that is in the table."""
    return (i for i in IDENTITIES if i.left.function is function)


IDENTITIES = [read(line.strip()) for line in TEXTS.strip().splitlines()]
