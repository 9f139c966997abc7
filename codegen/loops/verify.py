# SPDX-License-Identifier: Apache-2.0
"""The verifier of the loop form: names that are read are set somewhere and typed, and indices fit their arrays.

>>> from gradscribe.codegen.loops.form import Type
>>> from gradscribe.codegen.loops.trees import block_of
>>> verify(Function("f", ["x"], {"x": Type("float64", 2), "y": Type("float64", 0)}, block_of("y = x[0, 1, 2]")), "it")
Traceback (most recent call last):
gradscribe.codegen.loops.verify.WrongForm: after it, f reads x[0, 1, 2], and x has 2 axes
>>> verify(Function("f", ["x"], {"x": Type("float64", 1)}, block_of("return y")), "it")
Traceback (most recent call last):
gradscribe.codegen.loops.verify.WrongForm: after it, f reads y, which nothing sets
"""
import ast

from gradscribe.codegen.loops.form import (
    Break,
    Continue,
    For,
    Function,
    Load,
    Name,
    Raise,
    Slice,
    Update,
    While,
    blocks,
    expressions,
    names_of,
    set_by,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.trees import written
from gradscribe.codegen.loops.types import type_of

MODULES = {"np", "math"}
WHOLE = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", None)


class WrongForm(Exception):
    """A pass has made an invalid function: a bug of the compiler, not of the user's program."""


def verify(function: Function, after: str) -> Function:
    """The function itself if it is valid; otherwise raise WrongForm, which names the pass it comes after."""
    def wrong(what):
        raise WrongForm(f"after {after}, {function.name} {what}")

    known = set(function.params) | set_in(function.block) | MODULES
    for s in statements(function.block):
        for name in names_of(s) - known if not isinstance(s, Raise) else ():
            wrong(f"reads {name}, which nothing sets")
        for name in set_by(s):
            if name not in function.types:
                wrong(f"sets {name}, which has no type")
        if isinstance(s, Update) and s.name not in known:
            wrong(f"adds to {s.name}, which nothing sets")
        for e in expressions(s):
            for part in walk(e):
                if isinstance(part, Load):
                    _check_load(part, function, wrong)
    _check_jumps(function.block, False, wrong)
    return function


def _check_load(e, function, wrong):
    rank = function.types[e.array.id].rank if isinstance(e.array, Name) and e.array.id in function.types else None
    added = sum(getattr(p, "value", 0) is None for p in e.index)
    if rank is not None and len(e.index) - added > rank:
        wrong(f"reads {ast.unparse(written(e))}, and {e.array.id} has {rank} axes")
    for part in e.index:
        if not isinstance(part, Slice) and type_of(part, function.types).dtype not in WHOLE:
            wrong(f"reads {ast.unparse(written(e))} at a place that is no whole number")


def _check_jumps(block, inside, wrong):
    for s in block:
        if isinstance(s, (Break, Continue)) and not inside:
            wrong("leaves a loop where there is none")
        for inner in blocks(s):
            _check_jumps(inner, inside or isinstance(s, (For, While)), wrong)
