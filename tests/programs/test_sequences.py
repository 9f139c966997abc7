"""Lists and tuples of numbers where NumPy takes arrays, nested to any depth: all modes, against differences."""
import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])
ONES = np.ones(2)
GRID = np.array([[0.5, -1.0], [2.0, 0.25]])
PLACES = np.array([0.1, 0.6, 1.4])


# --- joining ----------------------------------------------------------------------------------------------------------

def number_in_concatenate(x):
    return np.sum(np.concatenate([ONES, [x[0]]]) ** 2)


def zero_before(x):
    return np.sum(np.cumsum(np.concatenate(([0.0], x))) ** 2)


def tuple_of_numbers_in_concatenate(x):
    return np.sum(np.concatenate((x, (x[0], x[1] * x[2]))) ** 2)


def rows_in_concatenate(x):
    return np.sum(np.concatenate([GRID, [x[:2], [x[0], 1]]]) ** 2)


def columns_in_concatenate(x):
    return np.sum(np.concatenate([[[x[0]], [x[1]]], GRID * x[2]], axis=1) ** 3)


def whole_numbers_in_concatenate(x):
    return np.sum(np.concatenate([[1, 2], x]) ** 2)


def nothing_in_concatenate(x):
    return np.sum(np.concatenate([[], x, ()]) ** 2)


def concatenate_of_all_axes(x):
    return np.sum(np.concatenate([[[x[0], 2.0], [x[1], x[0]]], x], axis=None) ** 2)


def rotation(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.sum(np.vstack([[c, -s], [s, c]]) @ x[1:3] * ONES)


def row_under_a_matrix(x):
    return np.sum(np.vstack([GRID * x[0], [x[1], x[2]]]) ** 2)


def hstack_of_a_list(x):
    return np.sum(np.hstack([x, [x[0] * 2.0], 3]) ** 2)


def hstack_of_columns(x):
    return np.sum(np.hstack([GRID, [[x[0]], [x[1]]]]) ** 2 * np.array([[1.0, 2.0, 3.0]]))


def dstack_of_lists(x):
    return np.sum(np.dstack([[x[0], x[1]], [x[2], 1.0]]) ** 2)


def column_stack_of_lists(x):
    return np.sum(np.column_stack(([x[0], 1.0], x[1:3], GRID)) ** 2)


def list_in_stack(x):
    return np.sum(np.stack([x[:2], [x[1], x[0]]]) ** 2 * np.array([[1.0, 2.0], [3.0, 4.0]]))


def tuples_in_stack(x):
    return np.sum(np.stack(((x[0], x[1]), (1.0, x[2] ** 2)), axis=-1) * GRID)


def cube_of_numbers(x):
    cube = np.array([[[x[0], 1], [x[1], x[2]]], [[2, x[0]], [x[3], x[3] * x[0]]]])
    return np.sum(cube ** 2 * np.arange(8.0).reshape(2, 2, 2))


def stack_of_nested_lists(x):
    return np.sum(np.stack([[[x[0], 1.0], [x[1], x[2]]], GRID]) ** 2)


def append_of_a_list(x):
    return np.sum(np.append(x, [x[0], 2.0]) ** 2)


def append_of_rows(x):
    return np.sum(np.append(np.ones((2, 4)), [x, x], axis=0) ** 2)


def append_to_a_list(x):
    return np.sum(np.append([x[0], x[1]], x[2]) ** 2)


def block_of_lists(x):
    return np.sum(np.block([[GRID * x[0], GRID], [np.eye(2), x[1] * GRID]]) ** 2)


def block_of_numbers(x):
    return np.linalg.det(np.block([[x[0], 1.0], [x[1], x[2]]]))


def insert_of_a_list(x):
    return np.sum(np.insert(x, 1, [x[0] * x[1], 3.0]) ** 2)


def tile_of_a_list(x):
    return np.sum(np.tile([[x[0], 1.0]], (2, 1)) ** 2 * GRID)


def split_of_a_list(x):
    return sum(np.sum(part) ** 2 for part in np.split(np.concatenate([[x[0], 1.0], x[1:3]]), 2))


def pad_of_a_list(x):
    return np.sum(np.pad([x[0], x[1]], 1, constant_values=2.0) ** 2)


# --- choosing ---------------------------------------------------------------------------------------------------------

def choose_by_a_list(x):
    return np.sum(np.choose([0, 1, 0, 1], [x, x ** 2]))


def choose_of_lists(x):
    return np.sum(np.choose([1, 0], [[x[0], 2.0], (x[1], x[2])]) ** 2)


def select_of_lists(x):
    return np.sum(np.select([[True, False, False, False], x > 0.5], [[x[1], 1.0, 2.0, 3.0], x ** 2], x[0]))


def where_of_a_list(x):
    return np.sum(np.where(x[:2] > 0, [x[1] ** 2, 1.0], x[2:]))


def where_by_a_list(x):
    return np.sum(np.where([True, False, False, True], x ** 2, x[0]))


def where_by_comparisons(x):
    return np.sum(np.where([x[0] > 0, x[1] > 0], x[:2] ** 2, x[2:]))


def maximum_of_a_list(x):
    return np.sum(np.maximum(x[:2], [x[2], 0.0]) ** 2)


def clip_to_lists(x):
    return np.sum(np.clip(x[:2], [x[3] - 1.0, -0.2], [1.0, x[2]]) ** 2)


def take_by_a_list(x):
    return np.sum(np.take([x[0] ** 2, x[1], x[2]], [2, 0, 0]))


def index_by_a_list(x):
    return np.sum(x[[0, 2]] * [x[1], 2.0])


def piecewise_of_a_list(x):
    y = np.array([x[0], x[1] ** 2, 2.0])
    return np.sum(np.piecewise(y, [y < 0.5, y >= 0.5], [lambda v: v ** 2, lambda v: 3 * v]))


def compress_of_a_list(x):
    return np.sum(np.compress([True, False, True], [x[0] ** 2, x[1], x[2]]))


# --- products ---------------------------------------------------------------------------------------------------------

def einsum_of_lists(x):
    return np.einsum("i,i->", [1.0, x[1]], [x[0], 3.0])


def einsum_of_rows(x):
    return np.sum(np.einsum("ij,jk->ik", [[x[0], 1.0], [x[1], x[2]]], GRID) ** 2)


def multi_dot_of_rows(x):
    return np.sum(np.linalg.multi_dot([[[x[0], 1.0], [x[1], x[2]]], GRID, [x[3], 1.0]]))


def dot_of_a_list(x):
    return np.dot([x[0], x[1] ** 2, 1.0, 2.0], x)


def matmul_of_rows(x):
    return np.sum([[x[0], 1.0], [x[1], x[2]]] @ GRID @ [x[3], 2])


def cross_of_a_list(x):
    return np.sum(np.cross([x[0], x[1], 1.0], x[1:]) * np.array([1.0, 2.0, 3.0]))


def outer_of_lists(x):
    return np.sum(np.outer([x[0], 2.0], [x[1], x[2], 1.0]) ** 2)


def kron_of_lists(x):
    return np.sum(np.kron([[x[0], 1.0]], [[x[1]], [x[2]]]) ** 2)


def convolve_of_lists(x):
    return np.sum(np.convolve([x[0], 1.0, x[1]], [x[2], x[3]]) ** 2)


def tensordot_of_lists(x):
    return np.tensordot([[x[0], 1.0], [x[1], x[2]]], GRID, axes=2)


def inner_of_lists(x):
    return np.sum(np.inner([[x[0], 1.0], [x[1], x[2]]], [x[3], 2.0]) ** 2)


def vdot_of_lists(x):
    return np.vdot([1, 2], [x[0], x[1] ** 2])


# --- entry by entry ---------------------------------------------------------------------------------------------------

def times_a_list(x):
    return np.sum(x[:2] * [1.0, x[3]] - (x[2], 2) / (1 + x[:2] ** 2))


def power_of_a_list(x):
    return np.sum(np.power([x[2], x[3]], [2, x[2]]))


def arctan2_of_lists(x):
    return np.sum(np.arctan2([x[0], 1.0], [x[1], x[2]]))


def sine_of_rows(x):
    return np.sum(np.sin([[x[0], 1.0], [x[1], x[2]]]) * GRID)


def full_of_a_list(x):
    return np.sum(np.full((2, 2), [x[0], x[1] ** 2]) * GRID)


def broadcast_of_a_list(x):
    return np.sum(np.broadcast_to([x[0], x[1]], (2, 2)) * GRID)


def meshgrid_of_lists(x):
    a, b = np.meshgrid([1.0, x[0]], [x[1], 3.0, x[2]])
    return np.sum(a * b ** 2)


def compared_with_a_list(x):
    return np.sum(x[:2] ** 2 * np.greater(x[:2], [0.0, x[2]])) + np.sum(x[(x > [0.0, 0, x[3], 1])] ** 2)


# --- reductions -------------------------------------------------------------------------------------------------------

def sum_of_rows(x):
    return np.sum([[x[0], x[1]], [x[2], 1.0]], axis=0) @ ONES


def mean_of_nested_lists(x):
    return np.mean([[x[0] ** 2, x[1]], (x[2], 1.0)])


def norm_of_a_list(x):
    return np.linalg.norm([x[0], x[1], 2.0])


def average_by_a_list(x):
    return np.average([x[0], x[1] ** 2], weights=[x[2], 2.0])


def average_by_whole_numbers(x):
    return np.average(x, weights=[1, 2, 3, 4]) + np.average([[1.0, 2.0], x[:2]], axis=0, weights=(1, 3))[1]


def variance_of_rows(x):
    return np.sum(np.var([[x[0], 1.0], [x[1], x[2]]], axis=1))


def interp_of_lists(x):
    return np.sum(np.interp(PLACES, [0.0, 0.5, 2.0], [x[0], x[1] ** 2, x[2]]))


def polyval_of_a_list(x):
    return np.sum(np.polyval([x[0], x[1], 1], x))


def gradient_of_a_list(x):
    return np.sum(np.gradient([x[0], x[1] ** 2, x[2]], [0, 1, 3]) ** 2)


def trapezoid_of_a_list(x):
    return np.trapezoid([x[0], x[1] ** 2, x[2]], [0.0, 1.0, x[3] + 2])


def determinant_of_rows(x):
    return np.linalg.det([[x[0], 1.0], [x[1], x[2]]]) * np.trace([[x[3], 0], [0, x[3]]])


def solve_of_rows(x):
    return np.sum(np.linalg.solve([[x[3], 1.0], [-1.0, 2.0]], [x[0], x[1]]) ** 2)


# --- containers -------------------------------------------------------------------------------------------------------

def named_lists(x):
    held = {"a": [x[0], 1.0], "b": [x[1], x[2]]}
    return np.sum(np.array(list(held.values())) @ held["b"])


def rows_that_are_lists(x):
    rows = []
    for i in range(3):
        rows.append([x[i] ** 2, 1.0])
    return np.sum(np.stack(rows) * np.arange(6.0).reshape(3, 2)) + np.sum(np.vstack(rows)[1])


def rows_of_every_entry(x):
    rows = []
    for v in x:
        rows.append([v ** 2, 1.0, v])
    return np.sum(np.array(rows) * x[:, None])


def stacked_rows_of_every_entry(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append((x[i] ** 2, x[i]))
    return np.sum(np.vstack(rows) * x[:, None])


def comprehension_in_concatenate(x):
    return np.sum(np.concatenate([[1.0], [v ** 2 for v in x], [x[0]]]) * np.arange(6.0))


def written_from_a_list(x):
    a = np.zeros((2, 2))
    a[0] = [x[0], 1.0]
    a[:, 1] += [x[1], x[2] ** 2]
    return np.sum(a ** 2)


def matrix_written_from_rows(x):
    a = np.zeros((3, 2, 2))
    a[1:] = [[x[0], 1.0], [x[1], x[2]]]
    return np.sum(a ** 2 * np.arange(3.0)[:, None, None])


def filled_from_a_list(x):
    y = np.array([x[0], 2.0])
    y += [x[1], x[2]]
    y *= (x[3], 2)
    return np.sum(y ** 2)


def first_row_in_a_list(x):
    rows = [[x[0], 1.0]]
    for v in x:
        rows.append([v, v * v])
    return np.sum(np.array(rows) ** 2) + rows[1][1] * np.sum(np.concatenate(rows))


def comprehension_of_rows(x):
    return np.sum(np.vstack([[v, v * v, 1.0] for v in x]) ** 2 * x[:, None])


def grown_list_in_concatenate(x):
    squares = []
    for v in x:
        squares.append(v * v)
    return np.sum(np.concatenate([[x[0]], squares, list(x)]) * np.arange(9.0))


def range_in_vstack(x):
    return np.sum(np.vstack([x, [x[i] for i in (3, 2, 1, 0)], range(4)]) ** 2)


def filled_diagonal(x):
    y = np.eye(2) * x[3]
    np.fill_diagonal(y, [x[0], x[1]])
    return np.sum(y ** 2)


def state_that_is_a_list(x):
    state = [1.0, x[0]]
    for v in x:
        state = [state[0] + state[1] * v, state[1] - state[0] * v]
    return np.dot(state, [1.0, x[1]])


# --- brackets ---------------------------------------------------------------------------------------------------------

def joined_in_brackets(x):
    return np.sum(np.r_[0.0, x, [x[1], 2], 1, 0:3] ** 2)


def columns_in_brackets(x):
    return np.sum(np.c_[x, x * 2, [1, 2, 3, x[0]], np.ones((4, 2))] ** 2 * np.arange(5.0))


PROGRAMS = [f for f in list(vars().values()) if callable(f) and getattr(f, "__module__", "") == __name__]


def slope(f, x, eps=1e-6):
    out = np.empty_like(x)
    for i in range(x.size):
        e = np.zeros_like(x)
        e[i] = eps
        out[i] = (f(x + e) - f(x - e)) / (2 * eps)
    return out


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_plain(f):
    want, close = slope(f, X), {"rtol": 1e-6, "atol": 1e-7}
    value, gradient = gs.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, want, **close)
    dot = np.array([1.0, -2.0, 0.5, 0.3])
    np.testing.assert_allclose(gs.jvp(f, (X,), (dot,)), (f(X), want @ dot), **close)
    rows = np.stack([X, 0.9 * X])
    np.testing.assert_allclose(gs.vmap(f)(rows), [f(X), f(0.9 * X)], rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(gs.grad(f))(rows)[1], slope(f, 0.9 * X), **close)


@pytest.mark.parametrize("f", PROGRAMS[::3], ids=lambda f: f.__name__)     # compiled code is made of arrays only
def test_compiled(f):
    value, gradient = gs.jit(gs.value_and_grad(f))(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope(f, X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", [rotation, rows_that_are_lists, cube_of_numbers, list_in_stack, choose_by_a_list,
                               einsum_of_lists, rows_of_every_entry, block_of_lists, times_a_list, interp_of_lists],
                         ids=lambda f: f.__name__)
def test_second_derivatives(f):
    g = gs.grad(f)
    want = np.stack([(g(X + e) - g(X - e)) / 2e-5 for e in 1e-5 * np.eye(4)])
    np.testing.assert_allclose(gs.hessian(f)(X), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gs.jacfwd(g)(X), want, rtol=1e-5, atol=1e-6)


def of_containers(p):
    return np.sum(np.concatenate([p["a"], [p["b"]], p["c"][0]]) ** 2) + np.sum(np.vstack(p["c"]) * GRID)


def test_lists_that_are_arguments():
    given = {"a": X, "b": 2.0, "c": ([1.0, 3.0], [0.5, 0.25])}
    for g in (gs.grad(of_containers), gs.jit(gs.grad(of_containers))):
        got = g(given)
        np.testing.assert_allclose(got["a"], 2 * X, rtol=1e-14)
        np.testing.assert_allclose(got["b"], 4.0, rtol=1e-14)
        np.testing.assert_allclose(got["c"], GRID + [[2.0, 6.0], [0.0, 0.0]], rtol=1e-14)
    axes = {"a": None, "b": 0, "c": ([None, 0], [None, None])}
    batch = {"a": X, "b": np.array([1.0, 2.0]), "c": ([1.0, np.array([3.0, 4.0])], [0.5, 0.25])}
    want = [of_containers({**given, "b": b, "c": ([1.0, c], [0.5, 0.25])}) for b, c in ((1.0, 3.0), (2.0, 4.0))]
    np.testing.assert_allclose(gs.vmap(of_containers, in_axes=(axes,))(batch), want, rtol=1e-14)


@pytest.mark.parametrize("f", [
    lambda x: np.concatenate([x, [x[0], 1.0]]), lambda x: np.stack([x[:2], [x[0], x[1]]]),
    lambda x: np.array([[x[0], 1], [x[1], x[2]]]), lambda x: np.append(x, [1, 2]), lambda x: x * [1.0, 2, 3, x[0]],
    lambda x: np.r_[0.0, x, 1], lambda x: np.r_[x, [0.0]], lambda x: np.c_[x, x]])
def test_dtypes_are_those_of_numpy(f):
    x = X.astype(np.float32)
    want, whole = f(x), lambda x: np.sum(f(x))
    for found in (*gs.jvp(f, (x,), (x,)), gs.vmap(f)(np.stack([x, x]))[1], gs.jit(f)(x)):
        assert found.dtype == want.dtype
    assert gs.grad(whole)(x).dtype == np.float32


def test_numbers_that_differ_in_lists_of_places():
    numbers = np.array([0, 2])
    for f in (lambda x, i: np.roll(x, (i, 1), (0, 0)), lambda x, i: np.insert(x, [i, 1], [5.0, 6.0]),
              lambda x, i: x[[i, 0]], lambda x, i: np.delete(x, [i, 1])):
        np.testing.assert_array_equal(gs.vmap(f, in_axes=(None, 0))(X, numbers), [f(X, 0), f(X, 2)])


def test_a_list_of_a_row_is_an_array_in_a_batch():
    square = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(gs.vmap(lambda x: np.array(list(x)) * [1, 2, 3, 4])(square), square * [1, 2, 3, 4])


def test_lists_are_repeated_not_multiplied():
    def whole(x, n):
        return np.sum(np.array([x[0], 1.0] * n) ** 2)

    def by_a_number(x, t):
        return np.sum([x[0], 1.0] * t)
    value, gradient = gs.value_and_grad(whole)(X, 3)
    np.testing.assert_allclose(value, whole(X, 3))
    np.testing.assert_allclose(gradient, [6 * X[0], 0, 0, 0])
    with pytest.raises(gs.TransformError):
        gs.grad(by_a_number)(X, np.float64(2.0))


def test_lists_read_as_they_were_written():
    assert "np.concatenate([ONES, [x[0]]])" in gs.grad(number_in_concatenate).source_for(X)
    assert "np.array([[c, -s], [s, c]])" in gs.grad(rotation).source_for(X)
    assert "np.stack([x[:2], [x[1], x[0]]])" in gs.grad(list_in_stack).source_for(X)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.array([[x[0], 1.0], [x[1]]])), lambda x: np.sum(np.concatenate([x, [[x[1]]]])),
    lambda x: np.sum(np.stack([[x[0], [1.0]], [x[1], 2.0]])), lambda x: np.sum(np.array([["a"], ["b"]]) == "a") * x[0]])
def test_what_is_no_array_is_refused(f):
    with pytest.raises(gs.TransformError):
        gs.grad(f)(X)
