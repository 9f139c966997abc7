"""autograd's words in terms of gradscribe's, as far as autograd's own tests use them.

    python benchmarks/peers/autograd_suite.py

The functions of `autograd.numpy` and `autograd.scipy` are NumPy's and SciPy's own.  Where autograd's word differs from
gradscribe's in what it returns, the difference is written out here: a gradient of a result of one entry, zeros where
a result does not depend on the argument, functions of one argument out of several.
"""
import sys

import numpy
import scipy.linalg
import scipy.special
import scipy.stats

from autograd.builtins import dict, isinstance, list, tuple, type
from autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

THEIRS = {
    "numpy.fft": numpy.fft, "numpy.random": numpy.random,
    "scipy.linalg": scipy.linalg, "scipy.special": scipy.special, "scipy.stats": scipy.stats,
    **{f"scipy.stats.{name}": getattr(scipy.stats, name)
       for name in ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t")},
}
sys.modules.update({f"autograd.{name}": module for name, module in THEIRS.items()})

__all__ = [
    "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux", "hessian", "hessian_tensor_product",
    "hessian_vector_product", "holomorphic_grad", "isinstance", "jacobian", "list", "make_ggnvp", "make_hvp",
    "make_jvp", "make_vjp", "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]
