# SPDX-License-Identifier: Apache-2.0
"""Functions of LLVM's that a module has for itself: what it needs in several places is written once and called.

LLVM takes time for each instruction, so what is as long as a product or an allocation is a function; where it is called
once, or is short, LLVM puts it back by itself.
"""
from collections.abc import Callable, Sequence
from typing import Any


def called(context: Any, builder: Any, name: str, kinds: Sequence, result: Any, values: Sequence,
           write: Callable[[Any, list], Any], stays: bool = False) -> Any:
    """What a function of the builder's module gives, which the first call writes; what it raises is raised here.

    name: one for all that is written by `write(builder, values)`; kinds, result: the types, as Numba has them;
    stays: whether it is never put in the place of a call.
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
    """Has quotients and roots of a function of LLVM's computed, not estimated, where reciprocals are allowed.

    Source: LLVM, TargetLoweringBase::getRecipEstimateSqrtEnabled, which asks the attribute `reciprocal-estimates`.
    """
    set.add(function.attributes, '"reciprocal-estimates"="none"')       # llvmlite knows attributes without values
