# SPDX-License-Identifier: Apache-2.0
"""gs.jit: the specialised normal form, with containers flattened into their leaves, compiled by Numba."""
import functools
import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast, overload

import numpy as np

from gradscribe.api import _decorator
from gradscribe.ast_transform.core.form import Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Opaque
from gradscribe.ast_transform.core.kinds import Sequence as Container
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.bfloat16 import Bfloat16
from gradscribe.ast_transform.reader.outer_state import APPENDED, name_of_object
from gradscribe.ast_transform.requirements import place_of, place_of_result
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, TransformError
from gradscribe.ast_transform.transforms import identity
from gradscribe.codegen.interrupts import stopped_cleanly
from gradscribe.colours import Source
from gradscribe.entry import OTHER, entry_for
from gradscribe.frames import leaving, public
from gradscribe.given import Foreign, holds_children, mapped
from gradscribe.lengths import not_empty
from gradscribe.named import bound, counted, found_on, reduced, take_name
from gradscribe.progress import telling
from gradscribe.recorded import record, recording
from gradscribe.runtime.compiled import Unsaid
from gradscribe.runtime.groups import own_errors
from gradscribe.transformed import Transformed, Version, guards_of, is_transformed

ENTRIES = 8                             # the most kinds of arguments for which a fast path is made
CHOSEN = False, False, True, False      # defaults of graph, deterministic, check_bounds, tf32 for target="cuda"


@overload
def jit(
    fun: Callable, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
    *, fastmath: bool = True, parallel: bool = False, target: str = "cpu", graph: bool = False,
    deterministic: bool = False, check_bounds: bool = True, tf32: bool = False, donate_argnums: Any = None,
    donate_argnames: Any = None, keep_unused: bool = False, inline: bool = False,
) -> "Jitted": ...


@overload
def jit(
    fun: None = None, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
    *, fastmath: bool = True, parallel: bool = False, target: str = "cpu", graph: bool = False,
    deterministic: bool = False, check_bounds: bool = True, tf32: bool = False, donate_argnums: Any = None,
    donate_argnames: Any = None, keep_unused: bool = False, inline: bool = False,
) -> Callable[[Callable], "Jitted"]: ...


@public
def jit(
    fun: Callable | None = None, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
    *, fastmath: bool = True, parallel: bool = False, target: str = "cpu", graph: bool = False,
    deterministic: bool = False, check_bounds: bool = True, tf32: bool = False, donate_argnums: Any = None,
    donate_argnames: Any = None, keep_unused: bool = False, inline: bool = False,
) -> Callable:
    """The function compiled for the CPU or for CUDA, one version for each kind of arguments.

    Lists, tuples, dictionaries, named tuples and dataclasses of arrays are accepted and returned.  The attribute
    `lowered` is the text that was compiled.
    static_argnums, static_argnames: arguments whose values are compile-time constants; negative numbers count from the
    last positional parameter.
    fastmath: allows sums over the passes of a loop in any order, fused multiply-add, and products with the reciprocal
    for divisions by a scalar; NaN and infinities keep their meaning.  Without it, arithmetic and square roots of
    entries equal NumPy's to the last bit, and sums run from first to last.  Elementary functions are accurate to two
    units in the last place in either case.
    parallel: outermost loops with enough work are spread over the cores (NUMBA_NUM_THREADS).  The last digits of a sum
    then depend on their number; with fastmath=False, sums stay on one core.
    target: "cpu" or "cuda".  With "cuda", device arrays (CuPy's, and others' by DLPack) are accepted and returned, and
    NumPy arrays are copied to the device; `lowered` is the module of the kernels and the function that launches them.
    float16 and bfloat16 (of ml_dtypes) arrays are stored as such and computed with in single precision.
    graph: with CUDA, calls after the first with the same shapes run as one CUDA graph on copies of their arguments;
    useful for functions of many short kernels.
    deterministic: with CUDA, scatter additions (`z[k[i]] += v`) are sorted by index, so that every call gives the same
    bits.  All other sums do so without it.
    check_bounds: with CUDA, an index array with an entry out of bounds raises IndexError after the kernels, for which
    the call waits; without it, such an index reads or writes other memory.
    tf32: with CUDA, the factors of single-precision matrix products are rounded to 10 bits of fraction, for which the
    device has much faster units; JAX does so by default.  Sums stay in single precision.
    donate_argnums, donate_argnames, keep_unused, inline: accepted for compatibility with JAX, without effect.

    Raises TransformError, which shows the line, for what Numba cannot compile.

    >>> import numpy as np, gradscribe as gs
    >>> gs.jit(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    np.float64(5.0)
    """
    if target not in ("cpu", "cuda"):
        raise KindError(f"target must be 'cpu' or 'cuda', not {target!r}")
    if target == "cuda":
        if parallel or not fastmath:
            raise KindError("parallel and fastmath=False are for the processor", None, "Leave them out: threads of a "
                            "device take the loops that they can, and a sum is the same from call to call.")
        chosen = bool(graph), bool(deterministic), bool(check_bounds), bool(tf32)
        return _decorator(lambda f: OnDevice(f, static_argnums, static_argnames, chosen), fun)
    if graph or deterministic or tf32 or not check_bounds:
        word = "graph=True" if graph else "deterministic=True" if deterministic else "tf32=True" if tf32 else \
            "check_bounds=False"
        raise KindError(f"{word} is for target='cuda'", None, "Leave it out: on the processor, sums have one order, "
                        "products all the bits of their dtype, and indices are checked.")
    compiler = Compiler(functools.partial(code_for_cpu, bool(fastmath), bool(parallel)))
    return _decorator(lambda f: Jitted(f, static_argnums, static_argnames, compiler), fun)


def _read_jit(reader, args, words, node):
    """Inside a function that is being transformed, jit has no effect: the whole is compiled, or nothing."""
    if len(args) != 1:
        raise KindError("gs.jit inside a function that is transformed is given the function", reader.build.origin,
                        "Write gs.jit(f, ...), or @gs.jit without brackets.")
    return args[0]


cast(Any, jit).normal_form_ = _read_jit


@contextmanager
def no_collection():
    """Suspend Python's cyclic garbage collector: a compilation's trees are all alive, and scans cost a tenth of it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Compiler(NamedTuple):
    """How a compiled function's versions are made.

    code_of(normal_form, captured, meet, filled): the compiled function for a normal form
    """
    code_of: Callable[..., Any]
    platform: str = "cpu"
    half: str = "float16"               # the format that float16 means in facts, or bfloat16

    @no_collection()
    def version(self, fn, key, names, facts, words, convert):
        """The version of a transformed function for arguments with these facts."""
        normal_form, pipeline = fn.normal_form(names, facts, words, True, platform=self.platform, half=self.half)
        reader, writes = pipeline.reader, pipeline.reader.memory.writes_arguments
        captured, inputs = reader.environment.captured, reader.outer.inputs
        outputs = [] if is_transformed(fn.base) else reader.outer.argument_outputs
        if reader.containers.given_changed is not None and not is_transformed(fn.base):
            raise LanguageError(
                "changing a container that is an argument is not compiled",
                reader.containers.given_changed,
                "Make a new one, and return it: {**items} or [*items].",
            )
        try:
            with telling("compiling", fn.__name__, fn._count), stopped_cleanly():
                compiled = self.code_of(normal_form, captured, fn._lengths.meeting(key[:2], facts, words),
                                        not_empty(facts, words))
        except TransformError as error:
            error.origin = error.origin or place_of_result(fn.base)
            raise
        call = caller(facts, words, normal_form, compiled, inputs, outputs, reader.outer.outputs)
        if compiled.leaves_unsaid:
            call = worded(call, fn.base, len(names), list(words))
        if compiled.reports:
            call = raising(call)
        later = [f"{name}.append(...)" for _, name, *_ in reader.outer.appended] + [
            f"{name_of_object(reader, holder)}.{name} = ..."
            for holder, name, _ in reader.outer.outputs
            if name != APPENDED
        ]
        text = compiled.source + "".join(f"# after each call: {line}\n" for line in later)
        version = Version(key, normal_form, None, text, call, guards_of(reader), convert,
                          (fn, len(names), captured) if writes else None)
        version.compiled = compiled
        if not (writes or inputs or outputs or reader.outer.outputs or holds_children(fact_of(normal_form.result))):
            version.leaves = facts, words
        if recording() and self.platform == "cpu":
            record(normal_form.label, compiled.llvm(), "llvm")
        return version


def code_for_cpu(fastmath: bool, parallel: bool, *given: Any) -> Any:
    """The compiled function for a normal form, by Numba."""
    from gradscribe.codegen.jit_cpu import compile_function  # a slow import, for compilation only
    normal_form, captured, meet, filled = given
    return compile_function(normal_form, captured, fastmath, parallel, meet, filled)


def code_for_cuda(options, normal_form, captured, meet=None, filled=()):
    """The compiled function for a normal form, on the GPU."""
    from gradscribe.codegen.targets.cuda.build import compile_function  # a slow import, for compilation only
    return compile_function(normal_form, captured, options)


class Jitted:
    """A compiled function; `source` is the readable text, `lowered` the text that Numba compiled."""

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, base, static_argnums=(), static_argnames=(), compiler: Compiler | None = None):
        numbers = () if static_argnums is None else \
            (static_argnums,) if isinstance(static_argnums, int) else static_argnums
        names = () if static_argnames is None else \
            (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        numbers = [counted(base, k, "static_argnums") for k in numbers]
        compiler = compiler or Compiler(functools.partial(code_for_cpu, True, False))
        self.made = Transformed(base, identity(), compiler, "jit")
        own = self.made.parameter_names(64)
        self.made.given_static = (*numbers, *names, *(own.index(n) for n in names if n in own))
        self.__setstate__({})
        self.made._begin()
        take_name(self, base, getattr(base, "__name__", "jit"))
        self.made.__name__ = self.__name__

    def __getstate__(self):
        return {k: v for k, v in vars(self).items() if k not in ("_entry", "_entries")}

    def __setstate__(self, state):
        vars(self).update(state, _entry=None, _entries=0)

    def __getattr__(self, name: str) -> Any:
        return found_on(self, "made", name)

    def __repr__(self):
        return repr(self.made)

    def __call__(self, *args, **kwargs):
        """Compile the function for arguments of these kinds, if it is not compiled yet, and run it."""
        try:
            if self._entry is not None:
                out = self._entry(args, kwargs)
                if out is not OTHER:
                    return out
            made = self.made
            try:
                version = made.version_for(args, kwargs)
            except Foreign:
                return made.for_foreign(args, kwargs)
            if self._entries < ENTRIES and not version.convert and not (made._least or made._tied):
                self._entries += 1
                self._entry = entry_for(args, kwargs, version.function, version.guards, made._static)
            if version.convert:
                args = [float(a) if k in version.convert else a for k, a in enumerate(args)]
            return version.function(*args, *kwargs.values())
        except Exception as error:
            leaving(error)
            raise

    def compiled_for(self, args, kwargs):
        """The version for a call with these arguments, compiled if there is none."""
        return self.made.version_for(args, kwargs)

    @property
    def __wrapped__(self):
        """What `inspect.getsource` shows: the user's function, or the emitted one of a transformed function."""
        return self.base.__wrapped__ if is_transformed(self.base) else self.base

    @property
    @public
    def llvm(self) -> str:
        """The LLVM IR of the last call's version, optimised for this processor.

        It shows what LLVM has made of a loop: the sum of 0, 1, ... n - 1 has become a product.

        >>> import gradscribe as gs
        >>> def total(n):
        ...     s = 0
        ...     for i in range(n):
        ...         s += i
        ...     return s
        >>> fast = gs.jit(total)
        >>> int(fast(10)), " mul " in fast.llvm.split("ret i32")[0]
        (45, True)
        """
        return self._last.compiled.llvm() if self._last is not None else "; not called yet"

    @property
    def lowered(self) -> str:
        """The text that was compiled for the last call."""
        return Source(self._last.text if self._last is not None else "# not called yet")

    @property
    def source(self) -> str:
        """The emitted text of the transformed function, or the text that was compiled for a plain one."""
        return self.base.source if is_transformed(self.base) else self.lowered


class OnDevice:
    """A function compiled for CUDA; `source` is the module of its kernels and its host function.

    Versions for arrays of bfloat16, which follow the rules of float16, as NumPy has none for them, are another
    function's.  made: the one that was called last.
    """

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, base, static_argnums=(), static_argnames=(), options=()):
        self.options, self.others, self.says_bfloat16 = options, None, False
        self.made = self.usual = self.compiled_by("float16", base, static_argnums, static_argnames)
        take_name(self, base, self.made.__name__)

    def compiled_by(self, half, base, numbers, names):
        """The function with versions for one 16-bit format."""
        code_of = functools.partial(code_for_cuda, (*self.options, half == "bfloat16"))
        return Jitted(base, numbers, names, Compiler(code_of, "cuda", half))

    def __getattr__(self, name: str) -> Any:
        return found_on(self, "made", name)

    def __repr__(self):
        return repr(self.made)

    @public
    def __call__(self, *args, **kwargs):
        """Compile the function for arguments of these kinds, if it is not compiled yet, and run it on the GPU."""
        try:
            version = self.compiled_for(args, kwargs)
        except Foreign:
            return self.made.for_foreign(args, kwargs)
        args = [float(a) if k in version.convert else a for k, a in enumerate(args)]
        return version.function(*args, *kwargs.values())

    def compiled_for(self, args, kwargs):
        """The version that is compiled for these arguments."""
        given = [standing_for(a) for a in args], {k: standing_for(v) for k, v in kwargs.items()}
        if not self.says_bfloat16 and not any(holds("bfloat16", a) for a in [*args, *kwargs.values()]):
            self.made = self.usual
            try:
                return self.made.version_for(*given)
            except Bfloat16:
                self.says_bfloat16 = True
        if any(holds("float16", a) for a in [*args, *kwargs.values()]):
            raise KindError("arrays of float16 and of bfloat16 do not meet in one function", place_of(self.base),
                            "Convert them to one format, or to np.float32.")
        if self.others is None:
            static = self.usual._static
            self.others = self.compiled_by("bfloat16", self.base, [n for n in static if isinstance(n, int)],
                                           [n for n in static if isinstance(n, str)])
        self.made = self.others
        try:
            return self.made.version_for(*given)
        except TransformError as error:
            error.reason = re.sub(r"(?<!np\.)\bfloat16", "bfloat16", error.reason)
            raise

    @property
    @public
    def llvm(self):
        """Raise KindError: a function for CUDA has no LLVM IR of its own."""
        raise KindError("a function for CUDA has kernels and no LLVM IR of its own", None,
                        "`lowered` is the module that was compiled.")


@functools.lru_cache(maxsize=512)
def _stand_in(dtype, shape):
    return np.broadcast_to(np.zeros((), dtype), shape)


def holds(dtype, value):
    """Whether an argument is an array of a 16-bit dtype, of any package, or a container with one.

    >>> holds("float16", (np.zeros(3), [np.float16(1)])), holds("bfloat16", np.zeros(3, np.float16))
    (True, False)
    """
    if isinstance(value, dict):
        return any(holds(dtype, v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds(dtype, v) for v in value)
    if hasattr(type(value), "__dataclass_fields__"):
        return any(holds(dtype, getattr(value, n, None)) for n in type(value).__dataclass_fields__)
    found = getattr(value, "dtype", None)
    return getattr(found, "itemsize", 2) == 2 and str(found).rpartition(".")[2] == dtype


def standing_for(value: Any) -> Any:
    """An argument with device arrays replaced by NumPy arrays of the same shape and dtype, float16 for bfloat16.  Their
    contents are undefined.
    """
    if isinstance(value, (list, tuple, dict)) or hasattr(type(value), "__dataclass_fields__"):
        return mapped(standing_for, value)
    if holds("bfloat16", value):
        return _stand_in(np.dtype(np.float16), tuple(value.shape)) if value.ndim else np.float16(0)
    if hasattr(type(value), "__cuda_array_interface__"):
        return _stand_in(np.dtype(value.__cuda_array_interface__["typestr"]), tuple(value.shape))
    return value


def worded(call, base, count, words):
    """A call that runs the plain function for an exception whose message compiled code cannot make."""
    def guarded(*args):
        try:
            return call(*args)
        except Unsaid:
            pass
        return base(*args[:count], **dict(zip(words, args[count:])))
    return guarded


def raising(call):
    """A call that raises the exceptions that compiled code reports."""
    def guarded(*args):
        with own_errors():
            return call(*args)
    return guarded


def caller(facts, words, function, compiled, inputs=(), arguments=(), state=()):
    """A function that flattens containers, calls compiled code on the leaves, and rebuilds the results.

    inputs: attributes that are further arguments; arguments and state: the arrays among the arguments and the
    attributes that the last results are written back to.
    """
    text, space = calling(facts, words, function, compiled, inputs, arguments, state)
    space |= {"compiled": compiled, "run": compiled.function, "__name__": __name__}
    exec(text, space)
    return space["call"]


def calling(facts: Any, words: Any, function: Any, compiled: Any, inputs: Sequence = (), arguments: Sequence = (),
            state: Sequence = ()) -> tuple[str, dict[str, Any]]:
    """(text, names that it reads) of `caller`; apart from these, it reads the names `compiled` and `run`."""
    space: dict[str, Any] = {}
    parameters, leaves = taken_apart(facts, words, space)
    space |= {f"e{k}": value for k, value in enumerate(compiled.extra)}
    places = iter(_results(compiled, space))
    texts = dict(zip([p.value for p in function.params if isinstance(p.value, Var)], leaves))
    for k, (holder, name, _) in enumerate(inputs):
        space[f"in_{k}"] = holder
        leaves.append(f"in_{k}.{name}")
    result = function.result.items[0] if arguments or state else function.result
    out = _rebuilt(result, places, space)
    back = [f"    {texts[v]}[...] = {_rebuilt(now, places, space)}\n" for v, now in arguments]
    for k, (holder, name, value) in enumerate(state):
        space[f"out_{k}"] = holder
        made = _rebuilt(value, places, space)
        back.append(f"    out_{k}.append({made})\n" if name == APPENDED else f"    out_{k}.{name} = {made}\n")
    given = ", ".join([*leaves, *(f"e{k}" for k in range(len(compiled.extra)))])
    head = (f"def call({', '.join(parameters)}):\n    try:\n        r = run({given})\n"
            f"    except TypeError:\n        r = compiled.fitted({given})\n")
    text = f"{head}{''.join(back)}    return {out}\n"
    return text, space


def taken_apart(facts: Sequence, words: dict[str, Any], space: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The text of a call's parameters, and of each leaf of its arguments; space: gets the values of names in it."""
    parameters, leaves = [f"a{k}" for k in range(len(facts))] + [f"k{k}" for k in range(len(words))], []
    for parameter, fact in zip(parameters, [*facts, *words.values()]):
        leaves += _paths(parameter, fact, space)
    return parameters, leaves


def _results(compiled: Any, space: dict[str, Any], found: str = "r") -> list[str]:
    """The text of each leaf of the result: scalars as NumPy's, compile-time constants as they are."""
    out: list[str]
    out, place = [], 0
    for kind, what in compiled.results:
        name = f"given_{len(out)}"
        if kind == "literal":
            space[name] = what
            out.append(name)
            continue
        text = f"{found}[{place}]"
        if kind == "scalar" and not isinstance(what, type):
            space[name] = what.type
            text = f"{name}({text})"
        out.append(text)
        place += 1
    return out


def _key(key, space):
    """The text of a dictionary's key: strings and numbers as literals, others by a name."""
    if type(key) in (str, int):
        return repr(key)
    name = f"key_{len(space)}"
    space[name] = key
    return name


def _paths(path, fact, space):
    if isinstance(fact, Opaque):
        return []
    if not isinstance(fact, Container):
        return [path]
    out = []
    for k, element in enumerate(fact.elements):
        if fact.kind == "dict":
            inner = f"{path}[{_key(fact.keys[k], space)}]"
        elif fact.kind == "record":
            inner = f"{path}.{fact.keys[k]}"
        else:
            inner = f"{path}[{k}]"
        out += _paths(inner, element, space)
    return out


def _rebuilt(node: Var | Const | Pack, places: Iterator[str], space: dict[str, Any]) -> str:
    if isinstance(node, Pack):
        items = [_rebuilt(i, places, space) for i in node.items]
        if node.kind == "tuple":
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if node.kind == "grown":
            return f"{items[0]}.tolist()" if node.cls.weak else f"list({items[0]})"
        if node.kind == "list":
            return f"[{', '.join(items)}]"
        if node.kind == "dict":
            return "{" + ", ".join(f"{_key(k, space)}: {i}" for k, i in zip(node.keys, items)) + "}"
        name = f"cls_{len(space)}"
        space[name] = node.cls
        return f"{name}({', '.join(f'{k}={i}' for k, i in zip(node.keys, items))})"
    if isinstance(node, Const):
        name = f"const_{len(space)}"
        space[name] = node.value
        next(places)
        return name
    return next(places)
