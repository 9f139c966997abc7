# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and what they carry, as text for Numba."""
import re

import numpy as np

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.form import Apply, Const, Let, Undefined, Var, all_made
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.codegen.lowered import ROW, Core, Lazy, dtype_text
from gradscribe.codegen.scalar_forms import literal, truth
from gradscribe.codegen.settled import owned


class Loops(Core):
    """The statements that hold blocks; `block` and the simple statements are in lowering."""

    def empty_list(self, fact):
        """An empty list whose element type is certain."""
        if not isinstance(fact, Stack) or not isinstance(fact.element, (Array, Stack)):
            self.refuse("a list of containers has no Numba form")
        return f"[{self.nothing(fact.element)} for _ in range(0)]"

    def nothing(self, fact):
        """A value for what has none yet."""
        if isinstance(fact, Stack):
            return self.empty_list(fact)
        if not fact.dims:
            return literal(0, fact.dtype)
        lengths = [self.known_length(d) for d in fact.dims]
        lengths = ["0"] * fact.rank if None in lengths else lengths         # it may be copied, though nothing reads it
        return f"np.empty(({', '.join(lengths)}{',' if fact.rank == 1 else ''}), {dtype_text(fact.dtype)})"

    def known_length(self, length):
        """The text of a length that the arguments tell, or a number; None for another."""
        n = length.normal()
        if n.symbol is None:
            return str(n.offset)
        if n.symbol not in self.named_lengths:
            return None
        text, offset = self.named_lengths[n.symbol]
        return text if n.offset == offset else f"{text} + {n.offset - offset}"

    def copies(self, pairs):
        """Assignments made at once."""
        moves = []
        for var, value in pairs:
            name = self.naming.names.get(var)
            if name is None or name in [t for t, _ in moves]:
                continue
            text = self.copied_value(var, value)
            if text != name:
                moves.append((name, text))
        while moves:
            free = next((k for k, (t, _) in enumerate(moves) if not any(
                re.search(rf"\b{re.escape(t)}\b", n) for j, (_, n) in enumerate(moves) if j != k)), None)
            if free is None:
                self.say(f"{', '.join(t for t, _ in moves)} = {', '.join(n for _, n in moves)}")
                return
            self.say("{} = {}".format(*moves.pop(free)))

    def copied_value(self, var, value):
        fact = var.fact
        if isinstance(value, Const) and isinstance(value.value, Undefined):
            return self.nothing(fact) if isinstance(fact, (Array, Stack)) else "0"
        if isinstance(fact, Stack):
            return (
                self.naming[value]
                if isinstance(value, Var)
                else self.refuse("a list that is a constant has no Numba form")
            )
        if not isinstance(fact, Array):
            return "0" if isinstance(value, Const) else self.refuse(
                "what a loop or a branch sets here is no number and no array, and has no Numba form")
        if not fact.dims:
            return self.scalar(value, fact.dtype)
        lazy = self.lazy(value)
        if not lazy.rank:
            self.refuse("a number in one pass of a loop and an array in another has no Numba form")
        if lazy.view == ROW and var not in self.function.notes["updated"] and lazy.exact == np.dtype(fact.dtype):
            return lazy.name                    # another name for it will do: nothing is written by it
        return self.array(lazy, fact.dtype).name

    def step_If(self, step):
        test = self.lazy(step.test).operand() if not isinstance(getattr(step.test, "fact", None), Stack) else None
        text = truth(test) if test is not None else f"len({self.naming[step.test]}) > 0"
        arms = []
        for arm in ("then", "orelse"):
            kept, self.lines = self.lines, []
            self.level += 1
            self.block(getattr(step, arm))
            self.origin = step.origin or self.origin
            self.copies([(j.var, getattr(j, arm)) for j in step.joins])
            self.level -= 1
            arms.append(self.lines)
            self.lines = kept
        for j in step.joins:
            sides = [self.keys.get(v) for v in (j.then, j.orelse) if isinstance(v, Var)]
            if len(sides) == 2 and None not in sides and isinstance(j.var.fact, Array) and j.var.fact.dims:
                self.keys[j.var] = [a if a == b else (j.var, k) for k, (a, b) in enumerate(zip(*sides))]
                texts = [self.texts.get(v) or [None] * j.var.fact.rank for v in (j.then, j.orelse)]
                self.texts[j.var] = [a if a == b else None for a, b in zip(*texts)]
        then, orelse = arms
        if not then and not orelse:
            return
        if then:
            self.say(f"if {text}:")
            self.lines += then
        else:
            self.say(f"if not ({text}):")
            self.lines += orelse
            return
        if orelse:
            self.say("else:")
            self.lines += orelse

    def enter(self, step):
        """The copies into a loop; what only writes change keeps its lengths."""
        self.copies([(c.inner, c.init) for c in step.carries])
        for c in step.carries:
            if not isinstance(c.init, Var) or not isinstance(c.inner.fact, Array) or not c.inner.fact.dims:
                continue
            keys = self.keys.get(c.init) or [(c.init, k) for k in range(c.inner.fact.rank)]
            if self.kept(c.next, c.inner):
                self.keys[c.inner] = self.keys[c.outer] = keys
                self.texts[c.inner] = self.texts[c.outer] = self.texts.get(c.init)
                continue
            # facts tell which lengths stay, of what is set before; `again` checks them after each pass
            stay = [m.same(n) and not m.is_unit and c.inner not in self.unset
                    for m, n in zip(c.init.fact.dims, c.inner.fact.dims)]
            texts = self.texts.get(c.init) or [None] * len(keys)
            self.keys[c.inner] = [key if same else (c.inner, k) for k, (key, same) in enumerate(zip(keys, stay))]
            self.texts[c.inner] = [text if same else None for text, same in zip(texts, stay)]

    def again(self, step):
        """The copies at the end of a pass."""
        for c in step.carries:
            keys = self.keys.get(c.inner)
            if (
                keys is None
                or not isinstance(c.next, Var)
                or c.next is c.inner
                or not isinstance(c.inner.fact, Array)
                or self.kept(c.next, c.inner)
            ):
                continue
            later = self.lazy(c.next).dims
            for k, (key, d) in enumerate(zip(keys, later)):
                if key != (c.inner, k) and key != d.key and d.kind != "one":
                    self.helper("same")
                    kept = (self.texts.get(c.inner) or {k: None})[k] or f"{self.naming[c.inner]}.shape[{k}]"
                    self.say(f"same({kept}, {d.text})")
            if c.outer in self.naming.names:
                self.keys[c.outer] = [key if key != (c.inner, k) else (c.outer, k) for k, key in enumerate(keys)]
                self.texts[c.outer] = self.texts.get(c.inner)
        self.copies([(c.inner, c.next) for c in step.carries])

    def kept(self, value, base):
        """Whether a value is `base` with entries written."""
        for _ in range(200):
            if value is base:
                return True
            made = self.maker.get(value) if isinstance(value, Var) else None
            if isinstance(made, Let) and isinstance(made.value, Apply) and (
                    updates(made.value) or made.value.function is owned):
                value = made.value.args[0]
            elif made is not None and hasattr(made, "inner"):
                if not self.kept(made.next, made.inner):
                    return False
                value = made.init
            elif made is not None and hasattr(made, "then"):
                return self.kept(made.then, base) and self.kept(made.orelse, base)
            else:
                return False
        return False

    def step_For(self, step):
        changed = {
            self.naming[v] for v in [*all_made(step.body), *(c.inner for c in step.carries)] if v in self.naming.names
        }
        sources = []
        for v, source in step.items:
            if isinstance(source, Apply) and source.function is range:
                sources.append((v, [self.steady(self.scalar(a), changed) for a in source.args]))
                continue
            array = self.lazy(source)
            array = array if array.name else self.array(array)
            if changed & set(re.findall(r"\w+", array.name)):
                array = self.array(Lazy(array.dims, array.dtype, array.read, 1))
            sources.append((v, array))
        key = self.length_key(step.count)
        count = self.atom(self.scalar(step.count), "n")
        self.enter(step)
        index = self.naming.names.get(step.index) or self.fresh("at")
        self.bounds[step.index] = key
        self.say(f"for {index} in range({count} - 1, -1, -1):" if step.reverse else f"for {index} in range({count}):")
        self.level += 1
        for v, source in sources:
            if v not in self.naming.names:
                continue
            name = self.naming[v]
            if isinstance(source, list):
                start, _, by = source
                sign, by = ("-", by[1:]) if by.startswith("-") and start != "0" else ("+", by)
                text = index if by == "1" else f"{index} * {by}"
                self.say(f"{name} = {text if start == '0' else f'{start} {sign} {text}'}")
            elif source.rank == 1:
                self.say(f"{name} = {source.read([index])}")
            else:
                self.say(f"{name} = {source.name}[{index}]")
                self.views[v] = True
                self.keys[v], self.texts[v] = (
                    [d.key for d in source.dims[1:]],
                    [self.stable(d.text) for d in source.dims[1:]],
                )
        self.block(step.body)
        self.origin = step.origin or self.origin
        self.again(step)
        if (
            not self.lines
            or self.lines[-1][0] < self.level
            or self.lines[-1][1].startswith("for ")
            and self.lines[-1][0] == self.level - 1
        ):
            self.say("pass")
        self.level -= 1
        self.copies([(c.outer, c.inner) for c in step.carries])

    def steady(self, text, changed):
        """A scalar that the body of a loop does not change."""
        if re.fullmatch(r"-\d+", text):
            return text
        if not changed & set(re.findall(r"\w+", text)):
            return self.atom(text)
        name = self.fresh("t")
        self.say(f"{name} = {text}")
        return name

    def step_While(self, step):
        self.enter(step)
        self.say("while True:")
        self.level += 1
        self.block(step.head)
        self.origin = step.origin or self.origin
        if isinstance(getattr(step.test, "fact", None), Stack):
            text = f"len({self.naming[step.test]}) > 0"
        else:
            text = truth(self.lazy(step.test).operand())
        with self.inside(f"if not ({text}):"):
            self.say("break")
        self.block(step.body)
        self.origin = step.origin or self.origin
        self.again(step)
        self.level -= 1
        self.copies([(c.outer, c.inner) for c in step.carries])
