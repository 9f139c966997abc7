"""Axes that do not fit, and what has no batch."""
import numpy as np
from errors.cases import A, X, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError


@refused(KindError)
def vmap_by_another_strategy():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, strategy="fast")


@refused(KindError)
def vmap_over_a_name():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, axis_name="batch")


@refused(KindError)
def vmap_with_too_few_axes():
    def added(x, y):
        return x + y
    gs.vmap(added, (0,))(A, A)


@refused(KindError)
def vmap_over_an_axis_that_is_not_there():
    def added(x, y):
        return x + y
    gs.vmap(added, (0, 1))(A, X)


@refused(KindError)
def vmap_over_a_number():
    def added(x, y):
        return x + y
    gs.vmap(added)(A, 2.0)


@refused(KindError)
def vmap_over_a_text():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, "rows")(A)


@refused(KindError)
def vmap_over_parts_that_are_not_there():
    def parts(p):
        return p["u"] + p["v"]
    gs.vmap(parts, ({"u": 0},))({"u": A, "v": A})


@refused(KindError)
def vmap_over_a_number_in_a_container():
    def total(layers):
        t = 0.0
        for w, b in layers:
            t = t + np.sum(w) * b
        return t
    gs.vmap(total)([(A, 2.0), (A, 1.0)])


@refused(KindError)
def vmap_of_lengths_that_differ():
    def added(x, y):
        return x + y
    gs.vmap(added)(A, X[:1])


@refused(KindError)
def vmap_of_nothing():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, None)(A)


@refused(KindError)
def vmap_of_another_size():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, axis_size=9)(A)


@refused(KindError)
def vmap_to_an_axis_that_is_not_there():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, 0, 3)(A)


@refused(KindError)
def vmap_to_no_axis():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, 0, None)(A)


@refused(KindError)
def vmap_to_parts_that_are_not_there():
    def pair(x):
        return x, x * 2.0
    gs.vmap(pair, 0, (0, 0, 0))(A)


@refused(KindError)
def vmap_to_an_axis_of_a_text():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, 0, "rows")(A)


@refused(LanguageError)
def vmap_rewritten_where_branches_differ():
    def f(x):
        return x if x > 0 else -2.0 * x
    gs.vmap(f, strategy="rewrite")(X)


@refused(LanguageError)
def vmap_of_a_list_of_a_length_of_its_own():
    def f(x):
        return [v for v in x if v > 0]
    gs.vmap(f)(A)


@refused(LanguageError)
def vmap_of_a_text():
    def f(x):
        return np.sum(x), f"{x[0]:.1f}"
    gs.vmap(f)(A)
