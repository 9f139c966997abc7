# SPDX-License-Identifier: Apache-2.0
"""What depends on the inputs: only that gets tangents and adjoints.

A value is active if it is made of floating-point numbers and an active operand reaches it through a derivative.

>>> from gradscribe.ast_transform.examples import form
>>> text = "def f(x, y):\\n    s, c = np.sin(y), np.cos(x)\\n    k = np.floor(x)\\n    z = s * c\\n    return z + k"
>>> f = form(text, 1.0, 1.0)
>>> sorted(v.hint for v in active_values(f.body, [f.params[0].value]))
['c', 't', 'x', 'z']
"""
import types
from collections.abc import Iterable
from typing import Any

from gradscribe.ast_transform.core.form import Apply, Effect, For, Function, If, Let, Var, While, operands, walk
from gradscribe.ast_transform.core.operations import Quoted, held
from gradscribe.ast_transform.core.rule import RULES, Rule
from gradscribe.ast_transform.passes.values import Pullback, variables_in


def active_values(body: list, wrt: Iterable[Var]) -> set[Var]:
    """The active variables of a block, given those it starts from."""
    active, size = set(wrt), -1
    while size != len(active):
        size = len(active)
        _spread(body, active)
    return active


def _spread(body, active):
    for step in body:
        if isinstance(step, Let):
            if passes_on(step.value, active):
                active.update(t for t in step.targets if t.fact.differentiable)
        elif isinstance(step, (For, While)):
            if isinstance(step, For):
                for v, source in step.items:
                    if any(o in active for o in operands(source)) and v.fact.differentiable:
                        active.add(v)
            for c in step.carries:
                if (
                    c.inner not in active
                    and c.inner.fact.differentiable
                    and (_is(c.init, active) or _is(c.next, active))
                ):
                    active.add(c.inner)
                if (c.inner in active or _is(c.next, active)) and c.outer.fact.differentiable:
                    active.add(c.outer)
            if isinstance(step, While):
                _spread(step.head, active)
            _spread(step.body, active)
        elif isinstance(step, If):
            _spread(step.then, active)
            _spread(step.orelse, active)
            for j in step.joins:
                if (_is(j.then, active) or _is(j.orelse, active)) and j.var.fact.differentiable:
                    active.add(j.var)


def begun_with(body: list, active: set[Var], unset: set[Var]) -> set[Var]:
    """What may be unset, has no tangent itself, and begins what has one: the values that are it, in loops and arms.

    Its tangent is zero and as large as it is, so it is made where the value is, and is set only where that is.
    """
    found: set
    handed: list[tuple[tuple, tuple]]
    found, size = set(), -1
    while size != len(found):
        size = len(found)
        for step in walk(body):
            if isinstance(step, (For, While)):
                handed = [((c.inner, c.outer), (c.init, c.next)) for c in step.carries]
            elif isinstance(step, If):
                handed = [((j.var,), (j.then, j.orelse)) for j in step.joins]
            else:
                continue
            for made, given in handed:
                if any(v in active or v in found for v in made):
                    new = {v for v in given if v in unset and v not in active}
                    found |= new | (set(made) - active if found & set(made) else set())
    return found


def useful_values(body: list, results: Iterable[Var]) -> set[Var]:
    """The variables of a block whose derivatives reach one of the results: the others get no adjoint.

    >>> from gradscribe.ast_transform.examples import form
    >>> text = "def f(x):\\n    s = np.sin(x)\\n    c = np.cos(x)\\n    k = c > 0.5\\n    return s * k"
    >>> f = form(text, 1.0)
    >>> sorted(v.hint for v in useful_values(f.body, operands(f.result)))
    ['k', 's', 't', 'x']
    """
    useful, size = set(results), -1
    while size != len(useful):
        size = len(useful)
        _spread_back(body, useful)
    return useful


def _spread_back(body, useful):
    for step in reversed(body):
        if isinstance(step, Let):
            if any(t in useful for t in step.targets):
                useful.update(_reached(step.value))
        elif isinstance(step, (For, While)):
            for c in step.carries:
                if c.outer in useful or c.inner in useful:
                    useful.update([*operands(c.init), *operands(c.next)])
            _spread_back(step.body, useful)
            if isinstance(step, While):
                _spread_back(step.head, useful)
            else:
                useful.update(o for v, source in step.items if v in useful for o in operands(source))
        elif isinstance(step, If):
            useful.update(o for j in step.joins if j.var in useful for o in [*operands(j.then), *operands(j.orelse)])
            _spread_back(step.then, useful)
            _spread_back(step.orelse, useful)


def _reached(value):
    """The operands that a result's adjoint may reach."""
    if isinstance(value, Apply) and isinstance(value.function, Pullback):
        return [*operands(value), *(v for a in value.function.args for v in variables_in(a))]
    return [o for o in operands(value) if passes_on(value, {o})]


def _is(node, active):
    return any(v in active for v in operands(node))


def passes_on(value: Any, active: set[Var]) -> bool:
    """A derivative can pass through an operation from its active operands."""
    if not isinstance(value, Apply):
        return _is(value, active)
    if isinstance(value.function, Quoted) or value.function is held:
        return False
    if isinstance(value.function, Pullback):
        return any(v in active for a in value.function.args for v in variables_in(a))
    if isinstance(value.function, Function):
        return _is(value, active)
    rule = rule_of(value.function)
    if rule is not None and rule.kind == "constant":        # np.sign of complex numbers is not: the modes refuse it
        return "real_only" in rule.options and any(v in active and v.fact.kind == "c" for v in operands(value))
    return _is(value, active)


def rule_of(function: Any) -> Rule | None:
    try:
        return RULES.get(function)
    except TypeError:
        return None


def is_own(function: Any) -> bool:
    """A plain function with a rule that is no other package's."""
    return isinstance(function, types.FunctionType) and rule_of(function) is not None and \
        function.__module__.split(".")[0] not in ("numpy", "scipy", "gradscribe")


def has_scalar_form(function: Any) -> bool:
    """Whether the record of a function says how compiled code computes one entry."""
    rule = rule_of(function)
    return rule is not None and ("scalar" in rule.parts or bool(rule.options.get("numba")))


def is_foreign(function: Any) -> bool:
    """A plain function that is none of this package's: what it reads may be another thing in the next call."""
    return isinstance(function, types.FunctionType) and (function.__module__ or "").split(".")[0] != "gradscribe"


def has_ties(step: Let | For | While | If | Effect) -> bool:
    """A statement whose derivative asks which entries are equal to its result."""
    rule = rule_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return rule is not None and rule.options.get("ties", False)
