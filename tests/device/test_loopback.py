"""What goes to a device, byte by byte: arguments of kernels, products, graphs; the device is this processor."""
import numpy as np
import pytest
from device.loopback import looped
from device.programs import PROGRAMS, leaves

import gradscribe as gs
from gradscribe.runtime import blas

pytestmark = pytest.mark.filterwarnings("ignore:NumPy arrays are copied")      # CuPy's are NumPy's here


def there(cp, value):
    if isinstance(value, (list, tuple)):
        return type(value)(there(cp, v) for v in value)
    return cp.asarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def same(found, expected):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, map(np.asarray, expected)):
        single = b.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5 if single else 1e-11, atol=(
            2e-6 if single else 1e-13) * np.max(np.abs(b), initial=1))
        assert np.shape(a) == b.shape and np.asarray(a).dtype == b.dtype


@pytest.mark.parametrize("backend", ["cuda", "mlir"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend):
    function, args = PROGRAMS[name]
    expected = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    with looped(backend) as (cp, _):
        compiled = gs.jit(function, target="cuda")
        for _ in range(2):
            same(compiled(*there(cp, args)), expected)


@pytest.fixture
def graphed(monkeypatch):
    """What calls go through, of each function that is compiled."""
    from gradscribe.codegen.cuda import build
    made, kind = [], build.Graphed
    monkeypatch.setattr(build, "Graphed", lambda run: made.append(kind(run)) or made[-1])
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name, graphed, caplog):
    """Recorded in the second call, with other arguments later; what waits for an entry runs as it is, and says so."""
    function, args = PROGRAMS[name]
    with looped() as (cp, _):
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


def strided(x):
    """The same entries, neither by rows nor by columns."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


RNG = np.random.default_rng(2)
SHAPES = [((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((1,), (1, 5)),
          ((3, 1), (1,)), ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 5)),
          ((2, 3, 4), (4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((0, 4), (4, 5)), ((3, 0), (0, 5)),
          ((2, 3, 0), (2, 0, 5)), ((4,), (4,))]
FORMS = {"by rows": lambda x: x, "strided": strided,
         "by columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x,
         "wider rows": lambda x: np.concatenate([x, x], -1)[..., :x.shape[-1]],
         "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1]}


@pytest.mark.parametrize("dtype", "efdFD")
@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", FORMS)
def test_products(first, second, dtype):
    """However matrices lie; only what lies neither by rows nor by columns is copied."""
    with looped() as (cp, cublas):
        for a_shape, b_shape in SHAPES:
            a, b = (RNG.standard_normal(s) + 1j * RNG.standard_normal(s) for s in (a_shape, b_shape))
            a, b = ((x if dtype in "FD" else x.real).astype(dtype) for x in (a, b))
            expected = np.matmul(a, b) if dtype != "e" else np.matmul(a.astype("f"), b.astype("f")).astype("e")
            given = [FORMS[form](x).view(cp.ndarray) for form, x in ((first, a), (second, b))]
            found = blas.product(cp, *given)
            assert found.shape == expected.shape and found.dtype == expected.dtype
            tolerance = {"e": 2e-3, "f": 3e-6, "F": 3e-6}.get(dtype, 1e-14)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=10 * tolerance)
            if a.ndim > 1 or b.ndim > 1:
                out = cp.empty(expected.shape, dtype)
                assert blas.product(cp, *given, out) is out
                np.testing.assert_array_equal(np.asarray(out), np.asarray(found))


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


def test_streams_and_threads():
    """Each stream's products work in memory of their own, and a graph keeps what it was recorded with."""
    from concurrent.futures import ThreadPoolExecutor
    a = RNG.standard_normal((20, 20))
    with looped() as (cp, cublas):
        compiled = gs.jit(multiplied, target="cuda", graph=True)
        for _ in range(3):
            same(compiled(*there(cp, (a, a))), a @ a)
        seen = set()
        for _ in range(2):
            stream = cp.cuda.Stream()
            with stream:
                same(gs.jit(multiplied, target="cuda")(*there(cp, (a, a))), a @ a)
            seen.add(cublas.workspace[0])
        assert len(seen) == 2
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda _: blas.product(cp, *there(cp, (a, a))), range(4)):
                same(found, a @ a)
