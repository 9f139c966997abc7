# SPDX-License-Identifier: Apache-2.0
"""Rows of statements about numbers that are given to Numba as one call.

Numba takes each operation through twenty passes: half of what compiling takes is spent before LLVM has seen anything.
Statements that compute numbers, read and set entries, and the counted loops and branches made of such, need none of
that.  They become a call of a function of the names that they read, which gives those that are read after them;
`group_forms.py` writes what the call stands for, with the types and the instructions that Numba has for each operation.

>>> tree = ast.parse('''def f(x):
...     z = np.empty((3,), np.float64)
...     s = 0.0
...     for i in range(3):
...         z[i] = 2.0 * x[i]
...         s += z[i]
...     y = np.dot(z, x)
...     return (s, y)''')
>>> [(g.params, g.results) for g in Groups(tree.body[0], [1]).run()]
[(['x', 'z'], ['s'])]
>>> print(ast.unparse(tree))
def f(x):
    z = np.empty((3,), np.float64)
    s = group_1_(x, z)
    y = np.dot(z, x)
    return (s, y)
"""
import ast
from typing import NamedTuple

import numpy as np

from gradscribe.codegen.loops.analysis.effects import CHECKS, PURE
from gradscribe.codegen.straight import STRAIGHT
from gradscribe.codegen.texts import CASTS, MADE, is_entry, parts_of, walk

OPEN = "open"                           # of a name of which nothing is known yet
NUMBERS = PURE | CHECKS | set(STRAIGHT) | {
    "sinc", "integer_power", "round_to", "squared_size", "finite_or", "complex_less", "complex_at_most",
    "complex_maximum", "complex_minimum", "complex_quotient", "whole_fmod"}
LEAST = 3                               # operations below which a row is left as it is
VALUES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.BoolOp)


class Group(NamedTuple):
    """A row of statements: the name of its function, the names it is given, those it gives back."""
    name: str
    statements: list
    params: list
    results: list


class Groups:
    """Works on a function's text in place; ranks: of its parameters."""

    def __init__(self, function, ranks):
        Signs().visit(function)
        self.function, self.found = function, []
        self.ranks = known_ranks(function, dict(zip([a.arg for a in function.args.args], ranks)))
        self.loads, self.outside = loads_in(function.body), set()
        self.read_outside(function, ())

    def run(self):
        """The groups, in their order."""
        self.function.body = self.block(self.function.body)
        return self.found

    def block(self, body):
        out, row = [], []
        for s in body:
            if self.fits(s):
                row.append(s)
                continue
            self.close(row, out)
            row = []
            for field in ("body", "orelse"):
                if isinstance(s, (ast.For, ast.While, ast.If)) and getattr(s, field):
                    setattr(s, field, self.block(getattr(s, field)))
            out.append(s)
        self.close(row, out)
        return out

    def close(self, row, out):
        """A row as a call, where that is worth it."""
        if sum(isinstance(n, (*VALUES, ast.Call, ast.Subscript)) for s in row for n in walk(s)) < LEAST:
            out += row
            return
        flow = Flow(row)
        inside = loads_in(row)
        # what is read before it is set comes from the pass before, where a loop is around
        results = sorted(n for n in flow.sets if n in flow.read or self.loads.get(n, 0) > inside.get(n, 0))
        params = sorted(flow.read | (set(results) - flow.certain))
        group = Group(f"group_{len(self.found) + 1}_", row, params, results)
        self.found.append(group)
        call = ast.Call(ast.Name(group.name, ast.Load()), [ast.Name(n, ast.Load()) for n in params], [])
        names = [ast.Name(n, ast.Store()) for n in results]
        made = ast.Expr(call) if not names else ast.Assign(
            [names[0] if len(names) == 1 else ast.Tuple(names, ast.Store())], call)
        for n in walk(made):
            ast.copy_location(n, row[0])
        out.append(made)

    # which

    def read_outside(self, node, indices):
        """Finds the names that are read where no loop around counts by them."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in indices:
            self.outside.add(node.id)
        for inner in ast.iter_child_nodes(node):
            counts = isinstance(node, ast.For) and isinstance(node.target, ast.Name) and inner is not node.iter
            self.read_outside(inner, (*indices, node.target.id) if counts else indices)

    def fits(self, s):
        """Whether a statement is about numbers only."""
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            if isinstance(s.value, ast.Constant) and isinstance(s.targets[0], ast.Name):
                return type(s.value.value) is float
            return self.target(s.targets[0]) and self.value(s.value)
        if isinstance(s, ast.AugAssign):
            return not isinstance(s.op, (ast.Pow, ast.MatMult)) and self.target(s.target) and self.value(s.value)
        if isinstance(s, ast.For):
            return isinstance(s.target, ast.Name) and not s.orelse and self.counted(s.iter) and all(
                map(self.fits, s.body)) and s.target.id not in self.outside
        if isinstance(s, ast.If):
            return self.value(s.test) and all(map(self.fits, (*s.body, *s.orelse)))
        if isinstance(s, ast.Expr):
            return isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name) and \
                s.value.func.id in CHECKS and self.value(s.value)
        return isinstance(s, ast.Pass)

    def target(self, node):
        if isinstance(node, ast.Name):
            return self.ranks.get(node.id) == 0
        return isinstance(node, ast.Subscript) and self.value(node)

    def counted(self, node):
        """range(n), or down to 0 or up, by one."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "range" or \
                len(node.args) not in (1, 3) or not all(map(self.value, node.args)):
            return False
        return len(node.args) == 1 or literal(node.args[2]) in (1, -1)

    def value(self, node):
        """Whether an expression is a number made of what group_forms.py writes."""
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, float, bool, complex)
        if isinstance(node, ast.Name):
            return self.ranks.get(node.id) == 0
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute):
                return is_length(node) and self.ranks.get(node.value.value.id, 0) not in (0, OPEN)
            return isinstance(node.value, ast.Name) and self.ranks.get(node.value.id, 0) not in (0, OPEN) and is_entry(
                node, self.ranks[node.value.id]) and all(map(self.value, parts_of(node)))
        if isinstance(node, ast.Attribute):
            return node.attr in ("real", "imag") and self.value(node.value)
        if isinstance(node, ast.Call):
            return not node.keywords and is_number(node.func) and all(map(self.value, node.args))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) or isinstance(
                node, ast.Compare) and (len(node.ops) > 1 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In,
                                                                                      ast.NotIn))):
            return False
        return isinstance(node, VALUES) and all(
            self.value(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))


class Signs(ast.NodeTransformer):
    """Numbers below zero are written as numbers: -9223372036854775808 is none that is negated, which no int64 holds."""

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        value = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if isinstance(node.op, ast.USub) and type(value) in (int, float):
            return ast.copy_location(ast.Constant(-value), node)
        return node


class Flow:
    """What a row of statements reads before it sets it, sets, and certainly sets."""

    def __init__(self, row):
        self.read, self.sets, self.certain = set(), set(), set()
        self.block(row)

    def block(self, body):
        for s in body:
            if isinstance(s, ast.For):
                self.value(s.iter)
                before = set(self.certain)
                self.certain.add(s.target.id)
                self.block(s.body)
                self.certain = before
            elif isinstance(s, ast.If):
                self.value(s.test)
                before, ends = self.certain, []
                for arm in (s.body, s.orelse):
                    self.certain = set(before)
                    self.block(arm)
                    ends.append(self.certain)
                self.certain = ends[0] & ends[1]
            elif isinstance(s, (ast.Assign, ast.AugAssign)):
                target = s.targets[0] if isinstance(s, ast.Assign) else s.target
                self.value(s.value)
                if isinstance(target, ast.Name):
                    if isinstance(s, ast.AugAssign):
                        self.name(target.id)
                    self.sets.add(target.id)
                    self.certain.add(target.id)
                else:
                    self.value(target)
            else:
                self.value(s)

    def name(self, name):
        if name not in self.certain:
            self.read.add(name)

    def value(self, node):
        """Names but those of functions."""
        if isinstance(node, ast.Name):
            self.name(node.id)
        for inner in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.Call) and inner is node.func):
                self.value(inner)


# --- ranks ------------------------------------------------------------------------------------------------------------

def known_ranks(function, given):
    """{name: rank} of the names that stand for numbers, rank 0, or for arrays of one rank, all through a function."""
    values = {n: [rank] for n, rank in given.items()}
    for n in walk(function):
        if isinstance(n, ast.Assign) and len(n.targets) == 1:
            targets = [(n.targets[0], n.value)]
        elif isinstance(n, ast.AugAssign):
            targets = [(n.target, ast.BinOp(ast.Name(n.target.id, ast.Load()), n.op, n.value))] if isinstance(
                n.target, ast.Name) else []
        elif isinstance(n, ast.For):
            ranged = isinstance(n.iter, ast.Call) and ast.unparse(n.iter.func) in ("range", "prange")
            targets = [(n.target, 0 if ranged else None)]
        else:
            targets = []
        for target, value in targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
            elif not isinstance(target, ast.Subscript):
                for m in walk(target):
                    if isinstance(m, ast.Name):
                        values.setdefault(m.id, []).append(None)
    ranks = dict.fromkeys(values, OPEN)
    waiting = True
    while waiting:
        waiting = False
        for name, found in values.items():
            if ranks[name] == OPEN:
                known = {rank_of(v, ranks) for v in found} - {OPEN}
                if known:
                    ranks[name] = known.pop() if len(known) == 1 else None
                    waiting = True
    wrong = True
    while wrong:
        wrong = [n for n, found in values.items() if ranks[n] is not None and
                 any(rank_of(v, ranks) != ranks[n] for v in found)]
        ranks.update(dict.fromkeys(wrong))
    return ranks


def rank_of(node, ranks):
    """The rank of a value: 0 of a number, OPEN where it hangs on a name that is open, None where it is not known."""
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Constant):
        return 0 if type(node.value) in (int, float, bool, complex) else None
    if isinstance(node, ast.Name):
        return ranks.get(node.id)
    if isinstance(node, ast.Subscript):
        if is_length(node):
            return 0
        parts = [0 if isinstance(p, ast.Slice) else rank_of(p, ranks) for p in parts_of(node)]
        whole = rank_of(node.value, ranks)
        if whole == OPEN or OPEN in parts:
            return OPEN
        if not whole or any(parts) or None in parts:
            return None
        return whole - sum(not isinstance(p, ast.Slice) for p in parts_of(node))
    if isinstance(node, ast.Attribute):
        if node.attr == "size":
            return 0
        rank = rank_of(node.value, ranks)
        return rank if node.attr == "T" or rank in (0, OPEN) and node.attr in ("real", "imag") else None
    if isinstance(node, ast.Call):
        return rank_of_call(node, ranks)
    if not isinstance(node, VALUES):
        return None
    found = {rank_of(n, ranks) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)}
    return OPEN if OPEN in found and found <= {0, OPEN} else 0 if found == {0} else None


def rank_of_call(node, ranks):
    function, args = node.func, node.args
    if is_number(function):
        found = {rank_of(a, ranks) for a in args}
        return OPEN if OPEN in found and found <= {0, OPEN} else 0 if found <= {0} else None
    if not isinstance(function, ast.Attribute) or node.keywords:
        return None
    if isinstance(function.value, ast.Name) and function.value.id == "np":
        if function.attr in MADE and args and isinstance(args[0], ast.Tuple):
            return len(args[0].elts)
        if function.attr == "dot" and len(args) == 2:
            found = [rank_of(a, ranks) for a in args]
            return None if None in found else OPEN if OPEN in found else sum(found) - 2 if all(found) else None
        return None
    if function.attr == "reshape" and len(args) == 1 and isinstance(args[0], ast.Tuple):
        return len(args[0].elts)
    return rank_of(function.value, ranks) if function.attr == "copy" and not args else None


def is_number(function):
    """A function that makes a number of numbers."""
    if isinstance(function, ast.Name):
        return function.id in NUMBERS
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    if function.value.id == "np":
        return function.attr in CASTS or function.attr == "conj" or isinstance(getattr(np, function.attr, None),
                                                                              np.ufunc)
    return function.value.id == "math"


def is_length(node):
    """x.shape[k]."""
    return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and isinstance(
        node.value.value, ast.Name) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int


def literal(node):
    """A whole number written out, or None."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def loads_in(body):
    """{name: how often it is read}"""
    found: dict = {}
    for s in body:
        for n in walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                found[n.id] = found.get(n.id, 0) + 1
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                found[n.target.id] = found.get(n.target.id, 0) + 1
    return found
