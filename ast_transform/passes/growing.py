"""Lists that a loop makes longer or shorter: their length is known only when running.

Such a list has elements of one kind, as an array has; it is printed as the list it is, and read as an array where
NumPy is given it.  A list of known structure becomes one when a loop that must stay a loop changes its length.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    out = []\\n    for v in x:\\n        out.append(v * v)\\n    return np.array(out)"
>>> print(show(form(text, np.ones(3))))
f(x):
    n_0 = shape_of(x, 0)
    out = no_elements()
    enter v = undefined
    enter out_1 = out
    for i in range(n_0), v_1 of x:
        t = v_1 * v_1
        out_2 = push(out_1, t)
        next v = v_1
        next out_1 = out_2
    leave v_2 = v
    leave out_3 = out_1
    t_1 = as_array(out_3)
    return t_1
"""
import builtins
import functools
import operator

import gast
import numpy as np

from gradscribe.ast_transform.core.form import USER, Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Listed, Mismatch, join, same_dtype, unknown
from gradscribe.ast_transform.core.operations import as_array, as_list, no_elements, nonempty, pop, push
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Conflict, Frame, Grown, Struct
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError

STACKING = {np.stack, np.vstack, np.hstack, np.concatenate, np.column_stack, np.dstack, np.block}
KEPT = {len, list, isinstance, print}   # what is given the list itself


class Growing:
    def element_of(self, items, node):
        """The fact that covers all elements; None for none."""
        fact = None
        for item in map(self.settle, items):
            found = fact_of(item) if isinstance(item, (Var, Const)) else None
            if isinstance(item, Grown) and self.for_array:      # a list of lists, that becomes an array
                found = item.value.fact
            if not isinstance(found, Array):
                self.fail(LanguageError, f"a list of unknown length that holds {self.spell(item)}", node,
                          "Keep numbers or arrays of one shape in it, in several lists if need be.")
            found = Array(found.dtype, found.dims)
            fact = found if fact is None else self.together(fact, found, node)
        return fact

    def together(self, a, b, node):
        """The fact of two kinds of elements; NumPy must make of them what the fact says."""
        try:
            fact = join(a, b, "?item")
        except Mismatch as error:
            self.fail(ShapeError, f"a list of unknown length: {error}", node)
        dtypes = {np.dtype(a.dtype), np.dtype(b.dtype)}
        if len(dtypes) > 1 and not dtypes <= {np.dtype(int), np.dtype(float)}:
            self.fail(ShapeError, f"a list of unknown length that holds {' and '.join(sorted(map(str, dtypes)))}", node,
                      "Make all its elements of one dtype.")
        return Array(a.dtype if same_dtype(a.dtype, b.dtype) else np.result_type(*dtypes), fact.dims)

    def grow(self, struct, element, name):
        """A list of known structure becomes one of unknown length, wherever it is held."""
        made, name = Grown(None, element, struct.mark), name.strip()
        fact = Listed(np.dtype(element.dtype), (Length(None, 0), *element.dims))
        if self.unroll:
            if element.dims:
                self.fail(LanguageError, "a list of unknown length that holds arrays is not compiled yet", None,
                          "Write into an array that is made before the loop.")
            made.value = self.build.apply(np.zeros, Const(0), hint=name, dtype=Const(fact.dtype))
        else:
            made.value = self.build.let(name, Apply(no_elements, ()), fact, USER)
        for item in struct.items:
            self.append_to(made, self.settle(item))

        def visit(value):
            if isinstance(value, Struct):
                value.items[:] = [made if isinstance(i, Struct) and i.mark is struct.mark else visit(i)
                                  for i in value.items]
            return made if isinstance(value, Struct) and value.mark is struct.mark else value

        for place in self.places():
            place.env.update({n: visit(v) for n, v in dict(place.env.items()).items()})

    def or_grown(self, node, finish):
        """A comprehension: over values known now, or else a loop that fills a list."""
        before, block = self.snapshot(), list(self.build.block)
        try:
            return finish(self.comprehension(node.generators, lambda: self.eval(node.elt), node))
        except (LanguageError, Demand) as error:
            if len(node.generators) > 1 and isinstance(node, gast.GeneratorExp):
                raise
            refused = error
        self.restore(before)
        self.build.block[:] = block
        env, names = self.frame.env, {n.id for g in node.generators for n in gast.walk(g.target)
                                      if isinstance(n, gast.Name)}
        kept = {n: env.pop(n) for n in names if n in env}
        at, held = functools.partial(gast.copy_location, old_node=node), "items "
        while held in env:
            held += " "
        name = at(gast.Name(held, gast.Load(), None, None))
        body = [at(gast.Expr(at(gast.Call(at(gast.Attribute(name, "append", gast.Load())), [node.elt], []))))]
        for g in reversed(node.generators):
            for test in reversed(g.ifs):
                body = [at(gast.If(test, body, []))]
            body = [at(gast.For(g.target, g.iter, body, [], None))]
        env[held] = Struct("list", [])
        must, self.must_stay = self.must_stay, True
        try:
            self.exec_For(body[0])
            made = env[held]
        except (LanguageError, ShapeError):
            raise refused from None
        finally:
            self.must_stay = must
            env.pop(held, None)
            for n in names:
                env.pop(n, None)
            env.update(kept)
        return made

    def comprehended(self, node, function):
        """sum(f(v) for v in x if ...) over a length that is not known is a loop."""
        if not (isinstance(function, Const) and function.value in (builtins.sum, np.sum) and len(node.args) == 1 and
                not node.keywords and isinstance(node.args[0], (gast.ListComp, gast.GeneratorExp))):
            return None
        comp = node.args[0]
        if len(comp.generators) != 1:
            return None
        generator = comp.generators[0]
        before, held = self.snapshot(), list(self.build.block)
        try:
            items = self.comprehension(comp.generators, lambda: self.eval(comp.elt), node)
        except LanguageError:
            self.restore(before)
            self.build.block[:] = held
        else:
            return self.total(items, node)
        name = lambda ctx: gast.copy_location(gast.Name("total", ctx, None, None), node)      # noqa: E731
        add = gast.copy_location(gast.Assign([name(gast.Store())], gast.copy_location(
            gast.BinOp(name(gast.Load()), gast.Add(), comp.elt), node), None), node)
        body = [add]
        for test in generator.ifs:
            body = [gast.copy_location(gast.If(test, body, []), node)]
        env = self.frame.env
        names = {"total", *(n.id for n in gast.walk(generator.target) if isinstance(n, gast.Name))}
        kept = {n: env[n] for n in names if n in env}
        if "total" in kept and any(isinstance(n, gast.Name) and n.id == "total" for n in gast.walk(comp)):
            self.fail(LanguageError, "a comprehension that reads a variable named total", node, "Write it as a loop.")
        env["total"] = Const(0)
        for n in names - {"total"}:
            env.pop(n, None)
        loop = gast.copy_location(gast.For(generator.target, generator.iter, body, [], None), node)
        self.exec_For(loop)
        result = env["total"]
        for n in names:
            env.pop(n, None)
        env.update(kept)
        return result

    def append_to(self, holder, value, node=None):
        fact = holder.value.fact
        if self.unroll:
            name, one = holder.value.hint, self.build.apply(np.array, Pack("list", (value,)), hint="t")
            holder.value = self.rule_call(np.concatenate, [Struct("tuple", [holder.value, one])], {}, node)
            holder.value.hint, holder.value.kind = name, USER
        else:
            before, value = holder.value, self.operand(value)
            new = Listed(fact.dtype, (fact.dims[0].plus(1), *fact.dims[1:]))
            holder.value = self.build.let(before.hint, Apply(push, (before, value)), new, USER)
            shown = self.storages(value) if isinstance(value, Var) and fact_of(value).dims else frozenset()
            self.tokens[holder.value] = self.storages(before) | shown | {holder.value}
        holder.version += 1

    # what a program does with it

    def grown_method(self, holder, name, args, words, node):
        self.live(holder, node)
        self.writes += 1
        if name == "append" and len(args) == 1 and not words:
            if isinstance(args[0], Grown) and self.for_array:
                args = [self.array_of_grown(args[0])]
            element = self.element_of(args, node)
            self.same_kind(holder, element, node)
            self.append_to(holder, self.settle(args[0]), node)
            return Const(None)
        if name == "extend" and len(args) == 1 and not words:
            for item in self.listed(args[0], node):
                self.grown_method(holder, "append", [item], {}, node)
            return Const(None)
        if name == "pop" and not args and not words:
            return self.pop_from(holder)
        if name == "copy" and not args:
            return self.copied_list(holder)
        self.fail(LanguageError, f"the method {name} of a list whose length is known only when running", node,
                  "append, extend and pop() are understood.")

    def same_kind(self, holder, element, node):
        fact = self.together(holder.element, element, node)
        if np.dtype(fact.dtype) != holder.value.fact.dtype:
            self.fail(ShapeError, f"a list of unknown length that holds {holder.value.fact.dtype} and "
                      f"{np.dtype(element.dtype)}", node, "Make all its elements of one dtype.")
        holder.element = fact

    def pop_from(self, holder):
        before, fact = holder.value, holder.value.fact
        shorter = (fact.dims[0].plus(-1), *fact.dims[1:])
        if self.unroll:
            value = self.build.item(before, Const(-1))
            holder.value = self.build.item(before, Const(slice(None, -1)), before.hint)
        else:
            holder.value, value = self.build.several([before.hint, "item"], Apply(pop, (before,)),
                                                     [Listed(fact.dtype, shorter), holder.element], USER)
            self.tokens[holder.value] = self.storages(before) | {holder.value}
        holder.version += 1
        return value

    def copied_list(self, holder):
        value = holder.value if self.unroll else self.build.let(holder.value.hint, Apply(as_list, (holder.value,)),
                                                                holder.value.fact, USER)
        return Grown(value, holder.element)

    def list_of(self, array):
        """list(array): its rows."""
        fact = array.fact
        element = Array(np.dtype(fact.dtype), fact.dims[1:])
        if self.unroll:
            return Grown(array, element) if fact.rank == 1 else None
        value = self.build.let(array.hint, Apply(as_list, (array,)), Listed(np.dtype(fact.dtype), fact.dims), USER)
        if fact.rank > 1:
            self.tokens[value] = self.storages(array) | {value}
        return Grown(value, element)

    def live(self, holder, node):
        """The list holds what it held when its elements were put in."""
        if isinstance(holder.value, Conflict):
            self.fail(LanguageError, f"a list holds {holder.value.reason}", node,
                      "Put a copy into the list: items.append(x.copy()).")

    def grown_item(self, holder, index, node):
        self.live(holder, node)
        if isinstance(index, Slice) or isinstance(index, Const) and isinstance(index.value, slice):
            whole = holder.value.fact
            part = type(whole)(whole.dtype, (unknown(f"?{holder.value.hint}"), *whole.dims[1:]))
            return Grown(self.build.let(holder.value.hint, Apply(operator.getitem, (holder.value, index)), part, USER),
                         holder.element)
        fact = fact_of(index) if isinstance(index, (Var, Const)) else None
        if self.unroll or not (isinstance(fact, Array) and not fact.dims and fact.kind in "iu"):
            return self.build.item(self.array_of_grown(holder), index)
        return self.build.let("item", Apply(operator.getitem, (holder.value, index)), holder.element)

    def array_of_grown(self, holder):
        """np.array(list)"""
        self.live(holder, None)
        fact = holder.value.fact
        if self.unroll:
            return holder.value
        return self.build.let("t", Apply(as_array, (holder.value,)), Array(fact.dtype, fact.dims))

    def stacked(self, function, holder, args, words, node):
        """np.stack(list) and np.concatenate(list), along the first axis."""
        if args or set(words) - {"axis"} or "axis" in words and self.static(words["axis"], "the axis", node) != 0:
            self.fail(LanguageError, f"np.{function.__name__} of a list whose length is known only when running takes "
                      "no more arguments", node, "Make an array of it first: np.array(items).")
        rank, array = len(holder.element.dims), self.array_of_grown(holder)
        if function is np.stack or function is np.vstack and rank == 1:
            return array
        if function in (np.concatenate, np.hstack) and rank == 1:
            return self.rule_call(np.reshape, [array, Const(-1)], {}, node)
        self.fail(LanguageError, f"np.{function.__name__} of a list whose length is known only when running", node,
                  "Make an array of it first: np.array(items).")

    def uneven(self, before, error, reading, own):
        """Lists that a branch has made longer, or not, are of unknown length from before the loop."""
        found = False
        for mark, (holder, _, items, _, places) in before.items():
            if mark in self.uneven_lists and isinstance(holder, Struct) and self.can_grow(holder, places, own):
                longest = self.uneven_lists.pop(mark)
                if longest or items:
                    reading.grown.append((places[0], self.element_of([*items, *longest[len(items):]], None)))
                    found = True
        return found

    @staticmethod
    def may_grow(value):
        """A list, which += changes in place."""
        return isinstance(value, Grown) or isinstance(value, Struct) and value.kind == "list"

    def can_grow(self, holder, places, own):
        return self.must_stay and holder.kind == "list" and holder.cls is None and holder.whole is None and \
            holder not in self.outside and not any(p[:2] in own for p in places) and isinstance(places[0][0], Frame)

    def length_of_grown(self, holder):
        self.live(holder, None)
        return self.build.length(holder.value, 0)

    def has_elements(self, holder):
        self.live(holder, None)
        if self.unroll:
            return self.build.apply(operator.gt, self.length_of_grown(holder), Const(0))
        return self.build.let("t", Apply(nonempty, (holder.value,)), Array(bool))

    @staticmethod
    def entered_list(holder, fact, name):
        """The list as it is when a pass begins."""
        if isinstance(fact, Listed):
            return Var(name, Listed(fact.dtype, (unknown(f"?{name}"), *fact.dims[1:])), USER)
        return Var(name, Array(fact.dtype, (unknown(f"?{name}"), *fact.dims[1:])), USER)
