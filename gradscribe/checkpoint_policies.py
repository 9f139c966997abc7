# SPDX-License-Identifier: Apache-2.0
"""Policies of gs.checkpoint, with the names of jax.checkpoint_policies: which values the forward sweep may save.

A value that may not be saved is computed again in the backward sweep.  Names are those of gs.checkpoint_name.
"""
import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

from gradscribe.ast_transform.core.alias import decided, record_of
from gradscribe.ast_transform.core.form import AGAIN, AS_USUAL, ON_DISK, Apply, Const
from gradscribe.ast_transform.reader.operands import known_value
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public

__all__ = [
    "Policy", "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
    "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable", "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names", "save_any_names_but_these", "save_anything_except_these_names",
    "save_from_both_policies", "save_only_these_names",
]

HOST = ("device", "pinned_host", "unpinned_host")       # JAX's kinds of memory; NumPy's arrays are in the host's


class Policy:
    """How the backward sweep has a value: AGAIN, it computes it again; AS_USUAL, saved; or ON_DISK.

    of_value(value): by the operation that makes it, an Apply, whose operands have facts (core/kinds.py);
    of_name(name): the same by a name, None for what `of_value` says; cuts_loops: whether loops inside are stored in
    segments; offloads: whether it moves values, as JAX's offloading policies do.
    """

    def __init__(self, label: str, of_value: Callable[[Any], str],
                 of_name: Callable[[str], str | None] = lambda name: None, cuts_loops: bool = True,
                 offloads: bool = False):
        self.label, self.of_value, self.of_name = label, of_value, of_name
        self.cuts_loops, self.offloads = cuts_loops, offloads
        self.made: tuple | None = None      # the function that made it, its arguments and its keywords

    def __repr__(self):
        return f"gs.checkpoint_policies.{self.label}"

    def __reduce__(self):
        return (again, self.made) if self.made else (named, (self.label,))


def named(label: str) -> Policy:
    """One of the policies without arguments, for pickles."""
    return NAMED.get(label) or globals()[label]


def again(name: str, args: tuple, words: dict) -> Policy:
    """A policy with arguments, for pickles."""
    return globals()[name](*args, **words)


def stacks(value: Any) -> bool | None:
    """Whether a product of matrices, or a convolution, has an axis that both operands and the result share.

    None for other operations.  The records of products say so, from the ranks of operands (`stacks`, core/rule.py).
    """
    record: Any = record_of(value.function) if isinstance(value, Apply) else None
    return None if record is None or "stacks" not in record.parts else decided(record, "stacks", value, True)


def saved_if(test: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Saves what passes a test, and no other."""
    return lambda found: AS_USUAL if test(found) else AGAIN


def everything(value: Any) -> str:
    """What becomes of a value: it may be saved."""
    return AS_USUAL


def nothing(value: Any) -> str:
    """What becomes of a value: it is computed again."""
    return AGAIN


def known(make: Callable) -> Callable:
    """Has the compiler call a function that makes a policy, where a function that it reads calls it."""
    @public
    @functools.wraps(make)
    def made(*args, **words):
        policy = make(*args, **words)
        policy.made = make.__name__, args, words
        return policy

    def read(reader, args, words, node):
        values = [known_value(reader, a, "an argument of a policy", node) for a in args]
        return Const(made(*values, **{k: known_value(reader, a, k, node) for k, a in words.items()}))
    cast(Any, made).normal_form_ = read
    return made


def texts(names: Iterable[str]) -> tuple[str, ...]:
    """Names of values; KindError if one is no text, or if all are one text."""
    wrong = [n for n in ([names] if isinstance(names, str) else names) if not isinstance(n, str) or n is names]
    if wrong:
        raise KindError(f"names are texts in a sequence, not {wrong[0]!r}", None, 'Give a list: ["y"].' if
                        wrong[0] is names else 'Give the names of gs.checkpoint_name, such as "y".')
    return tuple(names)


everything_saveable = Policy("everything_saveable", everything, cuts_loops=False)
nothing_saveable = Policy("nothing_saveable", nothing)
dots_saveable = checkpoint_dots = Policy("dots_saveable", saved_if(lambda value: stacks(value) is not None))
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(
    "dots_with_no_batch_dims_saveable", saved_if(lambda value: stacks(value) is False))
NAMED = {"all": nothing_saveable, "loops": Policy("loops", everything)}


@known
def save_only_these_names(*names: str) -> Policy:
    """Saves the values with these names, and no other."""
    names = texts(names)
    return Policy(f"save_only_these_names{names}", nothing, saved_if(lambda name: name in names))


@known
def save_any_names_but_these(*names: str) -> Policy:
    """Saves the values that have a name, but for these names, and no other."""
    names = texts(names)
    return Policy(f"save_any_names_but_these{names}", nothing, saved_if(lambda name: name not in names))


@known
def save_anything_except_these_names(*names: str) -> Policy:
    """Saves everything but the values with these names."""
    names = texts(names)
    return Policy(f"save_anything_except_these_names{names}", everything, saved_if(lambda name: name not in names),
                  False)


@known
def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Saves what one of two policies saves.

    Raises KindError for a policy that offloads, as JAX does.
    """
    for policy in (first, second):
        if not isinstance(policy, Policy):
            raise KindError(f"save_from_both_policies takes two of gs.checkpoint_policies, not {policy!r}")
        if policy.offloads:
            raise KindError(f"save_from_both_policies takes policies that save or compute again; {policy!r} offloads")

    def names(name):
        said = [p.of_name(name) for p in (first, second)]
        return AS_USUAL if AS_USUAL in said else None if None in said else AGAIN
    return Policy(f"save_from_both_policies({first!r}, {second!r})",
                  saved_if(lambda value: AS_USUAL in (first.of_value(value), second.of_value(value))), names,
                  first.cuts_loops and second.cuts_loops)


@known
def save_and_offload_only_these_names(*, names_which_can_be_saved: Iterable[str],
                                      names_which_can_be_offloaded: Iterable[str],
                                      offload_src: str, offload_dst: str) -> Policy:
    """Saves the values with the first names, moves those with the second names, and computes all others again.

    offload_src: "device"; offload_dst: "disk", for the values that loops save, or "pinned_host", the memory of the
    host, where NumPy's arrays are: the values are saved.

    Raises KindError for a name in both, for names that are no texts, and for other kinds of memory.

    >>> import numpy as np, gradscribe as gs
    >>> def step(x):
    ...     return np.cos(gs.checkpoint_name(np.sin(x), "y") ** 2)
    >>> policy = gs.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=[], names_which_can_be_offloaded=["y"], offload_src="device", offload_dst="disk")
    >>> def run(x, f):
    ...     for _ in range(9):
    ...         x = f(x)
    ...     return np.sum(x)
    >>> x = np.array([0.5, 0.7])
    >>> bool(np.all(gs.grad(run)(x, gs.checkpoint(step, policy=policy)) == gs.grad(run)(x, step)))
    True
    """
    saved, moved = set(texts(names_which_can_be_saved)), set(texts(names_which_can_be_offloaded))
    if saved & moved:
        raise KindError(f"{', '.join(sorted(saved & moved))} can be saved or offloaded, not both")
    place = memory_of(offload_src, offload_dst)
    return Policy(
        f"save_and_offload_only_these_names(names_which_can_be_saved={sorted(saved)}, names_which_can_be_offloaded="
        f"{sorted(moved)}, offload_src={offload_src!r}, offload_dst={offload_dst!r})", nothing,
        lambda name: AS_USUAL if name in saved else place if name in moved else AGAIN, offloads=True)


@known
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Moves what dots_with_no_batch_dims_saveable saves, and computes all else again.

    offload_src, offload_dst: as in save_and_offload_only_these_names
    """
    place = memory_of(offload_src, offload_dst)
    return Policy(f"offload_dot_with_no_batch_dims({offload_src!r}, {offload_dst!r})",
                  lambda value: place if stacks(value) is False else AGAIN, offloads=True)


def memory_of(source: str, goal: str) -> str:
    """What becomes of values that move from one kind of memory to another."""
    if source not in HOST:
        raise KindError(f"offload_src is one of {', '.join(HOST)}, not {source!r}")
    if goal not in ("disk", *HOST):
        raise KindError(f"offload_dst is disk, or one of {', '.join(HOST)}, not {goal!r}")
    return ON_DISK if goal == "disk" else AS_USUAL
