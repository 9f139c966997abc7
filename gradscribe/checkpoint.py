# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation: gs.checkpoint(f) computes f's intermediate values again in the backward sweep."""
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from gradscribe.api import _base, _decorator
from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader.derivatives import enter
from gradscribe.ast_transform.reader.frames import here
from gradscribe.ast_transform.reader.operands import known_value
from gradscribe.ast_transform.reader.values import Derived
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.named import bound, counted, number_of, reduced

POLICIES = ("all", "loops")


@public
def checkpoint(fun: Callable | None = None, *, prevent_cse: bool = True, policy: str | None = "all",
               static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = ()) -> Callable:
    """The same function, whose intermediate values the backward sweep computes again instead of storing them.

    A for loop of n passes is stored in √n segments, a while loop in segments that grow by one pass each: 2 √n states
    (about 2 √(2 n) for while) are kept instead of n, for one more run of the loop.  Where the function is called in
    a loop, only its arguments are stored for each pass; policy="loops" does not do this, and applies to the loops
    inside the function only.  policy: "all" (or None) or "loops".  Values and gradients are the same to the bit.
    Loops that draw random numbers are stored as usual.  prevent_cse, static_argnums and static_argnames are accepted
    for compatibility with JAX and have no effect; the latter must name arguments of the function.

    Usable as a decorator, with or without arguments, like jax.checkpoint.

    Raises KindError for an unknown policy and for static arguments that the function does not have; TransformError
    where the function is differentiated and cannot be.

    >>> import numpy as np, gradscribe as gs
    >>> def decay(x, n):
    ...     for _ in range(n):
    ...         x = x - 0.01 * np.sin(x)
    ...     return x
    >>> bool(gs.grad(gs.checkpoint(decay))(1.0, 1000) == gs.grad(decay)(1.0, 1000))
    True

    A. Griewank, A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), for the general theory.
    """
    if policy is not None and policy not in POLICIES:
        raise KindError(f"policy must be one of {', '.join(map(repr, POLICIES))}, not {policy!r}",
                        advice="Leave it out, or write policy=\"loops\".")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    def make(f):
        for number in numbers:
            counted(f, number, "static_argnums")
        for name in names:
            number_of(f, name, "static_argnames")
        return Checkpointed(f, policy or "all")
    return _decorator(make, fun)


class Marked:
    """Reads a function with its values marked for rematerialisation."""

    def __init__(self, policy):
        self.policy = policy

    def read(self, reader, base, args, words):
        """Read a call of the function; its values are recomputed in the backward sweep, as the policy says."""
        build = reader.build
        before = build.again, build.segments
        build.again, build.segments = build.again or self.policy == "all", True
        try:
            return enter(reader, base, args, words)
        finally:
            build.again, build.segments = before


def _read(reader, args, words, node):
    """gs.checkpoint(f) inside a function that is being transformed."""
    given = {**dict(zip(("fun",), args)), **words}
    policy = known_value(reader, given.pop("policy", Const("all")), "the policy of a checkpoint", node) or "all"
    given = {k: v for k, v in given.items() if k not in ("prevent_cse", "static_argnums", "static_argnames")}
    if policy not in POLICIES or set(given) != {"fun"}:
        raise KindError(f"checkpoint takes a function and a policy ({', '.join(map(repr, POLICIES))})",
                        here(reader, node), 'Write gs.checkpoint(f), or gs.checkpoint(f, policy="loops").')
    return Derived(Marked(policy), _base(given["fun"]))


cast(Any, checkpoint).normal_form_ = _read


class Checkpointed:
    """A checkpointed function; a plain call runs the function unchanged."""

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, fun, policy):
        self.fun, self.policy = fun, policy
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        """Call the function unchanged."""
        return self.fun(*args, **kwargs)

    def normal_form_(self, reader, args, words, node):
        """The result, in normal form, of a call inside a function that is being transformed."""
        return Marked(self.policy).read(reader, self.fun, args, words)
