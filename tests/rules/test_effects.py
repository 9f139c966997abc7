"""What a record says of layout, cells, failures, dtypes and lengths against NumPy, for each sample of each record.

The question is put as the passes put it: to made_rowwise and may_be_cell of reader/views.py, may_raise, and infer.
"""
import copy
import functools
import itertools
import math
import operator
import warnings

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (tables wait for it)
import scipy.special  # noqa: F401

import gradscribe as gs
from gradscribe.ast_transform.core.alias import may_raise, memory_of
from gradscribe.ast_transform.core.form import Apply, Const, Pack, Var
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.memory import CONTIGUOUS, LOCKED, VIEW
from gradscribe.ast_transform.core.rule import RULES, STATIC_ARGUMENTS
from gradscribe.ast_transform.passes.described import Unfit, describe
from gradscribe.ast_transform.passes.types import infer
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.views import is_view, made_rowwise, may_be_cell
from gradscribe.ast_transform.source.read import from_text

RULES.complete()
# What is always rewritten stands in no normal form: the records of what it becomes answer for it.
SAMPLED = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None and r.options.get("rewrite") is not True]
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
    if isinstance(value, np.ndarray | np.generic | float):
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


def shown(array, result):
    return array.size > 0 and result.size > 0 and np.shares_memory(array, result)


@each_record
def test_memory_in_every_layout(rule):
    """A new array shows no operand; a view shows the first, all its entries unless the record says otherwise."""
    for function, args, words in samples_of(rule):
        for layout in LAYOUTS.values():
            given, named = mapped(layout, args), mapped(layout, words)
            before = copy.deepcopy((given, named))
            arrays = arrays_of((given, list(named.values())))
            results = [r for r in arrays_of((value_of(function, given, named),)) if r.size]
            for a, b in zip(arrays, arrays_of((before[0], list(before[1].values())))):
                np.testing.assert_array_equal(a, b)
            memory = memory_of(application(function, given, named))
            view = results and results[0].ndim and certain_view(function, given, named, results[0])
            for r in results:
                if memory.shares != "all":
                    assert not any(shown(a, r) for a in arrays[bool(memory.shares):])
                first = arrays[0] if arrays else None
                if first is None or not memory.shares or not first.ndim or not first.size:
                    assert memory is not VIEW or first is not None
                    continue
                if memory.certain or view:
                    assert shown(first, r), (args, words)
                if memory in (VIEW, CONTIGUOUS) and shown(first, r):
                    assert (r.size, r.itemsize) == (first.size, first.itemsize) and r.flags.writeable
                if memory is LOCKED:
                    assert not r.flags.writeable


def told(made):
    """A reader that knows how these values were made, and is told the layout of their operands."""
    reader = Reader()
    reader.build.made = made
    return reader


def told_of(function, args, words, result):
    value, made = application(function, args, words), Var("y", describe(result))
    reader = told({made: value})
    for var, array in zip(variables(value), (a for a in leaves((args, list(words.values())))
                                             if isinstance(a, np.ndarray | np.generic | float))):
        reader.views.layouts[var] = bool(np.asarray(array).flags.c_contiguous)
    return reader, made


def rowwise(function, args, words, result):
    """Whether the passes take the result of a call for one that lies row by row."""
    reader, made = told_of(function, args, words, result)
    return made_rowwise(reader, reader.build.made[made], made)


def certain_view(function, args, words, result):
    reader, made = told_of(function, args, words, result)
    return is_view(reader, made)


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


def without_axes(function, args, words):
    """Calls on arrays without axes: with the arguments of a sample, with no axes named, with the array alone."""
    def one(a, k):
        return a.reshape(-1)[:1].copy().reshape(()) if a.size else a
    given, named = mapped(one, args), mapped(one, words)
    yield args, words
    yield given, named
    yield tuple(() if isinstance(a, (int, tuple)) and not arrays_of(a) else a for a in given), {}
    yield given[:1], {}


@each_record
def test_what_may_be_a_cell(rule):
    """A result without axes that is an array is one that may be written into."""
    for function, args, words in samples_of(rule):
        for given, named in without_axes(function, args, words):
            try:
                result = value_of(function, given, named)
            except Refused:
                continue
            if isinstance(result, np.ndarray) and not result.ndim:
                made = Var("y", describe(result))
                assert may_be_cell(told({made: application(function, given, named)}), made), (args, words)


# --- failures ---------------------------------------------------------------------------------------------------------

def numbers_of(fill):
    return lambda a, k: np.full_like(a, fill) if a.dtype.kind in "fc" else a


DEGENERATE = {
    "zeros": lambda a, k: np.zeros_like(a), "ones": lambda a, k: np.ones_like(a), "NaN": numbers_of(np.nan),
    "negative": lambda a, k: a if a.dtype.kind == "b" else -a,
    "far": lambda a, k: np.full_like(a, 99) if a.dtype.kind in "iu" else a,
    "empty": lambda a, k: a[tuple(slice(0 if n > 1 else n) for n in a.shape)],      # an axis of length 1 certainly is
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


RAISING = [
    (np.unravel_index, (np.array([99]), (2, 3))), (np.ravel_multi_index, ((np.array([9]), np.array([0])), (2, 3))),
    (np.argpartition, (np.ones(3), 7)), (np.digitize, (np.ones(3), np.array([0.0, 2.0, 1.0]))),
    (np.delete, (np.ones(3), np.array([9]))), (operator.lshift, (1, -1)), (operator.rshift, (1, -1)),
    (operator.truediv, (1.0, 0.0)), (operator.floordiv, (1, 0)), (operator.mod, (1.0, 0.0)),
    (operator.pow, (0.0, -1.0)),
    (operator.pow, (np.array([2]), np.array([-1]))), (math.sqrt, (-1.0,)), (math.log, (0.0,)),
]


@pytest.mark.parametrize("function, args", RAISING)
def test_what_raises_for_these(function, args):
    with pytest.raises((ArithmeticError, ValueError, IndexError)):
        function(*args)
    assert may_raise(application(function, args, {}))


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


def further(value):
    """A number that is not known when transforming may be another."""
    return 1.5 * value if isinstance(value, float | np.floating) else value


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
        complex_for_real = rule.options.get("complex_result") and fact.kind == "c" and \
            np.asarray(value).dtype.kind == "f"         # of real entries by their values: taken for complex
        if np.size(value) == 0:             # SciPy's factorial leaves nothing as it is, whatever its dtype
            return
        if isinstance(value, (np.ndarray, np.generic)) and not complex_for_real:
            assert np.dtype(fact.dtype) == value.dtype
        elif not complex_for_real:
            assert fact.weak and fact.dtype is type(value)


def typed(rule, function, args, words):
    """What is taken for certain of a call's result."""
    value = application(function, args, words)
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
                    results.append(value_of(function, tuple(map(further, given)), named))
                except Refused:
                    pass
            for result in results:
                agrees(result, fact, rule)


# --- programs ---------------------------------------------------------------------------------------------------------

CELLS = {
    "roll": lambda x: np.roll(x, 1), "tile": lambda x: np.tile(x, ()), "resize": lambda x: np.resize(x, ()),
    "diff": lambda x: np.diff(x, n=0), "pad": lambda x: np.pad(x, 0), "transpose": lambda x: np.transpose(x),
    "moveaxis": lambda x: np.moveaxis(x, (), ()), "real": lambda x: np.real(x), "copy": lambda x: np.copy(x),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_second_name_of_a_cell(name):
    """NumPy changes an array without axes in place; what may be one is not changed under another name."""
    def shown(x):
        y = made(x)
        z = y
        y += 1.0
        return 2.0 * z
    made = CELLS[name]
    with pytest.raises(gs.TransformError):
        gs.grad(shown)(np.array(2.0))


@pytest.mark.parametrize("function", [np.max, np.min, np.argmax, np.nanmax], ids=lambda f: f.__name__)
def test_a_loop_that_is_not_entered_raises_nothing(function):
    space = {"np": np}
    text = f"def looped(x):\n    total = 0.0\n    for i in range(len(x)):\n" \
        f"        total = total + x[i] * np.{function.__name__}(x)\n    return total\n"
    looped = from_text(text, space, f"<loop: {function.__name__}>")
    assert gs.grad(looped)(np.zeros(0)).shape == (0,)
    x = np.array([0.5, 2.0, 1.0])
    value, tangent = gs.jvp(looped, (x,), (np.ones(3),))
    assert np.isclose(value, looped(x))
    assert np.isclose(tangent, (looped(x + 1e-6) - looped(x - 1e-6)) / 2e-6)


def alone(rule):
    """Programs that make two arrays by the same call, and write into one: (function, arrays of the call)."""
    found = []
    for function, args, words in samples_of(rule):
        result = value_of(function, args, words)
        if isinstance(result, np.ndarray) and result.ndim and result.size and result.dtype.kind in "fc":
            space = {"function": function, **{f"a{k}": a for k, a in enumerate(args)}, **words}
            inside = ", ".join([*(f"a{k}" for k in range(len(args))), *(f"{k}={k}" for k in words)])
            text = f"def written(t):\n    a = function({inside})\n    b = function({inside})\n" \
                "    a[...] = t\n    return a, b\n"
            found.append(from_text(text, space, f"<written: {rule.label} {len(found)}>"))
    return found


@pytest.mark.parametrize("rule", [r for r in SAMPLED if r.options.get("allocates")], ids=lambda r: r.label)
def test_two_arrays_are_two(rule):
    programs = alone(rule)
    assert programs
    for written in programs[:2]:
        values, tangents = gs.jvp(written, (2.0,), (1.0,))
        for got, want in zip(values, written(2.0), strict=True):
            np.testing.assert_array_equal(got, want)
        assert np.all(tangents[0] == 1) and np.all(np.asarray(tangents[1]) == 0)


def put(t):
    x = np.ones(3)
    y = x
    x[0] = t
    return y[0] * t


def put_at_once(t):
    x = np.ones(3)
    x[0] = t
    y = x[0] * t
    x[0] = t
    x[0] = 3.0 * t
    return y * x[0]


def put_add(t):
    x = np.ones(3)
    y = x[:2]
    x[1] += t
    x[1] += t
    return y[1] * t


def add_at(t):
    x = np.ones(3)
    y = x
    np.add.at(x, np.array([1, 1]), t)
    np.add.at(x, np.array([1, 1]), t)
    return y[1] * t


def push(t):
    x = [t]
    y = x
    x.append(2.0 * t)
    x.append(2.0 * t)
    return y[1] * y[2] * len(y)


def push_front(t):
    x = [t]
    y = x
    x.insert(0, 2.0 * t)
    x.insert(0, 3.0 * t)
    return y[0] * y[2]


def pop(t):
    x = [t, t * t, 3.0]
    y = x
    a = x.pop() * x.pop()
    return a * y[-1] * len(y)


def grown(t):
    rows = []
    for k in range(3):
        rows.append(t * k)
        rows.append(t * k)
    last = rows.pop()
    before = rows.pop()
    return last * before * rows[-1] * len(rows)


WRITTEN = [put, put_at_once, put_add, add_at, push, push_front, pop, grown]


@pytest.mark.parametrize("function", WRITTEN, ids=lambda f: f.__name__)
def test_writes_are_seen_under_every_name(function):
    value, tangent = gs.jvp(function, (0.7,), (1.0,))
    slope = (function(0.7 + 1e-6) - function(0.7 - 1e-6)) / 2e-6
    assert np.isclose(value, function(0.7), rtol=1e-12)
    np.testing.assert_allclose([tangent, gs.grad(function)(0.7)], [slope, slope], rtol=1e-7)


def test_a_rule_of_a_user_is_held_to_what_it_says():
    """gs.rule.check refuses a view that is said to be new, and a function that writes into its argument."""
    def first(x):
        return x[:2]

    def turned(x):
        x *= -1.0
        return x.copy()

    def samples(rng):
        return [((rng.normal(size=4),), {})]
    try:
        for function, word in ((first, "shares memory"), (turned, "writes into an argument")):
            @gs.rule.linear(function, "x", fresh=True, samples=samples)
            class rule:
                def vjp_x(dy, x):
                    return np.concatenate((dy, np.zeros(x.shape[0] - dy.shape[0])))
            with pytest.raises(AssertionError, match=word):
                gs.rule.check(function)
    finally:
        for function in (first, turned):
            RULES.pop(function, None)


def test_what_a_rule_of_a_user_leaves_open():
    def same(x):
        return x

    @gs.rule.elementwise(same, fresh=True)
    class same_:
        def partial_x(x):
            return 1.0
    try:
        x = np.ones((2, 2))
        assert not rowwise(same, (x,), {}, x)
        assert may_be_cell(told({(y := Var("y", describe(np.array(1.0)))): application(same, (np.array(1.0),), {})}), y)
        assert may_raise(application(same, (x,), {}))
    finally:
        del RULES[same]
