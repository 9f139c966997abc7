# SPDX-License-Identifier: Apache-2.0
"""Calls from compiled code back into the process: collectives, which exchange values with other devices, and reports.

The text says `collected(x, 'psum(i)', x.shape, np.float64)`.  In compiled code the collective is a number
(groups.site_of), and the call goes to a ctypes callback by its symbol, which holds the GIL while it runs: machine code
on disk holds the name and no address.  Threads started by launching.py first try to meet without the GIL (meeting.py).
`reported(report_1, (x, n))` calls a Python function by its number (reporting.py).
"""
import ctypes
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Let, operands
from gradscribe.ast_transform.reader.named_axes import HALVES, MOVING, REDUCING, is_collective
from gradscribe.codegen.assignments import assign
from gradscribe.codegen.loops.build import ZERO, quoted
from gradscribe.codegen.loops.form import Call, Const, Expr, Function, change, rebuilt, statements
from gradscribe.codegen.lowered import Lazy, Lowering, shape
from gradscribe.codegen.meeting import MEET, TAKEN
from gradscribe.runtime import collectives as named
from gradscribe.runtime import groups

SYMBOL, SYMBOL_OF_ALL, SYMBOL_OF_REPORT = "gradscribe.told", "gradscribe.told_all", "gradscribe.reported"
ASKED = ("collected", "collected_number", "collected_done", "collected_all")
CALLS = (*ASKED, "reported")
ENDS = [done for _, done in HALVES.values()]
FAILED, NOT_TOLD = "a function over an axis of devices failed", "a report failed"


def collective_statement(lowering: Lowering, step: Let) -> None:
    """name = collected(x, what, shape, dtype)"""
    value, target = step.value, step.targets[0]
    axes, fact = value.args[-1].value, target.fact
    options = {k: v.value for k, v in value.kwargs}
    what = groups.spelled(value.function.__name__, axes, options)
    groups.site_of(value.function.__name__, axes, options)
    dtype = np.dtype(fact.dtype)
    operand: Any = lowering.lazy(value.args[0]) if len(value.args) > 1 else None
    given = ZERO if operand is None else argument_of(lowering, operand, dtype)
    name = lowering.fresh(value.function.__name__)
    if value.function in ENDS:
        lowering.say("{} = collected_done({}, {})", name, given, Const(what))
        return assign(lowering, target, lowering.made(name, operand.dims, dtype), False)
    if not fact.dims:
        lowering.say("{} = collected_number({}, {}, {})", name, given, Const(what), dtype)
        return assign(lowering, target, made_number(lowering, name, dtype), False)
    dims = lengths(lowering, value.function, operand, fact, axes, options)
    lowering.say("{} = collected({}, {}, {}, {})", name, given, Const(what), shape(dims), dtype)
    return assign(lowering, target, lowering.made(name, dims, dtype), False)


def made_number(lowering, name, dtype):
    """A scalar that a statement has just set."""
    lowering.kinds[name] = np.dtype(dtype).name, 0
    return Lazy([], dtype, name, 0)


def argument_of(lowering, operand, dtype):
    """The argument of a call for an operand: an array, or a scalar."""
    return lowering.array(operand, dtype).name if operand.rank else lowering.atom(operand.cast([], dtype), "given")


def together(steps: Iterable[Any]) -> Iterator[list]:
    """Steps in groups: reductions of one kind over the same axes that follow each other and are independent are one
    group, every other step is a group by itself.
    """
    group: list
    made: set
    group, made = [], set()
    for step in steps:
        value: Any = step.value if isinstance(step, Let) else None
        joins = is_collective(value) and value.function in REDUCING
        if group and not (joins and value.function is group[0].value.function and
                          value.args[-1].value == group[0].value.args[-1].value and
                          made.isdisjoint(operands(value))):
            yield group
            group, made = [], set()
        if joins:
            group.append(step)
            made.update(step.targets)
        else:
            yield [step]
    if group:
        yield group


def reductions(lowering: Lowering, group: list[Let]) -> None:
    """a, b = collected_all((x, y), what): one message, or one meeting of threads, for several reductions."""
    value = group[0].value
    axes = value.args[-1].value
    what = groups.spelled(value.function.__name__, axes, {})
    groups.site_of(value.function.__name__, axes, {})
    given, ready = [], []
    for step in group:
        dtype, operand = np.dtype(step.targets[0].fact.dtype), lowering.lazy(step.value.args[0])
        ready.append((lowering.fresh(value.function.__name__), operand.dims, dtype))
        given.append(argument_of(lowering, operand, dtype))
    lowering.set([name for name, _, _ in ready], quoted("collected_all({}, {})", given, Const(what)))
    for step, (name, dims, dtype) in zip(group, ready):
        made = lowering.made(name, dims, dtype) if dims else made_number(lowering, name, dtype)
        assign(lowering, step.targets[0], made, False)


def lengths(lowering, function, operand, fact, axes, options):
    """The axes of a collective's result."""
    if function not in MOVING:
        return operand.dims
    own, many = list(operand.dims), axes.sizes[0]

    def times(d):
        return lowering.computed(quoted("{} * {}", d.length, many), d)

    def share(d):
        return lowering.computed(quoted("{} // {}", d.length, many))

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


def asks_others(e: Expr) -> bool:
    """Whether an expression is a call of ASKED that communicates; a device knows its own index."""
    return isinstance(e, Call) and e.function in ASKED and \
        groups.SITES[groups.NUMBERS[e.args[1].value]][0] not in groups.PLACES


# --- for Numba --------------------------------------------------------------------------------------------------------

def numbered(function: Function) -> None:
    """Replaces the texts of collectives in a function by their numbers, in place."""
    def new(e):
        e = rebuilt(e, new)
        if isinstance(e, Call) and e.function in ASKED:
            first, what, *rest = e.args
            return Call(e.function, (first, Const(groups.NUMBERS[what.value]), *rest), e.keywords)
        return e
    for s in statements(function.block):
        change(s, new)


@functools.cache
def functions() -> dict[str, Any]:
    """The functions that compiled text calls, by name; registers the addresses of their symbols."""
    from numba.extending import intrinsic
    _add_symbols()
    return {**_collected(intrinsic(_tell)), "collected_all": _collected_all(intrinsic(_tell_all)),
            "reported": _reported(intrinsic(_report))}


def _add_symbols():
    """Registers the addresses of the callbacks with LLVM."""
    from llvmlite import binding
    for symbol, callback in ((SYMBOL, _callback()), (SYMBOL_OF_ALL, _of_table(groups.told_all)),
                             (SYMBOL_OF_REPORT, _of_table(groups.reported))):
        _kept.append(callback)
        binding.add_symbol(symbol, ctypes.cast(callback, ctypes.c_void_p).value)
    binding.add_symbol(MEET, ctypes.addressof(MEETING))


def _collected(tell):
    """The functions for one operand, by name."""
    import numba

    @numba.njit(nogil=True)
    def collected(x, site, shape, dtype):
        given = np.asarray(x)
        out = np.empty(shape, dtype)
        if tell(site, given, out) != 0:
            raise RuntimeError(FAILED)
        return out

    @numba.njit(nogil=True)
    def collected_done(x, site):
        if tell(site, x, x) != 0:
            raise RuntimeError(FAILED)
        return x

    @numba.njit(nogil=True)
    def collected_number(x, site, dtype):
        given = np.asarray(x)
        out = np.empty((), dtype)
        if tell(site, given, out) != 0:
            raise RuntimeError(FAILED)
        return out[()]
    return {"collected": collected, "collected_number": collected_number, "collected_done": collected_done}


def _collected_all(tell_all):
    """The function for a tuple of operands, whose text depends on their types."""
    from numba import types
    from numba.extending import overload

    def collected_all(given, site):
        raise NotImplementedError

    @overload(collected_all)
    def of_types(given, site):
        arrays = [isinstance(t, types.Array) for t in given.types]
        lines = [f"    x{k} = np.asarray(given[{k}])\n    y{k} = np.empty_like(x{k})\n" for k in range(len(arrays))]
        xs, ys = ("".join(f"{letter}{k}, " for k in range(len(arrays))) for letter in "xy")
        outs = "".join(f"y{k}, " if is_array else f"y{k}[()], " for k, is_array in enumerate(arrays))
        space = {"np": np, "tell_all": tell_all, "FAILED": FAILED}
        exec(f"def of(given, site):\n{''.join(lines)}    if tell_all(site, ({xs}), ({ys})) != 0:\n"
             f"        raise RuntimeError(FAILED)\n    return ({outs})\n", space)
        return space["of"]
    return collected_all


def _reported(report):
    """The function that reports a tuple of values."""
    from numba import types
    from numba.extending import overload

    def reported(number, given):
        raise NotImplementedError

    @overload(reported)
    def of_values(number, given):
        xs = "".join(f"np.ascontiguousarray(given[{k}]), " if isinstance(t, types.Array) else
                     f"np.asarray(given[{k}]), " for k, t in enumerate(given.types))
        space = {"np": np, "report": report, "NOT_TOLD": NOT_TOLD}
        exec(f"def of(number, given):\n    if report(number, ({xs})) != 0:\n        raise RuntimeError(NOT_TOLD)\n",
             space)
        return space["of"]
    return reported


_kept: list = []                        # callbacks, whose addresses LLVM has
MEETING = ctypes.c_void_p()             # the function `meet` of meeting.py, once threads run


def _callback():
    place = ctypes.c_void_p
    kinds = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, place, place] + [ctypes.c_int64] * 2 + [place, place]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(groups.told)


def _of_table(function):
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(function)


def _report(context, number, given):
    from numba import types
    return types.int32(types.int64, given), _by_table(SYMBOL_OF_REPORT, given, given)


def _tell_all(context, site, given, outs):
    from numba import types
    return types.int32(types.int64, given, outs), _by_table(SYMBOL_OF_ALL, given, outs)


def _by_table(symbol, given, outs):
    """A call with the addresses of arrays in a table; the last of the values are the arrays for the results."""
    from llvmlite import ir
    from numba.core import cgutils

    def emit(context, builder, signature, values):
        number, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        pairs = [(kind, builder.extract_value(values[1], k), out, builder.extract_value(values[-1], k))
                 for k, (kind, out) in enumerate(zip(given.types, outs.types))]
        table = written(context, builder, pairs)
        form = ir.FunctionType(ir.IntType(32), [number, number, pointer])

        def ask():
            function = cgutils.get_or_insert_function(builder.module, form, symbol)
            return builder.call(function, [values[0], number(len(pairs)), builder.bitcast(table, pointer)])
        return ask() if symbol == SYMBOL_OF_REPORT else asked(context, builder, values[0], len(pairs), table, ask)
    return emit


def written(context, builder, pairs):
    """A table of arrays on the stack: the dtype, rank, shape, data and result data of each."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.np.arrayobj import make_array
    number = ir.IntType(64)
    table = cgutils.alloca_once(builder, number, size=number(TAKEN * max(len(pairs), 1)))
    for k, (kind, value, out, whole) in enumerate(pairs):
        array, result = make_array(kind)(context, builder, value), make_array(out)(context, builder, whole)
        words = [number(np.dtype(str(kind.dtype)).num), number(kind.ndim),
                 builder.ptrtoint(array._get_ptr_by_name("shape"), number),
                 builder.ptrtoint(array.data, number), builder.ptrtoint(result.data, number)]
        for j, word in enumerate(words):
            builder.store(word, builder.gep(table, [number(TAKEN * k + j)]))
    return table


def asked(context, builder, site, count, table, ask):
    """Calls `meet` if threads run and it accepts, else ask(); returns the status, 0 for success."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    number, small = ir.IntType(64), ir.IntType(32)
    kinds = (types.int64,) * 3
    function = context.call_conv.get_function_type(types.int64, kinds).as_pointer()
    cell = builder.module.globals.get(MEET)
    if cell is None:
        cell = ir.GlobalVariable(builder.module, function, MEET)
        cell.linkage = "external"
    meet, found = builder.load(cell), cgutils.alloca_once_value(builder, small(1))
    with builder.if_then(cgutils.is_not_null(builder, meet)):
        _, declined = context.call_conv.call_function(
            builder, meet, types.int64, kinds, [site, number(count), builder.ptrtoint(table, number)])
        builder.store(builder.trunc(declined, small), found)
    with builder.if_then(builder.icmp_signed("!=", builder.load(found), small(0))):
        builder.store(ask(), found)
    return builder.load(found)


def _tell(context, site, given, out):
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

    def emit(context, builder, signature, values):
        number, pointer = ir.IntType(64), ir.IntType(8).as_pointer()

        def ask():
            words = [values[0]]
            for kind, value in zip(signature.args[1:], values[1:]):
                array = make_array(kind)(context, builder, value)
                words += [number(np.dtype(str(kind.dtype)).num), number(kind.ndim),
                          builder.bitcast(array._get_ptr_by_name("shape"), pointer),
                          builder.bitcast(array.data, pointer)]
            form = ir.FunctionType(ir.IntType(32), [w.type for w in words])
            return builder.call(cgutils.get_or_insert_function(builder.module, form, SYMBOL), words)
        if given.ndim != out.ndim or given.dtype != out.dtype:
            return ask()
        table = written(context, builder, [(given, values[1], out, values[2])])
        return asked(context, builder, values[0], 1, table, ask)
    if not isinstance(given, types.Array) or not isinstance(out, types.Array):
        return None
    return types.int32(types.int64, given, out), emit
