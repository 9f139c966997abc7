# SPDX-License-Identifier: Apache-2.0
"""Forward mode: each statement is followed by its tangent.

A tangent may be compact: it is constant along the axes that it lacks.  It is broadcast where it is needed whole.

>>> from gradscribe.ast_transform.examples import show, tangent
>>> print(show(tangent("def f(x): return np.sin(x) * x", 2.0)))
jvp_f(x, x_dot):
    sin_x = np.sin(x)
    cos_x = np.cos(x)
    sin_x_dot = x_dot * cos_x
    t = sin_x * x
    t_1 = sin_x_dot * x
    t_2 = x_dot * sin_x
    prod_x_dot = t_1 + t_2
    return (t, prod_x_dot)
"""
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.ast_transform.analysis.dtypes import of_several_dtypes
from gradscribe.ast_transform.core.form import (
    TANGENT,
    TEMPORARY,
    UNDEFINED,
    USER,
    Apply,
    Carry,
    Const,
    For,
    Function,
    If,
    Join,
    Let,
    Pack,
    Param,
    Var,
    While,
    astray,
    copied,
    operands,
    placed,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Sequence
from gradscribe.ast_transform.core.operations import (
    add_at,
    as_array,
    as_list,
    astype,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    unpacked,
)
from gradscribe.ast_transform.passes.activity import active_values, begun_with, passes_on, rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.callees import (
    are_its_own,
    called,
    in_place_of_calls,
    inlined,
    is_call,
    stands_alone,
    without_calls,
)
from gradscribe.ast_transform.passes.check import check_results
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.reparametrise import reparametrised
from gradscribe.ast_transform.passes.simplify import drop_dead
from gradscribe.ast_transform.passes.symbolic import is_array, pair_of, without_zeros, zero_of
from gradscribe.ast_transform.passes.tangents import expanded, in_its_dtype, name_tangents, zero_tangent
from gradscribe.ast_transform.passes.vjp.expansion import length_of, typed, zero_by_shape
from gradscribe.ast_transform.passes.vjp.sweep import NESTED, SHAPE_ONLY, Sweep
from gradscribe.ast_transform.passes.vmap.own import TangentRule
from gradscribe.ast_transform.reader.calls import several
from gradscribe.ast_transform.reader.derivatives import Custom, given_to_rule, leaves_by_rule, result_operand
from gradscribe.ast_transform.reader.derivatives import _leaves as leaves_of
from gradscribe.ast_transform.reader.gradient_edits import Edit
from gradscribe.ast_transform.reader.named_axes import is_collective
from gradscribe.ast_transform.reader.rule_inlining import derivative_of, read_derivative
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import RuleError, TransformError


class Forward:
    """One application of forward mode.

    tangent: {value: its tangent}; active: values that have one; known: {(callee, positions of its active arguments):
    the tangent function, or None}; rules: what takes the place of the rules for tangents, or None (passes/errors.py);
    state: a number that these rules change from statement to statement, or None.
    """

    def __init__(self, reader, label, rules=None):
        self.reader, self.label, self.build, self.rules = reader, label, reader.build, rules
        self.tangent, self.active, self.known, self.state = {}, set(), {}, None

    def run(self, function, wrt, value=True):
        """The function that also returns the tangent of its result; `wrt`: the parameters that have tangents."""
        env = {}
        body = without_calls(copied(function.body, env), ("each",), plain=False)
        result = substituted(function.result, env)
        tangents = []
        for p in function.params:
            if p.value in wrt:
                fact = p.value.fact if isinstance(p.value.fact, Sequence) else Sweep.whole_fact(p.value)
                dot = Var(f"{p.name}_dot", fact, TANGENT)
                self.tangent[p.value] = dot
                taken = {q.name for q in [*function.params, *tangents]}
                name = f"{p.name}_dot"
                while name in taken:
                    name += "_"
                tangents.append(Param(name, dot))
        self.function, again = function, True
        while again:                    # an inlined callee may call others
            self.active, self.unset = self.active_in(body), unset_values(body)
            self.active |= begun_with(body, self.active, {v for v in self.unset if self.needs_its_place(v)})
            body, again = self.with_tangents(body)
        body = reparametrised(self.reader, body, self.active_in(body))
        self.active, self.unset = self.active_in(body), unset_values(body)
        self.active |= begun_with(body, self.active, {v for v in self.unset if self.needs_its_place(v)})
        self.build.made.update({t: s.value for s in walk(body) if isinstance(s, Let) for t in s.targets})
        self.build.block = out = []
        self.block(body)
        name_tangents(self.build, self.tangent)
        self.build.block = out
        self.build.origin = None
        self.dtype_by_path = of_several_dtypes(body)
        dot = self.as_its_value(self.of(result), result)
        check_results([dot], [result], "forward mode")
        whole = Pack("tuple", (result, dot)) if value else dot
        return Function(self.label, [*function.params, *tangents], out, whole, function.about, dict(function.notes))

    def active_in(self, body):
        """The values that have tangents."""
        return active_values(body, [*self.tangent, *(() if self.rules is None else self.rules.seeds(body))])

    def with_tangents(self, body):
        """(the body with callees inlined that have no tangent function of their own, whether there were any)."""
        def instead(step, callee):
            wrt = () if callee.custom else self.active_places(step)
            return inlined(step) if wrt and self.tangent_of(callee, wrt) is None else None
        return in_place_of_calls(body, instead)

    def active_places(self, step):
        return tuple(k for k, a in enumerate(step.value.args) if isinstance(a, Var) and a in self.active)

    def tangent_of(self, callee, wrt):
        """The function from the arguments of a callee, and tangents of some of them, to its results and their tangents.

        None if the callee is to be inlined: it has a line or two, or its results are not arrays of their own.
        """
        if (callee, wrt) not in self.known:
            self.known[callee, wrt] = None
            self.known[callee, wrt] = self.made_tangent(callee, wrt) if stands_alone(callee) else None
        return self.known[callee, wrt]

    def made_tangent(self, callee, wrt):
        """The same, computed."""
        inner = Forward(self.reader, f"jvp_{callee.label}")
        inner.known = self.known
        outer, origin = self.build.block, self.build.origin
        try:
            made = inner.run(callee, [callee.params[k].value for k in wrt])
        except TransformError:
            return None                 # inlined, it raises an error that names the call
        finally:
            self.build.block, self.build.origin = outer, origin
        results = [v for part in made.result.items for v in (part.items if isinstance(part, Pack) else (part,))]
        if not are_its_own(results, made.params):
            return None
        body, result = drop_dead(made.body, Pack("tuple", tuple(results))), Pack("tuple", tuple(results))
        return Function(made.label, made.params, body, result, callee.about,
                        {"fresh": True, "owns": True, "nests": False})

    def user_call(self, step):
        """y, y_dot = jvp_f(x, x_dot)"""
        wrt = self.active_places(step)
        made = self.tangent_of(step.value.function, wrt)
        params = made.params[len(step.value.args):]
        dots = [self.given(self.of(step.value.args[k]), p.value.fact) for k, p in zip(wrt, params, strict=True)]
        hints = [t.hint for t in step.targets]
        facts = [*(t.fact for t in step.targets), *map(self.dot_fact, step.targets)]
        found = self.build.several([*hints, *(f"{h}_dot" for h in hints)],
                                   Apply(made, (*step.value.args, *dots)), facts)
        for t, y, dot in zip(step.targets, found, found[len(hints):]):
            y.kind = t.kind
            self.build.block.append(Let((t,), y, step.origin))
            if t.fact.differentiable:
                self.define(t, dot)

    @staticmethod
    def given(dot, fact):
        """A tangent as an argument of a callee."""
        return Const(float(dot.value)) if isinstance(dot, Const) and not fact.dims else dot

    def needs_its_place(self, var):
        """Whether zeros of the shape of a value need the value itself: the arguments do not determine its shape."""
        return type(var.fact) is Array and var.fact.differentiable and bool(var.fact.dims) and any(
            d.normal().symbol is not None and length_of(self.function, d) is None for d in var.fact.dims)

    def of(self, node):
        """The tangent of an operand, with all its axes."""
        if isinstance(node, Pack):
            return Pack(node.kind, tuple(self.of(i) for i in node.items), node.keys, node.cls)
        if isinstance(node, Var):
            if isinstance(node.fact, Sequence):
                return self.tangent.get(node) or zero_tangent(self.build, node)
            if node.fact.differentiable:
                return in_its_dtype(self.build, self.whole_tangent(node), self.dot_fact(node))
        if isinstance(node, Const) and isinstance(fact_of(node), Array):
            return typed(Const(0.0), fact_of(node)) if fact_of(node).differentiable else Const(0.0)
        return Const(0.0) if isinstance(node, Var) else Const(None)

    def as_its_value(self, dot, value):
        """A tangent of the result, in the dtype that the result has on the path that is taken."""
        if isinstance(value, Pack) and isinstance(dot, Pack):
            return Pack(dot.kind, tuple(map(self.as_its_value, dot.items, value.items)), dot.keys, dot.cls)
        if value not in self.dtype_by_path or not isinstance(dot, Var):
            return dot
        fact = self.dot_fact(value)
        whole = self.build.apply(np.full_like, value, dot, hint=dot.hint, fact=fact, kind=TANGENT)
        return whole if fact.dims else self.build.apply(operator.getitem, whole, Pack("tuple", ()), hint=dot.hint,
                                                        fact=fact, kind=TANGENT)

    def define(self, var, value):
        """Sets the tangent of a value, cast to its dtype and named after it."""
        want = var.fact
        if isinstance(want, Array):
            value = Sweep.floating(self, value)
            fact = fact_of(value)
            if fact.kind == "c" and want.kind == "f":
                value = self.part(rule_of(np.real), "primal", {"x": value})
                fact = fact_of(value)
            if not fact.weak and not want.weak and fact.kind == "f" and want.kind == "f" and fact.dtype != want.dtype:
                value = Sweep.converted(self, value, want.dtype)
        if isinstance(value, Var) and value in self.build.made and value.kind == TEMPORARY:
            value.hint = f"{var.hint}_dot"
            value.kind = TANGENT if var.kind != TEMPORARY else TEMPORARY
        self.tangent[var] = value

    def let(self, var, value):
        self.tangent[var] = self.build.let(f"{var.hint}_dot", value, var.fact, TANGENT)

    def let_several(self, step, held):
        """Sets the tangents of the results of a call to those of the same call on a tangent."""
        parts = self.build.several([f"{t.hint}_dot" for t in step.targets], Apply(step.value.function, (held,)),
                                   [t.fact for t in step.targets], TANGENT)
        self.tangent.update(zip(step.targets, parts))

    def block(self, body):
        for step in body:
            with self.build.made_for(step, None if step.origin is None else step.origin.made_by(2)):
                getattr(self, "step_" + type(step).__name__)(step)

    def step_Effect(self, step):
        self.build.block.append(step)

    def step_Let(self, step):
        value = step.value
        self.build.block.append(step)
        if self.rules is not None and self.rules.take(step):
            return
        callee = called(step)
        if callee and callee.custom and any(v in self.active for v in operands(value)):
            self.build.block.pop()
            self.own_rule(step)
            return
        if not passes_on(value, self.active) or not any(t in self.active for t in step.targets):
            return
        if is_call(step):
            self.build.block.pop()
            self.user_call(step)
        elif not self.moved(step):
            self.by_rule(step)

    def moved(self, step):
        """Moves the tangents of operands where an operation moves these, as indexing and lists do; whether it does."""
        value = step.value
        if isinstance(value, Var):
            self.tangent[step.targets[0]] = self.tangent.get(value, Const(0.0))
        elif isinstance(value, Pack):
            self.tangent[step.targets[0]] = self.of(value)
        elif isinstance(value.function, Edit):
            self.tangent[step.targets[0]] = self.tangent.get(value.args[0], Const(0.0))
        elif value.function in (push, push_front):
            stack, v = value.args
            held = self.tangent.get(stack) or zero_tangent(self.build, stack)
            self.let(step.targets[0], Apply(value.function, (held, self.of(v))))
        elif value.function in (as_array, as_list):
            self.let(step.targets[0], Apply(value.function, (self.whole_tangent(value.args[0]),)))
        elif value.function in (pop, pop_front):
            self.let_several(step, self.tangent[value.args[0]])
        elif value.function is unpacked:
            held = self.tangent.get(value.args[0])
            if isinstance(held, Pack):
                self.tangent.update(zip(step.targets, held.items))
            elif held is not None:
                self.let_several(step, held)
        elif operation_of(step) is not value:
            return False
        elif value.function in (operator.getitem, getattr):
            self.item(step)
        else:
            return False
        return True

    def own_rule(self, step):
        """The tangent of a function with a custom rule."""
        callee = step.value.function
        rule = callee.custom.rule
        if rule.mode == "vmap":
            self.batch_rule(step, callee)
            return

        def moving(value):
            dot = self.tangent.get(value) if isinstance(value, Var) else None
            return None if value not in self.active or is_zero(dot) else self.of(value)

        ys, dots = read_own_rule(self, step, moving)
        for t, y, dot in zip(step.targets, ys, dots):
            self.build.block.append(Let((t,), y, step.origin))
            if t.fact.differentiable:
                self.define(t, dot)

    def batch_rule(self, step, callee):
        """The tangent of a function with a custom rule for batches: a function that has such a rule, too."""
        given_to_rule(step, self.active)
        wanted = {p.value: a for p, a in zip(callee.params, step.value.args) if a in self.active}
        outer, origin = self.build.block, self.build.origin
        plain = Function(callee.label, callee.params, callee.body, callee.result)
        inner = Forward(self.reader, f"jvp_{callee.label}")
        made = inner.run(plain, list(wanted))
        self.build.block, self.build.origin = outer, origin

        def dot_of(value):
            if isinstance(value, Struct):
                return Struct(value.kind, [dot_of(i) for i in value.items], value.keys, value.cls)
            none = isinstance(value, Const) and value.value is None
            return inner.tangent[value] if value in wanted else value if none else Const(0.0)
        leaves = [leaf for part in made.result.items for leaf in leaves_of(part)]
        given = [*step.value.args, *map(self.of, wanted.values())]
        own = callee.custom
        tree = [Struct("tuple", own.tree), Struct("tuple", list(map(dot_of, own.tree)))]
        new = Function(made.label, made.params, made.body, Pack("tuple", tuple(leaves)), callee.about, {}, Custom(
            TangentRule(own.rule), tree, own.fixed, Pack("tuple", (own.like, own.like))))
        half = len(step.targets)
        hints = [t.hint for t in step.targets]
        facts = [*(t.fact for t in step.targets),
                 *(self.dot_fact(t) if t.fact.differentiable else t.fact for t in step.targets)]
        found = self.build.several([*hints, *(f"{h}_dot" for h in hints)], Apply(new, tuple(given)), facts)
        for t, y, dot in zip(step.targets, found, found[half:]):
            self.build.block.append(Let((t,), y, step.origin))
            if t.fact.differentiable:
                self.define(t, dot)

    def item(self, step):
        """The tangent of x[index]."""
        x, index = step.value.args
        target = step.targets[0]
        held = self.tangent.get(x)
        if held is None:
            return
        if isinstance(x.fact, Sequence):
            if isinstance(held, Pack):
                keys = list(x.fact.keys) if x.fact.kind in ("dict", "record") else None
                found = held.items[keys.index(index.value) if keys else index.value]
                if isinstance(found, tuple):
                    found = Pack(held.kind, found)
                self.tangent[target] = found
            else:
                self.let(target, Apply(step.value.function, (held, index)))
            return
        held = expanded(self.build, held, x)
        self.define(target, self.build.item(held, index, f"{target.hint}_dot"))

    def checked(self, step):
        """(rule of an operation, its operands by name, its result); RuleError if it has no tangent for these."""
        value = operation_of(step)
        several = value is not step.value
        rule = rule_of(value.function)
        if rule is None:
            raise RuleError(f"{spelled(value.function)} has no derivative rule", step.origin,
                            "To add a rule: docs/rules.md")
        bound = dict(rule.signature.bind(*value.args, **dict(value.kwargs)).arguments)
        if rule.options.get("real_only") and any(
            isinstance(a, Var) and a in self.active and a.fact.kind == "c" for a in value.args
        ):
            raise RuleError(f"{spelled(value.function)} of a complex number has no derivative rule", step.origin,
                            "Write z / np.abs(z), or take np.real first.")
        if len(step.targets) == 1 and not isinstance(step.targets[0].fact, Sequence) and not several:
            y = step.targets[0]
        else:
            y = Struct("tuple", list(step.targets))
        if astray(bound, self.active.__contains__):
            raise RuleError(f"{spelled(rule.function)}: a list inside a list is not differentiated here", step.origin,
                            NESTED)
        return rule, bound, y

    def by_rule(self, step):
        """The tangent of an operation by its rule: the sum of a term for each active argument."""
        rule, bound, y = self.checked(step)
        step = Let(step.targets, operation_of(step), step.origin)
        active = list(dict.fromkeys(a for a, _, v in placed(bound) if isinstance(v, Var) and v in self.active and
                                    v in self.tangent))
        terms = []
        if rule.kind == "linear" and active:
            terms.append(self.same_call(step, bound, set(active), rule))
        else:
            for a in active:
                terms += self.term(rule, a, bound, y, step)
        terms = [t for t in terms if t is not None]
        if not terms:
            return
        if isinstance(terms[0], Struct) or len(step.targets) > 1:
            self.several(step, terms)
            return
        total = terms[0]
        for t in terms[1:]:
            total = self.build.add(total, t)
        self.define(step.targets[0], total)

    def several(self, step, terms):
        """Sets the tangents of several results to the sums of the terms' parts."""
        rows = [t.items if isinstance(t, Struct) else [t] for t in terms]
        for k, target in enumerate(step.targets):
            if not target.fact.differentiable:
                continue
            total = rows[0][k]
            for row in rows[1:]:
                total = self.build.add(total, row[k])
            self.define(target, total)

    def term(self, rule, argument, bound, y, step):
        """The terms of the tangent that one argument contributes."""
        operand = bound[argument]
        if argument not in rule.active:
            if rule.kind == "elementwise":
                return []
            raise RuleError(f"{spelled(rule.function)} has no derivative with respect to {argument}", step.origin,
                            f"{self.label} asks for it. Take gs.stop_gradient of it, or add it: docs/rules.md")
        if rule.kind == "elementwise":
            if not isinstance(operand, Var):
                return []
            partial = self.part(rule, f"partial_{argument}", {"y": y, **bound})
            return [self.build.multiply(self.tangent[operand], partial)]
        if rule.kind == "bilinear":
            if isinstance(operand, Var):
                return [self.call_with(step, rule, bound, {argument: self.whole_tangent(operand)})]
            out = []
            items = operand.items if isinstance(operand, Pack) else operand
            for k, v in enumerate(items):
                if isinstance(v, Var) and v in self.active and v in self.tangent:
                    changed = [*items[:k], self.whole_tangent(v), *items[k + 1:]]
                    out.append(self.call_with(step, rule, bound, {argument: tuple(changed)}))
            return out
        given = {"y": y, f"{argument}_dot": self.whole_tangent(operand), **bound}
        return [self.part(rule, f"jvp_{argument}", given)]

    def same_call(self, step, bound, active, rule):
        """The tangent of a linear operation: the same operation on the tangents of its active operands."""
        changed = {}
        for a in rule.active:
            if a not in bound:
                continue
            node = bound[a]
            if isinstance(node, (Pack, tuple)):
                items = node.items if isinstance(node, Pack) else node
                new = tuple(self.whole_tangent(v) for v in items)
                changed[a] = Pack(node.kind, new) if isinstance(node, Pack) else new
            else:
                changed[a] = self.whole_tangent(node)
        stray = active - set(rule.active)
        if not active & set(rule.active):
            return None
        if stray and rule.function not in SHAPE_ONLY:
            raise RuleError(f"{spelled(rule.function)} has no derivative with respect to {sorted(stray)[0]}",
                            step.origin)
        return self.call_with(step, rule, bound, changed)

    def whole_tangent(self, node):
        if isinstance(node, Var):
            return expanded(self.build, self.tangent.get(node, Const(0.0)), node)
        if isinstance(node, Const) and isinstance(node.value, np.ndarray):
            return Const(np.zeros_like(node.value))
        return Const(0.0)

    def call_with(self, step, rule, bound, changed):
        """A call with some operands replaced."""
        new = {**bound, **changed}
        args, words = [], {}
        for name, p in rule.signature.parameters.items():
            if name not in new:
                continue
            if p.kind is p.VAR_POSITIONAL:
                args += list(new[name])
            elif any(k == name for k, _ in step.value.kwargs) or p.kind is p.KEYWORD_ONLY:
                words[name] = new[name]
            else:
                args.append(new[name])
        fact = None
        function = step.value.function
        target = step.targets[0]
        if is_collective(step.value) or function in (put, put_add, add_at, float, complex) or rule.options.get("own"):
            fact = target.fact
            if function in (put, put_add, add_at):
                args[0] = in_its_dtype(self.build, args[0], self.dot_fact(target))
        elif function is astype:
            return self.build.cast(args[0], target.fact.dtype)
        elif getattr(function, "__name__", "") in ("unbroadcast", "broadcast_like"):
            fact = target.fact
        out = self.build.call(function, tuple(args), words, fact=fact)
        if len(step.targets) > 1 or isinstance(target.fact, Sequence) or isinstance(fact_of(out), Sequence):
            return several(self.reader, out, function, args, words)
        return out

    def part(self, rule, name, given):
        """A part of a rule, read with these operands."""
        if name in rule.parts:
            with derivative_of(self.build, rule, name):
                return read_derivative(self.reader, rule, name, given)
        if name == "primal":
            return self.build.apply(rule.function, *given.values())
        raise RuleError(f"{spelled(rule.function)} has no rule for forward mode", self.build.origin,
                        "To add it: docs/rules.md")

    # control flow

    def step_If(self, step):
        outer, arms, state, ends = self.build.block, [], self.state, []
        for arm in (step.then, step.orelse):
            self.build.block, self.state = [], state
            self.block(arm)
            arms.append(self.build.block)
            ends.append(self.state)
        branch = If(step.test, arms[0], arms[1], list(step.joins), step.origin)
        if ends[0] is not ends[1]:
            self.state = self.new_state()
            branch.joins.append(Join(self.state, *ends))
        for j in step.joins:
            if j.var not in self.active:
                continue
            sides = []
            for side, block in ((j.then, arms[0]), (j.orelse, arms[1])):
                self.build.block = block
                sides.append(self.handed(self.side(side, j.var), side, j.var))
            dot = Var(f"{j.var.hint}_dot", self.dot_fact(j.var), TANGENT if j.var.kind != TEMPORARY else TEMPORARY)
            branch.joins.append(Join(dot, *sides))
            self.tangent[j.var] = dot
        self.build.block = outer
        outer.append(branch)

    def new_state(self):
        """A variable for the state."""
        return None if self.state is None else Var("unsure", fact_of(Const(0)), USER)

    def side(self, side, var):
        """The tangent of a value that becomes `var` on one path, with all axes."""
        if isinstance(side, Var):
            value = self.tangent.get(side)
            if value is None and side in self.unset and isinstance(side.fact, Array) and side.fact.dims:
                zero = zero_by_shape(self.function, self.build, self.dot_fact(side), f"{side.hint}_dot")
                return UNDEFINED if zero is None else zero
            if value is None:
                value = zero_tangent(self.build, side)
            return expanded(self.build, value, side) if isinstance(side.fact, Array) else value
        if isinstance(side, Const) and isinstance(fact_of(side), Array):
            return Const(0.0)
        if isinstance(side, Pack):
            return self.of(side)
        return side

    def handed(self, dot, value, var):
        """A tangent in the dtype of `var`, which `value` becomes on one path; that of a Python number stays one."""
        fact = fact_of(value) if isinstance(value, (Const, Var)) and value is not UNDEFINED else None
        want = self.dot_fact(var)
        if isinstance(dot, Const) and isinstance(fact, Array) and fact.weak and not want.dims and want.kind == "f":
            return dot
        return in_its_dtype(self.build, dot, want)

    @staticmethod
    def dot_fact(var):
        return Sweep.whole_fact(var) if isinstance(var.fact, Array) and not isinstance(var.fact, Listed) else var.fact

    def loop(self, step):
        outer, carried, items = self.build.block, [], []
        for c in step.carries:
            if c.inner not in self.active:
                continue
            init = self.side(c.init, c.outer)
            dot = Var(f"{c.inner.hint}_dot", self.dot_fact(c.inner), TANGENT)
            self.tangent[c.inner] = dot
            carried.append((c, dot, self.handed(init, c.init, c.inner)))
        if isinstance(step, For):
            for v, source in step.items:
                if v in self.active and isinstance(source, Var) and source in self.tangent:
                    held = self.tangent[source]
                    held = expanded(self.build, held, source) if isinstance(source.fact, Array) else held
                    dot = Var(f"{v.hint}_dot", self.dot_fact(v), TANGENT if v.kind != TEMPORARY else TEMPORARY)
                    if not isinstance(held, Var):
                        held = self.build.let(f"{source.hint}_dot", held, source.fact, TANGENT)
                    items.append((dot, held))
                    self.tangent[v] = dot
        before, entered = self.state, self.new_state()
        self.build.block, self.state = [], entered
        self.block(step.body)
        carries = list(step.carries)
        if self.state is entered:
            self.state = before
        else:
            carries.append(Carry(entered, before, self.state, self.new_state()))
            self.state = carries[-1].outer
        for c, dot, init in carried:
            next_dot = self.side(c.next, c.inner)
            if isinstance(next_dot, Const) and isinstance(c.inner.fact, Array) and c.inner.fact.dims:
                next_dot = expanded(self.build, next_dot, c.inner)
            end = Var(dot.hint, self.dot_fact(c.outer), TANGENT)
            carries.append(Carry(dot, init, self.handed(next_dot, c.next, c.inner), end))
            self.tangent[c.outer] = end
        body, self.build.block = self.build.block, outer
        if isinstance(step, For):
            outer.append(For(step.index, step.count, (*step.items, *items), carries, body, step.origin, step.reverse,
                             step.policy))
        else:
            outer.append(While(carries, step.head, step.test, body, step.origin, step.policy))

    step_For = step_While = loop

def is_zero(node: Any) -> bool:
    return isinstance(node, Const) and node.value == 0


def read_own_rule(forward: Forward, step: Let, moving: Callable[[Any], Any]) -> list[list]:
    """[values, tangents] of the results of a function with a custom rule for forward mode.

    moving: gives the tangent of an argument, or None if that is zero.
    """
    callee, reader = step.value.function, forward.reader
    rule = callee.custom.rule
    if rule.mode != "jvp":
        raise RuleError(f"{callee.label} has a custom reverse rule only, forward mode is asked for", step.origin,
                        "Give it gs.custom_jvp, which serves both modes.")
    args = given_to_rule(step, forward.active)
    fixed = [args[k] for k in rule.nondiff_argnums]
    primals = [a for k, a in enumerate(args) if k not in rule.nondiff_argnums]

    def dot_of(value):
        if isinstance(value, Struct):
            return Struct(value.kind, [dot_of(i) for i in value.items], value.keys, value.cls)
        dot = moving(value)
        if dot is not None:
            return dot
        return zero_of(reader, value) if rule.symbolic_zeros and is_array(value) else forward.of(value)

    given = [*fixed, Struct("tuple", primals), Struct("tuple", [dot_of(a) for a in primals])]
    return [leaves_by_rule(callee, result_operand(reader, without_zeros(reader, part)), "the rule", step.origin)
            for part in pair_of(reader, callee, given, step)]


def operation_of(step: Let) -> Any:
    """The operation of a statement; of one that takes one of several results, the operation that returns these."""
    value = step.value
    first = value.args[0] if isinstance(value, Apply) and value.args else None
    return first if isinstance(first, Apply) else value
