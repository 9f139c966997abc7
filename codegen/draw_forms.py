# SPDX-License-Identifier: Apache-2.0
"""Lowering of random draws for Numba: generators, and those of their methods that give the same numbers as NumPy's.

Numba has its own state for np.random: it would give other numbers and would not advance NumPy's stream.  Functions of
np.random are therefore refused.  So are methods of generators whose numbers differ by more than rounding, or that use
an amount of the stream that depends on rounded numbers.  NumPy makes a generator that the function creates, at each
call.
"""
import numpy as np

from gradscribe.ast_transform.core.draw import BITS
from gradscribe.ast_transform.core.form import Const, Let
from gradscribe.ast_transform.core.kinds import Array, Stream
from gradscribe.ast_transform.reader.draws import GENERATOR, arguments, parameters
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.codegen.assignments import assign
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, node
from gradscribe.codegen.lowered import Lowering, is_none, shape

SAME = frozenset(
    "random standard_normal standard_exponential standard_cauchy normal uniform exponential weibull power pareto "
    "laplace logistic lognormal rayleigh triangular poisson binomial negative_binomial zipf geometric logseries "
    "integers permutation".split())
SINGLE = ("random", "standard_normal", "standard_exponential")      # also in single precision
PASS = "Pass a np.random.Generator as an argument."


def draw_statement(lowering: Lowering, step: Let) -> None:
    """name = rng.normal(...)"""
    function, value, target = step.value.function, step.value, step.targets[0]
    if isinstance(target.fact, Stream):
        stream_statement(lowering, function, value, target)
        return
    if function.owner is None or function.owner is not GENERATOR:
        refuse(lowering, f"{function.label} in compiled code would draw from a stream that is not NumPy's", PASS)
    if function.name not in SAME:
        refuse(lowering, f"{function.label} gives other numbers in compiled code, or has no form there",
               "Draw outside and pass the numbers as an argument.")
    bound = arguments(value)
    given = parameters(bound)
    if not all(is_none(v) or isinstance(f, Array) and not f.dims for v in given.values() for f in [lowering.fact(v)]):
        refuse(lowering, f"{function.label} takes numbers only in compiled code, no arrays",
               "Draw standard numbers and transform them, or draw outside.")
    dtype = bound.get("dtype", Const(None)).value
    single = dtype is not None and np.dtype(dtype) == np.float32
    others = [k for k in ("axis", "method", "endpoint") if k in bound and bound[k].value not in (0, "zig")]
    if others or dtype is not None and not (single and function.name in SINGLE) and \
            np.dtype(dtype) not in (np.float64, np.int64):
        refuse(lowering, f"{function.label}: {', '.join(others) or 'dtype'} has no form in compiled code",
               "Leave it out, or draw outside.")
    words = {k: lowering.scalar(v) for k, v in given.items()}
    if function.name == "integers" and ("high" not in given or is_none(given["high"])):
        words = {"low": ZERO, "high": words["low"]}
    size, dims = bound.get("size"), []
    if size is not None and not is_none(size):
        dims = lowering.lengths(size)
        words["size"] = shape(dims)
    if single:
        words["dtype"] = node(np.float32)
    if function.name == "permutation":
        dims = lowering.lengths(bound["x"])
    first = (words.pop("x"),) if "x" in words else ()
    keywords = tuple([loops.Keyword(k, v) for k, v in words.items()])
    drawn = loops.Method(node(lowering.naming[value.args[0]]), function.name, first, keywords)
    if not dims:
        lowering.set(lowering.naming.names.get(target) or lowering.fresh("drawn"), drawn)
        return
    name = lowering.fresh("drawn")
    lowering.set(name, drawn)
    assign(lowering, target, lowering.made(name, dims, np.dtype(target.fact.dtype)), False)


def stream_statement(lowering, function, value, target):
    """rng = np.random.default_rng(seed); a bit generator is made together with the one generator that uses it."""
    if lowering.for_threads:
        refuse(lowering, "a device cannot create random generators",
               "Draw outside and pass the numbers as an argument, or use gs.random.")
    given = [*value.args, *(a for _, a in value.kwargs)]
    if target.fact.cls in BITS and len(given) == 1 and _is_count(lowering.fact(given[0])):
        seed = lowering.fresh("seed")
        lowering.set(seed, lowering.scalar(given[0]))
        lowering.program.bits[target] = function.name, seed
        return
    made = None
    if target.fact.cls is GENERATOR and len(given) == 1:
        made = ("PCG64", lowering.scalar(given[0])) if _is_count(lowering.fact(given[0])) else \
            lowering.program.bits.pop(given[0], None)
    if made is None:
        refuse(lowering, f"{function.label} of this seed, or of bits that another draws from, has no form in compiled "
               "code", PASS)
    lowering.say("{} = generator_of({}, {})", lowering.naming[target], loops.Const(made[0]), made[1])


def _is_count(seed):
    return isinstance(seed, Array) and not seed.dims and seed.kind in "iu"


def refuse(lowering, reason, advice):
    raise LanguageError(reason, lowering.origin, advice)
