# SPDX-License-Identifier: Apache-2.0
"""Policies of gs.checkpoint, with the names of jax.checkpoint_policies: which values the forward sweep may save.

A value that may not be saved is computed again in the backward sweep.  Names are those of gs.checkpoint_name.
"""
import functools
from collections.abc import Callable
from typing import Any, cast

from gradscribe.ast_transform.core.alias import record_of
from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader.operands import known_value


class Policy:
    """What may be saved: by operation, and by name.

    saves(function): whether the result of an operation may be saved; names(name): the same for a named value, None for
    what `saves` says; cuts_loops: whether loops inside are stored in segments.
    """

    def __init__(self, label: str, saves: Callable[[Any], bool],
                 names: Callable[[str], bool | None] = lambda name: None, cuts_loops: bool = True):
        self.label, self.saves, self.names, self.cuts_loops = label, saves, names, cuts_loops
        self.made: tuple | None = None      # the function that made it, and its arguments

    def recomputes(self, value: Any) -> bool:
        """Whether the value of a statement is computed again."""
        return not self.saves(getattr(value, "function", None))

    def recomputes_name(self, name: str, otherwise: bool) -> bool:
        """Whether a named value is computed again; otherwise: whether it would be without a name."""
        saved = self.names(name)
        return otherwise if saved is None else not saved

    def __repr__(self):
        return f"gs.checkpoint_policies.{self.label}"

    def __reduce__(self):
        return self.made or (named, (self.label,))


def named(label: str) -> Policy:
    """One of the policies without arguments, for pickles."""
    return NAMED.get(label) or globals()[label]


def is_product(function: Any) -> bool:
    """Whether an operation is a product of matrices or a convolution."""
    record: Any = record_of(function)
    return getattr(record, "kind", "") == "bilinear" and record.options.get("algebra") != "product"


def multiplies_stacks(function: Any) -> bool:
    """Whether a product may have batch axes, as np.matmul and np.einsum."""
    return getattr(function, "__name__", "") in ("matmul", "einsum", "vecdot", "matvec", "vecmat")


def everything(function: Any) -> bool:
    """Whether an operation's result may be saved: yes."""
    return True


def nothing(function: Any) -> bool:
    """Whether an operation's result may be saved: no."""
    return False


def known(make: Callable) -> Callable:
    """Has the compiler call a function that makes a policy, where a function that it reads calls it."""
    @functools.wraps(make)
    def made(*args):
        policy = make(*args)
        policy.made = made, args
        return policy

    def read(reader, args, words, node):
        return Const(made(*(known_value(reader, a, "an argument of a policy", node) for a in args)))
    cast(Any, made).normal_form_ = read
    return made


everything_saveable = Policy("everything_saveable", everything, cuts_loops=False)
nothing_saveable = Policy("nothing_saveable", nothing)
dots_saveable = checkpoint_dots = Policy("dots_saveable", is_product)
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(
    "dots_with_no_batch_dims_saveable", lambda function: is_product(function) and not multiplies_stacks(function))
NAMED = {"all": nothing_saveable, "loops": Policy("loops", everything)}


@known
def save_only_these_names(*names: str) -> Policy:
    """Saves the values with these names, and no other."""
    return Policy(f"save_only_these_names{names}", nothing, lambda name: name in names)


@known
def save_any_names_but_these(*names: str) -> Policy:
    """Saves the values that have a name, but for these names, and no other."""
    return Policy(f"save_any_names_but_these{names}", nothing, lambda name: name not in names)


@known
def save_anything_except_these_names(*names: str) -> Policy:
    """Saves everything but the values with these names."""
    return Policy(f"save_anything_except_these_names{names}", everything, lambda name: name not in names, False)


@known
def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Saves what one of two policies saves."""
    def names(name):
        said = [p.names(name) for p in (first, second)]
        return True if True in said else None if None in said else False
    return Policy(f"save_from_both_policies({first!r}, {second!r})", lambda f: first.saves(f) or second.saves(f), names,
                  first.cuts_loops and second.cuts_loops)
