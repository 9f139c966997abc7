# SPDX-License-Identifier: Apache-2.0
"""An adjoint that is zero in one arm of a branch is used in the other arm only: the opposite of tail merging.

    if c: dr = ...                      if c:
    else: dr = 0.0                          dr = ...
    dd = 2 * dr * d             ->          dd = 2 * dr * d
    dx[i] += dd                             dx[i] += dd

Statements after the branch that are zero with such an adjoint, and those that add them to other values, move into the
arm.  Zero times a value that is not finite is omitted as well, so it gives no NaN.  This is for source for reading.

>>> import numpy as np
>>> from gradscribe.ast_transform.examples import gradient, show
>>> from gradscribe.ast_transform.passes.simplify import drop_dead
>>> text = "def f(x, k):\\n    r = x[0] * x[1]\\n    return np.sqrt(r) if r > k else 0.0"
>>> made = gradient(text, np.ones(2), 1.0)
>>> made.body = drop_dead(made.body, made.result)
>>> print(show(in_other_arm(made)))
grad_f(x, k):
    x_1 = x[0]
    x_2 = x[1]
    r = x_1 * x_2
    t = r > k
    if t:
        sqrt_r = np.sqrt(r)
    else:
        pass
    join sqrt_r_1 = sqrt_r | undefined
    dx = np.zeros_like(x)
    if t:
        t_1 = 2 * sqrt_r_1
        dr = 1 / t_1
        dx_1 = dr * x_2
        dx_2 = dr * x_1
        dx_3 = put_add(dx, 1, dx_2)
        dx_4 = put_add(dx_3, 0, dx_1)
    else:
        pass
    join dx_5 = dx_4 | dx
    return dx_5
"""
from gradscribe.ast_transform.core.alias import is_fresh, may_raise, raised, reads, record_of, role
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Function,
    If,
    Join,
    Let,
    Var,
    all_made,
    all_reads,
    operands,
    read_counts,
    rebuilt,
    replaced,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put_add
from gradscribe.ast_transform.passes.algebra import is_generated


def in_other_arm(function: Function) -> Function:
    """The function with such statements in the arm where their adjoint is not zero; it is changed in place."""
    counts = read_counts(function)

    def block(body):
        body = [s if isinstance(s, Let) else rebuilt(s, {}, block) for s in body]
        k = 0
        while k < len(body):
            if isinstance(body[k], If):
                body = _moved(body, k, counts)
            k += 1
        return body

    function.body = block(function.body)
    return function


def _moved(body, k, counts):
    step = body[k]
    for j in step.joins:
        sides = [isinstance(v, Const) and type(v.value) in (int, float) and v.value == 0 for v in (j.then, j.orelse)]
        if sum(sides) == 1 and type(j.var.fact) is Array and not j.var.fact.dims and j.var.fact.kind in "fc":
            made = _with_tail(body, k, j, sides[1], counts)
            if made is not None:
                return made
    return body


def _with_tail(body, k, join, then, counts):
    """The block with what depends on one join moved into the branch at k; None if it cannot be."""
    step, here = body[k], {j.var for j in body[k].joins}
    found = _tail(body, k, join, here, counts)
    if found is None:
        return None
    moved, before, sums = found
    if any(here & set(operands(s.value)) - {join.var} for s in moved):
        return None                     # in the arm, the other results have other names
    value = join.then if then else join.orelse
    if not isinstance(value, Var):
        return None
    after = {v for v in sums if counts.get(v, 0) > sum(v is u for s in moved for u in all_reads(s))}
    arm = [*(step.then if then else step.orelse), *replaced(moved, {join.var: value})]
    joins = [j for j in step.joins if j is not join]
    new, rename = [], {}
    for v in after:
        inner = v.like()
        rename[v] = inner
        new.append(Join(v, inner, sums[v]) if then else Join(v, sums[v], inner))
    arm = [_renamed(s, rename) for s in arm]
    made = If(step.test, arm if then else step.then, step.orelse if then else arm, [*joins, *new], step.origin)
    gone = {id(s) for s in (*moved, *before)}
    return [*body[:k], *before, made, *(s for s in body[k + 1:] if id(s) not in gone)]


def _tail(body, k, join, here, counts):
    """(statements that are zero with the join or add such zeros, those between them, {sum: what it is without zeros}).

    here: the results of the branch at k.  None where a zero reaches another statement, or a sum is read in between.
    """
    zero, sums, moved, before = {join.var}, {}, [], []
    left = counts.get(join.var, 0)
    for s in body[k + 1:]:
        if not left:
            break
        read = list(all_reads(s))
        tainted = [v for v in read if v in zero]
        if not tainted:
            if any(v in sums for v in read) or not _may_go_before(s, here | zero):
                return None
            before.append(s)
            continue
        if not is_generated(s) or raised(s):
            return None
        (target,), value = s.targets, s.value
        if (other := _summed_with_zero(value, target, zero)) is not None:
            sums[target] = sums.get(other, other)
        elif _is_zero_with(value, zero) and is_fresh(value):
            zero.add(target)
            left += counts.get(target, 0)
        else:
            return None
        if any(v in sums and v is not value.args[0] for v in read if v is not target) and target not in sums:
            return None
        left -= len(tainted)
        moved.append(s)
    return None if left or not moved or not sums else (moved, before, sums)


def _summed_with_zero(value, target, zero):
    """The operand that a sum or difference leaves as it is, its other one being zero; None of other operations."""
    args = value.args
    if value.function is put_add:
        only = args[2] in zero and args[0] not in zero and not any(v in zero for v in operands(args[1]))
        return args[0] if only else None
    if value.kwargs or role(value) not in ("sum", "difference") or not all(isinstance(a, Var) for a in args[:1]):
        return None
    if role(value) == "sum":
        others = [a for a in args if isinstance(a, Var) and a not in zero]
        found = others[0] if len(others) == 1 and all(isinstance(a, Var) for a in args) else None
    else:
        found = args[0] if args[1] in zero and args[0] not in zero else None
    return found if found is not None and _same_shape(found.fact, target.fact) else None


def _renamed(s, rename):
    s = rebuilt(s, rename, lambda block: replaced(block, rename))
    if isinstance(s, Let):
        s.targets = tuple(rename.get(t, t) for t in s.targets)
    return s


def _may_go_before(s, late):
    """Whether a statement may move before the branch: it makes a new value, and none of `late` is involved."""
    return isinstance(s, Let) and isinstance(s.value, Apply) and is_fresh(s.value) and not raised(s) and \
        not may_raise(s.value) and not is_draw(s.value) and \
        late.isdisjoint(all_reads(s)) and late.isdisjoint(all_made([s]))


def _same_shape(a, b):
    return type(a) is Array and type(b) is Array and a.rank == b.rank and all(m.same(n) for m, n in zip(a.dims, b.dims))


def _is_zero_with(value, zero):
    """Whether an operation gives zero if these operands are zero: it is linear in one of them."""
    args = [a in zero for a in value.args if isinstance(a, (Var, Const))]
    if role(value) in ("sum", "difference"):
        return all(args)
    kind = getattr(record_of(value.function), "kind", None)
    if role(value) == "product" or kind == "bilinear":
        return any(args)
    linear = kind == "linear" or role(value) in ("quotient", "negation") or reads(value) == "part"
    return linear and bool(args) and args[0] and not any(args[1:])
