# SPDX-License-Identifier: Apache-2.0
"""Reads a function: its syntax tree, file, globals and closure cells."""
import __future__

import ast
import builtins
import functools
import inspect
import linecache
import math
import os
import sys
import types
import warnings
import weakref
from dataclasses import dataclass, field, replace
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.source.diagnose import LanguageError, TooDeep
from gradscribe.ast_transform.source.nonlocals import converted
from gradscribe.ast_transform.source.origin import Origin
from gradscribe.ast_transform.source.trees import nodes

FILES = 256                 # parsed files that are kept
CHECKS = {"jaxtyping"}      # packages whose decorators do nothing but check the types of arguments
_files: dict = {}
_trees: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary() # code -> {file: tree}; equal codes may be in two files


@dataclass(eq=False)
class Scope:
    """Looks up the global and closure names of a function; `seen` records what was read."""
    namespace: dict
    cells: dict
    seen: dict = field(default_factory=dict)

    def lookup(self, name):
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                raise NameError(name) from None
        if name in self.namespace:
            return self.namespace[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(name)


@dataclass(eq=False)
class Source:
    tree: gast.AST                  # a FunctionDef or Lambda
    scope: Scope
    file: str
    name: str
    function: object
    defaults: tuple = ()
    keyword_defaults: dict = field(default_factory=dict)

    def origin(self, node, statement=None, caller=None) -> Origin:
        line = getattr(node, "lineno", self.tree.lineno)
        begins = getattr(statement, "lineno", line)
        text = linecache.getline(self.file, begins).strip() if statement is not None else ""
        column, end = _column(self.file, line, node)
        return Origin(self.file, line, column, getattr(node, "end_lineno", line) or line, end, self.name, text, begins,
                      isinstance(statement, gast.AugAssign), caller)

    def header(self, caller=None) -> Origin:
        """The place where the function begins."""
        start = self.origin(self.tree, None, caller)
        return replace(start, end_line=start.line, end_column=start.column + len(_header(self.tree)))


def _column(file, line, node):
    """(first, last) column of a node in characters; syntax trees count bytes."""
    column, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None) or 0
    text = linecache.getline(file, line)
    if not text.isascii():
        raw = text.encode()
        column, end = len(raw[:column].decode(errors="ignore")), len(raw[:end].decode(errors="ignore"))
    return column, end


def parts_of(function: types.FunctionType) -> tuple:
    """The parts of a function that reloading a module may replace."""
    return function.__code__, function.__defaults__, function.__kwdefaults__


def unwrap(function: Any) -> Any:
    """The Python function inside Numba functions, and inside decorators that only check the types of arguments."""
    while True:
        inner = getattr(function, "py_func", None) if not isinstance(function, functools.partial) else None
        if inner is None and (getattr(function, "__globals__", {}).get("__name__") or "").partition(".")[0] in CHECKS:
            inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner


def defined(spelling: str, function: Any, names: list[str], words: list[str]) -> types.FunctionType:
    """A Python function whose source is one call of another, whose name is written as `spelling`."""
    root, label = spelling.partition(".")[0], spelling.rpartition(".")[2]
    if root not in ("np", "math", "scipy"):      # the wrapper must not have the name of the function
        root = spelling = function.__name__
        label = f"call_{root}"
    call = ", ".join([*names, *(f"{w}={w}" for w in words)])
    text = f"def {label}({', '.join([*names, *words])}):\n    return {spelling}({call})\n"
    module = {"np": np, "math": math}.get(root) or sys.modules.get(root, function)
    return from_text(text, {root: module}, f"<gradscribe: {spelling}({call})>")


def from_text(text: str, namespace: dict[str, Any], file: str) -> types.FunctionType:
    """The first function in a text, whose source `read` finds as that of a file; each text needs its own `file`."""
    label = text.partition("def ")[2].partition("(")[0]
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {**namespace, "__name__": "gradscribe.texts"}
    exec(compile(text, file, "exec"), namespace)
    return namespace[label]


def from_tree(tree: gast.AST, source: Source, namespace: dict[str, Any]) -> types.FunctionType:
    """A function compiled from a tree that was derived from `source`; messages show places of the latter."""
    module = ast.Module([gast.gast_to_ast(tree)], [])
    space = {**source.scope.namespace, **{n: source.scope.lookup(n) for n in source.scope.cells}, **namespace}
    exec(_compiled(module, source.file), space)
    function = space[tree.name]
    _trees.setdefault(function.__code__, {})[source.file] = tree
    return function


def read(function: Any, caller: Origin | None = None) -> Source:
    """The Source of a function; LanguageError if it is not available.  caller: the place of the call."""
    function = unwrap(function)
    if not inspect.isfunction(function):
        raise LanguageError(f"{_label(function)} has no Python source", caller,
                            "Write a Python function that calls it; if it has no rule yet: docs/rules.md")
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    name = function.__name__ if function.__name__ != "<lambda>" else "lambda"
    known = _trees.setdefault(code, {})
    tree = known.get(code.co_filename)
    if tree is None:
        tree = known[code.co_filename] = _tree(function, code, name, caller)
    return Source(tree, Scope(function.__globals__, cells), code.co_filename, name, function,
                  function.__defaults__ or (), function.__kwdefaults__ or {})


def as_written(function: types.FunctionType) -> ast.AST:
    """The syntax tree of a function as it is in its file, which must not be changed; LanguageError if there is none."""
    return _find(function, function.__code__, None)


def _tree(function, code, name, caller):
    """The tree of a function's code; it is cached, and must not be changed."""
    tree = _find(function, code, caller)
    start = tree.col_offset
    place = Origin(code.co_filename, tree.lineno, start, tree.lineno, start + len(_header(tree)), function.__name__,
                   caller=caller)
    kind = next((what for flag, what in _UNREAD if code.co_flags & flag), None)
    if kind is not None:
        raise LanguageError(f"{function.__name__} is {kind[0]}", place, kind[1])
    try:
        return converted(gast.ast_to_gast(tree))
    except RecursionError:
        raise TooDeep(LanguageError(f"an expression in {name} is nested too deeply to be read", place,
                                    "Give its parts names.")) from None


_UNREAD = ((inspect.CO_ASYNC_GENERATOR, ("an asynchronous generator", "Compute in a plain function.")),
           (inspect.CO_COROUTINE, ("a coroutine", "Compute in a plain function.")),
           (inspect.CO_GENERATOR, ("a generator", "Return a list or a tuple instead of yielding.")))


def _header(tree):
    if isinstance(tree, ast.Lambda | gast.Lambda):
        return "lambda"
    return f"{'async ' * isinstance(tree, ast.AsyncFunctionDef | gast.AsyncFunctionDef)}def {tree.name}"


def _label(function):
    return getattr(function, "__name__", None) or repr(function)


@dataclass(eq=False)
class _File:
    """The functions of a file: trees by first line, and code objects by first line and name.

    apart: code objects of its statements compiled one by one, as IPython compiles a cell; None until needed.  CPython
    calls a function of an imported module by other instructions if the import is in the text that it compiles.
    """
    lines: list
    trees: dict
    codes: dict
    whole: tuple = ()                   # (tree, file name, flags) that it was compiled with
    apart: dict | None = None

    def alone(self):
        if self.apart is None:
            self.apart = {}
            tree, name, flags = self.whole or (ast.Module([], []), "", 0)
            for node in tree.body:
                module = ast.Module([node], tree.type_ignores)
                _note_codes(_compiled(module, name, flags), self.apart)
        return self.apart


def _compiled(text, name, flags=0):
    """What `compile` makes of a user's text or tree, whose warnings the import of the file has given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, name, "exec", flags, dont_inherit=True)


def _note_codes(module, codes):
    """Adds every code object inside another to `codes`, by first line and name."""
    queue = [module]
    while queue:
        for code in queue.pop().co_consts:
            if isinstance(code, types.CodeType):
                codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)
                queue.append(code)


def _parsed(name, flags):
    lines = linecache.getlines(name)
    known = _files.get(name)
    if known is None or known.lines != lines:
        known = _File(list(lines), {}, {})
        while len(_files) >= FILES:
            _files.pop(next(iter(_files)), None)
        flags = flags & __future__.annotations.compiler_flag | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            tree = _compiled("".join(lines), name, flags | ast.PyCF_ONLY_AST)
            module = _compiled(tree, name, flags)
        except (SyntaxError, ValueError):
            _files[name] = known
            return known
        for node in nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                known.trees.setdefault(first, []).append(node)
        known.whole = tree, name, flags
        _note_codes(module, known.codes)
        _files[name] = known
    return known


def _find(function, code, caller):
    name = code.co_filename
    if not linecache.getlines(name):
        label = "a lambda" if code.co_name == "<lambda>" else function.__name__
        raise LanguageError(f"the source of {label} is not available", caller,
                            f"It was defined in {name}. Functions must come from a file, a notebook cell or a\n"
                            "doctest: put it in a module, or register its text with linecache.")
    found = _matching(_parsed(name, code.co_flags), code)
    if not found:                       # the file may have changed, and the module been reloaded
        linecache.checkcache(name)
        found = _matching(_parsed(name, code.co_flags), code)
    if not found:
        raise LanguageError(f"the source of {function.__name__} does not match the running function", caller,
                            f"{os.path.basename(name)} has changed since it was imported, or the function was made by\n"
                            "other means. Load it again.")
    if len(found) > 1:
        found = _around(found, code)
    if len(found) > 1 and len({ast.dump(n) for n in found}) > 1:
        first = min(found, key=lambda n: n.col_offset)
        raise LanguageError("several lambdas stand on one line and cannot be told apart",
                            Origin(name, first.lineno, first.col_offset, first.lineno, first.col_offset + 6, "lambda",
                                   caller=caller),
                            "Give each a line of its own, or a name by def.")
    return found[0]


def _matching(known, code):
    """The trees that may be the function's: those that compile to the code that runs."""
    found = [n for n in known.trees.get(code.co_firstlineno, ())
             if ("<lambda>" if isinstance(n, ast.Lambda) else n.name) == code.co_name]
    if found and (_among(known.codes, code) or _among(known.alone(), code)):
        return found
    rewritten = [n for n in found if any(isinstance(inner, ast.Assert) for inner in nodes(n))]
    return rewritten                    # pytest rewrites assertions


def _among(codes, code):
    return any(_alike(c, code) for c in codes.get((code.co_firstlineno, code.co_name), ()))


def _alike(a, b):
    """Whether two code objects, or constants of them, are equal."""
    if isinstance(a, types.CodeType) and isinstance(b, types.CodeType):
        return (a.co_code, a.co_names, a.co_varnames, a.co_freevars, a.co_cellvars) == \
            (b.co_code, b.co_names, b.co_varnames, b.co_freevars, b.co_cellvars) and \
            len(a.co_consts) == len(b.co_consts) and all(map(_alike, a.co_consts, b.co_consts))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    return type(a) is type(b) and (isinstance(a, frozenset) and a == b or repr(a) == repr(b))


def _around(found, code):
    """Of several functions that begin on one line, the innermost that contains the places of the code."""
    places = [p for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
    if not places:
        return found
    start, end = min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)

    def span(node):
        first, last = (node.body, node.body) if isinstance(node, ast.Lambda) else (node.body[0], node.body[-1])
        return (first.lineno, first.col_offset), (last.end_lineno, last.end_col_offset)
    around = [n for n in found if span(n)[0] <= start and end <= span(n)[1]]
    return [max(around, key=lambda n: span(n)[0])] if around else found
