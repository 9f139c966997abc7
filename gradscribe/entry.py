# SPDX-License-Identifier: Apache-2.0
"""The fast path into a compiled function: arguments like those of an earlier call go straight to its version.

The general path makes a key of the arguments and looks a version up, which takes a microsecond or two.  Here the
types, dtypes and shapes of one call become one Python condition; other arguments take the general path.
"""
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

OTHER = object()                    # an entry's result for arguments of another kind
PLAIN = (float, int, complex, bool)


def entry_for(args: tuple, kwargs: dict[str, Any], call: Callable, guards: Iterable[Callable[[], bool]],
              static: Container[int | str]) -> Callable[[tuple, dict], Any] | None:
    """A function of (args, kwargs) that calls `call` with them, or returns OTHER; None if there is no fast path.

    guards: further conditions, functions without arguments; static: the arguments that are compared by value.  Zeros
    compare equal whatever their sign, so they take the general path.
    """
    space: dict[str, Any]
    tests: list[str]
    space, tests = {"ndarray": np.ndarray, "call": call, "OTHER": OTHER, "guards": guards,
                    "__name__": __name__}, []
    places = [(f"a{k}", value, k in static) for k, value in enumerate(args)]
    places += [(f"k{k}", value, name in static) for k, (name, value) in enumerate(kwargs.items())]
    for path, value, known in places:
        of_signs = type(value) is float and not value
        if known and (of_signs or type(value) not in (int, float, bool, str)) or \
                not _conditions(path, value, known, tests, space):
            return None
    lines = [f"    if len(args) != {len(args)} or len(kwargs) != {len(kwargs)}:", "        return OTHER"]
    if args:
        lines.append(f"    {', '.join(f'a{k}' for k in range(len(args)))}, = args")
    lines += [f"    k{k} = kwargs.get({name!r}, OTHER)" for k, name in enumerate(kwargs)]
    if tests:
        lines += [f"    if not ({' and '.join(tests)}):", "        return OTHER"]
    if guards:
        lines += ["    for guard in guards:", "        if not guard():", "            return OTHER"]
    given = [path for path, _, _ in places]
    text = "\n".join(["def entry(args, kwargs):", *lines, f"    return call({', '.join(given)})", ""])
    exec(text, space)
    return space["entry"]


def _conditions(path, value, known, tests, space):
    """Add the conditions for one argument; False if it needs more than a few comparisons."""
    kind = type(value)
    if kind is np.ndarray:
        k = len(space)
        space[f"d{k}"], space[f"s{k}"] = value.dtype, value.shape
        tests.append(f"type(v{k} := {path}) is ndarray and v{k}.dtype is d{k} and v{k}.shape == s{k}")
        return True
    if kind in (tuple, list):
        tests.append(f"type({path}) is {kind.__name__} and len({path}) == {len(value)}")
        return all(_conditions(f"{path}[{k}]", item, False, tests, space) for k, item in enumerate(value))
    if kind is dict:
        k = len(space)
        space[f"n{k}"] = tuple(value)
        tests.append(f"type({path}) is dict and tuple({path}) == n{k}")
        return all(isinstance(key, str) and _conditions(f"{path}[{key!r}]", item, False, tests, space)
                   for key, item in value.items())
    if kind in PLAIN or known or isinstance(value, np.generic):
        k = len(space)
        space[f"t{k}"] = kind
        tests.append(f"type({path}) is t{k}")
        if known:
            space[f"c{k}"] = value
            tests.append(f"{path} == c{k}")
        return True
    return False
