"""Programs for a device, kernel by kernel on the processor: blocks of one thread, the last first."""
import subprocess
import sys

import numpy as np
import pytest
from device.programs import PROGRAMS, X, differences

import gradscribe as gs
from gradscribe.runtime import device as backends
from gradscribe.runtime.twin import Kernel


@pytest.fixture
def backend():
    before = backends.chosen()
    yield backends.use
    backends.use(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plain(name, backend):
    backend("plain")
    assert not differences(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_checks(name, backend):
    backend("plain")
    assert not differences(name, check_bounds=False)


def test_what_is_not_checked(backend):
    """Indices from the end are, those beyond it are not; nothing waits for the device."""
    backend("plain")
    f = gs.jit(lambda x, i: x[i] * 2, target="cuda", check_bounds=False)
    np.testing.assert_array_equal(f(X[0], np.array([1, -1])), X[0, [1, -1]] * 2)
    assert "wrong" not in f.lowered and "check_places" not in f.lowered and "place_of" in f.lowered


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name, backend):
    backend("twin")
    assert not differences(name)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_simulator(part):
    """In processes of their own: Numba looks at its environment when it is imported."""
    code = ("import sys\nfrom device.programs import PROGRAMS, differences\n"
            "sys.setswitchinterval(1e-5)                # threads take turns often, and meet where they can\n"
            f"bad = [n for n in list(PROGRAMS)[{part}::4] if differences(n)]\nassert not bad, bad\n")
    environment = {"NUMBA_ENABLE_CUDASIM": "1", "GRADSCRIBE_CUDA": "simulator", "PYTHONPATH": "tests:benchmarks",
                   "PATH": "", "GRADSCRIBE_CACHE": "off"}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=280,
                         env=environment)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.timeout(1200)
def test_assembled(backend):
    """For sm_90: nothing spilled, nothing in double precision where all is in single, sums of entries at once."""
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.bindings.nvjitlink")
    from gradscribe.runtime.assembled import reports
    backend("ptx")
    reports.clear()
    for name in PROGRAMS:
        assert not differences(name)
    assert len(reports) > 60
    assert not [r for r in reports if r.spills]
    allowed = {"vmap_rotated_1", "vmap_grad_lambda_1", "waves_1"}      # sines of large angles: libdevice reduces them
    assert not [r for r in reports if r.single and r.doubles and r.name not in allowed]
    assert any("add" in kind for r in reports if r.name.startswith("grad_taken") for kind in r.atomics)


def sines(x):
    return np.sin(x) * np.arctan2(x, x + np.float32(1)) + np.cosh(x)


def sines_in_double(x):
    return np.sin(x.astype(np.float64)).astype(np.float32) * np.cosh(x.astype(np.float64)).astype(np.float32)


def test_elementary_functions_are_single_where_all_is(backend):
    """What is computed in double because the program says so stays so."""
    backend("plain")
    x = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    for function, double in ((sines, False), (sines_in_double, True)):
        compiled = gs.jit(function, target="cuda")
        np.testing.assert_allclose(compiled(x), function(x), rtol=2e-6, atol=1e-6)
        assert ("np.float64(" in compiled.lowered) == double


def test_an_index_beyond_the_end(backend):
    backend("plain")
    with pytest.raises(IndexError, match="out of bounds"):
        gs.jit(lambda x, i: x[i] * 2, target="cuda")(X[0], np.array([1, 5]))


def over_lengths(x, k):
    z = np.zeros(40)
    for i in range(90):
        for _ in range(k[i]):
            z[k[i]] += x[i]
    return z


def powers(x, k):
    z = np.zeros(len(k), np.int64)
    for i in range(len(k)):
        z[i] = x[i] ** k[i]
    return z


def until(x, k):
    z = np.zeros(len(k))
    for i in range(len(k)):
        n = k[i]
        while n > 0:
            for j in range(n):
                z[i] += x[i + 60] + x[j + 60]
            n -= 1
    return z


@pytest.mark.parametrize("name", ["plain", "twin"])
@pytest.mark.parametrize("function, x, right, wrong, error", [
    (over_lengths, np.ones(90), np.arange(90) % 7, np.arange(89) % 7, IndexError),
    (over_lengths, np.ones(89), np.arange(90)[::-1] % 89 % 7, np.arange(90) % 7, IndexError),
    (powers, np.arange(60), np.arange(60) % 3, np.arange(60) % 3 - 1, ValueError),
    (until, np.arange(64.0), np.array([1, 2, 4]), np.array([1, 2, 5]), IndexError)])
def test_what_threads_do_not_raise(name, backend, function, x, right, wrong, error):
    """Threads go on with nothing, and the host raises what the processor would have raised."""
    backend(name)
    compiled = gs.jit(function, target="cuda")
    np.testing.assert_array_equal(compiled(x, right), function(x, right))
    assert "raise" not in compiled.lowered or "lengths of arguments" in compiled.lowered
    with pytest.raises(error) as expected:
        function(x, wrong)
    with pytest.raises(error, match="Integers to negative" if error is ValueError else "out of bounds"):
        gs.jit(function, target="cuda")(x, wrong)
    assert expected.type is error


def test_raising_functions_have_a_form_for_threads():
    """Of all that threads may call."""
    import ast
    import inspect
    import textwrap

    from gradscribe.codegen.helpers import HELPERS
    from gradscribe.codegen.loops.analysis.effects import CHECKS
    from gradscribe.codegen.loops.analysis.parallelism import is_of_numbers
    from gradscribe.runtime.device_functions import NOTING
    raising, calls = set(), {}
    for name, function in HELPERS.items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(function, "py_func", function))))
        calls[name] = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        if any(isinstance(n, ast.Raise) for n in ast.walk(tree)):
            raising.add(name)
    raising -= {n for n in raising if n.startswith(("lapack_", "blas_"))}
    called = {n for n in HELPERS if is_of_numbers(n)} - CHECKS
    assert called & raising == {*NOTING, "place"} & called
    assert not [n for n in called if calls[n] & raising]


def test_what_a_twin_tells():
    """A kernel whose passes want an order gives other numbers."""
    space = {"cuda": backends._bound("plain", "cuda")}
    import linecache
    text = ("def running(x):\n    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):\n"
            "        x[i] = x[i] + (x[i - 1] if i > 0 else 0.0)\n")
    linecache.cache["<running>"] = (len(text), None, text.splitlines(True), "<running>")
    exec(compile(text, "<running>", "exec"), space)
    x = np.ones(7)
    Kernel(space["running"], False)[(3,), (1,)](x)
    assert list(x) != list(np.cumsum(np.ones(7)))


def test_sums_are_the_same_again(backend):
    backend("twin")
    f = gs.jit(lambda x: np.sum(np.sin(x)), target="cuda")
    x = np.random.default_rng(0).standard_normal(1000)
    assert len({float(f(x)) for _ in range(5)}) == 1


@pytest.mark.golden
@pytest.mark.parametrize("name", ["standardised", "softmax, longer rows", "gradient of orbit",
                                  "gradient of taken", "extremes",
                                  "gradient of mlp_loss", "black_scholes"])
def test_text(name, golden, backend):
    backend("plain")
    function, args = PROGRAMS[name]
    compiled = gs.jit(function, target="cuda")
    compiled(*args)
    golden(f"{name.replace(', ', '_').replace(' ', '_')}.py", compiled.lowered)
