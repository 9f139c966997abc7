# SPDX-License-Identifier: Apache-2.0
"""Lowering of scipy.linalg, for programs that have imported it, to calls of runtime/solvers.py and schur.py."""
import numpy as np
import scipy.linalg

from gradscribe.codegen.array_forms import entrywise
from gradscribe.codegen.linalg_forms import of_stack, spectrum, unstacked
from gradscribe.codegen.loops.build import joined
from gradscribe.codegen.lowered import Lazy, lazily, shape
from gradscribe.codegen.shape_forms import dropped, inserted, permuted


@lazily(scipy.linalg.expm)
def _expm(lowering, node):
    x = lowering.lazy(node.args[0])
    lowering.agree(x.dims[-2:])
    lead, (name,), dtype = of_stack(lowering, node, "matrix_exponential", x)
    return unstacked(lowering, name, lead, [x.dims[-1], x.dims[-1]], dtype)


@lazily(scipy.linalg.solve_sylvester)
def _solve_sylvester(lowering, node):
    bound, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    a, b, q = (lowering.lazy(bound[k]) for k in "abq")
    m, n = lowering.agree([*a.dims[-2:], q.dims[-2]]), lowering.agree([*b.dims[-2:], q.dims[-1]])
    lead, (name,), _ = of_stack(lowering, node, "sylvester_solution", a, b, q, dtype=np.dtype(complex))
    return _in_dtype(lowering, unstacked(lowering, name, lead, [m, n], np.dtype(complex)), dtype)


@lazily(scipy.linalg.sqrtm)
def _sqrtm(lowering, node):
    x, dtype = lowering.lazy(node.args[0]), np.dtype(lowering.fact(node).dtype)
    n = lowering.agree(x.dims[-2:])
    kind = np.dtype(complex if x.exact.kind == "c" else float)
    lead, (name,), _ = of_stack(lowering, node, "square_roots", x, dtype=kind)
    return _in_dtype(lowering, unstacked(lowering, name, lead, [n, n], np.dtype(complex)), dtype)


def _in_dtype(lowering, values, dtype):
    """A result that was computed in complex128, converted to its dtype."""
    if dtype.kind != "c":
        values = entrywise(lowering, np.real, np.dtype(float), values)
    return values if values.exact == dtype else Lazy(values.dims, dtype, lambda index: values.cast(index, dtype), 1)


@lazily(scipy.linalg.lu)
def _lu(lowering, node):
    bound = lowering.bound(node)
    if lowering.static(bound["permute_l"]) or lowering.static(bound["p_indices"]):
        lowering.no_form(scipy.linalg.lu, " with permute_l or p_indices")
    x = lowering.lazy(bound["a"])
    n = lowering.agree(x.dims[-2:])
    lead, (p, low, up), dtype = of_stack(lowering, node, "lu_factors", x)
    return [unstacked(lowering, name, lead, [n, n], kind) for name, kind in
            ((p, np.empty(0, dtype).real.dtype), (low, dtype), (up, dtype))]


@lazily(scipy.linalg.solve_triangular)
def _solve_triangular(lowering, node):
    bound, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    a, b = lowering.lazy(bound["a"]), lowering.lazy(bound["b"])
    trans, lower, unit = (lowering.static(bound[k]) for k in ("trans", "lower", "unit_diagonal"))
    if a.rank != 2 or b.rank > 2:
        lowering.no_form(scipy.linalg.solve_triangular, " for stacks of matrices")
    if trans in (1, 2, "T", "C"):
        a, lower = permuted(a, (1, 0)), not lower
    if trans in (2, "C") and a.exact.kind == "c":
        a = entrywise(lowering, np.conj, a.dtype, a)
    return _solution(lowering, a, b, dtype, "triangular_solution", lambda matrix, sides: (
        matrix, sides, bool(lower), bool(unit)))


def _solution(lowering, a, b, dtype, helper, arguments):
    """The result of a runtime function for the columns of b; arguments(a, b): its argument list from both names."""
    vector = b.rank == 1
    tall = inserted(b, {1}) if vector else b
    first, second, name = lowering.array(a, dtype), lowering.array(tall, dtype), lowering.fresh("solution")
    lowering.say("{} = {}({*})", name, helper, arguments(first.name, second.name))
    out = lowering.made(name, tall.dims, dtype)
    return dropped(out, {1}) if vector else out


@lazily(scipy.linalg.solve_banded)
def _solve_banded(lowering, node):
    bound, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    ab, b = lowering.lazy(bound["ab"]), lowering.lazy(bound["b"])
    below, above = lowering.static(bound["l_and_u"])
    if ab.rank != 2 or b.rank > 2:
        lowering.no_form(scipy.linalg.solve_banded, " for stacks of matrices")
    return _solution(lowering, ab, b, dtype, "banded_solution", lambda diagonals, sides: (
        below, above, diagonals, sides))


@lazily(scipy.linalg.eigh)
def _eigh(lowering, node):
    bound = lowering.bound(node)
    if not lowering.static(bound["eigvals_only"]):
        lowering.no_form(scipy.linalg.eigh, ": the signs of its vectors are SciPy's own")
    return spectrum(lowering, node, bound["a"], not lowering.static(bound["lower"]), alone=True)


@lazily(scipy.linalg.block_diag)
def _block_diag(lowering, node):
    dtype = np.dtype(lowering.fact(node).dtype)
    parts = [lowering.array(inserted(x, set(range(2 - x.rank)))) for x in map(lowering.lazy, node.args)]
    dims = []
    for k in range(2):
        dims.append(parts[0].dims[k] if len(parts) == 1 else lowering.computed(
            joined("+", [x.dims[k].length for x in parts])))
    out, row, column = (lowering.fresh(s) for s in ("blocks", "row", "column"))
    lowering.say("{} = np.zeros({}, {})", out, shape(dims), dtype)
    lowering.say("{} = 0", row)
    lowering.say("{} = 0", column)
    for x in parts:
        with lowering.nest(x.dims) as (i, j):
            lowering.say("{}[{} + {}, {} + {}] = {}", out, row, i, column, j, x.cast([i, j], dtype))
        lowering.say("{} += {}", row, x.dims[0].length)
        lowering.say("{} += {}", column, x.dims[1].length)
    return lowering.made(out, dims, dtype)
