# SPDX-License-Identifier: Apache-2.0
"""Descriptive names for temporaries in printed source: a word for the operation, and its first named operand.

`diff_x` is a difference that begins with x, `A_ij` the entry A[i, j].  In the normal form they are called t and z.

>>> import operator
>>> import numpy as np
>>> import gradscribe.ast_transform.rules.tables
>>> from gradscribe.ast_transform.core.kinds import Array
>>> x, i = Var("x", Array(float), USER), Var("i", Array(int), USER)
>>> word(Apply(operator.sub, (x, Const(1.0)))), word(Apply(operator.getitem, (x, i))), word(Apply(np.sin, (x,)))
('diff_x', 'x_i', None)
"""
from typing import Any

from gradscribe.ast_transform.core.alias import parts_of, reads, record_of
from gradscribe.ast_transform.core.form import SAVED, TEMPORARY, USER, Apply, Const, Var, operands

LONGEST = 20


def is_plain(hint: str) -> bool:
    """Whether a name has no meaning, or refers to one without: t, z, dt, dz, sqrt_z."""
    return hint in ("t", "z", "dt", "dz", "t_saved", "z_saved") or hint.endswith(("_t", "_z"))


def says(hint: str) -> int:
    """How much a name tells, from 0 for t and z to 2; dz has 1, since it tells that it is an adjoint."""
    return 2 if not is_plain(hint) else hint in ("dz", "dt")


def word(value: Any, name_of: dict[Var, str] | None = None, hint: str = "", number: bool = True) -> str | None:
    """A name for the result of an operation; None if its record has no word for it.

    name_of: {value: its printed name}; hint: the name that it would have otherwise; number: whether it has no axes
    """
    if not isinstance(value, Apply):
        return None
    if reads(value) == "part":
        return _entry(value, name_of)
    record = record_of(value.function)
    found = record.options.get("word") if record is not None else None
    if found == "power" and isinstance(value.args[1], Const) and value.args[1].value == 2:
        found = "square"
    elif found == "test" and not number:
        found = "mask"
    if found is None and hint.endswith(("_t", "_z")):
        found = hint[:-2]
    if found is None:
        return None
    of = next((n for v in operands(value) if (n := _name(v, name_of)) is not None), None)
    return shortened(f"{found}_{of}") if of else found


def shortened(name: str) -> str:
    """A name without the last of its words, if it is too long."""
    while len(name) > LONGEST and "_" in name.strip("_"):
        name = name.rpartition("_")[0]
    return name[:LONGEST]


def _entry(value, name_of):
    """A_ij for A[i, j]; None if the index has other parts than names and numbers."""
    base, index = value.args
    if not isinstance(base, Var):
        return None
    parts = parts_of(index)
    if not all(isinstance(p, Var) and p.kind == USER or isinstance(p, Const) and type(p.value) is int and p.value >= 0
               for p in parts):
        return None
    names = [str(p.value) if isinstance(p, Const) else _name(p, name_of) or p.hint for p in parts]
    together = "" if all(len(n) == 1 for n in names) else "_"
    return shortened(f"{(_name(base, name_of) or base.hint)}_{together.join(names)}")


def _name(v, name_of):
    if v.kind == TEMPORARY and not (name_of and v in name_of and not is_plain(v.hint)):
        return None
    name = name_of.get(v, v.hint) if name_of else v.hint
    return name.replace("_saved", "") if v.kind == SAVED else name
