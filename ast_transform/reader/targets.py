# SPDX-License-Identifier: Apache-2.0
"""Assigned names: statements of the user's tree come in; the names that they assign come out."""
from collections import Counter
from collections.abc import Iterable
from typing import Any

import gast

from gradscribe.ast_transform.core.form import USER, Var
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.trees import nodes

COMPREHENSIONS = (gast.ListComp, gast.GeneratorExp, gast.DictComp)


def name_after(target: gast.AST, value: Any, own: set[Var]) -> None:
    """Name the elements of a loop after the names in its target."""
    if isinstance(target, (gast.Tuple, gast.List)) and isinstance(value, Struct) and \
            len(value.items) == len(target.elts):
        for t, v in zip(target.elts, value.items):
            if isinstance(t, gast.Name) and t.id != "_" and isinstance(v, Var) and v in own:
                v.hint, v.kind = spoken(t.id), USER
            else:
                name_after(t, v, own)


def spoken(name: str) -> str:
    """A name as emitted code spells it: names that the reader makes contain a dot, or end in spaces."""
    return name.partition(".")[0].strip()


def assigned(body: Iterable[gast.AST], bare: bool = False) -> dict[str, None]:
    """The names that statements assign, in order."""
    found: dict[str, None] = {}
    for top in body:
        for node in _own(top):
            if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store):
                found[node.id] = None
            elif isinstance(node, gast.FunctionDef):
                found[node.name] = None
    return found


def _own(node):
    """A node and its descendants in the same function, in order."""
    found = []
    _put_own(node, found)
    return found


def _put_own(node, found):
    found.append(node)
    kind = type(node)
    if kind is gast.FunctionDef or kind is gast.Lambda:
        return
    if kind in COMPREHENSIONS:
        for g in node.generators:
            _put_own(g.iter, found)
        return
    for field in kind._fields:
        inner = getattr(node, field, None)
        if isinstance(inner, gast.AST):
            _put_own(inner, found)
        elif isinstance(inner, list):
            for child in inner:
                if isinstance(child, gast.AST):
                    _put_own(child, found)


def assigned_plainly(body: list[gast.AST]) -> set[str]:
    """The names that are assigned other than by augmented assignment."""
    plain = assigned([n for n in body])
    names = [n.target for top in body for n in _own(top) if isinstance(n, gast.AugAssign)]
    stores = [n for top in body for n in _own(top) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)]
    return {n.id for n in stores if not any(n is t for t in names)} & set(plain)


def augmented(body: Iterable[gast.AST]) -> dict[str, None]:
    return dict.fromkeys(n.target.id for top in body for n in _own(top)
                         if isinstance(n, gast.AugAssign) and isinstance(n.target, gast.Name))



def makes_longer(node: gast.AST) -> str | None:
    """The name in items = items + [...]; None for another statement."""
    if not isinstance(node, gast.Assign) or len(node.targets) > 1 or not isinstance(node.value, gast.BinOp):
        return None
    name, value = getattr(node.targets[0], "id", None), node.value
    longer = isinstance(value.op, gast.Add) and isinstance(value.right, gast.List)
    return name if longer and name is not None and getattr(value.left, "id", None) == name else None


def only_made_longer(body: list[gast.AST]) -> set[str]:
    """The names that are assigned only by items = items + [...]."""
    longer = [n.targets[0] for top in body for n in _own(top) if makes_longer(n)]
    stores = [n for top in body for n in _own(top) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)]
    return {n.id for n in longer} - {n.id for n in stores if not any(n is t for t in longer)}


def loaded(tree: gast.AST) -> Counter[str]:
    """How often each name is read in a tree."""
    return Counter(n.id for n in nodes(tree) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Load))
