"""Every record under Taylor mode: three orders along a curve against forward mode, nested three times."""
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
