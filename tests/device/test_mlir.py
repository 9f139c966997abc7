"""numba-cuda-mlir compiles every kernel of the programs for sm_90; there need be no device."""
import builtins
import dis
import math
import re
from types import FunctionType

import numpy as np
import pytest
from device.programs import PROGRAMS
from device.test_narrow import OWN

import gradscribe as gs
from gradscribe.runtime import assembled, device, on_device, twin
from gradscribe.runtime.device_functions import KERNEL, PLAIN

cuda = None                             # of kernels: put there by what compiles them


@pytest.fixture
def compiled(monkeypatch):
    """{(kernel, kinds of its arguments): PTX}, filled while kernels are run as plain Python."""
    pytest.importorskip("numba_cuda_mlir")
    tools = pytest.importorskip("numba_cuda_mlir.tools")
    from numba_cuda_mlir import cuda, types
    monkeypatch.setattr(tools, "get_gpu_compute_capability", lambda of=tuple: (9, 0) if of is tuple else "sm_90")
    found, run = {}, twin.Kernel.run

    def kind_of(value):
        if isinstance(value, np.ndarray):
            dtype = types.boolean if value.dtype == bool else getattr(types, value.dtype.name)
            return types.Array(dtype, value.ndim, "C" if value.flags.c_contiguous else "A")
        return types.boolean if isinstance(value, (bool, np.bool_)) else getattr(types, np.asarray(value).dtype.name)

    def seen(self, x, y, z, *args):
        kinds = tuple(map(kind_of, args))
        if (self.function.__code__, kinds) not in found:
            space = {"cuda": cuda, "np": np, "math": math}
            called = {i.argval for i in dis.get_instructions(self.function) if i.opname == "LOAD_GLOBAL"}
            for name in called - space.keys() - vars(builtins).keys():
                if name in KERNEL or name in PLAIN:
                    space[name] = on_device.function(name, cuda, "mlir")
            made = on_device.as_taken(FunctionType(self.function.__code__, space, self.function.__name__), "mlir")
            found[self.function.__code__, kinds] = str(cuda.compile_ptx(made, types.void(*kinds), cc=(9, 0))[0])
        return run(self, x, y, z, *args)
    monkeypatch.setattr(twin.Kernel, "run", seen)
    return found


def unequal(x, y):
    i = cuda.grid(1)
    if 0 != i < x.shape[0]:
        y[i] = 1.0 if x[i] != x[i] else 0.0


def test_what_is_no_number_is_unequal_to_itself():
    """numba-cuda-mlir 0.6 compiles `!=` so that it is false there."""
    assert on_device.as_taken(unequal, "cuda") is unequal
    space = on_device.as_taken(unequal, "mlir").__globals__
    assert "unequal" in space and "!=" not in {i.argrepr for i in dis.get_instructions(space["unequal"])}
    pytest.importorskip("numba_cuda_mlir")
    for backend in ("cuda", "mlir"):
        assembled.without_device("sm_90", backend)
        text = assembled.machine_code(unequal, [(np.dtype(float), 1, True)] * 2, "sm_90", backend).ptx
        assert re.findall(r"setp\.(num|neu|nan)\.f64", text)


@pytest.mark.timeout(1200)
def test_all_compile(compiled):
    with device.using("plain"):
        for function, args in [*PROGRAMS.values(), *OWN.values()]:
            gs.jit(function, target="cuda")(*args)
    assert len(compiled) > 150
    assert all(".target sm_90" in text for text in compiled.values())
