# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments from annotations, for `source` before any call."""
import heapq
import inspect
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradscribe.ast_transform.core.kinds import Array, Length, Symbol
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, TransformError

if TYPE_CHECKING:
    from gradscribe.transformed import Transformed

_DTYPES = {"Float": np.float64, "Float64": np.float64, "Float32": np.float32, "Int": np.int64, "Complex": np.complex128,
           "Bool": np.bool_}


KINDS = {                           # what a parameter without an annotation may be; below, the cost of each guess
    "float": lambda name: Array(float),
    "vector": lambda name: _array(name, 1),
    "int": lambda name: Array(int, (), Length(Symbol(name))),
    "matrix": lambda name: _array(name, 2),
    "cube": lambda name: _array(name, 3),
}
USUAL = {"float": 0, "vector": 2, "int": 3, "matrix": 4, "cube": 7}
CAPITAL = {"matrix": 0, "vector": 2, "float": 3, "cube": 4, "int": 7}
TRIED = 400


def parameters_to_describe(transformed):
    """The parameters of the user's function that have no default, or have an annotation."""
    base = transformed.base
    while hasattr(base, "base"):
        base = base.base
    return [p for p in inspect.signature(base).parameters.values()
            if (p.default is p.empty or p.annotation is not p.empty) and
            p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def simplest(transformed: "Transformed",
             attempt: Callable[[list[tuple[str, Array]]], Any]) -> tuple[list[tuple[str, Array]], Any]:
    """(name, fact) for each parameter, and the result of `attempt`: from annotations, else the simplest that work.

    Combinations of kinds are tried in the order of their cost, a best-first search: numbers, then vectors, integers,
    matrices; matrices first for a name in capitals.
    """
    parameters = parameters_to_describe(transformed)
    given = [_fact(p.name, p.annotation) for p in parameters]
    choices = [{"given": 0} if fact is not None else CAPITAL if p.name[0].isupper() else USUAL
               for p, fact in zip(parameters, given)]

    def cost(chosen):
        return sum(list(costs.values())[k] for k, costs in zip(chosen, choices))

    waiting, seen, first = [(0, tuple(0 for _ in parameters))], set(), None
    for _ in range(TRIED):
        if not waiting:
            break
        _, chosen = heapq.heappop(waiting)
        facts = [(p.name, fact if fact is not None else KINDS[list(costs)[k]](p.name))
                 for p, k, fact, costs in zip(parameters, chosen, given, choices)]
        try:
            return facts, attempt(facts)
        except (TransformError, Demand) as error:
            first = first or error
        for place, k in enumerate(chosen):
            if k + 1 < len(choices[place]):
                more = (*chosen[:place], k + 1, *chosen[place + 1:])
                if more not in seen:
                    seen.add(more)
                    heapq.heappush(waiting, (cost(more), more))
    if any(fact is None for fact in given) or first is None:
        names = [p.name for p, fact in zip(parameters, given) if fact is None]
        raise LanguageError(
            f"the text of the function does not show what {', '.join(names)} may be",
            place_of(transformed.base, names[0] if names else None),
            'Call it, use source_for(*args), or annotate: x: float, x: Float[np.ndarray, "n d"].') from first
    raise first


def in_words(facts: Iterable[tuple[str, Array]]) -> str:
    """The kinds of parameters as text: x: float64[m, n]."""
    def one(fact):
        dtype = fact.dtype.__name__ if fact.weak else fact.dtype.name
        sizes = (str(d.offset) if d.symbol is None else "mnkl"[k % 4] for k, d in enumerate(fact.dims))
        return f"{dtype}[{', '.join(sizes)}]" if fact.dims else dtype
    return ", ".join(f"{name}: {one(fact)}" for name, fact in facts)


def _array(name, rank):
    return Array(np.dtype(np.float64), tuple(Length(Symbol(f"{name}.shape[{k}]", True)) for k in range(rank)))


def _fact(name, annotation):
    if annotation in (float, int, complex, bool):
        length = Length(Symbol(name)) if annotation is int else None
        return Array(annotation, (), length)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)
    if text in ("float", "int", "complex", "bool"):
        return _fact(name, {"float": float, "int": int, "complex": complex, "bool": bool}[text])
    found = re.match(r"^(?:jaxtyping\.)?(\w+)\[[^,]+,\s*['\"]([^'\"]*)['\"]\]$", text)
    if found is None and hasattr(annotation, "dim_str"):
        kind, dims = type(annotation).__name__, annotation.dim_str
        kind = text.split("[")[0]
    elif found is not None:
        kind, dims = found.groups()
    else:
        return None
    if kind not in _DTYPES:
        return None
    axes = [d for d in dims.split() if d != "..." and not d.startswith("*")]        # those may mean no axes
    symbols = [Length(None, int(d)) if d.isdigit() else Length(Symbol(f"{name}.shape[{k}]", True))
               for k, d in enumerate(axes)]
    return Array(np.dtype(_DTYPES[kind]), tuple(symbols))
