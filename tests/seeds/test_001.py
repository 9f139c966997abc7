# SPDX-License-Identifier: Apache-2.0
"""The rows of the checklist that the document on compilation by tracing asks for."""
import fusion
import numpy as np
import pytest

import gradscribe as gs
from gradscribe import lax, nn

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def square(x):
    return x ** 2


def sum_of_squares(x):
    return np.sum(x ** 2)


@WRAPS
def test_s11_square(wrap):
    assert wrap(gs.grad(square))(3.0) == 6.0
    batch = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    squared = wrap(gs.vmap(square))(batch)
    np.testing.assert_array_equal(squared, [[1, 4, 9], [16, 25, 36], [49, 64, 81]])
    assert squared.dtype == batch.dtype
    total = wrap(sum_of_squares)(np.arange(10))
    assert total == 285 and np.result_type(total) == np.int64


def func1(first, second):
    temp = first + np.sin(second) * 3.
    return np.sum(temp)


def test_s12_typed_normal_form():
    assert str(gs.make_ir(func1)(np.zeros(8), np.ones(8))) == """\
func1(first: float64[first.shape[0]], second: float64[first.shape[0]]):
    sin_second: float64[first.shape[0]] = np.sin(second)
    z: float64[first.shape[0]] = sin_second * 3.0
    temp: float64[first.shape[0]] = first + z
    sum_temp: float64 = np.sum(temp)
    return sum_temp"""


def func7(arg):
    return lax.cond(arg >= 0., lambda xtrue: xtrue + 3., lambda xfalse: xfalse - 3., arg)


def halvings(x):
    return lax.while_loop(lambda c: c[0] > 1.0, lambda c: (c[0] / 2, c[1] + 1), (x, 0))


def sums(xs):
    return lax.scan(lambda total, x: (total + x, total), 0.0, xs)


def func10(arg, n):
    return lax.fori_loop(0, n, lambda i, v: v + arg * 3.0, np.ones(8))


@pytest.mark.parametrize("f, args, parts", [
    (func7, (5.0,), ["t: bool = ", "if t:", "t_1: float = arg + 3.0", "t_2: float = arg - 3.0", "join result = "]),
    (halvings, (9.0,), ["enter val: float = x", "while:", "t_1: float = val / 2", "return (val_2, val_3)"]),
    (sums, (np.ones(3),), ["for k in range(n):", "xs_1: float64 = xs[k]", "ys: float64[xs.shape[0]] = "]),
    (func10, (2.0, 5), ["func10(arg: float, n: int):", "for i in range(n):", "next val_1 = val_2"]),
    (gs.vmap(gs.grad(func7)), (np.ones(3),), ["vmap_grad_func7(arg: float64[arg.shape[0]]):"])],
    ids=["cond", "while", "scan", "fori", "vmap"])
def test_s12_of_functions_with_functions(f, args, parts):
    text = str(gs.make_ir(f)(*args))
    for part in parts:
        assert part in text


def func12(arg):
    @gs.jit
    def inner(x):
        return x + arg * np.ones(1)     # Include a constant in the inner function
    return arg + inner(arg - 2.)


def test_s12_compiled_inside():
    assert func12(1.0) == [1.0]
    assert "np.ones(1)" in str(gs.make_ir(func12)(1.0))
    assert gs.jit(func12)(1.0) == [1.0]


@gs.jit
def compiled_inner(x, arg):
    return x + arg * np.ones(1)


def func12_outside(arg):
    return arg + compiled_inner(arg - 2., arg)


def test_s12_compiled_outside():
    assert "np.ones(1)" in str(gs.make_ir(func12_outside)(1.0))
    assert func12_outside(1.0) == gs.jit(func12_outside)(1.0) == [1.0]


def func2(inner, first, second):
    temp = first + inner(second) * 3.
    return np.sum(temp)


def inner(second):
    if second.shape[0] > 4:
        return np.sin(second)
    else:
        assert False  # noqa: B011  as it is there


def inner_raising(second):
    if second.shape[0] > 4:
        return np.sin(second)
    raise AssertionError


def func3(first, second):
    return func2(inner, first, second)


def func3_raising(first, second):
    return func2(inner_raising, first, second)


def by_length(arg):
    return np.sin(arg) if arg.shape[0] > 4 else np.cos(arg)


@WRAPS
@pytest.mark.parametrize("f", [func3, func3_raising])
def test_s13_functions_as_arguments(f, wrap):
    x = np.linspace(0.0, 1.0, 8)
    assert wrap(f)(x, x) == pytest.approx(np.sum(x + 3 * np.sin(x)), rel=1e-14)
    np.testing.assert_allclose(wrap(gs.grad(f, argnums=1))(x, x), 3 * np.cos(x), rtol=1e-14)
    np.testing.assert_allclose(wrap(gs.grad(lambda g, x: func2(g, x, x), argnums=1))(np.sin, x), 1 + 3 * np.cos(x),
                               rtol=1e-14)


@WRAPS
@pytest.mark.parametrize("f", [func3, func3_raising])
def test_s13_assertion_that_fails(f, wrap):
    with pytest.raises(AssertionError):
        wrap(gs.grad(f))(np.ones(4), np.ones(4))


@WRAPS
def test_s13_branch_on_a_length(wrap):
    x = np.linspace(0.0, 1.0, 8)
    df = wrap(gs.grad(lambda x: np.sum(by_length(x))))
    for _ in range(2):
        np.testing.assert_allclose(df(x), np.cos(x), rtol=1e-14)
        np.testing.assert_allclose(df(x[:3]), -np.sin(x[:3]), rtol=1e-14)


def loop(x, n):
    for i in range(n):
        x = x * np.sin(x + i)
    return x


def loop_lax(x, n):
    return lax.fori_loop(0, n, lambda i, x: x * np.sin(x + i), x)


def halved(x):
    total = 0.0
    while abs(x) > 0.1:
        total += x * x
        x = x / 2
    return total


def halved_lax(x):
    def body(c):
        x, total = c
        return x / 2, total + x * x
    return lax.while_loop(lambda c: abs(c[0]) > 0.1, body, (x, 0.0))[1]


def branch(x):
    if x > 0:
        return np.exp(x)
    return x * x


def branch_lax(x):
    return lax.cond(x > 0, lambda x: np.exp(x), lambda x: x * x, x)


def recurrence(x):
    h, ys = 0.0, np.zeros(4)
    for k in range(4):
        h = np.tanh(x * h + k)
        ys[k] = h * h
    return np.sum(ys)


def recurrence_lax(x):
    def step(h, k):
        h = np.tanh(x * h + k)
        return h, h * h
    return np.sum(lax.scan(step, 0.0, np.arange(4.0))[1])


@WRAPS
@pytest.mark.parametrize("plain, functional, args",
                         [(loop, loop_lax, (0.7, 5)), (halved, halved_lax, (3.0,)), (branch, branch_lax, (0.4,)),
                          (branch, branch_lax, (-0.4,)), (recurrence, recurrence_lax, (0.6,))])
def test_s14_control_flow(plain, functional, args, wrap):
    """The function's form and Python's own: one value, one derivative, in both modes, twice."""
    x, rest = args[0], args[1:]
    value = plain(x, *rest)
    for f in (plain, functional):
        def of_x(x, f=f):
            return f(x, *rest)
        assert wrap(f)(*args) == pytest.approx(value, rel=1e-15)
        d = (plain(x + 1e-5, *rest) - plain(x - 1e-5, *rest)) / 2e-5
        assert wrap(gs.grad(f))(*args) == pytest.approx(d, rel=1e-8)
        assert wrap(gs.grad(f))(*args) == pytest.approx(gs.jvp(of_x, (x,), (1.0,))[1], rel=1e-13)
        assert wrap(gs.grad(gs.grad(f)))(*args) == pytest.approx(gs.grad(gs.grad(plain))(*args), rel=1e-12)
    np.testing.assert_allclose(wrap(gs.vmap(gs.grad(lambda x: functional(x, *rest))))(np.array([x, x / 2])),
                               [gs.grad(plain)(x, *rest), gs.grad(plain)(x / 2, *rest)], rtol=1e-13)


def predict(params, inputs):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs


def loss(params, batch):
    inputs, targets = batch
    preds = predict(params, inputs)
    return np.sum((preds - targets) ** 2)


def gradient_by_hand(params, batch):
    inputs, targets = batch
    hidden = [inputs]
    for W, b in params[:-1]:
        hidden.append(np.tanh(hidden[-1] @ W + b))
    W, b = params[-1]
    d, grads = 2 * (hidden[-1] @ W + b - targets), []
    for (W, _), h in zip(params[::-1], hidden[::-1]):
        grads.insert(0, (np.outer(h, d) if h.ndim == 1 else h.T @ d, d if h.ndim == 1 else d.sum(0)))
        d = d @ W.T * (1 - h * h)
    return grads


STEP = 0.02


def updated(params, batch):
    grads = gs.grad(loss)(params, batch)
    return [(w - STEP * dw, b - STEP * db) for (w, b), (dw, db) in zip(params, grads)]


def network():
    rng = np.random.default_rng(7)
    params = [(rng.standard_normal((m, n)) / m, np.zeros(n)) for m, n in [(3, 5), (5, 4), (4, 2)]]
    return params, (rng.standard_normal((6, 3)), rng.standard_normal((6, 2)))


def same_trees(found, expected, rtol=1e-12):
    ours, theirs = gs.tree_util.tree_flatten(found), gs.tree_util.tree_flatten(expected)
    assert ours[1] == theirs[1]
    for a, b in zip(ours[0], theirs[0]):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


@WRAPS
def test_s15_mlp(wrap):
    params, batch = network()
    gradient_fun = wrap(gs.grad(loss))
    same_trees(gradient_fun(params, batch), gradient_by_hand(params, batch))
    perexample_grads = wrap(gs.vmap(gs.grad(loss), in_axes=(None, 0)))
    each = [gradient_by_hand(params, (x, y)) for x, y in zip(*batch)]
    same_trees(perexample_grads(params, batch), gs.tree_util.tree_map(lambda *rows: np.stack(rows), *each))


@WRAPS
def test_s15_update(wrap):
    """Steps by a comprehension over parameters and gradients, the whole of it compiled."""
    params, batch = network()
    step = wrap(updated)
    same_trees(step(params, batch), [(w - STEP * dw, b - STEP * db)
                                     for (w, b), (dw, db) in zip(params, gradient_by_hand(params, batch))])
    before = loss(params, batch)
    for _ in range(100):
        params = step(params, batch)
    assert loss(params, batch) < 0.3 * before


@pytest.mark.parametrize("kind, apart, joined", [("instruction", (5, 4), (2, 1)), ("merger", (4, 2), (4, 1)),
                                                 ("sibling", (4, 0), (2, 0)), ("producer-consumer", (3, 1), (2, 1))])
def test_s16_kinds_of_fusion(kind, apart, joined):
    """Arrays read and written from end to end, without and with loops joined; the same values."""
    rng = np.random.default_rng(0)
    args = rng.uniform(0.5, 1.5, 100), rng.uniform(0.5, 1.5, 100)
    function = fusion.KINDS[kind]
    found = fusion.compiled(function, args)
    assert [fusion.sweeps(f.lowered) for f in reversed(found)] == [apart, joined]
    want = function(*args)
    for f in found:
        for value, expected in zip(results(f(*args)), results(want), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-14)


def results(found):
    return found if isinstance(found, tuple) else (found,)


def newton(fun, maxcg=100):
    return lambda x, *args: gs.optim.newton_cg(fun, x, args, maxiter=40, gtol=1e-8, maxcg=maxcg)


def solved(fun, x, args):
    """The whole solver compiled finds what it finds in Python, and the gradient there is nothing."""
    found = gs.jit(newton(fun))(x, *args)
    plain = newton(fun)(x, *args)
    assert found.success and plain.success and found.nit == plain.nit
    np.testing.assert_allclose(found.x, plain.x, rtol=1e-6, atol=1e-8)
    assert np.linalg.norm(gs.grad(fun)(found.x, *args)) < 1e-7
    return found


def quadratic(x, a, b):
    return 0.5 * np.dot(x, np.dot(a, x)) - np.dot(b, x)


def test_s17_convex_quadratic():
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    a, b = (q * np.logspace(0, 2, 40)) @ q.T, rng.normal(size=40)
    np.testing.assert_allclose(solved(quadratic, np.zeros(40), (a, b)).x, np.linalg.solve(a, b), rtol=1e-6, atol=1e-8)


def markov(x, seen, k, v):
    """Minus the mean log-likelihood of a chain of hidden states, with a prior."""
    start, moves = gs.nn.softmax(x[:k]), gs.nn.softmax(x[k:k + k * k].reshape(k, k))
    emits = gs.nn.softmax(x[k + k * k:].reshape(k, v))
    alpha, total = start * emits[:, seen[0]], 0.0
    for t in range(1, len(seen)):
        c = np.sum(alpha)
        total += np.log(c)
        alpha = (alpha / c @ moves) * emits[:, seen[t]]
    return -(total + np.log(np.sum(alpha))) / len(seen) + 0.002 * np.dot(x, x)


@pytest.mark.slow
def test_s17_hidden_markov_model():
    rng = np.random.default_rng(1)
    seen = (np.arange(40) // 4 + (rng.random(40) < 0.1)) % 2
    x = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.5])

    def fun(x, seen):
        return markov(x, seen, 2, 2)
    found = solved(fun, x, (seen,))
    assert found.fun < fun(x, seen) - 0.03
    moves = gs.nn.softmax(found.x[2:6].reshape(2, 2))
    assert moves[0, 0] > 0.5 and moves[1, 1] > 0.5      # states stay, as they were drawn


def logistic(w, x, y):
    return np.mean(np.logaddexp(0.0, -y * np.dot(x, w))) + 5e-3 * np.dot(w, w)


def test_s17_logistic_regression():
    rng = np.random.default_rng(2)
    x, true = rng.normal(size=(300, 6)), rng.normal(size=6)
    y = np.where(x @ true + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    w = solved(logistic, np.zeros(6), (x, y)).x
    by_hand = -x.T @ (y / (1 + np.exp(y * (x @ w)))) / 300 + 0.01 * w
    np.testing.assert_allclose(by_hand, 0.0, atol=1e-8)
    assert np.mean(np.sign(x @ w) == y) > 0.9


def all_convolutional(channels, classes):
    """Convolutions and rectifiers alone; strides in place of pooling, a mean over places at the end."""
    init, apply = nn.serial(nn.Conv(channels, (3, 3), padding="SAME"), nn.Relu,
                            nn.Conv(channels, (3, 3), (2, 2), padding="SAME"), nn.Relu,
                            nn.Conv(classes, (1, 1)))
    return init, lambda params, images: np.mean(apply(params, images), axis=(1, 2))


@pytest.mark.slow
def test_s18_step_of_an_all_convolutional_network():
    init, network = all_convolutional(6, 4)
    shape, params = init(gs.random.PRNGKey(0), (-1, 8, 8, 3))
    assert shape == (-1, 4, 4, 4)
    rng = np.random.default_rng(3)
    labels = np.arange(16) % 4
    images = rng.standard_normal((16, 8, 8, 3)) * 0.3
    images[np.arange(16), labels * 2] += 3.0            # a bright row says what it is

    def loss(params, images, labels):
        return np.mean(nn.softmax_cross_entropy_with_integer_labels(network(params, images), labels))

    def update(params, images, labels):
        value, grads = gs.value_and_grad(loss)(params, images, labels)
        return gs.tree_util.tree_map(lambda p, g: p - 0.3 * g, params, grads), value
    gs.testing.check_grads(lambda p: loss(p, images[:2], labels[:2]), (params,), order=1)
    step = gs.jit(update)
    same_trees(step(params, images, labels), update(params, images, labels), rtol=1e-9)
    values = []
    for _ in range(60):
        params, value = step(params, images, labels)
        values.append(value)
    assert values[-1] < 0.7 * values[0]
