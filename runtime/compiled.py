# SPDX-License-Identifier: Apache-2.0
"""Functions for compiled code that Numba lacks: plain loops, compiled when first needed.

Each function is also plain Python.  Those for stacks of matrices take three axes, the stack first; those for lines
take two, with the lines along the last.
"""
import math

import numpy as np

from gradscribe.runtime.vmath_roots import hypot


class Unsaid(Exception):
    """Raised by compiled code that cannot make its error message; the plain function is called to raise it."""


def whole(function):
    """Mark a function that takes whole stacks or sets of lines, or is long: it is not inlined (codegen/helpers.py)."""
    function.whole = True
    return function


def apart(**kinds):
    """Mark a function whose array arguments share no memory, so that its loops are noalias (codegen/helpers.py).

    kinds: (dtype, rank) of the parameters.
    """
    def marked(function):
        function.apart = kinds
        return function
    return marked


# --- lengths and indices ----------------------------------------------------------------------------------------------


def same(n, m):
    """Checks that two lengths are equal."""
    if n != m:
        raise ValueError("operands could not be broadcast together")
    return n


def fits(n, m):
    """Checks that an axis of length n broadcasts to length m."""
    if n != 1 and n != m:
        raise ValueError("could not broadcast: an axis is longer than the one it is laid over")


def is_length(n):
    """Checks that n is not negative, for the length of an array that is optimised away."""
    if n < 0:
        raise ValueError("negative dimensions are not allowed")


def not_one(n):
    """Checks that a length is not one."""
    if n == 1:
        raise ValueError("a length is one that was longer before")


def meet(n, m):
    """The broadcast length of two axes."""
    if n != 1 and m != 1 and m != n:
        raise ValueError("operands could not be broadcast together")
    if n == 1:
        return m
    return n


def reaches(count, last, n):
    """Checks the bounds of a loop of `count` passes with `last` as its largest index, on an axis of length n.

    >>> reaches(0, 5, 3)
    """
    if count > 0 and last >= n:
        raise IndexError("index is out of bounds for its axis")


def place(k, n):
    """Index k on an axis of length n as a nonnegative index.

    >>> place(-1, 3)
    2
    """
    if k < 0:
        k += n
    if k < 0 or k >= n:
        raise IndexError("index is out of bounds for its axis")
    return k


# --- numbers ----------------------------------------------------------------------------------------------------------

def square(x):
    return x * x


def maximum(a, b):
    return a if a >= b or a != a else b


def minimum(a, b):
    return a if a <= b or a != a else b


def fmax(a, b):
    return a if a >= b or b != b else b


def fmin(a, b):
    return a if a <= b or b != b else b


def sign(x):
    """The sign of a floating-point number; that of either zero is 0."""
    if x > 0:
        return 1.0
    if x < 0:
        return -1.0
    return x + 0.0


def whole_sign(n):
    return (n > 0) - (n < 0)


def heaviside(a, b):
    if a != a:
        return a
    return b if a == 0 else 1.0 if a > 0 else 0.0


def sinc(x):
    return math.sin(math.pi * x) / (math.pi * x) if x != 0 else 1.0


def single(x):
    """A number in single precision; in kernels for a device also from bfloat16 storage."""
    return np.float32(x)


def integer_power(x, n):
    if n < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    result = x - x - ~(x - x)           # 1, of the type of x: uint64 and a literal would be a float
    while n > 0:
        if n & 1:
            result = result * x
        x = x * x
        n >>= 1
    return result


def gcd(a, b):
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


def lcm(a, b):
    return abs(a // gcd(a, b) * b) if a and b else a - a


def round_to(x, decimals, scale):
    """np.round; scale: 10**abs(decimals) in the dtype of x, since NumPy multiplies in that dtype."""
    if decimals == 0:
        return np.rint(x)
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def near(a, b, rtol, atol, equal_nan):
    if a == b:
        return True
    if a != a or b != b:
        return equal_nan and a != a and b != b
    return abs(a - b) <= atol + rtol * abs(b) and abs(b) < np.inf and abs(a) < np.inf


def near_math(a, b, rel_tol, abs_tol):
    if a == b:
        return True
    if abs(a) == np.inf or abs(b) == np.inf:
        return False
    return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def whole_fmod(a, b):
    """The remainder of integers with the sign of the first; 0 for a division by 0, as in NumPy."""
    if b == 0:
        return a - a
    r = a % b
    return r - b if r != 0 and (r < 0) != (a < 0) else r


def complex_quotient(a, b):
    """NumPy's complex quotient, which never raises: R. Smith, Algorithm 116: Complex division, 1962."""
    if abs(b.real) >= abs(b.imag):
        if b.real == 0 and b.imag == 0:
            return complex(a.real / abs(b.real), a.imag / abs(b.real))
        ratio = b.imag / b.real
        scale = 1.0 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = 1.0 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def real_quotient(a, b):
    """NumPy's quotient of a complex number by a real one, with b as b + 0j, so that infinity times 0 gives NaN."""
    if b == 0:
        return complex(a.real / abs(b), a.imag / abs(b))
    ratio, scale = 0.0 / b, 1.0 / b
    return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)


def complex_size(z):
    """The absolute value, in a form that is vectorised."""
    return hypot(z.real, z.imag)


def squared_size(z):
    return z.real * z.real + z.imag * z.imag


def finite_or(x, nan, low, high):
    return nan if x != x else high if x == np.inf else low if x == -np.inf else x


# --- order ------------------------------------------------------------------------------------------------------------

def complex_less(a, b):
    """a < b for complex numbers in NumPy's order: by real parts, then by imaginary parts."""
    return a.real < b.real and a.imag == a.imag and b.imag == b.imag or a.real == b.real and a.imag < b.imag


def complex_at_most(a, b):
    """a <= b for complex numbers, in the same order."""
    return a.real < b.real and a.imag == a.imag and b.imag == b.imag or a.real == b.real and a.imag <= b.imag


def complex_maximum(a, b):
    """The larger of two complex numbers, or the first that is NaN."""
    return a if a != a or complex_at_most(b, a) else b


def complex_minimum(a, b):
    """The smaller of two complex numbers, or the first that is NaN."""
    return a if a != a or complex_at_most(a, b) else b


def less(a, b):
    """a < b, with NaN as the largest."""
    return a < b or (b != b and a == a)


@whole
def argsort_lines(x):
    """The stable order of each line, by merge sort."""
    lines, n = x.shape
    out = np.empty((lines, n), np.int64)
    first, second = np.empty(n, np.int64), np.empty(n, np.int64)
    for line in range(lines):
        for i in range(n):
            first[i] = i
        width = 1
        while width < n:
            start = 0
            while start < n:
                middle, stop = min(start + width, n), min(start + 2 * width, n)
                i, j = start, middle
                for k in range(start, stop):
                    if i < middle and (j >= stop or not less(x[line, first[j]], x[line, first[i]])):
                        second[k] = first[i]
                        i += 1
                    else:
                        second[k] = first[j]
                        j += 1
                start = stop
            for i in range(n):
                first[i] = second[i]
            width *= 2
        for i in range(n):
            out[line, i] = first[i]
    return out


@whole
def sort_lines(x):
    order, out = argsort_lines(x), np.empty_like(x)
    for line in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[line, i] = x[line, order[line, i]]
    return out


@whole
def median_lines(x):
    ordered, out, n = sort_lines(x), np.empty(x.shape[0], x.dtype), x.shape[1]
    for line in range(x.shape[0]):
        if n == 0 or ordered[line, n - 1] != ordered[line, n - 1]:
            out[line] = np.nan
        else:
            out[line] = ordered[line, n // 2] if n % 2 else (ordered[line, n // 2 - 1] + ordered[line, n // 2]) / 2
    return out


def search_sorted(a, v, right):
    """The number of entries of a before v, or with `right` up to v."""
    low, high = 0, a.shape[0]
    while low < high:
        middle = (low + high) // 2
        if less(a[middle], v) or (right and not less(v, a[middle])):
            low = middle + 1
        else:
            high = middle
    return low


# --- indices by condition ---------------------------------------------------------------------------------------------

@whole
def nonzero_flat(x):
    """The indices of nonzero entries of a flat array."""
    count = 0
    for i in range(x.shape[0]):
        if x[i] != 0:
            count += 1
    out, k = np.empty(count, np.int64), 0
    for i in range(x.shape[0]):
        if x[i] != 0:
            out[k] = i
            k += 1
    return out


# --- matrices ---------------------------------------------------------------------------------------------------------

@whole
def product(a, b):
    """Matrix products of two stacks of equal length, or one of length one."""
    count = max(a.shape[0], b.shape[0])
    if a.shape[0] == 0 or b.shape[0] == 0:
        count = 0
    out = np.empty((count, a.shape[1], b.shape[2]), a.dtype)
    for k in range(count):
        put(out, k, np.dot(a[k if a.shape[0] > 1 else 0], b[k if b.shape[0] > 1 else 0]))
    return out


@whole
def integer_product(a, b):
    """As product, for dtypes that BLAS does not have."""
    count = max(a.shape[0], b.shape[0])
    if a.shape[0] == 0 or b.shape[0] == 0:
        count = 0
    out = np.zeros((count, a.shape[1], b.shape[2]), a.dtype)
    for s in range(count):
        p, q = (s if a.shape[0] > 1 else 0), (s if b.shape[0] > 1 else 0)
        for i in range(a.shape[1]):
            for k in range(a.shape[2]):
                for j in range(b.shape[2]):
                    out[s, i, j] += a[p, i, k] * b[q, k, j]
    return out


def put(out, k, value):
    """out[k] = value for a matrix; this loop compiles faster."""
    for i in range(value.shape[0]):
        for j in range(value.shape[1]):
            out[k, i, j] = value[i, j]


def put_line(out, k, value):
    for i in range(value.shape[0]):
        out[k, i] = value[i]


@whole
def inverse(a):
    out = np.empty_like(a)
    for k in range(a.shape[0]):
        put(out, k, np.linalg.inv(a[k]))
    return out


@whole
def solution(a, b):
    out = np.empty((max(a.shape[0], b.shape[0]) if a.shape[0] and b.shape[0] else 0, b.shape[1], b.shape[2]), b.dtype)
    for k in range(out.shape[0]):
        put(out, k, np.linalg.solve(a[k if a.shape[0] > 1 else 0], b[k if b.shape[0] > 1 else 0]))
    return out


@whole
def determinant(a):
    out = np.empty(a.shape[0], a.dtype)
    for k in range(a.shape[0]):
        out[k] = np.linalg.det(a[k])
    return out


@whole
def log_determinant(a):
    sign, log = np.empty(a.shape[0], a.dtype), np.empty(a.shape[0], a.real.dtype)
    for k in range(a.shape[0]):
        sign[k], log[k] = np.linalg.slogdet(a[k])
    return sign, log


@whole
def cholesky(a):
    out = np.empty_like(a)
    for k in range(a.shape[0]):
        put(out, k, np.linalg.cholesky(a[k]))
    return out


@whole
def eigh(a):
    w, v = np.empty(a.shape[:2], a.real.dtype), np.empty_like(a)
    for k in range(a.shape[0]):
        values, vectors = np.linalg.eigh(a[k])
        put_line(w, k, values)
        put(v, k, vectors)
    return w, v


@whole
def qr(a):
    n = min(a.shape[1], a.shape[2])
    q, r = np.empty((a.shape[0], a.shape[1], n), a.dtype), np.empty((a.shape[0], n, a.shape[2]), a.dtype)
    for k in range(a.shape[0]):
        first, second = np.linalg.qr(a[k])
        put(q, k, first)
        put(r, k, second)
    return q, r


@whole
def svd_thin(a):
    n = min(a.shape[1], a.shape[2])
    u, s = np.empty((a.shape[0], a.shape[1], n), a.dtype), np.empty((a.shape[0], n), a.real.dtype)
    vt = np.empty((a.shape[0], n, a.shape[2]), a.dtype)
    for k in range(a.shape[0]):
        left, values, right = np.linalg.svd(a[k], False)
        put(u, k, left)
        put_line(s, k, values)
        put(vt, k, right)
    return u, s, vt


@whole
def svd_full(a):
    m, n = a.shape[1], a.shape[2]
    u, s = np.empty((a.shape[0], m, m), a.dtype), np.empty((a.shape[0], min(m, n)), a.real.dtype)
    vt = np.empty((a.shape[0], n, n), a.dtype)
    for k in range(a.shape[0]):
        left, values, right = np.linalg.svd(a[k], True)
        put(u, k, left)
        put_line(s, k, values)
        put(vt, k, right)
    return u, s, vt


@whole
def pseudo_inverse(a, rcond):
    out = np.empty((a.shape[0], a.shape[2], a.shape[1]), a.dtype)
    for k in range(a.shape[0]):
        put(out, k, np.linalg.pinv(a[k], rcond))
    return out
