# SPDX-License-Identifier: Apache-2.0
"""The backward sweep of reverse mode: visits the statements in reverse and adds their contributions to adjoints.

`adjoint` maps a value to the operand that holds its adjoint so far.  An adjoint with fewer axes than its value, or with
unit axes where the value has none, is constant along them ("compact"); it is expanded only if every entry is needed.
The earlier adjoint of a value comes last in a sum; contributions of one statement are summed first.
"""
import operator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.alias import aliased
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    TEMPORARY,
    USER,
    Apply,
    Const,
    For,
    Function,
    If,
    Let,
    Pack,
    Var,
    While,
    astray,
    operands,
    placed,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence, Stack
from gradscribe.ast_transform.core.operations import (
    add_at,
    as_array,
    as_list,
    astype,
    no_elements,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    unpacked,
)
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vjp.containers import (
    add_to_container,
    appended,
    field_adjoint,
    item_of_container,
    materialised,
    taken_off,
    unpack_pack,
    unpack_statement,
)
from gradscribe.ast_transform.passes.vjp.control import reverse_branch, reverse_loop
from gradscribe.ast_transform.passes.vjp.custom import own_rule
from gradscribe.ast_transform.passes.vjp.expansion import (
    adjoint_hint,
    expanded,
    full_rank,
    in_its_dtype,
    one_adjoint,
    shape_of_listed,
    typed,
    unbroadcast_adjoint,
    zero_adjoint,
)
from gradscribe.ast_transform.passes.vjp.invertible import may_repeat, names_rows
from gradscribe.ast_transform.passes.vjp.overwritten import unread
from gradscribe.ast_transform.reader.gradient_edits import Edit, edited
from gradscribe.ast_transform.reader.methods import array_of
from gradscribe.ast_transform.reader.rule_inlining import derivative_of, read_derivative
from gradscribe.ast_transform.reader.values import Pullback, Struct
from gradscribe.ast_transform.reader.views import axes_undone, is_turned
from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast


class Sweep:
    """The state of the backward sweep, the first argument of most functions in this folder.

    The body of a loop has its own, nested sweep.
    """

    def __init__(self, reader, active, made, label, outer=None, engine=None):
        self.reader, self.build, self.engine, self.label = reader, reader.build, engine, label
        self.active = active            # the values with a derivative
        self.made_by = made             # value of the forward pass -> the operation that makes it
        self.adjoint = {}               # value -> the operand that holds its adjoint so far
        self.groups = {}                # value -> the contributions of the current statement, before they are summed
        self.stated = None, ""          # the user's statement that is being swept, and the variable that it sets
        self.outer, self.loop_step = outer, None        # the sweep around this one, the loop whose body this one is for
        self.inside = None              # the values that the loop's body makes; None outside of loops
        self.accumulated = {}           # value from outside the loop -> the sum that the loop carries for it
        self.mirror = {} if outer is None else outer.mirror     # identity of a forward block -> its backward block
        self.masks = {} if outer is None else outer.masks       # adjoint -> Mask, if it is a value or 0 by a test

    # adjoints

    def current(self, var):
        """The adjoint of a value so far; for a value from outside the loop, the sum that the loop carries."""
        held = self.adjoint.get(var)
        if held is None and self.is_outside(var):
            held = self.adjoint[var] = self.accumulator(var)
        return held

    def note(self, var):
        """Notes a new value of the forward pass as made inside this loop and the loops around it."""
        sweep = self
        while sweep is not None:
            if sweep.inside is not None:
                sweep.inside.add(var)
            sweep = sweep.outer

    def is_outside(self, var):
        return self.inside is not None and var not in self.inside

    def accumulator(self, var):
        if var in self.accumulated:
            return self.accumulated[var]
        if isinstance(var.fact, Stack):
            inner = Var(f"d{var.hint}", var.fact, ADJOINT)
        else:
            inner = self.adjoint_var(var, self.whole_fact(var))
        self.accumulated[var] = inner
        return inner

    @staticmethod
    def whole_fact(var):
        dtype = float if var.fact.weak and var.fact.kind != "c" else var.fact.dtype
        return Array(dtype, var.fact.dims)

    def adjoint_var(self, var, fact):
        return Var(adjoint_hint(var), fact, ADJOINT if var.kind != TEMPORARY else TEMPORARY)

    def add(self, var, value) -> None:
        """Adds a contribution to the adjoint of a value."""
        if var not in self.active:
            return
        if isinstance(var.fact, Sequence):
            add_to_container(self, var, value)
            return
        if isinstance(var.fact, Stack):
            self.adjoint[var] = value
            return
        value = self.fitted(value, var)
        origin = self.build.origin
        held = self.current(var)
        group = self.groups.get(var)
        if group is not None and group[0] is not None and origin is not None and group[0].same_statement(origin) and \
                group[3] is self.build.block and held is group[4]:
            terms, base = [value, *group[1]], group[2]
        else:
            terms, base = [value], held
        total, *others = [*terms, *([] if base is None else [base])]
        shared = not others and self.is_adjoint(total)
        for term in others:
            total = self.build.add(total, term)
        if isinstance(total, Var) and total.kind == TEMPORARY and total not in self.made_by and not shared:
            total.hint = adjoint_hint(var)
            if var.kind != TEMPORARY and self.build.made.get(total) is not None:
                total.kind = ADJOINT
        self.adjoint[var] = total
        self.groups[var] = (origin, terms, base, self.build.block, total)

    def is_adjoint(self, value):
        return any(value is a for a in self.adjoint.values())

    def fitted(self, value, var):
        """A contribution in the dtype and rank of its value; for a complex value it may be real."""
        value = self.floating(value)
        fact, want = fact_of(value), var.fact
        if fact.kind == "c" and want.kind != "c":
            value = self.part(rule_of(np.real), "primal", {"x": value})
            fact = fact_of(value)
        if (
            not fact.weak
            and not want.weak
            and fact.kind in "fc"
            and fact.dtype != want.dtype
            and want.kind in "fc"
            and not (fact.kind == "f" and want.kind == "c")
        ):
            value = self.converted(value, want.dtype)
        if fact.rank > want.rank:
            extra = fact.rank - want.rank
            index = (0,) * extra
            value = self.build.item(value, Const(index if extra > 1 else 0), "t")
        return value

    def floating(self, value):
        """A contribution as floating point: integers and bools would overflow, and truncate what is written to them."""
        return self.build.multiply(Const(1.0), value) if is_whole_number(value) else value

    def converted(self, value, dtype):
        if isinstance(value, Const):
            return value
        return self.build.cast(value, np.dtype(dtype))

    def in_kind(self, value, want):
        """An adjoint in the dtype that a callee's backward half takes."""
        fact = fact_of(value)
        if not isinstance(fact, Array) or fact.kind == want.kind and (fact.weak or fact.dtype == want.dtype):
            return value
        if isinstance(value, Const) and want.dtype == np.complex128 and not self.engine.analyses.narrow:
            return Const(complex(value.value))
        return typed(value, want, self.engine.analyses.narrow) if isinstance(value, Const) else self.build.cast(
            value, np.dtype(want.dtype))

    def in_python(self, value, want):
        """The adjoint of a Python number, as a Python number."""
        fact = fact_of(value)
        if want.weak and not want.dims and not fact.weak and fact.kind in "fc" and fact.kind == want.kind and (
                fact.dtype not in (np.float64, np.complex128) or self.engine.analyses.narrow):
            return self.build.let("t", Apply(want.dtype, (value,)), Array(want.dtype))
        return value

    # statements

    def block(self, body):
        for step in reversed(list(body)):
            with self.build.made_for(step, self.build.origin if step.origin is None else step.origin.made_by(1)):
                if isinstance(step, Let):
                    self.statement(step)
                elif isinstance(step, If):
                    reverse_branch(self, step)
                elif isinstance(step, (For, While)):
                    reverse_loop(self, step)

    def statement(self, step):
        value = step.value
        dys = [self.adjoint.pop(t, None) for t in step.targets]
        edit = value.function if isinstance(value, Apply) and isinstance(value.function, Edit) else None
        if all(d is None for d in dys) and not (edit and value.args[0] in self.active):
            return None
        if edit:
            dy = expanded(self, zero_adjoint(self, value.args[0]) if dys[0] is None else dys[0], step.targets[0])
            made = edited(self.reader, edit, value.args, dy)
            return self.add(value.args[0], unbroadcast_adjoint(self, made, fact_of(made).dims, value.args[0], ()))
        if isinstance(value, Var):
            return self.add(value, dys[0])
        if isinstance(value, Pack):
            return unpack_pack(self, value, dys[0])
        if not isinstance(value, Apply):
            return None
        if isinstance(value.function, Pullback):
            return own_rule(self, step, dys)
        special = (
            _SPECIAL.get(value.function)
            if not isinstance(value.function, Function) and _hashable(value.function)
            else None
        )
        if special is not None:
            return special(self, step, dys)
        if isinstance(value.function, Function):
            return self.user_call(step, dys)
        return self.by_rule(step, dys)

    def by_rule(self, step, dys, several=False):
        """Adds the contributions that a rule gives.  several: the function returns a tuple, even if of one result."""
        value, several = step.value, several or len(step.targets) > 1
        rule = rule_of(value.function)
        if rule is None:
            raise RuleError(
                f"{spelled(value.function)} has no derivative rule", step.origin, "To add a rule: docs/rules.md"
            )
        if rule.kind == "constant":
            self.refuse_constant(rule, value, step)
            return
        bound, mask = rule.signature.bind(*value.args, **dict(value.kwargs)).arguments, None
        y = step.targets[0] if not several and not isinstance(step.targets[0].fact, Sequence) else \
            Struct("tuple", list(step.targets))
        if several:
            dy = Struct("tuple", [one_adjoint(self, rule, d, t) for d, t in zip(dys, step.targets)])
        else:
            dy, target = dys[0], step.targets[0]
            mask = self.masks.get(dy) if isinstance(dy, Var) else None
            if mask is not None and (rule.kind == "elementwise" or not mask.test.fact.dims):
                dy = mask.value         # the mask is applied last, since 0 times an infinite derivative is nan
            else:
                mask = None
            if rule.options.get("expand") or rule.kind in ("general", "bilinear") and \
                    not (rule.options.get("elementwise") or rule.options.get("full_rank")):
                dy = expanded(self, dy, target)
            elif rule.options.get("full_rank"):
                if fact_of(dy).rank or rule.options["full_rank"] is True:
                    dy = full_rank(self, dy, target.fact)
                elif rule.options["full_rank"] == "moves":      # a number, wherever it is moved to
                    (operand,) = {o for o in operands_in(bound) if o in self.active}
                    return self.add(operand, dy)
            if rule.kind in ("general", "bilinear"):
                dy = in_floats(dy)
        found = [f for f in self.arguments(rule, bound, step) if isinstance(f[2], Var) and f[2] in self.active]
        for operand in dict.fromkeys(f[2] for f in found):
            total = None
            for argument, position, other in found:
                if other is operand:
                    kind = "partial" if rule.kind == "elementwise" else "vjp"
                    with derivative_of(self.build, rule, f"{kind}_{argument}"):
                        term = self.contribution(rule, argument, position, bound, y, dy, step, operand, mask)
                    if term is not None:
                        total = term if total is None else self.build.add(total, term)
            if total is not None:
                self.add(operand, total)

    def refuse_constant(self, rule, value, step):
        if rule.options.get("real_only") and any(
            isinstance(a, Var) and a in self.active and a.fact.kind == "c" for a in value.args
        ):
            raise RuleError(f"{spelled(value.function)} of a complex number has no derivative rule", step.origin,
                            "Write z / np.abs(z), or take np.real first.")

    def arguments(self, rule, bound, step):
        """The operands with a derivative; the variable that the statement sets is last: its adjoint keeps the name."""
        target = step.targets[0]
        if target.kind == USER or self.stated[0] is None or not self.stated[0].same_statement(step.origin):
            self.stated = step.origin, target.hint
        if astray(bound, self.active.__contains__):
            raise RuleError(f"{spelled(rule.function)}: a list inside a list is not differentiated here", step.origin,
                            NESTED)
        found = list(placed(bound))
        own = {id(f[2]) for f in found if isinstance(f[2], Var) and f[2].kind == USER and f[2].hint == self.stated[1]}
        return sorted(found, key=lambda f: id(f[2]) in own)

    def chosen(self, value, mask):
        """A contribution where the test of a mask holds, 0 elsewhere."""
        both = (value, Const(0)) if mask.holds else (Const(0), value)
        made = self.build.apply(np.where, mask.test, *both, hint="t")
        self.masks[made] = Mask(mask.test, mask.holds, value)
        return made

    def contribution(self, rule, argument, position, bound, y, dy, step, operand, mask=None):
        if argument not in rule.active:
            if rule.options.get("inactive") or argument in ("x2", "exponent"):
                return None
            return self.inactive(rule, argument, step)
        given = {"y": y, "dy": dy, **bound}
        if position is not None:
            given["k"] = Const(position)
        whole = step.targets[0].fact.dims if isinstance(step.targets[0].fact, Array) else ()
        shaped = [*operands_in(bound), *(step.targets)]
        if rule.kind == "elementwise":
            partial = self.part(rule, f"partial_{argument}", given)
            value = self.build.multiply(in_floats(dy) if is_whole_number(partial) else dy, partial)
            if mask is not None:
                value = self.chosen(value, mask)
            return unbroadcast_adjoint(self, value, whole, operand, shaped)
        name = f"vjp_{argument}"
        if name not in rule.parts:
            return self.inactive(rule, argument, step)
        value = self.part(rule, name, given)
        if is_whole_number(value):
            value = self.part(rule, name, {**given, "dy": in_floats(dy)})
        if isinstance(value, Struct):
            value = array_of(self.reader, value, None)
        if mask is not None:
            value = self.chosen(value, mask)
        elif rule.options.get("masks") and isinstance(value, Var):
            test, holds = rule.options["masks"][argument]
            if isinstance(bound[test], Var):
                self.masks[value] = Mask(bound[test], holds, dy)
        if rule.options.get("unbroadcast") in (True, "own", argument):
            own = rule.kind == "bilinear" or rule.options["unbroadcast"] in ("own", argument)
            return unbroadcast_adjoint(self, value, fact_of(value).dims if own else whole, operand, shaped)
        return value

    def inactive(self, rule, argument, step):
        if rule.kind == "elementwise" or rule.function in SHAPE_ONLY:
            return None
        raise RuleError(f"{spelled(rule.function)} has no derivative with respect to {argument}", step.origin,
                        f"{self.label} asks for it. Take gs.stop_gradient of it, or add it: docs/rules.md")

    def part(self, rule, name, given):
        """The operand that a part of a rule makes."""
        if name not in rule.parts:
            return self.build.apply(rule.function, *[given[a] for a in rule.arguments if a in given])
        return read_derivative(self.reader, rule, name, given)

    # reads and writes of parts

    def item(self, step, dys):
        x, index = step.value.args
        dy = dys[0]
        if isinstance(x, Apply):            # the only result that is used of a function that returns several
            return self.by_rule(Let(step.targets, x, step.origin), dys, True)
        if isinstance(x.fact, Sequence):
            return item_of_container(self, x, index, dy)
        if x not in self.active:
            return None
        undone = axes_undone(index, x.fact.dims) if type(x.fact) is Array and x.fact.dims and x.fact.kind in "fc" and \
            type(step.targets[0].fact) is Array else None
        if undone is not None and (not undone or not fact_of(dy).rank):
            return self.add(x, dy)
        if undone is not None:
            flip, dy = self.build.sign_of(dy)
            dy = full_rank(self, dy, step.targets[0].fact)
            dy = self.build.item(dy, Const(undone if len(undone) > 1 else undone[0]), adjoint_hint(x))
            return self.add(x, self.build.negative(dy) if flip else dy)
        if self.may_repeat(index) or fact_of(dy).rank or isinstance(x.fact, Listed) or not x.fact.dims:
            dy = expanded(self, dy, step.targets[0])
        if not x.fact.dims:             # x[None]: a number cannot be written into
            return self.add(x, self.build.apply(np.sum, dy, hint=adjoint_hint(x)))
        held = self.current(x)
        if held is None and is_turned(index) and x.fact.kind in "fc":
            return self.add(x, self.build.item(expanded(self, dy, step.targets[0]), index, adjoint_hint(x)))
        whole = Array(np.dtype(self.whole_fact(x).dtype), x.fact.dims)
        held = zero_adjoint(self, x) if held is None else in_its_dtype(self, expanded(self, held, x), whole)
        function = add_at if self.may_repeat(index) else put_add
        if isinstance(step.targets[0].fact, Listed) and x.fact.rank > 1 and isinstance(dy, Var) and \
                shape_of_listed(self, step.targets[0]) is None:       # without elements, it has no shape of one
            part = self.build.item(held, index)
            lengths = tuple(self.build.length(part, k) for k in range(x.fact.rank))
            dy = self.build.apply(np.reshape, dy, Pack("tuple", lengths), fact=fact_of(dy))
        self.adjoint[x] = self.build.apply(function, held, index, dy, hint=adjoint_hint(x),
                                           kind=ADJOINT if x.kind != TEMPORARY else TEMPORARY, fact=whole)
        self.groups.pop(x, None)
        return None

    def written(self, step, dys):
        """Reverses x[i] = v: the adjoint of v is the entry x[i] of the adjoint, which is zero for the old x."""
        x, index, v = step.value.args
        dy, slot = expanded(self, dys[0], step.targets[0]), None
        active = isinstance(x, Var) and x in self.active
        cleared = active and step.value.function is put and not unread(x, index, self)
        if isinstance(v, Var) and v in self.active:
            slot = self.build.item(dy, index, adjoint_hint(v))
            if step.value.function is put and self.may_repeat(index):
                rows = isinstance(index, Var) and index.fact.rank == 1 and index.fact.kind in "iu"
                slot = self.part(rule_of(put), "last_rows_written" if rows else "last_written",
                                 {"slot": slot, "x": dy, "index": index})
            slot = unbroadcast_adjoint(self, slot, slot.fact.dims, v, (slot,))
            if cleared and slot.fact.dims and aliased(self.build.made[slot]):
                slot = self.build.apply(np.copy, slot, hint=adjoint_hint(v))       # smaller than the array it views
        if active:
            rest = self.build.apply(put, dy, index, Const(0.0), hint=adjoint_hint(x), fact=fact_of(dy),
                                    kind=ADJOINT) if cleared else dy
            self.add(x, rest)
        if slot is not None:
            self.add(v, slot)

    def may_repeat(self, index):
        """Whether an index may reach an entry more than once."""
        return may_repeat(index) and not names_rows(index, self.made_by)

    def pushed(self, step, dys):
        stack, v = step.value.args
        if isinstance(step.targets[0].fact, Listed):
            return appended(self, step, dys[0])
        take = pop if step.value.function is push else pop_front
        hints = [dys[0].hint, adjoint_hint(v) if isinstance(v, Var) else "t"]
        targets = self.build.several(hints, Apply(take, (dys[0],)),
                                     [dys[0].fact, dys[0].fact.element], ADJOINT)
        if isinstance(stack, Var):
            self.adjoint[stack] = targets[0]
        if isinstance(v, Var):
            if isinstance(v.fact, Sequence):
                add_to_container(self, v, targets[1])
            else:
                self.add(v, targets[1])
        elif isinstance(v, Pack):
            unpack_pack(self, v, targets[1])


    def popped(self, step, dys):
        (stack,) = step.value.args
        rest, value = step.targets
        if stack not in self.active:
            return
        held = dys[0]
        if isinstance(stack.fact, Listed):
            return taken_off(self, stack, rest, value, dys)
        if held is None:
            held = self.build.let(f"d{stack.hint}", Apply(no_elements, ()), stack.fact, ADJOINT)
        back = push if step.value.function is pop else push_front
        dy = (
            expanded(self, zero_adjoint(self, value) if dys[1] is None else dys[1], value)
            if isinstance(value.fact, Array)
            else materialised(self, dys[1], value.fact)
        )
        self.adjoint[stack] = self.build.let(f"d{stack.hint}", Apply(back, (held, dy)), stack.fact, ADJOINT)

    def converts(self, step, dys):
        x = step.value.args[0]
        if isinstance(x, Var) and x in self.active:
            dy = dys[0]
            if step.targets[0].fact.dtype != x.fact.dtype and not x.fact.weak and isinstance(dy, Var):
                dy = self.converted(dy, x.fact.dtype) if x.fact.kind == "f" and fact_of(dy).kind == "f" else dy
            shape = shape_of_listed(self, x) if x.fact.rank > 1 and x in self.engine.analyses.read_twice else None
            if shape is not None and isinstance(dy, Var) and fact_of(dy).rank == x.fact.rank:   # no rows, no columns
                dy = self.build.apply(np.reshape, dy, shape, fact=fact_of(dy))
            self.add(x, dy)

    # calls of user functions

    def user_call(self, step, dys):
        function, args = step.value.function, step.value.args
        wrt = tuple(k for k, a in enumerate(args) if isinstance(a, Var) and a in self.active)
        if not wrt:
            return
        backward, needed = self.engine.call_vjp(function, wrt)
        given = []
        for dy, target, param in zip(dys, step.targets, backward.params):
            if dy is None:
                dy = zero_adjoint(self, target)
            if not isinstance(dy, Const) or target.fact.dims:
                dy = expanded(self, dy, target, adjoint_hint(target))
            given.append(self.in_kind(dy, param.value.fact))
        given += [step.targets[0] if n == -1 else args[n] for n in needed]
        facts = [self.whole_fact(args[k]) for k in wrt]
        hints = [adjoint_hint(args[k]) for k in wrt]
        value = Apply(backward, tuple(given))
        kinds = [ADJOINT if args[k].kind != TEMPORARY else TEMPORARY for k in wrt]
        parts = self.build.several(hints, value, facts, ADJOINT)
        for part, kind in zip(parts, kinds):
            part.kind = kind
            self.build.made.pop(part, None)
        together = {}
        for k, part in zip(wrt, parts):
            together[args[k]] = part if args[k] not in together else self.build.add(together[args[k]], part)
        for operand, part in together.items():
            self.add(operand, part)


class Mask(NamedTuple):
    """An adjoint that is `value` where `test` equals `holds`, and 0 elsewhere."""
    test: Var
    holds: bool
    value: Any


def is_whole_number(value):
    """Whether a value is an integer or bool, and no literal."""
    fact = fact_of(value)
    return isinstance(fact, Array) and fact.kind in "biu" and not _literal(value)


def in_floats(value):
    return Const(float(value.value)) if _literal(value) and type(value.value) is int else value


def _literal(value):
    return isinstance(value, Const) and not isinstance(value.value, np.ndarray)


NESTED = "Make arrays of the inner lists: np.array([...])."
SHAPE_ONLY = {np.full_like, broadcast_like, unbroadcast}      # of their other argument only the shape matters


def operands_in(bound):
    for value in bound.values():
        if isinstance(value, tuple):
            for v in value:
                yield from operands(v)
        else:
            yield from operands(value)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


_SPECIAL = {
    operator.getitem: Sweep.item,
    getattr: field_adjoint,
    unpacked: unpack_statement,
    put: Sweep.written,
    put_add: Sweep.written,
    add_at: Sweep.written,
    push: Sweep.pushed,
    push_front: Sweep.pushed,
    pop: Sweep.popped,
    pop_front: Sweep.popped,
    astype: Sweep.converts,
    as_array: Sweep.converts,
    as_list: Sweep.converts,
    float: Sweep.converts,
}
