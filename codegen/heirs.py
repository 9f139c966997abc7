# SPDX-License-Identifier: Apache-2.0
"""Memory that is read for the last time where another array of the same kind is made goes on as that array.

Where a loop sets `b[i]` and reads `a[i]`, and a is never read again, b is another name for a: half the memory, and a
sweep that touches one array in the place of two.  Each entry of b must be set in the pass that reads that entry of a
last: the loops around both name the same entry, and no other.  Arrays made inside loops are left to buffers.py.

>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     e = np.empty((n,), np.float64)
...     total = 0.0
...     for i in range(n):
...         e[i] = exp(x[i])
...         total += e[i]
...     p = np.empty((n,), np.float64)
...     for i in range(n):
...         p[i] = e[i] / total
...     return (p,)''')
>>> Heirs(tree.body[0], {"x": ("float64", 1)}).run()
>>> print(ast.unparse(tree))
def f(x):
    n = x.shape[0]
    e = np.empty((n,), np.float64)
    total = 0.0
    for i in range(n):
        e[i] = exp(x[i])
        total += e[i]
    p = e
    for i in range(n):
        p[i] = e[i] / total
    return (p,)
"""
import ast
import math

from gradscribe.codegen.buffers import STACKED, Buffers, same
from gradscribe.codegen.texts import is_entry, is_literal, parts_of, walk
from gradscribe.codegen.versions import is_made

JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise)


class Heirs(Buffers):
    """Works on a function's text in place, as Buffers does."""

    def run(self):
        for node in walk(self.function):
            for field in ("body", "orelse"):
                if isinstance(getattr(node, field, None), list):
                    fills_used_at_once(getattr(node, field))
        self.__init__(self.function, self.arrays)
        body = self.function.body
        self.at = {node: k for k, s in enumerate(body) for node in walk(s)}
        free = [s.targets[0].id for s in body if self.is_single_made(s)]
        for s in [s for s in body if is_made(s) and s.value.func.attr == "empty" and not is_short(s)]:
            heir = s.targets[0].id
            if len(self.sets[heir]) != 1 or not self.uses.get(heir):
                continue
            for name in free:
                if name != heir and self.sets[name] and self.passes_on(name, heir, s):
                    s.value = ast.Name(name, ast.Load())
                    free.remove(name)
                    break

    def is_single_made(self, s):
        """Whether a statement makes an array, or a product, that no other name is given to."""
        if not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name):
            return False
        name = s.targets[0].id
        fresh = is_made(s) and not is_short(s) or bool(self.kinds.get(name)) and isinstance(s.value, ast.Call)
        return fresh and self.single(name)

    def passes_on(self, name, heir, made):
        """Whether the last loop that reads an array is the first that sets its heir, entry by entry."""
        uses, later = self.uses.get(name, []), self.uses[heir]
        kind = self.kinds.get(heir)
        given = {a.arg for a in self.function.args.args}
        if kind and any(len(self.sets.get(n.id, ())) > (n.id not in given) for d in kind[1] for n in walk(d)
                        if isinstance(n, ast.Name)):
            return False                        # a length that changes
        if not uses or not same(self.kinds.get(name), kind) or self.at[self.sets[name][0]] > \
                self.at[made]:
            return False
        last = max(self.at[u] for u in uses)
        if min(self.at[u] for u in later) != last or not isinstance(self.function.body[last], ast.For):
            return False
        reads = [self.parents[u] for u in uses if self.at[u] == last]
        sets = [self.parents[u] for u in later if self.at[u] == last]
        rank = len(self.kinds[name][1])
        places = {self.entry(p, rank) for p in [*reads, *sets]}
        if len(places) != 1 or None in places:
            return False
        if not all(isinstance(p.ctx, ast.Load) for p in reads):
            return False
        stores = [p for p in sets if isinstance(p.ctx, ast.Store)]
        first = min((self.moment(p) for p in stores), default=None)
        return first is not None and all(self.moment(p) <= first for p in reads) and all(
            self.moment(p) >= first for p in sets)

    def entry(self, node, rank):
        """The entry that a place names, as text, if the loops around it go over its indices and nothing else."""
        if not isinstance(node, ast.Subscript) or not is_entry(node, rank):
            return None
        loops = self.around(node)
        if not all(isinstance(x, ast.For) and isinstance(x.target, ast.Name) for x in loops):
            return None
        names = [x.target.id for x in loops]
        indices = [p.id if isinstance(p, ast.Name) else None for p in parts_of(node)]
        return tuple(indices) if sorted(names) == sorted(map(str, indices)) else None

    def moment(self, place):
        """When a place is reached within its pass: the number of its statement; what is set comes after what is read.

        Loops inside one another that name the same entry have one body for each, so statements are in their order.
        """
        statement = place
        while not isinstance(statement, ast.stmt):
            statement = self.parents[statement]
        return statement_order(self.function.body[self.at[place]])[statement]


def fills_used_at_once(block):
    """`a[i] = 0.0` and `a[i] += v` further down become one statement, if nothing between touches the array."""
    for fill in list(block):
        if not isinstance(fill, ast.Assign) or not isinstance(fill.targets[0], ast.Subscript) or not is_literal(
                fill.value) or not isinstance(fill.targets[0].value, ast.Name):
            continue
        name, entry = fill.targets[0].value.id, ast.unparse(fill.targets[0])
        indices = {n.id for n in walk(fill.targets[0].slice) if isinstance(n, ast.Name)}
        for s in block[block.index(fill) + 1:]:
            touched = {n.id for n in walk(s) if isinstance(n, ast.Name)}
            if name in touched:
                if isinstance(s, ast.AugAssign) and isinstance(s.op, (ast.Add, ast.Sub)) and ast.unparse(
                        s.target) == entry and not any(isinstance(n, ast.Name) and n.id == name
                                                       for n in walk(s.value)):
                    new = ast.Assign([s.target], ast.BinOp(fill.value, s.op, s.value), lineno=0)
                    new.origin = getattr(s, "origin", None)
                    block[block.index(s)] = new
                    block.remove(fill)
                break
            if any(isinstance(n, JUMPS) or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in indices
                   for n in walk(s)):
                break


def statement_order(nest):
    found, rest = {}, [nest]
    while rest:
        s = rest.pop(0)
        found[s] = len(found)
        rest = [*getattr(s, "body", []), *getattr(s, "orelse", []), *rest]
    return found


def is_short(made):
    """Of known length, and for the stack."""
    lengths = made.value.args[0].elts
    return all(isinstance(d, ast.Constant) for d in lengths) and math.prod(d.value for d in lengths) <= STACKED
