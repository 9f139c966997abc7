"""Sums that travel while the program goes on, and sums in single precision."""
import random
import re

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax
from gradscribe.ast_transform.mapping import on_devices
from gradscribe.runtime.groups import axes_bound
from gradscribe.transformed import Transformed

RNG = np.random.default_rng(3)


def loss(params, x):
    (U, a), (V, b), W = params
    x = np.tanh(x @ U + a)
    x = np.tanh(x @ V + b)
    return np.mean((x @ W) ** 2)


def step(params, x):
    value, gradient = gs.value_and_grad(loss)(params, x)
    value, gradient = lax.pmean((value, gradient), "i")
    return [(U - 0.1 * dU, a - 0.1 * da) for (U, a), (dU, da) in zip(params[:2], gradient[:2])], gradient[2], value


PARAMS = [(RNG.standard_normal((4, 5)), np.zeros(5)), (RNG.standard_normal((5, 6)), np.zeros(6)),
          RNG.standard_normal(6)]
X = RNG.standard_normal((2, 3, 4))


def text_of(f, *args, **options):
    return Transformed(f, on_devices({"i": 2}, **options)).source_for(*args)


# --- where they are ---------------------------------------------------------------------------------------------------

def test_a_sum_begins_where_its_adjoint_is_done():
    """Each under the statement of its layer, before the work of the layers below; the rest as written."""
    text = text_of(step, PARAMS, X[0], overlap=True)
    lines = [line.strip() for line in text.splitlines()]
    found = [k for k, line in enumerate(lines) if "_start(" in line]
    assert [lines[k] for k in found] == [
        "dW_sent = pmean_start(dW, 'i')", "db_sent = pmean_start(db, 'i')", "dV_sent = pmean_start(dV, 'i')",
        "da_sent = pmean_start(da_2, 'i')"], text
    assert lines[found[0] - 1].startswith("dW = ") and lines[found[2] - 1].startswith("dV = "), text
    assert lines.index("# x = np.tanh(x @ V + b)") < found[1] < lines.index("# x = np.tanh(x @ U + a)") < found[3], text
    assert text.count("pmean_done(") == 4 and "pmean(value, 'i')" in text and "pmean(dU_2, 'i')" in text


def test_nothing_is_halved_without_work_between():
    def alone(x):
        return lax.psum(np.sin(x), "i") + 1.0
    assert "_start" not in text_of(alone, X[0], overlap=True)
    assert "_start" not in text_of(lambda x: lax.psum((x * 2.0, x * 3.0), "i"), X[0], overlap=False)


def test_numbers_and_sums_over_several_axes_stay_whole():
    def both(x):
        n, y = np.sum(x), x * 2.0
        z = np.tanh(y @ y.T)
        return lax.psum(n, "i"), lax.psum(y, ("i", "j")), z
    text = Transformed(both, on_devices({"i": 2, "j": 2}, overlap=True)).source_for(X[0])
    assert "_start" not in text


def test_in_loops_and_branches():
    def train(x, n):
        w = x[0]
        for _ in range(n):
            g = np.cos(w)
            if n > 1:
                s = np.exp(w)
                h = np.tanh(x @ (x.T @ (x @ w)))
                w = w - lax.psum(s, "i") * h[0]
            h = np.sin(x @ w)
            w = w - 0.1 * lax.psum(g, "i") * np.sum(h)
        return w
    text = text_of(train, X[0], 3, overlap=True)
    lines = [line for line in text.splitlines() if " = " in line and "psum" in line]
    assert [re.sub(r"\W*(\w+) = (?:.*\b)?(psum_\w+)\(.*", r"\1 \2", line) for line in lines] == [
        "g_sent psum_start", "s_sent psum_start", "total psum_done", "total psum_done"], text


@pytest.mark.compiled
@pytest.mark.parametrize("options", [{"overlap": True}, {"overlap": True, "compress": True}])
def test_on_threads_the_text_means_the_same(options):
    """The halves on threads meet in the second one; plain and compiled."""
    wanted = gs.vmap(step, in_axes=(None, 0), out_axes=None, axis_name="i")(PARAMS, X)
    f = gs.pmap(step, "i", in_axes=(None, 0), out_axes=None, devices=[0, 1])
    f.programs[2, False] = gs.jit(Transformed(step, on_devices({"i": 2}, **options)))
    close = 1e-6 if "compress" in options else 1e-14
    for got, want in zip(gs.tree_util.tree_leaves(f(PARAMS, X)), gs.tree_util.tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=close, atol=close)
    assert "collected_done" in f.lowered


# --- nothing is read before it is there -------------------------------------------------------------------------------

class Late:
    """A group of two that have the same, whose sums are there when they are asked for, and not before."""
    name, rank, size = "i", 0, 2

    def __init__(self):
        self.sent = {}

    def start(self, x, label, out):
        self.sent[out.ctypes.data, out.shape] = 2.0 * x
        out[...] = np.nan

    def done(self, out, label):
        out[...] = self.sent.pop((out.ctypes.data, out.shape))

    def reduce(self, x, operation, label, out=None):
        out = np.empty_like(x) if out is None else out
        out[...] = 2.0 * x
        return out

    def reduce_all(self, arrays, outs, operation, label):
        for x, out in zip(arrays, outs):
            out[...] = 2.0 * x


def program_of(seed):
    """Vectors a to d, changed in place and anew, in loops and branches, and their sums over the devices."""
    r, lines = random.Random(seed), []

    def value():
        x, y = r.choice("abcd"), r.choice("abcd")
        return r.choice([f"np.tanh({x} + {y})", f"0.5 * {x} * {y}", f"np.tanh(M @ {x})", f"{x} - 0.1 * {y}"])

    def block(depth, count):
        pad = "    " * depth
        for _ in range(count):
            kind = r.random()
            if kind < 0.35:
                lines.append(f"{pad}{r.choice('abcd')} = {value()}")
            elif kind < 0.6:
                lines.append(f"{pad}{r.choice('abcd')} = 0.3 * lax.psum({r.choice('abcd')}, 'i')")
            elif kind < 0.7:
                lines.append(f"{pad}{r.choice('abcd')} = 0.4 * lax.pmean({value()}, 'i')")
            elif kind < 0.8:
                lines.append(f"{pad}{r.choice('ab')}[{r.randrange(3)}] = {r.choice('cd')}[{r.randrange(3)}] * 0.5")
            elif kind < 0.9 and depth < 3:
                lines.append(f"{pad}for k{depth} in range({r.choice([0, 2])}):")
                block(depth + 1, 3)
            elif depth < 3:
                lines.append(f"{pad}if n > {r.choice([1, 5])}:")
                block(depth + 1, 2)
            else:
                lines.append(f"{pad}d = {value()}")
    block(1, 14)
    return "\n".join(["def f(x, n):", "    a, b, c, d = x + 0.0, x * 2.0, np.sin(x), x - 1.0", *lines,
                      "    return np.sum(a * b) + np.sum(c * d), a, b, c, d", ""])


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, tmp_path):
    """Plain and compiled, the halves give what whole sums give, though a sum that is read too early is not a number."""
    text, path = program_of(seed), tmp_path / "program.py"
    path.write_text(text)
    space = {"np": np, "lax": lax, "M": RNG.standard_normal((3, 3))}
    exec(compile(text, str(path), "exec"), space)

    def both(x, n):
        value, *others = space["f"](x, n)
        return value, others
    for f in (both, lambda x, n: gs.value_and_grad(both, has_aux=True)(x, n)):
        x = np.array([0.3, -0.7, 1.1])
        with axes_bound({"i": Late()}):
            whole = Transformed(f, on_devices({"i": 2}))(x, 3)
            halves = Transformed(f, on_devices({"i": 2}, overlap=True))
            for found in (halves(x, 3), gs.jit(halves)(x, 3)):
                for got, want in zip(gs.tree_util.tree_leaves(found), gs.tree_util.tree_leaves(whole), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13, err_msg=text)


# --- single precision -------------------------------------------------------------------------------------------------

@pytest.mark.compiled
def test_compressed_is_the_sum_of_single_precision():
    f = gs.pmap(lambda x: (lax.psum(x, "i"), lax.pmean(x[0, 0], "i")), "i", compress=True, devices=[0, 1])
    total, mean = f(X)
    assert total.dtype == np.float64
    np.testing.assert_array_equal(total[0], (X[0].astype(np.float32) + X[1].astype(np.float32)).astype(np.float64))
    assert mean[0] == (X[0, 0, 0] + X[1, 0, 0]) / 2                  # a number stays
    z = X + 1j * X[::-1]
    single = z.astype(np.complex64)
    np.testing.assert_array_equal(f(z)[0][0], (single[0] + single[1]).astype(np.complex128))
    whole = gs.pmap(lambda x: lax.psum(x, "i"), "i", compress=True, devices=[0, 1])
    for dtype in (np.float32, np.int64):
        np.testing.assert_array_equal(whole(X.astype(dtype))[0], np.sum(X.astype(dtype), 0))
    assert whole(X[:, :0]).shape == (2, 0, 4)


@pytest.mark.compiled
def test_compressed_gradient_inside():
    def f(x):
        return np.sum(np.sin(lax.psum(x ** 2, "i")))
    exact = gs.pmap(gs.grad(f), "i", devices=[0, 1])(X)
    found = gs.pmap(gs.grad(f), "i", devices=[0, 1], compress=True)(X)
    assert 0 < np.max(np.abs(found - exact)) < 1e-5


# --- processes --------------------------------------------------------------------------------------------------------

VALUES = """
import numpy as np
import gradscribe as gs
from gradscribe import lax

N = gs.process_count()
rng = np.random.default_rng(0)


def step(params, x):
    def loss(params, x):
        (U, a), (V, b), W = params
        x = np.tanh(x @ U + a)
        x = np.tanh(x @ V + b)
        return np.mean((x @ W).real ** 2)
    for _ in range(3):
        value, (dU, dV, dW) = gs.value_and_grad(loss)(params, x)
        dW = lax.psum(dW, "i")
        value, (dU, dV) = lax.pmean((value, (dU, dV)), "i")
        (U, a), (V, b), W = params
        params = (U - 0.1 * dU[0], a - 0.1 * dU[1]), (V - 0.1 * dV[0], b - 0.1 * dV[1]), W - 0.1 * dW
    return params, value


def sizes(a, b, c, dtype=np.float64):
    def matrix(m, n):
        return (rng.standard_normal((m, n)) / np.sqrt(m + 1)).astype(dtype)
    return (matrix(a, b), np.zeros(b, dtype)), (matrix(b, c), np.zeros(c)), matrix(c, 2)


halves, whole = (gs.pmap(step, "i", in_axes=(None, 0), out_axes=None) for _ in range(2))
one, narrow = whole.program, gs.pmap(step, "i", in_axes=(None, 0), out_axes=None, compress=True)
whole.program = lambda size, overlap: one(size, False)

for params, dtype in ((sizes(4, 5, 6), float), (sizes(400, 500, 600), float), (sizes(400, 500, 3, np.float32), "f"),
                      (sizes(40, 0, 6), float), (sizes(4, 300, 600, np.complex128), float)):
    x = rng.standard_normal((N, 8, len(params[0][0]))).astype(dtype)
    found = halves(params, x)
    assert "collected_done" in halves.lowered
    for got, want in zip(gs.tree_util.tree_leaves(found), gs.tree_util.tree_leaves(whole(params, x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "f" else 1e-13)
    assert "collected_done" not in whole.lowered
    again = halves(params, x)
    assert all(np.array_equal(a, b) for a, b in zip(gs.tree_util.tree_leaves(found), gs.tree_util.tree_leaves(again)))
    single = narrow(params, x)
    for got, want in zip(gs.tree_util.tree_leaves(single), gs.tree_util.tree_leaves(found), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
print(f"ALL WELL ON {gs.process_index()}.", flush=True)
"""

FAULT = """
import os, signal, sys, time
import numpy as np
import gradscribe as gs
from gradscribe import machine
from gradscribe.runtime.groups import Lost

kind, bad = sys.argv[1], int(sys.argv[2])
world = machine.RUN["world"]
group, rank = world.group("i"), world.rank
x = np.ones(300_000)


def sums(fails):
    sent = []
    for k in range(5):
        given = x
        if fails and k == 2:
            if kind == "raise":
                raise ValueError("too hot")
            if kind == "SIGKILL":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "hang":
                time.sleep(1000)
            given = x[:-1] if kind == "shape" else x.astype(np.float32) if kind == "dtype" else x
            if kind == "fewer":
                continue
        sent.append(np.empty_like(given))
        group.start(given, "psum over 'i'", sent[-1])
        group.reduce(np.ones(3), "sum", "another")
    for out in sent:
        group.done(out, "psum over 'i'")
        assert np.array_equal(out, np.full(len(out), world.size))


sums(False)
print(f"BEGUN {rank} {time.time()};", flush=True)
try:
    sums(rank == bad)
    world.agree(group, "the end")
    print(f"WENT ON {rank};", flush=True)
except Lost as error:
    print(f"TOLD {rank} {time.time()} {error};", flush=True)
    raise
"""
FAULTS = {"raise": "rank {bad} of {count}: ValueError: too hot$",
          "SIGKILL": r"rank {bad} of {count} \(process \d+\) is gone; rank \d was in ",
          "hang": "rank {bad} of {count} has not come to .* within 3 s$",
          "shape": r"rank 0 is in psum over 'i' with float64\[300000\], rank {bad} in psum .* with float64\[299999\]",
          "dtype": r"rank 0 is in psum over 'i' with float64\[300000\], rank {bad} in psum .* with float32\[300000\]",
          "fewer": "rank 0 is in .*, rank {bad} in "}


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_values_of_processes(count, tmp_path):
    pytest.importorskip("mpi4py")
    from mpi_runs import mpiexec
    script = tmp_path / "values.py"
    script.write_text(VALUES)
    code, said = mpiexec(count, script)
    assert code == 0, said
    assert sorted(re.findall(r"ALL WELL ON (\d)\.", said)) == [str(k) for k in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_while_sums_are_on_their_way(fault, count, tmp_path):
    pytest.importorskip("mpi4py")
    from mpi_runs import DEADLINE, mpiexec
    script, bad = tmp_path / "fault.py", count - 1
    script.write_text(FAULT)
    code, said = mpiexec(count, script, fault, bad)
    assert code != 0 and "WENT ON" not in said, said
    begun = [float(at) for at in re.findall(r"BEGUN \d ([\d.]+);", said)]
    told = {rank: (float(at), words) for rank, at, words in re.findall(r"TOLD (\d) ([\d.]+) (.*?);(?= *TOLD|\n)", said)}
    assert set(told) - {str(bad)} == {str(k) for k in range(count) if k != bad}, said
    for rank, (at, words) in told.items():
        assert rank == str(bad) or re.match(FAULTS[fault].format(bad=bad, count=count), words), said
        assert at - max(begun) < DEADLINE + 3
