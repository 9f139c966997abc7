# SPDX-License-Identifier: Apache-2.0
"""Operations of the normal form that NumPy has no function for.

Each is a Python function that runs as it is; code generation prints it in the form shown here.

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

ANSWER = "answer "          # the name of a quoted statement's result; no user's name ends in a blank


class Quoted:
    """A piece of the user's syntax tree that is kept unchanged; its names are the operands."""

    def __init__(self, tree, names, lookup):
        self.tree, self.names, self.lookup = tree, names, lookup
        self.__name__ = "this try" if isinstance(tree, gast.Try) else "quoted"


def is_report(value: Any) -> bool:
    """Whether a value is a call that only reports something: print, warnings.warn, a logger."""
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
    """The identity, through which no derivative passes: for arguments of a function with a custom derivative."""
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
    """range(*args)[place] as an operand; `apply` and `const` make operands."""
    start, _, step = args
    amount: Any = getattr(step, "value", None)
    back = amount is not None and amount < 0
    by = const(-amount) if back else step
    moved = place if getattr(by, "value", None) == 1 else apply(operator.mul, place, by)
    if getattr(start, "value", None) == 0:
        return apply(operator.neg, moved) if back else moved
    return apply(operator.sub if back else operator.add, start, moved)


def astype(x: Any, dtype: Any, number: bool = False) -> Any:
    """x.astype(dtype); number: x is certainly a number, so that dtype(x) is printed."""
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
    """A placeholder for the operation that makes result k of several new arrays."""
    return k
