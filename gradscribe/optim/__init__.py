# SPDX-License-Identifier: Apache-2.0
"""gs.optim: optimizers as pairs of functions, and solvers."""
