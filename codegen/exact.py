# SPDX-License-Identifier: Apache-2.0
"""The operations that loops/decisions.py marks, as Numba intrinsics: exact as in NumPy, or reassociated freely."""
import functools
import inspect
from typing import Any

from gradscribe.codegen.loops.trees import FUNCTIONS

IN_ANY_ORDER = ("reassoc", "contract", "nsz")
FLOATS = {"fadd", "fsub", "fmul", "fdiv", "frem", "fcmp"}
WRAPPING = {"add", "sub", "mul"}        # Numba tells LLVM that integers never overflow; NumPy's do: x + 1 < x


@functools.cache
def exact_functions() -> dict[str, Any]:
    """The intrinsics that marked operations are printed as, by name."""
    exact = {name: _exact(name, f, without_flags) for f in FUNCTIONS.values() for name in [f"exact_{f.__name__}_"]}
    return exact | {name: _exact(name, f, in_any_order) for f in map(FUNCTIONS.__getitem__, "+-*")
                    for name in [f"summed_{f.__name__}_"]}


def _exact(name, function, flags):
    from numba.core import types
    from numba.extending import intrinsic

    def typed(context, *given):
        kind = context.resolve_value_type(function)
        signature = context.resolve_function_type(kind, tuple(map(types.unliteral, given)), {})
        if signature is None:
            return None

        def emit(context, builder, own, values):
            values = [context.cast(builder, v, t, u) for v, t, u in zip(values, own.args, signature.args)]
            with flags(builder):
                return context.get_function(kind, signature)(builder, values)
        return signature.return_type(*given), emit
    form = (lambda context, a: typed(context, a)) if len(inspect.signature(function).parameters) == 1 else (
        lambda context, a, b: typed(context, a, b))
    form.__name__ = form.__qualname__ = name
    return intrinsic(form)


class without_flags:
    """Inside, instructions are written without fast-math flags, and Numba adds none later."""

    def __init__(self, builder):
        self.builder = builder

    def __enter__(self):
        self.block, self.blocks = self.builder.block, len(self.builder.function.blocks)
        self.first, self.known = len(self.block.instructions), len(self.builder.module.globals)

    def __exit__(self, *error):
        if error[0] is None:
            for n in self.block.instructions[self.first:]:
                self.change(n)
            blocks = self.builder.function.blocks[self.blocks:]
            if len(self.builder.module.globals) > self.known:       # Numba writes a quotient as a function
                for made in list(self.builder.module.globals.values())[self.known:]:
                    blocks += getattr(made, "blocks", ())
            for block in blocks:
                for n in block.instructions:
                    self.change(n)

    def change(self, instruction):
        if instruction.opname in FLOATS:
            instruction.flags = NoFlags()
        elif instruction.opname in WRAPPING:
            instruction.flags = []


class in_any_order(without_flags):
    """Inside, instructions are written with the flags that allow sums in another order."""

    def change(self, instruction):
        if instruction.opname in FLOATS:
            instruction.flags = list(IN_ANY_ORDER)


class NoFlags(list):
    """An instruction's flags, to which Numba cannot add any."""

    def append(self, flag):
        pass
