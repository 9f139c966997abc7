# SPDX-License-Identifier: Apache-2.0
"""vmap: values that differ between examples get a batch axis in front, operations on them their whole-batch form.

Values that are the same for all examples are computed once.  Calls without a whole-batch form, and control flow that
differs between examples, become a loop over the examples (examples.py).

>>> from gradscribe.ast_transform.examples import batched, show
>>> print(show(batched("def f(W, x): return np.tanh(W @ x)", np.ones((2, 3)), np.ones((5, 3)), axes=(None, 0))))
vmap_f(W, x):
    n_0 = shape_of(x, 0)
    transpose_W = np.transpose(W)
    z = x @ transpose_W
    tanh_z = np.tanh(z)
    return tanh_z
"""
import builtins
import inspect
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.draw import draws
from gradscribe.ast_transform.core.form import (
    TEMPORARY,
    UNDEFINED,
    Apply,
    Const,
    Effect,
    Function,
    Let,
    Pack,
    Param,
    Var,
    all_made,
    all_reads,
    astray,
    copied,
    is_application,
    made,
    operands,
    rebuilt,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Listed, Opaque, Sequence, Stack
from gradscribe.ast_transform.core.operations import (
    as_array,
    both,
    either,
    no_elements,
)
from gradscribe.ast_transform.core.rule import SEQUENCE, ByExample
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.callees import (
    are_its_own,
    in_place_of_calls,
    inlined,
    is_call,
    stands_alone,
    without_calls,
)
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.vmap.control import Control
from gradscribe.ast_transform.passes.vmap.examples import Examples, is_no_list
from gradscribe.ast_transform.passes.vmap.operations import SPECIAL, WHOLE, Operations
from gradscribe.ast_transform.passes.vmap.over import Over
from gradscribe.ast_transform.passes.vmap.own import OwnRules
from gradscribe.ast_transform.passes.vmap.varies import (
    Varies,
    all_of,
    brings_batch,
    differs,
    is_over,
    joined,
    keys_of,
    part_of,
)
from gradscribe.ast_transform.reader.derivatives import CustomFunction
from gradscribe.ast_transform.reader.operands import settle
from gradscribe.ast_transform.reader.rule_inlining import read_part
from gradscribe.ast_transform.source.diagnose import LanguageError, TransformError

ARRAYS = {                              # functions of Python numbers -> the equivalent functions of arrays
    operator.not_: np.logical_not, both: np.logical_and, either: np.logical_or,
    builtins.max: np.maximum, builtins.min: np.minimum,
    math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite,
}
OF_NUMBERS = {math.hypot: np.hypot}      # functions of math that share no record with NumPy's
SHORT = 16                              # entries at most of an array that compiled code holds in registers
CASTS = {float: float, int: int, complex: complex, bool: bool, operator.truth: bool}


class Batch(Examples, Operations, Over, OwnRules, Control):
    def __init__(self, reader, label, axis=None, strategy="auto", reason="strategy='loop'"):
        self.reader, self.label, self.strategy, self.build = reader, label, strategy, reader.build
        self.axis, self.reason = axis, reason
        self.new, self.scope = {}, []

    def run(self, function, mapped, length, outputs):
        """The function over a batch.

        mapped: {variable of a parameter that differs: its mask} (varies.py); length: the number of examples;
        outputs(result, place): gives the batched result, by place(leaf, axis) for each leaf
        """
        try:
            return self.attempt(function, mapped, length, outputs)
        except ByExample as reason:
            self.__init__(self.reader, self.label, self.axis, "loop", str(reason))
            return self.attempt(function, mapped, length, outputs)

    def attempt(self, function, mapped, length, outputs):
        env, self.function = {}, function
        self.forms = {}                 # (callee, which arguments differ) -> its form for a batch, or None
        body = without_calls(copied(function.body, env), plain=self.strategy == "loop")
        self.length, self.count, again = length, None, any(map(is_call, walk(body)))
        while again:                    # a callee that is inlined may call others
            self.varies = Varies(body, mapped, self.axis, self.masks_by_own_rule)
            body, again = self.with_batches(body)
        body = self.rules_over(body)
        result = substituted(function.result, env)
        self.build.made.update((s.targets[0], s.value) for s in body if isinstance(s, Let) and len(s.targets) == 1)
        if self.strategy == "auto" and self.reader.unroll and few_numbers(body) and not any(map(self.is_over, body)):
            raise ByExample("each is a few numbers")
        self.length, self.count, self.unset = length, None, unset_values(body)
        self.varies = Varies(body, mapped, self.axis, self.masks_by_own_rule)
        params = []
        for p in function.params:
            var = p.value
            if differs(self.varies.of(var)):
                self.new[var] = var = Var(var.hint, self.fact(var.fact, self.varies.of(var)), var.kind)
            params.append(Param(p.name, var, p.keyword))
            if isinstance(var, Var):
                self.scope.append(var)
        self.build.block = out = []
        self.count = self.number(params)
        if isinstance(self.count, Var):
            self.scope.append(self.count)
        self.reads = {}
        for step in body:
            for v in all_reads(step):
                self.reads[v] = self.reads.get(v, 0) + 1
        for v in operands(result):
            self.reads[v] = self.reads.get(v, 0) + 1
        whole = self.whole_loop(function, body, result)
        if not whole:
            self.block(body)
        whole = outputs(result, self.placed)
        self.build.block, self.build.origin = out, None
        return Function(self.label, params, out, whole, function.about, dict(function.notes))

    def with_batches(self, body):
        """The body with callees inlined that have no batched form."""
        def instead(step, callee):
            differing = () if isinstance(callee, CustomFunction) else self.differing(step)
            return inlined(step) if differing and self.batch_of(callee, differing) is None else None
        return in_place_of_calls(body, instead)

    def differing(self, step):
        return tuple(k for k, a in enumerate(step.value.args) if differs(self.varies.of(a)))

    def batch_of(self, callee, differing):
        """The batched form of a callee, for arguments that differ by number; None if it is to be inlined."""
        key = callee, differing
        if key not in self.forms:
            self.forms[key] = None
            self.forms[key] = self.made_batch(callee, differing) if stands_alone(
                callee) and not calls_over(callee, self.axis) else None
        return self.forms[key]

    def made_batch(self, callee, differing):
        inner = type(self)(self.reader, f"vmap_{callee.label}", self.axis)
        several, block, origin = isinstance(callee.result, Pack), self.build.block, self.build.origin

        def outputs(result, place):
            found = tuple(inner.whole(r, True) for r in (result.items if several else (result,)))
            return Pack("tuple", found) if several else found[0]
        try:
            made = inner.attempt(callee, {callee.params[k].value: True for k in differing}, self.length, outputs)
        except (ByExample, TransformError):
            return None                 # inlined, parts of it may have a whole-batch form
        finally:
            self.build.block, self.build.origin = block, origin
        results = made.result.items if several else (made.result,)
        if not are_its_own(results, made.params):
            return None
        made.notes = {"fresh": True, "owns": True, "nests": not several}
        return made

    def call(self, step):
        """Calls the batched form of a user's function."""
        differing = self.differing(step)
        given = [self.whole(a, True) if k in differing else self.op(a) for k, a in enumerate(step.value.args)]
        made, facts = self.batch_of(step.value.function, differing), [self.fact(t.fact, True) for t in step.targets]
        found = self.build.several([t.hint for t in step.targets], Apply(made, tuple(given)), facts)
        for target, value in zip(step.targets, found):
            self.define(target, value)
            value.kind = target.kind

    def rules_over(self, body):
        """The body with functions inlined that have a custom derivative and communicate between examples: their rule
        is for one example, not for the batch.  Others with a custom derivative are called for each example.
        """
        out = []
        for step in body:
            step = rebuilt(step, {}, self.rules_over)
            callee = step.value.function if isinstance(step, Let) and isinstance(step.value, Apply) else None
            if isinstance(callee, CustomFunction) and callee.rule.mode in ("vjp", "jvp") and calls_over(
                    callee, self.axis):
                self.reader.context.without_rule = callee.label, self.axis, step.origin
                plain = Function(callee.label, callee.params, callee.body, callee.result)
                out += self.rules_over(without_calls(inlined(Let(step.targets, Apply(plain, step.value.args),
                                                                 step.origin))))
            else:
                out.append(step)
        return out

    def number(self, params):
        """The number of examples as an operand."""
        n = self.length.normal()
        if n.symbol is None:
            return Const(n.offset)

        def found(var, mask):
            if isinstance(var.fact, Sequence):
                for key, element, m in zip(keys_of(var.fact), var.fact.elements, mask):
                    if differs(m):
                        get = getattr if var.fact.kind == "record" else operator.getitem
                        return found(self.build.let("item", Apply(get, (var, Const(key))), element), m)
            return self.build.length(var, 0)
        for p, q in zip(self.function.params, params):
            if differs(self.varies.of(p.value)):
                return found(q.value, self.varies.of(p.value))
        raise AssertionError("nothing differs")

    def placed(self, leaf, axis):
        """(whether a result differs, its operand with the batch along an axis); axis None: the operand as it is."""
        mask = self.varies.of(leaf)
        fact = fact_of(leaf)
        if not isinstance(fact, (Array, Sequence)) or axis is None:
            return differs(mask), self.op(leaf)
        if isinstance(fact, Sequence) or isinstance(fact, Listed):
            return differs(mask), self.whole(leaf, all_of(fact))
        value = self.whole(leaf, True)
        if axis % (fact.rank + 1):
            value = self.build.apply(np.moveaxis, value, Const(0), Const(axis))
        return True, value

    # values

    def fact(self, fact, mask):
        """The fact of a value with the batch axis in front."""
        if not differs(mask):
            return fact
        if isinstance(fact, Sequence):
            return Sequence(fact.kind, tuple(map(self.fact, fact.elements, mask)), fact.keys, fact.cls)
        if isinstance(fact, Stack):
            return Stack(self.fact(fact.element, mask))
        if isinstance(fact, Listed):
            return Listed(np.dtype(fact.dtype), (fact.dims[0], self.length, *fact.dims[1:]))
        return Array(np.dtype(fact.dtype), (self.length, *fact.dims))

    def op(self, node):
        return substituted(node, self.new)

    def like(self, var):
        """A new variable for the batched value of another."""
        new = Var(var.hint, self.fact(var.fact, self.varies.of(var)), var.kind, var.again)
        self.new[var] = new
        return new

    def define(self, var, value):
        """Makes a value the batched form of a variable: gives it the name, and the dtype of one example."""
        want = self.fact(var.fact, self.varies.of(var))
        if isinstance(want, Array) and isinstance(value, (Var, Const)):
            if fact_of(value).rank != want.rank:
                raise ByExample("its axes are not those of one example with one more")
            if np.dtype(fact_of(value).dtype) != want.dtype:
                value = self.build.cast(value, want.dtype, var.hint)
        if isinstance(value, Var) and value in self.build.made and value.kind == TEMPORARY and \
                value not in self.scope:
            value.hint, value.kind = var.hint, var.kind
        self.new[var] = value
        if isinstance(value, Var):
            self.scope.append(value)

    def whole(self, node, mask, fact=None):
        """An operand whose parts have the batch axis wherever the mask says so."""
        if isinstance(node, Pack):
            masks = mask if isinstance(mask, tuple) else [mask] * len(node.items)
            return Pack(node.kind, tuple(map(self.whole, node.items, masks)), node.keys, node.cls)
        have = self.varies.of(node)
        if not differs(mask) or have == mask or node is UNDEFINED:
            return self.op(node)
        if isinstance(node, Var) and isinstance(node.fact, Sequence):
            parts = []
            for key, element, m in zip(keys_of(node.fact), node.fact.elements, mask):
                get = getattr if node.fact.kind == "record" else operator.getitem
                part = self.build.let("item", Apply(get, (node, Const(key))), element)
                self.varies.masks[part] = part_of(node.fact, have, key)
                if differs(self.varies.of(part)):
                    held_ = self.op(node)
                    self.build.block.pop()
                    self.new[part] = self.build.let("item", Apply(get, (held_, Const(key))),
                                                    self.fact(element, self.varies.of(part)))
                parts.append(self.whole(part, m))
            return Pack(node.fact.kind, tuple(parts), node.fact.keys, node.fact.cls)
        given = self.op(node)
        held_fact = fact or fact_of(node)
        if isinstance(held_fact, Opaque):
            return given
        if not isinstance(held_fact, Array) or isinstance(held_fact, Listed):
            made = self.build.made.get(given)
            if isinstance(made, Apply) and made.function is no_elements:
                return given            # an empty list needs no batch axis
            raise ByExample("a list is the same for all examples in one place and differs in another")
        return self.repeated(given, held_fact)

    def repeated(self, value, fact):
        """A value that is the same for all examples, repeated along a batch axis."""
        dims = [self.build.length(value, k) for k in range(fact_of(value).rank)] if isinstance(value, Var) else []
        shape = Pack("tuple", (self.count, *dims)) if dims else self.count
        dtype = np.dtype(fact.dtype)
        hint = value.hint if isinstance(value, Var) else "t"
        want = Array(dtype, (self.length, *fact.dims))
        made = self.build.definition(value) if isinstance(value, Var) else None
        if isinstance(value, Const) and type(value.value) in (int, float) and value.value == 0 and \
                math.copysign(1, value.value) > 0 or \
                isinstance(made, Apply) and made.function in (np.zeros, np.zeros_like):
            words = {} if dtype == np.float64 else {"dtype": Const(dtype)}
            return self.build.apply(np.zeros, shape, hint=hint, fact=want, **words)
        if is_application(made, np.empty) and made.args:     # no contents to copy
            lengths = made.args[0].items if isinstance(made.args[0], Pack) else (made.args[0],)
            shape = Pack("tuple", (self.count, *map(self.op, lengths)))
            words = {} if dtype == np.float64 else {"dtype": Const(dtype)}
            return self.build.apply(np.empty, shape, hint=hint, fact=want, kind=value.kind, **words)
        words = {} if fact_of(value).dtype == dtype or dtype == np.dtype(fact_of(value).dtype) else \
            {"dtype": Const(dtype)}
        return self.build.apply(np.full, shape, value, hint=hint, fact=want, **words)

    # statements

    def block(self, body):
        """Batches a block; statements that need a loop over the examples share one."""
        mark, k = len(self.scope), 0
        alone = [self.alone(step) for step in body]
        lists = self.used_up(body, alone)
        while k < len(body):
            if alone[k] is None:
                self.step(body[k])
                k += 1
                continue
            end = next((n for n in range(k, len(body)) if self.is_over(body[n])), len(body))
            last = max((n for n in range(k, end) if alone[n] is not None), default=None)
            if last is None:
                what = "a function with a custom batching rule" if any(
                    isinstance(s, Let) and brings_batch(s.value) for s in walk([body[k]])) else \
                    f"a function over the axis {self.axis!r}"
                raise LanguageError(f"{what} in control flow that differs between the examples: {alone[k]}",
                                    body[k].origin, "Call it outside.")
            group, inside = [], set()
            for step in body[k:last + 1]:
                if step in lists or self.batched(step) or any(v in inside for v in all_reads(step)):
                    group.append(step)
                    inside.update(all_made([step]))
                else:
                    self.step(step)
            self.by_example(group, alone[k])
            k = last + 1
        return mark

    def used_up(self, body, alone):
        """The statements that make a list which is the same for all examples, but which a loop over them changes.  Each
        example needs a copy of it, so these statements belong in that loop, and are marked in `alone`.
        """
        maker = {v: k for k, s in enumerate(body) for v in all_made([s])}
        lists: set = set()
        while True:
            first = next((k for k, reason in enumerate(alone) if reason is not None), len(body))
            inside, found = set(), set()
            for step in body[first:]:
                if step in lists or self.batched(step) and not self.is_over(step) or any(
                        v in inside for v in all_reads(step)):
                    inside.update(all_made([step]))
                    found.update(maker[v] for v in all_reads(step) if isinstance(v.fact, Stack) and v in maker and
                                 not is_no_list(self.build.made.get(v)) and not self.batched(body[maker[v]]))
            found = {k for k in found if body[k] not in lists}
            if not found:
                return lists
            for k in found:
                alone[k] = alone[k] or alone[first]
                lists.add(body[k])

    def batched(self, step):
        """Whether a statement reads or makes values that differ, or draws."""
        return any(differs(self.varies.of(v)) for v in (*all_reads(step), *all_made([step]))) or draws([step])

    def step(self, step):
        before = self.build.origin
        self.build.origin = step.origin
        getattr(self, "step_" + type(step).__name__)(step)
        self.build.origin = before

    def step_Effect(self, step):
        if any(differs(self.varies.of(v)) for v in operands(step.value)):
            raise ByExample("an effect differs between the examples")
        value = substituted(step.value, self.new)
        self.build.block.append(step if value is step.value else Effect(value, step.origin, step.note))

    def step_Let(self, step):
        value = step.value
        if brings_batch(value) and any(differs(self.varies.of(v)) for v in operands(value)):
            self.by_own_rule(step, value)
            return
        if is_over(value, self.axis) and not brings_batch(value):
            self.over(step, value)
            return
        if not any(differs(self.varies.of(v)) for v in operands(value)):
            new = substituted(value, self.new)
            self.build.block.append(step if new is value else Let(step.targets, new, step.origin))
            self.scope += step.targets
            return
        try:
            self.rewritten(step, value)
        except ByExample as reason:
            self.by_example([step], str(reason))

    def rewritten(self, step, value):
        first = step.targets[0]
        if isinstance(value, Var):
            self.new[first] = self.op(value)
        elif isinstance(value, Pack):
            self.new[first] = self.build.let(first.hint, self.whole(value, self.varies.of(first)),
                                             self.fact(first.fact, self.varies.of(first)), first.kind)
        elif is_call(step):
            self.call(step)
        elif value.function in SPECIAL:
            getattr(self, SPECIAL[value.function])(step, value)
        else:
            self.by_rule(step, value)

    def of_arrays(self, value):
        """A call in which arrays replace lists that differ: the batch axis is first in arrays, second in lists."""
        env = {}
        for v in operands(value):
            if isinstance(v.fact, Listed) and differs(self.varies.of(v)) and v not in env:
                env[v] = Var(v.hint, Array(np.dtype(v.fact.dtype), v.fact.dims))
                self.op_as_array(Let((env[v],), None), Apply(as_array, (v,)))
                self.varies.masks[env[v]] = True
        return substituted(value, env)

    def by_rule(self, step, value):
        function, first = value.function, step.targets[0]
        if isinstance(first.fact, Listed):
            raise ByExample(f"{spelled(function)} gives a list")
        value = self.of_arrays(value)
        if isinstance(function, CustomFunction):
            raise ByExample(f"{function.label} is called for each" if function.rule.mode == "each" else
                            f"{function.label} has a custom derivative")
        rule = rule_of(function)
        if function in CASTS and len(value.args) == 1:
            self.define(first, self.build.cast(self.op(value.args[0]), np.dtype(CASTS[function]), first.hint))
            return
        part = None if rule is None else rule.parts.get("batch")
        if part is None and entrywise(function, rule):
            self.define(first, self.entries(function, rule, value, first.fact))
            return
        if part is None:
            raise ByExample(f"{spelled(function)} has no form for a whole batch")
        given = self.given_to(part, rule, value, first)
        try:
            made = settle(self.reader, read_part(self.reader, rule, "batch", given))
        except TransformError as error:                 # what the part cannot do, a loop can
            raise ByExample(str(error).splitlines()[0]) from None
        if len(step.targets) > 1:
            for target, item in zip(step.targets, made.items):
                self.define(target, settle(self.reader, item))
        elif isinstance(first.fact, Sequence):
            raise ByExample(f"{spelled(function)} gives several results")
        else:
            self.define(first, made)

    def given_to(self, part, rule, value, first):
        """The arguments for a record's part `batch`, by name; first: the result of the call."""
        function, wanted = value.function, wanted_of(part)
        bound = dict(rule.signature.bind(*value.args, **dict(value.kwargs)).arguments)
        self.check_lists(function, rule, bound)
        names = [n for n, node in bound.items() if any(differs(self.varies.of(v)) for v in atoms(node))]
        given = {n: tuple(self.in_double(function, self.op(v)) for v in node) if isinstance(node, tuple) else
                 self.in_double(function, self.part_of(node)) for n, node in bound.items()}
        given["first"] = next(iter(given.values()))
        if "shape" in bound and "shape" in wanted:
            given["shape"] = self.lengths(bound["shape"], value, first)
        first_name = next(iter(bound))
        for n in bound:
            if n not in wanted and not (n == first_name and "first" in wanted):
                raise ByExample(f"{spelled(function)} with {n}= has no form for a whole batch")
        if "rank" in wanted:
            given["rank"] = Const(first.fact.rank)
        empty = inspect.Parameter.empty
        given.update((n, Const(p.default)) for n, p in rule.signature.parameters.items() if n not in given and
                     n in wanted and wanted[n].default is empty and p.default is not empty)
        if "count" in wanted:
            given["count"] = self.count
        if "units" in wanted:
            given["units"] = tuple(Const(k) for k, d in enumerate(fact_of(value.args[0]).dims) if d.is_unit)
        given["flags"] = tuple(Const(differs(self.varies.of(v))) for node in bound.values() if isinstance(node, tuple)
                               for v in node)
        given["batched"] = tuple(map(Const, names))
        return given

    def check_lists(self, function, rule, bound):
        """Raises ByExample where a list that differs between the examples is an argument that no array replaces."""
        if astray(bound, lambda v: differs(self.varies.of(v))):
            raise ByExample(f"a list inside a list differs in {spelled(function)}")
        if any(isinstance(node, Pack) and rule.takes(n) != SEQUENCE and n != "shape" and differs(self.varies.of(node))
               for n, node in bound.items()):
            raise ByExample(f"a list of places or counts differs in {spelled(function)}")

    def lengths(self, shape, value, target):
        """A shape as a tuple of lengths; computes a length of -1, which NumPy cannot if the batch is empty."""
        items = list(shape.items) if isinstance(shape, Pack) else [shape]
        if isinstance(shape, Const):
            items = [Const(n) for n in (shape.value if isinstance(shape.value, tuple) else (shape.value,))]
        if any(differs(self.varies.of(n)) for n in items):
            raise ByExample("a shape differs")
        items = [self.op(n) for n in items]
        for k, n in enumerate(items):
            if not isinstance(n, Const) or n.value != -1:
                continue
            known = self.length_of(target.fact.dims[k])
            if known is None:
                known, given = Const(1), self.op(value.args[0])
                for axis in range(1, fact_of(given).rank):
                    known = self.build.multiply(known, self.build.length(given, axis))
                for other in [*items[:k], *items[k + 1:]]:
                    if not isinstance(other, Const) or other.value != 1:
                        known = self.build.apply(operator.floordiv, known, other)
            items[k] = known
        return tuple(items)

    def part_of(self, node):
        """An operand for a rule's part; either all parts of a list have the batch axis, or none."""
        if isinstance(node, (Pack, tuple)):
            mask = False
            for v in atoms(node):
                mask = joined(mask, self.varies.of(v))
            return self.whole(node, mask)
        return self.op(node)

    def entries(self, function, rule, value, fact):
        """An elementwise call: operands of lower rank get the axes that they lack after the batch axis.

        Python bools are converted to ints, since True + True is 2 in Python, but True for arrays.
        """
        rank, numbers = fact.rank, [f for f in map(fact_of, value.args) if isinstance(f, Array)]
        function, called = ARRAYS.get(function, function), function
        if of_floats(function) and rule is not None:
            function = next((f for f in rule.functions if isinstance(f, np.ufunc)), OF_NUMBERS.get(function))
            if function is None:
                raise ByExample(f"{spelled(value.function)} is a function of one number")
        args = [self.aligned(a, rank) for a in value.args]
        if fact.kind != "b" and len(numbers) == len(args) and all(f.kind == "b" and f.weak for f in numbers):
            args = [self.build.cast(a, np.dtype(int)) if isinstance(a, Var) else a for a in args]
        args = [self.in_double(called, a) for a in self.as_met(called, rule, value.args, args)]
        words = {k: self.aligned(a, rank) for k, a in value.kwargs}
        return self.build.call(function, tuple(args), words)

    def as_met(self, function, rule, given, args):
        """The operands, with Python numbers that differ cast to the dtype that NumPy gives them beside the others: the
        batch of such a number is an array of doubles, which would widen float32.

        Source: NEP 50, promotion of Python numbers.
        """
        facts = [fact_of(a) for a in given]
        if of_floats(function) or not all(isinstance(f, Array) for f in facts) or not any(f.weak for f in facts) or all(
                f.weak or f.kind not in "fc" or np.finfo(f.dtype).bits == 64 for f in facts):
            return args
        kinds = [f.dtype if f.weak and f.kind != "b" else np.dtype(f.dtype) for f in facts]
        ufunc = function if isinstance(function, np.ufunc) else next(
            (f for f in getattr(rule, "functions", ()) if isinstance(f, np.ufunc)), None)
        taken = [np.result_type(*(k(1) if isinstance(k, type) else k for k in kinds))] * len(args) if (
            ufunc is None or ufunc.nin != len(args)) else ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
        return [self.build.cast(a, t) if f.weak and t.kind in "fc" and t != np.dtype(f.dtype) and differs(
            self.varies.of(g)) else a for a, f, t, g in zip(args, facts, taken, given)]

    def in_double(self, function, node):
        """An operand as a function of `math` takes it: as doubles."""
        fact = fact_of(node) if isinstance(node, Var) else None
        if not of_floats(function) or not isinstance(fact, Array) or fact.kind != "f" or fact.weak or \
                fact.dtype == np.float64:
            return node
        return self.build.cast(node, np.dtype(float))

    def aligned(self, node, rank):
        if isinstance(node, Pack):
            return node if not differs(self.varies.of(node)) else self.refuse_pack()
        if not differs(self.varies.of(node)):
            return self.op(node)
        missing = rank - node.fact.rank
        value = self.op(node)
        if missing <= 0:
            return value
        return self.build.item(value, Pack("tuple", (Const(WHOLE), *[Const(None)] * missing)))

    def refuse_pack(self):
        raise ByExample("a list of values that differ is an operand")


def calls_over(function, axis):
    """Whether a callee has an operation over the axis of that name, or calls a function that has."""
    values = [s.value for s in walk(function.body) if isinstance(s, Let)]
    return any(is_over(v, axis) or isinstance(v, Apply) and isinstance(v.function, Function) and
               calls_over(v.function, axis) for v in values)


def few_numbers(body):
    """Whether an example is straight-line code on short vectors, which compiled code keeps in registers.

    Not if all values are numbers: whole-batch code vectorises these.
    """
    facts = [v.fact for step in body for v in made(step)]
    if not all(isinstance(step, Let) for step in body) or not all(isinstance(f, Array) for f in facts):
        return False
    lengths = [[d.normal() for d in f.dims] for f in facts]
    return any(lengths) and all(n.symbol is None for dims in lengths for n in dims) and \
        all(math.prod(n.offset for n in dims) <= SHORT for dims in lengths) and \
        not any(module_of(s.value).startswith(("numpy.linalg", "scipy")) for s in body)


def module_of(value):
    return getattr(getattr(value, "function", None), "__module__", None) or ""


def entrywise(function, rule):
    if rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise")):
        return True
    return function in ARRAYS or isinstance(function, np.ufunc) and function.signature is None


def of_floats(function):
    return getattr(function, "__module__", None) == "math"


def atoms(node):
    if isinstance(node, tuple):
        for n in node:
            yield from atoms(n)
    else:
        yield from operands(node)


def wanted_of(part):
    return inspect.signature(part).parameters

