"""gs.pmap over the processes of an MPI run: the values are vmap's, and whoever fails is named by all others.

Each run starts Python as often as it has ranks, which takes seconds: it holds as many checks as it can.
"""
import re
import time

import pytest

pytest.importorskip("mpi4py")

from mpi_runs import DEADLINE, left, mpiexec  # noqa: E402  only where mpi4py is

# --- values -----------------------------------------------------------------------------------------------------------

AGAINST_VMAP = """
import sys
import numpy as np
import gradscribe as gs
from gradscribe import lax

N, rank = gs.process_count(), gs.process_index()
rng = np.random.default_rng(0)
X, NUMBERS = rng.standard_normal((N, 3)), rng.standard_normal(N)
SQUARES, WIDE = rng.standard_normal((N, N, 3)), rng.standard_normal((N, 2 * N, N))
LARGE = rng.standard_normal((N, 200001))
COMPLEX, INTS = X + 1j * X[::-1], rng.integers(-9, 9, (N, 5))
RING, SHUFFLE = [(k, (k + 1) % N) for k in range(N)], [(3 * k + 1) % N for k in range(N)]
PROGRAMS = [
    (lambda x: x / lax.psum(np.exp(x), "i"), X), (lambda x: x * lax.psum(x, "i"), NUMBERS),
    (lambda x: x - lax.pmean(x ** 2, "i"), X), (lambda x: lax.psum((x, {"a": x ** 2}), "i")[1]["a"] * x, X),
    (lambda x: np.sum(lax.all_gather(x, "i") ** 2, 0) * x, X), (lambda x: lax.all_gather(np.sin(x), "i", axis=1), X),
    (lambda x: lax.all_gather(x ** 2, "i", tiled=True), X), (lambda x: lax.psum_scatter(np.sin(x), "i") ** 2, SQUARES),
    (lambda x: lax.psum_scatter(x ** 2, "i", scatter_dimension=1, tiled=True), WIDE),
    (lambda x: lax.all_to_all(x ** 2, "i", 0, 1), SQUARES), (lambda x: lax.all_to_all(np.sin(x), "i", 0, 0), SQUARES),
    (lambda x: lax.all_to_all(x ** 2, "i", 0, 1, tiled=True), WIDE),
    (lambda x: lax.ppermute(x ** 2, "i", RING) * x, X), (lambda x: lax.ppermute(np.exp(x), "i", [(0, 1)]), X),
    (lambda x: lax.pshuffle(x ** 2, "i", SHUFFLE) * x, X), (lambda x: x * lax.axis_index("i"), X),
    (lambda x: x ** 2 / lax.psum(1, "i"), X), (lambda x: lax.psum(x.T, "i") * 2.0, WIDE),
    (lambda x: x * lax.pmean(x, "i"), X.astype(np.float32)), (lambda x: x * lax.psum(x ** 2, "i"), LARGE)]
VALUES = [
    (lambda x: x - lax.pmax(x, "i"), X), (lambda x: 2 * x - lax.pmin(x, "i"), X), (lambda x: lax.pmax(x, "i"), INTS),
    (lambda x: lax.psum(x, "i") * lax.pmean(np.conj(x), "i"), COMPLEX), (lambda x: lax.psum(x, "i"), INTS),
    (lambda x: lax.pmean(x, "i"), INTS), (lambda x: lax.psum(x, "i"), INTS > 0),
    (lambda x: lax.all_gather(x, "i"), INTS > 0),
    (lambda x: lax.ppermute(x, "i", RING), COMPLEX), (lambda x: lax.pmin(x, "i"), INTS > 0)]


def same(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, what
    close = 1e-5 if want.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, want, rtol=close, atol=close, err_msg=str(what))


for k, (f, x) in enumerate(PROGRAMS + VALUES):
    by_ranks = gs.pmap(f, "i")
    found = by_ranks(x)
    same(found, gs.vmap(f, axis_name="i")(x), (k, "value"))
    assert by_ranks(x).tobytes() == found.tobytes(), k
    if k < len(PROGRAMS):
        def inside(x):
            return np.sum(np.sin(f(x)))
        gradient = gs.pmap(gs.grad(inside), "i")(x)
        same(gradient, gs.vmap(gs.grad(inside), axis_name="i")(x), (k, "gradient"))
        def tangent(x, dx):
            return gs.jvp(f, (x,), (dx,))[1]
        same(gs.pmap(tangent, "i")(x, np.cos(x)), gs.vmap(tangent, axis_name="i")(x, np.cos(x)), (k, "tangent"))

# a process's own part; results the same for all; trees, constants and keywords
own = gs.pmap(lambda x: lax.psum(x, "i"), "i")(X[rank:rank + 1])
same(own, np.sum(X, 0, keepdims=True), "own part")
replicated = gs.pmap(gs.grad(lambda x: lax.psum(np.sum(x ** 3), "i")), "i")(X)
same(replicated, N * 3 * X ** 2, "a replicated loss")


def layer(params, x, power, *, shift):
    y = x * params["w"] ** power + shift
    return lax.pmean(np.mean(y), "i"), y


words = dict(in_axes=({"w": None}, 0, None), out_axes=(None, 1), axis_name="i")
found = gs.pmap(layer, static_broadcasted_argnums=2, **words)({"w": X[0]}, X, 3, shift=NUMBERS)
expected = X * X[0] ** 3 + NUMBERS[:, None]
same(found[0], np.mean(expected), "mean")
same(found[1], expected.T, "columns")
def whole(x):
    return np.sum(np.sin(gs.pmap(lambda x: x * lax.psum(x, "i"), "i")(x)))
same(gs.grad(whole)(X), gs.grad(lambda x: np.sum(np.sin(gs.vmap(lambda x: x * lax.psum(x, "i"), axis_name="i")(x))))(X),
     "gradient outside")
for axes, length in ((0, N + 1), (1, 3 if N != 3 else 4)):
    try:
        gs.pmap(lambda x: x, in_axes=axes)(np.ones((N + 1, length)))
    except gs.KindError as error:
        assert f"there are {N} " in str(error), error
    else:
        raise AssertionError("a length that is not the number of processes")
np.savez(f"{sys.argv[1]}/rank_{rank}.npz", *[gs.pmap(f, "i")(x) for f, x in PROGRAMS])
print(f"ALL WELL ON {rank}.", flush=True)
"""


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_all_functions(count, tmp_path):
    """Values, gradients and tangents are vmap's on every rank, and all ranks have the same bits."""
    script = tmp_path / "values.py"
    script.write_text(AGAINST_VMAP)
    code, said = mpiexec(count, script, tmp_path)
    assert code == 0, said
    assert sorted(re.findall(r"ALL WELL ON (\d)\.", said)) == [str(k) for k in range(count)]
    files = [(tmp_path / f"rank_{k}.npz").read_bytes() for k in range(count)]
    assert len(files[0]) > 1000 and all(f == files[0] for f in files)


# --- faults -----------------------------------------------------------------------------------------------------------

FAULT = """
import os, signal, sys, time
import numpy as np
import gradscribe as gs
from gradscribe import lax
from gradscribe.runtime.groups import Lost

kind, bad = sys.argv[1], int(sys.argv[2])
rank, count = gs.process_index(), gs.process_count()


def added(x):
    return lax.psum(x, "i")


def doubled(x):
    return lax.psum(x * 2.0, "i")


step, others, x = gs.pmap(added, "i"), gs.pmap(doubled, "i"), np.ones((1, 3))
others.__name__ = step.__name__
for given in (x, np.ones((1, 4)), x.astype(np.float32)):          # compiled
    assert np.array_equal(step(given), count * given) and np.array_equal(others(given), 2 * count * given)
print(f"BEGUN {rank} {time.time()};", flush=True)
try:
    if rank == bad:
        if kind == "raise":
            raise ValueError("too hot")
        if kind == "exit":
            sys.exit(3)
        if kind == "os_exit":
            os._exit(4)
        if kind.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, kind))
        if kind == "hang":
            time.sleep(1000)
        x = np.ones((1, 4)) if kind == "shape" else x.astype(np.float32) if kind == "dtype" else x
        step = others if kind == "text" else step
    step(x)
    print(f"WENT ON {rank};", flush=True)
except Lost as error:
    print(f"TOLD {rank} {time.time()} {error};", flush=True)
    raise
"""
DIFFERENT = r"rank 0 is in pmap_added\(float64\[3\]\), text \w+, rank {bad} in pmap_added\({what}\), text \w+$"
FAULTS = {
    "raise": "rank {bad} of {count}: ValueError: too hot$",
    "exit": "rank {bad} of {count}: SystemExit: 3$",
    "os_exit": r"rank {bad} of {count} \(process \d+\) is gone; rank \d was in ",
    "SIGKILL": r"rank {bad} of {count} \(process \d+\) is gone; rank \d was in ",
    "SIGSEGV": r"rank {bad} of {count} \(process \d+\) is gone; rank \d was in ",
    "SIGSTOP": "rank {bad} of {count} has not come to pmap_added.* within 3 s$",
    "hang": "rank {bad} of {count} has not come to pmap_added.* within 3 s$",
    "shape": DIFFERENT.replace("{what}", r"float64\[4\]"),
    "dtype": DIFFERENT.replace("{what}", r"float32\[3\]"),
    "text": DIFFERENT.replace("{what}", r"float64\[3\]"),
}
SAID = {"raise": "ValueError: too hot", "exit": "exit 3", "os_exit": "rank {bad} ended with code 4",
        "SIGKILL": "rank {bad} was ended by SIGKILL", "SIGSEGV": "rank {bad} was ended by SIGSEGV"}
QUICK = ("raise", "SIGKILL")            # on two ranks; the others are slow


@pytest.mark.parametrize("fault, count", [
    pytest.param(fault, count, marks=() if fault in QUICK and count == 2 else pytest.mark.slow)
    for fault in FAULTS for count in (2, 4)])
def test_fault(fault, count, tmp_path, record_property):
    """All ranks that live say which failed, and why, soon; the run ends, and nothing is left of it."""
    script, bad = tmp_path / "fault.py", count - 1
    script.write_text(FAULT)
    code, said = mpiexec(count, script, fault, bad)
    assert code != 0 and "WENT ON" not in said, said
    begun = dict(re.findall(r"BEGUN (\d) ([\d.]+);", said))
    told = {rank: (float(at), words) for rank, at, words in re.findall(r"TOLD (\d) ([\d.]+) (.*?);(?= *TOLD|\n)", said)}
    alive = [str(k) for k in range(count) if k != bad]
    assert len(begun) == count and set(told) - {str(bad)} == set(alive), said
    for rank in alive:
        assert re.match(FAULTS[fault].format(bad=bad, count=count), told[rank][1]), said
    seconds = max(told[rank][0] for rank in alive) - max(map(float, begun.values()))
    record_property("seconds", round(seconds, 2))
    print(f"{fault} on {count}: {seconds:.2f} s")
    assert seconds < DEADLINE + 3
    assert SAID.get(fault, "").format(bad=bad) in said
    limit = time.monotonic() + 5
    while left(script) and time.monotonic() < limit:
        time.sleep(0.1)
    assert left(script) == []
