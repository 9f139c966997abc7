# SPDX-License-Identifier: Apache-2.0
"""gs.lax: functions that jax.lax has and NumPy has not, under their names there."""
from gradscribe.lax.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
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

__all__ = [
    "all_gather", "all_to_all", "associative_scan", "axis_index", "axis_size", "cond", "fori_loop", "map", "pmax",
    "pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "scan", "stop_gradient", "switch", "while_loop"]
