"""gs.export: what a C program gets from the library is what the Python function gives, digit for digit."""
import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

X = np.array([0.3, -1.2, 2.5, 0.7])
DATA = np.array([1.0, 2.0, 3.0])


def loss(params, x, y):
    h = x
    for w, b in params:
        h = np.tanh(h @ w + b)
    return np.mean((h - y) ** 2)


def problem():
    rng = np.random.default_rng(0)
    params = [(rng.standard_normal((n, m)), rng.standard_normal(m)) for n, m in ((3, 4), (4, 1))]
    return params, rng.standard_normal((5, 3)), rng.standard_normal((5, 1))


def called(made, name, arguments, shapes):
    """The status and the results of the C function."""
    function = getattr(ctypes.CDLL(str(made.library)), name)
    given, kept = [], []
    for a in arguments:
        if isinstance(a, np.ndarray):
            a = np.ascontiguousarray(a)
            kept.append(a)
            given += [a.ctypes.data_as(ctypes.c_void_p), *map(ctypes.c_int64, a.shape)]
        else:
            given.append(ctypes.c_double(a))
    outs = [np.full(shape, np.nan, dtype) for shape, dtype in shapes]
    return function(*given, *(o.ctypes.data_as(ctypes.c_void_p) for o in outs)), outs


def test_a_c_program_prints_the_same_digits(tmp_path):
    def energy(x):
        total = 0.0
        for i in range(1, len(x)):
            total += np.sin(x[i] * x[i - 1]) * np.exp(-x[i] ** 2)
        return total
    made = gs.export(gs.grad(energy), X, path=tmp_path / "slope", name="slope")
    program = tmp_path / "program.c"
    program.write_text(f"""
        #include <stdio.h>
        #include "slope.h"
        int main(void) {{
            double x[] = {{{', '.join(repr(float(v)) for v in X)}}}, out[4];
            int status = slope(x, 4, out);
            for (int i = 0; i < 4; i++) printf("%.17g\\n", out[i]);
            return status;
        }}""")
    subprocess.run(["cc", "-o", tmp_path / "program", program, made.library, f"-Wl,-rpath,{tmp_path}"], check=True)
    printed = subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True).stdout.split()
    expected = gs.jit(gs.grad(energy))(X)
    np.testing.assert_allclose(np.array(printed, float), expected, rtol=1e-15)
    np.testing.assert_allclose(expected, gs.grad(energy)(X), rtol=1e-13)


def test_a_network_with_its_gradient(tmp_path):
    params, x, y = problem()
    made = gs.export(gs.value_and_grad(loss), params, x, y, path=tmp_path / "network", name="loss_and_gradient")
    header = made.header.read_text()
    assert "out_1: float64[params_0_0_n0, params_0_0_n1]" in header and made.declaration in header
    flat = [a for pair in params for a in pair]
    status, outs = called(made, "loss_and_gradient", [*flat, x, y], [((), float), *((a.shape, float) for a in flat)])
    value, gradient = gs.value_and_grad(loss)(params, x, y)
    assert status == 0 and outs[0] == pytest.approx(value, rel=1e-14)
    for out, expected in zip(outs[1:], [a for pair in gradient for a in pair]):
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


def test_other_lengths_and_wrong_ones(tmp_path):
    made = gs.export(lambda a, x, s: (a @ x * s, np.sum(x)), gs.ShapeDtypeStruct((3, 2), float), np.ones(2), 2.0,
                     path=tmp_path / "f", name="f")
    a, x = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0])
    status, (y, total) = called(made, "f", [a, x, 0.5], [((4,), float), ((), float)])
    assert status == 0 and total == 6.0
    np.testing.assert_array_equal(y, a @ x * 0.5)
    assert called(made, "f", [a, np.ones(4), 0.5], [((4,), float), ((), float)])[0] != 0
    made = gs.export(lambda a, x: a * x, np.ones((3, 1)), np.ones((3, 2)), path=tmp_path / "g", name="g")
    assert called(made, "g", [np.ones((2, 1)), np.ones((2, 5))], [((2, 5), float)])[0] == 0
    assert called(made, "g", [np.ones((2, 5)), np.ones((2, 5))], [((2, 5), float)])[0] == -2


def test_no_entries_and_single_precision(tmp_path):
    made = gs.export(lambda x: (np.exp(x) * DATA[1], np.sum(x)), np.ones(3, np.float32), path=tmp_path / "f", name="f")
    status, (y, total) = called(made, "f", [np.zeros(0, np.float32)], [((0,), np.float64), ((), np.float32)])
    assert status == 0 and total == 0.0
    x = np.array([0.5, -1.0], np.float32)
    expected = gs.jit(lambda x: (np.exp(x) * DATA[1], np.sum(x)))(x)
    status, (y, total) = called(made, "f", [x], [((2,), expected[0].dtype), ((), np.float32)])
    np.testing.assert_array_equal(y, expected[0])
    assert total == expected[1]


def test_what_is_not_exported(tmp_path):
    with pytest.raises(gs.RuleError, match="calls a function that a library without Python cannot contain"):
        gs.export(lambda a: np.linalg.eigvalsh(a), np.eye(3), path=tmp_path / "f")
    with pytest.raises(gs.KindError, match="known only when running"):
        gs.export(lambda x: x[x > 0], np.ones(3), path=tmp_path / "f")
    with pytest.raises(ValueError, match="not a valid name for a C function"):
        gs.export(lambda x: x, np.ones(3), path=tmp_path / "f", name="a b")
    with pytest.raises(OSError, match="C compiler"):
        gs.export(lambda x: x, np.ones(3), path=tmp_path / "f", compiler="cc -no-such-option-anywhere")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_a_c_plus_plus_program_links_with_it(tmp_path):
    """The header says that the names are C's, and its types are known to both languages."""
    made = gs.export(lambda x, b: np.where(b, np.sum(x * x), 0.0), X, True, path=tmp_path / "twice", name="twice")
    (tmp_path / "main.cpp").write_text('#include <cstdio>\n#include "twice.h"\n\nint main() {\n'
                                       "    double x[2] = {3.0, 4.0}, out = 0;\n"
                                       "    int failed = twice(x, 2, true, &out);\n"
                                       '    std::printf("%d %g", failed, out);\n}\n')
    program = tmp_path / "main"
    subprocess.run(["c++", "-Wall", "-Werror", str(tmp_path / "main.cpp"), str(made.library),
                    f"-Wl,-rpath,{tmp_path}", "-o", str(program)], check=True)
    assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout == "0 25"
