# SPDX-License-Identifier: Apache-2.0
"""A function as text, to be run in another process.

A transformed function is sent as its emitted text, a compiled one as the text that Numba compiled and the key of its
machine code in the cache, any other function as its own text and that of the functions that it calls.  Arrays, objects
and classes that it reads are sent beside the text, as they are now.  A process makes a function of it once, and reads
the machine code from its disk or compiles it.

>>> import pickle, numpy as np, gradscribe as gs
>>> gradient = gs.grad(lambda x: np.sum(x ** 3))
>>> program = program_of(gradient, (np.array([1.0, 2.0]),))
>>> "return 3 * x ** 2" in program.text, function_of(pickle.loads(pickle.dumps(program)))(np.array([1.0, 2.0]))
(True, array([ 3., 12.]))
"""
import ast
import builtins
import copy
import dataclasses
import functools
import hashlib
import inspect
import itertools
import linecache
import pickle
import random
import struct
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gradscribe import recipes
from gradscribe.ast_transform.core.draw import STREAMS
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.ast_transform.source.read import as_written
from gradscribe.codegen.build import build
from gradscribe.codegen.standing import Module, names_read, over_devices, shipped, top
from gradscribe.given import Foreign, holds_children
from gradscribe.jit import Jitted, calling
from gradscribe.transformed import Transformed, home_of, is_transformed

KEPT = 128                              # functions that a process keeps, the last used


class Machine(NamedTuple):
    """What a compiled function consists of beside its text: attributes of codegen.jit_cpu.Compiled.

    key: of its machine code in the cache, for this processor and these versions of packages; call: the text of the
    function that takes the arguments apart and builds the result; space: the names that this text reads.
    """
    key: str
    made: tuple
    kinds: list
    results: list
    extra: tuple
    call: str
    space: dict[str, Any]


class Program(NamedTuple):
    """A function as text.

    label: the name of the function in the text; data: the names that the text reads and does not define; convert:
    positions of arguments that are made floats; machine: of a compiled function; places: {line of the text: (file,
    line, function, text) of the user's statement}.
    """
    label: str
    text: str
    data: dict[str, Any]
    convert: tuple[int, ...] = ()
    machine: Machine | None = None
    places: dict[int, tuple[str, int, str, str]] | None = None


# --- a function to a program ------------------------------------------------------------------------------------------

def program_of(fn: Any, args: tuple) -> Program:
    """The program of a function, for arguments of the kinds of these.

    Raises KindError for a function that cannot be sent: without text, or one that changes what is outside of it;
    TransformError for a transformed function as a call does.
    """
    if not is_transformed(fn):
        return of_plain(fn)
    return of_version(fn, version_of(fn, args))


def version_of(fn: Transformed | Jitted, args: tuple) -> Any:
    """The version of a transformed function for these arguments."""
    if type(fn) not in (Transformed, Jitted) or getattr(fn.compiler, "platform", "cpu") != "cpu":
        raise KindError(f"{fn.__name__} runs on devices of its own, not in the processes of an engine",
                        place_of(fn.base), "Map a function without gs.pmap, and without target='cuda'.")
    try:
        return fn.version_for(args, {})
    except Foreign:
        return fn.version_for(*fn.given(args, {}))


def of_version(fn: Transformed | Jitted, version: Any) -> Program:
    """The program of one version of a transformed function."""
    if version.writes:
        raise KindError(f"{fn.__name__} changes an argument or an object from outside, and another process would "
                        "change its copy", place_of(fn.base), "Return what is changed.")
    if holds_children(fact_of(version.normal_form.result)):
        raise KindError(f"{fn.__name__} gives an object of a registered class, which is not sent", place_of(fn.base),
                        "Give and return a tuple or a dictionary of its arrays.")
    if version.emitted is not None:
        data: dict[str, Any] = {}
        emitted = version.emitted
        module = Module(emitted.home, given=taking(data))
        read = set(names_read(emitted.body()))
        for name, value in emitted.namespace.items():
            if isinstance(value, types.ModuleType) or name in read:
                module.add(name, value)
        return Program(emitted.label, module.text("", emitted.body()), data, tuple(version.convert))
    compiled = version.compiled
    if version.leaves is None or compiled.reports:
        what = "prints, warns or logs" if compiled.reports else "reads attributes of objects, or writes into arguments"
        raise KindError(f"the compiled {fn.__name__} {what}, which has no text for another process", place_of(fn.base),
                        "Map the function without gs.jit, or give what it reads as arguments.")
    from gradscribe.codegen.jit_cpu import key_of_text
    refuse_streams(compiled.extra, fn.__name__)
    (facts, words), (label, flags) = version.leaves, compiled.made
    call, space = calling(facts, words, version.normal_form, compiled)
    key = key_of_text(compiled.source, label, compiled.kinds, flags)
    machine = Machine(key, compiled.made, compiled.kinds, compiled.results, compiled.extra, call, space)
    return Program(label, compiled.source, {}, tuple(version.convert), machine)


def of_plain(fn: Any) -> Program:
    """The program of a function that is not transformed."""
    if not callable(fn):
        raise KindError(f"{type(fn).__name__} is not a function", None, "Give a function of one example.")
    data: dict[str, Any] = {}
    module = Module(home_of(fn), given=taking(data))
    name = getattr(fn, "__name__", "")
    label = f"mapped_{name}" if name.isidentifier() else "mapped"
    module.add(label, fn)
    text = module.text("", "")
    return Program(label, text, data, places=places_in(text, module.trees))


def places_in(text: str, trees: dict[str, tuple[types.FunctionType, ast.AST]]) -> dict[int, tuple[str, int, str, str]]:
    """Where the statements of a text are in the user's files: Program.places.

    The text of a function was made from its tree, so both have the same statements in the same order.
    """
    found = {}
    for step in ast.parse(text).body:
        target = step.targets[0] if isinstance(step, ast.Assign) else None
        name = step.name if isinstance(step, ast.FunctionDef) else getattr(target, "id", "")
        if name not in trees:
            continue
        function, tree = trees[name]
        file, pairs = function.__code__.co_filename, zip(statements(step), statements(tree))
        for ours, users in [(step, tree)] if isinstance(tree, ast.Lambda) else pairs:
            line = getattr(users, "lineno", function.__code__.co_firstlineno)
            found[ours.lineno] = file, line, function.__name__, linecache.getline(file, line).strip()
    return found


def statements(tree: ast.AST) -> list[ast.stmt]:
    """The statements of a function, in an order that depends on its structure only."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def taking(data: dict[str, Any]) -> Callable[[Module, str, Any], bool]:
    """How a text that is sent gets a value: functions as text, library functions by imports, all else in `data`."""
    def given(module, name, value):
        if isinstance(value, types.ModuleType) or over_devices(value) or shipped(value) is not None:
            return False
        if is_transformed(value):
            add_transformed(module, name, value)
        elif type(value) is functools.partial:
            add_partial(module, name, value)
        elif isinstance(value, types.FunctionType):
            return add_function(module, name, value)
        elif top(type(value).__module__) == "gradscribe" and callable(value):
            imported(module, name, value, "has a rule of its own, which its text does not show")
        else:
            refuse_streams(value, name)
            data[name] = value
        return True
    return given


def add_transformed(module: Module, name: str, fn: Transformed | Jitted) -> None:
    """Defines a transformed function that a text calls: it is transformed again where the text runs."""
    base = f"{name}_of"
    module.add(base, recipes.users_function(fn))
    module.imports.append("import gradscribe.recipes")
    module.definitions.append(f"{name} = gradscribe.recipes.cooked({recipes.recipe(fn)!r}, {base})\n")


def add_partial(module: Module, name: str, value: functools.partial) -> None:
    """Defines a functools.partial by names for its parts."""
    parts = {f"{name}_function": value.func, **{f"{name}_{k}": v for k, v in enumerate(value.args)},
             **{f"{name}_{k}": v for k, v in value.keywords.items()}}
    for part, held in parts.items():
        module.add(part, held)
    words = [f"{k}={name}_{k}" for k in value.keywords]
    given = ", ".join([*list(parts)[:1 + len(value.args)], *words])
    module.imports.append("import functools")
    module.definitions.append(f"{name} = functools.partial({given})\n")


def add_function(module: Module, name: str, function: types.FunctionType) -> bool:
    """Defines a user's function by its text, without decorators: these have been applied, or are wrapped around it.

    Functions of installed packages, and functions with a derivative rule of their own, are imported.  Returns False for
    a function of Gradscribe's that is in the text of emitted code.
    """
    package = top(function.__module__ or "")
    if package == "gradscribe" and not module.is_own(function):
        if function.__module__.startswith("gradscribe.runtime"):
            return False
        imported(module, name, function, "is a function inside Gradscribe")
        return True
    if function in RULES:
        imported(module, name, function, "has a rule of its own, which its text does not show")
        return True
    if not module.is_own(function) and module.add_import(name, function):
        return True
    try:
        add_text(module, name, function)
    except LanguageError as error:
        imported(module, name, function, f"has no text: {error.reason}")
    except SyntaxError:
        imported(module, name, function, "assigns to a variable of the function around it, and another process would "
                 "change its copy", "Return the value, and add up or collect the results after the call.")
    return True


def imported(module: Module, name: str, value: Any, why: str,
             advice: str = "Define it at the top of a module that the workers can import.") -> None:
    """Imports a value by its name; KindError with the reason why it must be, if it cannot."""
    known = getattr(value, "__qualname__", None) and getattr(value, "__module__", None)
    if not known or not module.add_import(name, value):
        called = getattr(value, "__qualname__", name)
        place = place_of(value) if isinstance(value, types.FunctionType) else None
        raise KindError(f"{called} {why}", place, advice)


def add_text(module: Module, name: str, function: types.FunctionType) -> None:
    """Defines a function by its text; values that it reads, and its defaults, are those that it has now."""
    tree: Any = copy.deepcopy(as_written(function))
    scope = dict(function.__globals__)
    for cell, held in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            scope[cell] = held.cell_contents
        except ValueError:              # the cell is empty
            scope.pop(cell, None)
    for place, value in defaults_of(tree.args, function):
        at = next(n for n in (f"{name}_default_{k}" for k in itertools.count()) if n not in scope)
        scope[at] = value
        holder, k = place
        holder[k] = ast.Name(at, ast.Load())
    if isinstance(tree, ast.Lambda):
        text = f"{name} = {ast.unparse(tree)}\n"
    else:
        tree.decorator_list, tree.name = [], name
        text = ast.unparse(tree) + "\n"
    module.trees[name] = function, tree
    module.annotated = True
    for outside in names_read(f"from __future__ import annotations\n{text}"):
        if outside in scope:
            try:
                module.add(outside, scope[outside])
            except KindError as error:
                error.origin = error.origin or place_of(function)
                raise
        elif not hasattr(builtins, outside):
            raise KindError(f"{function.__name__} reads {outside}, which is not defined", place_of(function),
                            "Define it before the call.")
    module.definitions.append(text)


def defaults_of(args: ast.arguments, function: types.FunctionType) -> Iterable[tuple[tuple[list, int], Any]]:
    """((list, index) of the expression, value) of each default that is not written as a constant."""
    own = list(function.__defaults__ or ())
    if len(own) != len(args.defaults):
        raise KindError(f"{function.__name__} has other defaults than its text", place_of(function),
                        "Write them in its header.")
    found: list = [((args.defaults, k), value) for k, value in enumerate(own)]
    words = function.__kwdefaults__ or {}
    found += [((args.kw_defaults, k), words[a.arg]) for k, a in enumerate(args.kwonlyargs) if a.arg in words]
    for (holder, k), value in found:
        node = holder[k]
        if not (isinstance(node, ast.Constant) and type(node.value) is type(value) and repr(node.value) == repr(value)):
            yield (holder, k), value


def refuse_streams(value: Any, name: str) -> None:
    """KindError for a random generator, of which each process would have a copy."""
    if type(value) in STREAMS or isinstance(value, random.Random):
        raise KindError(f"{name} is or holds a random generator, and all workers would draw the same numbers from "
                        "copies of it", None, "Give each example its own: rng.spawn(n), or gs.random.split(key, n).")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else \
        [getattr(value, n, None) for n in value.__dataclass_fields__] if dataclasses.is_dataclass(value) else ()
    for part in inside:
        refuse_streams(part, name)


# --- a program to a function ------------------------------------------------------------------------------------------

def function_of(program: Program) -> Callable[..., Any]:
    """The function of a program, in this process."""
    if program.machine is None:
        space = {"__name__": "mapped", **program.data}
        found = build(program.text, program.label, space) if program.text.strip() else space[program.label]
    else:
        found = compiled_from(program.text, program.machine)
    if not program.convert:
        return found

    def call(*args):
        return found(*[float(a) if k in program.convert else a for k, a in enumerate(args)])
    return call


def compiled_from(text: str, machine: Machine) -> Callable[..., Any]:
    """The function of a compiled program: its machine code is read from the disk by its key, or compiled."""
    from gradscribe.codegen.jit_cpu import rebuilt
    compiled = rebuilt(text, machine.made, machine.kinds, machine.results, machine.extra)
    space = {**machine.space, "compiled": compiled, "run": compiled.function, "__name__": "gradscribe.jit"}
    exec(machine.call, space)
    return space["call"]


# --- what was computed ------------------------------------------------------------------------------------------------

def digest(value: Any) -> str:
    """A hash of a value: equal for equal arrays, numbers and containers, in every process.

    >>> digest({"w": np.ones(2), "n": 1}) == digest({"w": np.ones(2), "n": 1}), digest(1.0) == digest(1)
    (True, False)
    """
    found = hashlib.sha256()
    feed(found.update, value)
    return found.hexdigest()


def feed(update: Callable[[bytes], Any], value: Any) -> None:
    """Pass the content of a value to a hash, piece by piece; what is no array, number or container, as its pickle."""
    kind = type(value)
    update(f"{kind.__module__}.{kind.__qualname__} ".encode())
    if kind is np.ndarray and value.dtype != object:
        update(f"{value.dtype.str}{value.dtype.descr if value.dtype.names else ''}{value.shape}".encode())
        update(value.data.cast("B") if value.size and value.ndim and value.flags.c_contiguous and
               value.dtype.kind in "biuf" and value.dtype.isnative else value.tobytes())
    elif kind is float:
        update(struct.pack("<d", value))
    elif kind in (bool, int, complex, str, type(None)) or isinstance(value, np.generic):
        update(repr(value).encode() if not isinstance(value, np.generic) else value.tobytes())
    elif isinstance(value, dict):
        update(f"{len(value)} ".encode())
        for key, item in value.items():
            feed(update, key)
            feed(update, item)
    elif isinstance(value, (list, tuple)):
        update(f"{len(value)} ".encode())
        for item in value:
            feed(update, item)
    elif isinstance(value, (np.dtype, types.ModuleType)) or inspect.isclass(value) or inspect.isbuiltin(value):
        update(repr(value).encode())
    else:
        update(pickle.dumps(value))
