# SPDX-License-Identifier: Apache-2.0
"""Functions over axes of devices in compiled code: a call out to the process, which asks the other devices.

The text says `collected(x, 'psum(i)', x.shape, np.float64)`.  Compiled, what is asked is a number (groups.site_of), and
what is called is a C function of ctypes by its symbol, which gets Python's lock for as long as it runs: machine code on
disk holds the name and no address.
"""
import ast
import ctypes
import functools

import numpy as np

from gradscribe.codegen.lowered import Lazy, dtype_text, shape_text
from gradscribe.runtime import collectives as named
from gradscribe.runtime import groups

SYMBOL = "gradscribe.told"
CALLS = ("collected", "collected_number")
FAILED = "a function over an axis of devices failed"


def collective_statement(lowering, step):
    """name = collected(x, what, shape, dtype)"""
    value, target = step.value, step.targets[0]
    axes, fact = value.args[-1].value, target.fact
    options = {k: v.value for k, v in value.kwargs}
    what = groups.spelled(value.function.__name__, axes, options)
    groups.site_of(value.function.__name__, axes, options)
    dtype = np.dtype(fact.dtype)
    operand = lowering.lazy(value.args[0]) if len(value.args) > 1 else None
    if operand is None:
        given = "0"
    elif operand.rank:
        given = lowering.array(operand, dtype).name
    else:
        given = lowering.atom(operand.cast([], dtype), "given")
    name = lowering.fresh(value.function.__name__)
    if not fact.dims:
        lowering.helper("collected_number")
        lowering.say(f"{name} = collected_number({given}, {what!r}, {dtype_text(dtype)})")
        return lowering.assign(target, Lazy([], dtype, lambda index: name, 0), False)
    dims = lengths(lowering, value.function, operand, fact, axes, options)
    lowering.helper("collected")
    lowering.say(f"{name} = collected({given}, {what!r}, {shape_text(dims)}, {dtype_text(dtype)})")
    return lowering.assign(target, lowering.made(name, dims, dtype), False)


def lengths(lowering, function, operand, fact, axes, options):
    """The axes of a result."""
    if function in (named.psum, named.pmean, named.pmax, named.pmin, named.ppermute, named.pshuffle):
        return operand.dims
    own, many = list(operand.dims), axes.sizes[0]

    def times(d):
        return lowering.computed(f"{d.text} * {many}", d)

    def share(d):
        return lowering.computed(f"{d.text} // {many}")

    if function is named.all_gather:
        axis = options["axis"]
        if options["tiled"]:
            own[axis] = times(own[axis])
        else:
            own.insert(axis, lowering.length(many))
        return own
    split = options["scatter_dimension" if function is named.psum_scatter else "split_axis"]
    if options["tiled"]:
        own[split] = share(own[split])
        if function is named.all_to_all:
            own[options["concat_axis"]] = times(own[options["concat_axis"]])
        return own
    del own[split]
    if function is named.all_to_all:
        own.insert(options["concat_axis"], lowering.length(many))
    return own


# --- for Numba --------------------------------------------------------------------------------------------------------

def numbered(tree):
    """The text's tree with numbers for what is asked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            node.args[1] = ast.copy_location(ast.Constant(groups.NUMBERS[node.args[1].value]), node.args[1])
    return tree


@functools.cache
def functions():
    """What compiled text calls, by name; the symbol has its address after this."""
    import numba
    from llvmlite import binding
    from numba.extending import intrinsic

    binding.add_symbol(SYMBOL, ctypes.cast(_callback(), ctypes.c_void_p).value)
    tell = intrinsic(_tell)

    @numba.njit(nogil=True)
    def collected(x, site, shape, dtype):
        given = np.asarray(x)
        out = np.empty(shape, dtype)
        if tell(site, given, out) != 0:
            raise RuntimeError(FAILED)
        return out

    @numba.njit(nogil=True)
    def collected_number(x, site, dtype):
        given = np.asarray(x)
        out = np.empty((), dtype)
        if tell(site, given, out) != 0:
            raise RuntimeError(FAILED)
        return out[()]
    return {"collected": collected, "collected_number": collected_number}


@functools.cache
def _callback():
    place = ctypes.c_void_p
    kinds = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, place, place] + [ctypes.c_int64] * 2 + [place, place]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(groups.told)


def _tell(context, site, given, out):
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

    def emit(context, builder, signature, values):
        number, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        words = [values[0]]
        for kind, value in zip(signature.args[1:], values[1:]):
            array = make_array(kind)(context, builder, value)
            dtype = np.dtype(str(kind.dtype))
            words += [number(dtype.num), number(kind.ndim),
                      builder.bitcast(array._get_ptr_by_name("shape"), pointer),
                      builder.bitcast(array.data, pointer)]
        form = ir.FunctionType(ir.IntType(32), [w.type for w in words])
        function = cgutils.get_or_insert_function(builder.module, form, SYMBOL)
        return builder.call(function, words)
    if not isinstance(given, types.Array) or not isinstance(out, types.Array):
        return None
    return types.int32(types.int64, given, out), emit
