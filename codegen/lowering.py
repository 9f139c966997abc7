# SPDX-License-Identifier: Apache-2.0
"""Statements of the normal form as text for Numba: values, writes, stores, loops and branches."""
import ast
import builtins
import copy
import re

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import holds_memory
from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    For,
    If,
    Let,
    Pack,
    Var,
    While,
    operands,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.ast_transform.core.operations import (
    Quoted,
    add_at,
    is_report,
    no_elements,
    nonempty,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
)
from gradscribe.ast_transform.passes.collectives import WRITTEN
from gradscribe.ast_transform.passes.kin import unset_values
from gradscribe.ast_transform.passes.results import Sources
from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.codegen import (  # noqa: F401  (they fill the table of forms)
    arranging_forms,
    array_forms,
    index_forms,
    join_forms,
    linalg_forms,
    line_forms,
    numeric_forms,
    other_forms,
    product_forms,
    shape_forms,
)
from gradscribe.codegen.collecting import collective_statement, reductions, together
from gradscribe.codegen.draw_forms import draw_statement
from gradscribe.codegen.index_forms import write
from gradscribe.codegen.loop_forms import Loops
from gradscribe.codegen.lowered import LAZY, Lazy, lazily, shifted
from gradscribe.codegen.reporting import report_statement, reports
from gradscribe.codegen.settled import is_view, owned

LAZY.wait_for("scipy.linalg", "gradscribe.codegen.solver_forms")


@lazily(owned)
def _owned_form(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, x.dtype, x.read, x.cost, literal=x.literal)


# --- statements -------------------------------------------------------------------------------------------------------

class Lowering(Loops):
    """Writes one settled function."""

    def __init__(self, function, naming, taken):
        super().__init__(naming, taken)
        self.function, self.results, self.start, self.maker, self.named_lengths = function, [], 0, {}, {}
        self.unset = unset_values(function.body)
        self.sources, self.bits = None, {}
        for step in walk(function.body):
            if isinstance(step, Let):
                self.maker.update(dict.fromkeys(step.targets, step))
            elif isinstance(step, (For, While)):
                self.maker.update({c.outer: c for c in step.carries})
            elif isinstance(step, If):
                self.maker.update({j.var: j for j in step.joins})

    def run(self):
        lets = [s for s in walk(self.function.body) if isinstance(s, Let) and isinstance(s.value, Apply) and
                not isinstance(s.value.function, Quoted)]
        self.pushed = {self.naming[s.targets[0]] for s in lets if s.value.function in (push, push_front)}
        self.tells = reports(self.function.body)
        self.parameters()
        self.block(self.function.body)
        self.finish()
        self.lines[:0] = [(1, line, None) for line in self.first.values()]

    # arguments

    def parameters(self):
        """Names for lengths; those that the function takes to be equal are checked."""
        seen, tests = self.named_lengths, []
        self.inputs = [p for p in self.function.params if isinstance(p.value, Var)]
        for p in self.inputs:
            fact = p.value.fact
            if not isinstance(fact, Array):
                continue
            lengths = [(f"{p.name}.shape[{k}]", d) for k, d in enumerate(fact.dims)]
            if not fact.dims and fact.length is not None:
                lengths = [(p.name, fact.length)]
            keys, texts = [], []
            for text, d in lengths:
                n, name = d.normal(), None
                if n.symbol is None:
                    keys.append((None, n.offset))
                    if fact.dims and n.offset != 1:
                        tests.append(f"{text} != {n.offset}")
                elif n.symbol in seen:
                    keys.append(shifted((n.symbol, 0), n.offset))
                    other, offset = seen[n.symbol]
                    gap = n.offset - offset
                    tests.append(f"{text} != {other}" + (f" {'+' if gap > 0 else '-'} {abs(gap)}" if gap else ""))
                    name = other if not gap else None
                else:
                    keys.append(shifted((n.symbol, 0), n.offset))
                    name = text if not fact.dims else self.fresh("n")
                    seen[n.symbol] = (name, n.offset)
                    if fact.dims:
                        self.locals.add(name)
                        self.first[name] = f"{name} = {text}"
                texts.append(name)
            if fact.dims:
                self.keys[p.value], self.texts[p.value] = keys, [t and self.stable(t) for t in texts]
            elif keys and keys[0][0] is not None:
                self.counts[p.value] = keys[0]
        if tests:
            with self.inside(f"if {' or '.join(tests)}:"):
                self.say("raise ValueError('operands could not be broadcast together: lengths of arguments differ')")

    def finish(self):
        """The result: a flat tuple of its leaves, literals left out."""
        texts = []
        shown = {p.value for p in self.inputs}
        for leaf in leaves(self.function.result):
            if isinstance(leaf, Const):
                self.results.append(("literal", leaf.value))
                continue
            fact = self.fact(leaf)
            self.origin = getattr(leaf, "origin", None) or getattr(self.maker.get(leaf), "origin", None) or self.origin
            if not isinstance(fact, Array):
                self.refuse("a result that is no number and no array has no Numba form")
            if not fact.dims:
                texts.append(self.scalar(leaf, fact.dtype))
                self.results.append(("scalar", fact.dtype))
                continue
            lazy = self.lazy(leaf)
            lazy = self.array(lazy, fact.dtype)
            base = leaf if isinstance(leaf, Var) else None
            fresh = base is None or base not in shown
            texts.append(lazy.name if fresh else f"{lazy.name}.copy()")
            self.results.append(("array", fact.dtype))
        self.say(f"return ({', '.join(texts)}{',' if len(texts) == 1 else ''})" if texts else "return ()")

    # blocks

    def block(self, steps):
        start = len(self.lines)
        for group in together(steps):
            step = group[0]
            if step.origin is not None:
                self.origin = step.origin
            if len(group) > 1:
                reductions(self, group)
            else:
                getattr(self, "step_" + type(step).__name__)(step)
        return len(self.lines) > start

    def step_Let(self, step):
        self.start = len(self.lines)
        if step.origin is not None and step.origin.raised():
            self.refuse("np.errstate that makes an error raise has no Numba form")
        value = step.value
        function = value.function if isinstance(value, Apply) else None
        try:
            special = STATEMENTS.get(function)
        except TypeError:
            special = None
        if special is not None:
            return special(self, step)
        if isinstance(function, Draw):
            return draw_statement(self, step)
        if len(step.targets) > 1:
            made = self.forms(value)
            if not isinstance(made, list) or len(made) != len(step.targets):
                self.no_form(function)
            ready = [
                self.alone(m) if not m.rank else self.array(m, t.fact.dtype) if not m.name or m.view else m
                for m, t in zip(made, step.targets)
            ]
            for t, m in zip(step.targets, ready):
                self.assign(t, m, False)
            return
        target = step.targets[0]
        if target not in self.naming.names:
            return
        if (
            isinstance(value, Pack)
            and value.kind in ("tuple", "list", "dict", "record")
            and not isinstance(target.fact, Array)
        ):
            self.refuse("a container that is kept has no Numba form")
        if isinstance(target.fact, Stack):
            self.say(
                f"{self.naming[target]} = {self.naming[value]}" if isinstance(value, Var) else self.no_form(function)
            )
            return
        if not isinstance(target.fact, Array):
            self.refuse(f"{target.hint}, which is made when running and is no array, has no Numba form")
        if function is not None and not target.fact.dims:
            key = self.length_key(value) if target.fact.length is not None else None
            if key is not None and key[0] is not None:
                self.counts[target] = key
        reads = {self.naming[v] for v in operands(value) if v in self.naming.names}
        lazy = self.lazy(value)
        view = isinstance(value, Var) or function is not None and is_view(value) and lazy.name
        if lazy.name in reads and not view:  # a new array, not another name for an old one
            lazy = Lazy(lazy.dims, lazy.dtype, lazy.read, 1)
        self.assign(target, lazy, self.naming[target] in reads, bool(view))

    def alone(self, lazy):
        """A scalar under a name of its own."""
        if lazy.literal is not None:
            return lazy
        name = self.fresh("t")
        self.say(f"{name} = {lazy.cast([], lazy.dtype)}")
        return Lazy([], lazy.dtype, lambda index: name, 0)

    def assign(self, target, lazy, clash, view=False):
        """name = value; through another name where the value is read while it is written."""
        if target not in self.naming.names:
            return
        name, fact = self.naming[target], target.fact
        if not isinstance(fact, Array):
            self.refuse("a value that is no number and no array has no Numba form")
        if lazy.rank != fact.rank:
            if lazy.rank < fact.rank or any(d.kind != "one" for d in lazy.dims[:lazy.rank - fact.rank]):
                self.refuse(f"{target.hint} has rank {fact.rank}, its Numba form has {lazy.rank}")
            lazy = shape_forms.dropped(lazy, set(range(lazy.rank - fact.rank)))
        if not fact.dims:
            text = lazy.cast([], fact.dtype)
            if text != name:
                self.say(f"{name} = {text}")
            return
        self.hold(fact, lazy)
        self.keys[target], self.texts[target] = [d.key for d in lazy.dims], [self.stable(d.text) for d in lazy.dims]
        self.views.pop(target, None)
        if lazy.name and lazy.exact == np.dtype(fact.dtype) and (not lazy.view or view):
            if lazy.name != name and not self.taken_over(lazy.name, name):
                self.say(f"{name} = {lazy.name}")
            if lazy.view:
                self.views[target] = lazy.view
            return
        if clash or any(re.search(rf"\b{re.escape(name)}\b", d.text) for d in lazy.dims):
            made = self.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost), fact.dtype)
            self.say(f"{name} = {made.name}")
            return
        self.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost, literal=lazy.literal), fact.dtype, name)

    def hold(self, fact, lazy):
        """What facts say of lengths and the form does not know is checked."""
        for n, d in zip(fact.dims, lazy.dims):
            n = n.normal()
            if n.symbol is None and d.key != (None, n.offset) and not (n.offset == 1 and d.kind == "one"):
                self.helper("same")
                self.say(f"same({d.text}, {n.offset})")
            elif n.symbol is not None and n.many and d.kind != "many":
                self.helper("not_one")
                self.say(f"not_one({d.text})")

    def taken_over(self, temporary, name):
        """A name of ours that this statement has made becomes the target, where the target is not read meanwhile."""
        lines = self.lines[self.start:]
        if not re.fullmatch(r"\w+_\d+", temporary) or not any(t.startswith(f"{temporary} = ") for _, t, _ in lines) or \
                any(re.search(rf"\b{re.escape(name)}\b", t) for _, t, _ in lines):
            return False
        self.lines[self.start:] = [(level, re.sub(rf"\b{temporary}\b", name, t), o) for level, t, o in lines]
        return True

    # writes and stores

    def base_of(self, step):
        base, target = step.value.args[0], step.targets[0]
        name, fact = self.naming[target], target.fact
        if isinstance(fact, Stack):
            if id(step) in self.naming.copies:
                self.say(f"{name} = {self.naming[base]}.copy()")
            return name
        if id(step) in self.naming.copies or not isinstance(base, Var):
            source = self.lazy(base)
            self.keys[target], self.texts[target] = (
                [d.key for d in source.dims],
                [self.stable(d.text) for d in source.dims],
            )
            if isinstance(base, Var) and self.naming[base] == name:
                made = self.array(Lazy(source.dims, source.dtype, source.read, 1), fact.dtype)
                self.say(f"{name} = {made.name}")
            else:
                self.array(Lazy(source.dims, source.dtype, source.read, 1, literal=source.literal), fact.dtype, name)
            return name
        self.keys[target], self.texts[target] = (
            self.keys.get(base) or [(base, k) for k in range(fact.rank)],
            self.texts.get(base),
        )
        if base in self.views:
            self.views[target] = self.views[base]
        return name

    def step_put(self, step):
        _, index, value = step.value.args
        shared, value = self.reads(value, step.value.args[0]), self.lazy(value)
        clash = self.naming[step.targets[0]]
        apart = not shared and isinstance(step.value.args[0], Var) and id(step) not in self.naming.copies
        plain = value.name and not value.cost and not value.view and value.name != clash
        if value.rank and not apart and (shared or not plain):
            value = self.array(Lazy(value.dims, value.dtype, value.read, 1))
        self.base_of(step)
        how = {put: "set", put_add: "add", add_at: "at"}[step.value.function]
        write(self, self.lazy_var(step.targets[0]), index, value, how, shared, apart)

    def reads(self, value, base):
        """Whether an expression may read the array that is written."""
        read = [v for v in operands(value) if holds_memory(v)]
        if not read or not isinstance(base, Var):
            return False
        self.sources = self.sources or Sources(self.function)
        return any(not self.sources.of(base).isdisjoint(self.sources.of(v)) for v in read)

    def stored(self, step):
        element = step.targets[0].fact.element
        if isinstance(element, Stack) and isinstance(step.value.args[1], Var):
            return self.naming[step.value.args[1]]          # made anew in each pass
        if not isinstance(element, Array):
            self.refuse("a list of containers has no Numba form")
        value = self.lazy(step.value.args[1])
        if not element.dims:
            return value.cast([], element.dtype)
        if value.name and not value.view:       # what a list holds is not written any more (coalesce)
            return self.array(value, element.dtype).name
        return self.array(Lazy(value.dims, value.dtype, value.read, 1), element.dtype).name

    def step_push(self, step):
        text = self.stored(step)
        name = self.base_of(step)
        self.say(f"{name}.append({text})" if step.value.function is push else f"{name}.insert(0, {text})")

    def step_pop(self, step):
        name, target = self.base_of(step), step.targets[1]
        text = f"{name}.pop({'' if step.value.function is pop else '0'})"
        self.say(f"{self.naming[target]} = {text}" if target in self.naming.names else text)
        if target in self.naming.names and isinstance(target.fact, Array) and target.fact.dims:
            self.keys.pop(target, None)

    def step_no_elements(self, step):
        target = step.targets[0]
        self.say(
            f"{self.naming[target]} = {'[]' if self.naming[target] in self.pushed else self.empty_list(target.fact)}"
        )

    # effects

    def step_Effect(self, step):
        quote = step.value.function
        if not isinstance(quote, Quoted):
            self.no_form(quote)
        tree, wanted = copy.deepcopy(quote.tree), dict(zip(quote.names, step.value.args))
        lowering = self
        if is_report(step.value) and not self.for_threads:
            report_statement(self, quote, step.value.args, step.origin)
            return
        if isinstance(tree, gast.Raise) and not _is_plain(tree, quote.lookup):
            self.unsaid(quote, tree, step)
            return
        if is_report(step.value) and not (isinstance(tree.func, gast.Name) and tree.func.id == "print"):
            called = ast.unparse(gast.gast_to_ast(tree.func))
            raise RuleError(f"{called} has no form on a device: of reports, code for a device has print", step.origin,
                            f"Print it, or return what it tells and call {called} outside.")
        unsaid = isinstance(tree, gast.Assert) and tree.msg is not None and not isinstance(tree.msg, gast.Constant)
        if unsaid:
            tree = gast.Expr(tree.test)

        class Rename(gast.NodeTransformer):
            def visit_Name(self, node):
                if node.id in wanted:
                    operand = wanted[node.id]
                    fact = lowering.fact(operand)
                    text = (
                        lowering.scalar(operand)
                        if isinstance(fact, Array) and not fact.dims
                        else lowering.array(operand).name
                        if isinstance(fact, Array)
                        else repr(operand.value)
                        if isinstance(operand, Const)
                        else lowering.refuse("this statement has no Numba form")
                    )
                    return gast.ast_to_gast(ast.parse(text, mode="eval")).body
                return node

        tree = Rename().visit(tree)
        if unsaid:
            with self.inside(f"if not ({ast.unparse(gast.gast_to_ast(tree.value))}):"):
                failed = gast.Call(gast.Name("AssertionError", gast.Load(), None, None), [quote.tree.msg], [])
                self.unsaid(quote, gast.copy_location(gast.Raise(failed, None), quote.tree), step)
            return
        for line in ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(tree))).splitlines():
            self.say(line)

    def unsaid(self, quote, tree, step):
        """An exception that compiled code cannot make; the process raises it where reports have been told."""
        if self.tells and not self.for_threads:
            report_statement(self, Quoted(tree, quote.names, quote.lookup), step.value.args, step.origin)
        self.say("raise Unsaid()")


def _is_plain(tree, lookup):
    """A raise of one of Python's exceptions whose arguments are literals: Numba has no others."""
    made = tree.exc.func if isinstance(tree.exc, gast.Call) else tree.exc
    given = [*tree.exc.args, *tree.exc.keywords] if isinstance(tree.exc, gast.Call) else []
    return tree.cause is None and isinstance(made, gast.Name) and all(isinstance(a, gast.Constant) for a in given) \
        and lookup(made.id) is getattr(builtins, made.id, None)


def leaves(node):
    """The leaves of a result in order."""
    if isinstance(node, Pack):
        for i in node.items:
            yield from leaves(i)
    else:
        yield node


@lazily(nonempty)
def _nonempty(lowering, node):
    name = lowering.naming[node.args[0]]
    return Lazy([], bool, lambda index: f"(len({name}) > 0)", 0)


STATEMENTS = {**dict.fromkeys(WRITTEN, collective_statement),
              put: Lowering.step_put, put_add: Lowering.step_put, add_at: Lowering.step_put, push: Lowering.step_push,
               push_front: Lowering.step_push, pop: Lowering.step_pop, pop_front: Lowering.step_pop,
               no_elements: Lowering.step_no_elements}
