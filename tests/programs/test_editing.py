"""with gs.insert_grad_of(x) as dx: what its body leaves in dx goes on backward."""
import sys

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.5, 2.0, 3.0])


def clipped(x):
    y = x * x
    with gs.insert_grad_of(y) as dy:
        dy = np.clip(dy, -1.0, 1.0)
    return np.sum(100.0 * y)


def scaled_in_a_loop(x, n):
    h = x
    for k in range(n):
        h = np.tanh(h * 1.1)
        with gs.insert_grad_of(h) as dh:
            norm = np.sqrt(np.sum(dh * dh))
            if norm > 0.1:
                dh = dh / norm * (k + 1)
    return np.sum(h * h)


def by_hand(x, n):
    states = [x]
    for _ in range(n):
        states.append(np.tanh(states[-1] * 1.1))
    dh = 2 * states[-1]
    for k in reversed(range(n)):
        norm = np.sqrt(np.sum(dh * dh))
        if norm > 0.1:
            dh = dh / norm * (k + 1)
        dh = 1.1 * dh * (1 - states[k + 1] ** 2)
    return dh


def test_clipping():
    assert clipped(X) == np.sum(100 * X * X)
    np.testing.assert_array_equal(gs.grad(clipped)(X), 2 * X)
    value, gradient = gs.value_and_grad(clipped)(X)
    assert value == clipped(X)
    np.testing.assert_array_equal(gradient, 2 * X)


def test_in_a_loop():
    for n in (0, 1, 4):
        np.testing.assert_allclose(gs.grad(scaled_in_a_loop)(X, n), by_hand(X, n), rtol=1e-14)


@pytest.mark.slow
def test_compiled():
    np.testing.assert_array_equal(gs.jit(gs.grad(clipped))(X), 2 * X)
    np.testing.assert_allclose(gs.jit(gs.grad(scaled_in_a_loop))(X, 4), by_hand(X, 4), rtol=1e-12)
    assert gs.jit(clipped)(X) == clipped(X)


def test_forward_mode_passes_it_by():
    value, tangent = gs.jvp(clipped, (X,), (np.ones(3),))
    assert value == clipped(X)
    np.testing.assert_allclose(tangent, np.sum(200 * X))


def test_the_body_sees_the_function_and_runs_once(capsys):
    def f(x, scale):
        y = np.sin(x)
        z = y * 2
        with gs.insert_grad_of(y) as dy:
            print("adjoint", dy)
            dy = dy * scale + z
        return np.sum(z * z)

    got = gs.grad(f)(X, 3.0)
    assert capsys.readouterr().out.count("adjoint") == 1
    y = np.sin(X)
    # y is not read after the place, so that dy is zero there; what z contributes comes before it in the function
    np.testing.assert_allclose(got, (0 * 3.0 + 2 * y + 8 * y) * np.cos(X))
    f(X, 3.0)
    assert capsys.readouterr().out == ""


def test_assertions_stop_the_backward_sweep():
    def f(x):
        y = np.log(x)
        with gs.insert_grad_of(y) as dy:
            assert np.all(dy < 1.0), "too steep"
        return np.sum(2.0 * y)

    f(X)
    with pytest.raises(AssertionError, match="too steep"):
        gs.grad(f)(X)


def test_other_names_of_the_value():
    def f(x):
        y = x * 1.0
        same = y
        with gs.insert_grad_of(y) as dy:
            dy = dy * 10.0
        return np.sum(same * y)

    np.testing.assert_allclose(gs.grad(f)(X), 20 * X)


def test_scalars_and_broadcasting():
    def f(x):
        s = x * x
        with gs.insert_grad_of(s) as ds:
            ds = ds * 0.0 + 2.0
        return 5.0 * s

    assert gs.grad(f)(3.0) == 12.0


def test_tracing_is_left_as_it_was():
    assert sys.gettrace() is None
    clipped(X)
    assert sys.gettrace() is None
    frames = []
    sys.settrace(lambda frame, event, arg: frames.append(frame.f_code.co_name))
    try:
        clipped(X)
    finally:
        sys.settrace(None)
    assert "clipped" in frames


def test_the_emitted_source():
    source = gs.grad(scaled_in_a_loop).source_for(X, 2)
    assert "# with gs.insert_grad_of(h) as dh:" in source
    assert "insert_grad_of(" not in source.replace("# with gs.insert_grad_of(h) as dh:", "")
