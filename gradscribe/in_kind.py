# SPDX-License-Identifier: Apache-2.0
"""Calls of transformed functions with arrays that have labels or units: values go in, results come back in kind.

The emitted function computes with NumPy arrays (gradscribe/containers.py takes them out).  What an operator of a Series
or a DataArray means may differ from what NumPy's means: pandas aligns by labels, divides by n - 1 in std and leaves NaN
out; xarray broadcasts by the names of dimensions; pint converts units.  So the user's function runs once with the
objects themselves, and once with their values, near the arguments.  If the results differ, the call is refused.  The
result with the objects also shows which labels and units a result has.  This is repeated when labels or units are
others than before.

What comes back, by transformation:
- gradients and adjoints: the objects that they belong to, with units of the result over units of the argument
- values and tangents of results: what the function itself returns for the objects
- Jacobians and Hessians: arrays, or what `outer` of a record makes of them; units as above
- batches (vmap): what the function returns for an example, with the labels of the mapped axis
"""
import copy
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from gradscribe.ast_transform.core.children import children_of, registered
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, TransformError
from gradscribe.ast_transform.transforms import grad_places
from gradscribe.containers import Container, container_of
from gradscribe.frames import public
from gradscribe.given import FIELDS, as_numpy, mapped
from gradscribe.tree_nodes import apart, together

KEPT = 4                                # how many sets of labels a function remembers
APART = 1e-3                            # relative distance of the point where the two meanings are compared
ROUNDING = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}        # how far two orders of summation may differ
MISSING = object()


class Units(NamedTuple):
    """The units of an object, and the record that has their algebra."""
    record: Any
    labels: Any


class Meaning(NamedTuple):
    """What the user's function returns for objects with some labels; `result` is MISSING if it does not take them.

    version: the version of the function: another one is made when something else is read from outside.
    others: of the other arguments, what labels and units of the result may depend on.
    """
    version: Any
    labels: list
    others: tuple
    result: Any


_meanings: weakref.WeakKeyDictionary[Any, list[Meaning]] = weakref.WeakKeyDictionary()


# --- trees ---------------------------------------------------------------------

class Held(NamedTuple):
    """A container in the arguments, its record and its labels."""
    value: Any
    record: Container
    labels: Any


def taken(value: Any, found: list[Held]) -> Any:
    """An argument as emitted code gets it; the containers in it are added to `found`."""
    record = container_of(type(value))
    if record is not None:
        found.append(Held(value, record, record.labels(value)))
        return taken(record.values(value), found)
    if registered(type(value)) is not None:
        return mapped(lambda part: taken(part, found), children_of(value))
    return mapped(lambda part: taken(part, found), value) if parts_of(value) else as_numpy(value)


def parts_of(value: Any) -> list:
    """The parts of a list, tuple, dict, dataclass or registered object; none of a leaf."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    if registered(type(value)) is not None:
        return list(children_of(value))
    if hasattr(type(value), FIELDS) and not isinstance(value, type):
        return [getattr(value, name, None) for name in getattr(type(value), FIELDS)]
    return []


def paired(function: Callable, value: Any, made: Any) -> Any:
    """`made` with function(leaf of value, the part of made in its place) for each leaf; a container is a leaf."""
    if container_of(type(value)) is not None:
        return function(value, made)
    parts, theirs = parts_of(value), parts_of(made)
    if not parts:
        return function(value, made)
    if made is not None and holds_objects(value) and (not alike(value, made) or len(parts) != len(theirs)):
        raise KindError(f"a {type(made).__name__} does not have the structure of a {type(value).__name__}, and would "
                        "lose labels and units", None, "Give arrays without labels.")
    if not alike(value, made) or len(parts) != len(theirs):
        return made
    if registered(type(value)) is not None:
        kind, data, theirs = cast(Any, apart(made))
        return together(kind, data, [paired(function, v, m) for v, m in zip(parts, theirs)])
    if isinstance(value, dict):
        return {k: paired(function, v, made[k]) for k, v in value.items()} if value.keys() == made.keys() else made
    rest = iter([paired(function, v, m) for v, m in zip(parts, theirs)])
    return mapped(lambda _: next(rest), made)


def alike(value: Any, made: Any) -> bool:
    """Whether two containers are of one kind; emitted code returns dicts for ordered ones."""
    return type(value) is type(made) or isinstance(value, dict) and isinstance(made, dict)


def with_values(function: Callable, value: Any) -> Any:
    """An argument with function(array) for each of its arrays, those of containers included."""
    record = container_of(type(value))
    if record is not None:
        return record.build(record.labels(value), with_values(function, record.values(value)))
    if parts_of(value):
        return paired(lambda part, _: with_values(function, part), value, value)
    return function(value)


def as_values(value: Any) -> Any:
    """An argument with its containers replaced by their values."""
    return paired(lambda part, _: as_numpy(part), value, value)


# --- labels and units of results ------------------------------------------------

def units_of(value: Any) -> Units | None:
    """The units of an object or of what it holds; None for one without."""
    record = container_of(type(value))
    if record is None:
        return None
    if record.derivative is not None:
        return Units(record, record.labels(value))
    return units_of(record.values(value))


def in_units(made: Any, x: Units | None, y: Units | None, dy: Units | None) -> Any:
    """An adjoint as a quantity; unchanged where nothing has units."""
    known = next((u for u in (x, y, dy) if u is not None), None)
    if made is None or known is None:
        return made
    labels = known.record.derivative(*(None if u is None else u.labels for u in (x, y, dy)))
    return known.record.build(labels, made)


def adjoint_of(value: Any, made: Any, y: Units | None = None, dy: Units | None = None) -> Any:
    """An adjoint in the kind of the argument that it belongs to; y: units of the result, dy: of its adjoint."""
    def one(part, its):
        record = container_of(type(part))
        if its is None:
            return None
        if record is None or record.derivative is not None:
            return in_units(its, units_of(part), y, dy)
        return record.build(record.labels(part), adjoint_of(record.values(part), its, y, dy))
    return paired(one, value, made)


def as_result(template: Any, made: Any) -> Any:
    """A result in the kind of what the function returned; arrays where it returned none of that shape."""
    def one(part, its):
        record = container_of(type(part))
        if record is None or its is None or not fits(record.values(part), its):
            return its
        return record.build(record.labels(part), as_result(record.values(part), its))
    return made if template is MISSING else paired(one, template, made)


def fits(values: Any, made: Any) -> bool:
    """Whether arrays have the shapes of others."""
    a, b = parts_of(as_numpy(values)), parts_of(made)
    if a or b:
        return alike(values, made) and len(a) == len(b) and all(map(fits, a, b))
    return np.shape(as_numpy(values)) == np.shape(made)


def block_of(y: Any, x: Any, made: Any) -> Any:
    """The derivative of every entry of y by every entry of x."""
    record, whole = container_of(type(y)), container_of(type(x))
    if made is None:
        return None
    if record is not None and parts_of(record.values(y)):       # a Dataset: blocks by name, as for a dict
        return _by_leaf(lambda part, its: block_of(part, x, its), record.values(y), made)
    if not np.shape(as_numpy(y)) and fits(x if whole is None else whole.values(x), made):
        return adjoint_of(x, made, units_of(y))
    if whole is not None and parts_of(whole.values(x)):
        return paired(lambda part, its: block_of(y, part, its), whole.values(x), made)
    made = in_units(made, units_of(x), units_of(y), None)
    if record is not None and record.derivative is None and np.ndim(made) == np.ndim(as_numpy(y)):
        return as_result(y, made)
    if record is None or record is not whole or record.outer is None:
        return made
    return record.outer(record.labels(y), whole.labels(x), made)


# --- by transformation ------------------------------------------------------------

def result_of(call: "Call", meaning: Meaning) -> Any:
    """What the function returns beside aux."""
    y = meaning.result
    return y[0] if getattr(call.transform.settings, "aux", False) and y is not MISSING else y


def aux_of(meaning: Meaning, aux: Any) -> Any:
    """aux in the kind of what the function returns."""
    return as_result(meaning.result if meaning.result is MISSING else meaning.result[1], aux)


class Call(NamedTuple):
    """A call: the transformed function, its transformation, the arguments of the user's function, and further ones
    (tangents, adjoints); the containers in the arguments, and the arguments as emitted code gets them.
    """
    made: Any
    transform: Any
    primals: list
    words: dict
    further: list
    held: list[Held]
    plain: list


def gradient(call: Call, meaning: Meaning, result: Any) -> Any:
    """(value, aux) and gradients, in the order of gs.grad's results."""
    settings, y = call.transform.settings, result_of(call, meaning)
    places = grad_places(None, settings, call.made.base, call.primals, call.words)
    whole = [call.words[k] if isinstance(k, str) else call.primals[k] for k in places]
    chosen = tuple(whole) if settings.many else whole[0]
    grads, y_units = None, units_of(y)
    if not settings.value:
        grads, aux = result if settings.aux else (result, None)
        grads = adjoint_of(chosen, grads, y_units)
        return (grads, aux_of(meaning, aux)) if settings.aux else grads
    value, grads = result
    return as_result(meaning.result, value), adjoint_of(chosen, grads, y_units)


def jacobian(call: Call, meaning: Meaning, result: Any) -> Any:
    """Blocks, by the structure of the result and then of the arguments."""
    settings, y = call.transform.settings, result_of(call, meaning)
    if y is MISSING:
        return result
    places = grad_places(None, settings, call.made.base, call.primals, call.words)
    chosen = tuple(call.primals[k] for k in places) if settings.many else call.primals[places[0]]
    blocks, aux = result if settings.aux else (result, None)

    def one(y_part, theirs):
        return paired(lambda x, made: block_of(y_part, x, made), chosen, theirs)
    blocks = _by_leaf(one, y, blocks)
    return (blocks, aux_of(meaning, aux)) if settings.aux else blocks


def _by_leaf(function, y, blocks):
    """function(leaf of y, the blocks in its place)"""
    parts = [] if container_of(type(y)) is not None else parts_of(y)
    if not parts:
        return function(y, blocks)
    rest = iter([_by_leaf(function, v, b) for v, b in zip(parts, parts_of(blocks))])
    return mapped(lambda _: next(rest), y)


def pullback(call: Call, meaning: Meaning, result: Any) -> Any:
    """The adjoints of the primals."""
    y = result_of(call, meaning)
    return adjoint_of(tuple(call.primals), result, units_of(y), units_of(call.further[0]))


def tangents(call: Call, meaning: Meaning, result: Any) -> Any:
    """The value and its tangent, both as the function returns them."""
    if call.transform.settings.tangent_only:
        return as_result(meaning.result, result)
    return tuple(as_result(meaning.result, part) for part in result)


def value(call: Call, meaning: Meaning, result: Any) -> Any:
    """What the function returns."""
    return as_result(meaning.result, result)


def batch(call: Call, meaning: Meaning, result: Any) -> Any:
    """What the function returns for an example, with the labels of the mapped axis."""
    known = Axes(call).found

    def one(y, made, axis):
        record = container_of(type(y))
        values = y if record is None else record.values(y)
        if axis is None or made is None or np.ndim(made) != np.ndim(as_numpy(values)) + 1:
            return made if axis is not None else as_result(y, made)
        units = record if record is not None and record.derivative is not None else container_of(type(values))
        if units is not None:               # those of quantities, which may be in a DataArray
            made = units.build(units.labels(y if units is record else values), made)
            if units is record:
                return made
        return made if known is None else known.along.build(known.labels, y, made, axis % np.ndim(made))
    y = meaning.result
    return result if y is MISSING else spread(one, y, result, call.transform.settings.out_axes)


def spread(function: Callable, value: Any, made: Any, axes: Any) -> Any:
    """`made` with function(leaf of value, of made, its axis), where axes may stop at an inner node."""
    parts = [] if container_of(type(value)) is not None else parts_of(value)
    if not parts:
        return function(value, made, axes)
    theirs = parts_of(axes) if parts_of(axes) else [axes] * len(parts)
    rest = iter([spread(function, *each) for each in zip(parts, parts_of(made), theirs)])
    return mapped(lambda _: next(rest), made)


RESULTS = {"grad": gradient, "value_and_grad": gradient, "jacfwd": jacobian, "jacrev": jacobian, "vjp": pullback,
           "jvp": tangents, "jit": value, "vmap": batch}


# --- the call --------------------------------------------------------------------

def holds_objects(value: Any) -> bool:
    """Whether an argument is or holds a container."""
    return container_of(type(value)) is not None or any(map(holds_objects, parts_of(value)))


def called_in_kind(made: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a transformed function for arguments with containers.

    Raises KindError if the function means something else for the objects than for their values, or if units do not fit.
    """
    inner, static = made, made._static
    while inner.transform.prefix == "jit" and hasattr(inner.base, "transform"):
        inner = inner.base
    results = RESULTS.get(inner.transform.prefix)
    if results is None:
        raise refusal("this transformation")
    held: list[list[Held]] = [[] for _ in args]
    plain = [v if k in static else taken(v, found) for k, (v, found) in enumerate(zip(args, held))]
    by_word: list[Held] = []
    words = {k: v if k in static else taken(v, by_word) for k, v in kwargs.items()}
    places, others = inner.transform.split(None, list(range(len(args))))
    call = Call(inner, inner.transform, [args[k] for k in places], kwargs, [args[k] for k in others],
                [*(one for k in places for one in held[k]), *by_word], [*(plain[k] for k in places), *words.values()])
    try:
        version = made.version_for(plain, words)
    except TransformError as error:
        if call.held and not isinstance(error, KindError):
            error.advice = f"{error.advice}\n{_numbers_of(call)}".lstrip()
        raise
    meaning = (meaning_of_example if results is batch else meaning_of)(call, version)
    check_further(call, meaning)
    return results(call, meaning, made(*plain, **words))


def _numbers_of(call):
    return f"The function is read for the numbers of the {_names(call)}, whose own methods and attributes are not read."


def refusal(what: str) -> KindError:
    """The error for arrays with labels or units where they are not taken."""
    return KindError(f"arrays with labels or units do not go through {what}", None,
                     "Give it their values: series.to_numpy(), array.values, quantity.magnitude.")


class LinearInKind:
    """A linear function, as gs.vjp and gs.linearize return it for objects; source: its text."""

    def __init__(self, of_arrays, call, meaning):
        self.of_arrays, self.call, self.meaning = of_arrays, call, meaning
        self.__name__ = of_arrays.__name__

    @public
    def __call__(self, *further):
        """The derivative's value, in kind."""
        call = self.call._replace(further=list(further))
        check_further(call, self.meaning)
        made = self.of_arrays(*as_numpy(further))
        return pullback(call, self.meaning, made) if call.transform.prefix == "vjp" else \
            as_result(result_of(call, self.meaning), made)

    @property
    def source(self) -> str:
        """The text of what each call runs."""
        return self.of_arrays.source


def linear_in_kind(make: Callable, made: Any, fun: Callable, primals: tuple, has_aux: bool) -> tuple:
    """gs.vjp or gs.linearize, `make`, at primals with containers; made: the derivative as a transformed function."""
    held: list[Held] = []
    plain = [taken(v, held) for v in primals]
    call = Call(made, made.transform, list(primals), {}, [], held, plain)
    y, derivative, *aux = make(fun, *plain, has_aux=has_aux)
    meaning = meaning_of(call, None)
    value = as_result(result_of(call, meaning), y)
    return value, LinearInKind(derivative, call, meaning), *(aux_of(meaning, part) for part in aux)


class Axis(NamedTuple):
    """The labels of the mapped axis, and the functions of the class that has them."""
    along: Any
    labels: Any


class Axes:
    """The mapped axes of a batch, and its first example.

    args, words: the example's; found: the labelled axis that it was taken along, or None; empty: there is no example.
    """

    def __init__(self, call: Call):
        self.base, self.empty = call.made.base, False
        self.found: Axis | None = None
        settings, count = call.transform.settings, len(call.primals)
        axes = list(settings.in_axes) if isinstance(settings.in_axes, (tuple, list)) else [settings.in_axes] * count
        self.args = [spread(self.example, v, v, None if k in settings.static else axis)
                     for k, (v, axis) in enumerate(zip(call.primals, axes))]
        self.words = {k: spread(self.example, v, v, 0) for k, v in call.words.items()}

    def example(self, value: Any, _: Any, axis: Any) -> Any:
        """The first example of an argument along an axis; None: all examples share it."""
        record = container_of(type(value))
        if axis is None or value is None:
            return value
        if record is None or record.along is None:
            if units_of(value) is not None:
                raise KindError(f"a {type(value).__name__} with units is given to vmap, which does not see the units "
                                "of one example", place_of(self.base), "Give it numbers, in coherent units.")
            numbers = as_values(value)
            return paired(lambda part, _: self.first(part, axis), numbers, numbers)
        if not np.shape(as_numpy(record.values(value)))[axis]:
            self.empty = True
            return value
        made, labels = record.along.example(value, axis)
        if labels is not None:
            known = self.found = self.found or Axis(record.along, labels)
            if type(labels) is not type(known.labels) or not record.along.aligned(known.labels, labels):
                raise KindError(f"the labels along the mapped axis of a {type(value).__name__} are others than those "
                                "of an argument before it", place_of(self.base),
                                "Give both the same labels in the same order.")
        return made

    def first(self, array, axis):
        """The first example of an array; of an axis without any, the array itself."""
        if np.shape(array)[axis]:
            return np.take(array, 0, axis)
        self.empty = True
        return array


def meaning_of_example(call: Call, version: Any) -> Meaning:
    """What the function returns for the first example of a batch; MISSING if there is none."""
    made = Axes(call)
    held: list[Held] = []
    if made.empty:
        return Meaning(None, [], (), MISSING)
    plain = [taken(v, held) for v in (*made.args, *made.words.values())]
    return meaning_of(call._replace(primals=made.args, words=made.words, held=held, plain=plain), version)


def check_further(call: Call, meaning: Meaning) -> None:
    """Raises KindError for a tangent with other labels or units than its primal, or an adjoint than its result."""
    adjoint = call.transform.prefix == "vjp"
    what, whose = ("an adjoint", "result") if adjoint else ("a tangent", "primal")

    def one(primal, tangent):
        record, its = container_of(type(primal)), container_of(type(tangent))
        if adjoint and (units_of(primal) is not None or units_of(tangent) is not None):
            return tangent                              # its units are those of another quantity over the result's
        if its is None and (record is None or record.derivative is None):
            return tangent
        if its is not record:
            raise KindError(f"a {type(primal).__name__} has {what} that is a {type(tangent).__name__}", place_of(base),
                            f"Give a {type(primal).__name__} with the labels or units of the {whose}.")
        if not (record.fits or record.same)(record.labels(primal), record.labels(tangent)):
            raise KindError(f"{what} has other {'units' if record.derivative else 'labels'} than its {whose}",
                            place_of(base), f"Give it those of the {whose}.")
        return tangent
    base = call.made.base
    for primal, tangent in zip([result_of(call, meaning)] if adjoint else call.primals, call.further):
        if primal is not MISSING:
            paired(one, primal, tangent)


def measured(call: Call) -> bool:
    """Whether quantities with units are given."""
    return any(held.record.derivative is not None for held in call.held)


def meaning_of(call: Call, version: Any) -> Meaning:
    """What the function returns for objects with such labels; found once for each.

    It is found each time without a version, and where there are NaNs, which pandas and xarray leave out of sums.
    """
    known = _meanings.setdefault(call.made, [])
    labels = [(held.record, held.labels) for held in call.held]
    units = measured(call)
    leaves = _leaves(call.plain)
    others = tuple(_kind(leaf, units) for leaf in leaves)
    fresh = version is None or any(map(_has_nan, leaves))
    for meaning in known:
        if fresh or meaning.version is not version or meaning.others != others:
            continue
        if len(meaning.labels) == len(labels) and all(
                a is b and a.same(x, y) for (a, x), (b, y) in zip(meaning.labels, labels)):
            return meaning
    meaning = Meaning(version, labels, others, compared(call))
    if units:
        check_units_stay(call, meaning)
    known.insert(0, meaning)
    del known[KEPT:]
    return meaning


def _leaves(value):
    parts = parts_of(value)
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [value]


def _kind(leaf, measured):
    """What a result's labels and units may depend on: shapes and dtypes of arrays, values of integers and texts.

    Integers may be indices, which select by label or by place.

    measured: quantities are given, so a number may be the exponent of one.
    """
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype, leaf.shape, hash(leaf.tobytes()) if leaf.dtype.kind in "iu" else 0
    return (type(leaf), leaf) if isinstance(leaf, (int, str)) or measured and isinstance(leaf, float) else type(leaf)


def _has_nan(leaf):
    """Whether the sum of an array is NaN: so if an entry is."""
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc" and bool(np.isnan(_sum(leaf)))


def _sum(array):
    with np.errstate(all="ignore"):
        return np.sum(array)


def compared(call: Call) -> Any:
    """What the function returns for the objects, or MISSING; KindError if it is not what it returns for their values.

    It is compared near the arguments, since at zeros or equal numbers two meanings may agree by chance; where that is
    outside the function's domain, at the arguments.
    """
    base, failed, found, outside = call.made.base, None, MISSING, None
    packages = _packages(call)
    for near in (True, False):
        given = _moved if near else _copied
        args, words = given(call.primals), given(call.words)
        numbers = _run(base, as_values(_copied(args)), as_values(_copied(words)))
        if isinstance(numbers, Exception):
            outside = numbers           # not in the domain of the function
            continue
        outcome = _run(base, args, words, packages)
        if isinstance(outcome, Exception):
            failed = outcome
            continue
        failed, found = None, outcome
        if not _alike(numbers, found):
            raise KindError(_differing(call, numbers, found), place_of(base), _way_out(call))
        if _finite(numbers):
            return found
    if failed is None and (found is not MISSING or not measured(call)):
        return found
    failed = failed or outside
    if len(call.held) > 1 or measured(call):
        raise KindError(f"the function does not take these objects ({_names(call)}): {type(failed).__name__}: {failed}",
                        place_of(base), _way_out(call)) from failed
    return MISSING


def check_units_stay(call: Call, meaning: Meaning) -> None:
    """Raises KindError if the unit of a result depends on a number that it is differentiated by, as that of x**n on n.

    The derivative would depend on the units in which x is given.
    """
    y = result_of(call, meaning)
    for place in differentiated(call):
        args, words = list(_copied(call.primals)), _copied(call.words)
        part = words if isinstance(place, str) else args
        part[place] = with_values(_scaled, part[place])
        outcome = _run(call.made.base, args, words)
        if getattr(call.transform.settings, "aux", False) and isinstance(outcome, tuple):
            outcome = outcome[0]
        failed = isinstance(outcome, Exception)
        if type(outcome).__module__.partition(".")[0] in _packages(call) if failed else not same_units(y, outcome):
            raise KindError(f"the unit of the result depends on the number in argument {place}, which the derivative "
                            "is asked for", place_of(call.made.base),
                            "Divide by a quantity of one unit first: (x / x0)**n.")


def same_units(value: Any, other: Any) -> bool:
    """Whether the parts of two results have units of one kind."""
    found: list[tuple] = []
    paired(lambda a, b: found.append((units_of(a), units_of(b))), value, other)
    return all(a is b is None or a is not None and b is not None and
               (a.record.fits or a.record.same)(a.labels, b.labels) for a, b in found)


def differentiated(call: Call) -> list:
    """The places of the arguments that the derivative is asked for; none for values."""
    if call.transform.prefix in ("jit", "vmap"):
        return []
    if call.transform.prefix in ("vjp", "jvp"):
        return list(range(len(call.primals)))
    return list(grad_places(None, call.transform.settings, call.made.base, call.primals, call.words))


def _scaled(number):
    """A number, or an array, a little away."""
    inexact = isinstance(number, float) or isinstance(number, (np.ndarray, np.generic)) and number.dtype.kind in "fc"
    return number * (1 + APART) + APART if inexact else number


def _packages(call):
    """The packages of the quantities that are given."""
    return {cls.__module__.partition(".")[0] for held in call.held if held.record.derivative is not None
            for cls in type(held.value).__mro__} - {"builtins"}


def _names(call):
    return ", ".join(dict.fromkeys(type(held.value).__name__ for held in call.held))


def _differing(call, numbers, found):
    names = _names(call)
    return (f"the function means something else for a {names} than for the numbers in it: near the arguments it "
            f"returns {_short(found)} for the one, {_short(numbers)} for the others")


def _short(value):
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _way_out(call):
    if measured(call):
        return "Make the units fit, or divide by a quantity of one unit first: (x / x0) has none."
    return "Give it the numbers: series.to_numpy(), array.values; align labels before the call."


def _moved(given):
    """A copy of arguments with arrays of inexact numbers a little away from where they are."""
    rng = np.random.default_rng(0)

    def one(array):
        if isinstance(array, np.ndarray) and array.dtype.kind in "fc" and array.size:
            scale = np.max(np.abs(array), initial=0.0, where=np.isfinite(array)) or 1.0
            moved = array * (1 + APART * rng.uniform(size=array.shape)) + APART * scale * rng.uniform(size=array.shape)
            return np.asarray(moved, array.dtype)
        return array
    return with_values(one, _copied(given))


def _copied(given):
    """A copy of arguments; what cannot be copied, such as an open file, is the same object."""
    try:
        return copy.deepcopy(given)
    except Exception:
        return with_values(lambda part: part.copy() if isinstance(part, np.ndarray) else part, given)


def _run(function, args, words, packages=()):
    """The result of a function, or the exception that it raised; what it prints or draws is not seen outside.

    packages: those whose warnings are errors, since a quantity that loses its unit is one.
    """
    state, quiet = np.random.get_state(), _Quiet(sys.stdout)
    try:
        sys.stdout = quiet
        with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            result = function(*args, **words)
        lost = [w for w in seen if w.category.__module__.partition(".")[0] in packages]
        return TypeError(str(lost[0].message)) if lost else result
    except Exception as error:
        return error
    finally:
        quiet.ended = True
        if sys.stdout is quiet:
            sys.stdout = quiet.outermost()
        after = np.random.get_state()
        if any(not np.array_equal(a, b) for a, b in zip(state, after)):
            np.random.set_state(state)


class _Quiet:
    """Standard output that drops what this thread prints, until it has ended; two threads may each put one up."""

    def __init__(self, whole):
        self.whole, self.thread, self.ended = whole, threading.get_ident(), False

    def write(self, text):
        """What other threads print goes on."""
        return len(text) if not self.ended and threading.get_ident() == self.thread else self.whole.write(text)

    def outermost(self):
        """The output below, without those that have ended."""
        whole = self.whole
        while isinstance(whole, _Quiet) and whole.ended:
            whole = whole.whole
        return whole

    def __getattr__(self, name):
        return getattr(self.whole, name)


def _alike(numbers, found):
    """Whether two results are equal but for rounding, labels and units left out."""
    try:
        found = as_numpy(found)
    except KindError:
        return False
    a, b = parts_of(numbers), parts_of(found)
    if a or b:
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(numbers, (np.ndarray, np.generic, int, float, complex)):
        x, y = np.asarray(numbers), np.asarray(found)
        if x.shape != y.shape or y.dtype.kind not in "biufc":
            return False
        rtol = max((ROUNDING[v.dtype.name] for v in (x, y) if v.dtype.name in ROUNDING), default=1e-8)
        scale = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
        return np.allclose(x, y, rtol, rtol * scale, equal_nan=True)
    return True


def _finite(numbers):
    """Whether a result has a number that says something."""
    parts = parts_of(numbers)
    if parts:
        return any(map(_finite, parts))
    return isinstance(numbers, (np.ndarray, np.generic, int, float, complex)) and bool(np.all(np.isfinite(numbers)))
