# SPDX-License-Identifier: Apache-2.0
"""Kernels run as plain Python and compiled for a device that need not be there: what the assembler says of each.

The back end `ptx`.  Numba makes PTX, NVIDIA's nvJitLink assembles it; both come with `pip install "gradscribe[cuda]"`.
"""
import builtins
import dis
import functools
import importlib.util
import math
import re
import shutil
import subprocess
import tempfile
import types
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import numpy as np

from gradscribe.runtime import on_device, twin
from gradscribe.runtime.device_functions import KERNEL, PLAIN


class Report(NamedTuple):
    """What the assembler says of a kernel for arguments of certain kinds.

    registers: of a thread; spills: bytes of registers that went to memory; doubles: instructions in double precision;
    atomics: the kinds of them; instructions: of PTX; single: whether no argument is in double precision; machine: how
    many instructions of the device's own there are of each kind (KINDS), empty where there is no nvdisasm.
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
    "double": r"D[A-Z]+|F2F|MUFU\.\w*64\w*", "single": r"F(?:ADD|MUL|FMA|SETP|MNMX|SEL|CHK)", "special": r"MUFU",
    "branches": r"BRA|BRX|CALL|RET|EXIT"}
reports: list[Report] = []


class Cuda(twin.Cuda):
    """architecture: what is assembled for."""

    def __init__(self, architecture="sm_90"):
        super().__init__(compiled=False)
        self.architecture = architecture
        without_device(architecture)

    def jit(self, function=None, **options):
        if function is None:
            return functools.partial(self.jit, **options)
        return function if options.get("device") else Kernel(function, self.architecture)


class Kernel(twin.Kernel):
    def __init__(self, function, architecture):
        super().__init__(function, False)
        self.architecture, self.seen = architecture, set()

    def run(self, x, y, z, *args):
        kinds = tuple(map(kind_of, args))
        if kinds not in self.seen:
            self.seen.add(kinds)
            reports.append(report(self.function, kinds, self.architecture))
        super().run(x, y, z, *args)


def without_device(architecture):
    """Have Numba compile for a device where there is none."""
    import numba.cuda.dispatcher as dispatcher
    from numba import cuda
    capability = divmod(int(architecture.removeprefix("sm_")), 10)
    if not cuda.is_available():
        dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=capability)


def kind_of(value):
    from numba import typeof
    from numba import types as kinds
    if isinstance(value, np.ndarray):
        return kinds.Array(typeof(value).dtype, value.ndim, "C" if value.flags.c_contiguous else "A")
    return typeof(value)


def report(function, kinds, architecture="sm_90") -> Report:
    """What the assembler says of a kernel for arguments of these kinds of Numba's.

    Raises what Numba raises where it does not compile it.
    """
    from numba import cuda
    from numba import types as of_numba
    space = {"cuda": cuda, "np": np, "math": math}
    called = {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}
    for name in called - space.keys() - vars(builtins).keys():
        if name in KERNEL or name in PLAIN:
            space[name] = on_device.function(name, cuda, "cuda")
    made = FunctionType(function.__code__, space, function.__name__)
    capability = divmod(int(architecture.removeprefix("sm_")), 10)
    ptx, _ = cuda.compile_ptx(made, of_numba.void(*kinds), cc=capability)
    registers, spills, binary = assembled(ptx, architecture)
    single = not any("64" in str(getattr(k, "dtype", k)) and "int" not in str(getattr(k, "dtype", k)) or "complex128" in
                     str(k) for k in kinds)
    return Report(function.__name__, registers, spills, len(re.findall(r"\.f64\b", ptx)),
                  tuple(sorted(set(re.findall(r"\b(?:atom|red)\.[\w.:]+", ptx)))),
                  len(re.findall(r"^\s+[a-z@%][^;]*;$", ptx, re.M)), single, counted(binary))


def assembled(ptx, architecture):
    """(registers of a thread, bytes spilled, what the device runs) of a kernel's PTX."""
    from cuda.bindings import nvjitlink
    options = [f"-arch={architecture}", "-verbose", "-O3"]
    handle = nvjitlink.create(len(options), options)
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
    """How many instructions of each kind there are in what the device runs, by nvdisasm, of `nvidia-cuda-nvdisasm`."""
    tool = disassembler()
    if tool is None:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout
    words = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", text, re.M)
    words = [w for w in words if w != "NOP"]
    if words[-1:] == ["BRA"]:           # it stands behind the end, to be run never
        del words[-1]
    heads = [w.split(".")[0] for w in words]
    found = {kind: sum(bool(re.fullmatch(form, w if "\\." in form and w.startswith("MUFU") else h)) for w, h in zip(
        words, heads)) for kind, form in KINDS.items()}
    return {"all": len(words), **found}


@functools.cache
def disassembler():
    """The path of nvdisasm, None where there is none."""
    found = shutil.which("nvdisasm")
    for spec in [importlib.util.find_spec("nvidia")] if found is None else []:
        for folder in getattr(spec, "submodule_search_locations", None) or ():
            found = found or next((str(p) for p in Path(folder).glob("*/bin/nvdisasm")), None)
    return found
