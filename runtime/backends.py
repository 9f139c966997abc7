# SPDX-License-Identifier: Apache-2.0
"""The names of the back ends that kernels run on, and the back end of a user's kernel."""
BACKENDS = ("cuda", "mlir", "simulator", "twin", "plain", "ptx")
TWINS = ("twin", "plain", "ptx")        # on the processor, with blocks of one thread


def backend_of(value):
    """Which of BACKENDS a kernel of `@cuda.jit` is for; None if the value is not a kernel.

    >>> backend_of(len)
    """
    kind, module = type(value).__name__, type(value).__module__
    if kind == "CUDADispatcher" and not value.targetoptions.get("device"):
        return "mlir" if module.startswith("numba_cuda_mlir") else "cuda"
    if kind == "FakeCUDAKernel" and not value._device:
        return "simulator"
    if kind == "Kernel" and module.startswith("gradscribe.runtime."):
        return value.backend if hasattr(value, "backend") else "ptx" if hasattr(
            value, "architecture") else "twin" if value.compiled else "plain"
    return None


def function_of(kernel):
    """The Python function that a kernel was made from."""
    return next(f for f in (getattr(kernel, n, None) for n in ("py_func", "fn", "function")) if f is not None)
