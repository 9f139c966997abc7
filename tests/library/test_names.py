"""What is said of names of JAX that are not here."""
import numpy as np
import pytest

import gradscribe as gs


@pytest.mark.parametrize("module,name,says", [
    (gs, "block_until_ready", "nothing is asynchronous; leave it out"),
    (gs, "device_put", "use the array itself, or np.asarray(x); arrays are NumPy's, in the host's memory"),
    (gs, "numpy", "use import numpy as np; NumPy itself; coverage.md lists what has rules"),
    (gs.lax, "broadcast_shapes", "use np.broadcast_shapes"),
    (gs.lax.linalg, "qdwh", "use scipy.linalg.polar"),
    (gs.random, "key_dtype", "use np.uint32; keys are plain arrays of two numbers"),
    (gs.custom_derivatives, "linear_call", "use gs.custom_vjp; a linear function and its transpose are one with a "
     "reverse rule"),
])
def test_instead(module, name, says):
    said = f"module {module.__name__!r} has no attribute {name!r}: {says}"
    with pytest.raises(AttributeError) as error:
        getattr(module, name)
    assert str(error.value) == said

    assert not hasattr(module, name)


def test_inside_a_function():
    with pytest.raises(gs.LanguageError, match="nothing is asynchronous; leave it out"):
        gs.grad(lambda x: gs.block_until_ready(x))(1.0)


def test_other_names():
    for module in (gs, gs.lax, gs.nn, gs.random, gs.tree_util, gs.tree, gs.lax.linalg):
        with pytest.raises(AttributeError) as error:
            module.nonsense()
        assert str(error.value) == f"module {module.__name__!r} has no attribute 'nonsense'"


def test_attributes_of_arrays():
    for f in (lambda x: np.sum(x.at[0].set(1.0)), lambda x: np.sum(x).block_until_ready()):
        for make in (gs.grad, gs.jit):
            with pytest.raises(gs.LanguageError, match="an array has no attribute (at|block_until_ready)"):
                make(f)(np.ones(2))
