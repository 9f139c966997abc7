# SPDX-License-Identifier: Apache-2.0
"""Rematerialisation: gs.checkpoint(f) computes f's intermediate values again in the backward sweep."""
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from gradscribe.api import _base, _decorator
from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.passes.anf import strictest
from gradscribe.ast_transform.passes.vjp.segments import Asked
from gradscribe.ast_transform.reader.derivatives import enter
from gradscribe.ast_transform.reader.frames import here
from gradscribe.ast_transform.reader.operands import known_value
from gradscribe.ast_transform.reader.values import Derived, variables_in
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.checkpoint_policies import NAMED, Policy
from gradscribe.frames import public
from gradscribe.named import bound, counted, number_of, reduced

WAY_OUT = 'Give one of gs.checkpoint_policies, "all", "loops" or None.'
UNITS = {"b": 1, "kb": 10 ** 3, "mb": 10 ** 6, "gb": 10 ** 9, "tb": 10 ** 12,
         "kib": 2 ** 10, "mib": 2 ** 20, "gib": 2 ** 30, "tib": 2 ** 40}


@public
def checkpoint(fun: Callable | None = None, *, prevent_cse: bool = True, policy: str | Policy | None = "all",
               budget: int | str | None = None, levels: int | None = None, offload: str | None = None,
               static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = ()) -> Callable:
    """The same function, whose intermediate values the backward sweep computes again instead of storing them.

    A for loop of n passes is stored in √n segments, a while loop in segments that grow by one pass each: 2 √n states
    (about 2 √(2 n) for while) are kept instead of n, for one more run of the loop.  Where the function is called in
    a loop, only its arguments are stored for each pass; policy="loops" does not do this, and applies to the loops
    inside the function only.  Values and gradients are the same to the bit.  Loops that draw random numbers are stored
    as usual.

    policy: which values may be stored: one of gs.checkpoint_policies, which have JAX's names; "all" (or None), the same
    as nothing_saveable; or "loops".
    levels: how often loops are cut, 2 by default: the loop over the passes of a segment is cut again when it runs
    again.  r levels keep about r n^(1/r) states, for r - 1 more runs of the loop.
    budget: bytes, or text such as "512 MiB", for the states of each for loop inside.  It chooses the fewest levels that
    fit the sizes of the first call, `levels` or more; where all states fit, they are stored as usual.  A later call
    whose states would not fit raises MemoryError.
    offload: "disk" stores the states at the beginnings of segments of for loops in temporary files, so that memory
    holds those of one segment.
    prevent_cse, static_argnums and static_argnames are accepted for compatibility with JAX and have no effect; the
    latter must name arguments of the function.

    Usable as a decorator, with or without arguments, like jax.checkpoint.

    Raises KindError for an unknown policy, budget or number of levels, and for static arguments that the function does
    not have; TransformError where the function is differentiated and cannot be, the budget is too small for a loop, or
    there is a while loop and a budget without levels: the number of its passes is not known before.

    >>> import numpy as np, gradscribe as gs
    >>> def decay(x, n):
    ...     for _ in range(n):
    ...         x = x - 0.01 * np.sin(x)
    ...     return x
    >>> bool(gs.grad(gs.checkpoint(decay))(1.0, 1000) == gs.grad(decay)(1.0, 1000))
    True
    >>> bool(gs.grad(gs.checkpoint(decay, budget="600 B"))(1.0, 1000) == gs.grad(decay)(1.0, 1000))
    True

    A. Griewank, A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), for the general theory.
    """
    marked = Marked(policy_of(policy), asked_of(budget, levels, offload))
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    def make(f):
        for number in numbers:
            counted(f, number, "static_argnums")
        for name in names:
            number_of(f, name, "static_argnames")
        return Checkpointed(f, marked)
    return _decorator(make, fun)


def policy_of(policy: Any, origin: Any = None) -> Policy:
    """The policy for an argument `policy`; KindError if it is none."""
    found = NAMED.get(policy or "all") if policy is None or isinstance(policy, str) else policy
    if not isinstance(found, Policy):
        raise KindError(f"policy must be one of gs.checkpoint_policies, not {policy!r}" if not callable(policy) else
                        "a policy is made by gs.checkpoint_policies, such as save_only_these_names(\"a\"); "
                        "a function of JAX's primitives has no meaning here", origin, WAY_OUT)
    return found


def asked_of(budget: Any, levels: Any, offload: Any, origin: Any = None) -> Asked:
    """What the arguments ask of loops; KindError where one of them is nothing that can be asked."""
    if offload not in (None, "disk"):
        raise KindError(f"offload is 'disk' or None, not {offload!r}", origin)
    if levels is not None and (not isinstance(levels, int) or isinstance(levels, bool) or levels < 2):
        raise KindError(f"levels is a whole number from 2 on, or None, not {levels!r}", origin)
    return Asked(None if budget is None else bytes_in(budget, origin), levels, offload is not None)


def bytes_in(budget: Any, origin: Any = None) -> int:
    """A budget in bytes.

    >>> bytes_in("512 MiB"), bytes_in("1.5 kB"), bytes_in(4096)
    (536870912, 1500, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", budget) if isinstance(budget, str) else None
    if found is not None and found[2].lower() in UNITS:
        budget = int(float(found[1]) * UNITS[found[2].lower()])
    if not isinstance(budget, int) or isinstance(budget, bool) or budget <= 0:
        raise KindError(f"a budget is a number of bytes, or text such as '512 MiB', not {budget!r}", origin)
    return budget


class Marked:
    """Reads a function with its values marked for rematerialisation."""

    def __init__(self, policy, asked):
        self.policy, self.asked = policy, asked

    def read(self, reader, base, args, words):
        """Read a call of the function; its values are recomputed in the backward sweep, as the policy says."""
        build = reader.build
        before = build.policies, build.segments
        build.policies = (*build.policies, self.policy)
        if self.policy.cuts_loops:
            build.segments = str(self.asked)
        try:
            return enter(reader, base, args, words)
        finally:
            build.policies, build.segments = before


def _read(reader, args, words, node):
    """gs.checkpoint(f) inside a function that is being transformed."""
    given = {**dict(zip(("fun",), args)), **words}
    policy, *asked = (known_value(reader, given.pop(name, Const(None)), f"the {name} of a checkpoint", node)
                      for name in ("policy", "budget", "levels", "offload"))
    given = {k: v for k, v in given.items() if k not in ("prevent_cse", "static_argnums", "static_argnames")}
    if set(given) != {"fun"}:
        raise KindError("checkpoint takes a function, a policy, a budget, levels and offload", here(reader, node),
                        "Write gs.checkpoint(f), or gs.checkpoint(f, policy=\"loops\").")
    place = here(reader, node)
    return Derived(Marked(policy_of(policy, place), asked_of(*asked, place)), _base(given["fun"]))


cast(Any, checkpoint).normal_form_ = _read


def checkpoint_name(x: Any, name: str) -> Any:
    """x, named for the policies of gs.checkpoint_policies that save, or do not save, by name.

    x: an array, a number or a container of these.  It has no other effect, as jax.ad_checkpoint.checkpoint_name.

    >>> import numpy as np, gradscribe as gs
    >>> def f(x):
    ...     y = gs.checkpoint_name(np.sin(x), "y")
    ...     return np.exp(y) * y
    >>> policy = gs.checkpoint_policies.save_only_these_names("y")
    >>> bool(gs.grad(gs.checkpoint(f, policy=policy))(0.5) == gs.grad(f)(0.5))
    True
    """
    return x


def _read_name(reader, args, words, node):
    """gs.checkpoint_name(x, name) inside a function that is being transformed: a mark on its values."""
    given = {**dict(zip(("x", "name"), args)), **words}
    name = known_value(reader, given["name"], "the name of a checkpoint", node)
    if not isinstance(name, str):
        raise KindError(f"checkpoint_name takes a name, not {name!r}", here(reader, node),
                        'Write gs.checkpoint_name(x, "y").')
    policies = reader.build.policies
    for var in variables_in(given["x"]):
        said = [p.of_name(name) for p in policies]
        var.saving = strictest([var.saving if s is None else s for s in said])
    return given["x"]


cast(Any, checkpoint_name).normal_form_ = _read_name


class Checkpointed:
    """A checkpointed function; a plain call runs the function unchanged."""

    __reduce_ex__ = reduced
    __get__ = bound

    def __init__(self, fun, marked):
        self.fun, self.marked = fun, marked
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        """Call the function unchanged."""
        return self.fun(*args, **kwargs)

    def normal_form_(self, reader, args, words, node):
        """The result, in normal form, of a call inside a function that is being transformed."""
        return self.marked.read(reader, self.fun, args, words)
