# SPDX-License-Identifier: Apache-2.0
"""Operations of the normal form that NumPy has no name for.  Each runs as it stands; printing has a form for each.

    shape_of(x, k)      x.shape[k]                 put(x, i, v)        x with x[i] = v
    size_of(x)          x.size                     put_add(x, i, v)    x with x[i] += v
    nonempty(s)         s, as a test               add_at(x, i, v)     np.add.at(x, i, v)
    unpacked(c)         a, b = c                   push(s, v), pop(s)              at the end of a list
    both, either        and, or                    push_front(s, v), pop_front(s)  at its front
    run_length(r)       len(range(...))            as_array(s)         np.array(s)
    zeros_in_list(s)    list(np.zeros_like(s))     as_list(x)         list(x)
"""
import operator
from collections.abc import Callable, Iterable
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Apply

ANSWER = "answer "          # the name that a quoted statement gives its result; no name of the user's ends in a blank


class Quoted:
    """A piece of the user's tree that is kept as it stands; its names are the operands."""

    def __init__(self, tree, names, lookup):
        self.tree, self.names, self.lookup = tree, names, lookup
        self.__name__ = "this try" if isinstance(tree, gast.Try) else "quoted"


def is_report(value: Any) -> bool:
    """A call of the user's that only tells something: print, warnings.warn, a logger."""
    quote = value.function if isinstance(value, Apply) else None
    return isinstance(quote, Quoted) and isinstance(quote.tree, gast.Call)


def shape_of(x: Any, k: int) -> int:
    return np.shape(x)[k]


def size_of(x: Any) -> int:
    return np.size(x)


def unpacked(container: Iterable) -> tuple:
    return tuple(container)


def both(a: Any, b: Any) -> Any:
    return a and b


def either(a: Any, b: Any) -> Any:
    return a or b


def held(x: Any) -> Any:
    """A value that no derivative passes through while a custom one takes over."""
    return x


def put(x: Any, index: Any, value: Any) -> np.ndarray:
    out = np.array(x)
    out[index] = value
    return out


def put_add(x: Any, index: Any, value: Any) -> np.ndarray:
    out = np.array(x)
    out[index] += value
    return out


def add_at(x: Any, index: Any, value: Any) -> np.ndarray:
    out = np.array(x)
    np.add.at(out, index, value)
    return out


def push(stack: list, value: Any) -> list:
    return [*stack, value]


def pop(stack: list) -> tuple[list, Any]:
    return stack[:-1], stack[-1]


def push_front(stack: list, value: Any) -> list:
    return [value, *stack]


def pop_front(stack: list) -> tuple[list, Any]:
    return stack[1:], stack[0]


def run_length(start: int, stop: int, step: int) -> int:
    return len(range(start, stop, step))


def entry_of_range(args: tuple, place: Any, apply: Callable[..., Any], const: Callable[[int], Any]) -> Any:
    """The entry of range(*args) at a place, from 0, as an operand; `apply` and `const` make such."""
    start, _, step = args
    amount: Any = getattr(step, "value", None)
    back = amount is not None and amount < 0
    by = const(-amount) if back else step
    moved = place if getattr(by, "value", None) == 1 else apply(operator.mul, place, by)
    if getattr(start, "value", None) == 0:
        return apply(operator.neg, moved) if back else moved
    return apply(operator.sub if back else operator.add, start, moved)


def astype(x: Any, dtype: Any, number: bool = False) -> Any:
    """x.astype(dtype), or dtype(x) where x is certainly a number."""
    return np.asarray(x).astype(dtype)[()]


def nonempty(stack: list) -> bool:
    return bool(stack)


def as_array(items: list) -> np.ndarray:
    """The array of a list."""
    return np.array(items)


def as_list(items: Iterable) -> list:
    """A list of the elements of an array or of another list."""
    return list(items)


def zeros_in_list(items: list) -> list:
    """A list of zeros like the elements of another."""
    return list(np.zeros_like(items))


def no_elements() -> list:
    """An empty list, to be filled."""
    return []


def one_of_several(k: int) -> int:
    """Stands for what made the result at place k of an operation that gives several new arrays."""
    return k
