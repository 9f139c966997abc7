# SPDX-License-Identifier: Apache-2.0
"""Idiom recognition of matrix products: loop nests that are products of matrices, in any loop order, call BLAS.

Three loops are a matrix product if they sum products of two factors, one independent of the first loop and one of the
second, into a result that is independent of the third.  The rest of the nest stays where it is: operands are computed
before the product or stored in each pass, and what reads the sum reads an entry of the product.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(A, B):
...     n = A.shape[0]
...     m = B.shape[0]
...     p = A.shape[1]
...     B = np.ones((m, p), np.float64)
...     C = np.empty((n, m), np.float64)
...     for i in range(n):
...         for j in range(m):
...             s = 0.0
...             for k in range(p):
...                 s += A[i, k] * B[j, k]
...             C[i, j] = exp(s)
...     return (C,)''').body[0]
>>> function = from_tree(tree, {"A": ("float64", 2), "B": ("float64", 2)})
>>> find_products(function)
>>> print(ast.unparse(to_tree(function)))
def f(A, B):
    n = A.shape[0]
    m = B.shape[0]
    p = A.shape[1]
    B = np.ones((m, p), np.float64)
    C = np.empty((n, m), np.float64)
    s_product = np.dot(A, B.T)
    for i in range(n):
        for j in range(m):
            s = 0.0
            s += s_product[i, j]
            C[i, j] = exp(s)
    return (C,)

Source: R. Allen, K. Kennedy, Optimizing Compilers for Modern Architectures, 2002, chapter 5 (distribution and scalar
expansion); L. De Carvalho et al., KernelFaRer: replacing native-code idioms with high-performance library calls, ACM
TACO 18, 2021.
"""
import functools
from collections import Counter
from typing import Any, NamedTuple

from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.analysis.dependence import accumulated
from gradscribe.codegen.loops.analysis.effects import Effects
from gradscribe.codegen.loops.analysis.values import Analyses, in_bounds, is_computed, with_values
from gradscribe.codegen.loops.form import (
    JUMPS,
    ONE,
    Alloc,
    Attribute,
    Call,
    Expr,
    For,
    Function,
    If,
    Let,
    Load,
    Name,
    Op,
    Raise,
    Store,
    Type,
    Update,
    all_blocks,
    all_names,
    names_in,
    names_of,
    renamed,
    set_by,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.types import REAL, type_of
from gradscribe.codegen.loops.uniform import few


class Product(NamedTuple):
    """A statement in three loops that sums products.

    loops: the outermost first; sums: for each product (sign, factors of the first matrix, factors of the second);
    target: the entry of the result; place: the number or entry that gets the sum after the innermost loop, None if the
    statement adds to an entry of the result itself; whole: {index: its number of values}; within: of a triangular nest,
    the indices of the two loops, the one that bounds the other first.
    """
    statement: Any
    loops: list
    sums: list
    target: Load
    place: Any
    whole: dict
    within: tuple


def find_products(function: Function) -> None:
    """Changes a function in place."""
    for block in list(all_blocks(function)):
        for outer in [s for s in block if isinstance(s, For)]:
            shared: dict = {}
            for loops, s in _innermost(outer):
                _Nest(function, block, loops, shared).replace(s)


def _innermost(outer):
    """The three loops of a nest and a statement of the innermost one, for each."""
    for middle in list(outer.block):
        for inner in list(middle.block) if isinstance(middle, For) else ():
            for s in list(inner.block) if isinstance(inner, For) else ():
                if isinstance(s, (Store, Update, Let)):
                    yield [outer, middle, inner], s


class _New(NamedTuple):
    """What replaces a sum. taken: the names in use; origin: the statement's; dtype: the product's; made: statements."""
    taken: set
    origin: Any
    dtype: str
    made: list


class _Nest:
    """Three nested loops, of which the block holds the outermost; shared: its matrices and products made so far."""

    def __init__(self, function, block, loops, shared):
        self.function, self.block, self.loops, self.shared = function, block, loops, shared
        self.outer, self.middle, self.inner = loops
        self.indices, self.asked = [x.index for x in loops], Analyses(function)

    @functools.cached_property
    def effects(self):
        return Effects(self.outer.block, branches=True, asks=True, raises=True)

    def shows(self, array, names):
        """Whether one of these names may share memory with an array."""
        return not self.asked.families([array]).isdisjoint(self.asked.families(names))

    def replace(self, s):
        """Replace the sums of a statement by a product, if they are one."""
        for target, place, sign, value in self.added(s) if self.stands(s) else ():
            self.set, self.lets = set_in([self.outer]), self.numbers(s)
            value = self.with_values(value, inner=True)
            jumps = any(isinstance(i, JUMPS) and not isinstance(i, Raise) for i in statements([self.outer]))
            if jumps or not self.effects.known:
                return
            counts = [self.with_values(x.count) for x in self.loops]
            for values, after in (([value, *counts], True), ([self.with_values(value), *counts], False)):
                self.after = after
                if after and place is not None:
                    continue
                product = self.product(s, target, place, sign, values)
                if product is not None and (self.may_follow(product) if after else self.may_precede(product)):
                    self.written(product)
                    return

    def stands(self, s):
        """Whether the loops are still nested and counted, with the statement in the innermost."""
        within = zip(([self.outer], self.outer.block, self.middle.block, self.inner.block), (*self.loops, s))
        return self.outer in self.block and all(x in block for block, x in within) and len(set(self.indices)) == 3 and \
            all(x.kind == "range" and x.count is not None and not few(x) for x in self.loops)

    def added(self, s):
        """(target, place, sign, value), as in Product, for each reading of a statement as a sum: into an entry of a
        matrix, or into a number or entry that holds the sum of the innermost loop.
        """
        i, j, k = self.indices
        sums = Name(i), Name(j)
        if isinstance(s, Store):
            names = {p.id for p in s.entry.index if isinstance(p, Name)} & set(self.indices)
            if s.op not in ("+", "-") or not isinstance(s.entry.array, Name):
                return
            if len(s.entry.index) == len(names) == 2:
                yield s.entry, None, s.op, s.value
            others = {n for o in statements([self.inner]) if o is not s for n in names_of(o)} | names_in(s.value)
            if k not in names_in(s.entry) and not self.shows(s.entry.array.id, others) and names_in(
                    s.entry).isdisjoint(set_in(self.inner.block)):
                yield Load(s.entry.array, sums), s.entry, s.op, s.value
            return
        sign, value = (s.op, s.value) if isinstance(s, Update) else (None, None)
        if isinstance(s, Let) and isinstance(s.value, Op) and len(s.value.args) == 2:
            one, other = s.value.args
            if one == Name(s.name):
                sign, value = s.value.op, other
            elif other == Name(s.name) and s.value.op == "+":
                sign, value = "+", one
        sets = [o for o in statements(self.function.block) if s.name in set_by(o)]
        first = next((o for o in self.middle.block if o in sets), None)
        if sign not in ("+", "-") or s.name in names_in(value) or len(sets) != 2 or not isinstance(first, Let) or (
                s.name in names_in(first.value) or self.middle.block.index(first) > self.middle.block.index(self.inner)
                ) or any(s.name in names_of(o) for o in statements([self.inner]) if o is not s):
            return
        yield Load(Name(s.name), sums), Name(s.name), sign, value

    def numbers(self, s):
        """{name: (its statement, the indices it depends on)} of the numbers that are set before a statement in the same
        pass of the loops.
        """
        found: dict = {}
        for depth, (loop, last) in enumerate(zip(self.loops, (self.middle, self.inner, s))):
            before = loop.block[:loop.block.index(last)]
            found |= {o.name: (o, set(self.indices[:depth + 1])) for o in before if isinstance(o, Let)}
        sets = Counter(n for o in statements([self.outer]) for n in set_by(o))
        return {n: about for n, about in found.items() if sets[n] == 1}

    def with_values(self, e, inner=False):
        """An expression with numbers substituted by their values where these may be computed elsewhere; inner: only
        numbers of the innermost loop.
        """
        return with_values(e, {n: made.value for n, (made, _) in self.lets.items() if is_computed(made.value) and (
            not inner or made in self.inner.block)})

    def product(self, s, target, place, sign, values):
        """The Product of a statement; None if it is none."""
        value, *counts = values
        sums = []
        for one, term in terms(value, sign):
            sides = self.sides(factors(term), target)
            if sides is None:
                return None
            sums.append((one, *sides))
        whole, within = {}, ()
        for loop, count in zip(self.loops, counts):
            names = names_in(count)
            if names.isdisjoint(self.set):
                whole[loop.index] = count
                continue
            other = next((x for x in whole if x in names), None)
            if within or other is None or count not in (Name(other), Op("+", (Name(other), ONE))):
                return None
            whole[loop.index], within = whole[other], (other, loop.index)
        if not self.asked.known.lasting(whole.values()) or not all(
                self.asked.ranges.at_least(n, 0, self.outer) for n in whole.values()):
            return None
        dtype = type_of(value, self.function.types).dtype
        if dtype not in REAL or self.function.types[target.array.id].dtype != dtype:
            return None
        made = Product(s, self.loops, sums, target, place, whole, within)
        pairs = [(Name(x), Name(y)) for x, y in self.pairs(target)]
        loads = [e for _, *both in sums for side in both for f in side for e in walk(f) if isinstance(e, Load)]
        return made if all(map(self.affordable, pairs, [made] * 3)) and all(
            self.in_bounds(e, s, made) for e in loads) else None

    def pairs(self, target):
        """The indices of the two factors and of the result: (p, q), (q, r), (p, r)."""
        p, r = (e.id for e in target.index)
        q = next(x for x in self.indices if x not in (p, r))
        return (p, q), (q, r), (p, r)

    def sides(self, found, target):
        """(factors of the first matrix, factors of the second); None if a factor belongs to neither."""
        (p, q), (_, r), _ = self.pairs(target)
        left, right = [], []
        for f in found:
            on = self.depends(f)
            if on is None or on >= {p, r}:
                return None
            (right if r in on else left).append(f)
        on_left, on_right = (set().union(*map(self.depends, side), ()) for side in (left, right))
        return (left, right) if on_left == {p, q} and on_right == {q, r} else None

    def depends(self, e):
        """The indices of the nest that an expression depends on; None where that is unknown."""
        found = names_in(e) & set(self.indices)
        if not is_computed(e):
            return None
        if self.after and self.local(e):
            i, j, k = self.indices
            changed = any(self.shows(n, names_in(e)) for n in written_in(self.inner.block))
            return {i, j} if not changed and names_in(e).isdisjoint({k, *set_in(self.inner.block)}) and \
                type_of(e, self.function.types).dtype in REAL else None
        for name in (names_in(e) & self.set) - set(self.indices):
            made, on = self.lets.get(name, (None, None))
            kind = self.function.types.get(name, Type())
            if made is None or made in self.inner.block or kind.dtype not in REAL or kind.rank != 0:
                return None
            found |= on
        return found

    def local(self, e):
        """Whether a factor depends on what the nest writes: its values are available in their pass only."""
        names = names_in(e) - set(self.indices)
        return any(self.shows(n, names) for n in written_in([self.outer])) or any(
            n not in self.lets or self.function.types.get(n, Type()).rank != 0 for n in names & self.set)

    def affordable(self, pair, product):
        """Whether the function has an array as large as a matrix of two indices."""
        x, y = (product.whole[n.id] for n in pair)
        return any(kind and len(kind[1]) > 1 and x in kind[1] and y in kind[1] and (x != y or kind[1].count(x) > 1)
                   for kind in self.asked.known.kinds.values())

    def in_bounds(self, e, s, product):
        """Whether an entry that a matrix reads exists, even if other loops have no pass."""
        indices = {n for p in e.index for n in names_in(p)}
        if product.within and product.within[1] in indices:         # its loop does not take all its values
            kind = self.asked.known.kinds.get(e.array.id)
            return bool(kind) and tuple(product.whole.get(getattr(p, "id", None)) for p in e.index) == kind[1]
        return in_bounds(e, s, product.whole, self.asked)

    # where the product may go

    def may_follow(self, product):
        """Whether the product may be computed after the nest."""
        target, i = product.target, self.indices[0]
        if product.within and (self.kept(product) or any(map(self.local, self.factors(product)))):
            return False
        axes = {a for a, p in enumerate(target.index) if p == Name(i)}
        first = self.outer.block[:self.outer.block.index(self.middle)]
        before, array = set(statements(first)), target.array.id
        for s in statements([self.outer]):
            if array in names_of(s):
                own = s in before and all(isinstance(u.parent, Load) and any(
                    u.parent.index[a] == Name(i) for a in axes if a < len(u.parent.index))
                    for u in uses_in(s) if u.name == array)
                if not own and not (stores(s, array) and s.op in ("+", "-")):
                    return False
        return self.alone(product, set())

    def may_precede(self, product):
        """Whether the product may be computed before the nest."""
        if self.kept(product) or product.place is None and not accumulated(product.target.array.id, self.outer):
            return False
        later = self.outer.block[self.outer.block.index(self.middle) + 1:]
        i, allowed = Name(self.indices[0]), set()
        for name in self.read(product):
            stores = [s for s in statements([self.outer]) if isinstance(s, Store) and s.entry.array == Name(name)]
            loads = [e for f in self.factors(product) for e in walk(f) if isinstance(e, Load) and e.array == Name(name)]
            if all(any(s in set(statements([t])) for t in later) for s in stores) and any(
                    all(len(e.index) > a and e.index[a] == i for e in (*loads, *(s.entry for s in stores)))
                    for a in range(2)):
                allowed.add(name)
        return self.alone(product, allowed)

    def alone(self, product, allowed):
        """Whether the nest writes neither to the operands, except `allowed`, nor to the target through an alias."""
        effects, families = self.effects, self.asked.families
        array = product.target.array.id if product.place is None else None
        read, written = families(self.read(product)), families(effects.writes.keys() - allowed - {array})
        if any(not families([n]).isdisjoint(families(effects.writes.keys() - {n})) for n in allowed):
            return False
        if array is None:
            return read.isdisjoint(written)
        touched = families((effects.reads.keys() | effects.writes.keys() | effects.whole) - {array})
        return read.isdisjoint(written) and families([array]).isdisjoint(read | touched)

    def factors(self, product):
        return [f for _, *both in product.sums for side in both for f in side]

    def read(self, product):
        """The arrays that the factors read, without those that the nest stores in each pass."""
        return {e.array.id for f in self.factors(product) if not (self.after and self.local(f)) for e in walk(f)
                if isinstance(e, Load)}

    def kept(self, product):
        """The numbers of the nest that the factors read."""
        names = set().union(*(names_in(f) for f in self.factors(product) if not (self.after and self.local(f))))
        return sorted((names & self.set) - set(self.indices))

    # the new statements

    def written(self, product):
        s, place, after = product.statement, product.place, self.after
        target = product.target
        self.new = _New(all_names(self.function), s.origin, self.function.types[target.array.id].dtype, [])
        if place is not None and (len(product.sums) > 1 or product.sums[0][0] == "-" or product.within):
            name = self.array(f"{target.array.id}_all", [product.whole[x.id] for x in target.index], "zeros")
            target, place = Load(Name(name), target.index), None
        each = {name: self.keep(name, product) for name in self.kept(product)}
        for sign, *both in product.sums:
            both = [[renamed(f, each) for f in self.with_kept(side, product)] for side in both]
            result = self.add(sign, both, target, product, place is None)
        at = self.block.index(self.shared.get("last", self.outer) if after else self.outer) + after
        self.block[at:at] = self.new.made
        if after:
            self.shared["last"] = self.new.made[-1]
        self.inner.block.remove(s)
        if product.place is not None:
            value = target if place is None else result
            added = Update(product.place.id, "+", value, s.origin) if isinstance(product.place, Name) else Store(
                product.place, value, "+", s.origin)
            self.middle.block.insert(self.middle.block.index(self.inner) + 1, added)
        self.clean()

    def keep(self, name, product):
        """The entry of a new array in which the nest stores the values of a number."""
        let, on = self.lets[name]
        holder = self.outer.block if len(on) == 1 else self.middle.block
        index = tuple(map(Name, self.indices[:len(on)]))
        new = self.array(f"{name}_each", [product.whole[p.id] for p in index], "empty", before=True)
        entry = Load(Name(new), index)
        holder.insert(holder.index(let) + 1, Store(entry, Name(name), None, let.origin))
        return entry

    def with_kept(self, side, product):
        """The factors of a matrix; those that are available in their pass only are stored in an array by the nest."""
        local = [f for f in side if self.after and self.local(f)]
        if not local:
            return side
        index = tuple(map(Name, self.indices[:2]))
        name = self.array("factor_each", [product.whole[p.id] for p in index], "empty", before=True)
        entry = Load(Name(name), index)
        self.middle.block.insert(self.middle.block.index(self.inner),
                                 Store(entry, factors_as_one(local), None, self.new.origin))
        return [f for f in side if f not in local] + [entry]

    def array(self, name, lengths, how, before=False):
        name = unused(name, self.new.taken)
        self.function.types[name] = Type(self.new.dtype, len(lengths))
        made = Alloc(name, how, tuple(lengths), (Attribute(Name("np"), self.new.dtype),), self.new.origin)
        if before:
            self.block.insert(self.block.index(self.outer), made)
        else:
            self.new.made.append(made)
        return name

    def add(self, sign, both, target, product, to_target):
        """Compute a product, and with to_target add it to the target; return the entry of the product."""
        pairs = self.pairs(target)
        masked = next((k for k in (0, 1) if product.within and set(product.within) == set(pairs[k])), None)
        factor, both = self.scale_apart(both, pairs, product)
        matrices = [self.matrix(side, pair, product) for side, pair in zip(both, pairs)]
        added, (one, other) = [], matrices
        known = self.shared.get((self.after, one, other)), self.shared.get((self.after, turned(other), turned(one)))
        name = known[0] or known[1]
        if name is None:
            name = unused(f"{target.array.id}_product", self.new.taken)
            self.function.types[name] = Type(self.new.dtype, 2)
            added = [Let(name, Call("np.dot", tuple(matrices)), self.new.origin)]
            if masked is None:
                self.shared[self.after, one, other] = name
        result = Load(Name(name), target.index[::-1] if known[0] is None and known[1] else target.index)
        result = factors_as_one([*factor, result])
        if to_target:
            added.append(self.in_loops(pairs[2], product, Store(target, result, sign, self.new.origin)))
        if masked is not None:              # 0 * inf is not 0
            partner = matrices[1 - masked]
            value = factors_as_one([*factor, *both[0], *both[1]])
            loops = self.in_loops(self.indices, product, Store(target, value, sign, self.new.origin))
            added = [If(Name(self.is_finite(partner)), added, [loops], self.new.origin)]
        self.new.made.extend(added)
        return result

    def is_finite(self, matrix):
        """The name of the condition that no entry of a matrix is NaN or infinite."""
        array = matrix.owner if isinstance(matrix, Attribute) else matrix
        if (self.after, array) not in self.shared:
            name = self.shared[self.after, array] = unused(f"{array.id}_is_finite", self.new.taken)
            self.function.types[name] = Type("bool", 0)
            self.new.made.append(Let(name, Call("all_finite", (array,)), self.new.origin))
        return self.shared[self.after, array]

    def in_loops(self, indices, product, s):
        """A statement in loops over these indices; a loop that another one bounds is inside that."""
        if product.within and set(product.within) == set(indices):
            indices = product.within
        for x in reversed(indices):
            inner = product.within and x == product.within[1] and product.within[0] in indices
            count = self.count_of(x) if inner else product.whole[x]
            s = For(x, (count,), [s], "range", self.new.origin)
        return s

    def count_of(self, index):
        """The number of passes of a loop, in terms of the index of the loop that bounds it."""
        return self.with_values(self.loops[self.indices.index(index)].count)

    def scale_apart(self, both, pairs, product):
        """(the factors that are the same for all entries, the rest of either side), separated only if the rest are then
        two whole arrays that need no copy.
        """
        rest = [[f for f in side if self.depends(f)] or side for side in both]
        fixed = [f for side, left in zip(both, rest) for f in side if f not in left]
        if fixed and all(self.whole_array(side, pair, product) for side, pair in zip(rest, pairs)):
            return fixed, rest
        return [], both

    def whole_array(self, side, pair, product):
        """The array that is a matrix, or has it as its transpose; else None."""
        if len(side) > 1 or not isinstance(side[0], Load) or not isinstance(side[0].array, Name) or (
                product.within and set(product.within) == set(pair)):
            return None
        e, kind = side[0], self.asked.known.kinds.get(side[0].array.id)
        for index, array in ((pair, e.array), (pair[::-1], Attribute(e.array, "T"))):
            lengths = tuple(product.whole[x] for x in index)    # of arrays that the nest stores, these are the lengths
            if e.index == tuple(map(Name, index)) and (kind is None or kind[1] == lengths):
                return array
        return None

    def matrix(self, side, pair, product):
        """An array whose entries are the product of factors."""
        lengths = [product.whole[x] for x in pair]
        within = bool(product.within) and set(product.within) == set(pair)
        array = self.whole_array(side, pair, product)
        if array is not None:
            return array
        # loops of one index may have different lengths
        half = product.within, self.count_of(product.within[1]) if within else ()
        key = self.after, factors_as_one(side), frozenset(zip(pair, lengths)), half
        if key in self.shared:
            name, order = self.shared[key]
            return Name(name) if order == pair else Attribute(Name(name), "T")
        name = self.array("factor", lengths, "zeros" if within else "empty")
        self.shared[key] = name, pair
        store = Store(Load(Name(name), tuple(map(Name, pair))), factors_as_one(side), None, self.new.origin)
        self.new.made.append(self.in_loops(pair, product, store))
        return Name(name)

    def clean(self):
        """Remove dead assignments and empty loops."""
        for block in (self.inner.block, self.middle.block):
            for s in block[::-1]:
                if isinstance(s, Let) and is_computed(s.value) and not any(
                        s.name in names_of(o) for o in statements(self.function.block)):
                    block.remove(s)
        for block, loop in ((self.middle.block, self.inner), (self.outer.block, self.middle), (self.block, self.outer)):
            if not loop.block:
                block.remove(loop)


def written_in(block):
    """The arrays whose entries statements set."""
    return {s.entry.array.id for s in statements(block) if isinstance(s, Store) and isinstance(s.entry.array, Name)}


def stores(s, array):
    """Whether a statement stores into an array and reads no other entry of it."""
    return isinstance(s, Store) and s.entry.array == Name(array) and not any(
        array in names_in(e) for e in (s.value, *s.entry.index))


def turned(e: Expr) -> Expr:
    """The transpose of a matrix."""
    return e.owner if isinstance(e, Attribute) else Attribute(e, "T")


def terms(e: Expr, sign: str):
    """(sign, term) for each term of a sum."""
    if isinstance(e, Op) and e.op in ("+", "-") and len(e.args) == 2:
        yield from terms(e.args[0], sign)
        yield from terms(e.args[1], sign if e.op == "+" else "-" if sign == "+" else "+")
    elif isinstance(e, Op) and e.op == "neg":
        yield from terms(e.args[0], "-" if sign == "+" else "+")
    else:
        yield sign, e


def factors(e: Expr) -> list:
    """The factors of a product."""
    if isinstance(e, Op) and e.op == "*":
        return [f for a in e.args for f in factors(a)]
    return [e]


def factors_as_one(found: list) -> Expr:
    out = found[0]
    for f in found[1:]:
        out = Op("*", (out, f))
    return out
