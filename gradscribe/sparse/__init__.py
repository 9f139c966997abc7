# SPDX-License-Identifier: Apache-2.0
"""Sparse Jacobians and Hessians: patterns from the source, colourings, compressed products; results for scipy."""
from gradscribe.sparse.colouring import Coloring, coloring
from gradscribe.sparse.derivatives import SparseDerivative, hessian, jacfwd, jacobian, jacrev

__all__ = ["Coloring", "SparseDerivative", "coloring", "hessian", "jacfwd", "jacobian", "jacrev"]
