# SPDX-License-Identifier: Apache-2.0
"""Sums into a part of a row become sums into that part of the whole array.

Reverse mode makes the adjoint of a row as an array of zeros with one entry, and adds it to a row of the adjoint of the
array.  One write is enough: `d = np.zeros_like(row); d[1] += t; dm[i] += d` is `dm[i, 1] += t`.

>>> import numpy as np
>>> import gradscribe as gs
>>> def f(m):
...     total = np.zeros(1)
...     for i in range(1, len(m)):
...         row, last = m[i], m[i - 1]
...         total[0] += row[1] * last[0]
...     return np.sum(total)
>>> print(gs.grad(f).source_for(np.ones((3, 2))).split("reversed")[1])
(range(1, m.shape[0])):
        last = m[i - 1]
        row = m[i]
        # row, last = m[i], m[i - 1]
        dm[i - 1, 0] = dtotal[0] * row[1]
        dm[i, 1] = dtotal[0] * last[0]
    return dm
<BLANKLINE>
"""
from collections import Counter
from typing import Any

from gradscribe.ast_transform.core.alias import aliased, filled_with, parts_of
from gradscribe.ast_transform.core.form import Apply, Let, Var, all_reads, blocks, operands
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import put_add
from gradscribe.ast_transform.passes.types import item
from gradscribe.ast_transform.reader.views import index_of, is_number, is_slice, joined


def inner_writes(body: list, result: Any) -> list:
    """The body with such sums as writes into the array; its blocks are changed in place."""
    reads = Counter(v for s in body for v in all_reads(s))
    reads.update(operands(result))

    def visit(block):
        makers, gone = {}, set()
        for step in list(block):
            for inner in blocks(step):
                visit(inner)
            if not isinstance(step, Let) or not isinstance(step.value, Apply):
                continue
            makers[step.targets[0]] = step
            found = into_row(step, makers) if step.value.function is put_add else None
            if found:
                block[block.index(step):block.index(step) + 1] = found[1]
                gone.update(map(id, found[0]))
        block[:] = [s for s in block if id(s) not in gone]

    def into_row(step, makers):
        """(the statements that make what is added, those that add it to the array itself instead), or None."""
        array, index, value = step.value.args
        row = parts_of(index)
        if not isinstance(array, Var) or not isinstance(array.fact, Array):
            return None
        chain = []
        while isinstance(value, Var) and reads[value] == 1 and value in makers:
            made = makers[value].value
            chain.append(makers[value])
            if made.function is not put_add:
                break
            value = made.args[0]
        if len(chain) < 2 or not is_zeros(chain[-1].value):
            return None
        slot, fact = item(array.fact, index), chain[0].targets[0].fact
        if slot.rank != fact.rank or slot.dtype != fact.dtype or not all(
                m.same(n) for m, n in zip(slot.dims, fact.dims)):
            return None
        writes = []
        for made in reversed(chain[:-1]):
            _, inside, added = made.value.args
            place = joined(row, parts_of(inside))
            if place is None or not all(is_number(p) or is_slice(p) for p in place) or _may_be_view(added, makers):
                return None
            last = made is chain[0]
            target = step.targets[0] if last else step.targets[0].like()
            writes.append(Let((target,), Apply(put_add, (array, index_of(place), added)), step.origin))
            array = target
        return chain, writes

    visit(body)
    return body


def is_zeros(value: Apply) -> bool:
    """Whether an operation makes an array of zeros."""
    return filled_with(value) == 0


def _may_be_view(value, makers):
    """Whether a value may be a view of an array that changes before it is added."""
    if not isinstance(value, Var) or not value.fact.dims:
        return False
    made = makers.get(value)
    return made is None or bool(aliased(made.value))
