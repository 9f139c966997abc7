"""gs.pmap on GPUs that are not there: the values are vmap's, what fails is named, and nothing waits for ever."""
import sys
import threading
import time
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from device.loopback import CUPY, looped
from device.loopback_nccl import CALLS, LIVE, NCCL, Threads

import gradscribe as gs
from gradscribe import gpus, lax, machine
from gradscribe.runtime import device, groups, nccl, teams
from gradscribe.tree_util import tree_leaves

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "oracle"))

from pmap_programs import PROGRAMS  # noqa: E402  those that are compared with JAX

pytestmark = pytest.mark.filterwarnings("ignore:NumPy arrays are copied")
rng = np.random.default_rng(5)


@pytest.fixture
def there():
    """Four GPUs."""
    with looped(count=4, nccl=NCCL) as (cp, _):
        yield cp
        for calls in (CALLS, LIVE, nccl._cliques):
            calls.clear()


def same(found, expected, tolerance=1e-13):
    found, expected = tree_leaves(found), tree_leaves(expected)
    assert len(found) == len(expected)
    for got, want in zip(found, map(np.asarray, expected)):
        got = np.asarray(got)
        assert got.dtype == want.dtype and got.shape == want.shape
        close = max(tolerance, 1e-6 if want.dtype in (np.float32, np.complex64) else 0)
        np.testing.assert_allclose(got, want, rtol=close, atol=close)


def summed(x):
    return lax.psum(x, "i")


# --- numbers ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", PROGRAMS)
def test_as_vmap(name, there):
    p = PROGRAMS[name]
    mapped = gs.pmap(p.function, **p.options, backend="gpu")
    axes = {k: v for k, v in p.options.items() if k in ("in_axes", "out_axes", "axis_name")}
    found, expected = mapped(*p.args, **p.words), gs.vmap(p.function, **axes)(*p.args, **p.words)
    same(found, expected)
    for again, before in zip(tree_leaves(mapped(*p.args, **p.words)), tree_leaves(found)):
        assert np.asarray(again).tobytes() == np.asarray(before).tobytes()


RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
FUNCTIONS = {
    "psum": summed, "pmax": lambda x: lax.pmax(x, "i"), "pmin": lambda x: lax.pmin(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"), "tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "shares": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1),
    "exchanged": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "i", RING), "one way": lambda x: lax.ppermute(x, "i", [(0, 1), (2, 2)]),
    "pshuffle": lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2])}


@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name, dtype, there):
    """Each function of each dtype, in a group by itself; bool is summed as whole numbers, as elsewhere."""
    x = rng.integers(0, 2 if dtype == "?" else 9, (4, 4, 8)).astype(dtype)
    if dtype in "FD":
        x = x * dtype_of(dtype)(1 - 2j)
    if name in ("pmax", "pmin") and dtype in "efd":
        x[1, 2, 3] = x[3, 0, 0] = np.nan
    expected = vmapped(FUNCTIONS[name], x)
    found = by_groups(there, FUNCTIONS[name], x)
    same(found, expected, 1e-2 if dtype == "e" else 1e-6)


def dtype_of(letter):
    return np.dtype(letter).type


def vmapped(function, x):
    """What threads give for the plain function."""
    grid = teams.Grid(["i"], [4], 5.0)

    def piece(rank):
        def run():
            with groups.axes_bound(grid.members(rank)):
                return function(x[rank])
        return run
    return np.stack(teams.side_by_side([piece(k) for k in range(4)], grid, 5.0))


def by_groups(cp, function, x):
    """What GPUs give for the plain function."""
    def program(part):
        return function(cp.asarray(part))
    found = gpus.side_by_side("i", program, [((part,), {}) for part in x], range(4), 5.0)
    assert [f.number for f in found] == [0, 1, 2, 3]
    return np.stack([f.get() for f in found])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits(dtype, there):
    x = rng.standard_normal((4, 300)).astype(getattr(ml_dtypes, dtype, dtype))
    mapped = gs.pmap(lambda x: (lax.psum(x * 2, "i"), lax.all_gather(x, "i")), "i", out_axes=None, backend="gpu")
    found = mapped(there.asarray(x))
    assert found[0].dtype == found[1].dtype == x.dtype
    np.testing.assert_allclose(found[0].astype(float), 2 * x.astype(float).sum(0), atol=0.1)
    assert np.array_equal(found[1].get(), x)


def test_empty_arrays(there):
    same(gs.pmap(lambda x: (lax.psum(x, "i"), lax.all_gather(x, "i"), lax.ppermute(x, "i", RING)), "i", backend="gpu")(
        np.ones((4, 0, 3))), (np.ones((4, 0, 3)), np.ones((4, 4, 0, 3)), np.ones((4, 0, 3))))


def test_sums_in_loops(there):
    """What passes ask other devices has one order, and is the host's; a loop around it is no kernel."""
    def rows(x):
        z, t = np.empty_like(x), 0.0
        for k in range(x.shape[0]):
            z[k] = lax.psum(x[k], "i") * k
        for row in x.reshape(-1, 2):
            t += np.sum(lax.pmean(np.exp(row), "i"))
        while t > 10.0:
            t = lax.pmax(t / 2, "i")
        return z, t, lax.axis_index("i") + x[0]
    x = rng.standard_normal((4, 20))
    mapped = gs.pmap(rows, "i", backend="gpu")
    expected = gs.vmap(rows, axis_name="i")(x)
    same(mapped(x), expected)
    assert mapped.lowered.count(".item()") == 1        # the end of the last loop


def loss(w, x, y):
    return np.mean((np.tanh(x @ w["v"]) @ w["u"] - y) ** 2)


def step(w, x, y):
    value, gradient = lax.pmean(gs.value_and_grad(loss)(w, x, y), "batch")
    return {k: w[k] - 0.1 * gradient[k] for k in w}, value


def test_training(there):
    """Two GPUs go the way of NumPy on all examples; the result is a device's, on the first."""
    w = {"v": rng.standard_normal((5, 7)), "u": rng.standard_normal(7)}
    x, y = rng.standard_normal((2, 12, 5)), rng.standard_normal((2, 12))
    train = gs.pmap(step, "batch", in_axes=(None, 0, 0), out_axes=None, backend="gpu")
    here, new = w, {k: there.asarray(v) for k, v in w.items()}
    parts = there.asarray(x), there.asarray(y)
    for _ in range(5):
        new, value = train(new, *parts)
        expected, gradient = gs.value_and_grad(loss)(here, x.reshape(-1, 5), y.reshape(-1))
        here = {k: here[k] - 0.1 * gradient[k] for k in here}
        assert np.isclose(value.item(), expected, rtol=1e-12)
    same(new, here, 1e-12)
    assert all(isinstance(v, there.ndarray) and v.number == 0 for v in new.values())
    assert "pmean" in train.source and "host.collected" in train.lowered


def test_sums_travel(there):
    """A sum that is begun is done on a stream of its own, and waited for where it is read."""
    def deep(w, x):
        for k in range(3):
            x = np.tanh(x @ w[k])
        return np.sum(x)
    w, x = [rng.standard_normal((6, 6)) for _ in range(3)], rng.standard_normal((4, 9, 6))
    mapped = gs.pmap(lambda w, x: lax.psum(gs.grad(deep)(w, x), "i"), "i", in_axes=(None, 0), out_axes=None,
                     backend="gpu")
    same(mapped(w, x), gs.grad(deep)(w, x.reshape(-1, 6)), 1e-12)
    assert "psum_start" in mapped.lowered and "host.collected_done" in mapped.lowered


@pytest.mark.parametrize("inside", [True, False])
def test_gradients_through_sums(inside, there):
    def scaled(x):
        return np.sum(np.sin(x / lax.psum(np.exp(x), "i")))
    x = rng.standard_normal((3, 5))
    expected = gs.vmap(gs.grad(scaled), axis_name="i")(x)
    if inside:
        same(gs.pmap(gs.grad(scaled), "i", backend="cuda")(x), expected)
    else:
        def whole(x):
            return np.sum(gs.pmap(scaled, "i", backend="cuda")(x))
        same(gs.grad(whole)(x), gs.grad(lambda x: np.sum(gs.vmap(scaled, axis_name="i")(x)))(x))


def test_several_sums_are_one_call(there):
    x = rng.standard_normal((2, 3))
    mapped = gs.pmap(lambda x: lax.psum((x, x * 2, np.sum(x)), "i"), "i", out_axes=None, backend="gpu")
    same(mapped(x), (x.sum(0), 2 * x.sum(0), x.sum()))
    assert "host.collected_all" in mapped.lowered


def test_words_of_pmap(there):
    """Numbers known when compiling, no mapped argument, keywords, sums in single precision."""
    x = rng.standard_normal((3, 40))
    of_power = gs.pmap(lambda x, n, *, shift: lax.psum(x ** n, "i") + shift, "i", static_broadcasted_argnums=1,
                       in_axes=(0, None), out_axes=None, backend="gpu")
    same(of_power(x, 3, shift=np.ones(3)), (x ** 3).sum(0) + 1)
    same(gs.pmap(lambda: lax.axis_index("i") * 2.0, "i", axis_size=4, backend="gpu")(), np.arange(4) * 2.0)
    small = gs.pmap(summed, "i", out_axes=None, backend="gpu", compress=True)(x)
    assert small.dtype == np.float64 and 0 < np.abs(small.get() - x.sum(0)).max() < 1e-5


def test_machine_code(there):
    """The same, of what Numba compiles for the device."""
    with looped(count=2, nccl=NCCL, machine=True):
        nccl._cliques.clear()
        x = rng.standard_normal((2, 40))
        same(gs.pmap(lambda x: x / lax.psum(np.sum(x ** 2), "i"), "i", backend="gpu")(x), x / np.sum(x ** 2))


# --- which devices ----------------------------------------------------------------------------------------------------

@pytest.mark.compiled
def test_arrays_say_where(there, monkeypatch):
    """Arrays of a device, and devices that are GPUs, ask for GPUs; NumPy's alone are taken by threads."""
    monkeypatch.setattr(machine, "cores", lambda: 4)
    x, add = np.ones((2, 3)), gs.pmap(summed, "i")
    assert isinstance(add(there.asarray(x)), there.ndarray) and type(add(x)) is np.ndarray
    for _ in range(3):                  # the short way of threads
        assert type(add(x)) is np.ndarray and isinstance(add(there.asarray(x)), there.ndarray)
    chosen = gs.pmap(summed, "i", devices=gs.devices("gpu")[1:])
    assert chosen(x).number == 1
    assert gs.devices("cuda")[2].platform == "gpu" and repr(gs.devices("gpu")[3]) == "CudaDevice(id=3)"
    assert gs.device_count("gpu") == gs.local_device_count("cuda") == 4 and gs.devices()[0].platform == "cpu"


def test_arrays_that_lie_elsewhere(there):
    """Parts are moved to the GPU that takes them, and results to the first of those that took them."""
    with there.cuda.Device(3):
        x, w = there.asarray(rng.standard_normal((5, 2, 7))), there.asarray(rng.standard_normal(7))
    found = gs.pmap(lambda x, w: (lax.psum(x, "i") * w, lax.axis_index("i")), "i", in_axes=(1, None), out_axes=(1, 0),
                    devices=[there.cuda.Device(2), there.cuda.Device(1)])(x, w)
    same(found, (np.repeat((x.get().sum(1) * w.get())[:, None], 2, 1), np.arange(2)))
    assert [f.number for f in found] == [2, 2] and CUPY.current == 0


def refused(call, *texts):
    with pytest.raises(gs.KindError) as found:
        call()
    for text in texts:
        assert text in str(found.value), str(found.value)


def test_what_is_not_there(there):
    x = np.ones((5, 2))
    refused(lambda: gs.pmap(summed, "i", backend="gpu")(x), "have length 5, and there are 4 devices")
    refused(lambda: gs.pmap(summed, "i", backend="gpu", devices=[0, 4])(x[:2]), "GPU 4, and there are 4", "gs.devices")
    refused(lambda: gs.pmap(summed, "i", backend="gpu", devices=[1, 1])(x[:2]), "a GPU twice: [1, 1]")
    refused(lambda: gs.pmap(summed, "i", backend="tpu"), "'threads', 'mpi' or 'gpu', not 'tpu'")
    refused(lambda: gs.devices("tpu"), "'cpu', 'gpu' or 'cuda', not 'tpu'")
    mesh = gs.Mesh((2,), ("i",))
    refused(lambda: gs.shard_map(summed, mesh=mesh, in_specs=gs.P("i"), out_specs=gs.P(), backend="gpu"),
            "gs.shard_map does not run on GPUs", "gs.pmap")
    with looped(count=4):
        refused(lambda: gs.pmap(summed, "i", backend="gpu")(x[:2]), "NCCL", "gradscribe[nccl]", "Leave backend out")
    with device.using("twin"):
        refused(lambda: gs.pmap(summed, "i", backend="gpu")(x[:2]), "'twin'", "Leave that out")


@pytest.mark.skipif(device.has_device(), reason="there is a GPU")
def test_no_gpu():
    refused(lambda: gs.pmap(summed, "i", backend="gpu")(np.ones((2, 2))), "no GPU", "Leave backend out")
    assert gs.devices("gpu") == [] and gs.device_count("gpu") == 0


# --- what fails -------------------------------------------------------------------------------------------------------

@pytest.fixture
def goes_on(there):
    """After the test the next call works, with other communicators; those of before are gone."""
    yield there
    CUPY.busy.clear()
    before = set(LIVE)
    same(gs.pmap(summed, "i", backend="gpu")(np.ones((3, 2))), np.full((3, 2), 3.0))
    assert len(LIVE - before) == 3


def guarded(x):
    if x[0] > 100.0:
        raise ValueError("too large")
    return lax.psum(x, "i")


@pytest.mark.parametrize("rank", [0, 2])
def test_an_exception(rank, goes_on):
    x, mapped = np.ones((3, 2)), gs.pmap(guarded, "i", backend="gpu")
    mapped(x)
    x[rank, 0] = 101.0
    start = time.monotonic()
    with pytest.raises(ValueError, match="too large") as found:
        mapped(x)
    assert found.value.__notes__ == [f"raised on rank {rank} of 3 of the axis 'i'"] and time.monotonic() - start < 5
    assert not any(c.ranks == 3 for c in LIVE)


def test_an_index_beyond_the_end(goes_on):
    def taken(x, k):
        return lax.psum(x[k], "i")
    with pytest.raises(IndexError) as found:
        gs.pmap(taken, "i", backend="gpu")(np.ones((3, 4)), np.array([1, 9, 2]))
    assert found.value.__notes__ == ["raised on rank 1 of 3 of the axis 'i'"]


def test_an_end_while_others_wait(goes_on):
    def uneven(x):
        if x[0] > 0.0:
            return lax.psum(x, "i")
        return x
    with pytest.raises(groups.Lost, match="rank 1 has ended, and rank . waits in psum over 'i'"):
        gs.pmap(uneven, "i", backend="gpu")(np.array([[1.0], [-1.0], [1.0]]))


def test_a_device_that_hangs(goes_on, monkeypatch):
    monkeypatch.setenv("GRADSCRIBE_DEADLINE", "1")
    CUPY.busy.add(1)
    with pytest.raises(groups.Lost, match="rank 1 of 3 has not ended within 1 s of the others"):
        gs.pmap(summed, "i", backend="gpu")(np.ones((3, 2)))
    monkeypatch.undo()


def test_a_collective_that_fails(goes_on, monkeypatch):
    """What one GPU's NCCL says is named; what the others' say then is a consequence."""
    whole = NCCL.NcclCommunicator.allReduce

    def fails(self, *args):
        if self.rank == 1:
            raise NCCL.NcclError("NCCL_ERROR_SYSTEM_ERROR: unhandled system error")
        return whole(self, *args)
    monkeypatch.setattr(NCCL.NcclCommunicator, "allReduce", fails)
    with pytest.raises(NCCL.NcclError, match="unhandled system error") as found:
        gs.pmap(summed, "i", backend="gpu")(np.ones((3, 2)))
    assert found.value.__notes__ == ["raised on rank 1 of 3 of the axis 'i'"]
    monkeypatch.undo()


def test_calls_from_two_threads(there):
    """One at a time has the GPUs: sums of two calls do not meet."""
    x, found = rng.standard_normal((3, 50)), [None] * 4
    add = gs.pmap(lambda x: lax.psum(lax.psum(x, "i") + x, "i"), "i", backend="gpu")

    def run(k):
        found[k] = add(x * (k + 1))
    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        assert found[k] is not None
        same(found[k], np.repeat(4 * (k + 1) * x.sum(0)[None], 3, 0), 1e-12)


# --- a process for each -----------------------------------------------------------------------------------------------

class World:
    """What gradscribe.mpi.World is to a process; the processes are threads."""

    def __init__(self, meeting, rank, hosts):
        self.meeting, self.rank, self.size, self.broken = meeting, rank, len(hosts), None
        self.processes, self.comm = [(host, 100 + k) for k, host in enumerate(hosts)], self

    def bcast(self, value, root):
        return self.meeting.all(self.rank, value)[root]

    def group(self, name):
        return types.SimpleNamespace(name=name, size=self.size, rank=self.rank)

    def agree(self, line, what):
        said = self.meeting.all(self.rank, what)
        if set(said) != {what}:
            raise groups.Lost(f"rank 0 is in {said[0]}, and others in {said[1:]}")

    def wait(self, line, request, what):
        assert request.Test()

    def tell(self, reason):
        self.broken = reason, self.rank
        self.meeting.abort()


def as_processes(monkeypatch, hosts, call):
    """What each of the processes of a run gives or raises."""
    meeting, found, own = Threads(len(hosts)), [None] * len(hosts), threading.local()

    class Run(dict):
        def __getitem__(self, name):
            return own.world
    monkeypatch.setattr(machine, "process_count", lambda: len(hosts))
    monkeypatch.setattr(machine, "RUN", Run(world=None))

    def process(rank):
        own.world = World(meeting, rank, hosts)
        CUPY.here.device = 0
        try:
            found[rank] = call(rank)
        except Exception as error:
            found[rank] = error
    threads = [threading.Thread(target=process, args=(k,)) for k in range(len(hosts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def test_processes(there, monkeypatch):
    """One process a GPU, that of its number on its host; all get the results of all, or their own part."""
    x, hosts = rng.standard_normal((4, 3)), ["a", "b", "a", "b"]

    def call(rank):
        mapped = gs.pmap(lambda x: (x / lax.psum(np.exp(x), "i"), lax.axis_index("i")), "i", backend="gpu")
        whole, own = mapped(x), mapped(there.asarray(x[rank:rank + 1]))
        return whole, own, CUPY.current, whole[0].number
    expected = x / np.exp(x).sum(0), np.arange(4)
    found = as_processes(monkeypatch, hosts, call)
    for rank, (whole, own, current, number) in enumerate(found):
        same(whole, expected)
        same(own, tuple(e[rank:rank + 1] for e in expected))
        assert current == number == [0, 0, 1, 1][rank]


def test_more_processes_than_gpus(there, monkeypatch):
    found = as_processes(monkeypatch, ["a"] * 5, lambda rank: gs.pmap(summed, "i", backend="gpu")(np.ones((5, 2))))
    assert isinstance(found[4], gs.KindError) and "rank 4 is process 4 of its host, which has 4 GPUs" in str(found[4])


def test_a_process_that_fails(there, monkeypatch):
    x = np.ones((3, 2))
    x[1, 0] = 101.0
    found = as_processes(monkeypatch, ["a"] * 3, lambda rank: gs.pmap(guarded, "i", backend="gpu")(x))
    assert isinstance(found[1], ValueError) and found[1].__notes__ == ["raised on rank 1 of 3 of the axis 'i'"]
    assert not any(c.ranks == 3 for c in LIVE)


OVER_MPI = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import gradscribe as gs
from gradscribe import lax
from device import loopback_nccl
from device.loopback import looped

N, rank = gs.process_count(), gs.process_index()
from mpi4py import MPI
loopback_nccl.MEETINGS.append(lambda size: loopback_nccl.Processes(MPI.COMM_WORLD.Dup()))
rng = np.random.default_rng(0)
x, w = rng.standard_normal((N, 8, 3)), rng.standard_normal(3)


def step(w, x):
    value, gradient = lax.pmean(gs.value_and_grad(lambda w: np.mean(np.tanh(x @ w) ** 2))(w), "i")
    return w - 0.1 * gradient, value, lax.ppermute(x, "i", [(0, 1)]), lax.axis_index("i")


with looped(count=N, nccl=loopback_nccl.NCCL) as (cp, _):
    train = gs.pmap(step, "i", in_axes=(None, 0), out_axes=(None, None, 0, 0), backend="gpu")
    new = cp.asarray(w)
    for _ in range(2):
        new, value, sent, place = train(new, x)
        flat = x.reshape(-1, 3)
        expected, gradient = gs.value_and_grad(lambda w: np.mean(np.tanh(flat @ w) ** 2))(w)
        w = w - 0.1 * gradient
        assert np.isclose(value.item(), expected)
    assert np.allclose(new.get(), w) and place.get().tolist() == list(range(N))
    assert np.array_equal(sent.get()[1], x[0]) and not sent.get()[0].any()
    assert new.number == rank
print(f"ALL WELL ON {rank}.", flush=True)
"""


def test_over_mpi(tmp_path):
    """NCCL's id and its start go over MPI itself; what stands for NCCL's calls does so too."""
    pytest.importorskip("mpi4py")
    from mpi_runs import mpiexec
    script = tmp_path / "gpus.py"
    script.write_text(OVER_MPI)
    code, said = mpiexec(2, script, TESTS)
    assert code == 0, said
    assert all(f"ALL WELL ON {k}." in said for k in range(2)), said
