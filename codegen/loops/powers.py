# SPDX-License-Identifier: Apache-2.0
"""Strength reduction of powers: those with half-integer exponents become square roots, products and quotients.

So `r ** -1.5` takes a tenth of the time.  The last digits may differ, so this is for fast mathematics only; the results
for zeros, negative numbers, infinities and NaN are those of powers.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, y):
...     for i in range(x.shape[0]):
...         y[i] = (x[i] + 1.0) ** 1.5''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1), "y": ("float64", 1)})
>>> reduce_powers(function)
>>> print(ast.unparse(to_tree(function)))
def f(x, y):
    for i in range(x.shape[0]):
        base = x[i] + 1.0
        root = np.sqrt(abs(base)) if base >= 0.0 else np.inf if base == -np.inf else np.nan
        y[i] = abs(base) * root

Source: J. Cocke, K. Kennedy, An algorithm for reduction of operator strength, 1977.
"""
from gradscribe.codegen.loops.form import (
    Attribute,
    Call,
    Compare,
    Const,
    Function,
    Let,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Type,
    Update,
    all_blocks,
    all_names,
    change,
    expressions,
    rebuilt,
    sign_of,
    unused,
    walk,
)
from gradscribe.codegen.loops.types import REAL, type_of

MOST = 2.5                              # larger exponents would change the last two digits


def reduce_powers(function: Function) -> None:
    """Changes a function in place."""
    taken = None
    for block in all_blocks(function):
        for s in list(block):
            if isinstance(s, (Let, Store, Update)) and any(half(e) for whole in expressions(s) for e in walk(whole)):
                taken = taken or all_names(function)
                _reduce(function, block, s, taken)


def half(e) -> float | None:
    """The exponent of a power if it is a half-integer literal, else None."""
    if not isinstance(e, Op) or sign_of(e.op) != "**":
        return None
    exponent, sign = e.args[1], 1
    if isinstance(exponent, Call) and exponent.function == "np.float32" and len(exponent.args) == 1:
        exponent = exponent.args[0]
    if isinstance(exponent, Op) and exponent.op == "neg":
        exponent, sign = exponent.args[0], -1
    value = exponent.value if isinstance(exponent, Const) else None
    return sign * value if isinstance(value, float) and value % 1 == 0.5 and abs(value) <= MOST else None


def _reduce(function, block, s, taken):
    """Replace the powers of a statement by numbers that are computed before it."""
    def new(e, always=True):
        """always: whether the expression is evaluated on every path."""
        if isinstance(e, (Select, Logic)):
            first, *rest = (e.test, e.then, e.orelse) if isinstance(e, Select) else e.items
            parts = [new(first, always), *(new(p, False) for p in rest)]
            return Select(*parts) if isinstance(e, Select) else Logic(e.op, tuple(parts))
        e = rebuilt(e, lambda part: new(part, always))
        exponent = half(e)
        dtype, rank = type_of(e.args[0], function.types) if exponent is not None else (None, None)
        if dtype not in REAL or rank != 0 or not always and not isinstance(e.args[0], Name):
            return e                    # an entry may not exist
        base = e.args[0] if isinstance(e.args[0], Name) else before("base", e.args[0], dtype)
        size = Call("abs", (base,))
        def number(e):
            return Call("np.float32", (e,)) if dtype == "float32" else e
        infinite = Attribute(Name("np"), "inf")
        root = before("root", Select(
            Compare((">=",), (base, number(Const(0.0)))), Call("np.sqrt", (size,)),
            Select(Compare(("==",), (base, number(Op("neg", (infinite,))))), number(infinite),
                   number(Attribute(Name("np"), "nan")))), dtype)
        out = root if exponent > 0 else Op("/", (number(Const(1.0)), root))
        for _ in range(int(abs(exponent) - 0.5)):
            out = Op("*", (size, out)) if exponent > 0 else Op("/", (out, size))
        return out

    def before(name, value, dtype):
        name = unused(name, taken)
        function.types[name] = Type(dtype, 0)
        block.insert(block.index(s), Let(name, value, s.origin))
        return Name(name)
    change(s, new)
