# SPDX-License-Identifier: Apache-2.0
"""Reduces the memory that Numba keeps for each compiled function as long as the process lives.

- llvmlite 0.50 never frees a pass manager (15 KB one for functions, 30 KB one for modules): of its two base classes,
  the first to have a `_dispose` is the one whose method does nothing.
- What a run of a pass manager registers (20 KB) cannot be freed from Python.  Before it optimises a module as a whole,
  Numba runs one for each function of the module, including those that are only declared: some forty, of which two or
  three have instructions.  The runs for declarations are left out.
"""
import functools
from typing import Any


class Defined:
    """An LLVM module that shows only the functions that have instructions."""

    def __init__(self, module: Any):
        object.__setattr__(self, "module", module)

    @property
    def functions(self) -> list:
        return [f for f in self.module.functions if not f.is_declaration]

    def __getattr__(self, name):
        return getattr(self.module, name)

    def __setattr__(self, name, value):
        setattr(self.module, name, value)


@functools.cache
def free_what_numba_keeps() -> None:
    """Has llvmlite free its pass managers, and Numba's passes over single functions skip declarations, from now on."""
    from llvmlite.binding import newpassmanagers
    from numba.core.codegen import CPUCodeLibrary
    base = getattr(newpassmanagers, "NewPassManager", None)
    passes = getattr(CPUCodeLibrary, "_optimize_functions", None)
    if base is None or passes is None:          # other versions
        return
    for kind in base.__subclasses__():
        kind._dispose = base._dispose

    @functools.wraps(passes)
    def over_definitions(self, module):
        return passes(self, Defined(module))
    CPUCodeLibrary._optimize_functions = over_definitions  # type: ignore[method-assign]  # Numba has no hook for this
