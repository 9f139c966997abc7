"""From a seed to a program and its arguments, and programs that run."""
import ast
import collections
import contextlib
import copy
import linecache
import math
import os
import random
import signal
import sys
import warnings

import numpy as np
from fuzz_full import Full
from fuzz_loops import Loops
from fuzz_memory import Memory
from fuzz_plain import Tup, Writer, is_shape
from fuzz_reference import steady, unflat
from fuzz_regions import Regions
from fuzz_wide import Wide

WRITERS = {"plain": Writer, "wide": Wide, "full": Full, "memory": Memory, "loops": Loops, "regions": Regions}
MIXED = [name for name in WRITERS if name != "regions"]
Case = collections.namedtuple("Case", "seed source args argnums extra dtype family")


def draw(shape_tree, rng):
    if is_shape(shape_tree):
        x = rng.standard_normal(shape_tree) * 0.6
        return x if shape_tree else float(x)
    if isinstance(shape_tree, dict):
        return {k: draw(v, rng) for k, v in shape_tree.items()}
    return (tuple if isinstance(shape_tree, Tup) else list)(draw(v, rng) for v in shape_tree)


def family_of(seed, family):
    return MIXED[seed % len(MIXED)] if family == "mixed" else family


def make(seed, family="plain"):
    """The program of a seed: the first drawn that runs and stays tame. Each family has its own."""
    family = family_of(seed, family)
    r = random.Random(seed if family == "plain" else f"{family} {seed}")
    for attempt in range(60):
        writer = WRITERS[family](r)
        try:
            source, tree, extra = writer.program()
        except (RecursionError, IndexError):
            continue
        rng = np.random.default_rng(seed)
        args = [draw(t, rng) for t in tree.values()]
        dtype = r.choice(["float64", "float64", "float64", "float32"])
        extra = {k: np.array(v) if isinstance(v, list) else v for k, v in extra.items()}
        case = Case(seed, source, args, tuple(range(len(args))), extra, dtype, family)
        if len(source) > 6000:
            continue
        try:
            with deadline(2), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = compiled(case)["f"](*copy.deepcopy(args), **extra)
        except (ZeroDivisionError, OverflowError, FloatingPointError):
            continue
        except Exception as e:          # no program that NumPy runs: another is drawn; FUZZ_STRICT tells
            if os.environ.get("FUZZ_STRICT"):
                print(seed, attempt, type(e).__name__, e, file=sys.stderr)
                print(source, file=sys.stderr)
            continue
        if steady(value, 1e3) and (family == "memory" or np.ndim(value) == 0):
            return case
    raise RuntimeError(f"no program for seed {seed}")


def register(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return compile(source, name, "exec")


class ComplexBuffers:
    """NumPy through which a complex step comes: new arrays are complex unless a dtype is named, nothing is conjugated
    and no number loses its imaginary part.
    """

    def __getattr__(self, name):
        if name == "vdot":
            return lambda a, b: np.dot(np.ravel(a), np.ravel(b))
        if name == "float64":
            return number
        fn = getattr(np, name)
        if name not in ("zeros", "ones", "full", "eye", "linspace", "zeros_like", "ones_like", "full_like"):
            return fn
        return lambda *args, **named: fn(*args, **named) if "dtype" in named else fn(*args, **named).astype(complex)


class Number:
    """float, and np.float64, for complex steps."""
    dtype = np.dtype(complex)

    def __call__(self, x):
        return x if np.iscomplexobj(x) else float(x)


number = Number()


def compiled(case, source=None, numpy=np):
    space = {"np": numpy, "math": math, "__name__": f"program_{case.seed}"}
    if numpy is not np:
        space["float"] = number
    if "gs." in case.source:
        import gradscribe
        space["gs"] = gradscribe
    named = f"<program {case.seed}>" if source in (None, case.source) else f"<reference of program {case.seed}>"
    exec(register(source or case.source, named), space)
    return space


class SpreadsByFunction(ast.NodeTransformer):
    """a.std(...) as np.std(a, ...), which the reference watches."""

    def visit_Call(self, node):
        self.generic_visit(node)
        by = node.func
        if isinstance(by, ast.Attribute) and by.attr == "std" and ast.unparse(by.value) != "np":
            node.func, node.args = ast.Attribute(ast.Name("np", ast.Load()), "std", ast.Load()), [by.value, *node.args]
        return node


def of_a_vector(case):
    """The program as a function of all its numbers in a row."""
    source = case.source if ".std(" not in case.source else ast.unparse(ast.fix_missing_locations(
        SpreadsByFunction().visit(ast.parse(case.source))))
    f, g = compiled(case, source)["f"], compiled(case, source, numpy=ComplexBuffers())["f"]
    return lambda x: (g if np.iscomplexobj(x) else f)(*copy.deepcopy(unflat(case.args, x)), **case.extra)


@contextlib.contextmanager
def deadline(seconds):
    def stop(signum, frame):
        raise TimeoutError(f"over {seconds} s")
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
