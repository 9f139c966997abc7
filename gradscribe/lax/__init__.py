# SPDX-License-Identifier: Apache-2.0
"""gs.lax: functions that jax.lax has and NumPy has not, under their names there."""
from gradscribe.runtime.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from gradscribe.runtime.derivatives import stop_gradient

__all__ = ["all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "pshuffle",
           "psum", "psum_scatter", "stop_gradient"]
