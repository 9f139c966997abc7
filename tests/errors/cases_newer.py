# SPDX-License-Identifier: Apache-2.0
"""Taylor mode, checkpoints with a budget, and sparse derivatives: functions and arguments that are refused.

Add new cases at the end, then `make golden`.
"""
import numpy as np
from errors.cases import A, X, Z, cubed, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError, ShapeError
from gradscribe.experimental import ode

DIAGONAL = np.eye(3)


# Taylor mode

@refused(KindError)
def jet_at_a_bare_number():
    def f(x):
        return x ** 3
    gs.jet(f, 2.0, (1.0, 0.0))


@refused(KindError)
def jet_with_a_series_too_few():
    def f(x, y):
        return x * y
    gs.jet(f, (2.0, 3.0), ((1.0, 0.0),))


@refused(KindError)
def jet_with_a_bare_derivative():
    def f(x):
        return x ** 3
    gs.jet(f, (2.0,), (1.0,))


@refused(KindError)
def jet_with_series_of_different_lengths():
    def f(x, y):
        return x * y
    gs.jet(f, (2.0, 3.0), ((1.0, 0.0), (1.0,)))


@refused(KindError)
def jet_of_no_order():
    def f(x):
        return x ** 3
    gs.jet_of(f, 0)


@refused(KindError)
def jet_inside_with_a_series_too_few():
    def f(x, y):
        return gs.jet(cubed, (x, y), ((1.0, 0.0),))[0]
    gs.grad(f).source_for(2.0, 3.0)


@refused(KindError)
def primal_without_a_series():
    def f(x):
        return x ** 3
    gs.jet_of(f, 2)(2.0)


@refused(KindError)
def series_that_is_a_number():
    def f(x):
        return x ** 3
    gs.jet_of(f, 2)(2.0, 1.0)


@refused(KindError)
def series_with_a_term_too_few():
    def f(x):
        return x ** 3
    gs.jet_of(f, 2)(2.0, (1.0,))


@refused(RuleError)
def jet_of_the_end_of_a_range():
    def f(x):
        return np.arange(0.0, x, 0.5)
    gs.jet(f, (2.0,), ((1.0, 0.0),))


@refused(RuleError)
def jet_of_a_reverse_rule():
    def f(x):
        return cubed(x)
    gs.jet(f, (2.0,), ((1.0, 0.0),))


@refused(KindError)
def equation_at_a_time_of_whole_numbers():
    def f(y, t):
        return -t * y
    ode.coefficients(f, 1.0, 0, order=3)


@refused(KindError)
def equation_without_a_time():
    def f(y, t):
        return -y
    ode.solution_of(f, 3)(1.0)


@refused(KindError)
def equation_of_a_pair():
    def f(y, t):
        return y[1], -y[0]
    ode.coefficients(f, (1.0, 0.0), 0.0, order=3)


@refused(KindError)
def equation_at_many_times():
    def f(y, t):
        return -t[0] * y
    ode.coefficients(f, 1.0, X, order=3)


# checkpoints

@refused(KindError)
def checkpoint_of_nothing_inside():
    def f(x):
        return gs.checkpoint(policy="loops")(x)
    gs.grad(f).source_for(2.0)


@refused(KindError)
def checkpoint_with_a_number_as_name():
    def f(x):
        return gs.checkpoint_name(np.sin(x), 1)
    gs.grad(f).source_for(2.0)


@refused(KindError)
def budget_of_unknown_units():
    gs.checkpoint(cubed, budget="3 pages")


@refused(KindError)
def budget_too_small_for_a_loop():
    def f(x, n):
        for _ in range(n):
            x = np.sin(x)
        return np.sum(x)
    gs.grad(gs.checkpoint(f, budget="100 B"))(X, 1000)


@refused(KindError)
def offload_to_the_host():
    gs.checkpoint(cubed, offload="host")


@refused(KindError)
def budget_of_a_while_loop():
    def f(x):
        while np.sum(x) > 0.1:
            x = 0.9 * np.sin(x)
        return np.sum(x)
    gs.grad(gs.checkpoint(f, budget="1 MB"))(X)


@refused(KindError)
def one_level_inside():
    def f(x, n):
        return np.sum(gs.checkpoint(lambda x: np.sin(x), levels=1)(x))
    gs.grad(f)(X, 3)


@refused(RuleError)
def states_of_a_device_on_the_disk():
    def f(x, n):
        for _ in range(n):
            x = np.sin(x)
        return np.sum(x)
    gs.jit(gs.grad(gs.checkpoint(f, offload="disk")), target="cuda").source_for(X, 9)


@refused(KindError)
def offload_of_a_saved_name():
    gs.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["y"], names_which_can_be_offloaded=["y"], offload_src="device", offload_dst="disk")


@refused(KindError)
def policy_for_one_text_as_names():
    gs.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved="y", names_which_can_be_offloaded=[], offload_src="device", offload_dst="disk")


@refused(KindError)
def offload_to_another_machine():
    gs.checkpoint_policies.offload_dot_with_no_batch_dims("device", "cloud")


@refused(KindError)
def offload_from_another_machine():
    gs.checkpoint_policies.offload_dot_with_no_batch_dims("cloud", "disk")


@refused(KindError)
def both_of_a_function():
    gs.checkpoint_policies.save_from_both_policies(np.sin, gs.checkpoint_policies.dots_saveable)


@refused(KindError)
def both_of_a_policy_that_offloads():
    moved = gs.checkpoint_policies.offload_dot_with_no_batch_dims("device", "disk")
    gs.checkpoint_policies.save_from_both_policies(moved, gs.checkpoint_policies.dots_saveable)


# sparse derivatives

@refused(KindError)
def sparse_jacobian_of_a_number():
    gs.sparse.jacfwd(3.0)


@refused(KindError)
def sparse_jacobian_with_two_argnums():
    gs.sparse.jacfwd(np.multiply, argnums=(0, 1))


@refused(KindError)
def sparse_jacobian_by_an_argument_that_is_not_given():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f, argnums=1)(X)


@refused(KindError)
def sparse_jacobian_at_complex_numbers():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f)(Z)


@refused(KindError)
def sparse_jacobian_of_a_pair():
    def f(x):
        return x * x, np.sin(x)
    gs.sparse.jacfwd(f)(X)


@refused(LanguageError)
def sparsity_of_a_choice_of_lengths():
    def f(x):
        return np.sum(x[x > 1.0] ** 2)
    gs.sparse.jacfwd(f)(X)


@refused(ShapeError)
def pattern_with_a_column_too_few():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f, sparsity=DIAGONAL[:, :2])(X)


@refused(ShapeError)
def pattern_with_a_row_too_few():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f, sparsity=DIAGONAL[:2])(X)


@refused(KindError)
def pattern_without_entries_of_the_derivative():
    def f(x):
        return x * np.sum(x)
    gs.sparse.jacfwd(f, sparsity=DIAGONAL)(X)


@refused(KindError)
def hessian_with_half_a_pattern():
    def f(x):
        return np.sum(x) ** 2
    gs.sparse.hessian(f, sparsity=np.triu(np.ones((3, 3))))(X)


@refused(KindError)
def hessian_by_columns():
    gs.sparse.hessian(np.sum, partition="column")


@refused(KindError)
def sparse_jacobian_of_complex_results():
    def f(x):
        return x * (1 + 2j)
    gs.sparse.jacrev(f)(X)


@refused(KindError)
def sparse_jacobian_of_half_precision():
    def f(x):
        return x.astype(np.float16) * x[0].astype(np.float16)
    gs.sparse.jacfwd(f)(X)


@refused(KindError)
def sparse_jacobian_of_text():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f)("1.0")


@refused(KindError)
def sparse_jacobian_by_a_truth_value():
    gs.sparse.jacfwd(np.multiply, True)


@refused(KindError)
def gradient_of_a_sparse_jacobian():
    def f(x):
        return x * x
    jacobian = gs.sparse.jacfwd(f)

    def trace(x):
        return np.sum(jacobian(x).diagonal())
    gs.grad(trace)(X)


@refused(KindError)
def sparse_jacobian_within_a_gradient():
    def f(x):
        return x * x

    def trace(x):
        return np.sum(gs.sparse.jacfwd(f)(x).diagonal())
    gs.grad(trace)(X)


@refused(KindError)
def pattern_of_one_row():
    def f(x):
        return x * x
    gs.sparse.jacfwd(f, sparsity=np.ones(3))(X)


@refused(KindError)
def coloring_in_an_order_that_there_is_not():
    gs.sparse.coloring(DIAGONAL, order="smallest_first")


@refused(KindError)
def coloring_in_an_order_of_too_few():
    gs.sparse.coloring(DIAGONAL, order=np.arange(2))


@refused(KindError)
def coloring_of_another_partition():
    gs.sparse.coloring(DIAGONAL, "rows")


@refused(KindError)
def coloring_of_text():
    gs.sparse.coloring("three diagonals")


@refused(KindError)
def star_coloring_of_what_is_not_symmetric():
    gs.sparse.coloring(A, "star")
