# SPDX-License-Identifier: Apache-2.0
"""An array that is cheap to compute and read in a later loop is computed there: nothing is stored.

Memory is slower than arithmetic: a few operations on what a loop reads anyway cost less than an array that is written
and read.  Not recomputed: what a largest or smallest entry or a comparison is taken of, since fused operations round
differently in two places, and the difference from the largest entry must be zero where it stands.

>>> tree = ast.parse('''def f(x, a):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     s = 0.0
...     for i in range(n):
...         z[i] = x[i] * a
...         s += z[i]
...     y = np.empty((n,), np.float64)
...     for i in range(n):
...         y[i] = z[i] / s
...     return (y,)''')
>>> Recompute(tree.body[0], {"y", "z"}, {"a", "x"}).run()
{'z'}
>>> print(ast.unparse(tree))
def f(x, a):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    s = 0.0
    for i in range(n):
        z[i] = x[i] * a
        s += z[i]
    y = np.empty((n,), np.float64)
    for i in range(n):
        y[i] = x[i] * a / s
    return (y,)
"""
import ast
import copy

from gradscribe.codegen.reach import CHECKS
from gradscribe.codegen.texts import (
    block_of,
    dtype_of,
    in_order,
    is_entry,
    names_in,
    parents_of,
    parts_of,
    place_in,
    replace,
    shape_of,
    take_out,
    typed,
    walk,
)
from gradscribe.codegen.versions import is_made

DEAREST = 4                             # operations that a load is worth; a division counts as three
COSTS = {ast.Add: 1, ast.Sub: 1, ast.Mult: 1, ast.Div: 3}
ORDERED = {"ranked", "ranked_low", "ranked32", "ranked_low32", "max", "min", "maximum", "minimum", "fmax", "fmin"}
FREE = {"float", "abs", "np.float64", "np.float32", "np.float16"}


class Recompute:
    """Works on a function's text in place; own: arrays that are known by one name only."""

    def __init__(self, function, own, doubles=()):
        self.function, self.own, self.doubles = function, own, doubles
        self.parents, self.names = parents_of(function), names_in(function)
        self.gone, self.stores = set(), {}

    def run(self):
        """The arrays that later loops read no more."""
        return {name for name in sorted(self.own) if name in self.names and self.replaced(name)}

    def replaced(self, name):
        uses = [self.parents[n] for n in self.names[name] if n not in self.gone]
        if not uses:
            return False
        entries = [u for u in uses if isinstance(u, ast.Subscript) and u.value.id == name]
        made = [u for u in uses if is_made(u)]
        stores = [e for e in entries if isinstance(e.ctx, ast.Store)]
        if len(entries) + len(made) != len(uses) or len(made) != 1 or len(stores) != 1 or not all(
                is_entry(e, len(shape_of(made[0]))) for e in entries):
            return False
        store = self.parents[stores[0]]
        indices = [p.id if isinstance(p, ast.Name) else None for p in parts_of(stores[0])]
        nest = self.nest(store, indices, shape_of(made[0]))
        if nest is None or not isinstance(store, ast.Assign) or not cheap(store.value, indices):
            return False
        block = block_of(nest, self.parents)
        first = block.index(nest)
        inside = [e for e in entries if e is not stores[0] and self.within(e, nest)]
        later = [e for e in entries if e is not stores[0] and e not in inside]
        places = [place_in(block, e, self.parents) for e in later]
        if not later or min(places) <= first or any(self.compared(e) for e in entries) or not all(
                self.depth(e, block[k]) == len(indices) for e, k in zip(later, places)):
            return False
        if not self.unchanged(store, indices, nest, block[first:max(places) + 1]) or not self.gains(
                store, later, [block[k] for k in set(places)], nest, inside):
            return False
        value = typed(store.value, dtype_of(made[0]), self.doubles)
        for e in later:
            self.replace(e, put(value, dict(zip(indices, parts_of(e)))))
        if not inside:
            self.drop(store)
            self.drop(made[0])
        return True

    def nest(self, store, indices, shape):
        """The outermost of the loops over all entries, which hold the statement without branches between."""
        node = store
        for index, length in zip(reversed(indices), reversed(shape)):
            node = self.parents[node]
            if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name) or node.target.id != index or \
                    ast.unparse(node.iter) != f"range({ast.unparse(length)})":
                return None
        return node if indices and len(set(indices)) == len(indices) else None

    def within(self, node, outer):
        while node in self.parents and node is not outer:
            node = self.parents[node]
        return node is outer

    def depth(self, node, outer):
        """The loops around a node, up to a statement; none where a branch or a while is between."""
        count = 0
        while True:
            if isinstance(node, (ast.If, ast.While)):
                return None
            count += isinstance(node, ast.For)
            if node is outer:
                return count
            node = self.parents[node]

    def compared(self, entry):
        node = entry
        while isinstance(self.parents[node], ast.expr):
            node = self.parents[node]
            if isinstance(node, ast.Compare) or isinstance(node, ast.Call) and ast.unparse(node.func) in ORDERED:
                return True
        return False

    def unchanged(self, store, indices, nest, statements):
        """Whether what the value is made of is the same where it is read."""
        arrays, numbers = operands(store.value)
        free, foreign = numbers - set(indices), bool(arrays - self.own)
        order = {n: k for k, n in enumerate(in_order(nest))}
        for s in statements:
            names, entries, known = self.stored(s)
            if not known or names & (arrays | free) or foreign and not entries.keys() <= self.own:
                return False
            for n in (n for name in entries.keys() & arrays for n in entries[name] if n not in self.gone):
                if not (s is nest and order[n] < order[store] and isinstance(self.parents[n], ast.Assign) and
                        list(map(ast.unparse, parts_of(n))) == indices and self.parents[self.parents[n]] is
                        self.parents[store]):
                    return False
        return True

    def stored(self, statement):
        """What a statement stores: names, {array: entries}, and whether that is all it does."""
        if statement not in self.stores:
            names, entries, known = set(), {}, True
            for n in walk(statement):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    names.add(n.id)
                elif isinstance(n, ast.Expr):
                    known = known and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Name) and \
                        n.value.func.id in CHECKS
                elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
                    entries.setdefault(n.value.id if isinstance(n.value, ast.Name) else None, []).append(n)
            self.stores[statement] = names, entries, known
        return self.stores[statement]

    def replace(self, old, new):
        """Another node in place of one."""
        holder = self.parents[old]
        replace(holder, old, new)
        self.gone.update(walk(old))
        self.parents[new] = holder
        self.parents.update(parents_of(new))
        for name, found in names_in(new).items():
            self.names.setdefault(name, []).extend(found)

    def gains(self, store, later, readers, nest, inside):
        """Whether fewer arrays are read and written."""
        arrays, _ = operands(store.value)
        more = sum(len(arrays - {n.value.id for n in walk(r) if isinstance(n, ast.Subscript) and isinstance(
            n.value, ast.Name)}) for r in readers)
        loops = [n for n in walk(nest) if isinstance(n, ast.For)]
        alone = not inside and all(isinstance(s, ast.For) or s is store for n in loops for s in n.body)
        return more <= 1 + len(readers) + len(arrays) * alone and len(readers) <= 2

    def drop(self, statement):
        """Take a statement out, and the loops that hold nothing else."""
        block, holder = block_of(statement, self.parents), self.parents[statement]
        self.gone.update(walk(statement))
        if block == [statement] and isinstance(holder, ast.For):
            self.drop(holder)
        else:
            take_out(block, statement)


def cheap(value, indices):
    """Whether a value is made of a few operations on numbers and on entries at plain places."""
    cost = 0
    for n in walk(value):
        if isinstance(n, ast.BinOp):
            cost += COSTS.get(type(n.op), DEAREST + 1)
        elif isinstance(n, ast.UnaryOp):
            cost += 1
        elif isinstance(n, ast.Compare):            # of what is computed, it might come out otherwise
            if any(isinstance(m, (ast.BinOp, ast.IfExp)) for m in (n.left, *n.comparators)):
                return False
            cost += 1
        elif isinstance(n, ast.IfExp):
            cost += 2
        elif isinstance(n, ast.Call) and ast.unparse(n.func) not in FREE or isinstance(n, ast.BoolOp):
            return False
        elif isinstance(n, ast.Subscript) and not (isinstance(n.value, ast.Name) and all(
                isinstance(p, (ast.Name, ast.Constant)) or isinstance(p, ast.BinOp) and all(
                    isinstance(q, (ast.Name, ast.Constant)) for q in (p.left, p.right)) for p in parts_of(n))):
            return False
    return cost <= DEAREST


def operands(value):
    """The arrays and the numbers that a value is made of."""
    arrays = {n.value.id for n in walk(value) if isinstance(n, ast.Subscript)}
    return arrays, {n.id for n in walk(value) if isinstance(n, ast.Name)} - arrays


def put(value, places):
    """A copy of a value with other indices."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node):
            return copy.deepcopy(places[node.id]) if node.id in places else node

    return Put().visit(copy.deepcopy(value))
