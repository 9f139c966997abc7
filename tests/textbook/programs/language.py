# SPDX-License-Identifier: Apache-2.0
"""Programs heavy in language features: aliases, views, out=, where=, ufunc methods, generators, classes."""
import enum
import math
from collections import OrderedDict

import numpy as np
import scipy.linalg
import scipy.special as sp

R = np.random.default_rng(17)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


@add(R.normal(size=(4, 5)))
def views_of_views(a):
    a = a * 1.0
    b = a[::-1]
    c = b[1:, ::2]
    c[...] = c * 2 + a[0, 1]
    d = a.T[::-1]
    d[1] += b[:, 0]
    e = a.reshape(-1)
    e[3:11:4] *= e[0]
    return np.sum(a ** 2) + c[0, 0] * d[1, 1]


@add(R.normal(size=(3, 4)))
def ravel_alias_and_transposed_ravel(a):
    a = a + 0.0
    flat = a.ravel()
    flat[2] = 5 * flat[1]
    t = a.T.ravel()
    t[0] = 100 * t[1]
    return a.sum() * a[0, 2] + t @ t[::-1] * 1e-2


@add(R.normal(size=6))
def swap_halves_by_slices(x):
    x = x.copy()
    x[:3], x[3:] = x[3:].copy(), x[:3].copy()
    x[0], x[5] = x[5], x[0]
    x[1:] = x[:-1]
    x[::-1][:2] *= 3
    return np.dot(x, np.arange(6) ** 2)


@add(R.normal(size=6))
def swap_halves_without_copies(x):
    x = x.copy()
    x[:3], x[3:] = x[3:], x[:3]
    return np.dot(x, np.arange(6) ** 2) + x[4] ** 3


@add(R.normal(size=5), R.normal(size=5))
def out_arguments(x, y):
    buf = np.empty_like(x)
    np.multiply(x, y, out=buf)
    np.add(buf, x, buf)
    np.exp(buf, out=buf)
    t = np.subtract(buf, 1.0, out=buf)
    t *= 2
    np.maximum(buf, y, out=buf)
    return np.sum(buf) + t[0]


@add(R.normal(size=6), R.normal(size=6))
def where_arguments(x, y):
    r = np.zeros_like(x)
    np.divide(x, y, out=r, where=y > 0)
    s = np.sum(x ** 2, where=x > 0)
    l = np.log(np.abs(x), where=np.abs(x) > 0.1, out=np.full(6, -3.0))
    m = np.max(x, initial=-5.0, where=x < 0.5)
    return r.sum() + s + l.sum() + m


@add(R.normal(size=(3, 4)), R.normal(size=4))
def ufunc_methods(A, v):
    a = np.add.reduce(A, axis=1)
    m = np.multiply.accumulate(v)
    o = np.multiply.outer(a, v)
    mx = np.maximum.reduce(A, axis=(0, 1))
    lo = np.logaddexp.reduce(v)
    acc = np.add.accumulate(A, axis=0)
    mi = np.minimum.accumulate(v)
    return np.sum(o * A) + m[-1] + mx + lo + acc[1].sum() * mi.sum()


@add(R.normal(size=7))
def generator_state(x):
    def running(v):
        total = 0.0
        for k, e in enumerate(v):
            total = total * 0.9 + e
            yield k, total
    s = 0.0
    for k, t in running(x):
        if k % 2:
            continue
        s += t ** 2
    return s + max(t for _, t in running(x[::-1]))


@add(R.normal(size=4), R.normal(size=4))
def star_args_kwargs(a, b):
    def combine(*vs, scale=1.0, **opts):
        acc = 0
        for v in vs:
            acc = acc + v * scale
        if opts.get("square", False):
            acc = acc ** 2
        return acc + opts.pop("shift", 0.0)
    opts = {"square": True, "shift": a[0]}
    return np.sum(combine(a, b, a * b, scale=0.5, **opts)) + np.sum(combine(*[a, b])) * a[1]

def _default_list(x, acc=None):
    acc = [] if acc is None else acc
    acc.append(x)
    return acc


@add(R.normal(size=3))
def default_arguments_and_mutation(x):
    l = _default_list(x[0])
    _default_list(x[1] * l[0], l)
    m = _default_list(x[2])
    return sum(l) * sum(m) + len(l)


class Vec:
    __slots__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, o):
        return Vec(self.x + o.x, self.y + o.y)
    def __mul__(self, s):
        return Vec(self.x * s, self.y * s)
    __rmul__ = __mul__
    def __sub__(self, o):
        return self + (-1) * o
    def __abs__(self):
        return math.sqrt(self.x ** 2 + self.y ** 2)
    def __iter__(self):
        yield self.x
        yield self.y
    def __getitem__(self, i):
        return (self.x, self.y)[i]


@add(1.0, 2.0, 0.3)
def operator_overloads(a, b, t):
    p, q = Vec(a, b), Vec(b * t, -a)
    r = p + 2.0 * (q - p) * t
    u, v = r
    return abs(r) + u * v + r[0]


class Mode(enum.Enum):
    LINEAR = 1
    CUBIC = 3


@add(R.normal(size=4), Mode.CUBIC)
def enum_switch(x, mode):
    match mode:
        case Mode.LINEAR:
            y = x
        case Mode.CUBIC:
            y = x ** 3
        case _:
            raise ValueError
    return float(mode.value) * np.sum(y)


@add(R.normal(size=5))
def try_except_flow(x):
    total = 0.0
    names = {"a": 0, "b": 2}
    for key in ("a", "zzz", "b"):
        try:
            total += x[names[key]] ** 2
        except KeyError:
            total += x[4]
        finally:
            total *= 1.1
    try:
        if x.ndim != 1:
            raise ValueError("bad")
    except ValueError as e:
        return 0.0
    else:
        total -= x[1]
    return total


@add(R.normal(size=5))
def while_else_walrus(x):
    i, s = 0, 0.0
    while (v := x[i]) is not None:
        s += v * (i + 1)
        if (i := i + 1) == len(x):
            break
    else:
        s = 1e9
    n = 10
    while n > 3:
        n -= 2
        s *= 1.01
    else:
        s += x[0] * n
    for k in range(3):
        if x[k] > 100:
            break
    else:
        s += x[k] ** 2
    return s


@add(R.normal(size=(3, 3)))
def nonlocal_counter_closure(A):
    calls = 0
    total = 0.0
    def visit(v):
        nonlocal calls, total
        calls += 1
        total += v * calls
        return total
    r = [visit(v) for row in A for v in row if v > -10]
    fs = [lambda z, k=k: z ** k for k in range(1, 4)]
    return r[-1] + sum(f(A[0, 0]) for f in fs) + calls


@add(R.normal(size=4))
def late_binding_lambdas(x):
    fs = []
    for k in range(3):
        fs.append(lambda z: z * k + x[k])
    return sum(f(x[0]) ** 2 for f in fs)


@add(R.normal(size=(2, 3, 4)))
def axis_tuples_keepdims(T):
    a = T.sum(axis=(0, 2))
    b = T.mean(axis=(1,), keepdims=True)
    c = np.max(T, axis=(-1, 0))
    d = np.std(T - b, axis=(0, 1), ddof=1)
    e = np.linalg.norm(T, axis=-1)
    f = np.prod(T[:, :, :2], axis=(1, 2))
    g = np.moveaxis(T, 0, -1).swapaxes(0, 1)
    return a @ c + d.sum() + (e * b[:, 0, :1]).sum() + f.sum() + g[2, 1, 0] ** 2


@add(R.normal(size=(4, 3)), np.array([2, 0, 3]), np.array([1, 1, 0]))
def fancy_index_mixtures(A, i, j):
    B = A[i]
    B[0] *= 2
    c = A[i, j]
    d = A[:, j] @ np.array([1.0, 2.0, 3.0])
    e = A[i[:, None], j]
    m = A > 0
    A2 = A.copy()
    A2[m] = 0.5 * A2[m] ** 2
    A2[~m & (A < -0.5)] -= 1
    A2[i, j] += c
    A2[[0, 0], 1] = [5.0, A[1, 1]]
    return B.sum() + c.sum() * d.sum() + np.sum(e ** 2) + np.sum(A2 * A)


@add(R.normal(size=8))
def duplicate_index_add(x):
    idx = np.array([0, 1, 1, 3, 3, 3, 0, 2])
    a = np.zeros(4)
    a[idx] += x
    b = np.zeros(4)
    np.add.at(b, idx, x ** 2)
    c = np.ones(4)
    np.multiply.at(c, idx, x)
    d = np.zeros(4)
    np.subtract.at(d, (idx,), x)
    e = np.take(x, [1, -1, 3])
    np.put(d, [0, 2], e[:2])
    return a @ b + c.sum() + d @ d


@add(np.array(0.7), np.float64(0.3), 1.2)
def zero_dim_arrays(a, b, c):
    a2 = a[()] * b
    z = np.array(a2 * c)
    z += a
    z[...] = z * 2
    w = np.asarray(c)
    return float(z) + w * b + a.item() if False else z + w * b + np.sin(a)


@add(R.normal(size=5), R.normal(size=5))
def complex_arithmetic(a, b):
    z = a + 1j * b
    w = np.conj(z) * z[::-1] + z ** 2
    ang = np.angle(w[:2])
    mag = np.abs(w)
    zz = np.zeros(5, dtype=complex)
    zz[1:] = w[:-1] / (1 + 1j)
    zz.real += a
    zz.imag[0] = b[2]
    return mag.sum() + ang @ ang + np.sum((zz * np.conj(zz)).real) + np.vdot(z, w).imag


@add(R.normal(size=(3, 3)), R.normal(size=(3, 3)))
def complex_linalg(A, B):
    H = A + 1j * B
    H = (H + H.conj().T) / 2
    w, V = np.linalg.eigh(H)
    U = scipy.linalg.expm(1j * 0.3 * H)
    x = np.linalg.solve(H + 3j * np.eye(3), np.ones(3))
    return w @ np.arange(3) + np.abs(U[0, 1]) + np.real(np.trace(U)) + np.linalg.norm(x) + np.abs(np.linalg.det(H + 1j * np.eye(3)))


@add(R.normal(size=(4, 3)), R.normal(size=(3, 4)), R.normal(size=(4, 4)))
def einsum_zoo(A, B, C):
    a = np.einsum("ij,jk->ik", A, B)
    b = np.einsum("ii->i", C)
    c = np.einsum("ij,ij->", A, B.T)
    d = np.einsum("ij->ji", C)
    e = np.einsum("i,j,ij->ij", A[:, 0], B[0], C)
    f = np.einsum("...j,j...->...", A, B[:, :1] * np.ones((3, 4)))
    g = np.einsum("ij,jk,ki->", A, B, C)
    return np.trace(a) + b.sum() * c + np.sum(d[0] * e) + f.sum() + g


@add(R.uniform(1, 2, size=4))
def scipy_special_zoo(x):
    v = sp.gamma(x) + sp.digamma(x) + sp.erfc(x) + sp.beta(x, 2.0) + sp.j0(x) + sp.i0(x)
    v = v + sp.expit(x) + sp.logit(x / 3) + sp.xlogy(x, x) + sp.log_ndtr(x) + sp.ndtri(x / 3) + sp.gammainc(1.5, x)
    return np.sum(v * np.arange(4)) + sp.logsumexp(x, b=np.array([1.0, 2.0, 3.0, 4.0])) + sp.softmax(x)[1]


@add(R.normal(size=6))
def vectorize_scalar_function(x):
    def kernel(t, lo):
        if t < lo:
            return lo * t
        elif t < 0.5:
            return t ** 2
        return math.sin(t)
    f = np.vectorize(kernel)
    return np.sum(f(x, -0.2)) + sum(map(lambda t: kernel(t, 0.1), x))


@add(R.normal(size=7))
def cumulative_zoo(x):
    a = np.cumsum(x)
    b = np.cumprod(1 + 0.1 * x)
    c = np.maximum.accumulate(x)
    d = np.diff(x, n=2)
    e = np.ediff1d(x)
    g = np.gradient(x, 0.5)
    t = np.trapezoid(x ** 2, dx=0.1)
    return a @ b + c.sum() + d @ d + e[0] + g @ x + t


@add(R.normal(size=9))
def sorting_zoo(x):
    o = np.argsort(x)
    r = np.empty(9)
    r[o] = np.arange(9)
    s = x[o]
    top = np.partition(x, 5)[5:]
    med = np.median(x)
    q = np.quantile(x, [0.1, 0.6])
    u = np.sort(x.reshape(3, 3), axis=0)
    k = np.argpartition(x, 2)[:2]
    return s @ np.arange(9) + r @ x + top.sum() + med * q[0] + q[1] + (u * u[::-1]).sum() + x[k].sum() + np.ptp(x)


@add(R.normal(size=6), np.array([0.3, 1.7, 3.2]))
def interpolation_zoo(y, q):
    x = np.arange(6.0)
    a = np.interp(q, x, y)
    b = np.interp(q, y.cumsum() * 0 + x, y, left=0, right=1)
    c = np.polyfit(x, y, 2)
    d = np.polyval(c, q)
    v = np.vander(q, 3) @ c
    return a.sum() + b @ b + d.prod() + v[0] + np.polyval(np.polyder(c), 1.5)


@add(R.normal(size=(4, 4)), R.normal(size=(4, 2)))
def linalg_zoo(A, B):
    S = A @ A.T + np.eye(4)
    s, ld = np.linalg.slogdet(S)
    q, r = np.linalg.qr(A)
    x, res, rank, sv = np.linalg.lstsq(A[:, :2], B, rcond=None)
    p = np.linalg.pinv(B)
    e = scipy.linalg.expm(0.1 * A)
    t = scipy.linalg.solve_triangular(np.tril(S), B, lower=True)
    m = np.linalg.matrix_power(A, 3)
    n = np.linalg.norm(A, 2) + np.linalg.norm(A, "fro") + np.linalg.norm(A, 1) + np.linalg.norm(B[:, 0], np.inf)
    k = np.kron(B, B).sum()
    cf = scipy.linalg.cho_solve(scipy.linalg.cho_factor(S), B)
    return s * ld + np.abs(np.diag(r)).sum() + x.sum() + p[0, 1] + e.trace() + t.sum() + m[0, 0] + n + k + cf[0, 0] + sv[0] + np.linalg.cond(S)


@add(R.normal(size=8), R.normal(size=3))
def fft_zoo(x, h):
    X = np.fft.rfft(x)
    X[0] = 0
    X[1:3] *= 2j
    y = np.fft.irfft(X, n=8)
    H = np.fft.fft(h, 16)
    z = np.fft.ifft(np.fft.fft(x, 16) * H).real[:10]
    P = np.fft.fftshift(np.abs(np.fft.fft2(x.reshape(2, 4))))
    c = np.convolve(x, h, "same") + np.correlate(x, h, "same")
    return y @ y + z @ z + P[0, 1] + c[2]


@add(R.normal(size=5).astype(float), 3, True)
def bool_and_int_flags(x, n, flag):
    y = x * flag
    if flag and n > 2 or not x.size:
        y = y / n
    y = y + (x > 0)
    k = n // 2 + (-7) // n + 7 % -n
    y *= k
    y -= 2 ** -1
    return np.sum(y ** 2) + np.count_nonzero(x > 0) * x[0] + (x > 0).mean() * x[1]


@add(R.normal(size=5))
def f_strings_and_dict_dispatch(x):
    ops = {"sum": np.sum, "max": np.max, "norm": lambda v: np.sqrt(np.dot(v, v))}
    out = OrderedDict()
    for k, (name, op) in enumerate(ops.items()):
        out[f"{name}_{k}"] = op(x) * (k + 1)
    out.setdefault("extra", x[0])
    out.update(max_1=out["max_1"] ** 2)
    del out["extra"]
    return sum(out.values()) + sum(len(key) for key in out) * x[1]


@add(R.normal(size=(4, 2)))
def list_operations(P):
    rows = list(P)
    rows.reverse()
    rows.append(rows.pop(0) * 2)
    rows.insert(1, P[0] + P[1])
    rows.extend([P[2], P[3]])
    last = rows[-1]
    rows[0:2] = [rows[1]]
    del rows[-2]
    srt = sorted(range(len(rows)), key=lambda k: rows[k][0])
    total = 0
    for rank, k in enumerate(srt):
        total += (rank + 1) * rows[k].sum()
    return total + last @ last + rows.index(last) if False else total + last @ last


@add(R.normal(size=6))
def chained_and_ternary(x):
    s = 0.0
    for v in x:
        s += v if -0.5 < v < 0.5 else (v ** 2 if v > 0 else -v ** 3)
        s *= 1 if s < 10 else 0.5
    a = b = x * 2
    a[0] = 7 * s
    b[1] += a[0]
    return b.sum() + a @ x


@add(R.normal(size=(5, 5)))
def diagonal_and_triangle_writes(A):
    A = A.copy()
    n = 5
    A[range(n), range(n)] = 0
    A[np.triu_indices(n, 1)] = A.T[np.triu_indices(n, 1)]
    np.fill_diagonal(A, A.sum(axis=1))
    A.flat[::n + 1] += 2
    i, j = np.tril_indices(n, -1)
    A[i, j] *= 0.5
    return np.linalg.det(A) + np.trace(A, offset=1) + np.diag(A, -1).sum()


@add(R.normal(size=(3, 4)), R.normal(size=(4,)))
def broadcasting_corners(A, v):
    u = v[np.newaxis, :, None] * A[:, None, :]
    w = np.broadcast_to(v, (3, 4)) + A.sum(1, keepdims=True)
    A1 = A.copy()
    A1 += v
    A1[:, 1:3] -= A1[:, :1]
    A1[1] = 3.0
    A1[:, 0] = v[0]
    z = np.outer(v, A[:, 0]).T.reshape(2, 6, order="F")
    t = np.tile(v, (2, 1)).repeat(2, axis=0)
    return u.sum() * 0.1 + (w * A1).sum() + z[1, 2] * z[0, 5] + np.sum(t[1] * v)


@add(R.normal(size=4).astype(np.float32) + np.float32(2))
def float32_state(x):
    y = np.zeros(4, dtype=np.float32)
    y[0] = x[0]
    for i in range(1, 4):
        y[i] = 0.5 * y[i - 1] + x[i] ** 2
    return y.astype(np.float64).sum() / 3


@add(R.normal(size=5), 2)
def recursion_with_literal(x, depth):
    def smooth(v, d):
        if d == 0:
            return v
        s = 0.5 * v[1:-1] + 0.25 * (v[:-2] + v[2:])
        w = v.copy()
        w[1:-1] = s
        return smooth(w, d - 1)
    return np.sum(smooth(x, depth) ** 2)


@add(R.normal(size=12))
def np_select_piecewise_choose(x):
    a = np.select([x < -0.5, x < 0.5], [x ** 2, np.sin(x)], default=np.exp(-x))
    b = np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t ** 2])
    c = np.where(x > 0, x, 0.1 * x)
    d = np.clip(x, -0.3, None)
    e = np.sign(x) * np.sqrt(np.abs(x))
    f = np.nan_to_num(np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0))
    return (a + b * c + d + e + f).sum() + np.heaviside(x, 0.5) @ x
