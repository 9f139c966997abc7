# SPDX-License-Identifier: Apache-2.0
"""The core of lowering, from the normal form to loops over scalars in which every value has NumPy's dtype.

An array expression is *lazy*: its axes, and a function that gives the expression of one entry.  Elementwise functions,
transposes, gathers and paddings nest without arrays between them, and one loop nest stores the value of a statement.
Named views (slices, transposes) are Numba's own; every other named array is contiguous.
"""
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Pack, Var, While, walk
from gradscribe.ast_transform.core.kinds import Array, dtype_of, spell
from gradscribe.ast_transform.core.operations import shape_of
from gradscribe.ast_transform.core.rule import RULES, Table
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import constant_fact, is_array
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError
from gradscribe.codegen.entry_forms import form_of
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import ZERO, entry, joined, let, node, quoted, statement
from gradscribe.codegen.scalar_forms import Operand, cast, enters, literal

INDEXES = "ijklpqrs"
# {function: form(lowering, node), which returns a Lazy, or a list if there are several results}
LAZY: Table = Table()
LAZY.wait_for("scipy.special", "gradscribe.codegen.special_forms")
lazily = enters(LAZY)

UNCOMPILED = "Without gs.jit it runs as it is."


def compiles(dtype: DTypeLike) -> bool:
    """Whether Numba supports a dtype."""
    return np.dtype(dtype).char in "?bBhHiIlLqQfdFD"


class Dim(NamedTuple):
    """One axis: its length, a key that equal lengths share, and whether the length is one, many or maybe one."""
    length: loops.Expr
    key: Any
    kind: str


ONE = Dim(loops.ONE, (None, 1), "one")


ROW = "row"                             # a view that is contiguous
LINES = "lines"                         # a matrix with contiguous rows, and gaps between them
TURNED = "turned"                       # an array that is contiguous with its last two axes swapped


class Lazy:
    """An array expression.

    `read`: a function from an index to an entry, or the value of all entries; `name`: an expression for the whole
    array, if any; `view`: whether it is a view, usually not contiguous; `turned`: for stacks of matrices, the array
    whose last two axes this one swaps.
    """

    __slots__ = ("cost", "dims", "dtype", "literal", "name", "read", "turned", "view")

    def __init__(self, dims, dtype, read, cost=1, name=None, view=False, literal=None, turned=None):
        self.dims, self.dtype, self.cost = list(dims), dtype, cost
        made = None if callable(read) else node(read)
        self.read = read if made is None else lambda index: made
        self.name, self.view, self.literal, self.turned = name and node(name), view, literal, turned

    @property
    def rank(self):
        return len(self.dims)

    @property
    def exact(self):
        return np.dtype(self.dtype)

    def operand(self, index=()):
        return Operand(self.read(list(index)), self.dtype, self.literal)

    def cast(self, index, dtype):
        return cast(self.operand(index), dtype)


class Depth(NamedTuple):
    """Of the current block: how many blocks it is in, itself included, and how many loops over entries."""
    blocks: int
    loops: int


class KnownLengths(NamedTuple):
    """The lengths of variables.

    keys: {variable: the key of each axis}; extents: {variable: for each axis the length, None if it has no name};
    counts: {number: its key}; locals: names that are set once; first: {name set at the beginning: the statement}
    """
    keys: dict
    extents: dict
    counts: dict
    locals: set
    first: dict


class Program:
    """What is known of a function that is lowered, and what lowering leaves for those who compile it."""
    loops: loops.Function               # the function in loop form, once it has types (jit_cpu.py)
    pushed: set                         # the names of lists that grow
    tells: bool                         # whether it has reports

    def __init__(self, function):
        self.function, self.unset = function, unset_values(function.body)
        self.inputs = [p for p in function.params if isinstance(p.value, Var)]
        self.temporaries = set()        # names that are no variable's
        self.results = []               # of each leaf: its kind, and its dtype or the literal
        self.lifted, self.reports = [], []      # arrays that become arguments, with names; functions that print
        self.named_lengths, self.start = {}, 0  # {symbol: (name, offset)}; where the current statement begins
        self.sources, self.bits = None, {}      # which arrays may share memory; {bit generator: its kind and seed}
        self.maker = {}                 # {variable: the statement, join or carry that sets it}
        for step in walk(function.body):
            if isinstance(step, Let):
                self.maker.update(dict.fromkeys(step.targets, step))
            elif isinstance(step, (For, While)):
                self.maker.update({c.outer: c for c in step.carries})
            elif isinstance(step, If):
                self.maker.update({j.var: j for j in step.joins})


class Lowering:
    """Statements, names, lengths and lazy expressions; the *_forms.py files have the forms of functions.

    for_threads: whether a device's threads will run the program.
    """

    def __init__(self, naming, taken, for_threads=False, program=None):
        self.naming, self.taken = naming, set(taken) | {"np", "math"}
        self.for_threads, self.program = for_threads, program
        self.body = []                  # the block that statements are added to
        self.depth, self.count = Depth(1, 0), 0
        self.origin, self.views, self.facts, self.known = None, {}, {}, KnownLengths({}, {}, {}, set(), {})
        self.bounds = {}                # {index of a loop: the key of its length}
        self.kinds = {}                 # {array that a statement has made: (dtype, rank)}
        self.indexes = [c for c in INDEXES if c not in self.taken] + [f"index_{k}" for k in range(8)]

    # statements

    def add(self, made):
        """Appends a statement to the current block."""
        made.origin = self.origin
        self.body.append(made)
        return made

    def say(self, template, *given, **named):
        """Appends the statement of a template (loops/build.py)."""
        return self.add(statement(template, *given, **named))

    def set(self, target, value):
        """target = value"""
        self.add(let(target, node(value)))

    def result(self, stem, template, *given, **named):
        """A new name, set to the expression of a template."""
        name = self.fresh(stem)
        self.set(name, quoted(template, *given, **named))
        return name

    def raises(self, message, test, *given, **named):
        """Appends a ValueError that is raised if a test holds."""
        with self.inside("if {}:", quoted(test, *given, **named)):
            self.say("raise ValueError({})", loops.Const(message))

    @contextmanager
    def into(self, block):
        """Inside, statements are appended to another block."""
        body, depth = self.body, self.depth
        self.body, self.depth = block, Depth(depth.blocks + 1, depth.loops)
        yield block
        self.body, self.depth = body, depth

    def inside(self, head, *given, **named):
        """Inside, statements are appended to the block of a template's head."""
        return self.into(self.say(head, *given, **named).block)

    @contextmanager
    def nest(self, dims):
        """Inside, statements are appended to a loop nest over axes; yields the index of an entry."""
        body, depth, index = self.body, self.depth, []
        for d in dims:
            if d.kind == "one":
                index.append(ZERO)
                continue
            index.append(node(self.indexes[self.depth.loops]))
            self.body = self.say("for {} in range({}):", index[-1], d.length).block
            self.depth = Depth(self.depth.blocks + 1, self.depth.loops + 1)
        yield index
        self.body, self.depth = body, depth

    def fresh(self, stem):
        self.count += 1
        while f"{stem}_{self.count}" in self.taken:
            self.count += 1
        name = f"{stem}_{self.count}"
        self.taken.add(name)
        self.program.temporaries.add(name)
        return name

    def refuse(self, reason):
        raise RuleError(reason, self.origin, UNCOMPILED)

    def no_form(self, function, why=""):
        self.refuse(f"{spelled(function)} has no Numba form{why}")

    # facts

    def fact(self, node):
        """The fact of an operand or a nested operation."""
        if not isinstance(node, (Apply, Pack)):
            return types.fact_of(node)
        known = self.facts.get(id(node))
        if known is None:
            try:
                known = self.facts[id(node)] = (types.nested(node, self.fact), node)
            except types.Unfit as error:
                raise ShapeError(str(error), self.origin) from None
        return known[0]

    def stand_in(self, node):
        """An operand with a variable in place of each expression."""
        return types.stand_in(node, self.fact)

    # lengths

    def named(self, name, fact, keys=None, view=False, extents=None):
        """A named array as a lazy one."""
        dims = []
        for k, d in enumerate(fact.dims):
            n = d.normal()
            key = keys[k] if keys else (name, k, self.fresh("key"))
            if n.symbol is None:                # checked by `hold` where the value was made
                dims.append(ONE if n.offset == 1 else fixed(n.offset))
            else:
                length = extents and extents[k] or loops.Length(name, k)
                dims.append(Dim(length, key, "many" if d.many else "maybe"))
        return Lazy(dims, fact.dtype, lambda index: entry(name, *index), 0, name, view)

    def length_key(self, node):
        """The key of an integer that may be a length."""
        if isinstance(node, Const) and isinstance(node.value, (int, np.integer)):
            return (None, int(node.value))
        if isinstance(node, Var):
            return self.known.counts.get(node) or (node, 0)
        if isinstance(node, Apply) and node.function is shape_of:
            return self.lazy(node.args[0]).dims[node.args[1].value].key
        if isinstance(node, Apply) and getattr(node.function, "__name__", "") in ("add", "sub") and type(
                getattr(node.args[-1], "value", None)) is int and len(node.args) == 2:
            n = node.args[1].value
            return shifted(self.length_key(node.args[0]), n if node.function.__name__ == "add" else -n)
        return (object(), 0)

    def length(self, node):
        """An operand as the length of an axis."""
        if isinstance(node, (int, np.integer)):
            node = Const(int(node))
        if isinstance(node, Const):
            n = int(node.value)
            return ONE if n == 1 else fixed(n)
        d = self.fact(node).length
        kind = "maybe" if d is None else "one" if d.is_unit else "many" if d.many else "maybe"
        return ONE if kind == "one" else Dim(self.atom(self.scalar(node), "n"), self.length_key(node), kind)

    def lengths(self, node):
        """The axes of a shape argument."""
        if isinstance(node, Pack):
            return [self.length(i) for i in node.items]
        if isinstance(node, Const) and isinstance(node.value, (tuple, list)):
            return [self.length(n) for n in node.value]
        return [self.length(node)]

    def computed(self, length, like=None):
        """An axis whose length is an expression."""
        return Dim(self.atom(length, "n"), (length, self.fresh("key")), like.kind if like else "maybe")

    def counted(self, name):
        """The axis of a vector that a runtime function returns, of int64 unless `made` sets its kind."""
        self.kinds.setdefault(name, ("int64", 1))
        return Dim(loops.Length(name, 0), (name, self.fresh("key")), "maybe")

    def atom(self, value, stem="t"):
        """A name for a scalar expression; an expression that is as cheap as a name is returned as it is."""
        if is_atom(value):
            return value
        name = self.fresh(stem)
        self.known.locals.add(name)
        self.set(name, value)
        return node(name)

    def less(self, length, gone):
        """A name for max(length - gone, 0) that is set at the beginning; None if the length is not known there."""
        if not isinstance(length, loops.Name) or length.id not in self.known.first:
            return None
        name = f"{length.id}_less_{gone}"
        if name not in self.known.first:
            if name in self.taken:
                return None
            self.taken.add(name)
            self.known.locals.add(name)
            self.known.first[name] = statement("{} = max({} - {}, 0)", name, length, gone)
        return node(name)

    def keep(self, var, dims):
        """Records the lengths of a variable."""
        self.known.keys[var], self.known.extents[var] = [d.key for d in dims], [self.stable(d.length) for d in dims]

    def stable(self, length):
        """A length if its expression keeps its value, else None."""
        known = isinstance(length, loops.Const) or isinstance(length, loops.Name) and length.id in self.known.locals
        return length if known else None

    def agree(self, dims):
        """The first of several axes of equal length; adds checks where that is not certain."""
        first = dims[0]
        for d in dims[1:]:
            if d.key != first.key:
                self.say("same({}, {})", first.length, d.length)
        return first

    def broadcast(self, shapes):
        """(axes of the broadcast of operands, for each operand a function from the result's index to its own)."""
        rank = max(map(len, shapes), default=0)
        dims, picks = [], [[] for _ in shapes]
        for k in range(-rank, 0):
            here = [(n, s[k]) for n, s in enumerate(shapes) if len(s) >= -k]
            rest = [d for _, d in here if d.kind != "one"]
            base = next((d for d in rest if d.kind == "many"), None)
            if not rest:
                dim = ONE
            elif base is not None or all(d.key == rest[0].key for d in rest):
                dim = base or rest[0]
            else:
                length = rest[0].length
                for d in rest[1:]:
                    length = quoted("meet({}, {})", length, d.length)
                dim = self.computed(length)
            dims.append(dim)
            for n, d in here:
                picks[n].append(self.pick(d, dim, k + rank))
        return dims, [placed(p) for p in picks]

    def laid_over(self, own, dims):
        """A function from an index over `dims` to one of an array that is broadcast to them; adds checks."""
        lead, entries = len(dims) - len(own), []
        for k, d in enumerate(own, lead):
            if d.kind == "one":
                entries.append((None, None))
            elif d.key == dims[k].key:
                entries.append((k, None))
            elif d.kind == "many":
                self.agree([dims[k], d])
                entries.append((k, None))
            else:
                self.say("fits({}, {})", d.length, dims[k].length)
                entries.append((k, self.step(d)))
        return placed(entries)

    def pick(self, d, dim, k):
        """(position in the result's index, factor) for the index of an operand's axis; both may be None."""
        if d.kind == "one":
            return None, None
        if d.key == dim.key:
            return k, None
        if d.kind == "many" and dim.kind == "many":
            self.agree([dim, d])
            return k, None
        if d.kind == "maybe" and dim.kind == "many":
            self.say("meet({}, {})", d.length, dim.length)
        return k, self.step(d)

    def step(self, d):
        """The name of a factor that is 0 if an axis has one entry, else 1."""
        flag = self.result("step", "0 if {} == 1 else 1", d.length)
        return node(flag)

    # expressions

    def lazy(self, node) -> Lazy:
        if isinstance(node, Lazy):
            return node
        if isinstance(node, Var):
            return self.lazy_var(node)
        if isinstance(node, Const):
            return self.constant(node.value)
        if isinstance(node, Pack):
            return LAZY[np.array](self, Apply(np.array, (node,)))
        if not isinstance(node, Apply):
            self.refuse(f"{spell(self.fact(node))} is not a value that Numba compiles")
        made = self.forms(node)
        if isinstance(made, list) and len(made) == 1:
            return made[0]
        if isinstance(made, list):
            self.refuse(f"{spelled(node.function)} gives several results here")
        return made

    def forms(self, node):
        """The result of a function's form: a Lazy or a list of them."""
        around, self.origin = self.origin, node.origin or self.origin
        made = self.form_of(node)
        self.origin = around
        return made

    def form_of(self, node):
        function = node.function
        try:
            form = LAZY.get(function)
            entrywise = form_of(function) if form is None else None
        except TypeError:
            form = entrywise = None
        if form is not None:
            return form(self, node)
        if entrywise is None:
            self.no_form(function)
        return self.elementwise(node, entrywise)

    def lazy_var(self, var):
        fact = var.fact
        if var not in self.naming.names:
            self.refuse(f"{var.hint} is {spell(fact)}, which Numba does not support")
        name = self.naming[var]
        if not isinstance(fact, Array):
            self.refuse(f"{var.hint} is {spell(fact)}: no Numba form")
        if not fact.dims:
            return Lazy([], fact.dtype, name, 0)
        keys = self.known.keys.get(var) or [(var, k) for k in range(fact.rank)]
        return self.named(name, fact, keys, self.views.get(var, False), self.known.extents.get(var))

    def constant(self, value):
        if is_array(value):
            if not value.ndim:
                return self.constant(value[()])
            name = next((n for n, v in self.program.lifted if v is value), None)
            if name is None:
                name = self.fresh("constant")
                self.program.lifted.append((name, value))
            return self.named(name, constant_fact(value))
        if isinstance(value, (tuple, list)):
            return self.constant(np.array(value))
        if isinstance(value, (bool, int, float, complex, np.generic)):
            dtype = dtype_of(value)
            if not compiles(dtype):
                self.refuse(f"Numba has no {np.dtype(dtype)}")
            number = value.item() if isinstance(value, np.generic) else value
            return Lazy([], dtype, literal(number, dtype), 0, literal=number)
        self.refuse(f"{spell(constant_fact(value))} is not a value that Numba compiles")

    def elementwise(self, node, entrywise):
        args = [None if isinstance(a, Const) and a.value is None else self.lazy(a) for a in node.args]
        args += [self.lazy(a) for _, a in node.kwargs]
        return self.entries(entrywise, args, self.fact(node).dtype, node.function)

    def entries(self, entrywise, args, out, function=None):
        """The lazy result of a scalar function on each entry of arrays that broadcast."""
        for dtype in [out, *(a.dtype for a in args if a)]:
            if not compiles(dtype):
                self.refuse(f"Numba has no {np.dtype(dtype)}")
        dims, picks = self.broadcast([a.dims for a in args if a])
        args = [a and self.settled(a, dims) for a in args]
        entrywise = getattr(entrywise, "in_loops", entrywise) if dims else entrywise
        def read(index):
            each = iter(picks)
            given = [None if a is None else a.operand(next(each)(index)) for a in args]
            made = entrywise(given, out)
            if made is None:
                self.no_form(function, " for these dtypes")
            return made
        cost = 1 + sum(a.cost for a in args if a)
        return Lazy(dims, out, read, cost)

    def settled(self, lazy, dims):
        """An operand, materialised first if broadcasting reads its entries more than once."""
        if not lazy.cost or not dims:
            return lazy
        if not lazy.rank:
            return self.alone(lazy)
        own = [ONE] * (len(dims) - lazy.rank) + lazy.dims
        if lazy.cost > 1 and any(d.kind == "one" and e.kind != "one" for d, e in zip(own, dims)):
            return self.array(lazy)
        return lazy

    def alone(self, lazy):
        """A scalar stored under a new name."""
        return Lazy([], lazy.dtype, self.result("t", "{}", lazy.cast([], lazy.dtype)), 0)

    def scalar(self, node, dtype=None) -> loops.Expr:
        """The expression of a scalar operand, in a dtype."""
        lazy = self.lazy(node)
        if lazy.rank:
            if any(d.kind != "one" for d in lazy.dims):
                self.refuse("an array where a number is needed")
            return lazy.cast([ZERO] * lazy.rank, lazy.dtype if dtype is None else dtype)
        return lazy.cast([], lazy.dtype if dtype is None else dtype)

    def array(self, lazy, dtype=None, into=None):
        """The array as a named contiguous one, in a dtype."""
        lazy = self.lazy(lazy)
        dtype = np.dtype(lazy.dtype if dtype is None else dtype)
        if into is None and lazy.name and not lazy.view and lazy.exact == dtype:
            return lazy
        name = into or self.fresh("t")
        if not lazy.rank:
            self.set(name, lazy.cast([], dtype))
            return Lazy([], dtype, name, 0)
        self.say("{} = np.empty({}, {})", name, shape(lazy.dims), dtype)
        with self.nest(lazy.dims) as index:
            self.say("{}[{*}] = {}", name, index, lazy.cast(index, dtype))
        return self.made(name, lazy.dims, dtype)

    def as_it_lies(self, node, dtype=None):
        """The array for a reader that accepts a contiguous view, without a copy of it."""
        lazy = self.lazy(node)
        if lazy.name and lazy.view == ROW and lazy.exact == np.dtype(lazy.dtype if dtype is None else dtype):
            return lazy
        return self.array(lazy, dtype)

    def made(self, name, dims, dtype, view=False):
        """The lazy array for a name that a statement has just set."""
        self.kinds[name] = np.dtype(dtype).name, len(dims)
        own = [d if self.stable(d.length) else Dim(loops.Length(name, k), d.key, d.kind) for k, d in enumerate(dims)]
        return Lazy(own, dtype, lambda index: entry(name, *index), 0, name, view)

    # arguments

    def bound(self, node):
        """{parameter: operand} of a call, with defaults."""
        signature = RULES[node.function].signature
        bound = signature.bind(*node.args, **dict(node.kwargs))
        return {
            **{p.name: Const(p.default) for p in signature.parameters.values() if p.default is not p.empty},
            **bound.arguments,
        }

    def static(self, node, what="an argument"):
        """The value of an operand that must be known when compiling."""
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Pack):
            return tuple(self.static(i, what) for i in node.items)
        self.refuse(f"{what} must be known when compiling")


def shifted(key: tuple, n: int) -> tuple:
    """The key of a length that is longer by n."""
    if n == 0:
        return key
    if key[0] is None:
        return (None, key[1] + n)
    if key[0] == "+":
        return shifted(key[1], key[2] + n)
    return ("+", key, n)


def is_none(node: Any) -> bool:
    return isinstance(node, Const) and node.value is None


def shape(dims: Iterable[Dim]) -> loops.Items:
    return loops.Items(tuple([d.length for d in dims]))


def product_of(dims: Iterable[Dim]) -> loops.Expr:
    """The product of lengths."""
    return joined("*", [d.length for d in dims if d.kind != "one"] or [1])


def fixed(n):
    """An axis of a known length."""
    return Dim(node(n), (None, n), "many")


def placed(entries):
    """The function from the result's index to an operand's, from the pairs of `pick`."""
    return lambda index: [ZERO if k is None else index[k] if step is None else quoted("{} * {}", index[k], step)
                          for k, step in entries]


def is_atom(e):
    """Whether an expression is as cheap as a name: a name, a number, a length, an entry at a constant index."""
    if isinstance(e, loops.Const):
        return not set("+-") & set(repr(e.value))
    if isinstance(e, loops.Load):
        return len(e.index) == 1 and type(getattr(e.index[0], "value", None)) is int and is_dotted(e.array)
    return isinstance(e, loops.Length) or is_dotted(e)


def is_dotted(e):
    return isinstance(e, loops.Name) or isinstance(e, loops.Attribute) and is_dotted(e.owner)
