# SPDX-License-Identifier: Apache-2.0
"""The rows of the checklist from the last document: loops, branches, recursion, closures, and autograd's examples."""
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import gradscribe as gs

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def looped(x):
    y = 1.0
    for k in range(1, 5):
        y = y * x + k
    return y


def branched(x):
    if x > 1:
        return x ** 3
    elif x > 0:
        return np.sin(x)
    return -x


def recursive(x, n):
    if n == 0:
        return 1.0
    return x * recursive(np.sin(x), n - 1) + n


def descending(x):
    """Recursion whose depth depends on the value."""
    if x < 0.5:
        return x * x
    return x * descending(x / 2)


def power(n):
    def raised(x):
        return x ** n
    return raised


def composed(*functions):
    def of(x):
        for f in functions:
            x = f(x)
        return x
    return of


def closed(x):
    scale = np.cos(x)

    def inner(y):
        return scale * y * x
    return inner(x) + inner(2.0)


CASES = [(looped, 0.7), (branched, 1.5), (branched, 0.5), (branched, -0.5), (lambda x: recursive(x, 3), 0.8),
         (power(3), 1.3), (composed(np.sin, power(2), np.exp), 0.4), (closed, 0.9)]


def differences(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def same_derivatives(f, x, wrap):
    """Reverse and forward mode, and each of the other."""
    def forward(x):
        return gs.jvp(f, (x,), (1.0,))[1]
    first, second = gs.grad(f), gs.grad(gs.grad(f))
    assert wrap(f)(x) == pytest.approx(f(x), rel=1e-14)
    d, dd = differences(f, x, 1e-6), differences(lambda x: differences(f, x, 1e-3), x, 1e-3)
    assert wrap(first)(x) == pytest.approx(d, rel=1e-7, abs=1e-9)
    assert wrap(forward)(x) == pytest.approx(first(x), rel=1e-13)
    assert wrap(second)(x) == pytest.approx(dd, rel=1e-4, abs=1e-6)
    assert wrap(gs.grad(forward))(x) == pytest.approx(second(x), rel=1e-12, abs=1e-14)
    assert wrap(lambda x: gs.jvp(first, (x,), (1.0,))[1])(x) == pytest.approx(second(x), rel=1e-12, abs=1e-14)


@WRAPS
@pytest.mark.parametrize("f, x", CASES)
def test_s40_control_flow_and_closures(f, x, wrap):
    same_derivatives(f, x, wrap)


@WRAPS
def test_s40_recursion_to_a_depth_of_its_own(wrap):
    same_derivatives(descending, 3.3, wrap)


global_list = []


def log2(x):
    global_list.append(x)
    ln_x = np.log(x)
    ln_2 = np.log(2.0)
    return ln_x / ln_2


@pytest.mark.parametrize("wrap", [gs.jit, gs.value_and_grad])
def test_s41_side_effect(wrap):
    """Once a call, also compiled and beside a derivative, and to be read in the source."""
    global_list.clear()
    f = wrap(log2)
    for x in (8.0, 4.0):
        value = f(x)
        assert np.ravel(value)[0] == pytest.approx(math.log2(x), rel=1e-15)
    assert global_list == [8.0, 4.0]
    shown = "global_list.append" if wrap is gs.jit else "# side effect, once a call\n    global_list.append(x)"
    assert shown in f.source


def printing(x):
    print("log2 of", x)
    return np.log(x) / np.log(2.0)


@pytest.mark.compiled
def test_s41_prints_are_in_the_source(capsys):
    """A side effect that is done: on each call, before the value, where the source says."""
    df = gs.grad(printing)
    for x in (3.0, 5.0):
        assert df(x) == pytest.approx(1 / (x * math.log(2)), rel=1e-15)
        gs.jit(printing)(x)
    assert capsys.readouterr().out.splitlines() == [f"log2 of {x}" for x in (3.0, 3.0, 5.0, 5.0)]
    assert 'print("log2 of", x)' in df.source.replace("'", '"')


def tanh(x):                            # autograd's first example
    y = np.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


@WRAPS
def test_s42_tanh(wrap):
    grad_tanh = gs.grad(tanh)
    assert wrap(grad_tanh)(1.0) == pytest.approx(0.4199743416140261, rel=1e-14)
    assert grad_tanh(1.0) == pytest.approx((tanh(1.0001) - tanh(0.9999)) / 0.0002, rel=1e-8)


@WRAPS
def test_s42_six_derivatives_of_a_batch(wrap):
    """The pictures of tanh and its derivatives, elementwise over an axis of points."""
    x, d = np.linspace(-7, 7, 200), np.tanh
    values = []
    for _ in range(5):
        values.append(wrap(gs.vmap(d))(x))
        d = gs.grad(d)
    t = np.tanh(x)
    s = 1 - t * t
    for found, want in zip(values, [t, s, -2 * t * s, s * (4 - 6 * s), t * s * (24 * s - 8)]):
        np.testing.assert_allclose(found, want, atol=1e-12)


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2.) + 1)


def logistic_predictions(weights, inputs):
    return sigmoid(np.dot(inputs, weights))


def training_loss(weights, inputs, targets):
    preds = logistic_predictions(weights, inputs)
    label_probabilities = preds * targets + (1 - preds) * (1 - targets)
    return -np.sum(np.log(label_probabilities))


@WRAPS
def test_s42_logistic_regression(wrap):
    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
    targets = np.array([True, True, False, True])
    training_gradient_fun = wrap(gs.grad(training_loss))
    weights = np.zeros(3)
    assert training_loss(weights, inputs, targets) == pytest.approx(4 * np.log(2), rel=1e-15)
    by_hand = inputs.T @ (0.5 - targets)
    np.testing.assert_allclose(training_gradient_fun(weights, inputs, targets), by_hand, rtol=1e-14)
    for _ in range(100):
        weights -= training_gradient_fun(weights, inputs, targets) * 0.01
    assert training_loss(weights, inputs, targets) == pytest.approx(1.067270675787016, rel=1e-12)


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def test_s42_rosenbrock():
    """With an optimiser of another library, fed with the compiled value and gradient."""
    found = minimize(gs.jit(gs.value_and_grad(rosenbrock)), np.zeros(2), jac=True, method="CG")
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-4)


def project(vx, vy):
    """Projects a velocity to be nearly divergence-free, by Jacobi's iteration."""
    p, h = np.zeros(vx.shape), 1.0 / vx.shape[0]
    div = -0.5 * h * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0)
                      + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
    for _ in range(10):
        p = (div + np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0)
             + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)) / 4.0
    vx -= 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) / h
    vy -= 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)) / h
    return vx, vy


def advect(f, vx, vy):
    """Moves f with the velocities, by linear interpolation between cells."""
    rows, cols = f.shape
    cell_ys, cell_xs = np.meshgrid(np.arange(rows), np.arange(cols))
    center_xs = (cell_xs - vx).ravel()
    center_ys = (cell_ys - vy).ravel()
    left_ix = np.floor(center_xs).astype(int)
    top_ix = np.floor(center_ys).astype(int)
    rw = center_xs - left_ix
    bw = center_ys - top_ix
    left_ix = np.mod(left_ix, rows)
    right_ix = np.mod(left_ix + 1, rows)
    top_ix = np.mod(top_ix, cols)
    bot_ix = np.mod(top_ix + 1, cols)
    flat_f = (1 - rw) * ((1 - bw) * f[left_ix, top_ix] + bw * f[left_ix, bot_ix]) \
        + rw * ((1 - bw) * f[right_ix, top_ix] + bw * f[right_ix, bot_ix])
    return np.reshape(flat_f, (rows, cols))


def simulate(vx, vy, smoke, steps):
    for _ in range(steps):
        vx_updated = advect(vx, vx, vy)
        vy_updated = advect(vy, vx, vy)
        vx, vy = project(vx_updated, vy_updated)
        smoke = advect(smoke, vx, vy)
    return smoke


@WRAPS
def test_s42_fluid(wrap):
    """The start of a flow, such that smoke is where it should be: the gradient through solver and interpolation."""
    rng = np.random.default_rng(0)
    (vx, vy), (ux, uy) = 0.3 * rng.standard_normal((2, 6, 6)), rng.standard_normal((2, 6, 6))
    smoke, target = rng.random((2, 6, 6))

    def distance(vx, vy, smoke, target):
        return np.mean((simulate(vx, vy, smoke, 3) - target) ** 2)
    step = wrap(gs.value_and_grad(distance, argnums=(0, 1)))
    before, (dx, dy) = step(vx, vy, smoke, target)
    want = differences(lambda t: distance(vx + t * ux, vy + t * uy, smoke, target), 0.0, 1e-6)
    assert np.sum(dx * ux) + np.sum(dy * uy) == pytest.approx(want, rel=1e-6)
    for _ in range(30):
        value, (dx, dy) = step(vx, vy, smoke, target)
        vx, vy = vx - dx, vy - dy
    assert value < 0.8 * before


def step_rnn(params, x, h):
    return np.tanh(np.concatenate((x, h, np.ones(1))) @ params["change"])


def rnn_loss(params, text):
    h, total = params["start"], 0.0
    for k in range(len(text) - 1):
        h = step_rnn(params, np.eye(4)[text[k]], h)
        scores = np.concatenate((h, np.ones(1))) @ params["predict"]
        total -= scores[text[k + 1]] - np.log(np.sum(np.exp(scores)))
    return total / (len(text) - 1)


def test_s42_recurrent_network():
    """Letters that repeat are learnt by heart, by steps down the gradient of a dictionary of parameters."""
    rng, text = np.random.default_rng(0), np.array([0, 1, 2, 1, 3] * 6)
    params = {"start": np.zeros(8), "change": 0.3 * rng.standard_normal((13, 8)),
              "predict": 0.3 * rng.standard_normal((9, 4))}
    gs.testing.check_grads(lambda p: rnn_loss(p, text[:6]), (params,), order=1)
    step = gs.jit(gs.value_and_grad(rnn_loss))
    for _ in range(300):
        value, grads = step(params, text)
        params = {name: params[name] - 0.5 * grads[name] for name in params}
    assert value < 0.1


def gaussian_process(params, x, y):
    """Minus the log-likelihood under a kernel of squared exponentials."""
    scale, length, noise = np.exp(params)
    d = x[:, None] - x[None, :]
    k = scale * np.exp(-0.5 * (d / length) ** 2) + noise * np.eye(len(x))
    _, logdet = np.linalg.slogdet(k)
    return 0.5 * (y @ np.linalg.solve(k, y) + logdet + len(x) * np.log(2 * np.pi))


@pytest.mark.compiled
@WRAPS
def test_s42_gaussian_process(wrap):
    x = np.linspace(-2, 2, 12)
    y, params = np.sin(2 * x), np.log(np.array([1.0, 0.7, 0.05]))
    got = wrap(gs.grad(gaussian_process))(params, x, y)
    want = [differences(lambda t, e=e: gaussian_process(params + t * e, x, y), 0.0, 1e-5) for e in np.eye(3)]
    np.testing.assert_allclose(got, want, rtol=1e-7)
