"""vmap of programs: what is rewritten, what becomes a loop, what is refused; values against loops over examples."""
import numpy as np
import pytest

import gradscribe as gs

rng = np.random.default_rng(8)
X = rng.standard_normal((5, 3))
S = rng.standard_normal(5) * 2
W = rng.standard_normal((2, 3))


def rows(f, *columns):
    return np.stack([f(*row) for row in zip(*columns)])


def branch(r):
    if abs(r) < 1.0:
        return 0.5 * r * r
    return abs(r) - 0.5


def passes(r):
    n, x = 0, abs(r) + 1.0
    while x < 20.0:
        x = x * 1.5 + 1.0
        n += 1
    return x * n


def early(x):
    total = 0.0
    for v in x:
        if v > 0.8:
            return total
        total += v * v
    return total + 1.0


def count(n):
    total = 0.0
    for k in range(n):
        total = total + 1.0 / (k + 1.0)
    return total


def writes(x):
    y = np.zeros_like(x)
    for k in range(len(x)):
        y[k] = x[k] ** 2 + np.sum(y)
    y[0] += 1.0
    return y


def place(x, i):
    y = x.copy()
    y[i] = 2.0 * x[i - 1]
    return y


def unmapped_target(x):
    y = np.zeros(4)
    y[1] = x[0]
    y[2:] = x[1:]
    return y


def recursion(x, depth):
    if depth == 0:
        return x
    return recursion(np.sin(x) * x, depth - 1)


def carried(x):
    state = np.zeros(2)
    for v in x:
        state = np.tanh(W[:, :2] @ state + v)
    return state


def pair(x):
    return {"norm": np.sqrt(np.sum(x * x)), "both": (x[::-1], np.max(x))}


def masked(x):
    return np.sum(x[x > 0] ** 2)


def listed(x):
    out = []
    for v in x:
        out.append(v * 2.0)
    return np.array(out)


def kept(x):
    out = [v * v for v in x if v > 0]
    return sum(out) + len(out)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("f, column", [
    (branch, S), (passes, S), (early, X), (writes, X), (unmapped_target, X), (carried, X), (masked, X), (listed, X),
    (kept, X), (lambda x: recursion(x, 3), X), (lambda x: np.sort(x)[::-1], X), (lambda x: x.T @ x, X),
    (lambda x: np.outer(x, x) @ x, X), (lambda x: np.concatenate([x, np.ones(2)]), X),
    (lambda x: np.where(x > 0, x, 0.1 * x), X), (lambda x: x.reshape(3, 1) + x, X), (lambda x: x[None, ::2] * 2, X)])
def test_values(f, column, jit):
    wrap = gs.jit if jit else lambda g: g
    np.testing.assert_allclose(wrap(gs.vmap(f))(column), rows(f, column), rtol=1e-12)
    scalar = lambda x: np.sum(f(x) ** 2)                                # noqa: E731 (f differs)
    np.testing.assert_allclose(wrap(gs.vmap(gs.grad(scalar)))(column), rows(gs.grad(scalar), column), rtol=1e-12)
    whole = lambda c: np.sum(gs.vmap(f)(c) ** 2)                        # noqa: E731
    np.testing.assert_allclose(wrap(gs.grad(whole))(column), rows(gs.grad(scalar), column), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("f", [branch, passes])
def test_small_batches(f, n):
    out = gs.vmap(f)(S[:n])
    assert out.shape == (n,)
    np.testing.assert_allclose(out, [f(s) for s in S[:n]])


def test_integers_decide():
    n = np.array([3, 0, 5, 1])
    np.testing.assert_allclose(gs.vmap(count)(n), [count(k) for k in n])
    i = np.array([2, 0, 1, 1, 2])
    np.testing.assert_allclose(gs.vmap(place)(X, i), rows(place, X, i))


def test_what_is_the_same_for_all_is_computed_once():
    f = gs.vmap(lambda W, x: np.linalg.inv(W @ W.T) @ W @ x, (None, 0))
    np.testing.assert_allclose(f(W, X), X @ (np.linalg.inv(W @ W.T) @ W).T)
    assert "np.linalg.inv(W @ W.T)" in f.source


def test_a_loop_says_why():
    f = gs.vmap(branch)
    f(S)
    assert "# one example at a time: each takes its own branch" in f.source
    g = gs.vmap(lambda x: x * 2.0, strategy="loop")
    np.testing.assert_array_equal(g(X), X * 2)
    assert "strategy='loop'" in g.source


def test_rewriting_alone_is_refused_where_a_loop_is_needed():
    with pytest.raises(gs.TransformError, match="each takes its own branch"):
        gs.vmap(branch, strategy="rewrite")(S)
    np.testing.assert_array_equal(gs.vmap(lambda x: x * 2.0, strategy="rewrite")(X), X * 2)


def test_results_of_any_structure():
    out = gs.vmap(pair)(X)
    np.testing.assert_allclose(out["norm"], np.linalg.norm(X, axis=1))
    np.testing.assert_allclose(out["both"][0], X[:, ::-1])
    np.testing.assert_allclose(out["both"][1], X.max(axis=1))


def test_arguments_stay():
    x = X.copy()
    gs.vmap(writes)(x)
    gs.vmap(place, (0, None))(x, 1)
    np.testing.assert_array_equal(x, X)


def test_unmapped_results_do_not_share_memory():
    out = gs.vmap(lambda x, w: w, (0, None))(X, np.ones(2))
    out[0] = 5.0
    np.testing.assert_array_equal(out[1:], np.ones((4, 2)))


def test_precision_stays():
    x = X.astype(np.float32)
    for f in (lambda x: x * 2.0, lambda x: np.sum(x) / 2, lambda x: np.tanh(x) @ np.float32(W).T,
              lambda x: np.zeros(3, np.float32) + x):
        assert gs.vmap(f)(x).dtype == np.float32
    assert gs.vmap(branch)(S.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("make, args, reason", [
    (lambda: gs.vmap(lambda x, y: x + y), (X, S[:4]), "different lengths: 5 in x, float64[5, 3]; 4 in y"),
    (lambda: gs.vmap(lambda x, y: x + y, (0, 1)), (X, S), "in_axes maps axis 1 of y, which is float64[5]"),
    (lambda: gs.vmap(lambda x: x), (2.0,), "in_axes maps axis 0 of x, which is a float"),
    (lambda: gs.vmap(lambda x, y: x, (0,)), (X, X), "in_axes has 1 entry, and 2 positional arguments"),
    (lambda: gs.vmap(lambda x: x, None), (X,), "vmap maps no argument"),
    (lambda: gs.vmap(lambda x: x, axis_size=4), (X,), "axis_size is 4, and the mapped axis of x"),
    (lambda: gs.vmap(lambda p: p["a"], ({"b": 0},)), ({"a": X},), "in_axes for p is {'b': 0}, and p is a dict of a"),
    (lambda: gs.vmap(lambda x: x, 0, None), (X,), "out_axes is None for a result that differs"),
    (lambda: gs.vmap(lambda x: x, 0, 2), (X,), "out_axes is 2, and the result of one example is float64[3]"),
    (lambda: gs.vmap(lambda x: (x, x), 0, (0, 0, 0)), (X,), "out_axes is (0, 0, 0), and the result is a tuple of 2"),
    (lambda: gs.vmap(lambda x: x, "0"), (X,), "in_axes for x is '0'"),
    (lambda: gs.vmap(lambda x: x, strategy="fast"), (X,), "strategy must be 'auto', 'loop' or 'rewrite'"),
])
def test_axes_that_do_not_fit(make, args, reason):
    with pytest.raises(gs.TransformError) as error:
        make()(*args)
    assert reason in str(error.value)


def drawn(x, rng):
    a = x + rng.normal()
    return a * rng.uniform(size=2)


def test_each_example_draws_its_own_numbers():
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    np.testing.assert_array_equal(gs.vmap(drawn, (0, None))(S, one), np.stack([drawn(s, other) for s in S]))
    assert one.bit_generator.state == other.bit_generator.state
    g = lambda x, rng: np.sum(x * rng.normal(size=3))               # noqa: E731 (short)
    got = gs.vmap(gs.grad(g), (0, None))(X, one)
    np.testing.assert_array_equal(got, np.stack([gs.grad(g)(row, other) for row in X]))


def test_what_is_told_is_told_for_each_example(capsys):
    def f(x):
        y = x * 2
        print("y", y)
        return y
    gs.vmap(f)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "y 2.0\ny 4.0\n"


def doubles_what_is_large(a, s):
    a[np.abs(a) > 0.4] *= 2.0
    s /= 2.0
    return s + np.sum(a)


def grows(a):
    n = 0
    while np.abs(a[0]) < 10.0:
        a[0] *= 2.0
        n += 1
    return n + a[0]


def set_in_place(a, i):
    a[i] = 5.0
    return a[0] + a[1]


@pytest.mark.parametrize("f, args, axes", [
    (doubles_what_is_large, (X, S), 0), (doubles_what_is_large, (X.T.copy(), S), (1, 0)),
    (doubles_what_is_large, (X[0].copy(), S), (None, 0)), (grows, (X,), 0),
    (set_in_place, (X[0].copy(), np.array([0, 1, 2])), (None, 0)), (set_in_place, (X, 1), (0, None))])
@pytest.mark.parametrize("strategy", ["auto", "loop"])
@pytest.mark.parametrize("wrap", [lambda f: f, pytest.param(gs.jit, marks=pytest.mark.slow)], ids=["plain", "jit"])
def test_arguments_stay_as_they_are(f, args, axes, strategy, wrap):
    """Each example writes into what is its own, also where the loop calls the function."""
    before = [np.copy(a) for a in args]
    axes_ = axes if isinstance(axes, tuple) else (axes,) * len(args)
    n = next(np.shape(a)[k] for a, k in zip(args, axes_) if k is not None)
    want = [f(*(np.copy(a) if k is None else np.take(a, b, axis=k) for a, k in zip(args, axes_))) for b in range(n)]
    np.testing.assert_allclose(wrap(gs.vmap(f, axes, strategy=strategy))(*args), want, rtol=1e-14)
    for a, b in zip(args, before):
        np.testing.assert_array_equal(a, b)


def last_layer(params, x):
    for layer in params[:-1]:
        x = np.tanh(layer * x)
    return params[-1] * x + params[-2]


def test_containers_from_their_end():
    params = [rng.standard_normal(5) for _ in range(3)]
    x = rng.standard_normal(5)
    want = [last_layer([p[b] for p in params], x[b]) for b in range(5)]
    np.testing.assert_allclose(gs.vmap(last_layer)(params, x), want, rtol=1e-14)
    np.testing.assert_allclose(gs.vmap(last_layer, ([0, 0, 0], 0))(params, x), want, rtol=1e-14)
