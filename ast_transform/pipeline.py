# SPDX-License-Identifier: Apache-2.0
"""The order of the passes: from a function and the facts of its arguments to a normal form, through transformations, to
the simplified form that code generation prints or compiles.
"""
import itertools
from contextlib import contextmanager
from functools import partial

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import viewed
from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import Apply, Const, Effect, Function, Let, Pack, Var, operands, rebuilt, walk
from gradscribe.ast_transform.core.kinds import Array, Opaque, unknown
from gradscribe.ast_transform.mapping import read_differing, vmap
from gradscribe.ast_transform.passes.accumulators import summed_in_numbers
from gradscribe.ast_transform.passes.activity import has_scalar_form, is_own, rule_of
from gradscribe.ast_transform.passes.callees import EVERY, are_its_own, called, without_calls
from gradscribe.ast_transform.passes.carried_views import carried_views
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.entries import entries
from gradscribe.ast_transform.passes.errors import Errors
from gradscribe.ast_transform.passes.factorisations import factored_once
from gradscribe.ast_transform.passes.first_writes import first_writes, listed
from gradscribe.ast_transform.passes.handed_on import handed_on
from gradscribe.ast_transform.passes.jvp import Forward
from gradscribe.ast_transform.passes.nesting import renest
from gradscribe.ast_transform.passes.own_indices import by_own_index
from gradscribe.ast_transform.passes.results import owned_results
from gradscribe.ast_transform.passes.simplify import ask_latest, drop_dead, simplify
from gradscribe.ast_transform.passes.taylor import Taylor
from gradscribe.ast_transform.passes.through_views import through_views
from gradscribe.ast_transform.passes.triangles import by_substitution
from gradscribe.ast_transform.passes.vjp.reverse import Reverse
from gradscribe.ast_transform.passes.vmap.batch import batched
from gradscribe.ast_transform.passes.zero_arms import in_other_arm
from gradscribe.ast_transform.reader.derivatives import entry
from gradscribe.ast_transform.reader.gradient_edits import Edit
from gradscribe.ast_transform.reader.inlining import calls_itself
from gradscribe.ast_transform.reader.memory import NeedsParts, NeedsPasses, may_be_in
from gradscribe.ast_transform.reader.operands import settle
from gradscribe.ast_transform.reader.outer_state import NeedsState
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Derived, Struct
from gradscribe.ast_transform.reader.views import base_path, is_array
from gradscribe.ast_transform.rules import tables  # noqa: F401  (fills the table)
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, TransformError
from gradscribe.ast_transform.source.read import read
from gradscribe.ast_transform.source.recursion import NeedsLoops, as_loops
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.ast_transform.transforms import jvp


class Pipeline:
    """Makes one version of a transformed function, and keeps what that version has read from outside the function.

    platform: the target, `cpu` or `cuda`; half: the format that float16 means in facts, or `bfloat16`
    """

    def __init__(self, unroll=False, platform="cpu", half="float16"):
        self.reader = Reader(unroll, self)
        self.unroll, self.platform, self.half, self.done = unroll, platform, half, set()
        self.being_kept = []            # callees whose normal forms are being made
        self.kept = {}                  # (callee, kinds of arguments) -> normal form, None if it cannot stand alone
        self.looped = {}                # tree of a recursive function -> the tree with loops that is read instead

    # reading

    def normal_form(self, callee, names, facts, words, label) -> Function:
        """The normal form of a callable for arguments with these facts.

        Where reading finds that it needs more, a Needs... exception says what, and reading starts again.
        """
        stateful, apart, written_out = [], False, set()
        while True:
            try:
                return check(entry(self.reader, callee, names, facts, words, label), "specialise")
            except NeedsState as need:      # again, with the object's attributes as values known when running
                stateful.append(need.value)
            except NeedsParts:
                apart = True
            except NeedsPasses as need:
                written_out.add(need.origin)
            except NeedsLoops as need:
                self.looped[need.tree] = as_loops(need.tree)
            self.reader.__init__(self.unroll, self)
            self.reader.outer.stateful, self.reader.containers.apart = stateful, apart
            self.reader.loops.unrolled = written_out

    def kept_call(self, reader, function, args, node):
        """The call of a callee that has its own normal form; None if the callee must be inlined."""
        source = read(function)
        spec = source.tree.args
        names = [a.id for a in [*spec.posonlyargs, *spec.args]]
        if spec.vararg or spec.kwarg or spec.kwonlyargs or len(names) != len(args):
            return None
        key = function, tuple(map(_kind_of, args))
        if key in self.kept:
            return self.called(reader, self.kept[key], args) if self.kept[key] is not None else None
        self.kept[key] = None
        if calls_itself(source) and any(isinstance(n, gast.Name) and n.id == source.name for n in nodes(source.tree)):
            return None                 # recursion is read as loops, or unrolled
        inner = Reader(self.unroll, self)
        inner.reads_with(reader)
        inner.loops.unrolled = reader.loops.unrolled
        inner.context.errstate, inner.context.instead = reader.context.errstate, reader.context.instead
        self.being_kept.append(function)
        try:
            made = entry(inner, function, names, list(map(_passed, args)), {}, source.name)
        except (TransformError, Demand, NeedsState):
            return None                 # inlining it reports where it fails
        finally:
            self.being_kept.pop()
        results = made.result.items if isinstance(made.result, Pack) and made.result.kind == "tuple" else [made.result]
        params = [p.value for p in made.params]
        if (
            not are_its_own(results, made.params)
            or inner.memory.writes_arguments
            or any(isinstance(s, Effect) for s in walk(made.body))
            or draws(made.body)
            or inner.environment.captured
            or [p.name for p in made.params] != names
        ):
            return None
        shown = [may_be_in(inner, r) for r in results]
        if any(p in s for p in params for s in shown) or sum(map(len, shown)) > len(frozenset().union(*shown)):
            return None                 # its result may alias an argument: alias analysis needs it inlined
        made.notes["fresh"] = True
        made.notes["nests"] = len(results) == 1
        reader.build.made.update(inner.build.made)
        made.notes["given"] = [k for k, p in enumerate(made.params) if isinstance(p.value, Var)]
        made.params = [made.params[k] for k in made.notes["given"]]     # static arguments are not passed
        self.kept[key] = made
        return self.called(reader, made, args)

    @staticmethod
    def called(reader, made, args):
        """The value of a call of a callee that has its own normal form."""
        call, lengths = Apply(made, tuple(args[k] for k in made.notes["given"])), {}
        known = {d.normal().symbol for a in args if isinstance(a, Var) for d in (*a.fact.dims, a.fact.length) if d}

        def here(length):
            """A length of the callee in the caller: one that the arguments do not determine is new at each call."""
            symbol = length.normal().symbol
            if symbol is None or symbol in known:
                return length
            return lengths.setdefault(symbol, unknown(symbol.label)).plus(length.normal().offset)

        def fact(f):
            return Array(f.dtype, tuple(map(here, f.dims)), None if f.length is None else here(f.length))
        if not isinstance(made.result, Pack):
            return reader.build.let(made.label, call, fact(made.result.fact))
        results = made.result.items
        return Struct("tuple", reader.build.several([r.hint for r in results], call, [fact(r.fact) for r in results]))

    # transformations of normal forms

    def reverse(self, function, wrt, label, seed=None, value=False, aux=False, many=False) -> Function:
        self.check_custom_rules()
        engine = Reverse(self.reader, label)
        engine.many = many
        with self.builder_restored():
            return check(engine.run(function, wrt, Const(1.0) if seed is None else seed, value, aux), "reverse mode")

    def forward(self, function, wrt, label, value=True) -> Function:
        self.check_custom_rules()
        with self.builder_restored():
            return check(Forward(self.reader, label).run(function, wrt, value), "forward mode")

    def taylor(self, function, wrt, label, order, scaled=False) -> Function:
        self.check_custom_rules()
        with self.builder_restored():
            return check(Taylor(self.reader, label, order, scaled).run(function, wrt), "Taylor mode")

    def solution(self, function, state, time, label, order) -> Function:
        self.check_custom_rules()
        with self.builder_restored():
            return check(Taylor(self.reader, label, order, True).solution(function, state, time), "Taylor mode")

    def error_bound(self, function, inputs, label) -> Function:
        """The function that also returns a bound of its rounding error, of its operations as they are run."""
        with self.builder_restored():
            function = simplify(function, self.unroll)
            return check(Errors(self.reader, label, inputs).run(function), "running error analysis")

    def check_custom_rules(self):
        """Refuses to differentiate a batch whose examples have a custom derivative and communicate with each other."""
        if self.reader.context.without_rule:
            label, axis, origin = self.reader.context.without_rule
            raise LanguageError(f"{label} has a custom derivative and communicates over the axis {axis!r}: the "
                                "derivative of a whole batch of it is not known", origin,
                                "Differentiate inside the batch: gs.vmap(gs.grad(f), axis_name=...).")

    def batch(self, function, mapped, length, label, outputs, strategy="auto", axis_name=None) -> Function:
        with self.builder_restored():
            return check(batched(self.reader, function, mapped, length, label, outputs, axis_name, strategy), "vmap")

    def tangent_over(self, reader, function, args, axes):
        """((value, tangent), whether each leaf of it differs between the examples) of a function that is mapped over
        axes of its arguments; axes None: of one example.
        """
        if axes is None:
            return jvp().read(reader, function, args, {}), itertools.repeat(False)
        return read_differing(reader, tuple(axes), Derived(jvp(), function), args)

    def entry_by_entry(self, reader, function, args):
        """A function of numbers applied to each entry of arrays with one axis; other arguments are the same for all."""
        return vmap(tuple(0 if is_array(a) else None for a in args)).read(reader, function, args, {})

    @contextmanager
    def builder_restored(self):
        """Restores the builder's block and origin: a transformation may run while a function is being read."""
        build = self.reader.build
        block, origin = build.block, build.origin
        try:
            yield
        finally:
            build.block, build.origin = block, origin

    # finishing

    def finished(self, function, nested=True, given=False, inside=False) -> Function:
        """The function after the simplifying passes.

        nested: whether values that are read once become part of the expression that reads them; given: whether the user
        calls the function; inside: whether such a function calls it.  Otherwise its adjoints may begin with sums of
        the caller.
        """
        for step in walk(function.body):        # edits change adjoints only
            if isinstance(step, Let) and isinstance(step.value, Apply) and isinstance(step.value.function, Edit):
                step.value = step.value.args[0]
        for step in walk(function.body):
            if isinstance(step, Let) and isinstance(step.value, Apply) and isinstance(step.value.function, Function):
                callee = step.value.function
                if id(callee) not in self.done:
                    self.done.add(id(callee))
                    self.finished(callee, inside=given or inside)
        if self.unroll:
            function.body = self.by_compiled_parts(function.body)
            self.own_functions(function)
            if any(callee and callee.custom for callee in map(called, walk(function.body))):
                function.body = without_calls(function.body, EVERY)
        outside = {v for v, _ in self.reader.environment.captured.values()}
        function = check(carried_views(through_views(function)), "through_views", outside)
        if not self.unroll:
            function.body = drop_dead(function.body, function.result)
            function = check(in_other_arm(function), "in_other_arm", outside)
        if given or inside:
            function = check(first_writes(function), "first_writes", outside)
        if not self.unroll:
            function = check(entries(function), "entries", outside)
            function = check(listed(function), "listed", outside)
        simple = check(simplify(function, self.unroll), "simplify", outside)
        if self.unroll:
            simple = check(summed_in_numbers(simple), "summed_in_numbers", outside)
            if self.platform == "cpu":
                simple = check(factored_once(by_substitution(simple)), "factored_once", outside)
        if given or function.notes.get("owns"):     # a user, or a caller that adds to the result in place
            simple = check(owned_results(simple), "owned_results")
        for arrange in self.reader.arrangements:
            simple = check(arrange(simple), arrange.__name__)
        simple = check(ask_latest(simple), "ask_latest", outside)
        return self.nested(simple) if nested else simple

    def nested(self, function) -> Function:
        """The function in which values that are read once are part of the expression that reads them."""
        outside = {v for v, _ in self.reader.environment.captured.values()}
        if not self.unroll:
            function = check(by_own_index(function), "by_own_index", outside)
        return check(handed_on(check(renest(function, not self.unroll), "renest", outside)), "handed_on", outside)

    def makes_anew(self, value) -> bool:
        """Whether a user's function that has a rule returns new arrays, according to its source."""
        inner, made = self.read_alone(value)
        if made is None:
            return False                # its source cannot be read
        shown = frozenset().union(*map(partial(may_be_in, inner), operands(made.result)))
        return not inner.environment.captured and shown.isdisjoint(p.value for p in made.params)

    def view_by(self, value):
        """The operations that make such a function's result a view of its first argument; None if it is not one."""
        inner, made = self.read_alone(value)
        if made is None or inner.environment.captured or not isinstance(made.result, Var) or not made.params:
            return None
        base, path = base_path(inner, made.result)
        known = all(v is viewed(m) for m, _ in path for v in operands(m))
        return path if base is made.params[0].value and known and isinstance(base.fact, Array) else None

    def read_alone(self, value):
        """(reader, normal form) of a user's function that has a rule; Nones if it cannot be read."""
        if not is_own(value.function):
            return None, None
        inner = Reader(self.unroll, self)
        inner.reads_with(self.reader)
        inner.context.from_source = value.function
        try:
            return inner, entry(inner, value.function, [f"x{k}" for k in range(len(value.args))], [
                fact_of(a) for a in value.args], {k: fact_of(a) for k, a in value.kwargs}, value.function.__name__)
        except (TransformError, Demand, NeedsState, NeedsParts, NeedsPasses):
            return None, None

    def by_compiled_parts(self, body, within=()):
        """A body in which calls of functions whose records have a part `compiled` are what it says.

        within: the functions whose parts are being read
        """
        build, out = self.reader.build, []
        for step in body:
            step = rebuilt(step, {}, lambda block: self.by_compiled_parts(block, within))
            function = step.value.function if isinstance(step, Let) and isinstance(step.value, Apply) else None
            rule = rule_of(function)
            if rule is None or "compiled" not in rule.parts or function in within:
                out.append(step)
                continue
            given = dict(rule.signature.bind(*step.value.args, **dict(step.value.kwargs)).arguments)
            with self.builder_restored():
                build.block, build.origin = [], step.origin
                made = settle(self.reader, read_part(self.reader, rule, "compiled", given))
                results = [made] if len(step.targets) == 1 else list(map(partial(settle, self.reader), made.items))
                out += self.by_compiled_parts(build.block, (*within, *rule.functions))
            out += [Let((t,), r, step.origin) for t, r in zip(step.targets, results)]
        return out

    def own_functions(self, function):
        """Compiles the user's functions that have a rule from their own source, if the rule has no other form."""
        found = False
        for step in walk(function.body):
            if isinstance(step, Let) and isinstance(step.value, Apply) and is_own(
                    step.value.function) and not has_scalar_form(step.value.function):
                inner = Reader(self.unroll, self)
                inner.reads_with(self.reader)
                inner.context.from_source = step.value.function
                names = [f"x{k}" for k in range(len(step.value.args))]
                made = entry(inner, step.value.function, names, [fact_of(a) for a in step.value.args],
                             {k: fact_of(a) for k, a in step.value.kwargs}, step.value.function.__name__)
                keep = [k for k, p in enumerate(made.params) if isinstance(p.value, Var)]
                given = [*step.value.args, *(a for _, a in step.value.kwargs)]
                made.params = [made.params[k] for k in keep]
                step.value, found = Apply(made, tuple(given[k] for k in keep)), True
        if found:
            function.body = without_calls(function.body)


def _passed(operand):
    """The fact of an argument for a callee: integers, names and objects are static."""
    known = isinstance(operand, Const) and type(operand.value) is not float
    return Opaque(operand.value) if known else fact_of(operand)


class _Same:
    """An object as a key, compared by identity."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


def _kind_of(operand):
    """The key of an argument of a callee: dtype, rank and lengths of an array, the value of a constant."""
    if isinstance(operand, Const) and type(operand.value) is float:
        return float
    if isinstance(operand, Const):
        return type(operand.value), operand.value if type(operand.value) in (int, bool, str) else _Same(operand.value)
    fact = operand.fact
    lengths = [d.normal() for d in (*fact.dims, *([fact.length] if fact.length is not None else []))]
    return np.dtype(fact.dtype), fact.weak, fact.rank, tuple((n.symbol, n.offset) for n in lengths)
