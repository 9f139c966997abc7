"""Programs for a device, with arguments: forms of statements, transformations, dtypes, and lengths that are unusual."""
import numpy as np
from device.batches import BATCHES
from jit.test_lowered import CASES as GRADIENTS

import gradscribe as gs
from gradscribe import lax

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 5))
F = X.astype(np.float32)
C = X + 1j * X[::-1]


def standardised(x):
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred ** 2, axis=1, keepdims=True) + np.float32(1e-5))


def extremes(x):
    return np.max(x), np.min(x, axis=0), np.max(x, axis=1), np.argmax(x), np.argmin(x, axis=0)


def tests(x):
    return np.any(x > 2), np.all(x > -5, axis=0), np.prod(x, axis=1), np.cumsum(x, axis=1)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def taken(t, i):
    return np.sum(t[i] ** 2)


def in_place(x):
    y = np.zeros(5)
    y[1] = x[0]
    y[2:4] = x[1:3]
    for i in range(1, 5):
        y[i] = y[i] + y[i - 1] * 0.5
    return y


def steps(x, n):
    s = 0.0
    for _ in range(n):
        x = x + 0.1 * np.sin(x)
        s = s + x[0]
    return s * x


def ends(x):
    return np.roll(x, 1), x[::-1], x[1:] * x[:-1], np.concatenate([x, x]), np.where(x > 0, x, 0.0)


def systems(a, b):
    return np.linalg.solve(a, b), np.linalg.inv(a), np.sort(b), np.linalg.det(a)


def newton(a):
    x = a
    n = 0
    while abs(x * x - a) > 1e-10 and n < 50:
        x = 0.5 * (x + a / x)
        n += 1
    return x


def orbit(a, end):
    y = np.zeros(3)
    y[0] = a
    t = 0.0
    while t < end:
        k = np.array([y[1], -y[0], y[2] * a])
        h = 0.1 if np.sum(k * k) > 1 else 0.2
        y = y + h * k
        t += h
    return np.sum(y * y)


def escape(c):
    z = 0j
    n = 0
    while abs(z) < 2 and n < 60:
        z = z * z + c
        n += 1
    return n


def rotated(r, x):
    t = np.sqrt(np.sum(r * r))
    a = r / t
    return x * np.cos(t) + np.cross(a, x) * np.sin(t) + a * np.dot(a, x) * (1 - np.cos(t))


def waves(z):
    return np.exp(z) * np.conj(z), np.abs(z), np.sum(z * z)


def fall(x):
    n = 0
    while np.sum(x) > 1.0:
        x = x * 0.5
        n += 1
    return x, n


def black_scholes(s, k):
    d = (np.log(s / k) + 0.5) / 0.3
    return np.sum(s * (1 / (1 + np.exp(-d))) - k * np.tanh(d))


def named(x):
    """Names that the module imports, for something else."""
    sqrt = np.sqrt(x)
    wrong, grid, cp, host, cuda, one = sqrt * 2, x + 1, x - 1, np.exp(x), 2.0, 3.0
    for blocks in range(x.shape[0]):
        wrong[blocks] = wrong[blocks] * one + x[blocks - 2]
    return wrong + grid * cp - host * cuda, np.sum(sqrt)


def exp(x):
    return np.sum(np.exp(x))


def counted(x):
    """A name for a number, and then for loops of the host and of threads."""
    s = 0.0
    for i in range(3):
        j = 1 + i
        s = s + x[j % 2, 0] * j
    for j in range(4):
        x = x * np.sum(x[j % 2]) * 0.1
    for i in range(2):
        s = s + x[i, j % 2]
    return x * s


def carried(x, means):
    """Vectors made above a loop, which a pass finds as the one before left them."""
    d, y, total = np.zeros(2), np.zeros(2), 0.0
    for i in range(x.shape[0]):
        for j in range(means.shape[0]):
            for c in range(2):
                d[c] = x[i, c] - means[j, c]
                y[c] = d[c] * means[j, 0]
            p = 0
            for c in range(2):
                for r in range(c + 1, 2):
                    y[r] += d[c] * means[j, p]
                    p += 1
            total += y[0] ** 2 + y[1] ** 2
    return total


def normalised(x, g):
    """Batch normalisation: sums into columns, of which some are needed for others."""
    m = np.mean(x, axis=0)
    v = np.mean((x - m) ** 2, axis=0)
    return np.sum(np.tanh((x - m) / np.sqrt(v + np.float32(1e-5)) * g))


def by_columns(x):
    """A sum of a column, with statements above and below it."""
    n, m = x.shape
    z, s = np.zeros(m), np.zeros((m, 2))
    for j in range(m):
        scale = 1.0 + j
        t = 0.5
        for i in range(n):
            t += x[i, j] * scale
            s[j, 0] += x[i, j]
            s[j, 1] -= x[i, j] ** 2
        z[j] = t / (1.0 + s[j, 0] ** 2)
    return z, s


def convolved(x, w):
    y = lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return np.sum(np.tanh(y), axis=(0, 2)), np.sum(np.cos(y))


IMAGES, KERNELS = RNG.standard_normal((2, 7, 6, 3)), RNG.standard_normal((3, 2, 3, 4))
W = RNG.standard_normal((4, 37))
L = RNG.standard_normal((300, 3))
SQUARE = X[:5] + 4 * np.eye(5)
def sparse_product(values, columns, starts, x):
    """By compressed rows."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += values[p] * x[columns[p]]
        y[i] = total
    return y


STARTS = np.cumsum(np.r_[0, np.tile([0, 1, 5], 20)])
SPARSE = (RNG.standard_normal(120), RNG.integers(0, 9, 120), STARTS, L[:9, 0].copy())
PROGRAMS = {
    "standardised": (standardised, (X,)),
    "standardised in single precision": (standardised, (F,)),
    "gradient of standardised": (gs.grad(lambda x: np.sum(standardised(x) ** 3)), (F,)),
    "standardised, longer rows": (standardised, (W,)),
    "gradient of standardised, longer rows": (gs.grad(lambda x: np.sum(standardised(x) ** 3)), (W.astype(np.float32),)),
    "softmax, longer rows": (softmax, (W,)),
    "gradient of softmax, longer rows": (gs.grad(lambda x: np.sum(softmax(x) ** 2)), (W,)),
    "tests, longer rows": (tests, (W,)),
    "extremes": (extremes, (X,)),
    "tests": (tests, (X,)),
    "softmax": (softmax, (X,)),
    "gradient of softmax": (gs.grad(lambda x: np.sum(softmax(x) ** 2)), (X,)),
    "gradient of taken": (gs.grad(taken), (X, np.tile(np.array([1, 2, 1, -1]), 10))),
    "in_place": (in_place, (X[0].copy(),)),
    "gradient of in_place": (gs.grad(lambda x: np.sum(in_place(x) ** 2)), (X[0].copy(),)),
    "steps": (steps, (X[0].copy(), 4)),
    "gradient of steps": (gs.grad(lambda x: np.sum(steps(x, 4))), (X[0].copy(),)),
    "ends": (ends, (X[0].copy(),)),
    "systems": (systems, (SQUARE, X[0].copy())),
    "newton": (gs.vmap(newton), (np.arange(1.0, 40.0),)),
    "gradient of newton": (gs.vmap(gs.grad(newton)), (np.arange(1.0, 40.0),)),
    "orbit": (gs.vmap(orbit, (0, None)), (np.arange(1.0, 38.0), 2.0)),
    "gradient of orbit": (gs.vmap(gs.grad(orbit), (0, None)), (np.arange(1.0, 38.0), 2.0)),
    "escape": (gs.vmap(escape), (np.linspace(-1, 1, 40) * 1j,)),
    "rotated": (gs.vmap(rotated), (F[:, :3].copy(), F[:, 2:].copy())),
    "gradient of rotated": (gs.vmap(gs.grad(lambda r, x: np.sum(rotated(r, x) ** 2))),
                            (F[:, :3].copy(), F[:, 2:].copy())),
    "waves": (waves, (C,)),
    "waves in single precision": (waves, (C.astype(np.complex64),)),
    "fall": (fall, (np.abs(X[0]) * 9,)),
    "black_scholes": (gs.value_and_grad(black_scholes, (0, 1)), (np.abs(F[0]) + 1, F[1] ** 2 + 1)),
    "named": (named, (np.abs(X[0]),)),
    "exp": (exp, (X,)),
    "counted": (counted, (X[:2].copy(),)),
    "gradient of counted": (gs.grad(lambda x: np.sum(counted(x))), (X[:2].copy(),)),
    "gradient of carried": (gs.value_and_grad(carried, (0, 1)), (X[:, :2].copy(), X[:3, 2:].copy())),
    "by_columns": (by_columns, (L,)),
    "by_columns, no rows": (by_columns, (L[:0],)),
    "columns in single precision": (lambda x: (np.sum(x, axis=0), np.mean(x * x, axis=0)), (L.astype(np.float32),)),
    "columns of complex numbers": (lambda x: np.sum(x * x, axis=0), (L + 1j * L[::-1],)),
    "columns of whole numbers": (lambda x: np.sum(x, axis=0), (np.arange(300).reshape(100, 3),)),
    "columns of three axes": (lambda x: np.sum(x * x, axis=0), (L.reshape(100, 3, 3),)),
    "gradient of normalised": (gs.value_and_grad(normalised, (0, 1)), (L, L[0])),
    "gradient of normalised in single precision": (gs.grad(normalised), (L.astype(np.float32), F[0, :3].copy())),
    "convolved": (convolved, (IMAGES, KERNELS)),
    "gradient of convolved": (gs.grad(lambda x, w: np.sum(convolved(x, w)[0] ** 2), (0, 1)), (IMAGES, KERNELS)),
    "tangent of convolved": (lambda x, w: gs.jvp(lambda x: convolved(x, w)[1], (x,), (np.ones_like(x),)),
                             (IMAGES, KERNELS)),
    "convolved in single precision": (lambda x, w: convolved(x, w)[0], (IMAGES.astype(np.float32),
                                                                       KERNELS.astype(np.float32))),
    "sparse_product": (sparse_product, SPARSE),
    "gradient of sparse_product": (gs.grad(lambda v, c, s, x: np.sum(sparse_product(v, c, s, x) ** 2), (0, 3)), SPARSE),
    "whole powers": (lambda x, k: np.array([1, 2, 3])[k % 3] ** x, (np.arange(50) % 4, np.arange(50))),
    "an empty axis": (lambda x: (np.sum(x, axis=0), x * 2), (np.zeros((0, 3)),)),
    "an axis of one": (gs.grad(lambda x: np.sum(standardised(x) ** 3)), (X[:1],)),
    "three axes": (lambda x: (np.sum(x * 2, axis=1), x + 1), (RNG.standard_normal((3, 4, 5)),)),
    "four axes": (lambda x: (np.mean(x, axis=(0, 2)), x[..., ::-1] * x), (RNG.standard_normal((2, 3, 4, 5)),)),
} | BATCHES | {f"gradient of {name}": (gs.value_and_grad(f, argnums), args)
              for name, (f, args, argnums) in GRADIENTS.items()}


def leaves(value):
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [value]


def differences(name, **options):
    """The program's results that differ from those on the processor; kinds count."""
    function, args = PROGRAMS[name]
    expected = leaves(function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args]))
    found = leaves(gs.jit(function, target="cuda", **options)(*args))
    assert len(found) == len(expected)
    out = []
    for a, b in zip(found, expected):
        a, b = np.asarray(a), np.asarray(b)
        single = b.dtype in (np.float32, np.complex64)
        scale = np.max(np.abs(b), initial=1)
        if a.shape != b.shape or a.dtype != b.dtype or not np.allclose(a, b, rtol=2e-5 if single else 1e-11, atol=(
                2e-6 if single else 1e-13) * scale, equal_nan=True):
            out.append((a, b))
    return out
