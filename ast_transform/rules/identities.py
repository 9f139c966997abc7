# SPDX-License-Identifier: Apache-2.0
"""Identities of expressions, one line each, for emitted source and for compiled code.

A line is `left = right`, in Python; a name of one letter is any operand, the same one wherever it stands.  Words after
it say of what operands it holds: `for floats` (and complex numbers), `for matrices`.  Without words it holds for all
numbers, to the last bit but for the sign of a zero and of a NaN.

Where derivatives are built, each line is applied, in this order (passes/anf.py); so signs move outward, where another
line may meet them.  Lines with fewer operations on the right are applied to generated statements (passes/peephole.py)
and to the loops that are compiled (codegen/loops/peephole.py).  A quotient of two functions is also found among the
factors of a product (passes/algebra.py).  Such an identity holds where the primal is defined: log(det(a)) is not where
det(a) is 0.
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
    """A function of operands, each a pattern or the name of what is matched."""
    function: Any
    args: tuple


class Identity(NamedTuple):
    """`left` and `right` are patterns, or names; words: of what operands it holds."""
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
        """Whether it is of a factor above the line and one below it, each a function of others."""
        return self.left.function is operator.truediv and all(
            isinstance(side, Pattern) and side.function is not operator.neg for side in self.left.args)

    def holds_for(self, kind: str, rank: int) -> bool:
        """Whether it holds for operands of a kind of numbers and a rank."""
        return {"": True, "floats": kind in "fc", "matrices": rank == 2}[self.words]


def read(text: str) -> Identity:
    """An identity that is written as `left = right`, with words after it.

    >>> read("(-a) * (-b) = a * b  for floats")[1:3]
    (Pattern(function=<built-in function mul>, args=('a', 'b')), 'floats')
    """
    formula, _, words = text.partition("  for ")
    left, right = (pattern(ast.parse(side.strip(), mode="eval").body) for side in formula.split(" = "))
    return Identity(left, right, words, formula)


def pattern(node: Any) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return Pattern(np.transpose, (pattern(node.value),))
    if isinstance(node, ast.UnaryOp):
        return Pattern(OPERATORS[type(node.op)], (pattern(node.operand),))
    if isinstance(node, ast.BinOp):
        return Pattern(OPERATORS[type(node.op)], (pattern(node.left), pattern(node.right)))
    function = eval(ast.unparse(node.func), {"np": np, "cofactors": cofactors})
    return Pattern(function, tuple(map(pattern, node.args)))


def size(part: Pattern | str) -> int:
    """How many operations a side of an identity has."""
    return 0 if isinstance(part, str) else 1 + sum(map(size, part.args))


def bindings(part: Pattern | str, node: Any, taken_apart: Callable[[Any, Any], Iterable | None], bound: dict,
             same: Callable[[Any, Any], bool] = operator.is_) -> dict | None:
    """What the names of a pattern are in a value; None where it is another one.

    taken_apart(node, function): the operands of a value that is a call of the function, or None; same: whether two
    operands are one.
    """
    if isinstance(part, str):
        return bound if same(bound.setdefault(part, node), node) else None
    args = taken_apart(node, part.function)
    if args is None or len(args := tuple(args)) != len(part.args):
        return None
    for inner, arg in zip(part.args, args):
        if bindings(inner, arg, taken_apart, bound, same) is None:
            return None
    return bound


def written(part: Pattern | str, bound: dict, make: Callable[..., Any]) -> Any:
    """A side of an identity, with values for its names; make(function, *operands) makes a call."""
    return bound[part] if isinstance(part, str) else make(
        part.function, *[written(inner, bound, make) for inner in part.args])


def identities_of(function: Any) -> Iterator[Identity]:
    """Those whose left side is a call of a function; of its aliases, one is in the table."""
    return (i for i in IDENTITIES if i.left.function is function)


IDENTITIES = [read(line.strip()) for line in TEXTS.strip().splitlines()]
