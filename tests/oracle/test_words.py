"""What JAX's users type, word for word, beside JAX: keywords, modes of indices, functions of other names."""
import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradscribe as gs

jax.config.update("jax_enable_x64", True)

X = np.arange(1.0, 13.0).reshape(4, 3) / 4
INDICES = {
    "number": 2, "beyond": 9, "before": -9, "negative": -1, "two numbers": (1, 5),
    "slice and number": (slice(1, 9), -1),
    "array": np.array([0, 2, 7, -1, -9]), "bytes": np.array([0, 2, 7, -1, -9], np.int8),
    "unsigned": np.array([1, 200], np.uint8), "two arrays": (np.array([0, 3, 9, 3]), np.array([1, -4, 2, 2])),
    "columns": (slice(None), np.array([1, 3, 0])), "a grid": (np.array([[0], [5]]), np.array([0, 2, -5])),
    "last": (Ellipsis, np.array([0, 3])), "new": (None, np.array([1, 4])),
    "mask": X[:, 0] > 1.0, "slice": slice(1, 9),
}


def same(ours, theirs):
    np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize("wrap", [True, False])
def test_at_get(name, mode, wrap):
    index = INDICES[name]
    for x in (X, X.astype(np.int32), X.astype(np.uint8), X > 1):
        ours = gs.at(x)[index].get(mode=mode, wrap_negative_indices=wrap)
        theirs = np.asarray(jnp.asarray(x).at[index].get(mode=mode, wrap_negative_indices=wrap))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    word = {"fill_value": 7.0} if mode == "fill" else {}

    def loss(x, at):
        return (at(x)[index].get(mode=mode, wrap_negative_indices=wrap, **word) ** 3).sum()
    theirs = jax.grad(lambda x: loss(x, lambda x: x.at))(X)

    def ours(x):
        return np.sum(gs.at(x)[index].get(mode=mode, wrap_negative_indices=wrap, **word) ** 3)
    same(gs.grad(ours)(X), theirs)
    same(gs.jit(gs.grad(ours))(X), theirs)


TWICE = ("array", "bytes", "a grid", "two arrays")        # clipped, entries meet


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("operation", ["set", "add", "subtract", "multiply", "divide", "min", "max"])
@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_at_write(name, operation, mode):
    index, v = INDICES[name], 1.8               # min and max have no ties
    words = {"mode": mode, "unique_indices": mode == "drop" or name not in TWICE}

    def theirs(x, v):
        return getattr(x.at[index], operation)(v, **words)

    def ours(x, v):
        return getattr(gs.at(x)[index], operation)(v, **words)
    same(ours(X, v), theirs(jnp.asarray(X), v))
    if operation == "add" or words["unique_indices"]:
        same(gs.jit(ours)(X, v), theirs(jnp.asarray(X), v))
    if operation != "add" and not words["unique_indices"] or operation in ("min", "max") and mode == "clip":
        return              # what JAX does not define, and where it looks for the winner out of bounds
    wanted = jax.grad(lambda x, v: (theirs(x, v) ** 2).sum(), (0, 1))(X, v)

    def loss(x, v):
        return np.sum(ours(x, v) ** 2)
    for made in (gs.grad(loss, (0, 1)), gs.jit(gs.grad(loss, (0, 1)))):
        for part, other in zip(made(X, v), wanted):
            same(part, other)


def test_at_clipped_largest():
    def loss(x, v):
        return np.sum(gs.at(x)[9].max(v, mode="clip") ** 2)
    dx, dv = gs.grad(loss, (0, 1))(np.array([1.0, 2.0]), 3.0)
    assert dx.tolist() == [2.0, 0.0] and dv == 6.0


def test_at_without_a_mode():
    with pytest.raises(IndexError):
        gs.at(np.zeros(3))[7].set(1.0)
    with pytest.raises(IndexError):
        gs.at(np.zeros(3))[np.array([7])].get(mode="promise_in_bounds")
    with pytest.raises(ValueError, match="mode must be"):
        gs.at(np.zeros(3))[7].set(1.0, mode="wrap")
    with pytest.raises(ValueError, match="needs a mode"):
        gs.at(np.zeros(3))[-1].set(1.0, wrap_negative_indices=False)


def test_at_over_a_batch():
    i = np.array([[0, 5], [-1, 2]])
    theirs = jax.vmap(lambda x, i: x.at[i].add(1.0, mode="drop"), (None, 0))(jnp.asarray(X), i)
    same(gs.vmap(lambda x, i: gs.at(x)[i].add(1.0, mode="drop"), (None, 0))(X, i), theirs)


POINT = np.array([1.0, 2.0])


def cubes(x, y):
    return (x ** 3 * y).sum(), {"twice": 2 * x, "three": 3}


@pytest.mark.parametrize("name", ["hessian", "jacfwd", "jacrev", "grad", "value_and_grad"])
@pytest.mark.parametrize("argnums", [0, (0, 1), -1])
def test_has_aux(name, argnums):
    theirs = getattr(jax, name)(cubes, argnums, has_aux=True)(POINT, POINT + 1)
    ours = getattr(gs, name)(cubes, argnums, has_aux=True)
    jax.tree.map(same, ours(POINT, POINT + 1), theirs)
    jax.tree.map(same, gs.jit(ours)(POINT, POINT + 1), theirs)


def test_has_aux_inside():
    def through(module):
        def loss(x):
            second, aux = module.hessian(cubes, has_aux=True)(x, x)
            y, derivative, more = module.linearize(lambda x: cubes(x, x), x, has_aux=True)
            return (second * aux["twice"]).sum() + y * derivative(aux["twice"]) + (more["twice"] * x).sum()
        return loss
    same(gs.grad(through(gs))(POINT), jax.grad(through(jax))(POINT))


def test_holomorphic_hessian():
    def f(z):
        return z[0] ** 3 * z[1]
    z = POINT + 1j
    same(gs.hessian(f, 0, False, True)(z), jax.hessian(f, 0, False, True)(z))


def test_linearize_with_aux():
    y, derivative, aux = gs.linearize(cubes, POINT, POINT + 1, has_aux=True)
    theirs = jax.linearize(cubes, POINT, POINT + 1, has_aux=True)
    jax.tree.map(same, (y, aux), (theirs[0], theirs[2]))
    same(derivative(POINT, POINT), theirs[1](POINT, POINT))


def own_rules(module, numpy):
    @functools.partial(module.custom_vjp, nondiff_argnames=("mode",))
    def power(x, mode="a", n=2.0):
        return x ** n if mode == "a" else numpy.sin(x)

    def back(mode, res, dy):
        return (100.0 if mode == "a" else 7.0) * dy * res[0], 0.0 * res[1]
    power.defvjp(lambda x, mode, n: (power(x, mode, n), (x, n)), back)

    @functools.partial(module.custom_jvp, nondiff_argnames="n")
    def eleven(x, n):
        return x ** n

    @eleven.defjvp
    def _(n, primals, tangents):
        return eleven(primals[0], n), 11.0 * tangents[0]
    return [module.grad(power)(3.0), module.grad(lambda x: power(x, mode="b"))(3.0),
            module.grad(lambda x: power(mode="b", x=x))(3.0), module.value_and_grad(lambda x: power(x, n=3.0))(2.0),
            module.grad(lambda x: eleven(x, n=3))(2.0), module.jvp(lambda x: eleven(n=2, x=x), (2.0,), (1.0,))]


def test_names_of_arguments_without_derivative():
    jax.tree.map(same, own_rules(gs, np), own_rules(jax, jnp))


def static(module):
    def f(x, n):
        return x ** n if n > 1 else x
    return [module.jit(f, static_argnums=-1)(3.0, 2), module.jit(f, static_argnums=(-1,), donate_argnums=0)(3.0, 1),
            module.grad(module.checkpoint(f, static_argnums=(1,), prevent_cse=False))(3.0, 2),
            module.grad(lambda x: module.checkpoint(f, static_argnums=1, policy=None)(x, 2))(3.0)]


def test_static_arguments():
    assert static(gs) == [float(v) for v in static(jax)] == [9.0, 3.0, 6.0, 6.0]
    for wrong in (lambda: gs.jit(lambda x: x, static_argnums=-2), lambda: gs.jit(lambda *xs: xs[0], static_argnums=-1),
                  lambda: gs.checkpoint(lambda x: x, static_argnames="n"), lambda: gs.jit(lambda x: x, True),
                  lambda: gs.custom_jvp(lambda x: x, nondiff_argnames="n")):
        with pytest.raises(gs.KindError, match="parameter|must be numbers"):
            wrong()


def test_leaves_by_path():
    tree = {"a": [1, (2, 3)], "b": {"c": [4]}}

    def is_leaf(path, part):
        return bool(path) and str(path[-1]) in ("['c']", "[1]")
    words = {"is_leaf": is_leaf, "is_leaf_takes_path": True}
    theirs = jax.tree_util.tree_leaves_with_path(tree, **words)
    spelled = [(jax.tree_util.keystr(path), leaf) for path, leaf in theirs]
    assert [(gs.tree_util.keystr(path), leaf) for path, leaf in gs.tree.leaves_with_path(tree, **words)] == spelled
    leaves, treedef = gs.tree_util.tree_flatten_with_path(tree, **words)
    assert treedef.unflatten([leaf for _, leaf in leaves]) == tree
    names = gs.tree_util.tree_map_with_path(lambda path, leaf: len(path), tree, **words)
    assert names == jax.tree_util.tree_map_with_path(lambda path, leaf: len(path), tree, **words)


def own_pullbacks(module, numpy):
    @module.custom_gradient
    def f(x, y):
        s = numpy.sin(x) * 3
        return s * y, lambda dy: (dy * x * 100, dy * s)

    @module.custom_gradient
    def five(x):
        def pullback(dy):
            return dy * 5.0
        return x ** 2, pullback
    return [f(2.0, 3.0), module.grad(f, (0, 1))(2.0, 3.0), module.value_and_grad(lambda x: f(x, x) ** 2)(2.0),
            module.jit(module.grad(five))(2.0), module.grad(lambda x: five(x) * five(x))(2.0)]


def test_custom_gradient():
    jax.tree.map(same, own_pullbacks(gs, np), own_pullbacks(jax, jnp))


def transposes(module, numpy):
    a = numpy.arange(6.0).reshape(2, 3)

    def product(p):
        return {"y": a @ p["a"] + 2 * p["b"]}
    transposed = module.linear_transpose(product, {"a": module.ShapeDtypeStruct((3,), np.float64), "b": numpy.zeros(2)})
    twice = module.linear_transpose(lambda x: 2 * x, 1.0)
    rotated = module.linear_transpose(lambda z: (1 + 2j) * z, 1j)
    return [transposed({"y": numpy.ones(2)}), module.linear_transpose(lambda x, y: 0.5 * x - 0.5 * y, 1.0, 1.0)(1.0),
            module.grad(lambda v: twice(v)[0] * v)(3.0), rotated(1.0 + 1j)]


def test_linear_transpose():
    jax.tree.map(same, transposes(gs, np), transposes(jax, jnp))
    for curved in (lambda x: x * x, lambda x: np.where(x > 0, x, 0.0), lambda x: np.abs(x)):
        with pytest.raises(gs.KindError, match="is not linear"):
            gs.linear_transpose(curved, np.ones(3))


def test_forward_and_backward():
    def f(x, n):
        return x ** n, n
    for argnums in (0, (0,), (0, 1)):
        found = []
        for module in (gs, jax):
            forward, backward = module.fwd_and_bwd(f, argnums, has_aux=True)
            y, pullback, aux = forward(3.0, 2.0)
            found.append((y, aux, backward(pullback, 2.0)))
        jax.tree.map(same, *found)


def test_one_level():
    for tree in ([1, [2]], (1,), {"b": 1, "a": 2}, None, collections.OrderedDict(b=1)):
        ours, theirs = (m.tree_util.flatten_one_level(tree) for m in (gs, jax))
        assert ours[1] == theirs[1] and list(ours[0]) == list(theirs[0])
        ours, theirs = (m.tree_util.flatten_one_level_with_keys(tree) for m in (gs, jax))
        assert ours[1] == theirs[1] and repr(tuple(ours[0])) == repr(tuple(theirs[0]))
        assert gs.tree_util.is_tree_node(type(tree)) and jax.tree_util.is_tree_node(type(tree))
    with pytest.raises(ValueError, match="not a container"):
        gs.tree_util.flatten_one_level(1.5)


def test_joined_by_halves():
    def join(a, b):
        return f"({a} {b})"
    for n in range(1, 8):
        tree = list(range(n))
        assert gs.tree.reduce_associative(join, tree) == jax.tree.reduce_associative(join, tree)
    assert gs.tree.reduce_associative(join, [], identity=7) == 7
    with pytest.raises(TypeError):
        gs.tree.reduce_associative(join, [])
