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
from typing import Any

from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError


def reduced(self: Any, protocol: Any) -> Any:
    """The method __reduce_ex__ of an object with the __module__ and __qualname__ of the function it was made from."""
    name = getattr(self, "__qualname__", None)
    try:
        found = functools.reduce(getattr, name.split("."), sys.modules[self.__module__])  # type: ignore[union-attr]
    except (AttributeError, KeyError):
        found = None
    return name if found is self else object.__reduce_ex__(self, protocol)


def bound(self: Any, instance: Any, owner: Any = None) -> Any:
    """The method __get__ of an object that is called like a function: in a class, it is a method."""
    return self if instance is None else functools.partial(self, instance)


def found_on(self: Any, place: str, name: str) -> Any:
    """An attribute that an object has from another one, its attribute `place`; for its method __getattr__."""
    try:
        return getattr(vars(self)[place], name)
    except (AttributeError, KeyError):          # KeyError: the object is being copied
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self) from None


def take_name(made: Any, base: Any, name: str) -> None:
    """Give an object the attributes of a function that decorators copy, and a name of its own."""
    for word in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(base, word):
            setattr(made, word, getattr(base, word))
    made.__name__ = name


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
