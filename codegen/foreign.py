# SPDX-License-Identifier: Apache-2.0
"""Functions of scipy.special and LAPACK in compiled code: C functions that SciPy exports for Cython, called by symbol.

A symbol is resolved when the process first needs it, so machine code on disk holds names and no addresses.  The text
calls `scipy_erf(x)`; the types of the arguments, double or complex, select one of SciPy's variants.
"""
import ctypes
import functools
import re
import sys
from types import FunctionType
from typing import Any

import numpy as np

from gradscribe.runtime import francis, systems

MODULE, PREFIX = "scipy.special.cython_special", "scipy_"
NAMES = frozenset(PREFIX + n for n in """
    rgamma
    beta betainc betaincc betaln binom boxcox boxcox1p dawsn erf erfc erfcinv erfcx erfinv exp1 expi expn fresnel gamma
    gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 i1e iv ive j0 j1 jv k0 k1 kv log_ndtr loggamma ndtr
    ndtri owens_t poch psi sici spence stdtr wofz xlog1py xlogy y0 y1 yn yv zetac
""".split())
_variants: dict[str, dict] = {}
_functions: dict = {}


def variants(name: str) -> dict:
    """{kinds of arguments, as "dz": (kinds of results, symbol, whether it takes Cython's extra int)} of a function."""
    if not _variants:
        _variants.update(_exported())
    return _variants.get(name, {})


def _exported():
    import scipy.special.cython_special as exported

    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found = {}
    for symbol, capsule in exported.__pyx_capi__.items():
        result, _, rest = name_of(capsule).decode().partition(" (")
        given = [p.strip() for p in rest.rstrip(")").split(",")]
        skips = given[-1].startswith("int __pyx_skip")
        given = given[:-1] if skips else given
        outs = [p for p in given if p.endswith("*")]
        kinds = "".join(map(_kind, given[:len(given) - len(outs)]))
        gives = "".join(map(_kind, outs)) if outs else _kind(result)
        if "?" not in kinds + gives:
            name = re.sub(r"^__pyx_fuse_\d", "", symbol)
            found.setdefault(name, {})[kinds] = gives, symbol, skips
    return found


def _kind(text):
    return {"double": "d", "__pyx_t_double_complex": "z"}.get(text.removesuffix("*").strip(), "?")


def functions(words: set[str]) -> dict[str, Any]:
    """The functions that compiled text calls, by name; registers the addresses of their symbols."""
    return {n: _function(n.removeprefix(PREFIX)) for n in sorted(NAMES & words)}


@functools.cache
def lapack() -> dict[str, Any]:
    """LAPACK routines in Numba's own bindings, by the names that the runtime calls."""
    from numba.extending import overload
    from numba.np.linalg import _LAPACK

    routines: dict
    routines = {systems.lapack_gesv: _LAPACK.numba_xgesv, systems.lapack_getrf: _LAPACK.numba_xxgetrf,
                systems.lapack_getri: _LAPACK.numba_ez_xxgetri, systems.lapack_potrf: _LAPACK.numba_xxpotrf,
                systems.lapack_syevd: _LAPACK.numba_ez_xxxevd,
                francis.lapack_geev: _LAPACK.numba_ez_rgeev}
    for stub, routine in routines.items():
        overload(stub)(_of_dtype(routine))
    overload(systems.blas_trsm)(_triangular_systems())
    return {stub.__name__: stub for stub in (*routines, systems.blas_trsm)}


BLAS, TRSM = "scipy.linalg.cython_blas", {"float32": "strsm", "float64": "dtrsm"}


def _triangular_systems():
    """BLAS's trsm, which Numba does not bind: solves X op(A) = B in place of B, column-major."""
    from numba import types
    from numba.np.linalg import F_INT_nbtype, F_INT_nptype

    def form(triangle, turned, unit, m, n, a, b):
        if not isinstance(b, types.ArrayCTypes):
            return None
        letter, size, number = (types.CPointer(t) for t in (types.uint8, F_INT_nbtype, b.dtype))
        symbol = f"{BLAS}.{TRSM[str(b.dtype)]}"
        routine = types.ExternalFunction(
            symbol, types.void(*[letter] * 4, size, size, number, number, size, number, size))
        dtype = np.dtype(str(b.dtype))

        def call(triangle, turned, unit, m, n, a, b):
            side, which = np.full(1, ord("R"), np.uint8), np.full(1, triangle, np.uint8)
            way, diagonal = np.full(1, turned, np.uint8), np.full(1, unit, np.uint8)
            rows, columns, one = np.full(1, m, F_INT_nptype), np.full(1, n, F_INT_nptype), np.ones(1, dtype)
            routine(side.ctypes, which.ctypes, way.ctypes, diagonal.ctypes, rows.ctypes, columns.ctypes, one.ctypes, a,
                    columns.ctypes, b, rows.ctypes)
        return call
    return form


def with_addresses(function: FunctionType) -> None:
    """Registers the addresses of the BLAS routines that a runtime function calls."""
    if systems.blas_trsm.__name__ in function.__code__.co_names:
        from llvmlite import binding
        from numba.extending import get_cython_function_address
        for name in TRSM.values():
            binding.add_symbol(f"{BLAS}.{name}", get_cython_function_address(BLAS, name))


def _of_dtype(routine):
    """The overload of a routine for the dtype of its first array."""
    def form(*args):
        bound = routine(next(a.dtype for a in args if hasattr(a, "dtype")))
        return lambda *args: bound(*args)
    return form


def version() -> str:
    return f"scipy {sys.modules['scipy'].__version__}"


def _function(name):
    if name not in _functions:
        from llvmlite import binding
        from numba.extending import get_cython_function_address
        for _, symbol, _ in variants(name).values():
            binding.add_symbol(f"{MODULE}.{symbol}", get_cython_function_address(MODULE, symbol))
        _functions[name] = _intrinsic(name)
    return _functions[name]


def _intrinsic(name):
    from numba import types
    from numba.extending import intrinsic

    types_of = {"d": types.float64, "z": types.complex128}

    def typed(*args):
        kinds = "".join("z" if isinstance(a, types.Complex) else "d" for a in args)
        found = variants(name).get(kinds)
        if found is None:
            return None
        gives, symbol, skips = found
        results = [types_of[k] for k in gives]
        result = results[0] if len(results) == 1 else types.UniTuple(results[0], len(results))
        return result(*[types_of[k] for k in kinds]), _call(symbol, skips)

    forms = {1: lambda context, a: typed(a), 2: lambda context, a, b: typed(a, b),
             3: lambda context, a, b, c: typed(a, b, c), 4: lambda context, a, b, c, d: typed(a, b, c, d)}
    form = forms[len(next(iter(variants(name))))]
    form.__name__ = form.__qualname__ = PREFIX + name
    return intrinsic(form)


def _call(symbol, skips):
    """What writes the call in LLVM: a complex number is passed as two doubles and returned as a pair of them."""
    from llvmlite import ir
    from numba.core import cgutils

    double, flag = ir.DoubleType(), ir.Constant(ir.IntType(32), 0)
    pair = ir.LiteralStructType([double, double])

    def emit(context, builder, signature, values):
        given = []
        for value in values:
            parts = (0, 1) if isinstance(value.type, ir.LiteralStructType) else ()
            given += [builder.extract_value(value, k) for k in parts] or [value]
        results = getattr(signature.return_type, "types", None)
        kinds = [double if r.name == "float64" else pair for r in results or [signature.return_type]]
        out = [cgutils.alloca_once(builder, k) for k in kinds] if results else []
        given += out + [flag] * skips
        gives = ir.VoidType() if results else kinds[0]
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(gives, [v.type for v in given]), f"{MODULE}.{symbol}")
        value = builder.call(function, given)
        if results:
            return context.make_tuple(builder, signature.return_type, [builder.load(o) for o in out])
        return value
    return emit
