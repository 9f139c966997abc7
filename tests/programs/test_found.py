"""Small programs that random ones have been cut down to: values against central differences."""
import math

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 0.7, 1.1])


def differences(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = h
        out[i] = (f(x + e) - f(x - e)) / (2 * h)
    return out


def tripled(v):
    step = lambda p: p * 3      # noqa: E731 (the lambda is what is tested)
    return step(v)


def function_with_a_lambda_called_in_one_branch(x):
    """What an expression around the branch holds stays what it is."""
    y = 0.0
    for v in x:
        if len(x) > 5:
            y = y - v
        else:
            y = y + sum([tripled(v) for _ in range(2)])
    return y * x[0]


def list_of_arrays_emptied_then_summed(x):
    rows, y = [], x[0]
    for v in x:
        rows.append(v * x)
    while rows:
        y = y * np.sum(np.sin(rows.pop()))
    return np.sum(rows) + y


def statements_after_a_growing_list_is_added_to(x):
    kept, y = [], 0.0
    for v in x:
        kept += [v * v]
        y = y + v ** 3
    if x[0] > 0:
        kept += [x[0] * x[1]]
        y = y + x[2] ** 2
    return sum(kept) + y


def truth_of_a_list_that_grows_afterwards(x):
    rows = []
    for _ in x:
        if np.sum(x) > 100:
            break
        rows.append(x if not rows else rows[-1] * x)
    return np.sum(rows)


def containers_where_one_arm_raises(x):
    pair, named, many = [x[0], x[1]], {"w": x * 2}, []
    for v in x:
        many.append(v * v)
    for v in x:
        if v > 100:
            raise ValueError("too large")
        else:
            pair[0] = pair[1] * x[2] * v
            named["w"] = named["w"] * x
            many.append(v)
    return pair[0] * pair[1] + np.sum(named["w"]) * sum(many)


def slices_of_a_growing_list_are_lists(x):
    kept = [v * x for v in x if v > 0]
    some = kept[1:]
    for k in range(2):
        some = some[:-1] + [x * k]
    some.append(kept[::-1][0])
    return np.sum(some) * len(some) + np.sum(np.stack(kept[1:])[0])


def halve(y, least):
    y[1:] *= 0.5
    if y[0] > least:
        y[0] = y[0] ** 2
        return
    elif y[0] < 0:
        return


def function_that_returns_nothing_early(x):
    y, z = x * 3, x.copy()
    halve(y, 1.8)
    if halve(z, 9.0) is None:
        y = y * z
    return np.sum(y * y)


class Scale:
    known = 3.0

    def __init__(self, by):
        self.by = by

    def apply(self, v):
        return v * self.by


def attributes_that_may_be_missing(x):
    scale, named = Scale(x[0]), {"by": x[1]}
    y = getattr(scale, "by", 2.0) * x[1] + getattr(scale, "shift", x[2] ** 2) + getattr(named, "by", x[0] * x[2])
    for item in (scale, named, [x]):
        for k, name in enumerate(("by", "apply", "known", "items", "append")):
            if hasattr(item, name):
                y = y + x[k % 3] * (k + 1)
    return y


def element_of_a_list_of_unknown_length_set(x):
    kept = [v * v for v in x if v > 0]
    kept[0] = x[1]
    return sum(kept)


def element_of_a_list_of_unknown_length_scaled(x):
    kept = [v * v for v in x if v > 0]
    kept[0] *= 0.7
    return sum(kept)


PROGRAMS = [element_of_a_list_of_unknown_length_set, element_of_a_list_of_unknown_length_scaled,
            function_with_a_lambda_called_in_one_branch, list_of_arrays_emptied_then_summed,
            statements_after_a_growing_list_is_added_to, truth_of_a_list_that_grows_afterwards,
            function_that_returns_nothing_early, slices_of_a_growing_list_are_lists, attributes_that_may_be_missing,
            containers_where_one_arm_raises]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient(f):
    for x in (X, X[::-1].copy()):
        np.testing.assert_allclose(gs.grad(f)(x.copy()), differences(f, x), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivative(f):
    df = gs.grad(f)
    want = differences(lambda x: np.sum(df(x) * X), X)
    np.testing.assert_allclose(gs.jvp(df, (X.copy(),), (X.copy(),))[1], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(df(x) * X))(X.copy()), want, rtol=1e-5, atol=1e-6)


def empty_list_of_rows(params):
    rows = [0.7 / np.cos(params[1][0]) for v in params[0] if np.sum(params[0]) < -9]
    return np.sum(rows) + np.sum(params[1][0])


def test_slices_added_are_not_arrays_added():
    def f(x):
        kept = [v * v for v in x if v > 0]
        return sum(kept[1:] + kept[:1])
    with pytest.raises(gs.LanguageError, match="a list is not a number or an array"):
        gs.grad(f)(X.copy())


def test_empty_list_and_a_store_of_its_shape():
    got = gs.grad(empty_list_of_rows)((X.copy(), (np.ones((2, 3)), X.copy())))
    np.testing.assert_array_equal(got[1][0], np.ones((2, 3)))
    np.testing.assert_array_equal(got[0], 0)
    twice = gs.grad(lambda p: np.sum(gs.grad(empty_list_of_rows)(p)[1][0] * 2))((X, (np.ones((2, 3)), X)))
    np.testing.assert_array_equal(twice[1][0], 0)


def raises_for_short_rows(params):
    if not len(params["rows"][0]) > 2:
        raise ValueError("too short")
    return np.sum(np.tanh(params["rows"][0]) * params["rows"][1])


def test_argument_container_where_one_arm_raises():
    rows = X.copy(), 2 * X
    got = gs.grad(raises_for_short_rows)({"rows": rows})["rows"]
    np.testing.assert_allclose(got[0], rows[1] / np.cosh(X) ** 2)
    np.testing.assert_allclose(got[1], np.tanh(X))
    with pytest.raises(ValueError, match="too short"):
        gs.grad(raises_for_short_rows)({"rows": (X[:2].copy(), X[:2].copy())})


@pytest.mark.parametrize("shape", [(5, 3, 2), (5, 2, 3), (2, 3), (3, 2)])
def test_the_smaller_of_two_lengths_is_neither(shape):
    """np.linalg.svd has as many values as the shorter side, whichever it is."""
    a = np.random.default_rng(3).standard_normal(shape)
    (da,) = gs.vjp_of(lambda a: np.linalg.svd(a, full_matrices=False)[1])(np.ones(shape[:-2] + (2,)), a)
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(da, u @ vt, rtol=1e-12)


def test_a_tangent_without_axes_is_not_changed_in_place():
    """np.reshape(x, ()) is an array, which += would change, and with it what it is a view of."""
    def f(b, s):
        s = np.hstack([np.multiply(s, b), s]).mean(axis=0)
        return np.sin(s)
    b, s, b_dot, s_dot = np.array([-0.46, 0.17, -0.27]), -0.6, np.array([0.3, -0.1, 0.2]), 0.2
    g, h = gs.grad(f, (0, 1)), 1e-6
    (db, ds), (db_dot, ds_dot) = gs.jvp(g, (b, s), (b_dot, s_dot))
    ahead, behind = g(b + h * b_dot, s + h * s_dot), g(b - h * b_dot, s - h * s_dot)
    np.testing.assert_allclose(db_dot, (ahead[0] - behind[0]) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(ds_dot, (ahead[1] - behind[1]) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.sum(x * x, axis=1)), lambda x: np.sum(np.mean(x * x, axis=0)),
    lambda x: np.mean(np.sum(np.sum(x * x, axis=2), axis=0)), lambda x: np.sum(np.max(x, axis=1)),
    lambda x: np.sum(np.prod(x, axis=1)), lambda x: np.sum(np.var(x, axis=1)),
    lambda x: np.sum(np.linalg.norm(x, axis=1)), lambda x: np.sum(np.cumsum(np.sum(x ** 3, axis=1), axis=0))])
def test_a_reduction_of_a_reduction(f):
    x = np.random.default_rng(4).standard_normal((2, 3, 4))
    np.testing.assert_allclose(gs.grad(f)(x), differences(f, x), atol=1e-7)


def set_in_one_arm(a, b, s):
    if a < 0.13:
        b = s
    return np.sin(b)


def scaled_in_one_arm(a, b, s):
    if a < 0.13:
        b = b * s
    if b < 0.2:
        return 0.5
    return np.sin(b)


def swapped_in_one_arm(a, b, s):
    if a < 0.13:
        b, s = s, s
    if b < 0.2:
        return 0.5
    return b


@pytest.mark.parametrize("f", [set_in_one_arm, scaled_in_one_arm, swapped_in_one_arm])
@pytest.mark.parametrize("a", [0.0, 1.0])
@pytest.mark.parametrize("b", [0.3, 0.1, np.float64(0.3), np.float32(0.3)])
@pytest.mark.parametrize("s", [0.25, np.float64(0.25), np.float32(0.25)])
def test_paths_of_different_precision(f, a, b, s):
    """Each argument's gradient has its own dtype, whichever path was taken."""
    got = gs.grad(f, (1, 2))(a, b, s)
    assert [np.asarray(g).dtype for g in got] == [np.asarray(v).dtype for v in (b, s)]
    want = gs.grad(f, (1, 2))(a, float(b), float(s))
    np.testing.assert_allclose(got, want, rtol=2e-7)


def grows_in_branches_of_another_kind(a, b):
    grown = [a]
    for v in a:
        if v > 0.6:
            continue
        for _ in a:
            a = a * 0.9
        if np.max(b) < 0.6:
            continue
        grown += [np.tanh(a)]
    return np.sum(b) + np.sum(np.sin(a)) + np.sum(grown)


def test_a_list_that_grows_unevenly_is_right_or_refused():
    a, b = np.array([0.2, 0.9, -0.3]), np.array([0.5, 0.7])
    try:
        da, db = gs.grad(grows_in_branches_of_another_kind, (0, 1))(a, b)
    except gs.TransformError:
        return
    np.testing.assert_allclose(da, differences(lambda a: grows_in_branches_of_another_kind(a, b), a), atol=1e-7)
    np.testing.assert_allclose(db, [1.0, 1.0])


def shown_until_bound_again(a, s):
    r = a[None]
    r[...] += s
    while np.sum(r * r) > 0.4:
        r = r * 0.7
        a *= 0.9
    return np.sum(a * a)


def shown_in_a_counted_loop(a, s):
    r = a[None]
    r[...] += s
    for _ in range(4):
        r = r * 0.7
        a *= s
    return np.sum(a * a) + np.sum(r)


@pytest.mark.parametrize("f", [shown_until_bound_again, shown_in_a_counted_loop])
def test_an_array_that_a_view_shows_before_the_loop_only(f):
    a, s = np.array([-0.9, 1.3]), 0.43
    value, (da, ds) = gs.value_and_grad(f, (0, 1))(a, s)
    assert value == f(a.copy(), s)
    np.testing.assert_allclose(da, differences(lambda a: f(a.copy(), s), a), atol=1e-7)
    np.testing.assert_allclose(ds, (f(a.copy(), s + 1e-6) - f(a.copy(), s - 1e-6)) / 2e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("f", [shown_until_bound_again, shown_in_a_counted_loop])
def test_an_array_that_a_view_shows_before_the_loop_only_compiled(f):
    a, s = np.array([-0.9, 1.3]), 0.43
    np.testing.assert_allclose(gs.jit(gs.grad(f))(a, s), gs.grad(f)(a, s), rtol=1e-12)


def test_numbers_stacked_with_arrays():
    x = np.array([0.3, -0.4])
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(np.hstack([x * x, 2]) ** 2))(x), 4 * x ** 3)


def clipped_number(s, b):
    q = math.exp(math.tanh(s))
    h = np.clip(s, -0.6, None) * 0.8 + np.sum(b)
    if q > 0.02:
        return h * q + h
    return h - q


@pytest.mark.parametrize("s", [np.float32(-0.05), np.float32(0.7)])
def test_a_python_number_that_an_arm_hands_out(s):
    b = np.array([0.2, 0.4], np.float32)
    ds, db = gs.grad(clipped_number, (0, 1))(s, b)
    assert (ds.dtype, db.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(ds, gs.grad(clipped_number)(float(s), b.astype(float)), rtol=1e-6)


def last_of_a_view(b, s):
    b[1] = s
    for q in b[::-1]:  # noqa: B007 (its last value is read)
        pass
    b[0] -= s * q
    return np.sum(b * b)


def test_what_a_loop_over_a_view_leaves_is_not_written():
    """Seed 70285: the last row of b[::-1] is b[0], and its tangent was written with the tangent of b."""
    b, s, db, ds = np.arange(6.0).reshape(3, 2) + 0.3, 0.7, np.cos(np.arange(6.0)).reshape(3, 2), 0.3
    df = gs.grad(last_of_a_view, (0, 1))
    moved = gs.jvp(df, (b.copy(), s), (db.copy(), ds))[1]
    h = 1e-5
    for found, plus, minus in zip(moved, df(b + h * db, s + h * ds), df(b - h * db, s - h * ds)):
        np.testing.assert_allclose(found, (plus - minus) / (2 * h), rtol=1e-7, atol=1e-7)


def columns_added_to_in_one_branch(x):
    """The adjoint of a repeated index is a statement, in a branch that returns as well."""
    b = np.outer(x, np.cos(x))
    if x[0] > 0.2:
        b[:, np.array([2, 2])] += np.sin(np.broadcast_to(x[1], (3, 2)))
    else:
        b[1, 2] += x[1]
    return np.sum(b ** 2)


def columns_of_an_argument(b, s):
    if len(b) > 2 and s > 0:
        b[:, np.array([2, 2])] += np.sin(np.broadcast_to(s, (3, 2)))
    return np.sum(b ** 2)


@pytest.mark.parametrize("x", [X, X * [-1, 1, 1]])
def test_a_repeated_index_in_a_branch(x):
    np.testing.assert_allclose(gs.grad(columns_added_to_in_one_branch)(x), differences(
        columns_added_to_in_one_branch, x), rtol=1e-7)
    b = np.outer(x, x)
    for s in (0.4, -0.4):
        db, ds = gs.grad(columns_of_an_argument, (0, 1))(b.copy(), s)
        want = differences(lambda p: columns_of_an_argument(p[:9].reshape(3, 3).copy(), p[9]),
                           np.concatenate([b.ravel(), [s]]))
        np.testing.assert_allclose(np.concatenate([db.ravel(), [ds]]), want, rtol=1e-6, atol=1e-8)


def copied_in_a_loop_then_changed(a, b):
    """What an inner loop hands on is another's array, which the loop around changes: the one is a copy."""
    for _ in range(2):
        for _ in a:
            h = a.copy()
        a[-1, 2] += b
    return np.sum(np.sin(h))


def test_second_derivatives_where_a_loop_hands_on_what_is_changed():
    a, b, v = np.array([[-0.4, -0.7, 0.1, 1.4]]), 0.13, np.array([[0.3, -0.7, 1.1, 0.2]])

    def dotted(a, b):
        da, db = gs.grad(copied_in_a_loop_then_changed, (0, 1))(a, b)
        return np.sum(da * v) + 0.5 * db

    da, db = gs.grad(dotted, (0, 1))(a.copy(), b)
    want = differences(lambda p: dotted(p[:4].reshape(1, 4), p[4]), np.append(a, b))
    np.testing.assert_allclose(np.append(da, db), want, rtol=1e-6, atol=1e-8)


def test_a_tuple_of_one_that_is_unpacked():
    def f(p, x):
        (g,), h = p
        [k] = h
        return np.sum(g * k * x)
    p, x = ((np.arange(3.0),), [np.ones(3)]), np.ones((2, 3))
    (dg,), (dk,) = gs.grad(f)(p, x)
    assert dg.shape == dk.shape == (3,)
    np.testing.assert_array_equal(dg, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(dk, [0.0, 2.0, 4.0])


def test_the_only_axis_is_squeezed():
    def f(x, k):
        return np.squeeze(np.take_along_axis(x, np.expand_dims(k, -1), axis=-1), axis=-1) ** 2
    np.testing.assert_array_equal(gs.grad(f)(np.array([1.0, 2.0, 3.0]), np.array(1)), [0.0, 4.0, 0.0])
    np.testing.assert_array_equal(gs.grad(lambda x: np.squeeze(x, axis=(0, 1)) ** 2)(np.array([[3.0]])), [[6.0]])


def test_shapes_are_compared():
    def f(a, b):
        if a.shape != b.shape:
            raise ValueError("two shapes")
        if np.shape(a) == np.shape(a * 2) and len(a) == a.shape[0]:
            return np.sum(a * b)
        return np.sum(a)
    a = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(gs.grad(f)(a, 2 * a), 2 * a)
    assert "len(" not in gs.grad(f).source and gs.grad(f).source_for(a, a).count("if ") == 1
    with pytest.raises((ValueError, gs.ShapeError), match="two shapes|do not broadcast"):
        gs.grad(f)(a, np.ones((2, 2)))
    np.testing.assert_array_equal(gs.jit(gs.grad(f))(a, 2 * a), 2 * a)


def test_a_list_of_empty_tuples_is_gone_through():
    def each(parts, x):
        for p in parts:
            if x[0] > 0:
                x = x * (2.0 + len(p))
        return x
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(each([(), ()], x)))(np.ones(3)), [4.0, 4.0, 4.0])


def test_a_number_in_the_text_of_a_raise_over_a_batch():
    def f(x, k):
        length = x.shape[-1]
        if k > length:
            raise ValueError(f"no {length}")
        return x * 2
    np.testing.assert_array_equal(gs.vmap(lambda x: f(x, 3))(np.ones((3, 5))), np.full((3, 5), 2.0))
    with pytest.raises(ValueError, match="no 5"):
        gs.vmap(lambda x: f(x, 7))(np.ones((3, 5)))


def test_what_is_known_of_functions_and_dtypes():
    def f(x, join):
        if np.iscomplexobj(x) or not np.isrealobj(x):
            return np.real(np.sum(x))
        return np.sum(x) if join is np.add else np.sum(join(x, x))
    g = gs.grad(lambda x: f(x, lambda a, b: a * b))
    np.testing.assert_array_equal(g(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert "iscomplexobj" not in g.source
    np.testing.assert_array_equal(gs.grad(lambda x: f(x, np.add))(np.arange(3.0)), [1.0, 1.0, 1.0])


def smallest_of_scaled(s, b):
    total = 0.0
    for _ in range(3):
        u = np.min((1.5 + np.sin(np.full(4, s))) ** b * (s / (2.0 + np.cos(s))))
        total = total + u
        s = s * b[0]
    return total


def test_a_number_that_becomes_double_in_the_first_pass():
    """The smallest is looked for again on the way back, among entries that must be computed as they were."""
    b = np.array([0.9, 0.8, 1.1, 0.3])
    expected = gs.grad(smallest_of_scaled, (0, 1))(0.3, b)
    for s in (np.float32(0.3), np.float64(0.3)):
        for derived in (gs.grad(smallest_of_scaled, (0, 1)), gs.jit(gs.grad(smallest_of_scaled, (0, 1)))):
            ds, db = derived(s, b)
            assert ds.dtype == s.dtype
            np.testing.assert_allclose(ds, expected[0], rtol=1e-6)
            np.testing.assert_allclose(db, expected[1], rtol=1e-6)


def shaped_by_an_arm(a, b):
    for _ in a:
        if b.shape[0] > 2:
            v = a
        else:
            v = np.tensordot(a, np.ones((2, b.shape[0])), axes=1)
    return np.sum(v * v)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_array_that_every_pass_sets_and_whose_length_is_that_of_an_arm(n):
    """The passes before the last have an adjoint of zeros, which is made as long as an arm's rule needs it."""
    a = np.array([0.3, -0.8])
    np.testing.assert_allclose(gs.grad(shaped_by_an_arm)(a, np.ones(n)), differences(
        lambda a: shaped_by_an_arm(a, np.ones(n)), a), rtol=1e-8)


@pytest.mark.parametrize("total", [
    lambda a: sum([a]), lambda a: sum(v for v in [a]), lambda a: sum({"a": a}.values()), lambda a: sum((a,), start=0)])
def test_the_sum_of_one_array_is_a_new_one(total):
    def f(a):
        c = total(a)
        c *= 0.5
        return np.sum(a * a) + np.sum(c)
    a = np.array([1.0, 2.0])
    for derived in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_array_equal(derived(a), [2.5, 4.5])
    np.testing.assert_array_equal(a, [1.0, 2.0])


def test_the_sum_of_truth_values_counts_them():
    def f(x, y):
        return np.sum(sum([x > 0, y > 0, x > y]) * x)
    x, y = np.array([1.0, 2.0, -1.0]), np.array([0.5, -3.0, -2.0])
    assert gs.value_and_grad(f)(x, y)[0] == f(x, y) == 6.0
    np.testing.assert_array_equal(gs.grad(f)(x, y), [3.0, 2.0, 1.0])


def halved(t):
    for _ in range(3):
        t[t > 0.23] = 0.5
        t = t
    return t


def set_first(t):
    t[0] = 0.5
    return t


def doubled(t):
    t *= 2
    return 3.0


def added_to_itself_changed(a, n):
    for _ in range(n):
        a += set_first(a)
    return np.sum(a * a)


@pytest.mark.parametrize("f", [
    lambda a: added_to_itself_changed(a, 1), lambda a: added_to_itself_changed(a, 2)], ids=["once", "in a loop"])
def test_what_is_added_changes_what_it_is_added_to(f):
    check_a_write_in_an_expression(f)


def entry_plus(a):
    a[0] += doubled(a)
    return np.sum(a * a)


def part_plus(a):
    a[:2] += set_first(a)[:2]
    return np.sum(a * a)


def entries_plus(a):
    a[[0, 2]] += set_first(a)[:2]
    return np.sum(a * a)


def masked_plus(a):
    a[a > 0] += doubled(a)
    return np.sum(a * a)


def view_plus(a):
    b = a[1:]
    b += set_first(a)[0] * b
    return np.sum(a * a)


def index_that_writes(a):
    return a[int(doubled(a)) - 2] ** 2 + a[0]


def halved_twice(a):
    a = a * 1.0
    for _ in range(2):
        a += halved(a)
    return np.sum(a * a)


@pytest.mark.parametrize("f", [entry_plus, part_plus, entries_plus, masked_plus, view_plus, index_that_writes,
                               halved_twice])
def test_an_expression_that_writes_into_what_it_has_read(f):
    """Python has read a number before the write, and sees it in an array and its views."""
    check_a_write_in_an_expression(f)


def check_a_write_in_an_expression(f):
    for x in (np.array([0.1, 0.9, -0.5]), np.array([0.7, -0.2, 0.5])):
        value, gradient = gs.value_and_grad(f)(x)
        assert value == pytest.approx(f(x.copy()), rel=1e-14)
        np.testing.assert_allclose(gradient, differences(f, x), atol=1e-8)


def kept_while_written(x):
    a = x * 1.0
    for i in range(3):
        a *= 0.7
        if a[i] > 0.3:
            d = a
    return np.sum(d * x)


def kept_in_an_inner_loop(x):
    a = x * 1.0
    for i in range(3):
        a *= 0.7
        if a[i] > 0.3:
            for _ in range(2):
                d = a
    return np.sum(d * x)


def a_view_kept(x):
    a = x * 1.0
    for i in range(3):
        a *= 0.7
        if a[i] > 0.3:
            d = a[1:]
    return np.sum(d ** 2)


def set_again_in_an_inner_loop(x):
    a = x * 1.0
    for i in range(3):
        if a[i] > 0.3:
            d = a * 2
        for _ in range(2):
            if a[i] > 0.9:
                d = a * 3
        a = a * 0.9
    return np.sum(d ** 2)


def written_in_an_inner_loop(x):
    a = x * 1.0
    for i in range(3):
        if a[i] > 0.3:
            d = a * 2
        j = 0
        while j < 2:
            if a[i] > 0.9:
                d[0] = 3.0
            j += 1
        a = a * 0.9
    return np.sum(d ** 2)


def multiplied_in_an_inner_loop(x):
    a = x * 1.0
    for i in range(3):
        if a[i] > 0.3:
            d = a * 2
        for _ in range(2):
            if a[i] > 0.9:
                d *= 3
        a = a * 0.9
    return np.sum(d ** 2)


def set_in_fewer_and_fewer_passes(x):
    a = x * 1.0
    for i in range(3):
        for _ in range(2 - i):
            d = a * 2.0
        a = a * 0.9
    return np.sum(d ** 2)


@pytest.mark.parametrize("x", [(1.5, 0.6, 0.95), (1.5, 0.1, 0.1), (1.5, 1.7, 0.1)])
@pytest.mark.parametrize("f", [kept_while_written, kept_in_an_inner_loop, a_view_kept, set_again_in_an_inner_loop,
                               written_in_an_inner_loop, multiplied_in_an_inner_loop, set_in_fewer_and_fewer_passes])
def test_a_name_that_some_passes_set_shows_what_later_passes_write(f, x):
    x = np.array(x)
    for value_and_gradient in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
        value, gradient = value_and_gradient(x)
        assert value == pytest.approx(f(x), rel=1e-14)
        np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-8, atol=1e-8)


def read_and_written_after(a):
    for row in a * 1.0:
        np.sum(row)
    out = [np.arctan2(row, 2.0) for _ in range(3)]
    for _ in out:
        for _, g in enumerate(row):
            g *= 0.4
    return out[1].sum() + np.sum(row)


def read_and_a_copy_written(a):
    for i in range(len(a)):
        row = a[i] * 1.0
    b, out = row, np.sin(row)
    for _ in range(3):
        b = b * row
        b[0] = 3
    return np.sum(out) + np.sum(row * b)


@pytest.mark.parametrize("f", [read_and_written_after, read_and_a_copy_written])
def test_what_a_loop_sets_is_read_and_then_written(f):
    """The array that is written is a copy: the value before is read once more, in the backward sweep."""
    a = np.linspace(-0.4, 1.0, 6).reshape(3, 2)
    for x in (a, a.reshape(3, 1, 2), a[:1].copy()):
        np.testing.assert_allclose(gs.grad(f)(x), differences(f, x.copy()), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x), differences(f, x.copy()), rtol=1e-8, atol=1e-8)


def scalars_stacked_over_and_over(x):
    s = np.sum(x)
    a = np.tile([0.7, 0.7, 0.7, 0.7, s], 2)
    for _ in range(3):
        b = a * 1.0
    return np.hstack([s, b])


def added_to_itself(s):
    t = s
    for _ in range(2):
        t = t + s
    return t


def test_seeds_and_arguments_without_axes_stay_as_they_are():
    """+= on an array without axes, unlike on a number, would change it."""
    x, weights = np.arange(3.0), np.arange(11.0)
    for _ in range(2):
        np.testing.assert_array_equal(gs.vjp(scalars_stacked_over_and_over, x)[1](weights)[0], [15.0, 15.0, 15.0])
    np.testing.assert_array_equal(weights, np.arange(11.0))
    s, seed = np.array(1.0), np.array(2.0)
    for _ in range(2):
        assert gs.jvp(added_to_itself, (s,), (seed,)) == (3.0, 6.0)
        assert gs.vjp(added_to_itself, s)[1](seed) == (6.0,)
        assert gs.jit(lambda s, dot: gs.jvp(added_to_itself, (s,), (dot,)))(s, seed) == (3.0, 6.0)
    assert s == 1.0 and seed == 2.0


TWO = np.array([0.0, 0.3])


def set_in_an_inner_loop(x):
    above, i = x[x > 0.0], 0
    while i < 2:
        for _ in range(above.shape[0]):
            u = TWO
        i += 1
    return u


def test_compiled_what_is_first_set_in_an_inner_loop_has_its_own_length():
    x = np.array([-0.5, 0.1, -1.0, 0.6])
    np.testing.assert_array_equal(gs.jit(set_in_an_inner_loop)(x), TWO)


def longer_from_the_first_inner_pass_on(x):
    a = x * 1.0
    for _ in x:
        for _ in x:
            a = np.pad((x[0], 0.7, 0.7), 1)
    return np.sum(a ** 2)


def shorter_in_each_pass(x):
    a = x.copy()
    for _ in range(3):
        a = a[1:]
        b = a[:1]
    return np.sum(b * b)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
@pytest.mark.parametrize("f", [longer_from_the_first_inner_pass_on, shorter_in_each_pass])
def test_lengths_that_change_in_the_passes_of_an_inner_loop(f, n):
    x = np.arange(1.0, n + 1)
    for derived in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(derived(x), differences(f, x), rtol=1e-8, atol=1e-8)


def first_entry(v):
    return v[:1]


@gs.rule.linear(first_entry, "v")
class first_entry_rule:
    def vjp_v(dy, v):
        return np.concatenate((dy, np.zeros_like(v[1:])))


def first_of_fewer_and_fewer(x):
    a = x.copy()
    for _ in range(3):
        a = a[1:]
        b = first_entry(a)
    return np.sum(b * b)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_first_entry_of_what_may_have_none(n):
    """first_entry gives one entry for all lengths but 0: the length of a[1:] may be 0 where that of a is 1."""
    x = np.arange(1.0, n + 1)
    np.testing.assert_allclose(gs.grad(first_of_fewer_and_fewer)(x), differences(first_of_fewer_and_fewer, x),
                               rtol=1e-8, atol=1e-8)


def cube(x):
    return x ** 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scalars_of_numpy_from_outside(dtype):
    """A NumPy scalar that a function reads from outside is differentiated where it is handed to gs.grad inside."""
    two, pull = dtype(2.0), gs.vjp_of(cube)

    def f(v):
        return gs.grad(cube)(two) * v + pull(v, two)[0] + gs.jvp(cube, (two,), (v,))[1] + gs.jacfwd(cube)(two) * v
    assert gs.grad(f)(3.0) == gs.jit(gs.grad(f))(3.0) == 48.0
    assert gs.jit(f)(3.0) == 144.0


class Mark:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return isinstance(other, Mark) and self.k == other.k

    __hash__ = None


OUTSIDE = Mark(1)


@pytest.mark.parametrize("f", [
    lambda x: (Mark(1),) == (OUTSIDE,), lambda x: [x, {"k": Mark(2)}][1] == {"k": OUTSIDE},
    lambda x: (OUTSIDE,) != (Mark(1),), lambda x: OUTSIDE in [Mark(2), Mark(1)], lambda x: Mark(1) in (OUTSIDE,),
    lambda x: [Mark(1)].count(OUTSIDE), lambda x: [OUTSIDE, None, Mark(3)] == [Mark(1), None, Mark(3)],
    lambda x: (Mark(1), 1) == (1, OUTSIDE)])
def test_objects_from_outside_among_others(f):
    assert gs.jit(f)(X) == f(X)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.float32])
def test_short_arrays_of_narrow_dtypes_are_added_to(dtype):
    """Compiled, short arrays are numbers: a sum of two stays in their dtype, and wraps around."""
    def f(x, y):
        z = np.zeros_like(x)
        for _ in range(6):
            z += y
            z[0] += y[1]
            z[1] -= x[0]
            z = z * x
        return z, z.astype(np.float64) / 3
    x, y = np.array([101, 57], dtype), np.array([43, 119], dtype)
    for ours, expected in zip(gs.jit(f)(x, y), f(x, y)):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
