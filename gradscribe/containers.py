# SPDX-License-Identifier: Apache-2.0
"""Arrays with labels or units, of other packages: how their values are taken out and how they are put back.

A transformed function computes with NumPy arrays.  For each class of such objects there is one record, a `Container`.
pandas, xarray and pint have theirs in gradscribe/containers_known.py; `register_container` adds others.  None of these
packages is imported here: an object of one of them exists only after the user has imported it.

gradscribe/in_kind.py calls transformed functions with such objects.
"""
import operator
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public


class Along(NamedTuple):
    """What vmap needs of a class, to map over an axis of its objects."""
    example: Callable[[Any, int], tuple[Any, Any]]
    aligned: Callable[[Any, Any], bool]
    build: Callable[[Any, Any, Any, int], Any]


class Container(NamedTuple):
    """The record of a class: its functions, as for register_container, and whether subclasses are included."""
    values: Callable[[Any], Any]
    labels: Callable[[Any], Any]
    build: Callable[[Any, Any], Any]
    same: Callable[[Any, Any], bool] = operator.eq
    derivative: Callable[[Any, Any, Any], Any] | None = None
    outer: Callable[[Any, Any, Any], Any] | None = None
    fits: Callable[[Any, Any], bool] | None = None
    subclasses: bool = False
    along: Along | None = None


CONTAINERS: dict[type, Container] = {}
ADAPTERS: dict[str, Callable[[], None]] = {}    # package -> what registers its classes, run when one of them is met
_found: weakref.WeakKeyDictionary[type, Container | None] = weakref.WeakKeyDictionary()     # what was looked up
PLAIN = frozenset({np.ndarray, float, int, bool, complex, str, list, tuple, dict, type(None)})     # found fast
_UNKNOWN: Any = object()
_lock = threading.RLock()


@public
def register_container(cls: type, values: Callable[[Any], Any], labels: Callable[[Any], Any],
                       build: Callable[[Any, Any], Any], *, same: Callable[[Any, Any], bool] = operator.eq,
                       derivative: Callable[[Any, Any, Any], Any] | None = None,
                       outer: Callable[[Any, Any, Any], Any] | None = None,
                       fits: Callable[[Any, Any], bool] | None = None, subclasses: bool = False,
                       along: tuple | None = None) -> None:
    """Register a class of arrays with labels or units, as arguments and results of transformed functions.

    values(x): the array, or a list, tuple or dict of arrays, that the function gets for an object x.
    labels(x): everything else, which transformations do not change.
    build(labels, values): an object; values has the structure that values(x) has.
    same(labels, labels): whether two objects have the same labels; without it, ==.
    derivative(labels of x, of y, of dy): for units: those of an adjoint of x, where dy belongs to the result y.  None
    stands for an object without units, and for dy = 1.  values(x) must then be in coherent units, as SI's base units
    are, and build converts back.
    outer(labels of y, labels of x, array): the derivative of every entry of y by every entry of x, from an array of
    shape y.shape + x.shape; without it, that array is returned.
    fits(labels of an object, labels of its tangent): whether these belong together, as metres and feet do; without it,
    `same`.
    subclasses: whether objects of subclasses are taken too.
    along: for vmap, functions (example, aligned, build).  example(x, axis): the first example along an axis, and the
    labels of that axis or None.  aligned(labels, labels): whether two axes may be mapped together.  build(labels of the
    axis, y, values, axis): the results of all examples, where y is that of one; without it, vmap returns arrays.

    A gradient has the labels of its argument.  Other classes than these are pytree nodes: gs.tree_util.

    Raises KindError for what is not a class; ValueError if the class is registered.

    >>> import numpy as np, gradscribe as gs
    >>> class Track:
    ...     def __init__(self, name, heights): self.name, self.heights = name, heights
    ...     def __array__(self, dtype=None, copy=None): return self.heights
    >>> gs.register_container(Track, lambda t: t.heights, lambda t: t.name, lambda name, heights: Track(name, heights))
    >>> slope = gs.grad(lambda t: np.sum(np.square(t)))(Track("north", np.array([1.0, 2.0])))
    >>> slope.name, slope.heights
    ('north', array([2., 4.]))
    """
    if not isinstance(cls, type):
        raise KindError(f"a class is needed, not {cls!r}")
    if cls in CONTAINERS or cls in PLAIN:
        raise ValueError(f"{cls.__name__} is registered already")
    CONTAINERS[cls] = Container(values, labels, build, same, derivative, outer, fits, subclasses,
                                None if along is None else Along(*along))
    _found.clear()


def container_of(cls: type) -> Container | None:
    """The record of a class; None for a class without one."""
    if cls in PLAIN:
        return None
    found = _found.get(cls, _UNKNOWN)
    if found is _UNKNOWN:
        found = _found[cls] = _looked_up(cls)
    return found


def _looked_up(cls):
    if cls in CONTAINERS:
        return CONTAINERS[cls]
    with _lock:
        for package in map(_package, cls.__mro__):
            if package in ADAPTERS:
                ADAPTERS[package]()
                del ADAPTERS[package]
    if cls in CONTAINERS:
        return CONTAINERS[cls]
    return next((CONTAINERS[parent] for parent in cls.__mro__[1:]
                 if parent in CONTAINERS and CONTAINERS[parent].subclasses), None)


def _package(cls):
    return (getattr(cls, "__module__", None) or "").partition(".")[0]
