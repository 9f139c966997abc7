# SPDX-License-Identifier: Apache-2.0
"""gs.lax: functions that jax.lax has and NumPy has not, under their names there."""
from gradscribe.lax.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from gradscribe.lax.convolution import (
    ConvDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_shape_tuple,
    conv_transpose,
    conv_with_general_padding,
)
from gradscribe.lax.implicit import custom_linear_solve, custom_root
from gradscribe.lax.windows import (
    avg_pool,
    max_pool,
    min_pool,
    padtype_to_pads,
    reduce_window,
    reduce_window_shape_tuple,
)
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
    "ConvDimensionNumbers", "all_gather", "all_to_all", "associative_scan", "avg_pool", "axis_index", "axis_size",
    "cond", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_shape_tuple", "conv_transpose",
    "conv_with_general_padding", "custom_linear_solve", "custom_root", "fori_loop", "map", "max_pool", "min_pool",
    "padtype_to_pads", "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "reduce_window",
    "reduce_window_shape_tuple", "scan", "stop_gradient", "switch", "while_loop"]
