"""Arguments of classes that have operators of their own, whole numbers alone, and what is beyond what Python reads."""
import dataclasses
import random
import tempfile

import numpy as np
from errors.cases import emitted, refused

import gradscribe as gs
from gradscribe import KindError, LanguageError, ShapeError

X = np.array([0.5, 1.5, 2.5])
MATRIX = np.matrix([[1.0, 2.0], [3.0, 4.0]])
MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
DICE = random.Random(3)


@refused(ShapeError)
def gradient_at_a_matrix():
    emitted(lambda m: np.sum(m * m), MATRIX)


@refused(KindError)
def tangent_at_a_masked_array():
    def f(m):
        return np.sum(m * m)
    gs.jvp(f, (MASKED,), (X,))


@refused(KindError)
def gradient_of_a_masked_array_that_is_not_read():
    def f(m):
        return 1.0
    emitted(f, MASKED)


@refused(KindError)
def batch_of_a_matrix():
    def f(m):
        return m * 2
    gs.vmap(f)(MATRIX)


@refused(ShapeError)
def entry_of_a_matrix():
    def f(x):
        return x * MATRIX[0, 1]
    emitted(f, 2.0)


@refused(KindError)
def tangent_at_a_whole_number():
    def f(n):
        return n * n
    gs.jvp(f, (3,), (1.0,))


@refused(KindError)
def pullback_at_whole_numbers():
    def f(n):
        return np.sum(n * n)
    gs.vjp(f, np.array([1, 2]))[1](1.0)


@refused(LanguageError)
def gradient_of_a_batch_whose_rule_looks_along_it():
    @gs.custom_vjp
    def shifted(x):
        return x - gs.lax.pmean(x, "i")
    shifted.defvjp(lambda x: (shifted(x), None), lambda res, dy: (dy - gs.lax.pmean(dy, "i"),))

    def f(x):
        return np.sum(gs.vmap(shifted, axis_name="i")(x) ** 2)
    emitted(f, X)


@refused(KindError)
def dump_of_what_a_local_class_made():
    limits = dataclasses.make_dataclass("Limits", ["most"], frozen=True)(9.0)

    def f(x):
        assert x < limits.most
        return x * x
    gs.dump(gs.grad(f), tempfile.mkdtemp(), 2.0)


@refused(KindError)
def dump_of_what_has_no_text():
    def f(x):
        assert DICE.VERSION == x - x + 3
        return x * x
    gs.dump(gs.grad(f), tempfile.mkdtemp(), 2.0)


ENDLESS = [1.0]
ENDLESS.append(ENDLESS)


@refused(KindError)
def argument_that_holds_itself():
    def f(items):
        return items[0] ** 2
    emitted(f, ENDLESS)


@refused(LanguageError)
def list_from_outside_that_holds_itself():
    def f(x):
        return x * ENDLESS[0]
    emitted(f, 2.0)


@refused(KindError)
def argument_with_a_name_of_two_words():
    def f(x, **others):
        return x * others["two words"]
    emitted(f, 2.0, **{"two words": 3.0})


class Recurrent:
    """An object that can be called, and is no function."""

    def __init__(self):
        self.w = X

    def __call__(self, x):
        return np.tanh(self.w * x)


@refused(KindError)
def gradient_of_an_object_that_can_be_called():
    def f(r, x):
        return np.sum(r(x))
    emitted(f, Recurrent(), X)


@refused(KindError)
def tangent_of_an_object_that_can_be_called():
    def f(r, x):
        return np.sum(r(x))
    gs.jvp(f, (Recurrent(), X), (Recurrent(), X))


@refused(KindError)
def pullback_of_an_object_that_can_be_called():
    def f(r, x):
        return np.sum(r(x))
    gs.vjp_of(f).source_for(1.0, Recurrent(), X)


@refused(KindError)
def text_beside_what_is_differentiated():
    def f(p):
        return p["x"] ** 2
    emitted(f, {"x": 2.0, "name": "tanh"})


@refused(KindError)
def truth_value_beside_what_is_differentiated():
    def f(p):
        return p["x"] ** 2
    emitted(f, {"x": 2.0, "bias": True})


@refused(LanguageError)
def axis_that_counts_passes():
    def f(x):
        y, k = 0.0, 0
        while k < 2:
            y = y + np.sum(np.cumsum(x, axis=k))
            k += 1
        return y
    emitted(f, np.ones((2, 3)))


@refused(LanguageError)
def axis_found_in_the_values():
    def f(x):
        return np.sum(np.cumsum(x, axis=int(np.argmax(x[0]))))
    emitted(f, np.ones((2, 3)))


@refused(LanguageError)
def axis_of_each_example():
    def f(x, k):
        return np.cumsum(x, axis=k)
    gs.vmap(f)(np.ones((2, 2, 2)), np.array([0, 1]))


@refused(LanguageError)
def numbers_of_two_kinds_sorted():
    def f(x):
        return sorted([x[0], 1])[0]
    emitted(f, X)


@refused(LanguageError)
def array_filtered():
    def f(x):
        return sum(filter(lambda v: v > 1, x))
    emitted(f, X)


@refused(LanguageError)
def break_out_of_a_try_with_a_finally():
    def f(x):
        for k in range(3):
            try:
                if k == 1:
                    break
                x = x * 2
            finally:
                print(k)
        return x
    emitted(f, 2.0)


@refused(KindError)
def transpose_of_what_is_not_linear():
    def square(x):
        return x * x
    gs.linear_transpose(square, X)


@refused(KindError)
def custom_gradient_of_no_function():
    gs.custom_gradient(3.0)


@refused(KindError)
def static_argument_counted_from_beyond_the_first():
    def f(x):
        return x
    gs.jit(f, static_argnums=-2)


@refused(KindError)
def argument_without_derivative_of_an_unknown_name():
    def f(x, n):
        return x ** n
    gs.custom_jvp(f, nondiff_argnames="m")


@refused(KindError)
def custom_rule_inside_that_is_not_given():
    def f(x):
        return gs.custom_jvp(np.sin)(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_rule_inside_that_is_given_twice():
    def f(x):
        @gs.custom_jvp
        def g(y):
            return y
        g.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        g.defjvp(lambda primals, tangents: (primals[0], 2.0 * tangents[0]))
        return g(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_rule_inside_without_its_second_half():
    def f(x):
        @gs.custom_vjp
        def g(y):
            return y
        g.defvjp(lambda y: (y, ()))
        return g(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_function_inside_called_by_a_name_without_a_place():
    def f(x):
        @gs.custom_jvp
        def g(y):
            return y
        g.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        return g(x, scale=2.0)
    emitted(f, 2.0)


@refused(KindError)
def custom_function_inside_of_an_unknown_parameter():
    def f(x):
        def g(y, n):
            return y ** n
        made = gs.custom_jvp(g, nondiff_argnames="m")
        made.defjvp(lambda n, primals, tangents: (primals[0] ** n, tangents[0]))
        return made(x, 2)
    emitted(f, 2.0)


@refused(LanguageError)
def custom_rule_inside_reads_what_is_differentiated():
    def f(z):
        @gs.custom_jvp
        def g(y):
            return z * y
        g.defjvp(lambda primals, tangents: (g(*primals), z * tangents[0]))
        return g(3.0)
    emitted(f, 2.0)


@refused(KindError)
def custom_function_inside_with_a_word_of_its_own():
    def f(x):
        g = gs.custom_jvp(lambda y: y, rule=None)
        return g(x)
    emitted(f, 2.0)
