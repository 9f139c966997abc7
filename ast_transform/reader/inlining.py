# SPDX-License-Identifier: Apache-2.0
"""Inlining: a call of a Python function comes in; the statements of its body, or a call of a callee, come out."""
import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gast

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes import language
from gradscribe.ast_transform.passes.described import is_of_a_library
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.frames import depth, fail, here
from gradscribe.ast_transform.reader.operands import passed_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Frame, Struct
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.ast_transform.source.read import read, unwrap
from gradscribe.ast_transform.source.recursion import NeedsLoops, as_loops

DEEP = 60
ENDLESS = (
    "is too deep, or has no end that is known when transforming",
    "Let it end by a literal or a plain number, or call itself at most once on each path, outside loops.",
)


def calls_itself(source: Any) -> bool:
    """Whether a function is recursive: its own name in its source refers to it."""
    name, function = source.tree.name if isinstance(source.tree, gast.FunctionDef) else None, source.function
    if function is None:
        return name is not None and not source.tree.decorator_list
    held = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    try:
        return unwrap(held[name].cell_contents if name in held else function.__globals__.get(name)) is function
    except ValueError:                  # a cell is empty
        return False


def _may_be_passed(value):
    """Whether a callee may be given a value as an argument: arrays, numbers, strings, objects of the user."""
    if isinstance(value, Var):
        return type(value.fact) is Array and value.fact.kind in "fciub"
    return isinstance(value, Const) and (value.value is None or type(value.value) in (int, float, bool, str) or
                                         not is_of_a_library(type(value.value)))


def user_call(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    args = [passed_value(reader, a) for a in args]
    words = {k: passed_value(reader, v) for k, v in words.items()}
    source = read(function, here(reader, node) if reader.environment.frame.plain else reader.build.origin)
    given = with_defaults(source, args) if keeps_call(reader, function, args, words) else None
    if given is not None:
        kept = reader.engine.kept_call(reader, function, given, node)
        if kept is not None:
            return kept
    return inline(reader, source, args, words, node)


def keeps_call(reader: Reader, function, args, words):
    """Whether a call of a plain helper on arrays stays a call, rather than being inlined."""
    raising = reader.build.origin is not None and reader.build.origin.errors  # np.errstate here, not at every call
    return (
        reader.engine is not None
        and not reader.unroll
        and not reader.build.segments
        and not reader.context.rule_depth
        and not words
        and args
        and not raising
        and not function.__closure__
        and function.__name__ != "<lambda>"
        and all(map(_may_be_passed, args))
        and any(isinstance(a, Var) for a in args)
        and function not in [f.source.function for f in reader.environment.stack]
        and function not in reader.engine.being_kept
    )


def with_defaults(source, args):
    """The arguments of a call completed with defaults; None if a default is not a constant."""
    missing = len(source.tree.args.posonlyargs) + len(source.tree.args.args) - len(args)
    if missing <= 0:
        return args
    rest = [Const(v) for v in source.defaults[len(source.defaults) - missing:]] if missing <= len(
        source.defaults) else []
    return [*args, *rest] if len(rest) == missing and all(map(_may_be_passed, rest)) else None


def inline(reader: Reader, source: Any, args: list, words: dict[str, Any], node: gast.AST | None,
           inner: Any = None) -> Any:
    """Read the body of a callee in place of its call."""
    if depth(reader, source) > DEEP:
        if reader.engine is not None and source.tree not in reader.engine.looped and calls_itself(
                source) and as_loops(source.tree) is not None:
            raise NeedsLoops(source.tree)
        fail(reader, LanguageError, f"the recursion of {source.name} {ENDLESS[0]}", node, ENDLESS[1])
    from_here = here(reader, node) if reader.environment.frame.plain else reader.build.origin
    source = looped(reader, source)
    if not reader.context.rule_depth:
        language.check(source, from_here)
    env = bound(reader, source, args, words, node, inner)
    return dispatch.run(
        reader, Frame(source, env, inner.frame if inner else None, from_here, not reader.context.rule_depth)
    )


def looped(reader: Reader, source: Any) -> Any:
    """The source of a callee; recursion of unknown depth is turned into a loop."""
    loops = reader.engine.looped if reader.engine is not None else {}
    return replace(source, tree=loops.get(source.tree, source.tree))


def inline_part(reader: Reader, part: Callable, args: list, words: dict[str, Any] | None = None) -> Any:
    """Read a part of a rule with operands for its parameters."""
    source = read(part)
    env = bound(reader, source, args, words or {}, None)
    reader.context.rule_depth += 1
    try:
        return dispatch.run(reader, Frame(source, env, None, None, False))
    finally:
        reader.context.rule_depth -= 1


def bound(reader: Reader, source: Any, args: list, words: dict[str, Any], node: gast.AST | None,
          inner: Any = None) -> dict:
    """Python's binding of arguments to parameters."""
    spec = source.tree.args
    names, keyword_only = ([a.id for a in of] for of in ([*spec.posonlyargs, *spec.args], spec.kwonlyargs))
    words = dict(words)

    def refuse(reason):
        plain = node is not None and reader.environment.frame.plain
        raise KindError(f"{source.name} {reason}",
                        here(reader, node) if plain else source.header(reader.build.origin),
                        f"Its parameters are ({ast.unparse(gast.gast_to_ast(source.tree).args)}).")
    if len(args) > len(names) and not spec.vararg:
        refuse(f"takes {len(names)} argument{'s' * (len(names) != 1)}, {len(args)} are given")
    env = dict(zip(names, args))
    if spec.vararg:
        env[spec.vararg.id] = Struct("tuple", args[len(names):])
    for k in list(words):
        if k in names or k in keyword_only:
            if k in env:
                refuse(f"is given two values for {k}")
            env[k] = words.pop(k)
    if words and not spec.kwarg:
        refuse(f"has no parameter named {next(iter(words))}")
    if spec.kwarg:
        env[spec.kwarg.id] = Struct("dict", list(words.values()), tuple(words))
    for name, value in _defaults(source if inner is None else inner, names):
        if name not in env:
            env[name] = dispatch.lift(reader, value, name) if inner is None else value
    missing = [n for n in [*names, *keyword_only] if n not in env]
    if missing:
        refuse(f"needs a value for {missing[0]}")
    return env


def _defaults(function, names):
    """(name, value) of each parameter with a default; `names`: the positional parameters."""
    yield from zip(names[len(names) - len(function.defaults):], function.defaults)
    yield from function.keyword_defaults.items()
