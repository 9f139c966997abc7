"""gs.vjp and gs.linearize: what the primals settle is done once, and no call sees what another one left."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(0)
W, x = rng.normal(size=(4, 4)) / 2, rng.normal(size=4)


def layers(W, x):
    h = np.tanh(W @ x)
    for _ in range(3):
        h = np.tanh(W @ h)
    return np.exp(h) * np.sum(h)


def branches(W, x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            s += np.exp(x[i]) * W[i, i]
        else:
            s -= np.cos(x[i])
    return s * x


def written(W, x):
    out = np.zeros(4)
    out[:2] = np.sin(x[:2])
    for i in range(2, 4):
        out[i] = out[i - 1] * W[i, 0] + np.exp(out[i - 2])
    return out


def until(W, x):
    y = x
    while np.sum(y * y) > 0.1:
        y = np.sin(y) * 0.7 + 0.01 * (W @ y)
    return y


def containers(W, x):
    p = {"w": W, "b": [x, 2.0]}
    return p["w"] @ p["b"][0] * p["b"][1] + np.sin(x)


def pieces(W, x):
    parts = []
    for i in range(4):
        parts.append(np.tanh(W[i] * x[i]))
    total = np.zeros(4)
    for q in parts:
        total = total + q * q
    return total


FUNCTIONS = [layers, branches, written, until, containers, pieces]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_calls_are_alike_and_right(f):
    y, pull = gs.vjp(f, W, x)
    z, push = gs.linearize(f, W, x)
    np.testing.assert_array_equal(y, f(W, x))
    np.testing.assert_array_equal(z, f(W, x))
    for seed in range(4):
        r = np.random.default_rng(seed)
        dy, dW, dx = r.normal(size=4), r.normal(size=(4, 4)), r.normal(size=4)
        dot = push(dW, dx)
        np.testing.assert_allclose(dot, gs.jvp(f, (W, x), (dW, dx))[1], rtol=1e-13, atol=1e-14)
        back = pull(dy)
        np.testing.assert_allclose(np.sum(dy * dot), np.sum(back[0] * dW) + np.sum(back[1] * dx), rtol=1e-11)
        for a in (*back, dot):                                  # what is given back is the caller's
            a[...] = np.nan


def test_the_pullback_of_layers_computes_no_tanh():
    _, pull = gs.vjp(layers, W, x)
    before = pull.source
    pull(x)
    assert pull.source == before
    lines = [line for line in pull.source.splitlines() if not line.strip().startswith("#")]
    once, each = "\n".join(lines).split("def vjp_layers(")
    assert once.count("np.tanh") == 2 and "np.tanh" not in each and "np.exp" not in each
    assert each.startswith("dy, W, x, ") and each.count(" - ") == 1         # the loop's own


def test_the_tangent_of_an_expression_computes_no_sine():
    _, push = gs.linearize(lambda x: np.sin(x) * np.exp(x), x)
    np.testing.assert_allclose(push(x), (np.cos(x) + np.sin(x)) * np.exp(x) * x, rtol=1e-14)
    once, each = push.source.split("def jvp_lambda(")
    assert "np.sin" in once and "np." not in each.replace("np.ndarray", "")


def test_primals_of_now():
    a = x.copy()
    _, pull = gs.vjp(lambda v: np.sin(v), a)
    pull(np.ones(4))
    a[:] = 100
    np.testing.assert_allclose(pull(np.ones(4))[0], np.cos(x), rtol=1e-15)


def test_of_a_gradient_and_of_compiled_code():
    def f(x):
        return np.sum(np.log(1 + x * x) * np.roll(x, 1))

    H = gs.hessian(f)(x)
    for g in (gs.grad(f), gs.jit(gs.grad(f))):
        y, push = gs.linearize(g, x)
        np.testing.assert_allclose(y, gs.grad(f)(x), rtol=1e-14)
        for v in np.eye(4):
            np.testing.assert_allclose(push(v), H @ v, rtol=1e-10, atol=1e-13)


def test_conjugate_gradients_by_one_linearization():
    """A linear system with the Hessian: its products are calls of one linear function."""
    def f(x):
        return np.sum(np.cosh(x)) + 0.5 * np.sum(x) ** 2

    g, product = gs.linearize(gs.grad(f), x)
    step, r = np.zeros(4), -g
    p = r
    for _ in range(8):
        q = product(p)
        a = r @ r / (p @ q)
        step, rest = step + a * p, r - a * q
        p, r = rest + (rest @ rest) / (r @ r) * p, rest
        if r @ r < 1e-28:
            break
    np.testing.assert_allclose(step, np.linalg.solve(gs.hessian(f)(x), -g), rtol=1e-10)


def test_other_kinds_of_tangents():
    _, push = gs.linearize(lambda v: v * np.exp(v), x)
    for tangent in (np.ones(4), np.ones(4)[::-1], x):
        np.testing.assert_allclose(push(tangent), tangent * np.exp(x) * (1 + x), rtol=1e-15)
    with pytest.raises(gs.TransformError):
        push(np.ones(3))
    with pytest.raises(gs.TransformError):
        push(np.ones(4, np.float32))


def test_the_number_of_tangents():
    _, pull = gs.vjp(layers, W, x)
    with pytest.raises(TypeError, match="takes 1 argument, 2 given"):
        pull(x, x)
    _, push = gs.linearize(layers, W, x)
    with pytest.raises(TypeError, match="takes 2 arguments, 1 given"):
        push(W)


def test_aux_and_tuples():
    y, pull, aux = gs.vjp(lambda x: ((np.sin(x), np.exp(x)), "said"), x, has_aux=True)
    assert aux == "said"
    for _ in range(2):
        np.testing.assert_allclose(pull((x, x))[0], np.cos(x) * x + np.exp(x) * x, rtol=1e-15)


def newton(a):
    x = a
    for _ in range(20):
        x = x - np.linalg.solve(gs.jacfwd(residual)(x, a), residual(x, a))
    return x


def residual(x, a):
    return x + 0.5 * np.tanh(np.roll(x, 1)) - a


@gs.custom_vjp
def root(a):
    return newton(a)


root.defvjp(lambda a: (newton(a), (newton(a), a)),
            lambda kept, dx: (np.linalg.solve(gs.jacrev(residual)(*kept).T, dx),))


def test_a_transformation_read_within_a_rule_that_is_being_read():
    """The Jacobian inside of what a rule calls is written where it belongs, not into what asked for the rule."""
    a = np.array([0.3, -1.2, 0.8])
    want = np.linalg.inv(gs.jacfwd(residual)(root(a), a))
    np.testing.assert_allclose(gs.jacrev(root)(a), want, rtol=1e-12)
    np.testing.assert_allclose(gs.vjp(root, a)[1](np.ones(3))[0], np.ones(3) @ want, rtol=1e-12)


def test_what_the_function_tells_it_tells_once(capsys):
    """The function is called when the pullback is made; the pullback tells nothing, in loops and branches neither."""
    def f(x):
        s = 0.0
        for v in x:
            s = s + v * v
            if v > 1:
                print("large:", v)
        print(f"sum {s}")
        return s
    x = np.array([0.5, 2.0])
    for make, given in ((gs.vjp, 1.0), (gs.linearize, x)):
        _, linear = make(f, x)
        assert capsys.readouterr().out == "large: 2.0\nsum 4.25\n"
        linear(given)
        linear(given)
        assert capsys.readouterr().out == "" and "print" not in linear.source
    gs.vjp_of(f)(1.0, x)
    assert capsys.readouterr().out == "large: 2.0\nsum 4.25\n"


def test_a_draw_that_no_derivative_needs_is_made_once():
    def f(x):
        noise = np.random.randn(3)
        return np.sum(x * x) + noise[0]

    def scaled(x):
        return np.sum(x * np.random.randn(3))
    x = np.array([0.5, 2.0, 1.0])
    np.random.seed(5)
    y, pull = gs.vjp(f, x)
    np.testing.assert_array_equal(pull(1.0)[0], 2 * x)
    following = np.random.randn()
    np.random.seed(5)
    assert y == np.sum(x * x) + np.random.randn(3)[0] and following == np.random.randn()
    with pytest.raises(gs.TransformError, match="evaluated again"):
        gs.vjp(scaled, x)[1](1.0)


def test_one_adjoint_for_each_primal():
    """None where there is none, as in the Jacobians."""
    x = np.array([1.0, 2.0])
    dx, dn, dz = gs.vjp(lambda x, n, z: x * z * n, x, 3, 4.0)[1](np.ones(2))
    np.testing.assert_array_equal(dx, [12.0, 12.0])
    assert dn is None and dz == 9.0
    assert gs.vjp(lambda x, _: np.sum(x), x, None)[1](1.0)[1] is None
    dx, dn = gs.vjp_of(lambda x, n: x[n])(1.0, x, 1)
    np.testing.assert_array_equal(dx, [0.0, 1.0])
    assert dn is None
    dx, dn = gs.jit(gs.vjp_of(lambda x, n: x[n]))(1.0, x, 1)
    np.testing.assert_array_equal(dx, [0.0, 1.0])
    assert dn is None


SCALE = np.array([1.0, 2.0, 3.0, 4.0])
FACTOR = 2.0


def scaled(v):
    return np.sum(FACTOR * v ** 2 * SCALE)


def twice_scaled(v):
    return FACTOR * v


@pytest.mark.parametrize("dy", [1.0, 1, np.float32(1.0), np.ones(())], ids=repr)
def test_what_is_read_from_outside_is_what_it_was(monkeypatch, dy):
    scale = SCALE.copy()
    monkeypatch.setitem(globals(), "SCALE", scale)
    (_, pull), (_, push), (_, whole) = gs.vjp(scaled, x), gs.linearize(scaled, x), gs.vjp(twice_scaled, 3.0)
    want = 4.0 * x * scale
    for _ in range(2):
        monkeypatch.setitem(globals(), "FACTOR", 9.0)
        scale[0] = 7.0
        np.testing.assert_allclose(pull(dy)[0], want)
        np.testing.assert_allclose(push(np.ones(4)), np.sum(want))
        assert whole(dy) == (2.0,)
    np.testing.assert_allclose(gs.vjp(scaled, x)[1](dy)[0], 18.0 * x * scale)
    with pytest.raises(gs.KindError, match="has changed since"):
        whole(np.ones(3))


def test_the_value_is_that_of_the_forward_half():
    """As in JAX: where no argument that is differentiated reaches it, the function itself is called."""
    f = gs.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x + 10.0, x), lambda x, dy: (3.0 * x * dy,))
    for g, value, adjoint in ((f, 14.0, 6.0), (lambda x: 2.0 * f(x), 28.0, 12.0), (lambda x: f(3.0) * x, 18.0, 9.0),
                              (gs.jit(lambda x: 2.0 * f(x)), 28.0, 12.0)):
        y, pull = gs.vjp(g, 2.0)
        assert (y, pull(1.0)) == (value, (adjoint,))
        assert gs.value_and_grad(g)(2.0) == (value, adjoint)
    y, pull, aux = gs.vjp(lambda x: (f(x), {"n": x + 1.0}), 2.0, has_aux=True)
    assert (y, pull(1.0), aux) == (14.0, (6.0,), {"n": 3.0})
    h = gs.custom_jvp(lambda x: x * x)
    h.defjvp(lambda primals, tangents: (primals[0] ** 2 + 10.0, 3.0 * primals[0] * tangents[0]))
    y, push = gs.linearize(h, 2.0)
    assert (y, push(1.0)) == gs.jvp(h, (2.0,), (1.0,)) == (14.0, 6.0)


def test_the_value_of_the_forward_half_of_a_function_that_writes():
    f = gs.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x + 10.0, x), lambda x, dy: (3.0 * x * dy,))

    def g(v):
        v[0] = v[1] * 2
        return np.sum(f(v))

    a = np.array([1.0, 2.0])
    y, pull = gs.vjp(g, a)
    assert y == 4.0 ** 2 + 2.0 ** 2 + 20.0 and a.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(pull(1.0)[0], [0.0, 3 * 4.0 * 2 + 3 * 2.0])


def test_the_halves_are_made_once_for_the_same_kinds():
    def f(v):
        return np.sum(np.sin(v) * np.roll(v, 1))

    def halves(p):
        return p.again.linear[p.made].last

    (_, a), (_, b), (_, c) = (gs.vjp(f, np.linspace(0.1, 1.0, n)) for n in (4, 6, 4))
    assert halves(a) is halves(b) is halves(c)
    for p, n in ((a, 4), (b, 6), (c, 4)):
        np.testing.assert_allclose(p(1.0)[0], gs.grad(f)(np.linspace(0.1, 1.0, n)), rtol=1e-14)
