"""Loop nests that are products of matrices: the same numbers as the loops, whatever stands between and around them."""
import ast
import random

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops.matrix_products import find_products
from gradscribe.codegen.loops.pipeline import optimised
from gradscribe.codegen.loops.trees import from_tree, to_tree
from gradscribe.runtime import products
from gradscribe.runtime.compiled import Unsaid

ARRAYS = {n: ("float64", 2) for n in ("A", "B", "AT", "BT", "C", "X")} | {n: ("float64", 1) for n in "uvy"}
SPACE = {"np": np, "Unsaid": Unsaid, "cos": np.cos, **vars(products)}


def text_of(seed):
    """A function with three loops, in any order, that add products up."""
    r = random.Random(seed)
    triangle = r.random() < 0.4
    order, counts = r.sample("ijk", 3), {x: "n" for x in "ijk"} if triangle else {"i": "n", "j": "m", "k": "p"}
    ranges = {x: f"range({n})" for x, n in counts.items()}
    if r.random() < 0.2:
        x = r.choice("ijk")
        ranges[x] = f"range({counts[x]} - 1, -1, -1)"
    number = r.random() < 0.4
    if number:
        order = [*r.sample("ij", 2), "k"]
    if triangle:
        inner = r.randint(1, 2)
        ranges[order[inner]] = f"range({r.choice(order[:inner])}{r.choice(['', ' + 1'])})"
    factors = [r.choice(["A[i, k]", "AT[k, i]"]), r.choice(["B[k, j]", "BT[j, k]"])]
    factors += r.choice([[], [], ["u[i]"], ["v[j]"], ["y[k]"], ["0.5", "u[i]", "y[k]"]])
    r.shuffle(factors)
    term = " * ".join(factors)
    if r.random() < 0.2:
        term += f" {r.choice('+-')} A[i, k] * BT[j, k]"
    sign = r.choice(["+=", "+=", "-="])
    n, m, p = counts["i"], counts["j"], counts["k"]
    shapes = {"A": (n, p), "B": (p, m), "AT": (p, n), "BT": (m, p), "C": (n, m), "u": (n,), "v": (m,), "y": (p,)}
    checks = [f"{name}.shape[{k}] != {length}" for name, lengths in shapes.items() for k, length in enumerate(lengths)]
    lines = ["def f(A, B, AT, BT, C, u, v, y):", "    n = A.shape[0]",
             *(["    p = A.shape[1]", "    m = B.shape[1]"] if not triangle else []),
             f"    if {' or '.join(checks)}:", "        raise ValueError('lengths')",
             f"    X = np.zeros(({n}, {m}), np.float64)", "    total = 0.0", "    rate = 1.0"]
    first, second, third = order
    lines.append(f"    for {first} in {ranges[first]}:")
    row = first == "i"
    if row and r.random() < 0.3:
        lines.append(r.choice(["        X[i, 0] += 2.0", "        C[i, 0] = 0.5 * C[i, 0]", "        A[i, 0] = 0.25"]))
    if r.random() < 0.2:
        lines.append("        rate = 0.9 * rate")
    lines.append(f"        for {second} in {ranges[second]}:")
    if number:
        lines.append(f"            s = {r.choice(['0.0', 'rate', 'C[i, j]'])}")
    if kept := not number and r.random() < 0.4:
        lines.append(f"            g = rate * {r.choice([f'{v}[{x}]' for v, x in zip('uvy', 'ijk') if x != third])}")
        term = f"g * ({term})" if r.random() < 0.3 else f"g * {factors[0]} * {factors[1]}"
    lines.append(f"            for {third} in {ranges[third]}:")
    if number:
        lines.append(f"                s {sign} {term}")
        lines.append(" " * 12 + r.choice(["total += s * s", "X[i, j] = s", "X[i, j] += cos(s)"]))
    else:
        lines += [f"                t = {term}", f"                X[i, j] {sign} t"]
    if r.random() < 0.2:
        lines.append(f"                total += {factors[0]}" if not number else "            total += s")
    if not number and r.random() < 0.4:     # another nest in the same loop, by the same names, over another part
        other = f"range({first})" if ranges[second] == f"range({counts[second]})" and triangle else (
            f"range({counts[second]})")
        lines += [f"        for {second} in {other}:", f"            for {third} in range({counts[third]}):",
                  f"                X[i, j] += {' * '.join(factors)}"]
    if row and r.random() < 0.3:
        lines.append(" " * 8 + r.choice(["u[i] = 0.5 * u[i]", "A[i, 0] = 2.0 * A[i, 0]", "total += X[i, 0]",
                                         "rate = 0.5 * rate"]))
    return "\n".join([*lines, "    return (X, total, rate, A, C, u)"]) + "\n", triangle, kept


def run(text, args):
    space = dict(SPACE)
    exec(text, space)
    with np.errstate(all="ignore"):
        return space["f"](*[a.copy() for a in args])


def test_as_the_loops():
    found = 0
    for seed in range(600):
        text, triangle, _ = text_of(seed)
        lowered, _ = optimised(from_tree(ast.parse(text).body[0], ARRAYS))
        found += "dot(" in lowered
        rng = np.random.default_rng(seed)
        n, m, p = (9, 9, 9) if triangle else rng.choice([0, 1, 2, 5, 9], 3)
        shapes = [(n, p), (p, m), (p, n), (m, p), (n, m), (n,), (m,), (p,)]
        args = [rng.normal(size=s) for s in shapes]
        if seed % 7 == 0 and min(n, m, p):
            args[seed // 7 % 4].flat[-1] = rng.choice([np.nan, np.inf])
        try:
            expected = run(text, args)
        except IndexError:                  # an axis without entries
            continue
        for a, b in zip(run(lowered, args), expected):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=f"{seed}\n{text}\n{lowered}")
    assert found > 180, found


def products_in(function, *args):
    compiled = gs.jit(function)
    compiled(*args)
    return compiled.lowered.count("dot(")


def in_any_order(A, B):
    n, m, p = A.shape[0], B.shape[1], A.shape[1]
    C = np.zeros((n, m))
    for k in range(p):
        for i in range(n):
            for j in range(m):
                C[i, j] += A[i, k] * B[k, j]
    return np.sum(C * C)


def layer(W, b, X):
    n, m, d = X.shape[0], W.shape[0], X.shape[1]
    loss = 0.0
    for i in range(n):
        h = np.zeros(m)
        for j in range(m):
            s = b[j]
            for k in range(d):
                s += W[j, k] * X[i, k]
            h[j] = np.tanh(s)
        out = 0.0
        for j in range(m):
            out += h[j] * h[j]
        loss += out
    return loss


def gram(X):
    n, d = X.shape
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            for k in range(d):
                K[i, j] += X[i, k] * X[j, k]
    return np.sum(np.cos(K))


def attention(Q, K, V):
    """Rows of scores that each pass makes, changes and reads."""
    n, m, d = Q.shape[0], K.shape[0], Q.shape[1]
    out = np.zeros((n, d))
    for i in range(n):
        s = np.zeros(m)
        for j in range(m):
            for k in range(d):
                s[j] += Q[i, k] * K[j, k]
            s[j] = 0.5 * s[j]
        top, z = np.max(s), 0.0
        for j in range(m):
            s[j] = np.exp(s[j] - top)
            z += s[j]
        for j in range(m):
            for k in range(d):
                out[i, k] += s[j] / z * V[j, k]
    return np.sum(np.sin(out))


def changed_between(A, B, u):
    """What the factors are made of changes in the pass, before and after they are read."""
    n, m, p = A.shape[0], B.shape[0], A.shape[1]
    C, w, rate = np.zeros((n, m)), np.copy(u), 1.0
    D = np.zeros((m, p))
    for i in range(n):
        w[0] = w[0] * 0.5
        for j in range(m):
            rate = 0.9 * rate + 0.1 * w[j]
            w[j] += rate
            for k in range(p):
                D[j, k] += w[j] * rate * A[i, k]
            w[j] = w[j] * 0.25
        for j in range(m):
            for k in range(p):
                C[i, j] += A[i, k] * B[j, k] * w[j]
    return np.sum(C * C) + np.sum(np.cos(D))


def two_parts(A, B, u):
    """Two nests in one loop, by the same names: the factors of one have nothing above the diagonal."""
    n, d = B.shape
    D, E = np.zeros((n, d)), np.zeros((n, d))
    for i in range(n):
        for j in range(i):
            for k in range(d):
                D[j, k] += A[i, j] * u[j] * B[i, k]
        for j in range(n):
            for k in range(d):
                E[j, k] += A[i, j] * u[j] * B[i, k]
    return np.sum(np.sin(D)) + np.sum(np.cos(E))


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f, args, least", [
    (in_any_order, (RNG.normal(size=(11, 9)), RNG.normal(size=(9, 12))), 3),
    (layer, (RNG.normal(size=(12, 9)), RNG.normal(size=12), RNG.normal(size=(11, 9))), 2),
    (gram, (RNG.normal(size=(13, 9)),), 3),
    (attention, (RNG.normal(size=(11, 9)), RNG.normal(size=(12, 9)), RNG.normal(size=(12, 9))), 5),
    (two_parts, (RNG.normal(size=(11, 11)), RNG.normal(size=(11, 9)), RNG.normal(size=11)), 2),
    (changed_between, (RNG.normal(size=(11, 9)), RNG.normal(size=(12, 9)), RNG.normal(size=12)), 1)])
def test_gradients_by_loops(f, args, least, dtype):
    args = [a.astype(dtype) for a in args]
    numbers = tuple(range(len(args)))
    compiled = gs.jit(gs.value_and_grad(f, numbers))
    value, gradient = compiled(*args)
    expected, wanted = gs.value_and_grad(f, numbers)(*args)
    exact = dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=1e-12 if exact else 1e-4)
    for a, b in zip(gradient, wanted):
        np.testing.assert_allclose(a, b, rtol=0, atol=(1e-12 if exact else 1e-4) * np.max(np.abs(b)))
    if exact:                               # np.zeros makes float64 of a loop over float32
        assert compiled.lowered.count("dot(") >= least, compiled.lowered


def test_other_lengths_of_the_same_function():
    compiled = gs.jit(gs.grad(in_any_order, (0, 1)))
    for n, p, m in [(9, 10, 11), (12, 0, 10), (0, 9, 9), (9, 9, 0), (1, 12, 9), (30, 20, 25)]:
        A, B = RNG.normal(size=(n, p)), RNG.normal(size=(p, m))
        for a, b in zip(compiled(A, B), gs.grad(in_any_order, (0, 1))(A, B)):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_a_partial_sum_that_is_read():
    def f(A, B):
        n, m, p = A.shape[0], B.shape[1], A.shape[1]
        C = np.zeros((n, m))
        most = 0.0
        for i in range(n):
            for j in range(m):
                for k in range(p):
                    C[i, j] += A[i, k] * B[k, j]
                    most = max(most, C[i, j])
        return most

    A, B = RNG.normal(size=(10, 9)), RNG.normal(size=(9, 11))
    assert gs.jit(f)(A, B) == pytest.approx(f(A, B), rel=1e-13) and products_in(f, A, B) == 0


def test_views_of_what_is_summed():
    """Partial sums are read by another name, and a factor is changed by another name while it is used."""
    def partial(A):
        n, d = A.shape
        W, total = np.zeros((2, n)), 0.0
        row = W[0]
        for i in range(n):
            for j in range(n):
                for k in range(d):
                    W[0, j] += A[i, k] * A[j, k]
                    total += 0.01 * row[j]
        return total + np.sum(W * W)

    def changed(A):
        n, d = A.shape
        D, s = np.zeros((n, d)), np.zeros(n)
        same = s[:]
        for i in range(n):
            for j in range(n):
                s[j] = A[i, 0] + 1.0
                for k in range(d):
                    D[j, k] += s[j] * A[i, k]
                    same[j] = same[j] * 0.9
        return np.sum(np.sin(D)) + np.sum(s)

    A = RNG.normal(size=(11, 9))
    for f in (partial, changed):
        assert gs.jit(f)(A) == pytest.approx(f(A), rel=1e-12)
        np.testing.assert_allclose(gs.jit(gs.grad(f))(A), gs.grad(f)(A), rtol=1e-10, atol=1e-10)


def test_a_pass_inside_hangs_on_the_loop_around():
    """Entries lie apart, and the loop around would go inside if its index did not say how often the inner one runs."""
    def f(A):
        n = A.shape[0]
        C = np.zeros((n, n))
        for j in range(n):
            for i in range(j):
                C[i, j] = A[i, j] * 2.0
        return np.sum(C * A)

    A = RNG.normal(size=(11, 11))
    assert gs.jit(f)(A) == pytest.approx(f(A), rel=1e-13)


def test_no_memory_that_the_loops_do_not_need():
    """All pairs of rows, of which nothing is kept."""
    def f(X):
        n, d = X.shape
        total = 0.0
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(d):
                    s += X[i, k] * X[j, k]
                total += np.exp(-s * s)
        return total

    X = RNG.normal(size=(40, 9))
    assert gs.jit(f)(X) == pytest.approx(f(X), rel=1e-12) and products_in(f, X) == 0


def test_text():
    tree = ast.parse('''def f(A, X):
    n = A.shape[0]
    m = A.shape[1]
    C = np.zeros((n, n), np.float64)
    for i in range(n):
        for j in range(n):
            for k in range(m):
                C[j, i] -= A[j, k] * A[i, k]
    return (C,)''').body[0]
    function = from_tree(tree, {"A": ("float64", 2), "X": ("float64", 2)})
    find_products(function)
    assert ast.unparse(to_tree(function)).splitlines()[4:] == [
        "    C_product = np.dot(A, A.T)", "    for j in range(n):", "        for i in range(n):",
        "            C[j, i] -= C_product[j, i]", "    return (C,)"]
