# SPDX-License-Identifier: Apache-2.0
"""Activity analysis: which values depend on the inputs, so that they get tangents or adjoints.

A value is active if it consists of floating-point numbers and depends on an active operand through a derivative.

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
from gradscribe.ast_transform.reader.values import Pullback, variables_in


def active_values(body: list, wrt: Iterable[Var]) -> set[Var]:
    """The active values of a block, given those to differentiate with respect to."""
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
                    and (_is_active(c.init, active) or _is_active(c.next, active))
                ):
                    active.add(c.inner)
                if (c.inner in active or _is_active(c.next, active)) and c.outer.fact.differentiable:
                    active.add(c.outer)
            if isinstance(step, While):
                _spread(step.head, active)
            _spread(step.body, active)
        elif isinstance(step, If):
            _spread(step.then, active)
            _spread(step.orelse, active)
            for j in step.joins:
                if (_is_active(j.then, active) or _is_active(j.orelse, active)) and j.var.fact.differentiable:
                    active.add(j.var)


def begun_with(body: list, active: set[Var], unset: set[Var]) -> set[Var]:
    """Inactive values that may be unset and that loops or branches merge with active ones, by all their names.

    The tangent of such a value is zero and has its shape, so it is made where the value is set, and only there.
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
    """The values of a block that a result depends on through derivatives: the others get no adjoint.

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
                useful.update(_adjoint_operands(step.value))
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


def _adjoint_operands(value):
    """The operands of an operation to which the adjoint of its result may contribute."""
    if isinstance(value, Apply) and isinstance(value.function, Pullback):
        return [*operands(value), *(v for a in value.function.args for v in variables_in(a))]
    return [o for o in operands(value) if passes_on(value, {o})]


def _is_active(node, active):
    return any(v in active for v in operands(node))


def passes_on(value: Any, active: set[Var]) -> bool:
    """Whether a derivative can pass through an operation from its active operands."""
    if not isinstance(value, Apply):
        return _is_active(value, active)
    if isinstance(value.function, Quoted) or value.function is held:
        return False
    if isinstance(value.function, Pullback):
        return any(v in active for a in value.function.args for v in variables_in(a))
    if isinstance(value.function, Function):
        return _is_active(value, active)
    rule = rule_of(value.function)
    if rule is not None and rule.kind == "constant":        # not so of complex np.sign, which the modes reject
        return "real_only" in rule.options and any(v in active and v.fact.kind == "c" for v in operands(value))
    return _is_active(value, active)


def rule_of(function: Any) -> Rule | None:
    """The rule of a function, or None."""
    try:
        return RULES.get(function)
    except TypeError:
        return None


def is_own(function: Any) -> bool:
    """Whether a function is a plain one of the user's that has a rule."""
    return isinstance(function, types.FunctionType) and rule_of(function) is not None and \
        function.__module__.split(".")[0] not in ("numpy", "scipy", "gradscribe")


def has_scalar_form(function: Any) -> bool:
    """Whether the record of a function says how compiled code computes one entry."""
    rule = rule_of(function)
    return rule is not None and ("scalar" in rule.parts or bool(rule.options.get("numba")))


def is_foreign(function: Any) -> bool:
    """Whether a function is a plain one from outside this package: the globals it reads may change between calls."""
    return isinstance(function, types.FunctionType) and (function.__module__ or "").split(".")[0] != "gradscribe"


def has_ties(step: Let | For | While | If | Effect) -> bool:
    """Whether the derivative of a statement depends on which entries equal its result, as that of np.max does."""
    rule = rule_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return rule is not None and rule.options.get("ties", False)
