# SPDX-License-Identifier: Apache-2.0
"""Compiles a function in normal form for the CPU: `lowering` makes loops of it, and Numba compiles them.

The arguments of the compiled function are the leaves of the parameters, contiguous arrays and scalars, followed by the
captured arrays.  Its signature is fixed, so nothing is compiled at a call.
"""
import ast
import dataclasses
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Function, Var
from gradscribe.ast_transform.core.kinds import Array, Stream, spell
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.passes.out_of_ssa import RESERVED, coalesce
from gradscribe.ast_transform.passes.verify import verified
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import RuleError, TransformError
from gradscribe.codegen import cache, foreign
from gradscribe.codegen.collectives import CALLS, functions, numbered
from gradscribe.codegen.exact import exact_functions
from gradscribe.codegen.helpers import HELPERS, addressed, compiled_and_kept, helpers, leaves_unsaid
from gradscribe.codegen.launching import Launcher, apart, can_launch
from gradscribe.codegen.llvm_inline import STRAIGHT, straight
from gradscribe.codegen.loops.allocation import on_stack
from gradscribe.codegen.loops.analysis.undecided import undecided
from gradscribe.codegen.loops.copies import propagate_copies
from gradscribe.codegen.loops.decisions import mark_decisions
from gradscribe.codegen.loops.form import Function as Loops
from gradscribe.codegen.loops.form import blocks, copied, set_in
from gradscribe.codegen.loops.outline import outline
from gradscribe.codegen.loops.pipeline import for_cpu, optimised
from gradscribe.codegen.loops.scalar_regions import as_calls, with_repeated
from gradscribe.codegen.loops.trees import from_tree, to_tree, with_types
from gradscribe.codegen.loops.uniform import apart_functions, mark_shared, mark_uniform
from gradscribe.codegen.lowered import UNCOMPILED, Lowering, Program, compiles
from gradscribe.codegen.lowering import lower
from gradscribe.codegen.phi_types import settle
from gradscribe.codegen.primitives import in_place
from gradscribe.codegen.region_forms import for_numba, release
from gradscribe.runtime import compiled

NOT_SPREAD = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
LEVELS = 90                         # Python's parser takes 100, and later passes add some
FAST = frozenset({"contract", "arcp"})          # sums have more flags, see decisions.py


class Compiled:
    """A compiled function of the leaves of the arguments, in the order of the parameters.

    Attributes: function (returns the leaves of the result that are not known when compiling), source (the text that was
    compiled), results (the kind of each leaf of the result), extra (captured arrays, passed after the leaves).
    """

    def __init__(self, source, function, kinds, results, extra, made, reports=(), fit=None):
        """made: the label and the flags that the text was compiled with, None if it has no LLVM IR; reports: Python
        functions that its reports call, kept alive here; fit(value, kind): converts an argument that it does not take.
        """
        self.source, self.function, self.kinds, self.results, self.extra = source, function, kinds, results, extra
        self.made, self.reports, self.fit = made, reports, fit or _fitted

    @property
    def leaves_unsaid(self) -> bool:
        """Whether it may raise Unsaid, upon which the plain function runs, for its result or its error message."""
        words = set(re.findall(r"\b[A-Za-z_]\w*\b", self.source))
        return "Unsaid" in words or any(leaves_unsaid(name) for name in words & HELPERS.keys())

    @property
    def can_be_launched(self) -> bool:
        """Whether it can run on several threads by `launcher`."""
        return can_launch(self)

    def launcher(self, name: str, size: int, plain: Callable) -> Launcher:
        """What runs it on several threads in parallel: see launching.py."""
        return Launcher(self, name, size, plain)

    apart = staticmethod(apart)

    def llvm(self):
        """The LLVM IR; code that was read from the disk has none, and is compiled again."""
        label, flags = self.made
        (found,) = self.function.overloads.values()
        if found.library._disable_inspection:
            (found,) = compiled_text(self.source, label, self.kinds, flags, again=True).overloads.values()
        return found.library.get_llvm_str()

    def __call__(self, *leaves):
        """The leaves of the result, including those that are known when compiling."""
        try:
            out = iter(self.function(*leaves, *self.extra))
        except TypeError:
            out = iter(self.fitted(*leaves, *self.extra))
        return tuple([what if kind == "literal" else what.type(next(out)) if kind == "scalar" and not isinstance(
            what, type) else next(out) for kind, what in self.results])

    def fitted(self, *leaves):
        """Calls it with arguments that are not contiguous, not writable, or of another dtype."""
        return self.function(*self.taken(leaves))

    def taken(self, leaves):
        """Arguments converted to the contiguous, writable arrays that the compiled function takes."""
        return [self.fit(a, k) for a, k in zip(leaves, self.kinds)]


def _fitted(value, kind):
    """An argument, converted to the scalar or the contiguous, writable array that the compiled function takes."""
    dtype, rank = kind
    if dtype == "generator":
        return value
    if not rank:
        return dtype.type(np.asarray(value)[()])
    array = np.ascontiguousarray(value, dtype=dtype)
    return array if array.flags.writeable and array.flags.aligned else array.copy()


def compile_function(function: Function, captured: dict | None = None, fast_math: bool = True,
                     parallel: bool = False, meet: Callable[[list], None] | None = None,
                     filled: Iterable = ()) -> Compiled:
    """Compiles a finished normal form without containers.

    captured: the arrays read from outside; meet: called with lists of the symbols of argument lengths that the loops
    compare although they were equal in the example; it may raise; filled: lengths of arguments that are not 0.
    """
    keep_memory()
    passes = functools.partial(for_cpu, parallel=parallel, any_order=fast_math)
    text, program, extra, origins = lowered(function, captured or {}, passes, meet=meet, filled=filled)
    kinds = []
    for name, p in [*((p.name, p.value.fact) for p in program.inputs), *extra_facts(extra)]:
        if isinstance(p, Stream) and p.cls is np.random.Generator:
            kinds.append(("generator", 0))
            continue
        if not isinstance(p, Array) or not compiles(p.dtype):
            raise RuleError(f"{name} is {spell(p)}, which Numba does not support", place_of(function.about, name),
                            UNCOMPILED)
        kinds.append((np.dtype(p.dtype), p.rank))
    flags = FAST if fast_math else frozenset()
    if " in prange(" in text:           # Numba does not pass no_estimates_ on to the functions of parallel loops
        flags = flags - {"arcp"} | {"parallel"}
    try:
        dispatcher = compiled_text(text, function.label, kinds, flags, function=program.loops)
    except TransformError:
        raise
    except Exception as error:
        raise _explained(error, text, origins) from error
    return Compiled(text, dispatcher, kinds, program.results, tuple(extra), (function.label, flags),
                    tuple(program.reports))


@functools.cache
def keep_memory():
    """Has glibc keep freed memory in the process, by freeing one array of this size: the temporaries of a call then
    reuse the memory of the last call's, without page faults.

    Source: malloc.c of glibc, DEFAULT_MMAP_THRESHOLD_MAX and how free() treats a mapped chunk below it.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)


def lowered(function: Function, captured: dict, passes: Callable[..., Any] = for_cpu,
            meet: Callable[[list], None] | None = None, filled: Iterable = ()) -> tuple[str, Program, list, list]:
    """(text for Numba, the program that it prints, captured arrays, origins of lines) of a function; passes: over its
    loops; meet, filled: as in compile_function.
    """
    program, extra = in_loops(function, captured, filled=filled)
    if meet is not None:
        passes = functools.partial(passes, looked_at=lambda loops: meet(equal_in_example(program, loops)))
    text, origins = optimised(program.loops, passes)
    return text, program, extra, origins


def in_loops(function: Function, captured: dict, change: Callable[[Lowering], Any] | None = None,
             for_threads: bool = False, filled: Iterable = (), words: bool = False) -> tuple[Program, list]:
    """(a lowered function, captured arrays); `loops` of the first is the function in loop form.

    change: called with the lowering before types are known; for_threads: whether a device's threads will run it;
    filled: as in compile_function; words: whether temporaries have descriptive names.
    """
    for p in function.params:
        if isinstance(p.value, Var) and isinstance(p.value.fact, Array) and not compiles(p.value.fact.dtype):
            raise RuleError(f"{p.name} is {spell(p.value.fact)}, which Numba does not support",
                            place_of(function.about, p.name), UNCOMPILED)
    outside = list({id(v): (v, value) for v, value in captured.values()}.values())
    known = set()
    for v, _ in outside:                # two captured arrays may have the same name
        hint, k = v.hint, 0
        while v.hint in known:
            k += 1
            v.hint = f"{hint}_{k}"
        known.add(v.hint)
    made = settle(function, RESERVED | {*HELPERS, *CALLS, *foreign.NAMES, *(v.hint for v, _ in outside)})
    renamed = made.notes["renamed"]
    taken = {*HELPERS, *CALLS, *foreign.NAMES} | {v.hint for v, _ in outside}
    naming = verified(made, coalesce(made, taken, indices_apart=True, words=words))
    for v, _ in outside:
        naming.names[v] = v.hint
        renamed[v] = v
    lowering = lower(made, naming, {*naming.names.values(), *taken, *(p.name for p in made.params)}, for_threads)
    program = lowering.program
    if function.label in taken | {"np", "math", "prange", "Unsaid"}:        # the name of something that it calls
        function.label += "_"
    names = [p.name for p in program.inputs] + [v.hint for v, _ in outside] + [n for n, _ in program.lifted]
    extra = [value for _, value in outside] + [value for _, value in program.lifted]
    if change is not None:
        change(lowering)
    deep = too_deep(lowering.body)
    if deep is not None:
        raise RuleError(f"more than {LEVELS} nested branches and loops", deep.origin,
                        "Write a loop over a table, or np.select.")
    given = [(p.name, p.value.fact) for p in program.inputs]
    given += zip(names[len(program.inputs):], map(describe, extra))
    facts = {name: v.fact for v, name in naming.names.items()} | dict(given)
    types = lowering.kinds | {n: (np.dtype(f.dtype).name, f.rank) for n, f in facts.items() if isinstance(f, Array)}
    program.loops = with_types(Loops(function.label, names, {}, lowering.body), types)
    filled = {n.normal().symbol for n in filled}
    program.loops.filled = frozenset(p.name for p in program.inputs if isinstance(p.value.fact, Array) and all(
        n.symbol in filled and n.offset >= 0 or n.symbol is None and n.offset > 0
        for n in (d.normal() for d in p.value.fact.dims))) - set_in(lowering.body)
    return program, extra


def equal_in_example(program, loops):
    """The symbols of argument lengths that the loops compare, grouped by their size in the example."""
    named = {name.id: symbol for symbol, (name, _) in program.named_lengths.items() if not symbol.asked}
    found = []
    for names in undecided(loops, set(named)):
        by_size = {}
        for name in names:
            by_size.setdefault(named[name].size, []).append(named[name])
        found += [symbols for size, symbols in by_size.items() if size is not None and len(symbols) > 1]
    return found


def too_deep(block, level=1):
    """The first statement that is nested too deeply, or None."""
    for s in block:
        found = s if level >= LEVELS else next(filter(None, (too_deep(b, level + 1) for b in blocks(s))), None)
        if found is not None:
            return found
    return None


def extra_facts(extra: Iterable[Any]) -> list[tuple[str, Any]]:
    return [("a value from outside", describe(value)) for value in extra]


# --- Numba ------------------------------------------------------------------------------------------------------------

def compiled_text(text, label, kinds, flags, again=False, function=None):
    """The dispatcher of a text's function for arguments of these kinds, from the disk or newly compiled.

    again: compile in any case; function: its loop form, by default read from the text.
    """
    import numba
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
    borrowed = foreign.functions(words)
    key = key_of_text(text, label, kinds, flags)
    module = cache.module_for(key)
    module.__dict__.update(borrowed)
    module.__dict__.update({n: straight()[n] if n in STRAIGHT else helpers()[n] for n in words & HELPERS.keys()})
    if not words.isdisjoint(CALLS):
        module.__dict__.update(functions())
    module.__dict__.update(np=np, math=math, Unsaid=compiled.Unsaid)
    cache.show(module.__file__, text)
    threads = {"prange": True, **dict.fromkeys(NOT_SPREAD, False)} if "parallel" in flags else False
    if threads:
        module.__dict__["prange"] = numba.prange
    jitted = numba.njit(error_model="numpy", fastmath=set(flags) - {"parallel"}, nogil=True, no_cfunc_wrapper=True,
                        parallel=threads)
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    dispatcher = jitted(module.__dict__[label])
    if again or not cache.load(key, dispatcher, addressed):
        with cache.one_at_a_time(key):
            if again or not cache.load(key, dispatcher, addressed):
                tries = (False,) if threads else (True, False)
                function = function or of_text(text, kinds)
                dispatcher = _compiled(module, function, label, kinds, (jitted, tries, "contract" in flags), key)
    dispatcher.disable_compile()
    cache.keep_with(module, dispatcher)
    return dispatcher


def key_of_text(text: str, label: str, kinds: Iterable[tuple], flags: Iterable[str]) -> str:
    """The key of a text's compiled code in the cache."""
    borrowed = foreign.functions(set(re.findall(r"\b[A-Za-z_]\w*\b", text)))
    return cache.key_of(text + foreign.version() if borrowed else text, label, kinds, flags)


def rebuilt(text: str, made: tuple, kinds: list, results: list, extra: tuple) -> Compiled:
    """A compiled function that was compiled in another process: read from the disk, or compiled from its text.

    made, kinds, results, extra: attributes of the Compiled there.
    """
    keep_memory()
    label, flags = made
    return Compiled(text, compiled_text(text, label, kinds, flags), kinds, results, extra, made)


def of_text(text: str, kinds: Iterable[tuple]) -> Loops:
    """The loop form of a printed function; kinds: of its parameters."""
    tree: Any = ast.parse(text).body[0]
    types = {a.arg: (np.dtype(dtype).name, rank) for a, (dtype, rank) in zip(tree.args.args, kinds)
             if dtype != "generator"}
    return from_tree(tree, types)


def _compiled(module, function, label, kinds, how, key):
    """Compiles the function with its scalar regions or, if Numba refuses that, as it is; stores and returns it."""
    import numba
    (jitted, tries, fast), signature = how, tuple(numba_type(dtype, rank) for dtype, rank in kinds)
    for with_regions in tries:
        found = _put(module, function, with_regions, fast, jitted)
        dispatcher = jitted(module.__dict__[label])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)  # of loops left to one core
                compiled_and_kept(signature, key, dispatcher)
            release(module.__dict__)
            return dispatcher
        except Exception:
            if not found:
                raise               # Numba refuses the text as it is


def _put(module, function, with_regions, fast, jitted):
    """Puts a function and the outlined functions of its repeated parts into its module; returns its scalar regions, if
    any.  fast: exempts decisions from fast math; jitted: Numba's decorator.
    """
    function = dataclasses.replace(function, types=dict(function.types), block=list(map(copied, function.block)))
    propagate_copies(function)          # an array that reuses another's memory gets its name
    numbered(function)
    if fast:
        mark_decisions(function)
    mark_uniform(function)
    mark_shared(function)
    short = on_stack(function)
    found = as_calls(function, short) if with_regions else []
    outlined = outline(function, short)
    tree, names = in_place(ast.fix_missing_locations(ast.Module(list(map(to_tree, [*outlined, function])), [])), short)
    module.__dict__.update(names)
    module.__dict__.update({r.name: for_numba(r, module.__dict__) for r in with_repeated(found, [*outlined, function])})
    module.__dict__.update(exact_functions() | apart_functions())
    exec(compile(tree, module.__file__, "exec"), module.__dict__)
    module.__dict__.update({f.name: jitted(module.__dict__[f.name]) for f in outlined})
    return found


def numba_type(dtype, rank):
    import numba
    if dtype == "generator":
        return numba.typeof(np.random.default_rng(0))
    scalar = numba.from_dtype(np.dtype(dtype))
    return numba.types.Array(scalar, rank, "C") if rank else scalar


def _explained(error, text, origins):
    """Numba's error at the user's line."""
    line = getattr(getattr(error, "loc", None), "line", None)
    message = str(error)
    found = [int(n) for n in re.findall(r"\((\d+)\)", message)] if line is None else [line]
    lines = text.splitlines()
    place = next((n for n in reversed(found) if 0 < n <= len(lines)), None)
    origin = None
    if place is not None:
        origin = next((o for o in origins[place - 1 :: -1] if o is not None), None)
    told = [m.strip() for m in message.splitlines() if m.strip() and not m.startswith(("Failed in", "During"))]
    first = told[0] if told else type(error).__name__
    advice = "Numba was given the text in .source" if place is None else f"Numba was given: {lines[place - 1].strip()}"
    return TransformError(f"Numba does not compile this: {first}", origin, advice)

