# SPDX-License-Identifier: Apache-2.0
"""Gradient transformations: pairs of functions that turn gradients into updates, and combinators for them.

    state = opt.init(params)
    updates, state = opt.update(grads, state, params)
    params = apply_updates(params, updates)

Names, arguments and semantics are those of Optax.  States are named tuples of trees like the parameters.
"""
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradscribe.optim.trees import tree_zeros_like
from gradscribe.tree_util import tree_leaves, tree_map

__all__ = ["ApplyIfFiniteState", "EmptyState", "GradientTransformation", "MaskedNode", "MaskedState",
           "MultiTransformState", "apply_if_finite", "apply_updates", "chain", "identity",
           "incremental_update", "masked", "multi_transform", "need_params", "set_to_zero", "stateless"]


class GradientTransformation(NamedTuple):
    """init(params) -> state; update(updates, state, params=None) -> (updates, state)."""
    init: Callable
    update: Callable


class EmptyState(NamedTuple):
    """The state of a stateless transformation."""


class MaskedNode(NamedTuple):
    """The placeholder for a part that a mask leaves out."""


class MaskedState(NamedTuple):
    """The state of the transformation within `masked`."""
    inner_state: Any


class MultiTransformState(NamedTuple):
    """The states of `multi_transform`, by label."""
    inner_states: dict[Any, Any]


class ApplyIfFiniteState(NamedTuple):
    """The state of `apply_if_finite`: counts of updates that were not finite, in a row and in total."""
    notfinite_count: int
    last_finite: bool
    total_notfinite: int
    inner_state: Any


def need_params(params: Any) -> None:
    """Raise ValueError if update was called without parameters."""
    if params is None:
        raise ValueError("this transformation needs the parameters: update(updates, state, params)")


def apply_updates(params: Any, updates: Any) -> Any:
    """params + updates, leaf by leaf, in the dtypes of the parameters.

    >>> apply_updates({"w": np.ones(2)}, {"w": np.array([0.5, -1.0])})
    {'w': array([1.5, 0. ])}
    """
    return tree_map(_added, params, updates)


def _added(p, u):
    total = p + u
    return total if isinstance(p, (int, float, complex)) else total.astype(p.dtype, copy=False)


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: float) -> Any:
    """step_size * new + (1 - step_size) * old: an exponential moving average, for example of parameters.

    B. Polyak and A. Juditsky, Acceleration of stochastic approximation by averaging (1992).

    >>> float(incremental_update(np.float64(2.0), np.float64(0.0), 0.25))
    0.5
    """
    return tree_map(lambda new, old: step_size * new + (1.0 - step_size) * old, new_tensors, old_tensors)


def _empty(params):
    return EmptyState()


def stateless(f: Callable) -> GradientTransformation:
    """A transformation without state, from f(updates, params) -> updates.

    >>> halved = stateless(lambda updates, params: tree_map(lambda g: g / 2, updates))
    >>> halved.update([4.0], halved.init([1.0]))
    ([2.0], EmptyState())
    """
    def update(updates, state, params=None):
        return f(updates, params), state
    return GradientTransformation(_empty, update)


def identity() -> GradientTransformation:
    """A transformation that returns the updates unchanged."""
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """A transformation that sets updates to zero, so that parameters do not change."""
    return stateless(lambda updates, params: tree_zeros_like(updates))


def chain(*transforms: GradientTransformation) -> GradientTransformation:
    """The transformations in sequence; the state is the tuple of their states.

    >>> opt = chain(identity(), set_to_zero())
    >>> opt.update([np.ones(2)], opt.init([np.ones(2)]))
    ([array([0., 0.])], (EmptyState(), EmptyState()))
    """
    def init(params):
        return tuple([transform.init(params) for transform in transforms])

    def update(updates, state, params=None):
        if len(state) != len(transforms):
            raise ValueError(f"a chain of {len(transforms)} transformations was given a state of {len(state)}")
        states = []
        for k in range(len(transforms)):
            updates, part = transforms[k].update(updates, state[k], params)
            states.append(part)
        return updates, tuple(states)
    return GradientTransformation(init, update)


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """inner for the parts where mask is true; the other updates are unchanged.

    mask is a tree of bools with the structure of the parameters or a prefix of it, or a function of the parameters that
    returns one.

    >>> opt = masked(set_to_zero(), {"w": True, "b": False})
    >>> grads = {"w": np.ones(1), "b": np.ones(1)}
    >>> opt.update(grads, opt.init(grads))[0]
    {'b': array([1.]), 'w': array([0.])}
    """
    def kept(bools, tree):
        return tree_map(lambda keep, part: part if keep else MaskedNode(), bools, tree)

    def init(params):
        bools = mask(params) if callable(mask) else mask
        return MaskedState(inner.init(kept(bools, params)))

    def update(updates, state, params=None):
        bools = mask(updates) if callable(mask) else mask
        some = None if params is None else kept(bools, params)
        changed, inner_state = inner.update(kept(bools, updates), state.inner_state, some)
        updates = tree_map(lambda keep, new, old: new if keep else old, bools, changed, updates)
        return updates, MaskedState(inner_state)
    return GradientTransformation(init, update)


def multi_transform(transforms: Mapping[Any, GradientTransformation], param_labels: Any) -> GradientTransformation:
    """A transformation for each label of the parameters.

    param_labels is a tree of labels with the structure of the parameters or a prefix of it, or a function of the
    parameters that returns one.  Raises ValueError for a label without a transformation.

    >>> opt = multi_transform({"fit": identity(), "keep": set_to_zero()}, {"w": "fit", "b": "keep"})
    >>> grads = {"w": np.ones(1), "b": np.ones(1)}
    >>> opt.update(grads, opt.init(grads))[0]
    {'b': array([0.]), 'w': array([1.])}
    """
    def labels_of(params):
        labels = param_labels(params) if callable(param_labels) else param_labels
        for label in tree_leaves(labels):
            if label not in transforms:
                raise ValueError(f"no transformation for the label {label!r}")
        return labels

    def for_label(label, labels):
        return masked(transforms[label], tree_map(lambda other: other == label, labels))

    def init(params):
        labels = labels_of(params)
        return MultiTransformState({label: for_label(label, labels).init(params) for label in transforms})

    def update(updates, state, params=None):
        labels = labels_of(updates)
        states = {}
        for label in transforms:
            updates, states[label] = for_label(label, labels).update(updates, state.inner_states[label], params)
        return updates, MultiTransformState(states)
    return GradientTransformation(init, update)


def apply_if_finite(inner: GradientTransformation, max_consecutive_errors: int) -> GradientTransformation:
    """inner, unless an update has a NaN or an infinity: then the update is zero and the state of inner is unchanged.

    After max_consecutive_errors of these in a row, the next one is applied.

    >>> opt = apply_if_finite(identity(), 3)
    >>> opt.update([np.array([np.nan])], opt.init([np.ones(1)]))[0]
    [array([0.])]
    """
    def init(params):
        return ApplyIfFiniteState(0, True, 0, inner.init(params))

    def update(updates, state, params=None):
        finite = all([bool(np.all(np.isfinite(g))) for g in tree_leaves(updates)])
        in_a_row = 0 if finite else state.notfinite_count + 1
        total = state.total_notfinite if finite else state.total_notfinite + 1
        if finite or in_a_row > max_consecutive_errors:
            updates, inner_state = inner.update(updates, state.inner_state, params)
        else:
            updates, inner_state = tree_zeros_like(updates), state.inner_state
        return updates, ApplyIfFiniteState(in_a_row, finite, total, inner_state)
    return GradientTransformation(init, update)
