"""What tests/corpus/check.py calls: gradients for a device, whose kernels are run as plain Python.

python tests/corpus/check.py benchmarks/corpus_tool_device.py
NUMBA_ENABLE_CUDASIM=1 GRADSCRIBE_CUDA=simulator python tests/corpus/check.py ...       in Numba's simulator
GRADSCRIBE_CUDA=twin ...    compiled for the processor;     GRADSCRIBE_CUDA=cuda ...    on a device
"""
import os

import gradscribe as gs
from gradscribe.runtime import device

device.use(os.environ.get("GRADSCRIBE_CUDA", "plain"))


def grad(f, argnums):
    compiled = gs.jit(gs.grad(f, argnums), target="cuda")
    return lambda *args, **words: on_host(compiled(*args, **words))


def on_host(value):
    """A result whose arrays are NumPy's."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(on_host, value))
    if isinstance(value, dict):
        return {k: on_host(v) for k, v in value.items()}
    return value.get() if hasattr(value, "__cuda_array_interface__") else value
