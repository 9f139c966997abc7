# SPDX-License-Identifier: Apache-2.0
"""Random numbers: calls of generators and of np.random come in; one statement with a `Draw` each comes out.

The fact of a result is found without drawing from the user's generator: lengths come from `size` or the parameters,
dtypes from a draw of a separate generator.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, rng):\\n    noise = rng.standard_normal(x.shape)\\n    rng.random()\\n    return x + noise"
>>> made = form(text, np.ones(3), np.random.default_rng(0))
>>> print(show(made))
f(x, rng):
    n_0 = shape_of(x, 0)
    noise = standard_normal(rng, (n_0))
    random = random(rng)
    z = x + noise
    return z
"""
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.draw import BITS, STREAMS, draw
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Var
from gradscribe.ast_transform.core.kinds import UNIT, WEAK, Array, Length, Opaque, Sequence, Stream, unify, unknown
from gradscribe.ast_transform.passes.described import Unfit, fact_of
from gradscribe.ast_transform.passes.types import broadcast
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.calls import attribute_of_value, call_known_function, understood
from gradscribe.ast_transform.reader.dispatch import SPECIAL, late
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.memory import replace_all
from gradscribe.ast_transform.reader.methods import array_of, isinstance_of_value, method_of_value, print_effect
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.operands import as_operand, known_value, pack, python_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Method, Struct
from gradscribe.ast_transform.reader.views import is_array
from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError, ShapeError

GENERATOR, STATE = np.random.Generator, np.random.RandomState
ENTRYWISE = frozenset(              # one draw for each entry of the broadcast parameters
    "random random_sample standard_normal standard_exponential standard_gamma standard_cauchy standard_t normal "
    "uniform exponential gamma beta chisquare f noncentral_f noncentral_chisquare vonmises pareto weibull power "
    "laplace gumbel logistic lognormal rayleigh wald triangular binomial negative_binomial poisson zipf geometric "
    "hypergeometric logseries integers randint".split())
ROWS = {"multivariate_normal": "mean", "multinomial": "pvals", "dirichlet": "alpha",
        "multivariate_hypergeometric": "colors"}        # one draw is a row as long as this parameter
OTHERS = frozenset("rand randn choice permutation permuted shuffle seed".split())
KNOWN = ENTRYWISE | set(ROWS) | OTHERS
LITERAL = frozenset("dtype replace axis shuffle endpoint method check_valid tol out".split())
ADVICE = "Draw outside the function and pass the numbers as an argument."
_GLOBAL = {getattr(np.random, n): n for n in dir(np.random)
           if getattr(getattr(np.random, n), "__self__", None) is np.random.mtrand._rand}
_GLOBAL |= {np.random.seed: "seed", np.random.ranf: "random_sample", np.random.sample: "random_sample"}
_MAKERS: dict = {np.random.default_rng: GENERATOR, GENERATOR: GENERATOR, STATE: STATE, **{b: b for b in BITS}}
_SAFE = {"binomial": (5, 0.5), "negative_binomial": (5, 0.5), "hypergeometric": (5, 5, 5), "zipf": (2.0,),
         "triangular": (0.0, 0.5, 1.0), "integers": (5,), "randint": (5,), "choice": (5,)}


@late
def read_attribute(reader: Reader, value: Any, name: str, node: gast.AST | None) -> Any:
    if not isinstance(value, Var) or not isinstance(value.fact, Stream):
        return attribute_of_value(reader, value, name, node)
    cls = value.fact.cls
    if cls not in (GENERATOR, STATE) or not hasattr(cls, name):
        fail(reader, LanguageError, f"a {cls.__name__} has no attribute {name} that is understood", node,
             "Draw from a generator: np.random.default_rng(bits).")
    if name not in KNOWN:
        fail(reader, LanguageError, f"{cls.__name__}.{name} is not understood", node, ADVICE)
    return Method(value, name)


@late
def call_method(reader: Reader, value, name, args, words, node):
    if isinstance(value, Var) and isinstance(value.fact, Stream):
        return understood(
            reader, partial(call_draw, reader), f"{value.fact.cls.__name__}.{name}", value, name, args, words, node
        )
    return method_of_value(reader, value, name, args, words, node)


@late
def call_known(reader: Reader, function: Callable, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    try:
        name, cls = _GLOBAL.get(function), _MAKERS.get(function)
    except TypeError:
        name = cls = None
    if cls is not None:
        return understood(reader, partial(generator, reader), function.__name__, function, cls, args, words, node)
    holder = getattr(function, "__self__", None)
    if name is None and type(holder) in STREAMS and isinstance(function, types.MethodType):
        return call_method(reader, lift(reader, holder, "rng"), function.__name__, args, words, node)
    if name is None:
        return call_known_function(reader, function, args, words, node)
    if name not in KNOWN:
        fail(reader, LanguageError, f"np.random.{name} is not understood", node, ADVICE)
    return understood(reader, partial(call_draw, reader), f"np.random.{name}", None, name, args, words, node)


def generator(reader: Reader, function, cls, args, words, node):
    """The value of a call that makes a generator: a new stream at each call."""
    given = [settle(reader, a) for a in [*args, *words.values()]]
    streams = [g for g in given if isinstance(g, Var) and isinstance(g.fact, Stream)]
    if function is np.random.default_rng and streams and streams[0].fact.cls is GENERATOR:
        return streams[0]
    if function is np.random.default_rng and streams and streams[0].fact.cls not in BITS:
        fail(reader, LanguageError, f"default_rng of {spelled_value(reader, streams[0])} is not understood", node,
             "Pass a np.random.Generator as an argument.")
    operands = [as_operand(reader, g) for g in given]
    seeded = bool(given) and all(map(is_seed, given))
    start = reader.draws.drawn if seeded else reader.draws.seeded.get(streams[0]) if streams else None
    has_drawn(reader, streams[0] if streams else None, seeded)
    made = reader.build.let("rng" if cls in (GENERATOR, STATE) else "bits", Apply(
        draw(None, function.__name__), tuple(operands[:len(args)]),
        tuple(zip(words, operands[len(args):]))), Stream(cls))
    if start is not None:
        reader.draws.seeded[made] = start
    return made


def has_drawn(reader: Reader, stream, seeded=False):
    """Record a draw from a stream (None: the global one), or the start of a seeded stream."""
    reader.draws.begun[reader.draws.drawn] = math.inf if seeded else reader.draws.seeded.get(stream, -1)
    reader.draws.drawn, reader.draws.drawn_at = reader.draws.drawn + 1, reader.build.origin


def call_draw(reader: Reader, holder, name, args, words, node):
    owner = None if holder is None else holder.fact.cls
    function, cls = draw(owner, name), owner or STATE
    bound = {k: drawn_from(reader, v, k, function, node) for k, v in _bound(cls, name, args, words).items()}
    if name == "shuffle":
        return shuffled(reader, holder, bound, node)
    has_drawn(reader, holder)
    positional = list(bound["args"].items) if "args" in bound else \
        [bound[k] for k in list(_parameters(cls, name))[:len(args)]]
    value = Apply(function, (*([] if holder is None else [holder]), *positional),
                  tuple((k, bound[k]) for k in words))
    try:
        fact = result_fact(cls, name, bound)
    except Unfit as error:
        fail(reader, ShapeError, f"{function.label}: {error}", node)
    out = reader.build.let(name, value, fact)
    return Const(None) if isinstance(fact, Opaque) else out


def drawn_from(reader: Reader, value, name, function, node):
    """An argument of a draw as an operand."""
    if isinstance(value, tuple):
        return Pack("tuple", tuple(drawn_from(reader, v, "size", function, node) for v in value))
    value = settle(reader, value)
    if name == "out" and not (isinstance(value, Const) and value.value is None):
        fail(reader, LanguageError, f"{function.label}: out is not understood", node, "Assign the result.")
    if function.name == "shuffle" and name == "x" and not is_array(value):
        fail(
            reader,
            LanguageError,
            f"shuffle of {spelled_value(reader, value)} is not understood",
            node,
            "Shuffle an array.",
        )
    if name in LITERAL:
        return Const(known_value(reader, value, f"{name} of {function.label}", node))
    if isinstance(value, Struct) and value.kind in ("list", "tuple"):
        plain = name == "size" or all(isinstance(i, Const) and type(i.value) in WEAK for i in value.items)
        value = pack(reader, value) if plain else array_of(reader, value, node)
    fact = fact_of(value) if isinstance(value, Var | Const | Pack) else None
    if name == "seed" or isinstance(value, Const) and value.value is None or isinstance(value, Pack) or \
            isinstance(fact, Array):
        return as_operand(reader, value)
    fail(
        reader, RuleError, f"{function.label}: {name} is {spelled_value(reader, value)}, which is not understood", node
    )


def shuffled(reader: Reader, holder, bound, node):
    """rng.shuffle(x): x[...] = x[rng.permutation(len(x))], which consumes the same random numbers."""
    x, axis = bound["x"], bound.get("axis", Const(0)).value
    axis = axis % x.fact.rank
    order = call_draw(reader, holder, "permutation", [reader.build.length(x, axis)], {}, node)
    index = order if not axis else Pack("tuple", (*[Const(slice(None))] * axis, order))
    replace_all(reader, x, reader.build.item(x, index), node)
    return Const(None)


@contextmanager
def refuse_draws(reader: Reader, what: str, node: gast.AST | None) -> Iterator[Any]:
    before = reader.draws.drawn
    yield
    if reader.draws.drawn != before:
        fail(reader, LanguageError, f"{what} draws random numbers", node, "Draw them in a line of their own.")


def call_print(reader: Reader, function, args, words, node):
    if reader.draws.drawn and any(isinstance(n, gast.Call) for a in node.args for n in gast.walk(a)):
        fail(reader, LanguageError, "this print may draw random numbers", node, "Print in a line of its own.")
    return print_effect(reader, function, args, words, node)


def refuse_drawing_text(reader: Reader, node: gast.AST | None) -> None:
    names = {n.id for n in gast.walk(node) if isinstance(n, gast.Name)}
    held = [v for n in names for v in [reader.environment.frame.env.get(n)] if isinstance(v, Var)]
    if any(isinstance(n, gast.Call) for n in gast.walk(node)) and (
            any(isinstance(v.fact, Stream) for v in held) or
            any(isinstance(n, gast.Attribute) and n.attr == "random" for n in gast.walk(node))):
        fail(reader, LanguageError, "a text draws random numbers", node, "Draw them in a line of their own.")


def call_isinstance(reader: Reader, function: Callable, args: list, words: dict[str, Any],
                    node: gast.AST | None) -> Any:
    value = settle(reader, args[0])
    if isinstance(value, Var) and isinstance(value.fact, Stream):
        return Const(issubclass(value.fact.cls, python_value(reader, args[1], node)))
    return isinstance_of_value(reader, function, args, words, node)


@late
def as_parameter(reader: Reader, value: Any, wanted: bool, env: dict) -> Any:
    """A value with fresh parameters for its operands and its generators; `env` maps each to its operand."""
    if isinstance(value, Var) and isinstance(value.fact, Stream):
        var = value.like()
        env[var] = value
        return var
    return dispatch.operands_as_parameters(reader, value, wanted, env)


def drawn_once(reader: Reader, before: Any, what: str) -> None:
    """Refuse draws in a function that a transformation evaluates more than once, except from generators that the
    function itself makes from a seed: these give the same numbers each time.
    """
    if any(reader.draws.begun[k] < before for k in range(before, reader.draws.drawn)):
        raise LanguageError(f"{what} evaluates its function more than once, and each time draws other random "
                            "numbers", reader.build.origin or reader.draws.drawn_at, ADVICE)


def is_seed(value):
    """Whether a value is a seed, which starts the same stream each time."""
    return isinstance(value, Const) and isinstance(value.value, (int, np.integer)) or \
        isinstance(value, Var) and isinstance(value.fact, Array)


@functools.cache
def _signature(cls, name):
    return inspect.signature(getattr(cls, name))


def _parameters(cls, name):
    return [p for p in _signature(cls, name).parameters if p != "self"]


def _bound(cls, name, args, words):
    bound = _signature(cls, name).bind(None, *args, **words)
    return {k: v for k, v in bound.arguments.items() if k != "self"}


def arguments(value: Apply) -> dict[str, Any]:
    """{parameter: operand} of a draw, without the generator."""
    owner, name = value.function.owner, value.function.name
    return _bound(owner or STATE, name, value.args[owner is not None:], dict(value.kwargs))


def takes_size(cls, name):
    return "size" in _parameters(cls, name)


def parameters(bound: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the distribution among the arguments: without size and options."""
    return {k: v for k, v in bound.items() if k != "size" and k not in LITERAL}


def dims_of(size):
    """The lengths that a `size` specifies; None if it is None."""
    if size is None or isinstance(size, Const) and size.value is None:
        return None
    items = size.items if isinstance(size, Pack) else size.value if isinstance(size, Const) else (size,)
    items = items if isinstance(items, tuple | list) else (items,)
    out = []
    for item in items:
        fact = fact_of(item if isinstance(item, Var | Const) else Const(item))
        if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
            raise Unfit("a size is an integer or a tuple of integers")
        out.append(fact.length or unknown("?size"))
    return tuple(out)


def dims_of_parameter(value):
    """The lengths of a parameter, which may be a list of numbers."""
    fact = fact_of(value)
    if isinstance(fact, Sequence):
        return (Length(None, len(fact.elements)),)
    return fact.dims if isinstance(fact, Array) else ()


@functools.cache
def _result_of(cls, name, dtype, array):
    """The result type of a sample draw: a Python type or a dtype."""
    source = GENERATOR(np.random.PCG64(0)) if cls is GENERATOR else STATE(0)
    needed = [p for p in _signature(cls, name).parameters.values() if p.default is p.empty and p.name != "self"]
    args = _SAFE.get(name, (0.5,) * len(needed)) if name not in ("rand", "randn") else (2,) * array
    words = {} if dtype is None else {"dtype": dtype}
    if array and name not in ("rand", "randn"):
        words["size"] = 2
    value = getattr(source, name)(*args, **words)
    return type(value) if type(value) in WEAK else value.dtype


def result_fact(cls: type, name: str, bound: dict[str, Any]) -> Any:
    """The fact of the result of a draw."""
    if name == "seed":
        return Opaque(None)
    if name in ("rand", "randn"):
        return _number_or_array(cls, name, None, dims_of(bound.get("args", Pack("tuple", ()))) or None)
    size = dims_of(bound.get("size"))
    if name in ENTRYWISE:
        given = {k: dims_of_parameter(v) for k, v in parameters(bound).items()}
        met = broadcast(list(given.values())) if given else ()
        if size is not None:
            if len(met) > len(size) or any(m.many and not unify(m, s) for m, s in zip(met[::-1], size[::-1])):
                raise Unfit("the size does not fit the parameters")
        dtype = bound.get("dtype", Const(None)).value
        return _number_or_array(cls, name, dtype, (met or None) if size is None else size)
    if name in ROWS:
        row = dims_of_parameter(bound[ROWS[name]])
        if len(row) != 1 or any(dims_of_parameter(v) for k, v in parameters(bound).items()
                                if k not in (ROWS[name], "cov")):
            raise Unfit(f"{ROWS[name]} is a vector, and other parameters are numbers")
        if "cov" in bound and not all(unify(d, row[0]) for d in dims_of_parameter(bound["cov"])):
            raise Unfit("mean and cov have different lengths")
        kind = np.float64 if name in ("multivariate_normal", "dirichlet") else np.int64
        return Array(np.dtype(kind), (*(size or ()), *row))
    x = bound["a" if name == "choice" else "x"]
    fact = _listed(x)
    if fact is None or not fact.dims and fact.kind not in "iu":
        raise Unfit("an integer or an array is needed")
    axis = bound.get("axis", Const(0)).value
    if fact.dims and axis is not None and not -fact.rank <= axis < fact.rank:
        raise Unfit(f"axis {axis} of an array of rank {fact.rank}")
    if name == "choice":
        if not fact.dims:
            return _number_or_array(cls, name, None, size)
        axis %= fact.rank
        dims = (*fact.dims[:axis], *(size or ()), *fact.dims[axis + 1:])
        return Array(np.dtype(fact.dtype), dims, None if dims or fact.kind not in "iu" else unknown("?int"))
    if fact.dims:
        return Array(np.dtype(fact.dtype), fact.dims)
    if name == "permuted":
        raise Unfit("an array is needed")
    return Array(np.dtype(np.int64), (fact.length or unknown("?size"),))


def _listed(x):
    """The fact of an array, of a list of numbers, or of a number."""
    if isinstance(x, Pack):
        made = np.array([i.value for i in x.items])
        return Array(made.dtype, tuple(UNIT if n == 1 else Length(None, n) for n in made.shape))
    fact = fact_of(x)
    return fact if isinstance(fact, Array) else None


def _number_or_array(cls, name, dtype, dims):
    kind = _result_of(cls, name, dtype, dims is not None)
    length = unknown("?int") if not dims and Array(kind).kind in "iu" else None
    return Array(kind, dims or (), length)


SPECIAL.update({
    isinstance: call_isinstance,
    print: call_print,
})
