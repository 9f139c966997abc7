"""The names that the table answers for, and calls of them: samples of rules, and one line for what is no rule.

Names are those of numpy, numpy.linalg, numpy.fft, math and scipy.special that have a counterpart in the JAX that is
installed, those of scipy.stats and scipy.signal that have a record too, the methods and attributes of its arrays, and
the operators.
"""
import inspect
import itertools
import linecache
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.rule import RULES, STATIC_ARGUMENTS

_count = itertools.count()
OPERATORS = ("add sub mul truediv floordiv mod pow matmul neg pos abs invert eq ne lt le gt ge and_ or_ xor lshift "
             "rshift getitem").split()


def names():
    """-> {name: (function or None, JAX's or None)}, in order; methods and attributes have no function."""
    import jax
    import jax.numpy as jnp
    import jax.scipy.special
    import scipy.special
    found = {}
    for label, ours, theirs in (("np", np, jnp), ("np.linalg", np.linalg, jnp.linalg), ("np.fft", np.fft, jnp.fft),
                                ("scipy.special", scipy.special, jax.scipy.special)):
        for name in sorted(vars(theirs) if label != "np" else dir(theirs)):
            function = getattr(ours, name, None)
            if not name.startswith("_") and callable(function) and not inspect.isclass(function):
                found[f"{label}.{name}"] = function, getattr(theirs, name)
    found.update(of_scipy())
    counterparts = {"lgamma": jax.scipy.special.gammaln, "gamma": jax.scipy.special.gamma,
                    "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc, "fabs": jnp.fabs,
                    "remainder": None}                      # to the nearest multiple: JAX has NumPy's
    for name in sorted(vars(math)):
        if not name.startswith("_") and callable(getattr(math, name)):
            found[f"math.{name}"] = getattr(math, name), counterparts.get(name, getattr(jnp, name, None))
    for name in OPERATORS:
        found[f"operator.{name}"] = getattr(operator, name), getattr(operator, name)
    for name in sorted(set(dir(np.ndarray)) & set(dir(jax.Array))):
        if not name.startswith("_"):
            found[f"ndarray.{name}"] = None, None
    return found


def of_scipy():
    """Methods of scipy.stats and functions of scipy.signal that JAX has too, as far as there are records."""
    import jax.scipy.signal
    import jax.scipy.stats
    import scipy.signal
    import scipy.stats
    holders = {f"scipy.stats.{n}": (getattr(scipy.stats, n, None), module)
               for n, module in sorted(vars(jax.scipy.stats).items()) if inspect.ismodule(module)}
    found = {}
    for label, (ours, theirs) in {**holders, "scipy.signal": (scipy.signal, jax.scipy.signal)}.items():
        for name in sorted(vars(theirs)):
            function = getattr(ours, name, None)
            if not name.startswith("_") and function is not None and function in RULES:
                one_triangle = label == "scipy.stats.multivariate_normal"       # JAX takes the mean of both
                found[f"{label}.{name}"] = function, None if one_triangle else getattr(theirs, name)
    return found


def from_text(text, name, namespace=None):
    """A function of a text, whose source can be read."""
    file = f"<call {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np, "math": math, "__name__": "calls", **(namespace or {})}
    exec(compile(text, file, "exec"), space)
    return space[name]


def call_of(function, args, kwargs):
    """A function whose body is one call: arrays and numbers are its parameters, what must be known is written out."""
    given, space = [], {"function": function}
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


def samples_of(rule, seed=7):
    return rule.samples(np.random.default_rng(seed)) if rule.samples is not None else []


def leaves(value):
    """Arrays and numbers of a tree, in order."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value
