"""Control flow as functions, closures, shapes: what the library refuses."""
import tempfile
from functools import partial

import numpy as np
from errors.cases import emitted, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError

X, LONG = np.array([0.5, 1.5, 2.5]), np.linspace(0.1, 0.9, 40)


def exported(f, *args):
    with tempfile.TemporaryDirectory() as folder:
        gs.export(f, *args, path=f"{folder}/f")


@refused(LanguageError)
def closure_that_is_differentiated():
    @partial(gs.custom_vjp, nondiff_argnums=(0,))
    def root(f, x):
        return f(x)
    root.defvjp(lambda f, x: (f(x), ()), lambda f, kept, dy: (dy,))

    def f(a):
        return root(lambda x: x * a, 1.0)
    emitted(f, 2.0)


@refused(LanguageError)
def array_of_tuples_of_tuples():
    def f(x):
        return np.sum(np.array([(v, (v, v)) for v in x]))
    emitted(f, X)


@refused(LanguageError)
def tuples_of_two_forms():
    def f(x):
        rows = []
        for v in x:
            rows.append((v, v))
            rows.append((v, v, v))
        return rows[0][0]
    emitted(f, LONG)


@refused(LanguageError)
def tuples_and_numbers():
    def f(x):
        rows = []
        for v in x:
            rows.append((v, v))
        rows.append(x[0])
        return rows[0][0]
    emitted(f, X)


@refused(LanguageError)
def tuples_that_are_sorted():
    def f(x):
        rows = []
        for v in x:
            rows.append((v, v))
        rows.sort()
        return rows[0][0]
    emitted(f, X)


@refused(KindError)
def exported_generator():
    exported(lambda rng: rng.random(), np.random.default_rng(0))


@refused(KindError)
def exported_result_of_unknown_length():
    def f(x):
        return x[x > 0]
    exported(f, X)


@refused(KindError)
def exported_write():
    def f(x):
        x[0] = 1.0
        return np.sum(x)
    exported(f, X)


@refused(RuleError)
def exported_eigenvalues():
    def f(a):
        return np.linalg.eigvalsh(a)
    exported(f, np.eye(3))


class Spring:
    def __init__(self, k):
        self.k = k


@refused(KindError)
def tangent_of_an_object():
    gs.jvp_of(lambda s: s.k ** 2).source_for(Spring(1.0), Spring(1.0))


@refused(KindError)
def adjoint_of_an_object():
    gs.vjp_of(lambda s: s.k ** 2).source_for(1.0, Spring(1.0))


@refused(KindError)
def compiled_for_a_list():
    gs.jit(lambda x, k: x * k[0], static_argnums=1)(2.0, [1.0])


@refused(KindError)
def compiled_inside_without_a_function():
    def f(x):
        @gs.jit(fastmath=False)
        def inner(y):
            return y * y
        return inner(x)
    emitted(f, 2.0)


def of_five(x):
    if len(x) == 5:
        return np.sum(x)
    raise ValueError("five are needed")


@refused(LanguageError)
def raises_in_an_expression():
    gs.jit(lambda x: 0.0 if x[0] > 0 else 2 * of_five(x)).source_for(np.ones(4))


noted = []


@refused(LanguageError)
def appended_in_a_loop():
    def f(x):
        for v in x:
            noted.append(v)
        return np.sum(x)
    gs.grad(f).source_for(LONG)


@refused(LanguageError)
def appended_and_read():
    def f(x):
        noted.append(x[0])
        return np.sum(x) * len(noted)
    gs.grad(f).source_for(np.ones(4))


@refused(LanguageError)
def read_and_appended():
    def f(x):
        y = np.sum(x) * len(noted)
        noted.append(y)
        return y
    gs.grad(f).source_for(np.ones(4))


@refused(LanguageError)
def text_appended():
    def f(x):
        noted.append("x")
        return np.sum(x)
    gs.grad(f).source_for(np.ones(4))


@refused(LanguageError)
def appended_in_a_compiled_derivative():
    def f(x):
        noted.append(x[0])
        return np.sum(x)
    gs.jit(gs.grad(f)).source_for(np.ones(4))


class Series:
    """Something that makes an array of itself, and is none."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)


@refused(gs.ShapeError)
def an_object_that_only_becomes_an_array():
    emitted(lambda x: np.sum(np.sin(x) * x), Series())


def ruled(forward, backward):
    @gs.custom_vjp
    def f(p):
        return {"s": np.sum(p["a"] ** 2), "t": 1.0}
    f.defvjp(forward, backward)
    return f


@refused(KindError)
def adjoint_of_another_structure():
    f = ruled(lambda p: ({"s": np.sum(p["a"] ** 2), "t": 1.0}, p), lambda p, dy: (({"b": p["a"]}),))
    gs.grad(lambda p: f(p)["s"] * 2.0)({"a": X})


@refused(KindError)
def adjoint_of_another_shape():
    f = ruled(lambda p: ({"s": np.sum(p["a"] ** 2), "t": 1.0}, p), lambda p, dy: ({"a": np.ones(2)},))
    gs.grad(lambda p: f(p)["s"] * 2.0)({"a": X})


@refused(KindError)
def forward_half_of_another_structure():
    f = ruled(lambda p: ((np.sum(p["a"] ** 2), 1.0), p), lambda p, dy: ({"a": p["a"]},))
    gs.grad(lambda p: f(p)["s"] * 2.0)({"a": X})


@refused(KindError)
def forward_rule_of_another_structure():
    @gs.custom_jvp
    def f(x):
        return {"s": x * x}
    f.defjvp(lambda primals, tangents: ({"s": primals[0] ** 2}, {"t": primals[0] * tangents[0]}))
    gs.jvp(lambda x: f(x)["s"] * 2.0, (2.0,), (1.0,))


class Named:
    """A class whose name is known only when running, by mistake."""

    def __init__(self, x, scale):
        self.x, self.scale = x, scale


class Unpaired:
    def __init__(self, x):
        self.x = x


gs.tree_util.register_pytree_node(Named, lambda t: ((t.x,), t.scale), lambda scale, children: Named(*children, scale))
gs.tree_util.register_pytree_node(Unpaired, lambda t: (t.x,), lambda _, children: Unpaired(*children))


@refused(KindError)
def data_known_only_when_running():
    gs.grad(lambda x: np.sum(x))(X)
    gs.jit(lambda x: Named(x, x[0]))(X)


@refused(KindError)
def flatten_without_data():
    gs.jit(lambda x: Unpaired(x))(X)


@refused(LanguageError)
def attribute_of_a_registered_argument():
    def f(p):
        p.x = 2.0 * p.x
        return np.sum(p.x)
    gs.grad(f)(Named(X, 2.0))


@refused(gs.ShapeError)
def an_object_of_no_class():
    emitted(lambda x: object.__new__(3), 2.0)


def squares_of_positive(x):
    out = []
    for v in x:
        if v > 0.0:
            out.append(v * v)
    return out


@refused(LanguageError)
def jacobian_of_a_list_of_open_length():
    gs.jacrev(lambda x: squares_of_positive(x))(X)


@refused(LanguageError)
def a_list_of_open_length_that_is_held():
    emitted(lambda x: np.sum(np.array(gs.stop_gradient(squares_of_positive(x)))), X)


@refused(LanguageError)
def a_list_of_open_length_for_a_rule_of_ones_own():
    f = gs.custom_vjp(lambda items: items[0])
    f.defvjp(lambda items: (items[0], items), lambda items, dy: (items,))
    gs.grad(lambda x: f(squares_of_positive(x)))(X)
