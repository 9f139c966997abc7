# SPDX-License-Identifier: Apache-2.0
"""The order of passes: from a function and the kinds of its arguments to a normal form, and through transformations."""
import itertools
from contextlib import contextmanager

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import viewed
from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import Apply, Const, Effect, Function, Let, Pack, Var, operands, rebuilt, walk
from gradscribe.ast_transform.core.kinds import Array, Opaque, unknown
from gradscribe.ast_transform.mapping import Unrestricted, Vmap
from gradscribe.ast_transform.passes.accumulators import summed_in_numbers
from gradscribe.ast_transform.passes.activity import has_scalar_form, is_own, rule_of
from gradscribe.ast_transform.passes.callees import EVERY, are_its_own, without_calls
from gradscribe.ast_transform.passes.carried_views import carried_views
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.derive import CustomFunction
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.edits import Edit
from gradscribe.ast_transform.passes.entries import entries
from gradscribe.ast_transform.passes.factorisations import factored_once
from gradscribe.ast_transform.passes.first_writes import first_writes, listed
from gradscribe.ast_transform.passes.handed_on import handed_on
from gradscribe.ast_transform.passes.inlining import calls_itself
from gradscribe.ast_transform.passes.jvp import Forward
from gradscribe.ast_transform.passes.nesting import renest
from gradscribe.ast_transform.passes.own_indices import by_own_index
from gradscribe.ast_transform.passes.results import owned_results
from gradscribe.ast_transform.passes.rule_inlining import read_part
from gradscribe.ast_transform.passes.simplify import ask_latest, drop_dead, simplify
from gradscribe.ast_transform.passes.specialise import Specialiser
from gradscribe.ast_transform.passes.state import NeedsState
from gradscribe.ast_transform.passes.storage import NeedsParts, NeedsPasses
from gradscribe.ast_transform.passes.through_views import through_views
from gradscribe.ast_transform.passes.triangles import by_substitution
from gradscribe.ast_transform.passes.values import Derived, Struct
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.passes.vjp.reverse import Reverse
from gradscribe.ast_transform.passes.vmap.batch import Batch
from gradscribe.ast_transform.passes.zero_arms import in_other_arm
from gradscribe.ast_transform.rules import tables  # noqa: F401  (fills the table)
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, TransformError
from gradscribe.ast_transform.source.read import read
from gradscribe.ast_transform.source.recursion import NeedsLoops, as_loops
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.ast_transform.transforms import Jvp


class Pipeline:
    """One version of a transformed function: what was read from outside is kept with it.

    platform: what it is made for, `cpu` or `cuda`; half: the format that facts mean by float16, or `bfloat16`.
    """

    def __init__(self, unroll=False, platform="cpu", half="float16"):
        self.reader = Specialiser(unroll, self)
        self.unroll, self.platform, self.half, self.done = unroll, platform, half, set()
        self.being_kept = []            # the functions whose normal forms are being made for calls
        self.kept = {}                  # normal forms of functions that are called, by what they are called with
        self.looped = {}                # functions whose recursion is read as loops, with the trees that are read

    # reading

    def normal_form(self, callee, names, facts, words, label) -> Function:
        """The normal form of a callable for arguments with these facts."""
        stateful, apart, written_out = [], False, set()
        while True:
            try:
                return check(self.reader.entry(callee, names, facts, words, label), "specialise")
            except NeedsState as need:      # once more, with the object's attributes as values of the run
                stateful.append(need.value)
            except NeedsParts:
                apart = True
            except NeedsPasses as need:
                written_out.add(need.origin)
            except NeedsLoops as need:
                self.looped[need.tree] = as_loops(need.tree)
            self.reader.__init__(self.unroll, self)
            self.reader.stateful, self.reader.apart, self.reader.unrolled_loops = stateful, apart, written_out

    def kept_call(self, reader, function, args, node):
        """A callee with a normal form of its own, called on operands; None if it cannot stand alone."""
        source = read(function)
        spec = source.tree.args
        names = [a.id for a in [*spec.posonlyargs, *spec.args]]
        if spec.vararg or spec.kwarg or spec.kwonlyargs or len(names) != len(args):
            return None
        key = function, tuple(map(_kind_of, args))
        if key in self.kept:            # of arguments like these: it is one function
            return self.called(reader, self.kept[key], args) if self.kept[key] is not None else None
        self.kept[key] = None
        if calls_itself(source) and any(isinstance(n, gast.Name) and n.id == source.name for n in nodes(source.tree)):
            return None                 # it is read as loops, or as often as it calls itself
        inner = Specialiser(self.unroll, self)
        inner.captured, inner.guards, inner.functions, inner.errstate = \
            {}, reader.guards, reader.functions, reader.errstate
        inner.unrolled_loops, inner.instead = reader.unrolled_loops, reader.instead
        self.being_kept.append(function)
        try:
            made = inner.entry(function, names, list(map(_passed, args)), {}, source.name)
        except (TransformError, Demand, NeedsState):
            return None                 # reading it in place of the call tells where it fails
        finally:
            self.being_kept.pop()
        results = made.result.items if isinstance(made.result, Pack) and made.result.kind == "tuple" else [made.result]
        params = [p.value for p in made.params]
        if (
            not are_its_own(results, made.params)
            or inner.writes_arguments
            or any(isinstance(s, Effect) for s in walk(made.body))
            or draws(made.body)
            or inner.captured
            or [p.name for p in made.params] != names
        ):
            return None
        shown = [inner.may_be_in(r) for r in results]
        if any(p in s for p in params for s in shown) or sum(map(len, shown)) > len(frozenset().union(*shown)):
            return None                 # what it returns may show an argument: read in place, that is followed
        made.notes["fresh"] = True
        made.notes["nests"] = len(results) == 1
        reader.build.made.update(inner.build.made)
        made.notes["given"] = [k for k, p in enumerate(made.params) if isinstance(p.value, Var)]
        made.params = [made.params[k] for k in made.notes["given"]]     # what is known when transforming is not passed
        self.kept[key] = made
        return self.called(reader, made, args)

    @staticmethod
    def called(reader, made, args):
        """The value of a call of such a function."""
        call, lengths = Apply(made, tuple(args[k] for k in made.notes["given"])), {}
        known = {d.normal().symbol for a in args if isinstance(a, Var) for d in (*a.fact.dims, a.fact.length) if d}

        def here(length):
            """A length that the arguments do not say is another one at each call."""
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
        self.rules_are_there()
        engine = Reverse(self.reader, label)
        engine.many = many
        with self.undisturbed():
            return check(engine.run(function, wrt, Const(1.0) if seed is None else seed, value, aux), "reverse mode")

    def forward(self, function, wrt, label, value=True) -> Function:
        self.rules_are_there()
        with self.undisturbed():
            return check(Forward(self.reader, label).run(function, wrt, value), "forward mode")

    def rules_are_there(self):
        """A batch has no derivative of its own where those of its examples look at one another."""
        if self.reader.without_rule:
            label, axis, origin = self.reader.without_rule
            raise LanguageError(f"{label} brings its own derivative and looks along the axis {axis!r}: the derivative "
                                "of a whole batch of it is not known", origin,
                                "Differentiate inside the batch: gs.vmap(gs.grad(f), axis_name=...).")

    def batch(self, function, mapped, length, label, outputs, strategy="auto", axis_name=None) -> Function:
        with self.undisturbed():
            return check(Batch(self.reader, label, axis_name, strategy).run(function, mapped, length, outputs), "vmap")

    def tangent_over(self, reader, function, args, axes):
        """((value, tangent), whether each leaf of it differs) of a function over the axes of its arguments, or of one
        example where these are None.
        """
        if axes is None:
            return Jvp().read(reader, function, args, {}), itertools.repeat(False)
        over = Unrestricted(tuple(axes))
        pair = over.read(reader, Derived(Jvp(), function), args, {})
        return pair, over.flags

    def entry_by_entry(self, reader, function, args):
        """A function of numbers, for each entry of arrays with one axis, and for what has none."""
        return Vmap(tuple(0 if is_array(a) else None for a in args)).read(reader, function, args, {})

    @contextmanager
    def undisturbed(self):
        """What is being read goes on where it was: it may be by another reader that a transformation is asked for."""
        build = self.reader.build
        block, origin = build.block, build.origin
        try:
            yield
        finally:
            build.block, build.origin = block, origin

    # finishing

    def finished(self, function, nested=True, given=False, inside=False) -> Function:
        """nested: whether what is read once becomes part of its reader; given: whether a user gets what it returns;
        inside: whether it is called by such a function.  Adjoints of other functions may begin with a caller's sums.
        """
        for step in walk(function.body):        # edits are for reverse mode only
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
            if any(isinstance(s, Let) and isinstance(s.value, Apply) and isinstance(s.value.function, CustomFunction)
                   for s in walk(function.body)):
                function.body = without_calls(function.body, EVERY)
        outside = {v for v, _ in self.reader.captured.values()}
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
        if given or function.notes.get("owns"):     # a user, or a caller that adds to it, gets what it returns
            simple = check(owned_results(simple), "owned_results")
        for arrange in self.reader.arrangements:
            simple = check(arrange(simple), arrange.__name__)
        simple = check(ask_latest(simple), "ask_latest", outside)
        return self.nested(simple) if nested else simple

    def nested(self, function) -> Function:
        """What is read once becomes part of its reader."""
        outside = {v for v, _ in self.reader.captured.values()}
        if not self.unroll:
            function = check(by_own_index(function), "by_own_index", outside)
        return check(handed_on(check(renest(function, not self.unroll), "renest", outside)), "handed_on", outside)

    def makes_anew(self, value) -> bool:
        """Whether a function of the user's that has a rule returns new arrays, as its source says."""
        inner, made = self.read_alone(value)
        if made is None:
            return False                # what cannot be read may return anything
        shown = frozenset().union(*map(inner.may_be_in, operands(made.result)))
        return not inner.captured and shown.isdisjoint(p.value for p in made.params)

    def view_by(self, value):
        """The operations by which such a function's result is a view of its first argument, as its source says."""
        inner, made = self.read_alone(value)
        if made is None or inner.captured or not isinstance(made.result, Var) or not made.params:
            return None
        base, path = inner.base_path(made.result)
        known = all(v is viewed(m) for m, _ in path for v in operands(m))
        return path if base is made.params[0].value and known and isinstance(base.fact, Array) else None

    def read_alone(self, value):
        """A function of the user's that has a rule, read by itself: its reader and its normal form, or None."""
        if not is_own(value.function):
            return None, None
        inner = Specialiser(self.unroll, self)
        inner.guards, inner.functions, inner.from_source = self.reader.guards, self.reader.functions, value.function
        try:
            return inner, inner.entry(value.function, [f"x{k}" for k in range(len(value.args))], [
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
            with self.undisturbed():
                build.block, build.origin = [], step.origin
                made = self.reader.settle(read_part(self.reader, rule, "compiled", given))
                results = [made] if len(step.targets) == 1 else list(map(self.reader.settle, made.items))
                out += self.by_compiled_parts(build.block, (*within, *rule.functions))
            out += [Let((t,), r, step.origin) for t, r in zip(step.targets, results)]
        return out

    def own_functions(self, function):
        """Functions of the user's that have a rule are compiled from their own source, if the rule has no other form.
        """
        found = False
        for step in walk(function.body):
            if isinstance(step, Let) and isinstance(step.value, Apply) and is_own(
                    step.value.function) and not has_scalar_form(step.value.function):
                inner = Specialiser(self.unroll, self)
                inner.guards, inner.functions = self.reader.guards, self.reader.functions
                inner.from_source = step.value.function
                names = [f"x{k}" for k in range(len(step.value.args))]
                made = inner.entry(step.value.function, names, [fact_of(a) for a in step.value.args],
                                   {k: fact_of(a) for k, a in step.value.kwargs}, step.value.function.__name__)
                keep = [k for k, p in enumerate(made.params) if isinstance(p.value, Var)]
                given = [*step.value.args, *(a for _, a in step.value.kwargs)]
                made.params = [made.params[k] for k in keep]
                step.value, found = Apply(made, tuple(given[k] for k in keep)), True
        if found:
            function.body = without_calls(function.body)


def _passed(operand):
    """What a function that is called is told of an argument: whole numbers, names and objects are known to it."""
    known = isinstance(operand, Const) and type(operand.value) is not float
    return Opaque(operand.value) if known else fact_of(operand)


class _Same:
    """An object as a key: itself and no other."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


def _kind_of(operand):
    """What a function that is called is made for: dtype, rank and lengths of an array, the value of a constant."""
    if isinstance(operand, Const) and type(operand.value) is float:
        return float
    if isinstance(operand, Const):
        return type(operand.value), operand.value if type(operand.value) in (int, bool, str) else _Same(operand.value)
    fact = operand.fact
    lengths = [d.normal() for d in (*fact.dims, *([fact.length] if fact.length is not None else []))]
    return np.dtype(fact.dtype), fact.weak, fact.rank, tuple((n.symbol, n.offset) for n in lengths)
