"""From a function to its compiled form, without the face; and samples of rules as small functions."""
import numpy as np
from rule_calls import leaves

from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.codegen.jit_cpu import compile_function


def is_dynamic(value):
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex))


def compiled(function, *args):
    """A plain function compiled for arguments like these."""
    names = list(function.__code__.co_varnames[:function.__code__.co_argcount])
    pipeline = Pipeline(unroll=True)
    form = pipeline.normal_form(function, names, [describe(a, n) for a, n in zip(args, names)], {}, function.__name__)
    form.label = function.__name__
    return compile_function(pipeline.finished(form), pipeline.reader.environment.captured)


def transformed(function, *args):
    """A transformed function compiled for arguments like these."""
    names = function.parameter_names(len(args))
    form, pipeline = function.normal_form(names, [describe(a, n) for a, n in zip(args, names)], {}, unroll=True)
    return compile_function(form, pipeline.reader.environment.captured)


def run(made, *args):
    return made(*(a for a in leaves(args) if is_dynamic(a)))


def same(got, wanted):
    """Values, shapes and dtypes agree."""
    got, wanted = list(got), list(leaves(wanted))
    if len(got) != len(wanted):
        return f"{len(got)} results for {len(wanted)}"
    for a, b in zip(got, wanted):
        if a is None and b is None:
            continue                    # what has no adjoint
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype != y.dtype:
            return f"dtype {x.dtype} for {y.dtype}"
        if x.shape != y.shape:
            return f"shape {x.shape} for {y.shape}"
        tight = 2e-4 if x.dtype in (np.float32, np.complex64) else 1e-9
        if not np.allclose(x, y, rtol=tight, atol=tight, equal_nan=True):
            return f"{x} for {y}"
    return ""
