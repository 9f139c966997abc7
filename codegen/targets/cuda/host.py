# SPDX-License-Identifier: Apache-2.0
"""Rewrites statements that run on the host: arrays are the device's; reading one number of them waits for the device.

>>> block = [Let(name, Call("cp.dot", (Name(of), Name(of)))) for name, of in ("ax", "ba", "cb")]
>>> freed(block, {"a", "b", "c"})[2]
Delete(names=('a',), origin=None, line=0)
"""
import builtins
from typing import Any

import numpy as np

from gradscribe.codegen.collectives import ASKED
from gradscribe.codegen.loops.analysis.effects import OF_NUMBERS
from gradscribe.codegen.loops.build import ZERO, quoted
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Call,
    Const,
    Expr,
    Items,
    Let,
    Load,
    Method,
    Name,
    Op,
    Statement,
    Store,
    Unpack,
    change,
    names_read,
    rebuilt,
    set_in,
    statements,
    walk,
)
from gradscribe.codegen.loops.lists import list_call
from gradscribe.codegen.targets.cuda.form import Delete
from gradscribe.codegen.targets.cuda.placement import Placement

BUILTIN = set(vars(builtins))


class HostCode:
    """Rewrites statements for the host; tf32: factors of single-precision products are rounded to 10 bits."""

    def __init__(self, placement: Placement, tf32: bool = False):
        self.placement, self.tf32 = placement, tf32

    def statement(self, s: Statement) -> Statement:
        """The host's statement for one without blocks, which may be changed in place."""
        if isinstance(s, Alloc):
            return Let(s.name, self.expression(Call(f"np.{s.how}", (Items(s.shape), *s.rest))), s.origin)
        if isinstance(s, Store):
            s.entry = Load(s.entry.array, tuple(map(self.expression, s.entry.index)))
            s.value = self.expression(s.value)
        elif isinstance(s, Unpack):
            s.value = self.expression(s.value)
        else:
            change(s, self.expression)
        return s

    def expression(self, e: Expr) -> Expr:
        if isinstance(e, Name):
            return quoted("{}.item()", e) if e.id in self.placement.held else e
        put: Any = e
        if list_call(e) == "append" and put.owner.id in self.placement.held_lists:
            return Method(put.owner, "append", (quoted("{}.copy()", put.args[0]),))
        if isinstance(e, Attribute) and e.owner in (Name("np"), Name("math")):
            return e
        if isinstance(e, Call) and e.function in ASKED:
            return Call(f"host.{e.function}", (self.communicated(e.args[0]), *map(self.expression, e.args[1:])))
        made = rebuilt(e, self.expression)
        if self.placement.is_entry(e):
            return quoted("{}.item()", made)
        return self.call(made) if isinstance(e, Call) else made

    def communicated(self, e):
        """An operand of a collective: a number that is held on the device is not read by the host."""
        if isinstance(e, Items):
            return Items(tuple(map(self.communicated, e.items)))
        return Load(e, (ZERO,)) if isinstance(e, Name) and e.id in self.placement.held else \
            rebuilt(e, self.expression) if self.placement.is_entry(e) else self.expression(e)

    def call(self, e):
        module, *names = e.function.split(".")
        if not names:
            return e if module in BUILTIN else Call(f"host.{self.product(module)}", e.args, e.keywords)
        if e.function == "math.ldexp":          # which takes only int
            return Call(e.function, (e.args[0], quoted("int({})", e.args[1])))
        if e.function == "np.dot":
            return Call(f"host.{self.product('dot')}", e.args, e.keywords)
        of_numbers = names[0] in OF_NUMBERS and (len(names) > 1 or isinstance(getattr(np, names[0]), type) or not any(
            map(self.placement.is_whole, e.args)))
        return e if module != "np" or of_numbers else Call(".".join(["cp", *names]), e.args, e.keywords)

    def product(self, name):
        """The host's name for a function; for products with tf32, a variant."""
        return f"{name}_tf32" if self.tf32 and name in ("dot", "product") else name


def freed(block: list, arrays: set) -> list:
    """The host's statements with `del` of each array after its last use, if an allocation follows.

    The memory goes back to the pool, unless the array has an alias, and is reused.
    """
    last: dict = {}
    allocated, certain = 0, set()
    for k, s in enumerate(block):
        last |= dict.fromkeys(arrays & (names_read([s]) | set_in([s])), k)
        if isinstance(s, Let) and isinstance(s.value, Name):            # an alias
            last.pop(s.value.id, None)
        if any(map(allocates, statements([s]))):
            allocated = k
            certain |= {s.name} if isinstance(s, Let) else set()
    out = []
    for k, s in enumerate(block):
        out.append(s)
        gone = sorted(n for n, at in last.items() if at == k < allocated and n in certain)
        if gone:
            out.append(Delete(tuple(gone)))
    return out


def allocates(s: Statement) -> bool:
    """Whether a statement allocates an array, other than one of constant shape."""
    e = getattr(s, "value", None)
    while isinstance(e, (Method, Attribute, Load, Op)):
        e = e.owner if isinstance(e, (Method, Attribute)) else e.array if isinstance(e, Load) else e.args[0]
    if not isinstance(e, Call) or not e.function.startswith(("cp.", "host.")):
        return False
    small = e.function.startswith("cp.") and len(e.args) == 2 and isinstance(e.args[1], Attribute) and all(
        isinstance(n, (Const, Items)) for n in walk(e.args[0]))
    return not small
