"""Arrays with labels or units, of pandas, xarray and pint: values go in, results come back in kind."""
import collections
import copy
import dataclasses
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled

TRANSFORMS = {"eager": lambda f: f, "jit": gs.jit}


def squares(x):
    return np.sum(x ** 2)


def fit(w, X, y):
    return np.mean((X @ w - y) ** 2)


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture
def xr():
    return pytest.importorskip("xarray")


@pytest.fixture
def unit():
    return pytest.importorskip("pint").UnitRegistry()


@pytest.fixture
def series(pd):
    return pd.Series([1.0, 2.0, 4.0], index=["a", "b", "c"], name="w")


@pytest.fixture
def track(xr):
    return xr.DataArray([[1.0, 2.0], [3.0, 5.0]], dims=("t", "s"), name="T", attrs={"units": "K"},
                        coords={"t": [10, 20], "s": ["u", "v"], "height": ("s", [0.5, 1.5])})


def is_series(got, index, values, name=None, dtype=np.float64):
    assert type(got).__name__ == "Series"
    assert list(got.index) == list(index) and got.name == name and got.dtype == dtype
    np.testing.assert_allclose(got.to_numpy(), values, rtol=1e-12)


def is_quantity(got, values, unit, rtol=1e-12):
    assert got.units == unit
    np.testing.assert_allclose(got.magnitude, values, rtol=rtol)


@pytest.mark.parametrize("how", TRANSFORMS)
class TestPandas:
    def test_series(self, series, how):
        for _ in range(2):
            is_series(TRANSFORMS[how](gs.grad(squares))(series), "abc", [2, 4, 8], "w")
        value, slope = TRANSFORMS[how](gs.value_and_grad(squares))(series)
        assert value == 21.0 and not hasattr(value, "index")
        is_series(slope, "abc", [2, 4, 8], "w")

    def test_single_precision_and_complex_numbers(self, pd, series, how):
        is_series(TRANSFORMS[how](gs.grad(squares))(series.astype(np.float32)), "abc", [2, 4, 8], "w", np.float32)
        got = gs.grad(squares)(pd.Series([1, 2], dtype=np.float16))
        assert got.dtype == np.float16 and list(got) == [2, 4]
        got = TRANSFORMS[how](gs.grad(lambda z: np.sum(np.abs(z) ** 2)))(pd.Series([1 + 2j]))
        is_series(got, [0], [2 - 4j], None, np.complex128)

    @pytest.mark.parametrize("count", [0, 1])
    def test_short(self, series, how, count):
        is_series(TRANSFORMS[how](gs.grad(squares))(series[:count]), "abc"[:count], [2.0] * count, "w")

    def test_other_labels_of_the_same_shape(self, pd, how):
        made = TRANSFORMS[how](gs.grad(squares))
        made(np.array([1.0, 3.0]))
        before = len(made.versions)
        for index in ("ab", "cd", "ab"):
            is_series(made(pd.Series([1.0, 3.0], index=list(index))), index, [2, 6])
        assert len(made.versions) == before

    def test_frame_and_several_arguments(self, pd, how):
        X = pd.DataFrame({"one": [1.0, 1, 1], "age": [1.0, 2, 4]}, index=["p", "q", "r"])
        y, w = pd.Series([1.0, 2.0, 3.0], index=X.index), pd.Series([0.5, -1.0], index=X.columns)
        dw, dX, dy = TRANSFORMS[how](gs.grad(fit, argnums=(0, 1, 2)))(w, X, y)
        plain = gs.grad(fit, argnums=(0, 1, 2))(w.to_numpy(), X.to_numpy(), y.to_numpy())
        is_series(dw, X.columns, plain[0])
        is_series(dy, "pqr", plain[2])
        pd.testing.assert_frame_equal(dX, pd.DataFrame(plain[1], index=X.index, columns=X.columns))
        assert X.equals(pd.DataFrame({"one": [1.0, 1, 1], "age": [1.0, 2, 4]}, index=["p", "q", "r"]))

    def test_in_a_tree(self, series, how):
        def f(p, *, scale):
            return np.sum(p["b"][0] * p["a"] ** 2) * scale

        made = TRANSFORMS[how](gs.grad(f))
        got = made({"b": (series,), "a": series}, scale=2.0)
        assert list(got) == ["b", "a"]
        is_series(got["a"], "abc", 4 * series.to_numpy() ** 2, "w")
        is_series(got["b"][0], "abc", 2 * series.to_numpy() ** 2, "w")

    def test_integers_where_nothing_is_differentiated(self, pd, how):
        got = TRANSFORMS[how](gs.grad(lambda x, n: np.sum(x * n)))(pd.Series([1.0, 2.0]), pd.Series([3, 4]))
        is_series(got, [0, 1], [3, 4])

    def test_levels(self, pd, how):
        index = pd.MultiIndex.from_product([["u", "v"], [1, 2]], names=["p", "q"])
        got = TRANSFORMS[how](gs.grad(squares))(pd.Series(np.arange(4.0), index=index))
        assert got.index.equals(index) and got.index.names == ["p", "q"]

    def test_values_have_the_labels_that_the_function_gives(self, series, how):
        is_series(TRANSFORMS[how](np.sin if how == "eager" else lambda x: np.sin(x))(series), "abc",
                  np.sin(series.to_numpy()), "w")

    def test_writes(self, series, how):
        def f(x):
            x[0] = 3 * x[1]
            return np.sum(x ** 2)

        before = series.copy()
        is_series(TRANSFORMS[how](gs.grad(f))(series.reset_index(drop=True)), [0, 1, 2], [0, 40, 8], "w")
        assert series.equals(before)


@pytest.mark.parametrize("f", [lambda X: X.mean(), lambda X: np.sum(X.sum() ** 2), lambda X: np.sum(X[0] ** 2)],
                         ids=["mean", "sum", "columns"])
def test_what_means_something_else_for_a_frame(pd, f):
    with pytest.raises(gs.KindError, match="means something else for a DataFrame"):
        gs.grad(f)(pd.DataFrame([[1.0, 2.0], [3.0, 5.0], [3.0, 4.0]]))


def test_a_label_that_is_a_number(pd):
    with pytest.raises(gs.KindError, match="means something else for a Series"):
        gs.grad(lambda x: x[0] ** 2)(pd.Series([1.0, 2.0], index=[1, 0]))
    with pytest.raises(gs.TransformError, match="no attribute loc"):
        gs.grad(lambda x: x.loc[0] ** 2)(pd.Series([1.0, 2.0]))


@pytest.mark.parametrize("f", [lambda x: x.std(), lambda x: x.var() + np.sum(x)], ids=["std", "var"])
def test_a_method_that_means_something_else_is_refused(series, f):
    for _ in range(2):
        with pytest.raises(gs.KindError, match="means something else for a Series"):
            gs.grad(f)(series)
    with pytest.raises(gs.KindError, match="means something else"):         # at equal numbers both are 0
        gs.grad(f)(0 * series)
    assert gs.grad(f)(series.to_numpy()).shape == (3,)


def test_labels_that_do_not_align_are_refused(pd, series):
    f = gs.grad(lambda x, y: np.sum(x * y))
    is_series(f(series, series), "abc", series.to_numpy(), "w")
    with pytest.raises(gs.KindError, match="means something else"):
        f(series, series[::-1])
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    with pytest.raises(gs.KindError, match="means something else|does not take"):
        gs.grad(fit)(pd.Series([1.0, 2.0], index=["b", "a"]), X, pd.Series([0.0, 0.0]))
    with pytest.raises(gs.KindError, match="does not take these objects"):
        gs.grad(fit)(pd.Series([1.0, 2.0], index=["b", "c"]), X, pd.Series([0.0, 0.0]))


def test_numbers_that_pandas_leaves_out_are_refused(pd):
    with pytest.raises(gs.KindError, match="nan"):
        gs.grad(squares)(pd.Series([1.0, np.nan]))
    top = gs.grad(lambda x: np.max(x))
    is_series(top(pd.Series([1.0, 2.0])), [0, 1], [0, 1])
    with pytest.raises(gs.KindError, match="nan"):
        top(pd.Series([1.0, np.nan]))
    kept = gs.grad(lambda x, n: np.sum(x[:n] ** 2))         # what is not read may be NaN
    is_series(kept(pd.Series([3.0, np.nan]), 1), [0, 1], [6, 0])
    with pytest.raises(gs.KindError, match="nan"):
        kept(pd.Series([np.nan, 3.0]), 1)


def test_indices_by_label_and_by_place(pd):
    chosen = gs.grad(lambda x, k: np.sum(x[k] ** 2))
    x = pd.Series([1.0, 2.0, 4.0], index=[0, 2, 1])
    is_series(chosen(x, np.array([0])), x.index, [2, 0, 0])
    with pytest.raises(gs.KindError, match="means something else"):
        chosen(x, np.array([1]))


@pytest.mark.parametrize("dtype", ["string", "category", "Float64"])
def test_other_dtypes_of_pandas(pd, dtype):
    with pytest.raises(gs.KindError, match="not one NumPy array of numbers"):
        gs.grad(squares)(pd.Series([1.0, 2.0]).astype(dtype))
    with pytest.raises(gs.KindError, match="not one NumPy array of numbers: see b"):
        gs.grad(squares)(pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([1.0, 2.0]).astype(dtype)}))


def test_a_subclass_is_not_taken_for_its_parent(pd):
    class Named(pd.Series):
        pass

    with pytest.raises(gs.TransformError, match="Named"):
        gs.grad(squares)(Named([1.0]))


def test_a_function_for_arrays_only(series):
    """One object, whose methods the function does not use: it cannot mean anything else."""
    is_series(gs.grad(lambda x: np.sum(x.reshape(3, 1) ** 2))(series), "abc", [2, 4, 8], "w")
    got = gs.jit(lambda x: x.reshape(3, 1) * 2)(series)
    assert type(got) is np.ndarray and got.shape == (3, 1)


@pytest.mark.parametrize("how", TRANSFORMS)
class TestXarray:
    def test_array(self, track, how):
        value, got = TRANSFORMS[how](gs.value_and_grad(squares))(track)
        assert value.item() == 39.0 and value.dims == ()
        assert got.identical((2 * track).drop_attrs().rename("T")) and got.attrs == {}
        assert "height" in got.coords and track.attrs == {"units": "K"}

    def test_set(self, xr, track, how):
        data = xr.Dataset({"x": track, "y": ("t", [1.0, 2.0])})
        got = TRANSFORMS[how](gs.grad(lambda d: np.sum(d["x"] ** 2) + 3.0 * np.sum(d["y"])))(data)
        assert list(got) == ["x", "y"] and got["x"].dims == ("t", "s")
        np.testing.assert_allclose(got["x"], 2 * track)
        np.testing.assert_allclose(got["y"], [3.0, 3.0])
        assert got.coords.equals(data.coords)

    def test_names_of_dimensions_that_broadcast(self, xr, track, how):
        f = TRANSFORMS[how](gs.grad(lambda x, y: np.sum(x * y)))
        np.testing.assert_allclose(f(track, xr.DataArray([2.0, 3.0], dims="s")), [[2, 3], [2, 3]])
        with pytest.raises(gs.KindError, match="means something else"):
            f(track, xr.DataArray([2.0, 3.0], dims="t"))

    def test_quantities_inside(self, xr, unit, how):
        value, got = TRANSFORMS[how](gs.value_and_grad(squares))(
            xr.DataArray(unit.Quantity(np.array([1.0, 2.0]), "km"), dims="t"))
        is_quantity(value.data, 5.0, unit.km ** 2)
        is_quantity(got.data, [2.0, 4.0], unit.km)
        assert got.dims == ("t",)


def test_jacobians_of_labelled_arrays(pd, series, track):
    got = gs.hessian(squares)(series)
    assert list(got.index) == list(got.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(got, 2 * np.eye(3))
    got = gs.jacfwd(lambda x: x[:2] * 3.0)(series)
    assert list(got.index) == ["a", "b"] and list(got.columns) == ["a", "b", "c"]
    got = gs.hessian(squares)(track)
    assert got.dims == ("t", "s", "t_in", "s_in") and got.shape == (2, 2, 2, 2)
    assert got.sel(t=20, s="u", t_in=20, s_in="u") == 2.0
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert type(gs.hessian(squares)(frame)) is np.ndarray and gs.hessian(squares)(frame).shape == (2, 1, 2, 1)
    mixed = gs.hessian(lambda p: np.sum(p["a"] ** 2) * p["b"])({"a": series, "b": 2.0})
    is_series(mixed["a"]["b"], "abc", [2, 4, 8], "w")
    is_series(mixed["b"]["a"], "abc", [2, 4, 8], "w")
    assert mixed["b"]["b"] == 0.0 and list(mixed["a"]["a"].columns) == ["a", "b", "c"]


def test_tangents_and_adjoints_of_labelled_arrays(series):
    y, y_dot = gs.jvp(lambda x: x ** 2, (series,), (series,))
    is_series(y, "abc", [1, 4, 16], "w")
    is_series(y_dot, "abc", [2, 8, 32], "w")
    is_series(gs.jvp(lambda x: x ** 2, (series,), (np.ones(3),))[1], "abc", [2, 4, 8], "w")
    y, pull = gs.vjp(lambda x: x ** 2, series)
    is_series(y, "abc", [1, 4, 16], "w")
    is_series(pull(np.ones(3))[0], "abc", [2, 4, 8], "w")
    is_series(pull(series)[0], "abc", [2, 8, 32], "w")
    assert "def " in pull.source
    y, push, aux = gs.linearize(lambda x: (x ** 2, x + 1), series, has_aux=True)
    is_series(push(series), "abc", [2, 8, 32], "w")
    is_series(aux, "abc", [2, 3, 5], "w")
    y, pull, aux = gs.vjp(lambda x: (x ** 2, x + 1), series, has_aux=True)
    is_series(pull(series)[0], "abc", [2, 8, 32], "w")
    is_series(aux, "abc", [2, 3, 5], "w")
    is_series(gs.hvp(squares, (series,), (series,)), "abc", [2, 4, 8], "w")
    other = series.rename({"a": "z"})
    with pytest.raises(gs.KindError, match="a tangent has other labels than its primal"):
        gs.jvp(np.sin, (series,), (other,))
    with pytest.raises(gs.KindError, match="an adjoint has other labels than its result"):
        gs.vjp(lambda x: x ** 2, series)[1](other)


def test_nested(series):
    is_series(gs.grad(lambda x: np.sum(gs.grad(squares)(x) ** 2))(series), "abc", [8, 16, 32], "w")
    is_series(gs.jit(gs.grad(lambda x: np.sum(gs.grad(squares)(x) ** 2)))(series), "abc", [8, 16, 32], "w")
    is_series(gs.grad(gs.checkpoint(squares))(series), "abc", [2, 4, 8], "w")
    slope, aux = gs.grad(lambda x: (np.sum(x ** 2), {"half": x / 2}), has_aux=True)(series)
    is_series(slope, "abc", [2, 4, 8], "w")
    is_series(aux["half"], "abc", [0.5, 1, 2], "w")


@pytest.fixture
def table(pd):
    return pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 5.0, 6.0]}, index=list("pqr"))


@pytest.mark.parametrize("how", TRANSFORMS)
class TestBatches:
    def test_numbers_of_rows_and_columns(self, table, how):
        is_series(TRANSFORMS[how](gs.vmap(squares))(table), "pqr", [10, 29, 52])
        is_series(TRANSFORMS[how](gs.vmap(squares, in_axes=1))(table), "ab", [21, 70])
        is_series(TRANSFORMS[how](gs.vmap(lambda x: np.sin(x)))(table["a"]), "pqr", np.sin([1, 2, 4]))
        made = TRANSFORMS[how](gs.vmap(lambda x, y: np.sum(x) * y))
        is_series(made(table, np.array([1.0, 2.0, 3.0])), "pqr", [4, 14, 30])
        is_series(made(table, y=table["a"]), "pqr", [4, 14, 40])

    @pytest.mark.parametrize("axis, out", [(0, 0), (0, 1), (1, 0), (1, 1), (-1, -1)])
    def test_labels_of_examples(self, pd, table, how, axis, out):
        got = TRANSFORMS[how](gs.vmap(lambda x: 2 * x, in_axes=axis, out_axes=out))(table)
        pd.testing.assert_frame_equal(got, 2 * (table if axis % 2 == out % 2 else table.T))

    def test_gradients_of_examples(self, pd, table, how):
        w, y = pd.Series([1.0, 2.0], index=["a", "b"]), pd.Series([1.0, 2.0, 3.0], index=list("pqr"))
        made = TRANSFORMS[how](gs.vmap(gs.grad(lambda w, x, y: (x @ w - y) ** 2), in_axes=(None, 0, 0)))
        residuals = table.to_numpy() @ [1.0, 2.0] - y.to_numpy()
        pd.testing.assert_frame_equal(made(w, table, y), table.mul(2 * residuals, axis=0))
        with pytest.raises(gs.KindError, match="labels along the mapped axis of a Series"):
            made(w, table, y[::-1])
        with pytest.raises(gs.KindError, match="does not take these|means something else"):
            made(w[::-1], table, y)

    def test_trees_and_what_has_no_labels(self, pd, table, how):
        w = pd.Series([1.0, 2.0], index=["a", "b"])
        got = TRANSFORMS[how](gs.vmap(lambda p: {"x": p["x"] * p["w"], "n": np.sum(p["x"]), "w": p["w"]},
                                      in_axes=({"x": 0, "w": None},), out_axes={"x": 1, "n": 0, "w": None}))(
            {"x": table, "w": w})
        pd.testing.assert_frame_equal(got["x"], (table * w).T)
        is_series(got["n"], "pqr", [4, 7, 10])
        is_series(got["w"], "ab", [1, 2])
        for f in (lambda x: x.reshape(2, 1), lambda x: np.ones(2) * np.sum(x)):
            assert type(TRANSFORMS[how](gs.vmap(f))(table)) is np.ndarray
        assert TRANSFORMS[how](gs.vmap(squares))(table[:0]).shape == (0,)

    def test_nested(self, pd, table, how):
        pd.testing.assert_frame_equal(TRANSFORMS[how](gs.vmap(gs.vmap(lambda x: x ** 2)))(table), table ** 2)
        got = TRANSFORMS[how](gs.grad(lambda X: np.sum(gs.vmap(lambda x: np.sum(x ** 3))(X))))(table)
        pd.testing.assert_frame_equal(got, 3 * table ** 2)

    def test_what_means_something_else_for_an_example(self, table, how):
        with pytest.raises(gs.KindError, match="means something else for a Series"):
            TRANSFORMS[how](gs.vmap(lambda x: x.std()))(table)

    @pytest.mark.parametrize("axis, out", [(0, 0), (1, 0), (1, 1), (-2, -1)])
    def test_dimensions(self, track, how, axis, out):
        got = TRANSFORMS[how](gs.vmap(lambda x: 2 * x, in_axes=axis, out_axes=out))(track)
        expected = (2 * track).drop_attrs()
        assert got.identical(expected if axis % 2 == out % 2 else expected.transpose())
        got = TRANSFORMS[how](gs.vmap(squares, in_axes=axis))(track)
        assert got.equals((track ** 2).sum("s" if axis % 2 == 0 else "t"))
        assert ("height" in got.coords) == (axis % 2 == 1)

    def test_dimensions_that_do_not_fit(self, xr, track, how):
        made = TRANSFORMS[how](gs.vmap(lambda x, y: np.sum(x * y)))
        with pytest.raises(gs.KindError, match="labels along the mapped axis of a DataArray"):
            made(track, track.assign_coords(t=[1, 2]))
        got = TRANSFORMS[how](gs.vmap(lambda x, y: np.sum(x * y), in_axes=(0, 1)))(track, track.transpose())
        np.testing.assert_array_equal(got, [5, 34])
        data = xr.Dataset({"x": track, "y": ("t", [1.0, 2.0])})
        got = TRANSFORMS[how](gs.vmap(lambda d: np.sum(d["x"]) * d["y"]))(data)
        np.testing.assert_array_equal(got, [3, 16])

    def test_quantities(self, xr, unit, how):
        x = unit.Quantity(np.array([1.0, 2.0]), "cm")
        is_quantity(TRANSFORMS[how](gs.vmap(lambda x: x ** 2))(x), [1, 4], unit.cm ** 2)
        made = TRANSFORMS[how](gs.vmap(gs.grad(lambda x, k: k * x ** 2), in_axes=(0, None)))
        got = made(x, unit.Quantity(2.0, "N/cm"))
        is_quantity(got, [4, 8], unit.N)
        with pytest.raises(gs.KindError, match="DimensionalityError"):
            TRANSFORMS[how](gs.vmap(lambda x: np.exp(x)))(x)
        got = TRANSFORMS[how](gs.vmap(squares))(xr.DataArray(x[None], dims=("t", "s"), coords={"t": [7]}))
        is_quantity(got.data, [5], unit.cm ** 2)
        assert got.dims == ("t",) and list(got.t) == [7]


def test_no_labels_through_devices(table):
    with pytest.raises(gs.KindError, match="do not go through pmap"):
        gs.pmap(squares)(table)
    mesh = gs.Mesh(np.arange(1), ("d",))
    with pytest.raises(gs.KindError, match="do not go through shard_map"):
        gs.shard_map(squares, mesh=mesh, in_specs=gs.P(), out_specs=gs.P())(table)


def test_labels_of_values_are_those_of_this_call(pd, track):
    """Indexes that pandas calls equal may differ in their names and kinds, coordinates in their attributes."""
    double = gs.jit(lambda x: 2 * x)
    for index in (pd.Index(["p", "q"], name="who"), pd.Index(["p", "q"], name="what"), pd.RangeIndex(2),
                  pd.Index([0.0, 1.0]), pd.CategoricalIndex(["p", "q"]), pd.Index(["p", "q"], dtype=object)):
        for _ in range(2):
            assert double(pd.Series([1.0, 2.0], index=index)).index.identical(index)
            assert double(pd.DataFrame([[1.0, 2.0]], columns=index)).columns.identical(index)
    assert double(pd.Series([1.0], name=1)).name == 1 and double(pd.Series([1.0], name=True)).name is True
    told = track.copy()
    told.t.attrs["units"] = "s"
    assert [double(x).t.attrs for x in (track, told, track)] == [{}, {"units": "s"}, {}]
    y_dot = gs.jvp(np.sin, (pd.Series([0.0], index=pd.Index([3], name="a")),), (pd.Series([2.0], index=[3.0]),))[1]
    assert list(y_dot) == [2.0] and y_dot.index.name == "a"


def test_derivatives_of_sets(xr, unit, track):
    def f(d):
        return np.sum(d["x"] ** 2) * np.sum(d["y"])

    data = xr.Dataset({"x": track, "y": ("t", [1.0, 2.0])})
    got = gs.hessian(f)(data)
    np.testing.assert_allclose(got["x"]["x"], 6 * np.eye(4).reshape(2, 2, 2, 2))
    np.testing.assert_allclose(got["y"]["x"], np.broadcast_to(2 * track, (2, 2, 2)))
    np.testing.assert_allclose(got["y"]["y"], np.zeros((2, 2)))
    assert gs.jacrev(f)(data).identical(gs.grad(f)(data))
    np.testing.assert_allclose(gs.jacfwd(lambda d: 2 * d["y"])(data)["y"], 2 * np.eye(2))
    x, y = unit.Quantity(np.array([1.0, 2.0]), "cm"), unit.Quantity(np.ones(2), "s")
    data = xr.Dataset({"x": ("t", x), "y": ("t", y)})
    got = gs.hessian(f)(data)
    is_quantity(got["x"]["x"], 4 * np.eye(2), unit.s)
    is_quantity(got["y"]["x"], [[2, 4], [2, 4]], unit.cm)
    is_quantity(got["y"]["y"], np.zeros((2, 2)), unit.cm ** 2 / unit.s)


def test_names_of_dimensions_of_jacobians_differ(xr):
    got = gs.hessian(squares)(xr.DataArray(np.ones((2, 3)), dims=("t", "t_in")))
    assert len(set(got.dims)) == 4 and got.dims[:2] == ("t", "t_in") and got.shape == (2, 3, 2, 3)


def test_arrays_of_no_numbers(pd, xr):
    days = xr.DataArray(pd.date_range("2020", periods=2), dims="t", name="day")
    with pytest.raises(gs.KindError, match=r"DataArray \(day\) of datetime64.*not an array of numbers"):
        gs.grad(squares)(days)
    with pytest.raises(gs.KindError, match=r"\(day\).*not an array of numbers"):
        gs.grad(lambda d: np.sum(d["x"]))(xr.Dataset({"x": ("t", [1.0, 2.0]), "day": days}))


def test_a_unit_that_depends_on_what_is_differentiated(unit):
    """The derivative of x**n by n is log(x) x**n: its number would depend on the unit of x."""
    def power(x, n):
        return x ** n

    x = unit.Quantity(3.0, "cm")
    for made in (gs.grad(power, argnums=1), gs.hessian(power, argnums=(0, 1)),
                 gs.value_and_grad(power, argnums=(0, 1))):
        with pytest.raises(gs.KindError, match="the unit of the result depends on the number in argument 1"):
            made(x, 2.0)
    with pytest.raises(gs.KindError, match="depends on the number in argument 1"):
        gs.jvp(power, (x, 2.0), (x, 1.0))
    with pytest.raises(gs.KindError, match="depends on the number in argument 1"):
        gs.grad(lambda x, n, y: x ** n + y, argnums=1)(x, 2.0, x ** 2)
    is_quantity(gs.grad(power)(x, 2.0), 6.0, unit.cm)
    got = gs.grad(lambda x, n, y: (x / y) ** n, argnums=1)(x, 2.0, unit.Quantity(1.0, "m"))
    np.testing.assert_allclose(got.to("dimensionless").magnitude, 0.03 ** 2 * np.log(0.03), rtol=1e-12)


def test_methods_of_the_object_are_not_read(series):
    with pytest.raises(gs.TransformError, match="no attribute iloc") as caught:
        gs.grad(lambda x: x.iloc[0] ** 2)(series)
    assert "read for the numbers of the Series" in str(caught.value)


@pytest.mark.parametrize("how", TRANSFORMS)
class TestUnits:
    def test_result_over_argument(self, unit, how):
        def energy(m, v):
            return 0.5 * m * np.sum(v ** 2)

        m, v = unit.Quantity(2.0, "kg"), unit.Quantity(np.array([3.0, 4.0]), "m/s")
        value, (dm, dv) = TRANSFORMS[how](gs.value_and_grad(energy, argnums=(0, 1)))(m, v)
        is_quantity(value, 25.0, unit.kg * unit.m ** 2 / unit.s ** 2)
        is_quantity(dm, 12.5, unit.m ** 2 / unit.s ** 2)
        is_quantity(dv, [6.0, 8.0], unit.kg * unit.m / unit.s)

    def test_units_of_one_kind_meet(self, unit, how):
        f = TRANSFORMS[how](gs.value_and_grad(lambda x, y: x * x + y * y, argnums=(0, 1)))
        value, (dx, dy) = f(unit.Quantity(1.0, "m"), unit.Quantity(1.0, "ft"))
        is_quantity(value, 1 + 0.3048 ** 2, unit.m ** 2)
        is_quantity(dx, 2.0, unit.m)
        np.testing.assert_allclose(dy.to("m").magnitude, 2 * 0.3048, rtol=1e-12)

    @pytest.mark.parametrize("angle", [60.0, 0.0])
    def test_angles(self, unit, how, angle):
        got = TRANSFORMS[how](gs.grad(lambda x: np.sin(x)))(unit.Quantity(angle, "deg"))
        is_quantity(got, np.cos(np.radians(angle)) * np.pi / 180, 1 / unit.deg)
        got = TRANSFORMS[how](gs.grad(lambda x: np.sum(np.sin(x))))(unit.Quantity(np.full(2, angle), "deg"))
        is_quantity(got, np.full(2, np.cos(np.radians(angle)) * np.pi / 180), 1 / unit.deg)

    def test_other_units_of_the_same_numbers(self, unit, how):
        f = TRANSFORMS[how](gs.grad(lambda x: x ** 3))
        for name in ("m", "ft", "s", "m"):
            is_quantity(f(unit.Quantity(2.0, name)), 12.0, unit(name).units ** 2)

    @pytest.mark.parametrize("power", [2, 3, 0.5])
    def test_exponents(self, unit, how, power):
        f = TRANSFORMS[how](gs.grad(lambda x, n: x ** n))
        for n in (power, 1, power):
            is_quantity(f(unit.Quantity(4.0, "km"), n), n * 4.0 ** (n - 1),
                        unit.dimensionless if n == 1 else unit.km ** (n - 1))

    def test_plain_arguments_beside(self, unit, how):
        dw, dx = TRANSFORMS[how](gs.grad(lambda w, x: np.sum(w * x), argnums=(0, 1)))(
            np.array([1.0, 2.0]), unit.Quantity(np.array([3.0, 4.0]), "ft"))
        is_quantity(dw, [3.0, 4.0], unit.ft)
        is_quantity(dx, [1.0, 2.0], unit.dimensionless)

    def test_second_derivatives(self, unit, how):
        x = unit.Quantity(np.array([1.0, 2.0]), "ft")
        is_quantity(TRANSFORMS[how](gs.hessian(lambda x: np.sum(x ** 3)))(x), [[6, 0], [0, 12]], unit.ft)
        is_quantity(TRANSFORMS[how](gs.grad(gs.grad(lambda x: x ** 3)))(unit.Quantity(2.0, "ft")), 12.0, unit.ft)
        is_quantity(TRANSFORMS[how](gs.grad(lambda x: np.sum(gs.grad(squares)(x) ** 2)))(x), [8, 16], unit.ft)

    def test_single_precision_and_integers(self, unit, how):
        got = TRANSFORMS[how](gs.grad(squares))(unit.Quantity(np.array([1, 2], np.float32), "ft"))
        is_quantity(got, [2, 4], unit.ft, 1e-6)
        assert got.magnitude.dtype == np.float32
        is_quantity(TRANSFORMS[how](gs.grad(lambda x: x ** 2))(unit.Quantity(3, "ft")), 6.0, unit.ft)

    def test_what_does_not_fit(self, unit, how):
        m, s = unit.Quantity(1.0, "m"), unit.Quantity(1.0, "s")
        for f, args in ((lambda x, y: x + y, (m, s)), (lambda x: np.exp(x), (m,)), (lambda x: x + 1.0, (m,))):
            with pytest.raises(gs.KindError, match="DimensionalityError"):
                TRANSFORMS[how](gs.grad(f))(*args)
        with pytest.raises(gs.KindError, match="whose zero"):
            TRANSFORMS[how](gs.grad(lambda x: x ** 2))(unit.Quantity(20.0, "degC"))

    def test_a_function_that_strips_units(self, unit, how):
        with pytest.raises(gs.KindError, match="stripped|no implementation"):
            TRANSFORMS[how](gs.grad(lambda x: np.sum(np.asarray(x) ** 2)))(unit.Quantity(np.ones(2), "m"))
        with pytest.raises(gs.KindError, match="no implementation|stripped"):
            TRANSFORMS[how](gs.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2)))(unit.Quantity(np.ones(2), "m"))


def test_tangents_and_adjoints_with_units(unit):
    x = unit.Quantity(np.array([1.0, 2.0]), "km")
    y, y_dot = gs.jvp(lambda x: x ** 2, (x,), (unit.Quantity(np.array([500.0, 0.0]), "m"),))
    is_quantity(y, [1, 4], unit.km ** 2)
    is_quantity(y_dot, [1, 0], unit.km ** 2)
    y, pull = gs.vjp(lambda x: x ** 2, x)
    is_quantity(pull(np.ones(2))[0], [2, 4], unit.km)
    is_quantity(pull(unit.Quantity(np.ones(2), "1/s"))[0], [2, 4], unit.km / unit.s)
    y, push = gs.linearize(lambda x: x ** 2, x)
    is_quantity(push(x), [2, 8], unit.km ** 2)
    is_quantity(gs.hvp(squares, (x,), (x,)), [2, 4], unit.km)
    for tangent, told in ((unit.Quantity(np.ones(2), "s"), "other units"), (np.ones(2), "a tangent that is a ndarray")):
        with pytest.raises(gs.KindError, match=told):
            gs.jvp(lambda x: x ** 2, (x,), (tangent,))
        with pytest.raises(gs.KindError, match=told):
            push(tangent)


def test_the_units_of_another_registry(unit):
    other = pytest.importorskip("pint").UnitRegistry()
    with pytest.raises(gs.KindError, match="does not take"):
        gs.grad(lambda x, y: x * y)(unit.Quantity(1.0, "m"), other.Quantity(1.0, "m"))


def test_a_comparison_leaves_no_trace(pd, capsys):
    def f(x, rng):
        print("called")
        x[0] = rng.normal()
        return np.sum(x ** 2)

    x, rng = pd.Series([1.0, 2.0]), np.random.default_rng(0)
    before = np.random.get_state()[1].copy()
    is_series(gs.grad(f)(x, rng), [0, 1], [0, 4])
    assert capsys.readouterr().out == "called\n"
    assert list(x) == [1.0, 2.0]
    expected = np.random.default_rng(0)
    expected.normal()
    assert rng.bit_generator.state == expected.bit_generator.state
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_other_threads_print_meanwhile(pd, capsys):
    def f(x):
        if isinstance(x, pd.Series):
            thread = threading.Thread(target=print, args=("from another thread",))
            thread.start()
            thread.join()
        return np.sum(x ** 2)

    from gradscribe import in_kind
    in_kind._run(f, [pd.Series([1.0])], {})
    assert capsys.readouterr().out == "from another thread\n"


def test_copies_and_text(series):
    made = gs.grad(squares)
    assert made.source_for(series) == made.source_for(series.to_numpy())
    is_series(copy.deepcopy(made)(series), "abc", [2, 4, 8], "w")


def test_static_arguments_are_left_alone(series):
    made = gs.jit(lambda x, n: x * n, static_argnums=1)
    is_series(made(series, 2), "abc", [2, 4, 8], "w")
    held = gs.jit(lambda x, labels: x * len(labels.index), static_argnums=1)
    assert held(2.0, series) == held(2.0, series) == 6.0


class Pair:
    def __init__(self, w, b):
        self.w, self.b = w, b


gs.tree_util.register_pytree_node(Pair, lambda p: ((p.w, p.b), None), lambda _, parts: Pair(*parts))
Named = collections.namedtuple("Named", "w b")


@dataclasses.dataclass
class Data:
    w: object
    b: object


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("cls", [Pair, Named, Data, lambda w, b: collections.OrderedDict(w=w, b=b)],
                         ids=["registered", "named tuple", "dataclass", "ordered"])
def test_containers_of_every_kind(pd, unit, cls, how):
    def f(p):
        w, b = (p["w"], p["b"]) if isinstance(p, dict) else (p.w, p.b)
        return np.sum(w ** 2) * b

    def parts(p):
        return (p["w"], p["b"]) if isinstance(p, dict) else (p.w, p.b)
    made = TRANSFORMS[how](gs.value_and_grad(f))
    value, got = made(cls(unit.Quantity(np.array([1.0, 2.0]), "ft"), unit.Quantity(3.0, "s")))
    w, b = parts(got)
    is_quantity(value, 15.0, unit.ft ** 2 * unit.s)
    is_quantity(w, [6.0, 12.0], unit.ft * unit.s)
    is_quantity(b, 5.0, unit.ft ** 2)
    w, b = parts(made(cls(pd.Series([1.0, 2.0], index=["u", "v"]), 3.0))[1])
    is_series(w, "uv", [6.0, 12.0])
    assert b == 5.0


def test_names_of_tangents_do_not_matter(pd, series):
    is_series(gs.jvp(lambda x: x ** 2, (series,), (series.rename("other"),))[1], "abc", [2, 8, 32], "w")
    is_series(gs.vjp(lambda x: x ** 2, series)[1](series.rename("other"))[0], "abc", [2, 8, 32], "w")


class Grid:
    """A class of a user's, which is no array by itself."""

    def __init__(self, name, parts):
        self.name, self.parts = name, parts


def test_a_class_of_ones_own():
    gs.register_container(Grid, lambda g: {"low": g.parts[0], "high": g.parts[1]}, lambda g: g.name,
                          lambda name, parts: Grid(name, [parts["low"], parts["high"]]))
    got = gs.jit(gs.grad(lambda g: np.sum(g["low"] ** 2) + np.sum(g["high"])))(Grid("north", [np.ones(2), np.ones(3)]))
    assert type(got) is Grid and got.name == "north"
    np.testing.assert_array_equal(got.parts[0], [2.0, 2.0])
    np.testing.assert_array_equal(got.parts[1], np.ones(3))
    with pytest.raises(ValueError, match="registered already"):
        gs.register_container(Grid, len, len, len)
    with pytest.raises(ValueError, match="registered already"):
        gs.register_container(np.ndarray, len, len, len)
    with pytest.raises(gs.KindError, match="a class is needed"):
        gs.register_container(3, len, len, len)


class DeviceArray:
    """What CuPy shows of an array on a device."""

    __cuda_array_interface__ = {"typestr": "<f8", "shape": (2,), "data": (0, False), "version": 3}

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **words):
        raise BufferError("it is on another device")

    def __dlpack_device__(self):
        return 2, 0


def test_device_arrays_go_through_the_host_if_the_user_says_so():
    with pytest.raises(gs.KindError, match="NumPy does not take this DeviceArray"):
        gs.grad(squares)(DeviceArray(np.ones(2)))
    gs.register_container(DeviceArray, lambda a: a.values, lambda a: None, lambda _, values: DeviceArray(values))
    got = gs.jit(gs.grad(squares))(DeviceArray(np.array([1.0, 2.0])))
    assert type(got) is DeviceArray
    np.testing.assert_array_equal(got.values, [2.0, 4.0])


def test_annotations_of_jaxtyping():
    jaxtyping = pytest.importorskip("jaxtyping")
    Float, jaxtyped = jaxtyping.Float, jaxtyping.jaxtyped

    def f(w: Float[np.ndarray, "n"], x: Float[np.ndarray, "m n"]) -> Float[np.ndarray, ""]:  # noqa: F722, F821
        y: Float[np.ndarray, "m"] = x @ w  # noqa: F821
        return np.sum(y ** 2)

    w, x = np.array([1.0, 2.0]), np.ones((3, 2))
    checked = jaxtyped(typechecker=None)(f)
    for g in (f, checked):
        np.testing.assert_array_equal(gs.grad(g)(w, x), [18.0, 18.0])
        np.testing.assert_array_equal(gs.jit(gs.grad(lambda w, x, g=g: g(2 * w, x)))(w, x), [72.0, 72.0])
        assert gs.grad(g).source.startswith("# w: float64[m], x: float64[m, n]")


def test_no_package_is_imported(tmp_path):
    (tmp_path / "alone.py").write_text(
        "import sys\nimport numpy as np\nimport gradscribe as gs\n"
        "class Odd: pass\n"
        "assert gs.grad(lambda x, o: x * x)(2.0, Odd()) == 4.0\n"
        "print({'pandas', 'xarray', 'pint', 'jaxtyping', 'cupy'} & set(sys.modules))\n")
    out = subprocess.run([sys.executable, tmp_path / "alone.py"], env=os.environ, capture_output=True, text=True)
    assert out.stdout == "set()\n", out.stderr


SPREAD = [False]


def test_what_a_function_reads_from_outside_may_change(series):
    def f(x):
        return x.std() if SPREAD[0] else x.sum()

    made = gs.grad(f)
    is_series(made(series), "abc", [1, 1, 1], "w")
    try:
        SPREAD[0] = True
        with pytest.raises(gs.KindError, match="means something else"):
            made(series)
    finally:
        SPREAD[0] = False
    is_series(made(series), "abc", [1, 1, 1], "w")


def test_errors_of_the_function_itself(pd, unit):
    with pytest.raises(Exception, match="shape|broadcast|length"):
        gs.grad(lambda x, y: np.sum(x @ y))(pd.Series([1.0, 2.0]), pd.Series([1.0, 2.0, 3.0]))
    with pytest.raises(Exception, match="shape|broadcast|length|does not take"):
        gs.grad(lambda x, y: np.sum(x * y))(unit.Quantity(np.ones(2), "m"), unit.Quantity(np.ones(3), "m"))


def test_an_argument_that_cannot_be_copied(pd):
    is_series(gs.grad(lambda x, lock: np.sum(x ** 2))(pd.Series([1.0, 2.0]), threading.Lock()), [0, 1], [2, 4])


def test_the_domain_of_a_function(pd):
    """Near 1 the arcsine is not defined; the comparison is then made at the arguments."""
    is_series(gs.grad(lambda x: np.sum(np.arcsin(x)))(pd.Series([0.0, 0.6])), [0, 1], [1.0, 1.25])

    def f(x):
        if np.max(x) > 0.6:
            raise ValueError("outside")
        return np.sum(x ** 2)
    is_series(gs.grad(f)(pd.Series([0.0, 0.6])), [0, 1], [0.0, 1.2])


def test_many_threads(pd):
    """Each gets its own labels, and standard output is what it was."""
    before, made, found = sys.stdout, gs.grad(lambda x: np.sum(x ** 3)), {}

    def work(k):
        for n in range(5):
            x = pd.Series(np.arange(3.0) + k, index=[k, n, 7], name=k)
            found[k, n] = (made(x), x)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30 and sys.stdout is before
    for got, x in found.values():
        is_series(got, x.index, 3 * x.to_numpy() ** 2, x.name)


def test_gradients_of_quantities_against_differences(unit):
    """Drag and lift on a body: units that NumPy, pint and the reader all meet."""
    def power(v, rho, area, angle):
        drag = 0.5 * rho * area * v ** 2 * (0.02 + 0.5 * np.sin(angle) ** 2)
        return np.sum(drag * v) + np.sqrt(np.sum((rho * area * v ** 3) ** 2))

    given = (unit.Quantity(np.array([30.0, 80.0]), "km/hour"), unit.Quantity(1.2, "g/L"), unit.Quantity(20.0, "ft**2"),
             unit.Quantity(5.0, "deg"))
    value, slopes = gs.jit(gs.value_and_grad(power, argnums=(0, 1, 2, 3)))(*given)
    assert value.check("[power]")
    np.testing.assert_allclose(value.to("W").magnitude, power(*given).to("W").magnitude, rtol=1e-12)
    for place, x in enumerate(given):
        for entry in range(np.size(x.magnitude)):
            step = np.zeros(np.shape(x.magnitude))
            step[(entry,) if step.ndim else ()] = 1e-6 * np.max(x.magnitude)
            moved = [power(*given[:place], x + sign * step * x.units, *given[place + 1:]) for sign in (1, -1)]
            expected = (moved[0] - moved[1]) / (2 * np.max(step) * x.units)
            got = np.ravel(slopes[place].magnitude)[entry] * slopes[place].units
            np.testing.assert_allclose(got.to(expected.units).magnitude, expected.magnitude, rtol=1e-7)
