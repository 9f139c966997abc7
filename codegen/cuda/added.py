# SPDX-License-Identifier: Apache-2.0
"""Arrays that each pass gives themselves and something more: threads add to what is there.

What a batch shares, the weights of a function of one example, has for adjoint a sum over the examples, and in each over
the steps of its loops.  The text makes a new array for each term.  Here terms are added in place; where the array is
short, each pass of the outermost loop adds its own up, and the sums of the passes are summed in one order.

>>> tree = ast.parse('''def f(x, n):
...     dw_1 = np.empty((2,), np.float64)
...     for i in range(2):
...         dw_1[i] = 0.0
...     dw = dw_1
...     for b in range(n - 1, -1, -1):
...         while x[b] > 1.0:
...             x[b] *= 0.5
...             t = np.empty((2,), np.float64)
...             for i in range(2):
...                 t[i] = x[b] * i + dw[i]
...             dw = t
...     return (dw,)''')
>>> in_place(tree.body[0])
>>> print(ast.unparse(tree))
def f(x, n):
    dw_1 = np.empty((2,), np.float64)
    for i in range(2):
        dw_1[i] = 0.0
    dw = dw_1
    dw_parts = np.empty((n, 2), np.float64)
    for b in range(n - 1, -1, -1):
        dw_own = np.zeros((2,), np.float64)
        while x[b] > 1.0:
            x[b] *= 0.5
            for i in range(2):
                dw_own[i] += x[b] * i
        for k0 in range(2):
            dw_parts[b, k0] = dw_own[k0]
    for b in range(n):
        for k0 in range(2):
            dw[k0] += dw_parts[b, k0]
    return (dw,)
"""
import ast
import math
from typing import NamedTuple

from gradscribe.codegen.cuda.lists import down_from, statement
from gradscribe.codegen.cuda.private import MOST
from gradscribe.codegen.cuda.sorting import leaves
from gradscribe.codegen.cuda.trees import (
    block_of,
    dtype_of,
    in_order,
    is_made,
    names_in,
    parents_of,
    parts_of,
    shape_of,
    walk,
)


class Term(NamedTuple):
    """made: the new array's allocation; store: of its entries; name: the statement that gives it the old one's name;
    first: the allocation of the array that it is at first; loop: the outermost loop around.
    """
    made: ast.stmt
    store: ast.Assign
    name: ast.Assign
    first: ast.stmt
    loop: ast.stmt


def in_place(function):
    """Changes a function."""
    while True:
        found = Added(function).found()
        if found is None:
            break
        put_in_place(function, found)
    ast.fix_missing_locations(function)


class Added:
    def __init__(self, function):
        self.function, self.parents, self.names = function, parents_of(function), names_in(function)
        self.at = {id(n): k for k, n in enumerate(in_order(function))}

    def found(self):
        """A Term that may be added in place, None if there is none."""
        for n in walk(self.function):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Name):
                term = self.term(n)
                if term is not None:
                    return term
        return None

    def term(self, alias):
        old, new = alias.targets[0].id, alias.value.id
        loop = self.outermost(alias)
        block = block_of(alias, self.parents)
        made = [s for s in block[:block.index(alias)] if is_made(s) and s.targets[0].id == new]
        if loop is None or len(made) != 1 or old == new:
            return None
        uses = [n for n in self.names[new] if n is not made[0].targets[0] and n is not alias.value]
        store = self.parents.get(self.parents.get(uses[0])) if len(uses) == 1 else None
        if not isinstance(store, ast.Assign) or not self.at[id(made[0])] < self.at[id(store)] < self.at[id(alias)] or \
                store.targets[0] is not self.parents[uses[0]] or not self.each_once(
                store, made[0]) or split(store.value, entry(old, store)) is None:
            return None
        inside = {id(n) for n in walk(loop)}
        mine = [n for n in self.names[old] if id(n) in inside and n is not alias.targets[0]]
        outside = [n for n in self.names[old] if id(n) not in inside]
        sets = [self.parents[n] for n in outside if isinstance(n.ctx, ast.Store) and isinstance(
            self.parents[n], ast.Assign)]
        if len(mine) != 1 or len(sets) != 1 or self.outermost(sets[0]) is not None or \
                self.at[id(sets[0])] > self.at[id(loop)]:
            return None
        first = self.first(sets[0])
        if first is None or dtype_of(first) != dtype_of(made[0]) or len(shape_of(first)) != len(shape_of(made[0])):
            return None
        return Term(made[0], store, alias, first, loop)

    def first(self, s):
        """The allocation of what a name is set to, which nothing reads by another name from there on."""
        if is_made(s):
            return s
        if not isinstance(s.value, ast.Name):
            return None
        found = [self.parents[n] for n in self.names[s.value.id] if isinstance(n.ctx, ast.Store)]
        others = [n for n in self.names[s.value.id] if isinstance(n.ctx, ast.Load) and n is not s.value]
        if len(found) != 1 or not is_made(found[0]) or any(self.at[id(n)] > self.at[id(s)] or not isinstance(
                self.parents[n], ast.Subscript) for n in others):
            return None
        return found[0]

    def outermost(self, node):
        found = None
        while node in self.parents:
            node = self.parents[node]
            found = node if isinstance(node, (ast.For, ast.While)) else found
        return found

    def each_once(self, store, made):
        """Whether loops set each entry of an array once."""
        node, counters = store, []
        block = block_of(made, self.parents)
        while node not in block:
            node = self.parents[node]
            if not isinstance(node, ast.For) or len(node.body) != 1:
                return False
            counters.append(node.target.id)
        parts = list(map(ast.unparse, parts_of(store.targets[0])))
        ranks = [p for p, n in zip(parts, shape_of(made)) if p != "0" or ast.unparse(n) != "1"]
        return len(parts) == len(shape_of(made)) and sorted(ranks) == sorted(counters)


def entry(name, store):
    """The text of an array's entry at the place of a store."""
    return ast.unparse(ast.Subscript(ast.Name(name, ast.Load()), store.targets[0].slice, ast.Load()))


def split(value, term):
    """What is added to a term, None where the value is no such sum; sums are not rounded to half precision."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "np.float16":
        value = value.args[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if ast.unparse(one) == term and term.split("[")[0] not in names_in(other):
            return other
    for side, other in (("left", value.right), ("right", value.left)):
        rest = split(getattr(value, side), term)
        if rest is not None and term.split("[")[0] not in names_in(other):
            return ast.BinOp(rest, ast.Add(), other) if side == "left" else ast.BinOp(other, ast.Add(), rest)
    return None


def put_in_place(function, term):
    parents, old = parents_of(function), term.name.targets[0].id
    index = term.store.targets[0].slice
    value = split(term.store.value, entry(old, term.store))
    for s in (term.made, term.name):
        block_of(s, parents).remove(s)
    own = each_its_own(function, term, old, parents)
    add = ast.AugAssign(ast.Subscript(ast.Name(own or old, ast.Load()), index, ast.Store()), ast.Add(), value)
    add.origin, add.lineno = getattr(term.store, "origin", None), getattr(term.store, "lineno", 0)
    block = block_of(term.store, parents)
    block[block.index(term.store)] = add


def each_its_own(function, term, old, parents):
    """The name of what each pass of the outermost loop adds up for itself, None where that would be long."""
    shape = [n.value if isinstance(n, ast.Constant) else None for n in shape_of(term.first)]
    loop, count = term.loop, None
    if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not loop.orelse:
        count = down_from(loop) or (ast.unparse(loop.iter.args[0]) if ast.unparse(loop.iter.func) == "range" and len(
            loop.iter.args) == 1 else None)
    if count is None or None in shape or math.prod(shape) > MOST or any(map(leaves, loop.body)) or not any(
            isinstance(n, ast.While) for n in walk(loop)) or any(isinstance(n.ctx, ast.Store) for c in names_in(
            ast.parse(count)) for n in names_in(loop).get(c, ())):
        return None
    taken = names_in(function).keys() | {a.arg for a in function.args.args}

    def fresh(name):
        while name in taken:
            name += "_"
        return name
    own, parts, b = fresh(f"{old}_own"), fresh(f"{old}_parts"), loop.target.id
    places = [fresh(f"k{k}") for k in range(len(shape))]
    lengths, at = ", ".join(map(str, shape)), ", ".join(places)
    dtype = f"np.{dtype_of(term.first)}".replace("float16", "float32")
    comma = "," * (len(shape) == 1)

    def each(text):
        lines = ["    " * k + f"for {p} in range({n}):" for k, (p, n) in enumerate(zip(places, shape))]
        return statement("\n".join([*lines, "    " * len(shape) + text]), loop)
    block = block_of(loop, parents)
    loop.body = [statement(f"{own} = np.zeros(({lengths}{comma}), {dtype})", loop), *loop.body,
                 each(f"{parts}[{b}, {at}] = {own}[{at}]")]
    together = statement(f"for {b} in range({count}):\n    pass", loop)
    together.body = [each(f"{old}[{at}] += {parts}[{b}, {at}]")]
    k = block.index(loop)
    block[k:k + 1] = [statement(f"{parts} = np.empty(({count}, {lengths}), {dtype})", loop), loop, together]
    return own
