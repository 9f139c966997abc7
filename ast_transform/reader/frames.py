# SPDX-License-Identifier: Apache-2.0
"""Frames of calls: a node's position in the user's source, and `fail`, which raises an error that points there."""
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import gast

from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.targets import assigned
from gradscribe.ast_transform.source.diagnose import LanguageError

_SET_BY: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()    # {tree of a function: names that it sets}


def depth(reader: Reader, source: Any) -> int:
    """The number of calls of a function that are being read."""
    return sum(
        f.source.tree is source.tree or f.source.function is not None and f.source.function is source.function
        for f in reader.environment.stack
    )


def here(reader: Reader, node: gast.AST | None) -> Any:
    frame = reader.environment.frame
    origin = frame.source.origin(node, frame.statement, frame.caller)
    found = dict.fromkeys(frame.caller.errors, "raise") if frame.caller is not None else {}
    for lines, modes in frame.errors.items():
        found.update(modes if origin.line in lines else {})
    errors = tuple(sorted(k for k, mode in found.items() if mode == "raise"))
    return (
        replace(origin, errors=errors, within=reader.environment.within)
        if errors or reader.environment.within
        else origin
    )


@contextmanager
def inside(reader: Reader, name: str) -> Iterator[Any]:
    """A context for reading a function made by jit or pmap."""
    outer, reader.environment.within = reader.environment.within, (*reader.environment.within, name)
    try:
        yield
    finally:
        reader.environment.within = outer


def locate(reader: Reader, node: gast.AST | None) -> None:
    if reader.environment.frame.plain:
        reader.build.origin = here(reader, node)


def fail(reader: Reader, kind: Callable, reason: str, node: gast.AST | None = None, advice: str = "",
         python: Callable | None = None) -> NoReturn:
    """Raise an error that points to the node; `python` is the exception that Python would certainly raise here."""
    origin = here(reader, node) if node is not None and reader.environment.frame.plain else reader.build.origin
    error = kind(reason, origin, advice)
    error.python, error.block = python, reader.build.block
    raise error


def in_scope(reader: Reader, name: str) -> Any:
    """The value of a name in the frame or an enclosing frame; None for a name from outside them."""
    frame = reader.environment.frame
    while frame is not None and name not in frame.env:
        frame = frame.outer
    return None if frame is None else frame.env[name]


def set_by(reader: Reader, source: Any) -> dict:
    """The names that a function sets, except its parameters."""
    tree = source.tree
    if tree not in _SET_BY:
        _SET_BY[tree] = assigned(tree.body) if isinstance(tree.body, list) else {}
    return _SET_BY[tree]


def tried(reader: Reader, function: Any, *values: Any, node: gast.AST | None) -> Any:
    """function(*values), where Python's exception becomes an error of the reader."""
    try:
        return function(*values)
    except Exception as error:
        fail(reader, LanguageError, str(error), node, python=type(error))
