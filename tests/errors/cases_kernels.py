"""Kernels whose threads may meet, and launches of their adjoints that do not fit."""
import numpy as np
from errors import kernel_helpers as kernels
from errors.cases import refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError

X, Y = np.ones(4), np.zeros(4)


@refused(RuleError)
def kernel_that_scatters():
    gs.grad(kernels.scattered)


@refused(RuleError)
def kernel_that_writes_to_neighbours():
    gs.grad(kernels.neighbours)


@refused(RuleError)
def kernel_that_reads_what_others_write():
    gs.grad(kernels.running)


@refused(RuleError)
def kernel_whose_threads_add_without_atomics():
    gs.grad(kernels.one_for_all)


@refused(RuleError)
def kernel_whose_blocks_write_alike():
    gs.grad(kernels.of_a_block)


@refused(RuleError)
def kernel_whose_loops_meet():
    gs.grad(kernels.strange_step)


@refused(LanguageError)
def kernel_whose_threads_wait():
    gs.grad(kernels.together)


@refused(LanguageError)
def kernel_with_shared_memory():
    gs.grad(kernels.shared)


@refused(LanguageError)
def kernel_that_takes_the_greatest():
    gs.grad(kernels.greatest)


@refused(LanguageError)
def kernel_that_asks_for_the_old_value():
    gs.grad(kernels.old_value)


@refused(RuleError)
def kernel_that_reads_its_sums():
    gs.grad(kernels.looks_at_sums)


@refused(LanguageError)
def kernel_that_writes_by_another_name():
    gs.grad(kernels.other_name)


@refused(LanguageError)
def kernel_that_has_another_write():
    gs.grad(kernels.by_another)[1, 4](X, Y, X.copy(), Y.copy())


@refused(RuleError)
def kernel_that_needs_what_it_overwrites():
    gs.grad(kernels.squared_in_place)[1, 4](X, Y)


@refused(LanguageError)
def kernel_with_an_array_of_any_dtype():
    gs.grad(kernels.unknown_dtype)


@refused(RuleError)
def kernel_whose_adjoints_change_places():
    gs.grad(kernels.swapped)[1, 4](X, Y, Y.copy(), Y.copy(), Y.copy(), Y.copy())


@refused(RuleError)
def kernel_whose_threads_end_in_a_loop():
    gs.grad(kernels.ended)[1, 4](X, Y, X.copy(), Y.copy())


@refused(KindError)
def kernel_without_results():
    gs.grad(kernels.counted)[1, 4](X, np.zeros(1, np.int64), Y)


@refused(KindError)
def kernel_of_complex_numbers():
    gs.grad(kernels.doubled)[1, 4](X + 1j, Y + 1j, X + 1j, Y + 1j)


@refused(KindError)
def kernel_given_a_list():
    gs.grad(kernels.doubled)[1, 4]([1.0, 2.0], Y, X, Y)


@refused(KindError)
def adjoint_of_a_kernel_called_like_a_function():
    gs.grad(kernels.doubled)(X, Y, X, Y)


@refused(KindError)
def adjoint_of_a_kernel_without_threads():
    gs.grad(kernels.doubled)[4]


@refused(KindError)
def kernel_with_too_few_arguments():
    gs.grad(kernels.doubled)[1, 4](X)


@refused(KindError)
def kernel_with_too_few_adjoints():
    gs.grad(kernels.doubled)[1, 4](X, Y, X.copy())


@refused(KindError)
def adjoint_of_another_shape():
    gs.grad(kernels.doubled)[1, 4](X, Y, np.zeros(3), Y.copy())


@refused(KindError)
def adjoint_of_a_number():
    gs.grad(kernels.scaled)[1, 4](2.0, X, Y, 0.0, X.copy(), Y.copy())


@refused(KindError)
def adjoint_of_another_dtype():
    gs.grad(kernels.doubled)[1, 4](X, Y, np.zeros(4, np.float32), Y.copy())


@refused(LanguageError)
def adjoint_that_shares_memory():
    gs.grad(kernels.doubled)[1, 4](X, Y, Y, Y.copy())


@refused(LanguageError)
def kernel_launched_along_another_axis():
    gs.grad(kernels.doubled)[1, (2, 2)](X, Y, X.copy(), Y.copy())


@refused(KindError)
def argnums_of_a_kernel():
    gs.grad(kernels.doubled, 2)


@refused(KindError)
def value_of_a_kernel():
    gs.value_and_grad(kernels.doubled)


@refused(LanguageError)
def text_of_a_kernel_that_was_not_launched():
    print(gs.grad(kernels.doubled).source)


@refused(LanguageError)
def kernel_with_a_name_that_is_taken():
    gs.grad(kernels.grid_as_a_name)


@refused(LanguageError)
def kernel_with_a_default():
    gs.grad(kernels.with_a_default)


@refused(LanguageError)
def kernel_that_asks_for_its_lane():
    gs.grad(kernels.lanes)


@refused(LanguageError)
def kernel_that_reads_by_another_name():
    gs.grad(kernels.read_by_another_name)


@refused(RuleError)
def kernel_that_exchanges_parts():
    gs.grad(kernels.parts_exchanged)[1, 3](X, Y, Y[:3].copy(), Y.copy(), Y.copy(), Y[:3].copy())


@refused(RuleError)
def kernel_whose_loops_begin_apart():
    gs.grad(kernels.twice_the_place)


@refused(RuleError)
def kernel_with_a_place_of_its_own():
    gs.grad(kernels.place_of_its_own)


@refused(LanguageError)
def adjoint_of_sums_launched_along_another_axis():
    gs.grad(kernels.counted_into)[1, (2, 2)](X, np.arange(4), Y, X.copy(), Y.copy())


@refused(RuleError)
def kernel_that_reads_from_outside():
    gs.grad(kernels.looked_up)[1, 4](X, Y, X.copy(), Y.copy())


@refused(RuleError)
def kernel_that_saves_by_its_place():
    gs.grad(kernels.as_far_as_its_place)[1, 4](X, Y, X.copy(), Y.copy())


@refused(KindError)
def kernel_of_half_precision():
    gs.grad(kernels.doubled)[1, 4](*[a.astype(np.float16) for a in (X, Y, X, Y)])


@refused(RuleError)
def kernel_that_sorts():
    gs.grad(kernels.sorted_entries)[1, 4](X, Y, X.copy(), Y.copy())
