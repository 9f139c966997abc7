# SPDX-License-Identifier: Apache-2.0
"""Unsigned indices for kernels, where an index is never negative.

Numba lets `x[i]` count from the end if i is negative, which takes three instructions for each access.  An unsigned
index needs none of them.  The text for people has `x[i]`; the compiler gets `x[np.uint64(i)]` if i is a thread's index,
or counts up from one.

>>> print(unsigned('''def f(x, y, n):
...     i = cuda.grid(1)
...     while i < n:
...         for k in range(3):
...             y[i] += x[i - 1, k]
...         i += cuda.gridsize(1)'''))
def f(x, y, n):
    i = cuda.grid(1)
    while i < n:
        for k in range(3):
            y[np.uint64(i)] += x[i - 1, np.uint64(k)]
        i += cuda.gridsize(1)
"""
import ast

PLACES = {"cuda.grid", "cuda.gridsize"}
SIZES = {f"cuda.{n}.{axis}" for n in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"}


def unsigned(text):
    """The text of a kernel with its indices unsigned."""
    tree = ast.parse(text)
    changed(tree)
    return ast.unparse(tree)


def changed(tree):
    """Make the indices of a kernel's tree unsigned, in place."""
    names = counting(tree.body[0])
    for n in ast.walk(tree):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
            parts = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
            made = [as_unsigned(p) if getattr(p, "id", None) in names else p for p in parts]
            if isinstance(n.slice, ast.Tuple):
                n.slice.elts = made
            else:
                n.slice = made[0]


def as_unsigned(name):
    function = ast.Attribute(ast.Name("np", ast.Load()), "uint64", ast.Load())
    return ast.copy_location(ast.Call(function, [name], []), name)


def counting(function):
    """Names that are never negative: indices of threads, and loop variables that count up from these or a number."""
    values, given = {}, {a.arg for a in function.args.args}
    for n in ast.walk(function):
        if isinstance(n, ast.Assign):
            for t in n.targets:
                parts = t.elts if isinstance(t, ast.Tuple) else [t]
                for p in parts:
                    if isinstance(p, ast.Name):
                        values.setdefault(p.id, []).append(n.value)
        elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
            values.setdefault(n.target.id, []).append(n.value)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            values.setdefault(n.target.id, []).append(n.value if isinstance(n.op, ast.Add) else None)
        elif isinstance(n, ast.For) and isinstance(n.target, ast.Name):
            args = n.iter.args if isinstance(n.iter, ast.Call) and ast.unparse(n.iter.func) == "range" else [None] * 3
            values.setdefault(n.target.id, []).extend([None] if None in args else [
                args[0] if len(args) > 1 else ast.Constant(0), args[2] if len(args) > 2 else ast.Constant(1)])
        elif isinstance(n, (ast.For, ast.NamedExpr, ast.comprehension, ast.withitem)):
            for p in ast.walk(n.target if not isinstance(n, ast.withitem) else n):
                if isinstance(p, ast.Name):
                    values.setdefault(p.id, []).append(None)
    names = values.keys() - given
    while True:
        kept = {n for n in names if all(is_positive(v, names) for v in values[n])}
        if kept == names:
            return names
        names = kept


def is_positive(value, names):
    """Whether a value is never negative, given names that are not."""
    if isinstance(value, ast.Constant):
        return type(value.value) is int and value.value >= 0
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.Add, ast.Mult)) and all(
            is_positive(v, names) for v in (value.left, value.right))
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in PLACES
    return isinstance(value, ast.Attribute) and ast.unparse(value) in SIZES
