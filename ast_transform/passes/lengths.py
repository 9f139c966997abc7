# SPDX-License-Identifier: Apache-2.0
"""Lengths of results that no probe tells: they depend on the values of arguments."""
import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, unknown
from gradscribe.ast_transform.passes.described import Unfit, fact_of


def by_value(rule, fact, args, words):
    """Lengths that depend on the values of arguments: no probe tells them, and where they are equal they are one."""
    axes = rule.options["by_value"]
    if callable(axes):
        bound = rule.signature.bind(*args, **words)
        bound.apply_defaults()
        axes = axes(**{k: v.value if isinstance(v, Const) else v for k, v in bound.arguments.items()})
    length = unknown("?counted")

    def freed(fact, axis):
        dims = list(fact.dims)
        if axis is not None:
            dims[axis] = length
        return Array(fact.dtype, tuple(dims), fact.length)
    if isinstance(fact, Sequence):
        each = axes if isinstance(axes, (tuple, list)) else [axes] * len(fact.elements)
        return Sequence(fact.kind, tuple(map(freed, fact.elements, each)), fact.keys, fact.cls)
    return freed(fact, axes[0] if isinstance(axes, (tuple, list)) else axes)


def divided(rule, args, words):
    """The parts that np.split makes of an axis whose length no example tells: equally long, or NumPy raises."""
    bound = rule.signature.bind(*args, **words).arguments
    fact, sections, axis = fact_of(bound["ary"]), bound["indices_or_sections"], bound.get("axis", Const(0))
    if not isinstance(fact, Array) or not all(isinstance(v, Const) and type(v.value) is int for v in (sections, axis)):
        return None
    if sections.value < 2 or not -fact.rank <= axis.value < fact.rank:
        return None
    n, dims = fact.dims[axis.value].normal(), list(fact.dims)
    if n.symbol is None or n.size is not None:
        return None
    dims[axis.value] = unknown("?part")
    return Sequence("list", (Array(np.dtype(fact.dtype), tuple(dims)),) * sections.value)


def edited(function, rule, args, words):
    """np.delete and np.insert change a length by one for one index; by how much otherwise is a matter of values."""
    bound = rule.signature.bind(*args, **words).arguments
    fact, obj, axis = fact_of(bound["arr"]), fact_of(bound["obj"]), bound.get("axis", Const(None)).value
    values = fact_of(bound["values"]) if "values" in bound else Array(float)
    if not isinstance(fact, Array) or not isinstance(values, Array):
        raise Unfit("an array is needed")
    if axis is not None and not -fact.rank <= axis < fact.rank:
        raise Unfit(f"axis {axis} is out of bounds for an array of rank {fact.rank}")
    if isinstance(obj, Array) and obj.kind not in "biu":
        raise Unfit("an index is an integer, a slice or an array of integers")
    single = isinstance(obj, Array) and not obj.dims and obj.kind != "b"
    dims = list(fact.dims)
    if axis is None:
        dims, axis = dims if fact.rank == 1 else [unknown("?size")], 0
        single = single and fact.rank == 1
    if function is np.insert:
        single = single and (not values.dims or fact.rank > values.rank)
        number = 1
    else:
        number = -1
    n = dims[axis].normal()
    dims[axis] = Length(n.symbol, n.offset + number) if single and n.offset + number >= 0 else unknown("?edited")
    return Array(np.dtype(fact.dtype), tuple(dims))
