# SPDX-License-Identifier: Apache-2.0
"""Reverse mode: the normal form of a function's gradient is its forward statements, then the backward sweep.

>>> from gradscribe.ast_transform.examples import gradient, show
>>> print(show(gradient("def f(x):\\n    if x > 0:\\n        x = np.sin(x)\\n    return x", 1.0)))
grad_f(x):
    t = x > 0
    if t:
        x_1 = np.sin(x)
    else:
        pass
    join x_2 = x_1 | x
    if t:
        dx = np.cos(x)
    else:
        pass
    join dx_1 = dx | 1.0
    return dx_1
"""
from collections import Counter

import numpy as np

from gradscribe.ast_transform.analysis.dtypes import of_several_dtypes
from gradscribe.ast_transform.analysis.ranges import Ranges
from gradscribe.ast_transform.analysis.regions import Regions
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    UNDEFINED,
    USER,
    Apply,
    Const,
    Function,
    If,
    Join,
    Let,
    Pack,
    Param,
    Var,
    all_made,
    all_reads,
    blocks,
    copied,
    made,
    operands,
    rebuilt,
    replaced,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import held
from gradscribe.ast_transform.passes.activity import active_values, useful_values
from gradscribe.ast_transform.passes.callees import in_place_of_calls, inlined, is_of_some_lines, without_calls
from gradscribe.ast_transform.passes.carried_views import carried_views
from gradscribe.ast_transform.passes.check import check_results
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.dead_writes import without_dead_writes
from gradscribe.ast_transform.passes.inner_writes import inner_writes
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.passes.reparametrise import reparametrised
from gradscribe.ast_transform.passes.simplify import ask_entered, drop_dead, hoist, parts_first
from gradscribe.ast_transform.passes.symbolic import told
from gradscribe.ast_transform.passes.through_views import through_views
from gradscribe.ast_transform.passes.vjp.containers import (
    Pieces,
    add_to_container,
    finished,
    materialised,
    without_others,
)
from gradscribe.ast_transform.passes.vjp.expansion import length_of, zero_adjoint
from gradscribe.ast_transform.passes.vjp.overwritten import forgotten
from gradscribe.ast_transform.passes.vjp.precision import complex_by_path, has_paths, is_narrow
from gradscribe.ast_transform.passes.vjp.segments import segmented
from gradscribe.ast_transform.passes.vjp.sweep import Sweep
from gradscribe.ast_transform.reader.closures import substituted_value
from gradscribe.ast_transform.reader.derivatives import enter, given_to_rule, leaves_by_rule, result_operand
from gradscribe.ast_transform.reader.gradient_edits import Edit
from gradscribe.ast_transform.reader.operands import settle
from gradscribe.ast_transform.reader.values import Pullback, Struct, variables_in
from gradscribe.ast_transform.source.diagnose import KindError, RuleError


class Analyses:
    """The analyses of a function's forward statements that its backward sweep asks."""

    def __init__(self, function):
        body, params = function.body, [p.value for p in function.params]
        self.made_by = {t: s.value for s in walk(body) if isinstance(s, Let) for t in s.targets}
        self.unset = unset_values(body)
        self.partial = Partial(body)
        self.read_twice = {v for v, n in Counter(v for s in body for v in all_reads(s)).items() if n > 1}
        self.regions, self.ranges, self.naturals = Regions(body, function.result, params), Ranges(body), Naturals(body)
        self.mixed, self.complex_by_path = has_paths(body), complex_by_path(body)
        self.narrow = any(isinstance(v, Var) and is_narrow(v.fact) for v in [*self.made_by, *params])


class Reverse:
    """One application of reverse mode; `reader` inlines the parts of rules."""

    def __init__(self, reader, label):
        self.reader, self.label = reader, label
        self.function, self.known = None, {}
        self.several = set()                    # values whose dtype depends on the path
        self.copies = []                        # backward blocks that run a loop again
        self.filled = []                        # arrays that loops run again fill in this pass: (statements, carry)
        self.ends = {}                          # carry of a reversed loop -> its array before the loop (invertible.py)
        self.restored = {}                      # carry of a reversed loop -> the Restore that has reversed it
        self.elements, self.places = {}, {}     # elements of containers that loops sum adjoints for, and their places

    # for sweeps

    def length_of(self, length, late=False):
        """An operand or operation that gives a length; from arguments, or with `late` from all values at the end."""
        return length_of(self.function, length, late)

    def insert_before(self, step, let):
        def search(block):
            for k, s in enumerate(block):
                if s is step:
                    block.insert(k, let)
                    return True
                if any(search(b) for b in blocks(s)):
                    return True
            return False
        if not any(search(b) for b in [self.function.body, *self.copies]):
            raise AssertionError("a loop is not in its function")

    def again(self):
        """A nested application of reverse mode."""
        inner = Reverse(self.reader, self.label)
        inner.known = self.known
        return inner

    def call_vjp(self, callee, wrt):
        """(backward half of a callee, the values that it needs): -1 is the result, others are arguments by number."""
        return self.known[callee, wrt]

    # the transformation

    def run(self, function, wrt, seed, value=False, aux=False):
        """The gradient with respect to `wrt`: variables, or containers of them.

        seed: the adjoint of the result, with the structure of the result
        """
        self.function = function = Function(
            function.label, function.params, function.body, function.result, function.about, dict(function.notes)
        )
        env = {}
        function.body = copied(function.body, env)
        function.result = substituted(function.result, env)
        starts, reader = leaves(wrt), self.reader
        carried_views(through_views(function))
        function.body = segmented(function.body, Naturals(function.body), self.length_of)
        function.body = forgotten(function, self.length_of, of_several_dtypes(function.body))
        ask_entered(function.body)
        function.body = hoist(parts_first(function.body), transposes=False, numbers=reader.unroll)
        while True:                     # a callee that is inlined may call others
            active = active_values(function.body, starts)
            function.body, again = self.with_costly_calls_inlined(function.body, active)
            if not again:
                break
        function.body = reparametrised(self.reader, function.body, active)
        active = active_values(function.body, starts)
        self.analyses, self.several = Analyses(function), of_several_dtypes(function.body)
        made_by = self.analyses.made_by
        reader.build.block = backward = []
        reader.build.made.update(made_by)
        differentiated = function.result.items[0] if aux else function.result
        active &= useful_values(function.body, operands(differentiated)) | set(starts)
        sweep = Sweep(reader, active, made_by, self.label, None, self)
        self.seed(sweep, differentiated, seed)
        sweep.groups.clear()
        sweep.block(function.body)
        results = [self.result_of(sweep, v) for v in wrt]
        body, env = close_arms(unmarked(function.body), unmarked(backward), [*results, function.result])
        results = [substituted(r, env) for r in results]
        check_results(results, wrt, "reverse mode")
        primal = substituted(function.result, env)
        gradient = results[0] if len(results) == 1 and not self.many else Pack("tuple", tuple(results))
        if value:
            result = Pack("tuple", (primal, gradient))
        elif aux:
            result = Pack("tuple", (gradient, primal.items[1]))
        else:
            result = gradient
        body = inner_writes(body, result)
        body, result = without_dead_writes(body, result, [p.value for p in function.params])
        return Function(self.label, function.params, body, result, function.about, function.notes)

    many = False
    linear = False                      # whether this transposes a custom rule for forward mode

    def seed(self, sweep, result, seed):
        if isinstance(result, Pack):
            parts = seed.items if isinstance(seed, Pack) else [seed] * len(result.items)
            for item, part in zip(result.items, parts):
                self.seed(sweep, item, part)
        elif isinstance(result, Var) and result in sweep.active and seed is not None:
            if isinstance(result.fact, Sequence):
                add_to_container(sweep, result, seed)
            else:
                sweep.add(result, seed)

    def result_of(self, sweep, var):
        """The adjoint of a parameter, in the form in which it is returned."""
        sweep.build.origin = None
        if isinstance(var, Struct) and var.whole is not None:
            var = var.whole
        if isinstance(var, Struct):
            return Pack(var.kind, tuple(self.result_of(sweep, i) for i in var.items), var.keys, var.cls)
        if not isinstance(var, Var):
            return var if isinstance(var, Const) else Const(None)
        if isinstance(var.fact, Array) and not var.fact.differentiable:
            return Const(None)
        if isinstance(var.fact, Sequence):
            held = materialised(sweep, sweep.adjoint.get(var) or Pieces(var.fact), var.fact, var)
            return without_others(sweep, held, var.fact)
        held = sweep.adjoint.get(var)
        if held is None:
            return zero_adjoint(sweep, var) if var.fact.dims else finished(sweep, Const(0.0), var.fact, var)
        result = finished(sweep, held, var.fact, var)
        if isinstance(result, Var) and result.fact.dims and any(result is p.value for p in self.function.params):
            result = sweep.build.apply(
                np.copy, result, hint=f"d{var.hint}", kind=ADJOINT
            )  # the caller's array stays the caller's
        return result

    # calls

    def with_costly_calls_inlined(self, body, active):
        """Inlines callees whose backward half needs more than arguments and result."""
        def instead(step, callee):
            if callee.custom and any(a in active for a in operands(step.value)):
                if callee.custom.rule.mode == "vmap":
                    raise RuleError(f"{callee.label} has a custom batching rule and no reverse rule",
                                    step.origin, "Wrap it in gs.custom_vjp, and give it its defvjp.")
                return self.with_own_rule(step, callee, active)
            wrt = tuple(k for k, a in enumerate(step.value.args) if isinstance(a, Var) and a in active)
            return inlined(step) if wrt and not self.has_backward_half(callee, wrt) else None
        return in_place_of_calls(body, instead)

    def with_own_rule(self, step, callee, active):
        """The forward half of a custom derivative, and a mark (Pullback) at which the sweep calls its backward half."""
        reader, rule = self.reader, callee.custom.rule
        if rule.mode == "each":
            return without_calls([step], ("each",))
        if rule.mode == "jvp" and self.linear:       # in a tangent, which the rule is not for
            return without_calls([step], ("jvp",))
        args = given_to_rule(step, active)
        if rule.mode == "jvp":       # the call stays, so that another derivative finds its rule
            copies = {v: v.like() for v in dict.fromkeys(operands(step.value))}
            values = tuple(t.like() for t in step.targets)
            return [*(Let((copy,), Apply(held, (v,)), step.origin) for v, copy in copies.items()),
                    Let(values, substituted(step.value, copies), step.origin),
                    Let(step.targets, Apply(Pullback(callee, None, args), values), step.origin)]
        outer, origin = reader.build.block, reader.build.origin
        reader.build.block, reader.build.origin = [], step.origin
        try:  # the forward half is not differentiated: nothing in it is active
            copies = {
                v: reader.build.let(v.hint, Apply(held, (v,)), v.fact, v.kind) for a in args for v in variables_in(a)
            }
            given = [substituted_value(a, copies) for a in args]
            if rule.symbolic_zeros:
                wanted = {copies[v] for v in copies if v in active}
                given = [a if k in rule.nondiff_argnums else told(reader, a, wanted) for k, a in enumerate(given)]
            made_value = settle(reader, enter(reader, rule.fwd, given, {}))
            if not isinstance(made_value, Struct) or len(made_value.items) != 2:
                raise KindError(f"the forward half of {callee.label} must return (value, residuals)", step.origin,
                                "The backward half is given the residuals.")
            y, residuals = made_value.items
            results = tuple(leaves_by_rule(callee, result_operand(reader, y), "the forward half", step.origin))
            body = reader.build.block
        finally:
            reader.build.block, reader.build.origin = outer, origin
        return [*body, Let(step.targets, Apply(Pullback(callee, residuals, args), results), step.origin)]

    def has_backward_half(self, callee, wrt):
        if (callee, wrt) in self.known:
            return self.known[callee, wrt] is not None
        self.known[callee, wrt] = None
        made = self.backward_half(callee, wrt)
        self.known[callee, wrt] = made
        return made is not None

    def backward_half(self, callee, wrt):
        """(function from the adjoints of a callee's results to those of some arguments, the other values that it needs:
        -1 is the result, others are arguments by number), or None if the callee is to be inlined.

        If arguments and result are not enough, the function recomputes the callee's values, provided that the callee
        has at least a few lines.
        """
        results = callee.result.items if isinstance(callee.result, Pack) else (callee.result,)
        if not all(isinstance(r, Var) and isinstance(r.fact, Array) for r in results):
            return None
        dys, taken = [], {p.name for p in callee.params}
        for r in results:
            fact = Sweep.whole_fact(r)
            fact = Array(np.dtype(fact.dtype)) if fact.weak else fact       # callers may pass NumPy numbers
            hint = _result_name(callee) if len(results) == 1 else r.hint if r.kind == USER else f"y_{len(dys)}"
            dys.append(Var(_free(taken, f"d{hint}"), fact, ADJOINT))
            taken.add(dys[-1].hint)
        inner = Reverse(self.reader, f"vjp_{callee.label}")
        inner.known = self.known
        outer_block, outer_origin = self.reader.build.block, self.reader.build.origin
        try:
            inner.many = len(wrt) > 1
            done = inner.run(callee, [callee.params[k].value for k in wrt],
                             dys[0] if len(dys) == 1 else Pack("tuple", tuple(dys)))
        finally:
            self.reader.build.block, self.reader.build.origin = outer_block, outer_origin
        params = {p.value for p in callee.params}
        if inner.function.result in params:
            return None
        y = Var(_result_name(callee), results[0].fact, USER)
        made_function = self.from_result(callee, inner.function.result, done, dys, y) if len(results) == 1 else None
        if made_function is None and self.worth_a_function(callee):
            body = drop_dead(done.body, done.result)
            if free_in(body, done.result) <= {*dys, *params}:
                made_function = body, done.result
        if made_function is None:
            return None
        body, result = made_function
        free = free_in(body, result)
        needed = ([-1] if y in free else []) + [k for k, p in enumerate(callee.params) if p.value in free]
        given = [*(Param(d.hint, d) for d in dys), *([Param(y.hint, y)] if y in free else []),
                 *(callee.params[k] for k in needed if k >= 0)]
        notes = {"fresh": True, "nests": len(wrt) == 1, "owns": True}      # see finished() of the pipeline
        return Function(f"vjp_{callee.label}", given, body, result, callee.about, notes), needed

    @staticmethod
    def from_result(callee, forward_result, done, dys, y):
        """(body, result) of a backward half that reads only the arguments and the result; None if it needs more."""
        body = [s for s in done.body if forward_result not in set(made(s)) or len(list(made(s))) > 1]
        body = replaced(body, {forward_result: y})
        result = substituted(done.result, {forward_result: y})
        body = drop_dead(body, result)
        if any(s.origin is None or s.origin.generated == 0 for s in body):
            return None
        if not free_in(body, result) <= {y, *dys, *(p.value for p in callee.params)}:
            return None
        return body, result

    def worth_a_function(self, callee):
        """Whether a callee's derivative is printed as its own function: three lines or more; compiled code inlines."""
        return not self.reader.unroll and "given" in callee.notes and is_of_some_lines(callee)


def free_in(body, result):
    """The free variables of a body and its result."""
    read = {v for s in body for v in all_reads(s)} | set(operands(result))
    return read - set(all_made(body))


def leaves(values):
    """The differentiable variables in arguments; a container that is held in one variable counts as one."""
    out = []
    for v in values:
        if isinstance(v, Struct):
            out += [v.whole] if v.whole is not None else leaves(v.items)
        elif isinstance(v, Var) and v.fact.differentiable:
            out.append(v)
    return out


class Partial:
    """Values that exist in one arm only, with the tests that must be true, or false, for them to exist.

    Copies and joins give a value other names; tests are identified by their first name.
    """

    def __init__(self, body):
        self.first, self.tests = {}, {}
        self.visit(body)

    def visit(self, block):
        for step in block:
            for inner in blocks(step):
                self.visit(inner)
            if isinstance(step, Let) and isinstance(step.value, Var):
                self.rename(step.targets[0], step.value, {})
            elif isinstance(step, If):
                for j in step.joins:
                    if (j.then is UNDEFINED) != (j.orelse is UNDEFINED):
                        source = j.then if j.orelse is UNDEFINED else j.orelse
                        self.rename(j.var, source, {self.name(step.test): j.orelse is UNDEFINED})

    def rename(self, var, source, tests):
        if isinstance(source, Var):
            self.first[var] = self.name(source)
        self.tests[var] = {**self.tests.get(source, {}), **tests}

    def name(self, value):
        return self.first.get(value, value)

    def exists(self, var, test, holds):
        """Whether a value can exist where a test is as `holds` says."""
        return self.tests.get(var, {}).get(self.name(test), holds) == holds


def _free(taken, name):
    k, found = 0, name
    while found in taken:
        k += 1
        found = f"{name}_{k}"
    return found


def _result_name(callee):
    names = {p.name for p in callee.params}
    return next(n for n in ("y", "out", "result", "value_of_call") if n not in names)


def unmarked(body):
    """A block without the marks of custom derivatives: the marked values remain."""
    out = []
    for step in body:
        step = rebuilt(step, {}, unmarked)
        function = step.value.function if isinstance(step, Let) and isinstance(step.value, Apply) else None
        if isinstance(function, (Edit, Pullback)) or function is held:
            out += [Let((t,), v, step.origin) for t, v in zip(step.targets, step.value.args)]
        else:
            out.append(step)
    return out


def close_arms(forward, backward, results):
    """Adds joins for values that are made in an arm and read after the branch.

    -> (the whole body, {value: the variable that replaces it in results})
    """
    env = {}

    def visit(block, later):
        """later: the values that are read after the block"""
        out, reads, read_after = [], set(later), {}
        for step in reversed(block):
            if isinstance(step, If):
                read_after[id(step)] = set(reads)
            reads.update(all_reads(step))
        for step in block:
            if isinstance(step, If):
                after = read_after[id(step)]
                step = If(
                    substituted(step.test, env),
                    visit(step.then, after | {v for j in step.joins for v in operands(j.then)}),
                    visit(step.orelse, after | {v for j in step.joins for v in operands(j.orelse)}),
                    [Join(j.var, substituted(j.then, env), substituted(j.orelse, env)) for j in step.joins],
                    step.origin,
                )
                for arm, is_then in ((step.then, True), (step.orelse, False)):
                    for s in list(arm):
                        for v in list(made(s)):
                            first = root.get(v, v)      # the value itself, if an inner branch has joined it already
                            if first in after or v in after:
                                new = v.like()
                                step.joins.append(Join(new, *((v, UNDEFINED) if is_then else (UNDEFINED, v))))
                                pending.extend([(first, new), (v, new)])
                                root[new] = first
                out.append(step)
                env.update(pending)
                pending.clear()
            else:
                out.append(rebuilt(step, env, lambda b: _replaced_in(b, env)))
        return out

    pending, root = [], {}
    wanted = {v for r in results for v in operands(r)}
    whole = visit([*forward, *backward], wanted)
    final = {}
    for v in env:
        w = v
        while w in env:
            w = env[w]
        final[v] = w
    return whole, final


def _replaced_in(block, env):
    return [rebuilt(s, env, lambda b: _replaced_in(b, env)) for s in block]

