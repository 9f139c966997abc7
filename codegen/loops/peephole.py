# SPDX-License-Identifier: Apache-2.0
"""Expressions made shorter by the lines of ast_transform/rules/identities.py.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y, z):
...     for i in range(x.shape[0]):
...         z[i] = -np.exp(x[i]) * -y[i]''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1), "z": ("float64", 1)})
>>> by_identities(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y, z):
    for i in range(x.shape[0]):
        z[i] = np.exp(x[i]) * y[i]

Source: W. M. McKeeman, Peephole optimization, CACM 8 (1965).
"""
import functools
import operator

import numpy as np

from gradscribe.ast_transform.rules.identities import IDENTITIES, bindings, written
from gradscribe.codegen.loops.form import Call, Function, Op, change, rebuilt, statements
from gradscribe.codegen.loops.trees import FUNCTIONS
from gradscribe.codegen.loops.types import type_of

SIGNS = {function: sign for sign, function in FUNCTIONS.items()}
NAMES = {np.abs: "abs", np.conjugate: "conj"}       # of others: as NumPy has it, with np. or, in a loop, without


def by_identities(function: Function) -> None:
    """Changes a function in place."""
    lines = [i for i in IDENTITIES if i.is_shorter and not i.is_of_factors]

    def shorter(e):
        e = rebuilt(e, shorter)
        for identity in lines if isinstance(e, (Op, Call)) else ():
            called: dict = {}           # functions, by the names that the expression has for them

            def taken_apart(e, of, called=called):
                """The operands of an expression that is a call of a function; None of another one."""
                if isinstance(e, Op):
                    return e.args if e.op == SIGNS.get(of) else None
                if not isinstance(e, Call) or e.keywords or e.function.removeprefix("np.").removesuffix(
                        "_32") != NAMES.get(of, getattr(of, "__name__", None)):
                    return None
                called[of] = e.function
                return e.args

            def made(of, *args, called=called):
                return Op(SIGNS[of], args) if of in SIGNS else Call(called[of], args)

            bound = bindings(identity.left, e, taken_apart, {}, operator.eq)
            if bound is not None and (not identity.words or all(map(functools.partial(holds, identity), bound.values(
                    )))):
                return shorter(written(identity.right, bound, made))
        return e

    def holds(identity, value):
        dtype, rank = type_of(value, function.types)
        return dtype is not None and rank == 0 and identity.holds_for(np.dtype(dtype).kind, rank)

    for s in statements(function.block):
        change(s, shorter)
