# SPDX-License-Identifier: Apache-2.0
"""Lists that a loop makes longer or shorter: their length is known only when running.

Such a list has elements of one kind, as an array has; it is printed as the list it is, and read as an array where
NumPy is given it.  A list of known structure becomes one when a loop that must stay a loop changes its length.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    out = []\\n    for v in x:\\n        out.append(v * v)\\n    return np.array(out)"
>>> print(show(form(text, np.ones(3))))
f(x):
    n_0 = shape_of(x, 0)
    out = no_elements()
    enter out_1 = out
    for i in range(n_0), v of x:
        t = v * v
        out_2 = push(out_1, t)
        next out_1 = out_2
    leave out_3 = out_1
    t_1 = as_array(out_3)
    return t_1
"""
import builtins
import copy
import functools
import operator
from contextlib import contextmanager

import gast
import numpy as np

from gradscribe.ast_transform.core.form import TEMPORARY, USER, Apply, Const, Pack, Slice, Var, same_operand
from gradscribe.ast_transform.core.kinds import (
    Array,
    Length,
    Listed,
    Mismatch,
    certainly_differ,
    join,
    same_dtype,
    spelled_shape,
    unknown,
)
from gradscribe.ast_transform.core.operations import (
    as_array,
    as_list,
    no_elements,
    nonempty,
    pop,
    push,
    push_front,
    put,
)
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.list_of_tuples import Columns, is_row
from gradscribe.ast_transform.passes.targets import loaded
from gradscribe.ast_transform.passes.values import (
    SPENT,
    Conflict,
    Frame,
    FunctionValue,
    Grown,
    Rows,
    Struct,
    held_by,
    holding,
)
from gradscribe.ast_transform.passes.views import is_array
from gradscribe.ast_transform.source.diagnose import Demand, LanguageError, ShapeError

KEPT = {len, list, tuple, type, isinstance, hasattr, getattr, callable, print, copy.copy, copy.deepcopy, np.fromiter,
        np.iterable, np.isscalar}               # what is given the list itself, besides records


class Given(gast.expr):
    """A value that has been read already."""
    _fields = ()

    def __init__(self, value):
        super().__init__()
        self.value = value


def _is_number(value):
    return isinstance(value, (Const, Var)) and isinstance(fact_of(value), Array) and not fact_of(value).dims


class Growing(Columns):
    def eval_Given(self, node):
        return node.value

    def element_of(self, items, node):
        """The fact that covers all elements; None for none."""
        fact, items = None, [self.settle(item) for item in items]
        if items and is_row(items[0]):
            return self.element_of_rows(items, node)
        for item in items:
            found = fact_of(item) if isinstance(item, (Var, Const)) else None
            if isinstance(item, Grown) and self.for_array:      # a list of lists, that becomes an array
                found = item.value.fact
            if not isinstance(found, Array):
                self.fail(LanguageError, f"a list of unknown length that holds {self.spell(item)}", node,
                          "Keep numbers or arrays of one shape in it, or tuples of them.")
            found = Array(found.dtype, found.dims)
            fact = found if fact is None else self.together(fact, found, node)
        return fact

    def together(self, a, b, node):
        """The fact of two kinds of elements; NumPy must make of them what the fact says."""
        try:
            fact = join(a, b, "?item")
        except Mismatch as error:
            self.fail(ShapeError, f"a list of unknown length that holds {error}", node,
                      "Make all its elements of one kind, or keep two lists.")
        if any(certainly_differ(m, n) for m, n in zip(a.dims, b.dims)):
            self.fail(ShapeError, f"a list of unknown length that holds arrays of shapes {spelled_shape(a.dims)} and "
                      f"{spelled_shape(b.dims)}", node, "Keep arrays of one shape in it, or keep two lists.")
        dtypes = {np.dtype(a.dtype), np.dtype(b.dtype)}
        if len(dtypes) > 1 and not dtypes <= {np.dtype(int), np.dtype(float)}:
            self.fail(ShapeError, f"a list of unknown length that holds {' and '.join(sorted(map(str, dtypes)))}", node,
                      "Make all its elements of one dtype.")
        return Array(a.dtype if same_dtype(a.dtype, b.dtype) else np.result_type(*dtypes), fact.dims)

    def grow(self, struct, element, name):
        """A list of known structure becomes one of unknown length, wherever it is held."""
        name = name.strip()
        if is_row(element):
            made = self.grown_rows(struct, element, name)
        elif struct.items and not element.dims:
            items, dtype = list(map(self.settle, struct.items)), np.dtype(element.dtype)
            items = [Const(dtype.type(i.value).item()) if isinstance(i, Const) else i for i in items]
            array = self.array_of(Struct("list", items), None)
            array = array if same_dtype(array.fact.dtype, dtype) else self.converted(array, dtype, None)
            made = self.list_of(array, name)
            made.mark, made.element = struct.mark, element
        else:
            made = self.grown_list(element, name, struct.mark)
            for item in struct.items:
                self.append_to(made, self.settle(item))

        def visit(value):
            if isinstance(value, Struct):
                value.items[:] = [made if isinstance(i, Struct) and i.mark is struct.mark else visit(i)
                                  for i in value.items]
            elif held_by(value):
                return holding(value, [visit(v) for v in held_by(value)])
            return made if isinstance(value, Struct) and value.mark is struct.mark else value

        for place in self.places():
            place.env.update({n: visit(v) for n, v in dict(place.env.items()).items()})

    def grown_list(self, element, name, mark=None):
        """A list that is empty so far."""
        made = Grown(None, element, mark)
        fact = Listed(np.dtype(element.dtype), (Length(None, 0), *element.dims))
        if self.unroll:
            lengths = [self.length_known(d) for d in element.dims]
            if None in lengths:
                self.fail(LanguageError, "a list of unknown length that holds arrays whose shape is known only in the "
                          "loop is not compiled yet", None, "Write into an array that is made before the loop.")
            shape = Pack("tuple", (Const(0), *lengths)) if lengths else Const(0)
            made.value = self.build.apply(np.zeros, shape, hint=name, dtype=Const(fact.dtype))
        else:
            made.value = self.build.let(name, Apply(no_elements, ()), fact, USER)
        return made

    def length_known(self, length):
        """A length of the elements, from the arrays that there are before the loop."""
        n = length.normal()
        if n.symbol is None:
            return Const(n.offset)
        for place in self.places():
            for _, value in place.env.items():
                if isinstance(value, Var) and isinstance(value.fact, Array):
                    for k, d in enumerate(value.fact.dims):
                        if d.same(length):
                            return self.build.length(value, k)
        return None

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
        env, at, held = self.frame.env, functools.partial(gast.copy_location, old_node=node), "items "
        while held in env:
            held += " "
        name = at(gast.Name(held, gast.Load(), None, None))
        body = [at(gast.Expr(at(gast.Call(at(gast.Attribute(name, "append", gast.Load())), [node.elt], []))))]
        for g in reversed(node.generators):
            for test in reversed(g.ifs):
                body = [at(gast.If(test, body, []))]
            body = [at(gast.For(g.target, g.iter, body, [], None))]
        must, self.must_stay = self.must_stay, True
        try:
            body[0].iter = gast.copy_location(Given(self.eval(body[0].iter)), body[0].iter)
            env[held] = Struct("list", [])
            self.own_lists.add(env[held].mark)
            with self.own_scope(node.generators, node):
                self.exec_For(body[0])
            made = env[held]
        except (LanguageError, ShapeError):
            raise refused from None
        finally:
            self.must_stay = must
            env.pop(held, None)
        return made

    @contextmanager
    def own_scope(self, generators, node):
        """The names of a comprehension are its own: no function that it may call reads others of these names."""
        env, kept = self.frame.env, {}
        names = {n.id for g in generators for n in gast.walk(g.target) if isinstance(n, gast.Name)}
        for frame in self.places() if names & set(env) else ():
            for value in frame.env.values():
                hidden = names & set(env) & set(loaded(value.node)) if isinstance(value, FunctionValue) and \
                    value.frame is self.frame else ()
                if hidden:
                    self.fail(LanguageError, f"a comprehension has its own {min(hidden)}, and a function reads another",
                              node, "Give the comprehension's variable another name.")
        for n in [n for n in names if n in env]:
            kept[n] = f"{n} "
            while kept[n] in env:
                kept[n] += " "
            env[kept[n]] = env.pop(n)
        try:
            yield
        finally:
            for n in names:
                env.pop(n, None)
            env.update({n: env.pop(hidden) for n, hidden in kept.items() if hidden in env})

    def comprehended(self, node, function):
        """sum(f(v) for v in x if ...) over a length that is not known is a loop."""
        if not (isinstance(function, Const) and function.value in (builtins.sum, np.sum) and len(node.args) == 1 and
                not node.keywords and isinstance(node.args[0], (gast.ListComp, gast.GeneratorExp))):
            return None
        comp = node.args[0]
        if len(comp.generators) != 1:
            return None
        generator = comp.generators[0]
        of_all = function.value is np.sum and isinstance(comp, gast.ListComp)   # a generator is given to Python's sum
        before, held = self.snapshot(), list(self.build.block)
        try:
            items = self.comprehension(comp.generators, lambda: self.eval(comp.elt), node)
        except LanguageError:
            self.restore(before)
            self.build.block[:] = held
        else:
            items = [self.settle(item) for item in items]
            if of_all and not all(map(_is_number, items)):
                return self.rule_call(np.sum, [Struct("list", items)], {}, node)
            return self.total(items, node)
        total, env = "total ", self.frame.env
        while total in env:
            total += " "
        name = lambda ctx: gast.copy_location(gast.Name(total, ctx, None, None), node)      # noqa: E731 (a one-line shorthand)
        add = gast.copy_location(gast.Assign([name(gast.Store())], gast.copy_location(
            gast.BinOp(name(gast.Load()), gast.Add(), comp.elt), node), None), node)
        body = [add]
        for test in generator.ifs:
            body = [gast.copy_location(gast.If(test, body, []), node)]
        over = gast.copy_location(Given(self.eval(generator.iter)), generator.iter)
        env[total] = Const(0)
        try:
            with self.own_scope(comp.generators, node):
                self.exec_For(gast.copy_location(gast.For(generator.target, over, body, [], None), node))
        except LanguageError:
            if not of_all:
                raise
            self.restore(before)
            self.build.block[:] = held
            return None                         # as any function of a list
        found = self.settle(env.pop(total))
        return self.rule_call(np.sum, [found], {}, node) if of_all and not _is_number(found) else found

    def append_to(self, holder, value, node=None, front=False):
        fact, before = holder.value.fact, holder.value
        if self.unroll:
            name, one = holder.value.hint, self.build.item(value, Const(None)) if fact_of(value).dims else \
                self.build.apply(np.array, Pack("list", (value,)), hint="t")
            both = [one, holder.value] if front else [holder.value, one]
            holder.value = self.rule_call(np.concatenate, [Struct("tuple", both)], {}, node)
            holder.value.hint, holder.value.kind = name, USER
        else:
            value = self.operand(value)
            new = Listed(fact.dtype, (fact.dims[0].plus(1), *fact.dims[1:]))
            holder.value = self.build.let(before.hint, Apply(push_front if front else push, (before, value)), new,
                                          USER)
        self.shows_as_well(holder, before, value)

    def shows_as_well(self, holder, before, value):
        """A list shows what it has shown, and the array that has been put into it."""
        shown = self.storages(value) if is_array(value) or self.may_be_cell(value) else frozenset()
        self.put_in_lists |= shown
        self.tokens[holder.value] = self.storages(before) | shown | {holder.value}
        holder.version += 1

    # what a program does with it

    def grown_method(self, holder, name, args, words, node):
        self.live(holder, node)
        if name != "copy":
            self.about_to_change(holder, node)
        self.writes += holder.mark not in self.own_lists
        self.written.append({holder.mark})
        front = name == "insert" and len(args) == 2 and isinstance(args[0], Const) and args[0].value == 0
        if (name == "append" and len(args) == 1 or front) and not words:
            item = args[-1]
            if isinstance(item, Grown) and self.for_array:
                item = self.array_of_grown(item)
            self.same_kind(holder, self.element_of([item], node), node)
            self.append_to(holder, self.settle(item), node, front)
            return Const(None)
        if name == "extend" and len(args) == 1 and not words:
            for item in self.listed(args[0], node):
                self.grown_method(holder, "append", [item], {}, node)
            return Const(None)
        if name == "pop" and (not args or isinstance(args[0], Const) and args[0].value == -1) and not words:
            return self.pop_from(holder)
        if name == "pop" and isinstance(args[0], Const) and args[0].value == 0 and len(args) == 1 and not words:
            item = self.grown_item(holder, Const(0), node)
            self.left_with(holder, Const(slice(1, None)), node)
            return item
        if name == "reverse" and not args and not words:
            return self.left_with(holder, Const(slice(None, None, -1)), node)
        if name == "copy" and not args:
            return self.copied_list(holder)
        self.fail(LanguageError, f"the method {name} of a list whose length is known only when running", node,
                  "append, insert(0, v), extend, reverse, pop() and pop(0) are understood.")

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
        return self.taken_from(before, value)

    def taken_from(self, items, value):
        """What a list gives shows what has been put into it: an array, or what may be one without axes."""
        shown = self.storages(items)
        if isinstance(value, Var) and (value.fact.dims or not shown.isdisjoint(self.put_in_lists)):
            self.tokens[value] = shown | {value}
            if not fact_of(value).dims:
                self.cells.add(value)
        return value

    def left_with(self, holder, index, node):
        """The list holds a slice of what it held."""
        part = self.grown_item(holder, index, node)
        holder.value, holder.version = part.value, holder.version + 1
        return Const(None)

    def copied_list(self, holder):
        value = holder.value if self.unroll else self.build.let(holder.value.hint, Apply(as_list, (holder.value,)),
                                                                holder.value.fact, USER)
        return Grown(value, holder.element)

    def list_of(self, array, name=None):
        """list(array): its rows."""
        fact = array.fact
        element = Array(np.dtype(fact.dtype), fact.dims[1:])
        if self.unroll:
            return Grown(array, element) if fact.rank == 1 else None
        value = self.build.let(name or array.hint, Apply(as_list, (array,)), Listed(np.dtype(fact.dtype), fact.dims),
                               USER if name else TEMPORARY)
        if fact.rank > 1:
            self.tokens[value] = self.storages(array) | {value}
        return Grown(value, element)

    @contextmanager
    def going_over(self, value, walk):
        """The lists that a loop goes through; those whose elements come in their order say where the loop is."""
        walk.lists = [[mark, None, in_order] for mark, in_order in self.lists_in(value).items()]
        self.gone_over += walk.lists
        yield
        del self.gone_over[len(self.gone_over) - len(walk.lists):]

    def about_to_change(self, holder, node, place=None):
        """A list that a loop goes through is changed, if at all, in the place that has just been read."""
        for mark, here, in_order in self.gone_over:
            just_read = in_order and here is not None and same_operand(place, here)
            if mark is holder.mark and not just_read:
                self.fail(LanguageError, "a list changes while a loop goes through it", node,
                          "Go through a copy: list(items).")
        for frame in [*self.stack, *self.enclosing] if self.shown_lists else ():
            for name, value in frame.env.items():
                if holder.mark in self.lists_shown(value):
                    self.fail(LanguageError, f"a list changes before {name.strip()} is gone through, which reads it",
                              node, "Make a list of the iterator where it stands: list(...).")

    def a_generator(self, made):
        """What Python makes only once: of an array of unknown length it is the list of its elements."""
        if isinstance(made, Grown):
            made.once = len(self.loops)
        return made

    def gone_through_once(self, holder, node):
        """A generator has nothing left when it has been gone through, by a loop that may have left it early as well."""
        if holder.once is None:
            return
        if holder.once is SPENT or holder.once < len(self.loops):
            self.fail(LanguageError, "an iterator is read a second time, when nothing is left in it", node,
                      "Make a list of it first.")
        holder.once = SPENT

    def live(self, holder, node):
        """The list holds what it held when its elements were put in."""
        if isinstance(holder.value, Conflict):
            self.write_out(holder.value, node)
            self.fail(LanguageError, f"a list holds {holder.value.reason}", node,
                      "Put a copy into the list: items.append(x.copy()).")

    def grown_item(self, holder, index, node):
        self.live(holder, node)
        if isinstance(index, Slice) or isinstance(index, Const) and isinstance(index.value, slice):
            whole = holder.value.fact
            part = type(whole)(whole.dtype, (unknown(f"?{holder.value.hint}"), *whole.dims[1:]))
            part = self.build.let(holder.value.hint, Apply(operator.getitem, (holder.value, index)), part, USER)
            self.tokens[part] = self.storages(holder.value) | {part}
            return Grown(part, holder.element)
        fact = fact_of(index) if isinstance(index, (Var, Const)) else None
        if self.unroll or not (isinstance(fact, Array) and not fact.dims and fact.kind in "iu"):
            return self.taken_from(holder.value, self.build.item(self.array_of_grown(holder), index))
        item = self.build.let("item", Apply(operator.getitem, (holder.value, index)), holder.element)
        return self.taken_from(holder.value, item)

    def array_of_grown(self, holder):
        """np.array(list)"""
        self.live(holder, None)
        fact = holder.value.fact
        if self.unroll:
            return holder.value
        made = self.build.made.get(holder.value)        # of a copy of a list: of the list
        items = made.args[0] if isinstance(made, Apply) and made.function is as_list else holder.value
        return self.build.let("t", Apply(as_array, (items,)), Array(fact.dtype, fact.dims))

    def elements_of_grown(self, holder):
        """The elements, as an array, for a function of Python's that hands them on: writes are seen in them."""
        array = self.array_of_grown(holder)
        self.tokens[array] = self.storages(holder.value) | {array}
        return array

    def grown_result(self, holder):
        """The list as a result: emitted code returns it; compiled code an array, of which a list is made."""
        self.live(holder, None)
        return Pack("grown", (holder.value,), (), holder.element) if self.unroll else holder.value

    def no_open_list(self, result, label):
        """Transformations that go into a result want to know how many values it has."""
        if isinstance(result, Pack) and result.kind != "grown":
            for item in result.items:
                self.no_open_list(item, label)
        elif isinstance(result, Pack) or isinstance(result, Var) and isinstance(result.fact, Listed):
            raise LanguageError(f"{label} of a function that returns a list whose length is known only when running",
                                self.build.origin or self.returned_at, "Return an array: np.array(items).")

    def stacked(self, function, holder, args, words, node):
        """np.stack(list) and np.concatenate(list), along the first axis."""
        if args or set(words) - {"axis"} or "axis" in words and self.static(words["axis"], "the axis", node) != 0:
            self.fail(LanguageError, f"np.{function.__name__} of a list whose length is known only when running takes "
                      "no more arguments", node, "Make an array of it first: np.array(items).")
        array = self.array_of_rows(holder, node) if isinstance(holder, Rows) else self.array_of_grown(holder)
        rank = fact_of(array).rank - 1
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
                held = self.uneven_lists.pop(mark)
                if held or items:
                    reading.grown.append((places[0], self.element_of([*items, *held], None)))
                    found = True
        return found

    def grow_uneven(self, uneven):
        """Whether lists that a branch leaves in two lengths are there: they are of unknown length from before it."""
        found = False
        for mark, (holder, _, items, _, places) in self.containers().items():
            if mark in uneven and isinstance(holder, Struct) and self.is_own_list(holder) and (items or uneven[mark]):
                self.grow(holder, self.element_of([*items, *uneven[mark]], None), places[0][1])
                found = True
        return found

    def is_own_list(self, holder):
        return holder.kind == "list" and holder.cls is None and holder.whole is None and holder not in self.outside

    @staticmethod
    def may_grow(value):
        """A list, which += changes in place."""
        return isinstance(value, (Grown, Rows)) or isinstance(value, Struct) and value.kind == "list"

    def can_grow(self, holder, places, own):
        return self.must_stay and self.is_own_list(holder) and not any(p[:2] in own for p in places) and \
            isinstance(places[0][0], Frame)

    def length_of_grown(self, holder):
        self.live(holder, None)
        return self.build.length(holder.value, 0)

    def has_elements(self, holder):
        self.live(holder, None)
        if self.unroll:
            return self.build.apply(operator.gt, self.length_of_grown(holder), Const(0))
        return self.build.let("t", Apply(nonempty, (holder.value,)), Array(bool))

    def set_grown(self, holder, index, value, node):
        """items[index] = value"""
        self.live(holder, node)
        self.about_to_change(holder, node, index)
        self.writes += holder.mark not in self.own_lists
        self.written.append({holder.mark})
        fact = fact_of(index) if isinstance(index, (Var, Const)) and not (
            isinstance(index, Const) and isinstance(index.value, slice)) else None
        if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
            self.fail(LanguageError, "a part of a list whose length is known only when running is replaced", node,
                      "Replace its elements one by one.")
        self.same_kind(holder, self.element_of([value], node), node)
        before, value = holder.value, self.operand(self.settle(value))
        holder.value = self.build.let(before.hint, Apply(put, (before, index, value)), before.fact, USER)
        self.shows_as_well(holder, before, value)

    def entered_list(self, holder, fact, name):
        """The list as it is when a pass begins."""
        kind = Listed if isinstance(fact, Listed) else Array
        var = Var(name, kind(fact.dtype, (unknown(f"?{name}"), *fact.dims[1:])), USER)
        self.list_vars.add(var)
        return var
