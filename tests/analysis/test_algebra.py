"""The normal form of generated arithmetic computes what was computed: random statements, before and after."""
import copy
import operator

import numpy as np
import pytest

from gradscribe.ast_transform.core.form import ADJOINT, TEMPORARY, USER, Apply, Const, Function, Let, Pack, Param, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Symbol
from gradscribe.ast_transform.core.operations import shape_of
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.algebra import axes_kept, in_normal_form, without_zeros
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.source.origin import Origin

MADE = Origin("f", 1, 0, 1, 0, "f", "y = f(x)", None, 1)
WRITTEN = MADE.made_by(0)
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
NUMBERS = [2, 3, 0.5, 0.1, -1.0, 4, 6, 1.0]


def run(function, given):
    """What a form without loops and branches computes."""
    env = dict(zip((p.value for p in function.params), given))

    def of(node):
        return env[node] if isinstance(node, Var) else node.value if isinstance(node, Const) else node

    with np.errstate(all="ignore"):
        for step in function.body:
            value = step.value
            env[step.targets[0]] = of(value) if not isinstance(value, Apply) else value.function(
                *map(of, value.args), **{k: of(a) for k, a in value.kwargs})
    return [of(r) for r in function.result.items]


def made_at_random(rng):
    """Statements of sums, products, quotients and negations, of numbers and arrays, each of what was made before."""
    n, m = (Length(Symbol(label, True, size)) for label, size in (("n", 4), ("m", 3)))
    shapes = [(), (m,), (n, m), (n, Length(None, 1))]
    params = [Var(name, Array(np.dtype(float), shapes[k]), USER) for k, name in enumerate("abcd")]
    known, body = list(params), []
    for _ in range(rng.integers(3, 14)):
        kind = rng.integers(0, 12)
        if kind < 8:
            args = [known[rng.integers(0, len(known))] for _ in range(2)]
            if rng.random() < 0.3:
                args[rng.integers(0, 2)] = Const(NUMBERS[rng.integers(0, len(NUMBERS))])
            value = Apply(BINARY[rng.integers(0, 4)], tuple(args))
        elif kind == 8:
            value = Apply(operator.neg, (known[rng.integers(0, len(known))],))
        elif kind == 9:
            value = Apply(np.sqrt if rng.random() < 0.7 else np.exp, (params[rng.integers(0, 4)],))
        else:
            arrays = [v for v in known if v.fact.rank == 2]
            words = (("axis", Const(1)), ("keepdims", Const(True)))[:rng.integers(1, 3)]
            value = Apply(np.sum, (arrays[rng.integers(0, len(arrays))],), words)
        fact = types.infer(value.function, value.args, value.kwargs)
        if not any(isinstance(a, Var) for a in value.args) or fact.rank > 2:
            continue
        if fact.rank == 1 and not fact.dims[0].same(m):     # a sum over the second axis: as a column
            column = Var("s", fact, TEMPORARY)
            body.append(Let((column,), value, MADE))
            value = Apply(operator.getitem, (column, Const((slice(None), None))))
            fact = types.item(fact, value.args[1])
        var = Var("v", fact, [TEMPORARY, TEMPORARY, ADJOINT][rng.integers(0, 3)])
        body.append(Let((var,), value, MADE if rng.random() < 0.85 else WRITTEN))
        known.append(var)
        if fact.rank == 2 and rng.random() < 0.2:
            length = Var("n_1", Array(int, (), fact.dims[1]), TEMPORARY)
            quotient = Var("q", fact, TEMPORARY)
            body.append(Let((length,), Apply(shape_of, (var, Const(1))), MADE))
            body.append(Let((quotient,), Apply(operator.truediv, (var, length)), MADE))
            known.append(quotient)
    results = tuple(known[-3:])
    made = Function("f", [Param(p.hint, p) for p in params], body, Pack("tuple", results))
    made.body = drop_dead(made.body, made.result)
    return made


def same(got, want):
    scale = np.max(np.abs(want)) if np.size(want) and np.all(np.isfinite(want)) else 1.0
    return np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=1e-9, atol=1e-9 * max(scale, 1.0))


@pytest.mark.parametrize("start", range(0, 1500, 100))
def test_random_statements(start):
    for seed in range(start, start + 100):
        rng = np.random.default_rng(seed)
        made = made_at_random(rng)
        given = [np.float64(rng.uniform(0.5, 2.0)), rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 2.0, (4, 3)),
                 rng.uniform(0.5, 2.0, (4, 1))]
        want = run(made, given)
        for change in (without_zeros, axes_kept, in_normal_form):
            after = copy.copy(made)
            after.body = [copy.copy(s) for s in made.body]
            changed = change(after)
            after.body, after.result = changed if isinstance(changed, tuple) else (changed, after.result)
            got = run(after, given)
            finite = [np.all(np.isfinite(w)) and np.max(np.abs(w)) < 1e8 for w in want]
            assert all(same(g, w) for g, w, f in zip(got, want, finite) if f), (seed, change.__name__)


def test_repeated_factors():
    """z * z where z = x / s stands before: one factor is replaced, and one divisor goes with it."""
    import gradscribe as gs

    def f(x, s):
        z = x / s
        return np.sum(np.exp(-z * z) * z)

    x, s = np.linspace(0.3, 1.2, 4), 1.7
    dx, ds = gs.grad(f, argnums=(0, 1))(x, s)
    e = 1e-6
    np.testing.assert_allclose(ds, (f(x, s + e) - f(x, s - e)) / (2 * e), rtol=1e-7)
    np.testing.assert_allclose(gs.jit(gs.grad(f))(x, s), dx, rtol=1e-12)
