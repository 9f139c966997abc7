"""gs.jit for a device: targets that there are not, arguments and functions that the device has not."""
from unittest import mock

import numpy as np
from errors.cases import refused
from ml_dtypes import bfloat16

import gradscribe as gs
from gradscribe import lax
from gradscribe.ast_transform.source.diagnose import KindError, LaunchError, OutOfMemory, RuleError, TransformError
from gradscribe.runtime import twin


@refused(KindError)
def target_that_there_is_not():
    gs.jit(lambda x: x, target="tpu")


@refused(KindError)
def cores_for_a_device():
    gs.jit(lambda x: x, target="cuda", parallel=True)


@refused(KindError)
def graph_for_the_processor():
    gs.jit(lambda x: x, graph=True)


@refused(KindError)
def fewer_bits_for_the_processor():
    gs.jit(lambda x: x, tf32=True)


@refused(KindError)
def one_order_for_the_processor():
    gs.jit(lambda x: x, deterministic=True)


@refused(KindError)
def no_checks_on_the_processor():
    gs.jit(lambda x, k: x[k], check_bounds=False)


@refused(TransformError)
def sums_whose_number_is_not_known():
    def f(x, k):
        z, y = np.zeros(7), np.zeros(90)
        for i in range(90):
            y[i] = x[i]
            while y[i] > 0.1:
                z[k[i]] += y[i]
                y[i] = y[i] * 0.5
        return z
    gs.jit(f, target="cuda", deterministic=True)(np.ones(90), np.arange(90) % 7)


@refused(RuleError)
def generator_for_a_device():
    gs.jit(lambda rng: rng.standard_normal(3), target="cuda")(np.random.default_rng(0))


@refused(TransformError)
def function_that_is_no_kernel():
    from scipy import special

    def f(x):
        return special.jv(2, x)
    gs.jit(f, target="cuda")(np.ones(3))


@refused(TransformError)
def function_of_complex_numbers_that_is_no_kernel():
    from scipy import special
    gs.jit(lambda x: special.erf(x * 1j), target="cuda")(np.ones(3))


@refused(OutOfMemory)
def no_memory_on_the_device():
    def f(x, n):
        y = np.tanh(x)
        z = np.zeros((n, n, n))
        z[0, 0] = y[0]
        return np.sum(z) + np.sum(y)
    gs.jit(f, target="cuda")(np.ones(4), 200000)


@refused(TransformError)
def kernel_that_numba_does_not_compile():
    from numba.core.errors import TypingError

    def f(x):
        y = np.tanh(x)
        return np.sum(y * x[::-1])

    def run(kernel, x, y, z, *args):
        code = kernel.function.__code__
        raise TypingError(f'No such function\n\nFile "{code.co_filename}", line {code.co_firstlineno + 4}:')
    with mock.patch.object(twin.Kernel, "run", run):
        gs.jit(f, target="cuda")(np.ones(40))


@refused(KindError)
def platform_that_there_is_not():
    lax.platform_dependent(np.ones(2), tpu=np.sin)


@refused(KindError)
def platform_without_a_function():
    lax.platform_dependent(np.ones(2), cuda=np.sin)


@refused(KindError)
def platform_without_a_function_inside():
    def f(x):
        return np.sum(lax.platform_dependent(x, cuda=np.sin))
    gs.grad(f)(np.ones(2))


@refused(RuleError)
def neighbours_of_numbers_in_half_precision():
    def f(x):
        return np.nextafter(x, np.float16(9))
    gs.jit(f, target="cuda")(np.ones(3, np.float16))


@refused(LaunchError)
def kernel_at_which_the_device_stops():
    class CudaAPIError(Exception):
        """As Numba's driver has it."""

    def f(x):
        y = np.tanh(x)
        return np.cumsum(y) * 2

    def run(self, x, y, z, *args):
        raise CudaAPIError("[719] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED")
    with mock.patch.object(twin.Kernel, "run", run):
        gs.jit(f, target="cuda")(np.ones(40))


SHORT = np.ones(3, bfloat16)


@refused(RuleError)
def float16_among_bfloat16():
    gs.jit(lambda x: np.sum(x.astype(np.float16)), target="cuda")(SHORT)


@refused(RuleError)
def bfloat16_from_outside():
    gs.jit(lambda x: x * SHORT, target="cuda")(SHORT)


@refused(RuleError)
def name_of_bfloat16():
    gs.jit(lambda x: x if x.dtype.name == "float32" else -x, target="cuda")(SHORT)


@refused(RuleError)
def reach_of_bfloat16():
    gs.jit(lambda x: x / (np.finfo(x.dtype).eps + x), target="cuda")(SHORT)


@refused(KindError)
def two_formats_of_16_bits():
    gs.jit(lambda x, y: x + y, target="cuda")(SHORT, SHORT.astype(np.float16))
