# SPDX-License-Identifier: Apache-2.0
"""gs.random: random numbers as functions of a key, the same bits as jax.random."""
from gradscribe.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    pareto,
    rayleigh,
    triangular,
    weibull_min,
)
from gradscribe.random.keys import PRNGKey, clone, fold_in, key, key_data, split, wrap_key_data
from gradscribe.random.normals import (
    double_sided_maxwell,
    lognormal,
    maxwell,
    multivariate_normal,
    normal,
    orthogonal,
    truncated_normal,
    wald,
)
from gradscribe.random.uniforms import bernoulli, bits, rademacher, randint, uniform

__all__ = ["PRNGKey", "bernoulli", "bits", "cauchy", "clone", "double_sided_maxwell", "exponential", "fold_in",
           "gumbel", "key", "key_data", "laplace", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal",
           "orthogonal", "pareto", "rademacher", "randint", "rayleigh", "split", "triangular", "truncated_normal",
           "uniform", "wald", "weibull_min", "wrap_key_data"]
