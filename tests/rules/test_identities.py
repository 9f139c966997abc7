"""The table of identities: each line is true, and stands for emitted source and for compiled code alike."""
import ast

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.rules.identities import IDENTITIES, bindings, read, size, written

DTYPES = {"": "int64 float32 float64 complex64 complex128", "floats": "float32 float64 complex64 complex128",
          "matrices": "float64 complex128"}
CASES = [pytest.param(i, d, id=f"{i.text}-{d}") for i in IDENTITIES for d in DTYPES[i.words].split()]


def names_of(part):
    return {part} if isinstance(part, str) else set().union(*map(names_of, getattr(part, "args", ())))


def drawn(rng, dtype, words):
    """A matrix of random numbers, some of them special; one with an inverse for linear algebra."""
    made = rng.normal(size=(4, 4)) * 10
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.normal(size=(4, 4))
    if np.dtype(dtype).kind == "f" and words != "matrices":
        made[0] = [0.0, np.inf, 1e-300, -1e300]
    with np.errstate(all="ignore"):
        return made.astype(dtype)


@pytest.mark.parametrize("identity, dtype", CASES)
def test_true(identity, dtype):
    rng = np.random.default_rng(len(identity.text))
    bound = {n: drawn(rng, dtype, identity.words) for n in names_of(identity.left)}
    with np.errstate(all="ignore"):
        left, right = (written(side, bound, lambda f, *args: f(*args)) for side in (identity.left, identity.right))
    assert left.dtype == right.dtype and left.shape == right.shape
    if identity.words == "matrices":
        np.testing.assert_allclose(left, right, rtol=1e-9)
    else:
        np.testing.assert_array_equal(left, right)


def test_matched():
    """A name stands for one operand, wherever it is."""
    identity = read("(-a) * (-a) = a * a")

    def taken_apart(node, function):
        return node[1:] if isinstance(node, tuple) and node[0] is function else None
    mul, neg = identity.left.function, identity.left.args[0].function
    assert bindings(identity.left, (mul, (neg, "x"), (neg, "x")), taken_apart, {}, lambda a, b: a == b) == {"a": "x"}
    assert bindings(identity.left, (mul, (neg, "x"), (neg, "y")), taken_apart, {}, lambda a, b: a == b) is None
    assert size(identity.left) == 3 and size(identity.right) == 1


def weighted(x, w):
    return np.sum(-np.cos(x) * w)


def product_of_negations(x, w):
    t = -x
    return -np.exp(x) * -w + t


X, W = np.array([0.5, 2.0]), np.array([3.0, -1.0])


def test_two_signs():
    """(-a) * (-b) is a * b: of generated lines in source, of all lines in compiled code."""
    source = gs.grad(weighted).source_for(X, W)
    assert "w * np.sin(x)" in source and "-" not in source.partition("return")[2]
    made = gs.jit(product_of_negations)
    np.testing.assert_array_equal(made(X, W), product_of_negations(X, W))
    assert "exp(x[0]) * w[0] + " in made.lowered


def test_one_line_is_enough():
    """A line that is added here serves both."""
    def length(x):
        return np.sum(np.cosh(np.arcsinh(x)))

    def same(x):
        return np.sinh(np.arcsinh(x))
    IDENTITIES.append(read("np.sinh(np.arcsinh(a)) = a  for floats"))
    try:
        made, source = gs.jit(same), gs.grad(length).source_for(X)
        assert np.allclose(made(X), X)
        assert "sinh" not in made.lowered
        assert "sinh(" not in source.replace("arcsinh(", ""), source
    finally:
        IDENTITIES.pop()


def test_every_line_is_python():
    for identity in IDENTITIES:
        left, right = identity.text.split(" = ")
        ast.parse(left), ast.parse(right)
