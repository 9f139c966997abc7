"""Branches and loops of the user's function, with the values that they join and carry.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, n):\\n    while x < n:\\n        x = x * 2 if x > 1 else x + 1\\n    return x"
>>> print(show(form(text, 1.0, 5.0)))
f(x, n):
    enter x_1 = x
    while:
        t = x_1 < n
    test t:
        t_1 = x_1 > 1
        if t_1:
            t_2 = x_1 * 2
        else:
            t_3 = x_1 + 1
        join value = t_2 | t_3
        next x_1 = value
    leave x_2 = x_1
    return x_2
"""
import operator

import gast
import numpy as np

from gradscribe.ast_transform.core.form import (
    SAVED,
    TEMPORARY,
    UNDEFINED,
    USER,
    Apply,
    Carry,
    Const,
    For,
    If,
    Join,
    Let,
    Slice,
    Var,
    While,
    replaced,
    walk,
)
from gradscribe.ast_transform.core.kinds import (
    Array,
    Length,
    Mismatch,
    Sequence,
    Stack,
    join,
    same_dtype,
    settled,
    spell,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.operations import both, either, run_length
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.carries import NotALoop, _undefined
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.storage import Loop, NeedsStore, _is_array
from gradscribe.ast_transform.passes.targets import assigned, assigned_plainly, augmented, name_after
from gradscribe.ast_transform.passes.values import Conflict, Part, RangeValue, Struct, Walk
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError

RAISED = object()
UNROLLED = 64                       # a loop that cannot stay a loop is written out up to this many passes


class Returned:
    def __init__(self, value):
        self.value = value


class Flow:
    # tests

    def truth(self, value, node):
        """A test: known, or a truth value when running."""
        value = self.settle(value)
        if isinstance(value, Const):
            return Const(bool(value.value))
        if isinstance(value, Struct):
            return Const(bool(value.items))
        if not isinstance(value, Var) or not isinstance(value.fact, Array):
            self.fail(LanguageError, "this test is not known when transforming", node)
        if any(not d.is_unit for d in value.fact.dims):
            self.fail(
                ShapeError, "the truth of an array of several elements is ambiguous", node, "Use np.any or np.all."
            )
        if value.fact.kind == "b":
            return value
        return self.build.apply(operator.ne, value, Const(0))

    def negated(self, test):
        if isinstance(test, Const):
            return Const(not test.value)
        made = self.build.definition(test)
        if made and made.function is operator.not_:
            return made.args[0]
        return self.build.apply(operator.not_, test, fact=Array(bool))

    def both(self, value, other, node):
        """value and other(), where other is evaluated only if value holds."""
        return self.short(value, other, node, True)

    def either(self, value, other, node):
        return self.short(value, other, node, False)

    def short(self, value, other, node, conjunction):
        test = self.truth(value, node)
        if isinstance(test, Const):
            return other() if test.value == conjunction else value
        outer, self.build.block = self.build.block, []
        try:
            right = self.settle(other())
        finally:
            steps, self.build.block = self.build.block, outer
        right_is_test = isinstance(right, (Var, Const)) and getattr(fact_of(right), "kind", "") == "b"
        left_is_test = isinstance(value, Var) and value.fact.kind == "b"
        if right_is_test and left_is_test and all(_harmless(s) for s in steps):
            self.build.block += steps
            if isinstance(right, Const):
                return test if right.value == conjunction else right
            return self.build.apply(both if conjunction else either, test, right, fact=Array(bool))
        if not isinstance(right, (Var, Const)):
            self.fail(LanguageError, "this part of a test is not a truth value or a number", node)
        return self.joined_value(test, steps if conjunction else [], right if conjunction else value,
                                 [] if conjunction else steps, value if conjunction else right, node)

    def choose(self, test, then, orelse, node):
        """A value that depends on a test."""
        outer, arms = self.build.block, []
        for evaluate in (then, orelse):
            self.build.block = []
            try:
                value = self.settle(evaluate())
                arms.append((self.build.block, value))
            finally:
                self.build.block = outer
        (a, x), (b, y) = arms
        return self.joined_value(test, a, x, b, y, node)

    def joined_value(self, test, then, x, orelse, y, node):
        branch = If(test, then, orelse, [], self.build.origin)
        self.build.block.append(branch)
        value = self.met(x, y, "value", branch.joins, TEMPORARY)
        if isinstance(value, Conflict):
            self.fail(ShapeError, f"the result is {value.reason}", node)
        return value

    # branches

    def exec_If(self, node):
        test = self.truth(self.eval(node.test), node.test)
        if isinstance(test, Const):
            return self.block(node.body if test.value else node.orelse)
        origin, before = self.build.origin, self.snapshot()
        (then, outcome_1, state_1), (orelse, outcome_2, state_2) = (
            self.arm(before, body) for body in (node.body, node.orelse))
        branch = If(test, then, orelse, [], origin)
        self.build.block.append(branch)
        if outcome_1 is RAISED and outcome_2 is RAISED:
            return RAISED
        self.merge(before, (state_1, outcome_1), (state_2, outcome_2), branch)
        returned = [o for o in (outcome_1, outcome_2) if isinstance(o, Returned)]
        if len(returned) == 2:
            value = self.met(outcome_1.value, outcome_2.value, self.result_name(), branch.joins, USER)
            if isinstance(value, Conflict):
                self.fail(
                    ShapeError, f"the function returns {value.reason}", node, "Return one kind of value on every path."
                )
            return Returned(value)
        if returned:
            raised = RAISED in (outcome_1, outcome_2)
            if not raised:
                missing = Returned(Const(None))
                first = outcome_1 if outcome_1 in returned else missing
                second = outcome_2 if outcome_2 in returned else missing
                value = self.met(first.value, second.value, self.result_name(), branch.joins, USER)
                self.fail(ShapeError, f"the function returns {getattr(value, 'reason', 'nothing on one path')}", node,
                          "Return a value on every path.")
            value = returned[0].value
            sides = (value, UNDEFINED) if returned[0] is outcome_1 else (UNDEFINED, value)
            return Returned(self.met(*sides, self.result_name(), branch.joins, USER))
        return None

    def result_name(self):
        return "result"

    def arm(self, before, body):
        outer, self.build.block = self.build.block, []
        self.restore(before)
        before[:] = self.snapshot()
        try:
            outcome = self.block(body)
            return self.build.block, outcome, self.snapshot()
        finally:
            self.build.block = outer

    def merge(self, before, first, second, branch):
        """Join what the two arms leave in every variable."""
        (state_1, outcome_1), (state_2, outcome_2) = first, second
        memo = {}
        for (frame, env_1), (_, env_2) in zip(state_1, state_2):
            if outcome_1 is RAISED:
                env_1 = {}
            if outcome_2 is RAISED:
                env_2 = {}
            env = {}
            for name in dict.fromkeys([*env_1, *env_2]):
                a, b = env_1.get(name, UNDEFINED), env_2.get(name, UNDEFINED)
                if outcome_1 is RAISED and self.unchanged(before, frame, name, b):
                    a = b
                if outcome_2 is RAISED and self.unchanged(before, frame, name, a):
                    b = a
                env[name] = self.met(a, b, name, branch.joins, USER, memo)
            frame.env.clear()
            frame.env.update(env)

    @staticmethod
    def unchanged(before, frame, name, value):
        return any(f is frame and env.get(name) is value for f, env in before)

    def met(self, a, b, hint, joins, kind, memo=None):
        """One value for what may be either."""
        memo = {} if memo is None else memo
        if a is b:
            return a
        if isinstance(a, Conflict) or isinstance(b, Conflict):
            return a if isinstance(a, Conflict) else b
        if isinstance(a, Part) or isinstance(b, Part):
            if isinstance(a, Part) and isinstance(b, Part) and a.parent is b.parent and a.key.value == b.key.value:
                return a
            return Conflict("a part of a container in one branch only")
        if isinstance(a, Struct) or isinstance(b, Struct):
            return self.met_structs(a, b, hint, joins, kind, memo)
        if (
            isinstance(a, Const)
            and isinstance(b, Const)
            and type(a.value) is type(b.value)
            and _equal(a.value, b.value)
        ):
            return a
        if not (isinstance(a, (Var, Const)) and isinstance(b, (Var, Const))):
            return Conflict(f"{self.spell(a)} in one branch and {self.spell(b)} in the other")
        key = (id(a), id(b))
        if key in memo:
            return memo[key]
        first, second = _undefined(a), _undefined(b)
        try:
            fact = fact_of(b) if first else fact_of(a) if second else join(fact_of(a), fact_of(b), f"?{hint}")
            if not isinstance(fact, (Array, Sequence, Stack)):
                raise Mismatch(f"{self.spell(a)} in one branch and {self.spell(b)} in the other")
        except Mismatch as error:
            if first or second:
                return Conflict("set in one branch only")
            return Conflict(str(error).replace("place", "branch"))
        joined = self.same_view(a, b, hint, joins, kind, memo)
        if joined is not None:
            memo[key] = joined
            return joined
        var = Var(hint.strip(), fact, kind)
        self.tokens[var] = frozenset({var}).union(*(self.storages(v) for v in (a, b) if isinstance(v, Var)))
        joins.append(Join(var, a, b))
        if all(isinstance(v, Const) or not self.has_alias(v) for v in (a, b)):
            self.owned.add(var)
        memo[key] = var
        return var

    def same_view(self, a, b, hint, joins, kind, memo):
        """The same view of an array that one arm has changed is that view of what the branch leaves."""
        if not (isinstance(a, Var) and isinstance(b, Var)):
            return None
        (first, path_1), (second, path_2) = self.base_path(a), self.base_path(b)
        if not path_1 or len(path_1) != len(path_2) or not all(
                m.function is n.function and len(m.args) == len(n.args) and m.kwargs == n.kwargs and
                all(x is y for x, y in zip(m.args[1:], n.args[1:])) for (m, _), (n, _) in zip(path_1, path_2)):
            return None
        base = self.met(first, second, first.hint, joins, kind, memo)
        return self.again(path_1, base) if isinstance(base, Var) else None

    def met_structs(self, a, b, hint, joins, kind, memo):
        if isinstance(a, Struct) and isinstance(b, Struct) and (a.kind, a.keys, a.cls, len(a.items)) == \
                (b.kind, b.keys, b.cls, len(b.items)):
            key = (id(a), id(b))
            if key not in memo:
                whole = a.whole if a.whole is b.whole and a.version == b.version == 0 else None
                memo[key] = new = Struct(a.kind, [], a.keys, a.cls, whole)
                if whole is not None:
                    new.items = list(a.items)
                else:
                    new.items = [self.met(x, y, hint, joins, kind, memo) for x, y in zip(a.items, b.items)]
            return memo[key]
        if _undefined(a) or _undefined(b):
            held = b if _undefined(a) else a
            sides = [(UNDEFINED, i) if _undefined(a) else (i, UNDEFINED) for i in held.items]
            return Struct(held.kind, [self.met(x, y, hint, joins, kind, memo) for x, y in sides], held.keys, held.cls)
        return Conflict(f"{self.spell(a)} in one branch and {self.spell(b)} in the other")

    # what a loop walks over

    def walk(self, value, node):
        """How a for loop or a comprehension goes through a value."""
        if isinstance(value, Walk):
            return value
        if isinstance(value, RangeValue):
            return self.range_walk(value, node)
        value = self.settle(value)
        if isinstance(value, Struct):
            if value.kind == "dict":
                return Walk([Const(k) for k in value.keys])
            walk = Walk(list(value.items))
            if value.whole is not None and value.version == 0 and value.items and not self.unroll:
                self.sequence_walk(walk, value)
            return walk
        if isinstance(value, Const) and not isinstance(value.value, np.ndarray):
            try:
                return Walk([self.lift(v, "item") for v in value.value])
            except TypeError:
                self.fail(LanguageError, f"{self.spell(value)} is not iterated over", node)
        if isinstance(value, Var) and isinstance(value.fact, Array):
            if not value.fact.dims:
                self.fail(ShapeError, "a scalar is not iterated over", node)
            fact = Array(
                np.dtype(value.fact.dtype),
                value.fact.dims[1:],
                unknown("?int") if value.fact.rank == 1 and value.fact.kind in "iu" else None,
            )
            return Walk(None, self.build.length(value, 0), (("row", fact, value),),
                        lambda index, items: items[0])
        self.fail(LanguageError, f"{self.spell(value)} is not iterated over", node)

    def sequence_walk(self, walk, value):
        """A container that the emitted code holds can stay a loop if its elements are of one kind."""
        facts = [i.fact if isinstance(i, Part) else None for i in value.items]
        if any(f is None for f in facts):
            return
        try:
            fact = facts[0]
            for other in facts[1:]:
                fact = join(fact, other, "?item")
        except Mismatch:
            return
        source = value.whole
        walk.count, walk.items = Const(len(value.items)), (("item", fact, source),)
        walk.bind = lambda index, items: self.whole(items[0]) if isinstance(items[0].fact, Sequence) else items[0]

    def range_walk(self, value, node):
        parts = [value.start, value.stop, value.step]
        start, stop, step = parts
        if isinstance(step, Const) and step.value == 1 and isinstance(start, Const) and start.value == 0:
            static = (
                [Const(k) for k in range(stop.value)] if isinstance(stop, Const) and stop.value <= UNROLLED else None
            )
            return Walk(static, stop, (), lambda index, items: index, True)
        static = None
        if all(isinstance(p, Const) for p in parts):
            values = range(*(p.value for p in parts))
            static = [Const(k) for k in values] if len(values) <= UNROLLED else None
            count = Const(len(values))
        else:
            count = self.build.apply(run_length, *parts, fact=Array(int, (), unknown("?count")))
        source = Apply(range, tuple(parts))
        return Walk(static, count, (("k", Array(int, (), unknown("?int")), source),), lambda index, items: items[0])

    def listed_walk(self, walk, node):
        """A walk over an array of known length, element by element."""
        count = walk.count
        if isinstance(count, Const) and count.value <= UNROLLED:
            return Walk(
                [
                    walk.bind(Const(k), [self.build.item(s, Const(k)) for _, _, s in walk.items])
                    for k in range(count.value)
                ]
            )
        self.fail(LanguageError, "this takes an array apart, and its length is not known when transforming", node,
                  "Write it as sum(...), as a loop, or as array operations.")

    def listed(self, value, node):
        """The elements of a value of known length."""
        if isinstance(value, Part):
            value = self.settle(value)
        if isinstance(value, Struct) and value.kind != "dict":
            return list(value.items)
        walk = self.walk(value, node)
        if walk.static is None and isinstance(value, Var):
            size = value.fact.dims[0].normal()
            if size.symbol is None:
                return [self.build.item(value, Const(k)) for k in range(size.offset)]
        return (walk if walk.static is not None else self.listed_walk(walk, node)).static

    # loops

    def exec_For(self, node):
        walk = self.walk(self.eval(node.iter), node.iter)
        if walk.static is not None and not walk.static:
            return None
        can_stay = walk.count is not None
        must = walk.static is None
        if not can_stay:
            return self.unrolled(node, walk)
        before, held = self.snapshot(), list(self.build.block)
        try:
            self.for_loop(node, walk)
        except (NotALoop, ShapeError, LanguageError) as error:
            if must:
                if isinstance(error, NotALoop):
                    passes = self.certain_passes(walk)
                    if passes is not None:
                        self.restore(before)
                        self.build.block[:] = held
                        return self.first_apart(node, walk, error) if passes else None
                    self.fail(LanguageError, str(error), node, "Use a loop whose number of passes is a literal.")
                raise
            self.restore(before)
            self.build.block[:] = held
            return self.unrolled(node, walk)

    def certain_passes(self, walk):
        """Whether a loop over an argument's axis runs at all, which the version then holds to; None if not certain."""
        if isinstance(walk.count, Const):
            return walk.count.value > 0
        fact = fact_of(walk.count)
        length = fact.length.normal() if fact.length is not None else None
        if length is None or length.symbol is None or not length.symbol.many or length.size is None:
            return None
        if not length.size:
            return False if unify(length, Length(None, 0)) else None
        length.symbol.least = max(length.symbol.least, 1 - length.offset)
        return True

    def first_apart(self, node, walk, reason):
        """The first pass before the loop, where it gives what is carried another kind."""
        try:
            self.assign(node.target, walk.bind(Const(0), [self.build.item(s, Const(0), h) for h, _, s in walk.items]))
            outcome = self.block(node.body)
            if outcome is not None:
                return outcome
            if isinstance(walk.count, Const) and walk.count.value == 1:
                return None
            rest = tuple((h, f, self.build.item(s, Slice(Const(1), None, None))) for h, f, s in walk.items)
            later = self.build.apply(operator.sub, walk.count, Const(1))
            return self.for_loop(node, Walk(None, later, rest, lambda index, items: walk.bind(
                self.build.apply(operator.add, index, Const(1)), items)))
        except NotALoop:
            self.fail(LanguageError, str(reason), node, "Use a loop whose number of passes is a literal.")

    def unrolled(self, node, walk):
        for value in walk.static:
            self.assign(node.target, self.settle(value))
            outcome = self.block(node.body)
            if outcome is not None:
                return outcome
        return None

    def for_loop(self, node, walk):
        origin = self.build.origin
        target = node.target.id if isinstance(node.target, gast.Name) else "i"
        index = Var(
            target if walk.plain and target != "_" else "i",
            Array(int, (), unknown("?index")),
            USER if walk.plain and target != "_" else SAVED,
        )
        simple = isinstance(node.target, gast.Name)
        items = []
        for hint, fact, source in walk.items:
            named = simple and len(walk.items) == 1 and hint != "item" or simple and isinstance(fact, Array)
            items.append((Var(target if named and target != "_" else hint, fact, USER if named else TEMPORARY),
                          self.operand_of_part(source)))

        def enter():
            bound = walk.bind(index, [self.row(v, source, index) for v, source in items])
            name_after(node.target, bound, {index, *(v for v, _ in items)})
            self.assign(node.target, bound)

        carries, body, _ = self.carried(node, enter, None)
        loop = For(index, walk.count, tuple(items), carries, body, origin)
        self.build.block.append(loop)

    def row(self, var, source, index):
        """What a loop walks over in a pass: a row of an array that the loop changes is read anew."""
        if not _is_array(source):
            return var
        base, path = self.base_path(source)
        hidden = self.loops[-1].stores.get(base)
        if hidden is not None:
            return self.build.item(self.again(path, self.frame.env[hidden]), index, var.hint, var.kind)
        self.walked[var] = Apply(operator.getitem, (source, index))
        return var

    def exec_While(self, node):
        origin = self.build.origin
        before = self.snapshot()
        probe = self.build.block
        self.build.block = []
        test = self.truth(self.eval(node.test), node.test)
        self.build.block = probe
        self.restore(before)
        if isinstance(test, Const) and not test.value:
            return None
        try:
            carries, body, head = self.carried(node, None, node.test)
        except NotALoop as error:
            self.fail(
                LanguageError, str(error), node, "What a while loop carries must keep its kind and its structure."
            )
        steps, test = head
        self.build.block.append(While(carries, steps, test, body, origin))
        return None

    def carried(self, node, enter, test):
        """Read a body until the facts of what it carries come to rest."""
        frame = self.frame
        names = assigned(node.body) | (assigned([node.target], True) if enter else {})
        if test is not None:
            names |= {n.target.id: None for n in gast.walk(test) if isinstance(n, gast.NamedExpr)}
        slots = {n: self.slot(n, frame.env[n]) for n in names if n in frame.env and not _undefined(frame.env[n])}
        start, outer_block = self.snapshot(), self.build.block
        plain = assigned_plainly(node.body)
        for n in augmented(node.body):
            value = frame.env.get(n)
            if n not in plain and isinstance(value, Var) and isinstance(value.fact, Array) and value.fact.dims and \
                    self.has_alias(value):
                names.pop(n)            # written in place: what shows the array is carried, not the name
                slots.pop(n, None)
        known, reading, aliases = {}, Loop(), {}
        for _ in range(24):
            self.restore(start)
            for root, hidden in reading.stores.items():
                frame.env[hidden] = root
                names[hidden], slots[hidden] = None, {(): None}
            start = self.snapshot()
            inner = {}
            for n, leaves in slots.items():
                before_value = frame.env[n]
                frame.env[n] = self.entered(n, before_value, leaves, known, inner)
                for path, var in inner[n].items():
                    value = self.leaf(before_value, path)
                    self.tokens[var] = frozenset({var}) | aliases.get((n, path), frozenset()) | (
                        self.storages(value) if isinstance(value, Var) else frozenset())
            for n in names:
                if n not in slots:
                    frame.env[n] = UNDEFINED
            head = None
            self.build.block = []
            for root, hidden in reading.stores.items():
                self.hand_over(root, frame.env[hidden], slots)
            versions = self.versions()
            carried = {v for made in inner.values() for v in made.values()}
            reading.entry = {self.base_path(v)[0] for _, _, v in self.shown()} - carried
            self.loops.append(reading)
            try:
                if test is not None:
                    tested = self.truth(self.eval(test), test)
                    if isinstance(tested, Const):
                        self.fail(
                            LanguageError,
                            "the test of this loop never changes",
                            test,
                            "Put the condition that ends it there.",
                        )
                    head = (self.build.block, tested)
                    self.build.block = []
                if enter:
                    enter()
                outcome = self.block(node.body)
                body = self.build.block
            except NeedsStore as need:
                if need.loop is not reading:
                    raise
                reading.stores[need.root] = f"{need.root.hint} "
                while reading.stores[need.root] in [h for r, h in reading.stores.items() if r is not need.root]:
                    reading.stores[need.root] += " "
                continue
            finally:
                self.loops.pop()
                self.build.block = outer_block
            if outcome is RAISED:
                self.fail(LanguageError, "a loop that always raises", node)
            if self.versions(versions) != versions:
                raise NotALoop("a container changes its structure from pass to pass")
            rest, new = True, {}
            for n in slots:
                pairs = self.paired(n, inner.get(n, {}), frame.env.get(n))
                for path, (var, value) in pairs.items():
                    try:
                        fact = join(var.fact, fact_of(value), f"?{n}")
                    except Mismatch as error:
                        raise NotALoop(f"{n} changes from pass to pass: {error}") from None
                    new[n, path] = fact
                    rest = rest and settled(var.fact, fact)
                    if isinstance(value, Var) and isinstance(value.fact, Array):
                        more = frozenset(t for t in self.storages(value) if t in reading.entry) - self.tokens[var]
                        if more:
                            aliases[n, path] = aliases.get((n, path), frozenset()) | more
                            rest = False
            if rest:
                if any(has_ties(step) for step in walk(body)):
                    self.same_precision(slots, next(env for f, env in start if f is frame), new)
                break
            known = {**known, **new}
        else:
            raise NotALoop("the kinds of what the loop carries do not come to rest")
        made = self.closed(frame, names, slots, inner, start, body, head, new)
        for root, hidden in reading.stores.items():
            self.hand_over(root, frame.env.pop(hidden), slots)
        return made

    def same_precision(self, slots, start, facts):
        """Entries equal to the largest are none in another precision: such a first pass is peeled off, or refused."""
        for n in slots:
            for path in slots[n]:
                fact = facts.get((n, path))
                before = fact_of(self.leaf(start[n], path)) if fact is not None else None
                if isinstance(fact, Array) and isinstance(before, Array) and fact.dims and fact.differentiable and \
                        before.differentiable and not same_dtype(fact.dtype, before.dtype):
                    raise NotALoop(f"{n} changes from pass to pass: {spell(before)} before, {fact.dtype} after")

    def closed(self, frame, names, slots, inner, start, body, head, facts):
        """The carries of a loop, and what its names hold afterwards."""
        after, carries, unchanged = dict(frame.env), [], {}
        self.restore(start)
        for n in names:
            value = after.get(n, UNDEFINED)
            if n not in slots:
                if isinstance(value, Var) and isinstance(value.fact, (Array, Stack)):
                    outer = Var(n, value.fact, USER)
                    carries.append(Carry(value.like(), UNDEFINED, value, outer))
                    if not self.may_share(value):
                        self.owned.add(outer)
                    frame.env[n] = outer
                elif isinstance(value, Struct):
                    frame.env[n] = self.after_struct(n, value, carries)
                else:
                    frame.env[n] = Conflict("set inside a loop only")
                continue
            outers = {}
            for path, (var, new) in self.paired(n, inner.get(n, {}), value).items():
                init = self.leaf(frame.env[n], path)
                if new is var:
                    unchanged[var] = init
                    outers[path] = init
                    continue
                outer = Var(n.strip(), facts[n, path], USER)
                self.tokens[outer] = self.tokens[var] | (self.storages(new) if isinstance(new, Var) else frozenset())
                if var in self.owned:
                    self.owned.add(outer)
                carries.append(Carry(var, init, new, outer))
                outers[path] = outer
            frame.env[n] = self.replaced_leaves(frame.env[n], value, outers)
        if unchanged:
            body = replaced(body, unchanged)
            if head is not None:
                head = (replaced(head[0], unchanged), unchanged.get(head[1], head[1]))
            for c in carries:
                c.next = unchanged.get(c.next, c.next) if isinstance(c.next, Var) else c.next
        return carries, body, head

    def after_struct(self, n, value, carries):
        items = []
        for v in value.items:
            if isinstance(v, Var):
                outer = Var(n, v.fact, USER)
                carries.append(Carry(v.like(), UNDEFINED, v, outer))
                items.append(outer)
            elif isinstance(v, Struct):
                items.append(self.after_struct(n, v, carries))
            elif isinstance(v, Part):
                return Conflict("set inside a loop only")
            else:
                items.append(v)
        return Struct(value.kind, items, value.keys, value.cls)


def has_ties(step):
    """A statement whose derivative asks which entries are equal to its result."""
    rule = rule_of(step.value.function) if isinstance(step, Let) and isinstance(step.value, Apply) else None
    return rule is not None and rule.options.get("ties", False)


def _equal(a, b):
    try:
        return a is b or bool(a == b)
    except Exception:                   # arrays and other objects without a truth value
        return False


def _harmless(step):
    """Evaluating it where the user would not have cannot fail."""
    function = getattr(getattr(step, "value", None), "function", None)
    return function in (
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
        operator.add,
        operator.sub,
        operator.mul,
        operator.neg,
        operator.not_,
        abs,
        both,
        either,
    ) or isinstance(function, np.ufunc)
