"""Steps of gs.pmap after the first two of a kind, which run without Python's lock: bits, faults, threads, processes."""
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax, machine
from gradscribe.codegen import launching, meeting
from gradscribe.runtime import teams
from gradscribe.runtime.groups import Lost

pytestmark = pytest.mark.compiled

rng = np.random.default_rng(17)
log = logging.getLogger("tests.short_way")


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    """Four, whatever the machine has; a second of patience."""
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setenv("GRADSCRIBE_DEADLINE", "1")


def in_short(mapped, *args):
    """What a function gives on the short way, which it takes from the third call of a kind on."""
    for _ in range(2):
        mapped(*args)
    assert takes_short_way(mapped, *args)
    return mapped(*args)


def takes_short_way(mapped, *args):
    """Whether a call is answered without the general way."""
    general = []
    mapped.on_threads = lambda *given: general.append(given) or type(mapped).on_threads(mapped, *given)
    try:
        mapped(*args)
    finally:
        del mapped.on_threads
    return not general


def in_python(apply, x):
    """The sum in the order of ranks by NumPy, as threads that meet in Python take it."""
    grid = teams.Grid(["i"], [len(x)], 1.0)

    def piece(rank):
        return lambda: grid.members(rank)["i"].reduce(x[rank], apply, "psum over 'i'")
    return teams.side_by_side([piece(rank) for rank in range(len(x))], grid, 1.0)


def numbers(dtype, shape):
    if np.dtype(dtype).kind == "c":
        return (numbers("f8", shape) + 1j * numbers("f8", shape)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(dtype)
    if np.dtype(dtype) == bool:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(-100, 100, shape).astype(dtype)


# --- numbers ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "i8", "u4"])
def test_sums_have_the_bits_of_those_in_python(dtype, count):
    mapped = gs.pmap(lambda x: lax.psum(x, "i"), "i")
    for size in (0, 1, 7, 2049, 20001):
        x = numbers(dtype, (count, size))
        found, expected = in_short(mapped, x), in_python("sum", x)
        assert found.dtype == expected[0].dtype and found.tobytes() == np.stack(expected).tobytes()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8", "?"])
def test_means_have_the_bits_of_those_in_python(dtype, count):
    x = numbers(dtype, (count, 5003))
    found = in_short(gs.pmap(lambda x: lax.pmean(x, "i"), "i"), x)
    given = x if x.dtype.kind in "fc" else x.astype(float)
    whole = in_python("sum", given)[0]
    whole /= whole.real.dtype.type(count)
    assert found.dtype == whole.dtype and all(row.tobytes() == whole.tobytes() for row in found)


@pytest.mark.parametrize("function, apply", [(lax.pmax, np.maximum), (lax.pmin, np.minimum)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "?"])
def test_largest_and_smallest(function, apply, dtype):
    x = numbers(dtype, (4, 3001))
    if x.dtype.kind == "f":
        x[1, 5] = x[3, 7] = np.nan
        x[2, 9], x[0, 11] = np.inf, -np.inf
    found = in_short(gs.pmap(lambda x: function(x, "i"), "i"), x)
    expected = functools.reduce(apply, list(x))
    assert found.dtype == x.dtype and all(row.tobytes() == expected.tobytes() for row in found)


def test_what_is_moved():
    x = rng.standard_normal((4, 4, 3))
    gathered = in_short(gs.pmap(lambda x: lax.all_gather(x, "i"), "i"), x)
    assert all(np.array_equal(rows, x) for rows in gathered)
    turned = in_short(gs.pmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), "i"), x)
    assert np.array_equal(turned, np.stack([0 * x[0], x[0], x[1], 0 * x[0]]))
    shares = in_short(gs.pmap(lambda x: lax.psum_scatter(x, "i"), "i"), x)
    assert np.array_equal(shares, functools.reduce(np.add, list(x)))
    exchanged = in_short(gs.pmap(lambda x: lax.all_to_all(x, "i", 0, 0), "i"), x)
    assert np.array_equal(exchanged, x.transpose(1, 0, 2))


def test_sums_among_what_is_moved():
    """Meetings in compiled code and in Python, by turns."""
    def f(x):
        total = x * 0.0
        for _ in range(5):
            total = total + lax.psum(x, "i")
            x = lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])
            total = total * lax.pmax(np.max(x), "i")
        return total, x
    x = rng.standard_normal((3, 50))
    total, moved = in_short(gs.pmap(f, "i"), x)
    expected, own = np.zeros(50), x
    for _ in range(5):
        expected = (expected + functools.reduce(np.add, list(own))) * x.max()
        own = own[[2, 0, 1]]
    np.testing.assert_allclose(total, np.stack([expected] * 3), rtol=1e-13)
    assert np.array_equal(moved, own)


def test_a_gradient_of_many_arrays_has_the_bits_of_the_general_way():
    params = [(rng.standard_normal((6, 5)), np.zeros(5)), (rng.standard_normal((5, 2)), np.ones(2))]
    x, y = rng.standard_normal((2, 8, 6)), rng.standard_normal((2, 8, 2))

    def loss(params, x, y):
        for W, b in params:
            x = np.tanh(x @ W + b)
        return np.mean((x - y) ** 2)

    def step(params, x, y):
        value, gradient = lax.pmean(gs.value_and_grad(loss)(params, x, y), "batch")
        return {"value": value, "params": [(W - 0.1 * dW, b - 0.1 * db) for (W, b), (dW, db) in zip(params, gradient)]}
    mapped = gs.pmap(step, "batch", in_axes=(None, 0, 0), out_axes=None)
    first = mapped(params, x, y)
    found = in_short(mapped, params, x, y)
    for got, want in zip(gs.tree_util.tree_leaves(found), gs.tree_util.tree_leaves(first), strict=True):
        assert type(got) is type(want) and got.dtype == want.dtype and got.tobytes() == want.tobytes()
    assert type(found["params"]) is list and type(found["params"][0]) is tuple


@pytest.mark.parametrize("in_axes, out_axes", [(0, 0), (1, 1), (2, -1), (-1, 0)])
def test_axes(in_axes, out_axes):
    x = rng.standard_normal((3, 3, 3))
    mapped = gs.pmap(lambda x: x - lax.pmean(x, "i"), "i", in_axes=in_axes, out_axes=out_axes)
    first = mapped(x)
    assert in_short(mapped, x).tobytes() == first.tobytes()


def test_numbers_and_containers_beside_arrays():
    def f(x, scale, options, flag):
        y = x * scale * options["weight"] + lax.psum(x, "i")
        return [y, (np.sum(y), options["shift"] + 1)], flag
    mapped = gs.pmap(f, "i", in_axes=(0, None, None, None), out_axes=([0, (0, None)], None))
    x = rng.standard_normal(3)                   # each device has a number
    for scale in (2.0, 3.0):
        (y, (total, shift)), flag = in_short(mapped, x, scale, {"weight": 0.5, "shift": 4}, True)
        np.testing.assert_allclose(y, x * scale * 0.5 + x.sum(), rtol=1e-15)
        assert np.array_equal(total, y) and shift == 5 and flag is True or flag == 1


def test_results_that_are_known_and_of_numbers():
    mapped = gs.pmap(lambda x: (lax.axis_index("i"), lax.psum(x, "i") > 0.0, 7), "i")
    for _ in range(4):
        index, positive, seven = mapped(np.array([1.0, -3.0, 1.0]))
        assert index.tolist() == [0, 1, 2] and positive.tolist() == [False] * 3 and seven.tolist() == [7] * 3


def test_changing_shapes():
    mapped = gs.pmap(lambda x: x + lax.psum(x, "i"), "i")
    for _ in range(3):
        for count, size in ((2, 3), (2, 400), (3, 3), (4, 30001), (2, 3), (1, 9)):
            x = rng.standard_normal((count, size))
            assert np.array_equal(mapped(x), x + functools.reduce(np.add, list(x)))


def test_arrays_that_are_laid_otherwise():
    mapped = gs.pmap(lambda x, y: x + lax.psum(y, "i"), "i", in_axes=(0, 1))
    x, y = rng.standard_normal((2, 5, 7))[:, ::-1], np.asfortranarray(rng.standard_normal((5, 2, 7)))
    expected = x + (y[:, 0] + y[:, 1])
    assert np.array_equal(in_short(mapped, x, y), expected)
    fixed = np.ascontiguousarray(x)
    fixed.flags.writeable = False
    assert np.array_equal(mapped(fixed, y), expected)


def test_another_value_of_what_is_static():
    mapped = gs.pmap(lambda x, n: x ** n + lax.psum(x, "i"), "i", static_broadcasted_argnums=1)
    x = rng.standard_normal((2, 3))
    for n in (2, 3, 2):
        np.testing.assert_allclose(in_short(mapped, x, n), x ** n + x.sum(0), rtol=1e-14)


def test_a_global_that_changes(monkeypatch):
    mapped = gs.pmap(lambda x: x * FACTOR + lax.psum(x, "i"), "i")
    x = np.ones((2, 3))
    assert in_short(mapped, x)[0, 0] == 4.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert mapped(x)[0, 0] == 7.0


FACTOR = 2.0


def test_arguments_are_released():
    mapped = gs.pmap(lambda x, w: (w + lax.psum(x, "i"), w), "i", in_axes=(0, None), out_axes=None)
    x, w = np.ones((2, 1000)), np.zeros(1000)
    in_short(mapped, x, w)
    before = sys.getrefcount(x), sys.getrefcount(w)
    for _ in range(20):
        out, same = mapped(x, w)
    del out, same
    assert (sys.getrefcount(x), sys.getrefcount(w)) == before


def test_fewer_devices_than_before(monkeypatch):
    mapped = gs.pmap(lambda x: lax.psum(x, "i"), "i")
    in_short(mapped, np.ones((3, 2)))
    monkeypatch.setattr(machine, "cores", lambda: 2)
    with pytest.raises(gs.KindError, match="^the mapped axes have length 3, and there are 2 devices"):
        mapped(np.ones((3, 2)))


@pytest.mark.parametrize("looks", [0, 1, 10 ** 4])
def test_however_long_threads_look_out(looks, monkeypatch):
    """More members than cores have to sleep; the numbers are the same."""
    monkeypatch.setattr(launching, "spins", lambda: looks)
    monkeypatch.setattr(launching, "cores", lambda: 4)

    def f(x):
        for _ in range(30):
            x = x / lax.psum(np.sum(x), "i")
        return x
    mapped, x = gs.pmap(f, "i"), np.abs(rng.standard_normal((4, 100))) + 0.1
    first = mapped(x)
    assert in_short(mapped, x).tobytes() == first.tobytes()
    for _ in range(30):
        assert mapped(x).tobytes() == first.tobytes()


# --- faults -----------------------------------------------------------------------------------------------------------

def raises(x):
    if x[0] > 0.5:
        raise ValueError("too large")
    return lax.psum(x, "i")


def words(x):
    if x[0] > 0.5:
        raise ValueError(f"{x[0]} is too large")
    return lax.psum(x, "i")


def skips(x):
    if x[0] > 0.5:
        return 2 * x
    return lax.psum(x, "i")


def another(x):
    if x[0] > 0.5:
        return lax.pmean(x, "i")
    return lax.psum(x, "i")


def moves(x):
    if x[0] > 0.5:
        return lax.ppermute(x, "i", [(0, 1)])
    return lax.psum(x, "i")


def as_many_as_are_large(x):
    return np.sum(lax.psum(x[x > 0.5], "i"))


def hangs(x):
    n = 0
    while x[0] > 0.5 and n < 4 * 10 ** 9:       # a few seconds
        n += 1 + int(x[1])
    return lax.psum(x, "i") + n


def hangs_at_its_end(x):
    y = lax.psum(x, "i")
    n = 0
    while x[0] > 0.5 and n < 4 * 10 ** 9:
        n += 1 + int(x[1])
    return y + n


def one_large(count, rank):
    x = np.zeros((count, 3))
    x[rank, 0] = 1.0
    return x


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("f, kind, message", [
    (raises, ValueError, "^too large"), (words, ValueError, "^1.0 is too large"),
    (skips, Lost, "^rank {bad} has ended, and rank [0-3] waits in psum over 'i'$"),
    (another, Lost, r"rank {bad} (is )?in pmean over 'i' with float64\[3\]"),
    (moves, Lost, r"rank {bad} (is )?in ppermute over 'i' with \(\(0, 1\),\) with float64\[3\]"),
    (as_many_as_are_large, Lost, r"rank {bad} (is )?in psum over 'i' with float64\[1\]")],
    ids=["raise", "words", "skip", "another", "moves", "shape"])
def test_a_device_that_goes_another_way(f, kind, message, count, last):
    """It is named as on the general way, each time, and what is called next gives what it should."""
    bad, mapped = (count - 1 if last else 0), gs.pmap(f, "i")
    in_short(mapped, np.zeros((count, 3)))
    before = threading.active_count()
    for _ in range(3):
        assert takes_short_way(mapped, np.zeros((count, 3)))
        begun = time.monotonic()
        with pytest.raises(kind, match=message.replace("{bad}", str(bad))) as caught:
            mapped(one_large(count, bad))
        assert time.monotonic() - begun < 1
        if kind is ValueError:
            assert caught.value.__notes__ == [f"raised on rank {bad} of {count} of the axis 'i'"]
        assert np.array_equal(mapped(np.zeros((count, 3))), 0.0 * mapped(np.zeros((count, 3))))
    assert threading.active_count() == before


def test_an_index_that_is_out_of_bounds():
    mapped, x = gs.pmap(lambda x, k: x[k] + lax.psum(x, "i"), "i"), rng.standard_normal((4, 3))
    in_short(mapped, x, np.zeros(4, int))
    with pytest.raises(IndexError, match="index is out of bounds") as caught:
        mapped(x, np.array([0, 1, 7, 2]))
    assert caught.value.__notes__ == ["raised on rank 2 of 4 of the axis 'i'"]


@pytest.mark.parametrize("f, message", [
    (hangs, "^rank {bad} of {count} has not come to psum over 'i' within 1 s$"),
    (hangs_at_its_end, "^rank {bad} of {count} has not ended within 1 s of the others$")])
@pytest.mark.parametrize("count", [2, 3])
def test_a_device_that_hangs(f, message, count):
    mapped = gs.pmap(f, "i")
    in_short(mapped, np.zeros((count, 3)))
    begun = time.monotonic()
    with pytest.raises(Lost, match=message.format(bad=count - 1, count=count)):
        mapped(one_large(count, count - 1))
    assert 1 <= time.monotonic() - begun < 4
    assert np.array_equal(mapped(np.zeros((count, 3))), np.zeros((count, 3)))


def test_a_device_that_is_late():
    """The others sleep, and meet it in Python."""
    def f(x, n):
        for _ in range(n):
            x = np.sin(x) + np.cos(x)
        return lax.psum(x, "i")
    mapped, x = gs.pmap(f, "i"), rng.standard_normal((2, 3000))
    first = mapped(x, np.array([1, 8000]))
    assert in_short(mapped, x, np.array([1, 8000])).tobytes() == first.tobytes()
    assert in_short(mapped, x, np.array([8000, 1])).tobytes() == mapped(x, np.array([8000, 1])).tobytes()


def test_a_report_that_runs_a_program_of_its_own(caplog):
    """What a device has the process do is outside of its team."""
    inner = gs.pmap(lambda x: lax.psum(x, "i"), "i")

    class Inner(logging.Handler):
        def emit(self, record):
            found.append(inner(np.array([[float(len(found))], [1.0]])).tolist())

    def f(x):
        log.warning("at %s", x[0])
        return lax.psum(x, "i")
    found, handler, mapped = [], Inner(), gs.pmap(f, "i")
    log.addHandler(handler)
    try:
        for _ in range(5):
            assert mapped(np.ones((2, 3))).tolist() == [[2.0] * 3] * 2
    finally:
        log.removeHandler(handler)
    assert len(found) == 10 and all(a == b for a, b in found)


# --- other threads and processes --------------------------------------------------------------------------------------

def test_several_threads_at_once():
    mapped, other = gs.pmap(lambda x: lax.psum(x, "i"), "i"), gs.pmap(lambda x: lax.pmax(2.0 * x, "i"), "i")
    in_short(mapped, np.zeros((2, 3000)))
    in_short(other, np.zeros((3, 3000)))
    found = {}

    def work(k):
        x, y = np.full((2, 3000), float(k)), np.full((3, 3000), float(k))
        found[k] = all(np.all(mapped(x) == 2.0 * k) and np.all(other(y) == 2.0 * k) for _ in range(100))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found == dict.fromkeys(range(4), True)


def test_the_general_way_between():
    """Threads go from compiled code to Python and back."""
    mapped = gs.pmap(lambda x: lax.psum(x, "i"), "i")
    in_short(mapped, np.ones((2, 3)))
    before = threading.active_count()
    for size in range(1, 30):
        assert np.array_equal(mapped(np.ones((2, size))), np.full((2, size), 2.0))
        assert np.array_equal(mapped(np.ones((2, 3))), np.full((2, 3), 2.0))
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_child_has_threads_of_its_own():
    mapped = gs.pmap(lambda x: lax.psum(x, "i"), "i")
    in_short(mapped, np.ones((2, 3)))
    child = os.fork()
    if not child:
        try:
            right = all(np.array_equal(mapped(np.ones((2, n))), np.full((2, n), 2.0)) for n in (3, 4, 3, 3))
            os._exit(0 if right else 1)
        except BaseException:
            os._exit(2)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done and os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(mapped(np.ones((2, 3))), np.full((2, 3), 2.0))


PROGRAM = """
import os, signal, threading, time
import numpy as np, gradscribe as gs
from gradscribe import lax, machine
machine.cores = lambda: 2

def f(x):
    n = 0
    while x[0] > 0.5 and n < 3 * 10 ** 12:
        n += 1 + int(x[1])
    return x + n

mapped = gs.pmap(f, "i")
for _ in range(4):
    mapped(np.zeros((2, 3)))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
x = np.zeros((2, 3))
x[1, 0] = 1.0
begun = time.monotonic()
try:
    mapped(x)
except KeyboardInterrupt:
    print("stopped", time.monotonic() - begun < 60.0)
print(mapped(np.zeros((2, 3))).sum())
"""


def test_an_interruption(tmp_path):
    """Ctrl-C while others are waited for ends the call; the next one has other threads."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    out = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=100, check=False,
                         env=os.environ | {"GRADSCRIBE_DEADLINE": "300"})
    assert out.stdout == "stopped True\n0.0\n", out.stderr


# --- parts ------------------------------------------------------------------------------------------------------------

def test_a_meeting_of_nobody_declines():
    """Outside of a team a sum goes the long way."""
    assert meeting.compiled("as_member")(0) == 0
    dispatcher = meeting.compiled("meet")
    assert dispatcher(1, 0, 0) == 1
