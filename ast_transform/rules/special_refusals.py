# SPDX-License-Identifier: Apache-2.0
"""Errors of the rules for scipy.special: derivatives without a closed form, complex arguments."""
from gradscribe.ast_transform.core.rule import static
from gradscribe.ast_transform.rules.elementwise import is_complex


@static
def no_derivative(function, argument):
    raise ValueError(f"scipy.special.{function} has no derivative rule in {argument}, which has no closed form",
                     "Hold it fixed: gs.stop_gradient of it, or a number.")


@static
def only_real(x, function):
    if is_complex(x):
        raise ValueError(f"scipy.special.{function} of complex numbers has no derivative rule",
                         "Take np.real, np.imag or np.abs first.")
