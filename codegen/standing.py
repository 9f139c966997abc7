# SPDX-License-Identifier: Apache-2.0
"""Makes a self-contained module: each global that an emitted function reads is imported or defined in its text.

The user's functions and classes keep their names and their own text, and bring the globals that they read.  Objects of
Python, NumPy and SciPy are imported.
"""
import ast
import builtins
import dataclasses
import enum
import functools
import inspect
import math
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.source.read import read

_WRITTEN_OUT = 4096                 # captured arrays up to this many entries are written into the file
_ADVICE = "Pass it as an argument."
_LATER = "from __future__ import annotations"


class Module:
    """Imports and definitions that bind names to values; `add` each name, then call `text`.

    home: the module of the function that was transformed; objects of its package are written out even if the package
    is installed.  to_read: the text is for reading only; objects that cannot be written out are imported or named in a
    comment instead of refused.  given: called with the module, a name and its value before all else; it returns whether
    it has defined the name, or gives the value to the text in another way.
    """

    def __init__(self, home: str = "", to_read: bool = False, given: Callable[..., bool] | None = None):
        self.home, self.to_read, self.given = home, to_read, given
        self.modules, self.values = {"np": "numpy"}, {"np": np}
        self.imports: list = []
        self.definitions: list = []
        self.annotated = False
        self.trees: dict[str, tuple[Any, Any]] = {}     # {name: (the user's function, its tree)}

    def text(self, heading: str, body: str) -> str:
        """The text of the module; body: the functions that read the names."""
        said = {n: f"import {m}" + f" as {n}" * (n not in (m, top(m))) for n, m in self.modules.items()
                if n != "scipy" or len([m for m in self.modules.values() if top(m) == "scipy"]) == 1}
        order = sorted(said, key=lambda n: (("numpy", "scipy").index(top(self.modules[n])) + 1
                                            if top(self.modules[n]) in ("numpy", "scipy") else 0, self.modules[n], n))
        head = [*([heading] if heading else []), *([_LATER] if self.annotated else []), *(said[n] for n in order),
                *dict.fromkeys(self.imports), ""]
        out = "\n".join([*head, *(line for d in self.definitions for line in ("", d))]) + "\n\n" + body
        if self.to_read:
            return out
        twice = [n for n in defined(body) if n in self.values]
        if twice:
            raise KindError(f"two things are named {twice[0]} in one file", None, "Rename one of them.")
        missing = [n for n in unbound(out) if self.given is None or n not in self.values]
        if missing:
            raise KindError(f"{missing[0]} is read, but it is not defined", None, _ADVICE)
        return out

    def add(self, name, value):
        if name in self.values:
            if self.values[name] is not value:
                raise KindError(f"two things are named {name} in one file", None, "Rename one of them.")
            return
        self.values[name] = value
        if self.given is not None and self.given(self, name, value):
            return
        if isinstance(value, types.ModuleType):
            self.modules[name] = value.__name__
        elif over_devices(value):
            self.imports.append(f"from {value.__module__} import {name}")
        elif inspect.isfunction(value) and _module(value).startswith("gradscribe.runtime"):
            self.add_function(value)
        elif shipped(value) is not None:
            said = shipped(value)
            self.imports.append(f"from {_module(value)} import {said}" + f" as {name}" * (said != name))
        elif _is_named(value):
            self.add_named(name, value)
        else:
            self.definitions.append(f"{name} = {self.written(value, name)}\n")

    def reading(self, name, value):
        """As `add`, for a text to be read: an object without text is imported, or named in a comment."""
        before = self.state()
        try:
            self.add(name, value)
        except KindError:
            self.back_to(before)
            self.values[name] = value
            if self.home != "__main__" and vars(sys.modules.get(self.home, math)).get(name) is value:
                self.imports.append(f"from {self.home} import {name}")
            else:
                what = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
                self.definitions.append(f"# {name}: {what}, from outside\n")

    def add_function(self, function):
        """Adds a runtime function with the globals that it reads: constants, other functions, modules."""
        for name in _globals_of(function.__code__):
            if name in function.__globals__:
                self.add(name, function.__globals__[name])
        self.definitions.append(_bare(function))

    def state(self):
        return self.modules.copy(), self.imports[:], self.definitions[:], self.values.copy(), self.annotated

    def back_to(self, state):
        self.modules, self.imports, self.definitions, self.values, self.annotated = state

    def add_named(self, name, value):
        """Adds a function or a class by the user's text of it, or else by an import."""
        before, reason = self.state(), None
        if self.is_own(value):
            try:
                if self.add_text(name, value):
                    return
            except KindError as error:
                self.back_to(before)
                reason = error
        if not self.add_import(name, value):
            raise reason or KindError(f"{value.__qualname__}, which the function reads, is not found under its name",
                                      None, "Define it at the top of a module, or pass what it gives as an argument.")

    def is_own(self, value):
        """Whether a function or a class belongs to the program, not to an installed package."""
        package = top(_module(value))
        if package in ("", "gradscribe"):
            return False
        file = getattr(sys.modules.get(_module(value)), "__file__", None) or ""
        return package == top(self.home) or {"site-packages", "dist-packages"}.isdisjoint(
            file.replace("\\", "/").split("/"))

    def add_text(self, name, value):
        """Adds a definition in the user's text, without Gradscribe's decorators, and the globals that it reads; returns
        False if it has no text, being made at run time or transformed.
        """
        inner = inspect.unwrap(value)
        found = text_of(inner, name)
        if found is None or (getattr(inner, "__globals__", {}).get("__name__") or "").startswith("gradscribe."):
            return False
        label, text = found
        scope, tree = scope_of(inner), ast.parse(text).body[0]
        lines = text.splitlines(keepends=True)
        for decorator in getattr(tree, "decorator_list", ()):
            if ours(decorator, scope):
                lines[decorator.lineno - 1:decorator.end_lineno] = [""] * (decorator.end_lineno - decorator.lineno + 1)
        text = "".join(lines)
        if label != name:
            self.values[label] = value
        later = {n.id for a in annotations(tree) for n in ast.walk(a) if isinstance(n, ast.Name)}
        for outside in unbound(f"{_LATER}\n{text}"):
            if outside in scope and outside != label:
                self.add(outside, scope[outside])
        for outside in sorted(later | set(names_in_texts(tree))):
            if outside in scope and (shipped(scope[outside]) is not None or is_shipped_module(scope[outside])):
                self.add(outside, scope[outside])
        self.annotated |= not all(n != label and n in self.values or hasattr(builtins, n) for n in later)
        self.definitions.append(text)
        if label != name:
            self.definitions.append(f"{name} = {label}\n")
        return True

    def add_import(self, name, value):
        """Adds an import of a value; returns False if its module does not have it by its name."""
        names: list = [value.__module__, *value.__qualname__.split(".")]
        module, first, *rest = names
        if "<locals>" in rest or "<lambda>" in (first, *rest) or _found(value) is not value or module == "__main__":
            return False
        self.imports.append(f"from {module} import {first}" + f" as {name}" * (not rest and first != name))
        if rest:
            self.definitions.append(f"{name} = {value.__qualname__}\n")
        return True

    def written(self, value, name):
        """The text of an expression for a value; `name`: its name in messages."""
        kind = type(value)
        if value is None or value is ... or kind in (bool, int, str, bytes):
            return repr(value)
        if kind is float:
            if math.isfinite(value):
                return repr(value)
            return "np.nan" if math.isnan(value) else f"{'-' * (value < 0)}np.inf"
        if kind is complex:
            return f"complex({self.written(value.real, name)}, {self.written(value.imag, name)})"
        if kind in (list, tuple, set, frozenset, slice, range):
            return self.container(value, name)
        if kind is dict:
            items = (f"{self.written(k, name)}: {self.written(v, name)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(value, np.dtype):
            return f"np.dtype({value.str!r})"
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            item = value.item() if value.dtype.itemsize <= 8 * (1 + (value.dtype.kind == "c")) else str(value)
            return f"np.{value.dtype.name}({self.written(item, name)})"
        if kind is np.ndarray and value.dtype.kind in "biufcSU":
            return _array(name, value)
        return self.made(value, name)

    def container(self, value, name):
        if isinstance(value, (slice, range)):
            parts = [self.written(getattr(value, k), name) for k in ("start", "stop", "step")]
            return f"{type(value).__name__}({', '.join(parts)})"
        inside = value if isinstance(value, (list, tuple)) else sorted(value, key=repr)
        items = [self.written(v, name) for v in inside]
        if isinstance(value, tuple):
            return f"({', '.join(items)}{',' * (len(items) == 1)})"
        inner = f"[{', '.join(items)}]"
        return inner if isinstance(value, list) else f"{type(value).__name__}({inner})"

    def made(self, value, name):
        """The text of an object: a call of its class, or its name in its module."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            return f"{self.known(kind)}.{value.name}"
        if isinstance(value, functools.partial) and kind is functools.partial:
            self.add("functools", functools)
            words = [f"{k}={self.written(v, name)}" for k, v in value.keywords.items()]
            return f"functools.partial({', '.join([self.written(v, name) for v in (value.func, *value.args)] + words)})"
        if _is_named(value):
            return self.known(value)
        names = getattr(value, "_fields", None) if isinstance(value, tuple) else None
        if names is None and dataclasses.is_dataclass(value) and all(f.init for f in dataclasses.fields(value)):
            names = [f.name for f in dataclasses.fields(value)]
        if names is None or hasattr(kind, "__post_init__"):
            raise KindError(f"{name} holds a {kind.__name__}, which has no text", None, _ADVICE)
        return f"{self.known(kind)}({', '.join(f'{k}={self.written(getattr(value, k), name)}' for k in names)})"

    def known(self, value):
        """The name of a class or a function, which is added if need be."""
        if getattr(builtins, value.__qualname__, None) is value:
            return value.__qualname__
        name = next((n for n, v in self.values.items() if v is value), value.__qualname__.rpartition(".")[2])
        self.add(name, value)
        return name


def text_of(value, name) -> tuple[str, str] | None:
    """(name, text) of the definition of a function or a class; None if it has no text.  name: for a lambda."""
    try:
        text = textwrap.dedent(inspect.getsource(value))
        tree = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, IndentationError):
        tree = []
    if len(tree) == 1 and getattr(tree[0], "name", None) == value.__name__:
        return value.__name__, text
    if inspect.isfunction(value) and value.__name__ == "<lambda>":
        return name, f"{name} = {ast.unparse(gast.gast_to_ast(read(value).tree))}\n"
    return None


def scope_of(value) -> dict:
    """{name: value} of the globals and closure variables of a function or a class."""
    found = dict(vars(sys.modules[value.__module__])) if value.__module__ in sys.modules else {}
    functions = [value] if inspect.isfunction(value) else [f for f in vars(value).values() if inspect.isfunction(f)]
    for f in functions:
        found.update(f.__globals__ if f is value else {})
        for cell, held in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                found[cell] = held.cell_contents
            except ValueError:          # the cell is empty
                pass
    return found


def ours(decorator, scope) -> bool:
    """Whether a decorator is Gradscribe's, which a self-contained text leaves out."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    path: list = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in scope:
        return False
    value = functools.reduce(lambda v, n: getattr(v, n, None), path, scope[node.id])
    if value is functools.partial and isinstance(decorator, ast.Call) and decorator.args:
        return ours(decorator.args[0], scope)
    return top(_module(value) or _module(type(value))) == "gradscribe"


def annotations(tree) -> Iterator[ast.AST]:
    """The annotations in a definition."""
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                yield getattr(node, field)


def names_in_texts(tree) -> Iterator[str]:
    """The names in annotations that are strings, which dataclasses evaluate."""
    for a in annotations(tree):
        for node in ast.walk(a):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                with suppress(SyntaxError):
                    yield from (n.id for n in ast.walk(ast.parse(node.value, mode="eval")) if isinstance(n, ast.Name))


def shipped(value: Any) -> str | None:
    """The name of an object of Python, NumPy or SciPy in its `__module__`; None for any other object."""
    module = _module(value) if not isinstance(value, (np.ndarray, np.generic)) else ""
    if not of_python(module) or top(module) in ("builtins", "__main__") or isinstance(value, types.ModuleType):
        return None
    for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None), getattr(value, "_name", None)):
        if isinstance(name, str) and getattr(sys.modules.get(module), name, None) is value:
            return name
    return None


def is_shipped_module(value) -> bool:
    return isinstance(value, types.ModuleType) and of_python(value.__name__)


def of_python(module: str) -> bool:
    """Whether a module is part of Python, NumPy or SciPy, which are present wherever emitted code runs."""
    return top(module) in ("numpy", "scipy") or top(module) in sys.stdlib_module_names


def defined(text) -> list[str]:
    """The names of the functions that a text defines."""
    return re.findall(r"^def (\w+)\(", text, re.M)


def top(module: str) -> str:
    return module.partition(".")[0]


def unbound(text: str) -> list[str]:
    """The names that a module's text reads but does not define.

    >>> unbound("import math\\ndef f(x):\\n    return math.sin(x) + offset + abs(x)\\n")
    ['offset']
    """
    return [n for n in names_read(text) if not hasattr(builtins, n)]


def names_read(text: str) -> list[str]:
    """As `unbound`, with the names of Python's built-in functions."""
    top = symtable.symtable(text, "<written>", "exec")
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    found, tables = [], [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found += [s.get_name() for s in table.get_symbols() if s.is_referenced() and (table is top or s.is_global())]
    return sorted({n for n in found if n not in own})


def _globals_of(code):
    """The globals that a code object, and functions within it, may read."""
    names = list(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += _globals_of(inner)
    return dict.fromkeys(names)


def _module(value):
    return getattr(value, "__module__", None) or ""


def _is_named(value):
    return isinstance(getattr(value, "__qualname__", None), str) and bool(_module(value)) and callable(value)


def _found(value):
    try:
        return functools.reduce(getattr, value.__qualname__.split("."), sys.modules[value.__module__])
    except (AttributeError, KeyError):
        return None


def over_devices(value: Any) -> bool:
    return inspect.isfunction(value) and value.__module__ == "gradscribe.runtime.collectives"


def _array(name, value):
    """The text of an expression for an array."""
    if value.size > _WRITTEN_OUT:
        raise KindError(
            f"{name} has {value.size} entries, too many to be written into a file", None, "Pass it as an argument."
        )
    dtype = f"np.{value.dtype.name}" if value.dtype.kind in "biufc" and value.dtype.isnative else \
        f"np.dtype({value.dtype.str!r})"
    if not value.size:
        return f"np.zeros({value.shape}, dtype={dtype})"
    if value.dtype.kind == "c" and not np.all(np.isfinite(value)):
        parts = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))[..., None].view(value.real.dtype.name)
        return f"{_array(name, parts)}.view({dtype})[..., 0]"
    with np.printoptions(threshold=_WRITTEN_OUT + 1, floatmode="unique", linewidth=110):
        text = np.array2string(value, separator=", ", prefix=f"{name} = np.array(")
    if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
        text = re.sub(r"\b(nan|inf)\b", r"np.\1", text)
    return f"np.array({text}, dtype={dtype})"


def _bare(function):
    """A runtime function's text, with only the first line of its docstring."""
    source = inspect.getsource(function)
    head, mark, rest = source.partition('    """')
    doc, mark, body = rest.partition('"""\n')
    return f'{head}    """{doc.strip().splitlines()[0]}"""\n{body}' if mark else source
