# SPDX-License-Identifier: Apache-2.0
"""Random numbers: a draw is an operation with an effect and a result.

No pass removes or repeats a draw, merges two equal ones, or moves one across another.  The same holds for calls that
make a generator, since two generators with the same seed are two streams.

>>> rng = np.random.default_rng(3)
>>> float(draw(np.random.Generator, "normal")(rng, 1.0, 0.0))
1.0
"""
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Function, Let, Var, all_made, walk

BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
SEEDED = frozenset({"default_rng", "Generator", "RandomState", *(b.__name__ for b in BITS)})
STREAMS = frozenset({np.random.Generator, np.random.RandomState, *BITS})


class Draw:
    """A method of a generator, its first operand; without an `owner`, a function of np.random."""

    def __init__(self, owner, name):
        self.owner, self.name, self.__name__ = owner, name, name

    def __call__(self, *args, **kwargs):
        if self.owner is None:
            return getattr(np.random, self.name)(*args, **kwargs)
        return getattr(args[0], self.name)(*args[1:], **kwargs)

    @property
    def label(self):
        """The name in messages."""
        return f"np.random.{self.name}" if self.owner is None else f"{self.owner.__name__}.{self.name}"


@functools.cache
def draw(owner: type | None, name: str) -> Draw:
    """The only Draw object for this owner and name."""
    return Draw(owner, name)


def is_draw(value: Any) -> bool:
    """Whether a value is drawn, directly or in a callee."""
    if not isinstance(value, Apply):
        return False
    if isinstance(value.function, Function):
        return draws(value.function.body)
    return isinstance(value.function, Draw)


def draws(block: Iterable) -> bool:
    """Whether a block, or a block inside it, draws."""
    return any(isinstance(step, Let) and is_draw(step.value) for step in walk(block))


def draws_elsewhere(function: Function) -> str | None:
    """The name of a draw that a second evaluation with equal arguments would not repeat; None if there is none."""
    known = {p.value for p in function.params} | set(all_made(function.body))
    for step in walk(function.body):
        if not isinstance(step, Let) or not is_draw(step.value):
            continue
        value = step.value
        if isinstance(value.function, Function):
            found = draws_elsewhere(value.function)
            if found:
                return found
        elif value.function.owner is not None:
            if isinstance(value.args[0], Var) and value.args[0] not in known:
                return f"{value.args[0].hint}.{value.function.name}"
        elif value.function.name not in SEEDED or not [a for a in [*value.args, *(a for _, a in value.kwargs)]
                                                       if not (isinstance(a, Const) and a.value is None)]:
            return value.function.label
    return None
