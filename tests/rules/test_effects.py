"""What a record says of layout, cells, failures, dtypes and lengths against NumPy, for each sample of each record.

The question is put as the passes put it: to Views.made_rowwise and may_be_cell, to may_raise, and to infer.
"""
import copy
import functools
import itertools
import warnings

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.alias import may_raise, memory_of
from gradscribe.ast_transform.core.form import UNDEFINED, Apply, Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.memory import FRESH, UPDATES
from gradscribe.ast_transform.core.rule import OPERATIONS, RULES, STATIC_ARGUMENTS
from gradscribe.ast_transform.passes.described import Unfit, describe
from gradscribe.ast_transform.passes.facts import infer
from gradscribe.ast_transform.passes.views import Views
from gradscribe.ast_transform.source.read import from_text

RULES.complete()
SAMPLED = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None]
each_record = pytest.mark.parametrize("rule", SAMPLED, ids=lambda r: r.label)


def leaves(value):
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from leaves(v)
    else:
        yield value


def arrays_of(value):
    return [v for v in leaves(value) if isinstance(v, np.ndarray)]


def mapped(change, value, count=None):
    """Arguments with each array changed; `change` is given the array and how many came before."""
    count = itertools.count() if count is None else count
    if isinstance(value, dict):
        return {k: mapped(change, v, count) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return getattr(type(value), "_make", type(value))([mapped(change, v, count) for v in value])
    return change(value, next(count)) if isinstance(value, np.ndarray) else value


def operand(value):
    if isinstance(value, np.ndarray | np.generic):
        return Var("x", describe(value))
    if isinstance(value, (tuple, list)) and arrays_of(value):
        return Pack(type(value).__name__, tuple(map(operand, value)))
    return Const(value)


def application(function, args, words):
    return Apply(function, tuple(map(operand, args)), tuple((k, operand(a)) for k, a in words.items()))


class Refused(Exception):
    """NumPy refuses the arguments."""


def value_of(function, args, words):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **words)
        except (TypeError, ValueError, ArithmeticError, IndexError, AttributeError) as error:
            raise Refused(str(error)) from error


@functools.cache
def samples_of(rule):
    """Calls that NumPy takes: (function, arguments, words)."""
    found = []
    for function in rule.functions:
        for args, words in rule.samples(np.random.default_rng(3)):
            try:
                value_of(function, *copy.deepcopy((tuple(args), words)))
            except Refused:                 # a function of numbers, given an array by its record's samples
                continue
            found.append((function, tuple(args), words))
    return found


# --- layout -----------------------------------------------------------------------------------------------------------

def strided(a):
    wide = np.zeros(tuple(2 * n for n in a.shape), a.dtype)
    part = wide[(slice(None, None, 2),) * a.ndim]
    part[...] = a
    return part


def backward(a):
    back = (slice(None, None, -1),) * a.ndim
    return a[back].copy()[back]


LAYOUTS = {
    "rows": lambda a, k: np.ascontiguousarray(a) if a.ndim else a,
    "columns": lambda a, k: np.asfortranarray(a) if a.ndim else a,
    "strided": lambda a, k: strided(a) if a.ndim else a,
    "backward": lambda a, k: backward(a) if a.ndim else a,
    "first in columns": lambda a, k: np.asfortranarray(a) if a.ndim and not k else a,
    "others in columns": lambda a, k: np.asfortranarray(a) if a.ndim and k else a,
    "a batch in columns": lambda a, k: np.swapaxes(np.swapaxes(a, 0, -1).copy(), 0, -1) if a.ndim > 2 else a,
}


class Told(Views):
    """The layout of operands is told."""

    def __init__(self, made):
        self.layouts, self.build, self.walked, self.entry_tokens = {}, self, {}, ()
        self.made = made


def rowwise(function, args, words, result):
    """Whether the passes take the result of a call for one that lies row by row."""
    value = application(function, args, words)
    told, made = Told({}), Var("y", describe(result))
    for var, array in zip(variables(value), (a for a in leaves((args, list(words.values())))
                                             if isinstance(a, np.ndarray | np.generic))):
        told.layouts[var] = bool(np.asarray(array).flags.c_contiguous)
    return told.made_rowwise(value, made)


def variables(value):
    def inside(node):
        if isinstance(node, Pack):
            for item in node.items:
                yield from inside(item)
        elif isinstance(node, Var):
            yield node
    return [v for a in [*value.args, *(a for _, a in value.kwargs)] for v in inside(a)]


@each_record
def test_what_lies_row_by_row(rule):
    for function, args, words in samples_of(rule):
        for layout in LAYOUTS.values():
            given, named = mapped(layout, args), mapped(layout, words)
            result = value_of(function, given, named)
            if isinstance(result, np.ndarray) and rowwise(function, given, named, result):
                assert result.flags.c_contiguous, (args, words)


@each_record
def test_what_may_be_a_cell(rule):
    """A result without axes that is an array is one that may be written into."""
    for function, args, words in samples_of(rule):
        for change in (lambda a, k: a, lambda a, k: a.reshape(-1)[:1].copy().reshape(()) if a.size else a):
            given, named = mapped(change, args), mapped(change, words)
            try:
                result = value_of(function, given, named)
            except Refused:
                continue
            if isinstance(result, np.ndarray) and not result.ndim and memory_of(
                    application(function, given, named)) is FRESH:
                made = Var("y", describe(result))
                assert Told({made: application(function, given, named)}).may_be_cell(made), (args, words)


# --- failures ---------------------------------------------------------------------------------------------------------

def numbers_of(fill):
    return lambda a, k: np.full_like(a, fill) if a.dtype.kind in "fc" else a


DEGENERATE = {
    "zeros": lambda a, k: np.zeros_like(a), "ones": lambda a, k: np.ones_like(a), "NaN": numbers_of(np.nan),
    "negative": lambda a, k: a if a.dtype.kind == "b" else -a,
    "far": lambda a, k: np.full_like(a, 99) if a.dtype.kind in "iu" else a,
    "empty": lambda a, k: a[(slice(0, 0),) * a.ndim],
}


def any_lengths(rule, function, args, words):
    """Whether a call takes arrays of any lengths: no argument names a length or a place, and the function asks none."""
    try:
        bound = rule.signature.bind(*args, **words).arguments
    except TypeError:
        return False
    if any(not arrays_of(v) for k, v in bound.items() if k not in STATIC_ARGUMENTS):
        return False
    value = application(function, args, words)
    try:
        infer(function, value.args, value.kwargs)
    except Unfit:
        return False
    return all(d.is_unit or d.normal().symbol is not None for v in variables(value) for d in v.fact.dims)


def failures(rule):
    """Degenerate operands, of the ranks and dtypes of samples, that a function raises for."""
    for function, args, words in samples_of(rule):
        for name, change in DEGENERATE.items():
            if name == "empty" and not any_lengths(rule, function, args, words):
                continue
            given, named = mapped(change, copy.deepcopy(args)), mapped(change, copy.deepcopy(words))
            try:
                value_of(function, given, named)
            except Exception as error:
                yield name, function, given, named, error


@each_record
def test_what_raises_says_so(rule):
    for name, function, args, words, error in failures(rule):
        assert may_raise(application(function, args, words)), (name, error)


# --- dtypes and lengths -----------------------------------------------------------------------------------------------

DTYPES = {"as they are": None, "single": np.float32, "whole": np.int64, "short": np.int32, "truth": np.bool_,
          "complex": np.complex128, "single complex": np.complex64}


def cast(dtype):
    def change(a, k):
        if dtype is None or a.dtype.kind not in "fc":
            return a
        return np.real(a).astype(dtype)
    return change


def agrees(value, fact, rule):
    if isinstance(value, (tuple, list)):
        assert isinstance(fact, Sequence) and len(fact.elements) == len(value)
        for v, f in zip(value, fact.elements):
            agrees(v, f, rule)
    elif isinstance(fact, Array):
        assert fact.rank == np.ndim(value)
        for n, d in zip(np.shape(value), fact.dims):
            assert d.size in (None, n) or d.size == -1, f"{fact.dims} for {np.shape(value)}"
            assert not d.many or n != 1
            assert not d.is_unit or n == 1
        complex_for_real = rule.options.get("complex_result") and fact.kind == "c"
        if isinstance(value, (np.ndarray, np.generic)) and not complex_for_real:
            assert np.dtype(fact.dtype) == value.dtype
        elif not complex_for_real:
            assert fact.weak and fact.dtype is type(value)


def typed(rule, function, args, words):
    """What is taken for certain of a call's result."""
    value = application(function, args, words)
    known = rule.options.get("fact")
    if known is not None:
        return known(*(describe(a) for a in args))
    return infer(function, value.args, value.kwargs)


@each_record
def test_what_typing_says(rule):
    for function, args, words in samples_of(rule):
        for dtype in DTYPES.values():
            given, named = mapped(cast(dtype), args), mapped(cast(dtype), words)
            try:
                results = [value_of(function, given, named)]
                fact = typed(rule, function, given, named)
            except (Refused, Unfit):        # NumPy takes no such dtype, or typing refuses it
                continue
            for change in () if dtype is not None else (DEGENERATE["zeros"], DEGENERATE["ones"]):
                try:
                    results.append(value_of(function, mapped(change, given), mapped(change, named)))
                except Refused:
                    pass
            for result in results:
                agrees(result, fact, rule)
