"""scipy.spatial.distance in programs: values are SciPy's, derivatives those of differences and of formulas."""
import numpy as np
import pytest
from jit import support
from rule_calls import call_of
from scipy.spatial import distance

import gradscribe as gs

A, B = np.array([[0.2, 1.5], [-0.7, 0.4], [1.1, -0.3]]), np.array([[0.9, 0.1], [-1.2, 2.0], [0.3, 0.8], [2.2, -0.6]])
METRICS = [("euclidean", {}), ("sqeuclidean", {}), ("cityblock", {}), ("chebyshev", {}), ("cosine", {}),
           ("minkowski", {}), ("minkowski", {"p": 3}), ("minkowski", {"p": 1}), ("minkowski", {"p": 1.5}),
           ("minkowski", {"p": np.inf}), ("euclidean", {"w": np.array([0.5, 2.0])}),
           ("minkowski", {"p": 3, "w": np.array([0.5, 2.0])})]
NAMED = [pytest.param(m, w, id=f"{m}-{'-'.join(w)}-{w.get('p', 2)}") for m, w in METRICS]


def as_read(function, *args):
    return gs.vmap(function, (None,) * len(args), None, axis_size=1)(*args)


def differences(function, args, k, e):
    def at(h):
        return function(*[a + h * e if j == k else a for j, a in enumerate(args)])
    return (8 * (at(1e-3) - at(-1e-3)) - at(2e-3) + at(-2e-3)) / 12e-3


def check(function, *args):
    wanted = function(*args)
    for given in (args, [a.astype(np.float32) for a in args], [np.round(3 * a).astype(int) for a in args]):
        got, expected = as_read(function, *given), function(*given)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-6 if given is not args else 1e-12, atol=1e-7)
    dy = np.random.default_rng(1).normal(size=wanted.shape)
    adjoints = gs.vjp(function, *args)[1](dy)
    for k, (x, dx) in enumerate(zip(args, adjoints)):
        e = np.random.default_rng(2 + k).normal(size=x.shape)
        slope = differences(function, args, k, e)
        np.testing.assert_allclose(np.sum(dx * e), np.sum(dy * slope), rtol=1e-8, atol=1e-10)
        dots = [e if j == k else np.zeros_like(a) for j, a in enumerate(args)]
        np.testing.assert_allclose(gs.jvp(function, args, tuple(dots))[1], slope, rtol=1e-7, atol=1e-10)
    rows = [np.stack([a, 1.5 * a]) for a in args]
    found = gs.vmap(function, strategy="rewrite")(*rows)
    np.testing.assert_allclose(found, [function(*[r[k] for r in rows]) for k in range(2)], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("metric, words", NAMED)
def test_two_sets(metric, words):
    check(lambda a, b: distance.cdist(a, b, metric, **words), A, B)


@pytest.mark.parametrize("metric, words", NAMED)
def test_one_set(metric, words):
    check(lambda a: distance.pdist(a, metric, **words), A)


@pytest.mark.parametrize("name, words", [(m, w) for m, w in METRICS if w.get("p") != np.inf])
def test_two_points(name, words):
    function = getattr(distance, name)
    single = A[0].astype(np.float32), B[0].astype(np.float32)
    for u, v in ((A[0], B[0]), single, (np.array([1, 2]), np.array([4, 7]))):
        got, wanted = as_read(lambda u, v: function(u, v, **words), u, v), function(u, v, **words)
        assert type(got) is type(wanted) or type(got) is float and isinstance(wanted, np.floating)     # SciPy 1.18
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    for k in range(2):
        e = np.array([0.6, -0.8])
        dx = gs.grad(lambda u, v: function(u, v, **words), argnums=k)(A[0], B[0])
        wanted = differences(lambda u, v: function(u, v, **words), (A[0], B[0]), k, e)
        np.testing.assert_allclose(np.sum(dx * e), wanted, rtol=1e-8)


def test_at_zero():
    """A point is nowhere but at itself, however it moves: the derivative is 0, as that of np.abs at 0, and no NaN."""
    for metric, words in METRICS:
        if metric != "cosine":
            with np.errstate(all="raise"):
                slope = gs.grad(lambda a, m=metric, w=words: np.sum(np.diag(distance.cdist(a, a, m, **w))))(A)
            assert np.array_equal(slope, np.zeros_like(A)), metric
    with np.errstate(all="raise"):
        assert gs.grad(lambda u: distance.euclidean(u, np.zeros(2)))(np.zeros(2)).tolist() == [0.0, 0.0]
    z = A[:, None] - A
    unit = z / np.where(np.eye(3), 1, distance.cdist(A, A))[..., None]
    np.testing.assert_allclose(gs.grad(lambda a: np.sum(distance.cdist(a, a)))(A), 2 * unit.sum(1), rtol=1e-13)


def test_sizes():
    for shape in ((0, 2), (1, 2)):
        check(lambda a: distance.cdist(a, B), np.ones(shape))
        assert as_read(lambda a: distance.pdist(a), np.ones(shape)).shape == (0,)


def test_squareform():
    v = np.array([0.5, 1.0, -2.0, 3.0, 0.25, 4.0])
    check(lambda v: distance.squareform(v), v)
    check(lambda v: distance.squareform(distance.squareform(v)), v)
    m = distance.squareform(v)
    assert as_read(lambda m: distance.squareform(m), m).tolist() == v.tolist()
    assert gs.grad(lambda m: np.sum(v * distance.squareform(m)))(m).tolist() == np.triu(m).tolist()
    assert as_read(lambda v: distance.squareform(v), np.ones(0)).tolist() == [[0.0]]
    with pytest.raises(ValueError):
        as_read(lambda v: distance.squareform(v), np.ones(4))


@pytest.mark.parametrize("name, args, words", [("cdist", (A, B), {}), ("pdist", (A,), {"metric": "cosine"}),
                                               ("squareform", (np.arange(6.0),), {}), ("euclidean", (A[0], B[0]), {})])
def test_compiled(name, args, words):
    function, given = call_of(getattr(distance, name), args, words)
    wanted = function(*given)
    assert not support.same(support.run(support.compiled(function, *given), *given), wanted)
    back = gs.vjp_of(function)
    made = support.transformed(back, wanted, *given)
    assert not support.same(support.run(made, wanted, *given), back(wanted, *given))


def test_refused():
    for call, reason in ((lambda a: distance.cdist(a, a, "hamming"), "'hamming' has no derivative rule"),
                         (lambda a: distance.cdist(a, a[0]), "arrays with 2 axes"),
                         (lambda a: distance.pdist(a, "cosine", w=np.ones(2)), "weights has no derivative rule")):
        with pytest.raises(gs.TransformError, match=reason):
            as_read(call, A)
