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
    return gs.jit(gs.grad(f, argnums), target="cuda")
