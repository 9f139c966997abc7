"""gs.tree_util."""
from gradscribe import tree_util
from jax.inside import Absent

globals().update({name: value for name, value in vars(tree_util).items() if not name.startswith("_")})


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"jax.tree_util.{name}")
