# SPDX-License-Identifier: Apache-2.0
"""What the live page shows of a function: its text and its transformation's, which lines belong together, times.

A view is made of plain data, for JSON.  All that comes from the page is text: a transformation as `recipes` writes it
and arguments as `kinds` writes them.  Both are parsed, and nothing in them is run: they name only the transformations
in MAKERS and the dtypes in `kinds`, and classes only where the command line named them.
"""

import functools
import inspect
import linecache
import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gradscribe import api, recipes
from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.ast_transform.transforms import identity
from gradscribe.jit import Jitted
from gradscribe.kinds import class_named, example, spelled
from gradscribe.line_times import TooLong, line_times
from gradscribe.source_map import Place, SourceMap, blocks, source_map
from gradscribe.transformed import Transformed, Version, is_transformed

MAKERS = {**recipes.MAKERS, "jvp": api.jvp_of, "vjp": api.vjp_of}
LONGEST, ENTRIES, BATCH = 2_000, 10_000_000, 5          # characters of a text, entries of arguments, examples
OFFERED = ("grad(f)", "value_and_grad(f)", "jvp(f)", "vjp(f)", "vmap(f)", "vmap(grad(f))", "grad(grad(f))",
           "hessian(f)", "jacfwd(f)", "jacrev(f)", "jit(f)", "jit(grad(f))")

class Asked(NamedTuple):
    """What the page asks for: a transformation and arguments of the function, as text, and whether to time lines.

    trusted: the arguments that the command line gave, whose classes may be named.
    """
    recipe: str
    arguments: str
    timed: bool
    trusted: str

def offers(function: Callable) -> list[str]:
    """The transformations that the page offers for a function, as text.

    >>> def loss(w, b, x):
    ...     return w * x + b
    >>> offers(loss)[:2]
    ['grad(f)', 'grad(f, argnums=(0, 1, 2))']
    """
    count = len(inspect.signature(function).parameters)
    every = [f"grad(f, argnums={tuple(range(count))})"] if count > 1 else []
    return [OFFERED[0], *every, *OFFERED[1:]]

def usual_arguments(function: Callable) -> str:
    """The kinds of a function's arguments from annotations, or the simplest of which it has a gradient or a value."""
    try:
        return api.grad(function).simplest_kinds()
    except TransformError:
        return Transformed(function, identity()).simplest_kinds()

def view(function: Callable, asked: Asked) -> dict[str, Any]:
    """All that the page shows of a function, or the error that it shows instead.

    >>> import gradscribe.recipes
    >>> from colorsys import rgb_to_yiq
    >>> found = view(rgb_to_yiq, Asked("jvp(f)", "float, float, float", False, ""))
    >>> found["right"]["name"], found["given"].partition(",")[0], found["error"]
    ('jvp_rgb_to_yiq', 'float', None)
    """
    found: dict[str, Any] = {"left": {"name": name_of(function), "blocks": []}, "right": None, "links": [],
                             "times": None, "error": None, "given": ""}
    places: list[Place] = []
    try:
        fn = made(function, asked.recipe)
        args, words = given(fn, *arguments(asked), function)
        found["given"] = spelled(args, words, set())
        version = fn.version_for(args, words)
        lines = lines_of(fn, version, args, words)
        places = [p for _, several in sorted(lines.lines.items()) for p in several]
        found["right"] = {"name": fn.__name__, "text": version.text, "compiled": version.emitted is None}
        found["links"] = [{"line": k, "from": [{"file": p.file, "line": p.line, "function": p.function}
                                               for p in lines[k]], "why": lines.reasons(k)}
                          for k in sorted({*lines.lines, *lines.rules, *lines.identities})]
        if asked.timed:
            found["times"] = times_of(version, args, words)
    except Exception as error:
        found["error"] = told(error)
        places = [Place(p["file"], p["line"], p["function"]) for p in found["error"]["places"]]
    found["left"]["blocks"] = [{"file": b.file, "name": os.path.basename(b.file), "start": b.start, "lines": b.lines}
                               for b in blocks(recipes.users_function(function), places)]
    return found

def name_of(function: Any) -> str:
    """The name of a user's function."""
    return getattr(recipes.users_function(function), "__name__", "function")

def made(function: Callable, recipe: str) -> Transformed:
    """The transformed function that a text names; KindError if it names none."""
    known = f"Write a transformation of f, as grad(f, argnums=(0, 1)); known are {', '.join(MAKERS)}."
    if len(recipe) > LONGEST:
        raise KindError("the text of the transformation is too long", None,
                        f"It may have {LONGEST} characters. {known}")
    try:
        fn = recipes.cooked(recipe.strip(), getattr(function, "fun", function), MAKERS)
    except TransformError as error:
        error.advice = error.advice or known
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error        # str() has the name of no file
        raise KindError(f"{recipe} is not a transformation: {why}", None, known) from error
    if not is_transformed(fn):
        raise KindError("f alone is no transformation", None, known)
    return fn

# --- arguments --------------------------------------------------------------------------------------------------------

def arguments(asked: Asked) -> tuple[tuple, dict[str, Any]]:
    """Example arguments of the function from the page's text.

    >>> arguments(Asked("", "f64[3], 2", False, ""))[0][1]
    2
    >>> arguments(Asked("", "subprocess.Popen(args='ls')", False, ""))
    Traceback (most recent call last):
    gradscribe.KindError: subprocess.Popen is not taken from the page
      Name the class with --args on the command line; the page may then name it too.
    """
    if len(asked.arguments) > LONGEST:
        raise KindError("the text of the arguments is too long", None,
                        f"It may have {LONGEST} characters: arrays are given by their lengths, as float64[1000].")
    trusted = set(re.findall(r"[\w.]+(?=\()", asked.trusted))

    def class_of(name):
        if name not in trusted:
            raise KindError(f"{name} is not taken from the page", None, "Name the class with --args on the command "
                            "line; the page may then name it too.")
        return class_named(name)
    return example(asked.arguments, class_of, ENTRIES)

def given(fn: Any, args: tuple, words: dict[str, Any], function: Any) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a transformed function, from those of the user's: with tangents, cotangents and batch axes.

    function: the user's, which may be a transformed one itself.

    >>> from gradscribe import api
    >>> fn = api.vmap(api.jvp_of(np.sin))
    >>> [np.shape(a) for a in given(fn, (np.ones(3),), {}, np.sin)[0]]
    [(5, 3), (5, 3)]
    """
    if fn is function or not is_transformed(fn):
        return args, words
    args, words = given(fn.base, args, words, function)
    if fn.transform.prefix == "jvp":
        return (*args, *map(tangent, args)), words
    if fn.transform.prefix == "vjp":
        with np.errstate(all="ignore"):
            return (tangent(fn.base(*mapped(np.copy, args), **words)), *args), words
    if fn.transform.prefix == "vmap":
        axes = fn.transform.settings.in_axes
        axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,) * len(args)
        if len(axes) == len(args):
            return tuple(batch(a, axis) for a, axis in zip(args, axes)), mapped(functools.partial(batch, axis=0), words)
    return args, words

def tangent(value: Any) -> Any:
    """A tangent of a value: of floats and complex numbers ones, of others zeros."""
    def one(v):
        kind = np.result_type(v).kind
        return np.ones_like(v) if kind in "fc" and np.ndim(v) else 1.0 if kind in "fc" else 0.0
    return mapped(one, value)

def batch(value: Any, axis: Any) -> Any:
    """A batch of equal examples; axis: the place of the new axis, None for a value that all share."""
    if axis is None:
        return value
    if not isinstance(axis, int):
        raise KindError(f"the page makes no batches along {axis!r}", None,
                        "Give in_axes a number or None for each argument, as in_axes=(0, None).")
    return mapped(lambda v: np.stack([np.asarray(v)] * BATCH, axis), value)

def mapped(change: Callable, value: Any) -> Any:
    """A value with each number and array in it changed."""
    if isinstance(value, dict):
        return {k: mapped(change, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(change, v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value) if isinstance(value, (np.ndarray, np.generic, int, float, complex)) else value

# --- lines ------------------------------------------------------------------------------------------------------------

def lines_of(fn: Transformed, version: Version, args: tuple, words: dict[str, Any]) -> SourceMap:
    """The places that the lines of a version's text came from; of a compiled version, by lowering it again."""
    if version.emitted is not None:
        return source_map(fn, *args, **words)
    empty = SourceMap({}, {}, {})
    if not isinstance(fn, Jitted) or fn.compiler.platform != "cpu" or fn._reader is None:
        return empty
    from gradscribe.codegen.jit_cpu import for_cpu, lowered  # a slow import, for compilation only
    fastmath, parallel = fn.compiler.code_of.args
    passes = functools.partial(for_cpu, parallel=parallel, any_order=fastmath)
    text, _, _, origins = lowered(version.normal_form, fn._reader.environment.captured, passes)
    if not version.text.startswith(text):
        return empty
    return SourceMap({k: [Place(o.file, o.line, o.function)] for k, o in enumerate(origins, 1) if o is not None},
                     {}, {})

def times_of(version: Version, args: tuple, words: dict[str, Any]) -> dict[str, Any]:
    """The times of a version's lines, as plain data; "error" says why there are none."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = line_times(version, args, words)
    except TooLong:
        return {"error": "A call takes longer than ten seconds: give smaller arguments.", "lines": []}
    except Exception as error:
        return {"error": f"The example does not run: {type(error).__name__}: {error}", "lines": []}
    return {"error": None, "seconds": found.seconds, "calls": found.calls,
            "lines": [{"line": k, "seconds": t.seconds, "passes": t.passes} for k, t in found.lines.items()]}

# --- errors -----------------------------------------------------------------------------------------------------------

def told(error: BaseException) -> dict[str, Any]:
    """An error as plain data: its class, its text, the user's lines that it names, the innermost first."""
    places, origin = [], getattr(error, "origin", None)
    while origin is not None:
        places.append({"file": origin.file, "line": origin.line, "function": origin.function})
        origin = origin.caller
    cause = error.__context__ if isinstance(error, TransformError) and not places else error
    if isinstance(cause, SyntaxError) and cause.filename and cause.lineno:
        places.append({"file": cause.filename, "line": cause.lineno, "function": ""})
    elif cause is not None and not places:
        frames = [f for f in traceback.extract_tb(cause.__traceback__) if is_users(f.filename)]
        places += [{"file": f.filename, "line": f.lineno, "function": f.name} for f in frames[-1:]]
    text = str(error) if isinstance(error, TransformError) else "".join(
        traceback.format_exception_only(error)).strip()
    return {"kind": type(error).__name__, "text": text, "places": places}

def is_users(file: str) -> bool:
    """Whether a file is the user's: not of the standard library, of an installed package or of Gradscribe."""
    if not file.endswith(".py"):
        return False
    file = os.path.abspath(file)
    ours = [os.path.dirname(os.path.abspath(inspect.getfile(m))) + os.sep for m in (api, identity, linecache)]
    return "site-packages" not in file and "dist-packages" not in file and not any(map(file.startswith, ours))

def context(file: str, line: int, around: int = 8) -> Iterable[tuple[int, str]]:
    """(number, text) of the lines around one, for a file that cannot be read as Python."""
    lines = linecache.getlines(file)
    for k in range(max(line - around, 1), min(line + around, len(lines)) + 1):
        yield k, lines[k - 1].rstrip("\n")
