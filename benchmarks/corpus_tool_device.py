"""What tests/corpus/check.py calls: gradients for a device, whose kernels are run as plain Python."""
import gradscribe as gs
from gradscribe.runtime import device

device.use("plain")


def grad(f, argnums):
    return gs.jit(gs.grad(f, argnums), target="cuda")
