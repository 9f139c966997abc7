# SPDX-License-Identifier: Apache-2.0
"""Destination passing for matrix products: they are computed into, or added to, the array that receives them.

A product that a loop copies into a part of another array, such as one that each pass saves, is computed there directly.
A product that a loop adds to a matrix, or subtracts from it, is accumulated by the BLAS call that computes it.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, w):
...     m = x.shape[0]
...     n = x.shape[1]
...     total = np.zeros((n, n), np.float64)
...     kept = np.empty((m, n, n), np.float64)
...     for k in range(m):
...         p = np.dot(x[k, :, :], w)
...         for i in range(n):
...             for j in range(n):
...                 kept[k, i, j] = p[i, j]
...         q = np.dot(kept[k, :, :], w)
...         for i in range(n):
...             for j in range(n):
...                 total[i, j] = total[i, j] + q[i, j]
...     return (total, kept)''').body[0]
>>> function = from_tree(tree, {"x": ("float64", 3), "w": ("float64", 2)})
>>> function.block[2:2] = from_tree(ast.parse('''def f():
...     w = np.ones((n, n), np.float64)''').body[0], {}).block
>>> place_products(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, w):
    m = x.shape[0]
    n = x.shape[1]
    w = np.ones((n, n), np.float64)
    total = np.zeros((n, n), np.float64)
    kept = np.empty((m, n, n), np.float64)
    for k in range(m):
        np.dot(x[k, :, :], w, kept[k])
        add_dot(kept[k, :, :], w, total)
    return (total, kept)

Source: J. Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, 1990: C = alpha A B + beta C.
"""

from gradscribe.codegen.loops.analysis.arrays import families, is_entry
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.lengths import Lengths, is_product
from gradscribe.codegen.loops.form import (
    Alloc,
    Break,
    Call,
    Continue,
    Do,
    For,
    Function,
    Let,
    Load,
    Name,
    Op,
    Return,
    Store,
    all_blocks,
    change,
    names_in,
    names_of,
    rebuilt,
    set_in,
    sign_of,
    statements,
)
from gradscribe.codegen.loops.shapes import around

ADDED = {"+": "add_dot", "-": "subtract_dot"}


def place_products(function: Function, any_order: bool = True) -> None:
    """Change a function in place.  any_order: whether a product may be accumulated term by term."""
    if not any(isinstance(s, Let) and is_product(s.value) for s in statements(function.block)):
        return
    known, family = Lengths(function), families(function)
    for block in all_blocks(function):
        for s in list(block):
            if isinstance(s, Let) and is_product(s.value):
                _place(known, family, block, s, any_order)


def _place(known, family, block, made, any_order):
    """Compute a product into the array that receives it, if there is one."""
    name, kind, uses = made.name, known.kinds.get(made.name), known.uses.get(made.name, [])
    if not kind or len(known.sets[name]) != 1 or not all(
            u.role == "entry" and not u.stored and is_entry(u.parent, len(kind[1])) for u in uses):
        return
    inside = {i: s for s in block[block.index(made) + 1:] for i in statements([s])}
    if all(u.statement in inside for u in uses):
        for use in uses:
            target = _target(known, family, made, use, inside[use.statement])
            if target is not None and _put(family, block, made, uses, use.statement, target, any_order):
                return


def _target(known, family, made, use, top):
    """The part of an array that a statement sets to a product, or updates by it, entry by entry; else None."""
    s, (dtype, lengths) = use.statement, known.kinds[made.name]
    loops = [x for x in around(s, known.above) if x in set(statements([top]))]
    if not isinstance(s, Store) or not isinstance(s.entry.array, Name) or not all(
            isinstance(x, For) and x.kind == "range" for x in loops):
        return None
    rank, counts = len(lengths), {x.index: x.count for x in loops}
    index, array = s.entry.index[-rank:], s.entry.array.id
    whole = index == use.parent.index and len(counts) == rank and tuple(
        counts.get(getattr(p, "id", None)) for p in index) == lengths
    of, first = known.kinds.get(array), s.entry.index[:-rank]
    if not whole or not of or of[0] != dtype or len(of[1]) != len(s.entry.index) or of[1][-rank:] != lengths or (
            not known.lasting(lengths)):
        return None
    names = {n for p in first for n in names_in(p)}
    made_here = known.sets.get(array, ())
    if len(made_here) != 1 or not isinstance(made_here[0], Alloc) or not names.isdisjoint(set_in([made, top])):
        return None
    return Load(s.entry.array, first) if first else s.entry.array


def _put(family, block, made, uses, s, target, any_order):
    """Compute a product into an array, or add it to the array; whether that was possible."""
    array = target.array if isinstance(target, Load) else target
    shown = {n for n, other in family.items() if other == family[array.id]}
    after = block[block.index(made) + 1:]
    top = next(t for t in after if s in set(statements([t])))
    between = after[:after.index(top)]
    if not shown.isdisjoint(names_in(made.value)) or not names_in(target).isdisjoint(set_in([*between, top])) or any(
            isinstance(i, (Break, Continue, Return)) for i in statements(between)):
        return False
    product = uses[0].parent if len(uses) == 1 else None
    if s.op is None and isinstance(s.value, Load) and s.value.array == Name(made.name):
        last = max(after.index(next(t for t in after if u.statement in set(statements([t])))) for u in uses)
        if any(not shown.isdisjoint(names_of(i)) for t in after[:last + 1] for i in statements([t]) if i is not s) or (
                not names_in(target).isdisjoint(set_in(after[:last + 1]))):
            return False
        block[block.index(made)] = Do(Call("np.dot", (*made.value.args, target)), made.origin)
        for use in uses:
            if use.statement is not s:
                change(use.statement, lambda e: _moved(e, made.name, target, array))
    elif any_order and product is not None and (sign := _sign(s, product)) and _may_be_delayed(made, between) and all(
            len(t.block) == 1 for t in statements([top]) if isinstance(t, For)):
        block.remove(made)
        block.insert(block.index(top), Do(Call(ADDED[sign], (*made.value.args, target)), s.origin))
    else:
        return False
    _without(block, top, s)
    return True


def _may_be_delayed(made, between):
    """Whether a product may be computed after these statements."""
    effects = Effects(between, asks=True)
    return effects.known and not effects.writes and names_in(made.value).isdisjoint(effects.sets)


def _sign(s, product):
    """+ or - of a statement that adds a product to an entry or subtracts it; else None."""
    if s.op is not None:
        return sign_of(s.op) if s.value == product and sign_of(s.op) in ADDED else None
    e = s.value
    if not isinstance(e, Op) or sign_of(e.op) not in ADDED or len(e.args) != 2:
        return None
    if e.args == (s.entry, product) or sign_of(e.op) == "+" and e.args == (product, s.entry):
        return sign_of(e.op)
    return None


def _moved(e, name, target, array):
    if isinstance(e, Load) and e.array == Name(name):
        first = target.index if isinstance(target, Load) else ()
        return Load(array, (*first, *(_moved(p, name, target, array) for p in e.index)))
    return rebuilt(e, lambda part: _moved(part, name, target, array)) if name in names_in(e) else e


def _without(block, top, s):
    """Remove a statement, and the loops that hold nothing else."""
    if top is s:
        block.remove(s)
        return
    inner = next(b for t in statements([top]) for b in [getattr(t, "block", [])] if s in b)
    inner.remove(s)
    while not top.block or any(isinstance(t, For) and not t.block for t in statements([top])):
        if not top.block:
            block.remove(top)
            return
        for t in list(statements([top])):
            if isinstance(t, For):
                t.block[:] = [i for i in t.block if not (isinstance(i, For) and not i.block)]
