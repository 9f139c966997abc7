# SPDX-License-Identifier: Apache-2.0
"""The reader: from a function's tree to the array form, by abstract interpretation.

A function's tree goes in, with the kinds of its arguments; a block of the array form comes out, with the function's
result as an operand.  The tree is executed in Python's order on abstract values: a number or an array is a variable
with a dtype and a shape, a container is a list of its items.  Whatever these values determine (methods, attributes,
tests, calls) is evaluated while reading; the rest becomes statements.

The first argument of each function is a `Reader` (`states.py`).  All modules are imported here, so that each registers
its functions with `dispatch.py`, which selects one by the kind of node or by the function that is called.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    y = x.sum(axis=0)\\n    return [v * 2 for v in (y, 3)][-1] + len(y)"
>>> import numpy as np
>>> print(show(form(text, np.ones((2, 3)))))
f(x):
    y = np.sum(x, axis=0)
    z = y * 2
    n_0 = shape_of(y, 0)
    t = 6 + n_0
    return t
"""
from gradscribe.ast_transform.reader import (  # noqa: F401  (imported so that each module registers its functions)
    assignments,
    bfloat16,
    branches,
    calls,
    carries,
    choices,
    closures,
    comparisons,
    comprehensions,
    constant_calls,
    container_aliases,
    containers,
    derivatives,
    draws,
    dtypes,
    dynamic_lists,
    effects,
    entry,
    exceptions,
    expressions,
    filling,
    frames,
    gradient_edits,
    inlining,
    items,
    iteration,
    iterators,
    itertools_calls,
    list_of_tuples,
    loop_fixpoint,
    loops,
    memory,
    methods,
    named_axes,
    names,
    objects,
    operands,
    outer_state,
    pattern_matching,
    registered,
    statements,
    strings,
    subscripts,
    ufuncs,
    vectorize,
    views,
    with_statements,
)
