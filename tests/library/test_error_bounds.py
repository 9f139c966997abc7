# SPDX-License-Identifier: Apache-2.0
"""gs.error_bound against the same programs in 120 digits: the true error is never above the bound, nor far below it.

Run as a script, this file prints the ratios of true error and bound, as docs/howto/error_bounds.md has them.
"""
import inspect

import mpmath
import numpy as np
import pytest
from exact import evaluated, from_source, ratios

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
    assert 2.0 * 3.0 * 2.0 ** -53 <= gs.error_bound(lambda x: 2.0 * x, inputs="rounded")(3.0)[1] < 2.02 * 3.0 * 2.0 ** -53
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


@pytest.mark.parametrize("f", [lambda x: np.linalg.det(x), lambda x: np.real(np.fft.fft(x)), lambda x: x[0] * np.hamming(2),
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
