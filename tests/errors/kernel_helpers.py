"""Kernels that are refused, and two that are not."""
import math

import numpy as np

from gradscribe.runtime import device

with device.using("plain"):
    cuda = device.cuda


@cuda.jit
def scattered(x, at, y):
    i = cuda.grid(1)
    y[at[i]] = x[i]


@cuda.jit
def neighbours(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    y[i + 1] = 2 * x[i]


@cuda.jit
def running(x):
    i = cuda.grid(1)
    x[i] = x[i - 1] + 1


@cuda.jit
def one_for_all(x, y):
    i = cuda.grid(1)
    y[0] += x[i]


@cuda.jit
def of_a_block(x, y):
    k = cuda.threadIdx.x
    b = cuda.blockIdx.x
    y[k] = x[b]


@cuda.jit
def strange_step(x, y):
    for i in range(cuda.grid(1), x.shape[0], 2):
        y[i] = x[i]


@cuda.jit
def together(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    cuda.syncthreads()


@cuda.jit
def shared(x, y):
    i = cuda.grid(1)
    kept = cuda.shared.array(32, np.float64)
    kept[i] = x[i]
    y[i] = kept[i]


@cuda.jit
def greatest(x, y):
    i = cuda.grid(1)
    cuda.atomic.max(y, 0, x[i])


@cuda.jit
def old_value(x, y, z):
    i = cuda.grid(1)
    z[i] = cuda.atomic.add(y, 0, x[i])


@cuda.jit
def looks_at_sums(x, y, z):
    i = cuda.grid(1)
    cuda.atomic.add(y, 0, x[i])
    z[i] = y[0]


@cuda.jit
def other_name(x, y):
    i = cuda.grid(1)
    z = y
    z[i] = x[i]


@cuda.jit(device=True)
def put(y, i, v):
    y[i] = v


@cuda.jit
def by_another(x, y):
    i = cuda.grid(1)
    put(y, i, x[i])


@cuda.jit
def squared_in_place(x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * x[i]


@cuda.jit
def unknown_dtype(x, y, kind):
    i = cuda.grid(1)
    v = cuda.local.array(3, kind)
    v[0] = x[i]
    y[i] = v[0]


@cuda.jit
def doubled(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = 2 * x[i]


@cuda.jit
def scaled(a, x, y):
    i = cuda.grid(1)
    y[i] = a * x[i]


@cuda.jit
def counted(x, n):
    i = cuda.grid(1)
    if x[i] > 0.0:
        cuda.atomic.add(n, 0, 1)


@cuda.jit
def swapped(x, y, out):
    i = cuda.grid(1)
    a, b = x, y
    for _ in range(3):
        a, b = b, a
    out[i] = a[i] * a[i] - b[i]


@cuda.jit
def ended(x, y):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        if x[i] < 0.0:
            return
        for _ in range(2):
            y[i] = y[i] * math.sin(x[i])


@cuda.jit
def grid_as_a_name(grid_x, y):
    y[cuda.grid(1)] = grid_x


@cuda.jit
def with_a_default(x, y=None):
    i = cuda.grid(1)
    x[i] = 2 * x[i]


@cuda.jit
def lanes(x, y):
    y[cuda.laneid] = x[cuda.laneid]


@cuda.jit
def read_by_another_name(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    z = y
    x[i] = z[i]


@cuda.jit
def parts_exchanged(x, y, out):
    i = cuda.grid(1)
    a, b = x[i:i + 2], y[i:i + 2]
    if x[i] > y[i]:
        a, b = b, a
    out[i] = a[0] * a[1] - b[0]


@cuda.jit
def twice_the_place(x, y):
    for i in range(2 * cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[i] = x[i]


@cuda.jit
def place_of_its_own(x, y):
    thread_x = 0
    thread_x = 1
    y[thread_x + cuda.blockIdx.x * cuda.blockDim.x] = x[0]


@cuda.jit
def counted_into(x, at, y):
    i = cuda.grid(1)
    cuda.atomic.add(y, at[i], x[i] ** 2)


TABLE = np.array([1.0, 2.0, 3.0])


@cuda.jit
def looked_up(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * TABLE[i % 3]


@cuda.jit
def as_far_as_its_place(x, y):
    i = cuda.grid(1)
    s = x[i]
    for k in range(i):
        s = s * x[k]
    y[i] = s


@cuda.jit
def sorted_entries(x, y):
    i = cuda.grid(1)
    y[i] = np.sort(x)[i]
