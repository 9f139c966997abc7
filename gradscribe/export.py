# SPDX-License-Identifier: Apache-2.0
"""gs.export: a function as a shared library with a C header."""
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.form import Pack, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import describe, fact_of
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, RuleError, TransformError
from gradscribe.frames import public
from gradscribe.jit import Jitted
from gradscribe.making import alone
from gradscribe.shapes import stand_in
from gradscribe.tree_util import tree_map


class Library(NamedTuple):
    """The result of gs.export: the shared library, its header, and the declaration of the C function."""
    library: Path
    header: Path
    declaration: str


@public
@alone
def export(fun: Callable, *example_args: Any, path: str | Path, name: str | None = None,
           compiler: str | None = None) -> Library:
    """Write path.so and path.h: fun compiled for this machine's processor, callable from C without Python.

    example_args: arguments, or ShapeDtypeStructs, that fix dtypes and ranks; lengths may differ in a call, but an axis
    of length one keeps it.  name: that of the C function (default: the Python function's).  compiler: a C compiler, for
    linking (default: $CC, or cc).

    In C an array is a pointer to its entries in row-major order, followed by its lengths.  Results are written to
    pointers at the end, into memory that the caller provides; the header says how much.  The function returns 0, or a
    nonzero number where the Python function raises.  Products of matrices are plain loops, without BLAS.

    Raises KindError for a result whose length does not follow from the arguments, RuleError for what needs LAPACK or
    SciPy, OSError or CalledProcessError where there is no compiler.

    >>> import tempfile
    >>> import numpy as np, gradscribe as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = gs.export(gs.grad(lambda x: np.sum(x ** 2)), np.ones(3), path=folder + "/slope", name="slope")
    >>> made.declaration
    'int slope(const double *x, int64_t x_n0, double *out)'
    """
    from gradscribe.codegen.jit_cpu import lowered  # a slow import, for compilation only
    from gradscribe.codegen.shared_library import C_TYPES, NotAlone, build_library
    normal_form, captured = _form_of(fun, tree_map(stand_in, tuple(example_args)))
    try:
        text, program, extra, _ = lowered(normal_form, captured)
    except TransformError as error:
        error.origin = error.origin or place_of(fun)
        raise
    if program.reports:
        raise KindError("a function that reports is not exported: a library without Python has no logger and no print",
                        place_of(fun), "Return what it reports.")
    inputs = [(p.name, _dtype(p.value.fact, p.name, C_TYPES, fun), p.value.fact.rank) for p in program.inputs]
    lengths = _lengths(program.inputs)
    fixed = {f"{p.name}_n{k}": d.normal().offset for p in program.inputs for k, d in enumerate(p.value.fact.dims)
             if d.normal().symbol is None}
    leaves = [leaf for leaf, (kind, _) in zip(_leaves(normal_form.result), program.results) if kind != "literal"]
    labels = ["out"] if len(leaves) == 1 else [f"out_{k}" for k in range(len(leaves))]
    outputs = [(n, _dtype(fact_of(leaf), n, C_TYPES, fun), fact_of(leaf).rank) for n, leaf in zip(labels, leaves)]
    told = [f"{n}: {dtype}{_shape(fact_of(leaf), lengths, n, fun)}" for (n, dtype, _), leaf in zip(outputs, leaves)]
    base = Path(path)
    target, header = base.with_name(base.name + ".so"), base.with_name(base.name + ".h")
    name = name or normal_form.label
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a valid name for a C function")
    try:
        declaration = build_library(text, normal_form.label, name, inputs, outputs, fixed, extra, target,
                                    compiler)
    except NotAlone as error:
        raise RuleError(f"{normal_form.label} calls a function that a library without Python cannot contain: {error}",
                        place_of(fun), "Write it with loops and products of matrices.") from None
    except subprocess.CalledProcessError as error:
        raise OSError(f"the C compiler failed: {error.stderr.strip()}") from error
    header.write_text(_header(name, declaration, told), encoding="utf-8")
    return Library(target, header, declaration)


def _form_of(fun, args):
    """(normal form, what it reads from outside) of a function; KindError if it writes into its arguments."""
    made = Jitted(fun)
    names = made.parameter_names(len(args))
    normal_form, pipeline = made.normal_form(names, [describe(a, n) for a, n in zip(args, names)], {}, unroll=True,
                                             nested=False)
    reader = pipeline.reader
    if reader.outer.argument_outputs or reader.outer.outputs or reader.containers.given_changed is not None:
        raise KindError("a function that writes into its arguments is not exported", place_of(fun),
                        "Return the arrays.")
    return normal_form, reader.environment.captured


def _leaves(node):
    if isinstance(node, Pack):
        return [leaf for item in node.items for leaf in _leaves(item)]
    return [node]


def _dtype(fact, name, known, fun):
    dtype = np.dtype(fact.dtype).name if isinstance(fact, Array) else "object"
    if dtype not in known:
        raise KindError(f"{name} is of a kind that C has no type for", place_of(fun), "Export a function of arrays.")
    return dtype


def _lengths(params):
    """The C name of each length that is a length of an argument."""
    found = {}
    for p in params:
        for k, d in enumerate(p.value.fact.dims if isinstance(p.value, Var) else ()):
            n = d.normal()
            if n.symbol is not None and n.offset == 0:
                found.setdefault(n.symbol, f"{p.name}_n{k}")
    return found


def _shape(fact, lengths, name, fun):
    out = []
    for d in fact.dims:
        n = d.normal()
        if n.symbol is not None and n.symbol not in lengths:
            raise KindError(f"the length of {name} is known only when running", place_of(fun),
                            "Export a function whose results have lengths that follow from its arguments'.")
        out.append(str(n.offset) if n.symbol is None else lengths[n.symbol] + (f"{n.offset:+d}" if n.offset else ""))
    return f"[{', '.join(out)}]" if out else ""


def _header(name, declaration, told):
    guard = f"GRADSCRIBE_{name.upper()}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdbool.h>", "#include <stdint.h>", "",
             "#ifdef __cplusplus", 'extern "C" {', "#endif", "", "/* Arrays row by row.  Written by it:",
             *[f" *   {line}" for line in told], " * Returns 0, or another number where the Python function raises. */",
             f"{declaration};", "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)
