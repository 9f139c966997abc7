# SPDX-License-Identifier: Apache-2.0
"""Scalar regions: consecutive statements about numbers, which Numba compiles as one call.

Numba takes each operation through twenty passes, half of the compile time, before LLVM sees anything.  Statements that
compute numbers, access entries, and counted loops and branches of such need none of that.  They become a call whose
arguments are the names that they read and whose results are the names that are live after them.  `region_forms.py`
generates the code of the call, with the types and instructions that Numba has for each operation.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     z = np.empty((3,), np.float64)
...     s = 0.0
...     for i in range(3):
...         z[i] = 2.0 * x[i]
...         s += z[i]
...     y = np.dot(z, x)
...     return (s, y)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 1)})
>>> [(r.params, r.results) for r in as_calls(function)]
[(['z', 'x'], ['s'])]
>>> print(ast.unparse(to_tree(function)))
def f(x):
    z = np.empty((3,), np.float64)
    s = region_1_(z, x)
    y = np.dot(z, x)
    return (s, y)
"""
from collections import Counter
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.analysis.arrays import apart, is_entry, uses_in
from gradscribe.codegen.loops.analysis.equivalence import parts_in_order, shape_of
from gradscribe.codegen.loops.analysis.liveness import Flow, read_outside_loops
from gradscribe.codegen.loops.analysis.ranges import natural, natural_places
from gradscribe.codegen.loops.form import (
    MINUS_ONE,
    ONE,
    Attribute,
    Call,
    Compare,
    Const,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Unpack,
    Update,
    children,
    expressions,
    sign_of,
    statements,
    walk,
)
from gradscribe.codegen.loops.shapes import is_check
from gradscribe.codegen.loops.types import is_of_numbers
from gradscribe.codegen.loops.uniform import few

LEAST = 3                               # a row with fewer operations stays as it is
COMPARED = {"<", "<=", ">", ">=", "==", "!="}
DOWN = MINUS_ONE, Const(-1)


class Region(NamedTuple):
    """A region: its name as a function, its statements, parameters and results.

    apart: {name: array} of arrays without other aliases; natural: names of numbers that are never negative; places:
    {id: index expression} of those that are never negative; nests: {loop: its nest} of loops that may become functions;
    repeated: {loop: its nest} of loops that do; several: whether it is called at several places.
    """
    name: str
    statements: list
    params: list
    results: list
    apart: Mapping = MappingProxyType({})
    natural: frozenset = frozenset()
    places: Mapping = MappingProxyType({})
    nests: Mapping = MappingProxyType({})
    repeated: Mapping = MappingProxyType({})
    several: bool = False


class Nest(NamedTuple):
    """Statements that may occur several times, up to renaming.

    known: their shape and facts about their names; names: in the order of the text; params, results: names that they
    take and return.
    """
    known: tuple
    names: tuple
    params: list
    results: list


def as_calls(function: Function, short: Container = ()) -> list:
    """Replace the regions of a function by calls, in place; the regions in their order.

    short: arrays on the function's stack.
    """
    regions = _Regions(function, short)
    for s in statements(function.block):
        form.change(s, lambda e: form.unshared(with_signs(e)))
    regions.places = natural_places(function)
    function.block = regions.block(function.block)
    return regions.found


def with_repeated(regions: list, functions: list) -> list:
    """The regions with `repeated` and `several` set: loop nests and regions that occur several times in functions."""
    named, repeated = {r.name: r for r in regions}, {}
    calls: Counter = Counter()
    for function in functions:
        called = [(region, in_loop) for block, in_loop in form.blocks_in_loops(function.block) for s in block
                  if (region := named.get(getattr(getattr(s, "value", None), "function", None))) is not None]
        nests = [(s, nest) for region, in_loop in called for s, nest in region.nests.items()
                 if not in_loop or any(isinstance(i, For) for i in s.block)]
        count = Counter(nest.known for _, nest in nests)
        repeated.update({s: nest for s, nest in nests if count[nest.known] > 1})
        calls.update(region.name for region, _ in called)
    return [r._replace(repeated=repeated, several=calls[r.name] > 1) for r in regions]


def with_signs(e):
    """Fold negated literals: -9223372036854775808 is not the negation of an int64."""
    e = form.rebuilt(e, with_signs)
    if isinstance(e, Op) and sign_of(e.op) == "neg" and isinstance(e.args[0], Const) and type(
            e.args[0].value) in (int, float):
        return Const(-e.args[0].value)
    return e


class _Regions:
    """ranks: {name: rank}; loads: {name: how often it is read}; outside: names that are read other than as the index of
    a loop around; by_shape: {known of a nest: name of the region}.
    """

    def __init__(self, function, short):
        self.found, self.ranks = [], {n: t.rank for n, t in function.types.items()}
        self.short, self.by_shape = short, {}
        self.loads, self.apart = loads_in(function.block), apart(function)
        self.outside = read_outside_loops(function.block)
        self.natural, self.places = natural(function), {}

    def block(self, block):
        out, row = [], []
        for s in block:
            if self.fits(s):
                row.append(s)
                continue
            self.close(row, out)
            row = []
            for inner in form.blocks(s):
                inner[:] = self.block(inner)
            out.append(s)
        self.close(row, out)
        return out

    def close(self, row, out):
        """Append a row to `out`, as a call if that is worth it."""
        if sum(operations(s) for s in statements(row)) < LEAST:
            out += row
            return
        nest = self.nest(row)
        params, results = nest.params, nest.results
        same = self.by_shape.get(nest.known)
        if same is None:
            same = self.by_shape[nest.known] = f"region_{len(self.found) + 1}_"
            self.found.append(Region(same, row, params, results, self.apart, self.natural, self.places,
                                     {s: self.nest([s]) for s in self.outermost(row)}))
        call = Call(same, tuple(map(Name, params)))
        made = form.Do(call) if not results else Let(results[0], call) if len(results) == 1 else Unpack(
            Items(tuple(map(Name, results))), call)
        made.origin, made.line = row[0].origin, row[0].line
        out.append(made)

    def outermost(self, block):
        """The outermost loops that may become functions: not short ones, nor those that use arrays on the stack."""
        for s in block:
            if not isinstance(s, For):
                for inner in form.blocks(s):
                    yield from self.outermost(inner)
            elif not all(few(i) for i in statements([s]) if isinstance(i, For)) and not any(
                    n in self.short for n in loads_in([s])):
                yield s

    def nest(self, block):
        """The Nest of a row of statements."""
        shape, flow, inside = shape_of(block), Flow(block), loads_in(block)
        # a name that is read before it is set may be carried by a loop around
        results = [n for n in shape.names if n in flow.sets and (
            n in flow.read or self.loads.get(n, 0) > inside.get(n, 0))]
        given = flow.read | (set(results) - flow.certain)
        params, number = [n for n in shape.names if n in given], {n: k for k, n in enumerate(shape.names)}
        owners = [self.apart.get(n) for n in shape.names]
        known = (shape.key, tuple(number[n] for n in (*params, *results)), len(params),
                 *((n in self.natural, n in self.short, a and owners.index(a)) for n, a in zip(shape.names, owners)),
                 *(id(e) in self.places for e in parts_in_order(block)))
        return Nest(known, shape.names, params, results)

    # statements that fit

    def fits(self, s):
        """Whether a statement is about numbers only, so that a region may have it."""
        if isinstance(s, Let):
            if isinstance(s.value, Const):
                return type(s.value.value) is float
            return self.ranks.get(s.name) == 0 and self.value(s.value)
        if isinstance(s, Update):
            return sign_of(s.op) not in ("**", "@") and self.ranks.get(s.name) == 0 and self.value(s.value)
        if isinstance(s, Store):
            return (s.op is None or sign_of(s.op) not in ("**", "@")) and self.value(s.entry) and self.value(s.value)
        if isinstance(s, For):
            return self.counted(s) and all(map(self.fits, s.block)) and s.index not in self.outside
        if isinstance(s, If):
            return self.value(s.test) and all(map(self.fits, (*s.block, *s.orelse)))
        return is_check(s) and self.value(s.value) or isinstance(s, form.Nothing)

    def counted(self, s):
        """Whether a loop is over range(n), or counts up or down by one."""
        return s.kind == "range" and len(s.range) in (1, 3) and all(map(self.value, s.range)) and (
            len(s.range) == 1 or s.range[2] in (ONE, *DOWN))

    def value(self, e):
        """Whether an expression is a number that region_forms.py can compile."""
        if isinstance(e, Const):
            return type(e.value) in (int, float, bool, complex)
        if isinstance(e, Name):
            return self.ranks.get(e.id) == 0
        if isinstance(e, Length):
            return bool(self.ranks.get(e.array)) and type(e.axis) is int
        if isinstance(e, Load):
            rank = self.ranks.get(e.array.id) if isinstance(e.array, Name) else None
            return bool(rank) and is_entry(e, rank) and all(map(self.value, e.index))
        if isinstance(e, Attribute):
            return e.name in ("real", "imag") and self.value(e.owner)
        if isinstance(e, Call):
            return not e.keywords and is_of_numbers(e.function) and all(map(self.value, e.args))
        if isinstance(e, Op) and sign_of(e.op) == "@" or isinstance(e, Compare) and (
                len(e.ops) > 1 or e.ops[0] not in COMPARED):
            return False
        return isinstance(e, (Op, Compare, Select, Logic)) and all(map(self.value, children(e)))


def operations(s) -> int:
    """The number of operations of a statement itself, accesses and calls included."""
    return isinstance(s, For) + sum(isinstance(n, (Op, Compare, Select, Logic, Call, Load, Length))
                                    for e in expressions(s) for n in walk(e))


def loads_in(block: list) -> dict:
    """{name: how often it is read}"""
    found: dict = {}
    for s in statements(block):
        for use in uses_in(s):
            found[use.name] = found.get(use.name, 0) + 1
        if isinstance(s, Update):
            found[s.name] = found.get(s.name, 0) + 1
    return found
