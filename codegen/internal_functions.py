# SPDX-License-Identifier: Apache-2.0
"""Internal LLVM functions of a module: code that is needed in several places is written once and called.

LLVM's time grows with the number of instructions, so code as long as a matrix product or an allocation is a function.
LLVM inlines it again where it is short or called once.
"""
from collections.abc import Callable, Sequence
from typing import Any


def called(context: Any, builder: Any, name: str, kinds: Sequence, result: Any, values: Sequence,
           write: Callable[[Any, list], Any], stays: bool = False) -> Any:
    """The result of an internal function of the builder's module, which the first call writes; propagates its errors.

    name: the same for all that `write(builder, values)` writes; kinds, result: Numba's types; stays: whether it is
    never inlined.
    """
    from llvmlite import ir
    from numba.core import cgutils
    module, convention = builder.module, context.call_conv
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, convention.get_function_type(result, kinds), name)
        function.linkage = "internal"
        without_estimates(function)
        if stays:
            function.attributes.add("noinline")
        convention.decorate_function(function, [f"a{k}" for k in range(len(kinds))], kinds)
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        given = context.get_arg_packer(kinds).from_arguments(inner, convention.get_arguments(function))
        out = write(inner, given)
        convention.return_value(inner, context.get_dummy_value() if out is None else out)
    status, out = convention.call_function(builder, function, result, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return out


def without_estimates(function: Any) -> None:
    """Forbids estimates of quotients and roots in an LLVM function whose fast-math flags allow reciprocals.

    Source: LLVM, TargetLoweringBase::getRecipEstimateSqrtEnabled, which reads the attribute `reciprocal-estimates`.
    """
    set.add(function.attributes, '"reciprocal-estimates"="none"')       # llvmlite supports no attributes with values
