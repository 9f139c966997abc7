"""Kernels as users write them, with arguments: `made(cuda)` gives them for a back end."""
import math

import numpy as np

SHAPES = {                              # {kernel: (shapes of its arguments or values, blocks, threads)}
    "axpy": ((2.5, (7,), (7,), (7,)), 2, 4),
    "sums_of_sines": ((1.5, (7,), (7,), (7,)), (2,), (4,)),
    "strides": (((9,), (9,)), 2, 3),
    "strides_by_names": (((9,), (9,)), 2, 2),
    "product": (((5, 3), (3, 4), (5, 4)), (2, 3), (3, 2)),
    "rows_and_columns": (((5, 3), (5, 3)), (2, 1), (2, 2)),
    "histogram": (((8,), np.array([0, 2, 2, 1, 0, 2, 5, 2]), (6,)), 2, 4),
    "gather": (((6,), np.array([0, 2, 2, 1, 0, 2, 5, 2]), (8,)), 2, 4),
    "norms": (((6, 3), (6,)), 3, 2),
    "iterated": (((6,), (6,)), 2, 3),
    "nested": (((6,), (6,)), 2, 3),
    "branches": (((8,), (8,), (8,)), 2, 4),
    "scaled_in_place": ((3.0, (6,)), 2, 3),
    "stencil": (((9,), (9,)), 3, 3),
    "with_a_function": (((6,), (6,), (6,)), 2, 3),
    "counts": (((6,), np.zeros(1, np.int64), (6,)), 2, 3),
    "planes": (((2, 3, 4), (2, 3, 4)), (2, 3, 1), (2, 1, 2)),
    "long_memory": (((6,), (6,)), 2, 3),
    "ends_early": (((5, 4), (5,)), 2, 3),
    "pairs": (((5, 3), (5, 3)), 1, 5),
    "while_large": (((8,), (8,)), 2, 4),
    "while_in_loops": (((7,), (3,), (7,)), 2, 4),
    "while_in_strides": (((9,), (9,)), 2, 2),
    "while_with_ways": (((9,), np.array([3, 1, 0, 2]), (9,)), 3, 3),
    "while_of_planes": (((3, 4), (3, 4)), (2, 2), (2, 2)),
    "while_of_vectors": (((5,), (3,), (5,)), 2, 3),
    "while_that_breaks": (((5,), (5,)), 2, 3),
    "while_in_whiles": (((5,), (5,)), 2, 3),
    "entries_in_order": (((8,), (8,), (8,)), 2, 4),
}
MORE = {                                # the same, of those that are not assembled for a device
    "by_steps": (((8,), (8,)), 2, 4),
    "two_results": (((6,), (6,), (6,)), 2, 3),
    "of_math": (((6,), (6,), (6,)), 2, 3),
    "odd_places": (((5,), (12,)), 1, 5),
    "exchanged": (((6,), (6,)), 2, 3),
    "filled": (((6,), (6,)), 2, 3),
}


def made(backend):
    """{name: kernel} for a back end's `cuda`."""
    global cuda                         # where Numba's simulator looks for it
    cuda = backend

    @cuda.jit
    def axpy(a, x, y, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = a * x[i] + y[i]

    @cuda.jit
    def sums_of_sines(a, x, y, out):
        i = cuda.grid(1)
        if i >= x.size:
            return
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k] * math.sin(y[i])
        out[i] = a * x[i] + y[i] * s

    @cuda.jit
    def strides(x, out):
        c = 2.0 * x[0]
        for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
            out[i] += math.exp(x[i]) * c

    @cuda.jit
    def strides_by_names(x, out):
        start = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        step = cuda.gridDim.x * cuda.blockDim.x
        for i in range(start, x.shape[0], step):
            v = x[i]
            for _ in range(3):
                v = v * v + x[i]
            out[i] = v

    @cuda.jit
    def product(a, b, out):
        r, c = cuda.grid(2)
        if r < out.shape[0] and c < out.shape[1]:
            t = 0.0
            for k in range(a.shape[1]):
                t += a[r, k] * b[k, c]
            out[r, c] = t

    @cuda.jit
    def rows_and_columns(x, out):
        first, second = cuda.grid(2)
        down, across = cuda.gridsize(2)
        for i in range(first, x.shape[0], down):
            for j in range(second, x.shape[1], across):
                out[i, j] = x[i, j] * x[i, 0]

    @cuda.jit
    def histogram(x, at, out):
        i = cuda.grid(1)
        if i < at.shape[0]:
            cuda.atomic.add(out, at[i], x[i] ** 2)

    @cuda.jit
    def gather(x, at, out):
        i = cuda.grid(1)
        if i < at.shape[0]:
            out[i] = x[at[i]] ** 3

    @cuda.jit
    def norms(x, out):
        i = cuda.grid(1)
        v = cuda.local.array(3, np.float64)
        for k in range(3):
            v[k] = x[i, k] + k
        n = 0.0
        for k in range(3):
            n += v[k] * v[k]
        out[i] = math.sqrt(n)

    @cuda.jit
    def iterated(x, out):
        i = cuda.grid(1)
        v = x[i]
        for _ in range(x.shape[0]):
            v = math.sin(v) * v + 0.1
        out[i] = v

    @cuda.jit
    def nested(x, out):
        i = cuda.grid(1)
        v = x[i]
        for _ in range(3):
            w = v
            for _ in range(2):
                w = w * math.cos(v) + 0.3
            v = v * w
        out[i] = v

    @cuda.jit
    def branches(x, y, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            if x[i] > 0.5:
                out[i] = x[i] * y[i]
            elif x[i] > 0.25:
                out[i] = y[i]
            else:
                out[i] = 3.0

    @cuda.jit
    def scaled_in_place(a, x):
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] = 2.0 * x[i]
            x[i] += a

    @cuda.jit
    def stencil(x, out):
        i = cuda.grid(1)
        if 0 < i < x.shape[0] - 1:
            out[i] = x[i - 1] * x[i + 1] - 2 * x[i]

    @cuda.jit(device=True)
    def length(x, i):
        return math.sqrt(x[i] * x[i] + 1)

    @cuda.jit
    def with_a_function(x, y, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = length(x, i) * length(y, 0)

    @cuda.jit
    def counts(x, count, out):
        i = cuda.grid(1)
        if x[i] > 0.5:
            cuda.atomic.add(count, 0, 1)
        out[i] = x[i] * x[i]

    @cuda.jit
    def planes(x, out):
        i, j, k = cuda.grid(3)
        if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
            out[i, j, k] = x[i, j, k] * x[0, j, 0]

    @cuda.jit
    def long_memory(x, out):
        i = cuda.grid(1)
        v = x[i]
        for _ in range(100):
            v = v - 0.01 * v * v
        out[i] = v

    @cuda.jit
    def ends_early(x, out):
        i = cuda.grid(1)
        if i >= x.shape[0]:
            return
        s = 0.0
        for k in range(x.shape[1]):
            if x[i, k] > 0.6:
                s += x[i, k] ** 2
        out[i] = s

    @cuda.jit
    def pairs(x, out):
        i = cuda.grid(1)
        for j in range(x.shape[0]):
            d = 0.1
            for c in range(3):
                d += (x[i, c] - x[j, c]) ** 2
            for c in range(3):
                out[i, c] += (x[j, c] - x[i, c]) / (d * math.sqrt(d))

    @cuda.jit
    def while_large(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            v = 3.0 * x[i]
            n = 0
            while v > 0.1 and n < 50:
                v = math.sin(v) * 0.7
                n += 1
            out[i] = v * n

    @cuda.jit
    def while_in_loops(x, w, out):
        i = cuda.grid(1)
        if i >= x.shape[0]:
            return
        total = 0.0
        for j in range(w.shape[0]):
            v = x[i] + 0.3
            while v * v < 9.0:
                v = v * (1.5 + w[j]) if v > 1.0 else v + (w[j] + 0.2) ** 2
            total += v * w[j]
        out[i] = total

    @cuda.jit
    def while_in_strides(x, out):
        for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
            v = x[i]
            while v < 2.0:
                u = v
                while u > 0.35:
                    u = u * u * 0.3
                v = v * (1.6 + u) + 0.1
            out[i] = v

    @cuda.jit
    def while_with_ways(x, k, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            at = i % k.shape[0]
            s, n = x[i], 0
            while n < 5:
                at = k[at]
                if at == 1:
                    s = s * x[at]
                elif at > 1:
                    s = s + x[at] * s
                    n += 1
                n += 1
            out[i] = s

    @cuda.jit
    def while_of_planes(x, out):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            v = x[i, j] + 0.05
            while v < 1.5:
                v = v + v * x[i, 0] + 0.1
            out[i, j] = v * v

    @cuda.jit
    def while_of_vectors(x, w, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            v = cuda.local.array(3, np.float64)
            for c in range(3):
                v[c] = x[i] * (c + 1)
            t = 0
            while v[0] < 2.0 and t < 10:
                for c in range(3):
                    v[c] = v[c] * (w[c] + 0.7) + 0.2
                t += 1
            out[i] = v[0] * v[1] + v[2]

    @cuda.jit
    def while_that_breaks(x, out):
        i = cuda.grid(1)
        if i >= x.shape[0]:
            return
        if x[i] < 0.3:
            out[i] = x[i] ** 3
            return
        v, s, up = x[i], 0.0, True
        while True:
            if up:
                v = math.sin(v) + 0.2
            else:
                v = v + 0.1 * math.exp(-v)
            up = not up
            s += v * v
            if s > 3.0:
                break
        out[i] = s * v

    @cuda.jit
    def while_in_whiles(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            s, n = 0.0, 0
            while n < 3:
                u = x[i] + n
                while u > 0.3:
                    m = 0
                    while m < 2:
                        u = u * 0.6
                        m += 1
                    s += u * u
                n += 1
            out[i] = s

    @cuda.jit
    def entries_in_order(x, y, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            a, b = x[i], y[i]
            if a > b:
                a, b = b, a
            out[i] = a * a - b

    @cuda.jit
    def by_steps(x, out):
        i = cuda.grid(1)
        s = 0.0
        for k in range(1, x.shape[0], 3):
            s += x[k] * x[i]
        for k in range(x.shape[0] - 1, 2, -2):
            s *= x[k]
        out[i] = s

    @cuda.jit
    def two_results(x, y, z):
        i = cuda.grid(1)
        t = x[i] ** 3
        z[i] = t * x[i]
        y[i] = t

    @cuda.jit
    def of_math(x, y, out):
        i = cuda.grid(1)
        u, v = x[i] + 0.5, y[i] + 0.5
        out[i] = math.log(u) + math.pow(u, v) + math.atan2(u, v) * math.hypot(u, v) + math.fabs(u - v) + math.asin(x[i])

    @cuda.jit
    def odd_places(x, out):
        i = cuda.grid(1)
        out[2 * i + 1] = x[i] ** 2
        out[1 + i * 2] += 3.0

    @cuda.jit(device=True)
    def sum_of_squares(v, scale):
        s = 0.0
        for k in range(2):
            s += v[k] * v[k] * scale
        return s

    @cuda.jit
    def exchanged(x, out):
        i = cuda.grid(1)
        v = cuda.local.array(2, np.float64)
        w = cuda.local.array(2, np.float64)
        v[0], v[1] = x[i], 2 * x[i]
        w[0], w[1] = x[i] ** 2, 3.0
        for _ in range(3):
            v, w = w, v
            v[0] = v[0] * w[1]
        out[i] = v[0] * w[0] + sum_of_squares(v, x[i])

    @cuda.jit
    def filled(x, out):
        i = cuda.grid(1)
        v = cuda.local.array(3, np.float64)
        v[:] = x[i]
        v[1] = 2.0
        out[i] = v[0] * v[1] * v[2]

    return {n: k for n, k in locals().items() if n in SHAPES or n in MORE}


def arguments(name, dtype=np.float64, seed=0):
    """(arguments, blocks, threads) of a kernel."""
    shapes, blocks, threads = (SHAPES | MORE)[name]
    rng = np.random.default_rng(seed)
    args = [rng.random(s).astype(dtype) if isinstance(s, tuple) else s.copy() if isinstance(s, np.ndarray)
            else dtype(s) for s in shapes]
    return args, blocks, threads
