# SPDX-License-Identifier: Apache-2.0
"""A cache of versions for functions that are transformed again.

`gs.value_and_grad(f)(x)` in a loop makes a new object in each pass, which starts with the versions that earlier ones
made from the same function with the same transformation.  They are stored on the function and freed with it.  A
version's guards are checked at each call as usual.  Between two transformations more may change than between two
calls: code and defaults of the functions that were read, rules, containers.  Functions and arrays that were read are
compared here; if anything else was read that may change, nothing is shared.

>>> import gradscribe as gs
>>> def f(x):
...     return x ** 3
>>> gs.grad(f)(2.0), gs.grad(f)._known is gs.grad(f)._known, gs.grad(f)._known is gs.value_and_grad(f)._known
(12.0, True, False)
"""
import os
import types
from collections import deque
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.source.read import Scope, parts_of
from gradscribe.tree_nodes import REGISTRY

NAME = "__gradscribe__"
LIBRARIES = frozenset(("numpy", "math", "cmath", "builtins", "operator", "functools", "gradscribe", "scipy"))
NUMBERS = (bool, int, float, complex, str, type(None), type(Ellipsis))


class Known:
    """The versions of one function for one transformation, and what they depend on."""

    def __init__(self, stamp=None):
        self.exact, self.versions, self.static, self.least, self.tied = {}, {}, set(), {}, ()
        self.history, self.made = deque(maxlen=1000), deque(maxlen=16)  # each version and its reason; the last versions
        self.stamp, self.functions, self.arrays, self.shared = stamp, {}, {}, stamp is not None

    def learn(self, base, reader):
        """Record what a new version depends on: whether a change of all that its reader read would be noticed."""
        if self.shared:
            self.shared = not (reader.environment.kind_guards or reader.outer.stateful) and self.stable(base) and all(
                map(self.stable_read, reader.environment.guards))

    def stable_read(self, guard):
        """Whether a change of what a guard read would be noticed."""
        holder, name, value = guard
        if isinstance(holder, Scope):
            if name not in holder.cells and top(holder.namespace.get("__name__")) == "gradscribe":
                return True
            return self.stable(value)
        return isinstance(holder, types.ModuleType) and top(holder.__name__) in LIBRARIES or isinstance(
            holder, type) and top(holder.__module__) in ("numpy", "builtins")

    def stable(self, value) -> bool:
        """Whether a change of a value would be noticed."""
        kind = type(value)
        if kind in NUMBERS or isinstance(value, (np.generic, np.dtype, np.ufunc, types.ModuleType)):
            return True
        if kind is tuple:
            return all(map(self.stable, value))
        if kind is np.ndarray:
            self.arrays[id(value)] = value, value.dtype, value.shape
            return value.dtype.kind in "fc"
        module = top(getattr(value, "__module__", None))
        if kind is types.FunctionType and (module != "gradscribe" or vars(value) or value.__closure__):
            if vars(value).keys() - {NAME}:
                return False
            self.functions[value] = parts_of(value)
            return all(map(self.stable, (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())))
        return module in LIBRARIES and (kind is not type or module in ("numpy", "builtins")) and callable(value)

    def current(self) -> bool:
        """Whether all that versions depend on, apart from their guards, is unchanged."""
        return self.shared and all(all(map(same, parts_of(f), parts)) for f, parts in self.functions.items()) and all(
            a.dtype == dtype and a.shape == shape for a, dtype, shape in self.arrays.values())


class Store:
    """The attribute of a function that holds its versions; empty if it was copied to another function."""

    def __init__(self, owner=None):
        self.owner, self.known = owner, {}

    def __reduce__(self):
        return Store, ()


def known_for(base: Any, transform: Any) -> Known:
    """The versions of a function for a transformation, possibly none."""
    if type(base) is not types.FunctionType or os.environ.get("GRADSCRIBE_DUMP"):
        return Known()
    if not all(map(written, transform.settings)):
        return Known()
    key = transform.reads, transform.prefix, repr(transform.settings), base.__name__
    store = vars(base).get(NAME)
    if not isinstance(store, Store) or store.owner is not base:
        store = Store(base)
        setattr(base, NAME, store)
    found, stamp = store.known.get(key), (len(RULES), len(REGISTRY))
    if found is None or found.stamp != stamp or not found.current():
        found = store.known[key] = Known(stamp)
    return found


def written(value) -> bool:
    """Whether equal repr means equal values: constants, and tuples of constants."""
    return all(map(written, value)) if type(value) is tuple else type(value) in NUMBERS


def same(a, b):
    """Whether two values are the same object."""
    return a is b


def top(module):
    """The name of a module's outermost package."""
    return module.split(".")[0] if isinstance(module, str) else ""
