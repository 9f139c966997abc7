"""Elementary functions of compiled loops: units in the last place against mpmath, ends, assembly."""
import math
import types

import mpmath
import numba
import numpy as np
import pytest
from mpmath import mpf
from scipy import special

import gradscribe as gs
from gradscribe.codegen import jit_cpu
from gradscribe.codegen.llvm_inline import ELEMENTARY, VMATH, in_single, straight
from gradscribe.runtime import vmath, vmath32

rng = np.random.default_rng(0)
COUNT = 400


def uniform(low, high, count=COUNT):
    return rng.uniform(low, high, count)


def magnitudes(low, high, count=COUNT):
    """Numbers of every size, from 2**low to 2**high."""
    return 2.0 ** rng.uniform(low, high, count)


def both(x):
    return np.concatenate([x, -x])


ANGLES = np.concatenate([uniform(-10, 10), both(magnitudes(-30, 46)), np.arange(1, 200) * (math.pi / 2),
                         np.round(magnitudes(1, 46)) * (math.pi / 2)])
POSITIVE = np.concatenate([magnitudes(-1074, 1023), uniform(0.5, 2), 1 + both(magnitudes(-50, -2))])
UNIT = np.concatenate([uniform(-1, 1), both(1 - magnitudes(-50, -1)), both(magnitudes(-60, 0))])
CASES = {       # exact function, NumPy's or SciPy's, samples
    "exp": (mpmath.exp, np.exp, np.concatenate([uniform(-745, 709), both(magnitudes(-60, 0))])),
    "exp2": (lambda x: mpf(2) ** x, np.exp2, np.concatenate([uniform(-1074, 1023), both(magnitudes(-60, 0))])),
    "expm1": (mpmath.expm1, np.expm1, np.concatenate([uniform(-40, 709), uniform(-2, 2), both(magnitudes(-1070, 0))])),
    "log": (mpmath.log, np.log, POSITIVE),
    "log2": (lambda x: mpmath.log(x, 2), np.log2, POSITIVE),
    "log10": (mpmath.log10, np.log10, POSITIVE),
    "log1p": (mpmath.log1p, np.log1p, np.concatenate([uniform(-0.9, 3), magnitudes(-1070, 1000),
                                                        -magnitudes(-60, -0.1)])),
    "sinh": (mpmath.sinh, np.sinh, np.concatenate([uniform(-710, 710), both(magnitudes(-1070, 5))])),
    "cosh": (mpmath.cosh, np.cosh, np.concatenate([uniform(-710, 710), both(magnitudes(-60, 5))])),
    "tanh": (mpmath.tanh, np.tanh, both(magnitudes(-1070, 5))),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), special.expit,
                 np.concatenate([uniform(-740, 40), uniform(-3, 3)])),
    "sin": (mpmath.sin, np.sin, ANGLES),
    "cos": (mpmath.cos, np.cos, ANGLES),
    "tan": (mpmath.tan, np.tan, ANGLES),
    "arctan": (mpmath.atan, np.arctan, both(magnitudes(-1070, 300))),
    "arcsin": (mpmath.asin, np.arcsin, UNIT),
    "arccos": (mpmath.acos, np.arccos, UNIT),
    "erf": (mpmath.erf, special.erf, np.concatenate([uniform(-6, 6), both(magnitudes(-1000, 2))])),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), np.cbrt, both(magnitudes(-1074, 1023))),
    "arcsinh": (mpmath.asinh, np.arcsinh, both(np.concatenate([magnitudes(-1070, 1023), magnitudes(-5, 5)]))),
    "arccosh": (mpmath.acosh, np.arccosh, np.concatenate([1 + magnitudes(-50, 5), magnitudes(1, 1000)])),
    "arctanh": (mpmath.atanh, np.arctanh, np.concatenate([UNIT, both(magnitudes(-1000, 0))])),
    "gammaln": (lambda x: mpmath.log(mpmath.gamma(x)) if x < 1e5 else mpmath.loggamma(x), special.gammaln,
                np.concatenate([magnitudes(-1000, 1000), uniform(0, 10), 1 + both(magnitudes(-50, -3)),
                                2 + both(magnitudes(-50, -3))])),
    "psi": (mpmath.digamma, special.psi, np.concatenate([magnitudes(-1000, 1000), uniform(0, 12),
                                                         1.4616321449683622 + both(magnitudes(-48, -3))])),
    "ndtr": (lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, special.ndtr,
             np.concatenate([uniform(-1, 9), uniform(-1, 1), both(magnitudes(-300, 0))])),
    "erfc": (mpmath.erfc, special.erfc, np.concatenate([uniform(-6, 26), uniform(0, 3)])),
}
BASES = np.concatenate([magnitudes(-300, 300), uniform(0.5, 2), 1 + both(magnitudes(-40, -5))])
PAIRS = {       # and how many units a result may be off
    "power": (lambda x, y: x ** y, np.power, 4, [       # exponents up to those whose result is just a number
        (x, y * min(700 / (abs(math.log(x)) + 1e-300), 1e18)) for x, y in zip(BASES, uniform(-1, 1, BASES.size))]),
    "arctan2": (mpmath.atan2, np.arctan2, 2, list(zip(both(magnitudes(-20, 20)), uniform(-1, 1, 2 * COUNT)))),
    "hypot": (mpmath.hypot, np.hypot, 2, [*zip(both(magnitudes(-1000, 1000)), magnitudes(-1000, 1000, 2 * COUNT)),
                                          *zip(magnitudes(-9, 9), magnitudes(-9, 9))]),
    "logaddexp": (lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)), np.logaddexp, 2,
                  list(zip(uniform(-20, 20), uniform(1, 30)))),
}
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, -1e-310, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0,
        -3.0, 1e-20, -1e-20, 1e5, -1e5, 1e300, -1e300, 710.0, -746.0, math.nextafter(1, 2), math.nextafter(1, 0),
        28.0, 1e17]
MANY = 20000
POSITIVE32 = np.concatenate([magnitudes(-149, 127, MANY), uniform(0.5, 2, MANY), 1 + both(magnitudes(-24, -2, MANY))])
ANGLES32 = np.concatenate([uniform(-10, 10, MANY), both(magnitudes(-140, 47, MANY)), np.arange(1, MANY) * (math.pi / 2),
                           np.round(magnitudes(1, 46, MANY)) * (math.pi / 2)])
UNIT32 = np.concatenate([uniform(-1, 1, MANY), both(1 - magnitudes(-24, -1, MANY)), both(magnitudes(-149, 0, MANY))])
SMALL32 = both(magnitudes(-140, 0, MANY))
FLOAT32 = {     # NumPy's or SciPy's function, samples
    "exp_32": (np.exp, np.concatenate([uniform(-103, 88.7, MANY), uniform(-1, 1, MANY)])),
    "exp2_32": (np.exp2, np.concatenate([uniform(-149, 128, MANY), uniform(-1, 1, MANY)])),
    "expm1_32": (np.expm1, np.concatenate([uniform(-20, 88, MANY), uniform(-1, 1, MANY), SMALL32])),
    "log_32": (np.log, POSITIVE32),
    "log2_32": (np.log2, POSITIVE32),
    "log10_32": (np.log10, POSITIVE32),
    "log1p_32": (np.log1p, np.concatenate([uniform(-0.9, 2, MANY), magnitudes(-140, 100, MANY),
                                             -magnitudes(-60, -0.1, MANY)])),
    "sinh_32": (np.sinh, np.concatenate([uniform(-89, 89, MANY), uniform(-2, 2, MANY), SMALL32])),
    "cosh_32": (np.cosh, np.concatenate([uniform(-89, 89, MANY), uniform(-2, 2, MANY), SMALL32])),
    "tanh_32": (np.tanh, np.concatenate([uniform(-10, 10, MANY), uniform(-1, 1, MANY), SMALL32])),
    "logistic_32": (special.expit, np.concatenate([uniform(-103, 30, MANY), uniform(-5, 5, MANY)])),
    "sin_32": (np.sin, ANGLES32),
    "cos_32": (np.cos, ANGLES32),
    "tan_32": (np.tan, ANGLES32),
    "arctan_32": (np.arctan, both(np.concatenate([magnitudes(-149, 127, MANY), magnitudes(-3, 3, MANY)]))),
    "arcsin_32": (np.arcsin, UNIT32),
    "arccos_32": (np.arccos, UNIT32),
    "cbrt_32": (np.cbrt, both(magnitudes(-149, 127, MANY))),
    "arcsinh_32": (np.arcsinh, both(np.concatenate([magnitudes(-140, 127, MANY), magnitudes(-5, 5, MANY)]))),
    "arccosh_32": (np.arccosh, np.concatenate([1 + magnitudes(-23, 5, MANY), magnitudes(1, 127, MANY)])),
    "arctanh_32": (np.arctanh, UNIT32),
    "erf_32": (special.erf, np.concatenate([uniform(-5, 5, MANY), uniform(-1, 1, MANY), SMALL32])),
    "erfc_32": (special.erfc, np.concatenate([uniform(-4, 10, MANY), uniform(-1, 3, MANY), SMALL32])),
    "ndtr_32": (special.ndtr, np.concatenate([uniform(-14, 6, MANY), uniform(-4, 1, MANY), SMALL32])),
}
SIZES32 = both(np.concatenate([magnitudes(-149, 126, MANY), magnitudes(-3, 3, MANY)]))
BASES32 = np.concatenate([magnitudes(-149, 127, MANY), uniform(0.5, 2, MANY), 1 + both(magnitudes(-20, -5, MANY))])
PAIRS32 = {
    "power_32": (np.power, BASES32, uniform(-148, 127.9, BASES32.size) / np.log2(BASES32.astype(np.float32))),
    "arctan2_32": (np.arctan2, SIZES32, rng.permutation(SIZES32)),
    "hypot_32": (np.hypot, SIZES32, rng.permutation(SIZES32)),
    "logaddexp_32": (np.logaddexp, uniform(-20, 20, MANY), uniform(1, 30, MANY)),
}
ENDS32 = np.array([*(x for x in ENDS if not 1e38 < abs(x) < np.inf), 1e-45, -1e-45, 1e-40, -1e-40, 3e38, -3e38, 88.9,
                   -88.9, -104.5, 127.9, -149.5, 10.2, -15.0, 8192.0, *np.nextafter(np.float32(1), np.float32([0, 2]))
                   ]).astype(np.float32)


def function(name):
    return ELEMENTARY[name][0]


def compiled(name):
    """The function in a loop of Numba's, as compiled text calls it, for arrays."""
    count = function(name).__code__.co_argcount
    args = ", ".join("xy"[:count])
    each = ", ".join(f"{a}[i]" for a in "xy"[:count])
    space = dict(straight())
    exec(f"def loop({args}, out):\n    for i in range(out.size):\n        out[i] = {name}({each})\n", space)
    return numba.njit(error_model="numpy", fastmath=set(jit_cpu.FAST))(space["loop"])


def of(loop, *xs):
    xs = [np.ascontiguousarray(x) for x in xs]
    out = np.empty_like(xs[0])
    loop(*xs, out)
    return out


def units(got, want):
    """The distance from an exact number in units in the last place."""
    unit = np.spacing(abs(float(want))) if want and abs(want) < 1.7e308 else 5e-324
    return float(abs(mpf(float(got)) - want) / mpf(float(unit)))


def same_end(got, want):
    return got == want and (want != 0 or np.signbit(got) == np.signbit(want)) or got != got and want != want or \
        abs(got - want) <= 3 * np.spacing(abs(want)) and want != 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_accuracy(name):
    exact, known, xs = CASES[name]
    loop = compiled(name)
    with mpmath.workprec(200):
        worst = max((units(y, exact(mpf(x))), x) for x, y in zip(xs, of(loop, xs)))
    gammas = name in ("gammaln", "psi")
    assert worst[0] <= (4 if gammas or name == "ndtr" else 2), worst
    angles = name in ("sin", "cos", "tan")
    ends = np.array([x for x in ENDS if not angles or not abs(x) > vmath.LARGEST_ANGLE])
    with np.errstate(all="ignore"), mpmath.workprec(200):
        for x, y, want in zip(ends, of(loop, ends), known(ends)):
            near = gammas and (x < 0 and abs(y - want) < 4 * np.spacing(4.0) or         # a difference, below 0
                               0 < abs(x) < 1e300 and units(y, exact(mpf(abs(x)))) <= 4)     # SciPy's is less exact
            assert near or same_end(y, want), (x, y, want)
        plain = [function(name)(np.float64(x)) for x in ends]
        assert all(map(same_end, plain, of(loop, ends)))
    if angles:
        assert np.isnan(of(loop, np.array([1e300, -2.0 ** 48, np.inf]))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_accuracy_of_two_arguments(name):
    exact, known, most, pairs = PAIRS[name]
    loop, (xs, ys) = compiled(name), np.array(pairs, dtype=float).T
    with mpmath.workprec(200):
        worst = max((units(z, exact(mpf(x), mpf(y))), x, y) for x, y, z in zip(xs, ys, of(loop, xs, ys)))
    assert worst[0] <= most, worst
    xs, ys = (a.ravel() for a in np.meshgrid(ENDS, ENDS))
    with np.errstate(all="ignore"):
        for x, y, z, want in zip(xs, ys, of(loop, xs, ys), known(xs, ys)):
            assert same_end(z, want), (x, y, z, want)


def test_versions_of_float32():
    assert {n for n in [*CASES, *PAIRS] if in_single(n) is None} == {"gammaln", "psi"}
    assert {in_single(n) for n in [*CASES, *PAIRS]} - {None} == {*FLOAT32, *PAIRS32}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FLOAT32, *PAIRS32])
def test_accuracy_of_float32(name):
    known, *samples = (FLOAT32 | PAIRS32)[name]
    xs, loop = [x.astype(np.float32) for x in samples], compiled(name)
    got, want = of(loop, *xs), known(*[x.astype(np.float64) for x in xs])
    with np.errstate(over="ignore"):
        small = np.abs(want) < np.finfo(np.float32).max
        error = np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))
    error = np.where(small, error, np.where(got == np.sign(want) * np.inf, 0, np.inf))
    at = error.argmax()
    assert got.dtype == np.float32 and error[at] <= 2, (error[at], *[x[at] for x in xs])
    ends = [a.ravel() for a in np.meshgrid(*[ENDS32] * len(xs))]
    if name in ("sin_32", "cos_32", "tan_32"):
        beyond = np.abs(ends[0]) > vmath32.LARGEST_ANGLE32
        assert beyond.sum() > 3 and np.isnan(of(loop, ends[0][beyond])).all()
        ends = [ends[0][~beyond]]
    with np.errstate(all="ignore"):
        rounded = known(*[x.astype(np.float64) for x in ends]).astype(np.float32)
        # a difference of two numbers, as NumPy's own in single precision
        for y, exact, near, *x in zip(of(loop, *ends), rounded, known(*ends), *ends):
            plain = function(name)(*x)
            assert same_end(y, exact) or name == "logaddexp_32" and same_end(y, near), (x, y, exact)
            assert same_end(plain, y) and plain.dtype == np.float32, (x, y, plain)


@pytest.mark.slow
@pytest.mark.skipif("avx2" not in numba.core.codegen.get_host_cpu_features(), reason="vectors of this kind are AVX2's")
@pytest.mark.parametrize("name", [*CASES, *PAIRS, *FLOAT32, *PAIRS32])
def test_vectorises(name):
    loop = compiled(name)
    dtype = np.dtype(ELEMENTARY[name][2])
    of(loop, *[np.ones(8, dtype)] * function(name).__code__.co_argcount)
    (text,) = loop.inspect_asm().values()
    assert text.count("ymm") + text.count("zmm") > 20, text
    assert not [line for line in text.splitlines() if "call" in line and any(f in line for f in ("exp", "sin", "pow"))]


def test_what_loops_call():
    """Loops over entries call ours, a number by itself calls libm; the names are no hindrance for the user's own."""
    def f(x, exp):
        return np.sum(np.exp(x) * np.tanh(x ** 1.5)) + np.exp(exp)
    compiled_f = gs.jit(f)
    x = np.array([0.3, 1.2, 2.5])
    assert abs(compiled_f(x, 0.3) - f(x, 0.3)) < 1e-14 * f(x, 0.3)
    assert "tanh(power(x" in compiled_f.lowered and "np.exp(exp" in compiled_f.lowered
    narrow = compiled_f(x.astype(np.float32), np.float32(0.3))
    assert "tanh_32(power_32(x" in compiled_f.lowered and narrow.dtype == np.float32
    assert abs(narrow - f(x, 0.3)) < 1e-5


def test_single_precision_calls_nothing_in_double():
    def f(x, y):
        return np.sum(special.ndtr(x) * special.erf(y) + np.sin(x) * np.arctan2(x, y) - special.erfc(x) * y ** x)
    x, y = np.random.default_rng(0).uniform(0.5, 2, (2, 40)).astype(np.float32)
    compiled_f = gs.jit(gs.value_and_grad(f, argnums=(0, 1)))
    got, want = compiled_f(x, y), gs.value_and_grad(f, argnums=(0, 1))(x.astype(float), y.astype(float))
    assert "float64" not in compiled_f.lowered and "ndtr_32(" in compiled_f.lowered
    assert got[0].dtype == np.float32 and abs(got[0] - want[0]) < 1e-6 * abs(want[0])
    for a, b in zip(got[1], want[1]):
        assert a.dtype == np.float32 and np.abs(a - b).max() < 1e-5


def test_loops_of_the_user():
    def f(x, y):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] ** y[i] * special.ndtr(x[i]) + special.erf(y[i]) - x[i] ** 3
        return total
    x, y = np.random.default_rng(0).uniform(0.5, 2, (2, 40))
    for dtype, end, most in ((np.float64, "", 1e-13), (np.float32, "_32", 1e-5)):
        compiled_f = gs.jit(f)
        got, want = compiled_f(x.astype(dtype), y.astype(dtype)), f(x.astype(dtype), y.astype(dtype))
        assert type(got) is type(want) and abs(got - want) < most * abs(want)
        assert f"power{end}(x[i], y[i]) * ndtr{end}(x[i]) + erf{end}(y[i])" in compiled_f.lowered, compiled_f.lowered
        assert "x[i] ** 3" in compiled_f.lowered


def test_names():
    """Every function is a plain one that runs on NumPy's numbers."""
    found = [f for module in VMATH for f in vars(module).values() if isinstance(f, types.FunctionType)]
    assert len(found) > 55 and all(f.__module__ in [m.__name__ for m in VMATH] for f in found)


def test_branches_take_ours():
    """Both arms of a branch in a loop whose passes do not wait for one another; libm's where they wait."""
    def apart(x):
        s = 0.0
        for i in range(x.shape[0]):
            if x[i] > 0.0:
                s += np.exp(-x[i])
            else:
                t = np.log(1.0 - x[i])
                s -= t * t
        return s

    def waiting(x):
        m = 0.0
        for i in range(x.shape[0]):
            if x[i] > m:
                m = np.exp(-x[i]) + 0.5 * m
        return m
    for n in (0, 1, 3, 37):
        x = np.linspace(-2.0, 3.0, n)
        for f, inside in ((apart, True), (waiting, False)):
            compiled_f = gs.jit(gs.value_and_grad(f))
            (value, dx), (want, dwant) = compiled_f(x), gs.value_and_grad(f)(x)
            assert np.isclose(value, want, rtol=1e-14, atol=0) and np.allclose(dx, dwant, rtol=1e-14, atol=0)
            assert n < 37 or ("np.exp(" in compiled_f.lowered) != inside
