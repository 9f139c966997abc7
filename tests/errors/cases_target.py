"""gs.jit for a device: targets that there are not, arguments and functions that the device has not."""
import numpy as np
from errors.cases import refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, RuleError, TransformError


@refused(KindError)
def target_that_there_is_not():
    gs.jit(lambda x: x, target="tpu")


@refused(KindError)
def cores_for_a_device():
    gs.jit(lambda x: x, target="cuda", parallel=True)


@refused(KindError)
def graph_for_the_processor():
    gs.jit(lambda x: x, graph=True)


@refused(RuleError)
def generator_for_a_device():
    gs.jit(lambda rng: rng.standard_normal(3), target="cuda")(np.random.default_rng(0))


@refused(TransformError)
def function_that_is_no_kernel():
    from scipy import special

    def f(x):
        return special.jv(2, x)
    gs.jit(f, target="cuda")(np.ones(3))
