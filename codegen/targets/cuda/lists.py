# SPDX-License-Identifier: Apache-2.0
"""Calls of lists at their end, which is all that a module for a device does with lists.

>>> from gradscribe.codegen.loops.trees import block_of
>>> block = block_of("kept = []\\nkept.append(x[0])\\ny = kept.pop()\\nn = len(kept) + kept[0]")
>>> is_empty_list(block[0]), appended(block[1]), popped(block[2])
(True, ('kept', Load(array=Name(id='x'), index=(Const(value=0),))), 'kept')
>>> [list_use(use) for s in block for use in uses_in(s) if use.name == "kept"]
['append', 'pop', 'len', None]
"""
from gradscribe.codegen.loops.analysis.arrays import Use, uses_in
from gradscribe.codegen.loops.form import (
    Call,
    Do,
    EmptyList,
    Expr,
    For,
    Function,
    Let,
    ListOf,
    Logic,
    Method,
    Name,
    Select,
    Statement,
    While,
    all_blocks,
    all_names,
    expressions,
    set_by,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.types import type_of

CALLS = {"append": 1, "pop": 0}         # {method: how many arguments it has}


def list_call(e: Expr) -> str | None:
    """'append' or 'pop' of such a call of a list's, at its end; else None."""
    at_end = isinstance(e, Method) and isinstance(e.owner, Name) and len(e.args) == CALLS.get(e.name)
    return e.name if at_end and not e.keywords else None


def is_empty_list(s: Statement) -> bool:
    """Whether a statement makes an empty list."""
    return isinstance(s, Let) and (s.value == ListOf(()) or isinstance(s.value, EmptyList))


def appended(s: Statement) -> tuple[str, Expr] | tuple[None, None]:
    """The list that a statement appends to, and what; Nones of another statement."""
    if isinstance(s, Do) and list_call(s.value) == "append":
        return s.value.owner.id, s.value.args[0]
    return None, None


def popped(s: Statement) -> str | None:
    """The list whose last entry gets a name."""
    return s.value.owner.id if isinstance(s, Let) and list_call(s.value) == "pop" else None


def pops_in(s: Statement) -> list[str]:
    """The lists that a statement itself takes entries from."""
    return [e.owner.id for whole in expressions(s) for e in walk(whole) if list_call(e) == "pop"]


def list_use(use: Use) -> str | None:
    """What is done with a list: 'append' to it, 'put' into another, 'pop', 'len'; None if it is anything else, or if
    a statement may take several entries, or none.
    """
    call = use.parent
    if isinstance(call, Call) and call.function == "len":
        return "len"
    found = list_call(call)
    if found == "append" and call.args == (Name(use.name),):
        return "put" if call.owner != Name(use.name) and appended(use.statement)[0] else None
    once = found == "append" and appended(use.statement)[0] or found == "pop" and pops_in(use.statement).count(
        use.name) == 1 and not isinstance(use.statement, (For, While)) and not any(
        isinstance(e, (Select, Logic)) for e in use.around)
    return found if once else None


def mentions(block: list[Statement], name: str) -> int:
    """How often a name stands in statements."""
    return sum(set_by(s).count(name) + sum(u.name == name for u in uses_in(s)) for s in statements(block))


def name_appended(function: Function) -> None:
    """Gives names to what lists get.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> function = Function("f", ["x"], {}, block_of("kept = []\\nkept.append(x + 1)"))
    >>> name_appended(function)
    >>> function.block[1].name, appended(function.block[2])
    ('kept_next', ('kept', Name(id='kept_next')))
    """
    taken = all_names(function)
    for block in [*all_blocks(function)]:
        for s in [*block]:
            name, value = appended(s)
            if name is not None and not isinstance(value, Name):
                new = unused(f"{name}_next", taken)
                function.types[new] = type_of(value, function.types)
                block.insert(block.index(s), Let(new, value, s.origin))
                s.value = Method(s.value.owner, "append", (Name(new),))
