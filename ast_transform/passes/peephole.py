# SPDX-License-Identifier: Apache-2.0
"""Generated statements made shorter by the lines of rules/identities.py.

A statement is rewritten where the left side of a line matches it and what made its operands, up to the names, of which
none is an array that some statement changes in place.

>>> import operator
>>> from gradscribe.ast_transform.core.form import Param
>>> from gradscribe.ast_transform.examples import show
>>> from gradscribe.ast_transform.passes.simplify import drop_dead
>>> from gradscribe.ast_transform.source.origin import Origin
>>> here = Origin("<example>", 1, 0, 1, 0, "f").made_by(1)
>>> x, t, u, y = (Var(n, Array(float)) for n in "xtuy")
>>> values = Apply(operator.neg, (x,)), Apply(np.exp, (x,)), Apply(operator.add, (u, t))
>>> f = Function("f", [Param("x", x)], [Let((v,), w, here) for v, w in zip((t, u, y), values)], y)
>>> f.body = drop_dead(by_identities(f), f.result)
>>> print(show(f))
f(x):
    u = np.exp(x)
    y = u - x
    return y

Source: W. M. McKeeman, Peephole optimization, CACM 8 (1965).
"""
import numpy as np

from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Function,
    Let,
    Var,
    is_application,
    rebuilt,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.algebra import is_generated, updated_in
from gradscribe.ast_transform.passes.anf import describe
from gradscribe.ast_transform.rules.identities import bindings, identities_of, written


def by_identities(function: Function) -> list:
    """The body of a function in which generated statements are as short as the identities make them."""
    made = {s.targets[0]: s.value for s in walk(function.body) if isinstance(s, Let) and len(s.targets) == 1}
    changed = {v for s in function.body for v in updated_in(s)}
    env: dict = {}

    def taken_apart(node, of):
        value = made.get(node) if isinstance(node, Var) else None
        return value.args if is_application(value, of) and not value.kwargs else None

    def may_be(v):
        return isinstance(v, Var) and type(v.fact) is Array and v not in changed

    def shorter(step):
        """(the statements that stand for one, its value), by the first line that fits; None where none does."""
        value, (target,) = step.value, step.targets
        for identity in identities_of(value.function) if not value.kwargs and may_be(target) else ():
            bound: dict = {}
            if identity.is_shorter and not identity.is_of_factors and len(value.args) == len(identity.left.args) and \
                    all(bindings(p, a, taken_apart, bound) is not None for p, a in zip(
                        identity.left.args, value.args)) and all(map(may_be, bound.values())) and all(
                        identity.holds_for(v.fact.kind, v.fact.rank) for v in bound.values()):
                steps, result = _built(identity, bound, step.origin)
                if _alike(result.fact, target.fact):
                    return steps, result
        return None

    def block(body):
        out = []
        for step in body:
            step = rebuilt(step, env, block)
            while is_generated(step) and (found := shorter(step)) is not None:
                steps, result = found
                if not steps:
                    env[step.targets[0]] = result
                    break
                out += steps[:-1]
                step = Let(step.targets, steps[-1].value, steps[-1].origin)
                made.update((s.targets[0], s.value) for s in (*steps[:-1], step))
            else:
                out.append(step)
        return out

    body = block(function.body)
    function.result = substituted(function.result, env)
    return replaced(body, env) if env else body


def _built(identity, bound, origin):
    """The statements of the right side of an identity, and its value."""
    steps: list = []

    def apply(function, *args):
        var = Var(describe(function, args), types.infer(function, args), TEMPORARY)
        steps.append(Let((var,), Apply(function, args), origin.shortened([identity.text])))
        return var
    return steps, written(identity.right, bound, apply)


def _alike(a, b):
    return np.dtype(a.dtype) == np.dtype(b.dtype) and a.rank == b.rank and all(x.same(y) for x, y in zip(
        a.dims, b.dims))
