# SPDX-License-Identifier: Apache-2.0
"""Odd corners: what silent errors like. Aliases across branches and loops, 0-d arrays, integer dtype, dtype mixing."""
import math

import numpy as np

R = np.random.default_rng(31)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


@add(R.normal(size=6), 1)
def view_chosen_by_branch(x, k):
    x = x.copy()
    if k > 0:
        v = x[::2]
    else:
        v = x[1::2]
    v *= 3
    x[0] += v[1]
    return x @ np.arange(6) + v[2] * x[4]


@add(R.normal(size=6))
def view_chosen_by_value(x):
    x = x.copy()
    v = x[:3] if x[0] > x[1] else x[3:]
    v += 1.0
    x *= 2
    return x @ x + v[0] * 3


@add(R.normal(size=5))
def buffer_swapped_in_loop(x):
    a, b = x.copy(), np.zeros(5)
    for k in range(4):
        b[1:-1] = a[1:-1] + 0.1 * (a[2:] - 2 * a[1:-1] + a[:-2])
        b[0], b[-1] = a[0] * 0.9, a[-1]
        a, b = b, a
    return a @ a + b @ np.arange(5)


@add(R.normal(size=5))
def three_buffers_rotated(x):
    u, v, w = x.copy(), x * 0.5, np.empty(5)
    for k in range(5):
        w[:] = 1.5 * v - 0.6 * u
        w[0] = v[-1]
        u, v, w = v, w, u
    return u.sum() + (v ** 2).sum() + w[2]


@add(R.normal(size=(3, 4)))
def row_alias_written_later(A):
    A = A * 1.0
    r = A[1]
    s = r.sum()
    A[1] = A[0] * 2
    t = r.sum()
    r[:] = 1
    A[1, 2] = t
    return s * t + r.sum() * A[0, 0] + A.sum()


@add(R.normal(size=4))
def inplace_ops_on_argument_alias(x):
    y = x
    y += 1
    z = x * 2
    y *= x
    return (z * y).sum()


@add(R.normal(size=4))
def helper_writes_argument(x):
    def normalise(v):
        v -= v.mean()
        v /= np.sqrt((v ** 2).sum())
        return v
    a = x.copy()
    b = normalise(a)
    b[0] = 2.0
    return a[0] * a[1] + normalise(x * 2)[2] + (a is b)


@add(R.normal(size=4))
def helper_returns_view(x):
    def inner(v, k):
        return v[k:]
    a = x ** 2
    t = inner(a, 1)
    t[0] = t[1] * a[0]
    inner(inner(a, 1), 1)[:] *= 2
    return a @ np.arange(1, 5)


@add(R.normal(size=(3, 3)))
def transposed_inplace(A):
    A = A.copy()
    T = A.T
    T[0] += A[0]
    A -= T
    A[np.tril_indices(3)] = 1.5
    return (A * np.arange(9).reshape(3, 3)).sum() + T[2, 0]


@add(R.normal(size=(3, 3)))
def add_transpose_inplace(A):
    B = A.copy()
    B += B.T
    B @= A
    B **= 2
    B //= 0.5
    B = B * 0 + A
    B -= B.mean(axis=0)
    B[:, 1] /= B[:, 0]
    return np.sum(B ** 2)


@add(R.normal(size=6))
def reshape_view_or_copy(x):
    a = x.reshape(2, 3)
    b = a.T.reshape(-1)
    c = a.copy()
    c.shape = (6,) if False else (2, 3)
    c.reshape(6)[::2] = b[:3]
    d = np.ascontiguousarray(c.T)
    d[0, 0] = 9.0
    e = c.flatten()
    e[1] = 100
    f = c.squeeze()[None]
    f[0, 0, 1] *= 2
    return c @ np.arange(3) @ np.array([1.0, 2.0]) + d.sum() + e[2]


@add(R.normal(size=5))
def broadcast_to_copy_and_expand(x):
    B = np.broadcast_to(x, (3, 5)).copy()
    B[1] *= 2
    v = np.expand_dims(x, 0) + np.zeros((2, 1))
    v[0, 1:] = 0
    w = np.repeat(x[:, None], 2, axis=1)
    w[:, 0] = x[::-1]
    return B.sum() + (v * w.T).sum()


@add(R.normal(size=5), np.array([3, 1, 2, 0, 4]))
def permutation_inverse(x, p):
    inv = np.empty_like(p)
    inv[p] = np.arange(len(p))
    y = x[p]
    z = np.empty_like(x)
    z[p] = y * np.arange(5)
    c = 0.0
    i = 0
    for _ in range(5):
        c = 0.5 * c + y[i]
        i = p[i]
    return z[inv] @ x + c


@add(R.normal(size=5))
def integer_accumulators(x):
    n = np.zeros(3, dtype=int)
    s = np.zeros(3)
    for v in x:
        k = 0 if v < -0.5 else 1 if v < 0.5 else 2
        n[k] += 1
        s[k] += v * n[k]
    m = np.maximum(n, 1)
    return np.sum(s / m) + s @ n


@add(R.normal(size=5))
def integer_array_truncation(x):
    a = np.arange(5)
    b = a * x
    c = (b > 0).astype(int) + a // 2
    d = np.zeros(5, dtype=np.int64)
    d[:] = c * 2
    e = a / 2
    e[1:3] = x[1:3] ** 2
    return (d * x).sum() + e @ c + np.floor(x[0]) + round(2.567, 1) * x[1]


@add(np.float64(0.4), 1.7, np.array([0.2, 0.9]))
def scalars_of_all_kinds(a, b, v):
    c = np.array(b)
    d = v[0]
    e = np.sum(v)
    f = v[1:2]
    g = f.item() if False else float(d) * e
    h = np.array([a, b, d, e, g])
    h[0] = h[1] = c
    k = np.hypot(*v) + math.hypot(a, b) + abs(-d) + max(a, d, b) + min(h)
    return h @ h + k + np.squeeze(f) * pow(a, 3) + divmod(7, 2)[1] * a + np.power(b, -2.0)


@add(R.normal(size=4))
def nested_functions_shadowing(x):
    y = x * 2
    def f(x):
        y = x[0]
        def g():
            return y + x[1]
        y = y * 3
        return g()
    z = [y for y in x]
    x = f(x) * y
    return x.sum() + z[-1]


@add(R.normal(size=4), R.normal(size=4))
def boolean_masks_everywhere(x, y):
    m = (x > 0) & ~(y > 0.5) | (x * y < -0.1)
    a = np.where(m, x, y)
    b = x.copy()
    b[m] += y[m]
    b[~m] = 0.1
    c = x[m].sum() * y[~m].sum()
    d = (m * x) @ y
    e = np.sum(x[(y > -5)]) + np.any(m) * x[0] + np.all(m) * x[1] + m.sum() * y[0]
    f = np.compress(m, x).sum() + np.extract(m, y).sum()
    i, = np.nonzero(m)
    return a @ b + c + d + e + f + x[i[0]] * len(i)


@add(R.normal(size=(4, 4)))
def masked_matrix_updates(A):
    B = A.copy()
    B[B < 0] = 0
    B[:, B.sum(0) > 0.5] *= 2
    B[np.abs(A).argmax(axis=0), np.arange(4)] += A[0]
    r = B.any(axis=1)
    B[r] -= B[r].mean(axis=1, keepdims=True)
    np.place(B, A > 1, [7.0])
    np.copyto(B, A, where=A < -1)
    np.putmask(B, A > 0.9, A * 2)
    return (B ** 2).sum() + B[0] @ A[1]


@add(R.normal(size=7))
def early_return_in_nested_loops(x):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            p = x[i] * x[j]
            if p > 0.8:
                return p * (i + 1) + x[j - 1]
            elif p < -2:
                return p ** 2
    return np.sum(x)


@add(R.normal(size=6))
def continue_break_mix(x):
    total, skipped = 0.0, 0
    for i, v in enumerate(x):
        if v < -1:
            skipped += 1
            continue
        if skipped > 2:
            break
        j = 0
        while True:
            v = v * 0.5
            j += 1
            if abs(v) < 0.1:
                break
            if j > 3:
                total += 0.01 * v
                continue_outer = True
                break
        else:
            total -= 100
        total += v * (i + 1)
    return total ** 2 + skipped * x[0]


@add(R.normal(size=5))
def loop_variable_after_loop(x):
    s = 0
    for i in range(1, 5):
        t = x[i] * i
        s += t
    s += i * t
    for v in x[1:3]:
        pass
    k = 0
    for k in range(0):
        s += 100
    return s * v + k


@add(R.normal(size=4), 0)
def zero_trip_loops(x, n):
    acc = x * 1.0
    last = x[0]
    for i in range(n):
        acc = acc * x
        last = acc[i]
    while n > 0:
        n -= 1
        last = last * 2
    e = np.zeros(n)
    return acc.sum() * last + e.sum() + np.prod(x[:n]) + np.sum(x[4:])


@add(R.normal(size=4))
def augmented_on_containers(x):
    l = [x[0]]
    m = l
    l += [x[1]]
    l = l + [x[2]]
    m.append(x[3])
    t = (x[0],)
    u = t
    t += (x[1] * 2,)
    d = {"a": x}
    d["a"] = d["a"] * 2
    d["b"] = y = d["a"]
    y[0] = 3.0
    return sum(l) * sum(m) + len(t) * t[-1] + u[0] + d["a"].sum() + x[0]


@add(R.normal(size=(2, 3)))
def tuple_unpacking_arrays(A):
    (a, b, c), row = A
    d, *e = row
    (f, g), h = (a * b, c), e[-1]
    x, y = y0 = np.array([f, g])
    y0[0] = 5.0
    i = j = [0, 1]
    i[0], k = 3, i[0]
    return d * h + x * y + y0.sum() + i[0] * j[1] * a + k


@add(R.normal(size=6))
def conditional_rebinding_of_arrays(x):
    a = x
    for i in range(3):
        if x[i] > 0:
            a = a.copy()
            a[i] = 0.5 * a[i + 1]
        else:
            a = a * 1.1
    return np.sum(a ** 2) + x[0]


@add(R.normal(size=6))
def copies_only_in_one_arm(x):
    b = x * 1.0
    c = b if x[1] > 0 else b.copy()
    c[0] = 4.0
    b[2] *= 2
    return b @ x + c @ c


@add(R.normal(size=5))
def powers_and_signs(x):
    return np.sum((-x) ** 3 + (-1) ** 2 * x + np.abs(x) ** 1.5 + x ** 0 + 2.0 ** x + (x ** 2) ** 0.5 + np.float_power(np.abs(x), 2.5)
                  + np.cbrt(x) + np.square(x) + np.reciprocal(x + 5) + np.sinc(x) + np.exp2(x) + np.log2(x + 4) + np.log10(x + 4)
                  + np.arctan2(x, 2) + np.fmod(x, 0.7) + np.remainder(x, 0.7) + np.copysign(2, x) * x + np.maximum(x, 0.2) + np.fmin(x, 0)
                  + np.deg2rad(x) + np.expm1(x) + np.arcsinh(x) + np.hypot(x, 3) + np.logaddexp(x, 1) + np.tanh(x) * np.cosh(x))


@add(R.normal(size=(2, 2, 2)), R.normal(size=(2, 2)))
def matmul_shapes(T, M):
    v = M[0]
    a = T @ M
    b = M @ T
    c = T @ v
    d = v @ T
    e = np.matmul(T, T)
    f = np.dot(T, M)
    g = np.tensordot(T, M, axes=([2, 1], [0, 1]))
    h = np.inner(M, T)
    i = np.tensordot(M, T, 1)
    j = np.vdot(M, a[0]) + np.linalg.multi_dot([M, a[1], v]).sum()
    return a.sum() * b.mean() + c.sum() + d[1, 0] + e[0, 1, 1] * f[1, 0, 1] + g @ v + (h * i.transpose(0, 1, 2)).sum() + j


@add(R.normal(size=(3, 4)))
def reductions_of_everything(A):
    return (A.max(0).sum() + A.min(axis=1).prod() + np.ptp(A, axis=0).sum() + A.var(1).sum() + np.median(A, axis=0).sum()
            + np.average(A, axis=1, weights=A[0] ** 2 + 1).sum() + np.nanmean(A) + np.nansum(A[0]) + np.linalg.norm(A, axis=0).sum()
            + np.cumsum(A, axis=1)[:, -2].sum() + np.trapezoid(A, axis=0).sum() + A.dot(A[0]).sum() + A.trace() + np.percentile(A, 30, axis=1).sum()
            + np.amax(A) * A.mean() + A.std() + A[A.argmax(axis=0), range(4)].sum() + np.count_nonzero(A > 0) * A[0, 0])


@add(R.normal(size=(2, 6)))
def joins_and_splits(A):
    a, b, c = np.split(A, 3, axis=1)
    d = np.hstack([a, c]) @ np.vstack([b, b * 2])
    e = np.array_split(A[0], 4)
    f = np.stack([a, b], axis=-1).sum(axis=(0, 1))
    g = np.concatenate((A[:, :1], A), axis=None)[::3]
    h = np.roll(A, (1, 2), axis=(0, 1)) - np.flip(A, 1) + np.fliplr(A) * np.flipud(A) + np.rot90(A, 2)
    i = np.pad(A, ((1, 0), (0, 2)), constant_values=2.0).sum(0)
    j = np.pad(A[0], 2, mode="reflect") @ np.pad(A[1], (1, 3), mode="wrap")
    k = np.insert(A[0], 2, A[1, 0]) @ np.append(A[1], 3.0) + np.delete(A[0], [1, 3]).sum()
    l = np.tril(A) + np.triu(A, 1) * 2
    return d.sum() + e[1].sum() * e[3][0] + f @ f + g.sum() + h[0] @ A[1] + i[:6] @ A[0] + j + k + l.sum() + np.unique(A)[2]
