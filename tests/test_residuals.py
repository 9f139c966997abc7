"""What gs.vjp and gs.linearize keep of the first call: right for each path through the program, and for every call."""
import copy
import functools

import numpy as np
import pytest

import gradscribe as gs

X = np.array([0.3, -0.5, 0.7, 1.1])


def leaves(tree):
    if isinstance(tree, (tuple, list, dict)):
        return [leaf for part in (tree.values() if isinstance(tree, dict) else tree) for leaf in leaves(part)]
    return [tree]


def overwrite(tree):
    """What a caller may do with arrays of its own."""
    for leaf in leaves(tree):
        if isinstance(leaf, np.ndarray):
            leaf[...] = 77


def numbers(tree):
    return np.concatenate([np.ravel(leaf) for leaf in leaves(tree)])


def slopes(f, args, cotangent):
    """The adjoints of all arguments by central differences, in a row; float64."""
    flat = numbers(args)

    def dotted(v):
        parts = iter(np.split(v, np.cumsum([np.size(leaf) for leaf in leaves(args)])[:-1]))
        return numbers(f(*filled(args, parts))) @ numbers(cotangent)
    return np.array([(dotted(flat + 1e-6 * e) - dotted(flat - 1e-6 * e)) / 2e-6 for e in np.eye(flat.size)])


def filled(tree, parts):
    if isinstance(tree, dict):
        return {k: filled(v, parts) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(filled(v, parts) for v in tree)
    part = next(parts)
    return part.reshape(np.shape(tree)) if isinstance(tree, np.ndarray) else float(part[0])


def held(f, args, cotangents):
    """The pullback, after each call has given what differences say, twice, to a caller that overwrites everything."""
    given = copy.deepcopy(args)
    y, pull = gs.vjp(f, *given)
    np.testing.assert_array_equal(numbers(y), numbers(f(*copy.deepcopy(args))))
    overwrite(given)
    overwrite(y)
    for cotangent in [*cotangents, *cotangents]:
        own = copy.deepcopy(cotangent)
        got = pull(own)
        np.testing.assert_allclose(numbers(got), slopes(f, args, cotangent), rtol=2e-7, atol=2e-8)
        np.testing.assert_array_equal(numbers(own), numbers(cotangent))
        overwrite(got)
    return pull


def halves_of(pull):
    """The text of what is done once, and of what each call does."""
    head, once, each = pull.source.split("\n\n\ndef vjp_")
    assert head == "import numpy as np" and "_once(" in once
    return f"{head}\n\n\ndef vjp_{once}\n", f"{head}\n\n\ndef vjp_{each}"


def one_arm(x, t):
    v = np.sin(x) * np.cos(x) if t > 0.9 else x
    return v ** 2


def masked(x, t):
    v = x[x > 0] if t > 0.9 else x
    return np.sum(v ** 2) * x


def nested(x, t):
    if t > 0:
        u = np.exp(x)
        if t > 1:
            w = np.linalg.solve(np.diag(u) + 1, x) * u
        else:
            w = u
    else:
        w = np.cos(x) * x
        if x[0] > 0:
            w[1:] = w[1:] * x[:-1]
    return w * x


def returned_early(x, t):
    for i in range(4):
        if x[i] > t:
            return np.sin(x) * x[i]
        if x[i] < -5:
            return x
    return np.exp(x) * t


def left_early(x, t):
    s = 0.0
    for v in x:
        if v > t:
            break
        s = s + np.sin(v) * s + v
    return s * x


def added_up(x, t):
    s = 0.0
    for v in x:
        if v > t:
            break
        s = s + np.sin(v) * s + v
    return s * t


def until(x, t):
    y, k = x, 0
    while np.sum(y * y) > t:
        y = np.sin(y) * 0.7
        k += 1
        if k > 5:
            break
        if k == 3:
            z = y * 2
            y = z * y
    return y * k


def stacked(x, t):
    q = []
    for v in x:
        if v > t:
            q.append(v * v)
    out = 0.0
    while q:
        out = out * 2 + np.sin(q.pop())
    return out * x


def list_of_lists(x, t):
    s = 0.0
    for i in range(3):
        q = []
        for v in x:
            if v > t * i:
                q.append(np.sin(v * s) + v)
        for w in q:
            s = s + w * w
    return s * x


def list_in_one_arm(x, t):
    if t > 0.5:
        rows = [np.tanh(v * x) for v in x if v > t - 0.5]
        return sum([np.sum(r * r) for r in rows], 0.0) * x
    return x * t


def comprehended(x, t):
    d = {"a": [np.sin(v) for v in x], "b": x * t}
    if t > 0.2:
        d["c"] = np.exp(x)
    else:
        d["c"] = x
    return sum(v * v for v in d["a"]) + d["b"] * d["c"]


def reduced(x, t):
    return functools.reduce(lambda a, b: np.sin(a) * t + b * a, x, 0.5) * x


def writes_its_argument(x, t):
    x[0] = x[1] * x[2]
    if t > 0.5:
        x[3] = np.exp(x[0])
    return x * t


PATHS = [
    (one_arm, (0.1, 1.5)), (masked, (0.1, 1.5)), (nested, (-1.0, 0.5, 2.0)), (returned_early, (0.2, 0.65, 9.0)),
    (left_early, (0.2, 0.5, 9.0)), (until, (0.2, 9.0)), (stacked, (-1.0, 0.5, 3.0)), (list_of_lists, (0.4, 2.0)),
    (list_in_one_arm, (0.1, 0.7, 9.0)), (comprehended, (0.1, 0.4)), (reduced, (0.4,)),
    (writes_its_argument, (0.1, 0.7)),
]


@pytest.mark.parametrize("f, t", [(f, t) for f, ts in PATHS for t in ts], ids=lambda v: getattr(v, "__name__", v))
def test_each_path(f, t):
    pull = held(f, [X, t], [X[::-1].copy(), 2.0 * X])
    halves_of(pull)
    v, tv = np.array([1.0, 0.3, -2.0, 0.5]), 0.25
    y, push = gs.linearize(f, X.copy(), t)
    for _ in range(2):
        np.testing.assert_allclose(push(v, tv), gs.jvp(f, (X.copy(), t), (v, tv))[1], rtol=1e-13, atol=1e-14)


def code(text):
    """A text without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def test_an_arm_is_in_both_halves():
    pull = held(one_arm, [X, 1.5], [X])
    once, each = map(code, halves_of(pull))
    assert once.count("np.sin(") == once.count("np.cos(") == 1 and "np.sin" not in each and "np.cos" not in each
    assert once.count("= None") == 1 and once.count("if ") == each.count("if ") == 1
    once, each = halves_of(held(nested, [X, 2.0], [X]))
    assert "np.exp" in once and "np.exp" not in each


def test_what_is_allocated_is_made_by_each_call():
    once, each = halves_of(held(added_up, [X, 0.5], [1.0]))
    assert "dx = np.zeros_like(x)" in each and "zeros_like" not in once


def test_lists_are_taken_from_by_each_call_alone():
    _, each = halves_of(held(left_early, [X, 0.5], [X]))
    names = {line.split(".pop()")[0].split(" = ")[-1].strip() for line in each.splitlines() if ".pop()" in line}
    assert names and all(f"{name} = list(" in each for name in names)


def test_a_text_of_its_own_runs():
    """Both halves, as they are printed, give the adjoints, as often as they are run."""
    pull = held(left_early, [X, 0.5], [X])
    first, second = {}, {}
    once, each = halves_of(pull)
    exec(once, first)
    exec(each, second)
    kept = first["vjp_left_early_once"](X, 0.5)
    head = each.split("(", 1)[1].split(")")[0].split(", ")
    given = [{"x": X, "t": 0.5}[n] for n in head[1:len(head) - len(kept)]]
    for _ in range(2):
        np.testing.assert_array_equal(numbers(second["vjp_left_early"](X, *given, *kept)), numbers(pull(X)))


def test_several_outputs_and_whole_numbers():
    def f(x, t):
        n = 3
        if t > 0.5:
            s, k = np.sin(x), 2
        else:
            s, k = x, n
        return {"a": s * s, "n": k, "b": (np.sum(s), x[0])}
    for t, slope in ((0.7, np.cos(X)), (0.2, np.ones(4))):
        s = np.sin(X) if t > 0.5 else X
        y, pull = gs.vjp(f, X, t)
        assert y["n"] == (2 if t > 0.5 else 3)
        for scale in (1.0, 2.0, 1.0):
            dx, dt = pull({"a": scale * X, "n": 0, "b": (scale, 3.0)})
            np.testing.assert_allclose(dx, (scale * X * 2 * s + scale) * slope + np.array([3.0, 0, 0, 0]), rtol=1e-14)
            assert dt == 0
    np.testing.assert_array_equal(gs.vjp(np.argmax, X)[1](0)[0], np.zeros(4))


def test_aux_beside_a_branch():
    def f(x, t):
        return np.sin(x) * t if t > 0 else x, {"seen": x}
    y, pull, aux = gs.vjp(f, X.copy(), 0.4, has_aux=True)
    np.testing.assert_array_equal(aux["seen"], X)
    overwrite(aux)
    for _ in range(2):
        dx, dt = pull(X)
        np.testing.assert_allclose(dx, X * np.cos(X) * 0.4, rtol=1e-14)
        np.testing.assert_allclose(dt, X @ np.sin(X), rtol=1e-14)


def test_containers_of_arguments():
    def f(p, x):
        h, n = np.zeros(4), 0
        for w in p["ws"]:
            h = np.tanh(w * x + h)
            n += 1
            if np.sum(h) > 2:
                break
        return h * p["b"] * n
    held(f, [{"ws": [X, 2 * X, 3 * X], "b": X + 1}, X], [X, X + 1])


@pytest.mark.parametrize("t", [1.0, -1.0])
def test_complex_numbers(t):
    def f(z, t):
        w = np.exp(z) if t > 0 else z * 1j
        return w * w
    z = X + 1j * X[::-1]
    slope = 2 * np.exp(2 * z) if t > 0 else -2 * z
    y, pull = gs.vjp(f, z.copy(), t)
    for dy in (X + 0j, 1j * X, X + 0j):
        np.testing.assert_allclose(pull(dy)[0], gs.grad(lambda z, dy=dy: np.real(np.sum(f(z, t) * dy)))(z), rtol=1e-13)
        np.testing.assert_allclose(np.abs(pull(dy)[0]), np.abs(slope * dy), rtol=1e-13)


@pytest.mark.parametrize("t", [1.0, -1.0])
def test_single_precision(t):
    x = X.astype(np.float32)
    y, pull = gs.vjp(lambda x, t: np.sin(x) * x if t > 0 else x * 2, x, t)
    for dy in (x, 2 * x):
        dx, dt = pull(dy)
        assert dx.dtype == np.float32 and dt == 0
        np.testing.assert_allclose(dx, dy * (np.cos(X) * X + np.sin(X) if t > 0 else 2), rtol=1e-6)


def test_arrays_from_outside_are_those_of_the_first_call():
    W, b = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0.5, -0.25])
    x = np.array([0.2, 0.4])
    want = W.T @ ((1 - np.tanh(W @ x + b) ** 2) * (W.T @ np.ones(2)))
    y, pull = gs.vjp(lambda x: W @ np.tanh(W @ x + b), x)
    for _ in range(2):
        np.testing.assert_allclose(pull(np.ones(2))[0], want, rtol=1e-14)
        W[...], b[...] = 1e3, 1e3


def test_names_that_are_taken():
    """Functions and arrays from outside keep their names where what is kept would like to be called the same."""
    scale = np.array([1.0, 2.0, 3.0, 4.0])

    @gs.custom_vjp
    def act(x):
        return np.sin(x)
    act.defvjp(lambda x: (np.sin(x), x), lambda x, g: (g * np.cos(x),))

    def f(x, t):
        sum_, values = x * scale, []
        for v in act(sum_):
            values.append(v * t)
            if v > 10:
                break
        return np.array(values) * act(x)
    held(f, [X, 0.5], [X, 2 * X])


@pytest.mark.parametrize("t", [-1.0, 0.5, 2.0])
def test_within_a_function_that_is_transformed(t):
    def twice(x, t):
        y, pull = gs.vjp(nested, x, t)
        a, b = pull(y)
        c, d = pull(a)
        return np.sum(a * c) + b
    apart = gs.vjp(nested, X, t)[1]
    a = apart(nested(X.copy(), t))[0]
    np.testing.assert_allclose(twice(X, t), np.sum(a * apart(a)[0]), rtol=1e-13)
    want = [(twice(X + 1e-6 * e, t) - twice(X - 1e-6 * e, t)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(gs.grad(twice)(X, t), want, rtol=1e-5)
    if t == 2:
        np.testing.assert_allclose(gs.jit(twice)(X, t), twice(X, t), rtol=1e-12)


def test_linear_functions_are_transformed():
    y, pull = gs.vjp(nested, X, 2.0)
    y, push = gs.linearize(nested, X, 2.0)
    rows = np.array([pull(e)[0] for e in np.eye(4)])
    np.testing.assert_allclose(gs.vmap(pull)(np.eye(4))[0], rows, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(gs.vmap(push, (0, None))(np.eye(4), 0.0), rows.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(gs.jit(pull)(X)[0], X @ rows, rtol=1e-12)
    g = gs.grad(lambda dy: np.sum(pull(dy)[0] ** 2))(X)
    np.testing.assert_allclose(g, 2 * rows @ (X @ rows), rtol=1e-12)


def test_a_linear_function_that_draws_is_not_transformed():
    def f(x, rng):
        return x * rng.normal(size=4)
    y, pull = gs.vjp(f, X, np.random.default_rng(1))
    np.testing.assert_array_equal(pull(X)[0], X * y / X)
    with pytest.raises(gs.TransformError, match="draws other random numbers"):
        gs.vmap(pull)(np.eye(4))
