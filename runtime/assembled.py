# SPDX-License-Identifier: Apache-2.0
"""The back end `ptx`: kernels run as plain Python, and are compiled and assembled for a device that may be absent.

Numba makes PTX, and NVIDIA's nvJitLink assembles it; both come with `pip install "gradscribe[cuda]"`.
"""
import ast
import builtins
import contextlib
import dis
import functools
import importlib.util
import inspect
import math
import re
import shutil
import subprocess
import tempfile
import textwrap
import threading
import types
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import numpy as np

from gradscribe.runtime import on_device, twin
from gradscribe.runtime.device_functions import KERNEL, PLAIN


class Report(NamedTuple):
    """Statistics of a compiled kernel for arguments of certain kinds.

    registers: per thread; spills: bytes of spilled registers; doubles: double-precision instructions; atomics: kinds of
    atomic instructions; instructions: of PTX; single: whether no argument is in double precision; machine: the number
    of machine instructions of each kind (KINDS), empty without nvdisasm.
    """
    name: str
    registers: int
    spills: int
    doubles: int
    atomics: tuple
    instructions: int
    single: bool
    machine: dict


KINDS = {                               # NVIDIA's CUDA Binary Utilities, instruction set of Hopper
    "loads": r"LDG|LD", "stores": r"STG|ST", "local": r"LDL|STL", "shared": r"LDS|STS", "atomics": r"ATOM\w*|RED\w*",
    "shuffles": r"SHFL", "double": r"D[A-Z]+|F2F|MUFU\.\w*64\w*", "single": r"F(?:ADD|MUL|FMA|SETP|MNMX|SEL|CHK)",
    "special": r"MUFU", "branches": r"BRA|BRX|CALL|RET|EXIT"}
reports: list[Report] = []
ADDRESS = 4                             # the index of an array's address among its parameters
_compiling = threading.Lock()
KEPT: list = [None]                     # the cache on disk: a function of a text, and of a function that makes its code


def reporting(architecture="sm_90"):
    """`cuda` for kernels that run as plain Python; for each, `reports` gets what the assembler says."""
    without_device(architecture)

    def observe(function):
        seen = set()

        def before(args):
            kinds = tuple(map(kind_of, args))
            apart = are_apart([span_of(a.__array_interface__["data"][0], a) for a in args if getattr(a, "ndim", 0)])
            if (kinds, apart) not in seen:
                seen.add((kinds, apart))
                reports.append(report(function, kinds, architecture, apart=apart))
        return before
    return twin.Cuda(compiled=False, observe=observe)


def without_device(architecture, backend="cuda"):
    """Have Numba compile for a device that is absent."""
    if backend == "mlir":
        from numba_cuda_mlir import cuda, tools
        if not cuda.is_available():
            capability = architecture.removeprefix("sm_")
            tools.get_gpu_compute_capability = lambda of=tuple: (int(capability[:-1]), int(capability[-1])) \
                if of is tuple else architecture
        return
    import numba.cuda.dispatcher as dispatcher
    from numba import cuda
    if not cuda.is_available():
        dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=capability_of(architecture))


def capability_of(architecture):
    """The compute capability of an architecture.

    >>> capability_of("sm_90"), capability_of("sm_120")
    ((9, 0), (12, 0))
    """
    number = architecture.removeprefix("sm_")
    return int(number[:-1]), int(number[-1])


def kind_of(value):
    """(dtype, rank, whether it is contiguous) of an argument of a kernel."""
    value = np.asarray(value)
    return value.dtype, value.ndim, value.flags.c_contiguous


def report(function, kinds, architecture="sm_90", backend="cuda", apart=False) -> Report:
    """The report on a kernel for arguments of these kinds.

    Raises Numba's error if it cannot compile the kernel.
    """
    code = machine_code(function, kinds, architecture, backend, apart)
    single = not any(dtype.name in ("float64", "complex128") for dtype, _, _ in kinds)
    return Report(function.__name__, code.registers, code.spills, len(re.findall(r"\.f64\b", code.ptx)),
                  tuple(sorted(set(re.findall(r"\b(?:atom|red)\.[\w.:]+", code.ptx)))),
                  len(re.findall(r"^\s+[a-z@%][^;]*;$", code.ptx, re.M)), single, counted(code.binary))


class Machine(NamedTuple):
    """A kernel's code for a device; entry: its name in it; size: bytes of its parameters; registers and spills: as in
    Report; binary: the code to load, or the PTX without nvJitLink.
    """
    ptx: str
    entry: str
    size: int
    registers: int
    spills: int
    binary: bytes


def machine_code(function, kinds, architecture="sm_90", backend="cuda", apart=False) -> Machine:
    """A kernel compiled for arguments of these kinds (kind_of), by Numba for CUDA ("cuda" or "mlir"), and assembled.

    apart: no two of its arrays share memory.  Loads from one then need not wait for stores to another, so that a thread
    can load several entries at once.
    """
    module, of_numba = compiler(backend)
    function = on_device.as_taken(function, backend, kernel=True)
    space = {"cuda": module, "np": np, "math": math}
    called = {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}
    for name in called - space.keys() - vars(builtins).keys():
        if name in KERNEL or name in PLAIN:
            space[name] = on_device.function(name, module, backend)
        elif name == "bfloat16":
            space[name] = np.uint16     # numbers are stored as these bits
    made = FunctionType(function.__code__, function.__globals__ | space, function.__name__, function.__defaults__,
                        function.__closure__)
    given = []
    for dtype, rank, contiguous in kinds:
        kind = of_numba.boolean if dtype.kind == "b" else getattr(
            of_numba, "uint16" if dtype.name == "bfloat16" else dtype.name)
        given.append(of_numba.Array(kind, rank, "C" if contiguous else "A") if rank else kind)
    with addresses_apart(function, kinds) if apart and backend == "cuda" else contextlib.nullcontext():
        ptx = str(module.compile_ptx(made, of_numba.void(*given), cc=capability_of(architecture))[0])
    entry, parameters = re.findall(r"\.visible \.entry (\w+)\((.*?)\)", ptx, re.S)[0]
    return Machine(ptx, entry, size_of(parameters), *assembled(ptx, architecture))


def kept_code(function, kinds, architecture, backend, apart) -> Machine:
    """machine_code with a cache on disk, shared with other processes, for kernels that call only functions of the
    runtime.
    """
    def make():
        return machine_code(function, kinds, architecture, backend, apart=apart)
    called = {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}
    known = {*KERNEL, *PLAIN, *vars(builtins), "cuda", "np", "math", "bfloat16"}
    if not called <= known or function.__closure__ or KEPT[0] is None:
        return make()
    about = [inspect.getsource(function), architecture, backend, repr(apart),
             repr([(dtype.name, rank, contiguous) for dtype, rank, contiguous in kinds])]
    return Machine(*KEPT[0](about, lambda: tuple(make())))


@contextlib.contextmanager
def addresses_apart(function, kinds):
    """Mark the addresses of arrays as noalias for Numba's compiler.

    Arrays that a kernel both reads and writes are not marked: their entries may come from other threads, and the
    compiler could move a load above the synchronisation with these.  Source: LLVM Language Reference, noalias.
    """
    import numba.cuda.compiler as compiler
    from llvmlite import ir
    fixed, alone, at, places = getattr(compiler, "kernel_fixup", None), only_one_way(function), 0, []
    if fixed is None:                   # another version of Numba: nothing is marked
        yield
        return
    for name, (dtype, rank, _) in zip(function.__code__.co_varnames, kinds):
        if rank and name in alone:
            places.append(at + ADDRESS)
        at += 5 + 2 * rank if rank else 1 + (dtype.kind == "c")

    def fix(kernel, debug):
        fixed(kernel, debug)
        for k in places:
            if k < len(kernel.args) and isinstance(kernel.args[k].type, ir.PointerType):
                kernel.args[k].add_attribute("noalias")
    with _compiling:
        compiler.kernel_fixup = fix
        try:
            yield
        finally:
            compiler.kernel_fixup = fixed


@functools.lru_cache(maxsize=1024)
def only_one_way(function):
    """The arrays that a kernel only reads or only writes: those of which it uses just entries or lengths.

    >>> sorted(only_one_way(_sample))
    ['x', 'z']
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return frozenset()
    found, entries = {}, set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
            entries.add(id(n.value))
            found.setdefault(n.value.id, set()).add(type(n.ctx))
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.attr in ("shape", "size", "ndim"):
            entries.add(id(n.value))
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Subscript):
            found.setdefault(ast.unparse(n.target.value), set()).add(ast.Load)
    other = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in entries}
    return frozenset(n for n, ways in found.items() if len(ways) == 1 and n not in other)


def _sample(x, y, z):
    y[0] = z[0] = x[0] * x.shape[0]
    y[1] += 1.0


def span_of(start, a):
    """The range of addresses of an array's entries.

    >>> x = np.zeros((4, 3))
    >>> span_of(1000, x), span_of(1072, x[::-1, :2])
    ((1000, 1096), (1000, 1088))
    """
    if not a.size:
        return start, start
    reach = [(n - 1) * s for n, s in zip(a.shape, a.strides)]
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0) + a.itemsize


def are_apart(spans):
    """Whether no two of some spans of memory overlap.

    >>> are_apart([(48, 96), (0, 48)]), are_apart([(40, 96), (0, 48)])
    (True, False)
    """
    spans = sorted(s for s in spans if s[0] < s[1])
    return all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))


def compiler(backend):
    """(Numba's CUDA module, its types) of a back end."""
    if backend == "mlir":
        from numba_cuda_mlir import cuda, types
    else:
        from numba import cuda, types
    return cuda, types


def size_of(parameters):
    """The size in bytes of the parameters of PTX, each aligned to its own size, or to its alignment if given.

    >>> size_of(".param .u64 a, .param .f32 b, .param .u64 c, .param .align 4 .b8 d[8]")
    32
    """
    end = 0
    for aligned, kind, count in re.findall(r"\.param (?:\.align (\d+) )?\.\w(\d+) \w+(?:\[(\d+)\])?", parameters):
        size = int(kind) // 8
        unit = int(aligned) if aligned else size
        end = -(-end // unit) * unit + size * int(count or 1)
    return end


def assembled(ptx, architecture):
    """(registers per thread, bytes spilled, machine code) of a kernel's PTX."""
    try:
        from cuda.bindings import nvjitlink
    except ImportError:                 # the driver will assemble the PTX at load time
        return 0, 0, ptx.encode()
    options = [f"-arch={architecture}", "-verbose", "-O3"]
    try:
        handle = nvjitlink.create(len(options), options)
    except RuntimeError as error:
        if "NotFound" not in type(error).__name__:
            raise
        return 0, 0, ptx.encode()
    try:
        data = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel.ptx")
        nvjitlink.complete(handle)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
        binary = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, binary)
    finally:
        nvjitlink.destroy(handle)
    text = log.decode(errors="replace")
    used = [int(n) for n in re.findall(r"Used (\d+) registers", text)]
    spilled = [int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", text)]
    return max(used, default=0), sum(spilled), bytes(binary)


def counted(binary) -> dict:
    """The number of machine instructions of each kind, by nvdisasm (package `nvidia-cuda-nvdisasm`)."""
    tool = disassembler()
    if tool is None:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout
    words = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", text, re.M)
    words = [w for w in words if w != "NOP"]
    if words[-1:] == ["BRA"]:           # it follows the end and never runs
        del words[-1]
    heads = [w.split(".")[0] for w in words]
    found = {kind: sum(bool(re.fullmatch(form, w if "\\." in form and w.startswith("MUFU") else h)) for w, h in zip(
        words, heads)) for kind, form in KINDS.items()}
    return {"all": len(words), **found}


@functools.cache
def disassembler():
    """The path of nvdisasm; None if it is not installed."""
    found = shutil.which("nvdisasm")
    for spec in [importlib.util.find_spec("nvidia")] if found is None else []:
        for folder in getattr(spec, "submodule_search_locations", None) or ():
            found = found or next((str(p) for p in Path(folder).glob("*/bin/nvdisasm")), None)
    return found
