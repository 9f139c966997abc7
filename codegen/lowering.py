# SPDX-License-Identifier: Apache-2.0
"""Lowers a function from the normal form to the loop form: assignments, writes, lists, effects and the result."""
import ast
import builtins
import copy
from collections.abc import Iterator
from typing import Any

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
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.results import Sources
from gradscribe.ast_transform.reader.named_axes import WRITTEN
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
from gradscribe.codegen.collectives import collective_statement, reductions, together
from gradscribe.codegen.draw_forms import draw_statement
from gradscribe.codegen.index_forms import write
from gradscribe.codegen.loop_forms import Loops
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import joined, let, node, quoted
from gradscribe.codegen.loops.form import Function, change, names_in, names_of, rebuilt, renamed, set_by, statements
from gradscribe.codegen.loops.trees import statement_of
from gradscribe.codegen.lowered import LAZY, Lazy, lazily, shifted
from gradscribe.codegen.phi_types import is_view
from gradscribe.codegen.reporting import report_statement, reports

LAZY.wait_for("scipy.linalg", "gradscribe.codegen.solver_forms")


# --- statements -------------------------------------------------------------------------------------------------------

class Lowering(Loops):
    """The lowering of one function that phi_types.settle has prepared."""
    loops: Function                     # the function in loop form, once it has types (jit_cpu.py)

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
        self.body[:0] = self.known.first.values()

    # arguments

    def parameters(self):
        """Names the lengths of parameters; adds checks of those that the function assumes to be equal."""
        seen, tests = self.named_lengths, []
        self.inputs = [p for p in self.function.params if isinstance(p.value, Var)]
        for p in self.inputs:
            fact = p.value.fact
            if not isinstance(fact, Array):
                continue
            lengths = [(loops.Length(p.name, k), d) for k, d in enumerate(fact.dims)]
            if not fact.dims and fact.length is not None:
                lengths = [(node(p.name), fact.length)]
            keys, extents = [], []
            for length, d in lengths:
                n, name = d.normal(), None
                if n.symbol is None:
                    keys.append((None, n.offset))
                    if fact.dims and n.offset != 1:
                        tests.append(quoted("{} != {}", length, n.offset))
                elif n.symbol in seen:
                    keys.append(shifted((n.symbol, 0), n.offset))
                    other, offset = seen[n.symbol]
                    gap = n.offset - offset
                    least = quoted("{} {} {}", other, "+" if gap > 0 else "-", abs(gap)) if gap else other
                    tests.append(quoted("{} != {}", length, least))
                    name = other if not gap else None
                else:
                    keys.append(shifted((n.symbol, 0), n.offset))
                    name = length if not fact.dims else node(self.fresh("n"))
                    seen[n.symbol] = (name, n.offset)
                    if fact.dims:
                        self.known.locals.add(name.id)
                        self.known.first[name.id] = let(name, length)
                extents.append(name)
            if fact.dims:
                self.known.keys[p.value], self.known.extents[p.value] = keys, [e and self.stable(e) for e in extents]
            elif keys and keys[0][0] is not None:
                self.known.counts[p.value] = keys[0]
        if tests:
            self.raises("operands could not be broadcast together: lengths of arguments differ", "{}",
                        joined("or", tests))

    def finish(self):
        """Returns the result: a flat tuple of its leaves without literals."""
        values = []
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
                values.append(self.scalar(leaf, fact.dtype))
                self.results.append(("scalar", fact.dtype))
                continue
            lazy = self.lazy(leaf)
            lazy = self.array(lazy, fact.dtype)
            base = leaf if isinstance(leaf, Var) else None
            fresh = base is None or base not in shown
            values.append(lazy.name if fresh else quoted("{}.copy()", lazy.name))
            self.results.append(("array", fact.dtype))
        self.add(loops.Return(node(values)))

    # blocks

    def block(self, steps):
        for group in together(steps):
            step = group[0]
            if step.origin is not None:
                self.origin = step.origin
            if len(group) > 1:
                reductions(self, group)
            else:
                getattr(self, "step_" + type(step).__name__)(step)

    def step_Let(self, step):
        self.start = len(self.body)
        if step.origin is not None and step.origin.raised():
            self.refuse("np.errstate that raises an error has no Numba form")
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
            ready = [m if m.literal is not None or m.name and not m.view else self.array(m, t.fact.dtype) if m.rank else
                     self.alone(m) for m, t in zip(made, step.targets)]
            for t, m in zip(step.targets, ready):
                self.assign(t, m, False)
            return
        target = step.targets[0]
        if target not in self.naming.names:
            return
        if isinstance(value, Pack) and value.kind in ("tuple", "list", "dict", "record") and not isinstance(
                target.fact, Array):
            self.refuse("a container that is kept has no Numba form")
        if isinstance(target.fact, Stack):
            self.set(self.naming[target], self.naming[value] if isinstance(value, Var) else self.no_form(function))
            return
        if not isinstance(target.fact, Array):
            self.refuse(f"{target.hint}, which is no array and is not known when compiling, has no Numba form")
        if function is not None and not target.fact.dims:
            key = self.length_key(value) if target.fact.length is not None else None
            if key is not None and key[0] is not None:
                self.known.counts[target] = key
        reads = {self.naming[v] for v in operands(value) if v in self.naming.names}
        lazy = self.lazy(value)
        view = isinstance(value, Var) or function is not None and is_view(value) and lazy.name
        if getattr(lazy.name, "id", None) in reads and not view:  # a new array, not an alias
            lazy = Lazy(lazy.dims, lazy.dtype, lazy.read, 1)
        self.assign(target, lazy, self.naming[target] in reads, bool(view))

    def assign(self, target, lazy, clash, view=False):
        """name = value; clash: the value reads the name, so it is computed under another name first."""
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
            value = lazy.cast([], fact.dtype)
            if value != node(name):
                self.set(name, value)
            return
        self.hold(fact, lazy)
        self.keep(target, lazy.dims)
        self.views.pop(target, None)
        if lazy.name and lazy.exact == np.dtype(fact.dtype) and (not lazy.view or view):
            if lazy.name != node(name) and not self.taken_over(lazy.name, name):
                self.set(name, lazy.name)
            if lazy.view:
                self.views[target] = lazy.view
            return
        if clash or any(name in names_in(d.length) for d in lazy.dims):
            made = self.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost), fact.dtype)
            self.set(name, made.name)
            return
        self.array(Lazy(lazy.dims, lazy.dtype, lazy.read, lazy.cost, literal=lazy.literal), fact.dtype, name)

    def hold(self, fact, lazy):
        """Adds checks of lengths that facts state and the lazy array does not guarantee."""
        for n, d in zip(fact.dims, lazy.dims):
            n = n.normal()
            if n.symbol is None and d.key != (None, n.offset) and not (n.offset == 1 and d.kind == "one"):
                self.say("same({}, {})", d.length, n.offset)
            elif n.symbol is not None and n.many and d.kind != "many":
                self.say("not_one({})", d.length)

    def taken_over(self, temporary, name):
        """Renames a temporary of this statement to the target, if the target is not used meanwhile; returns whether."""
        made = self.body[self.start:]
        old = getattr(temporary, "id", None)
        if old not in self.temporaries or not any(
                isinstance(s, (loops.Let, loops.Alloc)) and s.name == old for s in statements(made)) or any(
                name in names_of(s) or name in set_by(s) for s in statements(made)):
            return False
        for s in statements(made):
            change(s, lambda e: renamed(e, {old: name}))
            if getattr(s, "name", None) == old:
                s.name = name
        return True

    # writes and stores

    def base_of(self, step):
        base, target = step.value.args[0], step.targets[0]
        name, fact = self.naming[target], target.fact
        if isinstance(fact, Stack):
            if id(step) in self.naming.copies:
                self.say("{} = {}.copy()", name, self.naming[base])
            return name
        if id(step) in self.naming.copies or not isinstance(base, Var):
            source = self.lazy(base)
            self.keep(target, source.dims)
            if isinstance(base, Var) and self.naming[base] == name:
                made = self.array(Lazy(source.dims, source.dtype, source.read, 1), fact.dtype)
                self.set(name, made.name)
            else:
                self.array(Lazy(source.dims, source.dtype, source.read, 1, literal=source.literal), fact.dtype, name)
            return name
        self.known.keys[target] = self.known.keys.get(base) or [(base, k) for k in range(fact.rank)]
        self.known.extents[target] = self.known.extents.get(base)
        if base in self.views:
            self.views[target] = self.views[base]
        return name

    def step_put(self, step):
        _, index, value = step.value.args
        shared, value = self.reads(value, step.value.args[0]), self.lazy(value)
        clash = self.naming[step.targets[0]]
        apart = not shared and isinstance(step.value.args[0], Var) and id(step) not in self.naming.copies
        plain = value.name and not value.cost and not value.view and value.name != node(clash)
        if value.rank and not apart and (shared or not plain):
            value = self.array(Lazy(value.dims, value.dtype, value.read, 1))
        self.base_of(step)
        how = {put: "set", put_add: "add", add_at: "at"}[step.value.function]
        write(self, self.lazy_var(step.targets[0]), index, value, how, shared, apart)

    def reads(self, value, base):
        """Whether an expression may alias the array that is written."""
        read = [v for v in operands(value) if holds_memory(v)]
        if not read or not isinstance(base, Var):
            return False
        self.sources = self.sources or Sources(self.function)
        return any(not self.sources.of(base).isdisjoint(self.sources.of(v)) for v in read)

    def stored(self, step):
        element = step.targets[0].fact.element
        if isinstance(element, Stack) and isinstance(step.value.args[1], Var):
            return self.naming[step.value.args[1]]          # a new list in each pass
        if not isinstance(element, Array):
            self.refuse("a list of containers has no Numba form")
        value = self.lazy(step.value.args[1])
        if not element.dims:
            return value.cast([], element.dtype)
        if value.name and not value.view:       # arrays in a list are not written any more (coalesce)
            return self.array(value, element.dtype).name
        return self.array(Lazy(value.dims, value.dtype, value.read, 1), element.dtype).name

    def step_push(self, step):
        value = self.stored(step)
        self.say("{}.append({})" if step.value.function is push else "{}.insert(0, {})", self.base_of(step), value)

    def step_pop(self, step):
        name, target = self.base_of(step), step.targets[1]
        value = quoted("{}.pop({*})", name, [] if step.value.function is pop else [0])
        if target in self.naming.names:
            self.set(self.naming[target], value)
        else:
            self.add(loops.Do(value))
        if target in self.naming.names and isinstance(target.fact, Array) and target.fact.dims:
            self.known.keys.pop(target, None)

    def step_no_elements(self, step):
        target = step.targets[0]
        name = self.naming[target]
        self.set(name, loops.ListOf(()) if name in self.pushed else self.empty_list(target.fact))

    # effects

    def step_Effect(self, step):
        quote = step.value.function
        if not isinstance(quote, Quoted):
            self.no_form(quote)
        tree = quote.tree
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
        wanted = dict(zip(quote.names, step.value.args))

        def known(e):
            if isinstance(e, loops.Name) and e.id in wanted:
                return self.quoted_value(wanted[e.id])
            return rebuilt(e, known)

        made = gast.gast_to_ast(copy.deepcopy(tree.test if unsaid else tree))
        made = statement_of(ast.Expr(made) if isinstance(made, ast.expr) else made)
        change(made, known)
        if not unsaid:
            self.add(made)
            return
        with self.inside("if not {}:", made.value):
            failed = gast.Call(gast.Name("AssertionError", gast.Load(), None, None), [tree.msg], [])
            self.unsaid(quote, gast.copy_location(gast.Raise(failed, None), tree), step)

    def quoted_value(self, operand):
        """An operand of a quoted statement."""
        fact = self.fact(operand)
        if isinstance(fact, Array):
            return self.array(operand).name if fact.dims else self.scalar(operand)
        if not isinstance(operand, Const):
            self.refuse("this statement has no Numba form")
        return literal_of(operand.value)

    def unsaid(self, quote, tree, step):
        """Raises Unsaid for an exception that compiled code cannot make, so that the plain function runs; if reports
        have been printed already, the process raises the exception itself.
        """
        if self.tells and not self.for_threads:
            report_statement(self, Quoted(tree, quote.names, quote.lookup), step.value.args, step.origin)
        self.say("raise Unsaid()")


def literal_of(value):
    """A constant, which may be a text or a container, in the loop form."""
    if isinstance(value, (tuple, list)):
        return (loops.Items if isinstance(value, tuple) else loops.ListOf)(tuple(map(literal_of, value)))
    return node(value) if isinstance(value, (int, float, complex)) else loops.Const(value)


def _is_plain(tree, lookup):
    """Whether a raise is of a builtin exception with literal arguments, the only kind that Numba supports."""
    made = tree.exc.func if isinstance(tree.exc, gast.Call) else tree.exc
    given = [*tree.exc.args, *tree.exc.keywords] if isinstance(tree.exc, gast.Call) else []
    return tree.cause is None and isinstance(made, gast.Name) and all(isinstance(a, gast.Constant) for a in given) \
        and lookup(made.id) is getattr(builtins, made.id, None)


def leaves(node: Any) -> Iterator[Any]:
    """The leaves of a result, in order."""
    if isinstance(node, Pack):
        for i in node.items:
            yield from leaves(i)
    else:
        yield node


@lazily(nonempty)
def _nonempty(lowering, node):
    name = lowering.naming[node.args[0]]
    return Lazy([], bool, quoted("len({}) > 0", name), 0)


STATEMENTS = {**dict.fromkeys(WRITTEN, collective_statement),
              put: Lowering.step_put, put_add: Lowering.step_put, add_at: Lowering.step_put, push: Lowering.step_push,
               push_front: Lowering.step_push, pop: Lowering.step_pop, pop_front: Lowering.step_pop,
               no_elements: Lowering.step_no_elements}
