# SPDX-License-Identifier: Apache-2.0
"""gs.sparse: patterns, colourings, and the entries of Jacobians and Hessians against dense ones."""
import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize

import gradscribe as gs

RNG = np.random.default_rng(7)
X = np.array([0.5, -1.5, 2.5, 0.25, -0.75, 1.25])
DIFFERENCES = np.diff(np.eye(6), axis=0)
WHERE = np.array([4, 0, 0, 2])


def differences(x):
    return DIFFERENCES @ x


def reversed_product(x):
    return x[::-1] * np.sin(x)


def running_sums(x):
    return np.cumsum(x)


def sorted_entries(x):
    return np.sort(x)


def pieces(x):
    return np.concatenate((x[:2], [1.0], np.zeros(2), x[3:] ** 2))


def chosen(x):
    return np.where(x > 0, x, np.roll(x, 1))


def largest_of_rows(x):
    return np.max(x.reshape(2, 3), axis=1)


def transposed(x):
    return np.stack([x, 2 * x]).T


def outer(x):
    return np.outer(x[:2], x[2:4])


def filtered(x):
    return np.convolve(x, np.array([1.0, 0.0, 2.0]))


def gathered(x):
    return x[WHERE] * x[0]


def constant(x):
    return np.floor(x) + np.ones(x.shape[0])


def einsum(x):
    return np.einsum("ij,ij->i", x.reshape(2, 3), x.reshape(2, 3))


def loop(x):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0] - 1):
        y[i] = x[i - 1] - 2.0 * x[i] ** 2 + x[i + 1]
    return y


def recurrence(x):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def written_twice(x):
    y = np.zeros(3)
    for i in range(x.shape[0]):
        y[i // 2] = x[i]
    return y


def nested(x):
    a = x.reshape(2, 3)
    y = np.zeros((2, 3))
    for i in range(2):
        for j in range(3):
            y[i, j] = a[i, j] * a[1 - i, j]
    return y


def triangle(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(i):
            y[i] += x[j]
    return y


def in_place(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = y[i] * 2.0
    return y


def branch(x):
    if x[0] > 0.0:
        return x * 2.0
    return x[::-1] * 1.0


def until_small(x):
    y = x.copy()
    while np.max(np.abs(y)) > 0.1:
        y = y * 0.5
    return y


def carried_on(x):
    y = x.copy()
    while np.max(np.abs(y)) > 0.1:
        y[1:] = y[:-1] * 0.5
        y[0] = 0.0
    return y


def in_a_list(x):
    parts = []
    for i in range(3):
        parts.append(x[i] * x[i + 1])
    return np.array(parts)


def identity(n):
    return np.eye(n, dtype=int)


# the exact patterns, as what an entry of the result depends on for some x
PATTERNS = [
    (differences, identity(6)[:5] + identity(6)[1:]),
    (reversed_product, identity(6) + identity(6)[::-1]),
    (running_sums, np.tril(np.ones((6, 6)))),
    (sorted_entries, np.ones((6, 6))),
    (pieces, identity(6)[[0, 1, 0, 0, 0, 3, 4, 5]] * np.array([1, 1, 0, 0, 0, 1, 1, 1])[:, None]),
    (chosen, identity(6) + identity(6)[[5, 0, 1, 2, 3, 4]]),
    (largest_of_rows, np.repeat(identity(2), 3, axis=1)),
    (transposed, np.repeat(identity(6), 2, axis=0)),
    (outer, np.array([[1, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0]])),
    (filtered, np.pad(identity(6), ((0, 2), (0, 0))) + np.pad(identity(6), ((2, 0), (0, 0)))),
    (gathered, identity(6)[WHERE] + identity(6)[[0]]),
    (constant, np.zeros((6, 6))),
    (einsum, np.repeat(identity(2), 3, axis=1)),
    (loop, np.pad(sum(identity(6)[k:4 + k] for k in range(3)), ((1, 1), (0, 0)))),
    (recurrence, np.tril(np.ones((6, 6))) * (np.arange(6) > 0) * (np.arange(6) > 0)[:, None]),
    (written_twice, identity(6)[[1, 3, 5]]),
    (nested, identity(6) + identity(6)[[3, 4, 5, 0, 1, 2]]),
    (triangle, np.tril(np.ones((6, 6)), -1)),
    (in_place, identity(6)),
    (branch, identity(6) + identity(6)[::-1]),
    (until_small, identity(6)),
    (in_a_list, identity(6)[:3] + identity(6)[1:4]),
]


@pytest.mark.parametrize("f, expected", PATTERNS, ids=[f.__name__ for f, _ in PATTERNS])
def test_patterns(f, expected):
    np.testing.assert_array_equal(gs.sparse.jacfwd(f).pattern(X).toarray(), np.asarray(expected) > 0)


@pytest.mark.parametrize("f", [*(f for f, _ in PATTERNS), carried_on], ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
def test_entries(f, how):
    for x in (X, -X, X[::-1].copy()):
        dense = np.asarray(gs.jacfwd(f)(x)).reshape(-1, 6)
        got = getattr(gs.sparse, how)(f, compile=False)(x)
        assert isinstance(got, sparse.csr_array)
        np.testing.assert_allclose(got.toarray(), dense, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("how", ["jacfwd", "jacrev"])
def test_compiled_is_as_eager(how):
    for f in (loop, pieces, nested):
        make = getattr(gs.sparse, how)
        np.testing.assert_allclose(make(f)(X).toarray(), make(f, compile=False)(X).toarray(), rtol=1e-15)


def brusselator(u, a, b, alpha):
    """The right-hand side on a periodic grid, as SciML's example has it, without its source term."""
    def laplacian(w):
        return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w
    x, y = u[0], u[1]
    return np.stack([b + x * x * y - (a + 1) * x + alpha * laplacian(x), a * x - x * x * y + alpha * laplacian(y)])


def test_brusselator():
    u = RNG.uniform(size=(2, 8, 8))
    dense = gs.jacfwd(brusselator)(u, 3.4, 1.0, 10.0).reshape(128, 128)
    jacobian = gs.sparse.jacfwd(brusselator, compile=False)
    np.testing.assert_allclose(jacobian(u, 3.4, 1.0, 10.0).toarray(), dense, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(jacobian.pattern(u, 3.4, 1.0, 10.0).toarray(), dense != 0)
    u = np.zeros((2, 32, 32))
    assert jacobian.coloring(u, 3.4, 1.0, 10.0).count <= 12         # as many as SciML's documentation has


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def arrow(x):
    return np.sum(x[0] * x[1:] ** 3) + x[0] ** 4


def separable_in_a_loop(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.sin(x[i]) * x[i]
    return total


def linear(x):
    return np.sum(3.0 * x)


@pytest.mark.parametrize("partition", ["star", "acyclic"])
@pytest.mark.parametrize("f", [rosenbrock, arrow, separable_in_a_loop, linear], ids=lambda f: f.__name__)
def test_hessians(f, partition):
    x = RNG.normal(size=9)
    dense = gs.hessian(f)(x)
    made = gs.sparse.hessian(f, partition=partition, compile=False)
    np.testing.assert_allclose(made(x).toarray(), dense, rtol=1e-13, atol=1e-12)
    np.testing.assert_array_equal(made.pattern(x).toarray(), dense != 0)


def test_colours_of_hessians():
    x = np.zeros(50)
    assert gs.sparse.hessian(rosenbrock).coloring(x).count == 3
    assert gs.sparse.hessian(rosenbrock, partition="acyclic").coloring(x).count == 2
    assert gs.sparse.hessian(arrow).coloring(x).count == 2


@pytest.mark.parametrize("seed", range(8))
def test_colourings_of_random_patterns(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 40, 2)
    pattern = sparse.random_array((m, n), density=0.12, rng=rng, dtype=float)
    dense = pattern.toarray() != 0
    column = gs.sparse.coloring(pattern)
    for c in range(column.count):
        assert dense[:, column.colors == c].sum(axis=1).max(initial=0) <= 1
    row = gs.sparse.coloring(pattern, "row")
    assert row.count == gs.sparse.coloring(pattern.T).count
    for c in range(row.count):
        assert dense[row.colors == c].sum(axis=0).max(initial=0) <= 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("partition", ["star", "acyclic"])
def test_symmetric_matrices_come_back_from_their_products(seed, partition):
    """Of a quadratic function, whose Hessian has small whole numbers: every recovery is exact."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    half = np.triu(rng.integers(-4, 5, (n, n)) * (rng.uniform(size=(n, n)) < rng.uniform(0.05, 0.4)))
    matrix = (half + half.T).astype(float)

    def quadratic(x):
        return 0.5 * x @ (matrix @ x)
    made = gs.sparse.hessian(quadratic, partition=partition, sparsity=matrix, compile=False)
    np.testing.assert_array_equal(made(np.zeros(n)).toarray(), matrix)
    colors = made.coloring(np.zeros(n)).colors
    i, j = np.nonzero(matrix)
    assert np.all((colors[i] != colors[j]) | (i == j))


ORDERS = "natural", "random", "largest_first", "smallest_last", "incidence_degree", "dynamic_largest_first"


@pytest.mark.parametrize("order", ORDERS)
def test_orders(order):
    """Of a path of three columns and one that is alone: columns 0 and 2 have no row in common."""
    from gradscribe.sparse.colouring import as_rows
    from gradscribe.sparse.orders import ORDERS as FUNCTIONS
    from gradscribe.sparse.orders import columns_with_a_common_row, degrees
    path = as_rows(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]))
    graph = columns_with_a_common_row(path)
    assert degrees(*graph).tolist() == [1, 2, 1, 0]
    expected = {"natural": [0, 1, 2, 3], "largest_first": [1, 0, 2, 3], "smallest_last": [2, 1, 0, 3],
                "incidence_degree": [0, 1, 2, 3], "dynamic_largest_first": [1, 2, 0, 3]}
    got = FUNCTIONS[order](graph)
    assert sorted(got) == [0, 1, 2, 3] and list(got) == expected.get(order, list(got))
    assert gs.sparse.coloring(path, order=order).count == 2
    assert gs.sparse.coloring(path, order=got).colors.tolist() == gs.sparse.coloring(path, order=order).colors.tolist()


def greedy_keys(adjacent, order, key):
    """What each vertex had as its key, and the keys of those that were left: by the definition of an order."""
    for k, v in enumerate(order):
        left = order[k:]
        yield key(adjacent[v], order[:k], left), [key(adjacent[w], order[:k], left) for w in left]


@pytest.mark.parametrize("seed", range(6))
def test_orders_are_as_they_are_defined(seed):
    from gradscribe.sparse import orders
    from gradscribe.sparse.colouring import as_rows
    rng = np.random.default_rng(seed)
    rows = as_rows(rng.uniform(size=rng.integers(1, 25, 2)) < 0.15)
    graph, dense = orders.columns_with_a_common_row(rows), rows.toarray().astype(int)
    adjacent = (dense.T @ dense > 0) & ~np.eye(dense.shape[1], dtype=bool)
    assert orders.degrees(*graph).tolist() == adjacent.sum(axis=1).tolist()
    for own, every in greedy_keys(adjacent, orders.dynamic_largest_first(graph), lambda row, _, left: row[left].sum()):
        assert own == max(every)
    for own, every in greedy_keys(adjacent, orders.incidence_degree(graph), lambda row, done, _: row[done].sum()):
        assert own == max(every)
    for own, every in greedy_keys(adjacent, orders.smallest_last(graph)[::-1], lambda row, _, left: row[left].sum()):
        assert own == min(every)


def shaped(seed):
    """Random patterns of several kinds: with many entries, few, none, and with dense rows and columns."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(0, 25, 2)
    dense = rng.uniform(size=(m, n)) < rng.choice([0.03, 0.1, 0.3])
    if seed % 2:
        dense |= (rng.uniform(size=m) < 0.15)[:, None] | (rng.uniform(size=n) < 0.15)
    return dense * rng.integers(1, 9, (m, n))


@pytest.mark.parametrize("seed", range(24))
def test_matrices_come_back_from_products_with_columns_and_rows(seed):
    """Each entry is read from the one product that has it alone: of whole numbers, exactly."""
    matrix = shaped(seed)
    m, n = matrix.shape
    best = min(gs.sparse.coloring(matrix, p).count for p in ("column", "row"))
    for order in (*ORDERS, np.random.default_rng(seed).permutation(m + n)):
        found = gs.sparse.coloring(matrix, "both", order)
        columns, rows = found.colors, found.row_colors
        assert columns.shape == (n,) and rows.shape == (m,)
        assert not set(columns[columns >= 0]) & set(rows[rows >= 0])
        assert set(range(found.count)) == {*columns[columns >= 0], *rows[rows >= 0]}
        forward = matrix @ (columns[:, None] == np.arange(found.count))
        backward = matrix.T @ (rows[:, None] == np.arange(found.count))
        for i, j in zip(*np.nonzero(matrix)):
            by_column = columns[j] >= 0 and np.sum((columns == columns[j]) & (matrix[i] != 0)) == 1
            by_row = rows[i] >= 0 and np.sum((rows == rows[i]) & (matrix[:, j] != 0)) == 1
            assert by_column or by_row
            assert not by_column or forward[i, columns[j]] == matrix[i, j]
            assert not by_row or backward[j, rows[i]] == matrix[i, j]
    assert gs.sparse.coloring(matrix, "both").count <= best


@pytest.mark.parametrize("seed", range(10))
def test_jacobian_of_a_random_matrix(seed):
    matrix = shaped(seed).astype(float)

    def f(x):
        return matrix @ x
    for given in (None, matrix):
        got = gs.sparse.jacobian(f, sparsity=given, compile=False)(np.zeros(matrix.shape[1]))
        np.testing.assert_array_equal(got.toarray(), matrix)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("order", ORDERS)
def test_star_colourings(seed, order):
    """Neighbours differ, and every path of four vertices has three colours, where a vertex has one."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    half = np.triu(rng.uniform(size=(n, n)) < rng.uniform(0.05, 0.5))
    dense = half | half.T | (np.eye(n) > 0)
    c = gs.sparse.coloring(dense, "star", order).colors
    assert np.all(c >= 0)
    near = [[w for w in np.flatnonzero(dense[v]) if w != v] for v in range(n)]
    for v in range(n):
        for w in near[v]:
            assert c[v] != c[w]
            assert all(len({c[v], c[w], c[x], c[y]}) >= 3 for x in near[w] if x != v
                       for y in near[x] if y not in (v, w))


def arrowhead(x):
    y = x[0] * x ** 2
    y[0] = np.sum(x ** 3)
    return y


def bordered(x):
    y = np.zeros(x.shape[0])
    y[2:] = x[0] * x[2:] + np.sin(x[1]) * x[2:] ** 2
    y[0], y[1] = np.sum(x ** 2), np.prod(x)
    return y


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f, most", [(arrowhead, 3), (bordered, 5), (loop, 3), (outer, 4)],
                         ids=lambda f: getattr(f, "__name__", str(f)))
def test_columns_and_rows_at_once(f, most, compiled):
    x = X if f is outer else RNG.uniform(0.5, 1.5, size=30)
    made = gs.sparse.jacobian(f, compile=compiled)
    dense = gs.jacfwd(f)(x)
    np.testing.assert_allclose(made(x).toarray(), dense.reshape(-1, x.size), rtol=1e-13, atol=1e-15)
    assert made.coloring(x).count <= most


def test_an_order_of_a_jacobian():
    x = np.zeros(30)
    for order in ("natural", ("natural", "random"), np.arange(30)[::-1]):
        np.testing.assert_array_equal(gs.sparse.jacfwd(loop, order=order, compile=False)(x).toarray(),
                                      gs.jacfwd(loop)(x))
    with pytest.raises(gs.KindError, match="30 are coloured"):
        gs.sparse.jacfwd(loop, order=np.arange(3))(x)


def test_shapes_and_dtypes():
    def f(a, x):
        return a * x[:, None] ** 2
    a, x = RNG.normal(size=(1, 3)), RNG.normal(size=4)
    for k, size in ((0, 3), (1, 4)):
        got = gs.sparse.jacfwd(f, k)(a, x)
        assert got.shape == (12, size)
        np.testing.assert_allclose(got.toarray(), gs.jacfwd(f, k)(a, x).reshape(12, size), rtol=1e-15)
    single = gs.sparse.jacfwd(pieces)(X.astype(np.float32))
    assert single.dtype == gs.jacfwd(pieces)(X.astype(np.float32)).dtype
    np.testing.assert_allclose(single.toarray(), gs.jacfwd(pieces)(X), rtol=1e-6)
    np.testing.assert_allclose(gs.sparse.jacfwd(loop)(X.astype(np.float32)).toarray(), gs.jacfwd(loop)(X), rtol=1e-6)
    assert gs.sparse.jacfwd(lambda x: x * 2.0)(np.zeros(0)).shape == (0, 0)
    assert gs.sparse.jacrev(lambda x: x * 2.0)(np.ones(1)).toarray() == [[2.0]]
    assert gs.sparse.jacfwd(lambda x: x ** 2)(3.0).toarray() == [[6.0]]
    of_whole = gs.sparse.jacfwd(lambda x: x ** 2)(np.array([1, 2]))
    np.testing.assert_array_equal(of_whole.toarray(), [[2.0, 0.0], [0.0, 4.0]])


def test_whole_numbers_and_outside_arrays_are_constants_that_may_change():
    def taken(x, where):
        return x[where] ** 2
    made = gs.sparse.jacfwd(taken, compile=False)
    for where in (np.array([0, 1]), np.array([5, 5]), np.array([0, 1])):
        np.testing.assert_array_equal(made(X, where).toarray(), gs.jacfwd(taken)(X, where))
    weights = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def weighted(x):
        return weights * x
    made = gs.sparse.jacfwd(weighted, compile=False)
    np.testing.assert_array_equal(made(X).toarray(), np.diag(weights))
    assert made.pattern(X).nnz == 1
    weights[3] = 2.0
    np.testing.assert_array_equal(made(X).toarray(), np.diag(weights))


def test_an_argument_that_is_zero_now_is_no_constant():
    def f(x, w):
        return x * w
    made = gs.sparse.jacfwd(f, compile=False)
    np.testing.assert_array_equal(made(X, np.zeros(6)).toarray(), np.zeros((6, 6)))
    np.testing.assert_array_equal(made(X, np.arange(6.0)).toarray(), np.diag(np.arange(6.0)))


def test_a_pattern_that_is_given():
    band = np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1)
    got = gs.sparse.jacfwd(loop, sparsity=sparse.csc_array(band), compile=False)(X)
    np.testing.assert_array_equal(got.toarray(), gs.jacfwd(loop)(X))
    with pytest.raises(gs.KindError, match="lacks entries"):
        gs.sparse.jacfwd(loop, sparsity=np.eye(6), compile=False)(X)
    with pytest.raises(gs.KindError, match="lacks entries"):
        gs.sparse.jacrev(loop, sparsity=np.eye(6), compile=False)(X)
    with pytest.raises(gs.ShapeError, match="7 columns"):
        gs.sparse.jacfwd(loop, sparsity=np.eye(7))(X)
    with pytest.raises(gs.ShapeError, match="4 rows"):
        gs.sparse.jacfwd(loop, sparsity=np.ones((4, 6)), compile=False)(X)
    with pytest.raises(gs.KindError, match="not symmetric"):
        gs.sparse.hessian(rosenbrock, sparsity=np.triu(np.ones((6, 6))))(X)


def test_wrong_arguments():
    with pytest.raises(gs.KindError, match="number of one argument"):
        gs.sparse.jacfwd(loop, argnums=(0, 1))
    with pytest.raises(gs.KindError, match="out of range"):
        gs.sparse.jacfwd(loop, argnums=1)(X)
    with pytest.raises(gs.KindError, match="real numbers"):
        gs.sparse.jacfwd(loop)(X + 1j)
    with pytest.raises(gs.KindError, match="returns one array"):
        gs.sparse.jacfwd(lambda x: (x, x))(X)
    with pytest.raises(gs.KindError, match="partition"):
        gs.sparse.hessian(rosenbrock, partition="stars")
    with pytest.raises(gs.KindError, match="partition"):
        gs.sparse.coloring(np.eye(2), "all")
    with pytest.raises(gs.KindError, match="is differentiated"):
        gs.sparse.jacrev(3.0)


def masked(x):
    return np.cumsum(x[x > 0])


def one_by_one(x):
    y = np.zeros(x.shape[0])
    for i in np.nonzero(x)[0]:
        y[i] = x[i] ** 2
    return y


def grown(x):
    parts = [x[0]]
    k = 0
    while x[k] > 0:
        parts.append(x[k])
        k += 1
    return np.array(parts)


@pytest.mark.parametrize("f", [masked, one_by_one, grown], ids=lambda f: f.__name__)
def test_lengths_that_depend_on_numbers_are_refused(f):
    with pytest.raises(gs.TransformError, match="sparsity="):
        gs.sparse.jacfwd(f)(X)


def test_scipy_takes_them():
    t, target = np.linspace(0.0, 1.0, 20), np.linspace(0.0, 1.0, 20) ** 2

    def residual(p):
        return np.interp(t, np.linspace(0.0, 1.0, 20), p) - target
    found = least_squares(residual, np.zeros(20), jac=gs.sparse.jacfwd(residual, compile=False), method="trf",
                          tr_solver="lsmr")
    np.testing.assert_allclose(found.x, target, atol=1e-8)

    def rhs(time, u):
        out = np.zeros(u.shape[0])
        out[1:-1] = 400.0 * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        return out
    start = np.sin(np.pi * np.linspace(0.0, 1.0, 21))
    jacobian = gs.sparse.jacfwd(rhs, argnums=1, compile=False)
    solved = solve_ivp(rhs, (0.0, 0.05), start, method="BDF", jac=jacobian, rtol=1e-8, atol=1e-10)
    rate = 1600.0 * np.sin(np.pi / 40) ** 2
    np.testing.assert_allclose(solved.y[:, -1], start * np.exp(-rate * 0.05), atol=1e-7)

    best = minimize(rosenbrock, np.zeros(12), jac=gs.grad(rosenbrock), method="trust-constr",
                    hess=gs.sparse.hessian(rosenbrock, compile=False), options={"gtol": 1e-9})
    np.testing.assert_allclose(best.x, np.ones(12), atol=1e-6)


def writes_into_its_argument(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    x[1:] = x[:-1] * x[1:]
    return x


@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_stay_as_they_are(how, compiled):
    x = X.copy()
    got = getattr(gs.sparse, how)(writes_into_its_argument, compile=compiled)(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(got.toarray(), gs.jacfwd(writes_into_its_argument)(X.copy()), rtol=1e-13)


@gs.custom_jvp
def rounded(x):
    return np.round(x)


@rounded.defjvp
def rounded_jvp(primals, tangents):
    return np.round(primals[0]), tangents[0] * (primals[0] > 0)


@gs.custom_vjp
def signs(x):
    return np.sign(x)


signs.defvjp(lambda x: (np.sign(x), x), lambda x, dy: (dy * x,))


def test_custom_derivatives_that_differ_from_their_functions():
    """The first point shows no derivative, so that the comparison there would not notice a pattern without entries."""
    def straight_through(x):
        return rounded(x) * 2.0
    made = gs.sparse.jacfwd(straight_through, compile=False)
    assert made(np.full(6, -1.0)).count_nonzero() == 0
    np.testing.assert_array_equal(made(np.abs(X)).toarray(), 2.0 * np.eye(6))

    def reverse_only(x):
        return signs(x) * 3.0
    np.testing.assert_array_equal(gs.sparse.jacrev(reverse_only, compile=False)(X).toarray(), np.diag(3.0 * X))


def passes_by_branch(x):
    n = 2
    if x[0] > 0:
        n = 4
    y = np.zeros(6)
    for i in range(n):
        y[0] = y[0] + x[i] ** 2
    for i in range(n, n + 2):
        y[i - n] += x[i] * x[5]
    return y


def at_a_whole_number(x):
    return x[int(3 * x[0]) % 6] * x[1:3]


def by_order(x):
    i = np.argsort(x)
    return x[i][:3] * x[3:] + x[np.argmax(x)]


def chosen_numbers(x):
    return np.array([x[1] if x[0] > 0 else x[2], max(x[3], x[4]), abs(x[5])])


def counted(x):
    y, k = x.copy(), 0
    while y[0] < 3.0 and k < 5:
        y = np.roll(y, 1) * 1.5 + 1.0
        k += 1
    return y * k


@pytest.mark.parametrize("f", [branch, passes_by_branch, at_a_whole_number, by_order, chosen_numbers, counted],
                         ids=lambda f: f.__name__)
def test_one_pattern_holds_for_all_numbers(f):
    made, rng = gs.sparse.jacfwd(f, compile=False), np.random.default_rng(11)
    pattern = made.pattern(X)
    for _ in range(12):
        x = 1.5 * rng.normal(size=6)
        np.testing.assert_allclose(made(x).toarray(), gs.jacfwd(f)(x), rtol=1e-11, atol=1e-13)
        assert (made.pattern(x) != pattern).nnz == 0


def test_argnums_from_the_end():
    def f(a, x):
        return a * x ** 2
    for how in ("jacfwd", "jacrev", "jacobian"):
        for k in (-1, np.int64(1)):
            got = getattr(gs.sparse, how)(f, k, compile=False)(2.0, X)
            np.testing.assert_allclose(got.toarray(), np.diag(4.0 * X), rtol=1e-15)


def test_a_point_that_is_not_a_number_confirms_nothing():
    """The first call compares a product with the matrix: what is NaN there is compared in a later call."""
    def f(x):
        return x * x[::-1]
    made = gs.sparse.jacfwd(f, sparsity=np.eye(6), compile=False)
    assert np.isnan(made(np.full(6, np.nan)).data).all()
    with pytest.raises(gs.KindError, match="lacks entries"):
        made(X)
    one = np.where(np.arange(6) == 2, np.nan, X)
    with pytest.raises(gs.KindError, match="lacks entries"):
        gs.sparse.jacfwd(f, sparsity=np.eye(6), compile=False)(one)


@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
def test_results_that_are_whole_numbers_have_no_derivative(how):
    def signs_of(x):
        return np.sign(x).astype(int)
    for f in (signs_of, lambda x: x > 0):
        got = getattr(gs.sparse, how)(f, compile=False)(X)
        assert got.shape == (6, 6) and got.nnz == 0


@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
def test_complex_results_are_refused(how):
    """Products by reverse mode would have their real parts only."""
    for given in (None, np.eye(6)):
        with pytest.raises(gs.KindError, match="real result"):
            getattr(gs.sparse, how)(lambda x: x * (1 + 2j), sparsity=given, compile=False)(X)


@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
def test_axes_without_entries(how):
    make = getattr(gs.sparse, how)
    assert make(lambda x: x[:0], compile=False)(X).shape == (0, 6)
    assert make(lambda x: x * 2.0, compile=False)(np.zeros((3, 0))).shape == (0, 0)
    assert make(lambda x: np.ones(4), compile=False)(np.zeros(0)).shape == (4, 0)
    np.testing.assert_array_equal(make(lambda x: np.sum(x ** 2), compile=False)(X).toarray(), 2.0 * X[None])


def test_of_a_batched_function():
    rows = gs.vmap(lambda row, s: row * np.sum(row) * s, in_axes=(0, None))
    x = X.reshape(2, 3)
    got = gs.sparse.jacobian(rows, compile=False)(x, np.ones(3))
    np.testing.assert_allclose(got.toarray(), gs.jacfwd(rows)(x, np.ones(3)).reshape(6, 6), rtol=1e-14)
    assert got.nnz == 18


def test_a_hessian_without_a_diagonal():
    made = gs.sparse.hessian(lambda x: x[0] * np.sum(x[1:]), compile=False)
    np.testing.assert_array_equal(made(X).toarray(), np.eye(1, 6).T @ (np.ones((1, 6)) - np.eye(1, 6))
                                  + (np.ones((6, 1)) - np.eye(6, 1)) @ np.eye(1, 6))
    assert made.coloring(X).count == 1


@pytest.mark.parametrize("how", ["jacfwd", "jacrev", "jacobian"])
def test_results_of_another_precision(how):
    def rounded_result(x):
        return arrowhead(x).astype(np.float32)

    def rounded_within(x):
        return np.sin(x.astype(np.float32)).astype(np.float64) * x[0]
    x = np.abs(X)
    for f in (rounded_result, rounded_within):
        got = getattr(gs.sparse, how)(f, compile=False)(x)
        np.testing.assert_allclose(got.toarray(), gs.jacfwd(f)(x), rtol=1e-6, atol=1e-6)
