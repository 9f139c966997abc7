"""gs.random."""
import gradscribe as gs
from jax.inside import Absent


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(gs.random, name) if name in dir(gs.random) else Absent(f"jax.random.{name}")
