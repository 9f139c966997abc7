"""Every record under Taylor mode: three orders along a curve against nested forward mode; solutions of an equation."""
import importlib
import pkgutil
import warnings

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (tables wait for it)
import scipy.special  # noqa: F401

import gradscribe as gs
from gradscribe.ast_transform import rules as tables
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.ast_transform.source.read import from_text
from gradscribe.experimental import ode
from gradscribe.trial import leaves

for found in pkgutil.iter_modules(tables.__path__):
    importlib.import_module(f"{tables.__name__}.{found.name}")
CASES = [pytest.param(r, i, id=f"{r.label}-{i}") for r in dict.fromkeys(RULES.values())
         if r.samples is not None and (r.has_derivative() or r.options.get("rewrite"))
         for i in range(min(2, len(r.samples(np.random.default_rng(7)))))]
ORDER = 3


def moving(value):
    return not isinstance(value, (list, tuple)) and np.asarray(value).dtype.kind in "fc"


def along_a_curve(function, args, kwargs):
    """(names, the call as a function of its floating-point arguments, the same as a function of t)."""
    rng, space, names, curve = np.random.default_rng(3), {"function": function}, [], []
    for n, a in enumerate(args):
        space[f"a{n}"] = a
        if moving(a):
            names.append(f"a{n}")
            terms = [0.3 * like(a, rng) for _ in range(ORDER)]
            space.update({f"a{n}_d{k}": term for k, term in enumerate(terms, 1)})
            curve.append(f"a{n} + t * (a{n}_d1 + t * (a{n}_d2 / 2 + t * a{n}_d3 / 6))")
        else:
            curve.append(f"a{n}")
    space.update({f"{word}_": a for word, a in kwargs.items()})
    words = [f"{word}={word}_" for word in kwargs]
    inside = ", ".join([f"a{n}" for n in range(len(args))] + words)
    of = from_text(f"def call({', '.join(names)}):\n    return function({inside})\n", space, f"<call {next(COUNT)}>")
    on = from_text(f"def on(t):\n    return function({', '.join(curve + words)})\n", space, f"<curve {next(COUNT)}>")
    return [space[n] for n in names], [[space[f"{n}_d{k}"] for k in range(1, ORDER + 1)] for n in names], of, on


COUNT = iter(range(10**9))


def like(value, rng):
    value = np.asarray(value)
    out = rng.standard_normal(value.shape)
    return (out + 1j * rng.standard_normal(value.shape) if value.dtype.kind == "c" else out).astype(value.dtype)[()]


def nested(on):
    def derivative(f):
        return lambda t: gs.jvp(f, (t,), (1.0,))[1]
    out = [on]
    for _ in range(ORDER):
        out.append(derivative(out[-1]))
    return out


@pytest.mark.parametrize("rule, index", CASES)
@np.errstate(all="ignore")
def test_three_orders(rule, index):
    args, kwargs = rule.samples(np.random.default_rng(7))[index]
    points, series, of, on = along_a_curve(rule.function, args, kwargs)
    if not points:
        pytest.skip("no floating-point argument")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = [leaves(f(0.0)) for f in nested(on)]
        except TransformError as error:
            pytest.skip(f"forward mode does not nest: {error}")
        value, found = gs.jet(of, points, series)
    got = [leaves(value), *map(list, zip(*series_of(value, found)))]
    for k in range(ORDER + 1):
        for a, b in zip(got[k], wanted[k], strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape, (k, a.shape, b.shape)
            scale = 1 + np.max(np.abs(b), initial=0, where=np.isfinite(b))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * scale, err_msg=f"order {k}")


def series_of(value, found):
    """For each leaf of a result the list of its terms."""
    if isinstance(value, (list, tuple)):
        return [terms for v, part in zip(value, found, strict=True) for terms in series_of(v, part)]
    return [found]


def with_an_equation(rule, index):
    """(f, y) of a differential equation y' = f(y, t) whose right side calls the function of a record; None if none."""
    args, kwargs = rule.samples(np.random.default_rng(7))[index]
    value, space, lines, names, at = rule.function(*args, **kwargs), {"function": rule.function, "np": np}, [], [], 0
    for n, a in enumerate(args):
        names.append(f"a{n}")
        space[f"a{n}"] = a
        if moving(a):
            of_y = {0: f"y[{at}]", 1: f"y[{at}:{at + np.size(a)}]"}.get(
                np.ndim(a), f"y[{at}:{at + np.size(a)}].reshape({np.shape(a)})")
            lines.append(f"    a{n} = b{n} + 0.05 * {of_y}\n")
            space[f"b{n}"] = space.pop(f"a{n}")
            at += np.size(a)
    space.update({f"{word}_": a for word, a in kwargs.items()})
    inside = ", ".join(names + [f"{word}={word}_" for word in kwargs])
    sums = list(sums_of(value, "out"))
    if not at or not sums:
        return None
    space["weights"] = np.linspace(0.3, 1.1, at)
    text = "".join(["def f(y, t):\n", *lines, f"    out = function({inside})\n",
                    f"    return weights * np.sin({' + '.join(sums)}) + 0.1 * t * y\n"])
    return from_text(text, space, f"<equation {next(COUNT)}>"), np.linspace(-0.1, 0.2, at)


def sums_of(value, name):
    """The sums of the floating-point arrays in a result, as text."""
    if isinstance(value, (list, tuple)):
        for k, part in enumerate(value):
            yield from sums_of(part, f"{name}[{k}]")
    elif np.asarray(value).dtype.kind == "f":
        yield f"np.sum({name})"
    elif np.asarray(value).dtype.kind == "c":
        yield f"np.sum(np.real({name})) + 0.5 * np.sum(np.imag({name}))"


@pytest.mark.parametrize("rule, index", CASES)
@np.errstate(all="ignore")
def test_solutions(rule, index):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = with_an_equation(rule, index)
        if made is None:
            pytest.skip("no floating-point argument or result")
        f, y = made
        wanted = [np.asarray(f(y, 0.3))]
        try:
            for k in range(1, ORDER + 1):
                terms = gs.jet(f, (y, 0.3), (wanted, (1.0,) + (k - 1) * (0.0,)), factorial_scaled=False)[1]
                wanted.append(np.asarray(terms[-1]) / (k + 1))
        except TransformError as error:
            with pytest.raises(type(error)):
                ode.coefficients(f, y, 0.3, order=ORDER + 1)
            return
        found = ode.coefficients(f, y, 0.3, order=ORDER + 1)
    scale = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-9, atol=1e-12 * scale)
