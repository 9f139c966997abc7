"""The advice of a message is a way out: the refused program, written as its advice says, has the right gradient."""
import collections
import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
from errors import cases, helpers
from errors.cases_face import Recurrent
from errors.test_errors import raised
from scipy import stats
from scipy.spatial import distance

import gradscribe as gs

X = np.array([0.5, 1.5, 2.5])
A = np.array([[0.3, 1.2, 2.1], [1.4, 0.6, 3.2]])
WAYS = {}


class Named:
    def __init__(self, v):
        self.v = v


RECURRENT = Recurrent()


def instead_of(case, *arguments):
    """What the advice of a case makes of its function, and the arguments to try it with."""
    def add(f):
        WAYS[case] = f, arguments
        return f
    return add


def by_differences(f, x, *rest):
    """Central differences, entry by entry."""
    x = np.asarray(x, dtype=float)
    out = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 1e-6
        above, below = (f((x + s)[()] if x.ndim else float(x + s), *rest) for s in (step, -step))
        out[place] = (above - below) / 2e-6
    return out


# what is written otherwise

@instead_of("unknown_keyword_where", X, X > 1)
def _(x, m):
    return np.sum(np.where(m, x, 0.0) ** 2)


@instead_of("yield_from", X)
def _(x):
    def halves(v):
        return [v / 2, v / 4]
    return sum(halves(x[0])) * x[1]


@instead_of("generator_helper", X)
def _(x):
    def squares(x):
        return [x[0] * x[0], x[1] * x[1]]
    return sum(squares(x))


@instead_of("global_write", 2.0)
def _(x):
    total = x * 2
    return total


@instead_of("attribute_write", 2.0)
def _(x):
    p = cases.Point(x, x)
    p_x = x * 2
    return p_x * p.y


@instead_of("object_of_a_class", 2.0)
def _(x):
    layer = cases.Layer(x)
    return layer.w * 2


@instead_of("frozen_dataclass_that_is_written", 2.0)
def _(x):
    p = helpers.Pair(x, x)
    p.a = 2 * x
    return p.a * p.b


@instead_of("frozen_record_that_is_written", 2.0)
def _(x):
    import dataclasses
    p = helpers.Frozen(x)
    p = dataclasses.replace(p, a=p.a * p.a)
    return p.a


@instead_of("handler_that_goes_on", X)
def _(x):
    y = x.copy()
    if math.floor(x[0]) < len(x):
        y[math.floor(x[0])] = 1.0
    else:
        y = -y
    return np.sum(y)


@instead_of("loop_that_may_raise_in_a_try", A)
def _(x):
    z = x @ x.T
    try:
        y = np.linalg.cholesky(z)
        y = np.linalg.inv(y)
    except np.linalg.LinAlgError:
        y = z
    return np.sum(y)


@instead_of("errstate_with_an_argument", X)
def _(x):
    with np.errstate(all="ignore"):
        return np.sum(1 / x)


@instead_of("match_statement", 2.0)
def _(x):
    match cases.Layer(x):
        case cases.Layer(w=w):
            return w * w


@instead_of("set_literal", 2.0)
def _(x):
    return sum([x, 2 * x])


@instead_of("loop_that_always_raises", X)
def _(x):
    y = 0.0
    for v in x:
        y = y + v * v
        if y < 0:
            raise ValueError("not yet")
    return y


# containers

@instead_of("container_that_is_an_argument_changed_in_compiled_code", X)
def _(x):
    p = {"w": x}
    p = {**p, "w": p["w"] * 2}
    return np.sum(p["w"])


@instead_of("dictionary_of_unknown_length", X)
def _(x):
    total = 0.0
    for k in range(len(x)):
        total += x[k] ** 2
    return total


@instead_of("list_minus_a_list", 2.0)
def _(x):
    items = np.array([x, 2 * x]) - np.array([x ** 2])
    return items[0] * items[1]


@instead_of("method_of_a_deque", 2.0)
def _(x):
    items = collections.deque([x, 2 * x])
    items = list(items)
    items.reverse()
    return items[0] * x


@instead_of("insertion_into_a_full_deque", 2.0)
def _(x):
    last = collections.deque([x, 2 * x], maxlen=2)
    last.pop()
    last.insert(0, x * x)
    return last[0] * last[1]


@instead_of("index_of_an_iterator", 2.0)
def _(x):
    pairs = list(zip([1.0, 2.0], [x, x * x]))
    return pairs[1][1]


@instead_of("length_of_an_iterator", 2.0)
def _(x):
    items = list(iter([x, 2 * x]))
    return x * x * len(items)


@instead_of("reversed_iterator", 2.0)
def _(x):
    it = list(iter([x, x * x]))
    return sum(reversed(it))


@instead_of("next_of_a_list", 2.0)
def _(x):
    items = iter([x * x, 2 * x])
    return next(items)


@instead_of("next_of_a_counter", 2.0)
def _(x):
    k = 1
    y = x * k
    k = k + 1
    return y * x * k


@instead_of("map_over_a_counter", 2.0)
def _(x):
    total = 0.0
    for k in range(4):
        total += k * x * x
    return total


@instead_of("strict_zip_with_a_counter", 2.0)
def _(x):
    return sum(a * k for a, k in zip([x, x * x], itertools.count()))


@instead_of("sorted_by_a_comparison", 2.0)
def _(x):
    items = sorted([3, 1, 2], key=lambda a: -a)
    return items[0] * x * x


@instead_of("maximum_by_keys_of_several_values", X)
def _(x):
    values = np.array([x[0], x[1] * x[2]])
    return values[np.argmax(values)]


@instead_of("sorted_by_running_values", X)
def _(x):
    values = np.array([x, 2 * x, -x])
    s = values[np.argsort(values[:, 0])]
    return s[0][0] * 2 + s[2][0] * s[1][0]


@instead_of("methodcaller_with_words", X)
def _(x):
    total = lambda v: v.sum(axis=0)                                     # noqa: E731
    return total(x * x)


@instead_of("islice_of_a_named_iterator", 2.0)
def _(x):
    it = [x, 2 * x, x * x]
    return sum(it[1:])


@instead_of("membership_in_a_range", X)
def _(x):
    return x[0] if 0 <= x[1] < 3 else x[2]


@instead_of("or_of_a_list", 2.0)
def _(x):
    if x > 1:
        items = [x]
    else:
        items = [x * x]
    return x * items[0]


@instead_of("text_that_changes_a_list", 2.0)
def _(x):
    items = [x, 2 * x]
    last = items.pop()
    name = f"{last}"
    print(end=name[:0])
    return items[0] * last


@instead_of("array_of_a_dictionary", X)
def _(x):
    d = {"a": x, "b": x * x}
    return np.sum(np.array(list(d.values())))


@instead_of("range_in_an_operation", X)
def _(x):
    return np.sum(x * np.array(list(range(3))))


@instead_of("write_into_a_range", 2.0)
def _(x):
    places = list(range(3))
    places[0] = x * x
    return places[0] * len(places)


@instead_of("list_of_arrays_beside_what_is_chosen", X)
def _(x):
    total, chosen = 0.0, x[x > 0.6]
    for k in range(min(2, len(chosen))):
        total += np.stack([x, 2.0 * x])[k, 0] * chosen[k]
        if total > 3:
            break
    return total


@instead_of("loop_over_what_it_may_change", A)
def _(x):
    y = x * 2.0
    for v in y.ravel().copy():
        y[0, 0] = y[0, 0] + v * v
    return np.sum(y)


# lists whose length is known only when running

@instead_of("list_that_grows_with_two_dtypes", X)
def _(x):
    out = []
    for v in x:
        out.append(v)
        out.append(np.float64(v * v))
    return np.sum(np.array(out))


@instead_of("list_that_grows_with_lists", X)
def _(x):
    ones, others = [], []
    for v in x:
        ones.append(v)
        others.append(v * v)
    return ones[0] * others[1]


@instead_of("stack_of_a_list_that_grows_along_another_axis", X)
def _(x):
    rows = []
    for v in x:
        rows.append(v * x)
    return np.sum(np.array(rows)[:, 0])


# arrays

@instead_of("read_of_what_may_have_changed", X)
def _(x):
    y = x.ravel().copy()
    y[0] = 2.0
    return np.sum(x * y)


@instead_of("write_through_a_diagonal", X)
def _(x):
    y = np.diag(np.outer(x, x)).copy()
    y[0] = 2.0
    return np.sum(y)


@instead_of("augmented_array_without_axes", X)
def _(x):
    s = np.zeros(1)
    t = s
    s += x[0]
    return t[0] * x[1]


@instead_of("augmented_item_of_a_lower_kind", X)
def _(x):
    counts = np.ones(3, dtype=float)
    counts[0] *= x[0]
    return np.sum(counts * x)


@instead_of("where_that_is_no_mask", X)
def _(x):
    y = np.zeros(3)
    np.exp(x, out=y, where=x != 0)
    return np.sum(y)


@instead_of("copyto_with_a_casting", X)
def _(x):
    y = np.zeros(3)
    np.copyto(y, (x * x).astype(float))
    return np.sum(y)


@instead_of("ufunc_at_that_may_repeat", X)
def _(x):
    y = np.ones(3)
    for k, i in enumerate([0, 0, 1]):
        y[i] = np.maximum(y[i], x[k])
    return np.sum(y)


@instead_of("put_in_another_mode", X)
def _(x):
    y = x.copy()
    np.put(y, [0, 4], x[:2] * x[1], mode="clip")
    return np.sum(y * y)


@instead_of("nan_to_num_in_place_of_a_number", X)
def _(x):
    return np.nan_to_num(x[0]) * x[0]


@instead_of("place_with_a_mask_of_other_axes", X)
def _(x):
    y = np.outer(x, x)
    np.place(y, y > 1, x)
    return np.sum(y * y)


@instead_of("maximum_of_arrays", X, X[::-1].copy() * 1.1)
def _(x, y):
    return np.sum(np.maximum(x, y))


@instead_of("size_along_an_axis", X)
def _(x):
    return np.sum(x ** 2) / x.shape[0]


@instead_of("array_of_the_flat_entries", A)
def _(x):
    return np.sum(x.ravel() ** 2)


@instead_of("branches_of_different_kinds", X)
def _(x):
    if np.sum(x) > 0:
        y = x
    else:
        y = np.zeros(3)
    return np.sum(y * x)


@instead_of("shape_that_changes_before_it_is_set", X)
def _(x):
    y = np.zeros(1)
    for k in range(len(x)):
        if x[k] > 1:
            y = x[:1] * k
    return np.sum(y * x)


@instead_of("value_that_the_first_pass_does_not_have", X)
def _(x):
    t = 0.0
    y = x * 2
    for k in range(len(x)):
        if x[k] > 1:
            t = t + np.sum(y * y)
        y = np.sin(x * x[k])
    return t


@instead_of("view_in_a_list_that_the_loop_may_have_changed", A)
def _(x):
    y = x * 1.0
    items = [y.reshape(-1).copy()]
    for k in range(len(x)):
        y[0, 0] = k * x[0, 0]
    return np.sum(items[0])


@instead_of("reshape_to_a_running_shape", A, 3, 2)
def _(x, n, m):
    return np.sum(x.reshape((n, m))[0] ** 2)


@instead_of("index_that_is_a_truth_value", X)
def _(x):
    return np.sum(np.where(x[0] > 1, x, 0.0)) if x[0] > 1 else np.sum(x * x)


# rules

@instead_of("end_of_a_range_of_numbers", 2.2)
def _(x):
    return np.sum(np.arange(0.0, 2.2, 0.5)) * x * x


@instead_of("fourier_transform_along_one_axis_twice", A)
def _(x):
    return np.sum(np.abs(np.fft.fft(np.fft.fft(x, 2, axis=0), 2, axis=0)))


@instead_of("matrix_power_of_a_float", X)
def _(x):
    return np.sum(np.linalg.matrix_power(np.outer(x, x), 2))


@instead_of("hankel_matrix_of_a_matrix", A[:, :2])
def _(x):
    return np.sum(scipy.linalg.hankel(np.ravel(x)) ** 2)


@instead_of("complete_qr", A)
def _(x):
    q, r = np.linalg.qr(x.T, mode="reduced")
    return np.sum(r)


@instead_of("outer_product_of_matrices", A)
def _(x):
    return np.sum(np.outer(x, x))


@instead_of("toeplitz_matrix_of_a_matrix", A)
def _(x):
    return np.sum(scipy.linalg.toeplitz(np.ravel(x)) ** 2)



@instead_of("einsum_with_a_word", X)
def _(x):
    return np.einsum("i,i", x, x ** 2)


@instead_of("block_diagonal_of_stacks", X, A)
def _(x, W):
    return np.sum(scipy.linalg.block_diag(x, W) ** 2)


@instead_of("cross_product_in_the_plane", X[:2])
def _(x):
    return np.sum(np.cross(x, np.array([1.0, 2.0])) ** 2)


@instead_of("triangular_solution_of_a_stack", X)
def _(x):
    total = 0.0
    for k in range(2):
        total += np.sum(scipy.linalg.solve_triangular((k + 1) * x * np.eye(3), x))
    return total


@instead_of("eigenvalues_with_a_second_matrix", A[:, :2])
def _(x):
    half = np.linalg.inv(np.linalg.cholesky(x @ x.T + np.eye(2)))
    return np.sum(np.linalg.eigvalsh(half @ (x + x.T) @ half.T))


@instead_of("full_scipy_qr", A)
def _(x):
    q, r = scipy.linalg.qr(x.T, mode="economic")
    return np.sum(r)


@instead_of("cholesky_solution_of_an_unknown_triangle", X)
def _(x):
    return np.sum(scipy.linalg.cho_solve((np.diag(x), True), x))


@instead_of("solution_of_a_banded_system", X)
def _(x):
    return np.sum(scipy.linalg.solve(np.diag(x), x * x))


@instead_of("lu_with_rows_in_order", X)
def _(x):
    p, low, up = scipy.linalg.lu(3 * np.diag(x) + np.outer(x, x))
    return np.sum(low) + np.sum(up)


@instead_of("correlation_of_the_same_length", X)
def _(x):
    return np.sum(np.correlate(x, x, mode="full")[1:4] ** 2)


@instead_of("difference_along_an_inner_axis", np.arange(16.0).reshape(2, 2, 2, 2) ** 0.5)
def _(x):
    return np.sum(np.diff(np.moveaxis(x, 2, -1)) ** 2)


@instead_of("quantile_by_an_unknown_method", X)
def _(x):
    return np.quantile(x, 0.3, method="midpoint")


@instead_of("reshape_by_the_memory", A)
def _(x):
    return np.sum(np.reshape(x, 6, order="F")[:2] ** 2)


@instead_of("split_at_negative_places", X)
def _(x):
    first, last = x[:-1], x[-1:]
    return np.sum(first) * np.sum(last)


@instead_of("insert_a_mask", X)
def _(x):
    return np.sum(np.insert(x, np.flatnonzero(np.array([True, False, True])), 1.0) ** 2)


@instead_of("pad_with_nothing", X)
def _(x):
    return np.sum(np.concatenate([x[:1], x, x[-1:]]) ** 2)


@instead_of("meshgrid_of_matrices", A)
def _(x):
    a, b = np.meshgrid(x.ravel(), x.ravel())
    return np.sum(a * b)


@instead_of("sign_of_a_complex_number", X)
def _(x):
    z = x + 1j * x ** 2
    return np.real(np.sum(z / np.abs(z)))


@instead_of("complex_astype_float", X)
def _(x):
    return np.sum(np.real(x * (1 + 2j)).astype(float) ** 2)


@instead_of("output_not_scalar", X)
def _(x):
    return np.sum(x * 2)


@instead_of("custom_derivative_by_keyword", 2.0)
def _(x):
    return cases.cubed(x)


# compiled

@pytest.mark.filterwarnings("ignore")
@instead_of("ufunc_in_another_dtype", X)
def _(x):
    return np.sum(np.less(x, 2.0).astype(float) * x)


@instead_of("ufunc_with_where_alone", X)
def _(x):
    return np.sum(np.where(x > 1, np.exp(x), 0))


@instead_of("ufunc_in_whole_numbers", X)
def _(x):
    return np.sum(np.add(x.astype(int), 1, dtype=int)) + x[0]


@instead_of("cumulative_sum_without_an_axis", A)
def _(x):
    return np.sum(np.cumulative_sum(x, axis=0) ** 2)


@instead_of("gradient_of_third_order", X)
def _(x):
    return np.sum(np.gradient(x, edge_order=2) ** 2)


@instead_of("gradient_of_too_few_spacings", A)
def _(x):
    return np.sum(np.gradient(x, 1.0, 2.0)[0] ** 2)


@instead_of("gradient_of_a_matrix_of_nodes", A)
def _(x):
    return np.sum(np.gradient(x, np.array([0.0, 1.5]), axis=0) ** 2)


@instead_of("linspace_in_whole_numbers", X)
def _(x):
    return np.sum(np.floor(np.linspace(x[0], x[1], 4)).astype(int)) * x[0]


@instead_of("constant_of_integration_alone", X)
def _(x):
    return np.sum(np.polyint(x, 1, k=[2.0]) ** 2)


@instead_of("constants_of_integration_left_over", X)
def _(x):
    return np.sum(np.polyint(x, 2, [1.0, 2.0]) ** 2)


@instead_of("polynomial_of_a_matrix", A)
def _(x):
    return np.sum(np.polymul(x.ravel(), x.ravel()))


@instead_of("fit_in_full", X)
def _(x):
    return np.sum(np.polyfit(x, x ** 2, 1))


@instead_of("fit_with_a_bound", X)
def _(x):
    return np.sum(np.polyfit(x, x ** 2, 1))


@instead_of("derivative_of_broken_order", X)
def _(x):
    return np.sum(np.polyder(x, 1) ** 2)


@instead_of("variance_corrected_twice", X)
def _(x):
    return np.var(x, correction=1)


@instead_of("maximum_of_chosen_entries", X)
def _(x):
    return np.max(x, where=x > 1, initial=0.0)


@instead_of("quantiles_in_a_matrix", X)
def _(x):
    return np.sum(np.quantile(x, np.array([[0.2], [0.4]]).ravel()).reshape(2, 1))


@instead_of("histogram_of_a_matrix_of_columns", A)
def _(x):
    return np.sum(np.histogramdd([x[:, 0], x[:, 1]], 2)[1][0])


@instead_of("covariance_with_broken_degrees", X)
def _(x):
    return np.cov(x, ddof=0)


@instead_of("histogram_with_bins_by_name", X)
def _(x):
    return np.sum(np.histogram(x, 4)[1] ** 2)


@instead_of("covariance_of_a_cube", A)
def _(x):
    return np.sum(np.cov(x.reshape(2, 3)) ** 2)


@instead_of("quantile_that_jumps", X)
def _(x):
    return np.quantile(np.arange(4.0), x[0] / 9, method='linear')


@instead_of("difference_of_all_rows", A)
def _(x):
    return np.sum((x[0] - x[1]) ** 2)


@instead_of("row_of_a_list_that_grows", X)
def _(x):
    rows = []
    for v in x:
        rows.append([v, 1.0])
    row = [*rows[0]]
    row[1] = 2.0
    return np.sum(np.array(rows)) * row[1] * row[0]


@instead_of("list_inside_a_list", X)
def _(x):
    return np.sum(np.array([x[0], x[1]])) + np.sum(x ** 2)


@instead_of("directive_in_brackets", X)
def _(x):
    return np.sum(np.concatenate([np.stack([x, x]), np.stack([x, x])]) ** 2)


# what must be known when transforming

@instead_of("axis_from_the_entries_of_an_argument", A, 0)
@instead_of("static_argument_is_an_array", A, 1)
@instead_of("axis_that_is_drawn", A, 1)
@instead_of("axis_found_in_the_values", A, 0)
def _(x, axis):
    return np.sum(np.sum(x, axis=axis) ** 2)


@instead_of("axis_that_counts_passes", A)
def _(x):
    y = 0.0
    for k in (0, 1):
        y = y + np.sum(np.cumsum(x, axis=k) ** 2)
    return y


@instead_of("axis_of_each_example", A)
def _(x):
    return np.sum(gs.vmap(lambda row: np.cumsum(row, axis=0))(x) ** 2)


@instead_of("dimension_of_the_gamma_function_that_is_computed", X + 2, 2)
def _(x, d):
    return np.sum(scipy.special.multigammaln(x, d))


def test_a_power_that_is_an_argument():
    """As the advice says: it is asked for by itself; and it may be that of a loop over literals."""
    A = np.array([[0.3, 1.2], [1.4, 0.6]])

    def f(a, n):
        return np.sum(np.linalg.matrix_power(a, n))

    def g(a):
        return sum(np.sum(np.linalg.matrix_power(a, n)) for n in (1, 3))

    def h(a):
        total = 0.0
        for n in range(50):
            total += np.sum(np.linalg.matrix_power(a, n))
        return total
    cube = by_differences(lambda a: np.sum(a @ a @ a), A)
    np.testing.assert_allclose(gs.grad(f)(A, 3), cube, rtol=1e-7)
    np.testing.assert_allclose(gs.grad(f)(A, 1), np.ones((2, 2)), rtol=1e-12)
    np.testing.assert_allclose(gs.grad(g)(A), 1 + cube, rtol=1e-7)
    np.testing.assert_allclose(gs.grad(h)(A / 4), by_differences(h, A / 4), rtol=1e-6)      # its passes are written out


# arrays taken apart

@instead_of("star_of_unknown_length", X)
def _(x):
    largest = x[0]
    for k in range(len(x)):
        largest = max(largest, x[k])
    return largest * np.max(x)


@instead_of("numbers_of_two_kinds_sorted", X)
def _(x):
    return sorted([x[0], x[1], 1.0])[0] * x[2]


@instead_of("array_filtered", X)
def _(x):
    total = 0.0
    for k in range(len(x)):
        if x[k] > 1:
            total += x[k] ** 2
    return total


@instead_of("comprehension_that_hides_a_variable", X)
def _(x):
    v = x[0]

    def scaled(w):
        return v * w
    items = []
    for k in range(len(x)):
        items.append(scaled(x[k]))
    return np.sum(np.array(items))


@instead_of("comprehension_that_names_what_a_function_reads", X)
def _(x):
    k = 2.0

    def g(v):
        return k * v * v
    items = []
    for n in range(len(x)):
        if x[n] > 1:
            items.append(g(x[n]))
    return sum(items)


@instead_of("comprehension_with_a_test_on_values", 2.0)
def _(x):
    total, items = 0.0, []
    for v in (x, x ** 2):
        if v > 1:
            total += v
            items.append(v * v)
    return total + np.sum(np.array(items))


# if instead of try

@instead_of("try_statement", X)
def _(x):
    return np.sum(x ** 2) if len(x) > 0 else 0.0


@instead_of("handler_that_reads_its_exception", 2.0)
def _(x):
    if x < 0:
        y = 0.0
    else:
        y = np.sqrt(x)
    return y


@instead_of("except_star", 2.0)
def _(x):
    return x if x == 0 else 1 / x


@instead_of("return_in_the_middle_of_a_try", 2.0)
def _(x):
    if x > 1:
        return 1 / x
    return math.log(x) if x > 0 else 0.0


@instead_of("while_that_may_raise_in_a_try", 2.0, 3)
def _(x, n):
    if n != 0:
        while x > 1:
            x = x / n
    else:
        x = -x
    return x * x * 9


@instead_of("break_out_of_a_try_with_a_finally", 2.0)
def _(x):
    for k in range(3):
        stop = False
        try:
            stop = k == 1
            x = x * x
        finally:
            print(k)
        if stop:
            break
    return x


# what is differentiated

@instead_of("input_integer", np.array([1, 2, 3]).astype(float))
@instead_of("input_bool_array", (X > 1).astype(float))
@instead_of("pullback_at_whole_numbers", np.array([1, 2]).astype(float))
@instead_of("tangent_at_a_masked_array", np.asarray(np.ma.array([1.0, 2.0], mask=[0, 1])))
@instead_of("gradient_of_a_masked_array_that_is_not_read", np.asarray(np.ma.array([1.0, 2.0], mask=[0, 1])))
@instead_of("input_array_of_objects", np.array([1.0, 2.0], dtype=object).astype(float))
def _(x):
    return np.sum(x ** 2)


@instead_of("input_bool", float(True))
@instead_of("tangent_at_a_whole_number", float(3))
def _(x):
    return x * x


@instead_of("text_beside_what_is_differentiated", 2.0, "tanh")
def _(x, name):
    return np.tanh(x) if name == "tanh" else x


@instead_of("truth_value_beside_what_is_differentiated", 2.0, True)
def _(x, bias):
    return x * x + x if bias else x


@instead_of("pullback_of_an_object_that_can_be_called", X)
def _(x):
    return np.sum(RECURRENT(x))


@pytest.mark.parametrize("case", WAYS)
def test_the_way_out(case):
    assert raised(case).advice
    f, arguments = WAYS[case]
    gradient = gs.grad(f)(*arguments)
    np.testing.assert_allclose(gradient, by_differences(f, *arguments), rtol=1e-5, atol=1e-7)
    gradient = gs.jit(gs.grad(f))(*arguments) if case.startswith("compiled") else gradient
    np.testing.assert_allclose(gradient, by_differences(f, *arguments), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("case", ["gradient_of_an_object_that_can_be_called", "tangent_of_an_object_that_can_be_called",
                                  "input_object", "tangent_of_an_object", "adjoint_of_an_object"])
def test_the_way_out_of_objects(case):
    """A dictionary, a named tuple or a dataclass of what the object holds; or the other arguments."""
    assert "in a dictionary, a named tuple or a dataclass" in raised(case).advice

    def loss(p, x):
        return np.sum(np.tanh(p["w"] * x))

    def loss_of_a_pair(p, x):
        return np.sum(np.tanh(p.a * x)) + p.b

    def energy(r, x):
        return np.sum(r(x))
    want = X / np.cosh(X * X) ** 2
    np.testing.assert_allclose(gs.grad(loss)(vars(RECURRENT), X)["w"], want, rtol=1e-10)
    np.testing.assert_allclose(gs.grad(loss_of_a_pair)(helpers.Pair(X, 1.0), X).a, want, rtol=1e-10)
    np.testing.assert_allclose(gs.jvp(loss, (vars(RECURRENT), X), ({"w": X}, 0 * X))[1], want @ X, rtol=1e-10)
    np.testing.assert_allclose(gs.vjp_of(loss)(1.0, vars(RECURRENT), X)[0]["w"], want, rtol=1e-10)
    np.testing.assert_allclose(gs.grad(energy, argnums=1)(RECURRENT, X), want, rtol=1e-10)      # w is x here


@pytest.mark.parametrize("case", ["generator_is_differentiated", "input_string"])
def test_the_way_out_by_argnums(case):
    assert raised(case).advice == "Name the arguments to differentiate by argnums."

    def f(rng, name, x):
        return x * x * rng.normal() if name == "noise" else x
    noise = np.random.default_rng(3).normal()
    assert gs.grad(f, argnums=2)(np.random.default_rng(3), "noise", 2.0) == 4.0 * noise


def test_the_way_out_of_whole_numbers_in_a_container():
    assert raised("input_integer_in_a_container").advice == \
        "Convert it: p['layers'][1].astype(float), or pass it as an argument of its own."

    def f(p):
        return np.sum(p["layers"][1] ** 2)

    def g(p, n):
        return np.sum(p["layers"][0] * n)
    n = np.array([1, 2, 3])
    np.testing.assert_array_equal(gs.grad(f)({"layers": [X, n.astype(float)]})["layers"][1], [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(gs.grad(g)({"layers": [X]}, n)["layers"][0], [1.0, 2.0, 3.0])
# SciPy's statistics, convolutions and distances

@instead_of("scipys_solver_of_differential_equations", X)
def _(x):
    return np.sum(gs.optim.odeint(lambda y, t: -y * y, x, np.linspace(0.0, 1.0, 3)))


@instead_of("scipys_initial_value_problem", X)
def _(x):
    return np.sum(gs.optim.odeint(lambda y, t: -t * y, x, np.array([0.0, 1.0]))[-1])


@instead_of("degrees_of_freedom_in_a_distribution_function", X)
def _(x):
    return np.sum(x * stats.t.cdf(x, 3.0))


@instead_of("normal_vectors_of_a_singular_covariance", X)
def _(x):
    return stats.multivariate_normal.logpdf(x, x * x, np.outer(x, x) + 0.1 * np.eye(3))


@instead_of("normal_vectors_with_three_axes", X)
def _(x):
    return np.sum(stats.multivariate_normal.logpdf(x.reshape(-1, 1), np.zeros(1), np.eye(1)))


@instead_of("weights_for_more_components", X)
def _(x):
    y = x[:1] / 4
    return stats.dirichlet.logpdf(np.append(y, 1 - np.sum(y)), np.array([1.5, 2.0]))


@instead_of("weights_of_a_stack", X)
def _(x):
    return np.sum(stats.dirichlet.logpdf(np.stack([x[0] / x, 1 - x[0] / x])[:, 1:], np.array([1.5, 2.0])))


@instead_of("convolution_of_a_vector_and_a_matrix", X)
def _(x):
    return np.sum(scipy.signal.convolve(np.outer(x, x), x[:, None]) ** 2)


@instead_of("convolution_that_goes_round", X)
def _(x):
    return np.sum(scipy.signal.convolve(x, x, "same") ** 2)


@instead_of("convolution_along_some_axes", A)
def _(x):
    return np.sum(gs.vmap(lambda row: scipy.signal.fftconvolve(row, row))(x) ** 2)


@instead_of("transforms_of_whole_numbers", X)
def _(x):
    return np.sum(x * scipy.signal.fftconvolve(np.arange(3).astype(float), np.arange(3), "same"))


@instead_of("distances_of_another_metric", A)
def _(x):
    return np.sum(distance.pdist(x, "cityblock"))


@instead_of("distances_with_weights", A)
def _(x):
    return np.sum(distance.pdist(x, "cosine"))


@instead_of("distances_of_a_vector", X)
def _(x):
    return np.sum(distance.cdist(x[:, None], 2 * x[:, None], "sqeuclidean"))


@instead_of("square_form_of_a_stack", A)
def _(x):
    return np.sum(distance.squareform(x[0]) ** 2)


@instead_of("banded_systems_in_a_stack", X)
def _(x):
    return sum(np.sum(scipy.linalg.solve_banded((0, 0), v[None], v * v)) for v in [x, 2 * x])


@instead_of("list_changed_before_its_iterator_is_read", X)
def _(x):
    items = []
    for v in x:
        items.append(v)
    pairs = list(zip(items, items))
    items.append(x[0])
    return sum(a * b for a, b in pairs)


@instead_of("truth_values_of_python_and_of_numpy", X)
def _(x):
    return (int(x[0] > 0 and True) + int(True)) * x[0]


@instead_of("an_object_given_another_class", X)
def _(x):
    q = Named(x[0])
    return q.v * x[1]


@instead_of("written_where_it_may_hold_whole_numbers", X)
def _(x):
    d = np.zeros(2) if x[0] > 0 else np.zeros(2)
    d[0] = x[1]
    return d[0] * x[1]


@instead_of("the_type_of_what_may_be_an_array_without_axes", X)
def _(x):
    t = np.where(x[0] > 0, x[1], x[2])
    return t * 2 if np.ndim(t) == 0 else t


@instead_of("the_type_of_a_function", X)
def _(x):
    return x[0] if isinstance(x[0], int) else x[1] * 2


@instead_of("a_pattern_for_a_list_of_unknown_length", X)
def _(x):
    items = [v * v for v in x]
    return items[0] if len(items) > 0 else x[0]


@instead_of("an_argument_that_is_read_from_outside", X)
def _(x):
    y = x.copy()
    y[0] = 5.0
    return np.sum(y * np.ones(3) * x)


@instead_of("a_generator_over_an_array_read_twice", X)
def _(x):
    squares = [v * v for v in x]
    return sum(squares) + max(squares)


@instead_of("what_a_handler_raises_again_when_running", X)
def _(x):
    count = 0
    for i in range(2):
        if i == 0:
            count += 10
        else:
            count += 1 // i
    return count * x[0]


@instead_of("a_try_inside_another_that_is_left_in_its_middle", X)
def _(x):
    def first(values, k):
        found = None
        try:
            if k <= 5:
                found = values[k]
        except KeyError:
            raise ValueError(k)
        return x[0] if found is None else found
    try:
        value = first({0: x[1]}, 2)
    except ValueError:
        value = x[2]
    return value


@instead_of("views_of_dictionaries_compared", X)
def _(x):
    d = {"a": x[0]}
    return x[0] if list(d.keys()) == ["a"] else x[1]


@instead_of("an_array_compared_with_none", X)
def _(x):
    return x[0] if x is not None else 0.0


@instead_of("an_iterator_from_outside", X)
def _(x):
    return sum([1.0, 2.0]) * x[0]


@instead_of("an_iterator_without_an_end_read_again", X)
def _(x):
    k, s = 0, 0.0
    for v in [x[0], x[1], x[1], x[2]]:
        s = s + k * v
        k = k + 1
    return s


@instead_of("a_name_set_in_a_generator", X)
def _(x):
    last, found = x[0], False
    for v in x:
        last = v
        if v > 2.0:
            found = True
            break
    return x[1] if found else last


@instead_of("alternatives_that_bind_names", X)
def _(x):
    k = int(x[0] * 10)
    if k == 21:
        return x[1] * 2
    if x[1] == 21:
        return k * 2.0
    return x[2]


class NotNegative:
    def __init__(self, w):
        self.w = w

    @property
    def w(self):
        return self._w

    @w.setter
    def w(self, value):
        self._w = max(value, 0.0)


@instead_of("a_descriptor_that_is_set", X)
def _(x):
    return NotNegative(x[0]).w * x[1]


@instead_of("a_mean_in_whole_numbers", X)
def _(x):
    return int(np.mean(x)) * x[0]


@instead_of("an_average_along_axes_out_of_order", X)
def _(x):
    return np.sum(np.average(x.reshape(1, 3, 1), axis=(0, 1), weights=np.ones((1, 3))))


@instead_of("a_histogram_of_complex_numbers", X)
def _(x):
    return np.sum(np.histogram(np.real(np.array([0.5 + 1.0j, 1.5, 2.5j]) * x), 3, weights=x)[0] ** 2)


@instead_of("a_plane_of_complex_numbers", X)
def _(x):
    return np.sum(np.histogram2d(np.array([0.5, 1.5, 0.0]), np.array([1.0, 2.0, 3.0]), 3, weights=x)[0] ** 2)


@instead_of("a_product_of_rows", X)
def _(x):
    return np.sum(np.prod(np.reshape(x, (3, 1)), axis=0))


@instead_of("an_axis_of_a_number", X)
def _(x):
    return np.sum(x[0]) * x[1]


@instead_of("a_quantile_along_no_axis", X)
def _(x):
    return np.sum(x)


@instead_of("a_density_of_complex_numbers", X)
def _(x):
    return np.sum(stats.norm.logpdf(np.real(np.array([0.5 + 1.0j, 1.5, 2.5j]) * x)))


@instead_of("a_jacobian_of_what_counts_its_calls", X)
def _(x):
    return np.sum(gs.jacfwd(lambda x, n: (x * (n + 1.0), n + 1.0))(x, 1.0)[0] ** 2)


def squared(forward, backward):
    f = gs.custom_vjp(lambda x: np.sum(x ** 2))
    f.defvjp(forward, backward)
    return f


@instead_of("an_adjoint_with_fewer_axes", X)
def _(x):
    return squared(lambda x: (np.sum(x ** 2), x), lambda x, dy: (2 * x * dy,))(x)


@instead_of("a_tangent_of_another_shape", X)
def _(x):
    f = gs.custom_jvp(lambda x: np.sum(x ** 2))
    f.defjvp(lambda primals, tangents: (np.sum(primals[0] ** 2), np.sum(2 * primals[0] * tangents[0])))
    return f(x)


@instead_of("a_forward_half_of_another_shape", X)
def _(x):
    return squared(lambda x: (np.sum(x ** 2), x), lambda x, dy: (2 * x * dy,))(x)


@instead_of("numbers_in_an_array_of_objects", X)
def _(x):
    held = [None, None]
    held[0] = x[1]
    return np.sum(x) * held[0]


@instead_of("numbers_as_objects", X)
def _(x):
    return np.sum(np.stack(list(x)) ** 2)


@instead_of("numbers_in_a_new_array_of_objects", X)
def _(x):
    return x[0] * [x[1], x[1]][0]


@instead_of("keys_in_another_order", X)
def _(x):
    d = {"a": x[0], "b": 2 * x[1]}
    if x[1] > 1.0:
        d = {"a": x[2], "b": x[0] * x[1]}
    return sum(k * v for k, v in zip((1.0, 2.0), d.values()))


@instead_of("whole_number_beside_what_is_differentiated", X)
def _(x):
    return np.sum((lambda p, n: p["w"] ** n)({"w": x}, 3))


@instead_of("pullback_of_what_has_changed", X)
def _(x):
    rate = 2.0
    rate = 3.0
    return np.sum(gs.vjp(lambda x: rate * x ** 2, x)[1](np.ones(3))[0])


@instead_of("value_in_the_place_of_a_class", X)
def _(x):
    return np.sum(x * 2 if issubclass(np.ndarray, object) else x)


@instead_of("value_looked_for_in_a_set", X)
def _(x):
    return np.sum(np.where((x == 1.0) | (x == 2.0), x * 2, x))
