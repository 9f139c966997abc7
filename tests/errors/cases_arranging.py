"""Bad inputs of functions that arrange entries, and of functions that are given functions."""
import numpy as np
from errors.cases import A, N, X, Z, emitted, refused

from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError


@refused(RuleError)
def block_of_a_list_of_unknown_length():
    def f(a):
        return np.sum(np.block([row * row for row in a]))
    emitted(f, A)


@refused(RuleError)
def block_of_tuples():
    def f(x):
        return np.sum(np.block((x, x)))
    emitted(f, X)


@refused(RuleError)
def block_of_uneven_lists():
    def f(x):
        return np.sum(np.block([[x, x], x]))
    emitted(f, X)


@refused(ShapeError)
def broadcast_shapes_that_differ():
    def f(x):
        return np.sum(np.broadcast_to(x[0], np.broadcast_shapes((2, 3), (4,))))
    emitted(f, X)


@refused(ShapeError)
def broadcast_shapes_unknown():
    def f(x, y):
        return np.sum(np.broadcast_to(x[0], np.broadcast_shapes(x.shape, y.shape)))
    emitted(f, X, X[:2])


@refused(RuleError)
def fromiter_with_a_count():
    def f(x):
        return np.sum(np.fromiter((v * v for v in x), float, 2))
    emitted(f, X)


@refused(RuleError)
def function_of_objects():
    def f(x):
        return np.sum(np.frompyfunc(abs, 1, 1)(x))
    emitted(f, X)


@refused(RuleError)
def piecewise_of_integers():
    def f(x, n):
        return x[0] * np.piecewise(n, [n > 1], [lambda v: v / 2, 0])[0]
    emitted(f, X, N)


@refused(RuleError)
def piecewise_without_functions():
    def f(x):
        return np.sum(np.piecewise(x, [x > 1]))
    emitted(f, X)


@refused(ShapeError)
def piecewise_with_too_many_functions():
    def f(x):
        return np.sum(np.piecewise(x, [x > 1], [np.sin, np.cos, np.tan]))
    emitted(f, X)


@refused(ShapeError)
def piecewise_of_a_text():
    def f(x):
        return np.sum(np.piecewise(x, ["x > 1", x > 1], [np.sin, np.cos]))
    emitted(f, X)


@refused(LanguageError)
def text_of_an_array():
    def f(x):
        return x[0] if np.array_repr(x) else x[1]
    emitted(f, X)


@refused(RuleError)
def vectorized_by_name():
    def f(x):
        return np.sum(np.vectorize(np.sin)(v=x))
    emitted(f, X)


@refused(ShapeError)
def vectorized_of_a_text():
    def f(x):
        return np.sum(np.vectorize(lambda v, w: v)(x, "w"))
    emitted(f, X)


@refused(RuleError)
def vectorized_with_two_results():
    def f(x):
        return np.sum(np.vectorize(lambda v: (v, v))(x)[0])
    emitted(f, X)


@refused(LanguageError)
def vectorize_without_a_function():
    def f(x):
        return np.sum(np.vectorize(otypes=[float])(x))
    emitted(f, X)


@refused(RuleError)
def vectorize_with_a_signature():
    def f(x):
        return np.sum(np.vectorize(np.sin, signature="()->()")(x))
    emitted(f, X)


@refused(RuleError)
def astype_that_is_not_safe():
    def f(x):
        return np.sum(x.astype(np.float32, casting="safe"))
    emitted(f, X)


@refused(ShapeError)
def item_with_too_many_indices():
    def f(x):
        return x.item(0, 1)
    emitted(f, X)


@refused(RuleError)
def view_of_other_bits():
    def f(x):
        return np.sum(x * x.view(np.int64))
    emitted(f, X)


@refused(ShapeError)
def delete_at_a_number_that_is_no_index():
    def f(x):
        return np.sum(np.delete(x, 1.5))
    emitted(f, X)


@refused(ShapeError)
def delete_along_an_axis_that_is_not_there():
    def f(x):
        return np.sum(np.delete(x, 1, axis=2))
    emitted(f, X)


@refused(LanguageError)
def method_to_another_device():
    def f(x):
        return np.sum(x.to_device("gpu"))
    emitted(f, X)


@refused(RuleError)
def trim_zeros_of_a_matrix():
    def f(a):
        return np.sum(np.trim_zeros(a))
    emitted(f, A)


@refused(RuleError)
def trim_zeros_in_the_middle():
    def f(x):
        return np.sum(np.trim_zeros(x, "m"))
    emitted(f, X)


@refused(RuleError)
def insert_complex_into_real():
    def f(x, z):
        return np.sum(np.insert(x, 1, z[0]))
    emitted(f, X, Z)


@refused(RuleError)
def apply_along_an_axis_of_a_number():
    def f(x):
        return np.apply_along_axis(np.sum, 0, x[0])
    emitted(f, X)


@refused(RuleError)
def ediff1d_with_a_complex_end():
    def f(x, z):
        return np.sum(np.ediff1d(x, to_end=z))
    emitted(f, X, Z)


@refused(RuleError)
def choose_among_rows():
    def f(a):
        return np.sum(np.choose(np.array([0, 1, 0]), a))
    emitted(f, A)


@refused(RuleError)
def largest_of_selected_entries():
    def f(x):
        return np.max(x, where=x > 1)
    emitted(f, X)


@refused(RuleError)
def sum_where_with_more_axes():
    def f(x, m):
        return np.sum(x, where=m)
    emitted(f, X, A > 1)


@refused(RuleError)
def pad_integers_with_their_mean():
    def f(x, n):
        return np.sum(x[0] * np.pad(n, 1, mode="mean"))
    emitted(f, X, N)


@refused(RuleError)
def pad_with_several_constants():
    def f(x):
        return np.sum(np.pad(x, 1, constant_values=(x[0], x[1])))
    emitted(f, X)
