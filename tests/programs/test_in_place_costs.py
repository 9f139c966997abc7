"""What a gradient of in-place code costs: nothing is saved that the final arrays show, and no cost grows with the size.

Costs are counted (benchmarks/counted.py): entries that NumPy computes, copies, reads and writes.
"""
import inspect
import re

import counted
import numpy as np
import pytest
from fuzz_programs import compiled, make

import gradscribe as gs

PROGRAMS = {}


def program(*shapes, saves=0):
    """shapes: of the arguments, of a length n; saves: the stores that its gradient fills (what functions give)."""
    def put(f):
        PROGRAMS[f.__name__] = f, shapes, saves
        return f
    return put


@program(lambda n: (n, n))
def factors(A):
    A = A.copy()
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return np.sum(np.sin(A))


@program(lambda n: (n, n))
def square_root(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[j, :j]) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - A[i, :i] @ A[i, :i])
    return np.sum(np.sin(A))


@program(lambda n: (n, n), lambda n: n)
def solution(L, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return np.sum(np.sin(x))


@program(lambda n: (n, n), lambda n: n)
def solution_from_the_end(L, b):
    x = np.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - L[i, i + 1:] @ x[i + 1:]) / L[i, i]
    return np.sum(np.sin(x))


@program(lambda n: n)
def recurrence(b):
    y = np.zeros(len(b) + 2)
    for i in range(len(b)):
        y[i + 2] = np.sin(y[i + 1]) * b[i] + y[i] * y[i + 1]
    return np.sum(y)


@program(lambda n: (n, n))
def table(C):
    D = np.zeros((C.shape[0] + 1, C.shape[1] + 1))
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            D[i + 1, j + 1] = C[i, j] + np.log(np.exp(-D[i, j]) + np.exp(-D[i + 1, j]) + np.exp(-D[i, j + 1]))
    return D[-1, -1]


@program(lambda n: n)
def exponentials(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = np.exp(x[i])
    return np.sum(y * y)


@program(lambda n: (n, n))
def rows_one_from_another(A):
    A = A.copy()
    for i in range(1, A.shape[0]):
        A[i] = np.tanh(A[i] + A[i - 1] * A[0])
    return np.sum(A)


@program(lambda n: n, saves=1)
def relaxed(u):
    """Each entry is read by the next before it is written again in the next sweep: a list, and what it holds."""
    u = u.copy()
    for _ in range(3):
        for i in range(1, len(u) - 1):
            u[i] = u[i - 1] * u[i + 1]
    return np.sum(u)


@program(lambda n: n, saves=2)
def exchanged(x):
    """Two buffers, written entry by entry and exchanged: none is copied for an entry."""
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(3):
        for i in range(1, len(x) - 1):
            b[i] = np.sin(a[i]) * a[i - 1] + a[i + 1] * b[i]
        a, b = b, a
    return np.sum(a * a)


@program(lambda n: n, saves=3)
def rotated(x):
    a, b, c = x.copy(), np.zeros_like(x), 0.5 * x
    for _ in range(4):
        for i in range(1, len(x) - 1):
            b[i] = a[i] * a[i - 1] + c[i + 1] * b[i]
        a, b, c = c, a, b
    return np.sum(a * a) + b[1] * c[2]


@program(lambda n: (n, n), saves=1)
def rows_of_sums(A):
    """The loop inside fills its row of the store of the loop around it."""
    A = A / A.shape[0]
    for k in range(A.shape[0]):
        for i in range(A.shape[0]):
            A[i] = np.sin(A[i] * A[k]) + A[i, k]
    return np.sum(A)


@program(lambda n: n, saves=1)
def squared_in_place(x):
    y = x.copy()
    for i in range(len(y)):
        y[i] = y[i] * y[i] * y[0]
    return np.sum(y)


@program(lambda n: (n, n), saves=2)
def factors_with_pivots(A):
    """The rows that are exchanged are saved, and where: not the whole matrix in each pass."""
    A = A.copy()
    for k in range(len(A)):
        j = k + np.argmax(np.abs(A[k:, k]))
        A[[k, j]] = A[[j, k]]
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    return np.sum(np.sin(A))


@program(lambda n: (n, n), saves=3)
def factors_with_pivots_under_a_test(A):
    A = A.copy()
    for k in range(len(A)):
        j = k + np.argmax(np.abs(A[k:, k]))
        if j != k:
            row = A[k].copy()
            A[k] = A[j]
            A[j] = row
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    return np.sum(np.sin(A))


@program(lambda n: (n, n), lambda n: n, saves=5)
def eliminated_with_pivots(A, b):
    """Gauss elimination and back substitution, as it is taught."""
    A, b, n = A.copy(), b.copy(), len(b)
    for k in range(n - 1):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        A[[k, p]] = A[[p, k]]
        b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1:] @ x[i + 1:]) / A[i, i]
    return np.sum(np.sin(x))


# -- views with a name: what is written into one is written into the array that it shows

@program(lambda n: (n, n), saves=1)
def rows_of_a_part(A):
    A = A.copy()
    s = 0.0
    for row in A[1:]:
        s += row[0] * row[1]
        row *= row
    return s + np.sum(A)


@program(lambda n: (n, n), saves=1)
def rows_of_the_turned_matrix(A):
    A = A.copy()
    B = A.T
    for i in range(B.shape[0]):
        B[i] *= B[i]
    return np.sum(np.sin(A))


@program(lambda n: n)
def from_the_end_by_a_view(x):
    x = x.copy()
    y = x[::-1]
    for i in range(1, y.shape[0]):
        y[i] += y[i - 1] * 2
    return np.sum(np.sin(x))


@program(lambda n: (n, n))
def a_part_and_the_rows_before(A):
    A = A.copy()
    below, above = A[1:], A[:-1]
    for i in range(below.shape[0]):
        below[i] += above[i] * 2
    return np.sum(np.sin(A))


@program(lambda n: (n, n))
def a_turned_part_of_a_part(A):
    A = A.copy()
    B = A[1:]
    C = B[:, 1:].T
    for i in range(C.shape[0]):
        C[i] *= 2.0
        B[0, i] += C[i, 0]
    return np.sum(np.sin(A))


@program(lambda n: (n, n), saves=1)
def parts_from_the_pivot_on(A):
    A = A.copy()
    for k in range(A.shape[0]):
        B = A[k:]
        for i in range(B.shape[0]):
            B[i] -= 0.5 * A[k, 0]
    return np.sum(np.sin(A))


@program(lambda n: (3, n, n))
def arranged_axes(A):
    B = A.copy()
    C, D = np.transpose(B, (2, 0, 1)), np.swapaxes(B, 0, 1)
    for i in range(C.shape[0]):
        C[i, 1, 0] *= 2.0
        D[i, 0, 1] = C[i, 2, 1] * 2
    return np.sum(np.sin(B))


@program(lambda n: (n, n))
def parts_of_rows_of_a_part(A):
    A = A.copy()
    B = A[1:-1, 1:-1]
    for i in range(1, B.shape[0]):
        B[i, 1:] += B[i - 1, :-1] * 2.0
    return np.sum(np.sin(A))


@program(lambda n: n, saves=1)
def windows_of_a_part(x):
    x = x.copy()
    y = x[1:]
    for i in range(y.shape[0] - 1):
        y[i:i + 2] *= 0.5 * x[i]
    return np.sum(np.sin(x))


@program(lambda n: (n, n))
def parts_of_columns_of_a_part(A):
    A = A.copy()
    B = A[:, 2:]
    for i in range(1, B.shape[0]):
        B[:i, 0] += B[i, 0] * 2.0
        B[i:, :1] *= 0.5
    return np.sum(np.sin(A))


@program(lambda n: 2 * n)
def a_table_of_a_vector(x):
    x = x.copy()
    y = x.reshape(2, -1)
    for i in range(y.shape[1]):
        y[0, i] += y[1, i] * 2
    return np.sum(np.sin(x))


@program(lambda n: 3 * n)
def a_table_that_a_while_loop_fills(x):
    y = x.copy().reshape(-1, 3)
    k = 1
    while k < y.shape[0]:
        y[k, 1] += y[k - 1, 0] * 2
        k += 1
    return np.sum(np.sin(y))


@program(lambda n: n * n, lambda n: n)
def a_grid_of_a_vector(x, b):
    x = x.copy()
    n = len(b)
    g = x.reshape(n, n)
    for i in range(1, n):
        for j in range(1, n):
            g[i, j] += 0.5 * g[i - 1, j] - g[i, j - 1] * 0.2
    return np.sum(np.sin(x))


def arguments(shapes, n, seed=0):
    rng = np.random.default_rng(seed)
    return [0.1 * rng.standard_normal(s(n)) + (n * np.eye(n) if np.ndim(s(n)) or isinstance(s(n), tuple) else 1.0)
            for s in shapes]


def differences(f, args):
    made = []
    for k, a in enumerate(args):
        d = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [x.copy() for x in args]
                moved[k][i] += h
                ends.append(f(*moved))
            d[i] = (ends[0] - ends[1]) / 2e-6
        made.append(d)
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_saved(name):
    f, shapes, saves = PROGRAMS[name]
    args = arguments(shapes, 5)
    g = gs.grad(f, tuple(range(len(args))))
    text = g.source_for(*args)
    assert len(set(re.findall(r"(\w+_saved\w*) = (?:np\.empty|\[\])", text))) == saves, text
    want = differences(f, args)
    for found, d in zip(g(*args), want):
        np.testing.assert_allclose(found, d, rtol=2e-7, atol=2e-8)
    for found, d in zip(gs.jit(g)(*args), want):
        np.testing.assert_allclose(found, d, rtol=2e-7, atol=2e-8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives(name):
    """A derivative reads its own stores when it is differentiated."""
    f, shapes, _ = PROGRAMS[name]
    args = arguments(shapes, 4)
    many = tuple(range(len(args)))
    weights = [np.cos(np.arange(float(a.size))).reshape(a.shape) for a in args]

    def weighted(*args):
        return sum(np.sum(d * w) for d, w in zip(gs.grad(f, many)(*args), weights))

    def plain(*args):
        return sum(np.sum(d * w) for d, w in zip(gs.grad(f, many)(*args), weights))

    for found, d in zip(gs.grad(weighted, many)(*args), differences(plain, args)):
        np.testing.assert_allclose(found, d, rtol=1e-6, atol=1e-7)


def label_of(text):
    return re.findall(r"^def (grad_\w+)", text, re.M)[-1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cost_of_a_gradient_does_not_grow(name):
    f, shapes, _ = PROGRAMS[name]
    text = gs.grad(f, tuple(range(len(shapes)))).source_for(*arguments(shapes, 6))
    source = inspect.getsource(f).split("\n", 1)[1]
    small, large = counted.growth(source, name, text, label_of(text), [arguments(shapes, n) for n in (12, 24)])
    assert small < 6 and large < 1.3 * small, (small, large)


def test_a_part_of_what_one_function_gives_with_others():
    """A part is read of a result that has no name: what nonzero gives for one axis."""
    def chosen(x, n):
        s = 0.0
        for k in range(n):
            s += np.sum(x[np.nonzero(x > s)]) * x[k]
        return s

    x = np.array([0.3, -0.2, 0.9])
    want = differences(lambda x: chosen(x, 2), [x])[0]
    np.testing.assert_allclose(gs.grad(chosen)(x, 2), want, rtol=1e-7)


@pytest.mark.parametrize("form", [lambda f: f, gs.jit], ids=["plain", "jit"])
def test_a_loop_without_passes_takes_no_view(form):
    """The view of a loop is taken before it only where it fits."""
    def f(x, n):
        for i in range(n):
            y = x.reshape(2, 3)
            y[0, i] += y[1, i]
        return np.sum(x * x)

    g = form(gs.grad(f))
    np.testing.assert_array_equal(g(np.arange(6.0), 2), [6.0, 10.0, 4.0, 12.0, 18.0, 10.0])
    np.testing.assert_array_equal(g(np.arange(5.0), 0), 2 * np.arange(5.0))


@pytest.mark.parametrize("form", [lambda f: f, gs.jit, gs.vmap], ids=["plain", "jit", "vmap"])
def test_a_part_that_is_empty_has_no_entry(form):
    """A place in a part is one of the array only where the part has it."""
    def f(A):
        B = A[1:]
        for i in range(3):
            B[0] += B[0] * i
        return np.sum(A * A)

    g = form(gs.grad(f))
    ones = (np.ones((2, 4, 2)), np.ones((2, 1, 2))) if form is gs.vmap else (np.ones((4, 2)), np.ones((1, 2)))
    assert g(ones[0]).reshape(-1, 4, 2)[0, 1, 0] == 2 * 6 * 6
    with pytest.raises(IndexError):
        g(ones[1])


@pytest.mark.slow
def test_the_cost_of_gradients_of_random_programs():
    growing = []
    for seed in range(300):
        case = make(seed, "regions")
        rng = np.random.default_rng(seed)
        args = [[0.6 * rng.standard_normal((n, n)), 0.6 * rng.standard_normal(n)] for n in (12, 24, 40)]
        try:                            # of 40 rows: a loop over fewer than 33 may hold for their number alone
            text = gs.grad(compiled(case)["f"], (0, 1)).source_for(*args[2])
        except gs.TransformError:
            continue
        with np.errstate(all="ignore"):
            ratios = counted.growth(case.source, "f", text, label_of(text), args[:2])
        if ratios[1] > 1.3 * ratios[0]:
            growing.append(seed)
    assert not growing
