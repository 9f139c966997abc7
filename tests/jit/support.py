"""From a function to its compiled form, without the face; and samples of rules as small functions."""
import itertools
import linecache

import numpy as np

from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.calls import STATIC_ARGUMENTS
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.codegen.jit_cpu import compile_function

_count = itertools.count()


def leaves(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def is_dynamic(value):
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex))


def compiled(function, *args):
    """A plain function compiled for arguments like these."""
    names = list(function.__code__.co_varnames[:function.__code__.co_argcount])
    pipeline = Pipeline(unroll=True)
    form = pipeline.normal_form(function, names, [describe(a, n) for a, n in zip(args, names)], {}, function.__name__)
    form.label = function.__name__
    return compile_function(pipeline.finished(form), pipeline.reader.captured)


def transformed(function, *args):
    """A transformed function compiled for arguments like these."""
    names = function.parameter_names(len(args))
    form, pipeline = function.normal_form(names, [describe(a, n) for a, n in zip(args, names)], {}, unroll=True)
    return compile_function(form, pipeline.reader.captured)


def run(made, *args):
    return made(*(a for a in leaves(args) if is_dynamic(a)))


def from_text(text, name, namespace=None):
    file = f"<test {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np, "__name__": "test", **(namespace or {})}
    exec(compile(text, file, "exec"), space)
    return space[name]


def call_of(function, args, kwargs):
    """A function whose body is one call: arrays and numbers are its parameters, what must be known is written out."""
    given, inside, space = [], [], {"function": function}

    bound = RULES[function].signature.bind(*args, **kwargs).arguments if function in RULES else {}
    fixed = [v for k, v in bound.items() if k in STATIC_ARGUMENTS]

    def argument(value):
        number = isinstance(value, (np.generic, float, complex)) and not isinstance(value, np.bool_)
        if isinstance(value, np.ndarray) or number and not any(value is v for v in fixed):
            given.append(value)
            return f"a{len(given) - 1}"
        if isinstance(value, (list, tuple)) and any(isinstance(v, (np.ndarray, float)) for v in value):
            items = ", ".join(argument(v) for v in value)
            return f"[{items}]" if isinstance(value, list) else f"({items},)"
        space[f"c{len(space)}"] = value
        return f"c{len(space) - 1}"
    inside = [argument(a) for a in args] + [f"{k}={argument(v)}" for k, v in kwargs.items()]
    text = f"def call({', '.join(f'a{k}' for k in range(len(given)))}):\n    return function({', '.join(inside)})\n"
    return from_text(text, "call", space), given


def same(got, wanted):
    """Values, shapes and dtypes agree."""
    got, wanted = list(got), list(leaves(wanted))
    if len(got) != len(wanted):
        return f"{len(got)} results for {len(wanted)}"
    for a, b in zip(got, wanted):
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype != y.dtype:
            return f"dtype {x.dtype} for {y.dtype}"
        if x.shape != y.shape:
            return f"shape {x.shape} for {y.shape}"
        tight = 2e-4 if x.dtype in (np.float32, np.complex64) else 1e-9
        if not np.allclose(x, y, rtol=tight, atol=tight, equal_nan=True):
            return f"{x} for {y}"
    return ""
