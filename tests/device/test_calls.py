"""What goes to a device: arguments of kernels, products, graphs.  Without one it is this processor, byte by byte."""
import contextlib
import subprocess
import sys

import numpy as np
import pytest
from device import kernels
from device.loopback import looped
from device.programs import PROGRAMS, leaves
from device.test_narrow import OWN, SHORT, WITHIN, cast

import gradscribe as gs
from gradscribe.runtime import blas, device

pytestmark = pytest.mark.filterwarnings("ignore:NumPy arrays are copied")      # CuPy's are NumPy's here


@contextlib.contextmanager
def real(backend="cuda"):
    """A device that is there."""
    import cupy
    with device.using(backend):
        yield cupy, None


@pytest.fixture(params=[looped, pytest.param(real, marks=pytest.mark.skipif(
    not device.has_device(), reason="there is no device"))], ids=["loopback", "device"])
def at(request):
    return request.param


def of_host(value):
    return value.get() if hasattr(value, "get") else np.asarray(value)


def there(cp, value):
    if isinstance(value, (list, tuple)):
        return type(value)(there(cp, v) for v in value)
    return cp.asarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def same(found, expected):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(map(of_host, found), map(np.asarray, expected)):
        single = b.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(a, b, rtol=2e-5 if single else 1e-11, atol=(
            2e-6 if single else 1e-13) * np.max(np.abs(b), initial=1))
        assert a.shape == b.shape and a.dtype == b.dtype


@pytest.mark.parametrize("backend", ["cuda", "mlir"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend, at):
    function, args = PROGRAMS[name]
    expected = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    with at(backend) as (cp, _):
        compiled = gs.jit(function, target="cuda")
        for _ in range(2):
            same(compiled(*there(cp, args)), expected)


@pytest.fixture
def graphed(monkeypatch):
    """What calls go through, of each function that is compiled."""
    from gradscribe.codegen.targets.cuda import build
    made, kind = [], build.Graphed
    monkeypatch.setattr(build, "Graphed", lambda run: made.append(kind(run)) or made[-1])
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name, graphed, caplog, at):
    """Recorded in the second call, with other arguments later; what waits for an entry runs as it is, and says so."""
    function, args = PROGRAMS[name]
    with at() as (cp, _):
        compiled = gs.jit(function, target="cuda", graph=True)
        for k in (0, 0, 0, 1, 0):
            given = [a * a.dtype.type(1 + k / 64) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a
                     for a in args]
            same(compiled(*there(cp, given)), function(*[a.copy() if isinstance(a, np.ndarray) else a for a in given]))
    waits = ".item()" in compiled.lowered
    assert [g is None for f in graphed for g in f.graphs.values()] == [waits]
    assert any("without a graph" in m for m in caplog.messages) == waits


def multiplied(a, b):
    return a @ b


def strided(cp, x):
    """The same entries, neither by rows nor by columns."""
    wide = cp.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


RNG = np.random.default_rng(2)
SHAPES = [((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((1,), (1, 5)),
          ((3, 1), (1,)), ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 5)),
          ((2, 3, 4), (4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((0, 4), (4, 5)), ((3, 0), (0, 5)),
          ((2, 3, 0), (2, 0, 5)), ((4,), (4,))]
FORMS = {"by rows": lambda cp, x: x, "strided": strided,
         "by columns": lambda cp, x: cp.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x,
         "wider rows": lambda cp, x: cp.concatenate([x, x], -1)[..., :x.shape[-1]],
         "backwards": lambda cp, x: cp.ascontiguousarray(x[..., ::-1])[..., ::-1],
         "from below": lambda cp, x: cp.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :] if x.ndim > 1 else x}


@pytest.mark.parametrize("dtype", ["e", SHORT, *"fdFD"], ids=str)
@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_products(first, second, dtype, at):
    """However matrices lie; only what lies neither by rows nor by columns is copied."""
    with at() as (cp, _):
        for a_shape, b_shape in SHAPES:
            a, b = (RNG.standard_normal(s) + 1j * RNG.standard_normal(s) for s in (a_shape, b_shape))
            a, b = ((x if dtype in ("F", "D") else x.real).astype(dtype) for x in (a, b))
            wide = np.float32 if a.itemsize == 2 else dtype
            expected = np.matmul(a.astype(wide), b.astype(wide)).astype(dtype)
            given = [FORMS[form](cp, cp.asarray(x)) for form, x in ((first, a), (second, b))]
            found = blas.product(cp, *given)
            assert found.shape == expected.shape and found.dtype == expected.dtype
            tolerance = {"e": 2e-3, SHORT: 1.6e-2, "f": 3e-6, "F": 3e-6}.get(dtype, 1e-14)
            np.testing.assert_allclose(of_host(found).astype(wide), expected.astype(wide), rtol=tolerance,
                                       atol=10 * tolerance)
            if a.ndim > 1 or b.ndim > 1:
                out = cp.empty(expected.shape, dtype)
                assert blas.product(cp, *given, out) is out
                np.testing.assert_array_equal(of_host(out), of_host(found))


def test_transposes_are_flags():
    """Nothing is copied for a product of a transpose, in stacks either."""
    rng = np.random.default_rng(0)
    q, k, w = (rng.standard_normal(s) for s in ((3, 20, 18), (3, 21, 18), (18, 19)))

    def attended(q, k):
        return np.sum((q @ np.swapaxes(k, -1, -2)) ** 2)

    def layered(q, w):
        return np.sum((q[0] @ w) ** 2)
    with looped() as (cp, cublas):
        for function, args, flags in [
                (attended, (q, k), [("gemm", 1, 0, 3), ("gemm", 0, 0, 3), ("gemm", 0, 1, 3)]),
                (attended, (q[None], k[None]), [("gemm", 1, 0, 3), ("gemm", 0, 0, 3), ("gemm", 0, 1, 3)]),
                (layered, (q, w), [("gemm", 0, 0, 1), ("gemm", 1, 0, 1), ("gemm", 0, 1, 1)])]:
            cublas.calls.clear()
            compiled = gs.jit(gs.value_and_grad(function, (0, 1)), target="cuda")
            same(compiled(*there(cp, args)), gs.value_and_grad(function, (0, 1))(*args))
            assert sorted(cublas.calls) == sorted(flags), cublas.calls


def test_precision_of_products():
    """In single precision as it stands; with tf32=True the text says so."""
    a, b = (RNG.standard_normal((20, 20)).astype(np.float32) for _ in range(2))
    with looped() as (cp, cublas):
        seen = []
        gemm = cublas.cublasGemmStridedBatchedEx_64
        cublas.cublasGemmStridedBatchedEx_64 = lambda *args: (seen.append(args[-2]), gemm(*args))[1]
        for options in ({}, {"tf32": True}):
            compiled = gs.jit(multiplied, target="cuda", **options)
            compiled(*there(cp, (a, b)))
            compiled(*there(cp, (a.astype(np.float64), b.astype(np.float64))))
        assert seen == [68, 70, 77, 70] and "host.dot_tf32(" in compiled.lowered


def test_streams_and_threads(at):
    """Each stream's products work in memory of their own, and a graph keeps what it was recorded with."""
    from concurrent.futures import ThreadPoolExecutor
    a = RNG.standard_normal((20, 20))
    with at() as (cp, cublas):
        compiled = gs.jit(multiplied, target="cuda", graph=True)
        for _ in range(3):
            same(compiled(*there(cp, (a, a))), a @ a)
        streams, seen = [cp.cuda.Stream(non_blocking=True) for _ in range(2)], set()
        for stream in streams:
            with stream:
                same(gs.jit(multiplied, target="cuda")(*there(cp, (a, a))), a @ a)
            seen.add(cublas.workspace[0] if cublas else stream.ptr)
        assert len(seen) == 2
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda _: blas.product(cp, *there(cp, (a, a))), range(4)):
                same(found, a @ a)


def half_precision(name, short, at):
    """What programs of test_narrow.py give, against double precision."""
    function, args = OWN[name]
    args = [cast(a, short) if np.asarray(a).dtype == np.float16 else a for a in args]
    exact = leaves(function(*[cast(a, np.float64) for a in args]))
    with at() as (cp, _):
        found = leaves(gs.jit(function, target="cuda")(*there(cp, args)))
    for a, b in zip(map(of_host, found), map(np.asarray, exact), strict=True):
        if a.dtype.kind in "fcV":
            np.testing.assert_allclose(a.astype(b.dtype), b, rtol=0,
                                       atol=WITHIN[short] * np.max(np.abs(b), initial=1e-3))
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("short", WITHIN, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", OWN)
def test_half_precision(name, short, at):
    half_precision(name, short, at)


def adjoint_of_kernel(name, at, kinds):
    """The adjoint of a user's kernel against plain Python; kinds: what makes its arrays, of a CuPy."""
    def results(of):
        kernel = kernels.made(device.cuda)[name]
        args, blocks, threads = kernels.arguments(name)
        bars = [of(np.full(np.shape(a), 0.5) if np.ndim(a) else np.zeros(1)) for a in args
                if np.asarray(a).dtype.kind == "f"]
        gs.grad(kernel)[blocks, threads](*[of(a) if np.ndim(a) else a for a in args], *bars)
        return list(map(of_host, bars))
    with device.using("plain"):
        expected = results(np.asarray)
    with at() as (cp, _):
        for of in kinds(cp):
            for a, b in zip(results(of), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", kernels.SHAPES)
def test_adjoints_of_kernels(name, at):
    """Of NumPy's arrays, which go there and come back, and of the device's own."""
    adjoint_of_kernel(name, at, lambda cp: (cp.asarray, np.asarray))


def test_a_number_that_is_returned_is_not_waited_for(graphed, at):
    """A loss divided by a length stays on the device, so that a step is a graph; rounded numbers are given rounded."""
    def loss(w, x):
        return np.mean(np.tanh(x @ w) ** 2)
    w, x = (RNG.standard_normal(s).astype("f") for s in ((5, 3), (20, 5)))
    step = gs.jit(gs.value_and_grad(loss), target="cuda", graph=True)
    with at() as (cp, _):
        for _ in range(3):
            same(step(*there(cp, (w, x))), gs.value_and_grad(loss)(w, x))
    assert ".item()" not in step.lowered and "np.float32(" in step.lowered
    assert [g is None for f in graphed for g in f.graphs.values()] == [False]


def test_machine_code_is_kept(tmp_path, monkeypatch):
    """By its text, its arguments and all versions; what is damaged is made again."""
    from gradscribe.codegen.targets.cuda import build
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return ("ptx", len(made), b"code")
    assert [build.kept(["a kernel", "sm_90"], make)[1] for _ in range(3)] == [1, 1, 1]
    assert build.kept(["a kernel", "sm_100"], make)[1] == 2
    for path in tmp_path.glob("*.bin"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert build.kept(["a kernel", "sm_90"], make)[1] == 3
    monkeypatch.setenv("GRADSCRIBE_CACHE", "off")
    assert build.kept(["a kernel", "sm_90"], make)[1] == 4


def test_faults(at):
    """An index beyond the end, as it stands and recorded; a singular matrix."""
    with at() as (cp, _):
        for graph in (False, True):
            taken = gs.jit(lambda x, i: x[i] * 2, target="cuda", graph=graph)
            for _ in range(3):
                same(taken(*there(cp, (np.arange(5.0), np.array([1, -1])))), np.array([2.0, 8.0]))
                with pytest.raises(IndexError, match="out of bounds"):
                    taken(*there(cp, (np.arange(5.0), np.array([1, 5]))))
        with pytest.raises(np.linalg.LinAlgError):
            gs.jit(lambda a: np.linalg.inv(a), target="cuda")(cp.zeros((5, 5)))


def test_sums_repeat(at):
    """The same bits in each call, scatters too where that is asked for."""
    x, k = RNG.standard_normal(20000), RNG.integers(0, 7, 20000)

    def scattered(x, k):
        z = np.zeros(7)
        for i in range(len(k)):
            z[k[i]] += x[i]
        return z
    with at() as (cp, _):
        summed, added = gs.jit(lambda x: np.sum(np.sin(x)), target="cuda"), gs.jit(
            scattered, target="cuda", deterministic=True)
        args = there(cp, (x, k))
        assert len({of_host(summed(args[0])).tobytes() for _ in range(3)}) == 1
        for _ in range(3):
            np.testing.assert_array_equal(of_host(added(*args)), scattered(x, k))


def test_arguments_of_kernels_that_are_views(at):
    """Arrays that share memory: what is read may not be taken before what is stored there."""
    def shifted(x, y):
        z = np.empty(len(x))
        for i in range(len(x)):
            z[i] = x[i] + y[i]
        return z, np.sum(z * y)
    with at() as (cp, _):
        whole = cp.asarray(np.arange(1000.0))
        compiled = gs.jit(shifted, target="cuda")
        for a, b in ((whole[1:], whole[:-1]), (whole[::2], whole[1::2]), (whole[::-1], whole), (whole, whole)):
            same(compiled(a, b), shifted(of_host(a), of_host(b)))


def soft(x):
    p = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return p / np.sum(p, axis=-1, keepdims=True)


def attended(q, k):
    return np.sum(soft(q @ np.swapaxes(k, -1, -2)) ** 2)


def written(x, i):
    z = np.zeros(4)
    v = x.T
    for k in range(len(i)):
        z[i[k]] += v[0, k] * v[1, k] ** 2
    v = np.sin(v)
    return np.sum(z ** 2) + np.sum(v[:, ::-1] * x.T)


DRAWN = RNG.standard_normal((20, 20, 20))
ODD = {
    "a stack and its own transposes": (gs.grad(lambda q: attended(q, q)), (DRAWN[:3, :5, :5],)),
    "axes of one": (gs.grad(attended, (0, 1)), (DRAWN[:1, :, :1], DRAWN[:1, :1, :1])),
    "a batch as long as all other axes": (gs.grad(attended, (0, 1)), (DRAWN, DRAWN[::-1])),
    "repeated indices of a view": (gs.grad(written), (DRAWN[0, :7, :2], np.array([1, 1, 0, 3, 3, -1, 1]))),
    "second derivatives of products": (gs.grad(lambda q: np.sum(gs.grad(lambda q: attended(q, q * 2))(q) ** 2)),
                                       (DRAWN[:2, :, :3],)),
    "one argument given twice": (gs.grad(lambda a, b: np.sum(np.tanh(a * b.T)), (0, 1)), (DRAWN[0], DRAWN[0])),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arguments(name, at):
    function, args = ODD[name]
    with at() as (cp, _):
        given = {id(a): cp.asarray(a) for a in args}
        same(gs.jit(function, target="cuda")(*[given[id(a)] for a in args]), function(*args))


def test_nothing_of_a_device_that_is_not_there_is_kept(tmp_path):
    """What stands for machine code here is no machine code: another process must not find it."""
    tmp_path.chmod(0o700)
    code = ("import numpy as np\nimport gradscribe as gs\nfrom device.loopback import looped\n"
            "from device.test_calls import soft\n"
            "with looped() as (cp, _):\n    gs.jit(soft, target='cuda')(cp.ones((30, 30)))\n    assert cp.launches\n")
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env={
        "PYTHONPATH": "tests:benchmarks", "PATH": "", "GRADSCRIBE_CACHE": str(tmp_path)})
    assert run.returncode == 0, run.stderr[-2000:]
    assert not list(tmp_path.glob("*.bin"))
