# SPDX-License-Identifier: Apache-2.0
"""gs.make_ir: the typed normal form of a function, the compiler's intermediate representation."""
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.shown import Shown
from gradscribe.frames import public
from gradscribe.shapes import normal_form_for


class IR:
    """A function in normal form (SSA): one operation per statement, one name per value, each with dtype and lengths."""

    def __init__(self, form):
        self.form = form
        self.text = "\n".join(Shown(kind).function(form))

    def __str__(self):
        return self.text

    __repr__ = __str__


def kind(fact):
    """A dtype and lengths as text: float64[3, n]."""
    if isinstance(fact, Sequence):
        inner = ", ".join(map(kind, fact.elements))
        return f"[{inner}]" if fact.kind == "list" else f"({inner})"
    if not isinstance(fact, Array):
        return getattr(fact, "kind", "object")
    name = fact.dtype.__name__ if isinstance(fact.dtype, type) else str(fact.dtype)
    return f"{name}[{', '.join(map(_length, fact.dims))}]" if fact.dims else name


def _length(d):
    n = d.normal()
    return str(n.offset) if n.symbol is None else f"{n.symbol.label}{n.offset:+d}" if n.offset else n.symbol.label


def make_ir(fun: Callable) -> Callable[..., IR]:
    """A function that returns, for given arguments, the normal form of fun, to be printed.

    It works for transformed functions too: make_ir(gs.grad(f)).  Nested transformations, branches and loops are part of
    the form; comments mark the statements of functions under jit or pmap.  This is the compiler's intermediate
    representation, as jax.make_jaxpr shows JAX's; a transformed function's `source` is its text for people.

    >>> import gradscribe as gs
    >>> print(gs.make_ir(lambda x, y: 3.0 * x ** 2 + y)(1.0, 2.0))
    function(x: float, y: float):
        t: float = x ** 2
        t_1: float = 3.0 * t
        t_2: float = t_1 + y
        return t_2
    """
    @public
    def made(*args: Any, **kwargs: Any) -> IR:
        return IR(normal_form_for(fun, args, kwargs))
    return made
