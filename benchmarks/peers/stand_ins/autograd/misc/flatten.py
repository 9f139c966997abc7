"""A container of numbers and arrays as a vector."""
import numpy as np

import gradscribe as gs


def flatten(value):
    """(vector, the way back)."""
    y, pull = gs.vjp(_vector, value)
    return y, lambda dy: pull(dy)[0]


def _vector(value):
    leaves = [np.ravel(leaf) for leaf in gs.tree_util.tree_leaves(value)]
    return np.concatenate(leaves) if leaves else np.zeros(0)
