# SPDX-License-Identifier: Apache-2.0
"""Derivative rules for a user's own functions: gs.rule.elementwise(f, ...) and other kinds, and gs.rule.check(f).

A rule is a class whose parts are ordinary functions, as for NumPy's functions (docs/rules.md).  The function itself
does not change: emitted source calls it by its name, and jit compiles it from its own source.

>>> import numpy as np, gradscribe as gs
>>> def softplus(x):
...     return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
>>> @gs.rule.elementwise(softplus, samples=lambda rng: [((rng.normal(size=3),), {}), ((0.5,), {})])
... class softplus_rule:
...     def partial_x(x):
...         return 1 / (1 + np.exp(-x))
>>> gs.rule.check(softplus) > 0
True
>>> float(gs.grad(softplus)(0.0))
0.5
"""
import copy
import functools
import itertools
import warnings
from collections.abc import Callable

import numpy as np

from gradscribe.api import jvp, vjp_of, vmap
from gradscribe.ast_transform.core import rule as records
from gradscribe.ast_transform.core.memory import ALIASES, FRESH
from gradscribe.ast_transform.core.rule import RULES, static
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.source.read import from_text
from gradscribe.frames import public
from gradscribe.jit import jit

__all__ = ["bilinear", "check", "constant", "elementwise", "general", "linear", "static"]
_count = itertools.count()


def _kind(declare):
    """A decorator for rules of this kind; the function's result may share memory with any argument unless fresh=True.

    raises=False: the function raises no exception for arguments of the ranks and dtypes it takes, so that a call may be
    moved out of a loop that may not be entered.  The memory layout of the result, and whether a result without axes is
    an array or a scalar, are not assumed.  The adjoint `dy` that a part gets has the shape of the result.
    """
    whole = {} if declare is records.elementwise or declare is records.constant else {"expand": True}

    @functools.wraps(declare)
    def record(function, *active, fresh=False, raises=True, **options):
        return declare(function, *active, memory=FRESH if fresh else ALIASES, raises=raises,
                       **{"order": None, "cell": True, **whole, **options})
    return record


elementwise, linear, bilinear, general, constant = map(
    _kind, (records.elementwise, records.linear, records.bilinear, records.general, records.constant))
STEP, CLOSE = 1e-6, 1e-5


@public
def check(function: Callable, compiled: bool = False) -> int:
    """Check the rule of a function numerically on each of its samples; returns the number of comparisons.

    The tangent is compared with central differences, the adjoint with the tangent by the inner product, the second
    derivative with differences of the adjoint, and a batch with a loop; with compiled, also the compiled adjoint with
    the plain one.  float32 must stay float32, the function must not write into an argument, and a result that its rule
    declares fresh must share no memory with one.

    Raises AssertionError with the difference; KindError for a function without a rule or samples.

    >>> import numpy as np, gradscribe as gs
    >>> gs.rule.check(np.tanh) > 20
    True
    """
    rule = RULES.get(function)
    if rule is None or rule.samples is None:
        what = "no rule" if rule is None else "a rule without samples"
        raise KindError(f"{getattr(function, '__name__', function)!r} has {what}", None,
                        "Give it one: gs.rule.elementwise(f, samples=...), linear, bilinear, general or constant.")
    made = 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, (args, kwargs) in enumerate(rule.samples(np.random.default_rng(7))):
            sample = _Sample(function, args, kwargs, f"sample {k}")
            made += _memory_compared(rule, function, args, kwargs, sample.label) + sample.compared(rule, compiled)
    return made


def _memory_compared(rule, function, args, kwargs, label):
    """Check that a function writes into no argument, and that a fresh result shares no memory with one."""
    before, given = copy.deepcopy((args, kwargs)), _leaves([*args, *kwargs.values()])
    results = [v for v in _leaves(function(*args, **kwargs)) if isinstance(v, np.ndarray)]
    given = [v for v in given if isinstance(v, np.ndarray)]
    old = [v for v in _leaves([*before[0], *before[1].values()]) if isinstance(v, np.ndarray)]
    for a, b in zip(given, old):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"), f"{label}: the function writes into an argument"
    if rule.memory is FRESH:
        for a in given:
            assert not any(np.shares_memory(a, r) for r in results), \
                f"{label}: fresh=True, but the result shares memory with an argument"
    return len(given)


class _Sample:
    """One call of a function; `call` takes only the floating-point arguments."""

    def __init__(self, function, args, kwargs, label):
        self.label, self.points, space, inside = label, [], {"function": function}, []
        for n, a in enumerate(args):
            inside.append(f"a{n}")
            if np.asarray(a).dtype.kind in "fc":
                self.points.append((f"a{n}", a))
            else:
                space[f"a{n}"] = a
        for word, a in kwargs.items():
            inside.append(f"{word}={word}_")
            space[f"{word}_"] = a
        names = ", ".join(n for n, _ in self.points)
        text = f"def call({names}):\n    return function({', '.join(inside)})\n"
        self.call = from_text(text, space, f"<gradscribe: sample {next(_count)}>")
        self.names, self.points = names, [p for _, p in self.points]

    def compared(self, rule, compiled):
        self.made, rng = 0, np.random.default_rng(3)
        if not self.points or not rule.has_derivative() and not rule.options.get("rewrite"):
            return 0
        points, dots = self.points, [_like(p, rng) for p in self.points]
        value = self.call(*points)
        dy = _each(value, lambda v: _like(v, rng))
        ahead, behind = (self.call(*[p + s * STEP * d for p, d in zip(points, dots)]) for s in (1, -1))
        found, tangent = jvp(self.call, tuple(points), tuple(dots))
        self.same("value", found, value)
        self.same("tangent", tangent, _both(ahead, behind, lambda a, b: (a - b) / (2 * STEP)))
        pull = vjp_of(self.call)
        adjoints = pull(dy, *points)
        self.same("adjoint, times the direction", _dot(adjoints, dots), _dot(dy, tangent), 1e-9)
        pulled = from_text(f"def pulled({self.names}):\n    return pull(dy, {self.names})\n", {"pull": pull, "dy": dy},
                           f"<gradscribe: sample {next(_count)}>")
        second = jvp(pulled, tuple(points), tuple(dots))[1]
        sides = [pull(dy, *[p + s * STEP * d for p, d in zip(points, dots)]) for s in (1, -1)]
        self.same("second derivative", second, _both(*sides, lambda a, b: (a - b) / (2 * STEP)), 1e-4)
        few = list(map(_narrow, points))
        for a, p in zip(pull(_each(self.call(*few), lambda v: _like(v, rng)), *few), points):
            self.holds(np.asarray(a).dtype == _narrow(p).dtype, "float32 does not stay float32")
        rows = [self.call(*[p * s for p in points]) for s in (1.0, 1.01)]
        batch = vmap(self.call)(*[np.stack([np.asarray(p), np.asarray(p) * 1.01]) for p in points])
        self.same("batch", batch, _both(*rows, lambda a, b: np.stack([a, b])), 1e-9)
        if compiled:
            self.same("compiled adjoint", jit(pull)(dy, *points), adjoints, 1e-9)
        return self.made

    def same(self, what, got, want, close=CLOSE):
        for a, b in zip(_leaves(got), _leaves(want), strict=True):
            a, b = np.asarray(a), np.asarray(b)
            self.holds(a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}")
            scale = 1 + np.max(np.abs(b), initial=0, where=np.isfinite(b))
            self.holds(np.allclose(a, b, rtol=0, atol=close * scale, equal_nan=True), f"{what}: {a}, expected {b}")

    def holds(self, fact, text):
        self.made += 1
        assert fact, f"{self.label}: {text}"


def _leaves(value):
    return [v for part in value for v in _leaves(part)] if isinstance(value, (tuple, list)) else [value]


def _each(value, change):
    return type(value)(_each(v, change) for v in value) if isinstance(value, (tuple, list)) else change(value)


def _both(a, b, join):
    return tuple(_both(x, y, join) for x, y in zip(a, b)) if isinstance(a, (tuple, list)) else join(a, b)


def _like(value, rng):
    value = np.asarray(value)
    out = rng.standard_normal(value.shape)
    return (out + 1j * rng.standard_normal(value.shape) if value.dtype.kind == "c" else out).astype(value.dtype)[()]


def _narrow(value):
    return np.asarray(value).astype(np.complex64 if np.asarray(value).dtype.kind == "c" else np.float32)[()]


def _dot(duals, vectors):
    return sum(np.sum(np.real(np.asarray(d) * v)) for d, v in zip(_leaves(duals), _leaves(vectors)))
