# SPDX-License-Identifier: Apache-2.0
"""How a transformed function was made, as text: a written file's heading has this, and `check` reads it back."""
import ast
import functools
import hashlib
import importlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradscribe import api
from gradscribe.ast_transform.error_bounds import ErrorBound
from gradscribe.ast_transform.mapping import Vmap
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Gradient, Linear
from gradscribe.errors import error_bound
from gradscribe.jit import code_for_cpu, jit
from gradscribe.transformed import is_transformed

# --- transformations --------------------------------------------------------------------------------------------------

def recipe(fn: Any) -> str:
    """The expression that makes a transformed function from the user's, `f`.

    >>> import gradscribe as gs
    >>> recipe(gs.vmap(gs.grad(lambda w, x: w * x, argnums=(0, 1)), in_axes=(None, 0)))
    'vmap(grad(f, argnums=(0, 1)), in_axes=(None, 0))'
    """
    if not is_transformed(fn):
        return "f"
    inner, name, t = recipe(fn.base), fn.transform.prefix, fn.transform.settings
    words: dict[str, tuple[Any, Any]] = {}
    code_of = getattr(fn.compiler, "code_of", None) if name == "jit" else None
    if isinstance(code_of, functools.partial) and code_of.func is code_for_cpu:
        numbers, names = (tuple(k for k in fn.given_static if isinstance(k, kind)) for kind in (int, str))
        words = {"static_argnums": (numbers, ()), "static_argnames": (names, ()), "fastmath": (code_of.args[0], True),
                 "parallel": (code_of.args[1], False)}
    elif isinstance(t, Gradient):
        argnums = (t.argnums, 0) if name.startswith("jac") else (t.argnums if t.explicit else None, None)
        words = {"argnums": argnums, "has_aux": (t.aux, False), "holomorphic": (t.holomorphic, False),
                 "argnames": (t.argnames, None)}
    elif isinstance(t, Vmap):
        words = {"in_axes": (t.in_axes, 0), "out_axes": (t.out_axes, 0), "axis_name": (t.axis_name, None),
                 "axis_size": (t.axis_size, None), "strategy": (t.strategy, "auto")}
    elif isinstance(t, Linear) and name == "vjp":
        name, words = "vjp_of", {"has_aux": (t.aux, False)}
    elif isinstance(t, ErrorBound):
        words = {"inputs": (t.inputs, None)}
    elif isinstance(t, Linear) and not t.tangent_only:
        name = "jvp_of"
    else:
        raise KindError(f"{fn.__name__}: this transformation has no name in a file's heading")
    given = "".join(f", {k}={v!r}" for k, (v, usual) in words.items() if v != usual)
    return f"{name}({inner}{given})"


NAMES = "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "vjp_of", "jvp_of"
MAKERS: dict[str, Callable] = {**{name: getattr(api, name) for name in NAMES}, "jit": jit, "error_bound": error_bound}


def cooked(text: str, function: Callable, makers: dict[str, Callable] = MAKERS) -> Any:
    """The transformed function that a recipe makes from a function; makers: the transformations that it may name.

    Nothing in the text is evaluated but literals.
    """
    def one(node):
        if isinstance(node, ast.Name) and node.id == "f":
            return function
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and \
                node.func.id in makers:
            return makers[node.func.id](one(node.args[0]), **{str(k.arg): ast.literal_eval(k.value)
                                                              for k in node.keywords})
        raise KindError(f"{ast.unparse(node)} is not a transformation")
    return one(ast.parse(text, mode="eval").body)


# --- functions --------------------------------------------------------------------------------------------------------

def users_function(fn: Any) -> Any:
    """The user's function, below all transformations."""
    while is_transformed(fn):
        fn = fn.base
    return fn


def named(function: Any) -> str | None:
    """The name package.module:function of a function; None if it is not found there."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or "<" in name or module == "__main__":
        return None
    try:
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if getattr(found, "fun", found) is function or found is function else None


class NotImported(Exception):
    """The module of a name cannot be imported."""


def found(name: str) -> Any:
    """The function with the name package.module:function.

    Raises KindError if there is none, from NotImported if its module cannot be imported.
    """
    module, colon, path = name.partition(":")
    if not colon:
        raise KindError(f"{name} names no function", None, "Write package.module:function.")
    try:
        importlib.import_module(module)
    except Exception as error:
        raise KindError(f"{module} is not imported: {error}", None, "Run it where the module is found, or set "
                        "PYTHONPATH.") from NotImported(module)
    try:
        return functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except AttributeError as error:
        raise KindError(f"{module} has no {path}", None, f"It has {', '.join(public(importlib.import_module(module)))}."
                        ) from error


def public(module):
    """The names of the functions that a module defines."""
    return [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]


def fingerprint(function: Any, seen: Iterable[tuple[Any, str, Any]]) -> str:
    """A hash of all source that was read, without comments: the function, the functions it calls, and constants.

    seen: (holder, name, value) of each value that was read from outside.
    """
    parts = {("", "function"): _trace(function)}
    for holder, name, value in seen:
        if value is not holder:
            parts[name, type(value).__name__] = _trace(value)
    text = "\n".join(f"{name} {kind} {trace}" for (name, kind), trace in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _trace(value):
    value = users_function(value)
    value = getattr(value, "py_func", getattr(value, "fun", value))
    if isinstance(value, functools.partial):
        return f"partial {_trace(value.func)} {value.args!r} {sorted(value.keywords.items())!r}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if module.split(".")[0] in ("numpy", "scipy", "math", "builtins", "gradscribe") or isinstance(value, np.ufunc):
        return f"{module}.{getattr(value, '__name__', value)}"
    if inspect.isfunction(value) or inspect.isclass(value):
        try:
            return ast.dump(without_docstrings(ast.parse(textwrap.dedent(inspect.getsource(value)))))
        except (OSError, TypeError, SyntaxError):       # for example a lambda in the middle of a line
            code = getattr(value, "__code__", None)
            return f"{code.co_code.hex()} {code.co_consts!r}" if code is not None else value.__qualname__
    return repr(value)


def without_docstrings(tree):
    """The syntax tree without its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
