# SPDX-License-Identifier: Apache-2.0
"""The runtime's functions for Numba.

Short ones are compiled into their callers.  Those marked `whole`, which take stacks of matrices or sets of lines, are
compiled separately: Numba would copy their instructions into each caller, to be optimised again.  They are called by
symbol and have their own entries in the cache on disk, so only the first program that solves systems takes long to
compile.  As with SciPy's functions (foreign.py), a symbol is resolved when the process first needs it, so machine code
on disk holds names and no addresses.
"""
import ast
import functools
import hashlib
import inspect
from types import FunctionType
from typing import Any

from gradscribe.codegen import cache, foreign
from gradscribe.codegen.loops.form import Do
from gradscribe.codegen.loops.scalar_regions import as_calls
from gradscribe.codegen.loops.trees import from_tree, to_tree
from gradscribe.codegen.numba_memory import free_what_numba_keeps
from gradscribe.codegen.primitives import in_place
from gradscribe.codegen.region_forms import for_numba
from gradscribe.runtime.modules import RUNTIME

HELPERS = {n: f for module in RUNTIME for n, f in vars(module).items() if isinstance(f, FunctionType)}
CALL_PYTHON = [name for name, function in HELPERS.items() if hasattr(function, "calls_python")]
_callable: dict = {}                    # the functions that compiled code calls, by name
_space: dict = {}                       # the globals of the runtime's functions
_made: dict[str, tuple] = {}            # {registered symbol: (name, types, Numba's compile result)}


def helpers() -> dict[str, Any]:
    """The runtime's functions as compiled code calls them, by name; they call each other in this form too."""
    if not _callable:                   # filled last, in one step: Ctrl-C may come at any time
        made = {name: through_symbol(function) if hasattr(function, "whole") else dispatcher(name)
                for name, function in HELPERS.items()}
        _space.update({n: v for module in RUNTIME for n, v in vars(module).items()})
        from numba import objmode
        _space.update(made, objmode=objmode, **foreign.lapack())
        _callable.update(made)
    return _callable


@functools.cache
def leaves_unsaid(name: str) -> bool:
    """Whether a runtime function, or one that it calls, may raise Unsaid."""
    words = set(HELPERS[name].__code__.co_names) - {name}
    return "Unsaid" in words or any(map(leaves_unsaid, words & HELPERS.keys()))


def with_regions(function):
    """A function whose loops region_forms.py writes, which tells LLVM that its arrays do not alias."""
    tree = ast.parse(inspect.getsource(function))
    tree.body[0].decorator_list = []
    loops = from_tree(tree.body[0], function.apart)
    loops.block = [s for s in loops.block if not isinstance(s, Do)]         # a docstring
    regions = as_calls(loops)
    tree, inside = in_place(ast.fix_missing_locations(ast.Module([to_tree(loops)], [])))
    inside = {**_space, **inside}
    own = {n: n for n, (_, rank) in function.apart.items() if rank}
    inside.update({r.name: for_numba(r._replace(apart=own), inside) for r in regions})
    exec(compile(tree, inspect.getfile(function), "exec"), inside)
    return inside[function.__name__]


@functools.cache
def dispatcher(name):
    """The Numba dispatcher of a runtime function, which calls other runtime functions as compiled code does."""
    import numba
    function = HELPERS[name]
    if hasattr(function, "apart"):
        function = with_regions(function)
    elif hasattr(function, "whole"):
        lines, first = inspect.getsourcelines(function)
        tree, names = in_place(ast.parse("".join(lines)))
        tree.body[0].decorator_list = []
        inside = {**_space, **names}
        exec(compile(ast.increment_lineno(tree, first - 1), inspect.getfile(function), "exec"), inside)
        function = inside[name]
    else:
        function = FunctionType(function.__code__, _space, name, function.__defaults__)
    # no fast math: these functions rely on comparisons with NaN and on exact sums
    return numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
                      nogil=name not in CALL_PYTHON, fastmath=False)(function)


def through_symbol(function):
    """The intrinsic that compiled code calls in place of a runtime function."""
    from numba.extending import intrinsic

    def typed(*types):
        symbol, result = addressed(function.__name__, types)
        return result.signature.return_type(*types), _call(symbol, result.fndesc)

    code = function.__code__
    given = ", ".join(code.co_varnames[:code.co_argcount])
    form = eval(f"lambda context, {given}: typed({given})", {"typed": typed})
    form.__name__ = form.__qualname__ = code.co_name
    return intrinsic(form)


def addressed(name: str, types: tuple) -> tuple[str, Any]:
    """(symbol, Numba's compile result) of a function for these types; registers the symbol's address."""
    key = hashlib.sha256("\0".join([cache.stamp(), name, *map(str, types)]).encode()).hexdigest()[:40]
    symbol = f"gradscribe.{name}.{key}"
    if symbol not in _made:
        from llvmlite import binding
        foreign.with_addresses(HELPERS[name])
        made = dispatcher(name)
        compiled_for(types, key, made)
        result = made.overloads[types]
        binding.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
        _made[symbol] = name, types, result
    return symbol, _made[symbol][2]


def compiled_for(types, key, dispatcher):
    """Gives a dispatcher its code for these types: from the disk, or compiled and stored there."""
    if not cache.load(key, dispatcher, addressed):
        compiled_and_kept(types, key, dispatcher)


def compiled_and_kept(types: tuple, key: str, dispatcher: Any) -> None:
    free_what_numba_keeps()
    dispatcher.compile(types)
    cache.save(key, dispatcher, types, called_by(dispatcher.overloads[types].library))


def called_by(library):
    """(name, types) of the runtime functions that machine code calls by symbol, including the calls of functions that
    were linked into it.
    """
    return [_made[f.name][:2] for f in library._final_module.functions if f.is_declaration and f.name in _made]


def _call(symbol, about):
    """What writes the call, in Numba's calling convention, of a function of which only the symbol is known."""
    def emit(context, builder, signature, values):
        kind = context.call_conv.get_function_type(about.restype, about.argtypes)
        from numba.core import cgutils
        function = cgutils.get_or_insert_function(builder.module, kind, symbol)
        status, value = context.call_conv.call_function(builder, function, about.restype, about.argtypes, values)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return value
    return emit
