"""Arrays that are written from end to end: what they held is forgotten, and nothing else is."""
import numpy as np
import pytest

import gradscribe as gs


def differences(f, x, h=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(x.size)])


def stages(x):
    """Runge and Kutta's stages in arrays that are used again."""
    y, k, m = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for _ in range(3):
        k[0] = x[0]
        k[1:] = x[1:] * y[:-1]
        m[:-1] = np.sin(k[1:]) if len(x) > 1 else k[1:]
        m[-1] = k[0] * x[-1]
        y = y + 0.3 * (k + 2.0 * m)
    return np.sum(y * y) + np.sum(k) * y[0]


def three_parts(x):
    """The first and the last entry may be one: the last write is what counts."""
    k = x * x
    for i in range(2):
        k[0] = np.cos(x[0])
        k[1:-1] = x[1:-1] * (i + 1.0)
        k[-1] = k[-1] * 0.5 + x[0] if i else np.sin(x[-1])
    return np.sum(k * k)


def read_between(x):
    """The second write reads what the first has left in place."""
    k = 2.0 * x
    for _ in range(2):
        k[0] = np.sin(x[0])
        k[1:] = k[1:] * x[1:] + k[:-1]
    return np.sum(k * k)


def all_of_it(x):
    k, total = np.sin(x), 0.0
    for _ in range(2):
        total = total + np.sum(k * k)
        k[:] = x * x * total
    return np.sum(k)


def shown_by_another_name(x):
    k = x * 1.0
    v = k[1:]
    k[0] = x[0] ** 3
    k[1:] = np.cos(x[1:])
    return np.sum(v * v) + k[0] * x[0]


def in_a_branch(x):
    k = x * x
    if x[0] > 0:
        k[0] = x[0] ** 3
        k[1:] = np.cos(x[1:])
    return np.sum(k * k)


def not_quite(x):
    k = x * x
    k[0] = 3.0 * x[0]
    k[2:] = np.sin(x[2:])
    return np.sum(k * k)


def rows(x):
    a = np.outer(x, np.cos(x))
    a[0] = x
    a[1:] = np.outer(np.sin(x[1:]), x)
    return np.sum(a * a)


def dotted(df, v):
    def of(p):
        return np.sum(df(p) * v)
    return of


FUNCTIONS = [stages, three_parts, read_between, all_of_it, shown_by_another_name, in_a_branch, not_quite, rows]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_derivatives(f, n):
    for sign in (1, -1):
        x = np.linspace(0.4, 1.3, n) * sign
        df = gs.grad(f)
        np.testing.assert_allclose(df(x.copy()), differences(f, x), rtol=1e-6, atol=1e-8)
        v = np.cos(np.arange(n))
        want = (df(x + 1e-6 * v) - df(x - 1e-6 * v)) / 2e-6
        np.testing.assert_allclose(gs.grad(dotted(df, v))(x.copy()), want, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(gs.jvp(df, (x.copy(),), (v,))[1], want, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS)
def test_compiled(f):
    for n in (1, 2, 5):
        x = np.linspace(0.4, 1.3, n)
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x.copy()), gs.grad(f)(x.copy()), rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_in_batches_and_checkpointed(f):
    xs = np.array([np.linspace(0.4, 1.3, 4) * s for s in (1, -1, 0.7)])
    want = np.array([gs.grad(f)(x.copy()) for x in xs])
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(xs.copy()), want, rtol=1e-9)
    np.testing.assert_allclose(gs.grad(gs.checkpoint(f))(xs[0].copy()), want[0], rtol=1e-9)


def test_nothing_is_saved_of_what_is_forgotten():
    source = gs.grad(stages).source_for(np.ones(4))
    assert source.count("_saved = ") == 1 and "= 0.0" not in source
    single = gs.grad(stages)(np.ones(4, np.float32))
    assert single.dtype == np.float32


def by_twos(x):
    k = x * x
    for i in range(2):
        k[:2] = np.sin(x[:2]) * (i + 1.0)
        k[2:-1] = x[2:-1] * k[0]
        k[-1] = np.cos(x[-1]) + k[1]
    return np.sum(k * k)


def with_a_gap(x):
    k = x * x
    for i in range(2):
        k[:2] = k[:2] * np.sin(x[:2])
        k[3:] = k[3:] * x[3:] * (i + 1.0)
    return np.sum(k * k)


def twice_in_one_place(x):
    k = x * x
    for i in range(2):
        k[0] = x[0] ** 3
        k[1:] = np.sin(x[1:])
        k[-2] = x[0] * x[-1] * (i + 1.0)
        k[:] = k * k
    return np.sum(k)


@pytest.mark.parametrize("f", (by_twos, with_a_gap, twice_in_one_place))
@pytest.mark.parametrize("n", (2, 3, 4, 7))
def test_parts_of_any_length(f, n):
    x = np.linspace(0.3, 1.4, n)
    np.testing.assert_allclose(gs.grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-8)


def up_to_a_place(x, m):
    """A place that is an argument: on which side of it an entry lies, one of the two writes reaches it."""
    k = x * x
    for i in range(2):
        k[:len(m)] = np.sin(x[:len(m)]) * (i + 1.0)
        k[len(m):] = x[len(m):] * 2.0
    return np.sum(k * k)


def test_parts_that_meet_where_an_argument_says():
    x = np.linspace(0.3, 1.4, 5)
    for m in (np.ones(0), np.ones(2), np.ones(5), np.ones(8)):
        got = gs.grad(up_to_a_place)(x, m)
        np.testing.assert_allclose(got, differences(lambda x, m=m: up_to_a_place(x, m), x), rtol=1e-6, atol=1e-8)
    assert "_saved" not in gs.grad(up_to_a_place).source_for(x, np.ones(2))


def rows_and_the_rest(A):
    A = A * 1.0
    for i in range(2):
        A[0] = np.sin(A[0])
        B = A * A
        B[0, :] = 1.0 + i
        B[1:, :1] = A[1:, 1:2]
        B[1:, 1:] = 2.0 * A[1:, 1:]
        A = np.cos(B) * A
    return np.sum(A)


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (3, 4)])
def test_parts_of_several_axes(shape):
    A = np.linspace(0.3, 1.4, shape[0] * shape[1]).reshape(shape)
    want = differences(lambda x: rows_and_the_rest(x.reshape(shape)), A.ravel()).reshape(shape)
    np.testing.assert_allclose(gs.grad(rows_and_the_rest)(A), want, rtol=1e-6, atol=1e-8)
