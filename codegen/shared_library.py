# SPDX-License-Identifier: Apache-2.0
"""Builds a shared library, which needs no Python, from compiled text.

LLVM makes an object file of the code that Numba has compiled.  A C file replaces the parts of Numba's runtime that it
calls: reference-counted memory, and matrix products as plain loops.  The C function returns 0, -2 if a fixed length
differs, or the code that Numba's functions return for an exception.
"""
import ast
import math
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from gradscribe.codegen.exact import exact_functions
from gradscribe.codegen.helpers import HELPERS, helpers
from gradscribe.codegen.jit_cpu import FAST, of_text
from gradscribe.codegen.llvm_inline import STRAIGHT, straight
from gradscribe.codegen.loops.allocation import on_stack
from gradscribe.codegen.loops.decisions import mark_decisions
from gradscribe.codegen.loops.trees import to_tree
from gradscribe.codegen.primitives import in_place
from gradscribe.runtime import compiled

C_TYPES = {"float64": "double", "float32": "float", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
           "int8": "int8_t", "uint64": "uint64_t", "uint32": "uint32_t", "uint16": "uint16_t", "uint8": "uint8_t",
           "bool": "bool", "complex128": "double _Complex", "complex64": "float _Complex"}
HAVE = {"NRT_Allocate", "NRT_Free", "NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor", "Py_FatalError",
        "numba_gil_ensure", "numba_xxdot", "numba_xxgemv", "numba_xxgemm"}
LIBM = set("""
    sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p pow sqrt cbrt
    hypot floor ceil trunc rint round fmod fma fabs copysign erf erfc lgamma tgamma ldexp frexp nextafter memcpy memset
    madvise memmove cexp clog csqrt cpow csin ccos ctan csinh ccosh ctanh cabs carg""".split())

RUNTIME_C = r"""
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    size_t count;
    void (*destroy)(void *, size_t, void *);
    void *told, *data;
    size_t size;
    void *from;
};

void *NRT_Allocate(size_t size) { return malloc(size ? size : 1); }
void NRT_Free(void *data) { free(data); }

struct memory *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment) {
    char *block = malloc(sizeof(struct memory) + size + alignment);
    struct memory *made = (struct memory *)block;
    if (block == NULL) return NULL;
    uintptr_t data = (uintptr_t)(block + sizeof(struct memory));
    made->count = 1; made->destroy = NULL; made->told = NULL; made->size = size; made->from = NULL;
    made->data = (void *)((data + alignment - 1) / alignment * alignment);
    return made;
}

void NRT_MemInfo_call_dtor(struct memory *made) {
    if (made->destroy) made->destroy(made->data, made->size, made->told);
    free(made);
}

void Py_FatalError(const char *message) { (void)message; abort(); }
void *numba_gil_ensure(void) { return NULL; }

#define PRODUCTS(KIND, T)                                                                                           \
static void dot_##KIND(ptrdiff_t n, const T *x, const T *y, T *out) {                                               \
    T sum = 0;                                                                                                      \
    for (ptrdiff_t i = 0; i < n; i++) sum += x[i] * y[i];                                                           \
    *out = sum;                                                                                                     \
}                                                                                                                   \
static void gemv_##KIND(char trans, ptrdiff_t m, ptrdiff_t n, T alpha, const T *a, ptrdiff_t lda, const T *x,       \
                        T beta, T *y) {                                                                             \
    ptrdiff_t rows = trans == 'n' ? m : n;                                                                          \
    for (ptrdiff_t i = 0; i < rows; i++) y[i] = beta == (T)0 ? (T)0 : beta * y[i];                                  \
    for (ptrdiff_t j = 0; j < n; j++)                                                                               \
        for (ptrdiff_t i = 0; i < m; i++) {                                                                         \
            if (trans == 'n') y[i] += alpha * a[i + j * lda] * x[j];                                                \
            else y[j] += alpha * a[i + j * lda] * x[i];                                                             \
        }                                                                                                           \
}                                                                                                                   \
static void gemm_##KIND(char ta, char tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, T alpha, const T *a,               \
                        ptrdiff_t lda, const T *b, ptrdiff_t ldb, T beta, T *c, ptrdiff_t ldc) {                    \
    for (ptrdiff_t j = 0; j < n; j++) {                                                                             \
        for (ptrdiff_t i = 0; i < m; i++) c[i + j * ldc] = beta == (T)0 ? (T)0 : beta * c[i + j * ldc];             \
        for (ptrdiff_t l = 0; l < k; l++) {                                                                         \
            T right = alpha * (tb == 'n' ? b[l + j * ldb] : b[j + l * ldb]);                                        \
            for (ptrdiff_t i = 0; i < m; i++) c[i + j * ldc] += (ta == 'n' ? a[i + l * lda] : a[l + i * lda]) * right;\
        }                                                                                                           \
    }                                                                                                               \
}
PRODUCTS(s, float)
PRODUCTS(d, double)
PRODUCTS(c, float _Complex)
PRODUCTS(z, double _Complex)

static char lower(char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *out) {
    if (conjugate && (kind == 'c' || kind == 'z')) return -1;
    switch (kind) {
    case 's': dot_s(n, x, y, out); return 0;
    case 'd': dot_d(n, x, y, out); return 0;
    case 'c': dot_c(n, x, y, out); return 0;
    case 'z': dot_z(n, x, y, out); return 0;
    }
    return -1;
}

#define GIVEN(T) *(const T *)
int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    trans = lower(trans);
    if (trans == 'c') return -1;
    switch (kind) {
    case 's': gemv_s(trans, m, n, GIVEN(float)alpha, a, lda, x, GIVEN(float)beta, y); return 0;
    case 'd': gemv_d(trans, m, n, GIVEN(double)alpha, a, lda, x, GIVEN(double)beta, y); return 0;
    case 'c': gemv_c(trans, m, n, GIVEN(float _Complex)alpha, a, lda, x, GIVEN(float _Complex)beta, y); return 0;
    case 'z': gemv_z(trans, m, n, GIVEN(double _Complex)alpha, a, lda, x, GIVEN(double _Complex)beta, y); return 0;
    }
    return -1;
}

int numba_xxgemm(char kind, char ta, char tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    ta = lower(ta); tb = lower(tb);
    if (ta == 'c' || tb == 'c') return -1;
    switch (kind) {
    case 's': gemm_s(ta, tb, m, n, k, GIVEN(float)alpha, a, lda, b, ldb, GIVEN(float)beta, c, ldc); return 0;
    case 'd': gemm_d(ta, tb, m, n, k, GIVEN(double)alpha, a, lda, b, ldb, GIVEN(double)beta, c, ldc); return 0;
    case 'c': gemm_c(ta, tb, m, n, k, GIVEN(float _Complex)alpha, a, lda, b, ldb, GIVEN(float _Complex)beta, c, ldc);
              return 0;
    case 'z': gemm_z(ta, tb, m, n, k, GIVEN(double _Complex)alpha, a, lda, b, ldb, GIVEN(double _Complex)beta, c, ldc);
              return 0;
    }
    return -1;
}
"""


class NotAlone(Exception):
    """The compiled code calls functions that the library would not contain."""


def build_library(text: str, label: str, name: str, inputs: list[tuple], outputs: list[tuple],
                  fixed: dict[str, int], extra: list, target: str | Path, compiler: str | None) -> str:
    """Builds the shared library of a lowered text at `target`; returns the declaration of its C function.

    inputs: (name, dtype, rank) of each argument of the text; outputs: the same for its results; fixed: constant
    lengths, by their names in C; extra: captured arrays, its last arguments.
    """
    native, module = _compiled(text, label, inputs, outputs, extra)
    missing = _missing(module)
    if missing:
        raise NotAlone(", ".join(missing))
    parameters, given = [], []
    for n, dtype, rank in inputs:
        c = C_TYPES[dtype]
        parameters.append(f"const {c} *{n}" if rank else f"{c} {n}")
        given.append(n)
        for k in range(rank):
            parameters.append(f"int64_t {n}_n{k}")
            given.append(f"{n}_n{k}")
    for n, dtype, _ in outputs:
        parameters.append(f"{C_TYPES[dtype]} *{n}")
        given.append(n)
    declaration = f"int {name}({', '.join(parameters) or 'void'})"
    inner = ["int64_t *", "void **", *(p.rsplit(" ", 1)[0] + (" *" if "*" in p else "") for p in parameters)]
    tests = "".join(f"    if ({n} != {length}) return -2;\n" for n, length in fixed.items())
    code = (f"{RUNTIME_C}\nextern int native({', '.join(inner)}) __asm__(\"{native}\");\n\n"
            f"__attribute__((visibility(\"default\"))) {declaration} {{\n"
            f"    int64_t result = 0;\n    void *problem = NULL;\n{tests}"
            f"    return native(&result, &problem{''.join(', ' + g for g in given)});\n}}\n")
    _linked(code, module, Path(target), compiler)
    return declaration


def _compiled(text, label, inputs, outputs, extra):
    """(name of the function in the object, LLVM module)."""
    import numba
    from numba import types

    space = {n: straight()[n] if n in STRAIGHT else helpers()[n] for n in _words(text) & HELPERS.keys()}
    function = of_text(text, [(dtype, rank) for _, dtype, rank in inputs])
    mark_decisions(function)
    tree, names = in_place(ast.fix_missing_locations(ast.Module([to_tree(function)], [])), on_stack(function))
    space |= exact_functions()
    space |= {"np": np, "math": math, "Unsaid": compiled.Unsaid, "carray": numba.carray, **names}
    exec(compile(tree, "<library>", "exec"), space)
    space[label] = numba.njit(error_model="numpy", fastmath=set(FAST), nogil=True)(space[label])
    parameters, given, kinds = [], [], []
    for n, dtype, rank in inputs:
        scalar = numba.from_dtype(np.dtype(dtype))
        parameters.append(n)
        kinds.append(types.CPointer(scalar) if rank else scalar)
        given.append(f"carray({n}, ({''.join(f'{n}_n{k}, ' for k in range(rank))}))" if rank else n)
        parameters += [f"{n}_n{k}" for k in range(rank)]
        kinds += [types.int64] * rank
    for n, dtype, _ in outputs:
        parameters.append(n)
        kinds.append(types.CPointer(numba.from_dtype(np.dtype(dtype))))
    for k, value in enumerate(extra):
        space[f"outside_{k}"] = value
        given.append(f"outside_{k}.copy()" if isinstance(value, np.ndarray) else f"outside_{k}")
    lines = [f"def library_({', '.join(parameters)}):", f"    r = {label}({', '.join(given)})"]
    for k, (n, _, rank) in enumerate(outputs):
        lines.append(f"    carray({n}, r[{k}].shape)[...] = r[{k}]" if rank else f"    {n}[0] = r[{k}]")
    exec("\n".join([*lines, "    return 0"]), space)
    made = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(space["library_"])
    made.compile(tuple(kinds))
    (result,) = made.overloads.values()
    return result.fndesc.llvm_func_name, result.library._final_module


def _words(text):
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def _missing(module):
    """The symbols that the object needs and that neither the C file nor libm has."""
    found = {f.name for f in module.functions if f.is_declaration}
    return sorted(n.split(".")[1] if n.startswith("gradscribe.") else n for n in found
                  if not n.startswith("llvm.") and not {n, n.removesuffix("f")} & (HAVE | LIBM))


def _linked(code, module, target, compiler):
    from llvmlite import binding
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, reloc="pic",
        codemodel="default")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "library.c"), Path(folder, "library.o")
        source.write_text(code, encoding="utf-8")
        made.write_bytes(machine.emit_object(module))
        command = [*(compiler or os.environ.get("CC", "cc")).split(), "-O3", "-shared", "-fPIC", "-fvisibility=hidden",
                   "-Wl,-Bsymbolic", "-o", str(target), str(source), str(made), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
