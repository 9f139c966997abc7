# SPDX-License-Identifier: Apache-2.0
"""Sums over devices that overlap with computation, and sums that are sent in a narrower dtype.

A sum is started where its operand is computed, and finished where it was: the adjoint of the last layer is being sent
while the backward sweep works on the layers before it (S. Li et al., PyTorch Distributed, VLDB 2020, section 3.2).
Sums with no computation in between stay whole.

>>> import numpy as np, gradscribe as gs
>>> from gradscribe.ast_transform.mapping import on_devices
>>> from gradscribe.transformed import Transformed
>>> def step(W, V, x):
...     _, (dW, dV) = gs.value_and_grad(lambda p: np.sum(np.tanh(x @ p[0]) @ p[1]))((W, V))
...     return gs.lax.pmean(dW, "i"), gs.lax.pmean(dV, "i")
>>> f = Transformed(step, on_devices({"i": 2}, overlap=True))
>>> text = f.source_for(np.ones((3, 4)), np.ones((4, 5)), np.ones((2, 3)))
>>> print("\\n".join(line.strip() for line in text.splitlines() if " = pmean" in line))
dV_sent = pmean_start(dV, 'i')
mean = pmean(dW, 'i')
mean_1 = pmean_done(dV_sent, 'i')
"""
import numpy as np

from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Var,
    While,
    made,
    rebuilt,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import astype
from gradscribe.ast_transform.reader.named_axes import HALVES, is_collective

NARROW = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.complex64)}


def overlapped(function: Function) -> Function:
    """The function, changed in place, with sums split into a start and a finish."""
    function.body = _rewritten(function.body, _halves)
    return function


def compressed(function: Function) -> Function:
    """The function, changed in place, with sums and means of double precision sent in single precision."""
    function.body = _rewritten(function.body, _narrow)
    return function


def _rewritten(block, parts):
    """A block, and those inside it, with sums split into parts.

    parts(steps, k, begin): for step k, a sum of a value that step `begin` defines, the statement in its place, and
    [(the number of the step that it follows, another statement)]; None if the sum stays whole
    """
    steps = [rebuilt(s, {}, lambda b: _rewritten(b, parts)) for s in block]
    place = {v: k for k, s in enumerate(steps) for v in made(s)}
    after: dict = {}
    for k, step in enumerate(steps):
        found = parts(steps, k, place.get(step.value.args[0])) if _is_sum(step) else None
        if found is not None:
            steps[k], others = found
            for where, other in others:
                after.setdefault(where, []).append(other)
    return [s for k in range(-1, len(steps)) for s in (*steps[max(k, 0):k + 1], *after.get(k, ()))]


def _is_sum(step):
    """Whether a statement is the sum or mean of an array over devices."""
    if not isinstance(step, Let) or not is_collective(step.value) or step.value.function not in HALVES:
        return False
    x, fact = step.value.args[0], step.targets[0].fact
    return isinstance(x, Var) and isinstance(fact, Array) and fact.rank > 0 and np.dtype(x.fact.dtype) == np.dtype(
        fact.dtype)


def _halves(steps, k, begin):
    step = steps[k]
    if begin is None or len(step.value.args[-1].value) > 1 or not any(map(_works, steps[begin + 1:k])):
        return None
    start, done = HALVES[step.value.function]
    x, *rest = step.value.args
    sent = Var(f"{x.hint}_sent", step.targets[0].fact, TEMPORARY)
    return Let(step.targets, Apply(done, (sent, *rest)), step.origin), [
        (begin, Let((sent,), Apply(start, step.value.args), steps[begin].origin))]


def _works(step):
    """Whether a step takes time with which a message can overlap."""
    if isinstance(step, (For, While)):
        return True
    if isinstance(step, If):
        return any(map(_works, (*step.then, *step.orelse)))
    return isinstance(step, Let) and isinstance(step.value, Apply) and not is_collective(step.value) and any(
        isinstance(t.fact, Array) and t.fact.rank for t in step.targets)


def _narrow(steps, k, begin):
    step, fact = steps[k], steps[k].targets[0].fact
    narrow = NARROW.get(np.dtype(fact.dtype))
    if narrow is None:
        return None
    x, *rest = step.value.args
    begin, short = k - 1 if begin is None else begin, Array(narrow, fact.dims)
    given, found = Var(f"{x.hint}_32", short, TEMPORARY), Var(f"{step.targets[0].hint}_32", short, TEMPORARY)
    origin = steps[begin].origin if begin >= 0 else step.origin
    return Let((found,), Apply(step.value.function, (given, *rest)), step.origin), [
        (begin, Let((given,), Apply(astype, (x, Const(narrow))), origin)),
        (k, Let(step.targets, Apply(astype, (found, Const(np.dtype(fact.dtype)))), step.origin))]
