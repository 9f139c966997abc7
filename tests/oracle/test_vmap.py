"""vmap in every form of call against JAX: axes, structures, nesting, mixtures with derivatives, errors."""
import numpy as np
import pytest

import gradscribe as gs

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(21)
X, Y, S, T = rng.standard_normal((4, 3)), rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal(3)
C, W = rng.standard_normal((2, 4, 3)), rng.standard_normal((3, 3))


def add(x, y):
    return x + y


def dot(x, y):
    return x @ y


def affine(w, x, b):
    return w @ x + b


def norms(p):
    return {"sum": p["u"] + p["v"], "parts": (p["u"] * 2, [p["v"] ** 2])}


def scaled(x, *, scale):
    return x * scale


def square(x):
    return x * x


def pair(x):
    return x, x.sum()


def constant(x):
    return 3.0


def loss(w, x):
    return ((w @ x) ** 2).sum()


def outer(x, y):
    return x[:, None] * y


CALLS = {
    "plain": (lambda m: m.vmap(square), (S,)),
    "matrix": (lambda m: m.vmap(square), (X,)),
    "two": (lambda m: m.vmap(add), (X, Y)),
    "tuple": (lambda m: m.vmap(add, (0, 0)), (X, Y)),
    "list": (lambda m: m.vmap(add, [0, 0]), (X, Y)),
    "one_for_all": (lambda m: m.vmap(add, 1), (X, Y)),
    "none_second": (lambda m: m.vmap(add, (0, None)), (X, T)),
    "none_first": (lambda m: m.vmap(add, (None, 0)), (T, X)),
    "second_axis": (lambda m: m.vmap(dot, (1, None)), (X, S)),
    "mixed_axes": (lambda m: m.vmap(dot, (0, 1)), (X, X.T)),
    "negative": (lambda m: m.vmap(dot, (-2, -1)), (X, X.T)),
    "third_axis": (lambda m: m.vmap(square, 2), (C,)),
    "out_one": (lambda m: m.vmap(square, 0, 1), (X,)),
    "out_last": (lambda m: m.vmap(square, 0, -1), (C,)),
    "out_middle": (lambda m: m.vmap(square, 0, -2), (C,)),
    "out_tuple": (lambda m: m.vmap(pair, 0, (1, 0)), (X,)),
    "out_one_for_all": (lambda m: m.vmap(outer, (0, 0), 2), (X, Y)),
    "tree": (lambda m: m.vmap(norms), ({"u": X, "v": Y},)),
    "tree_axes": (lambda m: m.vmap(norms, ({"u": 0, "v": None},)), ({"u": X, "v": T},)),
    "tree_one_axis": (lambda m: m.vmap(norms, (1,)), ({"u": X, "v": Y},)),
    "tree_out": (lambda m: m.vmap(norms, 0, {"sum": 1, "parts": (0, [1])}), ({"u": X, "v": Y},)),
    "tree_out_prefix": (lambda m: m.vmap(norms, 0, {"sum": 1, "parts": 0}), ({"u": X, "v": Y},)),
    "nested_tuple": (lambda m: m.vmap(lambda p: p[0] @ p[1][0], ((0, (None,)),)), ((X, (T,)),)),
    "list_argument": (lambda m: m.vmap(lambda p: p[0] + p[1]), ([X, Y],)),
    "unmapped_tree": (lambda m: m.vmap(lambda x, p: x + p["b"], (0, None)), (X, {"b": T})),
    "keyword": (lambda m: lambda x, s: m.vmap(scaled)(x, scale=s), (X, S)),
    "keyword_alone": (lambda m: lambda x: m.vmap(scaled, (None,))(2.0, scale=x), (X,)),
    "unmapped_result": (lambda m: m.vmap(constant), (S,)),
    "unmapped_array": (lambda m: m.vmap(lambda x, w: w, (0, None)), (S, X)),
    "out_none": (lambda m: m.vmap(lambda x, w: (x, w), (0, None), (0, None)), (S, X)),
    "axis_size": (lambda m: m.vmap(lambda x: x * 2, None, axis_size=3), (T,)),
    "axis_size_agrees": (lambda m: m.vmap(square, axis_size=4), (X,)),
    "twice": (lambda m: m.vmap(m.vmap(add, (0, None)), (None, 0)), (S, T)),
    "twice_both": (lambda m: m.vmap(m.vmap(dot)), (C, C)),
    "twice_axes": (lambda m: m.vmap(m.vmap(square, 1, 1), 0, 2), (C,)),
    "three_times": (lambda m: m.vmap(m.vmap(m.vmap(square))), (C,)),
    "pairwise": (lambda m: m.vmap(lambda a: m.vmap(lambda b: ((a - b) ** 2).sum())(Y)), (X,)),
    "closure": (lambda m: m.vmap(lambda x: W @ x), (X,)),
    "affine": (lambda m: m.vmap(affine, (None, 0, None)), (W, X, T)),
    "affine_all": (lambda m: m.vmap(affine), (np.stack([W] * 4), X, Y)),
    "of_grad": (lambda m: m.vmap(m.grad(loss), (None, 0)), (W, X)),
    "of_grad_second": (lambda m: m.vmap(m.grad(loss, 1), (None, 0)), (W, X)),
    "of_grads": (lambda m: m.vmap(m.grad(loss, (0, 1)), (None, 0)), (W, X)),
    "of_value_and_grad": (lambda m: m.vmap(m.value_and_grad(loss), (None, 0)), (W, X)),
    "of_grad_of_grad": (lambda m: m.vmap(m.grad(m.grad(lambda x: x ** 4))), (S,)),
    "of_jacfwd": (lambda m: m.vmap(m.jacfwd(lambda x: x * x.sum())), (X,)),
    "of_jacrev": (lambda m: m.vmap(m.jacrev(lambda x: x * x.sum())), (X,)),
    "of_hessian": (lambda m: m.vmap(m.hessian(lambda x: (x ** 3).sum())), (X,)),
    "grad_of": (lambda m: m.grad(lambda x: m.vmap(lambda r: (r ** 3).sum())(x).sum()), (X,)),
    "grad_of_unmapped": (lambda m: m.grad(lambda w: (m.vmap(lambda x: w @ x)(X) ** 2).sum()), (W,)),
    "grad_of_axes": (lambda m: m.grad(lambda x: (m.vmap(dot, (1, None), 0)(x, S) ** 2).sum()), (X,)),
    "jacobian_of": (lambda m: m.jacrev(m.vmap(lambda x: (x ** 2).sum())), (X,)),
    "jacfwd_of": (lambda m: m.jacfwd(m.vmap(lambda x: (x ** 2).sum())), (X,)),
    "hessian_of": (lambda m: m.hessian(lambda x: m.vmap(lambda r: r ** 3)(x).sum()), (S,)),
    "integers": (lambda m: m.vmap(lambda k: k * 2 + 1), (np.arange(4),)),
    "booleans": (lambda m: m.vmap(lambda k: ~k), (np.array([True, False]),)),
    "complex": (lambda m: m.vmap(lambda z: z * z.conj()), (S + 1j,)),
    "one_example": (lambda m: m.vmap(square), (X[:1],)),
    "no_example": (lambda m: m.vmap(square), (X[:0],)),
    "numpy_scalar_result": (lambda m: m.vmap(lambda x: x.max()), (X,)),
    "none_in": (lambda m: m.vmap(lambda p: p[0], ((0, None),)), ((X, None),)),
    "none_out": (lambda m: m.vmap(lambda x: (x, None)), (X,)),
    "no_array_out": (lambda m: m.vmap(lambda x: ()), (X,)),
    # errors
    "sizes": (lambda m: m.vmap(add), (X, S[:2])),
    "out_of_range": (lambda m: m.vmap(square, 2), (X,)),
    "below_range": (lambda m: m.vmap(square, -3), (X,)),
    "number": (lambda m: m.vmap(add), (X, 2.0)),
    "too_few_axes": (lambda m: m.vmap(add, (0,)), (X, Y)),
    "too_many_axes": (lambda m: m.vmap(square, (0, 0)), (X,)),
    "all_none": (lambda m: m.vmap(square, None), (X,)),
    "wrong_tree": (lambda m: m.vmap(norms, ({"u": 0},)), ({"u": X, "v": Y},)),
    "wrong_kind": (lambda m: m.vmap(square, "a"), (X,)),
    "wrong_axis_size": (lambda m: m.vmap(square, axis_size=5), (X,)),
    "out_none_mapped": (lambda m: m.vmap(square, 0, None), (X,)),
    "out_out_of_range": (lambda m: m.vmap(square, 0, 3), (X,)),
    "out_wrong_tree": (lambda m: m.vmap(pair, 0, (0,)), (X,)),
    "keyword_size": (lambda m: lambda x, s: m.vmap(scaled)(x, scale=s), (X, S[:2])),
    "missing_argument": (lambda m: m.vmap(add), (X,)),
}


def same(got, want):
    if isinstance(want, dict):
        assert set(got) == set(want)
        for k in want:
            same(got[k], want[k])
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif want is None:
        assert got is None
    else:
        want = np.asarray(want)
        assert np.shape(got) == want.shape
        assert np.asarray(got).dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    make, args = CALLS[name]
    try:
        want = make(jax)(*args)
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):        # ours are TransformErrors that are one of these
            make(gs)(*args)
        return
    same(make(gs)(*args), want)


def test_the_count():
    assert len(CALLS) >= 60
