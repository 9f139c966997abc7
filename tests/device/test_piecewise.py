"""Arrays that are set in two steps: borders, tables of places, sums into shifted places; on a device as eagerly."""
import numpy as np
import pytest
from numpy.testing import assert_allclose

import gradscribe as gs
from gradscribe import lax
from gradscribe.runtime import device
from gradscribe.tree_util import tree_leaves

rng = np.random.default_rng(0)


def border(x, n):
    y = np.zeros((x.shape[0] + 2, x.shape[1]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i + 1, j] = x[i, j] * 2
    return y * n


def ones_border(x):
    y = np.ones((x.shape[0] + 3, x.shape[1] + 1), x.dtype)
    y[1:-2, 1:] = x
    return y


def scatter(x):
    y = np.zeros(2 * x.shape[0] + 3)
    for i in range(x.shape[0]):
        for k in range(3):
            y[2 * i + k] += x[i] * (k + 1)
    return y


def scatter2(x):
    y = np.zeros((2 * 4 + 3, 5))
    for i in range(4):
        for k in range(3):
            for j in range(5):
                y[2 * i + k, j] += x[i, j] * (k - 1.5)
    return y


def scatter_kept(x):
    y = np.full((12,), 0.5)
    for i in range(4):
        for k in range(3):
            y[3 * i + k] += x[i, k]
    return y[1:], y.sum()


def negative(x):
    y = np.zeros((8,))
    for i in range(5):
        for k in range(3):
            y[i + 2 - k] += x[i, k]
    return y


def down(x):
    y = np.zeros((7,))
    for i in range(5):
        for k in range(3):
            y[6 - i - k] += x[i, k]
    return y


def read_between(x):
    y = np.zeros(6)
    s = y[2] + 1
    for i in range(4):
        y[i + 1] = x[i]
    return y * s


def twice(x):
    y = np.zeros(6)
    for i in range(4):
        y[i + 1] = x[i]
    for i in range(4):
        y[i + 2] = x[i]
    return y


def self_read(x):
    y = np.zeros(6)
    for i in range(5):
        y[i + 1] = y[i] + x[i]
    return y


def table(x):
    t = np.empty((4, 3), int)
    for i in range(4):
        for j in range(3):
            t[i, j] = i + j
    return x[t], np.sum(x[t[1:, :2]])


def table_out(x):
    t = np.arange(4)[:, None] + np.arange(3)
    return x[t] * 2, t


def table_add(x, v):
    t = 2 * np.arange(4)[:, None] + np.arange(3)
    y = np.zeros(9)
    np.add.at(y, t, v)
    return y * x


def table_beyond(x):
    t = np.arange(4)[:, None] + np.arange(3)
    return x[t + 1]


def ints(x):
    y = np.zeros((9,), int)
    for i in range(4):
        for k in range(3):
            y[2 * i + k] += x[i] * k
    return y


def loop_pad(x):
    s = np.zeros(x.shape[0] + 2)
    for t in range(3):
        y = np.zeros(x.shape[0] + 2)
        y[1:-1] = x * (t + 1)
        s = s + y * s[0] + np.roll(y, 1)
    return s


def pad_reader(x, m):
    y = np.zeros((x.shape[0] + 2, 6))
    y[1:-1, 1:-1] = x
    z = np.zeros((x.shape[0], 4))
    for i in range(x.shape[0]):
        for j in range(4):
            z[i, j] = y[i, j] + y[i + 2, j + 2] - y[i + 1, j + 1] * m[i, j]
    return z


def mutate(x, v):
    y = np.zeros(12)
    for i in range(4):
        for k in range(3):
            y[2 * i + k] += x[i] * v[k]
    v[0] = 7.0
    z = np.empty(12)
    for i in range(12):
        z[i] = y[i] * 2
    return z, v


def mutate_between(x, v):
    w = v * 1.0
    y = np.zeros(12)
    for i in range(4):
        for k in range(3):
            y[2 * i + k] += x[i] * w[k]
    w[1] = 7.0
    z = np.empty(10)
    for i in range(10):
        z[i] = y[i + 1] * 2
    return z, w


def set_by_its_reader(x):
    w = x * 1.0
    y = np.zeros(12)
    np.add.at(y, 2 * np.arange(4)[:, None] + np.arange(3), np.broadcast_to(w[:, None], (4, 3)))
    w[:] = y[1:5] * 2
    return w


def view_set_by_its_reader(x):
    w = x * 1.0
    u = w.reshape(2, 2)
    y = np.zeros(8)
    np.add.at(y, 2 * np.arange(2)[:, None, None] + np.arange(2)[:, None] + np.arange(3), np.broadcast_to(
        u[:, :, None], (2, 2, 3)))
    w[:] = y[1:5] * 2
    return w, u


def len_zero(x):
    y = np.zeros((x.shape[0], 5))
    for i in range(x.shape[0]):
        for k in range(3):
            y[i, k + 1] = x[i, k]
    return y, np.sum(y)


def blur(u):
    out = np.zeros_like(u)
    out[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return out


def same_twice(x):
    y = np.zeros(6)
    for i in range(2):
        for k in range(3):
            y[i * 3 + k] += x[i, k]
    return y


def both_axes(x):
    y = np.zeros((6, 6))
    for i in range(4):
        for k in range(3):
            y[i + k, i] += x[i, k]
    return y


def twice_used(x):
    y = np.zeros(9)
    for i in range(4):
        s = np.sin(x[i])
        for k in range(3):
            t = s * k
            y[2 * i + k] += t * t + s
    return y


def border_used(x):
    y = np.zeros(6)
    for i in range(4):
        s = np.sin(x[i])
        y[i + 1] = s * s
    z = np.zeros(3)
    for i in range(3):
        z[i] = y[-1] * x[i] + y[-2]
    return y, z


def let_after(x):
    y = np.zeros(9)
    s = 0.0
    for i in range(4):
        for k in range(3):
            s = x[i] * k
            y[2 * i + k] += s
    return y * s


def of_a_view(x):
    y = np.zeros((3, 6))
    v = y[1]
    for i in range(4):
        v[i + 1] = x[i]
    for i in range(4):
        for k in range(3):
            y[2, i + k] += x[i] * v[i]
    return y, v * 2


def in_lists(x):
    rows = [np.zeros(6), np.zeros(6)]
    for i in range(4):
        for k in range(3):
            rows[0][i + k] += x[i] * k
    rows[1][1:5] = x
    return [rows[0] * rows[1], rows]


def repeated_places(x):
    i = np.array([0, 2, 2, 5])
    y = np.zeros(8)
    for k in range(3):
        for j in range(4):
            y[i[j] + k] += x[j] * (k + 1) ** 2
    return y


X, V, W = rng.standard_normal((4, 4)), rng.standard_normal(4), rng.standard_normal((5, 3))
SIX, NINE = rng.standard_normal(6), rng.standard_normal(9)
PROGRAMS = {
    "border": (border, X, 3), "border of ones": (ones_border, X),
    "border in single": (ones_border, X.astype(np.float32)), "complex border": (ones_border, X + 1j),
    "whole border": (ones_border, np.arange(12).reshape(3, 4)), "strided": (scatter, V),
    "strided, one": (scatter, V[:1]), "strided, none": (scatter, V[:0]),
    "strided rows": (scatter2, rng.standard_normal((4, 5))), "on what is there": (scatter_kept, X),
    "backwards": (negative, W), "from the end": (down, W), "read between": (read_between, V), "twice": (twice, V),
    "of itself": (self_read, NINE[:5]), "table": (table, SIX), "table that is a result": (table_out, SIX),
    "sum at a table": (table_add, NINE, rng.standard_normal((4, 3))),
    "table, one more": (table_beyond, rng.standard_normal(7)), "whole numbers": (ints, np.arange(4)),
    "in a loop": (loop_pad, V), "read shifted": (pad_reader, X, X * 2), "operand set after": (mutate, V, np.ones(3)),
    "operand set between": (mutate_between, V, np.ones(3)), "set by its reader": (set_by_its_reader, V),
    "view set by its reader": (view_set_by_its_reader, V), "numbers before": (twice_used, V),
    "a border's number twice": (border_used, V), "a number read after": (let_after, V), "of a view": (of_a_view, V),
    "in lists": (in_lists, V), "repeated places": (repeated_places, V), "no rows": (len_zero, np.zeros((0, 3))),
    "one row": (len_zero, np.ones((1, 3))), "stencil": (blur, rng.standard_normal((6, 5))),
    "stencil in single": (blur, rng.standard_normal((6, 5)).astype(np.float32)),
    "stencil, no middle": (blur, np.ones((2, 5))), "without overlap": (same_twice, W),
    "index of two axes": (both_axes, X[:, :3])}


def copies(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def total(f):
    return lambda *args: sum(np.sum(np.sin(part)) for part in tree_leaves(f(*args)))


def same(f, args, target="cuda"):
    expected = tree_leaves(f(*copies(args)))
    with device.using("plain"):
        compiled = gs.jit(f, target=target)
        found = tree_leaves(compiled(*copies(args)))
    assert len(found) == len(expected)
    for got, want in zip(map(np.asarray, found), map(np.asarray, expected)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert_allclose(got, want, *[2e-5 if want.dtype == np.float32 else 1e-12] * 2)
    return compiled


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    f, *args = PROGRAMS[name]
    same(f, args)


@pytest.mark.parametrize("name", [n for n, (_, x, *_) in PROGRAMS.items() if x.dtype.kind == "f" and not n.endswith(
    ("set after", "result"))])
def test_gradients(name):
    f, *args = PROGRAMS[name]
    same(gs.grad(total(f)), args)
    same(lambda x, *rest: gs.jvp(lambda x: total(f)(x, *rest), (x,), (np.ones_like(x),)), args)
    same(gs.vmap(lambda x: f(x, *copies(args[1:]))), [np.stack([args[0], 2 * args[0]])])


@pytest.mark.parametrize("name", ["sum at a table", "table, one more"])
def test_on_the_processor(name):
    f, *args = PROGRAMS[name]
    compiled = same(f, args, "cpu")
    assert "place(" not in compiled.lowered and "np.int64" not in compiled.lowered


GATHERED = "strided", "strided rows", "whole numbers", "on what is there", "from the end", "backwards"


@pytest.mark.parametrize("name", GATHERED)
def test_entries_gather(name):
    """What loops of the user's add to shifted places is added up by one thread for each place."""
    f, *args = PROGRAMS[name]
    lowered = same(f, args).lowered
    assert "atomic" not in lowered and "_at += " in lowered


def test_beyond_the_end():
    with device.using("plain"), pytest.raises(IndexError):
        gs.jit(table_beyond, target="cuda")(SIX)


KINDS = [(float, (1, 1), "SAME", (1, 1)), (float, (2, 2), "SAME", (1, 1)), (float, (2, 1), "VALID", (1, 2)),
         (np.float32, (3, 3), ((1, 2), (0, 1)), (1, 1)), (float, (1, 2), ((2, 0), (0, 3)), (2, 1)),
         (np.float32, (2, 2), "SAME", (1, 1)), (complex, (1, 1), "SAME", (1, 1))]


@pytest.mark.parametrize(("dtype", "strides", "padding", "dilation"), KINDS)
def test_convolutions(dtype, strides, padding, dilation):
    """Images of sizes that windows fit badly, and gradients of both arguments."""
    def convolved(x, k):
        return lax.conv_general_dilated(x, k, strides, padding, rhs_dilation=dilation,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))
    for h, w in (5, 7), (3, 3), (6, 5):
        args = rng.standard_normal((2, h, w, 2)).astype(dtype), rng.standard_normal((2, 3, 2, 3)).astype(dtype)
        same(convolved, args)
        if dtype is not complex:
            compiled = same(gs.grad(lambda x, k: np.sum(np.maximum(convolved(np.tanh(x), k), 0) ** 2), (0, 1)), args)
            assert "atomic" not in compiled.lowered and "place_in" not in compiled.lowered
