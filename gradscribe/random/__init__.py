# SPDX-License-Identifier: Apache-2.0
"""gs.random: random numbers as functions of a key, the same bits as jax.random."""
from gradscribe.random.keys import PRNGKey, clone, fold_in, key, key_data, split, wrap_key_data
from gradscribe.random.uniforms import bernoulli, bits, rademacher, randint, uniform

__all__ = ["PRNGKey", "bernoulli", "bits", "clone", "fold_in", "key", "key_data", "rademacher", "randint", "split",
           "uniform", "wrap_key_data"]
