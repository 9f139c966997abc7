# SPDX-License-Identifier: Apache-2.0
"""A module that stands alone: what an emitted function reads is imported or written out, with what that reads."""
import builtins
import dataclasses
import enum
import functools
import inspect
import math
import re
import symtable
import sys
import types

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError

_WRITTEN_OUT = 4096                 # captured arrays up to this many entries are written into the file
_ADVICE = "Pass it as an argument."


class Module:
    """Imports and definitions that give names to values; `add` each name, then take `text`."""

    def __init__(self):
        self.imports, self.definitions, self.values = ["import numpy as np"], [], {"np": np}

    def text(self, heading, body):
        """The module; body: the functions that read the names."""
        lines = [heading, *self.imports, "", *(line for d in self.definitions for line in ("", d))]
        out = "\n".join(lines) + "\n\n" + body
        missing = unbound(out)
        if missing:
            raise KindError(f"{missing[0]} is read, and nothing tells what it is", None, _ADVICE)
        return out

    def add(self, name, value):
        if name in self.values:
            if self.values[name] is not value:
                raise KindError(f"two things are named {name} in one file", None, "Rename one of them.")
            return
        self.values[name] = value
        if isinstance(value, types.ModuleType):
            self.add_module(name, value)
        elif over_devices(value):
            self.imports.append(f"from {value.__module__} import {name}")
        elif inspect.isfunction(value) and _module(value).startswith("gradscribe.runtime"):
            self.add_function(value)
        elif _is_named(value):
            self.add_import(name, value)
        else:
            self.definitions.append(f"{name} = {self.written(value, name)}\n")

    def add_module(self, name, module):
        if name == "math":
            self.imports.insert(0, "import math")
        elif name != "scipy":           # import scipy.linalg has it too
            own = module.__name__
            self.imports.append(f"import {own}" + f" as {name}" * (name not in (own, own.partition(".")[0])))

    def add_function(self, function):
        """A function of the runtime with what it reads: constants, other functions, modules."""
        for read in _globals_of(function.__code__):
            if read in function.__globals__:
                self.add(read, function.__globals__[read])
        self.definitions.append(_bare(function))

    def add_import(self, name, value):
        module, first, *rest = value.__module__, *value.__qualname__.split(".")
        if "<locals>" in rest or "<lambda>" in (first, *rest) or _found(value) is not value:
            raise KindError(f"{value.__qualname__}, which the function reads, is not found under its name", None,
                            "Define it at the top of a module, or pass what it gives as an argument.")
        self.imports.append(f"from {module} import {first}" + f" as {name}" * (not rest and first != name))
        if rest:
            self.definitions.append(f"{name} = {value.__qualname__}\n")

    def written(self, value, name):
        """A value as an expression; `name`: what it is called, for messages."""
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
        """An object as a call of its class, or by the name that it has in its module."""
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
        """The name of a class or a function, which is imported if need be."""
        if getattr(builtins, value.__qualname__, None) is value:
            return value.__qualname__
        name = next((n for n, v in self.values.items() if v is value), value.__qualname__.rpartition(".")[2])
        self.add(name, value)
        return name


def unbound(text) -> list[str]:
    """The names that a module reads and nothing in it sets.

    >>> unbound("import math\\ndef f(x):\\n    return math.sin(x) + offset + abs(x)\\n")
    ['offset']
    """
    top = symtable.symtable(text, "<written>", "exec")
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    found, tables = [], [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found += [s.get_name() for s in table.get_symbols() if s.is_referenced() and (table is top or s.is_global())]
    return sorted({n for n in found if n not in own and not hasattr(builtins, n)})


def _globals_of(code):
    """The names that code, and functions within it, may read from outside."""
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


def over_devices(value):
    return inspect.isfunction(value) and value.__module__ == "gradscribe.runtime.collectives"


def _array(name, value):
    """An array as an expression."""
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
    """A helper's text without its doctest."""
    source = inspect.getsource(function)
    head, mark, rest = source.partition('    """')
    doc, mark, body = rest.partition('"""\n')
    return f'{head}    """{doc.strip().splitlines()[0]}"""\n{body}' if mark else source
