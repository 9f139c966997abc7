"""Bytes that calls move on a device, and their launches, counted by running the kernels' PTX."""
import numpy as np
import pytest
from on_device import PROGRAMS

import gradscribe as gs
from gradscribe.runtime import device

MOST = 1.15                             # of the least possible: arguments, results, what a gradient must keep
COUNTED = {                             # programs, and their launches
    "elementwise, gradient": 2, "rows": 1, "rows, gradient": 1, "network, batch 128": 16, "option prices, greeks": 2,
    "mandelbrot": 1, "adaptive steps": 1, "elementwise, half": 2, "network, half": 16}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_bytes_and_launches(name):
    pytest.importorskip("numba_cuda")
    from device import traffic
    program = PROGRAMS[name]
    args = program.make(np.random.default_rng(0), program.sizes[0])
    compiled = gs.jit(program.function, target="cuda")
    moved = traffic.moved(compiled, args)
    with traffic.loopback.looped() as (cp, _):
        result = compiled(*traffic.on_device(cp, args))
    least = program.least(*args) if program.least else size_of(args) + size_of(result)
    assert moved.bytes <= MOST * least
    assert len(moved.kernels) == COUNTED[name]


@pytest.mark.slow
def test_images():
    """Windows are written out for the library's products, five times what is least; nothing else is."""
    pytest.importorskip("numba_cuda")
    from device import traffic
    program = PROGRAMS["images, batch 128"]
    args = program.make(np.random.default_rng(0), program.sizes[0])
    compiled = gs.jit(program.function, target="cuda")
    moved = traffic.moved(compiled, args)
    assert moved.bytes <= 5.4 * program.least(*args)
    assert (len(moved.kernels), len(moved.libraries)) == (36, 38)
    assert compiled.lowered.count("@cuda.jit") == 29 and "atomic" not in compiled.lowered


def size_of(value):
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else value.nbytes


def test_what_is_counted():
    """An entry that is read twice in a launch counts once, one that is read and written twice."""
    pytest.importorskip("numba_cuda")
    from device import traffic

    def shifted(x):
        y = np.empty(39)
        for i in range(39):
            y[i] = x[i] + x[i + 1]
        return y
    moved = traffic.moved(gs.jit(shifted, target="cuda"), (np.arange(40.0),))
    assert (moved.bytes, len(moved.kernels), moved.libraries) == (8 * (40 + 39), 1, [])


def test_the_note_of_the_host():
    def rows(x, w):
        c = x - np.mean(x, axis=1, keepdims=True)
        return c * w
    compiled = gs.jit(rows, target="cuda")
    with device.using("plain"):
        compiled(np.ones((3, 40), np.float32), np.ones(40, np.float32))
        compiled(np.ones((4, 50), np.float32), np.ones(50, np.float32))
    assert "# rows_1 moves 8 * n_1 * n_2 + 4 * n_2 bytes, or more\ndef rows(" in compiled.lowered
