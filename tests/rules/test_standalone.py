"""Every record of rules/elementwise.py and rules/constants.py, on each of its samples, as plain Python.

The compiler takes no part: the rules' parts run on real arrays here.  Tangents are compared with differences in one
random direction, adjoints with tangents by the inner product.
"""
import ast
import builtins
import inspect
import math
import operator

import numpy as np
import pytest

from gradscribe.ast_transform.core.rule import RULES, STATIC
from gradscribe.ast_transform.rules import (
    bessel,
    constants,
    elementwise,
    reductions,
    samples,
    special,
    special_samples,
)

TABLE = [r for r in dict.fromkeys(RULES.values()) if inspect.getmodule(r.samples) in (samples, special_samples)]
CASES = [pytest.param(r, k, id=f"{r.label}-{k}") for r in TABLE
         for k in range(len(r.samples(np.random.default_rng(0))))]
DERIVED = [c for c in CASES if c.values[0].has_derivative()]
STEP = 1e-4                         # of a difference of order four: its error is about 1e-12

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# --- what the driver does with the parts -----------------------------------------------------------------------------

def bind(rule, case, seed=7):
    args, kwargs = rule.samples(np.random.default_rng(seed))[case]
    bound = rule.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def evaluate(rule, values):
    args, kwargs = [], {}
    for p in rule.signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            kwargs[p.name] = values[p.name]
        elif p.name in values:
            args.append(values[p.name])
    if "primal" in rule.parts:
        return rule.parts["primal"](*args, **kwargs)
    return rule.function(*args)


def call(part, values):
    return part(**{n: values[n] for n in inspect.signature(part).parameters})


def moving(rule, values):
    """The active arguments that are numbers with a derivative: not None, not whole."""
    return [n for n in rule.active if values[n] is not None and np.asarray(values[n]).dtype.kind in "fc"]


def jvp(rule, values, dots):
    y, total = evaluate(rule, values), 0
    for name, dot in dots.items():
        known = {**values, "y": y, name + "_dot": dot}
        if rule.kind == "elementwise":
            total = total + call(rule.parts["partial_" + name], known) * dot
        elif rule.kind == "linear":
            total = total + evaluate(rule, {**values, name: dot})
        else:
            total = total + call(rule.parts["jvp_" + name], known)
    return total


def vjp(rule, values, name, dy):
    known = {**values, "y": evaluate(rule, values), "dy": dy}
    if rule.kind == "elementwise":
        return dy * call(rule.parts["partial_" + name], known)
    return call(rule.parts["vjp_" + name], known)


def draw(like, rng):
    """A random array of the same shape and kind."""
    like = np.asarray(like)
    v = rng.normal(size=like.shape)
    return v + 1j * rng.normal(size=like.shape) if like.dtype.kind == "c" else v


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})


# --- on every sample -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule, case", CASES)
def test_primal(rule, case):
    """The canonical form is the plain call, and every other name gives the same."""
    args, kwargs = rule.samples(np.random.default_rng(7))[case]
    y = evaluate(rule, bind(rule, case))
    plain = all(type(a) in (int, float) for a in args)
    for function in rule.functions:
        if function is np.fabs and np.iscomplexobj(args[0]):
            continue
        if plain or isinstance(function, np.ufunc) or function is rule.function:
            np.testing.assert_allclose(function(*args, **kwargs), y, rtol=1e-12)


@pytest.mark.parametrize("rule, case", DERIVED)
def test_jvp(rule, case):
    values, rng = bind(rule, case), np.random.default_rng(1)
    dots = {n: draw(values[n], rng) for n in moving(rule, values)}

    def moved(h):
        return evaluate(rule, {**values, **{n: values[n] + h * dots[n] for n in dots}})
    if rule.kind == "linear":
        expected = moved(1) - evaluate(rule, values)
    else:
        expected = (8 * (moved(STEP) - moved(-STEP)) - (moved(2 * STEP) - moved(-2 * STEP))) / (12 * STEP)
    found = jvp(rule, values, dots)
    close(np.broadcast_to(found, np.shape(expected)), expected, atol=1e-7 if rule.kind != "linear" else 1e-12)


@pytest.mark.parametrize("rule, case", DERIVED)
def test_vjp(rule, case):
    """<dy, y_dot> = <dx, x_dot>, without conjugates, where the parts see one argument move at a time."""
    values, rng = bind(rule, case), np.random.default_rng(2)
    y = evaluate(rule, values)
    for name in moving(rule, values):
        dot, dy = draw(values[name], rng), draw(y, rng)
        y_dot = jvp(rule, values, {name: dot})
        if rule.label == "where":                   # linear in both together: the other side stands still
            y_dot = call(rule.parts["jvp_" + name], {**values, name + "_dot": dot})
        dx = vjp(rule, values, name, dy)
        pairs = dx * dot
        if not rule.options.get("expand"):          # the driver has yet to undo the broadcasting
            pairs = pairs + np.zeros(np.shape(y))
            assert pairs.shape == np.shape(y)
        close(np.sum(np.real(pairs)), np.sum(np.real(dy * y_dot)))


@pytest.mark.parametrize("rule, case", DERIVED)
def test_single_precision(rule, case):
    """float32 in, float32 out, whatever numbers the part has in it."""
    if rule.options.get("expand") or rule.label == "float_power":
        return                                      # makers give float64 unless told
    values = {k: v.astype({"f": "f4", "c": "c8"}.get(v.dtype.kind, v.dtype)) if isinstance(v, np.ndarray) else v
              for k, v in bind(rule, case).items()}
    y = np.asarray(evaluate(rule, values))
    if y.dtype.itemsize != {"f": 4, "c": 8}.get(y.dtype.kind):
        return
    for name in moving(rule, values):
        if isinstance(values[name], np.ndarray):
            dx = vjp(rule, values, name, draw(y, np.random.default_rng(3)).astype(y.dtype))
            single = np.result_type(y.dtype, values[name].dtype)
            assert np.result_type(single, dx) == single


# --- by hand ---------------------------------------------------------------------------------------------------------

SPECIAL = [pytest.param(r, *s, id=f"{r.label}-{s[0]}") for r in TABLE for s in r.special]


@pytest.mark.parametrize("rule, point, expected", SPECIAL)
def test_special_points(rule, point, expected):
    """Adjoint and tangent where differences do not reach: a number, or as many as there are arguments."""
    point, expected = (v if isinstance(v, tuple) else (v,) for v in (point, expected))
    for shape in ((), (1,)):
        if getattr(rule.function, "__module__", None) == "math" and shape:
            continue
        bound = rule.signature.bind(*(np.full(shape, x)[()] for x in point))
        bound.apply_defaults()
        for name, value in zip(moving(rule, bound.arguments), expected, strict=True):
            for found in (vjp(rule, bound.arguments, name, 3.0), jvp(rule, bound.arguments, {name: 3.0})):
                np.testing.assert_allclose(found, np.full(shape, 3.0 * value), rtol=1e-14)


def gradient(function, *args):
    """The adjoint of each argument for dy = 1."""
    rule = RULES[function]
    bound = rule.signature.bind(*args)
    bound.apply_defaults()
    return tuple(float(np.real(vjp(rule, bound.arguments, n, 1.0))) for n in rule.active
                 if bound.arguments[n] is not None)


KINKS = [                           # what JAX gives, too, but for the lines marked
    (np.maximum, (1.0, 1.0), (0.5, 0.5)),
    (np.minimum, (1.0, 1.0), (0.5, 0.5)),
    (np.maximum, (-np.inf, -np.inf), (0.5, 0.5)),
    (builtins.max, (0.0, 0), (0.5, 0.5)),
    (np.fmax, (1.0, 1.0), (0.0, 1.0)),
    (np.fmax, (np.nan, 1.0), (0.0, 1.0)),
    (np.fmax, (1.0, np.nan), (1.0, 0.0)),
    (np.fmin, (1.0, 1.0), (0.0, 1.0)),
    (np.clip, (0.0, 0.0, 1.0), (0.5, 0.5, 0.0)),
    (np.clip, (1.0, 0.0, 1.0), (0.5, 0.0, 0.5)),
    (np.clip, (-1.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
    (np.clip, (2.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    (np.clip, (np.array(1.0), np.array(2.0), np.array(0.0)), (0.0, 0.0, 1.0)),
    (np.clip, (np.array(2.0), np.array(2.0), np.array(0.0)), (0.0, 0.0, 1.0)),
    (abs, (0.0,), (0.0,)),          # JAX: 1
    (operator.pow, (np.array(0.0), np.array(0.5)), (np.inf, 0.0)),
    (operator.pow, (np.array(0.0), np.array(2.0)), (0.0, 0.0)),
    (operator.pow, (np.array(0.0), np.array(1.0)), (1.0, 0.0)),
    (operator.pow, (np.array(0.0), np.array(0)), (0.0, 0.0)),
    (operator.pow, (np.array(-2.0), np.array(3.0)), (12.0, np.nan)),
    (operator.mod, (np.array(-5.0), np.array(3.0)), (1.0, 2.0)),
    (np.fmod, (np.array(-5.0), np.array(3.0)), (1.0, 1.0)),
    (np.copysign, (0.0, -1.0), (-1.0,)),
    (np.arctan2, (np.array(0.0), np.array(1.0)), (1.0, 0.0)),
    (np.hypot, (np.array(0.0), np.array(1.0)), (0.0, 1.0)),
    (np.logaddexp, (-np.inf, 0.0), (0.0, 1.0)),
    (np.heaviside, (0.0, 0.5), (1.0,)),
    (np.sinc, (0.0099,), (-0.03256654410098075,)),
]


@pytest.mark.parametrize("function, args, expected", [pytest.param(*k, id=f"{k[0].__name__}-{k[1]}") for k in KINKS])
def test_kinks(function, args, expected):
    np.testing.assert_allclose(gradient(function, *args), expected, rtol=1e-12)


def test_the_side_that_was_not_chosen_leaks_nothing():
    x = np.array([0.0, 4.0])
    dx = vjp(RULES[np.where], {"condition": x > 0, "a": np.log(x), "b": x}, "a", np.array([np.nan, 1.0]))
    assert np.array_equal(dx, [0, 1])


def test_complex_at_zero():
    for name, expected in (("abs", 0), ("square", 0), ("conjugate", 1)):
        rule = RULES[getattr(np, name)]
        assert vjp(rule, {"x": np.array([0j])}, "x", np.array([1.0])) == expected


def test_literal_exponents_read_well():
    partial = RULES[operator.pow].parts["partial_a"]
    x = np.array([-2.0, 0.0, 3.0])
    assert np.array_equal(partial(x, 2), 2 * x)
    assert (partial(x, 1), partial(x, 0)) == (1, 0)


# --- the table as a whole --------------------------------------------------------------------------------------------

def written(module):
    """The functions of a module that go into emitted code, as trees: all but those that run while transforming."""
    static = {f.__name__ for f in STATIC}
    for node in ast.parse(inspect.getsource(module)).body:
        for f in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(f, ast.FunctionDef) and f.name not in static and not f.name.startswith("_"):
                yield f


@pytest.mark.parametrize("module", (elementwise, constants, special, bessel))
def test_parts_call_only_what_has_a_record(module):
    assert np.sum in RULES, reductions      # the one other table that these parts call
    missing = set()
    for f in written(module):
        for node in ast.walk(f):
            root = ast.unparse(node.func).partition(".")[0] if isinstance(node, ast.Call) else ""
            if root in ("np", "math", "operator", "special") and isinstance(node.func, ast.Attribute):
                function = eval(ast.unparse(node.func), {**vars(module), "math": math, "operator": operator})
                if function not in RULES:
                    missing.add(ast.unparse(node.func))
    assert not missing


@pytest.mark.parametrize("rule", [r for r in dict.fromkeys(RULES.values()) if r in TABLE and r.has_derivative()],
                         ids=lambda r: r.label)
def test_parts_are_complete(rule):
    """Parts read what there is, and every active argument has what its kind asks for."""
    needs = {"elementwise": ("partial_",), "linear": ("vjp_",), "general": ("vjp_", "jvp_")}[rule.kind]
    for name in rule.active:
        assert name in rule.arguments
        for stem in needs:
            assert stem + name in rule.parts
    for stem, part in rule.parts.items():
        stem, _, name = stem.partition("_")
        known = {*rule.arguments, "y"} | {
            "vjp": {"dy"}, "jvp": {name + "_dot"}, "batch": {"first", "batched", "flags", "rank", "count", "units"},
            "error": {f"{a}_err" for a in rule.arguments}, "rounding": {"u"}, "residual": {"u"},
            "certain": {"u", "least", *(f"{a}_err" for a in rule.arguments)},
        }.get(stem, set())
        assert set(inspect.signature(part).parameters) <= known
