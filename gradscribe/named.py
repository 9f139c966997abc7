# SPDX-License-Identifier: Apache-2.0
"""Decorated functions are pickled and copied as functions are: by name, where that name finds the same object.

>>> import pickle, textwrap, gradscribe as gs
>>> same = pickle.loads(pickle.dumps(gs.grad(textwrap.dedent)))
>>> same.base is textwrap.dedent
True
"""
import functools
import inspect
import sys
from collections.abc import Callable

from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError


class Named:
    """An object with the __module__ and __qualname__ of the function that it was made from."""

    def __reduce_ex__(self, protocol):
        name = getattr(self, "__qualname__", None)
        try:
            found = functools.reduce(getattr, name.split("."), sys.modules[self.__module__])
        except (AttributeError, KeyError):
            found = None
        return name if found is self else super().__reduce_ex__(protocol)


def positional(fun: Callable) -> tuple[list[str], bool]:
    """The names of a function's positional parameters, and whether it takes no others by position.

    >>> positional(lambda x, y, *rest, flag: x)
    (['x', 'y'], False)
    """
    parameters = inspect.signature(fun).parameters.values()
    return ([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
            all(p.kind is not p.VAR_POSITIONAL for p in parameters))


def number_of(fun: Callable, name: str, word: str) -> int:
    """The position of the parameter of this name; KindError, which names the option `word`, if there is none.

    >>> number_of(lambda x, mode: x, "mode", "static_argnames")
    1
    """
    names = positional(fun)[0]
    if name not in names:
        raise KindError(f"{word}: {fun.__name__} has no positional parameter {name!r}", place_of(fun),
                        f"Its parameters are {', '.join(names) or 'none'}.")
    return names.index(name)


def counted(fun: Callable, number: int, word: str) -> int:
    """The position of an argument; a negative number counts from the last positional parameter, as in JAX.

    >>> counted(lambda x, n: x, -1, "static_argnums")
    1
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise KindError(f"{word} must be numbers of arguments, not {number!r}")
    if number >= 0:
        return number
    names, all_of_them = positional(fun)
    if not all_of_them or number + len(names) < 0:
        raise KindError(f"{word}: {number} counts from the last of {len(names)} parameters"
                        f"{', *args not among them' * (not all_of_them)}", place_of(fun),
                        "Count from the first: 0, 1, ...")
    return number + len(names)
