# SPDX-License-Identifier: Apache-2.0
"""Reduces the memory that Numba keeps for each compiled function as long as the process lives.

LLVM's pass managers, in llvmlite 0.50, keep some 20 KB of each run.  Before it optimises a module as a whole, Numba
runs one for each function of the module, including those that are only declared: some forty, of which two or three have
instructions.  Without the runs for declarations, a compiled function keeps 0.4 MB instead of 1.0.
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
def leave_declarations_alone() -> None:
    """Has Numba's passes over single functions skip declarations from now on."""
    from numba.core.codegen import CPUCodeLibrary
    passes = getattr(CPUCodeLibrary, "_optimize_functions", None)
    if passes is None:                  # another version of Numba
        return

    @functools.wraps(passes)
    def over_definitions(self, module):
        return passes(self, Defined(module))
    CPUCodeLibrary._optimize_functions = over_definitions  # type: ignore[method-assign]  # Numba has no hook for this
