# SPDX-License-Identifier: Apache-2.0
"""gs.error_bound against the same programs in 120 digits: the true error is never above the bound, nor far below it.

Run as a script, this file prints the ratios of true error and bound, as docs/howto/error_bounds.md has them.
"""
import inspect
import math
import warnings

import mpmath
import numpy as np
import pytest
from exact import PRECISION, Real, evaluated, from_source, ratios

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules.rounding import coefficients
from gradscribe.recipes import cooked, recipe


def cosine(x):
    return (1.0 - np.cos(x)) / x ** 2


def log_sum_exp(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def one_pass_variance(x):
    n = x.shape[0]
    return (np.sum(x * x) - np.sum(x) ** 2 / n) / n


def horner(c, x):
    p = 0.0
    for k in range(c.shape[0]):
        p = p * x + c[k]
    return p


def muller(a, b, n):
    for _ in range(n):
        a, b = b, 108.0 - (815.0 - 1500.0 / a) / b
    return b


def rump(a, b):
    inner = 11.0 * a * a * b * b - b ** 6 - 121.0 * b ** 4 - 2.0
    return 333.75 * b ** 6 + a * a * inner + 5.5 * b ** 8 + a / (2.0 * b)


def rump_of_cadna(x, y):
    return 9.0 * x ** 4 - y ** 4 + 2.0 * y ** 2


def muller_of_cadna(n):
    a, b = 5.5, 61.0 / 11.0
    for _ in range(n - 1):
        a, b = b, 111.0 - 1130.0 / b + 3000.0 / (b * a)
    return b


def kahan(x):
    s, c = 0.0, 0.0
    for k in range(x.shape[0]):
        y = x[k] - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def products(A, B, v):
    return np.tanh(A @ B @ v) @ v


def heat(u, n):
    for _ in range(n):
        u[1:] += 0.1 * (u[:-1] - u[1:])
    return u @ u


def branches(x):
    y = 0.0
    for k in range(x.shape[0]):
        if x[k] > 0.0:
            y = y + np.sqrt(x[k])
        else:
            y = y - x[k] ** 3
    return y


def newton(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


def logistic(x, n):
    return x if n == 0 else logistic(3.75 * x * (1.0 - x), n - 1)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def kinks(x):
    return np.sum(np.maximum(x, 0.0) ** 1.5 + np.abs(x) * np.where(x > 0.3, x, -x))


def gathered(x):
    y = np.zeros(3)
    np.add.at(y, np.array([0, 1, 0, 2, 0]), np.sin(x))
    return np.sum(y * y)


def arguments(rng, name):
    v = rng.standard_normal
    return {
        "cosine": lambda: (10.0 ** rng.uniform(-7, 0.5),),
        "log_sum_exp": lambda: (5 * v(6),),
        "one_pass_variance": lambda: (v(20) + 10.0 ** rng.uniform(0, 6),),
        "horner": lambda: (np.poly(np.ones(8)), 1.0 + 0.1 * v()),
        "muller": lambda: (4.0, 4.25, int(rng.integers(1, 12))),
        "kahan": lambda: (v(8) * 10 ** rng.uniform(-5, 5, 8),),
        "products": lambda: (v((5, 5)), v((5, 5)), v(5)),
        "heat": lambda: (v(8), 4),
        "branches": lambda: (v(6),),
        "newton": lambda: (abs(v()) + 0.1,),
        "logistic": lambda: (rng.uniform(0.1, 0.9), 8),
        "rosenbrock": lambda: (1 + 1e-4 * v(6),),
        "kinks": lambda: (v(6),),
        "gathered": lambda: (v(5),),
        "rump": lambda: (77617.0 * rng.uniform(0.9, 1.1), 33096.0),
    }[name]()


PROGRAMS = [cosine, log_sum_exp, one_pass_variance, horner, muller, kahan, products, heat, branches, newton, logistic,
            rosenbrock, kinks, rump]


def copied(args):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def narrowed(args):
    return tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else np.float32(a) if isinstance(a, float) else a
                 for a in args)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("derived", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", PROGRAMS)
def test_the_true_error_is_within_the_bound(f, dtype, derived):
    rng = np.random.default_rng(0)
    base = gs.grad(f) if derived else f
    made, found = gs.error_bound(base), []
    for _ in range(6):
        args = arguments(rng, f.__name__)
        if dtype == np.float32:
            args = narrowed(args)
        plain = from_source(gs.grad(f), *copied(args)) if derived else f
        value, bound = made(*copied(args))
        direct = base(*copied(args))
        np.testing.assert_array_equal(np.asarray(value), np.asarray(direct))
        found.append(ratios(as_tuple(value), as_tuple(bound), evaluated(plain, *copied(args)))[0])
    assert max(found) <= 1
    if f not in (kahan, muller) and not (derived and f is newton):      # the bound is not vacuous
        assert max(found) > 1e-4


@pytest.mark.parametrize("f", [cosine, log_sum_exp, heat, horner, gathered])
def test_compiled(f):
    rng, made = np.random.default_rng(1), gs.error_bound(f)
    for fastmath in (False, True):
        compiled = gs.jit(made, fastmath=fastmath)
        for _ in range(4):
            args = arguments(rng, f.__name__)
            value, bound = compiled(*copied(args))
            np.testing.assert_allclose(bound, made(*copied(args))[1], rtol=1e-6)
            if f is not gathered:       # np.add.at of objects has no method for a mixture
                assert ratios((value,), (bound,), evaluated(f, *copied(args)))[0] <= 1


def test_cancellation_shows():
    value, bound = gs.error_bound(cosine)(1e-7)
    assert value == pytest.approx(0.5, abs=bound) and gs.digits(value, bound) < 1
    assert gs.digits(*gs.error_bound(cosine)(1.0)) > 14


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_published_examples():
    value, bound = gs.error_bound(rump)(77617.0, 33096.0)
    assert gs.digits(value, bound) == 0 and abs(value + 0.827396059946821) <= bound
    value, bound = gs.error_bound(muller)(4.0, 4.25, 30)
    assert value == 100.0 and bound == np.inf and gs.digits(value, bound) == 0      # the limit in exact arithmetic is 5
    digits = [gs.digits(*gs.error_bound(muller)(4.0, 4.25, n)) for n in (1, 6, 11)]
    assert digits == sorted(digits, reverse=True) and digits[0] > 14 and 0 < digits[-1] < 4
    assert gs.digits(*gs.error_bound(rump_of_cadna)(10864.0, 18817.0)) == 0
    assert gs.digits(*gs.error_bound(rump_of_cadna, inputs="rounded")(1 / 3, 2 / 3)) > 14
    digits = [float(gs.digits(*gs.error_bound(muller_of_cadna)(n))) for n in range(3, 26)]
    assert digits == sorted(digits, reverse=True) and digits[-1] == 0.0


def test_uncertain_inputs_carry_the_conditioning():
    x, r = np.array([1.0, 2.0, 3.0]), 1e-6
    exact, known = gs.error_bound(rosenbrock)(x)
    value, bound = gs.error_bound(rosenbrock, inputs=r)(x)
    slope = np.sum(np.abs(x * gs.grad(rosenbrock)(x)))
    assert value == exact and bound > known
    assert slope * r <= bound <= 10 * slope * r
    bound = gs.error_bound(lambda x: 2.0 * x, inputs="rounded")(3.0)[1]
    assert 2.0 * 3.0 * 2.0 ** -53 <= bound < 2.02 * 3.0 * 2.0 ** -53
    assert gs.error_bound(lambda x: 2.0 * x)(3.0)[1] == 0.0
    f = gs.error_bound(lambda p, y: p["a"] * y + p["b"][0], inputs=(1e-3, None))
    assert f({"a": 2.0, "b": [1.0]}, 3.0)[1] == pytest.approx(7e-3)
    assert gs.error_bound(lambda a, *, b: a - b, inputs=1e-3)(2.0, b=1.0)[1] == pytest.approx(3e-3)


def test_operations_that_do_not_round():
    def moved(x):
        y = np.concatenate([x[::-1], -x]).reshape(2, -1).T
        return np.maximum(y, 0.25) * 4.0 / 8.0
    x = np.array([0.1, -0.3, 0.7])
    assert gs.error_bound(moved)(x)[1].max() < 1e-307               # x / 8 may underflow
    assert not gs.error_bound(lambda x: -4.0 * x[::-1] / 0.5)(x)[1].any()
    bound = gs.error_bound(moved, inputs="rounded")(x)[1]
    assert 0.5 * 0.7 * 2.0 ** -53 <= bound.max() < 0.51 * 0.7 * 2.0 ** -53


def test_constants_in_narrower_arrays():
    """0.1 is no number of single precision; 0.5 is one."""
    x = np.array([1.0], np.float32)
    value, bound = gs.error_bound(lambda x: x * 0.1)(x)
    assert bound.dtype == np.float32 and abs(float(value[0]) - 0.1) <= bound[0] <= 2.1 * 0.1 * 2.0 ** -24
    assert gs.error_bound(lambda x: x * 0.5)(x)[1] < 1e-37
    value, bound = gs.error_bound(lambda x: x.astype(np.float32))(np.array([0.1]))
    assert abs(float(value[0]) - 0.1) <= bound[0]


def test_kinks_pass_errors_on():
    """At a kink, the derivative is the mean of both sides, and an error passes from either."""
    assert gs.error_bound(lambda x: np.abs(x - x), inputs=1e-3)(1.0)[1] >= 2e-3
    assert gs.error_bound(lambda x, y: np.maximum(x, y), inputs=1e-3)(1.0, 1.0)[1] == 1e-3
    assert gs.error_bound(lambda x, y: np.maximum(x, y), inputs=(None, 1e-3))(1.0, 0.9)[1] == pytest.approx(9e-4)
    assert gs.error_bound(lambda x: gs.stop_gradient(x) * 2.0, inputs=1e-3)(1.0)[1] == 2e-3
    assert gs.error_bound(lambda x: np.max(x), inputs=1e-3)(np.array([1.0, -4.0]))[1] == 4e-3


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3)])
def test_short_axes(shape):
    value, bound = gs.error_bound(lambda x: (np.sum(np.exp(x)), x * 0.1, np.cumsum(x)))(np.ones(shape))
    assert [np.shape(b) for b in bound] == [np.shape(v) for v in value]
    assert all(np.all(b >= 0) for b in bound)


def test_structures():
    value, bound = gs.error_bound(lambda x, k: {"y": [x / 3.0, k], "z": (x > 0, x)})(2.0, 5)
    assert value == {"y": [2.0 / 3.0, 5], "z": (True, 2.0)}
    assert bound["y"][0] > 0 and bound["y"][1] == 0 and bound["z"] == (0, 0)


def test_linear_systems():
    rng = np.random.default_rng(2)
    hilbert = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)
    for A in (rng.standard_normal((6, 6)), hilbert):
        n, b = len(A), rng.standard_normal(len(A))
        S = A @ A.T + np.eye(n)
        with mpmath.workprec(400):
            x = mpmath.lu_solve(mpmath.matrix(A.tolist()), mpmath.matrix(b.tolist()))
            X, L = mpmath.inverse(mpmath.matrix(A.tolist())), mpmath.cholesky(mpmath.matrix(S.tolist()))
            true = [np.array([x[i] for i in range(n)], dtype=object),
                    *(np.array([[M[i, j] for j in range(n)] for i in range(n)], dtype=object) for M in (X, L))]
        value, bound = gs.error_bound(lambda A, b, S: (np.linalg.solve(A, b), np.linalg.inv(A), np.linalg.cholesky(S)))(
            A, b, S)
        worst = ratios(value, bound, true)[0]
        assert 1e-3 < worst <= 1


def test_nested():
    x = np.array([[0.1, 2.0], [0.3, -1.0]])

    def f(x):
        return np.sin(x[0]) * x[1]
    one = [gs.error_bound(f)(row)[1] for row in x]
    np.testing.assert_allclose(gs.error_bound(gs.vmap(f))(x)[1], one, rtol=1e-12)
    np.testing.assert_allclose(gs.vmap(gs.error_bound(f))(x)[1], one, rtol=1e-12)
    assert gs.error_bound(gs.hessian(f))(x[0])[1].shape == (2, 2)
    slope = gs.grad(lambda x: gs.error_bound(lambda x: x * x + 1.0)(x)[1])(0.5)
    assert slope == pytest.approx(4 * 0.5 * 2.0 ** -53)


HARD = [0.0, 1.0, -1.0, np.pi / 2, np.pi, 1e-8, 1 - 1e-9, 1 + 1e-9, 3.0, 1e-160, 1e-200, 1e155, 1e200, 700.0, -745.0,
        709.8, 20.0, 0.3, -2.7, 1e16]
OF_ONE = {
    **{n: getattr(np, n) for n in ("sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
                                   "cbrt", "square", "reciprocal", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
                                   "arcsinh", "arccosh", "arctanh", "abs")},
    **{f"power {b}": lambda x, b=b: x ** b for b in (2, 3, -1, -2, 0.5, 1.5, -0.5, 7)},
}
BEFORE = {"x": lambda x: x, "x third": lambda x: x * 3.0 / 7.0, "1 + x - 1": lambda x: (x + 1.0) - 1.0,
          "x squared": lambda x: x * x, "1 / x": lambda x: 1.0 / x}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_ONE)
def test_hard_numbers(name):
    """Cancellation, overflow, underflow, poles, zeros; and arguments with errors that are not small."""
    f = OF_ONE[name]
    for before in BEFORE.values():
        for inputs in (None, 0.1):
            made = gs.error_bound(lambda x, before=before: f(before(x)), inputs=(inputs,))
            for x in HARD:
                value, bound = made(np.float64(x))
                if not np.isfinite(bound) or np.isnan(value):
                    continue
                for moved in (0,) if inputs is None else (-1, 1, 0.3):
                    try:
                        with mpmath.workprec(PRECISION + 2000):
                            change = mpmath.mpf(inputs or 0) * moved * (1 - mpmath.mpf(2) ** -40)
                            start = Real(mpmath.mpf(x) * (1 + change))
                            true = f(before(np.array(start, dtype=object))[()])
                            true = true.value if isinstance(true, Real) else true
                            error = mpmath.inf if np.isinf(value) else abs(mpmath.mpf(float(value)) - true)
                    except (ZeroDivisionError, ValueError, TypeError):
                        continue            # the exact value is infinite, or complex
                    assert isinstance(true, mpmath.mpc) or error <= float(bound), (x, inputs, moved)


def test_what_underflows_has_an_error():
    assert gs.error_bound(lambda x: x * x)(1e-200)[1] >= 2.2e-308
    value, bound = gs.error_bound(lambda x: x * x * 1e300)(1e-200)
    assert value == 0.0 and bound >= 1e-100
    assert gs.error_bound(lambda x: np.prod(x))(np.array([1e-200, 1e-200, 1e300]))[1] >= 1e-100
    value, bound = gs.error_bound(lambda x: np.linalg.norm(x))(np.array([1e-200]))
    assert abs(value - 1e-200) <= bound
    assert gs.error_bound(lambda x: abs(1.0 / x))(1e-310)[1] == np.inf          # overflow


UNSURE = {
    "if": lambda x: 1.0 if x * 3.0 > 0.3 else 2.0,
    "while": lambda x: halvings(x * 3.0),
    "where": lambda x: np.where(x * 3.0 < 0.3, 1.0, x),
    "floor": lambda x: np.floor(x * 10.0),
    "int": lambda x: x * int(x * 10.0),
    "round": lambda x: np.round(x * 15.0),
    "sign": lambda x: np.sign(x * 3.0 - 0.3),
    "mod": lambda x: (x * 10.0) % 1.0,
    "argmax": lambda x: np.array([1.0, 2.0])[np.argmax(np.array([x * 3.0, 0.3]))],
    "branch of a gradient": gs.grad(lambda x: np.maximum(x * 3.0, 0.3)),
}


def halvings(x):
    n = 0.0
    while x > 0.3:
        x = 0.5 * x
        n = n + 1.0
    return n


@pytest.mark.parametrize("name", UNSURE)
def test_a_decision_that_is_not_certain(name):
    """0.1 * 3.0 is 0.30000000000000004, which is above 0.3 by less than its error."""
    made = gs.error_bound(UNSURE[name], inputs="rounded")
    with pytest.warns(RuntimeWarning, match=r"line \d+: rounding errors may change what is decided here"):
        bound = made(0.1)[1]
    assert np.all(np.isinf(bound))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(made(0.13)[1]))


def test_decisions_of_exact_numbers_are_certain():
    def f(x):
        y = np.where(x > 0.0, x, -x)
        return np.sum(y[np.argsort(y)]) if x[0] == 0.0 else np.sum(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(gs.error_bound(f)(np.array([0.0, 1.0, -1.0]))[1])
        assert np.all(np.isfinite(gs.error_bound(gs.grad(lambda x: np.max(np.sin(x))))(np.array([0.1, 0.7]))[1]))


def test_decisions_compiled_and_in_batches():
    f = UNSURE["if"]
    x = np.array([0.1, 0.13])
    with pytest.warns(RuntimeWarning, match="rounding errors"):
        assert np.isinf(gs.jit(gs.error_bound(f, inputs="rounded"))(0.1)[1])
    with pytest.warns(RuntimeWarning, match="rounding errors"):
        assert np.isinf(gs.vmap(gs.error_bound(f, inputs="rounded"))(x)[1]).tolist() == [True, False]


def test_sorting_moves_errors():
    """2 has the error 1.8; if it is 0.4, the smallest number is 0.4."""
    bound = gs.error_bound(lambda a, b: np.sort(np.array([a, b])), inputs=(None, 0.9))(1.0, 2.0)[1]
    assert np.all(bound >= 0.6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_differences(n, axis):
    x = np.random.default_rng(n).standard_normal((5, 6))
    bound = gs.error_bound(lambda x: np.diff(x, n, axis), inputs=1e-3)(x)[1]
    weights = np.abs([(-1) ** k * math.comb(n, k) for k in range(n + 1)])
    each = np.apply_along_axis(lambda row: np.convolve(1e-3 * abs(row), weights, "valid"), axis, x)
    np.testing.assert_allclose(bound, each, rtol=1e-9)


def test_custom_derivatives_do_not_count():
    @gs.custom_jvp
    def f(x):
        return np.exp(x) / 3.0

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), 1e6 * tangents[0]
    value, bound = gs.error_bound(lambda x: f(x) * 2.0)(0.7)
    assert abs(value - 2 * np.exp(np.longdouble(0.7)) / 3) <= bound < 1e-14
    assert 0 < gs.error_bound(gs.grad(lambda x: f(x) * x))(0.7)[1] < 1e-8


@pytest.mark.parametrize("f", [lambda x: np.linalg.det(x), lambda x: np.real(np.fft.fft(x)),
                               lambda x: x[0] * np.hamming(2),
                               lambda x: np.linalg.eigvalsh(x), lambda x: np.linalg.norm(x, 1),
                               lambda x: x[0] * np.blackman(2), lambda x: np.arange(0.0, 1.0, 0.3) * x[0, 0]])
def test_what_has_no_bound_is_refused(f):
    with pytest.raises(gs.TransformError) as raised:
        gs.error_bound(f)(np.eye(2))
    assert raised.value.origin is not None and raised.value.advice


def test_wrong_arguments():
    for bad in ("x", -1.0, np.inf, True, (1.0, "y")):
        with pytest.raises(gs.KindError, match="inputs"):
            gs.error_bound(cosine, inputs=bad)
    with pytest.raises(gs.KindError, match="inputs has 2"):
        gs.error_bound(cosine, inputs=(1e-3, 1e-3))(1.0)
    with pytest.raises(gs.KindError, match="real"):
        gs.error_bound(cosine)(1j)
    with pytest.raises(gs.KindError, match="function"):
        gs.error_bound(3)


def test_digits():
    value, bound = np.array([1.0, 0.0, 2.0, 5.0]), np.array([1e-3, 1e-3, 0.0, np.nan])
    np.testing.assert_allclose(gs.digits(value, bound), [3.0, 0.0, 15.954589770191003, 0.0])
    assert gs.digits({"a": 1.0}, {"a": 0.1}) == {"a": 1.0}
    assert gs.digits(np.float32(1.0), np.float32(0.0)) < 7.3


def test_recipe():
    made = gs.error_bound(gs.grad(cosine), inputs=1e-3)
    assert recipe(made) == "error_bound(grad(f), inputs=0.001)"
    assert cooked(recipe(made), cosine)(0.3) == made(0.3)


def test_what_samples_show():
    """Reviewed by hand: which linear and bilinear records have coefficients that are not negative."""
    rules = [r for r in dict.fromkeys(RULES.values()) if r.kind in ("linear", "bilinear") and r.samples is not None]
    found = {kind: {r.label for r in rules if coefficients(r) == kind} for kind in ("", "nonnegative")}
    assert found[""] >= {"diff", "cross", "fft", "ifft", "rfft", "irfft", "fftn", "ifftn", "fft2", "ifft2"}
    assert found["nonnegative"] >= {"sum_", "mean", "cumsum", "trace", "matmul", "dot", "einsum", "outer", "kron"}
    assert not found[""] & {"reshape", "transpose", "concatenate", "stack", "take", "repeat", "tril", "sum_"}


def test_parts_read_what_there_is():
    for rule in dict.fromkeys(RULES.values()):
        for name in {"error", "rounding", "underflow", "total", "certain"} & set(rule.parts):
            read = set(inspect.signature(rule.parts[name]).parameters)
            known = {*rule.signature.parameters, "y", "u", "tiny", "least"}
            assert read <= known | {f"{a}_err" for a in rule.signature.parameters}, (rule.label, name)


def main():
    for f in PROGRAMS:
        for base in (f, gs.grad(f)):
            rng, made, found = np.random.default_rng(5), gs.error_bound(base), []
            for _ in range(40):
                args = arguments(rng, f.__name__)
                value, bound = made(*copied(args))
                plain = f if base is f else from_source(base, *copied(args))
                found.append(ratios(as_tuple(value), as_tuple(bound), evaluated(plain, *copied(args)))[0])
            print(f"{made.__name__:40s} median {np.median(found):.2g}, largest {max(found):.2g}")


if __name__ == "__main__":
    main()
