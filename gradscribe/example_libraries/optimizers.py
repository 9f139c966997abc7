# SPDX-License-Identifier: Apache-2.0
"""Optimizers as triples of functions, with the names, defaults and numbers of jax.example_libraries.optimizers.

    opt_init, opt_update, get_params = momentum(0.001, mass=0.9)
    state = opt_init(params)
    state = opt_update(i, grads, state)         # i: the number of the step, from 0
    params = get_params(state)

step_size is a number or a schedule, a function of i.  An optimizer is written as such a triple for one array, which the
decorator `optimizer` lifts to trees of arrays.  gs.optim has more optimizers, as gradient transformations.
"""
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradscribe.optim.trees import global_norm
from gradscribe.tree_util import PyTreeDef, register_dataclass, tree_flatten, tree_map, tree_unflatten

__all__ = ["JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant",
           "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
           "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd",
           "sm3", "unpack_optimizer_state"]

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """init_fn(params) -> state; update_fn(i, grads, state) -> state; params_fn(state) -> params."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


@register_dataclass
@dataclasses.dataclass(frozen=True)
class OptimizerState:
    """The states of all arrays of the parameters, flattened, and the structures to rebuild them and the parameters."""

    packed_state: list[list[Any]]
    tree_def: PyTreeDef = dataclasses.field(metadata={"static": True})
    subtree_defs: tuple[PyTreeDef, ...] = dataclasses.field(metadata={"static": True})

    def __iter__(self) -> Iterator[Any]:
        return iter((self.packed_state, self.tree_def, self.subtree_defs))


def optimizer(opt_maker: Callable[..., tuple[Callable, Callable, Callable]]) -> Callable[..., Optimizer]:
    """A decorator that lifts a function that makes a triple for one array to one that makes it for trees of arrays.

    opt_maker(...) -> (init(x) -> state, update(i, g, state) -> state, get_params(state) -> x); a state is a container
    of arrays with a fixed structure.  update_fn raises TypeError if the gradients do not have the structure of the
    parameters, or if an update changes the structure of a state.

    >>> @optimizer
    ... def signs(step_size):
    ...     def update(i, g, x):
    ...         return x - step_size * np.sign(g)
    ...     return (lambda x: x), update, (lambda x: x)
    >>> opt_init, opt_update, get_params = signs(0.5)
    >>> get_params(opt_update(0, {"w": np.array([3.0, -2.0])}, opt_init({"w": np.zeros(2)})))
    {'w': array([-0.5,  0.5])}
    """
    @functools.wraps(opt_maker)
    def make(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params):
            leaves, treedef = tree_flatten(params)
            return _packed([init(x) for x in leaves], treedef)

        def tree_update(i, grads, state):
            leaves, treedef = tree_flatten(grads)
            if treedef != state.tree_def:
                raise TypeError("the gradients have another structure than the parameters have")
            new = _packed([update(i, g, kept) for g, kept in zip(leaves, _states(state))], treedef)
            if new.subtree_defs != state.subtree_defs:
                raise TypeError("an update changes the structure of its state")
            return OptimizerState(new.packed_state, state.tree_def, state.subtree_defs)

        def tree_params(state):
            return tree_unflatten(state.tree_def, [get_params(kept) for kept in _states(state)])
        return Optimizer(tree_init, tree_update, tree_params)
    return make


def _packed(states, treedef):
    pairs = [tree_flatten(state) for state in states]
    return OptimizerState([leaves for leaves, _ in pairs], treedef, tuple([each for _, each in pairs]))


def _states(state):
    return [tree_unflatten(each, leaves) for each, leaves in zip(state.subtree_defs, state.packed_state)]


def _first(state):
    return state[0]


def _with_zeros(number, update):
    """The triple with the parameter and `number` arrays like it, initially zeros, as its state."""
    def init(x):
        return (x, *[np.zeros_like(x) for _ in range(number)])
    return init, update, _first


@optimizer
def sgd(step_size: float | Schedule) -> Optimizer:
    """Gradient descent.

    >>> opt_init, opt_update, get_params = sgd(0.25)
    >>> get_params(opt_update(0, [4.0], opt_init([1.0])))
    [0.0]
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        return (state[0] - rate(i) * g,)
    return _with_zeros(0, update)


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Optimizer:
    """Descent along v = mass v + g.  B. Polyak (1964).

    >>> opt_init, opt_update, get_params = momentum(0.5, 0.9)
    >>> state = opt_update(0, [1.0], opt_init([0.0]))
    >>> [round(float(w), 6) for w in get_params(opt_update(1, [1.0], state))]
    [-1.45]
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, v = state
        v = mass * v + g
        return x - rate(i) * v, v
    return _with_zeros(1, update)


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Optimizer:
    """Descent along mass v + g, where v = mass v + g.  Y. Nesterov (1983)."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, v = state
        v = mass * v + g
        return x - rate(i) * (mass * v + g), v
    return _with_zeros(1, update)


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Optimizer:
    """Descent along an average of g divided by the root of the sum of its squares.

    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods, JMLR 12 (2011).
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, mean = state
        squares = squares + g * g
        mean = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - rate(i) * mean, squares, mean
    return _with_zeros(2, update)


def _inverse_root(squares):
    """1 / sqrt(squares), and 0 where they are 0."""
    seen = squares > 0
    return np.where(seen, 1.0 / np.sqrt(np.where(seen, squares, 1.0)), 0.0)


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Optimizer:
    """Descent along g divided by the root of an average of its squares.  T. Tieleman, G. Hinton, lecture 6.5 (2012)."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = gamma * squares + (1.0 - gamma) * (g * g)
        return x - rate(i) * g / np.sqrt(squares + eps), squares
    return _with_zeros(1, update)


@optimizer
def rmsprop_momentum(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Optimizer:
    """rmsprop with momentum."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, step = state
        squares = gamma * squares + (1.0 - gamma) * (g * g)
        step = momentum * step + rate(i) * g / np.sqrt(squares + eps)
        return x - step, squares, step
    return _with_zeros(2, update)


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Descent along bias-corrected averages of g and its squares.  D. Kingma, J. Ba, Adam (2015), algorithm 1.

    >>> opt_init, opt_update, get_params = adam(0.1)
    >>> [round(float(w), 6) for w in get_params(opt_update(0, [7.0], opt_init([1.0])))]
    [0.9]
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, squares = state
        mean = b1 * mean + (1.0 - b1) * g
        squares = b2 * squares + (1.0 - b2) * (g * g)
        step = (mean / (1.0 - b1 ** (i + 1))) / (np.sqrt(squares / (1.0 - b2 ** (i + 1))) + eps)
        return x - rate(i) * step, mean, squares
    return _with_zeros(2, update)


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam with a decaying maximum of |g| instead of the squares.  D. Kingma, J. Ba, Adam (2015), algorithm 2."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, largest = state
        mean = b1 * mean + (1.0 - b1) * g
        largest = np.maximum(b2 * largest, np.abs(g))
        return x - rate(i) / (1.0 - b1 ** (i + 1)) * mean / (largest + eps), mean, largest
    return _with_zeros(2, update)


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Optimizer:
    """adagrad with one sum for each index of each axis instead of each entry; the parameters must be arrays.

    R. Anil, V. Gupta, T. Koren, Y. Singer, Memory-efficient adaptive optimization (2019).
    """
    rate = make_schedule(step_size)

    def init(x):
        rows = [np.zeros(n, x.dtype) for n in np.atleast_1d(x).shape]
        return x, np.zeros_like(x), rows

    def update(i, g, state):
        x, mean, rows = state
        if x.ndim == 0:
            squares = rows[0][0] + g * g
            rows = [np.reshape(squares, (1,))]
        else:
            spread = [np.reshape(row, [-1 if k == axis else 1 for k in range(x.ndim)]) for axis, row in enumerate(rows)]
            squares = functools.reduce(np.minimum, spread) + g * g
            rows = [np.max(squares, axis=tuple([k for k in range(x.ndim) if k != axis])) for axis in range(x.ndim)]
        mean = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - rate(i) * mean, mean, rows
    return init, update, _first         # type: ignore[return-value]  # its decorator makes an Optimizer of three


# schedules

def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A schedule unchanged, or a constant one from a number.  TypeError for anything else.

    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule):
        raise TypeError(f"a step size is a number or a function of the step, not {type(scalar_or_schedule).__name__}")
    return constant(scalar_or_schedule)


def constant(step_size: float) -> Schedule:
    """step_size at each step."""
    def schedule(i):
        return step_size
    return schedule


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """step_size * decay_rate^(i / decay_steps).

    >>> exponential_decay(8.0, 10, 0.5)(20)
    2.0
    """
    def schedule(i):
        return step_size * decay_rate ** (i / decay_steps)
    return schedule


def inverse_time_decay(step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps); with staircase i / decay_steps is rounded down.

    >>> inverse_time_decay(8.0, 10, 1.0)(30), float(inverse_time_decay(8.0, 10, 1.0, True)(39))
    (2.0, 2.0)
    """
    def schedule(i):
        return step_size / (1 + decay_rate * (np.floor(i / decay_steps) if staircase else i / decay_steps))
    return schedule


def polynomial_decay(step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0) -> Schedule:
    """From step_size to final_step_size in decay_steps, then constant.

    >>> float(polynomial_decay(8.0, 10, 2.0)(5))
    5.0
    """
    def schedule(i):
        left = (1 - np.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size
    return schedule


def piecewise_constant(boundaries: Sequence[float], values: Sequence[float]) -> Schedule:
    """values[k] at the steps after k of the boundaries.  ValueError unless there is one value more than boundaries.

    >>> [float(piecewise_constant([3, 5], [1.0, 0.1, 0.01])(i)) for i in (3, 4, 6)]
    [1.0, 0.1, 0.01]
    """
    ends, rates = np.array(boundaries), np.array(values)
    if not ends.ndim == rates.ndim == 1:
        raise ValueError("boundaries and values are sequences of numbers")
    if ends.size != rates.size - 1:
        raise ValueError(f"{ends.size} boundaries have {ends.size + 1} values between them, {rates.size} are given")

    def schedule(i):
        return rates[np.sum(i > ends)]
    return schedule


# gradients and states

def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all entries together.

    >>> float(l2_norm([np.array([3.0]), {"w": np.array([4.0])}]))
    5.0
    """
    return global_norm(tree)


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """The gradients, scaled down to l2_norm max_norm if theirs is larger.

    >>> clip_grads([np.array([3.0, 4.0])], 1.0)
    [array([0.6, 0.8])]
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: np.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """The state of one array, as a leaf of a tree like the parameters."""

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree like the parameters, with a JoinPoint for each array, for example to save it.

    >>> unpack_optimizer_state(momentum(0.1, 0.9)[0]({"w": np.ones(1)}))["w"].subtree
    (array([1.]), array([0.]))
    """
    return tree_unflatten(opt_state.tree_def, [JoinPoint(kept) for kept in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of unpack_optimizer_state.  TypeError if a leaf is not a JoinPoint."""
    points, treedef = tree_flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("each leaf must be a JoinPoint")
    return _packed([point.subtree for point in points], treedef)
