"""Ways out of loops and blocks: random nests of them, and those that once went wrong."""
import fuzz_exits
import numpy as np
import pytest

import gradscribe as gs

COUNT, STEP, FAST = 120, 10, 20


@pytest.mark.parametrize("start", [k if k == FAST else pytest.param(k, marks=pytest.mark.slow)
                                   for k in range(0, COUNT, STEP)])
def test_random_nests(start):
    found = {seed: fuzz_exits.check(gs, seed) for seed in range(start, start + STEP)}
    assert all(kind in ("right", "refused") for kind, _ in found.values()), found
    assert sum(kind == "right" for kind, _ in found.values()) > STEP // 2, found


def leaves_in_a_case_in_a_branch(x, k):
    for _ in range(3):
        if k > 0:
            match k:
                case 1:
                    x = x * 2
                    continue
                case 2:
                    return x * 5
                case _:
                    break
        x = x * 3
    return x


def returns_in_a_case_in_a_branch(x, k):
    if k > 0:
        match k:
            case 1:
                return x * 2
            case 2:
                return x * 5
    return x * x * x


def leaves_in_the_else_of_a_counted_loop(x, k):
    for i in range(4):
        for j in range(k):
            x = x * 1.1
            if j == 3:
                break
        else:
            if i == 2:
                break
            continue
        x = x * 3
    else:
        x = x * x
    return x


def leaves_in_the_else_of_a_loop_whose_test_names(x, k):
    for i in range(4):
        n = k
        while (n := n - 1) > 0:
            x = x * 1.1
            if n == 2:
                break
        else:
            if i > 1:
                break
            x = x + 1
            continue
        x = x * 3
    return x


def leaves_in_the_else_of_a_while(x, k):
    for i in range(4):
        while k > i:
            k = k - 1
            x = x * 1.1
            for _ in range(2):
                if k == 3:
                    break
            else:
                if k == 2:
                    continue
                x = x * 1.7
                break
            x = x + 1
        else:
            if i == 2:
                return x * 7
            continue
        x = x * 3
    return x * x


PROGRAMS = [leaves_in_a_case_in_a_branch, returns_in_a_case_in_a_branch, leaves_in_the_else_of_a_counted_loop,
            leaves_in_the_else_of_a_loop_whose_test_names, leaves_in_the_else_of_a_while]


def agrees(f, x, k, both, forward=True):
    slope = (f(x + 1e-6, k) - f(x - 1e-6, k)) / 2e-6
    value, gradient = both(x, k)
    assert abs(value - f(x, k)) < 1e-12 * (1 + abs(value)), k
    assert abs(gradient - slope) < 1e-7 * (1 + abs(slope)), k
    if forward:
        assert abs(gs.jvp(f, (x, k), (1.0, 0))[1] - gradient) < 1e-12 * (1 + abs(gradient)), k


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_path(f):
    both = gs.value_and_grad(f)
    for k in range(-1, 7):
        agrees(f, 1.3, k, both)


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_path_compiled(f):
    both = gs.jit(gs.value_and_grad(f))
    for k in range(-1, 7):
        agrees(f, 1.3, k, both, False)


# ranges that end before they begin

def two_loops(x, k, m=2):
    for _ in range(k - 1):
        x = np.sin(x)
    for _ in range(m):
        x = np.cos(x)
    return x


def nested(x, k, m=2):
    for i in range(k + 1):
        for j in range(k):
            x = np.sin(x) * (i + m) * 0.2
            for _ in range(j - m):
                x = x * 0.9
    return x


def over_lengths(x, k, m=2):
    xs = x * np.ones(abs(k))
    for i in range(len(xs) - 2):
        xs[i + 1] = xs[i + 1] * xs[i] * m
    return np.sum(xs)


@pytest.mark.parametrize("transform", [gs.grad, pytest.param(lambda f: gs.jit(gs.grad(f)), marks=pytest.mark.slow)],
                         ids=["plain", "compiled"])
@pytest.mark.parametrize("f", [two_loops, nested, over_lengths], ids=lambda f: f.__name__)
def test_ranges_that_run_backwards(f, transform):
    """In every order: a version made for a count serves the counts it holds for, and no other."""
    gradient = transform(f)
    for k, m in [(4, 2), (-1, 2), (0, 1), (3, -1), (1, 1), (-3, -2), (4, 3), (2, 0)]:
        for number in (int, np.int32):
            slope = (f(0.3 + 1e-6, k, m) - f(0.3 - 1e-6, k, m)) / 2e-6
            assert abs(gradient(0.3, number(k), number(m)) - slope) < 1e-7, (k, m)


def test_counts_in_containers():
    def f(p, x):
        for _ in range(p["n"]):
            x = np.sin(x) * p["w"][0]
        return x
    gradient = gs.grad(f, 1)
    for n in (3, -1, 0, 2):
        p = {"n": n, "w": [0.5]}
        assert abs(gradient(p, 0.3) - (f(p, 0.3 + 1e-6) - f(p, 0.3 - 1e-6)) / 2e-6) < 1e-9
    assert abs(gs.grad(gs.checkpoint(two_loops))(0.3, -4) - gs.grad(two_loops)(0.3, -4)) < 1e-15


def test_a_count_keeps_its_name_in_the_source():
    """No guard where the count of this call shows that none is needed."""
    gradient = gs.grad(two_loops)
    assert "np.empty(m)" in gradient.source_for(0.3, 4, 2)
    assert "np.empty(max(m, 0))" in gradient.source_for(0.3, 4, -2)


def lands(v, drag=0.02, dt=0.01):
    h, t = 10.0, 0.0
    while True:
        v = v - dt * (9.81 + drag * v * abs(v))
        if h + dt * v <= 0.0:
            return t - h / v
        h = h + dt * v
        t += dt


def returns_out_of_two_loops(x):
    n = 0
    while True:
        n += 1
        for _ in range(3):
            x = x * 0.9
            if x < 0.5:
                return x * n
        if n > 10:
            return x


def breaks_or_returns(x):
    while True:
        x = x * 0.7
        if x < 0.1:
            break
        if x > 5:
            return x * 2
    return x * x


def endless_in_a_branch(x):
    if x > 2:
        while True:
            x = x * 0.8
            if x < 1:
                return x * 3
    else:
        x = x * 2
    return x * x


def endless_in_endless(x):
    n = 0
    while 1:
        while True:
            n += 1
            x = x * 1.1
            if n > 3:
                if x > 8:
                    return x
                else:
                    break
        n = 0
        x = x * x + 1


def endless_by_a_number(x):
    while 1:
        x = x * 1.1
        if x > 8:
            break
    return x * x


@pytest.mark.parametrize("f", [lands, returns_out_of_two_loops, breaks_or_returns, endless_in_a_branch,
                               endless_in_endless, endless_by_a_number])
def test_loops_without_end(f):
    for x in (3.0, 1.3, 9.0, 0.2):
        slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
            assert gradient(x) == pytest.approx(slope, rel=1e-6)
        assert gs.jvp(f, (x,), (2.0,)) == pytest.approx((f(x), 2 * slope), rel=1e-6)
        np.testing.assert_allclose(gs.vmap(f)(np.array([x, 2.0, 0.4])), [f(x), f(2.0), f(0.4)], rtol=1e-12)


def test_what_a_loop_without_end_may_return():
    def first_above(x):
        i = 0
        while True:
            if i == len(x):
                raise ValueError("none above")
            if x[i] > 0.5:
                return x[i] ** 2, i
            i += 1

    def written_in_each_pass(x):
        y = x * 1.0
        while True:
            y[0] += 1.0
            if y[0] > 3:
                return y
            y = y * 2.0

    x = np.array([0.3, 0.7, 0.9])
    for gradient in (gs.grad(first_above, has_aux=True), gs.jit(gs.grad(first_above, has_aux=True))):
        slope, place = gradient(x)
        np.testing.assert_array_equal(slope, [0.0, 1.4, 0.0])
        assert place == 1
        with pytest.raises(ValueError, match="none above"):
            gradient(x * 0.1)
    for jacobian in (gs.jacrev(written_in_each_pass), gs.jit(gs.jacfwd(written_in_each_pass))):
        np.testing.assert_array_equal(jacobian(x), 2 * np.eye(3))


def test_two_kinds_are_told_apart():
    def f(x):
        while True:
            x = x * 0.5
            if np.sum(x) < 0.1:
                return x
            if np.sum(x) > 100:
                return np.sum(x)
    with pytest.raises(gs.ShapeError, match=r"what is returned is float64\[3\] in one branch and a float64 in another"):
        gs.jit(f)(np.ones(3))


def doubled_until_one_is_large(y):
    for k in range(3):
        for _ in range(2):
            if y[k] > 0.5:
                return
            y[k] = y[k] * 2
    y[0] = 3.0


def leaves_a_loop_with_nothing(x):
    y = x * 1.0
    doubled_until_one_is_large(y)
    return np.sum(y ** 2)


@pytest.mark.parametrize("x", [(0.1, 0.2, 0.9), (0.01, 0.02, 0.03), (0.7, 0.2, 0.9)])
def test_a_return_of_nothing(x):
    x = np.array(x)
    slope = [(leaves_a_loop_with_nothing(x + e) - leaves_a_loop_with_nothing(x - e)) / 2e-6 for e in np.eye(3) * 1e-6]
    for gradient in (gs.grad(leaves_a_loop_with_nothing), gs.jit(gs.grad(leaves_a_loop_with_nothing))):
        np.testing.assert_allclose(gradient(x), slope, rtol=1e-6)
