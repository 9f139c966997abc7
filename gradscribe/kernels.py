# SPDX-License-Identifier: Apache-2.0
"""What is done with a user's own CUDA kernel instead of a function."""
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.runtime.backends import backend_of


def is_kernel(value) -> bool:
    """Whether something is a kernel that `@cuda.jit` made, of Numba's, its simulator's, or what stands for them.

    >>> is_kernel(len)
    False
    """
    return backend_of(value) is not None


def adjoint_of_kernel(kernel, argnums, more):
    """The kernel's adjoint; `more` says whether anything else was asked for."""
    from gradscribe.adjoint_kernel import Adjoint
    if more:
        raise KindError("of a kernel there is gs.grad(kernel, argnums) alone", None,
                        "A kernel returns nothing: its adjoint takes the adjoints of what it writes.")
    return Adjoint(kernel, argnums)
