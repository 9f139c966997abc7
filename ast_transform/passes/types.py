# SPDX-License-Identifier: Apache-2.0
"""Type inference: the dtype and dims of an operation's results, from those of its operands.

Broadcasting and equal lengths that records declare are unified here.  Other functions are called on small examples
(probing.py).
"""
import contextlib
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.alias import parts_of
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var, as_slice, is_application
from gradscribe.ast_transform.core.kinds import (
    UNIT,
    Array,
    Length,
    Listed,
    Opaque,
    Sequence,
    Stack,
    spell,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.kinds import broadcast as meet
from gradscribe.ast_transform.core.memory import UNKNOWN, Undecided
from gradscribe.ast_transform.core.operations import shape_of
from gradscribe.ast_transform.core.rule import RULES, Rule
from gradscribe.ast_transform.passes.described import Unfit, fact_of, no_array
from gradscribe.ast_transform.passes.probing import _cache, probe
from gradscribe.ast_transform.rules.lengths import NUMBERS

# --- broadcasting -----------------------------------------------------------------------------------------------------

def broadcast(shapes: list[tuple]) -> tuple[Length, ...]:
    """The dims of operands that are broadcast together."""
    try:
        return meet(shapes)
    except ValueError as error:
        raise Unfit(str(error)) from None


def equal_lengths(rule: Rule, operands: dict[str, Any]) -> None:
    """Unifies lengths of operands, given by name, that the record declares equal, and broadcasts tuples of them."""
    try:
        found = list(rule.options["lengths"](**{k: _seen(v) for k, v in operands.items()}))
    except Undecided:
        return
    except ValueError as error:
        raise Unfit(str(error)) from None
    for a, b, *reason in found:
        if isinstance(a, tuple):
            broadcast([a, b])
        elif not unify(a, b):
            raise Unfit(*reason or [f"lengths {a.size} and {b.size} must be equal"])


def _seen(node):
    """An operand as an argument of a record's function: the fact of an array, the value of a constant."""
    if isinstance(node, (tuple, list)):
        return tuple(map(_seen, node))
    if isinstance(node, Pack):
        return tuple(map(_seen, node.items))
    if isinstance(node, Const):
        return fact_of(node) if isinstance(node.value, np.ndarray) else node.value
    return node.fact if isinstance(node, Var) and isinstance(node.fact, Array) else UNKNOWN


# --- results of functions ---------------------------------------------------------------------------------------------

def infer(function: Any, args: Any, kwargs: Iterable[tuple[str, Any]] = ()) -> Any:
    """The fact of function(*args, **kwargs); a tuple of facts where it returns several results."""
    rule = _rule(function)
    if (rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise"))) or \
            isinstance(function, np.ufunc) and (function.signature, function.nout) == (None, 1):
        return _elementwise(function, args, kwargs)
    if rule is not None and "lengths" in rule.options:
        equal_lengths(rule, rule.signature.bind(*args, **dict(kwargs)).arguments)
    said = rule.options.get("fact") if rule is not None else None
    known = None if said is None else said_by(said, args, kwargs)
    if known is not None:
        return known
    found = probe(function, args, kwargs)
    if rule is not None and rule.options.get("complex_result"):     # for some values of real arguments, too
        found = _complex(found)
    if rule is not None and rule.options.get("counts") and not all(map(_certain, [*args, *(a for _, a in kwargs)])):
        return Array(found.dtype, (unknown(f"?{rule.label}"),))
    if isinstance(found, Array) and any(_may_lack_axes(a.fact, found) for a in args if isinstance(a, Var)):
        return Array(found.dtype, tuple(unknown("?listed") for _ in found.dims))
    return found if rule is None or "by_value" not in rule.options else by_value(rule, found, args, dict(kwargs))


def by_value(rule, fact, args, words):
    """A fact with unknown lengths where they depend on the values of arguments, which a probe cannot tell."""
    axes = rule.options["by_value"]
    if callable(axes):
        bound = rule.signature.bind(*args, **words)
        bound.apply_defaults()
        axes = axes(**{k: v.value if isinstance(v, Const) else v for k, v in bound.arguments.items()})
    length = unknown("?counted")

    def freed(fact, axis):
        dims = list(fact.dims)
        if axis is not None:
            dims[axis] = length
        return Array(fact.dtype, tuple(dims), fact.length)
    if isinstance(fact, Sequence):
        each = axes if isinstance(axes, (tuple, list)) else [axes] * len(fact.elements)
        return Sequence(fact.kind, tuple(map(freed, fact.elements, each)), fact.keys, fact.cls)
    return freed(fact, axes[0] if isinstance(axes, (tuple, list)) else axes)


def said_by(known, args, kwargs):
    """The fact that a record's typing function gives, or None if the function must be probed."""
    try:
        return known(*map(fact_of, args), **{k: fact_of(v) for k, v in kwargs})
    except ValueError as error:
        raise Unfit(*error.args) from None


def _may_lack_axes(given, found):
    """Whether a result loses the axis of a list that may be empty, and so may have fewer axes than the probe's."""
    if not isinstance(given, Array) or given.rank < 2:
        return False
    lists = {n.symbol for n in (d.normal() for d in given.dims) if n.symbol is not None and n.symbol.empty
             and n.offset <= 0}
    return bool(lists - {d.normal().symbol for d in found.dims})


def _certain(node):
    """Whether an operand is a number that is constant or a length."""
    fact = fact_of(node)
    return isinstance(node, Const) or isinstance(fact, Array) and fact.length is not None


def _complex(fact):
    if isinstance(fact, Sequence):
        return Sequence(fact.kind, tuple(map(_complex, fact.elements)), fact.keys, fact.cls)
    return Array(np.result_type(fact.dtype, np.complex64), fact.dims)


def _rule(function):
    try:
        return RULES.get(function)
    except TypeError:
        return None


def _elementwise(function, args, kwargs):
    facts = [fact_of(a) for a in args]
    words = [(k, fact_of(a)) for k, a in kwargs]
    for f in [*facts, *(f for _, f in words)]:
        if isinstance(f, (Sequence, Stack)):
            raise no_array(f)
        if isinstance(f, Opaque) and f.value is not None and not isinstance(f.value, (np.dtype, type)):
            raise no_array(f)
    arrays = [f for f in [*facts, *(f for _, f in words)] if isinstance(f, Array)]
    dims = broadcast([f.dims for f in arrays])
    key = (function, tuple(map(_dtype_key, args, facts)),
           tuple((k, _dtype_key(a, f)) for (k, a), (_, f) in zip(kwargs, words)))
    dtype = _cache.get(key)
    if dtype is None:
        dtype = _cache[key] = _dtype_of_elementwise(function, args, facts, kwargs, words)
    if dims and isinstance(dtype, type):
        dtype = np.dtype(dtype)
    length = None
    if not dims and Array(dtype).kind in "iu":
        length = _counted(function, facts) or unknown("?int")
    return Array(dtype, dims, length)


def _dtype_key(node, fact):
    """What the dtype of a result depends on, of one operand."""
    return (fact.weak, fact.dtype, bool(fact.dims), _whole(node, fact)) if isinstance(fact, Array) else (
        None, repr(fact.value))


def _whole(node, fact):
    """The value of an operand that is a constant integer, or None."""
    return node.value if isinstance(node, Const) and not fact.dims and fact.kind in "iu" else None


def _dtype_of_elementwise(function, args, facts, kwargs, words):
    rule = _rule(function)
    typical = 1 if rule is None else rule.options.get("typical", 1)     # a number in the function's domain

    def sample(node, fact):
        if not isinstance(fact, Array):
            return fact.value
        if (_whole(node, fact) or 0) > 0:
            return node.value
        if fact.weak:
            return {bool: True, int: typical, float: typical - 0.5, complex: 0.5 + 0.5j}[fact.dtype]
        one = fact.dtype.type(typical)
        return np.full(1, one) if fact.dims else one
    given, named = [*map(sample, args, facts)], {k: sample(a, f) for (k, a), (_, f) in zip(kwargs, words)}

    def found(values):
        value = function(*values, **named)
        return type(value) if type(value) in _PYTHON_NUMBERS else np.asarray(value).dtype

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kinds = [found(given)]
        except Exception as error:
            raise Unfit(str(error)) from None
        mixed = not isinstance(function, np.ufunc) and len({f.kind for f in facts if isinstance(f, Array)}) > 1
        for k, value in enumerate(given if mixed else ()):      # Python's max returns one of its arguments as it is
            given_so = not isinstance(facts[k], Array) or facts[k].kind == "b" or _whole(args[k], facts[k]) is not None
            for times in () if given_so else (4, 0, 1e30) if facts[k].kind == "f" else (4, 0):
                with contextlib.suppress(Exception):
                    kinds.append(found([*given[:k], times * value, *given[k + 1:]]))
    if all(map(is_python_type, kinds)):
        return max(kinds, key=_PYTHON_NUMBERS.index)
    return np.result_type(*(kind(0) if is_python_type(kind) else kind for kind in kinds))


_PYTHON_NUMBERS = (bool, int, float, complex)       # from narrow to wide


def is_python_type(kind):
    """Whether a kind of numbers is a Python type and not a dtype, which may be equal: np.dtype(float) == float."""
    return isinstance(kind, type)


def _counted(function, facts):
    """The value of an integer sum, as a length."""
    if function in (operator.add, operator.sub) and len(facts) == 2 and all(f.length is not None for f in facts):
        a, b = (f.length.normal() for f in facts)
        if b.symbol is None:
            return a.plus(b.offset if function is operator.add else -b.offset)
        if a.symbol is None and function is operator.add:
            return b.plus(a.offset)
    return None


# --- indexing ---------------------------------------------------------------------------------------------------------

def item(fact: Any, index: Any) -> Any:
    """The fact of x[index]; the index is an operand."""
    if isinstance(fact, Stack):
        return fact.element
    if isinstance(fact, Sequence):
        key = static_key(index)
        if isinstance(key, slice):
            return Sequence(fact.kind, fact.elements[key])
        return fact.elements[fact.keys.index(key) if fact.kind == "dict" else key]
    parts = parts_of(index)
    if isinstance(fact, Listed) and len(parts) == 1 and _is_slice(parts[0]):
        return Listed(fact.dtype, (sliced(fact.dims[0], parts[0]), *fact.dims[1:]))
    dims, dtype = _indexed_dims(fact, _for_each_axis(parts, fact.rank)), np.dtype(fact.dtype)
    return Array(dtype, dims, unknown("?int") if not dims and dtype.kind in "iu" else None)


def _for_each_axis(parts, rank):
    """The parts of an index with whole slices in the place of `...`, which may be left out at the end."""
    used = sum(_axes_used(p) for p in parts)
    if used > rank:
        raise Unfit(f"{used} indices for an array of rank {rank}")
    at = next((k for k, p in enumerate(parts) if isinstance(p, Const) and p.value is Ellipsis), len(parts))
    return [*parts[:at], *[Const(slice(None))] * (rank - used), *parts[at + 1:]]


def _indexed_dims(fact, parts):
    """The dims of x[parts]: integer arrays broadcast, and stand where the first is, or in front if they are not side
    by side.
    """
    dims, source, gathers, places = [], list(fact.dims), [], []
    for p in parts:
        if isinstance(p, Const) and p.value is None:
            dims.append(UNIT)
        elif _is_slice(p):
            dims.append(sliced(source.pop(0), p))
        elif (gathered := _gathered_dims(p, source, parts)) is not None:
            gathers.append(gathered)
            places.append(len(dims))
    if gathers:
        met = broadcast(gathers)
        place = places[0] if len(set(places)) == 1 else 0
        dims[place:place] = met
    return tuple(dims)


def _gathered_dims(part, source, parts):
    """The dims that an integer, or an array of integers or truth values, gives; its axes are taken off `source`.

    None of an integer, unless it is broadcast with arrays among the parts.
    """
    f = fact_of(part)
    if not isinstance(f, Array) or f.kind not in "biu":
        raise Unfit(f"an index is an integer, a slice, None or an array of integers, not {spell(f)}")
    if f.kind == "b":
        if not f.dims:
            raise Unfit("an index that is a truth value", "Write np.where, or an if.")
        del source[:f.rank]
        return (unknown("?mask"),)
    source.pop(0)
    with_arrays = f.dims or any(isinstance(q, Var) and fact_of(q).dims for q in parts)
    return f.dims if with_arrays else None


def _is_slice(part):
    return isinstance(part, Slice) or isinstance(part, Const) and isinstance(part.value, slice)


def _axes_used(part):
    if isinstance(part, Const) and (part.value is None or part.value is Ellipsis):
        return 0
    f = fact_of(part)
    return f.rank if isinstance(f, Array) and f.kind == "b" else 1


def sliced(length: Length, part: Any, known: Length | None = None) -> Length:
    """The length of x[start:stop:step], as far as it is certain.

    known: the length that it is proved to have otherwise; it becomes the length of all equal slices
    """
    part = as_slice(part)

    def number(p, default):
        return default if p is None or isinstance(p, Const) and p.value is None else \
            p.value if isinstance(p, Const) and isinstance(p.value, (int, np.integer)) else Ellipsis
    start, stop, step = number(part.start, 0), number(part.stop, None), number(part.step, 1)
    n = length.normal()
    if step == -1 and start == 0 and stop is None and part.start is None:
        return length
    if Ellipsis in (start, stop, step):
        return between(n, part, known)
    if n.symbol is None:
        return Length(None, len(range(n.offset)[slice(None if part.start is None else start, stop, step)]))
    if step == 1 and start == 0 and stop is None:
        return length
    if step == 1 and start >= 0 and (stop is None or stop < 0):
        left = start - (stop or 0)
        if n.size is None or n.demand(left):
            n.symbol.taken = max(n.symbol.taken, left - n.offset) if n.size is None else n.symbol.taken
            return n.plus(-left)
        unify(n, Length(None, n.size))          # of a shorter axis nothing is left
        return Length(None, 0)
    if step == 1 and (start == 0 and stop == 1 or start == -1 and stop is None) and n.many and n.demand(1):
        return UNIT                             # the axis is not empty
    many = step == 1 and (start == 0 and stop is not None and stop >= 2 or start <= -2 and stop is None) and n.many
    return n.symbol.slices.setdefault((n, start, stop, step), known or unknown("?slice", many))


def between(length, part, known=None):
    """The length of a slice between places that are not constants; equal for equal places on axes of one length.

    known: as for `sliced`
    """
    ends = [p.value if isinstance(p, Const) else None if p is None else fact_of(p).length for p in (
        part.start, part.stop, part.step)]
    if any(isinstance(p, Var) and end is None for p, end in zip((part.start, part.stop, part.step), ends)):
        return known or unknown("?slice")
    ends = [end.normal() if isinstance(end, Length) else end for end in ends]
    symbol = next((end.symbol for end in ends if isinstance(end, Length) and end.symbol is not None), None)
    known = known or unknown("?slice")
    return known if symbol is None else symbol.slices.setdefault((length, *ends), known)


def static_key(index: Any) -> Any:
    """A literal index as a Python value."""
    if isinstance(index, Const):
        return index.value
    if isinstance(index, Slice):
        return slice(*(None if p is None else p.value for p in (index.start, index.stop, index.step)))
    raise Unfit("a container is indexed by a value that is not known when transforming", NUMBERS)


def infer_apply(value: Apply):
    """The fact of an operation."""
    return infer(value.function, value.args, value.kwargs)


def nested(node: Any, fact: Callable[[Any], Any] | None = None) -> Any:
    """The fact of a nested expression; fact: the function that gives those of its subexpressions."""
    fact = fact or nested
    if isinstance(node, Pack):
        return Sequence(node.kind, tuple(map(fact, node.items)), node.keys, node.cls)
    if not isinstance(node, Apply):
        return fact_of(node)
    args, words = [stand_in(a, fact) for a in node.args], tuple((k, stand_in(a, fact)) for k, a in node.kwargs)
    if is_application(node, shape_of):
        return Array(int, (), fact_of(args[0]).dims[args[1].value])
    if is_application(node, operator.getitem):
        return item(fact_of(args[0]), args[1])
    return infer(node.function, args, words)


def stand_in(node: Any, fact: Callable[[Any], Any]) -> Any:
    """An operand with a variable in the place of each subexpression."""
    if isinstance(node, Apply):
        return Var("t", fact(node))
    if isinstance(node, Pack):
        return Pack(node.kind, tuple(stand_in(i, fact) for i in node.items), node.keys, node.cls)
    if isinstance(node, Slice):
        return Slice(*(None if p is None else stand_in(p, fact) for p in (node.start, node.stop, node.step)))
    return node
