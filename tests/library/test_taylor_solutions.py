"""Taylor series of solutions, computed by loops over the orders, against Taylor mode; and compiled."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.experimental import ode

ORDER = 6


def by_taylor_mode(f, y, t, *args):
    """The coefficients from those of f along what is known of the solution, one more each time."""
    found = [np.asarray(f(y, t, *args))]
    while len(found) < ORDER:
        k = len(found)
        along_t = (1.0,) + (k - 1) * (0.0,)
        terms = gs.jet(lambda y, t: f(y, t, *args), (y, t), (found, along_t), factorial_scaled=False)[1]
        found.append(np.asarray(terms[-1]) / (k + 1))
    return np.stack(found)


def nbody(y, t, m):
    n = m.shape[0]
    x = y[:2*n].reshape(n, 2)
    v = y[2*n:].reshape(n, 2)
    a = np.zeros((n, 2))
    for i in range(n):
        for j in range(n):
            if i != j:
                d = x[j] - x[i]
                r = np.sqrt(np.sum(d * d) + 0.01)
                a[i] += m[j] * d / r**3
    return np.concatenate((v.ravel(), a.ravel()))


def burgers(u, t):
    out = np.empty_like(u)
    n = len(u)
    for i in range(n):
        left = u[i - 1]
        r = u[(i + 1) % n]
        out[i] = -u[i] * (r - left) / 2 + 0.1 * (r - 2 * u[i] + left)
    return out


def switch(y, t):
    s = np.sum(y)
    if s > 0:
        z = np.exp(-s) * y
    else:
        z = y * y
    if t > 0.1:
        z = z * np.cos(t)
    return z


def walker(y, t):
    s = 0.0
    for v in y:
        if v < 0.05:
            continue
        s = s + np.tanh(v) * t
    return s * y


def power(y, t):
    z = np.ones_like(y)
    k = 0
    while k < 3:
        z = z * np.sin(y) + y
        k += 1
    return z / 7


def newton(y, t):
    x = 1.0 + 0 * y
    for _ in range(6):
        x = x - (x * x - 2 - y) / (2 * x)
    return x


def early(y, t):
    for i in range(len(y)):
        if y[i] > 0.1:
            return y * y[i]
    return -y


def mats(y, t):
    A = y.reshape(2, 2)
    for _ in range(2):
        A = A @ np.linalg.inv(np.eye(2) * 2 + A) + np.linalg.solve(np.eye(2) + A @ A.T, A)
    return A.ravel()


def triple(y, t):
    return np.einsum('i,i,i->i', y, np.sin(y), np.exp(y))


def triple2(y, t):
    A = np.outer(y, y) + np.eye(4)
    return np.einsum('i,ij,jk->k', y, A, A)


def logsum(y, t):
    return y - np.log(np.sum(np.exp(y))) * np.ones(4)


@gs.custom_jvp
def soft(x):
    return np.log1p(np.exp(x))


@soft.defjvp
def _(primals, tangents):
    x, = primals
    d, = tangents
    return soft(x), d / (1 + np.exp(-x))


def custom(y, t):
    return soft(y) * y


def lists(y, t):
    out = []
    for i in range(4):
        out.append(y[i] * np.sin(y[3 - i]))
    return np.array(out)


def tuples(y, t):
    a, b = y[0], y[1]
    for _ in range(3):
        a, b = b, a * b + t
    return np.array([a, b, y[2], y[3]])


def swap(y, t):
    y = y.copy()
    for i in range(2):
        y[i], y[3 - i] = y[3 - i] * t, y[i]
    y[::2] *= np.sum(y)
    return y


def f32(y, t):
    z = np.zeros(4, dtype=np.float32)
    for i in range(4):
        z[i] = y[i] ** 2
    return z.astype(np.float64)


def cplx(y, t):
    z = y[:2] + 1j * y[2:]
    for _ in range(2):
        z = z * z + np.exp(z) / (1 + z)
    return np.concatenate((z.real, np.abs(z) + np.angle(z)))


def empty(y, t):
    s = y * 1.0
    for _ in range(0):
        s = s * s
    for v in y[4:]:
        s = s * v
    return s


def unset(y, t):
    for i in range(4):
        if i % 2 == 0:
            w = np.sin(y[i])
        s = y * w
    return s


def clip(y, t):
    return np.clip(y, -0.05, 0.2) + np.where(y > 0.1, np.sqrt(np.abs(y)), np.maximum(y, t))


def nested(y, t):
    s = 0.0
    for i in range(4):
        p = 1.0
        for j in range(i):
            p *= y[j] + t
            if p > 2:
                break
        s += p * y[i]
    return s * np.cos(y)


def scan(y, t):
    c = np.cumsum(y)
    d = np.sort(y)
    e = np.cumprod(1 + y)
    return np.convolve(c, d, 'same') + e * np.mean(y) + np.var(y)


def helper(v, k):
    s = 0 * v
    for i in range(k):
        s = s + v ** i / (i + 1)
    return s


def calls(y, t):
    return helper(np.sin(y), 3) + helper(y, 2)


def const(y, t):
    s = np.zeros(4)
    for i in range(4):
        s[i] = i
    return s


def onlyt(y, t):
    s = np.zeros(4)
    for i in range(4):
        s[i] = np.sin(t * i)
    return s


def aliasv(y, t):
    out = np.zeros((2, 2))
    row = out[1]
    row[:] = y[:2] * t
    out[0] += row * y[2:]
    return out.ravel()


@gs.custom_jvp
def soft2(x, n):
    s = x
    for _ in range(3):
        s = np.sin(s) * n
    return s, s * 2


@soft2.defjvp
def _(primals, tangents):
    x, n = primals
    d, _ = tangents
    s, e = x, d
    for _ in range(3):
        s, e = np.sin(s) * n, np.cos(s) * n * e
    return (s, s * 2), (e, e * 2)


def custom2(y, t):
    a, b = soft2(y, 1.5)
    return a * b


def custom3(y, t):
    z = np.zeros(4)
    for i in range(4):
        z[i] = soft(y[i] * t) + z[i - 1]
    return z


@gs.custom_jvp
def halves(p):
    return {'a': p['a'] * p['b'], 'c': p['b'] ** 2}


@halves.defjvp
def _(primals, tangents):
    p, = primals
    d, = tangents
    return halves(p), {'a': d['a'] * p['b'] + p['a'] * d['b'], 'c': 2 * p['b'] * d['b']}


def custom4(y, t):
    out = halves({'a': y, 'b': np.sin(y)})
    return out['a'] + out['c']

Y = np.array([0.15, -0.08, 0.2, 0.05])
PROGRAMS = [
    (nbody, np.linspace(-1, 1, 12) ** 3 + 0.3 * np.arange(12) % 1, np.array([1.0, 2.0, 0.5])),
    *((f, Y) for f in (
        burgers, switch, walker, power, newton, early, mats, triple, triple2, logsum, custom, lists, tuples, swap, f32,
        cplx, empty, unset, clip, nested, scan, calls, const, onlyt, aliasv, custom2, custom3, custom4)),
]


@pytest.mark.parametrize("f, y, args", [pytest.param(f, y, args, id=f.__name__) for f, y, *args in PROGRAMS])


def test_programs(f, y, args):
    found = ode.coefficients(f, y, 0.3, *args, order=ORDER)
    wanted = by_taylor_mode(f, y, 0.3, *args)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("f", (nested, mats, custom4), ids=lambda f: f.__name__)


def test_compiled(f):
    compiled = gs.jit(lambda y, t: ode.coefficients(f, y, t, order=ORDER))
    np.testing.assert_allclose(compiled(Y, 0.3), ode.coefficients(f, Y, 0.3, order=ORDER), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", (1, 2))


def test_low_orders(order):
    for f in (walker, triple, custom):
        np.testing.assert_allclose(ode.coefficients(f, Y, 0.3, order=order), by_taylor_mode(f, Y, 0.3)[:order],
                                   rtol=1e-12)


def test_high_orders():
    """sin and cos of t, whose series are known; and the source does not grow with the order."""
    found = ode.coefficients(lambda y, t: np.array([y[1], -y[0]]), np.array([0.0, 1.0]), 0.0, order=40)
    factorials = np.cumprod(np.arange(1.0, 41))
    signs = np.array([1, 0, -1, 0] * 10)
    np.testing.assert_allclose(found[:, 0], signs / factorials, rtol=1e-14)
    lengths = {len(ode.solution_of(burgers, k).source_for(Y, 0.0).splitlines()) for k in (4, 40)}
    assert len(lengths) == 1


def test_derivatives_of_coefficients():
    def third(y):
        return ode.coefficients(switch, y, 0.3, order=3)[2, 0]
    steps = [(third(Y + h) - third(Y - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gs.grad(third)(Y), steps, rtol=1e-6, atol=1e-9)
    ys = np.stack([Y, -Y])
    batch = gs.vmap(lambda y: ode.coefficients(burgers, y, 0.3, order=4))(ys)
    np.testing.assert_allclose(batch, [ode.coefficients(burgers, y, 0.3, order=4) for y in ys], rtol=1e-13)


@pytest.mark.parametrize("shape", ((), (1,), (0,), (2, 0, 3)))


def test_shapes(shape):
    y = np.full(shape, 0.3)
    found = ode.coefficients(lambda y, t: np.exp(y) / (1 + t * y), y, 0.1, order=4)
    assert found.shape == (4, *shape)
    one = by_taylor_mode(lambda y, t: np.exp(y) / (1 + t * y), 0.3, 0.1)[:4]
    np.testing.assert_allclose(found, one.reshape(4, *(len(shape) * (1,))) * np.ones(shape), rtol=1e-13)


def test_single_precision_and_complex():
    found = ode.coefficients(lambda y, t: np.sin(y) * y, np.full(2, 0.3, np.float32), np.float32(0.0), order=4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0], ode.coefficients(lambda y, t: np.sin(y) * y, 0.3, 0.0, order=4), rtol=1e-5)
    found = ode.coefficients(lambda z, t: 1j * z, np.array([1.0 + 0j]), 0.0, order=4)
    np.testing.assert_allclose(found[:, 0], [1j, -1 / 2, -1j / 6, 1 / 24], rtol=1e-14)
