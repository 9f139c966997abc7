# SPDX-License-Identifier: Apache-2.0
"""Compiles a function in normal form for a device: arguments are moved to the device, results stay there."""
import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import pickle
import re
import warnings
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.kinds import Array, spell
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import LaunchError, OutOfMemory, RuleError, TransformError
from gradscribe.codegen import cache, foreign, helpers
from gradscribe.codegen.half_precision import Widened, is_single
from gradscribe.codegen.jit_cpu import Compiled, extra_facts, in_loops
from gradscribe.codegen.loops.half_storage import HALF, SINGLE
from gradscribe.codegen.loops.pipeline import optimise
from gradscribe.codegen.lowered import UNCOMPILED, compiles
from gradscribe.codegen.targets.cuda.module import Options, module_of
from gradscribe.codegen.targets.cuda.passes import for_threads
from gradscribe.runtime import assembled, device, device_functions, indices, on_device
from gradscribe.runtime.device_functions import type_of_bfloat16
from gradscribe.runtime.graphs import Graphed

_moved: list[bool] = []

OF_DRIVER = {"CudaAPIError", "CUDARuntimeError", "CUDADriverError"}         # Numba's and CuPy's


def line_of(error):
    """The line of an emitted module in the traceback of an error, or None."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<gradscribe.cuda."):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def explained(error, origins):
    """A device's error with advice for the user; None for all other errors.

    origins: the origin of each line of the module.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        held, trace, line = {}, error.__traceback__, line_of(error)
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith("<gradscribe.cuda."):
                held |= {n: v.nbytes for n, v in trace.tb_frame.f_locals.items() if getattr(v, "ndim", 0)}
            trace = trace.tb_next
        if not held:
            return None
        largest = sorted(held, key=held.get, reverse=True)[:3]
        wanted = f"{str(error) or 'the device has no memory left'}; the largest arrays of the call until then: " + \
            ", ".join(f"{n}, {held[n] / 1e6:.1f} MB" for n in largest)
        return OutOfMemory(wanted, origins[line - 1] if line <= len(origins) else None,
                           "Arrays named ..._saved are kept for the backward pass: gs.checkpoint of the code that "
                           "fills them has it run again instead.")
    message = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip()
    if type(error).__name__ in OF_DRIVER:
        line = line_of(error)
        return LaunchError(f"the device stopped: {message.splitlines()[0]}", None if line is None or line > len(
            origins) else origins[line - 1], "Kernels run asynchronously, so an earlier one may have failed: "
            "CUDA_LAUNCH_BLOCKING=1 has the host wait for each. If you set check_bounds=False, leave that out.")
    place = re.search(r'File "<gradscribe\.cuda\.\w+>", line (\d+)', message)
    if place is None or "umba" not in type(error).__module__:
        return None
    line = int(place[1]) - 1
    return TransformError(f"Numba's CUDA does not compile this: {message.splitlines()[0]}",
                          next((o for o in origins[line::-1] if o is not None), None) if line < len(origins) else None,
                          "Compute it on the processor, by gs.jit(f).")


@functools.cache
def on_processor(name):
    """A runtime function, compiled for the CPU, that Python may call."""
    import numba
    function = helpers.HELPERS[name]
    given = ", ".join(function.__code__.co_varnames[:function.__code__.co_argcount])
    space = {"called": helpers.helpers()[name]}
    exec(f"def {name}({given}):\n    return called({given})\n", space)
    return numba.njit(error_model="numpy")(space[name])


def kept(about, make):
    """The result of make(), a tuple of numbers, texts and bytes, cached on disk for the same versions and texts."""
    key = hashlib.sha256("\0".join([cache.stamp(), of_device(), *about]).encode()).hexdigest()[:40]
    found = cache.entry_of(key)
    if found is not None:
        return pickle.loads(found)
    made = make()
    cache.keep(key, pickle.dumps(made))
    return made


@functools.cache
def of_device():
    """The versions of the device's compilers, and the source of the functions that kernels call."""
    versions = []
    for name in ("numba-cuda", "numba-cuda-mlir", "nvidia-nvjitlink", "cuda-bindings", "nvidia-nvvm"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    return "\n".join([*versions, *map(inspect.getsource, (assembled, device_functions, indices, on_device))])


device.provide(on_processor, lambda name: foreign.functions({name})[name], kept)


def called(function, kinds, origins):
    """A compiled module's function for NumPy arrays, which are copied to the device, and a device's arrays; its errors
    are explained by the origin of each line.
    """
    def call(*leaves):
        try:
            return function(*[as_given(a, k) for a, k in zip(leaves, kinds)])
        except Exception as error:
            told = explained(error, origins)
            if told is None:
                raise
            raise told from error
    return call


def as_given(value, kind):
    """An argument as the host function takes it: a scalar, or an array on the device."""
    dtype, rank = kind
    if not rank:
        return dtype.type(value.item() if hasattr(value, "item") else value)
    cp = device.cp
    if isinstance(value, np.ndarray) and cp is not np and not _moved:
        _moved.append(True)
        warnings.warn("NumPy arrays are copied to the device at each call: give the function the device's arrays, "
                      "as cupy.asarray(x) makes them", stacklevel=6)
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, cp.ndarray)):
        value = cp.from_dlpack(value)
    return cp.ascontiguousarray(cp.asarray(value, dtype=dtype))


def compile_function(function: Any, captured: dict | None = None, options: tuple = ()) -> Compiled:
    """Compiles a finished normal form without containers for a device.

    captured: the arrays read from outside; options: the fields of module.Options.
    """
    options = Options(*options)._replace(single=is_single(function, captured or {}))
    widened = Widened(function, captured or {}, options.bfloat16)
    program, extra = in_loops(widened.function, widened.captured, widened.allocate if widened.some else None, True)
    function, about = program.loops, function.about
    optimise(function, for_threads)
    widened.store(function)
    given = [(p.name, Array(dtype, p.value.fact.dims) if dtype == HALF else p.value.fact) for p, dtype in zip(
        program.inputs, widened.given)]
    kinds = []
    for name, p in [*given, *extra_facts(extra)]:
        if not isinstance(p, Array) or not compiles(p.dtype) and p.dtype != HALF:
            raise RuleError(f"{name} is {spell(p)}, which the device does not support", place_of(about, name),
                            UNCOMPILED)
        kinds.append((SINGLE if p.dtype == HALF and not p.dims else np.dtype(p.dtype), p.rank))
    results, short = program.results, np.dtype(type_of_bfloat16()) if options.bfloat16 else HALF
    if widened.some:
        results = widened.results_as(results, short)
    made = module_of(function, options)
    results = [("given", what) if kind == "scalar" and name in made.held else (kind, what)
               for (kind, what), name in zip(results, results_in(made, results))]
    kinds = [(short if dtype == HALF else dtype, rank) for dtype, rank in kinds]
    function = called(Graphed(built(made)) if options.graph else built(made), kinds, made.origins)
    extra = [as_given(e, k) for e, k in zip(extra, kinds[len(kinds) - len(extra):])]
    return Compiled(made.text, function, kinds, results, extra, None, fit=as_given)


def results_in(made, results):
    """The name of each result in the module's return statement; None for literals."""
    names = iter(made.returned)
    return [None if kind == "literal" else next(names) for kind, _ in results]


def built(made):
    """The host function of a module, bound to the current back end."""
    name = f"gradscribe.cuda.{hashlib.sha256(made.text.encode()).hexdigest()[:16]}"
    place = f"<{name}>"
    space = {"__name__": name}
    cache.show(place, made.text)
    exec(compile(made.text, place, "exec"), space)
    device.ready(space)
    return space[made.label]
