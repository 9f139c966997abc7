"""How a transformed function was made, as text: what a written file says of itself, and the way back from that.

>>> import numpy as np, gradscribe as gs
>>> kinds = spelled((np.ones((4, 3)), np.ones(4), 2.0, [1, np.float32(1)]), {"power": 2}, {"power"})
>>> kinds
'float64[n, 3], float64[n], float, [int, float32], power=2'
>>> args, words = example(kinds)
>>> args[0].shape, args[2], words
((11, 3), 0.5, {'power': 2})
"""
import ast
import functools
import hashlib
import importlib
import inspect
import textwrap
import types
from typing import Any

import numpy as np

from gradscribe import api
from gradscribe.ast_transform.jacobians import Jacobian
from gradscribe.ast_transform.mapping import Vmap
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Grad, Jvp, Vjp
from gradscribe.transformed import Transformed

SIZES = (11, 13, 17, 19, 23, 29, 31)    # of axes whose lengths are not told: no two alike, long enough to be indexed
LETTERS = "nmklpqr"
PYTHON = {"float": 0.5, "int": 3, "bool": True, "complex": 0.5 + 0.25j}
DTYPES = ("float64", "float32", "int64", "int32", "complex128", "complex64", "bool_", "int8", "uint8", "int16")


# --- kinds of arguments -----------------------------------------------------------------------------------------------

def spelled(args: tuple, words: dict[str, Any], known: set) -> str:
    """The kinds of arguments; known: places and names of those whose values the text depends on, which are told."""
    letters = {}

    def one(value, told):
        if told or value is None or isinstance(value, (str, slice, types.EllipsisType)):
            return repr(value)
        if isinstance(value, (bool, int, float, complex)):
            return type(value).__name__
        if isinstance(value, (np.ndarray, np.generic)):
            dtype = "bool_" if value.dtype == np.bool_ else value.dtype.name
            if dtype not in DTYPES:
                raise KindError(f"arrays of {dtype} have no name in a file's heading")
            sizes = [str(n) if n < 4 else letters.setdefault(n, LETTERS[len(letters) % len(LETTERS)])
                     for n in value.shape]
            return f"{dtype}[{', '.join(sizes)}]" if sizes else dtype
        if type(value) in (list, tuple):
            items = ", ".join(one(v, False) for v in value)
            return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
        if type(value) is dict:
            return "{" + ", ".join(f"{k!r}: {one(v, False)}" for k, v in value.items()) + "}"
        raise KindError(f"an argument of type {type(value).__name__} has no name in a file's heading")
    return ", ".join([*(one(a, k in known) for k, a in enumerate(args)),
                      *(f"{k}={one(v, k in known)}" for k, v in words.items())])


def example(text: str) -> tuple[tuple, dict[str, Any]]:
    """Arguments of the kinds that a text names; equal letters are equal lengths.

    Raises KindError for what is no such text.
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError as error:
        raise KindError(f"these are no kinds of arguments: {text}", None,
                        'Write them so: "float64[n, 3], float64[3], float, [float64[k], int]".') from error
    sizes = {}

    def size(node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return sizes.setdefault(node.id, SIZES[len(sizes) % len(SIZES)])
        raise KindError(f"{ast.unparse(node)} is no length")

    def one(node):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in DTYPES:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            shape = [size(p) for p in parts]
            return np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape).astype(node.value.id)
        if isinstance(node, ast.Name) and node.id in PYTHON:
            return PYTHON[node.id]
        if isinstance(node, ast.Name) and node.id in DTYPES:
            return np.dtype(node.id).type(0.5)
        if isinstance(node, ast.List):
            return [one(n) for n in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(one(n) for n in node.elts)
        if isinstance(node, ast.Dict):
            return {ast.literal_eval(k): one(v) for k, v in zip(node.keys, node.values)}
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise KindError(f"{ast.unparse(node)} is no kind of an argument", None,
                            f"Known are {', '.join([*PYTHON, *DTYPES])}, with lengths in brackets.") from None
    return tuple(map(one, call.args)), {k.arg: one(k.value) for k in call.keywords}


# --- transformations --------------------------------------------------------------------------------------------------

def recipe(fn) -> str:
    """The calls that make a transformed function from the user's, which is called `f` in it.

    >>> import gradscribe as gs
    >>> recipe(gs.vmap(gs.grad(lambda w, x: w * x, argnums=(0, 1)), in_axes=(None, 0)))
    'vmap(grad(f, argnums=(0, 1)), in_axes=(None, 0))'
    """
    if not isinstance(fn, Transformed):
        return "f"
    inner, t = recipe(fn.base), getattr(fn, "transform", None)
    words = {}
    if isinstance(t, Jacobian):
        name, words = t.prefix, {"argnums": (t.argnums, 0), "has_aux": (t.aux, False),
                                 "holomorphic": (t.holomorphic, False)}
    elif isinstance(t, Grad):
        name = "value_and_grad" if t.value else "grad"
        words = {"argnums": (t.argnums if t.explicit else None, None), "has_aux": (t.aux, False),
                 "holomorphic": (t.holomorphic, False), "argnames": (t.argnames, None)}
    elif isinstance(t, Vmap):
        name = "vmap"
        words = {"in_axes": (t.in_axes, 0), "out_axes": (t.out_axes, 0), "axis_name": (t.axis_name, None),
                 "axis_size": (t.axis_size, None), "strategy": (t.strategy, "auto")}
    elif isinstance(t, Vjp):
        name, words = "vjp_of", {"has_aux": (t.aux, False)}
    elif isinstance(t, Jvp) and not t.tangent_only:
        name = "jvp_of"
    else:
        raise KindError(f"{fn.__name__}: this transformation has no name in a file's heading")
    given = "".join(f", {k}={v!r}" for k, (v, usual) in words.items() if v != usual)
    return f"{name}({inner}{given})"


def cooked(text: str, function):
    """The transformed function that a recipe makes of a function."""
    def one(node):
        if isinstance(node, ast.Name) and node.id == "f":
            return function
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and \
                node.func.id in ("grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "vjp_of", "jvp_of"):
            return getattr(api, node.func.id)(one(node.args[0]), **{k.arg: ast.literal_eval(k.value)
                                                                    for k in node.keywords})
        raise KindError(f"{ast.unparse(node)} is no transformation")
    return one(ast.parse(text, mode="eval").body)


# --- functions --------------------------------------------------------------------------------------------------------

def users_function(fn):
    """The function below all transformations."""
    while isinstance(fn, Transformed):
        fn = fn.base
    return fn


def named(function) -> str | None:
    """package.module:function, if that is where it is found."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or "<" in name or module == "__main__":
        return None
    try:
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if getattr(found, "fun", found) is function or found is function else None


def found(name: str):
    """The function that package.module:function names.

    Raises KindError if there is none.
    """
    module, colon, path = name.partition(":")
    if not colon:
        raise KindError(f"{name} names no function", None, "Write package.module:function.")
    try:
        return functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except ImportError as error:
        raise KindError(f"{module} is not imported: {error}", None, "Run it where the module is found, or set "
                        "PYTHONPATH.") from error
    except AttributeError as error:
        raise KindError(f"{module} has no {path}", None, f"It has {', '.join(public(importlib.import_module(module)))}."
                        ) from error


def public(module):
    return [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]


def fingerprint(function, seen) -> str:
    """A hash of all the text that was read: of the function, of what it calls, and the constants; not of comments.

    seen: (holder, name, value) of what was read from outside.
    """
    parts = {("", "function"): _trace(function)}
    for _, name, value in seen:
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
        except (OSError, TypeError, SyntaxError):       # a lambda in the middle of a line
            code = getattr(value, "__code__", None)
            return f"{code.co_code.hex()} {code.co_consts!r}" if code is not None else value.__qualname__
    return repr(value)


def without_docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
