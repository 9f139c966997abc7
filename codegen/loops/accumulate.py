# SPDX-License-Identifier: Apache-2.0
"""Accumulators: arrays that each pass replaces by themselves plus a term are updated in place.

The adjoint of what all examples of a batch share, such as weights, is a sum over the examples and, in each, over the
steps of its loops.  The text allocates a new array for each term.  Here terms are added in place; if the array is
short, each pass of the outermost loop has its own accumulator, and these are summed in a fixed order.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
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
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "n": ("int64", 0)})
>>> accumulate(function)
>>> print(ast.unparse(to_tree(function)))
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

Source: R. Allen, K. Kennedy, Optimizing Compilers for Modern Architectures, 2002, section 5.3 (array privatization).
"""
import math
from typing import Any, NamedTuple

from gradscribe.codegen.loops.analysis.arrays import is_place
from gradscribe.codegen.loops.analysis.def_use import DefUse
from gradscribe.codegen.loops.analysis.parallelism import leaves
from gradscribe.codegen.loops.build import entry, statement
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    Expr,
    For,
    Function,
    Let,
    Load,
    Name,
    Op,
    Store,
    Type,
    While,
    all_blocks,
    all_names,
    names_in,
    set_in,
    statements,
    unused,
)
from gradscribe.codegen.loops.shapes import replace_in

MOST = 64                               # entries of an array in the memory of a thread
ZERO = Const(0)


class Term(NamedTuple):
    """made: the allocation of the new array; store: the store of its entries; name: the statement old = new; first: the
    allocation of the first array; loop: the outermost loop around; value: the term.
    """
    made: Alloc
    store: Store
    name: Let
    first: Alloc
    loop: For | While
    value: Expr


def accumulate(function: Function) -> None:
    """Changes a function in place."""
    while (term := _Terms(function).found()) is not None:
        _put_in_place(function, term)


class _Terms:
    """The search for a term that may be added in place."""

    def __init__(self, function):
        self.of = DefUse(function)

    def found(self):
        terms = (self.term(s) for s in self.of.at if isinstance(s, Let) and isinstance(s.value, Name))
        return next((term for term in terms if term is not None), None)

    def term(self, alias):
        """The Term of an `old = new`; None if it cannot be added in place."""
        of, at, old, new, loop = self.of, self.of.at, alias.name, alias.value.id, self.of.outermost(alias)
        made, store = self.made(new), next((u.statement for u in of.uses[new] if u.stored), None)
        if loop is None or made is None or of.blocks[made] is not of.blocks[alias] or len(of.uses[new]) != 2 or \
                not isinstance(store, Store) or store.op is not None or not at[made] < at[store] < at[alias] or \
                not self.each_once(store, made):
            return None
        value = without_term(store.value, Load(Name(old), store.entry.index))
        before = [s for s in of.sets[old] if of.outermost(s) is None and at[s] < at[loop]]
        read = [u for u in of.uses.get(old, ()) if of.outermost(u.statement) is loop]
        if value is None or len(before) != 1 or {*of.sets[old]} != {alias, *before} or len(read) != 1:
            return None
        first = self.first(*before)
        if first is None or (first.dtype, first.shape) != (made.dtype, made.shape) or not all(
                by_entry(u, first) for u in of.uses[old] if at[u.statement] < at[loop]):
            return None
        return Term(made, store, alias, first, loop, value)

    def made(self, name):
        """The only allocation of an array, if nothing else sets its name."""
        sets = self.of.sets.get(name, ())
        return sets[0] if len(sets) == 1 and isinstance(sets[0], Alloc) else None

    def first(self, s):
        """The allocation of the array that a statement binds, if no alias of it is read from there on."""
        if not isinstance(s, Let) or not isinstance(s.value, Name):
            return s if isinstance(s, Alloc) else None
        made, at = self.made(s.value.id), self.of.at
        plain = made is not None and all(u.statement is s or at[u.statement] < at[s] and by_entry(u, made)
                                         for u in self.of.uses[made.name])
        return made if plain else None

    def each_once(self, store, made):
        """Whether the loops around a store set each entry of an array once."""
        s, lengths = store, {}
        while self.of.blocks[s] is not self.of.blocks[made]:
            s = self.of.above[s]
            if not isinstance(s, For) or len(s.block) != 1:
                return False
            lengths[Name(s.index)] = s.count
        places = [(p, n) for p, n in zip(store.entry.index, made.shape) if (p, n) != (ZERO, Const(1))]
        return is_place(store.entry, len(made.shape)) and len(places) == len(lengths) and dict(places) == lengths


def by_entry(use, made: Alloc) -> bool:
    """Whether a use of an array makes no alias of it or of a part."""
    return use.role == "length" or use.role == "entry" and is_place(use.parent, len(made.shape))


def without_term(value: Expr, term: Load) -> Expr | None:
    """The rest of a sum without a term; None if a value is no such sum.  Rounding of sums to float16 is dropped."""
    if isinstance(value, Call) and value.function == "np.float16":
        value = value.args[0]
    if not isinstance(value, Op) or value.op != "+":
        return None
    left, right = value.args
    array: Any = term.array
    for one, other in ((left, right), (right, left)):
        if one == term and array.id not in names_in(other):
            return other
    for one, other in ((left, right), (right, left)):
        rest = without_term(one, term)
        if rest is not None and array.id not in names_in(other):
            return Op("+", (rest, other) if one is left else (other, rest))
    return None


def _put_in_place(function, term):
    blocks = {s: block for block in all_blocks(function) for s in block}
    for s in (term.made, term.name):
        blocks[s].remove(s)
    name = _each_its_own(function, term, blocks[term.loop]) or term.name.name
    term.store.entry, term.store.value, term.store.op = entry(name, *term.store.entry.index), term.value, "+"


def _each_its_own(function, term, block):
    """Give each pass of the outermost loop its own accumulator; the name of it, None if that would be too long."""
    loop, old, shape = term.loop, term.name.name, term.first.shape
    if not isinstance(loop, For) or loop.count is None or not is_short(term.first) or leaves(loop.block) or not any(
            isinstance(s, While) for s in statements(loop.block)) or names_in(loop.count) & set_in(loop.block):
        return None
    taken, count = all_names(function), loop.count
    own, parts = unused(f"{old}_own", taken), unused(f"{old}_parts", taken)
    places = [unused(f"k{k}", taken) for k in range(len(shape))]
    dtype = "float32" if term.first.dtype == "float16" else term.first.dtype
    function.types |= {own: Type(dtype, len(shape)), parts: Type(dtype, len(shape) + 1),
                       **dict.fromkeys(places, Type("int64", 0))}

    def each(template, *given):
        made = statement(template, *given)
        for place, n in reversed([*zip(places, shape)]):
            made = For(place, (n,), [made])
        return made
    b = loop.index
    before = statement("{} = np.empty(({}, {*}), {})", parts, count, shape, f"np.{dtype}")
    begin = statement("{} = np.zeros({}, {})", own, shape, f"np.{dtype}")
    end = each("{}[{}, {*}] = {}[{*}]", parts, b, places, own, places)
    after = For(b, (count,), [each("{}[{*}] += {}[{}, {*}]", old, places, parts, b, places)])
    for s in statements([before, begin, end, after]):
        s.origin = loop.origin
    loop.block[:] = [begin, *loop.block, end]
    replace_in(block, loop, [before, loop, after])
    return own


def is_short(made: Alloc) -> bool:
    """Whether an array fits in the memory of a thread."""
    return all(isinstance(n, Const) for n in made.shape) and math.prod(n.value for n in made.shape) <= MOST
