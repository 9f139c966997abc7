# SPDX-License-Identifier: Apache-2.0
"""gs.random: random numbers as functions of a key, the same bits as jax.random."""
from gradscribe.jax_names import missing as _missing
from gradscribe.random.choices import categorical, choice, permutation
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
from gradscribe.random.counts import binomial, geometric, multinomial, poisson
from gradscribe.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from gradscribe.random.keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
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
from gradscribe.random.threefry import set_threefry_partitionable, threefry_partitionable
from gradscribe.random.uniforms import bernoulli, bits, rademacher, randint, uniform

__all__ = ["PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice",
           "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal",
           "geometric", "gumbel", "key", "key_data", "key_impl", "laplace", "loggamma", "logistic", "lognormal",
           "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson",
           "rademacher", "randint", "rayleigh", "set_threefry_partitionable", "split", "t", "threefry_partitionable",
           "triangular", "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data"]


def __getattr__(name):
    raise _missing(__name__, name)
