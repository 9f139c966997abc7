"""Lines of emitted source: how wide they are, what made them, what they do not do."""
import ast

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.line_breaking import broken
from gradscribe.source_map import source_map

LINES = """\
total = 0.125 * (u[2:, 1:-1] - 2.0 * c + u[:-2, 1:-1]) + 0.125 * (u[1:-1, 2:] - 2.0 * c + u[1:-1, :-2]) + c
q[i, j] = (-d * p[j, i - 1] + (1.0 + 2.0 * d) * p[j, i] - d * p[j, i + 1] - a * q[i, j - 1]) / den
u[1:-1, 1:-1] += dt * k[1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1])
a = np.array([p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - -p[2] ** -x[2], not x or y])
b = [f(i, 'a text with, commas (and brackets)') for i in range(n) if i % 2 == 0 and i > limit] + [f(lambda x: x + 1)]
np.add.at(first_of_all, (slice(None), second), -third_of_all * fourth_of_all, where=fifth_of_all)
c = first_of_all if second_of_all > third_of_all else fourth_of_all ** -fifth_of_all
return first_of_all, second_of_all, third_of_all + fourth_of_all, fifth_of_all @ sixth_of_all.T""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_broken_lines_are_the_same_program(line):
    want = ast.dump(ast.parse(f"def f():\n    {line}"))
    for width in range(30, 120):
        text = broken(f"    {line}", width)
        assert ast.dump(ast.parse(f"def f():\n{text}")) == want, text


def test_heads_of_statements():
    for head in ("if aaaaaaaaaaaaaa > bbbbbbbbbbbbbbbbb and cccccccccccc < ddddddddddddd:",
                 "while aaaaaaaaaa > bbbbbbbbbbb or cc:", "def f(aaaaaaa, bbbbbbbb, ccccccccc):",
                 "for i, (aaaaaaa, bbbbbb) in enumerate(zip(ccccccccccccc, ddddddddd)):"):
        for width in range(20, 90):
            assert ast.dump(ast.parse(broken(head, width) + "\n    pass")) == ast.dump(ast.parse(head + "\n    pass"))


def test_no_line_is_wider_than_a_page():
    def f(u, c):
        return np.sum(0.125 * (u[2:, 1:-1] - 2.0 * c + u[:-2, 1:-1])
                      + 0.125 * (u[1:-1, 2:] - 2.0 * c + u[1:-1, :-2]) * np.sin(c) + np.exp(-c) * u[1:-1, 1:-1])
    text = gs.value_and_grad(f, (0, 1)).source_for(np.ones((5, 5)), np.ones((3, 3)))
    assert max(len(line) for line in text.splitlines() if not line.lstrip().startswith("#")) <= 100
    assert len(text.splitlines()) > 10


def softmax_loss(W, x, t):
    z = x @ W
    top = np.max(z, axis=1, keepdims=True)
    p = np.exp(z - top)
    p = p / np.sum(p, axis=1, keepdims=True)
    return -np.mean(np.sum(t * np.log(p), axis=1))


def test_reasons():
    args = np.ones((3, 4)), np.random.default_rng(0).random((5, 3)), np.eye(4)[[0, 1, 2, 3, 0]]
    gradient = gs.grad(softmax_loss)
    text, places = gradient.source_for(*args).splitlines(), source_map(gradient, *args)
    found = {line: places.reasons(k) for k, line in enumerate(text, 1)}
    assert found["    top = np.max(z, axis=1, keepdims=True)"] == ["the adjoint of top is zero: its terms sum to 0"]
    assert any("rule of np.exp: partial_x = y" in r for r in found.values())
    assert 'title="the adjoint of top is zero' in gs.explain(softmax_loss, *args)._repr_html_()


def test_reasons_of_identities():
    def f(A, d):
        return 0.5 * d @ np.linalg.solve(A, d) + 0.5 * np.log(np.linalg.det(A))
    found = gs.explain(f, 2 * np.eye(3), np.ones(3))
    assert any("np.linalg.inv(a).T" in reason for _, reason in found.identities())
    with pytest.raises(gs.KindError, match="has no line 99"):
        found.line(99)


def test_no_value_is_computed_for_its_shape():
    args = np.ones((3, 4)), np.random.default_rng(0).random((5, 3)), np.eye(4)[[0, 1, 2, 3, 0]]
    assert ").shape" not in gs.grad(softmax_loss).source_for(*args)


def test_what_is_written_back_is_not_written():
    def scan(x, w):
        y = x * w
        for i in range(1, len(x)):
            y[i] = y[i] + np.tanh(y[i - 1]) * w[i]
        return np.sum(y ** 2)
    text = gs.grad(scan).source_for(np.ones(4), np.ones(4))
    assert "dy[i] = dy[i]" not in text and "dy[i - 1] += dy[i] * w[i]" in text, text


def test_rows_by_their_numbers_are_set():
    def f(scores, labels):
        return np.sum(np.sin(scores[np.arange(len(labels)), labels]))
    S, L = np.random.default_rng(0).standard_normal((5, 4)), np.array([0, 2, 1, 3, 0])
    assert "np.add.at" not in gs.grad(f).source_for(S, L)
    want = np.zeros((5, 4))
    want[np.arange(5), L] = np.cos(S[np.arange(5), L])
    for gradient in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(gradient(S, L), want, rtol=1e-15)


def test_rows_that_repeat_are_added():
    """One number of a row for several columns, and a row of length 1 that is met by many."""
    def f(scores, labels):
        return np.sum(scores[np.arange(1), labels] ** 2)
    S, L = np.array([[1.0, 2.0, 3.0]]), np.array([0, 2, 0, 0])
    np.testing.assert_array_equal(gs.grad(f)(S, L), [[6.0, 0.0, 6.0]])


def test_indices_of_loops():
    def f(x, steps):
        for _ in range(1, steps):
            x = np.sin(x) * x
        return x
    gradient = gs.grad(f)
    assert "for i in reversed(range(1, steps)):" in gradient.source_for(0.3, 5)
    for steps in (5, 2, 1, 0, -3):
        h = 1e-6
        np.testing.assert_allclose(gradient(0.3, steps), (f(0.3 + h, steps) - f(0.3 - h, steps)) / (2 * h), rtol=1e-8)


@pytest.mark.parametrize("bounds", [(2, 7, 1), (6, -1, -1), (6, 1, -1), (5, 0, -2), (-3, 3, 1), (0, 7, 3)])
def test_indices_of_loops_with_other_steps(bounds):
    start, stop, step = bounds

    def f(x, n):
        y = 1.0
        for k in range(start, n + stop - 7 if step > 0 else stop, step):
            y = np.sin(y + x[k]) * x[k]
        return y
    x = np.linspace(0.3, 1.2, 7)
    found, h = gs.grad(f)(x, 7), 1e-6
    near = [(f(x + h * e, 7) - f(x - h * e, 7)) / (2 * h) for e in np.eye(7)]
    np.testing.assert_allclose(found, near, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x, 7), found, rtol=1e-14)
