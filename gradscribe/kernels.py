# SPDX-License-Identifier: Apache-2.0
"""Transformations of a user's own CUDA kernel instead of a function."""
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.runtime.backends import backend_of, function_of

if TYPE_CHECKING:
    from gradscribe.adjoint_kernel import Adjoint


def adjoint_of_kernel(kernel: Any, argnums: int | Sequence[int] | None, more: Any) -> "Adjoint | None":
    """The adjoint of a kernel; None for anything else.  more: whether other options were given."""
    if backend_of(kernel) is None:
        return None
    if more:
        raise KindError("of a kernel there is gs.grad(kernel, argnums) alone", place_of(function_of(kernel)),
                        "A kernel returns nothing: its adjoint takes the adjoints of what it writes.")
    from gradscribe.adjoint_kernel import Adjoint
    return Adjoint(kernel, argnums)
