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
"""
import ast

from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.codegen.cuda.kernels import enclosed, other
from gradscribe.codegen.cuda.sorting import is_range
from gradscribe.codegen.texts import names_in, parts_of, walk

BELOW = "Write the loop over places that are looked up as one over all of them, with a length that is known before it."


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
        self.within([loop], [], {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(
            n.ctx, ast.Store)}, atomic, before, after)
        return [*before, loop, *after]

    def within(self, body, loops, sets, atomic, before, after):
        """Goes through the statements of a loop; loops: those around, None where their passes cannot be counted."""
        for k, s in enumerate(body):
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript) and isinstance(
                    s.target.value, ast.Name) and s.target.value.id in atomic:
                if loops is None:
                    raise TransformError(f"what is added to {s.target.value.id} has no order that stays the same: how "
                                         "often a pass adds is not known before the loop", s.origin, BELOW)
                body[k:k + 1], made, last = self.of_sum(s, loops)
                before += made
                after += last
            elif isinstance(s, ast.For):
                known = loops is not None and is_range(s) and not names_in(s.iter).keys() & sets
                self.within(s.body, [*loops, s] if known else None, sets, atomic, before, after)
            elif isinstance(s, ast.While):
                self.within(s.body, None, sets, atomic, before, after)
            elif isinstance(s, ast.If):
                self.within(s.body, loops, sets, atomic, before, after)
                self.within(s.orelse, loops, sets, atomic, before, after)

    def fresh(self, name):
        made = other(name, self.taken)
        self.taken.add(made)
        return made

    def of_sum(self, s, loops):
        """What stands for an addition, what makes its arrays, and what adds them up."""
        name = s.target.value.id
        keys, added, order, first, key, total, after = (
            self.fresh(f"{name}_{what}") for what in ("keys", "added", "order", "first", "key", "sum", "next"))
        lengths, parts = [enclosed(n.iter.args[0]) for n in loops], [enclosed(p) for p in parts_of(s.target)]
        at, shape, count = ", ".join(n.target.id for n in loops), ", ".join(lengths), " * ".join(lengths)
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
        if len(loops) > 1:
            of, product, count = (self.fresh(f"{keys}_line"), self.fresh(f"{added}_line")), count, self.fresh(
                f"{name}_count")
            line = [f"{count} = {product}"]
            line += [f"{flat} = {array}.reshape(({count},))" for flat, array in zip(of, (keys, added))]
        where, what = of
        return self.read(f"{keys}[{at}] = {place}\n{added}[{at}] = {value}", s), self.read("\n".join([
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
