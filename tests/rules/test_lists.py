"""Every record, with lists of numbers for one of its arrays: the same value, tangent, adjoint and batch.

A list stands for an array where NumPy takes it for one, whether its entries are known when transforming or not; what
NumPy refuses, or takes for something else (`[1, 2] + [3]`), is left out.
"""
import importlib
import itertools
import pkgutil
import warnings

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (tables wait for it)
import scipy.special  # noqa: F401

import gradscribe as gs
from gradscribe.ast_transform import rules as tables
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.source.read import from_text

for found in pkgutil.iter_modules(tables.__path__):
    importlib.import_module(f"{tables.__name__}.{found.name}")
RECORDS = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None and (
    r.kind != "elementwise" or r.function in (np.sin, np.arctan2, np.logaddexp))]
_count = itertools.count()


def fits(value):
    return isinstance(value, np.ndarray) and 1 <= value.ndim <= 2 and 0 < value.size <= 12


def places(args, kwargs):
    """Where a sample has an array that can be written out: one for each argument, alone and in a sequence."""
    for key, value in (*enumerate(args), *kwargs.items()):
        if fits(value):
            yield key, None
        elif isinstance(value, (list, tuple)):
            yield from [(key, k) for k, item in enumerate(value) if fits(item)][:1]


def entries(name, shape):
    """`[[x[0, 0], x[0, 1]], ...]`"""
    rows = [[f"{name}[{', '.join(map(str, (*i, j)))}]" for j in range(shape[-1])] for i in np.ndindex(shape[:-1])]
    texts = [f"[{', '.join(row)}]" for row in rows]
    return f"[{', '.join(texts)}]" if len(shape) == 2 else texts[0]


class Call:
    """A call of a function on a sample: the numbers are arguments, but for one array whose entries may be known."""

    def __init__(self, function, args, kwargs, place, known):
        self.place, self.known, self.space, self.points = place, known, {"function": function}, {}
        self.numbers = set()            # the places of arrays that have derivatives
        inside = [self.written(a, f"a{k}", (k, None)) for k, a in enumerate(args)]
        inside += [f"{w}={self.written(a, f'{w}_', (w, None))}" for w, a in kwargs.items()]
        names = ", ".join(self.points)
        self.call = from_text(f"def call({names}):\n    return function({', '.join(inside)})\n", self.space,
                              f"<lists: {next(_count)}>")

    def written(self, value, name, at):
        here = at == self.place
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            inside = "".join(f"{self.written(v, f'{name}_{k}', (at[0], k))}, " for k, v in enumerate(value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        if isinstance(value, (np.ndarray, float, complex)) and np.asarray(value).dtype.kind in "fc":
            self.numbers.add(at)
            if here and self.known:
                return repr(value.tolist())
            self.points[name] = value
            return entries(name, value.shape) if here else name
        if here:
            return repr(value.tolist())
        self.space[name] = value
        return name


def numbers(value):
    return [v for part in value for v in numbers(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def same(found, expected):
    found, expected = numbers(found), numbers(expected)
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-8, atol=1e-8, equal_nan=True) for a, b in zip(found, expected))


def drawn(value, rng):
    if isinstance(value, (tuple, list)):
        return getattr(type(value), "_make", type(value))([drawn(v, rng) for v in value])
    whole = np.asarray(value)
    out = rng.standard_normal(whole.shape)
    return (out + 1j * rng.standard_normal(whole.shape) if whole.dtype.kind == "c" else out)[()]


def product(duals, vectors):
    return sum(np.sum(np.real(d * v)) for d, v in zip(numbers(duals), numbers(vectors), strict=True))


def taken_by_numpy(lists, arrays, points):
    try:
        return same(lists(*points), arrays(*points))
    except Exception:
        return False


def cases(rule):
    """Calls with a list and with the array, one pair for each argument that can be one."""
    seen = set()
    for args, kwargs in rule.samples(np.random.default_rng(7)):
        for place in places(args, kwargs):
            for known in (False, True):
                lists = Call(rule.function, args, kwargs, place, known)
                arrays = Call(rule.function, args, kwargs, None, False)
                values = arrays.points
                points = [values[n] for n in lists.points]
                key = place[0], place[1] is None, known and place in lists.numbers
                if key in seen or not points:
                    continue
                fixed = {n: v for n, v in values.items() if n not in lists.points}
                plain = arrays.call if not fixed else Fixed(arrays, fixed, list(lists.points)).call
                if taken_by_numpy(lists.call, plain, points):
                    seen.add(key)
                    yield lists.call, plain, points, known


class Fixed:
    """A call some of whose numbers are known."""

    def __init__(self, whole, fixed, names):
        inside = ", ".join(f"{n}={n}" for n in whole.points)
        self.call = from_text(f"def fixed({', '.join(names)}):\n    return call({inside})\n",
                              {"call": whole.call, **fixed}, f"<lists: {next(_count)}>")


@pytest.mark.parametrize("rule", RECORDS, ids=lambda r: r.label)
def test_a_list_is_an_array(rule):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lists, arrays, points, known in cases(rule):
            rng = np.random.default_rng(3)
            dots = tuple(drawn(p, rng) for p in points)
            try:
                value, tangent = gs.jvp(arrays, tuple(points), dots)
            except gs.TransformError:           # a number that must be known, or has no derivative
                continue
            weights = drawn(value, rng)
            found, moved = gs.jvp(lists, tuple(points), dots)
            assert same(found, lists(*points))
            assert same(moved, tangent)
            if not known:
                adjoints = gs.vjp_of(lists)(weights, *points)
                assert np.isclose(product(adjoints, dots), product(weights, tangent), rtol=1e-8, atol=1e-8)
                rows = gs.vmap(lists)(*[np.stack([np.asarray(p), np.asarray(p)]) for p in points])
                assert all(same(r[1], v) for r, v in zip(numbers(rows), numbers(value), strict=True))
