"""gs.pmap on threads: the numbers are vmap's and repeat bit for bit; who fails is named, and the next call works."""
import functools
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax, machine
from gradscribe.runtime.groups import Lost

sys.path.append(str(Path(__file__).resolve().parents[1] / "oracle"))

from pmap_programs import PROGRAMS  # noqa: E402  those that are compared with JAX

pytestmark = pytest.mark.compiled

rng = np.random.default_rng(11)
X = rng.standard_normal((4, 3))
SAMPLE = ["total", "total_1", "of_a_tree", "gathered_in_a_row", "scattered_shares", "exchanged", "ring", "in_a_scan",
          "in_a_branch_for_all", "complex_numbers", "whole_numbers", "truth_values", "layer", "by_keyword"]


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    """Four, whatever the machine has; a second of patience."""
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setenv("GRADSCRIBE_DEADLINE", "1")


def summed(x):
    return lax.psum(x, "i")


add = gs.pmap(summed, "i")


@pytest.fixture
def goes_on():
    """After the test the next call works."""
    yield
    assert np.array_equal(add(np.ones((4, 2))), np.full((4, 2), 4.0))


# --- numbers ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", SAMPLE)
def test_as_vmap(name):
    p = PROGRAMS[name]
    mapped = gs.pmap(p.function, **p.options)
    found = gs.tree_util.tree_leaves(mapped(*p.args, **p.words))
    axes = {k: v for k, v in p.options.items() if k in ("in_axes", "out_axes", "axis_name")}
    expected = gs.tree_util.tree_leaves(gs.vmap(p.function, **axes)(*p.args, **p.words))
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=4e-15, atol=1e-15)
    for _ in range(5):
        for got, again in zip(found, gs.tree_util.tree_leaves(mapped(*p.args, **p.words))):
            assert got.tobytes() == again.tobytes()


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 7, 1000, 16385, 70001])
def test_sums_in_the_order_of_devices(count, size):
    x = rng.standard_normal((count, size)) * 10.0 ** rng.integers(-9, 9, (count, size))
    expected = functools.reduce(np.add, list(x))
    for _ in range(5):
        assert all(row.tobytes() == expected.tobytes() for row in add(x))


@pytest.mark.parametrize("size", [40, 400])
def test_parts_that_are_not_contiguous(size):
    x = rng.standard_normal((size, 4, size))[::2, :, ::-1]
    found = gs.pmap(summed, "i", in_axes=1, out_axes=2)(x)
    expected = functools.reduce(np.add, [x[:, k] for k in range(4)])
    assert found.shape == (size // 2, size, 4)
    for k in range(4):
        assert np.array_equal(found[:, :, k], expected)
    transposed = gs.pmap(lambda x: lax.psum(x.T, "i"), "i", in_axes=1)(x)
    assert np.array_equal(transposed[3], expected.T)


def test_gradients_repeat():
    w, x = rng.standard_normal((300, 200)), rng.standard_normal((4, 16, 300))

    def loss(w, x):
        return lax.pmean(np.mean(np.tanh(x @ w) ** 2), "i")
    step = gs.pmap(gs.grad(lambda w, x: np.mean(np.tanh(x @ w) ** 2)), in_axes=(None, 0))
    mean = gs.pmap(lambda w, x: lax.pmean(gs.grad(lambda w: np.mean(np.tanh(x @ w) ** 2))(w), "i"), "i",
                   in_axes=(None, 0), out_axes=None)
    first = mean(w, x)
    assert first.nbytes > 1 << 17
    assert np.array_equal(first, functools.reduce(np.add, list(step(w, x))) / 4)
    assert all(mean(w, x).tobytes() == first.tobytes() for _ in range(5))
    inside = gs.pmap(gs.grad(loss), "i", in_axes=(None, 0))(w, x)
    np.testing.assert_allclose(inside.mean(0), first, rtol=1e-12, atol=1e-18)


def test_nothing_mapped():
    assert gs.pmap(lambda: lax.axis_index("i") * 2, "i", axis_size=3)().tolist() == [0, 2, 4]


def test_axes_from_the_end():
    x = rng.standard_normal((2, 3, 4))
    found = gs.pmap(summed, "i", in_axes=-1, out_axes=-1)(x)
    assert np.array_equal(found, gs.pmap(summed, "i", in_axes=2, out_axes=2)(x))
    np.testing.assert_allclose(found[..., 1], x.sum(-1), rtol=1e-14)


@pytest.mark.parametrize("outer, inner", [(2, 2), (4, 3), (2, 5), (1, 4)])
def test_pmap_in_pmap(outer, inner):
    """The inner one is vmap on the devices of the outer: its axis may be longer than there are devices."""
    x = rng.standard_normal((outer, inner, 3))

    def of_one(x):
        return x - lax.pmean(x, "inner") + lax.psum(x, ("inner", "outer")) * lax.axis_index("inner")
    found = gs.pmap(gs.pmap(of_one, "inner"), "outer")(x)
    expected = x - x.mean(1, keepdims=True) + x.sum((0, 1)) * np.arange(inner)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_pmap_in_the_text_of_a_function():
    """Where the function is transformed, also with constants, it is vmap."""
    def power(x, n):
        return x ** n / lax.psum(x ** 2, "i")

    def whole(x):
        return np.sum(gs.pmap(power, "i", static_broadcasted_argnums=1)(x, 3))

    def moved(x):
        return np.sum(gs.pmap(power, axis_name="i", in_axes=(0, None), out_axes=1)(x, 3) ** 2)
    want = np.sum(X ** 3 / np.sum(X ** 2, 0))
    assert whole(X) == pytest.approx(want, rel=1e-14) and gs.jit(whole)(X) == pytest.approx(want, rel=1e-14)
    by_hand = 3 * X ** 2 / np.sum(X ** 2, 0) - 2 * X * np.sum(X ** 3, 0) / np.sum(X ** 2, 0) ** 2
    np.testing.assert_allclose(gs.grad(whole)(X), by_hand, rtol=1e-13)
    mapped = gs.vmap(power, in_axes=(0, None), axis_name="i")
    np.testing.assert_array_equal(gs.grad(moved)(X), gs.grad(lambda x: np.sum(mapped(x, 3) ** 2))(X))


def test_threads_are_kept():
    add(X)
    before = threading.active_count()
    for k in range(50):
        add(rng.standard_normal((2 + k % 3, 5)))
    assert threading.active_count() == before


def test_source_is_what_a_device_runs():
    f = gs.pmap(lambda x: x / lax.psum(x, "i"), "i")
    f(X)
    assert "psum(i)" in f.source or "psum(x, 'i')" in f.source


def test_from_several_threads_at_once():
    """Two calls at a time have threads of their own."""
    found = {}

    def work(k):
        x = np.full((2, 30000), float(k))
        found[k] = all(np.all(add(x) == 2.0 * k) for _ in range(20))
    add(np.zeros((2, 30000)))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found == {0: True, 1: True, 2: True}


# --- faults -----------------------------------------------------------------------------------------------------------

def raises(x):
    if x[0] > 0.5:
        raise ValueError("too large")
    return lax.psum(x, "i")


def out_of_bounds(x, k):
    return x[k] + lax.psum(x, "i")


def skips(x):
    if x[0] > 0.5:
        return 2 * x
    return lax.psum(x, "i")


def another(x):
    if x[0] > 0.5:
        return lax.pmean(x, "i")
    return lax.psum(x, "i")


def as_many_as_are_large(x):
    return np.sum(lax.psum(x[x > 0.5], "i"))


def one_large(count, rank):
    x = np.zeros((count, 3))
    x[rank, 0] = 1.0
    return x


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("f, kind, message", [
    (raises, ValueError, "^too large"),
    (skips, Lost, "^rank {bad} has ended, and rank [0-3] waits in psum over 'i'$"),
    (another, Lost, r"rank {bad} (is )?in pmean over 'i' with float64\[3\]"),
    (as_many_as_are_large, Lost, r"rank {bad} (is )?in psum over 'i' with float64\[1\]")],
    ids=["raise", "skip", "another", "shape"])
def test_a_device_that_goes_another_way(f, kind, message, count, last, goes_on):
    bad = count - 1 if last else 0
    mapped = gs.pmap(f, "i")
    mapped(np.zeros((count, 3)))                # all go one way; compiled
    begun = time.monotonic()
    with pytest.raises(kind, match=message.replace("{bad}", str(bad))) as caught:
        mapped(one_large(count, bad))
    assert time.monotonic() - begun < 1
    if kind is ValueError:
        assert str(caught.value) == "too large"
        assert caught.value.__notes__ == [f"raised on rank {bad} of {count} of the axis 'i'"]
    mapped(np.zeros((count, 3)))


def test_an_index_that_is_out_of_bounds(goes_on):
    with pytest.raises(IndexError, match="index is out of bounds") as caught:
        gs.pmap(out_of_bounds, "i")(X, np.array([0, 1, 7, 2]))
    assert caught.value.__notes__ == ["raised on rank 2 of 4 of the axis 'i'"]


def test_a_condition_that_fails_in_a_gradient(goes_on):
    with pytest.raises(ValueError, match="too large") as caught:
        gs.pmap(gs.grad(lambda x: np.sum(raises(x) ** 2)), "i")(one_large(4, 3))
    assert caught.value.__notes__ == ["raised on rank 3 of 4 of the axis 'i'"]


def test_a_sum_in_another_place_after_many(goes_on):
    """Devices that agree for a while."""
    def f(x, n):
        total = 0.0
        for _ in range(n):
            total += lax.psum(np.sum(x), "i")
            x = x * 0.5
        return total
    mapped = gs.pmap(f, "i")
    np.testing.assert_allclose(mapped(X, np.array([9, 9, 9, 9])), X.sum() * (2 - 2.0 ** -8), rtol=1e-13)
    with pytest.raises(Lost, match="^rank 1 has ended, and rank [023] waits in psum over 'i'$"):
        mapped(X, np.array([9, 8, 9, 9]))


def test_without_names_errors_name_the_rank():
    with pytest.raises(ValueError, match="too large") as caught:
        def f(x):
            if x > 2.0:
                raise ValueError("too large")
            return x
        gs.pmap(f)(np.arange(4.0))
    assert caught.value.__notes__ == ["raised on rank 3 of 4 of the axis 'devices'"]


@pytest.mark.parametrize("words, args, message", [
    ({}, (np.ones((5, 2)),), "^the mapped axes have length 5, and there are 4 devices"),
    ({"devices": [0, 1]}, (np.ones((3, 2)),), "^the mapped axes have length 3, and there are 2 devices"),
    ({}, (np.ones((0, 2)),), "^the mapped axes have length 0, and there are 4 devices"),
    ({"in_axes": 2}, (np.ones((4, 2)),), r"^in_axes maps axis 2 of an array of shape \(4, 2\)"),
    ({"in_axes": -3}, (np.ones((4, 2)),), r"^in_axes maps axis -3 of an array of shape \(4, 2\)"),
    ({}, (1.0,), r"^in_axes maps axis 0 of an array of shape \(\)"),
    ({"in_axes": (0, 0)}, (np.ones(4),), "^in_axes has 2 entries, and 1 positional"),
    ({"in_axes": None}, (np.ones(4),), "^pmap maps no argument"),
    ({"axis_size": 3}, (np.ones(4),), "^the mapped axes have different lengths: 3 and 4"),
    ({"in_axes": ((0, 1),)}, (np.ones((4, 4)),), r"^in_axes of argument 0 is \(0, 1\)"),
    ({"out_axes": (0, 1)}, (np.ones(4),), r"^out_axes is \(0, 1\)"),
    ({"backend": "mpi"}, (np.ones(4),), '^backend="mpi" needs processes'),
])
def test_axes_and_devices_that_do_not_fit(words, args, message, goes_on):
    with pytest.raises(gs.KindError, match=message):
        gs.pmap(summed, "i", **words)(*args)


def test_arguments_of_different_lengths(goes_on):
    with pytest.raises(gs.KindError, match="^the mapped axes have different lengths: 4 and 3"):
        gs.pmap(lambda x, y: summed(x) + y, "i")(np.ones(4), np.ones(3))


def test_a_backend_that_there_is_not():
    with pytest.raises(gs.KindError, match="^backend must be 'threads', 'mpi' or 'gpu', not 'tpu'$"):
        gs.pmap(summed, "i", backend="tpu")


def test_an_axis_that_has_no_name(goes_on):
    with pytest.raises(gs.TransformError, match=r"^psum: no axis is named 'j' here \(bound: 'i'\)"):
        gs.pmap(lambda x: lax.psum(x, "j"), "i")(X)
    with pytest.raises(NameError, match="no axis is named 'i'"):
        lax.psum(1.0, "i")
