# SPDX-License-Identifier: Apache-2.0
"""Collectives over a named axis: each is linear, and its adjoint sends values in the opposite direction, as in JAX."""
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import constant, linear, static
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


@linear(psum, "x")
class psum_:
    def primal(x, axis_name):
        return psum(x, axis_name)

    def vjp_x(dy, axis_name):
        return psum(dy, axis_name)

    def batch(x, axis_name, batched):
        return psum(x, axis_name)


@linear(pmean, "x")
class pmean_:
    def primal(x, axis_name):
        return pmean(x, axis_name)

    def vjp_x(dy, axis_name):
        return pmean(dy, axis_name)

    def batch(x, axis_name, batched):
        return pmean(x, axis_name)


@static
def no_derivative(function):
    raise ValueError(f"{function} has no derivative inside its axis",
                     "Transform the function that vmap gives: gs.grad of gs.vmap(...); or take gs.lax.all_gather and "
                     "np.max of it.")


@linear(pmax, "x")
class pmax_:
    def primal(x, axis_name):
        return pmax(x, axis_name)

    def jvp_x():
        return no_derivative("pmax")

    def vjp_x():
        return no_derivative("pmax")

    def batch(x, axis_name, batched):
        return pmax(x, axis_name)


@linear(pmin, "x")
class pmin_:
    def primal(x, axis_name):
        return pmin(x, axis_name)

    def jvp_x():
        return no_derivative("pmin")

    def vjp_x():
        return no_derivative("pmin")

    def batch(x, axis_name, batched):
        return pmin(x, axis_name)


@linear(all_gather, "x", expand=True)
class all_gather_:
    def primal(x, axis_name, axis=0, tiled=False):
        return all_gather(x, axis_name, axis=axis, tiled=tiled)

    def vjp_x(dy, axis_name, axis, tiled):
        return psum_scatter(dy, axis_name, scatter_dimension=axis, tiled=tiled)

    def batch(x, axis_name, axis, tiled, batched):
        return all_gather(x, axis_name, axis=axis + 1, tiled=tiled)


@linear(psum_scatter, "x", expand=True)
class psum_scatter_:
    def primal(x, axis_name, scatter_dimension=0, tiled=False):
        return psum_scatter(x, axis_name, scatter_dimension=scatter_dimension, tiled=tiled)

    def vjp_x(dy, axis_name, scatter_dimension, tiled):
        return all_gather(dy, axis_name, axis=scatter_dimension, tiled=tiled)

    def batch(x, axis_name, scatter_dimension, tiled, batched):
        return psum_scatter(x, axis_name, scatter_dimension=scatter_dimension + 1, tiled=tiled)


@linear(all_to_all, "x", expand=True)
class all_to_all_:
    def primal(x, axis_name, split_axis, concat_axis, tiled=False):
        return all_to_all(x, axis_name, split_axis, concat_axis, tiled=tiled)

    def vjp_x(dy, axis_name, split_axis, concat_axis, tiled):
        return all_to_all(dy, axis_name, concat_axis, split_axis, tiled=tiled)

    def batch(x, axis_name, split_axis, concat_axis, tiled, batched):
        return all_to_all(x, axis_name, split_axis + 1, concat_axis + 1, tiled=tiled)


@static
def turned(perm):
    return tuple((b, a) for a, b in perm)


@static
def inverse(perm):
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


@linear(ppermute, "x")
class ppermute_:
    def primal(x, axis_name, perm):
        return ppermute(x, axis_name, perm)

    def vjp_x(dy, axis_name, perm):
        return ppermute(dy, axis_name, turned(perm))

    def batch(x, axis_name, perm, batched):
        return ppermute(x, axis_name, perm)


@linear(pshuffle, "x")
class pshuffle_:
    def primal(x, axis_name, perm):
        return pshuffle(x, axis_name, perm)

    def vjp_x(dy, axis_name, perm):
        return pshuffle(dy, axis_name, inverse(perm))

    def batch(x, axis_name, perm, batched):
        return pshuffle(x, axis_name, perm)


@constant(axis_index, memory=FRESH)
class axis_index_:
    def primal(axis_name):
        return axis_index(axis_name)


@constant(axis_size, memory=FRESH)
class axis_size_:
    def primal(axis_name):
        return axis_size(axis_name)
