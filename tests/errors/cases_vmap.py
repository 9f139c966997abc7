"""Axes that do not fit, and what has no batch."""
import numpy as np
from errors.cases import A, X, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError, ShapeError


@refused(KindError)
def vmap_by_another_strategy():
    def twice(x):
        return x * 2.0
    gs.vmap(twice, strategy="fast")


@refused(LanguageError)
def sum_over_an_axis_without_a_name():
    def share(x):
        return x / gs.lax.psum(x, "i")
    gs.vmap(share, axis_name="batch")(X)


@refused(LanguageError)
def sum_over_an_axis_without_vmap():
    def share(x):
        return np.sum(x / gs.lax.psum(x, "i"))
    gs.grad(share)(X)


@refused(LanguageError)
def sum_over_the_batch_in_a_branch_that_differs():
    def share(x):
        if x > 0:
            return x / gs.lax.psum(x, "i")
        return x
    gs.vmap(share, axis_name="i")(X)


@refused(LanguageError)
def sum_over_the_batch_of_a_text():
    def share(x):
        return gs.lax.psum({"x": x, "name": np.sin}, "i")["x"]
    gs.vmap(share, axis_name="i")(X)


@refused(LanguageError)
def sent_along_two_axes():
    def sent(x):
        return gs.lax.ppermute(x, ("i", "j"), [(0, 1)])
    gs.vmap(gs.vmap(sent, axis_name="j"), axis_name="i")(A)


@refused(LanguageError)
def sent_twice_to_one():
    def sent(x):
        return gs.lax.ppermute(x, "i", [(0, 1), (2, 1)])
    gs.vmap(sent, axis_name="i")(X)


@refused(LanguageError)
def shuffled_by_half():
    def shuffled(x):
        return gs.lax.pshuffle(x, "i", [0, 0, 1])
    gs.vmap(shuffled, axis_name="i")(X)


@refused(ShapeError)
def scattered_along_an_axis_that_is_not_there():
    def scattered(x):
        return gs.lax.psum_scatter(x, "i", scatter_dimension=3)
    gs.vmap(scattered, axis_name="i")(A)


@refused(ShapeError)
def scattered_in_other_parts():
    def scattered(x):
        return gs.lax.psum_scatter(x, "i")
    gs.vmap(scattered, axis_name="i")(A)


@refused(RuleError)
def largest_of_the_batch_differentiated_inside():
    def top(x):
        return gs.lax.pmax(x, "i") - x
    gs.vmap(gs.grad(top), axis_name="i")(X)


@refused(RuleError)
def sum_over_the_batch_with_groups():
    def share(x):
        return gs.lax.psum(x, "i", axis_index_groups=[[0, 1], [2]])
    gs.vmap(share, axis_name="i")(X)


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


def batched(rule):
    """A function that brings a form of its own for a batch."""
    @gs.custom_batching.custom_vmap
    def twice(x):
        return x * 2.0
    if rule is not None:
        twice.def_vmap(rule)
    return twice


@refused(KindError)
def batch_without_its_rule():
    twice = batched(None)
    gs.vmap(lambda x: 3.0 * twice(x))(X)


@refused(KindError)
def batch_rule_that_gives_no_pair():
    twice = batched(lambda axis_size, in_batched, xs: xs * 2.0)
    gs.vmap(lambda x: 3.0 * twice(x))(X)


@refused(KindError)
def batch_rule_that_says_what_is_batched_in_words():
    twice = batched(lambda axis_size, in_batched, xs: (xs * 2.0, "yes"))
    gs.vmap(lambda x: 3.0 * twice(x))(X)


@refused(KindError)
def batch_rule_that_forgets_the_batch():
    twice = batched(lambda axis_size, in_batched, xs: (np.sum(xs), True))
    gs.vmap(lambda x: 3.0 * twice(x))(X)


@refused(KindError)
def batch_rule_of_another_structure():
    twice = batched(lambda axis_size, in_batched, xs: ([xs], [True]))
    gs.vmap(lambda x: 3.0 * twice(x))(X)


@refused(LanguageError)
def batch_rule_in_a_branch_that_differs():
    twice = batched(lambda axis_size, in_batched, xs: (xs * 2.0, True))

    def f(x):
        return twice(x) if x > 0 else x
    gs.vmap(f)(X)


@refused(RuleError)
def gradient_of_one_example_of_a_batch_rule():
    twice = batched(lambda axis_size, in_batched, xs: (xs * 2.0, True))

    def f(x):
        return 3.0 * twice(x)
    gs.grad(f)(1.0)


@refused(KindError)
def forward_rule_that_gives_no_pair():
    @gs.custom_jvp
    def twice(x):
        return x * 2.0
    twice.defjvp(lambda primals, tangents: 2.0 * tangents[0])

    def f(x):
        return 3.0 * twice(x)
    gs.grad(f)(1.0)


@refused(KindError)
def values_of_what_a_forward_half_is_not_given():
    gs.custom_derivatives.custom_vjp_primal_tree_values({"a": 1.0})


@refused(LanguageError)
def a_function_gathered_over_two_axes():
    def gathered(x):
        return gs.lax.all_gather({"x": x, "name": np.sin}, ("i", "j"))["x"]
    gs.vmap(gs.vmap(gathered, axis_name="j"), axis_name="i")(A)


@refused(LanguageError)
def a_batched_form_of_a_function_that_differs():
    @gs.custom_batching.custom_vmap
    def applied(f, x):
        return f(x)

    @applied.def_vmap
    def rule(size, batched, f, x):
        return f(x), batched[1]
    gs.vmap(lambda x, y: applied(lambda v: v * y, x))(X, X)
