# SPDX-License-Identifier: Apache-2.0
"""Allocation hoisting: an array that a loop would allocate in every pass is allocated once, before the loop.

An uninitialised array without aliases is written anew in each pass, so it can reuse the memory of the previous pass.
It is allocated before the outermost loop in which its lengths do not change; products are written into such an array
too.  Arrays that a loop carries under another name stay where they are.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     for t in range(9):
...         z = np.empty((n,), np.float64)
...         for i in range(n):
...             z[i] = x[i] * t
...         p = np.dot(z, y)
...         for i in range(p.shape[0]):
...             x[i] = z[i] + p[i]
...     return (x,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 2)})
>>> hoist_allocations(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    p = np.empty((y.shape[1],), np.float64)
    for t in range(9):
        for i in range(n):
            z[i] = x[i] * t
        np.dot(z, y, p)
        for i in range(p.shape[0]):
            x[i] = z[i] + p[i]
    return (x,)

Source: S. S. Muchnick, Advanced Compiler Design and Implementation (1997), 13.2 (loop-invariant code motion).
"""

from gradscribe.codegen.loops.analysis.lengths import Lengths, is_product, is_short
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Call,
    Const,
    Do,
    For,
    Function,
    Length,
    Let,
    Name,
    Op,
    all_blocks,
    names_in,
    statements,
)
from gradscribe.codegen.loops.shapes import replace_in, take_out

NOT_NEGATIVE = {"len", "max", "meet", "same"}


def hoist_allocations(function: Function) -> None:
    """Changes a function in place."""
    known = Lengths(function)
    for s in list(statements(function.block)):
        if not isinstance(s, (Let, Alloc)) or not known.loops_around(s) or not known.single(s.name):
            continue
        if isinstance(s, Alloc):
            if s.how == "empty":
                _move(known, s, s)
        elif is_product(s.value) and known.kinds.get(s.name):
            dtype, lengths = known.kinds[s.name]
            made = Alloc(s.name, "empty", lengths, (Attribute(Name("np"), dtype),), s.origin)
            if _move(known, made, s):
                block = _block_of(function, s)
                replace_in(block, s, [Do(Call("np.dot", (*s.value.args, Name(s.name))), s.origin)])


def on_stack(function: Function) -> set:
    """Arrays of a short known length without aliases, which may be on the stack."""
    known = Lengths(function)
    return {s.name for s in statements(function.block) if isinstance(s, Alloc) and s.how in ("empty", "zeros") and
            is_short(s) and known.single(s.name)}


def moved_out(known: Lengths, made: Alloc) -> bool:
    """Move an allocation out of the loops around it, as far as its lengths allow; whether it has moved."""
    return bool(known.loops_around(made)) and known.single(made.name) and _move(known, made, made)


def _move(known, made, s):
    """Put an allocation before the outermost loop around `s` that does not set its lengths; whether there is one."""
    names = {n for d in made.shape for n in names_in(d)}
    setting = {loop for n in names for store in known.sets.get(n, ()) for loop in known.loops_around(store)} | {
        loop for n in names for loop in known.sets.get(n, ()) if isinstance(loop, For)}
    place = None
    for loop in known.loops_around(s):
        if isinstance(loop, For) and loop.kind == "prange" or loop in setting:
            break
        place = loop
    if place is None or not all(_not_negative(known, d) for d in made.shape):
        return False
    if made is s:
        take_out(_block_of(known.function, s), s)
    block = _block_of(known.function, place)
    block.insert(block.index(place), made)
    known.above.pop(made, None)
    if place in known.above:
        known.above[made] = known.above[place]
    return True


def _block_of(function, s):
    return next(b for b in all_blocks(function) if s in b)


def _not_negative(known, length):
    """Whether a length is certainly not negative: a loop without passes would not have raised."""
    if isinstance(length, Op):
        return length.op in ("+", "*") and all(_not_negative(known, a) for a in length.args)
    if isinstance(length, Name):
        stores = known.sets.get(length.id, ())
        value = stores[0].value if len(stores) == 1 and isinstance(stores[0], Let) else None
        return isinstance(value, Call) and value.function in NOT_NEGATIVE or isinstance(value, Length) or isinstance(
            value, Name) and value != length and _not_negative(known, value)
    return isinstance(length, Length) or isinstance(
        length, Const) and length.value >= 0
