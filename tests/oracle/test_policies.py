# SPDX-License-Identifier: Apache-2.0
"""Which products JAX's policies save: those with batch dimensions, without, and those that are none to them."""
import jax
import jax.numpy as jnp
import pytest
from programs.test_checkpoint_policies import PRODUCTS


def dots(jaxpr):
    """[whether it has batch dimensions, or is a convolution] of the products that dots_saveable saves."""
    found = []
    for e in jaxpr.eqns:
        if e.primitive.name == "dot_general":
            found.append(bool(e.params["dimension_numbers"][1][0]))
        if e.primitive.name == "conv_general_dilated":
            found.append(True)
        for p in e.params.values():
            if hasattr(p, "jaxpr"):
                found += dots(p.jaxpr)
    return found


@pytest.mark.parametrize("call, a, b, stacks", PRODUCTS)
def test_the_products_that_jax_saves(call, a, b, stacks):
    f = eval(f"lambda a, b: {call}", {"np": jnp})
    assert dots(jax.make_jaxpr(f)(a, b).jaxpr) == ([] if stacks is None else [stacks])
