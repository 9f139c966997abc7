"""Every record for arrays, on each of its samples, as plain Python.

The parts run on real arrays here, without the compiler: jvp parts against differences along one random direction
(step 1 where the function is linear, and exact there), vjp parts against jvp parts by the inner product.
"""
import ast
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (tables wait for it)
import scipy.special  # noqa: F401

import gradscribe as gs
from gradscribe.ast_transform import rules as tables
from gradscribe.ast_transform.core.rule import RULES, STATIC

OTHERS = {"constants", "elementwise", "special", "bessel"}         # test_standalone.py has those
for found in pkgutil.iter_modules(tables.__path__):
    importlib.import_module(f"{tables.__name__}.{found.name}")
MODULES = [m for n, m in sorted(vars(tables).items()) if inspect.ismodule(m) and n not in OTHERS and any(
    inspect.getmodule(next(iter(r.parts.values()), None)) is m for r in RULES.values())]
MINE = [r for r in dict.fromkeys(RULES.values()) if inspect.getmodule(next(iter(r.parts.values()), None)) in MODULES]
CASES = [pytest.param(r, i, id=f"{r.label}-{i}") for r in MINE if r.samples is not None
         for i in range(len(r.samples(np.random.default_rng(0))))]
DERIVED = [c for c in CASES if c.values[0].active]
REWRITTEN = [c for c in CASES if c.values[0].options.get("rewrite")]
LINEAR = [c for c in DERIVED if c.values[0].kind == "linear"]


# --- what the driver does with the parts, in a few lines --------------------------------------------------------------

def sample(rule, index, convert=lambda a: a):
    args, kwargs = rule.samples(np.random.default_rng(7))[index]
    bound = rule.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = dict(bound.arguments)
    for name in moving(rule, values):
        values[name] = spread(convert, values[name])
    return values


def moving(rule, values):
    """The active arguments that are given; where a quantile is one of the entries, it moves with q nowhere or jumps."""
    still = {"q"} if values.get("method", "linear") != "linear" else set()
    return [n for n in rule.active if values[n] is not None and n not in still]


def spread(function, value, *more):
    """The function on an operand, or on each one of a sequence of operands."""
    if isinstance(value, (tuple, list)):
        return tuple(function(*each) for each in zip(value, *more))
    return function(value, *more)


def call(part, values):
    positional, words = [], {}
    for p in inspect.signature(part).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            positional += values[p.name]
        elif p.kind is p.KEYWORD_ONLY:
            words[p.name] = values[p.name]
        elif p.kind is p.VAR_KEYWORD:
            words.update(values[p.name])
        else:
            positional.append(values[p.name])
    return part(*positional, **words)


def evaluate(rule, values):
    if "primal" in rule.parts:
        return call(rule.parts["primal"], values)
    return rule.function(*[values[n] for n in rule.arguments])


def results(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def tangent(rule, values, dots):
    if rule.kind == "linear":
        return results(evaluate(rule, {**values, **dots}))
    total, y = 0, evaluate(rule, values)
    for name in moving(rule, values):
        if rule.kind == "elementwise":
            parts = [dots[name] * call(rule.parts["partial_" + name], {**values, "y": y}) + np.zeros_like(y)]
        elif rule.kind == "general":
            parts = [call(rule.parts["jvp_" + name], {**values, "y": y, name + "_dot": dots[name]})]
        elif isinstance(values[name], tuple):       # bilinear in a sequence: one operand at a time
            parts = [evaluate(rule, {**values, name: values[name][:k] + (dots[name][k],) + values[name][k + 1:]})
                     for k in range(len(values[name]))]
        else:
            parts = [evaluate(rule, {**values, name: dots[name]})]
        for part in parts:
            total = [t + p for t, p in zip(total or [0] * len(results(part)), results(part))]
    return total


def adjoint(rule, values, dy):
    """The adjoint of each active argument, with its full shape."""
    y, found = evaluate(rule, values), {}
    for name in moving(rule, values):
        x = values[name]
        if rule.kind == "elementwise":
            found[name] = fit(rule, dy * call(rule.parts["partial_" + name], {**values, "y": y}), x)
            continue
        part = rule.parts["vjp_" + name]
        if isinstance(x, tuple):
            found[name] = tuple(fit(rule, call(part, {**values, "y": y, "dy": dy, "k": k}), each)
                                for k, each in enumerate(x))
        else:
            found[name] = fit(rule, call(part, {**values, "y": y, "dy": dy}), x)
    return found


def fit(rule, dx, x):
    dx = np.asarray(dx)
    if rule.options.get("unbroadcast") or rule.kind == "elementwise":
        dx = np.sum(dx, axis=tuple(range(dx.ndim - np.ndim(x))))
        dx = dx.reshape((1,) * (np.ndim(x) - dx.ndim) + dx.shape)
        dx = np.sum(dx, axis=tuple(i for i, n in enumerate(np.shape(x)) if n == 1 and dx.shape[i] != 1), keepdims=True)
    if np.asarray(x).dtype.kind != "c":
        dx = np.real(dx)
    return np.broadcast_to(dx, np.shape(x))


def direction(rule, values, rng):
    def one(x):
        x = np.asarray(x)
        v = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            v = v + 1j * rng.standard_normal(x.shape)
        return v.astype(x.dtype)
    return {n: spread(one, values[n]) for n in moving(rule, values)}


def like(value, rng):
    """A random adjoint of a result, in its shape and dtype."""
    def one(y):
        y = np.asarray(y)
        v = rng.standard_normal(y.shape)
        return (v + 1j * rng.standard_normal(y.shape) if y.dtype.kind == "c" else v).astype(y.dtype)
    return tuple(map(one, value)) if isinstance(value, (tuple, list)) else one(value)


def pairing(duals, vectors):
    return sum(np.sum(np.real(np.asarray(d) * v)) for d, v in zip(duals, vectors))


def flat(arguments, names):
    return [each for n in names for each in (arguments[n] if isinstance(arguments[n], tuple) else (arguments[n],))]


def moved(values, dots, step):
    return {**values, **{n: spread(lambda x, v: x + step * v, values[n], dots[n]) for n in dots}}


def with_the_factors_of(rule, y, other):
    """Vectors of another matrix with the free factors, of size one, that those of the first have."""
    def factors(a, b, axis):
        f = np.sum(a * np.conj(b), axis=axis, keepdims=True)
        return f / np.abs(f)
    if rule.function in (np.linalg.eigh, scipy.linalg.eigh) and len(y) == 2:
        return other[0], other[1] * factors(y[1], other[1], -2)
    if rule.function is np.linalg.svd and len(y) == 3 and y[0].shape[-1] == y[2].shape[-2]:
        f = factors(y[2], other[2], -1)
        return other[0] * np.conj(np.swapaxes(f, -1, -2)), other[1], other[2] * f
    return other


# --- the tests --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule, index", CASES)
def test_primal_is_the_function(rule, index):
    args, kwargs = rule.samples(np.random.default_rng(7))[index]
    found, expected = results(evaluate(rule, sample(rule, index))), results(rule.function(*args, **kwargs))
    for got, value in zip(found, expected, strict=True):
        assert np.shape(got) == np.shape(value)
        np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule, index", DERIVED)
def test_jvp_is_the_difference(rule, index):
    values = sample(rule, index)
    dots = direction(rule, values, np.random.default_rng(1))
    found = tangent(rule, values, dots)
    if rule.kind == "linear":
        ahead, behind, width = moved(values, dots, 1.0), values, 1.0
    else:
        ahead, behind, width = moved(values, dots, 1e-6), moved(values, dots, -1e-6), 2e-6
    y, ahead, behind = (results(evaluate(rule, v)) for v in (values, ahead, behind))
    ahead, behind = (with_the_factors_of(rule, y, other) for other in (ahead, behind))
    for got, value, a, b in zip(found, y, ahead, behind, strict=True):
        assert np.shape(got) == np.shape(value)
        np.testing.assert_allclose(got, (a - b) / width, rtol=1e-6, atol=2e-8)


@pytest.mark.parametrize("rule, index", DERIVED)
def test_vjp_is_the_transpose_of_jvp(rule, index):
    values, rng = sample(rule, index), np.random.default_rng(2)
    dots = direction(rule, values, rng)
    dy = like(evaluate(rule, values), rng)
    dx = adjoint(rule, values, dy)
    expected = pairing(results(dy), tangent(rule, values, dots))
    got = pairing(flat(dx, dx), flat(dots, dx))
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("rule, index", [c for c in DERIVED if c.values[0].options.get("partial")])
def test_vjp_of_some_results(rule, index):
    """The adjoints of results that nobody uses are None."""
    values, rng = sample(rule, index), np.random.default_rng(6)
    dots, y = direction(rule, values, rng), results(evaluate(rule, values))
    if len(y) == 1:
        return
    numbers = [k for k, value in enumerate(y) if np.asarray(value).dtype.kind in "fc"]
    for used in [*([k] for k in numbers), *([n for n in numbers if n != k] for k in numbers if len(numbers) > 2)]:
        dy = tuple(like(value, rng) if k in used else None for k, value in enumerate(y))
        dx, dots_y = adjoint(rule, values, dy), tangent(rule, values, dots)
        expected = pairing([dy[k] for k in used], [dots_y[k] for k in used])
        np.testing.assert_allclose(pairing(flat(dx, dx), flat(dots, dx)), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("rule, index", LINEAR)
def test_vjp_takes_a_compact_adjoint(rule, index):
    if not rule.options.get("full_rank"):
        return
    values = sample(rule, index)
    y = evaluate(rule, values)
    compact = like(np.zeros((1,) * np.ndim(y), dtype=y.dtype), np.random.default_rng(3))
    got, expected = adjoint(rule, values, compact), adjoint(rule, values, np.broadcast_to(compact, np.shape(y)))
    for name in rule.active:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("rule, index", DERIVED)
def test_single_precision_stays(rule, index):
    single = {"f": np.float32, "c": np.complex64}
    def narrow(a):
        return a if np.asarray(a).dtype.kind not in single else np.asarray(a).astype(single[np.asarray(a).dtype.kind])
    values = sample(rule, index, narrow)
    rng = np.random.default_rng(4)
    dots = direction(rule, values, rng)
    y = evaluate(rule, values)
    if np.asarray(results(y)[0]).dtype not in (np.float32, np.complex64):      # NumPy's function gives float64
        return
    for got, value in zip(tangent(rule, values, dots), results(y), strict=True):
        assert np.asarray(got).dtype == np.asarray(value).dtype
    dx = adjoint(rule, values, like(y, rng))
    for got, x in zip(flat(dx, dx), flat(values, dx)):
        assert got.dtype == np.asarray(x).dtype or np.asarray(x).dtype.kind not in single


def test_ties_share():
    x, dy = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]), np.array([6.0, 5.0])
    dx = RULES[np.max].parts["vjp_x"](dy, np.max(x, axis=1), x, 1)
    assert np.array_equal(dx, [[0, 3, 3], [5, 0, 0]])
    dx = RULES[np.min].parts["vjp_x"](1.0, np.float64(1.0), np.array([1.0, 2.0, 1.0, 1.0, 1.0]))
    assert np.array_equal(dx, [0.25, 0, 0.25, 0.25, 0.25])


def test_equal_eigenvalues():
    """Their values have a derivative, their vectors have none: that must not pass as a number."""
    part, a = RULES[np.linalg.eigh].parts["vjp_a"], np.eye(3)
    y = np.linalg.eigh(a)
    assert np.array_equal(part((np.ones(3), np.zeros((3, 3))), y), np.eye(3))
    with np.errstate(all="ignore"):
        assert not np.all(np.isfinite(part((np.ones(3), np.arange(9.0).reshape(3, 3)), y)))


REFUSED = [
    (np.pad, "vjp_array", dict(dy=np.ones(5), array=np.ones(3), pad_width=1, mode="empty"), "empty"),
    (np.insert, "vjp_arr", dict(dy=np.ones(3), arr=np.ones(2), obj=np.array([True, False]), values=1.0, axis=None),
     "mask"),
    (np.linalg.qr, "vjp_a", dict(dy=None, y=None, a=np.eye(2), mode="complete"), "complete"),
    (np.linalg.outer, "primal", dict(x1=np.ones((2, 2)), x2=np.ones(2)), "two vectors"),
    (np.linalg.cross, "primal", dict(x1=np.ones(2), x2=np.ones(2), axis=-1), "three components"),
    (np.einsum, "vjp_operands", dict(dy=1.0, k=0, subscripts=[0], operands=(np.ones(2),), optimize=False), "text"),
    (np.split, "vjp_ary", dict(dy=(), ary=np.ones(3), indices_or_sections=[2, 1], axis=0), "not in order"),
    (np.ravel, "vjp_a", dict(dy=np.ones(4), a=np.ones((2, 2)), order="K"), "layout"),
    (np.quantile, "vjp_a", dict(dy=1.0, a=np.ones(3), q=0.5, axis=None, method="hazen", keepdims=False), "hazen"),
    (np.polyval, "vjp_x", dict(dy=1.0, y=1.0, p=np.ones((2, 2)), x=1.0), "vectors"),
]


@pytest.mark.parametrize("function, part, values, reason", [pytest.param(*r, id=r[0].__name__) for r in REFUSED])
def test_what_is_not_supported_is_refused(function, part, values, reason):
    with pytest.raises(ValueError, match=reason):
        call(RULES[function].parts[part], values)


def understands(signature, call):
    try:
        signature.bind(*call.args, **{k.arg: k.value for k in call.keywords})
    except TypeError:
        return False
    return True


def _spliced_functions(module):
    """The functions of a module that go into emitted code, as trees: all but the static ones."""
    static = {f.__name__ for f in STATIC if f.__module__ == module.__name__}
    for node in ast.parse(inspect.getsource(module)).body:
        for function in ([node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])):
            if isinstance(function, ast.FunctionDef) and function.name not in static:
                yield function


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
def test_parts_call_only_what_records_understand(module):
    for found in pkgutil.iter_modules(tables.__path__):
        importlib.import_module(f"{tables.__name__}.{found.name}")
    missing = set()
    for function in _spliced_functions(module):
        for node in ast.walk(function):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name.startswith(("np.", "special.")) and "(" not in name:         # not a method of a result
                target = vars(module)[name.partition(".")[0]]
                for attribute in name.split(".")[1:]:
                    target = getattr(target, attribute)
                if isinstance(target, type) and issubclass(target, np.generic):     # a conversion
                    continue
                if target not in RULES:
                    missing.add(name)
                elif not any(isinstance(a, ast.Starred) for a in node.args):
                    rule = RULES[target]
                    forms = [rule.signature, *(inspect.signature(rule.parts[n]) for n in ("wider",) if n in rule.parts)]
                    if not any(understands(f, node) for f in forms):
                        missing.add(ast.unparse(node))
    assert not missing


@pytest.mark.parametrize("join", [np.hstack, np.vstack, np.column_stack, np.dstack, np.concatenate])
def test_joining_a_tuple_that_is_an_argument(join):
    """Its arrays are not read one by one before they are joined."""
    arrays = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    weights = np.arange(float(np.size(join(arrays)))).reshape(np.shape(join(arrays))) + 1

    def f(x):
        return np.sum(weights * join(x) ** 2)
    taken = join((np.arange(2), np.arange(2, 4)))
    slope = np.empty(4)
    slope[taken.ravel()] = (2 * weights * join(arrays)).ravel()
    for made in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(np.concatenate(made(arrays)), slope, rtol=1e-14)
