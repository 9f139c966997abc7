# SPDX-License-Identifier: Apache-2.0
"""Sums into places that are looked up, always in one order: threads write down what goes where, that is sorted by
place, and one thread adds up what goes to one place.

Additions at once come in another order in each call, and a sum of floating point numbers hangs on its order.

Source: G. Blelloch, Prefix sums and their applications, 1990 (segments of equal keys).

>>> from gradscribe.codegen.cuda.inferred import inferred, np
>>> from gradscribe.codegen.cuda.sorting import Sorting
>>> text = '''def f(x, k):
...     z = np.zeros((5,), np.float64)
...     for i in range(900):
...         z[k[i]] += x[i]
...     return (z,)'''
>>> function, f8, i8 = ast.parse(text).body[0], np.dtype("f8"), np.dtype("i8")
>>> Segments(function, Sorting(function, inferred(text, "f", [(f8, 1), (i8, 1)]))).run()
>>> print(ast.unparse(function))
def f(x, k):
    z = np.zeros((5,), np.float64)
    z_keys = np.full((900,), -1, np.int64)
    z_added = np.empty((900,), np.float64)
    for i in range(900):
        z_keys[i] = k[i]
        z_added[i] = x[i]
    z_order = argsort_lines(z_keys.reshape((1, 900)))
    for z_first in range(900):
        z_key = z_keys[z_order[0, z_first]]
        if z_key >= 0 and (z_first == 0 or z_keys[z_order[0, z_first - 1]] != z_key):
            z_sum = z_added[z_order[0, z_first]]
            z_next = z_first + 1
            while z_next < 900 and z_keys[z_order[0, z_next]] == z_key:
                z_sum += z_added[z_order[0, z_next]]
                z_next += 1
            z[z_key] += z_sum
    return (z,)

Where only a pass knows how often it adds, a first loop counts that and does nothing else.
"""
import ast
from typing import NamedTuple

from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.codegen.cuda.counting import asked, only
from gradscribe.codegen.cuda.kernels import copied, enclosed, other
from gradscribe.codegen.cuda.sorting import is_range
from gradscribe.codegen.cuda.trees import entries, names_in, parts_of, walk

BELOW = "Let the loop that adds set no array that it reads: what is added is counted first, by the same loop."


class Sum(NamedTuple):
    """An addition: the block it stands in, the loops around whose passes are known before, whether these are all."""
    body: list
    statement: ast.AugAssign
    loops: list
    counted: bool


class Segments:
    """Rewrites the body of a function in place; sorting: of it, as it is until then."""

    def __init__(self, function, sorting):
        self.function, self.sorting = function, sorting
        self.taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}

    def run(self):
        self.function.body = self.block(self.function.body)

    def block(self, body):
        out = []
        for node in body:
            kind = self.sorting.of(node)
            if kind == "kernel" and self.sorting.nest(node).free.atomic:
                out += self.of_nest(node, self.sorting.nest(node).free.atomic)
                continue
            if kind == "host" and isinstance(node, (ast.For, ast.While, ast.If)):
                node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            out.append(node)
        return out

    def of_nest(self, loop, atomic):
        """The statements that stand for a loop that adds to entries of some arrays."""
        before, after = [], []
        sets = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        found = list(self.sums([loop], [], True, sets, atomic))
        numbers = {s.statement: (self.fresh(f"{s.statement.target.value.id}_number"), self.fresh(
            f"{s.statement.target.value.id}_most")) for s in found if not s.counted}
        if numbers:
            before += self.counting(loop, found, atomic, sets, numbers)
        for s in found:
            number, most = numbers.get(s.statement, (None, None))
            made, first, last = self.of_sum(s.statement, s.loops, number, most)
            k = s.body.index(s.statement)
            s.body[k:k + 1] = made
            if number is not None:
                s.loops[-1].body[:0] = self.read(f"{number} = 0", s.statement)
            before += first
            after += last
        return [*before, loop, *after]

    def sums(self, body, loops, counted, sets, atomic):
        """The additions among the statements of a loop, each as a Sum."""
        for s in body:
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript) and isinstance(
                    s.target.value, ast.Name) and s.target.value.id in atomic:
                yield Sum(body, s, loops, counted)
            elif isinstance(s, ast.For):
                known = counted and is_range(s) and not names_in(s.iter).keys() & sets
                yield from self.sums(s.body, [*loops, s] if known else loops, known, sets, atomic)
            elif isinstance(s, ast.While):
                yield from self.sums(s.body, loops, False, sets, atomic)
            elif isinstance(s, ast.If):
                yield from self.sums(s.body, loops, counted, sets, atomic)
                yield from self.sums(s.orelse, loops, counted, sets, atomic)

    def counting(self, loop, found, atomic, sets, numbers):
        """The statements that find how often a pass adds at most; numbers: {addition: (its counter, the most)}."""
        private, sums = self.sorting.order.private, self.sorting.nest(loop).free.numbers
        if not all(s.loops for s in found):
            raise self.without_order(next(iter(numbers)))
        copy, out = copied(loop), []
        for s, there in zip(found, list(self.sums([copy], [], True, sets, atomic)), strict=True):
            number, most = numbers.get(s.statement, (None, None))
            k = there.body.index(there.statement)
            there.body[k:k + 1] = self.read(f"{number} += 1", s.statement) if number else []
            if number:
                inner = there.loops[-1]
                inner.body[:0] = self.read(f"{number} = 0", s.statement)
                inner.body += self.read(f"{most} = max({most}, {number})", s.statement)
                out += self.read(f"{most} = 0", s.statement)
        copy.body = only(copy.body, {n for pair in numbers.values() for n in pair}, set(private))
        set_there = {e.value.id for e in entries(loop) if isinstance(e.ctx, ast.Store)} - atomic
        read = {e.value.id for e in entries(copy) if isinstance(e.ctx, ast.Load)}
        if any(a == b or not self.sorting.order.apart(a, b) for a in set_there for b in read - set(private)
               if a not in private) or asked([copy]) & sums.keys() or read & atomic:
            raise self.without_order(next(iter(numbers)))
        return [*out, copy]

    @staticmethod
    def without_order(s):
        return TransformError(f"what is added to {s.target.value.id} has no order that stays the same: how often a "
                              "pass adds is not known before the loop", s.origin, BELOW)

    def fresh(self, name):
        made = other(name, self.taken)
        self.taken.add(made)
        return made

    def of_sum(self, s, loops, number=None, most=None):
        """What stands for an addition, what makes its arrays, and what adds them up.

        number, most: the addition's number in its pass, and how many a pass has at most; None where it has one.
        """
        name = s.target.value.id
        keys, added, order, first, key, total, after = (
            self.fresh(f"{name}_{what}") for what in ("keys", "added", "order", "first", "key", "sum", "next"))
        lengths, parts = [enclosed(n.iter.args[0]) for n in loops], [enclosed(p) for p in parts_of(s.target)]
        lengths += [most] if number else []
        at = ", ".join([*(n.target.id for n in loops), *([number] if number else [])])
        shape, count = ", ".join(lengths), " * ".join(lengths)
        shape += "," * (len(lengths) == 1)
        widths = [self.fresh(f"{name}_length") for _ in parts[1:]]
        place, axes = parts[0], []
        for axis, part in enumerate(parts):
            inside = " * ".join(widths[axis:])
            text = f"{key} // ({inside})" if " * " in inside else f"{key} // {inside}" if inside else key
            axes.append(text + (f" % {widths[axis - 1]}" if axis else ""))
            if axis:
                place = f"({place}) * {widths[axis - 1]} + {part}" if " " in place else \
                    f"{place} * {widths[axis - 1]} + {part}"
        sign = "-" if isinstance(s.op, ast.Sub) else ""
        value = f"-({ast.unparse(s.value)})" if sign else ast.unparse(s.value)
        of, line = (keys, added), []
        if len(lengths) > 1:
            of, product, count = (self.fresh(f"{keys}_line"), self.fresh(f"{added}_line")), count, self.fresh(
                f"{name}_count")
            line = [f"{count} = {product}"]
            line += [f"{flat} = {array}.reshape(({count},))" for flat, array in zip(of, (keys, added))]
        where, what = of
        step = f"\n{number} += 1" if number else ""
        return self.read(f"{keys}[{at}] = {place}\n{added}[{at}] = {value}{step}", s), self.read("\n".join([
            *(f"{width} = {name}.shape[{axis}]" for axis, width in enumerate(widths, 1)),
            f"{keys} = np.full(({shape}), -1, np.int64)",
            f"{added} = np.empty(({shape}), np.{self.sorting.kinds[name].dtype})"]), s), self.read("\n".join([
                *line, f"{order} = argsort_lines({where}.reshape((1, {count})))",
                f"for {first} in range({count}):",
                f"    {key} = {where}[{order}[0, {first}]]",
                f"    if {key} >= 0 and ({first} == 0 or {where}[{order}[0, {first} - 1]] != {key}):",
                f"        {total} = {what}[{order}[0, {first}]]",
                f"        {after} = {first} + 1",
                f"        while {after} < {count} and {where}[{order}[0, {after}]] == {key}:",
                f"            {total} += {what}[{order}[0, {after}]]",
                f"            {after} += 1",
                f"        {name}[{', '.join(axes)}] += {total}"]), s)

    def read(self, text, s):
        """Statements of a text, as of the user's line."""
        body = ast.parse(text).body
        for n in (n for b in body for n in walk(b)):
            n.origin, n.lineno = getattr(s, "origin", None), 0
        return body
