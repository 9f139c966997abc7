"""Programs that write through out=, ufunc.at, functions that fill, views of views, and names that show one of two.

Each is checked against differences: gradient, jvp, primal, compiled; the argument stays as it was, strided or not.
"""

import numpy as np
import pytest
from programs import checks

import gradscribe as gs

POINTS = [np.array([0.9, 0.3, 0.7, 0.4]), np.array([0.2, 0.8, 0.6, 1.1])]
W = np.arange(1.0, 17.0).reshape(4, 4)


def out_keyword(x):
    y = np.empty_like(x)
    np.multiply(x, x, out=y)
    z = np.add(y, x, out=y)
    z[0] *= 2.0
    return np.sum(y * x)


def out_positional(x):
    y = np.zeros(4)
    np.exp(x, y)
    np.multiply(y, x, y)
    return np.sum(y * y)


def out_of_products(x):
    y, z = np.zeros(4), np.empty((4, 4))
    A = np.outer(x, x)
    np.dot(W, x, out=y)
    np.matmul(W, A, out=z)
    w = np.einsum("ij,j->i", z, x, out=np.zeros(4))
    return np.sum(y * z) + np.sum(w * x)


def out_of_reductions(x):
    A = np.outer(x, x * x)
    r = np.zeros(4)
    np.sum(A * A, axis=0, out=r)
    A.mean(axis=1, out=r[:]).fill(x[1])
    c = np.empty(4)
    x.cumsum(out=c)
    np.clip(c, 0.5, 1.4, c)
    return np.sum(r * c)


def out_into_a_view(x):
    A = np.zeros((4, 4))
    for i in range(4):
        np.multiply(x, x[i], out=A[i])
    np.exp(A[1:], out=A[:-1])
    np.take(x, [3, 0, 1, 1], out=A[:, 2])
    np.concatenate([x[:2], x[2:] * x[:2]], out=A.T[0])
    return np.sum(A * W * A)


def out_broadcasts(x):
    A = np.ones((4, 4))
    np.multiply(x, x[::-1], out=A)
    np.add(A, x[0], A.T)
    return np.sum(A * W)


def out_where(x):
    y = np.full(4, 2.0)
    d = x - x[1]
    np.divide(x * x, d, out=y, where=d > 0)
    z = np.sqrt(abs(d), where=d != 0, out=np.zeros(4))
    return np.sum(y * x) + np.sum(z)


def out_in_nested_loops(x):
    u, t = x.copy(), np.empty(4)
    for _ in range(2):
        for k in range(3):
            np.multiply(u, x[k], out=t)
            np.sin(t, t)
            np.add(u, t, out=u)
    return np.sum(u * t)


def at_subtract(x):
    y = np.ones(4)
    np.subtract.at(y, np.array([0, 0, 2, 1]), x * x)
    np.subtract.at(y, [1, 1], 0.5)
    return np.sum(y * y * x)


def at_masks_and_slices(x):
    y = x * 2
    np.multiply.at(y, slice(1, 3), x[:2])
    np.maximum.at(y, x > 0.5, 1.3)
    np.negative.at(y, 0)
    return np.sum(y * y * x)


def fill_diagonals(x):
    A, B = np.outer(x, x), np.outer(x, x + 1)[:, :3]
    np.fill_diagonal(A, x[0] ** 2)
    np.fill_diagonal(B, 0.0)
    C = A.copy()
    np.fill_diagonal(C, x * 3)
    return np.sum(A * W) + np.sum(B * B) + np.sum(C * C)


def fill_along_an_axis(x):
    y, A = x * 2, np.outer(x, x)
    np.put_along_axis(y, np.array([1, 3]), x[:2] ** 2, axis=0)
    np.put_along_axis(A, np.argmax(A, axis=1)[:, None], x[0], axis=1)
    np.put_along_axis(A, np.array([[2, 0, 1, 3]]), x[None, :], axis=0)
    return np.sum(y * y) + np.sum(A * W * A)


def fill_by_masks(x):
    y = x * 2
    np.putmask(y, x > 0.65, x * x)
    np.place(y, x < 0.35, [x[1] * 3])
    np.copyto(y, x[3], where=x == x[1])
    A = np.outer(x, x)
    np.copyto(A, x[0] * x, where=np.outer(x, x) > 0.3)
    return np.sum(y * y * x) + np.sum(A * W)


def flat_entries(x):
    A = np.outer(x, x)
    B = A.T
    f = B.flat
    B.flat[3] = x[0] ** 2
    B.flat[5:8] = x[1:]
    B.flat[[0, 2]] = 0.5
    B.flat[1] += x[2]
    part = f[4:6]
    part[0] = 100.0
    return np.sum(A * W) + f[5] * B.flat[7]


def flat_loop(x):
    A = np.outer(x, x)
    for i in range(5):
        A.flat[i * 3] = A.flat[i] * x[1]
    s = 0.0
    for v in A.T.flat:
        s = s * 0.9 + v
    return s


def view_by_reshape(x):
    A = np.zeros((4, 4))
    A[:] = np.outer(x, x)
    v = A.reshape(-1)
    v[::3] = x[0] * 2
    w = A.ravel()
    w[5] += x[1]
    B = A.reshape(2, 2, 4)
    B[0, 1, :] = x * x
    return np.sum(A * W) + v[4] * w[5]


def view_of_a_vector(x):
    y = x[::-1] * 2.0
    A = y[::2].reshape(2, 1)
    A[0, 0] = x[3] ** 2
    B = y.reshape(2, 2)
    B *= x[:2]
    y[3] = x[0] * x[1]
    return np.sum(B * W[:2, :2]) + np.sum(A) + y[0]


def view_by_reshape_in_a_loop(x):
    A = np.outer(x, x)
    v = A.reshape(-1)
    for k in range(len(v) - 1):
        v[k + 1] = v[k] * 0.5 + v[k + 1]
    for row in A.reshape(8, 2):
        row[1] = row[0] * x[0]
    return np.sum(A * W)


def view_by_axes(x):
    A = np.outer(x, x * x)
    np.flip(A)[0] = x
    np.flip(A, axis=1)[1:, 0] *= x[1:]
    np.fliplr(A)[2] += 1.0
    np.rot90(A)[1] = x * 2
    np.moveaxis(A, 0, 1)[3] = x * x
    np.swapaxes(A, 0, 1)[0, 0] = x[3]
    np.expand_dims(A, 0)[0, 1, 1] = x[0] * 3
    np.expand_dims(A, (0, 3))[0, 1, 2, 0] = x[1] * 3
    np.squeeze(A[None], axis=0)[2, 2] = x[0]
    np.squeeze(A[None])[2, 3] = x[0] * x[1]
    T = np.transpose(A[None], (1, 2, 0))
    T[3, 0] *= x[0]
    return np.sum(A * W * A) + np.sum(T)


def view_at_least(x):
    y, A = x * 2, np.outer(x, x)
    np.atleast_1d(y)[0] = x[1] ** 2
    np.atleast_2d(y)[0, 1] = x[2] ** 2
    np.atleast_3d(y)[0, 2, 0] = x[3] ** 2
    np.atleast_3d(A)[0, 1] = x[3] ** 3
    np.asarray(y)[3] *= x[0]
    np.asanyarray(y)[3] *= x[0]
    np.array(y, copy=False)[3] *= x[0]
    np.array(y)[3] = 5.0
    q = np.ascontiguousarray(y)
    q[3] *= x[0]
    r = y.conj()
    r[0] *= x[1]
    y.real[1] *= x[2]
    np.conj(y)[2] = 100.0
    return np.sum(y * y) + np.sum(A * W)


def view_that_is_a_copy(x):
    A = np.outer(x, x)
    f = A.flatten()
    f[0] = x[0] * 5
    g = A[1].flatten()
    g[:] = 0.0
    D = np.diag(x)
    D[0, 1] = x[2]
    A[np.array([0, 1])][0] = 1.0
    A[A > 0.1][0] = 5.0
    d = np.diagonal(A)
    A[1, 1] = x[0]
    return np.sum(A * W) + np.sum(f * f) + np.sum(D * W) + np.sum(g) + np.sum(d * x)


def view_of_unknown_layout_alone(x):
    y = np.outer(x, x)[:, ::2].T
    v = y.ravel()
    v[0] = x[1] ** 2
    w = x.reshape(2, 2) * 1.0
    w = w.T.reshape(4)
    w[1] = x[3]
    return np.sum(v * v) + np.sum(w * x)


def view_of_views(x):
    y, A = x * 1.0, np.outer(x, x)
    v = y[1:]
    w = v[::2]
    w[0] = x[0] ** 2
    w[-1] *= x[1]
    A[0][1] = x[2] ** 2
    A.T[0] = x * 3
    A[1:][A[1:] > 0.3] = x[0]
    B = np.stack([A, A * 2])
    B[1][:, [1, 2]] = np.outer(x, x[:2])
    B[0][[1, 2], 1:] *= x[0]
    return np.sum(y * y) + np.sum(v * w[0]) + np.sum(A * W) + np.sum(B[1] * W * B[0])


def rows_of_views(x):
    A, B = np.outer(x, x), np.outer(x, x + 1)
    for row in A.T:
        row[:] = row * row[0]
    for row in A[1:]:
        row *= x[0]
    for i, (a, b) in enumerate(zip(A, B)):
        a[:] = a * b + i
    for a, b in zip(B, B.T):
        a[0] = b[1] * x[0]
    return np.sum(A * W) + np.sum(B * B)


def rows_of_themselves(x):
    y = x * 1.0
    y[1:] += y[:-1]
    y[:] = y[::-1] * x
    y[1:] = y[:-1]
    y[:-1] -= y[1:] * 0.5
    return np.sum(y * y * x)


def alias_chain(x):
    z = y = np.zeros(4)
    z[:] = x
    y[0] = x[1]
    q = z
    q += y
    z = z + y
    z[1] = 0.0
    return np.sum(q * y) + np.sum(z * x)


def either_written(x):
    a, b = x * 1.0, x * 2.0
    v = a[1:]
    y = a if x[0] > 0.5 else b
    y[1] = x[2] ** 2
    y[2] *= 3.0
    return np.sum(a * b) + np.sum(v * y[1:])


def either_source_written(x):
    a, b = x * 1.0, x * 2.0
    if x[0] > 0.5:
        y = a
    else:
        y = b
    a[0] = x[1] ** 2
    y += x
    b[1] = x[3]
    y[2] = x[0] * x[1]
    return np.sum(y * a) + np.sum(b * b)


def either_in_a_loop(x):
    a, b = x * 1.0, x * 2.0
    for i in range(4):
        y = a if x[i] > 0.5 else b
        y[i] = x[i] * y[0]
        np.multiply(y, 1.1, out=y)
    return np.sum(a * b)


PREFIXES = ("out_", "at_", "fill_", "flat_", "view_", "rows_", "alias_", "either_")
PROGRAMS = {name: f for name, f in globals().items() if name.startswith(PREFIXES)}
SECOND = ("out_keyword", "out_where", "at_subtract", "fill_by_masks", "flat_entries", "view_by_reshape",
          "either_written")


def differences(f, x):
    """Central differences of a number or an array."""
    columns = [(np.asarray(f(x + 1e-6 * v)) - np.asarray(f(x - 1e-6 * v))) / 2e-6 for v in np.eye(x.size)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("point", checks.some_fast(range(len(POINTS)), len(POINTS)))
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name, point):
    f, x = PROGRAMS[name], POINTS[point]
    kept, t = x.copy(), np.array([0.1, 0.2, 0.5, -0.3])
    want = differences(lambda z: f(z.copy()), x)
    value, got = gs.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-13)
    np.testing.assert_allclose(got, want, atol=5e-6)
    value, dot = gs.jvp(f, (x,), (t,))
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-13)
    np.testing.assert_allclose(dot, want @ t, atol=5e-6)
    assert np.array_equal(x, kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_strided_arguments(name):
    f, x = PROGRAMS[name], POINTS[0]
    want = gs.grad(f)(x)
    for wide in (np.zeros((4, 2)), np.zeros((2, 4)).T, np.zeros(8)[::-1].reshape(4, 2)):
        wide[:, 1] = x
        kept = wide.copy()
        np.testing.assert_allclose(gs.grad(f)(wide[:, 1]), want, rtol=1e-12)
        assert np.array_equal(wide, kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    f, x = PROGRAMS[name], POINTS[0]
    np.testing.assert_allclose(gs.hessian(f)(x), differences(gs.grad(f), x), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name):
    f = PROGRAMS[name]
    for x in POINTS:
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x.copy()), gs.grad(f)(x), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(gs.jit(f)(x.copy()), f(x.copy()), rtol=1e-12)


# --- a matrix in any layout -----------------------------------------------------------------------------------------

V = np.arange(1.0, 13.0).reshape(3, 4)


def matrix_copied_then_reshaped(A):
    B = A.copy()
    v = B.ravel()
    v[2:5] = A[0, 0] * A[0, 1]
    B.flat[7] = A[2, 2] ** 2
    B.T.flat[1] *= A[1, 2]
    C = B.reshape(2, 6)
    C[0] = A.ravel()[:6] ** 2
    C.reshape(3, 4)[1] *= 2.0
    B[1:].reshape(8)[3] = A[0, 0]
    B[1].reshape(2, 2)[0, 1] = A[0, 1] ** 2
    return np.sum(B * V) + np.sum(v * v) + np.sum(C[1] * C[0])


def matrix_argument_written(A):
    A[0] = A[1] * A[2]
    np.exp(A, out=A)
    A.T[0] += 1.0
    x = A[0]
    x += A[1]
    x = x + 1
    x[0] = 0.0
    A[1] -= x
    return np.sum(A * V)


def matrix_buffers_swapped(A):
    u = A.copy()
    v = np.empty_like(u)
    for _ in range(4):
        np.multiply(u, 0.5, out=v)
        np.add(v[1:], u[:-1] * 0.1, out=v[1:])
        u, v = v, u
    return np.sum(u * u * V)


def matrix_entries_in_nested_loops(A):
    B = A * 1.0
    for i in range(3):
        for j in range(4):
            if B[i, j] > 0.5:
                B.flat[i * 4 + j] = B[i, j] ** 2
            else:
                np.multiply(B[i], A[i, j], out=B[i])
    return np.sum(B * V)


def matrix_complex(A):
    z = np.exp(1j * A)
    np.multiply(z, z, out=z)
    y = np.zeros((3, 4), complex)
    np.copyto(y, A)
    y[0] = z[1]
    np.conj(y, out=y)
    y.T[1] *= 1j
    return np.sum(np.abs(y + z) ** 2 * V)


def matrix_in_containers(A):
    B = A * 1.0
    views = [B, B.T]
    views[1][0] = A[:, 1] ** 2
    np.exp(views[0], out=views[0])
    rows = {"a": B[1]}
    rows["a"][:] = A[0]
    rows["a"] += 1.0
    views[0] *= A[0]
    return np.sum(B * views[1].T)


def matrix_where(A):
    B = A * 1.0
    np.log(A, out=B, where=A > 0.5)
    np.divide(1.0, A[:, :2] - 0.5, out=B[:, :2], where=(A > 0.6)[:, :2])
    np.sqrt(A[0], out=B, where=A[1] > 0.5)
    return np.sum(B * V)


def matrix_either(A):
    B = A * 1.0
    y = B if A[0, 0] > 0.5 else A * 3.0
    z = y[1]
    z[0] = A[0, 1] ** 2
    B[1, 1] = A[2, 2]
    y[2] *= A[0]
    return np.sum(y * y) + np.sum(B * V) + np.sum(z)


def matrix_views_walked(A):
    B = A.copy()
    for row in B.reshape(4, 3):
        row[0] = row[1] * row[2]
    for row in B.reshape(6, 2).T:
        row *= A[0, 0]
    for k, v in enumerate(B.flat):
        B.flat[k] = v * v
    return np.sum(B * V)


def matrix_results_of_out(A):
    def scaled(y, v, out=None):
        np.multiply(y, v, out=out if out is not None else y)
        return y

    B = np.add(A, A)
    C = np.add(B, 1.0, out=B)
    C[0] = A[1]
    D = scaled(C, A[0])
    E = scaled(B[0], 2.0, out=B[1])
    B[2] = np.minimum(B[0], A[1], out=B[0])
    return np.sum(B * C * V) + np.sum(D) + np.sum(E)


MATRICES = {name: f for name, f in globals().items() if name.startswith("matrix_")}


def layouts(A):
    wide = np.zeros((6, 8))
    wide[::2, 1::2] = A
    return [A.copy(), np.asfortranarray(A), A[::-1].copy()[::-1], wide[::2, 1::2], wide.T[1::2, ::2].T]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", MATRICES)
def test_layouts(name, seed):
    f, A = MATRICES[name], np.random.default_rng(seed).uniform(0.1, 1.0, (3, 4))
    want = differences(lambda z: f(z.reshape(3, 4).copy()), A.ravel()).reshape(3, 4)
    df = gs.value_and_grad(f)
    for B in layouts(A):
        value, got = df(B)
        np.testing.assert_allclose(value, f(B.copy(order="K")), rtol=1e-12)
        np.testing.assert_allclose(got, want, atol=5e-6)
        assert np.array_equal(B, A)
    np.testing.assert_allclose(gs.jvp(f, (A,), (V,))[1], np.sum(want * V), atol=2e-4)
    got = gs.grad(f)(A.astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=5e-3, atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRICES)
def test_compiled_layouts(name):
    f, A = MATRICES[name], np.random.default_rng(1).uniform(0.1, 1.0, (3, 4))
    for B in layouts(A):
        np.testing.assert_allclose(gs.jit(gs.grad(f))(B), gs.grad(f)(A), rtol=1e-11, atol=1e-12)
        if f is not matrix_argument_written:        # jit leaves arguments as they are, and refuses
            np.testing.assert_allclose(gs.jit(f)(B.copy(order="K")), f(A.copy()), rtol=1e-12)


# --- sizes, dtypes, single matters ------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [0, 1, 5])
def test_axes_of_length_zero_and_one(n):
    def f(x):
        y, A = np.empty_like(x), np.zeros((len(x), 2))
        np.multiply(x, x, out=y)
        np.copyto(A, y[:, None])
        A.reshape(-1)[::2] *= 3.0
        np.putmask(y, x > 10, 0.0)
        np.subtract.at(y, np.arange(len(x)), x)
        np.flip(y)[:] += 1.0
        np.add(y, 0.0, out=A.T)
        return np.sum(y) + np.sum(A)

    x = np.linspace(0.1, 0.9, n)
    for df in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(df(x), 3 * (2 * x - 1), rtol=1e-12)


def test_a_mask_leaves_no_trace_of_what_it_hides():
    def f(x, d):
        return np.sum(np.divide(x, d, out=np.zeros_like(x), where=d != 0)) + np.sum(
            np.sqrt(d, out=np.ones_like(d), where=d > 0))

    x, d = np.array([1.0, 2.0, 3.0]), np.array([0.0, 4.0, -1.0])
    with np.errstate(all="raise"):
        dx, dd = gs.grad(f, argnums=(0, 1))(x, d)
    assert dx.tolist() == [0.0, 0.25, -1.0]
    assert dd.tolist() == [0.0, -2 / 16 + 0.25, -3.0]


def test_integers_have_no_derivative():
    def f(x):
        k, y = np.zeros(3, dtype=int), np.zeros(3, dtype=np.float32)
        k[:] = x
        np.add(k, 2, out=k)
        np.multiply(k, 2, out=y)
        np.multiply(x, y, out=y)
        np.floor_divide(k, 2, out=k)
        return np.sum(y) + np.sum(k)

    assert gs.grad(f)(np.array([0.5, 1.5, 2.5])).tolist() == [4.0, 6.0, 8.0]


def test_a_list_of_indices_is_an_array():
    x = np.arange(1.0, 5.0)
    second = gs.jacrev(gs.grad(lambda x: np.sum(np.take(x, [3, 0, 1, 1]) ** 3)))(x)
    np.testing.assert_allclose(second, np.diag([6.0, 24.0, 0.0, 24.0]))


def test_reversals_of_reversals_compiled():
    def f(A):
        B = np.flip(np.fliplr(np.flip(A, axis=1)), axis=0)
        return np.flipud(B) @ A[0] + np.rot90(np.rot90(A), 2)[1, :3]

    A = np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(gs.jit(f)(A), f(A))


def test_views_without_axes():
    def f(x):
        y = x * 2.0
        s, t, n = y[..., 1], np.squeeze(y[:1]), y[1]
        y[:] = y[::-1]
        return s * x[0] + t * x[1] + n * x[2]

    x = np.array([1.0, 2.0, 4.0])
    assert gs.value_and_grad(f)(x)[0] == f(x) == 4 + 16 + 16
    assert gs.grad(f)(x).tolist() == [4.0, 8.0 + 2.0 + 8.0, 4.0 + 4.0]


def test_what_copies_and_what_does_not():
    def f(x, a, b):
        a[0] = 5.0
        return np.sum(x * b)

    x = np.array([2.0, 3.0])
    same = [lambda x: np.asarray(x), lambda x: np.asanyarray(x), lambda x: np.array(x, copy=False), lambda x: x.conj(),
            lambda x: x.real, lambda x: x[:], lambda x: x.T, lambda x: np.atleast_1d(x),
            lambda x: x.reshape(2, 1)[:, 0], lambda x: np.squeeze(x), lambda x: x[::-1][::-1]]
    copied = [lambda x: np.array(x), lambda x: x.flatten(), lambda x: x.copy(), lambda x: np.conj(x), lambda x: +x,
              lambda x: x[[0, 1]], lambda x: x.astype(float), lambda x: x.flat[:], lambda x: np.array(x, copy=True)]
    for view in same + copied:
        def g(x, view=view):
            y = x * 1.0
            f(y, view(y), x)
            return np.sum(y * y)

        assert g(x.copy()) == (34.0 if view in same else 13.0)
        assert gs.value_and_grad(g)(x)[0] == g(x.copy())
        assert gs.grad(g)(x).tolist() == [0.0 if view in same else 4.0, 6.0]


def test_unknown_layouts_are_refused():
    def f(A):
        B = A * 2.0
        B.reshape(-1)[0] = 1.0
        return np.sum(B)

    def g(A):
        v = np.ravel(A)
        A[0, 0] = 1.0
        return np.sum(v)

    def h(A):
        B = np.copy(A)
        B.ravel()[0] = 1.0
        return np.sum(B)

    def k(A):
        B = A[:, :2] * 1.0
        np.einsum("ii->i", B)[0] = 1.0
        return np.sum(B)

    def m(A):
        u, w = np.split(np.ravel(A), 2)
        u[0] = 1.0
        return np.sum(A)

    for function in (f, g, h, k, m):
        with pytest.raises(gs.TransformError, match="may have changed|shows a part"):
            gs.grad(function)(np.ones((2, 4)))


def test_one_of_two_arrays_is_written_in_a_loop():
    """The passes are written out, since what the array shares with others depends on them."""
    def f(A):
        B, C = A * 1.0, A * 2.0
        y = B if A[0, 0] > 0 else C
        for i in range(2):
            y[i] = A[i] * y[0]
        return np.sum(B)

    for A in (np.arange(8.0).reshape(2, 4) + 1, -np.arange(8.0).reshape(2, 4) - 1):
        value, found = gs.value_and_grad(f)(A)
        assert value == f(A)
        want = np.ones_like(A) if A[0, 0] < 0 else np.stack([2 * A[0] + 2 * A[0] * A[1], A[0] ** 2])
        np.testing.assert_allclose(found, want, rtol=1e-14)


def test_rowwise_arrays_are_so():
    """What is taken to lie row by row does, for operands in any layout."""
    x = np.arange(12.0)
    for u, v in ((x[::2], x[::-2]), (x[:6], x[6:])):
        A, F = u.reshape(2, 3).copy(), np.asfortranarray(v.reshape(2, 3))
        for made in (np.outer(u, v), np.dot(F.T, A), F @ F.T, F.T @ F, np.ravel(F), F.flatten(), F.copy(),
                     np.array([u, v]), A * u[:3] + v[:3], np.where(A > 0, A, u[:3]), np.exp(v), v * 2.0,
                     np.array([F[0], F[1]])):
            assert made.flags.c_contiguous
        for base in (v, u):
            assert np.shares_memory(base.reshape(2, 3), base) and np.shares_memory(base.reshape(3, 2, 1), base)
        assert np.shares_memory(A[1].ravel(), A) and np.shares_memory(A[:1].reshape(3), A)


def test_broadcast_arrays_are_views():
    def f(x):
        a = x * 1.0
        p, q = np.broadcast_arrays(a, np.ones((2, 4)))
        a[0] = 2.0 * x[1]
        return np.sum(p * p * q)

    x = np.array([0.3, -0.4, 0.8, 1.2])
    np.testing.assert_allclose(gs.grad(f)(x), [0.0, 20.0 * x[1], 4.0 * x[2], 4.0 * x[3]], rtol=1e-12)
