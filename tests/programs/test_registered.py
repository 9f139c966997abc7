"""Objects of classes that are registered as containers: arguments and results of every transformation."""
import dataclasses

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import tree_util

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "compiled"])
X = np.array([0.3, 0.5])


@tree_util.register_pytree_node_class
class Poly:
    """A polynomial; its degree decides how long a loop is."""

    def __init__(self, c, degree):
        self.c, self.degree = c, degree

    def __call__(self, x):
        out = 0.0
        for k in range(self.degree + 1):
            out = out + self.c[k] * x ** k
        return out

    def __add__(self, other):
        return Poly(self.c + other.c, self.degree)

    @property
    def first(self):
        return self.c[0]

    def tree_flatten(self):
        return [self.c], {"degree": self.degree}

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(*children, **data)


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray
    kind: str = dataclasses.field(default="tanh", metadata={"static": True})

    def __call__(self, x):
        y = self.w @ x + self.b
        return np.tanh(y) if self.kind == "tanh" else y


@tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    layers: list
    scale: float


class Both:
    def __init__(self, a, b):
        self.a, self.b = a, b


tree_util.register_pytree_node(Both, lambda t: ((t.a, t.b), None), lambda _, children: Both(*children))


class Bare:
    """A class whose __init__ computes, so that it is put together without."""

    def __init__(self, a):
        self.a, self.twice = a, 2.0 * a


def bare(_, children):
    made = object.__new__(Bare)
    made.a, made.twice = children
    return made


tree_util.register_pytree_node(Bare, lambda t: ((t.a, t.twice), None), bare)


@tree_util.register_static
class Power:
    def __init__(self, k):
        self.k = k

    def __hash__(self):
        return hash(self.k)

    def __eq__(self, other):
        return self.k == other.k


def poly(degree):
    return Poly(np.arange(1.0, degree + 2), degree)


def at(p):
    return np.sum(p(X))


@WRAPS
def test_the_data_belong_to_the_kind(wrap):
    d = wrap(gs.grad(at))
    for degree in (1, 3, 2, 1):
        got = d(poly(degree))
        assert type(got) is Poly and got.degree == degree
        np.testing.assert_allclose(got.c, [np.sum(X ** k) for k in range(degree + 1)], rtol=1e-15)


@WRAPS
def test_methods_properties_and_operators(wrap):
    d = wrap(gs.grad(lambda p: p.first ** 2 + np.sum((p + p).c)))(poly(2))
    assert d.c.tolist() == [4.0, 2.0, 2.0]
    made = wrap(lambda p, q: p + q)(poly(2), poly(2))
    assert type(made) is Poly and made.c.tolist() == [2.0, 4.0, 6.0] and made.degree == 2
    assert wrap(gs.grad(lambda x, *, p: p(x)))(2.0, p=poly(2)) == 14.0


@WRAPS
def test_carried_by_a_loop(wrap):
    def f(p, n):
        q = p
        for _ in range(n):
            q = q + p
        return np.sum(q.c ** 2)
    assert wrap(gs.grad(f))(poly(2), 3).c.tolist() == [32.0, 64.0, 96.0]
    made = wrap(lambda p: gs.lax.fori_loop(0, 3, lambda i, q: q + p, p))(poly(1))
    assert made.c.tolist() == [4.0, 8.0]


@WRAPS
def test_dataclasses_with_static_fields(wrap):
    """A model of layers, its gradient, its batch and its update."""
    model = Model([Layer(np.eye(2), np.ones(2)), Layer(2.0 * np.eye(2), np.ones(2), "none")], 2.0)

    def f(m, x):
        for layer in m.layers:
            x = layer(x)
        return m.scale * np.sum(x)
    t = np.tanh(X + 1.0)
    d = wrap(gs.grad(f))(model, X)
    assert type(d) is Model and [layer.kind for layer in d.layers] == ["tanh", "none"]
    np.testing.assert_allclose(d.layers[0].b, 4.0 * (1.0 - t * t), rtol=1e-14)
    np.testing.assert_allclose(d.layers[0].w, np.outer(4.0 * (1.0 - t * t), X), rtol=1e-14)
    np.testing.assert_allclose(d.layers[1].w, np.outer([2.0, 2.0], t), rtol=1e-14)
    assert d.scale == pytest.approx(np.sum(2.0 * t + 1.0), rel=1e-14)
    np.testing.assert_allclose(wrap(gs.vmap(f, in_axes=(None, 0)))(model, np.stack([X, X])), [f(model, X)] * 2)
    step = wrap(lambda m, x: tree_util.tree_map(lambda a, b: a - 0.5 * b, m, gs.grad(f)(m, x)))(model, X)
    np.testing.assert_allclose(step.layers[1].b, [0.0, 0.0], atol=1e-15)
    assert step.layers[0].kind == "tanh" and step.scale == pytest.approx(2.0 - 0.5 * np.sum(2.0 * t + 1.0), rel=1e-14)


@WRAPS
def test_in_each_other_and_in_containers(wrap):
    d = wrap(gs.grad(lambda t: t["k"][0].a.c[0] ** 2 * t["k"][0].b * t["s"]))({"k": [Both(poly(1), 3.0)], "s": 2.0})
    both = d["k"][0]
    assert type(both) is Both and type(both.a) is Poly
    assert both.a.c.tolist() == [12.0, 0.0] and both.b == 2.0 and d["s"] == 3.0


@WRAPS
def test_put_together_without_init(wrap):
    given = Bare(3.0)
    given.twice = 5.0
    d = wrap(gs.grad(lambda t: t.a ** 2 * t.twice))(given)
    assert type(d) is Bare and (d.a, d.twice) == (30.0, 9.0)


@WRAPS
def test_static_objects(wrap):
    d = wrap(gs.grad(lambda x, p: x ** p.k))
    assert [d(3.0, Power(k)) for k in (2, 3, 2)] == [6.0, 27.0, 6.0]
    assert gs.jit(lambda x, p: x ** p.k, static_argnums=1)(3.0, Power(2)) == 9.0


@WRAPS
def test_partials(wrap):
    f = tree_util.Partial(lambda a, x: a * x ** 2, 2.0)
    assert wrap(gs.grad(lambda f, x: f(x), argnums=1))(f, 3.0) == 12.0
    d = wrap(gs.grad(lambda f, x: f(x)))(f, 3.0)
    assert type(d) is tree_util.Partial and d.args == (9.0,)


@WRAPS
def test_inside_of_functions(wrap):
    """Each transformation of a function of objects, in a function that is itself compiled."""
    p = poly(1)
    dots = wrap(lambda p: gs.jvp(lambda q: q + q, (p,), (p,)))(p)
    assert [d.c.tolist() for d in dots] == [[2.0, 4.0], [2.0, 4.0]]
    assert wrap(lambda p: gs.linearize(lambda q: q + q, p)[1](p))(p).c.tolist() == [2.0, 4.0]
    assert wrap(lambda p: gs.vjp(lambda q: q.c ** 2, p)[1](np.ones(2)))(p)[0].c.tolist() == [2.0, 4.0]
    assert wrap(lambda p: gs.vmap(lambda q: Poly(q.c * 2.0, q.degree))(p))(p).c.tolist() == [2.0, 4.0]
    assert wrap(lambda p: gs.jacfwd(lambda q: q.c ** 2)(p))(p).c.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert wrap(lambda p: gs.jacrev(lambda q: q + q)(p))(p).c.c.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert wrap(lambda p: gs.hessian(lambda q: np.sum(q.c ** 3))(p).c)(p).c.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert wrap(lambda p: gs.jit(lambda q: q + q)(p))(p).c.tolist() == [2.0, 4.0]
    twice = wrap(gs.grad(lambda p: np.sum(gs.grad(lambda q: np.sum(q.c ** 3))(p).c)))(p)
    assert twice.c.tolist() == [6.0, 12.0]


def test_tangents_and_adjoints():
    p, f = poly(1), (lambda p: Poly(p.c ** 2, "squared"))
    y, pull = gs.vjp(f, p)
    assert y.degree == "squared" and pull(Poly(np.ones(2), "squared"))[0].c.tolist() == [2.0, 4.0]
    y, push = gs.linearize(f, p)
    for _ in range(2):
        assert push(p).c.tolist() == [2.0, 8.0] and push(p).degree == "squared"
    assert gs.hvp(lambda p: np.sum(p.c ** 3), (p,), (p,)).c.tolist() == [6.0, 24.0]
    assert gs.eval_shape(f, p).c.shape == (2,)
    (value, aux), d = gs.value_and_grad(lambda p: (np.sum(p.c), p + p), has_aux=True)(p)
    assert value == 3.0 and type(aux) is Poly and aux.c.tolist() == [2.0, 4.0] and d.c.tolist() == [1.0, 1.0]


@WRAPS
def test_axes(wrap):
    rows = Poly(np.arange(6.0).reshape(3, 2), 1)
    want = rows.c[:, 0] + 2.0 * rows.c[:, 1]
    for axes in (0, Poly(0, 1)):
        np.testing.assert_array_equal(wrap(gs.vmap(lambda p, x: p(x), in_axes=(axes, None)))(rows, 2.0), want)
    columns = Poly(rows.c.T, 1)
    np.testing.assert_array_equal(wrap(gs.vmap(lambda p: p(2.0), in_axes=1))(columns), want)


@WRAPS
def test_writes_reach_the_array(wrap):
    def f(p):
        p.c[0] = 5.0
        return np.sum(p.c)
    p = poly(1)
    wrap(f)(p)
    assert p.c.tolist() == [5.0, 2.0]
    assert wrap(gs.grad(f))(poly(1)).c.tolist() == [0.0, 1.0]


@gs.custom_vjp
def squares(p):
    return np.sum(p.c ** 2)


squares.defvjp(lambda p: (squares(p), p), lambda p, dy: (Poly(5.0 * dy * p.c, p.degree),))


@WRAPS
def test_rules_of_ones_own(wrap):
    assert wrap(gs.grad(squares))(poly(1)).c.tolist() == [5.0, 10.0]
    assert wrap(gs.grad(lambda p: 2.0 * squares(p)))(poly(1)).c.tolist() == [10.0, 20.0]
    assert wrap(gs.grad(lambda c: squares(Poly(c, 1))))(np.ones(2)).tolist() == [5.0, 5.0]
