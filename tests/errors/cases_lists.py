"""Lists where NumPy takes arrays, and lists in lists of unknown length."""
import numpy as np
import scipy.linalg
from errors.cases import LONG, A, X, emitted, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError


def total(parts):
    return sum(np.sum(p) for p in parts)


@gs.rule.general(total, "parts", as_given=("parts",))
class total_rule:
    def primal(parts):
        return total(parts)

    def jvp_parts(parts_dot):
        return parts_dot

    def vjp_parts(dy, k):
        return dy


@refused(LanguageError)
def row_of_a_list_that_grows():
    def f(x):
        rows = []
        for v in x:
            rows.append([v, 1.0])
        rows[0][1] = 2.0
        return np.sum(np.array(rows))
    emitted(f, X)


@refused(LanguageError)
def row_that_another_name_shows():
    def f(x):
        rows = [[x[0], 2.0]]
        first = rows[0]
        for v in x:
            rows.append([v, 1.0])
        first[1] = 2.0
        return np.sum(np.array(rows))
    emitted(f, X)


@refused(RuleError)
def list_inside_a_list():
    def f(x):
        return total([[x[0], x[1]], x])
    emitted(f, X)


@refused(RuleError)
def list_inside_a_list_in_forward_mode():
    def f(x):
        return total([[x[0], x[1]], x])
    gs.jvp(f, (X,), (X,))


@refused(RuleError)
def directive_in_brackets():
    def f(x):
        return np.sum(np.r_["0,2", x, x] ** 2)
    emitted(f, X)


@refused(ShapeError)
def matrix_and_row_in_brackets():
    def f(x):
        return np.sum(np.r_[x[0], x] ** 2)
    emitted(f, A)


@refused(RuleError)
def rows_of_a_vector():
    def f(x):
        return np.sum(np.concatenate(x))
    gs.grad(f)(X)


@refused(LanguageError)
def complex_of_three():
    def f(x):
        return abs(complex(x[0], imag=x[1], real=2.0))
    gs.grad(f)(X)


@refused(RuleError)
def complex_of_a_complex_number():
    def f(x):
        return abs(complex(x[0], 1j * x[1]))
    gs.grad(f)(X)


@refused(RuleError)
def transposed_complex_system():
    def f(x):
        return np.sum(np.abs(scipy.linalg.solve(np.eye(2) * (1 + 1j * x[0]), x[:2], transposed=True)))
    gs.grad(f)(X)


@refused(RuleError)
def grid_of_a_list():
    emitted(lambda x: np.sum(np.mgrid[[0, 1], 0:len(x)]) * x[0], X)


@refused(RuleError)
def an_array_over_a_buffer():
    emitted(lambda x: np.sum(np.ndarray(3, float, b"123456789012345678901234") * x), X)


@refused(ShapeError)
def list_of_arrays_of_two_lengths():
    def f(x):
        held = [x[1:], x]
        for _ in range(len(x)):
            held.insert(0, x)
        return np.sum(held[0])
    emitted(f, LONG)


@refused(ShapeError)
def array_of_an_empty_list():
    def f(x, n):
        rows = []
        for k in range(n):
            rows.append(x * k)
        return np.sum(np.array(rows).T * np.ones(n))
    gs.grad(f)(X, 0)


@refused(ShapeError)
def list_of_arrays_of_several_shapes():
    def f(x):
        parts = []
        for k in range(len(x)):
            parts.append(x[:k] * 2.0)
        return np.sum(np.concatenate(parts) ** 3)
    gs.grad(f)(X)


@refused(LanguageError)
def list_changed_before_its_iterator_is_read():
    def f(x):
        items = []
        for v in x:
            items.append(v)
        pairs = zip(items, items)
        items.append(x[0])
        return sum(a * b for a, b in pairs)
    gs.grad(f)(X)
