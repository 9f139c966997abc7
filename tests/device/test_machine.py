"""What Numba compiles for a device, run thread by thread: kernels' own PTX, through the whole path of a call."""
import numpy as np
import pytest
from device import kernels, ptx
from device.loopback import looped
from device.programs import PROGRAMS
from device.test_calls import ODD, adjoint_of_kernel, half_precision, of_host, same, there
from device.test_narrow import OWN, WITHIN

import gradscribe as gs
from gradscribe.runtime import assembled

cuda = None                             # of kernels: put there by what compiles them
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(params=["cuda", "mlir"])
def machine(request):
    """A device whose kernels are those of one of Numba's compilers."""
    pytest.importorskip("numba_cuda" if request.param == "cuda" else "numba_cuda_mlir")

    def made():
        return looped(request.param, machine=True)
    return made


@pytest.mark.parametrize("name", [*PROGRAMS, *ODD])
def test_programs(name, machine):
    function, args = {**PROGRAMS, **ODD}[name]
    with machine() as (cp, _):
        found = gs.jit(function, target="cuda")(*there(cp, args))
    same(found, function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args]))


@pytest.mark.parametrize("short", WITHIN, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", OWN)
def test_half_precision(name, short, machine):
    half_precision(name, short, machine)


@pytest.mark.parametrize("name", kernels.SHAPES)
def test_adjoints_of_kernels(name, machine):
    adjoint_of_kernel(name, machine, lambda cp: (cp.asarray,))


VALUES = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.5, 7.0, 1e-310, 1e300, -1e300, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_at_the_ends(dtype, machine):
    """Comparisons, extremes, roundings and remainders of pairs of numbers, NaN and infinities among them."""
    def pairs(x, y):
        return (x != y, x == y, x < y, x >= y, ~(x <= y), np.maximum(x, y), np.fmin(x, y), np.isnan(x), np.sign(x),
                np.floor(x), np.rint(x), np.where(x > y, x, y), np.abs(x), np.copysign(x, y), np.hypot(x, y),
                np.clip(x, -1, y * 0 + 2), np.signbit(x), np.exp(x), np.tanh(x), np.isfinite(x), x // 2, x % 3)

    def rows(x):
        return np.max(x, axis=1), np.min(x), np.argmax(x, axis=1), np.nanmax(x, axis=1), np.any(x != x, axis=1)
    x, y = (v.ravel() for v in np.meshgrid(VALUES.astype(dtype), VALUES.astype(dtype)))
    whole = np.stack([np.roll(VALUES, k)[:9] for k in range(6)]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = [*pairs(x, y), *rows(whole)]
        with machine() as (cp, _):
            found = [*gs.jit(pairs, target="cuda")(*there(cp, (x, y))), *gs.jit(rows, target="cuda")(cp.asarray(whole))]
    for k, (a, b) in enumerate(zip(map(of_host, found), expected, strict=True)):
        assert a.dtype == np.asarray(b).dtype, k
        np.testing.assert_allclose(a, b, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny, err_msg=str(k))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int8])
def test_whole_numbers(dtype, machine):
    def pairs(x, y):
        return x + y, x - y, x * y, x // y, x % y, x & y, x | y, x ^ y, np.maximum(x, y), x != y, abs(x), -x, ~x

    numbers = np.array([1, 2, 3, 7, 100, np.iinfo(dtype).max, np.iinfo(dtype).min + 1], dtype)
    numbers = np.concatenate([numbers, -numbers]) if np.iinfo(dtype).min else numbers
    x, y = (v.ravel() for v in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"), machine() as (cp, _):
        for a, b in zip(map(of_host, gs.jit(pairs, target="cuda")(*there(cp, (x, y)))), pairs(x, y), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


# --- that faults are seen ---------------------------------------------------------------------------------------------

def beyond(x, y):
    i = cuda.grid(1)
    y[i] = x[i]


def met(x, y):
    i = cuda.grid(1)
    if i + 1 < x.shape[0]:
        x[i] = x[i + 1] * 2
        y[i] = x[i]


def added(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i // 2] += x[i]


def parted(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.syncthreads()
        y[i] = x[i]
        cuda.syncthreads()
        y[i] += 1


@pytest.mark.parametrize("kernel, told", [(beyond, "no argument has"), (met, "at one entry"), (added, "at one entry"),
                                          (parted, None)])
def test_faults(kernel, told):
    """Memory of others, threads that meet; what no thread waits for that is there goes on."""
    pytest.importorskip("numba_cuda")
    assembled.without_device("sm_90")
    x, y = np.arange(40.0), np.zeros(40)
    code = assembled.machine_code(kernel, [(x.dtype, 1, True)] * 2)
    data = np.array([w for a in (x, y) for w in (0, 0, a.size, 8, a.ctypes.data, *a.shape, *a.strides)]).tobytes()

    def run():
        ptx.launched(code.ptx, (1, 1, 1), (64, 1, 1), data, [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in (x, y)])
    if told is None:
        return run()
    with pytest.raises(ptx.Fault, match=told):
        run()
