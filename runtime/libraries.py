# SPDX-License-Identifier: Apache-2.0
"""Array functions of CuPy and NumPy with the signatures of compiled code: for stacks of matrices and for lines.

The first argument is the package.  Products use cuBLAS (blas.py), decompositions cuSOLVER, Fourier transforms cuFFT;
collectives use the groups that are bound (groups.py).
"""

import contextlib
import importlib

from gradscribe.runtime import blas, groups


def call(name, xp, *args):
    """Call one of FUNCTIONS.

    Raises LinAlgError where NumPy does, for example for a singular matrix; CuPy waits for the device to check this.
    """
    looking = contextlib.nullcontext() if xp.__name__ == "numpy" or name not in LINEAR_ALGEBRA else \
        importlib.import_module("cupyx").errstate(linalg="raise")
    with looking:
        return FUNCTIONS[name](xp, *args)


def _stacks(xp, a, b):
    """Two stacks broadcast to an equal number of matrices."""
    count = 0 if 0 in (a.shape[0], b.shape[0]) else max(a.shape[0], b.shape[0])
    return tuple(xp.broadcast_to(s[:count] if count < s.shape[0] else s, (count, *s.shape[1:])) for s in (a, b))


def _solution(xp, a, b):
    return xp.linalg.solve(*_stacks(xp, a, b))


def _product(xp, a, b):
    if xp.__name__ == "numpy":
        return xp.matmul(*_stacks(xp, *blas.of_wide(a, b))).astype(xp.result_type(a, b), copy=False)
    return xp.empty((0, a.shape[1], b.shape[2]), a.dtype) if 0 in (a.shape[0], b.shape[0]) else blas.product(xp, a, b)


def _dot(xp, a, b, out=None):
    if xp.__name__ == "numpy":
        if out is not None and out.dtype.char != "E":
            return xp.dot(a, b, out)
        made = xp.dot(*blas.of_wide(a, b)).astype(xp.result_type(a, b), copy=False)
        if out is None:
            return made
        out[...] = made
        return out
    return blas.product(xp, a, b, out)


def _in_tf32(product):
    """A product with single-precision factors rounded to 10 bits."""
    def rounded(xp, a, b, out=None):
        if xp.__name__ == "numpy":
            return product(xp, a, b) if out is None else product(xp, a, b, out)
        return blas.product(xp, a, b, out, tf32=True)
    return rounded


def _sorted(xp, lines):
    return xp.sort(lines, axis=-1)


def _order(xp, lines):
    return xp.argsort(lines, axis=-1, kind="stable") if xp.__name__ == "numpy" else xp.argsort(lines, axis=-1)


def _transforms(xp, lines, sign):
    """Fourier transforms without scaling, in either direction."""
    if lines.shape[1] == 0 or lines.shape[0] == 0:
        return xp.zeros(lines.shape, "complex128")
    out = xp.fft.fft(lines, axis=1) if sign < 0 else xp.fft.ifft(lines, axis=1) * lines.shape[1]
    return out.astype("complex128", copy=False)


def _half_transforms(xp, lines):
    if lines.shape[1] == 0 or lines.shape[0] == 0:
        return xp.zeros((lines.shape[0], lines.shape[1] // 2 + 1), "complex128")
    return xp.fft.rfft(lines, axis=1).astype("complex128", copy=False)


def _collected(function):
    """A collective (groups.py) on arrays of the package."""
    def of_package(xp, *args):
        return function(*args, xp=xp)
    return of_package


def _log_determinant(xp, a):
    sign, log = xp.linalg.slogdet(a)
    return sign.astype(a.dtype, copy=False), log


FUNCTIONS = {
    "dot": _dot,
    "dot_tf32": _in_tf32(_dot),
    "product": _product,
    "product_tf32": _in_tf32(_product),
    "integer_product": _product,
    "solution": _solution,
    "solution_of_real": _solution,
    "inverse": lambda xp, a: xp.linalg.inv(a),
    "inverse_of_real": lambda xp, a: xp.linalg.inv(a),
    "determinant": lambda xp, a: xp.linalg.det(a),
    "determinant_of_real": lambda xp, a: xp.linalg.det(a),
    "log_determinant": _log_determinant,
    "log_determinant_of_real": _log_determinant,
    "cholesky": lambda xp, a: xp.linalg.cholesky(a),
    "cholesky_of_real": lambda xp, a: xp.linalg.cholesky(a),
    "eigh": lambda xp, a: tuple(xp.linalg.eigh(a)),
    "symmetric_values": lambda xp, a: xp.linalg.eigvalsh(a),
    "qr": lambda xp, a: tuple(xp.linalg.qr(a)),
    "svd_thin": lambda xp, a: tuple(xp.linalg.svd(a, full_matrices=False)),
    "svd_full": lambda xp, a: tuple(xp.linalg.svd(a, full_matrices=True)),
    "pseudo_inverse": lambda xp, a, rcond: xp.linalg.pinv(a, rcond),
    "transform_lines": _transforms,
    "half_transform_lines": _half_transforms,
    "sort_lines": _sorted,
    "argsort_lines": _order,
    "median_lines": lambda xp, lines: xp.median(lines, axis=1).astype(lines.dtype, copy=False),
    "running_sum": lambda xp, terms: xp.cumsum(terms, dtype=terms.dtype),
    "running_sum_back": lambda xp, terms: xp.ascontiguousarray(xp.cumsum(terms[::-1], dtype=terms.dtype)[::-1]),
    "running_product": lambda xp, terms: xp.cumprod(terms, dtype=terms.dtype),
    "nonzero_flat": lambda xp, x: xp.flatnonzero(x),
    "collected": _collected(groups.collected),
    "collected_number": _collected(groups.collected_number),
    "collected_done": _collected(groups.collected_done),
    "collected_all": _collected(groups.collected_all),
    "taken_lines": lambda xp, lines, order: xp.take_along_axis(lines, order, axis=1),
}
LINEAR_ALGEBRA = {"solution", "solution_of_real", "inverse", "inverse_of_real", "cholesky", "cholesky_of_real", "eigh",
                  "symmetric_values", "qr", "svd_thin", "svd_full", "pseudo_inverse"}
