# SPDX-License-Identifier: Apache-2.0
"""The operations that loops/decisions.py marks, as Numba intrinsics: exact as in NumPy, or reassociated freely."""
import contextlib
import functools
import inspect
from typing import Any

from gradscribe.codegen.llvm_inline import NoFlags
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


@contextlib.contextmanager
def changed(builder, change):
    """Inside, instructions are written that are changed at its end."""
    block, blocks = builder.block, len(builder.function.blocks)
    first, known = len(block.instructions), len(builder.module.globals)
    yield
    made, blocks = block.instructions[first:], builder.function.blocks[blocks:]
    if len(builder.module.globals) > known:     # Numba writes a quotient as a function
        for other in list(builder.module.globals.values())[known:]:
            blocks += getattr(other, "blocks", ())
    for instruction in [*made, *(n for b in blocks for n in b.instructions)]:
        change(instruction)


def without_flags(builder: Any) -> contextlib.AbstractContextManager:
    """Inside, instructions are written without fast-math flags, and Numba adds none later."""
    def change(instruction):
        if instruction.opname in FLOATS:
            instruction.flags = NoFlags()
        elif instruction.opname in WRAPPING:
            instruction.flags = []
    return changed(builder, change)


def in_any_order(builder: Any) -> contextlib.AbstractContextManager:
    """Inside, instructions are written with the flags that allow sums in another order."""
    def change(instruction):
        if instruction.opname in FLOATS:
            instruction.flags = list(IN_ANY_ORDER)
    return changed(builder, change)
