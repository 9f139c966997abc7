# SPDX-License-Identifier: Apache-2.0
"""Lowering of linear algebra: one real matrix by its factors, stacks of real ones by runtime/systems.py, others by
LAPACK one at a time.
"""
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.codegen.array_forms import axes_of, entrywise, reduce, shaped
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, quoted
from gradscribe.codegen.lowered import Dim, Lazy, Lowering, lazily
from gradscribe.codegen.product_forms import three
from gradscribe.codegen.shape_forms import dropped, inserted, permuted
from gradscribe.runtime.matrices import (
    cofactors,
    cofactors_along,
    determined_by,
    factors,
    inverted_by,
    log_determined_by,
    solved_across,
    solved_by,
    solved_by_triangle,
)

OF_REAL = {name: f"{name}_of_real" for name in ("solution", "inverse", "determinant", "log_determinant", "cholesky")}


# --- linear algebra ---------------------------------------------------------------------------------------------------

def of_stack(lowering: Lowering, node: Apply, helper: str, *operands: Lazy, dtype: DTypeLike | None = None,
             also: Iterable[Any] = ()) -> tuple[list[Dim], list[str], np.dtype]:
    """(leading axes, names of the results, dtype) of a call of a runtime function on stacks of matrices.

    also: scalars that are passed after the stacks.
    """
    facts = lowering.fact(node)
    facts = facts.elements if hasattr(facts, "elements") else (facts,)
    dtype = np.dtype(dtype or operands[0].dtype)
    if dtype.kind not in "fc":
        dtype = np.dtype(float)
    lead, _ = lowering.broadcast([x.dims[:-2] for x in operands])
    stacks = [lowering.array(three(lowering, x, lead), dtype) for x in operands]
    names = [lowering.fresh(helper.split("_")[0]) for _ in facts]
    helper = OF_REAL.get(helper, helper) if dtype.kind == "f" else helper
    lowering.set(names if len(names) > 1 else names[0], quoted("{}({*})", helper, [*(s.name for s in stacks), *also]))
    return lead, names, dtype


def unstacked(lowering: Lowering, name: str, lead: list[Dim], dims: list[Dim], dtype: DTypeLike) -> Lazy:
    """A runtime function's result with all leading axes of the stack."""
    stack = lowering.made(name, [Dim(loops.Length(name, 0), (name, 0), "maybe"), *dims], dtype)
    if not lead:
        return Lazy(dims, dtype, lambda index: stack.read([ZERO, *index]), 0)
    return shaped(lowering, stack, [*lead, *dims]) if len(lead) > 1 else lowering.made(name, [*lead, *dims], dtype)


@lazily(np.linalg.inv)
def _inv(lowering, node):
    x = lowering.lazy(node.args[0])
    if is_one(lowering, x):
        return inverse(lowering, x, factored(lowering, x))
    lead, (name,), dtype = of_stack(lowering, node, "inverse", x)
    lowering.agree(x.dims[-2:])
    return unstacked(lowering, name, lead, [x.dims[-1], x.dims[-2]], dtype)


@lazily(np.linalg.cholesky)
def _cholesky(lowering, node):
    bound = lowering.bound(node)
    x, upper = lowering.lazy(bound["a"]), lowering.static(bound["upper"])
    lead, (name,), dtype = of_stack(lowering, node, "cholesky", other_triangle(lowering, x) if upper else x)
    lowering.agree(x.dims[-2:])
    out = unstacked(lowering, name, lead, [x.dims[-1], x.dims[-2]], dtype)
    return other_triangle(lowering, out) if upper else out


@lazily(np.linalg.pinv)
def _pinv(lowering, node):
    bound = lowering.bound(node)
    x, rcond = lowering.lazy(bound["a"]), bound["rcond"]
    if lowering.static(bound["hermitian"]):
        lowering.no_form(np.linalg.pinv, " with hermitian")
    if isinstance(rcond, Const) and rcond.value is None:
        rcond = Const(1e-15)            # NumPy's default
    if lowering.lazy(rcond).rank:
        lowering.no_form(np.linalg.pinv, " with an array of bounds")
    lead, (name,), dtype = of_stack(lowering, node, "pseudo_inverse", x, also=[lowering.scalar(rcond, np.dtype(float))])
    return unstacked(lowering, name, lead, [x.dims[-1], x.dims[-2]], dtype)


# --- one real matrix --------------------------------------------------------------------------------------------------

def is_one(lowering, *operands):
    """Whether these are single matrices or vectors of one real dtype that LAPACK has, for the CPU."""
    kinds = {x.exact for x in operands}
    return not lowering.for_threads and operands[0].rank == 2 and all(x.rank in (1, 2) for x in operands) and \
        len(kinds) == 1 and kinds <= {np.dtype(np.float32), np.dtype(np.float64)}


def factored(lowering, x):
    """The names of a matrix's LU factors and of their row order."""
    lowering.agree(x.dims)
    names = lowering.fresh("factors"), lowering.fresh("order")
    lowering.set(names, quoted("factors_of_matrix({})", lowering.array(x).name))
    return names


def solutions(lowering, a, names, b, across=False):
    """The solutions of a system by a matrix's factors; across: with the transposed matrix."""
    right, (lu, order) = lowering.array(inserted(b, {1}) if b.rank == 1 else b), names
    name = lowering.fresh("solution")
    lowering.agree([a.dims[across - 1], b.dims[0]])
    if b.rank == 1:
        helper = "solution_across" if across else "solution_by"
        lowering.say("{} = {}({}, {}, {})", name, helper, lu, order, right.name)
    else:
        lowering.say("{} = solutions_by({}, {}, {}, {})", name, lu, order, right.name, across)
    out = lowering.made(name, [a.dims[0], right.dims[1]], a.exact)
    return dropped(out, {1}) if b.rank == 1 else out


def inverse(lowering, a, names):
    name = lowering.result("inverse", "inverse_by({*})", names)
    return lowering.made(name, [a.dims[1], a.dims[0]], a.exact)


def determinant(lowering, a, names):
    name = lowering.result("determinant", "determinant_by({*})", names)
    return Lazy([], a.exact, name, 0)


def log_determinant(lowering, a, names):
    sign, log = lowering.fresh("sign"), lowering.fresh("log")
    lowering.say("{}, {} = log_determinant_by({*})", sign, log, names)
    return [Lazy([], a.exact, name, 0) for name in (sign, log)]


@lazily(factors)
def _factors(lowering, node):
    x = lowering.lazy(node.args[0])
    lu, order = factored(lowering, x)
    return [lowering.made(lu, x.dims, x.exact), lowering.made(order, x.dims[:1], np.dtype(np.int32))]


def kept(lowering, node):
    """(matrix, names of its factors) of a call's arguments."""
    return lowering.lazy(node.args[0]), [lowering.lazy(v).name for v in node.args[1:3]]


@lazily(solved_by, across=False)
@lazily(solved_across, across=True)
def _solved(lowering, node, across):
    return solutions(lowering, *kept(lowering, node), lowering.lazy(node.args[3]), across)


@lazily(solved_by_triangle)
def _solved_by_triangle(lowering, node):
    a, b = map(lowering.lazy, node.args[:2])
    lower, across = map(lowering.static, node.args[2:])
    lowering.agree(a.dims)
    lowering.agree([a.dims[0], b.dims[0]])
    matrix, right = lowering.array(a).name, lowering.array(inserted(b, {1}) if b.rank == 1 else b)
    name = lowering.result("solution", "triangle_solution({}, {}, {}, {})", matrix, right.name, lower, across)
    out = lowering.made(name, right.dims, a.exact)
    return dropped(out, {1}) if b.rank == 1 else out


@lazily(inverted_by, form=inverse)
@lazily(determined_by, form=determinant)
@lazily(log_determined_by, form=log_determinant)
def _by_factors(lowering, node, form):
    return form(lowering, *kept(lowering, node))


# --- stacks -----------------------------------------------------------------------------------------------------------

@lazily(np.linalg.solve)
def _solve(lowering, node):
    a, b = (lowering.lazy(x) for x in node.args)
    if is_one(lowering, a, b):
        return solutions(lowering, a, factored(lowering, a), b)
    vector = b.rank == 1
    tall = inserted(b, {1}) if vector else b
    lowering.agree([a.dims[-1], tall.dims[-2]])
    lead, (name,), dtype = of_stack(lowering, node, "solution", a, tall, dtype=lowering.fact(node).dtype)
    out = unstacked(lowering, name, lead, tall.dims[-2:], dtype)
    return dropped(out, {out.rank - 1}) if vector else out


@lazily(np.linalg.lstsq)
def _lstsq(lowering, node):
    bound = lowering.bound(node)
    a, b = lowering.lazy(bound["a"]), lowering.lazy(bound["b"])
    if a.rank != 2 or b.rank not in (1, 2):
        lowering.no_form(np.linalg.lstsq, " for these ranks")
    lowering.agree([a.dims[0], b.dims[0]])
    dtype = np.result_type(a.exact, b.exact, np.float32)
    real = np.empty(0, dtype).real.dtype
    first, second = lowering.array(a, dtype), lowering.array(b, dtype)
    x, residuals, rank, s = (lowering.fresh(n) for n in ("solution", "residuals", "rank", "values"))
    given = bound["rcond"]
    least = quoted("{} * max({}, {})", float(str(np.finfo(dtype).eps)), a.dims[0].length, a.dims[1].length)
    rcond = least if isinstance(given, Const) and given.value is None else lowering.scalar(given, float)
    lowering.say("{}, {}, {}, {} = np.linalg.lstsq({}, {}, {})", x, residuals, rank, s, first.name, second.name, rcond)
    dims = [Dim(loops.Length(n, 0), (n, 0), "maybe") for n in (residuals, s)]
    return [lowering.made(x, [a.dims[1], *b.dims[1:]], dtype), lowering.made(residuals, dims[:1], real),
            Lazy([], np.dtype(np.int32), quoted("np.int32({})", rank), 1), lowering.made(s, dims[1:], real)]


@lazily(np.linalg.det)
def _det(lowering, node):
    x = lowering.lazy(node.args[0])
    if is_one(lowering, x):
        return determinant(lowering, x, factored(lowering, x))
    lead, (name,), dtype = of_stack(lowering, node, "determinant", x)
    return unstacked(lowering, name, lead, [], dtype)


@lazily(cofactors)
def _cofactors(lowering, node):
    x = lowering.lazy(node.args[0])
    lead, (name,), dtype = of_stack(lowering, node, "cofactors", x)
    lowering.agree(x.dims[-2:])
    return unstacked(lowering, name, lead, [x.dims[-1], x.dims[-2]], dtype)


@lazily(cofactors_along)
def _cofactors_along(lowering, node):
    x, b = map(lowering.lazy, node.args)
    lead, (name,), dtype = of_stack(lowering, node, "cofactors_along", x, b, dtype=np.result_type(x.dtype, b.dtype))
    lowering.agree(x.dims[-2:])
    return unstacked(lowering, name, lead, [x.dims[-1], x.dims[-2]], dtype)


@lazily(np.linalg.slogdet)
def _slogdet(lowering, node):
    x = lowering.lazy(node.args[0])
    if is_one(lowering, x):
        return log_determinant(lowering, x, factored(lowering, x))
    lead, (sign, log), dtype = of_stack(lowering, node, "log_determinant", x)
    real = np.empty(0, dtype).real.dtype
    return [unstacked(lowering, sign, lead, [], dtype), unstacked(lowering, log, lead, [], real)]


def other_triangle(lowering, x):
    """The conjugate transpose, whose lower triangle is the upper one of x."""
    turned = permuted(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
    return entrywise(lowering, np.conj, x.dtype, turned) if x.exact.kind == "c" else turned


@lazily(np.linalg.eigh, alone=False)
@lazily(np.linalg.eigvalsh, alone=True)
def _eigh(lowering, node, alone):
    bound = lowering.bound(node)
    upper = lowering.static(bound["UPLO"]).upper() == "U"
    if upper and not alone:
        lowering.no_form(np.linalg.eigh, " for the upper triangle")
    return spectrum(lowering, node, bound["a"], upper, alone)


def spectrum(lowering: Lowering, node: Apply, a: Any, upper: bool, alone: bool) -> Lazy | list[Lazy]:
    """The eigenvalues of a symmetric matrix, alone or with its eigenvectors."""
    x = other_triangle(lowering, lowering.lazy(a)) if upper else lowering.lazy(a)
    if alone and x.exact.kind != "c":
        values: Any = Apply(np.linalg.eigvalsh, (lowering.stand_in(a),))
        lead, (w,), dtype = of_stack(lowering, values, "symmetric_values", x)
        return unstacked(lowering, w, lead, [x.dims[-1]], dtype)
    lead, (w, v), dtype = of_stack(lowering, Apply(np.linalg.eigh, (lowering.stand_in(a),)), "eigh", x)
    n = x.dims[-1]
    values = unstacked(lowering, w, lead, [n], np.empty(0, dtype).real.dtype)
    return values if alone else [values, unstacked(lowering, v, lead, [n, n], dtype)]


@lazily(np.linalg.eig, alone=False)
@lazily(np.linalg.eigvals, alone=True)
def _eig(lowering, node, alone):
    x = lowering.lazy(node.args[0])
    fact = lowering.fact(node)
    if alone and x.dtype.kind == "f":
        lead, (w,), _ = of_stack(lowering, node, "real_eigenvalues", x, dtype=np.dtype(float))
        values = unstacked(lowering, w, lead, [x.dims[-1]], np.dtype(complex))
        kind = np.dtype(fact.dtype)
        return values if kind == np.complex128 else Lazy(values.dims, kind, lambda index: values.cast(index, kind), 1)
    result = np.dtype((fact.elements[0] if hasattr(fact, "elements") else fact).dtype)
    if alone and x.dtype.kind == "c":
        lead, (w,), _ = of_stack(lowering, node, "eigenvalues", x, dtype=result)
        return unstacked(lowering, w, lead, [x.dims[-1]], result)
    whole = Apply(np.linalg.eig, (lowering.stand_in(node.args[0]),))
    # NumPy's result for a real matrix is complex only if an eigenvalue is; in compiled code it always is.
    helper = "complex_eig" if x.dtype.kind == "c" else "eig"
    lead, (w, v), dtype = of_stack(lowering, whole, helper, x, dtype=result)
    n = x.dims[-1]
    values = unstacked(lowering, w, lead, [n], dtype)
    return values if alone else [values, unstacked(lowering, v, lead, [n, n], dtype)]


def smaller(lowering, m, n):
    if m.key == n.key or n.kind == "one":
        return n
    if m.kind == "one":
        return m
    if m.key[0] is None and n.key[0] is None:
        return lowering.length(min(m.key[1], n.key[1]))
    return lowering.computed(quoted("min({}, {})", m.length, n.length))


@lazily(np.linalg.svd, alone=False)
@lazily(np.linalg.svdvals, alone=True)
def _svd(lowering, node, alone):
    b = lowering.bound(node)
    x = lowering.lazy(b["a"])
    if lowering.static(b.get("hermitian", Const(False))):
        lowering.no_form(np.linalg.svd, " with hermitian=True")
    full = lowering.static(b.get("full_matrices", Const(False)))
    alone = alone or not lowering.static(b["compute_uv"])
    parts = singular(lowering, x, full and not alone, lowering.stand_in(b["a"]))
    return parts[1] if alone else parts


def singular(lowering, x, full, operand):
    whole = Apply(np.linalg.svd, (operand,), (("full_matrices", Const(full)),))
    lead, (u, s, vt), dtype = of_stack(lowering, whole, "svd_full" if full else "svd_thin", x)
    m, n = x.dims[-2:]
    k = smaller(lowering, m, n)
    real = np.empty(0, dtype).real.dtype
    return [unstacked(lowering, name, lead, dims, kind) for name, dims, kind in (
        (u, [m, m if full else k], dtype), (s, [k], real), (vt, [n if full else k, n], dtype))]


@lazily(np.linalg.qr)
def _qr(lowering, node):
    b = lowering.bound(node)
    mode = lowering.static(b["mode"])
    if mode not in ("reduced", "r"):
        lowering.no_form(np.linalg.qr, " in this mode")
    x = lowering.lazy(b["a"])
    whole = Apply(np.linalg.qr, (lowering.stand_in(b["a"]),))
    lead, (q, r), dtype = of_stack(lowering, whole, "qr", x)
    m, n = x.dims[-2:]
    k = smaller(lowering, m, n)
    triangle = unstacked(lowering, r, lead, [k, n], dtype)
    return triangle if mode == "r" else [unstacked(lowering, q, lead, [m, k], dtype), triangle]


@lazily(np.linalg.norm)
def _norm(lowering, node):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    given: list = [lowering.lazy(b["x"]), *(lowering.static(b[k]) for k in ("axis", "ord", "keepdims"))]
    x, axis, ord_, keep = given
    axes = axes_of(lowering, axis, x.rank)
    size = entrywise(lowering, np.abs, np.empty(0, x.exact).real.dtype if x.exact.kind == "c" else
                     dtype if x.exact.kind in "iu" else x.dtype, x)

    def total(v, kind, axes=axes, keep=keep):
        return reduce(lowering, v, axes, keep, kind, dtype)

    if ord_ is None or len(axes) == 1 and ord_ == 2 or len(axes) == 2 and ord_ == "fro":
        return entrywise(lowering, np.sqrt, dtype, total(entrywise(lowering, np.square, dtype, size), "sum"))
    if len(axes) == 1:
        if ord_ in (np.inf, -np.inf):
            return total(size, "max" if ord_ > 0 else "min")
        if ord_ == 0:
            return total(entrywise(lowering, np.not_equal, np.dtype(bool), x, Const(0)), "sum")
        if ord_ == 1:
            return total(size, "sum")
        power = entrywise(lowering, operator.pow, dtype, size, Const(float(ord_)))
        return entrywise(lowering, operator.pow, dtype, total(power, "sum"), Const(1.0 / ord_))
    if len(axes) != 2:
        lowering.no_form(np.linalg.norm, " for these axes")
    if ord_ in (1, -1, np.inf, -np.inf):
        rows, columns = (a % x.rank for a in (axis or (0, 1)))
        inner = rows if abs(ord_) == 1 else columns
        sums = total(size, "sum", (inner,), True)
        out = total(sums, "max" if ord_ > 0 else "min", axes, True)
        return out if keep else dropped(out, set(axes))
    order = [k for k in range(x.rank) if k not in axes] + [a % x.rank for a in (axis or (0, 1))]
    moved = permuted(x, order)
    fact = lowering.fact(b["x"])
    stood = Var("m", Array(fact.dtype, tuple(fact.dims[k] for k in order)))
    s = singular(lowering, lowering.array(moved), False, stood)[1]
    out = total(s, {"nuc": "sum", 2: "max", -2: "min"}[ord_], (s.rank - 1,), False)
    return inserted(out, set(axes)) if keep else out
