# SPDX-License-Identifier: Apache-2.0
"""What Numba's compiler keeps of each function that it has compiled, as long as the process lives.

LLVM's pass managers, as llvmlite 0.50 has them, keep some 20 KB of each run.  Numba runs one for each function of a
module before it optimises the module as a whole, for those that the module only declares as well: some forty, of which
two or three have instructions.  Left out, a compiled function keeps 0.4 MB in place of 1.0.
"""
import functools
from typing import Any


class Defined:
    """A module of LLVM's whose functions are those that have instructions."""

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
    """Numba's passes over single functions leave out what a module only declares, from now on."""
    from numba.core.codegen import CPUCodeLibrary
    passes = getattr(CPUCodeLibrary, "_optimize_functions", None)
    if passes is None:                  # another version of Numba's
        return

    @functools.wraps(passes)
    def over_definitions(self, module):
        return passes(self, Defined(module))
    CPUCodeLibrary._optimize_functions = over_definitions  # type: ignore[method-assign]  # Numba has no other way in
