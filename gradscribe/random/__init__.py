# SPDX-License-Identifier: Apache-2.0
"""gs.random: random numbers as functions of a key, the same bits as jax.random."""
