# SPDX-License-Identifier: Apache-2.0
"""Vector math: loops that LLVM vectorises call the elementary functions of runtime/vmath.py and vmath32.py."""
from typing import Any

from gradscribe.codegen.foreign import PREFIX
from gradscribe.codegen.llvm_inline import in_single
from gradscribe.codegen.loops.analysis.dependence import summed
from gradscribe.codegen.loops.analysis.effects import ELEMENTARY, Effects
from gradscribe.codegen.loops.form import (
    Call,
    Const,
    Expr,
    For,
    Function,
    Op,
    While,
    change,
    rebuilt,
    statements,
)
from gradscribe.codegen.loops.types import is_double, is_single


def in_loops(function: Function) -> None:
    """Call them in innermost loops without recurrences of numbers other than sums, in place.

    Branches do not matter: LLVM computes both arms for all lanes and selects by the mask of the test.

    >>> import ast
    >>> from gradscribe.codegen.loops.trees import from_tree, to_tree
    >>> tree = ast.parse('''def f(x):
    ...     s = 0.0
    ...     for i in range(x.shape[0]):
    ...         s = s + np.exp(x[i])
    ...     for i in range(x.shape[0]):
    ...         s = np.exp(s * x[i])''')
    >>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
    >>> in_loops(function)
    >>> print(ast.unparse(to_tree(function)))
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + exp(x[i])
        for i in range(x.shape[0]):
            s = np.exp(s * x[i])

    The text has those in single precision as np.float32(np.exp(x[i])), and SciPy's as scipy_erf(x[i]).
    """
    types = function.types

    def new(e: Any) -> Expr:
        if isinstance(e, Call) and e.function == "np.float32":
            inner = e.args[0]
            name: Any = in_single(elementary(inner))
            if name is not None and all(is_single(a, types) for a in inner.args):
                return Call(name, tuple(map(new, inner.args)))
        name = elementary(e)
        doubles = name is not None and all(is_double(a, types) for a in e.args)
        e = rebuilt(e, new)
        return Call(name, e.args) if doubles else e

    for loop in statements(function.block):
        if isinstance(loop, For) and not any(isinstance(s, (For, While)) for s in statements(loop.block)) and \
                not has_recurrence(loop):
            for s in (loop, *statements(loop.block)):
                change(s, new)


def elementary(e: Expr) -> str | None:
    """The name of the function of runtime/vmath.py for a call or a power; None if there is none.

    >>> from gradscribe.codegen.loops.form import Name
    >>> elementary(Call("np.exp", (Name("x"),))), elementary(Op("**", (Name("x"), Const(1.5))))
    ('exp', 'power')
    """
    if isinstance(e, Op) and e.op == "**":
        return None if isinstance(e.args[1], Const) and type(e.args[1].value) is int else "power"
    if not isinstance(e, Call) or e.keywords or len(e.args) > 2:
        return None
    head, _, name = e.function.rpartition(".")
    if not head:
        name = "logistic" if name == "expit" else name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    return name if head in ("", "np", "math") and name in ELEMENTARY else None


def has_recurrence(loop: For) -> bool:
    """Whether a pass reads a number of the previous pass other than to add to it (a recurrence)."""
    effects = Effects(loop.block, branches=True)
    return any(not summed(name, loop, less=True) for name in effects.names & effects.sets)
