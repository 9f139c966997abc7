"""gs.lax, with a few words for which NumPy has its own."""
import enum
import sys

import numpy as np

import gradscribe as gs
from jax.inside import Absent, Module

linalg = sys.modules["jax.lax.linalg"] = Module("jax.lax.linalg")
vars(linalg).update({name: getattr(gs.lax.linalg, name) for name in gs.lax.linalg.__all__})
broadcast_shapes, empty, dtype = np.broadcast_shapes, np.empty, np.result_type


class Precision(enum.Enum):
    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class GatherScatterMode:
    """The modes are words."""

    CLIP, FILL_OR_DROP, PROMISE_IN_BOUNDS, ONE_HOT = "clip", "fill", "promise_in_bounds", "one_hot"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(gs.lax, name) if name in dir(gs.lax) else Absent(f"jax.lax.{name}")
