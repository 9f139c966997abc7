# SPDX-License-Identifier: Apache-2.0
"""gs.nn: layers as pairs of functions, initialisers, and the functions of jax.nn."""
