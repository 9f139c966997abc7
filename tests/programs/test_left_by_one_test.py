"""Loops that one test leaves: backwards the pass that leaves is the first one."""
import numpy as np
import pytest
from programs.checks import differences_by_entry

import gradscribe as gs


def value_between(x, c):
    h = 1.0
    while True:
        x = np.sin(x) * c
        if h + x > 3.0:
            return h * x
        h = h + x


def in_place(x, c):
    h = x * 1.0
    k = 0
    while True:
        h[k % 3] = h[k % 3] * c + np.sin(h[(k + 1) % 3])
        k += 1
        if np.sum(h) > 6.0:
            h[0] = h[0] * h[1]
            break
        h = h * 1.1
    return np.sum(h * x)


def in_a_branch(x, t):
    y = x
    while True:
        y = y * 1.3
        if y > 2:
            if y > 3:
                break
            y = y + np.sin(y)
    return y * t


def two_exits(x, t):
    y = x
    while True:
        y = y * 1.3
        if y > 8:
            return y * t
        z = np.sin(y)
        if z < -0.5:
            return z * t * y


def inside_a_loop(x, t):
    s = 0.0
    for k in range(3):
        y = x + k
        while True:
            y = y * t
            if y > 5:
                s = s + y * np.cos(y)
                break
            s = s + y
    return s


def inside_a_while(x, t):
    s = x
    while s < 30:
        y = s
        while True:
            y = y + t
            if y * y > 7:
                break
        s = s * y
    return s * s


def in_the_first_pass(x, t):
    while True:
        x = x * t
        if x > -1e9:
            return x ** 2
        x = np.exp(x)


def arm_in_front(x, t):
    n = 0
    while True:
        if n < 4:
            x = np.sin(x) * t
            n += 1
        else:
            x = x * x
            break
    return x


def nothing_after_it(x, t):
    while True:
        x = x * t + 0.1
        if x > 3:
            break
    return np.log(x)


def with_a_list(x, t):
    out = []
    y = x
    while True:
        y = np.sin(y) + t
        out.append(y * x)
        if len(out) > 3:
            return sum(out) * y
        y = y * 0.9


def eigenvector(x, t):
    A = np.outer(x, x) + np.eye(3)
    v = x
    n = 0
    while True:
        w = A @ v
        w = w / np.sqrt(np.sum(w * w))
        n += 1
        if np.sum((w - v) ** 2) < 1e-3 or n > 6:
            return w @ (A @ w) * t
        v = w


def branches_in_the_arm(x, t):
    n = 0
    while True:
        n += 1
        x = x * 1.1
        if n > 2:
            if x > 10 * t:
                x = x * 1.4 - 0.3
            elif x > t:
                x = x * np.sin(x)
            else:
                for _ in range(2):
                    x = x * x + t
            break
        x = x - 0.01 * t
    return x


X = np.array([0.4, 0.7, 1.1])
CASES = [(value_between, 0.5, 1.5), (in_place, X, 1.2), (in_a_branch, 0.5, 2.0), (two_exits, 0.5, 1.1),
         (two_exits, 1.9, 1.1), (inside_a_loop, 1.2, 1.4), (inside_a_while, 1.5, 0.8), (in_the_first_pass, 0.5, 1.1),
         (arm_in_front, 0.5, 1.4), (nothing_after_it, 0.5, 1.2), (with_a_list, 0.5, 0.3), (eigenvector, X, 1.3),
         (branches_in_the_arm, 0.5, 0.02), (branches_in_the_arm, 0.5, 0.3), (branches_in_the_arm, 0.5, 0.9)]


@pytest.mark.parametrize("f, x, t", CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_gradient(f, x, t):
    gradient = gs.grad(f, (0, 1))
    found = gradient(x, t)
    wanted = (differences_by_entry(lambda v: f(v if v.ndim else float(v), t), np.array(x)),
              differences_by_entry(lambda v: f(x, float(v)), np.array(t)))
    for d, other, near in zip(found, gs.jit(gradient)(x, t), wanted, strict=True):
        np.testing.assert_allclose(d, near, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(d, other, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gs.hessian(f)(x, t), gs.jacrev(gs.grad(f))(x, t), rtol=1e-10, atol=1e-10)
    many = np.stack([x, 1.02 * x, 0.97 * x])
    np.testing.assert_allclose(gs.vmap(gs.grad(f), in_axes=(0, None))(many, t), [gs.grad(f)(each, t) for each in many],
                               rtol=1e-13)


def test_nothing_is_saved_to_decide():
    """h is read by the test and by the arm that leaves, which is the first one backwards."""
    text = gs.grad(value_between).source_for(0.5, 1.5)
    assert "h_saved" not in text and text.count("while True:") == 2 and "first" not in text


def test_an_arm_in_front_is_before_the_loop():
    text = gs.grad(arm_in_front).source_for(0.5, 1.4)
    assert text.index("dx = 2 * x") < text.index("while x_saved:") and "first" not in text


def tells(x, c):
    h = 1.0
    while True:
        x = np.sin(x) * c
        if h + x > 3.0:
            print("left", round(float(h), 3))
            return h * np.exp(x) * x
        h = h + x


def draws(x, c):
    h = 1.0
    while True:
        x = np.sin(x) * c
        if h + x > 3.0:
            y = h * np.exp(x) + np.random.normal()
            return y * x
        h = h + x


def test_the_arm_that_leaves_tells_once(capsys):
    dx, h = gs.grad(tells)(0.5, 1.5), 1e-6
    assert capsys.readouterr().out == "left 2.707\n"
    np.testing.assert_allclose(dx, (tells(0.5 + h, 1.5) - tells(0.5 - h, 1.5)) / (2 * h), rtol=1e-8)


def test_the_arm_that_leaves_draws_once():
    def seeded(f, *args):
        np.random.seed(0)
        return f(*args), np.random.normal()
    (dx, after), h = seeded(gs.grad(draws), 0.5, 1.5), 1e-6
    (above, following), (below, _) = seeded(draws, 0.5 + h, 1.5), seeded(draws, 0.5 - h, 1.5)
    np.testing.assert_allclose(dx, (above - below) / (2 * h), rtol=1e-8)
    assert after == following


def first_of_the_user(x, n):
    """A flag of the user's in a loop that may have no pass."""
    first = True
    while n > 0:
        if first:
            x = x * 2
            x = x + np.sin(x)
        else:
            x = np.sin(x)
            x = x * np.cos(x)
        n -= 1
        first = False
    return x


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_flag_of_the_user_is_a_flag(n):
    h = 1e-6
    near = (first_of_the_user(0.5 + h, n) - first_of_the_user(0.5 - h, n)) / (2 * h)
    for found in (gs.grad(first_of_the_user)(0.5, n), gs.jacfwd(first_of_the_user)(0.5, n)):
        np.testing.assert_allclose(found, near, rtol=1e-8)
    batch = gs.vmap(first_of_the_user, in_axes=(0, None))(np.array([0.5, 0.6]), n)
    np.testing.assert_allclose(batch, [first_of_the_user(0.5, n), first_of_the_user(0.6, n)], rtol=1e-14)
