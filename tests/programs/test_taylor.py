"""Taylor mode: programs against nested forward mode, closed forms and mpmath; under other transformations; refusals."""
import math

import numpy as np
import pytest

import gradscribe as gs

E1 = (1.0, 0.0, 0.0, 0.0)


def derivatives(f, x, order):
    """The derivatives of f at x by nested forward mode."""
    out = []
    for _ in range(order):
        def f(t, f=f):
            return gs.jvp(f, (t,), (1.0,))[1]
        out.append(f(x))
    return out


def test_series_are_derivatives():
    value, terms = gs.jet(np.sin, (0.5 ** 3,), ((3 * 0.5 ** 2, 6 * 0.5),))
    assert value == np.sin(0.125)
    np.testing.assert_allclose(terms, [np.cos(0.125) * 0.75, np.cos(0.125) * 3 - np.sin(0.125) * 0.75 ** 2],
                               rtol=1e-15)


def test_unscaled_series_are_taylor_coefficients():
    scaled = gs.jet(lambda x: np.exp(x) / (1 + x), (0.3,), ((0.7, -0.2, 0.4, 0.1),))[1]
    plain = gs.jet(lambda x: np.exp(x) / (1 + x), (0.3,), ((0.7, -0.1, 0.4 / 6, 0.1 / 24),), factorial_scaled=False)[1]
    np.testing.assert_allclose(plain, [s / math.factorial(k) for k, s in enumerate(scaled, 1)], rtol=1e-13)


FUNCTIONS = {
    "exp": (np.exp, 0.4), "log": (np.log, 0.7), "sin": (np.sin, 0.4), "cos": (np.cos, 0.4), "tan": (np.tan, 0.4),
    "tanh": (np.tanh, 0.4), "sqrt": (np.sqrt, 0.7), "atan": (np.arctan, 0.4), "asin": (np.arcsin, 0.3),
    "erf": (math.erf, 0.4), "sinh": (np.sinh, 0.4), "acosh": (np.arccosh, 1.7), "expm1": (np.expm1, 0.2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ten_orders_against_mpmath(name):
    mpmath = pytest.importorskip("mpmath")
    f, x = FUNCTIONS[name]
    with mpmath.workdps(60):
        wanted = [float(c) for c in mpmath.taylor(getattr(mpmath, name), x, 10)]
    value, terms = gs.jet(lambda x: f(x), (x,), ((1.0,) + 9 * (0.0,),), factorial_scaled=False)
    np.testing.assert_allclose([value, *terms], wanted, rtol=1e-11, atol=1e-13 * max(map(abs, wanted)))


@pytest.mark.parametrize("exponent", (0, 1, 2, 3, 7, -1, -3, 0.5, 2.5, -1.5))
def test_powers(exponent):
    found = gs.jet(lambda x: x ** exponent, (1.3,), (E1,))[1]
    wanted = [math.prod(exponent - j for j in range(k)) * 1.3 ** (exponent - k) for k in range(1, 5)]
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


def test_powers_at_zero():
    np.testing.assert_array_equal(gs.jet(lambda x: x ** 3, (0.0,), (E1,))[1], [0, 0, 6, 0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gs.jet(lambda x: x ** 2.5, (np.float64(0),), (E1,))[1][:3], [0, 0, np.inf])
    np.testing.assert_array_equal(gs.jet(lambda x, n: x ** n, (0.0, 2), (E1, E1))[1], [0, 2, 0, 0])


def loop(x):
    s, n = 0.0, 0
    while s < 2.0:
        s = s + np.tanh(x * s + 1)
        n += 1
    for k in range(n):
        s = s * x if k % 2 else s + x / (k + 1)
    return s


def writes(x):
    u = np.zeros(4)
    for i in range(4):
        u[i] = x ** i * np.cos(x)
    u[1:] += u[:-1] * x
    v = u[::-1]
    v *= 2.0
    return u @ u


def branches(x):
    y = np.array([x, x * x, -x])
    z = np.where(y > 0, np.sqrt(np.abs(y)), y ** 3)
    if np.max(y) > 1:
        z = np.sort(z)[1:]
    else:
        z = z[:2] * np.max(y)
    return np.sum(np.abs(z) * np.maximum(z, 0.3))


def containers(x):
    items = []
    for k in range(3):
        items.append((x * k, {"a": np.sin(x + k)}))
    total = 0.0
    for first, second in items:
        total += first * second["a"]
    return total


def helper(x, y):
    z = x * y
    z = z + np.exp(-z)
    w = np.log1p(z * z)
    return w / (1 + y)


def calls(x):
    return helper(x, helper(x, 2.0)) + (lambda t: t * t)(x)


def matrices(x):
    a = np.array([[2.0 + x, x * x], [np.sin(x), 3.0]])
    b = np.linalg.solve(a, np.array([1.0, x]))
    return b @ np.linalg.inv(a) @ b + np.linalg.det(a) + np.einsum("ij,jk,ki", a, a, a) + np.linalg.slogdet(a)[1]


def eigen(x):
    a = np.array([[2.0 + x, x * x], [x * x, 3.0]])
    w, v = np.linalg.eigh(a)
    return w[1] * v[0, 1] ** 2 + np.linalg.cholesky(a)[1, 1]


PROGRAMS = (loop, writes, branches, containers, calls, matrices, eigen)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", (0.6, 1.3))
def test_programs(f, x):
    value, terms = gs.jet(f, (x,), (E1[:3],))
    assert np.allclose(value, f(x), rtol=1e-15)
    np.testing.assert_allclose(terms, derivatives(f, x, 3), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f", (loop, writes, calls, matrices), ids=lambda f: f.__name__)
def test_compiled(f):
    made = gs.jet_of(f, 3)
    value, terms = gs.jit(made)(0.6, E1[:3])
    wanted, series = made(0.6, E1[:3])
    np.testing.assert_allclose([value, *terms], [wanted, *series], rtol=1e-11)


def test_under_other_transformations():
    def third(x):
        return gs.jet(lambda y: np.sin(y * y), (x,), (E1[:3],))[1][2]

    fourth = derivatives(lambda y: np.sin(y * y), 0.7, 4)[3]
    np.testing.assert_allclose(gs.grad(third)(0.7), fourth, rtol=1e-12)
    np.testing.assert_allclose(gs.jit(gs.grad(third))(0.7), fourth, rtol=1e-12)
    x = np.array([0.7, -0.2])
    np.testing.assert_allclose(gs.vmap(third)(x), [third(0.7), third(-0.2)], rtol=1e-14)
    value, terms = gs.jet(gs.grad(lambda y: np.sin(y * y)), (0.7,), (E1[:3],))
    np.testing.assert_allclose(terms[2], fourth, rtol=1e-12)
    value, terms = gs.jet(third, (0.7,), ((1.0,),))
    np.testing.assert_allclose(terms, [fourth], rtol=1e-12)


def test_structures_and_several_arguments():
    def f(p, y):
        return {"a": p["w"] * y, "b": (np.sum(p["v"] ** 2), 3)}

    p, y = {"w": 2.0, "v": np.array([1.0, 2.0])}, np.array([1.0, -1.0, 0.5])
    first, second = {"w": 1.0, "v": np.ones(2)}, {"w": 0.5, "v": np.zeros(2)}
    value, found = gs.jet(f, (p, y), ((first, second), (y, 0 * y)))
    np.testing.assert_allclose(value["a"], 2 * y)
    np.testing.assert_allclose(found["a"], [3 * y, 2 * y + 0.5 * y])
    np.testing.assert_allclose(found["b"][0], [6.0, 4.0])
    assert found["b"][1] == [0.0, 0.0]


@pytest.mark.parametrize("shape", ((), (0,), (1,), (3, 1), (2, 0, 3)))
@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.complex64, np.complex128))
def test_shapes_and_dtypes(shape, dtype):
    x = (0.5 + np.arange(np.prod(shape, dtype=int)).reshape(shape) / 7).astype(dtype)[()]
    one, zero = np.ones(shape, dtype)[()], np.zeros(shape, dtype)[()]
    value, terms = gs.jet(lambda x: np.exp(x) * x / (2 + x), (x,), ((one, zero, zero),))
    for term in terms:
        assert np.shape(term) == shape and np.asarray(term).dtype == dtype
    e = np.exp(x)
    np.testing.assert_allclose(terms[0], e * (x * x + 2 * x + 2) / (2 + x) ** 2, rtol=1e-5)


def test_broadcasting_and_integers():
    def f(x, n):
        return (x[:, None] * np.arange(3) + n) ** 2 / np.arange(1, 4)

    x = np.array([0.5, 1.0])
    value, terms = gs.jet(f, (x, 2), ((np.ones(2), np.zeros(2)), (0, 0)))
    k = np.arange(3)
    np.testing.assert_allclose(terms[0], 2 * k * (x[:, None] * k + 2) / (k + 1), rtol=1e-15)
    np.testing.assert_allclose(terms[1], np.broadcast_to(2 * k * k / (k + 1), (2, 3)), rtol=1e-15)


def test_repeated_indices():
    def f(x):
        u = np.zeros(2)
        np.add.at(u, np.array([0, 0, 1]), np.array([x, x * x, x ** 3]))
        return u[np.array([0, 0, 1])] @ u[np.array([1, 0, 0])]

    np.testing.assert_allclose(gs.jet(f, (0.7,), (E1[:3],))[1], derivatives(f, 0.7, 3), rtol=1e-12)


def test_custom_rule_for_forward_mode():
    @gs.custom_jvp
    def f(x):
        return np.exp(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        y = f(primals[0])
        return y, 3 * y * tangents[0]

    np.testing.assert_allclose(gs.jet(lambda x: f(2 * x), (0.3,), (E1[:3],))[1],
                               derivatives(lambda x: f(2 * x), 0.3, 3), rtol=1e-14)


def test_custom_reverse_rule_is_refused():
    @gs.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, dy: (2 * x * dy,))
    with pytest.raises(gs.RuleError, match="custom reverse rule only"):
        gs.jet(f, (2.0,), ((1.0, 0.0),))


@pytest.mark.parametrize("primals, series, message", [
    (2.0, ((1.0,),), "must be tuples or lists"),
    ((2.0,), ((1.0,), (1.0,)), "1 primals and 2 series"),
    ((2.0,), (1.0,), "a series must be a tuple or list"),
    ((2.0, 1.0), ((1.0, 0.0), (1.0,)), "different lengths: 2, 1"),
    ((), (), "no primal is given"),
    ((2,), ((1, 0),), "floating-point"),
    ((np.ones(2),), ((np.ones(2), np.ones(3)),), "term 2 of the series"),
    ((2.0,), ((1j,),), "term 1 of the series"),
])
def test_wrong_arguments(primals, series, message):
    with pytest.raises((gs.KindError, gs.ShapeError), match=message):
        gs.jet(lambda *args: args[0] * 2.0, primals, series)


def test_wrong_order():
    for order in (0, -1, 2.0, True):
        with pytest.raises(gs.KindError, match="positive integer"):
            gs.jet_of(np.sin, order)
    assert gs.jet(np.sin, (0.0,), ((),)) == (0.0, [])


def test_cost_grows_with_the_square_of_the_order():
    lines = [len(gs.jet_of(lambda x: np.sin(x) * np.exp(x), k).source_for(0.5, k * (0.0,))) for k in (4, 8)]
    assert lines[1] < 5 * lines[0]


def test_source():
    assert gs.jet_of(lambda x: x / (1 + x), 2).source_for(0.5, (1.0, 0.0)).strip() == """
import numpy as np


def jet_lambda(x, x_series):
    x_d1 = x_series[0]
    x_d2 = x_series[1]
    total_x = 1 + x
    ratio_x = x / total_x
    t_d1 = (x_d1 - ratio_x * x_d1) / total_x
    t_d2 = (x_d2 - (2 * (t_d1 * x_d1) + ratio_x * x_d2)) / total_x
    return ratio_x, [t_d1, t_d2]
""".strip()
