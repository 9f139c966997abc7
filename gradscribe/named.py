# SPDX-License-Identifier: Apache-2.0
"""What decorators make of functions is pickled and copied as functions are: by name, where the name leads to it.

>>> import pickle, textwrap, gradscribe as gs
>>> same = pickle.loads(pickle.dumps(gs.grad(textwrap.dedent)))
>>> same.base is textwrap.dedent
True
"""
import functools
import sys


class Named:
    """An object with the __module__ and __qualname__ of the function that it was made from."""

    def __reduce_ex__(self, protocol):
        name = getattr(self, "__qualname__", None)
        try:
            found = functools.reduce(getattr, name.split("."), sys.modules[self.__module__])
        except (AttributeError, KeyError):
            found = None
        return name if found is self else super().__reduce_ex__(protocol)
