# SPDX-License-Identifier: Apache-2.0
"""The modules whose functions compiled code may call."""
from gradscribe.runtime import (
    arranging,
    compiled,
    files,
    fourier,
    francis,
    numeric,
    products,
    ranks,
    schur,
    solvers,
    special,
    spectra,
    streams,
    systems,
    vmath,
    vmath32,
    vmath_gamma,
    vmath_roots,
)

RUNTIME = (compiled, ranks, arranging, numeric, products, solvers, schur, systems, francis, fourier, special, spectra,
           streams, files, vmath, vmath_roots, vmath_gamma, vmath32)
